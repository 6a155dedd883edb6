// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/cross_entropy.hpp"
#include "support/large.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

namespace KokkosNNTest {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

constexpr std::array all_reductions{Reduction::none, Reduction::mean, Reduction::sum};

/// Every option apart, and all at once.
std::vector<CrossEntropyOptions> many_options() {
  return {{},
          {.label_smoothing = 0.1},
          {.z_loss = 1e-2},
          {.z_loss = 1e-2, .weighted_z_loss = false},
          {.softcap = 3},
          {.label_smoothing = 1},
          {.ignore_index = 5, .label_smoothing = 0.2, .z_loss = 1e-3, .softcap = 5, .gradient_scale = 1}};
}

template <class T>
class CrossEntropy : public ::testing::Test {};
TYPED_TEST_SUITE(CrossEntropy, ElementTypes, ElementNames);

TYPED_TEST(CrossEntropy, WithEveryOptionReductionAndWeightsMatchesTheReference) {
  for_each_cross_entropy([](auto op) {
    constexpr RowOperator Op = decltype(op)::value;
    for (CrossEntropyOptions options : many_options()) {
      for (const Reduction reduction : all_reductions) {
        for (const bool is_weighted : {false, true}) {
          options.reduction = reduction;
          LossTrial<Op, TypeParam> trial(37, 173, options, is_weighted);

          EXPECT_TRUE(trial.run_correct())
              << KokkosNN::to_string(Op) << ", smoothing " << options.label_smoothing << ", z-loss " << options.z_loss
              << ", cap " << options.softcap << ", reduction " << int(reduction) << ", weights " << is_weighted;
        }
      }
    }
  });
}

TYPED_TEST(CrossEntropy, OfEveryWidthUpTo140Matches) {
  for_each_cross_entropy([](auto op) {
    constexpr RowOperator Op = decltype(op)::value;
    for (std::int64_t cols = 1; cols <= 140; ++cols) {
      LossTrial<Op, TypeParam> plain(9, cols), smoothed(9, cols, {.label_smoothing = 0.1});

      ASSERT_TRUE(plain.run_correct()) << KokkosNN::to_string(Op) << ", " << cols << " classes";
      ASSERT_TRUE(smoothed.run_correct()) << KokkosNN::to_string(Op) << ", " << cols << " classes, smoothed";
    }
  });
}

TYPED_TEST(CrossEntropy, OfOddVocabulariesMatches) {
  for_each_cross_entropy([](auto op) {
    constexpr RowOperator Op = decltype(op)::value;
    for (const std::int64_t cols : {4097, 32003, 50257, 128257}) {
      LossTrial<Op, TypeParam> plain(5, cols), extended(5, cols, {.label_smoothing = 0.1, .softcap = 30}, true);

      EXPECT_TRUE(plain.run_correct()) << KokkosNN::to_string(Op) << ", " << cols;
      EXPECT_TRUE(extended.run_correct()) << KokkosNN::to_string(Op) << ", " << cols << ", with all options";
    }
  });
}

TYPED_TEST(CrossEntropy, OnEveryStrategyTakesThePathAndMatches) {
  for_each_cross_entropy([](auto op) {
    constexpr RowOperator Op = decltype(op)::value;
    for (const RowStrategy strategy : loss_strategies_of(Op)) {
      int served = 0;
      for (const std::int64_t cols : {1, 2, 5, 16, 31, 33, 64, 100, 128, 257, 1000, 1024, 4097, 16384, 50257}) {
        LossTrial<Op, TypeParam> plain(7, cols), extended(7, cols, {.label_smoothing = 0.1, .softcap = 30}, true);
        try {
          ASSERT_TRUE(plain.takes_the_path(strategy)) << cols << " classes";
        } catch (const std::invalid_argument&) {
          continue;  // too wide for this strategy
        }
        ++served;

        ASSERT_TRUE(extended.takes_the_path(strategy)) << cols << " classes, with all options";
      }
      EXPECT_GE(served, 6) << KokkosNN::to_string(Op) << " " << KokkosNN::to_string(strategy);
    }
  });
}

TYPED_TEST(CrossEntropy, WrittenOverTheLogitsMatches) {
  for_each_cross_entropy([](auto op) {
    constexpr RowOperator Op = decltype(op)::value;
    if constexpr (Op != RowOperator::cross_entropy) {
      for (const RowStrategy strategy : loss_strategies_of(Op)) {
        for (const double smoothing : {0.0, 0.1}) {
          for (const bool is_short : {true, false}) {
            if (!is_short && (strategy == RowStrategy::vector_lanes || strategy == RowStrategy::team_registers))
              continue;
            LossTrial<Op, TypeParam> trial(23, is_short ? 60 : 5001, {.label_smoothing = smoothing});

            EXPECT_TRUE(trial.takes_the_path(strategy, true)) << "smoothing " << smoothing;
          }
        }
      }
    }
  });
}

TYPED_TEST(CrossEntropy, OfLogitsInAnyLayoutMatches) {
  const std::vector<std::int64_t> extents{5, 7, 37};
  const Placement transposed{{5, 7, 37}, {37, 5 * 37 + 3, 1}};
  const Placement reversed{{5, 7, 37}, {7 * 37, 37, -1}, 36};
  for_each_cross_entropy([&](auto op) {
    constexpr RowOperator Op = decltype(op)::value;
    for (const Placement& logits :
         {right(extents), left(extents), right(extents, 3), left(extents, 2), transposed, reversed}) {
      for (const Placement& dlogits : {right(extents, 1), left(extents)}) {
        LossTrial<Op, TypeParam, std::int32_t, 3> plain(logits, dlogits, {.reduction = Reduction::none}),
            mean(logits, dlogits), extended(logits, dlogits, {.label_smoothing = 0.2}, true);

        EXPECT_TRUE(plain.run_correct()) << KokkosNN::to_string(Op);
        EXPECT_TRUE(mean.run_correct()) << KokkosNN::to_string(Op) << ", mean";
        EXPECT_TRUE(extended.run_correct()) << KokkosNN::to_string(Op) << ", smoothed";
      }
    }
  });
}

TYPED_TEST(CrossEntropy, OffEveryAlignmentMatches) {
  for_each_cross_entropy([](auto op) {
    constexpr RowOperator Op = decltype(op)::value;
    for (const int misalignment : {1, 2, 3, 5}) {
      for (const std::int64_t cols : {64, 1001}) {
        const Placement place = right({9, cols}, misalignment);
        LossTrial<Op, TypeParam> trial(place, place, {}, false, Recipe::uniform, misalignment);

        EXPECT_TRUE(trial.run_correct()) << KokkosNN::to_string(Op) << ", off by " << misalignment;
        if constexpr (Op != RowOperator::cross_entropy) {
          EXPECT_TRUE(trial.run_correct(true)) << KokkosNN::to_string(Op) << " in place, off by " << misalignment;
        }
      }
    }
  });
}

TYPED_TEST(CrossEntropy, OfEveryRecipeMatches) {
  for_each_cross_entropy([](auto op) {
    constexpr RowOperator Op = decltype(op)::value;
    for (const Recipe recipe : all_recipes) {
      LossTrial<Op, TypeParam> trial(11, 333, {.reduction = Reduction::none}, false, recipe);

      EXPECT_TRUE(trial.run_correct()) << KokkosNN::to_string(Op) << ", " << to_string(recipe);
    }
  });
}

/// Where several threads or teams hold a row, each has exponentials relative to a maximum of its own.
TYPED_TEST(CrossEntropy, OfPartsWithMaximaOfTheirOwnMatchesOnEveryStrategy) {
  const int team = on_gpu ? 64 : 2;
  if (Exec().concurrency() < team) GTEST_SKIP() << "one thread holds all of a row";
  for_each_cross_entropy([&](auto op) {
    constexpr RowOperator Op = decltype(op)::value;
    for (const RowStrategy strategy : loss_strategies_of(Op)) {
      const bool in_lanes = strategy == RowStrategy::vector_lanes;
      for (const std::int64_t cols : {60, 400, 900}) {
        for (const double smoothing : {0.0, 0.1}) {
          CrossEntropyOptions options{.reduction = Reduction::none, .label_smoothing = smoothing};
          options.plan.strategy = strategy;
          if (!in_lanes) options.plan.team_size = team;
          if (in_lanes && cols > (on_gpu ? 400 : 60)) continue;
          if (strategy == RowStrategy::team_registers && !on_gpu) {
            if (cols > 60) continue;
            options.plan.packs_per_thread = sizeof(TypeParam) / 4;  // packs are of 128 bytes
          }
          for (const Recipe recipe : {Recipe::uniform, Recipe::ascending}) {
            LossTrial<Op, TypeParam> trial(40, cols, options, false, recipe);

            EXPECT_TRUE(trial.run_correct()) << KokkosNN::to_string(Op) << " " << KokkosNN::to_string(strategy) << ", "
                                             << cols << " classes, smoothing " << smoothing;
          }
        }
      }
    }
  });
}

/// A loss that is nothing but its rows' z-losses: what their log-sum-exps lack, a sum over rows has 929 times.
TYPED_TEST(CrossEntropy, OfOneClassIsItsZLoss) {
  for (const Reduction reduction : {Reduction::none, Reduction::mean, Reduction::sum}) {
    const CrossEntropyOptions options{.reduction = reduction, .z_loss = 1e-2, .softcap = 30};
    LossTrial<RowOperator::cross_entropy_with_gradient, TypeParam> trial(929, 1, options);

    EXPECT_TRUE(trial.run_correct());
  }
}

/// Row counts: so many that a GPU's team takes them in several turns, and so many that several teams do.
TYPED_TEST(CrossEntropy, OfManyRowsIsReducedInParts) {
  for_each_cross_entropy([](auto op) {
    constexpr RowOperator Op = decltype(op)::value;
    for (const std::int64_t rows : {20011, 50021}) {
      for (const Reduction reduction : {Reduction::mean, Reduction::sum}) {
        for (const bool is_weighted : {false, true}) {
          LossTrial<Op, TypeParam> trial(rows, 6, {.reduction = reduction}, is_weighted);

          EXPECT_TRUE(trial.run_correct()) << KokkosNN::to_string(Op) << ", " << rows << " rows";
        }
      }
    }
  });
}

template <class LabelType>
void matches_with_labels_of() {
  for_each_cross_entropy([](auto op) {
    constexpr RowOperator Op = decltype(op)::value;
    LossTrial<Op, float, LabelType> trial(19, 97, {.ignore_index = 42});

    EXPECT_TRUE(trial.run_correct()) << KokkosNN::to_string(Op) << ", labels of " << sizeof(LabelType) << " bytes";
  });
}

TEST(CrossEntropyLabels, MayBeOfAnyIntegralType) {
  matches_with_labels_of<std::int8_t>();
  matches_with_labels_of<std::int16_t>();
  matches_with_labels_of<std::int32_t>();
  matches_with_labels_of<std::int64_t>();
  matches_with_labels_of<std::uint8_t>();
  matches_with_labels_of<std::uint16_t>();
  matches_with_labels_of<std::uint32_t>();
  matches_with_labels_of<std::uint64_t>();
}

TEST(CrossEntropyLabels, OfUnsignedTypesAreNotTakenForNegativeOnes) {
  LossTrial<RowOperator::cross_entropy, float, std::uint8_t> trial(7, 256, {.ignore_index = -1});
  trial.label(0) = 255;
  trial.upload();

  for (int row = 0; row < 7; ++row) EXPECT_EQ(trial.label(row), row == 0 || row == 3 ? 255 : row * 31);
  trial.run();

  // -1 as a label of 8 bits is 255, a class and not the index to ignore.
  EXPECT_TRUE(trial.correct());
}

TEST(CrossEntropyLabels, BeyondTheRangeOfSignedNumbersAreNeitherIgnoredNorClasses) {
  constexpr auto lowest = std::numeric_limits<std::int64_t>::min();
  for_each_cross_entropy([](auto op) {
    constexpr RowOperator Op = decltype(op)::value;
    for (const std::int64_t ignored : {std::int64_t(-100), std::int64_t(-1), lowest, lowest + 1, std::int64_t(7)}) {
      for (const RowStrategy strategy : loss_strategies_of(Op)) {
        for (const Reduction reduction : {Reduction::none, Reduction::mean}) {
          LossTrial<Op, float, std::uint64_t> trial(
              8, 50, {.ignore_index = ignored, .reduction = reduction, .plan = {.strategy = strategy}});
          for (int row = 0; row < 8; ++row) trial.label(row) = row * 5;
          trial.label(2) = static_cast<std::uint64_t>(ignored);  // of another value, if that is negative
          trial.label(4) = std::uint64_t(1) << 63;
          trial.label(5) = ~std::uint64_t(0);
          trial.label(6) = 7;
          trial.upload();

          EXPECT_TRUE(trial.run_correct())
              << KokkosNN::to_string(Op) << ", ignoring " << ignored << ", " << KokkosNN::to_string(strategy);
          if (Op == RowOperator::cross_entropy_backward || reduction != Reduction::none) continue;
          EXPECT_EQ(trial.loss().host()[2] == 0, ignored == 7) << trial.loss().host()[2];
          EXPECT_TRUE(std::isnan(trial.loss().host()[5])) << trial.loss().host()[5];
        }
      }
    }
  });
}

template <class LabelType>
void refuses_minus_100() {
  LossTrial<RowOperator::cross_entropy, float, LabelType> trial(4, 50, {.check_labels = true});
  trial.label(3) = 1;
  trial.label(2) = static_cast<LabelType>(-100);
  trial.upload();
  try {
    trial.call();
    ADD_FAILURE() << "nothing was thrown for labels of " << sizeof(LabelType) << " bytes";
  } catch (const std::invalid_argument& e) {
    EXPECT_EQ(std::string(e.what()), "KokkosNN::cross_entropy: the label of row 2 is " +
                                         std::to_string(static_cast<LabelType>(-100)) +
                                         ", neither one of the 50 classes, 0 to 49, nor ignore_index -100");
  }
}

TEST(CrossEntropyLabels, OfUnsignedTypesThatHaveTheBitsOfTheIgnoredIndexAreRefusedWithTheirValue) {
  refuses_minus_100<std::uint8_t>();
  refuses_minus_100<std::uint16_t>();
  refuses_minus_100<std::uint32_t>();
  refuses_minus_100<std::uint64_t>();
}

TEST(CrossEntropyLabels, OutOfRangeGiveNanForTheirRowsAndReadNothing) {
  for_each_cross_entropy([](auto op) {
    constexpr RowOperator Op = decltype(op)::value;
    for (const RowStrategy strategy : loss_strategies_of(Op)) {
      for (const CrossEntropyOptions& base : {CrossEntropyOptions{}, CrossEntropyOptions{.label_smoothing = 0.1}}) {
        CrossEntropyOptions options = base;
        options.reduction           = Reduction::none;
        options.plan.strategy       = strategy;
        LossTrial<Op, float> trial(8, 50, options, true);
        trial.label(0) = -1;
        trial.label(1) = 50;
        trial.label(2) = std::int64_t(1) << 40;
        trial.label(4) = -(std::int64_t(1) << 62);
        trial.label(5) = std::numeric_limits<std::int64_t>::min();
        trial.upload();

        EXPECT_TRUE(trial.run_correct()) << KokkosNN::to_string(Op) << " " << KokkosNN::to_string(strategy);
      }
    }
  });
}

TEST(CrossEntropyLabels, OutOfRangeAreNoRowsOfAMean) {
  LossTrial<RowOperator::cross_entropy_with_gradient, float> trial(8, 50);
  trial.label(2) = 77;
  trial.upload();

  trial.run();

  EXPECT_TRUE(std::isnan(trial.loss().host()[0]));
  EXPECT_TRUE(trial.correct()) << "NaN in row 2 only, and the others' gradients over the number of the others";
}

TEST(CrossEntropyLabels, ThatAreIgnoredAreSoWithSmoothingWeightsAndZLoss) {
  for_each_cross_entropy([](auto op) {
    constexpr RowOperator Op = decltype(op)::value;
    for (const std::int64_t ignored : {-100, -1, 7, 1000000}) {  // 7 is a class
      for (const Reduction reduction : all_reductions) {
        LossTrial<Op, float> trial(
            21, 40, {.ignore_index = ignored, .reduction = reduction, .label_smoothing = 0.3, .z_loss = 0.1}, true);
        // Ignored rows may hold NaN and infinities.
        for (const int row : {3, 10}) trial.logits().host()[row * 40 + 5] = row == 3 ? nan : inf;
        trial.upload();
        trial.run();

        if (Op != RowOperator::cross_entropy) {
          for (int c = 0; c < 40; ++c) EXPECT_EQ(trial.dlogits().host()[3 * 40 + c], 0) << c;
        }
        EXPECT_TRUE(trial.correct()) << KokkosNN::to_string(Op) << ", ignoring " << ignored;
      }
    }
  });
}

TEST(CrossEntropyLabels, ThatAreAllIgnoredGiveAMeanOfNanASumOf0AndNoGradient) {
  for (const Reduction reduction : all_reductions) {
    LossTrial<RowOperator::cross_entropy_with_gradient, float> trial(6, 30, {.reduction = reduction});
    for (int row = 0; row < 6; ++row) trial.label(row) = -100;
    trial.upload();

    trial.run();

    for (int i = 0; i < (reduction == Reduction::none ? 6 : 1); ++i) {
      const float loss = trial.loss().host()[i];
      EXPECT_TRUE(reduction == Reduction::mean ? std::isnan(loss) : loss == 0) << loss;
    }
    for (int i = 0; i < 6 * 30; ++i) EXPECT_EQ(trial.dlogits().host()[i], 0);
  }
}

TEST(CrossEntropyLabels, AreCheckedOnRequestBeforeAnythingIsWritten) {
  for_each_cross_entropy([](auto op) {
    constexpr RowOperator Op = decltype(op)::value;
    LossTrial<Op, float> trial(30, 50, {.check_labels = true});
    EXPECT_TRUE(trial.run_correct());
    trial.label(17) = 50;
    trial.label(20) = -3;
    trial.upload();
    if (Op != RowOperator::cross_entropy_backward) trial.loss().poison_all();
    trial.dlogits().poison_all();

    try {
      trial.call();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::invalid_argument& e) {
      EXPECT_EQ(std::string(e.what()), std::string("KokkosNN::") + KokkosNN::to_string(Op) +
                                           ": the label of row 17 is 50, neither one of the 50 classes, 0 to 49, nor "
                                           "ignore_index -100");
    }
    trial.loss().download();
    trial.dlogits().download();
    EXPECT_TRUE(Op == RowOperator::cross_entropy_backward || trial.loss().untouched());
    EXPECT_TRUE(trial.dlogits().untouched());
  });
}

// --- against what PyTorch gives ---

/// torch.nn.functional.cross_entropy of logits [[1, 2, 3], [1, -1, 0], [0.5, 0.5, 2]] and labels [2, -100, 0], its
/// documentation's formulas evaluated by hand.
TEST(CrossEntropyValues, OfAFewRowsAreThoseOfPyTorch) {
  const double lse0 = 3.4076059644443806, lse2 = std::log(2 * std::exp(0.5) + std::exp(2.0));
  const double w[]   = {0.5, 2, 3};
  const auto loss_of = [&](CrossEntropyOptions options, bool is_weighted) {
    LossTrial<RowOperator::cross_entropy, double> trial(3, 3, options, is_weighted);
    const double x[] = {1, 2, 3, 1, -1, 0, 0.5, 0.5, 2};
    std::copy_n(x, 9, trial.logits().host());
    std::copy_n(w, 3, trial.weights().host());
    trial.label(0) = 2;
    trial.label(1) = -100;
    trial.label(2) = 0;
    trial.upload();
    trial.run();
    return trial.loss().host()[0];
  };

  EXPECT_NEAR(loss_of({}, false), ((lse0 - 3) + (lse2 - 0.5)) / 2, 1e-14);
  EXPECT_NEAR(loss_of({.reduction = Reduction::sum}, false), (lse0 - 3) + (lse2 - 0.5), 1e-14);
  // The mean's divisor is the weight of the labels that count: 3 + 0.5.
  EXPECT_NEAR(loss_of({}, true), (3 * (lse0 - 3) + 0.5 * (lse2 - 0.5)) / 3.5, 1e-14);
  const double smooth0 = 0.5 * (lse0 - 1) + 2 * (lse0 - 2) + 3 * (lse0 - 3);
  const double smooth2 = 0.5 * (lse2 - 0.5) + 2 * (lse2 - 0.5) + 3 * (lse2 - 2);
  const double nll     = 3 * (lse0 - 3) + 0.5 * (lse2 - 0.5);
  EXPECT_NEAR(loss_of({.label_smoothing = 0.3}, true), (0.7 * nll + 0.1 * (smooth0 + smooth2)) / 3.5, 1e-14);
  EXPECT_NEAR(loss_of({.reduction = Reduction::sum, .z_loss = 0.01}, false),
              (lse0 - 3) + (lse2 - 0.5) + 0.01 * (lse0 * lse0 + lse2 * lse2), 1e-14);
}

// --- values that are not numbers ---

/// One row's results on a strategy: the loss and the gradient.
struct RowResult {
  float loss;
  std::vector<float> gradient;
};

RowResult result_of(const std::vector<float>& first, std::int64_t label, CrossEntropyOptions options,
                    std::int64_t cols) {
  options.reduction = Reduction::none;
  LossTrial<RowOperator::cross_entropy_with_gradient, float> trial(1, cols, options);
  std::fill_n(trial.logits().host(), cols, -inf);
  std::copy(first.begin(), first.end(), trial.logits().host());
  trial.label(0) = label;
  trial.upload();
  trial.run();
  EXPECT_TRUE(trial.correct()) << "against the reference";
  return {trial.loss().host()[0], {trial.dlogits().host(), trial.dlogits().host() + cols}};
}

TEST(CrossEntropyValues, FollowIeeeArithmeticOnEveryStrategy) {
  for (const RowStrategy strategy : loss_strategies_of(RowOperator::cross_entropy_with_gradient)) {
    for (const std::int64_t cols : {5, 29}) {
      const CrossEntropyOptions options{.plan = {.strategy = strategy}};
      const auto masked = result_of({0, -inf, 0, -inf}, 2, options, cols);
      EXPECT_FLOAT_EQ(masked.loss, std::log(2.0f));
      EXPECT_EQ(masked.gradient[0], 0.5f);
      EXPECT_EQ(masked.gradient[1], 0);
      EXPECT_EQ(masked.gradient[2], -0.5f);
      EXPECT_EQ(result_of({0, -inf, 0}, 1, options, cols).loss, inf) << "the label itself is masked";
      for (const std::vector<float>& logits : {std::vector<float>{0, nan, 1}, {0, 1, inf}, {-inf, -inf, -inf}}) {
        const auto result = result_of(logits, 0, options, cols);
        EXPECT_TRUE(std::isnan(result.loss)) << logits[1] << " " << KokkosNN::to_string(strategy);
        for (const float dz : result.gradient) EXPECT_TRUE(std::isnan(dz)) << KokkosNN::to_string(strategy);
      }
    }
  }
}

TYPED_TEST(CrossEntropy, OfARowWithPlusInfinityHasThatAsLogSumExpUnlessANaNIsThereToo) {
  using T = TypeParam;
  for_each_cross_entropy([](auto op) {
    constexpr RowOperator Op = decltype(op)::value;
    if constexpr (Op != RowOperator::cross_entropy_backward) {
      for (const RowStrategy strategy : loss_strategies_of(Op)) {
        for (const double smoothing : {0.0, 0.1}) {
          for (const std::int64_t cols : {2, 5, 29, 60, 1000, 20000}) {
            const bool is_short = strategy == RowStrategy::vector_lanes || strategy == RowStrategy::team_registers;
            if (is_short && cols > 100) continue;
            LossTrial<Op, T> trial(
                4, cols, {.reduction = Reduction::none, .label_smoothing = smoothing, .plan = {.strategy = strategy}});
            T* const x      = trial.logits().host();
            x[0]            = T(inf);  // the label's
            x[2 * cols - 1] = T(inf);  // another class's, or with two classes the label's
            x[2 * cols]     = T(inf);
            x[3 * cols - 1] = T(nan);
            trial.label(3)  = 1;
            trial.upload();

            EXPECT_TRUE(trial.run_correct()) << KokkosNN::to_string(Op) << " " << KokkosNN::to_string(strategy) << ", "
                                             << cols << " classes, smoothing " << smoothing;
            for (int row = 0; row < 3; ++row) {
              EXPECT_TRUE(std::isnan(trial.loss().host()[row]));
              EXPECT_TRUE(row == 2 ? std::isnan(trial.lse().host()[row]) : trial.lse().host()[row] == inf)
                  << trial.lse().host()[row] << " of row " << row << ", " << cols << " classes";
              for (std::int64_t c = 0; Op != RowOperator::cross_entropy && c < cols; ++c) {
                ASSERT_TRUE(std::isnan(static_cast<double>(trial.dlogits().host()[row * cols + c]))) << c;
              }
            }
            EXPECT_TRUE(std::isfinite(trial.loss().host()[3]));
          }
        }
      }
    }
  });
}

TEST(CrossEntropyValues, OfASmallWeightAreFiniteWhereDifferencesOfLogitsAreNot) {
  for_each_cross_entropy([](auto op) {
    constexpr RowOperator Op = decltype(op)::value;
    if constexpr (Op != RowOperator::cross_entropy_backward) {
      LossTrial<Op, float> trial(1, 20, {.reduction = Reduction::none}, true);
      std::fill_n(trial.logits().host(), 20, 3e38f);
      trial.logits().host()[5]  = -3e38f;
      trial.weights().host()[5] = 0.25f;
      trial.label(0)            = 5;
      trial.upload();

      trial.run();

      EXPECT_FLOAT_EQ(trial.loss().host()[0], 1.5e38f);
    }
  });
}

TEST(CrossEntropyValues, UnderASoftCapDoNotOverflowAndMaskedLogitsStayMasked) {
  for (const RowStrategy strategy : loss_strategies_of(RowOperator::cross_entropy_with_gradient)) {
    // |x / cap| up to far more than 88, where exp ends, and infinite.
    for (const float far : {100.0f, 1e4f, 1e30f, std::numeric_limits<float>::max(), inf}) {
      const auto result = result_of({far, -far, 0, 1}, 0, {.softcap = 1, .plan = {.strategy = strategy}}, 29);
      const double low  = far == inf ? 0 : std::exp(-1.0);
      const double sum  = std::exp(1.0) + low + 1 + std::exp(std::tanh(1.0));

      EXPECT_NEAR(result.loss, std::log(sum) - 1, 1e-6) << far;
      EXPECT_EQ(result.gradient[0], 0) << "tanh is flat there";
      EXPECT_EQ(result.gradient[1], 0);
      EXPECT_NEAR(result.gradient[2], 1 / sum, 1e-6);
      EXPECT_EQ(result.gradient[28], 0) << "masked";
    }
  }
}

TEST(CrossEntropyValues, OfMaskedLogitsWithSmoothedLabelsAreInfinite) {
  EXPECT_EQ(result_of({0, -inf, 0}, 0, {.label_smoothing = 0.1}, 3).loss, inf);
}

TEST(CrossEntropyBackward, OfAnLseThatIsNotFiniteIsNan) {
  LossTrial<RowOperator::cross_entropy_backward, float> trial(5, 20, {.reduction = Reduction::none});
  trial.lse().host()[0] = nan;
  trial.lse().host()[1] = inf;
  trial.lse().host()[2] = -inf;
  trial.lse().upload();

  trial.run();

  for (int i = 0; i < 3 * 20; ++i) EXPECT_TRUE(std::isnan(trial.dlogits().host()[i])) << i;
  for (int i = 3 * 20; i < 5 * 20; ++i) EXPECT_TRUE(std::isfinite(trial.dlogits().host()[i])) << i;
}

// --- gradients against differences of the loss ---

TEST(CrossEntropyGradients, AreThoseOfCentralDifferencesOfTheForwardCall) {
  constexpr std::int64_t rows = 4, cols = 7;
  constexpr double step = 1e-5;
  for (CrossEntropyOptions options : many_options()) {
    for (const Reduction reduction : {Reduction::mean, Reduction::sum}) {
      for (const bool is_weighted : {false, true}) {
        options.reduction = reduction;
        LossTrial<RowOperator::cross_entropy_with_gradient, double> gradient(rows, cols, options, is_weighted);
        gradient.run();
        LossTrial<RowOperator::cross_entropy, double> forward(rows, cols, options, is_weighted);
        for (std::int64_t i = 0; i < rows * cols; ++i) {
          const auto loss_at = [&](double by) {
            forward.logits().host()[i] += by;
            forward.logits().upload();
            forward.run();
            return forward.loss().host()[0];
          };
          const double above = loss_at(step), below = loss_at(-2 * step);
          loss_at(step);

          EXPECT_NEAR(gradient.dlogits().host()[i], (above - below) / (2 * step), 1e-8)
              << i << ", smoothing " << options.label_smoothing << ", cap " << options.softcap;
        }
      }
    }
  }
}

TEST(CrossEntropyGradients, AreScaledAsAsked) {
  for (const Reduction reduction : all_reductions) {
    LossTrial<RowOperator::cross_entropy_with_gradient, float> trial(9, 40,
                                                                     {.reduction = reduction, .gradient_scale = -1024});

    EXPECT_TRUE(trial.run_correct());
  }
}

TEST(CrossEntropyGradients, MayBeOfAnotherTypeThanTheLogits) {
  LossTrial<RowOperator::cross_entropy_with_gradient, BHalf, std::int64_t, 2, float> wide(9, 700);
  LossTrial<RowOperator::cross_entropy_with_gradient, float, std::int64_t, 2, BHalf> narrow(9, 700);

  EXPECT_TRUE(wide.run_correct());
  EXPECT_TRUE(narrow.run_correct());
}

// --- the axis of the classes ---

/// (N, C, D) memory as it is, and as (N, D, C).
template <class T>
struct ClassesInTheMiddle {
  static constexpr std::int64_t n = 3, classes = 37, d = 5;
  Placement middle{right({n, classes, d})};
  Placement last{{n, d, classes}, {classes * d, 1, d}};
  Buffer<T> data{n * classes * d};

