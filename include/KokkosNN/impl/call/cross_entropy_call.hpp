// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_CROSS_ENTROPY_CALL_HPP
#define KOKKOSNN_IMPL_CALL_CROSS_ENTROPY_CALL_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/call.hpp>
#include <KokkosNN/impl/call/checks.hpp>
#include <KokkosNN/instantiations/cross_entropy.hpp>
#include <KokkosNN/impl/call/compiled_calls.hpp>
#include <KokkosNN/impl/call/layout.hpp>
#include <KokkosNN/impl/call/optional_view.hpp>
#include <KokkosNN/options.hpp>
#include <KokkosNN/plan.hpp>

namespace KokkosNN::Impl {

/// The Views of a cross entropy. `loss` is its gradient in the backward; NoView stands for what there is not.
template <RowOperator row_operator, class LogitsView, class LabelsView, class LossView, class LseView,
          class DlogitsView, class WeightsView>
struct CrossEntropyViews {
  static constexpr RowOperator op = row_operator;
  using Options                   = CrossEntropyOptions;
  using X                         = typename LogitsView::non_const_value_type;
  using Y                         = typename ValueIfGiven<DlogitsView, X>::type;
  using A                         = accumulator_t<X>;
  template <class Exec>
  using Call = CrossEntropyCall<Exec, op, X, Y>;

  template <class Exec>
  static constexpr void check() {
    check_cross_entropy<op, Exec, LogitsView, LabelsView, LossView, LseView, DlogitsView, WeightsView>();
  }
  static Tensors tensors(const LogitsView& logits, const LabelsView& labels, const LossView& loss, const LseView& lse,
                         const DlogitsView& dlogits, const WeightsView& weights) {
    return {tensor_of(logits), tensor_of(dlogits), tensor_of(labels),
            tensor_of(loss),   tensor_of(lse),     tensor_of(weights)};
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_CROSS_ENTROPY_CALL_HPP
