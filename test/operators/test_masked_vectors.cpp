// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/masked_strategies.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

// Masked rows by loops of vectors, as a host has them: allowed columns that begin and end anywhere in a vector, what a
// mask has beside a row at any distance, results in place, and bits that do not depend on who computes a row.

namespace KokkosNNTest {
namespace {

/// Lengths of rows around vectors, pieces of rows, and rows of several pieces.
const std::vector<std::int64_t> vector_widths{1,  2,  3,  4,  5,  6,  7,  8,   9,   10,  11,  12,   13,
                                              14, 15, 16, 17, 31, 33, 63, 100, 255, 257, 513, 4096, 4099};

template <class T, RowOperator op>
void expect_right(const auto& mask, const Meaning& meaning, std::int64_t cols,
                  const MaskedSoftmaxOptions& options = {}) {
  MaskedTrial<T, T, 4, op> trial({1, 2, 21, cols});
  spoil_masked(trial, meaning);

  EXPECT_TRUE(trial.run_correct(mask, meaning, options)) << cols << " columns";
}

/// A mask on softmax, its logarithm and log-sum-exps; elements that it rules out are NaN and infinities.
template <class T>
void expect_right_for_all(const auto& mask, const Meaning& meaning, std::int64_t cols,
                          const MaskedSoftmaxOptions& options = {.masked_row = MaskedRowPolicy::zero}) {
  expect_right<T, RowOperator::masked_softmax>(mask, meaning, cols, options);
  expect_right<T, RowOperator::masked_log_softmax>(mask, meaning, cols, options);
  expect_right<T, RowOperator::masked_logsumexp>(mask, meaning, cols, options);
}

/// Views that a mask has beside the rows of such a test: a bias of two types, booleans, and slopes.
template <class T>
struct Beside {
  MaskData<T, 2> bias;
  MaskData<float, 2> floats;
  MaskData<bool, 2> keep;
  MaskData<T, 1> slopes{right({2}), [](const Index& i) { return T(0.25 * double(i[0] + 1)); }};

  explicit Beside(const Placement& place)
      : bias(place, bias_at<T>), floats(place, bias_at<float>), keep(place, is_kept_at) {}

