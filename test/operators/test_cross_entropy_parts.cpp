// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/cross_entropy.hpp"
#include "support/message.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <Kokkos_Core.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

// The predicted class beside a loss, and a loss from parts of the classes.

namespace KokkosNNTest {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

/// The first of the greatest elements; a NaN is greater than all numbers.
template <class T>
std::int64_t first_of_greatest(const T* row, std::int64_t cols) {
  std::int64_t best = 0;
  for (std::int64_t c = 1; c < cols; ++c) {
    const float a = static_cast<float>(row[best]), b = static_cast<float>(row[c]);
    if (!std::isnan(a) && (std::isnan(b) || b > a)) best = c;
  }
  return best;
}

/// The classes that both functions predict, or the loss alone, of the trial's logits.
template <class Index, class Trial>
std::vector<std::vector<std::int64_t>> predictions_of(Trial& trial, std::int64_t rows, bool with_gradient = true) {
  const Kokkos::View<Index*, Memory> predicted("predicted", rows);
  const auto host = Kokkos::create_mirror(predicted);
  const auto loss = strided_view<0>(trial.loss().device(), Placement{});
  std::vector<std::vector<std::int64_t>> all;
  const auto run = [&](const auto& call) {
    Kokkos::deep_copy(predicted, Index(-7));
    call();
    Kokkos::deep_copy(host, predicted);
    all.emplace_back(host.data(), host.data() + rows);
  };
  run([&] {
    KokkosNN::cross_entropy(Exec(), trial.logits_view(), trial.labels_view(), loss, trial.options, KokkosNN::no_view,
                            KokkosNN::no_view, predicted);
  });
  if (with_gradient)
    run([&] {
      KokkosNN::cross_entropy_with_gradient(Exec(), trial.logits_view(), trial.labels_view(), loss,
                                            trial.dlogits_view(), trial.options, KokkosNN::no_view, KokkosNN::no_view,
                                            predicted);
    });
  return all;
}

template <class T>
using TrialOf = LossTrial<RowOperator::cross_entropy_with_gradient, T>;

template <class T>
class PredictedClass : public ::testing::Test {};
TYPED_TEST_SUITE(PredictedClass, ElementTypes, ElementNames);

TYPED_TEST(PredictedClass, OnEveryStrategyIsTheFirstOfTheGreatest) {
  const auto& with_gradients = loss_strategies_of(RowOperator::cross_entropy_with_gradient);
  for (const RowStrategy strategy : loss_strategies_of(RowOperator::cross_entropy)) {
    const bool with_gradient = std::ranges::find(with_gradients, strategy) != with_gradients.end();
    int served               = 0;
    for (const std::int64_t cols : {1, 2, 7, 33, 64, 129, 1000, 1025, 4097, 32003}) {
      constexpr std::int64_t rows = 9;
      TrialOf<TypeParam> trial(rows, cols);
      trial.options.plan.strategy = strategy;
      TypeParam* const logits     = trial.logits().host();
      if (cols > 1) {
        // Equal maxima, one of them the last column; NaNs; rows of -inf, and a lone +inf.
        logits[1 * cols + cols / 2] = logits[1 * cols + cols - 1] = TypeParam(30.f);
        logits[2 * cols + cols - 1] = logits[2 * cols + cols / 3] = TypeParam(nan);
        logits[3 * cols + cols / 2]                               = TypeParam(inf);
        for (std::int64_t c = 0; c < cols; ++c) logits[4 * cols + c] = TypeParam(-inf);
        for (std::int64_t c = 0; c < cols; ++c) logits[5 * cols + c] = TypeParam(2.f);
      }
      trial.upload();
      try {
        const auto predicted = predictions_of<std::int64_t>(trial, rows, with_gradient);
        for (std::int64_t row = 0; row < rows; ++row) {
          const std::int64_t expected = first_of_greatest(logits + row * cols, cols);
          ASSERT_EQ(predicted[0][row], expected) << KokkosNN::to_string(strategy) << ", " << cols << ", row " << row;
          ASSERT_EQ(predicted.back()[row], expected)
              << "with gradient, " << KokkosNN::to_string(strategy) << ", " << cols;
        }
        ++served;
      } catch (const std::invalid_argument&) {
        continue;  // too wide for this strategy
      }
    }
    EXPECT_GE(served, 4) << KokkosNN::to_string(strategy);
  }
}

TYPED_TEST(PredictedClass, BesideAnyOptionsIsTheSameAndLeavesTheLossAsItIs) {
  for (const CrossEntropyOptions& options : std::vector<CrossEntropyOptions>{
           {}, {.label_smoothing = 0.1}, {.z_loss = 1e-2, .weighted_z_loss = false}, {.softcap = 30}}) {
    TrialOf<TypeParam> trial(11, 257, options);
    const auto predicted = predictions_of<std::int32_t>(trial, 11);
    trial.loss().download();
    const auto with = trial.loss().host()[0];
    trial.run();

    for (std::int64_t row = 0; row < 11; ++row) {
      EXPECT_EQ(predicted[0][row], first_of_greatest(trial.logits().host() + row * 257, 257)) << row;
      EXPECT_EQ(predicted[1][row], predicted[0][row]) << row;
    }
    const double tolerance = std::is_same_v<TypeParam, double> ? 1e-14 : 1e-3;
    EXPECT_NEAR(trial.loss().host()[0], with, tolerance);
  }
}

TEST(PredictedClassErrors, NameWhatIsWrong) {
  TrialOf<float> trial(3, 7);
  const auto loss = strided_view<0>(trial.loss().device(), Placement{});
  const Kokkos::View<int*, Memory> few("predicted", 2);
  EXPECT_EQ(message_of([&] {
              KokkosNN::cross_entropy(Exec(), trial.logits_view(), trial.labels_view(), loss, {}, KokkosNN::no_view,
                                      KokkosNN::no_view, few);
            }),
            "KokkosNN::cross_entropy: predicted must have the extents of logits without the axis, (3), but logits is "
            "(3, 7) and predicted is (2)");
  EXPECT_EQ(message_of([&] {
              KokkosNN::cross_entropy(Exec(), trial.logits_view(), trial.labels_view(), loss, {.classes = 9});
            }),
            "KokkosNN::cross_entropy: first_class and classes are for cross_entropy_backward alone and must be 0, but "
            "are 0 and 9");
  EXPECT_EQ(message_of([&] {
              KokkosNN::cross_entropy_backward(Exec(), trial.logits_view(), trial.labels_view(), trial.lse_view(), loss,
                                               trial.dlogits_view(), {.first_class = 3, .classes = 9});
            }),
            "KokkosNN::cross_entropy_backward: logits have the columns of 7 classes from number 3 on, but there are "
            "only 9");
}

/// Losses and gradients of 3 parts of the classes by log-sum-exps, against those of all classes at once.
template <class T>
class LossFromParts : public ::testing::Test {};
TYPED_TEST_SUITE(LossFromParts, ElementTypes, ElementNames);

TYPED_TEST(LossFromParts, WithEveryOptionIsThatOfAllClasses) {
  using A                     = KokkosNN::accumulator_t<TypeParam>;
  constexpr std::int64_t rows = 23, cols = 300, parts = 3, width = cols / parts;
  const std::vector<Reduction> many = {Reduction::none, Reduction::mean, Reduction::sum};
  for (const Reduction reduction : many) {
    for (const bool is_weighted : {false, true}) {
      for (const bool weighs_z : {true, false}) {
        const CrossEntropyOptions options{.reduction = reduction, .z_loss = 1e-2, .weighted_z_loss = weighs_z};
        LossTrial<RowOperator::cross_entropy, TypeParam> whole(rows, cols, options, is_weighted);
        LossTrial<RowOperator::cross_entropy_backward, TypeParam> backward(rows, cols, options, is_weighted);
        ASSERT_TRUE(whole.run_correct());
        const auto logits = whole.logits_view();
        const Kokkos::View<A**, Kokkos::LayoutRight, Memory> lses("lses", parts, rows);
        const Kokkos::View<A*, Memory> lse("lse", rows), label_logits("label_logits", rows);
        const auto part_of = [&](const auto& view, std::int64_t p) {
          return Kokkos::subview(view, Kokkos::ALL, Kokkos::make_pair(p * width, (p + 1) * width));
        };
        for (std::int64_t p = 0; p < parts; ++p) {
          KokkosNN::logsumexp(Exec(), part_of(logits, p), Kokkos::subview(lses, p, Kokkos::ALL));
        }
        KokkosNN::logsumexp(Exec(), lses, lse, {.axis = 0});
        const auto host = Kokkos::create_mirror(label_logits);
        for (std::int64_t row = 0; row < rows; ++row) {
          const std::int64_t label = whole.label(row);
          host(row)                = label < 0 ? A(nan) : static_cast<A>(whole.logits().host()[row * cols + label]);
        }
        Kokkos::deep_copy(label_logits, host);
        const Kokkos::View<A*, Memory> losses("losses", reduction == Reduction::none ? rows : 1);
        const auto run = [&](const auto& loss, const auto& dloss, const auto& weights) {
          CrossEntropyOptions of_parts = options;
          of_parts.classes             = cols;
          KokkosNN::cross_entropy_from_lse(Exec(), lse, label_logits, whole.labels_view(), loss, of_parts, weights);
          backward.dlogits().poison_all();
          for (std::int64_t p = 0; p < parts; ++p) {
            of_parts.first_class = p * width;
            KokkosNN::cross_entropy_backward(Exec(), part_of(backward.logits_view(), p), backward.labels_view(),
                                             backward.lse_view(), dloss, part_of(backward.dlogits_view(), p), of_parts,
                                             weights);
          }
        };
        const auto with_weights = [&](const auto& loss, const auto& dloss) {
          is_weighted ? run(loss, dloss, backward.weights_view()) : run(loss, dloss, KokkosNN::no_view);
        };
        if (reduction == Reduction::none) {
          with_weights(losses, strided_view<1>(backward.loss().device(), right({rows})));
        } else {
          with_weights(Kokkos::subview(losses, 0), strided_view<0>(backward.loss().device(), Placement{}));
        }
        Exec().fence();
        backward.dlogits().download();

        const auto results = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), losses);
        for (std::size_t i = 0; i < results.extent(0); ++i) {
          const double want = whole.loss().host()[i];
          EXPECT_NEAR(results(i), want, 16 * std::numeric_limits<A>::epsilon() * std::max(8.0, std::fabs(want))) << i;
        }
        EXPECT_TRUE(backward.correct()) << "reduction " << int(reduction) << ", weights " << is_weighted;
      }
    }
  }
}

