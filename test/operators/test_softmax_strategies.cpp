// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/recorder.hpp"
#include "support/strategies.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

namespace KokkosNNTest {

/// Runs the trial and asserts that exactly the planned kernels ran, that it is the strategy's, and that its results are
/// right.
template <class AnyTrial>
::testing::AssertionResult took_the_path(AnyTrial& trial, RowStrategy strategy, const SoftmaxOptions& options) {
  const RowPlan plan      = trial.plan(options);
  const std::string label = to_string(plan);
  if (plan.strategy != strategy) return ::testing::AssertionFailure() << "planned " << label;
  if (label.find(KokkosNN::to_string(strategy)) == std::string::npos) {
    return ::testing::AssertionFailure() << label << " does not name " << KokkosNN::to_string(strategy);
  }
  if (plan.team_size > KokkosNN::device_traits(Exec()).max_team_size) {
    return ::testing::AssertionFailure() << label << " has a larger team than there can be";
  }
  trial.y().poison_all();
  const auto kernels = kernels_of([&] { trial.call(options); });
  trial.y().download();
  if (kernels != std::vector<std::string>(plan.launches(), label)) {
    return ::testing::AssertionFailure() << kernels.size() << " kernels, the first "
                                         << (kernels.empty() ? "none" : kernels[0]) << " instead of " << label;
  }
  const auto correct = trial.correct(options);
  return correct ? ::testing::AssertionSuccess() << label
                 : ::testing::AssertionFailure() << label << ": " << correct.message();
}

class SoftmaxStrategies : public ::testing::TestWithParam<RowStrategy> {
 protected:
  static std::vector<std::int64_t> candidates() {
    return {1,    2,    3,    4,    5,    7,    8,    9,    15,   16,   17,   31,    32,    33,    63,
            64,   65,   100,  127,  128,  129,  255,  256,  257,  511,  512,  513,   1000,  1023,  1024,
            1025, 1823, 2047, 2048, 2049, 4095, 4096, 4097, 8191, 8192, 8193, 16385, 32000, 32769, 65537};
  }
};

INSTANTIATE_TEST_SUITE_P(Every, SoftmaxStrategies, ::testing::ValuesIn(all_strategies),
                         [](const auto& test) { return std::string(KokkosNN::to_string(test.param)); });

template <RowOperator Op, class T>
void serves_its_widths(RowStrategy strategy, const std::vector<std::int64_t>& candidates) {
  const auto widths = servable_widths<Op, T>(strategy, 7, candidates);
  ASSERT_FALSE(widths.empty()) << "the strategy serves none of the widths";
  for (const std::int64_t cols : widths) {
    auto trial = strategy_trial<Op, T>(strategy, 7, cols);

    ASSERT_TRUE(took_the_path(trial, strategy, forced(strategy))) << cols << " columns";
  }
}

TEST_P(SoftmaxStrategies, SoftmaxOfEveryWidthItServesTakesThePathAndMatches) {
  serves_its_widths<RowOperator::softmax, float>(GetParam(), candidates());
}

TEST_P(SoftmaxStrategies, SoftmaxInDoubleTakesThePathAndMatches) {
  serves_its_widths<RowOperator::softmax, double>(GetParam(), candidates());
}

TEST_P(SoftmaxStrategies, LogSoftmaxTakesThePathAndMatches) {
  serves_its_widths<RowOperator::log_softmax, float>(GetParam(), candidates());
}

TEST_P(SoftmaxStrategies, LogSumExpTakesThePathAndMatches) {
  serves_its_widths<RowOperator::logsumexp, float>(GetParam(), candidates());
}

TEST_P(SoftmaxStrategies, SoftmaxIn16BitTakesThePathAndMatches) {
  serves_its_widths<RowOperator::softmax, Half>(GetParam(), candidates());
  serves_its_widths<RowOperator::softmax, BHalf>(GetParam(), candidates());
}

TEST_P(SoftmaxStrategies, ManyMoreRowsThanTheLeagueTakeManyTurns) {
  const RowStrategy strategy = GetParam();
  for (const std::int64_t cols : {3, 24}) {
    if (!can_serve<RowOperator::softmax, float>(strategy, 20011, cols)) continue;
    auto trial = strategy_trial<RowOperator::softmax, float>(strategy, 20011, cols);

    EXPECT_TRUE(took_the_path(trial, strategy, forced(strategy))) << cols << " columns";
  }
}

TEST_P(SoftmaxStrategies, NoRowsLaunchNothing) {
  const RowStrategy strategy = GetParam();
  auto trial                 = strategy_trial<RowOperator::softmax, float>(strategy, 0, 16);

  const auto kernels = kernels_of([&] { trial.call(forced(strategy)); });

  EXPECT_TRUE(kernels.empty()) << kernels[0];
}

/// Rows over two axes that are not one, in matrices with room behind their rows: on a GPU not the kernels of rows at
/// one distance, be they aligned or not.
template <RowOperator Op, class T>
void serves_rows_over_two_axes(RowStrategy strategy) {
  for (const std::int64_t cols : servable_widths<Op, T>(strategy, 6, {8, 31, 1000, 2049, 16385, 70001})) {
    for (const std::int64_t room : {3, 8}) {
      const std::int64_t row = cols + room;
      const Placement place  = {{2, 3, cols}, {5 * row, row, 1}, 8};
      Trial<Op, T, T, 3> trial(place, place, -1);

      EXPECT_TRUE(took_the_path(trial, strategy, forced(strategy))) << cols << " columns, rows " << row << " apart";
    }
  }
}

TEST(RowStrategies, RowsOverTwoAxesMatch) {
  for (const RowStrategy strategy :
       strategies_here({RowStrategy::vector_lanes, RowStrategy::team_scratch, RowStrategy::team_registers,
                        RowStrategy::team_online, RowStrategy::split_row})) {
    serves_rows_over_two_axes<RowOperator::softmax, float>(strategy);
    serves_rows_over_two_axes<RowOperator::log_softmax, float>(strategy);
    serves_rows_over_two_axes<RowOperator::softmax, BHalf>(strategy);
  }
}

TEST(RegisterStrategies, EveryNumberOfPacksAThreadMatches) {
  for (const RowStrategy strategy : {RowStrategy::vector_lanes, RowStrategy::team_registers}) {
    for (const int packs : {1, 2, 4, 8}) {
      SoftmaxOptions options        = forced(strategy);
      options.plan.packs_per_thread = packs;
      for (const std::int64_t cols : {1, 4, 17, 32}) {
        auto softmax     = strategy_trial<RowOperator::softmax, float>(strategy, 9, cols);
        auto log_softmax = strategy_trial<RowOperator::log_softmax, float>(strategy, 9, cols);

        EXPECT_EQ(softmax.plan(options).packs_per_thread, packs);
        EXPECT_TRUE(took_the_path(softmax, strategy, options)) << packs << " packs, " << cols << " columns";
        EXPECT_TRUE(took_the_path(log_softmax, strategy, options)) << packs << " packs, " << cols << " columns";
      }
    }
  }
}

/// 600 rows are enough for every multiprocessor, so a GPU's threads hold as much of a row as they can.
TEST(RegisterStrategies, RowsAtEachEndOfWhatANumberOfPacksHoldsMatch) {
  for (const std::int64_t cols : {1024, 1028, 1152, 1156, 1276, 1280, 1284, 1408, 1412, 1536, 1540, 1792, 1796, 2048,
                                  2052, 2304, 2556, 2560, 2564}) {
    auto softmax     = strategy_trial<RowOperator::softmax, float>(RowStrategy::vector_lanes, 600, cols);
    auto log_softmax = strategy_trial<RowOperator::log_softmax, float>(RowStrategy::vector_lanes, 600, cols);

    EXPECT_TRUE(took_the_path(softmax, softmax.plan({}).strategy, {})) << cols << " columns";
    EXPECT_TRUE(took_the_path(log_softmax, log_softmax.plan({}).strategy, {})) << cols << " columns";
  }
}

/// Threads that can work on one team here.
int widest_team() { return on_gpu ? 256 : Exec().concurrency() < 4 ? Exec().concurrency() : 4; }

TEST_P(SoftmaxStrategies, ATeamOfSeveralThreadsMatches) {
  const RowStrategy strategy = GetParam();
  const int team_size        = widest_team();
  if (team_size == 1) GTEST_SKIP() << "one thread: no team is larger than 1 here";
  SoftmaxOptions options = forced(strategy);
  options.plan.team_size = team_size;
  for (const std::int64_t cols : {1, 5, 31, 64, 1000}) {
    const auto place = strategy_place(strategy, 37, cols);
    StrategyTrial<RowOperator::softmax, float> trial(place, place, strategy_axis);
    RowPlan plan;
    try {
      plan = trial.plan(options);
    } catch (const std::invalid_argument&) {
      ASSERT_GT(cols, 1) << "not even one column";
      continue;  // too wide for this strategy
    }

    EXPECT_EQ(plan.team_size, team_size);
    EXPECT_TRUE(took_the_path(trial, strategy, options)) << cols << " columns";
  }
}

/// Rows that several teams share. Where a host computes, test_split_row.cpp runs their kernel by itself.
class SplitRow : public ::testing::Test {
 protected:
  void SetUp() override { SKIP_WHERE_TEAMS_SHARE_NO_ROWS(); }
};

TEST_F(SplitRow, AShortRowWithMoreTeamsThanPacksMatches) {
  for (const int teams : {2, 4, 16}) {
    SoftmaxOptions options     = forced(RowStrategy::split_row);
    options.plan.teams_per_row = teams;
    options.plan.team_size     = 32;
    for (const std::int64_t cols : {1, 2, 3, 5, 9}) {
      auto softmax   = strategy_trial<RowOperator::softmax, float>(RowStrategy::split_row, 5, cols);
      auto logsumexp = strategy_trial<RowOperator::logsumexp, float>(RowStrategy::split_row, 5, cols);

      EXPECT_EQ(softmax.plan(options).teams_per_row, teams);
      EXPECT_TRUE(took_the_path(softmax, RowStrategy::split_row, options)) << teams << " teams, " << cols << " columns";
      EXPECT_TRUE(took_the_path(logsumexp, RowStrategy::split_row, options)) << teams << " teams, " << cols;
    }
  }
}

TEST_F(SplitRow, MoreRowsThanGroupsOfTeamsMatch) {
  SoftmaxOptions options     = forced(RowStrategy::split_row);
  options.plan.teams_per_row = 2;
  for (const std::int64_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 1000}) {
    auto in_float  = strategy_trial<RowOperator::softmax, float>(RowStrategy::split_row, rows, 777);
    auto in_double = strategy_trial<RowOperator::softmax, double>(RowStrategy::split_row, rows, 777);

    EXPECT_TRUE(took_the_path(in_float, RowStrategy::split_row, options)) << rows << " rows";
    EXPECT_TRUE(took_the_path(in_double, RowStrategy::split_row, options)) << rows << " rows";
  }
}

