// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_MATMUL_SHAPES_HPP
#define KOKKOSNN_IMPL_MATMUL_SHAPES_HPP

#include <KokkosNN/precision.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>

// The words and the compiled numbers that planner and kernels of matrix products share.

namespace KokkosNN::Impl {

/// Most tensors of a call: c, a, b and an epilogue's inputs.
inline constexpr int max_matmul_tensors = 10;

/// Axis of the 16-byte chunks of a GPU's tiles: along the sum's axis ("k"), or across it.
enum class MatmulForm {
  a_along_b_across,  ///< both row by row
  a_along_b_along,   ///< a row by row, b column by column
  a_across_b_across  ///< a column by column, b row by row
};
constexpr bool is_a_along(MatmulForm form) { return form != MatmulForm::a_across_b_across; }
constexpr bool is_b_along(MatmulForm form) { return form == MatmulForm::a_along_b_along; }

/// Rows of a product: a's and c's own; those of a that an index names; or these, c's rows being sums of some of them.
enum class MatmulRows { own, gathered, summed };

/// A team's tile of c, `rows` x `cols`, summed by `inner` products a step; a warp's part of it; steps whose operands
/// are in scratch or on their way; teams that a GPU's multiprocessor should have at once; whether a warp loads its
/// operands of a product during the one before, which takes registers.
template <int rows_, int cols_, int inner_, int warp_rows_, int warp_cols_, int stages_, int resident_,
          bool loads_ahead_ = false>
struct MatmulTile {
  static constexpr int rows         = rows_;
  static constexpr int cols         = cols_;
  static constexpr int inner        = inner_;
  static constexpr int warp_rows    = warp_rows_;
  static constexpr int warp_cols    = warp_cols_;
  static constexpr int stages       = stages_;
  static constexpr int warps        = rows / warp_rows * (cols / warp_cols);
  static constexpr int resident     = resident_;
  static constexpr bool loads_ahead = loads_ahead_;
};

/// Means of multiplication: tensor cores (CUDA), matrix cores (AMD), or warps of 32 lanes (CUDA) or 64 (HIP).
enum class MatmulUnit { tensor_cores, matrix_cores, narrow_warps, wide_warps };

/// Tiles by the size of elements and the products of a unit's instructions for one of elements. On HIP a SIMD has four
/// wavefronts, or two with matrix cores. These are not measured: 64 x 32 elements of c a wavefront load half as much of
/// LDS as matrix cores multiply meanwhile, and two teams' two steps, of 12 KiB each, fit into 64 KiB, so that one team
/// multiplies while the other one waits for memory.
///
///     TFLOP/s, 4096^3, one H200, 2026-11-28 | bf16           | f64            | f32 | f32 by TF32      | by 3xTF32
///     these tiles                           | 431            | 52.6           | 39  | 160              | 60
///     others                                | 128 x 256: 407 | 4 stages: 51   |     | 128 x 64: 126    | 128 x 128: 57
///     2026-11-27, tiles of stages alike     | 275            | 44             | 35  | 72               | 39
///     cuBLAS                                | 677            | 60             | 49  | 343              |
/// The marks of 450 (bf16), 42 (f32) and 200 (TF32) are missed. Operands of TF32 are rounded as they are loaded, by
/// three instructions an element, and b's come element by element.
template <int element_bytes, MatmulUnit unit, int products = 1>
struct MatmulTileFor
    : MatmulTile<64, 64, element_bytes == 2 ? 32 : 16, 32, 32, 2, unit == MatmulUnit::wide_warps ? 4 : 2> {};
template <int element_bytes>
struct MatmulTileFor<element_bytes, MatmulUnit::matrix_cores> : MatmulTile<128, 64, 64 / element_bytes, 64, 32, 2, 2> {
};
template <>
struct MatmulTileFor<2, MatmulUnit::tensor_cores> : MatmulTile<128, 128, 32, 64, 64, 4, 2, true> {};
template <>
struct MatmulTileFor<4, MatmulUnit::tensor_cores, 1> : MatmulTile<128, 128, 32, 64, 64, 3, 2> {};
template <>
struct MatmulTileFor<4, MatmulUnit::tensor_cores, 3> : MatmulTile<128, 64, 16, 64, 32, 4, 2> {};
template <>
struct MatmulTileFor<8, MatmulUnit::tensor_cores> : MatmulTile<64, 64, 16, 32, 32, 3, 2> {};
template <>
struct MatmulTileFor<4, MatmulUnit::narrow_warps> : MatmulTile<128, 128, 16, 64, 32, 2, 1> {};

/// Tiles of products of few rows, of which there are many. Units of CUDA alone have such kernels.
inline constexpr int few_rows_tile_rows = 16;
inline constexpr int few_rows_tile_cols = 64;
template <int element_bytes, MatmulUnit unit>
struct MatmulFewRowsTileFor {};
template <>
struct MatmulFewRowsTileFor<2, MatmulUnit::tensor_cores>
    : MatmulTile<few_rows_tile_rows, few_rows_tile_cols, 64, 16, 16, 2, 8> {};
template <>
struct MatmulFewRowsTileFor<4, MatmulUnit::tensor_cores>
    : MatmulTile<few_rows_tile_rows, few_rows_tile_cols, 32, 16, 16, 2, 8> {};
template <>
struct MatmulFewRowsTileFor<8, MatmulUnit::tensor_cores>
    : MatmulTile<few_rows_tile_rows, few_rows_tile_cols, 16, 16, 16, 3, 6> {};
template <>
struct MatmulFewRowsTileFor<4, MatmulUnit::narrow_warps>
    : MatmulTile<few_rows_tile_rows, few_rows_tile_cols, 32, 16, 32, 2, 12> {};

/// The tile of c that two warpgroups of Hopper sum, whose operands a further warp loads; a prototype's.
struct WarpgroupMatmulTile {
  static constexpr int rows            = 128;
  static constexpr int cols            = 256;
  static constexpr int inner           = 64;
  static constexpr int stages          = 4;
  static constexpr int team_size       = 288;
  static constexpr std::size_t scratch = stages * (rows + cols) * inner * 2 + 2048;
};

/// A GPU's kernel as the planner sees it.
struct MatmulKernelShape {
  int rows            = 0;
  int cols            = 0;
  int inner           = 0;  ///< products a step
  int resident        = 0;  ///< teams that a multiprocessor should have at once
  int team_size       = 0;
  std::size_t scratch = 0;
  bool has_warpgroups = false;  ///< the same product is compiled for warpgroups, and the device has them
};

/// Threads of a team that adds the sums of parts.
inline constexpr int matmul_sum_team = 256;

/// Shapes of a host's kernel: products that are summed in registers between two visits to the tile of sums; the largest
/// tile of c, whose sums and operands' packed parts a thread keeps in scratch; elements behind a packed row, so that
/// rows of a power of two do not share sets of a cache.
inline constexpr int host_matmul_inner   = 256;
inline constexpr int host_matmul_rows    = 192;
inline constexpr int host_matmul_cols    = 384;
inline constexpr int host_matmul_padding = 16;
/// Products along the inner axis that a host sums apart, whoever computes them: it adds these sums in order. There are
/// up to 64, a function of the axis alone, and so are the bits of all results.
constexpr std::int64_t host_matmul_part(std::int64_t inner) {
  constexpr std::int64_t least = 2048, most_parts = 64;
  const std::int64_t part = (inner + most_parts - 1) / most_parts;
  return part <= least ? least : (part + host_matmul_inner - 1) / host_matmul_inner * host_matmul_inner;
}
/// Alignment of a host's scratch: a cache line.
inline constexpr int host_matmul_alignment = 64;
/// Most rows and columns that registers hold the sums of, by which tiles are padded: multiples for all vectors.
inline constexpr int host_matmul_row_step = 12;
inline constexpr int host_matmul_col_step = 32;

/// Elements of a host's scratch for a tile of so many rows and columns, both padded: sums, a's rows and b's.
KOKKOS_INLINE_FUNCTION constexpr std::int64_t host_matmul_scratch(std::int64_t rows, std::int64_t cols) {
  return rows * cols + rows * (host_matmul_inner + host_matmul_padding) + cols * host_matmul_inner;
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_MATMUL_SHAPES_HPP
