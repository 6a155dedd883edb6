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

/// What keeps nothing of a row: it is read again, from a cache, to write.
template <class Math>
struct HostRereading {
  using A                                 = typename Math::accumulator;
  static constexpr int lanes              = lanes_of<A>;
  static constexpr bool keeps_rows        = false;
  static constexpr bool has_own_reference = false;
  static constexpr bool holds_pieces      = false;

  template <class Row>
  KOKKOS_FORCEINLINE_FUNCTION A load(const Row&, const Piece&, A*, const Math&) const {
    return A(0);
  }

 protected:
  /// Only elements of the row may be touched: others may be another thread's, who is writing them.
  KOKKOS_FORCEINLINE_FUNCTION static Vector<A> load_up_to(const A* from, int count) {
    return count == lanes ? load_vector(from) : load_lanes(from, count, A(0));
  }
};

/// The gradients that sum over a row.
template <int V, class Math, class Source>
struct HostPairs : HostRereading<Math> {
  using A      = typename Math::accumulator;
  using Y      = typename decltype(Source::y)::value_type;
  using D      = typename decltype(Source::dy)::value_type;
  using AnyRow = PairOnlineStorage<Y, D, A, V, 4>;
  using Base   = HostRereading<Math>;
  using Base::lanes, Base::load_up_to;

  template <class Row>
  KOKKOS_FORCEINLINE_FUNCTION typename Math::State reduce(const Row& row, const Piece& piece, A*, const Math& math, A,
                                                          const void*) const {
    if constexpr (is_plain<Row>) {
      if (row.y.stride == 1 && row.dy.stride == 1) {
        return {sum(row.y.base + piece.begin, row.dy.base + piece.begin, piece.count)};
      }
    }
    return AnyRow(nullptr, RowGroup::alone()).reduce(row, piece.part(), math, 1);
  }

  template <class Row, class SinkRow, class FinishRow>
  KOKKOS_FORCEINLINE_FUNCTION void write(const Row& row, const SinkRow& sink, const Piece& piece, A*, const Math& math,
                                         const FinishRow& finish, bool streams) const {
    if constexpr (is_plain<Row> && MemoryOf<SinkRow, A>) {
      if (row.y.stride == 1 && row.dy.stride == 1 && sink.stride == 1) {
        const A* const y  = row.y.base + piece.begin;
        const A* const dy = row.dy.base + piece.begin;
        return write_vectors(sink.base + piece.begin, piece.count, streams, [&](int i, int n) KOKKOSNN_IMPL_INLINED {
          return finish(math, load_up_to(y + i, n), load_up_to(dy + i, n));
        });
      }
    }
    AnyRow(nullptr, RowGroup::alone()).write(row, sink, piece.part(), math, finish);
  }

 private:
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
struct HostElements : HostRereading<Math> {
  using A      = typename Math::accumulator;
  using X      = typename decltype(Source::x)::value_type;
  using AnyRow = ElementwiseStorage<X, A, V, 4>;
  using HostRereading<Math>::load_up_to;

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
