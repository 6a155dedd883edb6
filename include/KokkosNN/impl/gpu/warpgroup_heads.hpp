// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_WARPGROUP_HEADS_HPP
#define KOKKOSNN_IMPL_GPU_WARPGROUP_HEADS_HPP

#include <KokkosNN/impl/gpu/attention_block.hpp>
#include <KokkosNN/impl/gpu/device/matrix_instructions.hpp>
#include <KokkosNN/impl/gpu/device/warpgroup.hpp>
#include <KokkosNN/impl/inputs/attention_tensors.hpp>
#include <KokkosNN/impl/tensor_map.hpp>
#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

// Parts that kernels of attention and of its gradients on Hopper's warpgroups share: tensors as their loading warps
// have them copied, the blocks of rows or keys that their teams take, and how they take them.

namespace KokkosNN::Impl {

/// A tensor (batch, head, sequence, dim), or (token, head, dim) of packed sequences. A tile has blocks of 64 elements
/// of its rows, one after the other.
template <class I>
struct BoxedHeads {
  typename I::Map map;
  bool has_batches;  ///< or all have the same elements
  bool has_heads;
  bool is_packed;

  /// Copies the tile that begins with element `number` of a sequence, which `start` begins: a batch entry, or a token.
  template <int blocks>
  KOKKOS_FORCEINLINE_FUNCTION void fetch(typename I::Address to, int block_bytes, std::int64_t start, std::int64_t head,
                                         std::int64_t number, typename I::Address barrier) const {
    int at[TensorMap::rank] = {0, static_cast<int>(is_packed ? start + number : number),
                               has_heads ? static_cast<int>(head) : 0,
                               has_batches && !is_packed ? static_cast<int>(start) : 0, 0};
    KOKKOSNN_IMPL_UNROLL
    for (int b = 0; b < blocks; ++b) {
      at[0] = b * warpgroup_tile_inner;
      I::fetch(to + b * block_bytes, map, at, barrier);
    }
  }
};

/// Makes the rows of a tile 0 but for those from `begin` to `end`, by the lanes of a warp.
template <class I, int rows, int blocks>
KOKKOS_FORCEINLINE_FUNCTION void clear_other_rows(typename I::Address tile, int begin, int end, int lane) {
  constexpr int row_chunks = warpgroup_row_bytes / int(sizeof(MatrixChunk));
  KOKKOSNN_IMPL_NO_UNROLL
  for (int chunk = lane; chunk < blocks * rows * row_chunks; chunk += 32) {
    const int row = chunk / row_chunks % rows;
    if (row < begin || row >= end) I::store(tile + chunk * int(sizeof(MatrixChunk)), MatrixChunk{});
  }
}

/// A stage of a ring, and the parity of how often its barriers' phases have ended.
template <int stages>
struct RingPlace {
  int stage  = 0;
  int parity = 0;

  KOKKOS_FORCEINLINE_FUNCTION RingPlace next() const {
    return stage + 1 == stages ? RingPlace{0, parity ^ 1} : RingPlace{stage + 1, parity};
  }
};

/// Keys that rows of a block see, and the tiles that have them.
struct SeenTiles {
  std::int64_t start;  ///< batch entry, or token, that key 0 belongs to
  int first;           ///< key that the first tile begins with
  int tiles;
  int begin;  ///< keys that some rows see
  int end;
  int all_begin;  ///< keys that all rows see
  int all_end;

  KOKKOS_FORCEINLINE_FUNCTION void set(const SeenKeys& seen, std::int64_t start_of_keys, int keys_of_tile) {
    start     = start_of_keys;
    first     = static_cast<int>(seen.begin / keys_of_tile * keys_of_tile);
    tiles     = static_cast<int>((seen.end - first + keys_of_tile - 1) / keys_of_tile);
    begin     = static_cast<int>(seen.begin);
    end       = static_cast<int>(seen.end);
    all_begin = static_cast<int>(seen.all_begin);
    all_end   = static_cast<int>(seen.all_end);
    if (begin >= end) tiles = 0;
  }
};

/// Blocks that a team takes of those that each of `heads` heads has, the longest ones first where a mask is causal.
/// `bundle` heads come side by side, whose keys and values a cache holds: their longest blocks, then the next ones.
/// Teams take these forth and back, and those that have one block less begin the next bundle, so that all have about
/// the same to do. (Numbers by a counter would do as well, but it would have to be 0 between kernels, of graphs, too.)
class BlockTurns {
 public:
  KOKKOS_FORCEINLINE_FUNCTION BlockTurns(std::int64_t heads, std::int64_t blocks, std::int64_t bundle,
                                         std::int64_t rank, std::int64_t teams)
      : m_heads(heads), m_blocks(blocks), m_bundle(bundle), m_rank(rank), m_teams(teams) {
    find();
  }

