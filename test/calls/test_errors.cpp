// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/check.hpp"
#include "support/message.hpp"
#include "support/recorder.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <regex>
#include <stdexcept>
#include <string>
#include <vector>

namespace KokkosNNTest {

::testing::AssertionResult matches(const std::string& text, const std::string& pattern) {
  if (std::regex_search(text, std::regex(pattern))) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "\"" << text << "\" does not match \"" << pattern << "\"";
}

/// Calls the operator on x and y at those places, and expects a complaint, y untouched and nothing launched.
template <RowOperator Op, int Rank = 2>
void expect_complaint(const Placement& x, const Placement& y, const SoftmaxOptions& options,
                      const std::string& pattern) {
  Trial<Op, float, float, Rank> trial(x, y, options.axis >= -Rank && options.axis < Rank ? options.axis : 0);
  std::string text;

  const auto kernels =
      kernels_of([&] { text = message_of([&] { apply<Op>(Exec(), trial.x_view(), trial.y_view(), options); }); });

  const std::string name = std::string("^KokkosNN::") + KokkosNN::to_string(Op) + ": ";
  EXPECT_TRUE(matches(text, name + ".*" + pattern));
  EXPECT_TRUE(kernels.empty());
  trial.y().download();
  EXPECT_TRUE(trial.y().untouched());
}

TEST(Errors, ExtentsThatDifferAreNamed) {
  expect_complaint<RowOperator::softmax>(right({3, 41}), right({3, 42}), {}, "3, 41.*3, 42");
  expect_complaint<RowOperator::softmax>(right({3, 41}), right({4, 41}), {}, "3, 41.*4, 41");
  expect_complaint<RowOperator::log_softmax>(right({3, 41}), right({41, 3}), {}, "3, 41.*41, 3");
  expect_complaint<RowOperator::softmax>(right({3, 0}), right({3, 1}), {}, "3, 0.*3, 1");
}

TEST(Errors, ALogSumExpOfTheWrongExtentsIsNamed) {
  expect_complaint<RowOperator::logsumexp>(right({3, 41}), right({41}), {.axis = 1}, "3, 41.*41");
  expect_complaint<RowOperator::logsumexp>(right({3, 41}), right({3}), {.axis = 0}, "3, 41.*3");
  expect_complaint<RowOperator::logsumexp, 3>(right({2, 3, 41}), right({3, 2}), {.axis = 2}, "2, 3, 41.*3, 2");
}

TEST(Errors, AnAxisOutOfRangeIsNamed) {
  for (const int axis : {2, 3, -3, 100, std::numeric_limits<int>::min()}) {
    const std::string pattern = "axis.*" + std::to_string(axis) + ".*2";
    expect_complaint<RowOperator::softmax>(right({3, 4}), right({3, 4}), {.axis = axis}, pattern);
    expect_complaint<RowOperator::log_softmax>(right({3, 4}), right({3, 4}), {.axis = axis}, pattern);
    expect_complaint<RowOperator::logsumexp>(right({3, 4}), right({3}), {.axis = axis}, pattern);
  }
}

TEST(Errors, AScaleThatIsZeroOrNotFiniteIsNamed) {
  const double infinity = std::numeric_limits<double>::infinity();
  expect_complaint<RowOperator::softmax>(right({3, 4}), right({3, 4}), {.scale = 0}, "scale.*0");
  expect_complaint<RowOperator::softmax>(right({3, 4}), right({3, 4}), {.scale = -0.0}, "scale.*0");
  expect_complaint<RowOperator::log_softmax>(right({3, 4}), right({3, 4}), {.scale = infinity}, "scale.*inf");
  expect_complaint<RowOperator::softmax>(right({3, 4}), right({3, 4}), {.scale = 1e31}, "scale.*1e\\+31");
  expect_complaint<RowOperator::softmax>(right({3, 4}), right({3, 4}), {.scale = -1e-31}, "scale.*-1e-31");
  expect_complaint<RowOperator::logsumexp>(right({3, 4}), right({3}), {.scale = -infinity}, "scale.*-inf");
  expect_complaint<RowOperator::softmax>(right({3, 4}), right({3, 4}),
                                         {.scale = std::numeric_limits<double>::quiet_NaN()}, "scale.*nan");
}

TEST(Errors, AnOutputWhoseElementsShareMemoryIsRefused) {
  expect_complaint<RowOperator::softmax>(right({3, 4}), {{3, 4}, {0, 1}}, {}, "share memory");
  expect_complaint<RowOperator::softmax>(right({3, 4}), {{3, 4}, {1, 0}}, {}, "share memory");
  expect_complaint<RowOperator::logsumexp>(right({3, 4}), {{3}, {0}}, {}, "share memory");
}

TEST(Errors, AnOutputThatIsBroadcastAndSharesMemoryAlongTwoOtherAxesIsRefused) {
  for (const std::vector<std::int64_t>& strides :
       std::vector<std::vector<std::int64_t>>{{0, 1, 1}, {1, 0, 1}, {1, 1, 0}, {2, 2, 0}, {0, 0, 1}, {0, 0, 0}}) {
    expect_complaint<RowOperator::softmax, 3>(right({2, 2, 2}), {{2, 2, 2}, strides}, {}, "share memory");
    expect_complaint<RowOperator::log_softmax, 3>(right({2, 2, 2}), {{2, 2, 2}, strides}, {}, "share memory");
    expect_complaint<RowOperator::logsumexp, 4>(right({2, 2, 2, 2}), {{2, 2, 2}, strides}, {}, "share memory");
  }
}

/// Views of the same memory whose elements share it along two axes, and that are broadcast along the third.
struct Broadcast {
  using Output = Kokkos::View<float***, Kokkos::LayoutStride, Memory>;

