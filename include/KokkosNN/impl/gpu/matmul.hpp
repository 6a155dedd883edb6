// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_MATMUL_HPP
#define KOKKOSNN_IMPL_GPU_MATMUL_HPP

#include <KokkosNN/impl/gpu/device/barriers.hpp>
#include <KokkosNN/impl/gpu/device/matrix_unit.hpp>
#include <KokkosNN/impl/gpu/device/memory.hpp>
#include <KokkosNN/impl/gpu/device/scratch_rows.hpp>
#include <KokkosNN/impl/inputs/matmul_tensors.hpp>
#include <KokkosNN/impl/matmul_shapes.hpp>
#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

// Matrix products on a GPU. A team sums a tile of c: it takes a and b through team scratch, `inner` columns of a and
// rows of b a step, the copies of the next steps in flight while a matrix unit multiplies this step's; the accumulators
// stay in registers until the epilogue. Elements behind the ends are zeros in scratch.
//
// Rows of a that an index names are looked up once a tile, into a table in scratch. Where c's rows are sums of the
// product's, a team takes the products of some neighbouring rows of c, tile by tile: the epilogue's results go through
// scratch, where a thread a column adds them in order, so a sum's bits depend neither on tiles nor on teams.

namespace KokkosNN::Impl {

template <class Unit_, MatmulForm form_, class F, class A, class Results, MatmulRows rows_ = MatmulRows::own>
struct MatmulInTeam {
  using Unit                         = Unit_;
  using T                            = typename Unit::Element;
  using Tile                         = MatmulTileFor<int(sizeof(T)), matrix_unit_kind<Unit>, products_of_unit<Unit>>;
  using Address                      = typename Unit::Address;
  static constexpr MatmulForm form   = form_;
  static constexpr bool a_along      = is_a_along(form);
  static constexpr bool b_along      = is_b_along(form);
  static constexpr bool has_maps     = rows_ != MatmulRows::own;
  static constexpr bool sums_rows    = rows_ == MatmulRows::summed;
  static constexpr int team_size     = Tile::warps * Unit::lanes;
  static constexpr int element_bytes = int(sizeof(T));
  static constexpr int per_chunk     = chunk_bytes / element_bytes;
  static constexpr int a_row_bytes   = (a_along ? Tile::inner : Tile::rows) * element_bytes;
  static constexpr int b_row_bytes   = (b_along ? Tile::inner : Tile::cols) * element_bytes;
  static constexpr int a_bytes       = Tile::rows * Tile::inner * element_bytes;
  static constexpr int stage_bytes   = a_bytes + Tile::cols * Tile::inner * element_bytes;
  static constexpr int stages        = Tile::stages;
  static constexpr int ahead         = stages - 1;
  static constexpr int resident      = Tile::resident;
  /// Results that are added pass through scratch by the rows of a warp's part, with room between rows for its banks.
  static constexpr int sum_stride      = Tile::cols + 8;
  static constexpr int sum_bytes       = sums_rows ? Tile::warp_rows * sum_stride * int(sizeof(A)) : 0;
  static constexpr int tile_bytes      = stages * stage_bytes > sum_bytes ? stages* stage_bytes : sum_bytes;
  static constexpr int table_bytes     = has_maps ? Tile::rows * int(sizeof(std::int64_t)) : 0;
  static constexpr std::size_t scratch = tile_bytes + table_bytes + tile_alignment;
  /// Threads keep what their copies have in common from step to step; rows of a that an index names have nothing, and
  /// HIP's kernels would spill.
  static constexpr bool has_chunk_copies = !has_maps && Unit::lanes != 64;
  static_assert(!has_maps || (a_along && Tile::rows <= team_size), "a row of a is looked up by a thread");
  static_assert(!sums_rows || Tile::cols <= team_size, "a column is summed by a thread");

  MatmulData<T> data;
  MatmulEpilogue<F, A> epilogue;
  Results results;
  bool copies_a;  ///< asynchronously, by 16 bytes
  bool copies_b;
  MatmulRowMapsFor<rows_> maps = {};

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    char* const scratch_begin =
        static_cast<char*>(team.team_scratch(0).get_shmem_aligned(tile_bytes + table_bytes, tile_alignment));
    if constexpr (sums_rows) {
      add_rows(team, scratch_begin);
    } else {
      do_tiles(team, scratch_begin);
    }
  }

