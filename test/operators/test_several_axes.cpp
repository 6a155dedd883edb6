// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/check.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <Kokkos_Core.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

// Rows along several neighbouring axes, which equal those of a View with one axis in their place.

namespace KokkosNNTest {
namespace {

template <class T>
struct SeveralAxes : public ::testing::Test {
  static constexpr std::int64_t a = 3, b = 5, c = 7, d = 4;

  Buffer<T> x{a * b * c * d}, y{a * b * c * d}, expected{a * b * c * d};

  void SetUp() override {
    fill(x.host(), right({a * b * c * d}), 0, Recipe::uniform);
    x.upload();
  }

  /// run(x, y) with all axes, run_merged(x, y) with one in the place of several.
  template <class Run, class RunMerged>
  void expect_same(const Run& run, const RunMerged& run_merged) {
    y.poison_all();
    expected.poison_all();
    run(x.device(), y.device());
    run_merged(x.device(), expected.device());
    Exec().fence();
    y.download();
    expected.download();
    for (std::int64_t i = 0; i < y.count(); ++i) ASSERT_TRUE(same_bits(y.host()[i], expected.host()[i])) << i;
  }
};
TYPED_TEST_SUITE(SeveralAxes, ElementTypes, ElementNames);

TYPED_TEST(SeveralAxes, OfBothLayoutsAreAsOneAxis) {
  using Fixture    = SeveralAxes<TypeParam>;
  constexpr auto a = Fixture::a, b = Fixture::b, c = Fixture::c, d = Fixture::d;
  const std::vector<std::int64_t> left{1, a, a * b, a * b * c};
  const auto softmax = [](const auto& place, int axis, int axes) {
    return [=](const TypeParam* x, TypeParam* y) {
      KokkosNN::softmax(Exec(), strided_view<4>(x, place), strided_view<4>(y, place), {.axis = axis, .axes = axes});
    };
  };
  const auto merged = [](const auto& place, int axis) {
    return [=](const TypeParam* x, TypeParam* y) {
      KokkosNN::softmax(Exec(), strided_view<3>(x, place), strided_view<3>(y, place), {.axis = axis});
    };
  };
  this->expect_same(softmax(right({a, b, c, d}), -2, 2), merged(right({a, b, c * d}), 2));
  this->expect_same(softmax(right({a, b, c, d}), 1, 2), merged(right({a, b * c, d}), 1));
  this->expect_same(softmax(right({a, b, c, d}), 0, 2), merged(right({a * b, c, d}), 0));
  this->expect_same(softmax(Placement{{a, b, c, d}, left}, 1, 2),
                    merged(Placement{{a, b * c, d}, {1, a, a * b * c}}, 1));
  this->expect_same(softmax(right({a, b, c, d}), 0, 4), merged(right({1, 1, a * b * c * d}), 2));
}

TYPED_TEST(SeveralAxes, OfLogsumexpAndGradientsAreAsOneAxis) {
  using Fixture    = SeveralAxes<TypeParam>;
  constexpr auto a = Fixture::a, b = Fixture::b, c = Fixture::c, d = Fixture::d;
  const SoftmaxOptions several{.axis = 1, .axes = 2}, one{.axis = 1};
  const auto four  = [](const auto* data) { return strided_view<4>(data, right({a, b, c, d})); };
  const auto to    = [](TypeParam* data) { return strided_view<4>(data, right({a, b, c, d})); };
  const auto three = [](const auto* data) { return strided_view<3>(data, right({a, b * c, d})); };
  const auto to3   = [](TypeParam* data) { return strided_view<3>(data, right({a, b * c, d})); };
  const auto lse   = [](TypeParam* data) { return strided_view<2>(data, right({a, d})); };
  this->expect_same([&](const auto* x, auto* y) { KokkosNN::logsumexp(Exec(), four(x), lse(y), several); },
                    [&](const auto* x, auto* y) { KokkosNN::logsumexp(Exec(), three(x), lse(y), one); });
  this->expect_same(
      [&](const auto* x, auto* y) {
        KokkosNN::logsumexp(Exec(), four(x), strided_view<0>(y, Placement{}), {.axis = 0, .axes = 4});
      },
      [&](const auto* x, auto* y) {
        KokkosNN::logsumexp(Exec(), strided_view<1>(x, right({a * b * c * d})), strided_view<0>(y, Placement{}));
      });
  this->expect_same(
      [&](const auto* x, auto* y) { KokkosNN::softmax_backward(Exec(), four(x), four(x), to(y), several); },
      [&](const auto* x, auto* y) { KokkosNN::softmax_backward(Exec(), three(x), three(x), to3(y), one); });
  Buffer<TypeParam> lses(a * d);
  fill(lses.host(), right({a * d}), 0, Recipe::uniform);
  lses.upload();
  const auto given = lse(lses.device());
  this->expect_same(
      [&](const auto* x, auto* y) { KokkosNN::logsumexp_backward(Exec(), four(x), given, given, to(y), several); },
      [&](const auto* x, auto* y) { KokkosNN::logsumexp_backward(Exec(), three(x), given, given, to3(y), one); });
}

TEST(SeveralAxesErrors, NameWhatIsWrong) {
  Buffer<float> x(400), y(400);
  const auto complaint = [&](const Placement& from, const Placement& to, const SoftmaxOptions& options) {
    try {
      KokkosNN::softmax(Exec(), strided_view<3>(x.device(), from), strided_view<3>(y.device(), to), options);
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  const Placement dense = right({2, 3, 5}), left{{2, 3, 5}, {1, 2, 6}}, padded{{2, 3, 5}, {24, 8, 1}};
  EXPECT_EQ(complaint(dense, dense, {.axis = 1, .axes = 3}),
            "KokkosNN::softmax: axes must be 1 to 2 from axis 1 on, but is 3");
  EXPECT_EQ(complaint(dense, dense, {.axis = 1, .axes = 0}),
            "KokkosNN::softmax: axes must be 1 to 2 from axis 1 on, but is 0");
  EXPECT_EQ(complaint(padded, padded, {.axis = 1, .axes = 2}),
            "KokkosNN::softmax: the axes 1 to 2 must lie at one stride, in the same order in all tensors, but strides "
            "are (24, 8, 1) of x (24, 8, 1) of y beside extents (2, 3, 5)");
  EXPECT_EQ(complaint(dense, left, {.axis = 1, .axes = 2}).rfind("KokkosNN::softmax: the axes 1 to 2", 0), 0u);
  EXPECT_EQ(complaint(dense, right({2, 5, 3}), {.axis = 1, .axes = 2}),
            "KokkosNN::softmax: x and y must have the same extents, but x is (2, 3, 5) and y is (2, 5, 3)");
  EXPECT_EQ(complaint(padded, padded, {.axis = 0, .axes = 2}), "none");

  std::string wrong_rank;
  try {
    KokkosNN::logsumexp(Exec(), strided_view<3>(x.device(), dense), strided_view<1>(y.device(), right({2})));
  } catch (const std::invalid_argument& error) {
    wrong_rank = error.what();
  }
  EXPECT_EQ(wrong_rank, "KokkosNN::logsumexp: lse must have rank 2 beside x of rank 3 and axes 1, but has rank 1");
}

}  // namespace
}  // namespace KokkosNNTest
