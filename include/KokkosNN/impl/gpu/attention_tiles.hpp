// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_ATTENTION_TILES_HPP
#define KOKKOSNN_IMPL_GPU_ATTENTION_TILES_HPP

#include <KokkosNN/impl/attention_shapes.hpp>
#include <KokkosNN/impl/gpu/attention.hpp>
#include <KokkosNN/impl/gpu/attention_block.hpp>
#include <KokkosNN/impl/gpu/attention_elements.hpp>
#include <KokkosNN/impl/gpu/attention_kept.hpp>
#include <KokkosNN/impl/gpu/device/barriers.hpp>
#include <KokkosNN/impl/gpu/device/matrix_unit.hpp>
#include <KokkosNN/impl/gpu/device/scratch_rows.hpp>
#include <KokkosNN/impl/gpu/device/tile_products.hpp>
#include <KokkosNN/impl/inputs/attention_tensors.hpp>
#include <KokkosNN/impl/math/exp.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

// Attention on a matrix unit. A team takes a block of rows of scores, a warp some of them; tiles of keys and values
// pass by through team scratch, the next one's copies in flight while this one is multiplied. Scores become weights in
// the registers of the accumulators, which are the left operand of the product with the values. Logits are powers of
// two, relative to a reference a row, which follows the row's maximum once that has grown by a factor of 2^8. Tiles
// begin at multiples of their length, so a row's bits do not depend on the rows beside it.
//
// Where there are few rows, the warps of a team share out a tile's keys in place of the rows, and join their sums at
// the end, in order.
//
// A key of weight 0 must add nothing, but 0 times a NaN or an infinity does. So a row whose results are NaN is computed
// again, key by key, by AttentionInTeam.

namespace KokkosNN::Impl {

template <class Unit, int dims>
struct AttentionTileOf {
  using type = AttentionTileFor<int(sizeof(typename Unit::Element)), matrix_unit_kind<Unit>, dims>;
};

template <class Unit_, int dims_, bool has_elements_, class Data = AttentionData<typename Unit_::Element>,
          bool shares_keys_ = false>
struct AttentionInTiles {
  using Unit                = Unit_;
  using X                   = typename Unit::Element;
  using A                   = typename Unit::Accumulated;
  using Address             = typename Unit::Address;
  using Tile                = typename std::conditional_t<shares_keys_, std::type_identity<FewRowsTileFor<dims_>>,
                                                          AttentionTileOf<Unit, dims_>>::type;
  using Row                 = TeamRow<X, has_elements_>;
  static constexpr int dims = dims_;  ///< elements that q, k and v are padded to
  static constexpr bool has_elements  = has_elements_;
  static constexpr bool shares_keys   = shares_keys_;  ///< among warps
  static constexpr int keys           = Tile::keys;
  static constexpr int team_size      = Tile::warps * Unit::lanes;
  static constexpr int resident       = Tile::resident;
  static constexpr int warp_rows      = Tile::row_tiles * 16;
  static constexpr int rows           = shares_keys ? warp_rows : Tile::warps * warp_rows;
  static constexpr int own_keys       = shares_keys ? keys / Tile::warps : keys;  ///< of a warp
  static constexpr int row_bytes      = dims * int(sizeof(X));
  static constexpr int keys_bytes     = keys * row_bytes;
  static constexpr int stage_bytes    = 2 * keys_bytes;
  static constexpr int stages_bytes   = Tile::stages * stage_bytes;
  static constexpr int queries_bytes  = rows * row_bytes;
  static constexpr bool keeps_queries = Tile::keeps_queries;
  static constexpr bool in_pieces     = keeps_queries && Tile::stages == 1;  ///< queries ahead of all keys
  /// Queries that stay in registers pass through the second stage, or, if they are few, have a place of their own.
  static constexpr int queries_place   = keeps_queries && !shares_keys ? stage_bytes : stages_bytes;
  static constexpr int tiles_bytes     = stages_bytes + (keeps_queries && !shares_keys ? 0 : queries_bytes);
  static constexpr int table_bytes     = rows * int(sizeof(Row));
  static constexpr int used_bytes      = tiles_bytes + table_bytes + int(sizeof(RowBlock)) + RowsAgain<rows>::bytes;
  static constexpr std::size_t scratch = used_bytes + tile_alignment;
  static_assert(!keeps_queries || Tile::stages == 1 || shares_keys ||
                (Tile::stages == 2 && queries_bytes <= stage_bytes));
  static_assert(Unit::lanes == 64 || queries_bytes <= tiles_bytes, "results leave through scratch");
  static_assert(attention_scratch(dims, dims) * int(sizeof(A)) <= tiles_bytes);

