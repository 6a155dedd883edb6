// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_MASKED_SOFTMAX_HPP
#define KOKKOSNN_MASKED_SOFTMAX_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/masked_call.hpp>
#include <KokkosNN/mask.hpp>
#include <KokkosNN/options.hpp>
#include <KokkosNN/plan.hpp>

#include <Kokkos_Core.hpp>
#include <Kokkos_Profiling_ScopedRegion.hpp>

// Softmax of logits of which a mask lets only some take part, along the last axis of a View: attention's. Its
// logarithm, as losses and beam search read it, and the log-sum-exp, by which partial attentions are joined. What
// masked_softmax says of masks, arithmetic, values, errors and cost holds for these, too.

namespace KokkosNN {

/// Softmax over the columns that a mask allows. With z = scale x, or softcap tanh(scale x / softcap), plus the bias,
/// less the ALiBi slope times the distance, in this order (so a bias is not capped), m the largest allowed z of the row
/// and its sink, and s the sink's logit:
///
///     y_k = exp(z_k - m) / (sum over the allowed j of exp(z_j - m) + exp(s - m)), and 0 where k is not allowed.
///
/// \param exec     execution-space instance; the call is asynchronous on it
/// \param x        input of rank 2 to 8, axes (..., head, query, key), of double, float, half_t or bhalf_t; any layout,
///                 strides (also 0) and alignment
/// \param mask     CausalMask, SlidingWindow, RowLengths, BooleanMask, AdditiveBias, Alibi, RowScales, or several:
///                 masks(...); how their Views broadcast stands in mask.hpp. Under RowScales the scale is options.scale
///                 times the row's, here and in the gradients
/// \param y        output, the extents of x; may be x
/// \param options  scale, softcap, sinks (one logit a head, neither scaled nor capped), masked rows, determinism
///
/// Ordering   asynchronous on `exec`: one kernel, no fence and, after the first call of its kind on `exec`, no
///            allocation
/// Arithmetic in the wider of x's and y's accumulators, float for the 16-bit types. Columns ruled out by their numbers,
///            and boolean masks, leave softmax's accuracy (4 ulp); a bias, slopes and scales of rows round z to the
///            accumulator type, which adds up to 3 |z| ulp to float and double, and a softcap 6 |z|, z being the
///            largest logit or part of one.
/// Values     a masked x is never looked at: a NaN there is ignored. A NaN or +inf among the allowed z, or as sink,
///            makes the whole row NaN, masked columns too; an allowed z of -inf gives 0. A row of nothing else, or of
///            no allowed column, follows options.masked_row (NaN or 0 in every column), but with a sink it is 0: all
///            weight is the sink's. Under a softcap an infinite x is z = +-softcap. Masking is by predicate, never by a
///            number.
/// Errors     std::invalid_argument with the offending values, and nothing written: extents that differ or do not
///            broadcast, scale zero, not finite or beyond 2^+-100, softcap negative or not finite, a negative window,
///            overlap of y with a mask's View or with x other than in place, a forced plan that cannot serve
///            (inner_lanes never does).
/// Cost       y is written once; of x, and of a mask's Views, whole packs (16 bytes on a GPU, up to 128 on a host) that
///            hold an allowed column are read once, but for team_online and parts of rows that fit no chip (twice).
///            Columns that a causal mask, a window or a length rules out are not computed. On a GPU rows that are not
///            aligned to 16 bytes are slower.
/// Source     softcap: Gemma Team, "Gemma 2", 2024; sinks: Xiao et al., "Efficient streaming language models with
///            attention sinks", 2023; zeros as sinks: Miller, "Attention is off by one", 2023.
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::Mask M, Concepts::View YView>
void masked_softmax(const Exec& exec, const XView& x, const M& mask, const YView& y,
                    const MaskedSoftmaxOptions& options = {}) {
  Impl::masked_call<RowOperator::masked_softmax>(exec, x, mask, y, options);
}

/// Masked softmax on the default instance of y's execution space.
template <Concepts::View XView, Concepts::Mask M, Concepts::View YView>
void masked_softmax(const XView& x, const M& mask, const YView& y, const MaskedSoftmaxOptions& options = {}) {
  masked_softmax(typename YView::execution_space{}, x, mask, y, options);
}

/// Log-softmax over the columns that a mask allows, y_k = z_k - m - log(sum over the allowed j of exp(z_j - m) +
/// exp(s - m)) with masked_softmax's z, m and s, and -inf where k is not allowed.
///
/// Parameters and all else as for masked_softmax, with these differences. Accuracy: results are within 4 ulp of max(1,
/// |y|), beside what a bias, slopes and a softcap add. Values: what is masked is -inf, and so is a row of no allowed
/// column that has a sink; without a sink it follows options.masked_row (NaN, or -inf for `zero`, in every column).
/// Plans: on a GPU there is no team_scratch. Cost: rows that several teams share are read twice.
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::Mask M, Concepts::View YView>
void masked_log_softmax(const Exec& exec, const XView& x, const M& mask, const YView& y,
                        const MaskedSoftmaxOptions& options = {}) {
  Impl::masked_call<RowOperator::masked_log_softmax>(exec, x, mask, y, options);
}

/// Masked log-softmax on the default instance of y's execution space.
template <Concepts::View XView, Concepts::Mask M, Concepts::View YView>
void masked_log_softmax(const XView& x, const M& mask, const YView& y, const MaskedSoftmaxOptions& options = {}) {
  masked_log_softmax(typename YView::execution_space{}, x, mask, y, options);
}

/// Logarithm of the sum of exponentials over the columns that a mask allows, and of the sink's: lse = m + log(sum over
/// the allowed j of exp(z_j - m) + exp(s - m)) with masked_softmax's z, m and s.
///
/// \param exec     execution-space instance; the call is asynchronous on it
/// \param x        input of rank 2 to 8, axes (..., head, query, key)
/// \param mask     as masked_softmax's
/// \param lse      output, x's extents without the last axis
/// \param options  as masked_softmax's; masked_row does not matter
///
/// Ordering, masks and errors as for masked_softmax. Accuracy: results are within 4 ulp of max(1, |lse|, |m|), beside
/// what a bias, slopes and a softcap add. Values: a row of no allowed column, or of allowed -inf alone, gives -inf, or
/// with a sink the sink; an allowed z, or a sink, of +inf gives +inf, and NaN gives NaN, whatever else the row has.
/// Plans as for masked_log_softmax. Reads up to MN elements, once, writes M.
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::Mask M, Concepts::View LseView>
void masked_logsumexp(const Exec& exec, const XView& x, const M& mask, const LseView& lse,
                      const MaskedSoftmaxOptions& options = {}) {
  Impl::masked_call<RowOperator::masked_logsumexp>(exec, x, mask, lse, options);
}

/// Masked log-sum-exp on the default instance of lse's execution space.
template <Concepts::View XView, Concepts::Mask M, Concepts::View LseView>
void masked_logsumexp(const XView& x, const M& mask, const LseView& lse, const MaskedSoftmaxOptions& options = {}) {
  masked_logsumexp(typename LseView::execution_space{}, x, mask, lse, options);
}

/// The plan that a call with these arguments follows; checks them as the call does, launches nothing.
///
/// \param op  RowOperator::masked_softmax, masked_log_softmax or masked_logsumexp, for which y is lse; another one is a
///            std::invalid_argument
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::Mask M, Concepts::View YView>
RowPlan make_plan(RowOperator op, const Exec& exec, const XView& x, const M& mask, const YView& y,
                  const MaskedSoftmaxOptions& options = {}) {
  Impl::require_operator("make_plan", op, is_operator(op) && traits_of(op).family == OperatorFamily::masked);
  return Impl::masked_plan(op, exec, x, mask, y, options);
}

/// The plan of masked_softmax.
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::Mask M, Concepts::View YView>
RowPlan make_plan(const Exec& exec, const XView& x, const M& mask, const YView& y,
                  const MaskedSoftmaxOptions& options = {}) {
  Impl::check_masked<Exec, XView, M, YView>();
  return Impl::masked_plan(RowOperator::masked_softmax, exec, x, mask, y, options);
}

/// A masked_softmax call that is planned once and run often, as SoftmaxPlan: `run()` only enqueues kernels on `exec`,
/// so it may be captured in a CUDA or HIP graph. The mask's Views must outlive it.
template <class Exec, class XView, class YView>
class MaskedSoftmaxPlan : public Impl::PlannedMasked<RowOperator::masked_softmax, Exec, XView, YView> {
  using Base = typename MaskedSoftmaxPlan::PlannedMasked;

