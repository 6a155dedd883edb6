// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_PLACEMENT_SCRATCH_HPP
#define KOKKOSNN_IMPL_GPU_PLACEMENT_SCRATCH_HPP

#include <KokkosNN/impl/gpu/device/exchange.hpp>
#include <KokkosNN/impl/gpu/device/tile.hpp>
#include <KokkosNN/impl/gpu/placement/held_row.hpp>
#include <KokkosNN/impl/gpu/placement/packed.hpp>
#include <KokkosNN/impl/gpu/placement/registers.hpp>
#include <KokkosNN/impl/operators/softmax.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

// A row in team scratch.

namespace KokkosNN::Impl {

/// A row in team scratch; a thread touches only its own packs, so no barrier is needed between the passes. Packs go by
/// tiles of K, so that a thread has several loads in flight. On a GPU a pack is kept as chunks of 16 bytes, equal ones
/// of neighbouring threads side by side, as scratch is banked.
template <RowOperator op, class A, int V, int K, bool has_rims>
struct ScratchStorage {
  static constexpr bool has_own_reference = true;
  static constexpr int chunk              = native_lanes() > 1 && V * sizeof(A) > 16 ? int(16 / sizeof(A)) : V;

  A* elements;
  RimElement<A, has_rims> rim;
  PackWalk walk;

  KOKKOS_INLINE_FUNCTION ScratchStorage(A* scratch, const RowGroup& group)
      : elements(scratch), walk(PackWalk::of<V>(group.rank, group.size)) {}

  template <class Row, class Math, class Observer = const NoObserver>
  KOKKOS_INLINE_FUNCTION typename Math::State reduce(const Row& row, const RowPart& part, const Math& math, int lanes,
                                                     Observer& observer = NoObserver{}) {
    const Span& span = part.packs;
    rim.load(row, part, math);
    rim.show(part, observer);
    A max = rim.larger(-Kokkos::Experimental::infinity_v<A>);
    for (std::int64_t t = 0; span.has_tile(t, tile_size()); ++t) {
      Tile<A, V, K> tile;
      tile.load(row.template from<V>(span.start(t, tile_size())), walk, span.window(t, tile_size()), math);
      show_tile<V, K>(tile, span.start(t, tile_size()), walk, span.window(t, tile_size()), observer);
      max = max_ignoring_nan(max, tile.max());
      for_own_packs<false, true>(t, span, [&](Pack<A, V>& pack, int k) { pack = tile.pack[k]; });
    }
    const auto of_warp = math.exp.refer(reduce_lanes(max, 1, lanes, MaxJoin{}));
    return {of_warp.R, sum(span, math, of_warp.at)};
  }

  template <class Row, class SinkRow, class Math, class FinishRow>
  KOKKOS_INLINE_FUNCTION void write(const Row&, const SinkRow& sink, const RowPart& part, const Math& math,
                                    const FinishRow& finish) const {
    const Span& span = part.packs;
    for (std::int64_t t = 0; span.has_tile(t, tile_size()); ++t) {
      Tile<A, V, K> tile;
      for_own_packs<true, false>(t, span, [&](Pack<A, V>& pack, int k) { tile.pack[k] = pack; });
      tile.store_kept(sink.template from<V>(span.start(t, tile_size())), walk, span.window(t, tile_size()), math,
                      finish);
    }
    rim.store(sink, part, [&](A kept) { return finish(math, kept); });
  }

  template <class Row, class SinkRow, class Math, class F>
  KOKKOS_INLINE_FUNCTION void write_columns(const Row&, const SinkRow& sink, const RowPart& part, const Math&,
                                            const F& value) const {
    const Span& span = part.packs;
    for (std::int64_t t = 0; span.has_tile(t, tile_size()); ++t) {
      Tile<A, V, K> tile;
      for_own_packs<true, false>(t, span, [&](Pack<A, V>& pack, int k) { tile.pack[k] = pack; });
      const std::int64_t start = span.start(t, tile_size());
      tile.store_columns(sink.template from<V>(start), start, walk, span.window(t, tile_size()), value);
    }
    rim.store(sink, part, [&](A x) { return value(x, part.rim); });
  }

 private:
  KOKKOS_INLINE_FUNCTION int tile_size() const { return K * walk.step; }

  template <class Math>
  KOKKOS_INLINE_FUNCTION auto sum(const Span& span, const Math& math, const ExpReference<A>& reference) {
    constexpr bool keep = Finish<op>::keeps_exponentials;
    PackSums<Math, V> sums;
    if (is_infinite<sum_for<op>, Math>(reference)) {
      bool any_nan = false;
      for (std::int64_t t = 0; span.has_tile(t, tile_size()); ++t) {
        for_own_packs<true, false>(t, span, [&](const Pack<A, V>& pack, int) { any_nan |= has_nan(pack); });
      }
      sums.add(0, one_or_nan<A>(any_nan));
    } else {
      for (std::int64_t t = 0; span.has_tile(t, tile_size()); ++t) {
        for_own_packs<true, keep>(t, span, [&](Pack<A, V>& pack, int) {
          if (keep && reference.base != A(0)) subtract(pack, reference.base);
          add_exponentials<keep>(math, pack, reference, sums);
        });
      }
    }
    rim.template add_exponential<keep, sum_for<op>>(math, reference, sums);
    return sums.all_lanes();
  }

