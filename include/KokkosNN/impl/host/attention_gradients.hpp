// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_HOST_ATTENTION_GRADIENTS_HPP
#define KOKKOSNN_IMPL_HOST_ATTENTION_GRADIENTS_HPP

#include <KokkosNN/impl/attention_shapes.hpp>
#include <KokkosNN/impl/host/attention_tiles.hpp>
#include <KokkosNN/impl/host/vector.hpp>
#include <KokkosNN/impl/host/vector_memory.hpp>
#include <KokkosNN/impl/inputs/attention_tensors.hpp>
#include <KokkosNN/impl/math/exp.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>

// Gradients of attention on a host, in two kernels of one text. Queries and their do are of a row of scores, keys and
// their values of a column. A thread takes a block of one kind through the tiles of the other: queries to add up dq, or
// keys to add up dk and dv. Tiles begin at multiples of their length and add in their order, so the bits do not depend
// on the block's size.

namespace KokkosNN::Impl {

template <class X, bool of_keys>
struct HostAttentionGradients : AttentionTiles<X> {
  using Tiles                    = AttentionTiles<X>;
  using A                        = typename Tiles::A;
  using V                        = typename Tiles::V;
  using Exp                      = ScaledExp<A, ExpAccuracy::full>;
  static constexpr int most_rows = host_attention_tile;
  static_assert(host_attention_rows <= most_rows);
  using Part = typename Tiles::Part;
  using Tiles::tile;
  using Tiles::width;

  AttentionGradientData<X> data;
  int block_rows;
  Exp exp;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const Scratch scratch(team, data.shape, block_rows);
    Tiles::for_blocks(team, data, of_keys, block_rows, [&](const auto& block, int count) {
      do_block({block.sequence, block.kv_head}, block.first, count, scratch);
    });
  }

 private:
  /// A head of k and v.
  struct Head {
    Sequence sequence;
    std::int64_t kv_head;
  };

  /// A team's memory. The first of a pair has rows of the dim, the second of the value dim.
  struct Scratch {
    std::int64_t padded[2];
    A* block[2];    ///< q and do, or k and v
    A* sums[2];     ///< dq and nothing, or dk and dv
    A* rows[2];     ///< tile of the others
    A* columns[2];  ///< and transposed
    A* weights;     ///< scores, then probabilities
    A* gradients;   ///< do v, then gradients by the scores

    template <class Member>
    KOKKOS_FUNCTION Scratch(const Member& team, const AttentionShape& shape, int count)
        : padded{host_attention_padded(shape.dim), host_attention_padded(shape.value_dim)} {
      const std::size_t bytes =
          static_cast<std::size_t>(host_attention_gradients_scratch(shape.dim, shape.value_dim, count)) * sizeof(A);
      A* next         = static_cast<A*>(team.team_scratch(1).get_shmem_aligned(bytes, 16));
      const auto take = [&](std::int64_t n) { return (next += n) - n; };
      for (const int i : {0, 1}) {
        block[i]   = take(count * padded[i]);
        sums[i]    = take(count * padded[i]);
        rows[i]    = take(tile * padded[i]);
        columns[i] = take(tile * padded[i]);
      }
      weights   = take(count * tile);
      gradients = take(count * tile);
    }
  };

  /// Rows of scores, a block or a tile: their states, and keys that they see. Behind them a tile sees nothing.
  struct Rows {
    ScoreRow row[most_rows];
    ColumnRange allowed[most_rows];
    A lse[most_rows];  ///< 0 of a row that sees no key
    A delta[most_rows];
  };

