// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/devices.hpp"
#include "support/segmented.hpp"

#include <KokkosNN/KokkosNN.hpp>
#include <KokkosNN/impl/call/segmented_plan.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace KokkosNNTest {

using KokkosNN::to_string;

/// The chunks into which a call cuts so many values of T here, or, on a GPU, a row that takes many teams: where borders
/// are, and what a long row is.
template <class T>
KokkosNN::Impl::Chunks chunks_of(std::int64_t elements, int tensors = 1) {
  KokkosNN::Impl::SegmentedProblem problem;
  problem.accumulator_bytes = sizeof(KokkosNN::accumulator_t<T>);
  problem.tensors           = tensors;
  problem.elements          = elements;
  problem.rows              = 1;
  return make_segmented_plan(problem, KokkosNN::device_traits(Exec())).chunks;
}

/// `rows` rows of `length`.
Lengths equal_lengths(std::int64_t rows, std::int64_t length) { return Lengths(rows, length); }

/// Rows of 10, and one of `wide` in the middle.
Lengths skewed_lengths(std::int64_t rows, std::int64_t wide) {
  Lengths lengths(rows, 10);
  lengths[rows / 2] = wide;
  return lengths;
}

/// The plan for so many rows, of f32 or of bf16, on an H200, or on one that is a little different.
KokkosNN::Impl::SegmentedPlan plan_on_h200(std::int64_t rows, std::int64_t mean, int element_bytes,
                                           const KokkosNN::DeviceTraits& traits = h200()) {
  KokkosNN::Impl::SegmentedProblem problem;
  problem.element_bytes = element_bytes;
  problem.rows          = rows;
  problem.elements      = rows * mean;
  return make_segmented_plan(problem, traits);
}

template <class T>
class Segmented : public ::testing::Test {};
TYPED_TEST_SUITE(Segmented, ElementTypes, ElementNames);

template <class T>
void expect_all_match(const Lengths& lengths, const char* what, Recipe recipe = Recipe::uniform, int misalignment = 0,
                      const SegmentedOptions& options = {}) {
  for_each_segmented([&](auto op) {
    SegmentedTrial<decltype(op)::value, T> trial(lengths, recipe, misalignment, misalignment);
    ASSERT_TRUE(trial.run_correct(options)) << to_string(decltype(op)::value) << ": " << what;
  });
}

TEST(SegmentedPlans, GiveAWarpWholeWindowsOfRows) {
  EXPECT_EQ(plan_on_h200(1 << 20, 32, 4).rows_of_warp, 2 * 28);
  EXPECT_EQ(plan_on_h200(1 << 20, 32, 2).rows_of_warp, 3 * 28);
  EXPECT_EQ(plan_on_h200(1 << 20, 20, 4).rows_of_warp, 2 * 31) << "a window has no more rows than a warp has lanes";
  EXPECT_EQ(plan_on_h200(1 << 20, 20, 2).rows_of_warp, 2 * 31);
  EXPECT_EQ(plan_on_h200(300000, 100, 4).rows_of_warp, 2 * 8);
  EXPECT_EQ(plan_on_h200(1 << 17, 32, 4).rows_of_warp, 17) << "less than a window each, for every warp to have some";
  EXPECT_EQ(plan_on_h200(40, 1000, 2).rows_of_warp, 1);
}

TEST(SegmentedPlans, HaveTeamsOf16BitRowsStay) {
  EXPECT_EQ(plan_on_h200(1 << 20, 32, 4).flat_teams, ((1 << 20) + 4 * 56 - 1) / (4 * 56));
  EXPECT_EQ(plan_on_h200(1 << 20, 32, 2).flat_teams, 132 * 7);
  EXPECT_EQ(plan_on_h200(40, 32, 2).flat_teams, 10);
}

TEST(SegmentedPlans, TakeRowsFlatUnlessTheyAreVeryShortOrLong) {
  EXPECT_FALSE(plan_on_h200(1 << 20, 11, 4).has_flat_mean);
  EXPECT_TRUE(plan_on_h200(1 << 20, 12, 4).has_flat_mean);
  EXPECT_TRUE(plan_on_h200(1 << 20, 128, 4).has_flat_mean);
  EXPECT_FALSE(plan_on_h200(1 << 20, 129, 4).has_flat_mean);
  EXPECT_TRUE(plan_on_h200(1 << 20, 512, 2).has_flat_mean);
}

TEST(SegmentedPlans, AskForRowsAsFarAheadAsTeamsRunAtTheSameTimeOrTheCacheHasRoom) {
  EXPECT_EQ(plan_on_h200(1 << 20, 10, 4).rows_ahead, 132 * 5 * 128);
  EXPECT_EQ(plan_on_h200(1 << 20, 100, 4).rows_ahead, std::int64_t(0.1 * double(h200().cache) / (100 * 4)));
  EXPECT_EQ(plan_on_h200(1 << 20, 101, 4).rows_ahead, 0);
  KokkosNN::DeviceTraits older = h200();
  older.prefetches             = false;
  EXPECT_EQ(plan_on_h200(1 << 20, 10, 4, older).rows_ahead, 0);
}

TEST(SegmentedPlans, KeepResultsInTheCacheThatFitThere) {
  EXPECT_EQ(plan_on_h200(1 << 17, 32, 4).eviction, KokkosNN::Eviction::normal);
  EXPECT_EQ(plan_on_h200(1 << 20, 32, 4).eviction, KokkosNN::Eviction::first);
}

