// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_HOST_VECTOR_MEMORY_HPP
#define KOKKOSNN_IMPL_HOST_VECTOR_MEMORY_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/half.hpp>
#include <KokkosNN/impl/host/vector.hpp>
#include <KokkosNN/impl/inputs/rows.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

// Loads and stores of a host's vectors; elements of 16 bits are converted on the way.

namespace KokkosNN::Impl {

/// Vector type of elements of T once they are loaded.
template <class T>
using Loaded = Vector<accumulator_t<T>>;

/// Number of elements that are loaded at once.
template <class T>
inline constexpr int lanes_loaded = sizeof(Loaded<T>) / sizeof(accumulator_t<T>);

#if defined(KOKKOSNN_IMPL_HAS_VECTORS)
/// Bits of as many elements of 16 bits as a vector of floats has lanes.
typedef std::uint16_t HalfBits __attribute__((vector_size(vector_bytes / 2)));

/// Moves each element's bits to the lower half of a float's bits, whose upper half is 0, and back, by the machine's
/// instruction: compilers make several of the cast.
KOKKOS_FORCEINLINE_FUNCTION BitsOf<Vector<float>> in_lower_halves(const HalfBits& bits) {
#if defined(__AVX512F__)
  return BitsOf<Vector<float>>(_mm512_maskz_cvtepu16_epi32(all_16_lanes, __m256i(bits)));
#elif defined(__AVX2__)
  return BitsOf<Vector<float>>(_mm256_cvtepu16_epi32(__m128i(bits)));
#else
  return __builtin_convertvector(bits, BitsOf<Vector<float>>);
#endif
}
KOKKOS_FORCEINLINE_FUNCTION HalfBits lower_halves(const BitsOf<Vector<float>>& bits) {
#if defined(__AVX512F__)
  return HalfBits(_mm512_maskz_cvtepi32_epi16(all_16_lanes, __m512i(bits)));
#elif defined(__AVX2__)
  const auto words = __m256i(bits);
  return HalfBits(_mm_packus_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
#else
  return __builtin_convertvector(bits, HalfBits);
#endif
}

template <class T>
KOKKOS_FORCEINLINE_FUNCTION Vector<float> widened(const HalfBits& bits) {
  if constexpr (std::is_same_v<T, bhalf_t>) {
    return Vector<float>(in_lower_halves(bits) << 16);
  } else {
#if defined(__AVX512F__)
    return Vector<float>(_mm512_maskz_cvtph_ps(all_16_lanes, __m256i(bits)));
#elif defined(__AVX2__) && defined(__F16C__)
    return Vector<float>(_mm256_cvtph_ps(__m128i(bits)));
#elif defined(KOKKOSNN_IMPL_HAS_SVE)
    const svuint32_t lanes = SveWords(in_lower_halves(bits));
    return Vector<float>(SveFloats(svcvt_f32_f16_x(svptrue_b32(), svreinterpret_f16_u32(lanes))));
#elif defined(__aarch64__)
    return Vector<float>(vcvt_f32_f16(float16x4_t(bits)));
#else
    Vector<float> values;
    for (int l = 0; l < simd_width<float>; ++l) values[l] = Binary16::value_of(bits[l]);
    return values;
#endif
  }
}

/// Class of subnormal numbers for _mm512_fpclass_ps_mask. The machine's instruction that rounds to bfloat16 takes them
/// for 0, and there are hardly ever any.
inline constexpr int subnormal = 0x20;

/// Rounds floats to their upper halves as BFloat16 does; the lower ones are undefined.
KOKKOS_FORCEINLINE_FUNCTION BitsOf<Vector<float>> rounded_to_upper_halves(const Vector<float>& values) {
  using Bits      = BitsOf<Vector<float>>;
  const Bits bits = Bits(values);
  return values == values ? bits + ((bits >> 16 & 1u) + 0x7fffu) : bits | 0x400000u;
}

/// Rounds to nearest, ties to even.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION HalfBits rounded(const Vector<float>& values) {
  if constexpr (std::is_same_v<T, bhalf_t>) {
#if defined(__AVX512BF16__) && defined(__AVX512DQ__)
    if (__builtin_expect(_mm512_fpclass_ps_mask(__m512(values), subnormal) == 0, true)) {
      return HalfBits(_mm512_cvtneps_pbh(__m512(values)));
    }
#endif
    return lower_halves(rounded_to_upper_halves(values) >> 16);
  } else {
#if defined(__AVX512F__)
    return HalfBits(_mm512_maskz_cvtps_ph(all_16_lanes, __m512(values), _MM_FROUND_TO_NEAREST_INT));
#elif defined(__AVX2__) && defined(__F16C__)
    return HalfBits(_mm256_cvtps_ph(__m256(values), _MM_FROUND_TO_NEAREST_INT));
#elif defined(KOKKOSNN_IMPL_HAS_SVE)
    const svfloat16_t lanes = svcvt_f16_f32_x(svptrue_b32(), SveFloats(values));
    return lower_halves(BitsOf<Vector<float>>(SveWords(svreinterpret_u32_f16(lanes))));
#elif defined(__aarch64__)
    return HalfBits(vcvt_f16_f32(float32x4_t(values)));
#else
    HalfBits bits;
    for (int l = 0; l < simd_width<float>; ++l) bits[l] = Binary16::bits_of(values[l]);
    return bits;
#endif
  }
}
#endif

/// True if elements of T are converted in vectors; compilers of device code have none.
#if defined(KOKKOSNN_IMPL_HAS_VECTORS)
template <class T>
inline constexpr bool has_half_vectors = is_half<std::remove_const_t<T>>;
#else
template <class T>
inline constexpr bool has_half_vectors = false;
#endif

/// Loads from and stores to any address.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION Loaded<T> load_vector(const T* from) {
#if defined(KOKKOSNN_IMPL_HAS_VECTORS)
  if constexpr (has_half_vectors<T>) {
    HalfBits bits;
    std::memcpy(&bits, from, sizeof bits);
    return widened<T>(bits);
  }
#endif
  if constexpr (!is_half<T>) {
    Loaded<T> v;
    std::memcpy(&v, from, sizeof v);
    return v;
  } else if constexpr (!has_half_vectors<T>) {
    return static_cast<Loaded<T>>(*from);
  }
}
template <class T>
KOKKOS_FORCEINLINE_FUNCTION void store_vector(T* to, const Loaded<T>& v) {
#if defined(KOKKOSNN_IMPL_HAS_VECTORS)
  if constexpr (has_half_vectors<T>) {
    const HalfBits bits = rounded<T>(v);
    std::memcpy(static_cast<void*>(to), &bits, sizeof bits);
    return;
  }
#endif
  if constexpr (!is_half<T>) {
    std::memcpy(to, &v, sizeof v);
  } else if constexpr (!has_half_vectors<T>) {
    *to = static_cast<T>(v);
  }
}

