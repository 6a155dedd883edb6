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

#include <Kokkos_Core.hpp>
#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <type_traits>

namespace KokkosNN::Impl {

/// The Views of a cross entropy. `loss` is its gradient in the backward; NoView stands for what there is not.
template <RowOperator row_operator, class LogitsView, class LabelsView, class LossView, class LseView,
          class DlogitsView, class WeightsView, class PredictedView = NoView>
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
    check_cross_entropy<op, Exec, LogitsView, LabelsView, LossView, LseView, DlogitsView, WeightsView, PredictedView>();
  }
  static Tensors tensors(const LogitsView& logits, const LabelsView& labels, const LossView& loss, const LseView& lse,
                         const DlogitsView& dlogits, const WeightsView& weights, const PredictedView& predicted = {}) {
    return {tensor_of(logits), tensor_of(dlogits), tensor_of(labels),   tensor_of(loss),
            tensor_of(lse),    tensor_of(weights), tensor_of(predicted)};
  }
};

/// The body of cross_entropy_from_lse: check what the compiler can see, launch.
template <class Exec, class LseView, class LogitsView, class LabelsView, class LossView, class WeightsView>
void cross_entropy_from_lse_call(const Exec& exec, const LseView& lse, const LogitsView& label_logits,
                                 const LabelsView& labels, const LossView& loss, const CrossEntropyOptions& options,
                                 const WeightsView& weights) {
  using A = typename LseView::non_const_value_type;
  static_assert(std::is_same_v<A, float> || std::is_same_v<A, double>,
                "KokkosNN::cross_entropy_from_lse: lse must hold float or double");
  static_assert(hold_one_type<LseView, LogitsView, LossView>,
                "KokkosNN::cross_entropy_from_lse: lse, label_logits and loss must hold the same type");
  static_assert(holds_integers<LabelsView>, "KokkosNN::cross_entropy_from_lse: labels must hold integers");
  static_assert(
      LseView::rank() < max_rank && LogitsView::rank() == LseView::rank() && LabelsView::rank() == LseView::rank() &&
          (LossView::rank() == 0 || LossView::rank() == LseView::rank()),
      "KokkosNN::cross_entropy_from_lse: lse, label_logits and labels must have one rank, 0 to 7, loss too or "
      "rank 0");
  static_assert(is_writable<LossView>, "KokkosNN::cross_entropy_from_lse: loss must not be const");
  static_assert(can_access<Exec, LseView, LogitsView, LabelsView, LossView>,
                "KokkosNN::cross_entropy_from_lse: the execution space must be able to access the Views' memory");
  if constexpr (is_given<WeightsView>) {
    static_assert(WeightsView::rank() == 1 && hold_one_type<LseView, WeightsView> && can_access<Exec, WeightsView>,
                  "KokkosNN::cross_entropy_from_lse: weights must have rank 1, hold lse's type and be accessible");
  }
  require_kernels<LossOfLseCall<Exec, A>>();
  const Kokkos::Profiling::ScopedRegion region("KokkosNN::cross_entropy_from_lse");
  LossOfLseCall<Exec, A>::run(
      exec, {tensor_of(lse), tensor_of(loss), tensor_of(label_logits), tensor_of(labels), tensor_of(weights)}, options);
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_CROSS_ENTROPY_CALL_HPP
