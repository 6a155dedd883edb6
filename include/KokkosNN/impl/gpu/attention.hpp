// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_ATTENTION_HPP
#define KOKKOSNN_IMPL_GPU_ATTENTION_HPP

#include <KokkosNN/impl/attention_shapes.hpp>
#include <KokkosNN/impl/inputs/attention_tensors.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>

// Attention with a row of scores a team, on a GPU. The row passes by in tiles of keys: their logits lie in
// scratch, each thread computes those of its keys and the results of its columns of v, and results of earlier tiles
// are rescaled where the largest logit grows. A row's bits depend neither on the team's size nor on other rows.

namespace KokkosNN::Impl {

template <class X, class Data = AttentionData<X>>
struct AttentionInTeam {
  using A = accumulator_t<X>;

  Data data;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const AttentionShape& shape = data.shape;
    const std::size_t bytes     = static_cast<std::size_t>(attention_scratch(shape.dim, shape.value_dim)) * sizeof(A);
    A* const query              = static_cast<A*>(team.team_scratch(0).get_shmem_aligned(bytes, 16));
    A* const results            = query + shape.dim;
    A* const tile               = results + shape.value_dim;
    for (std::int64_t n = team.league_rank(); n < data.blocks(false, 1); n += team.league_size()) {
      const auto block = data.block(n, false, 1);
      if (block.left == 0) continue;
      do_row(team, data.row_of_head(block.sequence, block.kv_head, block.first), block.part, query, results, tile);
      team.team_barrier();  // before the next row's query
    }
  }

  /// Computes a row over a part of the keys: query, results and a tile of logits are scratch.
  template <class Member>
  KOKKOS_FUNCTION void do_row(const Member& team, const ScoreRow& row, std::int64_t part, A* query, A* results,
                              A* tile) const {
    const Sequence sequence  = data.sequence(row.batch);
    const ScoreRow first_key = data.first_key(sequence, row);
    const X* const k         = data.k + first_key.in(data.k_strides);
    const X* const v         = data.v + first_key.in(data.v_strides);
    const X* const q         = data.q + row.in(data.q_strides);
    const auto rank = static_cast<std::int64_t>(team.team_rank()), size = static_cast<std::int64_t>(team.team_size());
    for (std::int64_t d = rank; d < data.shape.dim; d += size) {
      query[d] = static_cast<A>(q[d * data.q_strides.dim]);
    }
    for (std::int64_t d = rank; d < data.shape.value_dim; d += size) results[d] = 0;
    team.team_barrier();

    State state;
    const auto mask           = data.mask_of(row, sequence);
    const ColumnRange allowed = data.keys_of(row, sequence, part);
    for (std::int64_t first = allowed.begin; first < allowed.end; first += attention_tile) {
      const int count = static_cast<int>(allowed.end - first < attention_tile ? allowed.end - first : attention_tile);
      compute_logits(team, mask, k, first, count, query, tile);
      team.team_barrier();
      const A factor = state.raise(largest(tile, count));
      team.team_barrier();  // all have read the logits
      for (int j = team.team_rank(); j < count; j += team.team_size()) tile[j] = state.weight(tile[j]);
      team.team_barrier();
      state.sum *= factor;
      for (int j = 0; j < count; ++j) state.sum += tile[j];
      if (data.elements.dropout.exists()) drop(team, mask, first, count, tile);
      add_values(team, v + first * data.v_strides.sequence, count, factor, tile, results);
      team.team_barrier();  // before the next tile's logits
    }
    write(team, row, part, state, results);
  }

 private:
  /// Largest logit and sum of exponentials, the same in all threads.
  struct State {
    A max = -Kokkos::Experimental::infinity_v<A>;
    A sum = 0;

    /// Raises the maximum; returns the factor of what was added up before. A NaN is ignored here.
    KOKKOS_FUNCTION A raise(A logit) {
      if (!(logit > max)) return A(1);
      const A factor = max == -Kokkos::Experimental::infinity_v<A> ? A(0) : Kokkos::exp(max - logit);
      max            = logit;
      return factor;
    }
    KOKKOS_FUNCTION A weight(A logit) const { return Kokkos::exp(logit - finite_reference(max)); }
  };

  template <class Member, class Mask>
  KOKKOS_FUNCTION void compute_logits(const Member& team, const Mask& mask, const X* k, std::int64_t first, int count,
                                      const A* query, A* tile) const {
    for (int j = team.team_rank(); j < count; j += team.team_size()) {
      tile[j] = -Kokkos::Experimental::infinity_v<A>;
      if (!data.elements.keeps(mask, first + j)) continue;
      const X* const key = k + (first + j) * data.k_strides.sequence;
      A score            = 0;
      for (std::int64_t d = 0; d < data.shape.dim; ++d) {
        score = multiply_add(query[d], static_cast<A>(key[d * data.k_strides.dim]), score);
      }
      tile[j] = data.elements.logit(score * data.scale, mask, first + j);
    }
  }

  /// Applies dropout to a tile's weights, which all have added up by then.
  template <class Member, class Mask>
  KOKKOS_FUNCTION void drop(const Member& team, const Mask& mask, std::int64_t first, int count, A* tile) const {
    team.team_barrier();
    for (int j = team.team_rank(); j < count; j += team.team_size()) {
      tile[j] *= data.elements.weight_factor(mask, first + j);
    }
    team.team_barrier();
  }

  KOKKOS_FUNCTION static A largest(const A* tile, int count) {
    A max = -Kokkos::Experimental::infinity_v<A>;
    for (int j = 0; j < count; ++j) max = max_ignoring_nan(max, tile[j]);
    return max;
  }

  /// Adds the values of a tile's keys. One without a weight is not looked at.
  template <class Member>
  KOKKOS_FUNCTION void add_values(const Member& team, const X* v, int count, A factor, const A* weights,
                                  A* results) const {
    for (std::int64_t d = team.team_rank(); d < data.shape.value_dim; d += team.team_size()) {
      const X* const column = v + d * data.v_strides.dim;
      A result              = results[d] * factor;
      for (int j = 0; j < count; ++j) {
        if (weights[j] == A(0)) continue;
        result = multiply_add(weights[j], static_cast<A>(column[j * data.v_strides.sequence]), result);
      }
      results[d] = result;
    }
  }

  template <class Member>
  KOKKOS_FUNCTION void write(const Member& team, const ScoreRow& row, std::int64_t part, State state,
                             const A* results) const {
    const A sink = data.sink(row);
    A factor     = 1;
    if (sink != -Kokkos::Experimental::infinity_v<A>) {
      factor    = state.raise(sink);
      state.sum = state.sum * factor + state.weight(sink);
    }
    const bool is_masked = state.sum == A(0);
    for (std::int64_t d = team.team_rank(); d < data.shape.value_dim; d += team.team_size()) {
      data.store(row, part, d, is_masked ? data.of_masked_rows : results[d] * factor / state.sum);
    }
    if (team.team_rank() == 0) {
      data.store_lse(row, part, is_masked ? -Kokkos::Experimental::infinity_v<A> : state.max + Kokkos::log(state.sum));
    }
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_ATTENTION_HPP
