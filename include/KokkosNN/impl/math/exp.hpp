// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_MATH_EXP_HPP
#define KOKKOSNN_IMPL_MATH_EXP_HPP

#include <KokkosNN/impl/host/vector.hpp>
#include <KokkosNN/impl/math/double_double.hpp>

#include <Kokkos_Core.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

// exp(scale (x - max)) to the accuracy that the result's type can hold. These functions rely on IEEE arithmetic: code
// that instantiates them must not be compiled with -ffast-math.

namespace KokkosNN::Impl {

/// Accuracy of an exponential: `full` is within 2 ulp of the accumulator type, `fast` suffices to round to 16 bits.
enum class ExpAccuracy { full, fast };

/// Use of a sum of exponentials. `quotient`: results are divided by it. `logarithm`: only its logarithm is taken, so a
/// GPU adds its own 2^f: no numerator has the same error again. This is within 2.5 units of 2^-24 (all floats up to
/// 1/2, on an H200), adds 1.5e-7 to the logarithm, and takes a third fewer operations a row. `log_sum_exp`: as
/// `logarithm`, and if +inf is among the exponents the sum is a number unless a NaN is among them, too.
enum class SumFor { quotient, logarithm, log_sum_exp };

/// Constants of a type for 2^t = 2^n 2^f, n an integer and |f| <= 1/2. The coefficients are those of the polynomials 1
/// + f c1 + f^2 c2 + ... with the least relative error on |f| <= 0.508, 1 being fixed, found by Remez' exchange; the
/// error behind each series is the one after rounding. Up to |scale2 x| = limit a reference is a power of two.
/// Exponentials of `log_of_least` and `log_of_most` are normal numbers; the inverse of the second one is not.
template <class A>
struct Exp2Constants;

template <>
struct Exp2Constants<float> {
  using bits                           = std::uint32_t;
  static constexpr int mantissa_bits   = 23;
  static constexpr float round_magic   = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer, in the low bits
  static constexpr bits bias           = 127;
  static constexpr int full_terms      = 6;
  static constexpr float full_series[] = {0x1.62e432p-1f, 0x1.ebfbe6p-3f,  0x1.c6adaap-5f,  // 2^-27.5
                                          0x1.3b21d8p-7f, 0x1.5fbdd0p-10f, 0x1.4b85ccp-13f};
  static constexpr float full_limit    = 131072;  // the low word of scale2 x is then at most 2^-7
  static constexpr int fast_terms      = 4;
  static constexpr float fast_series[] = {0x1.62df7ap-1f, 0x1.ebf0fep-3f, 0x1.cab22ep-5f, 0x1.40bf8ap-7f};  // 2^-18
  static constexpr float fast_limit    = 2048;  // the error without a low word is then at most 2^-14
  static constexpr float log_of_least  = -87.0f;
  static constexpr float log_of_most   = 87.5f;
};

template <>
struct Exp2Constants<double> {
  using bits                            = std::uint64_t;
  static constexpr int mantissa_bits    = 52;
  static constexpr double round_magic   = 6755399441055744.0;  // 1.5 * 2^52
  static constexpr bits bias            = 1023;
  static constexpr int full_terms       = 12;
  static constexpr double full_series[] = {
      0x1.62e42fefa39efp-1,  0x1.ebfbdff82c58fp-3,  0x1.c6b08d704a0dap-5,  0x1.3b2ab6fba4eb0p-7,
      0x1.5d87fe78a0753p-10, 0x1.430912f856ed9p-13, 0x1.ffcbfc7e48295p-17, 0x1.62c022a45f56dp-20,
      0x1.b524c99d027aap-24, 0x1.e4cd7f97c3153p-28, 0x1.ea1f0f68874f0p-32, 0x1.c6f4f95961f1bp-36};  // 2^-55.5
  static constexpr double full_limit    = 70368744177664.0;                                         // 2^46
  static constexpr int fast_terms       = 4;
  static constexpr double fast_series[] = {0x1.62df7ap-1, 0x1.ebf0fep-3, 0x1.cab22ep-5, 0x1.40bf8ap-7};
  static constexpr double fast_limit    = 70368744177664.0;
  static constexpr double log_of_least  = -708.0;
  static constexpr double log_of_most   = 708.5;
};

/// Series of a type for 2^t = 2^(n + i/entries) 2^f, n and i integers, |f| <= 1/2/entries, beside a table of the
/// 2^(i/entries): found as those of Exp2Constants, on |f| <= 0.508/entries.
template <class A, int entries>
struct Exp2Series;

template <>
struct Exp2Series<float, 16> {
  static constexpr int full_terms      = 3;
  static constexpr float full_series[] = {0x1.62e430p-1f, 0x1.ec0016p-3f, 0x1.c6ac48p-5f};  // 2^-29
  static constexpr int fast_terms      = 2;
  static constexpr float fast_series[] = {0x1.62e9acp-1f, 0x1.ebfbd6p-3f};  // 2^-21
};

template <>
struct Exp2Series<float, 8> {
  static constexpr int full_terms      = 4;
  static constexpr float full_series[] = {0x1.62e430p-1f, 0x1.ebfbe0p-3f, 0x1.c6be98p-5f, 0x1.3b2698p-7f};  // 2^-30.7
  static constexpr int fast_terms      = 2;
  static constexpr float fast_series[] = {0x1.62fa10p-1f, 0x1.ebfb88p-3f};  // 2^-18
};

template <>
struct Exp2Series<double, 8> {
  static constexpr int full_terms       = 7;
  static constexpr double full_series[] = {0x1.62e42fefa39efp-1, 0x1.ebfbdff82c7cbp-3,  0x1.c6b08d70494d8p-5,
                                           0x1.3b2ab6ee7e4c4p-7, 0x1.5d87fea40228ep-10, 0x1.430e91b3ff7a4p-13,
                                           0x1.ffc4194ee383dp-17};  // 2^-57.4
  static constexpr int fast_terms       = 2;
  static constexpr double fast_series[] = {0x1.62fa10p-1, 0x1.ebfb88p-3};
};

/// Table of 2^(i/16), and of its rounding errors. Rounded to float the entries are those nearest to the exact powers,
/// too.
inline constexpr double powers_by_sixteenths[] = {
    0x1.0000000000000p+0, 0x1.0b5586cf9890fp+0, 0x1.172b83c7d517bp+0, 0x1.2387a6e756238p+0,
    0x1.306fe0a31b715p+0, 0x1.3dea64c123422p+0, 0x1.4bfdad5362a27p+0, 0x1.5ab07dd485429p+0,
    0x1.6a09e667f3bcdp+0, 0x1.7a11473eb0187p+0, 0x1.8ace5422aa0dbp+0, 0x1.9c49182a3f090p+0,
    0x1.ae89f995ad3adp+0, 0x1.c199bdd85529cp+0, 0x1.d5818dcfba487p+0, 0x1.ea4afa2a490dap+0};
inline constexpr double powers_by_sixteenths_low[] = {0,
                                                      0x1.8a62e4adc610bp-54,
                                                      -0x1.19041b9d78a76p-55,
                                                      0x1.9b07eb6c70573p-54,
                                                      0x1.6f46ad23182e4p-55,
                                                      0x1.ada0911f09ebcp-55,
                                                      0x1.d4397afec42e2p-56,
                                                      0x1.6324c054647adp-54,
                                                      -0x1.bdd3413b26456p-54,
                                                      -0x1.41577ee04992fp-55,
                                                      0x1.6e9f156864b27p-54,
                                                      0x1.c7c46b071f2bep-56,
                                                      0x1.7a1cd345dcc81p-54,
                                                      0x1.11065895048ddp-55,
                                                      0x1.2ed02d75b3707p-55,
                                                      -0x1.e9c23179c2893p-54};

/// Table of 2^(i/lanes), in the lanes of a vector.
template <class A>
struct Exp2Table {
  using Words = BitsOf<Vector<A>>;

