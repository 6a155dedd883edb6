// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_ROW_IN_TEAM_HPP
#define KOKKOSNN_IMPL_GPU_ROW_IN_TEAM_HPP

#include <KokkosNN/impl/gpu/device/exchange.hpp>
#include <KokkosNN/impl/gpu/device/native_launch.hpp>
#include <KokkosNN/impl/gpu/device/tile.hpp>
#include <KokkosNN/impl/gpu/placement/held_row.hpp>
#include <KokkosNN/impl/gpu/placement/online.hpp>
#include <KokkosNN/impl/gpu/placement/packed.hpp>
#include <KokkosNN/impl/gpu/placement/registers.hpp>
#include <KokkosNN/impl/gpu/placement/scratch.hpp>
#include <KokkosNN/impl/operators/softmax.hpp>
#include <KokkosNN/impl/protocol.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

// Kernel of vector_lanes, team_registers, team_scratch and team_online: a group of threads of one team processes a row.
// One kernel serves all four; they differ in the Placement, which determines where the group keeps the row:
//
//   placement.reduce(row, part, params, lanes)
//       returns the thread's state: (reference, sum), with its warp's reference; of a gradient a sum. It may show an
//       observer the logits.
//   placement.write(row, output, part, params, epilogue)
//       stores results, from values relative to the warp's reference if has_own_reference, else from the input itself.
//   placement.write_columns(row, output, part, params, value)
//       stores value(logit, column), where logits are kept.
//   placement.prepare_write(row, part, params)
//       optional: runs behind reduce, before threads wait for each other.
//
// A GPU's kernel gets its arguments 256 bytes at a time, and reading the second 256 takes a small call 0.1 us. So
// RowInTeam has few (`most_argument_bytes`; Kokkos adds the rest), and members that a row does not need take no room
// (`ColumnStride`, `LooksAhead`). Rows at one distance carry one stride (`RowStride`): aligned rows always, misaligned
// rows in kernels of their own, beside those for rows over several axes.

namespace KokkosNN::Impl {

/// TeamPolicy functor: load, max, sum, store.
template <RowOperator op, int V, class Placement, class Params, class Source, class Output>
struct RowInTeam : NumberOfLaunch {
  using A          = typename Params::accumulator;
  using State      = typename Params::State;
  using OpEpilogue = Epilogue<op>;
  static_assert(KernelParts<Placement, Params, Source, Output, OpEpilogue>);

  // Small, see `most_argument_bytes`.
  Source source;
  Output output;
  std::int64_t rows;
  std::int64_t cols;
  Params params;
  int lanes;  // threads of a group
  int scratch_level;
  int scratch_bytes;
  int rows_per_team;      // on a GPU the groups in a team, on a host a multiple
  int prefetching_teams;  // number of teams, the first ones, that prefetch the rows of later ones

  template <class Plan>
  static RowInTeam of(const Plan& plan, const Source& source, const Output& output, const Params& params,
                      std::int64_t rows, std::int64_t cols, int prefetching_teams = 0) {
    return {{},
            source,
            output,
            rows,
            cols,
            params,
            plan.threads_per_row,
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

    const std::int64_t first =
        (std::int64_t(this->launch) * team.league_size() + team.league_rank()) * std::int64_t(rows_per_team);
    if constexpr (has_one_turn<Member>) {
      // Without the loop a thread has more registers.
      //   bf16, 64 packed elements a thread, rows of any form | 0 bytes spilled | by the loop 92
      if (first < rows) do_row(team, group, first, group.index, pairs, row_scratch, 0);
      return;
    }
    // A GPU's team runs the loop once, unless there are more rows than a league can count; a host's runs it many times.
    int round = 0;
    KOKKOSNN_IMPL_NO_UNROLL
    for (std::int64_t block = first; block < rows; block += std::int64_t(team.league_size()) * rows_per_team) {
      KOKKOS_IF_ON_DEVICE((do_row(team, group, block, group.index, pairs, row_scratch, round++);))
      KOKKOS_IF_ON_HOST((for (int i = 0; i < rows_per_team; i += team.team_size() / group.size) {
        do_row(team, group, block, i + group.index, pairs, row_scratch, round++);
      }))
    }
  }

 private:
  /// Processes row number `ahead` of those from `block` on.
  template <class Member>
  KOKKOS_INLINE_FUNCTION void do_row(const Member& team, const RowGroup& group, std::int64_t block, int ahead,
                                     State* pairs, A* row_scratch, int round) const {
    // Groups beyond the last row take part in shuffles and barriers, but touch no memory.
    const std::int64_t row = block + ahead;
    const bool is_row      = row < rows;
    const auto input       = source.row(is_row ? row : 0);
    const auto out =
        output_row<OpEpilogue>(output, is_row ? row : 0);  // computed ahead of the loads, while registers are free
    const auto part = RowPart::whole<V>(input, is_row ? cols : 0, group.rank);

    Placement placement(row_scratch, group);
    const State mine = placement.reduce(input, part, params, group.lanes());
    prepare_write(placement, input, part, params);
    prefetch_later_rows(team, source, block, prefetching_teams);
    const State warp = merge_warp<Placement::sums_warps>(params, mine, group.lanes());
    const State all  = completed(params, input, exchange(params, team, group, pairs, round, warp));
    if (!is_row) return;

    if constexpr (Output::takes_states) {
      if (group.rank == 0) output.store_state(params, all, out);
    } else if constexpr (OpEpilogue::one_value_a_row) {
      if (group.rank == 0) output.store(OpEpilogue::value(params, all), out);
    } else {
      using RowEpilogue   = typename OpEpilogue::template Row<Params, A>;
      const auto epilogue = make_epilogue<RowEpilogue>(params, Placement::has_own_reference ? mine : all, all);
      placement.write(input, out, part, params, epilogue);
      write_others<V>(input, out, cols, group.rank, group.size, params, epilogue);
    }
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_ROW_IN_TEAM_HPP