  Data data;
  bool copies_q;  ///< asynchronously, by 16 bytes
  bool copies_k;
  bool copies_v;

  template <class Member>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(const Member& team) const {
    constexpr int bytes = used_bytes;  // taken by reference
    char* const memory  = static_cast<char*>(team.team_scratch(0).get_shmem_aligned(bytes, tile_alignment));
    for_team_blocks(
        team, data.blocks(false, rows), reinterpret_cast<RowBlock*>(memory + tiles_bytes + table_bytes),
        [&](std::int64_t n) { return row_block<rows>(data, n); },
        [&](const RowBlock& block) { do_block(team, block, memory); });
  }

 private:
  static constexpr int row_tiles = Tile::row_tiles;
  static constexpr int per_chunk = chunk_bytes / int(sizeof(X));
  static constexpr A threshold   = 8;

  using Products  = TileProducts<Unit, dims, row_tiles, own_keys>;
  using Scores    = typename Products::Scores;
  using Undropped = KeptScores<Unit, row_tiles, own_keys>;
  struct State {
    typename Unit::A query[keeps_queries ? row_tiles : 1][keeps_queries ? Products::steps : 1];
    typename Products::Sums result;
    A reference[row_tiles][Unit::rows];
    A sum[row_tiles][Unit::rows];  ///< of this thread's columns
  };

  KOKKOS_FORCEINLINE_FUNCTION static int lane_of(int rank) { return rank % Unit::lanes; }
  KOKKOS_FORCEINLINE_FUNCTION static int first_row_of(int rank) {
    return shares_keys ? 0 : rank / Unit::lanes * warp_rows;
  }
  KOKKOS_FORCEINLINE_FUNCTION static int first_key_of(int rank) {
    return shares_keys ? rank / Unit::lanes * own_keys : 0;
  }
  KOKKOS_FORCEINLINE_FUNCTION static Row* rows_at(char* memory) { return reinterpret_cast<Row*>(memory + tiles_bytes); }
  KOKKOS_FORCEINLINE_FUNCTION static RowsAgain<rows> again_at(char* memory) {
    return RowsAgain<rows>(memory + tiles_bytes + table_bytes + sizeof(RowBlock));
  }

  template <class Member>
  KOKKOS_FORCEINLINE_FUNCTION void do_block(const Member& team, const RowBlock& block, char* memory) const {
    const int rank = static_cast<int>(team.team_rank());
    fill_rows<rows, has_elements>(rows_at(memory), data, block, rank, team_size);
    again_at(memory).clear(rank, team_size);
    team.team_barrier();
    State state;
    add_keys(team, block, memory, state);
    if constexpr (shares_keys) join_warps(team, reinterpret_cast<A*>(memory), state);
    write(team, block, memory, anew(rank), state);
    team.team_barrier();
    again_at(memory).for_each(team,
                              [&](int r) { do_row_again(team, block.template row<rows>(r), block.part, memory); });
  }

  // --- tiles ---

  KOKKOS_FORCEINLINE_FUNCTION const X* query(const RowBlock& block, int r) const {
    return r < block.left ? data.q + block.template row<rows>(r).in(data.q_strides) : nullptr;
  }
  KOKKOS_FORCEINLINE_FUNCTION RowElements q_elements() const { return {data.shape.dim, data.q_strides.dim, copies_q}; }

