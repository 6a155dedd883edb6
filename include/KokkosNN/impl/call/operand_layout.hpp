// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_OPERAND_LAYOUT_HPP
#define KOKKOSNN_IMPL_CALL_OPERAND_LAYOUT_HPP

#include <KokkosNN/export.hpp>
#include <KokkosNN/impl/call/layout.hpp>

#include <cstdint>
#include <vector>

// From the tensors of an operator to rows: validation and normalisation, on the host, without a template.

namespace KokkosNN::Impl {

/// Extents that a tensor of a call has.
enum class OperandExtents {
  rows,        ///< of the rows that are read
  row_values,  ///< of these without the reduced axis
  columns      ///< of the reduced axis alone
};

/// A tensor as its operator knows it; of no bytes if a call does without.
struct OperandTensor {
  const char* name;  ///< in messages
  Tensor tensor;
  OperandExtents extents;
  bool is_output = false;
};

/// The tensors of a call as rows, as RowLayout; number 0 has rows that are read, number 1 those that are written.
struct OperandLayout {
  static constexpr int max_tensors = 8;

  std::int64_t rows                              = 0;
  std::int64_t cols                              = 0;
  std::int64_t col_stride[max_tensors]           = {};
  int n                                          = 0;
  std::int64_t extent[max_row_dims]              = {};
  std::int64_t stride[max_tensors][max_row_dims] = {};
  RowForm form                                   = RowForm::strided;  ///< of all tensors with the rows' extents

  std::int64_t inner() const { return n > 0 ? extent[n - 1] : 1; }
  bool inner_contiguous() const { return n > 0 && stride[0][n - 1] == 1; }

  RowMap map(int tensor) const { return row_map(extent, stride[tensor], n); }
  RowMap outer_map(int tensor) const { return row_map(extent, stride[tensor], n - 1); }
};

/// Checks a call and describes it as rows. `function` is the public function's name, for messages.
///
/// Throws std::invalid_argument for an axis out of range, other extents than an operand should have, an output whose
/// elements share memory, and overlap with one; only rows that are read may be where rows are written.
KOKKOSNN_EXPORT OperandLayout normalise_operands(const char* function, int axis,
                                                 const std::vector<OperandTensor>& operands);

/// Throws std::invalid_argument unless the number, which has a name, is finite and, if asked for, not negative.
KOKKOSNN_EXPORT void validate_number(const char* function, const char* name, double value, bool may_be_negative);

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_OPERAND_LAYOUT_HPP
