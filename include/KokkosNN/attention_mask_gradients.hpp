// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_ATTENTION_MASK_GRADIENTS_HPP
#define KOKKOSNN_ATTENTION_MASK_GRADIENTS_HPP

#include <KokkosNN/attention.hpp>
#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/attention_mask_gradients_call.hpp>
#include <KokkosNN/mask.hpp>

#include <Kokkos_Core.hpp>

// Gradients of attention by a bias and by sinks, beside those by q, k and v of attention.hpp.

namespace KokkosNN {

/// Gradient of attention by its bias: with p_j = exp(z_j - lse) and delta = sum(o dout), p_j (dout . v_j - delta) of
/// each query and key, added up over the axes that the bias is broadcast along.
///
/// \param exec     execution-space instance; the call is asynchronous on it
/// \param q, k, v  inputs of `attention`, of rank 4
/// \param o        its output
/// \param dout     gradient by o, of o's extents
/// \param lse      log-sum-exps that `attention` wrote
/// \param mask     its mask, which has an AdditiveBias
/// \param dbias    output of the extents of the bias, of q's type or float
/// \param options  its options; masked_row does not matter
///
/// Views      as in `attention_backward`.
/// In place   dbias must not overlap any input, the mask's Views included.
/// Ordering   asynchronous on `exec`: two kernels, no fence; a number a query is kept in memory that the library holds.
/// Arithmetic in double for double, else in float; the result is rounded once. Sums are in the order of the batch,
///            heads, queries and keys: the same bits each time, for any number of threads.
/// Values     0 of a key that the mask rules out, or that has no weight, and of queries that saw no key; NaN and
///            infinities in what a query sees make its elements NaN.
/// Errors     std::invalid_argument with the offending values, and nothing written: as `attention_backward`, a mask
///            without a bias, dbias of other extents.
/// Cost       2 (dim + value dim) operations a query and key, by simple loops, a thread an element of the bias: one
///            that is broadcast along most axes takes long.
/// Source     that of `attention_backward`.
template <Concepts::ExecutionSpace Exec, Concepts::View QView, Concepts::View KView, Concepts::View VView,
          Concepts::View OView, Concepts::View DoutView, Concepts::View LseView, Concepts::Mask M,
          Concepts::View DbiasView>
void attention_bias_backward(const Exec& exec, const QView& q, const KView& k, const VView& v, const OView& o,
                             const DoutView& dout, const LseView& lse, const M& mask, const DbiasView& dbias,
                             const AttentionOptions& options = {}) {
  using namespace Impl;
  check_ranks<4, QView, KView, VView, OView, DoutView>();
  check_attention_sums<Exec, QView, LseView, DbiasView, KView, VView, OView, DoutView>();
  MaskChecks<Exec, QView>::check(static_cast<const M*>(nullptr));
  const char* const function = "attention_bias_backward";
  const AttentionGradientTensors tensors{
      {tensor_of(q), tensor_of(k), tensor_of(v), tensor_of(o), tensor_of(lse)}, tensor_of(dout), {}, {}, {}};
  attention_mask_gradient_call<typename QView::non_const_value_type>(
      exec, function, false, tensors, tensor_of(dbias), erased_options<Exec, QView>(function, mask, options));
}

/// Gradient of attention by its bias on the default instance of dbias' execution space.
template <Concepts::View QView, Concepts::View KView, Concepts::View VView, Concepts::View OView,
          Concepts::View DoutView, Concepts::View LseView, Concepts::Mask M, Concepts::View DbiasView>
void attention_bias_backward(const QView& q, const KView& k, const VView& v, const OView& o, const DoutView& dout,
                             const LseView& lse, const M& mask, const DbiasView& dbias,
                             const AttentionOptions& options = {}) {
  attention_bias_backward(typename DbiasView::execution_space{}, q, k, v, o, dout, lse, mask, dbias, options);
}

/// Gradient of attention by its sinks: of each head, -exp(sink - lse) sum(o dout), added up over batch and queries.
///
/// \param exec     execution-space instance; the call is asynchronous on it
/// \param o        output of `attention`, of rank 4
/// \param dout     gradient by o, of o's extents
/// \param lse      log-sum-exps that `attention` wrote
/// \param dsinks   output, a value a head, of o's type or float
/// \param options  options of `attention`; its sinks, one a head, and axes matter
///
/// Views      as in `attention_backward`.
/// In place   dsinks must not overlap any input.
/// Ordering   asynchronous on `exec`: three kernels, no fence; a number a query, and 256 a head, are kept in memory
///            that the library holds.
/// Arithmetic in double for double, else in float; the result is rounded once. Sums are in a fixed order: the same bits
///            each time, for any number of threads.
/// Values     0 of a sink of -inf.
/// Errors     std::invalid_argument with the offending values, and nothing written: extents that do not fit, no sinks.
/// Cost       reads o and dout once.
/// Source     that of `attention_backward`.
template <Concepts::ExecutionSpace Exec, Concepts::View OView, Concepts::View DoutView, Concepts::View LseView,
          Concepts::View DsinksView>
void attention_sinks_backward(const Exec& exec, const OView& o, const DoutView& dout, const LseView& lse,
                              const DsinksView& dsinks, const AttentionOptions& options = {}) {
  using namespace Impl;
  check_ranks<4, OView, DoutView>();
  check_attention_sums<Exec, OView, LseView, DsinksView, DoutView>();
  const char* const function = "attention_sinks_backward";
  const AttentionGradientTensors tensors{{{}, {}, {}, tensor_of(o), tensor_of(lse)}, tensor_of(dout), {}, {}, {}};
  attention_mask_gradient_call<typename OView::non_const_value_type>(
      exec, function, true, tensors, tensor_of(dsinks), erased_options<Exec, OView>(function, masks(), options));
}

/// Gradient of attention by its sinks on the default instance of dsinks' execution space.
template <Concepts::View OView, Concepts::View DoutView, Concepts::View LseView, Concepts::View DsinksView>
void attention_sinks_backward(const OView& o, const DoutView& dout, const LseView& lse, const DsinksView& dsinks,
                              const AttentionOptions& options = {}) {
  attention_sinks_backward(typename DsinksView::execution_space{}, o, dout, lse, dsinks, options);
}

}  // namespace KokkosNN

#endif  // KOKKOSNN_ATTENTION_MASK_GRADIENTS_HPP
