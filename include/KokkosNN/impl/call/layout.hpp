// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_LAYOUT_HPP
#define KOKKOSNN_IMPL_CALL_LAYOUT_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/export.hpp>
#include <KokkosNN/impl/inputs/row_map.hpp>
#include <KokkosNN/options.hpp>
#include <KokkosNN/plan.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <vector>

// From a View of any rank, layout and axis to rows: validation and normalisation, on the host, without a template.

namespace KokkosNN::Impl {

inline constexpr int max_rank = 8;

/// Rows of these extents, the last fastest, as a map to a tensor of these strides.
KOKKOSNN_EXPORT RowMap row_map(const std::int64_t* extent, const std::int64_t* stride, int dims);

/// A View, erased. Strides are in elements and signed: Kokkos keeps them unsigned, and a reversed axis wraps around.
struct Tensor {
  const void* data              = nullptr;
  int element_bytes             = 0;
  int rank                      = 0;
  std::int64_t extent[max_rank] = {};
  std::int64_t stride[max_rank] = {};
  ElementType type              = ElementType::other;
  bool is_signed                = false;

  /// A call has this tensor.
  bool exists() const { return element_bytes != 0; }
};

template <Concepts::View V>
Tensor tensor_of(const V& view) {
  using T = typename V::non_const_value_type;
  Tensor t;
  t.data          = view.data();
  t.element_bytes = sizeof(T);
  t.rank          = static_cast<int>(V::rank());
  t.type          = element_type<T>();
  t.is_signed     = std::is_signed_v<T>;
  for (int k = 0; k < t.rank; ++k) {
    t.extent[k] = static_cast<std::int64_t>(view.extent(static_cast<std::size_t>(k)));
    t.stride[k] = static_cast<std::int64_t>(view.stride(k));
  }
  return t;
}

/// A type without memory, for rows that a functor gives or takes.
template <class T>
Tensor tensor_of_type() {
  Tensor t;
  t.element_bytes = sizeof(T);
  t.type          = element_type<T>();
  return t;
}

inline constexpr int max_tensors = 9;

/// The tensors of a call, by the numbers of its operator: 0 has the rows that are read, 1 those that are written.
struct Tensors {
  Tensor of[max_tensors] = {};

  Tensor& operator[](int number) { return of[number]; }
  const Tensor& operator[](int number) const { return of[number]; }
};

/// Tensors of softmax, log_softmax and logsumexp, whose y is the log-sum-exps.
struct SoftmaxTensors {
  enum Number { x, y };
};
/// Tensors of a gradient: what the forward call left (y; of logsumexp its input x), dx, and dy; of logsumexp dlse and
/// lse.
struct GradientTensors {
  enum Number { x, dx, dy, lse };
};
/// Tensors of a cross entropy. The loss is its gradient in the backward.
struct CrossEntropyTensors {
  enum Number { logits, dlogits, labels, loss, lse, weights, predicted };
};

/// Tensors of a cross entropy against probabilities.
struct SoftLossTensors {
  enum Number { logits, dlogits, targets, weights, loss, lse };
};

/// Tensors of a loss from log-sum-exps: a value a row, but for the weights.
struct LossOfLseTensors {
  enum Number { lse, loss, label_logits, labels, weights };
};

/// Tensors of rows whose results are quantised; `columns` is the first operand of one element a column.
struct QuantizedTensors {
  enum Number { x, y, scales, columns };
};

/// Tensors of sums over rows.
struct ColumnSumsTensors {
  enum Number { x, y };
};

/// Extents that a tensor of a call has.
enum class Extents {
  rows,        ///< of the rows that are read
  row_values,  ///< of these without the reduced axis
  columns,     ///< of the reduced axis alone
  call         ///< none
};

/// A tensor as its operator knows it.
struct Operand {
  const char* name;  ///< in messages
  Extents extents;
  bool is_output = false;
};

/// Operands of an operator, by number.
struct Operands {
  Operand of[max_tensors];
  int count;

