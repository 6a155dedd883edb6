// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/devices.hpp"

#include <KokkosNN/impl/traits.hpp>
#include <KokkosNN/options.hpp>
#include <KokkosNN/plan.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <regex>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

// The planner is a pure function of the problem and the machine: these tests make machines up and launch nothing.

namespace KokkosNNTest {

using namespace KokkosNN;

/// Rows that lie side by side: the last axis of a LayoutLeft View.
RowProblem side_by_side(std::int64_t rows, std::int64_t cols, ElementType x = ElementType::f32,
                        ElementType y = ElementType::f32) {
  RowProblem p       = problem(rows, cols, x, y);
  p.x_col_stride     = rows;
  p.y_col_stride     = rows;
  p.inner            = rows;
  p.inner_contiguous = true;
  return p;
}

SoftmaxOptions forcing(RowStrategy strategy) { return {.plan = {.strategy = strategy}}; }

constexpr std::array strategies{RowStrategy::vector_lanes, RowStrategy::team_scratch, RowStrategy::team_registers,
                                RowStrategy::team_online,  RowStrategy::split_row,    RowStrategy::row_in_cluster,
                                RowStrategy::inner_lanes};

std::string what_of(const RowProblem& p, const DeviceTraits& traits, const SoftmaxOptions& options) {
  try {
    return "accepted as " + to_string(make_plan(p, traits, options));
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
}

// --- choices ---

TEST(Planner, ManyShortRowsGoToVectorLanes) {
  for (const auto& traits : {h200(), wave64(), host(2)}) {
    for (const std::int64_t cols : {1, 2, 31, 32, 64}) {
      EXPECT_EQ(make_plan(problem(1 << 20, cols), traits).strategy, RowStrategy::vector_lanes) << cols;
    }
  }
}

/// Rows that lie one behind another and do not all begin at a pack.
RowProblem one_piece(std::int64_t rows, std::int64_t cols, ElementType x = ElementType::f32,
                     ElementType y = ElementType::f32) {
  RowProblem p = problem(rows, cols, x, y);
  p.form       = RowForm::misaligned;
  p.one_piece  = true;
  return p;
}

TEST(Planner, ManyShortRowsOfOnePieceGoThroughScratchOnAnNvidiaGpu) {
  for (const std::int64_t cols : {1, 3, 7, 10, 33, 59}) {
    const RowPlan plan = make_plan(one_piece(1 << 20, cols), h200());

    EXPECT_EQ(plan.kernel, RowKernel::staged_rows) << to_string(plan);
    EXPECT_EQ(plan.scratch_bytes, std::size_t(plan.team_size * cols * 4)) << to_string(plan);
    EXPECT_NE(make_plan(one_piece(1 << 20, cols), wave64()).kernel, RowKernel::staged_rows);
    EXPECT_NE(make_plan(one_piece(1 << 20, cols), host(2)).kernel, RowKernel::staged_rows);
  }
  EXPECT_EQ(make_plan(one_piece(1 << 20, 119, ElementType::bf16, ElementType::bf16), h200()).kernel,
            RowKernel::staged_rows);
}

TEST(Planner, RowsGoThroughScratchOnlyWhereThatIsFasterAndServes) {
  const auto is_staged = [](const RowProblem& p, const SoftmaxOptions& options = {}) {
    return make_plan(p, h200(), options).kernel == RowKernel::staged_rows;
  };
  RowProblem padded = one_piece(1 << 20, 7);
  padded.one_piece  = false;
  RowProblem even   = one_piece(1 << 20, 8);
  even.form         = RowForm::aligned;
  RowProblem apart  = one_piece(1 << 20, 7);
  apart.form        = RowForm::strided;
  RowProblem sums   = one_piece(1 << 20, 7, ElementType::f16, ElementType::f32);
  sums.op           = RowOperator::logsumexp;
  sums.y_bytes      = 2;  // as the input's: rows are not written

  RowProblem gradient = one_piece(1 << 20, 17);
  gradient.op         = RowOperator::softmax_backward;

  EXPECT_TRUE(is_staged(gradient));
  gradient.cols = 33;
  EXPECT_FALSE(is_staged(gradient));
  gradient.cols    = 17;
  gradient.dy_type = ElementType::bf16;
  EXPECT_FALSE(is_staged(gradient)) << "tensors of two types";
  EXPECT_TRUE(is_staged(one_piece(1 << 20, 7)));
  EXPECT_TRUE(is_staged(one_piece(1 << 20, 7), forcing(RowStrategy::vector_lanes)));
  EXPECT_TRUE(is_staged(sums));
  EXPECT_FALSE(is_staged(padded));
  EXPECT_FALSE(is_staged(even));
  EXPECT_FALSE(is_staged(apart));
  EXPECT_FALSE(is_staged(one_piece(1 << 20, 61)));
  EXPECT_FALSE(is_staged(one_piece(1 << 14, 33))) << "one wave of teams takes as long as a row";
  EXPECT_TRUE(is_staged(one_piece(1 << 15, 33, ElementType::bf16, ElementType::bf16)));
  EXPECT_FALSE(is_staged(one_piece(1 << 20, 7, ElementType::f32, ElementType::bf16)));
  EXPECT_FALSE(is_staged(one_piece(1 << 20, 7), {.plan = {.threads_per_row = 8}}));
  EXPECT_FALSE(is_staged(one_piece(1 << 20, 7), {.determinism = Determinism::batch_invariant}));
}

TEST(Planner, TwoPacksAThreadAreRightWhereNearlyAllOfThemAreInTheRow) {
  const auto plan = [](std::int64_t cols, ElementType type) {
    RowProblem p = problem(1 << 20, cols, type, type);
    p.form       = RowForm::aligned;
    return make_plan(p, h200());
  };

  EXPECT_EQ(plan(8, ElementType::f32).packs_per_thread, 1);
  EXPECT_EQ(plan(16, ElementType::f32).packs_per_thread, 2);
  EXPECT_EQ(plan(48, ElementType::f32).packs_per_thread, 4);
  EXPECT_EQ(plan(64, ElementType::f32).packs_per_thread, 2);
  EXPECT_EQ(plan(16, ElementType::bf16).packs_per_thread, 1);
  EXPECT_EQ(plan(16, ElementType::bf16).threads_per_row, 2);
  EXPECT_EQ(plan(72, ElementType::bf16).packs_per_thread, 4);
  EXPECT_EQ(plan(128, ElementType::bf16).packs_per_thread, 2);
  EXPECT_EQ(plan(256, ElementType::bf16).threads_per_row, 16);
}

TEST(Planner, RowsOfSomeThousandStayInRegistersOnAGpu) {
  for (const auto& traits : {h200(), wave64()}) {
    for (const std::int64_t cols : {1000, 2048, 4096}) {
      const RowPlan plan = make_plan(problem(4096, cols), traits);

      EXPECT_TRUE(plan.strategy == RowStrategy::vector_lanes || plan.strategy == RowStrategy::team_registers)
          << to_string(plan);
    }
    EXPECT_EQ(make_plan(problem(4096, 8192), traits).strategy, RowStrategy::team_registers);
  }
}

/// Rows that lie one behind the other from a 16-byte boundary on.
RowProblem contiguous(std::int64_t rows, std::int64_t cols) {
  RowProblem p = problem(rows, cols);
  p.form       = RowForm::aligned;
  return p;
}

TEST(Planner, TeamsAskForTheRowsOfALaterWaveAsFarAsTheCacheKeepsThem) {
  for (const std::int64_t cols : {16, 32, 96, 99, 32768}) {
    const RowPlan plan = make_plan(contiguous(1 << 20, cols), h200());

    EXPECT_GT(plan.rows_ahead, 0) << to_string(plan);
    EXPECT_EQ(plan.rows_ahead % plan.rows_per_team, 0) << to_string(plan);
    EXPECT_LE(plan.rows_ahead * cols * 4, std::int64_t(h200().cache / 4)) << to_string(plan);
  }
}

TEST(Planner, NobodyAsksForRowsWhereThatIsNoUse) {
  RowProblem gradient   = contiguous(1 << 20, 4096);
  gradient.op           = RowOperator::softmax_backward;
  DeviceTraits older    = h200();
  older.prefetches      = false;
  const auto rows_ahead = [](const RowProblem& p, const DeviceTraits& traits) {
    return make_plan(p, traits).rows_ahead;
  };

  EXPECT_NE(rows_ahead(contiguous(4096, 2048), h200()), 0);
  EXPECT_NE(rows_ahead(contiguous(1 << 20, 32768), h200()), 0);
  EXPECT_EQ(rows_ahead(contiguous(4096, 1024), h200()), 0) << "all rows are loaded at once";
  EXPECT_EQ(rows_ahead(problem(1 << 20, 4096), h200()), 0) << "rows that are not contiguous";
  EXPECT_EQ(rows_ahead(gradient, h200()), 0);
  EXPECT_EQ(rows_ahead(contiguous(1 << 20, 32768), older), 0);
  EXPECT_EQ(rows_ahead(contiguous(1 << 20, 32768), host(2)), 0);
}

TEST(Planner, RowsAreEitherAskedForOrKeptToTheLastUnlessThreadsHaveLittleInFlight) {
  const auto plan = [](std::int64_t rows, std::int64_t cols, ElementType type = ElementType::f32) {
    RowProblem p = problem(rows, cols, type, type);
    p.form       = RowForm::aligned;
    return make_plan(p, h200());
  };
  const auto keeps = [](const RowPlan& p) { return p.eviction == Eviction::last; };
  const auto asks  = [](const RowPlan& p) { return p.rows_ahead > 0; };

  for (const std::int64_t cols : {128, 1024, 4096, 16384}) {
    const RowPlan large = plan((1 << 27) / cols, cols);
    EXPECT_TRUE(keeps(large) && !asks(large)) << to_string(large);
  }
  const RowPlan a_quarter_empty = plan(1 << 20, 96), two_packs = plan(1 << 20, 64), large_teams = plan(4096, 32000);
  EXPECT_TRUE(keeps(a_quarter_empty) && asks(a_quarter_empty)) << to_string(a_quarter_empty);
  EXPECT_TRUE(keeps(two_packs) && asks(two_packs)) << to_string(two_packs);
  EXPECT_TRUE(!keeps(large_teams) && asks(large_teams)) << to_string(large_teams);
  EXPECT_TRUE(asks(plan(16384, 512)) && !asks(plan(8576, 1024))) << "small calls, by 4 packs and by 8";
  EXPECT_TRUE(asks(plan(4096, 8192, ElementType::f64))) << "doubles";
}

TEST(Planner, RowsOfFewElementsOf16BitsAreAskedForFurtherAhead) {
  RowProblem p       = problem(1 << 20, 16, ElementType::bf16, ElementType::bf16);
  p.form             = RowForm::aligned;
  const RowPlan bf16 = make_plan(p, h200()), f32 = make_plan(contiguous(1 << 20, 16), h200());

  EXPECT_EQ(bf16.rows_ahead, 2 * 132 * 8 * bf16.rows_per_team) << to_string(bf16);
  EXPECT_EQ(f32.rows_ahead, 132 * 8 * f32.rows_per_team) << to_string(f32);
}

TEST(Planner, WhatIsReadLeavesTheCacheAsTheCallIsLarge) {
  const auto evicted = [](std::int64_t rows, std::int64_t cols, RowOperator op = RowOperator::softmax) {
    RowProblem p = contiguous(rows, cols);
    p.op         = op;
    return make_plan(p, h200()).eviction;
  };
  EXPECT_EQ(evicted(2048, 1024), Eviction::half_last);
  EXPECT_EQ(evicted(4096, 2048), Eviction::quarter_last);
  EXPECT_EQ(evicted(16384, 1000), Eviction::last);
  EXPECT_EQ(evicted(16384, 8192), Eviction::last);
  EXPECT_EQ(evicted(4096, 32000), Eviction::normal) << "asked for ahead, too";
  EXPECT_EQ(evicted(4096, 4096, RowOperator::logsumexp), Eviction::first) << "nothing is written";
  EXPECT_EQ(evicted(4096, 8192, RowOperator::softmax_backward), Eviction::last) << "two tensors are read";
  EXPECT_EQ(make_plan(side_by_side(65536, 4096), h200()).eviction, Eviction::last) << "a team moves parts of lines";
}

TEST(Planner, WhatIsReadLeavesTheCacheInTurnWhereNobodyCanTellIt) {
  const auto evicted = [](const RowProblem& p, const DeviceTraits& traits, const SoftmaxOptions& options = {}) {
    return make_plan(p, traits, options).eviction;
  };
  DeviceTraits older   = h200();
  older.evicts_as_told = false;
  DeviceTraits unknown = h200();
  unknown.cache        = 0;
  RowProblem masked    = contiguous(2048, 1024);
  masked.op            = RowOperator::masked_softmax;
  RowProblem side      = side_by_side(65536, 64);
  const auto several   = forcing(RowStrategy::split_row);

  EXPECT_EQ(evicted(contiguous(2048, 1024), h200()), Eviction::half_last);
  EXPECT_EQ(evicted(contiguous(2048, 1024), older), Eviction::normal);
  EXPECT_EQ(evicted(contiguous(2048, 1024), unknown), Eviction::normal);
  EXPECT_EQ(evicted(contiguous(2048, 1024), wave64()), Eviction::normal);
  EXPECT_EQ(evicted(contiguous(2048, 1024), host(2)), Eviction::normal);
  EXPECT_EQ(evicted(masked, h200()), Eviction::normal);
  EXPECT_EQ(evicted(problem(2048, 1024), h200()), Eviction::normal) << "rows that are not contiguous";
  EXPECT_EQ(evicted(contiguous(2, 1 << 20), h200(), several), Eviction::normal) << "no register is left";
  EXPECT_NE(evicted(side, h200(), forcing(RowStrategy::inner_lanes)), Eviction::normal) << "rows side by side";
}

TEST(Planner, ATeamOfWarpsTakesFewerPacksAThreadWhereManyWouldBeEmpty) {
  const auto packs = [](std::int64_t cols, RowForm form = RowForm::misaligned) {
    RowProblem rows = problem(4096, cols);
    rows.form       = form;
    return make_plan(rows, h200()).packs_per_thread;
  };

  EXPECT_EQ(packs(1280), 6);  // 5 packs of 8 would be used, 5 of 6 are
  EXPECT_EQ(packs(1280, RowForm::strided), 8) << "strided rows have no other kernels than of 2, 4 and 8";
  EXPECT_EQ(packs(4096), 8);  // all are used
  EXPECT_EQ(packs(2048), 4);  // a width at which smaller shares were faster
  EXPECT_EQ(packs(1664), 8);  // with 6 packs it takes a warp more
  EXPECT_EQ(packs(16384), 8);
}

TEST(Planner, AlignedRowsOfFloatsOnAnNvidiaGpuTakeAsManyPacksAThreadAsLeaveFewThreadsIdle) {
  const auto planned = [](RowOperator op, std::int64_t cols, SoftmaxOptions options = {}) {
    RowProblem rows = contiguous(4096, cols);
    rows.op         = op;
    return make_plan(rows, h200(), options);
  };

  EXPECT_EQ(planned(RowOperator::softmax, 1152).packs_per_thread, 10);
  EXPECT_EQ(planned(RowOperator::softmax, 1152).threads_per_row, 32);
  EXPECT_EQ(planned(RowOperator::softmax, 1280).packs_per_thread, 10);
  EXPECT_EQ(planned(RowOperator::softmax, 1280).threads_per_row, 32);
  for (const RowOperator op : {RowOperator::softmax, RowOperator::log_softmax}) {
    EXPECT_EQ(planned(op, 1792).packs_per_thread, 5);
    EXPECT_EQ(planned(op, 2560).packs_per_thread, 5);
  }
  for (const RowOperator op : {RowOperator::log_softmax, RowOperator::logsumexp}) {
    EXPECT_EQ(planned(op, 1152).packs_per_thread, 6) << "one warp would be slower";
  }
  EXPECT_EQ(planned(RowOperator::softmax, 1152, {.determinism = Determinism::batch_invariant}).packs_per_thread, 8)
      << "a row that is not aligned could not have as many as leave few threads idle";
}

/// A large call's plan, on aligned rows.
RowPlan planned_large(RowOperator op, std::int64_t cols, ElementType type = ElementType::f32) {
  RowProblem p = problem((1 << 25) / cols, cols, type, type);
  p.op         = op;
  p.form       = RowForm::aligned;
  return make_plan(p, h200());
}

TEST(Planner, RowsThatLeaveManyPacksEmptyTakeFewerThreadsOnAnNvidiaGpu) {
  EXPECT_EQ(planned_large(RowOperator::softmax, 128).threads_per_row, 8);
  EXPECT_EQ(planned_large(RowOperator::softmax, 132).threads_per_row, 8) << "16 would have two packs or three";
  EXPECT_EQ(planned_large(RowOperator::softmax, 256).threads_per_row, 16);
  EXPECT_EQ(planned_large(RowOperator::softmax, 272).threads_per_row, 16);
  EXPECT_EQ(planned_large(RowOperator::softmax_backward, 132).threads_per_row, 16);
  EXPECT_EQ(planned_large(RowOperator::softmax_backward, 128).threads_per_row, 16);
  EXPECT_EQ(planned_large(RowOperator::log_softmax, 208, ElementType::bf16).threads_per_row, 8);
  EXPECT_EQ(planned_large(RowOperator::softmax, 208, ElementType::bf16).threads_per_row, 16)
      << "computes more to write";
}

TEST(Planner, LargeCallsMayTakeFewerThreadsARowThanSmallOnes) {
  const auto planned = [](std::int64_t rows, SoftmaxOptions options = {}) {
    RowProblem p = problem(rows, 197);
    p.form       = RowForm::misaligned;
    return make_plan(p, h200(), options);
  };
  const SoftmaxOptions invariant = {.determinism = Determinism::batch_invariant};

  EXPECT_EQ(planned(262144).threads_per_row, 8);
  EXPECT_EQ(planned(32768).threads_per_row, 16);
  EXPECT_EQ(planned(32768, invariant).threads_per_row, planned(262144, invariant).threads_per_row)
      << "sums of one order";
}

TEST(Planner, LossesTakeFewThreadsARow) {
  EXPECT_EQ(planned_large(RowOperator::cross_entropy, 32).threads_per_row, 1);
  EXPECT_EQ(planned_large(RowOperator::cross_entropy_with_gradient, 32).threads_per_row, 2);
  EXPECT_EQ(planned_large(RowOperator::cross_entropy_backward, 32).threads_per_row, 4) << "element by element";
  EXPECT_EQ(planned_large(RowOperator::cross_entropy_with_gradient, 500).threads_per_row, 16);
  EXPECT_EQ(planned_large(RowOperator::logsumexp_backward, 128).threads_per_row, 8);
}

TEST(Planner, LogSumExpsOnAnNvidiaGpuTakeFewThreadsARow) {
  const auto planned = [](RowOperator op, std::int64_t rows, std::int64_t cols) {
    RowProblem p = problem(rows, cols);
    p.op         = op;
    p.form       = cols % 4 == 0 ? RowForm::aligned : RowForm::misaligned;
    return make_plan(p, h200());
  };

  EXPECT_EQ(planned(RowOperator::logsumexp, 1048576, 16).threads_per_row, 1);
  EXPECT_EQ(planned(RowOperator::softmax, 1048576, 16).threads_per_row, 2);
  EXPECT_EQ(planned(RowOperator::logsumexp, 1048576, 128).threads_per_row, 4);
  EXPECT_EQ(planned(RowOperator::logsumexp, 262144, 249).threads_per_row, 8);
  EXPECT_EQ(planned(RowOperator::softmax, 262144, 249).threads_per_row, 16);
  EXPECT_EQ(planned(RowOperator::logsumexp, 4096, 2048).threads_per_row, 128);
  EXPECT_EQ(planned(RowOperator::logsumexp, 16384, 4096).packs_per_thread, 8);

  RowProblem halves = contiguous(1048576, 64);
  halves.op         = RowOperator::logsumexp;
  halves.x_type     = ElementType::bf16;
  halves.x_bytes    = 2;
  halves.y_bytes    = 2;
  EXPECT_EQ(make_plan(halves, h200()).threads_per_row, 2);
}

TEST(Planner, FewLongLogSumExpsAreSplitOverAsManyTeamsAsRunAtOnce) {
  const auto planned = [](std::int64_t rows, SoftmaxOptions options = {}) {
    RowProblem p = contiguous(rows, 1048576);
    p.op         = RowOperator::logsumexp;
    return make_plan(p, h200(), options);
  };

  EXPECT_EQ(planned(64).strategy, RowStrategy::split_row);
  EXPECT_EQ(planned(64).teams_per_row, 4) << "396 teams run at once";
  EXPECT_EQ(planned(64).league_size, 256);
  EXPECT_EQ(planned(128).teams_per_row, 2);
  const SoftmaxOptions invariant{.determinism = Determinism::batch_invariant,
                                 .plan        = {.strategy = RowStrategy::split_row}};
  EXPECT_EQ(planned(64, invariant).teams_per_row, planned(20, invariant).teams_per_row);
  EXPECT_EQ(planned(64, invariant).teams_per_row, 128);
}

TEST(Planner, MaskedRowsOnAnNvidiaGpuTakeMorePacksAThread) {
  const auto packs = [](std::int64_t cols, ElementType type = ElementType::f32, RowForm form = RowForm::aligned,
                        const SoftmaxOptions& options = {}) {
    RowProblem masked = problem(131072, cols, type, type);
    masked.op         = RowOperator::masked_softmax;
    masked.form       = form;
    return make_plan(masked, h200(), options).packs_per_thread;
  };
  const SoftmaxOptions invariant{.determinism = Determinism::batch_invariant};

  EXPECT_EQ(packs(16), 2);
  EXPECT_EQ(packs(32), 4);   // 2 without a mask
  EXPECT_EQ(packs(128), 8);  // 4 without a mask
  EXPECT_EQ(packs(2048), 8);
  EXPECT_EQ(packs(512, ElementType::bf16), 8);
  EXPECT_EQ(packs(500, ElementType::bf16), 2) << "elements are moved one by one";
  EXPECT_EQ(packs(512, ElementType::bf16, RowForm::aligned, invariant),
            packs(512, ElementType::bf16, RowForm::strided, invariant));
}

TEST(Planner, MaskedLogarithmsOnAGpuHaveTheFewKernelsThatThereAre) {
  for (const RowOperator op :
       {RowOperator::masked_log_softmax, RowOperator::masked_logsumexp, RowOperator::masked_log_softmax_backward}) {
    RowProblem masked = problem(131072, 100);
    masked.op         = op;
    const int most    = op == RowOperator::masked_log_softmax_backward ? 4 : 8;
    for (const auto& [cols, packs] : {std::pair<std::int64_t, int>{16, 2}, {1024, most}, {4096, most}}) {
      masked.cols = cols;
      EXPECT_EQ(make_plan(masked, h200()).packs_per_thread, packs) << to_string(op) << ", " << cols;
    }
    masked.cols = 100;
    SoftmaxOptions four_packs;
    four_packs.plan = {.strategy = RowStrategy::vector_lanes, .packs_per_thread = most / 2 + 1};
    EXPECT_THROW(make_plan(masked, h200(), four_packs), std::invalid_argument) << to_string(op);
    EXPECT_THROW(make_plan(masked, h200(), forcing(RowStrategy::team_scratch)), std::invalid_argument) << to_string(op);
    // Rows that lanes hold by all packs are held by them, whatever the table has.
    masked.cols = 31 * 4 * most;
    EXPECT_EQ(make_plan(masked, h200(), forcing(RowStrategy::vector_lanes)).packs_per_thread, most) << to_string(op);
    masked.cols = 30000;
    EXPECT_NE(make_plan(masked, h200()).strategy, RowStrategy::team_registers) << to_string(op);
  }
}

TEST(Planner, FewRowsOnAGpuTakeAsFewPacksAThreadAsATeamOf256Holds) {
  for (const auto& [cols, packs] : {std::pair<std::int64_t, int>{256, 1}, {1024, 1}, {1028, 2}, {4096, 4}, {8192, 8}}) {
    RowProblem rows = problem(64, cols);
    EXPECT_EQ(make_plan(rows, h200()).packs_per_thread, std::max(packs, 2)) << cols;  // strided ones have two or more
    rows.form = RowForm::misaligned;
    EXPECT_EQ(make_plan(rows, h200()).packs_per_thread, packs) << cols;
  }
  // Whoever names a team gets one that holds the row.
  SoftmaxOptions small = forcing(RowStrategy::team_registers);
  small.plan.team_size = 64;
  EXPECT_EQ(make_plan(problem(40, 1024), h200(), small).packs_per_thread, 8);
}

TEST(Planner, FewAlignedRowsOfFloatsOnAnNvidiaGpuHaveAKernelOfTheirOwn) {
  const auto label = [](std::int64_t rows, std::int64_t cols, ElementType type, const SoftmaxOptions& options) {
    RowProblem p = problem(rows, cols, type, type);
    p.form       = cols % 4 == 0 ? RowForm::aligned : RowForm::misaligned;
    return to_string(make_plan(p, h200(), options));
  };
  const SoftmaxOptions held = forcing(RowStrategy::team_registers);
  const auto is_few         = [&](std::int64_t rows, std::int64_t cols, ElementType type = ElementType::f32,
                                  KokkosNN::Determinism determinism = KokkosNN::Determinism::run_to_run) {
    SoftmaxOptions options = held;
    options.determinism    = determinism;
    return label(rows, cols, type, options).find(",few_rows/1024]") != std::string::npos;
  };

  EXPECT_EQ(label(64, 1024, ElementType::f32, {}),
            "KokkosNN::softmax[team_registers,f32,v4,k1,l256,ts256,few_rows/1024]");
  EXPECT_EQ(label(8, 8192, ElementType::f32, {}),
            "KokkosNN::softmax[team_registers,f32,v4,k4,l512,ts512,few_rows/1024]");
  EXPECT_EQ(label(8, 16384, ElementType::f32, {}),
            "KokkosNN::softmax[team_registers,f32,v4,k8,l512,ts512,few_rows/1024]");
  // As long as a multiprocessor has no more than 1024 of their threads, be it with more packs each.
  EXPECT_EQ(label(528, 1024, ElementType::f32, {}),
            "KokkosNN::softmax[team_registers,f32,v4,k1,l256,ts256,few_rows/1024]");
  EXPECT_EQ(label(529, 1024, ElementType::f32, {}),
            "KokkosNN::softmax[team_registers,f32,v4,k2,l128,ts128,few_rows/1024]");
  EXPECT_FALSE(label(4096, 1024, ElementType::f32, {}).find("few") != std::string::npos);
  EXPECT_TRUE(is_few(1056, 4096)) << "8 packs a thread in teams of 128";
  EXPECT_FALSE(is_few(1057, 4096));
  EXPECT_FALSE(is_few(64, 4097)) << "rows that are not aligned";
  EXPECT_FALSE(is_few(64, 4096, ElementType::bf16)) << "16 bits";
  EXPECT_FALSE(is_few(64, 4096, ElementType::f64)) << "doubles";
  EXPECT_FALSE(is_few(64, 4096, ElementType::f32, KokkosNN::Determinism::batch_invariant))
      << "bits would depend on the rows";
}

TEST(Planner, RowsThatOneTeamCannotHoldAreSplitHoweverManyThereAre) {
  for (const std::int64_t rows : {1, 100, 1000000}) {
    EXPECT_EQ(make_plan(problem(rows, 65536), h200()).strategy, RowStrategy::split_row) << rows;
  }
}

TEST(Planner, ScratchHoldsRowsOfNarrowTypesAsTheyAreOnAGpu) {
  const auto scratch_bytes = [](std::int64_t cols, ElementType type, const DeviceTraits& traits) {
    return make_plan(problem(4096, cols, type, type), traits, forcing(RowStrategy::team_scratch)).scratch_bytes;
  };
  EXPECT_EQ(scratch_bytes(16384, ElementType::bf16, h200()), 16384 * 2u);
  EXPECT_EQ(scratch_bytes(8192, ElementType::f32, h200()), 8192 * 4u);
  EXPECT_GE(scratch_bytes(16384, ElementType::bf16, host(2)), 16384 * 4u);
}

TEST(Planner, SmallTeamsShareARowOfWhichFewAreNeeded) {
  const auto plan = [](std::int64_t cols) { return make_plan(problem(1024, cols), h200()); };
  EXPECT_EQ(plan(50257).team_size, 128);
  EXPECT_EQ(plan(50257).teams_per_row, 13);
  EXPECT_EQ(plan(65536).team_size, 128);
  EXPECT_EQ(plan(65537 + 128).team_size, 256);
  EXPECT_EQ(plan(262144).team_size, 256);
}

TEST(Planner, MoreSmallTeamsShareARowWhereEachHasOneToReduceWhileItWaitsForAnother) {
  const auto plan = [](std::int64_t cols) {
    RowProblem rows = problem(1024, cols);
    rows.form       = RowForm::aligned;
    return make_plan(rows, h200());
  };
  EXPECT_EQ(plan(151936).team_size, 128);
  EXPECT_EQ(plan(151936).teams_per_row, 38);
  EXPECT_EQ(plan(262144).team_size, 256);
  EXPECT_EQ(plan(262144).teams_per_row, 32) << "the first warp has a lane for each letter";

  RowProblem gradient = problem(512, 131072);
  gradient.op         = RowOperator::softmax_backward;
  gradient.form       = RowForm::aligned;
  EXPECT_EQ(make_plan(gradient, h200()).team_size, 256);
  EXPECT_EQ(make_plan(gradient, h200()).teams_per_row, 32);
}

TEST(Planner, ManySmallTeamsShareALongRowOf16BitsWhoseLettersNoWarpReads) {
  const auto plan = [](std::int64_t rows, std::int64_t cols, ElementType type = ElementType::bf16,
                       RowOperator op = RowOperator::softmax) {
    RowProblem longs = problem(rows, cols, type, type);
    longs.op         = op;
    longs.form       = RowForm::aligned;
    return make_plan(longs, h200());
  };
  EXPECT_EQ(plan(64, 1 << 20).team_size, 128);
  EXPECT_EQ(plan(64, 1 << 20).teams_per_row, 128) << "each thread has a letter to read";
  EXPECT_EQ(plan(96, 700000).teams_per_row, 86);
  EXPECT_EQ(plan(128, 1 << 19).team_size, 256) << "a warp has a lane for each of 32 letters";
  EXPECT_EQ(plan(32, 1 << 21).team_size, 256) << "256 teams are more than threads of a small one";
  EXPECT_EQ(plan(8, 1 << 20).team_size, 256) << "two turns";
  EXPECT_EQ(plan(64, 1 << 20, ElementType::f32).team_size, 256);
  EXPECT_EQ(plan(64, 1 << 20, ElementType::bf16, RowOperator::softmax_backward).team_size, 256);
}

TEST(Planner, StillSmallerTeamsShareARowThatTheyFillBetter) {
  const auto plan = [](RowOperator op, std::int64_t cols) {
    RowProblem rows = problem(4096, cols);
    rows.op         = op;
    rows.form       = cols % 4 == 0 ? RowForm::aligned : RowForm::misaligned;
    return make_plan(rows, h200());
  };
  for (const RowOperator op : {RowOperator::softmax, RowOperator::cross_entropy_with_gradient}) {
    EXPECT_EQ(plan(op, 49152).team_size, 128) << "12 teams have no idle thread";
    EXPECT_EQ(plan(op, 50257).team_size, 64);
    EXPECT_EQ(plan(op, 50257).teams_per_row, 25) << "13 of 128 threads would leave 56 of 1000 idle";
    EXPECT_EQ(plan(op, 99000).team_size, 128) << "49 smaller teams are more than lanes of a warp";
  }
}

TEST(Planner, TeamsThatHoldTwoRowsAreAsManyAsTheirRegistersAllow) {
  const auto league = [](RowOperator op, RowForm form) {
    RowProblem rows = problem(100000, 65536);
    rows.op         = op;
    rows.form       = form;
    return make_plan(rows, h200()).league_size;
  };
  EXPECT_EQ(league(RowOperator::softmax, RowForm::aligned), 132 * (512 / 128));
  EXPECT_EQ(league(RowOperator::softmax, RowForm::strided), 132 * (768 / 128) / 16 * 16);  // hold one row
  EXPECT_EQ(league(RowOperator::masked_softmax, RowForm::strided), 132 * (512 / 128));     // one, and what masks it
}

TEST(Planner, TheLargestTeamsReadLongRowsTwice) {
  const auto team_size = [](std::int64_t rows, std::int64_t cols) {
    return make_plan(problem(rows, cols), h200(), forcing(RowStrategy::team_online)).team_size;
  };
  EXPECT_LE(team_size(4096, 32768), 384);
  EXPECT_GT(team_size(4096, 65536), 512);
  EXPECT_GT(team_size(8, 65536), 512);
}

TEST(Planner, AFewVeryLongRowsAreSplitOnAGpu) {
  for (const std::int64_t rows : {1, 2, 8}) {
    const RowPlan plan = make_plan(problem(rows, 1 << 20), h200());

    EXPECT_EQ(plan.strategy, RowStrategy::split_row) << rows;
    EXPECT_GT(plan.teams_per_row, 1) << rows;
  }
}

TEST(Planner, AFewRowsThatATeamOfHalfTheThreadsHoldsAreNotSplit) {
  EXPECT_EQ(make_plan(problem(8, 16384), h200()).strategy, RowStrategy::team_registers);
  EXPECT_EQ(make_plan(problem(8, 32768), h200()).strategy, RowStrategy::split_row);
}

TEST(Planner, FewRowsThatTheCacheHoldsAndNoTeamsAreSplitByTwoKernels) {
  const auto launches = [](std::int64_t rows, std::int64_t cols, SoftmaxOptions options = {}) {
    return make_plan(problem(rows, cols), h200(), options).launches();
  };

  EXPECT_EQ(launches(1, 1 << 24), 2);
  EXPECT_EQ(launches(8, 1 << 24), 1);  // far more than the cache
  EXPECT_EQ(launches(8, 1 << 20), 1);  // which half of all teams hold
  EXPECT_EQ(launches(1, 1 << 24, {.determinism = Determinism::batch_invariant}), 1);
  EXPECT_EQ(launches(1, 1 << 24, {.plan = {.launches = 1}}), 1);
  EXPECT_EQ(launches(1000, 1 << 20, {.plan = {.launches = 2}}), 2);
}

TEST(Planner, LaunchesThatCannotBeAreRefused) {
  const auto outcome = [](PlanRequest request) { return what_of(problem(2, 1 << 20), h200(), {.plan = request}); };

  EXPECT_TRUE(std::regex_search(outcome({.launches = 3}), std::regex("^KokkosNN::softmax: .*launches.*3")));
  EXPECT_TRUE(std::regex_search(outcome({.launches = -1}), std::regex("^KokkosNN::softmax: .*negative")));
  EXPECT_TRUE(std::regex_search(outcome({.teams_per_row = 100, .launches = 2}),
                                std::regex("^KokkosNN::softmax: .*split_row.*100 teams")));
  EXPECT_TRUE(std::regex_search(outcome({.strategy = RowStrategy::team_online, .launches = 2}),
                                std::regex("^KokkosNN::softmax: .*team_online.*launches 2")));
  RowProblem masked = problem(2, 1 << 20);
  masked.op         = RowOperator::masked_softmax;
  EXPECT_TRUE(std::regex_search(what_of(masked, h200(), {.plan = {.strategy = RowStrategy::split_row, .launches = 2}}),
                                std::regex("^KokkosNN::masked_softmax: .*split_row.*no second kernel")));
}

TEST(Planner, OnAGpuContiguousRowsHaveKernelsOfTheirOwn) {
  const auto form = [](RowForm given, std::int64_t cols, const DeviceTraits& traits, SoftmaxOptions options = {}) {
    RowProblem p = problem(4096, cols);
    p.form       = given;
    return make_plan(p, traits, options).form;
  };
  const SoftmaxOptions invariant{.determinism = Determinism::batch_invariant};

  EXPECT_EQ(form(RowForm::aligned, 1024, h200()), RowForm::aligned);
  EXPECT_EQ(form(RowForm::aligned, 1025, h200()), RowForm::misaligned);
  EXPECT_EQ(form(RowForm::misaligned, 1024, h200()), RowForm::misaligned);
  EXPECT_EQ(form(RowForm::strided, 1024, h200()), RowForm::strided);
  EXPECT_EQ(form(RowForm::misaligned, 1025, h200(), invariant), RowForm::strided);
  EXPECT_EQ(form(RowForm::aligned, 1025, h200(), invariant), RowForm::strided);
  EXPECT_EQ(form(RowForm::aligned, 1024, host(2)), RowForm::strided);
}

TEST(Planner, ARowOneLongerThanAPowerOfTwoTakesNoMoreThreads) {
  for (const std::int64_t cols : {64, 256, 1024, 4096, 16384}) {
    RowProblem even = problem(4096, cols), odd = problem(4096, cols + 1);
    even.form = RowForm::aligned;
    odd.form  = RowForm::misaligned;

    EXPECT_LE(make_plan(odd, h200()).threads_per_row, std::max(8, make_plan(even, h200()).threads_per_row)) << cols;
  }
}

TEST(Planner, LogSumExpsOfLongRowsGoToSmallTeamsThatLoop) {
  const auto plan = [](RowOperator op, std::int64_t rows, std::int64_t cols = 32768) {
    RowProblem p = problem(rows, cols);
    p.op         = op;
    return make_plan(p, h200());
  };

  EXPECT_EQ(plan(RowOperator::logsumexp, 8192).strategy, RowStrategy::team_online);
  EXPECT_EQ(plan(RowOperator::logsumexp, 8192).team_size, 128);
  EXPECT_EQ(plan(RowOperator::logsumexp, 16384, 12672).team_size, 32);
  EXPECT_EQ(plan(RowOperator::logsumexp, 4096, 12672).team_size, 64) << "1.3 waves of 32 threads leave much empty";
  EXPECT_EQ(plan(RowOperator::logsumexp, 200).team_size, 256);
  EXPECT_EQ(plan(RowOperator::logsumexp, 20).strategy, RowStrategy::split_row);
  EXPECT_EQ(plan(RowOperator::softmax, 8192).strategy, RowStrategy::team_registers);
}

TEST(Planner, RowsThatFitNoChipAreReadTwiceOrSplit) {
  for (const auto& traits : {h200(), wave64(), host(2)}) {
    const RowPlan plan = make_plan(problem(1000, 10000000), traits);

    EXPECT_TRUE(plan.strategy == RowStrategy::team_online || plan.strategy == RowStrategy::split_row)
        << to_string(plan);
  }
}

TEST(Planner, OnHipATeamHoldsUpTo16384FloatsIn16WordsAThreadAndLongerRowsAreSplit) {
  for (const std::int64_t cols : {64, 1000, 1024, 4096, 16384}) {
    const RowPlan plan = make_plan(problem(4096, cols), wave64());

    EXPECT_TRUE(plan.strategy == RowStrategy::vector_lanes || plan.strategy == RowStrategy::team_registers)
        << to_string(plan);
    EXPECT_LE(plan.pack * plan.packs_per_thread, 16) << to_string(plan);
    EXPECT_EQ(plan.team_size % 64, 0) << to_string(plan);
  }
  const RowPlan longer = make_plan(problem(4096, 16388), wave64());
  EXPECT_EQ(longer.strategy, RowStrategy::split_row) << to_string(longer);
  EXPECT_LE(longer.league_size * longer.team_size, std::int64_t(wave64().multiprocessors) * 1024) << to_string(longer);
}

TEST(Planner, RowsThatLieSideBySideGoToInnerLanes) {
  for (const auto& traits : {h200(), wave64(), host(2)}) {
    EXPECT_EQ(make_plan(side_by_side(4096, 1000), traits).strategy, RowStrategy::inner_lanes);
  }
}

TEST(Planner, FewerLanesHoldLongerColumnsAndSmallerTeams) {
  const auto plan_of = [](std::int64_t cols, ElementType type) {
    return make_plan(side_by_side(65536, cols, type, type), h200());
  };
  for (const ElementType type : {ElementType::f32, ElementType::bf16}) {
    EXPECT_EQ(plan_of(64, type).threads_per_row, 32);
    EXPECT_EQ(plan_of(512, type).threads_per_row, 16);
    EXPECT_EQ(plan_of(512, type).team_size, 256);
    EXPECT_EQ(plan_of(1024, type).threads_per_row, 16);
    EXPECT_EQ(plan_of(1024, type).team_size, 512);
    EXPECT_LT(
        plan_of(1025, type).team_size / plan_of(1025, type).threads_per_row * plan_of(1025, type).packs_per_thread,
        1025);
  }
}

TEST(Planner, TeamsThatReadColumnsTwiceAreLargerTheFewerThereAre) {
  const auto team_of = [](std::int64_t rows) { return make_plan(side_by_side(rows, 8192), h200()).team_size; };

  EXPECT_EQ(make_plan(side_by_side(65536, 8192), h200()).threads_per_row, 16);
  EXPECT_EQ(team_of(65536), 512);
  EXPECT_EQ(team_of(8192), 512);
  EXPECT_EQ(team_of(4096), 1024);
  RowProblem p = side_by_side(65536, 8192);
  p.op         = RowOperator::logsumexp;
  EXPECT_EQ(make_plan(p, h200()).threads_per_row, 32);
  EXPECT_EQ(make_plan(p, h200()).team_size, 256);
}

TEST(Planner, ALogSumExpKeepsFewColumnsOnlyAsItReadsNoneAgain) {
  const auto plan_of = [](std::int64_t cols, RowOperator op) {
    RowProblem p = side_by_side(65536, cols);
    p.op         = op;
    return make_plan(p, h200());
  };

  EXPECT_EQ(plan_of(64, RowOperator::logsumexp).packs_per_thread, plan_of(64, RowOperator::softmax).packs_per_thread);
  EXPECT_LT(plan_of(512, RowOperator::logsumexp).packs_per_thread, plan_of(512, RowOperator::softmax).packs_per_thread);
}

TEST(Planner, AHostStreamsWhatNoCacheHoldsIfRowsHaveFewCacheLinesInCommon) {
  DeviceTraits machine          = host(2);
  machine.cache                 = std::size_t(32) << 20;
  const auto nontemporal_stores = [&](RowOperator op, std::int64_t bytes, std::int64_t cols,
                                      ElementType type = ElementType::f32) {
    RowProblem p = one_piece(bytes / 4 / cols, cols, type, type);
    p.op         = op;
    return make_plan(p, machine).nontemporal_stores;
  };
  const auto nontemporal_apart = [&](RowOperator op, std::int64_t bytes, std::int64_t cols) {
    RowProblem p = problem(bytes / 4 / cols, cols);
    p.op         = op;
    return make_plan(p, machine).nontemporal_stores;
  };
  const std::int64_t much = 40 << 20;

  EXPECT_TRUE(nontemporal_stores(RowOperator::softmax, much, 16));  // a whole line
  EXPECT_FALSE(nontemporal_stores(RowOperator::softmax, much, 47));
  EXPECT_TRUE(nontemporal_stores(RowOperator::softmax, much, 49));
  EXPECT_FALSE(nontemporal_stores(RowOperator::softmax, 2 * much, 190, ElementType::bf16));
  EXPECT_TRUE(nontemporal_stores(RowOperator::softmax, 2 * much, 193, ElementType::bf16));
  EXPECT_FALSE(nontemporal_stores(RowOperator::softmax_backward, much, 90));
  EXPECT_TRUE(nontemporal_stores(RowOperator::softmax_backward, much, 97));
  EXPECT_FALSE(nontemporal_stores(RowOperator::softmax, much / 3, 3001));
  EXPECT_TRUE(nontemporal_stores(RowOperator::softmax_backward, much / 3, 3001));  // a third tensor
  EXPECT_TRUE(nontemporal_stores(RowOperator::softmax, 16 << 20, 4096));           // no room for anything else

  EXPECT_TRUE(nontemporal_apart(RowOperator::softmax, much, 304));  // whole lines
  EXPECT_FALSE(nontemporal_apart(RowOperator::softmax, much, 300));
  EXPECT_TRUE(nontemporal_apart(RowOperator::softmax, much, 781));
  EXPECT_FALSE(nontemporal_apart(RowOperator::softmax_backward, much, 781));
  EXPECT_TRUE(nontemporal_apart(RowOperator::softmax_backward, much, 3001));
}

TEST(Planner, AHostsBlocksOfRowsSideBySideAreNarrowInCachesAndWideInMemory) {
  DeviceTraits machine   = host(2);
  machine.cache          = std::size_t(32) << 20;
  const auto rows_beside = [&](std::int64_t rows, std::int64_t cols) {
    return make_plan(side_by_side(rows, cols), machine).pack;
  };

  EXPECT_EQ(rows_beside(1024, 1024), 64);
  EXPECT_EQ(rows_beside(256, 4096), 16);
  EXPECT_EQ(rows_beside(16384, 1024), 256);
  EXPECT_EQ(rows_beside(4096, 4096), 128);
}

TEST(Planner, AHostGivesLongRowsToAllThreadsWhenThereAreFewOfThem) {
  EXPECT_EQ(make_plan(problem(1, 100000), host(8)).team_size, 8);
  EXPECT_EQ(make_plan(problem(1000, 100000), host(8)).team_size, 1);
}

// --- invariants, over a sweep of shapes, types, machines and strategies ---

struct Sweep {
  static std::vector<std::pair<ElementType, ElementType>> types() {
    return {{ElementType::f32, ElementType::f32},
            {ElementType::f64, ElementType::f64},
            {ElementType::bf16, ElementType::bf16},
            {ElementType::f16, ElementType::f32},
            {ElementType::f32, ElementType::f64}};
  }

  template <class F>
  static void each(F&& f) {
    constexpr std::int64_t beyond_32_bits = 3000000000;
    for (const auto& traits : {h200(), h200_with_clusters(), wave64(), host(1), host(2), host(64)}) {
      for (const auto& [x, y] : types()) {
        for (const std::int64_t rows : {std::int64_t(1), std::int64_t(2), std::int64_t(37), std::int64_t(132),
                                        std::int64_t(4096), std::int64_t(1) << 20, beyond_32_bits}) {
          for (const std::int64_t cols :
               {std::int64_t(1), std::int64_t(2), std::int64_t(7), std::int64_t(32), std::int64_t(33),
                std::int64_t(257), std::int64_t(1000), std::int64_t(1024), std::int64_t(1025), std::int64_t(4096),
                std::int64_t(16384), std::int64_t(32000), std::int64_t(32768), std::int64_t(32769), std::int64_t(50257),
                std::int64_t(151936), std::int64_t(1) << 20, beyond_32_bits}) {
            for (const RowForm form : {RowForm::strided, RowForm::misaligned, RowForm::aligned}) {
              RowProblem p = problem(rows, cols, x, y);
              p.form       = form;
              f(p, traits);
              if (form != RowForm::misaligned) continue;
              p.one_piece = true;
              f(p, traits);
              p.one_piece  = false;
              p.one_stride = false;
              f(p, traits);
            }
          }
        }
      }
    }
  }
};

std::string describe(const RowProblem& p, const DeviceTraits& traits, const RowPlan& plan) {
  return std::to_string(p.rows) + " x " + std::to_string(p.cols) + " on " + to_string(traits.backend) + " with " +
         std::to_string(traits.multiprocessors) + ": " + to_string(plan);
}

/// The first rule for all plans that this one violates; the empty string if there is none.
std::string violation(const RowProblem& p, const DeviceTraits& traits, const RowPlan& plan) {
  const bool on_gpu       = traits.backend != Backend::host;
  const bool has_edges    = plan.form == RowForm::misaligned;
  const std::int64_t held = has_edges ? p.cols / plan.pack * plan.pack : p.cols;  // in packs
  if (plan.form != RowForm::strided && !on_gpu) return "a form that a host has no kernel for";
  if (plan.form == RowForm::aligned && (p.form != RowForm::aligned || p.cols % plan.pack != 0)) {
    return "packs that stick out of a row";
  }
  if (has_edges && p.form == RowForm::strided) return "rows taken for contiguous";
  if (has_edges && plan.kernel != RowKernel::staged_rows && plan.threads_per_row < 2 * plan.pack - 2) {
    return "fewer lanes than a row's rims may have elements";
  }
  if (plan.kernel == RowKernel::staged_rows) {
    if (!p.one_piece || !has_edges || plan.strategy != RowStrategy::vector_lanes)
      return "through scratch, not in one piece";
    if (plan.threads_per_row != 1 || plan.rows_per_team != plan.team_size)
      return "through scratch, and not a row a thread";
    if (static_cast<std::int64_t>(plan.scratch_bytes) < row_tensors(p.op) * plan.rows_per_team * p.cols * p.x_bytes) {
      return "too little scratch for the rows of a team";
    }
  }
  if (plan.strategy == RowStrategy::automatic) return "no strategy";
  if (plan.pack < 1 || plan.packs_per_thread < 1 || plan.threads_per_row < 1 || plan.rows_per_team < 1 ||
      plan.teams_per_row < 1) {
    return "a size is not positive";
  }
  if (plan.team_size < 1 || plan.team_size > traits.max_team_size) return "team size out of range";
  if (on_gpu && plan.team_size % traits.warp_size != 0) return "team size is no multiple of a warp";
  if (plan.scratch_level < 0 || plan.scratch_level > 1) return "scratch level out of range";
  const bool is_in_cluster  = plan.strategy == RowStrategy::row_in_cluster;
  const std::size_t scratch = is_in_cluster ? traits.large_scratch / 2 : traits.scratch[plan.scratch_level];
  if (plan.scratch_bytes > scratch) return "more scratch than there is";
  if (plan.league_size < 1 || plan.league_size > std::numeric_limits<int>::max()) return "league out of range";
  if (plan.teams_per_row > 1 && plan.strategy != RowStrategy::split_row && !is_in_cluster) {
    return "a row is split by another strategy";
  }
  if (is_in_cluster) {
    const std::int64_t threads = std::int64_t(plan.teams_per_row) * plan.team_size;
    if (plan.teams_per_row > traits.largest_cluster) return "a cluster is too large";
    if (plan.league_size != p.rows * plan.teams_per_row) return "not a team for each part";
    if (threads * plan.packs_per_thread * plan.pack < held) return "a row does not fit";
  }
  if (plan.strategy == RowStrategy::vector_lanes || plan.strategy == RowStrategy::team_registers) {
    const std::int64_t on_chip = std::int64_t(plan.threads_per_row) * plan.packs_per_thread * plan.pack;
    if (plan.kernel != RowKernel::staged_rows && on_chip < held) return "a row does not fit";
    if (plan.team_size % plan.threads_per_row != 0) return "groups do not fill the team";
    if (plan.rows_per_team % (plan.team_size / plan.threads_per_row) != 0)
      return "rows a team are no multiple of its groups";
  }
  if (plan.strategy == RowStrategy::vector_lanes && plan.threads_per_row > traits.warp_size)
    return "more lanes than can shuffle";
  const bool has_row_a_team = plan.threads_per_row == plan.team_size && plan.league_size == p.rows;
  const bool is_on_host     = plan.kernel == RowKernel::host_rows || plan.kernel == RowKernel::host_inner;
  if (is_on_host && on_gpu) return "a host's kernel on a GPU";
  if (!is_on_host && on_gpu && plan.team_size > plan.max_threads)
    return "a team larger than its kernel is compiled for";
  if (plan.kernel == RowKernel::few_rows && (plan.strategy != RowStrategy::team_registers || !has_row_a_team)) {
    return "the kernel for few rows without a team for each";
  }
  const bool is_packed = KokkosNN::Impl::keeps_packed_in_scratch(traits.backend, p.x_bytes, p.op);
  if (plan.strategy == RowStrategy::team_scratch &&
      static_cast<std::int64_t>(plan.scratch_bytes) < held * (is_packed ? p.x_bytes : p.accumulator_bytes)) {
    return "a row does not fit into its scratch";
  }
  if (plan.launches() == 2) {
    const std::int64_t threads = std::int64_t(plan.teams_per_row) * plan.team_size;
    if (plan.strategy != RowStrategy::split_row) return "two launches of another strategy";
    if (plan.league_size != p.rows * plan.teams_per_row) return "not a team for each part";
    if (threads * plan.packs_per_thread * plan.pack < held) return "a row does not fit";
  } else if (plan.strategy == RowStrategy::split_row) {
    const bool holds  = std::int64_t(plan.teams_per_row) * plan.team_size * plan.packs_per_thread * plan.pack >= held;
    const int holding = KokkosNN::Impl::most_threads_when_holding(traits.backend, p.op, plan.form);
    const int threads = holds ? std::min(holding, traits.resident_threads) : traits.resident_threads;
    const std::int64_t resident = std::int64_t(traits.multiprocessors) * (threads / plan.team_size);
    if (plan.league_size > resident) return "teams that wait for each other may not be resident together";
    if (plan.league_size < plan.teams_per_row) return "fewer teams than share a row";
  }
  if (on_gpu && plan.strategy != RowStrategy::split_row && !is_in_cluster &&
      plan.strategy != RowStrategy::inner_lanes) {
    const bool one_turn = plan.league_size * plan.rows_per_team >= p.rows;
    if (!one_turn && plan.league_size < std::numeric_limits<int>::max()) return "the league does not cover the rows";
  }
  return "";
}

// --- clusters ---

RowProblem aligned_rows(std::int64_t rows, std::int64_t cols, ElementType type, RowOperator op = RowOperator::softmax) {
  RowProblem p = problem(rows, cols, type, type);
  p.op         = op;
  p.form       = RowForm::aligned;
  return p;
}

TEST(Clusters, HoldManyLongRowsOfADeviceThatHasThem) {
  const RowProblem rows = aligned_rows(16384, 65536, ElementType::f32, RowOperator::rms_norm);
  const RowPlan plan    = make_plan(rows, h200_with_clusters());

  EXPECT_EQ(plan.strategy, RowStrategy::row_in_cluster) << to_string(plan);
  EXPECT_EQ(plan.teams_per_row, 8);
  EXPECT_EQ(plan.team_size, 256);
  EXPECT_EQ(plan.league_size, 8 * 16384);
  EXPECT_NE(make_plan(rows, h200()).strategy, RowStrategy::row_in_cluster);
}

TEST(Clusters, HoldRowsThatFillTheirTeams) {
  const auto strategy = [&](std::int64_t cols, RowForm form, ElementType type, RowOperator op) {
    RowProblem p = aligned_rows(16384, cols, type, op);
    p.form       = form;
    return make_plan(p, h200_with_clusters()).strategy;
  };
  const RowStrategy cluster = RowStrategy::row_in_cluster;

  EXPECT_EQ(strategy(65536, RowForm::aligned, ElementType::f32, RowOperator::softmax), cluster);
  EXPECT_EQ(strategy(131072, RowForm::aligned, ElementType::bf16, RowOperator::log_softmax), cluster);
  EXPECT_EQ(strategy(128256, RowForm::aligned, ElementType::bf16, RowOperator::softmax), cluster);
  EXPECT_NE(strategy(57344, RowForm::aligned, ElementType::f32, RowOperator::softmax), cluster);
  EXPECT_NE(strategy(65537, RowForm::misaligned, ElementType::f32, RowOperator::softmax), cluster);
  EXPECT_NE(strategy(65535, RowForm::misaligned, ElementType::f32, RowOperator::softmax), cluster);
}

TEST(Clusters, HaveAsManyThreadsAsHoldARow) {
  const SoftmaxOptions forced = forcing(RowStrategy::row_in_cluster);
  const auto plan_of          = [&](std::int64_t cols, RowOperator op = RowOperator::softmax) {
    return make_plan(aligned_rows(64, cols, ElementType::f32, op), h200_with_clusters(), forced);
  };

  EXPECT_EQ(plan_of(32).teams_per_row, 2);
  EXPECT_EQ(plan_of(32).team_size, 32);
  EXPECT_EQ(plan_of(65536).teams_per_row, 8);
  EXPECT_EQ(plan_of(65536).team_size, 256);
  EXPECT_EQ(plan_of(262144).teams_per_row, 16);
  EXPECT_EQ(plan_of(262144).team_size, 512);
  EXPECT_EQ(plan_of(262144).scratch_bytes, std::size_t(65536));
  EXPECT_EQ(plan_of(131072, RowOperator::softmax_backward).scratch_bytes, std::size_t(65536));  // of two tensors
}

TEST(Clusters, AreNotForRowsThatAreFewOrOfAnotherLengthOrBatchInvariant) {
  const auto strategy = [&](std::int64_t rows, std::int64_t cols, const SoftmaxOptions& options = {}) {
    const RowProblem p = aligned_rows(rows, cols, ElementType::f32, RowOperator::rms_norm);
    return make_plan(p, h200_with_clusters(), options).strategy;
  };

  EXPECT_EQ(strategy(16384, 65536), RowStrategy::row_in_cluster);
  EXPECT_NE(strategy(16384, 65540), RowStrategy::row_in_cluster);
  EXPECT_NE(strategy(16384, 8192), RowStrategy::row_in_cluster);
  EXPECT_NE(strategy(2, 65536), RowStrategy::row_in_cluster);
  EXPECT_NE(strategy(16384, 65536, {.determinism = Determinism::batch_invariant}), RowStrategy::row_in_cluster);
}

TEST(Clusters, AreRefusedWithTheReason) {
  const auto what = [&](int teams, std::int64_t cols, const DeviceTraits& traits,
                        RowOperator op = RowOperator::softmax) {
    SoftmaxOptions options     = forcing(RowStrategy::row_in_cluster);
    options.plan.teams_per_row = teams;
    return what_of(aligned_rows(64, cols, ElementType::f32, op), traits, options);
  };
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };

  EXPECT_TRUE(has(what(0, 65536, h200()), "has no clusters of teams"));
  EXPECT_TRUE(has(what(0, 65536, host(2)), "has no clusters of teams"));
  EXPECT_TRUE(has(what(3, 65536, h200_with_clusters()), "a power of two of teams, 2 to 16, not 3"));
  EXPECT_TRUE(has(what(1, 65536, h200_with_clusters()), "a power of two of teams, 2 to 16, not 1"));
  EXPECT_TRUE(has(what(2, 65536, h200_with_clusters()), "does not hold 32768 elements"));
  EXPECT_TRUE(has(what(0, 262148, h200_with_clusters()), "not 32"));
  EXPECT_TRUE(
      has(what(0, 65536, h200_with_clusters(), RowOperator::log_softmax_backward), "no kernel is compiled for"));
  EXPECT_TRUE(has(what(0, 65536, h200_with_clusters(), RowOperator::cross_entropy_with_gradient),
                  "no kernel is compiled for clusters"));
  EXPECT_TRUE(has(what(0, 65537, h200_with_clusters()), "no kernel is compiled for clusters")) << "with edges";
}

TEST(Planner, EveryPlanHoldsItsRowsAndRespectsTheMachine) {
  Sweep::each([](const RowProblem& p, const DeviceTraits& traits) {
    for (const auto determinism : {Determinism::run_to_run, Determinism::batch_invariant}) {
      const RowPlan plan = make_plan(p, traits, {.determinism = determinism});

      ASSERT_EQ(violation(p, traits, plan), "") << describe(p, traits, plan);
    }
  });
}

TEST(Planner, EveryForcedPlanHoldsItsRowsAndRespectsTheMachineOrIsRefused) {
  std::set<RowStrategy> served;
  Sweep::each([&](const RowProblem& p, const DeviceTraits& traits) {
    for (const RowStrategy strategy : strategies) {
      RowPlan plan;
      try {
        plan = make_plan(p, traits, forcing(strategy));
      } catch (const std::invalid_argument& e) {
        ASSERT_NE(std::string(e.what()).find(to_string(strategy)), std::string::npos) << e.what();
        continue;
      }

      served.insert(strategy);
      ASSERT_EQ(plan.strategy, strategy);
      ASSERT_EQ(violation(p, traits, plan), "") << describe(p, traits, plan);
    }
  });
  EXPECT_EQ(served.size(), strategies.size());
}

/// Rows between pack boundaries: as slices of a matrix, or of a tensor of more axes.
TEST(Planner, MisalignedRowsAlongSeveralAxesAreMovedByPacksUntilTheyAreLong) {
  for (const RowOperator op : {RowOperator::softmax, RowOperator::logsumexp, RowOperator::cross_entropy,
                               RowOperator::cross_entropy_with_gradient}) {
    for (const ElementType type : {ElementType::f32, ElementType::bf16}) {
      for (const std::int64_t rows : {1, 100, 10000, 1000000}) {
        for (const std::int64_t cols : {3, 30, 60, 127, 500, 1001, 3001, 8001, 50257, 1000001}) {
          RowProblem p         = problem(rows, cols, type, type);
          p.op                 = op;
          p.form               = RowForm::misaligned;
          p.one_stride         = false;
          const RowPlan plan   = make_plan(p, h200());
          const bool are_packs = cols / plan.pack <= 2048;
          EXPECT_EQ(plan.form, are_packs ? RowForm::misaligned : RowForm::strided) << describe(p, h200(), plan);
          if (are_packs) EXPECT_TRUE(plan.packs_per_thread == 2 || plan.packs_per_thread == 8) << to_string(plan);
        }
      }
    }
  }
}

/// A number of packs a thread that such rows have a kernel of, and that holds the row in a warp.
TEST(Planner, LanesThatAreAskedForServeMisalignedRowsAlongSeveralAxes) {
  for (const RowOperator op : {RowOperator::softmax, RowOperator::logsumexp, RowOperator::cross_entropy}) {
    for (const ElementType type : {ElementType::f32, ElementType::bf16}) {
      for (const std::int64_t rows : {1, 6, 600, 1000000}) {
        for (const int packs : {1, 30, 61, 65, 125, 200}) {
          RowProblem p = problem(rows, packs * (type == ElementType::f32 ? 4 : 8) + 3, type, type);
          p.op         = op;
          p.form       = RowForm::misaligned;
          p.one_stride = false;

          const RowPlan plan = make_plan(p, h200(), forcing(RowStrategy::vector_lanes));

          EXPECT_EQ(plan.form, RowForm::misaligned) << describe(p, h200(), plan);
          EXPECT_TRUE(plan.packs_per_thread == 2 || plan.packs_per_thread == 8) << describe(p, h200(), plan);
        }
      }
    }
  }
}

TEST(Planner, EveryStrategyServesAShortRowOnEveryMachine) {
  for (const auto& traits : {h200(), wave64(), host(1), host(2), host(64)}) {
    for (const RowStrategy strategy : strategies) {
      RowProblem p = problem(8, 16);
      p.inner      = 8;
      if (strategy == RowStrategy::row_in_cluster) continue;  // of machines that have clusters
      if (strategy == RowStrategy::split_row && traits.backend == Backend::host) continue;  // of GPUs

      EXPECT_EQ(make_plan(p, traits, forcing(strategy)).strategy, strategy) << to_string(strategy);
    }
  }
}

TEST(Planner, InnerLanesPlansRespectTheMachine) {
  for (const auto& traits : {h200(), wave64(), host(1), host(2), host(64)}) {
    for (const auto& [x, y] : Sweep::types()) {
      for (const std::int64_t inner : {1, 2, 7, 8, 31, 33, 1000, 65536, 1 << 20}) {
        for (const std::int64_t cols : {1, 2, 100, 512, 1024, 5000, 1 << 20}) {
          const RowProblem p = side_by_side(inner, cols, x, y);
          const RowPlan plan = make_plan(p, traits, forcing(RowStrategy::inner_lanes));

          EXPECT_EQ(violation(p, traits, plan), "") << describe(p, traits, plan);
          EXPECT_EQ(plan.team_size % plan.threads_per_row, 0) << describe(p, traits, plan);
        }
      }
    }
  }
}

TEST(Planner, GradientsOfRowsSideBySideAreServedOnEveryMachineHoweverLongTheyAre) {
  for (const auto& traits : {h200(), wave64(), host(1), host(64)}) {
    for (const RowOperator op : {RowOperator::softmax_backward, RowOperator::log_softmax_backward}) {
      for (const ElementType type : {ElementType::f64, ElementType::f32, ElementType::bf16}) {
        for (const std::int64_t cols : {1, 128, 129, 1280, 1 << 20}) {
          RowProblem p = side_by_side(500, cols, type, type);
          p.op         = op;
          p.dy_type    = type;

          EXPECT_EQ(make_plan(p, traits).strategy, RowStrategy::inner_lanes) << to_string(op) << ' ' << cols;
        }
      }
    }
  }
}

// --- batch invariance ---

/// Everything that the order of additions in a row depends on; aligned rows add up as any do.
RowPlan arithmetic_of(RowPlan plan) {
  if (plan.form == RowForm::aligned) plan.form = RowForm::strided;
  plan.max_threads        = 0;
  plan.league_size        = 0;
  plan.rows_per_team      = 0;
  plan.rows_ahead         = 0;
  plan.nontemporal_stores = false;
  plan.eviction           = Eviction::normal;
  if (plan.strategy == RowStrategy::vector_lanes) plan.team_size = 0;
  return plan;
}

TEST(Planner, ABatchInvariantPlanDependsNeitherOnTheRowsNorOnTheirAlignment) {
  const SoftmaxOptions options{.determinism = Determinism::batch_invariant};
  Sweep::each([&](const RowProblem& p, const DeviceTraits& traits) {
    const RowProblem alone    = problem(1, p.cols, p.x_type, p.y_type);
    const RowPlan alone_plan  = arithmetic_of(make_plan(alone, traits, options));
    const RowPlan actual_plan = make_plan(p, traits, options);

    ASSERT_EQ(arithmetic_of(actual_plan), alone_plan) << describe(p, traits, actual_plan);
    ASSERT_NE(actual_plan.form, RowForm::misaligned) << describe(p, traits, actual_plan);
  });
}

TEST(Planner, PlansAreEqualForEqualArguments) {
  Sweep::each(
      [](const RowProblem& p, const DeviceTraits& traits) { ASSERT_EQ(make_plan(p, traits), make_plan(p, traits)); });
}

// --- requests ---

TEST(Planner, ARequestIsServedOrRefusedButNeverIgnored) {
  struct Request {
    const char* name;
    PlanRequest request;
    int RowPlan::* field;
    int size;
  };
  RowProblem p       = problem(64, 64);
  p.inner            = 8;
  p.inner_contiguous = true;
  for (const auto& traits : {h200(), wave64(), host(1), host(4)}) {
    for (const RowStrategy strategy : strategies) {
      for (const int size : {1, 2, 3, 4, 8, 32, 64, 128, 2048}) {
        const std::vector<Request> requests{
            {"packs_per_thread", {.strategy = strategy, .packs_per_thread = size}, &RowPlan::packs_per_thread, size},
            {"threads_per_row", {.strategy = strategy, .threads_per_row = size}, &RowPlan::threads_per_row, size},
            {"team_size", {.strategy = strategy, .team_size = size}, &RowPlan::team_size, size},
            {"teams_per_row", {.strategy = strategy, .teams_per_row = size}, &RowPlan::teams_per_row, size}};
        for (const Request& r : requests) {
          RowPlan plan;
          try {
            plan = make_plan(p, traits, {.plan = r.request});
          } catch (const std::invalid_argument&) {
            continue;
          }

          EXPECT_EQ(plan.*r.field, size) << r.name << " of " << describe(p, traits, plan);
          EXPECT_EQ(violation(p, traits, plan), "") << r.name << " of " << describe(p, traits, plan);
        }
      }
    }
  }
}

TEST(Planner, AForcedStrategyThatCannotServeSaysWhy) {
  const std::string wide   = what_of(problem(10, 100000), h200(), forcing(RowStrategy::vector_lanes));
  const std::string full   = what_of(problem(10, 100000), h200(), forcing(RowStrategy::team_registers));
  const std::string shared = what_of(problem(10, 100000), h200(), forcing(RowStrategy::team_scratch));

  EXPECT_TRUE(std::regex_search(wide, std::regex("^KokkosNN::softmax: .*vector_lanes.*100000"))) << wide;
  EXPECT_TRUE(std::regex_search(full, std::regex("^KokkosNN::softmax: .*team_registers.*100000"))) << full;
  EXPECT_TRUE(std::regex_search(shared, std::regex("^KokkosNN::softmax: .*team_scratch.*100000"))) << shared;
}

TEST(Planner, AMessageNamesTheOperatorThatWasCalled) {
  RowProblem p = problem(10, 100000);
  p.op         = RowOperator::logsumexp;

  EXPECT_EQ(what_of(p, h200(), forcing(RowStrategy::vector_lanes)).find("KokkosNN::logsumexp: "), 0u);
}

TEST(Planner, MoreTeamsThanRunTogetherAreRefused) {
  const std::string gpu =
      what_of(problem(1, 1 << 20), h200(),
              {.plan = {.strategy = RowStrategy::split_row, .team_size = 512, .teams_per_row = 265}});
  EXPECT_TRUE(std::regex_search(gpu, std::regex("^KokkosNN::softmax: .*split_row.*265"))) << gpu;
}

TEST(Planner, TeamsShareNoRowOnAHost) {
  const std::string cpu = what_of(problem(1, 1 << 20), host(2), forcing(RowStrategy::split_row));
  EXPECT_TRUE(std::regex_search(cpu, std::regex("^KokkosNN::softmax: split_row .*as one team"))) << cpu;
}

TEST(Planner, SizesThatNoTeamCanHaveAreRefused) {
  const auto refused = [](const DeviceTraits& traits, PlanRequest request) {
    return what_of(problem(10, 100), traits, {.plan = request}).find("KokkosNN::softmax: ") == 0;
  };

  EXPECT_TRUE(refused(h200(), {.team_size = 2048}));
  EXPECT_TRUE(refused(h200(), {.team_size = 33}));
  EXPECT_TRUE(refused(h200(), {.team_size = -32}));
  EXPECT_TRUE(refused(h200(), {.packs_per_thread = 3}));
  EXPECT_TRUE(refused(h200(), {.packs_per_thread = 9})) << "of rows that are not aligned";
  EXPECT_TRUE(refused(host(1), {.packs_per_thread = 6}));
  EXPECT_TRUE(refused(h200(), {.packs_per_thread = -1}));
  EXPECT_TRUE(refused(h200(), {.strategy = RowStrategy::vector_lanes, .threads_per_row = 64}));
  EXPECT_TRUE(refused(h200(), {.strategy = RowStrategy::vector_lanes, .threads_per_row = 3}));
  EXPECT_TRUE(refused(h200(), {.strategy = RowStrategy::split_row, .teams_per_row = -2}));
  EXPECT_TRUE(refused(wave64(), {.team_size = 32}));
  EXPECT_TRUE(refused(host(2), {.team_size = 3}));
}

TEST(Planner, InnerLanesNeedAnAxisToRunOver) {
  RowProblem p = problem(10, 100);
  p.inner      = 0;

  EXPECT_TRUE(std::regex_search(what_of(p, h200(), forcing(RowStrategy::inner_lanes)),
                                std::regex("^KokkosNN::softmax: .*inner_lanes.*axis")));
}

TEST(Planner, InnerLanesNeedATeamOfWholeLanes) {
  const auto outcome = [](int team_size) {
    return what_of(side_by_side(1000, 100), h200(),
                   {.plan = {.strategy = RowStrategy::inner_lanes, .threads_per_row = 64, .team_size = team_size}});
  };

  EXPECT_TRUE(std::regex_search(outcome(32), std::regex("^KokkosNN::softmax: .*inner_lanes.*32 .*lanes 64")))
      << outcome(32);
  EXPECT_EQ(outcome(64).find("accepted"), 0u) << outcome(64);
}

// --- labels ---

TEST(Planner, ALabelSaysOperatorStrategyTypesAndSizes) {
  RowPlan plan;
  plan.strategy         = RowStrategy::team_registers;
  plan.pack             = 4;
  plan.packs_per_thread = 4;
  plan.threads_per_row  = 64;
  plan.team_size        = 64;

  EXPECT_EQ(to_string(plan), "KokkosNN::softmax[team_registers,f32,v4,k4,l64,ts64,row_in_team/1024]");
}

TEST(Planner, ALabelTellsOneKernelFromAnotherAndOneLaunchBoundFromAnother) {
  const auto label = [](const RowProblem& p, const SoftmaxOptions& options = {}) {
    return to_string(make_plan(p, h200(), options));
  };
  RowProblem doubles       = problem(1 << 20, 300, ElementType::f64, ElementType::f64);
  RowProblem gradient      = contiguous(1 << 20, 256);
  gradient.op              = RowOperator::softmax_backward;
  RowProblem odd           = problem(100000, 50257);
  odd.form                 = RowForm::misaligned;
  const auto starts_with   = [](const std::string& text, const std::string& begin) { return text.find(begin) == 0; };
  const auto in_registers  = forcing(RowStrategy::team_registers);
  const std::string by_256 = "KokkosNN::softmax[team_registers,f32,v4,k8,l";

  EXPECT_EQ(label(contiguous(1 << 20, 128)), "KokkosNN::softmax[vector_lanes,f32,v4,k4,l8,ts128,row_in_lanes/1024]");
  EXPECT_EQ(label(contiguous(1 << 20, 128), {.determinism = Determinism::batch_invariant}),
            "KokkosNN::softmax[vector_lanes,f32,v4,k4,l8,ts128,row_in_team/576]")
      << "rounds as other rows do";
  EXPECT_EQ(label(gradient), "KokkosNN::softmax_backward[vector_lanes,f32,v4,k2,l32,ts128,row_in_team/1024]");
  EXPECT_EQ(label(doubles), "KokkosNN::softmax[vector_lanes,f64,v2,k8,l32,ts128,row_in_team/512]");
  EXPECT_EQ(label(problem(4096, 8192), in_registers), by_256 + "256,ts256,row_in_team/512]");
  EXPECT_EQ(label(problem(4096, 12288), in_registers), by_256 + "384,ts384,row_in_team/1024]")
      << "fewer resident teams";
  EXPECT_EQ(label(contiguous(4096, 2048)), "KokkosNN::softmax[team_registers,f32,v4,k4,l128,ts128,row_in_team/576]");
  EXPECT_EQ(label(odd), "KokkosNN::softmax[split_row,f32,v4,k8,l64,ts64,split_row/512,s25,misaligned]");
  EXPECT_TRUE(
      starts_with(label(one_piece(1 << 20, 7)), "KokkosNN::softmax[vector_lanes,f32,v4,k1,l1,ts128,staged_rows/512,"));
  EXPECT_TRUE(
      starts_with(label(side_by_side(65536, 64)), "KokkosNN::softmax[inner_lanes,f32,v1,k32,l32,ts64,inner_lanes/"));
  EXPECT_NE(label(side_by_side(65536, 8192)).find(",inner_online/1024]"), std::string::npos);
  EXPECT_NE(label(problem(1, 1 << 24)).find(",split_twice/1024,"), std::string::npos);
  EXPECT_NE(label(problem(1, 1 << 24), {.plan = {.launches = 1}}).find(",split_online/768,"), std::string::npos);
}

TEST(Planner, MasksThatLookAtSingleElementsHaveKernelsWithMoreRegisters) {
  const auto max_threads = [](bool element_mask, RowForm form) {
    RowProblem masked   = problem(131072, 2048);
    masked.op           = RowOperator::masked_softmax;
    masked.form         = form;
    masked.element_mask = element_mask;
    return make_plan(masked, h200()).max_threads;
  };
  EXPECT_EQ(max_threads(false, RowForm::aligned), 768);
  EXPECT_EQ(max_threads(true, RowForm::aligned), 512);
  EXPECT_EQ(max_threads(false, RowForm::strided), 512);
}

TEST(Planner, CrossEntropiesThatChangeLogitsReadSplitRowsOf16BitsTwice) {
  const auto kernel = [](bool is_extended, ElementType type) {
    RowProblem p  = problem(4096, 131072, type, type);
    p.op          = RowOperator::cross_entropy_with_gradient;
    p.form        = RowForm::aligned;
    p.is_extended = is_extended;
    return make_plan(p, h200()).kernel;
  };
  EXPECT_EQ(kernel(false, ElementType::bf16), RowKernel::split_row);
  EXPECT_EQ(kernel(true, ElementType::bf16), RowKernel::split_online);
  EXPECT_EQ(kernel(true, ElementType::f32), RowKernel::split_row);
}

TEST(Planner, ALabelNamesBothTypesWhenTheyDiffer) {
  RowPlan plan;
  plan.op       = RowOperator::log_softmax;
  plan.strategy = RowStrategy::team_online;
  plan.y_type   = ElementType::bf16;

  EXPECT_EQ(to_string(plan).find("KokkosNN::log_softmax[team_online,f32>bf16,"), 0u) << to_string(plan);
}

TEST(Planner, ALabelSaysInHowManyTeamsARowIsSplit) {
  RowPlan plan;
  plan.strategy       = RowStrategy::split_row;
  RowPlan other       = plan;
  plan.teams_per_row  = 2;
  other.teams_per_row = 3;

  EXPECT_NE(to_string(plan), to_string(other));
}

TEST(Planner, EveryNameIsItsEnumerators) {
  EXPECT_STREQ(to_string(RowOperator::softmax), "softmax");
  EXPECT_STREQ(to_string(RowOperator::log_softmax), "log_softmax");
  EXPECT_STREQ(to_string(RowOperator::logsumexp), "logsumexp");
  EXPECT_STREQ(to_string(RowOperator::softmax_backward), "softmax_backward");
  EXPECT_STREQ(to_string(RowOperator::log_softmax_backward), "log_softmax_backward");
  EXPECT_STREQ(to_string(RowOperator::logsumexp_backward), "logsumexp_backward");
  EXPECT_STREQ(to_string(RowOperator::masked_softmax), "masked_softmax");
  EXPECT_STREQ(to_string(RowOperator::masked_log_softmax), "masked_log_softmax");
  EXPECT_STREQ(to_string(RowOperator::masked_logsumexp), "masked_logsumexp");
  EXPECT_STREQ(to_string(RowOperator::masked_softmax_backward), "masked_softmax_backward");
  EXPECT_STREQ(to_string(RowOperator::masked_log_softmax_backward), "masked_log_softmax_backward");
  EXPECT_STREQ(to_string(RowOperator::cross_entropy), "cross_entropy");
  EXPECT_STREQ(to_string(RowOperator::cross_entropy_backward), "cross_entropy_backward");
  EXPECT_STREQ(to_string(RowOperator::cross_entropy_with_gradient), "cross_entropy_with_gradient");
  EXPECT_STREQ(to_string(RowStrategy::automatic), "automatic");
  EXPECT_STREQ(to_string(RowStrategy::vector_lanes), "vector_lanes");
  EXPECT_STREQ(to_string(RowStrategy::team_scratch), "team_scratch");
  EXPECT_STREQ(to_string(RowStrategy::team_registers), "team_registers");
  EXPECT_STREQ(to_string(RowStrategy::team_online), "team_online");
  EXPECT_STREQ(to_string(RowStrategy::split_row), "split_row");
  EXPECT_STREQ(to_string(RowStrategy::inner_lanes), "inner_lanes");
  EXPECT_STREQ(to_string(RowKernel::row_in_team), "row_in_team");
  EXPECT_STREQ(to_string(RowKernel::row_in_lanes), "row_in_lanes");
  EXPECT_STREQ(to_string(RowKernel::few_rows), "few_rows");
  EXPECT_STREQ(to_string(RowKernel::staged_rows), "staged_rows");
  EXPECT_STREQ(to_string(RowKernel::split_row), "split_row");
  EXPECT_STREQ(to_string(RowKernel::split_online), "split_online");
  EXPECT_STREQ(to_string(RowKernel::split_twice), "split_twice");
  EXPECT_STREQ(to_string(RowKernel::inner_lanes), "inner_lanes");
  EXPECT_STREQ(to_string(RowKernel::inner_online), "inner_online");
  EXPECT_STREQ(to_string(RowKernel::host_rows), "host_rows");
  EXPECT_STREQ(to_string(RowKernel::host_inner), "host_inner");
  EXPECT_STREQ(to_string(ElementType::f64), "f64");
  EXPECT_STREQ(to_string(ElementType::f32), "f32");
  EXPECT_STREQ(to_string(ElementType::f16), "f16");
  EXPECT_STREQ(to_string(ElementType::bf16), "bf16");
  EXPECT_STREQ(to_string(ElementType::other), "other");
  EXPECT_STREQ(to_string(Backend::host), "host");
  EXPECT_STREQ(to_string(Backend::cuda), "cuda");
  EXPECT_STREQ(to_string(Backend::hip), "hip");
}

TEST(Planner, WhatIsNoEnumeratorHasNoOthersName) {
  EXPECT_STREQ(to_string(RowOperator(99)), "unknown operator");
  EXPECT_STREQ(to_string(RowStrategy(99)), "unknown strategy");
  EXPECT_STREQ(to_string(RowKernel(99)), "unknown kernel");
  EXPECT_STREQ(to_string(ElementType(99)), "unknown type");
  EXPECT_STREQ(to_string(Backend(99)), "unknown backend");
}

}  // namespace KokkosNNTest
