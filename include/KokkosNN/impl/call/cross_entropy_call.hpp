// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_CROSS_ENTROPY_CALL_HPP
#define KOKKOSNN_IMPL_CALL_CROSS_ENTROPY_CALL_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/instantiations/cross_entropy.hpp>
#include <KokkosNN/impl/call/cross_entropy_launch.hpp>
#include <KokkosNN/impl/call/layout.hpp>
#include <KokkosNN/impl/traits.hpp>
#include <KokkosNN/options.hpp>
#include <KokkosNN/plan.hpp>

#include <Kokkos_Core.hpp>

#include <concepts>
#include <type_traits>

// The body of a cross entropy: check what the compiler can see, normalise, plan, launch.

namespace KokkosNN {

/// In place of a View that a call does without.
struct NoView {};
inline constexpr NoView no_view;

namespace Concepts {

/// A View, or NoView.
template <class T>
concept OptionalView = View<T> || std::same_as<T, NoView>;

}  // namespace Concepts

namespace Impl {

template <class V>
inline constexpr bool is_given = !std::is_same_v<V, NoView>;

template <Concepts::OptionalView V>
Tensor tensor_if_given(const V& view) {
  if constexpr (is_given<V>) {
    return tensor_of(view);
  } else {
    return {};
  }
}

/// The element type of a View, or a fallback.
template <class V, class T>
struct ValueIfGiven {
  using type = typename V::non_const_value_type;
};
template <class T>
struct ValueIfGiven<NoView, T> {
  using type = T;
};

template <class T, Concepts::OptionalView V>
T* data_if_given(const V& view) {
  if constexpr (is_given<V>) {
    return view.data();
  } else {
    return nullptr;
  }
}

// A static_assert's text must be a literal before C++26, so each function has its own. Of a View that is optional:
#define KOKKOSNN_IMPL_CHECK_OPTIONAL(NAME, VIEW, V, TYPE_OK, TYPE_TEXT, RANK_OK, RANK_TEXT, MAY_BE_CONST) \
  if constexpr (is_given<V>) {                                                                            \
    static_assert(RANK_OK, "KokkosNN::" NAME ": " VIEW " must " RANK_TEXT);                               \
    static_assert(TYPE_OK, "KokkosNN::" NAME ": " VIEW " must hold " TYPE_TEXT);                          \
    static_assert(MAY_BE_CONST || !std::is_const_v<typename V::value_type>,                               \
                  "KokkosNN::" NAME ": " VIEW " must not be const");                                      \
    static_assert(Kokkos::SpaceAccessibility<Exec, typename V::memory_space>::accessible,                 \
                  "KokkosNN::" NAME ": the execution space must be able to access the memory of " VIEW);  \
  }

#define KOKKOSNN_IMPL_CHECK_CROSS_ENTROPY(NAME, LOSS, IS_BACKWARD)                                                   \
  static_assert(LogitsView::rank() >= 1, "KokkosNN::" NAME ": logits must have rank 1 to 8");                        \
  KOKKOSNN_IMPL_CHECK_OPTIONAL(NAME, "logits", LogitsView, Concepts::Element<X>, "double, float, half_t or bhalf_t", \
                               true, "have a rank", true)                                                            \
  KOKKOSNN_IMPL_CHECK_OPTIONAL(NAME, "labels", LabelsView, is_label<typename LabelsView::non_const_value_type>,      \
                               "integers", LabelsView::rank() + 1 == LogitsView::rank(),                             \
                               "have one axis less than logits", true)                                               \
  KOKKOSNN_IMPL_CHECK_OPTIONAL(NAME, LOSS, LossView, holds_accumulators<LossView>, "float, or double if logits do",  \
                               LossView::rank() == 0 || LossView::rank() + 1 == LogitsView::rank(),                  \
                               "have rank 0 or one axis less than logits", IS_BACKWARD)                              \
  KOKKOSNN_IMPL_CHECK_OPTIONAL(NAME, "lse", LseView, holds_accumulators<LseView>, "float, or double if logits do",   \
                               LseView::rank() + 1 == LogitsView::rank(), "have one axis less than logits",          \
                               IS_BACKWARD)                                                                          \
  KOKKOSNN_IMPL_CHECK_OPTIONAL(NAME, "dlogits", DlogitsView,                                                         \
                               (Concepts::Element<Y> && std::is_same_v<accumulator_t<Y>, A>),                        \
                               "double if logits do, else float, half_t or bhalf_t",                                 \
                               DlogitsView::rank() == LogitsView::rank(), "have the rank of logits", false)          \
  KOKKOSNN_IMPL_CHECK_OPTIONAL(NAME, "weights", WeightsView, holds_accumulators<WeightsView>,                        \
                               "float, or double if logits do", WeightsView::rank() == 1, "have rank 1", true)

/// The Views of a cross entropy. `loss` is its gradient in the backward; NoView stands for what there is not.
template <RowOperator op, class LogitsView, class LabelsView, class LossView, class LseView, class DlogitsView,
          class WeightsView>
struct CrossEntropyViews {
  using X = typename LogitsView::non_const_value_type;
  using Y = typename ValueIfGiven<DlogitsView, X>::type;
  using A = accumulator_t<X>;