template <RowOperator Op, class T>
void many_turns_match() {
  SoftmaxOptions options     = forced(RowStrategy::split_row);
  options.plan.teams_per_row = 2;
  options.plan.team_size     = 512;             // the largest, so that there are few groups
  for (const std::int64_t cols : {776, 777}) {  // aligned, two rows at once, and shifted, one
    auto trial = strategy_trial<Op, T>(RowStrategy::split_row, 1000, cols);

    EXPECT_GE(1000, 10 * trial.plan(options).league_size / 2);
    EXPECT_TRUE(took_the_path(trial, RowStrategy::split_row, options)) << to_string(Op) << ", " << cols << " columns";
  }
}

TEST_F(SplitRow, MoreTurnsThanLettersAreToldApartByMatch) {
  many_turns_match<RowOperator::softmax, float>();
  many_turns_match<RowOperator::softmax, double>();
  many_turns_match<RowOperator::log_softmax, BHalf>();
  many_turns_match<RowOperator::logsumexp, float>();
}

/// Up to a warp's lanes the first warp reads all status words, beyond all threads do.
TEST_F(SplitRow, AsManyTeamsAsAWarpHasLanesOrMoreMatch) {
  SoftmaxOptions options = forced(RowStrategy::split_row);
  for (const int teams : {2, 31, 32, 33, 64, 65, 130}) {
    options.plan.teams_per_row = teams;
    for (const int warps : {1, 3}) {
      options.plan.team_size = warps * KokkosNN::device_traits(Exec()).warp_size;
      for (const std::int64_t cols : {8000, 8001}) {  // aligned and shifted
        auto in_float = strategy_trial<RowOperator::softmax, float>(RowStrategy::split_row, 100, cols);
        auto in_bf16  = strategy_trial<RowOperator::log_softmax, BHalf>(RowStrategy::split_row, 100, cols);

        EXPECT_TRUE(took_the_path(in_float, RowStrategy::split_row, options)) << teams << " teams, " << cols;
        EXPECT_TRUE(took_the_path(in_bf16, RowStrategy::split_row, options)) << teams << " teams, " << cols;
      }
    }
  }
}

