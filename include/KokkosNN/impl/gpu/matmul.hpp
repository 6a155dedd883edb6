// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_MATMUL_HPP
#define KOKKOSNN_IMPL_GPU_MATMUL_HPP

#include <KokkosNN/impl/gpu/device/barriers.hpp>
#include <KokkosNN/impl/gpu/device/matrix_unit.hpp>
#include <KokkosNN/impl/gpu/device/scratch_rows.hpp>
#include <KokkosNN/impl/inputs/matmul_tensors.hpp>
#include <KokkosNN/impl/matmul_shapes.hpp>
#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>

// Matrix products on a GPU. A team sums a tile of c: it takes a and b through team scratch, `inner` columns of a and
// rows of b a step, the copies of the next steps in flight while a matrix unit multiplies this step's; the accumulators
// stay in registers until the epilogue. Elements behind the ends are zeros in scratch.

namespace KokkosNN::Impl {

template <class Unit_, MatmulForm form_, class F, class A, class Results>
struct MatmulInTeam {
  using Unit                           = Unit_;
  using T                              = typename Unit::Element;
  using Tile                           = MatmulTileFor<int(sizeof(T)), matrix_unit_kind<Unit>>;
  using Address                        = typename Unit::Address;
  static constexpr MatmulForm form     = form_;
  static constexpr bool a_along        = is_a_along(form);
  static constexpr bool b_along        = is_b_along(form);
  static constexpr int team_size       = Tile::warps * Unit::lanes;
  static constexpr int element_bytes   = int(sizeof(T));
  static constexpr int per_chunk       = chunk_bytes / element_bytes;
  static constexpr int a_row_bytes     = (a_along ? Tile::inner : Tile::rows) * element_bytes;
  static constexpr int b_row_bytes     = (b_along ? Tile::inner : Tile::cols) * element_bytes;
  static constexpr int a_bytes         = Tile::rows * Tile::inner * element_bytes;
  static constexpr int stage_bytes     = a_bytes + Tile::cols * Tile::inner * element_bytes;
  static constexpr int stages          = Tile::stages;
  static constexpr int resident        = Tile::resident;
  static constexpr std::size_t scratch = stages * stage_bytes + tile_alignment;

  MatmulData<T> data;
  MatmulEpilogue<F, A> epilogue;
  Results results;
  bool copies_a;  ///< asynchronously, by 16 bytes
  bool copies_b;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const Address memory = Unit::address(team.team_scratch(0).get_shmem_aligned(stages * stage_bytes, tile_alignment));
    const std::int64_t tiles = data.tiles();
    KOKKOSNN_IMPL_NO_UNROLL
    for (std::int64_t n = team.league_rank(); n < tiles; n += team.league_size()) {
      Sums sums;
      const auto block = data.block(n);
      add_products(team, memory, block, sums);
      write(block, sums, opaque(static_cast<int>(team.team_rank())));
      team.team_barrier();  // nobody reads scratch any more
    }
  }

 private:
  static constexpr int row_tiles = Tile::warp_rows / 16;
  static constexpr int col_tiles = Tile::warp_cols / 16;
  struct Sums {
    typename Unit::C tile[row_tiles][col_tiles];
  };

  KOKKOS_FORCEINLINE_FUNCTION static int lane_of(int rank) { return Unit::lanes == 1 ? 0 : rank % Unit::lanes; }
  KOKKOS_FORCEINLINE_FUNCTION static int warp_row(int rank) {
    return rank / Unit::lanes / (Tile::cols / Tile::warp_cols) * Tile::warp_rows;
  }
  KOKKOS_FORCEINLINE_FUNCTION static int warp_col(int rank) {
    return rank / Unit::lanes % (Tile::cols / Tile::warp_cols) * Tile::warp_cols;
  }

