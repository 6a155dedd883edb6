// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/call/matmul_plan.hpp>

#include "argument_error.hpp"
#include "axes.hpp"

#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

// Checks of a matrix product, and its tensors as batches of matrices.

namespace KokkosNN::Impl {
namespace {

using T         = MatmulTensors;
using BatchAxis = Axis<max_matmul_tensors>;

std::int64_t rows_of(const Tensor& t) { return t.extent[t.rank - 2]; }
std::int64_t cols_of(const Tensor& t) { return t.extent[t.rank - 1]; }

void require_product(const MatmulOperands& operands) {
  const Tensor& a = operands.tensor[T::a];
  const Tensor& b = operands.tensor[T::b];
  const Tensor& c = operands.tensor[T::c];
  if (cols_of(a) == rows_of(b) && rows_of(a) == rows_of(c) && cols_of(b) == cols_of(c)) return;
  (ArgumentError(operands.function) << "matrices a, " << shape_of(a) << ", b, " << shape_of(b) << ", and c, "
                                    << shape_of(c) << ", must be (m, k), (k, n) and (m, n) in their last two axes")
      .raise();
}

/// The stride of a tensor along an axis of c, 0 where it repeats its elements. Matrices' own axes are not broadcast.
std::int64_t broadcast_stride(const MatmulOperands& operands, int number, int axis) {
  const Tensor& t    = operands.tensor[number];
  const Tensor& want = operands.tensor[T::c];
  const int k        = axis - (want.rank - t.rank);
  if (k < 0) return 0;
  if (t.extent[k] == want.extent[axis]) return t.stride[k];
  if (t.extent[k] == 1) return 0;
  (ArgumentError(operands.function) << operands.name[number] << " of extents " << shape_of(t)
                                    << " does not broadcast to c, " << shape_of(want))
      .raise();
}

void set_matrix_strides(const MatmulOperands& operands, MatmulLayout& layout) {
  const int rank = operands.tensor[T::c].rank;
  for (int number = 0; number < operands.count; ++number) {
    const Tensor& t           = operands.tensor[number];
    layout.data[number]       = t.data;
    const bool is_operand     = number == T::a || number == T::b;
    layout.row_stride[number] = is_operand ? t.stride[t.rank - 2] : broadcast_stride(operands, number, rank - 2);
    layout.col_stride[number] = is_operand ? t.stride[t.rank - 1] : broadcast_stride(operands, number, rank - 1);
  }
}

/// Turns the product round where c is denser along its rows.
void turn(MatmulLayout& layout) {
  const std::int64_t along_rows = std::llabs(layout.row_stride[T::c]), along_cols = std::llabs(layout.col_stride[T::c]);
  const bool is_turned = layout.cols == 1 ? layout.rows > 1 : layout.rows > 1 && along_rows < along_cols;
  if (!is_turned) return;
  std::swap(layout.rows, layout.cols);
  std::swap(layout.data[T::a], layout.data[T::b]);
  std::swap(layout.row_stride, layout.col_stride);
  std::swap(layout.row_stride[T::a], layout.row_stride[T::b]);
  std::swap(layout.col_stride[T::a], layout.col_stride[T::b]);
  std::swap(layout.stride[T::a], layout.stride[T::b]);
}

/// Axes of batches, behind them that of the rows; merged where all tensors allow. The last one becomes the rows if b
/// does not depend on it.
void set_batches(const std::vector<BatchAxis>& batch_axes, MatmulLayout& layout, int count) {
  std::vector<BatchAxis> axes;
  for (BatchAxis axis : batch_axes) {
    for (int t = 0; t < count; ++t) axis.stride[t] = layout.stride[t][axis.number];
    axes.push_back(axis);
  }
  if (layout.rows != 1) {
    BatchAxis of_rows{layout.rows, {}, 0};
    for (int t = 0; t < count; ++t) of_rows.stride[t] = t == T::b ? 0 : layout.row_stride[t];
    axes.push_back(of_rows);
  }
  axes        = merged(axes);
  layout.rows = 1;
  if (!axes.empty() && axes.back().stride[T::b] == 0) {
    layout.rows = axes.back().extent;
    for (int t = 0; t < count; ++t) {
      if (t != T::b) layout.row_stride[t] = axes.back().stride[t];
    }
    axes.pop_back();
  }
  layout.n = static_cast<int>(axes.size());
  for (int k = 0; k < layout.n; ++k) {
    layout.extent[k] = axes[k].extent;
    layout.batches *= axes[k].extent;
    for (int t = 0; t < count; ++t) layout.stride[t][k] = axes[k].stride[t];
  }
}

void validate_memory(const MatmulOperands& operands) {
  const Tensor& c = operands.tensor[T::c];
  validate_output(operands.function, c);
  for (int t = T::a; t < operands.count; ++t) {
    require_apart(operands.function, operands.name[t], operands.tensor[t], "c", c, t >= T::inputs);
  }
}

}  // namespace

MatmulLayout normalise(const MatmulOperands& operands) {
  require_product(operands);
  const Tensor& c = operands.tensor[T::c];
  MatmulLayout layout;
  layout.rows  = rows_of(c);
  layout.cols  = cols_of(c);
  layout.inner = cols_of(operands.tensor[T::a]);
  set_matrix_strides(operands, layout);
  std::vector<BatchAxis> axes;
  for (int k = 0; k < c.rank - 2; ++k) {
    for (int t = 0; t < operands.count; ++t) layout.stride[t][axes.size()] = broadcast_stride(operands, t, k);
    if (c.extent[k] != 1) axes.push_back({c.extent[k], {}, static_cast<int>(axes.size())});
  }
  if (element_count(c) == 0) {
    layout.rows = 0;
    return layout;
  }
  validate_memory(operands);
  turn(layout);
  set_batches(axes, layout, operands.count);
  return layout;
}

}  // namespace KokkosNN::Impl
