// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_ATTENTION_SHAPES_HPP
#define KOKKOSNN_IMPL_ATTENTION_SHAPES_HPP

#include <KokkosNN/impl/matmul_shapes.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>

// Shapes that planner and kernels of attention share: a call's extents and strides, a team's tile and scratch.

namespace KokkosNN::Impl {

/// Shapes of the kernel that has a row of scores a team.
inline constexpr int attention_tile      = 128;  ///< keys
inline constexpr int attention_team_size = 128;

/// Shape of a GPU's kernel on a matrix unit: a team's warps, each with `row_tiles` x 16 rows of scores; keys of a tile;
/// true if queries stay in registers, else they do in scratch; tiles in scratch at once; teams that a multiprocessor
/// should have at once.
template <int warps_, int row_tiles_, int keys_, bool keeps_queries_, int stages_, int resident_>
struct AttentionTile {
  static constexpr int warps          = warps_;
  static constexpr int row_tiles      = row_tiles_;
  static constexpr int keys           = keys_;
  static constexpr bool keeps_queries = keeps_queries_;
  static constexpr int stages         = stages_;
  static constexpr int resident       = resident_;
};

/// Shapes by an element's bytes, the means of multiplication and the elements that heads are padded to. Those of tensor
/// cores are a prototype's that ran on an H200; the others were not compared with others. Two teams fit into 227 KiB of
/// scratch on CUDA. Doubles of more than 128 elements have no tile, nor has HIP without matrix cores: its kernels
/// spilled at four wavefronts a SIMD.
///
/// CDNA has 64 KiB of LDS, but 512 KiB of registers: queries stay in these, and there is one tile in LDS at a time. Its
/// copies go through registers, so a second one would not come along meanwhile; two or three teams with 16 KiB a tile,
/// two wavefronts a SIMD, wait in turn instead. Floats of 256 elements and doubles of 128 leave room for one team. Not
/// measured.
template <int element_bytes, MatmulUnit unit, int dims>
struct AttentionTileFor;
template <>
struct AttentionTileFor<2, MatmulUnit::tensor_cores, 64> : AttentionTile<4, 2, 64, true, 2, 2> {};
template <>
struct AttentionTileFor<2, MatmulUnit::tensor_cores, 128> : AttentionTile<4, 2, 64, false, 2, 2> {};
template <>
struct AttentionTileFor<2, MatmulUnit::tensor_cores, 256> : AttentionTile<4, 1, 32, false, 2, 2> {};
template <>
struct AttentionTileFor<4, MatmulUnit::tensor_cores, 64> : AttentionTile<4, 2, 32, false, 2, 2> {};
template <>
struct AttentionTileFor<4, MatmulUnit::tensor_cores, 128> : AttentionTile<4, 2, 16, false, 2, 2> {};
template <>
struct AttentionTileFor<4, MatmulUnit::tensor_cores, 256> : AttentionTile<4, 1, 16, false, 1, 2> {};
template <>
struct AttentionTileFor<8, MatmulUnit::tensor_cores, 64> : AttentionTile<4, 1, 32, true, 2, 2> {};
template <>
struct AttentionTileFor<8, MatmulUnit::tensor_cores, 128> : AttentionTile<8, 1, 16, false, 2, 1> {};
template <>
struct AttentionTileFor<2, MatmulUnit::narrow_warps, 64> : AttentionTile<4, 1, 32, false, 2, 2> {};
template <>
struct AttentionTileFor<2, MatmulUnit::narrow_warps, 128> : AttentionTile<4, 1, 32, false, 1, 2> {};
template <>
struct AttentionTileFor<2, MatmulUnit::narrow_warps, 256> : AttentionTile<4, 1, 16, false, 1, 1> {};
template <>
struct AttentionTileFor<4, MatmulUnit::narrow_warps, 64> : AttentionTile<4, 2, 32, false, 2, 2> {};
template <>
struct AttentionTileFor<4, MatmulUnit::narrow_warps, 128> : AttentionTile<4, 2, 16, false, 2, 2> {};
template <>
struct AttentionTileFor<4, MatmulUnit::narrow_warps, 256> : AttentionTile<4, 1, 16, false, 1, 2> {};
template <>
struct AttentionTileFor<8, MatmulUnit::narrow_warps, 64> : AttentionTile<4, 1, 16, false, 1, 2> {};
template <>
struct AttentionTileFor<8, MatmulUnit::narrow_warps, 128> : AttentionTile<4, 1, 16, false, 1, 1> {};

template <>
struct AttentionTileFor<2, MatmulUnit::matrix_cores, 64> : AttentionTile<4, 2, 64, true, 1, 2> {};
template <>
struct AttentionTileFor<2, MatmulUnit::matrix_cores, 128> : AttentionTile<4, 2, 32, true, 1, 2> {};
template <>
struct AttentionTileFor<2, MatmulUnit::matrix_cores, 256> : AttentionTile<4, 1, 16, true, 1, 2> {};
template <>
struct AttentionTileFor<4, MatmulUnit::matrix_cores, 64> : AttentionTile<4, 2, 32, true, 1, 2> {};
template <>
struct AttentionTileFor<4, MatmulUnit::matrix_cores, 128> : AttentionTile<4, 1, 16, true, 1, 2> {};
template <>
struct AttentionTileFor<4, MatmulUnit::matrix_cores, 256> : AttentionTile<4, 1, 16, true, 1, 1> {};
template <>
struct AttentionTileFor<8, MatmulUnit::matrix_cores, 64> : AttentionTile<4, 1, 16, true, 1, 2> {};
template <>
struct AttentionTileFor<8, MatmulUnit::matrix_cores, 128> : AttentionTile<4, 1, 16, true, 1, 1> {};

/// Shape of the kernel for up to 16 rows of scores that read a head of k, as decoding has, of 16-bit elements on tensor
/// cores: warps of a team share out a tile's keys, 16 each, not the rows. What is in flight limits it: of four teams
/// two tiles each, 128 KiB. (Teams of four warps with tiles of 64 keys, one of them in flight, reached 0.65 of a copy.)
template <int dims>
struct FewRowsTileFor : AttentionTile<2, 1, 32, true, 3, 512 / dims> {};

/// Shape of the kernel on Hopper's warpgroups by the elements that heads are padded to, and by whether its mask looks
/// at single scores, which takes registers: warpgroups that multiply, each 64 rows of scores; keys of a tile; tiles of
/// keys, and of values, in scratch at once; registers of a thread of the warpgroup that loads, and of the others. Up to
/// 128 elements a prototype's shapes; beyond, what scratch has room for.
template <int multipliers_, int keys_, int stages_, int loading_registers_, int registers_>
struct WarpgroupAttentionTile {
  static constexpr int multipliers       = multipliers_;
  static constexpr int keys              = keys_;
  static constexpr int stages            = stages_;
  static constexpr int loading_registers = loading_registers_;
  static constexpr int registers         = registers_;
};
template <int dims, bool has_elements>
struct WarpgroupAttentionTileFor : WarpgroupAttentionTile<2, dims <= 128 ? 128 : 64, 2, 40, 232> {};
template <>
struct WarpgroupAttentionTileFor<64, false> : WarpgroupAttentionTile<3, 128, 2, 32, 160> {};

/// Shapes of the kernels of gradients on Hopper's warpgroups, by whether a mask looks at single scores: two that
/// multiply, each 64 rows of the block, queries or keys; rows of the tiles that pass by, keys or queries; tiles in
/// scratch at once; registers as above.
template <int keys_, int queries_, int stages_, int loading_registers_, int registers_>
struct WarpgroupGradientTile {
  static constexpr int multipliers       = 2;
  static constexpr int keys              = keys_;     ///< of a tile, where the block has queries
  static constexpr int queries           = queries_;  ///< of a tile, where the block has keys
  static constexpr int stages            = stages_;
  static constexpr int loading_registers = loading_registers_;
  static constexpr int registers         = registers_;
};
template <int dims, bool has_elements>
struct WarpgroupGradientTileFor : WarpgroupGradientTile<64, 64, 3, 24, 240> {};
template <int dims>
struct WarpgroupGradientTileFor<dims, false> : WarpgroupGradientTile<dims == 64 ? 128 : 64, 64, 3, 24, 240> {};

/// Shape of a kernel of gradients: a team's warps, each with `row_tiles` x 16 rows, queries or keys; rows of the tiles,
/// of keys or queries, that pass by; tiles in scratch at once; teams that a multiprocessor should have at once; true if
/// the team's own rows stay in registers, else they do in scratch.
template <int warps_, int row_tiles_, int tile_rows_, int stages_, int resident_, bool keeps_rows_ = false>
struct AttentionGradientTile {
  static constexpr int warps       = warps_;
  static constexpr int row_tiles   = row_tiles_;
  static constexpr int tile_rows   = tile_rows_;
  static constexpr int stages      = stages_;
  static constexpr int resident    = resident_;
  static constexpr bool keeps_rows = keeps_rows_;
};

/// Shapes of the kernel that adds up dq, and of that of dk and dv: one kernel adds up both of these, or two one each.
template <class OfQueries_, class OfKeys_, bool joins>
struct AttentionGradientShape {
  using OfQueries                             = OfQueries_;
  using OfKeys                                = OfKeys_;
  static constexpr bool joins_keys_and_values = joins;
};

/// Shapes on CUDA by an element's bytes and the elements that heads are padded to, such that registers and scratch
/// suffice: of the kernel that adds up dq, and of that of dk and dv. One kernel adds up both where it has the
/// registers.
///
///     TFLOP/s, one H200, 16 heads of 128 | 4096 queries of bf16 | 2048 of double | FlashAttention-2
///     2026-11-28                         | 201                  | 14.7           | 272
/// Sums have a fixed order, for which scores are computed twice: 7 products in place of 5.
template <int element_bytes, int dims>
struct AttentionGradientTilesFor;
template <>
struct AttentionGradientTilesFor<2, 64>
    : AttentionGradientShape<AttentionGradientTile<4, 2, 32, 2, 2>, AttentionGradientTile<4, 1, 64, 2, 2>, true> {};
template <>
struct AttentionGradientTilesFor<2, 128>
    : AttentionGradientShape<AttentionGradientTile<4, 2, 32, 2, 2>, AttentionGradientTile<4, 1, 32, 2, 2>, true> {};
template <>
struct AttentionGradientTilesFor<2, 256>
    : AttentionGradientShape<AttentionGradientTile<4, 1, 32, 1, 2>, AttentionGradientTile<4, 1, 32, 1, 2>, false> {};
template <>
struct AttentionGradientTilesFor<4, 64>
    : AttentionGradientShape<AttentionGradientTile<4, 2, 16, 2, 2>, AttentionGradientTile<4, 1, 32, 2, 2>, true> {};
template <>
struct AttentionGradientTilesFor<4, 128>
    : AttentionGradientShape<AttentionGradientTile<4, 1, 16, 2, 2>, AttentionGradientTile<4, 1, 16, 2, 2>, true> {};
template <>
struct AttentionGradientTilesFor<4, 256>
    : AttentionGradientShape<AttentionGradientTile<4, 1, 16, 1, 1>, AttentionGradientTile<4, 1, 16, 1, 1>, false> {};
template <>
struct AttentionGradientTilesFor<8, 64>
    : AttentionGradientShape<AttentionGradientTile<4, 1, 16, 2, 2>, AttentionGradientTile<4, 1, 16, 2, 2>, true> {};
template <>
struct AttentionGradientTilesFor<8, 128>
    : AttentionGradientShape<AttentionGradientTile<4, 1, 16, 2, 1>, AttentionGradientTile<4, 1, 16, 2, 1>, false> {};

/// Shapes on AMD's matrix cores, for the reasons of AttentionTileFor. Not measured.
template <int warps, int row_tiles, int tile_rows, int resident>
using MatrixCoreGradientTile = AttentionGradientTile<warps, row_tiles, tile_rows, 1, resident, true>;
template <int element_bytes, int dims>
struct MatrixCoreGradientTilesFor;
template <>
struct MatrixCoreGradientTilesFor<2, 64>
    : AttentionGradientShape<MatrixCoreGradientTile<4, 2, 32, 2>, MatrixCoreGradientTile<4, 2, 32, 2>, true> {};
template <>
struct MatrixCoreGradientTilesFor<2, 128>
    : AttentionGradientShape<MatrixCoreGradientTile<4, 2, 16, 2>, MatrixCoreGradientTile<4, 1, 32, 2>, true> {};
template <>
struct MatrixCoreGradientTilesFor<2, 256>
    : AttentionGradientShape<MatrixCoreGradientTile<4, 1, 16, 2>, MatrixCoreGradientTile<4, 1, 16, 2>, false> {};
template <>
struct MatrixCoreGradientTilesFor<4, 64>
    : AttentionGradientShape<MatrixCoreGradientTile<4, 1, 32, 2>, MatrixCoreGradientTile<4, 1, 32, 2>, true> {};
template <>
struct MatrixCoreGradientTilesFor<4, 128>
    : AttentionGradientShape<MatrixCoreGradientTile<4, 1, 16, 2>, MatrixCoreGradientTile<4, 1, 16, 2>, true> {};
template <>
struct MatrixCoreGradientTilesFor<4, 256>
    : AttentionGradientShape<MatrixCoreGradientTile<4, 1, 16, 1>, MatrixCoreGradientTile<4, 1, 16, 1>, false> {};
template <>
struct MatrixCoreGradientTilesFor<8, 64>
    : AttentionGradientShape<MatrixCoreGradientTile<4, 1, 16, 2>, MatrixCoreGradientTile<4, 1, 16, 2>, true> {};
template <>
struct MatrixCoreGradientTilesFor<8, 128>
    : AttentionGradientShape<MatrixCoreGradientTile<4, 1, 16, 1>, MatrixCoreGradientTile<4, 1, 16, 1>, false> {};

/// A GPU's kernel on a matrix unit as the planner sees it; no rows: there is none.
struct AttentionKernelShape {
  int rows            = 0;
  int keys            = 0;
  int team_size       = 0;
  std::size_t scratch = 0;
};

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
  std::int64_t queries   = 0;  ///< of a batch entry; of all entries where these are packed, and so are keys
  std::int64_t keys      = 0;
  std::int64_t dim       = 0;
  std::int64_t value_dim = 0;
  bool is_packed         = false;
  std::int64_t parts     = 1;  ///< of the keys, which are computed side by side and joined
  std::int64_t part_keys = INT64_MAX;

