// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/soft_cross_entropy.hpp"
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
namespace {

constexpr RowOperator alone = RowOperator::soft_cross_entropy;
constexpr RowOperator both  = RowOperator::soft_cross_entropy_with_gradient;

template <class T>
class SoftCrossEntropy : public ::testing::Test {};
TYPED_TEST_SUITE(SoftCrossEntropy, ElementTypes, ElementNames);

TYPED_TEST(SoftCrossEntropy, WithEveryOptionReductionAndWeightsMatchesTheReference) {
  for (const Reduction reduction : {Reduction::none, Reduction::mean, Reduction::sum}) {
    for (const double smoothing : {0.0, 0.125, 1.0}) {
      for (const bool is_weighted : {false, true}) {
        const SoftCrossEntropyOptions options{
            .reduction = reduction, .label_smoothing = smoothing, .gradient_scale = -2};
        SoftLossTrial<alone, TypeParam> loss(37, 173, options, is_weighted);
        SoftLossTrial<both, TypeParam> gradient(37, 173, options, is_weighted);

        EXPECT_TRUE(loss.run_correct()) << int(reduction) << ", smoothing " << smoothing << ", " << is_weighted;
        EXPECT_TRUE(gradient.run_correct()) << int(reduction) << ", smoothing " << smoothing << ", " << is_weighted;
      }
    }
  }
}

TYPED_TEST(SoftCrossEntropy, OfAnyLayoutAxisAndWidthMatches) {
  const std::vector<std::int64_t> extents{5, 34, 9};
  for (int axis = 0; axis < 3; ++axis) {
    SoftLossTrial<both, TypeParam, 3> dense(right(extents), right(extents), axis);
    SoftLossTrial<alone, TypeParam, 3> turned({extents, {1, 5, 170}}, right(extents), axis);
    SoftLossTrial<both, TypeParam, 3> far({extents, {620, 18, 2}}, {extents, {1, 5, 170}}, axis);
    EXPECT_TRUE(dense.run_correct()) << axis;
    EXPECT_TRUE(turned.run_correct()) << axis;
    EXPECT_TRUE(far.run_correct()) << axis;
  }
  for (const std::int64_t cols : {1, 2, 3, 17, 64, 100, 1000, 4097, 32003}) {
    SoftLossTrial<alone, TypeParam> loss(5, cols);
    SoftLossTrial<both, TypeParam> gradient(5, cols, {}, false, Recipe::one_dominant);
    EXPECT_TRUE(loss.run_correct()) << cols;
    EXPECT_TRUE(gradient.run_correct()) << cols;
  }
}

TYPED_TEST(SoftCrossEntropy, OnEveryStrategyTakesThePathAndMatches) {
  for (const RowStrategy strategy :
       strategies_with_kernels(both, {RowStrategy::vector_lanes, RowStrategy::team_scratch, RowStrategy::team_registers,
                                      RowStrategy::team_online, RowStrategy::split_row})) {
    int served = 0;
    for (const std::int64_t cols : {1, 5, 33, 128, 1000, 4097, 16384}) {
      SoftLossTrial<both, TypeParam> trial(7, cols, {.plan = {.strategy = strategy}});
      const std::string want =
          std::string("KokkosNN::soft_cross_entropy_with_gradient[") + KokkosNN::to_string(strategy);
      try {
        bool is_taken = false;
        for (const std::string& kernel : kernels_of([&] { trial.run(); })) is_taken |= kernel.rfind(want, 0) == 0;
        ASSERT_TRUE(is_taken) << want << ", " << cols;
        ASSERT_TRUE(trial.run_correct()) << want << ", " << cols;
        ++served;
      } catch (const std::invalid_argument&) {
        continue;  // too wide for this strategy
      }
    }
    EXPECT_GE(served, 3) << KokkosNN::to_string(strategy);
  }
}

TEST(SoftCrossEntropyValues, OfSpecialLogitsAreAsDocumented) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  SoftLossTrial<both, float> trial(6, 40, {.reduction = Reduction::none});
  float* const x = trial.logits().host();
  float* const q = trial.targets().host();
  x[0 * 40 + 3]  = nan;
  x[1 * 40 + 3]  = inf;
  for (int c = 0; c < 40; ++c) x[2 * 40 + c] = -inf;
  x[3 * 40 + 7] = -inf;
  q[3 * 40 + 7] = 0;
  x[4 * 40 + 7] = -inf;
  q[4 * 40 + 7] = 0.5f;
  trial.upload();

