// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_HOST_MATMUL_HPP
#define KOKKOSNN_IMPL_HOST_MATMUL_HPP

#include <KokkosNN/impl/host/elementwise.hpp>
#include <KokkosNN/impl/host/vector.hpp>
#include <KokkosNN/impl/host/vector_memory.hpp>
#include <KokkosNN/impl/inputs/matmul_tensors.hpp>
#include <KokkosNN/impl/matmul_shapes.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

// Matrix products on a host. A thread takes a tile of c: it packs a part of a, row by row, and of b, as strips of few
// vectors, into its scratch, converted to accumulators and with zeros behind their ends; multiplies these by blocks of
// sums in registers, which are kept in scratch from one part to the next; and runs the epilogue over the tile as an
// elementwise call does. Sums go along the inner axis in order, so an element's bits do not depend on tiles or threads.

namespace KokkosNN::Impl {

/// Applies alpha, and the epilogue.
template <class F, class A>
struct ScaledResult : MatmulEpilogue<F, A> {
  static constexpr bool takes_vectors = Impl::takes_vectors<F>;

  template <class T, class... In>
  KOKKOS_FORCEINLINE_FUNCTION auto operator()(T sum, In... in) const {
    return this->f(sum * splat<T>(this->alpha), in...);
  }
};
/// Applies alpha and beta, and the epilogue.
template <class F, class A>
struct ScaledUpdate : MatmulEpilogue<F, A> {
  static constexpr bool takes_vectors = Impl::takes_vectors<F>;

  template <class T, class... In>
  KOKKOS_FORCEINLINE_FUNCTION auto operator()(T sum, T before, In... in) const {
    return this->f(sum * splat<T>(this->alpha) + before * splat<T>(this->beta), in...);
  }
};

/// T are a's and b's elements, A the accumulators of the epilogue.
template <class T, class F, class A, class Results>
struct HostMatmul {
  using S                       = accumulator_t<T>;  ///< of sums
  using V                       = Vector<S>;
  static constexpr int width    = simd_width<S>;
  static constexpr int inner    = host_matmul_inner;
  static constexpr int a_stride = host_matmul_inner + host_matmul_padding;
  /// Rows and vectors of a block of sums in registers.
  static constexpr int block_rows    = vector_bytes == 64 ? 12 : vector_bytes == 32 ? 6 : 4;
  static constexpr int block_vectors = 2;
  static constexpr int block_cols    = block_vectors * width;
  static_assert(host_matmul_row_step % block_rows == 0 && host_matmul_col_step % block_cols == 0);
  static_assert(inner % width == 0 && a_stride % width == 0);

  MatmulData<T> data;
  MatmulEpilogue<F, A> epilogue;
  Results results;
  std::int64_t tile_rows;  ///< padded, as is the next
  std::int64_t tile_cols;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    KOKKOS_IF_ON_HOST((do_tiles(team);))
  }

 private:
  /// A tile, and where its operands begin. Rows and cols are those that c has.
  struct Tile {
    std::int64_t batch;
    std::int64_t row;
    std::int64_t col;
    std::int64_t rows;
    std::int64_t cols;
    const T* a;
    const T* b;
  };

  struct Scratch {
    S* sums;  ///< tile_rows x tile_cols
    S* a;     ///< rows of a, a_stride apart
    S* b;     ///< strips of block_cols columns, `inner` rows each
  };

  template <class Member>
  void do_tiles(const Member& team) const {
    const std::size_t bytes = static_cast<std::size_t>(host_matmul_scratch(tile_rows, tile_cols)) * sizeof(S);
    S* const sums           = static_cast<S*>(team.team_scratch(1).get_shmem_aligned(bytes, host_matmul_alignment));
    const Scratch scratch{sums, sums + tile_rows * tile_cols, sums + tile_rows * (tile_cols + a_stride)};
    for (std::int64_t n = team.league_rank(); n < data.tiles(); n += team.league_size()) {
      const auto [batch, row_block, col_block] = data.block(n);
      const std::int64_t row = row_block * tile_rows, col = col_block * tile_cols;
      do_tile({batch, row, col, std::min(tile_rows, data.rows - row), std::min(tile_cols, data.cols - col),
               data.a.data + data.a.batch(batch) + row * data.a.row_stride,
               data.b.data + data.b.batch(batch) + col * data.b.col_stride},
              scratch);
    }
  }

