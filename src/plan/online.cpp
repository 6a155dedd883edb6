// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "planner.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

// Rows that a team reads twice, or once if nothing of them is written.

namespace KokkosNN::Impl {

void Planner::team_online() {
  if (!has_online_kernel()) refuse("no kernel reads such rows twice, as a team holds them, or several do");
  const int k   = packs_when_looping(m_traits.backend, m_pack, m_problem.op, m_plan.form);
  int team_size = m_request.team_size;
  if (team_size == 0) team_size = is_gpu() ? even_team(k, online_team_size()) : host_threads_a_row();
  m_plan.packs_per_thread = k;
  one_row_a_team(team_size);
  runs_rows_of_team(threads_when_looping());
  set_scratch(row_scratch_bytes(team_size, 0));
}

int Planner::online_team_size() const {
  if (has_few_rows()) return max_team_size();
  if (reduces_long_rows()) return reducing_team_size();
  return m_problem.cols >= online().long_cols ? max_team_size() : online().team_size;
}

/// The smallest team, from one that leaves its threads a good many packs on, of which the last wave does not leave
/// much of the device empty.
int Planner::reducing_team_size() const {
  const ReductionPolicy& policy = reduction();
  const std::int64_t least      = m_packs / policy.packs_per_thread;
  const int first =
      std::clamp(static_cast<int>(std::bit_floor(std::uint64_t(least))), m_traits.warp_size, policy.team_size);
  int best         = first;
  double best_fill = 0;
  for (int team = first; team <= policy.largest_team && best_fill < policy.fill; team += m_traits.warp_size) {
    const double at_once = double(m_traits.multiprocessors) * std::max(1, max_threads_when_looping / team);
    const double waves   = static_cast<double>(rows_that_count()) / at_once;
    const double fill    = waves / std::ceil(waves);
    if (fill >= best_fill) {
      best      = team;
      best_fill = fill;
    }
  }
  return best;
}

}  // namespace KokkosNN::Impl
