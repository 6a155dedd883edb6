// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_HOST_ATTENTION_HPP
#define KOKKOSNN_IMPL_HOST_ATTENTION_HPP

#include <KokkosNN/impl/attention_shapes.hpp>
#include <KokkosNN/impl/host/attention_tiles.hpp>
#include <KokkosNN/impl/host/vector.hpp>
#include <KokkosNN/impl/host/vector_memory.hpp>
#include <KokkosNN/impl/inputs/attention_tensors.hpp>
#include <KokkosNN/impl/math/exp.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

// Attention on a host: a thread takes a block of queries through the keys, tile by tile. It packs a tile of k, as
// columns, and of v into its scratch, so that both products are loops of vectors for any type and strides. Tiles begin
// at multiples of their length, and a key that a row does not see adds nothing, so a row's bits depend neither on the
// block's size nor on other rows. Heads of q that share a head of k and v share the packed tiles, too.

namespace KokkosNN::Impl {

template <class X, class Data = AttentionData<X>>
struct HostAttention : AttentionTiles<X> {
  using Tiles                    = AttentionTiles<X>;
  using A                        = typename Tiles::A;
  using V                        = typename Tiles::V;
  using Exp                      = ScaledExp<A, ExpAccuracy::full>;
  static constexpr int most_rows = host_attention_rows;
  using Part                     = typename Tiles::Part;
  using Tiles::tile;
  using Tiles::width;

  Data data;
  int block_rows;  ///< rows that a team takes at a time
  Exp exp;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const Scratch scratch(team, data.shape, block_rows);
    Tiles::for_blocks(team, data, false, block_rows,
                      [&](const auto& block, int count) { do_block(Block(data, block, count), scratch); });
  }

 private:
  static constexpr A max_of_none = -Kokkos::Experimental::infinity_v<A>;

  /// A team's memory. Rows of queries and results, and columns of keys, are padded to whole vectors.
  struct Scratch {
    std::int64_t dims;
    std::int64_t value_dims;
    A* queries;
    A* results;
    A* weights;
    A* keys;
    A* values;

    template <class Member>
    KOKKOS_FUNCTION Scratch(const Member& team, const AttentionShape& shape, int rows)
        : dims(host_attention_padded(shape.dim)), value_dims(host_attention_padded(shape.value_dim)) {
      const std::size_t bytes =
          static_cast<std::size_t>(host_attention_scratch(shape.dim, shape.value_dim, rows)) * sizeof(A);
      queries = static_cast<A*>(team.team_scratch(1).get_shmem_aligned(bytes, 16));
      results = queries + rows * dims;
      weights = results + rows * value_dims;
      keys    = weights + rows * tile;
      values  = keys + dims * tile;
    }
  };

  /// Rows of scores of one head of k and v, and their states: exponentials are relative to a reference.
  struct Block {
    Sequence sequence;
    std::int64_t part;
    const X* k;
    const X* v;
    int count;
    ColumnRange seen{0, 0};  ///< keys that any row may see
    ScoreRow row[most_rows];
    ColumnRange allowed[most_rows];
    A reference[most_rows];
    A sum[most_rows];

    KOKKOS_FUNCTION Block(const AttentionData<X>& data, const typename AttentionData<X>::Block& block, int rows)
        : sequence(block.sequence),
          part(block.part),
          k(data.k + data.key_of_head(sequence, block.kv_head, 0).in(data.k_strides)),
          v(data.v + data.key_of_head(sequence, block.kv_head, 0).in(data.v_strides)),
          count(rows) {
      for (int r = 0; r < count; ++r) {
        row[r]       = data.row_of_head(sequence, block.kv_head, block.first + r);
        allowed[r]   = data.keys_of(row[r], sequence, part);
        reference[r] = max_of_none;
        sum[r]       = 0;
        seen         = Tiles::joined(seen, allowed[r]);
      }
    }
  };

  KOKKOS_FUNCTION void do_block(Block&& block, const Scratch& scratch) const {
    load_queries(block, scratch);
    const int padded = Tiles::padded_rows(block.count);
    Tiles::clear(scratch.results, padded * scratch.value_dims);
    for (std::int64_t first = block.seen.begin / tile * tile; first < block.seen.end; first += tile) {
      const Part keys = Tiles::part_of(block.seen, first);
      pack_keys(block, keys, scratch);
      const bool are_finite = pack_values(block, keys, scratch);
      Tiles::multiply(scratch.queries, block.count, scratch.dims, data.shape.dim, scratch.keys, keys.end,
                      scratch.weights);
      for (int r = 0; r < block.count; ++r) weigh(block, r, keys, scratch);
      Tiles::clear(scratch.weights + block.count * tile, (padded - block.count) * tile);
      Tiles::add_products(scratch.weights, block.count, keys, scratch.values, scratch.value_dims, are_finite,
                          scratch.results);
    }
    for (int r = 0; r < block.count; ++r) write(block, r, scratch);
  }

  KOKKOS_FUNCTION void load_queries(const Block& block, const Scratch& scratch) const {
    for (int r = 0; r < block.count; ++r) {
      Tiles::load_row(data.q + block.row[r].in(data.q_strides), data.q_strides.dim, data.shape.dim, scratch.dims,
                      scratch.queries + r * scratch.dims);
    }
    Tiles::clear(scratch.queries + block.count * scratch.dims,
                 (Tiles::padded_rows(block.count) - block.count) * scratch.dims);
  }