  void do_tile(const Tile& tile, const Scratch& scratch) const {
    std::fill_n(scratch.sums, tile.rows * tile_cols, S(0));
    for (std::int64_t k = 0; k < data.inner; k += inner) {
      const int count = static_cast<int>(std::min<std::int64_t>(inner, data.inner - k));
      pack_a(tile, k, count, scratch.a);
      pack_b(tile, k, count, scratch.b);
      for (std::int64_t col = 0; col < tile.cols; col += block_cols) {
        for (std::int64_t row = 0; row < tile.rows; row += block_rows) {
          multiply(scratch.a + row * a_stride, scratch.b + col * inner, count, scratch.sums + row * tile_cols + col);
        }
      }
    }
    run_epilogue(tile, scratch.sums);
  }

  // --- packing ---

  /// `count` elements as accumulators, and zeros up to whole vectors.
  static void pack_row(const T* from, std::int64_t stride, int count, S* to) {
    if (stride == 1) {
      for (int i = 0; i < count; i += width) store_vector(to + i, load_up_to(from + i, std::min(width, count - i)));
      return;
    }
    for (int i = 0; i < count; ++i) to[i] = static_cast<S>(from[i * stride]);
    for (int i = count; i % width != 0; ++i) to[i] = S(0);
  }

  /// Transposes a block of up to width x width elements: `across` rows of `along` contiguous ones, others are zeros.
  static void pack_transposed(const T* from, std::int64_t from_stride, int along, int across, S* to,
                              std::int64_t stride) {
    V part[width];
    if (along == width && across == width) {
      KOKKOSNN_IMPL_UNROLL
      for (int l = 0; l < width; ++l) part[l] = load_vector(from + l * from_stride);
    } else {
      for (int l = 0; l < width; ++l) {
        part[l] = l < across ? load_up_to(from + l * from_stride, along) : splat<V>(S(0));
      }
    }
    transpose<S>(part);
    KOKKOSNN_IMPL_UNROLL
    for (int l = 0; l < width; ++l) store_vector(to + l * stride, part[l]);
  }

  void pack_a(const Tile& tile, std::int64_t k, int count, S* to) const {
    const BatchedMatrix<T>& a = data.a;
    const T* const from       = tile.a + k * a.col_stride;
    const std::int64_t padded = (tile.rows + block_rows - 1) / block_rows * block_rows;
    std::int64_t row          = 0;
    if (a.col_stride != 1 && a.row_stride == 1) {
      for (; row + width <= tile.rows; row += width) {
        for (int i = 0; i < count; i += width) {
          pack_transposed(from + row + i * a.col_stride, a.col_stride, width, std::min(width, count - i),
                          to + row * a_stride + i, a_stride);
        }
      }
    }
    for (; row < tile.rows; ++row) pack_row(from + row * a.row_stride, a.col_stride, count, to + row * a_stride);
    for (; row < padded; ++row) std::fill_n(to + row * a_stride, count, S(0));
  }

  void pack_b(const Tile& tile, std::int64_t k, int count, S* to) const {
    const BatchedMatrix<T>& b = data.b;
    const T* const from       = tile.b + k * b.row_stride;
    for (std::int64_t col = 0; col < tile.cols; col += block_cols, to += inner * block_cols) {
      for (int v = 0; v < block_cols; v += width) {
        const int cols = static_cast<int>(std::clamp<std::int64_t>(tile.cols - col - v, 0, width));
        pack_vectors(from + (col + v) * b.col_stride, count, cols, to + v);
      }
    }
  }

  /// A vector of columns of b, `cols` of them b's own.
  void pack_vectors(const T* from, int count, int cols, S* to) const {
    const BatchedMatrix<T>& b = data.b;
    if (cols == 0) {
      for (int i = 0; i < count; ++i) store_vector(to + i * block_cols, splat<V>(S(0)));
    } else if (b.col_stride == 1) {
      for (int i = 0; i < count; ++i) store_vector(to + i * block_cols, load_up_to(from + i * b.row_stride, cols));
    } else if (b.row_stride == 1) {
      for (int i = 0; i < count; i += width) {
        pack_transposed(from + i, b.col_stride, std::min(width, count - i), cols, to + i * block_cols, block_cols);
      }
    } else {
      for (int i = 0; i < count; ++i) {
        S each[width];
        for (int l = 0; l < width; ++l) {
          each[l] = l < cols ? static_cast<S>(from[i * b.row_stride + l * b.col_stride]) : S(0);
        }
        store_vector(to + i * block_cols, load_vector(each));
      }
    }
  }

