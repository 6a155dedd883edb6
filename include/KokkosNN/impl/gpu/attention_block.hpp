// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_ATTENTION_BLOCK_HPP
#define KOKKOSNN_IMPL_GPU_ATTENTION_BLOCK_HPP

#include <KokkosNN/impl/gpu/device/warp.hpp>
#include <KokkosNN/impl/inputs/attention_tensors.hpp>
#include <KokkosNN/impl/math/exp.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

// Blocks of rows of scores that read one head of k and v: what a team's tiles of attention and of its gradients find
// their rows and keys by.

namespace KokkosNN::Impl {

/// Keys that some of a block's rows see, and those that all of them see.
struct SeenKeys {
  std::int64_t begin     = 0;
  std::int64_t end       = 0;
  std::int64_t all_begin = 0;
  std::int64_t all_end   = 0;

  /// True if one of `count` keys from `first` on is seen by some rows, or all of them by all rows.
  KOKKOS_FORCEINLINE_FUNCTION bool meets(std::int64_t first, int count) const {
    return first < end && first + count > begin;
  }
  KOKKOS_FORCEINLINE_FUNCTION bool has_all(std::int64_t first, int count) const {
    return all_begin <= first && first + count <= all_end;
  }

  /// Keys of no row, to which rows are added.
  KOKKOS_FORCEINLINE_FUNCTION static SeenKeys none() { return {INT64_MAX, 0, 0, INT64_MAX}; }
  KOKKOS_FORCEINLINE_FUNCTION void add(std::int64_t row_begin, std::int64_t row_end) {
    if (row_begin < row_end) {
      begin = Kokkos::min(begin, row_begin);
      end   = Kokkos::max(end, row_end);
    }
    all_begin = Kokkos::max(all_begin, row_begin);
    all_end   = Kokkos::min(all_end, row_end);
  }
  /// Joins the keys of all lanes' rows; that all rows see: none, where there is no row.
  template <class Instructions, int lanes>
  KOKKOS_FORCEINLINE_FUNCTION void join_lanes() {
    KOKKOSNN_IMPL_UNROLL
    for (int mask = 1; mask < lanes; mask *= 2) {
      begin     = Kokkos::min(begin, Instructions::exchange(begin, mask));
      end       = Kokkos::max(end, Instructions::exchange(end, mask));
      all_begin = Kokkos::max(all_begin, Instructions::exchange(all_begin, mask));
      all_end   = Kokkos::min(all_end, Instructions::exchange(all_end, mask));
    }
    if (begin > end) begin = end;
  }
};

/// Rows from `query` of `head` on, in the order of the queries and then the heads that share a head of k.
struct RowBlock {
  std::int64_t batch;
  std::int64_t start;
  std::int64_t kv_head;
  std::int64_t head;
  std::int64_t query;
  std::int64_t queries;  ///< of a head
  std::int64_t left;     ///< rows of the head of k, from the block's first on; 0: none
  std::int64_t part;     ///< of the keys

  /// True if the first `count` rows are neighbouring queries of one head.
  KOKKOS_FORCEINLINE_FUNCTION bool is_of_one_head(std::int64_t count) const { return query + count <= queries; }

  /// Row r of the block, r below `most`.
  template <int most>
  KOKKOS_FORCEINLINE_FUNCTION ScoreRow row(int r) const {
    std::int64_t q = query + r, h = head;
    if (q >= queries) {
      const std::int64_t heads = queries >= most ? 1 : static_cast<int>(q) / static_cast<int>(queries);
      q -= heads * queries;
      h += heads;
    }
    return {batch, h, q, start};
  }
};

/// Block number n of a call's blocks of `rows` rows. Under a causal mask the last rows of a head see the most keys:
/// they come first.
template <int rows, class X>
KOKKOS_FORCEINLINE_FUNCTION RowBlock row_block(const AttentionData<X>& data, std::int64_t n) {
  const auto block = data.block(n, false, rows, true);
  if (block.left == 0) return {};
  const ScoreRow row = data.row_of_head(block.sequence, block.kv_head, block.first);
  return {row.batch, row.start, block.kv_head, row.head, row.query, block.sequence.queries, block.left, block.part};
}

/// Calls f(block) for each of a team's blocks, `number` of the call, with a barrier behind each: block_of(n) makes
/// block number n, whose `left` is 0 of an empty one. The block stays in scratch: registers are for a tile's sums.
template <class Member, class Block, class BlockOf, class F>
KOKKOS_FORCEINLINE_FUNCTION void for_team_blocks(const Member& team, std::int64_t number, Block* in_scratch,
                                                 const BlockOf& block_of, const F& f) {
  KOKKOSNN_IMPL_NO_UNROLL
  for (std::int64_t n = team.league_rank(); n < number; n += team.league_size()) {
    if (team.team_rank() == 0) *in_scratch = block_of(n);
    team.team_barrier();
    const Block& block = *in_scratch;
    if (block.left > 0) f(block);
    team.team_barrier();  // nobody reads scratch any more
  }
}

/// A row's keys, and its part of a mask's elements, in scratch.
template <class X, bool has_elements, class Key = std::int64_t>
struct TeamRow {
  Key begin;
  Key end;
  typename ScoreElements<X, accumulator_t<X>>::Row elements;
};
template <class X, class Key>
struct TeamRow<X, false, Key> {
  Key begin;
  Key end;
};

/// Entry of a row of scores.
template <bool has_elements, class Key = std::int64_t, class X>
KOKKOS_FORCEINLINE_FUNCTION TeamRow<X, has_elements, Key> team_row(const AttentionData<X>& data, const ScoreRow& row,
                                                                   const Sequence& sequence, std::int64_t part = 0) {
  const ColumnRange allowed = data.keys_of(row, sequence, part);
  TeamRow<X, has_elements, Key> entry{};
  entry.begin = static_cast<Key>(allowed.begin);
  entry.end   = static_cast<Key>(allowed.end);
  if constexpr (has_elements) entry.elements = data.mask_of(row, sequence);
  return entry;
}

/// Fills a team's table of rows; those that are not there see no key.
template <int rows, bool has_elements, class X>
KOKKOS_FORCEINLINE_FUNCTION void fill_rows(TeamRow<X, has_elements>* table, const AttentionData<X>& data,
                                           const RowBlock& block, int rank, int team_size) {
  const Sequence sequence = data.sequence(block.batch);
  for (int r = rank; r < rows; r += team_size) {
    table[r] = r < block.left ? team_row<has_elements>(data, block.template row<rows>(r), sequence, block.part)
                              : TeamRow<X, has_elements>{};
  }
}

/// Keys that rows `first` to `last` of the table see, by the lanes of a warp together.
template <class Unit, class Row>
KOKKOS_FORCEINLINE_FUNCTION SeenKeys keys_of_rows(const Row* table, int first, std::int64_t last, int lane) {
  SeenKeys seen = SeenKeys::none();
  for (int r = first + lane; r < last; r += Unit::lanes) seen.add(table[r].begin, table[r].end);
  seen.template join_lanes<typename Unit::Instructions, Unit::lanes>();
  return seen;
}

/// Tiles of keys from one that `first` begins to `end`.
template <int keys>
struct KeyTiles {
  std::int64_t first;
  std::int64_t end;

