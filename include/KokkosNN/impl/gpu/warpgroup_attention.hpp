// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_WARPGROUP_ATTENTION_HPP
#define KOKKOSNN_IMPL_GPU_WARPGROUP_ATTENTION_HPP

#include <KokkosNN/half.hpp>
#include <KokkosNN/impl/attention_shapes.hpp>
#include <KokkosNN/impl/gpu/attention.hpp>
#include <KokkosNN/impl/gpu/attention_block.hpp>
#include <KokkosNN/impl/gpu/attention_elements.hpp>
#include <KokkosNN/impl/gpu/device/warpgroup.hpp>
#include <KokkosNN/impl/gpu/device/warpgroup_sums.hpp>
#include <KokkosNN/impl/gpu/warpgroup_heads.hpp>
#include <KokkosNN/impl/gpu/warpgroup_mask.hpp>
#include <KokkosNN/impl/inputs/attention_tensors.hpp>
#include <KokkosNN/impl/math/exp.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

// Attention of 16-bit elements on Hopper's warpgroups. There are as many teams as multiprocessors, and they take blocks
// of rows of scores of a head in turn. One warp of a team plans: it finds out which keys a block's rows
// see. Another one loads: it has queries and tiles of keys and values copied, ahead of the products, over the ends of
// blocks, too. The other warpgroups multiply, 64 rows of the block each. The products of the next tile's scores, and
// those of the weights with the values, run while another warpgroup computes exponentials: they enqueue products in
// turn.
//
// Logits are powers of two relative to the row's maximum. Tiles begin at multiples of their length, so a row's bits do
// not depend on the rows beside it. Values that no row of a block sees are made 0; a row whose results are NaN, as 0
// times a NaN or an infinity is, is computed again, key by key, by AttentionInTeam, whose team is the row's warp.

namespace KokkosNN::Impl {

template <class T_, int dims_, bool has_elements_, class Instructions = HopperInstructions,
          class Data = AttentionData<T_>>
struct AttentionInWarpgroups {
  using X                            = T_;
  using A                            = float;
  using I                            = Instructions;
  using Address                      = typename I::Address;
  using Tile                         = WarpgroupAttentionTileFor<dims_, has_elements_>;
  using Heads                        = BoxedHeads<I>;
  static constexpr int dims          = dims_;          ///< elements that q, k and v are padded to
  static constexpr bool has_elements = has_elements_;  ///< of the mask; without them the scale is positive
  static constexpr int keys          = Tile::keys;
  static constexpr int multipliers   = Tile::multipliers;  ///< warpgroups that multiply
  static constexpr int rows          = multipliers * warpgroup_rows;
  static constexpr int team_size     = (multipliers + 1) * warpgroup_threads;
  static constexpr int resident      = 1;
  static constexpr int blocks        = dims / warpgroup_tile_inner;  ///< of 64 elements, which tiles have
  static constexpr int query_block   = rows * warpgroup_row_bytes;
  static constexpr int key_block     = keys * warpgroup_row_bytes;
  static constexpr int queries_bytes = blocks * query_block;
  static constexpr int tile_bytes    = blocks * key_block;
  static constexpr int stages        = Tile::stages;
  static constexpr int again_bytes   = int(attention_scratch(dims, dims)) * int(sizeof(A));
  static constexpr int warps         = multipliers * 4;  ///< that multiply
  static_assert(sizeof(X) == 2 && dims % warpgroup_tile_inner == 0 && keys % warpgroup_inner == 0);

  using Row = TeamRow<X, has_elements, int>;
  /// A block of rows, as the planning warp hands it to the others.
  struct Work {
    RowBlock block;  ///< `left` is 0 behind the last one
    SeenTiles keys;
    int all_keys;   ///< of the sequence
    WidePart wide;  ///< of the mask's elements
    Row row[rows];
  };
  static constexpr int works = 2;

  static constexpr int values_place    = queries_bytes + stages * tile_bytes;
  static constexpr int works_place     = values_place + stages * tile_bytes;
  static constexpr int again_place     = works_place + works * int(sizeof(Work));
  static constexpr int barriers_place  = again_place + warps * again_bytes;
  static constexpr int number_barriers = 4 * stages + 2 * works + 3;
  static constexpr int used_bytes      = barriers_place + number_barriers * int(sizeof(std::uint64_t));
  static constexpr std::size_t scratch = used_bytes + warpgroup_alignment;
  static_assert(again_place % 8 == 0 && barriers_place % 8 == 0);

