// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "planner.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

// Rows that lie side by side.

namespace KokkosNN::Impl {

void Planner::inner_lanes() {
  if (is_masked(m_problem.op)) refuse("rows side by side do not all have the same columns in a mask");
  if (is_cross_entropy(m_problem.op))
    refuse("no cross entropy runs its lanes over another axis than that of the classes");
  if (m_problem.inner < 1) refuse("there is no axis besides the reduced one that lanes could run over");
  m_plan.form             = RowForm::strided;
  const bool keeps        = !rereads_inner_rows(m_problem.op) && finds_lanes_that_keep();
  m_plan.pack             = inner_pack(keeps);
  m_plan.packs_per_thread = inner_packs(keeps);
  if (!keeps) m_plan.threads_per_row = inner_lanes_that_loop();
  if (!std::has_single_bit(unsigned(m_plan.threads_per_row))) {
    refuse("threads_per_row " + std::to_string(m_plan.threads_per_row) + " is not a power of two");
  }
  is_gpu() ? gpu_inner_lanes(keeps) : host_inner_lanes();
  runs_inner_rows();
}

void Planner::gpu_inner_lanes(bool keeps) {
  const int lanes           = m_plan.threads_per_row;
  const int one             = std::max(m_traits.warp_size, lanes);
  const std::int64_t needed = round_up(lanes * ceil_div(m_problem.cols, m_plan.packs_per_thread), one);
  m_plan.team_size          = m_request.team_size;
  if (m_plan.team_size == 0) {
    const std::int64_t most = std::max<std::int64_t>(one, inner_most_threads(keeps));
    m_plan.team_size        = static_cast<int>(std::min(needed, most));
    while (m_plan.team_size > one && inner_scratch(m_plan.team_size) > scratch_limit(0)) m_plan.team_size -= one;
  }
  if (m_plan.team_size > max_team_size()) {
    refuse("threads_per_row " + std::to_string(lanes) + " need a team of " + std::to_string(m_plan.team_size) +
           ", and a team may have " + std::to_string(max_team_size()) + " threads");
  }
  if (m_plan.team_size % lanes != 0) {
    refuse("team_size " + std::to_string(m_plan.team_size) + " is no multiple of lanes " + std::to_string(lanes));
  }
  m_plan.league_size = capped_league(inner_teams(lanes));
  set_scratch(inner_scratch(m_plan.team_size));
}

/// A host's thread has a block of rows by itself, and keeps of all of their columns what it needs again.
void Planner::host_inner_lanes() {
  m_plan.pack      = host_inner_width();
  m_plan.team_size = m_request.team_size != 0 ? m_request.team_size : m_plan.threads_per_row;
  if (m_plan.team_size > m_traits.max_team_size || m_plan.team_size % m_plan.threads_per_row != 0) {
    refuse("team_size " + std::to_string(m_plan.team_size) + " is no multiple of lanes " +
           std::to_string(m_plan.threads_per_row) + " up to " + std::to_string(m_traits.max_team_size));
  }
  const std::int64_t blocks = m_problem.rows / m_problem.inner * ceil_div(m_problem.inner, m_plan.pack);
  m_plan.league_size        = capped_league(ceil_div(blocks, m_plan.team_size));
  const std::int64_t kept   = host_inner_kept(m_plan.pack * m_problem.accumulator_bytes);
  if (kept > 0) set_scratch(static_cast<std::size_t>(m_plan.team_size * (kept + std::int64_t(host_line))));
}

/// Rows of a block: many, as what lies side by side at a column is moved at once, but all threads must have as many
/// blocks, if they have few.
int Planner::host_inner_width() const {
  const HostPolicy& policy   = host();
  const int bytes            = m_problem.accumulator_bytes;
  const std::int64_t least   = policy.inner_least_bytes / bytes;
  const std::int64_t outer   = m_problem.rows / m_problem.inner;
  const std::int64_t threads = m_traits.multiprocessors;
  const std::int64_t few     = policy.inner_blocks_a_thread * threads;
  const bool in_caches       = policy.inner_cached_calls * moved_bytes() <= static_cast<double>(m_traits.cache);
  const int narrow           = in_caches ? policy.inner_least_bytes : host_inner_good_bytes;
  const std::int64_t most    = in_caches ? policy.inner_cached_kept_bytes : host_inner_share_bytes;
  int widest                 = in_caches ? host_inner_bytes : policy.inner_memory_bytes;
  while (widest > narrow && host_inner_kept(widest) > most) widest /= 2;
  const auto fits = [&] { return std::size_t(m_plan.threads_per_row * host_inner_kept(widest)) < scratch_limit(1); };
  while (widest > policy.inner_least_bytes && !fits()) widest /= 2;
  std::int64_t blocks = ceil_div(m_problem.inner, widest / bytes);
  while (outer * blocks < few && outer * blocks % threads != 0 && blocks * least < m_problem.inner) ++blocks;
  return static_cast<int>(round_up(ceil_div(m_problem.inner, blocks), least));
}

/// Bytes that a thread keeps of so wide a block.
std::int64_t Planner::host_inner_kept(int width_bytes) const {
  if (!host_inner_keeps(m_problem.op, m_problem.cols)) return 0;
  return host_inner_kept_bytes(m_problem.op, m_problem.cols, width_bytes);
}

/// A sum and a maximum for each row, from every warp of a team; of a gradient a sum.
std::size_t Planner::inner_scratch(int team_size) const {
  const int lanes             = m_plan.threads_per_row;
  const std::int64_t speakers = ceil_div(team_size / lanes, std::max(1, m_traits.warp_size / lanes));
  const bool has_wide_sums    = m_problem.y_type != ElementType::f16 && m_problem.y_type != ElementType::bf16;
  const int words             = (has_wide_sums ? 2 : 1) + (is_gradient() ? 0 : 1);
  const int slot_bytes        = is_norm(m_problem.op) ? norm_state_bytes : words * m_problem.accumulator_bytes;
  return speakers == 1 ? 0 : std::size_t(speakers * lanes * m_plan.pack * slot_bytes);
}

int Planner::inner_most_threads(bool keeps) const {
  return keeps || rereads_inner_rows(m_problem.op) ? inner_max_team_size() : inner_looping_team_size();
}
int Planner::inner_max_team_size() const { return std::min(inner().max_team_size, max_team_size()); }

int Planner::inner_pack(bool keeps) const {
  if (rereads_inner_rows(m_problem.op)) return gradient_inner_pack_size(m_traits.backend, m_pack);
  return inner_pack_size(m_traits.backend, m_problem.x_bytes, m_problem.y_bytes, m_problem.accumulator_bytes, keeps);
}
int Planner::inner_packs(bool keeps) const {
  const int pack = inner_pack(keeps);
  if (rereads_inner_rows(m_problem.op)) return gradient_inner_packs(m_traits.backend, pack);
  const int most  = Impl::inner_packs(m_traits.backend, pack, m_problem.x_bytes, m_problem.accumulator_bytes, keeps);
  const bool some = keeps && has_fewer_inner_packs(m_traits.backend, m_problem.x_bytes, pack);
  return some && m_problem.cols <= inner().few_columns ? most / 2 : most;
}

/// Teams of so many lanes side by side.
std::int64_t Planner::inner_teams(int lanes) const {
  return m_problem.rows / std::max<std::int64_t>(1, m_problem.inner) *
         ceil_div(m_problem.inner, std::int64_t(lanes) * m_plan.pack);
}

/// Sets the lanes of a team that has all columns in registers, if there is one: the fewer lanes, the longer its
/// columns, and the smaller the team.
bool Planner::finds_lanes_that_keep() {
  if (m_request.team_size != 0) return finds_lanes_that_keep(m_request.team_size);
  return finds_lanes_that_keep(std::min(inner().team_size, m_traits.max_team_size)) ||
         finds_lanes_that_keep(inner_max_team_size());
}
bool Planner::finds_lanes_that_keep(int team_size) {
  const bool is_asked = m_request.threads_per_row != 0;
  const int most      = is_asked ? m_request.threads_per_row : inner().lanes;
  const int least     = is_asked ? m_request.threads_per_row : inner().least_lanes;
  for (m_plan.threads_per_row = most; m_plan.threads_per_row >= least; m_plan.threads_per_row /= 2) {
    if (team_size / m_plan.threads_per_row * std::int64_t(inner_packs(true)) >= m_problem.cols) return true;
  }
  return false;
}

/// As many lanes as leave a team to nearly every multiprocessor. A gradient's packs are long: few lanes move whole
/// sectors.
int Planner::inner_lanes_that_loop() const {
  if (m_request.threads_per_row != 0) return m_request.threads_per_row;
  if (rereads_inner_rows(m_problem.op)) return inner().least_lanes_looping;
  int lanes = inner().lanes_looping;
  while (lanes > inner().least_lanes_looping &&
         is_below(inner_teams(lanes), inner().idle_percent, m_traits.multiprocessors)) {
    lanes /= 2;
  }
  return lanes;
}

/// The fewer teams a multiprocessor has, the larger they are.
int Planner::inner_looping_team_size() const {
  std::int64_t threads     = max_threads_per_team;
  const std::int64_t teams = is_gpu() ? ceil_div(inner_teams(m_plan.threads_per_row), m_traits.multiprocessors) : 1;
  while (threads > inner().looping_team_size && threads * teams > max_threads_per_team) threads /= 2;
  return std::min(m_traits.max_team_size, static_cast<int>(threads));
}

}  // namespace KokkosNN::Impl
