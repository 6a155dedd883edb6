// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/call/attention_plan.hpp>
#include <KokkosNN/impl/attention_shapes.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

// The plan of an attention call.

namespace KokkosNN::Impl {

namespace {

/// A league's size is 32 bits.
constexpr std::int64_t most_teams = std::int64_t(1) << 30;

/// A GPU's teams take rows in turn.
void give_rows(std::int64_t rows, AttentionPlan& plan) {
  plan.tile        = attention_tile;
  plan.team_size   = attention_team_size;
  plan.league_size = std::min(most_teams, rows);
}

/// A host's threads have blocks of rows in turn, which share the packed tiles: as many rows as leave each thread some
/// blocks. A row's bits do not depend on it.
void cut_blocks(std::int64_t heads, std::int64_t rows, const DeviceTraits& traits, AttentionPlan& plan) {
  constexpr int least_rows = 8, blocks_a_thread = 4;
  const std::int64_t threads = traits.multiprocessors;
  const auto blocks          = [&] { return heads * ((rows + plan.rows_per_team - 1) / plan.rows_per_team); };
  plan.tile                  = host_attention_tile;
  plan.rows_per_team         = host_attention_rows;
  while (plan.rows_per_team > least_rows && blocks() < blocks_a_thread * threads) plan.rows_per_team /= 2;
  plan.league_size   = std::min(threads, blocks());
  plan.scratch_level = 1;
}

std::size_t bytes_of(ElementType type, std::int64_t elements) {
  return static_cast<std::size_t>(elements) * (type == ElementType::f64 ? sizeof(double) : sizeof(float));
}

}  // namespace

AttentionPlan make_attention_plan(ElementType type, const AttentionLayout& layout, const DeviceTraits& traits) {
  const AttentionShape& shape = layout.shape;
  AttentionPlan plan;
  plan.type = type;
  if (traits.backend == Backend::host) {
    cut_blocks(shape.batch * shape.kv_heads, shape.group() * shape.queries, traits, plan);
    plan.scratch = bytes_of(type, host_attention_scratch(shape.dim, shape.value_dim, plan.rows_per_team));
  } else {
    give_rows(shape.batch * shape.heads * shape.queries, plan);
    plan.scratch = bytes_of(type, attention_scratch(shape.dim, shape.value_dim));
  }
  return plan;
}

AttentionPlan make_attention_gradient_plan(ElementType type, const AttentionShape& shape, bool of_keys,
                                           const DeviceTraits& traits) {
  const std::int64_t heads = shape.batch * shape.kv_heads;
  const std::int64_t rows  = of_keys ? shape.keys : shape.group() * shape.queries;  // of a head of k
  AttentionPlan plan;
  plan.type = type;
  if (traits.backend == Backend::host) {
    cut_blocks(heads, rows, traits, plan);
    plan.scratch = bytes_of(type, host_attention_gradients_scratch(shape.dim, shape.value_dim, plan.rows_per_team));
  } else {
    give_rows(heads * rows, plan);
    plan.scratch = bytes_of(type, attention_gradients_scratch(shape.dim, shape.value_dim, of_keys));
  }
  return plan;
}

std::string to_string(const char* function, const AttentionPlan& plan) {
  std::ostringstream text;
  text << "KokkosNN::" << function << '[' << to_string(plan.type) << ",k" << plan.tile << ",r" << plan.rows_per_team
       << ",ts" << plan.team_size << ']';
  return text.str();
}

}  // namespace KokkosNN::Impl
