// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_HOST_VECTOR_HPP
#define KOKKOSNN_IMPL_HOST_VECTOR_HPP

#include <KokkosNN/impl/host/shapes.hpp>

#include <Kokkos_Core.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

// Vector registers of a host: the vector extensions of g++ and clang, in the machine's width, so that no loop depends
// on a compiler's vectoriser. Formulas are templates on T, a number or a vector of numbers. Compilers of device code
// get vectors of one lane, which are numbers.
#if defined(KOKKOSNN_IMPL_HAS_VECTORS)
#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#elif defined(__ARM_NEON) && defined(__aarch64__)
#include <arm_neon.h>
#if defined(__ARM_FEATURE_SVE_BITS) && (__ARM_FEATURE_SVE_BITS == 256 || __ARM_FEATURE_SVE_BITS == 512)
#include <arm_sve.h>
/// SVE of a width that is known, as vector extensions need it. At 128 bits NEON is as wide.
#define KOKKOSNN_IMPL_HAS_SVE
#endif
#endif
#endif

/// Attribute behind a lambda's parameters: g++ inlines lambdas that are called several times only if it is forced to.
#if defined(__GNUC__)
#define KOKKOSNN_IMPL_INLINED __attribute__((always_inline))
#else
#define KOKKOSNN_IMPL_INLINED
#endif

namespace KokkosNN::Impl {

#if defined(__AVX512F__)
inline constexpr int vector_bytes = 64;
#elif defined(__AVX2__)
inline constexpr int vector_bytes = 32;
#elif defined(KOKKOSNN_IMPL_HAS_SVE)
inline constexpr int vector_bytes = __ARM_FEATURE_SVE_BITS / 8;
#else
inline constexpr int vector_bytes = 16;  // SSE, NEON
#endif

/// Number type of a T, and the unsigned integers of its size.
template <class T>
struct VectorTraits {
  using scalar = T;
  using bits   = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
};

/// Vector of A of `bytes` bytes.
template <class A, int bytes = vector_bytes>
struct VectorOf {
  using type = A;
};

#if defined(KOKKOSNN_IMPL_HAS_VECTORS)
template <class A, int bytes>
  requires(bytes > int(sizeof(A)) && (std::is_same_v<A, float> || std::is_same_v<A, double>))
struct VectorOf<A, bytes> {
  typedef A type __attribute__((vector_size(bytes)));
};

template <class A, class Bits, int bytes>
struct VectorTraitsOf {
  using scalar = A;
  typedef Bits bits __attribute__((vector_size(bytes)));
};
template <>
struct VectorTraits<VectorOf<float>::type> : VectorTraitsOf<float, std::uint32_t, vector_bytes> {};
template <>
struct VectorTraits<VectorOf<double>::type> : VectorTraitsOf<double, std::uint64_t, vector_bytes> {};
#endif

#if defined(KOKKOSNN_IMPL_HAS_SVE)
/// Vectors as SVE's intrinsics take them.
typedef svfloat32_t SveFloats __attribute__((arm_sve_vector_bits(__ARM_FEATURE_SVE_BITS)));
typedef svfloat64_t SveDoubles __attribute__((arm_sve_vector_bits(__ARM_FEATURE_SVE_BITS)));
typedef svuint32_t SveWords __attribute__((arm_sve_vector_bits(__ARM_FEATURE_SVE_BITS)));
typedef svuint64_t SveLongWords __attribute__((arm_sve_vector_bits(__ARM_FEATURE_SVE_BITS)));
#endif

/// Widest vector of A.
template <class A>
using Vector = typename VectorOf<A>::type;

template <class A>
inline constexpr int simd_width = sizeof(Vector<A>) / sizeof(A);
static_assert((simd_width<float> > 1) == has_host_vectors && (simd_width<double> > 1) == has_host_vectors);

template <class T>
using ScalarOf = typename VectorTraits<T>::scalar;
template <class T>
using BitsOf = typename VectorTraits<T>::bits;

/// Puts a number into all lanes. `a - 0` is a, of either zero too.
template <class T, class A>
KOKKOS_FORCEINLINE_FUNCTION T splat(A a) {
  if constexpr (std::is_same_v<T, A>) {
    return a;
  } else {
    return a - T{};
  }
}

/// True if a * b + c, rounded once, is one instruction. g++ may then fuse what is written apart, so it is asked, too.
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__) || defined(__FMA__) || defined(__ARM_FEATURE_FMA) || \
    defined(__FP_FAST_FMA)
