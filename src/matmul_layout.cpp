// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/call/matmul_plan.hpp>

#include "argument_error.hpp"
#include "axes.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <utility>

// Checks of a matrix product, and its tensors as batches of matrices.

namespace KokkosNN::Impl {
namespace {

using T         = MatmulTensors;
using BatchAxis = Axis<max_matmul_tensors>;

std::int64_t rows_of(const Tensor& t) { return t.extent[t.rank - 2]; }
std::int64_t cols_of(const Tensor& t) { return t.extent[t.rank - 1]; }

/// Rows of the product: where there are maps, neither a's nor c's need be these.
std::int64_t products_of(const MatmulOperands& operands) {
  return operands.rows.exists() ? operands.rows.extent[0] : rows_of(operands.tensor[T::a]);
}
bool has_maps(const MatmulOperands& operands) { return operands.rows.exists() || operands.row_offsets.exists(); }

/// Extents that an epilogue's inputs broadcast to.
Tensor extents_of_results(const MatmulOperands& operands) {
  Tensor t = operands.tensor[T::c];
  if (operands.row_offsets.exists()) t.extent[0] = products_of(operands);
  return t;
}

/// Checks a product with maps of rows.
void require_rows(const MatmulOperands& operands) {
  const Tensor& a = operands.tensor[T::a];
  const Tensor& b = operands.tensor[T::b];
  const Tensor& c = operands.tensor[T::c];
  const auto fail = [&](const char* what) {
    ArgumentError error(operands.function);
    error << "a, " << shape_of(a) << ", b, " << shape_of(b) << ", c, " << shape_of(c);
    if (operands.rows.exists()) error << ", rows, " << shape_of(operands.rows);
    if (operands.row_offsets.exists()) error << ", row_offsets, " << shape_of(operands.row_offsets);
    (error << ": " << what).raise();
  };
  if (a.rank != 2 || b.rank != 2 || c.rank != 2) fail("with rows or row_offsets matrices must have rank 2");
  if (cols_of(a) != rows_of(b) || cols_of(b) != cols_of(c)) fail("extents of the summed axis or of the columns differ");
  if (operands.row_offsets.exists()) {
    if (operands.row_offsets.extent[0] != rows_of(c) + 1) fail("row_offsets must be one more than c has rows");
  } else if (rows_of(c) != products_of(operands)) {
    fail("c must have a row for each of rows");
  }
}

void require_product(const MatmulOperands& operands) {
  if (has_maps(operands)) return require_rows(operands);
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
  const Tensor& t   = operands.tensor[number];
  const Tensor want = extents_of_results(operands);
  const int k       = axis - (want.rank - t.rank);
  if (k < 0) return 0;
  if (t.extent[k] == want.extent[axis]) return t.stride[k];
  if (t.extent[k] == 1) return 0;
  (ArgumentError(operands.function) << operands.name[number] << " of extents " << shape_of(t)
                                    << " does not broadcast to "
                                    << (operands.row_offsets.exists() ? "the products, " : "c, ") << shape_of(want))
      .raise();
}

void set_matrix_strides(const MatmulOperands& operands, MatmulLayout& layout) {
  const int rank = operands.tensor[T::c].rank;
  for (int number = 0; number < operands.count; ++number) {
    const Tensor& t           = operands.tensor[number];
    layout.data[number]       = t.data;
    const bool is_operand     = number < T::inputs && (number != T::c || operands.row_offsets.exists());
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
  std::swap(layout.sums.stride_of_a, layout.sums.stride_of_b);
}

/// Axes of batches, behind them that of the rows; merged where all tensors allow. The last one becomes the rows if b
/// does not depend on it.
void set_batches(const Axes<max_matmul_tensors>& batch_axes, MatmulLayout& layout, int count) {
  Axes<max_matmul_tensors> axes;
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
    require_apart(operands.function, operands.name[t], operands.tensor[t], operands.name[T::c], c,
                  t >= T::inputs && !operands.row_offsets.exists());
  }
  require_apart(operands.function, "rows", operands.rows, operands.name[T::c], c, false);
  require_apart(operands.function, "row_offsets", operands.row_offsets, operands.name[T::c], c, false);
}

RowOffsets integers_of(const Tensor& t) {
  if (!t.exists()) return {};
  return {t.data, t.extent[0] <= 1 ? 1 : t.stride[0], t.element_bytes, t.is_signed};
}

void set_maps(const MatmulOperands& operands, MatmulLayout& layout) {
  layout.kind         = operands.row_offsets.exists() ? MatmulRows::summed : MatmulRows::gathered;
  layout.maps.index   = integers_of(operands.rows);
  layout.maps.a_rows  = rows_of(operands.tensor[T::a]);
  layout.maps.offsets = integers_of(operands.row_offsets);
  layout.maps.sums    = rows_of(operands.tensor[T::c]);
}

}  // namespace

MatmulLayout normalise(const MatmulOperands& operands) {
  require_product(operands);
  const Tensor& c = operands.tensor[T::c];
  MatmulLayout layout;
  layout.rows  = products_of(operands);
  layout.cols  = cols_of(c);
  layout.inner = cols_of(operands.tensor[T::a]);
  layout.sums  = operands.sums;
  set_matrix_strides(operands, layout);
  Axes<max_matmul_tensors> axes;
  for (int k = 0; k < c.rank - 2; ++k) {
    for (int t = 0; t < operands.count; ++t) layout.stride[t][axes.size()] = broadcast_stride(operands, t, k);
    if (c.extent[k] != 1) axes.push_back({c.extent[k], {}, static_cast<int>(axes.size())});
  }
  if (element_count(c) == 0) {
    layout.rows = 0;
    return layout;
  }
  validate_memory(operands);
  if (has_maps(operands)) {
    set_maps(operands, layout);
    return layout;
  }
  turn(layout);
  set_batches(axes, layout, operands.count);
  return layout;
}

MatmulLayout layout_of_parts(const MatmulLayout& layout, const MatmulPlan& plan, std::int64_t round,
                             int element_bytes) {
  MatmulLayout parts = layout;
  MatmulSums& sums   = parts.sums;
  if (plan.rounds > 1) {  // some of the sums' outermost axis
    const std::int64_t step = (sums.extent[0] + plan.rounds - 1) / plan.rounds, first = round * step;
    const auto advance = [&](int tensor, std::int64_t elements) {
      parts.data[tensor] = static_cast<const char*>(layout.data[tensor]) + elements * element_bytes;
    };
    advance(T::a, first * sums.stride_of_a[0]);
    advance(T::b, first * sums.stride_of_b[0]);
    sums.extent[0] = std::min(step, sums.extent[0] - first);
  }
  const auto add = [&](std::int64_t extent, std::int64_t of_a, std::int64_t of_b) {
    parts.extent[parts.n]       = extent;
    parts.stride[T::a][parts.n] = of_a;
    parts.stride[T::b][parts.n] = of_b;
    ++parts.n;
  };
  for (int k = 0; k < sums.n; ++k) add(sums.extent[k], sums.stride_of_a[k], sums.stride_of_b[k]);
  add(plan.inner_parts, plan.part_inner * layout.col_stride[T::a], plan.part_inner * layout.row_stride[T::b]);
  parts.batches              = layout.batches * sums.count() * plan.inner_parts;
  parts.data[T::c]           = nullptr;
  parts.row_stride[T::c]     = layout.cols;
  parts.col_stride[T::c]     = 1;
  std::int64_t stride_of_sum = layout.rows * layout.cols;
  for (int k = parts.n - 1; k >= 0; --k) {
    if (k == layout.n - 1) stride_of_sum = layout.rows * layout.cols * matmul_workspace_matrices(plan);
    parts.stride[T::c][k] = stride_of_sum;
    stride_of_sum *= parts.extent[k];
  }
  return parts;
}

namespace {

/// A tensor of the rank wanted, by axes of extent 1 in front.
Tensor with_rank(const Tensor& tensor, int rank) {
  Tensor t          = tensor;
  t.rank            = rank;
  const int missing = rank - tensor.rank;
  for (int k = 0; k < rank; ++k) {
    t.extent[k] = k < missing ? 1 : tensor.extent[k - missing];
    t.stride[k] = k < missing ? 0 : tensor.stride[k - missing];
  }
  return t;
}

Tensor transposed(const Tensor& tensor) {
  Tensor t = tensor;
  std::swap(t.extent[t.rank - 2], t.extent[t.rank - 1]);
  std::swap(t.stride[t.rank - 2], t.stride[t.rank - 1]);
  return t;
}

/// The factors' axis that is summed: along `left`'s columns and `right`'s rows, behind the batches that `out` lacks,
/// which are left with an extent of 1. Returns those that are no part of this axis.
MatmulSums merge_sums(const MatmulOperands& product, const Tensor& out, Tensor& left, Tensor& right) {
  const Tensor& dc = product.tensor[T::c];
  const int rank   = dc.rank;
  Axes<2> axes;
  const auto add = [&](std::int64_t extent, std::int64_t of_left, std::int64_t of_right) {
    if (extent != 1) axes.push_back({extent, {of_left, of_right}, 0});
  };
  for (int k = 0; k < rank - 2; ++k) {
    if (out.extent[k] == dc.extent[k]) continue;
    add(dc.extent[k], left.extent[k] == 1 ? 0 : left.stride[k], right.extent[k] == 1 ? 0 : right.stride[k]);
    left.extent[k] = right.extent[k] = 1;
  }
  add(left.extent[rank - 1], left.stride[rank - 1], right.stride[rank - 2]);
  if (std::any_of(axes.begin(), axes.end(), [](const auto& axis) { return axis.extent == 0; })) {
    axes = {};
    axes.push_back({0, {0, 0}, 0});
  }
  axes              = merged(axes);
  const Axis<2> sum = axes.empty() ? Axis<2>{1, {0, 0}, 0} : axes.back();
  MatmulSums others;
  for (std::size_t k = 0; k + 1 < axes.size(); ++k) {
    others.extent[k]      = axes[k].extent;
    others.stride_of_a[k] = axes[k].stride[0];
    others.stride_of_b[k] = axes[k].stride[1];
    ++others.n;
  }
  left.extent[rank - 1]  = sum.extent;
  left.stride[rank - 1]  = sum.stride[0];
  right.extent[rank - 2] = sum.extent;
  right.stride[rank - 2] = sum.stride[1];
  return others;
}

void require_extents(const MatmulOperands& product, const Tensor& out, int number) {
  const Tensor& operand = product.tensor[number];
  if (out.rank == operand.rank && std::equal(out.extent, out.extent + out.rank, operand.extent)) return;
  (ArgumentError(product.function) << 'd' << product.name[number] << " of extents " << shape_of(out)
                                   << " must have those of " << product.name[number] << ", " << shape_of(operand))
      .raise();
}

}  // namespace

void require_apart_gradients(const MatmulOperands& product, const Tensor& da, const Tensor& db) {
  require_apart(product.function, product.name[T::a], product.tensor[T::a], "da", da, false);
  require_apart(product.function, "db", db, "da", da, false);
}

MatmulOperands gradient_product(const MatmulOperands& product, const Tensor& out, int number) {
  require_product(product);
  const int rank = product.tensor[T::c].rank;
  for (int k = 0; k < rank - 2; ++k) {
    broadcast_stride(product, T::a, k);
    broadcast_stride(product, T::b, k);
  }
  require_extents(product, out, number);
  const bool is_of_a    = number == T::a;
  const char* const of  = is_of_a ? "da" : "db";
  const Tensor to       = with_rank(out, rank);
  const Tensor& dc      = product.tensor[T::c];
  Tensor left           = is_of_a ? dc : transposed(with_rank(product.tensor[T::a], rank));
  Tensor right          = is_of_a ? transposed(with_rank(product.tensor[T::b], rank)) : dc;
  const MatmulSums sums = merge_sums(product, to, left, right);
  MatmulOperands result{
      product.function,
      3,
      {to, left, right},
      {of, is_of_a ? product.name[T::c] : product.name[T::a], is_of_a ? product.name[T::b] : product.name[T::c]}};
  result.sums = sums;
  return result;
}

}  // namespace KokkosNN::Impl
