// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/call/layout.hpp>

#include "argument_error.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <initializer_list>
#include <iterator>
#include <utility>
#include <vector>

namespace KokkosNN::Impl {
namespace {

int resolve_axis(const char* function, int axis, int rank) {
  const int resolved = axis < 0 ? axis + rank : axis;
  if (resolved < 0 || resolved >= rank) {
    (ArgumentError(function) << "axis " << axis << " is out of range for rank " << rank).raise();
  }
  return resolved;
}

void validate_same_extents(const char* function, RowOperator op, const Tensor& x, const Tensor& y, const Tensor& want) {
  for (int k = 0; k < want.rank; ++k) {
    if (want.extent[k] == y.extent[k]) continue;
    ArgumentError complaint(function);
    if (op == RowOperator::logsumexp) {
      complaint << "lse must have the extents of x without the axis, " << shape_of(want) << ", but x is " << shape_of(x)
                << " and lse is " << shape_of(y);
    } else {
      complaint << "x and y must have the same extents, but x is " << shape_of(x) << " and y is " << shape_of(y);
    }
    complaint.raise();
  }
}

/// One term of an address difference: stride * i, low <= i <= high, in bytes, stride > 0.
struct Term {
  std::int64_t stride;
  std::int64_t low;
  std::int64_t high;
};

/// Collects the terms of `sign * address`, joined with what is there if the strides are equal.
void add_terms(std::vector<Term>& terms, const Tensor& t, int sign) {
  for (int k = 0; k < t.rank; ++k) {
    const std::int64_t stride = sign * t.stride[k] * t.element_bytes;
    const std::int64_t last   = t.extent[k] - 1;
    if (stride == 0 || last == 0) continue;
    const Term term = stride > 0 ? Term{stride, 0, last} : Term{-stride, -last, 0};
    const auto twin = std::find_if(terms.begin(), terms.end(), [&](const Term& o) { return o.stride == term.stride; });
    if (twin == terms.end()) {
      terms.push_back(term);
    } else {
      twin->low += term.low;
      twin->high += term.high;
    }
  }
}

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }

/// Whether some choice of the terms from number k on sums to a value in [low, high]. Terms come largest stride first,
/// so in a regular layout only a few choices survive a level; `budget` bounds the search, and running out of it counts
/// as yes.
bool can_reach(const std::vector<Term>& terms, std::size_t k, std::int64_t low, std::int64_t high, int& budget) {
  if (k == terms.size()) return low <= 0 && 0 <= high;
  if (--budget < 0) return true;
  std::int64_t rest_low = 0, rest_high = 0;
  for (std::size_t j = k + 1; j < terms.size(); ++j) {
    rest_low += terms[j].stride * terms[j].low;
    rest_high += terms[j].stride * terms[j].high;
  }
  const Term& term         = terms[k];
  const std::int64_t first = std::max(term.low, -floor_div(-(low - rest_high), term.stride));
  const std::int64_t last  = std::min(term.high, floor_div(high - rest_low, term.stride));
  for (std::int64_t i = first; i <= last; ++i) {
    if (can_reach(terms, k + 1, low - i * term.stride, high - i * term.stride, budget)) return true;
    if (budget < 0) return true;
  }
  return false;
}

/// Whether two elements of t share a byte: whether some difference of two indices, not zero, leads nowhere.
bool overlaps_itself(const Tensor& t) {
  std::vector<Term> axes;
  for (int k = 0; k < t.rank; ++k) {
    if (t.extent[k] <= 1) continue;
    if (t.stride[k] == 0) return true;  // terms have strides, which are divided by
    axes.push_back({std::llabs(t.stride[k]) * t.element_bytes, 0, t.extent[k] - 1});
  }
  std::sort(axes.begin(), axes.end(), [](const Term& a, const Term& b) { return a.stride > b.stride; });
  int budget = 100000;
  for (std::size_t lead = 0; lead < axes.size(); ++lead) {
    std::vector<Term> differences{{axes[lead].stride, 1, axes[lead].high}};
    for (std::size_t k = lead + 1; k < axes.size(); ++k) {
      differences.push_back({axes[k].stride, -axes[k].high, axes[k].high});
    }
    if (can_reach(differences, 0, 1 - t.element_bytes, t.element_bytes - 1, budget)) return true;
  }
  return false;
}

void validate_apart(const char* function, const char* name, const Tensor& x, const Tensor& y) {
  if (!overlaps(x, y)) return;
  (ArgumentError(function) << name << " at " << x.data << ", extents " << shape_of(x) << ", and the output at " << y.data
                       << ", extents " << shape_of(y) << ", overlap; only in place (the same View twice) may")
      .raise();
}

void validate_memory(const char* function, const Tensor& x, const Tensor& y) {
  validate_output(function, y);
  if (!is_same_view(x, y)) validate_apart(function, "x", x, y);
}

/// An axis of several tensors.
struct Axis {
  std::int64_t extent;
  std::int64_t stride[CrossEntropyLayout::tensors];  ///< 0 for tensors that there are not
  int number = 0;                                    ///< of the tensors' axis

