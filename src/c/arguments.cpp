// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"

#include "../argument_error.hpp"

#include <KokkosNN/vocabulary.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace KokkosNN::C {
namespace {

using Impl::ArgumentError;
using Impl::Extents;
using Impl::Operand;
using Impl::Operands;
using Impl::shape_of;

static_assert(KOKKOSNN_MAX_RANK == Impl::max_rank);

// --- types ---

struct DataType {
  const char* name;
  int bytes;
  ElementType type;
  bool is_signed;
  bool is_integer;
  bool is_float8 = false;
};

/// The types by their numbers in kokkosnn_dtype; 0 is none.
constexpr DataType data_types[] = {{"none", 0, ElementType::other, false, false},
                                   {"f64", 8, ElementType::f64, true, false},
                                   {"f32", 4, ElementType::f32, true, false},
                                   {"f16", 2, ElementType::f16, true, false},
                                   {"bf16", 2, ElementType::bf16, true, false},
                                   {"bool", 1, ElementType::other, false, false},
                                   {"i8", 1, ElementType::other, true, true},
                                   {"i16", 2, ElementType::other, true, true},
                                   {"i32", 4, ElementType::other, true, true},
                                   {"i64", 8, ElementType::other, true, true},
                                   {"u8", 1, ElementType::other, false, true},
                                   {"u16", 2, ElementType::other, false, true},
                                   {"u32", 4, ElementType::other, false, true},
                                   {"u64", 8, ElementType::other, false, true},
                                   {"f8e4m3", 1, ElementType::other, false, false, true}};
constexpr int data_type_count   = sizeof(data_types) / sizeof(DataType);

const DataType& data_type(const char* function, const char* name, int dtype) {
  if (dtype <= 0 || dtype >= data_type_count) {
    (ArgumentError(function) << name << " has the dtype " << dtype << ", which is none").raise();
  }
  return data_types[dtype];
}

void require_held(const char* function, const char* name, const DataType& type, Holds holds) {
  const auto require = [&](bool is_held, const char* types) {
    if (!is_held) (ArgumentError(function) << name << " must hold " << types << ", but holds " << type.name).raise();
  };
  switch (holds) {
    case Holds::elements:
      return require(type.type != ElementType::other, "f64, f32, f16 or bf16");
    case Holds::integers:
      return require(type.is_integer, "integers");
    case Holds::flags:
      return require(type.type == ElementType::other && type.bytes == 1 && !type.is_float8,
                     "bool or integers of one byte");
    case Holds::codes:
      return require(type.is_float8 || (type.is_integer && type.is_signed && type.bytes == 1), "i8 or f8e4m3");
  }
}

// --- operands of an operator ---

/// A loss has rank 0 or that of a value a row: which of the two, the options say.
bool is_loss(RowOperator op, int number) {
  if (traits_of(op).family == OperatorFamily::soft_loss) return number == Impl::SoftLossTensors::loss;
  return is_cross_entropy(op) && number == Impl::CrossEntropyTensors::loss;
}

void require_operand_rank(RowOperator op, const Operand& operand, int number, const Tensor& t, int rank, int axes) {
  const char* function = to_string(op);
  switch (operand.extents) {
    case Extents::rows:
      return require_rank(function, operand.name, t, rank, rank);
    case Extents::row_values:
      if (is_loss(op, number) && t.rank == 0) return;
      return require_rank(function, operand.name, t, rank - axes, rank - axes);
    case Extents::columns:
      return require_rank(function, operand.name, t, 1, 1);
    case Extents::call:
      return;
  }
}

/// The types of an operand beside rows of a type: those that the library's kernels are compiled for.
void require_operand_type(RowOperator op, const Operand& operand, const Tensor& t, ElementType rows) {
  const OperatorFamily family   = traits_of(op).family;
  const ElementType accumulator = accumulator_of(rows);
  const auto require            = [&](ElementType one, ElementType other) {
    require_type(to_string(op), operand.name, t, one, other);
  };
  const bool is_half      = rows == ElementType::f16 || rows == ElementType::bf16;
  const bool becomes_half = rows == ElementType::f32 && (t.type == ElementType::f16 || t.type == ElementType::bf16);
  if (t.type == ElementType::other) return;  // labels
  if (family == OperatorFamily::forward) {
    if (!becomes_half) require(rows, is_half ? ElementType::f32 : rows);
  } else if (operand.extents == Extents::rows || is_masked(op)) {
    require(rows, rows);
  } else if (family == OperatorFamily::value_gradient || (is_norm(op) && operand.extents == Extents::columns)) {
    require(rows, accumulator);
  } else {
    require(accumulator, accumulator);
  }
}

// --- options ---

Reduction reduction_of(const char* function, std::int32_t value) {
  static_assert(static_cast<int>(Reduction::mean) == KOKKOSNN_REDUCTION_MEAN &&
                static_cast<int>(Reduction::sum) == KOKKOSNN_REDUCTION_SUM);
  return enumerator(function, "reduction", value, Reduction::sum);
}

}  // namespace

