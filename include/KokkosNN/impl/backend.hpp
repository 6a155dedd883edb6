// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_BACKEND_HPP
#define KOKKOSNN_IMPL_BACKEND_HPP

#include <KokkosNN/export.hpp>
#include <KokkosNN/vocabulary.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <string_view>
#include <type_traits>

// Execution spaces as kernels and launches tell them apart.

namespace KokkosNN::Impl {

/// Throws std::invalid_argument for a call on Kokkos::Threads by another thread than the one that may.
[[noreturn]] KOKKOSNN_EXPORT void refuse_launching_thread(std::string_view call);

/// The one switch over backends: where code for an execution space runs.
template <class ExecutionSpace>
constexpr Backend backend_of() {
#if defined(KOKKOS_ENABLE_CUDA)
  if constexpr (std::is_same_v<ExecutionSpace, Kokkos::Cuda>) return Backend::cuda;
#endif
#if defined(KOKKOS_ENABLE_HIP)
  if constexpr (std::is_same_v<ExecutionSpace, Kokkos::HIP>) return Backend::hip;
#endif
  return Backend::host;
}

/// True if CUDA kernels are compiled for devices with launch attributes; otherwise Kokkos launches them.
#if defined(KOKKOS_ARCH_HOPPER90) || defined(KOKKOS_ARCH_BLACKWELL100) || defined(KOKKOS_ARCH_BLACKWELL120)
inline constexpr bool has_launch_attributes = true;
#else
inline constexpr bool has_launch_attributes = false;
#endif

/// False if the environment says KOKKOSNN_NATIVE_LAUNCH=0: kernels are then launched without attributes.
KOKKOSNN_EXPORT bool uses_launch_attributes();

/// Threads that kernels run on: on a host those of the instance, also where its caller is one of several threads of an
/// OpenMP region, whose number Kokkos calls the concurrency of all instances then.
template <class ExecutionSpace>
int threads_of([[maybe_unused]] const ExecutionSpace& exec) {
#if defined(KOKKOS_ENABLE_OPENMP)
  if constexpr (std::is_same_v<ExecutionSpace, Kokkos::OpenMP>) {
    return std::max(1, exec.impl_internal_space_instance()->thread_pool_size());
  }
#endif
  return std::max(1, int(exec.concurrency()));
}

/// Throws where this thread must launch nothing: Kokkos::Threads works for the thread that initialised Kokkos, and
/// finds another one out when that has already disturbed the kernel that runs.
template <class ExecutionSpace>
void require_launching_thread([[maybe_unused]] const ExecutionSpace& exec, [[maybe_unused]] std::string_view call) {
#if defined(KOKKOS_ENABLE_THREADS)
  if constexpr (std::is_same_v<ExecutionSpace, Kokkos::Threads>) {
    if (!Kokkos::Impl::ThreadsInternal::is_process()) refuse_launching_thread(call);
  }
#endif
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_BACKEND_HPP
