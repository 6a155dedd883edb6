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
#include <limits>
#include <utility>

// Matrix products on a host. A thread takes a tile of c: it packs a part of a, row by row, and of b, as strips of few
// vectors, into its scratch, converted to accumulators and with zeros behind their ends; multiplies these by blocks of
// sums in registers, which are kept in scratch from one part to the next; and runs the epilogue over the tile as an
// elementwise call does. Sums go along the inner axis in order, those of long axes in parts that are added in order, so
// an element's bits do not depend on tiles or threads. Where there are fewer tiles than threads, these share the parts:
// sums go through memory, and a second kernel adds them.
//
// Rows of a that an index names are packed from where they are. Where c's rows are sums of the product's, a thread
// takes the products of some neighbouring rows of c, tile by tile, and adds the epilogue's results in order.

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

/// Kernels of a host: all of a product; parts' sums alone, which go to memory; what is left to do with these.
enum class HostMatmulStep { all, parts, epilogue };

/// T are a's and b's elements, A the accumulators of the epilogue.
template <class T, class F, class A, class Results, MatmulRows rows_ = MatmulRows::own>
struct HostMatmul {
  static constexpr bool has_maps  = rows_ != MatmulRows::own;
  static constexpr bool sums_rows = rows_ == MatmulRows::summed;
  using C                         = typename Results::C;
  using S                         = accumulator_t<T>;  ///< of sums
  using V                         = Vector<S>;
  static constexpr int width      = simd_width<S>;
  static constexpr int inner      = host_matmul_inner;
  static constexpr int a_stride   = host_matmul_inner + host_matmul_padding;
  /// Rows and vectors of a block of sums in registers.
  static constexpr int block_rows    = vector_bytes == 64 ? 12 : vector_bytes == 32 ? 6 : 4;
  static constexpr int block_vectors = 2;
  static constexpr int block_cols    = block_vectors * width;
  static_assert(host_matmul_row_step % block_rows == 0 && host_matmul_col_step % block_cols == 0);
  static_assert(inner % width == 0 && a_stride % width == 0 && host_matmul_col_step % simd_width<A> == 0);

