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
//   storage.reduce(row, part, math, lanes)        -> the thread's state: (reference, sum), the reference being its
//                                                    warp's; of a gradient a sum. May show an observer the logits
//   storage.write(row, sink, part, math, finish)  -> finished values, from what is relative to the warp's reference if
//                                                    has_own_reference, else from the input itself
//   storage.write_columns(row, sink, part, math, value)   the same by value(logit, column), where logits are kept
//   storage.prepare_write(row, part, math)        -> behind reduce, ahead of what all threads wait for; where there is
//                                                    something to prepare

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

/// In the accumulator type.
template <RowOperator op, class A, int V, int K, bool has_rims>
struct RegisterStorage : HeldRow<Tile<A, V, K>, A, V, K, has_rims> {
  static constexpr bool has_own_reference = true;
  static constexpr bool sums_warps        = true;

  using Held = HeldRow<Tile<A, V, K>, A, V, K, has_rims>;
  using Held::load, Held::rim, Held::tile, Held::walk;

  KOKKOS_INLINE_FUNCTION RegisterStorage(A*, const RowGroup& group) : Held(group) {}

  template <class Row, class Math, class Observer = const NoObserver>
  KOKKOS_INLINE_FUNCTION typename Math::State reduce(const Row& row, const RowPart& part, const Math& math, int lanes,
                                                     Observer& observer = NoObserver{}) {
    return reduce(row, part, math, JoinOfLanes{lanes}, observer);
  }

  /// `join` is how the threads of the row, or of a warp of it, agree on a maximum and a sum.
  template <class Row, class Math, class Join, class Observer = const NoObserver>
  KOKKOS_INLINE_FUNCTION typename Math::State reduce(const Row& row, const RowPart& part, const Math& math,
                                                     const Join& join, Observer& observer = NoObserver{}) {
    constexpr bool keep = Finish<op>::keeps_exponentials;
    load(row, part, math);
    show_tile<V, K>(tile, part.packs.begin, walk, part.packs.window(), observer);
    rim.show(part, observer);
    const auto used   = packs_in_use<V, Row>(walk, part.packs.window(), join.lanes);
    const auto joined = math.exp.refer(join.max(rim.larger(tile.max(used))));
    PackSums<Math, V> sums;
    tile.template add_exponentials<leaves_if<keep>, sum_for<op>>(math, joined.at, sums, used);
    rim.template add_exponential<keep, sum_for<op>>(math, joined.at, sums);
    constexpr int terms = K * V + 1;  // with the rim
    return {joined.R, join.template sum<terms>(sums)};
  }

  template <class Row, class SinkRow, class Math, class FinishRow>
  KOKKOS_INLINE_FUNCTION void write(const Row&, const SinkRow& sink, const RowPart& part, const Math& math,
                                    const FinishRow& finish) {
    tile.store_kept(sink.template from<V>(part.packs.begin), walk, part.packs.window(), math, finish);
    rim.store(sink, part, [&](A kept) { return finish(math, kept); });
  }

  template <class Row, class SinkRow, class Math, class F>
  KOKKOS_INLINE_FUNCTION void write_columns(const Row&, const SinkRow& sink, const RowPart& part, const Math&,
                                            const F& value) const {
    const auto stretch = sink.template from<V>(part.packs.begin);
    tile.store_columns(stretch, part.packs.begin, walk, part.packs.window(), value);
    rim.store(sink, part, [&](A x) { return value(x, part.rim); });
  }

  /// What was loaded, but not reduced.
  template <class SinkRow, class Math, class FinishRow>
  KOKKOS_INLINE_FUNCTION void write_from_input(const SinkRow& sink, const RowPart& part, const Math& math,
                                               const FinishRow& finish) const {
    const auto value = [&](A x) { return finish.from_input(math, x); };
    tile.store(sink.template from<V>(part.packs.begin), walk, part.packs.window(), value);
    rim.store(sink, part, value);
  }
};

/// For types narrower than the accumulator: packs stay as they were loaded, which takes half of the registers or less,
/// and the exponentials are computed once more to write. Not for an operator that makes other logits of them.
template <RowOperator op, class T, class A, int V, int K, bool has_rims>
struct PackedStorage : HeldRow<PackedTile<T, V, K>, A, V, K, has_rims> {
  static constexpr bool has_own_reference = false;

