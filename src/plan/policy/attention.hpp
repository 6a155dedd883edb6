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
};

inline constexpr AttentionPolicy attention_policy{};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_SRC_PLAN_POLICY_ATTENTION_HPP
