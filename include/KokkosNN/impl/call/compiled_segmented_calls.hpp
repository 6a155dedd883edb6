// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_COMPILED_SEGMENTED_CALLS_HPP
#define KOKKOSNN_IMPL_CALL_COMPILED_SEGMENTED_CALLS_HPP

#include <KokkosNN/impl/call/compiled_calls.hpp>
#include <KokkosNN/impl/call/segmented_plan.hpp>
#include <KokkosNN/impl/inputs/row_offsets.hpp>
#include <KokkosNN/options.hpp>

#include <cstdint>

// Calls on ragged rows without their kernels, as compiled_calls.hpp has the others.

namespace KokkosNN::Impl {

/// A checked call: Views as pointers and strides. Of a SegmentIndex `offsets` are the index.
struct SegmentedArguments {
  SegmentedTensors tensors;
  RowOffsets offsets;
  std::int64_t elements      = 0;
  std::int64_t rows          = 0;
  double scale               = 1;
  MaskedRowPolicy masked_row = MaskedRowPolicy::nan;
};

/// softmax, log_softmax or logsumexp of ragged rows of X.
template <class ExecutionSpace, RowOperator op, class X, class Y>
struct SegmentedCall {
  static_assert(!is_gradient(op));

  static void run(const ExecutionSpace& exec, const SegmentedArguments& arguments);
};

/// softmax_backward or log_softmax_backward of ragged rows of T.
template <class ExecutionSpace, RowOperator op, class T>
struct SegmentedGradientCall {
  static_assert(row_tensors(op) == 2);

  static void run(const ExecutionSpace& exec, const SegmentedArguments& arguments);
};

/// Log-sum-exps of ragged rows and their gradient, an element a row each.
struct SegmentedLse {
  Tensor lse;
  Tensor dlse;
};

/// logsumexp_backward of ragged rows of T.
template <class ExecutionSpace, class T>
struct SegmentedLseGradientCall {
  static void run(const ExecutionSpace& exec, const SegmentedArguments& arguments, const SegmentedLse& values);
};

/// All operators on rows of T by an index, gradients included; `values` are of the gradient of a log-sum-exp.
template <class ExecutionSpace, class T>
struct SegmentIndexCall {
  static void run(const ExecutionSpace& exec, RowOperator op, const SegmentedArguments& arguments,
                  const SegmentedLse& values);
};

/// Looks at all offsets, and waits: throws std::invalid_argument for the first row that begins after its end or leaves
/// the values.
template <class ExecutionSpace>
struct OffsetsCheck {
  static void run(const ExecutionSpace& exec, const char* function, const RowOffsets& offsets, std::int64_t rows,
                  std::int64_t elements);
  /// Throws for the first of an index' numbers that is no row's.
  static void run_index(const ExecutionSpace& exec, const char* function, const RowOffsets& index, std::int64_t rows,
                        std::int64_t elements);
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_COMPILED_SEGMENTED_CALLS_HPP