SoftmaxOptions split_by(int launches) {
  SoftmaxOptions options = forced(RowStrategy::split_row);
  options.plan.launches  = launches;
  return options;
}

template <RowOperator Op, class T>
void two_kernels_match(std::int64_t rows, std::int64_t cols, int more_teams) {
  SoftmaxOptions options = split_by(2);
  auto trial             = strategy_trial<Op, T>(RowStrategy::split_row, rows, cols);
  options.axis           = strategy_axis;
  if (more_teams > 0) options.plan.teams_per_row = trial.plan(options).teams_per_row + more_teams;

  EXPECT_EQ(trial.plan(options).launches(), 2);
  EXPECT_TRUE(took_the_path(trial, RowStrategy::split_row, options)) << rows << " rows of " << cols << " columns";
}

TEST_F(SplitRow, TwoKernelsMatchHoweverARowIsSplit) {
  for (const std::int64_t cols : {1, 2, 7, 33, 1000, 4097, 70001}) {
    for (const int more_teams : {0, 1, 40}) {
      two_kernels_match<RowOperator::softmax, float>(5, cols, more_teams);
      two_kernels_match<RowOperator::log_softmax, double>(3, cols, more_teams);
      two_kernels_match<RowOperator::logsumexp, float>(7, cols, more_teams);
      two_kernels_match<RowOperator::softmax, BHalf>(2, cols, more_teams);
    }
  }
}

