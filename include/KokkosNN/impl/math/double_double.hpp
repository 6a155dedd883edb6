// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_MATH_DOUBLE_DOUBLE_HPP
#define KOKKOSNN_IMPL_MATH_DOUBLE_DOUBLE_HPP

#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

// Double-double numbers: a high word, and a low word with the rounding error of the high one.

namespace KokkosNN::Impl {

/// Number high + low, for sums whose roundings must not be seen.
template <class T>
struct DoubleDouble {
  T high{};
  T low{};

  /// Adds by Knuth's two-sum; bitwise commutative.
  KOKKOS_INLINE_FUNCTION friend DoubleDouble operator+(const DoubleDouble& a, const DoubleDouble& b) {
    const T s     = a.high + b.high;
    const T back  = s - a.high;
    const T error = (a.high - (s - back)) + (b.high - back);
    return {s, error + (a.low + b.low)};
  }
  /// Multiplies by a power of two.
  KOKKOS_INLINE_FUNCTION friend DoubleDouble operator*(const DoubleDouble& a, T power) {
    return {a.high * power, a.low * power};
  }
  KOKKOS_INLINE_FUNCTION explicit operator T() const { return high + low; }
};

/// Splits a wide sum into the nearest A and the rest.
template <class A, class W>
KOKKOS_INLINE_FUNCTION DoubleDouble<A> split_sum(W sum) {
  const A high = static_cast<A>(sum);
  return {high, static_cast<A>(sum - W(high))};
}
template <class A>
KOKKOS_INLINE_FUNCTION DoubleDouble<A> split_sum(const DoubleDouble<A>& sum) {
  const A high = sum.high + sum.low;
  return {high, sum.low - (high - sum.high)};
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_MATH_DOUBLE_DOUBLE_HPP