#if defined(KOKKOSNN_IMPL_HAS_VECTORS) && defined(__AVX512F__)
/// Mask of the first n lanes.
KOKKOS_FORCEINLINE_FUNCTION std::uint16_t lane_mask(int n) { return static_cast<std::uint16_t>((1u << n) - 1); }
#endif

#if defined(KOKKOSNN_IMPL_HAS_VECTORS) && defined(__AVX2__) && !defined(__AVX512F__)
/// Mask of the first n lanes of a vector of A.
template <class A>
KOKKOS_FORCEINLINE_FUNCTION __m256i lane_mask(int n) {
  if constexpr (sizeof(A) == 4) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  } else {
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3));
  }
}
#endif

/// Copies up to `most` elements, a power of two, by halves: compilers turn a loop into a call of memcpy.
template <int most, class T>
KOKKOS_FORCEINLINE_FUNCTION void copy_few(T* to, const T* from, int n) {
  if ((n & most) != 0) {
    std::memcpy(static_cast<void*>(to), from, most * sizeof(T));
    to += most;
    from += most;
  }
  if constexpr (most > 1) copy_few<most / 2>(to, from, n);
}

/// Stores the first n lanes, by a mask if the machine has masks.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION void store_lanes(T* to, const Loaded<T>& v, int n) {
#if defined(KOKKOSNN_IMPL_HAS_VECTORS) && defined(__AVX512F__)
  if constexpr (std::is_same_v<T, float>) return _mm512_mask_storeu_ps(to, lane_mask(n), __m512(v));
  if constexpr (std::is_same_v<T, double>)
    return _mm512_mask_storeu_pd(to, static_cast<__mmask8>(lane_mask(n)), __m512d(v));