  Data data;
  Heads q;
  Heads k;
  Heads v;
  std::int64_t bundle;  ///< of BlockTurns
  bool writes_units;    ///< eight elements of o can be written at once, and make all of it up

  template <class Member>
  KOKKOS_FUNCTION void operator()([[maybe_unused]] const Member& team) const {
    if constexpr (I::exist) do_blocks(team);
  }

 private:
  using Place = RingPlace<stages>;
  static_assert(works == stages);

  /// The tiles and barriers, in scratch.
  struct Scratch {
    char* memory;
    Address begin;

    KOKKOS_FORCEINLINE_FUNCTION Address queries() const { return begin; }
    KOKKOS_FORCEINLINE_FUNCTION Address keys_at(int stage) const { return begin + queries_bytes + stage * tile_bytes; }
    KOKKOS_FORCEINLINE_FUNCTION Address values_at(int stage) const { return begin + values_place + stage * tile_bytes; }
    KOKKOS_FORCEINLINE_FUNCTION Work& work(int number) const {
      return reinterpret_cast<Work*>(memory + works_place)[number];
    }
    KOKKOS_FORCEINLINE_FUNCTION A* again(int warp) const {
      return reinterpret_cast<A*>(memory + again_place + warp * again_bytes);
    }
    KOKKOS_FORCEINLINE_FUNCTION Address barrier(int number) const {
      return begin + barriers_place + number * int(sizeof(std::uint64_t));
    }
    KOKKOS_FORCEINLINE_FUNCTION Address queries_filled() const { return barrier(0); }
    KOKKOS_FORCEINLINE_FUNCTION Address queries_freed() const { return barrier(1); }
    KOKKOS_FORCEINLINE_FUNCTION Address values_came() const { return barrier(2); }  ///< some of which become 0
    KOKKOS_FORCEINLINE_FUNCTION Address work_filled(int number) const { return barrier(3 + number); }
    KOKKOS_FORCEINLINE_FUNCTION Address work_freed(int number) const { return barrier(3 + works + number); }
    KOKKOS_FORCEINLINE_FUNCTION Address keys_filled(int stage) const { return barrier(3 + 2 * works + stage); }
    KOKKOS_FORCEINLINE_FUNCTION Address keys_freed(int stage) const { return keys_filled(stages + stage); }
    KOKKOS_FORCEINLINE_FUNCTION Address values_filled(int stage) const { return keys_filled(2 * stages + stage); }
    KOKKOS_FORCEINLINE_FUNCTION Address values_freed(int stage) const { return keys_filled(3 * stages + stage); }
  };

  template <class Member>
  KOKKOS_FORCEINLINE_FUNCTION void do_blocks(const Member& team) const {
    constexpr int bytes = used_bytes;  // taken by reference
    char* const memory  = static_cast<char*>(team.team_scratch(0).get_shmem_aligned(bytes, warpgroup_alignment));
    const Scratch scratch_of_team{memory, I::address(memory)};
    const int rank = static_cast<int>(team.team_rank()), warp = I::uniform(rank / 32);
    if (rank == 0) make_barriers(scratch_of_team);
    team.team_barrier();
    if (warp < 4) {
      I::template keep_registers<Tile::loading_registers>();
      if (warp == 0) load(scratch_of_team, rank);
      if (warp == 1) plan(scratch_of_team, team.league_rank(), team.league_size(), rank % 32);
    } else {
      I::template take_registers<Tile::registers>();
      multiply(scratch_of_team, warp - 4, rank % 32);
    }
  }

  KOKKOS_FORCEINLINE_FUNCTION static void make_barriers(const Scratch& at) {
    I::make_barrier(at.queries_filled(), 1);
    I::make_barrier(at.queries_freed(), warps);
    I::make_barrier(at.values_came(), 1);
    for (int n = 0; n < works; ++n) {
      I::make_barrier(at.work_filled(n), 32);
      I::make_barrier(at.work_freed(n), (warps + 1) * 32);
    }
    for (int s = 0; s < stages; ++s) {
      I::make_barrier(at.keys_filled(s), 1);
      I::make_barrier(at.keys_freed(s), warps);
      I::make_barrier(at.values_filled(s), 1);
      I::make_barrier(at.values_freed(s), warps);
    }
    I::publish_barriers();
  }

