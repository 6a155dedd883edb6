// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/gradient.hpp"
#include "support/strategies.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <vector>

namespace KokkosNNTest {

template <class T>
class Gradients : public ::testing::Test {};
TYPED_TEST_SUITE(Gradients, ElementTypes, ElementNames);

TYPED_TEST(Gradients, OfManyRowsMatchTheReference) {
  for_each_gradient([](auto op) {
    constexpr RowOperator Op = decltype(op)::value;
    GradientTrial<Op, TypeParam> trial(1823, 781);

    EXPECT_TRUE(trial.run_correct()) << KokkosNN::to_string(Op);
  });
}

TYPED_TEST(Gradients, OfEveryWidthUpTo300Match) {
  for_each_gradient([](auto op) {
    constexpr RowOperator Op = decltype(op)::value;
    for (std::int64_t cols = 1; cols <= 300; ++cols) {
      GradientTrial<Op, TypeParam> trial(3, cols);

      ASSERT_TRUE(trial.run_correct()) << KokkosNN::to_string(Op) << ", " << cols << " columns";
    }
  });
}

TYPED_TEST(Gradients, AroundPowersOfTwoMatch) {
  for_each_gradient([](auto op) {
    constexpr RowOperator Op = decltype(op)::value;
    for (int k = 9; k <= 17; ++k) {
      for (const int offset : {-1, 0, 1}) {
        const std::int64_t cols = (std::int64_t(1) << k) + offset;
        GradientTrial<Op, TypeParam> trial(4, cols);

        ASSERT_TRUE(trial.run_correct()) << KokkosNN::to_string(Op) << ", " << cols << " columns";
      }
    }
  });
}

TYPED_TEST(Gradients, OnEveryStrategyTakeThePathAndMatch) {
  for_each_gradient([](auto op) {
    constexpr RowOperator Op = decltype(op)::value;
    for (const RowStrategy strategy : strategies_of(Op)) {
      int served = 0;
      for (const std::int64_t cols : {1, 2, 5, 16, 31, 33, 64, 100, 128, 257, 1000, 1024, 4097, 16384, 50257}) {
        GradientTrial<Op, TypeParam> trial(7, cols, -0.5);
        try {
          trial.plan({.plan = {.strategy = strategy}});
        } catch (const std::invalid_argument&) {
          continue;  // too wide for this strategy
        }
        ++served;

        ASSERT_TRUE(trial.takes_the_path(strategy)) << cols << " columns";
      }
      EXPECT_GE(served, 6) << KokkosNN::to_string(Op) << " " << KokkosNN::to_string(strategy);
    }
  });
}

TYPED_TEST(Gradients, WithEveryRecipeAndScaleMatch) {
  for_each_gradient([](auto op) {
    constexpr RowOperator Op = decltype(op)::value;
    for (const Recipe recipe : all_recipes) {
      for (const double scale : {1.0, -1.0, 0.125, 3.0}) {
        GradientTrial<Op, TypeParam> trial(11, 333, scale, recipe);

        EXPECT_TRUE(trial.run_correct()) << KokkosNN::to_string(Op) << ", " << to_string(recipe) << ", scale " << scale;
      }
    }
  });
}

TYPED_TEST(Gradients, OfManyShortRowsThatBeginAnywhereMatch) {
  for_each_gradient([](auto op) {
    constexpr RowOperator Op = decltype(op)::value;
    constexpr bool sums_rows = Op != RowOperator::logsumexp_backward;
    for (const std::int64_t cols : {1, 3, 10, 17}) {
      for (const Recipe recipe : all_recipes) {
        if (cols != 3 && recipe != Recipe::wide) continue;
        GradientTrial<Op, TypeParam> trial(many_short_rows<TypeParam>(cols), cols, -0.5, recipe);
        const bool is_staged = sums_rows && go_through_scratch<TypeParam>(cols, sizeof(TypeParam) == 2 ? 160 : 100);

        EXPECT_EQ(trial.plan().kernel == RowKernel::staged_rows, is_staged) << to_string(trial.plan());
        EXPECT_TRUE(trial.run_correct()) << to_string(trial.plan()) << ", " << cols << " columns, "
                                         << to_string(recipe);
      }
      if (sums_rows && cols == 3) {
        GradientTrial<Op, TypeParam> trial(many_short_rows<TypeParam>(cols), cols);

        EXPECT_TRUE(trial.run_in_place_correct(Output::over_x, {})) << cols << " columns, over y";
        EXPECT_TRUE(trial.run_in_place_correct(Output::over_dy, {})) << cols << " columns, over dy";
      }
    }
  });
}

TYPED_TEST(Gradients, AlongEveryAxisOfARank3ViewInEveryLayoutMatch) {
  for_each_gradient([](auto op) {
    constexpr RowOperator Op = decltype(op)::value;
    const std::vector<std::int64_t> extents{5, 37, 19};
    for (int axis = 0; axis < 3; ++axis) {
      for (const Placement& place : {right(extents), left(extents), right(extents, 3), left(extents, 2)}) {
        GradientTrial<Op, TypeParam, 3> trial(place, axis);

        EXPECT_TRUE(trial.run_correct()) << KokkosNN::to_string(Op) << ", axis " << axis;
      }
    }
  });
}

TYPED_TEST(Gradients, OfALayoutLeftViewAlongItsLastAxisTakeInnerLanesAndMatch) {
  for_each_gradient([](auto op) {
    constexpr RowOperator Op = decltype(op)::value;
    for (const std::int64_t rows : {2, 5, 33, 100, 129}) {
      for (const std::int64_t cols : {1, 19, 257, 2000}) {
        GradientTrial<Op, TypeParam> trial(left({rows, cols}), 1);

        if (cols > 1) {
          EXPECT_EQ(trial.plan().strategy, RowStrategy::inner_lanes);
        }
        EXPECT_TRUE(trial.run_correct()) << KokkosNN::to_string(Op) << ", " << rows << " x " << cols;
      }
    }
  });
}

TEST(GradientsOfFloats, ThatNoCacheHoldsMatch) {
  const std::int64_t cols = 1100, rows = rows_beyond_the_cache(cols);
  if (rows == 0) GTEST_SKIP() << "the last-level cache is too large for this test, or not known";
  for_each_gradient([&](auto op) {
    constexpr RowOperator Op = decltype(op)::value;
    for (const Placement& place : {right({rows, cols}), left({rows, cols}), left({rows + 1, cols})}) {
      GradientTrial<Op, float> trial(place, 1);

      EXPECT_EQ(trial.plan().nontemporal_stores, !on_gpu);
      EXPECT_TRUE(trial.run_correct()) << to_string(trial.plan());
    }
  });
}

TEST(GradientsOf16Bit, ThatNoCacheHoldsMatch) {
  const std::int64_t cols = 2105, rows = 2 * rows_beyond_the_cache(cols);
  if (rows == 0) GTEST_SKIP() << "the last-level cache is too large for this test, or not known";
  GradientTrial<RowOperator::softmax_backward, BHalf> trial(rows, cols);

  EXPECT_EQ(trial.plan().nontemporal_stores, !on_gpu);
  EXPECT_TRUE(trial.run_correct()) << to_string(trial.plan());
}

TYPED_TEST(Gradients, OfTensorsInDifferentLayoutsMatch) {
  const std::vector<std::int64_t> extents{5, 37, 19};
  for (int axis = 0; axis < 3; ++axis) {
    GradientTrial<RowOperator::softmax_backward, TypeParam, 3> a(right(extents), left(extents), right(extents, 1),
                                                                 axis);
    GradientTrial<RowOperator::log_softmax_backward, TypeParam, 3> b(left(extents), right(extents), left(extents),
                                                                     axis);

    EXPECT_TRUE(a.run_correct()) << axis;
    EXPECT_TRUE(b.run_correct()) << axis;
  }
}

TYPED_TEST(Gradients, OffEveryAlignmentMatch) {
  for_each_gradient([](auto op) {
    constexpr RowOperator Op = decltype(op)::value;
    for (const int misalignment : {1, 2, 3, 5}) {
      for (const std::int64_t cols : {64, 1001}) {
        GradientTrial<Op, TypeParam> trial(right({9, cols}, misalignment), 1, 1, Recipe::uniform, misalignment);

        EXPECT_TRUE(trial.run_correct()) << KokkosNN::to_string(Op) << ", off by " << misalignment;
      }
    }
  });
}

TYPED_TEST(Gradients, WrittenOverTheirInputsMatch) {
  for_each_gradient([](auto op) {
    constexpr RowOperator Op = decltype(op)::value;
    for (const RowStrategy strategy : strategies_of(Op)) {
      for (const Output output : {Output::over_x, Output::over_dy}) {
        if (Op == RowOperator::logsumexp_backward && output == Output::over_dy) continue;
        const bool in_registers = strategy == RowStrategy::vector_lanes || strategy == RowStrategy::team_registers;
        GradientTrial<Op, TypeParam> trial(13, in_registers ? 60 : 1000);

        EXPECT_TRUE(trial.run_in_place_correct(output, {.plan = {.strategy = strategy}}))
            << KokkosNN::to_string(Op) << " " << KokkosNN::to_string(strategy);
      }
    }
  });
}

TYPED_TEST(Gradients, OfManyMoreSplitRowsThanTeamsMatchInPlaceToo) {
  SKIP_WHERE_TEAMS_SHARE_NO_ROWS();
  SoftmaxOptions options{.plan = {.strategy = RowStrategy::split_row, .teams_per_row = 2}};
  options.plan.team_size = 512;  // the largest, so that there are few groups
  for_each_gradient([&](auto op) {
    constexpr RowOperator Op = decltype(op)::value;
    for (const std::int64_t cols : {776, 777}) {
      GradientTrial<Op, TypeParam> trial(1000, cols);

      EXPECT_TRUE(trial.run_correct(options)) << KokkosNN::to_string(Op) << ", " << cols << " columns";
      EXPECT_TRUE(trial.run_in_place_correct(Output::over_x, options)) << KokkosNN::to_string(Op) << ", " << cols;
    }
  });
}

TYPED_TEST(Gradients, OfABroadcastGradientMatch) {
  for (const std::int64_t cols : {10, 100, 5000}) {
    const Placement place = right({6, cols});
    for (const Placement& broadcast :
         {Placement{{6, cols}, {1, 0}}, Placement{{6, cols}, {0, 1}}, Placement{{6, cols}, {0, 0}}}) {
      GradientTrial<RowOperator::softmax_backward, TypeParam> softmax(place, broadcast, place, 1);
      GradientTrial<RowOperator::log_softmax_backward, TypeParam> log_softmax(place, broadcast, place, 1);

      EXPECT_TRUE(softmax.run_correct()) << cols;
      EXPECT_TRUE(log_softmax.run_correct()) << cols;
    }
  }
}

TYPED_TEST(Gradients, OfRank1AndOfALastExtentOf1Match) {
  for_each_gradient([](auto op) {
    constexpr RowOperator Op = decltype(op)::value;
    GradientTrial<Op, TypeParam, 1> vector(right({1000}), 0);
    GradientTrial<Op, TypeParam, 3> single(right({4, 5, 1}), 2);

    EXPECT_TRUE(vector.run_correct()) << KokkosNN::to_string(Op);
    EXPECT_TRUE(single.run_correct()) << KokkosNN::to_string(Op);
  });
}

TYPED_TEST(Gradients, OfNoRowsOrNoColumnsLaunchNothing) {
  for_each_gradient([](auto op) {
    constexpr RowOperator Op = decltype(op)::value;
    for (const auto& extents : {std::vector<std::int64_t>{0, 5}, std::vector<std::int64_t>{5, 0}}) {
      GradientTrial<Op, TypeParam> trial(right(extents), 1);

      EXPECT_TRUE(kernels_of([&] { trial.call(); }).empty());
      EXPECT_TRUE(kernels_of([&] { trial.plan_object().run(); }).empty());
    }
  });
}

/// dy all but equal to its mean weighted by y: what is left of dy - sum must still be accurate.
TEST(GradientAccuracy, SurvivesTheCancellationOfDyAndTheSum) {
  for (const std::int64_t cols : {64, 1000, 20000}) {
    GradientTrial<RowOperator::softmax_backward, float> trial(5, cols);
    for (std::int64_t i = 0; i < trial.dy().count(); ++i) {
      trial.dy().host()[i] = 1 + static_cast<float>(i % 97) / (1 << 16);
    }
    trial.upload();
    trial.run();

    double worst = 0;
    trial.for_each_result([&](long double value, const Reference::Gradient& expected) {
      if (expected.ill > std::ldexp(1.0L, -16)) worst = std::max(worst, ulp_error<float>(value, expected.dx));
    });
    EXPECT_LE(worst, 4) << cols;
    EXPECT_GT(worst, 0) << "nothing was compared";
  }
}

/// A host takes rows of one vector some at a time; the last ones, or one alone, are fewer.
template <RowOperator Op, class T>
void rows_have_the_bits_that_they_have_alone(std::int64_t cols) {
  constexpr std::int64_t rows = 37;
  const SoftmaxOptions options{.determinism = Determinism::batch_invariant};
  GradientTrial<Op, T> all(rows, cols);
  all.run(options);
  for (std::int64_t row = 0; row < rows; ++row) {
    GradientTrial<Op, T> alone(1, cols);
    std::copy_n(all.x().host() + row * cols, cols, alone.x().host());
    std::copy_n(all.dy().host() + row * cols, cols, alone.dy().host());
    alone.upload();
    alone.run(options);
    ASSERT_EQ(std::memcmp(all.dx().host() + row * cols, alone.dx().host(), cols * sizeof(T)), 0)
        << "row " << row << " of " << cols << " columns";
  }
}

TEST(GradientDeterminism, ARowHasTheBitsThatItHasAlone) {
  for (const std::int64_t cols : {4, 8, 16, 33, 5000}) {
    rows_have_the_bits_that_they_have_alone<RowOperator::softmax_backward, float>(cols);
    rows_have_the_bits_that_they_have_alone<RowOperator::log_softmax_backward, float>(cols);
    rows_have_the_bits_that_they_have_alone<RowOperator::softmax_backward, double>(cols);
    rows_have_the_bits_that_they_have_alone<RowOperator::log_softmax_backward, double>(cols);
  }
}

/// sum dy softmax(scale x), and so on: what the gradients are the gradients of.
template <RowOperator Forward>
std::vector<double> objective(const Buffer<double>& x, const Buffer<double>& dy, std::int64_t rows, std::int64_t cols,
                              double scale) {
  const Placement place = right({rows, cols});
  Buffer<double> y(Forward == RowOperator::logsumexp ? rows : rows * cols);
  const auto x_view = strided_view<2>(static_cast<const double*>(x.device()), place);
  if constexpr (Forward == RowOperator::logsumexp) {
    apply<Forward>(Exec(), x_view, strided_view<1>(y.device(), right({rows})), {.scale = scale});
  } else {
    apply<Forward>(Exec(), x_view, strided_view<2>(y.device(), place), {.scale = scale});
  }
  Exec().fence();
  y.download();
  std::vector<double> value(rows, 0);
  for (std::int64_t row = 0; row < rows; ++row) {
    if constexpr (Forward == RowOperator::logsumexp) {
      value[row] = y.host()[row] * dy.host()[row];
    } else {
      for (std::int64_t i = 0; i < cols; ++i) value[row] += y.host()[row * cols + i] * dy.host()[row * cols + i];
    }
  }
  return value;
}

template <RowOperator Forward, RowOperator Backward>
void matches_central_differences(double scale) {
  constexpr std::int64_t rows = 5, cols = 23;
  constexpr double step = 1e-5;
  Buffer<double> x(rows * cols), dx(rows * cols);
  fill(x.host(), right({rows, cols}), 1, Recipe::uniform);
  x.upload();
  GradientTrial<Backward, double> gradient(rows, cols, scale);
  Buffer<double>& dy       = gradient.dy();
  const SoftmaxOptions all = {.scale = scale};
  const auto matrix        = [&](const Buffer<double>& b) { return strided_view<2>(b.device(), right({rows, cols})); };
  const auto vector        = [&](const Buffer<double>& b) { return strided_view<1>(b.device(), right({rows})); };
  Buffer<double> y(rows * cols);
  if constexpr (Forward == RowOperator::softmax) {
    KokkosNN::softmax(Exec(), matrix(x), matrix(y), all);
    KokkosNN::softmax_backward(Exec(), matrix(y), matrix(dy), matrix(dx), all);
  } else if constexpr (Forward == RowOperator::log_softmax) {
    KokkosNN::log_softmax(Exec(), matrix(x), matrix(y), all);
    KokkosNN::log_softmax_backward(Exec(), matrix(y), matrix(dy), matrix(dx), all);
  } else {
    KokkosNN::logsumexp(Exec(), matrix(x), vector(y), all);
    KokkosNN::logsumexp_backward(Exec(), matrix(x), vector(y), vector(dy), matrix(dx), all);
  }
  Exec().fence();
  dx.download();

  for (std::int64_t col = 0; col < cols; ++col) {
    const auto moved = [&](double by) {
      for (std::int64_t row = 0; row < rows; ++row) x.host()[row * cols + col] += by;
      x.upload();
      return objective<Forward>(x, dy, rows, cols, scale);
    };
    const auto above = moved(step);
    const auto below = moved(-2 * step);
    moved(step);
    for (std::int64_t row = 0; row < rows; ++row) {
      EXPECT_NEAR(dx.host()[row * cols + col], (above[row] - below[row]) / (2 * step), 1e-8) << row << ", " << col;
    }
  }
}

TEST(GradientAccuracy, IsThatOfCentralDifferencesOfTheForwardCall) {
  for (const double scale : {1.0, -0.7}) {
    matches_central_differences<RowOperator::softmax, RowOperator::softmax_backward>(scale);
    matches_central_differences<RowOperator::log_softmax, RowOperator::log_softmax_backward>(scale);
    matches_central_differences<RowOperator::logsumexp, RowOperator::logsumexp_backward>(scale);
  }
}

TEST(GradientTypes, MayDifferFromViewToView) {
  GradientTrial<RowOperator::softmax_backward, float, 2, double, float> mixed(9, 700);
  mixed.run();

  EXPECT_TRUE(mixed.correct());
  EXPECT_NE(to_string(mixed.plan()).find(",f32+f64,"), std::string::npos) << to_string(mixed.plan());
}

template <RowOperator Op, class X, class D, class Y>
void matches_along_both_axes() {
  for (const int axis : {0, 1}) {
    GradientTrial<Op, X, 2, D, Y> trial(right({130, 700}), axis);

    EXPECT_TRUE(trial.run_correct()) << to_string(Op) << " along axis " << axis;
  }
}

/// A forward call from 16 bits to float has a gradient from float to 16 bits.
TEST(GradientTypes, MayBeOf16BitWhereTheResultIsFloat) {
  matches_along_both_axes<RowOperator::softmax_backward, float, float, BHalf>();
  matches_along_both_axes<RowOperator::log_softmax_backward, float, float, BHalf>();
}

TEST(GradientTypes, MayDifferAlongAnyAxis) {
  matches_along_both_axes<RowOperator::softmax_backward, float, double, float>();
}

TEST(GradientTypes, MayBeOf16BitWithALogSumExpInFloat) {
  GradientTrial<RowOperator::logsumexp_backward, Half, 2, float> half(9, 700);
  GradientTrial<RowOperator::logsumexp_backward, BHalf, 2, float> bhalf(9, 700);

  EXPECT_TRUE(half.run_correct());
  EXPECT_TRUE(bhalf.run_correct());
}

// --- values that are not numbers ---

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

/// One row on a strategy, its first elements given and the rest of y 0 and of dy 1.
std::vector<float> results_of(RowOperator op, std::vector<float> y, std::vector<float> dy, RowStrategy strategy,
                              std::int64_t cols) {
  y.resize(cols, op == RowOperator::softmax_backward ? 0.0f : -inf);
  dy.resize(cols, 1);
  Buffer<float> y_buffer(cols), dy_buffer(cols), dx(cols);
  std::copy(y.begin(), y.end(), y_buffer.host());
  std::copy(dy.begin(), dy.end(), dy_buffer.host());
  y_buffer.upload();
  dy_buffer.upload();
  const Placement place = right({1, cols});
  const auto view       = [&](const Buffer<float>& b) { return strided_view<2>(b.device(), place); };
  const SoftmaxOptions options{.scale = 2, .plan = {.strategy = strategy}};
  if (op == RowOperator::softmax_backward) {
    KokkosNN::softmax_backward(Exec(), view(y_buffer), view(dy_buffer), view(dx), options);
  } else {
    KokkosNN::log_softmax_backward(Exec(), view(y_buffer), view(dy_buffer), view(dx), options);
  }
  Exec().fence();
  dx.download();
  return {dx.host(), dx.host() + cols};
}

/// A row, and what its first elements give: the others are asked for the last of them.
struct Case {
  RowOperator op;
  std::vector<float> y, dy, dx;
};

bool is_same(float a, float b) { return a == b || (a != a && b != b); }

TEST(GradientValues, FollowIeeeArithmeticOnEveryStrategy) {
  const auto softmax = RowOperator::softmax_backward;
  const auto log     = RowOperator::log_softmax_backward;
  const std::array cases{
      Case{softmax, {0.5f, 0.5f}, {3, 1}, {1, -1, 0}},          // sum 2
      Case{softmax, {0, 0}, {3, 1}, {0, 0, 0}},                 // masked with MaskedRowPolicy::zero
      Case{softmax, {nan, nan}, {3, 1}, {nan, nan, nan}},       // masked with MaskedRowPolicy::nan; a NaN anywhere
      Case{softmax, {0.5f, 0.5f}, {nan, 1}, {nan, nan, nan}},   // in either
      Case{softmax, {0.5f, 0.5f}, {1, inf}, {-inf, nan, nan}},  // sum inf: inf - inf, and 0 inf
      Case{softmax, {0.5f, 0.5f}, {1, -inf}, {inf, nan, nan}},  //
      Case{softmax, {1, 0}, {1, inf}, {nan, nan, nan}},         // 0 inf in the sum
      Case{log, {-inf, -inf}, {3, 1}, {6, 2, 2}},               // exp(-inf) = 0
      Case{log, {-inf, -inf}, {nan, 1}, {nan, nan, nan}},       // a NaN in the sum
      Case{log, {-1, -inf}, {inf, 1}, {nan, nan, nan}},         // sum inf: inf - inf, and 0 inf
  };
  for (const RowStrategy strategy : strategies_of(softmax)) {
    for (const std::int64_t cols : {3, 24, 128}) {
      for (const Case& c : cases) {
        const auto dx = results_of(c.op, c.y, c.dy, strategy, cols);
        for (std::int64_t i = 0; i < cols; ++i) {
          EXPECT_TRUE(is_same(dx[i], c.dx[std::min<std::int64_t>(i, 2)]))
              << KokkosNN::to_string(c.op) << " " << KokkosNN::to_string(strategy) << ", y " << c.y[0] << " " << c.y[1]
              << ", dy " << c.dy[0] << " " << c.dy[1] << ": element " << i << " is " << dx[i];
        }
      }
      const auto sum = static_cast<float>(cols + 2);  // of dy: 3, 1 and ones
      const auto dx  = results_of(log, {0, nan}, {3, 1}, strategy, cols);
      EXPECT_EQ(dx[0], 2 * (3 - sum));
      EXPECT_TRUE(dx[1] != dx[1]) << "a NaN in y stays where it is";
      EXPECT_EQ(dx[2], 2);
    }
  }
}

TEST(GradientValues, OfALogSumExpFollowTheMaskedRowsPolicy) {
  for (const RowStrategy strategy : strategies_of(RowOperator::logsumexp_backward)) {
    for (const MaskedRowPolicy policy : {MaskedRowPolicy::zero, MaskedRowPolicy::nan}) {
      GradientTrial<RowOperator::logsumexp_backward, float> trial(6, 20);
      float* const x = trial.x().host();
      for (int i = 0; i < 20; ++i) x[i] = -inf;
      trial.lse().host()[0] = -inf;  // masked
      x[20 + 3]             = -inf;  // one element masked
      trial.lse().host()[2] = nan;
      trial.lse().host()[3] = inf;
      trial.dy().host()[4]  = nan;
      x[5 * 20]             = 200;  // far above its row's lse
      trial.upload();

      EXPECT_TRUE(trial.run_correct({.masked_row = policy, .plan = {.strategy = strategy}}))
          << KokkosNN::to_string(strategy);
    }
  }
}

TEST(GradientValues, OfALogSumExpOverASmallScaleAreRightWhereItsQuotientIsNoNumber) {
  const float most = std::numeric_limits<float>::max();
  for (const RowStrategy strategy : strategies_of(RowOperator::logsumexp_backward)) {
    for (const double scale : {1.0 / 3, 0.3, -0.7, 0x1p-10}) {
      GradientTrial<RowOperator::logsumexp_backward, float> trial(5, 20, scale);
      float* const x = trial.x().host();
      for (int i = 0; i < 2 * 20; ++i) x[i] = scale > 0 ? most : -most;
      for (int i = 0; i < 2 * 20; i += 3) x[i] = -x[i];
      // Some ulp above scale x, and far above it.
      trial.lse().host()[0] = static_cast<float>(std::abs(scale) * most) * (1 + 0x1p-20f);
      trial.lse().host()[1] = most;
      // No quotient that leaves the range, but one that is rounded by far more than exponents.
      for (int i = 0; i < 3 * 20; ++i) x[2 * 20 + i] = x[i % 20] / static_cast<float>(3 + i / 20);
      for (int row = 2; row < 5; ++row) {
        trial.lse().host()[row] = static_cast<float>(std::abs(scale * x[20 * row])) * (1 + 0x1p-20f);
      }
      trial.upload();

      EXPECT_TRUE(trial.run_correct({.plan = {.strategy = strategy}})) << to_string(strategy) << ", scale " << scale;
      for (int i = 0; i < 5 * 20; ++i) EXPECT_EQ(trial.dx().host()[i], 0) << i;
    }
  }
}

TEST(GradientValues, OfALogSoftmaxFarAbove0AreNotFinite) {
  const auto dx = results_of(RowOperator::log_softmax_backward, {200, -1}, {1, 1}, RowStrategy::automatic, 3);

  EXPECT_FALSE(std::isfinite(dx[0])) << dx[0];
}

}  // namespace KokkosNNTest
