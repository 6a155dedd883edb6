// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/devices.hpp"
#include "support/heads.hpp"

#include <KokkosNN/KokkosNN.hpp>
#include <KokkosNN/impl/call/segmented_plan.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

// Ragged rows of several heads in one call.

namespace KokkosNNTest {

using KokkosNN::to_string;
using KokkosNN::Impl::HeadArrangement;

template <class T>
class SegmentedHeads : public ::testing::Test {};
TYPED_TEST_SUITE(SegmentedHeads, ElementTypes, ElementNames);

/// Rows of many lengths: empty ones, what lanes, warps and teams take, and some in parts.
Lengths mixed_lengths() {
  Lengths lengths = random_lengths(200, 0, 40);
  for (const std::int64_t length : {0, 0, 130, 260, 700, 3000, 1, 11000, 0}) lengths.push_back(length);
  return lengths;
}

template <class T>
void expect_heads_match(const Lengths& lengths, std::int64_t heads, HeadLayout x_layout, HeadLayout y_layout,
                        Recipe recipe = Recipe::uniform, const SegmentedOptions& options = {}) {
  for_each_segmented([&](auto op) {
    HeadsTrial<decltype(op)::value, T> trial(lengths, heads, x_layout, y_layout, recipe);
    ASSERT_TRUE(trial.run_correct(options)) << to_string(decltype(op)::value) << ", " << heads << " heads, layouts "
                                            << int(x_layout) << " and " << int(y_layout);
  });
}

TYPED_TEST(SegmentedHeads, OfAnyNumberMatchInEveryLayout) {
  for (const std::int64_t heads : {1, 2, 3, 4, 5, 8, 16, 33}) {
    for (const HeadLayout layout : output_layouts) {
      if (heads > 8 && layout != HeadLayout::right && layout != HeadLayout::left) continue;
      expect_heads_match<TypeParam>(mixed_lengths(), heads, layout, layout);
    }
  }
}

TYPED_TEST(SegmentedHeads, OfLayoutsThatDifferMatch) {
  for (const HeadLayout x_layout : output_layouts) {
    for (const HeadLayout y_layout : output_layouts) {
      expect_heads_match<TypeParam>(mixed_lengths(), 4, x_layout, y_layout);
    }
  }
}

TYPED_TEST(SegmentedHeads, ThatAreTheSameInputMatch) {
  for (const HeadLayout layout : output_layouts) {
    expect_heads_match<TypeParam>(mixed_lengths(), 4, HeadLayout::one_head, layout);
    expect_heads_match<TypeParam>(mixed_lengths(), 3, HeadLayout::one_head, layout);
  }
}

TYPED_TEST(SegmentedHeads, OfRowsOfEveryLengthUpTo200Match) {
  for (const std::int64_t length : {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 200}) {
    for (const HeadLayout layout : {HeadLayout::right, HeadLayout::left}) {
      expect_heads_match<TypeParam>(Lengths(9, length), 4, layout, layout);
    }
  }
}

TYPED_TEST(SegmentedHeads, OfRowsAroundWhatLanesWarpsTeamsAndChunksHoldMatch) {
  for (const std::int64_t center : {128, 256, 512, 2048, 4096, 10240}) {
    for (const std::int64_t length : {center - 1, center, center + 1}) {
      for (const HeadLayout layout : {HeadLayout::right, HeadLayout::left}) {
        expect_heads_match<TypeParam>(Lengths(3, length), 4, layout, layout);
      }
    }
  }
}

TYPED_TEST(SegmentedHeads, OfMeanLengthsThatWarpsTakeFlatMatch) {
  const std::int64_t rows = on_gpu ? 30000 : 500;
  for (const int most : {8, 24, 63, 200}) {
    for (const HeadLayout layout : {HeadLayout::right, HeadLayout::left, HeadLayout::padded_left}) {
      expect_heads_match<TypeParam>(random_lengths(rows, 0, most), 4, layout, layout);
    }
  }
}

TYPED_TEST(SegmentedHeads, WithEveryRecipeAndScaleMatch) {
  for (const Recipe recipe : all_recipes) {
    for (const double scale : {1.0, -0.7}) {
      for (const HeadLayout layout : {HeadLayout::right, HeadLayout::left}) {
        expect_heads_match<TypeParam>(mixed_lengths(), 4, layout, layout, recipe, {.scale = scale});
      }
    }
  }
}

TYPED_TEST(SegmentedHeads, InPlaceMatch) {
  for (const HeadLayout layout : output_layouts) {
    HeadsTrial<RowOperator::softmax, TypeParam> softmax(mixed_lengths(), 4, layout, layout, Recipe::wide);
    HeadsTrial<RowOperator::log_softmax, TypeParam> log_softmax(mixed_lengths(), 5, layout, layout, Recipe::wide);

    EXPECT_TRUE(softmax.run_in_place_correct()) << int(layout);
    EXPECT_TRUE(log_softmax.run_in_place_correct()) << int(layout);
  }
}

TYPED_TEST(SegmentedHeads, LeaveElementsInNoRowAlone) {
  for (const HeadLayout layout : output_layouts) {
    for (const std::int64_t before : {1, 5, 9000}) {
      HeadsTrial<RowOperator::softmax, TypeParam> softmax(mixed_lengths(), 4, layout, layout, Recipe::uniform, before);
      HeadsTrial<RowOperator::logsumexp, TypeParam> lse(mixed_lengths(), 3, layout, layout, Recipe::uniform, before);

      EXPECT_TRUE(softmax.run_correct()) << before;
      EXPECT_TRUE(lse.run_correct()) << before;
    }
  }
}

TYPED_TEST(SegmentedHeads, OfOneHeadHaveTheBitsOfRank1) {
  const Lengths lengths = mixed_lengths();
  for_each_segmented([&](auto op) {
    constexpr RowOperator Op = decltype(op)::value;
    HeadsTrial<Op, TypeParam> one(lengths, 1, HeadLayout::left, HeadLayout::left);
    SegmentedTrial<Op, TypeParam> rank1(lengths);
    ASSERT_TRUE(one.run_correct());
    ASSERT_TRUE(rank1.run_correct());

    EXPECT_TRUE(std::equal(one.y().host(), one.y().host() + one.y().count(), rank1.y().host(), same_bits<TypeParam>));
  });
}

TYPED_TEST(SegmentedHeads, OfEqualCallsHaveEqualBits) {
  for (const HeadLayout layout : output_layouts) {
    HeadsTrial<RowOperator::softmax, TypeParam> trial(mixed_lengths(), 4, layout, layout);
    ASSERT_TRUE(trial.run_correct());
    const std::vector<TypeParam> first(trial.y().host(), trial.y().host() + trial.y().count());

    ASSERT_TRUE(trial.run_correct());

    EXPECT_TRUE(std::equal(first.begin(), first.end(), trial.y().host(), same_bits<TypeParam>)) << int(layout);
  }
}

/// A NaN, an infinity and a row of only -inf in single heads.
TYPED_TEST(SegmentedHeads, KeepNumbersThatAreNoneToThemselves) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const HeadLayout layout : {HeadLayout::right, HeadLayout::left}) {
    for (const MaskedRowPolicy policy : {MaskedRowPolicy::nan, MaskedRowPolicy::zero}) {
      HeadsTrial<RowOperator::softmax, TypeParam> trial(random_lengths(400, 1, 60), 4, layout, layout);
      trial.for_each_row([&](std::int64_t row, std::int64_t head, std::int64_t begin, std::int64_t length) {
        if (row % 10 != head) return;
        for (std::int64_t i = begin; i < begin + length; ++i) {
          if (head < 3 && i != begin + length / 2) continue;
          const float value                                    = head == 0 ? nan : (head == 1 ? inf : -inf);
          trial.x().host()[trial.at(trial.x_place(), i, head)] = static_cast<TypeParam>(value);
        }
      });
      trial.x().upload();

      EXPECT_TRUE(trial.run_correct({.masked_row = policy}));
    }
  }
}