  KOKKOS_INLINE_FUNCTION std::int64_t group() const { return kv_heads > 0 ? heads / kv_heads : 0; }

  /// Rows of scores, or keys, of a head of k.
  KOKKOS_INLINE_FUNCTION std::int64_t rows(bool of_keys) const { return of_keys ? keys : group() * queries; }
  /// Blocks of `rows_of_block` of them. Packed entries' lengths are known on the device alone: entry b, whose rows
  /// begin at row f, has the blocks from f / rows_of_block + b on, of which one may be empty.
  KOKKOS_INLINE_FUNCTION std::int64_t blocks(bool of_keys, std::int64_t rows_of_block) const {
    if (!is_packed) return (rows(of_keys) + rows_of_block - 1) / rows_of_block;
    return batch > 0 ? rows(of_keys) / rows_of_block + batch : 0;
  }
  /// Rows of scores of the call.
  KOKKOS_INLINE_FUNCTION std::int64_t all_rows() const { return (is_packed ? 1 : batch) * heads * queries; }
  /// Blocks of so many rows of scores, each of one head of q.
  KOKKOS_INLINE_FUNCTION std::int64_t head_blocks(std::int64_t rows_of_block) const {
    if (is_packed) return batch > 0 ? heads * (queries / rows_of_block + batch) : 0;
    return batch * heads * ((queries + rows_of_block - 1) / rows_of_block);
  }
  /// Heads that have so many blocks.
  KOKKOS_INLINE_FUNCTION std::int64_t block_heads() const { return (is_packed ? 1 : batch) * kv_heads; }
};

