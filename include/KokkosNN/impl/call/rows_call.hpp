// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_ROWS_CALL_HPP
#define KOKKOSNN_IMPL_CALL_ROWS_CALL_HPP

#include <KokkosNN/impl/call/launch.hpp>
#include <KokkosNN/impl/call/placements.hpp>
#include <KokkosNN/impl/call/workspace.hpp>
#include <KokkosNN/impl/compiled_kernels.hpp>
#include <KokkosNN/impl/gpu/few_rows.hpp>
#include <KokkosNN/impl/gpu/row_in_cluster.hpp>
#include <KokkosNN/impl/gpu/row_in_lanes.hpp>
#include <KokkosNN/impl/gpu/row_in_team.hpp>
#include <KokkosNN/impl/gpu/split_row.hpp>
#include <KokkosNN/impl/gpu/split_twice.hpp>
#include <KokkosNN/impl/gpu/staged_rows.hpp>
#include <KokkosNN/impl/host/rows.hpp>
#include <KokkosNN/impl/inputs/pairs.hpp>
#include <KokkosNN/impl/inputs/rows.hpp>
#include <KokkosNN/impl/traits.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

// From a plan to a launch: finds the kernel that the plan names among those that are compiled. Nothing is decided here.

namespace KokkosNN::Impl {

/// Bytes of an element of rows; 0 where they have none, as those of a log-sum-exp.
template <class Rows>
inline constexpr int element_bytes = 0;
template <class Rows>
  requires requires { typename Rows::value_type; }
inline constexpr int element_bytes<Rows> = sizeof(typename Rows::value_type);

/// True if short rows that begin between packs have a kernel that takes them through team scratch.
template <class Source, class Output>
inline constexpr bool has_staged_kernel = false;
template <class T>
inline constexpr bool has_staged_kernel<MemoryRows<const T, RowForm::misaligned, RowStride>,
                                        MemoryRows<T, RowForm::misaligned, RowStride>> = true;
template <class X, class Y>
inline constexpr bool
    has_staged_kernel<MemoryRows<const X, RowForm::misaligned, RowStride>, MemoryScalars<Y, RowStride>> = true;
template <class T, class Map>
inline constexpr bool has_staged_kernel<
    PairRows<MemoryRows<const T, RowForm::misaligned, Map>, MemoryRows<const T, RowForm::misaligned, Map>>,
    MemoryRows<T, RowForm::misaligned, Map>> = true;

/// True if a source of masked rows looks at single elements, or one of rows with labels changes its logits.
template <class Source>
constexpr bool has_element_mask() {
  if constexpr (requires { Source::has_element_mask; }) return Source::has_element_mask;
  return false;
}
template <class Source>
constexpr bool is_extended() {
  if constexpr (requires { Source::is_extended; }) return Source::is_extended;
  return false;
}

/// True if a source's rows are known to lie at one distance, or need no kernel for that.
template <class Source>
constexpr bool is_at_one_stride() {
  if constexpr (requires { Source::is_at_one_stride; }) return Source::is_at_one_stride;
  return true;
}

/// One call on rows that a Source gives and an Output takes.
template <class ExecutionSpace, RowOperator op, class Params, class Source, class Output, int V>
struct RowsCall {
  using A                          = typename Params::accumulator;
  static constexpr Backend backend = backend_of<ExecutionSpace>();
  static constexpr bool has_edges  = Source::form == RowForm::misaligned;
  using Kept                       = Placements<op, Source, A, V, backend>;
  static constexpr KernelTypes types{backend,
                                     op,
                                     V,
                                     element_bytes<Source>,
                                     element_bytes<Output>,
                                     sizeof(A),
                                     has_staged_kernel<Source, Output>,
                                     has_element_mask<Source>(),
                                     is_extended<Source>(),
                                     is_at_one_stride<Source>()};
  static constexpr bool has_loops               = !has_few_kernels(types, Source::form);
  static constexpr RegisterKernels in_registers = register_kernels(Source::form, types);
  template <int K>
  using Registers = typename Kept::template Registers<K>;
  template <WorkspaceUse use>
  using Lease = WorkspaceLease<ExecutionSpace, use>;

  const ExecutionSpace& exec;
  const RowPlan& plan;
  Params params;
  Source source;
  Output output;
  std::int64_t rows;
  std::int64_t cols;

