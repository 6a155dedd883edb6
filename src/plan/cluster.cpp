// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "planner.hpp"
#include "tiles.hpp"

#include <algorithm>
#include <bit>
#include <climits>
#include <cstdint>
#include <string>

// A row over a cluster of teams.

namespace KokkosNN::Impl {

/// True if rows are long enough for clusters, not too long, and have teams enough for the device. Not with batch
/// invariance: rows that are not aligned have no such kernel then, and theirs adds up in another order.
bool Planner::prefers_clusters() const {
  const ClusterPolicy& policy = clusters();
  if (m_traits.largest_cluster == 0 || m_is_batch_invariant) return false;
  if (!(has_edges() ? policy.packs_with_edges : policy.packs).has(m_packs)) return false;
  const std::int64_t teams = teams_of_cluster();
  if (!has_cluster_kernel() || teams > m_traits.largest_cluster) return false;
  const std::int64_t at_once = std::int64_t(m_traits.multiprocessors) * cluster_teams_resident;
  return m_problem.rows >= ceil_div(at_once, teams) && m_problem.rows <= INT_MAX / teams;
}

/// Teams that hold a row: a power of two, as clusters come, and two at least. Rows that the policy's teams would be too
/// many for have larger ones.
std::int64_t Planner::teams_of_cluster() const {
  const auto teams_of = [&](int team_size) {
    const std::int64_t held = std::int64_t(max_packs_per_thread()) * team_size;
    const auto teams        = static_cast<std::uint64_t>(ceil_div(m_packs, held));
    return std::max<std::int64_t>(2, static_cast<std::int64_t>(std::bit_ceil(teams)));
  };
  const std::int64_t teams = teams_of(clusters().team_size);
  return teams <= m_traits.largest_cluster ? teams : teams_of(cluster_team_size);
}

/// Bytes of a team's part in shared memory: of each tensor that the kernel stages, see `staged_tensors`.
std::size_t Planner::staged_bytes() const {
  const bool is_pair   = row_tensors(m_problem.op) == 2;
  const bool are_alike = !is_pair || bytes_of(m_plan.x_type) == bytes_of(m_plan.dy_type);
  if (is_norm(m_problem.op) || !is_staged(m_problem.x_bytes, m_pack) || !are_alike) return 0;
  constexpr int pack_bytes = 16;
  return static_cast<std::size_t>(ceil_div(m_packs, m_plan.teams_per_row)) * pack_bytes * (is_pair ? 2 : 1);
}

void Planner::row_in_cluster() {
  if (m_traits.largest_cluster == 0) refuse("this device, or this build, has no clusters of teams");
  if (!has_cluster_kernel()) refuse("no kernel is compiled for clusters with rows of this operator, form and type");
  m_plan.packs_per_thread  = max_packs_per_thread();
  const std::int64_t teams = m_request.teams_per_row != 0 ? m_request.teams_per_row : teams_of_cluster();
  if (!std::has_single_bit(static_cast<std::uint64_t>(teams)) || teams < 2 || teams > m_traits.largest_cluster) {
    refuse("a cluster has a power of two of teams, 2 to " + std::to_string(m_traits.largest_cluster) + ", not " +
           std::to_string(teams));
  }
  const std::int64_t packs   = ceil_div(m_packs, teams);
  const std::int64_t threads = round_up(ceil_div(packs, m_plan.packs_per_thread), m_traits.warp_size);
  const std::int64_t team    = m_request.team_size != 0 ? m_request.team_size : threads;
  if (team < threads || team > max_team_size()) {
    refuse("a team of " + std::to_string(m_request.team_size != 0 ? team : max_team_size()) +
           " threads does not hold " + std::to_string(packs * m_pack) + " elements");
  }
  if (m_problem.rows > INT_MAX / teams) refuse("more teams would be needed than a league has");
  m_plan.teams_per_row   = static_cast<int>(teams);
  m_plan.team_size       = static_cast<int>(team);
  m_plan.threads_per_row = m_plan.team_size;
  m_plan.league_size     = m_problem.rows * teams;
  m_plan.scratch_bytes   = staged_bytes();
  runs_by(RowKernel::row_in_cluster, cluster_team_size);
}

}  // namespace KokkosNN::Impl
