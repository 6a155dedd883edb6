// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_WARPGROUP_ATTENTION_GRADIENTS_HPP
#define KOKKOSNN_IMPL_GPU_WARPGROUP_ATTENTION_GRADIENTS_HPP

#include <KokkosNN/half.hpp>
#include <KokkosNN/impl/attention_shapes.hpp>
#include <KokkosNN/impl/gpu/attention_block.hpp>
#include <KokkosNN/impl/gpu/attention_elements.hpp>
#include <KokkosNN/impl/gpu/attention_gradients.hpp>
#include <KokkosNN/impl/gpu/attention_row_table.hpp>
#include <KokkosNN/impl/gpu/device/warpgroup.hpp>
#include <KokkosNN/impl/gpu/device/warpgroup_sums.hpp>
#include <KokkosNN/impl/gpu/warpgroup_heads.hpp>
#include <KokkosNN/impl/gpu/warpgroup_mask.hpp>
#include <KokkosNN/impl/inputs/attention_tensors.hpp>
#include <KokkosNN/impl/math/exp.hpp>
#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

// Gradients of attention of 16-bit elements on Hopper's warpgroups, in two kernels, whose sums stay in registers and
// are in a fixed order. A team of the first takes a block of queries, and tiles of keys and values pass by: it adds up
// dq. A team of the second takes a block of keys, and tiles of the queries and of dout of all heads that read it pass
// by: it adds up dk and dv. A warp plans and another one loads, ahead of the products, over the ends of blocks, too.
// Two warpgroups multiply, 64 rows of the block each: the products of one run while the other computes probabilities.
//
// Rows of tiles that no row of a block sees are made 0. A row whose results are NaN, as 0 times a NaN or an infinity
// is, is computed again by the kernels of attention_gradients.hpp, whose team is the row's warp.

namespace KokkosNN::Impl {

/// Members that the kernels share: a block has rows of two tensors, and so have the tiles.
template <class T_, int dims_, int tile_rows_, bool has_elements_, class Instructions>
struct GradientsInWarpgroups {
  using X                              = T_;
  using A                              = float;
  using I                              = Instructions;
  using Address                        = typename I::Address;
  using Shape                          = WarpgroupGradientTileFor<dims_, has_elements_>;
  using Row                            = GradientRow<T_, has_elements_>;
  using FindWide                       = FindWidePart<T_, has_elements_>;
  using Heads                          = BoxedHeads<I>;
  static constexpr int dims            = dims_;          ///< elements that heads are padded to
  static constexpr bool has_elements   = has_elements_;  ///< of the mask; without them the scale is positive
  static constexpr int multipliers     = Shape::multipliers;
  static constexpr int rows            = multipliers * warpgroup_rows;
  static constexpr int tile_rows       = tile_rows_;
  static constexpr int team_size       = (multipliers + 1) * warpgroup_threads;
  static constexpr int resident        = 1;
  static constexpr int warps           = multipliers * 4;  ///< that multiply
  static constexpr int blocks          = dims / warpgroup_tile_inner;
  static constexpr int own_block       = rows * warpgroup_row_bytes;
  static constexpr int tile_block      = tile_rows * warpgroup_row_bytes;
  static constexpr int own_bytes       = blocks * own_block;  ///< of a tensor
  static constexpr int tile_bytes      = blocks * tile_block;
  static constexpr int stages          = Shape::stages;
  static constexpr int again_bytes     = int(attention_gradients_scratch(dims, dims, true)) * int(sizeof(A));
  static constexpr int tiles_bytes     = 2 * own_bytes + stages * 2 * tile_bytes;
  static constexpr int works           = 2;
  static constexpr int number_barriers = 3 + 2 * works + 2 * stages;

  AttentionGradientData<X> data;
  Heads q;
  Heads k;
  Heads v;
  Heads dout;
  const Row* table;
  std::int64_t bundle;  ///< of BlockTurns
  bool writes_units;    ///< eight elements of the results can be written at once, and make all of them up

  using Place = RingPlace<stages>;

  /// The tiles and barriers, in scratch.
  struct Scratch {
    char* memory;
    Address begin;
    int barriers_place;

    KOKKOS_FORCEINLINE_FUNCTION Address own(int tensor) const { return begin + tensor * own_bytes; }
    KOKKOS_FORCEINLINE_FUNCTION Address tile(int stage, int tensor) const {
      return begin + 2 * own_bytes + (2 * stage + tensor) * tile_bytes;
    }
    KOKKOS_FORCEINLINE_FUNCTION A* again(int warp) const {
      return reinterpret_cast<A*>(memory + tiles_bytes + warp * again_bytes);
    }
    KOKKOS_FORCEINLINE_FUNCTION Address barrier(int number) const {
      return begin + barriers_place + number * int(sizeof(std::uint64_t));
    }
    KOKKOS_FORCEINLINE_FUNCTION Address own_filled() const { return barrier(0); }
    KOKKOS_FORCEINLINE_FUNCTION Address own_freed() const { return barrier(1); }
    KOKKOS_FORCEINLINE_FUNCTION Address tile_came() const { return barrier(2); }  ///< rows of which become 0
    KOKKOS_FORCEINLINE_FUNCTION Address work_filled(int number) const { return barrier(3 + number); }
    KOKKOS_FORCEINLINE_FUNCTION Address work_freed(int number) const { return barrier(3 + works + number); }
    KOKKOS_FORCEINLINE_FUNCTION Address filled(int stage) const { return barrier(3 + 2 * works + stage); }
    KOKKOS_FORCEINLINE_FUNCTION Address freed(int stage) const { return filled(stages + stage); }
  };
  static constexpr int works_place = tiles_bytes + warps * again_bytes;

