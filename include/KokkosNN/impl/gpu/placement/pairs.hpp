// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_PLACEMENT_PAIRS_HPP
#define KOKKOSNN_IMPL_GPU_PLACEMENT_PAIRS_HPP

#include <KokkosNN/impl/gpu/device/exchange.hpp>
#include <KokkosNN/impl/gpu/device/pair_tile.hpp>
#include <KokkosNN/impl/gpu/device/running_tiles.hpp>
#include <KokkosNN/impl/gpu/device/tile.hpp>
#include <KokkosNN/impl/gpu/placement/elementwise.hpp>
#include <KokkosNN/impl/operators/softmax_backward.hpp>
#include <KokkosNN/impl/protocol.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

// Placements of the gradients in RowInTeam and SplitRow: two tensors, and a sum as the state.

namespace KokkosNN::Impl {

/// Placement of rows of y and dy, or parts of them, in registers: K packs of each a thread, and its elements of the
/// edges.
template <class Y, class D, class A, int V, int K, bool has_edges = false>
struct PairRegisterPlacement : PlacementDefaults {
  PairTile<Y, D, V, K> tile;
  EdgePair<Y, D, has_edges> edge;
  PackPositions positions;

  KOKKOS_INLINE_FUNCTION PairRegisterPlacement(A*, const RowGroup& group)
      : positions(PackPositions::of<V>(group.rank, group.size)) {}

  template <class Row, class Params>
  KOKKOS_INLINE_FUNCTION typename Params::State reduce(const Row& row, const RowPart& part, const Params&, int) {
    tile.load(row, part.packs.begin, positions, part.packs.window());
    edge.load(row, part);
    return {edge.template added_to<Params>(tile.template sum<Params>())};
  }

  template <class Row, class OutputRow, class Params, class RowEpilogue>
  KOKKOS_INLINE_FUNCTION void write(const Row& row, const OutputRow& output, const RowPart& part, const Params& params,
                                    const RowEpilogue& epilogue) const {
    tile.store(row, output, part.packs.begin, positions, part.packs.window(), params, epilogue);
    edge.store(output, part, params, epilogue);
  }

  /// Prefetches the packs that `reduce` of that row will load.
  template <class Row>
  KOKKOS_INLINE_FUNCTION void prefetch(const Row& row, const RowPart& part) const {
    const auto y  = row.y.template from<V>(part.packs.begin);
    const auto dy = row.dy.template from<V>(part.packs.begin);
    for (int k = 0; k < K; ++k) {
      y.template prefetch_pack<V>(positions.place(k), part.packs.window());
      dy.template prefetch_pack<V>(positions.place(k), part.packs.window());
    }
  }
};

/// Placement of rows of y and dy in team scratch, y's packs first; a thread touches only its own packs, so no barrier
/// is needed between the passes.
template <class Y, class D, class A, int V, int K>
struct PairScratchPlacement : PlacementDefaults {
  char* scratch;
  PackPositions positions;

  KOKKOS_INLINE_FUNCTION PairScratchPlacement(A* begin, const RowGroup& group)
      : scratch(reinterpret_cast<char*>(begin)), positions(PackPositions::of<V>(group.rank, group.size)) {}

  template <class Row, class Params>
  KOKKOS_INLINE_FUNCTION typename Params::State reduce(const Row& row, const RowPart& part, const Params&, int) {
    const ColumnRange& span = part.packs;
    RunningTerms<Params> sum{};
    for (std::int64_t t = 0; span.has_tile(t, tile_size()); ++t) {
      PairTile<Y, D, V, K> tile;
      tile.load(row, span.start(t, tile_size()), positions, span.window(t, tile_size()));
      sum = sum + RunningTerms<Params>(tile.template sum<Params>());
      for_own_packs(t, span, [&](HeldPack<Y, V>& y, HeldPack<D, V>& dy, int k) {
        y  = tile.y.pack[k];
        dy = tile.dy.pack[k];
      });
    }
    return {static_cast<typename Params::wide_sum>(sum)};
  }

  template <class Row, class OutputRow, class Params, class RowEpilogue>
  KOKKOS_INLINE_FUNCTION void write(const Row& row, const OutputRow& output, const RowPart& part, const Params& params,
                                    const RowEpilogue& epilogue) const {
    const ColumnRange& span = part.packs;
    for (std::int64_t t = 0; span.has_tile(t, tile_size()); ++t) {
      PairTile<Y, D, V, K> tile;
      for_own_packs(t, span, [&](const HeldPack<Y, V>& y, const HeldPack<D, V>& dy, int k) {
        tile.y.pack[k]  = y;
        tile.dy.pack[k] = dy;
      });
      tile.store(row, output, span.start(t, tile_size()), positions, span.window(t, tile_size()), params, epilogue);
    }
  }

 private:
  KOKKOS_INLINE_FUNCTION int tile_size() const { return K * positions.step; }

  /// Calls f(pack of y, pack of dy, their number in the tile) for this thread's packs of the t-th tile.
  template <class F>
  KOKKOS_INLINE_FUNCTION void for_own_packs(std::int64_t t, const ColumnRange& span, const F& f) const {
    const int elements  = static_cast<int>(span.end - span.begin);
    const int packs     = (elements + V - 1) / V;
    auto* const y_packs = reinterpret_cast<HeldPack<Y, V>*>(scratch);
    // A 16-byte boundary, which the planner counts.
    auto* const dy_packs = reinterpret_cast<HeldPack<D, V>*>(scratch + (packs * sizeof(Pack<Y, V>) + 15) / 16 * 16);
    const int first      = static_cast<int>(t) * tile_size() + positions.first;
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) {
      const int place = first + k * positions.step;
      if (place < elements) f(y_packs[place / V], dy_packs[place / V], k);
    }
  }
};

/// Placement of rows that are only in memory: read once for the sum, again to write.
template <class Y, class D, class A, int V, int K>
struct PairOnlinePlacement : PlacementDefaults {
  PackPositions positions;

  KOKKOS_INLINE_FUNCTION PairOnlinePlacement(A*, const RowGroup& group)
      : positions(PackPositions::of<V>(group.rank, group.size)) {}

  template <class Row, class Params>
  KOKKOS_INLINE_FUNCTION typename Params::State reduce(const Row& row, const RowPart& part, const Params& params,
                                                       int) const {
    return sum_tiles<Y, D, V, K>(row, part, positions, params);
  }

  template <class Row, class OutputRow, class Params, class RowEpilogue>
  KOKKOS_INLINE_FUNCTION void write(const Row& row, const OutputRow& output, const RowPart& part, const Params& params,
                                    const RowEpilogue& epilogue) const {
    EdgePair<Y, D, Row::has_edges> edge;
    edge.load(row, part);
    edge.store(output, part, params, epilogue);
    for_tiles_again(part.packs, K * positions.step, [&](std::int64_t start, const TileBounds& window) {
      PairTile<Y, D, V, K> tile;
      tile.load(row, start, positions, window);
      tile.store(row, output, start, positions, window, params, epilogue);
    });
  }

  template <class Row>
  KOKKOS_INLINE_FUNCTION void prefetch(const Row&, const RowPart&) const {}
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_PLACEMENT_PAIRS_HPP