  /// f(pack, its number in the tile) for this thread's packs of the t-th tile, read from scratch before or written
  /// after.
  template <bool read, bool write, class F>
  KOKKOS_INLINE_FUNCTION void for_own_packs(std::int64_t t, const Span& span, const F& f) const {
    const int first         = static_cast<int>(t) * tile_size() + walk.first;
    const int elements_held = span.window().end;
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) {
      const int place = first + k * walk.step;
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

/// What PackedStorage does, in team scratch: packs of a type narrower than the accumulator are kept as they were
/// loaded, which lets rows twice as long fit.
template <RowOperator op, class T, class A, int V, int K, bool has_rims>
struct PackedScratchStorage {
  static constexpr bool has_own_reference = false;

  using Tile  = PackedTile<T, V, K>;
  using Words = Pack<std::uint32_t, V / 2>;

  Words* packs;
  RimElement<A, has_rims> rim;
  PackWalk walk;

  KOKKOS_INLINE_FUNCTION PackedScratchStorage(A* scratch, const RowGroup& group)
      : packs(reinterpret_cast<Words*>(scratch)), walk(PackWalk::of<V>(group.rank, group.size)) {}

  template <class Row, class Math>
  KOKKOS_INLINE_FUNCTION typename Math::State reduce(const Row& row, const RowPart& part, const Math& math, int lanes) {
    const Span& span = part.packs;
    rim.load(row, part, math);
    A max = rim.larger(-Kokkos::Experimental::infinity_v<A>);
    for (std::int64_t t = 0; span.has_tile(t, tile_size()); ++t) {
      Tile tile;
      tile.load(row.template from<V>(span.start(t, tile_size())), walk, span.window(t, tile_size()), math);
      for_own_places(t, span, [&](int k, int place) { packs[place / V] = tile.word[k]; });
      max = max_ignoring_nan(max, tile.template max<A>());
    }
    const auto of_warp = math.exp.refer(reduce_lanes(max, 1, lanes, MaxJoin{}));
    const auto& at     = of_warp.at;
    PackSums<Math, V> sums;
    if (is_infinite<sum_for<op>, Math>(at)) {
      bool any_nan = false;
      for (std::int64_t t = 0; span.has_tile(t, tile_size()); ++t) any_nan |= kept(t, span).template has_nan<A>();
      sums.add(0, one_or_nan<A>(any_nan));
    } else {
      for (std::int64_t t = 0; span.has_tile(t, tile_size()); ++t) {
        kept(t, span).template for_packs<0, A>(
            [&](Pack<A, V>& pack) { add_exponentials<false>(math, pack, at, sums); });
      }
    }
    rim.template add_exponential<false, sum_for<op>>(math, at, sums);
    return {of_warp.R, sums.all_lanes()};
  }

  template <class Row, class SinkRow, class Math, class FinishRow>
  KOKKOS_INLINE_FUNCTION void write(const Row&, const SinkRow& sink, const RowPart& part, const Math& math,
                                    const FinishRow& finish) const {
    const Span& span = part.packs;
    const auto value = [&](A x) { return finish.from_input(math, x); };
    for (std::int64_t t = 0; span.has_tile(t, tile_size()); ++t) {
      kept(t, span).template store<0, A>(sink.template from<V>(span.start(t, tile_size())), walk,
                                         span.window(t, tile_size()), value);
    }
    rim.store(sink, part, value);
  }

 private:
  KOKKOS_INLINE_FUNCTION int tile_size() const { return K * walk.step; }

  /// The t-th tile from scratch, -inf where the row has ended.
  KOKKOS_INLINE_FUNCTION Tile kept(std::int64_t t, const Span& span) const {
    const T nothing = static_cast<T>(-Kokkos::Experimental::infinity_v<A>);
    Tile tile;
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) tile.word[k] = words_of(filled<T, V>(nothing));
    for_own_places(t, span, [&](int k, int place) { tile.word[k] = packs[place / V]; });
    return tile;
  }

  /// f(k, place in the row) for this thread's packs of the t-th tile.
  template <class F>
  KOKKOS_INLINE_FUNCTION void for_own_places(std::int64_t t, const Span& span, const F& f) const {
    const int first = static_cast<int>(t) * tile_size();
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) {
      if (first + walk.place(k) < span.window().end) f(k, first + walk.place(k));
    }
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_PLACEMENT_SCRATCH_HPP