  KOKKOS_FORCEINLINE_FUNCTION static void make_barriers(const Scratch& at) {
    I::make_barrier(at.own_filled(), 1);
    I::make_barrier(at.own_freed(), warps);
    I::make_barrier(at.tile_came(), 1);
    for (int n = 0; n < works; ++n) {
      I::make_barrier(at.work_filled(n), 32);
      I::make_barrier(at.work_freed(n), (warps + 1) * 32);
    }
    for (int s = 0; s < stages; ++s) {
      I::make_barrier(at.filled(s), 32);
      I::make_barrier(at.freed(s), warps);
    }
    I::publish_barriers();
  }

  /// Runs plan(scratch, lane) in the warp that plans, load(scratch, lane) in the one that loads, and multiply(scratch,
  /// warp, lane) in those that multiply.
  template <class Member, class Plan, class Load, class Multiply>
  KOKKOS_FORCEINLINE_FUNCTION static void share_out(const Member& team, int used_bytes, int barriers_place,
                                                    const Plan& plan, const Load& load, const Multiply& multiply) {
    char* const memory = static_cast<char*>(
        team.team_scratch(0).get_shmem_aligned(static_cast<std::size_t>(used_bytes), warpgroup_alignment));
    const Scratch at{memory, I::address(memory), barriers_place};
    const int rank = static_cast<int>(team.team_rank()), warp = I::uniform(rank / 32);
    if (rank == 0) make_barriers(at);
    team.team_barrier();
    if (warp < 4) {
      I::template keep_registers<Shape::loading_registers>();
      if (warp == 0) load(at, rank);
      if (warp == 1) plan(at, rank % 32);
    } else {
      I::template take_registers<Shape::registers>();
      multiply(at, warp - 4, rank % 32);
    }
  }

  // --- loading ---

  /// Copies a block's rows of two tensors.
  KOKKOS_FORCEINLINE_FUNCTION static void fetch_own(const Scratch& at, const Heads& first, const Heads& second,
                                                    std::int64_t start, std::int64_t head, std::int64_t number,
                                                    int lane) {
    if (lane != 0) return;
    I::expect(at.own_filled(), 2 * own_bytes);
    first.template fetch<blocks>(at.own(0), own_block, start, head, number, at.own_filled());
    second.template fetch<blocks>(at.own(1), own_block, start, head, number, at.own_filled());
  }
  /// Copies the tiles of two tensors to a stage, and makes rows of both 0 but for those from `begin` to `end`. The
  /// stage's `filled` has had no arrival yet: with all lanes' it publishes what they wrote for the stage.
  KOKKOS_FORCEINLINE_FUNCTION static void fetch_tiles(const Scratch& at, int stage, const Heads& first,
                                                      const Heads& second, std::int64_t start, std::int64_t head,
                                                      std::int64_t number, std::int64_t begin, std::int64_t end,
                                                      int lane, int& came_parity) {
    const bool is_whole   = begin <= 0 && tile_rows <= end;
    const Address barrier = is_whole ? at.filled(stage) : at.tile_came();
    if (lane == 0) {
      I::expect(barrier, 2 * tile_bytes);
      first.template fetch<blocks>(at.tile(stage, 0), tile_block, start, head, number, barrier);
      second.template fetch<blocks>(at.tile(stage, 1), tile_block, start, head, number, barrier);
    } else if (is_whole) {
      I::arrive(barrier);
    }
    if (is_whole) return;
    I::await(barrier, came_parity);
    came_parity ^= 1;
    for (int tensor = 0; tensor < 2; ++tensor) {
      clear_other_rows<I, tile_rows, blocks>(at.tile(stage, tensor), static_cast<int>(begin), static_cast<int>(end),
                                             lane);
    }
    I::publish_tile();
    I::arrive(at.filled(stage));
  }

  /// Sets a row in scratch, whose part of the mask, if it sees a key, is copied from the table: through few registers,
  /// as the warps that load have.
  KOKKOS_FORCEINLINE_FUNCTION static void set_row(Row& to, const AttentionRow& row, [[maybe_unused]] const Row* from) {
    static_cast<AttentionRow&>(to) = row;
    if constexpr (has_elements) {
      if (row.begin < row.end) to.elements = from->elements;
    }
  }

  // --- multiplying ---

