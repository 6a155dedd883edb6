// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_INPUTS_ATTENTION_TENSORS_HPP
#define KOKKOSNN_IMPL_INPUTS_ATTENTION_TENSORS_HPP

#include <KokkosNN/impl/attention_shapes.hpp>
#include <KokkosNN/impl/inputs/attention_dropout.hpp>
#include <KokkosNN/impl/inputs/elementwise.hpp>
#include <KokkosNN/impl/inputs/masked.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>

// The tensors of an attention call, and a mask on its scores, as kernels see them. A row of scores is a query of a
// head. Neighbouring heads share a head of k and v where q has more of them.

namespace KokkosNN::Impl {

/// A row of scores, or a key of a head of k.
struct ScoreRow {
  std::int64_t batch;
  std::int64_t head;
  std::int64_t query;
  std::int64_t start;  ///< batch, or the first token of a packed sequence: tensors have the strides for it

  KOKKOS_INLINE_FUNCTION std::int64_t in(const AttentionStrides& s) const {
    return start * s.batch + head * s.head + query * s.sequence;
  }
  KOKKOS_INLINE_FUNCTION std::int64_t in_mask(const AttentionStrides& s) const {
    return batch * s.batch + head * s.head + query * s.sequence;
  }
};

/// A batch entry: how many queries and keys it has, and the starts of their rows.
struct Sequence {
  std::int64_t batch;
  std::int64_t first_query;
  std::int64_t queries;
  std::int64_t first_key;
  std::int64_t keys;
};

/// First tokens of packed sequences, and behind them the end of the last one.
struct SequenceOffsets {
  CountsOfRows numbers;
  std::int64_t stride = 0;
  std::int64_t tokens = 0;

  /// Offset number b, which numbers that lie outside the tensors cannot lead out of them.
  KOKKOS_INLINE_FUNCTION std::int64_t operator[](std::int64_t b) const {
    const std::int64_t offset = numbers[b * stride];
    return offset < 0 ? 0 : offset < tokens ? offset : tokens;
  }
  KOKKOS_INLINE_FUNCTION std::int64_t length(std::int64_t b) const {
    const std::int64_t begin = (*this)[b], end = (*this)[b + 1];
    return begin < end ? end - begin : 0;
  }
  /// First block of sequence b among blocks of `rows` rows, of which a token has `rows_of_token`.
  KOKKOS_INLINE_FUNCTION std::int64_t first_block(std::int64_t b, std::int64_t rows_of_token, std::int64_t rows) const {
    return (*this)[b] * rows_of_token / rows + b;
  }
  /// The sequence, of `batch`, that has a block; -1: none.
  KOKKOS_INLINE_FUNCTION std::int64_t sequence_of_block(std::int64_t block, std::int64_t batch,
                                                        std::int64_t rows_of_token, std::int64_t rows) const {
    std::int64_t below = -1, above = batch;
    while (above - below > 1) {
      const std::int64_t middle                                           = below + (above - below) / 2;
      (first_block(middle, rows_of_token, rows) <= block ? below : above) = middle;
    }
    return below;
  }
};

/// Half of a mask that rules out keys by their numbers.
struct ScoreRanges : ColumnLimits {
  AttentionStrides length_strides;
  AttentionStrides offset_strides;

  bool ends_align             = false;  ///< the last query is at the last key, else the first at the first
  std::int64_t first_key      = 0;      ///< number of key 0 in what lengths count
  std::int64_t diagonal_shift = 0;      ///< is added to the offset of every diagonal

  /// Keys that a row may see, of those of its sequence.
  KOKKOS_INLINE_FUNCTION ColumnRange operator()(const ScoreRow& row, const Sequence& sequence) const {
    Counts counts{sequence.keys, 0};
    if (lengths.exist()) {
      counts.length = Kokkos::min(counts.length, bounded(lengths[row.in_mask(length_strides)]) - first_key);
    }
    if (offsets.exist()) counts.offset = bounded(offsets[row.in_mask(offset_strides)]);
    counts.offset += shift(sequence);
    return allowed([&] { return row.query; }, counts);
  }
  /// The row's query, with its offset.
  KOKKOS_INLINE_FUNCTION std::int64_t diagonal(const ScoreRow& row, const Sequence& sequence) const {
    return row.query + shift(sequence) + (offsets.exist() ? bounded(offsets[row.in_mask(offset_strides)]) : 0);
  }
  /// Offset of all of a sequence's queries.
  KOKKOS_INLINE_FUNCTION std::int64_t shift(const Sequence& sequence) const {
    return diagonal_shift + (ends_align ? sequence.keys - sequence.queries : 0);
  }
};

/// Half of a mask that changes single scores, and dropout. The logit is softcap(scale x) + bias - slope |distance|.
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
  AttentionWeightDropout<A> dropout;

