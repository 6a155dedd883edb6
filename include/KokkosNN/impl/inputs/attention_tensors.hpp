// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_INPUTS_ATTENTION_TENSORS_HPP
#define KOKKOSNN_IMPL_INPUTS_ATTENTION_TENSORS_HPP

#include <KokkosNN/impl/attention_shapes.hpp>
#include <KokkosNN/impl/inputs/masked.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

// The tensors of an attention call, and a mask on its scores, as kernels see them. A row of scores is a query of a
// head. Neighbouring heads share a head of k and v where q has more of them.

namespace KokkosNN::Impl {

/// A row of scores.
struct ScoreRow {
  std::int64_t batch;
  std::int64_t head;
  std::int64_t query;

  KOKKOS_INLINE_FUNCTION std::int64_t in(const AttentionStrides& s) const {
    return batch * s.batch + head * s.head + query * s.sequence;
  }
};

/// Half of a mask that rules out keys by their numbers.
struct ScoreRanges : ColumnLimits {
  AttentionStrides length_strides;
  AttentionStrides offset_strides;

  /// Keys that a row may see.
  KOKKOS_INLINE_FUNCTION ColumnRange operator()(const ScoreRow& row) const {
    Counts counts = no_counts();
    if (lengths.exist()) counts.length = lengths[row.in(length_strides)];
    if (offsets.exist()) counts.offset = offsets[row.in(offset_strides)];
    return allowed([&] { return row.query; }, counts);
  }
  /// The row's query, with its offset.
  KOKKOS_INLINE_FUNCTION std::int64_t diagonal(const ScoreRow& row) const {
    return row.query + (offsets.exist() ? bounded(offsets[row.in(offset_strides)]) : 0);
  }
};

/// Half of a mask that changes single scores. The logit is softcap(scale x) + bias - slope |distance|.
template <class X, class A>
struct ScoreElements {
  A softcap         = 0;  ///< 0: none
  A inverse_softcap = 0;
  TypedPointer<X> bias;
  AttentionStrides bias_strides;
  const std::uint8_t* keep = nullptr;
  AttentionStrides keep_strides;
  TypedPointer<X> slopes;
  AttentionStrides slope_strides;
  std::int64_t alibi_offset = 0;

  KOKKOS_INLINE_FUNCTION bool exist() const {
    return softcap != A(0) || bias.exists() || keep != nullptr || slopes.exists();
  }

  /// A row's part of the mask.
  struct Row {
    std::int64_t bias;
    std::int64_t keep;
    std::int64_t diagonal;
    A slope;
  };
  KOKKOS_INLINE_FUNCTION Row row(const ScoreRow& r, const ScoreRanges& ranges) const {
    return {r.in(bias_strides), r.in(keep_strides), ranges.diagonal(r) + alibi_offset,
            slopes.exists() ? slopes.template load<A>(r.in(slope_strides)) : A(0)};
  }

  /// True if the boolean mask keeps a key.
  KOKKOS_INLINE_FUNCTION bool keeps(const Row& row, std::int64_t key) const {
    return keep == nullptr || keep[row.keep + key * keep_strides.dim] != 0;
  }

  /// Derivative of the softcap by the scaled score.
  KOKKOS_INLINE_FUNCTION A slope_of_softcap(A scaled) const {
    if (softcap == A(0)) return A(1);
    const A t = bounded_tanh(scaled * inverse_softcap);
    return (A(1) - t) * (A(1) + t);
  }

  /// Logit of a key that is kept, from its scaled score.
  KOKKOS_INLINE_FUNCTION A logit(A scaled, const Row& row, std::int64_t key) const {
    if (softcap != A(0)) scaled = softcap * bounded_tanh(scaled * inverse_softcap);
    if (bias.exists()) scaled += bias.template load<A>(row.bias + key * bias_strides.dim);
    if (slopes.exists())
      scaled -= row.slope * static_cast<A>(key < row.diagonal ? row.diagonal - key : key - row.diagonal);
    return scaled;
  }
};

/// All that an attention kernel reads and writes.
template <class X>
struct AttentionData {
  using A = accumulator_t<X>;

  AttentionShape shape;
  const X* q;
  const X* k;
  const X* v;
  X* o;
  A* lse;  ///< null where it is not wanted
  AttentionStrides q_strides;
  AttentionStrides k_strides;
  AttentionStrides v_strides;
  AttentionStrides o_strides;
  AttentionStrides lse_strides;
  A scale;
  A of_masked_rows;  ///< the result of a row without a key
  ScoreRanges ranges;
  TypedPointer<X> sinks;
  AttentionStrides sink_strides;
  ScoreElements<X, A> elements;

  KOKKOS_INLINE_FUNCTION std::int64_t rows() const { return shape.batch * shape.heads * shape.queries; }

  KOKKOS_INLINE_FUNCTION ScoreRow row(std::int64_t number) const {
    const std::int64_t head = number / shape.queries;
    return {head / shape.heads, head % shape.heads, number % shape.queries};
  }
  KOKKOS_INLINE_FUNCTION std::int64_t number(const ScoreRow& row) const {
    return (row.batch * shape.heads + row.head) * shape.queries + row.query;
  }
  /// First key, and value, that a row reads; keys are rows of their tensors.
  KOKKOS_INLINE_FUNCTION ScoreRow first_key(const ScoreRow& row) const {
    return {row.batch, row.head / shape.group(), 0};
  }
  /// Row `number` of those that read a head of k.
  KOKKOS_INLINE_FUNCTION ScoreRow row_of_head(std::int64_t batch, std::int64_t kv_head, std::int64_t number) const {
    return {batch, kv_head * shape.group() + number / shape.queries, number % shape.queries};
  }
  KOKKOS_INLINE_FUNCTION auto mask_of(const ScoreRow& row) const { return elements.row(row, ranges); }
  KOKKOS_INLINE_FUNCTION A sink(const ScoreRow& row) const {
    return sinks.exists() ? sinks.template load<A>(row.in(sink_strides)) : -Kokkos::Experimental::infinity_v<A>;
  }
};

/// All that the kernels of the gradients read and write; o and lse are read here.
template <class X>
struct AttentionGradientData : AttentionData<X> {
  using A = accumulator_t<X>;

  const X* dout;
  A* delta;  ///< of each row, the sum of o do; memory of the call
  X* dq;
  X* dk;
  X* dv;
  AttentionStrides dout_strides;
  AttentionStrides dq_strides;
  AttentionStrides dk_strides;
  AttentionStrides dv_strides;
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_INPUTS_ATTENTION_TENSORS_HPP