  std::int64_t reach() const {
    std::int64_t farthest = 0;
    for (const std::int64_t s : stride) farthest = std::max<std::int64_t>(farthest, std::llabs(s));
    return farthest;
  }
  /// Whether the two are one axis in all tensors, `inner` running faster.
  bool continues_in(const Axis& inner) const {
    return std::equal(std::begin(stride), std::end(stride), std::begin(inner.stride),
                      [&](std::int64_t outer, std::int64_t s) { return outer == s * inner.extent; });
  }
};

/// The axes of the tensors, all of the same extents, but for those of one element.
template <class Tensors>
std::vector<Axis> axes_of(const Tensors& all) {
  const Tensor& first = *all.begin();
  std::vector<Axis> axes;
  for (int k = 0; k < first.rank; ++k) {
    if (first.extent[k] == 1) continue;
    Axis axis{first.extent[k], {}, k};
    std::transform(all.begin(), all.end(), axis.stride, [&](const Tensor& t) { return t.stride[k]; });
    axes.push_back(axis);
  }
  return axes;
}

/// The same, slowest first: rows are numbered in this order.
std::vector<Axis> sorted_axes(std::initializer_list<Tensor> all) {
  std::vector<Axis> axes = axes_of(all);
  std::stable_sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) { return a.reach() > b.reach(); });
  return axes;
}

/// Neighbours merged where all tensors allow.
std::vector<Axis> merged(const std::vector<Axis>& axes) {
  std::vector<Axis> merged;
  for (Axis axis : axes) {
    if (!merged.empty() && merged.back().continues_in(axis)) {
      axis.extent *= merged.back().extent;
      merged.back() = axis;
    } else {
      merged.push_back(axis);
    }
  }
  return merged;
}

std::vector<Axis> merged_axes(std::initializer_list<Tensor> all) { return merged(sorted_axes(all)); }

constexpr std::int64_t access_bytes = 16;

/// Whether all rows of the `number`-th tensor, t, start at a 16-byte boundary.
bool are_rows_aligned(const Tensor& t, const std::vector<Axis>& axes, int number) {
  if (reinterpret_cast<std::uintptr_t>(t.data) % access_bytes != 0) return false;
  return std::all_of(axes.begin(), axes.end(),
                     [&](const Axis& axis) { return axis.stride[number] * t.element_bytes % access_bytes == 0; });
}

/// Whether packs, as long as they may be, begin at the same columns in x and in t, the `number`-th tensor, row by row.
bool do_packs_agree(const Tensor& x, const Tensor& t, const std::vector<Axis>& axes, int number) {
  const std::int64_t pack = access_bytes / std::min(x.element_bytes, t.element_bytes);
  const auto elements     = [](const Tensor& tensor) {
    return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(tensor.data)) / tensor.element_bytes;
  };
  if ((elements(x) - elements(t)) % pack != 0) return false;
  return std::all_of(axes.begin(), axes.end(),
                     [&](const Axis& axis) { return (axis.stride[0] - axis.stride[number]) % pack == 0; });
}