inline constexpr bool has_fma = true;
#else
inline constexpr bool has_fma = false;
#endif

/// a * b + c rounded once. Without a fused instruction std::fma is a slow library call, and for float the exact product
/// in double does the same.
KOKKOS_INLINE_FUNCTION float fused_multiply_add(float a, float b, float c) {
  if constexpr (has_fma) {
    return Kokkos::fma(a, b, c);
  } else {
    return static_cast<float>(static_cast<double>(a) * b + c);
  }
}
KOKKOS_INLINE_FUNCTION double fused_multiply_add(double a, double b, double c) { return Kokkos::fma(a, b, c); }

/// 1 / x, where x and its inverse are in the normal range, or NaN: the compiler's division handles other numbers, too,
/// and with it split rows take 7 % longer.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION T inverse_of_normal(T x) {
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<T, float>) {
    float inverse;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(x));
    return Kokkos::fma(inverse, Kokkos::fma(-x, inverse, 1.0f), inverse);
  }
#endif
  return splat<T>(ScalarOf<T>(1)) / x;
}

/// True if one instruction finds the larger one of two floats, or a NaN.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
inline constexpr bool has_max_with_nan = true;
#else
inline constexpr bool has_max_with_nan = false;
#endif

/// Larger one of a and b, or NaN if one of them is NaN.
KOKKOS_INLINE_FUNCTION float larger_or_nan(float a, float b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  float larger;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
  return larger;
#else
  return a > b || a != a ? a : b;
#endif
}

/// Larger one of x and bound; a NaN x stays NaN, which fmax would not do. The bound is no NaN, so one comparison does.
KOKKOS_INLINE_FUNCTION float at_least(float x, float bound) {
  if constexpr (has_max_with_nan) {
    return larger_or_nan(x, bound);
  } else {
    return x < bound ? bound : x;
  }
}
KOKKOS_INLINE_FUNCTION double at_least(double x, double bound) { return x < bound ? bound : x; }

/// Larger one of m and x; a NaN x is ignored. m is never NaN.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION T max_ignoring_nan(T m, T x) {
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
  return Kokkos::fmax(m, x);
#else
  return x > m ? x : m;
#endif
}

/// True if a > b in any lane.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION bool is_any_above(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, ScalarOf<T>>) {
    return a > b;
  } else {
#if defined(KOKKOSNN_IMPL_HAS_VECTORS) && defined(__AVX512F__)
    if constexpr (std::is_same_v<T, Vector<float>>) return _mm512_cmp_ps_mask(__m512(a), __m512(b), _CMP_GT_OQ) != 0;
    if constexpr (std::is_same_v<T, Vector<double>>) return _mm512_cmp_pd_mask(__m512d(a), __m512d(b), _CMP_GT_OQ) != 0;
#elif defined(KOKKOSNN_IMPL_HAS_VECTORS) && defined(__AVX2__)
    if constexpr (std::is_same_v<T, Vector<float>>)
      return _mm256_movemask_ps(_mm256_cmp_ps(__m256(a), __m256(b), _CMP_GT_OQ)) != 0;
    if constexpr (std::is_same_v<T, Vector<double>>)
      return _mm256_movemask_pd(_mm256_cmp_pd(__m256d(a), __m256d(b), _CMP_GT_OQ)) != 0;
#elif defined(KOKKOSNN_IMPL_HAS_SVE)
    if constexpr (std::is_same_v<T, Vector<float>>)
      return svptest_any(svptrue_b32(), svcmpgt_f32(svptrue_b32(), SveFloats(a), SveFloats(b)));
    if constexpr (std::is_same_v<T, Vector<double>>)
      return svptest_any(svptrue_b64(), svcmpgt_f64(svptrue_b64(), SveDoubles(a), SveDoubles(b)));
#elif defined(KOKKOSNN_IMPL_HAS_VECTORS) && defined(__aarch64__)
    if constexpr (sizeof(T) == sizeof(uint32x4_t)) return vmaxvq_u32(uint32x4_t(a > b)) != 0;
#endif
    const auto above = a > b;
    auto any         = above[0];
    for (int l = 1; l < int(sizeof(T) / sizeof(a[0])); ++l) any |= above[l];
    return any != 0;
  }
}

