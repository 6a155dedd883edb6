// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_DEVICE_ROW_PART_HPP
#define KOKKOSNN_IMPL_GPU_DEVICE_ROW_PART_HPP

#include <KokkosNN/impl/gpu/device/exchange.hpp>
#include <KokkosNN/impl/gpu/device/pack_arithmetic.hpp>
#include <KokkosNN/impl/inputs/rows.hpp>
#include <KokkosNN/impl/reductions/exp_sum.hpp>
#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

// Part of a row that a group of threads processes: a range of whole packs, and single elements at its edges.
// On a GPU the packs of a `misaligned` row begin at its first 16-byte boundary, and the edges, the elements before and
// behind them, go to single threads (`RowPart`, `EdgeElement`): loops over packs have no branch, and a row of 2^k + 1
// columns takes no more packs than one of 2^k. With `Determinism::batch_invariant` packs start at column 0 instead, or
// a row's bits would depend on its address.

namespace KokkosNN::Impl {

/// Columns begin to end of a row; packs start at `begin`.
struct ColumnRange {
  std::int64_t begin;
  std::int64_t end;

  KOKKOS_INLINE_FUNCTION bool has(std::int64_t column) const { return begin <= column && column < end; }
  /// Column at which the t-th tile starts.
  KOKKOS_INLINE_FUNCTION std::int64_t start(std::int64_t t, int tile_size) const { return begin + t * tile_size; }
  /// Bounds of the t-th tile within the range.
  KOKKOS_INLINE_FUNCTION TileBounds window(std::int64_t t, int tile_size) const {
    const std::int64_t left = end - start(t, tile_size);
    return {left < tile_size ? static_cast<int>(left) : tile_size};
  }
  /// Bounds of a range that is one tile.
  KOKKOS_INLINE_FUNCTION TileBounds window() const { return {static_cast<int>(end - begin)}; }
  /// True if there is a t-th tile.
  KOKKOS_INLINE_FUNCTION bool has_tile(std::int64_t t, int tile_size) const { return start(t, tile_size) < end; }
  /// Number of tiles; counted, as a 64-bit division is a subroutine on GPUs.
  KOKKOS_INLINE_FUNCTION std::int64_t tiles(int tile_size) const {
    std::int64_t n = 0;
    while (has_tile(n, tile_size)) ++n;
    return n;
  }
};

/// Part of a row that a group of threads processes: a range of whole packs, plus at most one edge element for this
/// thread.
struct RowPart {
  ColumnRange packs;
  std::int64_t edge;
  bool has_edge;

  /// Whole row of `cols` columns. A group has at least as many threads as edges can have elements, 2V - 2.
  template <int V, class Row>
  KOKKOS_INLINE_FUNCTION static RowPart whole(const Row& row, std::int64_t cols, int rank) {
    if constexpr (Row::gives_packs) {
      return {row.template packs<V>(cols), 0, false};
    } else if constexpr (Row::has_edges) {
      const std::int64_t first = row.template head<V>();
      const std::int64_t head  = first < cols ? first : cols;
      const std::int64_t body  = (cols - head) & -std::int64_t(V);
      const std::int64_t edge  = rank < head ? rank : rank + body;
      return {{head, head + body}, edge, edge < cols};
    } else {
      return {{0, cols}, 0, false};
    }
  }