  // --- products ---

  /// Adds `count` products to a block of sums.
  void multiply(const S* a, const S* b, int count, S* sums) const {
    V sum[block_rows][block_vectors];
    KOKKOSNN_IMPL_UNROLL
    for (int r = 0; r < block_rows; ++r) {
      KOKKOSNN_IMPL_UNROLL
      for (int v = 0; v < block_vectors; ++v) sum[r][v] = load_vector(sums + r * tile_cols + v * width);
    }
    KOKKOSNN_IMPL_NO_UNROLL
    for (int k = 0; k < count; ++k) {
      V terms[block_vectors];
      KOKKOSNN_IMPL_UNROLL
      for (int v = 0; v < block_vectors; ++v) terms[v] = load_vector(b + k * block_cols + v * width);
      KOKKOSNN_IMPL_UNROLL
      for (int r = 0; r < block_rows; ++r) {
        const V factor = splat<V>(a[r * a_stride + k]);
        KOKKOSNN_IMPL_UNROLL
        for (int v = 0; v < block_vectors; ++v) sum[r][v] = factor * terms[v] + sum[r][v];
      }
    }
    KOKKOSNN_IMPL_UNROLL
    for (int r = 0; r < block_rows; ++r) {
      KOKKOSNN_IMPL_UNROLL
      for (int v = 0; v < block_vectors; ++v) store_vector(sums + r * tile_cols + v * width, sum[r][v]);
    }
  }

  // --- the epilogue ---

  /// A league of one team, for an elementwise kernel in this thread.
  struct ThisThread {
    std::int64_t league_rank() const { return 0; }
    std::int64_t league_size() const { return 1; }
  };

  using C = typename Results::C;
  template <std::size_t... i>
  void run_epilogue(const Tile& tile, S* sums, std::index_sequence<i...>) const {
    if (epilogue.beta == A(0)) {
      run_elementwise<ElementTypes<S, typename Results::template Input<i>...>>(ScaledResult<F, A>{epilogue}, tile, sums,
                                                                               {1 + static_cast<int>(i)...});
    } else {
      run_elementwise<ElementTypes<S, C, typename Results::template Input<i>...>>(
          ScaledUpdate<F, A>{epilogue}, tile, sums, {0, 1 + static_cast<int>(i)...});
    }
  }
  void run_epilogue(const Tile& tile, S* sums) const {
    run_epilogue(tile, sums, std::make_index_sequence<Results::Inputs::count>{});
  }

  /// c = function(sums, read...), read the numbers of other tensors.
  template <class Inputs, class Function>
  void run_elementwise(const Function& function, const Tile& tile, S* sums,
                       const Kokkos::Array<int, Inputs::count - 1>& read) const {
    using Kernel = HostElementwise<Function, A, ElementTypes<C>, Inputs>;
    typename Kernel::Tensors tensors;
    const auto set = [&](int t, void* first, std::int64_t row_stride, std::int64_t col_stride) {
      tensors.data[t]          = first;
      tensors.stride[t]        = col_stride;
      tensors.map[t].n         = 1;
      tensors.map[t].stride[0] = row_stride;
    };
    const auto set_result = [&]<class Element>(int t, int number, std::type_identity<Element>) {
      Element* const first = static_cast<Element*>(results.data[number]) + results.batch[number](tile.batch) +
                             results.offset(number, tile.row, tile.col);
      set(t, first, results.row_stride[number], results.col_stride[number]);
    };
    set_result(0, 0, std::type_identity<C>{});
    set(1, sums, tile_cols, 1);
    set_inputs<Inputs>(set_result, read, std::make_index_sequence<Inputs::count - 1>{});
    Kernel{function, tensors, tile.rows, tile.cols, tile.cols, false}(ThisThread{});
  }
  template <class Inputs, class Set, std::size_t... i>
  static void set_inputs(const Set& set, const Kokkos::Array<int, Inputs::count - 1>& read, std::index_sequence<i...>) {
    (set(2 + static_cast<int>(i), read[i], std::type_identity<typename ElementTypeAt<1 + i, Inputs>::type>{}), ...);
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_HOST_MATMUL_HPP
