// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/norm.hpp"
#include "support/strategies.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <regex>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace KokkosNNTest {
namespace {

using KokkosNN::no_view;

constexpr float infinity    = std::numeric_limits<float>::infinity();
constexpr float not_a_value = std::numeric_limits<float>::quiet_NaN();

template <class T>
class Norms : public ::testing::Test {};
TYPED_TEST_SUITE(Norms, ElementTypes, ElementNames);

// --- strategies and layouts ---

TYPED_TEST(Norms, OnEveryStrategyTakeThePathAndMatch) {
  for_each_norm([](auto op) { expect_path_of_every_strategy<op(), TypeParam>(); });
}

TYPED_TEST(Norms, MatchInAnyLayoutAlongAnyAxis) {
  const std::vector<std::int64_t> extents{5, 9, 34};
  for_each_norm([&](auto op) {
    for (int axis = 0; axis < 3; ++axis) {
      for (const Placement& place : {right(extents), left(extents), right(extents, 3), left(extents, 2)}) {
        EXPECT_TRUE((NormTrial<op(), TypeParam, 3>(place, {.axis = axis}).run_correct())) << axis;
      }
      // Rows of x and of y lie in other orders, so that no axes of theirs are one.
      EXPECT_TRUE((NormTrial<op(), TypeParam, 3>(right(extents), left(extents), {.axis = axis}).run_correct())) << axis;
    }
  });
}

TYPED_TEST(Norms, MatchWhereverRowsBegin) {
  for_each_norm([&](auto op) {
    for (const std::int64_t cols : {8, 33, 64, 517, 4096}) {
      for (const int misalignment : {1, 3}) {
        EXPECT_TRUE((NormTrial<op(), TypeParam>(right({7, cols}), {.misalignment = misalignment}).run_correct()));
      }
      const Placement apart{{7, cols}, {2 * cols + 5, 2}, 0};
      const Placement reversed{{7, cols}, {cols, -1}, cols - 1};
      EXPECT_TRUE((NormTrial<op(), TypeParam>(apart, {}).run_correct())) << cols;
      EXPECT_TRUE((NormTrial<op(), TypeParam>(reversed, right({7, cols}), {}).run_correct())) << cols;
    }
  });
}

TYPED_TEST(Norms, MatchInPlace) {
  for_each_norm([&](auto op) {
    for (const std::int64_t cols : {33, 512, 40000}) {
      NormTrial<op(), TypeParam> trial(5, cols);
      EXPECT_TRUE(trial.run_in_place_correct(NormOutput::over_x)) << to_string(op());
      NormTrial<op(), TypeParam> other(5, cols);
      if (KokkosNN::is_gradient(op())) EXPECT_TRUE(other.run_in_place_correct(NormOutput::over_dy)) << to_string(op());
    }
    for (const RowStrategy strategy : strategies_here({RowStrategy::split_row, RowStrategy::inner_lanes})) {
      NormTrial<op(), TypeParam, 3> trial(strategy_place(strategy, 10, 300),
                                          {.axis = strategy_axis, .plan = {strategy}});
      EXPECT_TRUE(trial.run_in_place_correct(NormOutput::over_x)) << to_string(op()) << " by " << to_string(strategy);
    }
  });
}

TYPED_TEST(Norms, MatchInRowsOfEveryLength) {
  for_each_norm([&](auto op) {
    for (std::int64_t cols = 1; cols < 300; cols += 1 + cols / 24) {
      EXPECT_TRUE((NormTrial<op(), TypeParam>(6, cols).run_correct())) << to_string(op()) << ", " << cols;
    }
    EXPECT_TRUE((NormTrial<op(), TypeParam>(2, 300001).run_correct())) << to_string(op());
  });
}

TEST(NormCalls, OfAMillionColumnsAreAsAccurate) {
  for_each_norm([&](auto op) {
    for (const RowStrategy strategy :
         strategies_with_kernels(op(), {RowStrategy::team_online, RowStrategy::split_row})) {
      EXPECT_TRUE((NormTrial<op(), float>(2, 1 << 20, {.plan = {strategy}}).run_correct())) << to_string(op());
      EXPECT_TRUE((NormTrial<op(), double>(2, 1 << 20, {.plan = {strategy}}).run_correct())) << to_string(op());
    }
  });
}

TYPED_TEST(Norms, OfRowsThatAreOneTensorOfRankOneMatch) {
  for_each_norm([&](auto op) {
    EXPECT_TRUE((NormTrial<op(), TypeParam, 1>(right({77}), NormCase{}).run_correct())) << to_string(op());
  });
}

// --- operands of columns ---

TYPED_TEST(Norms, TakeWeightsOfEitherTypeInAnyStrideAndNone) {
  for_each_norm([&](auto op) {
    for (const std::int64_t cols : {33, 256}) {
      EXPECT_TRUE((NormTrial<op(), TypeParam>(6, cols, {.has_weights = false}).run_correct()));
      EXPECT_TRUE((NormTrial<op(), TypeParam>(6, cols, {.stride = 3}).run_correct()));
      using A = KokkosNN::accumulator_t<TypeParam>;
      EXPECT_TRUE((NormTrial<op(), TypeParam, 2, A>(6, cols).run_correct()));
      EXPECT_TRUE((NormTrial<op(), TypeParam, 2, A>(left({6, cols}), {.stride = 2}).run_correct()));
    }
  });
}

TYPED_TEST(Norms, AddTheOffsetToWeightsAndNotToNone) {
  for (const bool has_weights : {true, false}) {
    const NormCase given{.has_weights = has_weights, .weight_offset = 1};
    EXPECT_TRUE((NormTrial<RowOperator::rms_norm, TypeParam>(6, 100, given).run_correct()));
    EXPECT_TRUE((NormTrial<RowOperator::rms_norm_backward, TypeParam>(6, 100, given).run_correct()));
  }
}

// --- values ---

TYPED_TEST(Norms, MatchWhereElementsAreLargeOrAlike) {
  for_each_norm([&](auto op) {
    for (const Recipe recipe : {Recipe::wide, Recipe::one_dominant, Recipe::ascending, Recipe::all_equal}) {
      for (const std::int64_t cols : {100, 3000}) {
        EXPECT_TRUE((NormTrial<op(), TypeParam>(8, cols, {.recipe = recipe}).run_correct()))
            << to_string(op()) << ", " << to_string(recipe);
      }
    }
  });
}

TEST(LayerNorm, LosesNothingToALargeMean) {
  for (const RowStrategy strategy : norm_strategies()) {
    NormTrial<RowOperator::layer_norm, float, 3> trial(strategy_place(strategy, 10, 200),
                                                       {.axis = strategy_axis, .mean = 1e6, .plan = {strategy}});
    EXPECT_TRUE(trial.run_correct()) << to_string(strategy);
  }
  EXPECT_TRUE((NormTrial<RowOperator::layer_norm, float>(3, 100000, {.mean = -1e6}).run_correct()));
  EXPECT_TRUE((NormTrial<RowOperator::layer_norm, double>(3, 100000, {.mean = 1e14}).run_correct()));
}

TYPED_TEST(Norms, OfEqualElementsAreExactlyTheBiasInLayerNorm) {
  for (const std::int64_t cols : {1, 3, 77, 1000, 70001}) {
    for (const double value : {0.1, -3.7, 1000.3}) {
      NormTrial<RowOperator::layer_norm, TypeParam> trial(3, cols);
      for (std::int64_t i = 0; i < trial.x().count(); ++i) trial.x().host()[i] = static_cast<TypeParam>(value);
      trial.x().upload();
      trial.run();
      bool is_bias = true;
      for (std::int64_t i = 0; i < trial.y().count(); ++i) {
        is_bias = is_bias && exact(trial.y().host()[i]) == exact(trial.bias().host()[i % cols]);
      }
      EXPECT_TRUE(is_bias) << cols << " times " << value;
      EXPECT_EQ(exact(trial.mean().host()[0]), exact(static_cast<TypeParam>(value)));
    }
  }
}

/// True if all of a row's results are NaN, or none.
template <class Trial>
int nans_of_row(Trial& trial, std::int64_t row, std::int64_t cols) {
  int count = 0;
  for (std::int64_t i = 0; i < cols; ++i) count += std::isnan(exact(trial.y().host()[row * cols + i]));
  return count;
}

TYPED_TEST(Norms, KeepANaNOrAnInfinityToItsRow) {
  constexpr int cols = 300;
  for_each_norm([&](auto op) {
    for (const float bad : {not_a_value, infinity, -infinity}) {
      for (const std::int64_t column : {0, 5, 299}) {
        NormTrial<op(), TypeParam> trial(3, cols);
        trial.x().host()[cols + column] = static_cast<TypeParam>(bad);
        trial.x().upload();
        trial.set_values();
        trial.run();
        EXPECT_EQ(nans_of_row(trial, 0, cols), 0);
        EXPECT_EQ(nans_of_row(trial, 2, cols), 0);
        const bool is_lone = op() == RowOperator::rms_norm && !std::isnan(bad);  // the others are 0 then
        EXPECT_EQ(nans_of_row(trial, 1, cols), is_lone ? 1 : cols) << to_string(op()) << " of " << bad;
      }
    }
  });
}

// --- determinism ---

TYPED_TEST(Norms, AreBatchInvariantIfAskedTo) {
  for_each_norm([&](auto op) {
    for (const std::int64_t cols : {64, 100, 1000, 50000}) {
      const NormCase given{.determinism = Determinism::batch_invariant};
      NormTrial<op(), TypeParam> many(23, cols, given), one(1, cols, given);
      NormTrial<op(), TypeParam> elsewhere(right({1, cols}), {.misalignment = 1, .determinism = given.determinism});
      many.run(), one.run(), elsewhere.run();
      const std::size_t bytes = static_cast<std::size_t>(cols) * sizeof(TypeParam);
      EXPECT_EQ(std::memcmp(many.y().host(), one.y().host(), bytes), 0) << to_string(op()) << ", " << cols;
      EXPECT_EQ(std::memcmp(many.y().host(), elsewhere.y().host(), bytes), 0) << to_string(op()) << ", " << cols;
    }
  });
}

// --- calls ---

TEST(NormCalls, WriteNothingWithoutRowsOrColumns) {
  for_each_norm([&](auto op) {
    for (const Placement& place : {right({0, 5}), right({5, 0}), right({0, 0})}) {
      NormTrial<op(), float> trial(place, {.has_gradients = false});
      EXPECT_TRUE(kernels_of([&] { trial.call(); }).empty());
      trial.rstd().download();
      if (!KokkosNN::is_gradient(op())) EXPECT_TRUE(trial.rstd().untouched());
    }
  });
}

TEST(NormCalls, RunOnTheDefaultInstanceAndWithoutValuesOfRows) {
  const Kokkos::View<float**, Memory> x("x", 3, 4), y("y", 3, 4), z("z", 3, 4);
  const Kokkos::View<float*, Memory> weight("weight", 4), bias("bias", 4), mean("mean", 3), rstd("rstd", 3);
  Kokkos::deep_copy(x, 2), Kokkos::deep_copy(weight, 3), Kokkos::deep_copy(bias, 5);
  const auto first = [](const auto& view) {
    Kokkos::fence();
    return Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), view).data()[0];
  };
  KokkosNN::rms_norm(x, weight, y, {.epsilon = 0});
  EXPECT_EQ(first(y), 3);
  KokkosNN::rms_norm(x, weight, y, rstd, {.epsilon = 0});
  EXPECT_EQ(first(rstd), 0.5f);
  KokkosNN::layer_norm(x, weight, bias, y);
  EXPECT_EQ(first(y), 5);
  KokkosNN::layer_norm(x, weight, bias, y, mean, rstd, {.epsilon = 0.25});
  EXPECT_EQ(first(mean), 2);
  EXPECT_EQ(first(rstd), 2);
  Kokkos::deep_copy(y, 1);
  KokkosNN::layer_norm_backward(x, weight, mean, rstd, y, z);
  EXPECT_EQ(first(z), 0);
  Kokkos::deep_copy(rstd, 0.5f);
  KokkosNN::rms_norm_backward(x, no_view, rstd, y, z);
  EXPECT_EQ(first(z), 0);
}

