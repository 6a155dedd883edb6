// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_PLACEMENT_PACKED_HPP
#define KOKKOSNN_IMPL_GPU_PLACEMENT_PACKED_HPP

#include <KokkosNN/impl/gpu/device/exchange.hpp>
#include <KokkosNN/impl/gpu/device/tile.hpp>
#include <KokkosNN/impl/gpu/placement/held_row.hpp>
#include <KokkosNN/impl/gpu/placement/registers.hpp>
#include <KokkosNN/impl/operators/softmax.hpp>
#include <KokkosNN/impl/protocol.hpp>

#include <Kokkos_Core.hpp>

// Placement of rows in registers, in the type that was loaded.

namespace KokkosNN::Impl {

/// Placement of types narrower than the accumulator: packs stay as they were loaded, if only so they fit, which takes
/// at most half of the registers; exponentials are computed once more to write. Operators that change logits cannot use
/// it.
template <RowOperator op, class T, class A, int V, int K, bool has_edges>
struct PackedPlacement : HeldRow<PackedTile<T, V, K>, A, V, K, has_edges>, PlacementDefaults {
  using Held = HeldRow<PackedTile<T, V, K>, A, V, K, has_edges>;
  using Held::load, Held::edge, Held::tile, Held::positions;

  KOKKOS_INLINE_FUNCTION PackedPlacement(A*, const RowGroup& group) : Held(group) {}

  template <class Row, class Params>
  KOKKOS_INLINE_FUNCTION typename Params::State reduce(const Row& row, const RowPart& part, const Params& params,
                                                       int lanes) {
    load(row, part, params);
    const auto of_warp  = params.exp.refer(reduce_lanes(edge.larger(tile.template max<A>()), 1, lanes, MaxJoin{}));
    const auto& at_warp = of_warp.at;
    PackSums<Params, V> sums;
    if (at_warp.base == A(0)) {  // nearly always; it saves a subtraction
      tile.template for_packs<1, A>([&](Pack<A, V>& pack) { add_exponentials<true>(params, pack, at_warp, sums); });
    } else {
      // `opaque` keeps nvcc from unpacking all packs ahead of both branches. Elements relative to +inf are taken
      // relative to 0 and bounded by 0, by which no element needs a branch: nvcc would spill, on the path of all rows.
      //   cross_entropy_with_gradient bf16 8192 x 32000 | 3957 GB/s | with a branch 3734
      constexpr bool bounds = finds_infinity<sum_for<op>, Params> && bounds_infinite_rows;
      const A base          = opaque(bounds && is_infinite<sum_for<op>, Params>(at_warp) ? A(0) : at_warp.base);
      tile.template for_packs<1, A>([&](Pack<A, V>& pack) {
        if constexpr (!bounds) {
          is_infinite<sum_for<op>, Params>(at_warp) ? make_zeros_of_numbers(pack) : subtract(pack, base);
        } else {
          subtract(pack, base);
          make_zeros_of_positives(pack);
        }
        add_exponentials<true>(params, pack, at_warp, sums);
      });
    }
    edge.template add_exponential<false, sum_for<op>>(params, at_warp, sums);
    return {of_warp.R, sums.all_lanes()};
  }

  template <class Row, class OutputRow, class Params, class RowEpilogue>
  KOKKOS_INLINE_FUNCTION void write(const Row&, const OutputRow& output, const RowPart& part, const Params& params,
                                    const RowEpilogue& epilogue) const {
    write_from_input(output, part, params, epilogue);
  }

  template <class Row, class OutputRow, class Params, class F>
  KOKKOS_INLINE_FUNCTION void write_columns(const Row&, const OutputRow& output, const RowPart& part, const Params&,
                                            const F& value) const {
    using Y = typename OutputRow::value_type;
    store_tile<V, K>(output.template from<V>(part.packs.begin), positions, part.packs.window(), [&](int k) {
      Pack<A, V> pack;
      tile.template unpack<2>(pack, k);
      Pack<Y, V> result;
      for (int v = 0; v < V; ++v) result[v] = static_cast<Y>(value(pack[v], part.packs.begin + positions.place(k) + v));
      return result;
    });
    edge.store(output, part, [&](A x) { return value(x, part.edge); });
  }

  template <class OutputRow, class Params, class RowEpilogue>
  KOKKOS_INLINE_FUNCTION void write_from_input(const OutputRow& output, const RowPart& part, const Params& params,
                                               const RowEpilogue& epilogue) const {
    const auto value = [&](A x) { return epilogue.from_input(params, x); };
    edge.store(output, part, value);
    if constexpr (Epilogue<op>::keeps_exponentials) {
      if (epilogue.reference.base == A(0)) {  // nearly always; it saves a subtraction
        store(output, part, [&](A x) { return epilogue(params, params.exp.of_difference(x, epilogue.reference)); });
        return;
      }
    }
    store(output, part, value);
  }

 private:
  template <class OutputRow, class F>
  KOKKOS_INLINE_FUNCTION void store(const OutputRow& output, const RowPart& part, const F& value) const {
    tile.template store<2, A>(output.template from<V>(part.packs.begin), positions, part.packs.window(), value);
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_PLACEMENT_PACKED_HPP