  constexpr const Operand* begin() const { return of; }
  constexpr const Operand* end() const { return of + count; }
};

KOKKOSNN_EXPORT Operands operands_of(RowOperator op);

/// The tensors of a call as rows: the reduced axis apart, all other axes ordered (the last runs fastest) and merged
/// where they can be. A tensor of one value a row has stride 0 along the reduced axis, one of columns along all others;
/// strides of a tensor that there is not are 0.
struct RowsLayout {
  std::int64_t rows                              = 0;
  std::int64_t cols                              = 0;
  std::int64_t col_stride[max_tensors]           = {};
  int n                                          = 0;  ///< axes left in extent and stride
  std::int64_t extent[max_row_dims]              = {};
  std::int64_t stride[max_tensors][max_row_dims] = {};
  RowForm form                                   = RowForm::strided;  ///< of all tensors with the rows' extents
  bool one_piece                                 = false;             ///< as RowProblem has it
  bool sums_rows                                 = false;  ///< an output of one element a column is a sum over rows

  /// The axis that inner_lanes runs its lanes over: the last one.
  std::int64_t inner() const { return n > 0 ? extent[n - 1] : 1; }
  std::int64_t inner_stride(int tensor) const { return stride[tensor][n > 0 ? n - 1 : 0]; }
  bool inner_contiguous() const { return n > 0 && stride[0][n - 1] == 1; }

  RowMap map(int tensor) const { return row_map(extent, stride[tensor], n); }
  RowMap outer_map(int tensor) const { return row_map(extent, stride[tensor], n - 1); }

