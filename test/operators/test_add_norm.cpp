// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/norm.hpp"
#include "support/strategies.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

// Norms of a sum with a residual, and their gradients.

namespace KokkosNNTest {
namespace {

using KokkosNN::no_view;

template <class T>
class AddNorms : public ::testing::Test {};
TYPED_TEST_SUITE(AddNorms, ElementTypes, ElementNames);

// --- strategies and layouts ---

TYPED_TEST(AddNorms, OnEveryStrategyTakeThePathAndMatch) {
  for_each_add_norm([](auto op) { expect_path_of_every_strategy<op(), TypeParam>(); });
}

TYPED_TEST(AddNorms, MatchInAnyLayoutAlongAnyAxis) {
  const std::vector<std::int64_t> extents{5, 9, 34};
  for_each_add_norm([&](auto op) {
    for (int axis = 0; axis < 3; ++axis) {
      for (const Placement& place : {right(extents), left(extents), right(extents, 3)}) {
        EXPECT_TRUE((NormTrial<op(), TypeParam, 3>(place, {.axis = axis}).run_correct())) << axis;
      }
      // x and the residual lie in one order, y and the sum in another.
      EXPECT_TRUE((NormTrial<op(), TypeParam, 3>(right(extents), left(extents), {.axis = axis}).run_correct())) << axis;
    }
  });
}

TYPED_TEST(AddNorms, MatchWhereverRowsBeginAndInRowsOfEveryLength) {
  for_each_add_norm([&](auto op) {
    for (const std::int64_t cols : {8, 33, 517, 4096}) {
      EXPECT_TRUE((NormTrial<op(), TypeParam>(right({7, cols}), {.misalignment = 3}).run_correct())) << cols;
      const Placement apart{{7, cols}, {2 * cols + 5, 2}, 0};
      const Placement reversed{{7, cols}, {cols, -1}, cols - 1};
      EXPECT_TRUE((NormTrial<op(), TypeParam>(apart, {}).run_correct())) << cols;
      EXPECT_TRUE((NormTrial<op(), TypeParam>(reversed, right({7, cols}), {}).run_correct())) << cols;
    }
    for (std::int64_t cols = 1; cols < 300; cols += 1 + cols / 12) {
      EXPECT_TRUE((NormTrial<op(), TypeParam>(6, cols).run_correct())) << to_string(op()) << ", " << cols;
    }
    EXPECT_TRUE((NormTrial<op(), TypeParam>(2, 100001).run_correct())) << to_string(op());
  });
}

TYPED_TEST(AddNorms, MatchInPlace) {
  const auto check = [](auto op, const auto& trial_of, std::initializer_list<NormOutput> outputs) {
    for (const NormOutput output : outputs) {
      EXPECT_TRUE(trial_of().run_in_place_correct(output)) << to_string(op()) << ", " << static_cast<int>(output);
    }
  };
  for_each_add_norm([&](auto op) {
    const auto all = [&](const auto& trial_of) {
      if constexpr (KokkosNN::is_gradient(op())) {
        check(op, trial_of, {NormOutput::over_x, NormOutput::over_dy, NormOutput::over_dsum});
      } else {
        check(op, trial_of,
              {NormOutput::over_x, NormOutput::sum_over_x, NormOutput::sum_over_residual,
               NormOutput::over_x_sum_over_residual});
      }
    };
    for (const std::int64_t cols : {33, 512, 40000}) all([&] { return NormTrial<op(), TypeParam>(5, cols); });
    for (const RowStrategy strategy :
         strategies_with_kernels(op(), {RowStrategy::split_row, RowStrategy::inner_lanes, RowStrategy::team_online})) {
      all([&] {
        return NormTrial<op(), TypeParam, 3>(strategy_place(strategy, 10, 300),
                                             {.axis = strategy_axis, .plan = {strategy}});
      });
    }
  });
}

// --- operands and values ---

TYPED_TEST(AddNorms, TakeWeightsOfEitherTypeAndNone) {
  for_each_add_norm([&](auto op) {
    using A = KokkosNN::accumulator_t<TypeParam>;
    EXPECT_TRUE((NormTrial<op(), TypeParam>(6, 100, {.has_weights = false}).run_correct()));
    EXPECT_TRUE((NormTrial<op(), TypeParam, 2, A>(6, 100, {.stride = 3}).run_correct()));
    if (!NormTrial<op(), TypeParam>::is_layer_norm) {
      EXPECT_TRUE((NormTrial<op(), TypeParam>(6, 100, {.weight_offset = 1}).run_correct()));
    }
  });
}

TEST(AddLayerNorm, LosesNothingToALargeMean) {
  for (const RowStrategy strategy : norm_strategies()) {
    NormTrial<RowOperator::add_layer_norm, float, 3> trial(strategy_place(strategy, 10, 120),
                                                           {.axis = strategy_axis, .mean = 1e6, .plan = {strategy}});
    EXPECT_TRUE(trial.run_correct()) << to_string(strategy);
  }
  EXPECT_TRUE((NormTrial<RowOperator::add_layer_norm, double>(3, 100000, {.mean = 1e14}).run_correct()));
}

TYPED_TEST(AddNorms, OfEqualSumsAreExactlyTheBias) {
  for (const std::int64_t cols : {1, 77, 1000, 70001}) {
    NormTrial<RowOperator::add_layer_norm, TypeParam> trial(3, cols);
    for (std::int64_t i = 0; i < trial.x().count(); ++i) {
      trial.x().host()[i]        = static_cast<TypeParam>(0.1);
      trial.residual().host()[i] = static_cast<TypeParam>(-3.7);
    }
    trial.x().upload(), trial.residual().upload();
    trial.run();
    bool is_bias = true;
    for (std::int64_t i = 0; i < trial.y().count(); ++i) {
      is_bias = is_bias && exact(trial.y().host()[i]) == exact(trial.bias().host()[i % cols]);
    }
    EXPECT_TRUE(is_bias) << cols;
  }
}

TYPED_TEST(AddNorms, KeepANaNOfEitherInputToItsRow) {
  constexpr int cols = 300;
  for (const bool of_residual : {true, false}) {
    NormTrial<RowOperator::add_rms_norm, TypeParam> trial(3, cols);
    auto& input            = of_residual ? trial.residual() : trial.x();
    input.host()[cols + 7] = static_cast<TypeParam>(std::nanf(""));
    input.upload();
    trial.run();
    for (std::int64_t i = 0; i < 3 * cols; ++i) {
      EXPECT_EQ(std::isnan(exact(trial.y().host()[i])), i / cols == 1);
      EXPECT_EQ(std::isnan(exact(trial.sum().host()[i])), i == cols + 7);
    }
  }
}

TYPED_TEST(AddNorms, AreBatchInvariantIfAskedTo) {
  for_each_add_norm([&](auto op) {
    for (const std::int64_t cols : {64, 1000, 50000}) {
      const NormCase given{.determinism = Determinism::batch_invariant};
      NormTrial<op(), TypeParam> many(23, cols, given), one(1, cols, given);
      many.run(), one.run();
      const std::size_t bytes = static_cast<std::size_t>(cols) * sizeof(TypeParam);
      EXPECT_EQ(std::memcmp(many.y().host(), one.y().host(), bytes), 0) << to_string(op()) << ", " << cols;
    }
  });
}

// --- calls ---

TEST(AddNormCalls, WithoutAGradientOfTheSumAreThoseOfTheNorm) {
  const Kokkos::View<float**, Memory> x("x", 3, 4), dx("dx", 3, 4);
  const Kokkos::View<float*, Memory> mean("mean", 3), rstd("rstd", 3), dweight("dweight", 4), dbias("dbias", 4);
  Kokkos::deep_copy(x, 2), Kokkos::deep_copy(rstd, 0.5f);
  const auto kernel_begins = [&](const auto& call, const std::string& name) {
    for (const std::string& kernel : kernels_of(call)) EXPECT_TRUE(kernel.starts_with("KokkosNN::" + name)) << kernel;
  };
  kernel_begins([&] { KokkosNN::add_rms_norm_backward(x, no_view, rstd, x, no_view, dx, dweight); },
                "rms_norm_backward[");
  kernel_begins([&] { KokkosNN::add_layer_norm_backward(x, no_view, mean, rstd, x, no_view, dx, dweight, dbias); },
                "layer_norm_backward[");
}

TEST(AddNormCalls, RunOnTheDefaultInstanceAndWithoutValuesOfRows) {
  const Kokkos::View<float**, Memory> x("x", 3, 4), y("y", 3, 4), sum("sum", 3, 4), dx("dx", 3, 4);
  const Kokkos::View<float*, Memory> mean("mean", 3), rstd("rstd", 3), dweight("dweight", 4), dbias("dbias", 4);
  Kokkos::deep_copy(x, 2);
  const auto last = [](const auto& view) {
    Kokkos::fence();
    return Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), view).data()[view.size() - 1];
  };
  KokkosNN::add_rms_norm(x, x, no_view, y, sum, {.epsilon = 0});
  EXPECT_EQ(last(y), 1);
  EXPECT_EQ(last(sum), 4);
  KokkosNN::add_rms_norm(x, x, no_view, y, sum, rstd, {.epsilon = 0});
  EXPECT_EQ(last(rstd), 0.25f);
  KokkosNN::add_layer_norm(x, x, no_view, no_view, y, sum);
  EXPECT_EQ(last(y), 0);
  KokkosNN::add_layer_norm(x, x, no_view, no_view, y, sum, mean, rstd, {.epsilon = 0.25});
  EXPECT_EQ(last(mean), 4);
  EXPECT_EQ(last(rstd), 2);
  Kokkos::deep_copy(y, 1);
  KokkosNN::add_layer_norm_backward(sum, no_view, mean, rstd, y, x, dx);
  EXPECT_EQ(last(dx), 2);  // equal dy have no gradient, so that dsum is left
  KokkosNN::add_layer_norm_backward(sum, no_view, mean, rstd, y, x, dx, dweight, dbias);
  EXPECT_EQ(last(dbias), 3);
  Kokkos::deep_copy(rstd, 0.25f);
  KokkosNN::add_rms_norm_backward(sum, no_view, rstd, y, x, dx);
  EXPECT_EQ(last(dx), 2);
  KokkosNN::add_rms_norm_backward(sum, no_view, rstd, y, x, dx, dweight);
  EXPECT_EQ(last(dweight), 3);
}

