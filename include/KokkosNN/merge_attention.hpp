// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_MERGE_ATTENTION_HPP
#define KOKKOSNN_MERGE_ATTENTION_HPP

#include <KokkosNN/attention.hpp>
#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/attention_call.hpp>
#include <KokkosNN/impl/call/optional_view.hpp>

#include <Kokkos_Core.hpp>

// Attention over keys that are in several places: results over parts of the keys, joined.

namespace KokkosNN {

/// Joins results of attention of the same queries over disjoint keys to that over all of them:
/// lse = log(sum of exp(lse_p)), o = sum of exp(lse_p - lse) o_p over the parts p.
///
/// \param exec       execution-space instance; the call is asynchronous on it
/// \param o_parts    o of each part, (part, batch, head, query, value dim) or, of packed sequences, (part, token, head,
///                   value dim), of o's type or of its accumulator's: double for double, else float
/// \param lse_parts  lse of each part, (part, batch, head, query) or (part, token, head), of the accumulator's type
/// \param o          output (batch, head, query, value dim) or (token, head, value dim) of double, float, half_t or
///                   bhalf_t
/// \param options    options of `attention`: axes, the order of those of o; sinks, which join the sum here, so parts
///                   must be without; masked_row, o of a query without a key in any part. Others do not matter
/// \param lse        output (batch, head, query) or (token, head) of the accumulator's type; or no_view
///
/// Views      in any layout, strides (0 in inputs) and alignment. Any number of parts.
/// In place   o and lse must not overlap each other, nor any input.
/// Ordering   asynchronous on `exec`: one kernel, no fence, no allocation by the library.
/// Arithmetic in double for double, else in float, by MaxSumExp; the parts are added in their order and o is rounded
///            once. The same bits each time, for any number of threads. One part alone stays as it is.
/// Values     a part whose lse is -inf saw no key: its o is not looked at, whatever it holds. Without any other part,
///            o is NaN or 0 by options.masked_row, or 0 with a sink, and lse is -inf, or the sink. An lse of NaN or
///            +inf makes o of its query NaN, and lse as MaxSumExp has it: NaN, or +inf without a NaN.
/// Errors     std::invalid_argument with the offending values, and nothing written: extents that do not fit, numbers of
///            parts that differ, overlap.
/// Cost       reads the parts once, writes o once; two exponentials a part for each 4 elements (on hosts 32).
/// Source     Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018.
template <Concepts::ExecutionSpace Exec, Concepts::View OPartsView, Concepts::View LsePartsView, Concepts::View OView,
          Concepts::OptionalView LseView = NoView>
void merge_attention(const Exec& exec, const OPartsView& o_parts, const LsePartsView& lse_parts, const OView& o,
                     const AttentionOptions& options = {}, const LseView& lse = {}) {
  using namespace Impl;
  check_merge_attention<Exec, OPartsView, LsePartsView, OView, LseView>();
  AttentionCallOptions erased = erased_options<Exec, OView>("merge_attention", masks(), options);
  erased.is_packed            = OView::rank() == 3;
  merge_attention_call<typename OPartsView::non_const_value_type, typename OView::non_const_value_type>(
      exec, {tensor_of(o_parts), tensor_of(lse_parts), tensor_of(o), tensor_of(lse)}, erased);
}

/// Joins results of attention on the default instance of o's execution space.
template <Concepts::View OPartsView, Concepts::View LsePartsView, Concepts::View OView,
          Concepts::OptionalView LseView = NoView>
void merge_attention(const OPartsView& o_parts, const LsePartsView& lse_parts, const OView& o,
                     const AttentionOptions& options = {}, const LseView& lse = {}) {
  merge_attention(typename OView::execution_space{}, o_parts, lse_parts, o, options, lse);
}

}  // namespace KokkosNN

#endif  // KOKKOSNN_MERGE_ATTENTION_HPP
