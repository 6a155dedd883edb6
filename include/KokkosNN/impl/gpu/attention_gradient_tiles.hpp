// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_ATTENTION_GRADIENT_TILES_HPP
#define KOKKOSNN_IMPL_GPU_ATTENTION_GRADIENT_TILES_HPP

#include <KokkosNN/impl/attention_shapes.hpp>
#include <KokkosNN/impl/gpu/attention_block.hpp>
#include <KokkosNN/impl/gpu/attention_elements.hpp>
#include <KokkosNN/impl/gpu/attention_gradients.hpp>
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

// Gradients of attention on a matrix unit, in two kernels, whose sums stay in registers. A team of the first one takes
// a block of rows of scores, and tiles of keys and values pass by: it adds up dq. A team of the second one takes a
// block of keys, and tiles of the queries and of dout that see some of them pass by: it adds up dk and dv, in one
// kernel or in one each. Probabilities are computed anew from lse. All sums are in the order of the keys, or of the
// heads and queries.
//
// Keys without a weight must add nothing, but 0 times a NaN or an infinity does. So rows and keys whose results are NaN
// are computed again, one by one, by the kernels of attention_gradients.hpp.

namespace KokkosNN::Impl {

/// Members that the kernels share.
template <class Unit_, int dims_, bool has_elements_, class Shape_>
struct AttentionGradientTiles {
  using Unit                         = Unit_;
  using X                            = typename Unit::Element;
  using A                            = typename Unit::Accumulated;
  using Address                      = typename Unit::Address;
  using Shape                        = Shape_;
  using Products                     = TileProducts<Unit, dims_, Shape::row_tiles, Shape::tile_rows>;
  using Scores                       = typename Products::Scores;
  using Undropped                    = KeptScores<Unit, Shape::row_tiles, Shape::tile_rows>;  ///< by dropout
  static constexpr int dims          = dims_;
  static constexpr bool has_elements = has_elements_;
  static constexpr int tile_rows     = Shape::tile_rows;
  static constexpr int warp_rows     = Shape::row_tiles * 16;
  static constexpr int rows          = Shape::warps * warp_rows;
  static constexpr int team_size     = Shape::warps * Unit::lanes;
  static constexpr int resident      = Shape::resident;
  static constexpr int row_bytes     = dims * int(sizeof(X));
  static constexpr int own_bytes     = rows * row_bytes;
  static constexpr int tile_bytes    = tile_rows * row_bytes;
  static constexpr int stage_bytes   = 2 * tile_bytes;
  static constexpr bool keeps_rows   = Shape::keeps_rows;
  static constexpr int stages_place  = keeps_rows ? 0 : 2 * own_bytes;  ///< behind the block's own rows of two tensors
  static constexpr int tiles_bytes   = stages_place + Shape::stages * stage_bytes;
  static_assert(Unit::reads_both_ways);
  static_assert(attention_gradients_scratch(dims, dims, true) * int(sizeof(A)) <= tiles_bytes);

  /// The block's own rows of two tensors, where they stay in registers.
  using Kept = KeptRows<Unit, dims, Shape::row_tiles, Shape::warps, Shape::stages * 2 * tile_rows>;
  struct OwnRows {
    typename Unit::A tensor[2][keeps_rows ? Shape::row_tiles : 1][keeps_rows ? Products::steps : 1];
  };
  using Own  = ScratchRows<Unit, TileUse::along, rows, row_bytes, team_size>;
  using Tile = ScratchRows<Unit, TileUse::along, tile_rows, row_bytes, team_size>;

  using Copies         = TilePairCopies<Unit, TileUse::along, TileUse::along, tile_rows, row_bytes, team_size>;
  using ThroughScratch = SumsThroughScratch<Unit, dims, Shape::row_tiles, Shape::warps>;
  static_assert(!has_chunk_copies<Unit> || ThroughScratch::bytes <= tiles_bytes);

  /// True if tiles of a tensor of q's form, and of one of dout's, are copied by whole chunks.
  KOKKOS_FORCEINLINE_FUNCTION bool has_chunks(bool copies_first, bool copies_second) const {
    constexpr int per_chunk = chunk_bytes / int(sizeof(X));
    return has_chunk_copies<Unit> && copies_first && copies_second && data.shape.dim % per_chunk == 0 &&
           data.shape.value_dim % per_chunk == 0;
  }
  /// Writes sums of the block's first `left` rows: row_of(r) points to a row's first element. Rows that are to be
  /// computed again may be written, too, as what they are; `again` has their bits.
  template <class Member, class RowOf>
  KOKKOS_FORCEINLINE_FUNCTION static void write(const Member& team, char* memory, const typename Products::Sums& sums,
                                                std::uint32_t again, A factor, std::int64_t left, std::int64_t count,
                                                std::int64_t stride, const RowOf& row_of) {
    if constexpr (has_chunk_copies<Unit>) {
      typename ThroughScratch::Factors factors;
      Products::for_rows([&](int t, int r) { factors[t][r] = factor; });
      ThroughScratch::write(team, Unit::address(memory), sums, factors, left, count, stride, row_of);
    } else {
      const int rank = anew(static_cast<int>(team.team_rank()));
      Products::for_rows([&](int t, int r) {
        const int number = first_row_of(rank) + t * 16 + Unit::row_of(r, lane_of(rank));
        if (number >= left || (again & Products::bit(t, r)) != 0) return;
        store(sums, t, r, lane_of(rank), factor, row_of(number), stride, count);
      });
    }
  }

