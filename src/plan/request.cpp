// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "planner.hpp"

#include <string>

// Requests of a caller: sizes that can be, and a plan that has them.

namespace KokkosNN::Impl {

void Planner::validate_request() {
  m_plan.strategy = m_request.strategy;
  if (m_request.team_size < 0 || m_request.threads_per_row < 0 || m_request.packs_per_thread < 0 ||
      m_request.teams_per_row < 0 || m_request.launches < 0) {
    refuse("a size in options.plan is negative");
  }
  if (m_request.launches > 2) refuse("launches must be 1 or 2, but is " + std::to_string(m_request.launches));
  if (m_request.team_size > max_team_size()) {
    refuse("team_size " + std::to_string(m_request.team_size) + " is more than the " + std::to_string(max_team_size()) +
           " threads that a team may have");
  }
  if (m_request.team_size % m_traits.warp_size != 0) {
    refuse("team_size " + std::to_string(m_request.team_size) + " is no multiple of the " +
           std::to_string(m_traits.warp_size) + " lanes of a warp");
  }
  validate_packs();
}

void Planner::validate_packs() const {
  const int k = m_request.packs_per_thread;
  if (k == 0 || is_packs_per_thread(k)) return;
  std::string sizes;
  for (int size = 1; size <= 2 * max_packs_per_thread(); ++size) {
    if (is_packs_per_thread(size)) sizes += " " + std::to_string(size);
  }
  refuse("packs_per_thread " + std::to_string(k) + " is none of those that there are:" + sizes);
}

/// Sizes that were asked for must be the plan's.
void Planner::validate_plan() const {
  const auto require = [&](const char* name, int asked, int planned) {
    if (asked != 0 && asked != planned) {
      refuse(std::string(name) + " " + std::to_string(asked) + " was asked for, and it runs with " +
             std::to_string(planned));
    }
  };
  require("packs_per_thread", m_request.packs_per_thread, m_plan.packs_per_thread);
  require("threads_per_row", m_request.threads_per_row, m_plan.threads_per_row);
  require("team_size", m_request.team_size, m_plan.team_size);
  require("teams_per_row", m_request.teams_per_row, m_plan.teams_per_row);
  require("launches", m_request.launches, m_plan.launches());
  if (!has_kernel(m_plan, kernel_types())) refuse("no kernel is compiled for " + to_string(m_plan));
}

}  // namespace KokkosNN::Impl