#if defined(__AVX512BW__) && defined(__AVX512VL__)
  if constexpr (has_half_vectors<T>) return _mm256_mask_storeu_epi16(to, lane_mask(n), __m256i(rounded<T>(v)));
#endif
#elif defined(KOKKOSNN_IMPL_HAS_VECTORS) && defined(__AVX2__)
  if constexpr (std::is_same_v<T, float>) return _mm256_maskstore_ps(to, lane_mask<T>(n), __m256(v));
  if constexpr (std::is_same_v<T, double>) return _mm256_maskstore_pd(to, lane_mask<T>(n), __m256d(v));
#endif
  T each[lanes_loaded<T>];
  store_vector(each, v);
  copy_few<lanes_loaded<T>>(to, each, n);
}
template <class T>
KOKKOS_FORCEINLINE_FUNCTION Loaded<T> load_lanes(const T* from, int n, accumulator_t<T> pad) {
#if defined(KOKKOSNN_IMPL_HAS_VECTORS) && defined(__AVX512F__)
  const auto pads = splat<Loaded<T>>(pad);
  if constexpr (std::is_same_v<T, float>) return Loaded<T>(_mm512_mask_loadu_ps(__m512(pads), lane_mask(n), from));
  if constexpr (std::is_same_v<T, double>) {
    return Loaded<T>(_mm512_mask_loadu_pd(__m512d(pads), static_cast<__mmask8>(lane_mask(n)), from));
  }
#if defined(__AVX512BW__) && defined(__AVX512VL__)
  if constexpr (has_half_vectors<T>) {
    const auto values = widened<T>(HalfBits(_mm256_maskz_loadu_epi16(lane_mask(n), from)));
    return Loaded<T>(_mm512_mask_mov_ps(__m512(pads), lane_mask(n), __m512(values)));
  }
#endif
#elif defined(KOKKOSNN_IMPL_HAS_VECTORS) && defined(__AVX2__)
  if constexpr (!is_half<T>) {
    const __m256i lanes = lane_mask<T>(n);
    const auto pads     = splat<Loaded<T>>(pad);
    if constexpr (sizeof(T) == 4) {
      return Loaded<T>(_mm256_blendv_ps(__m256(pads), _mm256_maskload_ps(from, lanes), _mm256_castsi256_ps(lanes)));
    } else {
      return Loaded<T>(_mm256_blendv_pd(__m256d(pads), _mm256_maskload_pd(from, lanes), _mm256_castsi256_pd(lanes)));
    }
  }
#endif
  std::remove_const_t<T> each[lanes_loaded<T>];
  store_vector(each, splat<Loaded<T>>(pad));
  copy_few<lanes_loaded<T>>(each, from, n);
  return load_vector(each);
}

/// Loads `count` elements, at most a vector. It touches elements of the row only: others may be another thread's, which
/// is writing them.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION Loaded<T> load_up_to(const T* from, int count, accumulator_t<T> pad = accumulator_t<T>(0)) {
  return count == lanes_loaded<T> ? load_vector(from) : load_lanes(from, count, pad);
}

template <class T>
KOKKOS_FORCEINLINE_FUNCTION void store_up_to(T* to, const Loaded<T>& v, int count) {
  count == lanes_loaded<T> ? store_vector(to, v) : store_lanes(to, v, count);
}

/// Stores past the caches, to an address that is a multiple of the vector's size in memory; without an instruction for
/// that it is an ordinary store. `fence_nontemporal_stores` must precede reads by another thread.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION void store_vector_nontemporal(T* to, const Loaded<T>& v) {
#if defined(KOKKOSNN_IMPL_HAS_VECTORS) && defined(__AVX512F__)
  if constexpr (has_half_vectors<T>) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to), __m256i(rounded<T>(v)));
  } else {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), __m512i(v));
  }
