// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_PRIMITIVES_EXP_HPP
#define KOKKOSNN_IMPL_PRIMITIVES_EXP_HPP

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

// exp(scale (x - max)) in the accuracy that the result's type can hold. These functions rely on IEEE arithmetic: code
// that instantiates them must not be compiled with -ffast-math.

namespace KokkosNN::Impl {

/// How good an exponential must be: `full` within 2 ulp of the accumulator type, `fast` enough to round to 16 bits.
enum class ExpAccuracy { full, fast };

/// a * b + c rounded once, at the speed of the machine: without a fused instruction std::fma is a slow library call,
/// and for float the exact product in double does the same.
KOKKOS_INLINE_FUNCTION float fused_multiply_add(float a, float b, float c) {
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__) || defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return Kokkos::fma(a, b, c);
#else
  return static_cast<float>(static_cast<double>(a) * b + c);
#endif
}
KOKKOS_INLINE_FUNCTION double fused_multiply_add(double a, double b, double c) { return Kokkos::fma(a, b, c); }

/// Constants of 2^t = 2^n 2^f, |f| <= 1/2.
template <class A>
struct Exp2Constants;

template <>
struct Exp2Constants<float> {
  using bits                         = std::uint32_t;
  static constexpr int mantissa_bits = 23;
  static constexpr float round_magic = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer, kept in the low bits
  static constexpr bits bias         = 127;
  static constexpr float lowest      = -127.0f;  // from here on the result is flushed to zero
  static constexpr int degree        = 7;        // remainder 0.35^8 / 8! = 5e-9
  static constexpr int fast_degree   = 4;        // remainder 0.35^5 / 5! = 4e-5, a twelfth of an f16 ulp
};

template <>
struct Exp2Constants<double> {
  using bits                          = std::uint64_t;
  static constexpr int mantissa_bits  = 52;
  static constexpr double round_magic = 6755399441055744.0;  // 1.5 * 2^52
  static constexpr bits bias          = 1023;
  static constexpr double lowest      = -1023.0;
  static constexpr int degree         = 13;  // remainder 0.35^14 / 14! = 5e-18
  static constexpr int fast_degree    = 4;
};

template <class A>
inline constexpr A log_of_2 = A(0.693147180559945309417232121458176568L);

/// (log 2)^i / i!, the Taylor coefficients of 2^f.
template <class A>
KOKKOS_INLINE_FUNCTION constexpr A exp2_coefficient(int i) {
  double c = 1;
  for (int k = 1; k <= i; ++k) c *= 0.693147180559945309417232121458176568 / k;
  return A(c);
}

/// Horner's scheme for sum of coefficient(first + i) f^i, up to coefficient(degree), unrolled at compile time.
template <class A, int degree, int first>
KOKKOS_INLINE_FUNCTION A exp2_series(A f) {
  constexpr A coefficient = exp2_coefficient<A>(first);
  if constexpr (first == degree) {
    return coefficient;
  } else {
    return fused_multiply_add(f, exp2_series<A, degree, first + 1>(f), coefficient);
  }
}

/// log 2 less its rounding to A.
template <class A>
inline constexpr A log_of_2_low = A(0.693147180559945309417232121458176568L - static_cast<long double>(log_of_2<A>));