 private:
  static constexpr int row_tiles = Tile::warp_rows / 16;
  static constexpr int col_tiles = Tile::warp_cols / 16;
  struct Sums {
    typename Unit::C tile[row_tiles][col_tiles];
  };
  using Block = typename MatmulData<T>::Block;

  template <class Member>
  KOKKOS_FORCEINLINE_FUNCTION void do_tiles(const Member& team, char* scratch_begin) const {
    const std::int64_t tiles = data.tiles();
    KOKKOSNN_IMPL_NO_UNROLL
    for (std::int64_t n = team.league_rank(); n < tiles; n += team.league_size()) {
      Sums sums;
      const auto block = data.block(n);
      Lookup lookup{table_in(scratch_begin)};
      if constexpr (has_maps) lookup.fill(team, maps, block.row * Tile::rows, data.rows);
      add_products(team, Unit::address(scratch_begin), block, lookup, sums);
      write(block, lookup, sums, opaque(static_cast<int>(team.team_rank())));
      team.team_barrier();  // nobody reads scratch any more
    }
  }

  // --- maps of rows ---

  /// Rows of a for the rows of a tile, in scratch.
  struct Lookup {
    std::int64_t* table;

    /// Behind it scratch can be read. `end`: of the product's rows.
    template <class Member>
    KOKKOS_FORCEINLINE_FUNCTION void fill(const Member& team, const MatmulRowMaps& by, std::int64_t first,
                                          std::int64_t end) const {
      const int rank = static_cast<int>(team.team_rank());
      if (rank < Tile::rows) table[rank] = first + rank < end ? by.row_of_a(first + rank) : -1;
      team.team_barrier();
    }
    /// The sum of a row, by its number in the tile: NaN where the index names no row of a.
    KOKKOS_FORCEINLINE_FUNCTION A checked(A sum, int row) const {
      if constexpr (has_maps) {
        return table[row] < 0 ? Kokkos::Experimental::quiet_NaN_v<A> : sum;
      } else {
        return sum;
      }
    }
  };
  KOKKOS_FORCEINLINE_FUNCTION static std::int64_t* table_in(char* scratch_begin) {
    return reinterpret_cast<std::int64_t*>(scratch_begin + tile_bytes);
  }

  /// Sums a column of c's rows: a thread's part of a team's work.
  struct ColumnSum {
    MatmulRowSums rows;
    A sum;

    template <class Finish>
    KOKKOS_FORCEINLINE_FUNCTION void add(std::int64_t product, A value, const Finish& finish) {
      rows.go_to(product, [&](std::int64_t row) {
        finish(row, sum);
        sum = A(0);
      });
      sum += value;
    }
  };

  template <class Member>
  KOKKOS_FORCEINLINE_FUNCTION void add_rows(const Member& team, char* scratch_begin) const {
    const std::int64_t tasks = maps.groups() * data.col_blocks;
    const int rank           = static_cast<int>(team.team_rank());
    const Lookup lookup{table_in(scratch_begin)};
    KOKKOSNN_IMPL_NO_UNROLL
    for (std::int64_t n = team.league_rank(); n < tasks; n += team.league_size()) {
      const std::int64_t col_block = n % data.col_blocks, col = col_block * Tile::cols + rank;
      const bool has_column = rank < Tile::cols && col < data.cols;
      ColumnSum column{MatmulRowSums(maps, n / data.col_blocks, data.rows), A(0)};
      const auto finish = [&](std::int64_t row, A sum) { write_sum(row, col, sum); };
      KOKKOSNN_IMPL_NO_UNROLL
      for (std::int64_t row = column.rows.begin(); row < column.rows.end(); row += Tile::rows) {
        lookup.fill(team, maps, row, column.rows.end());
        Sums sums;
        add_products(team, Unit::address(scratch_begin), Block{0, 0, col_block}, lookup, sums);
        add_tile(
            team, reinterpret_cast<A*>(scratch_begin), row, col_block, lookup, sums,
            [&](std::int64_t product, const A* of_columns) {
              if (has_column) column.add(product, of_columns[rank], finish);
            },
            column.rows.end());
      }
      if (has_column) {
        column.rows.end_all([&](std::int64_t row) {
          finish(row, column.sum);
          column.sum = A(0);
        });
      }
    }
  }

