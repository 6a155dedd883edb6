// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/call/mask_layout.hpp>

#include "argument_error.hpp"
#include "broadcast.hpp"
#include "masks.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace KokkosNN::Impl {
namespace {

/// Numbers of columns and diagonals are kept below: sums of a few of them fit.
constexpr std::int64_t far = std::int64_t(1) << 60;

std::int64_t clamped(std::int64_t distance) { return std::clamp(distance, -far, far); }

/// The axes of x by what attention calls them; -1 where x has too few.
struct AxisNames {
  int query;
  int head;

  explicit AxisNames(const Tensor& x) : query(x.rank - 2), head(x.rank - 3) {}
};

/// t with the extents of `want`, which are x's or those of its rows.
Tensor broadcast(const char* function, const char* name, const Tensor& t, const Tensor& want, const Tensor& x) {
  const auto result = broadcast_to(want, t);
  if (!result) {
    (ArgumentError(function) << name << " of extents " << shape_of(t) << " does not broadcast to " << shape_of(want)
                             << "; x is " << shape_of(x))
        .raise();
  }
  return *result;
}

/// x without its columns.
Tensor rows_of(const Tensor& t) {
  Tensor rows = t;
  rows.rank   = t.rank - 1;
  return rows;
}

/// One number for each row that depends on one axis only (-1: on none).
Tensor along(const Tensor& rows, int axis, std::int64_t stride) {
  Tensor result = rows;
  std::fill_n(result.stride, result.rank, std::int64_t(0));
  if (axis >= 0) result.stride[axis] = stride;
  return result;
}

/// A View of one value a head, or of one for all.
Tensor per_head(const char* function, const char* name, const Tensor& t, const Tensor& x) {
  const int head           = AxisNames(x).head;
  const std::int64_t heads = head >= 0 ? x.extent[head] : 1;
  if (t.extent[0] != heads && t.extent[0] != 1) {
    (ArgumentError(function) << name << " must hold one value for each of the " << heads << " heads of x, "
                             << shape_of(x) << ", but holds " << t.extent[0])
        .raise();
  }
  return along(rows_of(x), head, t.extent[0] == 1 ? 0 : t.stride[0]);
}

/// A number a row, or, of rank 1, a number for each index of x's first axis.
Tensor numbers_by_row(const char* function, const char* name, const char* what, const Tensor& t, const Tensor& x) {
  const Tensor rows = rows_of(x);
  if (t.rank != 1 || rows.rank == 1) return broadcast(function, name, t, rows, x);
  if (t.extent[0] != x.extent[0] && t.extent[0] != 1) {
    (ArgumentError(function) << name << " of rank 1 must hold one " << what
                             << " for each index of the first axis of x, " << shape_of(x) << ", but hold "
                             << t.extent[0])
        .raise();
  }
  return along(rows, 0, t.extent[0] == 1 ? 0 : t.stride[0]);
}

/// Where rows, numbered along `order`, find their part of a tensor that has their extents.
RowMap map_of(const Tensor& t, const std::vector<int>& order) {
  std::int64_t extent[max_row_dims] = {};
  std::int64_t stride[max_row_dims] = {};
  int n                             = 0;
  for (const int k : order) {
    if (n > 0 && stride[n - 1] == t.stride[k] * t.extent[k]) {
      extent[n - 1] *= t.extent[k];
      stride[n - 1] = t.stride[k];
    } else {
      extent[n] = t.extent[k];
      stride[n] = t.stride[k];
      ++n;
    }
  }
  return row_map(extent, stride, n);
}

}  // namespace

void validate_numbers(const char* function, const MaskTensors& mask) {
  if (mask.has_window && (mask.left < 0 || mask.right < 0)) {
    (ArgumentError(function) << "SlidingWindow's left and right must not be negative (unbounded is "
                                "SlidingWindow::unbounded), but are "
                             << mask.left << " and " << mask.right)
        .raise();
  }
  if (!(mask.softcap >= 0) || std::isinf(mask.softcap)) {
    (ArgumentError(function) << "softcap must be positive and finite, or 0 for none, but is " << mask.softcap).raise();
  }
}

void refuse_scales(const char* function, const MaskTensors& mask) {
  if (!mask.scales.exists()) return;
  (ArgumentError(function) << "attention takes no RowScales, but the mask has some of extents "
                           << shape_of(mask.scales))
      .raise();
}

