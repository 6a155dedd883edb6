// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/cross_entropy.hpp"
#include "support/devices.hpp"
#include "support/instances.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <regex>
#include <stdexcept>
#include <string>
#include <vector>

namespace KokkosNNTest {

// --- errors ---

/// Views of float on memory of their own, poisoned, and labels.
struct Tensors {
  Placement logits = right({4, 30}), dlogits = right({4, 30}), rows = right({4}), lse = right({4}), labels = right({4});
  std::int64_t classes = 30;
};

/// Expects the call to complain by its name and the pattern, to launch nothing and to leave its outputs as they were.
template <RowOperator Op, int LossRank = 0>
void refuses(const Tensors& t, const CrossEntropyOptions& options, const std::string& pattern) {
  Buffer<float> logits(t.logits.span()), dlogits(t.dlogits.span()), rows(t.rows.span()), lse(t.lse.span()),
      weights(t.classes);
  const Kokkos::View<int*, Memory> label_memory("labels", static_cast<std::size_t>(t.labels.span()));
  const auto x            = strided_view<2>(static_cast<const float*>(logits.device()), t.logits);
  const auto dx           = strided_view<2>(dlogits.device(), t.dlogits);
  const auto labels       = strided_view<1>(label_memory.data(), t.labels);
  const auto l            = strided_view<1>(lse.device(), t.lse);
  const auto loss         = strided_view<LossRank>(rows.device(), t.rows);
  const auto w            = strided_view<1>(weights.device(), right({t.classes}));
  std::string text        = "(nothing was thrown)";
  const auto kernels      = kernels_of([&] {
    try {
      if constexpr (Op == RowOperator::cross_entropy) KokkosNN::cross_entropy(x, labels, loss, options, l, w);
      if constexpr (Op == RowOperator::cross_entropy_backward) {
        KokkosNN::cross_entropy_backward(x, labels, l, loss, dx, options, w);
      }
      if constexpr (Op == RowOperator::cross_entropy_with_gradient) {
        KokkosNN::cross_entropy_with_gradient(x, labels, loss, dx, options, l, w);
      }
    } catch (const std::invalid_argument& e) {
      text = e.what();
    }
  });
  const std::string whole = std::string("^KokkosNN::") + KokkosNN::to_string(Op) + ": .*" + pattern;
  EXPECT_TRUE(std::regex_search(text, std::regex(whole))) << "\"" << text << "\" does not match \"" << whole << "\"";
  EXPECT_TRUE(kernels.empty());
  for (Buffer<float>* buffer : {&dlogits, &rows, &lse}) {
    buffer->download();
    EXPECT_TRUE(buffer->untouched());
  }
}

constexpr RowOperator forward = RowOperator::cross_entropy, backward = RowOperator::cross_entropy_backward,
                      both = RowOperator::cross_entropy_with_gradient;

TEST(CrossEntropyErrors, NameExtentsThatDiffer) {
  refuses<forward>({.labels = right({5})}, {}, "labels must.*\\(4\\).*4, 30.*\\(5\\)");
  refuses<backward>({.lse = right({3})}, {}, "lse must.*\\(4\\).*4, 30.*\\(3\\)");
  refuses<both>({.dlogits = right({4, 31})}, {}, "logits and dlogits.*4, 30.*4, 31");
  refuses<both>({.classes = 29}, {}, "weights.*30 classes.*29");
  refuses<forward, 1>({.rows = right({6})}, {.reduction = Reduction::none}, "loss must.*\\(4\\).*\\(6\\)");
  refuses<backward, 1>({.rows = right({6})}, {.reduction = Reduction::none}, "dloss must.*\\(4\\).*\\(6\\)");
  refuses<forward>({.logits = right({4, 0}), .classes = 0}, {}, "no classes");
}

TEST(CrossEntropyErrors, NameALossWhoseRankIsNotThatOfTheReduction) {
  refuses<forward>({}, {.reduction = Reduction::none}, "loss must.*Reduction::none.*rank 0.*logits rank 2");
  refuses<forward, 1>({}, {.reduction = Reduction::mean}, "loss must be of rank 0.*rank 1");
  refuses<both, 1>({}, {.reduction = Reduction::sum}, "loss must be of rank 0.*rank 1");
  refuses<backward, 1>({}, {}, "dloss must be of rank 0.*rank 1");
}

TEST(CrossEntropyErrors, NameOptionsOutOfRange) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  for (const double smoothing : {-0.1, 1.5, nan})
    refuses<forward>({}, {.label_smoothing = smoothing}, "label_smoothing");
  for (const double z_loss : {inf, nan}) refuses<backward>({}, {.z_loss = z_loss}, "z_loss must be finite");
  for (const double cap : {-1.0, 1e-40, 1e40, inf, nan}) refuses<both>({}, {.softcap = cap}, "softcap");
  for (const double scale : {inf, nan}) refuses<both>({}, {.gradient_scale = scale}, "gradient_scale must be finite");
}

