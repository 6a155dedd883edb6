// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_HOST_OPERAND_INNER_HPP
#define KOKKOSNN_IMPL_HOST_OPERAND_INNER_HPP

#include <KokkosNN/impl/gpu/operand_inner.hpp>
#include <KokkosNN/impl/host/operand_reductions.hpp>
#include <KokkosNN/impl/host/operands.hpp>
#include <KokkosNN/impl/host/vector_memory.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstdint>
#include <type_traits>

// inner_lanes on a host for any operator that is a struct (inputs/operands.hpp): some neighbouring rows are transposed,
// piece by piece, into memory where each is a row, and are processed as such (HostOperands).

namespace KokkosNN::Impl {

/// TeamPolicy functor: a thread has blocks of `width` neighbouring rows.
template <class Params, class T>
struct HostOperandInner {
  using Operator  = typename Params::Operator;
  using A         = typename Params::accumulator;
  using Reduction = typename Operator::Reduction;
  using Epilogue  = typename Operator::Epilogue;
  using V         = Vector<A>;

  static constexpr int lanes  = simd_width<A>;
  static constexpr int most   = 16 * lanes;                                    ///< rows at a time
  static constexpr int length = 65536 / (most * static_cast<int>(sizeof(A)));  ///< columns of a piece
  static constexpr int shown  = held_rows<Operator> + Operator::late_inputs;
  /// Rows of a piece, with a vector between them, so that they do not share sets of a cache.
  using Rows = A[most][length + lanes];

  InnerOperands<Operator, T> operands;
  Params params;
  std::int64_t outer;
  std::int64_t inner;
  int width;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    KOKKOS_IF_ON_HOST((do_blocks(team);))
  }

 private:
  /// Some neighbouring rows: n of them, from row i of outer index o on.
  struct Place {
    std::int64_t o;
    std::int64_t i;
    int n;
  };

  /// Columns of a piece.
  struct Columns {
    std::int64_t begin;
    int count;
  };

  template <class Member>
  void do_blocks(const Member& team) const {
    alignas(vector_bytes) Rows held[shown];
    const std::int64_t blocks  = (inner + width - 1) / width;
    const std::int64_t threads = std::int64_t(team.league_size()) * team.team_size();
    for (std::int64_t b = std::int64_t(team.league_rank()) * team.team_size() + team.team_rank(); b < outer * blocks;
         b += threads) {
      const std::int64_t begin = b % blocks * width, end = std::min(inner, begin + width);
      for (std::int64_t i = begin; i < end; i += most) {
        do_rows({b / blocks, i, static_cast<int>(std::min<std::int64_t>(most, end - i))}, held);
      }
    }
  }

  std::int64_t pieces() const { return (params.cols + length - 1) / length; }
  Columns piece(std::int64_t number) const {
    const std::int64_t begin = number * length;
    return {begin, static_cast<int>(std::min<std::int64_t>(length, params.cols - begin))};
  }

  void do_rows(const Place& at, Rows (&held)[shown]) const {
    ScalarsOf<Operator> scalars[most];
    Reduction reduced[most];
    for (int r = 0; r < at.n; ++r) scalars[r] = values_of_row(operands.scalars, at.o * inner + at.i + r);
    for (std::int64_t p = 0; p < pieces(); ++p) {
      load_held(at, piece(p), held);
      for (int r = 0; r < at.n; ++r) {
        const Reduction own = HostReduction<Reduction>::template of<Operator>(vectors<false>(held, r, piece(p)),
                                                                              piece(p).count, params.own, scalars[r]);
        reduced[r]          = p == 0 ? own : Reduction::joined(reduced[r], own);
      }
    }
    Epilogue epilogue[most];
    for (int r = 0; r < at.n; ++r) {
      epilogue[r] = Epilogue(params.own, reduced[r], scalars[r], params.cols);
      store_row_outputs(operands.values, at.o * inner + at.i + r, epilogue[r]);
    }
    if constexpr (writes_rows<Operator>) write(at, held, epilogue);
  }

  /// Writes backward: the last piece is still held.
  void write(const Place& at, Rows (&held)[shown], const Epilogue (&epilogue)[most]) const {
    for (std::int64_t p = pieces() - 1; p >= 0; --p) {
      const Columns columns = piece(p);
      if (p + 1 < pieces()) load_held(at, columns, held);
      for (int k = held_rows<Operator>; k < shown; ++k) load(at, columns, held[k], operands.input[k]);
      if constexpr (Operator::sums_inputs) store(at, columns, held[0], operands.sum);
      for (int r = 0; r < at.n; ++r) {
        const auto own  = epilogue[r];  // a copy: reads through a reference are repeated after every store
        const auto all  = vectors<true>(held, r, columns);
        A* const result = held[0][r];
        for (int c = 0; c < columns.count; c += lanes) {
          const int m = std::min(lanes, columns.count - c);
          store_vector(result + c,
                       all.apply(c, m, [&](const auto&... values) KOKKOSNN_IMPL_INLINED { return own(values...); }));
        }
      }
      store(at, columns, held[0], operands.output);
    }
  }