  // --- the warp that plans: it is ahead of the others by a block or two ---

  KOKKOS_FORCEINLINE_FUNCTION void plan(const Scratch& at, std::int64_t rank, std::int64_t teams, int lane) const {
    Place work;
    const std::int64_t heads = heads_of_rows(data.shape);
    BlockTurns turns(heads, data.shape.head_blocks(rows) / heads, bundle, rank, teams);
    KOKKOSNN_IMPL_NO_UNROLL
    for (; turns.exists(); turns.go_on()) {
      const RowBlock block = head_block<rows>(data, turns.head(), turns.number());
      if (block.left <= 0) continue;
      I::await(at.work_freed(work.stage), work.parity ^ 1);
      describe(at.work(work.stage), block, lane);
      I::meet_in_warp();
      I::arrive(at.work_filled(work.stage));
      work = work.next();
    }
    I::await(at.work_freed(work.stage), work.parity ^ 1);
    if (lane == 0) at.work(work.stage).block.left = 0;
    I::meet_in_warp();
    I::arrive(at.work_filled(work.stage));
  }
  KOKKOS_FORCEINLINE_FUNCTION void describe(Work& work, const RowBlock& block, int lane) const {
    const Sequence sequence = data.sequence(block.batch);
    SeenKeys seen           = SeenKeys::none();
    FindWidePart<X, has_elements> find_wide(data.elements);
    KOKKOSNN_IMPL_NO_UNROLL
    for (int r = lane; r < rows; r += 32) {
      Row row{};
      if (r < block.left) {
        row = team_row<has_elements, int>(data, block.template row<rows>(r), sequence);
        seen.add(row.begin, row.end);
        if constexpr (has_elements) find_wide.add(row.elements);
      }
      work.row[r] = row;
    }
    seen.template join_lanes<I, 32>();
    const WidePart wide = find_wide.template of_warp<I>();
    if (lane != 0) return;
    work.block    = block;
    work.all_keys = static_cast<int>(sequence.keys);
    work.wide     = wide;
    work.keys.set(seen, sequence.first_key, keys);
  }

  // --- the warp that loads ---

  KOKKOS_FORCEINLINE_FUNCTION void load(const Scratch& at, int lane) const {
    if (lane == 0) {
      I::prefetch(q.map);
      I::prefetch(k.map);
      I::prefetch(v.map);
    }
    Place number, tile;
    int queries_parity = 1, came_parity = 0;
    KOKKOSNN_IMPL_NO_UNROLL
    for (;; number = number.next()) {
      I::await(at.work_filled(number.stage), number.parity);
      const Work& work = at.work(number.stage);
      if (work.block.left == 0) break;
      if (work.keys.tiles > 0) {
        I::await(at.queries_freed(), queries_parity);
        queries_parity ^= 1;
        if (lane == 0) {
          I::expect(at.queries_filled(), queries_bytes);
          q.template fetch<blocks>(at.queries(), query_block, work.block.start, work.block.head, work.block.query,
                                   at.queries_filled());
        }
        load_keys(at, work, lane, tile, came_parity);
      }
      I::arrive(at.work_freed(number.stage));
    }
  }
  KOKKOS_FORCEINLINE_FUNCTION void load_keys(const Scratch& at, const Work& work, int lane, Place& place,
                                             int& came_parity) const {
    const SeenTiles& seen   = work.keys;
    const std::int64_t head = work.block.kv_head;
    KOKKOSNN_IMPL_NO_UNROLL
    for (int tile = 0, first = seen.first; tile < seen.tiles; ++tile, first += keys, place = place.next()) {
      const int stage = place.stage;
      I::await(at.keys_freed(stage), place.parity ^ 1);
      if (lane == 0) {
        I::expect(at.keys_filled(stage), tile_bytes);
        k.template fetch<blocks>(at.keys_at(stage), key_block, seen.start, head, first, at.keys_filled(stage));
      }
      I::await(at.values_freed(stage), place.parity ^ 1);
      const bool is_whole   = seen.begin <= first && first + keys <= seen.end;
      const Address barrier = is_whole ? at.values_filled(stage) : at.values_came();
      if (lane == 0) {
        I::expect(barrier, tile_bytes);
        v.template fetch<blocks>(at.values_at(stage), key_block, seen.start, head, first, barrier);
      }
      if (is_whole) continue;
      I::await(barrier, came_parity);
      came_parity ^= 1;
      clear_other_rows<I, keys, blocks>(at.values_at(stage), seen.begin - first, seen.end - first, lane);
      I::publish_tile();
      I::meet_in_warp();
      if (lane == 0) I::arrive(at.values_filled(stage));
    }
  }

