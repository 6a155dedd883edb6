// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_PACK_HPP
#define KOKKOSNN_PACK_HPP

#include <Kokkos_Core.hpp>

#include <cstddef>

/// Before a loop over a thread's packs: a GPU's compiler must unroll it, or the packs are not in registers. GCC does
/// not know the pragma, and needs none.
#if defined(__CUDACC__) || defined(__HIPCC__) || defined(__clang__)
#define KOKKOSNN_IMPL_UNROLL _Pragma("unroll")
#define KOKKOSNN_IMPL_NO_UNROLL _Pragma("unroll 1")
#else
#define KOKKOSNN_IMPL_UNROLL
#define KOKKOSNN_IMPL_NO_UNROLL
#endif

namespace KokkosNN {

/// N neighbouring elements of a row, which a thread loads, computes and stores together. N is a power of two; the pack
/// is aligned like one memory access of the GPU (16 bytes at most), so that a copy of it is one instruction there.
template <class T, int N>
struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) Pack {
  using value_type          = T;
  static constexpr int size = N;

  KOKKOS_FUNCTION T& operator[](int i) { return value[i]; }
  KOKKOS_FUNCTION const T& operator[](int i) const { return value[i]; }

  T value[N];
};

}  // namespace KokkosNN

#endif  // KOKKOSNN_PACK_HPP
