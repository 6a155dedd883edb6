// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_TEST_SUPPORT_LARGE_HPP
#define KOKKOSNN_TEST_SUPPORT_LARGE_HPP

#include <Kokkos_Core.hpp>

#include <cstddef>

namespace KokkosNNTest {

/// Free bytes of the GPU's memory; 0 where there is no GPU.
inline std::size_t free_gpu_memory() {
#if defined(KOKKOS_ENABLE_CUDA)
  std::size_t free_bytes = 0, total_bytes = 0;
  return cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess ? free_bytes : 0;
#elif defined(KOKKOS_ENABLE_HIP)
  std::size_t free_bytes = 0, total_bytes = 0;
  return hipMemGetInfo(&free_bytes, &total_bytes) == hipSuccess ? free_bytes : 0;
#else
  return 0;
#endif
}

/// True if outputs of more than 2^31 elements fit comfortably (and are quick to compute).
inline bool has_room_for_large_output() { return free_gpu_memory() > (std::size_t(32) << 30); }

}  // namespace KokkosNNTest

#endif  // KOKKOSNN_TEST_SUPPORT_LARGE_HPP
