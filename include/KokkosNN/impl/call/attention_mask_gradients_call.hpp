// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_ATTENTION_MASK_GRADIENTS_CALL_HPP
#define KOKKOSNN_IMPL_CALL_ATTENTION_MASK_GRADIENTS_CALL_HPP

#include <KokkosNN/impl/call/attention_call.hpp>
#include <KokkosNN/impl/call/attention_mask_gradients_layout.hpp>
#include <KokkosNN/impl/call/checks.hpp>
#include <KokkosNN/instantiations/attention_mask.hpp>

#include <Kokkos_Core.hpp>
#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <string>
#include <type_traits>

// The body of attention's gradients by a bias and by sinks.

namespace KokkosNN::Impl {

template <class Exec, class QView, class LseView, class ResultView, class... Others>
constexpr void check_attention_sums() {
  using T = typename ResultView::value_type;
  static_assert(hold_elements<QView>,
                "KokkosNN::attention_bias_backward: q must hold double, float, half_t or bhalf_t");
  static_assert(hold_one_type<QView, Others...>,
                "KokkosNN::attention_bias_backward: all inputs but lse must hold the same type");
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, typename QView::non_const_value_type>,
                "KokkosNN::attention_bias_backward: the result must hold q's type or float, and not be const");
  static_assert(
      can_access<Exec, QView, ResultView, Others...>,
      "KokkosNN::attention_bias_backward: the execution space must be able to access the memory of all Views");
  check_log_sum_exps<Exec, QView, LseView>();
}

/// Calls the gradient by a bias, or by sinks, on elements of X.
template <class X, class Exec>
void attention_mask_gradient_call(const Exec& exec, const char* function, bool of_sinks,
                                  const AttentionGradientTensors& tensors, const Tensor& result,
                                  const AttentionCallOptions& options) {
  using Call = AttentionMaskGradientCall<Exec, X>;
  require_kernels<Call>();
  const Kokkos::Profiling::ScopedRegion region(std::string("KokkosNN::") + function);
  const auto layout = normalise_attention_mask_gradient(function, of_sinks, tensors, result, options);
  Call::run(exec, {function, tensors, result, layout, options});
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_ATTENTION_MASK_GRADIENTS_CALL_HPP
