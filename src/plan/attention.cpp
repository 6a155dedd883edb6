// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/call/attention_plan.hpp>
#include <KokkosNN/impl/attention_shapes.hpp>

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string>

// The plan of an attention call.

namespace KokkosNN::Impl {

namespace {

/// A host's threads have blocks of rows in turn, which share the packed keys and values: as many rows as leave each
/// thread some blocks. A row's bits do not depend on it.
void plan_on_host(const AttentionShape& shape, const DeviceTraits& traits, AttentionPlan& plan) {
  constexpr int least_rows = 8, blocks_a_thread = 4;
  const std::int64_t rows = shape.heads * shape.queries / shape.kv_heads;
  const auto blocks       = [&] {
    return shape.batch * shape.kv_heads * ((rows + plan.rows_per_team - 1) / plan.rows_per_team);
  };
  const std::int64_t threads = traits.multiprocessors;
  plan.tile                  = host_attention_tile;
  plan.rows_per_team         = host_attention_rows;
  while (plan.rows_per_team > least_rows && blocks() < blocks_a_thread * threads) plan.rows_per_team /= 2;
  plan.league_size   = std::min(threads, blocks());
  plan.scratch_level = 1;
  plan.scratch       = plan.type == ElementType::f64
                           ? host_attention_scratch<double>(shape.dim, shape.value_dim, plan.rows_per_team)
                           : host_attention_scratch<float>(shape.dim, shape.value_dim, plan.rows_per_team);
}

}  // namespace

AttentionPlan make_attention_plan(ElementType type, const AttentionLayout& layout, const DeviceTraits& traits) {
  constexpr std::int64_t most_teams = std::int64_t(1) << 30;  // a league's size is 32 bits; teams take rows in turn
  const AttentionShape& shape       = layout.shape;
  AttentionPlan plan;
  plan.type = type;
  if (traits.backend == Backend::host) {
    plan_on_host(shape, traits, plan);
    return plan;
  }
  plan.tile        = attention_tile;
  plan.team_size   = attention_team_size;
  plan.league_size = std::min(most_teams, shape.batch * shape.heads * shape.queries);
  plan.scratch     = type == ElementType::f64 ? attention_scratch<double>(shape.dim, shape.value_dim)
                                              : attention_scratch<float>(shape.dim, shape.value_dim);
  return plan;
}

std::string to_string(const char* function, const AttentionPlan& plan) {
  std::ostringstream text;
  text << "KokkosNN::" << function << '[' << to_string(plan.type) << ",k" << plan.tile << ",r" << plan.rows_per_team
       << ",ts" << plan.team_size << ']';
  return text.str();
}

}  // namespace KokkosNN::Impl