TYPED_TEST(Segmented, RowsOfRandomLengthsMatchTheReference) {
  expect_all_match<TypeParam>(random_lengths(5000, 1, 63), "lengths 1 to 63");
  expect_all_match<TypeParam>(random_lengths(20000, 0, 5), "lengths 0 to 5");
  expect_all_match<TypeParam>(random_lengths(300, 0, 2000), "lengths 0 to 2000");
  expect_all_match<TypeParam>(random_lengths(11, 5000, 50000), "lengths 5000 to 50000");
}

TYPED_TEST(Segmented, RowsOfOneLengthMatchForEveryLengthUpTo200) {
  for (std::int64_t length = 1; length <= 200; ++length) {
    expect_all_match<TypeParam>(equal_lengths(7, length), std::to_string(length).c_str());
  }
}

TYPED_TEST(Segmented, RowsOfOneLengthMatchAroundWhatLanesWarpsTeamsAndChunksHold) {
  const std::int64_t chunk = chunks_of<TypeParam>(1 << 20).size();
  for (const std::int64_t center : {256, 512, 1024, 2048, 4096, 8192}) {
    for (const std::int64_t offset : {-1, 0, 1}) {
      expect_all_match<TypeParam>(equal_lengths(9, center + offset), std::to_string(center + offset).c_str());
    }
  }
  for (const std::int64_t length :
       {chunk - 1, chunk, chunk + 1, 3 * chunk / 2, 2 * chunk, 2 * chunk + 1, 3 * chunk + 7}) {
    expect_all_match<TypeParam>(equal_lengths(5, length), std::to_string(length).c_str());
  }
}

TYPED_TEST(Segmented, OneRowMatchesForEveryNumberOfChunks) {
  for (const std::int64_t length : {1, 2, 17, 1000, 8191, 8192, 8193, 16384, 16385, 24576, 100000, 700001}) {
    expect_all_match<TypeParam>({length}, std::to_string(length).c_str());
  }
}

TYPED_TEST(Segmented, ALongRowMayBeginAndEndAnywhereInAChunk) {
  const std::int64_t size  = chunks_of<TypeParam>(1 << 18).size();
  const std::int64_t chunk = std::max<std::int64_t>(size, 64);
  for (const std::int64_t before : {0, 1, 3, 31, 100}) {
    for (const std::int64_t chunks : {1, 2, 3, 40}) {
      for (const std::int64_t after : {std::int64_t(0), std::int64_t(1), std::int64_t(5), chunk - 1}) {
        const Lengths lengths{before, chunk - 2, chunks * chunk, 0, after, 7, chunk / 2, 2 * chunk + 3, 1};
        SegmentedTrial<RowOperator::softmax, TypeParam> softmax(lengths);
        SegmentedTrial<RowOperator::logsumexp, TypeParam> logsumexp(lengths);

        ASSERT_TRUE(softmax.run_correct()) << before << ", " << chunks << ", " << after;
        ASSERT_TRUE(logsumexp.run_correct()) << before << ", " << chunks << ", " << after;
      }
    }
  }
}

TYPED_TEST(Segmented, AnEmptyRowAnywhereWritesNothing) {
  expect_all_match<TypeParam>({0, 5, 7}, "the first");
  expect_all_match<TypeParam>({5, 0, 0, 7}, "in the middle");
  expect_all_match<TypeParam>({5, 7, 0}, "the last");
  expect_all_match<TypeParam>({0}, "the only one");
  expect_all_match<TypeParam>(equal_lengths(1000, 0), "all");
  Lengths lengths(70000, 0);
  lengths[0] = lengths[33333] = lengths[33334] = 9;
  lengths[69998]                               = 10000;
  expect_all_match<TypeParam>(lengths, "nearly all");
  lengths.push_back(0);
  lengths.insert(lengths.begin(), 5000, 0);
  expect_all_match<TypeParam>(lengths, "nearly all, with both ends");
}

TYPED_TEST(Segmented, ALogSumExpOfAnEmptyRowIsMinusInfinity) {
  SegmentedTrial<RowOperator::logsumexp, TypeParam> trial({0, 3, 0});

  ASSERT_TRUE(trial.run_correct());

  EXPECT_EQ(exact(trial.y().host()[0]), -Reference::infinity);
  EXPECT_EQ(exact(trial.y().host()[2]), -Reference::infinity);
}

TYPED_TEST(Segmented, NoRowsOrNoValuesLaunchNothingButALogSumExpThatIsInfinite) {
  SegmentedTrial<RowOperator::softmax, TypeParam> no_rows({}), no_values({0, 0});
  SegmentedTrial<RowOperator::logsumexp, TypeParam> empty(equal_lengths(3000, 0)), none({});

  EXPECT_TRUE(kernels_of([&] { no_rows.call(); }).empty());
  EXPECT_TRUE(kernels_of([&] { no_values.call(); }).empty());
  EXPECT_TRUE(kernels_of([&] { none.call(); }).empty());
  EXPECT_TRUE(empty.run_correct());
}

TYPED_TEST(Segmented, OneVeryLongRowAmongManyShortOnesMatches) {
  const std::int64_t scale = on_gpu ? 10 : 1;
  expect_all_match<TypeParam>(skewed_lengths(20000 * scale, 100000 * scale), "one long row");
  Lengths several = random_lengths(10000, 0, 20);
  for (const int row : {0, 1, 500, 501, 502, 9999}) several[row] = 30000 + row;
  expect_all_match<TypeParam>(several, "several long rows");
}

