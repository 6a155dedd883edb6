// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_CROSS_ENTROPY_HPP
#define KOKKOSNN_CROSS_ENTROPY_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/cross_entropy_call.hpp>
#include <KokkosNN/impl/call/soft_loss_call.hpp>
#include <KokkosNN/options.hpp>
#include <KokkosNN/plan.hpp>

#include <Kokkos_Core.hpp>

#include <type_traits>

// Cross entropy of rows of logits with a label each: the loss, its gradient, and both at once. With z the logits (soft-
// capped: z = softcap tanh(x / softcap)), y a row's label, w the weights of the C classes (1 without weights), e the
// label smoothing and lse = log sum_c exp(z_c), the loss of a row is
//
//     loss = (1 - e) w_y (lse - z_y) + e / C sum_c w_c (lse - z_c) + z_loss v lse^2
//
// and its gradient, with p_c = exp(z_c - lse) and times dz/dx = 1 - (z / softcap)^2 under a soft cap,
//
//     dz_c = dloss (p_c ((1 - e) w_y + e / C sum_k w_k + 2 z_loss v lse) - e / C w_c - [c = y] (1 - e) w_y)
//
// where v = w_y, or with weighted_z_loss = false 1: then the mean of z_loss lse^2 is that over rows, whatever the
// weights are (the row's v is the mean of w_y, as the loss is divided by their sum).
//
// Common to these three functions:
//
// Views      logits of rank 1 to 8 with the classes along options.axis, the last one if nothing is said (PyTorch's is
//            axis 1); labels, lse and, with Reduction::none, the loss or its gradient have the other axes; a reduced
//            loss or its gradient is a View of rank 0. Any layout, strides and alignment; fastest where classes have
//            stride 1. Logits and dlogits are double, float, half_t
//            or bhalf_t, labels any integers but bool, predicted signed integers of
//            32 or 64 bits; loss, lse and weights are double if the logits are, else float.
//            Compiled in the library for logits and dlogits of one type. 64-bit offsets.
// In place   dlogits may be the logits (the same View twice); any other overlap of what is written is an error.
// Ordering   asynchronous on `exec`: the call enqueues one kernel for the rows and, for a mean, a sum or smoothing with
//            weights, small ones that add; it fences nothing and, after the first call of its kind on `exec`,
//            allocates nothing. With options.check_labels it waits for `exec`.
// Reduction  as PyTorch's: the mean divides by the sum of w_y over all rows that are not ignored. Where all are, or
//            where there are none, it is NaN, as in PyTorch; the gradient is 0. Sums over rows are in double.
// Labels     a row whose label is options.ignore_index gives loss 0 and gradient 0, whatever its logits are, also if
//            that is a class. Any other label that is no class gives NaN in its row's loss and gradient and in a
//            reduced loss, and is no row of a mean; nothing is read out of bounds. With options.check_labels it is an
//            error instead. Labels are compared by value: none of an unsigned type is a negative ignore_index.
// Values     of float and double as IEEE arithmetic evaluates the formulas: a NaN or +inf among a row's logits makes
//            its loss and gradient NaN (under a soft cap +inf is the cap); its lse is as logsumexp's, +inf if there is
//            no NaN. A logit of -inf is masked: p = 0, also under a soft cap; its loss is infinite if it is the
//            label's or if labels are smoothed. A row of nothing else gives NaN and an lse of -inf. Not for
//            -ffast-math.
// Predicted  the class of the row's greatest z, the first of equal ones, whatever the label is, as torch.argmax: a NaN
//            is greater than all numbers, the first of several is taken, and a row of -inf gives class 0.
// Arithmetic in double for double, else in float. The same call gives the same bits each time. A logit under a soft cap
//            is as good as a number of the cap's size, so errors are up to 2 softcap times those that are named below.
// Cost       each logit is read once, but twice in rows that no chip holds, and beside a gradient in the 16-bit rows of
//            more than 4096 classes whose labels are smoothed, logits capped, or class predicted, or whose z_loss has
//            no weights beside classes that have; each element of the gradient is written once.
// Errors     std::invalid_argument, with the function's name and the offending values and nothing written: extents or
//            ranks that do not agree, no classes, options out of range, overlap, a forced plan that cannot serve,
//            and with check_labels the first label out of range.
// Source     label smoothing: Szegedy et al., "Rethinking the Inception architecture for computer vision", 2016;
//            z-loss: Chowdhery et al., "PaLM: scaling language modeling with pathways", 2022 (its z_loss has no
//            weights); soft cap: Gemma Team, "Gemma 2: improving open language models at a practical size", 2024.

