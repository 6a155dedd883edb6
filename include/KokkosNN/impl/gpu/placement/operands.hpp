// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_PLACEMENT_OPERANDS_HPP
#define KOKKOSNN_IMPL_GPU_PLACEMENT_OPERANDS_HPP

#include <KokkosNN/impl/gpu/device/exchange.hpp>
#include <KokkosNN/impl/gpu/device/pair_tile.hpp>
#include <KokkosNN/impl/gpu/device/running_tiles.hpp>
#include <KokkosNN/impl/gpu/device/tile.hpp>
#include <KokkosNN/impl/inputs/operands.hpp>
#include <KokkosNN/impl/protocol.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

// The placements of any operator that is a struct (inputs/operands.hpp); see row_in_team.hpp for what a placement does.

namespace KokkosNN::Impl {

/// One pack of each row input that only the epilogue reads. As many as a thread holds of the others would take 16
/// registers more than there are.
template <class Operator, class T, int V, int n = Operator::late_inputs>
struct LatePacks {
  HeldTile<T, V, 1> input[n];

  template <class Row>
  KOKKOS_INLINE_FUNCTION void load(const Row& row, std::int64_t start, const PackPositions& positions,
                                   const TileBounds& window) {
    KOKKOSNN_IMPL_UNROLL
    for (int i = 0; i < n; ++i) {
      input[i].load(row.input[held_rows<Operator> + i].template from<V>(start), positions, window);
    }
  }
};
template <class Operator, class T, int V>
struct LatePacks<Operator, T, V, 0> {
  template <class Row>
  KOKKOS_INLINE_FUNCTION void load(const Row&, std::int64_t, const PackPositions&, const TileBounds&) {}
};

/// K packs of each row that is held, as they were loaded, from column `start` of a row on.
template <class Operator, class T, int V, int K>
struct OperandTile {
  using A                   = typename Operator::accumulator;
  using Late                = LatePacks<Operator, T, V>;
  static constexpr int held = held_rows<Operator>;

  HeldTile<T, V, K> input[held];

  template <class Row>
  KOKKOS_INLINE_FUNCTION void load(const Row& row, std::int64_t start, const PackPositions& positions,
                                   const TileBounds& window) {
    KOKKOSNN_IMPL_UNROLL
    for (int i = 0; i < held; ++i) input[i].load(row.input[i].template from<V>(start), positions, window);
    if constexpr (Operator::sums_inputs) {
      static_assert(Operator::row_inputs == 2);
      HeldTile<T, V, K> other;
      other.load(row.input[1].template from<V>(start), positions, window);
      KOKKOSNN_IMPL_UNROLL
      for (int k = 0; k < K; ++k) input[0].pack[k].template add<A>(other.pack[k]);
    }
  }

  template <class Row, class Params, class State>
  KOKKOS_INLINE_FUNCTION void add_to(State& state, const Row& row, std::int64_t start, const PackPositions& positions,
                                     const TileBounds& window, const Params& params) const {
    State states[1]                      = {state};
    const ScalarsOf<Operator> scalars[1] = {row.scalars};
    int count                            = 0;
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) {
      const int left = window.end - positions.place(k);
      count += left >= V ? V : (left > 0 ? left : 0);
    }
    Operator::Reduction::template add<Operator, V>(states, params.own, scalars, count, [&](const auto& f) {
      KOKKOSNN_IMPL_UNROLL
      for (int k = 0; k < K; ++k) {
        if (positions.place(k) < window.end) {
          show<Row::has_whole_packs>(k, start, positions, window, params, nullptr, f);
        }
      }
    });
    state = states[0];
  }

  template <class Row, class OutputRow, class Params, class RowEpilogue>
  KOKKOS_INLINE_FUNCTION void store([[maybe_unused]] const Row& row, const OutputRow& output, std::int64_t start,
                                    const PackPositions& positions, const TileBounds& window, const Params& params,
                                    const RowEpilogue& epilogue) const {
    if constexpr (Operator::sums_inputs) {
      store_tile<V, K>(output.sum().template from<V>(start), positions, window, [&](int k) {
        Pack<T, V> sum;
        input[0].pack[k].show([&](const Pack<T, V>& raw) { sum = raw; });
        return sum;
      });
    }
    store_tile<V, K>(output.template from<V>(start), positions, window, [&](int k) {
      Pack<T, V> result;
      Late late;
      late.load(row, start, PackPositions{positions.place(k), positions.step, positions.ahead}, window);
      show<OutputRow::is_unit_stride>(k, start, positions, window, params, &late,
                                      [&](const auto& x, const auto& columns, auto) {
                                        for (int v = 0; v < V; ++v)
                                          result[v] = static_cast<T>(columns.apply(v, x, epilogue));
                                      });
      return result;
    });
  }

