// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_ROW_IN_TEAM_HPP
#define KOKKOSNN_IMPL_GPU_ROW_IN_TEAM_HPP

#include <KokkosNN/impl/gpu/device/exchange.hpp>
#include <KokkosNN/impl/gpu/device/tile.hpp>
#include <KokkosNN/impl/gpu/placement/held_row.hpp>
#include <KokkosNN/impl/gpu/placement/online.hpp>
#include <KokkosNN/impl/gpu/placement/packed.hpp>
#include <KokkosNN/impl/gpu/placement/registers.hpp>
#include <KokkosNN/impl/gpu/placement/scratch.hpp>
#include <KokkosNN/impl/operators/softmax.hpp>

#include <Kokkos_Core.hpp>

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

#endif  // KOKKOSNN_IMPL_GPU_ROW_IN_TEAM_HPP