  /// Launches the plan's kernel: what there is none for was refused before, so each step finds it.
  void run(WorkspaceView<ExecutionSpace>* own_workspace) const {
    require_kernel(plan, types);
    if (plan.form != Source::form) refuse_plan_without_kernel(plan);
    switch (plan.kernel) {
      case RowKernel::row_in_team:
        return run_in_teams();
      case RowKernel::row_in_lanes:
      case RowKernel::few_rows:
        return run_in_registers();
      case RowKernel::staged_rows:
        return run_staged();
      case RowKernel::split_row:
      case RowKernel::split_online:
      case RowKernel::split_twice:
        return run_on_split_rows(own_workspace);
      case RowKernel::row_in_cluster:
        return run_in_clusters();
      case RowKernel::host_rows:
        return run_in_pieces();
      case RowKernel::inner_lanes:
      case RowKernel::inner_online:
      case RowKernel::host_inner:
        break;
    }
    refuse_plan_without_kernel(plan);
  }

 private:
  void run_in_teams() const {
    if constexpr (!has_host_loops(backend)) {
      if (is_in_registers(plan.strategy)) return run_in_registers();
      if constexpr (has_loops && has_online_kernel(types, Source::form)) {
        if (plan.strategy == RowStrategy::team_online) {
          return run_in_team<most_threads_when_looping(op), typename Kept::Online>();
        }
      }
      if constexpr (has_scratch_kernel(backend, op, Source::form)) {
        return run_in_team<max_threads_per_team, typename Kept::Scratch>();
      }
    }
    refuse_plan_without_kernel(plan);
  }

  void run_in_pieces() const {
    if constexpr (has_host_loops(backend)) {
      static_assert(HasHostPlacement<Kept, Params>);
      // Nothing is kept of rows whose elements are read once, whatever the strategy.
      constexpr bool reads_once = is_reduction(op) || is_elementwise(op);
      return reads_once || plan.strategy == RowStrategy::team_online ? run_in_pieces_that<false>()
                                                                     : run_in_pieces_that<!reads_once>();
    }
    refuse_plan_without_kernel(plan);
  }
  template <bool keeps>
  void run_in_pieces_that() const {
    using Placement = typename Kept::template OnHost<Params, keeps>;
    using Rows      = typename HostSource<Source>::type;
    const HostRows<op, V, Placement, Params, Rows, Output> kernel{Rows{source},
                                                                  output,
                                                                  params,
                                                                  rows,
                                                                  cols,
                                                                  plan.rows_per_team,
                                                                  plan.nontemporal_stores,
                                                                  plan.batch_invariant,
                                                                  plan.scratch_level,
                                                                  static_cast<int>(plan.scratch_bytes)};
    if (!run_in_caller<ExecutionSpace>(plan, rows * cols, kernel)) launch<max_threads_per_team>(exec, plan, kernel);
  }

  /// vector_lanes and team_registers only.
  void run_in_registers() const {
    const auto run_one_of = [&]<std::size_t... i>(std::index_sequence<i...>) {
      return (... || run_if_planned<static_cast<int>(i)>());
    };
    if (!run_one_of(std::make_index_sequence<in_registers.count>{})) refuse_plan_without_kernel(plan);
  }

  /// Runs number i of the kernels of rows in registers, if that is the plan's.
  template <int i>
  bool run_if_planned() const {
    constexpr RegisterKernel is = in_registers.all[i];
    if (plan.kernel != is.kernel || plan.packs_per_thread != is.packs || plan.max_threads != is.max_threads)
      return false;
    using Placement = typename Registers<is.packs>::type;
    if constexpr (is.kernel == RowKernel::few_rows) {
      launch<is.max_threads>(exec, plan,
                             FewRows<op, V, Placement, Params, Source, Output>{source, output, cols, params});
    } else if constexpr (is.kernel == RowKernel::row_in_lanes) {
      run_in_lanes<is.max_threads, Placement>();
    } else {
      run_in_team<is.max_threads, Placement>();
    }
    return true;
  }

  template <int max_threads, class Placement>
  void run_in_team() const {
    Source reader               = source;
    const int prefetching_teams = look_ahead(reader);
    launch_row_in_team<max_threads>(exec, plan,
                                    RowInTeam<op, V, Placement, Params, Source, Output>::of(
                                        plan, reader, output, params, rows, cols, prefetching_teams));
  }

  template <int max_threads, class Placement>
  void run_in_lanes() const {
    static_assert(Placement::sums_warps);
    Source reader               = source;
    const int prefetching_teams = look_ahead(reader);
    launch<max_threads>(exec, plan,
                        RowInLanes<op, V, Placement, Params, Source, Output>{
                            reader, output, rows, params, static_cast<int>(cols), plan.threads_per_row,
                            std::countr_zero(unsigned(plan.threads_per_row)), prefetching_teams});
  }