/// Of the rows of tensors whose columns have stride 1, in the order of the axes' strides.
RowForm form_of(std::initializer_list<Tensor> tensors, const std::vector<Axis>& axes) {
  const auto are_all = [&](const auto& holds) {
    int number = 0;
    return std::all_of(tensors.begin(), tensors.end(), [&](const Tensor& t) { return holds(t, number++); });
  };
  if (axes.size() <= 1 && are_all([&](const Tensor& t, int number) { return are_rows_aligned(t, axes, number); })) {
    return RowForm::aligned;
  }
  const Tensor& first = *tensors.begin();
  const bool do_agree = are_all([&](const Tensor& t, int number) { return do_packs_agree(first, t, axes, number); });
  return do_agree ? RowForm::misaligned : RowForm::strided;
}

/// Whether rows along one axis, at such a distance, lie one behind another from a 16-byte boundary on.
bool is_one_piece(const Tensor& t, int row_axes, std::int64_t stride, std::int64_t cols) {
  return row_axes == 1 && stride == cols && reinterpret_cast<std::uintptr_t>(t.data) % 16 == 0;
}

/// Whether the columns of the first so many tensors have stride 1.
bool have_unit_columns(const std::int64_t* col_stride, std::size_t tensors) {
  return std::all_of(col_stride, col_stride + tensors, [](std::int64_t stride) { return stride == 1; });
}

/// A tensor of one value a row as one of the rows' extents: stride 0 along the axis.
Tensor with_axis(const Tensor& t, int axis, std::int64_t extent) {
  Tensor result = t;
  result.rank   = t.rank + 1;
  for (int k = axis; k < t.rank; ++k) {
    result.extent[k + 1] = t.extent[k];
    result.stride[k + 1] = t.stride[k];
  }
  result.extent[axis] = extent;
  result.stride[axis] = 0;
  return result;
}

/// Complains unless tensor t has the extents that are wanted beside x.
void require_same_extents(const char* function, const char* x_name, const Tensor& x, const char* t_name,
                          const Tensor& t, const Tensor& want) {
  if (std::equal(want.extent, want.extent + want.rank, t.extent)) return;
  ArgumentError complaint(function);
  if (want.rank == x.rank) {
    complaint << x_name << " and " << t_name << " must have the same extents";
  } else {
    complaint << t_name << " must have the extents of " << x_name << " without the axis, " << shape_of(want);
  }
  complaint << ", but " << x_name << " is " << shape_of(x) << " and " << t_name << " is " << shape_of(t);
  complaint.raise();
}

}  // namespace

Tensor without_axis(const Tensor& t, int axis) {
  Tensor rest = t;
  rest.rank   = t.rank - 1;
  for (int k = axis; k < rest.rank; ++k) {
    rest.extent[k] = t.extent[k + 1];
    rest.stride[k] = t.stride[k + 1];
  }
  return rest;
}

std::int64_t element_count(const Tensor& t) {
  std::int64_t count = 1;
  for (int k = 0; k < t.rank; ++k) count *= t.extent[k];
  return count;
}

Tensor slice_of(const Tensor& t, int axis, std::int64_t begin, std::int64_t count) {
  Tensor part       = t;
  part.data         = static_cast<const char*>(t.data) + begin * t.stride[axis] * t.element_bytes;
  part.extent[axis] = count;
  return part;
}

ShardLayout layout_of_shard(int axis, std::initializer_list<Tensor> with_columns,
                            std::initializer_list<Tensor> a_value_a_row) {
  const Tensor& first = *with_columns.begin();
  std::vector<Tensor> all;
  for (const Tensor& t : with_columns) all.push_back(without_axis(t, axis));
  all.insert(all.end(), a_value_a_row.begin(), a_value_a_row.end());
  const std::vector<Axis> axes = merged(axes_of(all));

  ShardLayout layout;
  layout.rows = element_count(all.front());
  layout.cols = first.extent[axis];
  layout.n    = static_cast<int>(axes.size());
  for (std::size_t k = 0; k < axes.size(); ++k) {
    layout.extent[k] = axes[k].extent;
    for (int t = 0; t < ShardLayout::max_tensors; ++t) layout.stride[t][k] = axes[k].stride[t];
  }
  std::transform(with_columns.begin(), with_columns.end(), layout.col_stride,
                 [&](const Tensor& t) { return layout.cols <= 1 ? 1 : t.stride[axis]; });

  if (have_unit_columns(layout.col_stride, with_columns.size())) layout.form = form_of(with_columns, axes);
  return layout;
}

