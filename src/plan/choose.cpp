// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "planner.hpp"

#include <algorithm>
#include <cstddef>

// Which strategy serves rows, where the caller leaves that to the planner.

namespace KokkosNN::Impl {

RowStrategy Planner::choose() const {
  if (prefers_inner_lanes()) return RowStrategy::inner_lanes;
  return is_gpu() ? choose_on_gpu() : choose_on_host();
}

/// Neighbouring rows are neighbours in memory, neighbouring columns are not. Another order of additions than where a
/// row lies alone, so not with batch invariance.
bool Planner::prefers_inner_lanes() const {
  return !m_is_batch_invariant && !is_masked(m_problem.op) && m_problem.x_col_stride != 1 &&
         m_problem.inner_contiguous && m_problem.inner > 1;
}

RowStrategy Planner::choose_on_gpu() const {
  if (prefers_clusters()) return RowStrategy::row_in_cluster;
  if (has_few_rows() && m_packs > split_choice().few_rows_packs) return RowStrategy::split_row;
  if (reduces_long_rows()) return RowStrategy::team_online;
  if (register_entry() == nullptr) {
    const bool is_read_twice = m_problem.cols < split_choice().min_cols && has_online_kernel();
    return is_read_twice ? RowStrategy::team_online : RowStrategy::split_row;
  }
  if (has_edges() && m_packs > split_choice().edges_max_packs) return RowStrategy::split_row;
  if (needed_lanes(held_packs()) <= m_traits.warp_size) return RowStrategy::vector_lanes;
  return is_elementwise(m_problem.op) ? RowStrategy::team_online : RowStrategy::team_registers;
}

/// Operators that only read a row have no second read to save: a small team that loops over it has loads in flight all
/// the time. Where there are fewer rows than multiprocessors that is not enough.
bool Planner::reduces_long_rows() const {
  return is_gpu() && is_reduction(m_problem.op) && m_packs >= reduction().online_packs && !has_few_rows();
}

RowStrategy Planner::choose_on_host() const {
  if (register_entry() != nullptr) return RowStrategy::vector_lanes;
  const std::size_t shares = scratch().max_row_bytes * std::size_t(host_threads_a_row());
  const bool is_on_chip    = !is_elementwise(m_problem.op) && kept_row_bytes() <= std::min(shares, scratch_limit(1));
  return is_on_chip ? RowStrategy::team_scratch : RowStrategy::team_online;
}

}  // namespace KokkosNN::Impl