  /// Hands a tile's results over, part by part: add(product, its results, a column each).
  template <class Member, class Add>
  KOKKOS_FORCEINLINE_FUNCTION void add_tile(const Member& team, A* part_results, std::int64_t first_row,
                                            std::int64_t col_block, const Lookup& lookup, const Sums& sums,
                                            const Add& add, std::int64_t end) const {
    const int rank = static_cast<int>(team.team_rank());
    KOKKOSNN_IMPL_NO_UNROLL
    for (int part = 0; part < Tile::rows; part += Tile::warp_rows) {
      team.team_barrier();  // nobody reads scratch any more
      if (warp_row(rank) == part) store_results(part_results, first_row, col_block, end, lookup, sums, opaque(rank));
      team.team_barrier();
      const std::int64_t left = end - first_row - part;
      const int count         = left < Tile::warp_rows ? static_cast<int>(left) : int(Tile::warp_rows);
      KOKKOSNN_IMPL_NO_UNROLL
      for (int r = 0; r < count; ++r) add(first_row + part + r, part_results + r * sum_stride);
    }
    team.team_barrier();
  }

  /// The epilogue of a warp's part of a tile, into scratch.
  KOKKOS_FORCEINLINE_FUNCTION void store_results(A* to, std::int64_t first_row, std::int64_t col_block,
                                                 std::int64_t end, const Lookup& lookup, const Sums& sums,
                                                 int rank) const {
    for_elements(sums, rank, [&](int row, int col, A sum) {
      const std::int64_t product = first_row + row, column = col_block * Tile::cols + col;
      if (product >= end || column >= data.cols) return;
      const auto offset = [&](int t) { return results.offset(t, product, column); };
      to[(row - warp_row(rank)) * sum_stride + col] =
          static_cast<A>(result_of(epilogue.alpha * lookup.checked(sum, row), offset, AllInputs{}));
    });
  }

  KOKKOS_FORCEINLINE_FUNCTION void write_sum(std::int64_t row, std::int64_t col, A sum) const {
    using C    = typename Results::C;
    C* const c = static_cast<C*>(results.data[0]) + results.offset(0, row, col);
    if (epilogue.beta != A(0)) sum += epilogue.beta * static_cast<A>(*c);
    *c = static_cast<C>(sum);
  }

  KOKKOS_FORCEINLINE_FUNCTION static int lane_of(int rank) { return Unit::lanes == 1 ? 0 : rank % Unit::lanes; }
  KOKKOS_FORCEINLINE_FUNCTION static int warp_row(int rank) {
    return rank / Unit::lanes / (Tile::cols / Tile::warp_cols) * Tile::warp_rows;
  }
  KOKKOS_FORCEINLINE_FUNCTION static int warp_col(int rank) {
    return rank / Unit::lanes % (Tile::cols / Tile::warp_cols) * Tile::warp_cols;
  }

