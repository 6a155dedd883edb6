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

/// The gradients that sum over a row: read for the sum, and again, from a cache, to write.
template <int V, class Math, class Source>
struct HostPairs {
  using A                                 = typename Math::accumulator;
  using T                                 = Vector<A>;
  using Y                                 = typename decltype(Source::y)::value_type;
  using D                                 = typename decltype(Source::dy)::value_type;
  using AnyRow                            = PairOnlineStorage<Y, D, A, V, 4>;
  static constexpr int lanes              = lanes_of<A>;
  static constexpr bool keeps_rows        = false;
  static constexpr bool has_own_reference = false;
  static constexpr bool holds_pieces      = false;

  template <class Row>
  KOKKOS_FORCEINLINE_FUNCTION A load(const Row&, const Piece&, A*, const Math&) const {
    return A(0);
  }

  template <class Row>
  KOKKOS_FORCEINLINE_FUNCTION typename Math::State reduce(const Row& row, const Piece& piece, A*, const Math& math, A,
                                                          const void*) const {
    if constexpr (is_plain<Row>) {
      if (row.y.stride == 1 && row.dy.stride == 1) {
        return {sum(row.y.base + piece.begin, row.dy.base + piece.begin, piece.count)};
      }
    }
    return AnyRow(nullptr, one_thread).reduce(row, piece.part(), math, 1);
  }

  template <class Row, class SinkRow, class FinishRow>
  KOKKOS_FORCEINLINE_FUNCTION void write(const Row& row, const SinkRow& sink, const Piece& piece, A*, const Math& math,
                                         const FinishRow& finish, bool streams) const {
    if constexpr (is_plain<Row> && MemoryOf<SinkRow, A>) {
      if (row.y.stride == 1 && row.dy.stride == 1 && sink.stride == 1) {
        const A* const y  = row.y.base + piece.begin;
        const A* const dy = row.dy.base + piece.begin;
        // Only elements of the row may be touched here: others may be another thread's, who is writing them.
        const auto at = [](const A* from, int count) KOKKOSNN_IMPL_INLINED {
          return count == lanes ? load_vector(from) : load_lanes(from, count, A(0));
        };
        return write_vectors(sink.base + piece.begin, piece.count, streams,
                             [&](int i, int n) KOKKOSNN_IMPL_INLINED { return finish(math, at(y + i, n), at(dy + i, n)); });
      }
    }
    AnyRow(nullptr, one_thread).write(row, sink, piece.part(), math, finish);
  }

 private:
  static constexpr RowGroup one_thread{0, 1, 0};

  template <class Row>
  static constexpr bool is_plain =
      !GivesItsPacks<Row, V> && MemoryOf<decltype(Row::y), A> && MemoryOf<decltype(Row::dy), A>;

  KOKKOS_FORCEINLINE_FUNCTION static typename Math::wide_sum sum(const A* y, const A* dy, int count) {
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
    return first.total() + second.total();
  }
};

/// Each result depends on one element and on values a row.
template <int V, class Math, class Source>
struct HostElements {
  using A                                 = typename Math::accumulator;
  using X                                 = typename decltype(Source::x)::value_type;
  using AnyRow                            = ElementwiseStorage<X, A, V, 4>;
  static constexpr int lanes              = lanes_of<A>;
  static constexpr bool keeps_rows        = false;
  static constexpr bool has_own_reference = false;
  static constexpr bool holds_pieces      = false;

  template <class Row>
  KOKKOS_FORCEINLINE_FUNCTION A load(const Row&, const Piece&, A*, const Math&) const {
    return A(0);
  }

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
          return finish(math, n == lanes ? load_vector(x + i) : load_lanes(x + i, n, A(0)));
        });
      }
    }
    AnyRow(nullptr, RowGroup{0, 1, 0}).write(row, sink, piece.part(), math, finish);
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_KERNELS_HOST_GRADIENTS_HPP
