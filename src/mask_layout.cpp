// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/mask_layout.hpp>

#include "complaint.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
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

/// t with the extents of `want`: its axes line up with the last ones, extent 1 and axes that it lacks get stride 0.
Tensor broadcast(const char* function, const char* name, const Tensor& t, const Tensor& want, const Tensor& x) {
  Tensor result        = want;
  result.data          = t.data;
  result.element_bytes = t.element_bytes;
  const int missing    = want.rank - t.rank;
  bool fits            = missing >= 0;
  for (int k = 0; fits && k < want.rank; ++k) {
    const std::int64_t extent = k < missing ? 1 : t.extent[k - missing];
    fits                      = extent == 1 || extent == want.extent[k];
    result.stride[k]          = extent == 1 ? 0 : t.stride[k - missing];
  }
  if (!fits) {
    (Complaint(function) << name << " of extents " << shape_of(t) << " does not broadcast to " << shape_of(want)
                         << "; x is " << shape_of(x))
        .raise();
  }
  return result;
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
    (Complaint(function) << name << " must hold one value for each of the " << heads << " heads of x, " << shape_of(x)
                         << ", but holds " << t.extent[0])
        .raise();
  }
  return along(rows_of(x), head, t.extent[0] == 1 ? 0 : t.stride[0]);
}

/// A length a row, or, of rank 1, a length for each index of x's first axis.
Tensor lengths_by_row(const char* function, const Tensor& t, const Tensor& x) {
  const Tensor rows = rows_of(x);
  if (t.rank != 1 || rows.rank == 1) return broadcast(function, "RowLengths", t, rows, x);
  if (t.extent[0] != x.extent[0] && t.extent[0] != 1) {
    (Complaint(function) << "RowLengths of rank 1 must hold one length for each index of the first axis of x, "
                         << shape_of(x) << ", but hold " << t.extent[0])
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

void validate_numbers(const char* function, const MaskTensors& mask) {
  if (mask.has_window && (mask.left < 0 || mask.right < 0)) {
    (Complaint(function) << "SlidingWindow's left and right must not be negative (unbounded is "
                            "SlidingWindow::unbounded), but are "
                         << mask.left << " and " << mask.right)
        .raise();
  }
  if (!(mask.softcap >= 0) || std::isinf(mask.softcap)) {
    (Complaint(function) << "softcap must be positive and finite, or 0 for none, but is " << mask.softcap).raise();
  }
}

void validate_apart_from_output(const char* function, const char* name, const MaskTensor& t, const Tensor& y) {
  if (!t.is_given || !overlaps(t, y)) return;
  (Complaint(function) << name << " at " << t.data << ", extents " << shape_of(t) << ", and the output at " << y.data
                       << ", extents " << shape_of(y) << ", overlap")
      .raise();
}

/// Causal masks and windows as a band of diagonals.
void set_diagonals(const MaskTensors& mask, MaskLayout& layout) {
  layout.has_diagonals = mask.is_causal || mask.has_window;
  layout.low           = -far;
  layout.high          = far;
  if (mask.is_causal) layout.high = clamped(mask.causal_offset);
  if (mask.has_window) {
    const std::int64_t offset = clamped(mask.window_offset);
    layout.low                = clamped(offset - clamped(mask.left));
    layout.high               = std::min(layout.high, clamped(offset + clamped(mask.right)));
  }
}

}  // namespace

void require_sinks(const char* function, bool are_accessible, ElementType type, ElementType x_type) {
  if (!are_accessible) {
    (Complaint(function) << "the execution space cannot access the memory of options.sinks").raise();
  }
  if (type != x_type && type != ElementType::f32) {
    (Complaint(function) << "options.sinks must hold x's type, " << to_string(x_type) << ", or f32, but hold "
                         << to_string(type))
        .raise();
  }
}

RowLayout normalise_masked(const char* function, const Tensor& x, const Tensor& y, const MaskTensors& mask,
                           const SoftmaxOptions& options, MaskLayout& layout) {
  validate_numbers(function, mask);
  const RowLayout rows = normalise(function, RowOperator::masked_softmax, x, y, options);
  const auto given     = [&](const MaskTensor& t, const auto& by_row) { return t.is_given ? by_row(t) : Tensor{}; };
  const Tensor keep    = given(mask.keep, [&](const Tensor& t) { return broadcast(function, "BooleanMask", t, x, x); });
  const Tensor bias = given(mask.bias, [&](const Tensor& t) { return broadcast(function, "AdditiveBias", t, x, x); });
  const Tensor lengths = given(mask.lengths, [&](const Tensor& t) { return lengths_by_row(function, t, x); });
  const Tensor slopes  = given(mask.slopes, [&](const Tensor& t) { return per_head(function, "Alibi", t, x); });
  const Tensor sinks   = given(mask.sinks, [&](const Tensor& t) { return per_head(function, "options.sinks", t, x); });
  if (rows.rows == 0 || rows.cols == 0) return rows;
  validate_apart_from_output(function, "BooleanMask", mask.keep, y);
  validate_apart_from_output(function, "AdditiveBias", mask.bias, y);
  validate_apart_from_output(function, "RowLengths", mask.lengths, y);
  validate_apart_from_output(function, "Alibi", mask.slopes, y);
  validate_apart_from_output(function, "options.sinks", mask.sinks, y);

  const std::vector<int> order = row_axes(rows_of(x), rows_of(y));
  set_diagonals(mask, layout);
  layout.query = map_of(along(rows_of(x), AxisNames(x).query, 1), order);
  if (mask.keep.is_given) layout.keep = map_of(keep, order);
  if (mask.bias.is_given) layout.bias = map_of(bias, order);
  if (mask.lengths.is_given) layout.lengths = map_of(lengths, order);
  if (mask.slopes.is_given) layout.slopes = map_of(slopes, order);
  if (mask.sinks.is_given) layout.sinks = map_of(sinks, order);
  layout.keep_col_stride = mask.keep.is_given ? keep.stride[x.rank - 1] : 0;
  layout.bias_col_stride = mask.bias.is_given ? bias.stride[x.rank - 1] : 0;
  return rows;
}

}  // namespace KokkosNN::Impl
