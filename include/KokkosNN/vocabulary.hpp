// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_VOCABULARY_HPP
#define KOKKOSNN_VOCABULARY_HPP

#include <KokkosNN/export.hpp>

// Words that planner and kernels share: operators, element types, backends, forms of rows, evictions.

namespace KokkosNN {

/// The operators.
enum class RowOperator {
#define KOKKOSNN_OPERATOR(name, family, ragged, inputs, reduction, output, options) name,
#include <KokkosNN/impl/operators.def>
#undef KOKKOSNN_OPERATOR
};

/// Operators of a family have one kind of call: the same tensors.
enum class OperatorFamily {
  forward,           ///< x and y: of a row by itself
  gradient,          ///< y, dy and dx
  value_gradient,    ///< x, two values a row, dx
  masked,            ///< as forward, with a mask
  masked_gradient,   ///< as gradient, with a mask
  cross_entropy,     ///< logits with a label a row; loss, gradient, or both
  soft_loss,         ///< logits with targets of their extents; loss, or that and the gradient
  norm,              ///< x, operands of one element a column, y, values a row
  norm_gradient,     ///< x and dy, operands of one element a column, values a row, dx
  add_norm,          ///< as norm, of the sum of two inputs, which is written, too
  add_norm_gradient  ///< as norm_gradient, with a gradient of that sum
};

/// The properties of an operator that plans and kernels depend on: a line of impl/operators.def.
struct OperatorTraits {
  enum class Ragged { dense, ragged };
  enum class Reduction { none, row };
  enum class Output { rows, values };

  const char* name;  ///< of the public function
  OperatorFamily family;
  Ragged ragged;        ///< `ragged`: has a form on ragged rows
  int inputs;           ///< tensors whose rows are read
  Reduction reduction;  ///< `none`: each result depends on one element and on values of the row
  Output output;        ///< `values`: a few values a row, no rows
};

namespace Impl {

inline constexpr OperatorTraits operator_table[] = {
#define KOKKOSNN_OPERATOR(name, family, ragged, inputs, reduction, output, options) \
  {#name,                                                                           \
   OperatorFamily::family,                                                          \
   OperatorTraits::Ragged::ragged,                                                  \
   inputs,                                                                          \
   OperatorTraits::Reduction::reduction,                                            \
   OperatorTraits::Output::output},
#include <KokkosNN/impl/operators.def>
#undef KOKKOSNN_OPERATOR
};

}  // namespace Impl

/// All operators, in the order of the enumeration.
inline constexpr int operator_count = static_cast<int>(sizeof(Impl::operator_table) / sizeof(OperatorTraits));

constexpr bool is_operator(RowOperator op) {
  return static_cast<int>(op) >= 0 && static_cast<int>(op) < operator_count;
}

/// Traits of an operator of the table.
constexpr const OperatorTraits& traits_of(RowOperator op) { return Impl::operator_table[static_cast<int>(op)]; }

/// The operators of rows of a family.
constexpr bool is_forward(RowOperator op) { return traits_of(op).family == OperatorFamily::forward; }

/// The operators of rows of logits that have a label each.
constexpr bool is_cross_entropy(RowOperator op) { return traits_of(op).family == OperatorFamily::cross_entropy; }

/// Tensors whose rows an operator reads: y and dy in the gradients that sum over a row, two or three with a residual,
/// one in all others.
constexpr int row_tensors(RowOperator op) { return traits_of(op).inputs; }

/// Tensors of these whose rows are held from the reduction to the epilogue: of a sum of two that sum, and not what only
/// the epilogue reads.
constexpr int held_tensors(RowOperator op) {
  const OperatorFamily family = traits_of(op).family;
  const bool holds_less       = family == OperatorFamily::add_norm || family == OperatorFamily::add_norm_gradient;
  return row_tensors(op) - (holds_less ? 1 : 0);
}

/// Each result depends on one element and on values a row, so that nothing of a row is kept.
constexpr bool is_elementwise(RowOperator op) { return traits_of(op).reduction == OperatorTraits::Reduction::none; }

/// The operators that are one struct each (impl/inputs/operands.hpp), whose kernels know no more of them.
constexpr bool is_norm(RowOperator op) {
  const OperatorFamily family = traits_of(op).family;
  return family == OperatorFamily::soft_loss || family == OperatorFamily::norm ||
         family == OperatorFamily::norm_gradient || family == OperatorFamily::add_norm ||
         family == OperatorFamily::add_norm_gradient;
}

/// The gradients of softmax, log-softmax, log-sum-exp and of normalisations.
constexpr bool is_gradient(RowOperator op) {
  const OperatorFamily family = traits_of(op).family;
  return family == OperatorFamily::gradient || family == OperatorFamily::value_gradient ||
         family == OperatorFamily::masked_gradient || family == OperatorFamily::norm_gradient ||
         family == OperatorFamily::add_norm_gradient;
}

/// All that an operator writes of a row is a few values of the whole row.
constexpr bool is_reduction(RowOperator op) { return traits_of(op).output == OperatorTraits::Output::values; }

/// Tensors whose rows an operator writes.
constexpr int written_tensors(RowOperator op) {
  if (is_reduction(op)) return 0;
  return traits_of(op).family == OperatorFamily::add_norm ? 2 : 1;
}

/// Each row says which of its columns take part.
constexpr bool is_masked(RowOperator op) {
  return traits_of(op).family == OperatorFamily::masked || traits_of(op).family == OperatorFamily::masked_gradient;
}

/// Element types by their short names; `other` is a type that only a user's functor knows.
enum class ElementType { f64, f32, f16, bf16, other };

/// Where the kernels run, as far as planning cares.
enum class Backend { host, cuda, hip };

/// How the rows of a call lie in memory; kernels are compiled for each.
enum class RowForm {
  strided,     ///< strided, or loaded by a functor
  misaligned,  ///< contiguous; packs of x and of y begin at the same columns, which differ from row to row
  aligned      ///< contiguous, at one stride, every row at a 16-byte boundary
};

/// When a GPU's last-level cache gives up what a kernel has read, beside all else that it holds.
enum class Eviction {
  normal,        ///< in turn
  first,         ///< before all else
  quarter_last,  ///< a quarter of it after all else, the rest before
  half_last,     ///< half of it after all else, the rest before
  last           ///< after all else
};

constexpr const char* to_string(RowOperator op) { return is_operator(op) ? traits_of(op).name : "unknown operator"; }
KOKKOSNN_EXPORT const char* to_string(ElementType type);
KOKKOSNN_EXPORT const char* to_string(Backend backend);

}  // namespace KokkosNN

#endif  // KOKKOSNN_VOCABULARY_HPP