  void run_staged() const {
    if constexpr (backend == Backend::cuda && has_staged_kernel<Source, Output>) {
      constexpr int max_threads = max_threads_when_wide;
      const int columns         = static_cast<int>(cols);
      if constexpr (is_forward(op)) {
        Source reader               = source;
        const int prefetching_teams = look_ahead(reader);
        launch<max_threads>(
            exec, plan,
            StagedRows<op, V, Params, Source, Output>{reader, output, rows, params, columns, prefetching_teams});
      } else {
        launch<max_threads>(
            exec, plan,
            StagedGradients<op, V, Params, typename Output::value_type>{source.y.data, source.dy.data, output.data,
                                                                        rows, params, columns, source.y.line_policy()});
      }
    } else {
      refuse_plan_without_kernel(plan);
    }
  }

  /// Makes a source look ahead as planned, if it can. Returns how many teams do.
  int look_ahead([[maybe_unused]] Source& reader) const {
    if constexpr (Source::looks_ahead) {
      if (plan.rows_ahead > 0 && reader.look_ahead(plan.rows_ahead, plan.rows_per_team, cols)) {
        const std::int64_t teams = (rows - plan.rows_ahead) / plan.rows_per_team;  // what all of them ask for exists
        return static_cast<int>(std::clamp<std::int64_t>(teams, 0, std::numeric_limits<int>::max()));
      }
    }
    return 0;
  }

  /// A part of a row for each of its teams: whole packs.
  RowShares shares() const {
    const std::int64_t packs = std::max<std::int64_t>(1, has_edges ? cols / V : (cols + V - 1) / V);
    return {cols, plan.teams_per_row, (packs + plan.teams_per_row - 1) / plan.teams_per_row * V};
  }

  void run_on_split_rows([[maybe_unused]] WorkspaceView<ExecutionSpace>* own_workspace) const {
    require_launching_thread(exec, to_string(op));
    if constexpr (backend != Backend::host) {
      if (plan.kernel == RowKernel::split_twice) {
        if constexpr (splits_twice(op, Source::form)) return run_split_twice(own_workspace);
        refuse_plan_without_kernel(plan);
      }
      if constexpr (has_loops && has_split_online_kernel(types, Source::form)) {
        if (plan.kernel == RowKernel::split_online) {
          return run_split<most_threads_when_looping(op), false, typename Kept::Online>(own_workspace);
        }
      }
      if constexpr (has_loops && holds_split_rows(types)) {
        using Placement         = typename Registers<most_packs(backend, op)>::type;
        constexpr bool overlaps = overlaps_rows(backend, op, Source::form);
        return run_split<most_threads_when_holding(backend, op, Source::form), overlaps, Placement>(own_workspace);
      }
    }
    refuse_plan_without_kernel(plan);
  }

  void run_in_clusters() const {
    constexpr int K = most_packs(backend, op);
    constexpr KernelKey key{
        RowStrategy::row_in_cluster, RowKernel::row_in_cluster, Source::form, V, K, cluster_team_size};
    if constexpr (has_launch_attributes && exists(key, types)) {
      using Placement = typename Registers<K>::type;
      return launch<Kokkos::LaunchBounds<cluster_team_size, cluster_teams_resident>>(
          exec, label_of(plan),
          {plan.league_size, plan.team_size, plan.scratch_level, plan.scratch_bytes, plan.teams_per_row},
          RowInCluster<op, V, K, Placement, Params, Source, Output>{{source, output, params, shares()},
                                                                    static_cast<int>(plan.scratch_bytes)});
    }
    refuse_plan_without_kernel(plan);
  }

  template <int max_threads, bool overlaps, class Placement>
  void run_split(WorkspaceView<ExecutionSpace>* own_workspace) const {
    const Lease<WorkspaceUse::status_words> workspace(exec, split_workspace_bytes<Params>(plan), own_workspace);
    launch<max_threads>(
        exec, plan,
        SplitRow<op, V, overlaps, Placement, Params, Source, Output>{{source, output, params, shares()},
                                                                     rows,
                                                                     plan.scratch_level,
                                                                     static_cast<int>(plan.scratch_bytes),
                                                                     workspace.data()});
  }

  void run_split_twice(WorkspaceView<ExecutionSpace>* own_workspace) const {
    using Placement = typename Registers<max_packs_per_thread(backend)>::type;
    using State     = typename Params::State;
    const Lease<WorkspaceUse::states> workspace(exec, split_workspace_bytes<Params>(plan), own_workspace);
    auto* const states = reinterpret_cast<State*>(workspace.data());
    launch<max_threads_per_team>(
        exec, plan,
        ReduceParts<V, Placement, Params, Source>{source, params, shares(), plan.scratch_level,
                                                  static_cast<int>(plan.scratch_bytes), states});
    RowPlan second = plan;
    if (Epilogue<op>::one_value_a_row) second.league_size = rows;
    launch<max_threads_per_team>(
        exec, second,
        WriteParts<op, V, Placement, Params, Source, Output>{source, output, params, shares(), plan.scratch_level,
                                                             static_cast<int>(plan.scratch_bytes), states});
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_ROWS_CALL_HPP
