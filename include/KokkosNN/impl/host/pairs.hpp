// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_HOST_PAIRS_HPP
#define KOKKOSNN_IMPL_HOST_PAIRS_HPP

#include <KokkosNN/impl/gpu/placement/pairs.hpp>
#include <KokkosNN/impl/host/row_writer.hpp>
#include <KokkosNN/impl/host/rows.hpp>
#include <KokkosNN/impl/host/sums.hpp>
#include <KokkosNN/impl/host/vector_memory.hpp>
#include <KokkosNN/impl/operators/softmax_backward.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstdint>

// Placements of the gradients in HostRows, and their loops over rows of y and dy.

namespace KokkosNN::Impl {

/// Placement that keeps nothing of a row: it is read again, from a cache, to write.
template <class Params>
struct HostRereading : HostPlacementDefaults {
  using A = typename Params::accumulator;

  template <class Row>
  KOKKOS_FORCEINLINE_FUNCTION A load(const Row&, const Piece&, A*, const Params&) const {
    return A(0);
  }
};

/// Change of no pairs.
struct AllPairs {
  static constexpr bool changes = false;
};

/// Row whose pairs are changed: with_pairs(params, begin, f) calls f(change) for the elements from a column on, and
/// change.apply(y, dy, i, n) changes vectors of y and dy, change.chained(dx, i, n) one of results.
template <class Row>
concept ChangesPairs = requires { requires Row::changes_pairs; };

/// Both loops over a row of y and dy, or over a piece of one.
template <class Params>
struct PairLoops : HostPairShapes {
  using A                    = typename Params::accumulator;
  static constexpr int lanes = simd_width<A>;

  static constexpr bool has_products  = HostTerms<Params>::in_double && Params::sums_products;
  static constexpr int least_to_align = 8 * lanes;

  template <bool asks_ahead = false, class Y, class D, class Change = AllPairs>
  KOKKOS_FORCEINLINE_FUNCTION static auto sum(const Y* y, const D* dy, int count, const Change& change = {}) {
    if constexpr (has_products) {
      if (count >= least_by_products) return sum_by<HostProducts<Params>, asks_ahead>(y, dy, count, change);
    }
    return sum_by<HostTerms<Params>, asks_ahead>(y, dy, count, change);
  }

  /// Writes a row and sums the next one, not by products.
  template <class Y, class D, class O, class RowEpilogue>
  KOKKOS_FORCEINLINE_FUNCTION static auto write_and_sum(const Y* y, const D* dy, O* to, const Y* next_y,
                                                        const D* next_dy, int count, const Params params,
                                                        const RowEpilogue epilogue) {
    static_assert(!has_products);
    using Sums = HostTerms<Params>;
    return total_of<Sums>(count, [&](Sums& sums, int i, int n) KOKKOSNN_IMPL_INLINED {
      add_to(sums, next_y, next_dy, i, n, AllPairs{});
      store_up_to(to + i, epilogue(params, load_up_to(y + i, n), load_up_to(dy + i, n)), n);
    });
  }

  /// Writes a row. Its parameters are copied: compilers would read them again after every store.
  template <class Y, class D, class O, class RowEpilogue, class Change = AllPairs>
  KOKKOS_FORCEINLINE_FUNCTION static void write(const Y* y, const D* dy, O* to, int count, RowWriter<O>& writer,
                                                const Params params, const RowEpilogue epilogue,
                                                const Change& change = {}) {
    const auto value = [&](int i, int n) KOKKOSNN_IMPL_INLINED {
      Vector<A> a = load_up_to(y + i, n), b = load_up_to(dy + i, n);
      if constexpr (Change::changes) change.apply(a, b, i, n);
      const Vector<A> dx = epilogue(params, a, b);
      if constexpr (Change::changes) return change.chained(dx, i, n);
      return dx;
    };
    // y, dy and dx mostly have equal alignment: then whole cache lines are loaded as well.
    //   softmax_backward f32, 4 MiB a tensor, two cores, GB/s: x 781 | 111 | without 106; x 500 | 112 | 105
    const bool aligns = count >= least_to_align;
    if constexpr (moves_two_vectors<Y, D, O> && !Change::changes) {
      const auto values = [&](int i) KOKKOSNN_IMPL_INLINED {
        const TwoVectors<Y> a = load_two_vectors(y + i);
        const TwoVectors<D> b = load_two_vectors(dy + i);
        return TwoVectors<O>{epilogue(params, a.first, b.first), epilogue(params, a.second, b.second)};
      };
      writer.write_by_two(to, count, values, value, aligns);
    } else {
      writer.write(to, count, value, aligns);
    }
  }