  template <class Member>
  KOKKOS_FORCEINLINE_FUNCTION void add_products(const Member& team, Address memory, const Block& block,
                                                const Lookup& lookup, Sums& sums) const {
    KOKKOSNN_IMPL_UNROLL
    for (int i = 0; i < row_tiles; ++i) {
      KOKKOSNN_IMPL_UNROLL
      for (int j = 0; j < col_tiles; ++j) Unit::zero(sums.tile[i][j]);
    }
    const int rank           = static_cast<int>(team.team_rank());
    const std::int64_t inner = inner_of(block), steps = (inner + Tile::inner - 1) / Tile::inner;
    if constexpr (has_chunk_copies) {
      if (has_whole_chunks()) {
        Copies copies(*this, block, rank);
        return multiply_steps(team, memory, steps, sums, [&](std::int64_t step, int stage) {
          copies.copy(memory + stage * stage_bytes, inner - step * Tile::inner, rank);
          Unit::commit();
        });
      }
    }
    multiply_steps(team, memory, steps, sums, [&](std::int64_t step, int stage) {
      if (const std::int64_t k = step * Tile::inner; k < inner) {
        fetch_a(memory + stage * stage_bytes, block, lookup, k, inner - k, anew(rank));
        fetch_b(memory + stage * stage_bytes + a_bytes, block, k, inner - k, anew(rank));
      }
      Unit::commit();
    });
  }
  /// Multiplies all steps; fetch(step, stage) is called in the steps' order, and for some behind the last one.
  template <class Member, class Fetch>
  KOKKOS_FORCEINLINE_FUNCTION static void multiply_steps(const Member& team, Address memory, std::int64_t steps,
                                                         Sums& sums, const Fetch& fetch) {
    KOKKOSNN_IMPL_NO_UNROLL
    for (int i = 0; i < ahead; ++i) fetch(i, i);
    if constexpr (Tile::loads_ahead) {
      multiply_ahead(team, memory, steps, sums, fetch);
    } else {
      const int rank = static_cast<int>(team.team_rank());
      int stage      = 0;
      KOKKOSNN_IMPL_NO_UNROLL
      for (std::int64_t step = 0; step < steps; ++step) {
        Unit::template wait<ahead - 1>();
        team.team_barrier();  // this step is there, and nobody reads the stage before it any more
        fetch(step + ahead, stage == 0 ? ahead : stage - 1);
        multiply(memory + stage * stage_bytes, anew(rank), sums);
        stage = stage == ahead ? 0 : stage + 1;
      }
    }
    Unit::template wait<0>();
  }
  /// Multiplies all steps, the next fragments loaded while those before are multiplied, from one step to the next, too.
  template <class Member, class Fetch>
  KOKKOS_FORCEINLINE_FUNCTION static void multiply_ahead(const Member& team, Address memory, std::int64_t steps,
                                                         Sums& sums, const Fetch& fetch) {
    constexpr int products = Tile::inner / Unit::K;
    static_assert(products % 2 == 0, "fragments change places");
    const int rank = static_cast<int>(team.team_rank());
    Unit::template wait<ahead - 1>();
    team.team_barrier();
    Fragments fragments[2];
    fragments[0].load(memory, 0, rank);
    int stage = 0, free_stage = ahead;
    KOKKOSNN_IMPL_NO_UNROLL
    for (std::int64_t step = 0; step < steps; ++step) {
      KOKKOSNN_IMPL_UNROLL
      for (int i = 0; i < products; ++i) {
        if (i == products - 1) {
          Unit::template wait<ahead - 1>();
          team.team_barrier();  // the next step is there, and nobody reads this one's stage any more
          free_stage = stage;
          stage      = stage == ahead ? 0 : stage + 1;
        }
        fragments[(i + 1) % 2].load(memory + stage * stage_bytes, (i + 1) % products * Unit::K, rank);
        if (i == 0) fetch(step + ahead, free_stage);
        fragments[i % 2].multiply(sums);
      }
    }
  }
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t inner_of([[maybe_unused]] const Block& block) const {
    if constexpr (has_parts<Results>) {
      const std::int64_t left = data.inner - block.batch % results.parts * results.inner;
      return left < results.inner ? left : results.inner;
    } else {
      return data.inner;
    }
  }

  // --- from memory to scratch ---