TYPED_TEST(Segmented, ManyRowsOfFewElementsMatch) {
  for (const int most : {8, 12, 16, 24, 31}) {
    expect_all_match<TypeParam>(random_lengths(on_gpu ? 90000 : 3000, 0, most), std::to_string(most).c_str());
  }
}

TEST(SegmentedSkew, AMillionRowsOf10AndOneOfAMillionMatch) {
  const Lengths lengths = skewed_lengths(1000000, 1000000);
  SegmentedTrial<RowOperator::softmax, float> softmax(lengths);
  SegmentedTrial<RowOperator::logsumexp, float> lse(lengths);

  EXPECT_TRUE(softmax.run_correct());
  EXPECT_TRUE(lse.run_correct());
}

TYPED_TEST(Segmented, OffEveryAlignmentRowsMatch) {
  for (int misalignment = 1; misalignment < 9; ++misalignment) {
    expect_all_match<TypeParam>(random_lengths(900, 0, 63), "short rows", Recipe::uniform, misalignment);
    expect_all_match<TypeParam>({7, 40000, 3, 9001, 20000}, "long rows", Recipe::uniform, misalignment);
  }
  for (const int y_misalignment : {0, 1, 2, 3}) {
    SegmentedTrial<RowOperator::softmax, TypeParam> apart(random_lengths(900, 0, 63), Recipe::uniform, 1,
                                                          y_misalignment);
    SegmentedTrial<RowOperator::softmax, TypeParam> long_rows({7, 40000, 3, 9001}, Recipe::uniform, 2, y_misalignment);

    EXPECT_TRUE(apart.run_correct()) << y_misalignment;
    EXPECT_TRUE(long_rows.run_correct()) << y_misalignment;
  }
}

TYPED_TEST(Segmented, ElementsInNoRowAreNotWritten) {
  for (const std::int64_t before : {1, 5, 10000}) {
    SegmentedTrial<RowOperator::softmax, TypeParam> softmax({20, 0, 30, 20000}, Recipe::uniform, 0, 0, before, 9999);
    SegmentedTrial<RowOperator::logsumexp, TypeParam> lse({20, 0, 30, 20000}, Recipe::uniform, 0, 0, before, 9999);

    EXPECT_TRUE(softmax.run_correct()) << before;
    EXPECT_TRUE(lse.run_correct()) << before;
  }
}

TYPED_TEST(Segmented, WithEveryRecipeAndScaleRowsMatch) {
  Lengths lengths = random_lengths(400, 0, 700);
  lengths.push_back(30000);
  for (const Recipe recipe : all_recipes) {
    for (const double scale : {1.0, -1.0, 0.125, 3.0}) {
      expect_all_match<TypeParam>(lengths, to_string(recipe), recipe, 0, {.scale = scale});
    }
  }
}

TYPED_TEST(Segmented, InPlaceRowsMatch) {
  Lengths lengths = random_lengths(3000, 0, 63);
  lengths[7]      = 50000;
  lengths[2999]   = 20000;
  SegmentedTrial<RowOperator::softmax, TypeParam> softmax(lengths, Recipe::wide);
  SegmentedTrial<RowOperator::log_softmax, TypeParam> log_softmax(lengths, Recipe::wide, 1);

  EXPECT_TRUE(softmax.run_in_place_correct());
  EXPECT_TRUE(log_softmax.run_in_place_correct());
}

template <class Offset>
class SegmentedOffsets : public ::testing::Test {};
using OffsetTypes = ::testing::Types<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t,
                                     std::uint32_t, std::int64_t, std::size_t, unsigned long long>;
TYPED_TEST_SUITE(SegmentedOffsets, OffsetTypes);

TYPED_TEST(SegmentedOffsets, OfEveryIntegralTypeMatch) {
  // As many elements as the type can count, or many.
  const std::int64_t most =
      static_cast<std::int64_t>(std::min<std::uint64_t>(std::numeric_limits<TypeParam>::max(), 100000));
  Lengths lengths{most / 2, 0, 3, 0};
  while (total(lengths) + 21 <= most) lengths.push_back(21);
  lengths.push_back(most - total(lengths));
  for_each_segmented([&](auto op) {
    SegmentedTrial<decltype(op)::value, float, TypeParam> trial(lengths);

    EXPECT_TRUE(trial.run_correct({.check_offsets = true})) << to_string(decltype(op)::value);
  });
}

/// Values, or offsets, every `stride`-th of a longer vector.
TEST(SegmentedViews, OfAnyStrideMatch) {
  SegmentedTrial<RowOperator::softmax, float> dense({5, 0, 600, 20000, 31, 7});
  ASSERT_TRUE(dense.run_correct());
  const std::size_t n = dense.x().count(), rows = dense.lengths().size();
  const Kokkos::View<float**, Kokkos::LayoutRight, Memory> x("x", n, 3), y("y", n, 2);
  const Kokkos::View<int**, Kokkos::LayoutRight, Memory> offsets("offsets", rows + 1, 2);
  const auto column = [](const auto& matrix, int c) { return Kokkos::subview(matrix, Kokkos::ALL, c); };
  Kokkos::deep_copy(column(x, 1), dense.x_view());
  Kokkos::deep_copy(column(offsets, 0), dense.offsets());

  KokkosNN::segmented_softmax(Exec(), column(x, 1), column(offsets, 0), column(y, 1));

  const Kokkos::View<float*, Memory> result("result", n);
  Kokkos::deep_copy(result, column(y, 1));
  Kokkos::deep_copy(dense.y_view(), result);
  dense.y().download();
  EXPECT_TRUE(dense.correct());
}

