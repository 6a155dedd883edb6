// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_PLACEMENT_PACKED_HPP
#define KOKKOSNN_IMPL_GPU_PLACEMENT_PACKED_HPP

#include <KokkosNN/impl/gpu/device/exchange.hpp>
#include <KokkosNN/impl/gpu/device/tile.hpp>
#include <KokkosNN/impl/gpu/placement/held_row.hpp>
#include <KokkosNN/impl/gpu/placement/registers.hpp>
#include <KokkosNN/impl/operators/softmax.hpp>

#include <Kokkos_Core.hpp>

// A row in registers, as it was loaded.

namespace KokkosNN::Impl {

/// For types narrower than the accumulator: packs stay as they were loaded, which takes half of the registers or less,
/// and the exponentials are computed once more to write. Not for an operator that makes other logits of them.
template <RowOperator op, class T, class A, int V, int K, bool has_rims>
struct PackedStorage : HeldRow<PackedTile<T, V, K>, A, V, K, has_rims> {
  static constexpr bool has_own_reference = false;

  using Held = HeldRow<PackedTile<T, V, K>, A, V, K, has_rims>;
  using Held::load, Held::rim, Held::tile, Held::walk;

  KOKKOS_INLINE_FUNCTION PackedStorage(A*, const RowGroup& group) : Held(group) {}

  template <class Row, class Math>
  KOKKOS_INLINE_FUNCTION typename Math::State reduce(const Row& row, const RowPart& part, const Math& math, int lanes) {
    load(row, part, math);
    const auto of_warp  = math.exp.refer(reduce_lanes(rim.larger(tile.template max<A>()), 1, lanes, MaxJoin{}));
    const auto& at_warp = of_warp.at;
    PackSums<Math, V> sums;
    if (at_warp.base == A(0)) {  // nearly always, and saves a subtraction
      tile.template for_packs<1, A>([&](Pack<A, V>& pack) { add_exponentials<true>(math, pack, at_warp, sums); });
    } else {
      const A base = opaque(at_warp.base);  // keeps nvcc from unpacking all packs ahead of both branches
      tile.template for_packs<1, A>([&](Pack<A, V>& pack) {
        is_infinite<sum_for<op>, Math>(at_warp) ? make_zeros_of_numbers(pack) : subtract(pack, base);
        add_exponentials<true>(math, pack, at_warp, sums);
      });
    }
    rim.template add_exponential<false, sum_for<op>>(math, at_warp, sums);
    return {of_warp.R, sums.all_lanes()};
  }

  template <class Row, class SinkRow, class Math, class FinishRow>
  KOKKOS_INLINE_FUNCTION void write(const Row&, const SinkRow& sink, const RowPart& part, const Math& math,
                                    const FinishRow& finish) const {
    write_from_input(sink, part, math, finish);
  }

  template <class Row, class SinkRow, class Math, class F>
  KOKKOS_INLINE_FUNCTION void write_columns(const Row&, const SinkRow& sink, const RowPart& part, const Math&,
                                            const F& value) const {
    using Y = typename SinkRow::value_type;
    store_tile<V, K>(sink.template from<V>(part.packs.begin), walk, part.packs.window(), [&](int k) {
      Pack<A, V> pack;
      tile.template unpack<2>(pack, k);
      Pack<Y, V> result;
      for (int v = 0; v < V; ++v) result[v] = static_cast<Y>(value(pack[v], part.packs.begin + walk.place(k) + v));
      return result;
    });
    rim.store(sink, part, [&](A x) { return value(x, part.rim); });
  }

  template <class SinkRow, class Math, class FinishRow>
  KOKKOS_INLINE_FUNCTION void write_from_input(const SinkRow& sink, const RowPart& part, const Math& math,
                                               const FinishRow& finish) const {
    const auto value = [&](A x) { return finish.from_input(math, x); };
    rim.store(sink, part, value);
    if constexpr (Finish<op>::keeps_exponentials) {
      if (finish.reference.base == A(0)) {  // as above
        store(sink, part, [&](A x) { return finish(math, math.exp.of_difference(x, finish.reference)); });
        return;
      }
    }
    store(sink, part, value);
  }

 private:
  template <class SinkRow, class F>
  KOKKOS_INLINE_FUNCTION void store(const SinkRow& sink, const RowPart& part, const F& value) const {
    tile.template store<2, A>(sink.template from<V>(part.packs.begin), walk, part.packs.window(), value);
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_PLACEMENT_PACKED_HPP
