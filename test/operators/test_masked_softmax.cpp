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
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace KokkosNNTest {
namespace {

/// Widths around packs, teams and what strategies can hold.
const std::vector<std::int64_t>& masked_widths() {
  static const std::vector<std::int64_t> all{1,  2,   3,   5,   8,   17,  31,   32,   33,
                                             64, 100, 128, 255, 256, 257, 1000, 1024, 4097};
  return all;
}

template <class T>
class MaskedSoftmax : public ::testing::Test {
 protected:
  /// Each mask on tensors of several shapes, results against the oracle.
  template <class M>
  static void check(const M& mask, const Meaning& meaning, const MaskedSoftmaxOptions& options = {}) {
    for (const std::int64_t cols : masked_widths()) {
      MaskedTrial<T> trial({2, 3, 7, cols});

      ASSERT_TRUE(trial.run_correct(mask, meaning, options)) << cols << " columns";
    }
  }
};
TYPED_TEST_SUITE(MaskedSoftmax, ElementTypes, ElementNames);

// --- each mask alone ---

TYPED_TEST(MaskedSoftmax, WithoutAMaskIsSoftmax) { this->check(masks(), {}); }

TYPED_TEST(MaskedSoftmax, ACausalMaskLetsAQueryLookBack) {
  for (const std::int64_t offset : {0, 1, 5, 30, 1000}) {
    this->check(CausalMask{offset}, {[=](const At& at) { return at.key <= at.query + offset; }});
  }
}

TYPED_TEST(MaskedSoftmax, ASlidingWindowLetsAQueryLookAround) {
  for (const std::int64_t left : {0, 3, 70}) {
    for (const std::int64_t right : {0, 2, 90}) {
      const std::int64_t offset = 2 * left;
      this->check(SlidingWindow{left, right, offset}, {[=](const At& at) {
                    const std::int64_t middle = at.query + offset;
                    return at.key >= middle - left && at.key <= middle + right;
                  }},
                  {.masked_row = MaskedRowPolicy::zero});
    }
  }
  this->check(SlidingWindow{.left = 4}, {[](const At& at) { return at.key >= at.query - 4; }},
              {.masked_row = MaskedRowPolicy::zero});
}

TYPED_TEST(MaskedSoftmax, LengthsARowEndARow) {
  const MaskData<std::int32_t, 3> lengths(
      right({2, 3, 7}), [](const Index& i) { return static_cast<std::int32_t>(1 + 40 * i[0] + 9 * i[1] + i[2]); });
  this->check(RowLengths{lengths.view()},
              {[&](const At& at) { return at.key < lengths({at.batch, at.head, at.query}); }});
}

TYPED_TEST(MaskedSoftmax, LengthsABatchEndItsRows) {
  const MaskData<std::int64_t, 1> lengths(right({2}), [](const Index& i) { return 1 + 29 * i[0]; });
  this->check(RowLengths{lengths.view()}, {[&](const At& at) { return at.key < lengths({at.batch}); }});
}

TYPED_TEST(MaskedSoftmax, ABooleanMaskKeepsWhatItSays) {
  for (const std::int64_t cols : masked_widths()) {
    MaskedTrial<TypeParam> trial({2, 3, 7, cols});
    const MaskData<bool, 4> keep(right({2, 3, 7, cols}), is_kept_at);

    ASSERT_TRUE(trial.run_correct(BooleanMask{keep.view()},
                                  {[&](const At& at) { return keep({at.batch, at.head, at.query, at.key}); }},
                                  {.scale = 0.7, .masked_row = MaskedRowPolicy::zero}))
        << cols << " columns";
  }
}

TYPED_TEST(MaskedSoftmax, AnAdditiveBiasOfTheTypeOfXOrOfFloatIsAdded) {
  for (const std::int64_t cols : masked_widths()) {
    MaskedTrial<TypeParam> trial({2, 3, 7, cols});
    const MaskData<TypeParam, 4> own(right({2, 3, 7, cols}), bias_at<TypeParam>);
    const MaskData<float, 4> in_float(right({2, 3, 7, cols}), bias_at<float>);

    ASSERT_TRUE(trial.run_correct(
        AdditiveBias{own.view()},
        {.adds = [&](const At& at) { return exact(own({at.batch, at.head, at.query, at.key})); }}, {.scale = 0.5}))
        << cols << " columns";
    ASSERT_TRUE(trial.run_correct(
        AdditiveBias{in_float.view()},
        {.adds = [&](const At& at) { return exact(in_float({at.batch, at.head, at.query, at.key})); }},
        {.scale = -0.5}))
        << cols << " columns";
  }
}

TYPED_TEST(MaskedSoftmax, AlibiOfAFourDimensionalBatchTakesTheSlopeOfItsHead) {
  const MaskData<TypeParam, 1> slopes(right({3}), [](const Index& i) { return TypeParam(0.5 / double(1 << i[0])); });
  for (const std::int64_t offset : {0, 4}) {
    this->check(Alibi{slopes.view(), offset}, {.adds = [&, offset](const At& at) {
                  return -exact(slopes({at.head})) * std::fabs(Real(at.key - at.query - offset));
                }});
  }
}

TYPED_TEST(MaskedSoftmax, ASoftcapBoundsTheLogits) {
  this->check(masks(), {}, {.scale = 3, .softcap = 5});
  this->check(CausalMask{3}, {[](const At& at) { return at.key <= at.query + 3; }}, {.scale = -0.5, .softcap = 30});
}

TYPED_TEST(MaskedSoftmax, ASinkJoinsTheSumOfItsHead) {
  for (const double size : {0.0, 2.0, 60.0, -60.0}) {
    const MaskData<float, 1> sinks(right({3}),
                                   [&](const Index& i) { return static_cast<float>(size * (1 - 0.4 * double(i[0]))); });
    const std::vector<double> values{sinks({0}), sinks({1}), sinks({2})};
    this->check(masks(), {.sinks = values}, {.scale = 0.25, .sinks = sinks.view()});
    this->check(CausalMask{}, {[](const At& at) { return at.key <= at.query; }, nullptr, values},
                {.scale = -3, .sinks = sinks.view()});
  }
}

// --- joined ---

TYPED_TEST(MaskedSoftmax, AllMasksJoinedAllowWhatEachAllows) {
  const MaskData<std::int32_t, 1> lengths(right({2}),
                                          [](const Index& i) { return static_cast<std::int32_t>(20 + 300 * i[0]); });
  const MaskData<float, 1> slopes(right({3}),
                                  [](const Index& i) { return static_cast<float>(0.25 / double(1 << i[0])); });
  const MaskData<TypeParam, 1> sinks(right({3}), [](const Index& i) { return TypeParam(double(i[0]) - 1); });
  for (const std::int64_t cols : masked_widths()) {
    MaskedTrial<TypeParam> trial({2, 3, 7, cols});
    const MaskData<bool, 2> keep(right({7, cols}), is_kept_at);
    const MaskData<TypeParam, 4> bias(right({1, 3, 1, cols}), bias_at<TypeParam>);
    const auto mask =
        masks(RowLengths{lengths.view()}, BooleanMask{keep.view()}, CausalMask{cols - 7}, AdditiveBias{bias.view()},
              SlidingWindow{.left = 200, .offset = cols - 7}, Alibi{slopes.view(), cols - 7});
    const Meaning meaning{[&](const At& at) {
                            const std::int64_t middle = at.query + cols - 7;
                            return at.key < lengths({at.batch}) && keep({at.query, at.key}) && at.key <= middle &&
                                   at.key >= middle - 200;
                          },
                          [&](const At& at) {
                            return exact(bias({0, at.head, 0, at.key})) -
                                   exact(slopes({at.head})) * std::fabs(Real(at.key - at.query - cols + 7));
                          },
                          {-1, 0, 1}};

    ASSERT_TRUE(trial.run_correct(mask, meaning, {.scale = 0.5, .softcap = 20, .sinks = sinks.view()}))
        << cols << " columns";
  }
}

// --- every strategy ---

template <class T>
class MaskedStrategies : public ::testing::Test {};
TYPED_TEST_SUITE(MaskedStrategies, ElementTypes, ElementNames);

TYPED_TEST(MaskedStrategies, EachTakesItsPathAndMatches) {
  for (const RowStrategy strategy : row_strategies) {
    int served = 0;
    for (const std::int64_t cols : masked_widths()) {
      MaskedTrial<TypeParam> trial({2, 3, 7, cols});
      const StrategyMasks<TypeParam> mask(cols);

      served += takes_the_path(trial, mask.band(), mask.of_band(), on(strategy, {.scale = 0.5}));
      served += takes_the_path(trial, mask.joined(), mask.of_joined(), on(strategy, {.sinks = mask.sinks.view()}));
    }
    EXPECT_GT(served, 10) << to_string(strategy);
  }
}

TYPED_TEST(MaskedStrategies, RowsSplitBetweenTeamsMatch) {
  SKIP_WHERE_TEAMS_SHARE_NO_ROWS();
  for (const int launches : {1, 2}) {
    for (const int teams : {1, 2, 4}) {
      if (teams > Exec().concurrency() && launches == 1) continue;
      for (const std::int64_t cols : {5, 64, 1000, 5003}) {
        MaskedTrial<TypeParam> trial({2, 3, 7, cols});
        const StrategyMasks<TypeParam> mask(cols);
        MaskedSoftmaxOptions options = on(RowStrategy::split_row, {.sinks = mask.sinks.view()});
        options.plan.teams_per_row   = teams;
        options.plan.launches        = launches;
        takes_the_path(trial, mask.joined(), mask.of_joined(), options);
        options.sinks = {};
        takes_the_path(trial, mask.band(), mask.of_band(), options);
      }
    }
  }
}

TYPED_TEST(MaskedStrategies, RowsSplitWithinATileHaveNoLogitsBehindATeamsPart) {
  const MaskData<TypeParam, 2> bias(right({7, 301}), bias_at<TypeParam>);
  const Meaning biased{[](const At&) { return true; }, [&](const At& at) { return exact(bias({at.query, at.key})); }};
  MaskedTrial<TypeParam> trial({2, 3, 7, 301});

  // A GPU may have no such kernel of rows that are not aligned.
  EXPECT_TRUE(takes_the_path(trial, masks(), {}, on(shared_rows, {.softcap = 3})) || on_gpu);
  EXPECT_TRUE(takes_the_path(trial, AdditiveBias{bias.view()}, biased, on(shared_rows, {.scale = -2})) || on_gpu);
}

TYPED_TEST(MaskedStrategies, TeamsOfSeveralThreadsMatch) {
  const int team_size = on_gpu ? 128 : std::min(4, Exec().concurrency());
  for (const RowStrategy strategy : row_strategies) {
    for (const std::int64_t cols : {3, 100, 700}) {
      MaskedTrial<TypeParam> trial({2, 3, 7, cols});
      const StrategyMasks<TypeParam> mask(cols);
      MaskedSoftmaxOptions options = on(strategy, {.sinks = mask.sinks.view()});
      options.plan.team_size       = team_size;

      takes_the_path(trial, mask.joined(), mask.of_joined(), options);
      options.sinks = {};
      takes_the_path(trial, mask.band(), mask.of_band(), options);
    }
  }
}

TEST(MaskedInnerLanes, AreRefusedWithAReason) {
  MaskedTrial<float> trial({2, 3, 7, 40});
  std::string text;
  try {
    trial.call(CausalMask{}, on(RowStrategy::inner_lanes));
  } catch (const std::invalid_argument& e) {
    text = e.what();
  }
  EXPECT_NE(text.find("KokkosNN::masked_softmax: inner_lanes cannot serve 42 rows of 40 f32"), std::string::npos)
      << text;
}

// --- what other libraries are known to get wrong ---

TYPED_TEST(MaskedSoftmax, ANaNUnderTheMaskIsIgnored) {
  for (const RowStrategy strategy : row_strategies) {
    for (const std::int64_t cols : {33, 100, 256}) {
      MaskedTrial<TypeParam> trial({2, 3, 7, cols});
      const StrategyMasks<TypeParam> mask(cols);
      spoil_masked(trial, mask.of_band());
      takes_the_path(trial, mask.band(), mask.of_band(), on(strategy));
      spoil_masked(trial, mask.of_joined());
      takes_the_path(trial, mask.joined(), mask.of_joined(), on(strategy, {.sinks = mask.sinks.view()}));
      takes_the_path(trial, mask.joined(), {mask.of_joined().allows}, on(strategy, {.scale = -2, .softcap = 4}));
    }
  }
}

TYPED_TEST(MaskedSoftmax, ANaNInAMaskedRowStaysNaNUnlessItIsMaskedItself) {
  MaskedTrial<TypeParam> trial({2, 3, 7, 100});
  const StrategyMasks<TypeParam> mask(100);
  trial.x_at({0, 1, 2, 50}) = TypeParam(not_a_number);  // allowed by the band of query 2: 49 to 52
  trial.x_at({1, 1, 2, 53}) = TypeParam(not_a_number);  // ruled out
  trial.x_at({1, 2, 0, 50}) = TypeParam(infinity);      // allowed: NaN, as in softmax
  trial.x().upload();
  for (const RowStrategy strategy : row_strategies) {
    for (const auto policy : {MaskedRowPolicy::nan, MaskedRowPolicy::zero}) {
      takes_the_path(trial, mask.band(), mask.of_band(), on(strategy, {.masked_row = policy}));
      EXPECT_TRUE(std::isnan(exact(trial.y().host()[(1 * 7 + 2) * 100 + 99]))) << "its masked columns too";
      EXPECT_FALSE(std::isnan(exact(trial.y().host()[((3 + 1) * 7 + 2) * 100 + 50])));
    }
  }
}

TYPED_TEST(MaskedSoftmax, ARowWithoutAnAllowedColumnIsNaNOrZeroAndNeverUniform) {
  const MaskData<std::int32_t, 3> lengths(right({2, 3, 7}),
                                          [](const Index& i) { return static_cast<std::int32_t>(i[2] - 3); });
  const Meaning by_length{[&](const At& at) { return at.key < lengths({at.batch, at.head, at.query}); }};
  const MaskData<float, 1> sinks(right({1}), [](const Index&) { return -300.0f; });
  for (const RowStrategy strategy : row_strategies) {
    for (const std::int64_t cols : {1, 40, 256}) {
      MaskedTrial<TypeParam> trial({2, 3, 7, cols});
      const MaskData<bool, 1> none(right({cols}), [](const Index&) { return false; });
      const MaskData<float, 1> minus_infinity(right({1}), [](const Index&) { return float(-infinity); });
      for (const auto policy : {MaskedRowPolicy::nan, MaskedRowPolicy::zero}) {
        const auto options = on(strategy, {.scale = 0.5, .masked_row = policy});
        takes_the_path(trial, RowLengths{lengths.view()}, by_length, options);
        takes_the_path(trial, CausalMask{-4}, {[](const At& at) { return at.key <= at.query - 4; }}, options);
        takes_the_path(trial, BooleanMask{none.view()}, {[](const At&) { return false; }}, options);
        takes_the_path(trial, AdditiveBias{minus_infinity.view()},
                       {.adds = [](const At&) { return -Reference::infinity; }}, options);
        // All of its weight is the sink's.
        MaskedSoftmaxOptions with_sink = options;
        with_sink.sinks                = sinks.view();
        takes_the_path(trial, RowLengths{lengths.view()}, {by_length.allows, nullptr, {-300, -300, -300}}, with_sink);
      }
    }
  }
}

TYPED_TEST(MaskedSoftmax, ASoftcapDoesNotOverflowHoweverLargeTheLogits) {
  for (const double size : {87.0, 89.0, 710.0, 1e4}) {
    MaskedTrial<TypeParam> trial({1, 1, 4, 40});
    for (std::int64_t i = 0; i < 160; ++i) trial.x().host()[i] = TypeParam(double(i % 3 - 1) * size);
    trial.x().host()[7]  = TypeParam(infinity);  // +softcap
    trial.x().host()[50] = TypeParam(-infinity);
    trial.x().upload();

    EXPECT_TRUE(trial.run_correct(masks(), {}, {.softcap = 1})) << size;
    EXPECT_TRUE(trial.run_correct(CausalMask{2}, {[](const At& at) { return at.key <= at.query + 2; }},
                                  {.scale = -1, .softcap = 0.5}))
        << size;
  }
}

TYPED_TEST(MaskedSoftmax, ASinkIsPartOfTheMaximum) {
  // With logits of -200 an off-by-one softmax is all but 0: exp(-200), and not exp(0), times what the sink leaves.
  const MaskData<float, 1> zeros(right({3}), [](const Index&) { return 0.0f; });
  const MaskData<float, 1> large(right({3}), [](const Index&) { return 300.0f; });
  MaskedTrial<TypeParam> trial({2, 3, 7, 40});
  for (const double logit : {-200.0, -20.0, 0.0, 20.0, 200.0}) {
    std::fill_n(trial.x().host(), trial.x().count(), TypeParam(logit));
    trial.x().upload();

    EXPECT_TRUE(trial.run_correct(masks(), {.sinks = {0, 0, 0}}, {.sinks = zeros.view()})) << logit;
    EXPECT_TRUE(trial.run_correct(masks(), {.sinks = {300, 300, 300}}, {.sinks = large.view()})) << logit;
    EXPECT_TRUE(trial.run_correct(masks(), {.sinks = {0, 0, 0}}, {.scale = -30, .sinks = zeros.view()})) << logit;
  }
}

TYPED_TEST(MaskedSoftmax, ASinkThatIsNotFiniteFollowsTheRulesOfAnElement) {
  const std::vector<double> values{-infinity, infinity, not_a_number};
  const MaskData<float, 1> sinks(right({3}), [&](const Index& i) { return static_cast<float>(values[i[0]]); });
  MaskedTrial<TypeParam> trial({2, 3, 7, 40});

  EXPECT_TRUE(trial.run_correct(CausalMask{}, {[](const At& at) { return at.key <= at.query; }, nullptr, values},
                                {.sinks = sinks.view()}));
}

TYPED_TEST(MaskedSoftmax, ASinkThatNoScaledLogitReachesTakesOrLeavesAllWeight) {
  const auto most = static_cast<double>(largest<TypeParam>());
  const std::vector<double> values{2e38, -2e38, 0};  // with a scale of 2^-10 beyond all logits of float
  const MaskData<float, 1> sinks(right({3}), [&](const Index& i) { return static_cast<float>(values[i[0]]); });
  for (const RowStrategy strategy : row_strategies) {
    for (const double scale : {0x1p-10, -0x1p-10}) {
      MaskedTrial<TypeParam> trial({2, 3, 7, 40});
      for (std::int64_t i = 0; i < trial.x().count(); ++i) {
        const std::int64_t row = i / 40;
        if (row % 7 == 1) trial.x().host()[i] = TypeParam(i % 2 == 0 ? most : -most);
        if (row % 7 == 2) trial.x().host()[i] = TypeParam(scale > 0 ? -infinity : infinity);
      }
      trial.x().upload();

      EXPECT_TRUE(trial.run_correct(masks(), {.sinks = values}, on(strategy, {.scale = scale, .sinks = sinks.view()})))
          << to_string(strategy) << ", scale " << scale;
    }
  }
}

TYPED_TEST(MaskedSoftmax, ResultsDoNotDependOnTheBatchIfTheyMustNot) {
  const std::int64_t cols = 1000;
  const StrategyMasks<TypeParam> mask(cols);
  const MaskedSoftmaxOptions options{.sinks = mask.sinks.view(), .determinism = Determinism::batch_invariant};
  MaskedTrial<TypeParam> alone({1, 3, 7, cols}, Recipe::wide);
  alone.run(mask.joined(), options);
  for (const std::int64_t batch : {2, 9, 64}) {
    MaskedTrial<TypeParam> many({batch, 3, 7, cols}, Recipe::wide);
    for (std::int64_t b = 0; b < batch; ++b) {
      std::copy_n(alone.x().host(), 21 * cols, many.x().host() + b * 21 * cols);
    }
    many.x().upload();

    many.run(mask.joined(), options);

    for (std::int64_t b = 0; b < batch; ++b) {
      ASSERT_EQ(std::memcmp(alone.y().host(), many.y().host() + b * 21 * cols, 21 * cols * sizeof(TypeParam)), 0)
          << "batch " << b << " of " << batch;
    }
  }
}

TYPED_TEST(MaskedSoftmax, TheSameCallGivesTheSameBitsEveryTime) {
  for (const RowStrategy strategy : row_strategies) {
    MaskedTrial<TypeParam> trial({2, 3, 7, 100}, Recipe::wide);
    const StrategyMasks<TypeParam> mask(100);
    trial.run(mask.joined(), on(strategy, {.sinks = mask.sinks.view()}));
    const std::vector<TypeParam> first(trial.y().host(), trial.y().host() + trial.y().count());
    for (int run = 0; run < 5; ++run) {
      trial.run(mask.joined(), on(strategy, {.sinks = mask.sinks.view()}));

      ASSERT_EQ(std::memcmp(first.data(), trial.y().host(), first.size() * sizeof(TypeParam)), 0)
          << to_string(strategy);
    }
  }
}

// --- broadcast, layouts, in place ---

TYPED_TEST(MaskedSoftmax, MasksBroadcastOverLeadingAxesByExtentOneAndByStrideZero) {
  const std::int64_t cols = 70;
  MaskedTrial<TypeParam> trial({2, 3, 7, cols});
  const Index shapes[] = {{2, 3, 7, cols}, {1, 3, 7, cols}, {2, 1, 1, cols},
                          {1, 1, 7, 1},    {1, 1, 1, cols}, {2, 3, 1, 1}};
  for (const Index& shape : shapes) {
    const auto index = [&](const At& at) {
      return Index{shape[0] == 1 ? 0 : at.batch, shape[1] == 1 ? 0 : at.head, shape[2] == 1 ? 0 : at.query,
                   shape[3] == 1 ? 0 : at.key};
    };
    Placement strides_zero{{2, 3, 7, cols}, right(shape).strides, 0};
    for (int d = 0; d < 4; ++d) {
      if (shape[d] == 1) strides_zero.strides[d] = 0;
    }
    for (const Placement& place : {right(shape), left(shape), strides_zero}) {
      const MaskData<bool, 4> keep(place, is_kept_at);
      const MaskData<float, 4> bias(place, bias_at<float>);

      EXPECT_TRUE(trial.run_correct(BooleanMask{keep.view()}, {[&](const At& at) { return keep(index(at)); }},
                                    {.masked_row = MaskedRowPolicy::zero}));
      EXPECT_TRUE(
          trial.run_correct(AdditiveBias{bias.view()}, {.adds = [&](const At& at) { return exact(bias(index(at))); }}));
    }
  }
}

TYPED_TEST(MaskedSoftmax, AMaskOfFewerAxesLinesUpWithTheLast) {
  const std::int64_t cols = 40;
  MaskedTrial<TypeParam> trial({2, 3, 7, cols});
  const MaskData<bool, 1> columns(right({cols}), [](const Index& i) { return i[0] % 3 != 1; });
  const MaskData<float, 3> bias(right({3, 1, cols}), bias_at<float>);
  const MaskData<float, 0> all(Placement{}, [](const Index&) { return 2.5f; });
  const MaskData<std::int32_t, 2> lengths(right({3, 1}),
                                          [](const Index& i) { return static_cast<std::int32_t>(5 + 9 * i[0]); });

  EXPECT_TRUE(trial.run_correct(BooleanMask{columns.view()}, {[&](const At& at) { return at.key % 3 != 1; }}));
  EXPECT_TRUE(trial.run_correct(AdditiveBias{bias.view()},
                                {.adds = [&](const At& at) { return exact(bias({at.head, 0, at.key})); }}));
  EXPECT_TRUE(trial.run_correct(AdditiveBias{all.view()}, {.adds = [](const At&) { return 2.5L; }}));
  EXPECT_TRUE(
      trial.run_correct(RowLengths{lengths.view()}, {[&](const At& at) { return at.key < lengths({at.head, 0}); }}));
}

TYPED_TEST(MaskedSoftmax, AnyLayoutAndAlignmentOfXYAndTheMasksMatches) {
  for (const std::int64_t cols : {40, 333}) {
    const Index shape{2, 3, 7, cols};
    const Placement transposed{shape, {21 * cols, cols, 3 * cols, 1}, 0};  // (batch, query, head, key) in memory
    const Placement places[] = {right(shape, 5), left(shape), left(shape, 2), transposed};
    const StrategyMasks<TypeParam> mask(cols);
    for (const Placement& x : places) {
      for (const Placement& y : places) {
        for (const int misalignment : {0, 1}) {
          MaskedTrial<TypeParam> trial(x, y, Recipe::uniform, misalignment);
          const MaskData<TypeParam, 4> bias(x, bias_at<TypeParam>, misalignment);

          EXPECT_TRUE(trial.run_correct(mask.joined(), mask.of_joined(), {.sinks = mask.sinks.view()}));
          EXPECT_TRUE(trial.run_correct(masks(mask.band(), AdditiveBias{bias.view()}),
                                        {mask.of_band().allows, [&](const At& at) {
                                           return exact(bias({at.batch, at.head, at.query, at.key}));
                                         }}));
        }
      }
    }
  }
}

TYPED_TEST(MaskedSoftmax, InPlaceMatches) {
  for (const RowStrategy strategy : row_strategies) {
    for (const std::int64_t cols : {40, 256, 333}) {
      MaskedTrial<TypeParam> trial({2, 3, 7, cols});
      const StrategyMasks<TypeParam> mask(cols);
      const auto options = on(strategy, {.sinks = mask.sinks.view()});
      try {
        trial.plan(mask.joined(), options);
      } catch (const std::invalid_argument&) {
        continue;
      }
      std::copy_n(trial.x().host(), trial.x().count(), trial.y().host());
      trial.y().upload();

      KokkosNN::masked_softmax(Exec(), trial.y_view(), mask.joined(), trial.y_view(), options);
      Exec().fence();

      trial.y().download();
      EXPECT_TRUE(trial.correct(mask.of_joined(), options)) << to_string(strategy) << ", " << cols << " columns";
    }
  }
}

TYPED_TEST(MaskedSoftmax, OtherRanksMatch) {
  const auto causal = [](const At& at) { return at.key <= at.query + 20; };
  MaskedTrial<TypeParam, TypeParam, 2> two({9, 50});
  MaskedTrial<TypeParam, TypeParam, 3> three({4, 9, 50});
  MaskedTrial<TypeParam, TypeParam, 5> five({2, 2, 3, 9, 50});
  const MaskData<float, 1> slopes(right({3}), [](const Index& i) { return 0.125f * static_cast<float>(i[0]); });
  const MaskData<std::int64_t, 1> lengths(right({9}), [](const Index& i) { return 3 * i[0] + 2; });
  const Meaning with_slopes{
      causal, [&](const At& at) { return -exact(slopes({at.head})) * std::fabs(Real(at.key - at.query)); }};

  EXPECT_TRUE(two.run_correct(CausalMask{20}, {causal}));
  EXPECT_TRUE(
      two.run_correct(RowLengths{lengths.view()}, {[&](const At& at) { return at.key < lengths({at.query}); }}));
  EXPECT_TRUE(three.run_correct(CausalMask{20}, {causal}));
  EXPECT_TRUE(five.run_correct(masks(CausalMask{20}, Alibi{slopes.view()}), with_slopes));
}

TEST(MaskedTypes, AnOutputOfAnotherTypeMatches) {
  const auto causal = [](const At& at) { return at.key <= at.query + 20; };
  MaskedTrial<float, double> trial({2, 3, 9, 50});
  const MaskData<float, 1> slopes(right({3}), [](const Index& i) { return 0.125f * static_cast<float>(i[0]); });

  EXPECT_TRUE(trial.run_correct(CausalMask{20}, {causal}));
  EXPECT_TRUE(trial.run_correct(
      masks(CausalMask{20}, Alibi{slopes.view()}),
      {causal, [&](const At& at) { return -exact(slopes({at.head})) * std::fabs(Real(at.key - at.query)); }}));
}

TYPED_TEST(MaskedSoftmax, NothingIsWrittenWhereThereIsNothing) {
  for (const Index& shape : {Index{0, 3, 7, 40}, Index{2, 3, 0, 40}, Index{2, 3, 7, 0}}) {
    MaskedTrial<TypeParam> trial(shape);
    const auto kernels = kernels_of([&] { trial.call(CausalMask{}); });
    EXPECT_TRUE(kernels.empty());
  }
}

#ifdef __linux__
/// Rows of two pages each, of which the second may not be touched.
class GuardedRows {
 public:
  explicit GuardedRows(std::int64_t rows)
      : m_page(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))),
        m_bytes(2 * m_page * static_cast<std::size_t>(rows)),
        m_memory(mmap(nullptr, m_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    for (std::size_t page = m_page; m_memory != MAP_FAILED && page < m_bytes; page += 2 * m_page) {
      if (mprotect(static_cast<char*>(m_memory) + page, m_page, PROT_NONE) != 0) m_is_guarded = false;
    }
  }
  ~GuardedRows() {
    if (m_memory != MAP_FAILED) munmap(m_memory, m_bytes);
  }
  GuardedRows(const GuardedRows&)            = delete;
  GuardedRows& operator=(const GuardedRows&) = delete;

  bool exist() const { return m_memory != MAP_FAILED && m_is_guarded; }
  const float* data() const { return static_cast<const float*>(m_memory); }
  std::int64_t page() const { return static_cast<std::int64_t>(m_page / sizeof(float)); }

 private:
  std::size_t m_page;
  std::size_t m_bytes;
  void* m_memory;
  bool m_is_guarded = true;
};

/// Rows of zeros and their gradient, on every strategy that takes them: what is allowed shares the weight.
template <class X, class M, class Allows>
void expect_shares(const X& x, const M& mask, const Allows& allows) {
  const auto rows = static_cast<std::int64_t>(x.extent(0)), cols = static_cast<std::int64_t>(x.extent(1));
  const Placement dense = right({rows, cols});
  int served            = 0;
  for (const RowStrategy strategy : row_strategies) {
    Buffer<float> y(dense.span()), dx(dense.span());
    try {
      KokkosNN::masked_softmax(Exec(), x, mask, strided_view<2>(y.device(), dense), on(strategy));
      KokkosNN::masked_softmax_backward(Exec(), x, x, x, mask, strided_view<2>(dx.device(), dense), on(strategy));
    } catch (const std::invalid_argument&) {
      continue;  // too long for a thread's registers
    }
    ++served;
    Exec().fence();

    y.download();
    dx.download();
    for (std::int64_t q = 0; q < rows; ++q) {
      std::int64_t allowed = 0;
      for (std::int64_t k = 0; k < cols; ++k) allowed += allows(q, k) ? 1 : 0;
      for (std::int64_t k = 0; k < cols; ++k) {
        const float expected = allows(q, k) ? 1.0f / static_cast<float>(allowed) : 0.0f;
        ASSERT_FLOAT_EQ(y.host()[q * cols + k], expected) << to_string(strategy) << ", " << q << ", " << k;
        ASSERT_EQ(dx.host()[q * cols + k], 0.0f) << to_string(strategy) << ", " << q << ", " << k;
      }
    }
  }
  EXPECT_GE(served, 2);
}

/// A pack that holds an allowed column is read whole.
constexpr std::int64_t largest_pack = 32;

/// A row's allowed columns end a pack ahead of a page's end; its other columns are on the next page.
TEST(MaskedReads, ColumnsBehindACausalMaskAreNotRead) {
  if (on_gpu) GTEST_SKIP() << "a GPU's memory has no pages that must not be touched";
  const std::int64_t rows = 4;
  const GuardedRows memory(rows);
  ASSERT_TRUE(memory.exist());
  const std::int64_t page = memory.page(), offset = page - largest_pack - rows - 1;
  const Placement place{{rows, 2 * page - rows}, {2 * page - 1, 1}, rows};

  expect_shares(strided_view<2>(memory.data(), place), CausalMask{offset},
                [&](std::int64_t q, std::int64_t k) { return k <= q + offset; });
}

/// A row's allowed columns fill one page but for a pack at each end; pages that must not be read are on both sides.
TEST(MaskedReads, ColumnsOutsideOfAWindowAreNotRead) {
  if (on_gpu) GTEST_SKIP() << "a GPU's memory has no pages that must not be touched";
  const std::int64_t rows = 4;
  const GuardedRows memory(rows + 1);
  ASSERT_TRUE(memory.exist());
  const std::int64_t page = memory.page();
  const Placement place{{rows, 3 * page}, {2 * page - 1, 1}, page};

  expect_shares(
      strided_view<2>(memory.data(), place), SlidingWindow{0, page - 2 * largest_pack - 1, page + largest_pack},
      [&](std::int64_t q, std::int64_t k) { return page + largest_pack + q <= k && k < 2 * page - largest_pack + q; });
}

TEST(MaskedReads, ColumnsThatALengthRulesOutAreNotRead) {
  if (on_gpu) GTEST_SKIP() << "a GPU's memory has no pages that must not be touched";
  const GuardedRows x(4);
  ASSERT_TRUE(x.exist());
  for (const std::int64_t allowed : {std::int64_t(128), x.page()}) {
    const Placement x_place{{4, 2 * allowed}, {2 * x.page(), 1}, x.page() - allowed};
    const MaskData<std::int32_t, 1> lengths(right({4}),
                                            [&](const Index&) { return static_cast<std::int32_t>(allowed); });
    for (const RowStrategy strategy : row_strategies) {
      Buffer<float> y(8 * allowed);
      const auto y_view = strided_view<2>(y.device(), right({4, 2 * allowed}));
      try {
        KokkosNN::masked_softmax(Exec(), strided_view<2>(x.data(), x_place), RowLengths{lengths.view()}, y_view,
                                 on(strategy));
      } catch (const std::invalid_argument&) {
        EXPECT_EQ(allowed, x.page()) << to_string(strategy);  // too long for a thread's registers
        continue;
      }
      Exec().fence();

      y.download();
      for (std::int64_t i = 0; i < y.count(); ++i) {
        ASSERT_EQ(y.host()[i], i % (2 * allowed) < allowed ? 1.0f / static_cast<float>(allowed) : 0.0f) << i;
      }
    }
  }
}
#endif

// --- behaviour towards Kokkos ---

TEST(MaskedKokkosBehaviour, LabelsAreOursAndASecondCallNeitherFencesNorAllocates) {
  for (const RowStrategy strategy : row_strategies) {
    MaskedTrial<float> trial({2, 3, 7, 60});
    const StrategyMasks<float> mask(60);
    const MaskedSoftmaxOptions options = on(strategy, {.sinks = mask.sinks.view()});
    const Exec exec                    = other_instance();
    const auto call = [&] { KokkosNN::masked_softmax(exec, trial.x_view(), mask.joined(), trial.y_view(), options); };
    call();
    exec.fence();
    Recorder recorder;

    call();

    EXPECT_EQ(recorder.kernel_labels(), std::vector{to_string(trial.plan(mask.joined(), options))});
    EXPECT_EQ(recorder.regions, std::vector<std::string>{"KokkosNN::masked_softmax"});
    for (const auto& kernel : recorder.kernels) {
      EXPECT_EQ(kernel.label.rfind("KokkosNN::masked_softmax[", 0), 0u) << kernel.label;
      EXPECT_EQ(kernel.device, tools_id(exec));
    }
    EXPECT_TRUE(recorder.neither_fenced_nor_allocated());
    exec.fence();
  }
}

TEST(MaskedKokkosBehaviour, GradientSumsAllocateOnlyOnce) {
  MaskedTrial<float> trial({2, 3, 7, 60});
  Buffer<float> dbias(60), dsinks(3);
  const Exec exec = other_instance();
  const auto call = [&] {
    KokkosNN::masked_softmax_bias_backward(exec, trial.y_view(), trial.x_view(), CausalMask{},
                                           strided_view<1>(dbias.device(), right({60})));
    KokkosNN::masked_softmax_sinks_backward(exec, trial.y_view(), trial.x_view(), CausalMask{},
                                            strided_view<1>(dsinks.device(), right({3})));
  };
  call();
  exec.fence();
  Recorder recorder;

  call();

  EXPECT_EQ(recorder.regions, (std::vector<std::string>{"KokkosNN::masked_softmax_bias_backward",
                                                        "KokkosNN::masked_softmax_sinks_backward"}));
  EXPECT_GE(recorder.kernels.size(), 4u);
  for (const auto& kernel : recorder.kernels) {
    EXPECT_EQ(kernel.label.rfind("KokkosNN::masked_softmax_backward[", 0), 0u) << kernel.label;
    EXPECT_EQ(kernel.device, tools_id(exec));
  }
  for (const auto& fence : recorder.fences) ADD_FAILURE() << "fence: " << fence.label;
  for (const auto& allocation : recorder.allocations) ADD_FAILURE() << "allocation: " << allocation;
  exec.fence();
}

TEST(MaskedKokkosBehaviour, APlanObjectRunsAsOftenAsItIsAskedTo) {
  for (const RowStrategy strategy : row_strategies) {
    MaskedTrial<float> trial({2, 3, 7, 60});
    const StrategyMasks<float> mask(60);
    const MaskedSoftmaxOptions options = on(strategy, {.sinks = mask.sinks.view()});
    const KokkosNN::MaskedSoftmaxPlan plan(Exec(), trial.x_view(), mask.joined(), trial.y_view(), options);
    EXPECT_EQ(plan.row_plan(), trial.plan(mask.joined(), options));
    for (int run = 0; run < 3; ++run) {
      trial.y().poison_all();

      plan.run();
      Exec().fence();

      trial.y().download();
      EXPECT_TRUE(trial.correct(mask.of_joined(), options)) << to_string(strategy) << ", run " << run;
    }
  }
}

TEST(MaskedReadme, ItsExamplesAreWhatTheySayInAFileThatUsesKokkosToo) {
  using namespace Kokkos;
  using namespace KokkosNN;
  MaskedTrial<float> trial({2, 3, 5, 40});
  const MaskData<std::int32_t, 1> lengths_data(right({2}),
                                               [](const Index& i) { return static_cast<std::int32_t>(9 + 20 * i[0]); });
  const MaskData<float, 3> bias_data(right({3, 5, 40}), bias_at<float>);
  const MaskData<float, 1> sinks_data(right({3}), [](const Index& i) { return static_cast<float>(i[0]); });
  const auto x       = trial.x_view();
  const auto y       = trial.y_view();
  const auto lengths = lengths_data.view();
  const auto bias    = bias_data.view();
  const auto sinks   = sinks_data.view();

  masked_softmax(x, CausalMask{}, y, {.scale = 0.125});
  Kokkos::fence();
  trial.y().download();
  EXPECT_TRUE(trial.correct({[](const At& at) { return at.key <= at.query; }}, {.scale = 0.125}));

  masked_softmax(x, masks(RowLengths{lengths}, AdditiveBias{bias}), y, {.softcap = 30, .sinks = sinks});
  Kokkos::fence();
  trial.y().download();
  EXPECT_TRUE(trial.correct({[&](const At& at) { return at.key < lengths_data({at.batch}); },
                             [&](const At& at) { return exact(bias_data({at.head, at.query, at.key})); },
                             {0, 1, 2}},
                            {.softcap = 30}));
}

// --- errors ---

/// Expects a complaint of that text, y untouched and nothing launched.
template <class M>
void refuses(MaskedTrial<float>& trial, const M& mask, const MaskedSoftmaxOptions& options, const std::string& text) {
  std::string complaint = "(nothing was thrown)";
  const auto kernels    = kernels_of([&] {
    try {
      KokkosNN::masked_softmax(Exec(), trial.x_view(), mask, trial.y_view(), options);
    } catch (const std::invalid_argument& e) {
      complaint = e.what();
    }
  });
  EXPECT_EQ(complaint.rfind("KokkosNN::masked_softmax: " + text, 0), 0u) << complaint;
  EXPECT_TRUE(kernels.empty());
  trial.y().download();
  EXPECT_TRUE(trial.y().untouched());
}

TEST(MaskedErrors, NameTheFunctionAndTheOffendingValues) {
  MaskedTrial<float> trial({2, 3, 7, 40});
  const MaskData<bool, 2> keep(right({6, 40}), is_kept_at);
  const MaskData<float, 4> bias(right({2, 2, 7, 40}), bias_at<float>);
  const MaskData<std::int32_t, 1> lengths(right({3}), [](const Index&) { return 1; });
  const MaskData<std::int32_t, 3> lengths3(right({2, 3, 6}), [](const Index&) { return 1; });
  const MaskData<float, 1> four(right({4}), [](const Index&) { return 1.0f; });
  const MaskData<double, 1> doubles(right({3}), [](const Index&) { return 1.0; });

  refuses(trial, BooleanMask{keep.view()}, {}, "BooleanMask of extents (6, 40) does not broadcast to (2, 3, 7, 40)");
  refuses(trial, masks(CausalMask{}, AdditiveBias{bias.view()}), {},
          "AdditiveBias of extents (2, 2, 7, 40) does not broadcast to (2, 3, 7, 40)");
  refuses(trial, RowLengths{lengths.view()}, {},
          "RowLengths of rank 1 must hold one length for each index of the first axis of x, (2, 3, 7, 40), but hold 3");
  refuses(trial, RowLengths{lengths3.view()}, {}, "RowLengths of extents (2, 3, 6) does not broadcast to (2, 3, 7)");
  refuses(trial, Alibi{four.view()}, {},
          "Alibi must hold one value for each of the 3 heads of x, (2, 3, 7, 40), but holds 4");
  refuses(trial, CausalMask{}, {.sinks = four.view()}, "options.sinks must hold one value for each of the 3 heads");
  refuses(trial, CausalMask{}, {.sinks = doubles.view()},
          "options.sinks must hold x's type, f32, or f32, but hold f64");
  refuses(trial, SlidingWindow{.left = -1}, {}, "SlidingWindow's left and right must not be negative");
  refuses(trial, CausalMask{}, {.scale = 0}, "|scale| must be within 2^-100 to 2^100, but scale is 0");
  refuses(trial, CausalMask{}, {.softcap = -1}, "softcap must be positive and finite, or 0 for none, but is -1");
  refuses(trial, CausalMask{}, {.softcap = infinity}, "softcap must be positive and finite, or 0 for none, but is inf");
  refuses(trial, CausalMask{}, {.softcap = not_a_number},
          "softcap must be positive and finite, or 0 for none, but is ");
  refuses(trial, CausalMask{}, on(RowStrategy::inner_lanes), "inner_lanes cannot serve 42 rows of 40 f32");
  // A bias in y's own memory.
  refuses(trial, AdditiveBias{strided_view<4>(static_cast<const float*>(trial.y().device()), trial.y_place())}, {},
          "AdditiveBias at ");
}

TEST(MaskedErrors, ExtentsOfXAndYThatDifferAreNamed) {
  MaskedTrial<float> trial(right({2, 3, 7, 40}), right({2, 3, 7, 41}));
  refuses(trial, CausalMask{}, {}, "x and y must have the same extents, but x is (2, 3, 7, 40) and y is (2, 3, 7, 41)");
}

// --- large numbers ---

TEST(MaskedOffsets, FarBeyondTheColumnsAllowAllOrNothing) {
  constexpr std::int64_t far = std::numeric_limits<std::int64_t>::max();
  MaskedTrial<float> trial({2, 3, 7, 40});
  const Meaning all, none{[](const At&) { return false; }};
  const MaskedSoftmaxOptions zero{.masked_row = MaskedRowPolicy::zero};

  EXPECT_TRUE(trial.run_correct(CausalMask{far}, all, zero));
  EXPECT_TRUE(trial.run_correct(CausalMask{-far}, none, zero));
  EXPECT_TRUE(trial.run_correct(SlidingWindow{}, all, zero));
  EXPECT_TRUE(trial.run_correct(SlidingWindow{.offset = far}, all, zero));
  EXPECT_TRUE(trial.run_correct(SlidingWindow{0, 0, far}, none, zero));
  EXPECT_TRUE(trial.run_correct(SlidingWindow{0, 0, -far}, none, zero));
}

}  // namespace
}  // namespace KokkosNNTest
