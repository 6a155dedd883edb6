// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "planner.hpp"

#include <algorithm>
#include <bit>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <string>

// Rows in registers: vector_lanes, team_registers, and short rows through team scratch.

namespace KokkosNN::Impl {

/// How a row is held in registers; null where no team of a GPU holds it, as an operator may hold fewer packs than those
/// whose table it uses.
const RegisterEntry* Planner::register_entry() const {
  const int k     = max_packs_per_thread();
  const int most  = is_elementwise(m_problem.op) ? m_traits.max_team_size  // of those a warp holds a row, or no team
                                                 : most_threads_in_registers(kernel_types(), m_plan.form, k);
  const int teams = std::min(m_traits.max_team_size, most);
  if (is_gpu() && m_packs > std::int64_t(k) * teams) return nullptr;
  return entry_for(policy(&BackendPolicy::register_tables), &RegisterEntry::max_packs, m_packs);
}

/// Packs that a thread holds of this row. What only reads a row has nothing to keep beside it; where there are few
/// rows, what a thread does by itself is what the call takes.
int Planner::held_packs() const {
  const auto* entry     = register_entry();
  const bool holds_more = is_gpu() && is_reduction(m_problem.op) && m_packs >= reduction().full_packs;
  if (const int k = packs_of_few_rows(); k != 0) return k;
  if (entry == nullptr || holds_more) return max_packs_per_thread();
  int k = entry->packs(is_large_call());
  while (!is_packs_per_thread(k) && k < max_packs_per_thread()) k *= 2;  // of rows that have few numbers of packs
  return is_packs_per_thread(k) ? k : max_packs_per_thread();
}

/// Packs that a thread holds of few rows: as few as a team holds. 0: there are many, or sizes were asked for.
int Planner::packs_of_few_rows() const {
  if (!is_gpu() || m_request.team_size != 0 || m_request.threads_per_row != 0) return 0;
  const int most = max_packs_per_thread();
  for (int k = 1; k < most; k *= 2) {
    const bool by_kernel = is_few_rows_kernel(k, round_up(ceil_div(m_packs, k), m_traits.warp_size));
    const bool is_half   = by_kernel && 2 * k == most;
    const int team_size  = is_half ? registers().few_rows_largest_team : registers().few_rows_team_size;
    const bool holds     = m_packs <= std::int64_t(k) * team_size && is_packs_per_thread(k);
    if (holds && (by_kernel || has_few_rows())) return k;
  }
  return 0;
}

/// Threads that hold a row at k packs each: a power of two within a warp, whole warps above.
std::int64_t Planner::needed_lanes(int k) const {
  const std::int64_t lanes = std::max<std::int64_t>(least_lanes(), ceil_div(m_packs, k));
  return lanes <= m_traits.warp_size ? std::int64_t(std::bit_ceil(std::uint64_t(lanes)))
                                     : round_up(lanes, m_traits.warp_size);
}

void Planner::require_capacity(std::int64_t lanes) const {
  const std::int64_t held = lanes * m_plan.packs_per_thread;
  if (held < m_packs) {
    refuse(std::to_string(lanes) + " threads hold " + std::to_string(held * m_pack) + " elements in registers");
  }
}

void Planner::vector_lanes() {
  if (goes_through_scratch()) return vector_lanes_by_scratch();
  const auto* entry       = register_entry();
  const int k             = m_request.packs_per_thread != 0 ? m_request.packs_per_thread : packs_of_lanes();
  m_plan.packs_per_thread = k;
  m_plan.threads_per_row  = m_request.threads_per_row != 0
                                ? m_request.threads_per_row
                                : static_cast<int>(std::min<std::int64_t>(needed_lanes(k), m_traits.warp_size));
  if (m_plan.threads_per_row > m_traits.warp_size || !std::has_single_bit(unsigned(m_plan.threads_per_row))) {
    refuse("threads_per_row " + std::to_string(m_plan.threads_per_row) + " is not a power of two up to " +
           std::to_string(m_traits.warp_size));
  }
  require_capacity(m_plan.threads_per_row);
  const int size   = entry != nullptr ? entry->team_size : m_traits.warp_size;
  m_plan.team_size = m_request.team_size != 0 ? m_request.team_size : std::min(size, m_traits.max_team_size);
  set_league(m_plan.team_size / m_plan.threads_per_row);
  runs_rows_in_registers();
}

/// More packs a thread than the table has where a warp would not hold the row, fewer where threads for its edges do.
int Planner::packs_of_lanes() const {
  int k                = held_packs();
  const int most_lanes = m_request.threads_per_row != 0 ? m_request.threads_per_row : m_traits.warp_size;
  while (k < max_packs_per_thread() && (needed_lanes(k) > most_lanes || !is_packs_per_thread(k))) k *= 2;
  while (is_packs_per_thread(k / 2) && least_lanes() * (k / 2) >= m_packs) k /= 2;
  return k;
}

/// True if rows are short, many, of one piece of memory and begin between packs: they have a kernel of their own, in
/// which nothing can be chosen.
bool Planner::goes_through_scratch() const {
  const bool is_free = m_request.threads_per_row == 0 && m_request.packs_per_thread == 0 && m_request.team_size == 0;
  const std::int64_t row_bytes = m_problem.cols * m_problem.x_bytes;
  return is_free && has_edges() && m_problem.one_piece && m_problem.one_stride && has_staged_kernel() &&
         row_bytes <= staged().row_bytes &&
         m_problem.rows <= std::int64_t(INT_MAX) * staged().team_size &&  // a team has one turn
         m_problem.rows >= row_bytes * staged().rows_per_byte * m_traits.multiprocessors;
}

void Planner::vector_lanes_by_scratch() {
  runs_by(RowKernel::staged_rows, max_threads_when_wide);
  m_plan.threads_per_row = 1;
  m_plan.team_size       = staged().team_size;
  set_league(m_plan.team_size);
  set_scratch(std::size_t(m_plan.team_size * row_tensors(m_problem.op) * m_problem.cols * m_problem.x_bytes));
}

void Planner::team_registers() {
  refuse_to_keep();
  m_plan.packs_per_thread = m_request.packs_per_thread != 0 ? m_request.packs_per_thread : fitting_packs(held_packs());
  const std::int64_t needed = round_up(ceil_div(m_packs, m_plan.packs_per_thread), m_traits.warp_size);
  const auto team_size      = static_cast<int>(std::min<std::int64_t>(needed, m_traits.max_team_size));
  one_row_a_team(m_request.team_size != 0 ? m_request.team_size : team_size);
  require_capacity(m_plan.threads_per_row);
  runs_rows_in_registers();
  set_scratch(row_scratch_bytes(m_plan.team_size, is_gpu() ? 0 : kept_row_bytes()));
}

/// k packs a thread, or fewer where much less of the team would be idle.
int Planner::fitting_packs(int k) const {
  const int fewer        = fewer_packs(m_traits.backend, m_problem.op);
  const auto packs_held  = [&](int n) { return n * round_up(ceil_div(m_packs, n), m_traits.warp_size); };
  const bool is_possible = k == max_packs_per_thread() && is_packs_per_thread(fewer);
  return is_possible && is_below(packs_held(fewer), registers().fewer_packs_percent, packs_held(k)) ? fewer : k;
}

}  // namespace KokkosNN::Impl
