// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_ROWS_CALL_HPP
#define KOKKOSNN_IMPL_CALL_ROWS_CALL_HPP

#include <KokkosNN/impl/call/launch.hpp>
#include <KokkosNN/impl/call/placements.hpp>
#include <KokkosNN/impl/call/workspace.hpp>
#include <KokkosNN/impl/compiled_kernels.hpp>
#include <KokkosNN/impl/gpu/few_rows.hpp>
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

// From a plan to a launch: picks the kernel that the plan names. No threshold lives here.

namespace KokkosNN::Impl {

/// Bytes of an element of rows; 0 where they have none, as those of a log-sum-exp.
template <class Rows>
inline constexpr int element_bytes = 0;
template <class Rows>
requires requires { typename Rows::value_type; }
inline constexpr int element_bytes<Rows> = sizeof(typename Rows::value_type);

/// Whether short rows that begin between packs have a kernel that takes them through team scratch.
template <class Source, class Output>
inline constexpr bool has_staged_kernel = false;
template <class T>
inline constexpr bool has_staged_kernel<MemoryRows<const T, RowForm::misaligned, RowStride>,
                                        MemoryRows<T, RowForm::misaligned, RowStride>> = true;
template <class X, class Y>
inline constexpr bool has_staged_kernel<MemoryRows<const X, RowForm::misaligned, RowStride>, MemoryScalars<Y, RowStride>> =
    true;
template <class T, class Map>
inline constexpr bool
    has_staged_kernel<PairRows<MemoryRows<const T, RowForm::misaligned, Map>, MemoryRows<const T, RowForm::misaligned, Map>>,
                      MemoryRows<T, RowForm::misaligned, Map>> = true;

/// One call on rows that a Source gives and a Output takes.
template <class ExecutionSpace, RowOperator op, class Params, class Source, class Output, int V>
struct RowsCall {
  using A                          = typename Params::accumulator;
  static constexpr Backend backend = backend_of<ExecutionSpace>();
  static constexpr bool has_edges   = Source::form == RowForm::misaligned;
  using Kept                       = Placements<op, Source, A, V, backend>;
  static constexpr KernelTypes types{
      backend, op, V, element_bytes<Source>, element_bytes<Output>, sizeof(A), has_staged_kernel<Source, Output>};
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

  /// Whether all strategies but split_row are the host's kernel.
  static constexpr bool runs_in_pieces =
      backend == Backend::host && simd_width<A> > 1 && !has_edges && HasHostPlacement<Kept, Params>;

  void run(WorkspaceView<ExecutionSpace>* own_workspace) const {
    require_kernel(plan, types);
    if (plan.form != Source::form) refuse_plan_without_kernel(plan);
    run_unasked(own_workspace);
  }

  /// Takes the plan to be one that has a kernel: the tests run on a host what only GPUs plan.
  void run_unasked(WorkspaceView<ExecutionSpace>* own_workspace) const {
    if (plan.strategy == RowStrategy::split_row) return run_on_split_rows(own_workspace);
    if (plan.staged) return run_staged();
    if constexpr (runs_in_pieces) {
      plan.strategy == RowStrategy::team_online ? run_in_pieces<false>() : run_in_pieces<true>();
    } else {
      run_in_teams();
    }
  }

 private:
  void run_in_teams() const {
    switch (plan.strategy) {
      case RowStrategy::vector_lanes:
      case RowStrategy::team_registers:
        return run_in_registers();
      case RowStrategy::team_scratch:
        if constexpr (!is_elementwise(op)) return run_in_team<max_threads_per_team, typename Kept::Scratch>();
        break;
      case RowStrategy::team_online:
        return run_in_team<most_threads_when_looping(op), typename Kept::Online>();
      case RowStrategy::automatic:
      case RowStrategy::split_row:
      case RowStrategy::inner_lanes:
        break;
    }
    refuse_plan_without_kernel(plan);
  }

  void run_on_split_rows(WorkspaceView<ExecutionSpace>* own_workspace) const {
    require_launching_thread(exec, to_string(op));
    if constexpr (!is_gradient(op) && !is_cross_entropy(op) && !is_norm(op)) {
      if (plan.launches == 2) return run_split_twice(own_workspace);
    }
    if (plan.launches != 1) refuse_plan_without_kernel(plan);
    run_split(own_workspace);
  }