void set_diagonals(const MaskTensors& mask, MaskLayout& layout) {
  layout.has_diagonals = mask.is_causal || mask.has_window;
  layout.low           = -far;
  layout.high          = far;
  if (mask.is_causal) layout.high = clamped(mask.causal_offset);
  if (mask.has_window) {
    // An unbounded side stays so wherever the diagonal is.
    const auto reach          = [](std::int64_t columns) { return columns >= far ? 2 * far : columns; };
    const std::int64_t offset = clamped(mask.window_offset);
    layout.low                = clamped(offset - reach(mask.left));
    layout.high               = std::min(layout.high, clamped(offset + reach(mask.right)));
  }
}

void require_sinks(const char* function, bool are_accessible, ElementType type, ElementType x_type) {
  if (!are_accessible) {
    (ArgumentError(function) << "the execution space cannot access the memory of options.sinks").raise();
  }
  if (type != x_type && type != ElementType::f32) {
    (ArgumentError(function) << "options.sinks must hold x's type, " << to_string(x_type) << ", or f32, but hold "
                             << to_string(type))
        .raise();
  }
}

BroadcastMask::BroadcastMask(const char* function, const MaskTensors& mask, const Tensor& x) {
  if (mask.keep.exists()) keep = broadcast(function, "BooleanMask", mask.keep, x, x);
  if (mask.bias.exists()) bias = broadcast(function, "AdditiveBias", mask.bias, x, x);
  if (mask.lengths.exists()) lengths = numbers_by_row(function, "RowLengths", "length", mask.lengths, x);
  if (mask.offsets.exists()) offsets = numbers_by_row(function, "DiagonalOffsets", "offset", mask.offsets, x);
  if (mask.slopes.exists()) slopes = per_head(function, "Alibi", mask.slopes, x);
  if (mask.scales.exists()) scales = numbers_by_row(function, "RowScales", "scale", mask.scales, x);
  if (mask.sinks.exists()) sinks = per_head(function, "options.sinks", mask.sinks, x);
}

void validate_memory(const char* function, const MaskTensors& mask, const Tensor& y) {
  require_apart(function, "BooleanMask", mask.keep, "the output", y, false);
  require_apart(function, "AdditiveBias", mask.bias, "the output", y, false);
  require_apart(function, "RowLengths", mask.lengths, "the output", y, false);
  require_apart(function, "DiagonalOffsets", mask.offsets, "the output", y, false);
  require_apart(function, "Alibi", mask.slopes, "the output", y, false);
  require_apart(function, "RowScales", mask.scales, "the output", y, false);
  require_apart(function, "options.sinks", mask.sinks, "the output", y, false);
}

namespace {

void set_maps(const MaskTensors& mask, const BroadcastMask& views, const Tensor& x, const std::vector<int>& order,
              MaskLayout& layout) {
  set_diagonals(mask, layout);
  layout.query = map_of(along(rows_of(x), AxisNames(x).query, 1), order);
  if (mask.keep.exists()) layout.keep = map_of(views.keep, order);
  if (mask.bias.exists()) layout.bias = map_of(views.bias, order);
  if (mask.lengths.exists()) layout.lengths = map_of(views.lengths, order);
  if (mask.offsets.exists()) layout.offsets = map_of(views.offsets, order);
  if (mask.slopes.exists()) layout.slopes = map_of(views.slopes, order);
  if (mask.scales.exists()) layout.scales = map_of(views.scales, order);
  if (mask.sinks.exists()) layout.sinks = map_of(views.sinks, order);
  layout.keep_col_stride = mask.keep.exists() ? views.keep.stride[x.rank - 1] : 0;
  layout.bias_col_stride = mask.bias.exists() ? views.bias.stride[x.rank - 1] : 0;
}

}  // namespace