  /// Part of a row: `elements` elements of its packs, from `first` on. The group with the first pack has the edges.
  template <int V, class Row>
  KOKKOS_INLINE_FUNCTION static RowPart share(const Row& row, std::int64_t cols, int rank, std::int64_t first,
                                              std::int64_t elements) {
    RowPart part             = whole<V>(row, cols, rank);
    const std::int64_t begin = part.packs.begin + first;
    const std::int64_t end   = part.packs.end;
    part.packs               = {begin < end ? begin : end, begin + elements < end ? begin + elements : end};
    part.has_edge            = part.has_edge && first == 0;
    return part;
  }
};

/// Writes `value` to a range of columns, which begins at a pack; threads are numbered by `rank` of `threads`.
template <int V, class OutputRow>
KOKKOS_INLINE_FUNCTION void fill_span(const OutputRow& output, const ColumnRange& span, std::int64_t rank,
                                      std::int64_t threads, typename OutputRow::value_type value) {
  const auto pack = filled<typename OutputRow::value_type, V>(value);
  KOKKOSNN_IMPL_NO_UNROLL
  for (std::int64_t c = span.begin + rank * V; c < span.end; c += threads * V) {
    const TileBounds window{span.end - c < V ? static_cast<int>(span.end - c) : V};
    output.template from<V>(anew(c)).template store_pack<V>(pack, 0, window);
  }
}

/// Writes the columns that were not loaded: the epilogue of a masked element.
template <int V, class Row, class OutputRow, class Params, class RowEpilogue>
KOKKOS_INLINE_FUNCTION void write_others(const Row& row, const OutputRow& output, std::int64_t cols, std::int64_t rank,
                                         std::int64_t threads, const Params& params, const RowEpilogue& epilogue) {
  if constexpr (Row::gives_packs) {
    const auto value        = static_cast<typename OutputRow::value_type>(epilogue.of_masked(params));
    const ColumnRange packs = row.template packs<V>(cols);
    fill_span<V>(output, {0, packs.begin}, rank, threads, value);
    fill_span<V>(output, {packs.end, cols}, rank, threads, value);
  }
}

/// Adds a term that is no column of the row, an attention sink, to the row's state.
template <class Params, class Row, class State>
KOKKOS_INLINE_FUNCTION State completed(const Params& params, const Row& row, const State& state) {
  if constexpr (Row::completes_state) {
    return row.completed(params, state);
  } else {
    return state;
  }
}

/// Turns a pack that was loaded and widened into logits, if the row has `adjust`.
template <int V, class Columns, class A>
KOKKOS_INLINE_FUNCTION void adjust(const Columns& columns_from, Pack<A, V>& pack, int place) {
  if constexpr (Columns::adjusts_packs) columns_from.template adjust<V>(pack, place);
}

/// Element of a row's edges that this thread has.
template <class A, bool exists>
struct EdgeElement {
  template <class Row, class Params>
  KOKKOS_INLINE_FUNCTION void load(const Row&, const RowPart&, const Params&) {}
  template <class Observer>
  KOKKOS_INLINE_FUNCTION void show(const RowPart&, Observer&) const {}
  KOKKOS_INLINE_FUNCTION A larger(A max) const { return max; }
  template <bool keep, SumFor use, class Params, class Sums>
  KOKKOS_INLINE_FUNCTION void add_exponential(const Params&, const ExpReference<A>&, Sums&) {}
  template <class OutputRow, class F>
  KOKKOS_INLINE_FUNCTION void store(const OutputRow&, const RowPart&, const F&) const {}
};

template <class A>
struct EdgeElement<A, true> {
  A value;

  template <class Row, class Params>
  KOKKOS_INLINE_FUNCTION void load(const Row& row, const RowPart& part, const Params& params) {
    value = -Kokkos::Experimental::infinity_v<A>;
    if (part.has_edge) value = logit_of(params, params.sign * static_cast<A>(row.load_one(part.edge)));
  }

  template <class Observer>
  KOKKOS_INLINE_FUNCTION void show(const RowPart& part, Observer& observer) const {
    if (part.has_edge) observer(Pack<A, 1>{{value}}, part.edge, 1);
  }

  KOKKOS_INLINE_FUNCTION A larger(A max) const { return max_ignoring_nan(max, value); }

  /// Adds the element's exponential; `keep` leaves it in the element's place.
  template <bool keep, SumFor use, class Params, class Sums>
  KOKKOS_INLINE_FUNCTION void add_exponential(const Params& params, const ExpReference<A>& reference, Sums& sums) {
    const A d = is_infinite<use, Params>(reference) ? zero_of_number(value) : value - reference.base;
    const A e = params.exp.of_difference(d, reference);
    if constexpr (keep) value = e;
    sums.add(0, e);
  }

  template <class OutputRow, class F>
  KOKKOS_INLINE_FUNCTION void store(const OutputRow& output, const RowPart& part, const F& epilogue) const {
    using T = typename OutputRow::value_type;
    if (part.has_edge) output.store_one(static_cast<T>(epilogue(value)), part.edge);
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_DEVICE_ROW_PART_HPP