/// Kernels of a call that is made for the second time, which fences and allocates nothing.
template <RowOperator op>
std::size_t kernels_of_second_call(std::int64_t rows, bool has_gradients) {
  NormTrial<op, float> trial(rows, 300, {.has_gradients = has_gradients});
  trial.call();
  Exec().fence();
  Recorder recorder;
  trial.call();
  EXPECT_TRUE(recorder.neither_fenced_nor_allocated()) << to_string(op);
  return recorder.kernels.size();
}

TEST(NormCalls, EnqueueOneKernelAndAllocateNothing) {
  for_each_norm([&](auto op) { EXPECT_EQ(kernels_of_second_call<op()>(7, false), 1U) << to_string(op()); });
}

// --- gradients of weights and biases ---

template <class F>
void for_each_norm_backward(const F& f) {
  for_each_norm([&](auto op) {
    if constexpr (KokkosNN::is_gradient(op())) f(op);
  });
}

TEST(NormWeightGradients, TakeAKernelMoreForAChunkOfRowsAndTwoForSeveral) {
  for_each_norm_backward([&](auto op) {
    EXPECT_EQ(kernels_of_second_call<op()>(256, true), 2U) << to_string(op());
    EXPECT_EQ(kernels_of_second_call<op()>(257, true), 3U) << to_string(op());
  });
}

