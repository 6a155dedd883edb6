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
template <class X, int V, int K, RowForm form>
struct QuantizedTile {
  static constexpr int packs     = K;
  static constexpr bool is_whole = form == RowForm::aligned;  ///< no pack ends beyond the row

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
    for (int k = 0; k < K; ++k) {
      if constexpr (is_whole) {
        pack[k] = columns.template load_whole_pack<V>(place(k, group), window, X(0));
      } else {
        pack[k] = columns.template load_pack<V>(place(k, group), window, X(0));
      }
    }
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

  /// f(packs of the row and of the column operands, elements in the row, number) for each pack.
  template <class Params, class F>
  KOKKOS_INLINE_FUNCTION void for_packs(const Params& params, const RowGroup& group, const F& f) const {
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) {
      const int left = window.end - place(k, group);
      if (left >= V) {
        show(k, params, group, WholePack<V>{}, f);
      } else if (!is_whole && left > 0) {
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
        if constexpr (is_whole) {
          params.columns[j].load_aligned(columns.pack[j], start + place(k, group));
        } else {
          params.columns[j].load(columns.pack[j], start + place(k, group), valid);
        }
      }
    }
    f(x, columns, valid, k);
  }
};

/// Quantises an operator's results. A group of threads has a row, of which each keeps K packs in registers; a longer
/// row's others are read again, `again` at a time, from the cache if they are still there.
template <class Operator, class X, int V, int K, int again, RowForm form>
struct QuantizedRows {
  using A      = typename Operator::accumulator;
  using Params = OperandParams<Operator, X>;
  using State  = typename Params::State;
  using Input  = MemoryRows<const X, form>;
  using Output = MemoryRows<std::uint8_t, form>;

  Input input;
  Output output;
  RowValues<float, MapOf<form>> scales;
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
  using Kept  = QuantizedTile<X, V, K, form>;
  using Later = QuantizedTile<X, V, again, form>;

  /// Results of a tile's packs.
  template <int packs>
  struct Results {
    Pack<A, V> pack[packs];

    KOKKOS_INLINE_FUNCTION void add_sizes(Pack<BitsOf<A>, V>& sizes) const {
      KOKKOSNN_IMPL_UNROLL
      for (int k = 0; k < packs; ++k) {
        for (int v = 0; v < V; ++v) sizes[v] = LargerBits{}(sizes[v], LargestSize<A>::of(pack[k][v]));
      }
    }
  };

  /// f(tile) for a thread's packs of a row of `count` columns that it does not keep.
  template <class Row, class F>
  KOKKOS_INLINE_FUNCTION static void for_later(const Row& row, std::int64_t count, const RowGroup& group, const F& f) {
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
    Results<K> results;
    compute(results, kept, group, epilogue);
    const QuantizedScale<A> scale = format.scale_of(largest(team, results, row, count, group, round, epilogue));
    if (!is_row) return;
    if (group.rank == 0 && scales.data != nullptr) scales.data[scales.map(number)] = scale.scale;
    write(results, kept, row, group, output.row(number), epilogue, scale);
  }

  template <class Row>
  KOKKOS_INLINE_FUNCTION State reduced(const Kept& kept, const Row& row, std::int64_t count,
                                       const RowGroup& group) const {
    State states[1];
    const ScalarsOf<Operator> scalars[1] = {};
    const auto add                       = [&](const auto& tile) {
      Operator::Reduction::template add<Operator, V>(
          states, params.own, scalars, tile.count(group), [&](const auto& f) {
            tile.for_packs(params, group,
                           [&](const auto& x, const auto& columns, auto valid, int) { f(x, columns, valid); });
          });
    };
    add(kept);
    for_later(row, count, group, add);
    return states[0];
  }

  /// A tile's results, 0 outside of the row.
  template <class Tile, class Epilogue>
  KOKKOS_INLINE_FUNCTION void compute(Results<Tile::packs>& results, const Tile& tile, const RowGroup& group,
                                      const Epilogue& epilogue) const {
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < Tile::packs; ++k) results.pack[k] = filled<A, V>(A(0));
    tile.for_packs(params, group, [&](const auto& x, const auto& columns, auto valid, int k) {
      for (int v = 0; v < V; ++v) {
        const A result     = columns.apply(v, x, epilogue);
        results.pack[k][v] = v < valid ? result : A(0);
      }
    });
  }

  /// Size of the row's largest result, if that is asked for.
  template <class Member, class Row, class Epilogue>
  KOKKOS_INLINE_FUNCTION A largest(const Member& team, const Results<K>& kept, const Row& row, std::int64_t count,
                                   const RowGroup& group, int round, const Epilogue& epilogue) const {
    if constexpr (requires { epilogue.largest(); }) {
      return epilogue.largest();
    } else {
      if (!format.has_scales) return A(0);
      Pack<BitsOf<A>, V> sizes = filled<BitsOf<A>, V>(BitsOf<A>(0));
      kept.add_sizes(sizes);
      for_later(row, count, group, [&](const Later& tile) {
        Results<again> results;
        compute(results, tile, group, epilogue);
        results.add_sizes(sizes);
      });
      LargestSize<A> mine;
      for (int v = 0; v < V; ++v) mine.bits = LargerBits{}(mine.bits, sizes[v]);
      const LargestSize<A> warp = merge_lanes(params, mine, group.lanes());
      return exchange(params, team, group, static_cast<LargestSize<A>*>(nullptr), round, warp).value();
    }
  }

  template <class Row, class OutputRow, class Epilogue>
  KOKKOS_INLINE_FUNCTION void write(const Results<K>& results, const Kept& kept, const Row& row, const RowGroup& group,
                                    const OutputRow& to, const Epilogue& epilogue,
                                    const QuantizedScale<A>& scale) const {
    store(results, kept, group, to, scale);
    for_later(row, cols, group, [&](const Later& tile) {
      Results<again> later;
      compute(later, tile, group, epilogue);
      store(later, tile, group, to, scale);
    });
  }

  template <class Tile, class OutputRow>
  KOKKOS_INLINE_FUNCTION void store(const Results<Tile::packs>& results, const Tile& tile, const RowGroup& group,
                                    const OutputRow& to, const QuantizedScale<A>& scale) const {
    const auto columns = to.template from<V>(tile.start);
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < Tile::packs; ++k) {
      const int place = Tile::place(k, group);
      if (place < tile.window.end) {
        const auto codes = format.codes(results.pack[k], scale);
        if constexpr (Tile::is_whole) {
          columns.template store_whole_pack<V>(codes, place);
        } else {
          columns.template store_pack<V>(codes, place, tile.window);
        }
      }
    }
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_QUANTIZED_ROWS_HPP
