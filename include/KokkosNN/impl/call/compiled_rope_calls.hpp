// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_COMPILED_ROPE_CALLS_HPP
#define KOKKOSNN_IMPL_CALL_COMPILED_ROPE_CALLS_HPP

#include <KokkosNN/impl/call/compiled_calls.hpp>
#include <KokkosNN/impl/call/rope_plan.hpp>
#include <KokkosNN/options.hpp>

// Calls of the rotary embedding without their kernels, as compiled_calls.hpp has the others.

namespace KokkosNN::Impl {

/// A checked call. `direction`: 1, or -1 for the gradient, which rotates back.
struct RopeArguments {
  const char* function;
  const RopeTensors& tensors;
  const RopeLayout& layout;
  const RopeOptions& options;
  int direction;
};

/// rope or rope_backward of rows of X.
template <class ExecutionSpace, class X>
struct RopeCall {
  /// Looks at the positions first if the options ask for that.
  static void run(const ExecutionSpace& exec, const RopeArguments& call);
};

/// A checked RMSNorm with a rotary embedding.
struct RmsNormRopeArguments {
  const char* function;
  const RopeTensors& tensors;
  const Tensor& weight;  ///< an element a column, or one a head and column; or none
  const RopeLayout& layout;
  const RmsNormRopeOptions& options;
};

/// rms_norm_rope of rows of X.
template <class ExecutionSpace, class X>
struct RmsNormRopeCall {
  /// Looks at the positions first if the options ask for that.
  static void run(const ExecutionSpace& exec, const RmsNormRopeArguments& call);
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_COMPILED_ROPE_CALLS_HPP
