// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_FLOAT8_HPP
#define KOKKOSNN_FLOAT8_HPP

#include <KokkosNN/half.hpp>

#include <Kokkos_Core.hpp>

#include <compare>
#include <cstdint>
#include <type_traits>

// An element type of 8 bits, which results of rows are stored in (quantized.hpp).

namespace KokkosNN {
namespace Impl {

/// A sign, 4 bits of exponent with a bias of 7, 3 bits of mantissa; the largest number is 448, one code of either sign
/// is NaN, and there is no infinity.
struct Float8E4M3 {
  static constexpr std::uint8_t nan     = 0x7f;
  static constexpr std::uint8_t largest = 0x7e;

  /// Rounds to the nearest, ties to even; what is larger than 448, infinity too, becomes 448.
  KOKKOS_INLINE_FUNCTION static std::uint8_t bits_of(float value) {
    constexpr std::uint32_t infinity = 0x7f800000u, most = 0x43e00000u, least_normal = 0x3c800000u;
    const auto bits          = Kokkos::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = bits >> 24 & 0x80u;
    const std::uint32_t size = bits & 0x7fffffffu;
    // Next to 2^14 a float's last bit is the smallest float8: the addition rounds.
    const float among_units      = Kokkos::bit_cast<float>(size < least_normal ? size : 0u) + 16384.0f;
    const std::uint32_t of_units = Kokkos::bit_cast<std::uint32_t>(among_units) - 0x46800000u;
    const std::uint32_t normal   = (size - (120u << 23) + 0x7ffffu + (size >> 20 & 1u)) >> 20;
    const std::uint32_t rounded  = size < least_normal ? of_units : normal;
    const std::uint32_t number   = sign | (size > most ? largest : rounded);
    return static_cast<std::uint8_t>(size > infinity ? nan : number);
  }

  KOKKOS_INLINE_FUNCTION static float value_of(std::uint8_t code) {
    constexpr float up       = 1329227995784915872903807060280344576.0f;  // 2^120
    const std::uint32_t size = code & 0x7fu;
    if (size == nan) return Kokkos::Experimental::quiet_NaN_v<float>;
    const float number = Kokkos::bit_cast<float>(size << 20) * up;
    return code > 0x7fu ? -number : number;
  }
};

}  // namespace Impl

/// A number of 8 bits, "e4m3": 3 bits of mantissa, up to 448, the smallest one 2^-9, NaN, no infinity. It has the bits
/// of CUDA's __nv_fp8_e4m3 and of float8_e4m3fn elsewhere. It is stored, not computed with: it converts from and to
/// arithmetic types and compares.
///
/// Conversions to it round once, to the nearest, ties to even, and saturate: a number or infinity beyond 448 is 448 of
/// its sign. Each NaN becomes the code 0x7f; the code 0xff is NaN, too. Conversions from it are exact, but to integers.
class float8_e4m3 {
 public:
  KOKKOS_DEFAULTED_FUNCTION float8_e4m3() = default;

  template <class T>
    requires std::is_arithmetic_v<T>
  KOKKOS_FUNCTION explicit float8_e4m3(T value) : m_bits(Impl::Float8E4M3::bits_of(Impl::rounded_to_odd(value))) {}

  template <class T>
    requires std::is_arithmetic_v<T>
  KOKKOS_FUNCTION explicit operator T() const {
    return static_cast<T>(Impl::Float8E4M3::value_of(m_bits));
  }

  /// The number of a code.
  KOKKOS_FUNCTION static float8_e4m3 from_bits(std::uint8_t bits) {
    float8_e4m3 number;
    number.m_bits = bits;
    return number;
  }
  KOKKOS_FUNCTION std::uint8_t bits() const { return m_bits; }

  KOKKOS_FUNCTION friend bool operator==(const float8_e4m3& a, const float8_e4m3& b) { return float(a) == float(b); }
  KOKKOS_FUNCTION friend std::partial_ordering operator<=>(const float8_e4m3& a, const float8_e4m3& b) {
    return float(a) <=> float(b);
  }

 private:
  std::uint8_t m_bits;
};

}  // namespace KokkosNN

#endif  // KOKKOSNN_FLOAT8_HPP