#if defined(KOKKOSNN_IMPL_HAS_VECTORS)

KOKKOS_FORCEINLINE_FUNCTION Vector<float> at_least(Vector<float> x, Vector<float> bound) {
  return x < bound ? bound : x;
}
KOKKOS_FORCEINLINE_FUNCTION Vector<double> at_least(Vector<double> x, Vector<double> bound) {
  return x < bound ? bound : x;
}

/// a * b + c by the machine's instruction, whatever -ffp-contract makes of the expression.
KOKKOS_FORCEINLINE_FUNCTION Vector<float> fused_multiply_add(Vector<float> a, Vector<float> b, Vector<float> c) {
#if defined(__AVX512F__)
  return Vector<float>(_mm512_fmadd_ps(__m512(a), __m512(b), __m512(c)));
#elif defined(__AVX2__) && defined(__FMA__)
  return Vector<float>(_mm256_fmadd_ps(__m256(a), __m256(b), __m256(c)));
#elif defined(KOKKOSNN_IMPL_HAS_SVE)
  return Vector<float>(SveFloats(svmla_f32_x(svptrue_b32(), SveFloats(c), SveFloats(a), SveFloats(b))));
#elif defined(__aarch64__)
  return Vector<float>(vfmaq_f32(float32x4_t(c), float32x4_t(a), float32x4_t(b)));
#else
  using Wide   = typename VectorOf<double, 2 * vector_bytes>::type;
  const Wide d = __builtin_convertvector(a, Wide) * __builtin_convertvector(b, Wide) + __builtin_convertvector(c, Wide);
  return __builtin_convertvector(d, Vector<float>);
#endif
}
KOKKOS_FORCEINLINE_FUNCTION Vector<double> fused_multiply_add(Vector<double> a, Vector<double> b, Vector<double> c) {
#if defined(__AVX512F__)
  return Vector<double>(_mm512_fmadd_pd(__m512d(a), __m512d(b), __m512d(c)));
#elif defined(__AVX2__) && defined(__FMA__)
  return Vector<double>(_mm256_fmadd_pd(__m256d(a), __m256d(b), __m256d(c)));
#elif defined(KOKKOSNN_IMPL_HAS_SVE)
  return Vector<double>(SveDoubles(svmla_f64_x(svptrue_b64(), SveDoubles(c), SveDoubles(a), SveDoubles(b))));
#elif defined(__aarch64__)
  return Vector<double>(vfmaq_f64(float64x2_t(c), float64x2_t(a), float64x2_t(b)));
#else
  Vector<double> result;
  for (int l = 0; l < simd_width<double>; ++l) result[l] = std::fma(a[l], b[l], c[l]);
  return result;
#endif
}

#endif  // KOKKOSNN_IMPL_HAS_VECTORS

/// a * b + c, fused if that is one instruction: for sums in which an error of the product, half an ulp of it, does no
/// harm. x86-64 without FMA would take six times as long for the fused one, and more in double.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION T multiply_add(const T& a, const std::type_identity_t<T>& b,
                                           const std::type_identity_t<T>& c) {
  if constexpr (has_fma) {
    return fused_multiply_add(a, b, c);
  } else {
    return a * b + c;
  }
}