  AttentionGradientData<X> data;
  bool copies_q;  ///< asynchronously, by 16 bytes
  bool copies_k;
  bool copies_v;
  bool copies_dout;

  KOKKOS_FORCEINLINE_FUNCTION static int lane_of(int rank) { return rank % Unit::lanes; }
  KOKKOS_FORCEINLINE_FUNCTION static int first_row_of(int rank) { return rank / Unit::lanes * warp_rows; }

  KOKKOS_FORCEINLINE_FUNCTION RowElements q_elements() const { return {data.shape.dim, data.q_strides.dim, copies_q}; }
  KOKKOS_FORCEINLINE_FUNCTION RowElements k_elements() const { return {data.shape.dim, data.k_strides.dim, copies_k}; }
  KOKKOS_FORCEINLINE_FUNCTION RowElements v_elements() const {
    return {data.shape.value_dim, data.v_strides.dim, copies_v};
  }
  KOKKOS_FORCEINLINE_FUNCTION RowElements dout_elements() const {
    return {data.shape.value_dim, data.dout_strides.dim, copies_dout};
  }

  /// Brings the block's own rows of a tensor, the first one or the second one: row(r) as of ScratchRows.
  template <int tensor, class Member, class Row>
  KOKKOS_FORCEINLINE_FUNCTION static void bring_own(const Member& team, Address memory, const Row& row,
                                                    const RowElements& elements, const X* any_element, OwnRows& own) {
    if constexpr (keeps_rows) {
      Kept::load(team, memory, row, elements, any_element, own.tensor[tensor]);
    } else {
      Own::fetch(memory + tensor * own_bytes, row, elements, any_element, anew(static_cast<int>(team.team_rank())));
    }
  }
  /// Scores of the block's own rows of a tensor with the rows of a tile.
  template <int tensor>
  KOKKOS_FORCEINLINE_FUNCTION static void multiply_own(Scores& scores, const OwnRows& own, Address memory, int rank,
                                                       Address tile) {
    if constexpr (keeps_rows) {
      Products::multiply(scores, [&](int t, int i) { return own.tensor[tensor][t][i]; }, tile, lane_of(rank));
    } else {
      Products::multiply(scores, memory + tensor * own_bytes, first_row_of(rank), tile, lane_of(rank));
    }
  }

  /// Probability and gradient of a score, ahead of its factor.
  struct Term {
    A probability;
    A gradient;
  };
  /// Term of a key that the row may see; lse is in units of log 2. Under a mask that looks at single scores these are
  /// logits, and gradients those by the scores ahead of the probability.
  template <class Row>
  KOKKOS_FORCEINLINE_FUNCTION Term term(const Row& row, A score, A gradient) const {
    const A logit       = has_elements ? score : score * (data.scale * log2_of_e<A>);
    const A by_weight   = has_elements ? gradient : gradient - row.delta;
    const A probability = power_of_two(logit - row.lse);
    return {probability, probability == A(0) ? A(0) : probability * by_weight};
  }