TEST_F(SplitRow, RunsThatReuseItsWorkspaceMatchEveryTime) {
  auto trial = strategy_trial<RowOperator::softmax, float>(RowStrategy::split_row, 3, 5000);
  for (int run = 0; run < 50; ++run) {
    ASSERT_TRUE(trial.run_correct(split_by(1))) << "run " << run;
    ASSERT_TRUE(trial.run_correct(split_by(2))) << "run " << run << ", by two kernels";
  }
}

TEST(InnerLanes, IsWhatALayoutLeftViewWithItsLastAxisReducedGets) {
  const Placement place = left({1000, 100});
  Trial<RowOperator::softmax, float> trial(place, place, -1);

  EXPECT_TRUE(took_the_path(trial, RowStrategy::inner_lanes, {}));
}

TEST(InnerLanes, EveryInnerExtentMatches) {
  for (const std::int64_t inner : {1, 2, 3, 4, 5, 7, 8, 16, 31, 32, 33, 100, 129, 1000}) {
    for (const std::int64_t cols : {1, 2, 19, 257}) {
      const Placement place = right({2, cols, inner});
      Trial<RowOperator::softmax, float, float, 3> trial(place, place, 1);

      EXPECT_TRUE(took_the_path(trial, RowStrategy::inner_lanes, forced(RowStrategy::inner_lanes)))
          << inner << " wide, " << cols << " columns";
    }
  }
}

