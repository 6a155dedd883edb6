// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_PLACEMENT_ELEMENTWISE_HPP
#define KOKKOSNN_IMPL_GPU_PLACEMENT_ELEMENTWISE_HPP

#include <KokkosNN/impl/gpu/device/exchange.hpp>
#include <KokkosNN/impl/gpu/device/pair_tile.hpp>
#include <KokkosNN/impl/gpu/device/tile.hpp>
#include <KokkosNN/impl/operators/softmax_backward.hpp>
#include <KokkosNN/impl/protocol.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

// Placement that keeps nothing of a row.

namespace KokkosNN::Impl {

/// Placement of rows whose results depend on an element and the row's scalars alone: read once, written at once.
template <class X, class A, int V, int K>
struct ElementwisePlacement : PlacementDefaults {
  PackPositions positions;

  KOKKOS_INLINE_FUNCTION ElementwisePlacement(A*, const RowGroup& group)
      : positions(PackPositions::of<V>(group.rank, group.size)) {}

  template <class Row, class Params>
  KOKKOS_INLINE_FUNCTION typename Params::State reduce(const Row& row, const RowPart&, const Params&, int) const {
    return row.scalars;
  }

  template <class Row, class OutputRow, class Params, class RowEpilogue>
  KOKKOS_INLINE_FUNCTION void write(const Row& row, const OutputRow& output, const RowPart& part, const Params& params,
                                    const RowEpilogue& epilogue) const {
    using T                 = typename OutputRow::value_type;
    const ColumnRange& span = part.packs;
    const int tile_size     = K * positions.step;
    for (std::int64_t t = 0; span.has_tile(t, tile_size); ++t) {
      const std::int64_t start = span.start(t, tile_size);
      const TileBounds window  = span.window(t, tile_size);
      HeldTile<X, V, K> tile;
      tile.load(row.x.template from<V>(start), positions, window);
      store_tile<V, K>(output.template from<V>(start), positions, window, [&](int k) {
        Pack<T, V> result;
        tile.pack[k].show([&](const Pack<X, V>& x) {
          for (int v = 0; v < V; ++v) result[v] = static_cast<T>(epilogue(params, static_cast<A>(x[v])));
        });
        return result;
      });
    }
    if constexpr (Row::has_edges) {
      if (part.has_edge) {
        output.store_one(static_cast<T>(epilogue(params, static_cast<A>(row.x.load_one(part.edge)))), part.edge);
      }
    }
  }

  template <class Row>
  KOKKOS_INLINE_FUNCTION void prefetch(const Row&, const RowPart&) const {}
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_PLACEMENT_ELEMENTWISE_HPP
