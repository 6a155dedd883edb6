// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/half.hpp>
#include <KokkosNN/impl/call/warpgroup_attention.hpp>
#include <KokkosNN/impl/call/warpgroup_attention_launch.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <stdexcept>
#include <string>

// Attention on Hopper's warpgroups: cmake/Warpgroups.cmake compiles this file for sm_90a where it can.

namespace KokkosNN::Impl {

template <class Exec, class X>
AttentionKernelShape AttentionOnWarpgroups<Exec, X>::shape(const AttentionData<X>& data) {
  return is_compiled_for_warpgroups ? warpgroup_attention_shape<X>(data) : AttentionKernelShape{};
}

template <class Exec, class X>
void AttentionOnWarpgroups<Exec, X>::run(const Exec& exec, const std::string& label, const AttentionPlan& plan,
                                         const AttentionData<X>& data) {
  if constexpr (!is_compiled_for_warpgroups) {
    throw std::logic_error(label + ": not compiled");
  } else {
    launch_attention_on_warpgroups<X>(exec, label, plan, data);
  }
}

template struct AttentionOnWarpgroups<Kokkos::DefaultExecutionSpace, half_t>;
template struct AttentionOnWarpgroups<Kokkos::DefaultExecutionSpace, bhalf_t>;

template <class Exec, class X>
AttentionKernelShape AttentionGradientsOnWarpgroups<Exec, X>::shape(const AttentionGradientData<X>& data,
                                                                    bool of_keys) {
  if (!is_compiled_for_warpgroups || std::max(data.shape.dim, data.shape.value_dim) > 128) return {};
  AttentionKernelShape shape;
  with_gradients_in_warpgroups(data, [&]<int dims, bool has_elements>() {
    shape = of_keys ? gradient_shape_of<AttentionKeyGradientsInWarpgroups<X, dims, has_elements>>()
                    : gradient_shape_of<AttentionQueryGradientsInWarpgroups<X, dims, has_elements>>();
  });
  return shape;
}

template <class Exec, class X>
void AttentionGradientsOnWarpgroups<Exec, X>::run(const Exec& exec, const char* function,
                                                  const AttentionPlan& of_queries, const AttentionPlan& of_keys,
                                                  const AttentionGradientData<X>& data) {
  if constexpr (!is_compiled_for_warpgroups) {
    throw std::logic_error(std::string(function) + ": not compiled");
  } else {
    with_gradients_in_warpgroups(data, [&]<int dims, bool has_elements>() {
      launch_gradients_on_warpgroups<dims, has_elements>(exec, function, of_queries, of_keys, data);
    });
  }
}

template struct AttentionGradientsOnWarpgroups<Kokkos::DefaultExecutionSpace, half_t>;
template struct AttentionGradientsOnWarpgroups<Kokkos::DefaultExecutionSpace, bhalf_t>;

}  // namespace KokkosNN::Impl