  Kokkos::View<float*, Memory> memory{"memory", 16};
  Kokkos::View<float***, Memory> x{"x", 2, 2, 2};
  Kokkos::View<int**, Memory> labels{"labels", 2, 2};
  Kokkos::View<float, Memory> loss{"loss"};

  Output output() const { return Output(memory.data(), Kokkos::LayoutStride(2, 0, 2, 1, 2, 1)); }
};

TEST(Errors, SoAreTheOtherOperatorsOutputsThatAreBroadcastLikeThat) {
  const Broadcast b;
  const auto y               = b.output();
  const std::string expected = ".*share memory";

  EXPECT_TRUE(matches(message_of([&] { KokkosNN::softmax_backward(Exec(), b.x, b.x, y); }), expected));
  EXPECT_TRUE(matches(message_of([&] { KokkosNN::log_softmax_backward(Exec(), b.x, b.x, y); }), expected));
  EXPECT_TRUE(matches(message_of([&] { KokkosNN::masked_softmax(Exec(), b.x, KokkosNN::CausalMask{}, y); }), expected));
  EXPECT_TRUE(
      matches(message_of([&] { KokkosNN::masked_log_softmax(Exec(), b.x, KokkosNN::CausalMask{}, y); }), expected));
  EXPECT_TRUE(
      matches(message_of([&] { KokkosNN::masked_softmax_backward(Exec(), b.x, b.x, b.x, KokkosNN::CausalMask{}, y); }),
              expected));
  EXPECT_TRUE(matches(
      message_of([&] { KokkosNN::masked_log_softmax_backward(Exec(), b.x, b.x, b.x, KokkosNN::CausalMask{}, y); }),
      expected));
  EXPECT_TRUE(
      matches(message_of([&] { KokkosNN::masked_softmax_bias_backward(Exec(), b.x, b.x, KokkosNN::CausalMask{}, y); }),
              expected));
  EXPECT_TRUE(
      matches(message_of([&] { KokkosNN::cross_entropy_with_gradient(Exec(), b.x, b.labels, b.loss, y); }), expected));
}

TEST(Errors, AnOutputOfRowsThatSlideOverEachOtherIsRefused) {
  expect_complaint<RowOperator::softmax>(right({3, 4}), {{3, 4}, {1, 1}}, {}, "share memory");
  expect_complaint<RowOperator::softmax>(right({3, 4}), {{3, 4}, {2, 1}}, {}, "share memory");
}

TEST(Errors, AForcedStrategyThatCannotServeIsRefusedBeforeAnythingRuns) {
  expect_complaint<RowOperator::softmax>(right({3, 200000}), right({3, 200000}),
                                         {.plan = {.strategy = RowStrategy::vector_lanes}}, "vector_lanes.*200000");
  expect_complaint<RowOperator::logsumexp>(right({3, 200000}), right({3}),
                                           {.plan = {.strategy = RowStrategy::vector_lanes}}, "vector_lanes.*200000");
  expect_complaint<RowOperator::softmax>(right({3, 40}), right({3, 40}), {.plan = {.team_size = 1 << 20}}, "1048576");
}

// --- overlap ---

/// x and y as parts of one buffer.
struct Shared {
  Buffer<float> buffer{100000};

