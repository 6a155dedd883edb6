// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/strategies.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <type_traits>
#include <vector>

namespace KokkosNNTest {

/// Widths that end inside, at and beyond packs, registers and scratch; a row of 65536 last.
const std::vector<std::int64_t>& widths() {
  static const std::vector<std::int64_t> all{1, 2, 7, 32, 100, 250, 1000, 4099, 65536};
  return all;
}

template <class T>
class Accuracy : public ::testing::Test {
 protected:
  /// Long double's exp is slow: short rows by the handful, long ones alone.
  static std::int64_t rows_of(std::int64_t cols) { return cols > 2000 ? 1 : 4; }

  /// All recipes on all widths that the strategy serves; the worst error there was, and that it is as promised.
  template <RowOperator Op>
  static void check(RowStrategy strategy, const SoftmaxOptions& options = {}) {
    double worst = 0;
    for (const std::int64_t cols : servable_widths<Op, T>(strategy, 4, widths())) {
      for (const Recipe recipe : all_recipes) {
        auto trial = strategy_trial<Op, T>(strategy, rows_of(cols), cols, recipe);

        trial.run(forced(strategy, options));

        const Errors errors = trial.errors(options);
        worst               = std::max(worst, errors.max_ulp);
        EXPECT_LE(errors.max_ulp, (promise<Op, T>))
            << errors.worst << "; " << cols << " columns, " << to_string(recipe);
      }
    }
    report(Op, strategy, worst);
  }

  template <RowOperator Op>
  static void check_every_strategy() {
    for (const RowStrategy strategy : all_strategies) check<Op>(strategy);
  }

