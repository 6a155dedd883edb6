// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "planner.hpp"

#include <algorithm>
#include <bit>
#include <climits>
#include <cstdint>
#include <string>

// A row over several teams.

namespace KokkosNN::Impl {

void Planner::split_row() {
  if (!is_gpu()) refuse("a host's threads share a row as one team, by team_scratch or team_online");
  m_plan.packs_per_thread = max_packs_per_thread();
  m_plan.team_size = m_request.team_size != 0 ? m_request.team_size : std::min(split_team_size(), max_team_size());
  m_plan.threads_per_row = m_plan.team_size;
  if (!has_second_kernel() && m_request.launches == 2) {
    refuse("gradients, norms, cross entropies and masked rows have no second kernel to split a row with");
  }
  const int launches = m_request.launches != 0 ? m_request.launches : (is_read_twice_from_cache() ? 2 : 1);
  launches == 2 ? split_by_two_kernels() : split_over_resident_teams();
  set_scratch(exchange_bytes(m_plan.team_size) + sizeof(std::int64_t));
}

/// Teams of a size that hold a row in their registers.
std::int64_t Planner::teams_that_hold(int team_size) const {
  return ceil_div(m_packs, std::int64_t(m_plan.packs_per_thread) * team_size);
}

int Planner::split_team_size() const {
  const SplitPolicy& policy = split();
  const bool overlaps       = overlaps_rows(m_traits.backend, m_problem.op, counted_form());
  const int small           = policy.small_team_size;
  const int most            = overlaps ? policy.small_teams : policy.small_teams_alone;
  if (takes_many_small_teams()) return small;
  if (most == 0 || teams_that_hold(small) > most) return policy.team_size;
  return overlaps && leaves_fewer_idle(policy.smallest_team, small) ? policy.smallest_team : small;
}

/// True if small teams pay although they are many: of larger ones, too, there are more status words than a warp
/// has lanes, but each thread of a small one has a status word at most, and there are rows enough for teams to fall out
/// of step.
bool Planner::takes_many_small_teams() const {
  const SplitPolicy& policy = split();
  return policy.many_small_teams != 0 && counted_form() == RowForm::aligned && rows_that_count() >= policy.many_rows &&
         teams_that_hold(policy.team_size) > m_traits.warp_size &&
         teams_that_hold(policy.small_team_size) <= policy.many_small_teams;
}

/// True if teams of `fewer` threads, if one warp can read all of their status words, have markedly fewer threads behind
/// a row's last pack.
bool Planner::leaves_fewer_idle(int fewer, int threads) const {
  const std::int64_t teams = teams_that_hold(fewer);
  return teams <= m_traits.warp_size &&
         is_below(fewer * teams, split().less_idle_percent, threads * teams_that_hold(threads));
}

/// True if few rows stay, by and large, in a GPU's cache between two kernels, and are too long for the teams that may
/// share one to hold it, so that one kernel would read them again as well.
bool Planner::is_read_twice_from_cache() const {
  const double bytes = elements() * m_problem.x_bytes;
  return has_second_kernel() && m_request.teams_per_row == 0 && has_few_rows() &&
         bytes <= split().twice_caches * static_cast<double>(m_traits.cache) &&
         teams_that_hold() > most_teams_a_row(threads_when_holding());
}

void Planner::split_by_two_kernels() {
  const std::int64_t needed = teams_that_hold();
  const std::int64_t teams  = m_request.teams_per_row != 0 ? m_request.teams_per_row : needed;
  if (teams < needed) refuse(std::to_string(teams) + " teams do not hold a row, which takes " + std::to_string(needed));
  if (teams > INT_MAX / std::max<std::int64_t>(1, m_problem.rows))
    refuse("more teams would be needed than a league has");
  m_plan.teams_per_row = static_cast<int>(teams);
  m_plan.league_size   = m_problem.rows * teams;
  runs_by(RowKernel::split_twice, max_threads_per_team);
}

void Planner::split_over_resident_teams() {
  const std::int64_t holding = teams_that_hold();
  std::int64_t teams         = m_request.teams_per_row;
  if (teams == 0) {
    teams = std::min(holding, teams_in_one_wave());
    if (teams > most_teams_a_row(threads_when_holding())) {
      teams = std::min(holding - 1, most_teams_a_row(threads_when_looping()));  // they loop over their parts
    }
  }
  const std::int64_t resident = resident_teams(teams >= holding ? threads_when_holding() : threads_when_looping());
  if (teams > resident) {
    refuse(std::to_string(teams) + " teams a row must run at once and the device surely runs " +
           std::to_string(resident));
  }
  m_plan.teams_per_row = static_cast<int>(teams);
  m_plan.league_size   = std::min(m_problem.rows, resident / teams) * teams;
  runs_parts_of_rows();
}

/// Two calls on two instances can't starve each other as long as neither needs more than half of the device.
std::int64_t Planner::most_teams_a_row(int threads) const {
  constexpr int calls_at_once = 2;
  return std::max<std::int64_t>(1, resident_teams(threads) / calls_at_once);
}

/// Teams a row of which all rows' teams run at once, where these may loop over more than they hold.
std::int64_t Planner::teams_in_one_wave() const {
  if (!split().teams_loop || m_is_batch_invariant) return INT64_MAX;
  const std::int64_t resident = resident_teams(threads_when_looping());
  const std::int64_t teams    = std::max<std::int64_t>(1, resident / std::max<std::int64_t>(1, m_problem.rows));
  return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(teams)));
}

/// Teams that are sure to run at the same time, of kernels compiled for so many threads.
std::int64_t Planner::resident_teams(int compiled_for) const {
  const int threads = std::min(m_traits.resident_threads, compiled_for);
  return std::int64_t(m_traits.multiprocessors) * std::max(1, threads / m_plan.team_size);
}

}  // namespace KokkosNN::Impl