  Shared() {
    for (std::int64_t i = 0; i < buffer.count(); ++i) buffer.host()[i] = static_cast<float>(i % 13);
    buffer.upload();
  }

  std::string softmax(const Placement& x, const Placement& y, int axis = -1) {
    return message_of([&] {
      KokkosNN::softmax(Exec(), strided_view<2>(static_cast<const float*>(buffer.device()), x),
                        strided_view<2>(buffer.device(), y), {.axis = axis});
      Exec().fence();
    });
  }

  bool unchanged() {
    buffer.download();
    for (std::int64_t i = 0; i < buffer.count(); ++i) {
      if (buffer.host()[i] != static_cast<float>(i % 13)) return false;
    }
    return buffer.guards_intact();
  }
};

Placement shifted(Placement place, std::int64_t by) {
  place.origin += by;
  return place;
}

TEST(Errors, AViewThatOverlapsTheOtherInPartIsRefused) {
  Shared shared;
  const Placement place      = right({10, 100});
  const Placement transposed = {{100, 100}, {1, 100}};
  const Placement reversed   = {{10, 100}, {100, -1}, 99};
  const std::string overlap  = "^KokkosNN::softmax: .*overlap";

  EXPECT_TRUE(matches(shared.softmax(place, shifted(place, 1)), overlap));
  EXPECT_TRUE(matches(shared.softmax(shifted(place, 1), place), overlap));
  EXPECT_TRUE(matches(shared.softmax(place, shifted(place, 100)), overlap));
  EXPECT_TRUE(matches(shared.softmax(place, shifted(place, 999)), overlap));
  EXPECT_TRUE(matches(shared.softmax(right({100, 100}), transposed), overlap));
  EXPECT_TRUE(matches(shared.softmax(place, reversed), overlap));
  EXPECT_TRUE(matches(shared.softmax({{10, 100}, {0, 1}}, place), overlap));
  EXPECT_TRUE(matches(shared.softmax({{10, 100}, {200, 2}}, {{10, 100}, {200, 2}, 100}), overlap));
  EXPECT_TRUE(shared.unchanged());
}

TEST(Errors, ALogSumExpInsideItsInputIsRefused) {
  Shared shared;
  const auto x   = strided_view<2>(static_cast<const float*>(shared.buffer.device()), right({10, 100}));
  const auto lse = strided_view<1>(shared.buffer.device() + 500, right({10}));

  EXPECT_TRUE(matches(message_of([&] { KokkosNN::logsumexp(Exec(), x, lse); }), "^KokkosNN::logsumexp: .*overlap"));
  EXPECT_TRUE(shared.unchanged());
}

TEST(Errors, TheSameBytesAsAnotherTypeAreRefused) {
  Buffer<double> buffer(1000);
  const auto x = strided_view<2>(reinterpret_cast<const float*>(buffer.device()), right({10, 100}));
  const auto y = strided_view<2>(buffer.device(), right({10, 100}));

  EXPECT_TRUE(matches(message_of([&] { KokkosNN::make_plan(RowOperator::softmax, Exec(), x, y); }),
                      "^KokkosNN::softmax: .*overlap"));
  buffer.download();
  EXPECT_TRUE(buffer.untouched());
}

TEST(Errors, InterleavedButDisjointPartsOfOneBufferAreAccepted) {
  Shared shared;
  const Placement left_half = {{10, 512}, {1024, 1}}, right_half = shifted(left_half, 512);
  const Placement even_rows = {{10, 100}, {200, 1}}, odd_rows = shifted(even_rows, 100);
  const Placement even_columns = {{10, 100}, {200, 2}}, odd_columns = shifted(even_columns, 1);
  const Placement first = right({10, 100}), behind = shifted(first, 1000);

  EXPECT_EQ(shared.softmax(left_half, right_half), "(nothing was thrown)");
  EXPECT_EQ(shared.softmax(right_half, left_half), "(nothing was thrown)");
  EXPECT_EQ(shared.softmax(even_rows, odd_rows), "(nothing was thrown)");
  EXPECT_EQ(shared.softmax(even_columns, odd_columns), "(nothing was thrown)");
  EXPECT_EQ(shared.softmax(first, behind), "(nothing was thrown)");
  EXPECT_EQ(shared.softmax(behind, first), "(nothing was thrown)");
}

TEST(Errors, ColumnHalvesOfOneMatrixGiveTheRightResult) {
  Buffer<float> buffer(10 * 1024);
  const Placement x = {{10, 512}, {1024, 1}}, y = {{10, 512}, {1024, 1}, 512};
  fill(buffer.host(), x, -1, Recipe::uniform);
  buffer.upload();

  KokkosNN::softmax(Exec(), strided_view<2>(static_cast<const float*>(buffer.device()), x),
                    strided_view<2>(buffer.device(), y));
  Exec().fence();
  buffer.download();

  const Errors errors = compare<RowOperator::softmax>(buffer.host(), x, buffer.host(), y, 1);
  EXPECT_LE(errors.max_ulp, promised_ulp<float>) << errors.worst;
}

// --- plans and functors ---

TEST(Errors, APlanObjectComplainsAsTheCallDoes) {
  Trial<RowOperator::softmax, float> good(3, 40);
  Trial<RowOperator::softmax, float> wider(3, 41);
  Trial<RowOperator::logsumexp, float> lse(3, 40);

  EXPECT_TRUE(matches(message_of([&] { KokkosNN::SoftmaxPlan plan(Exec(), good.x_view(), wider.y_view()); }),
                      "^KokkosNN::softmax: .*3, 40.*3, 41"));
  EXPECT_TRUE(matches(message_of([&] { KokkosNN::LogSoftmaxPlan plan(Exec(), good.x_view(), wider.y_view()); }),
                      "^KokkosNN::log_softmax: .*3, 40.*3, 41"));
  EXPECT_TRUE(matches(
      message_of([&] { KokkosNN::LogSumExpPlan plan(Exec(), lse.x_view(), lse.y_view(), SoftmaxOptions{.axis = 0}); }),
      "^KokkosNN::logsumexp: .*3, 40"));
}

TEST(Errors, APlanObjectRefusesOtherExtentsAndStrides) {
  Trial<RowOperator::softmax, float> planned(3, 40);
  Trial<RowOperator::softmax, float> wider(3, 41);
  Trial<RowOperator::softmax, float> padded(right({3, 40}, 8), right({3, 40}, 8), -1);
  const KokkosNN::SoftmaxPlan plan(Exec(), planned.x_view(), planned.y_view());

  EXPECT_TRUE(matches(message_of([&] { plan.run(wider.x_view(), wider.y_view()); }), "^KokkosNN::softmax: "));
  EXPECT_TRUE(matches(message_of([&] { plan.run(padded.x_view(), padded.y_view()); }), "^KokkosNN::softmax: "));
  wider.y().download();
  padded.y().download();
  EXPECT_TRUE(wider.y().untouched());
  EXPECT_TRUE(padded.y().untouched());
}

TEST(Errors, MakePlanComplainsAsTheCallDoes) {
  Trial<RowOperator::softmax, float> good(3, 40);
  Trial<RowOperator::softmax, float> wider(3, 41);

  EXPECT_TRUE(
      matches(message_of([&] { KokkosNN::make_plan(RowOperator::softmax, Exec(), good.x_view(), wider.y_view()); }),
              "^KokkosNN::softmax: .*3, 40.*3, 41"));
}

TEST(Errors, MakePlanRefusesOperatorsOfOtherViews) {
  const Trial<RowOperator::softmax, float> trial(3, 40);
  const auto x = trial.x_view();
  const auto y = trial.y_view();

  for (const RowOperator op :
       {RowOperator::softmax_backward, RowOperator::log_softmax_backward, RowOperator::logsumexp_backward,
        RowOperator::masked_softmax, RowOperator::masked_log_softmax, RowOperator::masked_logsumexp,
        RowOperator::masked_softmax_backward, RowOperator::masked_log_softmax_backward, RowOperator::cross_entropy,
        RowOperator::cross_entropy_backward, RowOperator::cross_entropy_with_gradient, RowOperator(99)}) {
    const std::string name = KokkosNN::to_string(op);
    EXPECT_TRUE(matches(message_of([&] { KokkosNN::make_plan(op, Exec(), x, y); }),
                        "^KokkosNN::make_plan: " + name + " takes other Views"));
    const bool is_gradient = op == RowOperator::softmax_backward || op == RowOperator::log_softmax_backward;
    EXPECT_EQ(message_of([&] { KokkosNN::make_plan(op, Exec(), x, x, y); }) == "(nothing was thrown)", is_gradient)
        << name;
  }
}

struct LoadZeros {
  using value_type = float;
  template <int N>
  KOKKOS_FUNCTION KokkosNN::Pack<float, N> load(std::int64_t, std::int64_t) const {
    return {};
  }
};

struct StoreNothing {
  using value_type = float;
  template <int N>
  KOKKOS_FUNCTION void store(const KokkosNN::Pack<float, N>&, std::int64_t, std::int64_t) const {}
  KOKKOS_FUNCTION void store(float, std::int64_t) const {}
};

TEST(Errors, TheFunctorFormNamesWhatIsWrong) {
  const LoadZeros load;
  const StoreNothing store;

  EXPECT_TRUE(matches(message_of([&] { KokkosNN::fused_softmax(Exec(), -1, 5, load, store); }),
                      "^KokkosNN::fused_softmax: .*-1.*5"));
  EXPECT_TRUE(matches(message_of([&] { KokkosNN::fused_softmax(Exec(), 4, 5, load, store, {.axis = 0}); }),
                      "^KokkosNN::fused_softmax: .*axis"));
  EXPECT_TRUE(matches(message_of([&] { KokkosNN::fused_logsumexp(Exec(), 4, 5, load, store, {.scale = 0}); }),
                      "^KokkosNN::fused_logsumexp: .*scale"));
  EXPECT_TRUE(matches(message_of([&] {
                        KokkosNN::fused_softmax(Exec(), 4, 5, load, store,
                                                {.plan = {.strategy = RowStrategy::inner_lanes}});
                      }),
                      "^KokkosNN::(fused_)?softmax: .*inner_lanes"));
}

}  // namespace KokkosNNTest
