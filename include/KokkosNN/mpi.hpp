// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_MPI_HPP
#define KOKKOSNN_MPI_HPP

#include <KokkosNN/attention.hpp>
#include <KokkosNN/concepts.hpp>
#include <KokkosNN/cross_entropy.hpp>
#include <KokkosNN/gradients.hpp>
#include <KokkosNN/impl/mpi/attention_call.hpp>
#include <KokkosNN/impl/mpi/communicator.hpp>
#include <KokkosNN/impl/mpi/call.hpp>
#include <KokkosNN/impl/mpi/norm_call.hpp>
#include <KokkosNN/norm.hpp>
#include <KokkosNN/options.hpp>
#include <KokkosNN/softmax.hpp>

#include <Kokkos_Core.hpp>
#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <mpi.h>

#include <cstdint>
#include <tuple>

// The softmax family and the norms on rows whose columns are spread over the ranks of an MPI communicator, as those of
// a vocabulary that is split over GPUs. Link KokkosNN::mpi. Where ranks have whole rows, none of this is needed: every
// rank calls the local function on its rows, and nothing is exchanged.
//
//     KokkosNN::mpi::Communicator comm(exec, MPI_COMM_WORLD);
//     KokkosNN::mpi::softmax(comm, x, y);  // x, y: (rows, this rank's columns)
//
// Attention, at the end, has parts of k and v on the ranks; what it does otherwise stands there.
//
// Common to all functions here:
//
// Collective every rank of the communicator calls, in the same order, with as many rows and the same options. Columns
//            may be as many as a rank likes, also none. Which columns they are matters to cross entropies alone.
// Views      as of the local functions. Rows are matched by their place along the other axes; layouts, strides and
//            element types may differ among ranks. Fastest where columns have stride 1.
// Exchange   16 bytes a row and rank (cross entropies: 32, with smoothed labels 48): (max, sum) in double, whatever the
//            elements are; norms: a sum and the number of columns, 32 bytes (layer_norm_backward two sums, 48), or
//            number, mean and sum of squares around it, 40. By MPI: one MPI_Allreduce a block, whose MPI_Op is the
//            merge of MaxSumExp, or of moments by the formula of Chan, Golub and LeVeque; rows go in blocks
//            (`block_rows`), so that a device reads the next block while the host waits for MPI. By NCCL (on HIP RCCL):
//            one allgather a block, all rows being one, and the next kernel merges. See Transport for which it is.
// Ordering   on the communicator's `exec`: what was enqueued there before is seen. By MPI the call fences `exec` once a
//            block, since MPI needs the pairs, and returns when the last writes are enqueued: results are there when
//            `exec` gets there. By NCCL it fences nothing. After the first call of a size nothing is allocated.
// Graphs     by NCCL, without `check` and after a first call of the size, calls of the softmax family, rms_norm and
//            layer_norm may be captured in a CUDA graph, which all ranks must launch as they would call.
// In place   as of the local function; any other overlap is an error.
// Arithmetic as of the local function. Between ranks: float and 16-bit results as accurate as from one rank; double
//            ones within 4 ulp more for every doubling of the ranks, and sums of double gradients are rounded to
//            double.
// Bits       with `deterministic`, and by NCCL always, they are the same every time and on every rank; they depend on
//            the number of ranks, on the split and on whether a host or a device merges, not on time and not on the
//            algorithm that MPI or NCCL picks. Else they may differ in the last bits. Either way all of a call's ranks
//            use the same pairs, as far as MPI gives them the same.
// Values     NaN, infinities and masked rows as the local function has them, wherever in the row they stand.
// Errors     std::invalid_argument as of the local function, and with `check` on every rank: where one rank's arguments
//            are refused or rows or options differ, all ranks throw, and nothing is written. That costs one reduction
//            of 34 words a call. Without `check` a rank that throws leaves the others waiting. std::runtime_error with
//            MPI's or NCCL's text where it fails; that communicator throws it from then on, and whether ranks on which
//            it did not fail come back is up to it. Labels, weights and their order among ranks are not compared.
//            options.plan must be left alone.
// Cost       as many reads and writes an element as each function says.
// Threads    one call at a time on a communicator; MPI_THREAD_SERIALIZED is enough. Two communicators by NCCL may have
//            calls at a time if these are enqueued in one order on all ranks, which NCCL asks for.
// Plans      each rank makes its own; that all go by one tuning file, which one of them reads, see tuning.hpp.
// Source     merging (max, sum): Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018; merging
//            (count, mean, squares): Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing
//            sample variances", 1979; a vocabulary over ranks: Shoeybi et al., "Megatron-LM: training multi-billion
//            parameter language models using model parallelism", 2019; recursive doubling: Thakur, Rabenseifner and
//            Gropp, "Optimization of collective communication operations in MPICH", 2005.