TYPED_TEST(SegmentedHeads, HaveGradientsThatMatchInEveryLayout) {
  for_each_segmented_gradient([&](auto op) {
    for (const std::int64_t heads : {1, 2, 3, 4, 8, 33}) {
      for (const HeadLayout layout : output_layouts) {
        if (heads > 8 && layout != HeadLayout::right && layout != HeadLayout::left) continue;
        HeadsGradientTrial<decltype(op)::value, TypeParam> trial(mixed_lengths(), heads, layout, layout, layout);
        ASSERT_TRUE(trial.run_correct()) << to_string(decltype(op)::value) << ", " << heads << " heads";
      }
    }
  });
}

TYPED_TEST(SegmentedHeads, HaveGradientsThatMatchWhereLayoutsDiffer) {
  for_each_segmented_gradient([&](auto op) {
    for (const HeadLayout layout : output_layouts) {
      HeadsGradientTrial<decltype(op)::value, TypeParam> right_first(mixed_lengths(), 4, HeadLayout::right, layout,
                                                                     HeadLayout::left, -0.5);
      HeadsGradientTrial<decltype(op)::value, TypeParam> left_first(mixed_lengths(), 4, layout, HeadLayout::left,
                                                                    HeadLayout::right, 3);

      EXPECT_TRUE(right_first.run_correct()) << int(layout);
      EXPECT_TRUE(left_first.run_correct()) << int(layout);
    }
  });
}