 private:
  template <class Sums, bool asks_ahead, class Y, class D, class Change>
  KOKKOS_FORCEINLINE_FUNCTION static auto sum_by(const Y* y, const D* dy, int count, const Change& change) {
    const auto ask = [&](int i) KOKKOSNN_IMPL_INLINED {
      if constexpr (asks_ahead && Params::sums_products) {
        prefetch_line(reinterpret_cast<const char*>(y + i) + ahead_bytes);
        prefetch_line(reinterpret_cast<const char*>(dy + i) + ahead_bytes);
      } else if constexpr (asks_ahead) {
        prefetch_line(y + i);
      }
    };
    const auto add = [&](Sums& sums, int i, int n) KOKKOSNN_IMPL_INLINED {
      ask(i);
      add_to(sums, y, dy, i, n, change);
    };
    if constexpr (moves_two_vectors<Y, D> && !Change::changes) {
      return total_of<Sums>(count, add, [&](Sums& first, Sums& second, int i) KOKKOSNN_IMPL_INLINED {
        ask(i);
        const TwoVectors<Y> a = load_two_vectors(y + i);
        const TwoVectors<D> b = load_two_vectors(dy + i);
        first.add(a.first, b.first);
        second.add(a.second, b.second);
      });
    } else {
      return total_of<Sums>(count, add);
    }
  }

  template <class Sums, class Y, class D, class Change>
  KOKKOS_FORCEINLINE_FUNCTION static void add_to(Sums& sums, const Y* y, const D* dy, int i, int n,
                                                 [[maybe_unused]] const Change& change) {
    if constexpr (Change::changes) {
      Vector<A> a = load_up_to(y + i, n), b = load_up_to(dy + i, n);
      change.apply(a, b, i, n);
      sums.add(a, b);
    } else if (n == lanes) {
      sums.add_from(y + i, dy + i);
    } else {
      sums.add(load_lanes(y + i, n, A(0)), load_lanes(dy + i, n, A(0)));
    }
  }

  /// Sums add(sums, i, n) for i = 0, lanes, 2 lanes, ..., with n valid lanes, in two chains of additions.
  template <class Sums, class Add>
  KOKKOS_FORCEINLINE_FUNCTION static auto total_of(int count, const Add& add) {
    return total_of<Sums>(count, add, [&](Sums& first, Sums& second, int i) KOKKOSNN_IMPL_INLINED {
      add(first, i, lanes);
      add(second, i + lanes, lanes);
    });
  }

  /// Sums as the function above; two(first, second, i) adds two vectors.
  template <class Sums, class Add, class AddTwo>
  KOKKOS_FORCEINLINE_FUNCTION static auto total_of(int count, const Add& add, const AddTwo& two) {
    Sums first, second;
    int i = 0;
    for (; i + 2 * lanes <= count; i += 2 * lanes) two(first, second, i);
    if (i + lanes <= count) {
      add(first, i, lanes);
      i += lanes;
    }
    if (i < count) add(first, i, count - i);
    return Sums::total(first, second);
  }
};

/// Rows in memory at one distance.
template <class T>
struct StridedRows {
  T* base;
  std::int64_t stride;

  KOKKOS_FORCEINLINE_FUNCTION T* operator()(std::int64_t l) const { return base + l * stride; }
};

/// Loops over pairs of rows of one piece in memory, of Y and D to O. The loops have nothing else in them: work once a
/// row takes as long as 64 columns or more. A row's bits do not depend on the number of other rows.
template <class Params, class RowEpilogue, class Y, class D, class O>
struct ShortPairs : HostPairShapes {
  using A                    = typename Params::accumulator;
  using Loops                = PairLoops<Params>;
  using Ys                   = StridedRows<const Y>;
  using Ds                   = StridedRows<const D>;
  using Out                  = StridedRows<O>;
  static constexpr int lanes = simd_width<A>;
  static constexpr int rows  = HostRowSums<Params>::rows;