  using Held = HeldRow<PackedTile<T, V, K>, A, V, K, has_rims>;
  using Held::load, Held::rim, Held::tile, Held::walk;

  KOKKOS_INLINE_FUNCTION PackedStorage(A*, const RowGroup& group) : Held(group) {}

  template <class Row, class Math>
  KOKKOS_INLINE_FUNCTION typename Math::State reduce(const Row& row, const RowPart& part, const Math& math, int lanes) {
    load(row, part, math);
    const auto of_warp  = math.exp.refer(reduce_lanes(rim.larger(tile.template max<A>()), 1, lanes, MaxJoin{}));
    const auto& at_warp = of_warp.at;
    PackSums<Math, V> sums;
    if (at_warp.base == A(0)) {  // nearly always, and saves a subtraction
      tile.template for_packs<1, A>([&](Pack<A, V>& pack) { add_exponentials<true>(math, pack, at_warp, sums); });
    } else {
      const A base = opaque(at_warp.base);  // keeps nvcc from unpacking all packs ahead of both branches
      tile.template for_packs<1, A>([&](Pack<A, V>& pack) {
        is_infinite<sum_for<op>, Math>(at_warp) ? make_zeros_of_numbers(pack) : subtract(pack, base);
        add_exponentials<true>(math, pack, at_warp, sums);
      });
    }
    rim.template add_exponential<false, sum_for<op>>(math, at_warp, sums);
    return {of_warp.R, sums.all_lanes()};
  }

  template <class Row, class SinkRow, class Math, class FinishRow>
  KOKKOS_INLINE_FUNCTION void write(const Row&, const SinkRow& sink, const RowPart& part, const Math& math,
                                    const FinishRow& finish) const {
    write_from_input(sink, part, math, finish);
  }

  template <class Row, class SinkRow, class Math, class F>
  KOKKOS_INLINE_FUNCTION void write_columns(const Row&, const SinkRow& sink, const RowPart& part, const Math&,
                                            const F& value) const {
    using Y = typename SinkRow::value_type;
    store_tile<V, K>(sink.template from<V>(part.packs.begin), walk, part.packs.window(), [&](int k) {
      Pack<A, V> pack;
      tile.template unpack<2>(pack, k);
      Pack<Y, V> result;
      for (int v = 0; v < V; ++v) result[v] = static_cast<Y>(value(pack[v], part.packs.begin + walk.place(k) + v));
      return result;
    });
    rim.store(sink, part, [&](A x) { return value(x, part.rim); });
  }

  template <class SinkRow, class Math, class FinishRow>
  KOKKOS_INLINE_FUNCTION void write_from_input(const SinkRow& sink, const RowPart& part, const Math& math,
                                               const FinishRow& finish) const {
    const auto value = [&](A x) { return finish.from_input(math, x); };
    rim.store(sink, part, value);
    if constexpr (Finish<op>::keeps_exponentials) {
      if (finish.reference.base == A(0)) {  // as above
        store(sink, part, [&](A x) { return finish(math, math.exp.of_difference(x, finish.reference)); });
        return;
      }
    }
    store(sink, part, value);
  }

 private:
  template <class SinkRow, class F>
  KOKKOS_INLINE_FUNCTION void store(const SinkRow& sink, const RowPart& part, const F& value) const {
    tile.template store<2, A>(sink.template from<V>(part.packs.begin), walk, part.packs.window(), value);
  }
};

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

/// A row that is nowhere but in memory: read once for (max, sum), again to write; where `holds`, but for the tile that
/// was read last.
template <RowOperator op, class A, int V, int K, bool holds = false>
struct OnlineStorage {
  static constexpr bool has_own_reference = false;

  PackWalk walk;
  LastTile<A, V, K, holds> last;

  KOKKOS_INLINE_FUNCTION OnlineStorage(A*, const RowGroup& group) : walk(PackWalk::of<V>(group.rank, group.size)) {}

  template <class Row, class Math, class Observer = const NoObserver>
  KOKKOS_INLINE_FUNCTION typename Math::State reduce(const Row& row, const RowPart& part, const Math& math, int lanes,
                                                     Observer& observer = NoObserver{}) {
    const auto mine   = reduce_tiles<sum_for<op>>(row, part, walk, math, observer, last);
    const A reference = reduce_lanes(mine.reference, 1, lanes, MaxJoin{});
    return {reference, rescaled(math, mine.sum, mine.reference, reference)};
  }