  static constexpr int entries    = simd_width<A>;
  static constexpr int entry_bits = std::bit_width(unsigned(entries)) - 1;
  static constexpr int point      = Exp2Constants<A>::mantissa_bits - entry_bits;  ///< position of i's lowest bit
  static constexpr A round_magic  = Exp2Constants<A>::round_magic / entries;

  /// Bits of A(2^(i/lanes)) less i's own, so that those of n + i/lanes, in units of 1/lanes, may be added.
  BitsOf<A> power[entries];
  /// Relative rounding error of A(2^(i/lanes)).
  A rest[entries];

  constexpr Exp2Table() : power{}, rest{} {
    for (int i = 0; i < entries; ++i) {
      const double exact = powers_by_sixteenths[i * (16 / entries)];
      const double low   = powers_by_sixteenths_low[i * (16 / entries)];
      const A nearest    = static_cast<A>(exact);
      power[i]           = std::bit_cast<BitsOf<A>>(nearest) - (BitsOf<A>(i) << point);
      rest[i]            = static_cast<A>((exact - double(nearest) + low) / exact);
    }
  }

  KOKKOS_FORCEINLINE_FUNCTION Words power_bits() const { return load(power); }
  KOKKOS_FORCEINLINE_FUNCTION Words rest_bits() const { return load(rest); }

