// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_MATMUL_HPP
#define KOKKOSNN_IMPL_GPU_MATMUL_HPP

#include <KokkosNN/impl/gpu/device/barriers.hpp>
#include <KokkosNN/impl/gpu/device/matrix_unit.hpp>
#include <KokkosNN/impl/gpu/device/memory.hpp>
#include <KokkosNN/impl/gpu/device/scratch_rows.hpp>
#include <KokkosNN/impl/gpu/matmul_units.hpp>
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
// stay in registers until the epilogue. Elements behind the ends are zeros in scratch. Then the sums pass through
// scratch, from the threads that have them to threads that have units of a row.
//
// Rows of a that an index names are looked up once a tile, into a table in scratch. Where c's rows are sums of the
// product's, a team takes the products of some neighbouring rows of c, tile by tile: the epilogue's results stay in
// scratch, where a thread a column adds them in order, so a sum's bits depend neither on tiles nor on teams.

namespace KokkosNN::Impl {

/// Elements of c that a thread writes at once: as many as 32 bytes hold sums.
template <class Unit, class F, class A, class Results>
using MatmulUnitsOf = MatmulUnits<F, A, Results, 32 / int(sizeof(A)), typename InstructionsOf<Unit>::type>;

/// Tiles of a unit, and those of few rows.
template <class Unit>
using MatmulTileOf = MatmulTileFor<int(sizeof(typename Unit::Element)), matrix_unit_kind<Unit>, products_of_unit<Unit>>;
template <class Unit>
using MatmulFewRowsTileOf = MatmulFewRowsTileFor<int(sizeof(typename Unit::Element)), matrix_unit_kind<Unit>>;
template <class Unit>
inline constexpr bool has_few_rows_tile = requires { MatmulFewRowsTileOf<Unit>::rows; };

template <class Unit_, MatmulForm form_, class F, class A, class Results, MatmulRows rows_ = MatmulRows::own,
          class Tile_ = MatmulTileOf<Unit_>>
struct MatmulInTeam : MatmulUnitsOf<Unit_, F, A, Results> {
  using Unit                           = Unit_;
  using Units                          = MatmulUnitsOf<Unit, F, A, Results>;
  using T                              = typename Unit::Element;
  using Tile                           = Tile_;
  using Address                        = typename Unit::Address;
  static constexpr MatmulForm form     = form_;
  static constexpr bool a_along        = is_a_along(form);
  static constexpr bool b_along        = is_b_along(form);
  static constexpr bool has_maps       = rows_ != MatmulRows::own;
  static constexpr bool sums_rows      = rows_ == MatmulRows::summed;
  static constexpr int team_size       = Tile::warps * Unit::lanes;
  static constexpr int element_bytes   = int(sizeof(T));
  static constexpr int per_chunk       = chunk_bytes / element_bytes;
  static constexpr int a_row_bytes     = (a_along ? Tile::inner : Tile::rows) * element_bytes;
  static constexpr int b_row_bytes     = (b_along ? Tile::inner : Tile::cols) * element_bytes;
  static constexpr int a_bytes         = Tile::rows * Tile::inner * element_bytes;
  static constexpr int stage_bytes     = a_bytes + Tile::cols * Tile::inner * element_bytes;
  static constexpr int stages          = Tile::stages;
  static constexpr int ahead           = stages - 1;
  static constexpr int resident        = Tile::resident;
  static constexpr int tile_bytes      = stages * stage_bytes;
  static constexpr int table_bytes     = has_maps ? Tile::rows * int(sizeof(std::int64_t)) : 0;
  static constexpr std::size_t scratch = tile_bytes + table_bytes + tile_alignment;
  /// Threads keep what their copies have in common from step to step; rows of a that an index names have nothing, and
  /// HIP's kernels would spill.
  static constexpr bool has_chunk_copies = !has_maps && Unit::lanes != 64;
  static constexpr int unit              = Units::unit;
  static constexpr int units_of_row      = Tile::cols / unit;
  /// Rows of sums that scratch takes at once: those of some warps, or of each warp a part.
  static constexpr int rows_in_scratch = tile_bytes / (Tile::cols * int(sizeof(A)));
  static constexpr int part_rows       = Tile::warp_rows / (rows_in_scratch < Tile::warp_rows ? 2 : 1);
  static constexpr int band_rows =
      Kokkos::max(1, Kokkos::min(int(Tile::rows), rows_in_scratch) / Tile::warp_rows) * Tile::warp_rows;
  static_assert(part_rows <= rows_in_scratch && part_rows % 16 == 0 && Tile::rows % band_rows == 0);
  static_assert(!has_maps || (a_along && Tile::rows <= team_size), "a row of a is looked up by a thread");
  static_assert(!sums_rows || Tile::cols <= team_size, "a column is summed by a thread");

