// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_FIRST_INDEX_HPP
#define KOKKOSNN_IMPL_GPU_FIRST_INDEX_HPP

#include <KokkosNN/impl/backend.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <string>

// Search for the first index with a property: the checks of labels and offsets use it. It does without
// Kokkos::parallel_reduce, which on HIP may return a wrong value of up to 16 bytes (Kokkos issue 9511, open in 5.0.2):
// a check must not overlook anything.

namespace KokkosNN::Impl {

template <class Predicate>
struct LowerToIndex {
  Predicate holds;
  std::int64_t* first;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    if (holds(i)) Kokkos::atomic_min(first, i);
  }
};

/// Returns the least i in [0, n) for which holds(i), else n. Waits for `exec`.
template <class ExecutionSpace, class Predicate>
std::int64_t first_index(const ExecutionSpace& exec, const std::string& label, std::int64_t n, const Predicate& holds) {
  require_launching_thread(exec, label);
  using Range         = Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>;
  using OnHost        = Kokkos::View<std::int64_t, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  std::int64_t result = n;
  const Kokkos::View<std::int64_t, ExecutionSpace> first(
      Kokkos::view_alloc(exec, Kokkos::WithoutInitializing, "KokkosNN::first_index"));
  Kokkos::deep_copy(exec, first, OnHost(&result));
  Kokkos::parallel_for(label, Range(exec, 0, n), LowerToIndex<Predicate>{holds, first.data()});
  Kokkos::deep_copy(exec, OnHost(&result), first);
  exec.fence(label);
  return result;
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_FIRST_INDEX_HPP
