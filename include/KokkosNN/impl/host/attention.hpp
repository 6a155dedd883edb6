// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_HOST_ATTENTION_HPP
#define KOKKOSNN_IMPL_HOST_ATTENTION_HPP

#include <KokkosNN/impl/attention_shapes.hpp>
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

template <class X>
struct HostAttention {
  using A                              = accumulator_t<X>;
  using V                              = Vector<A>;
  using Exp                            = ScaledExp<A, ExpAccuracy::full>;
  static constexpr int width           = simd_width<A>;
  static constexpr int tile            = host_attention_tile;
  static constexpr int most_rows       = host_attention_rows;
  static constexpr int rows_at_once    = 4;
  static constexpr int vectors_at_once = vector_bytes == 64 ? 4 : 2;  ///< their sums stay in registers
  static_assert(tile % (vectors_at_once * width) == 0 && host_attention_padding % width == 0);

  AttentionData<X> data;
  int block_rows;  ///< rows that a team takes at a time
  Exp exp;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const AttentionShape& shape = data.shape;
    const Scratch scratch(team, shape, block_rows);
    const std::int64_t rows   = shape.group() * shape.queries;  // of a head of k and v
    const std::int64_t blocks = (rows + block_rows - 1) / block_rows;
    // In turn: under a causal mask the later blocks take longer.
    for (std::int64_t n = team.league_rank(); n < shape.batch * shape.kv_heads * blocks; n += team.league_size()) {
      const std::int64_t head = n / blocks, first = n % blocks * block_rows;
      do_block(Block(data, head, first, rows - first < block_rows ? static_cast<int>(rows - first) : block_rows),
               scratch);
    }
  }

 private:
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
      const std::size_t bytes = host_attention_scratch<A>(shape.dim, shape.value_dim, rows);
      queries                 = static_cast<A*>(team.team_scratch(1).get_shmem_aligned(bytes, 16));
      results                 = queries + rows * dims;
      weights                 = results + rows * value_dims;
      keys                    = weights + rows * tile;
      values                  = keys + dims * tile;
    }
  };

  /// Rows of scores of one head of k and v, and their states: exponentials are relative to a reference.
  struct Block {
    const X* k;
    const X* v;
    int count;
    std::int64_t begin = 0;  ///< keys that any row may see
    std::int64_t end   = 0;
    ScoreRow row[most_rows];
    ColumnRange allowed[most_rows];
    A reference[most_rows];
    A sum[most_rows];

    KOKKOS_FUNCTION Block(const AttentionData<X>& data, std::int64_t head, std::int64_t first, int rows) : count(rows) {
      const AttentionShape& shape = data.shape;
      const std::int64_t batch = head / shape.kv_heads, kv_head = head % shape.kv_heads;
      k = data.k + batch * data.k_strides.batch + kv_head * data.k_strides.head;
      v = data.v + batch * data.v_strides.batch + kv_head * data.v_strides.head;
      for (int r = 0; r < count; ++r) {
        const std::int64_t number = first + r;
        row[r]                    = {batch, kv_head * shape.group() + number / shape.queries, number % shape.queries};
        allowed[r]                = data.ranges(row[r]);
        reference[r]              = -Kokkos::Experimental::infinity_v<A>;
        sum[r]                    = 0;
        if (allowed[r].begin == allowed[r].end) continue;
        begin = begin == end || allowed[r].begin < begin ? allowed[r].begin : begin;
        end   = allowed[r].end > end ? allowed[r].end : end;
      }
    }
    /// Number of rows that the products take.
    KOKKOS_FUNCTION int padded_count() const { return (count + rows_at_once - 1) / rows_at_once * rows_at_once; }
  };

  /// Keys first + begin to first + end of a tile.
  struct Tile {
    std::int64_t first;
    int begin;
    int end;
  };

  KOKKOS_FUNCTION void do_block(Block&& block, const Scratch& scratch) const {
    load_queries(block, scratch);
    for (std::int64_t i = 0; i < block.padded_count() * scratch.value_dims; ++i) scratch.results[i] = 0;
    for (std::int64_t first = block.begin / tile * tile; first < block.end; first += tile) {
      const Tile keys{first, block.begin > first ? static_cast<int>(block.begin - first) : 0,
                      block.end - first < tile ? static_cast<int>(block.end - first) : tile};
      pack_keys(block, keys, scratch);
      const bool are_finite = pack_values(block, keys, scratch);
      compute_scores(block, keys, scratch);
      for (int r = 0; r < block.count; ++r) weigh(block, r, keys, scratch);
      for (std::int64_t i = block.count * tile; i < block.padded_count() * tile; ++i) scratch.weights[i] = 0;
      are_finite ? add_values(block, keys, scratch) : add_any_values(block, keys, scratch);
    }
    for (int r = 0; r < block.count; ++r) write(block, r, scratch);
  }

  /// Copies a row of q, k or v, and zeros behind it.
  KOKKOS_FUNCTION static void load_row(const X* from, std::int64_t stride, std::int64_t count, std::int64_t padded,
                                       A* to) {
    if (stride != 1) {
      for (std::int64_t d = 0; d < count; ++d) to[d] = static_cast<A>(from[d * stride]);
      for (std::int64_t d = count; d < padded; ++d) to[d] = 0;
      return;
    }
    for (std::int64_t d = 0; d < padded; d += width) store_vector(to + d, load_part(from + d, count - d));
  }
  /// Loads a vector, or what is left of the row, with zeros behind it.
  KOKKOS_FORCEINLINE_FUNCTION static V load_part(const X* from, std::int64_t left) {
    if (left <= 0) return splat<V>(A(0));
    return load_up_to(from, left < width ? static_cast<int>(left) : width);
  }

  KOKKOS_FUNCTION void load_queries(const Block& block, const Scratch& scratch) const {
    for (int r = 0; r < block.count; ++r) {
      load_row(data.q + block.row[r].in(data.q_strides), data.q_strides.dim, data.shape.dim, scratch.dims,
               scratch.queries + r * scratch.dims);
    }
    for (std::int64_t i = block.count * scratch.dims; i < block.padded_count() * scratch.dims; ++i) {
      scratch.queries[i] = 0;
    }
  }

  /// Packs a tile of k as columns. Keys that no row may see by their numbers are zeros, and not read.
  KOKKOS_FUNCTION void pack_keys(const Block& block, const Tile& keys, const Scratch& scratch) const {
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
    if (data.k_strides.dim == 1) return load_part(from, left);
    A each[width];
    for (int l = 0; l < width; ++l) each[l] = l < left ? static_cast<A>(from[l * data.k_strides.dim]) : A(0);
    return load_vector(each);
  }

  /// Packs a tile of v. Returns true if all of it is finite.
  KOKKOS_FUNCTION bool pack_values(const Block& block, const Tile& keys, const Scratch& scratch) const {
    const AttentionStrides& s = data.v_strides;
    V zeros                   = splat<V>(A(0));  // or NaN
    for (int j = keys.begin; j < keys.end; ++j) {
      A* const to = scratch.values + j * scratch.value_dims;
      load_row(block.v + (keys.first + j) * s.sequence, s.dim, data.shape.value_dim, scratch.value_dims, to);
      for (std::int64_t d = 0; d < scratch.value_dims; d += width) zeros = zeros + load_vector(to + d) * splat<V>(A(0));
    }
    const A sum = fold_lanes(zeros, [](const auto& a, const auto& b) KOKKOSNN_IMPL_INLINED { return a + b; });
    return sum == A(0);
  }

  /// a b + c; the compiler fuses it where the machine does.
  KOKKOS_FORCEINLINE_FUNCTION static V multiply_add(V a, V b, V c) { return a * b + c; }

  KOKKOS_FUNCTION void compute_scores(const Block& block, const Tile& keys, const Scratch& scratch) const {
    for (int r = 0; r < block.count; r += rows_at_once) {
      const A* const q = scratch.queries + r * scratch.dims;
      for (int j = 0; j < keys.end; j += vectors_at_once * width) {
        V sums[rows_at_once][vectors_at_once];
        for (auto& row : sums) {
          for (V& sum : row) sum = splat<V>(A(0));
        }
        for (std::int64_t d = 0; d < data.shape.dim; ++d) {
          add_products(q + d, scratch.dims, scratch.keys + d * tile + j, sums);
        }
        for (int i = 0; i < rows_at_once; ++i) {
          for (int c = 0; c < vectors_at_once; ++c) {
            store_vector(scratch.weights + (r + i) * tile + j + c * width, sums[i][c]);
          }
        }
      }
    }
  }

  /// Adds to each row of sums the product of a number, one a row, and the vectors at `from`.
  template <int n>
  KOKKOS_FORCEINLINE_FUNCTION static void add_products(const A* factors, std::int64_t stride, const A* from,
                                                       V (&sums)[rows_at_once][n]) {
    V terms[n];
    for (int c = 0; c < n; ++c) terms[c] = load_vector(from + c * width);
    for (int i = 0; i < rows_at_once; ++i) {
      const V factor = splat<V>(factors[i * stride]);
      for (int c = 0; c < n; ++c) sums[i][c] = multiply_add(factor, terms[c], sums[i][c]);
    }
  }

  KOKKOS_FUNCTION static int within(std::int64_t key, int end) {
    return key < 0 ? 0 : key < end ? static_cast<int>(key) : end;
  }

  /// Turns a row's scores into exponentials of logits; keys that the row does not see get 0.
  KOKKOS_FUNCTION void weigh(Block& block, int r, const Tile& keys, const Scratch& scratch) const {
    A* const row   = scratch.weights + r * tile;
    const int end  = (keys.end + width - 1) / width * width;
    const int from = within(block.allowed[r].begin - keys.first, keys.end);
    const int to   = within(block.allowed[r].end - keys.first, keys.end);
    compute_logits(block.row[r], keys.first, from, to, row);
    V max = splat<V>(-Kokkos::Experimental::infinity_v<A>);
    for (int j = 0; j < from; ++j) row[j] = max_of_none;
    for (int j = to; j < end; ++j) row[j] = max_of_none;
    for (int j = 0; j < end; j += width) max = max_ignoring_nan(max, load_vector(row + j));
    raise(block, r,
          fold_lanes(max, [](const auto& a, const auto& b) KOKKOSNN_IMPL_INLINED { return max_ignoring_nan(a, b); }),
          scratch);

    const ExpReference<V> reference = splat_reference<V>(exp.at(finite_reference(block.reference[r])));
    V sum                           = splat<V>(A(0));
    for (int j = 0; j < end; j += width) {
      const V weights = exp(load_vector(row + j), reference);
      store_vector(row + j, weights);
      sum = sum + weights;
    }
    block.sum[r] += fold_lanes(sum, [](const auto& a, const auto& b) KOKKOSNN_IMPL_INLINED { return a + b; });
  }

  KOKKOS_FUNCTION void compute_logits(const ScoreRow& row, std::int64_t first, int from, int to, A* scores) const {
    if (!data.elements.exist()) {
      for (int j = from; j < to; ++j) scores[j] *= data.scale;
      return;
    }
    const auto mask = data.elements.row(row);
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

  KOKKOS_FUNCTION void add_values(const Block& block, const Tile& keys, const Scratch& scratch) const {
    for (int r = 0; r < block.count; r += rows_at_once) {
      std::int64_t d = 0;
      for (; d + vectors_at_once * width <= scratch.value_dims; d += vectors_at_once * width) {
        add_values<vectors_at_once>(r, d, keys, scratch);
      }
      for (; d < scratch.value_dims; d += width) add_values<1>(r, d, keys, scratch);
    }
  }
  template <int n>
  KOKKOS_FUNCTION void add_values(int r, std::int64_t d, const Tile& keys, const Scratch& scratch) const {
    A* const results = scratch.results + r * scratch.value_dims + d;
    V sums[rows_at_once][n];
    for (int i = 0; i < rows_at_once; ++i) {
      for (int c = 0; c < n; ++c) sums[i][c] = load_vector(results + i * scratch.value_dims + c * width);
    }
    for (int j = keys.begin; j < keys.end; ++j) {
      add_products(scratch.weights + r * tile + j, tile, scratch.values + j * scratch.value_dims + d, sums);
    }
    for (int i = 0; i < rows_at_once; ++i) {
      for (int c = 0; c < n; ++c) store_vector(results + i * scratch.value_dims + c * width, sums[i][c]);
    }
  }

  /// Adds values of which some are not finite: those of keys without a weight must not count.
  KOKKOS_FUNCTION void add_any_values(const Block& block, const Tile& keys, const Scratch& scratch) const {
    for (int r = 0; r < block.count; ++r) {
      A* const results = scratch.results + r * scratch.value_dims;
      for (int j = keys.begin; j < keys.end; ++j) {
        const A weight        = scratch.weights[r * tile + j];
        const A* const values = scratch.values + j * scratch.value_dims;
        if (weight == A(0)) continue;
        for (std::int64_t d = 0; d < data.shape.value_dim; ++d) results[d] = results[d] + weight * values[d];
      }
    }
  }

  KOKKOS_FUNCTION void write(Block& block, int r, const Scratch& scratch) const {
    const ScoreRow& row = block.row[r];
    const A sink        = data.sink(row);
    if (sink != max_of_none) {
      raise(block, r, sink, scratch);
      block.sum[r] += exp(sink, exp.at(finite_reference(block.reference[r])));
    }
    const bool is_masked = block.sum[r] == A(0);
    if (data.lse != nullptr) {
      data.lse[row.in(data.lse_strides)] = is_masked ? max_of_none : block.reference[r] + Kokkos::log(block.sum[r]);
    }
    A* const results = scratch.results + r * scratch.value_dims;
    for (std::int64_t d = 0; d < data.shape.value_dim; ++d) {
      results[d] = is_masked ? data.of_masked_rows : results[d] / block.sum[r];
    }
    store_results(results, data.o + row.in(data.o_strides));
  }

  KOKKOS_FUNCTION void store_results(const A* results, X* o) const {
    const std::int64_t count = data.shape.value_dim, stride = data.o_strides.dim;
    if (stride != 1) {
      for (std::int64_t d = 0; d < count; ++d) o[d * stride] = static_cast<X>(results[d]);
      return;
    }
    for (std::int64_t d = 0; d < count; d += width) {
      store_up_to(o + d, load_vector(results + d), count - d < width ? static_cast<int>(count - d) : width);
    }
  }

  static constexpr A max_of_none = -Kokkos::Experimental::infinity_v<A>;
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_HOST_ATTENTION_HPP
