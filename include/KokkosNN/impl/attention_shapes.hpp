// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_ATTENTION_SHAPES_HPP
#define KOKKOSNN_IMPL_ATTENTION_SHAPES_HPP

#include <Kokkos_Core.hpp>

#include <cstdint>

// Shapes that planner and kernels of attention share: a call's extents and strides, a team's tile and scratch.

namespace KokkosNN::Impl {

inline constexpr int attention_tile      = 128;  ///< keys
inline constexpr int attention_team_size = 128;

/// Shapes of a host's kernel: keys of a tile; most rows of scores that a thread takes at a time; elements that its rows
/// in scratch are padded to, a multiple of all vectors.
inline constexpr int host_attention_tile    = 64;
inline constexpr int host_attention_rows    = 64;
inline constexpr int host_attention_padding = 16;

KOKKOS_INLINE_FUNCTION constexpr std::int64_t host_attention_padded(std::int64_t dim) {
  return (dim + host_attention_padding - 1) / host_attention_padding * host_attention_padding;
}

/// Elements of scratch of a host's thread: queries, results, a tile of weights, of keys and of values.
KOKKOS_INLINE_FUNCTION constexpr std::int64_t host_attention_scratch(std::int64_t dim, std::int64_t value_dim,
                                                                     int rows) {
  const std::int64_t dims = host_attention_padded(dim) + host_attention_padded(value_dim);
  return (dims + host_attention_tile) * rows + dims * host_attention_tile;
}

/// Those for gradients: a block, its sums, a tile as rows and as columns, weights, gradients.
KOKKOS_INLINE_FUNCTION constexpr std::int64_t host_attention_gradients_scratch(std::int64_t dim, std::int64_t value_dim,
                                                                               int rows) {
  const std::int64_t dims = host_attention_padded(dim) + host_attention_padded(value_dim);
  return 2 * ((dims + host_attention_tile) * rows + dims * host_attention_tile);
}

/// Elements of scratch of a team: the query, the results, a tile of logits.
KOKKOS_INLINE_FUNCTION constexpr std::int64_t attention_scratch(std::int64_t dim, std::int64_t value_dim) {
  return dim + value_dim + attention_tile;
}

/// Those for gradients. A row has its query, do, dq and a tile of gradients; a key has itself, its value, dk, dv and a
/// tile of rows' probabilities and gradients.
KOKKOS_INLINE_FUNCTION constexpr std::int64_t attention_gradients_scratch(std::int64_t dim, std::int64_t value_dim,
                                                                          bool of_keys) {
  return of_keys ? 2 * (dim + value_dim + attention_tile) : 2 * dim + value_dim + attention_tile;
}

struct AttentionShape {
  std::int64_t batch     = 0;
  std::int64_t heads     = 0;  ///< of q
  std::int64_t kv_heads  = 0;
  std::int64_t queries   = 0;
  std::int64_t keys      = 0;
  std::int64_t dim       = 0;
  std::int64_t value_dim = 0;

  KOKKOS_INLINE_FUNCTION std::int64_t group() const { return kv_heads > 0 ? heads / kv_heads : 0; }
};

/// Distances in elements along the axes (batch, head, sequence, dim); of scores the last is the key.
struct AttentionStrides {
  std::int64_t batch    = 0;
  std::int64_t head     = 0;
  std::int64_t sequence = 0;
  std::int64_t dim      = 0;
};

/// Distances of a mask's Views along the axes of the scores.
struct ScoreMaskLayout {
  bool has_diagonals = false;
  std::int64_t low   = 0;  ///< query q may see keys q + low
  std::int64_t high  = 0;  ///< to q + high
  AttentionStrides keep;
  AttentionStrides bias;
  AttentionStrides lengths;
  AttentionStrides slopes;
  AttentionStrides sinks;
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_ATTENTION_SHAPES_HPP