  KOKKOS_INLINE_FUNCTION static void write(const Params params, std::int64_t count, int cols, RowWriter<O>& writer,
                                           const Ys y, const Ds dy, const Out out) {
    const bool nontemporal_stores = writer.nontemporal_stores();
    std::int64_t r                = 0;
    if (cols == lanes && !nontemporal_stores) {
      r = write_vectors<false>(params, count, y, dy, out);
    } else if (cols == lanes && elements_to_boundary(out.base) == 0 && out.stride % lanes == 0) {
      r = write_vectors<true>(params, count, y, dy, out);
    }
    const bool at_once =
        !Loops::has_products && !moves_two_vectors<Y, D, O> && !nontemporal_stores && cols >= least_at_once;
    const int in_block = std::min(most_in_block, block_bytes / (cols * int(sizeof(Y) + sizeof(D))));
    if (!nontemporal_stores && !at_once && in_block > 1) {
      for (; r < count; r += in_block) {
        const std::int64_t left = count - r;
        write_block(params, left < in_block ? static_cast<int>(left) : in_block, cols, {y(r), y.stride},
                    {dy(r), dy.stride}, {out(r), out.stride});
      }
      return;
    }
    if (r == count) return;
    const bool asks = nontemporal_stores && (Params::sums_products || cols <= Loops::most_asked);
    const auto sum  = [&](std::int64_t l) KOKKOSNN_IMPL_INLINED {
      return asks ? Loops::template sum<true>(y(l), dy(l), cols) : Loops::sum(y(l), dy(l), cols);
    };
    auto total = sum(r);
    if constexpr (!Loops::has_products) {
      for (; at_once && r + 1 < count; ++r) {
        total =
            Loops::write_and_sum(y(r), dy(r), out(r), y(r + 1), dy(r + 1), cols, params, RowEpilogue(params, {total}));
      }
    }
    for (; r < count; ++r) {
      Loops::write(y(r), dy(r), out(r), cols, writer, params, RowEpilogue(params, {total}));
      if (r + 1 < count) total = sum(r + 1);
    }
  }

 private:
  /// Processes up to `most_in_block` rows.
  KOKKOS_FORCEINLINE_FUNCTION static void write_block(const Params& params, int count, int cols, const Ys& y,
                                                      const Ds& dy, const Out& out) {
    decltype(Loops::sum(y(0), dy(0), cols)) totals[most_in_block];
    for (int l = 0; l < count; ++l) totals[l] = Loops::sum(y(l), dy(l), cols);
    RowWriter<O> writer(false, false);  // local, for the compiler: x 64 106 GB/s, with the caller's 102
    for (int l = 0; l < count; ++l) {
      Loops::write(y(l), dy(l), out(l), cols, writer, params, RowEpilogue(params, {totals[l]}));
    }
  }

  /// Writes rows of one vector, and returns their number. (Inlined twice, the loop in cache takes a seventh longer.)
  template <bool nontemporal_stores>
  __attribute__((noinline)) static std::int64_t write_vectors(const Params params, std::int64_t count, const Ys y,
                                                              const Ds dy, const Out out) {
    std::int64_t r = 0;
    for (; r + rows <= count; r += rows) {
      write_vectors<nontemporal_stores>(params, {y(r), y.stride}, {dy(r), dy.stride}, {out(r), out.stride});
    }
    return r;
  }

  /// Processes as many rows of one vector as a vector of their sums has lanes: the lanes of all sums are joined at
  /// once.
  template <bool nontemporal_stores>
  KOKKOS_FORCEINLINE_FUNCTION static void write_vectors(const Params& params, const Ys& y, const Ds& dy,
                                                        const Out& out) {
    HostRowSums<Params> sums;
    KOKKOSNN_IMPL_UNROLL
    for (int l = 0; l < rows; ++l) {
      HostTerms<Params> terms;
      terms.add_from(y(l), dy(l));
      sums.set(l, terms);
    }
    DoubleDouble<A> words[rows];
    sums.join(words);
    RowEpilogue epilogue(params, typename Params::State{});
    KOKKOSNN_IMPL_UNROLL
    for (int l = 0; l < rows; ++l) {
      epilogue.sum       = words[l];
      const Vector<A> dx = epilogue(params, load_vector(y(l)), load_vector(dy(l)));
      if constexpr (nontemporal_stores) {
        store_vector_nontemporal(out(l), dx);
      } else {
        store_vector(out(l), dx);
      }
    }
  }
};

/// Placement of the gradients that sum over a row.
template <int V, class Params, class Source>
struct HostPairs : HostRereading<Params> {
  using A      = typename Params::accumulator;
  using Y      = typename decltype(Source::y)::value_type;
  using D      = typename decltype(Source::dy)::value_type;
  using AnyRow = PairOnlinePlacement<Y, D, A, V, 4>;
  using Loops  = PairLoops<Params>;

  static constexpr bool has_row_loops = true;
  template <class Row>
  static constexpr bool is_plain = VectorsOf<decltype(Row::y), A> && VectorsOf<decltype(Row::dy), A>;

