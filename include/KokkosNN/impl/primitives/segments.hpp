// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_PRIMITIVES_SEGMENTS_HPP
#define KOKKOSNN_IMPL_PRIMITIVES_SEGMENTS_HPP

#include <KokkosNN/impl/primitives/gradient_tile.hpp>
#include <KokkosNN/impl/primitives/lanes.hpp>
#include <KokkosNN/impl/primitives/rows.hpp>
#include <KokkosNN/impl/primitives/tile.hpp>
#include <KokkosNN/impl/segmented_plan.hpp>
#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>

// What the kernels for ragged rows are made of: finding rows in offsets, values in a GPU's team scratch, rows by
// length.

namespace KokkosNN::Impl {

/// How many of the first `rows` offsets are below `target`. All lanes of a warp call, with one target, and get the
/// answer; each round asks as many offsets as there are lanes. Reads no others, whatever they hold.
KOKKOS_INLINE_FUNCTION std::int64_t rows_before(const RowOffsets& offsets, std::int64_t rows, std::int64_t target,
                                                int lane) {
  std::int64_t low   = 0;
  std::int64_t count = rows;  // the answer is at least low, at most low + count
  if constexpr (native_lanes() == 1) {
    while (count > 0) {
      const std::int64_t half = count / 2;
      const bool is_before    = offsets[low + half] < target;
      low += is_before ? half + 1 : 0;
      count = is_before ? count - half - 1 : half;
    }
  } else {
    constexpr int lanes = native_lanes();
    while (count > 0) {
      const std::int64_t step  = (count + lanes - 1) / lanes;
      const std::int64_t probe = (lane + 1) * step - 1;
      const bool is_before     = probe < count && offsets[low + probe] < target;
      const std::int64_t skip  = count_lanes(is_before) * step;
      low += skip;
      count = count - skip < step - 1 ? count - skip : step - 1;
    }
  }
  return low;
}

/// The part in a chunk of a long row that began earlier: [begin of the chunk, end), nothing if that is the chunk's
/// begin.
struct HeadPart {
  std::int64_t end;
  std::int64_t chunk;  ///< where the row began

  /// Of chunk c, before which `first` rows begin.
  KOKKOS_INLINE_FUNCTION static HeadPart of(const Chunks& chunks, const RowOffsets& offsets, std::int64_t c,
                                            std::int64_t first) {
    const std::int64_t begin = chunks.begin(c);
    if (first == 0) return {begin, c};
    const std::int64_t row_begin = chunks.inside(offsets[first - 1]);
    const std::int64_t row_end   = chunks.inside(offsets[first]);
    if (row_begin >= begin || row_end <= begin || !chunks.is_long(row_begin, row_end)) return {begin, c};
    const std::int64_t end = chunks.end(c);
    return {row_end < end ? row_end : end, chunks.of(row_begin)};
  }
};

/// The first part of a long row that begins in a chunk: [begin, end of the chunk), nothing if that is the chunk's end.
struct TailPart {
  std::int64_t begin;
  std::int64_t row_end;
  std::int64_t row;

  /// Of chunk c, after which no row before number `last` begins.
  KOKKOS_INLINE_FUNCTION static TailPart of(const Chunks& chunks, const RowOffsets& offsets, std::int64_t c,
                                            std::int64_t last) {
    const std::int64_t end = chunks.end(c);
    if (last == 0) return {end, end, 0};
    const std::int64_t row_begin = chunks.inside(offsets[last - 1]);
    const std::int64_t row_end   = chunks.inside(offsets[last]);
    const bool is_tail = chunks.begin(c) <= row_begin && row_begin < end && chunks.is_long(row_begin, row_end);
    if (!is_tail) return {end, end, 0};
    return {row_begin, row_end, last - 1};
  }
};

/// What the first kernel leaves of a chunk for the others.
struct ChunkNote {
  HeadPart head;
  TailPart tail;
};

/// A rank-1 View, erased.
template <class T>
struct Values {
  using value_type = std::remove_const_t<T>;
  using Row        = MemoryRow<T, RowForm::any>;

  T* data;
  std::int64_t stride;

  /// From element `begin` on.
  KOKKOS_INLINE_FUNCTION Row row(std::int64_t begin) const { return {data + begin * stride, stride}; }
  KOKKOS_INLINE_FUNCTION T& operator[](std::int64_t i) const { return data[i * stride]; }
  /// Elements from `begin` on before the first that a GPU's pack may begin with.
  template <int V>
  KOKKOS_INLINE_FUNCTION int head(std::int64_t begin) const {
    return stride == 1 ? (V - pack_phase<T, V>(data + begin)) % V : 0;
  }
};

/// Values in a GPU's team scratch, in the accumulator type; a word of padding after as many as there are banks, or rows
/// of 32 elements, a thread each, would all begin in one.
template <class A>
struct Cells {
  A* data;

  KOKKOS_INLINE_FUNCTION A& operator[](int i) const {
    constexpr unsigned every = padded_every(sizeof(A));  // of unsigned numbers a shift
    return data[i + static_cast<int>(static_cast<unsigned>(i) / every)];
  }
};

/// Elements [begin, end) of a vector as a team's threads share them: up to K packs of V a thread, and the rims.
template <class T, int V, int K>
struct SharedSpan {
  Values<const T> values;
  MemoryRow<const T, RowForm::shifted> row;
  RowPart part;
  PackWalk walk;

  KOKKOS_INLINE_FUNCTION SharedSpan(const Values<const T>& from, std::int64_t begin, std::int64_t end,
                                    const RowGroup& group)
      : values(from),
        row{from.data + begin * from.stride, from.stride},
        part(RowPart::whole<V>(row, end - begin, group.rank)),
        walk(PackWalk::of<V>(group.rank, group.size)) {}

