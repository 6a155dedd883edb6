// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/call/attention_plan.hpp>
#include <KokkosNN/impl/attention_shapes.hpp>

#include <KokkosNN/impl/tensor_map.hpp>

#include "policy/attention.hpp"
#include "rounding.hpp"
#include "tiles.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

// The plan of an attention call.

namespace KokkosNN::Impl {

namespace {

/// A GPU's teams take rows in turn.
void give_rows(const AttentionShape& shape, bool of_keys, AttentionPlan& plan) {
  plan.tile        = attention_tile;
  plan.team_size   = attention_team_size;
  plan.league_size = std::min(most_teams, shape.parts * shape.block_heads() * shape.blocks(of_keys, 1));
}

/// A host's threads have blocks of rows in turn, which share the packed tiles: as many rows as leave each thread some
/// blocks. A row's bits do not depend on it.
void cut_blocks(const AttentionShape& shape, bool of_keys, const DeviceTraits& traits, AttentionPlan& plan) {
  constexpr int least_rows = 8, blocks_a_thread = 4;
  const std::int64_t threads = traits.multiprocessors;
  const auto blocks  = [&] { return shape.parts * shape.block_heads() * shape.blocks(of_keys, plan.rows_per_team); };
  plan.tile          = host_attention_tile;
  plan.rows_per_team = host_attention_rows;
  while (plan.rows_per_team > least_rows && blocks() < blocks_a_thread * threads) plan.rows_per_team /= 2;
  plan.league_size   = std::min(threads, blocks());
  plan.scratch_level = 1;
}

std::size_t scratch_of(ElementType type, std::int64_t elements) {
  return static_cast<std::size_t>(elements * accumulator_bytes_of(type));
}

/// True if chunks of 16 bytes of every row of a tensor are aligned.
bool has_chunks(const Tensor& t, const AttentionStrides& strides, ElementType type) {
  return is_at_chunks(t.data) && (strides.dim == 1 || t.extent[3] == 1) && is_at_chunks(strides.batch, type) &&
         is_at_chunks(strides.head, type) && is_at_chunks(strides.sequence, type);
}

bool serves(const AttentionKernelShape& kernel, const DeviceTraits& traits) {
  return kernel.rows > 0 && kernel.scratch <= std::max(traits.scratch[0], traits.large_scratch);
}

void cut_tiles(bool of_keys, const AttentionTensors& tensors, const AttentionLayout& layout,
               const AttentionKernelShape& kernel, AttentionPlan& plan) {
  plan.in_tiles               = true;
  plan.tile                   = kernel.keys;
  plan.rows_per_team          = kernel.rows;
  plan.team_size              = kernel.team_size;
  plan.scratch                = kernel.scratch;
  const AttentionShape& shape = layout.shape;
  plan.league_size = std::min(most_teams, shape.parts * shape.block_heads() * shape.blocks(of_keys, kernel.rows));
  plan.copies_q    = has_chunks(tensors.q, layout.q, plan.type);
  plan.copies_k    = has_chunks(tensors.k, layout.k, plan.type);
  plan.copies_v    = has_chunks(tensors.v, layout.v, plan.type);
}

// --- Hopper's warpgroups ---

/// True if a tensor whose heads have `dim` elements has a map: copies of boxes reach all of it.
bool has_boxes(const Tensor& t, const AttentionStrides& strides, std::int64_t dim, ElementType type) {
  const auto is_in_reach = [&](std::int64_t stride) {
    return stride >= 0 && stride * bytes_of(type) <= most_boxed_stride;
  };
  return has_chunks(t, strides, type) && strides.sequence >= dim && is_in_reach(strides.batch) &&
         is_in_reach(strides.head) && is_in_reach(strides.sequence);
}
bool have_boxes(const AttentionTensors& tensors, const AttentionLayout& layout, ElementType type) {
  const AttentionShape& shape = layout.shape;
  const auto extents          = {shape.batch, shape.heads, shape.queries, shape.keys};
  return std::min(extents) > 0 && std::max(extents) <= most_boxed_extent &&
         has_boxes(tensors.q, layout.q, shape.dim, type) && has_boxes(tensors.k, layout.k, shape.dim, type) &&
         has_boxes(tensors.v, layout.v, shape.value_dim, type);
}

/// Heads that come side by side, `blocks` blocks of each: as many as read what fits in the policy's share of a cache,
/// but at least so many that each team has two blocks. Heads of q that share one of k stay together.
std::int64_t heads_of_bundle(const AttentionShape& shape, ElementType type, bool of_keys, std::int64_t blocks,
                             std::int64_t teams) {
  const std::int64_t unit  = of_keys ? 1 : shape.group();
  const std::int64_t rows  = of_keys ? shape.group() * shape.queries : shape.keys;
  const std::int64_t bytes = std::max<std::int64_t>(1, rows * (shape.dim + shape.value_dim) * bytes_of(type));
  const std::int64_t units = std::max(attention_policy.bundle_bytes / bytes, ceil_div(2 * teams, blocks * unit));
  return std::max<std::int64_t>(1, units) * unit;
}

/// True if rows of a tensor are whole units of eight elements.
bool has_units(const Tensor& t, const AttentionStrides& strides, std::int64_t dim, ElementType type) {
  return has_chunks(t, strides, type) && strides.dim == 1 && dim % 8 == 0;
}

/// True if there are kernels on warpgroups for a call, which a kernel of theirs for its dims may serve.
bool suits_warpgroups(ElementType type, const AttentionTensors& tensors, const AttentionLayout& layout,
                      const AttentionCallOptions& options) {
  const AttentionShape& shape = layout.shape;
  if (options.tier == MatmulTier::portable || shape.parts > 1 || options.dropout.probability != 0 ||
      !have_boxes(tensors, layout, type)) {
    return false;
  }
  const std::int64_t batch = std::max<std::int64_t>(1, shape.batch);
  return options.tier == MatmulTier::warpgroups ||
         (shape.is_packed ? shape.queries / batch : shape.queries) >= attention_policy.warpgroup_queries;
}

/// Fills in the plan of a kernel whose teams take blocks of keys, or of rows of scores.
void take_warpgroups(const AttentionShape& shape, const AttentionKernelShape& kernel, bool of_keys,
                     const DeviceTraits& traits, AttentionPlan& plan) {
  const std::int64_t heads  = of_keys ? shape.block_heads() : shape.is_packed ? shape.heads : shape.batch * shape.heads;
  const std::int64_t all    = of_keys ? heads * shape.blocks(true, kernel.rows) : shape.head_blocks(kernel.rows);
  const std::int64_t blocks = std::max<std::int64_t>(1, all / std::max<std::int64_t>(1, heads));
  plan.is_on_warpgroups     = true;
  plan.tile                 = kernel.keys;
  plan.rows_per_team        = kernel.rows;
  plan.team_size            = kernel.team_size;
  plan.scratch              = kernel.scratch;
  plan.league_size          = std::min<std::int64_t>(traits.multiprocessors, all);
  plan.bundle               = heads_of_bundle(shape, plan.type, of_keys, blocks, plan.league_size);
}

}  // namespace

void cut_keys(AttentionShape& shape) {
  const AttentionPolicy& policy = attention_policy;
  if (shape.is_packed || shape.rows(false) > policy.split_rows || shape.keys < policy.split_keys) return;
  shape.part_keys = policy.part_keys;
  shape.parts     = ceil_div(shape.keys, shape.part_keys);
}

AttentionPlan make_attention_plan(ElementType type, Precision precision, const AttentionTensors& tensors,
                                  const AttentionLayout& layout, const AttentionKernelShape& kernel,
                                  const DeviceTraits& traits) {
  const AttentionShape& shape = layout.shape;
  AttentionPlan plan;
  plan.type = type;
  if (traits.backend == Backend::host) {
    cut_blocks(shape, false, traits, plan);
    plan.scratch = scratch_of(type, host_attention_scratch(shape.dim, shape.value_dim, plan.rows_per_team));
  } else if (serves(kernel, traits)) {
    plan.precision = precision;
    cut_tiles(false, tensors, layout, kernel, plan);
  } else {
    give_rows(shape, false, plan);
    plan.scratch = scratch_of(type, attention_scratch(shape.dim, shape.value_dim));
  }
  return plan;
}

AttentionPlan make_warpgroup_attention_plan(ElementType type, const AttentionTensors& tensors,
                                            const AttentionLayout& layout, const AttentionCallOptions& options,
                                            const AttentionKernelShape& kernel, const DeviceTraits& traits) {
  AttentionPlan plan;
  plan.type = type;
  if (!serves(kernel, traits) || !suits_warpgroups(type, tensors, layout, options)) return plan;
  take_warpgroups(layout.shape, kernel, false, traits, plan);
  plan.writes_units = has_units(tensors.o, layout.o, layout.shape.value_dim, type);
  return plan;
}

AttentionPlan make_warpgroup_gradient_plan(ElementType type, const AttentionGradientTensors& tensors,
                                           const AttentionGradientLayout& layout, const AttentionCallOptions& options,
                                           bool of_keys, const AttentionKernelShape& kernel,
                                           const DeviceTraits& traits) {
  const AttentionTensors& of_forward = tensors.forward;
  const AttentionShape& shape        = layout.forward.shape;
  AttentionPlan plan;
  plan.type = type;
  if (!serves(kernel, traits) || !suits_warpgroups(type, of_forward, layout.forward, options) ||
      !has_boxes(tensors.dout, layout.dout, shape.value_dim, type) ||
      !has_units(tensors.dout, layout.dout, shape.value_dim, type) ||
      !has_units(of_forward.o, layout.forward.o, shape.value_dim, type)) {
    return plan;
  }
  take_warpgroups(shape, kernel, of_keys, traits, plan);
  const auto writes_units = [&](const Tensor& t, const AttentionStrides& strides, std::int64_t dim) {
    return has_units(t, strides, dim, type);
  };
  plan.writes_units =
      of_keys ? writes_units(tensors.dk, layout.dk, shape.dim) && writes_units(tensors.dv, layout.dv, shape.value_dim)
              : writes_units(tensors.dq, layout.dq, shape.dim);
  return plan;
}

AttentionPlan make_attention_gradient_plan(ElementType type, const AttentionGradientTensors& tensors,
                                           const AttentionGradientLayout& layout, bool of_keys,
                                           const AttentionKernelShape& kernel, const DeviceTraits& traits) {
  const AttentionShape& shape = layout.forward.shape;
  AttentionPlan plan;
  plan.type = type;
  if (traits.backend == Backend::host) {
    cut_blocks(shape, of_keys, traits, plan);
    plan.scratch = scratch_of(type, host_attention_gradients_scratch(shape.dim, shape.value_dim, plan.rows_per_team));
  } else if (serves(kernel, traits)) {
    cut_tiles(of_keys, tensors.forward, layout.forward, kernel, plan);
    plan.copies_dout = has_chunks(tensors.dout, layout.dout, type);
  } else {
    give_rows(shape, of_keys, plan);
    plan.scratch = scratch_of(type, attention_gradients_scratch(shape.dim, shape.value_dim, of_keys));
  }
  return plan;
}

AttentionPlan make_attention_merge_plan(ElementType type, const AttentionMergeShape& shape,
                                        const DeviceTraits& traits) {
  const bool on_host       = traits.backend == Backend::host;
  const int width          = on_host ? host_attention_merge_width : attention_merge_width;
  const std::int64_t items = shape.batch * shape.heads * shape.queries * ceil_div(shape.dim, width);
  AttentionPlan plan;
  plan.type      = type;
  plan.tile      = width;
  plan.team_size = on_host ? 1 : attention_team_size;
  plan.league_size =
      std::min<std::int64_t>(on_host ? traits.multiprocessors : most_teams, ceil_div(items, plan.team_size));
  if (!on_host && shape.parts >= attention_policy.merge_parts) {
    plan.merges_in_team = true;
    plan.league_size    = std::min<std::int64_t>(most_teams, shape.batch * shape.heads * shape.queries);
    plan.scratch        = scratch_of(type, attention_team_size * attention_merge_width);
  }
  return plan;
}

std::string to_string(const char* function, const AttentionPlan& plan) {
  std::ostringstream text;
  text << "KokkosNN::" << function << '[' << (plan.is_on_warpgroups ? "warpgroups," : "") << to_string(plan.type)
       << suffix_of(plan.precision) << ",k" << plan.tile << ",r" << plan.rows_per_team;
  if (plan.in_tiles) text << ",c" << plan.copies_q << plan.copies_k << plan.copies_v;
  if (plan.copies_dout) text << 1;
  text << ",ts" << plan.team_size << ']';
  return text.str();
}

}  // namespace KokkosNN::Impl
