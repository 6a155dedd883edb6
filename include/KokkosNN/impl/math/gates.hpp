// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_MATH_GATES_HPP
#define KOKKOSNN_IMPL_MATH_GATES_HPP

#include <KokkosNN/impl/host/vector.hpp>
#include <KokkosNN/impl/math/exp.hpp>

#include <Kokkos_Core.hpp>

#include <type_traits>

// The gated activations x F(x), F a distribution function that is symmetric about 0: F(x) = 1 - F(-x). With h = |x| and
// the tail p = F(-h), which is computed to a relative accuracy, x F(x) = max(x, 0) - h p for both signs of x: where the
// result is small nothing cancels, and where it is x nothing is lost. Formulas are templates on a number or a host's
// vector of numbers.

namespace KokkosNN::Impl {

/// |x|.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION T magnitude(T x) {
  using A = ScalarOf<T>;
  if constexpr (std::is_same_v<T, A>) {
    return Kokkos::abs(x);
  } else {
    constexpr auto sign = typename VectorTraits<A>::bits(1) << (8 * sizeof(A) - 1);
    return Kokkos::bit_cast<T>(Kokkos::bit_cast<BitsOf<T>>(x) & splat<BitsOf<T>>(~sign));
  }
}

/// Tail of a distribution at h, and its density there.
template <class T>
struct TailValues {
  T tail;
  T density;
};

/// exp(-scale x) for x >= 0, 0 where that is below the normal range.
template <class A, ExpAccuracy accuracy>
struct DecayingExp {
  ScaledExp<A, accuracy> exp;
  ExpReference<A> zero;

  explicit DecayingExp(double scale) : exp(scale), zero(exp.at(A(0))) {}

  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION T operator()(T x) const {
    return exp.of_difference(-x, splat_reference<T>(zero));
  }
  /// exp(-scale (x + low)), |low| at most an ulp of x. Only results of full accuracy are worth it.
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION T operator()(T x, T low) const {
    const T e = (*this)(x);
    if constexpr (accuracy == ExpAccuracy::fast) return e;
    return multiply_add(e, splat<T>(-exp.scale()) * low, e);
  }
};

/// The logistic distribution, F(x) = 1 / (1 + exp(-x)): SiLU.
template <class A, ExpAccuracy accuracy>
struct LogisticTail {
  static constexpr A farthest = sizeof(A) == 8 ? A(1024) : A(128);  ///< the tail is 0 from there on

  DecayingExp<A, accuracy> decay{1.0};

  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION T operator()(T h) const {
    const T t = decay(h);
    return t * inverse_of_normal(splat<T>(A(1)) + t);
  }
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION TailValues<T> with_density(T h) const {
    const T t = decay(h), inverse = inverse_of_normal(splat<T>(A(1)) + t);
    const T tail = t * inverse;
    return {tail, tail * inverse};
  }
};

/// Normal distribution by the logistic one, F(x) = 1 / (1 + exp(-2 u)), u = sqrt(2 / pi) (x + 0.044715 x^3): GELU's
/// tanh form. The exponent is up to 88 (double: 710), so it has a second word.
template <class A, ExpAccuracy accuracy>
struct TanhTail {
  static constexpr A farthest    = 64;
  static constexpr double linear = 1.5957691216057307117597842397375;  ///< 2 sqrt(2 / pi)
  static constexpr double cubic  = 0.044715 * linear;
  /// Rounding errors of both as A, beside their own as doubles.
  static constexpr A linear_rest = A(linear - double(A(linear)) - 9.9693088091109203e-17);
  static constexpr A cubic_rest  = A(cubic - double(A(cubic)) - 6.1751499181553154e-19);

  DecayingExp<A, accuracy> decay{1.0};

  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION T operator()(T h) const {
    const T t = decay_at(h);
    return t * inverse_of_normal(splat<T>(A(1)) + t);
  }
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION TailValues<T> with_density(T h) const {
    const T t = decay_at(h), inverse = inverse_of_normal(splat<T>(A(1)) + t);
    const T tail  = t * inverse;
    const T slope = multiply_add(h * h, splat<T>(A(3 * cubic)), splat<T>(A(linear)));
    return {tail, tail * inverse * slope};
  }

 private:
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION T decay_at(T h) const {
    const T square = h * h;
    if constexpr (accuracy == ExpAccuracy::fast)
      return decay(h * multiply_add(splat<T>(A(cubic)), square, splat<T>(A(linear))));
    // The sum's error (Knuth's two-sum), the product's, and those of the constants.
    const T third      = rounded_product(splat<T>(A(cubic)), square);
    const T slope      = third + splat<T>(A(linear));
    const T part       = slope - third;
    const T sum_error  = (third - (slope - part)) + (splat<T>(A(linear)) - part);
    const T square_low = product_error(h, h, square);
    const T third_low  = product_error(splat<T>(A(cubic)), square, third) +
                         multiply_add(splat<T>(A(cubic)), square_low, splat<T>(cubic_rest) * square);
    const T slope_low  = sum_error + (third_low + splat<T>(linear_rest));
    const T product    = h * slope;
    return decay(product, product_error(h, slope, product) + h * slope_low);
  }
};

