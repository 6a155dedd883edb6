// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_DEVICE_PACK_ARITHMETIC_HPP
#define KOKKOSNN_IMPL_GPU_DEVICE_PACK_ARITHMETIC_HPP

#include <KokkosNN/impl/gpu/device/barriers.hpp>
#include <KokkosNN/impl/gpu/device/exchange.hpp>
#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

// Arithmetic on packs: loops that a GPU compiler unrolls into registers and a host compiler vectorises.

namespace KokkosNN::Impl {

template <class A, int V>
KOKKOS_INLINE_FUNCTION A largest(const Pack<A, V>& pack) {
  if constexpr (V == 1) {
    return pack[0];
  } else {
    Pack<A, V / 2> half;
    for (int v = 0; v < V / 2; ++v) half[v] = max_ignoring_nan(pack[v], pack[v + V / 2]);
    return largest(half);
  }
}

/// Adds the halves of a pack until `lanes` elements are left.
template <int lanes, class A, int V>
KOKKOS_INLINE_FUNCTION Pack<A, lanes> folded(const Pack<A, V>& pack) {
  if constexpr (V == lanes) {
    return pack;
  } else {
    Pack<A, V / 2> half;
    for (int v = 0; v < V / 2; ++v) half[v] = pack[v] + pack[v + V / 2];
    return folded<lanes>(half);
  }
}

template <class A, int V>
KOKKOS_INLINE_FUNCTION Pack<A, V> filled(A value) {
  Pack<A, V> pack;
  for (int v = 0; v < V; ++v) pack[v] = value;
  return pack;
}

/// Converts a pack to A. Packs are passed by reference: a host copies a pack through narrower moves than the loops
/// around it, which stalls them.
template <class A, class T, int V>
KOKKOS_INLINE_FUNCTION void widen(Pack<A, V>& wide, const Pack<T, V>& raw) {
  for (int v = 0; v < V; ++v) wide[v] = static_cast<A>(raw[v]);
}

/// Multiplies packs by the sign of the scale: one branch for all, as the sign hardly ever is negative. `opaque` keeps
/// the branch from becoming a selection an element.
template <class A, int V, int K>
KOKKOS_INLINE_FUNCTION void apply_sign(Pack<A, V> (&pack)[K], A sign) {
  if (sign > A(0)) return;
  KOKKOSNN_IMPL_UNROLL
  for (int k = 0; k < K; ++k) {
    for (int v = 0; v < V; ++v) pack[k][v] = -opaque(pack[k][v]);
  }
}

template <class A, int V>
KOKKOS_INLINE_FUNCTION void subtract(Pack<A, V>& pack, A value) {
  for (int v = 0; v < V; ++v) pack[v] -= value;
}

/// Elements relative to +inf are bounded by 0, where a branch an element would be spilled: by nvcc. LLVM on HIP spills
/// the bound instead.
#if defined(KOKKOS_ENABLE_HIP)
inline constexpr bool bounds_infinite_rows = false;
#else
inline constexpr bool bounds_infinite_rows = true;
#endif

template <class A, int V>
KOKKOS_INLINE_FUNCTION void make_zeros_of_numbers(Pack<A, V>& pack) {
  for (int v = 0; v < V; ++v) pack[v] = zero_of_number(pack[v]);
}

template <class A, int V>
KOKKOS_INLINE_FUNCTION void make_zeros_of_positives(Pack<A, V>& pack) {
  for (int v = 0; v < V; ++v) pack[v] = at_most(pack[v], A(0));
}

template <class A, int V>
KOKKOS_INLINE_FUNCTION bool has_nan(const Pack<A, V>& pack) {
  bool any = false;
  for (int v = 0; v < V; ++v) any |= pack[v] != pack[v];
  return any;
}

/// Sets maxima to the larger of maxima and pack, element by element.
template <class A, int V>
KOKKOS_INLINE_FUNCTION void raise_maxima(Pack<A, V>& maxima, const Pack<A, V>& pack) {
  for (int v = 0; v < V; ++v) maxima[v] = max_ignoring_nan(maxima[v], pack[v]);
}

/// Applies an epilogue to each element, and converts to the output's type.
template <class T, class A, int V, class F>
KOKKOS_INLINE_FUNCTION Pack<T, V> narrowed(const Pack<A, V>& pack, const F& epilogue) {
  Pack<T, V> result;
  for (int v = 0; v < V; ++v) result[v] = static_cast<T>(epilogue(pack[v]));
  return result;
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_DEVICE_PACK_ARITHMETIC_HPP