  KOKKOS_FORCEINLINE_FUNCTION void fetch_a(Address to, const Block& block, [[maybe_unused]] const Lookup& lookup,
                                           std::int64_t k, std::int64_t left, int rank) const {
    if constexpr (has_maps) {
      const T* const first = data.a.data + k * data.a.col_stride;
      const auto row       = [&](int r) -> const T* {
        const std::int64_t number = lookup.table[r];
        return number < 0 ? nullptr : first + number * data.a.row_stride;
      };
      return ScratchRows<Unit, TileUse::along, Tile::rows, a_row_bytes, team_size>::fetch(
          to, row, {left, data.a.col_stride, copies_a}, data.a.data, rank);
    }
    const std::int64_t row = block.row * Tile::rows;
    const T* const first   = data.a.data + data.a.batch(block.batch) + row * data.a.row_stride + k * data.a.col_stride;
    if constexpr (a_along) {
      fetch<TileUse::along, Tile::rows, a_row_bytes>(to, first, data.a.row_stride, data.rows - row,
                                                     {left, data.a.col_stride, copies_a}, rank);
    } else {
      fetch<TileUse::across, Tile::inner, a_row_bytes>(to, first, data.a.col_stride, left,
                                                       {data.rows - row, data.a.row_stride, copies_a}, rank);
    }
  }
  KOKKOS_FORCEINLINE_FUNCTION void fetch_b(Address to, const Block& block, std::int64_t k, std::int64_t left,
                                           int rank) const {
    const std::int64_t col = block.col * Tile::cols;
    const T* const first   = data.b.data + data.b.batch(block.batch) + k * data.b.row_stride + col * data.b.col_stride;
    if constexpr (b_along) {
      fetch<TileUse::along, Tile::cols, b_row_bytes>(to, first, data.b.col_stride, data.cols - col,
                                                     {left, data.b.row_stride, copies_b}, rank);
    } else {
      fetch<TileUse::across, Tile::inner, b_row_bytes>(to, first, data.b.row_stride, left,
                                                       {data.cols - col, data.b.col_stride, copies_b}, rank);
    }
  }
  /// True if all chunks of both operands are copied whole, but for those of the last step.
  KOKKOS_FORCEINLINE_FUNCTION bool has_whole_chunks() const {
    return copies_a && copies_b && (a_along || data.rows % per_chunk == 0) && (b_along || data.cols % per_chunk == 0);
  }
  /// A thread's copies of both operands, step by step.
  struct Copies {
    ChunkCopies<Unit, a_along ? TileUse::along : TileUse::across, a_along ? Tile::rows : Tile::inner, a_row_bytes,
                team_size>
        a;
    ChunkCopies<Unit, b_along ? TileUse::along : TileUse::across, b_along ? Tile::cols : Tile::inner, b_row_bytes,
                team_size>
        b;

    KOKKOS_FORCEINLINE_FUNCTION Copies(const MatmulInTeam& product, const Block& block, int rank) {
      start<a_along>(a, product.data.a, block.batch, block.row * Tile::rows, product.data.rows,
                     product.data.a.row_stride, product.data.a.col_stride, rank);
      start<b_along>(b, product.data.b, block.batch, block.col * Tile::cols, product.data.cols,
                     product.data.b.col_stride, product.data.b.row_stride, rank);
    }
    /// Copies a step's tiles, in the steps' order. `left`: products from the step on.
    KOKKOS_FORCEINLINE_FUNCTION void copy(Address stage, std::int64_t left, int rank) {
      if (left >= Tile::inner) {
        a.copy(stage);
        b.copy(stage + a_bytes);
      } else if (left > 0) {
        copy_last<a_along>(a, stage, static_cast<int>(left), rank);
        copy_last<b_along>(b, stage + a_bytes, static_cast<int>(left), rank);
      }
    }

   private:
    template <bool is_along, class OfOperand>
    KOKKOS_FORCEINLINE_FUNCTION static void copy_last(OfOperand& copies, Address to, int left, int rank) {
      if constexpr (is_along) {
        copies.copy_elements(to, left, rank);
      } else {
        copies.copy_rows(to, 0, left, rank);
      }
    }
    /// `across`, `along`: strides across the sums' axis and along it; `first` to `end`: across it.
    template <bool is_along, class OfOperand>
    KOKKOS_FORCEINLINE_FUNCTION static void start(OfOperand& copies, const BatchedMatrix<T>& matrix, std::int64_t batch,
                                                  std::int64_t first, std::int64_t end, std::int64_t across,
                                                  std::int64_t along, int rank) {
      const T* const begin = matrix.data + matrix.batch(batch) + first * across;
      if constexpr (is_along) {
        copies.start(begin, across, end - first, Tile::inner, Tile::inner, rank);
      } else {
        copies.start(begin, along, Tile::inner, end - first, Tile::inner * along, rank);
      }
    }
  };

