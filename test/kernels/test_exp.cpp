// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/operators/softmax.hpp>
#include <KokkosNN/impl/host/vector.hpp>
#include <KokkosNN/impl/host/vector_memory.hpp>

#include <Kokkos_Core.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>

// The host's exponentials, in its vectors and of single numbers, against those of the next wider type.
// KOKKOSNN_EXHAUSTIVE=1 takes all 2^32 floats instead of a sample of each exponent.

namespace KokkosNNTest {

using KokkosNN::Impl::ExpAccuracy;
using KokkosNN::Impl::SumFor;
using KokkosNN::Impl::Vector;

template <class A>
using FullExp = KokkosNN::Impl::ScaledExp<A, ExpAccuracy::full>;

// 2 are promised of any exponential; what exp.hpp says is less.
template <class A>
constexpr double most_ulp = KokkosNN::Impl::has_fma ? 1.2 : 1.3;
template <class A>
constexpr double most_ulp_in_a_vector = KokkosNN::Impl::has_lookup<Vector<A>> ? 0.65 : most_ulp<A>;

/// Distance in units in the last place of a result in A's normal range.
template <class A, class Exact>
double ulp_between(A value, Exact exact) {
  int exponent;
  std::frexp(exact, &exponent);
  return std::fabs(
      static_cast<double>((Exact(value) - exact) / std::ldexp(Exact(1), exponent - std::numeric_limits<A>::digits)));
}

/// exp(x) relative to R in all lanes of a vector, one of which is returned: `lane` of as many as there are.
template <SumFor use = SumFor::quotient, class A>
A in_a_vector(const FullExp<A>& exp, A x, A R, int lane) {
  constexpr int lanes = KokkosNN::Impl::simd_width<A>;
  A each[lanes];
  for (A& e : each) e = x;
  using T        = Vector<A>;
  const auto at  = KokkosNN::Impl::splat_reference<T>(exp.at(R));
  const T result = exp.template term_of_difference<use>(KokkosNN::Impl::load_vector(each) - at.base, at);
  KokkosNN::Impl::store_vector(each, result);
  return each[lane % lanes];
}

/// The error of exp(x) relative to R as a part of what is promised: the largest one of those of a vector's lane, for
/// either use, and of a number by itself.
template <class A, class Exact>
double part_of_promise(const FullExp<A>& exp, A x, A R, int lane, Exact exact) {
  return std::max({ulp_between(in_a_vector(exp, x, R, lane), exact) / most_ulp_in_a_vector<A>,
                   ulp_between(in_a_vector<SumFor::logarithm>(exp, x, R, lane), exact) / most_ulp<A>,
                   ulp_between(exp(x, exp.at(R)), exact) / most_ulp<A>});
}

/// Error of exp(x), as a part of the promise, relative to the power of two at or below it.
double error_of_own_reference(const FullExp<float>& exp, float x, int lane) {
  const float R = exp.reference_of(x);
  return part_of_promise(exp, x, R, lane, std::exp(double(x) - double(exp.at(R).exponent) * 0.6931471805599453094));
}

/// Error of exp(x), as a part of the promise, relative to 1; 0 outside of the normal range and above 2.
double error_relative_to_one(const FullExp<float>& exp, float x, int lane) {
  const double exact = std::exp(double(x));
  if (exact < std::numeric_limits<float>::min() || exact > 2) return 0;
  return part_of_promise(exp, x, 0.0f, lane, exact);
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

  EXPECT_LE(worst, 1);
  EXPECT_GT(worst, 0.5);
}

TEST(Exponentials, OfFloatsRelativeToTheirOwnPowerOfTwoAreWithinTheirBound) {
  const FullExp<float> exp(1.0);
  const auto error = [=](float x, int lane) {
    return std::fabs(x) < 90000 ? error_of_own_reference(exp, x, lane) : 0.0;  // beyond, a reference is no power of two
  };

  const double worst = worst_of_floats(error);

  EXPECT_LE(worst, 1);
  EXPECT_GT(worst, 0.5);
}

TEST(Exponentials, OfDoublesAreWithinTheirBound) {
  const FullExp<double> exp(1.0);
  constexpr int count = 200000;
  double worst        = 0;
  for (int i = 0; i < count; ++i) {
    const double x          = -708.0 * (i + 0.37) / count;
    const long double exact = std::exp(static_cast<long double>(x));
    worst                   = std::max(worst, part_of_promise(exp, x, 0.0, i, exact));
  }

  EXPECT_LE(worst, 1);
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

/// A lane's result does not depend on the other lanes.
TEST(Exponentials, InAVectorAreThoseOfAnyOtherLane) {
  const FullExp<float> exp(0.3);
  using T             = Vector<float>;
  constexpr int lanes = KokkosNN::Impl::simd_width<float>;
  const float R       = exp.reference_of(7.0f);
  const auto at       = KokkosNN::Impl::splat_reference<T>(exp.at(R));
  for (int i = 0; i < 10000; i += lanes) {
    float x[lanes], e[lanes];
    for (int l = 0; l < lanes; ++l) x[l] = -0.03f * static_cast<float>(i + l) + 7;
    KokkosNN::Impl::store_vector(e, exp(KokkosNN::Impl::load_vector(x), at));
    for (int l = 0; l < lanes; ++l) EXPECT_EQ(e[l], in_a_vector(exp, x[l], R, 0)) << x[l];
  }
}

/// Exponentials below the normal range have no sign, are not too large, and go down to 0.
template <class A>
void check_small_values() {
  const FullExp<A> exp(1.0);
  const double end = std::log(double(std::numeric_limits<A>::min()));
  for (int i = 0; i <= 2000; ++i) {
    const A x         = static_cast<A>(end - i / 1000.0);
    const A value     = in_a_vector(exp, x, A(0), i);
    const auto exact  = std::exp(static_cast<long double>(x));
    const auto rounds = 2.0L * std::numeric_limits<A>::denorm_min();
    EXPECT_GE(value, A(0)) << x;
    EXPECT_LE(static_cast<long double>(value), exact * (1 + std::numeric_limits<A>::epsilon()) + rounds) << x;
  }
}

TEST(Exponentials, BelowTheNormalRangeAreNotTooLarge) {
  check_small_values<float>();
  check_small_values<double>();
}

/// of_any, also far above the reference: finite up to 2^127.5, infinite above, never NaN.
template <class A>
void check_large_values() {
  const FullExp<A> exp(1.0);
  using T              = Vector<A>;
  constexpr A infinity = std::numeric_limits<A>::infinity();
  const auto at        = KokkosNN::Impl::splat_reference<T>(exp.at(A(0)));
  const auto of_any    = [&](A x) {
    A each[KokkosNN::Impl::simd_width<A>];
    KokkosNN::Impl::store_vector(each, exp.of_any(KokkosNN::Impl::splat<T>(x), at));
    return each[0];
  };
  const double bias = std::numeric_limits<A>::max_exponent - 1;
  for (int i = 0; i <= 4000; ++i) {
    const double t = bias - 1 + i / 1000.0;
    const A x      = static_cast<A>(t * 0.6931471805599453094);
    if (t < bias + 0.49) {
      EXPECT_LE(ulp_between(of_any(x), std::exp(static_cast<long double>(x))), most_ulp<A>) << t;
    } else if (t > bias + 0.51) {
      EXPECT_EQ(of_any(x), infinity) << t;
    }
  }
  EXPECT_EQ(of_any(infinity), infinity);
  EXPECT_EQ(of_any(std::numeric_limits<A>::max()), infinity);
  EXPECT_EQ(of_any(-infinity), A(0));
  EXPECT_TRUE(std::isnan(of_any(std::numeric_limits<A>::quiet_NaN())));
}

TEST(Exponentials, OfAnyNumberAreInfiniteAboveTheRange) {
  check_large_values<float>();
  check_large_values<double>();
}

}  // namespace KokkosNNTest
