// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/call/quantized_plan.hpp>
#include <KokkosNN/impl/tuned_shapes.hpp>

#include "rounding.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <sstream>
#include <string>

// The plan of a call whose results are quantised.

namespace KokkosNN::Impl {
namespace {

/// Threads of a GPU's team that has several rows, about.
constexpr int threads_of_short_rows = 128;
/// Elements of a host's team, about.
constexpr std::int64_t host_elements = 16384;
/// Teams that every backend can launch; a team takes further rows in turn.
constexpr std::int64_t most_teams = INT32_MAX;

/// Gives a row as many threads as keep all of it, if there are so many: a power of two up to a warp, then warps.
void share_on_gpu(const QuantizedProblem& problem, const DeviceTraits& traits, QuantizedPlan& plan) {
  const std::int64_t packs   = ceil_div(problem.cols, plan.pack);
  const std::int64_t threads = ceil_div(packs, quantized_packs(traits.backend));
  if (threads <= traits.warp_size) {
    plan.threads_per_row = static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(threads)));
    plan.team_size       = std::min(threads_of_short_rows, traits.max_team_size);
    plan.rows_per_team   = plan.team_size / plan.threads_per_row;
    return;
  }
  const std::int64_t most = std::min(quantized_threads, traits.max_team_size);
  plan.threads_per_row    = static_cast<int>(std::min(most, round_up(threads, traits.warp_size)));
  plan.team_size          = plan.threads_per_row;
}

}  // namespace

QuantizedPlan make_quantized_plan(const QuantizedProblem& problem, const DeviceTraits& traits) {
  QuantizedPlan plan;
  plan.type = problem.type;
  plan.pack = row_pack(traits.backend, problem.element_bytes);
  if (traits.backend == Backend::cuda && problem.is_aligned && problem.cols % plan.pack == 0) {
    plan.form = RowForm::aligned;
  }
  if (traits.backend == Backend::host) {
    const std::int64_t each = std::clamp<std::int64_t>(host_elements / problem.cols, 1, problem.rows);
    plan.rows_per_team      = static_cast<int>(each);
  } else {
    share_on_gpu(problem, traits, plan);
  }
  plan.league_size = std::min(most_teams, ceil_div(problem.rows, plan.rows_per_team));
  return plan;
}

std::string to_string(const char* function, const QuantizedPlan& plan, bool is_float8) {
  std::ostringstream text;
  text << "KokkosNN::" << function << '[' << to_string(plan.type) << '>' << (is_float8 ? "float8" : "int8")
       << (plan.form == RowForm::aligned ? ",aligned" : "") << ",v" << plan.pack << ",l" << plan.threads_per_row
       << ",ts" << plan.team_size << ']';
  return text.str();
}

}  // namespace KokkosNN::Impl