Determinism determinism_of(const char* function, std::int32_t value) {
  static_assert(static_cast<int>(Determinism::batch_invariant) == KOKKOSNN_BATCH_INVARIANT);
  return enumerator(function, "determinism", value, Determinism::batch_invariant);
}

void require_type(const char* function, const char* name, const Tensor& t, ElementType one, ElementType other) {
  if (t.type == one || t.type == other) return;
  ArgumentError complaint(function);
  complaint << name << " must hold " << to_string(one);
  if (other != one) complaint << " or " << to_string(other);
  complaint << ", but holds " << to_string(t.type);
  complaint.raise();
}

void require_rank(const char* function, const char* name, const Tensor& t, int least, int most) {
  if (t.rank >= least && t.rank <= most) return;
  ArgumentError complaint(function);
  complaint << name << " must have rank " << least;
  if (most != least) complaint << " to " << most;
  complaint << ", but has rank " << t.rank;
  complaint.raise();
}

MaskedRowPolicy masked_row_of(const char* function, std::int32_t value) {
  static_assert(static_cast<int>(MaskedRowPolicy::zero) == KOKKOSNN_MASKED_ROW_ZERO);
  return enumerator(function, "masked_row", value, MaskedRowPolicy::zero);
}

Precision precision_of(const char* function, std::int32_t value) {
  static_assert(static_cast<int>(Precision::tensor_float32x3) == KOKKOSNN_PRECISION_TENSOR_FLOAT32X3 &&
                static_cast<int>(Precision::tensor_float32) == KOKKOSNN_PRECISION_TENSOR_FLOAT32);
  return enumerator(function, "precision", value, Precision::tensor_float32);
}

Tensor tensor_of(const char* function, const char* name, const Argument& argument) {
  if (argument.tensor == nullptr) {
    if (!argument.is_optional) (ArgumentError(function) << name << " is missing").raise();
    return {};
  }
  const kokkosnn_tensor& given = *argument.tensor;
  const DataType& type         = data_type(function, name, given.dtype);
  require_held(function, name, type, argument.holds);
  if (given.rank < 0 || given.rank > Impl::max_rank) {
    (ArgumentError(function) << name << " must have rank 0 to " << Impl::max_rank << ", but has rank " << given.rank)
        .raise();
  }
  Tensor t;
  t.data          = given.data;
  t.element_bytes = type.bytes;
  t.rank          = given.rank;
  t.type          = type.type;
  t.is_signed     = type.is_signed;
  std::copy_n(given.extents, given.rank, t.extent);
  std::copy_n(given.strides, given.rank, t.stride);
  if (std::any_of(t.extent, t.extent + t.rank, [](std::int64_t extent) { return extent < 0; })) {
    (ArgumentError(function) << name << " has a negative extent: " << shape_of(t)).raise();
  }
  if (t.data == nullptr && Impl::element_count(t) > 0) {
    (ArgumentError(function) << name << " of extents " << shape_of(t) << " has no memory").raise();
  }
  if (reinterpret_cast<std::uintptr_t>(t.data) % static_cast<std::uintptr_t>(t.element_bytes) != 0) {
    (ArgumentError(function) << name << " at " << t.data << " is not aligned to its elements of " << t.element_bytes
                             << " bytes")
        .raise();
  }
  return t;
}

Tensors tensors_of(RowOperator op, std::initializer_list<Argument> arguments, int axes) {
  const Operands operands = Impl::operands_of(op);
  Tensors tensors;
  int number = 0;
  for (const Argument& argument : arguments) {
    tensors[number] = tensor_of(to_string(op), operands.of[number].name, argument);
    ++number;
  }
  const Tensor& rows = tensors[0];
  require_rank(to_string(op), operands.of[0].name, rows, is_masked(op) ? 2 : 1, Impl::max_rank);
  for (int t = 1; t < operands.count; ++t) {
    if (!tensors[t].exists()) continue;
    require_operand_rank(op, operands.of[t], t, tensors[t], rows.rank, axes);
    require_operand_type(op, operands.of[t], tensors[t], rows.type);
  }
  return tensors;
}