  template <bool has_late>
  auto vectors(const Rows (&held)[shown], int r, const Columns& columns) const {
    const A* rows[shown];
    for (int k = 0; k < shown; ++k) rows[k] = held[k][r];
    return HostOperandVectors<Operator, T, has_late, true>(rows, params, columns.begin);
  }

  /// Loads the rows that the reduction reads; of two that are summed the sum, as it is once it was stored.
  void load_held(const Place& at, const Columns& columns, Rows (&held)[shown]) const {
    for (int k = 0; k < held_rows<Operator>; ++k) load(at, columns, held[k], operands.input[k]);
    if constexpr (Operator::sums_inputs) {
      load(at, columns, held[0], operands.input[1], [&](const V& other, int r, int c) KOKKOSNN_IMPL_INLINED {
        return as_stored<T>(load_vector(held[0][r] + c) + other);
      });
    }
  }

  void load(const Place& at, const Columns& columns, Rows& rows, const InnerRows<const T>& from) const {
    load(at, columns, rows, from, [](const V& v, int, int) KOKKOSNN_IMPL_INLINED { return v; });
  }

  /// Transposes neighbouring rows, by squares, to row after row of result(vector, row, column).
  template <class Result>
  void load(const Place& at, const Columns& columns, Rows& rows, const InnerRows<const T>& from,
            const Result& result) const {
    for_squares(at, columns, from, [&](const T* first, int r, int n, int c, int m) KOKKOSNN_IMPL_INLINED {
      V square[lanes];
      if (n == lanes && m == lanes && from.inner_stride == 1) {
        for (int k = 0; k < lanes; ++k) square[k] = load_vector(first + k * from.col_stride);
      } else {
        for (int k = 0; k < lanes; ++k) {
          square[k] = k < m ? load_rows(first + k * from.col_stride, from.inner_stride, n) : V{};
        }
      }
      transpose<A>(square);
      for (int l = 0; l < n; ++l) store_vector(rows[r + l] + c, result(square[l], r + l, c));
    });
  }

  void store(const Place& at, const Columns& columns, const Rows& rows, const InnerRows<T>& to) const {
    for_squares(at, columns, to, [&](T* first, int r, int n, int c, int m) KOKKOSNN_IMPL_INLINED {
      V square[lanes];
      for (int l = 0; l < lanes; ++l) square[l] = l < n ? load_vector(rows[r + l] + c) : V{};
      transpose<A>(square);
      if (n == lanes && m == lanes && to.inner_stride == 1) {
        for (int k = 0; k < lanes; ++k) store_vector(first + k * to.col_stride, square[k]);
      } else {
        for (int k = 0; k < m; ++k) store_rows(first + k * to.col_stride, to.inner_stride, square[k], n);
      }
    });
  }

  /// f(address, row, rows, column, columns) for squares of as many rows and columns as a vector has lanes.
  template <class X, class F>
  static void for_squares(const Place& at, const Columns& columns, const InnerRows<X>& rows, const F& f) {
    X* const first = rows.data + rows.map(at.o) + at.i * rows.inner_stride + columns.begin * rows.col_stride;
    for (int c = 0; c < columns.count; c += lanes) {
      for (int r = 0; r < at.n; r += lanes) {
        f(first + c * rows.col_stride + r * rows.inner_stride, r, std::min(lanes, at.n - r), c,
          std::min(lanes, columns.count - c));
      }
    }
  }

  /// The elements of n neighbouring rows at one column.
  KOKKOS_FORCEINLINE_FUNCTION static V load_rows(const T* from, std::int64_t stride, int n) {
    if (stride == 1) return load_up_to(from, n);
    A each[lanes] = {};
    for (int l = 0; l < n; ++l) each[l] = static_cast<A>(from[l * stride]);
    return load_vector(each);
  }
  KOKKOS_FORCEINLINE_FUNCTION static void store_rows(T* to, std::int64_t stride, const V& values, int n) {
    if (stride == 1) return store_up_to(to, values, n);
    A each[lanes];
    store_vector(each, values);
    for (int l = 0; l < n; ++l) to[l * stride] = static_cast<T>(each[l]);
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_HOST_OPERAND_INNER_HPP