/// Widths at which a team keeps its columns, or half of what it could keep, or reads them twice; rows side by side that
/// fill packs and blocks, and such that do neither.
template <RowOperator Op, class T>
void kept_and_read_twice_match() {
  SoftmaxOptions options = forced(RowStrategy::inner_lanes);
  options.scale          = -1.5;
  for (const std::int64_t cols : {1, 63, 64, 65, 256, 512, 513, 1023, 1024, 1025, 2100, 9301}) {
    for (const std::int64_t inner : {33, 64, 70}) {
      const Placement x = left({inner, cols});
      Trial<Op, T> trial(x, Op == RowOperator::logsumexp ? right({inner}) : x, -1);

      EXPECT_TRUE(took_the_path(trial, RowStrategy::inner_lanes, options)) << inner << " wide, " << cols << " columns";
    }
  }
}

TEST(InnerLanes, ColumnsThatAreKeptAndColumnsThatAreReadTwiceMatch) {
  kept_and_read_twice_match<RowOperator::softmax, float>();
  kept_and_read_twice_match<RowOperator::softmax, BHalf>();
  kept_and_read_twice_match<RowOperator::softmax, Half>();
  kept_and_read_twice_match<RowOperator::softmax, double>();
  kept_and_read_twice_match<RowOperator::log_softmax, BHalf>();
  kept_and_read_twice_match<RowOperator::logsumexp, float>();
  kept_and_read_twice_match<RowOperator::logsumexp, BHalf>();
}

/// Logits above all before them by more than a running reference may lag behind: at every column, at many, at one.
template <RowOperator Op, class T>
void logits_far_above_those_before_match(double scale) {
  SoftmaxOptions options = forced(RowStrategy::inner_lanes);
  options.scale          = scale;
  for (const Recipe recipe : {Recipe::ascending, Recipe::huge, Recipe::one_dominant}) {
    for (const std::int64_t cols : {9, 100, 9301}) {
      const Placement x = left({37, cols});
      Trial<Op, T> trial(x, Op == RowOperator::logsumexp ? right({37}) : x, -1, recipe);

      EXPECT_TRUE(took_the_path(trial, RowStrategy::inner_lanes, options))
          << to_string(recipe) << ", " << cols << " columns, scale " << scale;
    }
  }
}

TEST(InnerLanes, LogitsFarAboveThoseBeforeMatch) {
  for (const double scale : {1.0, -20.0, 1e4}) {
    logits_far_above_those_before_match<RowOperator::softmax, float>(scale);
    logits_far_above_those_before_match<RowOperator::log_softmax, float>(scale);
    logits_far_above_those_before_match<RowOperator::logsumexp, float>(scale);
    logits_far_above_those_before_match<RowOperator::softmax, double>(scale);
    logits_far_above_those_before_match<RowOperator::logsumexp, double>(scale);
  }
}

TEST(SoftmaxStrategies, ResultsThatNoCacheHoldsMatch) {
  const std::int64_t rows = rows_beyond_the_cache(1000);
  if (rows == 0) GTEST_SKIP() << "the last-level cache is too large for this test, or not known";
  for (const Placement& place :
       {right({rows, 1000}), right({rows, 1000}, 5), left({rows, 1000}), left({rows + 1, 1000})}) {
    Trial<RowOperator::softmax, float> softmax(place, place, -1);
    Trial<RowOperator::log_softmax, float> log_softmax(place, place, -1);

    EXPECT_EQ(softmax.plan().nontemporal_stores, !on_gpu);
    EXPECT_TRUE(softmax.run_correct()) << to_string(softmax.plan());
    EXPECT_TRUE(log_softmax.run_correct()) << to_string(log_softmax.plan());
  }
}