 private:
  /// f(packs of the rows, of the column operands, elements in the row) for the k-th pack; `late`: null, or of the rows
  /// that only the epilogue reads, which come last.
  template <bool is_whole, class Params, class LateRows, class F>
  KOKKOS_INLINE_FUNCTION void show(int k, std::int64_t start, const PackPositions& positions, const TileBounds& window,
                                   const Params& params, const LateRows& late, const F& f) const {
    if constexpr (is_whole) {
      show_at(k, start + positions.place(k), WholePack<V>{}, params, late, f);
    } else {
      const int left = window.end - positions.place(k);
      show_at(k, start + positions.place(k), left < V ? left : V, params, late, f);
    }
  }

  template <class Valid, class Params, class LateRows, class F>
  KOKKOS_INLINE_FUNCTION void show_at(int k, std::int64_t column, Valid valid, const Params& params,
                                      [[maybe_unused]] const LateRows& late, const F& f) const {
    constexpr bool has_late = !std::is_null_pointer_v<LateRows> && Operator::late_inputs > 0;
    Pack<A, V> x[held + (has_late ? Operator::late_inputs : 0)];
    KOKKOSNN_IMPL_UNROLL
    for (int i = 0; i < held; ++i) {
      input[i].pack[k].show_again(params.zero, [&](const Pack<T, V>& raw) { widen(x[i], raw); });
    }
    if constexpr (has_late) {
      for (int i = 0; i < Operator::late_inputs; ++i) {
        late->input[i].pack[0].show([&](const Pack<T, V>& raw) { widen(x[held + i], raw); });
      }
    }
    ColumnPacks<Operator, V> columns;
    KOKKOSNN_IMPL_UNROLL
    for (int j = 0; j < Operator::column_inputs; ++j) params.columns[j].load(columns.pack[j], column, valid);
    f(x, columns, valid);
  }
};

/// A row's operator epilogue; what the row has beside its elements is written by the first thread of its first part.
template <class Row, class OutputRow, class Params, class RowEpilogue>
KOKKOS_INLINE_FUNCTION auto epilogue_of(const Row& row, const OutputRow& output, const RowPart& part,
                                        const PackPositions& positions, const Params& params,
                                        const RowEpilogue& total) {
  const auto epilogue = total.of(params, row.scalars);
  if (part.packs.begin == 0 && positions.first == 0) output.store_values(epilogue);
  return epilogue;
}

/// Rows in the registers of their group: K packs of each a thread.
template <class Operator, class T, int V, int K>
struct OperandRegisterPlacement : PlacementDefaults {
  OperandTile<Operator, T, V, K> tile;
  PackPositions positions;

  KOKKOS_INLINE_FUNCTION OperandRegisterPlacement(typename Operator::accumulator*, const RowGroup& group)
      : positions(PackPositions::of<V>(group.rank, group.size)) {}

  template <class Row, class Params>
  KOKKOS_INLINE_FUNCTION typename Params::State reduce(const Row& row, const RowPart& part, const Params& params, int) {
    typename Params::State state;
    tile.load(row, part.packs.begin, positions, part.packs.window());
    tile.add_to(state, row, part.packs.begin, positions, part.packs.window(), params);
    return state;
  }

  template <class Row, class OutputRow, class Params, class RowEpilogue>
  KOKKOS_INLINE_FUNCTION void write(const Row& row, const OutputRow& output, const RowPart& part, const Params& params,
                                    const RowEpilogue& total) const {
    const auto epilogue = epilogue_of(row, output, part, positions, params, total);
    if constexpr (writes_rows<Operator>) {
      tile.store(row, output, part.packs.begin, positions, part.packs.window(), params, epilogue);
    }
  }

  /// Asks for what `reduce` of that row will load.
  template <class Row>
  KOKKOS_INLINE_FUNCTION void prefetch(const Row& row, const RowPart& part) const {
    for (int i = 0; i < Operator::row_inputs; ++i) {
      const auto columns = row.input[i].template from<V>(part.packs.begin);
      for (int k = 0; k < K; ++k) columns.template prefetch_pack<V>(positions.place(k), part.packs.window());
    }
  }
};

/// Rows in team scratch, one that is held behind another; a thread touches only its own packs, so no barrier is needed
/// between the passes.
template <class Operator, class T, int V, int K>
struct OperandScratchPlacement : PlacementDefaults {
  char* scratch;
  PackPositions positions;