Impl::SegmentedTensors segmented_tensors(const char* function, RowOperator op, const kokkosnn_tensor* x,
                                         const kokkosnn_tensor* dy, const kokkosnn_tensor* row_offsets,
                                         const kokkosnn_tensor* y) {
  const bool has_dy  = is_gradient(op);
  const char* output = has_dy ? "dx" : is_reduction(op) ? "lse" : "y";
  const char* input  = has_dy ? "y" : "values";
  Impl::SegmentedTensors tensors{tensor_of(function, input, x),
                                 tensor_of(function, output, y),
                                 {},
                                 tensor_of(function, "row_offsets", integers(row_offsets))};
  require_rank(function, input, tensors.x, 1, 2);
  require_rank(function, "row_offsets", tensors.offsets, 1, 1);
  require_rank(function, output, tensors.y, tensors.x.rank, tensors.x.rank);
  require_type(function, output, tensors.y, tensors.x.type, tensors.x.type);
  if (has_dy) {
    tensors.dy = tensor_of(function, "dy", dy);
    require_rank(function, "dy", tensors.dy, tensors.x.rank, tensors.x.rank);
    require_type(function, "dy", tensors.dy, tensors.x.type, tensors.x.type);
  }
  return tensors;
}

MaskTensors mask_of(const char* function, const kokkosnn_mask* mask, const Tensor& x) {
  const kokkosnn_mask given = read(function, "a mask's members", mask, kokkosnn_mask KOKKOSNN_MASK_INIT);
  MaskTensors result;
  result.is_causal     = given.is_causal != 0;
  result.causal_offset = given.causal_offset;
  result.has_window    = given.has_window != 0;
  result.left          = given.window_left;
  result.right         = given.window_right;
  result.window_offset = given.window_offset;
  result.alibi_offset  = given.alibi_offset;
  const auto part      = [&](const char* name, const kokkosnn_tensor* tensor, Holds holds) {
    return tensor_of(function, name, Argument(tensor, holds, true));
  };
  result.keep    = part("mask.boolean", given.boolean, Holds::flags);
  result.bias    = part("mask.bias", given.bias, Holds::elements);
  result.lengths = part("mask.lengths", given.lengths, Holds::integers);
  result.slopes  = part("mask.alibi_slopes", given.alibi_slopes, Holds::elements);
  if (result.keep.exists()) require_rank(function, "mask.boolean", result.keep, 0, x.rank);
  if (result.bias.exists()) {
    require_rank(function, "mask.bias", result.bias, 0, x.rank);
    require_type(function, "mask.bias", result.bias, x.type, ElementType::f32);
  }
  result.offsets            = part("mask.diagonal_offsets", given.diagonal_offsets, Holds::integers);
  const auto require_counts = [&](const char* name, const Tensor& t) {
    if (!t.exists()) return;
    require_rank(function, name, t, 1, x.rank - 1);
    if (!t.is_signed || t.element_bytes < 4) (ArgumentError(function) << name << " must hold i32 or i64").raise();
  };
  require_counts("mask.lengths", result.lengths);
  require_counts("mask.diagonal_offsets", result.offsets);
  if (result.slopes.exists()) {
    require_rank(function, "mask.alibi_slopes", result.slopes, 1, 1);
    require_type(function, "mask.alibi_slopes", result.slopes, x.type, ElementType::f32);
  }
  result.scales = part("mask.row_scales", given.row_scales, Holds::elements);
  if (result.scales.exists()) {
    require_rank(function, "mask.row_scales", result.scales, 1, x.rank - 1);
    require_type(function, "mask.row_scales", result.scales, x.type, ElementType::f32);
  }
  return result;
}

Tensor sinks_of(const char* function, const kokkosnn_tensor* sinks, const Tensor& x) {
  const Tensor t = tensor_of(function, "options.sinks", optional(sinks));
  if (t.exists()) {
    require_rank(function, "options.sinks", t, 1, 1);
    require_type(function, "options.sinks", t, x.type, ElementType::f32);
  }
  return t;
}

void require_mask_sums(const char* function, const Tensor& y, const Tensor& dy, const char* name, const Tensor& result,
                       bool to_heads) {
  require_rank(function, "y", y, 2, Impl::max_rank);
  require_rank(function, "dy", dy, y.rank, y.rank);
  require_type(function, "dy", dy, y.type, y.type);
  require_rank(function, name, result, to_heads ? 1 : 0, to_heads ? 1 : y.rank);
  require_type(function, name, result, y.type, ElementType::f32);
}

SoftmaxOptions options_of(const char* function, const kokkosnn_softmax_options* options) {
  const auto given = read(function, "softmax options", options, kokkosnn_softmax_options KOKKOSNN_SOFTMAX_OPTIONS_INIT);
  return {.axis        = given.axis,
          .scale       = given.scale,
          .masked_row  = masked_row_of(function, given.masked_row),
          .axes        = given.axes == 0 ? 1 : given.axes,  // 0: of a caller that knows of one alone
          .determinism = determinism_of(function, given.determinism),
          .plan        = {}};
}

