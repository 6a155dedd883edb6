// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_ATTENTION_MASK_GRADIENTS_LAYOUT_HPP
#define KOKKOSNN_IMPL_CALL_ATTENTION_MASK_GRADIENTS_LAYOUT_HPP

#include <KokkosNN/export.hpp>
#include <KokkosNN/impl/call/attention_plan.hpp>
#include <KokkosNN/impl/call/compiled_calls.hpp>

#include <cstdint>

// Calls of attention's gradients by a bias and by sinks on the host.

namespace KokkosNN::Impl {

/// A checked call. Of sinks there are no q, k and v.
struct AttentionMaskGradientLayout {
  AttentionGradientLayout gradient;
  bool of_sinks = false;
  AttentionStrides dbias;
  AttentionScores kept;  ///< extents of the bias
  std::int64_t dsink_stride = 0;
};

/// Checks a call: `result` is dbias, or dsinks. Throws std::invalid_argument as normalise_attention_gradient does, and
/// for a mask without a bias, options without sinks, or a result that has not their extents.
KOKKOSNN_EXPORT AttentionMaskGradientLayout normalise_attention_mask_gradient(const char* function, bool of_sinks,
                                                                              AttentionGradientTensors tensors,
                                                                              const Tensor& result,
                                                                              const AttentionCallOptions& options);

struct AttentionMaskGradientArguments {
  const char* function;
  const AttentionGradientTensors& tensors;
  const Tensor& result;
  const AttentionMaskGradientLayout& layout;
  const AttentionCallOptions& options;
};

/// Gradients of attention by its bias or its sinks on tensors of X.
template <class ExecutionSpace, class X>
struct AttentionMaskGradientCall {
  static void run(const ExecutionSpace& exec, const AttentionMaskGradientArguments& call);
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_ATTENTION_MASK_GRADIENTS_LAYOUT_HPP
