// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_ATTENTION_HPP
#define KOKKOSNN_ATTENTION_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/dropout.hpp>
#include <KokkosNN/impl/call/attention_call.hpp>
#include <KokkosNN/impl/call/optional_view.hpp>
#include <KokkosNN/mask.hpp>
#include <KokkosNN/options.hpp>
#include <KokkosNN/precision.hpp>

#include <Kokkos_Core.hpp>

// Attention in one kernel: the scores are not written.

namespace KokkosNN {

/// Order of the axes of q, k, v and o.
enum class AttentionAxes { batch_head_sequence_dim, batch_sequence_head_dim };

/// Place of diagonals that causal masks, windows and ALiBi have at offset 0. first: query i is at key i. last: the last
/// query is at the last key, query i at key i + keys - queries.
enum class AttentionDiagonal { first, last };

/// Options of attention; an aggregate for designated initialisers: `{.scale = 0.125, .softcap = 30}`.
struct AttentionOptions {
  double scale               = 0;   ///< factor of q k^T; 2^-100 to 2^100, or negative; 0: 1 / sqrt(dim)
  double softcap             = 0;   ///< c > 0 replaces a scaled score s by c tanh(s / c); 0: none
  Sinks sinks                = {};  ///< one logit a head of q that joins the sum
  MaskedRowPolicy masked_row = MaskedRowPolicy::nan;  ///< o of a query that sees no key, and without a sink
  AttentionAxes axes         = AttentionAxes::batch_head_sequence_dim;
  Precision precision        = Precision::exact;  ///< of products of float; attention_backward and hosts are exact
  AttentionDiagonal diagonal = AttentionDiagonal::first;  ///< of CausalMask, SlidingWindow and Alibi
  MatmulTier tier            = MatmulTier::automatic;     ///< kernels on a GPU, for experiments
  AttentionDropout dropout   = {};                        ///< of the weights; those of attention and its gradients
};

namespace Impl {

template <class Exec, class QView, class M>
AttentionCallOptions erased_options(const char* function, const M& mask, const AttentionOptions& options) {
  if (options.sinks.exist()) {
    require_sinks(function, options.sinks.template accessible_from<Exec>(), options.sinks.type(),
                  element_type<typename QView::non_const_value_type>());
  }
  AttentionCallOptions erased;
  erased.scale              = options.scale;
  erased.masked_row         = options.masked_row;
  erased.sequence_is_second = options.axes == AttentionAxes::batch_sequence_head_dim;
  for_parts(mask, [&](const auto& part) { erase(erased.mask, part); });
  erase(erased.mask, options.sinks);
  erased.mask.softcap = options.softcap;
  erased.precision    = options.precision;
  erased.tier         = options.tier;
  erased.ends_align   = options.diagonal == AttentionDiagonal::last;
  erased.dropout      = options.dropout;
  return erased;
}

}  // namespace Impl

/// Scaled dot-product attention, o = softmax(scale q k^T + mask) v. With s = scale q . k_j, the logit of key j is
/// z_j = s, or softcap tanh(s / softcap), plus the bias, less the ALiBi slope times the distance; o is the sum of
/// exp(z_j - lse) v_j over the keys j that the mask allows, and lse = log(sum of exp(z_j)), in which the sink takes
/// part.
///
/// \param exec     execution-space instance; the call is asynchronous on it
/// \param q        queries (batch, head, query, dim) of double, float, half_t or bhalf_t; dim is 1 to 256
/// \param k        keys (batch, head of k, key, dim); q has a multiple of its heads, and head h of q reads head
///                 h / (heads of q / heads of k)
/// \param v        values (batch, head of k, key, value dim), value dim 1 to 256
/// \param o        output (batch, head, query, value dim)
/// \param mask     CausalMask, SlidingWindow, RowLengths, BooleanMask, AdditiveBias, Alibi, or several: masks(...); x
///                 of mask.hpp is the scores (batch, head, query, key). `masks()` masks nothing
/// \param options  scale, softcap, sinks, dropout, masked rows, order of the axes, precision; see AttentionOptions
/// \param lse      output (batch, head, query) in any order of q's axes, of double if q is, else float; or no_view
///
/// Views      of one type, in any layout, strides (0 in inputs) and alignment, so subviews of packed q, k and v serve.
/// In place   o and lse must not overlap each other, nor any input.
/// Ordering   asynchronous on `exec`: one kernel, no fence, no allocation by the library; of few queries and many keys
///            two kernels, and parts are kept in memory that the library holds.
/// Arithmetic in double for double, else in float; products of float as options.precision says. Results are rounded
///            once; tensor cores (16-bit elements on CUDA from sm_80 on, on HIP on MI200 and MI300) also round the
///            weights to 16 bits ahead of the product with v. The same call gives the same bits each time. A row's bits
///            depend on its own query, keys and mask, on whether queries are few, and on strides and options as far as
///            they choose the kernel, but neither on the batch nor on how many teams run at once.
/// Accuracy   o is within (16 + dim + 4 |z|) 2^-52 of the largest |v| for double (else 2^-23, and half an ulp of 16
///            bits, on tensor cores another half an ulp of the largest |v|), |z| being the largest logit or sum of
///            |terms| of one. Precision tensor_float32x3: twice float's; tensor_float32: as bf16 with 11 bits.
/// Values     a key that the mask's numbers (causal, window, length) or its booleans rule out never counts, nor does
///            its value: a NaN there is ignored. Keys that no query of a block sees are not read, but between those
///            that queries see. A key of weight 0 adds nothing, whatever its value is; a GPU computes a row with NaN
///            or infinite values again, key by key, which is slow. A NaN or +inf
///            among the allowed logits, or as sink, makes o of the query NaN. A query that sees no key, or none but
///            logits of -inf, gives NaN or 0 by options.masked_row, but 0 with a sink; its lse is -inf, or the sink.
/// Errors     std::invalid_argument with the offending values, and nothing written: extents that do not fit, a dim of 0
///            or beyond 256, heads of q that are no multiple of k's, a scale beyond 2^+-100, softcap negative or not
///            finite, a negative window, mask Views that do not broadcast, overlap.
/// Cost       2 (dim + value dim) operations a query and key, in tiles of keys that the mask's numbers allow. No scores
///            are stored. A host's thread reads k and v once a block of 8 to 64 queries. On CUDA a team multiplies 64
///            to 128 queries by tiles of 16 to 64 keys on a matrix unit (`matmul.hpp` says which), dims padded to 64,
///            128 or 256, and so on HIP on MI200 and MI300; q, k and v whose bases and strides are multiples of 16
///            bytes, dim contiguous, are copied asynchronously, others element by element. A team has up to 195 KiB of
///            scratch. On Hopper 16-bit elements, so aligned, of 64 queries or more without dropout run on warpgroups,
///            128 or 192 queries of a head by tiles of 128 keys (64 beyond a dim of 128). A bias of 16 bits, and
///            booleans, whose rows begin at multiples of 16 bytes are read 16 bytes at a time there, others element by
///            element. Dropout's generator is called once for four weights. Doubles of more than 128 elements, other
///            GPUs of AMD, and devices with less scratch, take a row of scores a team, which reads k and v anew for
///            each query. Decoding: up to 64 queries of all heads that share a head of k, and 512 keys or more, are
///            computed by parts of 256 keys side by side, which `merge_attention`'s rule joins.
/// Source     Vaswani et al., "Attention is all you need", 2017; the rescaled sums: Milakov and Gimelshein, "Online
///            normalizer calculation for softmax", 2018; Dao et al., "FlashAttention", 2022.
template <Concepts::ExecutionSpace Exec, Concepts::View QView, Concepts::View KView, Concepts::View VView,
          Concepts::View OView, Concepts::Mask M, Concepts::OptionalView LseView = NoView>
void attention(const Exec& exec, const QView& q, const KView& k, const VView& v, const OView& o, const M& mask,
               const AttentionOptions& options = {}, const LseView& lse = {}) {
  Impl::check_attention<4, Exec, QView, KView, VView, OView, M, LseView>();
  Impl::attention_call<typename QView::non_const_value_type>(
      exec, "attention",
      {Impl::tensor_of(q), Impl::tensor_of(k), Impl::tensor_of(v), Impl::tensor_of(o), Impl::tensor_of(lse)},
      Impl::erased_options<Exec, QView>("attention", mask, options));
}

/// Attention on the default instance of o's execution space.
template <Concepts::View QView, Concepts::View KView, Concepts::View VView, Concepts::View OView, Concepts::Mask M,
          Concepts::OptionalView LseView = NoView>
void attention(const QView& q, const KView& k, const VView& v, const OView& o, const M& mask,
               const AttentionOptions& options = {}, const LseView& lse = {}) {
  attention(typename OView::execution_space{}, q, k, v, o, mask, options, lse);
}

/// Gradients of attention. With p_j = exp(z_j - lse), delta = sum(o dout) and g_j = p_j (dout . v_j - delta), times the
/// softcap's derivative: dq = scale sum(g_j k_j) over the keys j, and over the queries that see a key, of all heads of
/// q that read it, dk = scale sum(g q) and dv = sum(p dout).
///
/// \param exec     execution-space instance; the call is asynchronous on it
/// \param q, k, v  inputs of `attention`
/// \param o        its output
/// \param dout     gradient by o, of o's extents
/// \param lse      log-sum-exps that `attention` wrote, (batch, head, query) in any order of q's axes
/// \param mask     mask of `attention`
/// \param dq       output, gradient by q, of q's extents
/// \param dk, dv   outputs, gradients by k and v, of their extents
/// \param options  options of `attention`; masked_row does not matter: a query that saw no key adds nothing
///
/// Views      of one type, but for lse, in any layout, strides (0 in inputs) and alignment.
/// In place   dq, dk and dv must not overlap each other, nor any input.
/// Ordering   asynchronous on `exec`: two or three kernels, no fence; a number a query is kept in memory that the
///            library holds.
/// Arithmetic in double for double, else in float; results are rounded once. Sums are taken in a fixed order, without
///            atomics: the same call gives the same bits each time.
/// Values     keys that the mask rules out, or that have no weight, are not looked at: their dk and dv are 0 of that
///            query. NaN and infinities in what a query sees make its dq NaN, and dk and dv of the keys that it sees.
/// Errors     std::invalid_argument with the offending values, and nothing written: as `attention`, and extents of
///            gradients that are not those of their tensors.
/// Cost       14 operations a query, key and element of the dims: both kernels compute the scores. Hosts multiply
///            packed tiles by vectors. On CUDA and HIP teams multiply tiles on a matrix unit, as `attention` does;
///            16-bit probabilities and gradients of scores are rounded to 16 bits there. Calls that `attention` runs on
///            Hopper's warpgroups have their gradients there, too, if no dim is beyond 128, o and dout are as aligned
///            and the value dim is a multiple of 8: three kernels, the first of which writes 20 bytes a query, 68 under
///            a mask of single scores. Dims beyond 128 (doubles: 64)
///            take three kernels. What has no tiles (see `attention`) runs simple loops: a row of scores reads k and v
///            anew, and a key all q and dout. Gradients by a bias and by sinks: attention_mask_gradients.hpp.
/// Source     Dao et al., "FlashAttention", 2022, appendix B.
template <Concepts::ExecutionSpace Exec, Concepts::View QView, Concepts::View KView, Concepts::View VView,
          Concepts::View OView, Concepts::View DoutView, Concepts::View LseView, Concepts::Mask M,
          Concepts::View DqView, Concepts::View DkView, Concepts::View DvView>
void attention_backward(const Exec& exec, const QView& q, const KView& k, const VView& v, const OView& o,
                        const DoutView& dout, const LseView& lse, const M& mask, const DqView& dq, const DkView& dk,
                        const DvView& dv, const AttentionOptions& options = {}) {
  using namespace Impl;
  check_attention_backward<4, Exec, QView, KView, VView, OView, DoutView, LseView, M, DqView, DkView, DvView>();
  const AttentionGradientTensors tensors{{tensor_of(q), tensor_of(k), tensor_of(v), tensor_of(o), tensor_of(lse)},
                                         tensor_of(dout),
                                         tensor_of(dq),
                                         tensor_of(dk),
                                         tensor_of(dv)};
  attention_backward_call<typename QView::non_const_value_type>(
      exec, "attention_backward", tensors, erased_options<Exec, QView>("attention_backward", mask, options));
}

/// Gradients of attention on the default instance of dq's execution space.
template <Concepts::View QView, Concepts::View KView, Concepts::View VView, Concepts::View OView,
          Concepts::View DoutView, Concepts::View LseView, Concepts::Mask M, Concepts::View DqView,
          Concepts::View DkView, Concepts::View DvView>
void attention_backward(const QView& q, const KView& k, const VView& v, const OView& o, const DoutView& dout,
                        const LseView& lse, const M& mask, const DqView& dq, const DkView& dk, const DvView& dv,
                        const AttentionOptions& options = {}) {
  attention_backward(typename DqView::execution_space{}, q, k, v, o, dout, lse, mask, dq, dk, dv, options);
}

}  // namespace KokkosNN

#endif  // KOKKOSNN_ATTENTION_HPP