TYPED_TEST(Norms, SumTheGradientsOfWeightsOverManyRows) {
  for_each_norm_backward([&](auto op) {
    for (const std::int64_t rows : {255, 256, 257, 1000, 3000}) {
      EXPECT_TRUE((NormTrial<op(), TypeParam>(rows, 19).run_correct())) << to_string(op()) << ", " << rows;
      EXPECT_TRUE((NormTrial<op(), TypeParam>(left({rows, 19}), {}).run_correct())) << to_string(op()) << ", " << rows;
    }
    EXPECT_TRUE((NormTrial<op(), TypeParam>(270000, 3).run_correct())) << to_string(op());
  });
}

TYPED_TEST(Norms, SumTheGradientsOfWeightsWhereTheMeanIsLarge) {
  NormTrial<RowOperator::layer_norm_backward, float> trial(700, 40, {.mean = 1e6});
  EXPECT_TRUE(trial.run_correct());
}

TEST(NormWeightGradients, AreZeroWithoutRows) {
  for_each_norm_backward([&](auto op) {
    NormTrial<op(), float> trial(0, 5);
    trial.run();
    EXPECT_TRUE(trial.correct()) << to_string(op());
    EXPECT_EQ(trial.dweight().host()[4], 0);
    NormTrial<op(), float> empty(5, 0);
    EXPECT_TRUE(kernels_of([&] { empty.call(); }).empty());
  });
}

