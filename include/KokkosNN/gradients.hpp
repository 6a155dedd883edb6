// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_GRADIENTS_HPP
#define KOKKOSNN_GRADIENTS_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/gradient_call.hpp>
#include <KokkosNN/options.hpp>
#include <KokkosNN/plan.hpp>

#include <Kokkos_Core.hpp>

// The gradients of softmax, log-softmax and log-sum-exp along one axis of a View: from dL/dy to dL/dx for a scalar L,
// from what the forward call left. What holds for all three:
//
// Options    the forward call's: axis and axes (softmax.hpp), scale, masked_row (logsumexp_backward only), determinism;
//            any plan.
// Views      as in softmax.hpp: rank 1 to 8, any layout, any strides (a stride may be 0 in inputs: a gradient that was
//            broadcast), any alignment; double, float, half_t and bhalf_t, each View independently (lse and dlse
//            alike). The library holds kernels of one type; for others include <KokkosNN/kernels.hpp>. 64-bit offsets.
// In place   dx may be y (of logsumexp_backward x) or dy (the same View twice); any other overlap of dx is an error.
// Ordering   asynchronous on `exec`: the call enqueues one kernel, fences nothing and, after the first call of its
//            kind on `exec`, allocates nothing.
// Arithmetic in the widest of the types' accumulators, float for the 16-bit types. Sums of float and double are kept
//            in two words, so that dy - sum is accurate where it cancels; sums for 16-bit results are in float.
// Values     as IEEE arithmetic evaluates the formulas: a NaN in a sum makes the whole row NaN, an infinite dy makes
//            the sum infinite, and 0 times infinity is NaN. Not for -ffast-math.
// Errors     std::invalid_argument, with the function's name and the offending values and nothing written: extents
//            that differ, axis out of range, scale zero, not finite or beyond 2^+-100, overlap, a forced plan that
//            cannot serve.
// Cost       each element of y, dy and dx is moved once, but for team_online and parts of rows that fit no chip, where
//            y and dy are read twice (from a cache, where one holds the row). No product is stored on the way. On a
//            GPU rows that are not aligned to 16 bytes are slower than others.
// Source     the formulas are the chain rule's, with sum_j dy_j y_j in place of the Jacobian's product.

