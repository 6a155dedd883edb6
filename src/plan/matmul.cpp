// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/call/matmul_plan.hpp>
#include <KokkosNN/impl/tensor_map.hpp>

#include "matmul_label.hpp"
#include "policy/matmul.hpp"
#include "rounding.hpp"
#include "tiles.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

// The plan of a matrix product.

namespace KokkosNN::Impl {
namespace {

using T = MatmulTensors;

/// True if chunks of 16 bytes along one axis of an operand, at any place of the other and in any batch, are aligned.
bool has_chunks(const MatmulLayout& layout, int tensor, std::int64_t along, std::int64_t across, ElementType type) {
  bool has = along == 1 && is_at_chunks(layout.data[tensor]) && is_at_chunks(across, type);
  for (int k = 0; k < layout.n; ++k) has = has && is_at_chunks(layout.stride[tensor][k], type);
  const auto& sums = tensor == T::a ? layout.sums.stride_of_a : layout.sums.stride_of_b;
  for (int k = 0; k < layout.sums.n; ++k) has = has && is_at_chunks(sums[k], type);
  return has;
}

/// There is no form of tiles for an a and a b that both are column by column: a is collected element by element then.
MatmulForm form_of(const MatmulLayout& layout) {
  const bool b_along  = layout.row_stride[T::b] == 1 && layout.col_stride[T::b] != 1;
  const bool a_across = layout.row_stride[T::a] == 1 && layout.col_stride[T::a] != 1;
  if (b_along) return MatmulForm::a_along_b_along;
  return a_across ? MatmulForm::a_across_b_across : MatmulForm::a_along_b_across;
}

void plan_on_gpu(const MatmulLayout& layout, const MatmulKernelShape& shape, ElementType type, int group,
                 MatmulPlan& plan) {
  plan.form = form_of(layout);
  if (layout.kind != MatmulRows::own && !is_a_along(plan.form)) plan.form = MatmulForm::a_along_b_across;
  plan.copies_a  = is_a_along(plan.form)
                       ? has_chunks(layout, T::a, layout.col_stride[T::a], layout.row_stride[T::a], type)
                       : has_chunks(layout, T::a, layout.row_stride[T::a], layout.col_stride[T::a], type);
  plan.copies_b  = is_b_along(plan.form)
                       ? has_chunks(layout, T::b, layout.row_stride[T::b], layout.col_stride[T::b], type)
                       : has_chunks(layout, T::b, layout.col_stride[T::b], layout.row_stride[T::b], type);
  plan.rows      = shape.rows;
  plan.cols      = shape.cols;
  plan.group     = group > 0 ? group : matmul_policy.group;
  plan.team_size = shape.team_size;
  plan.scratch   = shape.scratch;
}

void count_tiles(const MatmulLayout& layout, std::int64_t most, MatmulPlan& plan) {
  plan.row_blocks  = ceil_div(layout.rows, plan.rows);
  plan.col_blocks  = ceil_div(layout.cols, plan.cols);
  plan.league_size = std::min(most, layout.batches * plan.row_blocks * plan.col_blocks);
}

// --- Hopper's warpgroups ---

/// An operand's axis along the sums and the other one, and how its tiles lie: in rows along the one or across it.
struct BoxedForm {
  bool is_there  = false;
  bool is_across = false;
};
BoxedForm boxed_form(const MatmulLayout& layout, int tensor, ElementType type) {
  const bool is_a           = tensor == T::a;
  const std::int64_t others = is_a ? layout.rows : layout.cols;
  const std::int64_t along  = is_a ? layout.col_stride[tensor] : layout.row_stride[tensor];
  const std::int64_t across = is_a ? layout.row_stride[tensor] : layout.col_stride[tensor];
  const auto has_boxes      = [&](std::int64_t unit_stride, std::int64_t unit_extent, std::int64_t stride,
                                  std::int64_t extent) {
    const auto is_in_reach = [&](std::int64_t s, std::int64_t n) {
      return s * bytes_of(type) <= most_boxed_stride && n <= most_boxed_extent;
    };
    bool has = has_chunks(layout, tensor, unit_stride, stride, type) && (stride >= unit_extent || extent == 1) &&
               is_in_reach(1, unit_extent) && is_in_reach(stride, extent) && layout.n <= TensorMap::rank - 2;
    for (int k = 0; k < layout.n; ++k) has = has && is_in_reach(layout.stride[tensor][k], layout.extent[k]);
    return has;
  };
  if (has_boxes(along, layout.inner, across, others)) return {true, false};
  return {has_boxes(across, others, along, layout.inner), true};
}

/// True if there is a kernel for warpgroups, whose forms go into the plan. An element's bits depend on the kernel.
bool has_warpgroup_plan(const MatmulLayout& layout, const MatmulKernelShape& shape, ElementType type,
                        const MatmulOptions& options, MatmulPlan& plan) {
  if (!shape.has_warpgroups || options.tuning.tier == MatmulTier::portable || bytes_of(type) != 2 ||
      layout.kind != MatmulRows::own || layout.sums.count() != 1 || layout.inner == 0 || options.tuning.parts > 1 ||
      options.determinism == Determinism::batch_invariant) {
    return false;
  }
  const BoxedForm a = boxed_form(layout, T::a, type), b = boxed_form(layout, T::b, type);
  plan.a_across = a.is_across;
  plan.b_along  = !b.is_across;
  return a.is_there && b.is_there;
}

MatmulPlan plan_on_warpgroups(const MatmulLayout& layout, const DeviceTraits& traits, const MatmulOptions& options,
                              MatmulPlan plan) {
  using Tile            = WarpgroupMatmulTile;
  plan.is_on_warpgroups = true;
  plan.rows             = Tile::rows;
  plan.cols             = Tile::cols;
  plan.group            = options.tuning.group > 0 ? options.tuning.group : matmul_policy.group;
  plan.team_size        = Tile::team_size;
  plan.scratch          = Tile::scratch;
  count_tiles(layout, traits.multiprocessors, plan);
  return plan;
}

/// The share of sums that are c's in those of all teams that run at once, for as many rounds as it takes.
double use_of_device(const MatmulLayout& layout, const MatmulPlan& plan, std::int64_t at_once) {
  const std::int64_t tiles = layout.batches * plan.row_blocks * plan.col_blocks * plan.parts;
  const double of_c        = double(layout.batches) * double(layout.rows) * double(layout.cols) * double(plan.parts);
  return of_c / (double(ceil_div(tiles, at_once) * at_once) * double(plan.rows) * double(plan.cols));
}

/// Replaces the portable kernels' plan where that for warpgroups is faster, or a caller wants it.
void take_warpgroups_if_faster(const MatmulLayout& layout, const MatmulKernelShape& shape, ElementType type,
                               const DeviceTraits& traits, const MatmulOptions& options, MatmulPlan& portable) {
  MatmulPlan plan;
  if (!has_warpgroup_plan(layout, shape, type, options, plan)) return;
  plan                       = plan_on_warpgroups(layout, traits, options, plan);
  const std::int64_t at_once = std::int64_t(traits.multiprocessors) * shape.resident;
  const double use           = use_of_device(layout, plan, traits.multiprocessors);
  const bool is_faster       = use * matmul_policy.rate_of_warpgroups >= use_of_device(layout, portable, at_once);
  if (is_faster || options.tuning.tier == MatmulTier::warpgroups) portable = plan;
}

// --- all GPUs ---

/// Sets the rounds in which batches are added, such that their sums have room, as far as the outermost axis of the
/// batches lets them; each has at least one of its elements.
void set_rounds(const MatmulLayout& layout, std::int64_t bytes_of_c, MatmulPlan& plan) {
  const std::int64_t sums = layout.sums.count();
  plan.parts              = sums * plan.inner_parts;
  if (sums == 1) return;
  const std::int64_t outer   = layout.sums.extent[0];
  const std::int64_t of_each = bytes_of_c * (plan.parts / outer);
  const std::int64_t room    = std::max<std::int64_t>(1, (matmul_policy.most_workspace_of_sums - bytes_of_c) / of_each);
  if (room >= outer) return;
  // No round is empty.
  plan.rounds = ceil_div(outer, ceil_div(outer, ceil_div(outer, room)));
  plan.parts  = ceil_div(outer, plan.rounds) * (plan.parts / outer);
}

/// Splits the summed axis where a GPU has more teams at once than there are tiles of c, and each part is long enough. A
/// caller that wants parts gets them, as many as there are steps for.
void split_on_gpu(const MatmulLayout& layout, const MatmulKernelShape& shape, ElementType type,
                  const DeviceTraits& traits, const MatmulOptions& options, MatmulPlan& plan) {
  const std::int64_t at_once = std::int64_t(traits.multiprocessors) * shape.resident;
  const std::int64_t sums    = layout.sums.count();
  std::int64_t wanted        = std::min(at_once / (plan.league_size * sums), layout.inner / matmul_policy.least_part);
  if (options.determinism == Determinism::batch_invariant) wanted = 1;
  if (options.tuning.parts > 0) wanted = options.tuning.parts;
  const bool has_room = layout.n + layout.sums.n < max_row_dims;
  const bool is_split = wanted > 1 && layout.inner > shape.inner && has_room;
  if (!is_split && sums == 1) return;
  plan.part_inner         = round_up(ceil_div(layout.inner, is_split ? wanted : 1), shape.inner);
  plan.inner_parts        = std::max<std::int64_t>(1, ceil_div(layout.inner, plan.part_inner));
  const std::int64_t of_c = layout.batches * layout.rows * layout.cols;
  set_rounds(layout, of_c * accumulator_bytes_of(type), plan);
  plan.workspace       = static_cast<std::size_t>(of_c * matmul_workspace_matrices(plan) * accumulator_bytes_of(type));
  plan.sum_league_size = std::min(most_teams, ceil_div(of_c, matmul_sum_team));
  plan.league_size     = std::min(most_teams, plan.league_size * plan.parts);
}

/// Neighbouring rows of c, sums of products, that a team has at a time: so many that its tiles are full, but for the
/// last, as long as all teams have some.
void share_sums(const MatmulLayout& layout, std::int64_t teams_at_once, std::int64_t most, MatmulPlan& plan) {
  plan.col_blocks           = ceil_div(layout.cols, plan.cols);
  const std::int64_t sums   = layout.maps.sums;
  const std::int64_t full   = layout.rows / (plan.rows * matmul_policy.tiles_of_sums);
  const std::int64_t enough = std::min(ceil_div(layout.rows, plan.rows), ceil_div(teams_at_once, plan.col_blocks));
  const std::int64_t groups = std::clamp<std::int64_t>(std::max(full, enough), 1, sums);
  plan.sums_per_team        = ceil_div(sums, groups);
  plan.league_size          = std::min(most, ceil_div(sums, plan.sums_per_team) * plan.col_blocks);
}

/// A plan of the kernels that all GPUs have.
void plan_portably(const MatmulLayout& layout, const MatmulKernelShape& shape, ElementType type,
                   const DeviceTraits& traits, const MatmulOptions& options, MatmulPlan& plan) {
  plan_on_gpu(layout, shape, type, options.tuning.group, plan);
  if (layout.kind == MatmulRows::summed) {
    const std::int64_t at_once = std::int64_t(traits.multiprocessors) * matmul_policy.teams_per_multiprocessor;
    return share_sums(layout, at_once, most_teams, plan);
  }
  count_tiles(layout, most_teams, plan);
  if (layout.kind == MatmulRows::own) split_on_gpu(layout, shape, type, traits, options, plan);
}

/// A host's tiles are as large as their packed operands pay for, or smaller so that all threads have some. An element's
/// bits do not depend on it.
void plan_on_host(const MatmulLayout& layout, ElementType type, const DeviceTraits& traits, MatmulPlan& plan) {
  constexpr std::int64_t row_step = host_matmul_row_step, col_step = host_matmul_col_step;
  const std::int64_t wanted    = std::int64_t(matmul_policy.tiles_per_thread) * traits.multiprocessors;
  const bool has_other_threads = traits.multiprocessors > 1;
  plan.rows                    = std::min<std::int64_t>(host_matmul_rows, round_up(layout.rows, row_step));
  plan.cols                    = std::min<std::int64_t>(host_matmul_cols, round_up(layout.cols, col_step));
  plan.part_inner              = host_matmul_part(layout.inner);
  plan.inner_parts             = std::max<std::int64_t>(1, ceil_div(layout.inner, plan.part_inner));
  const std::int64_t parts     = layout.sums.count() * plan.inner_parts;
  const auto tiles             = [&] {
    return layout.batches * ceil_div(layout.rows, plan.rows) * ceil_div(layout.cols, plan.cols);
  };
  const auto has_room = [&] {
    return tiles() * plan.rows * plan.cols * accumulator_bytes_of(type) * parts <= matmul_policy.most_workspace;
  };
  const auto share_tiles = [&] {
    while (has_other_threads && tiles() * plan.parts < wanted) {
      if (plan.cols > matmul_policy.least_cols && plan.cols >= plan.rows) {
        plan.cols = round_up(plan.cols / 2, col_step);
      } else if (plan.rows > matmul_policy.least_rows) {
        plan.rows = round_up(plan.rows / 2, row_step);
      } else {
        break;
      }
    }
  };
  if (has_other_threads && layout.kind == MatmulRows::own && tiles() < wanted && has_room()) plan.parts = parts;
  share_tiles();
  if (plan.parts > 1 && !has_room()) {  // halved tiles that stand out farther
    plan.parts = 1;
    share_tiles();
  }
  plan.scratch_level = 1;
  plan.scratch = static_cast<std::size_t>(host_matmul_scratch(plan.rows, plan.cols) * accumulator_bytes_of(type)) +
                 host_matmul_alignment;
  const std::int64_t tile = plan.rows * plan.cols * accumulator_bytes_of(type);
  if (parts > 1) plan.scratch += static_cast<std::size_t>(tile) + host_matmul_alignment;
  if (layout.kind == MatmulRows::summed) {  // results of a tile, and a row of sums, of any accumulator
    plan.scratch += static_cast<std::size_t>((plan.rows + 1) * plan.cols) * sizeof(double) + host_matmul_alignment;
    return share_sums(layout, wanted, traits.multiprocessors, plan);
  }
  count_tiles(layout, traits.multiprocessors, plan);
  if (plan.parts == 1) return;
  plan.workspace       = static_cast<std::size_t>(tiles() * plan.parts * tile);
  plan.sum_league_size = plan.league_size;
  plan.league_size     = std::min<std::int64_t>(traits.multiprocessors, tiles() * plan.parts);
}

}  // namespace

bool has_few_rows(ElementType type, const MatmulLayout& layout, const MatmulOptions& options) {
  const std::int64_t blocks =
      layout.batches * ceil_div(layout.rows, few_rows_tile_rows) * ceil_div(layout.cols, few_rows_tile_cols);
  const std::int64_t most = type == ElementType::f64 ? matmul_policy.few_rows_of_doubles : matmul_policy.few_rows;
  return layout.rows <= most && layout.batches > 1 && blocks >= matmul_policy.least_blocks_of_few &&
         layout.inner <= matmul_policy.most_inner_of_few && layout.sums.count() == 1 && options.tuning.parts <= 1 &&
         is_a_along(form_of(layout));
}

bool is_faster_than_cublas(ElementType type, const MatmulLayout& layout, const MatmulOptions& options) {
  const std::int64_t wide = matmul_policy.least_cols_of_few;
  return type != ElementType::f16 && type != ElementType::bf16 && has_few_rows(type, layout, options) &&
         layout.rows >= matmul_policy.least_rows_of_few && layout.rows <= few_rows_tile_rows && layout.cols >= wide &&
         layout.inner >= wide;
}

MatmulPlan make_matmul_plan(const char* function, ElementType type, const MatmulOptions& options,
                            const MatmulLayout& layout, const MatmulKernelShape& shape, const DeviceTraits& traits) {
  MatmulPlan plan;
  const bool is_on_host = traits.backend == Backend::host;
  if (is_on_host) {
    plan_on_host(layout, type, traits, plan);
  } else {
    plan_portably(layout, shape, type, traits, options, plan);
    take_warpgroups_if_faster(layout, shape, type, traits, options, plan);
  }
  plan.label     = matmul_label(function, type, options.precision, layout.kind, plan, is_on_host);
  plan.sum_label = std::string("KokkosNN::") + function + "[sum of " + std::to_string(plan.parts) + " parts]";
  return plan;
}

}  // namespace KokkosNN::Impl
