// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_MATH_FIXED_SUM_HPP
#define KOKKOSNN_IMPL_MATH_FIXED_SUM_HPP

#include <KokkosNN/impl/math/double_double.hpp>
#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

#include <bit>
#include <cstdint>
#include <type_traits>

// Sums in fixed point. Integers are added without a rounding, so that a sum has the same bits in any order, by atomics
// of any number of threads.

namespace KokkosNN::Impl {

/// 2^n, a normal number.
KOKKOS_INLINE_FUNCTION double normal_power_of_two(int n) {
  return Kokkos::bit_cast<double>(static_cast<std::uint64_t>(n + 1023) << 52);
}

/// Sum of numbers of magnitude 2 at most: integers in units of 2^-k, 2^-2k and so on, where 2^k, `unit`, leaves room
/// for all that are added.
template <int count>
struct FixedSum {
  static_assert(count == 2 || count == 3);

  std::int64_t words[count] = {};

  /// The unit of sums of `terms` numbers.
  static double unit_for(std::int64_t terms) {
    return normal_power_of_two(61 - static_cast<int>(std::bit_width(static_cast<std::uint64_t>(terms))));
  }

  /// Adds a number; its truncation to the last word's unit is the only error.
  KOKKOS_INLINE_FUNCTION void add(double value, double unit) {
    KOKKOSNN_IMPL_UNROLL
    for (int w = 0; w < count; ++w) {
      value *= unit;
      const auto whole = static_cast<std::int64_t>(value);
      words[w] += whole;
      value -= static_cast<double>(whole);  // exact, as a double's own bits are
    }
  }

  /// The sum in a type W: float, double or two words.
  template <class W>
  KOKKOS_INLINE_FUNCTION W value(double unit) const {
    const double inverse = 1 / unit;
    double rest          = 0;
    for (int w = count - 1; w > 0; --w) rest = (rest + static_cast<double>(words[w])) * inverse;
    if constexpr (std::is_floating_point_v<W>) {
      return static_cast<W>((static_cast<double>(words[0]) + rest) * inverse);
    } else {
      constexpr std::int64_t half = std::int64_t(1) << 32;
      const std::int64_t high     = words[0] / half;
      const W halves = W{static_cast<double>(high) * half} + W{static_cast<double>(words[0] - high * half)};
      return (halves + W{rest}) * inverse;
    }
  }
};

/// The key of NaN.
inline constexpr std::uint64_t key_of_nan = ~std::uint64_t(0);

/// Key of a number, unsigned, in the order of numbers: 0 is below that of -inf, and that of NaN is the largest.
template <class A>
KOKKOS_INLINE_FUNCTION std::uint64_t ordered_key(A x) {
  using Bits          = std::conditional_t<sizeof(A) == 4, std::uint32_t, std::uint64_t>;
  constexpr Bits sign = Bits(1) << (8 * sizeof(A) - 1);
  if (x != x) return key_of_nan;
  const auto bits = Kokkos::bit_cast<Bits>(x);
  return (bits & sign) != 0 ? static_cast<Bits>(~bits) : static_cast<Bits>(bits | sign);
}

/// The number of a key; that of 0 is -inf.
template <class A>
KOKKOS_INLINE_FUNCTION A number_of_key(std::uint64_t key) {
  using Bits          = std::conditional_t<sizeof(A) == 4, std::uint32_t, std::uint64_t>;
  constexpr Bits sign = Bits(1) << (8 * sizeof(A) - 1);
  if (key == 0) return -Kokkos::Experimental::infinity_v<A>;
  if (key == key_of_nan) return Kokkos::Experimental::quiet_NaN_v<A>;
  const auto bits = static_cast<Bits>(key);
  return Kokkos::bit_cast<A>((bits & sign) != 0 ? static_cast<Bits>(bits & ~sign) : static_cast<Bits>(~bits));
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_MATH_FIXED_SUM_HPP