  trial.run();

  const float* const loss = trial.loss().host();
  const float* const lse  = trial.lse().host();
  for (int row = 0; row < 3; ++row) EXPECT_TRUE(std::isnan(loss[row])) << row;
  for (int c = 0; c < 3 * 40; ++c) EXPECT_TRUE(std::isnan(trial.dlogits().host()[c])) << c;
  EXPECT_TRUE(std::isnan(lse[0]));
  EXPECT_EQ(lse[1], inf);
  EXPECT_EQ(lse[2], -inf);
  EXPECT_TRUE(std::isfinite(loss[3])) << loss[3];
  EXPECT_EQ(trial.dlogits().host()[3 * 40 + 7], 0);
  EXPECT_EQ(loss[4], inf);
  EXPECT_TRUE(std::isfinite(loss[5]));
}

TEST(SoftCrossEntropyValues, OfNoRowsAreThatOfAnEmptySum) {
  SoftLossTrial<alone, float> mean(0, 40), sum(0, 40, {.reduction = Reduction::sum});
  mean.run();
  sum.run();
  EXPECT_TRUE(std::isnan(mean.loss().host()[0]));
  EXPECT_EQ(sum.loss().host()[0], 0);
}

TEST(SoftCrossEntropyValues, OfLabelsAsTargetsAreThoseOfTheLabels) {
  SoftLossTrial<alone, double> soft(9, 33, {.label_smoothing = 0.1});
  LossTrial<RowOperator::cross_entropy, double> hard(9, 33, {.ignore_index = -1000, .label_smoothing = 0.1});
  for (int row = 0; row < 9; ++row) {
    hard.label(row) = row;
    for (int c = 0; c < 33; ++c) soft.targets().host()[row * 33 + c] = c == row;
  }
  soft.upload();
  hard.upload();
  soft.run();
  hard.run();
  EXPECT_NEAR(soft.loss().host()[0], hard.loss().host()[0], 1e-14);
}

TEST(SoftCrossEntropyErrors, NameWhatIsWrong) {
  const Kokkos::View<float**, Memory> x("x", 3, 7), few("few", 3, 6), none("none", 3, 0);
  const Kokkos::View<float, Memory> loss("loss");
  const auto complaint = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_EQ(complaint([&] { KokkosNN::soft_cross_entropy(Exec(), x, few, loss); }),
            "KokkosNN::soft_cross_entropy: logits and targets must have the same extents, but logits is (3, 7) and "
            "targets is (3, 6)");
  EXPECT_EQ(complaint([&] { KokkosNN::soft_cross_entropy(Exec(), none, none, loss); }),
            "KokkosNN::soft_cross_entropy: logits have no classes");
  EXPECT_EQ(complaint([&] { KokkosNN::soft_cross_entropy(Exec(), x, x, loss, {.label_smoothing = 2}); }),
            "KokkosNN::soft_cross_entropy: label_smoothing must be within 0 to 1, but is 2");
  EXPECT_EQ(complaint([&] { KokkosNN::soft_cross_entropy(Exec(), x, x, loss, {.reduction = Reduction::none}); }),
            "KokkosNN::soft_cross_entropy: loss must have one axis less than logits with Reduction::none, but has rank "
            "0 and logits rank 2");
}

}  // namespace
}  // namespace KokkosNNTest