  template <class Row, class SinkRow, class Math, class FinishRow>
  KOKKOS_INLINE_FUNCTION void write(const Row& row, const SinkRow& sink, const RowPart& part, const Math& math,
                                    const FinishRow& finish) const {
    if constexpr (requires { finish.from_differences(); }) {
      const auto exp = finish.from_differences();
      rewrite_columns(row, sink, part, walk, math, last, finish.reference.base,
                      [&](A d, std::int64_t) { return exp(math.exp, d); });
    } else {
      write_columns(row, sink, part, math, [&](A x, std::int64_t) { return finish.from_input(math, x); });
    }
  }

  template <class Row, class SinkRow, class Math, class F>
  KOKKOS_INLINE_FUNCTION void write_columns(const Row& row, const SinkRow& sink, const RowPart& part, const Math& math,
                                            const F& value) const {
    rewrite_columns(row, sink, part, walk, math, last, A(0), value);
  }

  template <class Row>
  KOKKOS_INLINE_FUNCTION void prefetch(const Row&, const RowPart&) const {}
};

/// The TeamPolicy functor: load, max, sum, store.
template <RowOperator op, int V, class Storage, class Math, class Source, class Sink>
struct RowInTeam {
  using A        = typename Math::accumulator;
  using State    = typename Math::State;
  using Finisher = Finish<op>;

  // Small, see `most_argument_bytes`.
  Source source;
  Sink sink;
  std::int64_t rows;
  std::int64_t cols;
  Math math;
  int lanes;  // threads of a group
  int scratch_level;
  int scratch_bytes;
  int rows_per_team;      // on a GPU the groups in a team, on a host a multiple
  int prefetching_teams;  // the first ones, which ask for the rows of later ones

  static RowInTeam of(const RowPlan& plan, const Source& source, const Sink& sink, const Math& math, std::int64_t rows,
                      std::int64_t cols, int prefetching_teams = 0) {
    return {source,
            sink,
            rows,
            cols,
            math,
            plan.lanes,
            plan.scratch_level,
            static_cast<int>(plan.scratch_bytes),
            plan.rows_per_team,
            prefetching_teams};
  }

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
      KOKKOS_IF_ON_DEVICE((do_row(team, group, block, group.index, pairs, row_scratch, round++);))
      KOKKOS_IF_ON_HOST((for (int i = 0; i < rows_per_team; i += team.team_size() / group.size) {
        do_row(team, group, block, i + group.index, pairs, row_scratch, round++);
      }))
    }
  }

 private:
  /// Row number `ahead` of those from `block` on.
  template <class Member>
  KOKKOS_INLINE_FUNCTION void do_row(const Member& team, const RowGroup& group, std::int64_t block, int ahead,
                                     State* pairs, A* row_scratch, int round) const {
    // Groups past the last row take part in shuffles and barriers, but touch no memory.
    const std::int64_t row = block + ahead;
    const bool is_row      = row < rows;
    const auto input  = source.row(is_row ? row : 0);
    const auto output =
        output_row<Finisher>(sink, is_row ? row : 0);  // found ahead of the loads, while registers are free
    const auto part = RowPart::whole<V>(input, is_row ? cols : 0, group.rank);

    Storage storage(row_scratch, group);
    const State mine = storage.reduce(input, part, math, group.lanes());
    prepare_write(storage, input, part, math);
    prefetch_later_rows(team, source, block, prefetching_teams);
    const State warp = merge_warp<sums_warps<Storage>>(math, mine, group.lanes());
    const State all  = completed(math, input, exchange(math, team, group, pairs, round, warp));
    if (!is_row) return;

    if constexpr (StateSink<Sink>) {
      if (group.rank == 0) sink.store_state(math, all, output);
    } else if constexpr (Finisher::one_value_a_row) {
      if (group.rank == 0) sink.store(Finisher::value(math, all), output);
    } else {
      using FinishRow   = typename Finisher::template Row<Math, A>;
      const auto finish = finish_row<FinishRow>(math, Storage::has_own_reference ? mine : all, all);
      storage.write(input, output, part, math, finish);
      write_others<V>(input, output, cols, group.rank, group.size, math, finish);
    }
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_KERNELS_ROW_IN_TEAM_HPP