/// 2^(t + low) by argument reduction and a polynomial, without a branch, so that compilers vectorise loops over it.
/// Within 0.6 ulp for a full degree. Results below the normal range are 0; NaN stays NaN; t is at most a few hundred.
template <class A, int degree>
KOKKOS_INLINE_FUNCTION A exp2_polynomial(A t, A low) {
  using C            = Exp2Constants<A>;
  using bits         = typename C::bits;
  const bool is_tiny = t < C::lowest;  // false for NaN
  t                  = is_tiny ? C::lowest : t;
  low                = is_tiny ? A(0) : low;
  const A shifted    = t + C::round_magic;
  const A f          = t - (shifted - C::round_magic);
  const bits power   = (Kokkos::bit_cast<bits>(shifted) + C::bias) << C::mantissa_bits;
  const A scale      = Kokkos::bit_cast<A>(power);
  if constexpr (degree < C::degree) return fused_multiply_add(f, exp2_series<A, degree, 1>(f), A(1)) * scale;

  // 1 + f log 2 in two words, and all that is small in the low one: only the last sum's rounding is seen.
  const A linear     = f * log_of_2<A>;
  const A head       = A(1) + linear;
  const A linear_low = fused_multiply_add(f, log_of_2_low<A>, fused_multiply_add(f, log_of_2<A>, -linear));
  const A head_low   = (linear - (head - A(1))) + linear_low;
  const A rest       = fused_multiply_add(f * f, exp2_series<A, degree, 2>(f), head_low);
  return (head + fused_multiply_add(head + rest, low * log_of_2<A>, rest)) * scale;
}

/// 2^t within 2 ulp, and flushed to 0 below the normal range.
KOKKOS_INLINE_FUNCTION float exp2_native(float t) {
#if defined(__CUDA_ARCH__)
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(t));
  return result;
#elif defined(__HIP_DEVICE_COMPILE__)
  return __builtin_amdgcn_exp2f(t);
#else
  return exp2_polynomial<float, Exp2Constants<float>::degree>(t, 0.0f);
#endif
}
KOKKOS_INLINE_FUNCTION double exp2_native(double t) { return Kokkos::exp2(t); }

/// 2^t to a relative 4e-5.
template <class A>
KOKKOS_INLINE_FUNCTION A exp2_fast(A t) {
  if constexpr (std::is_same_v<A, float>) {
    KOKKOS_IF_ON_DEVICE((return exp2_native(t);))
  }
  KOKKOS_IF_ON_HOST((return exp2_polynomial<A, Exp2Constants<A>::fast_degree>(t, A(0));))
  return exp2_polynomial<A, Exp2Constants<A>::fast_degree>(t, A(0));
}

/// 2^(t + low), |low| much smaller than 1; where 2^t is 0, low may be anything.
template <class A>
KOKKOS_INLINE_FUNCTION A exp2_sum(A t, A low) {
  KOKKOS_IF_ON_DEVICE((
      // The minimum drops the NaN or +inf that low is where t is -inf; a NaN t stays one.
      const A e = exp2_native(t); return fused_multiply_add(e, Kokkos::fmin(low, A(1)) * log_of_2<A>, e);))
  KOKKOS_IF_ON_HOST((return exp2_polynomial<A, Exp2Constants<A>::degree>(t, low);))
}

/// How far below its maximum a row's reference may lie, in units of 1 / scale, as a power of two. A softmax takes a
/// wide range, in which most warps of a row find the same reference; a logarithm of the sum would lose digits in it.
inline constexpr int log2_reference_range_softmax = 3;
inline constexpr int log2_reference_range_log     = -1;

/// exp(scale (x - reference)), scale > 0. -inf gives 0 unless the reference is -inf; NaN gives NaN.
///
/// x - reference is rounded, and the exponential turns that absolute error into a relative one, up to 32 ulp where the
/// difference is near -87. So `full` carries the rounding errors of the difference and of the products in a second
/// word. The error of the difference is cheap to get for a reference of few digits: d + reference is exact then. That
/// is why references are maxima rounded down to a multiple of a granule, a power of two.
template <class A, ExpAccuracy accuracy>
struct ScaledExp {
  A scale;       ///< for log_softmax and the log-sum-exp
  A scale2;      ///< scale * log2(e), high word
  A scale2_low;  ///< low word
  A granule;     ///< of references
  A inverse_granule;

  ScaledExp(double s, int log2_reference_range) : scale(A(s)) {
    const long double product = static_cast<long double>(s) * 1.44269504088896340735992468100189214L;
    scale2                    = static_cast<A>(product);
    scale2_low                = static_cast<A>(product - static_cast<long double>(scale2));
    // Bounded so that neither the granule nor its inverse leaves the range.
    const int exponent = std::clamp(log2_reference_range - std::ilogb(s), -100, 100);
    granule            = std::ldexp(A(1), exponent);
    inverse_granule    = std::ldexp(A(1), -exponent);
  }