namespace KokkosNN::mpi {

/// Softmax of rows whose columns are spread over ranks: y_i = exp(scale (x_i - max)) / sum, max and sum over all ranks.
///
/// \param comm     the ranks, and the execution-space instance
/// \param x        this rank's columns, any shape of rank 1 to 8
/// \param y        output, the extents of x; may be x
/// \param options  axis, scale, masked rows, determinism; the same on every rank
///
/// See the head of this file for ordering, accuracy, NaN and errors. Reads 2 MN, writes MN elements of a rank.
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::View YView>
void softmax(const Communicator<Exec>& comm, const XView& x, const YView& y, const SoftmaxOptions& options = {}) {
  Impl::check_softmax<RowOperator::softmax, Exec, XView, YView>();
  const Kokkos::Profiling::ScopedRegion region("KokkosNN::mpi::softmax");
  Impl::sharded_call<RowOperator::softmax>("mpi::softmax", comm, x, y, options);
}

/// Log-softmax of rows whose columns are spread over ranks: y_i = scale (x_i - max) - log(sum).
///
/// Parameters as for softmax. Reads 2 MN, writes MN elements of a rank.
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::View YView>
void log_softmax(const Communicator<Exec>& comm, const XView& x, const YView& y, const SoftmaxOptions& options = {}) {
  Impl::check_softmax<RowOperator::log_softmax, Exec, XView, YView>();
  const Kokkos::Profiling::ScopedRegion region("KokkosNN::mpi::log_softmax");
  Impl::sharded_call<RowOperator::log_softmax>("mpi::log_softmax", comm, x, y, options);
}

/// Log-sum-exp of rows whose columns are spread over ranks: lse = scale max + log(sum), on every rank.
///
/// \param comm     the ranks, and the execution-space instance
/// \param x        this rank's columns
/// \param lse      output, x's extents without the axis; the whole rows', the same on every rank
/// \param options  as for softmax
///
/// Reads MN elements of a rank, writes M.
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::View LseView>
void logsumexp(const Communicator<Exec>& comm, const XView& x, const LseView& lse, const SoftmaxOptions& options = {}) {
  Impl::check_softmax<RowOperator::logsumexp, Exec, XView, LseView>();
  const Kokkos::Profiling::ScopedRegion region("KokkosNN::mpi::logsumexp");
  Impl::sharded_call<RowOperator::logsumexp>("mpi::logsumexp", comm, x, lse, options);
}

/// Gradient of softmax: dx_i = scale y_i (dy_i - sum), the sum of y dy over all ranks.
///
/// \param comm     the ranks, and the execution-space instance
/// \param y        this rank's columns of softmax's result
/// \param dy       gradient with respect to y, the extents of y
/// \param dx       output, the extents of y; may be dy or y
/// \param options  as in the forward call
///
/// Reads 4 MN, writes MN elements of a rank.
template <Concepts::ExecutionSpace Exec, Concepts::View YView, Concepts::View DyView, Concepts::View DxView>
void softmax_backward(const Communicator<Exec>& comm, const YView& y, const DyView& dy, const DxView& dx,
                      const SoftmaxOptions& options = {}) {
  const Kokkos::Profiling::ScopedRegion region("KokkosNN::mpi::softmax_backward");
  Impl::sharded_gradient<RowOperator::softmax_backward>("mpi::softmax_backward", comm, y, dy, dx, options);
}

/// Gradient of log-softmax: dx_i = scale (dy_i - exp(y_i) sum), the sum of dy over all ranks.
///
/// Parameters and cost as for softmax_backward.
template <Concepts::ExecutionSpace Exec, Concepts::View YView, Concepts::View DyView, Concepts::View DxView>
void log_softmax_backward(const Communicator<Exec>& comm, const YView& y, const DyView& dy, const DxView& dx,
                          const SoftmaxOptions& options = {}) {
  const Kokkos::Profiling::ScopedRegion region("KokkosNN::mpi::log_softmax_backward");
  Impl::sharded_gradient<RowOperator::log_softmax_backward>("mpi::log_softmax_backward", comm, y, dy, dx, options);
}

/// RMSNorm of rows whose columns are spread over ranks: y_i = x_i rstd (w_i + weight_offset), rstd = 1 / sqrt(mean of
/// x_j^2 + epsilon), the mean over the columns of all ranks.
///
/// \param comm     the ranks, and the execution-space instance
/// \param x        this rank's columns, any shape of rank 1 to 8
/// \param weight   a weight for each of these columns, or no_view for 1
/// \param y        output, the extents of x; may be x
/// \param rstd     output: the whole rows', the same on every rank, x's extents without the axis; or no_view
/// \param options  axis, epsilon, weight_offset, determinism; the same on every rank
///
/// Views, accuracy and NaN as of KokkosNN::rms_norm. Rows without columns on any rank leave rstd alone. Reads 2 MN + N,
/// writes MN + M elements of a rank.
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::OptionalView WeightView, Concepts::View YView,
          Concepts::OptionalView RstdView = NoView>
void rms_norm(const Communicator<Exec>& comm, const XView& x, const WeightView& weight, const YView& y,
              const RstdView& rstd = {}, const RmsNormOptions& options = {}) {
  Impl::sharded_norm<RowOperator::rms_norm>(comm, options, std::tuple(x), y, std::tuple(weight), std::tuple(rstd));
}

/// LayerNorm of rows whose columns are spread over ranks: y_i = (x_i - mean) rstd w_i + b_i, mean and variance over the
/// columns of all ranks. Ranks' means and squares are merged without cancellation.
///
/// Parameters as for rms_norm, and bias: a bias for each of this rank's columns, or no_view for 0; mean: output, as
/// rstd. Reads 2 MN + 2 N, writes MN + 2 M elements of a rank.
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::OptionalView WeightView,
          Concepts::OptionalView BiasView, Concepts::View YView, Concepts::OptionalView MeanView = NoView,
          Concepts::OptionalView RstdView = NoView>
void layer_norm(const Communicator<Exec>& comm, const XView& x, const WeightView& weight, const BiasView& bias,
                const YView& y, const MeanView& mean = {}, const RstdView& rstd = {},
                const LayerNormOptions& options = {}) {
  Impl::sharded_norm<RowOperator::layer_norm>(comm, options, std::tuple(x), y, std::tuple(weight, bias),
                                              std::tuple(mean, rstd));
}

/// Gradients of RMSNorm by this rank's columns of x and of the weight; formulas as of KokkosNN::rms_norm_backward, n
/// and the sum over a row of all ranks. dweight is of this rank's columns, and exchanges nothing.
///
/// \param comm     the ranks, and the execution-space instance
/// \param x        this rank's columns of rms_norm's input
/// \param weight   as in the forward call
/// \param rstd     the whole rows', as the forward call left it
/// \param dy       gradient with respect to y, the extents of x
/// \param dx       output, the extents of x; may be x or dy
/// \param dweight  output: one element for each of these columns; no_view if it is not wanted
/// \param options  as in the forward call
///
/// Reads 4 MN + M + N, writes MN elements of a rank; with dweight it reads another 2 MN + M.
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::OptionalView WeightView,
          Concepts::View RstdView, Concepts::View DyView, Concepts::View DxView,
          Concepts::OptionalView DweightView = NoView>
void rms_norm_backward(const Communicator<Exec>& comm, const XView& x, const WeightView& weight, const RstdView& rstd,
                       const DyView& dy, const DxView& dx, const DweightView& dweight = {},
                       const RmsNormOptions& options = {}) {
  Impl::sharded_norm<RowOperator::rms_norm_backward>(comm, options, std::tuple(x, dy), dx, std::tuple(weight),
                                                     std::tuple(rstd), std::tuple(dweight));
}

/// Gradients of LayerNorm by this rank's columns of x, of the weight and of the bias; formulas as of
/// KokkosNN::layer_norm_backward, n and the sums over a row of all ranks.
///
/// Parameters as for rms_norm_backward, and mean, as rstd; dbias, as dweight. Reads 4 MN + 2 M + N, writes MN elements
/// of a rank; with dweight or dbias it reads another 2 MN + 2 M.
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::OptionalView WeightView,
          Concepts::View MeanView, Concepts::View RstdView, Concepts::View DyView, Concepts::View DxView,
          Concepts::OptionalView DweightView = NoView, Concepts::OptionalView DbiasView = NoView>
void layer_norm_backward(const Communicator<Exec>& comm, const XView& x, const WeightView& weight, const MeanView& mean,
                         const RstdView& rstd, const DyView& dy, const DxView& dx, const DweightView& dweight = {},
                         const DbiasView& dbias = {}, const LayerNormOptions& options = {}) {
  Impl::sharded_norm<RowOperator::layer_norm_backward>(comm, options, std::tuple(x, dy), dx, std::tuple(weight),
                                                       std::tuple(mean, rstd), std::tuple(dweight, dbias));
}

/// Gradient of log-sum-exp. With the whole rows' lse and dlse every element is by itself: this is the local function,
/// exchanges nothing, and no other rank need call it.
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::View LseView, Concepts::View DlseView,
          Concepts::View DxView>
void logsumexp_backward(const Communicator<Exec>& comm, const XView& x, const LseView& lse, const DlseView& dlse,
                        const DxView& dx, const SoftmaxOptions& options = {}) {
  KokkosNN::logsumexp_backward(comm.exec(), x, lse, dlse, dx, options);
}

/// Cross entropy of rows whose classes are spread over ranks; formula and options as of KokkosNN::cross_entropy.
///
/// \param comm     the ranks, and the execution-space instance
/// \param logits   this rank's columns of the logits, along the last axis
/// \param classes  which classes they are, from `comm.classes(columns)`
/// \param labels   a class of all, 0 to classes.all - 1, for each row; the same on every rank
/// \param loss     output: of rank 0, or with Reduction::none one value a row; the same on every rank
/// \param options  reduction, ignore_index, label smoothing, z-loss, soft cap, checks
/// \param lse      output: the log-sum-exp of each whole row, for the backward; no_view if it is not wanted
/// \param weights  weights of all classes, the same on every rank; no_view for 1
///
/// Reads MN logits of a rank, M labels.
template <Concepts::ExecutionSpace Exec, Concepts::View LogitsView, Concepts::View LabelsView, Concepts::View LossView,
          Concepts::OptionalView LseView = NoView, Concepts::OptionalView WeightsView = NoView>
void cross_entropy(const Communicator<Exec>& comm, const LogitsView& logits, const ClassRange& classes,
                   const LabelsView& labels, const LossView& loss, const CrossEntropyOptions& options = {},
                   const LseView& lse = {}, const WeightsView& weights = {}) {
  using Views = Impl::CrossEntropyViews<RowOperator::cross_entropy, LogitsView, LabelsView, LossView, LseView, NoView,
                                        WeightsView>;
  Views::template check<Exec>();
  const Kokkos::Profiling::ScopedRegion region("KokkosNN::mpi::cross_entropy");
  Impl::sharded_cross_entropy<Views>("mpi::cross_entropy", comm, classes,
                                     Views::tensors(logits, labels, loss, lse, no_view, weights), options);
}

/// Gradient of cross entropy by this rank's logits, from what the forward call left. Exchanges nothing, and no other
/// rank need call it: as KokkosNN::cross_entropy_backward, but for `classes`.
///
/// \param classes  which classes the columns are
/// \param lse      the whole rows', as the forward call wrote it
/// \param dloss    gradient with respect to the loss: of rank 0, or with Reduction::none one value a row
/// \param dlogits  output, the extents of logits; may be the logits
///
/// Reads MN logits of a rank, writes MN elements.
template <Concepts::ExecutionSpace Exec, Concepts::View LogitsView, Concepts::View LabelsView, Concepts::View LseView,
          Concepts::View DlossView, Concepts::View DlogitsView, Concepts::OptionalView WeightsView = NoView>
void cross_entropy_backward(const Communicator<Exec>& comm, const LogitsView& logits, const ClassRange& classes,
                            const LabelsView& labels, const LseView& lse, const DlossView& dloss,
                            const DlogitsView& dlogits, const CrossEntropyOptions& options = {},
                            const WeightsView& weights = {}) {
  using Views = Impl::CrossEntropyViews<RowOperator::cross_entropy_backward, LogitsView, LabelsView, DlossView, LseView,
                                        DlogitsView, WeightsView>;
  Views::template check<Exec>();
  const Kokkos::Profiling::ScopedRegion region("KokkosNN::mpi::cross_entropy_backward");
  Impl::shard_of_cross_entropy_backward<Views>("mpi::cross_entropy_backward", comm, classes,
                                               Views::tensors(logits, labels, dloss, lse, dlogits, weights), options);
}

/// Cross entropy and its gradient: what cross_entropy and cross_entropy_backward give together, where the gradient of
/// the loss, options.gradient_scale, is known beforehand.
///
/// Parameters as for cross_entropy, and dlogits: output, the extents of logits; may be the logits. Reads 2 MN logits of
/// a rank, writes MN elements.
template <Concepts::ExecutionSpace Exec, Concepts::View LogitsView, Concepts::View LabelsView, Concepts::View LossView,
          Concepts::View DlogitsView, Concepts::OptionalView LseView = NoView,
          Concepts::OptionalView WeightsView = NoView>
void cross_entropy_with_gradient(const Communicator<Exec>& comm, const LogitsView& logits, const ClassRange& classes,
                                 const LabelsView& labels, const LossView& loss, const DlogitsView& dlogits,
                                 const CrossEntropyOptions& options = {}, const LseView& lse = {},
                                 const WeightsView& weights = {}) {
  using Views = Impl::CrossEntropyViews<RowOperator::cross_entropy_with_gradient, LogitsView, LabelsView, LossView,
                                        LseView, DlogitsView, WeightsView>;
  Views::template check<Exec>();
  const Kokkos::Profiling::ScopedRegion region("KokkosNN::mpi::cross_entropy_with_gradient");
  Impl::sharded_cross_entropy<Views>("mpi::cross_entropy_with_gradient", comm, classes,
                                     Views::tensors(logits, labels, loss, lse, dlogits, weights), options);
}

/// Attention over keys that are spread over ranks; formula and options as of KokkosNN::attention. Each rank has a part
/// of k and v, such as of the cache of a long context, and all queries, and gets all results.
///
/// \param comm     the ranks, and the execution-space instance
/// \param q        all queries (batch, head, query, dim); the same on every rank
/// \param k, v     this rank's keys and values, any number of them, also none
/// \param keys     which keys they are, from `comm.keys(keys of k)`
/// \param o        output (batch, head, query, value dim): of all keys, the same on every rank
/// \param mask     as of KokkosNN::attention, by all keys' numbers: CausalMask, SlidingWindow, Alibi, DiagonalOffsets
///                 and RowLengths are the same on every rank. BooleanMask and AdditiveBias have this rank's keys
/// \param options  the same on every rank, but for the order of the axes and precision; sinks are read on rank 0
/// \param lse      output (batch, head, query): of all keys, the same on every rank; or no_view
///
/// Exchange   the log-sum-exps and results of a rank's own keys, of the element type, by one MPI_Alltoallv that gives
///            each rank its share of the rows, and one MPI_Allgatherv of the joined ones: a rank sends a result twice,
///            however many ranks and keys there are. k and v do not move. The call fences `exec` twice.
/// Memory     twice the results and log-sum-exps; block_rows does not matter.
/// Arithmetic ranks' results are joined in their order as by merge_attention. 16-bit results are rounded for the way,
///            once a rank and once more behind: within an ulp more than attention's.
/// Bits       the same every time and on every rank, `deterministic` or not; they depend on the split.
/// Queries    that are spread over the ranks, too, are gathered ahead (MPI_Allgather); a rank then takes its own of o.
///            Nothing here passes k and v on from rank to rank.
/// Cost       as of attention over this rank's keys, and three passes over results in memory that MPI accesses.
template <Concepts::ExecutionSpace Exec, Concepts::View QView, Concepts::View KView, Concepts::View VView,
          Concepts::View OView, Concepts::Mask M, Concepts::OptionalView LseView = NoView>
void attention(const Communicator<Exec>& comm, const QView& q, const KView& k, const VView& v, const KeyRange& keys,
               const OView& o, const M& mask, const AttentionOptions& options = {}, const LseView& lse = {}) {
  using namespace KokkosNN::Impl;
  check_attention<4, Exec, QView, KView, VView, OView, M, LseView>();
  sharded_attention<typename QView::non_const_value_type>(
      comm, {tensor_of(q), tensor_of(k), tensor_of(v), tensor_of(o), tensor_of(lse)}, keys,
      erased_options<Exec, QView>("mpi::attention", mask, options));
}

/// Gradients of attention over keys that are spread over ranks; formulas as of KokkosNN::attention_backward.
///
/// \param comm     the ranks, and the execution-space instance
/// \param q, k, v  inputs of mpi::attention
/// \param keys     as in the forward call
/// \param o, lse   its outputs, of all keys
/// \param dout     gradient by o, the same on every rank
/// \param mask     as in the forward call
/// \param dq       output, gradient by q: of all keys, the same on every rank
/// \param dk, dv   outputs, gradients by this rank's keys and values
/// \param options  as in the forward call
///
/// Exchange, memory and bits as of mpi::attention: ranks' parts of dq, of the element type, are added up in the order
/// of the ranks in the accumulator's type, so parts of 16 bits are rounded for the way. dk and dv exchange nothing.
/// Reads and writes as KokkosNN::attention_backward of this rank's keys, and dq three times more.
template <Concepts::ExecutionSpace Exec, Concepts::View QView, Concepts::View KView, Concepts::View VView,
          Concepts::View OView, Concepts::View DoutView, Concepts::View LseView, Concepts::Mask M,
          Concepts::View DqView, Concepts::View DkView, Concepts::View DvView>
void attention_backward(const Communicator<Exec>& comm, const QView& q, const KView& k, const VView& v,
                        const KeyRange& keys, const OView& o, const DoutView& dout, const LseView& lse, const M& mask,
                        const DqView& dq, const DkView& dk, const DvView& dv, const AttentionOptions& options = {}) {
  using namespace KokkosNN::Impl;
  check_attention_backward<4, Exec, QView, KView, VView, OView, DoutView, LseView, M, DqView, DkView, DvView>();
  sharded_attention_backward<typename QView::non_const_value_type>(
      comm,
      {{tensor_of(q), tensor_of(k), tensor_of(v), tensor_of(o), tensor_of(lse)},
       tensor_of(dout),
       tensor_of(dq),
       tensor_of(dk),
       tensor_of(dv)},
      keys, erased_options<Exec, QView>("mpi::attention_backward", mask, options));
}

}  // namespace KokkosNN::mpi

#endif  // KOKKOSNN_MPI_HPP
