// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/inputs.hpp"
#include "support/types.hpp"
#include "support/ulp.hpp"

#include "reference/exp.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

// Functions that the tests' references and error measures have of their own in place of the C library's slow
// functions of long doubles, against those.

namespace KokkosNNTest {

using Reference::exp_real;
using Reference::Real;
using Limits = std::numeric_limits<Real>;

/// The distance from std::exp in units in its last place, also below the normal range. Both are right to 2 of them at
/// most.
Real ulps_from_the_librarys(Real x) {
  const Real exact   = std::exp(x);
  const int exponent = std::max(std::ilogb(exact), Limits::min_exponent - 1);
  return std::fabs(exp_real(x) - exact) / std::ldexp(Real(1), exponent - (Limits::digits - 1));
}

TEST(ReferenceExponential, IsWithinTwoUlpOfTheLibrarysOnEveryRange) {
  const Real end = std::log(Limits::max());
  for (const Real range : {Real(1e-19), Real(1e-9), Real(0.005), Real(0.01), Real(1), Real(90), Real(720), end}) {
    Real worst = 0, where = 0;
    for (std::uint64_t i = 0; i < 20000; ++i) {
      const Real x    = range * (noise_of(random_bits(1, i)) + noise_of(random_bits(2, i)) * Real(0x1p-32));
      const Real ulps = std::fabs(x) < end ? ulps_from_the_librarys(x) : 0;
      if (ulps > worst) where = x;
      worst = std::max(worst, ulps);
    }
    EXPECT_LE(worst, 2) << "exp(" << where << ")";
  }
}

/// Where the part of a power of two changes, and numbers on either side.
TEST(ReferenceExponential, IsWithinTwoUlpOfTheLibrarysWhereItsPiecesMeet) {
  for (int i = -16 * 2048; i <= 16 * 2048; ++i) {
    const Real boundary = (i + Real(0.5)) * std::log(Real(2)) / 64 * (i % 2 == 0 ? 1 : 31);
    for (const Real x : {std::nextafter(boundary, Real(-12000)), boundary, std::nextafter(boundary, Real(12000))}) {
      if (std::fabs(x) < 11350) EXPECT_LE(ulps_from_the_librarys(x), 2) << "exp(" << x << ")";
    }
  }
}

TEST(ReferenceExponential, IsTheLibrarysOfSpecialNumbers) {
  EXPECT_EQ(exp_real(0), 1);
  EXPECT_EQ(exp_real(-0.0L), 1);
  EXPECT_EQ(exp_real(Limits::denorm_min()), 1);
  EXPECT_EQ(exp_real(-Limits::infinity()), 0);
  EXPECT_FALSE(std::signbit(exp_real(-Limits::infinity())));
  EXPECT_EQ(exp_real(Limits::lowest()), 0);
  EXPECT_EQ(exp_real(Limits::infinity()), Limits::infinity());
  EXPECT_EQ(exp_real(Limits::max()), Limits::infinity());
  EXPECT_TRUE(std::isnan(exp_real(Limits::quiet_NaN())));
  EXPECT_TRUE(std::isnan(exp_real(-Limits::quiet_NaN())));
}

/// Down to 0 and up to infinity, each within 2 of the smallest numbers or of the last place.
TEST(ReferenceExponential, IsTheLibrarysAtBothEndsOfTheRange) {
  const Real low = std::log(Limits::min()), high = std::log(Limits::max());
  for (int i = 0; i <= 4000; ++i) {
    const Real below = low + 2 - i / Real(50), above = high - 2 + i / Real(1000);
    EXPECT_LE(ulps_from_the_librarys(below), 2) << "exp(" << below << ")";
    if (std::isinf(std::exp(above))) {
      EXPECT_EQ(exp_real(above), Limits::infinity()) << "exp(" << above << ")";
    } else {
      EXPECT_LE(ulps_from_the_librarys(above), 2) << "exp(" << above << ")";
    }
  }
}

template <class T>
Real ulp_by_the_library(Real value) {
  const int least = Format<T>::min_exponent;
  return std::ldexp(Real(1), (value == 0 ? least : std::max(least, std::ilogb(value))) - (Format<T>::digits - 1));
}

template <class T>
class ErrorMeasure : public ::testing::Test {};

TYPED_TEST_SUITE(ErrorMeasure, ElementTypes, ElementNames);

/// Numbers next to powers of two too, which a double rounds up to them, and those beyond doubles.
TYPED_TEST(ErrorMeasure, HasTheDistanceOfNeighboursThatTheLibrarysExponentGives) {
  for (int exponent = -1100; exponent <= 1100; ++exponent) {
    const Real power = std::ldexp(Real(1), exponent), next = std::nextafter(power, Real(0));
    for (const Real value : {power, next, std::nextafter(power, Limits::infinity()), power * Real(1.37), -next}) {
      EXPECT_EQ(ulp_at<TypeParam>(value), ulp_by_the_library<TypeParam>(value)) << value;
    }
  }
  EXPECT_EQ(ulp_at<TypeParam>(0), ulp_by_the_library<TypeParam>(0));
  EXPECT_EQ(smallest_normal<TypeParam>(), std::ldexp(Real(1), Format<TypeParam>::min_exponent));
}

/// Halves between two numbers, their neighbours, and anything else.
template <class T>
void check_rounding() {
  for (std::uint64_t i = 0; i < 20000; ++i) {
    const Real any = std::ldexp(Real(noise_of(random_bits(3, i))), static_cast<int>(i % 170) - 150);
    const Real ulp = ulp_by_the_library<T>(any), half = (std::floor(any / ulp) + Real(0.5)) * ulp;
    for (const Real value : {any, half, std::nextafter(half, Real(-1e9)), std::nextafter(half, Real(1e9))}) {
      const Real of_value = ulp_by_the_library<T>(value), expected = std::nearbyint(value / of_value) * of_value;
      EXPECT_EQ(correctly_rounded<T>(value), expected) << value;
      EXPECT_EQ(std::signbit(correctly_rounded<T>(value)), std::signbit(expected)) << value;
    }
  }
}

TEST(ErrorMeasureOf16Bits, RoundsAsTheLibraryDoes) {
  check_rounding<Half>();
  check_rounding<BHalf>();
}

}  // namespace KokkosNNTest
