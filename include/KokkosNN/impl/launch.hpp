// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_LAUNCH_HPP
#define KOKKOSNN_IMPL_LAUNCH_HPP

#include <KokkosNN/impl/device_traits.hpp>
#include <KokkosNN/impl/kernels/inner_lanes.hpp>
#include <KokkosNN/impl/kernels/row_in_team.hpp>
#include <KokkosNN/impl/kernels/split_row.hpp>
#include <KokkosNN/impl/layout.hpp>
#include <KokkosNN/impl/workspace.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

// From a plan to a launch: picks the kernel that the plan names. No threshold lives here.

namespace KokkosNN::Impl {

/// Launches a kernel functor, compiled for teams of up to max_threads, as the plan says.
template <int max_threads, class ExecutionSpace, class Kernel>
void launch(const ExecutionSpace& exec, const RowPlan& plan, const Kernel& kernel) {
  using Policy = Kokkos::TeamPolicy<ExecutionSpace, Kokkos::LaunchBounds<max_threads, 1>>;
  Policy policy(exec, static_cast<int>(plan.league_size), plan.team_size, 1);
  constexpr int alignment = 16;  // the kernels ask for aligned scratch
  if (plan.scratch_bytes > 0) {
    policy.set_scratch_size(plan.scratch_level, Kokkos::PerTeam(static_cast<int>(plan.scratch_bytes) + alignment));
  }
  // The hint makes the functor travel with the launch: nothing waits for a constant-memory copy of an earlier one.
  Kokkos::parallel_for(to_string(plan),
                       Kokkos::Experimental::require(policy, Kokkos::Experimental::WorkItemProperty::HintLightWeight),
                       kernel);
}

/// One call on rows that a Source gives and a Sink takes.
template <class ExecutionSpace, RowOperator op, class Math, class Source, class Sink, int V>
struct RowsCall {
  using A                          = typename Math::accumulator;
  static constexpr Backend backend = backend_of<ExecutionSpace>();
  static constexpr int most_packs  = max_packs_per_thread(backend, V);

  const ExecutionSpace& exec;
  const RowPlan& plan;
  Math math;
  Source source;
  Sink sink;
  std::int64_t rows;
  std::int64_t cols;

  void run(WorkspaceView<ExecutionSpace>* own_workspace) const {
    switch (plan.strategy) {
      case RowStrategy::vector_lanes:
      case RowStrategy::team_registers:
        run_in_registers();
        break;
      case RowStrategy::team_scratch:
        run_in_team<max_threads_per_team, ScratchStorage<op, A, V, (most_packs + 1) / 2>>();
        break;
      case RowStrategy::team_online:
        run_in_team<max_threads_when_looping, OnlineStorage<op, A, V, most_packs>>();
        break;
      case RowStrategy::split_row:
        run_split(own_workspace);
        break;
      default:
        Kokkos::abort("KokkosNN: a plan without a strategy was launched");
    }
  }

  /// vector_lanes and team_registers only.
  void run_in_registers() const {
    switch (plan.packs_per_thread) {
      case 1:
        return run_with_packs<1>();
      case 2:
        return run_with_packs<2>();
      case 4:
        return run_with_packs<4>();
      case 6:
        return run_with_packs<6>();
      default:
        return run_with_packs<8>();
    }
  }

 private:
  template <int K>
  void run_with_packs() const {
    if constexpr (is_packs_per_thread(backend, V, K)) {
      using Storage = RegisterStorage<op, A, V, K>;
      // Rows that are not plain, or of doubles, need more registers; in small teams they are worth more than resident
      // teams.
      if constexpr (backend != Backend::host && is_wide(V, K, sizeof(A)) && (!Source::is_plain || sizeof(A) == 8)) {
        if (plan.team_size <= max_threads_when_wide / 2) return run_in_team<max_threads_when_wide, Storage>();
      }
      run_in_team<max_threads_per_team, Storage>();
    }
  }

  template <int max_threads, class Storage>
  void run_in_team() const {
    launch<max_threads>(exec, plan,
                        RowInTeam<op, V, Storage, Math, Source, Sink>{
                            source, sink, math, rows, cols, plan.lanes, plan.team_size / plan.lanes, plan.rows_per_team,
                            plan.scratch_level, static_cast<int>(plan.scratch_bytes), plan.allow_shift});
  }

