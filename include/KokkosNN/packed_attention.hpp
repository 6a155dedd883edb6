// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_PACKED_ATTENTION_HPP
#define KOKKOSNN_PACKED_ATTENTION_HPP

#include <KokkosNN/attention.hpp>
#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/attention_call.hpp>
#include <KokkosNN/impl/call/optional_view.hpp>
#include <KokkosNN/mask.hpp>

#include <Kokkos_Core.hpp>

// Attention of packed sequences: a batch of sequences of different lengths, one behind the other, without padding.

namespace KokkosNN {

namespace Impl {

template <class Exec, class QView, class QueryOffsets, class KeyOffsets, class M>
AttentionCallOptions packed_options(const char* function, const QueryOffsets& query_offsets,
                                    const KeyOffsets& key_offsets, const M& mask, const AttentionOptions& options) {
  check_sequence_offsets<Exec, QueryOffsets, KeyOffsets>();
  AttentionCallOptions erased = erased_options<Exec, QView>(function, mask, options);
  erased.is_packed            = true;
  erased.query_offsets        = tensor_of(query_offsets);
  erased.key_offsets          = tensor_of(key_offsets);
  return erased;
}

}  // namespace Impl

/// Attention within each of a batch of packed sequences: `attention` of the queries query_offsets(s) to
/// query_offsets(s + 1) - 1 and of the keys key_offsets(s) to key_offsets(s + 1) - 1, for each sequence s.
///
/// \param exec           execution-space instance; the call is asynchronous on it
/// \param q              queries (token, head, dim) of double, float, half_t or bhalf_t; dim is 1 to 256
/// \param k              keys (token, head of k, dim); q has a multiple of its heads, as in `attention`
/// \param v              values (token, head of k, value dim), value dim 1 to 256
/// \param query_offsets  one more than there are sequences, signed integers of 32 or 64 bits, ascending: each one's
///                       first token of q, and the end of the last one
/// \param key_offsets    those of k and v; may be query_offsets
/// \param o              output (token, head, value dim)
/// \param mask           masks of `attention` by the numbers that queries and keys have in their sequence; x of
///                       mask.hpp is (sequence, head, 1, 1), so that Views may have a number a sequence or a head:
///                       RowLengths, DiagonalOffsets and Alibi serve, a BooleanMask or AdditiveBias of keys does not
/// \param options        options of `attention`, but for axes; diagonal: with `last` the last query of each sequence
///                       is at its last key
/// \param lse            output (token, head) of double if q is, else float; or no_view
///
/// Views      as in `attention`: any layout, strides and alignment.
/// Offsets    are read on the device alone. Those that descend or leave the tensors make o and lse undefined, but
///            nothing else is written. Sequences of no queries, or of no keys, are allowed: o of the latter's queries
///            is options.masked_row's. Tokens ahead of the first offset and behind the last are not written.
/// In place   o and lse must not overlap each other, nor any input.
/// Ordering   asynchronous on `exec`: one kernel, no fence, no allocation by the library.
/// Arithmetic, accuracy and values as in `attention`, and the same bits as a call of it with a sequence alone.
/// Errors     std::invalid_argument with the offending values, and nothing written: as `attention`, which calls packed
///            tensors a batch of one, and offsets of different extents or none.
/// Cost       that of `attention` of each sequence. The launch covers the tokens of q and a block a sequence, not the
///            longest sequence: a team finds its sequence by bisection, and leaves where its block is empty.
/// Source     that of `attention`.
template <Concepts::ExecutionSpace Exec, Concepts::View QView, Concepts::View KView, Concepts::View VView,
          Concepts::View QueryOffsets, Concepts::View KeyOffsets, Concepts::View OView, Concepts::Mask M,
          Concepts::OptionalView LseView = NoView>
void packed_attention(const Exec& exec, const QView& q, const KView& k, const VView& v,
                      const QueryOffsets& query_offsets, const KeyOffsets& key_offsets, const OView& o, const M& mask,
                      const AttentionOptions& options = {}, const LseView& lse = {}) {
  using namespace Impl;
  check_attention<3, Exec, QView, KView, VView, OView, M, LseView>();
  constexpr const char* function = "packed_attention";
  attention_call<typename QView::non_const_value_type>(
      exec, function, {tensor_of(q), tensor_of(k), tensor_of(v), tensor_of(o), tensor_of(lse)},
      packed_options<Exec, QView>(function, query_offsets, key_offsets, mask, options));
}

/// Attention of packed sequences on the default instance of o's execution space.
template <Concepts::View QView, Concepts::View KView, Concepts::View VView, Concepts::View QueryOffsets,
          Concepts::View KeyOffsets, Concepts::View OView, Concepts::Mask M, Concepts::OptionalView LseView = NoView>
void packed_attention(const QView& q, const KView& k, const VView& v, const QueryOffsets& query_offsets,
                      const KeyOffsets& key_offsets, const OView& o, const M& mask,
                      const AttentionOptions& options = {}, const LseView& lse = {}) {
  packed_attention(typename OView::execution_space{}, q, k, v, query_offsets, key_offsets, o, mask, options, lse);
}

/// Gradients of packed_attention: `attention_backward` of each sequence.
///
/// \param exec           execution-space instance; the call is asynchronous on it
/// \param q, k, v        inputs of `packed_attention`
/// \param query_offsets  its offsets, as key_offsets
/// \param key_offsets    see there
/// \param o              its output
/// \param dout           gradient by o, of o's extents
/// \param lse            log-sum-exps that `packed_attention` wrote, (token, head)
/// \param mask           its mask
/// \param dq             output, gradient by q, of q's extents
/// \param dk, dv         outputs, gradients by k and v, of their extents
/// \param options        its options
///
/// Views, arithmetic, values, errors and cost as in `attention_backward`, offsets as in `packed_attention`. dk and dv
/// of a sequence without queries are 0; tokens of no sequence are not written.
/// Ordering   asynchronous on `exec`: two or three kernels, no fence; a number a query is kept in memory that the
///            library holds.
template <Concepts::ExecutionSpace Exec, Concepts::View QView, Concepts::View KView, Concepts::View VView,
          Concepts::View QueryOffsets, Concepts::View KeyOffsets, Concepts::View OView, Concepts::View DoutView,
          Concepts::View LseView, Concepts::Mask M, Concepts::View DqView, Concepts::View DkView, Concepts::View DvView>
void packed_attention_backward(const Exec& exec, const QView& q, const KView& k, const VView& v,
                               const QueryOffsets& query_offsets, const KeyOffsets& key_offsets, const OView& o,
                               const DoutView& dout, const LseView& lse, const M& mask, const DqView& dq,
                               const DkView& dk, const DvView& dv, const AttentionOptions& options = {}) {
  using namespace Impl;
  check_attention_backward<3, Exec, QView, KView, VView, OView, DoutView, LseView, M, DqView, DkView, DvView>();
  constexpr const char* function = "packed_attention_backward";
  const AttentionGradientTensors tensors{{tensor_of(q), tensor_of(k), tensor_of(v), tensor_of(o), tensor_of(lse)},
                                         tensor_of(dout),
                                         tensor_of(dq),
                                         tensor_of(dk),
                                         tensor_of(dv)};
  attention_backward_call<typename QView::non_const_value_type>(
      exec, function, tensors, packed_options<Exec, QView>(function, query_offsets, key_offsets, mask, options));
}

/// Gradients of attention of packed sequences on the default instance of dq's execution space.
template <Concepts::View QView, Concepts::View KView, Concepts::View VView, Concepts::View QueryOffsets,
          Concepts::View KeyOffsets, Concepts::View OView, Concepts::View DoutView, Concepts::View LseView,
          Concepts::Mask M, Concepts::View DqView, Concepts::View DkView, Concepts::View DvView>
void packed_attention_backward(const QView& q, const KView& k, const VView& v, const QueryOffsets& query_offsets,
                               const KeyOffsets& key_offsets, const OView& o, const DoutView& dout, const LseView& lse,
                               const M& mask, const DqView& dq, const DkView& dk, const DvView& dv,
                               const AttentionOptions& options = {}) {
  packed_attention_backward(typename DqView::execution_space{}, q, k, v, query_offsets, key_offsets, o, dout, lse, mask,
                            dq, dk, dv, options);
}

}  // namespace KokkosNN

#endif  // KOKKOSNN_PACKED_ATTENTION_HPP