 private:
  template <class Word>
  KOKKOS_FORCEINLINE_FUNCTION static Words load(const Word (&words)[entries]) {
    Words all;
    std::memcpy(&all, words, sizeof all);
    return all;
  }
};
template <class A>
inline constexpr Exp2Table<A> exp2_table{};

inline constexpr double log_of_2_high = 0x1.62e42fefa39efp-1;
inline constexpr double log_of_2_rest = 0x1.abc9e3b39803fp-56;

template <class A>
inline constexpr A log_of_2            = A(log_of_2_high);
inline constexpr double log2_of_e_high = 0x1.71547652b82fep+0;
inline constexpr double log2_of_e_rest = 0x1.777d0ffda0d24p-56;

template <class A>
inline constexpr A log2_of_e = A(log2_of_e_high);
/// Rounding error of A(log 2).
template <class A>
inline constexpr A log_of_2_low = A(log_of_2_high - double(log_of_2<A>) + log_of_2_rest);

/// Evaluates c_i + f c_{i+1} + ... of the series of C by Horner's scheme, unrolled at compile time.
template <ExpAccuracy accuracy, class C, int i = 0, class T>
KOKKOS_FORCEINLINE_FUNCTION T exp2_series(T f) {
  using A                 = ScalarOf<T>;
  constexpr bool is_full  = accuracy == ExpAccuracy::full;
  constexpr int count     = is_full ? C::full_terms : C::fast_terms;
  constexpr A coefficient = is_full ? C::full_series[i] : C::fast_series[i % C::fast_terms];
  if constexpr (i == count - 1) {
    return splat<T>(coefficient);
  } else {
    return multiply_add(f, exp2_series<accuracy, C, i + 1>(f), splat<T>(coefficient));
  }
}

/// 2^t to a relative 2^-22 for |t| <= 1/2, plus the error of rounding t, by a GPU's instruction; 0 below the normal
/// range.
KOKKOS_INLINE_FUNCTION float exp2_native([[maybe_unused]] float t) {
#if defined(__CUDA_ARCH__)
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(t));
  return result;
#elif defined(__HIP_DEVICE_COMPILE__)
  return __builtin_amdgcn_exp2f(t);
#else
  return Kokkos::exp2(t);  // a GPU's team that is emulated
#endif
}

/// 2^t to a few units in the last place plus the error of rounding t, by a GPU's instruction where there is one.
KOKKOS_INLINE_FUNCTION float power_of_two(float t) { return exp2_native(t); }
KOKKOS_INLINE_FUNCTION double power_of_two(double t) { return Kokkos::exp2(t); }

/// tanh to a few 2^-24, absolute. exp(2 x) may be infinite, which is no error here. A GPU's instructions for 2^t and
/// the reciprocal need no branch, around which a kernel would spill.
KOKKOS_INLINE_FUNCTION float bounded_tanh(float x) {
#if defined(__CUDA_ARCH__)
  constexpr float two_log2_e = 2.8853900817779268f;
  float inverse;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(exp2_native(x * two_log2_e) + 1));
  return Kokkos::fma(-2.0f, inverse, 1.0f);
#else
  return Kokkos::tanh(x);
#endif
}
KOKKOS_INLINE_FUNCTION double bounded_tanh(double x) { return Kokkos::tanh(x); }

/// Reference of exponentials: exp(scale (x - R)) is 2^(scale2 (x - base) - exponent), exponent an integer.
template <class A>
struct ExpReference {
  A base;
  A exponent;
  A lowest;         ///< x - base below which the exponential is 0
  BitsOf<A> shift;  ///< exponent bits of 2^-exponent
};

