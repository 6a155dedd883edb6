// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_ATTENTION_GRADIENTS_HPP
#define KOKKOSNN_IMPL_GPU_ATTENTION_GRADIENTS_HPP

#include <KokkosNN/impl/attention_shapes.hpp>
#include <KokkosNN/impl/host/vector.hpp>
#include <KokkosNN/impl/inputs/attention_tensors.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>

// Gradients of attention on a GPU, in two kernels: a team takes a row of scores for dq, then a key for dk and
// dv. Probabilities are computed anew from lse. All sums are in the order of the keys, or of the heads and queries, so
// the bits depend neither on the team's size nor on other rows; no atomics.

namespace KokkosNN::Impl {

/// Sum of a_d x_d, by partial sums that do not wait for each other.
template <class A, class X>
KOKKOS_FUNCTION A dot_product(const A* a, const X* x, std::int64_t stride, std::int64_t count) {
  constexpr int parts = 8;
  A sum[parts]        = {};
  std::int64_t d      = 0;
  for (; d + parts <= count; d += parts) {
    for (int p = 0; p < parts; ++p) {
      sum[p] = multiply_add(a[d + p], static_cast<A>(x[(d + p) * stride]), sum[p]);
    }
  }
  for (; d < count; ++d) sum[0] = multiply_add(a[d], static_cast<A>(x[d * stride]), sum[0]);
  return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

/// Probability of a score, and the gradient by it ahead of its factor, which both kernels need.
template <class X>
struct AttentionGradientTerms {
  using A = accumulator_t<X>;

  AttentionGradientData<X> data;

  struct Term {
    A probability = 0;
    A gradient    = 0;
  };

  /// Term of a key that the row's range allows. `score` and `dprobability` are functions: what they read is not looked
  /// at where the mask rules the key out, or where it has no weight.
  template <class Mask, class Score, class Gradient>
  KOKKOS_FUNCTION Term term(const Mask& mask, std::int64_t key, A lse, A delta, const Score& score,
                            const Gradient& dprobability) const {
    if (lse == -Kokkos::Experimental::infinity_v<A> || !data.elements.keeps(mask, key)) return {};
    const A scaled      = score() * data.scale;
    const A probability = Kokkos::exp(data.elements.logit(scaled, mask, key) - lse);
    if (probability == A(0)) return {};
    const A factor   = data.elements.weight_factor(mask, key);
    const A gradient = factor == A(0) ? A(0) : factor * dprobability();
    return {probability * factor, probability * (gradient - delta) * data.elements.slope_of_softcap(scaled)};
  }

  /// Bytes of scratch of a team.
  KOKKOS_FUNCTION static std::size_t scratch(const AttentionShape& shape, bool of_keys) {
    return static_cast<std::size_t>(attention_gradients_scratch(shape.dim, shape.value_dim, of_keys)) * sizeof(A);
  }

  /// Copies a row of a tensor to scratch.
  template <class Member>
  KOKKOS_FUNCTION static void load(const Member& team, const X* from, std::int64_t stride, std::int64_t count, A* to) {
    for (std::int64_t d = team.team_rank(); d < count; d += team.team_size()) to[d] = static_cast<A>(from[d * stride]);
  }
  template <class Member>
  KOKKOS_FUNCTION static void clear(const Member& team, std::int64_t count, A* to) {
    for (std::int64_t d = team.team_rank(); d < count; d += team.team_size()) to[d] = 0;
  }
  /// Adds weight times a row of a tensor; nothing is read without a weight.
  template <class Member>
  KOKKOS_FUNCTION static void add(const Member& team, A weight, const X* row, std::int64_t stride, std::int64_t count,
                                  A* sum) {
    if (weight == A(0)) return;
    for (std::int64_t d = team.team_rank(); d < count; d += team.team_size()) {
      sum[d] = multiply_add(weight, static_cast<A>(row[d * stride]), sum[d]);
    }
  }
  template <class Member>
  KOKKOS_FUNCTION static void store(const Member& team, const A* sum, A factor, std::int64_t stride, std::int64_t count,
                                    X* to) {
    for (std::int64_t d = team.team_rank(); d < count; d += team.team_size()) {
      to[d * stride] = static_cast<X>(sum[d] * factor);
    }
  }
};

/// dq and, for the other kernel, each row's sum of o do.
template <class X>
struct AttentionQueryGradients : AttentionGradientTerms<X> {
  using Terms = AttentionGradientTerms<X>;
  using A     = typename Terms::A;
  using Terms::data;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    A* const scratch = static_cast<A*>(team.team_scratch(0).get_shmem_aligned(Terms::scratch(data.shape, false), 16));
    for (std::int64_t n = team.league_rank(); n < data.blocks(false, 1); n += team.league_size()) {
      const auto block = data.block(n, false, 1);
      if (block.left == 0) continue;
      do_row(team, data.row_of_head(block.sequence, block.kv_head, block.first), scratch);
      team.team_barrier();  // before the next row's query
    }
  }

  template <class Member>
  KOKKOS_FUNCTION void do_row(const Member& team, const ScoreRow& row, A* scratch) const {
    const AttentionShape& shape = data.shape;
    A* const query              = scratch;
    A* const dout               = query + shape.dim;
    A* const sum                = dout + shape.value_dim;
    A* const tile               = sum + shape.dim;
    Terms::load(team, data.q + row.in(data.q_strides), data.q_strides.dim, shape.dim, query);
    Terms::load(team, data.dout + row.in(data.dout_strides), data.dout_strides.dim, shape.value_dim, dout);
    Terms::clear(team, shape.dim, sum);
    team.team_barrier();
    const A delta = dot_product(dout, data.o + row.in(data.o_strides), data.o_strides.dim, shape.value_dim);
    if (team.team_rank() == 0) data.delta[row.in(data.delta_strides)] = delta;
    add_keys(team, row, delta, query, dout, sum, tile);
    Terms::store(team, sum, data.scale, data.dq_strides.dim, shape.dim, data.dq + row.in(data.dq_strides));
  }

 private:
  template <class Member>
  KOKKOS_FUNCTION void add_keys(const Member& team, const ScoreRow& row, A delta, const A* query, const A* dout, A* sum,
                                A* tile) const {
    const Sequence sequence   = data.sequence(row.batch);
    const ScoreRow first_key  = data.first_key(sequence, row);
    const X* const k          = data.k + first_key.in(data.k_strides);
    const X* const v          = data.v + first_key.in(data.v_strides);
    const auto mask           = data.mask_of(row, sequence);
    const A lse               = data.lse[row.in(data.lse_strides)];
    const ColumnRange allowed = data.ranges(row, sequence);
    for (std::int64_t first = allowed.begin; first < allowed.end; first += attention_tile) {
      const int count = static_cast<int>(allowed.end - first < attention_tile ? allowed.end - first : attention_tile);
      for (int j = team.team_rank(); j < count; j += team.team_size()) {
        const std::int64_t key = first + j;
        tile[j] =
            Terms::term(
                mask, key, lse, delta,
                [&] {
                  return dot_product(query, k + key * data.k_strides.sequence, data.k_strides.dim, data.shape.dim);
                },
                [&] {
                  return dot_product(dout, v + key * data.v_strides.sequence, data.v_strides.dim, data.shape.value_dim);
                })
                .gradient;
      }
      team.team_barrier();
      for (int j = 0; j < count; ++j) {
        Terms::add(team, tile[j], k + (first + j) * data.k_strides.sequence, data.k_strides.dim, data.shape.dim, sum);
      }
      team.team_barrier();  // before the next tile's gradients
    }
  }
};

/// dk and dv, of which each key has the sums over the rows of all heads that read it.
template <class X>
struct AttentionKeyGradients : AttentionGradientTerms<X> {
  using Terms = AttentionGradientTerms<X>;
  using A     = typename Terms::A;
  using Terms::data;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const AttentionShape& shape = data.shape;
    A* const scratch = static_cast<A*>(team.team_scratch(0).get_shmem_aligned(Terms::scratch(shape, true), 16));
    for (std::int64_t n = team.league_rank(); n < data.blocks(true, 1); n += team.league_size()) {
      const auto block = data.block(n, true, 1);
      if (block.left == 0) continue;
      do_key(team, data.key_of_head(block.sequence, block.kv_head, block.first), scratch);
      team.team_barrier();  // before the next key
    }
  }

