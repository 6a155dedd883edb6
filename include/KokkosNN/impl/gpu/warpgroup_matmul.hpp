// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_WARPGROUP_MATMUL_HPP
#define KOKKOSNN_IMPL_GPU_WARPGROUP_MATMUL_HPP

#include <KokkosNN/half.hpp>
#include <KokkosNN/impl/gpu/device/barriers.hpp>
#include <KokkosNN/impl/gpu/device/warpgroup.hpp>
#include <KokkosNN/impl/gpu/device/warpgroup_sums.hpp>
#include <KokkosNN/impl/gpu/matmul_units.hpp>
#include <KokkosNN/impl/inputs/matmul_tensors.hpp>
#include <KokkosNN/impl/matmul_shapes.hpp>
#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

// Matrix products of 16-bit elements on Hopper's warpgroups. A team's last warp loads: one thread of it has the tiles
// of a and b copied through a ring of stages, ahead of the products, over the ends of c's tiles, too. Two warpgroups
// multiply, each the upper or the lower half of a tile of c, and free a stage when both are done with it. The sums stay
// in registers until the epilogue. There are as many teams as multiprocessors, and they take tiles in turn.

namespace KokkosNN::Impl {

template <class T_, bool a_across_, bool b_along_, class F, class A, class Results,
          class Instructions = HopperInstructions>
struct MatmulInWarpgroups : MatmulUnits<F, A, Results, warpgroup_unit, Instructions> {
  using T                           = T_;
  using Units                       = MatmulUnits<F, A, Results, warpgroup_unit, Instructions>;
  using Tile                        = WarpgroupMatmulTile;
  using I                           = Instructions;
  using Address                     = typename I::Address;
  using Map                         = typename I::Map;
  using C                           = typename Results::C;
  static constexpr bool a_across    = a_across_;
  static constexpr bool b_along     = b_along_;
  static constexpr int team_size    = Tile::team_size;
  static constexpr int resident     = 1;
  static constexpr int stages       = Tile::stages;
  static constexpr int a_bytes      = Tile::rows * warpgroup_row_bytes;
  static constexpr int stage_bytes  = a_bytes + Tile::cols * warpgroup_row_bytes;
  static constexpr int block_bytes  = warpgroup_tile_inner * warpgroup_row_bytes;  ///< 64 elements across
  static constexpr int block        = warpgroup_row_bytes / int(sizeof(T));
  static constexpr int multipliers  = Tile::rows / warpgroup_rows;  ///< warpgroups that multiply
  static constexpr int used_scratch = stages * (stage_bytes + 2 * int(sizeof(std::uint64_t)));
  static_assert(sizeof(T) == 2 && std::is_same_v<A, float> && sizeof(C) <= 4);
  static_assert(Tile::inner == warpgroup_tile_inner && Tile::rows == 2 * block && Tile::cols == 4 * block);
  static_assert(team_size == (multipliers * 4 + 1) * 32 && used_scratch + warpgroup_alignment <= Tile::scratch);

  Map a;
  Map b;
  MatmulData<T> data;
  Kokkos::Array<std::int64_t, 3> batch_extent;  ///< axes of the batches, from the last one on
  Kokkos::Array<bool, 3> a_has_axis;            ///< or repeats its matrices along it
  Kokkos::Array<bool, 3> b_has_axis;
  using Units::epilogue;
  using Units::results;

  template <class Member>
  KOKKOS_FUNCTION void operator()([[maybe_unused]] const Member& team) const {
    if constexpr (I::exist) do_tiles(team);
  }

 private:
  template <class Member>
  KOKKOS_FORCEINLINE_FUNCTION void do_tiles(const Member& team) const {
    char* const scratch = static_cast<char*>(team.team_scratch(0).get_shmem_aligned(used_scratch, warpgroup_alignment));
    const Ring ring{I::address(scratch)};
    const int rank = static_cast<int>(team.team_rank()), warp = I::uniform(rank / 32);
    if (rank == 0) {
      for (int s = 0; s < stages; ++s) {
        I::make_barrier(ring.filled(s), 1);
        I::make_barrier(ring.freed(s), multipliers * 4);
      }
      I::publish_barriers();
    }
    team.team_barrier();
    const Turns turns{team.league_rank(), team.league_size(), data.tiles()};
    if (warp == multipliers * 4) {
      if (rank % 32 == 0) load(ring, turns);
    } else {
      multiply(ring, turns, warp, rank % 32);
    }
  }

  using Block = typename MatmulData<T>::Block;
  /// Tiles that a team takes.
  struct Turns {
    std::int64_t first;
    std::int64_t step;
    std::int64_t end;
  };