  KOKKOS_FORCEINLINE_FUNCTION void fetch_queries(Address to, const RowBlock& block, int rank) const {
    if constexpr (has_chunk_copies<Unit>) {
      const std::int64_t there = Kokkos::min<std::int64_t>(rows, block.left);
      if (copies_q && data.shape.dim % per_chunk == 0 && block.is_of_one_head(there)) {
        return ChunkCopies<Unit, TileUse::along, rows, row_bytes, team_size>::copy_one(
            to, query(block, 0), data.q_strides.sequence, there, data.shape.dim, rank);
      }
    }
    ScratchRows<Unit, TileUse::along, rows, row_bytes, team_size>::fetch(
        to, [&](int r) { return query(block, r); }, q_elements(), data.q, rank);
  }
  /// A head's keys and values on their way to scratch, tile by tile; those that no row of the block sees are zeros.
  struct KeysToScratch {
    const X* k;
    const X* v;
    SeenKeys seen;
    bool by_chunks = false;  ///< by the copies, else by ScratchRows
    TilePairCopies<Unit, TileUse::along, TileUse::across, keys, row_bytes, team_size> chunks;

    KOKKOS_FORCEINLINE_FUNCTION void fetch(const AttentionInTiles& call, Address to, std::int64_t first, int rank) {
      if constexpr (has_chunk_copies<Unit>) {
        if (by_chunks) return chunks.copy(to, in_tile<keys>(seen.begin - first), in_tile<keys>(seen.end - first), rank);
      }
      const AttentionShape& shape = call.data.shape;
      using K                     = ScratchRows<Unit, TileUse::along, keys, row_bytes, team_size>;
      using V                     = ScratchRows<Unit, TileUse::across, keys, row_bytes, team_size>;
      const auto k_rows           = tile_rows_of<keys>(k, call.data.k_strides.sequence, first, seen.begin, seen.end);
      const auto v_rows           = tile_rows_of<keys>(v, call.data.v_strides.sequence, first, seen.begin, seen.end);
      const RowElements of_k{shape.dim, call.data.k_strides.dim, call.copies_k};
      const RowElements of_v{shape.value_dim, call.data.v_strides.dim, call.copies_v};
      K::fetch_others(to, k_rows, of_k, call.data.k, rank);
      V::fetch_others(to + keys_bytes, v_rows, of_v, call.data.v, rank);
    }
  };
  KOKKOS_FORCEINLINE_FUNCTION KeysToScratch keys_to_scratch(const RowBlock& block, const SeenKeys& seen,
                                                            std::int64_t first, int rank) const {
    const ScoreRow head = data.key_of_head(data.sequence(block.batch), block.kv_head, 0);
    KeysToScratch to{data.k + head.in(data.k_strides), data.v + head.in(data.v_strides), seen};
    if constexpr (has_chunk_copies<Unit>) {
      to.by_chunks = copies_k && copies_v && data.shape.dim % per_chunk == 0 && data.shape.value_dim % per_chunk == 0;
      to.chunks.start({to.k, data.k_strides.sequence, data.shape.dim},
                      {to.v, data.v_strides.sequence, data.shape.value_dim}, first, rank);
    }
    return to;
  }

