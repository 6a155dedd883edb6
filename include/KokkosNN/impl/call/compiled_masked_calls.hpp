// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_COMPILED_MASKED_CALLS_HPP
#define KOKKOSNN_IMPL_CALL_COMPILED_MASKED_CALLS_HPP

#include <KokkosNN/impl/call/arguments.hpp>
#include <KokkosNN/impl/call/compiled_calls.hpp>
#include <KokkosNN/impl/call/mask_layout.hpp>
#include <KokkosNN/impl/call/workspace.hpp>
#include <KokkosNN/plan.hpp>

// Calls on masked rows without their kernels, as compiled_calls.hpp has the others.

namespace KokkosNN::Impl {

template <class ExecutionSpace>
using MaskedArguments = CallArguments<ExecutionSpace, MaskedLayout, MaskedOptions>;

/// masked_softmax, masked_log_softmax or masked_logsumexp of rows of X to rows, or values, of Y.
template <class ExecutionSpace, RowOperator op, class X, class Y>
struct MaskedCall {
  using Arguments = MaskedArguments<ExecutionSpace>;

  static void run(const ExecutionSpace& exec, const Arguments& call);
  /// Makes room for the call's workspace in that of a plan object.
  static void reserve(const ExecutionSpace& exec, const RowPlan& plan, WorkspaceView<ExecutionSpace>& workspace);
};

/// The gradient of one of the first two with respect to x; X is also y's type.
template <class ExecutionSpace, RowOperator op, class X, class D, class Dx>
struct MaskedGradientCall {
  using Arguments = MaskedArguments<ExecutionSpace>;

  static void run(const ExecutionSpace& exec, const Arguments& call);
};

/// The sum of the logits' gradients to a bias' shape or to one value a head; the result holds Y or float.
template <class ExecutionSpace, class Y, class D>
struct MaskSumsCall {
  struct Arguments {
    const MaskSums& sums;
    const MaskSums& whole;
    const MaskTensors& mask;
    const Y* y;
    const D* dy;
    void* result;
    bool result_is_float;
    double sign;
  };

  static void run(const ExecutionSpace& exec, const Arguments& call);
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_COMPILED_MASKED_CALLS_HPP
