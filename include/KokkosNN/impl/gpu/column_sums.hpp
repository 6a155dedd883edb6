// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_COLUMN_SUMS_HPP
#define KOKKOSNN_IMPL_GPU_COLUMN_SUMS_HPP

#include <KokkosNN/impl/gpu/device/exchange.hpp>
#include <KokkosNN/impl/gpu/device/pack_arithmetic.hpp>
#include <KokkosNN/impl/inputs/column_terms.hpp>
#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

// Sums over rows, a column each: gradients of weights and biases.
// Two kernels: the sums of chunks of rows, then the sum of the chunks; one where there is a single chunk. A chunk's row
// r belongs to lane r % 32 of the column, which adds its rows in their order, and one thread adds the lanes in theirs.
// So the order of a sum depends on the number of rows alone: not on that of columns, on addresses, or on teams, and
// nothing is atomic.

namespace KokkosNN::Impl {

/// Shape of the kernel: a team has `row_lanes` threads a column, and this many beside each other with a pack of columns
/// each. Where columns are fewer, their place is other chunks'.
struct ColumnSumShape {
  static constexpr int row_lanes     = 32;
  static constexpr int column_lanes  = 8;
  static constexpr int threads       = row_lanes * column_lanes;
  static constexpr int rows_at_once  = 4;              ///< that a thread loads before it adds them
  static constexpr int lanes_at_once = 4;              ///< likewise, of the lanes of a column
  static constexpr int pitch         = row_lanes + 1;  ///< of a column's lanes in scratch, so that banks differ
};

/// Rows [begin, end) of one of several chunks, which differ by one row at most.
struct RowChunk {
  std::int64_t begin;
  std::int64_t end;

  KOKKOS_INLINE_FUNCTION static RowChunk of(std::int64_t chunk, std::int64_t chunks, std::int64_t rows) {
    const std::int64_t share = rows / chunks, longer = rows % chunks;
    const std::int64_t begin = chunk * share + (chunk < longer ? chunk : longer);
    return {begin, begin + share + (chunk < longer ? 1 : 0)};
  }
};

template <int V, class Source, class Output>
struct SumColumns {
  using W                            = typename Source::W;
  using Shape                        = ColumnSumShape;
  static constexpr int sums          = Source::sums;
  static constexpr int team_columns  = Shape::column_lanes * V;  ///< of all chunks that a team has
  static constexpr int scratch_bytes = team_columns * Shape::pitch * static_cast<int>(sizeof(W));
  using ChunkSums                    = Pack<W, V>[sums];

  Source source;
  Output output;
  std::int64_t rows;
  std::int64_t cols;
  std::int64_t chunks;
  int lanes;          ///< packs of columns that a chunk has side by side, a power of two
  bool rows_fastest;  ///< neighbouring threads have neighbouring rows

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    W* const slots           = static_cast<W*>(team_scratch(team, 0, scratch_bytes));
    const Place at           = place_of(team.team_rank());
    const std::int64_t tile  = std::int64_t(lanes) * V;
    const std::int64_t tiles = (cols + tile - 1) / tile;
    const int groups         = Shape::column_lanes / lanes;
    const std::int64_t units = (chunks + groups - 1) / groups * tiles;
    for (std::int64_t unit = team.league_rank(); unit < units; unit += team.league_size()) {
      const std::int64_t first = unit / tiles * groups;  // chunk
      const std::int64_t start = unit % tiles * tile;    // column
      ChunkSums sum;
      for (int s = 0; s < sums; ++s) sum[s] = filled<W, V>(W{});
      add_rows(sum, first + at.group, start + std::int64_t(at.lane) * V, at.row);
      store(team, slots, at, sum, first, start);
    }
  }

 private:
  /// A thread's lane of rows, its pack of columns, and which of the team's chunks it has.
  struct Place {
    int row;
    int lane;
    int group;
  };

  KOKKOS_INLINE_FUNCTION Place place_of(int rank) const {
    const int place = rank % (Shape::row_lanes * lanes), group = rank / (Shape::row_lanes * lanes);
    if (rows_fastest) return {place % Shape::row_lanes, place / Shape::row_lanes, group};
    return {place / lanes, place % lanes, group};
  }

  KOKKOS_INLINE_FUNCTION void add_rows(ChunkSums& sum, std::int64_t chunk, std::int64_t column, int lane) const {
    if (chunk >= chunks || column >= cols) return;
    const TileBounds window{cols - column < V ? static_cast<int>(cols - column) : V};
    const RowChunk has = RowChunk::of(chunk, chunks, rows);
    KOKKOSNN_IMPL_NO_UNROLL
    for (std::int64_t r = has.begin + lane; r < has.end; r += Shape::rows_at_once * Shape::row_lanes) {
      typename Source::template Held<V> held[Shape::rows_at_once];
      KOKKOSNN_IMPL_UNROLL
      for (int i = 0; i < Shape::rows_at_once; ++i) {
        held[i].clear();
        const std::int64_t row = r + i * Shape::row_lanes;
        if (row < has.end) held[i].load(source, row, column, window);
      }
      KOKKOSNN_IMPL_UNROLL
      for (int i = 0; i < Shape::rows_at_once; ++i) held[i].add_to(sum);
    }
  }

  /// Adds the lanes of each column, one sum after the other by the same scratch, and stores.
  template <class Member>
  KOKKOS_INLINE_FUNCTION void store(const Member& team, W* slots, const Place& at, const ChunkSums& sum,
                                    std::int64_t first_chunk, std::int64_t start) const {
    KOKKOSNN_IMPL_UNROLL
    for (int s = 0; s < sums; ++s) {
      team.team_barrier();  // slots may still be read
      for (int v = 0; v < V; ++v) slots[((at.group * lanes + at.lane) * V + v) * Shape::pitch + at.row] = sum[s][v];
      team.team_barrier();
      const int own = team.team_rank();
      if (own >= team_columns) continue;
      W total{};
      KOKKOSNN_IMPL_NO_UNROLL  // LLVM would load all lanes ahead, and spill
      for (int lane = 0; lane < Shape::row_lanes; lane += Shape::lanes_at_once) {
        KOKKOSNN_IMPL_UNROLL
        for (int i = 0; i < Shape::lanes_at_once; ++i) total = total + slots[own * Shape::pitch + lane + i];
      }
      const std::int64_t chunk  = first_chunk + own / (lanes * V);
      const std::int64_t column = start + own % (lanes * V);
      if (chunk < chunks && column < cols) output.store(chunk, s, column, total);
    }
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_COLUMN_SUMS_HPP
