// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_SRC_C_ARGUMENTS_HPP
#define KOKKOSNN_SRC_C_ARGUMENTS_HPP

#include "../argument_error.hpp"

#include <KokkosNN/half.hpp>
#include <KokkosNN/impl/call/layout.hpp>
#include <KokkosNN/impl/call/mask_layout.hpp>
#include <KokkosNN/kokkosnn.h>
#include <KokkosNN/options.hpp>
#include <KokkosNN/precision.hpp>
#include <KokkosNN/segmented.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <type_traits>

// A C call's arguments as the library's erased Tensors and options. What the compiler checks of Views is checked here:
// element types, ranks, presence. All errors are std::invalid_argument with the function's name.

namespace KokkosNN::C {

using Impl::MaskedOptions;
using Impl::MaskTensors;
using Impl::Tensor;
using Impl::Tensors;

/// The types that a tensor may hold.
enum class Holds {
  elements,  ///< double, float and the 16-bit types
  integers,  ///< of any width, but no bool
  flags,     ///< bool, or integers of one byte
  codes      ///< int8 or float8
};

/// A tensor as the caller gives it.
struct Argument {
  const kokkosnn_tensor* tensor;
  Holds holds      = Holds::elements;
  bool is_optional = false;

  Argument(const kokkosnn_tensor* given) : tensor(given) {}  // NOLINT: most arguments are just that
  Argument(const kokkosnn_tensor* given, Holds types, bool may_be_null)
      : tensor(given), holds(types), is_optional(may_be_null) {}
};
inline Argument optional(const kokkosnn_tensor* tensor) { return {tensor, Holds::elements, true}; }
inline Argument integers(const kokkosnn_tensor* tensor) { return {tensor, Holds::integers, false}; }
inline Argument classes(const kokkosnn_tensor* tensor) { return {tensor, Holds::integers, true}; }
/// An operand of the family that this operator does without.
inline const Argument absent{nullptr, Holds::elements, true};

/// An argument, erased; without memory where an optional one is null.
Tensor tensor_of(const char* function, const char* name, const Argument& argument);

/// Throws unless a tensor holds one of two types.
void require_type(const char* function, const char* name, const Tensor& t, ElementType one, ElementType other);

/// Throws unless a tensor has `least` to `most` axes.
void require_rank(const char* function, const char* name, const Tensor& t, int least, int most);

/// The type of sums over elements of a type.
inline ElementType accumulator_of(ElementType rows) { return rows == ElementType::f64 ? rows : ElementType::f32; }

/// f(type) for a type of elements that `tensor_of` has let through.
template <class F>
void with_type(ElementType type, const F& f) {
  switch (type) {
    case ElementType::f64:
      return f(std::type_identity<double>{});
    case ElementType::f32:
      return f(std::type_identity<float>{});
    case ElementType::f16:
      return f(std::type_identity<half_t>{});
    case ElementType::bf16:
      return f(std::type_identity<bhalf_t>{});
    case ElementType::other:
      return;
  }
}

/// The arguments of an operator that reduces so many axes, in the order of its operands (`operands_of`); ranks and
/// types are checked.
Tensors tensors_of(RowOperator op, std::initializer_list<Argument> arguments, int axes = 1);

/// The arguments of a function on ragged rows.
Impl::SegmentedTensors segmented_tensors(const char* function, RowOperator op, const kokkosnn_tensor* x,
                                         const kokkosnn_tensor* dy, const kokkosnn_tensor* row_offsets,
                                         const kokkosnn_tensor* y);

/// A mask for rows of x, or of y in a gradient.
MaskTensors mask_of(const char* function, const kokkosnn_mask* mask, const Tensor& x);

/// Sinks, if there are any, for rows of x.
Tensor sinks_of(const char* function, const kokkosnn_tensor* sinks, const Tensor& x);

/// Checks y, dy and the result of a gradient with respect to a part of the mask.
void require_mask_sums(const char* function, const Tensor& y, const Tensor& dy, const char* name, const Tensor& result,
                       bool to_heads);

/// The caller's struct over the defaults, which remain where an older caller's is shorter.
template <class Options>
Options read(const char* function, const char* name, const Options* given, Options defaults) {
  if (given == nullptr) return defaults;
  if (given->size < sizeof(std::size_t) || given->size > sizeof(Options)) {
    (Impl::ArgumentError(function) << name << " have size " << given->size << ", but this library knows "
                                   << sizeof(std::size_t) << " to " << sizeof(Options)
                                   << " bytes: start from their initialiser, with the library's own header")
        .raise();
  }
  std::memcpy(&defaults, given, given->size);
  return defaults;
}

/// A member that stands for an enumerator, 0 to `last`.
template <class Enum>
Enum enumerator(const char* function, const char* name, std::int32_t value, Enum last) {
  if (value < 0 || value > static_cast<std::int32_t>(last)) {
    (Impl::ArgumentError(function) << name << " must be 0 to " << static_cast<int>(last) << ", but is " << value)
        .raise();
  }
  return static_cast<Enum>(value);
}

MaskedRowPolicy masked_row_of(const char* function, std::int32_t value);
Precision precision_of(const char* function, std::int32_t value);
Determinism determinism_of(const char* function, std::int32_t value);

SoftmaxOptions options_of(const char* function, const kokkosnn_softmax_options* options);
SoftCrossEntropyOptions options_of(const char* function, const kokkosnn_soft_cross_entropy_options* options);
CrossEntropyOptions options_of(const char* function, const kokkosnn_cross_entropy_options* options);
RmsNormOptions options_of(const char* function, const kokkosnn_rms_norm_options* options);
LayerNormOptions options_of(const char* function, const kokkosnn_layer_norm_options* options);
ColumnSumsOptions options_of(const char* function, const kokkosnn_column_sums_options* options);
SegmentedOptions options_of(const char* function, const kokkosnn_segmented_options* options);
/// Rows of an index; 0 where rows have offsets.
std::int64_t segments_of(const char* function, const kokkosnn_segmented_options* options);

/// Options of a masked softmax, or of its gradient, with all parts of the mask. `x` has the rows of the mask; `logits`
/// are the forward call's x, which a gradient reads under a softcap.
MaskedOptions masked_options(const char* function, const kokkosnn_mask* mask,
                             const kokkosnn_masked_softmax_options* options, const Tensor& x, const Tensor* logits);

}  // namespace KokkosNN::C

#endif  // KOKKOSNN_SRC_C_ARGUMENTS_HPP
