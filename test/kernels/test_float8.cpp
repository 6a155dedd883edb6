// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/tensor.hpp"

#include <KokkosNN/float8.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

// The element type of 8 bits.

namespace KokkosNNTest {
namespace {

using KokkosNN::float8_e4m3;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan      = std::numeric_limits<float>::quiet_NaN();

/// Codes of float8 by the format's definition: a sign, 4 bits of exponent, 3 of mantissa.
double value_by_definition(int code) {
  const int exponent = code >> 3 & 15, mantissa = code & 7;
  if (exponent == 15 && mantissa == 7) return nan;
  const double size = exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
  return code >= 128 ? -size : size;
}

TEST(Float8, HasTheNumbersOfItsDefinition) {
  for (int code = 0; code < 256; ++code) {
    const double wanted = value_by_definition(code);
    const auto number   = float8_e4m3::from_bits(static_cast<std::uint8_t>(code));
    EXPECT_TRUE(same_bits(static_cast<double>(number), wanted) || (std::isnan(wanted) && std::isnan(double(number))))
        << code;
    if (!std::isnan(wanted)) EXPECT_EQ(float8_e4m3(wanted).bits(), code);
    if (!std::isnan(wanted)) EXPECT_EQ(float8_e4m3(static_cast<float>(wanted)).bits(), code);
  }
}

TEST(Float8, RoundsToTheNearestAndTiesToEven) {
  for (int code = 0; code < 0x7e; ++code) {
    const double below = value_by_definition(code), above = value_by_definition(code + 1);
    const double middle = (below + above) / 2;
    for (const double sign : {1.0, -1.0}) {
      const int of_sign = sign < 0 ? 128 : 0;
      EXPECT_EQ(float8_e4m3(sign * middle).bits(), of_sign + code + code % 2) << middle;
      EXPECT_EQ(float8_e4m3(sign * std::nextafter(middle, 0)).bits(), of_sign + code) << middle;
      EXPECT_EQ(float8_e4m3(sign * std::nextafter(middle, 1e9)).bits(), of_sign + code + 1) << middle;
      const auto near = static_cast<float>(middle);
      EXPECT_EQ(float8_e4m3(static_cast<float>(sign) * std::nextafter(near, 0.0f)).bits(), of_sign + code) << middle;
      EXPECT_EQ(float8_e4m3(static_cast<float>(sign) * std::nextafter(near, 1e9f)).bits(), of_sign + code + 1)
          << middle;
    }
  }
}

TEST(Float8, SaturatesAndKeepsNotANumber) {
  for (const float large : {448.0f, 449.0f, 464.0f, 1e6f, infinity}) {
    EXPECT_EQ(float8_e4m3(large).bits(), 0x7e) << large;
    EXPECT_EQ(float8_e4m3(-large).bits(), 0xfe) << large;
  }
  EXPECT_EQ(float8_e4m3(1e300).bits(), 0x7e);
  EXPECT_EQ(float8_e4m3(nan).bits(), 0x7f);
  EXPECT_EQ(float8_e4m3(-nan).bits(), 0x7f);
  EXPECT_EQ(float8_e4m3(std::numeric_limits<double>::quiet_NaN()).bits(), 0x7f);
  EXPECT_EQ(float8_e4m3(-0.0f).bits(), 0x80);
  EXPECT_EQ(float8_e4m3(1e-30f).bits(), 0);
  EXPECT_EQ(float8_e4m3(7).bits(), float8_e4m3(7.0).bits());
  EXPECT_TRUE(float8_e4m3(2) == float8_e4m3(2.0f) && float8_e4m3(1) < float8_e4m3(1.5));
  EXPECT_FALSE(float8_e4m3(nan) == float8_e4m3(nan));
}

}  // namespace
}  // namespace KokkosNNTest