TEST(SegmentedViews, OfTwoTypesMatch) {
  SegmentedTrial<RowOperator::softmax, float, int, double> widened({5, 0, 600, 20000, 31, 7});
  SegmentedTrial<RowOperator::log_softmax, double, int, float> narrowed({5, 0, 600, 20000, 31, 7});

  EXPECT_TRUE(widened.run_correct());
  EXPECT_TRUE(narrowed.run_correct());
}

TEST(SegmentedViews, OnTheDefaultInstanceMatch) {
  SegmentedTrial<RowOperator::softmax, float> softmax({5, 0, 600});
  SegmentedTrial<RowOperator::log_softmax, float> log_softmax({5, 0, 600});
  SegmentedTrial<RowOperator::logsumexp, float> logsumexp({5, 0, 600});

  KokkosNN::segmented_softmax(softmax.x_view(), softmax.offsets(), softmax.y_view());
  KokkosNN::segmented_log_softmax(log_softmax.x_view(), log_softmax.offsets(), log_softmax.y_view());
  KokkosNN::segmented_logsumexp(logsumexp.x_view(), logsumexp.offsets(), logsumexp.y_view());
  Kokkos::fence();

  softmax.y().download();
  log_softmax.y().download();
  logsumexp.y().download();
  EXPECT_TRUE(softmax.correct());
  EXPECT_TRUE(log_softmax.correct());
  EXPECT_TRUE(logsumexp.correct());
}

// --- windows of neighbouring rows ---

/// f(row, first element, its elements) for each row of a trial's values, which are uploaded then.
template <class Trial, class F>
void change_rows(Trial& trial, const F& f) {
  auto* row_begin = trial.x().host();
  for (std::size_t row = 0; row < trial.lengths().size(); ++row) {
    f(static_cast<std::int64_t>(row), row_begin, trial.lengths()[row]);
    row_begin += trial.lengths()[row];
  }
  trial.x().upload();
}

/// Each operator matches on rows of these lengths whose values `change` has changed.
template <class T, class F>
void expect_changed_match(const Lengths& lengths, const char* what, const F& change,
                          const SegmentedOptions& options = {}) {
  for_each_segmented([&](auto op) {
    SegmentedTrial<decltype(op)::value, T> trial(lengths);
    change_rows(trial, change);
    ASSERT_TRUE(trial.run_correct(options)) << to_string(decltype(op)::value) << ": " << what;
  });
}

TYPED_TEST(Segmented, RowsThatFillWhatAWarpHoldsOrOverflowItMatch) {
  for (const std::int64_t length : {1, 15, 16, 17, 31, 32, 33, 64, 127, 171, 256, 341, 512, 1024}) {
    expect_all_match<TypeParam>(random_lengths(300, std::max<std::int64_t>(0, length - 2), length + 2),
                                std::to_string(length).c_str());
  }
  for (int misalignment = 0; misalignment < 8; ++misalignment) {
    Lengths lengths = random_lengths(400, 0, 40);
    for (std::size_t row = 0; row < lengths.size(); row += 12) lengths[row] = 1010 + row / 12;
    expect_all_match<TypeParam>(lengths, "some around what a warp holds", Recipe::uniform, misalignment);
  }
}

TYPED_TEST(Segmented, ManyEmptyRowsBetweenOthersMatch) {
  Lengths lengths(3000, 0);
  for (std::size_t row = 0; row < lengths.size(); row += 1 + row % 71) lengths[row] = 1 + row % 40;
  expect_all_match<TypeParam>(lengths, "runs of up to 70 empty rows");
  for (std::size_t row = 0; row < lengths.size(); row += 1 + row % 35) lengths[row] = 300 + row % 40;
  expect_all_match<TypeParam>(lengths, "longer rows, runs of up to 34 empty ones");
  expect_all_match<TypeParam>(random_lengths(3000, 0, 1), "every other row empty");
}

TYPED_TEST(Segmented, NeighboursFarApartInValueMatch) {
  const Lengths lengths = random_lengths(900, 0, 40);
  for (const float distance : {20.0f, 60.0f, 100.0f, 1000.0f}) {
    for (const double scale : {1.0, -1.0}) {
      expect_changed_match<TypeParam>(lengths, "rows at different heights",
                                      [&](std::int64_t row, TypeParam* x, std::int64_t length) {
                                        for (std::int64_t i = 0; i < length; ++i)
                                          x[i] = static_cast<TypeParam>(float(x[i]) + distance * float(row % 3 - 1));
                                      },
                                      {.scale = scale});
      expect_changed_match<TypeParam>(lengths, "all rows far from 0",
                                      [&](std::int64_t, TypeParam* x, std::int64_t length) {
                                        for (std::int64_t i = 0; i < length; ++i)
                                          x[i] = static_cast<TypeParam>(float(x[i]) + distance);
                                      },
                                      {.scale = scale});
      expect_changed_match<TypeParam>(lengths, "elements far below their row's maximum",
                                      [&](std::int64_t row, TypeParam* x, std::int64_t length) {
                                        for (std::int64_t i = row % 7; i < length; i += 2)
                                          x[i] = static_cast<TypeParam>(float(x[i]) - distance);
                                      },
                                      {.scale = scale});
    }
  }
}

