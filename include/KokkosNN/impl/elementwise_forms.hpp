// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_ELEMENTWISE_FORMS_HPP
#define KOKKOSNN_IMPL_ELEMENTWISE_FORMS_HPP

#include <algorithm>

// The words and the compiled numbers that planner and kernels of elementwise calls share.

namespace KokkosNN::Impl {

/// Most tensors of a call, outputs included.
inline constexpr int max_elementwise_tensors = 10;

/// How the tensors of an elementwise call lie in memory; a GPU's kernels are compiled for each.
enum class ElementwiseForm {
  packs,         ///< contiguous; packs of all tensors begin at the same columns, row by row
  one_or_packs,  ///< so too, but some inputs have one element a row
  elements       ///< any strides, any alignment
};

/// Threads of a GPU's team, and packs of all inputs that a thread has in flight: 64 bytes, so that half of the 2048
/// threads of a multiprocessor have 64 KB. (From the latency and the bandwidth of an H200; not measured.)
inline constexpr int elementwise_team_size = 256;
constexpr int elementwise_packs(int inputs) { return std::max(1, 4 / inputs); }

/// Elements that a thread of the form `elements` has in flight.
constexpr int elementwise_elements(int inputs) { return std::max(2, 8 / inputs); }

/// Accumulators of a tensor that a host's thread computes at a time where elements are converted or gathered first, so
/// that those of all tensors stay in a first-level cache.
inline constexpr int elementwise_host_block = 256;

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_ELEMENTWISE_FORMS_HPP
