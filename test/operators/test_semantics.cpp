// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/strategies.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

namespace KokkosNNTest {

constexpr double infinity     = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// Special values and their place in a row of otherwise harmless ones.
struct Special {
  const char* name;
  std::vector<double> values;  ///< one after the other, from `at` on
  enum { first, middle, last, everywhere } at;
};

/// The rows that the documentation's table is about.
const std::vector<Special>& table() {
  static const std::vector<Special> rows{
      {"nothing special", {}, Special::first},
      {"NaN first", {not_a_number}, Special::first},
      {"NaN in the middle", {not_a_number}, Special::middle},
      {"NaN last", {not_a_number}, Special::last},
      {"+inf first", {infinity}, Special::first},
      {"+inf last", {infinity}, Special::last},
      {"two +inf", {infinity, infinity}, Special::middle},
      {"+inf and -inf", {infinity, -infinity}, Special::middle},
      {"NaN and +inf", {not_a_number, infinity}, Special::middle},
      {"NaN and -inf", {not_a_number, -infinity}, Special::middle},
      {"-inf first", {-infinity}, Special::first},
      {"-inf in the middle", {-infinity}, Special::middle},
      {"-inf last", {-infinity}, Special::last},
      {"only -inf", {-infinity}, Special::everywhere},
      {"only NaN", {not_a_number}, Special::everywhere},
      {"only +inf", {infinity}, Special::everywhere},
      {"only zeros", {0.0}, Special::everywhere},
      {"only the lowest float", {-std::numeric_limits<float>::max()}, Special::everywhere},
  };
  return rows;
}

/// Row r of x, along the strategy's axis, becomes row r % table().size() of the table.
template <class T>
void write_table(T* x, const Placement& place) {
  const Placement rows      = place.without(strategy_axis);
  const std::int64_t cols   = place.extents[strategy_axis];
  const std::int64_t stride = place.strides[strategy_axis];
  for_each_index(rows, rows, [&](std::int64_t offset, std::int64_t, std::int64_t row) {
    const Special& special = table()[row % table().size()];
    const auto count       = static_cast<std::int64_t>(special.values.size());
    for (std::int64_t i = 0; i < count && i < cols; ++i) {
      const std::int64_t col   = special.at == Special::first    ? i
                                 : special.at == Special::middle ? (cols / 2 + i) % cols
                                                                 : cols - 1 - i;
      x[offset + col * stride] = static_cast<T>(special.values[i]);
    }
    for (std::int64_t col = 0; special.at == Special::everywhere && col < cols; ++col) {
      x[offset + col * stride] = static_cast<T>(special.values[0]);
    }
  });
}

std::string row_name(std::int64_t row) { return table()[row % table().size()].name; }

class Semantics : public ::testing::TestWithParam<std::tuple<RowStrategy, MaskedRowPolicy>> {
 protected:
  /// Two turns of the table on the strategy, compared element by element; the reference is spelt out below.
  template <RowOperator Op, class T>
  static void check(double scale) {
    const auto [strategy, policy] = GetParam();
    SoftmaxOptions options        = forced(strategy, {.scale = scale, .masked_row = policy});
    const auto rows               = 2 * static_cast<std::int64_t>(table().size());
    for (const std::int64_t cols : {1, 2, 3, 16, 33, 100, 1000}) {
      if (!can_serve<Op, T>(strategy, rows, cols)) continue;
      auto trial = strategy_trial<Op, T>(strategy, rows, cols);
      write_table(trial.x().host(), trial.x_place());
      trial.x().upload();

      trial.run(options);

      ASSERT_EQ(unwritten(trial.y(), trial.y_place()), 0);
      const Errors errors = trial.errors(options);
      EXPECT_LE(errors.max_ulp, (promise<Op, T>)) << errors.worst << "; " << cols << " columns, scale " << scale;
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Every, Semantics,
                         ::testing::Combine(::testing::ValuesIn(all_strategies),
                                            ::testing::Values(MaskedRowPolicy::nan, MaskedRowPolicy::zero)),
                         [](const auto& test) {
                           return std::string(KokkosNN::to_string(std::get<0>(test.param))) +
                                  (std::get<1>(test.param) == MaskedRowPolicy::nan ? "_nan" : "_zero");
                         });

TEST_P(Semantics, SoftmaxOfSpecialRowsFollowsTheTable) { check<RowOperator::softmax, float>(1); }

TEST_P(Semantics, SoftmaxOfSpecialRowsInDoubleFollowsTheTable) { check<RowOperator::softmax, double>(1); }

TEST_P(Semantics, LogSoftmaxOfSpecialRowsFollowsTheTable) { check<RowOperator::log_softmax, float>(1); }

TEST_P(Semantics, LogSumExpOfSpecialRowsFollowsTheTable) { check<RowOperator::logsumexp, float>(1); }

TEST_P(Semantics, ANegativeScaleTurnsTheInfinitiesAround) {
  check<RowOperator::softmax, float>(-0.5);
  check<RowOperator::log_softmax, float>(-0.5);
  check<RowOperator::logsumexp, float>(-0.5);
}

TEST_P(Semantics, SpecialRowsIn16BitFollowTheTable) {
  check<RowOperator::softmax, Half>(1);
  check<RowOperator::softmax, BHalf>(1);
  check<RowOperator::log_softmax, BHalf>(1);
  check<RowOperator::logsumexp, Half>(1);
  check<RowOperator::softmax, Half>(-0.5);
  check<RowOperator::log_softmax, BHalf>(-0.5);
}

/// Rows of zeros, but for +inf in columns of their own and, in those that are meant to be NaN, a NaN far from it.
struct InfiniteRows {
  static constexpr std::int64_t rows = 8;

  static bool has_nan(std::int64_t row) { return row % 4 == 2 || row % 4 == 3; }

  template <class T>
  static void write(T* x, const Placement& place, double sign) {
    const std::int64_t cols   = place.extents[strategy_axis];
    const std::int64_t stride = place.strides[strategy_axis];
    for_each_index(place.without(strategy_axis), place.without(strategy_axis),
                   [&](std::int64_t offset, auto, auto row) {
                     const auto at            = [&](std::int64_t col) -> T& { return x[offset + col * stride]; };
                     const std::int64_t place = row % 4 == 0 ? 0 : (row % 4 == 1 ? cols - 1 : row * 7 % cols);
                     const bool is_masked     = row % 8 >= 4;
                     for (std::int64_t col = 0; col < cols; ++col) at(col) = T(is_masked ? -sign * infinity : 0);
                     at(place) = T(sign * infinity);
                     if (has_nan(row))
                       at(row % 4 == 2 ? cols - 1 - place : (place + cols / 2) % cols) = T(not_a_number);
                   });
  }
};

template <class T>
void check_infinite_rows(RowStrategy strategy) {
  for (const double scale : {1.0, -0.5}) {
    for (const std::int64_t cols : {2, 3, 16, 33, 100, 1000, 4097, 40000}) {
      constexpr RowOperator op = RowOperator::logsumexp;
      if (!can_serve<op, T>(strategy, InfiniteRows::rows, cols)) continue;
      auto trial = strategy_trial<op, T>(strategy, InfiniteRows::rows, cols);
      InfiniteRows::write(trial.x().host(), trial.x_place(), scale);
      trial.x().upload();

      trial.run(forced(strategy, {.scale = scale}));

      for (std::int64_t row = 0; row < trial.y().count(); ++row) {
        const double lse = static_cast<double>(trial.y().host()[row]);
        ASSERT_TRUE(InfiniteRows::has_nan(row) ? std::isnan(lse) : lse == infinity)
            << lse << " of row " << row << ", " << cols << " columns of " << Format<T>::name << ", scale " << scale;
      }
    }
  }
}

TEST_P(Semantics, ALogSumExpOfARowWithPlusInfinityIsThatUnlessANaNIsAnywhereInTheRow) {
  const RowStrategy strategy = std::get<0>(GetParam());
  for_each_type(Elements{}, [&](auto tag) { check_infinite_rows<typename decltype(tag)::type>(strategy); });
}

/// Rows of both ends of T's range and of numbers between them.
template <class T>
void write_ends(T* x, const Placement& place) {
  const auto most = static_cast<double>(largest<T>());
  for_each_index(place, place, [&](std::int64_t offset, auto, std::int64_t i) {
    const double values[] = {-most, most, most / 2, -most / 3, 0.0, most, 1.0};
    x[offset]             = static_cast<T>(values[(i + i / 7) % 7]);
  });
}

template <RowOperator Op, class T>
void check_ends(const SoftmaxOptions& options) {
  const RowStrategy strategy = options.plan.strategy;
  for (const std::int64_t cols : {2, 3, 16, 33, 100, 1000, 4097}) {
    if (!can_serve<Op, T>(strategy, 7, cols)) continue;
    auto trial = strategy_trial<Op, T>(strategy, 7, cols);
    write_ends(trial.x().host(), trial.x_place());
    trial.x().upload();

    EXPECT_TRUE(trial.run_correct(options))
        << KokkosNN::to_string(Op) << ", " << cols << " columns of " << Format<T>::name << ", scale " << options.scale;
    if (Op != RowOperator::log_softmax) continue;
    for (std::int64_t i = 0; i < trial.y().count(); ++i) {
      ASSERT_TRUE(std::isfinite(static_cast<double>(trial.y().host()[i]))) << i << ", " << cols << " columns";
    }
  }
}

TEST_P(Semantics, ASmallScaleKeepsResultsFiniteWhereDifferencesOfLogitsAreNot) {
  const auto [strategy, policy] = GetParam();
  for (const double scale : {0.125, -0.25, 0.3, -1.0 / 3, 1e-10, 0x1p-100}) {
    const SoftmaxOptions options = forced(strategy, {.scale = scale, .masked_row = policy});
    for_each_type(Elements{}, [&](auto tag) {
      using T = typename decltype(tag)::type;
      check_ends<RowOperator::log_softmax, T>(options);
      check_ends<RowOperator::softmax, T>(options);
      check_ends<RowOperator::logsumexp, T>(options);
    });
  }
}

// --- the reference itself, on rows that can be checked by hand ---

std::vector<double> softmax_by_reference(const std::vector<double>& x, MaskedRowPolicy policy, double scale = 1) {
  std::vector<Reference::Real> y;
  Reference::softmax(Reference::Row<double>{x.data(), static_cast<std::int64_t>(x.size())}, scale, policy, y);
  return {y.begin(), y.end()};
}

TEST(SemanticsReference, SoftmaxIsRightOnRowsThatCanBeCheckedByHand) {
  EXPECT_EQ(softmax_by_reference({5}, MaskedRowPolicy::nan), (std::vector<double>{1}));
  EXPECT_EQ(softmax_by_reference({7, 7, 7, 7}, MaskedRowPolicy::nan), (std::vector<double>{.25, .25, .25, .25}));
  EXPECT_EQ(softmax_by_reference({3, -infinity, 3}, MaskedRowPolicy::nan), (std::vector<double>{.5, 0, .5}));
  EXPECT_EQ(softmax_by_reference({-infinity, -infinity}, MaskedRowPolicy::zero), (std::vector<double>{0, 0}));
  EXPECT_NEAR(softmax_by_reference({0, std::log(3.0)}, MaskedRowPolicy::nan)[1], 0.75, 1e-15);
  EXPECT_NEAR(softmax_by_reference({0, std::log(9.0)}, MaskedRowPolicy::nan, 0.5)[1], 0.75, 1e-15);
  for (const auto& row : std::vector<std::vector<double>>{
           {-infinity, -infinity}, {1, not_a_number}, {1, infinity}, {-infinity, not_a_number}}) {
    for (const double value : softmax_by_reference(row, MaskedRowPolicy::nan)) EXPECT_TRUE(std::isnan(value));
  }
  for (const double value : softmax_by_reference({not_a_number, -infinity}, MaskedRowPolicy::zero)) {
    EXPECT_TRUE(std::isnan(value));
  }
}

TEST(SemanticsReference, LogSumExpIsRightOnRowsThatCanBeCheckedByHand) {
  const auto lse = [](const std::vector<double>& x, double scale = 1) {
    return static_cast<double>(
        Reference::logsumexp(Reference::Row<double>{x.data(), static_cast<std::int64_t>(x.size())}, scale));
  };

  EXPECT_EQ(lse({5}), 5);
  EXPECT_EQ(lse({5}, -2), -10);
  EXPECT_EQ(lse({-infinity, 5}), 5);
  EXPECT_EQ(lse({-infinity, -infinity}), -infinity);
  EXPECT_NEAR(lse({1000, 1000}), 1000 + std::log(2.0), 1e-12);
  EXPECT_EQ(lse({infinity, 1}), infinity);
  EXPECT_EQ(lse({-infinity, 1, infinity}, -2), infinity);
  EXPECT_TRUE(std::isnan(lse({not_a_number, 1})));
  EXPECT_TRUE(std::isnan(lse({infinity, not_a_number})));
}

// --- the documentation's table, spelt out: one row of four on the default plan ---

std::vector<float> four(void (*function)(const Exec&, const Kokkos::View<const float*, Memory>&,
                                         const Kokkos::View<float*, Memory>&, MaskedRowPolicy),
                        const std::vector<float>& values, MaskedRowPolicy policy) {
  Kokkos::View<float*, Memory> x("x", values.size()), y("y", values.size());
  Kokkos::deep_copy(x, Kokkos::View<const float*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>(
                           values.data(), values.size()));
  function(Exec(), x, y, policy);
  const auto result = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), y);
  return {result.data(), result.data() + result.size()};
}

std::vector<float> softmax_of(const std::vector<float>& values, MaskedRowPolicy policy = MaskedRowPolicy::nan) {
  return four([](const Exec& exec, const Kokkos::View<const float*, Memory>& x, const Kokkos::View<float*, Memory>& y,
                 MaskedRowPolicy p) { KokkosNN::softmax(exec, x, y, {.masked_row = p}); },
              values, policy);
}

std::vector<float> log_softmax_of(const std::vector<float>& values, MaskedRowPolicy policy = MaskedRowPolicy::nan) {
  return four([](const Exec& exec, const Kokkos::View<const float*, Memory>& x, const Kokkos::View<float*, Memory>& y,
                 MaskedRowPolicy p) { KokkosNN::log_softmax(exec, x, y, {.masked_row = p}); },
              values, policy);
}

bool all_nan(const std::vector<float>& values) {
  for (const float value : values) {
    if (!std::isnan(value)) return false;
  }
  return true;
}

constexpr float inf_f = std::numeric_limits<float>::infinity();
constexpr float nan_f = std::numeric_limits<float>::quiet_NaN();

TEST(SemanticsTable, ANaNMakesTheWholeRowNaN) {
  EXPECT_TRUE(all_nan(softmax_of({1, nan_f, 2, 3})));
  EXPECT_TRUE(all_nan(log_softmax_of({1, nan_f, 2, 3})));
  EXPECT_TRUE(all_nan(softmax_of({-inf_f, nan_f, -inf_f, -inf_f}, MaskedRowPolicy::zero)));
}

TEST(SemanticsTable, APlusInfinityMakesTheWholeRowNaNButForItsLogSumExp) {
  Kokkos::View<float[4], Memory> x("x");
  Kokkos::View<float, Memory> lse("lse");
  Kokkos::deep_copy(Kokkos::subview(x, 2), inf_f);
  KokkosNN::logsumexp(Exec(), x, lse);
  float value = 0;
  Kokkos::deep_copy(value, lse);

  EXPECT_EQ(value, inf_f);
  EXPECT_TRUE(all_nan(softmax_of({1, inf_f, 2, 3})));
  EXPECT_TRUE(all_nan(log_softmax_of({1, inf_f, 2, 3})));
}

TEST(SemanticsTable, AMinusInfinityGivesZeroAndItsLogarithm) {
  EXPECT_EQ(softmax_of({0, -inf_f, 0, -inf_f}), (std::vector<float>{0.5f, 0, 0.5f, 0}));
  EXPECT_EQ(log_softmax_of({0, -inf_f, -inf_f, -inf_f}), (std::vector<float>{0, -inf_f, -inf_f, -inf_f}));
}

TEST(SemanticsTable, ARowOfMinusInfinityFollowsThePolicy) {
  const std::vector<float> masked(4, -inf_f);

  EXPECT_TRUE(all_nan(softmax_of(masked)));
  EXPECT_TRUE(all_nan(log_softmax_of(masked)));
  EXPECT_EQ(softmax_of(masked, MaskedRowPolicy::zero), (std::vector<float>{0, 0, 0, 0}));
  EXPECT_EQ(log_softmax_of(masked, MaskedRowPolicy::zero), masked);
}

template <class T>
void expect_ones_beside_minus_infinity(std::int64_t cols) {
  Trial<RowOperator::softmax, T> trial(200, cols);
  T* const x = trial.x().host();
  for (std::int64_t row = 0; row < 200; ++row) {
    const T kept = x[row * cols + row % cols];
    for (std::int64_t col = 0; col < cols; ++col) x[row * cols + col] = -std::numeric_limits<T>::infinity();
    x[row * cols + row % cols] = kept;
  }
  trial.x().upload();

  trial.run({});

  const T* const y = trial.y().host();
  for (std::int64_t i = 0; i < 200 * cols; ++i) {
    ASSERT_EQ(y[i], std::isfinite(x[i]) ? T(1) : T(0)) << x[i] << " in a row of " << cols;
  }
}

TEST(SemanticsTable, TheOnlyFiniteElementOfARowIsExactlyOne) {
  for (const std::int64_t cols : {1, 3, 8, 100, 1000}) {
    expect_ones_beside_minus_infinity<float>(cols);
    expect_ones_beside_minus_infinity<double>(cols);
  }
}

// --- scale ---

TEST(SemanticsScale, EveryScaleMatchesTheReference) {
  for (const double scale : {0.125, -1.0, -0.3, 1e-3, 0.1, 30.0, 1.0 / 3, 1e10, 1e-30}) {
    for (const std::int64_t cols : {7, 300, 5000}) {
      Trial<RowOperator::softmax, float> softmax(3, cols);
      Trial<RowOperator::log_softmax, float> log_softmax(3, cols);
      Trial<RowOperator::logsumexp, float> logsumexp(3, cols);
      Trial<RowOperator::softmax, double> in_double(3, cols);

      EXPECT_TRUE(softmax.run_correct({.scale = scale})) << "scale " << scale << ", " << cols << " columns";
      EXPECT_TRUE(log_softmax.run_correct({.scale = scale})) << "scale " << scale << ", " << cols << " columns";
      EXPECT_TRUE(logsumexp.run_correct({.scale = scale})) << "scale " << scale << ", " << cols << " columns";
      EXPECT_TRUE(in_double.run_correct({.scale = scale})) << "scale " << scale << ", " << cols << " columns";
    }
  }
}

TEST(SemanticsScale, TheScaleActsOnTheDifferenceSoThatLargeLogitsDoNotOverflow) {
  Trial<RowOperator::softmax, float> trial(2, 50, Recipe::uniform);
  for (std::int64_t i = 0; i < trial.x().count(); ++i) trial.x().host()[i] = 3e38f;
  trial.x().upload();

  EXPECT_TRUE(trial.run_correct({.scale = 8}));
}

TEST(MaskedWarps, AWarpThatSawOnlyMinusInfinityDoesNotSpoilTheRow) {
  // Each thread of a host's team is a warp of its own. From some logits on the exponential of 0 relative to them is not
  // finite.
  const int team_size = on_gpu ? 128 : 2;
  if (!on_gpu && Exec().concurrency() < 2) GTEST_SKIP() << "one thread: a row has one warp here";
  for (const float logit : {-88.0f, -88.6f, -266.1f, -1e5f, -1e30f, 88.6f}) {
    const Placement place = right({3, 4096});
    Trial<RowOperator::softmax, float> trial(place, place, -1);
    std::fill_n(trial.x().host(), place.count(), logit);
    for (int row = 0; row < 3; ++row) std::fill_n(trial.x().host() + 4096 * row, 64, -infinity);
    trial.x().upload();
    for (const RowStrategy strategy :
         strategies_here({RowStrategy::team_scratch, RowStrategy::team_online, RowStrategy::split_row})) {
      SoftmaxOptions options = forced(strategy);
      options.plan.team_size = team_size;

      EXPECT_TRUE(trial.run_correct(options)) << logit << ", " << to_string(strategy);
    }
  }
  Trial<RowOperator::softmax, float> trial(3, 64);
  std::fill_n(trial.x().host(), trial.x().count(), -88.6f);
  std::fill_n(trial.x().host(), 32, -infinity);
  trial.x().upload();
  SoftmaxOptions options = forced(RowStrategy::team_registers);
  options.plan.team_size = team_size;

  EXPECT_TRUE(trial.run_correct(options));
}

}  // namespace KokkosNNTest