MaskedLayout normalise(const char* function, RowOperator op, const Tensors& tensors, const MaskedOptions& options) {
  const MaskTensors& mask = options.mask;
  const Tensor& logits    = mask.x;
  validate_numbers(function, mask);
  const SoftmaxOptions& of_rows = options;
  MaskedLayout layout{normalise(function, op, tensors, of_rows), {}, mask.keep.exists()};
  // The bias and slopes are in a gradient's y already.
  layout.has_element_mask |= is_gradient(op) ? mask.bends_logits() : mask.changes_logits();
  const Tensor& x      = tensors[0];  // or y, of a gradient
  const Tensor& output = tensors[1];
  const BroadcastMask views(function, mask, x);
  if (logits.exists() && !std::equal(x.extent, x.extent + x.rank, logits.extent)) {
    (ArgumentError(function) << "x and y must have the same extents, but x is " << shape_of(logits) << " and y is "
                             << shape_of(x))
        .raise();
  }
  if (!writes(op, layout)) return layout;
  validate_memory(function, mask, output);
  if (logits.exists() && mask.softcap != 0) require_apart(function, "x", logits, "the output", output, false);
  const std::vector<int> order = row_axes(op, tensors);
  set_maps(mask, views, x, order, layout.mask);
  if (logits.exists()) {
    layout.mask.x            = map_of(logits, order);
    layout.mask.x_col_stride = logits.stride[x.rank - 1];
  }
  return layout;
}

RowProblem problem_of(RowOperator op, const MaskedLayout& layout, const Tensors& tensors) {
  const RowsLayout& rows = layout;
  RowProblem problem     = problem_of(op, rows, tensors);
  problem.element_mask   = layout.has_element_mask;
  if (!is_gradient(op) && layout.has_element_mask) problem.x_bytes = problem.accumulator_bytes;
  return problem;
}

MaskSums normalise_mask_sums(const char* function, const Tensor& y, const Tensor& dy, const MaskTensors& mask,
                             const Tensor& result, bool to_heads, MaskSums& whole) {
  validate_numbers(function, mask);
  if (!std::equal(y.extent, y.extent + y.rank, dy.extent)) {
    (ArgumentError(function) << "y and dy must have the same extents, but y is " << shape_of(y) << " and dy is "
                             << shape_of(dy))
        .raise();
  }
  const BroadcastMask views(function, mask, y);
  const char* const name = to_heads ? "dsinks" : "dbias";
  Tensor out             = to_heads ? per_head(function, name, result, y) : broadcast(function, name, result, y, y);
  validate_output(function, result);
  for (const auto& [input, input_name] : {std::pair{&y, "y"}, {&dy, "dy"}}) {
    require_apart(function, input_name, *input, "the output", result, false);
  }
  validate_memory(function, mask, result);

  const Tensor rows = rows_of(y);
  Tensor number     = rows;
  std::int64_t next = 1;
  for (int k = rows.rank - 1; k >= 0; next *= rows.extent[k--]) number.stride[k] = next;
  // An axis that the result has is told from one that is added up by its stride: no element of it is another's.
  std::vector<int> kept, reduced, all;
  for (int k = 0; k < rows.rank; ++k) {
    if (rows.extent[k] == 1) continue;
    (out.stride[k] != 0 ? kept : reduced).push_back(k);
    all.push_back(k);
  }
  MaskLayout diagonals;
  set_diagonals(mask, diagonals);
  const auto sums_over = [&](const std::vector<int>& keeps, const std::vector<int>& reduces) {
    const auto split = [&](const Tensor& t) { return SplitMap{map_of(t, keeps), map_of(t, reduces)}; };
    MaskSums sums;
    for (const int k : keeps) sums.kept *= rows.extent[k];
    for (const int k : reduces) sums.reduced *= rows.extent[k];
    sums.cols          = y.extent[y.rank - 1];
    sums.sums_columns  = to_heads || out.stride[y.rank - 1] == 0;
    sums.has_diagonals = diagonals.has_diagonals;
    sums.low           = diagonals.low;
    sums.high          = diagonals.high;
    sums.y             = split(y);
    sums.dy            = split(dy);
    sums.row           = split(number);
    sums.query         = split(along(rows, AxisNames(y).query, 1));
    if (mask.keep.exists()) sums.keep = split(views.keep);
    if (mask.lengths.exists()) sums.lengths = split(views.lengths);
    if (mask.offsets.exists()) sums.offsets = split(views.offsets);
    sums.result            = map_of(out, keeps);
    sums.y_col_stride      = y.stride[y.rank - 1];
    sums.dy_col_stride     = dy.stride[y.rank - 1];
    sums.keep_col_stride   = mask.keep.exists() ? views.keep.stride[y.rank - 1] : 0;
    sums.result_col_stride = to_heads ? 0 : out.stride[y.rank - 1];
    return sums;
  };
  whole = sums_over(all, {});
  return sums_over(kept, reduced);
}

}  // namespace KokkosNN::Impl