TEST(NormWeightGradients, MayBeOneOfTheTwo) {
  const Kokkos::View<float**, Memory> x("x", 3, 4), dx("dx", 3, 4);
  const Kokkos::View<float*, Memory> mean("mean", 3), rstd("rstd", 3), dweight("dweight", 4), dbias("dbias", 4);
  Kokkos::deep_copy(x, 2), Kokkos::deep_copy(rstd, 0.5f);
  KokkosNN::layer_norm_backward(x, no_view, mean, rstd, x, dx, dweight, no_view);
  KokkosNN::layer_norm_backward(x, no_view, mean, rstd, x, dx, no_view, dbias);
  Kokkos::fence();
  EXPECT_EQ(Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), dweight)(3), 6);
  EXPECT_EQ(Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), dbias)(3), 6);
  KokkosNN::rms_norm_backward(x, no_view, rstd, x, dx, dbias);
  Kokkos::fence();
  EXPECT_EQ(Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), dbias)(3), 6);
}

TYPED_TEST(Norms, GiveAColumnOneGradientOfItsWeightWhateverIsBesideIt) {
  for_each_norm_backward([&](auto op) {
    constexpr std::int64_t rows = 600, cols = 300;
    NormTrial<op(), TypeParam> one(rows, cols), misaligned(right({rows, cols}), {.misalignment = 1});
    NormTrial<op(), TypeParam> planned(rows, cols, {.plan = {shared_rows}});
    one.run(), misaligned.run(), planned.run();
    const std::size_t bytes = cols * sizeof(TypeParam);
    EXPECT_EQ(std::memcmp(one.dweight().host(), misaligned.dweight().host(), bytes), 0) << to_string(op());
    EXPECT_EQ(std::memcmp(one.dweight().host(), planned.dweight().host(), bytes), 0) << to_string(op());
  });
}

// --- errors ---

/// Expects the call to complain by its name and the pattern.
template <class F>
void refuses(const std::string& name, const F& call, const std::string& pattern) {
  std::string text = "(nothing was thrown)";
  try {
    call();
  } catch (const std::invalid_argument& e) {
    text = e.what();
  }
  const std::string whole = "^KokkosNN::" + name + ": .*" + pattern;
  EXPECT_TRUE(std::regex_search(text, std::regex(whole))) << "\"" << text << "\" does not match \"" << whole << "\"";
}

