// SPDX-License-Identifier: Apache-2.0
#include "support/instances.hpp"
#include "support/masked.hpp"
#include "support/recorder.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace KokkosNNTest {

using KokkosNN::AdditiveBias;
using KokkosNN::Alibi;
using KokkosNN::BooleanMask;
using KokkosNN::CausalMask;
using KokkosNN::masks;
using KokkosNN::RowLengths;
using KokkosNN::SlidingWindow;

constexpr double infinity     = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

using Index = std::vector<std::int64_t>;

/// Three elements of four are kept, and the diagonal.
bool is_kept_at(const Index& i) {
  std::uint32_t hash = 1;
  for (const std::int64_t n : i) hash = hash * 2654435761u + static_cast<std::uint32_t>(n) * 40503u + 11u;
  return (hash >> 13) % 4 != 0 || i.back() == i[i.size() - 2];
}

template <class T>
T bias_at(const Index& i) {
  return static_cast<T>(noise_at(i, 3));
}

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
  this->check(RowLengths{lengths.view()}, {[&](const At& at) {
                return at.key < lengths({at.batch, at.head, at.query});
              }});
}

TYPED_TEST(MaskedSoftmax, LengthsABatchEndItsRows) {
  const MaskData<std::int64_t, 1> lengths(right({2}), [](const Index& i) { return 1 + 29 * i[0]; });
  this->check(RowLengths{lengths.view()}, {[&](const At& at) { return at.key < lengths({at.batch}); }});
}

TYPED_TEST(MaskedSoftmax, ABooleanMaskKeepsWhatItSays) {
  for (const std::int64_t cols : masked_widths()) {
    MaskedTrial<TypeParam> trial({2, 3, 7, cols});
    const MaskData<bool, 4> keep(right({2, 3, 7, cols}), is_kept_at);

    ASSERT_TRUE(trial.run_correct(BooleanMask{keep.view()}, {[&](const At& at) {
                                    return keep({at.batch, at.head, at.query, at.key});
                                  }},
                                  {.scale = 0.7, .masked_row = MaskedRowPolicy::zero}))
        << cols << " columns";
  }
}

TYPED_TEST(MaskedSoftmax, AnAdditiveBiasOfTheTypeOfXOrOfFloatIsAdded) {
  for (const std::int64_t cols : masked_widths()) {
    MaskedTrial<TypeParam> trial({2, 3, 7, cols});
    const MaskData<TypeParam, 4> own(right({2, 3, 7, cols}), bias_at<TypeParam>);
    const MaskData<float, 4> in_float(right({2, 3, 7, cols}), bias_at<float>);

    ASSERT_TRUE(trial.run_correct(AdditiveBias{own.view()},
                                  {.adds =
                                       [&](const At& at) {
                                         return exact(own({at.batch, at.head, at.query, at.key}));
                                       }},
                                  {.scale = 0.5}))
        << cols << " columns";
    ASSERT_TRUE(trial.run_correct(AdditiveBias{in_float.view()},
                                  {.adds =
                                       [&](const At& at) {
                                         return exact(in_float({at.batch, at.head, at.query, at.key}));
                                       }},
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
                                   [&](const Index& i) { return static_cast<float>(size * (1 - 0.4 * i[0])); });
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
    const Meaning meaning{
        [&](const At& at) {
          const std::int64_t middle = at.query + cols - 7;
          return at.key < lengths({at.batch}) && keep({at.query, at.key}) && at.key <= middle && at.key >= middle - 200;
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

constexpr std::array row_strategies{RowStrategy::vector_lanes, RowStrategy::team_scratch, RowStrategy::team_registers,
                                    RowStrategy::team_online, RowStrategy::split_row};

/// Runs the mask with the strategy forced, and asserts that its kernels ran and that the results are right; whether the
/// strategy can serve.
template <class Trial, class M>
bool takes_the_path(Trial& trial, const M& mask, const Meaning& meaning, const MaskedSoftmaxOptions& options) {
  RowPlan plan;
  try {
    plan = trial.plan(mask, options);
  } catch (const std::invalid_argument&) {
    return false;
  }
  EXPECT_EQ(plan.strategy, options.plan.strategy);
  EXPECT_EQ(to_string(plan).rfind("KokkosNN::masked_softmax[" + std::string(to_string(plan.strategy)), 0), 0u);
  trial.y().poison_all();
  const auto kernels = kernels_of([&] { trial.call(mask, options); });
  trial.y().download();
  EXPECT_EQ(kernels, std::vector<std::string>(plan.launches, to_string(plan)));
  EXPECT_TRUE(trial.correct(meaning, options)) << to_string(plan) << ", " << trial.cols() << " columns";
  return true;
}

/// A range of columns, single elements and a sink.
template <class T>
struct StrategyMasks {
  MaskData<bool, 2> keep;
  MaskData<T, 1> sinks{right({3}), [](const Index& i) { return T(double(i[0]) - 1); }};
  std::int64_t offset;

  explicit StrategyMasks(std::int64_t cols) : keep(right({7, cols}), is_kept_at), offset(cols / 2) {}

  auto band() const { return SlidingWindow{.left = offset + 3, .right = 0, .offset = offset}; }
  Meaning of_band() const {
    return {[this](const At& at) { return at.key <= at.query + offset && at.key >= at.query - 3; }};
  }
  auto joined() const { return masks(band(), BooleanMask{keep.view()}); }
  Meaning of_joined() const {
    return {[this](const At& at) { return of_band().allows(at) && keep({at.query, at.key}); }, nullptr, {-1, 0, 1}};
  }
};

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

}  // namespace KokkosNNTest