/// a * (high + low) - n without an error to speak of, where n is 0 or near a high, and high + low is a number in two
/// words; for machines without a fused instruction.
KOKKOS_FORCEINLINE_FUNCTION float distance_of_product(float a, float high, float low, float n) {
  return static_cast<float>(static_cast<double>(a) * (static_cast<double>(high) + static_cast<double>(low)) -
                            static_cast<double>(n));
}

/// The upper half of a double's bits, a number whose product with another such number is exact.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION T upper_half(T x) {
  using Bits = BitsOf<T>;
  return Kokkos::bit_cast<T>(Kokkos::bit_cast<Bits>(x) & splat<Bits>(~std::uint64_t(0) << 27));
}

/// In double: Dekker's product, whose error is the sum of the halves' products less the rounded one.
template <class T>
  requires std::is_same_v<ScalarOf<T>, double>
KOKKOS_FORCEINLINE_FUNCTION T distance_of_product(T a, T high, T low, T n) {
  const T product = a * high;
  const T a_upper = upper_half(a), a_lower = a - a_upper;
  const T upper = upper_half(high), lower = high - upper;
  const T error = (((a_upper * upper - product) + a_upper * lower) + a_lower * upper) + a_lower * lower;
  return (product - n) + (error + a * low);
}

#if defined(KOKKOSNN_IMPL_HAS_VECTORS)
KOKKOS_FORCEINLINE_FUNCTION Vector<float> distance_of_product(Vector<float> a, Vector<float> high, Vector<float> low,
                                                              Vector<float> n) {
#if defined(__SSE2__) && !defined(__AVX2__)
  // Compilers convert lane by lane.
  const auto upper_lanes = [](__m128 v) KOKKOSNN_IMPL_INLINED { return _mm_cvtps_pd(_mm_movehl_ps(v, v)); };
  const auto lower_lanes = [](__m128 v) KOKKOSNN_IMPL_INLINED { return _mm_cvtps_pd(v); };
  const auto distance    = [&](const auto& half) KOKKOSNN_IMPL_INLINED {
    return _mm_cvtpd_ps(half(__m128(a)) * (half(__m128(high)) + half(__m128(low))) - half(__m128(n)));
  };
  return Vector<float>(_mm_movelh_ps(distance(lower_lanes), distance(upper_lanes)));
#else
  using Wide        = typename VectorOf<double, 2 * vector_bytes>::type;
  const Wide factor = __builtin_convertvector(high, Wide) + __builtin_convertvector(low, Wide);
  const Wide result = __builtin_convertvector(a, Wide) * factor - __builtin_convertvector(n, Wide);
  return __builtin_convertvector(result, Vector<float>);
#endif
}
#endif

/// a * (high + low), high + low being a number in two words, rounded once but for a small part of an ulp. (A product
/// that is rounded before the low word's is added may be next to an exact result: the only element of a row would not
/// be 1.)
template <class T>
KOKKOS_FORCEINLINE_FUNCTION T product_with_words(const T& a, const std::type_identity_t<T>& high,
                                                 const std::type_identity_t<T>& low) {
  if constexpr (has_fma) {
    return fused_multiply_add(a, high, a * low);
  } else {
    return distance_of_product(a, high, low, T{});
  }
}

/// a * b, rounded by itself. A compiler may fuse a product that is written as one with the sums that it is in: where
/// an error is computed from the rounded product, it would count twice.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION T rounded_product(const T& a, const std::type_identity_t<T>& b) {
  if constexpr (has_fma) {
    return fused_multiply_add(a, b, T{});
  } else {
    return a * b;
  }
}

/// Rounding error of product = a * b, a number itself.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION T product_error(const T& a, const T& b, const T& product) {
  if constexpr (has_fma) {
    return fused_multiply_add(a, b, -product);
  } else {
    return distance_of_product(a, b, T{}, product);
  }
}

/// True if vectors T have `look_up`.
template <class T>
inline constexpr bool has_lookup = false;

