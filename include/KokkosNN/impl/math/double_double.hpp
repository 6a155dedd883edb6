// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_MATH_DOUBLE_DOUBLE_HPP
#define KOKKOSNN_IMPL_MATH_DOUBLE_DOUBLE_HPP

#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

// A number as the sum of two, of which the second is what rounding the first has lost.

namespace KokkosNN::Impl {

/// A number as high + low, for sums in which no rounding must be seen.
template <class T>
struct DoubleDouble {
  T high{};
  T low{};

  /// Knuth's two-sum; bitwise commutative.
  KOKKOS_INLINE_FUNCTION friend DoubleDouble operator+(const DoubleDouble& a, const DoubleDouble& b) {
    const T s     = a.high + b.high;
    const T back  = s - a.high;
    const T error = (a.high - (s - back)) + (b.high - back);
    return {s, error + (a.low + b.low)};
  }
  /// By a power of two.
  KOKKOS_INLINE_FUNCTION friend DoubleDouble operator*(const DoubleDouble& a, T power) {
    return {a.high * power, a.low * power};
  }
  KOKKOS_INLINE_FUNCTION explicit operator T() const { return high + low; }
};

/// A wide sum as its nearest A and what that lacks.
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
