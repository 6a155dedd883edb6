// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_PLACEMENT_SCRATCH_HPP
#define KOKKOSNN_IMPL_GPU_PLACEMENT_SCRATCH_HPP

#include <KokkosNN/impl/gpu/device/exchange.hpp>
#include <KokkosNN/impl/gpu/device/tile.hpp>
#include <KokkosNN/impl/gpu/placement/held_row.hpp>
#include <KokkosNN/impl/gpu/placement/packed.hpp>
#include <KokkosNN/impl/gpu/placement/registers.hpp>
#include <KokkosNN/impl/operators/softmax.hpp>
#include <KokkosNN/impl/protocol.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

// Placements of rows in team scratch: in the accumulator type, or in the type that was loaded. Their rows are strided:
// no element is left beside whole packs (`has_scratch_kernel`).

namespace KokkosNN::Impl {

/// Placement in team scratch. A thread touches only its own packs, so no barrier is needed between the passes. Packs go
/// by tiles of K, so that a thread has several loads in flight. A GPU keeps a pack as chunks of 16 bytes, equal chunks
/// of neighbouring threads side by side, as scratch is banked.
template <RowOperator op, class A, int V, int K>
struct ScratchPlacement : PlacementDefaults {
  static constexpr bool has_own_reference = true;
  static constexpr int chunk              = warp_width() > 1 && V * sizeof(A) > 16 ? int(16 / sizeof(A)) : V;

  A* elements;
  PackPositions positions;

  KOKKOS_INLINE_FUNCTION ScratchPlacement(A* scratch, const RowGroup& group)
      : elements(scratch), positions(PackPositions::of<V>(group.rank, group.size)) {}

  template <class Row, class Params, class Observer = const NoObserver>
  KOKKOS_INLINE_FUNCTION typename Params::State reduce(const Row& row, const RowPart& part, const Params& params,
                                                       int lanes, Observer& observer = NoObserver{}) {
    const ColumnRange& span = part.packs;
    A max                   = -Kokkos::Experimental::infinity_v<A>;
    for (std::int64_t t = 0; span.has_tile(t, tile_size()); ++t) {
      Tile<A, V, K> tile;
      tile.load(row.template from<V>(span.start(t, tile_size())), positions, span.window(t, tile_size()), params);
      show_tile<V, K>(tile, span.start(t, tile_size()), positions, span.window(t, tile_size()), observer);
      max = max_ignoring_nan(max, tile.max());
      for_own_packs<false, true>(t, span, [&](Pack<A, V>& pack, int k) { pack = tile.pack[k]; });
    }
    const auto of_warp = params.exp.refer(reduce_lanes(max, 1, lanes, MaxJoin{}));
    return {of_warp.R, sum(span, params, of_warp.at)};
  }

  template <class Row, class OutputRow, class Params, class RowEpilogue>
  KOKKOS_INLINE_FUNCTION void write(const Row&, const OutputRow& output, const RowPart& part, const Params& params,
                                    const RowEpilogue& epilogue) const {
    const ColumnRange& span = part.packs;
    for (std::int64_t t = 0; span.has_tile(t, tile_size()); ++t) {
      Tile<A, V, K> tile;
      for_own_packs<true, false>(t, span, [&](Pack<A, V>& pack, int k) { tile.pack[k] = pack; });
      tile.store_kept(output.template from<V>(span.start(t, tile_size())), positions, span.window(t, tile_size()),
                      params, epilogue);
    }
  }

  template <class Row, class OutputRow, class Params, class F>
  KOKKOS_INLINE_FUNCTION void write_columns(const Row&, const OutputRow& output, const RowPart& part, const Params&,
                                            const F& value) const {
    const ColumnRange& span = part.packs;
    for (std::int64_t t = 0; span.has_tile(t, tile_size()); ++t) {
      Tile<A, V, K> tile;
      for_own_packs<true, false>(t, span, [&](Pack<A, V>& pack, int k) { tile.pack[k] = pack; });
      const std::int64_t start = span.start(t, tile_size());
      tile.store_columns(output.template from<V>(start), start, positions, span.window(t, tile_size()), value);
    }
  }

 private:
  KOKKOS_INLINE_FUNCTION int tile_size() const { return K * positions.step; }

  template <class Params>
  KOKKOS_INLINE_FUNCTION auto sum(const ColumnRange& span, const Params& params, const ExpReference<A>& reference) {
    constexpr bool keep = Epilogue<op>::keeps_exponentials;
    PackSums<Params, V> sums;
    if (is_infinite<sum_for<op>, Params>(reference)) {
      bool any_nan = false;
      for (std::int64_t t = 0; span.has_tile(t, tile_size()); ++t) {
        for_own_packs<true, false>(t, span, [&](const Pack<A, V>& pack, int) { any_nan |= has_nan(pack); });
      }
      sums.add(0, one_or_nan<A>(any_nan));
    } else {
      for (std::int64_t t = 0; span.has_tile(t, tile_size()); ++t) {
        for_own_packs<true, keep>(t, span, [&](Pack<A, V>& pack, int) {
          if (keep && reference.base != A(0)) subtract(pack, reference.base);
          add_exponentials<keep>(params, pack, reference, sums);
        });
      }
    }
    return sums.all_lanes();
  }