  /// Index of an element of x here; axes of extent 1 are broadcast.
  Index at(const At& a, const Placement& place) const {
    return {place.extents[0] == 1 ? 0 : a.query, place.extents[1] == 1 ? 0 : a.key};
  }
};

}  // namespace

template <class T>
class MaskedVectors : public ::testing::Test {};
TYPED_TEST_SUITE(MaskedVectors, ElementTypes, ElementNames);

TYPED_TEST(MaskedVectors, ARangeBeginsAndEndsAnywhereInAVector) {
  for (const std::int64_t cols : vector_widths) {
    for (const std::int64_t left : {std::int64_t(0), std::int64_t(5), cols / 2}) {
      const std::int64_t offset = cols / 3;
      expect_right_for_all<TypeParam>(
          SlidingWindow{.left = left, .right = 2, .offset = offset},
          {[=](const At& at) { return at.key >= at.query + offset - left && at.key <= at.query + offset + 2; }}, cols);
    }
  }
}

TYPED_TEST(MaskedVectors, ALengthIsAnyNumberOfColumns) {
  for (const std::int64_t cols : {20, 300, 4100}) {
    const MaskData<std::int32_t, 2> lengths(
        right({2, 21}), [&](const Index& i) { return static_cast<std::int32_t>(i[0] == 0 ? i[1] : cols - i[1]); });
    expect_right_for_all<TypeParam>(RowLengths{lengths.view()},
                                    {[&](const At& at) { return at.key < lengths({at.head, at.query}); }}, cols);
  }
}

TYPED_TEST(MaskedVectors, WhatAMaskHasBesideARowLiesAtAnyDistance) {
  for (const std::int64_t cols : {1, 5, 13, 16, 40, 300, 4100}) {
    for (const Placement& place : {right({21, cols}), right({21, cols}, 3), left({21, cols}), right({21, 1}),
                                   right({1, cols}), Placement{{21, cols}, {2 * cols + 1, 2}, 0}}) {
      const Beside<TypeParam> beside(place);
      const auto keeps = [&](const At& at) { return beside.keep(beside.at(at, place)); };
      const auto adds  = [&](const At& at) { return exact(beside.bias(beside.at(at, place))); };
      const auto plus  = [&](const At& at) { return exact(beside.floats(beside.at(at, place))); };
      const auto past  = [&](const At& at) { return at.key <= at.query + 3; };
      const BooleanMask keep{beside.keep.view()};
      const AdditiveBias bias{beside.bias.view()};
      const AdditiveBias floats{beside.floats.view()};
      const auto check = [&](const auto& mask, const Meaning& meaning) {
        expect_right<TypeParam, RowOperator::masked_softmax>(mask, meaning, cols,
                                                             {.masked_row = MaskedRowPolicy::zero});
      };
      check(keep, {keeps});
      check(bias, {.adds = adds});
      check(floats, {.adds = plus});
      check(masks(CausalMask{3}, keep), {[&](const At& at) { return past(at) && keeps(at); }});
      check(masks(CausalMask{3}, floats), {past, plus});
      check(masks(keep, bias), {keeps, adds});
    }
  }
}

TYPED_TEST(MaskedVectors, SlopesAndASoftcapJoinWhatElseAMaskHas) {
  for (const std::int64_t cols : {3, 16, 45, 700}) {
    const Placement place = right({21, cols});
    const Beside<TypeParam> beside(place);
    const auto keeps = [&](const At& at) { return beside.keep(beside.at(at, place)) && at.key <= at.query + 7; };
    const auto adds  = [&](const At& at) {
      const Real distance = std::fabs(Real(at.key - at.query));
      return exact(beside.bias(beside.at(at, place))) - exact(beside.slopes({at.head})) * distance;
    };
    const auto mask = masks(CausalMask{7}, BooleanMask{beside.keep.view()}, AdditiveBias{beside.bias.view()},
                            Alibi{beside.slopes.view()});
    for (const double scale : {0.75, -0.5}) {
      for (const double softcap : {0.0, 2.0, 50.0}) {
        expect_right_for_all<TypeParam>(mask, {keeps, adds}, cols,
                                        {.scale = scale, .softcap = softcap, .masked_row = MaskedRowPolicy::zero});
      }
    }
  }
}

/// A cap far above all logits leaves them as they are, to the last bits.
TYPED_TEST(MaskedVectors, ASoftcapFarAboveTheLogitsHasTheirAccuracy) {
  for (const double scale : {1e-3, 0.02, 1.0, 8.0}) {
    expect_right_for_all<TypeParam>(masks(), {}, 200, {.scale = scale, .softcap = 100});
  }
}

TYPED_TEST(MaskedVectors, InPlaceHaveTheBitsOfAnotherPlace) {
  for (const std::int64_t cols : {7, 64, 100, 128, 1000, 9000}) {
    const Placement place = right({21, cols});
    const Beside<TypeParam> beside(place);
    const auto expect_equal = [&](const auto& mask) {
      MaskedTrial<TypeParam> trial({1, 2, 21, cols});
      trial.run(mask);
      const auto over_x = strided_view<4>(trial.x().device(), trial.x_place());
      KokkosNN::masked_softmax(Exec(), trial.x_view(), mask, over_x);
      Exec().fence();
      trial.x().download();
      const std::size_t bytes = static_cast<std::size_t>(trial.x().count()) * sizeof(TypeParam);
      EXPECT_EQ(std::memcmp(trial.x().host(), trial.y().host(), bytes), 0) << cols << " columns";
    };
    expect_equal(CausalMask{cols / 2});
    expect_equal(masks(SlidingWindow{.left = 9, .right = 0, .offset = cols / 2}, BooleanMask{beside.keep.view()}));
    expect_equal(AdditiveBias{beside.bias.view()});
  }
}

/// Rows by one thread or several, alone or with others, have the same bits.
TYPED_TEST(MaskedVectors, BitsDoNotDependOnTheNumberOfThreads) {
  const std::int64_t cols = 40000, queries = 3;
  const MaskData<TypeParam, 2> bias(right({queries, cols}), bias_at<TypeParam>);
  const auto mask = masks(SlidingWindow{.left = 30001, .right = 0, .offset = 33333}, AdditiveBias{bias.view()});
  for (const RowStrategy strategy : {RowStrategy::team_scratch, RowStrategy::team_online}) {
    MaskedTrial<TypeParam> one({1, 1, queries, cols}), two({1, 1, queries, cols});
    const auto by = [&](int threads) {
      MaskedSoftmaxOptions options = on(strategy);
      options.plan.team_size       = threads;
      return options;
    };
    try {
      one.run(mask, by(1));
      two.run(mask, by(2));
    } catch (const std::invalid_argument&) {
      continue;  // one thread, or too long for a row in scratch
    }
    const std::size_t bytes = static_cast<std::size_t>(one.y().count()) * sizeof(TypeParam);
    EXPECT_EQ(std::memcmp(one.y().host(), two.y().host(), bytes), 0) << to_string(strategy);
  }
}

TYPED_TEST(MaskedVectors, RowsOfNothingAmongOthersFollowTheirPolicy) {
  for (const std::int64_t cols : {5, 64, 300, 5000, 9001}) {
    const MaskData<std::int64_t, 2> lengths(right({2, 21}),
                                            [&](const Index& i) { return i[1] % 3 == 1 ? 0 : cols - i[1] % 5; });
    const Meaning meaning{[&](const At& at) { return at.key < lengths({at.head, at.query}); }};
    for (const MaskedRowPolicy policy : {MaskedRowPolicy::nan, MaskedRowPolicy::zero}) {
      expect_right_for_all<TypeParam>(RowLengths{lengths.view()}, meaning, cols, {.masked_row = policy});
    }
  }
}

}  // namespace KokkosNNTest
