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

#include <Kokkos_Core.hpp>

#include <cstdint>

// A row that stays in memory and is read twice.

namespace KokkosNN::Impl {

/// A row that is nowhere but in memory: read once for (max, sum), again to write; where `holds`, but for the tile that
/// was read last.
template <RowOperator op, class A, int V, int K, bool holds = false>
struct OnlineStorage {
  static constexpr bool has_own_reference = false;

  PackWalk walk;
  LastTile<A, V, K, holds> last;

  KOKKOS_INLINE_FUNCTION OnlineStorage(A*, const RowGroup& group) : walk(PackWalk::of<V>(group.rank, group.size)) {}

  template <class Row, class Math, class Observer = const NoObserver>
  KOKKOS_INLINE_FUNCTION typename Math::State reduce(const Row& row, const RowPart& part, const Math& math, int lanes,
                                                     Observer& observer = NoObserver{}) {
    const auto mine   = reduce_tiles<sum_for<op>>(row, part, walk, math, observer, last);
    const A reference = reduce_lanes(mine.reference, 1, lanes, MaxJoin{});
    return {reference, rescaled(math, mine.sum, mine.reference, reference)};
  }

  template <class Row, class SinkRow, class Math, class FinishRow>
  KOKKOS_INLINE_FUNCTION void write(const Row& row, const SinkRow& sink, const RowPart& part, const Math& math,
                                    const FinishRow& finish) const {
    if constexpr (requires { finish.from_differences(); }) {
      const auto exp = finish.from_differences();
      rewrite_columns(row, sink, part, walk, math, last, finish.reference.base,
                      [&](A d, std::int64_t) { return exp(math.exp, d); });
    } else {
      write_columns(row, sink, part, math, [&](A x, std::int64_t) { return finish.from_input(math, x); });
    }
  }

  template <class Row, class SinkRow, class Math, class F>
  KOKKOS_INLINE_FUNCTION void write_columns(const Row& row, const SinkRow& sink, const RowPart& part, const Math& math,
                                            const F& value) const {
    rewrite_columns(row, sink, part, walk, math, last, A(0), value);
  }

  template <class Row>
  KOKKOS_INLINE_FUNCTION void prefetch(const Row&, const RowPart&) const {}
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_PLACEMENT_ONLINE_HPP