  template <class Member>
  KOKKOS_FORCEINLINE_FUNCTION void add_keys(const Member& team, const RowBlock& block, char* memory,
                                            State& state) const {
    const int rank       = static_cast<int>(team.team_rank());
    const Address tiles  = Unit::address(memory);
    const Row* const all = rows_at(memory);
    const int own        = first_row_of(rank);
    const SeenKeys seen  = keys_of_rows<Unit>(all, 0, Kokkos::min<std::int64_t>(rows, block.left), lane_of(rank));
    const SeenKeys warp =
        keys_of_rows<Unit>(all, own, Kokkos::min<std::int64_t>(own + warp_rows, block.left), lane_of(rank));
    const KeyTiles<keys> all_tiles{seen.begin / keys * keys, seen.end};
    KeysToScratch to_scratch = keys_to_scratch(block, seen, all_tiles.first, rank);
    start(state);
    if constexpr (in_pieces) {
      using Queries = KeptRows<Unit, dims, row_tiles, Tile::warps, 2 * keys>;
      Queries::load(team, tiles, [&](int r) { return query(block, r); }, q_elements(), data.q, state.query);
    } else {
      fetch_queries(tiles + queries_place, block, anew(rank));
      if constexpr (shares_keys) Unit::commit();
    }
    to_scratch.fetch(*this, tiles, all_tiles.first, anew(rank));
    Unit::commit();
    if constexpr (keeps_queries && !in_pieces) {
      Unit::template wait<shares_keys ? 1 : 0>();
      team.team_barrier();
      keep_queries(tiles + queries_place, rank, state);
    }
    pass_tiles<Unit, Tile::stages>(
        team, all_tiles,
        [&](const KeyTiles<keys>& tile, int stage) {
          to_scratch.fetch(*this, tiles + stage * stage_bytes, tile.first, anew(rank));
        },
        [&](const KeyTiles<keys>& tile, int stage) {
          const int own_key = first_key_of(rank);
          if (!warp.meets(tile.first + own_key, own_keys)) return;
          add_tile(tiles, tiles + stage * stage_bytes + own_key * row_bytes, all, warp, tile.first + own_key,
                   anew(rank), state);
        });
  }

  KOKKOS_FORCEINLINE_FUNCTION static void start(State& state) {
    Products::for_rows([&](int t, int r) {
      state.reference[t][r] = -Kokkos::Experimental::infinity_v<A>;
      state.sum[t][r]       = 0;
    });
    Products::clear(state.result);
  }

  KOKKOS_FORCEINLINE_FUNCTION static void keep_queries(Address queries, int rank, State& state) {
    KOKKOSNN_IMPL_UNROLL
    for (int t = 0; t < row_tiles; ++t) {
      KOKKOSNN_IMPL_UNROLL
      for (int i = 0; i < Products::steps; ++i) {
        state.query[t][i] =
            Unit::template load_a<row_bytes>(queries, first_row_of(rank) + t * 16, i * Unit::K, lane_of(rank));
      }
    }
  }

  // --- a tile of keys ---

  KOKKOS_FORCEINLINE_FUNCTION void add_tile(Address tiles, Address stage, const Row* all, const SeenKeys& warp,
                                            std::int64_t first, int rank, State& state) const {
    Undropped kept;
    if constexpr (has_elements) find_kept(all, first, rank, kept);
    Scores scores;
    multiply_queries(tiles + queries_place, stage, rank, scores, state);
    if constexpr (has_elements) mask_elements(all, first, warp.end, rank, scores);
    const bool is_negative = !has_elements && data.scale < A(0), is_cut = !warp.has_all(first, own_keys);
    if (is_negative || is_cut) {  // one branch for both: tensor cores wait for it
      if (is_negative) negate(scores);
      if (is_cut) mask_ranges(all, first, rank, scores);
    }
    follow_maxima(scores, state);
    weigh(lane_of(rank), scores, state);
    if constexpr (has_elements) {
      if (data.elements.dropout.exists()) kept.apply(A(1), scores);  // the others' factor is that of the results
    }
    Products::add(state.result, scores, stage + keys_bytes, lane_of(rank));
  }

  KOKKOS_FORCEINLINE_FUNCTION static void multiply_queries(Address queries, Address key_tile, int rank, Scores& scores,
                                                           const State& state) {
    if constexpr (keeps_queries) {
      Products::multiply(scores, [&](int t, int i) { return state.query[t][i]; }, key_tile, lane_of(rank));
    } else {
      Products::multiply(scores, queries, first_row_of(rank), key_tile, lane_of(rank));
    }
  }

