// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_CHECKS_HPP
#define KOKKOSNN_IMPL_CALL_CHECKS_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/optional_view.hpp>
#include <KokkosNN/plan.hpp>
#include <KokkosNN/segment_index.hpp>

#include <Kokkos_Core.hpp>

#include <concepts>
#include <type_traits>

// Calls as the compiler sees them: the element types, ranks and memory of their Views.

namespace KokkosNN::Impl {

template <class... V>
inline constexpr bool hold_elements = (... && Concepts::Element<typename V::non_const_value_type>);

template <class V, class... Others>
inline constexpr bool hold_one_type =
    (... && std::is_same_v<typename V::non_const_value_type, typename Others::non_const_value_type>);

template <class V>
inline constexpr bool is_writable = !std::is_const_v<typename V::value_type>;

template <class V>
inline constexpr bool holds_integers =
    std::integral<typename V::non_const_value_type> && !std::is_same_v<typename V::non_const_value_type, bool>;

template <class V>
inline constexpr bool holds_classes =
    std::signed_integral<typename V::non_const_value_type> && sizeof(typename V::non_const_value_type) >= 4;

template <class Exec, class... V>
inline constexpr bool can_access = (... && Kokkos::SpaceAccessibility<Exec, typename V::memory_space>::accessible);

/// A static_assert's text must be a literal before C++26, so each function has its own.
#define KOKKOSNN_IMPL_REQUIRE(NAME, HOLDS, TEXT) static_assert(HOLDS, "KokkosNN::" NAME ": " TEXT)

#define KOKKOSNN_IMPL_CHECK_SOFTMAX(NAME, Y, RANK_OK, RANK_TEXT)                                      \
  KOKKOSNN_IMPL_REQUIRE(NAME, XView::rank() >= 1, "x must have rank 1 to 8");                         \
  KOKKOSNN_IMPL_REQUIRE(NAME, RANK_OK, RANK_TEXT);                                                    \
  KOKKOSNN_IMPL_REQUIRE(NAME, hold_elements<XView>, "x must hold double, float, half_t or bhalf_t");  \
  KOKKOSNN_IMPL_REQUIRE(NAME, hold_elements<YView>, Y " must hold double, float, half_t or bhalf_t"); \
  KOKKOSNN_IMPL_REQUIRE(NAME, is_writable<YView>, Y " must not be const");                            \
  KOKKOSNN_IMPL_REQUIRE(NAME, (can_access<Exec, XView, YView>),                                       \
                        "the execution space must be able to access the memory of x and of " Y)

template <RowOperator op, class Exec, class XView, class YView>
constexpr void check_softmax() {
  if constexpr (op == RowOperator::softmax) {
    KOKKOSNN_IMPL_CHECK_SOFTMAX("softmax", "y", XView::rank() == YView::rank(), "x and y must have the same rank");
  } else if constexpr (op == RowOperator::log_softmax) {
    KOKKOSNN_IMPL_CHECK_SOFTMAX("log_softmax", "y", XView::rank() == YView::rank(), "x and y must have the same rank");
  } else {
    KOKKOSNN_IMPL_CHECK_SOFTMAX("logsumexp", "lse", XView::rank() > YView::rank(),
                                "lse must have one axis less than x");
  }
}

#undef KOKKOSNN_IMPL_CHECK_SOFTMAX

#define KOKKOSNN_IMPL_CHECK_GRADIENT(NAME, X, DY, DYS_RANK_OK, RANK_TEXT)                                            \
  KOKKOSNN_IMPL_REQUIRE(NAME, XView::rank() >= 1, X " must have rank 1 to 8");                                       \
  KOKKOSNN_IMPL_REQUIRE(NAME, DxView::rank() == XView::rank() && DyView::rank() == LseView::rank() && (DYS_RANK_OK), \
                        RANK_TEXT);                                                                                  \
  KOKKOSNN_IMPL_REQUIRE(NAME, (hold_elements<XView, DyView, LseView, DxView>),                                       \
                        "all Views must hold double, float, half_t or bhalf_t");                                     \
  KOKKOSNN_IMPL_REQUIRE(NAME, (hold_one_type<DyView, LseView>), "lse and dlse must hold the same type");             \
  KOKKOSNN_IMPL_REQUIRE(NAME, is_writable<DxView>, "dx must not be const");                                          \
  KOKKOSNN_IMPL_REQUIRE(NAME, (can_access<Exec, XView, DyView, LseView, DxView>),                                    \
                        "the execution space must be able to access the memory of " X ", " DY " and dx")

/// Where an operator has no lse, dy stands in for it.
template <RowOperator op, class Exec, class XView, class LseView, class DyView, class DxView>
constexpr void check_gradient() {
  if constexpr (op == RowOperator::softmax_backward) {
    KOKKOSNN_IMPL_CHECK_GRADIENT("softmax_backward", "y", "dy", DyView::rank() == XView::rank(),
                                 "y, dy and dx must have the same rank");
  } else if constexpr (op == RowOperator::log_softmax_backward) {
    KOKKOSNN_IMPL_CHECK_GRADIENT("log_softmax_backward", "y", "dy", DyView::rank() == XView::rank(),
                                 "y, dy and dx must have the same rank");
  } else {
    KOKKOSNN_IMPL_CHECK_GRADIENT("logsumexp_backward", "x", "lse, dlse", DyView::rank() < XView::rank(),
                                 "dx must have the rank of x, lse and dlse one axis less");
  }
}

#undef KOKKOSNN_IMPL_CHECK_GRADIENT

template <class V, class A>
inline constexpr bool holds_type = std::is_same_v<typename V::non_const_value_type, A>;

template <class V, class A>
inline constexpr bool holds_gradient =
    hold_elements<V> && std::is_same_v<accumulator_t<typename V::non_const_value_type>, A>;

#define KOKKOSNN_IMPL_CHECK_OPTIONAL(NAME, VIEW, V, TYPE_OK, TYPE_TEXT, RANK_OK, RANK_TEXT, MAY_BE_CONST) \
  if constexpr (is_given<V>) {                                                                            \
    KOKKOSNN_IMPL_REQUIRE(NAME, RANK_OK, VIEW " must " RANK_TEXT);                                        \
    KOKKOSNN_IMPL_REQUIRE(NAME, TYPE_OK, VIEW " must hold " TYPE_TEXT);                                   \
    KOKKOSNN_IMPL_REQUIRE(NAME, MAY_BE_CONST || is_writable<V>, VIEW " must not be const");               \
    KOKKOSNN_IMPL_REQUIRE(NAME, (can_access<Exec, V>),                                                    \
                          "the execution space must be able to access the memory of " VIEW);              \
  }

#define KOKKOSNN_IMPL_CHECK_CROSS_ENTROPY(NAME, LOSS, IS_BACKWARD)                                                   \
  KOKKOSNN_IMPL_REQUIRE(NAME, LogitsView::rank() >= 1, "logits must have rank 1 to 8");                              \
  KOKKOSNN_IMPL_CHECK_OPTIONAL(NAME, "logits", LogitsView, hold_elements<LogitsView>,                                \
                               "double, float, half_t or bhalf_t", true, "have a rank", true)                        \
  KOKKOSNN_IMPL_CHECK_OPTIONAL(NAME, "labels", LabelsView, holds_integers<LabelsView>, "integers",                   \
                               LabelsView::rank() + 1 == LogitsView::rank(), "have one axis less than logits", true) \
  KOKKOSNN_IMPL_CHECK_OPTIONAL(NAME, LOSS, LossView, (holds_type<LossView, A>), "float, or double if logits do",     \
                               LossView::rank() == 0 || LossView::rank() + 1 == LogitsView::rank(),                  \
                               "have rank 0 or one axis less than logits", IS_BACKWARD)                              \
  KOKKOSNN_IMPL_CHECK_OPTIONAL(NAME, "lse", LseView, (holds_type<LseView, A>), "float, or double if logits do",      \
                               LseView::rank() + 1 == LogitsView::rank(), "have one axis less than logits",          \
                               IS_BACKWARD)                                                                          \
  KOKKOSNN_IMPL_CHECK_OPTIONAL(NAME, "dlogits", DlogitsView, (holds_gradient<DlogitsView, A>),                       \
                               "double if logits do, else float, half_t or bhalf_t",                                 \
                               DlogitsView::rank() == LogitsView::rank(), "have the rank of logits", false)          \
  KOKKOSNN_IMPL_CHECK_OPTIONAL(NAME, "weights", WeightsView, (holds_type<WeightsView, A>),                           \
                               "float, or double if logits do", WeightsView::rank() == 1, "have rank 1", true)       \
  KOKKOSNN_IMPL_CHECK_OPTIONAL(NAME, "predicted", PredictedView, holds_classes<PredictedView>,                       \
                               "signed integers of 32 or 64 bits", PredictedView::rank() + 1 == LogitsView::rank(),  \
                               "have one axis less than logits", false)

template <RowOperator op, class Exec, class LogitsView, class LabelsView, class LossView, class LseView,
          class DlogitsView, class WeightsView, class PredictedView>
constexpr void check_cross_entropy() {
  using A = accumulator_t<typename LogitsView::non_const_value_type>;
  if constexpr (op == RowOperator::cross_entropy) {
    KOKKOSNN_IMPL_CHECK_CROSS_ENTROPY("cross_entropy", "loss", false)
  } else if constexpr (op == RowOperator::cross_entropy_backward) {
    KOKKOSNN_IMPL_CHECK_CROSS_ENTROPY("cross_entropy_backward", "dloss", true)
  } else {
    KOKKOSNN_IMPL_CHECK_CROSS_ENTROPY("cross_entropy_with_gradient", "loss", false)
  }
}

#undef KOKKOSNN_IMPL_CHECK_CROSS_ENTROPY
#undef KOKKOSNN_IMPL_CHECK_OPTIONAL

#define KOKKOSNN_IMPL_CHECK_SEGMENTED(NAME, INPUT, OUTPUT)                                                  \
  KOKKOSNN_IMPL_REQUIRE(NAME, OffsetsView::rank() == 1, "row_offsets must have rank 1");                    \
  KOKKOSNN_IMPL_REQUIRE(NAME, XView::rank() == YView::rank() && (XView::rank() == 1 || XView::rank() == 2), \
                        INPUT " and " OUTPUT " must both have rank 1, or 2 where there are heads");         \
  KOKKOSNN_IMPL_REQUIRE(NAME, holds_integers<OffsetsView>, "row_offsets must hold integers");               \
  KOKKOSNN_IMPL_REQUIRE(NAME, (hold_elements<XView, YView>),                                                \
                        INPUT " and " OUTPUT " must hold double, float, half_t or bhalf_t");                \
  KOKKOSNN_IMPL_REQUIRE(NAME, is_writable<YView>, OUTPUT " must not be const");                             \
  KOKKOSNN_IMPL_REQUIRE(NAME, (can_access<Exec, XView, OffsetsView, YView>),                                \
                        "the execution space must be able to access the memory of " INPUT ", row_offsets and " OUTPUT)

template <RowOperator op, class Exec, class XView, class Rows, class YView>
constexpr void check_segmented() {
  using OffsetsView = view_of_rows<Rows>;
  if constexpr (op == RowOperator::softmax) {
    KOKKOSNN_IMPL_CHECK_SEGMENTED("segmented_softmax", "values", "y");
  } else if constexpr (op == RowOperator::log_softmax) {
    KOKKOSNN_IMPL_CHECK_SEGMENTED("segmented_log_softmax", "values", "y");
  } else if constexpr (op == RowOperator::logsumexp) {
    KOKKOSNN_IMPL_CHECK_SEGMENTED("segmented_logsumexp", "values", "lse");
  } else if constexpr (op == RowOperator::softmax_backward) {
    KOKKOSNN_IMPL_CHECK_SEGMENTED("segmented_softmax_backward", "y and dy", "dx");
  } else {
    KOKKOSNN_IMPL_CHECK_SEGMENTED("segmented_log_softmax_backward", "y and dy", "dx");
  }
}

#undef KOKKOSNN_IMPL_CHECK_SEGMENTED

template <RowOperator op, class Exec, class YView, class DyView, class Rows, class DxView>
constexpr void check_segmented_gradient() {
  check_segmented<op, Exec, YView, Rows, DxView>();
  static_assert(DyView::rank() == YView::rank(), "KokkosNN: the gradients of ragged rows: dy must have the rank of y");
  static_assert(hold_one_type<DxView, YView, DyView>,
                "KokkosNN: the gradients of ragged rows: y, dy and dx must hold one type");
  static_assert(can_access<Exec, DyView>,
                "KokkosNN: the gradients of ragged rows: the execution space must be able to access the memory of dy");
}

#undef KOKKOSNN_IMPL_REQUIRE

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_CHECKS_HPP
