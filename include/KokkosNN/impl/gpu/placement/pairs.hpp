// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_PLACEMENT_PAIRS_HPP
#define KOKKOSNN_IMPL_GPU_PLACEMENT_PAIRS_HPP

#include <KokkosNN/impl/gpu/device/exchange.hpp>
#include <KokkosNN/impl/gpu/device/pair_tile.hpp>
#include <KokkosNN/impl/gpu/device/running_tiles.hpp>
#include <KokkosNN/impl/gpu/device/tile.hpp>
#include <KokkosNN/impl/gpu/placement/elementwise.hpp>
#include <KokkosNN/impl/operators/softmax_backward.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

// The storages with which row_in_team and split_row are the gradients' kernels; see row_in_team.hpp for what a storage
// does.

namespace KokkosNN::Impl {

/// Rows of y and dy, or parts of them, in the registers of their group: K packs of each a thread, and its elements of
/// the rims.
template <class Y, class D, class A, int V, int K, bool has_rims = false>
struct PairRegisterStorage {
  static constexpr bool has_own_reference = false;

  PairTile<Y, D, V, K> tile;
  RimPair<Y, D, has_rims> rim;
  PackWalk walk;

  KOKKOS_INLINE_FUNCTION PairRegisterStorage(A*, const RowGroup& group)
      : walk(PackWalk::of<V>(group.rank, group.size)) {}

  template <class Row, class Math>
  KOKKOS_INLINE_FUNCTION typename Math::State reduce(const Row& row, const RowPart& part, const Math&, int) {
    tile.load(row, part.packs.begin, walk, part.packs.window());
    rim.load(row, part);
    return {rim.template added_to<Math>(tile.template sum<Math>())};
  }

  template <class Row, class SinkRow, class Math, class FinishRow>
  KOKKOS_INLINE_FUNCTION void write(const Row& row, const SinkRow& sink, const RowPart& part, const Math& math,
                                    const FinishRow& finish) const {
    tile.store(row, sink, part.packs.begin, walk, part.packs.window(), math, finish);
    rim.store(sink, part, math, finish);
  }

  /// Asks for what `reduce` of that row will load.
  template <class Row>
  KOKKOS_INLINE_FUNCTION void prefetch(const Row& row, const RowPart& part) const {
    const auto y  = row.y.template from<V>(part.packs.begin);
    const auto dy = row.dy.template from<V>(part.packs.begin);
    for (int k = 0; k < K; ++k) {
      y.template prefetch_pack<V>(walk.place(k), part.packs.window());
      dy.template prefetch_pack<V>(walk.place(k), part.packs.window());
    }
  }
};

/// Rows of y and dy in team scratch, y's packs first; a thread touches only its own packs, so no barrier is needed
/// between the passes.
template <class Y, class D, class A, int V, int K, bool has_rims = false>
struct PairScratchStorage {
  static constexpr bool has_own_reference = false;

  char* scratch;
  RimPair<Y, D, has_rims> rim;
  PackWalk walk;

  KOKKOS_INLINE_FUNCTION PairScratchStorage(A* begin, const RowGroup& group)
      : scratch(reinterpret_cast<char*>(begin)), walk(PackWalk::of<V>(group.rank, group.size)) {}

  template <class Row, class Math>
  KOKKOS_INLINE_FUNCTION typename Math::State reduce(const Row& row, const RowPart& part, const Math&, int) {
    const Span& span = part.packs;
    rim.load(row, part);
    RunningTerms<Math> sum = rim.template added_to<Math>(RunningTerms<Math>{});
    for (std::int64_t t = 0; span.has_tile(t, tile_size()); ++t) {
      PairTile<Y, D, V, K> tile;
      tile.load(row, span.start(t, tile_size()), walk, span.window(t, tile_size()));
      sum = sum + RunningTerms<Math>(tile.template sum<Math>());
      for_own_packs(t, span, [&](HeldPack<Y, V>& y, HeldPack<D, V>& dy, int k) {
        y  = tile.y.pack[k];
        dy = tile.dy.pack[k];
      });
    }
    return {static_cast<typename Math::wide_sum>(sum)};
  }

  template <class Row, class SinkRow, class Math, class FinishRow>
  KOKKOS_INLINE_FUNCTION void write(const Row& row, const SinkRow& sink, const RowPart& part, const Math& math,
                                    const FinishRow& finish) const {
    const Span& span = part.packs;
    for (std::int64_t t = 0; span.has_tile(t, tile_size()); ++t) {
      PairTile<Y, D, V, K> tile;
      for_own_packs(t, span, [&](const HeldPack<Y, V>& y, const HeldPack<D, V>& dy, int k) {
        tile.y.pack[k]  = y;
        tile.dy.pack[k] = dy;
      });
      tile.store(row, sink, span.start(t, tile_size()), walk, span.window(t, tile_size()), math, finish);
    }
    rim.store(sink, part, math, finish);
  }

 private:
  KOKKOS_INLINE_FUNCTION int tile_size() const { return K * walk.step; }

  /// f(pack of y, pack of dy, their number in the tile) for this thread's packs of the t-th tile.
  template <class F>
  KOKKOS_INLINE_FUNCTION void for_own_packs(std::int64_t t, const Span& span, const F& f) const {
    const int elements  = static_cast<int>(span.end - span.begin);
    const int packs     = (elements + V - 1) / V;
    auto* const y_packs = reinterpret_cast<HeldPack<Y, V>*>(scratch);
    // 16-byte boundaries; the planner counts with them.
    auto* const dy_packs = reinterpret_cast<HeldPack<D, V>*>(scratch + (packs * sizeof(Pack<Y, V>) + 15) / 16 * 16);
    const int first      = static_cast<int>(t) * tile_size() + walk.first;
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) {
      const int place = first + k * walk.step;
      if (place < elements) f(y_packs[place / V], dy_packs[place / V], k);
    }
  }
};

/// Rows that are nowhere but in memory: read once for the sum, again to write.
template <class Y, class D, class A, int V, int K>
struct PairOnlineStorage {
  static constexpr bool has_own_reference = false;

  PackWalk walk;

  KOKKOS_INLINE_FUNCTION PairOnlineStorage(A*, const RowGroup& group) : walk(PackWalk::of<V>(group.rank, group.size)) {}

  template <class Row, class Math>
  KOKKOS_INLINE_FUNCTION typename Math::State reduce(const Row& row, const RowPart& part, const Math& math, int) const {
    return sum_tiles<Y, D, V, K>(row, part, walk, math);
  }

  template <class Row, class SinkRow, class Math, class FinishRow>
  KOKKOS_INLINE_FUNCTION void write(const Row& row, const SinkRow& sink, const RowPart& part, const Math& math,
                                    const FinishRow& finish) const {
    RimPair<Y, D, Row::has_rims> rim;
    rim.load(row, part);
    rim.store(sink, part, math, finish);
    for_tiles_again(part.packs, K * walk.step, [&](std::int64_t start, const Window& window) {
      PairTile<Y, D, V, K> tile;
      tile.load(row, start, walk, window);
      tile.store(row, sink, start, walk, window, math, finish);
    });
  }

  template <class Row>
  KOKKOS_INLINE_FUNCTION void prefetch(const Row&, const RowPart&) const {}
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_PLACEMENT_PAIRS_HPP
