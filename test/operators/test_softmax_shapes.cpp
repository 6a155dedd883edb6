// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/check.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace KokkosNNTest {

TEST(SoftmaxShapes, TheTutorialsShape1823By781MatchesTheReference) {
  Trial<RowOperator::softmax, float> softmax(1823, 781);
  Trial<RowOperator::log_softmax, float> log_softmax(1823, 781);
  Trial<RowOperator::logsumexp, float> logsumexp(1823, 781);

  EXPECT_TRUE(softmax.run_correct());
  EXPECT_TRUE(log_softmax.run_correct());
  EXPECT_TRUE(logsumexp.run_correct());
}

TEST(SoftmaxShapes, EveryWidthFrom1To1100With1And2And3And37RowsMatchesTheReference) {
  for (const std::int64_t rows : {1, 2, 3, 37}) {
    for (std::int64_t cols = 1; cols <= 1100; ++cols) {
      Trial<RowOperator::softmax, float> trial(rows, cols);

      ASSERT_TRUE(trial.run_correct()) << rows << " x " << cols;
    }
  }
}

TEST(SoftmaxShapes, EveryWidthFrom1To1100InDoubleWith2RowsMatchesTheReference) {
  for (std::int64_t cols = 1; cols <= 1100; ++cols) {
    Trial<RowOperator::softmax, double> trial(2, cols);

    ASSERT_TRUE(trial.run_correct()) << "2 x " << cols;
  }
}

TEST(SoftmaxShapes, EveryWidthFrom1To1100In16BitWith2RowsMatchesTheReference) {
  for (std::int64_t cols = 1; cols <= 1100; ++cols) {
    Trial<RowOperator::softmax, Half> half(2, cols);
    Trial<RowOperator::softmax, BHalf> bhalf(2, cols);

    ASSERT_TRUE(half.run_correct()) << "f16, 2 x " << cols;
    ASSERT_TRUE(bhalf.run_correct()) << "bf16, 2 x " << cols;
  }
}

TEST(SoftmaxShapes, EveryWidthFrom1To300OfLogSoftmaxAndLogSumExpMatchesTheReference) {
  for (std::int64_t cols = 1; cols <= 300; ++cols) {
    Trial<RowOperator::log_softmax, float> log_softmax(3, cols);
    Trial<RowOperator::logsumexp, float> logsumexp(3, cols);

    ASSERT_TRUE(log_softmax.run_correct()) << "3 x " << cols;
    ASSERT_TRUE(logsumexp.run_correct()) << "3 x " << cols;
  }
}

TEST(SoftmaxShapes, WidthsAroundPowersOf2Up2To20MatchTheReference) {
  for (std::int64_t power = 2; power <= 1 << 20; power *= 2) {
    for (const std::int64_t cols : {power - 1, power, power + 1}) {
      for (const std::int64_t rows : {1, 3}) {
        if (rows * cols > 1 << 20 && rows > 1) continue;  // the reference's exp is slow
        Trial<RowOperator::softmax, float> trial(rows, cols);

        ASSERT_TRUE(trial.run_correct()) << rows << " x " << cols;
      }
    }
  }
}

TEST(SoftmaxShapes, ManyRowsAndFewColumnsMatchTheReference) {
  for (const std::int64_t cols : {1, 2, 3, 8, 17}) {
    Trial<RowOperator::softmax, float> softmax(70001, cols);
    Trial<RowOperator::logsumexp, float> logsumexp(70001, cols);

    EXPECT_TRUE(softmax.run_correct()) << cols;
    EXPECT_TRUE(logsumexp.run_correct()) << cols;
  }
}

TEST(SoftmaxShapes, VocabularyWidthsMatchTheReference) {
  for (const std::int64_t cols : {32000, 50257, 128256, 151936}) {
    Trial<RowOperator::softmax, float> trial(2, cols);

    EXPECT_TRUE(trial.run_correct()) << cols;
  }
}

// Attention scores (batch, heads, length, length): FasterTransformer's (32, 64, L, L), fewer heads and batches here.
TEST(SoftmaxShapes, AttentionScoresMatchTheReference) {
  for (std::int64_t length = 16; length <= 256; length *= 2) {
    const std::int64_t heads = on_gpu ? 16 : 256 / length < 1 ? 1 : 256 / length;
    const Placement place    = right({2, heads, length, length});
    Trial<RowOperator::softmax, float, float, 4> trial(place, place, -1);

    EXPECT_TRUE(trial.run_correct({.scale = 0.125})) << length;
  }
}

}  // namespace KokkosNNTest
