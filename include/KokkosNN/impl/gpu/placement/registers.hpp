// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_PLACEMENT_REGISTERS_HPP
#define KOKKOSNN_IMPL_GPU_PLACEMENT_REGISTERS_HPP

#include <KokkosNN/impl/gpu/device/exchange.hpp>
#include <KokkosNN/impl/gpu/device/tile.hpp>
#include <KokkosNN/impl/gpu/placement/held_row.hpp>
#include <KokkosNN/impl/operators/softmax.hpp>
#include <KokkosNN/impl/protocol.hpp>

#include <Kokkos_Core.hpp>

// Placement of rows in registers, in the accumulator type.

namespace KokkosNN::Impl {

/// Placement in registers, in the accumulator type: K packs a thread, and its element of the edges.
template <RowOperator op, class A, int V, int K, bool has_edges>
struct RegisterPlacement : HeldRow<Tile<A, V, K>, A, V, K, has_edges>, PlacementDefaults {
  static constexpr bool has_own_reference = true;
  static constexpr bool sums_warps        = true;

  using Held = HeldRow<Tile<A, V, K>, A, V, K, has_edges>;
  using Held::load, Held::edge, Held::tile, Held::positions;

  KOKKOS_INLINE_FUNCTION RegisterPlacement(A*, const RowGroup& group) : Held(group) {}

  template <class Row, class Params, class Observer = const NoObserver>
  KOKKOS_INLINE_FUNCTION typename Params::State reduce(const Row& row, const RowPart& part, const Params& params,
                                                       int lanes, Observer& observer = NoObserver{}) {
    return reduce(row, part, params, JoinOfLanes{lanes}, observer);
  }

  /// Reduces; `join` makes the threads of the row, or of a warp of it, agree on a maximum and a sum.
  template <class Row, class Params, class Join, class Observer = const NoObserver>
  KOKKOS_INLINE_FUNCTION typename Params::State reduce(const Row& row, const RowPart& part, const Params& params,
                                                       const Join& join, Observer& observer = NoObserver{}) {
    constexpr bool keep = Epilogue<op>::keeps_exponentials;
    load(row, part, params);
    show_tile<V, K>(tile, part.packs.begin, positions, part.packs.window(), observer);
    edge.show(part, observer);
    const auto used   = packs_in_use<V, Row>(positions, part.packs.window(), join.lanes);
    const auto joined = params.exp.refer(join.max(edge.larger(tile.max(used))));
    PackSums<Params, V> sums;
    tile.template add_exponentials<leaves_if<keep>, sum_for<op>>(params, joined.at, sums, used);
    edge.template add_exponential<keep, sum_for<op>>(params, joined.at, sums);
    constexpr int terms = K * V + 1;  // with the edge
    return {joined.R, join.template sum<terms>(sums)};
  }

  template <class Row, class OutputRow, class Params, class RowEpilogue>
  KOKKOS_INLINE_FUNCTION void write(const Row&, const OutputRow& output, const RowPart& part, const Params& params,
                                    const RowEpilogue& epilogue) {
    tile.store_kept(output.template from<V>(part.packs.begin), positions, part.packs.window(), params, epilogue);
    edge.store(output, part, [&](A kept) { return epilogue(params, kept); });
  }

  template <class Row, class OutputRow, class Params, class F>
  KOKKOS_INLINE_FUNCTION void write_columns(const Row&, const OutputRow& output, const RowPart& part, const Params&,
                                            const F& value) const {
    const auto columns_from = output.template from<V>(part.packs.begin);
    tile.store_columns(columns_from, part.packs.begin, positions, part.packs.window(), value);
    edge.store(output, part, [&](A x) { return value(x, part.edge); });
  }

  /// Writes a row that was loaded, but not reduced.
  template <class OutputRow, class Params, class RowEpilogue>
  KOKKOS_INLINE_FUNCTION void write_from_input(const OutputRow& output, const RowPart& part, const Params& params,
                                               const RowEpilogue& epilogue) const {
    const auto value = [&](A x) { return epilogue.from_input(params, x); };
    tile.store(output.template from<V>(part.packs.begin), positions, part.packs.window(), value);
    edge.store(output, part, value);
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_PLACEMENT_REGISTERS_HPP