/// True if the sum of a row with +inf must be a number unless an element is NaN: its log-sum-exp is then +inf. The sum
/// would be NaN otherwise, whether the row has a NaN or not.
template <SumFor use, class Params>
inline constexpr bool finds_infinity = use == SumFor::log_sum_exp || Params::has_lse;

/// True if a row's exponentials are relative to +inf. The difference +inf - +inf would be NaN, as that of NaN is: so a
/// kernel looks for a NaN, once a row and hardly ever, and takes `one_or_nan` instead of a sum of exponentials, or
/// `zero_of_number` or elements bounded by 0 instead of differences, whichever takes it fewer registers. Such a row's
/// sum is any number above 0.
template <SumFor use, class Params, class A>
KOKKOS_FORCEINLINE_FUNCTION bool is_infinite([[maybe_unused]] const ExpReference<A>& r) {
  if constexpr (finds_infinity<use, Params>) {
    return r.base == Kokkos::Experimental::infinity_v<A>;
  } else {
    return false;
  }
}

/// Sum of a part of a row whose reference is +inf.
template <class A>
KOKKOS_FORCEINLINE_FUNCTION A one_or_nan(bool has_nan) {
  return has_nan ? Kokkos::Experimental::quiet_NaN_v<A> : A(1);
}

/// 0, whose exponential is 1, for a number; NaN for NaN.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION T zero_of_number(T x) {
  return x == x ? splat<T>(ScalarOf<T>(0)) : x;
}

/// Reference that exponentials can be taken relative to: 0 in place of -inf.
template <class T>
KOKKOS_INLINE_FUNCTION T finite_reference(T reference) {
  using A = ScalarOf<T>;
  return reference == splat<T>(-Kokkos::Experimental::infinity_v<A>) ? splat<T>(A(0)) : reference;
}

/// Series of 2 artanh(q) / q up to the term that is below half an ulp of 1 for the q of `log_below_2`.
template <class T, int term = 0>
KOKKOS_FORCEINLINE_FUNCTION T artanh_series(const T& square) {
  using A             = ScalarOf<T>;
  constexpr int last  = std::is_same_v<A, float> ? 4 : 10;
  const T coefficient = splat<T>(A(2) / A(2 * term + 1));
  if constexpr (term == last) return coefficient;
  if constexpr (term < last) return multiply_add(square, artanh_series<T, term + 1>(square), coefficient);
}

/// Logarithm of 1 <= x < 2, within an ulp of 1, and 0 for 1: 2 artanh((t - 1) / (t + 1)), where t is x or x / 2.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION T log_below_2(const T& x) {
  using A     = ScalarOf<T>;
  const T one = splat<T>(A(1)), root = splat<T>(A(1.4142135623730951));
  const T t        = x > root ? splat<T>(A(0.5)) * x : x;
  const T high     = x > root ? splat<T>(log_of_2<A>) : T{};
  const T quotient = (t - one) / (t + one);
  return multiply_add(quotient, artanh_series(quotient * quotient), high);
}

/// Finite logit from its product with the scale; the farthest one where the quotient is not finite.
template <class A>
KOKKOS_INLINE_FUNCTION A unscaled(A product, A scale) {
  constexpr A farthest = Kokkos::Experimental::finite_max_v<A>;
  return at_most(at_least(product / scale, -farthest), farthest);
}

/// Reference in all lanes of a vector T.
template <class T, class A>
KOKKOS_FORCEINLINE_FUNCTION ExpReference<T> splat_reference(const ExpReference<A>& r) {
  return {splat<T>(r.base), splat<T>(r.exponent), splat<T>(r.lowest), splat<BitsOf<T>>(r.shift)};
}

/// Partial state of a row: its reference R, -inf if all elements so far are -inf, and the sum of exp(scale (x - R)), in
/// a type W that may be wider than A. MaxSumExp of the public header has the maximum instead of R.
template <class A, class W>
struct RowState {
  A reference = -Kokkos::Experimental::infinity_v<A>;
  W sum       = {};
};