  KOKKOS_FORCEINLINE_FUNCTION static void negate(Scores& scores) {
    Products::for_rows(
        [&](int t, int r) { Products::for_columns(scores, t, r, 0, [](A& score, int) { score = -score; }); });
  }

  KOKKOS_FORCEINLINE_FUNCTION static void mask_ranges(const Row* all, std::int64_t first, int rank, Scores& scores) {
    const int lane = lane_of(rank);
    Products::for_rows([&](int t, int r) {
      const Row& row  = all[first_row_of(rank) + t * 16 + Unit::row_of(r, lane)];
      const int begin = in_tile<own_keys>(row.begin - first), end = in_tile<own_keys>(row.end - first);
      Products::for_columns(scores, t, r, lane, [&](A& score, int col) {
        if (col < begin || col >= end) score = -Kokkos::Experimental::infinity_v<A>;
      });
    });
  }

  /// Turns scores into logits times log2(e).
  KOKKOS_FORCEINLINE_FUNCTION void mask_elements(const Row* all, std::int64_t first, std::int64_t end, int rank,
                                                 Scores& scores) const {
    const int lane = lane_of(rank), own = first_row_of(rank);
    TileElements<X, A>{data.elements, first, end}.to_logits(
        data.scale,
        [&](const auto& f) {
          Products::for_rows(
              [&](int t, int r) { Products::for_columns(scores, t, r, 0, [&](A& score, int) { f(score); }); });
        },
        [&](const auto& f) {
          Products::for_rows([&](int t, int r) {
            f(all[own + t * 16 + Unit::row_of(r, lane)],
              [&](const auto& g) { Products::for_columns(scores, t, r, lane, g); });
          });
        },
        [](A) {});
  }

  /// Factor that turns scores, as they are behind the mask, into powers of two.
  KOKKOS_FORCEINLINE_FUNCTION A factor() const { return has_elements ? A(1) : Kokkos::abs(data.scale) * log2_of_e<A>; }

  KOKKOS_FORCEINLINE_FUNCTION void follow_maxima(Scores& scores, State& state) const {
    A reference[row_tiles][Unit::rows];
    bool has_moved = false;
    Products::for_rows([&](int t, int r) {
      A max = -Kokkos::Experimental::infinity_v<A>;
      Products::for_columns(scores, t, r, 0, [&](A& score, int) { max = Kokkos::fmax(max, score); });
      max             = Unit::row_max(max);
      const A before  = state.reference[t][r];
      const bool grew = (max - before) * factor() > threshold;
      reference[t][r] = grew ? max : before;
      has_moved       = has_moved || grew;
    });
    if (!Unit::any(has_moved)) return;
    Products::for_rows([&](int t, int r) {
      const bool moved      = reference[t][r] != state.reference[t][r];
      const A rescaling     = moved ? power_of_two((state.reference[t][r] - reference[t][r]) * factor()) : A(1);
      state.reference[t][r] = reference[t][r];
      state.sum[t][r] *= rescaling;
      Products::for_sums(state.result, t, r, 0, [&](A& result, int) { result *= rescaling; });
    });
  }

  /// Turns scores into weights.
  KOKKOS_FORCEINLINE_FUNCTION void weigh(int lane, Scores& scores, State& state) const {
    const A scale = factor();
    Products::for_rows([&](int t, int r) {
      const A shift = -finite_reference(state.reference[t][r]) * scale;
      Products::for_columns(scores, t, r, lane, [&](A& score, int) {
        score = power_of_two(fused_multiply_add(score, scale, shift));
        state.sum[t][r] += score;
      });
    });
  }

  /// Finds the weights that dropout keeps, ahead of the scores: the generator would spill these.
  KOKKOS_FORCEINLINE_FUNCTION void find_kept(const Row* all, std::int64_t first, int rank, Undropped& kept) const {
    if (!data.elements.dropout.exists()) return;
    const int lane = lane_of(rank), own = first_row_of(rank);
    kept.find_in_rows(data.elements.dropout, first, lane,
                      [&](int t, int r) { return all[own + t * 16 + Unit::row_of(r, lane)].elements.dropout; });
  }

