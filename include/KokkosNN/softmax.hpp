// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_SOFTMAX_HPP
#define KOKKOSNN_SOFTMAX_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/softmax_call.hpp>
#include <KokkosNN/options.hpp>
#include <KokkosNN/plan.hpp>

#include <Kokkos_Core.hpp>

// Softmax, log-softmax and log-sum-exp along one axis of a View, or several. What holds for all three:
//
// Axes       with options.axes > 1 rows run along so many neighbouring axes, from options.axis on: .axis = -2 and
//            .axes = 2 are the last two. Their elements must lie at one stride, in one order in all Views: dense axes
//            do, of LayoutRight and LayoutLeft; nothing is copied, and others are an error that names the strides. lse
//            has the other axes, rank 0 where none is left.
// Views      rank 1 to 8, LayoutRight, LayoutLeft or LayoutStride, any strides (a stride may be 0 in x), any alignment;
//            element types double, float, half_t and bhalf_t, x and y independently. 64-bit offsets. The library holds
//            kernels of equal types and of the pairs in KokkosNN_TYPE_PAIRS; for others include <KokkosNN/kernels.hpp>.
// In place   y may be x (the same View twice); any other overlap is an error.
// Ordering   asynchronous on `exec`: the call enqueues one kernel, fences nothing and, after the first call of its kind
//            on `exec`, allocates nothing.
// Arithmetic in the wider of the two types' accumulators, float for the 16-bit types; float results within 4 ulp of the
//            exact value over the whole normal range (below it they may be flushed to zero), double within 4, 16-bit
//            ones the correctly rounded value or its neighbour.
// Values     a NaN anywhere in a row makes the whole row NaN, and so does a +inf (of scale * x), but for logsumexp,
//            which is +inf of a row with +inf and no NaN; a -inf element is masked: 0, or -inf in log_softmax; a row of
//            nothing else follows options.masked_row. The scale acts on differences of logits, none of which overflows
//            if its product with the scale does not. Not for -ffast-math.
// Errors     std::invalid_argument, with the function's name and the offending values and nothing written: extents that
//            differ, axis out of range, scale zero, not finite or beyond 2^+-100, overlap, a forced plan that cannot
//            serve.
// Cost       each element is read once and written once, but for team_online and parts of rows that fit no chip: read
//            twice.
// Source     the max-subtraction is folklore; (max, sum) in one pass: Milakov and Gimelshein, "Online normalizer
//            calculation for softmax", 2018.

