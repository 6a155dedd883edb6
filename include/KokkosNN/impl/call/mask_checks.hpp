// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_MASK_CHECKS_HPP
#define KOKKOSNN_IMPL_CALL_MASK_CHECKS_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/checks.hpp>
#include <KokkosNN/mask.hpp>

#include <concepts>
#include <type_traits>

// Masked calls as the compiler sees them.

namespace KokkosNN::Impl {

/// How many of a mask's parts are of each kind, and whether each can be used by `Exec` beside x of type X.
template <class Exec, class XView>
struct MaskChecks {
  /// A bias', a slope's or a scale's type.
  template <class V>
  static constexpr bool is_addable =
      std::same_as<typename V::non_const_value_type, float> ||
      std::same_as<typename V::non_const_value_type, typename XView::non_const_value_type>;

  template <class V>
  static constexpr void check(const BooleanMask<V>*) {
    static_assert(std::integral<typename V::value_type> && sizeof(typename V::value_type) == 1,
                  "KokkosNN::BooleanMask: the View must hold bool or integers of one byte");
    static_assert(V::rank() <= XView::rank(), "KokkosNN::BooleanMask: the View must not have more axes than x");
    static_assert(can_access<Exec, V>, "KokkosNN::BooleanMask: the execution space must be able to access its memory");
  }
  template <class V>
  static constexpr void check(const AdditiveBias<V>*) {
    static_assert(is_addable<V>, "KokkosNN::AdditiveBias: the View must hold x's type or float");
    static_assert(V::rank() <= XView::rank(), "KokkosNN::AdditiveBias: the View must not have more axes than x");
    static_assert(can_access<Exec, V>, "KokkosNN::AdditiveBias: the execution space must be able to access its memory");
  }
  /// A length's or an offset's type.
  template <class V, class T = typename V::non_const_value_type>
  static constexpr bool is_count = std::integral<T> && std::is_signed_v<T> && (sizeof(T) == 4 || sizeof(T) == 8);

  template <class V>
  static constexpr void check(const DiagonalOffsets<V>*) {
    static_assert(is_count<V>, "KokkosNN::DiagonalOffsets: the View must hold signed integers of 32 or 64 bits");
    static_assert(V::rank() >= 1 && V::rank() < XView::rank(),
                  "KokkosNN::DiagonalOffsets: the View must have rank 1 or up to one axis less than x");
    static_assert(can_access<Exec, V>,
                  "KokkosNN::DiagonalOffsets: the execution space must be able to access its memory");
  }
  template <class V>
  static constexpr void check(const RowLengths<V>*) {
    static_assert(is_count<V>, "KokkosNN::RowLengths: the View must hold signed integers of 32 or 64 bits");
    static_assert(V::rank() >= 1 && V::rank() < XView::rank(),
                  "KokkosNN::RowLengths: the View must have rank 1 or up to one axis less than x");
    static_assert(can_access<Exec, V>, "KokkosNN::RowLengths: the execution space must be able to access its memory");
  }
  template <class V>
  static constexpr void check(const Alibi<V>*) {
    static_assert(is_addable<V>, "KokkosNN::Alibi: slopes must hold x's type or float");
    static_assert(V::rank() == 1, "KokkosNN::Alibi: slopes must have rank 1, a slope a head");
    static_assert(can_access<Exec, V>, "KokkosNN::Alibi: the execution space must be able to access its memory");
  }
  template <class V>
  static constexpr void check(const RowScales<V>*) {
    static_assert(is_addable<V>, "KokkosNN::RowScales: the View must hold x's type or float");
    static_assert(V::rank() >= 1 && V::rank() < XView::rank(),
                  "KokkosNN::RowScales: the View must have rank 1 or up to one axis less than x");
    static_assert(can_access<Exec, V>, "KokkosNN::RowScales: the execution space must be able to access its memory");
  }
  static constexpr void check(const CausalMask*) {}
  static constexpr void check(const SlidingWindow*) {}

  template <template <class> class Kind, class... Parts>
  static constexpr int count = (0 + ... + int(is_mask_of<Parts, Kind>));