TEST(SoftmaxStrategies, ResultsOf16BitThatNoCacheHoldsMatch) {
  const std::int64_t cols = 1105, rows = 2 * rows_beyond_the_cache(cols);
  if (rows == 0) GTEST_SKIP() << "the last-level cache is too large for this test, or not known";
  for (const Placement& place : {right({rows, cols}), left({rows, cols})}) {
    Trial<RowOperator::softmax, BHalf> trial(place, place, -1, Recipe::uniform, 1, 3);

    EXPECT_EQ(trial.plan().nontemporal_stores, !on_gpu);
    EXPECT_TRUE(trial.run_correct()) << to_string(trial.plan());
  }
}

TEST(InnerLanes, EveryNumberOfLanesMatches) {
  const Placement place = right({2, 100, 70});
  for (const int lanes : {1, 2, 4, 8, 16, 32}) {
    SoftmaxOptions options       = forced(RowStrategy::inner_lanes);
    options.plan.threads_per_row = lanes;
    options.axis                 = 1;
    Trial<RowOperator::softmax, float, float, 3> trial(place, place, 1);
    RowPlan plan;
    try {
      plan = trial.plan(options);
    } catch (const std::invalid_argument& e) {
      ASSERT_FALSE(on_gpu) << e.what();  // a host has as many lanes as its team has threads
      continue;
    }

    EXPECT_EQ(plan.threads_per_row, lanes);
    EXPECT_TRUE(took_the_path(trial, RowStrategy::inner_lanes, options)) << lanes << " lanes";
  }
}

template <RowOperator Op, class T, class Y = T>
void serves_many_short_rows() {
  for (const std::int64_t cols : {1, 3, 7, 10, 17, 25}) {
    const std::int64_t rows = many_short_rows<T>(cols);
    for (const Recipe recipe : all_recipes) {
      if (cols != 3 && recipe != Recipe::wide) continue;
      for (const double scale : {1.0, -0.3}) {
        Trial<Op, T, Y> trial(rows, cols, recipe);
        const SoftmaxOptions options{.scale = scale};
        const RowPlan plan = trial.plan(options);

        EXPECT_EQ(plan.kernel == RowKernel::staged_rows, go_through_scratch<T>(cols)) << to_string(plan);
        EXPECT_TRUE(took_the_path(trial, plan.strategy, options))
            << rows << " x " << cols << ", " << to_string(recipe) << ", scale " << scale;
      }
    }
  }
}

TEST(VectorLanes, ManyShortRowsThatBeginAnywhereMatch) {
  serves_many_short_rows<RowOperator::softmax, float>();
  serves_many_short_rows<RowOperator::log_softmax, float>();
  serves_many_short_rows<RowOperator::logsumexp, float>();
  serves_many_short_rows<RowOperator::softmax, double>();
  serves_many_short_rows<RowOperator::softmax, BHalf>();
  serves_many_short_rows<RowOperator::log_softmax, Half>();
  serves_many_short_rows<RowOperator::logsumexp, Half, float>();
}