  /// max, rounded down to a multiple of the granule; infinities stay.
  KOKKOS_INLINE_FUNCTION A reference_of(A max) const {
    const A magic    = Exp2Constants<A>::round_magic;
    const A limit    = A(0.25) * magic;  // larger quotients are multiples of the granule but for a digit or two
    const A quotient = max * inverse_granule;
    const A nearest  = (quotient + magic) - magic;
    const A rounded  = (nearest > quotient ? nearest - A(1) : nearest) * granule;
    return quotient < limit && quotient > -limit ? rounded : max;
  }

  KOKKOS_INLINE_FUNCTION A operator()(A x, A reference) const {
    const A d = x - reference;
    if constexpr (accuracy == ExpAccuracy::fast) return exp2_fast(d * scale2);
    const A t = d * scale2;
    return exp2_sum(t, low_word(x, reference, d, t));
  }

  /// The same as near as the backend can, for what a whole row is multiplied with: float's native exponential is off by
  /// up to 1.4 ulp, which matters when it meets itself in numerator and denominator.
  KOKKOS_INLINE_FUNCTION A precise(A x, A reference) const {
    if constexpr (accuracy == ExpAccuracy::fast || !std::is_same_v<A, float>) return (*this)(x, reference);
    const A d = x - reference;
    const A t = d * scale2;
    return exp2_polynomial<A, Exp2Constants<A>::degree>(t, low_word(x, reference, d, t));
  }

  /// `precise` as a function object.
  struct Precise {
    const ScaledExp& exp;
    KOKKOS_INLINE_FUNCTION A operator()(A x, A reference) const { return exp.precise(x, reference); }
  };
  KOKKOS_INLINE_FUNCTION Precise precisely() const { return {*this}; }

  /// What a sum of exponentials lacks because that of its largest term is not precise; nothing where it is.
  KOKKOS_INLINE_FUNCTION A correction([[maybe_unused]] A max, [[maybe_unused]] A reference) const {
    if constexpr (accuracy == ExpAccuracy::full && std::is_same_v<A, float>) {
      KOKKOS_IF_ON_DEVICE((const A infinity = Kokkos::Experimental::infinity_v<A>; if (max > -infinity && max < infinity) {
        return precise(max, reference) - (*this)(max, reference);
      }))
    }
    return A(0);
  }

  /// exp(scale (x - reference)) / prescale for a factor of a whole row, within 1 ulp where A is float. Far below the
  /// reference prescale is a small power of two, so that the factor does not leave the range before it meets its row.
  KOKKOS_INLINE_FUNCTION A factor(A x, A reference, A& prescale) const {
    constexpr A far_below = -64;
    const A d             = x - reference;
    const A t             = d * scale2;
    const A low           = low_word(x, reference, d, t);
    const bool is_far     = t < far_below;
    prescale              = is_far ? A(1) / A(1ull << 32) / A(1ull << 32) : A(1);
    const A shifted       = is_far ? t - far_below : t;
    if constexpr (std::is_same_v<A, float>) {
      return exp2_polynomial<A, Exp2Constants<A>::degree>(shifted, low);
    } else {
      return exp2_sum(shifted, low);
    }
  }

 private:
  /// What t lacks of scale log2(e) (x - reference).
  KOKKOS_INLINE_FUNCTION A low_word(A x, A reference, A d, A t) const {
    const A error = x - (d + reference);
    return fused_multiply_add(error, scale2, fused_multiply_add(d, scale2_low, fused_multiply_add(d, scale2, -t)));
  }
};

/// The accuracy that a result of type Y deserves.
template <class Y>
inline constexpr ExpAccuracy exp_accuracy_for = sizeof(Y) < sizeof(float) ? ExpAccuracy::fast : ExpAccuracy::full;

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_PRIMITIVES_EXP_HPP