  MatmulData<T> data;
  bool copies_a;  ///< asynchronously, by 16 bytes
  bool copies_b;
  MatmulRowMapsFor<rows_> maps = {};
  using Units::epilogue;
  using Units::results;

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
      write(team, reinterpret_cast<A*>(scratch_begin), block, lookup, sums);
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

    /// Adds results of `count` products from one on, value(i) of the i-th.
    template <class Value, class Finish>
    KOKKOS_FORCEINLINE_FUNCTION void add(std::int64_t product, int count, const Value& value, const Finish& finish) {
      for (int i = 0; i < count;) {
        rows.go_to(product + i, [&](std::int64_t row) {
          finish(row, sum);
          sum = A(0);
        });
        const int end = static_cast<int>(Kokkos::min<std::int64_t>(count, rows.end_of_row() - product));
        for (; i < end; ++i) sum += value(i);
      }
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
      const auto finish = [&](std::int64_t row, A sum) {
        if (has_column) write_sum(row, col, sum);
      };
      KOKKOSNN_IMPL_NO_UNROLL
      for (std::int64_t row = column.rows.begin(); row < column.rows.end(); row += Tile::rows) {
        lookup.fill(team, maps, row, column.rows.end());
        Sums sums;
        add_products(team, Unit::address(scratch_begin), Block{0, 0, col_block}, lookup, sums);
        add_tile(team, reinterpret_cast<A*>(scratch_begin), row, col_block, lookup, sums, column, finish);
      }
      column.rows.end_all([&](std::int64_t row) {
        finish(row, column.sum);
        column.sum = A(0);
      });
    }
  }