TEST(LossFromLse, OfSpecialRowsIsAsOfTheirLogits) {
  using Values = std::vector<double>;
  const Values lses{1, inf, -inf, nan, 2, 2, 2, 0.5}, logits{1, 0, -inf, 0, nan, -inf, 0, 0.75};
  const std::vector<std::int64_t> labels{0, 1, 2, 3, 4, 5, -100, 0};
  const Values expected{0, nan, nan, nan, nan, inf, 0, 0};
  const Kokkos::View<double*, Memory> lse("lse", 8), label_logits("label_logits", 8), loss("loss", 8);
  const Kokkos::View<std::int64_t*, Memory> classes("labels", 8);
  const auto set = [](const auto& view, const auto& values) {
    const auto host = Kokkos::create_mirror(view);
    for (std::size_t i = 0; i < values.size(); ++i) host(i) = values[i];
    Kokkos::deep_copy(view, host);
  };
  set(lse, lses);
  set(label_logits, logits);
  set(classes, labels);

  KokkosNN::cross_entropy_from_lse(Exec(), lse, label_logits, classes, loss, {.reduction = Reduction::none});

  const auto results = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), loss);
  for (std::size_t i = 0; i < 8; ++i) {
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(results(i))) << i;
    } else {
      EXPECT_EQ(results(i), expected[i]) << i;
    }
  }
}

