// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_ATTENTION_BLOCK_HPP
#define KOKKOSNN_IMPL_GPU_ATTENTION_BLOCK_HPP

#include <KokkosNN/impl/gpu/device/warp.hpp>
#include <KokkosNN/impl/inputs/attention_tensors.hpp>

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
template <class X, bool has_elements>
struct TeamRow {
  std::int64_t begin;
  std::int64_t end;
  typename ScoreElements<X, accumulator_t<X>>::Row elements;
};
template <class X>
struct TeamRow<X, false> {
  std::int64_t begin;
  std::int64_t end;
};

/// Entry of a row of scores.
template <bool has_elements, class X>
KOKKOS_FORCEINLINE_FUNCTION TeamRow<X, has_elements> team_row(const AttentionData<X>& data, const ScoreRow& row,
                                                              const Sequence& sequence, std::int64_t part = 0) {
  const ColumnRange allowed = data.keys_of(row, sequence, part);
  TeamRow<X, has_elements> entry{};
  entry.begin = allowed.begin;
  entry.end   = allowed.end;
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
  constexpr std::int64_t most = INT64_MAX;
  SeenKeys seen{most, 0, 0, most};
  for (int r = first + lane; r < last; r += Unit::lanes) {
    const std::int64_t begin = table[r].begin, end = table[r].end;
    if (begin < end) {
      seen.begin = Kokkos::min(seen.begin, begin);
      seen.end   = Kokkos::max(seen.end, end);
    }
    seen.all_begin = Kokkos::max(seen.all_begin, begin);
    seen.all_end   = Kokkos::min(seen.all_end, end);
  }
  KOKKOSNN_IMPL_UNROLL
  for (int mask = 1; mask < Unit::lanes; mask *= 2) {
    seen.begin     = Kokkos::min(seen.begin, Unit::Instructions::exchange(seen.begin, mask));
    seen.end       = Kokkos::max(seen.end, Unit::Instructions::exchange(seen.end, mask));
    seen.all_begin = Kokkos::max(seen.all_begin, Unit::Instructions::exchange(seen.all_begin, mask));
    seen.all_end   = Kokkos::min(seen.all_end, Unit::Instructions::exchange(seen.all_end, mask));
  }
  if (seen.begin > seen.end) seen.begin = seen.end;
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