  template <class Member>
  KOKKOS_FORCEINLINE_FUNCTION void add_products(const Member& team, Address memory,
                                                const typename MatmulData<T>::Block& block, Sums& sums) const {
    KOKKOSNN_IMPL_UNROLL
    for (int i = 0; i < row_tiles; ++i) {
      KOKKOSNN_IMPL_UNROLL
      for (int j = 0; j < col_tiles; ++j) Unit::zero(sums.tile[i][j]);
    }
    const int rank   = static_cast<int>(team.team_rank());
    const auto fetch = [&](std::int64_t k, int stage) {
      if (k < data.inner) {
        fetch_a(memory + stage * stage_bytes, block, k, anew(rank));
        fetch_b(memory + stage * stage_bytes + a_bytes, block, k, anew(rank));
      }
      Unit::commit();
    };
    constexpr int ahead = stages - 1;
    KOKKOSNN_IMPL_UNROLL
    for (int i = 0; i < ahead; ++i) fetch(i * Tile::inner, i);
    int stage = 0;
    KOKKOSNN_IMPL_NO_UNROLL
    for (std::int64_t k = 0; k < data.inner; k += Tile::inner) {
      Unit::template wait<ahead - 1>();
      team.team_barrier();  // this step is there, and nobody reads the stage before it any more
      fetch(k + ahead * Tile::inner, stage == 0 ? ahead : stage - 1);
      multiply(memory + stage * stage_bytes, anew(rank), sums);
      stage = stage == ahead ? 0 : stage + 1;
    }
    Unit::template wait<0>();
  }

  // --- from memory to scratch ---

  KOKKOS_FORCEINLINE_FUNCTION void fetch_a(Address to, const typename MatmulData<T>::Block& block, std::int64_t k,
                                           int rank) const {
    const std::int64_t row = block.row * Tile::rows;
    const T* const first   = data.a.data + data.a.batch(block.batch) + row * data.a.row_stride + k * data.a.col_stride;
    if constexpr (a_along) {
      fetch<TileUse::along, Tile::rows, a_row_bytes>(to, first, data.a.row_stride, data.rows - row,
                                                     {data.inner - k, data.a.col_stride, copies_a}, rank);
    } else {
      fetch<TileUse::across, Tile::inner, a_row_bytes>(to, first, data.a.col_stride, data.inner - k,
                                                       {data.rows - row, data.a.row_stride, copies_a}, rank);
    }
  }
  KOKKOS_FORCEINLINE_FUNCTION void fetch_b(Address to, const typename MatmulData<T>::Block& block, std::int64_t k,
                                           int rank) const {
    const std::int64_t col = block.col * Tile::cols;
    const T* const first   = data.b.data + data.b.batch(block.batch) + k * data.b.row_stride + col * data.b.col_stride;
    if constexpr (b_along) {
      fetch<TileUse::along, Tile::cols, b_row_bytes>(to, first, data.b.col_stride, data.cols - col,
                                                     {data.inner - k, data.b.row_stride, copies_b}, rank);
    } else {
      fetch<TileUse::across, Tile::inner, b_row_bytes>(to, first, data.b.row_stride, data.inner - k,
                                                       {data.cols - col, data.b.col_stride, copies_b}, rank);
    }
  }
  /// Fetches a tile's rows, of which `left` are there.
  template <TileUse use, int rows, int row_bytes>
  KOKKOS_FORCEINLINE_FUNCTION static void fetch(Address to, const T* first, std::int64_t stride, std::int64_t left,
                                                const RowElements& elements, int rank) {
    ScratchRows<Unit, use, rows, row_bytes, team_size>::fetch(to, TileRows<T>{first, stride, 0, in_tile<rows>(left)},
                                                              elements, first, rank);
  }

  // --- products ---