TYPED_TEST(SegmentedHeads, HaveGradientsThatMatchOverTheirInputs) {
  for_each_segmented_gradient([&](auto op) {
    for (const HeadLayout layout : output_layouts) {
      for (const Output output : {Output::over_x, Output::over_dy}) {
        HeadsGradientTrial<decltype(op)::value, TypeParam> trial(mixed_lengths(), 4, layout, layout, layout);

        EXPECT_TRUE(trial.run_correct(output)) << int(layout);
      }
    }
  });
}

TYPED_TEST(SegmentedHeads, OfEmptyRowsHaveALogSumExpOfMinusInfinity) {
  for (const HeadLayout layout : output_layouts) {
    HeadsTrial<RowOperator::logsumexp, TypeParam> none(Lengths(500, 0), 4, HeadLayout::right, layout);
    HeadsTrial<RowOperator::logsumexp, TypeParam> some({0, 3, 0}, 3, HeadLayout::left, layout);

    EXPECT_TRUE(none.run_correct());
    EXPECT_TRUE(some.run_correct());
  }
}

TYPED_TEST(SegmentedHeads, ThatAreNoneLaunchNothing) {
  HeadsTrial<RowOperator::softmax, TypeParam> no_heads({5, 6}, 0), no_values({0, 0}, 4), no_rows({}, 4);
  HeadsTrial<RowOperator::logsumexp, TypeParam> no_lse({5, 6}, 0);

  EXPECT_TRUE(kernels_of([&] { no_heads.call(); }).empty());
  EXPECT_TRUE(kernels_of([&] { no_values.call(); }).empty());
  EXPECT_TRUE(kernels_of([&] { no_rows.call(); }).empty());
  EXPECT_TRUE(kernels_of([&] { no_lse.call(); }).empty());
}

TEST(SegmentedHeadsCalls, TakeAsManyKernelsAsOneHead) {
  for (const Lengths& lengths : {Lengths{5, 0, 40000, 31}, Lengths{5, 0, 700, 31}}) {
    const HeadsTrial<RowOperator::softmax, float> one(lengths, 1, HeadLayout::left, HeadLayout::left);
    const std::size_t kernels = kernels_of([&] { one.call(); }).size();
    for (const HeadLayout layout : output_layouts) {
      const HeadsTrial<RowOperator::softmax, float> four(lengths, 4, layout, layout);

      EXPECT_EQ(kernels_of([&] { four.call(); }).size(), kernels) << int(layout);
    }
  }
}