/// Extents of parts of attention's results that are joined, and elements of a row that a thread joins.
struct AttentionMergeShape {
  std::int64_t parts   = 0;
  std::int64_t batch   = 0;
  std::int64_t heads   = 0;
  std::int64_t queries = 0;
  std::int64_t dim     = 0;
};
inline constexpr int attention_merge_width  = 4;
inline constexpr int attention_merge_unroll = 8;  ///< parts whose elements a thread loads at once
/// Bytes of scratch of a team that joins many parts of a row: sums of its threads, of accumulators A.
template <class A>
inline constexpr int attention_merge_scratch    = attention_team_size * attention_merge_width * int(sizeof(A));
inline constexpr int host_attention_merge_width = 32;

/// Distances in elements along the axes (batch, head, sequence, dim); of scores the last is the key.
struct AttentionStrides {
  std::int64_t batch    = 0;
  std::int64_t head     = 0;
  std::int64_t sequence = 0;
  std::int64_t dim      = 0;
};

/// Extents along the axes of the scores.
struct AttentionScores {
  std::int64_t batch   = 0;
  std::int64_t heads   = 0;
  std::int64_t queries = 0;
  std::int64_t keys    = 0;
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
  AttentionStrides offsets;
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_ATTENTION_SHAPES_HPP
