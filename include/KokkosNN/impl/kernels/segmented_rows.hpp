// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_KERNELS_SEGMENTED_ROWS_HPP
#define KOKKOSNN_IMPL_KERNELS_SEGMENTED_ROWS_HPP

#include <KokkosNN/impl/device_traits.hpp>
#include <KokkosNN/impl/kernels/gradient_storages.hpp>
#include <KokkosNN/impl/kernels/row_in_team.hpp>
#include <KokkosNN/impl/primitives/finish.hpp>
#include <KokkosNN/impl/primitives/gradient_tile.hpp>
#include <KokkosNN/impl/primitives/segments.hpp>
#include <KokkosNN/impl/primitives/tile.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

// What the kernels for ragged rows do with a row or a part of one: the forward operators, and the gradients.
//
//   keep_span      a chunk from memory into a GPU's team scratch, which prefetch asks for;  keep_elements what is
//   behind it do_cells<K>    a whole row in team scratch by some lanes of a warp, K packs of 4 a lane, in registers
//   reduce_cells   the state of cells, by a team;  finish_cells writes what a row's state makes of them
//   store_cells    from team scratch to the output
//   do_row         a whole row in memory, by a host's thread
//   reduce_part    the state of elements in memory, by a host's thread
//   write_part     elements in memory again, to the output, by any team

namespace KokkosNN::Impl {

/// Packs of 4 that a lane holds of each tensor of a row.
constexpr int segment_packs(int tensors, int accumulator_bytes) {
  return std::max(1, segment_bytes_per_thread(tensors) / accumulator_bytes / 4);
}

/// Elements that a GPU's thread loads at once.
template <class T>
inline constexpr int native_pack = 16 / (sizeof(T) < 2 ? 2 : sizeof(T));

/// Packs of each tensor that a thread has at a time of a part of a long row; a GPU's 16 elements at most.
constexpr int packs_of_parts(Backend backend, int pack) {
  return backend == Backend::host ? packs_at_a_time(backend, pack) : std::min(4, 16 / pack);
}

/// Loads that a GPU's thread needs for its share of a chunk.
template <class T, class A>
constexpr int loads_per_thread(int tensors) {
  return std::max<int>(1, segment_bytes_per_thread(tensors) / static_cast<int>(sizeof(A)) / native_pack<T>);
}

/// A host's thread does a row as row_in_team does: as `Storage` keeps it, by packs of V.
template <int V, class Storage, RowOperator op, class Math, class Row, class SinkRow>
KOKKOS_INLINE_FUNCTION void do_row_with(Storage& storage, const Math& math, const Row& input, const SinkRow& output,
                                        std::int64_t cols) {
  using FinishRow    = typename Finish<op>::template Row<Math, typename Math::accumulator>;
  const RowPart part = RowPart::whole<V>(input, cols, 0);
  const auto mine    = storage.reduce(input, part, math, 1);
  storage.write(input, output, part, math, finish_row<FinishRow>(math, mine, mine));
}

/// softmax, log_softmax or logsumexp of rows of X; Y is of results, or of one value a row.
template <RowOperator operation, class MathOfRow, class X, class Y, Backend backend>
struct SegmentedForward {
  using Math     = MathOfRow;
  using A        = typename Math::accumulator;
  using State    = typename Math::State;
  using Finisher = Finish<operation>;

  static constexpr int tensors          = 1;
  static constexpr int max_packs        = segment_packs(tensors, sizeof(A));
  static constexpr bool one_value_a_row = Finisher::one_value_a_row;
  static constexpr bool keep            = Finisher::keeps_exponentials;
  static constexpr int V = pack_size(backend, sizeof(X), one_value_a_row ? sizeof(X) : sizeof(Y), sizeof(A));

  Math math;
  Values<const X> x;
  Values<Y> y;

  /// A team's scratch.
  struct Planes {
    A* data;
    int plane;
    KOKKOS_INLINE_FUNCTION Cells<A> cells() const { return {data}; }
  };

  static constexpr int loads = loads_per_thread<X, A>(tensors);

  KOKKOS_INLINE_FUNCTION void prefetch(std::int64_t begin, std::int64_t end, const RowGroup& group) const {
    SharedSpan<X, native_pack<X>, loads>(x, begin, end, group).prefetch();
  }

  KOKKOS_INLINE_FUNCTION void keep_span(std::int64_t begin, std::int64_t end, const Planes& planes,
                                        const RowGroup& group) const {
    Impl::keep_span<native_pack<X>, loads>(x, begin, end, planes.cells(), group, math.sign);
  }

