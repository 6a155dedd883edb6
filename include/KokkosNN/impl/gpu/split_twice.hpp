// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_SPLIT_TWICE_HPP
#define KOKKOSNN_IMPL_GPU_SPLIT_TWICE_HPP

#include <KokkosNN/impl/gpu/device/exchange.hpp>
#include <KokkosNN/impl/gpu/device/tile.hpp>
#include <KokkosNN/impl/gpu/row_in_team.hpp>
#include <KokkosNN/impl/gpu/shared_row.hpp>
#include <KokkosNN/impl/operators/softmax.hpp>
#include <KokkosNN/impl/protocol.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

// Kernels of split_row in two launches, in which no team waits for another: the first leaves (max, sum) of every part
// of every row in memory; the second joins a row's states and reads the parts again, which of few rows come from the
// last-level cache.

namespace KokkosNN::Impl {

/// Functor of the first kernel: (max, sum) of part number p of row r goes to states[r * parts + p].
template <int V, class Placement, class Params, class Source>
struct ReduceParts {
  using State = typename Params::State;
  static_assert(RowPlacement<Placement> && RowsWithParams<Source, Params>);

  Source source;
  Params params;
  RowShares shares;
  int scratch_level;
  int scratch_bytes;
  State* states;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const RowGroup group{team.team_rank(), team.team_size(), 0};
    auto* pairs      = static_cast<State*>(team_scratch(team, scratch_level, scratch_bytes));
    const int row    = team.league_rank() / shares.parts;
    const int number = team.league_rank() - row * shares.parts;

    const auto input = source.row(row);
    const auto part  = shares.template part<V>(input, group.rank, number);
    Placement placement(nullptr, group);
    const State mine = placement.reduce(input, part, params, group.lanes());
    const State whole =
        exchange(params, team, group, pairs, 0, merge_warp<Placement::sums_warps>(params, mine, group.lanes()));
    if (group.rank == 0) states[team.league_rank()] = whole;
  }
};

/// Functor of the second kernel. Teams take the parts in reverse order: the last part read is the likeliest to be in a
/// cache. An operator with one value a row has one team a row.
template <RowOperator op, int V, class Placement, class Params, class Source, class Output>
struct WriteParts {
  using A          = typename Params::accumulator;
  using State      = typename Params::State;
  using OpEpilogue = Epilogue<op>;
  static_assert(KernelParts<Placement, Params, Source, Output, OpEpilogue>);

  Source source;
  Output output;
  Params params;
  RowShares shares;
  int scratch_level;
  int scratch_bytes;
  const State* states;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const RowGroup group{team.team_rank(), team.team_size(), 0};
    auto* pairs      = static_cast<State*>(team_scratch(team, scratch_level, scratch_bytes));
    const int index  = team.league_size() - 1 - team.league_rank();
    const int row    = OpEpilogue::one_value_a_row ? index : index / shares.parts;
    const auto out   = output_row<OpEpilogue>(output, row);
    const State* own = states + std::int64_t(row) * shares.parts;

    if constexpr (OpEpilogue::one_value_a_row) {
      const State all = join_parts(team, group, own, pairs);
      if (group.rank == 0) output.store(OpEpilogue::value(params, all), out);
    } else {
      const auto input = source.row(row);
      const int number = index - row * shares.parts;
      const auto part  = shares.template part<V>(input, group.rank, number);
      Placement placement(nullptr, group);
      placement.load(input, part, params);
      const State all     = completed(params, input, join_parts(team, group, own, pairs));
      using RowEpilogue   = typename OpEpilogue::template Row<Params, A>;
      const auto epilogue = with_rounded_factor(make_epilogue<RowEpilogue>(params, all, all));
      placement.write_from_input(out, part, params, epilogue);
      write_others<V>(input, out, shares.cols, std::int64_t(number) * group.size + group.rank,
                      std::int64_t(shares.parts) * group.size, params, epilogue);
    }
  }

 private:
  /// Joins a row's states, in the same order in every team.
  template <class Member>
  KOKKOS_INLINE_FUNCTION State join_parts(const Member& team, const RowGroup& group, const State* own,
                                          State* pairs) const {
    State all;
    for (int p = group.rank; p < shares.parts; p += group.size) all = merge_two(params, all, own[p]);
    return exchange(params, team, group, pairs, 0, merge_lanes(params, all, group.lanes()));
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_SPLIT_TWICE_HPP