namespace KokkosNN {

/// Softmax along an axis: y_i = exp(scale (x_i - max_j x_j)) / sum_k exp(scale (x_k - max_j x_j)).
///
/// \param exec     execution-space instance; the call is asynchronous on it
/// \param x        input, any shape of rank 1 to 8
/// \param y        output, the extents of x; may be x
/// \param options  axis (default: the last), scale (default 1), masked rows, determinism; see SoftmaxOptions
///
/// See the head of this file for views, ordering, accuracy, NaN and errors. Reads MN, writes MN elements.
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::View YView>
void softmax(const Exec& exec, const XView& x, const YView& y, const SoftmaxOptions& options = {}) {
  Impl::call<Impl::SoftmaxViews<RowOperator::softmax, XView, YView>>(exec, options, x, y);
}

/// Softmax on the default instance of y's execution space.
template <Concepts::View XView, Concepts::View YView>
void softmax(const XView& x, const YView& y, const SoftmaxOptions& options = {}) {
  softmax(typename YView::execution_space{}, x, y, options);
}

/// Log-softmax along an axis: y_i = scale (x_i - max_j x_j) - log(sum_k exp(scale (x_k - max_j x_j))).
///
/// Parameters as for softmax. Results are within 4 ulp of max(1, |y|). Reads MN, writes MN elements.
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::View YView>
void log_softmax(const Exec& exec, const XView& x, const YView& y, const SoftmaxOptions& options = {}) {
  Impl::call<Impl::SoftmaxViews<RowOperator::log_softmax, XView, YView>>(exec, options, x, y);
}

/// Log-softmax on the default instance of y's execution space.
template <Concepts::View XView, Concepts::View YView>
void log_softmax(const XView& x, const YView& y, const SoftmaxOptions& options = {}) {
  log_softmax(typename YView::execution_space{}, x, y, options);
}

/// Logarithm (natural) of the sum of exponentials along an axis: lse = scale max_j x_j + log(sum_k exp(scale (x_k -
/// max))).
///
/// \param exec     execution-space instance; the call is asynchronous on it
/// \param x        input, any shape of rank 1 to 8
/// \param lse      output, x's extents without the axis (rank 0 for a rank-1 x)
/// \param options  as for softmax; masked_row does not matter: a row of only -inf, or of no element, gives -inf
///
/// A row with +inf (of scale x) gives +inf, as in PyTorch, SciPy and JAX; one with NaN gives NaN, whatever else it has.
/// Results are within 4 ulp of max(1, |lse|, |scale max|). Reads MN, writes M elements.
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::View LseView>
void logsumexp(const Exec& exec, const XView& x, const LseView& lse, const SoftmaxOptions& options = {}) {
  Impl::call<Impl::SoftmaxViews<RowOperator::logsumexp, XView, LseView>>(exec, options, x, lse);
}

/// Log-sum-exp on the default instance of lse's execution space.
template <Concepts::View XView, Concepts::View LseView>
void logsumexp(const XView& x, const LseView& lse, const SoftmaxOptions& options = {}) {
  logsumexp(typename LseView::execution_space{}, x, lse, options);
}

/// The plan that a call with these arguments follows; checks them as the call does, launches nothing.
///
/// \param op  RowOperator::softmax, log_softmax or logsumexp; another one is a std::invalid_argument
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::View YView>
RowPlan make_plan(RowOperator op, const Exec& exec, const XView& x, const YView& y,
                  const SoftmaxOptions& options = {}) {
  Impl::require_operator("make_plan", op, is_operator(op) && is_forward(op));
  return Impl::plan_of(op, exec, {Impl::tensor_of(x), Impl::tensor_of(y)}, options);
}

/// A softmax call that is planned once and run often: `SoftmaxPlan plan(exec, x, y, options); plan.run();`.
///
/// Holds the Views, the plan and the workspace; `run()` only enqueues kernels on `exec`, so it may be captured in a
/// CUDA or HIP graph, which must not run beside another run of the plan on another stream. Several threads may call
/// `run()`.
template <class Exec, class XView, class YView>
class SoftmaxPlan
    : public Impl::PlannedViews<Exec, Impl::SoftmaxViews<RowOperator::softmax, XView, YView>, XView, YView> {
  using Base = typename SoftmaxPlan::PlannedViews;

 public:
  using Base::Base;
};
template <class Exec, class XView, class YView>
SoftmaxPlan(const Exec&, const XView&, const YView&, const SoftmaxOptions& = {}) -> SoftmaxPlan<Exec, XView, YView>;

/// Plan object of log_softmax; see SoftmaxPlan.
template <class Exec, class XView, class YView>
class LogSoftmaxPlan
    : public Impl::PlannedViews<Exec, Impl::SoftmaxViews<RowOperator::log_softmax, XView, YView>, XView, YView> {
  using Base = typename LogSoftmaxPlan::PlannedViews;

 public:
  using Base::Base;
};
template <class Exec, class XView, class YView>
LogSoftmaxPlan(const Exec&, const XView&, const YView&, const SoftmaxOptions& = {})
    -> LogSoftmaxPlan<Exec, XView, YView>;

/// Plan object of logsumexp; see SoftmaxPlan.
template <class Exec, class XView, class LseView>
class LogSumExpPlan
    : public Impl::PlannedViews<Exec, Impl::SoftmaxViews<RowOperator::logsumexp, XView, LseView>, XView, LseView> {
  using Base = typename LogSumExpPlan::PlannedViews;

 public:
  using Base::Base;
};
template <class Exec, class XView, class LseView>
LogSumExpPlan(const Exec&, const XView&, const LseView&, const SoftmaxOptions& = {})
    -> LogSumExpPlan<Exec, XView, LseView>;

}  // namespace KokkosNN

#endif  // KOKKOSNN_SOFTMAX_HPP