  // --- the multiplying warpgroups ---

  /// A thread's part of two rows: scores, and behind them weights; results of tiles before; largest score, sum of the
  /// weights of this thread's columns, and the factor of what was added up before.
  struct State {
    float score[keys / 2];
    float result[dims / 2];
    std::uint32_t weight[keys / 4];
    float max[2];
    float sum[2];
    float factor[2];
  };

  using Ahead                  = std::conditional_t<has_elements, MaskAhead<I, X, keys>, NoMask>;
  static constexpr int in_turn = 2 * warpgroup_threads;  ///< threads at a barrier of those that enqueue in turn
  KOKKOS_FORCEINLINE_FUNCTION static int turn(int group) { return 1 + group; }
  KOKKOS_FORCEINLINE_FUNCTION static void give_turn(int group) {
    I::pass(turn(group + 1 == multipliers ? 0 : group + 1), in_turn);
  }

  KOKKOS_FORCEINLINE_FUNCTION void multiply(const Scratch& at, int warp, int lane) const {
    const int group = warp / 4;
    Place place, number;
    int queries_parity = 0;
    State state;
    if (group == multipliers - 1) give_turn(group);
    KOKKOSNN_IMPL_NO_UNROLL
    for (;; number = number.next()) {
      I::await(at.work_filled(number.stage), number.parity);
      const Work& work = at.work(number.stage);
      if (work.block.left == 0) break;
      start(state);
      if (work.keys.tiles > 0) {
        I::await(at.queries_filled(), queries_parity);
        queries_parity ^= 1;
        add_keys(at, work, warp, lane, place, state);
      }
      write(at, work, warp, lane, state);
      I::arrive(at.work_freed(number.stage));
    }
    if (group == 0) I::meet(turn(0), in_turn);  // the turn that was given last
  }

  KOKKOS_FORCEINLINE_FUNCTION static void start(State& state) {
    KOKKOSNN_IMPL_UNROLL
    for (int i = 0; i < dims / 2; ++i) state.result[i] = 0;
    KOKKOSNN_IMPL_UNROLL
    for (int r = 0; r < 2; ++r) {
      state.max[r]    = -Kokkos::Experimental::infinity_v<float>;
      state.sum[r]    = 0;
      state.factor[r] = 1;
    }
  }