RowMap ShardLayout::map(int tensor) const { return row_map(extent, stride[tensor], n); }

RowMap row_map(const std::int64_t* extent, const std::int64_t* stride, int dims) {
  RowMap result;
  result.n = dims;
  std::copy_n(extent, std::max(dims, 0), result.extent);
  std::copy_n(stride, std::max(dims, 0), result.stride);
  for (int k = 0; k < dims; ++k) result.inverse[k] = 1.0 / static_cast<double>(extent[k]);
  return result;
}

void validate_output(const char* function, const Tensor& y) {
  if (element_count(y) == 0 || !overlaps_itself(y)) return;
  (ArgumentError(function) << "elements of the output share memory: extents " << shape_of(y) << ", strides "
                       << strides_of(y))
      .raise();
}

std::vector<int> row_axes(std::initializer_list<Tensor> all) {
  std::vector<int> numbers;
  for (const Axis& axis : sorted_axes(all)) numbers.push_back(axis.number);
  return numbers;
}

RowMap RowLayout::map(const std::int64_t (&stride)[max_row_dims], int dims) const {
  return row_map(extent, stride, dims);
}

RowMap GradientLayout::map(int tensor) const { return row_map(extent, stride[tensor], n); }
RowMap GradientLayout::outer_map(int tensor) const { return row_map(extent, stride[tensor], n - 1); }

bool is_same_view(const Tensor& x, const Tensor& y) {
  if (x.data != y.data || x.element_bytes != y.element_bytes || x.rank != y.rank) return false;
  for (int k = 0; k < x.rank; ++k) {
    if (x.extent[k] != y.extent[k] || (x.extent[k] > 1 && x.stride[k] != y.stride[k])) return false;
  }
  return true;
}

bool overlaps(const Tensor& x, const Tensor& y) {
  if (element_count(x) == 0 || element_count(y) == 0) return false;
  std::vector<Term> terms;
  add_terms(terms, x, 1);
  add_terms(terms, y, -1);
  std::sort(terms.begin(), terms.end(), [](const Term& a, const Term& b) { return a.stride > b.stride; });
  // Two elements share a byte if address(x) - address(y) is in (-bytes of x, bytes of y).
  const std::int64_t base = static_cast<const char*>(x.data) - static_cast<const char*>(y.data);
  int budget              = 100000;
  return can_reach(terms, 0, -base - x.element_bytes + 1, -base + y.element_bytes - 1, budget);
}

void validate_scale(const char* function, double scale) {
  // Beyond, its reciprocal or 1024 times that would leave the range of a float.
  constexpr double largest = 0x1p100;
  const double size        = std::abs(scale);
  if (!(size >= 1 / largest && size <= largest)) {
    (ArgumentError(function) << "|scale| must be within 2^-100 to 2^100, but scale is " << scale).raise();
  }
}

void require_operator(const char* function, RowOperator op, bool is_served) {
  if (!is_served) (ArgumentError(function) << to_string(op) << " takes other Views").raise();
}

void validate_extents(const char* function, std::int64_t rows, std::int64_t cols) {
  if (rows < 0 || cols < 0) {
    (ArgumentError(function) << "rows and cols must not be negative, but are " << rows << " and " << cols).raise();
  }
}

void validate_fused_axis(const char* function, int axis) {
  if (axis != -1) {
    (ArgumentError(function) << "rows from a functor are reduced over their columns: axis must be -1, but is " << axis)
        .raise();
  }
}