  // --- warps that share keys ---

  /// Joins the sums of a team's warps in the first one, which a thread's lie in like places of.
  template <class Member>
  KOKKOS_FORCEINLINE_FUNCTION void join_warps(const Member& team, A* memory, State& state) const {
    constexpr int count = row_tiles * Unit::rows * (2 + dims / 16 * Unit::cols);
    static_assert((Tile::warps - 1) * count * Unit::lanes * int(sizeof(A)) <= tiles_bytes);
    const int rank = static_cast<int>(team.team_rank()), warp = rank / Unit::lanes;
    const auto place_of = [&](int of_warp) { return memory + ((of_warp - 1) * count) * Unit::lanes + lane_of(rank); };
    team.team_barrier();  // nobody reads the tiles any more
    if (warp > 0) {
      A* to = place_of(warp);
      for_values(state, [&](A& value) {
        *to = value;
        to += Unit::lanes;
      });
    }
    team.team_barrier();
    if (warp > 0) return;
    KOKKOSNN_IMPL_NO_UNROLL
    for (int other = 1; other < Tile::warps; ++other) join(place_of(other), state);
  }
  template <class F>
  KOKKOS_FORCEINLINE_FUNCTION static void for_values(State& state, const F& f) {
    Products::for_rows([&](int t, int r) {
      f(state.reference[t][r]);
      f(state.sum[t][r]);
      Products::for_sums(state.result, t, r, 0, [&](A& result, int) { f(result); });
    });
  }
  KOKKOS_FORCEINLINE_FUNCTION void join(const A* from, State& state) const {
    const auto next = [&] {
      const A value = *from;
      from += Unit::lanes;
      return value;
    };
    Products::for_rows([&](int t, int r) {
      const A other     = next();
      const A reference = Kokkos::fmax(state.reference[t][r], other), finite = finite_reference(reference);
      const A of_this       = power_of_two((state.reference[t][r] - finite) * factor());
      const A of_other      = power_of_two((other - finite) * factor());
      state.reference[t][r] = reference;
      state.sum[t][r]       = state.sum[t][r] * of_this + next() * of_other;
      Products::for_sums(state.result, t, r, 0, [&](A& result, int) { result = result * of_this + next() * of_other; });
    });
  }

  // --- results ---

  using Through = SumsThroughScratch<Unit, dims, row_tiles, Tile::warps>;
  using Total   = AttentionTotal<A>;

  template <class Member>
  KOKKOS_FORCEINLINE_FUNCTION void write(const Member& team, const RowBlock& block, char* memory, int rank,
                                         State& state) const {
    if (shares_keys && rank >= Unit::lanes) return;
    if constexpr (has_chunk_copies<Unit> && !shares_keys) {
      write_rows(team, block, memory, rank, state);
    } else {
      end_rows(block, memory, rank, state, [&](int t, int r, const ScoreRow& row, const Total& total) {
        write_row(row, block.part, lane_of(rank), state, t, r, total);
      });
    }
  }
  // No lambdas: nvcc makes functions of large ones, and keeps what they capture in memory.
  KOKKOS_FORCEINLINE_FUNCTION void write_row(const ScoreRow& row, std::int64_t part, int lane, const State& state,
                                             int t, int r, const Total& total) const {
    const bool is_masked = total.sum == A(0);
    const A factor       = factor_of(total);
    Products::for_sums(state.result, t, r, lane, [&](const A& result, int d) {
      if (d < data.shape.value_dim) data.store(row, part, d, is_masked ? data.of_masked_rows : result * factor);
    });
  }
  KOKKOS_FORCEINLINE_FUNCTION void write_row(const ScoreRow& row, std::int64_t part, int lane, const State& state,
                                             int t, int r, A factor) const {
    Products::for_sums(state.result, t, r, lane, [&](const A& result, int d) {
      if (d < data.shape.value_dim) data.store(row, part, d, result * factor);
    });
  }
  KOKKOS_FORCEINLINE_FUNCTION A factor_of(const Total& total) const {
    return has_elements ? total.factor * data.elements.dropout.scale : total.factor;
  }

