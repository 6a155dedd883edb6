// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/strategies.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace KokkosNNTest {

template <class T>
std::vector<T> copy_of(const Buffer<T>& buffer) {
  return {buffer.host(), buffer.host() + buffer.count()};
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

class RunToRun : public ::testing::TestWithParam<RowStrategy> {};

INSTANTIATE_TEST_SUITE_P(Every, RunToRun,
                         ::testing::ValuesIn(strategies_here({RowStrategy::automatic, RowStrategy::vector_lanes,
                                                              RowStrategy::team_scratch, RowStrategy::team_registers,
                                                              RowStrategy::team_online, RowStrategy::split_row,
                                                              RowStrategy::inner_lanes})),
                         [](const auto& test) { return std::string(KokkosNN::to_string(test.param)); });

template <RowOperator Op>
void runs_agree(RowStrategy strategy, std::int64_t rows, std::int64_t cols) {
  if (!can_serve<Op, float>(strategy, rows, cols)) return;
  auto trial = strategy_trial<Op, float>(strategy, rows, cols, Recipe::wide);
  trial.run(forced(strategy));
  const auto first = copy_of(trial.y());
  for (int run = 0; run < 10; ++run) {
    trial.run(forced(strategy));

    ASSERT_TRUE(same_bits(copy_of(trial.y()), first)) << rows << " x " << cols << ", run " << run;
  }
}

TEST_P(RunToRun, TheSameCallGivesTheSameBitsEveryTime) {
  for (const std::int64_t cols : {3, 100, 1000, 30000}) {
    runs_agree<RowOperator::softmax>(GetParam(), 20, cols);
    runs_agree<RowOperator::log_softmax>(GetParam(), 20, cols);
    runs_agree<RowOperator::logsumexp>(GetParam(), 20, cols);
  }
}

/// The bits of one row, computed as number `position` of `rows` in a tensor that starts `misalignment` elements off.
template <RowOperator Op, class T>
std::vector<T> bits_of_row(std::int64_t rows, std::int64_t cols, std::int64_t position, int misalignment,
                           std::int64_t padding, const SoftmaxOptions& options) {
  const Placement x = right({rows, cols}, padding);
  const Placement y = Op == RowOperator::logsumexp ? right({rows}) : right({rows, cols}, padding);
  Trial<Op, T> trial(x, y, 1, Recipe::uniform, misalignment, misalignment);
  InputRow row(Recipe::wide, 99, cols);
  for (std::int64_t i = 0; i < cols; ++i) {
    trial.x().host()[position * x.strides[0] + i] = static_cast<T>(row.next());
  }
  trial.x().upload();
  trial.run(options);
  const T* begin = trial.y().host() + position * y.strides[0];
  return {begin, begin + (Op == RowOperator::logsumexp ? 1 : cols)};
}

template <RowOperator Op, class T>
void row_is_invariant(std::int64_t cols, const SoftmaxOptions& options) {
  const auto alone = bits_of_row<Op, T>(1, cols, 0, 0, 0, options);
  for (const std::int64_t rows : {2, 37, 4096}) {
    if (rows > 2 && rows * cols > 500000) continue;
    for (const std::int64_t position : {std::int64_t(0), std::int64_t(1), rows / 2, rows - 1}) {
      EXPECT_TRUE(same_bits((bits_of_row<Op, T>(rows, cols, position, 0, 0, options)), alone))
          << "row " << position << " of " << rows << ", " << cols << " columns";
    }
  }
  for (const int misalignment : {1, 2, 3, 5}) {
    EXPECT_TRUE(same_bits((bits_of_row<Op, T>(1, cols, 0, misalignment, 0, options)), alone))
        << "off by " << misalignment << ", " << cols << " columns";
    EXPECT_TRUE(same_bits((bits_of_row<Op, T>(6, cols, 4, misalignment, misalignment, options)), alone))
        << "off by " << misalignment << " in padded rows, " << cols << " columns";
  }
}

TEST(BatchInvariance, ARowsBitsDependOnTheRowAndItsLengthOnly) {
  const SoftmaxOptions options{.determinism = Determinism::batch_invariant};
  for (const std::int64_t cols : {1, 3, 33, 100, 777, 1024, 5000, 40000, 300000}) {
    row_is_invariant<RowOperator::softmax, float>(cols, options);
  }
  for (const std::int64_t cols : {3, 100, 1025, 40000}) {
    row_is_invariant<RowOperator::log_softmax, float>(cols, options);
    row_is_invariant<RowOperator::logsumexp, float>(cols, options);
    row_is_invariant<RowOperator::softmax, double>(cols, options);
  }
}

TEST(BatchInvariance, ARowsBitsDependOnTheRowAndItsLengthOnlyIn16Bit) {
  const SoftmaxOptions options{.determinism = Determinism::batch_invariant};
  for (const std::int64_t cols : {3, 100, 1025, 40000}) {
    row_is_invariant<RowOperator::softmax, Half>(cols, options);
    row_is_invariant<RowOperator::log_softmax, BHalf>(cols, options);
  }
}

/// The bits of one row as number `position` of `inner` rows that lie side by side.
std::vector<float> bits_of_column(std::int64_t cols, std::int64_t inner, std::int64_t position) {
  const Placement place = right({cols, inner});
  Trial<RowOperator::softmax, float> trial(place, place, 0);
  InputRow row(Recipe::wide, 99, cols);
  for (std::int64_t i = 0; i < cols; ++i) trial.x().host()[i * inner + position] = static_cast<float>(row.next());
  trial.x().upload();
  trial.run({.determinism = Determinism::batch_invariant});
  std::vector<float> bits(cols);
  for (std::int64_t i = 0; i < cols; ++i) bits[i] = trial.y().host()[i * inner + position];
  return bits;
}

TEST(BatchInvariance, HoldsForRowsThatLieSideBySide) {
  for (const std::int64_t cols : {3, 20, 300, 5000}) {
    const auto first_of_two = bits_of_column(cols, 2, 0);
    for (const std::int64_t inner : {2, 3, 31, 64, 500}) {
      for (const std::int64_t position : {std::int64_t(0), inner / 2, inner - 1}) {
        EXPECT_TRUE(same_bits(bits_of_column(cols, inner, position), first_of_two))
            << "row " << position << " of " << inner << ", " << cols << " columns";
      }
    }
  }
}

TEST(BatchInvariance, HoldsForOneRowAgainstManyThatLieSideBySide) {
  for (const std::int64_t cols : {3, 20, 300, 5000}) {
    EXPECT_TRUE(same_bits(bits_of_column(cols, 64, 7), bits_of_column(cols, 1, 0))) << cols << " columns";
  }
}

#ifdef KOKKOS_ENABLE_OPENMP
TEST(BatchInvariance, HoldsForEveryNumberOfThreads) {
  if constexpr (!std::is_same_v<Exec, Kokkos::OpenMP>) {
    GTEST_SKIP() << "the default execution space is not OpenMP";
  } else {
    const SoftmaxOptions options{.determinism = Determinism::batch_invariant};
    for (const std::int64_t cols : {100, 1000, 50000}) {
      Trial<RowOperator::softmax, float> trial(3, cols, Recipe::wide);
      trial.run(options);
      const auto default_instance = copy_of(trial.y());
      for (const int threads : {1, 2, 3, 4}) {
        trial.y().poison_all();
        const Kokkos::OpenMP exec(threads);

        KokkosNN::softmax(exec, trial.x_view(), trial.y_view(), options);
        exec.fence();
        trial.y().download();

        EXPECT_TRUE(same_bits(copy_of(trial.y()), default_instance)) << threads << " threads, " << cols << " columns";
      }
    }
  }
}
#endif

/// The bits of the first rows of a call whose results no cache holds are those of a call on these rows alone.
template <RowOperator Op>
void nontemporal_stores_keep_the_bits(std::int64_t rows, std::int64_t cols) {
  const std::int64_t few = 16;
  Trial<Op, float> all(right({rows, cols}), right({rows, cols}), 1, Recipe::wide);
  Trial<Op, float> alone(right({few, cols}), right({few, cols}), 1);
  std::memcpy(alone.x().host(), all.x().host(), few * cols * sizeof(float));
  alone.x().upload();
  all.run({});
  alone.run({});

  ASSERT_TRUE(all.plan().nontemporal_stores && !alone.plan().nontemporal_stores)
      << to_string(all.plan()) << to_string(alone.plan());
  EXPECT_EQ(std::memcmp(all.y().host(), alone.y().host(), few * cols * sizeof(float)), 0)
      << KokkosNN::to_string(Op) << ", " << cols << " columns";
}

// Streaming depends on the number of threads, by their share of the caches; bits must not depend on it.
TEST(Streaming, LeavesBitsAsTheyAre) {
  if (on_gpu) GTEST_SKIP() << "a GPU's results are not streamed";
  for (const std::int64_t cols : {16, 64, 101, 208, 781, 1008, 5008, 12673}) {
    const std::int64_t rows = rows_beyond_the_cache(cols);
    if (rows == 0) GTEST_SKIP() << "the last-level cache is too large for this test, or not known";
    nontemporal_stores_keep_the_bits<RowOperator::softmax>(rows, cols);
    nontemporal_stores_keep_the_bits<RowOperator::log_softmax>(rows, cols);
  }
}

}  // namespace KokkosNNTest
