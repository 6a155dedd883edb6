// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_SRC_PLAN_POLICY_MATMUL_HPP
#define KOKKOSNN_SRC_PLAN_POLICY_MATMUL_HPP

// The numbers behind matrix products that kernels are not compiled with (those are in impl/matmul_shapes.hpp).

#include <cstdint>

namespace KokkosNN::Impl {

struct MatmulPolicy {
  /// Rows of a GPU's tiles that are taken column by column.
  ///   bf16 8192^3, H200, TFLOP/s | 300 | row by row 293
  int group = 8;
  /// Sums of Hopper's warpgroups for each sum of the portable kernels, where both fill the device.
  ///   bf16, one H200, 2026-11-28, TFLOP/s        | warpgroups | portable | cuBLAS
  ///   4096^3, 8192^3                             | 749, 774   | 274, 285 | 775, 796
  ///   the same, of a later run                   |            | 431, 437 |
  ///   2048^3, 16384 x 512 x 512                  | 623, 387   | 233, 130
  ///   1048576 x 64 x 64, 1048576 x 128 x 128     | 57, 155    | 27, 60
  ///   1024 x 1024 x 16384, 128 x 8192 x 8192     | 220, 206   | 235, 190, in 4 parts
  /// With a bias and a gelu 4096^3 and 8192^3 had 618 and 682 (portable 196, 236): the marks of 740 and 700 are missed
  /// by what the epilogue takes between products. The rate is more than the 1.75 of 4096^3, as portable kernels whose
  /// parts fill the device have a further kernel behind them: an estimate.
  double rate_of_warpgroups = 2.1;
  /// Tiles that each of a host's threads should have at least, and extents below which tiles are not halved for it.
  int tiles_per_thread = 4;
  int least_rows       = 24;
  int least_cols       = 64;
  /// Bytes that a host's sums of parts may have: an estimate.
  std::int64_t most_workspace = std::int64_t(64) << 20;
  /// Bytes that a GPU's sums of batches may have, which are added in several rounds where they have more: an estimate.
  std::int64_t most_workspace_of_sums = std::int64_t(256) << 20;
  /// Products that a part of a GPU's summed axis should have at least.
  ///   gradient of weights, 128 x 128, of 262144 rows, f32, H200, ms | 0.305, by cuBLAS 0.19 | in one part 33.6
  int least_part = 512;
  /// Many products of few rows: rows up to which a GPU takes the kernel for these, tiles of 16 x 64 elements of c from
  /// which on, and products a sum up to which (more was not measured).
  ///   one H200, 2026-11-29, us, many matrices | large tiles | few rows | cuBLAS
  ///   f32, 16 x 64 x 64, 4 x 256 x 64         | 1457, 1008  | 144, 184 | 204, 271
  ///   f32, 32 x 64 x 64, 1 x 64 x 64          | 1142, 2081  | 205, 190 | 182, 225
  ///   f64, 16 x 64 x 64, 32 x 64 x 256        | 341, 274    | 248, 292 | 250, 254
  ///   bf16, 16 x 64 x 64, 32 x 256 x 256      | 358, 93     | 82, 94   | 80, 70
  int few_rows            = 32;
  int few_rows_of_doubles = 16;
  int least_blocks_of_few = 1024;
  int most_inner_of_few   = 512;
  /// Columns and products a sum from which on float and double of 8 to 16 rows are faster by it than by cuBLAS:
  /// 1.31 to 1.47 times, and 1.00 to 1.12.
  int least_rows_of_few = 8;
  int least_cols_of_few = 64;
  /// Where c's rows are sums: tiles of products that a team should have of its rows, the last of which is not full; and
  /// teams that a GPU's multiprocessor should have at least. Estimates.
  int tiles_of_sums            = 4;
  int teams_per_multiprocessor = 2;
};

inline constexpr MatmulPolicy matmul_policy{};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_SRC_PLAN_POLICY_MATMUL_HPP
