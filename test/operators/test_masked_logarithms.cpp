// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/instances.hpp"
#include "support/masked_strategies.hpp"
#include "support/recorder.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

// masked_log_softmax and masked_logsumexp: what masks are is tested with masked_softmax, and here what becomes of them
// in a logarithm.

namespace KokkosNNTest {
namespace {

template <class T, int Rank = 4>
using LogSoftmaxTrial = MaskedTrial<T, T, Rank, RowOperator::masked_log_softmax>;
template <class T, int Rank = 4>
using LogSumExpTrial = MaskedTrial<T, T, Rank, RowOperator::masked_logsumexp>;

/// f(trial) for a trial of each of the two operators.
template <class T, int Rank = 4, class F>
void with_both(const Index& extents, Recipe recipe, const F& f) {
  LogSoftmaxTrial<T, Rank> rows(extents, recipe);
  f(rows);
  LogSumExpTrial<T, Rank> values(extents, recipe);
  f(values);
}

template <class T>
class MaskedLogarithms : public ::testing::Test {};
TYPED_TEST_SUITE(MaskedLogarithms, ElementTypes, ElementNames);

TYPED_TEST(MaskedLogarithms, OfEachKindOfMaskMatch) {
  const MaskData<std::int64_t, 1> lengths(right({2}), [](const Index& i) { return 1 + 29 * i[0]; });
  const MaskData<float, 1> slopes(right({3}), [](const Index& i) { return 0.25f * static_cast<float>(i[0] + 1); });
  const MaskedSoftmaxOptions options{.scale = 0.5}, capped{.scale = -2, .softcap = 20};
  for (const std::int64_t cols : {1, 8, 33, 100, 256, 1000, 4097}) {
    const MaskData<TypeParam, 4> bias(right({1, 3, 1, cols}), bias_at<TypeParam>);
    const MaskData<bool, 2> keep(right({7, cols}), is_kept_at);
    with_both<TypeParam>({2, 3, 7, cols}, Recipe::uniform, [&](auto& trial) {
      EXPECT_TRUE(trial.run_correct(masks(), {}, options)) << cols;
      EXPECT_TRUE(trial.run_correct(CausalMask{5}, {[](const At& at) { return at.key <= at.query + 5; }}, options))
          << cols;
      EXPECT_TRUE(trial.run_correct(SlidingWindow{3, 2, 3},
                                    {[](const At& at) { return at.key >= at.query && at.key <= at.query + 5; }},
                                    {.masked_row = MaskedRowPolicy::zero}))
          << cols;
      EXPECT_TRUE(trial.run_correct(RowLengths{lengths.view()},
                                    {[&](const At& at) { return at.key < lengths({at.batch}); }}, options))
          << cols;
      EXPECT_TRUE(
          trial.run_correct(BooleanMask{keep.view()}, {[&](const At& at) { return keep({at.query, at.key}); }}, capped))
          << cols;
      EXPECT_TRUE(trial.run_correct(masks(AdditiveBias{bias.view()}, Alibi{slopes.view()}, CausalMask{20}),
                                    {[](const At& at) { return at.key <= at.query + 20; },
                                     [&](const At& at) {
                                       return exact(bias({0, at.head, 0, at.key})) -
                                              exact(slopes({at.head})) * std::fabs(Real(at.key - at.query));
                                     }},
                                    options))
          << cols;
    });
  }
}

TYPED_TEST(MaskedLogarithms, TakeTheirPathOnEveryStrategyAndMatch) {
  for (const RowStrategy strategy : value_strategies) {
    int served = 0;
    for (const std::int64_t cols : {1, 5, 32, 64, 100, 257, 1000, 4097}) {
      const StrategyMasks<TypeParam> mask(cols);
      with_both<TypeParam>({2, 3, 7, cols}, Recipe::uniform, [&](auto& trial) {
        served += takes_the_path(trial, mask.band(), mask.of_band(), on(strategy, {.scale = 0.5}));
        served += takes_the_path(trial, mask.joined(), mask.of_joined(), on(strategy, {.sinks = mask.sinks.view()}));
        Meaning band_and_sinks = mask.of_band();
        band_and_sinks.sinks   = {-1, 0, 1};
        served += takes_the_path(trial, mask.band(), band_and_sinks, on(strategy, {.sinks = mask.sinks.view()}));
      });
    }
    EXPECT_GE(served, 20) << to_string(strategy);
  }
}

TYPED_TEST(MaskedLogarithms, OfRowsSplitBetweenTeamsKeepTheirSink) {
  SKIP_WHERE_TEAMS_SHARE_NO_ROWS();
  for (const int teams : {1, 2, 4}) {
    if (teams > Exec().concurrency()) continue;
    for (const std::int64_t cols : {5, 64, 5003}) {
      const StrategyMasks<TypeParam> mask(cols);
      with_both<TypeParam>({2, 3, 7, cols}, Recipe::uniform, [&](auto& trial) {
        MaskedSoftmaxOptions options = on(RowStrategy::split_row, {.sinks = mask.sinks.view()});
        options.plan.teams_per_row   = teams;
        takes_the_path(trial, mask.joined(), mask.of_joined(), options);
      });
    }
  }
}

TEST(MaskedLogarithmPlans, HaveNoSecondKernelToSplitARowWith) {
  LogSoftmaxTrial<float> trial({2, 3, 7, 5003});
  MaskedSoftmaxOptions options = on(RowStrategy::split_row);
  options.plan.launches        = 2;
  EXPECT_THROW(trial.plan(CausalMask{}, options), std::invalid_argument);
}

TYPED_TEST(MaskedLogarithms, IgnoreANaNUnderTheMask) {
  for (const RowStrategy strategy : value_strategies) {
    for (const std::int64_t cols : {33, 256}) {
      const StrategyMasks<TypeParam> mask(cols);
      with_both<TypeParam>({2, 3, 7, cols}, Recipe::uniform, [&](auto& trial) {
        spoil_masked(trial, mask.of_band());
        takes_the_path(trial, mask.band(), mask.of_band(), on(strategy));
        spoil_masked(trial, mask.of_joined());
        takes_the_path(trial, mask.joined(), mask.of_joined(), on(strategy, {.sinks = mask.sinks.view()}));
      });
    }
  }
}

TYPED_TEST(MaskedLogarithms, OfNaNAndInfinityAmongAllowedColumnsFollowTheirRules) {
  const StrategyMasks<TypeParam> mask(100);
  for (const RowStrategy strategy : value_strategies) {
    with_both<TypeParam>({2, 3, 7, 100}, Recipe::uniform, [&](auto& trial) {
      trial.x_at({0, 1, 2, 50}) = TypeParam(not_a_number);  // allowed by the band of query 2: 49 to 52
      trial.x_at({1, 1, 2, 53}) = TypeParam(not_a_number);  // ruled out
      trial.x_at({1, 2, 0, 50}) = TypeParam(infinity);      // allowed
      trial.x_at({1, 2, 1, 49}) = TypeParam(-infinity);
      trial.x().upload();
      takes_the_path(trial, mask.band(), mask.of_band(), on(strategy));
      takes_the_path(trial, mask.joined(), mask.of_joined(), on(strategy, {.sinks = mask.sinks.view()}));
    });
  }
}

TYPED_TEST(MaskedLogarithms, OfARowWithoutAnAllowedColumnAreMinusInfinityOrTheSink) {
  const MaskData<std::int32_t, 3> lengths(right({2, 3, 7}),
                                          [](const Index& i) { return static_cast<std::int32_t>(i[2] - 3); });
  const Meaning by_length{[&](const At& at) { return at.key < lengths({at.batch, at.head, at.query}); }};
  const MaskData<float, 1> sinks(right({3}), [](const Index& i) { return -300.0f + 2 * static_cast<float>(i[0]); });
  const MaskData<float, 1> minus_infinity(right({1}), [](const Index&) { return float(-infinity); });
  for (const RowStrategy strategy : value_strategies) {
    for (const std::int64_t cols : {1, 40, 256}) {
      with_both<TypeParam>({2, 3, 7, cols}, Recipe::uniform, [&](auto& trial) {
        for (const auto policy : {MaskedRowPolicy::nan, MaskedRowPolicy::zero}) {
          MaskedSoftmaxOptions options = on(strategy, {.scale = 0.5, .masked_row = policy});
          takes_the_path(trial, RowLengths{lengths.view()}, by_length, options);
          takes_the_path(trial, AdditiveBias{minus_infinity.view()},
                         {.adds = [](const At&) { return -Reference::infinity; }}, options);
          options.sinks = sinks.view();
          takes_the_path(trial, RowLengths{lengths.view()}, {by_length.allows, nullptr, {-300, -298, -296}}, options);
        }
      });
    }
  }
}

TYPED_TEST(MaskedLogarithms, OfASinkThatIsNotFiniteFollowTheRulesOfAnElement) {
  const std::vector<double> values{-infinity, infinity, not_a_number};
  const MaskData<float, 1> sinks(right({3}), [&](const Index& i) { return static_cast<float>(values[i[0]]); });
  for (const RowStrategy strategy : value_strategies) {
    with_both<TypeParam>({2, 3, 7, 40}, Recipe::uniform, [&](auto& trial) {
      trial.x_at({0, 1, 2, 1}) = TypeParam(not_a_number);  // beside a sink of +inf
      trial.x().upload();
      takes_the_path(trial, CausalMask{}, {[](const At& at) { return at.key <= at.query; }, nullptr, values},
                     on(strategy, {.sinks = sinks.view()}));
    });
  }
}

TEST(MaskedLogSumExp, OfNoColumnsIsTheSink) {
  LogSumExpTrial<float> trial(right({2, 3, 7, 0}), right({2, 3, 7}));
  const MaskData<float, 1> sinks(right({3}), [](const Index& i) { return static_cast<float>(i[0]); });

  EXPECT_TRUE(trial.run_correct(CausalMask{}, {}));
  EXPECT_TRUE(trial.run_correct(CausalMask{}, {.sinks = {0, 1, 2}}, {.sinks = sinks.view()}));
}

TYPED_TEST(MaskedLogarithms, OfOtherRanksAndStridesMatch) {
  const Meaning causal{[](const At& at) { return at.key <= at.query + 20; }};
  with_both<TypeParam, 2>({9, 50}, Recipe::wide,
                          [&](auto& trial) { EXPECT_TRUE(trial.run_correct(CausalMask{20}, causal)); });
  with_both<TypeParam, 3>({4, 9, 50}, Recipe::wide,
                          [&](auto& trial) { EXPECT_TRUE(trial.run_correct(CausalMask{20}, causal)); });
  const Index shape{2, 3, 7, 41};
  const StrategyMasks<TypeParam> mask(41);
  for (const Placement& x : {right(shape, 5), left(shape), left(shape, 2)}) {
    LogSoftmaxTrial<TypeParam> rows(x, left(shape, 1));
    LogSumExpTrial<TypeParam> values(x, left({2, 3, 7}, 1));
    EXPECT_TRUE(rows.run_correct(mask.joined(), mask.of_joined(), {.sinks = mask.sinks.view()}));
    EXPECT_TRUE(values.run_correct(mask.joined(), mask.of_joined(), {.sinks = mask.sinks.view()}));
  }
}

TYPED_TEST(MaskedLogarithms, InPlaceMatch) {
  for (const RowStrategy strategy : row_strategies) {
    LogSoftmaxTrial<TypeParam> trial({2, 3, 7, 100});
    const StrategyMasks<TypeParam> mask(100);
    const MaskedSoftmaxOptions options = on(strategy, {.sinks = mask.sinks.view()});
    std::copy_n(trial.x().host(), trial.x().count(), trial.y().host());
    trial.y().upload();

    trial.apply(Exec(), trial.y_view(), mask.joined(), trial.y_view(), options);
    Exec().fence();

    trial.y().download();
    EXPECT_TRUE(trial.correct(mask.of_joined(), options)) << to_string(strategy);
  }
}

TYPED_TEST(MaskedLogarithms, DoNotDependOnTheBatchIfTheyMustNot) {
  const std::int64_t cols = 1000;
  const StrategyMasks<TypeParam> mask(cols);
  const MaskedSoftmaxOptions options{.sinks = mask.sinks.view(), .determinism = Determinism::batch_invariant};
  with_both<TypeParam>({1, 3, 7, cols}, Recipe::wide, [&](auto& alone) {
    alone.run(mask.joined(), options);
    std::decay_t<decltype(alone)> many({9, 3, 7, cols}, Recipe::wide);
    for (std::int64_t b = 0; b < 9; ++b) std::copy_n(alone.x().host(), 21 * cols, many.x().host() + b * 21 * cols);
    many.x().upload();

    many.run(mask.joined(), options);

    const std::int64_t results = alone.y().count();
    for (std::int64_t b = 0; b < 9; ++b) {
      ASSERT_EQ(std::memcmp(alone.y().host(), many.y().host() + b * results, results * sizeof(TypeParam)), 0)
          << "batch " << b;
    }
  });
}

// --- behaviour towards Kokkos ---

TEST(MaskedLogarithmKokkosBehaviour, LabelsAreOursAndASecondCallNeitherFencesNorAllocates) {
  const StrategyMasks<float> mask(60);
  const MaskedSoftmaxOptions options{.sinks = mask.sinks.view()};
  with_both<float>({2, 3, 7, 60}, Recipe::uniform, [&](auto& trial) {
    const Exec exec = other_instance();
    const auto call = [&] { trial.apply(exec, trial.x_view(), mask.joined(), trial.y_view(), options); };
    call();
    exec.fence();
    Recorder recorder;

    call();

    const RowPlan plan = trial.plan(mask.joined(), options);
    EXPECT_EQ(recorder.kernel_labels(), std::vector{to_string(plan)});
    EXPECT_EQ(recorder.regions, std::vector{std::string("KokkosNN::") + to_string(plan.op)});
    EXPECT_TRUE(recorder.neither_fenced_nor_allocated());
    exec.fence();
  });
}

TEST(MaskedLogarithmKokkosBehaviour, PlanObjectsRunAsOftenAsTheyAreAskedTo) {
  const StrategyMasks<float> mask(60);
  const MaskedSoftmaxOptions options{.sinks = mask.sinks.view()};
  const auto expect_runs = [&](const auto& plan, auto& trial) {
    EXPECT_EQ(plan.row_plan(), trial.plan(mask.joined(), options));
    for (int run = 0; run < 2; ++run) {
      trial.y().poison_all();
      plan.run();
      Exec().fence();
      trial.y().download();
      EXPECT_TRUE(trial.correct(mask.of_joined(), options)) << "run " << run;
    }
  };
  LogSoftmaxTrial<float> rows({2, 3, 7, 60});
  expect_runs(KokkosNN::MaskedLogSoftmaxPlan(Exec(), rows.x_view(), mask.joined(), rows.y_view(), options), rows);
  LogSumExpTrial<float> values({2, 3, 7, 60});
  expect_runs(KokkosNN::MaskedLogSumExpPlan(Exec(), values.x_view(), mask.joined(), values.y_view(), options), values);
}

// --- errors ---

TEST(MaskedLogarithmErrors, NameTheFunctionAndTheOffendingValues) {
  const MaskData<bool, 2> keep(right({6, 40}), is_kept_at);
  const MaskData<double, 1> doubles(right({3}), [](const Index&) { return 1.0; });
  const auto refuses = [](auto& trial, const auto& mask, const MaskedSoftmaxOptions& options, const std::string& text) {
    std::string complaint = "(nothing was thrown)";
    const auto kernels    = kernels_of([&] {
      try {
        trial.call(mask, options);
      } catch (const std::invalid_argument& e) {
        complaint = e.what();
      }
    });
    EXPECT_EQ(complaint.rfind("KokkosNN::" + text, 0), 0u) << complaint;
    EXPECT_TRUE(kernels.empty());
    trial.y().download();
    EXPECT_TRUE(trial.y().untouched());
  };
  with_both<float>({2, 3, 7, 40}, Recipe::uniform, [&](auto& trial) {
    const std::string name = trial.has_values ? "masked_logsumexp: " : "masked_log_softmax: ";
    refuses(trial, BooleanMask{keep.view()}, {},
            name + "BooleanMask of extents (6, 40) does not broadcast to (2, 3, 7, 40)");
    refuses(trial, CausalMask{}, {.sinks = doubles.view()},
            name + "options.sinks must hold x's type, f32, or f32, but hold f64");
    refuses(trial, CausalMask{}, {.scale = 0}, name + "|scale| must be within 2^-100 to 2^100, but scale is 0");
    refuses(trial, CausalMask{}, on(RowStrategy::inner_lanes), name + "inner_lanes cannot serve 42 rows of 40 f32");
  });
  LogSumExpTrial<float> trial(right({2, 3, 7, 40}), right({2, 3, 8}));
  refuses(trial, CausalMask{}, {},
          "masked_logsumexp: lse must have the extents of x without the axis, (2, 3, 7), but x is (2, 3, 7, 40)");
}

TEST(MaskedLogarithmErrors, OfAPlanForAnotherOperatorAreNamed) {
  LogSoftmaxTrial<float> trial({2, 3, 7, 40});
  EXPECT_THROW(KokkosNN::make_plan(RowOperator::softmax, Exec(), trial.x_view(), CausalMask{}, trial.y_view()),
               std::invalid_argument);
}

}  // namespace
}  // namespace KokkosNNTest