  /// Packs a tile of k as columns. Keys that no row may see by their numbers are zeros, and not read.
  KOKKOS_FUNCTION void pack_keys(const Block& block, const Part& keys, const Scratch& scratch) const {
    const AttentionStrides& s = data.k_strides;
    const X* const k          = block.k + keys.first * s.sequence;
    for (int j = 0; j < tile; j += width) {
      for (std::int64_t d = 0; d < scratch.dims; d += width) {
        V part[width];
        for (int l = 0; l < width; ++l) {
          const bool is_seen = j + l >= keys.begin && j + l < keys.end;
          part[l] = is_seen ? key_part(k + (j + l) * s.sequence + d * s.dim, data.shape.dim - d) : splat<V>(A(0));
        }
        transpose<A>(part);
        for (int l = 0; l < width; ++l) store_vector(scratch.keys + (d + l) * tile + j, part[l]);
      }
    }
  }
  KOKKOS_FORCEINLINE_FUNCTION V key_part(const X* from, std::int64_t left) const {
    if (data.k_strides.dim == 1) return Tiles::load_part(from, left);
    A each[width];
    for (int l = 0; l < width; ++l) each[l] = l < left ? static_cast<A>(from[l * data.k_strides.dim]) : A(0);
    return load_vector(each);
  }

  /// Packs a tile of v. Returns true if all of it is finite.
  KOKKOS_FUNCTION bool pack_values(const Block& block, const Part& keys, const Scratch& scratch) const {
    const AttentionStrides& s = data.v_strides;
    for (int j = keys.begin; j < keys.end; ++j) {
      Tiles::load_row(block.v + (keys.first + j) * s.sequence, s.dim, data.shape.value_dim, scratch.value_dims,
                      scratch.values + j * scratch.value_dims);
    }
    return Tiles::are_finite(scratch.values + keys.begin * scratch.value_dims,
                             (keys.end - keys.begin) * scratch.value_dims);
  }

  /// Turns a row's scores into exponentials of logits; keys that the row does not see get 0.
  KOKKOS_FUNCTION void weigh(Block& block, int r, const Part& keys, const Scratch& scratch) const {
    A* const row   = scratch.weights + r * tile;
    const int end  = (keys.end + width - 1) / width * width;
    const int from = Tiles::within(block.allowed[r].begin - keys.first, keys.end);
    const int to   = Tiles::within(block.allowed[r].end - keys.first, keys.end);
    compute_logits(block, r, keys.first, from, to, row);
    V max = splat<V>(max_of_none);
    for (int j = 0; j < from; ++j) row[j] = max_of_none;
    for (int j = to; j < end; ++j) row[j] = max_of_none;
    for (int j = 0; j < end; j += width) max = max_ignoring_nan(max, load_vector(row + j));
    raise(block, r, fold_lanes(max, JoinMaxima{}), scratch);

    const ExpReference<V> reference = splat_reference<V>(exp.at(finite_reference(block.reference[r])));
    V sum                           = splat<V>(A(0));
    for (int j = 0; j < end; j += width) {
      const V weights = exp(load_vector(row + j), reference);
      store_vector(row + j, weights);
      sum = sum + weights;
    }
    block.sum[r] += fold_lanes(sum, JoinSums{});
    if (data.elements.dropout.exists()) drop(block, r, keys.first, from, to, row);
  }

  /// Applies dropout to a row's weights, which have been added up.
  KOKKOS_FUNCTION void drop(const Block& block, int r, std::int64_t first, int from, int to, A* weights) const {
    const auto mask = data.mask_of(block.row[r], block.sequence);
    for (int j = from; j < to; ++j) weights[j] *= data.elements.weight_factor(mask, first + j);
  }

  KOKKOS_FUNCTION void compute_logits(const Block& block, int r, std::int64_t first, int from, int to,
                                      A* scores) const {
    if (!data.elements.exist()) {
      for (int j = from; j < to; ++j) scores[j] *= data.scale;
      return;
    }
    const auto mask = data.mask_of(block.row[r], block.sequence);
    for (int j = from; j < to; ++j) {
      scores[j] = data.elements.keeps(mask, first + j) ? data.elements.logit(scores[j] * data.scale, mask, first + j)
                                                       : max_of_none;
    }
  }

  /// Raises a row's reference for logits up to max, and rescales what was added up before.
  KOKKOS_FUNCTION void raise(Block& block, int r, A max, const Scratch& scratch) const {
    const A before = block.reference[r], reference = exp.reference_of(max);
    if (!(reference > before)) return;
    block.reference[r] = reference;
    if (before == max_of_none) return;  // nothing was
    const A factor   = exp.rescaling(before, reference);
    A* const results = scratch.results + r * scratch.value_dims;
    block.sum[r] *= factor;
    for (std::int64_t d = 0; d < scratch.value_dims; ++d) results[d] *= factor;
  }

  KOKKOS_FUNCTION void write(Block& block, int r, const Scratch& scratch) const {
    const ScoreRow& row = block.row[r];
    const A sink        = data.sink(row);
    if (sink != max_of_none) {
      raise(block, r, sink, scratch);
      block.sum[r] += exp(sink, exp.at(finite_reference(block.reference[r])));
    }
    const bool is_masked = block.sum[r] == A(0);
    data.store_lse(row, block.part, is_masked ? max_of_none : block.reference[r] + Kokkos::log(block.sum[r]));
    A* const results = scratch.results + r * scratch.value_dims;
    for (std::int64_t d = 0; d < data.shape.value_dim; ++d) {
      results[d] = is_masked ? data.of_masked_rows : results[d] / block.sum[r];
    }
    if (Data::has_epilogue || data.part_results != nullptr) {
      for (std::int64_t d = 0; d < data.shape.value_dim; ++d) data.store(row, block.part, d, results[d]);
    } else {
      Tiles::store_row(results, data.o_strides.dim, data.shape.value_dim, data.o + row.in(data.o_strides));
    }
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_HOST_ATTENTION_HPP