TEST(LossFromLse, OfBadArgumentsIsAnError) {
  const Kokkos::View<float*, Memory> lse("lse", 3), few("few", 2), loss("loss", 3), weights("weights", 5);
  const Kokkos::View<int*, Memory> labels("labels", 3);
  const auto complaint = [&](const auto& logits, const CrossEntropyOptions& options) {
    return message_of([&] { KokkosNN::cross_entropy_from_lse(Exec(), lse, logits, labels, loss, options, weights); });
  };
  const std::string function = "KokkosNN::cross_entropy_from_lse: ";
  EXPECT_EQ(complaint(few, {.reduction = Reduction::none}),
            function + "label_logits must have the extents of lse, (3), but has (2)");
  EXPECT_EQ(complaint(lse, {}),
            function + "loss must be of rank 0 with Reduction::mean and Reduction::sum, but has rank 1");
  EXPECT_EQ(complaint(lse, {.reduction = Reduction::none, .softcap = 30}),
            function + "softcap must be 0, as a log-sum-exp does not tell all logits, but is 30");
  EXPECT_EQ(complaint(lse, {.reduction = Reduction::none, .classes = 4}),
            function + "classes must be 0 or the number of weights, but is 4 beside 5 weights");
  Kokkos::deep_copy(labels, 5);
  EXPECT_EQ(complaint(lse, {.reduction = Reduction::none, .check_labels = true}),
            function + "the label of row 0 is 5, neither one of the 5 classes, 0 to 4, nor ignore_index -100");
}

}  // namespace
}  // namespace KokkosNNTest