  /// Adds a tile's results, of products from `first` on, to the sums of the columns.
  template <class Member, class Finish>
  KOKKOS_FORCEINLINE_FUNCTION void add_tile(const Member& team, A* in_scratch, std::int64_t first,
                                            std::int64_t col_block, const Lookup& lookup, const Sums& sums,
                                            ColumnSum& column, const Finish& finish) const {
    const std::int64_t first_col = col_block * Tile::cols;
    const int rank = static_cast<int>(team.team_rank()), cols = in_tile<Tile::cols>(data.cols - first_col);
    for_bands(team, in_scratch, lookup, sums, in_tile<Tile::rows>(column.rows.end() - first), [&](int band, int count) {
      for_units(rank, count, cols, [&](int row, int col) {
        Offsets at;
        for (int t = 0; t < Results::count; ++t) at[t] = results.offset(t, first + band + row, first_col + col);
        Pack<A, unit>& place = unit_in(in_scratch, row, col);
        A values[unit];
        load(place, values);
        this->run_unit(at, cols - col, values);
        KOKKOSNN_IMPL_UNROLL
        for (int i = 0; i < unit; ++i) place[i] = values[i];
      });
      team.team_barrier();
      if (rank >= cols) return;
      column.add(first + band, count, [&](int row) { return unit_in(in_scratch, row, rank)[rank % unit]; }, finish);
    });
    team.team_barrier();  // nobody reads scratch any more
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

  using Offsets = typename Units::Offsets;

  /// Calls f(first row, number of rows) for bands of a tile's first `rows` rows, whose sums are in scratch then. A
  /// barrier is ahead of the first access of scratch, none behind the last one.
  template <class Member, class F_>
  KOKKOS_FORCEINLINE_FUNCTION static void for_bands(const Member& team, A* in_scratch, const Lookup& lookup,
                                                    const Sums& sums, int rows, const F_& f) {
    const int rank = opaque(static_cast<int>(team.team_rank()));
    KOKKOSNN_IMPL_NO_UNROLL
    for (int band = 0; band < rows; band += band_rows) {
      KOKKOSNN_IMPL_UNROLL
      for (int part = 0; part < Tile::warp_rows; part += part_rows) {
        constexpr int at_once = part_rows < Tile::warp_rows ? part_rows : band_rows;
        const int first = band + part, count = Kokkos::min(rows - first, int(at_once));
        if (count <= 0) continue;
        const int row = warp_row(rank) - band;
        team.team_barrier();
        if (0 <= row && row < band_rows) store_sums(in_scratch, row, part, lookup, sums, rank);
        team.team_barrier();
        f(first, count);
      }
    }
  }
  /// Calls f(row, column) for units of a band's first `rows` rows and `cols` columns.
  template <class F_>
  KOKKOS_FORCEINLINE_FUNCTION static void for_units(int rank, int rows, int cols, const F_& f) {
    KOKKOSNN_IMPL_NO_UNROLL
    for (int n = rank; n < rows * units_of_row; n += team_size) {
      const int row = n / units_of_row, col = n % units_of_row * unit;
      if (col < cols) f(row, col);
    }
  }

  /// The unit of an element in scratch. A row's units are in an order of its own, so that the same unit of neighbouring
  /// rows is in other banks.
  KOKKOS_FORCEINLINE_FUNCTION static Pack<A, unit>& unit_in(A* in_scratch, int row, int col) {
    constexpr int turned = Tile::warp_cols / unit;
    return reinterpret_cast<Pack<A, unit>*>(in_scratch)[row * units_of_row + (col / unit ^ row % turned)];
  }
  KOKKOS_FORCEINLINE_FUNCTION static void load(const Pack<A, unit>& from, A (&values)[unit]) {
    const Pack<A, unit> pack = load_by_words(&from);
    KOKKOSNN_IMPL_UNROLL
    for (int i = 0; i < unit; ++i) values[i] = pack[i];
  }
  /// Stores a thread's sums of a part of its warp's rows, from a row of scratch on.
  KOKKOS_FORCEINLINE_FUNCTION static void store_sums(A* in_scratch, int first_row, int part, const Lookup& lookup,
                                                     const Sums& sums, int rank) {
    using Neighbours = Pack<A, Unit::neighbours>;
    const int lane   = lane_of(rank);
    KOKKOSNN_IMPL_UNROLL
    for (int i = 0; i < part_rows / 16; ++i) {
      KOKKOSNN_IMPL_UNROLL
      for (int r = 0; r < Unit::rows; ++r) {
        const int row = i * 16 + Unit::row_of(r, lane);
        KOKKOSNN_IMPL_UNROLL
        for (int j = 0; j < col_tiles; ++j) {
          KOKKOSNN_IMPL_UNROLL
          for (int c = 0; c < Unit::cols; c += Unit::neighbours) {
            const int col = warp_col(rank) + j * 16 + Unit::col_of(c, lane);
            Neighbours pack;
            KOKKOSNN_IMPL_UNROLL
            for (int e = 0; e < Unit::neighbours; ++e) {
              pack[e] = lookup.checked(static_cast<A>(sums.tile[part / 16 + i][j].value[r][c + e]),
                                       warp_row(rank) + part + row);
            }
            A* const place = &unit_in(in_scratch, first_row + row, col)[col % unit];
            store_by_words(reinterpret_cast<Neighbours*>(place), pack);
          }
        }
      }
    }
  }

  /// Writes a tile's results.
  template <class Member>
  KOKKOS_FORCEINLINE_FUNCTION void write(const Member& team, A* in_scratch, const Block& block, const Lookup& lookup,
                                         const Sums& sums) const {
    const std::int64_t first_row = block.row * Tile::rows, first_col = block.col * Tile::cols;
    Offsets first;
    for (int t = 0; t < Results::count; ++t) {
      first[t] = results.batch[t](block.batch) + results.offset(t, first_row, first_col);
    }
    const int rank = static_cast<int>(team.team_rank()), cols = in_tile<Tile::cols>(data.cols - first_col);
    for_bands(team, in_scratch, lookup, sums, in_tile<Tile::rows>(data.rows - first_row), [&](int band, int count) {
      for_units(rank, count, cols, [&](int row, int col) {
        Offsets at;
        for (int t = 0; t < Results::count; ++t) at[t] = first[t] + results.offset(t, band + row, col);
        A values[unit];
        load(unit_in(in_scratch, row, col), values);
        this->write_unit(at, cols - col, values);
      });
    });
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