  /// The stages and their barriers, in scratch.
  struct Ring {
    Address begin;

    KOKKOS_FORCEINLINE_FUNCTION Address a(int stage) const { return begin + stage * stage_bytes; }
    KOKKOS_FORCEINLINE_FUNCTION Address b(int stage) const { return begin + stage * stage_bytes + a_bytes; }
    KOKKOS_FORCEINLINE_FUNCTION Address filled(int stage) const { return begin + stages * stage_bytes + stage * 8; }
    KOKKOS_FORCEINLINE_FUNCTION Address freed(int stage) const { return filled(stages + stage); }
  };
  /// A stage of the ring, and the parity of how often its barriers' phases have ended.
  struct Place {
    int stage  = 0;
    int parity = 0;

    KOKKOS_FORCEINLINE_FUNCTION void advance() {
      if (++stage == stages) {
        stage = 0;
        parity ^= 1;
      }
    }
  };

  KOKKOS_FORCEINLINE_FUNCTION int steps() const {
    return static_cast<int>((data.inner + Tile::inner - 1) / Tile::inner);
  }

  // --- the loading thread ---

  KOKKOS_FORCEINLINE_FUNCTION void load(const Ring& ring, const Turns& turns) const {
    I::prefetch(a);
    I::prefetch(b);
    Place place;
    KOKKOSNN_IMPL_NO_UNROLL
    for (std::int64_t n = turns.first; n < turns.end; n += turns.step) {
      const Block tile = data.block(n);
      int of_a[TensorMap::rank], of_b[TensorMap::rank];
      std::int64_t batch = tile.batch;
      for (int k = 0; k < 3; ++k) {
        const int index = static_cast<int>(batch % batch_extent[k]);
        of_a[2 + k]     = a_has_axis[k] ? index : 0;
        of_b[2 + k]     = b_has_axis[k] ? index : 0;
        batch /= batch_extent[k];
      }
      const int row = static_cast<int>(tile.row * Tile::rows), col = static_cast<int>(tile.col * Tile::cols);
      KOKKOSNN_IMPL_NO_UNROLL
      for (int step = 0; step < steps(); ++step) {
        I::await(ring.freed(place.stage), place.parity ^ 1);  // of the first round, at once
        I::expect(ring.filled(place.stage), stage_bytes);
        fetch<a_across, Tile::rows>(ring.a(place.stage), a, of_a, row, step, ring.filled(place.stage));
        fetch<!b_along, Tile::cols>(ring.b(place.stage), b, of_b, col, step, ring.filled(place.stage));
        place.advance();
      }
    }
  }
  /// Copies the tile of an operand that begins at an element across the sums' axis.
  template <bool is_across, int count>
  KOKKOS_FORCEINLINE_FUNCTION static void fetch(Address to, const Map& map, int (&at)[TensorMap::rank], int begin,
                                                int step, Address barrier) {
    if constexpr (is_across) {
      at[1] = step * Tile::inner;
      KOKKOSNN_IMPL_UNROLL
      for (int i = 0; i < count / block; ++i) {
        at[0] = begin + i * block;
        I::fetch(to + i * block_bytes, map, at, barrier);
      }
    } else {
      at[0] = step * Tile::inner;
      at[1] = begin;
      I::fetch(to, map, at, barrier);
    }
  }

  // --- the multiplying warpgroups ---

  static constexpr int sums_per_thread = warpgroup_rows * Tile::cols / warpgroup_threads;

  KOKKOS_FORCEINLINE_FUNCTION void multiply(const Ring& ring, const Turns& turns, int warp, int lane) const {
    const int half = warp / 4;
    float sums[sums_per_thread];
    KOKKOSNN_IMPL_UNROLL
    for (int i = 0; i < sums_per_thread; ++i) sums[i] = 0;
    Place place;
    KOKKOSNN_IMPL_NO_UNROLL
    for (std::int64_t n = turns.first; n < turns.end; n += turns.step) {
      I::keep(sums);
      int before = place.stage;
      add_step(ring, place, half, sums, false);
      place.advance();
      const Target target = target_of(n, warp, lane);
      KOKKOSNN_IMPL_NO_UNROLL
      for (int step = 1; step < steps(); ++step) {
        add_step(ring, place, half, sums, true);
        I::template await_products<1>();
        if (lane == 0) I::arrive(ring.freed(before));
        before = place.stage;
        place.advance();
      }
      I::template await_products<0>();
      I::keep(sums);
      if (lane == 0) I::arrive(ring.freed(before));
      write(target, lane % 4, sums);
    }
  }
  /// Enqueues the products of a stage.
  KOKKOS_FORCEINLINE_FUNCTION static void add_step(const Ring& ring, const Place& place, int half,
                                                   float (&sums)[sums_per_thread], bool adds) {
    I::await(ring.filled(place.stage), place.parity);
    // A half's rows are one block of a, in both orders.
    const std::uint64_t of_a = warpgroup_tile(ring.a(place.stage) + half * block_bytes, block_bytes);
    const std::uint64_t of_b = warpgroup_tile(ring.b(place.stage), block_bytes);
    I::open_products();
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < Tile::inner; k += warpgroup_inner) {
      // 16 elements further along a row, or 16 rows further; places are in units of 16 bytes.
      constexpr int along = int(sizeof(T)), across = warpgroup_row_bytes;
      I::template product<T, a_across, !b_along>(sums, of_a + (k * (a_across ? across : along) >> 4),
                                                 of_b + (k * (b_along ? along : across) >> 4), adds || k > 0);
    }
    I::close_products();
  }