  /// products = own rows of a warpgroup by the rows of a tile, both along the heads' elements.
  template <int count>
  KOKKOS_FORCEINLINE_FUNCTION static void multiply_along(float (&products)[count], Address own, Address tile) {
    constexpr int along      = warpgroup_inner * int(sizeof(X));
    const std::uint64_t of_a = warpgroup_tile(own, 0), of_b = warpgroup_tile(tile, 0);
    KOKKOSNN_IMPL_UNROLL
    for (int b = 0; b < blocks; ++b) {
      KOKKOSNN_IMPL_UNROLL
      for (int i = 0; i < warpgroup_row_bytes / along; ++i) {
        I::template product<X, false, false>(products, of_a + ((b * own_block + i * along) >> 4),
                                             of_b + ((b * tile_block + i * along) >> 4), b + i > 0);
      }
    }
  }
  /// sums += weights by the rows of a tile.
  KOKKOS_FORCEINLINE_FUNCTION static void add_rows(float (&sums)[dims / 2], const std::uint32_t* weights,
                                                   Address tile) {
    constexpr int across     = warpgroup_inner * warpgroup_row_bytes;
    const std::uint64_t of_b = warpgroup_tile(tile, tile_block);
    KOKKOSNN_IMPL_UNROLL
    for (int i = 0; i < tile_rows / warpgroup_inner; ++i) {
      I::template product<X, true>(sums, weights + 4 * i, of_b + ((i * across) >> 4), true);
    }
  }
  KOKKOS_FORCEINLINE_FUNCTION static Address own_rows(const Scratch& at, int tensor, int group) {
    return at.own(tensor) + group * warpgroup_rows * warpgroup_row_bytes;
  }
  KOKKOS_FORCEINLINE_FUNCTION static void clear(float (&sums)[dims / 2]) {
    KOKKOSNN_IMPL_UNROLL
    for (int i = 0; i < dims / 2; ++i) sums[i] = 0;
  }
  /// Factor that turns scores, as they are behind the mask, into powers of two.
  KOKKOS_FORCEINLINE_FUNCTION float factor() const { return has_elements ? 1.0f : data.scale * log2_of_e<float>; }

  /// Turns scores into logits times log2(e); under a softcap, whose derivative is a factor, it subtracts delta from the
  /// gradients by weights. lines(sums, f) calls f(row, each) for the lines of those sums, and to_logits(all, lines,
  /// capped) brings in the mask, as TileElements does.
  template <int count, class Lines, class ToLogits>
  KOKKOS_FORCEINLINE_FUNCTION void mask_elements(float (&scores)[count], float (&gradients)[count], const Lines& lines,
                                                 const ToLogits& to_logits) const {
    if (data.elements.softcap != A(0)) {
      lines(gradients,
            [](const Row& row, const auto& each) { each([&](A& gradient, int) { gradient -= row.delta; }); });
    }
    to_logits(
        [&](const auto& f) {
          KOKKOSNN_IMPL_UNROLL
          for (int i = 0; i < count; ++i) f(scores[i], gradients[i]);
        },
        [&](const auto& f) { lines(scores, f); }, [](A t, A& gradient) { gradient *= (A(1) - t) * (A(1) + t); });
  }

