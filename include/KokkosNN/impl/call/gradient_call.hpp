// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_GRADIENT_CALL_HPP
#define KOKKOSNN_IMPL_CALL_GRADIENT_CALL_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/instantiations/gradients.hpp>
#include <KokkosNN/impl/call/gradient_launch.hpp>
#include <KokkosNN/impl/call/layout.hpp>
#include <KokkosNN/impl/call/workspace.hpp>
#include <KokkosNN/impl/traits.hpp>
#include <KokkosNN/options.hpp>
#include <KokkosNN/plan.hpp>

#include <Kokkos_Core.hpp>

#include <type_traits>

// The body of a gradient: check what the compiler can see, normalise, plan, launch; for a call and for a plan object.

namespace KokkosNN::Impl {

// A static_assert's text must be a literal before C++26, so each function has its own.
#define KOKKOSNN_IMPL_CHECK_GRADIENT(NAME, X, DY, DYS_RANK, RANK_TEXT)                                         \
  static_assert(XView::rank() >= 1, "KokkosNN::" NAME ": " X " must have rank 1 to 8");                        \
  static_assert(DxView::rank() == XView::rank() && DyView::rank() == DYS_RANK && LseView::rank() == DYS_RANK,  \
                "KokkosNN::" NAME ": " RANK_TEXT);                                                             \
  static_assert(Concepts::Element<typename XView::non_const_value_type> &&                                     \
                    Concepts::Element<typename DyView::non_const_value_type> &&                                \
                    Concepts::Element<typename LseView::non_const_value_type> &&                               \
                    Concepts::Element<typename DxView::non_const_value_type>,                                  \
                "KokkosNN::" NAME ": all Views must hold double, float, half_t or bhalf_t");                   \
  static_assert(std::is_same_v<typename DyView::non_const_value_type, typename LseView::non_const_value_type>, \
                "KokkosNN::" NAME ": lse and dlse must hold the same type");                                   \
  static_assert(!std::is_const_v<typename DxView::value_type>, "KokkosNN::" NAME ": dx must not be const");    \
  static_assert(Kokkos::SpaceAccessibility<Exec, typename XView::memory_space>::accessible &&                  \
                    Kokkos::SpaceAccessibility<Exec, typename DyView::memory_space>::accessible &&             \
                    Kokkos::SpaceAccessibility<Exec, typename LseView::memory_space>::accessible &&            \
                    Kokkos::SpaceAccessibility<Exec, typename DxView::memory_space>::accessible,               \
                "KokkosNN::" NAME ": the execution space must be able to access the memory of " X ", " DY " and dx")

/// The Views of a gradient; where an operator has no lse, dy stands in for it.
template <RowOperator op, class XView, class LseView, class DyView, class DxView>
struct GradientViews {
  using X  = typename XView::non_const_value_type;
  using D  = typename DyView::non_const_value_type;
  using Dx = typename DxView::non_const_value_type;

  XView x;
  LseView lse;
  DyView dy;
  DxView dx;

  /// What the compiler can see of a call.
  template <class Exec>
  static constexpr void check() {
    if constexpr (op == RowOperator::softmax_backward) {
      KOKKOSNN_IMPL_CHECK_GRADIENT("softmax_backward", "y", "dy", XView::rank(),
                                   "y, dy and dx must have the same rank");
    } else if constexpr (op == RowOperator::log_softmax_backward) {
      KOKKOSNN_IMPL_CHECK_GRADIENT("log_softmax_backward", "y", "dy", XView::rank(),
                                   "y, dy and dx must have the same rank");
    } else {
      KOKKOSNN_IMPL_CHECK_GRADIENT("logsumexp_backward", "x", "lse, dlse", XView::rank() - 1,
                                   "dx must have the rank of x, lse and dlse one axis less");
    }
  }

  GradientTensors tensors() const {
    GradientTensors all{tensor_of(x), tensor_of(dx), tensor_of(dy)};
    if constexpr (op == RowOperator::logsumexp_backward) all.lse = tensor_of(lse);
    return all;
  }