void require_same_layout(const char* function, const RowLayout& planned, const RowLayout& layout) {
  const bool same = planned.rows == layout.rows && planned.cols == layout.cols && planned.n == layout.n &&
                    planned.x_col_stride == layout.x_col_stride && planned.y_col_stride == layout.y_col_stride &&
                    std::equal(planned.extent, planned.extent + planned.n, layout.extent) &&
                    std::equal(planned.x_stride, planned.x_stride + planned.n, layout.x_stride) &&
                    std::equal(planned.y_stride, planned.y_stride + planned.n, layout.y_stride) &&
                    planned.form == layout.form && planned.one_piece == layout.one_piece;
  if (!same) {
    (ArgumentError(function) << "the plan was made for " << planned.rows << " rows of " << planned.cols
                         << " with other extents, strides or alignment than the Views given now, " << layout.rows
                         << " rows of " << layout.cols)
        .raise();
  }
}

RowLayout normalise(const char* function, RowOperator op, const Tensor& x, const Tensor& y,
                    const SoftmaxOptions& options) {
  require_operator(function, op, !is_gradient(op));
  validate_scale(function, options.scale);
  const int axis    = resolve_axis(function, options.axis, x.rank);
  const Tensor rest = without_axis(x, axis);
  const bool is_lse = op == RowOperator::logsumexp;
  validate_same_extents(function, op, x, y, is_lse ? rest : x);

  const std::vector<Axis> axes = merged_axes({rest, is_lse ? y : without_axis(y, axis)});
  RowLayout layout;
  layout.rows         = element_count(rest);
  layout.cols         = x.extent[axis];
  layout.x_col_stride = layout.cols == 1 ? 1 : x.stride[axis];
  layout.y_col_stride = is_lse || layout.cols == 1 ? 1 : y.stride[axis];
  layout.n            = static_cast<int>(axes.size());
  for (std::size_t k = 0; k < axes.size(); ++k) {
    layout.extent[k]   = axes[k].extent;
    layout.x_stride[k] = axes[k].stride[0];
    layout.y_stride[k] = axes[k].stride[1];
  }
  if (layout.rows == 0 || (layout.cols == 0 && !is_lse)) return layout;
  validate_memory(function, x, y);
  if (layout.x_col_stride == 1 && layout.y_col_stride == 1) {
    layout.form      = is_lse ? form_of({x}, axes) : form_of({x, y}, axes);
    layout.one_piece = is_one_piece(x, layout.n, layout.x_stride[0], layout.cols) &&
                       (is_lse || is_one_piece(y, layout.n, layout.y_stride[0], layout.cols));
  }
  return layout;
}

void require_same_layout(const char* function, const GradientLayout& planned, const GradientLayout& layout) {
  if (planned == layout) return;
  (ArgumentError(function) << "the plan was made for " << planned.rows << " rows of " << planned.cols
                       << " with other extents, strides or alignment than the Views given now, " << layout.rows
                       << " rows of " << layout.cols)
      .raise();
}

GradientLayout normalise_gradient(const char* function, RowOperator op, const GradientTensors& given,
                                  const SoftmaxOptions& options) {
  validate_scale(function, options.scale);
  const bool is_lse = op == RowOperator::logsumexp_backward;
  const char* name  = is_lse ? "x" : "y";  // of what the forward call left
  const int axis    = resolve_axis(function, options.axis, given.x.rank);
  const Tensor rest = without_axis(given.x, axis);
  require_same_extents(function, name, given.x, "dx", given.dx, given.x);
  require_same_extents(function, name, given.x, is_lse ? "dlse" : "dy", given.dy, is_lse ? rest : given.x);
  if (is_lse) require_same_extents(function, name, given.x, "lse", given.lse, rest);

  GradientLayout layout;
  layout.rows = element_count(rest);
  layout.cols = given.x.extent[axis];
  if (layout.rows == 0 || layout.cols == 0) return layout;

  // In the order of GradientLayout's names; where there is no lse, dy stands in for it.
  const Tensor dy   = is_lse ? with_axis(given.dy, axis, layout.cols) : given.dy;
  const Tensor lse  = is_lse ? with_axis(given.lse, axis, layout.cols) : dy;
  const auto of_all = {given.x, given.dx, dy, lse};
  std::transform(of_all.begin(), of_all.end(), layout.col_stride,
                 [&](const Tensor& t) { return layout.cols == 1 ? 1 : t.stride[axis]; });
  const std::vector<Axis> axes =
      merged_axes({rest, without_axis(given.dx, axis), without_axis(dy, axis), without_axis(lse, axis)});
  layout.n = static_cast<int>(axes.size());
  for (std::size_t k = 0; k < axes.size(); ++k) {
    layout.extent[k] = axes[k].extent;
    for (int t = 0; t < GradientLayout::tensors; ++t) layout.stride[t][k] = axes[k].stride[t];
  }

  validate_output(function, given.dx);
  if (!is_same_view(given.x, given.dx)) validate_apart(function, name, given.x, given.dx);
  if (!is_same_view(given.dy, given.dx)) validate_apart(function, is_lse ? "dlse" : "dy", given.dy, given.dx);
  if (is_lse) validate_apart(function, "lse", given.lse, given.dx);

  if (!have_unit_columns(layout.col_stride, is_lse ? 2 : 3)) return layout;
  layout.form      = is_lse ? form_of({given.x, given.dx}, axes) : form_of({given.x, given.dx, dy}, axes);
  layout.one_piece = std::all_of(of_all.begin(), of_all.begin() + 3, [&, t = 0](const Tensor& tensor) mutable {
    return is_one_piece(tensor, layout.n, layout.stride[t++][0], layout.cols);
  });
  return layout;
}