  bool operator==(const RowsLayout&) const = default;
};

/// Rows of logits, and the classes that their columns are.
struct LabelledLayout : RowsLayout {
  ClassShard shard = {};
};

/// Checks a call and describes it as rows. `function` is the public function's name, for messages.
///
/// Throws std::invalid_argument for an axis out of range, extents other than the operator's, a scale that is zero or
/// not finite, an output whose elements share memory, and overlap with one; only rows that are read may be where rows
/// are written.
KOKKOSNN_EXPORT RowsLayout normalise(const char* function, RowOperator op, const Tensors& tensors,
                                     const SoftmaxOptions& options);

KOKKOSNN_EXPORT RowsLayout normalise(const char* function, RowOperator op, const Tensors& tensors,
                                     const RmsNormOptions& options);
KOKKOSNN_EXPORT RowsLayout normalise(const char* function, RowOperator op, const Tensors& tensors,
                                     const LayerNormOptions& options);

/// Checks a cross entropy against probabilities. A reduced loss is a scalar, as in the other cross entropies.
KOKKOSNN_EXPORT RowsLayout normalise(const char* function, RowOperator op, const Tensors& tensors,
                                     const SoftCrossEntropyOptions& options);

/// Checks a call whose results are quantised, `function`, and describes it as rows.
KOKKOSNN_EXPORT RowsLayout normalise_quantized(const char* function, const Tensors& tensors,
                                               const SoftmaxOptions& options);
KOKKOSNN_EXPORT RowsLayout normalise_quantized(const char* function, const Tensors& tensors,
                                               const RmsNormOptions& options);
KOKKOSNN_EXPORT RowsLayout normalise_quantized(const char* function, const Tensors& tensors,
                                               const LayerNormOptions& options);

/// Checks sums over all axes but one.
KOKKOSNN_EXPORT RowsLayout normalise_column_sums(const char* function, const Tensors& tensors, int axis);

/// Checks a cross entropy. A loss that is reduced, or the gradient of one, is a scalar; the rows' own are one
/// after the other then. Where ranks share rows, `shared` says of which classes the columns are; its number of columns
/// does not matter.
KOKKOSNN_EXPORT LabelledLayout normalise(const char* function, RowOperator op, const Tensors& tensors,
                                         const CrossEntropyOptions& options, const ClassShard* shared = nullptr);

/// Checks a loss from log-sum-exps, and returns the number of its classes: options.classes or that of weights, else the
/// largest number.
KOKKOSNN_EXPORT std::int64_t validate_loss_of_lse(const char* function, const Tensors& tensors,
                                                  const CrossEntropyOptions& options);

/// Tensors of an operator as rows that are numbered in the order of the tensors' axes, whatever their strides are: a
/// row has the same number on every rank. Nothing is checked.
KOKKOSNN_EXPORT RowsLayout layout_of_shard(RowOperator op, int axis, const Tensors& tensors);

/// A call on such rows writes something; a log-sum-exp of no elements is -inf and must be written, and so must a loss,
/// and a sum over no rows, which is 0.
KOKKOSNN_EXPORT bool writes(RowOperator op, const RowsLayout& layout);

/// The problem as the planner sees it.
KOKKOSNN_EXPORT RowProblem problem_of(RowOperator op, const RowsLayout& layout, const Tensors& tensors);

/// The options of a softmax that have a cross entropy planned.
inline const SoftmaxOptions& planning_options(const SoftmaxOptions& options) { return options; }
template <class Options>
SoftmaxOptions planning_options(const Options& options) {
  SoftmaxOptions result;
  result.determinism = options.determinism;
  result.plan        = options.plan;
  return result;
}

/// True if a cross entropy needs the kernels that do more than the plain ones.
inline bool is_extended(const CrossEntropyOptions& options, bool has_weights, bool has_predicted) {
  const bool has_own_z_loss = options.z_loss != 0 && !options.weighted_z_loss && has_weights;
  return options.label_smoothing != 0 || options.softcap != 0 || has_own_z_loss || has_predicted;
}
inline bool is_extended(const CrossEntropyOptions& options, const Tensors& tensors) {
  return is_extended(options, tensors[CrossEntropyTensors::weights].exists(),
                     tensors[CrossEntropyTensors::predicted].exists());
}

/// Sets what else chooses the kernel.
inline void set_options(RowProblem& problem, const Tensors& tensors, const CrossEntropyOptions& options) {
  problem.is_extended = is_extended(options, tensors);
}
template <class Options>
void set_options(RowProblem&, const Tensors&, const Options&) {}

/// A tensor's part along one axis.
KOKKOSNN_EXPORT Tensor slice_of(const Tensor& t, int axis, std::int64_t begin, std::int64_t count);

/// The tensor without one axis.
KOKKOSNN_EXPORT Tensor without_axis(const Tensor& t, int axis);

KOKKOSNN_EXPORT std::int64_t element_count(const Tensor& t);

/// An integer of 64 bits, with or without a sign.
inline std::string decimal(std::int64_t bits, bool is_signed) {
  return is_signed ? std::to_string(bits) : std::to_string(static_cast<std::uint64_t>(bits));
}

/// Throws std::invalid_argument for a label that is out of range.
[[noreturn]] KOKKOSNN_EXPORT void complain_of_label(const char* function, std::int64_t row, const std::string& label,
                                                    std::int64_t classes, std::int64_t ignore_index);

/// The axes of rows along the last axis, in the order in which rows are numbered: slowest first, those of one element
/// left out.
KOKKOSNN_EXPORT std::vector<int> row_axes(RowOperator op, const Tensors& tensors);

/// Throws std::invalid_argument unless the operator is one of those with so many Views.
KOKKOSNN_EXPORT void require_operator(const char* function, RowOperator op, bool is_served);

/// Throws std::invalid_argument if the scale is zero or not finite.
KOKKOSNN_EXPORT void validate_scale(const char* function, double scale);

/// Throws std::invalid_argument if the constants of an RMSNorm are out of range.
void validate_rms_norm(const char* function, double epsilon, double weight_offset);

/// Throws std::invalid_argument, with the function's name in front, unless rows and cols are not negative.
KOKKOSNN_EXPORT void validate_extents(const char* function, std::int64_t rows, std::int64_t cols);

/// Throws std::invalid_argument unless the axis is -1, the only one that rows from functors have.
KOKKOSNN_EXPORT void validate_fused_axis(const char* function, const SoftmaxOptions& options);

/// Throws std::invalid_argument unless a plan made for `planned` serves `layout`.
KOKKOSNN_EXPORT void require_same_layout(const char* function, const RowsLayout& planned, const RowsLayout& layout);

/// Throws std::invalid_argument if elements of an output share memory.
KOKKOSNN_EXPORT void validate_output(const char* function, const Tensor& y);

/// True if x and y are the same elements of the same memory.
bool is_same_view(const Tensor& x, const Tensor& y);

/// True if any element of x shares a byte with an element of y.
KOKKOSNN_EXPORT bool overlaps(const Tensor& x, const Tensor& y);

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_LAYOUT_HPP