TYPED_TEST(Segmented, ANumberThatIsNoneLeavesTheRowsAroundItRight) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  expect_changed_match<TypeParam>(
      random_lengths(2000, 0, 60), "NaNs and infinities", [&](std::int64_t row, TypeParam* x, std::int64_t length) {
        if (length == 0 || row % 100 > 3) return;
        x[length / 2] = static_cast<TypeParam>(row % 100 == 0 ? nan : (row % 100 == 1 ? inf : -inf));
        if (row % 100 == 3) std::fill(x, x + length, static_cast<TypeParam>(-inf));
      });
}

TYPED_TEST(Segmented, SumsOfEqualOrOfUnequalElementsMatch) {
  expect_changed_match<TypeParam>(random_lengths(4000, 1, 100), "equal elements",
                                  [&](std::int64_t row, TypeParam* x, std::int64_t length) {
                                    std::fill(x, x + length, static_cast<TypeParam>(float(row) * 0.00173f));
                                  });
  expect_changed_match<TypeParam>(random_lengths(4000, 1, 100), "one element above the others",
                                  [&](std::int64_t row, TypeParam* x, std::int64_t length) {
                                    std::fill(x, x + length, static_cast<TypeParam>(float(row) * 0.00173f - 5));
                                    x[row % length] = static_cast<TypeParam>(float(row) * 0.001f);
                                  });
}

// --- values that are not numbers ---

/// Rows of one value each, but for those elements that are given.
template <class T>
void put(SegmentedTrial<RowOperator::softmax, T>& softmax, SegmentedTrial<RowOperator::log_softmax, T>& log_softmax,
         SegmentedTrial<RowOperator::logsumexp, T>& logsumexp, std::int64_t at, float value) {
  softmax.x().host()[at] = log_softmax.x().host()[at] = logsumexp.x().host()[at] = static_cast<T>(value);
}

TYPED_TEST(Segmented, NaNsAndInfinitiesStayInTheirRow) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::int64_t length : {1, 3, 31, 700, 9000, 50000}) {
    const Lengths lengths(5, length);
    SegmentedTrial<RowOperator::softmax, TypeParam> softmax(lengths);
    SegmentedTrial<RowOperator::log_softmax, TypeParam> log_softmax(lengths);
    SegmentedTrial<RowOperator::logsumexp, TypeParam> logsumexp(lengths);
    put(softmax, log_softmax, logsumexp, length / 2, nan);
    put(softmax, log_softmax, logsumexp, 2 * length - 1, inf);
    for (std::int64_t i = 0; i < length; ++i) put(softmax, log_softmax, logsumexp, 2 * length + i, -inf);
    for (std::int64_t i = 0; i < length; i += 2) put(softmax, log_softmax, logsumexp, 3 * length + i, -inf);
    softmax.x().upload();
    log_softmax.x().upload();
    logsumexp.x().upload();
    for (const MaskedRowPolicy policy : {MaskedRowPolicy::nan, MaskedRowPolicy::zero}) {
      EXPECT_TRUE(softmax.run_correct({.masked_row = policy})) << length;
      EXPECT_TRUE(log_softmax.run_correct({.masked_row = policy})) << length;
      EXPECT_TRUE(logsumexp.run_correct({.masked_row = policy})) << length;
    }
  }
}

TYPED_TEST(Segmented, ALogSumExpOfARowWithPlusInfinityIsThatUnlessANaNIsAnywhereInTheRow) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::int64_t length : {2, 3, 31, 700, 9000, 50000}) {
    SegmentedTrial<RowOperator::logsumexp, TypeParam> trial(Lengths(6, length));
    TypeParam* const x = trial.x().host();
    for (std::int64_t row = 0; row < 6; ++row) {
      TypeParam* const own = x + row * length;
      if (row == 2) std::fill_n(own, length, static_cast<TypeParam>(-inf));
      own[row % 2 == 0 ? 0 : length - 1] = static_cast<TypeParam>(inf);
      if (row > 2) own[row % 2 == 0 ? length - 1 : 0] = static_cast<TypeParam>(nan);
      if (row == 5) own[length / 2] = static_cast<TypeParam>(inf);
    }
    trial.x().upload();

    EXPECT_TRUE(trial.run_correct()) << length;
    for (int row = 0; row < 6; ++row) {
      const double lse = static_cast<double>(trial.y().host()[row]);
      EXPECT_TRUE(row > 2 ? std::isnan(lse) : lse == inf) << lse << " of row " << row << ", " << length;
    }
  }
}

TYPED_TEST(Segmented, ASmallScaleKeepsResultsFiniteWhereDifferencesOfLogitsAreNot) {
  const auto most = static_cast<double>(largest<TypeParam>());
  for (const double scale : {0.125, -0.25, 0.3, 0x1p-100}) {
    for (const std::int64_t length : {40, 3000, 50000}) {
      expect_changed_match<TypeParam>(length == 40 ? random_lengths(900, 0, length) : equal_lengths(4, length), "ends",
                                      [&](std::int64_t row, TypeParam* x, std::int64_t n) {
                                        for (std::int64_t i = row % 2; i < n; i += 3) {
                                          x[i] = static_cast<TypeParam>(i % 2 == 0 ? most : -most);
                                        }
                                      },
                                      {.scale = scale});
    }
  }
}

// --- reproducible bits ---

