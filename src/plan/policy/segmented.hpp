// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_SRC_PLAN_POLICY_SEGMENTED_HPP
#define KOKKOSNN_SRC_PLAN_POLICY_SEGMENTED_HPP

#include <KokkosNN/impl/tuned_shapes.hpp>

#include <cstdint>

// The numbers behind plans of ragged rows, but for those that kernels are compiled with (impl/tuned_shapes.hpp).

namespace KokkosNN::Impl {

/// Rows of elements of one size.
struct SegmentedPolicy {
  /// Rows of up to this mean length take half as many lanes each, if they are neighbours in memory.
  std::int64_t low_mean = 16;

  /// Mean lengths of rows that FlatRows processes, from flat_low_mean to flat_high_mean.
  ///
  ///   2^20 rows, H200, us              | by lanes | flat
  ///   f32, 13 in the mean              | 58.4     | 56.1
  ///   f32, 16 in the mean              | 71.0     | 62.2
  ///   f32, 16 each                     | 53.1     | 54.9
  ///   f32, 10 in the mean              | 51.5     | 53.6
  ///   f32, 10 each                     | 41.7     | 55.0
  ///   f32, 10^6 of 10, and one of 10^6 | 46.4     | 58.3
  ///   bf16, 10 in the mean             | 43.0     | 42.7
  ///   bf16, 16 in the mean             | 67.3     | 48.0
  ///   bf16, 16 each                    | 46.5     | 42.3
  ///   bf16, with the long row          | 37.3     | 46.4
  ///
  ///   share of copy, H200              | by lanes | flat
  ///   f32, 32 in the mean              | 0.60     | 0.66
  ///   f32, 300000 of 100 in the mean   | 0.54     | 0.60
  ///   f32, 131072 of 256               | 0.72     | 0.71
  ///   bf16, 32 in the mean             | 0.41     | 0.61
  ///   bf16, 300000 of 100 in the mean  | 0.40     | 0.59
  ///   bf16, 131072 of 256              | 0.49     | 0.67
  ///   bf16, 100000 of 300 in the mean  | 0.46     | 0.50
  std::int64_t flat_low_mean  = 12;
  std::int64_t flat_high_mean = 128;

  /// Size of a window, which a warp processes at a time: rows, one a lane, and one lane for the end of the last row;
  /// and mean elements of the 1024 for which there is room. Full windows would be cut short where rows are longer than
  /// the mean, and the rest would cost a warp one more window.
  int window_rows     = 31;
  int window_elements = 896;

  /// Number of windows a warp, of rows that fill them too, and least number of warps for each resident warp of the
  /// device.
  ///
  ///   2^20 rows of 32 in the mean, f32, us  | 28 rows a warp 95.7 | 56: 95.1 | 62: 98.7 | 84: 100.6 | 124: 115
  ///   2^20 rows of 32 in the mean, bf16, us | 56 rows a warp 67.0 | 84: 65.8 | 124: 69.3
  ///   2^19 rows of 64, f32, us              | 28 rows a warp 97.3 | 31: 99.2 | 42: 101.8
  ///   2^19 rows of 64, bf16, us             | 28 rows a warp 66.7 | 31: 68.0 | 42: 65.3
  ///   2^20 rows of 16, f32, us              | 31 rows a warp 63.1 | 62: 63.7 | 93: 67.8
  ///   2^20 rows of 16, bf16, us             | 31 rows a warp 48.8 | 62: 47.7 | 93: 50.1
  int windows_of_warp      = 2;
  int full_windows_of_warp = 2;
  int warps_a_place        = 2;

  /// True if as many teams as the device holds stay resident and process range after range. Rows of floats wait for
  /// memory, which is faster if all teams work close to each other, as teams that start one after the other do.
  ///   2^20 rows of 32 in the mean, bf16, us | staying 62.8   | otherwise 64.3
  ///   2^20 rows of 32 in the mean, f32, us  | otherwise 92.7 | staying 98.9
  bool teams_stay = false;

  /// Largest mean length of rows that teams prefetch for later teams, and largest distance, as a part of the cache: no
  /// farther ahead than the teams that run at the same time.
  ///
  ///   H200, us                            | prefetched | without
  ///   2^22 rows of 10 f32                 | 125.4      | 144.9
  ///   gradients of 2^20 of 10             | 56.4       | 66.1
  ///   gradients of 2^20 of 32 in the mean | 132.5      | 150
  ///   gradients of 2^19 of 64             | 126        | 150
  ///   gradients of 300000 of 100          | 110, three times as far ahead 137 | 117
  ///   gradients of 131072 of 200          | 115        | 99
  std::int64_t ahead_mean = 100;
  double ahead_caches     = 0.1;

  /// A host's chunk. Rows of up to twice as many elements are done in one go, in a cache of the second level; enough
  /// chunks for the threads from some 10^5 values on. The same for any number of threads, so that results do not depend
  /// on it. Where there are several heads a chunk has less of each, as far as that leaves rows enough to a chunk.
  int host_chunk       = most_host_chunk;
  int least_host_chunk = 1024;
};

inline constexpr SegmentedPolicy segmented{};
inline constexpr SegmentedPolicy segmented_16_bits = [] {
  SegmentedPolicy policy;
  policy.flat_high_mean       = 512;
  policy.full_windows_of_warp = 3;
  policy.teams_stay           = true;
  return policy;
}();

constexpr const SegmentedPolicy& segmented_policy(int element_bytes) {
  return element_bytes == 2 ? segmented_16_bits : segmented;
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_SRC_PLAN_POLICY_SEGMENTED_HPP