  KOKKOS_INLINE_FUNCTION void keep_elements(std::int64_t from, int count, const Planes& planes, int to,
                                            const RowGroup& group) const {
    Impl::keep_elements(x, from, count, planes.cells(), to, group, math.sign);
  }

  KOKKOS_INLINE_FUNCTION void store_cells(std::int64_t begin, int count, const Planes& planes, int from,
                                          const RowGroup& group) const {
    Impl::store_cells<native_pack<Y>>(y, begin, count, planes.cells(), from, group);
  }

  KOKKOS_INLINE_FUNCTION void store_value(const State& state, std::int64_t row) const {
    y[row] = static_cast<Y>(Finisher::value(math, state));
  }

  template <int K>
  KOKKOS_INLINE_FUNCTION void do_cells(const Planes& planes, int first, int count, int lane, int lanes,
                                       std::int64_t row) const {
    const Cells<A> cells = planes.cells();
    Tile<A, 4, K> tile;
    for_own_cells<K>(count, lane, lanes, [&](int i, int k, int v, bool is_there) {
      tile.pack[k][v] = is_there ? cells[first + i] : -Kokkos::Experimental::infinity_v<A>;
    });
    const A reference = math.exp.reference_of(reduce_lanes(tile.max(), 1, lanes, MaxJoin{}));
    PackSums<Math, 4> sums;
    tile.template add_exponentials<keep>(math, math.exp.at(finite_reference(reference)), sums);
    const State all = merge_warp(math, State{reference, sums.all_lanes()}, lanes);
    if constexpr (one_value_a_row) {
      if (count > 0 && lane == 0) store_value(all, row);
    } else {
      const auto finish = finish_row<FinishRow>(math, all, all);
      const int again   = opaque(first);  // or nvcc keeps the addresses of all cells
      for_own_cells<K>(count, lane, lanes, [&](int i, int k, int v, bool is_there) {
        if (is_there) cells[again + i] = finish(math, tile.pack[k][v]);
      });
    }
  }

  /// A thread's share of the cells; `keeps` leaves the exponentials in place where the operator wants them.
  template <bool keeps>
  KOKKOS_INLINE_FUNCTION State reduce_cells(const Planes& planes, int first, int count, const RowGroup& group) const {
    const Cells<A> cells = planes.cells();
    A max                = -Kokkos::Experimental::infinity_v<A>;
    for (int i = group.rank; i < count; i += group.size) max = max_ignoring_nan(max, cells[first + i]);
    const A reference  = math.exp.reference_of(reduce_lanes(max, 1, group.lanes(), MaxJoin{}));
    const auto at_warp = math.exp.at(finite_reference(reference));
    ExponentialSums<Math, 1> sums;
    for (int i = group.rank; i < count; i += group.size) {
      const A e = math.exp(cells[first + i], at_warp);
      if constexpr (keeps && keep) cells[first + i] = e;
      sums.add(0, e);
    }
    return {reference, sums.all_lanes()};
  }

  KOKKOS_INLINE_FUNCTION void finish_cells(const Planes& planes, int first, int count, const State& mine,
                                           const State& all, const RowGroup& group, std::int64_t row) const {
    if constexpr (one_value_a_row) {
      if (group.rank == 0) store_value(all, row);
    } else {
      const Cells<A> cells = planes.cells();
      const auto finish    = finish_row<FinishRow>(math, mine, all);
      for (int i = group.rank; i < count; i += group.size) cells[first + i] = finish(math, cells[first + i]);
    }
  }

  /// Rows of so many elements as a pack of V / 4 or V / 2 has go in one of those: rows of a graph are short.
  KOKKOS_INLINE_FUNCTION void do_row(std::int64_t begin, std::int64_t end, std::int64_t row, A* scratch) const {
    const std::int64_t cols = end - begin;
    if (cols <= V / 4)
      return do_row_in<RegisterStorage<operation, A, V / 4, 1, false>, V / 4>(begin, cols, row, scratch);
    if (cols <= V / 2)
      return do_row_in<RegisterStorage<operation, A, V / 2, 1, false>, V / 2>(begin, cols, row, scratch);
    if (cols <= V) return do_row_in<RegisterStorage<operation, A, V, 1, false>, V>(begin, cols, row, scratch);
    do_row_in<ScratchStorage<operation, A, V, 4, false>, V>(begin, cols, row, scratch);
  }