  KOKKOS_FORCEINLINE_FUNCTION void add_keys(const Scratch& at, const Work& work, int warp, int lane, Place& place,
                                            State& state) const {
    const int group  = warp / 4;
    const auto freed = [&](Address barrier) {
      if (lane == 0) I::arrive(barrier);
    };
    const Row* const row = work.row + warp * 16 + lane / 4;  // and the one 8 further
    const int tiles      = work.keys.tiles;
    int first            = work.keys.first;
    Ahead ahead;
    I::await(at.keys_filled(place.stage), place.parity);
    I::keep(state.score);
    I::open_products();
    multiply_queries(at, group, place.stage, state);
    I::close_products();
    load_ahead(work, row, first, lane, ahead);
    I::template await_products<0>();
    I::keep(state.score);
    freed(at.keys_freed(place.stage));
    weigh(work, row, first, lane, ahead, state);
    round_sums<I, X>(state.score, state.weight);
    KOKKOSNN_IMPL_NO_UNROLL
    for (int tile = 1; tile < tiles; ++tile) {
      const Place next = place.next();
      first += keys;
      I::await(at.keys_filled(next.stage), next.parity);
      I::meet(turn(group), in_turn);
      I::keep(state.score);
      I::keep(state.result);
      I::open_products();
      multiply_queries(at, group, next.stage, state);
      I::close_products();
      I::await(at.values_filled(place.stage), place.parity);
      multiply_values(at, place.stage, state);
      I::close_products();
      give_turn(group);
      load_ahead(work, row, first, lane, ahead);
      I::template await_products<1>();
      I::keep(state.score);
      freed(at.keys_freed(next.stage));
      weigh(work, row, first, lane, ahead, state);
      // It never is. But ptxas would otherwise move the wait below ahead of the exponentials: nothing would overlap.
      if (state.sum[0] + state.sum[1] < 0) I::store(at.values_came(), 0);
      I::keep(state.score);
      I::template await_products<0>();
      I::keep(state.result);
      freed(at.values_freed(place.stage));
      rescale(state);
      round_sums<I, X>(state.score, state.weight);
      place = next;
    }
    freed(at.queries_freed());
    I::await(at.values_filled(place.stage), place.parity);
    I::keep(state.result);
    I::open_products();
    multiply_values(at, place.stage, state);
    I::close_products();
    I::template await_products<0>();
    I::keep(state.result);
    freed(at.values_freed(place.stage));
    place = place.next();
  }

  KOKKOS_FORCEINLINE_FUNCTION static void multiply_queries(const Scratch& at, int group, int stage, State& state) {
    constexpr int group_bytes = warpgroup_rows * warpgroup_row_bytes, along = warpgroup_inner * int(sizeof(X));
    const std::uint64_t of_q = warpgroup_tile(at.queries() + group * group_bytes, 0);
    const std::uint64_t of_k = warpgroup_tile(at.keys_at(stage), 0);
    KOKKOSNN_IMPL_UNROLL
    for (int b = 0; b < blocks; ++b) {
      KOKKOSNN_IMPL_UNROLL
      for (int i = 0; i < warpgroup_row_bytes / along; ++i) {
        I::template product<X, false, false>(state.score, of_q + ((b * query_block + i * along) >> 4),
                                             of_k + ((b * key_block + i * along) >> 4), b + i > 0);
      }
    }
  }
  KOKKOS_FORCEINLINE_FUNCTION static void multiply_values(const Scratch& at, int stage, State& state) {
    constexpr int across     = warpgroup_inner * warpgroup_row_bytes;
    const std::uint64_t of_v = warpgroup_tile(at.values_at(stage), key_block);
    KOKKOSNN_IMPL_UNROLL
    for (int i = 0; i < keys / warpgroup_inner; ++i) {
      I::template product<X, true>(state.result, state.weight + 4 * i, of_v + ((i * across) >> 4), true);
    }
  }

  /// Turns the scores of a tile into weights.
  KOKKOS_FORCEINLINE_FUNCTION void weigh(const Work& work, const Row* row, int first, int lane, Ahead& ahead,
                                         State& state) const {
    if constexpr (has_elements) mask_elements(row, first, work.keys.end, lane, ahead, state);
    if (first < work.keys.all_begin || first + keys > work.keys.all_end) mask(row, first + lane % 4 * 2, state);
    const float scale = factor();
    KOKKOSNN_IMPL_UNROLL
    for (int r = 0; r < 2; ++r) {
      float max = state.max[r];
      for_sums_of_row(state.score, r, [&](float& score, int) { max = Kokkos::fmax(max, score); });
      max             = Kokkos::fmax(max, I::exchange(max, 1));
      max             = Kokkos::fmax(max, I::exchange(max, 2));
      const float low = finite_reference(max) * scale;
      state.factor[r] = power_of_two(finite_reference(state.max[r]) * scale - low);
      if (state.max[r] == -Kokkos::Experimental::infinity_v<float>) state.factor[r] = 1;  // of nothing
      state.max[r] = max;
      float sum    = state.sum[r] * state.factor[r];
      for_sums_of_row(state.score, r, [&](float& score, int) {
        score = power_of_two(fused_multiply_add(score, scale, -low));
        sum += score;
      });
      state.sum[r] = sum;
    }
  }
  /// Factor that turns scores, as they are behind the mask, into powers of two.
  KOKKOS_FORCEINLINE_FUNCTION float factor() const { return has_elements ? 1.0f : data.scale * log2_of_e<float>; }