TEST(SegmentedHeadsCalls, OfTwoTypesMatch) {
  HeadsTrial<RowOperator::softmax, float, double> widened(mixed_lengths(), 4);
  HeadsTrial<RowOperator::log_softmax, double, float> narrowed(mixed_lengths(), 4, HeadLayout::left, HeadLayout::left);

  EXPECT_TRUE(widened.run_correct());
  EXPECT_TRUE(narrowed.run_correct());
}

/// All five functions with Views of rank 2 of one layout, on the default instance.
template <class Layout>
void five_calls_write_all() {
  const auto offsets = offsets_of({5, 0, 600});
  const Kokkos::View<float**, Layout, Memory> x("x", 605, 3), y("y", 605, 3), dx("dx", 605, 3);
  const Kokkos::View<float**, Layout, Memory> lse("lse", 3, 3);
  Kokkos::deep_copy(x, 0.5f);
  const auto is_everywhere = [](const auto& view, float value) {
    const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), view);
    for (std::size_t i = 0; i < host.extent(0); ++i) {
      for (std::size_t h = 0; h < host.extent(1); ++h) {
        if (!(std::abs(host(i, h) - (i < 5 ? value : value * 5 / 600)) <= 1e-6f)) return false;
      }
    }
    return true;
  };

  KokkosNN::segmented_softmax(x, offsets, y);
  EXPECT_TRUE(is_everywhere(y, 0.2f));
  KokkosNN::segmented_softmax_backward(y, x, offsets, dx);
  EXPECT_TRUE(is_everywhere(dx, 0));
  KokkosNN::segmented_log_softmax(x, offsets, y);
  KokkosNN::segmented_log_softmax_backward(y, x, offsets, dx);
  EXPECT_TRUE(is_everywhere(dx, 0));
  KokkosNN::segmented_logsumexp(x, offsets, lse);
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), lse);
  for (int h = 0; h < 3; ++h) {
    EXPECT_NEAR(host(0, h), 0.5 + std::log(5.0), 1e-6);
    EXPECT_EQ(host(1, h), -std::numeric_limits<float>::infinity());
    EXPECT_NEAR(host(2, h), 0.5 + std::log(600.0), 1e-6);
  }
}

TEST(SegmentedHeadsCalls, TakeLayoutRightAndLeftOnTheDefaultInstance) {
  five_calls_write_all<Kokkos::LayoutRight>();
  five_calls_write_all<Kokkos::LayoutLeft>();
}

#ifdef KOKKOS_ENABLE_OPENMP
TEST(SegmentedHeadsBits, DoNotDependOnTheNumberOfThreads) {
  Lengths lengths      = random_lengths(3000, 0, 40);
  lengths[100]         = 80000;
  using Host           = Kokkos::View<float**, Kokkos::LayoutRight, Kokkos::HostSpace>;
  const std::int64_t n = total(lengths);
  const Kokkos::View<std::int64_t*, Kokkos::HostSpace> offsets("offsets", lengths.size() + 1);
  for (std::size_t row = 0; row < lengths.size(); ++row) offsets(row + 1) = offsets(row) + lengths[row];
  const Host x("x", n, 4), alone("alone", n, 4);
  fill(x.data(), right({1, 4 * n}), 1, Recipe::wide);
  KokkosNN::segmented_softmax(Kokkos::OpenMP(1), x, offsets, alone);
  for (const int threads : {2, 3}) {
    const Host y("y", n, 4);
    const Kokkos::OpenMP exec(threads);

    KokkosNN::segmented_softmax(exec, x, offsets, y);
    exec.fence();

    EXPECT_TRUE(std::equal(y.data(), y.data() + 4 * n, alone.data(), same_bits<float>)) << threads;
  }
}
#endif

