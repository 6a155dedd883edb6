// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/devices.hpp"
#include "support/gradient.hpp"
#include "support/instances.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <regex>
#include <stdexcept>
#include <string>
#include <vector>

namespace KokkosNNTest {

// --- errors ---

/// Expects the call to complain by its name and the pattern, to launch nothing and to leave dx as it was.
template <RowOperator Op, int Rank = 2>
void refuses(const Placement& x, const Placement& dy, const Placement& dx, const SoftmaxOptions& options,
             const std::string& pattern) {
  Buffer<float> x_buffer(x.span()), dy_buffer(dy.span()), dx_buffer(dx.span());
  constexpr bool is_lse   = Op == RowOperator::logsumexp_backward;
  const auto x_view       = strided_view<Rank>(static_cast<const float*>(x_buffer.device()), x);
  const auto dy_view      = strided_view<is_lse ? Rank - 1 : Rank>(static_cast<const float*>(dy_buffer.device()), dy);
  const auto dx_view      = strided_view<Rank>(dx_buffer.device(), dx);
  std::string text        = "(nothing was thrown)";
  const auto kernels      = kernels_of([&] {
    try {
      if constexpr (Op == RowOperator::softmax_backward) KokkosNN::softmax_backward(x_view, dy_view, dx_view, options);
      if constexpr (Op == RowOperator::log_softmax_backward) {
        KokkosNN::log_softmax_backward(x_view, dy_view, dx_view, options);
      }
      if constexpr (is_lse) KokkosNN::logsumexp_backward(x_view, dy_view, dy_view, dx_view, options);
    } catch (const std::invalid_argument& e) {
      text = e.what();
    }
  });
  const std::string whole = std::string("^KokkosNN::") + KokkosNN::to_string(Op) + ": .*" + pattern;
  EXPECT_TRUE(std::regex_search(text, std::regex(whole))) << "\"" << text << "\" does not match \"" << whole << "\"";
  EXPECT_TRUE(kernels.empty());
  dx_buffer.download();
  EXPECT_TRUE(dx_buffer.untouched());
}

TEST(GradientErrors, NameExtentsThatDiffer) {
  const Placement good = right({3, 41});
  refuses<RowOperator::softmax_backward>(good, right({3, 42}), good, {}, "y and dy.*3, 41.*3, 42");
  refuses<RowOperator::softmax_backward>(good, good, right({4, 41}), {}, "y and dx.*3, 41.*4, 41");
  refuses<RowOperator::log_softmax_backward>(good, right({41, 3}), good, {}, "y and dy.*3, 41.*41, 3");
  refuses<RowOperator::logsumexp_backward>(good, right({41}), good, {},
                                           "dlse must.*without the axis, \\(3\\).*3, 41.*41");
  refuses<RowOperator::logsumexp_backward>(good, right({3}), right({3, 40}), {}, "x and dx.*3, 41.*3, 40");
}

TEST(GradientErrors, NameAnAxisOutOfRangeAndABadScale) {
  const Placement place = right({3, 4});
  refuses<RowOperator::softmax_backward>(place, place, place, {.axis = 2}, "axis 2.*rank 2");
  refuses<RowOperator::log_softmax_backward>(place, place, place, {.axis = -3}, "axis -3.*rank 2");
  refuses<RowOperator::logsumexp_backward>(place, right({3}), place, {.axis = 7}, "axis 7.*rank 2");
  refuses<RowOperator::softmax_backward>(place, place, place, {.scale = 0}, "scale.*0");
  refuses<RowOperator::log_softmax_backward>(place, place, place, {.scale = 1e31}, "scale.*1e\\+31");
}

TEST(GradientErrors, RefuseAnOutputWhoseElementsShareMemory) {
  const Placement place = right({3, 4});
  refuses<RowOperator::softmax_backward>(place, place, {{3, 4}, {0, 1}}, {}, "share memory");
  refuses<RowOperator::logsumexp_backward>(place, right({3}), {{3, 4}, {1, 1}}, {}, "share memory");
}

TEST(GradientErrors, SayWhyAForcedPlanCannotServe) {
  const Placement place = right({3, 200000}), few = right({3, 4}), rows = right({3});
  refuses<RowOperator::softmax_backward>(place, place, place, {.plan = {.strategy = RowStrategy::vector_lanes}},
                                         "vector_lanes cannot serve.*200000");
  refuses<RowOperator::softmax_backward>(few, few, few, {.plan = {.packs_per_thread = 8}}, "packs_per_thread 8");
  refuses<RowOperator::softmax_backward>(
      few, few, few, {.plan = {.strategy = RowStrategy::split_row, .launches = 2}},
      on_gpu ? "split_row cannot serve.*no second kernel" : "split_row cannot serve.*as one team");
  for (const RowStrategy keeps : {RowStrategy::team_registers, RowStrategy::team_scratch}) {
    refuses<RowOperator::logsumexp_backward>(few, rows, few, {.plan = {.strategy = keeps}}, "nothing of a row is kept");
  }
}

TEST(GradientErrors, RefuseADxThatOverlapsAnInputInPart) {
  Buffer<float> buffer(10000);
  const auto view   = [&](std::int64_t from) { return strided_view<2>(buffer.device() + from, right({10, 100})); };
  const auto refuse = [&](const auto& y, const auto& dy, const auto& dx, const std::string& name) {
    try {
      KokkosNN::softmax_backward(y, dy, dx);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::invalid_argument& e) {
      EXPECT_EQ(std::string(e.what()).rfind("KokkosNN::softmax_backward: " + name + " at ", 0), 0u) << e.what();
    }
  };

  refuse(view(0), view(2000), view(1), "y");
  refuse(view(2000), view(0), view(999), "dy");
  refuse(view(0), view(2000), view(2999), "dy");
  const auto lse = strided_view<1>(buffer.device() + 500, right({10}));
  const auto far = strided_view<1>(buffer.device() + 5000, right({10}));
  EXPECT_THROW(KokkosNN::logsumexp_backward(view(3000), lse, far, view(0)), std::invalid_argument);
  EXPECT_THROW(KokkosNN::logsumexp_backward(view(3000), far, lse, view(0)), std::invalid_argument);
  buffer.download();
  EXPECT_TRUE(buffer.untouched());
}

TEST(GradientErrors, RefuseOperatorsWithOtherViews) {
  GradientTrial<RowOperator::softmax_backward, float> trial(3, 4);
  const auto y = trial.x_view(), dy = trial.dy_view();

  EXPECT_THROW(KokkosNN::make_plan(RowOperator::softmax, Exec(), y, dy, trial.dx_view()), std::invalid_argument);
  EXPECT_THROW(KokkosNN::make_plan(RowOperator::softmax_backward, Exec(), y, trial.dx_view()), std::invalid_argument);
}

TEST(GradientErrors, OfAPlanObjectNameOtherExtentsAndStrides) {
  const GradientTrial<RowOperator::softmax_backward, float> planned(3, 40), wider(3, 41);
  const GradientTrial<RowOperator::softmax_backward, float> padded(right({3, 40}, 8), 1);
  const auto plan = planned.plan_object();

  EXPECT_THROW(plan.run(wider.x_view(), wider.dy_view(), wider.dx_view()), std::invalid_argument);
  EXPECT_THROW(plan.run(padded.x_view(), padded.dy_view(), padded.dx_view()), std::invalid_argument);
  EXPECT_THROW(plan.run(planned.x_view(), wider.dy_view(), planned.dx_view()), std::invalid_argument);
}

// --- determinism ---

std::vector<float> copy_of_dx(Buffer<float>& dx) { return {dx.host(), dx.host() + dx.count()}; }

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(GradientDeterminism, TheSameCallGivesTheSameBitsEveryTime) {
  for_each_gradient([](auto op) {
    constexpr RowOperator Op = decltype(op)::value;
    for (const RowStrategy strategy : strategies_of(Op)) {
      const SoftmaxOptions options{.plan = {.strategy = strategy}};
      GradientTrial<Op, float> trial(20, strategy == RowStrategy::vector_lanes ? 31 : 99);
      trial.run(options);
      const auto first = copy_of_dx(trial.dx());
      for (int run = 0; run < 10; ++run) {
        trial.run(options);

        ASSERT_TRUE(same_bits(copy_of_dx(trial.dx()), first)) << KokkosNN::to_string(strategy) << ", run " << run;
      }
    }
  });
}

/// The bits of a row as number `position` of `rows`, `misalignment` elements off.
template <RowOperator Op>
std::vector<float> bits_of_row(std::int64_t rows, std::int64_t cols, std::int64_t position, int misalignment) {
  GradientTrial<Op, float> one(1, cols);
  GradientTrial<Op, float> trial(right({rows, cols}), 1, 1, Recipe::wide, misalignment);
  std::copy_n(one.x().host(), cols, trial.x().host() + position * cols);
  const std::int64_t d_cols = Op == RowOperator::logsumexp_backward ? 1 : cols;
  std::copy_n(one.dy().host(), d_cols, trial.dy().host() + position * d_cols);
  if (Op == RowOperator::logsumexp_backward) trial.lse().host()[position] = one.lse().host()[0];
  trial.upload();
  trial.run({.determinism = Determinism::batch_invariant});
  const float* const begin = trial.dx().host() + position * cols;
  return {begin, begin + cols};
}

TEST(GradientDeterminism, BatchInvariantRowsHaveTheSameBitsWhereverTheyStand) {
  for_each_gradient([](auto op) {
    constexpr RowOperator Op = decltype(op)::value;
    for (const std::int64_t cols : {3, 100, 777, 1025, 40000}) {
      const auto alone = bits_of_row<Op>(1, cols, 0, 0);
      for (const std::int64_t rows : {2, 37}) {
        for (const int misalignment : {0, 1, 2}) {
          EXPECT_TRUE(same_bits(bits_of_row<Op>(rows, cols, rows - 1, misalignment), alone))
              << KokkosNN::to_string(Op) << ", " << rows << " x " << cols << ", off by " << misalignment;
        }
      }
    }
  });
}

// --- Kokkos ---

TEST(GradientCalls, AreRegionsAndKernelsOfTheirNames) {
  for_each_gradient([](auto op) {
    constexpr RowOperator Op = decltype(op)::value;
    const GradientTrial<Op, float> trial(20, 60);
    Recorder recorder;

    trial.call();

    const std::string name = std::string("KokkosNN::") + KokkosNN::to_string(Op);
    EXPECT_EQ(recorder.regions, std::vector{name});
    EXPECT_EQ(recorder.kernel_labels(), std::vector{to_string(trial.plan())});
    EXPECT_EQ(to_string(trial.plan()).rfind(name + "[", 0), 0u);
    Exec().fence();
  });
}

TEST(GradientCalls, FenceAndAllocateNothingFromTheSecondOn) {
  for_each_gradient([](auto op) {
    constexpr RowOperator Op = decltype(op)::value;
    for (const RowStrategy strategy : strategies_of(Op)) {
      const SoftmaxOptions options{.plan = {.strategy = strategy}};
      const GradientTrial<Op, float> trial(20, 30);
      const Exec exec = other_instance();
      {
        const Recorder watching;  // few elements are no launch without a tool
        trial.call(options, Output::own, exec);
      }
      exec.fence();
      Recorder recorder;

      trial.call(options, Output::own, exec);
      trial.call(options, Output::own, exec);

      EXPECT_EQ(recorder.kernels.size(), 2u);
      EXPECT_TRUE(recorder.neither_fenced_nor_allocated());
      exec.fence();
    }
  });
}

TEST(GradientCalls, RunOnTheInstanceThatWasPassed) {
  if (!tools_tell_instances_apart()) GTEST_SKIP() << "instances of this backend share one id";
  for_each_gradient([](auto op) {
    constexpr RowOperator Op = decltype(op)::value;
    for (const RowStrategy strategy : strategies_of(Op)) {
      const GradientTrial<Op, float> trial(20, 30);
      const Exec exec = other_instance();
      Recorder recorder;

      trial.call({.plan = {.strategy = strategy}}, Output::own, exec);

      ASSERT_EQ(recorder.kernels.size(), 1u);
      EXPECT_EQ(recorder.kernels[0].device, tools_id(exec));
      exec.fence();
    }
  });
}

#ifdef KOKKOS_ENABLE_OPENMP
TEST(GradientCalls, OnAnInstanceOfFewerThreadsAreRight) {
  for_each_gradient([](auto op) {
    constexpr RowOperator Op = decltype(op)::value;
    for (const int threads : {1, 2, 3}) {
      GradientTrial<Op, float> trial(20, 1000);
      const Kokkos::OpenMP exec(threads);

      trial.call({}, Output::own, exec);
      exec.fence();

      trial.dx().download();
      EXPECT_TRUE(trial.correct()) << KokkosNN::to_string(Op) << " on " << threads << " threads";
    }
  });
}
#endif

TEST(GradientPlans, NeitherFenceNorAllocateAndAreRightEveryTime) {
  for_each_gradient([](auto op) {
    constexpr RowOperator Op = decltype(op)::value;
    for (const RowStrategy strategy : strategies_of(Op)) {
      const SoftmaxOptions options{.plan = {.strategy = strategy}};
      GradientTrial<Op, float> trial(20, 30);
      trial.call(options);  // Kokkos itself grows its own scratch in the first kernel of that size
      const auto plan = trial.plan_object(options);
      Exec().fence();
      EXPECT_EQ(plan.row_plan(), trial.plan(options));
      for (int run = 0; run < 3; ++run) {
        trial.dx().poison_all();
        {
          Recorder recorder;
          plan.run();
          EXPECT_EQ(recorder.kernel_labels(), std::vector{to_string(plan.row_plan())});
          EXPECT_TRUE(recorder.fences.empty());
          EXPECT_TRUE(recorder.allocations.empty());
        }
        Exec().fence();
        trial.dx().download();

        EXPECT_TRUE(trial.correct(options)) << KokkosNN::to_string(strategy) << ", run " << run;
      }
    }
  });
}

TEST(GradientPlans, RunOnOtherViewsOfTheSameShape) {
  GradientTrial<RowOperator::softmax_backward, float> a(20, 60), b(20, 60, 1, Recipe::wide);
  GradientTrial<RowOperator::log_softmax_backward, float> c(20, 60), d(20, 60, 1, Recipe::wide);
  GradientTrial<RowOperator::logsumexp_backward, float> e(20, 60), f(20, 60, 1, Recipe::wide);

  a.plan_object().run(b.x_view(), b.dy_view(), b.dx_view());
  c.plan_object().run(d.x_view(), d.dy_view(), d.dx_view());
  e.plan_object().run(f.x_view(), f.lse_view(), f.dy_view(), f.dx_view());
  Exec().fence();

  b.dx().download();
  d.dx().download();
  f.dx().download();
  EXPECT_TRUE(b.correct());
  EXPECT_TRUE(d.correct());
  EXPECT_TRUE(f.correct());
}

TEST(GradientCalls, WithoutAnInstanceRunOnTheDefaultOne) {
  GradientTrial<RowOperator::softmax_backward, float> softmax(3, 50);
  GradientTrial<RowOperator::log_softmax_backward, float> log_softmax(3, 50);
  GradientTrial<RowOperator::logsumexp_backward, float> logsumexp(3, 50);

  KokkosNN::softmax_backward(softmax.x_view(), softmax.dy_view(), softmax.dx_view());
  KokkosNN::log_softmax_backward(log_softmax.x_view(), log_softmax.dy_view(), log_softmax.dx_view());
  KokkosNN::logsumexp_backward(logsumexp.x_view(), logsumexp.lse_view(), logsumexp.dy_view(), logsumexp.dx_view());
  Exec().fence();

  softmax.dx().download();
  log_softmax.dx().download();
  logsumexp.dx().download();
  EXPECT_TRUE(softmax.correct());
  EXPECT_TRUE(log_softmax.correct());
  EXPECT_TRUE(logsumexp.correct());
}

// --- planner, for a GPU that need not be there ---

RowPlan plan_on_gpu(RowOperator op, std::int64_t rows, std::int64_t cols, int bytes) {
  KokkosNN::RowProblem problem;
  problem.op      = op;
  problem.x_bytes = problem.y_bytes = bytes;
  problem.rows                      = rows;
  problem.cols                      = cols;
  return KokkosNN::make_plan(problem, h200());
}

TEST(GradientPlanner, HoldsBothInputsOnChipOnAGpuAsLongAsTheyFit) {
  const auto op = RowOperator::softmax_backward;
  EXPECT_EQ(plan_on_gpu(op, 4096, 256, 4).strategy, RowStrategy::vector_lanes);
  EXPECT_EQ(plan_on_gpu(op, 4096, 1024, 4).strategy, RowStrategy::team_registers);
  EXPECT_EQ(plan_on_gpu(op, 4096, 12672, 4).strategy, RowStrategy::team_registers);
  EXPECT_EQ(plan_on_gpu(op, 16384, 8192, 2).strategy, RowStrategy::team_registers);
  EXPECT_EQ(plan_on_gpu(op, 1024, 50257, 4).strategy, RowStrategy::split_row);
  EXPECT_EQ(plan_on_gpu(op, 4, 8192, 4).strategy, RowStrategy::team_registers);
  EXPECT_EQ(plan_on_gpu(op, 4, 16384, 4).strategy, RowStrategy::split_row);
  for (const std::int64_t cols : {1024, 4096, 12672}) {
    const RowPlan plan = plan_on_gpu(op, 4096, cols, 4);
    EXPECT_LE(plan.packs_per_thread, 4) << "of each input";
    EXPECT_GE(std::int64_t(plan.packs_per_thread) * plan.pack * plan.threads_per_row, cols);
  }
}

TEST(GradientPlanner, KeepsNothingOfALogSumExp) {
  const auto op = RowOperator::logsumexp_backward;
  EXPECT_EQ(plan_on_gpu(op, 4096, 256, 4).strategy, RowStrategy::vector_lanes);
  EXPECT_EQ(plan_on_gpu(op, 4096, 12672, 4).strategy, RowStrategy::team_online);
  EXPECT_EQ(plan_on_gpu(op, 4, 100000, 4).strategy, RowStrategy::split_row);
}

TEST(GradientPlanner, TakesRowsForAlignedOnlyWhereTheirColumnsFillPacksAndShiftsTheOthers) {
  using KokkosNN::RowForm;
  for (const auto op : {RowOperator::softmax_backward, RowOperator::logsumexp_backward}) {
    const auto form = [&](RowForm given, std::int64_t cols) {
      KokkosNN::RowProblem problem;
      problem.op   = op;
      problem.rows = 4096;
      problem.cols = cols;
      problem.form = given;
      return KokkosNN::make_plan(problem, h200()).form;
    };
    EXPECT_EQ(form(RowForm::aligned, 1024), RowForm::aligned);
    EXPECT_EQ(form(RowForm::aligned, 1026), RowForm::misaligned);
    EXPECT_EQ(form(RowForm::misaligned, 1024), RowForm::misaligned);
    EXPECT_EQ(form(RowForm::strided, 1024), RowForm::strided);
  }
}

TEST(GradientLayout, IsShiftedWhereTheRowsOfAllTensorsLieAlikeBetweenPacks) {
  using KokkosNN::RowForm;
  alignas(64) static float memory[3][64];
  const auto tensor = [](int number, int offset) {
    return KokkosNN::Impl::Tensor{memory[number] + offset, sizeof(float), 2, {5, 7}, {7, 1}};
  };
  const auto form = [&](int of_y, int of_dx, int of_dy) {
    const KokkosNN::Impl::Tensors all{tensor(0, of_y), tensor(1, of_dx), tensor(2, of_dy)};
    const KokkosNN::SoftmaxOptions options;
    return KokkosNN::Impl::normalise("softmax_backward", RowOperator::softmax_backward, all, options).form;
  };
  EXPECT_EQ(form(0, 0, 0), RowForm::misaligned);
  EXPECT_EQ(form(3, 3, 3), RowForm::misaligned);
  EXPECT_EQ(form(1, 1, 5), RowForm::misaligned);
  EXPECT_EQ(form(1, 0, 1), RowForm::strided);
  EXPECT_EQ(form(1, 1, 0), RowForm::strided);
}

TEST(GradientPlanner, SplitsNoRowOverTwoKernels) {
  for (const auto op : {RowOperator::softmax, RowOperator::softmax_backward}) {  // a softmax of this size is
    const RowPlan plan = plan_on_gpu(op, 1, 1 << 24, 4);
    EXPECT_EQ(plan.strategy, RowStrategy::split_row);
    EXPECT_EQ(plan.launches(), op == RowOperator::softmax ? 2 : 1);
  }
}

TEST(GradientPlanner, GivesInnerLanesThePacksAndTheTeamsThatItsKernelIsCompiledFor) {
  for (const std::int64_t cols : {1, 64, 1000, 100000}) {
    KokkosNN::RowProblem problem;
    problem.op               = RowOperator::softmax_backward;
    problem.rows             = 65536;
    problem.cols             = cols;
    problem.inner            = 65536;
    problem.inner_contiguous = true;
    problem.x_col_stride = problem.y_col_stride = 65536;
    const RowPlan plan                          = KokkosNN::make_plan(problem, h200());
    EXPECT_EQ(plan.strategy, RowStrategy::inner_lanes);
    EXPECT_EQ(plan.pack, 4);
    EXPECT_EQ(plan.packs_per_thread, KokkosNN::Impl::gradient_inner_packs(KokkosNN::Backend::cuda, plan.pack));
    EXPECT_LE(plan.team_size, KokkosNN::Impl::max_threads_when_wide);
    EXPECT_EQ(plan.team_size % plan.threads_per_row, 0);
    // A sum in two floats for every row, from every warp but where there is only one.
    const int warps = plan.team_size / 32;
    EXPECT_EQ(plan.scratch_bytes,
              warps == 1 ? 0u : std::size_t(warps) * plan.threads_per_row * plan.pack * 2 * sizeof(float));
  }
}

}  // namespace KokkosNNTest