/// exp(scale (x - R)), scale > 0, relative to a reference R near the largest x. -inf gives 0, NaN gives NaN; results
/// below the normal range may be 0.
///
/// References are chosen such that scale2 R, scale2 = scale log2(e), is an integer. So comparing x with R rounds
/// nothing: with n the integer nearest scale2 x, f = scale2 x - n comes from one fused operation without an error to
/// speak of (Cody and Waite's reduction, with the subtraction of the maximum inside), and 2^f from a polynomial; R only
/// enters the power of two. Partial sums of threads, warps and teams are brought to a common reference by powers of
/// two, without an error. Where scale2 x is too large for that, R is an x itself and is subtracted first, which is
/// exact for all x whose exponential is not 0. Threads exchange R in units of x; `at(R)` derives the constants that the
/// exponential needs.
///
/// `full` is within 1.2 ulp, without fused operations 1.3. A GPU's own 2^f, within 2.9 ulp, would be faster (softmax of
/// 262144 x 197 by 3 %), but its error enters numerator and sum: 4.35 ulp were seen. It serves logarithms (`SumFor`).
/// `fast`, relative 1e-4, leaves all of 2^t to that instruction.
template <class A, ExpAccuracy accuracy>
struct ScaledExp {
  using C         = Exp2Constants<A>;
  using bits      = typename C::bits;
  using Reference = ExpReference<A>;

  static constexpr A limit       = accuracy == ExpAccuracy::full ? C::full_limit : C::fast_limit;
  static constexpr A below_limit = limit - A(1);  ///< up to here `at` finds the integer that `reference_of` made

  A twice_scale;  ///< for log_softmax: halves of logits have a finite difference
  A scale_low;    ///< rounding error of the scale
  A scale2;       ///< scale * log2(e), high word
  A scale2_low;   ///< low word
  A inverse;      ///< 1 / scale2

  KOKKOS_DEFAULTED_FUNCTION ScaledExp() = default;
  explicit ScaledExp(double s) : twice_scale(2 * A(s)), scale_low(A(s - static_cast<double>(A(s)))) {
    const double product = s * log2_of_e_high;
    const double rest    = std::fma(s, log2_of_e_high, -product) + s * log2_of_e_rest;
    scale2               = static_cast<A>(product);
    scale2_low           = static_cast<A>(product - static_cast<double>(scale2) + rest);
    inverse              = static_cast<A>(1 / product);
  }

  KOKKOS_INLINE_FUNCTION A scale() const { return A(0.5) * twice_scale; }

  /// Reference R for values up to max: the power of two at or below its exponential; infinities stay.
  template <class T>
  KOKKOS_INLINE_FUNCTION T reference_of(T max) const {
    const T t = max * splat<T>(scale2);
    return is_power(t) ? round_down(t) * splat<T>(inverse) : max;
  }

  template <class T>
  KOKKOS_INLINE_FUNCTION ExpReference<T> at(T R) const {
    const T t    = R * splat<T>(scale2);
    const T zero = splat<T>(A(0));
    if constexpr (std::is_same_v<T, A>) {
      return is_power(t) ? reference(zero, nearest(t)) : reference(R, zero);
    } else {
      return reference(is_power(t) ? zero : R, is_power(t) ? nearest(t) : zero);
    }
  }

  /// Reference R for values up to max, and `at(R)`, or `at(0)` if R is -inf.
  struct Referred {
    A R;
    ExpReference<A> at;
  };
  KOKKOS_INLINE_FUNCTION Referred refer(A max) const {
    const A t = max * scale2;
    if (Kokkos::abs(t) < below_limit) {
      const A n = round_down(t);
      return {n * inverse, reference(A(0), n)};
    }
    const A R = reference_of(max);
    return {R, at(finite_reference(R))};
  }

  /// Reference that is lower by so many powers of two: exponentials are larger by them.
  KOKKOS_INLINE_FUNCTION Reference lowered(const Reference& r, A powers) const {
    return reference(r.base, r.exponent - powers);
  }

  /// True if a reference near x is a power of two.
  KOKKOS_INLINE_FUNCTION bool has_power(A x) const { return is_power(x * scale2); }

  /// Exponential of x. T is A or, on a host, a vector of A. (g++ does not inline it where it is used often, unless
  /// forced.)
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION T operator()(T x, const ExpReference<T>& r) const {
    return of_difference(x - r.base, r);
  }

  /// Exponential of x from d = x - base.
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION T of_difference(T d, const ExpReference<T>& r) const {
    if constexpr (accuracy == ExpAccuracy::fast && std::is_same_v<T, float>) {
      KOKKOS_IF_ON_DEVICE((return exp2_native(fused_multiply_add(d, scale2, -r.exponent));))
    }
    if constexpr (has_lookup<T>) return by_table<SumFor::quotient>(d, r);
    const Reduced<T> t = reduced(d, r);
    return multiply_add(t.fraction, exp2_series<accuracy, C>(t.fraction), splat<T>(A(1))) * t.power;
  }

