// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_INPUTS_QUANTIZED_HPP
#define KOKKOSNN_IMPL_INPUTS_QUANTIZED_HPP

#include <KokkosNN/float8.hpp>
#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

// Results of rows in 8 bits.

namespace KokkosNN::Impl {

/// Factor of a row's results before they are rounded, and its inverse, the scale of the row.
template <class A>
struct QuantizedScale {
  float scale    = 1;
  A inverse      = 1;
  bool is_number = true;  ///< else the row has a result that is infinite or NaN
};

/// How results are stored: as int8 or float8, with a scale a row or none.
struct QuantizedFormat {
  bool is_float8;
  bool has_scales;

  KOKKOS_INLINE_FUNCTION float limit() const { return is_float8 ? 448.0f : 127.0f; }

  /// Scale of a row whose results are at most `largest` in size. It is a normal number, and so is its inverse.
  template <class A>
  KOKKOS_INLINE_FUNCTION QuantizedScale<A> scale_of(A largest) const {
    constexpr float least = 0x1p-126f;
    if (!has_scales || largest == A(0)) return {};
    const float scale = static_cast<float>(largest) / limit();
    if (!(scale <= Kokkos::Experimental::finite_max_v<float>)) {
      return {Kokkos::Experimental::quiet_NaN_v<float>, A(0), false};
    }
    const float used = scale < least ? least : scale;
    return {used, A(1) / static_cast<A>(used), true};
  }

  /// Codes of results.
  template <class A, int V>
  KOKKOS_INLINE_FUNCTION Pack<std::uint8_t, V> codes(const Pack<A, V>& results, const QuantizedScale<A>& by) const {
    Pack<std::uint8_t, V> codes;
    if (is_float8) {
      for (int v = 0; v < V; ++v) codes[v] = float8_code(static_cast<float>(results[v] * by.inverse));
      if (by.is_number) return codes;
    } else if (by.is_number) {
      for (int v = 0; v < V; ++v) codes[v] = int8_code(static_cast<float>(results[v] * by.inverse));
      return codes;
    }
    for (int v = 0; v < V; ++v) codes[v] = is_float8 ? Float8E4M3::nan : std::uint8_t(0);
    return codes;
  }

 private:
  /// The nearest integer, ties to even, of a number from -128 to 127: behind the addition it is the float's low bits.
  KOKKOS_FORCEINLINE_FUNCTION static std::uint8_t int8_code(float value) {
    return static_cast<std::uint8_t>(Kokkos::bit_cast<std::uint32_t>(value + 12582912.0f));  // 1.5 * 2^23
  }

  KOKKOS_FORCEINLINE_FUNCTION static std::uint8_t float8_code(float value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
    std::uint16_t codes;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(codes) : "f"(0.0f), "f"(value));
    return static_cast<std::uint8_t>(codes);
#else
    return Float8E4M3::bits_of(value);
#endif
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_INPUTS_QUANTIZED_HPP