TEST(CrossEntropyErrors, RefuseOutputsWhoseElementsShareMemory) {
  refuses<both>({.dlogits = {{4, 30}, {0, 1}}}, {}, "share memory");
  refuses<forward, 1>({.rows = {{4}, {0}}}, {.reduction = Reduction::none}, "share memory");
  refuses<forward>({.lse = {{4}, {0}}}, {}, "share memory");
}

TEST(CrossEntropyErrors, SayWhyAForcedPlanCannotServe) {
  const Tensors wide{.logits = right({4, 200000}), .dlogits = right({4, 200000}), .classes = 200000};
  refuses<both>(wide, {.plan = {.strategy = RowStrategy::vector_lanes}}, "vector_lanes cannot serve.*200000");
  refuses<forward>({}, {.plan = {.strategy = RowStrategy::inner_lanes}}, "inner_lanes cannot serve.*classes");
  refuses<both>({}, {.plan = {.strategy = RowStrategy::split_row, .launches = 2}},
                on_gpu ? "split_row.*no second kernel" : "split_row.*as one team");
  for (const RowStrategy keeps : {RowStrategy::team_registers, RowStrategy::team_scratch}) {
    refuses<backward>({}, {.plan = {.strategy = keeps}}, "nothing of a row is kept");
  }
}

TEST(CrossEntropyErrors, RefuseOverlapThatIsNotInPlace) {
  Buffer<float> buffer(10000);
  const Kokkos::View<int*, Memory> labels("labels", 10);
  const auto matrix = [&](std::int64_t from) { return strided_view<2>(buffer.device() + from, right({10, 100})); };
  const auto rows   = [&](std::int64_t from) { return strided_view<1>(buffer.device() + from, right({10})); };
  const auto scalar = [&](std::int64_t from) { return strided_view<0>(buffer.device() + from, Placement{}); };
  const auto names  = [](const auto& call, const std::string& name) {
    try {
      call();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::invalid_argument& e) {
      EXPECT_NE(std::string(e.what()).find(": " + name + " at "), std::string::npos) << e.what();
    }
  };

  names([&] { KokkosNN::cross_entropy_with_gradient(matrix(0), labels, scalar(5000), matrix(1)); }, "logits");
  names([&] { KokkosNN::cross_entropy_with_gradient(matrix(0), labels, scalar(500), matrix(0)); }, "loss");
  names([&] { KokkosNN::cross_entropy(matrix(0), labels, scalar(999)); }, "logits");
  names([&] { KokkosNN::cross_entropy(matrix(0), labels, scalar(5003), {}, rows(5000)); }, "lse");
  names(
      [&] {
        KokkosNN::cross_entropy(matrix(0), labels, scalar(2003), {}, KokkosNN::no_view,
                                strided_view<1>(buffer.device() + 2000, right({100})));
      },
      "weights");
  names([&] { KokkosNN::cross_entropy_backward(matrix(0), labels, rows(300), scalar(5000), matrix(0)); }, "lse");
  names([&] { KokkosNN::cross_entropy_backward(matrix(0), labels, rows(5000), scalar(99), matrix(0)); }, "dloss");
  buffer.download();
  EXPECT_TRUE(buffer.untouched());
}

// --- no rows ---

TEST(CrossEntropyCalls, OfNoRowsGiveAMeanOfNanAndASumOf0) {
  for (const Reduction reduction : {Reduction::none, Reduction::mean, Reduction::sum}) {
    LossTrial<both, float> trial(0, 5, {.reduction = reduction});
    trial.run();

    const float loss = reduction == Reduction::none ? 0 : trial.loss().host()[0];
    EXPECT_TRUE(reduction == Reduction::mean ? std::isnan(loss) : loss == 0) << loss;
  }
}

// --- determinism ---

