// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/call/layout.hpp>

#include "argument_error.hpp"
#include "axes.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <initializer_list>
#include <iterator>
#include <utility>
#include <vector>

namespace KokkosNN::Impl {
namespace {

using RowAxis = Axis<max_tensors>;
using RowAxes = Axes<max_tensors>;

int resolve_axis(const char* function, int axis, int rank) {
  const int resolved = axis < 0 ? axis + rank : axis;
  if (resolved < 0 || resolved >= rank) {
    (ArgumentError(function) << "axis " << axis << " is out of range for rank " << rank).raise();
  }
  return resolved;
}

/// One term of an address difference: stride * i, low <= i <= high, in bytes, stride > 0.
struct Term {
  std::int64_t stride;
  std::int64_t low;
  std::int64_t high;
};

/// Those of one or two tensors.
using Terms = FixedVector<Term, 2 * max_rank>;

/// Collects the terms of `sign * address`, joined with what is there if the strides are equal.
void add_terms(Terms& terms, const Tensor& t, int sign) {
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

/// True if some choice of the terms from number k on sums to a value in [low, high]. Terms come largest stride first,
/// so in a regular layout only a few choices survive a level; `budget` bounds the search, and running out of it counts
/// as yes.
bool can_reach(const Terms& terms, std::size_t k, std::int64_t low, std::int64_t high, int& budget) {
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

/// True if each axis, of which the first has the largest stride, steps over all that the axes behind it reach: then no
/// two elements share a byte.
bool is_nested(const Terms& axes, int element_bytes) {
  std::int64_t reached = element_bytes;
  for (std::size_t k = axes.size(); k-- > 0;) {
    if (axes[k].stride < reached) return false;
    reached += axes[k].stride * axes[k].high;
  }
  return true;
}

/// True if two elements of t share a byte: some difference of two indices that is not zero leads to less than an
/// element.
bool overlaps_itself(const Tensor& t) {
  Terms axes;
  for (int k = 0; k < t.rank; ++k) {
    if (t.extent[k] <= 1) continue;
    if (t.stride[k] == 0) return true;  // terms have strides, which are divided by
    axes.push_back({std::llabs(t.stride[k]) * t.element_bytes, 0, t.extent[k] - 1});
  }
  sort_few(axes.begin(), axes.end(), [](const Term& a, const Term& b) { return a.stride > b.stride; });
  if (is_nested(axes, t.element_bytes)) return false;
  int budget = 100000;
  for (std::size_t lead = 0; lead < axes.size(); ++lead) {
    Terms differences;
    differences.push_back({axes[lead].stride, 1, axes[lead].high});
    for (std::size_t k = lead + 1; k < axes.size(); ++k) {
      differences.push_back({axes[k].stride, -axes[k].high, axes[k].high});
    }
    if (can_reach(differences, 0, 1 - t.element_bytes, t.element_bytes - 1, budget)) return true;
  }
  return false;
}

/// The tensors of a call, with their parts in it.
struct GivenTensors {
  const char* function;
  Operands operands;
  const Tensors& tensors;
  int axis;

  const Tensor& rows() const { return tensors[0]; }
  std::int64_t cols() const { return rows().extent[axis]; }
  Tensor rest() const { return without_axis(rows(), axis); }

  /// f(operand, tensor, number) for all tensors that exist.
  template <class F>
  void for_each(const F& f) const {
    for (int t = 0; t < operands.count; ++t) {
      if (tensors[t].exists()) f(operands.of[t], tensors[t], t);
    }
  }
  /// All tensors that exist and whose operand `is_one` have a property.
  template <class IsOne, class Holds>
  bool all_of(const IsOne& is_one, const Holds& holds) const {
    bool all = true;
    for_each([&](const Operand& operand, const Tensor& t, int number) {
      if (is_one(operand)) all = all && holds(t, number);
    });
    return all;
  }
  template <class Holds>
  bool all_with_columns(const Holds& holds) const {
    return all_of([](const Operand& operand) { return operand.extents == Extents::rows; }, holds);
  }
};

/// The axes of rows, but for those of one element.
RowAxes axes_of(const GivenTensors& given) {
  const Tensor rest = given.rest();
  RowAxes axes;
  for (int k = 0; k < rest.rank; ++k) {
    if (rest.extent[k] == 1) continue;
    RowAxis axis{rest.extent[k], {}, k};
    given.for_each([&](const Operand& operand, const Tensor& t, int number) {
      if (operand.extents == Extents::rows) axis.stride[number] = t.stride[k < given.axis ? k : k + 1];
      if (operand.extents == Extents::row_values) axis.stride[number] = t.stride[k];
    });
    axes.push_back(axis);
  }
  return axes;
}

constexpr std::int64_t access_bytes = 16;

/// True if all rows of the `number`-th tensor, t, start at a 16-byte boundary.
bool are_rows_aligned(const Tensor& t, const RowAxes& axes, int number) {
  if (reinterpret_cast<std::uintptr_t>(t.data) % access_bytes != 0) return false;
  return std::all_of(axes.begin(), axes.end(),
                     [&](const RowAxis& axis) { return axis.stride[number] * t.element_bytes % access_bytes == 0; });
}

/// True if packs of any length begin at the same columns in x and in t, the `number`-th tensor, row by row.
bool do_packs_agree(const Tensor& x, const Tensor& t, const RowAxes& axes, int number) {
  const std::int64_t pack = access_bytes / std::min(x.element_bytes, t.element_bytes);
  const auto elements     = [](const Tensor& tensor) {
    return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(tensor.data)) / tensor.element_bytes;
  };
  if ((elements(x) - elements(t)) % pack != 0) return false;
  return std::all_of(axes.begin(), axes.end(),
                     [&](const RowAxis& axis) { return (axis.stride[0] - axis.stride[number]) % pack == 0; });
}

/// Form of rows whose columns have stride 1 in all tensors.
RowForm form_of(const GivenTensors& given, const RowAxes& axes) {
  const auto is_aligned = [&](const Tensor& t, int number) { return are_rows_aligned(t, axes, number); };
  const auto agrees     = [&](const Tensor& t, int number) { return do_packs_agree(given.rows(), t, axes, number); };
  if (axes.size() <= 1 && given.all_with_columns(is_aligned)) return RowForm::aligned;
  return given.all_with_columns(agrees) ? RowForm::misaligned : RowForm::strided;
}

/// True if the rows of all inputs and of the output lie one behind another from a 16-byte boundary on.
bool is_one_piece(const GivenTensors& given, const RowsLayout& layout) {
  const auto counts = [](const Operand& operand) {
    return operand.extents == Extents::rows || (operand.extents == Extents::row_values && !operand.is_output);
  };
  return layout.n == 1 && given.all_of(counts, [&](const Tensor& t, int number) {
    return layout.stride[number][0] == layout.cols && reinterpret_cast<std::uintptr_t>(t.data) % access_bytes == 0;
  });
}

/// Rows of tensors along such axes.
RowsLayout layout_of(const GivenTensors& given, const RowAxes& axes) {
  RowsLayout layout;
  layout.rows = element_count(given.rest());
  layout.cols = given.cols();
  layout.n    = static_cast<int>(axes.size());
  for (std::size_t k = 0; k < axes.size(); ++k) {
    layout.extent[k] = axes[k].extent;
    for (int t = 0; t < max_tensors; ++t) layout.stride[t][k] = axes[k].stride[t];
  }
  given.for_each([&](const Operand& operand, const Tensor& t, int number) {
    if (operand.extents == Extents::rows) layout.col_stride[number] = layout.cols == 1 ? 1 : t.stride[given.axis];
    if (operand.extents == Extents::columns) layout.col_stride[number] = t.stride[0];
    layout.sums_rows |= operand.extents == Extents::columns && operand.is_output;
  });
  return layout;
}

bool has_unit_columns(const GivenTensors& given, const RowsLayout& layout) {
  return given.all_with_columns([&](const Tensor&, int number) { return layout.col_stride[number] == 1; });
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

void validate_extents(const GivenTensors& given) {
  const char* x_name = given.operands.of[0].name;
  given.for_each([&](const Operand& operand, const Tensor& t, int) {
    if (operand.extents == Extents::rows) {
      require_same_extents(given.function, x_name, given.rows(), operand.name, t, given.rows());
    } else if (operand.extents == Extents::row_values) {
      require_same_extents(given.function, x_name, given.rows(), operand.name, t, given.rest());
    }
  });
}

/// Complains unless a tensor of columns has so many, by what they are called.
void validate_columns(const GivenTensors& given, std::int64_t count, const char* columns) {
  given.for_each([&](const Operand& operand, const Tensor& t, int) {
    if (operand.extents != Extents::columns || t.extent[0] == count) return;
    (ArgumentError(given.function) << operand.name << " must have one element for each of the " << count << ' '
                                   << columns << ", but has " << t.extent[0])
        .raise();
  });
}

/// Outputs share memory with nothing, but for rows that are written where rows are read.
void validate_memory(const GivenTensors& given) {
  given.for_each([&](const Operand& to, const Tensor& output, int written) {
    if (!to.is_output) return;
    validate_output(given.function, output);
    given.for_each([&](const Operand& from, const Tensor& t, int number) {
      const bool have_rows = to.extents == Extents::rows && from.extents == Extents::rows && !from.is_output;
      if (number == written || (have_rows && is_same_view(t, output))) return;
      const bool may_be_same = t.element_bytes == output.element_bytes;
      if (overlaps(t, output)) raise_overlap(given.function, from.name, t, "the output", output, may_be_same);
    });
  });
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

Operands operands_of(RowOperator op) {
  constexpr Operand x{"x", Extents::rows}, y{"y", Extents::rows, true};
  constexpr Operand dx{"dx", Extents::rows, true}, dy{"dy", Extents::rows};
  constexpr Operand residual{"residual", Extents::rows}, sum{"sum", Extents::rows}, dsum{"dsum", Extents::rows};
  constexpr Operand weight{"weight", Extents::columns}, bias{"bias", Extents::columns};
  constexpr Operand mean{"mean", Extents::row_values}, rstd{"rstd", Extents::row_values};
  constexpr Operand dweight{"dweight", Extents::columns, true}, dbias{"dbias", Extents::columns, true};
  const auto written = [](Operand operand) {
    operand.is_output = true;
    return operand;
  };
  switch (traits_of(op).family) {
    case OperatorFamily::forward:
    case OperatorFamily::masked:
      return is_reduction(op) ? Operands{{x, {"lse", Extents::row_values, true}}, 2} : Operands{{x, y}, 2};
    case OperatorFamily::gradient:
    case OperatorFamily::masked_gradient:
      return {{{"y", Extents::rows}, dx, dy}, 3};
    case OperatorFamily::value_gradient:
      return {{x, dx, {"dlse", Extents::row_values}, {"lse", Extents::row_values}}, 4};
    case OperatorFamily::soft_loss:
      return {{{"logits", Extents::rows},
               {"dlogits", Extents::rows, true},
               {"targets", Extents::rows},
               {"weights", Extents::columns},
               {"loss", Extents::row_values, true},
               {"lse", Extents::row_values, true}},
              6};
    case OperatorFamily::norm:
      return op == RowOperator::rms_norm ? Operands{{x, y, weight, written(rstd)}, 4}
                                         : Operands{{x, y, weight, bias, written(mean), written(rstd)}, 6};
    case OperatorFamily::norm_gradient:
      return op == RowOperator::rms_norm_backward ? Operands{{x, dx, dy, weight, rstd, dweight}, 6}
                                                  : Operands{{x, dx, dy, weight, mean, rstd, dweight, dbias}, 8};
    case OperatorFamily::add_norm:
      return op == RowOperator::add_rms_norm
                 ? Operands{{x, y, residual, weight, written(rstd), written(sum)}, 6}
                 : Operands{{x, y, residual, weight, bias, written(mean), written(rstd), written(sum)}, 8};
    case OperatorFamily::add_norm_gradient:
      return op == RowOperator::add_rms_norm_backward
                 ? Operands{{sum, dx, dy, dsum, weight, rstd, dweight}, 7}
                 : Operands{{sum, dx, dy, dsum, weight, mean, rstd, dweight, dbias}, 9};
    case OperatorFamily::cross_entropy:
      break;
  }
  const bool has_loss = !is_elementwise(op);  // the backward has its gradient
  return {{{"logits", Extents::rows},
           {"dlogits", Extents::rows, true},
           {"labels", Extents::row_values},
           {has_loss ? "loss" : "dloss", Extents::row_values, has_loss},
           {"lse", Extents::row_values, has_loss},
           {"weights", Extents::columns},
           {"predicted", Extents::row_values, true}},
          7};
}

RowsLayout layout_of_shard(RowOperator op, int axis, const Tensors& tensors) {
  const GivenTensors given{to_string(op), operands_of(op), tensors, axis};
  const RowAxes axes = merged(axes_of(given));
  RowsLayout layout  = layout_of(given, axes);
  if (has_unit_columns(given, layout)) layout.form = form_of(given, axes);
  return layout;
}

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

std::vector<int> row_axes(RowOperator op, const Tensors& tensors) {
  std::vector<int> numbers;
  const GivenTensors given{to_string(op), operands_of(op), tensors, tensors[0].rank - 1};
  for (const RowAxis& axis : sorted(axes_of(given))) numbers.push_back(axis.number);
  return numbers;
}

bool is_same_view(const Tensor& x, const Tensor& y) {
  if (x.data != y.data || x.element_bytes != y.element_bytes || x.rank != y.rank) return false;
  for (int k = 0; k < x.rank; ++k) {
    if (x.extent[k] != y.extent[k] || (x.extent[k] > 1 && x.stride[k] != y.stride[k])) return false;
  }
  return true;
}

bool overlaps(const Tensor& x, const Tensor& y) {
  if (element_count(x) == 0 || element_count(y) == 0) return false;
  Terms terms;
  add_terms(terms, x, 1);
  add_terms(terms, y, -1);
  sort_few(terms.begin(), terms.end(), [](const Term& a, const Term& b) { return a.stride > b.stride; });
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

void validate_fused_axis(const char* function, const SoftmaxOptions& options) {
  if (options.axis == -1 && options.axes == 1) return;
  (ArgumentError(function) << "rows from a functor are reduced over their columns: axis must be -1, but is "
                           << options.axis << ", and axes 1, but is " << options.axes)
      .raise();
}

void require_same_layout(const char* function, const RowsLayout& planned, const RowsLayout& layout) {
  if (planned == layout) return;
  (ArgumentError(function) << "the plan was made for " << planned.rows << " rows of " << planned.cols
                           << " with other extents, strides or alignment than the Views given now, " << layout.rows
                           << " rows of " << layout.cols)
      .raise();
}

bool writes(RowOperator op, const RowsLayout& layout) {
  if (is_cross_entropy(op) || traits_of(op).family == OperatorFamily::soft_loss) return true;
  return (layout.rows > 0 || layout.sums_rows) && (layout.cols > 0 || is_reduction(op));
}

namespace {

/// Checks a call's extents and, if `has_results(layout)`, its memory.
template <class HasResults>
RowsLayout normalised(const GivenTensors& given, const HasResults& has_results) {
  validate_extents(given);
  validate_columns(given, given.cols(), "columns");
  const RowAxes axes = merged(sorted(axes_of(given)));
  RowsLayout layout  = layout_of(given, axes);
  if (!has_results(layout)) return layout;
  validate_memory(given);
  if (has_unit_columns(given, layout)) {
    layout.form      = form_of(given, axes);
    layout.one_piece = is_one_piece(given, layout);
  }
  return layout;
}

RowsLayout normalised(const char* function, RowOperator op, const Tensors& tensors, int axis) {
  const GivenTensors given{function, operands_of(op), tensors, resolve_axis(function, axis, tensors[0].rank)};
  return normalised(given, [&](const RowsLayout& layout) { return writes(op, layout); });
}

/// One axis in the place of some that rows run along.
struct MergedAxis {
  std::int64_t extent = 1;
  std::int64_t stride = 1;
  bool exists         = true;  ///< elements are at one distance
};

/// Axes `first` to `first + axes - 1` of a tensor as one, whose elements are numbered with the last axis fastest, or
/// the first one.
MergedAxis merged_axis(const Tensor& t, int first, int axes, bool last_is_fastest) {
  MergedAxis merged;
  for (int i = 0; i < axes; ++i) {
    const int k = last_is_fastest ? first + axes - 1 - i : first + i;
    if (t.extent[k] == 1) continue;
    if (merged.extent == 1) merged.stride = t.stride[k];
    merged.exists &= t.stride[k] == merged.stride * merged.extent;
    merged.extent *= t.extent[k];
  }
  merged.exists |= merged.extent == 0;
  return merged;
}

Tensor with_axis(const Tensor& t, int first, int axes, const MergedAxis& merged) {
  Tensor result        = t;
  result.rank          = t.rank - axes + 1;
  result.extent[first] = merged.extent;
  result.stride[first] = merged.stride;
  for (int k = first + 1; k < result.rank; ++k) {
    result.extent[k] = t.extent[k + axes - 1];
    result.stride[k] = t.stride[k + axes - 1];
  }
  return result;
}

/// The tensors of a call that reduces several axes, with one in their place. Throws where elements are not at one
/// distance, in an order that is the same in all tensors.
Tensors with_one_axis(const char* function, const Operands& operands, const Tensors& tensors, int first, int axes) {
  const GivenTensors given{function, operands, tensors, first};
  if (axes < 1 || first + axes > given.rows().rank) {
    (ArgumentError(function) << "axes must be 1 to " << given.rows().rank - first << " from axis " << first
                             << " on, but is " << axes)
        .raise();
  }
  given.for_each([&](const Operand& operand, const Tensor& t, int) {
    const int rank = given.rows().rank - (operand.extents == Extents::row_values ? axes : 0);
    if (t.rank == rank) return;
    (ArgumentError(function) << operand.name << " must have rank " << rank << " beside " << given.operands.of[0].name
                             << " of rank " << given.rows().rank << " and axes " << axes << ", but has rank " << t.rank)
        .raise();
  });
  if (axes == 1) return tensors;
  const auto merges = [&](bool last_is_fastest) {
    return given.all_with_columns(
        [&](const Tensor& t, int) { return merged_axis(t, first, axes, last_is_fastest).exists; });
  };
  given.for_each([&](const Operand& operand, const Tensor& t, int) {  // several axes may have one product
    if (operand.extents != Extents::rows) return;
    require_same_extents(function, given.operands.of[0].name, given.rows(), operand.name, t, given.rows());
  });
  const bool last_is_fastest = merges(true);
  if (!last_is_fastest && !merges(false)) {
    ArgumentError complaint(function);
    complaint << "the axes " << first << " to " << first + axes - 1
              << " must lie at one stride, in the same order in all tensors, but strides are ";
    given.for_each([&](const Operand& operand, const Tensor& t, int) {
      if (operand.extents == Extents::rows) complaint << strides_of(t) << " of " << operand.name << ' ';
    });
    complaint << "beside extents " << shape_of(given.rows());
    complaint.raise();
  }
  Tensors merged = tensors;
  given.for_each([&](const Operand& operand, const Tensor& t, int number) {
    if (operand.extents != Extents::rows) return;
    merged[number] = with_axis(t, first, axes, merged_axis(t, first, axes, last_is_fastest));
  });
  return merged;
}

void validate_epsilon(const char* function, double epsilon) {
  if (std::isfinite(epsilon) && epsilon >= 0) return;
  (ArgumentError(function) << "epsilon must be finite and not negative, but is " << epsilon).raise();
}

/// Operands of a call whose results are quantised, in the order of QuantizedTensors.
Operands quantized_operands() {
  return {{{"x", Extents::rows},
           {"y", Extents::rows, true},
           {"scales", Extents::row_values, true},
           {"weight", Extents::columns},
           {"bias", Extents::columns}},
          5};
}

/// Rows of such a call along one axis.
RowsLayout normalised_quantized(const char* function, const Tensors& tensors, int axis, const PlanRequest& plan) {
  if (plan != PlanRequest{}) {
    (ArgumentError(function) << "there is one kernel, so options.plan must be empty").raise();
  }
  const GivenTensors given{function, quantized_operands(), tensors, resolve_axis(function, axis, tensors[0].rank)};
  return normalised(given, [](const RowsLayout& layout) { return layout.rows > 0 && layout.cols > 0; });
}

}  // namespace

void validate_rms_norm(const char* function, double epsilon, double weight_offset) {
  validate_epsilon(function, epsilon);
  if (std::isfinite(weight_offset)) return;
  (ArgumentError(function) << "weight_offset must be finite, but is " << weight_offset).raise();
}

RowsLayout normalise(const char* function, RowOperator op, const Tensors& tensors, const SoftmaxOptions& options) {
  validate_scale(function, options.scale);
  const int axis = resolve_axis(function, options.axis, tensors[0].rank);
  return normalised(function, op, with_one_axis(function, operands_of(op), tensors, axis, options.axes), axis);
}

RowsLayout normalise(const char* function, RowOperator op, const Tensors& tensors, const RmsNormOptions& options) {
  validate_rms_norm(function, options.epsilon, options.weight_offset);
  return normalised(function, op, tensors, options.axis);
}

RowsLayout normalise(const char* function, RowOperator op, const Tensors& tensors, const LayerNormOptions& options) {
  validate_epsilon(function, options.epsilon);
  return normalised(function, op, tensors, options.axis);
}

RowsLayout normalise_quantized(const char* function, const Tensors& tensors, const SoftmaxOptions& options) {
  validate_scale(function, options.scale);
  const int axis       = resolve_axis(function, options.axis, tensors[0].rank);
  const Tensors merged = with_one_axis(function, quantized_operands(), tensors, axis, options.axes);
  return normalised_quantized(function, merged, axis, options.plan);
}

RowsLayout normalise_quantized(const char* function, const Tensors& tensors, const RmsNormOptions& options) {
  validate_rms_norm(function, options.epsilon, options.weight_offset);
  return normalised_quantized(function, tensors, options.axis, options.plan);
}

RowsLayout normalise_quantized(const char* function, const Tensors& tensors, const LayerNormOptions& options) {
  validate_epsilon(function, options.epsilon);
  return normalised_quantized(function, tensors, options.axis, options.plan);
}

RowsLayout normalise_column_sums(const char* function, const Tensors& tensors, int axis) {
  const Operands operands{{{"x", Extents::rows}, {"y", Extents::columns, true}}, 2};
  const GivenTensors given{function, operands, tensors, resolve_axis(function, axis, tensors[0].rank)};
  validate_columns(given, given.cols(), "columns");
  validate_memory(given);
  return layout_of(given, merged(sorted(axes_of(given))));
}

RowProblem problem_of(RowOperator op, const RowsLayout& layout, const Tensors& tensors) {
  const Operands operands = operands_of(op);
  const Tensor& x         = tensors[0];
  const Tensor& y         = tensors[1];
  const bool writes_rows  = y.exists() && operands.of[1].extents == Extents::rows;
  RowProblem problem;
  problem.op           = op;
  problem.x_type       = x.type;
  problem.y_type       = y.exists() ? y.type : x.type;
  problem.x_bytes      = 0;
  problem.y_bytes      = writes_rows ? y.element_bytes : x.element_bytes;
  problem.rows         = layout.rows;
  problem.cols         = layout.cols;
  problem.x_col_stride = layout.col_stride[0];
  problem.y_col_stride = writes_rows ? layout.col_stride[1] : 1;
  problem.form         = layout.form;
  problem.one_stride   = layout.n <= 1;
  problem.one_piece    = layout.one_piece;
  problem.inner        = 0;
  if (is_gradient(op)) problem.dy_type = tensors[GradientTensors::dy].type;
  if (!is_cross_entropy(op)) {  // it has no lanes over another axis
    problem.inner            = layout.inner();
    problem.inner_contiguous = layout.inner_contiguous();
  }
  for (int t = 0; t < operands.count; ++t) {
    const bool has_rows = operands.of[t].extents == Extents::rows && !operands.of[t].is_output;
    if (has_rows) problem.x_bytes = std::max(problem.x_bytes, tensors[t].element_bytes);
    if (tensors[t].type == ElementType::f64) problem.accumulator_bytes = sizeof(double);
  }
  return problem;
}

namespace {

void validate_label_smoothing(const char* function, double smoothing) {
  if (smoothing >= 0 && smoothing <= 1) return;
  (ArgumentError(function) << "label_smoothing must be within 0 to 1, but is " << smoothing).raise();
}

void validate_gradient_scale(const char* function, double scale) {
  if (!std::isfinite(scale)) (ArgumentError(function) << "gradient_scale must be finite, but is " << scale).raise();
}

void validate_cross_entropy_options(const char* function, const CrossEntropyOptions& options) {
  const auto require = [&](bool holds, const char* what, double value) {
    if (!holds) (ArgumentError(function) << what << ", but is " << value).raise();
  };
  const double cap = options.softcap;
  validate_label_smoothing(function, options.label_smoothing);
  require(std::isfinite(options.z_loss), "z_loss must be finite", options.z_loss);
  require(cap == 0 || (cap >= 0x1p-100 && cap <= 0x1p100), "softcap must be 0 or within 2^-100 to 2^100", cap);
  validate_gradient_scale(function, options.gradient_scale);
}

/// The loss, or its gradient, has one axis less than the logits, or none.
void validate_rank_of_loss(const GivenTensors& given, int number, Reduction reduction) {
  const Tensor& loss = given.tensors[number];
  const char* name   = given.operands.of[number].name;
  if (!loss.exists()) return;
  if (reduction == Reduction::none && loss.rank != given.rows().rank - 1) {
    (ArgumentError(given.function) << name << " must have one axis less than logits with Reduction::none, but has rank "
                                   << loss.rank << " and logits rank " << given.rows().rank)
        .raise();
  }
  if (reduction != Reduction::none && loss.rank != 0) {
    (ArgumentError(given.function) << name
                                   << " must be of rank 0 with Reduction::mean and Reduction::sum, but has rank "
                                   << loss.rank)
        .raise();
  }
}

/// The classes that columns are: of the backward alone they may be some.
ClassShard shard_of(const GivenTensors& given, RowOperator op, const CrossEntropyOptions& options,
                    const ClassShard* shared) {
  const std::int64_t cols  = given.cols();
  const bool has_some      = options.first_class != 0 || options.classes != 0;
  const bool may_have_some = op == RowOperator::cross_entropy_backward && shared == nullptr;
  if (has_some && !may_have_some) {
    (ArgumentError(given.function) << "first_class and classes are for cross_entropy_backward alone and must be 0, but "
                                      "are "
                                   << options.first_class << " and " << options.classes)
        .raise();
  }
  ClassShard shard{options.first_class, cols, options.classes != 0 ? options.classes : cols};
  if (shared != nullptr) shard = {shared->first, cols, shared->classes};
  if (shard.first < 0 || shard.first + cols > shard.classes) {
    (ArgumentError(given.function) << "logits have the columns of " << cols << " classes from number " << shard.first
                                   << " on, but there are only " << shard.classes)
        .raise();
  }
  return shard;
}

/// Predicted classes are signed integers of 32 or 64 bits, which hold all classes.
void validate_predicted(const GivenTensors& given, std::int64_t classes) {
  const Tensor& predicted = given.tensors[CrossEntropyTensors::predicted];
  if (!predicted.exists()) return;
  if (!predicted.is_signed || predicted.element_bytes < 4) {
    (ArgumentError(given.function) << "predicted must hold signed integers of 32 or 64 bits, but holds "
                                   << (predicted.is_signed ? "signed" : "unsigned") << " ones of "
                                   << 8 * predicted.element_bytes << " bits")
        .raise();
  }
  if (predicted.element_bytes == 4 && classes - 1 > INT32_MAX) {
    (ArgumentError(given.function) << "predicted holds 32 bits, too few for " << classes << " classes").raise();
  }
}

/// Strides of a reduced loss: the rows' losses are one after the other, in the order in which kernels count rows. Its
/// gradient is one value for all rows.
void set_strides_of_scalar(RowsLayout& layout, int number, bool has_loss) {
  std::int64_t stride = has_loss ? 1 : 0;
  for (int k = layout.n - 1; k >= 0; --k) {
    layout.stride[number][k] = stride;
    stride *= layout.extent[k];
  }
}

}  // namespace

LabelledLayout normalise(const char* function, RowOperator op, const Tensors& tensors,
                         const CrossEntropyOptions& options, const ClassShard* shared) {
  validate_cross_entropy_options(function, options);
  GivenTensors given{function, operands_of(op), tensors, resolve_axis(function, options.axis, tensors[0].rank)};
  if (shared != nullptr && given.axis != tensors[0].rank - 1) {
    (ArgumentError(function) << "ranks share classes along the last axis, but options.axis is " << options.axis)
        .raise();
  }
  const bool is_reduced = options.reduction != Reduction::none;
  Operand& loss         = given.operands.of[CrossEntropyTensors::loss];
  if (is_reduced) loss.extents = Extents::call;
  validate_rank_of_loss(given, CrossEntropyTensors::loss, options.reduction);
  validate_extents(given);
  const ClassShard shard = shard_of(given, op, options, shared);
  validate_predicted(given, shard.classes);
  validate_columns(given, shard.classes, "classes");

  const RowAxes axes = merged(sorted(axes_of(given)));
  LabelledLayout layout{layout_of(given, axes), shard};
  if (is_reduced) set_strides_of_scalar(layout, CrossEntropyTensors::loss, loss.is_output);
  if (layout.rows == 0) return layout;
  if (shard.classes == 0) (ArgumentError(function) << "logits have no classes").raise();
  validate_memory(given);
  if (has_unit_columns(given, layout)) layout.form = form_of(given, axes);
  return layout;
}

RowsLayout normalise(const char* function, RowOperator op, const Tensors& tensors,
                     const SoftCrossEntropyOptions& options) {
  using Is = SoftLossTensors;
  validate_label_smoothing(function, options.label_smoothing);
  validate_gradient_scale(function, options.gradient_scale);
  GivenTensors given{function, operands_of(op), tensors, resolve_axis(function, options.axis, tensors[0].rank)};
  const bool is_reduced = options.reduction != Reduction::none;
  if (is_reduced) given.operands.of[Is::loss].extents = Extents::call;
  validate_rank_of_loss(given, Is::loss, options.reduction);
  validate_extents(given);
  validate_columns(given, given.cols(), "classes");
  const RowAxes axes = merged(sorted(axes_of(given)));
  RowsLayout layout  = layout_of(given, axes);
  if (is_reduced) set_strides_of_scalar(layout, Is::loss, true);
  if (layout.rows == 0) return layout;
  if (layout.cols == 0) (ArgumentError(function) << "logits have no classes").raise();
  validate_memory(given);
  if (has_unit_columns(given, layout)) layout.form = form_of(given, axes);
  return layout;
}

std::int64_t validate_loss_of_lse(const char* function, const Tensors& tensors, const CrossEntropyOptions& options) {
  using Is = LossOfLseTensors;
  const Operands operands{{{"lse", Extents::row_values},
                           {"loss", Extents::row_values, true},
                           {"label_logits", Extents::row_values},
                           {"labels", Extents::row_values},
                           {"weights", Extents::columns}},
                          5};
  const GivenTensors given{function, operands, tensors, 0};
  validate_cross_entropy_options(function, options);
  const auto refuse = [&](const char* option, double value) {
    if (value == 0) return;
    (ArgumentError(function) << option << " must be 0, as a log-sum-exp does not tell all logits, but is " << value)
        .raise();
  };
  refuse("label_smoothing", options.label_smoothing);
  refuse("softcap", options.softcap);
  refuse("first_class", static_cast<double>(options.first_class));
  const Tensor& lse     = tensors[Is::lse];
  const Tensor& weights = tensors[Is::weights];
  given.for_each([&](const Operand& operand, const Tensor& t, int number) {
    if (number == Is::weights || (number == Is::loss && options.reduction != Reduction::none)) return;
    if (t.rank == lse.rank && std::equal(lse.extent, lse.extent + lse.rank, t.extent)) return;
    (ArgumentError(function) << operand.name << " must have the extents of lse, " << shape_of(lse) << ", but has "
                             << shape_of(t))
        .raise();
  });
  if (options.reduction != Reduction::none && tensors[Is::loss].rank != 0) {
    (ArgumentError(function) << "loss must be of rank 0 with Reduction::mean and Reduction::sum, but has rank "
                             << tensors[Is::loss].rank)
        .raise();
  }
  if (options.classes < 0 || (options.classes != 0 && weights.exists() && weights.extent[0] != options.classes)) {
    (ArgumentError(function) << "classes must be 0 or the number of weights, but is " << options.classes << " beside "
                             << (weights.exists() ? weights.extent[0] : 0) << " weights")
        .raise();
  }
  validate_memory(given);
  if (options.classes != 0) return options.classes;
  return weights.exists() ? weights.extent[0] : INT64_MAX;
}

void complain_of_label(const char* function, std::int64_t row, const std::string& label, std::int64_t classes,
                       std::int64_t ignore_index) {
  (ArgumentError(function) << "the label of row " << row << " is " << label << ", neither one of the " << classes
                           << " classes, 0 to " << classes - 1 << ", nor ignore_index " << ignore_index)
      .raise();
}

}  // namespace KokkosNN::Impl
