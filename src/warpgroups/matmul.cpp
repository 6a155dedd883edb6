// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/half.hpp>
#include <KokkosNN/impl/call/warpgroup_matmul_launch.hpp>

#include <Kokkos_Core.hpp>

#include <stdexcept>

// Matrix products on Hopper's warpgroups: cmake/Warpgroups.cmake compiles this file for sm_90a where it can.

namespace KokkosNN::Impl {

template <class Exec, class T>
bool MatmulOnWarpgroups<Exec, T>::is_compiled() {
  return is_compiled_for_warpgroups;
}

template <class Exec, class T>
void MatmulOnWarpgroups<Exec, T>::run(const Exec& exec, const MatmulLayout& layout, const MatmulPlan& plan,
                                      const MatmulData<T>& data, const MatmulEpilogue<MatmulResult, float>& epilogue,
                                      const MatmulResults<T, ElementTypes<>>& results) {
  if constexpr (is_compiled_for_warpgroups) {
    launch_on_warpgroups<T>(exec, layout, plan, data, epilogue, results);
  } else {
    throw std::logic_error(plan.label + ": not compiled");
  }
}

template struct MatmulOnWarpgroups<Kokkos::DefaultExecutionSpace, half_t>;
template struct MatmulOnWarpgroups<Kokkos::DefaultExecutionSpace, bhalf_t>;

}  // namespace KokkosNN::Impl