namespace KokkosNN {

/// Gradient of softmax: dx_i = scale y_i (dy_i - sum_j y_j dy_j), y being softmax's result.
///
/// \param exec     execution-space instance; the call is asynchronous on it
/// \param y        softmax(scale x), any shape of rank 1 to 8
/// \param dy       gradient with respect to y, the extents of y
/// \param dx       output, the extents of y; may be dy or y
/// \param options  as in the forward call; see SoftmaxOptions
///
/// A row of y that was masked gives 0 where it holds 0 (MaskedRowPolicy::zero, finite dy) and NaN where it holds NaN.
/// Each result is within 4 ulp (16-bit types: 1 ulp) of |scale| y_i max_j |dy_j|, and for float and double within 4 ulp
/// of itself as long as |dy_i - sum| is more than 2^-16 of max_j |dy_j|. Reads 2 MN, writes MN elements.
template <Concepts::ExecutionSpace Exec, Concepts::View YView, Concepts::View DyView, Concepts::View DxView>
void softmax_backward(const Exec& exec, const YView& y, const DyView& dy, const DxView& dx,
                      const SoftmaxOptions& options = {}) {
  using Views = Impl::GradientViews<RowOperator::softmax_backward, YView, DyView, DyView, DxView>;
  Impl::call<Views>(exec, options, y, dy, dx);
}

/// Gradient of softmax on the default instance of dx's execution space.
template <Concepts::View YView, Concepts::View DyView, Concepts::View DxView>
void softmax_backward(const YView& y, const DyView& dy, const DxView& dx, const SoftmaxOptions& options = {}) {
  softmax_backward(typename DxView::execution_space{}, y, dy, dx, options);
}

/// Gradient of log-softmax: dx_i = scale (dy_i - exp(y_i) sum_j dy_j), y being log_softmax's result.
///
/// Parameters as for softmax_backward. An element of -inf in y has exp(y) = 0, so dx = scale dy (finite sum), in a row
/// of nothing else too; a NaN in y concerns that element only. Each result is within 4 ulp (16-bit types: 1 ulp) of
/// |scale| max(|dy_i|, exp(y_i) sum_j |dy_j|). Reads 2 MN, writes MN elements.
template <Concepts::ExecutionSpace Exec, Concepts::View YView, Concepts::View DyView, Concepts::View DxView>
void log_softmax_backward(const Exec& exec, const YView& y, const DyView& dy, const DxView& dx,
                          const SoftmaxOptions& options = {}) {
  using Views = Impl::GradientViews<RowOperator::log_softmax_backward, YView, DyView, DyView, DxView>;
  Impl::call<Views>(exec, options, y, dy, dx);
}

/// Gradient of log-softmax on the default instance of dx's execution space.
template <Concepts::View YView, Concepts::View DyView, Concepts::View DxView>
void log_softmax_backward(const YView& y, const DyView& dy, const DxView& dx, const SoftmaxOptions& options = {}) {
  log_softmax_backward(typename DxView::execution_space{}, y, dy, dx, options);
}

/// Gradient of log-sum-exp: dx_i = scale dlse exp(scale x_i - lse), lse being logsumexp's result.
///
/// \param exec     execution-space instance; the call is asynchronous on it
/// \param x        logsumexp's input, any shape of rank 1 to 8
/// \param lse      logsumexp's result, x's extents without the axis
/// \param dlse     gradient with respect to lse, the extents of lse
/// \param dx       output, the extents of x; may be x
/// \param options  as in the forward call; see SoftmaxOptions
///
/// A row whose lse is -inf, a masked one, gives 0 with MaskedRowPolicy::zero and NaN otherwise; so does an lse of NaN
/// or +inf. Each result is within 8 ulp of itself (16-bit types: 1 ulp) over the normal range, for the x and lse that
/// are given, unless exp(scale x - lse) is below it: then it may be 0. Reads MN + 2 M, writes MN elements; nothing is
/// summed.
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::View LseView, Concepts::View DlseView,
          Concepts::View DxView>
void logsumexp_backward(const Exec& exec, const XView& x, const LseView& lse, const DlseView& dlse, const DxView& dx,
                        const SoftmaxOptions& options = {}) {
  using Views = Impl::GradientViews<RowOperator::logsumexp_backward, XView, LseView, DlseView, DxView>;
  Impl::call<Views>(exec, options, x, lse, dlse, dx);
}

/// Gradient of log-sum-exp on the default instance of dx's execution space.
template <Concepts::View XView, Concepts::View LseView, Concepts::View DlseView, Concepts::View DxView>
void logsumexp_backward(const XView& x, const LseView& lse, const DlseView& dlse, const DxView& dx,
                        const SoftmaxOptions& options = {}) {
  logsumexp_backward(typename DxView::execution_space{}, x, lse, dlse, dx, options);
}

/// The plan that softmax_backward or log_softmax_backward follows; checks the arguments as the call does, launches
/// nothing.
///
/// \param op  RowOperator::softmax_backward or log_softmax_backward; another one is a std::invalid_argument
template <Concepts::ExecutionSpace Exec, Concepts::View YView, Concepts::View DyView, Concepts::View DxView>
RowPlan make_plan(RowOperator op, const Exec& exec, const YView& y, const DyView& dy, const DxView& dx,
                  const SoftmaxOptions& options = {}) {
  Impl::require_operator("make_plan", op,
                         op == RowOperator::softmax_backward || op == RowOperator::log_softmax_backward);
  using Views = Impl::GradientViews<RowOperator::softmax_backward, YView, DyView, DyView, DxView>;
  return Impl::plan_of(op, exec, Views::tensors(y, dy, dx), options);
}

/// The plan that logsumexp_backward follows; `op` is RowOperator::logsumexp_backward.
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::View LseView, Concepts::View DlseView,
          Concepts::View DxView>
RowPlan make_plan(RowOperator op, const Exec& exec, const XView& x, const LseView& lse, const DlseView& dlse,
                  const DxView& dx, const SoftmaxOptions& options = {}) {
  Impl::require_operator("make_plan", op, op == RowOperator::logsumexp_backward);
  using Views = Impl::GradientViews<RowOperator::logsumexp_backward, XView, LseView, DlseView, DxView>;
  return Impl::plan_of(op, exec, Views::tensors(x, lse, dlse, dx), options);
}

/// A softmax_backward call that is planned once and run often: `SoftmaxBackwardPlan plan(exec, y, dy, dx);
/// plan.run();`.
///
/// Holds the Views, the plan and the workspace; `run()` only enqueues kernels on `exec`, so it may be captured in a
/// CUDA or HIP graph, which must not run beside another run of the plan on another stream. Several threads may call
/// `run()`.
template <class Exec, class YView, class DyView, class DxView>
class SoftmaxBackwardPlan
    : public Impl::PlannedViews<Exec, Impl::GradientViews<RowOperator::softmax_backward, YView, DyView, DyView, DxView>,
                                YView, DyView, DxView> {
  using Base = typename SoftmaxBackwardPlan::PlannedViews;

 public:
  using Base::Base;
};
template <class Exec, class YView, class DyView, class DxView>
SoftmaxBackwardPlan(const Exec&, const YView&, const DyView&, const DxView&, const SoftmaxOptions& = {})
    -> SoftmaxBackwardPlan<Exec, YView, DyView, DxView>;

/// Plan object of log_softmax_backward; see SoftmaxBackwardPlan.
template <class Exec, class YView, class DyView, class DxView>
class LogSoftmaxBackwardPlan
    : public Impl::PlannedViews<Exec,
                                Impl::GradientViews<RowOperator::log_softmax_backward, YView, DyView, DyView, DxView>,
                                YView, DyView, DxView> {
  using Base = typename LogSoftmaxBackwardPlan::PlannedViews;

 public:
  using Base::Base;
};
template <class Exec, class YView, class DyView, class DxView>
LogSoftmaxBackwardPlan(const Exec&, const YView&, const DyView&, const DxView&, const SoftmaxOptions& = {})
    -> LogSoftmaxBackwardPlan<Exec, YView, DyView, DxView>;

/// Plan object of logsumexp_backward; see SoftmaxBackwardPlan.
template <class Exec, class XView, class LseView, class DlseView, class DxView>
class LogSumExpBackwardPlan
    : public Impl::PlannedViews<Exec,
                                Impl::GradientViews<RowOperator::logsumexp_backward, XView, LseView, DlseView, DxView>,
                                XView, LseView, DlseView, DxView> {
  using Base = typename LogSumExpBackwardPlan::PlannedViews;

 public:
  using Base::Base;
};
template <class Exec, class XView, class LseView, class DlseView, class DxView>
LogSumExpBackwardPlan(const Exec&, const XView&, const LseView&, const DlseView&, const DxView&,
                      const SoftmaxOptions& = {}) -> LogSumExpBackwardPlan<Exec, XView, LseView, DlseView, DxView>;

}  // namespace KokkosNN

#endif  // KOKKOSNN_GRADIENTS_HPP
