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

/// The label of a plan's kernel. Kokkos' tools alone tell kernels apart by it, and writing it takes longer than to plan
/// the call: without them it is the public function's name, with which messages begin.
///   softmax f32 4 x 8, instructions of kokkosnn_softmax, x86-64-v3 | 14900 | with to_string(plan) 20500
inline std::string label_of(const RowPlan& plan) {
  if (Kokkos::Tools::profileLibraryLoaded()) return to_string(plan);
  return std::string("KokkosNN::") + to_string(plan.op);
}

/// Launches a kernel functor, compiled for teams of up to max_threads, as the plan says. Teams that wait for each other
/// do not start early: some would have to wait for room that the earlier kernel takes.
///   softmax f32 4 x 200000, H200 | 7.38 us | started early 7.82
template <int max_threads, class ExecutionSpace, class Kernel>
void launch(const ExecutionSpace& exec, const RowPlan& plan, const Kernel& kernel) {
  constexpr int residency = least_residency(backend_of<ExecutionSpace>(), max_threads);
  Teams teams{plan.league_size, plan.team_size, plan.scratch_level, plan.scratch_bytes};
  teams.starts_early = plan.kernel != RowKernel::split_row && plan.kernel != RowKernel::split_online;
  launch<Kokkos::LaunchBounds<max_threads, residency>>(exec, label_of(plan), teams, kernel);
}

/// Elements that the calling thread processes by itself in less time than other threads take to start and to be waited
/// for. A GPU's kernels are always launched.
inline constexpr std::int64_t most_elements_in_caller = 2048;

/// Runs a host's kernel of teams of one thread on the calling thread, as a league of one team, if it has few elements;
/// returns false otherwise. The kernel must give the same bits whatever the league. Kokkos' tools see launches alone,
/// so with tools there is one.
template <class ExecutionSpace, class Kernel>
bool run_in_caller([[maybe_unused]] const RowPlan& plan, [[maybe_unused]] std::int64_t elements,
                   [[maybe_unused]] const Kernel& kernel) {
  using Member = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;
  // Spaces whose launches wait for their kernels: OpenMP and Serial.
  if constexpr (std::is_constructible_v<Member, Kokkos::Impl::HostThreadTeamData&>) {
    const bool is_small = plan.team_size == 1 && plan.scratch_bytes == 0 && elements <= most_elements_in_caller;
    if (!is_small || Kokkos::Tools::profileLibraryLoaded()) return false;
    Kokkos::Impl::HostThreadTeamData team;
    kernel(Member(team));
    return true;
  } else {
    return false;
  }
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