  KOKKOS_FORCEINLINE_FUNCTION static void multiply(Address stage, int rank, Sums& sums) {
    if constexpr (Unit::lanes == 64) {
      KOKKOSNN_IMPL_NO_UNROLL  // LLVM would load the fragments of all steps at once, and spill
      for (int k = 0; k < Tile::inner; k += Unit::K) multiply(stage, k, rank, sums);
    } else {
      KOKKOSNN_IMPL_UNROLL
      for (int k = 0; k < Tile::inner; k += Unit::K) multiply(stage, k, rank, sums);
    }
  }
  /// Multiplies the columns of a and rows of b from k on that a unit takes at once.
  KOKKOS_FORCEINLINE_FUNCTION static void multiply(Address stage, int k, int rank, Sums& sums) {
    const int lane = lane_of(rank), row = warp_row(rank), col = warp_col(rank);
    typename Unit::A a[row_tiles];
    KOKKOSNN_IMPL_UNROLL
    for (int i = 0; i < row_tiles; ++i) {
      if constexpr (a_along) {
        a[i] = Unit::template load_a<a_row_bytes>(stage, row + i * 16, k, lane);
      } else {
        a[i] = Unit::template load_a_columns<a_row_bytes>(stage, k, row + i * 16, lane);
      }
    }
    KOKKOSNN_IMPL_UNROLL
    for (int j = 0; j < col_tiles; ++j) {
      typename Unit::B b;
      if constexpr (b_along) {
        b = Unit::template load_b_columns<b_row_bytes>(stage + a_bytes, col + j * 16, k, lane);
      } else {
        b = Unit::template load_b<b_row_bytes>(stage + a_bytes, k, col + j * 16, lane);
      }
      KOKKOSNN_IMPL_UNROLL
      for (int i = 0; i < row_tiles; ++i) Unit::multiply_add(sums.tile[i][j], a[i], b);
    }
  }

  // --- the epilogue ---

  using AllInputs = std::make_index_sequence<Results::Inputs::count>;

  KOKKOS_FORCEINLINE_FUNCTION void write(const typename MatmulData<T>::Block& block, const Sums& sums, int rank) const {
    const int lane               = lane_of(rank);
    const std::int64_t first_row = block.row * Tile::rows + warp_row(rank);
    const std::int64_t first_col = block.col * Tile::cols + warp_col(rank);
    Kokkos::Array<std::int64_t, Results::count> batch;
    for (int t = 0; t < Results::count; ++t) batch[t] = results.batch[t](block.batch);
    KOKKOSNN_IMPL_UNROLL
    for (int i = 0; i < row_tiles; ++i) {
      KOKKOSNN_IMPL_UNROLL
      for (int r = 0; r < Unit::rows; ++r) {
        const std::int64_t row = anew(first_row) + i * 16 + Unit::row_of(r, lane);
        KOKKOSNN_IMPL_UNROLL
        for (int j = 0; j < col_tiles; ++j) {
          KOKKOSNN_IMPL_UNROLL
          for (int c = 0; c < Unit::cols; ++c) {
            const std::int64_t col = anew(first_col) + j * 16 + Unit::col_of(c, lane);
            if (row < data.rows && col < data.cols) {
              const auto offset = [&](int t) { return batch[t] + results.offset(t, row, col); };
              write_element(static_cast<A>(sums.tile[i][j].value[r][c]), offset, AllInputs{});
            }
          }
        }
      }
    }
  }

  template <class Offset, std::size_t... i>
  KOKKOS_FORCEINLINE_FUNCTION void write_element(A sum, const Offset& offset, std::index_sequence<i...>) const {
    using C    = typename Results::C;
    C* const c = static_cast<C*>(results.data[0]) + offset(0);
    A value    = epilogue.alpha * sum;
    if (epilogue.beta != A(0)) value += epilogue.beta * static_cast<A>(*c);
    *c = static_cast<C>(epilogue.f(value, static_cast<A>(input<i>()[offset(1 + static_cast<int>(i))])...));
  }
  template <std::size_t i>
  KOKKOS_FORCEINLINE_FUNCTION const typename Results::template Input<i>* input() const {
    return static_cast<const typename Results::template Input<i>*>(results.data[1 + i]);
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_MATMUL_HPP
