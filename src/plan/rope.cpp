// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/call/rope_plan.hpp>
#include <KokkosNN/impl/tuned_shapes.hpp>

#include "policy/rope.hpp"
#include "rounding.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>

// The plan of a rotary embedding.

namespace KokkosNN::Impl {
namespace {

const char* name_of(RopeForm form) { return form == RopeForm::interleaved ? "interleaved" : "half_rotated"; }

/// Neighbouring positions are nearer to each other in memory than the elements of a row.
bool has_positions_side_by_side(const RopeLayout& layout) {
  const auto nearer = [](std::int64_t a, std::int64_t b) { return a != 0 && std::llabs(a) < std::llabs(b); };
  return layout.inner.extent > 1 && nearer(layout.inner.x_stride, layout.x_dim_stride) &&
         nearer(layout.inner.y_stride, layout.y_dim_stride);
}

/// Threads that a row takes on a GPU: of its pairs, and of what is copied behind them.
std::int64_t threads_of_row(const RopeLayout& layout, int pack) {
  const std::int64_t rest = layout.is_in_place ? 0 : layout.dim - 2 * layout.pairs;
  return layout.pairs / pack + ceil_div(rest, 2 * pack);
}

void plan_on_gpu(const RopeLayout& layout, const DeviceTraits& traits, int element_bytes, RopePlan& plan) {
  const RopePolicy& policy = rope_policy;
  plan.pack                = plan.moves_packs ? 16 / element_bytes : 1;
  const std::int64_t heads = layout.heads.extent, positions = layout.positions();
  const std::int64_t row = std::max<std::int64_t>(1, threads_of_row(layout, plan.pack));
  std::int64_t each      = plan.has_tables ? policy.heads_a_thread : policy.heads_a_thread_computed;
  const auto teams       = [&] { return positions * ceil_div(heads, each) * row / rope_team_size; };
  while (each > 1 && teams() < std::int64_t(policy.least_teams) * traits.multiprocessors) each /= 2;

  const std::int64_t beside  = std::clamp<std::int64_t>(rope_team_size / row, 1, ceil_div(heads, each));
  plan.heads_side_by_side    = static_cast<int>(beside);
  plan.heads_per_team        = std::min(heads, beside * each);
  const std::int64_t threads = row * beside;
  plan.positions_per_team =
      plan.positions_first ? policy.side_by_side : std::max<std::int64_t>(1, rope_team_size / threads);
  plan.positions_per_team   = std::min(plan.positions_per_team, positions);
  const std::int64_t wanted = std::min<std::int64_t>(rope_team_size, plan.positions_per_team * threads);
  plan.team_size            = static_cast<int>(ceil_div(wanted, traits.warp_size)) * traits.warp_size;
}

void plan_on_host(const RopeLayout& layout, const DeviceTraits& traits, int element_bytes, RopePlan& plan) {
  const RopePolicy& policy     = rope_policy;
  const std::int64_t positions = layout.positions();
  const std::int64_t turns     = std::int64_t(policy.host_turns) * traits.multiprocessors;
  const std::int64_t row       = std::max<std::int64_t>(1, layout.dim);
  const auto share             = [&](std::int64_t all, std::int64_t each) {
    return std::clamp<std::int64_t>(policy.host_elements / std::max<std::int64_t>(1, each), 1, all);
  };
  plan.positions_per_team = std::min(share(positions, layout.heads.extent * row), ceil_div(positions, turns));
  plan.heads_per_team     = layout.heads.extent;
  if (positions < turns) plan.heads_per_team = share(layout.heads.extent, row);
  const double bytes      = 2.0 * static_cast<double>(layout.elements()) * element_bytes;
  plan.nontemporal_stores = plan.moves_packs && layout.has_lines && !layout.is_in_place && traits.cache > 0 &&
                            bytes >= static_cast<double>(traits.cache);
}

/// Shares the rows of an RMSNorm with a rotary embedding: a row has as many threads as keep it, up to a team.
void share_on_gpu(const RopeLayout& layout, const DeviceTraits& traits, RmsNormRopePlan& plan) {
  const RopePolicy& policy = rope_policy;
  const std::int64_t rest  = layout.dim - 2 * layout.pairs;
  const std::int64_t units = ceil_div(layout.pairs, plan.pack) + ceil_div(rest, 2 * plan.pack);
  const bool is_short      = units <= traits.warp_size;
  plan.threads_per_row =
      is_short ? static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(units)))
               : static_cast<int>(std::min<std::int64_t>(rope_team_size, round_up(units, traits.warp_size)));
  plan.team_size       = is_short ? rope_team_size : plan.threads_per_row;
  plan.groups_per_team = plan.team_size / plan.threads_per_row;