  // --- the epilogue ---
  //
  // A thread's sums are pairs of neighbouring columns. The four threads of a row exchange them, unit by unit of eight
  // columns each (matmul_units.hpp). Sums in registers have no index, hence the switch.

  static constexpr int unit             = warpgroup_unit;
  static constexpr int units_per_thread = sums_per_thread / unit;
  static_assert(units_per_thread == 16);
  using Offsets = typename Units::Offsets;

  /// Where a thread's results go.
  struct Target {
    Offsets at;     ///< of c and of the inputs, at the thread's first row and the tile's first column
    int rows_left;  ///< from that row on, up to 16
    int cols;       ///< of c in the tile
  };
  /// Found while products run.
  KOKKOS_FORCEINLINE_FUNCTION Target target_of(std::int64_t n, int warp, int lane) const {
    const Block tile       = data.block(n);
    const std::int64_t row = tile.row * Tile::rows + warp * 16 + lane / 4, col = tile.col * Tile::cols;
    const std::int64_t rows_left = data.rows - row, cols_left = data.cols - col;
    Target target;
    target.rows_left = opaque(rows_left < 16 ? static_cast<int>(rows_left) : 16);
    target.cols      = opaque(cols_left < Tile::cols ? static_cast<int>(cols_left) : int(Tile::cols));
    for (int t = 0; t < Results::count; ++t) {
      target.at[t] = opaque(results.batch[t](tile.batch) + results.offset(t, row, col));
    }
    return target;
  }

  KOKKOS_FORCEINLINE_FUNCTION void write(const Target& target, int place, const float (&sums)[sums_per_thread]) const {
    KOKKOSNN_IMPL_NO_UNROLL
    for (int n = 0; n < units_per_thread; ++n) {
      const int row = n % 2 * 8, group = n / 2 * 4 * unit;
      if (group >= target.cols) break;
      A values[unit];
      take(n, sums, values);
      exchange_among_four<I, 2>(values, place);
      const int col = group + place * unit, left = target.cols - col;
      if (row >= target.rows_left || left <= 0) continue;
      Offsets at;
      for (int t = 0; t < Results::count; ++t) at[t] = target.at[t] + results.offset(t, row, col);
      this->write_unit(at, left, values);
    }
  }

  template <int n>
  KOKKOS_FORCEINLINE_FUNCTION static void take_unit(const float (&sums)[sums_per_thread], A (&values)[unit]) {
    KOKKOSNN_IMPL_UNROLL
    for (int i = 0; i < unit; ++i) values[i] = sums[n / 2 * 16 + i / 2 * 4 + n % 2 * 2 + i % 2];
  }
  /// A thread's pairs of the n-th unit: of one of its two rows, in four times eight columns.
  KOKKOS_FORCEINLINE_FUNCTION static void take(int n, const float (&sums)[sums_per_thread], A (&values)[unit]) {
    switch (n) {
      case 0:
        return take_unit<0>(sums, values);
      case 1:
        return take_unit<1>(sums, values);
      case 2:
        return take_unit<2>(sums, values);
      case 3:
        return take_unit<3>(sums, values);
      case 4:
        return take_unit<4>(sums, values);
      case 5:
        return take_unit<5>(sums, values);
      case 6:
        return take_unit<6>(sums, values);
      case 7:
        return take_unit<7>(sums, values);
      case 8:
        return take_unit<8>(sums, values);
      case 9:
        return take_unit<9>(sums, values);
      case 10:
        return take_unit<10>(sums, values);
      case 11:
        return take_unit<11>(sums, values);
      case 12:
        return take_unit<12>(sums, values);
      case 13:
        return take_unit<13>(sums, values);
      case 14:
        return take_unit<14>(sums, values);
      case 15:
        return take_unit<15>(sums, values);
    }
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_WARPGROUP_MATMUL_HPP