  /// Fetches a tile's rows, of which `left` are there.
  template <TileUse use, int rows, int row_bytes>
  KOKKOS_FORCEINLINE_FUNCTION static void fetch(Address to, const T* first, std::int64_t stride, std::int64_t left,
                                                const RowElements& elements, int rank) {
    ScratchRows<Unit, use, rows, row_bytes, team_size>::fetch(to, TileRows<T>{first, stride, 0, in_tile<rows>(left)},
                                                              elements, first, rank);
  }

  // --- products ---

  KOKKOS_FORCEINLINE_FUNCTION static void multiply(Address stage, int rank, Sums& sums) {
    if constexpr (Unit::lanes == 64 && !Unit::uses_tensor_cores) {
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
    for (int i = 0; i < row_tiles; ++i) a[i] = load_a(stage, k, row + i * 16, lane);
    KOKKOSNN_IMPL_UNROLL
    for (int j = 0; j < col_tiles; ++j) {
      const typename Unit::B b = load_b(stage, k, col + j * 16, lane);
      KOKKOSNN_IMPL_UNROLL
      for (int i = 0; i < row_tiles; ++i) Unit::multiply_add(sums.tile[i][j], a[i], b);
    }
  }
  KOKKOS_FORCEINLINE_FUNCTION static typename Unit::A load_a(Address stage, int k, int row, int lane) {
    if constexpr (a_along) {
      return Unit::template load_a<a_row_bytes>(stage, row, k, lane);
    } else {
      return Unit::template load_a_columns<a_row_bytes>(stage, k, row, lane);
    }
  }
  KOKKOS_FORCEINLINE_FUNCTION static typename Unit::B load_b(Address stage, int k, int col, int lane) {
    if constexpr (b_along) {
      return Unit::template load_b_columns<b_row_bytes>(stage + a_bytes, col, k, lane);
    } else {
      return Unit::template load_b<b_row_bytes>(stage + a_bytes, k, col, lane);
    }
  }
  /// A warp's operands of one product.
  struct Fragments {
    typename Unit::A a[row_tiles];
    typename Unit::B b[col_tiles];

    KOKKOS_FORCEINLINE_FUNCTION void load(Address stage, int k, int rank) {
      const int lane = lane_of(rank), row = warp_row(rank), col = warp_col(rank);
      KOKKOSNN_IMPL_UNROLL
      for (int i = 0; i < row_tiles; ++i) a[i] = load_a(stage, k, row + i * 16, lane);
      KOKKOSNN_IMPL_UNROLL
      for (int j = 0; j < col_tiles; ++j) b[j] = load_b(stage, k, col + j * 16, lane);
    }
    /// Turns round at each column, so that two products in a row share an operand.
    KOKKOS_FORCEINLINE_FUNCTION void multiply(Sums& sums) const {
      KOKKOSNN_IMPL_UNROLL
      for (int j = 0; j < col_tiles; ++j) {
        KOKKOSNN_IMPL_UNROLL
        for (int n = 0; n < row_tiles; ++n) {
          const int i = j % 2 == 0 ? n : row_tiles - 1 - n;
          Unit::multiply_add(sums.tile[i][j], a[i], b[j]);
        }
      }
    }
  };

  // --- the epilogue ---

  using AllInputs = std::make_index_sequence<Results::Inputs::count>;

  /// Calls f(row, col, sum) for a thread's elements of a tile.
  template <class F_>
  KOKKOS_FORCEINLINE_FUNCTION static void for_elements(const Sums& sums, int rank, const F_& f) {
    const int lane = lane_of(rank), first_row = warp_row(rank), first_col = warp_col(rank);
    KOKKOSNN_IMPL_UNROLL
    for (int i = 0; i < row_tiles; ++i) {
      KOKKOSNN_IMPL_UNROLL
      for (int r = 0; r < Unit::rows; ++r) {
        const int row = anew(first_row) + i * 16 + Unit::row_of(r, lane);
        KOKKOSNN_IMPL_UNROLL
        for (int j = 0; j < col_tiles; ++j) {
          KOKKOSNN_IMPL_UNROLL
          for (int c = 0; c < Unit::cols; ++c) {
            f(row, anew(first_col) + j * 16 + Unit::col_of(c, lane), static_cast<A>(sums.tile[i][j].value[r][c]));
          }
        }
      }
    }
  }

  /// Neighbouring elements of a row of c, of which a thread has the sums.
  using Neighbours = Pack<typename Results::C, Unit::neighbours>;

  /// True if all neighbours of a tile of c whose first element is at `c` can be stored at once.
  KOKKOS_FORCEINLINE_FUNCTION bool has_neighbours(const typename Results::C* c) const {
    return results.col_stride[0] == 1 && results.row_stride[0] % Unit::neighbours == 0 &&
           data.cols % Unit::neighbours == 0 && reinterpret_cast<std::uintptr_t>(c) % sizeof(Neighbours) == 0;
  }

  /// Writes a tile's results.
  KOKKOS_FORCEINLINE_FUNCTION void write(const Block& block, const Lookup& lookup, const Sums& sums, int rank) const {
    using C                      = typename Results::C;
    const std::int64_t first_row = block.row * Tile::rows, first_col = block.col * Tile::cols;
    Kokkos::Array<std::int64_t, Results::count> first;
    for (int t = 0; t < Results::count; ++t) {
      first[t] = results.batch[t](block.batch) + results.offset(t, first_row, first_col);
    }
    C* const c            = static_cast<C*>(results.data[0]) + first[0];
    const bool neighbours = has_neighbours(c);
    const int rows = in_tile<Tile::rows>(data.rows - first_row), cols = in_tile<Tile::cols>(data.cols - first_col);
    const int lane = lane_of(rank), row_of_warp = warp_row(rank), col_of_warp = warp_col(rank);
    KOKKOSNN_IMPL_UNROLL
    for (int i = 0; i < row_tiles; ++i) {
      KOKKOSNN_IMPL_UNROLL
      for (int r = 0; r < Unit::rows; ++r) {
        const int row = anew(row_of_warp) + i * 16 + Unit::row_of(r, lane);
        if (row >= rows) continue;
        C* const of_row = c + row * results.row_stride[0];
        KOKKOSNN_IMPL_UNROLL
        for (int j = 0; j < col_tiles; ++j) {
          KOKKOSNN_IMPL_UNROLL
          for (int n = 0; n < Unit::cols; n += Unit::neighbours) {
            const int col = anew(col_of_warp) + j * 16 + Unit::col_of(n, lane);
            if (col >= cols) continue;
            A sum[Unit::neighbours];
            KOKKOSNN_IMPL_UNROLL
            for (int e = 0; e < Unit::neighbours; ++e) {
              sum[e] = lookup.checked(static_cast<A>(sums.tile[i][j].value[r][n + e]), row);
            }
            store(of_row, col, cols - col, neighbours, results_of(sum, first, row, col, cols));
          }
        }
      }
    }
  }
  /// The epilogue of neighbours in a row of a tile that has so many columns. The first neighbour stands in for those
  /// behind the last column, whose results nobody stores.
  KOKKOS_FORCEINLINE_FUNCTION Neighbours results_of(const A (&sum)[Unit::neighbours],
                                                    const Kokkos::Array<std::int64_t, Results::count>& first, int row,
                                                    int col, int cols) const {
    using C            = typename Results::C;
    const auto element = [&](int t, int e) {
      return first[t] + results.offset(t, row, col + e < cols ? col + e : col);
    };
    A value[Unit::neighbours];
    KOKKOSNN_IMPL_UNROLL
    for (int e = 0; e < Unit::neighbours; ++e) value[e] = epilogue.alpha * sum[e];
    if (epilogue.beta != A(0)) {
      const C* const c = static_cast<const C*>(results.data[0]);
      KOKKOSNN_IMPL_UNROLL
      for (int e = 0; e < Unit::neighbours; ++e) value[e] += epilogue.beta * static_cast<A>(c[element(0, e)]);
    }
    Neighbours pack;
    KOKKOSNN_IMPL_UNROLL
    for (int e = 0; e < Unit::neighbours; ++e) {
      const auto offset = [&](int t) { return element(t, e); };
      pack[e]           = static_cast<C>(result_of(value[e], offset, AllInputs{}));
    }
    return pack;
  }
  /// Stores neighbours from a column of a row on, of which so many are left.
  KOKKOS_FORCEINLINE_FUNCTION void store(typename Results::C* row, int col, int left, bool neighbours,
                                         const Neighbours& pack) const {
    if (neighbours) {
      store_by_words(reinterpret_cast<Neighbours*>(row + col), pack);
    } else {
      KOKKOSNN_IMPL_UNROLL
      for (int e = 0; e < Unit::neighbours; ++e) {
        if (e < left) row[(col + e) * results.col_stride[0]] = pack[e];
      }
    }
  }

  template <class Offset, std::size_t... i>
  KOKKOS_FORCEINLINE_FUNCTION auto result_of(A value, const Offset& offset, std::index_sequence<i...>) const {
    return epilogue.f(value, static_cast<A>(input<i>()[offset(1 + static_cast<int>(i))])...);
  }
  template <std::size_t i>
  KOKKOS_FORCEINLINE_FUNCTION const typename Results::template Input<i>* input() const {
    return static_cast<const typename Results::template Input<i>*>(results.data[1 + i]);
  }
};

/// Adds the sums of parts in order, and runs the epilogue: a thread takes elements of c in turn.
template <class S, class F, class A, class Results>
struct MatmulPartsSum {
  const S* sums;
  std::int64_t parts;
  std::int64_t batches;
  std::int64_t rows;
  std::int64_t cols;
  MatmulEpilogue<F, A> epilogue;
  Results results;
  std::int64_t distance = parts;  ///< of two batches, in matrices

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const std::int64_t size = rows * cols, step = std::int64_t(team.league_size()) * team.team_size();
    KOKKOSNN_IMPL_NO_UNROLL
    for (std::int64_t n = std::int64_t(team.league_rank()) * team.team_size() + team.team_rank(); n < batches * size;
         n += step) {
      const std::int64_t batch = n / size, inside = n - batch * size, row = inside / cols;
      write(batch, row, inside - row * cols, static_cast<A>(sum_of(sums + batch * distance * size + inside, size)),
            std::make_index_sequence<Results::Inputs::count>{});
    }
  }