  KOKKOS_FORCEINLINE_FUNCTION bool exists() const { return m_before < m_heads; }
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t head() const { return m_before + m_position % heads_of_bundle(); }
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t number() const { return m_position / heads_of_bundle(); }
  KOKKOS_FORCEINLINE_FUNCTION void go_on() {
    ++m_round;
    find();
  }

 private:
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t heads_of_bundle() const { return Kokkos::min(m_bundle, m_heads - m_before); }
  KOKKOS_FORCEINLINE_FUNCTION void find() {
    while (exists()) {
      const std::int64_t count = heads_of_bundle() * m_blocks;
      m_position               = m_round * m_teams + (m_round % 2 == 0 ? m_rank : m_teams - 1 - m_rank);
      if (m_position < count) return;
      m_before += heads_of_bundle();
      m_rank  = (m_rank + m_teams - count % m_teams) % m_teams;
      m_round = 0;
    }
  }

  std::int64_t m_heads;
  std::int64_t m_blocks;
  std::int64_t m_bundle;
  std::int64_t m_rank;  ///< in the bundle
  std::int64_t m_teams;
  std::int64_t m_before   = 0;  ///< heads of bundles before
  std::int64_t m_round    = 0;
  std::int64_t m_position = 0;
};

/// Heads whose blocks of scores' rows teams take.
KOKKOS_FORCEINLINE_FUNCTION std::int64_t heads_of_rows(const AttentionShape& shape) {
  return shape.is_packed ? shape.heads : shape.batch * shape.heads;
}

/// Block `number` of those of `rows` rows that a head of heads_of_rows has; `left` is 0 of an empty one. The last
/// queries come first: under a causal mask they see the most keys.
template <int rows, class X>
KOKKOS_FORCEINLINE_FUNCTION RowBlock head_block(const AttentionData<X>& data, std::int64_t head, std::int64_t number) {
  const AttentionShape& shape = data.shape;
  std::int64_t batch          = head / shape.heads;
  head %= shape.heads;
  if (shape.is_packed) {
    batch = data.query_offsets.sequence_of_block(number, shape.batch, 1, rows);
    if (batch < 0) return {};
    number -= data.query_offsets.first_block(batch, 1, rows);
  }
  const Sequence sequence  = data.sequence(batch);
  const std::int64_t count = (sequence.queries + rows - 1) / rows;
  if (number >= count) return {};
  const std::int64_t first = (count - 1 - number) * rows;
  return {batch, sequence.first_query, head / shape.group(),     head,
          first, sequence.queries,     sequence.queries - first, 0};
}

/// A warp as a team of kernels that compute a row.
template <class I>
struct WarpTeam {
  int lane;

  KOKKOS_FUNCTION int team_rank() const { return lane; }
  KOKKOS_FUNCTION int team_size() const { return 32; }
  KOKKOS_FUNCTION void team_barrier() const { I::meet_in_warp(); }
};

/// Calls f(row) for those of a warp's 16 rows that a thread of it marks: row lane / 4 by marks[0], 8 further by
/// marks[1].
template <class I, class F>
KOKKOS_FORCEINLINE_FUNCTION void for_marked_rows(const bool (&marks)[2], const F& f) {
  if (!I::any(marks[0] || marks[1])) return;
  KOKKOSNN_IMPL_NO_UNROLL
  for (int r = 0; r < 16; ++r) {
    if (I::value_of(int(r < 8 ? marks[0] : marks[1]), r % 8 * 4) == 0) continue;
    f(r);
    I::meet_in_warp();
  }
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_WARPGROUP_HEADS_HPP
