// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_FEW_ROWS_HPP
#define KOKKOSNN_IMPL_GPU_FEW_ROWS_HPP

#include <KokkosNN/impl/gpu/device/exchange.hpp>
#include <KokkosNN/impl/gpu/device/tile.hpp>
#include <KokkosNN/impl/gpu/row_in_team.hpp>
#include <KokkosNN/impl/operators/softmax.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace KokkosNN::Impl {

/// team_registers for so few rows that all of their teams run at once, so that a call takes as long as one row does:
/// what row_in_team does, but nothing that is there for other rows. A team has one row, no more and no less, and all of
/// its threads have a part of it. 64 x 1024 f32 in a graph on an H200: 1.83 us, by row_in_team 2.12, a copy by as many
/// Kokkos teams 1.59.
template <RowOperator op, int V, class Storage, class Math, class Source, class Sink>
struct FewRows {
  using A        = typename Math::accumulator;
  using State    = typename Math::State;
  using Finisher = Finish<op>;

  Source source;
  Sink sink;
  std::int64_t cols;
  Math math;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const RowGroup group{team.team_rank(), team.team_size(), 0};
    const auto input = source.row(team.league_rank());
    const auto part  = RowPart::whole<V>(input, cols, group.rank);
    Storage storage(nullptr, group);
    const State all = storage.reduce(input, part, math, JoinOfTeam<Member>{team, group.rank, group.warps()});

    if constexpr (Finisher::one_value_a_row) {
      if (group.rank == 0) sink.store(Finisher::value(math, all), team.league_rank());
    } else {
      using FinishRow = typename Finisher::template Row<Math, A>;
      storage.write(input, sink.row(team.league_rank()), part, math, FinishRow(math, all));
    }
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_FEW_ROWS_HPP
