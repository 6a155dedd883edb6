// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/primitives/finish.hpp>
#include <KokkosNN/impl/primitives/vector.hpp>

#include <Kokkos_Core.hpp>

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>

// The host's exponentials, in its vectors, against those of the next wider type. KOKKOSNN_EXHAUSTIVE=1 takes all 2^32
// floats instead of a sample of each exponent.

namespace KokkosNNTest {

using KokkosNN::Impl::ExpAccuracy;
using KokkosNN::Impl::Vector;

template <class A>
using FullExp = KokkosNN::Impl::ScaledExp<A, ExpAccuracy::full>;

template <class A>
constexpr double promised_ulp = 1.2;  // 2 are promised of any exponential; what exp.hpp says is less

/// Distance in units in the last place of a result in A's normal range.
template <class A, class Exact>
double ulp_between(A value, Exact exact) {
  int exponent;
  std::frexp(exact, &exponent);
  return std::fabs(
      static_cast<double>((Exact(value) - exact) / std::ldexp(Exact(1), exponent - std::numeric_limits<A>::digits)));
}

/// exp(x) relative to R in all lanes of a vector, one of which is returned: `lane` of as many as there are.
template <class A>
A in_a_vector(const FullExp<A>& exp, A x, A R, int lane) {
  constexpr int lanes = KokkosNN::Impl::lanes_of<A>;
  A each[lanes];
  for (A& e : each) e = x;
  using T        = Vector<A>;
  const T result = exp(KokkosNN::Impl::load_vector(each), KokkosNN::Impl::splat_reference<T>(exp.at(R)));
  KokkosNN::Impl::store_vector(each, result);
  return each[lane % lanes];
}

/// The worst error of exp(x) relative to the power of two at or below it, for a float of these bits.
double error_of_own_reference(const FullExp<float>& exp, float x, int lane) {
  const float R      = exp.reference_of(x);
  const float value  = in_a_vector(exp, x, R, lane);
  const double exact = std::exp(double(x) - double(exp.at(R).exponent) * 0.6931471805599453094);
  return ulp_between(value, exact);
}

/// The same relative to 1, as far as that is in the normal range.
double error_relative_to_one(const FullExp<float>& exp, float x, int lane) {
  const double exact = std::exp(double(x));
  if (exact < std::numeric_limits<float>::min() || exact > 2) return 0;
  return ulp_between(in_a_vector(exp, x, 0.0f, lane), exact);
}

bool is_exhaustive() { return std::getenv("KOKKOSNN_EXHAUSTIVE") != nullptr; }

/// Floats of each sign and exponent: 2^23 of them, or 2^11, at odd places.
template <class Error>
double worst_of_floats(const Error& error) {
  const std::int64_t of_each = is_exhaustive() ? 1 << 23 : 1 << 11;
  const std::int64_t step    = (1 << 23) / of_each;
  double worst               = 0;
  Kokkos::parallel_reduce(
      "KokkosNNTest::worst_of_floats", Kokkos::RangePolicy<Kokkos::DefaultHostExecutionSpace>(0, 512 * of_each),
      [=](std::int64_t i, double& w) {
        const std::int64_t place = i / of_each << 23 | (i % of_each * step + (step > 1 ? (i * 2654435761u) % step : 0));
        const float x            = std::bit_cast<float>(static_cast<std::uint32_t>(place));
        if (std::isfinite(x)) w = std::max(w, error(x, static_cast<int>(i % 64)));
      },
      Kokkos::Max<double>(worst));
  return worst;
}

TEST(Exponentials, OfFloatsRelativeToOneAreWithinTheirBound) {
  const FullExp<float> exp(1.0);

  const double worst = worst_of_floats([=](float x, int lane) { return error_relative_to_one(exp, x, lane); });

  EXPECT_LE(worst, promised_ulp<float>);
  EXPECT_GT(worst, 0.5);
}

TEST(Exponentials, OfFloatsRelativeToTheirOwnPowerOfTwoAreWithinTheirBound) {
  const FullExp<float> exp(1.0);
  const auto error = [=](float x, int lane) {
    return std::fabs(x) < 90000 ? error_of_own_reference(exp, x, lane) : 0.0;  // beyond, a reference is no power of two
  };

  const double worst = worst_of_floats(error);

  EXPECT_LE(worst, promised_ulp<float>);
  EXPECT_GT(worst, 0.5);
}

TEST(Exponentials, OfDoublesAreWithinTheirBound) {
  const FullExp<double> exp(1.0);
  constexpr int count = 200000;
  double worst        = 0;
  for (int i = 0; i < count; ++i) {
    const double x          = -708.0 * (i + 0.37) / count;
    const long double exact = std::exp(static_cast<long double>(x));
    worst                   = std::max(worst, ulp_between(in_a_vector(exp, x, 0.0, i), exact));
  }

  EXPECT_LE(worst, promised_ulp<double>);
}

template <class A>
void check_special_values() {
  const FullExp<A> exp(1.0);
  constexpr A infinity = std::numeric_limits<A>::infinity();
  for (int lane = 0; lane < 16; ++lane) {
    EXPECT_EQ(in_a_vector(exp, -infinity, A(0), lane), A(0));
    EXPECT_EQ(in_a_vector(exp, std::numeric_limits<A>::lowest(), A(0), lane), A(0));
    EXPECT_EQ(in_a_vector(exp, A(0), A(0), lane), A(1));
    EXPECT_TRUE(std::isnan(in_a_vector(exp, std::numeric_limits<A>::quiet_NaN(), A(0), lane)));
  }
}

TEST(Exponentials, OfMinusInfinityAreZeroAndOfNanNan) {
  check_special_values<float>();
  check_special_values<double>();
}

/// A vector's lanes are the same numbers as one number by itself.
TEST(Exponentials, InAVectorAreThoseOfSingleNumbers) {
  const FullExp<float> exp(0.3);
  for (int i = 0; i < 10000; ++i) {
    const float x = -0.03f * static_cast<float>(i) + 7;
    const float R = exp.reference_of(7.0f);
    EXPECT_EQ(in_a_vector(exp, x, R, i), exp(x, exp.at(R)));
  }
}

}  // namespace KokkosNNTest