  /// Loads queries and their do to `to`, and their states.
  KOKKOS_FUNCTION void load_queries(const Head& head, std::int64_t first, int count, const Scratch& s,
                                    A* const (&to)[2], Rows& rows) const {
    for (int r = 0; r < count; ++r) {
      const ScoreRow row = data.row_of_head(head.sequence, head.kv_head, first + r);
      Tiles::load_row(data.q + row.in(data.q_strides), data.q_strides.dim, data.shape.dim, s.padded[0],
                      to[0] + r * s.padded[0]);
      Tiles::load_row(data.dout + row.in(data.dout_strides), data.dout_strides.dim, data.shape.value_dim, s.padded[1],
                      to[1] + r * s.padded[1]);
      const A lse          = data.lse[row.in(data.lse_strides)];
      const bool sees_none = lse == -Kokkos::Experimental::infinity_v<A>;
      rows.row[r]          = row;
      rows.allowed[r]      = sees_none ? ColumnRange{0, 0} : data.ranges(row, head.sequence);
      rows.lse[r]          = sees_none ? A(0) : lse;
      A& delta             = data.delta[row.in(data.delta_strides)];
      if constexpr (!of_keys) delta = delta_of(row);
      rows.delta[r] = delta;
    }
    for (int r = count; r < tile; ++r) {
      rows.allowed[r] = {0, 0};
      rows.lse[r] = rows.delta[r] = 0;
    }
  }
  KOKKOS_FUNCTION void load_keys(const Head& head, std::int64_t first, int count, const Scratch& s,
                                 A* const (&to)[2]) const {
    for (int r = 0; r < count; ++r) {
      const ScoreRow key = data.key_of_head(head.sequence, head.kv_head, first + r);
      Tiles::load_row(data.k + key.in(data.k_strides), data.k_strides.dim, data.shape.dim, s.padded[0],
                      to[0] + r * s.padded[0]);
      Tiles::load_row(data.v + key.in(data.v_strides), data.v_strides.dim, data.shape.value_dim, s.padded[1],
                      to[1] + r * s.padded[1]);
    }
  }
  KOKKOS_FUNCTION A delta_of(const ScoreRow& row) const {
    const X* const o    = data.o + row.in(data.o_strides);
    const X* const dout = data.dout + row.in(data.dout_strides);
    A sum               = 0;
    for (std::int64_t d = 0; d < data.shape.value_dim; ++d) {
      sum =
          multiply_add(static_cast<A>(o[d * data.o_strides.dim]), static_cast<A>(dout[d * data.dout_strides.dim]), sum);
    }
    return sum;
  }

  KOKKOS_FUNCTION void do_block(const Head& head, std::int64_t first, int count, const Scratch& s) const {
    const int padded = Tiles::padded_rows(count);
    for (const int i : {0, 1}) {
      Tiles::clear(s.block[i] + count * s.padded[i], (padded - count) * s.padded[i]);
      Tiles::clear(s.sums[i], padded * s.padded[i]);
    }
    Rows rows;
    if constexpr (of_keys) {
      load_keys(head, first, count, s, s.block);
      const std::int64_t all = data.shape.group() * head.sequence.queries;
      for (std::int64_t t = 0; t < all; t += tile) {
        const Part part = Tiles::part_of({0, all}, t);
        load_queries(head, t, part.end, s, s.rows, rows);
        add_tile(head, rows, first, count, part, s);
      }
    } else {
      load_queries(head, first, count, s, s.block, rows);
      ColumnRange seen{0, 0};
      for (int r = 0; r < count; ++r) seen = Tiles::joined(seen, rows.allowed[r]);
      for (std::int64_t t = seen.begin / tile * tile; t < seen.end; t += tile) {
        const Part part          = Tiles::part_of(seen, t);
        A* const rows_of_part[2] = {s.rows[0] + part.begin * s.padded[0], s.rows[1] + part.begin * s.padded[1]};
        load_keys(head, t + part.begin, part.end - part.begin, s, rows_of_part);
        add_tile(head, rows, first, count, part, s);
      }
    }
    store(head, first, count, s);
  }

  KOKKOS_FUNCTION void add_tile(const Head& head, const Rows& rows, std::int64_t first, int count, const Part& part,
                                const Scratch& s) const {
    bool are_finite[2];
    for (const int i : {0, 1}) {
      Tiles::clear(s.rows[i], part.begin * s.padded[i]);
      Tiles::clear(s.rows[i] + part.end * s.padded[i], (tile - part.end) * s.padded[i]);
      are_finite[i] = Tiles::are_finite(s.rows[i], tile * s.padded[i]);
      Tiles::transpose_tile(s.rows[i], s.padded[i], s.columns[i]);
    }
    Tiles::multiply(s.block[0], count, s.padded[0], data.shape.dim, s.columns[0], part.end, s.weights);
    Tiles::multiply(s.block[1], count, s.padded[1], data.shape.value_dim, s.columns[1], part.end, s.gradients);
    const int padded = Tiles::padded_rows(count);
    Tiles::clear(s.weights + count * tile, (padded - count) * tile);
    Tiles::clear(s.gradients + count * tile, (padded - count) * tile);
    for (int r = 0; r < count; ++r) weigh(head, rows, first, r, part, s);
    const auto add = [&](int i, const A* weights) {
      Tiles::add_products(weights, count, part, s.rows[i], s.padded[i], are_finite[i], s.sums[i]);
    };
    add(0, s.gradients);
    if constexpr (of_keys) add(1, s.weights);
  }