TYPED_TEST(Segmented, EqualCallsGiveEqualBits) {
  Lengths lengths = random_lengths(5000, 0, 40);
  lengths[100]    = 80000;
  lengths[101]    = 20000;
  SegmentedTrial<RowOperator::softmax, TypeParam> trial(lengths);
  ASSERT_TRUE(trial.run_correct());
  const std::vector<TypeParam> first(trial.y().host(), trial.y().host() + trial.y().count());
  for (int run = 0; run < 5; ++run) {
    ASSERT_TRUE(trial.run_correct());

    ASSERT_TRUE(std::equal(first.begin(), first.end(), trial.y().host(),
                           [](const TypeParam& a, const TypeParam& b) { return same_bits(a, b); }))
        << "run " << run;
  }
}

#ifdef KOKKOS_ENABLE_OPENMP
TEST(SegmentedBits, DoNotDependOnTheNumberOfThreads) {
  Lengths lengths      = random_lengths(5000, 0, 40);
  lengths[100]         = 80000;
  using Host           = Kokkos::View<float*, Kokkos::HostSpace>;
  const std::int64_t n = total(lengths);
  const Kokkos::View<std::int64_t*, Kokkos::HostSpace> offsets("offsets", lengths.size() + 1);
  for (std::size_t row = 0; row < lengths.size(); ++row) offsets(row + 1) = offsets(row) + lengths[row];
  const Host x("x", n), alone("alone", n);
  fill(x.data(), right({1, n}), 1, Recipe::wide);
  KokkosNN::segmented_softmax(Kokkos::OpenMP(1), x, offsets, alone);
  for (const int threads : {2, 3}) {
    const Host y("y", n);
    const Kokkos::OpenMP exec(threads);

    KokkosNN::segmented_softmax(exec, x, offsets, y);
    exec.fence();

    EXPECT_TRUE(std::equal(y.data(), y.data() + n, alone.data(), [](float a, float b) { return same_bits(a, b); }));
  }
}
#endif

// --- gradients ---

template <class T>
void expect_gradients_match(const Lengths& lengths, const char* what, double scale = 1, int misalignment = 0) {
  for_each_segmented_gradient([&](auto op) {
    SegmentedGradientTrial<decltype(op)::value, T> trial(lengths, scale, misalignment);
    ASSERT_TRUE(trial.run_correct()) << to_string(decltype(op)::value) << ": " << what;
  });
}

TYPED_TEST(Segmented, GradientsMatchTheReference) {
  expect_gradients_match<TypeParam>(random_lengths(5000, 0, 63), "lengths 0 to 63");
  expect_gradients_match<TypeParam>(random_lengths(300, 0, 2000), "lengths 0 to 2000", -0.5);
  expect_gradients_match<TypeParam>(random_lengths(11, 5000, 50000), "lengths 5000 to 50000", 3);
  expect_gradients_match<TypeParam>(skewed_lengths(10000, 200000), "one long row");
  expect_gradients_match<TypeParam>({0, 5, 0, 0, 7, 0}, "empty rows");
}

TYPED_TEST(Segmented, GradientsOfManyRowsOfFewElementsMatch) {
  for (const int most : {12, 31, 80}) {
    expect_gradients_match<TypeParam>(random_lengths(on_gpu ? 90000 : 3000, 0, most), std::to_string(most).c_str());
  }
}

TYPED_TEST(Segmented, GradientsOfRowsOfOneLengthMatchForEveryLengthUpTo200) {
  for (std::int64_t length = 1; length <= 200; ++length) {
    expect_gradients_match<TypeParam>(equal_lengths(7, length), std::to_string(length).c_str());
  }
}

TYPED_TEST(Segmented, GradientsOfRowsAroundWhatTeamsAndChunksHoldMatch) {
  const std::int64_t chunk = chunks_of<TypeParam>(1 << 20, 2).size();
  for (const std::int64_t length : {255, 257, 511, 513, 1023, 1025, 4097}) {
    expect_gradients_match<TypeParam>(equal_lengths(9, length), std::to_string(length).c_str());
  }
  for (const std::int64_t length : {chunk - 1, chunk + 1, 3 * chunk / 2, 3 * chunk / 2 + 1, 2 * chunk + 1, 5 * chunk}) {
    expect_gradients_match<TypeParam>(equal_lengths(5, length), std::to_string(length).c_str());
  }
}

TYPED_TEST(Segmented, GradientsOffEveryAlignmentMatch) {
  for (const int misalignment : {1, 2, 3, 5, 7}) {
    expect_gradients_match<TypeParam>(random_lengths(900, 0, 63), "short rows", 1, misalignment);
    expect_gradients_match<TypeParam>({7, 40000, 3, 9001, 20000}, "long rows", 1, misalignment);
  }
}

TYPED_TEST(Segmented, GradientsWrittenOverTheirInputsMatch) {
  for_each_segmented_gradient([&](auto op) {
    for (const Output output : {Output::over_x, Output::over_dy}) {
      Lengths lengths = random_lengths(3000, 0, 63);
      lengths[8]      = 50000;
      SegmentedGradientTrial<decltype(op)::value, TypeParam> trial(lengths);

      EXPECT_TRUE(trial.run_correct(output)) << to_string(decltype(op)::value);
    }
  });
}

TYPED_TEST(Segmented, GradientsOfNoRowsOrNoValuesLaunchNothing) {
  for_each_segmented_gradient([&](auto op) {
    SegmentedGradientTrial<decltype(op)::value, TypeParam> no_rows({}), no_values({0, 0});

    EXPECT_TRUE(kernels_of([&] { no_rows.call(); }).empty());
    EXPECT_TRUE(kernels_of([&] { no_values.call(); }).empty());
  });
}