  /// Calls f(pack, its number in the tile) for this thread's packs of the t-th tile; `read` from scratch before,
  /// `write` to it after.
  template <bool read, bool write, class F>
  KOKKOS_INLINE_FUNCTION void for_own_packs(std::int64_t t, const ColumnRange& span, const F& f) const {
    const int first         = static_cast<int>(t) * tile_size() + positions.first;
    const int elements_held = span.window().end;
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) {
      const int place = first + k * positions.step;
      if (place >= elements_held) continue;
      if constexpr (chunk == V) {
        f(*reinterpret_cast<Pack<A, V>*>(elements + place), k);
      } else {
        const int plane = (elements_held + V - 1) / V * chunk;
        auto* chunks    = elements + place / V * chunk;
        Pack<A, V> pack;
        for (int q = 0; read && q < V / chunk; ++q) copy_chunk(&pack[q * chunk], chunks + q * plane);
        f(pack, k);
        for (int q = 0; write && q < V / chunk; ++q) copy_chunk(chunks + q * plane, &pack[q * chunk]);
      }
    }
  }

  KOKKOS_INLINE_FUNCTION static void copy_chunk(A* to, const A* from) {
    *reinterpret_cast<Pack<A, chunk>*>(to) = *reinterpret_cast<const Pack<A, chunk>*>(from);
  }
};

/// Placement in team scratch that does what PackedPlacement does in registers: packs of a type narrower than the
/// accumulator stay as they were loaded, so rows twice as long fit.
template <RowOperator op, class T, class A, int V, int K>
struct PackedScratchPlacement : PlacementDefaults {
  using Tile  = PackedTile<T, V, K>;
  using Words = Pack<std::uint32_t, V / 2>;

  Words* packs;
  PackPositions positions;

  KOKKOS_INLINE_FUNCTION PackedScratchPlacement(A* scratch, const RowGroup& group)
      : packs(reinterpret_cast<Words*>(scratch)), positions(PackPositions::of<V>(group.rank, group.size)) {}

  template <class Row, class Params>
  KOKKOS_INLINE_FUNCTION typename Params::State reduce(const Row& row, const RowPart& part, const Params& params,
                                                       int lanes) {
    const ColumnRange& span = part.packs;
    A max                   = -Kokkos::Experimental::infinity_v<A>;
    for (std::int64_t t = 0; span.has_tile(t, tile_size()); ++t) {
      Tile tile;
      tile.load(row.template from<V>(span.start(t, tile_size())), positions, span.window(t, tile_size()), params);
      for_own_places(t, span, [&](int k, int place) { packs[place / V] = tile.word[k]; });
      max = max_ignoring_nan(max, tile.template max<A>());
    }
    const auto of_warp = params.exp.refer(reduce_lanes(max, 1, lanes, MaxJoin{}));
    const auto& at     = of_warp.at;
    PackSums<Params, V> sums;
    if (is_infinite<sum_for<op>, Params>(at)) {
      bool any_nan = false;
      for (std::int64_t t = 0; span.has_tile(t, tile_size()); ++t) any_nan |= kept(t, span).template has_nan<A>();
      sums.add(0, one_or_nan<A>(any_nan));
    } else {
      for (std::int64_t t = 0; span.has_tile(t, tile_size()); ++t) {
        kept(t, span).template for_packs<0, A>(
            [&](Pack<A, V>& pack) { add_exponentials<false>(params, pack, at, sums); });
      }
    }
    return {of_warp.R, sums.all_lanes()};
  }

  template <class Row, class OutputRow, class Params, class RowEpilogue>
  KOKKOS_INLINE_FUNCTION void write(const Row&, const OutputRow& output, const RowPart& part, const Params& params,
                                    const RowEpilogue& epilogue) const {
    const ColumnRange& span = part.packs;
    const auto value        = [&](A x) { return epilogue.from_input(params, x); };
    for (std::int64_t t = 0; span.has_tile(t, tile_size()); ++t) {
      kept(t, span).template store<0, A>(output.template from<V>(span.start(t, tile_size())), positions,
                                         span.window(t, tile_size()), value);
    }
  }

 private:
  KOKKOS_INLINE_FUNCTION int tile_size() const { return K * positions.step; }

  /// Reads the t-th tile from scratch; -inf beyond the row's end.
  KOKKOS_INLINE_FUNCTION Tile kept(std::int64_t t, const ColumnRange& span) const {
    const T nothing = static_cast<T>(-Kokkos::Experimental::infinity_v<A>);
    Tile tile;
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) tile.word[k] = words_of(filled<T, V>(nothing));
    for_own_places(t, span, [&](int k, int place) { tile.word[k] = packs[place / V]; });
    return tile;
  }

  /// Calls f(k, offset in the row) for this thread's packs of the t-th tile.
  template <class F>
  KOKKOS_INLINE_FUNCTION void for_own_places(std::int64_t t, const ColumnRange& span, const F& f) const {
    const int first = static_cast<int>(t) * tile_size();
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) {
      if (first + positions.place(k) < span.window().end) f(k, first + positions.place(k));
    }
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_PLACEMENT_SCRATCH_HPP