  KOKKOS_INLINE_FUNCTION State reduce_part(std::int64_t begin, std::int64_t end) const {
    const RowGroup alone{0, 1, 0};
    Parts parts(nullptr, alone);
    const auto input = x.row(begin);
    return parts.reduce(input, RowPart::whole<V>(input, end - begin, 0), math, 1);
  }

  /// A pack of a GPU must be aligned, in x and in y: what stands before the first boundary goes by itself.
  KOKKOS_INLINE_FUNCTION void write_part(std::int64_t begin, std::int64_t end, const State& all,
                                         const RowGroup& group) const {
    if constexpr (!one_value_a_row) {
      const auto finish       = finish_row<FinishRow>(math, all, all);
      const std::int64_t head = begin + x.template head<V>(begin);
      const std::int64_t body = head < end ? head : end;
      for (int part = 0; part < 2; ++part) {
        const std::int64_t from = part == 0 ? begin : body;
        const std::int64_t to   = part == 0 ? body : end;
        const auto input        = x.row(from);
        Parts(nullptr, group).write(input, y.row(from), RowPart::whole<V>(input, to - from, group.rank), math, finish);
      }
    }
  }

 private:
  using FinishRow =
      typename std::conditional_t<one_value_a_row, Finish<RowOperator::softmax>, Finisher>::template Row<Math, A>;
  using Parts = OnlineStorage<operation, A, V, packs_of_parts(backend, V)>;

  template <class Storage, int VRow>
  KOKKOS_INLINE_FUNCTION void do_row_in(std::int64_t begin, std::int64_t cols, std::int64_t row, A* scratch) const {
    const RowGroup alone{0, 1, 0};
    Storage storage(scratch, alone);
    const auto input = x.row(begin);
    if constexpr (one_value_a_row) {
      store_value(storage.reduce(input, RowPart::whole<VRow>(input, cols, 0), math, 1), row);
    } else {
      do_row_with<VRow, Storage, operation>(storage, math, input, y.row(begin), cols);
    }
  }
};

/// softmax_backward or log_softmax_backward of rows of y and dy, both of T.
template <RowOperator operation, class MathOfRow, class T, Backend backend>
struct SegmentedBackward {
  using Math     = MathOfRow;
  using A        = typename Math::accumulator;
  using State    = typename Math::State;
  using Finisher = Finish<operation>;

  static constexpr int tensors          = 2;
  static constexpr int max_packs        = segment_packs(tensors, sizeof(A));
  static constexpr bool one_value_a_row = false;
  static constexpr int V                = pack_size(backend, sizeof(T), sizeof(T), sizeof(A));

  Math math;
  Values<const T> y;
  Values<const T> dy;
  Values<T> dx;

  struct Planes {
    A* data;
    int plane;
    KOKKOS_INLINE_FUNCTION Cells<A> y() const { return {data}; }
    KOKKOS_INLINE_FUNCTION Cells<A> dy() const { return {data + plane}; }
  };

  static constexpr int loads = loads_per_thread<T, A>(tensors);

  KOKKOS_INLINE_FUNCTION void prefetch(std::int64_t begin, std::int64_t end, const RowGroup& group) const {
    SharedSpan<T, native_pack<T>, loads>(y, begin, end, group).prefetch();
    SharedSpan<T, native_pack<T>, loads>(dy, begin, end, group).prefetch();
  }

  KOKKOS_INLINE_FUNCTION void keep_span(std::int64_t begin, std::int64_t end, const Planes& planes,
                                        const RowGroup& group) const {
    Impl::keep_span<native_pack<T>, loads>(y, begin, end, planes.y(), group, A(1));
    Impl::keep_span<native_pack<T>, loads>(dy, begin, end, planes.dy(), group, A(1));
  }

  KOKKOS_INLINE_FUNCTION void keep_elements(std::int64_t from, int count, const Planes& planes, int to,
                                            const RowGroup& group) const {
    Impl::keep_elements(y, from, count, planes.y(), to, group, A(1));
    Impl::keep_elements(dy, from, count, planes.dy(), to, group, A(1));
  }

  KOKKOS_INLINE_FUNCTION void store_cells(std::int64_t begin, int count, const Planes& planes, int from,
                                          const RowGroup& group) const {
    Impl::store_cells<native_pack<T>>(dx, begin, count, planes.dy(), from, group);
  }