  KOKKOS_INLINE_FUNCTION OperandScratchPlacement(typename Operator::accumulator* begin, const RowGroup& group)
      : scratch(reinterpret_cast<char*>(begin)), positions(PackPositions::of<V>(group.rank, group.size)) {}

  template <class Row, class Params>
  KOKKOS_INLINE_FUNCTION typename Params::State reduce(const Row& row, const RowPart& part, const Params& params, int) {
    const ColumnRange& span = part.packs;
    typename Params::State state;
    for (std::int64_t t = 0; span.has_tile(t, tile_size()); ++t) {
      OperandTile<Operator, T, V, K> tile;
      tile.load(row, span.start(t, tile_size()), positions, span.window(t, tile_size()));
      tile.add_to(state, row, span.start(t, tile_size()), positions, span.window(t, tile_size()), params);
      for_own_packs(t, span, [&](int i, int k, HeldPack<T, V>& kept) { kept = tile.input[i].pack[k]; });
    }
    return state;
  }

  template <class Row, class OutputRow, class Params, class RowEpilogue>
  KOKKOS_INLINE_FUNCTION void write(const Row& row, const OutputRow& output, const RowPart& part, const Params& params,
                                    const RowEpilogue& total) const {
    const ColumnRange& span = part.packs;
    const auto epilogue     = epilogue_of(row, output, part, positions, params, total);
    for (std::int64_t t = 0; writes_rows<Operator> && span.has_tile(t, tile_size()); ++t) {
      OperandTile<Operator, T, V, K> tile;
      for_own_packs(t, span, [&](int i, int k, const HeldPack<T, V>& kept) { tile.input[i].pack[k] = kept; });
      tile.store(row, output, span.start(t, tile_size()), positions, span.window(t, tile_size()), params, epilogue);
    }
  }

 private:
  KOKKOS_INLINE_FUNCTION int tile_size() const { return K * positions.step; }

  /// f(input, number in the tile, its place in scratch) for this thread's packs of the t-th tile. Inputs begin at
  /// 16-byte boundaries; the planner counts with them.
  template <class F>
  KOKKOS_INLINE_FUNCTION void for_own_packs(std::int64_t t, const ColumnRange& span, const F& f) const {
    const int elements    = static_cast<int>(span.end - span.begin);
    const int packs       = (elements + V - 1) / V;
    const int input_bytes = (packs * static_cast<int>(sizeof(HeldPack<T, V>)) + 15) / 16 * 16;
    const int first       = static_cast<int>(t) * tile_size() + positions.first;
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) {
      const int place = first + k * positions.step;
      if (place >= elements) continue;
      for (int i = 0; i < held_rows<Operator>; ++i) {
        f(i, k, reinterpret_cast<HeldPack<T, V>*>(scratch + i * input_bytes)[place / V]);
      }
    }
  }
};

/// Rows that are nowhere but in memory: read once for the state, again to write.
template <class Operator, class T, int V, int K>
struct OperandOnlinePlacement : PlacementDefaults {
  PackPositions positions;

  KOKKOS_INLINE_FUNCTION OperandOnlinePlacement(typename Operator::accumulator*, const RowGroup& group)
      : positions(PackPositions::of<V>(group.rank, group.size)) {}

  template <class Row, class Params>
  KOKKOS_INLINE_FUNCTION typename Params::State reduce(const Row& row, const RowPart& part, const Params& params,
                                                       int) const {
    const ColumnRange& span = part.packs;
    const int tile_size     = K * positions.step;
    typename Params::State state;
    for (std::int64_t t = 0; span.has_tile(t, tile_size); ++t) {
      OperandTile<Operator, T, V, K> tile;
      tile.load(row, span.start(t, tile_size), positions, span.window(t, tile_size));
      tile.add_to(state, row, span.start(t, tile_size), positions, span.window(t, tile_size), params);
    }
    return state;
  }

  template <class Row, class OutputRow, class Params, class RowEpilogue>
  KOKKOS_INLINE_FUNCTION void write(const Row& row, const OutputRow& output, const RowPart& part, const Params& params,
                                    const RowEpilogue& total) const {
    const auto epilogue = epilogue_of(row, output, part, positions, params, total);
    if constexpr (writes_rows<Operator>) {
      for_tiles_again(part.packs, K * positions.step, [&](std::int64_t start, const TileBounds& window) {
        OperandTile<Operator, T, V, K> tile;
        tile.load(row, start, positions, window);
        tile.store(row, output, start, positions, window, params, epilogue);
      });
    }
  }

  template <class Row>
  KOKKOS_INLINE_FUNCTION void prefetch(const Row&, const RowPart&) const {}
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_PLACEMENT_OPERANDS_HPP
