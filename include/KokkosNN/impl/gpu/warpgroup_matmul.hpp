// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_WARPGROUP_MATMUL_HPP
#define KOKKOSNN_IMPL_GPU_WARPGROUP_MATMUL_HPP

#include <KokkosNN/half.hpp>
#include <KokkosNN/impl/gpu/device/warpgroup.hpp>
#include <KokkosNN/impl/inputs/matmul_tensors.hpp>
#include <KokkosNN/impl/matmul_shapes.hpp>
#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

// Matrix products of 16-bit elements on Hopper's warpgroups. A team's last warp loads: one thread of it has the tiles
// of a and b copied through a ring of stages, ahead of the products, over the ends of c's tiles, too. Two warpgroups
// multiply, each the upper or the lower half of a tile of c, and free a stage when both are done with it. The sums stay
// in registers until the epilogue. There are as many teams as multiprocessors, and they take tiles in turn.

namespace KokkosNN::Impl {

template <class T_, bool a_across_, bool b_along_, class F, class A, class Results,
          class Instructions = HopperInstructions>
struct MatmulInWarpgroups {
  using T                           = T_;
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
  MatmulEpilogue<F, A> epilogue;
  Results results;
  bool has_pairs;  ///< neighbouring columns' elements of c and of inputs can be moved at once; see `has_pairs_of`

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
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

 private:
  using AllInputs = std::make_index_sequence<Results::Inputs::count>;
  using Block     = typename MatmulData<T>::Block;
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
      write(data.block(n), warp, lane, sums);
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

  using Offsets = Kokkos::Array<std::int64_t, Results::count>;

  KOKKOS_FORCEINLINE_FUNCTION void write(const Block& tile, int warp, int lane,
                                         const float (&sums)[sums_per_thread]) const {
    Offsets batch;
    for (int t = 0; t < Results::count; ++t) batch[t] = results.batch[t](tile.batch);
    const std::int64_t row = tile.row * Tile::rows + warp * 16 + lane / 4, col = tile.col * Tile::cols;
    if (has_pairs && col + Tile::cols <= data.cols) {
      KOKKOSNN_IMPL_UNROLL
      for (int r = 0; r < 2; ++r) write_row<true>(batch, row + 8 * r, col, lane % 4, &sums[2 * r]);
    } else {
      KOKKOSNN_IMPL_UNROLL
      for (int r = 0; r < 2; ++r) write_row<false>(batch, row + 8 * r, col, lane % 4, &sums[2 * r]);
    }
  }
  /// A thread's columns of a row: of each eight the two that its place among the row's four threads names. By pairs
  /// there are no columns behind the last one.
  template <bool by_pairs>
  KOKKOS_FORCEINLINE_FUNCTION void write_row(const Offsets& batch, std::int64_t row, std::int64_t col, int place,
                                             const float* sums) const {
    const bool is_row = row < data.rows;
    Offsets at;  // of the thread's first column; lanes behind the last row take part in exchanges
    for (int t = 0; t < Results::count; ++t) at[t] = batch[t] + results.offset(t, is_row ? row : 0, col + 2 * place);
    if constexpr (!by_pairs) {
      if (!is_row) return;
      KOKKOSNN_IMPL_UNROLL
      for (int j = 0; j < Tile::cols / 8; ++j) {
        KOKKOSNN_IMPL_UNROLL
        for (int c = 0; c < 2; ++c) {
          const int further = 8 * j + c;
          if (col + 2 * place + further >= data.cols) continue;
          C* const to = c_data() + at[0] + further * results.col_stride[0];
          A value     = epilogue.alpha * sums[4 * j + c];
          if (epilogue.beta != A(0)) value += epilogue.beta * static_cast<A>(*to);
          *to = static_cast<C>(result_of(value, at, further, AllInputs{}));
        }
      }
    } else if constexpr (sizeof(C) == 4) {
      KOKKOSNN_IMPL_UNROLL
      for (int j = 0; j < Tile::cols / 8; ++j) {
        const Pair<A> pair = pair_of(at, 8 * j, &sums[4 * j]);
        if (is_row) *reinterpret_cast<Pair<C>*>(c_data() + at[0] + 8 * j) = {{C(pair.value[0]), C(pair.value[1])}};
      }
    } else {
      KOKKOSNN_IMPL_UNROLL
      for (int j = 0; j < Tile::cols / 8; j += 4) {
        MatrixChunk chunk;  // the thread's pairs of four times eight columns, then eight columns
        KOKKOSNN_IMPL_UNROLL
        for (int i = 0; i < 4; ++i) {
          const Pair<A> pair = pair_of(at, 8 * (j + i), &sums[4 * (j + i)]);
          chunk.word[i]      = I::template packed<C>(pair.value[0], pair.value[1]);
        }
        transpose_among_four(chunk, place);
        C* const to = c_data() + at[0] - 2 * place + 8 * (j + place);
        if (is_row) *reinterpret_cast<MatrixChunk*>(to) = chunk;
      }
    }
  }
  /// Word i of thread j becomes word j of thread i.
  KOKKOS_FORCEINLINE_FUNCTION static void transpose_among_four(MatrixChunk& chunk, int place) {
    KOKKOSNN_IMPL_UNROLL
    for (int mask = 1; mask < 4; mask *= 2) {
      const bool is_upper = (place & mask) != 0;
      KOKKOSNN_IMPL_UNROLL
      for (int i = 0; i < 4; ++i) {
        if ((i & mask) != 0) continue;
        std::uint32_t &low = chunk.word[i], &high = chunk.word[i + mask];
        const std::uint32_t other = I::exchange(is_upper ? low : high, mask);
        (is_upper ? low : high)   = other;
      }
    }
  }