/// The function whose gradients are tested: the sum over all rows of dy times the forward call's result.
template <RowOperator Forward>
double objective(const Buffer<double>& x, const Buffer<double>& dy, const OffsetsView<const int>& offsets,
                 double scale) {
  using Trial = SegmentedGradientTrial<RowOperator::softmax_backward, double>;
  Buffer<double> y(x.count());
  apply_segmented<Forward>(Exec(), Trial::vector(x), offsets, Trial::vector(y), {.scale = scale});
  Exec().fence();
  y.download();
  double value = 0;
  for (std::int64_t i = 0; i < y.count(); ++i) value += y.host()[i] * dy.host()[i];
  return value;
}

template <RowOperator Forward, RowOperator Backward>
void segmented_matches_central_differences(double scale) {
  constexpr double step = 1e-5;
  SegmentedGradientTrial<Backward, double> gradient({3, 0, 1, 20, 7}, scale);
  Buffer<double> x(gradient.y().count());
  fill(x.host(), right({1, x.count()}), 1, Recipe::uniform);
  x.upload();
  apply_segmented<Forward>(Exec(), gradient.vector(x), gradient.offsets(), gradient.vector(gradient.y()),
                           {.scale = scale});
  gradient.call();
  Exec().fence();
  gradient.dx().download();

  for (std::int64_t i = 0; i < x.count(); ++i) {
    const auto moved = [&](double by) {
      x.host()[i] += by;
      x.upload();
      return objective<Forward>(x, gradient.dy(), gradient.offsets(), scale);
    };
    const double above = moved(step);
    const double below = moved(-2 * step);
    moved(step);
    EXPECT_NEAR(gradient.dx().host()[i], (above - below) / (2 * step), 1e-8) << i;
  }
}

TEST(SegmentedGradients, AreThoseOfCentralDifferencesOfTheForwardCall) {
  for (const double scale : {1.0, -0.7}) {
    segmented_matches_central_differences<RowOperator::softmax, RowOperator::softmax_backward>(scale);
    segmented_matches_central_differences<RowOperator::log_softmax, RowOperator::log_softmax_backward>(scale);
  }
}

TEST(SegmentedGradients, OnTheDefaultInstanceMatch) {
  SegmentedGradientTrial<RowOperator::softmax_backward, float> trial({5, 0, 600});
  SegmentedGradientTrial<RowOperator::log_softmax_backward, float> log_trial({5, 0, 600});
  Buffer<float> softmax(605), log_softmax(605);
  trial.call();
  log_trial.call();

  KokkosNN::segmented_softmax_backward(trial.vector(trial.y()), trial.vector(trial.dy()), trial.offsets(),
                                       trial.vector(softmax));
  KokkosNN::segmented_log_softmax_backward(log_trial.vector(log_trial.y()), log_trial.vector(log_trial.dy()),
                                           log_trial.offsets(), log_trial.vector(log_softmax));
  Kokkos::fence();

  softmax.download();
  log_softmax.download();
  trial.dx().download();
  log_trial.dx().download();
  EXPECT_TRUE(std::equal(softmax.host(), softmax.host() + 605, trial.dx().host(), same_bits<float>));
  EXPECT_TRUE(std::equal(log_softmax.host(), log_softmax.host() + 605, log_trial.dx().host(), same_bits<float>));
}

// --- runs of rows that share a host's vectors ---

TYPED_TEST(Segmented, RowsOfEveryLengthUpTo70MatchBesideRowsOfOthers) {
  for (const std::int64_t other : {1, 9, 31, 300, 1500, 5000}) {
    Lengths lengths;
    for (std::int64_t length = 0; length <= 70; ++length) {
      lengths.push_back(length);
      if (length % 3 == 0) lengths.push_back(other);
    }
    expect_all_match<TypeParam>(lengths, std::to_string(other).c_str(), Recipe::uniform, static_cast<int>(other % 4));
    expect_gradients_match<TypeParam>(lengths, std::to_string(other).c_str(), 1, static_cast<int>(other % 4));
  }
}

TYPED_TEST(Segmented, RunsOfRowsThatAreEmptyShortOrLongMatch) {
  Lengths lengths;
  for (const std::int64_t length : {0, 3, 40, 0, 1, 700, 2000, 4, 5000}) {
    for (std::int64_t n = 0; n < 10000 / (length + 10); ++n) lengths.push_back(length);
  }
  expect_all_match<TypeParam>(lengths, "rows of one length after rows of another");
  expect_gradients_match<TypeParam>(lengths, "rows of one length after rows of another");
}

TYPED_TEST(Segmented, ARowOfOneElementIsExactly1) {
  SegmentedTrial<RowOperator::softmax, TypeParam> trial(equal_lengths(600, 1), Recipe::wide);
  ASSERT_TRUE(trial.run_correct());
  for (std::int64_t i = 0; i < 600; ++i) EXPECT_EQ(exact(trial.y().host()[i]), 1) << i;
}

/// Rows of every length, each third of which has `value` somewhere.
template <class T>
void expect_match_beside(float value, const char* what) {
  Lengths lengths = random_lengths(1000, 1, 9);
  for (std::int64_t length = 1; length <= 70; ++length) lengths.insert(lengths.end(), 4, length);
  expect_changed_match<T>(lengths, what, [&](std::int64_t row, T* x, std::int64_t length) {
    if (row % 3 == 0) x[(row / 3) % length] = static_cast<T>(value);
    if (row % 30 == 0) std::fill(x, x + length, static_cast<T>(value));
  });
}