  /// Turns a row's scores and products with do into probabilities and gradients by the scores; of keys that a query
  /// does not see both are 0.
  KOKKOS_FUNCTION void weigh(const Head& head, const Rows& rows, std::int64_t first, int r, const Part& part,
                             const Scratch& s) const {
    A* const weights   = s.weights + r * tile;
    A* const gradients = s.gradients + r * tile;
    A slopes[tile], factors[tile];
    compute_logits(head, rows, first, r, part, weights, slopes, factors);
    const auto drop = [&](A* values) {
      for (int j = 0; data.elements.dropout.exists() && j < tile; ++j) values[j] *= factors[j];
    };
    drop(gradients);
    const auto reference = splat_reference<V>(exp.at(A(0)));
    const V zero         = splat<V>(A(0));
    // Rows of scores are the tile's, or the block's row is one.
    const auto of_row = [&](const A* values, int j) { return of_keys ? load_vector(values + j) : splat<V>(values[r]); };
    for (int j = 0; j < tile; j += width) {
      const V probability = exp(load_vector(weights + j) - of_row(rows.lse, j), reference);
      const V gradient = probability * (load_vector(gradients + j) - of_row(rows.delta, j)) * load_vector(slopes + j);
      store_vector(weights + j, probability);
      store_vector(gradients + j, V(probability == zero ? zero : gradient));
    }
    drop(weights);
  }

  /// Logits of a row's scores, their derivatives by what stands in `scores`, and dropout's factors of the weights.
  KOKKOS_FUNCTION void compute_logits(const Head& head, const Rows& rows, std::int64_t first, int r, const Part& part,
                                      A* scores, A* slopes, A* factors) const {
    for (int j = 0; j < tile; ++j) {
      const int q            = of_keys ? j : r;
      const std::int64_t key = of_keys ? first + r : part.first + j;
      const bool is_seen     = key >= rows.allowed[q].begin && key < rows.allowed[q].end;
      scores[j]              = is_seen ? scores[j] * data.scale : -Kokkos::Experimental::infinity_v<A>;
      slopes[j]              = data.scale;
      factors[j]             = 1;
      if (!is_seen || !data.elements.exist()) continue;
      const auto mask = data.mask_of(rows.row[q], head.sequence);
      slopes[j] *= data.elements.slope_of_softcap(scores[j]);
      factors[j] = data.elements.weight_factor(mask, key);
      scores[j]  = data.elements.keeps(mask, key) ? data.elements.logit(scores[j], mask, key)
                                                  : -Kokkos::Experimental::infinity_v<A>;
    }
  }

  KOKKOS_FUNCTION void store(const Head& head, std::int64_t first, int count, const Scratch& s) const {
    for (int r = 0; r < count; ++r) {
      const A *const a = s.sums[0] + r * s.padded[0], *const b = s.sums[1] + r * s.padded[1];
      if constexpr (of_keys) {
        const ScoreRow key = data.key_of_head(head.sequence, head.kv_head, first + r);
        Tiles::store_row(a, data.dk_strides.dim, data.shape.dim, data.dk + key.in(data.dk_strides));
        Tiles::store_row(b, data.dv_strides.dim, data.shape.value_dim, data.dv + key.in(data.dv_strides));
      } else {
        const ScoreRow row = data.row_of_head(head.sequence, head.kv_head, first + r);
        Tiles::store_row(a, data.dq_strides.dim, data.shape.dim, data.dq + row.in(data.dq_strides));
      }
    }
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_HOST_ATTENTION_GRADIENTS_HPP