  /// Asks for this thread's packs.
  KOKKOS_INLINE_FUNCTION void prefetch() const {
    if (values.stride != 1) return;
    const auto stretch = row.template from<V>(part.packs.begin);
    for (int k = 0; k < K; ++k) stretch.template prefetch_pack<V>(walk.place(k), part.packs.window());
  }

  /// sign times each element to its cell, all of a thread's loads in flight together.
  template <class A>
  KOKKOS_INLINE_FUNCTION void keep(const Cells<A>& cells, A sign) const {
    HeldTile<T, V, K> held;
    held.load(row.template from<V>(part.packs.begin), walk, part.packs.window());
    const int first = static_cast<int>(part.packs.begin);
    const int last  = part.packs.window().end;
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) {
      const int place = walk.place(k);
      if (place < last) {
        held.pack[k].show([&](const Pack<T, V>& pack) {
          for (int v = 0; v < V; ++v) cells[first + place + v] = sign * static_cast<A>(pack[v]);
        });
      }
    }
    if (part.has_rim) cells[static_cast<int>(part.rim)] = sign * static_cast<A>(row.load_one(part.rim));
  }
};

/// sign times elements [from, from + count) to the cells from `to` on, one by one.
template <class T, class A>
KOKKOS_INLINE_FUNCTION void keep_elements(const Values<const T>& values, std::int64_t from, int count,
                                          const Cells<A>& cells, int to, const RowGroup& group, A sign) {
  for (int i = group.rank; i < count; i += group.size) cells[to + i] = sign * static_cast<A>(values[from + i]);
}

/// The same for up to a chunk, in packs where the elements lie side by side.
template <int V, int K, class T, class A>
KOKKOS_INLINE_FUNCTION void keep_span(const Values<const T>& values, std::int64_t begin, std::int64_t end,
                                      const Cells<A>& cells, const RowGroup& group, A sign) {
  if (values.stride == 1) {
    SharedSpan<T, V, K>(values, begin, end, group).keep(cells, sign);
  } else {
    keep_elements(values, begin, static_cast<int>(end - begin), cells, 0, group, sign);
  }
}

/// Cells from `from` on to elements [begin, begin + count), in whole packs.
template <int V, class T, class A>
KOKKOS_INLINE_FUNCTION void store_cells(const Values<T>& values, std::int64_t begin, int count, const Cells<A>& cells,
                                        int from, const RowGroup& group) {
  if (values.stride != 1) {
    for (int i = group.rank; i < count; i += group.size) values[begin + i] = static_cast<T>(cells[from + i]);
    return;
  }
  const MemoryRow<T, RowForm::shifted> row{values.data + begin, 1};
  const RowPart part = RowPart::whole<V>(row, count, group.rank);
  const auto stretch = row.template from<V>(part.packs.begin);
  const int first    = from + static_cast<int>(part.packs.begin);
  for (int place = group.rank * V; place < part.packs.window().end; place += group.size * V) {
    Pack<T, V> pack;
    for (int v = 0; v < V; ++v) pack[v] = static_cast<T>(cells[first + place + v]);
    stretch.store_whole_pack(pack, place);
  }
  if (part.has_rim) row.store_one(static_cast<T>(cells[from + static_cast<int>(part.rim)]), part.rim);
}

/// f(i, pack, element of it, whether the row has an i-th cell) for a lane's K packs of 4 of a row: every so many-th
/// cell. The opaque numbers keep nvcc from computing all places ahead of the loop over rows, in registers that the row
/// needs.
template <int K, class F>
KOKKOS_INLINE_FUNCTION void for_own_cells(int count, int lane, int lanes, const F& f) {
  const int last = opaque(count);
  const int step = opaque(lanes);
  int i          = lane;
  KOKKOSNN_IMPL_UNROLL
  for (int k = 0; k < K; ++k) {
    KOKKOSNN_IMPL_UNROLL
    for (int v = 0; v < 4; ++v) {
      f(i, k, v, i < last);
      i += step;
    }
  }
}

/// How rows of a team are sorted by their lengths: a lane has up to max_packs packs of 4 elements of a row, a row up to
/// all lanes of a warp. Rows of one class take equally many lanes and packs; those beyond the last one take the team.
template <int max_packs>
struct LengthClasses {
  static constexpr int pack        = 4;
  static constexpr int by_one_lane = max_packs;                              ///< classes of rows of one lane
  static constexpr int by_lanes    = max_packs > 1 ? max_packs / 2 : 1;      ///< of 2, of 4, ... lanes
  static constexpr int fewest      = max_packs > 1 ? max_packs / 2 + 1 : 1;  ///< packs in those

  KOKKOS_INLINE_FUNCTION static int log2_lanes() { return log2_of(native_lanes()); }
  /// Number of the first class of rows that take 2^k lanes.
  KOKKOS_INLINE_FUNCTION static int first(int k) { return k == 0 ? 0 : by_one_lane + (k - 1) * by_lanes; }
  KOKKOS_INLINE_FUNCTION static int of_team() { return first(log2_lanes() + 1); }

  /// Packs a lane, where a row takes 2^k of them.
  KOKKOS_INLINE_FUNCTION static int packs(int length, int k) { return (length + (pack << k) - 1) >> (2 + k); }

  KOKKOS_INLINE_FUNCTION static int of(int length) {
    const int alone = packs(length, 0);
    if (alone <= max_packs) return alone - 1;
    const int k = log2_of(power_at_least((alone + max_packs - 1) / max_packs));
    return k > log2_lanes() ? of_team() : first(k) + packs(length, k) - fewest;
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_PRIMITIVES_SEGMENTS_HPP