  template <int K>
  KOKKOS_INLINE_FUNCTION void do_cells(const Planes& planes, int first, int count, int lane, int lanes,
                                       std::int64_t) const {
    const Cells<A> y_cells  = planes.y();
    const Cells<A> dy_cells = planes.dy();
    Pack<A, 4> value[K];
    Pack<A, 4> gradient[K];
    for_own_cells<K>(count, lane, lanes, [&](int i, int k, int v, bool is_there) {
      value[k][v]    = is_there ? y_cells[first + i] : A(0);
      gradient[k][v] = is_there ? dy_cells[first + i] : A(0);
    });
    TermSums<Math, 1> sums;
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) add_pack(sums, value[k], gradient[k]);
    const State all   = merge_warp(math, State{sums.all_lanes()}, lanes);
    const auto finish = finish_row<FinishRow>(math, all, all);
    const int again   = opaque(first);  // or nvcc keeps the addresses of all cells
    for_own_cells<K>(count, lane, lanes, [&](int i, int k, int v, bool is_there) {
      if (is_there) dy_cells[again + i] = finish(math, value[k][v], gradient[k][v]);
    });
  }

  template <bool>
  KOKKOS_INLINE_FUNCTION State reduce_cells(const Planes& planes, int first, int count, const RowGroup& group) const {
    TermSums<Math, 1> sums;
    for (int i = group.rank; i < count; i += group.size) {
      add_pack(sums, Pack<A, 1>{{planes.y()[first + i]}}, Pack<A, 1>{{planes.dy()[first + i]}});
    }
    return {sums.all_lanes()};
  }

  KOKKOS_INLINE_FUNCTION void finish_cells(const Planes& planes, int first, int count, const State&, const State& all,
                                           const RowGroup& group, std::int64_t) const {
    const auto finish = finish_row<FinishRow>(math, all, all);
    for (int i = group.rank; i < count; i += group.size) {
      planes.dy()[first + i] = finish(math, planes.y()[first + i], planes.dy()[first + i]);
    }
  }

  KOKKOS_INLINE_FUNCTION void do_row(std::int64_t begin, std::int64_t end, std::int64_t, A* scratch) const {
    const std::int64_t cols = end - begin;
    if (cols <= V / 4) return do_row_in<PairRegisterStorage<T, T, A, V / 4, 1>, V / 4>(begin, cols, scratch);
    if (cols <= V) return do_row_in<PairRegisterStorage<T, T, A, V, 1>, V>(begin, cols, scratch);
    do_row_in<Parts, V>(begin, cols, scratch);
  }

  KOKKOS_INLINE_FUNCTION State reduce_part(std::int64_t begin, std::int64_t end) const {
    const RowGroup alone{0, 1, 0};
    const auto input = row(begin);
    return Parts(nullptr, alone).reduce(input, RowPart::whole<V>(input, end - begin, 0), math, 1);
  }

  KOKKOS_INLINE_FUNCTION void write_part(std::int64_t begin, std::int64_t end, const State& all,
                                         const RowGroup& group) const {
    const auto finish       = finish_row<FinishRow>(math, all, all);
    const std::int64_t head = begin + y.template head<V>(begin);
    const std::int64_t body = head < end ? head : end;
    for (int part = 0; part < 2; ++part) {
      const std::int64_t from = part == 0 ? begin : body;
      const std::int64_t to   = part == 0 ? body : end;
      const auto input        = row(from);
      Parts(nullptr, group).write(input, dx.row(from), RowPart::whole<V>(input, to - from, group.rank), math, finish);
    }
  }

 private:
  using FinishRow = typename Finisher::template Row<Math, A>;
  using Parts     = PairOnlineStorage<T, T, A, V, packs_of_parts(backend, V)>;
  using MemRows   = MemoryRows<const T, RowForm::any>;
  using PairRow   = typename PairRows<MemRows, MemRows>::template Row<MemoryRow<const T, RowForm::any>,
                                                                    MemoryRow<const T, RowForm::any>>;

  KOKKOS_INLINE_FUNCTION PairRow row(std::int64_t begin) const { return {y.row(begin), dy.row(begin)}; }

  template <class Storage, int VRow>
  KOKKOS_INLINE_FUNCTION void do_row_in(std::int64_t begin, std::int64_t cols, A* scratch) const {
    const RowGroup alone{0, 1, 0};
    Storage storage(scratch, alone);
    do_row_with<VRow, Storage, operation>(storage, math, row(begin), dx.row(begin), cols);
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_KERNELS_SEGMENTED_ROWS_HPP