  KOKKOS_INLINE_FUNCTION bool exist() const {
    return softcap != A(0) || bias.exists() || keep != nullptr || slopes.exists() || dropout.exists();
  }

  /// A row's part of the mask.
  struct Row {
    std::int64_t bias;
    std::int64_t keep;
    std::int64_t diagonal;
    A slope;
    DropoutRow dropout;
  };
  KOKKOS_INLINE_FUNCTION Row row(const ScoreRow& r, const Sequence& sequence, const ScoreRanges& ranges) const {
    return {r.in_mask(bias_strides), r.in_mask(keep_strides), ranges.diagonal(r, sequence) + alibi_offset,
            slopes.exists() ? slopes.template load<A>(r.in_mask(slope_strides)) : A(0),
            dropout.row(r.batch, r.head, r.query)};
  }

  /// True if the boolean mask keeps a key.
  KOKKOS_INLINE_FUNCTION bool keeps(const Row& row, std::int64_t key) const {
    return keep == nullptr || keep[row.keep + key * keep_strides.dim] != 0;
  }

  /// Factor of a key's weight in the sum of values.
  KOKKOS_INLINE_FUNCTION A weight_factor(const Row& row, std::int64_t key) const {
    return dropout.factor(row.dropout, key);
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
  using A                            = accumulator_t<X>;
  static constexpr bool has_epilogue = false;

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
  SequenceOffsets query_offsets;  ///< of packed sequences, as are key_offsets
  SequenceOffsets key_offsets;
  A* part_results        = nullptr;  ///< o of parts of the keys, of the strides of lse; null where o itself is written
  std::int64_t part_rows = 0;        ///< distance of two parts' rows

  KOKKOS_INLINE_FUNCTION Sequence sequence(std::int64_t batch) const {
    if (!shape.is_packed) return {batch, batch, shape.queries, batch, shape.keys};
    return {batch, query_offsets[batch], query_offsets.length(batch), key_offsets[batch], key_offsets.length(batch)};
  }

  /// Some of the rows, or keys, of a head of k: from row `first` on; `left` is 0 of an empty block.
  struct Block {
    Sequence sequence;
    std::int64_t kv_head;
    std::int64_t first;
    std::int64_t left;
    std::int64_t part;
  };
  /// Block number n of those of `rows` rows, which the heads have one after the other; from a sequence's last block to
  /// its first where `last_first`.
  KOKKOS_INLINE_FUNCTION Block block(std::int64_t n, bool of_keys, std::int64_t rows, bool last_first = false) const {
    const std::int64_t blocks = shape.blocks(of_keys, rows), rows_of_token = of_keys ? 1 : shape.group();
    const std::int64_t part = n % shape.parts;
    n /= shape.parts;
    std::int64_t head = n / blocks, number = n % blocks, batch = head / shape.kv_heads;
    if (shape.is_packed) {
      const SequenceOffsets& offsets = of_keys ? key_offsets : query_offsets;
      batch                          = offsets.sequence_of_block(number, shape.batch, rows_of_token, rows);
      if (batch < 0) return {};
      number -= offsets.first_block(batch, rows_of_token, rows);
    }
    Block result{sequence(batch), head % shape.kv_heads, 0, 0, part};
    const std::int64_t all   = rows_of_token * (of_keys ? result.sequence.keys : result.sequence.queries);
    const std::int64_t count = (all + rows - 1) / rows;
    if (number >= count) return result;
    result.first = (last_first ? count - 1 - number : number) * rows;
    result.left  = all - result.first;
    return result;
  }
  KOKKOS_INLINE_FUNCTION std::int64_t blocks(bool of_keys, std::int64_t rows) const {
    return shape.block_heads() * shape.blocks(of_keys, rows) * shape.parts;
  }

  /// Row `number` of those that read a head of k.
  KOKKOS_INLINE_FUNCTION ScoreRow row_of_head(const Sequence& sequence, std::int64_t kv_head,
                                              std::int64_t number) const {
    return {sequence.batch, kv_head * shape.group() + number / sequence.queries, number % sequence.queries,
            sequence.first_query};
  }
  /// A key, and value: they are rows of their tensors.
  KOKKOS_INLINE_FUNCTION ScoreRow key_of_head(const Sequence& sequence, std::int64_t kv_head, std::int64_t key) const {
    return {sequence.batch, kv_head, key, sequence.first_key};
  }
  /// First key that a row reads.
  KOKKOS_INLINE_FUNCTION ScoreRow first_key(const Sequence& sequence, const ScoreRow& row) const {
    return key_of_head(sequence, row.head / shape.group(), 0);
  }
  /// Keys of a part that a row may see.
  KOKKOS_INLINE_FUNCTION ColumnRange keys_of(const ScoreRow& row, const Sequence& sequence, std::int64_t part) const {
    ColumnRange keys         = ranges(row, sequence);
    const std::int64_t first = part * shape.part_keys;
    keys.begin               = Kokkos::max(keys.begin, first);
    if (keys.end - first > shape.part_keys) keys.end = first + shape.part_keys;
    return keys.begin < keys.end ? keys : ColumnRange{0, 0};
  }

  /// Element d of the results of a row.
  KOKKOS_INLINE_FUNCTION void store(const ScoreRow& row, std::int64_t part, std::int64_t d, A result) const {
    if (part_results != nullptr) {
      part_results[(part * part_rows + row.in(lse_strides)) * shape.value_dim + d] = result;
    } else {
      o[row.in(o_strides) + d * o_strides.dim] = static_cast<X>(result);
    }
  }
  KOKKOS_INLINE_FUNCTION void store_lse(const ScoreRow& row, std::int64_t part, A value) const {
    if (lse != nullptr) lse[part * part_rows + row.in(lse_strides)] = value;
  }

  /// True if scores become logits by more than a positive factor.
  bool changes_scores() const { return elements.exist() || !(scale > A(0)); }

  KOKKOS_INLINE_FUNCTION auto mask_of(const ScoreRow& row, const Sequence& sequence) const {
    return elements.row(row, sequence, ranges);
  }
  /// A sink, which all rows of a head have.
  KOKKOS_INLINE_FUNCTION A sink(const ScoreRow& row) const {
    return sinks.exists() ? sinks.template load<A>(row.head * sink_strides.head) : -Kokkos::Experimental::infinity_v<A>;
  }
};

/// Results through a functor: o = f(result, inputs...), numbers of N. Inputs may repeat their elements along any axis.
template <class F, class N, class O, class Inputs>
struct AttentionEpilogue {
  static constexpr int count = Inputs::count;