TEST(VectorLanes, ManyShortRowsMatchInPlaceAndHoldWhatIsNoNumber) {
  constexpr std::int64_t cols = 7;
  const std::int64_t rows     = many_short_rows<float>(cols);
  const Kokkos::View<float**, Kokkos::LayoutRight, Exec> x("x", rows, cols), y("y", rows, cols);
  const auto on_host  = Kokkos::create_mirror_view(x);
  constexpr float inf = std::numeric_limits<float>::infinity();
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < cols; ++c) on_host(r, c) = static_cast<float>((r * cols + c) % 11);
  }
  on_host(3, 2) = std::numeric_limits<float>::quiet_NaN();
  for (std::int64_t c = 0; c < cols; ++c) on_host(5, c) = -inf;
  on_host(rows - 1, cols - 1) = inf;
  Kokkos::deep_copy(x, on_host);

  KokkosNN::softmax(x, y);
  KokkosNN::softmax(x, x);

  const auto of_x = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), x);
  const auto of_y = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), y);
  for (std::int64_t r = 0; r < rows; ++r) {
    const bool is_number = r != 3 && r != 5 && r != rows - 1;
    for (std::int64_t c = 0; c < cols; ++c) {
      ASSERT_EQ(std::isnan(of_y(r, c)), !is_number) << r << ", " << c;
      if (is_number) {
        ASSERT_EQ(of_x(r, c), of_y(r, c)) << r << ", " << c;
      }
    }
  }
}

/// Few rows that teams hold in registers have a kernel of their own on an NVIDIA GPU.
template <RowOperator Op>
void serves_few_rows_and_many() {
  const RowStrategy strategy = RowStrategy::team_registers;
  for (const std::int64_t rows : {1, 9, 600}) {
    for (const std::int64_t cols : servable_widths<Op, float>(strategy, rows, {128, 1000, 1024, 2052, 4096, 8192})) {
      for (const Recipe recipe : all_recipes) {
        if (rows > 9 && recipe != Recipe::wide) continue;
        auto trial = strategy_trial<Op, float>(strategy, rows, cols, recipe);

        EXPECT_TRUE(took_the_path(trial, strategy, forced(strategy)))
            << rows << " x " << cols << ", " << to_string(recipe);
      }
    }
  }
}

TEST(TeamRegisters, FewRowsAndManyMatch) {
  serves_few_rows_and_many<RowOperator::softmax>();
  serves_few_rows_and_many<RowOperator::log_softmax>();
  serves_few_rows_and_many<RowOperator::logsumexp>();
}

/// All exponentials are just below 2 then, or are rounded to it: no sum of them is larger.
TEST(TeamRegisters, TheLargestSumsMatch) {
  const SoftmaxOptions options = forced(RowStrategy::team_registers);
  for (const std::int64_t cols : {1024, 8192, 32768}) {
    if (!can_serve<RowOperator::softmax, float>(RowStrategy::team_registers, 3, cols)) continue;
    const Kokkos::View<float**, Kokkos::LayoutRight, Exec> x("x", 3, cols), y("y", 3, cols);
    Kokkos::deep_copy(x, 0x1.62e42ep-1f);  // below log 2

    KokkosNN::softmax(x, y, options);

    const auto result    = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), y);
    const float expected = 1.0f / static_cast<float>(cols);
    for (const std::int64_t c : {std::int64_t(0), cols - 1}) {
      EXPECT_NEAR(result(2, c), expected, 4e-7f * expected) << cols << " columns";
    }
  }
}

TEST(VectorLanes, EveryNumberOfLanesMatches) {
  for (const int lanes : {1, 2, 4, 8, 16, 32}) {
    SoftmaxOptions options       = forced(RowStrategy::vector_lanes);
    options.plan.threads_per_row = lanes;
    for (const std::int64_t cols : {1, 3, 8, 25}) {
      Trial<RowOperator::softmax, float> trial(101, cols);
      RowPlan plan;
      try {
        plan = trial.plan(options);
      } catch (const std::invalid_argument& e) {
        ASSERT_FALSE(on_gpu) << e.what();  // lanes of a host's thread are its vector instructions
        continue;
      }

      EXPECT_EQ(plan.threads_per_row, lanes);
      EXPECT_TRUE(took_the_path(trial, RowStrategy::vector_lanes, options))
          << lanes << " lanes, " << cols << " columns";
    }
  }
}

}  // namespace KokkosNNTest