  KOKKOS_FORCEINLINE_FUNCTION bool exist() const { return first < end; }
  KOKKOS_FORCEINLINE_FUNCTION void go_on() { first += keys; }
};

/// Queries of a sequence.
struct QueryRange {
  std::int64_t begin;
  std::int64_t end;
};

/// Queries ahead of and behind which none sees one of `count` keys from key `first` on. (Diagonals with an offset a row
/// rule out none.)
template <class X>
KOKKOS_FORCEINLINE_FUNCTION QueryRange queries_that_see(const AttentionData<X>& data, const Sequence& sequence,
                                                        std::int64_t first, std::int64_t count) {
  QueryRange range{0, sequence.queries};
  if (data.ranges.has_diagonals && !data.ranges.offsets.exist()) {  // query q sees keys q + low to q + high
    const std::int64_t shifted = first - data.ranges.shift(sequence);
    range.begin                = Kokkos::max(range.begin, shifted - data.ranges.high);
    range.end                  = Kokkos::min(range.end, shifted + count - data.ranges.low);
  }
  return range;
}

/// Sum of the weights of a row of scores.
template <class A>
struct AttentionTotal {
  A reference;  ///< of the powers of two that weights are
  A sum;
  A factor;  ///< of the results

  KOKKOS_FORCEINLINE_FUNCTION A lse() const {
    return sum == A(0) ? -Kokkos::Experimental::infinity_v<A> : reference * log_of_2<A> + Kokkos::log(sum);
  }
};

/// The sum with a sink, a logit in powers of two, or -inf.
template <class A>
KOKKOS_FORCEINLINE_FUNCTION AttentionTotal<A> total_with_sink(A reference, A sum, A sink) {
  A rescaling = 1;
  if (sink != -Kokkos::Experimental::infinity_v<A>) {
    const A before = reference;
    reference      = max_ignoring_nan(before, sink);
    rescaling      = before == -Kokkos::Experimental::infinity_v<A> ? A(0) : power_of_two(before - reference);
    sum            = sum * rescaling + power_of_two(sink - finite_reference(reference));
  }
  return {reference, sum, sum == A(0) ? A(0) : rescaling / sum};
}

/// Words in scratch that say which of a team's rows have to be computed again, and ahead of them one that says if any
/// has.
template <int rows>
struct RowsAgain {
  static constexpr int bytes = (rows + 1) * int(sizeof(std::uint32_t));

  std::uint32_t* words;

  KOKKOS_FORCEINLINE_FUNCTION explicit RowsAgain(char* memory) : words(reinterpret_cast<std::uint32_t*>(memory)) {}

  KOKKOS_FORCEINLINE_FUNCTION void clear(int rank, int team_size) const {
    for (int r = rank; r <= rows; r += team_size) words[r] = 0;
  }
  KOKKOS_FORCEINLINE_FUNCTION void mark(int row) const {
    words[1 + row] = 1;
    set_shared_bits(words[0], 1);
  }
  /// Calls f(row) for the marked rows, with a barrier behind each; all threads must call.
  template <class Member, class F>
  KOKKOS_FORCEINLINE_FUNCTION void for_each(const Member& team, const F& f) const {
    if (words[0] == 0) return;
    for (int r = 0; r < rows; ++r) {
      if (words[1 + r] == 0) continue;
      f(r);
      team.team_barrier();
    }
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_ATTENTION_BLOCK_HPP
