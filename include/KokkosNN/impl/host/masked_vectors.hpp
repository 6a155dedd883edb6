// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_HOST_MASKED_VECTORS_HPP
#define KOKKOSNN_IMPL_HOST_MASKED_VECTORS_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/host/vector_memory.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

// Vectors of what a mask has beside a row's elements: a bias, booleans, or the logits of a gradient, at any distance.

namespace KokkosNN::Impl {

/// n elements at one distance, in the first lanes of a vector; the others are 0.
template <class A, class T>
KOKKOS_FORCEINLINE_FUNCTION Vector<A> load_strided(const T* from, std::int64_t stride, int n) {
  if constexpr (std::is_same_v<accumulator_t<T>, A>) {
    if (stride == 1) return load_up_to(from, n);
  } else if constexpr (has_host_vectors && std::is_same_v<A, double> && std::is_same_v<T, float>) {
    if (stride == 1 && n == simd_width<A>) return load_in_double(from);
  }
  A each[simd_width<A>] = {};
  for (int l = 0; l < n; ++l) each[l] = static_cast<A>(from[l * stride]);
  return load_vector(each);
}

/// n bytes at one distance, each in its lane's bits; the others are 0.
template <class A>
KOKKOS_FORCEINLINE_FUNCTION BitsOf<Vector<A>> load_bytes_up_to(const std::uint8_t* from, std::int64_t stride, int n) {
  if (stride == 1 && n == simd_width<A>) return load_bytes<A>(from);
  std::uint8_t each[simd_width<A>] = {};
  for (int l = 0; l < n; ++l) each[l] = from[l * stride];
  return load_bytes<A>(each);
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_HOST_MASKED_VECTORS_HPP
