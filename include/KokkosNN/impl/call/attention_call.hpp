// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_ATTENTION_CALL_HPP
#define KOKKOSNN_IMPL_CALL_ATTENTION_CALL_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/checks.hpp>
#include <KokkosNN/impl/call/compiled_attention_calls.hpp>
#include <KokkosNN/impl/call/mask_checks.hpp>
#include <KokkosNN/impl/call/masked_call.hpp>
#include <KokkosNN/impl/call/optional_view.hpp>
#include <KokkosNN/instantiations/attention.hpp>

#include <Kokkos_Core.hpp>
#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <concepts>
#include <string>
#include <type_traits>

// The body of attention: check what the compiler can see, then the arguments, launch.

namespace KokkosNN::Impl {

template <class Exec, class QView, class LseView>
constexpr void check_log_sum_exps() {
  using A = accumulator_t<typename QView::non_const_value_type>;
  static_assert(QView::rank() != 4 || LseView::rank() == 3,
                "KokkosNN::attention: lse must have rank 3: batch, head, query");
  static_assert(QView::rank() != 3 || LseView::rank() == 2,
                "KokkosNN::packed_attention: lse must have rank 2: token, head");
  static_assert(std::is_same_v<typename LseView::non_const_value_type, A>,
                "KokkosNN::attention: lse must hold double if q does, else float");
  static_assert(can_access<Exec, LseView>,
                "KokkosNN::attention: the execution space must be able to access the memory of lse");
}

template <int rank, class... Views>
constexpr void check_ranks() {
  static_assert(rank != 4 || ((Views::rank() == 4) && ...),
                "KokkosNN::attention: all Views but lse must have rank 4: batch, head, sequence, dim");
  static_assert(rank != 3 || ((Views::rank() == 3) && ...),
                "KokkosNN::packed_attention: all Views but lse must have rank 3: token, head, dim");
}

/// Checks of attention with and without an epilogue: all but the types of k, v and o.
template <int rank, class Exec, class QView, class KView, class VView, class OView, class M, class LseView>
constexpr void check_attention_to_any() {
  check_ranks<rank, QView, KView, VView, OView>();
  static_assert(hold_elements<QView>, "KokkosNN::attention: q must hold double, float, half_t or bhalf_t");
  static_assert(is_writable<OView>, "KokkosNN::attention: o must not be const");
  static_assert(can_access<Exec, QView, KView, VView, OView>,
                "KokkosNN::attention: the execution space must be able to access the memory of q, k, v and o");
  if constexpr (is_given<LseView>) {
    check_log_sum_exps<Exec, QView, LseView>();
    static_assert(is_writable<LseView>, "KokkosNN::attention: lse must not be const");
  }
  MaskChecks<Exec, QView>::check(static_cast<const M*>(nullptr));
}

template <int rank, class Exec, class QView, class KView, class VView, class OView, class M, class LseView>
constexpr void check_attention() {
  static_assert(hold_one_type<QView, KView, VView, OView>,
                "KokkosNN::attention: q, k, v and o must hold the same type");
  check_attention_to_any<rank, Exec, QView, KView, VView, OView, M, LseView>();
}

/// Checks a call and enqueues it: run(arguments).
template <class Run>
void checked_attention_call(const char* function, const AttentionTensors& tensors, const AttentionCallOptions& options,
                            const Run& run) {
  const Kokkos::Profiling::ScopedRegion region(std::string("KokkosNN::") + function);
  const AttentionLayout layout = normalise_attention(function, tensors, options);
  if (layout.writes()) run(AttentionArguments{function, tensors, layout, options});
}

/// Calls attention on elements of X.
template <class X, class Exec>
void attention_call(const Exec& exec, const char* function, const AttentionTensors& tensors,
                    const AttentionCallOptions& options) {
  using Call = AttentionCall<Exec, X>;
  require_kernels<Call>();
  checked_attention_call(function, tensors, options, [&](const AttentionArguments& call) { Call::run(exec, call); });
}

template <int rank, class Exec, class QView, class KView, class VView, class OView, class DoutView, class LseView,
          class M, class DqView, class DkView, class DvView>
constexpr void check_attention_backward() {
  check_ranks<rank, QView, KView, VView, OView, DoutView, DqView, DkView, DvView>();
  static_assert(hold_elements<QView>, "KokkosNN::attention_backward: q must hold double, float, half_t or bhalf_t");
  static_assert(hold_one_type<QView, KView, VView, OView, DoutView, DqView, DkView, DvView>,
                "KokkosNN::attention_backward: all Views but lse must hold the same type");
  static_assert(is_writable<DqView> && is_writable<DkView> && is_writable<DvView>,
                "KokkosNN::attention_backward: dq, dk and dv must not be const");
  static_assert(can_access<Exec, QView, KView, VView, OView, DoutView, DqView, DkView, DvView>,
                "KokkosNN::attention_backward: the execution space must be able to access the memory of all Views");
  check_log_sum_exps<Exec, QView, LseView>();
  MaskChecks<Exec, QView>::check(static_cast<const M*>(nullptr));
}

/// Calls the gradients on elements of X.
template <class X, class Exec>
void attention_backward_call(const Exec& exec, const char* function, const AttentionGradientTensors& tensors,
                             const AttentionCallOptions& options) {
  using Call = AttentionGradientCall<Exec, X>;
  require_kernels<Call>();
  const Kokkos::Profiling::ScopedRegion region(std::string("KokkosNN::") + function);
  const AttentionGradientLayout layout = normalise_attention_gradient(function, tensors, options);
  Call::run(exec, {function, tensors, layout, options});
}

template <class Exec, class OPartsView, class LsePartsView, class OView, class LseView>
constexpr void check_merge_attention() {
  using X = typename OView::non_const_value_type;
  using A = accumulator_t<X>;
  static_assert(OView::rank() == 3 || OView::rank() == 4,
                "KokkosNN::merge_attention: o must have rank 4: batch, head, sequence, dim; or 3: token, head, dim");
  static_assert(
      OPartsView::rank() == OView::rank() + 1 && LsePartsView::rank() == OView::rank(),
      "KokkosNN::merge_attention: o_parts and lse_parts must have an axis of parts ahead of o's and of lse's");
  static_assert(hold_elements<OView>, "KokkosNN::merge_attention: o must hold double, float, half_t or bhalf_t");
  static_assert(std::is_same_v<typename OPartsView::non_const_value_type, X> ||
                    std::is_same_v<typename OPartsView::non_const_value_type, A>,
                "KokkosNN::merge_attention: o_parts must hold o's type, or double if o does, else float");
  static_assert(std::is_same_v<typename LsePartsView::non_const_value_type, A>,
                "KokkosNN::merge_attention: lse_parts must hold double if o does, else float");
  static_assert(is_writable<OView>, "KokkosNN::merge_attention: o must not be const");
  static_assert(can_access<Exec, OPartsView, LsePartsView, OView>,
                "KokkosNN::merge_attention: the execution space must be able to access the memory of all Views");
  if constexpr (is_given<LseView>) {
    check_log_sum_exps<Exec, OView, LseView>();
    static_assert(is_writable<LseView>, "KokkosNN::merge_attention: lse must not be const");
  }
}

/// Joins parts of P to a result of X.
template <class P, class X, class Exec>
void merge_attention_call(const Exec& exec, const AttentionMergeTensors& tensors, const AttentionCallOptions& options) {
  using Call = AttentionMergeCall<Exec, P, X>;
  require_kernels<Call>();
  const Kokkos::Profiling::ScopedRegion region("KokkosNN::merge_attention");
  const char* const function        = "merge_attention";
  const AttentionMergeLayout layout = normalise_attention_merge(function, tensors, options);
  if (layout.writes()) Call::run(exec, {function, tensors, layout, options});
}

/// Offsets of packed sequences.
template <class Exec, class... OffsetsViews>
constexpr void check_sequence_offsets() {
  static_assert(((OffsetsViews::rank() == 1) && ...),
                "KokkosNN::packed_attention: offsets must have rank 1: one more than there are sequences");
  static_assert(((std::signed_integral<typename OffsetsViews::non_const_value_type> &&
                  (sizeof(typename OffsetsViews::value_type) == 4 || sizeof(typename OffsetsViews::value_type) == 8)) &&
                 ...),
                "KokkosNN::packed_attention: offsets must hold signed integers of 32 or 64 bits");
  static_assert((can_access<Exec, OffsetsViews> && ...),
                "KokkosNN::packed_attention: the execution space must be able to access the memory of offsets");
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_ATTENTION_CALL_HPP