  template <bool keeps>
  void run_in_pieces() const {
    using Placement = typename Kept::template OnHost<Params, keeps>;
    launch<max_threads_per_team>(
        exec, plan,
        HostRows<op, V, Placement, Params, Source, Output>{source, output, params, rows, cols, plan.rows_per_team, plan.nontemporal_stores,
                                                     plan.batch_invariant, plan.scratch_level,
                                                     static_cast<int>(plan.scratch_bytes)});
  }

  /// vector_lanes and team_registers only.
  void run_in_registers() const {
    const auto run_one_of = [&]<std::size_t... i>(std::index_sequence<i...>) {
      return (... || run_if_packs<pack_counts[i]>());
    };
    if (!run_one_of(std::make_index_sequence<pack_counts.size()>{})) refuse_plan_without_kernel(plan);
  }

  /// Runs a kernel of K packs a thread, if that is what the plan has and there is one.
  template <int K>
  bool run_if_packs() const {
    if constexpr (has_register_kernel(backend, K, op, Source::form, types.x_bytes, types.y_bytes)) {
      if (plan.packs_per_thread == K) {
        run_with_packs<K>();
        return true;
      }
    }
    return false;
  }

  template <int K>
  void run_with_packs() const {
    constexpr int x_bytes = types.x_bytes;
    constexpr int y_bytes = types.y_bytes;
    using Placement         = typename Registers<K>::type;
    if constexpr (has_few_rows_kernel(backend, K, op, Source::form, x_bytes, y_bytes)) {
      using Kernel = FewRows<op, V, Placement, Params, Source, Output>;
      if (plan.few_rows) return launch<max_threads_per_team>(exec, plan, Kernel{source, output, cols, params});
    }
    if constexpr (has_lanes_kernel(backend, K, op, Source::form) && sums_warps<Placement>) {
      constexpr int max_threads = sizeof(A) == 8 && is_wide(V, K) ? max_threads_when_looping : max_threads_per_team;
      if (is_one_turn_in_lanes(max_threads)) return run_in_lanes<max_threads, Placement>();
    }
    // Rows of any form, of doubles, or with edges and a label, and masks need more registers; in small teams they are
    // worth more than resident teams. What masks would spill is so much that it counts in larger teams too. (On HIP
    // the registers of a kernel do not depend on its team.)
    constexpr bool has_edges_and_label = has_edges && is_cross_entropy(op);
    if constexpr (backend == Backend::cuda && is_masked(op)) {
      constexpr bool is_busy    = Source::form == RowForm::strided || Source::has_element_mask;
      constexpr int max_threads = is_busy ? max_threads_when_wide : max_threads_when_looping;
      if constexpr (is_wide(V, K * row_tensors(op) * (is_busy ? 2 : 1))) {
        if (plan.team_size <= max_threads) return run_in_team<max_threads, Placement>();
      }
    } else if constexpr (backend == Backend::cuda && is_wide(V, K * row_tensors(op)) &&
                         (Source::form == RowForm::strided || sizeof(A) == 8 || has_edges_and_label)) {
      constexpr int max_threads = Source::form == RowForm::strided ? max_threads_when_wide : max_threads_when_looping;
      if (plan.team_size <= max_threads_when_wide / 2) return run_in_team<max_threads, Placement>();
    }
    if constexpr (is_light(backend, K, op, Source::form, x_bytes, y_bytes)) {
      constexpr int residency = 2;
      if (plan.team_size <= max_threads_when_light) return run_in_team<max_threads_when_light, Placement, residency>();
    }
    run_in_team<max_threads_per_team, Placement>();
  }

  template <int max_threads, class Placement, int residency = least_residency(backend)>
  void run_in_team() const {
    Source reader               = source;
    const int prefetching_teams = look_ahead(reader);
    launch<max_threads, ExecutionSpace, residency>(
        exec, plan,
        RowInTeam<op, V, Placement, Params, Source, Output>::of(plan, reader, output, params, rows, cols, prefetching_teams));
  }

  /// Whether row_in_lanes serves the plan: its teams have one turn each. Not with batch invariance: it rounds otherwise
  /// than row_in_team, which has the rows that are not aligned.
  bool is_one_turn_in_lanes(int max_threads) const {
    return plan.strategy == RowStrategy::vector_lanes && !plan.batch_invariant && plan.team_size <= max_threads &&
           plan.league_size * plan.rows_per_team >= rows;
  }

