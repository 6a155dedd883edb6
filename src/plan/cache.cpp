// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "planner.hpp"

#include <algorithm>
#include <cstdint>

// Hints to the last-level cache: lines that it may give up, rows that later teams will read, results that go past it.

namespace KokkosNN::Impl {

/// True if the kernel's loads say when the cache gives their lines up: not those of masked rows and of rows with a
/// label, of which nobody has measured what they gain.
bool Planner::tells_when_to_evict() const {
  if (!m_traits.evicts_as_told || m_traits.cache == 0) return false;
  if (is_masked(m_problem.op) || is_cross_entropy(m_problem.op)) return false;
  return m_plan.form != RowForm::strided || m_plan.strategy == RowStrategy::inner_lanes;
}

/// A matter of how much the call moves; what a second kernel reads again is kept.
Eviction Planner::eviction() const {
  if (!tells_when_to_evict()) return Eviction::normal;
  if (m_plan.kernel == RowKernel::split_twice) return Eviction::last;
  RowsKey key             = m_key;
  key.strategy            = m_plan.strategy;
  const double caches     = moved_bytes() / static_cast<double>(m_traits.cache);
  const auto* const entry = entry_for(look_up(m_policy.evictions, key), &EvictionEntry::max_caches, caches);
  if (entry == nullptr) return Eviction::normal;
  const bool is_too_much = entry->eviction == Eviction::last && caches > prefetch().kept_caches;
  return is_too_much && prefetches_anyhow() ? Eviction::normal : entry->eviction;
}

/// True if a team shares no row with others, and no line of memory.
bool Planner::is_by_itself() const {
  return m_plan.strategy != RowStrategy::split_row && m_plan.strategy != RowStrategy::row_in_cluster &&
         m_plan.strategy != RowStrategy::inner_lanes;
}

/// True if teams ask for rows that later ones load: where a team has its rows on chip, or near, and rests from
/// loading while it computes and writes. Gradients, with three tensors on the way, gain nothing by it; who writes no
/// rows, and so never stops to write, only where its threads hold little. Of masked rows nobody else knows what will be
/// loaded.
bool Planner::prefetches_rows() const {
  const bool is_on_chip   = is_by_itself();
  const bool is_held_long = !is_reduction(m_problem.op) || m_plan.packs_per_thread <= prefetch().reduction_packs;
  return m_traits.prefetches && m_plan.form != RowForm::strided && is_on_chip && is_held_long && !is_gradient() &&
         !is_masked(m_problem.op) && gains_by_prefetch();
}

/// Lines that are kept to the last have results written to memory early and in order, and rows that are asked for ahead
/// are in the way of that: then only those ask who have little in flight. Otherwise rows of few packs a thread are
/// asked for.
bool Planner::gains_by_prefetch() const {
  if (prefetches_anyhow()) return true;
  const int k     = m_plan.packs_per_thread;
  const int few   = prefetch().few_packs;
  const int whole = prefetch().packs;
  if (m_plan.eviction == Eviction::last) return k <= few || (k <= whole && leaves_packs_empty());
  return k == whole || (k <= few && prefetch().asks_with_few);
}

/// True if rows are asked for ahead, if they may be, whatever is kept.
bool Planner::prefetches_anyhow() const {
  return is_by_itself() && !is_gradient() && (!chooses_prefetch() || asks_anyhow());
}

/// True if that was measured, for rows in registers.
bool Planner::chooses_prefetch() const {
  if (!tells_when_to_evict() || is_reduction(m_problem.op)) return false;
  return m_plan.strategy == RowStrategy::vector_lanes ||
         (m_plan.strategy == RowStrategy::team_registers && prefetch().chooses_in_teams);
}

/// Whose threads all wait for memory together: a team that fills a multiprocessor, and one that fetches all its rows.
bool Planner::asks_anyhow() const {
  return m_plan.kernel == RowKernel::staged_rows || m_plan.team_size > max_threads_when_wide;
}

bool Planner::leaves_packs_empty() const {
  return is_below(m_packs, prefetch().empty_percent, std::int64_t(m_plan.threads_per_row) * m_plan.packs_per_thread);
}

/// Threads of a multiprocessor by rule: as many as the largest team of the strategy has, but twice as many of those
/// that hold little, where that much more has to be in flight.
std::int64_t Planner::threads_by_rule() const {
  const bool is_staged   = m_plan.kernel == RowKernel::staged_rows;
  const bool hold_little = m_plan.packs_per_thread <= prefetch().few_packs && !is_staged;
  const bool need_more   = leaves_packs_empty() || (prefetch().asks_with_few && m_plan.eviction != Eviction::last);
  return std::int64_t(max_team_size()) * (chooses_prefetch() && hold_little && need_more ? 2 : 1);
}

/// The rows of teams that come a wave later, or as many bytes later as the cache keeps; only if there is a second wave.
void Planner::prefetch_later_rows() {
  const std::int64_t teams = m_traits.multiprocessors * (threads_by_rule() / m_plan.team_size);
  const std::int64_t wave  = teams * m_plan.rows_per_team;
  if (m_problem.rows <= wave) return;
  const double row_bytes = static_cast<double>(m_problem.cols) * m_problem.x_bytes;
  // Rows that are read twice must not be driven out of the cache in between.
  const double in_use = prefetch().online_tensors * row_bytes * static_cast<double>(wave);
  const double room   = prefetch().online_caches * static_cast<double>(m_traits.cache);
  if (m_plan.strategy == RowStrategy::team_online && in_use > room) return;
  const double kept = prefetch().caches * static_cast<double>(m_traits.cache) / row_bytes;
  m_plan.rows_ahead = std::min(wave, static_cast<std::int64_t>(kept) / m_plan.rows_per_team * m_plan.rows_per_team);
}

/// True if a host's results go past the caches, as the threads' share of those does not hold what the call reads and
/// writes. (16 MiB a tensor, two cores of a Xeon, softmax x 1024 24.0 GB/s, stored 15.9, softmax_backward 20.5 and
/// 15.6; of an EPYC 45.8 and 37.7, 66.7 and 67.5.) A line that two rows share is put together first, or stored where
/// rows are not one piece, and short rows have many of those.
bool Planner::uses_nontemporal_stores() const {
  if (is_gpu()) return false;
  const std::int64_t row_bytes = m_problem.cols * m_problem.y_bytes;
  const bool shares_lines      = row_bytes % static_cast<std::int64_t>(host_line) != 0;
  if (m_problem.y_col_stride == 1 && shares_lines && row_bytes < least_nontemporal_row_bytes()) return false;
  return m_traits.cache > 0 && moved_bytes() >= static_cast<double>(m_traits.cache);
}
std::int64_t Planner::least_nontemporal_row_bytes() const {
  if (!m_problem.one_piece) return host().nontemporal_row_bytes_apart;
  return (m_problem.y_bytes == 2 ? host().nontemporal_16_bit_factor : 1) * host().nontemporal_row_bytes;
}

}  // namespace KokkosNN::Impl
