// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_DEVICE_RUNNING_TILES_HPP
#define KOKKOSNN_IMPL_GPU_DEVICE_RUNNING_TILES_HPP

#include <KokkosNN/impl/gpu/device/tile.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

// Rows that a thread processes tile by tile: running sums, and the second read.

namespace KokkosNN::Impl {

/// State of a thread over many tiles; the sum is wider than float, as tiles may be very many.
template <class Params>
struct RunningSum {
  using A   = typename Params::accumulator;
  using W   = typename Params::wide_sum;
  using Sum = std::conditional_t<std::is_same_v<A, float>, double, W>;

  A reference = -Kokkos::Experimental::infinity_v<A>;
  Sum sum     = {};

  /// Raises the reference to fit values up to `max`, and returns it.
  KOKKOS_INLINE_FUNCTION ExpReference<A> raise(const Params& params, A max) {
    const A next = params.exp.reference_of(max);
    if (next > reference) {
      sum       = rescaled(params, sum, reference, next);
      reference = next;
    }
    return params.exp.at(finite_reference(reference));
  }

  KOKKOS_INLINE_FUNCTION void add(const W& value) { sum = sum + Sum(value); }

  KOKKOS_INLINE_FUNCTION typename Params::State state() const { return {reference, static_cast<W>(sum)}; }
};

/// Tile of a row that was reduced last: if `holds`, it is not read again to be written, which saves rows of few tiles
/// much of the second read. (CUDA)
template <class A, int V, int K, bool holds>
struct LastTile {
  Tile<A, V, K> tile;
  bool is_held = false;

  /// Adds the tile's exponentials. The tile stays unchanged, unless logits are too large for references to be powers of
  /// two.
  template <SumFor use, class Params>
  KOKKOS_INLINE_FUNCTION void add_exponentials(const Params& params, const ExpReference<A>& reference,
                                               PackSums<Params, V>& sums) {
    is_held = holds && reference.base == A(0);
    tile.template add_exponentials<Leaves::differences, use>(params, reference, sums);
  }
};

/// State (max, sum) of a range of columns, loaded tile by tile.
template <SumFor use, class A, int V, int K, bool holds, class Row, class Params, class Observer>
KOKKOS_INLINE_FUNCTION typename Params::State reduce_tiles(const Row& row, const RowPart& part,
                                                           const PackPositions& positions, const Params& params,
                                                           Observer& observer, LastTile<A, V, K, holds>& last) {
  const ColumnRange& span = part.packs;
  const int tile_size     = K * positions.step;
  RunningSum<Params> running;
  for (std::int64_t t = 0; span.has_tile(t, tile_size); ++t) {
    const TileBounds window = span.window(t, tile_size);
    auto& tile              = last.tile;
    tile.load(row.template from<V>(span.start(t, tile_size)), positions, window, params);
    show_tile<V, K>(tile, span.start(t, tile_size), positions, window, observer);
    const auto reference = running.raise(params, tile.max());
    PackSums<Params, V> sums;
    last.template add_exponentials<use>(params, reference, sums);
    running.add(sums.all_lanes());
  }
  EdgeElement<A, Row::has_edges> edge;
  edge.load(row, part, params);
  edge.show(part, observer);
  if (part.has_edge) {
    const auto reference = running.raise(params, edge.larger(running.reference));
    PackSums<Params, V> sums;
    edge.template add_exponential<false, use>(params, reference, sums);
    running.add(sums.all_lanes());
  }
  return running.state();
}

/// Calls f(start, window) for each tile of a range that is read a second time. A GPU takes the last tile first: it is
/// the likeliest to be in a cache. A host goes forward, as its prefetching does.
///   4096 x 4096 f32, two cores | forward 1 | backward half as fast
template <bool backward = (warp_width() > 1), class F>
KOKKOS_INLINE_FUNCTION void for_tiles_again(const ColumnRange& span, int tile_size, const F& f) {
  const std::int64_t tiles = span.tiles(tile_size);
  for (std::int64_t i = 0; i < tiles; ++i) {
    const std::int64_t t = backward ? tiles - 1 - i : i;
    f(span.start(t, tile_size), span.window(t, tile_size));
  }
}

/// Calls f(start, window, tile of logits) for each tile of a part that was reduced before; `last` is the tile that is
/// left of that.
template <class A, int V, int K, bool holds, class Row, class Params, class F>
KOKKOS_INLINE_FUNCTION void for_logits_again(const Row& row, const RowPart& part, const PackPositions& positions,
                                             const Params& params, const LastTile<A, V, K, holds>& last, const F& f) {
  LastTile<A, V, K, holds> current = last;
  constexpr bool backward          = holds || warp_width() > 1;
  for_tiles_again<backward>(part.packs, K * positions.step, [&](std::int64_t start, const TileBounds& window) {
    if (!current.is_held) current.tile.load(row.template from<V>(start), positions, window, params);
    current.is_held = false;
    f(start, window, current.tile);
  });
}

/// Stores value(x - base, its column) of a part that was reduced before. Floats are multiplied by the row's factor
/// inside the exponential's polynomial (`MultipliedExp`).
template <class A, int V, int K, bool holds, class Row, class OutputRow, class Params, class F>
KOKKOS_INLINE_FUNCTION void rewrite_columns(const Row& row, const OutputRow& output, const RowPart& part,
                                            const PackPositions& positions, const Params& params,
                                            const LastTile<A, V, K, holds>& last, A base, const F& value) {
  EdgeElement<A, Row::has_edges> edge;
  edge.load(row, part, params);
  edge.store(output, part, [&](A x) { return value(x - base, part.edge); });
  for_logits_again(row, part, positions, params, last,
                   [&](std::int64_t start, const TileBounds& window, Tile<A, V, K>& tile) {
                     if (base != A(0)) tile.subtract(base);
                     // Non-temporal stores: the cache holds rows that will be read again.
                     tile.store_columns(streamed(output.template from<V>(start)), start, positions, window, value);
                   });
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_DEVICE_RUNNING_TILES_HPP