  static void report(RowOperator op, RowStrategy strategy, double worst) {
    const std::string name =
        std::string(KokkosNN::to_string(op)) + "_" + Format<T>::name + "_" + KokkosNN::to_string(strategy);
    char text[32];
    std::snprintf(text, sizeof(text), "%.3f", worst);
    ::testing::Test::RecordProperty(name, text);
    std::printf("%-40s at most %s ulp\n", name.c_str(), text);
  }
};

TYPED_TEST_SUITE(Accuracy, ElementTypes, ElementNames);

TYPED_TEST(Accuracy, SoftmaxKeepsItsPromiseOnEveryStrategyAndRange) {
  this->template check_every_strategy<RowOperator::softmax>();
}

TYPED_TEST(Accuracy, LogSoftmaxKeepsItsPromiseOnEveryStrategyAndRange) {
  this->template check_every_strategy<RowOperator::log_softmax>();
}

TYPED_TEST(Accuracy, LogSumExpKeepsItsPromiseOnEveryStrategyAndRange) {
  this->template check_every_strategy<RowOperator::logsumexp>();
}

TYPED_TEST(Accuracy, ABatchInvariantSoftmaxKeepsItsPromiseToo) {
  for (const Recipe recipe : all_recipes) {
    Trial<RowOperator::softmax, TypeParam> trial(3, 3000, recipe);

    EXPECT_TRUE(trial.run_correct({.determinism = Determinism::batch_invariant})) << to_string(recipe);
  }
}

TYPED_TEST(Accuracy, RowsSumToOne) {
  // The rounding of each result counts, relative to itself: their sum is off by no more than the worst of them.
  const double tolerance =
      (promised_ulp<TypeParam> + 1) * static_cast<double>(std::ldexp(1.0L, 1 - Format<TypeParam>::digits));
  for (const RowStrategy strategy : all_strategies) {
    for (const Recipe recipe : {Recipe::uniform, Recipe::wide, Recipe::ascending}) {
      for (const std::int64_t cols : servable_widths<RowOperator::softmax, TypeParam>(strategy, 4, widths())) {
        auto trial = strategy_trial<RowOperator::softmax, TypeParam>(strategy, this->rows_of(cols), cols, recipe);
        // Subnormal results lose too much of a sum.
        if (double(cols) * 1e-5 > tolerance && is_16_bit<TypeParam>) continue;

        trial.run(forced(strategy));

        const Placement rows = trial.y_place().without(strategy_axis);
        for_each_index(rows, rows, [&](std::int64_t offset, std::int64_t, std::int64_t row) {
          long double sum = 0;
          for (std::int64_t i = 0; i < cols; ++i) {
            sum += exact(trial.y().host()[offset + i * trial.y_place().strides[strategy_axis]]);
          }
          EXPECT_NEAR(static_cast<double>(sum), 1, tolerance)
              << KokkosNN::to_string(strategy) << ", " << cols << " columns, row " << row << ", " << to_string(recipe);
        });
      }
    }
  }
}

TYPED_TEST(Accuracy, SixtyFiveThousandEqualValuesGetTheirShare) {
  Trial<RowOperator::softmax, TypeParam> softmax(2, 65536, Recipe::all_equal);
  Trial<RowOperator::logsumexp, TypeParam> logsumexp(2, 65536, Recipe::all_equal);

  EXPECT_TRUE(softmax.run_correct());
  EXPECT_TRUE(logsumexp.run_correct());
}

/// softmax and log_softmax of rows of offset, offset + step and so on up to six steps, as the type rounds them.
template <class T>
void expect_offset_does_not_matter(double offset, double step) {
  using Rounded           = std::conditional_t<sizeof(T) == 8, double, float>;
  const std::int64_t cols = 500;
  Trial<RowOperator::softmax, T> softmax(2, cols);
  Trial<RowOperator::log_softmax, T> log_softmax(2, cols);
  for (std::int64_t i = 0; i < 2 * cols; ++i) {
    const auto value      = static_cast<T>(static_cast<Rounded>(offset + static_cast<double>(i % 7) * step));
    softmax.x().host()[i] = log_softmax.x().host()[i] = value;
  }
  softmax.x().upload();
  log_softmax.x().upload();

  EXPECT_TRUE(softmax.run_correct()) << offset << " and steps of " << step;
  EXPECT_TRUE(log_softmax.run_correct()) << offset << " and steps of " << step;
}

TYPED_TEST(Accuracy, ALargeCommonOffsetDoesNotMatter) {
  for (const double offset : {256., 8388608., 1e8, 1e15, 1e20}) {
    if (is_16_bit<TypeParam> && !std::is_same_v<TypeParam, BHalf> && offset > 256) break;  // f16 ends at 65504
    expect_offset_does_not_matter<TypeParam>(offset, 1);
    expect_offset_does_not_matter<TypeParam>(offset, offset / 1024);
    expect_offset_does_not_matter<TypeParam>(-offset, offset / 1024);
  }
}

TYPED_TEST(Accuracy, ADominantLogitLeavesALogSoftmaxNearZeroThatIsNotLost) {
  const std::int64_t cols = 100;
  Trial<RowOperator::log_softmax, TypeParam> trial(1, cols, Recipe::one_dominant);

  trial.run();

  EXPECT_TRUE(trial.correct());
  for (std::int64_t i = 0; i < cols; ++i) {
    const double value = static_cast<double>(exact(trial.y().host()[i]));
    EXPECT_TRUE(std::isfinite(value) && value <= 0) << i << ": " << value;
  }
}

/// The rounding of log2(e), times logits far from 0, must not be seen in results near 0.
template <class T>
void expect_dominant_logits_are_exact() {
  for (const RowStrategy strategy : all_strategies) {
    for (const double largest : {-86.0, -1416.0, 3.0, 1000.0}) {
      for (const std::int64_t cols : {1, 64}) {
        auto trial = strategy_trial<RowOperator::log_softmax, T>(strategy, 5, cols);
        std::fill_n(trial.x().host(), trial.x().count(), T(largest - 16));
        // The first of each row, or of rows side by side.
        for (std::int64_t r = 0; r < 5; ++r) {
          const bool is_inner                       = strategy == RowStrategy::inner_lanes;
          trial.x().host()[is_inner ? r : r * cols] = T(largest);
        }
        trial.x().upload();

        trial.run(forced(strategy));

        const double exact_result = -std::log1p(static_cast<double>(cols - 1) * std::exp(-16.0));
        const double result       = static_cast<double>(exact(trial.y().host()[0]));
        constexpr double fast     = 5e-6;  // of an exponential for 16-bit results
        EXPECT_NEAR(result, exact_result, fast + std::fabs(exact_result) / 128)
            << to_string(strategy) << ", " << largest << ", " << cols << " columns";
      }
    }
  }
}

TEST(Accuracy16Bit, OfALogSoftmaxNearZeroDoesNotDependOnHowFarItsLogitsAreFromZero) {
  expect_dominant_logits_are_exact<Half>();
  expect_dominant_logits_are_exact<BHalf>();
}

/// Exponentials are taken relative to powers of two up to a limit, and relative to the maximum itself beyond: threads
/// of one row may lie on either side of it.
TYPED_TEST(Accuracy, RowsAcrossTheLimitOfPowersOfTwoMatch) {
  using Constants    = KokkosNN::Impl::Exp2Constants<KokkosNN::accumulator_t<TypeParam>>;
  const double limit = is_16_bit<TypeParam> ? Constants::fast_limit : Constants::full_limit;
  const double x     = limit * 0.69314718055994531;  // so that x log2(e) is the limit
  for (const RowStrategy strategy : all_strategies) {
    if (!can_serve<RowOperator::softmax, TypeParam>(strategy, 4, 4099)) continue;
    for (const double sign : {-1.0, 1.0}) {
      auto softmax     = strategy_trial<RowOperator::softmax, TypeParam>(strategy, 4, 4099);
      auto log_softmax = strategy_trial<RowOperator::log_softmax, TypeParam>(strategy, 4, 4099);
      for (std::int64_t i = 0; i < 4 * 4099; ++i) {
        const auto value      = static_cast<TypeParam>(sign * x + 3 * std::sin(0.002 * static_cast<double>(i)));
        softmax.x().host()[i] = log_softmax.x().host()[i] = value;
      }
      softmax.x().upload();
      log_softmax.x().upload();

      EXPECT_TRUE(softmax.run_correct(forced(strategy))) << KokkosNN::to_string(strategy) << ", sign " << sign;
      EXPECT_TRUE(log_softmax.run_correct(forced(strategy))) << KokkosNN::to_string(strategy) << ", sign " << sign;
    }
  }
}

/// The exponential itself: rows of two, (0, -t), whose second result is exp(-t) / (1 + exp(-t)).
TYPED_TEST(Accuracy, TheExponentialIsAccurateOverItsWholeRange) {
  const std::int64_t rows = 20000;
  Trial<RowOperator::softmax, TypeParam> trial(rows, 2);
  const double lowest = sizeof(TypeParam) == 8 ? 710 : 90;
  for (std::int64_t row = 0; row < rows; ++row) {
    trial.x().host()[2 * row]     = static_cast<TypeParam>(0.0f);
    trial.x().host()[2 * row + 1] = static_cast<TypeParam>(-lowest * static_cast<double>(row) / rows);
  }
  trial.x().upload();

  EXPECT_TRUE(trial.run_correct());
}

/// Differences that float cannot hold: x - max must not be rounded before the exponential.
TYPED_TEST(Accuracy, TheDifferenceFromTheMaximumIsNotRounded) {
  const std::int64_t rows = 20000;
  Trial<RowOperator::softmax, TypeParam> trial(rows, 2);
  for (std::int64_t row = 0; row < rows; ++row) {
    trial.x().host()[2 * row]     = static_cast<TypeParam>(64.1 + static_cast<double>(row) / 1000);
    trial.x().host()[2 * row + 1] = static_cast<TypeParam>(0.001234567890123456 * static_cast<double>(row % 977));
  }
  trial.x().upload();

  EXPECT_TRUE(trial.run_correct());
  EXPECT_TRUE(trial.run_correct({.scale = 0.7}));
}

/// Threads whose part of the row lies far below the maximum of another thread's: results down to the smallest normal
/// number must come out of their (max, sum) as of any other's.
TYPED_TEST(Accuracy, SmallResultsOfThreadsFarBelowTheMaximumAreNotFlushed) {
  if (!on_gpu && Exec().concurrency() < 2) GTEST_SKIP() << "one thread: all of a row has the same maximum";
  const double lowest = sizeof(TypeParam) == 8 ? -704 : -82;
  for (const RowStrategy strategy : strategies_here({RowStrategy::team_scratch, RowStrategy::team_registers,
                                                     RowStrategy::team_online, RowStrategy::split_row})) {
    SoftmaxOptions options = forced(strategy);
    if (!on_gpu) options.plan.team_size = 2;
    if (strategy == RowStrategy::split_row) options.plan.teams_per_row = 2;
    for (const std::int64_t cols : {64, 200, 2048}) {
      if (!can_serve<RowOperator::softmax, TypeParam>(strategy, 1, cols)) continue;
      Trial<RowOperator::softmax, TypeParam> trial(1, cols);
      for (double low = lowest; low < lowest + 20; low += 0.5) {
        for (std::int64_t i = 0; i < cols; ++i) trial.x().host()[i] = static_cast<TypeParam>(i < cols / 2 ? low : 0.0);
        trial.x().upload();

        EXPECT_TRUE(trial.run_correct(options)) << KokkosNN::to_string(strategy) << ", " << cols << " columns, " << low;
      }
    }
  }
}

}  // namespace KokkosNNTest
