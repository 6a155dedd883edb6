// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_MATH_TURNS_HPP
#define KOKKOSNN_IMPL_MATH_TURNS_HPP

#include <KokkosNN/export.hpp>
#include <KokkosNN/impl/host/vector.hpp>
#include <KokkosNN/impl/math/double_double.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

// Cosine and sine of position * frequency. Frequencies are in turns a position, so that whole turns are dropped by one
// exact subtraction; they are double-double numbers, as a large position magnifies their error. Formulas are templates
// on T, a number or a host's vector of numbers.

namespace KokkosNN::Impl {

/// Product of two double-double numbers, within 2^-102 of itself.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION DoubleDouble<T> product(const DoubleDouble<T>& a, const DoubleDouble<T>& b) {
  const T high  = a.high * b.high;
  const T error = product_error(a.high, b.high, high);
  const T low   = multiply_add(a.high, b.low, multiply_add(a.low, b.high, error));
  const T sum   = high + low;
  return {sum, low - (sum - high)};
}

/// Frequencies of the columns of a rotary embedding, first * ratio^column. As powers of the ratio are given, a column's
/// is a product of few numbers, and its neighbour's one product more.
struct RotaryFrequencies {
  static constexpr int most_bits = 30;

  DoubleDouble<double> first;
  DoubleDouble<double> power[most_bits];  ///< ratio^(2^k), as far as there are columns

  KOKKOS_INLINE_FUNCTION DoubleDouble<double> of(std::int64_t column) const {
    DoubleDouble<double> frequency = first;
    for (int k = 0; column >> k != 0; ++k) {
      if ((column >> k & 1) != 0) frequency = product(frequency, power[k]);
    }
    return frequency;
  }
  KOKKOS_INLINE_FUNCTION DoubleDouble<double> next(const DoubleDouble<double>& frequency) const {
    return product(frequency, power[0]);
  }
};

/// Frequencies position_scale theta^(-column / columns) / (2 pi), within 2^-80 of themselves.
KOKKOSNN_EXPORT RotaryFrequencies rotary_frequencies(double theta, double position_scale, std::int64_t columns);

/// An angle, reduced: rest + quarter / 4 turns, |rest| <= 1/8 but for its rounding. The quarter counts modulo 4.
template <class T>
struct ReducedAngle {
  T rest;
  BitsOf<T> quarter;
};

/// Reduces position * frequency, up to 2^48 turns. The rest is within 2^-53 of itself and 2^-104 turns a turn.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION ReducedAngle<T> reduced_angle(const DoubleDouble<T>& frequency, const T& position) {
  const T turns       = position * frequency.high;
  const T error       = multiply_add(position, frequency.low, product_error(position, frequency.high, turns));
  const T round_magic = splat<T>(0x1.8p52);  // pushes all digits behind the point out
  const T shifted     = multiply_add(splat<T>(4.0), turns, round_magic);
  const T quarters    = shifted - round_magic;
  return {multiply_add(splat<T>(-0.25), quarters, turns) + error, Kokkos::bit_cast<BitsOf<T>>(shifted)};
}

template <class T>
struct CosSin {
  T cos;
  T sin;
};

/// first + x (second + x (third + ...))
template <class T, class A>
KOKKOS_FORCEINLINE_FUNCTION T horner(const T&, A last) {
  return splat<T>(last);
}
template <class T, class A, class... More>
KOKKOS_FORCEINLINE_FUNCTION T horner(const T& x, A first, More... more) {
  return multiply_add(x, horner<T>(x, more...), splat<T>(first));
}

/// Taylor series by powers of r^2, x here, of (cos(2 pi r) - 1) / r^2 and of (sin(2 pi r) / r - 2 pi) / r^2. Up to
/// |r| = 1/8 the terms left out are below 2^-56, of float's series below 2^-28. 2 pi is in two words, so that its
/// rounding is not seen.
template <class A>
struct TurnSeries;
template <>
struct TurnSeries<double> {
  static constexpr double two_pi = 0x1.921fb54442d18p+2, two_pi_low = 0x1.1a62633145c07p-52;

  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION static T cos(const T& x) {
    return horner<T>(x, -0x1.3bd3cc9be45dep+4, 0x1.03c1f081b5ac4p+6, -0x1.55d3c7e3cbffap+6, 0x1.e1f506891babbp+5,
                     -0x1.a6d1f2a204a8cp+4, 0x1.f9d38a3763cc3p+2, -0x1.b6e24f44b128fp+0, 0x1.20c62c2f2d7f5p-2);
  }
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION static T sin(const T& x) {
    return horner<T>(x, -0x1.4abbce625be53p+5, 0x1.466bc6775aae2p+6, -0x1.32d2cce62bd86p+6, 0x1.50783487ee782p+5,
                     -0x1.e3074fde8871fp+3, 0x1.e8f434d018d63p+1, -0x1.6fadb9f155744p-1, 0x1.aaec32af93359p-4);
  }
};
template <>
struct TurnSeries<float> {
  static constexpr float two_pi = 0x1.921fb6p+2f, two_pi_low = -0x1.777a5cp-23f;

  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION static T cos(const T& x) {
    return horner<T>(x, -0x1.3bd3ccp+4f, 0x1.03c1f0p+6f, -0x1.55d3c8p+6f, 0x1.e1f506p+5f, -0x1.a6d1f2p+4f);
  }
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION static T sin(const T& x) {
    return horner<T>(x, -0x1.4abbcep+5f, 0x1.466bc6p+6f, -0x1.32d2ccp+6f, 0x1.507834p+5f);
  }
};

/// `a` where all bits of a lane of `chooses_a` are set, `b` where none is.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION T chosen(const BitsOf<T>& chooses_a, const T& a, const T& b) {
  using Bits = BitsOf<T>;
  return Kokkos::bit_cast<T>((Kokkos::bit_cast<Bits>(a) & chooses_a) | (Kokkos::bit_cast<Bits>(b) & ~chooses_a));
}

/// Cosine and sine of a reduced angle, each within 1.5 ulp of itself.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION CosSin<T> cos_sin(const ReducedAngle<T>& angle) {
  using A            = ScalarOf<T>;
  using Bits         = BitsOf<T>;
  using Series       = TurnSeries<A>;
  constexpr int top  = 8 * sizeof(A) - 2;  // moves a quarter's second bit to the sign
  const T r          = angle.rest;
  const T square     = r * r;
  const T cos        = multiply_add(square, Series::cos(square), splat<T>(A(1)));
  const T low        = multiply_add(square, Series::sin(square), splat<T>(Series::two_pi_low));
  const T sin        = product_with_words(r, splat<T>(Series::two_pi), low);
  const Bits quarter = angle.quarter, is_odd = Bits{} - (quarter & 1u);
  const Bits cos_sign = ((quarter + 1u) & 2u) << top, sin_sign = (quarter & 2u) << top;
  return {Kokkos::bit_cast<T>(Kokkos::bit_cast<Bits>(chosen<T>(is_odd, sin, cos)) ^ cos_sign),
          Kokkos::bit_cast<T>(Kokkos::bit_cast<Bits>(chosen<T>(is_odd, cos, sin)) ^ sin_sign)};
}

/// An angle that was reduced in double, as A computes with it.
template <class A>
KOKKOS_FORCEINLINE_FUNCTION ReducedAngle<A> rounded_angle(const ReducedAngle<double>& angle) {
  return {static_cast<A>(angle.rest), static_cast<BitsOf<A>>(angle.quarter)};
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_MATH_TURNS_HPP