template <class T>
std::vector<T> copy_of(Buffer<T>& buffer) {
  return {buffer.host(), buffer.host() + buffer.count()};
}

template <class T>
bool have_same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

TEST(CrossEntropyDeterminism, TheSameCallGivesTheSameBitsEveryTime) {
  for_each_cross_entropy([](auto op) {
    constexpr RowOperator Op = decltype(op)::value;
    for (const RowStrategy strategy : loss_strategies_of(Op)) {
      for (const double smoothing : {0.0, 0.1}) {
        const std::int64_t cols = strategy == RowStrategy::vector_lanes ? 31 : 99;
        LossTrial<Op, float> trial(9001, cols, {.label_smoothing = smoothing, .plan = {.strategy = strategy}}, true);
        trial.run();
        const auto loss = copy_of(trial.loss()), dlogits = copy_of(trial.dlogits());
        for (int run = 0; run < 5; ++run) {
          trial.run();

          ASSERT_TRUE(have_same_bits(copy_of(trial.loss()), loss)) << KokkosNN::to_string(strategy) << ", run " << run;
          ASSERT_TRUE(have_same_bits(copy_of(trial.dlogits()), dlogits)) << KokkosNN::to_string(strategy);
        }
      }
    }
  });
}

/// Loss and gradient of a row as number `position` of `rows`, `misalignment` elements off.
std::vector<float> bits_of_row(std::int64_t rows, std::int64_t cols, std::int64_t position, int misalignment) {
  const Placement place = right({rows, cols});
  const CrossEntropyOptions options{.reduction = Reduction::none, .determinism = Determinism::batch_invariant};
  LossTrial<both, float> one(1, cols, options);
  LossTrial<both, float> trial(place, place, options, false, Recipe::wide, misalignment);
  std::copy_n(one.logits().host(), cols, trial.logits().host() + position * cols);
  trial.label(position) = one.label(0);
  trial.upload();
  trial.run();
  const float* const begin = trial.dlogits().host() + position * cols;
  std::vector<float> bits(begin, begin + cols);
  bits.push_back(trial.loss().host()[position]);
  return bits;
}

TEST(CrossEntropyDeterminism, BatchInvariantRowsHaveTheSameBitsWhereverTheyStand) {
  for (const std::int64_t cols : {3, 100, 777, 1025, 40000}) {
    const auto alone = bits_of_row(1, cols, 0, 0);
    for (const std::int64_t rows : {2, 37}) {
      for (const int misalignment : {0, 1, 2}) {
        EXPECT_TRUE(have_same_bits(bits_of_row(rows, cols, rows - 1, misalignment), alone))
            << rows << " x " << cols << ", off by " << misalignment;
      }
    }
  }
}

// --- Kokkos ---

bool is_of(const std::string& label, RowOperator op) {
  return label.rfind(std::string("KokkosNN::") + KokkosNN::to_string(op) + "[", 0) == 0;
}

TEST(CrossEntropyCalls, AreRegionsAndKernelsOfTheirNames) {
  for_each_cross_entropy([](auto op) {
    constexpr RowOperator Op = decltype(op)::value;
    const std::string name   = std::string("KokkosNN::") + KokkosNN::to_string(Op);
    const LossTrial<Op, float> rows(20, 60, {.reduction = Reduction::none});
    const LossTrial<Op, float> mean(20, 60, {.label_smoothing = 0.1}, true);
    Recorder recorder;

    rows.call();
    ASSERT_EQ(recorder.kernels.size(), 1u) << "rows need one kernel";
    mean.call();

    EXPECT_EQ(recorder.regions, (std::vector{name, name}));
    const auto kernels = recorder.kernel_labels();
    for (const auto& kernel : kernels) EXPECT_TRUE(is_of(kernel, Op)) << kernel;
    std::vector<std::string> wanted{name + "[weight_of_classes]", name + "[divisor]", kernels[3]};
    if (Op != backward) wanted.push_back(name + "[loss]");
    EXPECT_EQ(std::vector(kernels.begin() + 1, kernels.end()), wanted);
    Exec().fence();
  });
}