// --- how a GPU takes them ---

HeadArrangement arrangement_of(RowOperator op, HeadLayout x, HeadLayout y, std::int64_t heads) {
  const auto tensor = [&](HeadLayout layout, std::int64_t elements) {
    const Placement place = place_of_heads(layout, elements, heads);
    KokkosNN::Impl::Tensor t;
    t.rank = 2;
    std::copy_n(place.extents.begin(), 2, t.extent);
    std::copy_n(place.strides.begin(), 2, t.stride);
    return t;
  };
  KokkosNN::Impl::SegmentedTensors tensors;
  const std::int64_t rows   = 10;
  tensors.x                 = tensor(x, 100);
  tensors.y                 = tensor(y, op == RowOperator::logsumexp ? rows : 100);
  tensors.dy                = tensors.x;
  tensors.offsets.rank      = 1;
  tensors.offsets.extent[0] = rows + 1;
  tensors.offsets.stride[0] = 1;
  return KokkosNN::Impl::arrangement_of(op, tensors);
}

TEST(SegmentedHeadArrangements, AreTheFastestThatTheStridesAllow) {
  using L            = HeadLayout;
  const auto softmax = [](L x, L y, std::int64_t heads) { return arrangement_of(RowOperator::softmax, x, y, heads); };
  EXPECT_EQ(softmax(L::left, L::left, 1), HeadArrangement::one);
  EXPECT_EQ(softmax(L::right, L::right, 1), HeadArrangement::one);
  EXPECT_EQ(softmax(L::padded_right, L::padded_right, 1), HeadArrangement::heads_of_rows);
  EXPECT_EQ(softmax(L::left, L::left, 7), HeadArrangement::apart);
  EXPECT_EQ(softmax(L::padded_left, L::padded_left, 4), HeadArrangement::apart);
  EXPECT_EQ(softmax(L::padded_left, L::left, 4), HeadArrangement::heads_of_rows);
  EXPECT_EQ(softmax(L::right, L::right, 4), HeadArrangement::side_by_side);
  EXPECT_EQ(softmax(L::right, L::padded_right, 4), HeadArrangement::rows_of_heads);
  EXPECT_EQ(softmax(L::right, L::right, 5), HeadArrangement::rows_of_heads);
  EXPECT_EQ(softmax(L::right, L::left, 4), HeadArrangement::rows_of_heads);
  EXPECT_EQ(softmax(L::one_head, L::left, 4), HeadArrangement::rows_of_heads);
}

TEST(SegmentedHeadArrangements, OfALogSumExpMustGoWithItsPlace) {
  using L        = HeadLayout;
  const auto lse = [](L x, L y) { return arrangement_of(RowOperator::logsumexp, x, y, 4); };
  EXPECT_EQ(lse(L::left, L::left), HeadArrangement::apart);
  EXPECT_EQ(lse(L::left, L::right), HeadArrangement::heads_of_rows);
  EXPECT_EQ(lse(L::left, L::padded_left), HeadArrangement::heads_of_rows);
  EXPECT_EQ(lse(L::right, L::left), HeadArrangement::side_by_side);
}

TEST(SegmentedHeadPlans, DealAsManySharesAsAllHeadsHave) {
  KokkosNN::Impl::SegmentedProblem problem;
  problem.rows     = 1 << 18;
  problem.elements = problem.rows * 32;
  problem.heads    = 4;
  const auto plan  = make_segmented_plan(problem, h200());

  EXPECT_EQ(plan.rows_of_warp, 2 * 28) << "as rank 1 of four times as many rows";
  EXPECT_EQ(plan.flat_teams, ((1 << 18) + 55) / 56 * 4 / 4) << "no share has rows of two heads";
}

}  // namespace KokkosNNTest