  KOKKOS_FORCEINLINE_FUNCTION static void store(const typename Products::Sums& sums, int t, int r, int lane, A factor,
                                                X* to, std::int64_t stride, std::int64_t count) {
    Products::for_sums(sums, t, r, lane, [&](const A& sum, int d) {
      if (d < count) to[d * stride] = static_cast<X>(sum * factor);
    });
  }
};

template <class Unit, int dims, bool on_matrix_cores = matrix_unit_kind<Unit> == MatmulUnit::matrix_cores>
struct AttentionGradientTilesOf : AttentionGradientTilesFor<int(sizeof(typename Unit::Element)), dims> {};
template <class Unit, int dims>
struct AttentionGradientTilesOf<Unit, dims, true>
    : MatrixCoreGradientTilesFor<int(sizeof(typename Unit::Element)), dims> {};

/// dq and, for the other kernel, each row's sum of o do.
template <class Unit_, int dims_, bool has_elements_>
struct AttentionQueryGradientsInTiles
    : AttentionGradientTiles<Unit_, dims_, has_elements_, typename AttentionGradientTilesOf<Unit_, dims_>::OfQueries> {
  using Base =
      AttentionGradientTiles<Unit_, dims_, has_elements_, typename AttentionGradientTilesOf<Unit_, dims_>::OfQueries>;
  using Base::data;
  using Base::first_row_of;
  using Base::has_elements;
  using Base::lane_of;
  using Base::rows;
  using typename Base::A;
  using typename Base::Address;
  using typename Base::Products;
  using typename Base::Scores;
  using typename Base::Shape;
  using typename Base::Undropped;
  using typename Base::Unit;
  using typename Base::X;

  struct Row : TeamRow<X, has_elements_> {
    A lse;  ///< in units of log 2
    A delta;
  };
  static constexpr int table_bytes = rows * int(sizeof(Row));
  static constexpr int used_bytes  = Base::tiles_bytes + table_bytes + int(sizeof(RowBlock)) + RowsAgain<rows>::bytes;
  static constexpr std::size_t scratch = used_bytes + tile_alignment;

  template <class Member>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(const Member& team) const {
    constexpr int bytes = used_bytes;  // taken by reference
    char* const memory  = static_cast<char*>(team.team_scratch(0).get_shmem_aligned(bytes, tile_alignment));
    for_team_blocks(
        team, data.blocks(false, rows), reinterpret_cast<RowBlock*>(memory + Base::tiles_bytes + table_bytes),
        [&](std::int64_t n) { return row_block<rows>(data, n); },
        [&](const RowBlock& block) { do_block(team, block, memory); });
  }

 private:
  KOKKOS_FORCEINLINE_FUNCTION static Row* rows_at(char* memory) {
    return reinterpret_cast<Row*>(memory + Base::tiles_bytes);
  }
  KOKKOS_FORCEINLINE_FUNCTION static RowsAgain<rows> again_at(char* memory) {
    return RowsAgain<rows>(memory + Base::tiles_bytes + table_bytes + sizeof(RowBlock));
  }

  template <class Member>
  KOKKOS_FORCEINLINE_FUNCTION void do_block(const Member& team, const RowBlock& block, char* memory) const {
    const int rank = static_cast<int>(team.team_rank());
    fill(rows_at(memory), block, rank);
    again_at(memory).clear(rank, Base::team_size);
    team.team_barrier();
    typename Products::Sums dq;
    add_keys(team, block, memory, dq);
    write(team, block, memory, anew(rank), dq);
    team.team_barrier();
    again_at(memory).for_each(team, [&](int r) {
      AttentionQueryGradients<X>{{data}}.do_row(team, block.template row<rows>(r), reinterpret_cast<A*>(memory));
    });
  }

  template <class Member>
  KOKKOS_FORCEINLINE_FUNCTION void write(const Member& team, const RowBlock& block, char* memory, int rank,
                                         const typename Products::Sums& dq) const {
    std::uint32_t again = 0;
    Products::for_rows([&](int t, int r) {
      const int number = first_row_of(rank) + t * 16 + Unit::row_of(r, lane_of(rank));
      if (!Products::is_not_finite(dq, t, r)) return;
      again |= Products::bit(t, r);
      if (number < block.left && Unit::col_of(0, lane_of(rank)) == 0) again_at(memory).mark(number);
    });
    Base::write(team, memory, dq, again, data.scale, block.left, data.shape.dim, data.dq_strides.dim,
                [&](int r) { return data.dq + block.template row<rows>(r).in(data.dq_strides); });
  }

  /// Fills the table: a warp adds up o do of some of its rows at a time, and then a lane has a row.
  KOKKOS_FORCEINLINE_FUNCTION void fill(Row* table, const RowBlock& block, int rank) const {
    constexpr int at_once = 8;
    static_assert(Base::warp_rows % at_once == 0 && Base::warp_rows <= Unit::lanes);
    const int lane = lane_of(rank), own_row = first_row_of(rank);
    A own_delta = 0;
    KOKKOSNN_IMPL_NO_UNROLL
    for (int first = 0; first < Base::warp_rows; first += at_once) {
      A delta[at_once];
      add_deltas(block, own_row + first, lane, delta);
      KOKKOSNN_IMPL_UNROLL
      for (int i = 0; i < at_once; ++i) own_delta = lane == first + i ? delta[i] : own_delta;
    }
    if (lane < Base::warp_rows) table[own_row + lane] = entry_of(block, own_row + lane, own_delta);
  }
  /// A row's entry, by one thread, which writes the row's delta.
  KOKKOS_FORCEINLINE_FUNCTION Row entry_of(const RowBlock& block, int r, A delta) const {
    Row entry{};
    if (r >= block.left) return entry;
    const ScoreRow row                            = block.template row<rows>(r);
    static_cast<TeamRow<X, has_elements>&>(entry) = team_row<has_elements>(data, row, data.sequence(block.batch));
    entry.delta                                   = delta;
    entry.lse                                     = data.lse[row.in(data.lse_strides)] * log2_of_e<A>;
    data.delta[row.in(data.delta_strides)]        = delta;
    if (entry.lse == -Kokkos::Experimental::infinity_v<A>) entry.begin = entry.end = 0;
    return entry;
  }
  /// Sums of o do of `count` rows from row `first` on, in all lanes.
  template <int count>
  KOKKOS_FORCEINLINE_FUNCTION void add_deltas(const RowBlock& block, int first, int lane, A (&sum)[count]) const {
    const X* o[count];
    const X* dout[count];
    KOKKOSNN_IMPL_UNROLL
    for (int i = 0; i < count; ++i) {
      const ScoreRow row = block.template row<rows>(first + i < block.left ? first + i : 0);
      o[i]               = data.o + row.in(data.o_strides);
      dout[i]            = data.dout + row.in(data.dout_strides);
      sum[i]             = 0;
    }
    KOKKOSNN_IMPL_NO_UNROLL
    for (std::int64_t d = lane; d < data.shape.value_dim; d += Unit::lanes) {
      KOKKOSNN_IMPL_UNROLL
      for (int i = 0; i < count; ++i) {
        sum[i] += static_cast<A>(o[i][d * data.o_strides.dim]) * static_cast<A>(dout[i][d * data.dout_strides.dim]);
      }
    }
    KOKKOSNN_IMPL_UNROLL
    for (int i = 0; i < count; ++i) {
      KOKKOSNN_IMPL_UNROLL
      for (int mask = 1; mask < Unit::lanes; mask *= 2) sum[i] += Unit::Instructions::exchange(sum[i], mask);
    }
  }

  template <class Member>
  KOKKOS_FORCEINLINE_FUNCTION void bring_rows(const Member& team, Address memory, const RowBlock& block,
                                              typename Base::OwnRows& own) const {
    if constexpr (has_chunk_copies<Unit> && !Base::keeps_rows) {
      const std::int64_t there = Kokkos::min<std::int64_t>(rows, block.left);
      if (Base::has_chunks(Base::copies_q, Base::copies_dout) && block.is_of_one_head(there)) {
        const ScoreRow first = block.template row<rows>(0);
        const int rank       = anew(static_cast<int>(team.team_rank()));
        using Rows           = ChunkCopies<Unit, TileUse::along, rows, Base::row_bytes, Base::team_size>;
        Rows::copy_one(memory, data.q + first.in(data.q_strides), data.q_strides.sequence, there, data.shape.dim, rank);
        return Rows::copy_one(memory + Base::own_bytes, data.dout + first.in(data.dout_strides),
                              data.dout_strides.sequence, there, data.shape.value_dim, rank);
      }
    }
    const auto rows_of = [&](const X* tensor, const AttentionStrides& strides) {
      return [tensor, &strides, &block](int r) -> const X* {
        return r < block.left ? tensor + block.template row<rows>(r).in(strides) : nullptr;
      };
    };
    Base::template bring_own<0>(team, memory, rows_of(data.q, data.q_strides), Base::q_elements(), data.q, own);
    Base::template bring_own<1>(team, memory, rows_of(data.dout, data.dout_strides), Base::dout_elements(), data.dout,
                                own);
  }
  KOKKOS_FORCEINLINE_FUNCTION void fetch_keys(typename Base::Copies& copies, Address to, const ScoreRow& head,
                                              const SeenKeys& seen, std::int64_t first, int rank) const {
    constexpr int keys = Base::tile_rows;
    if (Base::has_chunks(Base::copies_k, Base::copies_v)) {
      return copies.copy(to, in_tile<keys>(seen.begin - first), in_tile<keys>(seen.end - first), rank);
    }
    const auto rows_of = [&](const X* tensor, const AttentionStrides& strides) {
      return tile_rows_of<keys>(tensor + head.in(strides), strides.sequence, first, seen.begin, seen.end);
    };
    Base::Tile::fetch_others(to, rows_of(data.k, data.k_strides), Base::k_elements(), data.k, rank);
    Base::Tile::fetch_others(to + Base::tile_bytes, rows_of(data.v, data.v_strides), Base::v_elements(), data.v, rank);
  }

  template <class Member>
  KOKKOS_FORCEINLINE_FUNCTION void add_keys(const Member& team, const RowBlock& block, char* memory,
                                            typename Products::Sums& dq) const {
    constexpr int keys   = Base::tile_rows;
    const int rank       = static_cast<int>(team.team_rank());
    const Address base   = Unit::address(memory);
    const Address stages = base + Base::stages_place;
    const Row* const all = rows_at(memory);
    const SeenKeys seen  = keys_of_rows<Unit>(all, 0, Kokkos::min<std::int64_t>(rows, block.left), lane_of(rank));
    const SeenKeys warp =
        keys_of_rows<Unit>(all, first_row_of(rank),
                           Kokkos::min<std::int64_t>(first_row_of(rank) + Base::warp_rows, block.left), lane_of(rank));
    const ScoreRow head = data.key_of_head(data.sequence(block.batch), block.kv_head, 0);
    const KeyTiles<keys> tiles{seen.begin / keys * keys, seen.end};
    Products::clear(dq);
    typename Base::OwnRows own;
    bring_rows(team, base, block, own);
    typename Base::Copies copies;
    copies.start({data.k + head.in(data.k_strides), data.k_strides.sequence, data.shape.dim},
                 {data.v + head.in(data.v_strides), data.v_strides.sequence, data.shape.value_dim}, tiles.first, rank);
    fetch_keys(copies, stages, head, seen, tiles.first, anew(rank));
    Unit::commit();
    pass_tiles<Unit, Shape::stages>(
        team, tiles,
        [&](const KeyTiles<keys>& tile, int stage) {
          fetch_keys(copies, stages + stage * Base::stage_bytes, head, seen, tile.first, anew(rank));
        },
        [&](const KeyTiles<keys>& tile, int stage) {
          if (!warp.meets(tile.first, keys)) return;
          add_tile(own, base, stages + stage * Base::stage_bytes, all, warp, tile.first, anew(rank), dq);
        });
  }

  KOKKOS_FORCEINLINE_FUNCTION void add_tile(const typename Base::OwnRows& own, Address base, Address stage,
                                            const Row* all, const SeenKeys& warp, std::int64_t first, int rank,
                                            typename Products::Sums& dq) const {
    const int lane = lane_of(rank);
    Undropped kept;
    if constexpr (has_elements) find_kept(all, first, rank, kept);
    Scores scores, gradients;
    Base::template multiply_own<0>(scores, own, base, rank, stage);
    Base::template multiply_own<1>(gradients, own, base, rank, stage + Base::tile_bytes);
    if constexpr (has_elements) mask_elements(all, first, warp.end, rank, kept, scores, gradients);
    if (warp.has_all(first, Base::tile_rows)) {
      to_terms<false>(all, first, rank, scores, gradients);
    } else {
      to_terms<true>(all, first, rank, scores, gradients);
    }
    Products::add(dq, gradients, stage, lane);
  }

  /// Turns gradients by weights into those by scores. `is_cut`: some rows do not see all keys of the tile.
  template <bool is_cut>
  KOKKOS_FORCEINLINE_FUNCTION void to_terms(const Row* all, std::int64_t first, int rank, Scores& scores,
                                            Scores& gradients) const {
    const int lane = lane_of(rank), own_row = first_row_of(rank);
    Products::for_rows([&](int t, int r) {
      const Row& row  = all[own_row + t * 16 + Unit::row_of(r, lane)];
      const int begin = is_cut ? in_tile<Base::tile_rows>(row.begin - first) : 0;
      const int end   = is_cut ? in_tile<Base::tile_rows>(row.end - first) : 0;
      KOKKOSNN_IMPL_UNROLL
      for (int j = 0; j < Base::tile_rows / 16; ++j) {
        KOKKOSNN_IMPL_UNROLL
        for (int c = 0; c < Unit::cols; ++c) {
          const int col   = j * 16 + Unit::col_of(c, lane);
          const bool sees = !is_cut || (begin <= col && col < end);
          A& gradient     = gradients[t][j].value[r][c];
          gradient        = sees ? Base::term(row, scores[t][j].value[r][c], gradient).gradient : A(0);
        }
      }
    });
  }

  /// Turns scores into logits, and products of dout and values into what a probability's factor is of the gradient.
  KOKKOS_FORCEINLINE_FUNCTION void mask_elements(const Row* all, std::int64_t first, std::int64_t end, int rank,
                                                 const Undropped& kept, Scores& scores, Scores& gradients) const {
    const int lane = lane_of(rank), own_row = first_row_of(rank);
    if (data.elements.dropout.exists()) kept.apply(data.elements.dropout.scale, gradients);
    const auto for_lines = [&](Scores& of, const auto& f) {
      Products::for_rows([&](int t, int r) {
        f(all[own_row + t * 16 + Unit::row_of(r, lane)],
          [&](const auto& g) { Products::for_columns(of, t, r, lane, g); });
      });
    };
    for_lines(gradients,
              [&](const Row& row, const auto& each) { each([&](A& gradient, int) { gradient -= row.delta; }); });
    TileElements<X, A>{data.elements, first, end}.to_logits(
        data.scale, [&](const auto& f) { Products::for_both(scores, gradients, f); },
        [&](const auto& f) { for_lines(scores, f); }, [](A t, A& gradient) { gradient *= (A(1) - t) * (A(1) + t); });
  }

  /// Finds the weights that dropout keeps, ahead of the scores: the generator would spill these.
  KOKKOS_FORCEINLINE_FUNCTION void find_kept(const Row* all, std::int64_t first, int rank, Undropped& kept) const {
    if (!data.elements.dropout.exists()) return;
    const int lane = lane_of(rank), own_row = first_row_of(rank);
    kept.find_in_rows(data.elements.dropout, first, lane,
                      [&](int t, int r) { return all[own_row + t * 16 + Unit::row_of(r, lane)].elements.dropout; });
  }
};

/// dk or dv, or both.
template <class Unit_, int dims_, bool has_elements_, bool of_keys, bool of_values>
struct AttentionKeyGradientsInTiles
    : AttentionGradientTiles<Unit_, dims_, has_elements_, typename AttentionGradientTilesOf<Unit_, dims_>::OfKeys> {
  using Base =
      AttentionGradientTiles<Unit_, dims_, has_elements_, typename AttentionGradientTilesOf<Unit_, dims_>::OfKeys>;
  using Base::data;
  using Base::first_row_of;
  using Base::has_elements;
  using Base::lane_of;
  using Base::rows;
  using Base::tile_rows;
  using typename Base::A;
  using typename Base::Address;
  using typename Base::Products;
  using typename Base::Scores;
  using typename Base::Shape;
  using typename Base::Undropped;
  using typename Base::Unit;
  using typename Base::X;

  using Keys = typename AttentionData<X>::Block;

  /// A query of a tile: which of the block's keys it sees, and what a score's term takes of it.
  struct Query {
    int begin;
    int end;
    A lse;  ///< in units of log 2
    A delta;
    typename ScoreElements<X, A>::Row elements;
  };
  static constexpr int table_bytes     = Shape::stages * tile_rows * int(sizeof(Query));
  static constexpr int used_bytes      = Base::tiles_bytes + table_bytes + int(sizeof(Keys)) + RowsAgain<rows>::bytes;
  static constexpr std::size_t scratch = used_bytes + tile_alignment;

  template <class Member>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(const Member& team) const {
    constexpr int bytes = used_bytes;  // taken by reference
    char* const memory  = static_cast<char*>(team.team_scratch(0).get_shmem_aligned(bytes, tile_alignment));
    for_team_blocks(
        team, data.blocks(true, rows), reinterpret_cast<Keys*>(memory + Base::tiles_bytes + table_bytes),
        [&](std::int64_t n) { return data.block(n, true, rows); },
        [&](const Keys& keys) { do_block(team, keys, memory); });
  }

 private:
  struct Sums {
    typename Products::Sums dk;
    typename Products::Sums dv;
  };

  KOKKOS_FORCEINLINE_FUNCTION static Query* queries_at(char* memory, int stage) {
    return reinterpret_cast<Query*>(memory + Base::tiles_bytes) + stage * tile_rows;
  }
  KOKKOS_FORCEINLINE_FUNCTION static RowsAgain<rows> again_at(char* memory) {
    return RowsAgain<rows>(memory + Base::tiles_bytes + table_bytes + sizeof(Keys));
  }

  template <class Member>
  KOKKOS_FORCEINLINE_FUNCTION void do_block(const Member& team, const Keys& keys, char* memory) const {
    const int rank = static_cast<int>(team.team_rank());
    again_at(memory).clear(rank, Base::team_size);
    Sums sums;
    Products::clear(sums.dk);
    Products::clear(sums.dv);
    add_queries(team, keys, memory, sums);
    write(team, keys, memory, anew(rank), sums);
    team.team_barrier();
    again_at(memory).for_each(team, [&](int r) {
      AttentionKeyGradients<X>{{data}}.do_key(team, data.key_of_head(keys.sequence, keys.kv_head, keys.first + r),
                                              reinterpret_cast<A*>(memory));
    });
  }

  template <class Member>
  KOKKOS_FORCEINLINE_FUNCTION void write(const Member& team, const Keys& keys, char* memory, int rank,
                                         const Sums& sums) const {
    const int lane          = lane_of(rank);
    const std::int64_t left = keys.sequence.keys - keys.first;
    std::uint32_t again     = 0;
    Products::for_rows([&](int t, int r) {
      const int number = first_row_of(rank) + t * 16 + Unit::row_of(r, lane);
      bool is_not      = false;
      if constexpr (of_keys) is_not = Products::is_not_finite(sums.dk, t, r);
      if constexpr (of_values) is_not = Products::is_not_finite(sums.dv, t, r) || is_not;
      if (!is_not) return;
      again |= Products::bit(t, r);
      if (number < left && Unit::col_of(0, lane) == 0) again_at(memory).mark(number);
    });
    const auto row_of = [&](X* tensor, const AttentionStrides& strides) {
      return [tensor, &strides, &keys, this](int r) {
        return tensor + data.key_of_head(keys.sequence, keys.kv_head, keys.first + r).in(strides);
      };
    };
    if constexpr (of_keys) {
      Base::write(team, memory, sums.dk, again, data.scale, left, data.shape.dim, data.dk_strides.dim,
                  row_of(data.dk, data.dk_strides));
    }
    if constexpr (of_values) {
      Base::write(team, memory, sums.dv, again, A(1), left, data.shape.value_dim, data.dv_strides.dim,
                  row_of(data.dv, data.dv_strides));
    }
  }

  /// Tiles of queries, head by head: those ahead of `begin` and behind `end` see none of the block's keys.
  struct Tiles {
    std::int64_t begin;
    std::int64_t end;
    std::int64_t head;
    std::int64_t last_head;
    std::int64_t query;

    KOKKOS_FORCEINLINE_FUNCTION bool exist() const { return head <= last_head && begin < end; }
    KOKKOS_FORCEINLINE_FUNCTION void go_on() {
      query += tile_rows;
      if (query < end) return;
      query = begin;
      ++head;
    }
  };
  KOKKOS_FORCEINLINE_FUNCTION Tiles tiles_of(const Keys& keys) const {
    const QueryRange range   = queries_that_see(data, keys.sequence, keys.first, rows);
    const std::int64_t group = data.shape.group(), begin = range.begin / tile_rows * tile_rows;
    return {begin, range.end, keys.kv_head * group, keys.kv_head * group + group - 1, begin};
  }

  template <class Member>
  KOKKOS_FORCEINLINE_FUNCTION void bring_rows(const Member& team, Address memory, const Keys& keys,
                                              typename Base::OwnRows& own) const {
    const auto rows_of = [&](const X* tensor, const AttentionStrides& strides) {
      const X* const head = tensor + data.key_of_head(keys.sequence, keys.kv_head, 0).in(strides);
      return tile_rows_of<rows>(head, strides.sequence, keys.first, 0, keys.sequence.keys);
    };
    Base::template bring_own<0>(team, memory, rows_of(data.k, data.k_strides), Base::k_elements(), data.k, own);
    if constexpr (of_keys) {
      Base::template bring_own<1>(team, memory, rows_of(data.v, data.v_strides), Base::v_elements(), data.v, own);
    }
  }
  KOKKOS_FORCEINLINE_FUNCTION void fetch_tile(typename Base::Copies& copies, char* memory, int stage, const Keys& keys,
                                              const Tiles& tiles, int rank) const {
    const Address to   = Unit::address(memory) + Base::stages_place + stage * Base::stage_bytes;
    const auto head_of = [&](const X* tensor, const AttentionStrides& strides) {
      return tensor + row_of(keys, tiles.head, 0).in(strides);
    };
    if (Base::has_chunks(Base::copies_q, Base::copies_dout)) {
      if (tiles.query == tiles.begin) {
        copies.start({head_of(data.q, data.q_strides), data.q_strides.sequence, data.shape.dim},
                     {head_of(data.dout, data.dout_strides), data.dout_strides.sequence, data.shape.value_dim},
                     tiles.begin, rank);
      }
      copies.copy(to, 0, in_tile<tile_rows>(keys.sequence.queries - tiles.query), rank);
    } else {
      const auto rows_of = [&](const X* tensor, const AttentionStrides& strides) {
        return tile_rows_of<tile_rows>(head_of(tensor, strides), strides.sequence, tiles.query, 0,
                                       keys.sequence.queries);
      };
      Base::Tile::fetch_others(to, rows_of(data.q, data.q_strides), Base::q_elements(), data.q, rank);
      Base::Tile::fetch_others(to + Base::tile_bytes, rows_of(data.dout, data.dout_strides), Base::dout_elements(),
                               data.dout, rank);
    }
    const std::int64_t left = keys.sequence.queries - tiles.query;
    for (int r = rank; r < tile_rows; r += Base::team_size) {
      Query entry{};
      if (r < left) entry = entry_of(keys, row_of(keys, tiles.head, tiles.query + r));
      queries_at(memory, stage)[r] = entry;
    }
  }
  KOKKOS_FORCEINLINE_FUNCTION static ScoreRow row_of(const Keys& keys, std::int64_t head, std::int64_t query) {
    return {keys.sequence.batch, head, query, keys.sequence.first_query};
  }
  KOKKOS_FORCEINLINE_FUNCTION Query entry_of(const Keys& keys, const ScoreRow& row) const {
    const auto seen = team_row<has_elements>(data, row, keys.sequence);
    Query entry{};
    entry.begin = in_tile<rows>(seen.begin - keys.first);
    entry.end   = in_tile<rows>(seen.end - keys.first);
    entry.lse   = data.lse[row.in(data.lse_strides)] * log2_of_e<A>;
    entry.delta = data.delta[row.in(data.delta_strides)];
    if (entry.lse == -Kokkos::Experimental::infinity_v<A>) entry.end = 0;
    if constexpr (has_elements) entry.elements = seen.elements;
    return entry;
  }

  template <class Member>
  KOKKOS_FORCEINLINE_FUNCTION void add_queries(const Member& team, const Keys& keys, char* memory, Sums& sums) const {
    const int rank    = static_cast<int>(team.team_rank());
    const Tiles tiles = tiles_of(keys);
    typename Base::OwnRows own;
    bring_rows(team, Unit::address(memory), keys, own);
    typename Base::Copies copies;
    if (tiles.exist()) fetch_tile(copies, memory, 0, keys, tiles, anew(rank));
    Unit::commit();
    pass_tiles<Unit, Shape::stages>(
        team, tiles, [&](const Tiles& tile, int stage) { fetch_tile(copies, memory, stage, keys, tile, anew(rank)); },
        [&](const Tiles&, int stage) {
          add_tile(own, memory, stage, keys.first, keys.sequence.keys, anew(rank), sums);
        });
    team.team_barrier();  // the words that `write` sets were cleared, though there was no tile
  }

  KOKKOS_FORCEINLINE_FUNCTION void add_tile(const typename Base::OwnRows& own, char* memory, int stage,
                                            std::int64_t first_key, std::int64_t last_key, int rank, Sums& sums) const {
    const int lane = lane_of(rank), own_row = first_row_of(rank);
    const Address base = Unit::address(memory), queries = base + Base::stages_place + stage * Base::stage_bytes;
    const Address douts      = queries + Base::tile_bytes;
    const Query* const table = queries_at(memory, stage);
    Undropped kept;
    if constexpr (has_elements) find_kept(table, first_key + own_row, lane, kept);
    Scores probabilities, gradients;
    Base::template multiply_own<0>(probabilities, own, base, rank, queries);
    if constexpr (of_keys) Base::template multiply_own<1>(gradients, own, base, rank, douts);
    if constexpr (has_elements) mask_elements(table, first_key, last_key, rank, kept, probabilities, gradients);
    if (is_cut(table, lane)) {
      to_terms<true>(table, rank, probabilities, gradients);
    } else {
      to_terms<false>(table, rank, probabilities, gradients);
    }
    if constexpr (has_elements && of_values) {
      if (data.elements.dropout.exists()) kept.apply(data.elements.dropout.scale, probabilities);
    }
    if constexpr (of_values) Products::add(sums.dv, probabilities, douts, lane);
    if constexpr (of_keys) Products::add(sums.dk, gradients, queries, lane);
  }

  /// True if some query of a tile does not see all of the block's keys.
  KOKKOS_FORCEINLINE_FUNCTION static bool is_cut(const Query* table, int lane) {
    bool cut = false;
    for (int r = lane; r < tile_rows; r += Unit::lanes) cut = cut || table[r].begin > 0 || table[r].end < rows;
    return Unit::any(cut);
  }
  /// Turns scores into probabilities, and gradients by weights into those by scores. Without `cut` all queries see all
  /// keys.
  template <bool cut>
  KOKKOS_FORCEINLINE_FUNCTION void to_terms(const Query* table, int rank, Scores& probabilities,
                                            [[maybe_unused]] Scores& gradients) const {
    const int lane = lane_of(rank), own_row = first_row_of(rank);
    KOKKOSNN_IMPL_UNROLL
    for (int j = 0; j < tile_rows / 16; ++j) {
      KOKKOSNN_IMPL_UNROLL
      for (int c = 0; c < Unit::cols; ++c) {
        const Query& query = table[j * 16 + Unit::col_of(c, lane)];
        Products::for_rows([&](int t, int r) {
          const int key   = own_row + t * 16 + Unit::row_of(r, lane);
          const bool sees = !cut || (query.begin <= key && key < query.end);
          A& probability  = probabilities[t][j].value[r][c];
          const auto term = Base::term(query, probability, of_keys ? gradients[t][j].value[r][c] : A(0));
          probability     = sees ? term.probability : A(0);
          if constexpr (of_keys) gradients[t][j].value[r][c] = sees ? term.gradient : A(0);
        });
      }
    }
  }

  /// As of the queries' kernel, of a tile whose columns are queries.
  KOKKOS_FORCEINLINE_FUNCTION void find_kept(const Query* table, std::int64_t first, int lane, Undropped& kept) const {
    if (!data.elements.dropout.exists()) return;
    kept.find_in_columns(data.elements.dropout, first, lane,
                         [&](int j, int c) { return table[j * 16 + Unit::col_of(c, lane)].elements.dropout; });
  }
  KOKKOS_FORCEINLINE_FUNCTION void mask_elements(const Query* table, std::int64_t first_key, std::int64_t last_key,
                                                 int rank, [[maybe_unused]] const Undropped& kept, Scores& scores,
                                                 [[maybe_unused]] Scores& gradients) const {
    const int lane = lane_of(rank), own_row = first_row_of(rank);
    const auto for_lines = [&](Scores& of, const auto& f) {
      KOKKOSNN_IMPL_UNROLL
      for (int j = 0; j < tile_rows / 16; ++j) {
        KOKKOSNN_IMPL_UNROLL
        for (int c = 0; c < Unit::cols; ++c) {
          f(table[j * 16 + Unit::col_of(c, lane)], [&](const auto& g) {
            Products::for_rows(
                [&](int t, int r) { g(of[t][j].value[r][c], own_row + t * 16 + Unit::row_of(r, lane)); });
          });
        }
      }
    };
    if constexpr (of_keys) {
      if (data.elements.dropout.exists()) kept.apply(data.elements.dropout.scale, gradients);
      for_lines(gradients, [&](const Query& query, const auto& each) {
        each([&](A& gradient, int) { gradient -= query.delta; });
      });
    }
    TileElements<X, A>{data.elements, first_key, last_key}.to_logits(
        data.scale, [&](const auto& f) { Products::for_both(scores, gradients, f); },
        [&](const auto& f) { for_lines(scores, f); },
        [](A t, [[maybe_unused]] A& gradient) {
          if constexpr (of_keys) gradient *= (A(1) - t) * (A(1) + t);
        });
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_ATTENTION_GRADIENT_TILES_HPP
