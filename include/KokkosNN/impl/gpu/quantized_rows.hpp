// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_QUANTIZED_ROWS_HPP
#define KOKKOSNN_IMPL_GPU_QUANTIZED_ROWS_HPP

#include <KokkosNN/impl/gpu/device/exchange.hpp>
#include <KokkosNN/impl/gpu/device/pack_arithmetic.hpp>
#include <KokkosNN/impl/inputs/operands.hpp>
#include <KokkosNN/impl/inputs/quantized.hpp>
#include <KokkosNN/impl/inputs/rows.hpp>
#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

// Rows whose results are stored in 8 bits: the row is reduced, then its largest result found, then its results are
// scaled and written. One kernel serves all layouts and both formats, on hosts, too.

namespace KokkosNN::Impl {

/// Size of the largest result of a part of a row, as bits: these are ordered as sizes are, infinity and NaN above all.
template <class A>
struct LargestSize {
  BitsOf<A> bits = 0;

  KOKKOS_FORCEINLINE_FUNCTION static BitsOf<A> of(A value) { return Kokkos::bit_cast<BitsOf<A>>(value) << 1 >> 1; }
  KOKKOS_INLINE_FUNCTION A value() const { return Kokkos::bit_cast<A>(bits); }
};

struct LargerBits {
  template <class Bits>
  KOKKOS_FORCEINLINE_FUNCTION Bits operator()(Bits a, Bits b) const {
    return a > b ? a : b;
  }
};

template <bool = false, class Params, class A>
KOKKOS_INLINE_FUNCTION LargestSize<A> merge_lanes(const Params&, const LargestSize<A>& mine, int lanes) {
  return {reduce_lanes(mine.bits, 1, lanes, LargerBits{})};
}
template <class Params, class A>
KOKKOS_INLINE_FUNCTION LargestSize<A> merge_two(const Params&, const LargestSize<A>& a, const LargestSize<A>& b) {
  return {LargerBits{}(a.bits, b.bits)};
}

/// K packs of a row, of which a thread has every `size`-th from `rank` on: the same for all layouts, so that a row's
/// bits do not depend on where it lies.
template <class X, int V, int K>
struct QuantizedTile {
  static constexpr int packs = K;

  Pack<X, V> pack[K];
  std::int64_t start;
  TileBounds window;

  template <class Row>
  KOKKOS_INLINE_FUNCTION void load(const Row& row, std::int64_t first, std::int64_t cols, const RowGroup& group) {
    const std::int64_t left = cols - first;
    const int all           = K * V * group.size;
    start                   = first;
    window                  = {left < all ? static_cast<int>(left) : all};
    const auto columns      = row.template from<V>(first);
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) pack[k] = columns.template load_pack<V>(place(k, group), window, X(0));
  }
  KOKKOS_INLINE_FUNCTION static int place(int k, const RowGroup& group) { return (group.rank + k * group.size) * V; }

  /// Number of this thread's elements.
  KOKKOS_INLINE_FUNCTION int count(const RowGroup& group) const {
    int all = 0;
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) {
      const int left = window.end - place(k, group);
      all += left >= V ? V : (left > 0 ? left : 0);
    }
    return all;
  }

  /// f(packs of the row and of the column operands, elements in the row, offset in the tile) for each pack.
  template <class Params, class F>
  KOKKOS_INLINE_FUNCTION void for_packs(const Params& params, const RowGroup& group, const F& f) const {
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) {
      const int left = window.end - place(k, group);
      if (left >= V) {
        show(k, params, group, WholePack<V>{}, f);
      } else if (left > 0) {
        show(k, params, group, left, f);
      }
    }
  }

 private:
  template <class Params, class Valid, class F>
  KOKKOS_INLINE_FUNCTION void show(int k, const Params& params, const RowGroup& group, Valid valid, const F& f) const {
    using Operator = typename Params::Operator;
    Pack<typename Params::accumulator, V> x[1];
    widen(x[0], pack[k]);
    ColumnPacks<Operator, V> columns;
    if constexpr (Operator::column_inputs > 0) {
      for (int j = 0; j < Operator::column_inputs; ++j) {
        params.columns[j].load(columns.pack[j], start + place(k, group), valid);
      }
    }
    f(x, columns, valid, place(k, group));
  }
};

/// Quantises an operator's results. A group of threads has a row, of which each keeps K packs in registers; a longer
/// row's others are read again, `again` at a time, from the cache if they are still there.
template <class Operator, class X, int V, int K, int again>
struct QuantizedRows {
  using A      = typename Operator::accumulator;
  using Params = OperandParams<Operator, X>;
  using State  = typename Params::State;
  using Input  = MemoryRows<const X, RowForm::strided>;
  using Output = MemoryRows<std::uint8_t, RowForm::strided>;

