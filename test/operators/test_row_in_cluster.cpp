// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/cross_entropy.hpp"
#include "support/gradient.hpp"
#include "support/norm.hpp"
#include "support/strategies.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

// Rows over clusters of teams, on devices that have them; elsewhere the strategy is refused.

namespace KokkosNNTest {
namespace {

int largest_cluster() { return KokkosNN::device_traits(Exec()).largest_cluster; }

SoftmaxOptions in_cluster(int teams) {
  SoftmaxOptions options     = forced(RowStrategy::row_in_cluster);
  options.plan.teams_per_row = teams;
  return options;
}

template <class T>
class RowsInClusters : public ::testing::Test {
 protected:
  void SetUp() override {
    if (largest_cluster() == 0) GTEST_SKIP() << "this device has no clusters of teams";
  }
};

using ClusterTypes = ::testing::Types<float, Half, BHalf>;
TYPED_TEST_SUITE(RowsInClusters, ClusterTypes);

/// Widths of as few elements as a team can have none, up to what clusters hold, and some with edges, which have kernels
/// for losses with gradients of 16-bit types alone.
constexpr std::int64_t widths[] = {8, 33, 512, 1000, 4096, 16384, 20008, 65536};

template <class T>
bool has_edges(std::int64_t cols) {
  return cols * std::int64_t(sizeof(T)) % 16 != 0;
}

template <RowOperator Op, class T>
void expect_clusters_match() {
  for (int teams = 2; teams <= largest_cluster(); teams *= 2) {
    for (const std::int64_t cols : widths) {
      auto trial             = strategy_trial<Op, T>(RowStrategy::row_in_cluster, 5, cols);
      SoftmaxOptions options = in_cluster(teams);
      options.axis           = strategy_axis;
      RowPlan plan;
      try {
        plan = trial.plan(options);
      } catch (const std::invalid_argument&) {
        ASSERT_TRUE(cols > 4096 || has_edges<T>(cols)) << "so few columns fit in one team";
        continue;
      }

      EXPECT_FALSE(has_edges<T>(cols));
      EXPECT_EQ(plan.kernel, KokkosNN::RowKernel::row_in_cluster);
      EXPECT_EQ(plan.teams_per_row, teams);
      EXPECT_TRUE(trial.run_correct(options)) << KokkosNN::to_string(plan) << ", " << cols << " columns";
    }
  }
}

TYPED_TEST(RowsInClusters, OfForwardCallsMatch) { expect_clusters_match<RowOperator::softmax, TypeParam>(); }

TYPED_TEST(RowsInClusters, OfGradientsMatchAlsoInPlace) {
  for (int teams = 2; teams <= largest_cluster(); teams *= 2) {
    for (const std::int64_t cols : {8, 1000, 4096, 20008}) {
      GradientTrial<RowOperator::softmax_backward, TypeParam> trial(5, cols);
      try {
        static_cast<void>(trial.plan(in_cluster(teams)));
      } catch (const std::invalid_argument&) {
        ASSERT_GT(cols, 4096) << "so few columns fit in one team";
        continue;
      }
      EXPECT_TRUE(trial.run_correct(in_cluster(teams))) << teams << ", " << cols;
      EXPECT_TRUE(trial.run_in_place_correct(Output::over_dy, in_cluster(teams))) << teams << ", " << cols;
    }
  }
}

TYPED_TEST(RowsInClusters, OfLossesWithGradientsMatchAlsoInPlace) {
  int served = 0;
  for (int teams = 2; teams <= largest_cluster(); teams *= 2) {
    for (const std::int64_t cols : {2, 33, 1000, 4096, 20011}) {
      CrossEntropyOptions options{.reduction = KokkosNN::Reduction::mean, .plan = in_cluster(teams).plan};
      LossTrial<RowOperator::cross_entropy_with_gradient, TypeParam> trial(40, cols, options, true);
      try {
        trial.call();
      } catch (const std::invalid_argument&) {
        continue;
      }
      EXPECT_TRUE(trial.run_correct()) << teams << " teams, " << cols << " classes";
      EXPECT_TRUE(trial.run_correct(true)) << teams << " teams, " << cols << " classes, in place";
      ++served;
    }
  }
  EXPECT_EQ(served > 0, sizeof(TypeParam) == 2) << "floats have no such kernel";
}

TYPED_TEST(RowsInClusters, OfANormMatch) {
  for (int teams = 2; teams <= largest_cluster(); teams *= 2) {
    for (const std::int64_t cols : {16, 512, 4096, 20016}) {
      NormTrial<RowOperator::rms_norm, TypeParam> trial(5, cols, {.plan = in_cluster(teams).plan});
      try {
        trial.call();
      } catch (const std::invalid_argument&) {
        ASSERT_GT(cols, 4096) << "so few columns fit in one team";
        continue;
      }
      EXPECT_TRUE(trial.run_correct()) << teams << " teams, " << cols;
    }
  }
}

TYPED_TEST(RowsInClusters, OfEveryKindOfValueMatch) {
  for (const Recipe recipe : all_recipes) {
    auto trial = strategy_trial<RowOperator::softmax, TypeParam>(RowStrategy::row_in_cluster, 7, 4096, recipe);
    SoftmaxOptions options = in_cluster(8);
    options.axis           = strategy_axis;
    EXPECT_TRUE(trial.run_correct(options)) << to_string(recipe);
  }
}

TYPED_TEST(RowsInClusters, GiveTheSameBitsEveryTime) {
  auto trial             = strategy_trial<RowOperator::softmax, TypeParam>(RowStrategy::row_in_cluster, 200, 8192);
  SoftmaxOptions options = in_cluster(8);
  options.axis           = strategy_axis;
  ASSERT_TRUE(trial.run_correct(options));
  const std::vector<TypeParam> first(trial.y().host(), trial.y().host() + trial.y().count());
  for (int run = 0; run < 20; ++run) {
    trial.run(options);
    ASSERT_EQ(std::memcmp(first.data(), trial.y().host(), first.size() * sizeof(TypeParam)), 0) << "run " << run;
  }
}

TEST(RowInCluster, IsRefusedWhereThereAreNoClusters) {
  if (largest_cluster() > 0) GTEST_SKIP() << "this device has clusters of teams";
  auto trial             = strategy_trial<RowOperator::softmax, float>(RowStrategy::row_in_cluster, 5, 512);
  SoftmaxOptions options = in_cluster(0);
  options.axis           = strategy_axis;

  EXPECT_THROW(static_cast<void>(trial.plan(options)), std::invalid_argument);
}

}  // namespace
}  // namespace KokkosNNTest