namespace KokkosNN {

/// Cross entropy: each row's loss, or their mean (as options say if nothing is said) or sum.
///
/// \param exec     execution-space instance; the call is asynchronous on it
/// \param logits   rows of C logits, x in the formulas
/// \param labels   a class, 0 to C - 1, for each row
/// \param loss     output: of rank 0, or with Reduction::none one value a row
/// \param options  reduction, ignore_index, label smoothing, z-loss, soft cap, checks; see CrossEntropyOptions
/// \param lse      output: the log-sum-exp of each row, for the backward; no_view if it is not wanted
/// \param weights  C weights of classes; no_view for 1
/// \param predicted output: the class of each row's greatest logit; no_view if it is not wanted
///
/// See the head of this file for views, ordering, labels, NaN and errors. The loss of a row is within 8 ulp of the
/// largest of its terms. Reads MN logits, M labels and, for M losses that are reduced, writes and reads them.
template <Concepts::ExecutionSpace Exec, Concepts::View LogitsView, Concepts::View LabelsView, Concepts::View LossView,
          Concepts::OptionalView LseView = NoView, Concepts::OptionalView WeightsView = NoView,
          Concepts::OptionalView PredictedView = NoView>
void cross_entropy(const Exec& exec, const LogitsView& logits, const LabelsView& labels, const LossView& loss,
                   const CrossEntropyOptions& options = {}, const LseView& lse = {}, const WeightsView& weights = {},
                   const PredictedView& predicted = {}) {
  using Views = Impl::CrossEntropyViews<RowOperator::cross_entropy, LogitsView, LabelsView, LossView, LseView, NoView,
                                        WeightsView, PredictedView>;
  Impl::call<Views>(exec, options, logits, labels, loss, lse, no_view, weights, predicted);
}

/// Cross entropy on the default instance of the logits' execution space.
template <Concepts::View LogitsView, Concepts::View LabelsView, Concepts::View LossView,
          Concepts::OptionalView LseView = NoView, Concepts::OptionalView WeightsView = NoView,
          Concepts::OptionalView PredictedView = NoView>
void cross_entropy(const LogitsView& logits, const LabelsView& labels, const LossView& loss,
                   const CrossEntropyOptions& options = {}, const LseView& lse = {}, const WeightsView& weights = {},
                   const PredictedView& predicted = {}) {
  cross_entropy(typename LogitsView::execution_space{}, logits, labels, loss, options, lse, weights, predicted);
}

/// Gradient of cross entropy by the logits, from what the forward call left.
///
/// \param exec     execution-space instance; the call is asynchronous on it
/// \param logits   as in the forward call
/// \param labels   as in the forward call
/// \param lse      what the forward call wrote there
/// \param dloss    gradient with respect to the loss: of rank 0, or with Reduction::none one value a row
/// \param dlogits  output, the extents of logits; may be the logits
/// \param options  as in the forward call
/// \param weights  as in the forward call
///
/// Each result is within 8 ulp (16-bit types: 1 ulp) of the largest of its terms, for the lse that is given. An lse
/// that is not finite gives NaN. The columns may be some of the classes, those from options.first_class on of
/// options.classes, for which weights and lse are; a row whose label is none of them has no label's term. Reads MN
/// logits, writes MN elements; nothing is summed but a mean's weights.
template <Concepts::ExecutionSpace Exec, Concepts::View LogitsView, Concepts::View LabelsView, Concepts::View LseView,
          Concepts::View DlossView, Concepts::View DlogitsView, Concepts::OptionalView WeightsView = NoView>
void cross_entropy_backward(const Exec& exec, const LogitsView& logits, const LabelsView& labels, const LseView& lse,
                            const DlossView& dloss, const DlogitsView& dlogits, const CrossEntropyOptions& options = {},
                            const WeightsView& weights = {}) {
  using Views = Impl::CrossEntropyViews<RowOperator::cross_entropy_backward, LogitsView, LabelsView, DlossView, LseView,
                                        DlogitsView, WeightsView>;
  Impl::call<Views>(exec, options, logits, labels, dloss, lse, dlogits, weights);
}

/// Gradient of cross entropy on the default instance of dlogits' execution space.
template <Concepts::View LogitsView, Concepts::View LabelsView, Concepts::View LseView, Concepts::View DlossView,
          Concepts::View DlogitsView, Concepts::OptionalView WeightsView = NoView>
void cross_entropy_backward(const LogitsView& logits, const LabelsView& labels, const LseView& lse,
                            const DlossView& dloss, const DlogitsView& dlogits, const CrossEntropyOptions& options = {},
                            const WeightsView& weights = {}) {
  cross_entropy_backward(typename DlogitsView::execution_space{}, logits, labels, lse, dloss, dlogits, options,
                         weights);
}

/// Cross entropy and its gradient by the logits in one pass: what cross_entropy and cross_entropy_backward give
/// together, where the gradient of the loss is known beforehand, as that of a training step's last operator is.
///
/// \param exec     execution-space instance; the call is asynchronous on it
/// \param logits   rows of C logits
/// \param labels   a class, 0 to C - 1, for each row
/// \param loss     output: of rank 0, or with Reduction::none one value a row
/// \param dlogits  output: the gradient of options.gradient_scale times the loss (with Reduction::none their sum); may
///                 be the logits
/// \param options  see CrossEntropyOptions
/// \param lse      output: the log-sum-exp of each row; no_view if it is not wanted
/// \param weights  C weights of classes; no_view for 1
/// \param predicted output: the class of each row's greatest logit; no_view if it is not wanted
///
/// Accuracy as of the two other functions, but beside a gradient in a 16-bit type an lse is within 2^-12 only, and a
/// row's loss is as good as its lse: what the rows lack may add up in a sum.
/// Reads MN logits, writes MN elements.
template <Concepts::ExecutionSpace Exec, Concepts::View LogitsView, Concepts::View LabelsView, Concepts::View LossView,
          Concepts::View DlogitsView, Concepts::OptionalView LseView = NoView,
          Concepts::OptionalView WeightsView = NoView, Concepts::OptionalView PredictedView = NoView>
void cross_entropy_with_gradient(const Exec& exec, const LogitsView& logits, const LabelsView& labels,
                                 const LossView& loss, const DlogitsView& dlogits,
                                 const CrossEntropyOptions& options = {}, const LseView& lse = {},
                                 const WeightsView& weights = {}, const PredictedView& predicted = {}) {
  using Views = Impl::CrossEntropyViews<RowOperator::cross_entropy_with_gradient, LogitsView, LabelsView, LossView,
                                        LseView, DlogitsView, WeightsView, PredictedView>;
  Impl::call<Views>(exec, options, logits, labels, loss, lse, dlogits, weights, predicted);
}

/// Cross entropy and its gradient on the default instance of dlogits' execution space.
template <Concepts::View LogitsView, Concepts::View LabelsView, Concepts::View LossView, Concepts::View DlogitsView,
          Concepts::OptionalView LseView = NoView, Concepts::OptionalView WeightsView = NoView,
          Concepts::OptionalView PredictedView = NoView>
void cross_entropy_with_gradient(const LogitsView& logits, const LabelsView& labels, const LossView& loss,
                                 const DlogitsView& dlogits, const CrossEntropyOptions& options = {},
                                 const LseView& lse = {}, const WeightsView& weights = {},
                                 const PredictedView& predicted = {}) {
  cross_entropy_with_gradient(typename DlogitsView::execution_space{}, logits, labels, loss, dlogits, options, lse,
                              weights, predicted);
}

/// Cross entropy from rows' log-sum-exps and their labels' logits: the loss where no call has all classes, as those of
/// processes that exchange by means of their own.
///
///     loss = w_y (lse - z_y) + z_loss v lse^2
///
/// \param exec          execution-space instance; the call is asynchronous on it
/// \param lse           the log-sum-exp of each row, over all classes; of any rank from 0 to 7
/// \param label_logits  the logit of each row's label, z_y; not read for rows that are ignored
/// \param labels        a class for each row; without weights and options.classes any number is one but for negatives
/// \param loss          output: of rank 0, or with Reduction::none one value a row; may not overlap an input
/// \param options       reduction, ignore_index, z_loss, weighted_z_loss, classes and check_labels; label_smoothing,
///                      softcap and first_class must be 0, other options do not matter
/// \param weights       a weight for each class; no_view for 1
///
/// With classes in parts the steps are logsumexp of each part, logsumexp along the axis of the parts of what they give
/// (from a maximum m and a sum s of exp(z - m) a part has m + log s), this function, and cross_entropy_backward for
/// each part with options.first_class and options.classes.
///
/// Lse, label_logits, loss and weights are all double or all float, in which the loss is computed: within 4 ulp of the
/// largest of its terms, lse and z_y, for the lse that is given. An lse below z_y counts as z_y, as no probability is
/// above 1. NaN in either gives NaN, and so does an lse of +inf. Labels, reductions, ordering and errors are those at
/// the head of this file. Reads three values a row, writes one, and writes and reads one more where losses are reduced.
template <Concepts::ExecutionSpace Exec, Concepts::View LseView, Concepts::View LogitsView, Concepts::View LabelsView,
          Concepts::View LossView, Concepts::OptionalView WeightsView = NoView>
void cross_entropy_from_lse(const Exec& exec, const LseView& lse, const LogitsView& label_logits,
                            const LabelsView& labels, const LossView& loss, const CrossEntropyOptions& options = {},
                            const WeightsView& weights = {}) {
  Impl::cross_entropy_from_lse_call(exec, lse, label_logits, labels, loss, options, weights);
}

/// Cross entropy from log-sum-exps on the default instance of lse's execution space.
template <Concepts::View LseView, Concepts::View LogitsView, Concepts::View LabelsView, Concepts::View LossView,
          Concepts::OptionalView WeightsView = NoView>
void cross_entropy_from_lse(const LseView& lse, const LogitsView& label_logits, const LabelsView& labels,
                            const LossView& loss, const CrossEntropyOptions& options = {},
                            const WeightsView& weights = {}) {
  cross_entropy_from_lse(typename LseView::execution_space{}, lse, label_logits, labels, loss, options, weights);
}

/// Cross entropy against targets that are probabilities (soft labels, a teacher's outputs): each row's loss, or their
/// mean or sum. With q the targets, w the weights of the C classes, e the label smoothing, lse = log sum_c exp(x_c) and
/// t_c = w_c ((1 - e) q_c + e / C):
///
///     loss = sum_c t_c (lse - x_c)
///
/// \param exec     execution-space instance; the call is asynchronous on it
/// \param logits   rows of C logits, x in the formula, of rank 1 to 8, along options.axis
/// \param targets  q, of the extents and type of logits; any numbers, whether their sum is 1 or not
/// \param loss     output: of rank 0, or with Reduction::none one value a row
/// \param options  axis, reduction, label smoothing; see SoftCrossEntropyOptions
/// \param lse      output: the log-sum-exp of each row; no_view if it is not wanted
/// \param weights  C weights of classes, of the logits' type or float; no_view for 1
///
/// Views      any layout, strides and alignment, of double, float, half_t or bhalf_t; loss and lse are double if the
///            logits are, else float. 64-bit offsets.
/// Reduction  as PyTorch's: the mean divides by the number of rows, whatever weights are. Of no rows it is NaN, the sum
///            0. Sums over rows are in double; the same call gives the same bits each time.
/// Ordering   asynchronous on `exec`: one kernel, and one or two small ones for a mean or a sum; no fence and, after
///            the first call of its kind on `exec`, no allocation.
/// Arithmetic of elements in double for double, else in float, sums of a row in double. Each loss and lse is within 8
///            ulp (double: 64) of the largest of |lse| sum_c |t_c|, sum_c |t_c x_c| and 1.
/// Values     a class whose t_c is 0 adds nothing to the loss, also where its logit is -inf; one with another t_c makes
///            it infinite there. NaN or +inf among a row's logits makes its loss and gradient NaN, and so does a row of
///            -inf alone; its lse is +inf with +inf, -inf of -inf alone.
/// Errors     std::invalid_argument, with the function's name and the offending values and nothing written: extents
///            or ranks that do not agree, no classes, options out of range, overlap, a forced plan that cannot serve.
/// Cost       reads 2 MN elements, also of rows that no chip holds, and writes M losses, which are read again if
///            reduced.
/// Source     Hinton, Vinyals and Dean, "Distilling the knowledge in a neural network", 2015.
template <Concepts::ExecutionSpace Exec, Concepts::View LogitsView, Concepts::View TargetsView, Concepts::View LossView,
          Concepts::OptionalView LseView = NoView, Concepts::OptionalView WeightsView = NoView>
void soft_cross_entropy(const Exec& exec, const LogitsView& logits, const TargetsView& targets, const LossView& loss,
                        const SoftCrossEntropyOptions& options = {}, const LseView& lse = {},
                        const WeightsView& weights = {}) {
  using Views = Impl::SoftLossViews<RowOperator::soft_cross_entropy, LogitsView, NoView, TargetsView, WeightsView,
                                    LossView, LseView>;
  Impl::call<Views>(exec, options, logits, no_view, targets, weights, loss, lse);
}

/// Cross entropy against probabilities on the default instance of the logits' execution space.
template <Concepts::View LogitsView, Concepts::View TargetsView, Concepts::View LossView,
          Concepts::OptionalView LseView = NoView, Concepts::OptionalView WeightsView = NoView>
void soft_cross_entropy(const LogitsView& logits, const TargetsView& targets, const LossView& loss,
                        const SoftCrossEntropyOptions& options = {}, const LseView& lse = {},
                        const WeightsView& weights = {}) {
  soft_cross_entropy(typename LogitsView::execution_space{}, logits, targets, loss, options, lse, weights);
}

/// Cross entropy against probabilities and its gradient by the logits in one pass:
///
///     dlogits_c = gradient_scale (exp(x_c - lse) sum_k t_k - t_c), over the number of rows for a mean
///
/// \param exec     execution-space instance; the call is asynchronous on it
/// \param logits   rows of C logits
/// \param targets  q, of the extents and type of logits
/// \param loss     output, as soft_cross_entropy's
/// \param dlogits  output: the gradient of options.gradient_scale times the loss (with Reduction::none their sum), of
///                 the extents and type of logits; may be the logits or the targets
/// \param options  see SoftCrossEntropyOptions
/// \param lse      output: the log-sum-exp of each row; no_view if it is not wanted
/// \param weights  C weights of classes; no_view for 1
///
/// All else as soft_cross_entropy. Each element of the gradient is within 8 ulp (double: 64; 16-bit types: 1 ulp) of
/// the largest of its terms. Reads 2 MN, writes MN elements; rows that no chip holds are read twice.
template <Concepts::ExecutionSpace Exec, Concepts::View LogitsView, Concepts::View TargetsView, Concepts::View LossView,
          Concepts::View DlogitsView, Concepts::OptionalView LseView = NoView,
          Concepts::OptionalView WeightsView = NoView>
void soft_cross_entropy_with_gradient(const Exec& exec, const LogitsView& logits, const TargetsView& targets,
                                      const LossView& loss, const DlogitsView& dlogits,
                                      const SoftCrossEntropyOptions& options = {}, const LseView& lse = {},
                                      const WeightsView& weights = {}) {
  using Views = Impl::SoftLossViews<RowOperator::soft_cross_entropy_with_gradient, LogitsView, DlogitsView, TargetsView,
                                    WeightsView, LossView, LseView>;
  Impl::call<Views>(exec, options, logits, dlogits, targets, weights, loss, lse);
}

/// Cross entropy against probabilities and its gradient on the default instance of dlogits' execution space.
template <Concepts::View LogitsView, Concepts::View TargetsView, Concepts::View LossView, Concepts::View DlogitsView,
          Concepts::OptionalView LseView = NoView, Concepts::OptionalView WeightsView = NoView>
void soft_cross_entropy_with_gradient(const LogitsView& logits, const TargetsView& targets, const LossView& loss,
                                      const DlogitsView& dlogits, const SoftCrossEntropyOptions& options = {},
                                      const LseView& lse = {}, const WeightsView& weights = {}) {
  soft_cross_entropy_with_gradient(typename DlogitsView::execution_space{}, logits, targets, loss, dlogits, options,
                                   lse, weights);
}

/// The plan of the rows' kernel of a cross entropy; checks the arguments as the call does, launches nothing.
///
/// \param op       RowOperator::cross_entropy, cross_entropy_backward or cross_entropy_with_gradient; another one is a
///                 std::invalid_argument
/// \param loss     the loss, or its gradient
/// \param dlogits  where the gradient goes; no_view for cross_entropy
template <Concepts::ExecutionSpace Exec, Concepts::View LogitsView, Concepts::View LabelsView, Concepts::View LossView,
          Concepts::OptionalView DlogitsView>
RowPlan make_cross_entropy_plan(RowOperator op, const Exec& exec, const LogitsView& logits, const LabelsView& labels,
                                const LossView& loss, const DlogitsView& dlogits,
                                const CrossEntropyOptions& options = {}) {
  const bool has_gradient = !std::is_same_v<DlogitsView, NoView>;
  Impl::require_operator("make_cross_entropy_plan", op,
                         is_operator(op) && is_cross_entropy(op) && has_gradient == (op != RowOperator::cross_entropy));
  using Views = Impl::CrossEntropyViews<RowOperator::cross_entropy, LogitsView, LabelsView, LossView, NoView,
                                        DlogitsView, NoView>;
  return Impl::plan_of(op, exec, Views::tensors(logits, labels, loss, no_view, dlogits, no_view), options);
}

}  // namespace KokkosNN

#endif  // KOKKOSNN_CROSS_ENTROPY_HPP