TEST(CrossEntropyCalls, FenceAndAllocateNothingFromTheSecondOn) {
  for_each_cross_entropy([](auto op) {
    constexpr RowOperator Op = decltype(op)::value;
    for (const RowStrategy strategy : loss_strategies_of(Op)) {
      for (const Reduction reduction : {Reduction::none, Reduction::mean, Reduction::sum}) {
        const LossTrial<Op, float> trial(
            20, 30, {.reduction = reduction, .label_smoothing = 0.1, .plan = {.strategy = strategy}}, true);
        const Exec exec = other_instance();
        trial.call(false, exec);
        exec.fence();
        Recorder recorder;

        trial.call(false, exec);
        trial.call(false, exec);

        EXPECT_GE(recorder.kernels.size(), 4u);
        EXPECT_TRUE(recorder.neither_fenced_nor_allocated());
        exec.fence();
      }
    }
  });
}

TEST(CrossEntropyCalls, RunOnTheInstanceThatWasPassed) {
  if (!tools_tell_instances_apart()) GTEST_SKIP() << "instances of this backend share one id";
  for_each_cross_entropy([](auto op) {
    constexpr RowOperator Op = decltype(op)::value;
    const LossTrial<Op, float> trial(20, 30, {.label_smoothing = 0.1, .check_labels = true}, true);
    const Exec exec = other_instance();
    Recorder recorder;

    trial.call(false, exec);

    EXPECT_GE(recorder.kernels.size(), 4u);
    for (const auto& kernel : recorder.kernels) EXPECT_EQ(kernel.device, tools_id(exec)) << kernel.label;
    exec.fence();
  });
}

#ifdef KOKKOS_ENABLE_OPENMP
TEST(CrossEntropyCalls, OnAnInstanceOfFewerThreadsAreRight) {
  for_each_cross_entropy([](auto op) {
    constexpr RowOperator Op = decltype(op)::value;
    for (const int threads : {1, 2, 3}) {
      LossTrial<Op, float> trial(20, 1000, {.label_smoothing = 0.1});
      const Kokkos::OpenMP exec(threads);

      trial.call(false, exec);
      exec.fence();

      trial.loss().download();
      trial.lse().download();
      trial.dlogits().download();
      EXPECT_TRUE(trial.correct()) << KokkosNN::to_string(Op) << " on " << threads << " threads";
    }
  });
}
#endif

TEST(CrossEntropyCalls, WithoutAnInstanceLseOrWeightsRunOnTheDefaultOne) {
  LossTrial<both, float> expected(6, 50);
  expected.run();
  LossTrial<both, float> trial(6, 50);
  Kokkos::View<float, Memory> loss("loss"), dloss("dloss");
  Kokkos::deep_copy(dloss, 1.0f);
  const auto x = trial.logits_view();
  const auto y = trial.labels_view();

  KokkosNN::cross_entropy(x, y, loss);
  float value = 0;
  Kokkos::deep_copy(value, loss);
  EXPECT_EQ(value, expected.loss().host()[0]);

  KokkosNN::cross_entropy(x, y, loss, {}, trial.lse_view());
  KokkosNN::cross_entropy_backward(x, y, trial.lse_view(), dloss, trial.dlogits_view());
  Exec().fence();
  trial.loss().host()[0] = value;
  trial.lse().download();
  trial.dlogits().download();
  EXPECT_TRUE(trial.correct());

  KokkosNN::cross_entropy_with_gradient(x, y, loss, trial.dlogits_view());
  Exec().fence();
  trial.dlogits().download();
  EXPECT_TRUE(trial.correct());
}

TEST(CrossEntropyCalls, OfOneRowOfRank1TakeScalars) {
  LossTrial<both, float> matrix(1, 50);
  matrix.run();
  Kokkos::View<int, Memory> label("label");
  Kokkos::View<float, Memory> loss("loss"), lse("lse");
  Kokkos::View<float*, Memory> x("x", 50), dx("dx", 50);
  Kokkos::deep_copy(label, static_cast<int>(matrix.label(0)));
  Kokkos::deep_copy(x, Kokkos::View<const float*, Memory, Kokkos::MemoryUnmanaged>(matrix.logits().device(), 50));

  KokkosNN::cross_entropy_with_gradient(x, label, loss, dx, {}, lse);
  Exec().fence();

  float values[2];
  Kokkos::deep_copy(values[0], loss);
  Kokkos::deep_copy(values[1], lse);
  EXPECT_EQ(values[0], matrix.loss().host()[0]);
  EXPECT_EQ(values[1], matrix.lse().host()[0]);
  const auto gradient = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), dx);
  for (int c = 0; c < 50; ++c) EXPECT_EQ(gradient(c), matrix.dlogits().host()[c]) << c;
}