TYPED_TEST(Segmented, RowsBesideRowsWithNaNOrInfinityMatch) {
  const float inf = std::numeric_limits<float>::infinity();
  expect_match_beside<TypeParam>(std::numeric_limits<float>::quiet_NaN(), "NaN");
  expect_match_beside<TypeParam>(-inf, "-inf");
  expect_match_beside<TypeParam>(inf, "+inf");
  expect_match_beside<TypeParam>(60000, "large");
  expect_match_beside<TypeParam>(-60000, "small");
}

TYPED_TEST(Segmented, GradientsBesideRowsWithNaNOrInfinityMatch) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for_each_segmented_gradient([&](auto op) {
    for (const float value : {nan, inf, -inf}) {
      SegmentedGradientTrial<decltype(op)::value, TypeParam> trial(random_lengths(900, 1, 40));
      trial.for_each_row([&](std::int64_t row, std::int64_t at, std::int64_t length) {
        if (row % 3 == 0) trial.dy().host()[at + row % length] = static_cast<TypeParam>(value);
      });
      trial.upload();

      EXPECT_TRUE(trial.run_correct()) << to_string(decltype(op)::value) << ", " << value;
    }
  });
}

#ifdef KOKKOS_ENABLE_OPENMP
/// `call` gives the output the same bits for one and for two threads.
template <class Output, class Call>
void expect_bits_of_one_thread(Output& output, const Call& call) {
  const auto bits_of = [&](int threads) {
    output.poison_all();
    const Kokkos::OpenMP exec(threads);
    call(exec);
    exec.fence();
    output.download();
    return std::vector(output.host(), output.host() + output.count());
  };
  const auto alone = bits_of(1), both = bits_of(2);
  EXPECT_TRUE(std::equal(alone.begin(), alone.end(), both.begin(), [](auto a, auto b) { return same_bits(a, b); }));
}

TYPED_TEST(Segmented, BitsOfAllOperatorsDoNotDependOnTheNumberOfThreads) {
  Lengths lengths = random_lengths(3000, 0, 100);
  lengths[100]    = 80000;
  lengths[101]    = 3000;
  for_each_segmented([&](auto op) {
    SegmentedTrial<decltype(op)::value, TypeParam> trial(lengths, Recipe::wide);
    expect_bits_of_one_thread(trial.y(), [&](const auto& exec) {
      apply_segmented<decltype(op)::value>(exec, trial.x_view(), trial.offsets(), trial.y_view());
    });
  });
  for_each_segmented_gradient([&](auto op) {
    SegmentedGradientTrial<decltype(op)::value, TypeParam> trial(lengths);
    expect_bits_of_one_thread(trial.dx(), [&](const auto& exec) { trial.call(Output::own, exec); });
  });
}

/// Softmax whose results go past the caches, of whatever size.
template <class T>
void softmax_past_caches(SegmentedTrial<RowOperator::softmax, T>& trial) {
  using namespace KokkosNN::Impl;
  using Params = SoftmaxParams<KokkosNN::accumulator_t<T>, exp_accuracy_for<T>>;
  SegmentedProblem problem;
  problem.element_bytes     = sizeof(T);
  problem.accumulator_bytes = sizeof(KokkosNN::accumulator_t<T>);
  problem.elements          = trial.x().count();
  problem.rows              = static_cast<std::int64_t>(trial.lengths().size());
  auto plan                 = make_segmented_plan(problem, KokkosNN::device_traits(Exec()));
  plan.nontemporal_stores   = true;
  const HostSegmentedForward<RowOperator::softmax, Params, T, T> op(
      Params(1, MaskedRowPolicy::nan), Values<const T>{trial.x().device(), 1}, Values<T>{trial.y().device(), 1});
  launch_segmented_on_host(Exec(), plan, op, RowOffsets{trial.offsets().data(), 1, sizeof(int), true});
}

TYPED_TEST(Segmented, ResultsThatGoPastTheCachesHaveTheSameBits) {
  Lengths lengths = random_lengths(700, 0, 60);
  lengths.insert(lengths.end(), {300, 900, 5000, 7, 40000, 3, 1});
  for (int misalignment = 0; misalignment < 4; ++misalignment) {
    SegmentedTrial<RowOperator::softmax, TypeParam> trial(lengths, Recipe::uniform, misalignment, 3 * misalignment, 5,
                                                          9);
    ASSERT_TRUE(trial.run_correct());
    const std::vector<TypeParam> stored(trial.y().host(), trial.y().host() + trial.y().count());
    trial.y().poison_all();

    softmax_past_caches(trial);
    Exec().fence();
    trial.y().download();

    EXPECT_TRUE(trial.correct()) << misalignment;
    EXPECT_TRUE(std::equal(stored.begin(), stored.end(), trial.y().host(), same_bits<TypeParam>)) << misalignment;
  }
}

TEST(SegmentedPlans, SendResultsPastAHostsCachesThatDoNotHoldTheCall) {
  KokkosNN::DeviceTraits traits = KokkosNN::device_traits(Kokkos::OpenMP());
  traits.cache                  = 1 << 20;
  KokkosNN::Impl::SegmentedProblem problem;
  problem.elements = 1 << 16;
  EXPECT_FALSE(make_segmented_plan(problem, traits).nontemporal_stores);
  problem.heads = 2;
  EXPECT_TRUE(make_segmented_plan(problem, traits).nontemporal_stores);
}
#endif

}  // namespace KokkosNNTest
