// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_SRC_PLAN_POLICY_ATTENTION_HPP
#define KOKKOSNN_SRC_PLAN_POLICY_ATTENTION_HPP

#include <cstdint>

// The numbers behind plans of attention, but for those that kernels are compiled with (impl/attention_shapes.hpp).

namespace KokkosNN::Impl {

struct AttentionPolicy {
  /// Keys of a part where few queries see many keys. A length, not a number of parts, so that the bits depend neither
  /// on the batch nor on the device; a multiple of all tiles. Not measured: 8 heads of k and 4096 keys are 128 teams.
  std::int64_t part_keys = 256;
  /// Rows of scores of a head of k up to which keys are cut: those of one block.
  std::int64_t split_rows = 64;
  /// Keys from which on they are.
  std::int64_t split_keys = 512;
  /// Queries of a head, of packed sequences on average, from which on Hopper's warpgroups serve.
  ///   bf16, 16 heads, 16384 tokens, one H200, 2026-11-28, TFLOP/s | 1024     | 4096     | 16384    | cuDNN at 4096
  ///   dim 128, without a mask; causal                             | 508; 388 | 591; 526 | 637; 593 | 664; 556
  ///   dim 64, without a mask; causal                              | 363; 224 | 474; 389 | 504; 482 | 457; 348
  ///   gradients, dim 128                                          | 336; 258 | 387; 340 | 402; 378 | 529; 441
  ///   gradients, dim 64                                           | 223; 176 | 269; 251 | 282; 282 | 387; 313
  ///   the portable kernels at 4096: dim 128 | 320; 247, gradients 201
  /// The marks of 650 and 600 (dim 128, full and causal) are missed at 4096, as a block's first scores and its last
  /// products overlap nothing, and those of 480, 430 and 320 of gradients, which compute the scores twice so that their
  /// sums have a fixed order.
  std::int64_t warpgroup_queries = 64;
  /// Bytes of keys and values whose heads' blocks come side by side there: a part of the L2 cache. An estimate.
  std::int64_t bundle_bytes = std::int64_t(16) << 20;
};

inline constexpr AttentionPolicy attention_policy{};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_SRC_PLAN_POLICY_ATTENTION_HPP