  Input input;
  Output output;
  RowValues<float, RowMap> scales;
  std::int64_t rows;
  std::int64_t cols;
  Params params;
  QuantizedFormat format;
  int threads_per_row;
  int rows_per_team;  ///< on a GPU the groups of a team

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const RowGroup group      = RowGroup::of(team, threads_per_row);
    const std::int64_t stride = std::int64_t(team.league_size()) * rows_per_team;
    int round                 = 0;
    KOKKOSNN_IMPL_NO_UNROLL
    for (std::int64_t block = std::int64_t(team.league_rank()) * rows_per_team; block < rows; block += stride) {
      KOKKOS_IF_ON_DEVICE((do_row(team, group, block + group.index, round++);))
      KOKKOS_IF_ON_HOST((for (int i = 0; i < rows_per_team; ++i) do_row(team, group, block + i, round++);))
    }
  }

 private:
  using Kept  = QuantizedTile<X, V, K>;
  using Later = QuantizedTile<X, V, again>;

  /// f(tile) for all of this thread's packs of a row of `count` columns.
  template <class Row, class F>
  KOKKOS_INLINE_FUNCTION static void for_tiles(const Kept& kept, const Row& row, std::int64_t count,
                                               const RowGroup& group, const F& f) {
    f(kept);
    const std::int64_t step = std::int64_t(again) * V * group.size;
    KOKKOSNN_IMPL_NO_UNROLL
    for (std::int64_t start = std::int64_t(K) * V * group.size; start < count; start += step) {
      Later tile;
      tile.load(row, start, count, group);
      f(tile);
    }
  }

  template <class Member>
  KOKKOS_INLINE_FUNCTION void do_row(const Member& team, const RowGroup& group, std::int64_t number, int round) const {
    // Groups beyond the last row take part in shuffles and barriers, but touch no memory.
    const bool is_row        = number < rows;
    const std::int64_t count = is_row ? cols : 0;
    const auto row           = input.row(is_row ? number : 0);
    Kept kept;
    kept.load(row, 0, count, group);
    const State mine = reduced(kept, row, count, group);
    const State warp = merge_warp(params, mine, group.lanes());
    const State all  = exchange(params, team, group, static_cast<State*>(nullptr), round, warp);
    const typename Operator::Epilogue epilogue(params.own, all, ScalarsOf<Operator>{}, cols);
    const QuantizedScale<A> scale = format.scale_of(largest(team, kept, row, count, group, round, epilogue));
    if (!is_row) return;
    if (group.rank == 0 && scales.data != nullptr) scales.data[scales.map(number)] = scale.scale;
    write(kept, row, group, output.row(number), epilogue, scale);
  }

  template <class Row>
  KOKKOS_INLINE_FUNCTION State reduced(const Kept& kept, const Row& row, std::int64_t count,
                                       const RowGroup& group) const {
    State states[1];
    const ScalarsOf<Operator> scalars[1] = {};
    for_tiles(kept, row, count, group, [&](const auto& tile) {
      Operator::Reduction::template add<Operator, V>(
          states, params.own, scalars, tile.count(group), [&](const auto& f) {
            tile.for_packs(params, group,
                           [&](const auto& x, const auto& columns, auto valid, int) { f(x, columns, valid); });
          });
    });
    return states[0];
  }

  /// Size of the row's largest result, if that is asked for.
  template <class Member, class Row, class Epilogue>
  KOKKOS_INLINE_FUNCTION A largest(const Member& team, const Kept& kept, const Row& row, std::int64_t count,
                                   const RowGroup& group, int round, const Epilogue& epilogue) const {
    if constexpr (requires { epilogue.largest(); }) {
      return epilogue.largest();
    } else {
      if (!format.has_scales) return A(0);
      Pack<BitsOf<A>, V> sizes = filled<BitsOf<A>, V>(BitsOf<A>(0));
      for_tiles(kept, row, count, group, [&](const auto& tile) {
        tile.for_packs(params, group, [&](const auto& x, const auto& columns, auto valid, int) {
          for (int v = 0; v < V; ++v) {
            const BitsOf<A> size = LargestSize<A>::of(columns.apply(v, x, epilogue));
            sizes[v]             = LargerBits{}(sizes[v], v < valid ? size : BitsOf<A>(0));
          }
        });
      });
      LargestSize<A> mine;
      for (int v = 0; v < V; ++v) mine.bits = LargerBits{}(mine.bits, sizes[v]);
      const LargestSize<A> warp = merge_lanes(params, mine, group.lanes());
      return exchange(params, team, group, static_cast<LargestSize<A>*>(nullptr), round, warp).value();
    }
  }

  template <class Row, class OutputRow, class Epilogue>
  KOKKOS_INLINE_FUNCTION void write(const Kept& kept, const Row& row, const RowGroup& group, const OutputRow& to,
                                    const Epilogue& epilogue, const QuantizedScale<A>& scale) const {
    for_tiles(kept, row, cols, group, [&](const auto& tile) {
      const auto columns_to = to.template from<V>(tile.start);
      tile.for_packs(params, group, [&](const auto& x, const auto& columns, auto, int place) {
        Pack<A, V> results;
        for (int v = 0; v < V; ++v) results[v] = columns.apply(v, x, epilogue);
        columns_to.template store_pack<V>(format.codes(results, scale), place, tile.window);
      });
    });
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_QUANTIZED_ROWS_HPP
