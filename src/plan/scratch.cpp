// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "planner.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

// Rows in team scratch, and what strategies need of it besides.

namespace KokkosNN::Impl {

void Planner::refuse_to_keep() const {
  if (is_elementwise(m_problem.op)) refuse("nothing of a row is kept, as each element is read once by itself");
}

void Planner::team_scratch() {
  refuse_to_keep();
  int team_size = m_request.team_size;
  if (team_size == 0) {
    team_size = is_gpu() ? even_team(scratch().packs_per_thread, scratch().team_size) : host_threads_a_row();
  }
  one_row_a_team(team_size);
  runs_rows_of_team(max_threads_per_team);
  set_scratch(row_scratch_bytes(team_size, kept_row_bytes()));
}

/// Threads that share a row on a host: more than one where there are fewer rows than threads, and rows are long.
int Planner::host_threads_a_row() const {
  if (m_is_batch_invariant || m_problem.cols < split_choice().min_cols) return 1;
  const std::int64_t threads = m_traits.multiprocessors / std::max<std::int64_t>(1, m_problem.rows);
  return static_cast<int>(std::clamp<std::int64_t>(threads, 1, m_traits.max_team_size));
}

/// A team of at most `most` threads that takes a row in tiles of k packs a thread: in as few as it can, filled
/// evenly.
int Planner::even_team(int k, int most) const {
  const std::int64_t tiles = ceil_div(m_packs, std::int64_t(k) * most);
  return static_cast<int>(round_up(ceil_div(m_packs, k * tiles), m_traits.warp_size));
}

/// A row in team scratch: in accumulators, or as it is, or two tensors as they are, each up to a 16-byte boundary.
std::size_t Planner::kept_row_bytes() const {
  constexpr std::size_t boundary = 16;
  const std::size_t elements     = std::size_t(m_packs) * std::size_t(m_pack);
  const std::size_t bytes        = elements * std::size_t(m_problem.x_bytes);
  if (keeps_packed_in_scratch(m_traits.backend, m_problem.x_bytes, m_problem.op)) return bytes;
  if (!is_gradient() && held_tensors(m_problem.op) == 1) return elements * std::size_t(m_problem.accumulator_bytes);
  return std::size_t(held_tensors(m_problem.op)) * (bytes + boundary);
}

std::size_t Planner::scratch_limit(int level) const {
  constexpr std::size_t slack = 64;  // for alignment
  return m_traits.scratch[level] > slack ? m_traits.scratch[level] - slack : 0;
}

/// A thread's state of any row; of a cross entropy there are a second sum and a greatest logit, and a norm has moments.
std::size_t Planner::state_bytes() const {
  if (is_norm(m_problem.op)) return norm_state_bytes;
  return std::size_t(most_state_bytes) + (is_cross_entropy(m_problem.op) ? 3 * sizeof(double) : 0);
}

/// Bytes of scratch that the launch asks for: a GPU's kernels have places of their own.
std::size_t Planner::exchange_bytes(int threads) const {
  return is_gpu() ? 0 : std::size_t(exchanged_states(threads)) * state_bytes();
}

/// Scratch of a team that has a row: for its threads' states, or on a host for those of the row's pieces, and for what
/// is kept of the row.
std::size_t Planner::row_scratch_bytes(int threads, std::size_t kept) const {
  const std::size_t bytes = exchange_bytes(threads) + kept;
  if (is_gpu()) return bytes;
  const std::int64_t pieces = ceil_div(m_problem.cols, host_piece(m_problem.accumulator_bytes));
  return std::max(bytes, host_scratch_bytes(pieces, state_bytes(), kept));
}

/// Puts `bytes` of scratch at the lowest level that holds them.
void Planner::set_scratch(std::size_t bytes) {
  m_plan.scratch_bytes = bytes;
  if (bytes <= scratch_limit(0)) return;
  if (bytes > scratch_limit(1)) {
    refuse("it needs " + std::to_string(bytes) + " bytes of team scratch and the device gives " +
           std::to_string(std::max(scratch_limit(0), scratch_limit(1))));
  }
  m_plan.scratch_level = 1;
}

}  // namespace KokkosNN::Impl