  /// Exponential of x from d = x - base, for a sum of the given use.
  template <SumFor use, class T>
  KOKKOS_FORCEINLINE_FUNCTION T term_of_difference(T d, const ExpReference<T>& r) const {
    if constexpr (has_lookup<T>) return by_table<use>(d, r);
    if constexpr (use != SumFor::quotient && accuracy == ExpAccuracy::full && std::is_same_v<T, float>) {
      KOKKOS_IF_ON_DEVICE((const auto t = reduced(d, r); return exp2_native(t.fraction) * t.power;))
    }
    return of_difference(d, r);
  }

  /// Fraction 2^f and power 2^n of an exponential, from x - base.
  template <class T>
  struct Reduced {
    T fraction;
    T power;
  };
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION Reduced<T> reduced(T d, const ExpReference<T>& r) const {
    const T magic   = splat<T>(C::round_magic);
    d               = at_least(d, r.lowest);
    const T shifted = multiply_add(d, splat<T>(scale2), magic);
    return {fraction(d, shifted - magic),
            Kokkos::bit_cast<T>((Kokkos::bit_cast<BitsOf<T>>(shifted) << C::mantissa_bits) + r.shift)};
  }

  /// 2^(scale2 x - exponent) where the result surely is in the normal range, and `exponent` is a reference's.
  KOKKOS_FORCEINLINE_FUNCTION A of_near(A x, A exponent) const {
    if constexpr (accuracy == ExpAccuracy::fast && std::is_same_v<A, float>) {
      KOKKOS_IF_ON_DEVICE((return exp2_native(fused_multiply_add(x, scale2, -exponent));))
    }
    const A magic   = C::round_magic - exponent;
    const A shifted = multiply_add(x, scale2, magic);
    const A f       = fraction(x, shifted - magic);
    const A power   = multiply_add(f, exp2_series<accuracy, C>(f), A(1));
    return Kokkos::bit_cast<A>(Kokkos::bit_cast<bits>(power) + (Kokkos::bit_cast<bits>(shifted) << C::mantissa_bits));
  }

  /// State whose reference is the power of two at its sum, a normal number: for logarithms, in which a reference far
  /// from the sum would cancel.
  template <class W>
  KOKKOS_INLINE_FUNCTION RowState<A, W> at_its_sum(A R, const W& sum) const {
    const A n = A(static_cast<int>(Kokkos::bit_cast<bits>(static_cast<A>(sum)) >> C::mantissa_bits) - int(C::bias));
    return {(nearest(R * scale2) + n) * inverse, sum * power_of_two(-n)};
  }

  /// Logarithms of sums, normal numbers, of exponentials relative to 2^exponent, in two parts: scale R, where R stands
  /// for the power of two at the sum, and the rest.
  template <class T>
  struct Logarithm {
    T R;
    T rest;
  };
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION Logarithm<T> logarithm(const T& sum, const T& exponent) const {
    using Bits     = BitsOf<T>;
    const Bits one = splat<Bits>(bits(C::bias) << C::mantissa_bits), all = Kokkos::bit_cast<Bits>(sum);
    const Bits mantissa = all & splat<Bits>((bits(1) << C::mantissa_bits) - 1);
    const T magic       = splat<T>(C::round_magic);
    const T n = Kokkos::bit_cast<T>(((all - mantissa - one) >> C::mantissa_bits) + Kokkos::bit_cast<Bits>(magic));
    const T N = exponent + (n - magic);
    const T R = N * splat<T>(inverse);
    return {R, log_below_2(Kokkos::bit_cast<T>(mantissa | one)) + logarithm_less(R, N)};
  }

  /// Exponential of any number, also of one far above the reference: infinite where it leaves A's range.
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION T of_any(T x, const ExpReference<T>& r) const {
    const T d = x - r.base;
    if constexpr (has_lookup<T>) {
      const T highest = (r.exponent + splat<T>(A(C::bias) + A(0.5))) * splat<T>(inverse);
      const T e       = by_table<SumFor::logarithm>(d, r);
      return d > highest ? splat<T>(Kokkos::Experimental::infinity_v<A>) : e;
    }
    const T highest = (r.exponent + splat<T>(A(C::bias + 1))) * splat<T>(inverse);
    return of_difference(at_most(d, highest), r);
  }