// --- planner ---

TEST(CrossEntropyPlans, SayWhichKernelRuns) {
  LossTrial<both, float> trial(20, 60, {.reduction = Reduction::none});
  const auto loss = strided_view<1>(trial.loss().device(), right({20}));
  const auto plan = [&](RowOperator op, const auto& dlogits) {
    return KokkosNN::make_cross_entropy_plan(op, Exec(), trial.logits_view(), trial.labels_view(), loss, dlogits,
                                             trial.options);
  };

  EXPECT_EQ(kernels_of([&] { trial.call(); }), std::vector{to_string(plan(both, trial.dlogits_view()))});
  EXPECT_TRUE(is_of(to_string(plan(forward, KokkosNN::no_view)), forward));
  EXPECT_THROW(plan(forward, trial.dlogits_view()), std::invalid_argument);
  EXPECT_THROW(plan(both, KokkosNN::no_view), std::invalid_argument);
  EXPECT_THROW(plan(RowOperator::softmax, trial.dlogits_view()), std::invalid_argument);
  Exec().fence();
}

// For a GPU that need not be there:

RowPlan planned(RowOperator op, KokkosNN::ElementType type, std::int64_t rows, std::int64_t cols,
                const SoftmaxOptions& options = {}) {
  KokkosNN::RowProblem problem;
  problem.op     = op;
  problem.x_type = problem.y_type = type;
  problem.x_bytes = problem.y_bytes = type == KokkosNN::ElementType::f32 ? 4 : 2;
  problem.rows                      = rows;
  problem.cols                      = cols;
  problem.inner                     = 0;
  problem.form                      = KokkosNN::RowForm::aligned;
  return KokkosNN::make_plan(problem, h200(), options);
}

TEST(CrossEntropyPlans, KeepVocabulariesOnChipAndReadThemOnce) {
  const auto bf16 = KokkosNN::ElementType::bf16, f32 = KokkosNN::ElementType::f32;
  EXPECT_EQ(planned(both, bf16, 8192, 32000).strategy, RowStrategy::team_registers);
  EXPECT_EQ(planned(both, bf16, 4096, 128256).strategy, RowStrategy::split_row);
  EXPECT_EQ(planned(both, bf16, 4096, 128256).team_size, 128) << "two rows at once, as a softmax";
  EXPECT_EQ(planned(both, bf16, 4096, 50257).strategy, RowStrategy::split_row);
  EXPECT_EQ(planned(both, bf16, 4096, 50256).strategy, RowStrategy::team_registers) << "rows without rims";
  EXPECT_EQ(planned(both, f32, 4096, 50257).strategy, RowStrategy::split_row);
  EXPECT_EQ(planned(both, f32, 4096, 50257).form, KokkosNN::RowForm::misaligned);
  EXPECT_EQ(planned(both, f32, 262144, 100).strategy, RowStrategy::vector_lanes);
  // Operators that write no row, or need but an element of one to write it, read it tile by tile.
  EXPECT_EQ(planned(forward, f32, 4096, 50257).strategy, RowStrategy::team_online);
  EXPECT_EQ(planned(backward, bf16, 4096, 50257).strategy, RowStrategy::team_online);
  EXPECT_EQ(planned(backward, bf16, 4096, 50257).form, KokkosNN::RowForm::misaligned);
}

TEST(CrossEntropyPlans, UseOnlyKernelsThatThereAre) {
  const auto bf16 = KokkosNN::ElementType::bf16, f32 = KokkosNN::ElementType::f32;
  for (const RowOperator op : {forward, backward, both}) {
    for (const auto type : {bf16, f32}) {
      for (std::int64_t cols = 1; cols < 40000; cols += 1 + cols / 7) {
        const int k = planned(op, type, 5000, cols).packs_per_thread;
        EXPECT_TRUE(k == 2 || k == 4 || k == 8) << cols << " classes: " << to_string(planned(op, type, 5000, cols));
      }
    }
    EXPECT_THROW(planned(op, f32, 100, 100, {.plan = {.packs_per_thread = 1}}), std::invalid_argument);
    EXPECT_THROW(planned(op, f32, 100, 100, {.plan = {.packs_per_thread = 6}}), std::invalid_argument);
  }
}

}  // namespace KokkosNNTest
