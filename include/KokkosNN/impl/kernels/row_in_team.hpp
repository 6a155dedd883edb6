// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_KERNELS_ROW_IN_TEAM_HPP
#define KOKKOSNN_IMPL_KERNELS_ROW_IN_TEAM_HPP

#include <KokkosNN/impl/primitives/finish.hpp>
#include <KokkosNN/impl/primitives/lanes.hpp>
#include <KokkosNN/impl/primitives/tile.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>

// vector_lanes, team_registers, team_scratch, team_online: a row belongs to a group of threads of one team. One kernel;
// what differs is where the group keeps the row, the Storage:
//
//   storage.reduce(row, span, math, lanes)  -> the (reference, sum) of the thread; the reference is its warp's
//   storage.write(row, sink, span, finish)  -> finished values

namespace KokkosNN::Impl {

/// A row, or a part of one, in the registers of its group: K packs a thread.
template <RowOperator op, class A, int V, int K>
struct RegisterStorage {
  static constexpr bool keeps_row = true;

  Tile<A, V, K> tile;
  PackWalk walk;

  KOKKOS_INLINE_FUNCTION RegisterStorage(A*, const RowGroup& group) : walk(PackWalk::of<V>(group.rank, group.size)) {}

  template <class Row, class Math>
  KOKKOS_INLINE_FUNCTION typename Math::State reduce(const Row& row, const Span& span, const Math& math, int lanes) {
    tile.load(row.template from<V>(start(span)), walk, window(span), math);
    const A reference = math.exp.reference_of(reduce_lanes(tile.max(), 1, lanes, MaxJoin{}));
    return {reference, tile.template sum_of_exponentials<Finish<op>::keeps_exponentials>(
                           math, math.exp.at(finite_reference(reference)))};
  }

  template <class Row, class SinkRow, class Math, class FinishRow>
  KOKKOS_INLINE_FUNCTION void write(const Row&, const SinkRow& sink, const Span& span, const Math& math,
                                    const FinishRow& finish) {
    tile.store_kept(sink.template from<V>(start(span)), walk, window(span), math, finish);
  }

  /// Asks for what `reduce` of that row will load.
  template <class Row>
  KOKKOS_INLINE_FUNCTION void prefetch(const Row& row, const Span& span) const {
    const auto stretch = row.template from<V>(start(span));
    for (int k = 0; k < K; ++k) stretch.template prefetch_pack<V>(walk.place(k), window(span));
  }

 private:
  KOKKOS_INLINE_FUNCTION static std::int64_t start(const Span& span) { return span.origin - span.phase; }
  KOKKOS_INLINE_FUNCTION static Window window(const Span& span) {
    return {static_cast<int>(span.begin - span.origin), static_cast<int>(span.end - span.origin)};
  }
};

/// A row in team scratch; a thread touches only its own packs, so no barrier is needed between the passes. Packs go by
/// tiles of K, so that a thread has several loads in flight. On a GPU a pack is kept as chunks of 16 bytes, equal ones
/// of neighbouring threads side by side, as scratch is banked.
template <RowOperator op, class A, int V, int K>
struct ScratchStorage {
  static constexpr bool keeps_row = true;
  static constexpr int chunk      = native_lanes() > 1 && V * sizeof(A) > 16 ? int(16 / sizeof(A)) : V;

  A* elements;
  PackWalk walk;

  KOKKOS_INLINE_FUNCTION ScratchStorage(A* scratch, const RowGroup& group)
      : elements(scratch), walk(PackWalk::of<V>(group.rank, group.size)) {}

  template <class Row, class Math>
  KOKKOS_INLINE_FUNCTION typename Math::State reduce(const Row& row, const Span& span, const Math& math, int lanes) {
    A max = -Kokkos::Experimental::infinity_v<A>;
    for (std::int64_t t = 0; span.has_tile(t, tile_size()); ++t) {
      Tile<A, V, K> tile;
      tile.load(row.template from<V>(span.start(t, tile_size())), walk, span.window(t, tile_size()), math);
      max = max_ignoring_nan(max, tile.max());
      for_own_packs<false, true>(t, span, [&](Pack<A, V>& pack, int k) { pack = tile.pack[k]; });
    }
    const A reference = math.exp.reference_of(reduce_lanes(max, 1, lanes, MaxJoin{}));
    return {reference, sum(span, math, math.exp.at(finite_reference(reference)))};
  }

  template <class Row, class SinkRow, class Math, class FinishRow>
  KOKKOS_INLINE_FUNCTION void write(const Row&, const SinkRow& sink, const Span& span, const Math& math,
                                    const FinishRow& finish) const {
    for (std::int64_t t = 0; span.has_tile(t, tile_size()); ++t) {
      Tile<A, V, K> tile;
      for_own_packs<true, false>(t, span, [&](Pack<A, V>& pack, int k) { tile.pack[k] = pack; });
      tile.store_kept(sink.template from<V>(span.start(t, tile_size())), walk, span.window(t, tile_size()), math,
                      finish);
    }
  }

 private:
  KOKKOS_INLINE_FUNCTION int tile_size() const { return K * walk.step; }

