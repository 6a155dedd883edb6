// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_PLACEMENT_HELD_ROW_HPP
#define KOKKOSNN_IMPL_GPU_PLACEMENT_HELD_ROW_HPP

#include <KokkosNN/impl/gpu/device/exchange.hpp>
#include <KokkosNN/impl/gpu/device/tile.hpp>
#include <KokkosNN/impl/operators/softmax.hpp>

#include <Kokkos_Core.hpp>

// Rows in the registers of a group of threads: the part that the placements in registers have in common.

namespace KokkosNN::Impl {

template <class Placement, class Row, class Params>
KOKKOS_INLINE_FUNCTION void prepare_write(Placement& placement, const Row& row, const RowPart& part,
                                          const Params& params) {
  if constexpr (Placement::prepares_write) placement.prepare_write(row, part, params);
}

/// Row, or part of one, in the registers of its group: a Tile of K packs a thread, and its element of the edges.
template <class Tile, class A, int V, int K, bool has_edges>
struct HeldRow {
  Tile tile;
  EdgeElement<A, has_edges> edge;
  PackPositions positions;

  KOKKOS_INLINE_FUNCTION explicit HeldRow(const RowGroup& group)
      : positions(PackPositions::of<V>(group.rank, group.size)) {}

  template <class Row, class Params>
  KOKKOS_INLINE_FUNCTION void load(const Row& row, const RowPart& part, const Params& params) {
    tile.load(row.template from<V>(part.packs.begin), positions, part.packs.window(), params);
    edge.load(row, part, params);
  }

  /// Prefetches the packs that `load` of that row will load.
  template <class Row>
  KOKKOS_INLINE_FUNCTION void prefetch(const Row& row, const RowPart& part) const {
    const auto columns_from = row.template from<V>(part.packs.begin);
    const TileBounds window = part.packs.window();
    if constexpr (has_bulk_prefetch && decltype(columns_from)::always_whole) {
      const int bytes = window.end * static_cast<int>(sizeof(typename Row::value_type));
      if (positions.first == 0 && bytes > 0) prefetch_bytes(columns_from.base, bytes);
    } else {
      for (int k = 0; k < K; ++k) columns_from.template prefetch_pack<V>(positions.place(k), window);
    }
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_PLACEMENT_HELD_ROW_HPP
