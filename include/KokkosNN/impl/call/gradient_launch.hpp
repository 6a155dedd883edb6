// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_GRADIENT_LAUNCH_HPP
#define KOKKOSNN_IMPL_CALL_GRADIENT_LAUNCH_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/compiled_calls.hpp>
#include <KokkosNN/impl/call/cpu_levels.hpp>
#include <KokkosNN/impl/call/erased_rows.hpp>
#include <KokkosNN/impl/call/layout.hpp>
#include <KokkosNN/impl/call/rows_call.hpp>
#include <KokkosNN/impl/gpu/gradient_inner_lanes.hpp>
#include <KokkosNN/impl/gpu/placement/pairs.hpp>
#include <KokkosNN/impl/host/inner.hpp>
#include <KokkosNN/impl/host/pairs.hpp>
#include <KokkosNN/impl/operators/softmax_backward.hpp>
#include <KokkosNN/impl/traits.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstdint>
#include <type_traits>

// The gradients' way from a plan to a launch: their sources and placements, in the kernels of the forward operators.

namespace KokkosNN::Impl {

template <RowOperator op, class Source, class A, int V, Backend backend>
  requires(row_tensors(op) == 2)
struct Placements<op, Source, A, V, backend> {
  using Y                         = typename decltype(Source::y)::value_type;
  using D                         = typename decltype(Source::dy)::value_type;
  static constexpr bool has_edges = Source::form == RowForm::misaligned;
  template <int K>
  using Registers = std::type_identity<PairRegisterPlacement<Y, D, A, V, K, has_edges>>;
  using Scratch   = PairScratchPlacement<Y, D, A, V, most_packs(backend, op) / 2>;
  using Online    = PairOnlinePlacement<Y, D, A, V, packs_when_looping(backend, V, op, Source::form)>;
  template <class Params, bool>
  using OnHost = HostPairs<V, Params, Source>;
};

/// There is nothing to keep; the planner never asks for team scratch.
template <class Source, class A, int V, Backend backend>
struct Placements<RowOperator::logsumexp_backward, Source, A, V, backend> {
  using X = typename decltype(Source::x)::value_type;
  template <int K>
  using Registers                    = std::type_identity<ElementwisePlacement<X, A, V, K>>;
  static constexpr int looping_packs = packs_when_looping(backend, V, RowOperator::logsumexp_backward, Source::form);
  using Online                       = ElementwisePlacement<X, A, V, looping_packs>;
  template <class Params, bool>
  using OnHost = HostElements<V, Params, Source>;
};

/// The accumulator of a gradient that reads X and D and writes Y.
template <class X, class D, class Y>
using gradient_accumulator_t = common_accumulator_t<common_accumulator_t<X, D>, Y>;

/// Bytes of the widest element of a gradient's rows, input side.
template <class X, class D>
constexpr int gradient_input_bytes(RowOperator op) {
  return static_cast<int>(row_tensors(op) == 2 ? std::max(sizeof(X), sizeof(D)) : sizeof(X));
}

template <class ExecutionSpace, RowOperator op, class X, class D, class Y>
struct Launcher<GradientCall<ExecutionSpace, op, X, D, Y>> {
  static constexpr Backend backend = backend_of<ExecutionSpace>();
  using A                          = gradient_accumulator_t<X, D, Y>;
  static constexpr int V           = pack_size(backend, gradient_input_bytes<X, D>(op), sizeof(Y), sizeof(A));
  using Params                     = GradientParams<op, A, exp_accuracy_for<Y>>;

  using Arguments = CallArguments<ExecutionSpace>;

  static void run(const ExecutionSpace& exec, const Arguments& call) {
    const Params params(call.options.scale, call.options.masked_row);
    if (call.plan.strategy == RowStrategy::inner_lanes) return run_inner(exec, call, params);
    with_form<backend, true>(call.plan.form, [&](auto form) { run_rows<form()>(exec, call, params); });
  }

 private:
  using Tensor                      = GradientTensors;
  static constexpr bool has_scalars = op == RowOperator::logsumexp_backward;

  template <RowForm form>
  static void run_rows(const ExecutionSpace& exec, const Arguments& call, const Params& params) {
    run_on_rows<op, V>(exec, call, params, source_of<form>(call), rows_of<Y, form>(call, Tensor::dx));
  }

  template <RowForm form>
  static auto source_of(const Arguments& call) {
    const auto x = rows_of<const X, form>(call, Tensor::x).evicted(call.plan.eviction);
    if constexpr (has_scalars) {
      return scalars_of<ScalarRows<MemoryRows<const X, form>, D, A>>(x, call);
    } else {
      return PairRows<MemoryRows<const X, form>, MemoryRows<const D, form>>{
          x, rows_of<const D, form>(call, Tensor::dy).evicted(call.plan.eviction)};
    }
  }

  static void run_inner(const ExecutionSpace& exec, const Arguments& call, const Params& params) {
    const RowPlan& plan      = call.plan;
    const RowsLayout& layout = call.layout;
    require_kernel(plan, {backend, op, V, gradient_input_bytes<X, D>(op), sizeof(Y), sizeof(A)});
    constexpr int inner_V    = gradient_inner_pack_size(backend, V);
    constexpr int K          = gradient_inner_packs(backend, inner_V);
    const std::int64_t inner = layout.inner();
    const auto source        = inner_source_of(call);
    const auto output        = inner_rows_of<Y>(call, Tensor::dx);
    using Source             = std::decay_t<decltype(source)>;
    using Output             = std::decay_t<decltype(output)>;
    if constexpr (has_host_loops(backend)) {
      return launch<max_threads_per_team>(
          exec, plan,
          HostGradientInner<op, Params, Source, Output>{source, output, params,
                                                        inner_shape(plan, layout.rows, inner, layout.cols)});
    }
    launch<most_threads_of_inner_lanes(backend, op)>(
        exec, plan,
        GradientInnerLanes<op, inner_V, K, Params, Source, Output>{
            source, output, params, layout.rows / inner, inner, layout.cols, plan.threads_per_row, plan.scratch_level,
            static_cast<int>(plan.scratch_bytes)});
  }

  static auto inner_source_of(const Arguments& call) {
    const auto x = inner_rows_of<const X>(call, Tensor::x, call.plan.eviction);
    if constexpr (has_scalars) {
      return scalars_of<InnerScalars<X, D>>(x, call);
    } else {
      return InnerPairs<X, D>{x, inner_rows_of<const D>(call, Tensor::dy, call.plan.eviction)};
    }
  }

  /// Rows with lse and dlse.
  template <class Source, class Rows>
  static Source scalars_of(const Rows& x, const Arguments& call) {
    return {x, call.template data<const D>(Tensor::lse), call.template data<const D>(Tensor::dy),
            call.layout.map(Tensor::lse), call.layout.map(Tensor::dy)};
  }
};

template <class ExecutionSpace, RowOperator op, class X, class D, class Y>
void GradientCall<ExecutionSpace, op, X, D, Y>::run(const ExecutionSpace& exec, const Arguments& call) {
  run_compiled<GradientCall>(exec, call);
}
template <class ExecutionSpace, RowOperator op, class X, class D, class Y>
void GradientCall<ExecutionSpace, op, X, D, Y>::reserve(const ExecutionSpace& exec, const RowPlan& plan,
                                                        WorkspaceView<ExecutionSpace>& workspace) {
  reserve_split_workspace<typename Launcher<GradientCall>::Params>(exec, plan, workspace);
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_GRADIENT_LAUNCH_HPP