  template <class Math>
  KOKKOS_INLINE_FUNCTION auto sum(const Span& span, const Math& math, const ExpReference<A>& reference) const {
    constexpr bool keep = Finish<op>::keeps_exponentials;
    PackSums<Math, V> sums;
    for (std::int64_t t = 0; span.has_tile(t, tile_size()); ++t) {
      for_own_packs<true, keep>(t, span, [&](Pack<A, V>& pack, int) {
        if (keep && reference.base != A(0)) subtract(pack, reference.base);
        add_exponentials<keep>(math, pack, reference, sums);
      });
    }
    return sums.all_lanes();
  }

  /// f(pack, its number in the tile) for this thread's packs of the t-th tile, read from scratch before or written
  /// after.
  template <bool read, bool write, class F>
  KOKKOS_INLINE_FUNCTION void for_own_packs(std::int64_t t, const Span& span, const F& f) const {
    const int first = static_cast<int>(t) * tile_size() + walk.first;
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) {
      const int place = first + k * walk.step;
      if (place >= span.end) continue;
      if constexpr (chunk == V) {
        f(*reinterpret_cast<Pack<A, V>*>(elements + place), k);
      } else {
        const int plane = static_cast<int>((span.end + V - 1) / V) * chunk;
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

/// A row that is nowhere but in memory: read once for (max, sum), again to write.
template <RowOperator op, class A, int V, int K>
struct OnlineStorage {
  static constexpr bool keeps_row = false;

  PackWalk walk;

  KOKKOS_INLINE_FUNCTION OnlineStorage(A*, const RowGroup& group) : walk(PackWalk::of<V>(group.rank, group.size)) {}

  template <class Row, class Math>
  KOKKOS_INLINE_FUNCTION typename Math::State reduce(const Row& row, const Span& span, const Math& math, int lanes) {
    const auto mine   = reduce_tiles<V, K, A>(row, span, walk, math);
    const A reference = reduce_lanes(mine.reference, 1, lanes, MaxJoin{});
    return {reference, rescaled(math, mine.sum, mine.reference, reference)};
  }

  template <class Row, class SinkRow, class Math, class FinishRow>
  KOKKOS_INLINE_FUNCTION void write(const Row& row, const SinkRow& sink, const Span& span, const Math& math,
                                    const FinishRow& finish) const {
    rewrite_tiles<V, K, A>(row, sink, span, walk, math, [&](A x) { return finish.from_input(math, x); });
  }

  template <class Row>
  KOKKOS_INLINE_FUNCTION void prefetch(const Row&, const Span&) const {}
};

/// The TeamPolicy functor: load, max, sum, store.
template <RowOperator op, int V, class Storage, class Math, class Source, class Sink>
struct RowInTeam {
  using A        = typename Math::accumulator;
  using State    = typename Math::State;
  using Finisher = Finish<op>;

  Source source;
  Sink sink;
  Math math;
  std::int64_t rows;
  std::int64_t cols;
  int lanes;          // threads of a group
  int groups;         // in a team
  int rows_per_team;  // on a GPU the groups in a team, on a host a multiple
  int scratch_level;
  int scratch_bytes;
  bool allow_shift;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const RowGroup group = RowGroup::of(team, lanes);
    auto* pairs          = static_cast<State*>(team_scratch(team, scratch_level, scratch_bytes));
    A* row_scratch       = reinterpret_cast<A*>(pairs + exchange_pairs(group.warps()));

    // A GPU's team takes one turn, unless there are more rows than a league can count; a host's takes many.
    int round = 0;
    KOKKOSNN_IMPL_NO_UNROLL
    for (std::int64_t block = std::int64_t(team.league_rank()) * rows_per_team; block < rows;
         block += std::int64_t(team.league_size()) * rows_per_team) {
      KOKKOS_IF_ON_DEVICE((do_row(team, group, block + group.index, pairs, row_scratch, round++);))
      KOKKOS_IF_ON_HOST((for (int i = 0; i < rows_per_team; i += groups) {
        do_row(team, group, block + i + group.index, pairs, row_scratch, round++);
      }))
    }
  }

 private:
  template <class Member>
  KOKKOS_INLINE_FUNCTION void do_row(const Member& team, const RowGroup& group, std::int64_t row, State* pairs,
                                     A* row_scratch, int round) const {
    // Groups past the last row take part in shuffles and barriers, but touch no memory.
    const bool is_row = row < rows;
    const auto input  = source.row(is_row ? row : 0);
    const auto output =
        output_row<Finisher>(sink, is_row ? row : 0);  // found ahead of the loads, while registers are free
    const Span span = Span::whole_row(is_row ? cols : 0, is_row && allow_shift ? input.template phase<V>() : 0);

    Storage storage(row_scratch, group);
    const State mine = storage.reduce(input, span, math, group.lanes());
    const State warp = {mine.reference, reduce_lanes(mine.sum, 1, group.lanes(), SumJoin{})};
    const State all  = exchange(math, team, group, pairs, round, warp);
    if (!is_row) return;

    if constexpr (Finisher::one_value_a_row) {
      if (group.rank == 0) sink.store(Finisher::value(math, all), output);
    } else {
      const typename Finisher::template Row<Math, A> finish(math, Storage::keeps_row ? mine.reference : all.reference,
                                                            all);
      storage.write(input, output, span, math, finish);
    }
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_KERNELS_ROW_IN_TEAM_HPP
