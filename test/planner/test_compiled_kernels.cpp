// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/check.hpp"
#include "support/devices.hpp"

#include <KokkosNN/KokkosNN.hpp>
#include <KokkosNN/impl/compiled_kernels.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

// Which kernels there are: planner and launcher must not differ about it, or a call would launch nothing.

namespace KokkosNNTest {

using namespace KokkosNN;
using KokkosNN::Impl::has_kernel;
using KokkosNN::Impl::KernelTypes;

constexpr std::array every_operator{RowOperator::softmax,
                                    RowOperator::log_softmax,
                                    RowOperator::logsumexp,
                                    RowOperator::softmax_backward,
                                    RowOperator::log_softmax_backward,
                                    RowOperator::logsumexp_backward,
                                    RowOperator::masked_softmax,
                                    RowOperator::masked_log_softmax,
                                    RowOperator::masked_logsumexp,
                                    RowOperator::masked_softmax_backward,
                                    RowOperator::masked_log_softmax_backward,
                                    RowOperator::cross_entropy,
                                    RowOperator::cross_entropy_backward,
                                    RowOperator::cross_entropy_with_gradient,
                                    RowOperator::soft_cross_entropy,
                                    RowOperator::soft_cross_entropy_with_gradient,
                                    RowOperator::rms_norm,
                                    RowOperator::layer_norm,
                                    RowOperator::rms_norm_backward,
                                    RowOperator::layer_norm_backward,
                                    RowOperator::add_rms_norm,
                                    RowOperator::add_layer_norm,
                                    RowOperator::add_rms_norm_backward,
                                    RowOperator::add_layer_norm_backward};
constexpr std::array every_strategy{RowStrategy::automatic,      RowStrategy::vector_lanes, RowStrategy::team_scratch,
                                    RowStrategy::team_registers, RowStrategy::team_online,  RowStrategy::split_row,
                                    RowStrategy::row_in_cluster, RowStrategy::inner_lanes};
constexpr std::array every_form{RowForm::strided, RowForm::misaligned, RowForm::aligned};
constexpr std::array every_backend{Backend::host, Backend::cuda, Backend::hip};

constexpr std::array every_kernel{RowKernel::row_in_team, RowKernel::row_in_lanes, RowKernel::few_rows,
                                  RowKernel::staged_rows, RowKernel::split_row,    RowKernel::split_online,
                                  RowKernel::split_twice, RowKernel::inner_lanes,  RowKernel::inner_online,
                                  RowKernel::host_rows,   RowKernel::host_inner,   RowKernel::row_in_cluster};

/// f(types, form) for all operators, forms and backends, some types, with and without what changes elements.
template <class F>
void for_each_types(const F& f) {
  for (const Backend backend : every_backend) {
    for (const RowOperator op : every_operator) {
      for (const RowForm form : every_form) {
        for (int bytes = 2; bytes <= 8; bytes *= 2) {
          for (const bool changes : {false, true}) {
            for (const bool one_stride : {false, true}) {
              const int accumulator = bytes == 8 ? 8 : 4;
              const int pack        = Impl::pack_size(backend, bytes, bytes, accumulator);
              f(KernelTypes{backend, op, pack, bytes, bytes, accumulator, true, changes, changes, one_stride}, form);
            }
          }
        }
      }
    }
  }
}

TEST(CompiledKernels, TheLaunchersListHasEveryKernelOfRowsInRegisters) {
  for_each_types([](const KernelTypes& types, RowForm form) {
    const Impl::RegisterKernels list = Impl::register_kernels(form, types);
    for (const RowStrategy strategy : {RowStrategy::vector_lanes, RowStrategy::team_registers}) {
      for (const RowKernel kernel : {RowKernel::row_in_team, RowKernel::row_in_lanes, RowKernel::few_rows}) {
        for (int k = 0; k <= 64; ++k) {
          for (int bound = 0; bound <= 1024; bound += 32) {
            const auto is_it = [&](const Impl::RegisterKernel& r) {
              return r.kernel == kernel && r.packs == k && r.max_threads == bound;
            };
            const bool is_in_list = std::any_of(list.all.begin(), list.all.begin() + list.count, is_it);
            const bool exists     = Impl::exists({strategy, kernel, form, types.pack, k, bound}, types);
            ASSERT_LE(exists, is_in_list)
                << to_string(types.op) << ' ' << to_string(kernel) << ' ' << k << ' ' << bound;
          }
        }
      }
    }
  });
}

/// Which kernels a strategy may have is a matter of the strategy and of the machine.
TEST(CompiledKernels, AKernelServesOneStrategyOrTheFourOfRowsThatATeamHas) {
  for_each_types([](const KernelTypes& types, RowForm form) {
    for (const RowStrategy strategy : every_strategy) {
      for (const RowKernel kernel : every_kernel) {
        for (const int bound : {512, 576, 768, 1024}) {
          const bool is_split =
              kernel == RowKernel::split_row || kernel == RowKernel::split_online || kernel == RowKernel::split_twice;
          const bool is_inner =
              kernel == RowKernel::inner_lanes || kernel == RowKernel::inner_online || kernel == RowKernel::host_inner;
          const bool is_on_host = kernel == RowKernel::host_rows || kernel == RowKernel::host_inner;
          if (!Impl::exists({strategy, kernel, form, types.pack, 4, bound}, types)) continue;
          ASSERT_EQ(is_split, strategy == RowStrategy::split_row);
          ASSERT_EQ(is_inner, strategy == RowStrategy::inner_lanes);
          ASSERT_EQ(kernel == RowKernel::row_in_cluster, strategy == RowStrategy::row_in_cluster);
          ASSERT_LE(is_on_host, types.backend == Backend::host);
          if (kernel == RowKernel::few_rows) ASSERT_EQ(strategy, RowStrategy::team_registers);
          if (kernel == RowKernel::row_in_lanes) ASSERT_EQ(strategy, RowStrategy::vector_lanes);
        }
      }
    }
  });
}

/// Kernels for rows of such types: those in registers, each once for the two strategies that they serve, and all
/// others. A host's for rows in registers is that of team_scratch, and one takes rows side by side of any pack.
int kernels_of(const KernelTypes& types, RowForm form) {
  int count = static_cast<int>(Impl::register_kernels(form, types).count);
  for (const RowStrategy strategy : every_strategy) {
    for (const RowKernel kernel : every_kernel) {
      if (Impl::is_in_registers(strategy) && kernel != RowKernel::staged_rows) continue;
      for (const int bound : Impl::RegisterKernels::launch_bounds) {
        for (int k = 1; k <= 64; ++k) {
          for (int pack = 1; pack <= 64; pack *= 2) {
            if (kernel == RowKernel::host_inner && k != 1) continue;
            if (types.backend == Backend::host && pack != types.pack) continue;
            const bool exists = Impl::exists({strategy, kernel, form, pack, k, bound}, types);
            count += exists ? (kernel == RowKernel::split_twice ? 2 : 1) : 0;
          }
        }
      }
    }
  }
  return count;
}

/// Kernels of rows that the library holds without KokkosNN_TYPE_PAIRS, ragged rows and sums left out.
int kernels_in_library(Backend backend) {
  int count = 0;
  for_each_types([&](const KernelTypes& types, RowForm form) {
    const bool changes    = types.is_extended;
    const bool has_kinds  = is_cross_entropy(types.op) || is_masked(types.op);
    const bool has_both   = Impl::has_few_kernels_along_axes(backend, types.op, types.x_bytes, form);
    const bool is_counted = types.backend == backend && (has_kinds || !changes) && (has_both || types.one_stride);
    if (!is_counted) return;
    const int sixteen_bit_types = types.x_bytes == 2 ? 2 : 1;
    KernelTypes compiled        = types;
    const auto family           = traits_of(types.op).family;
    compiled.can_be_staged      = is_forward(types.op) || family == OperatorFamily::gradient;
    if (is_masked(types.op) && !is_gradient(types.op) && types.element_mask) {
      compiled.x_bytes = types.accumulator_bytes;  // logits that were changed
      compiled.pack    = Impl::pack_size(backend, compiled.x_bytes, types.y_bytes, types.accumulator_bytes);
    }
    count += sixteen_bit_types * kernels_of(compiled, form);
  });
  return count;
}

/// Each kernel takes compile time, and room in every program. More of them are a decision: with what it gains, and with
/// another number here.
TEST(CompiledKernels, AreNoMoreThanWasDecided) {
  // Masked logarithms and their gradient: 172 and 156. Cross entropy against probabilities, with and without its
  // gradient: 94 and 56. Rows in clusters: 16. Cross entropies on a host: 88, with packs of their own 184.
  EXPECT_LE(kernels_in_library(Backend::cuda), 1988);
  EXPECT_LE(kernels_in_library(Backend::hip), 1182);
  if (Impl::has_host_vectors) EXPECT_LE(kernels_in_library(Backend::host), 692);  // else a GPU's packs serve
}

TEST(CompiledKernels, MisalignedRowsAlongSeveralAxesHaveFew) {
  const KernelTypes one{Backend::cuda, RowOperator::softmax, 4, 4, 4, 4, true};
  KernelTypes several = one;
  several.one_stride  = false;
  EXPECT_LT(2 * kernels_of(several, RowForm::misaligned), kernels_of(one, RowForm::misaligned));
  EXPECT_EQ(kernels_of(several, RowForm::aligned), kernels_of(one, RowForm::aligned));
  EXPECT_EQ(kernels_of(several, RowForm::strided), kernels_of(one, RowForm::strided));
}

// --- the launcher ---

/// f(plan) for every plan that differs from a good one in packs, form, kernel or launch bound.
template <class F>
void for_each_plan_like(RowPlan plan, const F& f) {
  for (int k = 0; k <= 33; ++k) {
    for (const RowKernel kernel : every_kernel) {
      for (const RowForm form : every_form) {
        for (const int max_threads : {0, 512, 576, 768, 1000, 1024}) {
          plan.packs_per_thread = k;
          plan.kernel           = kernel;
          plan.form             = form;
          plan.max_threads      = max_threads;
          f(plan);
        }
      }
    }
  }
}

/// True if two plans that have kernels differ in the team sizes or scratch that those need, not in the kernels alone.
bool need_other_sizes(const RowPlan& plan, const RowPlan& good) {
  const bool holds_less = on_gpu && plan.packs_per_thread < good.packs_per_thread;
  const bool is_smaller = plan.max_threads < plan.team_size;
  const bool runs_often = plan.strategy == RowStrategy::vector_lanes || plan.strategy == RowStrategy::team_registers;
  const bool is_like    = plan.kernel == good.kernel || (runs_often && plan.kernel == RowKernel::row_in_team);
  return holds_less || is_smaller || !is_like || plan.form != good.form;
}

/// True if this build has a plan's kernel: those of clusters are not compiled for every NVIDIA GPU.
bool is_compiled(const RowPlan& plan, const KernelTypes& types) {
  return has_kernel(plan, types) &&
         (plan.kernel != RowKernel::row_in_cluster || KokkosNN::device_traits(Exec()).largest_cluster > 0);
}

/// A plan by a strategy, or one with that name alone where it does not serve these rows.
template <RowOperator op>
RowPlan plan_by(Trial<op, float, float, 3>& trial, RowStrategy strategy) {
  RowPlan plan;
  try {
    plan = trial.plan({.plan = {.strategy = strategy}});
  } catch (const std::invalid_argument&) {
    plan = trial.plan({});
  }
  plan.strategy = strategy;
  return plan;
}

/// Launches a plan, which must write y, correctly, if it has a kernel, and else be refused with y untouched.
template <RowOperator op>
void expect_launched_or_refused(Trial<op, float, float, 3>& trial, const RowPlan& plan, const KernelTypes& types) {
  const auto x = trial.x_view();
  const auto y = trial.y_view();
  const SoftmaxOptions options{.axis = 1};
  const Impl::Tensors tensors{Impl::tensor_of(x), Impl::tensor_of(y)};
  const auto layout = Impl::normalise("test", op, tensors, options);
  trial.y().poison_all();
  bool is_refused = false;
  try {
    Impl::ViewCall<Exec, op, float, float>::run(Exec(), {plan, layout, tensors, options});
  } catch (const std::logic_error& error) {
    is_refused = true;
    EXPECT_NE(std::string(error.what()).find("no kernel is compiled"), std::string::npos) << error.what();
  }
  Exec().fence();
  trial.y().download();

  EXPECT_EQ(is_refused, !is_compiled(plan, types)) << to_string(plan);
  if (is_refused) {
    EXPECT_TRUE(trial.y().untouched()) << to_string(plan);
  } else {
    EXPECT_TRUE(trial.correct(options)) << to_string(plan);
  }
}

template <RowOperator op>
int launches_of_every_plan() {
  constexpr Backend backend = Impl::backend_of<Exec>();
  const Placement x         = right({6, 12, 1});
  Trial<op, float, float, 3> trial(x, op == RowOperator::logsumexp ? right({6, 1}) : x, 1);
  const KernelTypes types{backend, op, Impl::pack_size(backend, 4, 4, 4), 4, 4, 4, true};
  int launched = 0;
  for (const RowStrategy strategy : every_strategy) {
    const RowPlan good = plan_by<op>(trial, strategy);
    for_each_plan_like(good, [&](const RowPlan& plan) {
      if (is_compiled(plan, types) && need_other_sizes(plan, good)) return;
      expect_launched_or_refused<op>(trial, plan, types);
      launched += is_compiled(plan, types);
    });
  }
  return launched;
}

TEST(CompiledKernels, TheLauncherRunsEveryPlanThatHasAKernelAndRefusesEveryOther) {
  EXPECT_GT(launches_of_every_plan<RowOperator::softmax>(), 6);
  EXPECT_GT(launches_of_every_plan<RowOperator::log_softmax>(), 6);
  EXPECT_GT(launches_of_every_plan<RowOperator::logsumexp>(), 6);
}

TEST(CompiledKernels, AGradientsPlanThatHasNoneIsRefused) {
  using Call = Impl::GradientCall<Exec, RowOperator::softmax_backward, float, float, float>;
  const Kokkos::View<float**, Kokkos::LayoutRight, Memory> y("y", 6, 12), dx("dx", 6, 12);
  const SoftmaxOptions options;
  const Impl::Tensors tensors{Impl::tensor_of(y), Impl::tensor_of(dx), Impl::tensor_of(y)};
  const auto layout  = Impl::normalise("test", RowOperator::softmax_backward, tensors, options);
  const RowPlan good = make_plan(RowOperator::softmax_backward, Exec(), y, y, dx);
  const auto run     = [&](const RowPlan& plan) {
    Call::run(Exec(), {plan, layout, tensors, options});
    Exec().fence();
  };

  EXPECT_NO_THROW(run(good));
  for (const int k : {0, 5, 7, 9, 16}) {
    RowPlan plan          = good;
    plan.strategy         = RowStrategy::vector_lanes;
    plan.packs_per_thread = k;
    EXPECT_THROW(run(plan), std::logic_error) << to_string(plan);
  }
  RowPlan twice  = good;
  twice.strategy = RowStrategy::split_row;
  twice.kernel   = RowKernel::split_twice;
  EXPECT_THROW(run(twice), std::logic_error);
  RowPlan other = good;
  other.op      = RowOperator::log_softmax_backward;
  EXPECT_THROW(run(other), std::logic_error);
}

// --- the planner ---

KernelTypes types_of(const RowProblem& p, Backend backend) {
  return {backend,
          p.op,
          Impl::pack_size(backend, p.x_bytes, p.y_bytes, p.accumulator_bytes),
          p.x_bytes,
          p.y_bytes,
          p.accumulator_bytes,
          Impl::has_staged_types(p.op, p.x_type, p.y_type, p.dy_type),
          p.element_mask,
          p.is_extended,
          p.one_stride,
          p.is_shard};
}

/// f(problem, machine) for all operators, forms and backends, some types and sizes.
template <class F>
void for_each_problem(const F& f) {
  for (const DeviceTraits& traits : {h200(), wave64(), host(1), host(4)}) {
    for (const RowOperator op : every_operator) {
      for (const ElementType type : {ElementType::f64, ElementType::f32, ElementType::bf16}) {
        for (const std::int64_t cols : {1, 31, 64, 129, 1280, 4096, 50257, 262144}) {
          for (const std::int64_t rows : {1, 5, 4096, 2000000}) {
            for (const RowForm form : every_form) {
              RowProblem p = problem(rows, cols, type, type);
              p.op         = op;
              p.dy_type    = type;
              p.form       = form;
              p.one_piece  = form == RowForm::misaligned;
              p.one_stride = rows != 5;
              if (form == RowForm::strided && !is_cross_entropy(op)) {
                p.inner            = rows;
                p.inner_contiguous = true;
                p.x_col_stride     = rows;
                p.y_col_stride     = rows;
              }
              f(p, traits);
            }
          }
        }
      }
    }
  }
}

/// True if the planner serves the request; then the plan must have a kernel.
bool is_planned(const RowProblem& p, const DeviceTraits& traits, const SoftmaxOptions& options) {
  try {
    const RowPlan plan = make_plan(p, traits, options);
    EXPECT_TRUE(has_kernel(plan, types_of(p, traits.backend))) << to_string(plan);
    return true;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

TEST(CompiledKernels, ThePlannerNeverRefusesForWantOfAKernelWhereItMayChoose) {
  for_each_problem([](const RowProblem& p, const DeviceTraits& traits) {
    for (const Determinism determinism : {Determinism::run_to_run, Determinism::batch_invariant}) {
      ASSERT_TRUE(is_planned(p, traits, {.determinism = determinism}))
          << to_string(p.op) << ' ' << p.rows << " x " << p.cols << ' ' << to_string(traits.backend);
    }
  });
}

TEST(CompiledKernels, ThePlannerServesTheNumbersOfPacksThatHaveAKernelAndNoOthers) {
  for_each_problem([](RowProblem p, const DeviceTraits& traits) {
    if (p.rows != 4096 || p.cols != 64) return;
    p.cols = types_of(p, traits.backend).pack;  // any number of packs holds that
    for (int k = 1; k <= 33; ++k) {
      const KernelTypes types = types_of(p, traits.backend);
      const RowForm form      = Impl::has_form(types, p.form) ? p.form : RowForm::strided;
      const bool has_any      = Impl::has_register_kernel(types, form, k);
      const SoftmaxOptions options{.plan = {.strategy = RowStrategy::vector_lanes, .packs_per_thread = k}};
      ASSERT_EQ(is_planned(p, traits, options), has_any)
          << to_string(p.op) << ' ' << k << ' ' << to_string(traits.backend) << ' ' << int(p.form);
    }
  });
}

TEST(CompiledKernels, ScratchOfAGpuServesWhoAsksForItWhereThereIsAKernelAndIsRefusedElsewhere) {
  for (const DeviceTraits& traits : {h200(), wave64(), host(4)}) {
    for (const RowOperator op : every_operator) {
      RowProblem p      = problem(64, 100);
      p.op              = op;
      p.form            = RowForm::aligned;
      const bool served = is_planned(p, traits, {.plan = {.strategy = RowStrategy::team_scratch}});
      EXPECT_EQ(served, Impl::has_scratch_kernel(traits.backend, op, RowForm::strided)) << to_string(op);
    }
  }
}

/// KokkosNN::mpi reads a rank's columns by kernels of its own, whatever the form of its rows.
TEST(CompiledKernels, TeamOnlineTakesContiguousRowsAsStridedOnesButShards) {
  const SoftmaxOptions online{.plan = {.strategy = RowStrategy::team_online}};
  for (const DeviceTraits& traits : {h200(), wave64()}) {
    for (const RowOperator op : {RowOperator::softmax, RowOperator::logsumexp, RowOperator::log_softmax}) {
      for (const RowForm form : {RowForm::misaligned, RowForm::aligned}) {
        RowProblem p          = problem(64, 4096);
        p.op                  = op;
        p.form                = form;
        const bool keeps_form = op == RowOperator::logsumexp;  // it is chosen for those
        EXPECT_EQ(make_plan(p, traits, online).form, keeps_form ? form : RowForm::strided) << to_string(op);
        p.is_shard = true;
        EXPECT_EQ(make_plan(p, traits, online).form, form) << to_string(op);
      }
    }
  }
}

/// Other rows than plain ones are held by teams, by one or by several: who asks for team_online gets a reason.
TEST(CompiledKernels, TeamOnlineOfAGpuIsRefusedWhereTeamsHoldTheRowsAndShardsHaveIt) {
  const SoftmaxOptions online{.plan = {.strategy = RowStrategy::team_online}};
  for (const DeviceTraits& traits : {h200(), wave64()}) {
    for (const RowOperator op :
         {RowOperator::masked_softmax, RowOperator::cross_entropy_with_gradient, RowOperator::rms_norm}) {
      for (const RowForm form : every_form) {
        RowProblem p = problem(64, 4096, ElementType::bf16, ElementType::bf16);
        p.op         = op;
        p.form       = form;
        try {
          ADD_FAILURE() << to_string(make_plan(p, traits, online));
        } catch (const std::invalid_argument& refusal) {
          EXPECT_NE(std::string(refusal.what()).find("no kernel reads such rows twice"), std::string::npos)
              << refusal.what();
        }
        p.is_shard = true;
        EXPECT_EQ(make_plan(p, traits, online).strategy, RowStrategy::team_online) << to_string(op);
      }
    }
  }
}

/// True if the launcher has a kernel of staged rows for the types of a source and an output.
template <class X, class Y>
constexpr bool launcher_stages() {
  constexpr RowForm form = RowForm::misaligned;
  using Source           = Impl::MemoryRows<const X, form, Impl::RowStride>;
  return Impl::has_staged_kernel<Source, Impl::MemoryRows<Y, form, Impl::RowStride>>;
}

template <class X, class D, class Y>
constexpr bool launcher_stages_gradient() {
  constexpr RowForm form = RowForm::misaligned;
  using Source           = Impl::PairRows<Impl::MemoryRows<const X, form>, Impl::MemoryRows<const D, form>>;
  return Impl::has_staged_kernel<Source, Impl::MemoryRows<Y, form>>;
}

TEST(CompiledKernels, PlannerAndLauncherStageRowsOfTheSameTypes) {
  for_each_type(Elements{}, [](auto x) {
    for_each_type(Elements{}, [x](auto y) {
      using X                  = typename decltype(x)::type;
      using Y                  = typename decltype(y)::type;
      constexpr ElementType at = Impl::element_type<X>(), to = Impl::element_type<Y>();
      EXPECT_EQ((launcher_stages<X, Y>()), Impl::has_staged_types(RowOperator::softmax, at, to, at));
      for (const RowOperator op : {RowOperator::softmax_backward, RowOperator::log_softmax_backward}) {
        EXPECT_EQ((launcher_stages_gradient<X, X, Y>()), Impl::has_staged_types(op, at, to, at));
        EXPECT_EQ((launcher_stages_gradient<X, Y, X>()), Impl::has_staged_types(op, at, at, to));
      }
    });
  });
}

}  // namespace KokkosNNTest