  template <int max_threads, class Placement>
  void run_in_lanes() const {
    Source reader               = source;
    const int prefetching_teams = look_ahead(reader);
    launch<max_threads>(
        exec, plan,
        RowInLanes<op, V, Placement, Params, Source, Output>{reader, output, rows, params, static_cast<int>(cols), plan.threads_per_row,
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
            exec, plan, StagedRows<op, V, Params, Source, Output>{reader, output, rows, params, columns, prefetching_teams});
      } else {
        launch<max_threads>(exec, plan,
                            StagedGradients<op, V, Params, typename Output::value_type>{
                                source.y.data, source.dy.data, output.data, rows, params, columns, source.y.line_policy()});
      }
    } else {
      refuse_plan_without_kernel(plan);
    }
  }

  /// Makes a source look ahead as planned, if it can. Returns how many teams do.
  int look_ahead([[maybe_unused]] Source& reader) const {
    if constexpr (requires { reader.look_ahead(plan.rows_ahead, plan.rows_per_team, cols); }) {
      if (plan.rows_ahead > 0 && reader.look_ahead(plan.rows_ahead, plan.rows_per_team, cols)) {
        const std::int64_t teams = (rows - plan.rows_ahead) / plan.rows_per_team;  // what all of them ask for exists
        return static_cast<int>(std::clamp<std::int64_t>(teams, 0, std::numeric_limits<int>::max()));
      }
    }
    return 0;
  }

  /// Elements of a team's part of a row: whole packs.
  std::int64_t share() const {
    const std::int64_t packs = std::max<std::int64_t>(1, has_edges ? cols / V : (cols + V - 1) / V);
    return (packs + plan.teams_per_row - 1) / plan.teams_per_row * V;
  }

  void run_split(WorkspaceView<ExecutionSpace>* own_workspace) const {
    const Lease<WorkspaceUse::status_words> workspace(exec, split_workspace_bytes<Params>(plan), own_workspace);
    const auto start = [&]<bool overlaps>(std::bool_constant<overlaps>, auto placement) {
      using Placement = typename decltype(placement)::type;
      constexpr int max_threads =
          overlaps ? most_threads_when_holding(backend, op, Source::form) : most_threads_when_looping(op);
      launch<max_threads>(exec, plan,
                          SplitRow<op, V, overlaps, Placement, Params, Source, Output>{
                              source, output, params, rows, cols, plan.teams_per_row, share(), plan.scratch_level,
                              static_cast<int>(plan.scratch_bytes), workspace.data()});
    };
    if (share() <= std::int64_t(most_packs(backend, op)) * V * plan.team_size) {
      using Held              = Registers<most_packs(backend, op)>;
      constexpr bool is_held  = !std::is_same_v<typename Held::type, typename Kept::Online>;
      constexpr bool overlaps = is_held && overlaps_rows(backend, op, Source::form);
      start(std::bool_constant<overlaps>{}, Held{});
    } else {
      start(std::false_type{}, std::type_identity<typename Kept::Online>{});
    }
  }

  void run_split_twice(WorkspaceView<ExecutionSpace>* own_workspace) const {
    using Placement = typename Registers<max_packs_per_thread(backend)>::type;
    using State   = typename Params::State;
    const Lease<WorkspaceUse::states> workspace(exec, split_workspace_bytes<Params>(plan), own_workspace);
    auto* const states = reinterpret_cast<State*>(workspace.data());
    const RowShares shares{cols, plan.teams_per_row, share()};
    constexpr int max_threads = is_masked(op) ? max_threads_when_wide : max_threads_per_team;
    launch<max_threads>(exec, plan,
                        ReduceParts<V, Placement, Params, Source>{source, params, shares, plan.scratch_level,
                                                              static_cast<int>(plan.scratch_bytes), states});
    RowPlan second = plan;
    if (Epilogue<op>::one_value_a_row) second.league_size = rows;
    launch<max_threads>(exec, second,
                        WriteParts<op, V, Placement, Params, Source, Output>{source, output, params, shares, plan.scratch_level,
                                                                       static_cast<int>(plan.scratch_bytes), states});
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_ROWS_CALL_HPP