/// Polynomials for exp(h^2 / 2) F(-h) = t P(t - center), t = 1 / (1 + shift h), F the normal distribution: least
/// relative errors (behind each series), found by Remez' exchange for h up to 14 (double: 39), where exp(-h^2 / 2)
/// leaves the normal range.
template <class A, ExpAccuracy accuracy>
struct NormalSeries;

template <class A>
struct NormalSeries<A, ExpAccuracy::fast> {
  static constexpr A shift  = A(0.25);
  static constexpr A center = A(0.59375);
  // The bound is written, as clang 14 reads no array of a partial specialisation without one.
  static constexpr A series[5] = {A(0x1.c4ad56p-3), A(0x1.8c7308p-2), A(0x1.0354cap-1), A(0x1.e13b8ep-2),
                                  A(0x1.ecf046p-3)};  // 2^-14.2
};

template <>
struct NormalSeries<float, ExpAccuracy::full> {
  static constexpr float shift    = 0.3f;
  static constexpr float center   = 0.59375f;
  static constexpr float series[] = {0x1.0633b8p-2f,  0x1.999756p-2f,  0x1.a35846p-2f,  0x1.ce29e4p-3f,
                                     -0x1.67c732p-7f, -0x1.739cfcp-4f, -0x1.36cf88p-7f, 0x1.695a4ep-5f,
                                     0x1.23cc04p-9f,  -0x1.51a926p-6f};  // 2^-28
};

template <>
struct NormalSeries<double, ExpAccuracy::full> {
  static constexpr double shift    = 0.1875;
  static constexpr double center   = 0.5625;
  static constexpr double series[] = {
      0x1.4c9b5847dfc89p-3,  0x1.3deccb680b845p-2,  0x1.03389cc977dedp-1,  0x1.66694e37ce314p-1,
      0x1.9df9d0a7691f0p-1,  0x1.83aa15de95333p-1,  0x1.140d77811378bp-1,  0x1.f1fe83a4094ddp-3,
      0x1.a163d32d4460ap-8,  -0x1.545d266504978p-4, -0x1.907139cb77c76p-5, 0x1.75c934a7cbcadp-7,
      0x1.abae5a1ac44b5p-6,  0x1.94d939cb313b8p-9,  -0x1.88dfcfdf7acbcp-7, -0x1.f9ea01ffcb794p-9,
      0x1.7fc922497e81fp-8,  0x1.4e2ca2f43ef77p-9,  -0x1.a0d20155c463ep-9, -0x1.5e931b4bb27d9p-10,
      0x1.bcdf6fd6294c1p-10, 0x1.dc58abed4ef66p-12, -0x1.3905d6fe8bd35p-11};  // 2^-58.4
};

/// The normal distribution: GELU.
template <class A, ExpAccuracy accuracy>
struct NormalTail {
  using Series                = NormalSeries<A, accuracy>;
  static constexpr A farthest = 64;

  DecayingExp<A, accuracy> decay{0.5};

  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION T operator()(T h) const {
    return bell(h) * ratio(h);
  }
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION TailValues<T> with_density(T h) const {
    constexpr double inverse_root_of_two_pi = 0.39894228040143267793994605993438;
    const T e                               = bell(h);
    return {e * ratio(h), e * splat<T>(A(inverse_root_of_two_pi))};
  }

 private:
  /// exp(-h^2 / 2), of the square in two words.
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION T bell(T h) const {
    const T square = h * h;
    return decay(square, product_error(h, h, square));
  }
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION static T ratio(T h) {
    const T t = inverse_of_normal(multiply_add(h, splat<T>(Series::shift), splat<T>(A(1))));
    return t * sum_from<0>(t - splat<T>(Series::center));
  }
  template <int i, class T>
  KOKKOS_FORCEINLINE_FUNCTION static T sum_from(T t) {
    constexpr A coefficient = Series::series[i];
    if constexpr (i + 1 == int(sizeof(Series::series) / sizeof(A))) {
      return splat<T>(coefficient);
    } else {
      return multiply_add(t, sum_from<i + 1>(t), splat<T>(coefficient));
    }
  }
};

/// x F(x) and its derivative F(x) + x F'(x).
template <class T>
struct GateValues {
  T value;
  T derivative;
};

/// The activation x F(x) of a distribution. Beyond `farthest` the tail is 0, whatever infinite x makes of h p.
template <class Tail>
struct Gate {
  Tail tail;

  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION T operator()(T x) const {
    const T h = bounded(x);
    return value(x, h, tail(h));
  }
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION GateValues<T> with_derivative(T x) const {
    using A                  = ScalarOf<T>;
    const T h                = bounded(x);
    const TailValues<T> at_h = tail.with_density(h);
    const T step             = h * at_h.density;
    const T derivative       = x >= splat<T>(A(0)) ? (splat<T>(A(1)) - at_h.tail) + step : at_h.tail - step;
    return {value(x, h, at_h.tail), derivative};
  }

 private:
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION static T bounded(T x) {
    return at_most(magnitude(x), splat<T>(ScalarOf<T>(Tail::farthest)));
  }
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION static T value(T x, T h, T p) {
    return multiply_add(-h, p, at_least(x, splat<T>(ScalarOf<T>(0))));
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_MATH_GATES_HPP
