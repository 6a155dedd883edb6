// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_VIEW_LAUNCH_HPP
#define KOKKOSNN_IMPL_CALL_VIEW_LAUNCH_HPP

#include <KokkosNN/impl/call/compiled_calls.hpp>
#include <KokkosNN/impl/call/cpu_levels.hpp>
#include <KokkosNN/impl/call/erased_rows.hpp>
#include <KokkosNN/impl/call/launch.hpp>
#include <KokkosNN/impl/call/layout.hpp>
#include <KokkosNN/impl/call/rows_call.hpp>
#include <KokkosNN/impl/gpu/inner_lanes.hpp>
#include <KokkosNN/impl/host/inner.hpp>
#include <KokkosNN/impl/inputs/rows.hpp>
#include <KokkosNN/impl/traits.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

// The way of softmax, log_softmax and logsumexp from a plan to a launch.

namespace KokkosNN::Impl {

/// One call on rows that lie side by side.
template <class ExecutionSpace, RowOperator op, class Params, class Source, class Output, int y_bytes>
struct InnerCall {
  using A                          = typename Params::accumulator;
  static constexpr Backend backend = backend_of<ExecutionSpace>();
  static constexpr int x_bytes     = sizeof(typename Source::value_type);

  static constexpr int row_pack = pack_size(backend, x_bytes, y_bytes, sizeof(A));
  static constexpr KernelTypes types{backend, op, row_pack, x_bytes, y_bytes, sizeof(A)};

  const ExecutionSpace& exec;
  const RowPlan& plan;
  const RowsLayout& layout;
  Params params;
  Source source;
  Output output;

  void run() const {
    require_kernel(plan, types);
    if constexpr (has_host_loops(backend)) {
      launch<max_threads_per_team>(
          exec, plan,
          HostInner<op, Params, Source, Output>{source, output, params,
                                                inner_shape(plan, layout.rows, layout.inner(), layout.cols)});
    } else {
      run_on_lanes();
    }
  }

 private:
  template <bool keeps>
  static constexpr int pack = inner_pack_size(backend, x_bytes, y_bytes, sizeof(A), keeps);
  template <bool keeps>
  static constexpr int packs = inner_packs(backend, pack<keeps>, x_bytes, sizeof(A), keeps);

  void run_on_lanes() const {
    constexpr int fewer = packs<true> / 2;
    if (plan.kernel == RowKernel::inner_online) return run_with<false, packs<false>>();
    if constexpr (has_fewer_inner_packs(backend, x_bytes, pack<true>)) {
      if (plan.packs_per_thread == fewer) return run_with<true, fewer>();
    }
    run_with<true, packs<true>>();
  }

  template <bool keeps, int K>
  void run_with() const {
    constexpr int V          = pack<keeps>;
    constexpr bool is_packed = keeps_packed_inner(backend, x_bytes, sizeof(A), V, K, keeps);
    launch<max_threads_per_team>(exec, plan,
                                 InnerLanes<op, V, K, keeps, is_packed, Params, Source, Output>{
                                     source, output, params, layout.rows / layout.inner(), layout.inner(), layout.cols,
                                     plan.threads_per_row, plan.scratch_level, static_cast<int>(plan.scratch_bytes)});
  }
};

template <class ExecutionSpace, RowOperator op, class X, class Y>
struct Launcher<ViewCall<ExecutionSpace, op, X, Y>> {
  static constexpr bool is_lse     = op == RowOperator::logsumexp;
  static constexpr Backend backend = backend_of<ExecutionSpace>();
  using A                          = common_accumulator_t<X, Y>;
  static constexpr int y_bytes     = is_lse ? sizeof(X) : sizeof(Y);
  static constexpr int V           = pack_size(backend, sizeof(X), y_bytes, sizeof(A));
  using Params                     = SoftmaxParams<A, exp_accuracy_for<Y>>;

  using Arguments = CallArguments<ExecutionSpace>;

  static void run(const ExecutionSpace& exec, const Arguments& call) {
    const Params params(call.options.scale, call.options.masked_row);
    if (call.plan.strategy == RowStrategy::inner_lanes) return run_inner(exec, call, params);
    with_form<backend, true>(call.plan.form, [&](auto form) {
      with_map<backend, op, X, form()>(
          call.layout.n, [&]<class Map>(std::type_identity<Map>) { run_rows<form(), Map>(exec, call, params); });
    });
  }

 private:
  using Tensor = SoftmaxTensors;

  template <RowForm form, class Map>
  static void run_rows(const ExecutionSpace& exec, const Arguments& call, const Params& params) {
    const auto x = rows_of<const X, form, Map>(call, Tensor::x).evicted(call.plan.eviction);
    if constexpr (is_lse) {
      run_on_rows<op, V>(exec, call, params, x, scalars_of<Map>(call));
    } else {
      run_on_rows<op, V>(exec, call, params, x, rows_of<Y, form, Map>(call, Tensor::y));
    }
  }

  static void run_inner(const ExecutionSpace& exec, const Arguments& call, const Params& params) {
    const auto x        = inner_rows_of<const X>(call, Tensor::x, call.plan.eviction);
    const auto run_with = [&](const auto& y) {
      using Source = std::remove_cvref_t<decltype(x)>;
      using Output = std::remove_cvref_t<decltype(y)>;
      InnerCall<ExecutionSpace, op, Params, Source, Output, y_bytes>{exec, call.plan, call.layout, params, x, y}.run();
    };
    if constexpr (is_lse) {
      run_with(scalars_of<RowMap>(call));
    } else {
      run_with(inner_rows_of<Y>(call, Tensor::y));
    }
  }

  /// The log-sum-exps.
  template <class Map>
  static MemoryScalars<Y, Map> scalars_of(const Arguments& call) {
    return {call.template data<Y>(Tensor::y), call.layout.map(Tensor::y)};
  }
};

// Not inline, so that a file which finds these in the library compiles no kernel.
template <class ExecutionSpace, RowOperator op, class X, class Y>
void ViewCall<ExecutionSpace, op, X, Y>::run(const ExecutionSpace& exec, const Arguments& call) {
  run_compiled<ViewCall>(exec, call);
}
template <class ExecutionSpace, RowOperator op, class X, class Y>
void ViewCall<ExecutionSpace, op, X, Y>::reserve(const ExecutionSpace& exec, const RowPlan& plan,
                                                 WorkspaceView<ExecutionSpace>& workspace) {
  reserve_split_workspace<typename Launcher<ViewCall>::Params>(exec, plan, workspace);
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_VIEW_LAUNCH_HPP
