// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_HOST_ATTENTION_TILES_HPP
#define KOKKOSNN_IMPL_HOST_ATTENTION_TILES_HPP

#include <KokkosNN/impl/attention_shapes.hpp>
#include <KokkosNN/impl/host/vector.hpp>
#include <KokkosNN/impl/host/vector_memory.hpp>
#include <KokkosNN/impl/inputs/attention_tensors.hpp>
#include <KokkosNN/impl/inputs/rows.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

// Products of matrices in a host thread's scratch. Rows are padded to whole vectors, and columns are those of a tile;
// a block has rows_at_once rows or a multiple of that.

namespace KokkosNN::Impl {

template <class X>
struct AttentionTiles {
  using A                              = accumulator_t<X>;
  using V                              = Vector<A>;
  static constexpr int width           = simd_width<A>;
  static constexpr int tile            = host_attention_tile;
  static constexpr int rows_at_once    = 4;
  static constexpr int vectors_at_once = vector_bytes == 64 ? 4 : 2;  ///< their sums stay in registers
  static_assert(tile % (vectors_at_once * width) == 0 && host_attention_padding % width == 0);

  /// Numbers first + begin to first + end of a tile.
  struct Part {
    std::int64_t first;
    int begin;
    int end;
  };
  /// Part of a range that lies in the tile at `first`.
  KOKKOS_FUNCTION static Part part_of(const ColumnRange& range, std::int64_t first) {
    return {first, within(range.begin - first, tile), within(range.end - first, tile)};
  }
  KOKKOS_FUNCTION static int within(std::int64_t number, int end) {
    return number < 0 ? 0 : number < end ? static_cast<int>(number) : end;
  }

  /// Range of all columns that either row may see.
  KOKKOS_FUNCTION static ColumnRange joined(const ColumnRange& a, const ColumnRange& b) {
    if (a.begin == a.end) return b;
    if (b.begin == b.end) return a;
    return {a.begin < b.begin ? a.begin : b.begin, a.end > b.end ? a.end : b.end};
  }

  /// f(block, number of rows) for a team's blocks of the rows, or keys, that each head of k has. Teams take them in
  /// turn: under a causal mask the later blocks take longer.
  template <class Member, class F>
  KOKKOS_FUNCTION static void for_blocks(const Member& team, const AttentionData<X>& data, bool of_keys, int block_rows,
                                         const F& f) {
    for (std::int64_t n = team.league_rank(); n < data.blocks(of_keys, block_rows); n += team.league_size()) {
      const auto block = data.block(n, of_keys, block_rows);
      if (block.left > 0) f(block, block.left < block_rows ? static_cast<int>(block.left) : block_rows);
    }
  }

  KOKKOS_FUNCTION static void clear(A* from, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) from[i] = 0;
  }

  /// Number of rows that products take for a block of so many.
  KOKKOS_FUNCTION static int padded_rows(int rows) { return (rows + rows_at_once - 1) / rows_at_once * rows_at_once; }

  /// Copies a row of a tensor, and zeros behind it.
  KOKKOS_FUNCTION static void load_row(const X* from, std::int64_t stride, std::int64_t count, std::int64_t padded,
                                       A* to) {
    if (stride != 1) {
      for (std::int64_t d = 0; d < count; ++d) to[d] = static_cast<A>(from[d * stride]);
      for (std::int64_t d = count; d < padded; ++d) to[d] = 0;
      return;
    }
    for (std::int64_t d = 0; d < padded; d += width) store_vector(to + d, load_part(from + d, count - d));
  }
  /// Loads a vector, or what is left of the row, with zeros behind it.
  KOKKOS_FORCEINLINE_FUNCTION static V load_part(const X* from, std::int64_t left) {
    if (left <= 0) return splat<V>(A(0));
    return load_up_to(from, left < width ? static_cast<int>(left) : width);
  }
  KOKKOS_FUNCTION static void store_row(const A* from, std::int64_t stride, std::int64_t count, X* to) {
    if (stride != 1) {
      for (std::int64_t d = 0; d < count; ++d) to[d * stride] = static_cast<X>(from[d]);
      return;
    }
    for (std::int64_t d = 0; d < count; d += width) {
      store_up_to(to + d, load_vector(from + d), count - d < width ? static_cast<int>(count - d) : width);
    }
  }

  KOKKOS_FUNCTION static bool are_finite(const A* from, std::int64_t count) {
    V zeros = splat<V>(A(0));  // or NaN
    for (std::int64_t i = 0; i < count; i += width) zeros = zeros + load_vector(from + i) * splat<V>(A(0));
    return fold_lanes(zeros, JoinSums{}) == A(0);
  }