namespace {

bool exists(const Tensor& t) { return t.element_bytes != 0; }

void validate_cross_entropy_options(const char* function, const CrossEntropyOptions& options) {
  const auto require = [&](bool holds, const char* what, double value) {
    if (!holds) (ArgumentError(function) << what << ", but is " << value).raise();
  };
  const double cap = options.softcap;
  require(options.label_smoothing >= 0 && options.label_smoothing <= 1, "label_smoothing must be within 0 to 1",
          options.label_smoothing);
  require(std::isfinite(options.z_loss), "z_loss must be finite", options.z_loss);
  require(cap == 0 || (cap >= 0x1p-100 && cap <= 0x1p100), "softcap must be 0 or within 2^-100 to 2^100", cap);
  require(std::isfinite(options.gradient_scale), "gradient_scale must be finite", options.gradient_scale);
}

/// The loss, or its gradient: one a row, or a scalar.
void validate_loss(const char* function, const char* name, const CrossEntropyTensors& given, const Tensor& rest,
                   Reduction reduction) {
  if (!exists(given.loss)) return;
  if (reduction == Reduction::none) {
    if (given.loss.rank == rest.rank)
      return require_same_extents(function, "logits", given.logits, name, given.loss, rest);
    (ArgumentError(function) << name << " must have one axis less than logits with Reduction::none, but has rank "
                         << given.loss.rank << " and logits rank " << given.logits.rank)
        .raise();
  }
  if (given.loss.rank != 0) {
    (ArgumentError(function) << name << " must be of rank 0 with Reduction::mean and Reduction::sum, but has rank "
                         << given.loss.rank)
        .raise();
  }
}

/// Of a loss that is reduced, the rows' are one after the other, in the order in which kernels count rows; of its
/// gradient there is one for all.
void set_strides_of_scalar(CrossEntropyLayout& layout, bool has_loss) {
  std::int64_t stride = has_loss ? 1 : 0;
  for (int k = layout.n - 1; k >= 0; --k) {
    layout.stride[CrossEntropyLayout::loss][k] = stride;
    stride *= layout.extent[k];
  }
}

/// Outputs share memory with nothing, but for a gradient written over the logits.
void validate_cross_entropy_memory(const char* function, RowOperator op, const CrossEntropyTensors& given) {
  const bool has_loss     = op != RowOperator::cross_entropy_backward;
  const Tensor* outputs[] = {&given.dlogits, has_loss ? &given.loss : nullptr, has_loss ? &given.lse : nullptr};
  const std::pair<const char*, const Tensor*> all[] = {
      {"logits", &given.logits}, {"dlogits", &given.dlogits},
      {"labels", &given.labels}, {has_loss ? "loss" : "dloss", &given.loss},
      {"lse", &given.lse},       {"weights", &given.weights}};
  for (const Tensor* output : outputs) {
    if (output == nullptr || !exists(*output)) continue;
    validate_output(function, *output);
    for (const auto& [name, tensor] : all) {
      const bool is_in_place = tensor == &given.logits && output == &given.dlogits && is_same_view(*tensor, *output);
      if (tensor != output && exists(*tensor) && !is_in_place) validate_apart(function, name, *tensor, *output);
    }
  }
}

}  // namespace