  template <class... Parts>
  static constexpr void check(const Masks<Parts...>*) {
    static_assert(count<BooleanMask, Parts...> <= 1 && count<AdditiveBias, Parts...> <= 1 &&
                      count<RowLengths, Parts...> <= 1 && count<Alibi, Parts...> <= 1 &&
                      count<DiagonalOffsets, Parts...> <= 1 && count<RowScales, Parts...> <= 1 &&
                      (0 + ... + int(std::is_same_v<Parts, CausalMask>)) <= 1 &&
                      (0 + ... + int(std::is_same_v<Parts, SlidingWindow>)) <= 1,
                  "KokkosNN::masks: at most one mask of each kind can be joined");
    (check(static_cast<const Parts*>(nullptr)), ...);
  }
};

/// A masked call as the compiler sees it: y has rows, or, of a log-sum-exp, a value a row.
template <class Exec, class XView, class M, class YView, bool has_values = false>
constexpr void check_masked() {
  static_assert(XView::rank() >= 2, "KokkosNN::masked_softmax: x must have rank 2 to 8: (..., head, query, key)");
  static_assert(has_values || XView::rank() == YView::rank(),
                "KokkosNN::masked_softmax: x and y must have the same rank");
  static_assert(!has_values || XView::rank() == YView::rank() + 1,
                "KokkosNN::masked_logsumexp: lse must have one axis less than x");
  static_assert((hold_elements<XView, YView>),
                "KokkosNN::masked_softmax: x and y must hold double, float, half_t or bhalf_t");
  static_assert(is_writable<YView>, "KokkosNN::masked_softmax: y must not be const");
  static_assert((can_access<Exec, XView, YView>),
                "KokkosNN::masked_softmax: the execution space must be able to access the memory of x and of y");
  MaskChecks<Exec, XView>::check(static_cast<const M*>(nullptr));
}

/// Checks of the gradient with respect to x.
template <class Exec, class XView, class YView, class DyView, class M, class DxView>
constexpr void check_masked_gradient() {
  static_assert(YView::rank() >= 2 && XView::rank() == YView::rank() && DyView::rank() == YView::rank() &&
                    DxView::rank() == YView::rank(),
                "KokkosNN::masked_softmax_backward: x, y, dy and dx must have the same rank, 2 to 8");
  static_assert(std::same_as<typename XView::non_const_value_type, typename YView::non_const_value_type>,
                "KokkosNN::masked_softmax_backward: x and y must hold the same type");
  static_assert((hold_elements<YView, DyView, DxView>),
                "KokkosNN::masked_softmax_backward: all Views must hold double, float, half_t or bhalf_t");
  static_assert(is_writable<DxView>, "KokkosNN::masked_softmax_backward: dx must not be const");
  static_assert(
      (can_access<Exec, XView, YView, DyView, DxView>),
      "KokkosNN::masked_softmax_backward: the execution space must be able to access the memory of all Views");
  MaskChecks<Exec, YView>::check(static_cast<const M*>(nullptr));
}

/// And for those with respect to a bias and to sinks.
template <class Exec, class YView, class DyView, class M, class ResultView>
constexpr void check_mask_sums() {
  static_assert(YView::rank() >= 2 && DyView::rank() == YView::rank() && ResultView::rank() <= YView::rank(),
                "KokkosNN::masked_softmax_backward: y and dy must have the same rank, and a bias not more axes");
  static_assert((hold_elements<YView, DyView>),
                "KokkosNN::masked_softmax_backward: y and dy must hold double, float, half_t or bhalf_t");
  static_assert(std::same_as<typename ResultView::value_type, float> ||
                    std::same_as<typename ResultView::value_type, typename YView::non_const_value_type>,
                "KokkosNN::masked_softmax_backward: dbias and dsinks must hold y's type or float");
  static_assert(
      (can_access<Exec, YView, DyView, ResultView>),
      "KokkosNN::masked_softmax_backward: the execution space must be able to access the memory of all Views");
  MaskChecks<Exec, YView>::check(static_cast<const M*>(nullptr));
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_MASK_CHECKS_HPP
