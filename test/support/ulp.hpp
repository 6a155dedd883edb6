// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_TEST_SUPPORT_ULP_HPP
#define KOKKOSNN_TEST_SUPPORT_ULP_HPP

#include "types.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace KokkosNNTest {

/// 2^exponent, of which a double has one.
constexpr double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

/// The power of two at or below |value|, within doubles; 0 below their normal range. As std::ilogb has it, which takes
/// many times as long.
inline double power_at_or_below(long double value) {
  const long double size = std::fabs(value);
  auto bits              = std::bit_cast<std::uint64_t>(static_cast<double>(size));
  if (std::bit_cast<double>(bits) > size) --bits;
  return std::bit_cast<double>(bits & 0x7ff0000000000000);
}

/// The smallest normal number of format T.
template <class T>
constexpr long double smallest_normal() {
  return power_of_two(Format<T>::min_exponent);
}

/// The distance of neighbouring numbers of format T around |value|; below the normal range that of its smallest
/// numbers.
template <class T>
long double ulp_at(long double value) {
  constexpr int below = Format<T>::digits - 1;
  if (!(std::fabs(value) <= std::numeric_limits<double>::max())) return std::ldexp(1.0L, std::ilogb(value) - below);
  return std::max<long double>(power_at_or_below(value), smallest_normal<T>()) * power_of_two(-below);
}

/// The largest finite number of format T.
template <class T>
long double largest() {
  return std::ldexp(2 - std::ldexp(1.0L, 1 - Format<T>::digits), 1 - Format<T>::min_exponent);
}

/// `value` rounded once, to nearest even, to format T.
template <class T>
long double correctly_rounded(long double value) {
  const long double ulp = ulp_at<T>(value);
  // Far from 0 a number has no digits behind the point; unlike std::nearbyint an addition takes little time.
  constexpr long double far = 1.5L / std::numeric_limits<long double>::epsilon();
  return std::copysign((value / ulp + far - far) * ulp, value);
}

/// How far `value` is from `expected`, in units in the last place of T at max(|expected|, magnitude). NaN only equals
/// NaN, an infinity only itself or what T has no finite number for: infinitely far otherwise.
template <class T>
double ulp_error(long double value, long double expected, long double magnitude = 0) {
  const double far = std::numeric_limits<double>::infinity();
  if (std::isnan(expected)) return std::isnan(value) ? 0 : far;
  if (std::isinf(expected)) return value == expected ? 0 : far;
  if (std::isinf(value) && std::fabs(expected) > largest<T>())
    return std::signbit(value) == std::signbit(expected) ? 0 : far;
  if (!std::isfinite(value)) return far;
  const long double scale = ulp_at<T>(std::max(std::fabs(expected), magnitude));
  return static_cast<double>(std::fabs(value - expected) / scale);
}

/// Error of results between 0 and 1, as the documentation states it: float and double in ulp over the normal range and
/// within the smallest normal number below; 16-bit types in steps from the correctly rounded number.
template <class T>
double probability_error(long double value, long double expected) {
  const double far = std::numeric_limits<double>::infinity();
  if (!std::isfinite(value) || !std::isfinite(expected)) return ulp_error<T>(value, expected);
  // Arithmetic is in float for the 16-bit types, so bfloat16, which has float's range, ends where float's normals end.
  const bool has_subnormals = is_16_bit<T> && Format<T>::min_exponent > Format<float>::min_exponent;
  if (!has_subnormals && std::fabs(expected) < smallest_normal<T>()) {
    return std::fabs(value - expected) < smallest_normal<T>() ? 0 : far;
  }
  return ulp_error<T>(value, is_16_bit<T> ? correctly_rounded<T>(expected) : expected);
}

/// The promised error: 4 ulp for float and double; for the 16-bit types the correctly rounded number or its neighbour.
template <class T>
inline constexpr double promised_ulp = is_16_bit<T> ? 1.0 : 4.0;

/// The promised error of results that are measured against a magnitude (log_softmax, logsumexp), where the half ulp of
/// rounding to T counts: 1 + 1/2 for a neighbour of the correctly rounded number.
template <class T>
inline constexpr double promised_log_ulp = is_16_bit<T> ? 1.5 : 4.0;

}  // namespace KokkosNNTest

#endif  // KOKKOSNN_TEST_SUPPORT_ULP_HPP