  auto in_the_middle() const { return strided_view<3>(data.device(), middle); }
  auto at_the_end() const { return strided_view<3>(data.device(), last); }
};

/// The bits of a buffer on the device.
template <class T>
std::vector<T> bits_of(Buffer<T>& buffer) {
  Exec().fence();
  buffer.download();
  return {buffer.host(), buffer.host() + buffer.count()};
}

TYPED_TEST(CrossEntropy, AlongAnyAxisIsThatOfAViewWhoseLastAxisItIs) {
  using Middle = ClassesInTheMiddle<TypeParam>;
  using A      = KokkosNN::accumulator_t<TypeParam>;
  Middle logits, dlogits;
  fill(logits.data.host(), logits.middle, 1, Recipe::uniform);
  logits.data.upload();
  Kokkos::View<int**, Kokkos::LayoutRight, Memory> labels("labels", Middle::n, Middle::d);
  const auto host_labels = Kokkos::create_mirror(labels);
  for (int i = 0; i < 15; ++i) host_labels.data()[i] = i == 4 ? -100 : i * 7 % static_cast<int>(Middle::classes);
  Kokkos::deep_copy(labels, host_labels);
  Buffer<A> losses(Middle::n * Middle::d), lses(Middle::n * Middle::d);
  const auto loss = strided_view<2>(losses.device(), right({Middle::n, Middle::d}));
  const auto lse  = strided_view<2>(lses.device(), right({Middle::n, Middle::d}));
  const auto run  = [&](const auto& x, const auto& dx, int axis) {
    const CrossEntropyOptions options{.axis = axis, .reduction = Reduction::none, .label_smoothing = 0.1};
    std::vector<A> results;
    const auto keep          = [&](const auto& more) { results.insert(results.end(), more.begin(), more.end()); };
    const auto keep_gradient = [&] {
      for (const auto value : bits_of(dlogits.data)) results.push_back(static_cast<A>(static_cast<double>(value)));
      dlogits.data.poison_all();
    };
    KokkosNN::cross_entropy(Exec(), x, labels, loss, options, lse);
    keep(bits_of(losses));
    keep(bits_of(lses));
    KokkosNN::cross_entropy_backward(Exec(), x, labels, lse, loss, dx, options);
    keep_gradient();
    KokkosNN::cross_entropy_with_gradient(Exec(), x, labels, loss, dx, options);
    keep_gradient();
    return results;
  };

  const std::vector<A> expected = run(logits.at_the_end(), dlogits.at_the_end(), -1);

  for (const int axis : {1, -2}) {
    const std::vector<A> results = run(logits.in_the_middle(), dlogits.in_the_middle(), axis);
    ASSERT_EQ(results.size(), expected.size());
    for (std::size_t i = 0; i < results.size(); ++i) EXPECT_EQ(results[i], expected[i]) << i;
  }
}

TEST(CrossEntropyAxis, OutOfRangeIsAnError) {
  LossTrial<RowOperator::cross_entropy, float> trial(3, 7, {.axis = 2});
  std::string complaint;
  try {
    trial.call();
  } catch (const std::invalid_argument& error) {
    complaint = error.what();
  }
  EXPECT_EQ(complaint.rfind("KokkosNN::cross_entropy: axis", 0), 0u) << complaint;
}

// --- far apart ---

TEST(CrossEntropyLarge, RowsMoreThan2To31ElementsApartMatch) {
  // Rows that lie in packs as those side by side do, so that sums are the same to the last bit.
  constexpr std::int64_t apart = (std::int64_t(1) << 31) + 7;
  const Placement place{{2, 7}, {apart, 1}};
  const std::int64_t span = place.span();
  if (on_gpu && free_gpu_memory() < static_cast<std::size_t>(span) * sizeof(float) + (1u << 30)) {
    GTEST_SKIP() << "not enough GPU memory";
  }
  // On a host only the pages that are touched take memory.
  Kokkos::View<float*, Memory> memory(Kokkos::view_alloc(Kokkos::WithoutInitializing, "far apart"), span);
  LossTrial<RowOperator::cross_entropy_with_gradient, float> near(2, 7);
  const auto far  = strided_view<2>(memory.data(), place);
  const auto loss = strided_view<0>(near.loss().device(), Placement{});
  Kokkos::deep_copy(far, near.logits_view());
  near.run();
  const float expected = near.loss().host()[0];

  KokkosNN::cross_entropy_with_gradient(far, near.labels_view(), loss, far);
  Exec().fence();

  near.loss().download();
  EXPECT_EQ(near.loss().host()[0], expected);
  Kokkos::View<float**, Kokkos::LayoutRight, Memory> result("result", 2, 7);
  Kokkos::deep_copy(result, far);
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), result);
  for (int i = 0; i < 14; ++i) EXPECT_EQ(host.data()[i], near.dlogits().host()[i]) << i;
}

}  // namespace KokkosNNTest