#if defined(KOKKOSNN_IMPL_HAS_VECTORS)
#if defined(__AVX512F__)
/// Masks of all lanes. Without a mask some intrinsics of GCC 12 have an operand that is not initialised, and it warns
/// in the file that includes this one; with a mask of all lanes they are the same instructions.
inline constexpr __mmask8 all_8_lanes   = 0xffu;
inline constexpr __mmask16 all_16_lanes = 0xffffu;
inline constexpr __mmask32 all_32_lanes = 0xffffffffu;
#endif

/// Looks up the words of a table at the lowest bits of each index, by the one instruction that some machines have for
/// it; a table has as many words as there are lanes.
#if defined(__AVX512F__)
template <>
inline constexpr bool has_lookup<Vector<float>> = true;
template <>
inline constexpr bool has_lookup<Vector<double>> = true;
KOKKOS_FORCEINLINE_FUNCTION BitsOf<Vector<float>> look_up(const BitsOf<Vector<float>>& table,
                                                          const BitsOf<Vector<float>>& index) {
  return BitsOf<Vector<float>>(_mm512_maskz_permutexvar_epi32(all_16_lanes, __m512i(index), __m512i(table)));
}
KOKKOS_FORCEINLINE_FUNCTION BitsOf<Vector<double>> look_up(const BitsOf<Vector<double>>& table,
                                                           const BitsOf<Vector<double>>& index) {
  return BitsOf<Vector<double>>(_mm512_maskz_permutexvar_epi64(all_8_lanes, __m512i(index), __m512i(table)));
}
#elif defined(__AVX2__)
template <>
inline constexpr bool has_lookup<Vector<float>> = true;
KOKKOS_FORCEINLINE_FUNCTION BitsOf<Vector<float>> look_up(const BitsOf<Vector<float>>& table,
                                                          const BitsOf<Vector<float>>& index) {
  return BitsOf<Vector<float>>(_mm256_permutevar8x32_epi32(__m256i(table), __m256i(index)));
}
#elif defined(KOKKOSNN_IMPL_HAS_SVE)
// An index beyond the last lane would give 0.
template <>
inline constexpr bool has_lookup<Vector<float>> = true;
KOKKOS_FORCEINLINE_FUNCTION BitsOf<Vector<float>> look_up(const BitsOf<Vector<float>>& table,
                                                          const BitsOf<Vector<float>>& index) {
  const auto lane = index & std::uint32_t(simd_width<float> - 1);
  return BitsOf<Vector<float>>(SveWords(svtbl_u32(SveWords(table), SveWords(lane))));
}
#if __ARM_FEATURE_SVE_BITS == 512
template <>
inline constexpr bool has_lookup<Vector<double>> = true;
KOKKOS_FORCEINLINE_FUNCTION BitsOf<Vector<double>> look_up(const BitsOf<Vector<double>>& table,
                                                           const BitsOf<Vector<double>>& index) {
  const auto lane = index & std::uint64_t(simd_width<double> - 1);
  return BitsOf<Vector<double>>(SveLongWords(svtbl_u64(SveLongWords(table), SveLongWords(lane))));
}
#endif
#endif
#endif

/// Smaller one of x and bound; a NaN x stays NaN.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION T at_most(T x, T bound) {
  return -at_least(-x, -bound);
}

#if defined(KOKKOSNN_IMPL_HAS_VECTORS)

/// Selects lanes of a and b by their numbers into one vector; b's numbers follow a's.
template <class T, class Half, int... lane>
KOKKOS_FORCEINLINE_FUNCTION Half shuffled(const T& a, const T& b, std::integer_sequence<int, lane...>) {
#if __has_builtin(__builtin_shufflevector)
  return __builtin_shufflevector(a, b, lane...);
#else
  constexpr int lanes = sizeof(T) / sizeof(a[0]);
  return Half{(lane < lanes ? a[lane % lanes] : b[lane % lanes])...};
#endif
}

template <int first, int... lane>
constexpr auto lanes_from(std::integer_sequence<int, lane...>) {
  return std::integer_sequence<int, (first + lane)...>{};
}