  void run_split(WorkspaceView<ExecutionSpace>* own_workspace) const {
    const std::size_t bytes = split_row_workspace_bytes<A>(plan.league_size);
    WorkspaceView<ExecutionSpace> workspace;
    if (own_workspace != nullptr) {
      grow(exec, *own_workspace, bytes);
      workspace = *own_workspace;
    } else {
      workspace = WorkspacePool<ExecutionSpace>::get(exec, bytes);
    }
    const std::int64_t packs = (cols + V - 1) / V + (plan.allow_shift ? 1 : 0);
    const std::int64_t share = (packs + plan.teams_per_row - 1) / plan.teams_per_row * V;
    const auto start         = [&](auto storage) {
      using Storage = typename decltype(storage)::type;
      launch<max_threads_when_looping>(
          exec, plan,
          SplitRow<op, V, Storage, Math, Source, Sink>{source, sink, math, rows, cols, plan.teams_per_row, share,
                                                       plan.scratch_level, static_cast<int>(plan.scratch_bytes),
                                                       plan.allow_shift, workspace.data()});
    };
    if (share <= std::int64_t(most_packs) * V * plan.team_size) {
      start(std::type_identity<RegisterStorage<op, A, V, most_packs>>{});
    } else {
      start(std::type_identity<OnlineStorage<op, A, V, most_packs>>{});
    }
  }
};

/// One call on Views, erased to pointers and strides so that a kernel is compiled once for a pair of element types.
template <class ExecutionSpace, RowOperator op, class X, class Y>
struct ViewCall {
  static constexpr bool is_lse     = op == RowOperator::logsumexp;
  static constexpr Backend backend = backend_of<ExecutionSpace>();
  using A                          = common_accumulator_t<X, Y>;
  static constexpr int V           = pack_size(backend, sizeof(X), is_lse ? sizeof(X) : sizeof(Y), sizeof(A));
  using Math                       = RowMath<A, exp_accuracy_for<Y>>;

  static void run(const ExecutionSpace& exec, const RowPlan& plan, const RowLayout& layout,
                  const SoftmaxOptions& options, const void* x, void* y, WorkspaceView<ExecutionSpace>* own_workspace) {
    const Math math(options.scale, options.masked_row);
    const X* in = static_cast<const X*>(x);
    Y* out      = static_cast<Y*>(y);
    if (plan.strategy == RowStrategy::inner_lanes) return run_inner(exec, plan, layout, math, in, out);
    if constexpr (backend != Backend::host) {
      if (layout.plain && layout.cols % V == 0) {
        return rows_call<true>(exec, plan, layout, math, in, out).run(own_workspace);
      }
    }
    rows_call<false>(exec, plan, layout, math, in, out).run(own_workspace);
  }

 private:
  template <bool plain>
  static auto rows_call(const ExecutionSpace& exec, const RowPlan& plan, const RowLayout& layout, const Math& math,
                        const X* in, Y* out) {
    using Source = MemoryRows<const X, plain>;
    using Sink   = std::conditional_t<is_lse, MemoryScalars<Y>, MemoryRows<Y, plain>>;
    const Source source{in, layout.x_col_stride, layout.x_map()};
    const Sink sink = [&] {
      if constexpr (is_lse) {
        return Sink{out, layout.y_map()};
      } else {
        return Sink{out, layout.y_col_stride, layout.y_map()};
      }
    }();
    return RowsCall<ExecutionSpace, op, Math, Source, Sink, V>{exec, plan,        math,       source,
                                                               sink, layout.rows, layout.cols};
  }

  static void run_inner(const ExecutionSpace& exec, const RowPlan& plan, const RowLayout& layout, const Math& math,
                        const X* in, Y* out) {
    const std::int64_t inner = layout.inner();
    const int last           = layout.n > 0 ? layout.n - 1 : 0;
    using Source             = InnerRows<const X>;
    const Source source{in, layout.x_col_stride, layout.x_stride[last], layout.x_outer_map()};
    constexpr int K  = inner_packs(backend, V);
    const auto start = [&](const auto& sink) {
      using Sink = std::decay_t<decltype(sink)>;
      launch<max_threads_when_wide>(exec, plan,
                                    InnerLanes<op, V, K, Math, Source, Sink>{
                                        source, sink, math, layout.rows / inner, inner, layout.cols, plan.lanes,
                                        plan.scratch_level, static_cast<int>(plan.scratch_bytes)});
    };
    if constexpr (is_lse) {
      start(MemoryScalars<Y>{out, layout.y_map()});
    } else {
      start(InnerRows<Y>{out, layout.y_col_stride, layout.y_stride[last], layout.y_outer_map()});
    }
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_LAUNCH_HPP
