// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_PLACEMENT_ONLINE_HPP
#define KOKKOSNN_IMPL_GPU_PLACEMENT_ONLINE_HPP

#include <KokkosNN/impl/gpu/device/exchange.hpp>
#include <KokkosNN/impl/gpu/device/running_tiles.hpp>
#include <KokkosNN/impl/gpu/device/tile.hpp>
#include <KokkosNN/impl/gpu/placement/held_row.hpp>
#include <KokkosNN/impl/gpu/placement/packed.hpp>
#include <KokkosNN/impl/gpu/placement/registers.hpp>
#include <KokkosNN/impl/gpu/placement/scratch.hpp>
#include <KokkosNN/impl/operators/softmax.hpp>
#include <KokkosNN/impl/protocol.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

// Placement of rows that stay in memory and are read twice.

namespace KokkosNN::Impl {

/// Placement of rows that are only in memory: read once for (max, sum), again to write. If `holds`, the tile that was
/// read last is not read again.
template <RowOperator op, class A, int V, int K, bool holds = false>
struct OnlinePlacement : PlacementDefaults {
  PackPositions positions;
  LastTile<A, V, K, holds> last;

  KOKKOS_INLINE_FUNCTION OnlinePlacement(A*, const RowGroup& group)
      : positions(PackPositions::of<V>(group.rank, group.size)) {}

  template <class Row, class Params, class Observer = const NoObserver>
  KOKKOS_INLINE_FUNCTION typename Params::State reduce(const Row& row, const RowPart& part, const Params& params,
                                                       int lanes, Observer& observer = NoObserver{}) {
    const auto mine   = reduce_tiles<sum_for<op>>(row, part, positions, params, observer, last);
    const A reference = reduce_lanes(mine.reference, 1, lanes, MaxJoin{});
    return {reference, rescaled(params, mine.sum, mine.reference, reference)};
  }

  template <class Row, class OutputRow, class Params, class RowEpilogue>
  KOKKOS_INLINE_FUNCTION void write(const Row& row, const OutputRow& output, const RowPart& part, const Params& params,
                                    const RowEpilogue& epilogue) const {
    if constexpr (requires { epilogue.from_differences(); }) {
      const auto exp = epilogue.from_differences();
      rewrite_columns(row, output, part, positions, params, last, epilogue.reference.base,
                      [&](A d, std::int64_t) { return exp(params.exp, d); });
    } else {
      write_columns(row, output, part, params, [&](A x, std::int64_t) { return epilogue.from_input(params, x); });
    }
  }

  template <class Row, class OutputRow, class Params, class F>
  KOKKOS_INLINE_FUNCTION void write_columns(const Row& row, const OutputRow& output, const RowPart& part,
                                            const Params& params, const F& value) const {
    rewrite_columns(row, output, part, positions, params, last, A(0), value);
  }

  template <class Row>
  KOKKOS_INLINE_FUNCTION void prefetch(const Row&, const RowPart&) const {}
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_PLACEMENT_ONLINE_HPP