TEST(NormErrors, NameWhatDoesNotAgree) {
  const Kokkos::View<float**, Memory> x("x", 3, 4), y("y", 3, 4), narrow("narrow", 3, 5), flat("flat", 4, 3);
  const Kokkos::View<float*, Memory> four("four", 4), three("three", 3);
  refuses("rms_norm", [&] { KokkosNN::rms_norm(x, four, narrow); }, "x and y must.*3, 4.*3, 5");
  refuses("layer_norm", [&] { KokkosNN::layer_norm(x, four, three, y); }, "bias must have.*4 columns, but has 3");
  refuses("rms_norm", [&] { KokkosNN::rms_norm(x, three, y); }, "weight must have.*4 columns, but has 3");
  refuses("rms_norm", [&] { KokkosNN::rms_norm(x, four, y, four); }, "rstd must have.*without the axis, \\(3\\)");
  refuses("layer_norm", [&] { KokkosNN::layer_norm(x, four, four, y, four, three); }, "mean must have.*\\(4\\)");
  refuses("rms_norm_backward", [&] { KokkosNN::rms_norm_backward(x, four, three, flat, y); }, "x and dy must.*4, 3");
  refuses(
      "layer_norm_backward", [&] { KokkosNN::layer_norm_backward(x, four, three, three, y, flat); },
      "x and dx must.*4, 3");
  refuses(
      "rms_norm_backward", [&] { KokkosNN::rms_norm_backward(x, four, three, y, y, three); },
      "dweight must have.*4 columns, but has 3");
  refuses(
      "layer_norm_backward", [&] { KokkosNN::layer_norm_backward(x, four, three, three, y, y, no_view, three); },
      "dbias must have.*4 columns, but has 3");
}

TEST(NormErrors, NameOptionsOutOfRange) {
  const Kokkos::View<float**, Memory> x("x", 3, 4), y("y", 3, 4);
  refuses("rms_norm", [&] { KokkosNN::rms_norm(x, no_view, y, {.axis = 2}); }, "axis 2 is out of range for rank 2");
  refuses("rms_norm", [&] { KokkosNN::rms_norm(x, no_view, y, {.epsilon = -1}); }, "epsilon must.*-1");
  refuses(
      "rms_norm", [&] { KokkosNN::rms_norm(x, no_view, y, {.weight_offset = infinity}); }, "weight_offset must.*inf");
  refuses(
      "layer_norm", [&] { KokkosNN::layer_norm(x, no_view, no_view, y, {.epsilon = not_a_value}); },
      "epsilon must.*nan");
  refuses(
      "layer_norm", [&] { KokkosNN::layer_norm(x, no_view, no_view, y, {.plan = {.packs_per_thread = 3}}); },
      "packs_per_thread 3");
  refuses(
      "rms_norm",
      [&] { KokkosNN::rms_norm(x, no_view, y, {.plan = {.strategy = RowStrategy::split_row, .launches = 2}}); },
      on_gpu ? "split_row cannot serve.*no second kernel" : "split_row cannot serve.*as one team");
}

TEST(NormErrors, RefuseWhatSharesMemoryWithAnOutput) {
  Buffer<float> buffer(10000);
  const auto rows   = [&](std::int64_t from) { return strided_view<2>(buffer.device() + from, right({10, 100})); };
  const auto values = [&](std::int64_t from, std::int64_t n) {
    return strided_view<1>(buffer.device() + from, right({n}));
  };
  refuses("rms_norm", [&] { KokkosNN::rms_norm(rows(0), no_view, rows(1)); }, "x at.*overlap");
  refuses("rms_norm", [&] { KokkosNN::rms_norm(rows(0), values(1050, 100), rows(1000)); }, "weight at.*overlap");
  refuses("rms_norm", [&] { KokkosNN::rms_norm(rows(0), no_view, rows(1000), values(1000, 10)); }, "rstd at.*overlap");
  refuses(
      "layer_norm",
      [&] { KokkosNN::layer_norm(rows(0), no_view, no_view, rows(1000), values(99, 10), values(3000, 10)); },
      "x at.*overlap");
  refuses(
      "rms_norm_backward",
      [&] { KokkosNN::rms_norm_backward(rows(0), no_view, values(4000, 10), rows(1000), rows(1999)); },
      "dy at.*overlap");
  refuses(
      "rms_norm_backward",
      [&] {
        KokkosNN::rms_norm_backward(rows(0), no_view, values(4000, 10), rows(1000), rows(1000), values(4005, 100));
      },
      "rstd at.*overlap");
  refuses(
      "layer_norm_backward",
      [&] {
        KokkosNN::layer_norm_backward(rows(0), no_view, values(4000, 10), values(4010, 10), rows(1000), rows(1000),
                                      values(5000, 100), values(5099, 100));
      },
      "dbias at.*overlap");
  refuses(
      "rms_norm",
      [&] { KokkosNN::rms_norm(rows(0), no_view, strided_view<2>(buffer.device() + 2000, {{10, 100}, {0, 1}})); },
      "share memory");
  buffer.download();
  EXPECT_TRUE(buffer.untouched());
}

}  // namespace
}  // namespace KokkosNNTest
