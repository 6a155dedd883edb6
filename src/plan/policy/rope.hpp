// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_SRC_PLAN_POLICY_ROPE_HPP
#define KOKKOSNN_SRC_PLAN_POLICY_ROPE_HPP

#include <cstdint>

// The numbers behind plans of rotary embeddings, but for those that kernels are compiled with (impl/tuned_shapes.hpp).

namespace KokkosNN::Impl {

struct RopePolicy {
  /// Heads that a GPU's thread rotates by the same angles, with tables and without: computing an angle costs as much as
  /// rotating some pairs. Not measured.
  int heads_a_thread          = 4;
  int heads_a_thread_computed = 16;
  /// Teams a multiprocessor below which threads take fewer heads. Not measured.
  int least_teams = 8;
  /// Positions of a GPU's team where neighbouring positions are neighbours in memory: a warp's of any backend.
  int side_by_side = 64;

  /// Elements that a host's team takes at least, and turns that each thread has at least.
  std::int64_t host_elements = 65536;
  int host_turns             = 4;
};

inline constexpr RopePolicy rope_policy{};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_SRC_PLAN_POLICY_ROPE_HPP