  /// Copies the rows of a tile to columns.
  KOKKOS_FUNCTION static void transpose_tile(const A* rows, std::int64_t padded, A* columns) {
    for (int j = 0; j < tile; j += width) {
      for (std::int64_t d = 0; d < padded; d += width) {
        V part[width];
        for (int l = 0; l < width; ++l) part[l] = load_vector(rows + (j + l) * padded + d);
        transpose<A>(part);
        for (int l = 0; l < width; ++l) store_vector(columns + (d + l) * tile + j, part[l]);
      }
    }
  }

  /// Products of a block's rows and the first `end` columns of a tile, or some more.
  KOKKOS_FUNCTION static void multiply(const A* block, int rows, std::int64_t padded, std::int64_t dim,
                                       const A* columns, int end, A* products) {
    for (int r = 0; r < rows; r += rows_at_once) {
      const A* const row = block + r * padded;
      for (int j = 0; j < end; j += vectors_at_once * width) {
        V sums[rows_at_once][vectors_at_once];
        for (auto& of_row : sums) {
          for (V& sum : of_row) sum = splat<V>(A(0));
        }
        for (std::int64_t d = 0; d < dim; ++d) add_terms(row + d, padded, columns + d * tile + j, sums);
        for (int i = 0; i < rows_at_once; ++i) {
          for (int c = 0; c < vectors_at_once; ++c) {
            store_vector(products + (r + i) * tile + j + c * width, sums[i][c]);
          }
        }
      }
    }
  }

  /// Adds weights, rows of a tile's columns, times the part of the tile's rows. Where not all of these are finite,
  /// those without a weight must not count.
  KOKKOS_FUNCTION static void add_products(const A* weights, int rows, const Part& part, const A* of_tile,
                                           std::int64_t padded, bool are_finite, A* sums) {
    (are_finite ? add_finite : add_any)(weights, rows, part.begin, part.end, of_tile, padded, sums);
  }

 private:
  KOKKOS_FUNCTION static void add_finite(const A* weights, int rows, int begin, int end, const A* of_tile,
                                         std::int64_t padded, A* sums) {
    for (int r = 0; r < rows; r += rows_at_once) {
      std::int64_t d = 0;
      for (; d + vectors_at_once * width <= padded; d += vectors_at_once * width) {
        add_part<vectors_at_once>(weights + r * tile, begin, end, of_tile + d, padded, sums + r * padded + d);
      }
      for (; d < padded; d += width) {
        add_part<1>(weights + r * tile, begin, end, of_tile + d, padded, sums + r * padded + d);
      }
    }
  }

  KOKKOS_FUNCTION static void add_any(const A* weights, int rows, int begin, int end, const A* of_tile,
                                      std::int64_t padded, A* sums) {
    for (int r = 0; r < rows; ++r) {
      for (int j = begin; j < end; ++j) {
        const A weight = weights[r * tile + j];
        if (weight == A(0)) continue;
        for (std::int64_t d = 0; d < padded; ++d) {
          sums[r * padded + d] = sums[r * padded + d] + weight * of_tile[j * padded + d];
        }
      }
    }
  }

  /// Adds to each row of sums a number of that row times the vectors at `from`. The compiler fuses where the machine
  /// does.
  template <int n>
  KOKKOS_FORCEINLINE_FUNCTION static void add_terms(const A* factors, std::int64_t stride, const A* from,
                                                    V (&sums)[rows_at_once][n]) {
    V terms[n];
    for (int c = 0; c < n; ++c) terms[c] = load_vector(from + c * width);
    for (int i = 0; i < rows_at_once; ++i) {
      const V factor = splat<V>(factors[i * stride]);
      for (int c = 0; c < n; ++c) sums[i][c] = factor * terms[c] + sums[i][c];
    }
  }

  template <int n>
  KOKKOS_FUNCTION static void add_part(const A* weights, int begin, int end, const A* of_tile, std::int64_t padded,
                                       A* to) {
    V sums[rows_at_once][n];
    for (int i = 0; i < rows_at_once; ++i) {
      for (int c = 0; c < n; ++c) sums[i][c] = load_vector(to + i * padded + c * width);
    }
    for (int j = begin; j < end; ++j) add_terms(weights + j, tile, of_tile + j * padded, sums);
    for (int i = 0; i < rows_at_once; ++i) {
      for (int c = 0; c < n; ++c) store_vector(to + i * padded + c * width, sums[i][c]);
    }
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_HOST_ATTENTION_TILES_HPP
