// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_COMPILED_ATTENTION_CALLS_HPP
#define KOKKOSNN_IMPL_CALL_COMPILED_ATTENTION_CALLS_HPP

#include <KokkosNN/impl/call/attention_plan.hpp>
#include <KokkosNN/impl/call/compiled_calls.hpp>

// Calls of attention without their kernels, as compiled_calls.hpp has the others.

namespace KokkosNN::Impl {

/// A checked call.
struct AttentionArguments {
  const char* function;
  const AttentionTensors& tensors;
  const AttentionLayout& layout;
  const AttentionCallOptions& options;
};

/// Attention on tensors of X.
template <class ExecutionSpace, class X>
struct AttentionCall {
  static void run(const ExecutionSpace& exec, const AttentionArguments& call);
};

/// A checked call of the gradients.
struct AttentionGradientArguments {
  const char* function;
  const AttentionGradientTensors& tensors;
  const AttentionGradientLayout& layout;
  const AttentionCallOptions& options;
};

/// Gradients of attention on tensors of X.
template <class ExecutionSpace, class X>
struct AttentionGradientCall {
  static void run(const ExecutionSpace& exec, const AttentionGradientArguments& call);
};

/// A checked call that joins parts.
struct AttentionMergeArguments {
  const char* function;
  const AttentionMergeTensors& tensors;
  const AttentionMergeLayout& layout;
  const AttentionCallOptions& options;
};

/// Results of attention over disjoint keys, of P, joined to tensors of X.
template <class ExecutionSpace, class P, class X>
struct AttentionMergeCall {
  static void run(const ExecutionSpace& exec, const AttentionMergeArguments& call);
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_COMPILED_ATTENTION_CALLS_HPP
