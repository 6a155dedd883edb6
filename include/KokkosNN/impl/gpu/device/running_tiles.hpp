// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_DEVICE_RUNNING_TILES_HPP
#define KOKKOSNN_IMPL_GPU_DEVICE_RUNNING_TILES_HPP

#include <KokkosNN/impl/gpu/device/tile.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

// Rows that a thread goes through tile by tile: running sums, and the second read.

namespace KokkosNN::Impl {

/// A thread's state over many tiles; the sum wider than float, as there may be very many.
template <class Params>
struct RunningSum {
  using A   = typename Params::accumulator;
  using W   = typename Params::wide_sum;
  using Sum = std::conditional_t<std::is_same_v<A, float>, double, W>;

  A reference = -Kokkos::Experimental::infinity_v<A>;
  Sum sum     = {};

  /// Makes the reference fit for values up to `max`, and returns it.
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

/// The tile of a row that was reduced last; where `holds`, it need not be read again to be written.
template <class A, int V, int K, bool holds>
struct LastTile {
  Tile<A, V, K> tile;
  bool is_held = false;

  /// Adds the tile's exponentials; it stays as it is but where logits are too large for references to be powers of two.
  template <SumFor use, class Params>
  KOKKOS_INLINE_FUNCTION void add_exponentials(const Params& params, const ExpReference<A>& reference,
                                               PackSums<Params, V>& sums) {
    is_held = holds && reference.base == A(0);
    tile.template add_exponentials<Leaves::differences, use>(params, reference, sums);
  }
};

/// (max, sum) of a span, loaded tile by tile.
template <SumFor use, class A, int V, int K, bool holds, class Row, class Params, class Observer>
KOKKOS_INLINE_FUNCTION typename Params::State reduce_tiles(const Row& row, const RowPart& part, const PackPositions& positions,
                                                         const Params& params, Observer& observer,
                                                         LastTile<A, V, K, holds>& last) {
  const ColumnRange& span    = part.packs;
  const int tile_size = K * positions.step;
  RunningSum<Params> running;
  for (std::int64_t t = 0; span.has_tile(t, tile_size); ++t) {
    const TileBounds window = span.window(t, tile_size);
    auto& tile          = last.tile;
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

/// f(start, window) for each tile of a span that is read a second time: on a GPU last tile first, as what was read last
/// may still be in a cache; a host's prefetching wants to go forward (4096 x 4096 f32 on two cores: backward half as
/// fast).
template <bool backward = (warp_width() > 1), class F>
KOKKOS_INLINE_FUNCTION void for_tiles_again(const ColumnRange& span, int tile_size, const F& f) {
  const std::int64_t tiles = span.tiles(tile_size);
  for (std::int64_t i = 0; i < tiles; ++i) {
    const std::int64_t t = backward ? tiles - 1 - i : i;
    f(span.start(t, tile_size), span.window(t, tile_size));
  }
}

/// f(start, window, tile of logits) for each tile of a part that was reduced before; `last` is what is left of that.
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

/// Stores value(x - base, its column) of a part that was reduced before.
template <class A, int V, int K, bool holds, class Row, class OutputRow, class Params, class F>
KOKKOS_INLINE_FUNCTION void rewrite_columns(const Row& row, const OutputRow& output, const RowPart& part,
                                            const PackPositions& positions, const Params& params,
                                            const LastTile<A, V, K, holds>& last, A base, const F& value) {
  EdgeElement<A, Row::has_edges> edge;
  edge.load(row, part, params);
  edge.store(output, part, [&](A x) { return value(x - base, part.edge); });
  for_logits_again(row, part, positions, params, last, [&](std::int64_t start, const TileBounds& window, Tile<A, V, K>& tile) {
    if (base != A(0)) tile.subtract(base);
    // What else is in the cache is rows that will be read again.
    tile.store_columns(streamed(output.template from<V>(start)), start, positions, window, value);
  });
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_DEVICE_RUNNING_TILES_HPP