  /// exp(scale (from - to)) of two references: this factor makes a sum relative to `from` one relative to `to`, which
  /// is not below `from`. If 0 stands for the missing reference of an empty part, `to` may be below; any finite result
  /// will do.
  KOKKOS_INLINE_FUNCTION A rescaling(A from, A to) const {
    if (from >= to) return A(1);
    if (is_power(from * scale2) && is_power(to * scale2)) {  // nearly always; the factor is a power of two then
      const A n = nearest(from * scale2) - nearest(to * scale2);
      return power_of_two(n > -A(C::bias) ? n : -A(C::bias));
    }
    const Reference a = at(from);
    const Reference b = at(to);
    return (*this)(a.base, reference(b.base, b.exponent - a.exponent));
  }

  /// Rescaling of references side by side, in two factors: 2^n may be below the normal range although a sum larger than
  /// 1, times 2^n, is not.
  template <class T>
  struct Rescaling {
    T first;
    T second;

    template <class U>
    KOKKOS_FORCEINLINE_FUNCTION U of(const U& value) const {
      return value * first * second;
    }
  };
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION Rescaling<T> rescalings(T from, T to) const {
    const T n    = at_most(nearest(from * splat<T>(scale2)) - nearest(to * splat<T>(scale2)), T{});
    const T some = splat<T>(A(-16)), least = splat<T>(-A(C::bias));
    const T first = n > some ? n : some, rest = n - first;
    Rescaling<T> by{power_of_two(first), power_of_two(rest > least ? rest : least)};
    const T low = from < to ? from : to, high = from < to ? to : from;
    if (is_any_above(high * splat<T>(scale2), splat<T>(below_limit)) ||
        is_any_above(splat<T>(-below_limit), low * splat<T>(scale2))) {  // hardly ever
      for (int l = 0; l < int(sizeof(T) / sizeof(A)); ++l) {
        by.first[l]  = rescaling(from[l], to[l]);
        by.second[l] = A(1);
      }
    }
    return by;
  }

  /// Logarithm of the power of two that R stands for, less scale R. In `fast` exponentials lack the low word of scale2;
  /// a sum of them is nearly as if each lacked what one of R does, which is added here.
  ///   log_softmax of bf16 {-1416, 63 times -1432}, -7.09e-6 | -7.21e-6 | without -2.61e-5
  KOKKOS_INLINE_FUNCTION A logarithm_less(A R) const {
    const Reference r = at(R);
    if (r.base == R) return A(0);
    return logarithm_less(R, r.exponent);
  }

 private:
  /// `logarithm_less` of an R that stands for 2^N.
  template <class T>
  KOKKOS_INLINE_FUNCTION T logarithm_less(T R, T N) const {
    const T factor  = splat<T>(scale());
    const T product = factor * R;
    const T rest    = fused_multiply_add(factor, R, -product) + splat<T>(scale_low) * R;
    const T lacking = accuracy == ExpAccuracy::fast ? R * splat<T>(scale2_low * log_of_2<A>) : splat<T>(A(0));
    return fused_multiply_add(N, splat<T>(log_of_2<A>), -product) + (N * splat<T>(log_of_2_low<A>) - rest + lacking);
  }

  template <class T>
  KOKKOS_INLINE_FUNCTION static T nearest(T t) {
    return (t + splat<T>(C::round_magic)) - splat<T>(C::round_magic);
  }

  /// 2^n, or 0 for the least n, -bias.
  template <class T>
  KOKKOS_INLINE_FUNCTION static T power_of_two(T n) {
    const auto integer = Kokkos::bit_cast<BitsOf<T>>(n + splat<T>(C::round_magic));
    return Kokkos::bit_cast<T>((integer + splat<BitsOf<T>>(C::bias)) << C::mantissa_bits);
  }

  /// Rounds t down; a vector only where `is_power`.
  template <class T>
  KOKKOS_INLINE_FUNCTION static T round_down(T t) {
    if constexpr (std::is_same_v<T, A>) {
      return Kokkos::floor(t);
    } else {
      const T n = nearest(t);
      return n > t ? n - splat<T>(A(1)) : n;
    }
  }

