// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_KERNELS_HOST_GRADIENTS_HPP
#define KOKKOSNN_IMPL_KERNELS_HOST_GRADIENTS_HPP

#include <KokkosNN/impl/kernels/gradient_storages.hpp>
#include <KokkosNN/impl/kernels/host_rows.hpp>
#include <KokkosNN/impl/primitives/gradient.hpp>
#include <KokkosNN/impl/primitives/host_sums.hpp>
#include <KokkosNN/impl/primitives/vector.hpp>

#include <Kokkos_Core.hpp>

// The storages with which host_rows is the gradients' kernel on a host.

namespace KokkosNN::Impl {

/// So many elements, at most a vector. Only elements of the row may be touched: others may be another thread's, who is
/// writing them.
template <class A>
KOKKOS_FORCEINLINE_FUNCTION Vector<A> load_up_to(const A* from, int count) {
  return count == lanes_of<A> ? load_vector(from) : load_lanes(from, count, A(0));
}

/// What keeps nothing of a row: it is read again, from a cache, to write.
template <class Math>
struct HostRereading {
  using A                                 = typename Math::accumulator;
  static constexpr bool keeps_rows        = false;
  static constexpr bool has_own_reference = false;
  static constexpr bool holds_pieces      = false;

  template <class Row>
  KOKKOS_FORCEINLINE_FUNCTION A load(const Row&, const Piece&, A*, const Math&) const {
    return A(0);
  }
};

/// The two loops over a row of y and dy, or over a piece of one.
template <class Math>
struct PairLoops {
  using A                    = typename Math::accumulator;
  static constexpr int lanes = lanes_of<A>;

  KOKKOS_FORCEINLINE_FUNCTION static HostTerms<Math> sum(const A* y, const A* dy, int count) {
    HostTerms<Math> first, second;
    int i = 0;
    for (; i + 2 * lanes <= count; i += 2 * lanes) {
      first.add_from(y + i, dy + i);
      second.add_from(y + i + lanes, dy + i + lanes);
    }
    if (i + lanes <= count) {
      first.add_from(y + i, dy + i);
      i += lanes;
    }
    if (i < count) first.add(load_lanes(y + i, count - i, A(0)), load_lanes(dy + i, count - i, A(0)));
    first.join(second);
    return first;
  }

  /// What rows share is copied: compilers would read it again after every store.
  template <class FinishRow>
  KOKKOS_FORCEINLINE_FUNCTION static void write(const A* y, const A* dy, A* to, int count, bool streams,
                                                const Math math, const FinishRow finish) {
    write_vectors(to, count, streams, [&](int i, int n) KOKKOSNN_IMPL_INLINED {
      return finish(math, load_up_to(y + i, n), load_up_to(dy + i, n));
    });
  }
};

/// Rows in memory at one distance.
template <class T>
struct StridedRows {
  T* base;
  std::int64_t stride;

  KOKKOS_FORCEINLINE_FUNCTION T* operator()(std::int64_t l) const { return base + l * stride; }
};

/// Pairs of rows of one piece, in memory, by loops with nothing else in them: what is done once a row is as much as that of
/// 64 columns or more. One row at a time, so that loads of the next one are under way while one is written. A row's bits
/// don't depend on how many of the others exist.
template <class Math, class FinishRow>
struct ShortPairs {
  using A                    = typename Math::accumulator;
  using Loops                = PairLoops<Math>;
  using In                   = StridedRows<const A>;
  using Out                  = StridedRows<A>;
  static constexpr int lanes = lanes_of<A>;
  static constexpr int rows  = HostRowSums<Math>::rows;

  KOKKOS_INLINE_FUNCTION static void write(const Math math, std::int64_t count, int cols, bool streams, const In y,
                                           const In dy, const Out out) {
    std::int64_t r = 0;
    while (cols == lanes && !streams && r + rows <= count) {
      write_vectors(math, {y(r), y.stride}, {dy(r), dy.stride}, {out(r), out.stride});
      r += rows;
    }
    for (; r < count; ++r) {
      const FinishRow finish(math, {Loops::sum(y(r), dy(r), cols).total()});
      Loops::write(y(r), dy(r), out(r), cols, streams, math, finish);
    }
  }