TEST(AddNormErrors, NameWhatDoesNotAgreeAndWhatOverlaps) {
  Buffer<float> buffer(10000);
  const auto rows      = [&](std::int64_t from) { return strided_view<2>(buffer.device() + from, right({10, 100})); };
  const auto narrow    = strided_view<2>(buffer.device() + 5000, right({10, 99}));
  const auto complains = [](const auto& call, const std::string& text) {
    std::string message = "(nothing was thrown)";
    try {
      call();
    } catch (const std::invalid_argument& e) {
      message = e.what();
    }
    EXPECT_NE(message.find(text), std::string::npos) << message;
  };
  complains([&] { KokkosNN::add_rms_norm(rows(0), narrow, no_view, rows(1000), rows(2000)); },
            "KokkosNN::add_rms_norm: x and residual must have the same extents");
  complains([&] { KokkosNN::add_layer_norm(rows(0), rows(0), no_view, no_view, rows(1000), narrow); },
            "KokkosNN::add_layer_norm: x and sum must have the same extents");
  complains([&] { KokkosNN::add_rms_norm(rows(0), rows(1000), no_view, rows(0), rows(0)); }, "sum at");
  complains([&] { KokkosNN::add_rms_norm(rows(0), rows(1000), no_view, rows(3000), rows(1001)); }, "residual at");
  const auto rstd = strided_view<1>(buffer.device() + 9000, right({10}));
  complains([&] { KokkosNN::add_rms_norm_backward(rows(0), no_view, rstd, rows(1000), narrow, rows(3000)); },
            "KokkosNN::add_rms_norm_backward: sum and dsum must have the same extents");
  complains([&] { KokkosNN::add_rms_norm_backward(rows(0), no_view, rstd, rows(1000), rows(2000), rows(2001)); },
            "dsum at");
  buffer.download();
  EXPECT_TRUE(buffer.untouched());
}

}  // namespace
}  // namespace KokkosNNTest
