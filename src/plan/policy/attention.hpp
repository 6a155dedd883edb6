// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_SRC_PLAN_POLICY_ATTENTION_HPP
#define KOKKOSNN_SRC_PLAN_POLICY_ATTENTION_HPP

#include <cstdint>

// The numbers behind plans of attention, but for those that kernels are compiled with (impl/attention_shapes.hpp).

namespace KokkosNN::Impl {

struct AttentionPolicy {
  /// Keys of a part where few queries see many keys. A length, not a number of parts, so that the bits depend neither
  /// on the batch nor on the device; a multiple of all tiles. 32 requests of 4096 keys read at 0.71 of a copy, one of
  /// 131072 at 0.57 (bf16, 8 heads of k read by 8 each, one H200, 2026-11-29; mark 0.9): parts begin and end often, and
  /// are joined by a kernel of its own, but longer ones would leave 8 heads of k of 4096 keys with less than 128 teams.
  std::int64_t part_keys = 256;
  /// Rows of scores of a head of k up to which keys are cut: those of one block.
  std::int64_t split_rows = 64;
  /// Parts of a row from which on a team joins them, not single threads, whose loads follow one another: 512 parts of 8
  /// rows took 300 microseconds, while a team takes 25 for 16 parts of each of 2048 rows.
  std::int64_t merge_parts = 64;
  /// Keys from which on they are.
  std::int64_t split_keys = 512;
  /// Queries of a head, of packed sequences on average, from which on Hopper's warpgroups serve. Masks of single
  /// scores, microseconds of the portable kernels and here, and of their gradients (bf16, 2 x 16 heads of 4096, one
  /// H200, 2026-11-29):
  ///            | dim 128    | gradients  | dim 64     | gradients
  ///   none     |  873;  466 | 3456; 1647 |  452;  306 | 1906; 1049
  ///   softcap  | 1636;  889 | 4326; 3152 |  879;  761 | 2653; 2407
  ///   ALiBi    | 1544;  611 | 4038; 3075 |  685;  453 | 2380; 2251
  ///   bias     | 2876;  849 | 9055; 3591 | 2113;  672 | 7484; 2797
  ///   booleans | 2385;  747 | 7794; 3298 | 1491;  565 | 5301; 2618
  /// Dim 256 without a mask 1938; 904, causal 1116; 457. Rows of a bias or of booleans that do not begin at multiples
  /// of 16 bytes, dim 128: 2160 and 1687.
  ///   bf16, 16 heads, 16384 tokens, one H200, 2026-11-28, TFLOP/s | 1024     | 4096     | 16384    | cuDNN at 4096
  ///   dim 128, without a mask; causal                             | 508; 388 | 591; 526 | 637; 593 | 664; 556
  ///   dim 64, without a mask; causal                              | 363; 224 | 474; 389 | 504; 482 | 457; 348
  ///   gradients, dim 128, 8192 tokens, 2026-11-29                 |          | 417; 379 |          | 529; 441
  ///   gradients, dim 64                                           |          | 328; 302 |          | 387; 313
  ///   the portable kernels at 4096: dim 128 | 320; 247, gradients 201
  /// The marks of 650 and 600 (dim 128, full and causal) are missed at 4096, as a block's first scores and its last
  /// products overlap nothing, and those of 480, 430 and 320 (dim 64, causal) of gradients by 13, 12 and 6 %, as these
  /// compute the scores twice, 7 products in place of 5, so that their sums have a fixed order.
  std::int64_t warpgroup_queries = 64;
  /// Bytes of keys and values whose heads' blocks come side by side there: a part of the L2 cache. An estimate.
  std::int64_t bundle_bytes = std::int64_t(16) << 20;
};

inline constexpr AttentionPolicy attention_policy{};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_SRC_PLAN_POLICY_ATTENTION_HPP