  /// Writes lse of the rows that need not be computed again, calls f(t, r, row, total) for them, and marks the others.
  template <class F>
  KOKKOS_FORCEINLINE_FUNCTION void end_rows(const RowBlock& block, char* memory, int rank, State& state,
                                            const F& f) const {
    const int lane = lane_of(rank);
    Products::for_rows([&](int t, int r) {
      const int number   = first_row_of(rank) + t * 16 + Unit::row_of(r, lane);
      const bool is_row  = number < block.left;
      const ScoreRow row = block.template row<rows>(is_row ? number : 0);
      const A sum        = Unit::row_sum(state.sum[t][r]);
      const auto total   = total_with_sink(state.reference[t][r] * factor(), sum, data.sink(row) * log2_of_e<A>);
      const bool again   = Products::is_not_finite(state.result, t, r, total.factor);
      const bool marks   = Unit::col_of(0, lane) == 0;
      if (is_row && again && marks) again_at(memory).mark(number);
      if (is_row && !again) {
        f(t, r, row, total);
        if (marks) data.store_lse(row, block.part, total.lse());
      }
    });
  }

  /// Sets the results of rows without a key, whose factors are 1.
  KOKKOS_FORCEINLINE_FUNCTION void set_masked(std::uint32_t masked, State& state) const {
    Products::for_rows([&](int t, int r) {
      if ((masked & Products::bit(t, r)) == 0) return;
      Products::for_sums(state.result, t, r, 0, [&](A& result, int) { result = data.of_masked_rows; });
    });
  }
  /// Writes all rows once their factors are known: through scratch where o is their place.
  template <class Member>
  KOKKOS_FORCEINLINE_FUNCTION void write_rows(const Member& team, const RowBlock& block, char* memory, int rank,
                                              State& state) const {
    typename Through::Factors factors;
    Products::for_rows([&](int t, int r) { factors[t][r] = A(1); });
    std::uint32_t ended = 0, masked = 0;  // bits of rows
    end_rows(block, memory, rank, state, [&](int t, int r, const ScoreRow&, const Total& total) {
      const std::uint32_t bit = Products::bit(t, r);
      ended |= bit;
      if (total.sum == A(0)) {
        masked |= bit;
      } else {
        factors[t][r] = factor_of(total);
      }
    });
    if (masked != 0) set_masked(masked, state);
    if constexpr (!Data::has_epilogue) {
      if (data.part_results == nullptr) {  // rows that are to be computed again are written, too, as what they are
        return Through::write(team, Unit::address(memory), state.result, factors, block.left, data.shape.value_dim,
                              data.o_strides.dim,
                              [&](int r) { return data.o + block.template row<rows>(r).in(data.o_strides); });
      }
    }
    Products::for_rows([&](int t, int r) {
      if ((ended & Products::bit(t, r)) == 0) return;
      const int number = first_row_of(rank) + t * 16 + Unit::row_of(r, lane_of(rank));
      write_row(block.template row<rows>(number), block.part, lane_of(rank), state, t, r, factors[t][r]);
    });
  }

  template <class Member>
  KOKKOS_FUNCTION void do_row_again(const Member& team, const ScoreRow& row, std::int64_t part, char* memory) const {
    A* const query   = reinterpret_cast<A*>(memory);
    A* const results = query + data.shape.dim;
    A* const tile    = results + data.shape.value_dim;
    AttentionInTeam<X, Data>{data}.do_row(team, row, part, query, results, tile);
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_ATTENTION_TILES_HPP
