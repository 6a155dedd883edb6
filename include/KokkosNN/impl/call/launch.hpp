// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_LAUNCH_HPP
#define KOKKOSNN_IMPL_CALL_LAUNCH_HPP

#include <KokkosNN/impl/call/workspace.hpp>
#include <KokkosNN/impl/compiled_kernels.hpp>
#include <KokkosNN/impl/gpu/device/native_launch.hpp>
#include <KokkosNN/impl/gpu/split_row.hpp>
#include <KokkosNN/impl/inputs/rows.hpp>
#include <KokkosNN/impl/traits.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

// A kernel launch, and the forms and maps that kernels are compiled for.

namespace KokkosNN::Impl {

/// Teams of one kernel launch.
struct Teams {
  std::int64_t league_size;
  int team_size;
  int scratch_level;
  std::size_t scratch_bytes;
  int cluster       = 0;     ///< teams of a cluster, of kernels that have clusters
  bool starts_early = true;  ///< while the stream's earlier kernel runs, where launches have attributes
};

/// True if kernels are launched natively: all of them on devices with launch attributes, and on all CUDA devices those
/// whose teams have more scratch than Kokkos gives.
template <class ExecutionSpace, bool needs_large_scratch = false>
inline constexpr bool is_launched_natively =
    backend_of<ExecutionSpace>() == Backend::cuda && (has_launch_attributes || needs_large_scratch);

/// Launches a kernel functor, compiled for `Bounds`, a Kokkos::LaunchBounds.
template <class Bounds, bool needs_large_scratch = false, class ExecutionSpace, class Kernel>
void launch(const ExecutionSpace& exec, const std::string& label, const Teams& teams, const Kernel& kernel) {
  require_launching_thread(exec, label);
  constexpr std::size_t alignment = 16;  // the kernels ask for aligned scratch
  if constexpr (is_launched_natively<ExecutionSpace, needs_large_scratch>) {
    NativeLaunch<Bounds>{teams.league_size, teams.team_size, teams.scratch_bytes, teams.cluster, teams.starts_early}
        .run(exec, label, kernel);
  } else {
    Kokkos::TeamPolicy<ExecutionSpace, Bounds> policy(exec, static_cast<int>(teams.league_size), teams.team_size, 1);
    if (teams.scratch_bytes > 0) {
      policy.set_scratch_size(teams.scratch_level, Kokkos::PerTeam(teams.scratch_bytes + alignment));
    }
    // The hint makes the functor travel with the launch: nothing waits for a constant-memory copy of an earlier one.
    Kokkos::parallel_for(
        label, Kokkos::Experimental::require(policy, Kokkos::Experimental::WorkItemProperty::HintLightWeight), kernel);
  }
}

/// Launches a kernel of tiles: `Kernel::team_size` threads a team, whose scratch may be DeviceTraits::large_scratch.
template <class ExecutionSpace, class Kernel>
void launch_tiles(const ExecutionSpace& exec, const std::string& label, const Teams& teams, const Kernel& kernel) {
  launch<Kokkos::LaunchBounds<Kernel::team_size, Kernel::resident>, true>(exec, label, teams, kernel);
}

/// Launches a kernel functor, compiled for teams of up to max_threads, as the plan says. Teams that wait for each other
/// do not start early: some would have to wait for room that the earlier kernel takes.
///   softmax f32 4 x 200000, H200 | 7.38 us | started early 7.82
template <int max_threads, class ExecutionSpace, class Kernel>
void launch(const ExecutionSpace& exec, const RowPlan& plan, const Kernel& kernel) {
  constexpr int residency = least_residency(backend_of<ExecutionSpace>(), max_threads);
  Teams teams{plan.league_size, plan.team_size, plan.scratch_level, plan.scratch_bytes};
  teams.starts_early = plan.kernel != RowKernel::split_row && plan.kernel != RowKernel::split_online;
  launch<Kokkos::LaunchBounds<max_threads, residency>>(exec, to_string(plan), teams, kernel);
}

/// Launches a RowInTeam. Rows that are more than the teams of a league take in one turn have several launches, where
/// teams have one turn.
template <int max_threads, class ExecutionSpace, class Kernel>
void launch_row_in_team(const ExecutionSpace& exec, const RowPlan& plan, Kernel kernel) {
  launch<max_threads>(exec, plan, kernel);
  if constexpr (is_launched_natively<ExecutionSpace>) {
    const std::int64_t rows_of_launch = plan.league_size * plan.rows_per_team;
    kernel.prefetching_teams          = 0;  // those of the first launch have
    for (kernel.launch = 1; kernel.launch * rows_of_launch < kernel.rows; ++kernel.launch) {
      launch<max_threads>(exec, plan, kernel);
    }
  }
}

/// f(std::integral_constant<RowForm, form>) for the form of a plan; `with_rims` if there are kernels for rows with
/// edges.
template <Backend backend, bool with_edges, class F>
void with_form(RowForm form, const F& f) {
  if constexpr (backend != Backend::host) {
    if (form == RowForm::aligned) return f(std::integral_constant<RowForm, RowForm::aligned>{});
    if constexpr (with_edges) {
      if (form == RowForm::misaligned) return f(std::integral_constant<RowForm, RowForm::misaligned>{});
    }
  }
  f(std::integral_constant<RowForm, RowForm::strided>{});
}

/// f(std::type_identity<Map>) for the map that kernels find rows of X of a form by, if these lie along so many axes.
template <Backend backend, RowOperator op, class X, RowForm form, class F>
void with_map(int axes, const F& f) {
  if constexpr (has_kernels_at_one_stride(backend, op, sizeof(X), form)) {
    if (axes <= 1) return f(std::type_identity<RowStride>{});
  }
  f(std::type_identity<MapOf<form>>{});
}

/// The workspace of a split_row plan.
template <class Params>
std::size_t split_workspace_bytes(const RowPlan& plan) {
  if (plan.kernel == RowKernel::split_twice)
    return static_cast<std::size_t>(plan.league_size) * sizeof(typename Params::State);
  return split_row_workspace_bytes<typename Params::State>(plan.league_size);
}

/// Makes room for it in a plan that keeps one.
template <class Params, class ExecutionSpace>
void reserve_split_workspace(const ExecutionSpace& exec, const RowPlan& plan, WorkspaceView<ExecutionSpace>& own) {
  if (plan.strategy != RowStrategy::split_row) return;
  const std::size_t bytes = split_workspace_bytes<Params>(plan);
  if (plan.kernel == RowKernel::split_twice) {
    WorkspaceLease<ExecutionSpace, WorkspaceUse::states>(exec, bytes, &own);
  } else {
    WorkspaceLease<ExecutionSpace, WorkspaceUse::status_words>(exec, bytes, &own);
  }
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_LAUNCH_HPP