  /// Loads what of the mask of a tile's scores can be loaded ahead of them.
  KOKKOS_FORCEINLINE_FUNCTION void load_ahead(const Work& work, const Row* row, int first, int lane,
                                              Ahead& ahead) const {
    if constexpr (has_elements) {
      ahead.load(first + keys <= work.all_keys ? work.wide : WidePart::nothing, data.elements, row, first, lane % 4);
    }
  }
  /// Turns scores into logits times log2(e).
  KOKKOS_FORCEINLINE_FUNCTION void mask_elements(const Row* row, int first, int end, int lane, Ahead& ahead,
                                                 State& state) const {
    ahead.to_logits(
        TileElements<X, A>{data.elements, first, end}, data.scale, state.score, lane,
        [&](const auto& f) {
          KOKKOSNN_IMPL_UNROLL
          for (int i = 0; i < keys / 2; ++i) f(state.score[i]);
        },
        [&](const auto& f) { for_lines_of_sums(state.score, row, lane % 4 * 2, f); }, [](A) {});
  }
  KOKKOS_FORCEINLINE_FUNCTION static void mask(const Row* row, int first, State& state) {
    KOKKOSNN_IMPL_UNROLL
    for (int r = 0; r < 2; ++r) {
      const int begin = row[8 * r].begin - first, end = row[8 * r].end - first;
      for_sums_of_row(state.score, r, [&](float& score, int col) {
        if (col < begin || col >= end) score = -Kokkos::Experimental::infinity_v<float>;
      });
    }
  }
  KOKKOS_FORCEINLINE_FUNCTION static void rescale(State& state) {
    KOKKOSNN_IMPL_UNROLL
    for (int i = 0; i < dims / 2; ++i) state.result[i] *= state.factor[i / 2 % 2];
  }
  // --- results ---

  KOKKOS_FORCEINLINE_FUNCTION void write(const Scratch& at, const Work& work, int warp, int lane,
                                         const State& state) const {
    bool again[2];
    KOKKOSNN_IMPL_UNROLL
    for (int r = 0; r < 2; ++r) {
      const int number      = warp * 16 + lane / 4 + 8 * r;
      const bool is_row     = number < work.block.left;
      const ScoreRow row    = work.block.template row<rows>(is_row ? number : 0);
      const A sum           = sum_of_four<I>(state.sum[r]);
      const auto total      = total_with_sink(state.max[r] * factor(), sum, data.sink(row) * log2_of_e<A>);
      const bool is_masked  = total.sum == A(0);
      again[r]              = has_nan_in_row<I>(state.result, r, total.factor) && is_row;
      const bool is_written = is_row && !again[r];
      const auto result_of  = [&](A sum_of_values) {
        return is_masked ? data.of_masked_rows : sum_of_values * total.factor;
      };
      if constexpr (Data::has_epilogue) {
        if (is_written) write_by_epilogue(row, r, lane % 4, state, result_of);
      } else {
        write_row_of_sums<I, X>(state.result, r, lane % 4,
                                {is_written ? data.o + row.in(data.o_strides) : nullptr, data.o_strides.dim,
                                 static_cast<int>(data.shape.value_dim), writes_units},
                                result_of);
      }
      if (is_written && lane % 4 == 0) data.store_lse(row, 0, total.lse());
    }
    A* const query = at.again(warp);
    for_marked_rows<I>(again, [&](int r) {
      A* const results = query + data.shape.dim;
      AttentionInTeam<X, Data>{data}.do_row(WarpTeam<I>{lane}, work.block.template row<rows>(warp * 16 + r), 0, query,
                                            results, results + data.shape.value_dim);
    });
  }
  template <class ResultOf>
  KOKKOS_FORCEINLINE_FUNCTION void write_by_epilogue(const ScoreRow& row, int r, int place, const State& state,
                                                     const ResultOf& result_of) const {
    for_sums_of_row(state.result, r, [&](const float& sum, int col) {
      const int d = col + 2 * place;
      if (d < data.shape.value_dim) data.store(row, 0, d, result_of(sum));
    });
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_WARPGROUP_ATTENTION_HPP
