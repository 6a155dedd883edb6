// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_SHARED_ROW_HPP
#define KOKKOSNN_IMPL_GPU_SHARED_ROW_HPP

#include <KokkosNN/impl/gpu/device/exchange.hpp>
#include <KokkosNN/impl/gpu/device/tile.hpp>
#include <KokkosNN/impl/gpu/row_in_team.hpp>
#include <KokkosNN/impl/operators/softmax.hpp>
#include <KokkosNN/impl/protocol.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

// Rows that several teams share, each of which has a part: what the kernels of split_row and row_in_cluster have in
// common.

namespace KokkosNN::Impl {

/// Parts of rows: their number and size.
struct RowShares {
  std::int64_t cols;
  int parts;           // of a row
  std::int64_t share;  // elements of a part: whole packs

  template <int V, class Row>
  KOKKOS_INLINE_FUNCTION RowPart part(const Row& row, int rank, int number) const {
    return RowPart::share<V>(row, cols, rank, share * number, share);
  }
};

/// A team of those that share a row.
struct TeamOfRow {
  RowGroup group;  ///< its threads
  int number;      ///< its part of the row
};

template <RowOperator op, int V, class Placement, class Params, class Source, class Output>
struct SharedRow {
  using A          = typename Params::accumulator;
  using State      = typename Params::State;
  using OpEpilogue = Epilogue<op>;
  static_assert(KernelParts<Placement, Params, Source, Output, OpEpilogue>);

  Source source;
  Output output;
  Params params;
  RowShares shares;  // a part for each of the row's teams

  KOKKOS_INLINE_FUNCTION auto part_of(const TeamOfRow& team, const auto& row) const {
    return shares.template part<V>(row, team.group.rank, team.number);
  }

  /// True if one warp of a team collects facts that writing the row needs besides its elements, and shares them with
  /// the others, which have a barrier ahead.
  static constexpr bool finds_facts = warp_width() > 1 && is_joined<State>&& Placement::tells_facts;

  /// Collects the facts by the last warp: the first one has its peers' states to read.
  KOKKOS_INLINE_FUNCTION void find_facts(const TeamOfRow& team, const auto& input) const {
    const RowGroup& group = team.group;
    if (group.rank < (group.warps() - 1) * warp_width()) return;
    sync_lanes();
    const ColumnRange all_packs = RowPart::whole<V>(input, shares.cols, 0).packs;
    Placement::find_facts(input, all_packs, part_of(team, input).packs, team.number == 0, params,
                          group.rank == group.size - 1, *team_shared<typename Placement::Facts>());
  }

  /// Makes ready what the row's epilogue needs besides its elements, ahead of a barrier.
  KOKKOS_INLINE_FUNCTION void prepare(const TeamOfRow& team, Placement& placement, const auto& input) const {
    if constexpr (finds_facts) {
      find_facts(team, input);
    } else {
      prepare_write(placement, input, part_of(team, input), params);
    }
  }

  /// Writes the team's part, or the row's one value. `mine` is this thread's state of the part, `all` that of the row.
  KOKKOS_INLINE_FUNCTION void write(const TeamOfRow& team, Placement& placement, const auto& input, const auto& out,
                                    const State& mine, State all) const {
    if constexpr (finds_facts) {
      if (team.group.warps() == 1) sync_lanes();
      placement.take_facts(part_of(team, input), *team_shared<typename Placement::Facts>());
    }
    all = completed(params, input, all);
    if constexpr (OpEpilogue::one_value_a_row) {
      if (team.number == 0 && team.group.rank == 0) output.store(OpEpilogue::value(params, all), out);
    } else {
      using RowEpilogue = typename OpEpilogue::template Row<Params, A>;
      const auto epilogue =
          with_rounded_factor(make_epilogue<RowEpilogue>(params, Placement::has_own_reference ? mine : all, all));
      placement.write(input, out, part_of(team, input), params, epilogue);
      write_others<V>(input, out, shares.cols, std::int64_t(team.number) * team.group.size + team.group.rank,
                      std::int64_t(shares.parts) * team.group.size, params, epilogue);
    }
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_SHARED_ROW_HPP
