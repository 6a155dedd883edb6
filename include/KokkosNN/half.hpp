// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_HALF_HPP
#define KOKKOSNN_HALF_HPP

#include <Kokkos_Core.hpp>

#include <compare>
#include <concepts>
#include <cstdint>
#include <type_traits>

#if defined(__F16C__) && !defined(__CUDACC__) && !defined(__HIPCC__)
#define KOKKOSNN_IMPL_HAS_F16C
#include <immintrin.h>
#elif defined(__aarch64__) && defined(__ARM_FP16_FORMAT_IEEE) && !defined(__CUDACC__) && !defined(__HIPCC__)
#define KOKKOSNN_IMPL_HAS_FP16
#endif

// The 16-bit element types. Kokkos has them where a GPU's backend brings them along, and makes them float elsewhere;
// here they have 16 bits in every build.

namespace KokkosNN {
namespace Impl {

/// IEEE 754 binary16: 5 bits of exponent, 11 significant ones. Conversions round to the nearest, ties to even.
struct Binary16 {
  KOKKOS_INLINE_FUNCTION static std::uint16_t bits_of(float value) {
#if defined(KOKKOSNN_IMPL_HAS_F16C)
    return static_cast<std::uint16_t>(_mm_cvtsi128_si32(_mm_cvtps_ph(_mm_set_ss(value), _MM_FROUND_TO_NEAREST_INT)));
#elif defined(KOKKOSNN_IMPL_HAS_FP16)
    return Kokkos::bit_cast<std::uint16_t>(static_cast<__fp16>(value));
#else
    return bits_by_integers(value);
#endif
  }
  KOKKOS_INLINE_FUNCTION static float value_of(std::uint16_t bits) {
#if defined(KOKKOSNN_IMPL_HAS_F16C)
    return _cvtsh_ss(bits);
#elif defined(KOKKOSNN_IMPL_HAS_FP16)
    return static_cast<float>(Kokkos::bit_cast<__fp16>(bits));
#else
    return value_by_integers(bits);
#endif
  }

  /// Conversion on machines without an instruction for it.
  KOKKOS_INLINE_FUNCTION static std::uint16_t bits_by_integers(float value) {
    constexpr std::uint32_t infinity = 0x7f800000u, too_large = 0x477ff000u, least_normal = 0x38800000u;
    const auto bits          = Kokkos::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = bits >> 16 & 0x8000u;
    const std::uint32_t size = bits & 0x7fffffffu;
    std::uint32_t result;
    if (size > infinity) {
      result = 0x7e00u | (size >> 13 & 0x3ffu);
    } else if (size >= too_large) {
      result = 0x7c00u;
    } else if (size < least_normal) {
      // Next to 0.5 a float's last bit is the smallest binary16: the addition rounds.
      result = Kokkos::bit_cast<std::uint32_t>(Kokkos::bit_cast<float>(size) + 0.5f) - 0x3f000000u;
    } else {
      result = (size - (112u << 23) + 0xfffu + (size >> 13 & 1u)) >> 13;
    }
    return static_cast<std::uint16_t>(sign | result);
  }
  KOKKOS_INLINE_FUNCTION static float value_by_integers(std::uint16_t bits) {
    const std::uint32_t sign = (bits & 0x8000u) << 16;
    const std::uint32_t size = (bits & 0x7fffu) << 13;
    if (size >= 0x7c00u << 13) {  // infinity or NaN
      const std::uint32_t quiet = size > 0x7c00u << 13 ? 0x400000u : 0u;
      return Kokkos::bit_cast<float>(sign | size | quiet | 0x70000000u);
    }
    constexpr float up = 5192296858534827628530496329220096.0f;  // 2^112
    return Kokkos::bit_cast<float>(sign | Kokkos::bit_cast<std::uint32_t>(Kokkos::bit_cast<float>(size) * up));
  }
};

/// The upper half of a float's bits ("bfloat16"). Conversions round to the nearest, ties to even.
struct BFloat16 {
  KOKKOS_INLINE_FUNCTION static std::uint16_t bits_of(float value) {
    const auto bits = Kokkos::bit_cast<std::uint32_t>(value);
    // LLVM spills for AMD where integers are compared instead.
    return static_cast<std::uint16_t>(value != value ? bits >> 16 | 0x40u : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
  }
  KOKKOS_INLINE_FUNCTION static float value_of(std::uint16_t bits) {
    return Kokkos::bit_cast<float>(std::uint32_t(bits) << 16);
  }
};

/// A number as a float, rounded to odd: rounding that again, to a format that is two bits shorter or more, rounds once.
template <class T>
KOKKOS_FUNCTION float rounded_to_odd(T value) {
  if constexpr (std::same_as<T, float>) {
    return value;
  } else {
    const double exact = static_cast<double>(value);
    const float near   = static_cast<float>(exact);
    if (static_cast<double>(near) == exact || exact != exact) return near;
    const bool is_beyond = Kokkos::fabs(static_cast<double>(near)) > Kokkos::fabs(exact);
    const auto bits      = Kokkos::bit_cast<std::uint32_t>(near) - (is_beyond ? 1u : 0u);
    return Kokkos::bit_cast<float>(bits | 1u);
  }
}

/// A number that is stored in 16 bits and computed with as a float: it converts as Kokkos' 16-bit types do.
template <class Format>
class Stored16 {
 public:
  KOKKOS_DEFAULTED_FUNCTION Stored16() = default;

  /// Rounds once: to the nearest, ties to even.
  template <class T>
    requires std::is_arithmetic_v<T>
  KOKKOS_FUNCTION Stored16(T value) : m_bits(Format::bits_of(rounded_to_odd(value))) {}

  template <class T>
    requires std::is_arithmetic_v<T>
  KOKKOS_FUNCTION explicit operator T() const {
    return static_cast<T>(Format::value_of(m_bits));
  }

  KOKKOS_FUNCTION friend bool operator==(const Stored16& a, const Stored16& b) { return float(a) == float(b); }
  KOKKOS_FUNCTION friend std::partial_ordering operator<=>(const Stored16& a, const Stored16& b) {
    return float(a) <=> float(b);
  }

 private:
  std::uint16_t m_bits;
};

template <class OfKokkos, class Format>
using SixteenBits = std::conditional_t<sizeof(OfKokkos) == 2, OfKokkos, Stored16<Format>>;

}  // namespace Impl

/// IEEE 754 binary16: Kokkos::Experimental::half_t where that has 16 bits (Kokkos with a GPU's backend), otherwise a
/// type of KokkosNN's own, which converts from and to arithmetic types, compares, and is trivially copyable.
using half_t = Impl::SixteenBits<Kokkos::Experimental::half_t, Impl::Binary16>;

/// bfloat16, the upper half of a float's bits: Kokkos::Experimental::bhalf_t or a type of KokkosNN's own, as half_t.
using bhalf_t = Impl::SixteenBits<Kokkos::Experimental::bhalf_t, Impl::BFloat16>;

}  // namespace KokkosNN

#endif  // KOKKOSNN_HALF_HPP
