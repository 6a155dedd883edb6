// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_SOFT_LOSS_CALL_HPP
#define KOKKOSNN_IMPL_CALL_SOFT_LOSS_CALL_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/instantiations/soft_loss.hpp>
#include <KokkosNN/impl/call/call.hpp>
#include <KokkosNN/impl/call/checks.hpp>
#include <KokkosNN/impl/call/compiled_calls.hpp>
#include <KokkosNN/impl/call/layout.hpp>
#include <KokkosNN/impl/call/optional_view.hpp>
#include <KokkosNN/options.hpp>
#include <KokkosNN/plan.hpp>

#include <type_traits>

namespace KokkosNN::Impl {

/// The Views of a cross entropy against probabilities; NoView stands for what there is not.
template <RowOperator row_operator, class LogitsView, class DlogitsView, class TargetsView, class WeightsView,
          class LossView, class LseView>
struct SoftLossViews {
  static constexpr RowOperator op = row_operator;
  using Options                   = SoftCrossEntropyOptions;
  using T                         = typename LogitsView::non_const_value_type;
  using A                         = accumulator_t<T>;
  template <class Exec>
  using Call = SoftLossCall<Exec, op, T>;

  template <class Exec>
  static constexpr void check() {
    static_assert(LogitsView::rank() >= 1, "KokkosNN::soft_cross_entropy: logits must have rank 1 to 8");
    static_assert(hold_elements<LogitsView>,
                  "KokkosNN::soft_cross_entropy: logits must hold double, float, half_t or bhalf_t");
    static_assert(hold_one_type<LogitsView, TargetsView> && TargetsView::rank() == LogitsView::rank(),
                  "KokkosNN::soft_cross_entropy: targets must have the rank and the type of logits");
    static_assert(LossView::rank() == 0 || LossView::rank() + 1 == LogitsView::rank(),
                  "KokkosNN::soft_cross_entropy: loss must have rank 0 or one axis less than logits");
    static_assert(holds_type<LossView, A> && is_writable<LossView>,
                  "KokkosNN::soft_cross_entropy: loss must hold float, or double if logits do, and not be const");
    static_assert(can_access<Exec, LogitsView, TargetsView, LossView>,
                  "KokkosNN::soft_cross_entropy: the execution space must be able to access the Views' memory");
    check_optional<Exec>();
  }

  static Tensors tensors(const LogitsView& logits, const DlogitsView& dlogits, const TargetsView& targets,
                         const WeightsView& weights, const LossView& loss, const LseView& lse) {
    return {tensor_of(logits),  tensor_of(dlogits), tensor_of(targets),
            tensor_of(weights), tensor_of(loss),    tensor_of(lse)};
  }

 private:
  template <class Exec>
  static constexpr void check_optional() {
    if constexpr (is_given<DlogitsView>) {
      static_assert(
          hold_one_type<LogitsView, DlogitsView> && DlogitsView::rank() == LogitsView::rank() &&
              is_writable<DlogitsView> && can_access<Exec, DlogitsView>,
          "KokkosNN::soft_cross_entropy_with_gradient: dlogits must have the rank and the type of logits, not "
          "be const and be accessible");
    }
    if constexpr (is_given<WeightsView>) {
      static_assert(
          WeightsView::rank() == 1 && (holds_type<WeightsView, A> || holds_type<WeightsView, T>) &&
              can_access<Exec, WeightsView>,
          "KokkosNN::soft_cross_entropy: weights must have rank 1, hold the logits' type or its accumulator's "
          "and be accessible");
    }
    if constexpr (is_given<LseView>) {
      static_assert(LseView::rank() + 1 == LogitsView::rank() && holds_type<LseView, A> && is_writable<LseView> &&
                        can_access<Exec, LseView>,
                    "KokkosNN::soft_cross_entropy: lse must have one axis less than logits, hold float, or double if "
                    "logits do, not be const and be accessible");
    }
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_SOFT_LOSS_CALL_HPP