#elif defined(KOKKOSNN_IMPL_HAS_VECTORS) && defined(__AVX2__)
  if constexpr (has_half_vectors<T>) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to), __m128i(rounded<T>(v)));
  } else {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to), __m256i(v));
  }
#elif defined(KOKKOSNN_IMPL_HAS_VECTORS) && defined(__SSE2__)
  if constexpr (has_half_vectors<T>) {
    store_vector(to, v);
  } else {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to), __m128i(v));
  }
#else
  store_vector(to, v);
#endif
}
KOKKOS_INLINE_FUNCTION void fence_nontemporal_stores() {
#if defined(KOKKOSNN_IMPL_HAS_VECTORS) && defined(__SSE2__)
  _mm_sfence();
#endif
}

/// Number of elements from `pointer` to the next boundary at which `vectors` vectors can be stored past the caches.
template <int vectors = 1, class T>
KOKKOS_FORCEINLINE_FUNCTION int elements_to_boundary(const T* pointer) {
  constexpr int count = vectors * lanes_loaded<T>;
  return (count - pack_phase<T, count>(pointer)) % count;
}

/// Elements of two vectors, in an order that is private to loads and stores.
template <class T>
struct TwoVectors {
  Loaded<T> first;
  Loaded<T> second;
};

#if defined(KOKKOSNN_IMPL_HAS_VECTORS)
/// True if elements of these types are moved by two vectors with less work than one by one, all in one order: bfloat16
/// is the upper half of a float, so a vector's even elements are shifted to their place and its odd ones are in theirs,
/// and nothing is shuffled.
template <class... T>
inline constexpr bool moves_two_vectors = (std::is_same_v<std::remove_const_t<T>, bhalf_t> && ...);

KOKKOS_FORCEINLINE_FUNCTION TwoVectors<bhalf_t> load_two_vectors(const bhalf_t* from) {
  BitsOf<Vector<float>> bits;
  std::memcpy(&bits, from, sizeof bits);
  return {Vector<float>(bits << 16), Vector<float>(bits & 0xffff0000u)};
}

KOKKOS_FORCEINLINE_FUNCTION BitsOf<Vector<float>> two_vectors_rounded(const TwoVectors<bhalf_t>& v) {
#if defined(__AVX512BF16__) && defined(__AVX512DQ__) && defined(__AVX512BW__)
  const auto first  = _mm512_fpclass_ps_mask(__m512(v.first), subnormal);
  const auto second = _mm512_fpclass_ps_mask(__m512(v.second), subnormal);
  if (__builtin_expect(_kortestz_mask16_u8(first, second), true)) {
    // Even elements are the lower half of the instruction's result.
    typedef std::uint16_t Index __attribute__((vector_size(64)));
    constexpr Index turns{0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                          8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    return BitsOf<Vector<float>>(_mm512_maskz_permutexvar_epi16(
        all_32_lanes, __m512i(turns), __m512i(_mm512_cvtne2ps_pbh(__m512(v.second), __m512(v.first)))));
  }
#endif
  return rounded_to_upper_halves(v.first) >> 16 | (rounded_to_upper_halves(v.second) & 0xffff0000u);
}
#else
template <class... T>
inline constexpr bool moves_two_vectors = false;
#endif

/// Stores two vectors in the order in which they were loaded; past the caches if `nontemporal_stores`, to a multiple of
/// their size in memory.
template <bool nontemporal_stores, class T>
KOKKOS_FORCEINLINE_FUNCTION void store_two_vectors(T* to, const TwoVectors<T>& v) {
  const auto bits = two_vectors_rounded(v);
  if constexpr (nontemporal_stores) {
    store_vector_nontemporal(reinterpret_cast<float*>(to), Vector<float>(bits));
  } else {
    std::memcpy(static_cast<void*>(to), &bits, sizeof bits);
  }
}

#if defined(KOKKOSNN_IMPL_HAS_VECTORS)
template <class V, int... lane>
constexpr V numbered(std::integer_sequence<int, lane...>) {
  return V{lane...};
}
#endif

/// Numbers 0, 1, 2, ... of the lanes of V, a vector of numbers or of integers.
template <class V>
KOKKOS_FORCEINLINE_FUNCTION V lane_numbers() {
#if defined(KOKKOSNN_IMPL_HAS_VECTORS)
  if constexpr (!std::is_arithmetic_v<V>) {
    return numbered<V>(std::make_integer_sequence<int, int(sizeof(V) / sizeof(V{}[0]))>{});
  }
#endif
  return V{};
}

/// First n lanes of v, and behind them those of another vector.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION T first_lanes(const T& v, int n, const T& behind = T{}) {
#if defined(KOKKOSNN_IMPL_HAS_VECTORS)
  if constexpr (!std::is_arithmetic_v<T>) {
    using Mask = decltype(v < v);
    return lane_numbers<Mask>() < n - Mask{} ? v : behind;
  }
#endif
  return n > 0 ? v : behind;
}

