// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_ROW_IN_CLUSTER_HPP
#define KOKKOSNN_IMPL_GPU_ROW_IN_CLUSTER_HPP

#include <KokkosNN/impl/gpu/device/cluster.hpp>
#include <KokkosNN/impl/gpu/device/exchange.hpp>
#include <KokkosNN/impl/gpu/device/staged_part.hpp>
#include <KokkosNN/impl/gpu/shared_row.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

// Kernel row_in_cluster: a row for a cluster of teams (CUDA, from Hopper on), each of which holds its part. A cluster
// runs at once, so no team has to be resident for long, and its teams write their states to each other's shared memory,
// which takes less time than split_row's status words in a busy memory. A cluster does one row, the next one comes with
// the next cluster: clusters that stay and loop over rows are slower.
// Each team asks for all of its part at once, by copies to shared memory, where rows allow it (`staged_tensors`).

namespace KokkosNN::Impl {

/// Functor of row_in_cluster. The Placement keeps K packs a thread in registers.
template <RowOperator op, int V, int K, class Placement, class Params, class Source, class Output>
struct RowInCluster : SharedRow<op, V, Placement, Params, Source, Output> {
  using Shared = SharedRow<op, V, Placement, Params, Source, Output>;
  using Shared::source, Shared::output, Shared::params, Shared::shares, Shared::part_of;
  using typename Shared::State, typename Shared::OpEpilogue;

  int scratch_bytes;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const std::int64_t row = cluster_number();
    const TeamOfRow mine{{team.team_rank(), team.team_size(), 0}, team_in_cluster()};
    const ClusterExchange<State> exchange(mine.group.rank, shares.parts);

    const auto input = source.row(row);
    const auto out   = output_row<OpEpilogue>(output, row);  // computed ahead of the loads, while registers are free
    Placement placement(nullptr, mine.group);
    const State state = reduce(team, mine, placement, input);
    this->prepare(mine, placement, input);
    const State all = join(team, mine, exchange, state);
    this->write(mine, placement, input, out, state, all);
  }

 private:
  /// Reduces the team's part, by way of shared memory where it can be staged.
  template <class Member, class Row>
  KOKKOS_INLINE_FUNCTION State reduce(const Member& team, const TeamOfRow& mine, Placement& placement,
                                      const Row& input) const {
    const auto part        = part_of(mine, input);
    constexpr int tensors  = staged_tensors<Row, V>;
    const auto reduce_from = [&](const auto& from) { return placement.reduce(from, part, params, mine.group.lanes()); };
    if constexpr (tensors == 0) {
      return reduce_from(input);
    } else {
      const auto staged = stage<V, K>(input, part, PackPositions::of<V>(mine.group.rank, mine.group.size),
                                      shared_address(team_scratch(team, 0, scratch_bytes)), scratch_bytes / tensors);
      await_copies();
      return reduce_from(staged);
    }
  }

  /// Joins the states of the row's threads, in one order in all teams.
  template <class Member>
  KOKKOS_INLINE_FUNCTION State join(const Member& team, const TeamOfRow& mine, const ClusterExchange<State>& exchange,
                                    const State& state) const {
    const State warp  = merge_warp<Placement::sums_warps>(params, state, mine.group.lanes());
    const State whole = Impl::exchange<true>(params, team, mine.group, static_cast<State*>(nullptr), 0, warp);
    exchange.open();
    if (mine.group.rank < shares.parts) exchange.send(whole, mine.number, mine.group.rank);
    exchange.await();
    State all;
    const int lane = mine.group.rank % warp_width();
    if (lane < shares.parts) all = exchange.state_of(lane);
    return merge_lanes(params, all, warp_width());
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_ROW_IN_CLUSTER_HPP