  F f;
  O* o;
  AttentionStrides o_strides;
  const void* inputs[count + 1];  ///< one more, so that none is an array, too
  AttentionStrides input_strides[count + 1];

  template <class A>
  KOKKOS_FORCEINLINE_FUNCTION void store(const ScoreRow& row, std::int64_t d, A result) const {
    store(row, d, result, std::make_index_sequence<count>{});
  }

 private:
  template <class A, std::size_t... i>
  KOKKOS_FORCEINLINE_FUNCTION void store(const ScoreRow& row, std::int64_t d, A result,
                                         std::index_sequence<i...>) const {
    o[row.in(o_strides) + d * o_strides.dim] =
        static_cast<O>(f(static_cast<N>(result), static_cast<N>(input<i>()[place<i>(row, d)])...));
  }
  template <std::size_t i>
  KOKKOS_FORCEINLINE_FUNCTION const auto* input() const {
    return static_cast<const typename ElementTypeAt<i, Inputs>::type*>(inputs[i]);
  }
  template <std::size_t i>
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t place(const ScoreRow& row, std::int64_t d) const {
    return row.in(input_strides[i]) + d * input_strides[i].dim;
  }
};

/// Data of a call with an epilogue, which finds o, of any type, by itself.
template <class X, class Epilogue>
struct AttentionDataWith : AttentionData<X> {
  using A                            = accumulator_t<X>;
  static constexpr bool has_epilogue = true;

  Epilogue epilogue;

  KOKKOS_INLINE_FUNCTION void store(const ScoreRow& row, std::int64_t part, std::int64_t d, A result) const {
    if (this->part_results != nullptr) return AttentionData<X>::store(row, part, d, result);
    epilogue.store(row, d, result);
  }
};

/// All that the kernels of the gradients read and write; o and lse are read here.
template <class X>
struct AttentionGradientData : AttentionData<X> {
  using A = accumulator_t<X>;

  const X* dout;
  A* delta;  ///< of each row, the sum of o do; memory of the call
  AttentionStrides delta_strides;
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
