// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_ROW_IN_LANES_HPP
#define KOKKOSNN_IMPL_GPU_ROW_IN_LANES_HPP

#include <KokkosNN/impl/gpu/device/exchange.hpp>
#include <KokkosNN/impl/gpu/device/tile.hpp>
#include <KokkosNN/impl/inputs/rows.hpp>
#include <KokkosNN/impl/operators/softmax.hpp>
#include <KokkosNN/impl/protocol.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

// Kernel RowInLanes: contiguous rows that a warp has alone or several of.

namespace KokkosNN::Impl {

/// Kernel vector_lanes of a GPU for contiguous rows within a warp. It does what RowInTeam does, without all that serves
/// other rows: all threads of a row have one reference, no warp waits for another, and a team processes rows once. In
/// rows so short the instructions around the elements are as many as those for them. It rounds otherwise than
/// RowInTeam, so batch-invariant rows do without it.
template <RowOperator op, int V, class Placement, class Params, class Source, class Output>
struct RowInLanes {
  using A          = typename Params::accumulator;
  using State      = typename Params::State;
  using OpEpilogue = Epilogue<op>;
  static_assert(KernelParts<Placement, Params, Source, Output, OpEpilogue>);

  // Small, see `most_argument_bytes`.
  Source source;
  Output output;
  std::int64_t rows;
  Params params;
  int cols;
  int lanes;              // threads of a row, a power of two
  int lane_bits;          // logarithm of `lanes`
  int prefetching_teams;  // number of teams, the first ones, that prefetch the rows of later ones

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const int thread         = team.team_rank();
    const std::int64_t first = std::int64_t(team.league_rank()) * (team.team_size() >> lane_bits);
    const std::int64_t mine  = first + (thread >> lane_bits);
    // Lanes beyond the last row take part in shuffles, but touch no memory.
    const bool is_row      = mine < rows;
    const std::int64_t row = is_row ? mine : 0;
    const RowGroup group{thread & (lanes - 1), lanes, 0};
    const auto input = source.row(row);
    const auto out   = output_row<OpEpilogue>(output, row);  // computed ahead of the loads, while registers are free
    const auto part  = RowPart::whole<V>(input, is_row ? cols : 0, group.rank);

    Placement placement(nullptr, group);
    const State all = placement.reduce(input, part, params, lanes);
    prefetch_later_rows(team, source, first, prefetching_teams);
    if (!is_row) return;

    if constexpr (OpEpilogue::one_value_a_row) {
      if (group.rank == 0) output.store(OpEpilogue::value(params, all), out);
    } else {
      using RowEpilogue = typename OpEpilogue::template Row<Params, A>;
      placement.write(input, out, part, params, short_row_epilogue<RowEpilogue>(params, all));
    }
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_ROW_IN_LANES_HPP
