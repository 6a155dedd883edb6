// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_PLACEMENT_HELD_ROW_HPP
#define KOKKOSNN_IMPL_GPU_PLACEMENT_HELD_ROW_HPP

#include <KokkosNN/impl/gpu/device/exchange.hpp>
#include <KokkosNN/impl/gpu/device/tile.hpp>
#include <KokkosNN/impl/operators/softmax.hpp>

#include <Kokkos_Core.hpp>

namespace KokkosNN::Impl {

template <class Storage, class Row, class Math>
KOKKOS_INLINE_FUNCTION void prepare_write(Storage& storage, const Row& row, const RowPart& part, const Math& math) {
  if constexpr (requires { storage.prepare_write(row, part, math); }) storage.prepare_write(row, part, math);
}

/// A row, or a part of one, in the registers of its group: a Tile of K packs a thread, and its element of the rims.
template <class Tile, class A, int V, int K, bool has_rims>
struct HeldRow {
  Tile tile;
  RimElement<A, has_rims> rim;
  PackWalk walk;

  KOKKOS_INLINE_FUNCTION explicit HeldRow(const RowGroup& group) : walk(PackWalk::of<V>(group.rank, group.size)) {}

  template <class Row, class Math>
  KOKKOS_INLINE_FUNCTION void load(const Row& row, const RowPart& part, const Math& math) {
    tile.load(row.template from<V>(part.packs.begin), walk, part.packs.window(), math);
    rim.load(row, part, math);
  }

  /// Asks for what `load` of that row will load.
  template <class Row>
  KOKKOS_INLINE_FUNCTION void prefetch(const Row& row, const RowPart& part) const {
    const auto stretch  = row.template from<V>(part.packs.begin);
    const Window window = part.packs.window();
    if constexpr (has_bulk_prefetch && decltype(stretch)::always_whole) {
      const int bytes = window.end * static_cast<int>(sizeof(typename Row::value_type));
      if (walk.first == 0 && bytes > 0) prefetch_bytes(stretch.base, bytes);
    } else {
      for (int k = 0; k < K; ++k) stretch.template prefetch_pack<V>(walk.place(k), window);
    }
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_PLACEMENT_HELD_ROW_HPP