  MatmulData<T> data;
  MatmulEpilogue<F, A> epilogue;
  Results results;
  std::int64_t tile_rows;  ///< padded, as is the next
  std::int64_t tile_cols;
  MatmulRowMapsFor<rows_> maps = {};
  HostMatmulStep step          = HostMatmulStep::all;
  std::int64_t summed_batches  = 1;  ///< batches of a and b whose products are added
  RowMap sums_of_a             = {};
  RowMap sums_of_b             = {};
  S* parts_sums                = nullptr;  ///< of a tile's parts, one after the other

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    KOKKOS_IF_ON_HOST((run(team);))
  }

 private:
  /// A tile, and where its operands begin. Rows and cols are those that c has.
  struct Tile {
    std::int64_t batch;
    std::int64_t row;
    std::int64_t col;
    std::int64_t rows;
    std::int64_t cols;
    const T* a;  ///< of the first row, or with maps of a
    const T* b;
  };

  struct Scratch {
    S* sums;    ///< tile_rows x tile_cols
    S* a;       ///< rows of a, a_stride apart
    S* b;       ///< strips of block_cols columns, `inner` rows each
    S* before;  ///< sums of parts before this one; null where there is one part
  };

  template <class Member>
  void run(const Member& team) const {
    const std::size_t bytes = static_cast<std::size_t>(host_matmul_scratch(tile_rows, tile_cols)) * sizeof(S);
    S* const sums           = static_cast<S*>(team.team_scratch(1).get_shmem_aligned(bytes, host_matmul_alignment));
    Scratch scratch{sums, sums + tile_rows * tile_cols, sums + tile_rows * (tile_cols + a_stride), nullptr};
    if (parts() > 1 && step == HostMatmulStep::all) {
      scratch.before = static_cast<S*>(team.team_scratch(1).get_shmem_aligned(bytes_of_tile(), host_matmul_alignment));
    }
    if constexpr (sums_rows) {
      const std::size_t more = static_cast<std::size_t>((tile_rows + 1) * tile_cols) * sizeof(A);
      add_rows(team, scratch, static_cast<A*>(team.team_scratch(1).get_shmem_aligned(more, host_matmul_alignment)));
    } else {
      do_tiles(team, scratch);
    }
  }

  std::int64_t part_inner() const { return host_matmul_part(data.inner); }
  std::int64_t tile_size() const { return tile_rows * tile_cols; }
  std::size_t bytes_of_tile() const { return static_cast<std::size_t>(tile_size()) * sizeof(S); }
  std::int64_t inner_parts() const { return std::max<std::int64_t>(1, (data.inner + part_inner() - 1) / part_inner()); }
  std::int64_t parts() const { return summed_batches * inner_parts(); }

  template <class Member>
  void do_tiles(const Member& team, const Scratch& scratch) const {
    const std::int64_t parts_apart = step == HostMatmulStep::parts ? parts() : 1;
    for (std::int64_t n = team.league_rank(); n < data.tiles() * parts_apart; n += team.league_size()) {
      const std::int64_t number                = n / parts_apart;
      const auto [batch, row_block, col_block] = data.block(number);
      const std::int64_t row = row_block * tile_rows, col = col_block * tile_cols;
      do_tile(number, n % parts_apart,
              {batch, row, col, std::min(tile_rows, data.rows - row), std::min(tile_cols, data.cols - col),
               has_maps ? data.a.data : data.a.data + data.a.batch(batch) + row * data.a.row_stride,
               data.b.data + data.b.batch(batch) + col * data.b.col_stride},
              scratch);
    }
  }

  void do_tile(std::int64_t number, std::int64_t part, const Tile& tile, const Scratch& scratch) const {
    switch (step) {
      case HostMatmulStep::all:
        add_products(tile, scratch);
        return run_epilogue(tile, scratch.sums);
      case HostMatmulStep::parts:
        std::fill_n(scratch.sums, tile.rows * tile_cols, S(0));
        add_part(tile, part, scratch);
        std::copy_n(scratch.sums, tile.rows * tile_cols, sums_of_part(number, part));
        return;
      case HostMatmulStep::epilogue:
        std::copy_n(sums_of_part(number, 0), tile.rows * tile_cols, scratch.sums);
        for (std::int64_t p = 1; p < parts(); ++p) add(tile, scratch.sums, sums_of_part(number, p), scratch.sums);
        return run_epilogue(tile, scratch.sums);
    }
  }
  S* sums_of_part(std::int64_t tile, std::int64_t part) const {
    return parts_sums + (tile * parts() + part) * tile_size();
  }

  /// to = x + y, tiles.
  void add(const Tile& tile, const S* x, const S* y, S* to) const {
    for (std::int64_t i = 0; i < tile.rows * tile_cols; i += width) {
      store_vector(to + i, load_vector(x + i) + load_vector(y + i));
    }
  }

  void add_products(const Tile& tile, const Scratch& scratch) const {
    std::fill_n(scratch.sums, tile.rows * tile_cols, S(0));
    for (std::int64_t part = 0; part < parts(); ++part) {
      if (part > 0) {
        if (part == 1) {
          std::copy_n(scratch.sums, tile.rows * tile_cols, scratch.before);
        } else {
          add(tile, scratch.before, scratch.sums, scratch.before);
        }
        std::fill_n(scratch.sums, tile.rows * tile_cols, S(0));
      }
      add_part(tile, part, scratch);
    }
    if (parts() > 1) add(tile, scratch.before, scratch.sums, scratch.sums);
    if constexpr (has_maps) {
      for (std::int64_t row = 0; row < tile.rows; ++row) {
        if (maps.row_of_a(tile.row + row) < 0) {
          std::fill_n(scratch.sums + row * tile_cols, tile.cols, std::numeric_limits<S>::quiet_NaN());
        }
      }
    }
  }

  /// Adds the products of a part.
  void add_part(const Tile& of_first, std::int64_t part, const Scratch& scratch) const {
    Tile tile              = of_first;
    const std::int64_t sum = part / inner_parts(), first = part % inner_parts() * part_inner();
    const std::int64_t end = std::min(data.inner, first + part_inner());
    tile.a += sums_of_a(sum);
    tile.b += sums_of_b(sum);
    for (std::int64_t k = first; k < end; k += inner) {
      const int count = static_cast<int>(std::min<std::int64_t>(inner, end - k));
      pack_a(tile, k, count, scratch.a);
      pack_b(tile, k, count, scratch.b);
      for (std::int64_t col = 0; col < tile.cols; col += block_cols) {
        for (std::int64_t row = 0; row < tile.rows; row += block_rows) {
          multiply(scratch.a + row * a_stride, scratch.b + col * inner, count, scratch.sums + row * tile_cols + col);
        }
      }
    }
  }

  // --- sums of rows ---

  /// `of_products` has room for a tile, and behind it a row for the sums.
  template <class Member>
  void add_rows(const Member& team, const Scratch& scratch, A* of_products) const {
    const std::int64_t tasks = maps.groups() * data.col_blocks;
    A* const sum             = of_products + tile_rows * tile_cols;
    for (std::int64_t n = team.league_rank(); n < tasks; n += team.league_size()) {
      const std::int64_t col = n % data.col_blocks * tile_cols, cols = std::min(tile_cols, data.cols - col);
      MatmulRowSums rows(maps, n / data.col_blocks, data.rows);
      const auto finish = [&](std::int64_t row) { write_sum(row, col, cols, sum); };
      std::fill_n(sum, cols, A(0));
      for (std::int64_t row = rows.begin(); row < rows.end(); row += tile_rows) {
        const Tile tile{0,
                        row,
                        col,
                        std::min(tile_rows, rows.end() - row),
                        cols,
                        data.a.data,
                        data.b.data + col * data.b.col_stride};
        add_products(tile, scratch);
        run_epilogue(tile, scratch.sums, of_products);
        for (std::int64_t r = 0; r < tile.rows; ++r) {
          rows.go_to(row + r, finish);
          const A* const result = of_products + r * tile_cols;
          for (std::int64_t j = 0; j < cols; j += simd_width<A>) {  // rows in scratch are whole vectors
            store_vector(sum + j, load_vector(sum + j) + load_vector(result + j));
          }
        }
      }
      rows.end_all(finish);
    }
  }

  /// Writes a row of c, and begins the next sums.
  void write_sum(std::int64_t row, std::int64_t col, std::int64_t cols, A* sum) const {
    C* const c                = static_cast<C*>(results.data[0]) + results.offset(0, row, col);
    const std::int64_t stride = results.col_stride[0];
    for (std::int64_t j = 0; j < cols; ++j) {
      if (epilogue.beta != A(0)) sum[j] += epilogue.beta * static_cast<A>(c[j * stride]);
      c[j * stride] = static_cast<C>(sum[j]);
      sum[j]        = A(0);
    }
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
    if (!has_maps && a.col_stride != 1 && a.row_stride == 1) {
      for (; row + width <= tile.rows; row += width) {
        for (int i = 0; i < count; i += width) {
          pack_transposed(from + row + i * a.col_stride, a.col_stride, width, std::min(width, count - i),
                          to + row * a_stride + i, a_stride);
        }
      }
    }
    for (; row < tile.rows; ++row) {
      const std::int64_t number = has_maps ? row_of_a(tile.row + row) : row;
      if (number < 0) {
        std::fill_n(to + row * a_stride, count, S(0));
      } else {
        pack_row(from + number * a.row_stride, a.col_stride, count, to + row * a_stride);
      }
    }
    for (; row < padded; ++row) std::fill_n(to + row * a_stride, count, S(0));
  }

  std::int64_t row_of_a([[maybe_unused]] std::int64_t row) const {
    if constexpr (has_maps) {
      return maps.row_of_a(row);
    } else {
      return row;
    }
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

  template <std::size_t... i>
  void run_epilogue(const Tile& tile, S* sums, std::index_sequence<i...>) const {
    if (epilogue.beta == A(0)) {
      run_elementwise<C, ElementTypes<S, typename Results::template Input<i>...>>(
          ScaledResult<F, A>{epilogue}, tile, sums, nullptr, {1 + static_cast<int>(i)...});
    } else {
      run_elementwise<C, ElementTypes<S, C, typename Results::template Input<i>...>>(
          ScaledUpdate<F, A>{epilogue}, tile, sums, nullptr, {0, 1 + static_cast<int>(i)...});
    }
  }
  using AllInputs = std::make_index_sequence<Results::Inputs::count>;
  void run_epilogue(const Tile& tile, S* sums) const { run_epilogue(tile, sums, AllInputs{}); }

  /// The epilogue of rows that are summed: into scratch, without beta.
  template <std::size_t... i>
  void run_epilogue(const Tile& tile, S* sums, A* to, std::index_sequence<i...>) const {
    run_elementwise<A, ElementTypes<S, typename Results::template Input<i>...>>(ScaledResult<F, A>{epilogue}, tile,
                                                                                sums, to, {1 + static_cast<int>(i)...});
  }
  void run_epilogue(const Tile& tile, S* sums, A* to) const { run_epilogue(tile, sums, to, AllInputs{}); }

  /// c, or a tile at `to`, = function(sums, read...), read the numbers of other tensors.
  template <class Out, class Inputs, class Function>
  void run_elementwise(const Function& function, const Tile& tile, S* sums, Out* to,
                       const Kokkos::Array<int, Inputs::count - 1>& read) const {
    using Kernel = HostElementwise<Function, A, ElementTypes<Out>, Inputs>;
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
    if (to == nullptr) {
      set_result(0, 0, std::type_identity<C>{});
    } else {
      set(0, to, tile_cols, 1);
    }
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