 public:
  using Base::Base;
};
template <class Exec, class XView, class M, class YView>
MaskedSoftmaxPlan(const Exec&, const XView&, const M&, const YView&, const MaskedSoftmaxOptions& = {})
    -> MaskedSoftmaxPlan<Exec, XView, YView>;

/// Plan object of masked_log_softmax; see MaskedSoftmaxPlan.
template <class Exec, class XView, class YView>
class MaskedLogSoftmaxPlan : public Impl::PlannedMasked<RowOperator::masked_log_softmax, Exec, XView, YView> {
  using Base = typename MaskedLogSoftmaxPlan::PlannedMasked;

 public:
  using Base::Base;
};
template <class Exec, class XView, class M, class YView>
MaskedLogSoftmaxPlan(const Exec&, const XView&, const M&, const YView&, const MaskedSoftmaxOptions& = {})
    -> MaskedLogSoftmaxPlan<Exec, XView, YView>;

/// Plan object of masked_logsumexp; see MaskedSoftmaxPlan.
template <class Exec, class XView, class LseView>
class MaskedLogSumExpPlan : public Impl::PlannedMasked<RowOperator::masked_logsumexp, Exec, XView, LseView> {
  using Base = typename MaskedLogSumExpPlan::PlannedMasked;

 public:
  using Base::Base;
};
template <class Exec, class XView, class M, class LseView>
MaskedLogSumExpPlan(const Exec&, const XView&, const M&, const LseView&, const MaskedSoftmaxOptions& = {})
    -> MaskedLogSumExpPlan<Exec, XView, LseView>;

/// Gradient of masked_softmax with respect to x: dx_k = scale y_k (dy_k - sum_j y_j dy_j), times 1 - tanh^2(scale x_k /
/// softcap) under a softcap, and 0 where k is not allowed. The sum is over the allowed columns; bias, slopes and sinks
/// are in y already. There is no gradient by RowScales.
///
/// \param exec     execution-space instance; the call is asynchronous on it
/// \param x        the forward call's input; read only with a softcap (otherwise y can stand in)
/// \param y        masked_softmax's result
/// \param dy       gradient with respect to y
/// \param mask     the forward call's
/// \param dx       output, the extents of y; may be dy or y
/// \param options  the forward call's; any plan but inner_lanes
///
/// Views, accuracy, ordering and errors as in gradients.hpp. What is masked is ignored in y and dy, whatever it is, and
/// gives 0; so does a row without an allowed column. A NaN among the allowed y or dy makes the whole row of dx NaN.
/// Reads 2 MN elements (allowed ones; with a softcap x besides), writes MN.
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::View YView, Concepts::View DyView,
          Concepts::Mask M, Concepts::View DxView>
void masked_softmax_backward(const Exec& exec, const XView& x, const YView& y, const DyView& dy, const M& mask,
                             const DxView& dx, const MaskedSoftmaxOptions& options = {}) {
  Impl::masked_gradient_call<RowOperator::masked_softmax_backward>(exec, x, y, dy, mask, dx, options);
}

/// Gradient of masked_softmax on the default instance of dx's execution space.
template <Concepts::View XView, Concepts::View YView, Concepts::View DyView, Concepts::Mask M, Concepts::View DxView>
void masked_softmax_backward(const XView& x, const YView& y, const DyView& dy, const M& mask, const DxView& dx,
                             const MaskedSoftmaxOptions& options = {}) {
  masked_softmax_backward(typename DxView::execution_space{}, x, y, dy, mask, dx, options);
}

/// Gradient of masked_log_softmax with respect to x: dx_k = scale (dy_k - exp(y_k) sum_j dy_j), times 1 - tanh^2(scale
/// x_k / softcap) under a softcap, and 0 where k is not allowed. The sum is over the allowed columns.
///
/// \param y  masked_log_softmax's result
///
/// Other parameters, accuracy, values, ordering and errors as masked_softmax_backward; plans as masked_log_softmax. An
/// allowed y of -inf gives scale dy. Without scale and softcap dx is the gradient with respect to an additive bias,
/// before it is summed over the axes along which the bias was broadcast. Reads 2 MN elements (allowed ones; with a
/// softcap x besides), writes MN.
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::View YView, Concepts::View DyView,
          Concepts::Mask M, Concepts::View DxView>
void masked_log_softmax_backward(const Exec& exec, const XView& x, const YView& y, const DyView& dy, const M& mask,
                                 const DxView& dx, const MaskedSoftmaxOptions& options = {}) {
  Impl::masked_gradient_call<RowOperator::masked_log_softmax_backward>(exec, x, y, dy, mask, dx, options);
}

/// Gradient of masked_log_softmax on the default instance of dx's execution space.
template <Concepts::View XView, Concepts::View YView, Concepts::View DyView, Concepts::Mask M, Concepts::View DxView>
void masked_log_softmax_backward(const XView& x, const YView& y, const DyView& dy, const M& mask, const DxView& dx,
                                 const MaskedSoftmaxOptions& options = {}) {
  masked_log_softmax_backward(typename DxView::execution_space{}, x, y, dy, mask, dx, options);
}

/// The plan that a gradient with these arguments follows; checks them as the call does, launches nothing.
///
/// \param op  RowOperator::masked_softmax_backward or masked_log_softmax_backward; another one is a
///            std::invalid_argument
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::View YView, Concepts::View DyView,
          Concepts::Mask M, Concepts::View DxView>
RowPlan make_plan(RowOperator op, const Exec& exec, const XView& x, const YView& y, const DyView& dy, const M& mask,
                  const DxView& dx, const MaskedSoftmaxOptions& options = {}) {
  Impl::require_operator("make_plan", op, is_operator(op) && traits_of(op).family == OperatorFamily::masked_gradient);
  return Impl::masked_gradient_plan(op, exec, x, y, dy, mask, dx, options);
}

/// The plan of masked_softmax_backward.
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::View YView, Concepts::View DyView,
          Concepts::Mask M, Concepts::View DxView>
RowPlan make_plan(const Exec& exec, const XView& x, const YView& y, const DyView& dy, const M& mask, const DxView& dx,
                  const MaskedSoftmaxOptions& options = {}) {
  return Impl::masked_gradient_plan(RowOperator::masked_softmax_backward, exec, x, y, dy, mask, dx, options);
}

/// Gradient of masked_softmax with respect to an additive bias: dbias = sum of dz_k = y_k (dy_k - sum_j y_j dy_j) over
/// the axes along which dbias is broadcast (those of extent 1, or that it lacks).
///
/// \param exec   execution-space instance; the call is asynchronous on it
/// \param y      masked_softmax's result
/// \param dy     gradient with respect to y
/// \param mask   the forward call's
/// \param dbias  output of y's type or float, broadcast as AdditiveBias's View; every element is written
///
/// Sums are taken in double and in one order, which depends on the shapes alone: equal input gives equal bits on every
/// device of a kind. Masked elements add nothing. Two or three kernels; after the first calls no allocation (the
/// workspace holds two doubles a row, and partial sums). Errors as masked_softmax_backward. Reads 4 MN elements.
template <Concepts::ExecutionSpace Exec, Concepts::View YView, Concepts::View DyView, Concepts::Mask M,
          Concepts::View BiasView>
void masked_softmax_bias_backward(const Exec& exec, const YView& y, const DyView& dy, const M& mask,
                                  const BiasView& dbias) {
  Impl::check_mask_sums<Exec, YView, DyView, M, BiasView>();
  const Kokkos::Profiling::ScopedRegion region("KokkosNN::masked_softmax_bias_backward");
  Impl::mask_sums_call("masked_softmax_bias_backward", exec, y, dy, mask, dbias, false);
}

/// Gradient of a bias on the default instance of dbias' execution space.
template <Concepts::View YView, Concepts::View DyView, Concepts::Mask M, Concepts::View BiasView>
void masked_softmax_bias_backward(const YView& y, const DyView& dy, const M& mask, const BiasView& dbias) {
  masked_softmax_bias_backward(typename BiasView::execution_space{}, y, dy, mask, dbias);
}

/// Gradient of masked_softmax with respect to its sinks: dsinks_h = - sum over the rows of head h of p sum_j y_j dy_j,
/// where p = 1 - sum_j y_j is the sink's own weight.
///
/// \param dsinks  output of y's type or float, rank 1: one value a head, or one for all; every element is written
///
/// Other parameters, sums, ordering and errors as masked_softmax_bias_backward. p is what y's rounding leaves of it:
/// good to some 2^-24 for float, 2^-9 for bhalf_t. Reads 2 MN elements.
template <Concepts::ExecutionSpace Exec, Concepts::View YView, Concepts::View DyView, Concepts::Mask M,
          Concepts::View SinksView>
void masked_softmax_sinks_backward(const Exec& exec, const YView& y, const DyView& dy, const M& mask,
                                   const SinksView& dsinks) {
  Impl::check_mask_sums<Exec, YView, DyView, M, SinksView>();
  static_assert(SinksView::rank() == 1, "KokkosNN::masked_softmax_sinks_backward: dsinks must have rank 1");
  const Kokkos::Profiling::ScopedRegion region("KokkosNN::masked_softmax_sinks_backward");
  Impl::mask_sums_call("masked_softmax_sinks_backward", exec, y, dy, mask, dsinks, true);
}

/// Gradient of sinks on the default instance of dsinks' execution space.
template <Concepts::View YView, Concepts::View DyView, Concepts::Mask M, Concepts::View SinksView>
void masked_softmax_sinks_backward(const YView& y, const DyView& dy, const M& mask, const SinksView& dsinks) {
  masked_softmax_sinks_backward(typename SinksView::execution_space{}, y, dy, mask, dsinks);
}

}  // namespace KokkosNN

#endif  // KOKKOSNN_MASKED_SOFTMAX_HPP