  static constexpr bool is_backward = op == RowOperator::cross_entropy_backward;

  template <class T>
  static constexpr bool is_label = std::is_integral_v<T> && !std::is_same_v<T, bool>;
  template <class V>
  static constexpr bool holds_accumulators = std::is_same_v<typename V::non_const_value_type, A>;

  const LogitsView& logits;
  const LabelsView& labels;
  const LossView& loss;
  const LseView& lse;
  const DlogitsView& dlogits;
  const WeightsView& weights;

  /// What the compiler can see of a call.
  template <class Exec>
  static constexpr void check() {
    if constexpr (op == RowOperator::cross_entropy) {
      KOKKOSNN_IMPL_CHECK_CROSS_ENTROPY("cross_entropy", "loss", false)
    } else if constexpr (op == RowOperator::cross_entropy_backward) {
      KOKKOSNN_IMPL_CHECK_CROSS_ENTROPY("cross_entropy_backward", "dloss", true)
    } else {
      KOKKOSNN_IMPL_CHECK_CROSS_ENTROPY("cross_entropy_with_gradient", "loss", false)
    }
  }

  CrossEntropyTensors tensors() const {
    return {tensor_of(logits), tensor_if_given(dlogits), tensor_of(labels),
            tensor_of(loss),   tensor_if_given(lse),     tensor_if_given(weights)};
  }

  CrossEntropyPointers<X, Y, A> pointers() const {
    using LabelType = typename LabelsView::non_const_value_type;
    CrossEntropyPointers<X, Y, A> data{};
    data.logits            = logits.data();
    data.labels            = labels.data();
    data.label_bytes       = sizeof(LabelType);
    data.labels_are_signed = std::is_signed_v<LabelType>;
    data.dlogits           = data_if_given<Y>(dlogits);
    data.weights           = {data_if_given<const A>(weights), tensor_if_given(weights).stride[0]};
    if constexpr (is_backward) {
      data.dloss  = loss.data();
      data.lse_in = lse.data();
    } else {
      data.loss    = loss.data();
      data.lse_out = data_if_given<A>(lse);
    }
    return data;
  }
};

#undef KOKKOSNN_IMPL_CHECK_CROSS_ENTROPY
#undef KOKKOSNN_IMPL_CHECK_OPTIONAL

template <class Views, class Exec>
RowPlan plan_cross_entropy(RowOperator op, const Exec& exec, const CrossEntropyLayout& layout,
                           const CrossEntropyOptions& options) {
  using X = typename Views::X;
  using Y = typename Views::Y;
  RowProblem problem;
  problem.op                = op;
  problem.x_type            = element_type<X>();
  problem.y_type            = element_type<Y>();
  problem.x_bytes           = sizeof(X);
  problem.y_bytes           = sizeof(Y);
  problem.accumulator_bytes = sizeof(typename Views::A);
  problem.rows              = layout.rows;
  problem.cols              = layout.cols;
  problem.x_col_stride      = layout.col_stride[CrossEntropyLayout::logits];
  problem.y_col_stride      = layout.col_stride[CrossEntropyLayout::dlogits];
  problem.inner             = 0;  // no lanes over another axis
  problem.form              = layout.form;
  SoftmaxOptions planned;
  planned.determinism = options.determinism;
  planned.plan        = options.plan;
  return make_plan(problem, device_traits(exec), planned);
}

template <RowOperator op, class Exec, class Views>
void cross_entropy_call(const Exec& exec, const Views& views, const CrossEntropyOptions& options) {
  using Call                      = CrossEntropyCall<Exec, op, typename Views::X, typename Views::Y>;
  const CrossEntropyLayout layout = normalise_cross_entropy(to_string(op), op, views.tensors(), options);
  const auto data                 = views.pointers();
  const RowPlan plan              = layout.rows > 0 ? plan_cross_entropy<Views>(op, exec, layout, options) : RowPlan{};
  if (options.check_labels) Call::check_labels(exec, layout, options, data);
  Call::run(exec, plan, layout, options, data);
}

}  // namespace Impl
}  // namespace KokkosNN

#endif  // KOKKOSNN_IMPL_CALL_CROSS_ENTROPY_CALL_HPP
