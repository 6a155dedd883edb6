// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_CALL_HPP
#define KOKKOSNN_IMPL_CALL_CALL_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/instantiations/forward.hpp>
#include <KokkosNN/impl/call/view_call.hpp>
#include <KokkosNN/impl/call/layout.hpp>
#include <KokkosNN/plan.hpp>

#include <Kokkos_Core.hpp>

#include <type_traits>

// The body of a public function: check what the compiler can see, normalise, plan, launch.

namespace KokkosNN::Impl {

struct SoftmaxName {
  static constexpr const char* value = "softmax";
};
struct LogSoftmaxName {
  static constexpr const char* value = "log_softmax";
};
struct LogSumExpName {
  static constexpr const char* value = "logsumexp";
};

// A static_assert's text must be a literal before C++26, so each function has its own.
#define KOKKOSNN_IMPL_CHECK_VIEWS(NAME, OUTPUT, RANK_OK, RANK_TEXT)                                                \
  static_assert(XView::rank() >= 1, "KokkosNN::" NAME ": x must have rank 1 to 8");                                \
  static_assert(RANK_OK, "KokkosNN::" NAME ": " RANK_TEXT);                                                        \
  static_assert(Concepts::Element<typename XView::non_const_value_type>,                                           \
                "KokkosNN::" NAME ": x must hold double, float, half_t or bhalf_t");                               \
  static_assert(Concepts::Element<typename YView::non_const_value_type>,                                           \
                "KokkosNN::" NAME ": " OUTPUT " must hold double, float, half_t or bhalf_t");                      \
  static_assert(!std::is_const_v<typename YView::value_type>, "KokkosNN::" NAME ": " OUTPUT " must not be const"); \
  static_assert(Kokkos::SpaceAccessibility<Exec, typename XView::memory_space>::accessible &&                      \
                    Kokkos::SpaceAccessibility<Exec, typename YView::memory_space>::accessible,                    \
                "KokkosNN::" NAME ": the execution space must be able to access the memory of x and of " OUTPUT)

/// What the compiler can see of a call.
template <class Exec, class XView, class YView, class Name>
constexpr void check_views() {
  if constexpr (std::is_same_v<Name, SoftmaxName>) {
    KOKKOSNN_IMPL_CHECK_VIEWS("softmax", "y", XView::rank() == YView::rank(), "x and y must have the same rank");
  } else if constexpr (std::is_same_v<Name, LogSoftmaxName>) {
    KOKKOSNN_IMPL_CHECK_VIEWS("log_softmax", "y", XView::rank() == YView::rank(), "x and y must have the same rank");
  } else {
    KOKKOSNN_IMPL_CHECK_VIEWS("logsumexp", "lse", XView::rank() == YView::rank() + 1,
                              "lse must have one axis less than x");
  }
}

#undef KOKKOSNN_IMPL_CHECK_VIEWS

/// The problem as the planner sees it.
template <class X, class Y>
RowProblem problem_of(RowOperator op, const RowLayout& layout) {
  RowProblem problem;
  problem.op                = op;
  problem.x_type            = element_type<X>();
  problem.y_type            = element_type<Y>();
  problem.x_bytes           = sizeof(X);
  problem.y_bytes           = op == RowOperator::logsumexp ? sizeof(X) : sizeof(Y);
  problem.accumulator_bytes = sizeof(common_accumulator_t<X, Y>);
  problem.rows              = layout.rows;
  problem.cols              = layout.cols;
  problem.x_col_stride      = layout.x_col_stride;
  problem.y_col_stride      = layout.y_col_stride;
  problem.inner             = layout.inner();
  problem.inner_contiguous  = layout.inner_contiguous();
  problem.form              = layout.form;
  problem.one_piece         = layout.one_piece;
  return problem;
}

template <class XView, class YView, class Exec>
RowPlan plan_views(RowOperator op, const Exec& exec, const RowLayout& layout, const SoftmaxOptions& options) {
  using X = typename XView::non_const_value_type;
  using Y = typename YView::non_const_value_type;
  return make_plan(problem_of<X, Y>(op, layout), device_traits(exec), options);
}

/// Whether the call writes anything; a log-sum-exp of no elements is -inf and must be written.
inline bool is_empty(RowOperator op, const RowLayout& layout) {
  return layout.rows == 0 || (layout.cols == 0 && op != RowOperator::logsumexp);
}

template <RowOperator op, class Exec, class XView, class YView>
void run_planned(const Exec& exec, const RowPlan& plan, const RowLayout& layout, const SoftmaxOptions& options,
                 const XView& x, const YView& y, WorkspaceView<Exec>* workspace) {
  using X = typename XView::non_const_value_type;
  using Y = typename YView::non_const_value_type;
  if (is_empty(op, layout)) return;
  ViewCall<Exec, op, X, Y>::run(exec, plan, layout, options, x.data(), y.data(), workspace);
}

template <RowOperator op, class Exec, class XView, class YView>
void call(const char* function, const Exec& exec, const XView& x, const YView& y, const SoftmaxOptions& options) {
  const RowLayout layout = normalise(function, op, tensor_of(x), tensor_of(y), options);
  if (is_empty(op, layout)) return;
  const RowPlan plan = plan_views<XView, YView>(op, exec, layout, options);
  run_planned<op>(exec, plan, layout, options, x, y, nullptr);
}

/// Makes room for a plan's workspace, if its strategy needs one.
template <class XView, class YView, RowOperator op, class Exec>
void reserve_workspace(const Exec& exec, const RowPlan& plan, WorkspaceView<Exec>& workspace) {
  using X    = typename XView::non_const_value_type;
  using Y    = typename YView::non_const_value_type;
  using Params = typename ViewCall<Exec, op, X, Y>::Params;
  reserve_split_workspace<Params>(exec, plan, workspace);
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_CALL_HPP