  /// Delta of a row, or 0 where mask_elements has subtracted it.
  KOKKOS_FORCEINLINE_FUNCTION float delta_of(const AttentionRow& row) const {
    return has_elements && data.elements.softcap != A(0) ? 0.0f : row.delta;
  }
  /// Gradient of a score, from its probability.
  KOKKOS_FORCEINLINE_FUNCTION static float gradient(float probability, float dprobability, float delta) {
    return probability == 0.0f ? 0.0f : probability * (dprobability - delta);
  }
};

/// dq.
template <class T, int dims_, bool has_elements_, class Instructions = HopperInstructions>
struct AttentionQueryGradientsInWarpgroups
    : GradientsInWarpgroups<T, dims_, WarpgroupGradientTileFor<dims_, has_elements_>::keys, has_elements_,
                            Instructions> {
  using Base = GradientsInWarpgroups<T, dims_, WarpgroupGradientTileFor<dims_, has_elements_>::keys, has_elements_,
                                     Instructions>;
  using Base::data;
  using Base::dims;
  using Base::has_elements;
  using Base::rows;
  using Base::warps;
  using typename Base::A;
  using typename Base::FindWide;
  using typename Base::I;
  using typename Base::Place;
  using typename Base::Row;
  using typename Base::Scratch;
  using typename Base::X;
  static constexpr int keys = Base::tile_rows;

  /// A block of queries, as the planning warp hands it to the others.
  struct Work {
    RowBlock block;  ///< `left` is 0 behind the last one
    SeenTiles keys;
    int all_keys;   ///< of the sequence
    WidePart wide;  ///< of the mask's elements
    Row row[rows];
  };
  static constexpr int barriers_place  = Base::works_place + Base::works * int(sizeof(Work));
  static constexpr int used_bytes      = barriers_place + Base::number_barriers * int(sizeof(std::uint64_t));
  static constexpr std::size_t scratch = used_bytes + warpgroup_alignment;

  template <class Member>
  KOKKOS_FUNCTION void operator()([[maybe_unused]] const Member& team) const {
    if constexpr (I::exist) {
      Base::share_out(
          team, used_bytes, barriers_place,
          [&](const Scratch& at, int lane) { plan(at, team.league_rank(), team.league_size(), lane); },
          [&](const Scratch& at, int lane) { load(at, lane); },
          [&](const Scratch& at, int warp, int lane) { multiply(at, warp, lane); });
    }
  }

 private:
  KOKKOS_FORCEINLINE_FUNCTION static Work& work_at(const Scratch& at, int number) {
    return reinterpret_cast<Work*>(at.memory + Base::works_place)[number];
  }

  KOKKOS_FORCEINLINE_FUNCTION void plan(const Scratch& at, std::int64_t rank, std::int64_t teams, int lane) const {
    RingPlace<Base::works> work;
    const std::int64_t heads = heads_of_rows(data.shape);
    BlockTurns turns(heads, data.shape.head_blocks(rows) / heads, Base::bundle, rank, teams);
    KOKKOSNN_IMPL_NO_UNROLL
    for (; turns.exists(); turns.go_on()) {
      const RowBlock block = head_block<rows>(data, turns.head(), turns.number());
      if (block.left <= 0) continue;
      I::await(at.work_freed(work.stage), work.parity ^ 1);
      describe(work_at(at, work.stage), block, lane);
      I::meet_in_warp();
      I::arrive(at.work_filled(work.stage));
      work = work.next();
    }
    I::await(at.work_freed(work.stage), work.parity ^ 1);
    if (lane == 0) work_at(at, work.stage).block.left = 0;
    I::meet_in_warp();
    I::arrive(at.work_filled(work.stage));
  }
  KOKKOS_FORCEINLINE_FUNCTION void describe(Work& work, const RowBlock& block, int lane) const {
    const Row* const of_block = Base::table + block.template row<rows>(0).in(data.delta_strides);
    SeenKeys seen             = SeenKeys::none();
    FindWide find_wide(data.elements);
    KOKKOSNN_IMPL_NO_UNROLL
    for (int r = lane; r < rows; r += 32) {
      AttentionRow row{0, 0, 0, 0};
      if (r < block.left) {
        row = of_block[r];
        seen.add(row.begin, row.end);
        if constexpr (has_elements) find_wide.add(of_block[r].elements);
      }
      Base::set_row(work.row[r], row, of_block + r);
    }
    seen.template join_lanes<I, 32>();
    const WidePart wide = find_wide.template of_warp<I>();
    if (lane != 0) return;
    work.block              = block;
    const Sequence sequence = data.sequence(block.batch);
    work.all_keys           = static_cast<int>(sequence.keys);
    work.wide               = wide;
    work.keys.set(seen, sequence.first_key, keys);
  }

  KOKKOS_FORCEINLINE_FUNCTION void load(const Scratch& at, int lane) const {
    RingPlace<Base::works> number;
    Place place;
    int own_parity = 1, came_parity = 0;
    KOKKOSNN_IMPL_NO_UNROLL
    for (;; number = number.next()) {
      I::await(at.work_filled(number.stage), number.parity);
      const Work& work      = work_at(at, number.stage);
      const RowBlock& block = work.block;
      const SeenTiles& seen = work.keys;
      if (block.left == 0) break;
      if (seen.tiles > 0) {
        I::await(at.own_freed(), own_parity);
        own_parity ^= 1;
        Base::fetch_own(at, Base::q, Base::dout, block.start, block.head, block.query, lane);
      }
      KOKKOSNN_IMPL_NO_UNROLL
      for (int tile = 0, first = seen.first; tile < seen.tiles; ++tile, first += keys, place = place.next()) {
        I::await(at.freed(place.stage), place.parity ^ 1);
        Base::fetch_tiles(at, place.stage, Base::k, Base::v, seen.start, block.kv_head, first, seen.begin - first,
                          seen.end - first, lane, came_parity);
      }
      I::arrive(at.work_freed(number.stage));
    }
  }

  using Ahead = std::conditional_t<has_elements, MaskAhead<I, X, keys>, NoMask>;
  /// A thread's part of two rows: scores, and behind them probabilities; their gradients; these rounded; dq.
  struct State {
    float score[keys / 2];
    float gradient[keys / 2];
    std::uint32_t rounded[keys / 4];
    float dq[dims / 2];
  };

  KOKKOS_FORCEINLINE_FUNCTION void multiply(const Scratch& at, int warp, int lane) const {
    RingPlace<Base::works> number;
    Place place;
    int own_parity = 0;
    State state;
    KOKKOSNN_IMPL_NO_UNROLL
    for (;; number = number.next()) {
      I::await(at.work_filled(number.stage), number.parity);
      const Work& work = work_at(at, number.stage);
      if (work.block.left == 0) break;
      Base::clear(state.dq);
      if (work.keys.tiles > 0) {
        I::await(at.own_filled(), own_parity);
        own_parity ^= 1;
        add_keys(at, work, warp, lane, place, state);
      }
      write(at, work, warp, lane, state);
      I::arrive(at.work_freed(number.stage));
    }
  }

  KOKKOS_FORCEINLINE_FUNCTION void add_keys(const Scratch& at, const Work& work, int warp, int lane, Place& place,
                                            State& state) const {
    const Row* const rows_at  = work.row + warp * 16 + lane / 4;
    const AttentionRow row[2] = {rows_at[0], rows_at[8]};
    const auto free           = [&](Place of) {
      if (lane == 0) I::arrive(at.freed(of.stage));
    };
    const int tiles = work.keys.tiles;
    int first       = work.keys.first;
    Place before    = place;
    Ahead ahead;
    I::keep(state.dq);
    KOKKOSNN_IMPL_NO_UNROLL
    for (int tile = 0; tile < tiles; ++tile, first += keys) {
      I::await(at.filled(place.stage), place.parity);
      I::keep(state.score);
      I::keep(state.gradient);
      I::open_products();
      Base::multiply_along(state.score, Base::own_rows(at, 0, warp / 4), at.tile(place.stage, 0));
      I::close_products();
      Base::multiply_along(state.gradient, Base::own_rows(at, 1, warp / 4), at.tile(place.stage, 1));
      I::close_products();
      if constexpr (has_elements) {
        ahead.load(first + keys <= work.all_keys ? work.wide : WidePart::nothing, data.elements, rows_at, first,
                   lane % 4);
      }
      I::template await_products<has_elements ? 0 : 1>();
      I::keep(state.score);
      if (tile > 0) free(before);
      if constexpr (has_elements) {
        I::keep(state.gradient);
        mask_elements(work, rows_at, first, lane, ahead, state);
      }
      find_probabilities(work, row, first, lane, state);
      if constexpr (!has_elements) {
        I::template await_products<0>();
        I::keep(state.gradient);
      }
      KOKKOSNN_IMPL_UNROLL
      for (int i = 0; i < keys / 2; ++i) {
        state.gradient[i] = Base::gradient(state.score[i], state.gradient[i], Base::delta_of(row[i / 2 % 2]));
      }
      round_sums<I, X>(state.gradient, state.rounded);
      I::open_products();
      Base::add_rows(state.dq, state.rounded, at.tile(place.stage, 0));
      I::close_products();
      before = place;
      place  = place.next();
    }
    if (lane == 0) I::arrive(at.own_freed());
    I::template await_products<0>();
    I::keep(state.dq);
    free(before);
  }

  KOKKOS_FORCEINLINE_FUNCTION void mask_elements(const Work& work, const Row* row, int first, int lane, Ahead& ahead,
                                                 State& state) const {
    const auto lines = [&](float (&sums)[keys / 2], const auto& f) { for_lines_of_sums(sums, row, lane % 4 * 2, f); };
    Base::mask_elements(state.score, state.gradient, lines, [&](const auto&... parts) {
      ahead.to_logits({data.elements, first, work.keys.end}, data.scale, state.score, lane, parts...);
    });
  }

  KOKKOS_FORCEINLINE_FUNCTION void find_probabilities(const Work& work, const AttentionRow (&row)[2], int first,
                                                      int lane, State& state) const {
    const float scale = Base::factor();
    KOKKOSNN_IMPL_UNROLL
    for (int r = 0; r < 2; ++r) {
      for_sums_of_row(state.score, r,
                      [&](float& score, int) { score = power_of_two(fused_multiply_add(score, scale, -row[r].lse)); });
    }
    if (work.keys.all_begin <= first && first + keys <= work.keys.all_end) return;
    KOKKOSNN_IMPL_UNROLL
    for (int r = 0; r < 2; ++r) {
      const int begin = row[r].begin - first - lane % 4 * 2, end = row[r].end - first - lane % 4 * 2;
      for_sums_of_row(state.score, r, [&](float& score, int col) {
        if (col < begin || col >= end) score = 0;
      });
    }
  }

  KOKKOS_FORCEINLINE_FUNCTION void write(const Scratch& at, const Work& work, int warp, int lane,
                                         const State& state) const {
    const auto row_of = [&](int number) { return work.block.template row<rows>(number); };
    bool again[2];
    KOKKOSNN_IMPL_UNROLL
    for (int r = 0; r < 2; ++r) {
      const int number  = warp * 16 + lane / 4 + 8 * r;
      const bool is_row = number < work.block.left;
      again[r]          = has_nan_in_row<I>(state.dq, r, data.scale) && is_row;
      X* const dq       = data.dq + row_of(is_row ? number : 0).in(data.dq_strides);
      write_row_of_sums<I, X>(state.dq, r, lane % 4,
                              {is_row && !again[r] ? dq : nullptr, data.dq_strides.dim,
                               static_cast<int>(data.shape.dim), Base::writes_units},
                              [&](A sum) { return sum * data.scale; });
    }
    for_marked_rows<I>(again, [&](int r) {
      AttentionQueryGradients<X>{{data}}.do_row(WarpTeam<I>{lane}, row_of(warp * 16 + r), at.again(warp));
    });
  }
};

/// dk and dv.
template <class T, int dims_, bool has_elements_, class Instructions = HopperInstructions>
struct AttentionKeyGradientsInWarpgroups
    : GradientsInWarpgroups<T, dims_, WarpgroupGradientTileFor<dims_, has_elements_>::queries, has_elements_,
                            Instructions> {
  using Base = GradientsInWarpgroups<T, dims_, WarpgroupGradientTileFor<dims_, has_elements_>::queries, has_elements_,
                                     Instructions>;
  using Base::data;
  using Base::dims;
  using Base::has_elements;
  using Base::rows;
  using Base::warps;
  using typename Base::A;
  using typename Base::FindWide;
  using typename Base::I;
  using typename Base::Place;
  using typename Base::Row;
  using typename Base::Scratch;
  using typename Base::X;
  static constexpr int queries = Base::tile_rows;
  static constexpr int stages  = Base::stages;

  /// A block of keys, as the planning warp hands it to the others; and the queries of a tile.
  struct Work {
    typename AttentionData<X>::Block block;  ///< `left` is 0 behind the last one
    int first;                               ///< query that the first tile of a head begins with
    int tiles;                               ///< of a head
  };
  struct Queries {
    Row row[queries];
    alignas(16) int sees_all;  ///< not 0: all queries see all of the block's keys
    WidePart wide;             ///< of the mask's elements
  };
  static constexpr int queries_place   = Base::works_place + Base::works * int(sizeof(Work));
  static constexpr int barriers_place  = queries_place + stages * int(sizeof(Queries));
  static constexpr int used_bytes      = barriers_place + Base::number_barriers * int(sizeof(std::uint64_t));
  static constexpr std::size_t scratch = used_bytes + warpgroup_alignment;
  static_assert(queries_place % 16 == 0 && sizeof(Queries) % 16 == 0);

  template <class Member>
  KOKKOS_FUNCTION void operator()([[maybe_unused]] const Member& team) const {
    if constexpr (I::exist) {
      Base::share_out(
          team, used_bytes, barriers_place,
          [&](const Scratch& at, int lane) { plan(at, team.league_rank(), team.league_size(), lane); },
          [&](const Scratch& at, int lane) { load(at, lane); },
          [&](const Scratch& at, int warp, int lane) { multiply(at, warp, lane); });
    }
  }

 private:
  using Block = typename AttentionData<X>::Block;

  KOKKOS_FORCEINLINE_FUNCTION static Work& work_at(const Scratch& at, int number) {
    return reinterpret_cast<Work*>(at.memory + Base::works_place)[number];
  }
  KOKKOS_FORCEINLINE_FUNCTION static Queries& queries_at(const Scratch& at, int stage) {
    return reinterpret_cast<Queries*>(at.memory + queries_place)[stage];
  }

  KOKKOS_FORCEINLINE_FUNCTION void plan(const Scratch& at, std::int64_t rank, std::int64_t teams, int lane) const {
    RingPlace<Base::works> number;
    const std::int64_t blocks = data.shape.blocks(true, rows);
    BlockTurns turns(data.shape.block_heads(), blocks, Base::bundle, rank, teams);
    KOKKOSNN_IMPL_NO_UNROLL
    for (; turns.exists(); turns.go_on()) {
      const Block block = data.block(turns.head() * blocks + turns.number(), true, rows);
      if (block.left <= 0) continue;
      const QueryRange range = queries_that_see(data, block.sequence, block.first, rows);
      const auto first       = static_cast<int>(range.begin / queries * queries);
      const bool has_queries = range.begin < range.end;
      I::await(at.work_freed(number.stage), number.parity ^ 1);
      if (lane == 0) {
        work_at(at, number.stage) = {block, first,
                                     has_queries ? static_cast<int>((range.end - first + queries - 1) / queries) : 0};
      }
      I::meet_in_warp();
      I::arrive(at.work_filled(number.stage));
      number = number.next();
    }
    I::await(at.work_freed(number.stage), number.parity ^ 1);
    if (lane == 0) work_at(at, number.stage).block.left = 0;
    I::meet_in_warp();
    I::arrive(at.work_filled(number.stage));
  }

  KOKKOS_FORCEINLINE_FUNCTION void load(const Scratch& at, int lane) const {
    RingPlace<Base::works> number;
    Place place;
    int own_parity = 1, came_parity = 0;
    KOKKOSNN_IMPL_NO_UNROLL
    for (;; number = number.next()) {
      I::await(at.work_filled(number.stage), number.parity);
      const Work& work   = work_at(at, number.stage);
      const Block& block = work.block;
      if (block.left == 0) break;
      if (work.tiles > 0) {
        I::await(at.own_freed(), own_parity);
        own_parity ^= 1;
        Base::fetch_own(at, Base::k, Base::v, block.sequence.first_key, block.kv_head, block.first, lane);
      }
      const std::int64_t group = data.shape.group(), first_head = block.kv_head * group;
      const int tiles = work.tiles, all_tiles = tiles * static_cast<int>(group);
      KOKKOSNN_IMPL_NO_UNROLL
      for (int n = 0; n < all_tiles; ++n, place = place.next()) {
        load_queries(at, place, block, first_head + n / tiles, work.first + n % tiles * queries, lane, came_parity);
      }
      I::arrive(at.work_freed(number.stage));
    }
  }
  KOKKOS_FORCEINLINE_FUNCTION void load_queries(const Scratch& at, const Place& place, const Block& block,
                                                std::int64_t head, std::int64_t first, int lane,
                                                int& came_parity) const {
    const Sequence& sequence = block.sequence;
    const std::int64_t left  = sequence.queries - first;
    const Row* const of_tile =
        Base::table + ScoreRow{sequence.batch, head, first, sequence.first_query}.in(data.delta_strides);
    AttentionRow row[queries / 32];
    bool sees_all = true;
    FindWide find_wide(data.elements);
    KOKKOSNN_IMPL_UNROLL
    for (int i = 0; i < queries / 32; ++i) {
      const int n = lane + 32 * i;
      row[i]      = {0, 0, 0, 0};
      if (n < left) {
        row[i] = of_tile[n];
        if constexpr (has_elements) find_wide.add(of_tile[n].elements);
      }
      sees_all = sees_all && row[i].begin <= block.first && block.first + rows <= row[i].end;
    }
    const bool all_see_all = !I::any(!sees_all);
    const WidePart wide    = block.first + rows <= sequence.keys ? find_wide.template of_warp<I>() : WidePart::nothing;
    I::await(at.freed(place.stage), place.parity ^ 1);
    Queries& tile = queries_at(at, place.stage);
    KOKKOSNN_IMPL_UNROLL
    for (int i = 0; i < queries / 32; ++i) {
      const int n = lane + 32 * i;
      Base::set_row(tile.row[n], row[i], of_tile + n);
    }
    if (lane == 0) {
      tile.sees_all = all_see_all ? 1 : 0;
      tile.wide     = wide;
    }
    Base::fetch_tiles(at, place.stage, Base::q, Base::dout, sequence.first_query, head, first, 0, left, lane,
                      came_parity);
  }

  /// A thread's part of two keys: scores, and behind them probabilities; their gradients; these rounded; dk and dv.
  struct State {
    float score[queries / 2];
    float gradient[queries / 2];
    std::uint32_t probability[queries / 4];
    std::uint32_t rounded[queries / 4];
    float dk[dims / 2];
    float dv[dims / 2];
  };

  KOKKOS_FORCEINLINE_FUNCTION void multiply(const Scratch& at, int warp, int lane) const {
    RingPlace<Base::works> number;
    Place place;
    int own_parity = 0;
    State state;
    KOKKOSNN_IMPL_NO_UNROLL
    for (;; number = number.next()) {
      I::await(at.work_filled(number.stage), number.parity);
      const Work& work = work_at(at, number.stage);
      if (work.block.left == 0) break;
      Base::clear(state.dk);
      Base::clear(state.dv);
      if (work.tiles > 0) {
        I::await(at.own_filled(), own_parity);
        own_parity ^= 1;
        add_queries(at, work, warp, lane, place, state);
      }
      write(at, work, warp, lane, state);
      I::arrive(at.work_freed(number.stage));
    }
  }

  KOKKOS_FORCEINLINE_FUNCTION void add_queries(const Scratch& at, const Work& work, int warp, int lane, Place& place,
                                               State& state) const {
    const int tiles = work.tiles * static_cast<int>(data.shape.group());
    const int key   = static_cast<int>(work.block.first) + warp * 16 + lane / 4;
    I::keep(state.dk);
    I::keep(state.dv);
    KOKKOSNN_IMPL_NO_UNROLL
    for (int tile = 0; tile < tiles; ++tile) {
      I::await(at.filled(place.stage), place.parity);
      I::keep(state.score);
      I::keep(state.gradient);
      I::open_products();
      Base::multiply_along(state.score, Base::own_rows(at, 0, warp / 4), at.tile(place.stage, 0));
      I::close_products();
      Base::multiply_along(state.gradient, Base::own_rows(at, 1, warp / 4), at.tile(place.stage, 1));
      I::close_products();
      const Queries& of_tile = queries_at(at, place.stage);
      I::template await_products<has_elements ? 0 : 1>();
      I::keep(state.score);
      if constexpr (has_elements) {
        I::keep(state.gradient);
        mask_elements(work, of_tile, key, lane, state);
      }
      find_probabilities(of_tile, key, lane, state);
      round_sums<I, X>(state.score, state.probability);
      I::open_products();
      Base::add_rows(state.dv, state.probability, at.tile(place.stage, 1));
      I::close_products();
      if constexpr (!has_elements) {
        I::template await_products<1>();
        I::keep(state.gradient);
      }
      find_gradients(of_tile, lane, state);
      round_sums<I, X>(state.gradient, state.rounded);
      I::open_products();
      Base::add_rows(state.dk, state.rounded, at.tile(place.stage, 0));
      I::close_products();
      I::template await_products<0>();  // registers do not suffice for what runs and the next tile's scores
      I::keep(state.dk);
      I::keep(state.dv);
      if (lane == 0) I::arrive(at.freed(place.stage));
      place = place.next();
    }
    if (lane == 0) I::arrive(at.own_freed());
  }

  KOKKOS_FORCEINLINE_FUNCTION void mask_elements(const Work& work, const Queries& tile, int key, int lane,
                                                 State& state) const {
    const auto lines = [&](float (&sums)[queries / 2], const auto& f) {
      for_queries(lane, [&](int query, int i) {
        f(tile.row[query], [&](const auto& g) {
          KOKKOSNN_IMPL_UNROLL
          for (int r = 0; r < 2; ++r) g(sums[i + 2 * r], key + 8 * r);
        });
      });
    };
    using Wide = MaskOfKeys<I, X, queries>;
    Base::mask_elements(state.score, state.gradient, lines, [&](const auto&... parts) {
      to_logits_with(
          tile.wide, TileElements<X, A>{data.elements, 0, work.block.sequence.keys}, data.scale, parts...,
          [&] { Wide::add_bias(data.elements, tile.row, key - lane / 4, lane, state.score); },
          [&] { Wide::rule_out(data.elements, tile.row, key - lane / 4, lane, state.score); });
    });
  }

  KOKKOS_FORCEINLINE_FUNCTION void find_probabilities(const Queries& tile, int key, int lane, State& state) const {
    const float scale = Base::factor();
    for_queries(lane, [&](int query, int i) {
      const float lse = tile.row[query].lse;
      KOKKOSNN_IMPL_UNROLL
      for (int r = 0; r < 2; ++r) {
        float& score = state.score[i + 2 * r];
        score        = power_of_two(fused_multiply_add(score, scale, -lse));
      }
    });
    if (tile.sees_all != 0) return;  // a pass of its own: nvcc would otherwise branch for each score
    for_queries(lane, [&](int query, int i) {
      const int begin = tile.row[query].begin, end = tile.row[query].end;
      KOKKOSNN_IMPL_UNROLL
      for (int r = 0; r < 2; ++r) {
        if (key + 8 * r < begin || key + 8 * r >= end) state.score[i + 2 * r] = 0;
      }
    });
  }
  KOKKOS_FORCEINLINE_FUNCTION void find_gradients(const Queries& tile, int lane, State& state) const {
    for_queries(lane, [&](int query, int i) {
      const float delta = Base::delta_of(tile.row[query]);
      KOKKOSNN_IMPL_UNROLL
      for (int r = 0; r < 2; ++r) {
        state.gradient[i + 2 * r] = Base::gradient(state.score[i + 2 * r], state.gradient[i + 2 * r], delta);
      }
    });
  }
  /// Calls f(query of a tile, number of the first key's score) for a thread's queries.
  template <class F>
  KOKKOS_FORCEINLINE_FUNCTION static void for_queries(int lane, const F& f) {
    KOKKOSNN_IMPL_UNROLL
    for (int j = 0; j < queries / 8; ++j) {
      KOKKOSNN_IMPL_UNROLL
      for (int c = 0; c < 2; ++c) f(8 * j + lane % 4 * 2 + c, 4 * j + c);
    }
  }

  KOKKOS_FORCEINLINE_FUNCTION void write(const Scratch& at, const Work& work, int warp, int lane,
                                         const State& state) const {
    const Block& block = work.block;
    const auto key_of  = [&](int number) {
      return data.key_of_head(block.sequence, block.kv_head, block.first + number);
    };
    const auto write_to = [&](const float (&sums)[dims / 2], int r, X* to, const AttentionStrides& strides,
                              std::int64_t count, A factor) {
      write_row_of_sums<I, X>(sums, r, lane % 4, {to, strides.dim, static_cast<int>(count), Base::writes_units},
                              [&](A sum) { return sum * factor; });
    };
    bool again[2];
    KOKKOSNN_IMPL_UNROLL
    for (int r = 0; r < 2; ++r) {
      const int number   = warp * 16 + lane / 4 + 8 * r;
      const bool is_key  = number < block.left;
      const bool is_nan  = has_nan_in_row<I>(state.dk, r, data.scale);
      again[r]           = (has_nan_in_row<I>(state.dv, r, 1) || is_nan) && is_key;
      const ScoreRow key = key_of(is_key ? number : 0);
      const bool writes  = is_key && !again[r];
      write_to(state.dk, r, writes ? data.dk + key.in(data.dk_strides) : nullptr, data.dk_strides, data.shape.dim,
               data.scale);
      write_to(state.dv, r, writes ? data.dv + key.in(data.dv_strides) : nullptr, data.dv_strides, data.shape.value_dim,
               1);
    }
    for_marked_rows<I>(again, [&](int r) {
      AttentionKeyGradients<X>{{data}}.do_key(WarpTeam<I>{lane}, key_of(warp * 16 + r), at.again(warp));
    });
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_WARPGROUP_ATTENTION_GRADIENTS_HPP