  /// Computes the gradients of a key, whose number is the row's.
  template <class Member>
  KOKKOS_FUNCTION void do_key(const Member& team, const ScoreRow& key, A* own) const {
    const AttentionShape& shape = data.shape;
    const Scratch s{own, own + shape.dim, own + shape.dim + shape.value_dim, own + 2 * shape.dim + shape.value_dim,
                    own + 2 * (shape.dim + shape.value_dim)};
    Terms::load(team, data.k + key.in(data.k_strides), data.k_strides.dim, shape.dim, s.key);
    Terms::load(team, data.v + key.in(data.v_strides), data.v_strides.dim, shape.value_dim, s.value);
    Terms::clear(team, shape.dim, s.dk);
    Terms::clear(team, shape.value_dim, s.dv);
    team.team_barrier();
    add_rows(team, key, s);
    Terms::store(team, s.dk, data.scale, data.dk_strides.dim, shape.dim, data.dk + key.in(data.dk_strides));
    Terms::store(team, s.dv, A(1), data.dv_strides.dim, shape.value_dim, data.dv + key.in(data.dv_strides));
  }

 private:
  struct Scratch {
    A* key;
    A* value;
    A* dk;
    A* dv;
    A* tile;
  };

  template <class Member>
  KOKKOS_FUNCTION void add_rows(const Member& team, const ScoreRow& key, const Scratch& s) const {
    const AttentionShape& shape = data.shape;
    const Sequence sequence     = data.sequence(key.batch);
    const std::int64_t rows     = shape.group() * sequence.queries;
    const auto row_of           = [&](std::int64_t n) { return data.row_of_head(sequence, key.head, n); };
    for (std::int64_t first = 0; first < rows; first += attention_tile) {
      const int count = static_cast<int>(rows - first < attention_tile ? rows - first : attention_tile);
      for (int i = team.team_rank(); i < count; i += team.team_size()) {
        const typename Terms::Term term = term_of(row_of(first + i), sequence, key.query, s);
        s.tile[i]                       = term.probability;
        s.tile[attention_tile + i]      = term.gradient;
      }
      team.team_barrier();
      for (int i = 0; i < count; ++i) {
        const ScoreRow row = row_of(first + i);
        Terms::add(team, s.tile[i], data.dout + row.in(data.dout_strides), data.dout_strides.dim, shape.value_dim,
                   s.dv);
        Terms::add(team, s.tile[attention_tile + i], data.q + row.in(data.q_strides), data.q_strides.dim, shape.dim,
                   s.dk);
      }
      team.team_barrier();  // before the next tile's terms
    }
  }

  KOKKOS_FUNCTION typename Terms::Term term_of(const ScoreRow& row, const Sequence& sequence, std::int64_t key,
                                               const Scratch& s) const {
    const ColumnRange allowed = data.ranges(row, sequence);
    if (key < allowed.begin || key >= allowed.end) return {};
    const AttentionShape& shape = data.shape;
    return Terms::term(
        data.mask_of(row, sequence), key, data.lse[row.in(data.lse_strides)], data.delta[row.in(data.delta_strides)],
        [&] { return dot_product(s.key, data.q + row.in(data.q_strides), data.q_strides.dim, shape.dim); },
        [&] {
          return dot_product(s.value, data.dout + row.in(data.dout_strides), data.dout_strides.dim, shape.value_dim);
        });
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_ATTENTION_GRADIENTS_HPP
