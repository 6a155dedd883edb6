// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_PLACEMENT_REGISTERS_HPP
#define KOKKOSNN_IMPL_GPU_PLACEMENT_REGISTERS_HPP

#include <KokkosNN/impl/gpu/device/exchange.hpp>
#include <KokkosNN/impl/gpu/device/tile.hpp>
#include <KokkosNN/impl/gpu/placement/held_row.hpp>
#include <KokkosNN/impl/operators/softmax.hpp>

#include <Kokkos_Core.hpp>

// A row in registers, in the accumulator type.

namespace KokkosNN::Impl {

/// In the accumulator type.
template <RowOperator op, class A, int V, int K, bool has_rims>
struct RegisterStorage : HeldRow<Tile<A, V, K>, A, V, K, has_rims> {
  static constexpr bool has_own_reference = true;
  static constexpr bool sums_warps        = true;

  using Held = HeldRow<Tile<A, V, K>, A, V, K, has_rims>;
  using Held::load, Held::rim, Held::tile, Held::walk;

  KOKKOS_INLINE_FUNCTION RegisterStorage(A*, const RowGroup& group) : Held(group) {}

  template <class Row, class Math, class Observer = const NoObserver>
  KOKKOS_INLINE_FUNCTION typename Math::State reduce(const Row& row, const RowPart& part, const Math& math, int lanes,
                                                     Observer& observer = NoObserver{}) {
    return reduce(row, part, math, JoinOfLanes{lanes}, observer);
  }

  /// `join` is how the threads of the row, or of a warp of it, agree on a maximum and a sum.
  template <class Row, class Math, class Join, class Observer = const NoObserver>
  KOKKOS_INLINE_FUNCTION typename Math::State reduce(const Row& row, const RowPart& part, const Math& math,
                                                     const Join& join, Observer& observer = NoObserver{}) {
    constexpr bool keep = Finish<op>::keeps_exponentials;
    load(row, part, math);
    show_tile<V, K>(tile, part.packs.begin, walk, part.packs.window(), observer);
    rim.show(part, observer);
    const auto used   = packs_in_use<V, Row>(walk, part.packs.window(), join.lanes);
    const auto joined = math.exp.refer(join.max(rim.larger(tile.max(used))));
    PackSums<Math, V> sums;
    tile.template add_exponentials<leaves_if<keep>, sum_for<op>>(math, joined.at, sums, used);
    rim.template add_exponential<keep, sum_for<op>>(math, joined.at, sums);
    constexpr int terms = K * V + 1;  // with the rim
    return {joined.R, join.template sum<terms>(sums)};
  }

  template <class Row, class SinkRow, class Math, class FinishRow>
  KOKKOS_INLINE_FUNCTION void write(const Row&, const SinkRow& sink, const RowPart& part, const Math& math,
                                    const FinishRow& finish) {
    tile.store_kept(sink.template from<V>(part.packs.begin), walk, part.packs.window(), math, finish);
    rim.store(sink, part, [&](A kept) { return finish(math, kept); });
  }

  template <class Row, class SinkRow, class Math, class F>
  KOKKOS_INLINE_FUNCTION void write_columns(const Row&, const SinkRow& sink, const RowPart& part, const Math&,
                                            const F& value) const {
    const auto stretch = sink.template from<V>(part.packs.begin);
    tile.store_columns(stretch, part.packs.begin, walk, part.packs.window(), value);
    rim.store(sink, part, [&](A x) { return value(x, part.rim); });
  }

  /// What was loaded, but not reduced.
  template <class SinkRow, class Math, class FinishRow>
  KOKKOS_INLINE_FUNCTION void write_from_input(const SinkRow& sink, const RowPart& part, const Math& math,
                                               const FinishRow& finish) const {
    const auto value = [&](A x) { return finish.from_input(math, x); };
    tile.store(sink.template from<V>(part.packs.begin), walk, part.packs.window(), value);
    rim.store(sink, part, value);
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_PLACEMENT_REGISTERS_HPP
