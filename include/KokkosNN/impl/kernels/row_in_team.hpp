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

/// A row in the registers of its group: K packs a thread.
template <RowOperator op, class A, int V, int K>
struct RegisterStorage {
  static constexpr bool keeps_row = true;

  Tile<A, V, K> tile;
  PackWalk walk;

  KOKKOS_INLINE_FUNCTION RegisterStorage(A*, const RowGroup& group) : walk(PackWalk::of<V>(group.rank, group.size)) {}

  template <class Row, class Math>
  KOKKOS_INLINE_FUNCTION MaxSumExp<A> reduce(const Row& row, const Span& span, const Math& math, int lanes) {
    tile.load(row.template from<V>(-span.phase), walk, window(span), math);
    const A largest   = reduce_lanes(tile.max(), 1, lanes, MaxJoin{});
    const A reference = math.exp.reference_of(largest);
    A sum = tile.template sum_of_exponentials<Finish<op>::keeps_exponentials>(math, finite_reference(reference));
    if (walk.first / V % lanes == 0) sum += math.exp.correction(largest, reference);
    return {reference, sum};
  }

  template <class Row, class SinkRow, class Math, class FinishRow>
  KOKKOS_INLINE_FUNCTION void write(const Row&, const SinkRow& sink, const Span& span, const Math& math,
                                    const FinishRow& finish) {
    tile.store_kept(sink.template from<V>(-span.phase), walk, window(span), math, finish);
  }

 private:
  KOKKOS_INLINE_FUNCTION static Window window(const Span& span) { return {span.phase, static_cast<int>(span.end)}; }
};

/// A row in team scratch; a thread touches only its own packs, so no barrier is needed between the passes.
template <RowOperator op, class A, int V>
struct ScratchStorage {
  static constexpr bool keeps_row = true;
  static constexpr int block      = 16;  // packs that are summed by lanes before the sum goes into the two-word total

  Pack<A, V>* row_packs;
  int first, step;

  KOKKOS_INLINE_FUNCTION ScratchStorage(A* scratch, const RowGroup& group)
      : row_packs(reinterpret_cast<Pack<A, V>*>(scratch)), first(group.rank), step(group.size) {}

  template <class Row, class Math>
  KOKKOS_INLINE_FUNCTION MaxSumExp<A> reduce(const Row& row, const Span& span, const Math& math, int lanes) {
    using T             = typename Row::value_type;
    const auto stretch  = row.template from<V>(-span.phase);
    const Window window = {span.phase, static_cast<int>(span.end)};
    const int packs     = count(span);
    Pack<A, V> maxima   = filled<A, V>(-Kokkos::Experimental::infinity_v<A>);
    for (int p = first; p < packs; p += step) {
      const auto raw = stretch.template load_pack<V>(p * V, window, math.template pad<T>());
      widen(row_packs[p], raw, math.sign);
      raise_maxima(maxima, row_packs[p]);
    }
    const A max       = reduce_lanes(largest(maxima), 1, lanes, MaxJoin{});
    const A reference = math.exp.reference_of(max);
    const A partial   = sum(packs, math, finite_reference(reference));
    return {reference, first % lanes == 0 ? partial + math.exp.correction(max, reference) : partial};
  }

  template <class Row, class SinkRow, class Math, class FinishRow>
  KOKKOS_INLINE_FUNCTION void write(const Row&, const SinkRow& sink, const Span& span, const Math& math,
                                    const FinishRow& finish) const {
    using T             = typename SinkRow::value_type;
    const auto stretch  = sink.template from<V>(-span.phase);
    const Window window = {span.phase, static_cast<int>(span.end)};
    const int packs     = count(span);
    for (int p = first; p < packs; p += step) {
      stretch.template store_pack<V>(narrowed<T>(row_packs[p], [&](A kept) { return finish(math, kept); }), p * V,
                                     window);
    }
  }

 private:
  KOKKOS_INLINE_FUNCTION static int count(const Span& span) { return static_cast<int>((span.end + V - 1) / V); }