/// One half of a vector, of A.
template <int half, class A, class T>
KOKKOS_FORCEINLINE_FUNCTION auto half_of(const T& v) {
  constexpr int lanes = sizeof(T) / sizeof(A) / 2;
  using Half          = typename VectorOf<A, int(sizeof(T) / 2)>::type;
  return shuffled<T, Half>(v, v, lanes_from<half * lanes>(std::make_integer_sequence<int, lanes>{}));
}

/// One half of a vector of float, in double, by the machine's instruction: compilers make several of the cast.
template <int half>
KOKKOS_FORCEINLINE_FUNCTION Vector<double> half_in_double(const Vector<float>& v) {
  const auto narrow = half_of<half, float>(v);
#if defined(__AVX512F__)
  return Vector<double>(_mm512_maskz_cvtps_pd(all_8_lanes, __m256(narrow)));
#elif defined(__AVX2__)
  return Vector<double>(_mm256_cvtps_pd(__m128(narrow)));
#else
  return __builtin_convertvector(narrow, Vector<double>);
#endif
}

/// Interleaves two vectors' lower halves, or their upper ones: a0 b0 a1 b1 ...
template <int half, class A, class T, int... lane>
KOKKOS_FORCEINLINE_FUNCTION T interleaved(const T& a, const T& b, std::integer_sequence<int, lane...>) {
  constexpr int lanes = sizeof...(lane);
  return shuffled<T, T>(a, b, std::integer_sequence<int, (half * lanes / 2 + lane / 2 + lane % 2 * lanes)...>{});
}

template <int half, class A>
KOKKOS_FORCEINLINE_FUNCTION Vector<A> interleaved_half(const Vector<A>& a, const Vector<A>& b) {
  return interleaved<half, A>(a, b, std::make_integer_sequence<int, simd_width<A>>{});
}

/// Transposes: lane j of v[i] is exchanged with lane i of v[j], by as many perfect shuffles as bring every pair
/// together.
template <class A, int left = simd_width<A>, int... i>
KOKKOS_FORCEINLINE_FUNCTION void transpose(Vector<A> (&v)[simd_width<A>], std::integer_sequence<int, i...> each) {
  if constexpr (left > 1) {
    constexpr int half     = simd_width<A> / 2;
    const Vector<A> next[] = {interleaved<i % 2, A>(v[i / 2], v[i / 2 + half], each)...};
    ((v[i] = next[i]), ...);
    transpose<A, left / 2>(v, each);
  }
}

#else

template <int half, class A>
KOKKOS_FORCEINLINE_FUNCTION A interleaved_half(const A& a, const A&) {
  return a;  // not called
}

template <class A, class Each>
KOKKOS_FORCEINLINE_FUNCTION void transpose(A (&)[1], Each) {}

#endif

/// Transposes; one number is its own transpose.
template <class A>
KOKKOS_FORCEINLINE_FUNCTION void transpose(Vector<A> (&v)[simd_width<A>]) {
  transpose<A>(v, std::make_integer_sequence<int, simd_width<A>>{});
}

/// Joins the lanes, by halves.
template <class T, class Join>
KOKKOS_FORCEINLINE_FUNCTION auto fold_lanes(const T& v, const Join& join) {
#if defined(KOKKOSNN_IMPL_HAS_VECTORS)
  using A = std::remove_cvref_t<decltype(v[0])>;
  if constexpr (sizeof(T) > 16) {
    return fold_lanes(join(half_of<0, A>(v), half_of<1, A>(v)), join);
  } else if constexpr (sizeof(T) / sizeof(A) == 4) {
    return join(join(v[0], v[2]), join(v[1], v[3]));
  } else {
    return join(v[0], v[1]);
  }
#else
  return v;
#endif
}

struct JoinSums {
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION T operator()(const T& a, const T& b) const {
    return a + b;
  }
};

struct JoinMaxima {
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION T operator()(const T& a, const T& b) const {
    return max_ignoring_nan(a, b);
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_HOST_VECTOR_HPP