RowMap CrossEntropyLayout::map(int tensor) const { return row_map(extent, stride[tensor], n); }

CrossEntropyLayout normalise_cross_entropy(const char* function, RowOperator op, const CrossEntropyTensors& given,
                                           const CrossEntropyOptions& options, const ClassShard* shared) {
  const bool has_loss = op != RowOperator::cross_entropy_backward;
  validate_cross_entropy_options(function, options);
  const int axis    = given.logits.rank - 1;
  const Tensor rest = without_axis(given.logits, axis);
  require_same_extents(function, "logits", given.logits, "labels", given.labels, rest);
  if (exists(given.dlogits)) {
    require_same_extents(function, "logits", given.logits, "dlogits", given.dlogits, given.logits);
  }
  if (exists(given.lse)) require_same_extents(function, "logits", given.logits, "lse", given.lse, rest);
  validate_loss(function, has_loss ? "loss" : "dloss", given, rest, options.reduction);

  CrossEntropyLayout layout;
  layout.rows  = element_count(rest);
  layout.cols  = given.logits.extent[axis];
  layout.shard = {0, layout.cols, layout.cols};
  if (shared != nullptr) layout.shard = {shared->first, layout.cols, shared->classes};
  if (layout.shard.first < 0 || layout.shard.first + layout.cols > layout.shard.classes) {
    (ArgumentError(function) << "logits have the columns of " << layout.cols << " classes from number "
                         << layout.shard.first << " on, but there are only " << layout.shard.classes)
        .raise();
  }
  if (exists(given.weights) && given.weights.extent[0] != layout.shard.classes) {
    (ArgumentError(function) << "weights must have one element for each of the " << layout.shard.classes
                         << " classes, but has " << given.weights.extent[0])
        .raise();
  }
  if (layout.rows > 0 && layout.shard.classes == 0) (ArgumentError(function) << "logits have no classes").raise();
  if (layout.rows > 0) validate_cross_entropy_memory(function, op, given);

  // In the order of the layout's names; labels stand in for what there is not.
  const bool is_reduced        = options.reduction != Reduction::none;
  const Tensor dlogits         = exists(given.dlogits) ? without_axis(given.dlogits, axis) : rest;
  const Tensor loss            = exists(given.loss) && !is_reduced ? given.loss : given.labels;
  const Tensor lse             = exists(given.lse) ? given.lse : given.labels;
  const std::vector<Axis> axes = merged_axes({rest, dlogits, given.labels, loss, lse});
  layout.n                     = static_cast<int>(axes.size());
  for (std::size_t k = 0; k < axes.size(); ++k) {
    layout.extent[k] = axes[k].extent;
    for (int t = 0; t < CrossEntropyLayout::tensors; ++t) layout.stride[t][k] = axes[k].stride[t];
  }
  if (is_reduced) set_strides_of_scalar(layout, has_loss);
  if (layout.rows == 0) return layout;
  if (layout.cols > 1) {
    layout.col_stride[0] = given.logits.stride[axis];
    layout.col_stride[1] = exists(given.dlogits) ? given.dlogits.stride[axis] : 1;
  }
  if (have_unit_columns(layout.col_stride, 2)) {
    layout.form = exists(given.dlogits) ? form_of({given.logits, given.dlogits}, axes) : form_of({given.logits}, axes);
  }
  return layout;
}

void complain_of_label(const char* function, std::int64_t row, const std::string& label, std::int64_t classes,
                       std::int64_t ignore_index) {
  (ArgumentError(function) << "the label of row " << row << " is " << label << ", neither one of the " << classes
                       << " classes, 0 to " << classes - 1 << ", nor ignore_index " << ignore_index)
      .raise();
}

}  // namespace KokkosNN::Impl