SoftCrossEntropyOptions options_of(const char* function, const kokkosnn_soft_cross_entropy_options* options) {
  const auto given = read(function, "soft cross entropy options", options,
                          kokkosnn_soft_cross_entropy_options KOKKOSNN_SOFT_CROSS_ENTROPY_OPTIONS_INIT);
  return {.axis            = given.axis,
          .reduction       = reduction_of(function, given.reduction),
          .label_smoothing = given.label_smoothing,
          .gradient_scale  = given.gradient_scale,
          .determinism     = determinism_of(function, given.determinism),
          .plan            = {}};
}

CrossEntropyOptions options_of(const char* function, const kokkosnn_cross_entropy_options* options) {
  const auto given = read(function, "cross entropy options", options,
                          kokkosnn_cross_entropy_options KOKKOSNN_CROSS_ENTROPY_OPTIONS_INIT);
  return {.axis            = given.axis,
          .ignore_index    = given.ignore_index,
          .reduction       = reduction_of(function, given.reduction),
          .label_smoothing = given.label_smoothing,
          .z_loss          = given.z_loss,
          .weighted_z_loss = given.weighted_z_loss != 0,
          .softcap         = given.softcap,
          .gradient_scale  = given.gradient_scale,
          .first_class     = given.first_class,
          .classes         = given.classes,
          .check_labels    = given.check_labels != 0,
          .determinism     = determinism_of(function, given.determinism),
          .plan            = {}};
}

RmsNormOptions options_of(const char* function, const kokkosnn_rms_norm_options* options) {
  const auto given =
      read(function, "RMSNorm options", options, kokkosnn_rms_norm_options KOKKOSNN_RMS_NORM_OPTIONS_INIT);
  return {.axis          = given.axis,
          .epsilon       = given.epsilon,
          .weight_offset = given.weight_offset,
          .determinism   = determinism_of(function, given.determinism),
          .plan          = {}};
}

LayerNormOptions options_of(const char* function, const kokkosnn_layer_norm_options* options) {
  const auto given =
      read(function, "LayerNorm options", options, kokkosnn_layer_norm_options KOKKOSNN_LAYER_NORM_OPTIONS_INIT);
  return {.axis        = given.axis,
          .epsilon     = given.epsilon,
          .determinism = determinism_of(function, given.determinism),
          .plan        = {}};
}

ColumnSumsOptions options_of(const char* function, const kokkosnn_column_sums_options* options) {
  const auto given =
      read(function, "column sums options", options, kokkosnn_column_sums_options KOKKOSNN_COLUMN_SUMS_OPTIONS_INIT);
  return {.axis = given.axis};
}

SegmentedOptions options_of(const char* function, const kokkosnn_segmented_options* options) {
  const auto given =
      read(function, "options of ragged rows", options, kokkosnn_segmented_options KOKKOSNN_SEGMENTED_OPTIONS_INIT);
  return {.scale         = given.scale,
          .masked_row    = masked_row_of(function, given.masked_row),
          .check_offsets = given.check_offsets != 0};
}

std::int64_t segments_of(const char* function, const kokkosnn_segmented_options* options) {
  return read(function, "options of ragged rows", options, kokkosnn_segmented_options KOKKOSNN_SEGMENTED_OPTIONS_INIT)
      .segments;
}

MaskedOptions masked_options(const char* function, const kokkosnn_mask* mask,
                             const kokkosnn_masked_softmax_options* options, const Tensor& x, const Tensor* logits) {
  const auto given = read(function, "masked softmax options", options,
                          kokkosnn_masked_softmax_options KOKKOSNN_MASKED_SOFTMAX_OPTIONS_INIT);
  MaskedOptions result{{.axis        = -1,
                        .scale       = given.scale,
                        .masked_row  = masked_row_of(function, given.masked_row),
                        .determinism = determinism_of(function, given.determinism),
                        .plan        = {}},
                       mask_of(function, mask, x)};
  result.mask.softcap = given.softcap;
  result.mask.sinks   = sinks_of(function, given.sinks, x);
  if (logits == nullptr) return result;
  result.mask.x = *logits;
  if (logits->exists()) {
    require_rank(function, "x", *logits, x.rank, x.rank);
    require_type(function, "x", *logits, x.type, x.type);
  } else if (given.softcap != 0) {
    (ArgumentError(function) << "x is missing, which the gradient under a softcap reads").raise();
  }
  return result;
}

}  // namespace KokkosNN::C
