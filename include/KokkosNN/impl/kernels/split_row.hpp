// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_KERNELS_SPLIT_ROW_HPP
#define KOKKOSNN_IMPL_KERNELS_SPLIT_ROW_HPP

#include <KokkosNN/impl/primitives/finish.hpp>
#include <KokkosNN/impl/primitives/lanes.hpp>
#include <KokkosNN/impl/primitives/mailbox.hpp>
#include <KokkosNN/impl/primitives/tile.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>

// split_row: several teams share a row. Each reads its part, publishes its (max, sum), waits for its siblings' and
// writes. Teams that wait must be running at the same time: the planner makes the league no larger than what the device
// surely holds, and teams number themselves in the order in which they start, so that those that share a row started
// together.

namespace KokkosNN::Impl {

/// Words of global memory that a launch needs, zeroed before it: a ticket counter and a mailbox a team.
template <class A>
constexpr std::size_t split_row_workspace_bytes(std::int64_t league_size) {
  return 64 + static_cast<std::size_t>(league_size) * sizeof(Mailbox<A>);
}

template <RowOperator op, int V, int K, class Math, class Source, class Sink>
struct SplitRow {
  using A        = typename Math::accumulator;
  using Finisher = Finish<op>;
  using T        = typename Source::value_type;

  Source source;
  Sink sink;
  Math math;
  std::int64_t rows;
  std::int64_t cols;
  int teams_per_row;
  std::int64_t share;  // elements of a row that a team has: whole packs
  int scratch_level;
  int scratch_bytes;
  bool allow_shift;
  char* workspace;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const RowGroup group{team.team_rank(), team.team_size(), 0};
    const int warps = group.warps();
    auto* scratch   = static_cast<char*>(team_scratch(team, scratch_level, scratch_bytes));
    auto* pairs     = reinterpret_cast<MaxSumExp<A>*>(scratch);
    auto* total     = pairs + exchange_pairs(warps);
    auto* ticket    = reinterpret_cast<int*>(total + 1);

    if (group.rank == 0) *ticket = Kokkos::atomic_fetch_add(reinterpret_cast<int*>(workspace), 1);
    team.team_barrier();
    const int part      = *ticket % teams_per_row;
    const int row_group = *ticket / teams_per_row;
    const int groups    = team.league_size() / teams_per_row;
    if (row_group >= groups) return;
    auto* mailboxes = reinterpret_cast<Mailbox<A>*>(workspace + 64) + std::int64_t(row_group) * teams_per_row;

    const auto reduce_and_publish = [&](std::int64_t turn, const MaxSumExp<A>& mine) {
      const MaxSumExp<A> warp = merge_lanes(mine, group.lanes(), math.exp.precisely());
      const MaxSumExp<A> all  = exchange(team, group, pairs, int(turn & 1), warp, math.exp.precisely());
      if (group.rank == 0) mailboxes[part].publish(turn, all);
    };

    const PackWalk walk  = PackWalk::of<V>(group.rank, group.size);
    const int tile_size  = K * walk.step;
    const bool is_single = share <= tile_size;
    RawTile<T, V, K> next;
    bool is_loaded = false;
    for (std::int64_t row = row_group, turn = 0; row < rows; row += groups, ++turn) {
      const auto input  = source.row(row);
      const auto output = output_row(row);
      const Span span   = span_of(input, part);
      Tile<A, V, K> tile;
      MaxSumExp<A> state;
      if (is_single) {
        if (!is_loaded) load(next, input, span, walk, tile_size);
        tile.widen(next, math.sign);
        state.max = math.exp.reference_of(tile.max());
        state.sum = tile.template sum_of_exponentials<Finisher::keeps_exponentials>(math, finite_reference(state.max));
      } else {
        state = reduce_tiles<V, K, A>(input, span, walk, math);
      }
      const A reference = state.max;
      reduce_and_publish(turn, state);

      // The next row's loads are in flight while the siblings' letters are.
      is_loaded = is_single && row + groups < rows;
      if (is_loaded) {
        const auto ahead = source.row(row + groups);
        load(next, ahead, span_of(ahead, part), walk, tile_size);
      }
      const MaxSumExp<A> all = await_siblings(team, group, mailboxes, turn, total);

      if constexpr (Finisher::one_value_a_row) {
        if (part == 0 && group.rank == 0) sink.store(Finisher::value(math, all), output);
      } else {
        const typename Finisher::template Row<Math, A> finish(math, is_single ? reference : all.max, all);
        if (is_single) {
          tile.store_kept(output.template from<V>(span.start(0, tile_size)), walk, span.window(0, tile_size), math,
                          finish);
        } else {
          rewrite_tiles<V, K, A>(input, output, span, walk, math, [&](A x) { return finish.from_input(math, x); });
        }
      }
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

  /// This team's part of a row: whole packs, as many as each of the others has, but for the last ones.
  template <class Row>
  KOKKOS_INLINE_FUNCTION Span span_of(const Row& row, int part) const {
    const Span whole         = Span::whole_row(cols, allow_shift ? row.template phase<V>() : 0);
    const std::int64_t begin = share * part < whole.end ? share * part : whole.end;
    const std::int64_t end   = begin + share < whole.end ? begin + share : whole.end;
    return {begin, begin > whole.begin ? begin : whole.begin, end, whole.phase};
  }

  template <class Row>
  KOKKOS_INLINE_FUNCTION void load(RawTile<T, V, K>& raw, const Row& row, const Span& span, const PackWalk& walk,
                                   int tile_size) const {
    raw.load(row.template from<V>(span.start(0, tile_size)), walk, span.window(0, tile_size), math.template pad<T>());
  }

  /// Warp 0 reads the siblings' letters, everybody gets their union; all parts join them in the same order.
  template <class Member>
  KOKKOS_INLINE_FUNCTION MaxSumExp<A> await_siblings(const Member& team, const RowGroup& group,
                                                     const Mailbox<A>* mailboxes, std::int64_t turn,
                                                     MaxSumExp<A>* total) const {
    team.team_barrier();  // all have read the last total
    const int lanes = group.lanes();
    if (group.rank < lanes) {
      MaxSumExp<A> all;
      for (int p = group.rank; p < teams_per_row; p += lanes) {
        all = merge_with(all, mailboxes[p].await(turn), math.exp.precisely());
      }
      all = merge_lanes(all, lanes, math.exp.precisely());
      if (group.rank == 0) *total = all;
    }
    team.team_barrier();
    return *total;
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_KERNELS_SPLIT_ROW_HPP
