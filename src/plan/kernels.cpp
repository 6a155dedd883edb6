// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "planner.hpp"

#include <algorithm>
#include <cstdint>

// Which of a strategy's kernels runs, and the threads that it is compiled for.

namespace KokkosNN::Impl {

/// The problem's rows as kernels are compiled for them.
KernelTypes Planner::kernel_types() const {
  return {m_traits.backend,     m_problem.op,           m_pack,
          m_problem.x_bytes,    m_problem.y_bytes,      m_problem.accumulator_bytes,
          has_staged_kernel(),  m_problem.element_mask, m_problem.is_extended,
          m_problem.one_stride, m_problem.is_shard};
}

bool Planner::has_staged_kernel() const {
  return has_staged_types(m_problem.op, m_problem.x_type, m_problem.y_type, m_problem.dy_type);
}

/// Those of strided rows with batch invariance: a row at another address would have other sums.
bool Planner::is_packs_per_thread(int k) const {
  return has_register_kernel(kernel_types(), m_is_batch_invariant ? RowForm::strided : m_plan.form, k);
}

/// True if these rows are so few that they go to a kernel of k packs for that, if there is one, in teams of such a
/// size.
bool Planner::is_few_rows_kernel(int k, std::int64_t team_size) const {
  const std::int64_t teams = std::int64_t(registers().few_rows_threads) * m_traits.multiprocessors / team_size;
  return rows_that_count() <= teams &&
         has_few_rows_kernel(m_traits.backend, k, m_problem.op, m_plan.form, m_problem.x_bytes, m_problem.y_bytes);
}

/// True if rows have a kernel of team_online, be it as strided ones.
bool Planner::has_online_kernel() const {
  const KernelTypes types = kernel_types();
  return Impl::has_online_kernel(types, m_plan.form) || Impl::has_online_kernel(types, RowForm::strided);
}

bool Planner::has_cluster_kernel() const {
  return exists({RowStrategy::row_in_cluster, RowKernel::row_in_cluster, m_plan.form, m_pack, max_packs_per_thread(),
                 cluster_team_size},
                kernel_types());
}

/// Threads that a team of the planned strategy may have: some kernels are compiled for small teams of busy threads.
int Planner::max_team_size() const {
  const auto least = [&](int threads) {
    return is_gpu() ? std::min(threads, m_traits.max_team_size) : m_traits.max_team_size;
  };
  switch (m_plan.strategy) {
    case RowStrategy::inner_lanes:
      return least(most_threads_of_inner_lanes(m_traits.backend, m_problem.op));
    case RowStrategy::team_online:
      return least(threads_when_looping());
    case RowStrategy::split_row:
      return least(threads_when_holding());
    case RowStrategy::row_in_cluster:
      return least(cluster_team_size);
    case RowStrategy::automatic:
    case RowStrategy::vector_lanes:
    case RowStrategy::team_scratch:
    case RowStrategy::team_registers:
      break;
  }
  return m_traits.max_team_size;
}

void Planner::runs_by(RowKernel kernel, int max_threads) {
  m_plan.kernel      = kernel;
  m_plan.max_threads = max_threads;
}

/// True if row_in_lanes serves a plan of vector_lanes: its teams have one turn each. Not with batch invariance: it
/// rounds otherwise than row_in_team, which has the rows that are not aligned.
bool Planner::runs_in_lanes_in_one_turn() const {
  return m_plan.strategy == RowStrategy::vector_lanes && !m_is_batch_invariant &&
         has_lanes_kernel(m_traits.backend, m_plan.packs_per_thread, m_problem.op, m_plan.form, m_problem.x_bytes,
                          m_pack) &&
         m_plan.team_size <= threads_in_lanes() && m_plan.league_size * m_plan.rows_per_team >= m_problem.rows;
}

/// Rows in registers, by the kernel that leaves a thread the registers that serve a team of this size.
void Planner::runs_rows_in_registers() {
  const int k          = m_plan.packs_per_thread;
  const bool has_teams = m_plan.strategy == RowStrategy::team_registers;
  if (has_teams && is_few_rows_kernel(k, m_plan.team_size)) return runs_by(RowKernel::few_rows, max_threads_per_team);
  if (runs_in_lanes_in_one_turn()) return runs_by(RowKernel::row_in_lanes, threads_in_lanes());
  const KernelTypes types = kernel_types();
  const BusyTeams busy    = busy_teams(types, m_plan.form, k);
  const bool is_light     = has_light_teams(types, m_plan.form, k) && m_plan.team_size <= max_threads_when_light;
  if (m_plan.team_size <= busy.largest) return runs_rows_of_team(busy.max_threads);
  runs_rows_of_team(is_light ? max_threads_when_light : max_threads_per_team);
}

/// Rows of which a team has one or several; a host has them by loops of vectors.
void Planner::runs_rows_of_team(int max_threads) {
  const bool has_loops = has_host_loops(m_traits.backend);
  has_loops ? runs_by(RowKernel::host_rows, max_threads_per_team) : runs_by(RowKernel::row_in_team, max_threads);
}

/// Rows that resident teams share.
void Planner::runs_parts_of_rows() {
  const std::int64_t held = std::int64_t(m_plan.packs_per_thread) * m_plan.team_size;
  if (ceil_div(m_packs, m_plan.teams_per_row) <= held && holds_split_rows(kernel_types())) {
    runs_by(RowKernel::split_row, most_threads_when_holding(m_traits.backend, m_problem.op, m_plan.form));
  } else {
    runs_by(RowKernel::split_online, threads_when_looping());
  }
}

/// Rows side by side: by the kernel that reads columns once, if there is one of these packs and they hold them all.
void Planner::runs_inner_rows() {
  const int max_threads = most_threads_of_inner_lanes(m_traits.backend, m_problem.op);
  if (has_host_loops(m_traits.backend)) return runs_by(RowKernel::host_inner, max_threads);
  runs_by(RowKernel::inner_lanes, max_threads);
  const std::int64_t threads = m_plan.team_size / m_plan.threads_per_row;
  const bool holds           = rereads_inner_rows(m_problem.op) || threads * m_plan.packs_per_thread >= m_problem.cols;
  if (!holds || !has_kernel(m_plan, kernel_types())) runs_by(RowKernel::inner_online, max_threads);
}

}  // namespace KokkosNN::Impl
