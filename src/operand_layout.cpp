// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/call/operand_layout.hpp>

#include "argument_error.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <vector>

namespace KokkosNN::Impl {
namespace {

bool exists(const OperandTensor& operand) { return operand.tensor.element_bytes != 0; }

int resolved(const char* function, int axis, int rank) {
  const int from_front = axis < 0 ? axis + rank : axis;
  if (from_front < 0 || from_front >= rank) {
    (ArgumentError(function) << "axis " << axis << " is out of range for rank " << rank).raise();
  }
  return from_front;
}

void require_extents(const char* function, const OperandTensor& x, const OperandTensor& t, int axis) {
  const Tensor rest = without_axis(x.tensor, axis);
  if (t.extents == OperandExtents::columns) {
    if (t.tensor.extent[0] == x.tensor.extent[axis]) return;
    (ArgumentError(function) << t.name << " must have one element for each of the " << x.tensor.extent[axis]
                             << " columns, but has " << t.tensor.extent[0])
        .raise();
  }
  const bool has_rows = t.extents == OperandExtents::rows;
  const Tensor& want  = has_rows ? x.tensor : rest;
  if (std::equal(want.extent, want.extent + want.rank, t.tensor.extent)) return;
  ArgumentError complaint(function);
  if (has_rows) {
    complaint << x.name << " and " << t.name << " must have the same extents";
  } else {
    complaint << t.name << " must have the extents of " << x.name << " without the axis, " << shape_of(want);
  }
  complaint << ", but " << x.name << " is " << shape_of(x.tensor) << " and " << t.name << " is " << shape_of(t.tensor);
  complaint.raise();
}

/// Outputs share memory with nothing, but for rows that are written where rows are read.
void validate_memory(const char* function, const std::vector<OperandTensor>& operands) {
  for (const OperandTensor& to : operands) {
    if (!exists(to) || !to.is_output) continue;
    validate_output(function, to.tensor);
    for (const OperandTensor& from : operands) {
      const bool have_rows = to.extents == OperandExtents::rows && from.extents == OperandExtents::rows;
      const bool in_place  = have_rows && is_same_view(from.tensor, to.tensor);
      if (&from == &to || !exists(from) || in_place || !overlaps(from.tensor, to.tensor)) continue;
      (ArgumentError(function) << from.name << " at " << from.tensor.data << ", extents " << shape_of(from.tensor)
                               << ", and the output at " << to.tensor.data << ", extents " << shape_of(to.tensor)
                               << ", overlap; only in place (the same View twice) may")
          .raise();
    }
  }
}

/// The tensor without the reduced axis; a tensor of columns as one of stride 0.
Tensor row_part(const OperandTensor& operand, const OperandTensor& x, int axis) {
  const Tensor rest = without_axis(x.tensor, axis);
  if (!exists(operand) || operand.extents == OperandExtents::columns) {
    Tensor none = rest;
    std::fill(std::begin(none.stride), std::end(none.stride), 0);
    return none;
  }
  return operand.extents == OperandExtents::rows ? without_axis(operand.tensor, axis) : operand.tensor;
}

/// Axes of rows, slowest first, those of one element left out: as the tensors lie in memory.
std::vector<int> sorted_axes(const std::vector<Tensor>& parts) {
  const Tensor& first = parts.front();
  const auto reach    = [&](int k) {
    std::int64_t farthest = 0;
    for (const Tensor& t : parts) farthest = std::max<std::int64_t>(farthest, std::llabs(t.stride[k]));
    return farthest;
  };
  std::vector<int> axes;
  for (int k = 0; k < first.rank; ++k) {
    if (first.extent[k] != 1) axes.push_back(k);
  }
  std::stable_sort(axes.begin(), axes.end(), [&](int a, int b) { return reach(a) > reach(b); });
  return axes;
}

/// Fills in the rows' axes, neighbours merged where all tensors allow.
void set_axes(OperandLayout& layout, const std::vector<Tensor>& parts) {
  for (const int k : sorted_axes(parts)) {
    const std::int64_t extent = parts.front().extent[k];
    const auto continues      = [&, t = 0](const Tensor& part) mutable {
      return layout.stride[t++][layout.n - 1] == part.stride[k] * extent;
    };
    const bool is_merged = layout.n > 0 && std::all_of(parts.begin(), parts.end(), continues);
    if (!is_merged) layout.extent[layout.n++] = 1;
    layout.extent[layout.n - 1] *= extent;
    for (std::size_t t = 0; t < parts.size(); ++t) layout.stride[t][layout.n - 1] = parts[t].stride[k];
  }
}

/// Rows are contiguous, at one distance, and each begins at a 16-byte boundary.
bool are_rows_aligned(const OperandTensor& operand, const OperandLayout& layout, int t) {
  constexpr std::int64_t access_bytes = 16;
  return layout.col_stride[t] == 1 && layout.n <= 1 &&
         reinterpret_cast<std::uintptr_t>(operand.tensor.data) % access_bytes == 0 &&
         layout.stride[t][0] * operand.tensor.element_bytes % access_bytes == 0;
}

}  // namespace

OperandLayout normalise_operands(const char* function, int axis, const std::vector<OperandTensor>& operands) {
  const OperandTensor& x = operands.front();
  axis                   = resolved(function, axis, x.tensor.rank);
  for (const OperandTensor& t : operands) {
    if (exists(t)) require_extents(function, x, t, axis);
  }
  OperandLayout layout;
  layout.rows = element_count(without_axis(x.tensor, axis));
  layout.cols = x.tensor.extent[axis];
  if (layout.rows == 0 || layout.cols == 0) return layout;
  validate_memory(function, operands);

  std::vector<Tensor> parts;
  bool are_aligned = true;
  for (const OperandTensor& operand : operands) parts.push_back(row_part(operand, x, axis));
  set_axes(layout, parts);
  for (std::size_t t = 0; t < operands.size(); ++t) {
    const OperandTensor& operand = operands[t];
    if (!exists(operand) || operand.extents == OperandExtents::row_values) continue;
    const bool has_rows  = operand.extents == OperandExtents::rows;
    layout.col_stride[t] = layout.cols == 1 ? 1 : operand.tensor.stride[has_rows ? axis : 0];
    are_aligned          = are_aligned && (!has_rows || are_rows_aligned(operand, layout, static_cast<int>(t)));
  }
  if (are_aligned) layout.form = RowForm::aligned;
  return layout;
}

void validate_number(const char* function, const char* name, double value, bool may_be_negative) {
  if (std::isfinite(value) && (may_be_negative || value >= 0)) return;
  (ArgumentError(function) << name << " must be finite" << (may_be_negative ? "" : " and not negative") << ", but is "
                           << value)
      .raise();
}

}  // namespace KokkosNN::Impl