  /// Writes rows `first` to `last`, of one piece each, by ShortPairs if their vectors lie in memory. Returns true if
  /// so.
  template <class RowEpilogue, class Rows, class Output, class Writer>
  KOKKOS_FORCEINLINE_FUNCTION static bool write_rows(const Params& params, const Rows& rows, const Output& output,
                                                     std::int64_t first, std::int64_t last, int cols, Writer& writer) {
    using Row       = decltype(rows.row(0));
    using OutputRow = decltype(output.row(0));
    if constexpr (is_plain<Row> && VectorsOf<OutputRow, A>) {
      const Row row        = rows.row(first);
      const OutputRow out  = output.row(first);
      const bool is_unit   = row.y.stride == 1 && row.dy.stride == 1 && out.stride == 1;
      const std::int64_t y = rows.y.map.only_stride(), dy = rows.dy.map.only_stride(), dx = output.map.only_stride();
      if (is_unit && y != 0 && dy != 0 && dx != 0) {
        using O = typename OutputRow::value_type;
        ShortPairs<Params, RowEpilogue, Y, D, O>::write(params, last - first, cols, writer, {row.y.base, y},
                                                        {row.dy.base, dy}, {out.base, dx});
        return true;
      }
    }
    return false;
  }

  template <class Row>
  KOKKOS_FORCEINLINE_FUNCTION typename Params::State reduce(const Row& row, const Piece& piece, A*,
                                                            const Params& params, A, NextPiece<A>&) const {
    if constexpr (is_plain<Row>) {
      if (row.y.stride == 1 && row.dy.stride == 1) {
        typename Params::State state;
        with_change(row, params, piece, [&](const auto& change) {
          state = {Loops::sum(row.y.base + piece.begin, row.dy.base + piece.begin, piece.count, change)};
        });
        return state;
      }
    }
    return AnyRow(nullptr, RowGroup::alone()).reduce(row, piece.part(), params, 1);
  }

  template <class Row, class OutputRow, class RowEpilogue, class Writer>
  KOKKOS_FORCEINLINE_FUNCTION void write(const Row& row, const OutputRow& output, const Piece& piece, A*,
                                         const Params& params, const RowEpilogue& epilogue, Writer& writer) const {
    if constexpr (is_plain<Row> && VectorsOf<OutputRow, A>) {
      if (row.y.stride == 1 && row.dy.stride == 1 && output.stride == 1) {
        return with_change(row, params, piece, [&](const auto& change) {
          Loops::write(row.y.base + piece.begin, row.dy.base + piece.begin, output.base + piece.begin, piece.count,
                       writer, params, epilogue, change);
        });
      }
    }
    AnyRow(nullptr, RowGroup::alone()).write(row, output, piece.part(), params, epilogue);
  }

 private:
  template <class Row, class F>
  KOKKOS_FORCEINLINE_FUNCTION static void with_change(const Row& row, const Params& params, const Piece& piece,
                                                      const F& f) {
    if constexpr (ChangesPairs<Row>) {
      row.with_pairs(params, piece.begin, f);
    } else {
      f(AllPairs{});
    }
  }
};

/// Placement of rows whose results depend on one element and the row's scalars.
template <int V, class Params, class Source>
struct HostElements : HostRereading<Params> {
  using A      = typename Params::accumulator;
  using X      = typename decltype(Source::x)::value_type;
  using AnyRow = ElementwisePlacement<X, A, V, 4>;

  template <class Row>
  KOKKOS_FORCEINLINE_FUNCTION typename Params::State reduce(const Row& row, const Piece&, A*, const Params&, A,
                                                            NextPiece<A>&) const {
    return row.scalars;
  }

  template <class Row, class OutputRow, class RowEpilogue, class Writer>
  KOKKOS_FORCEINLINE_FUNCTION void write(const Row& row, const OutputRow& output, const Piece& piece, A*,
                                         const Params& params, const RowEpilogue& epilogue, Writer& writer) const {
    if constexpr (VectorsOf<decltype(Row::x), A> && VectorsOf<OutputRow, A>) {
      if (row.x.stride == 1 && output.stride == 1) {
        const auto* const x = row.x.base + piece.begin;
        return writer.write(output.base + piece.begin, piece.count,
                            [&](int i, int n) KOKKOSNN_IMPL_INLINED { return epilogue(params, load_up_to(x + i, n)); });
      }
    }
    AnyRow(nullptr, RowGroup::alone()).write(row, output, piece.part(), params, epilogue);
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_HOST_PAIRS_HPP
