// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_FEW_ROWS_HPP
#define KOKKOSNN_IMPL_GPU_FEW_ROWS_HPP

#include <KokkosNN/impl/gpu/device/exchange.hpp>
#include <KokkosNN/impl/gpu/device/tile.hpp>
#include <KokkosNN/impl/gpu/row_in_team.hpp>
#include <KokkosNN/impl/operators/softmax.hpp>
#include <KokkosNN/impl/protocol.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

// Kernel FewRows: rows so few that all of their teams run at once.

namespace KokkosNN::Impl {

/// Kernel team_registers for so few rows that all of their teams run at once: the call takes as long as one row does
/// (CUDA, floats). It does what RowInTeam does, without all that serves other rows: no loop over rows, no groups in a
/// team, addresses that are equal in all threads, and two barriers (`JoinOfTeam`). A team has exactly one row, and each
/// of its threads a part of it.
///   64 x 1024 f32 in a graph, H200 | 1.83 us | RowInTeam 2.12, a copy by as many Kokkos teams 1.59
template <RowOperator op, int V, class Placement, class Params, class Source, class Output>
struct FewRows {
  using A          = typename Params::accumulator;
  using State      = typename Params::State;
  using OpEpilogue = Epilogue<op>;
  static_assert(KernelParts<Placement, Params, Source, Output, OpEpilogue>);

  Source source;
  Output output;
  std::int64_t cols;
  Params params;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const RowGroup group{team.team_rank(), team.team_size(), 0};
    const auto input = source.row(team.league_rank());
    const auto part  = RowPart::whole<V>(input, cols, group.rank);
    Placement placement(nullptr, group);
    const State all = placement.reduce(input, part, params, JoinOfTeam<Member>{team, group.rank, group.warps()});

    if constexpr (OpEpilogue::one_value_a_row) {
      if (group.rank == 0) output.store(OpEpilogue::value(params, all), team.league_rank());
    } else {
      using RowEpilogue = typename OpEpilogue::template Row<Params, A>;
      placement.write(input, output.row(team.league_rank()), part, params, RowEpilogue(params, all));
    }
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_FEW_ROWS_HPP