  template <class Math>
  KOKKOS_INLINE_FUNCTION A sum(int packs, const Math& math, A reference) {
    RunningSum<A> running;
    for (int p = first; p < packs;) {
      Pack<A, V> sums = filled<A, V>(A(0));
      for (int b = 0; b < block && p < packs; ++b, p += step) {
        add_exponentials<Finish<op>::keeps_exponentials>(math, row_packs[p], reference, sums);
      }
      running.add(total(sums));
    }
    return running.sum + running.low;
  }
};

/// A row that is nowhere but in memory: read once for (max, sum), again to write.
template <RowOperator op, class A, int V, int K>
struct OnlineStorage {
  static constexpr bool keeps_row = false;

  PackWalk walk;

  KOKKOS_INLINE_FUNCTION OnlineStorage(A*, const RowGroup& group) : walk(PackWalk::of<V>(group.rank, group.size)) {}

  template <class Row, class Math>
  KOKKOS_INLINE_FUNCTION MaxSumExp<A> reduce(const Row& row, const Span& span, const Math& math, int lanes) {
    MaxSumExp<A> mine = reduce_tiles<V, K, A>(row, span, walk, math);
    const A max       = reduce_lanes(mine.max, 1, lanes, MaxJoin{});
    if (mine.max > -Kokkos::Experimental::infinity_v<A>) mine.sum *= math.exp.precise(mine.max, max);
    return {max, mine.sum};
  }

  template <class Row, class SinkRow, class Math, class FinishRow>
  KOKKOS_INLINE_FUNCTION void write(const Row& row, const SinkRow& sink, const Span& span, const Math& math,
                                    const FinishRow& finish) const {
    rewrite_tiles<V, K, A>(row, sink, span, walk, math, [&](A x) { return finish.from_input(math, x); });
  }
};

/// The TeamPolicy functor: load, max, sum, store.
template <RowOperator op, int V, class Storage, class Math, class Source, class Sink>
struct RowInTeam {
  using A        = typename Math::accumulator;
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
    auto* pairs          = static_cast<MaxSumExp<A>*>(team_scratch(team, scratch_level, scratch_bytes));
    A* row_scratch       = reinterpret_cast<A*>(pairs + exchange_pairs(group.warps()));

    // A GPU's team takes one turn, unless there are more rows than a league can count; a host's takes many.
    int round = 0;
#pragma unroll 1
    for (std::int64_t block = std::int64_t(team.league_rank()) * rows_per_team; block < rows;
         block += std::int64_t(team.league_size()) * rows_per_team) {
      KOKKOS_IF_ON_DEVICE((do_row(team, group, block + group.index, pairs, row_scratch, round++);))
      KOKKOS_IF_ON_HOST((for (int i = 0; i < rows_per_team; i += groups) {
        do_row(team, group, block + i + group.index, pairs, row_scratch, round++);
      }))
    }
  }

 private:
  /// The sink's row, or its number where a row has only one value.
  KOKKOS_INLINE_FUNCTION auto output_row(std::int64_t row) const {
    if constexpr (Finisher::one_value_a_row) {
      return row;
    } else {
      return sink.row(row);
    }
  }

  template <class Member>
  KOKKOS_INLINE_FUNCTION void do_row(const Member& team, const RowGroup& group, std::int64_t row, MaxSumExp<A>* pairs,
                                     A* row_scratch, int round) const {
    // Groups past the last row take part in shuffles and barriers, but touch no memory.
    const bool is_row = row < rows;
    const auto input  = source.row(is_row ? row : 0);
    const auto output = output_row(is_row ? row : 0);  // found ahead of the loads, while registers are free
    const Span span   = Span::whole_row(is_row ? cols : 0, is_row && allow_shift ? input.template phase<V>() : 0);

    Storage storage(row_scratch, group);
    const MaxSumExp<A> mine = storage.reduce(input, span, math, group.lanes());
    const MaxSumExp<A> warp = {mine.max, sum_lanes(mine.sum, group.lanes())};
    const MaxSumExp<A> all  = exchange(team, group, pairs, round, warp, math.exp.precisely());
    if (!is_row) return;

    if constexpr (Finisher::one_value_a_row) {
      if (group.rank == 0) sink.store(Finisher::value(math, all), output);
    } else {
      const typename Finisher::template Row<Math, A> finish(math, Storage::keeps_row ? mine.max : all.max, all);
      storage.write(input, output, span, math, finish);
    }
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_KERNELS_ROW_IN_TEAM_HPP