 private:
  /// As many rows of one vector as a vector of their sums has lanes: what is done once a row, the join of its lanes, is
  /// done for all of them at once.
  KOKKOS_FORCEINLINE_FUNCTION static void write_vectors(const Math& math, const In& y, const In& dy, const Out& out) {
    HostRowSums<Math> sums;
    KOKKOSNN_IMPL_UNROLL
    for (int l = 0; l < rows; ++l) {
      HostTerms<Math> terms;
      terms.add_from(y(l), dy(l));
      sums.set(l, terms);
    }
    TwoWords<A> words[rows];
    sums.join(words);
    FinishRow finish(math, {});
    KOKKOSNN_IMPL_UNROLL
    for (int l = 0; l < rows; ++l) {
      finish.sum = words[l];
      store_vector(out(l), finish(math, load_vector(y(l)), load_vector(dy(l))));
    }
  }
};

/// The gradients that sum over a row.
template <int V, class Math, class Source>
struct HostPairs : HostRereading<Math> {
  using A      = typename Math::accumulator;
  using Y      = typename decltype(Source::y)::value_type;
  using D      = typename decltype(Source::dy)::value_type;
  using AnyRow = PairOnlineStorage<Y, D, A, V, 4>;
  using Loops  = PairLoops<Math>;

  static constexpr bool has_row_loops = true;
  template <class Row>
  static constexpr bool is_plain =
      !GivesItsPacks<Row, V> && MemoryOf<decltype(Row::y), A> && MemoryOf<decltype(Row::dy), A>;

  /// Rows `first` to `last`, of one piece each, by loops without anything else in them where they lie in memory as they
  /// are computed with; says whether they do.
  template <class FinishRow, class Rows, class Sink>
  KOKKOS_FORCEINLINE_FUNCTION static bool write_rows(const Math& math, const Rows& rows, const Sink& sink,
                                                     std::int64_t first, std::int64_t last, int cols, bool streams) {
    using Row     = decltype(rows.row(0));
    using SinkRow = decltype(sink.row(0));
    if constexpr (is_plain<Row> && MemoryOf<SinkRow, A>) {
      const Row row        = rows.row(first);
      const SinkRow output = sink.row(first);
      const bool is_unit   = row.y.stride == 1 && row.dy.stride == 1 && output.stride == 1;
      const std::int64_t y = rows.y.map.only_stride(), dy = rows.dy.map.only_stride(), dx = sink.map.only_stride();
      if (is_unit && y != 0 && dy != 0 && dx != 0) {
        ShortPairs<Math, FinishRow>::write(math, last - first, cols, streams, {row.y.base, y}, {row.dy.base, dy},
                                           {output.base, dx});
        return true;
      }
    }
    return false;
  }

  template <class Row>
  KOKKOS_FORCEINLINE_FUNCTION typename Math::State reduce(const Row& row, const Piece& piece, A*, const Math& math, A,
                                                          const void*) const {
    if constexpr (is_plain<Row>) {
      if (row.y.stride == 1 && row.dy.stride == 1) {
        const A* const y  = row.y.base + piece.begin;
        const A* const dy = row.dy.base + piece.begin;
        return {Loops::sum(y, dy, piece.count).total()};
      }
    }
    return AnyRow(nullptr, RowGroup::alone()).reduce(row, piece.part(), math, 1);
  }

  template <class Row, class SinkRow, class FinishRow>
  KOKKOS_FORCEINLINE_FUNCTION void write(const Row& row, const SinkRow& sink, const Piece& piece, A*, const Math& math,
                                         const FinishRow& finish, bool streams) const {
    if constexpr (is_plain<Row> && MemoryOf<SinkRow, A>) {
      if (row.y.stride == 1 && row.dy.stride == 1 && sink.stride == 1) {
        return Loops::write(row.y.base + piece.begin, row.dy.base + piece.begin, sink.base + piece.begin, piece.count,
                            streams, math, finish);
      }
    }
    AnyRow(nullptr, RowGroup::alone()).write(row, sink, piece.part(), math, finish);
  }
};

/// Each result depends on one element and on values a row.
template <int V, class Math, class Source>
struct HostElements : HostRereading<Math> {
  using A      = typename Math::accumulator;
  using X      = typename decltype(Source::x)::value_type;
  using AnyRow = ElementwiseStorage<X, A, V, 4>;

  template <class Row>
  KOKKOS_FORCEINLINE_FUNCTION typename Math::State reduce(const Row& row, const Piece&, A*, const Math&, A,
                                                          const void*) const {
    return row.scalars;
  }

  template <class Row, class SinkRow, class FinishRow>
  KOKKOS_FORCEINLINE_FUNCTION void write(const Row& row, const SinkRow& sink, const Piece& piece, A*, const Math& math,
                                         const FinishRow& finish, bool streams) const {
    if constexpr (MemoryOf<decltype(Row::x), A> && MemoryOf<SinkRow, A>) {
      if (row.x.stride == 1 && sink.stride == 1) {
        const A* const x = row.x.base + piece.begin;
        return write_vectors(sink.base + piece.begin, piece.count, streams, [&](int i, int n) KOKKOSNN_IMPL_INLINED {
          return finish(math, load_up_to(x + i, n));
        });
      }
    }
    AnyRow(nullptr, RowGroup::alone()).write(row, sink, piece.part(), math, finish);
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_KERNELS_HOST_GRADIENTS_HPP
