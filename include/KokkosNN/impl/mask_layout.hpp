// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_MASK_LAYOUT_HPP
#define KOKKOSNN_IMPL_MASK_LAYOUT_HPP

#include <KokkosNN/impl/layout.hpp>
#include <KokkosNN/impl/primitives/rows.hpp>
#include <KokkosNN/plan.hpp>

#include <cstdint>

// A mask, erased, and what it is for the rows of a call: validation and normalisation, on the host, without a template.

namespace KokkosNN::Impl {

/// A View that a mask may have.
struct MaskTensor : Tensor {
  bool is_given    = false;
  ElementType type = ElementType::other;  ///< of floating-point elements
};

/// All parts of a mask and of the options that concern single rows or elements.
struct MaskTensors {
  bool is_causal             = false;
  std::int64_t causal_offset = 0;
  bool has_window            = false;
  std::int64_t left          = 0;
  std::int64_t right         = 0;
  std::int64_t window_offset = 0;
  std::int64_t alibi_offset  = 0;
  MaskTensor keep;  ///< of bytes
  MaskTensor bias;
  MaskTensor lengths;  ///< of 4 or 8 bytes
  MaskTensor slopes;
  MaskTensor sinks;
  double softcap = 0;

  /// Whether single elements are looked at, or changed by more than a scale.
  bool has_element_mask() const { return keep.is_given || changes_logits(); }
  bool changes_logits() const { return bias.is_given || slopes.is_given || softcap != 0; }
};

/// A mask's Views by the rows of a call: where a row finds its part of them.
struct MaskLayout {
  bool has_diagonals = false;
  std::int64_t low   = 0;  ///< query q may see columns q + low
  std::int64_t high  = 0;  ///< to q + high
  RowMap query;            ///< row -> its number on the axis of the queries
  RowMap keep;             ///< row -> offset in elements, here and below
  RowMap bias;
  RowMap lengths;
  RowMap slopes;
  RowMap sinks;
  std::int64_t keep_col_stride = 0;
  std::int64_t bias_col_stride = 0;
};

/// Checks a masked call and describes it as rows; the last axis is reduced. Throws std::invalid_argument as `normalise`
/// does, and for a mask whose extents do not broadcast to x's, for windows that are negative, for a softcap that is
/// negative or not finite, and for masks that overlap y.
RowLayout normalise_masked(const char* function, const Tensor& x, const Tensor& y, const MaskTensors& mask,
                           const SoftmaxOptions& options, MaskLayout& layout);

/// Throws std::invalid_argument unless sinks are accessible and of x's type or of float.
void require_sinks(const char* function, bool are_accessible, ElementType type, ElementType x_type);

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_MASK_LAYOUT_HPP
