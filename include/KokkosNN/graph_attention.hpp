// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_GRAPH_ATTENTION_HPP
#define KOKKOSNN_GRAPH_ATTENTION_HPP

#include <KokkosNN/attention.hpp>
#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/graph_attention_call.hpp>
#include <KokkosNN/impl/call/optional_view.hpp>
#include <KokkosNN/mask.hpp>

#include <Kokkos_Core.hpp>

// Attention over the edges of a graph in compressed-row storage: each node attends to its neighbours.

namespace KokkosNN {

/// Attention of nodes to the sources of their edges: for node i and each head, o_i = sum over the edges e of i of p_e
/// v_j, j = entries(e), p_e = exp(z_e - lse_i), z_e = scale q_i . k_j, softcapped if asked for, + bias_e, and
/// lse_i = log(sum of exp(z_e)), in which the sink takes part.
///
/// \param exec     execution-space instance; the call is asynchronous on it
/// \param q        queries (node, head, dim) of double, float, half_t or bhalf_t, of any dim
/// \param k        keys (source, head of k, dim); q has a multiple of its heads, as in `attention`
/// \param v        values (source, head of k, value dim)
/// \param row_map  nodes + 1 integers of 32 or 64 bits, ascending: where each node's edges begin, and the last one's
///                 end
/// \param entries  edges' sources, integers of 32 or 64 bits; one outside of 0 to sources - 1 is no edge (padding)
/// \param o        output (node, head, value dim)
/// \param options  options of `attention`: scale, softcap, sinks and masked_row, o of a node without an edge. Others do
///                 not matter
/// \param bias     (edge, head) of q's type or float; or no_view
/// \param lse      output (node, head) of double if q is, else float; or no_view
///
/// Views      q, k, v and o of one type; in any layout, strides (0 in inputs) and alignment.
/// In place   o and lse must not overlap each other, nor any input.
/// Ordering   asynchronous on `exec`: up to three kernels, no fence; a number an edge and head is kept in memory that
///            the library holds. row_map and entries are read on the device alone; a row_map that descends or leaves
///            the edges makes results undefined, but nothing else is written.
/// Arithmetic in double for double, else in float; results are rounded once. A node's sums are in an order of its edges
///            that depends on the dims, types and strides alone: the same bits each time, for any number of threads.
/// Values     an edge of weight 0 adds nothing, whatever its value is. A NaN or +inf among a node's logits makes its o
///            NaN. A node without an edge, or with none but logits of -inf, gives NaN or 0 by options.masked_row, but 0
///            with a sink; its lse is -inf, or the sink.
/// Errors     std::invalid_argument with the offending values, and nothing written: extents that do not fit, a dim of
///            0, heads of q that are no multiple of k's, a scale beyond 2^+-100, softcap negative or not finite,
///            overlap.
/// Cost       gathers dim and value dim elements an edge and head of k; 2 (dim + value dim) operations an edge and
///            head. Work is shared out by nodes and heads: one node of very many edges takes long. No matrix unit is
///            used. On CUDA contiguous rows of whole packs of 16 bytes, up to 2 KiB long, are gathered pack by pack,
///            in one kernel; others element by element, which takes up to four times as long.
/// Source     Velickovic et al., "Graph attention networks", 2018; Shi et al., "Masked label prediction", 2021.
template <Concepts::ExecutionSpace Exec, Concepts::View QView, Concepts::View KView, Concepts::View VView,
          Concepts::View RowMapView, Concepts::View EntriesView, Concepts::View OView,
          Concepts::OptionalView BiasView = NoView, Concepts::OptionalView LseView = NoView>
void graph_attention(const Exec& exec, const QView& q, const KView& k, const VView& v, const RowMapView& row_map,
                     const EntriesView& entries, const OView& o, const AttentionOptions& options = {},
                     const BiasView& bias = {}, const LseView& lse = {}) {
  using namespace Impl;
  check_graph_attention<Exec, RowMapView, EntriesView, BiasView, LseView, QView, KView, VView, OView>();
  static_assert(is_writable<OView>, "KokkosNN::graph_attention: o must not be const");
  GraphAttentionTensors tensors;
  tensors.q       = tensor_of(q);
  tensors.k       = tensor_of(k);
  tensors.v       = tensor_of(v);
  tensors.row_map = tensor_of(row_map);
  tensors.entries = tensor_of(entries);
  tensors.o       = tensor_of(o);
  tensors.bias    = tensor_of(bias);
  tensors.lse     = tensor_of(lse);
  graph_attention_call<typename QView::non_const_value_type>(
      exec, "graph_attention", false, tensors, erased_options<Exec, QView>("graph_attention", masks(), options));
}

/// Attention over a graph on the default instance of o's execution space.
template <Concepts::View QView, Concepts::View KView, Concepts::View VView, Concepts::View RowMapView,
          Concepts::View EntriesView, Concepts::View OView, Concepts::OptionalView BiasView = NoView,
          Concepts::OptionalView LseView = NoView>
void graph_attention(const QView& q, const KView& k, const VView& v, const RowMapView& row_map,
                     const EntriesView& entries, const OView& o, const AttentionOptions& options = {},
                     const BiasView& bias = {}, const LseView& lse = {}) {
  graph_attention(typename OView::execution_space{}, q, k, v, row_map, entries, o, options, bias, lse);
}

/// Gradients of graph_attention. With delta_i = sum(o_i dout_i) and g_e = p_e (dout_i . v_j - delta_i): dbias_e = g_e;
/// with g_e times the softcap's derivative: dq_i = scale sum(g_e k_j) over the edges of i; and over the edges e whose
/// source is j, of all heads of q that read it, dk_j = scale sum(g_e q_i), dv_j = sum(p_e dout_i).
///
/// \param exec              execution-space instance; the call is asynchronous on it
/// \param q, k, v           inputs of `graph_attention`
/// \param row_map, entries  its graph
/// \param o                 its output
/// \param dout              gradient by o, of o's extents
/// \param lse               log-sum-exps that `graph_attention` wrote, (node, head)
/// \param dq                output, gradient by q, of q's extents
/// \param dk, dv            outputs, gradients by k and v, of their extents; 0 of a source without edges
/// \param options           options of `graph_attention`
/// \param bias              its bias, or no_view
/// \param dbias             output, gradient by the bias, (edge, head) of q's type or float; or no_view. It is 0 of
///                          what is no edge; edges ahead of the first row and behind the last are not written
///
/// Views      as graph_attention's.
/// In place   outputs must not overlap each other, nor any input.
/// Ordering   asynchronous on `exec`: up to eight kernels, no fence; two numbers an edge and head, and the edges of
///            each source, are kept in memory that the library holds.
/// Arithmetic as graph_attention's. The edges of each source are found by counting, then put in the order of their
///            numbers, and its sums are in an order that depends on nothing else: the same bits each time.
/// Values     edges of weight 0 add nothing, whatever they gather. NaN and infinities in what a node gathers make its
///            dq NaN, and dk and dv of its sources.
/// Errors     std::invalid_argument with the offending values, and nothing written: as `graph_attention`.
/// Cost       14 operations an edge, head and element of the dims, besides the sort, a thread a source.
/// Source     that of `attention_backward`.
template <Concepts::ExecutionSpace Exec, Concepts::View QView, Concepts::View KView, Concepts::View VView,
          Concepts::View RowMapView, Concepts::View EntriesView, Concepts::View OView, Concepts::View DoutView,
          Concepts::View LseView, Concepts::View DqView, Concepts::View DkView, Concepts::View DvView,
          Concepts::OptionalView BiasView = NoView, Concepts::OptionalView DbiasView = NoView>
void graph_attention_backward(const Exec& exec, const QView& q, const KView& k, const VView& v,
                              const RowMapView& row_map, const EntriesView& entries, const OView& o,
                              const DoutView& dout, const LseView& lse, const DqView& dq, const DkView& dk,
                              const DvView& dv, const AttentionOptions& options = {}, const BiasView& bias = {},
                              const DbiasView& dbias = {}) {
  using namespace Impl;
  check_graph_attention<Exec, RowMapView, EntriesView, BiasView, LseView, QView, KView, VView, OView, DoutView, DqView,
                        DkView, DvView>();
  check_edges<Exec, QView, DbiasView>();
  static_assert(is_writable<DqView> && is_writable<DkView> && is_writable<DvView>,
                "KokkosNN::graph_attention_backward: dq, dk and dv must not be const");
  const GraphAttentionTensors tensors{tensor_of(q),       tensor_of(k),  tensor_of(v),   tensor_of(row_map),
                                      tensor_of(entries), tensor_of(o),  tensor_of(lse), tensor_of(bias),
                                      tensor_of(dout),    tensor_of(dq), tensor_of(dk),  tensor_of(dv),
                                      tensor_of(dbias)};
  graph_attention_call<typename QView::non_const_value_type>(
      exec, "graph_attention_backward", true, tensors,
      erased_options<Exec, QView>("graph_attention_backward", masks(), options));
}

/// Gradients of attention over a graph on the default instance of dq's execution space.
template <Concepts::View QView, Concepts::View KView, Concepts::View VView, Concepts::View RowMapView,
          Concepts::View EntriesView, Concepts::View OView, Concepts::View DoutView, Concepts::View LseView,
          Concepts::View DqView, Concepts::View DkView, Concepts::View DvView, Concepts::OptionalView BiasView = NoView,
          Concepts::OptionalView DbiasView = NoView>
void graph_attention_backward(const QView& q, const KView& k, const VView& v, const RowMapView& row_map,
                              const EntriesView& entries, const OView& o, const DoutView& dout, const LseView& lse,
                              const DqView& dq, const DkView& dk, const DvView& dv,
                              const AttentionOptions& options = {}, const BiasView& bias = {},
                              const DbiasView& dbias = {}) {
  graph_attention_backward(typename DqView::execution_space{}, q, k, v, row_map, entries, o, dout, lse, dq, dk, dv,
                           options, bias, dbias);
}

}  // namespace KokkosNN

#endif  // KOKKOSNN_GRAPH_ATTENTION_HPP