  template <class E>
  struct alignas(2 * sizeof(E)) Pair {
    E value[2];
  };
  /// Elements `further` columns behind the offset, and the next one.
  template <class E>
  KOKKOS_FORCEINLINE_FUNCTION Pair<A> pair_at(int t, const E* data_of, const Offsets& at, int further) const {
    if (results.col_stride[t] == 0) {
      const A one = static_cast<A>(data_of[at[t]]);
      return {{one, one}};
    }
    const Pair<E> pair = *reinterpret_cast<const Pair<E>*>(data_of + at[t] + further);
    return {{static_cast<A>(pair.value[0]), static_cast<A>(pair.value[1])}};
  }
  KOKKOS_FORCEINLINE_FUNCTION Pair<A> pair_of(const Offsets& at, int further, const float* sums) const {
    Pair<A> pair{{epilogue.alpha * sums[0], epilogue.alpha * sums[1]}};
    if (epilogue.beta != A(0)) {
      const Pair<A> before = pair_at(0, c_data(), at, further);
      pair.value[0] += epilogue.beta * before.value[0];
      pair.value[1] += epilogue.beta * before.value[1];
    }
    return results_of(pair, at, further, AllInputs{});
  }
  template <std::size_t... i>
  KOKKOS_FORCEINLINE_FUNCTION Pair<A> results_of(const Pair<A>& pair, [[maybe_unused]] const Offsets& at,
                                                 [[maybe_unused]] int further, std::index_sequence<i...>) const {
    const Kokkos::Array<Pair<A>, sizeof...(i)> in{pair_at(1 + static_cast<int>(i), input<i>(), at, further)...};
    return {{static_cast<A>(epilogue.f(pair.value[0], in[i].value[0]...)),
             static_cast<A>(epilogue.f(pair.value[1], in[i].value[1]...))}};
  }
  template <std::size_t... i>
  KOKKOS_FORCEINLINE_FUNCTION auto result_of(A value, [[maybe_unused]] const Offsets& at, [[maybe_unused]] int further,
                                             std::index_sequence<i...>) const {
    return epilogue.f(value, static_cast<A>(input<i>()[at[1 + i] + further * results.col_stride[1 + i]])...);
  }
  template <std::size_t i>
  KOKKOS_FORCEINLINE_FUNCTION const typename Results::template Input<i>* input() const {
    return static_cast<const typename Results::template Input<i>*>(results.data[1 + i]);
  }
  KOKKOS_FORCEINLINE_FUNCTION C* c_data() const { return static_cast<C*>(results.data[0]); }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_WARPGROUP_MATMUL_HPP