/// Loads as many bytes as a vector of A has lanes, each into its lane's bits.
template <class A>
KOKKOS_FORCEINLINE_FUNCTION BitsOf<Vector<A>> load_bytes(const std::uint8_t* from) {
#if defined(KOKKOSNN_IMPL_HAS_VECTORS)
  typedef std::uint8_t Bytes __attribute__((vector_size(simd_width<A>)));
  Bytes bytes;
  std::memcpy(&bytes, from, sizeof bytes);
#if defined(__AVX512F__)
  __m128i low = _mm_setzero_si128();
  std::memcpy(&low, &bytes, sizeof bytes);
  if constexpr (sizeof(A) == 4) return BitsOf<Vector<A>>(_mm512_maskz_cvtepu8_epi32(all_16_lanes, low));
  if constexpr (sizeof(A) == 8) return BitsOf<Vector<A>>(_mm512_maskz_cvtepu8_epi64(all_8_lanes, low));
#elif defined(__AVX2__)
  __m128i low = _mm_setzero_si128();
  std::memcpy(&low, &bytes, sizeof bytes);
  if constexpr (sizeof(A) == 4) return BitsOf<Vector<A>>(_mm256_cvtepu8_epi32(low));
  if constexpr (sizeof(A) == 8) return BitsOf<Vector<A>>(_mm256_cvtepu8_epi64(low));
#else
  return __builtin_convertvector(bytes, BitsOf<Vector<A>>);
#endif
#else
  return *from;
#endif
}

/// Prefetches the cache line at an address. Forced inline: g++ takes a function of nothing else for one without
/// effects, and drops its calls.
KOKKOS_FORCEINLINE_FUNCTION void prefetch_line([[maybe_unused]] const void* address) {
#if defined(KOKKOSNN_IMPL_HAS_VECTORS)
  __builtin_prefetch(address, 0, 2);
#endif
}

/// Prefetches n elements, by lines of `line` bytes.
template <std::size_t line, class A>
KOKKOS_FORCEINLINE_FUNCTION void prefetch_elements(const A* from, int n) {
  const char* const bytes = reinterpret_cast<const char*>(from);
  for (int i = 0; i < n * int(sizeof(A)); i += int(line)) prefetch_line(bytes + i);
}

#if defined(KOKKOSNN_IMPL_HAS_VECTORS)

/// Loads floats from memory as a vector of double; cheaper than splitting a vector.
KOKKOS_FORCEINLINE_FUNCTION Vector<double> load_in_double(const float* from) {
#if defined(__AVX512F__)
  return Vector<double>(_mm512_maskz_cvtps_pd(all_8_lanes, _mm256_loadu_ps(from)));
#elif defined(__AVX2__)
  return Vector<double>(_mm256_cvtps_pd(_mm_loadu_ps(from)));
#else
  VectorOf<float, vector_bytes / 2>::type narrow;
  std::memcpy(&narrow, from, sizeof narrow);
  return __builtin_convertvector(narrow, Vector<double>);
#endif
}

#endif

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_HOST_VECTOR_MEMORY_HPP