  /// True if |t| is so small that a reference is a power of two; for a vector, lane by lane.
  template <class T>
  KOKKOS_INLINE_FUNCTION static auto is_power(T t) {
    if constexpr (std::is_same_v<T, A>) {
      return Kokkos::abs(t) < limit;
    } else {
      return (t < splat<T>(limit)) & (t > splat<T>(-limit));
    }
  }

  template <class T>
  KOKKOS_INLINE_FUNCTION ExpReference<T> reference(T base, T exponent) const {
    const auto integer = Kokkos::bit_cast<BitsOf<T>>(exponent + splat<T>(C::round_magic));
    return {base, exponent, (exponent - splat<T>(A(C::bias))) * splat<T>(inverse),
            (splat<BitsOf<T>>(C::bias) - integer) << C::mantissa_bits};
  }

  /// 2^(scale2 d - exponent) by a table and a shorter series: fewer operations on a host that looks up a lane's index
  /// by one instruction. Within 0.65 ulp; within 1.1 for a logarithm, which does without the table's rounding errors, a
  /// tenth of a loop's time. A result below the normal range is no larger than it should be.
  template <SumFor use, class T>
  KOKKOS_FORCEINLINE_FUNCTION T by_table(T d, const ExpReference<T>& r) const {
    using Table     = Exp2Table<A>;
    const T magic   = splat<T>(Table::round_magic) - r.exponent;
    d               = at_least(d, r.lowest);
    const T shifted = fused_multiply_add(d, splat<T>(scale2), magic);
    const auto n    = Kokkos::bit_cast<BitsOf<T>>(shifted);
    const T power   = Kokkos::bit_cast<T>(look_up(exp2_table<A>.power_bits(), n) + (n << Table::point));
    const T f       = fraction(d, shifted - magic);
    const T series  = exp2_series<accuracy, Exp2Series<A, Table::entries>>(f);
    if constexpr (accuracy == ExpAccuracy::fast || use != SumFor::quotient)
      return fused_multiply_add(power, f * series, power);
    const T rest = Kokkos::bit_cast<T>(look_up(exp2_table<A>.rest_bits(), n));
    return fused_multiply_add(power, fused_multiply_add(f, series, rest), power);
  }

  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION T fraction(T d, T n) const {
    if constexpr (accuracy == ExpAccuracy::fast) return multiply_add(d, splat<T>(scale2), -n);
    if constexpr (!has_fma) return distance_of_product(d, splat<T>(scale2), splat<T>(scale2_low), n);
    return fused_multiply_add(d, splat<T>(scale2_low), fused_multiply_add(d, splat<T>(scale2), -n));
  }
};

/// factor exp(scale (x - R)) for many x of one row: the factor is inside the polynomial, which saves two operations an
/// element. It adds the half ulp of the rounded factor; the last rounding is the polynomial's.
template <class A>
struct MultipliedExp {
  using C                    = Exp2Constants<A>;
  static constexpr int terms = C::full_terms;

  ExpReference<A> reference;
  A factor;
  A series[terms];

  KOKKOS_INLINE_FUNCTION MultipliedExp(const ExpReference<A>& r, A by) : reference(r), factor(by) { set_series<0>(); }

  /// Result from d = x - base.
  KOKKOS_INLINE_FUNCTION A operator()(const ScaledExp<A, ExpAccuracy::full>& exp, A d) const {
    const auto t = exp.reduced(d, reference);
    return multiply_add(t.fraction, sum_from<0>(t.fraction), factor) * t.power;
  }

 private:
  template <int i>
  KOKKOS_INLINE_FUNCTION A sum_from(A f) const {
    if constexpr (i + 1 == terms) {
      return series[i];
    } else {
      return multiply_add(f, sum_from<i + 1>(f), series[i]);
    }
  }

  template <int i>
  KOKKOS_INLINE_FUNCTION void set_series() {
    constexpr A coefficient = C::full_series[i];
    series[i]               = coefficient * factor;
    if constexpr (i + 1 < terms) set_series<i + 1>();
  }
};

/// Accuracy that a result of type Y needs.
template <class Y>
inline constexpr ExpAccuracy exp_accuracy_for = sizeof(Y) < sizeof(float) ? ExpAccuracy::fast : ExpAccuracy::full;

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_MATH_EXP_HPP