  const std::int64_t heads = layout.heads.extent;
  std::int64_t each        = plan.has_tables ? policy.heads_a_thread : policy.heads_a_thread_computed;
  const auto teams         = [&] { return layout.positions() * ceil_div(heads, each) / plan.groups_per_team; };
  while (each > 1 && teams() < std::int64_t(policy.least_teams) * traits.multiprocessors) each /= 2;
  plan.heads_per_group = static_cast<int>(std::min(each, heads));
}

/// Shares them among a host's threads, a position's heads to one of them.
void share_on_host(const RopeLayout& layout, RmsNormRopePlan& plan) {
  constexpr std::int64_t most_heads = 1024;
  const std::int64_t each           = std::min(layout.heads.extent, most_heads);
  const std::int64_t groups         = rope_policy.host_elements / 4 / std::max<std::int64_t>(1, each * layout.dim);
  plan.heads_per_group              = static_cast<int>(each);
  plan.groups_per_team              = static_cast<int>(std::clamp<std::int64_t>(groups, 1, layout.positions()));
}

}  // namespace

RmsNormRopePlan make_rms_norm_rope_plan(const RopeProblem& problem, const RopeLayout& layout, bool has_aligned_weights,
                                        const DeviceTraits& traits) {
  constexpr std::int64_t most_teams = INT32_MAX;  // a team takes further groups in turn
  RmsNormRopePlan plan;
  plan.type           = problem.type;
  plan.form           = problem.form;
  plan.has_tables     = problem.has_tables;
  plan.pack           = row_pack(traits.backend, problem.element_bytes);
  const bool is_whole = layout.has_packs && (layout.dim - 2 * layout.pairs) % (2 * plan.pack) == 0;
  if (traits.backend == Backend::cuda && is_whole && has_aligned_weights) plan.rows = RowForm::aligned;
  traits.backend == Backend::host ? share_on_host(layout, plan) : share_on_gpu(layout, traits, plan);
  plan.head_parts  = ceil_div(layout.heads.extent, plan.heads_per_group);
  plan.league_size = std::min(most_teams, ceil_div(layout.positions() * plan.head_parts, plan.groups_per_team));
  return plan;
}

std::string to_string(const char* function, const RmsNormRopePlan& plan) {
  std::ostringstream text;
  text << "KokkosNN::" << function << '[' << to_string(plan.type) << (plan.rows == RowForm::aligned ? ",aligned," : ",")
       << name_of(plan.form) << ',' << (plan.has_tables ? "tables" : "angles") << ",v" << plan.pack << ",l"
       << plan.threads_per_row << ",h" << plan.heads_per_group << ",ts" << plan.team_size << ']';
  return text.str();
}

RopePlan make_rope_plan(const RopeProblem& problem, const RopeLayout& layout, const DeviceTraits& traits) {
  const bool is_on_host = traits.backend == Backend::host;
  RopePlan plan;
  plan.type            = problem.type;
  plan.form            = problem.form;
  plan.has_tables      = problem.has_tables;
  plan.moves_packs     = is_on_host ? layout.x_dim_stride == 1 && layout.y_dim_stride == 1 : layout.has_packs;
  plan.positions_first = !plan.moves_packs && has_positions_side_by_side(layout);
  if (is_on_host) {
    plan_on_host(layout, traits, problem.element_bytes, plan);
  } else {
    plan_on_gpu(layout, traits, problem.element_bytes, plan);
  }
  plan.head_parts  = ceil_div(layout.heads.extent, plan.heads_per_team);
  plan.league_size = ceil_div(layout.positions(), plan.positions_per_team) * plan.head_parts;
  return plan;
}

std::string to_string(const char* function, const RopePlan& plan) {
  std::ostringstream text;
  text << "KokkosNN::" << function << '[' << to_string(plan.type) << ',' << name_of(plan.form) << ','
       << (plan.has_tables ? "tables" : "angles") << ',' << (plan.moves_packs ? "packs" : "strided") << ",v"
       << plan.pack << ",p" << plan.positions_per_team << ",h" << plan.heads_per_team << ",ts" << plan.team_size << ']';
  return text.str();
}

}  // namespace KokkosNN::Impl