  GradientPointers<X, D, Dx> pointers() const { return {x.data(), dy.data(), lse.data(), dx.data()}; }
};

#undef KOKKOSNN_IMPL_CHECK_GRADIENT

template <class Views, class Exec>
RowPlan plan_gradient(RowOperator op, const Exec& exec, const GradientLayout& layout, const SoftmaxOptions& options) {
  using X = typename Views::X;
  using D = typename Views::D;
  using Y = typename Views::Dx;
  RowProblem problem;
  problem.op                = op;
  problem.x_type            = element_type<X>();
  problem.y_type            = element_type<Y>();
  problem.dy_type           = element_type<D>();
  problem.x_bytes           = gradient_input_bytes<X, D>(op);
  problem.y_bytes           = sizeof(Y);
  problem.accumulator_bytes = sizeof(gradient_accumulator_t<X, D, Y>);
  problem.rows              = layout.rows;
  problem.cols              = layout.cols;
  problem.x_col_stride      = layout.col_stride[GradientLayout::x];
  problem.y_col_stride      = layout.col_stride[GradientLayout::dx];
  problem.inner             = layout.inner();
  problem.inner_contiguous  = layout.inner_contiguous();
  problem.form              = layout.form;
  problem.one_piece         = layout.one_piece;
  return make_plan(problem, device_traits(exec), options);
}

/// Enqueues a planned gradient; with rows or columns missing there is nothing to write.
template <RowOperator op, class Exec, class Views>
void run_gradient(const Exec& exec, const RowPlan& plan, const GradientLayout& layout, const SoftmaxOptions& options,
                  const Views& views, WorkspaceView<Exec>* workspace) {
  if (layout.rows == 0 || layout.cols == 0) return;
  GradientCall<Exec, op, typename Views::X, typename Views::D, typename Views::Dx>::run(exec, plan, layout, options,
                                                                                        views.pointers(), workspace);
}

template <RowOperator op, class Exec, class Views>
void gradient_call(const Exec& exec, const Views& views, const SoftmaxOptions& options) {
  const GradientLayout layout = normalise_gradient(to_string(op), op, views.tensors(), options);
  if (layout.rows == 0 || layout.cols == 0) return;
  const RowPlan plan = plan_gradient<Views>(op, exec, layout, options);
  run_gradient<op>(exec, plan, layout, options, views, nullptr);
}

/// A checked gradient with its plan and workspace, for repeated calls.
template <RowOperator op, class Exec, class Views>
class PlannedGradient {
 public:
  /// Enqueues the call on the Views of the constructor: no check, no planning, no allocation.
  void run() const { run_gradient<op>(m_exec, m_plan, m_layout, m_options, m_views, &m_workspace); }

  const RowPlan& row_plan() const { return m_plan; }

 protected:
  PlannedGradient(const Exec& exec, const Views& views, const SoftmaxOptions& options)
      : m_exec(exec),
        m_views(views),
        m_options(options),
        m_layout(normalise_gradient(to_string(op), op, views.tensors(), options)),
        m_plan(plan_gradient<Views>(op, exec, m_layout, options)) {
    Views::template check<Exec>();
    using Params = typename GradientCall<Exec, op, typename Views::X, typename Views::D, typename Views::Dx>::Params;
    reserve_split_workspace<Params>(exec, m_plan, m_workspace);
  }

  void run_on(const Views& views) const {
    const GradientLayout layout = normalise_gradient(to_string(op), op, views.tensors(), m_options);
    require_same_layout(to_string(op), m_layout, layout);
    run_gradient<op>(m_exec, m_plan, layout, m_options, views, &m_workspace);
  }

 private:
  Exec m_exec;
  Views m_views;
  SoftmaxOptions m_options;
  GradientLayout m_layout;
  RowPlan m_plan;
  mutable WorkspaceView<Exec> m_workspace;
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_GRADIENT_CALL_HPP
