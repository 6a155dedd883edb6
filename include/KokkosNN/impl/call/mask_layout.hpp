// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_MASK_LAYOUT_HPP
#define KOKKOSNN_IMPL_CALL_MASK_LAYOUT_HPP

#include <KokkosNN/export.hpp>
#include <KokkosNN/impl/call/layout.hpp>
#include <KokkosNN/impl/inputs/row_map.hpp>
#include <KokkosNN/options.hpp>
#include <KokkosNN/plan.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

// A mask, erased, and what it is for the rows of a call: validation and normalisation, on the host, without a template.

namespace KokkosNN::Impl {

/// All parts of a mask and of the options that concern single rows or elements.
struct MaskTensors {
  bool is_causal             = false;
  std::int64_t causal_offset = 0;
  bool has_window            = false;
  std::int64_t left          = 0;
  std::int64_t right         = 0;
  std::int64_t window_offset = 0;
  std::int64_t alibi_offset  = 0;
  Tensor keep;  ///< of bytes
  Tensor bias;
  Tensor lengths;  ///< of 4 or 8 bytes, as are offsets
  Tensor offsets;
  Tensor slopes;
  Tensor scales;  ///< factors of rows
  Tensor sinks;
  Tensor x;  ///< of a gradient: the forward call's logits, which matter if there is a softcap
  double softcap = 0;

  bool changes_logits() const { return bias.exists() || slopes.exists() || scales.exists() || softcap != 0; }
  /// Derivatives of logits by x are not all options.scale.
  bool bends_logits() const { return scales.exists() || softcap != 0; }
};

/// A mask's Views by the rows of a call: where a row finds its part of them.
struct MaskLayout {
  bool has_diagonals = false;
  std::int64_t low   = 0;  ///< query q may see columns q + low
  std::int64_t high  = 0;  ///< to q + high
  RowMap query;            ///< row -> its number on the axis of the queries
  RowMap offsets;          ///< row -> offset in elements, here and below
  RowMap keep;
  RowMap bias;
  RowMap lengths;
  RowMap slopes;
  RowMap scales;
  RowMap sinks;
  RowMap x;  ///< of a gradient
  std::int64_t keep_col_stride = 0;
  std::int64_t bias_col_stride = 0;
  std::int64_t x_col_stride    = 0;
};

/// A mask, and the options of the call that it is for.
struct MaskedOptions : SoftmaxOptions {
  MaskTensors mask;
};

/// Rows, and where they find their part of a mask.
struct MaskedLayout : RowsLayout {
  MaskLayout mask;
  bool has_element_mask = false;  ///< single elements are looked at, or changed by more than a scale
};

/// Rows as two numbers, (kept, reduced), for a sum over the latter: where each finds its part of a tensor.
struct SplitMap {
  RowMap kept;
  RowMap reduced;

  KOKKOS_INLINE_FUNCTION std::int64_t operator()(std::int64_t k, std::int64_t r) const { return kept(k) + reduced(r); }
};

/// A sum of logits' gradients over some of their axes, to a tensor that broadcasts to them.
struct MaskSums {
  std::int64_t kept    = 1;  ///< rows of the result
  std::int64_t reduced = 1;  ///< rows that are added to each
  std::int64_t cols    = 0;
  bool sums_columns    = false;
  bool has_diagonals   = false;
  std::int64_t low     = 0;
  std::int64_t high    = 0;
  SplitMap y;
  SplitMap dy;
  SplitMap row;  ///< its number, x's last axis but one fastest
  SplitMap query;
  SplitMap offsets;
  SplitMap keep;
  SplitMap lengths;
  RowMap result;
  std::int64_t y_col_stride      = 0;
  std::int64_t dy_col_stride     = 0;
  std::int64_t keep_col_stride   = 0;
  std::int64_t result_col_stride = 0;

  KOKKOS_INLINE_FUNCTION std::int64_t rows() const { return kept * reduced; }
  std::int64_t results() const { return sums_columns ? kept : kept * cols; }
};

/// Checks a masked call or its gradient and describes it as rows; the last axis is reduced. Throws
/// std::invalid_argument as the other `normalise` do, and for a mask whose extents do not broadcast to those of the
/// rows, for windows that are negative, for a softcap that is negative or not finite, and for masks that overlap what
/// is written.
KOKKOSNN_EXPORT MaskedLayout normalise(const char* function, RowOperator op, const Tensors& tensors,
                                       const MaskedOptions& options);

/// The problem as the planner sees it. Logits that a mask changes are kept in the accumulator type.
KOKKOSNN_EXPORT RowProblem problem_of(RowOperator op, const MaskedLayout& layout, const Tensors& tensors);

/// The sum of the logits' gradients to the shape of a bias, or, `to_heads`, to a value a head. `whole` is the same sum
/// with every row kept, for what is known of rows.
KOKKOSNN_EXPORT MaskSums normalise_mask_sums(const char* function, const Tensor& y, const Tensor& dy,
                                             const MaskTensors& mask, const Tensor& result, bool to_heads,
                                             MaskSums& whole);

/// Throws std::invalid_argument unless sinks are accessible and of x's type or of float.
KOKKOSNN_EXPORT void require_sinks(const char* function, bool are_accessible, ElementType type, ElementType x_type);

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_MASK_LAYOUT_HPP