 private:
  /// Adds in order, some loads at a time in flight.
  KOKKOS_FORCEINLINE_FUNCTION S sum_of(const S* first, std::int64_t stride) const {
    constexpr int at_once = 8;
    S sum                 = first[0];
    KOKKOSNN_IMPL_NO_UNROLL
    for (std::int64_t p = 1; p < parts; p += at_once) {
      S loaded[at_once];
      KOKKOSNN_IMPL_UNROLL
      for (int i = 0; i < at_once; ++i) loaded[i] = p + i < parts ? first[(p + i) * stride] : S(0);
      KOKKOSNN_IMPL_UNROLL
      for (int i = 0; i < at_once; ++i) sum += loaded[i];
    }
    return sum;
  }

  template <std::size_t... i>
  KOKKOS_FORCEINLINE_FUNCTION void write(std::int64_t batch, std::int64_t row, std::int64_t col, A sum,
                                         std::index_sequence<i...>) const {
    const auto at = [&]<class T>(int t, std::type_identity<T>) {
      return static_cast<T*>(results.data[t]) + results.batch[t](batch) + results.offset(t, row, col);
    };
    using C    = typename Results::C;
    C* const c = at(0, std::type_identity<C>{});
    A value    = epilogue.alpha * sum;
    if (epilogue.beta != A(0)) value += epilogue.beta * static_cast<A>(*c);
    *c = static_cast<C>(epilogue.f(
        value,
        static_cast<A>(*at(1 + static_cast<int>(i), std::type_identity<typename Results::template Input<i>>{}))...));
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_MATMUL_HPP
