// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_SRC_PLAN_POLICY_SEGMENTED_HPP
#define KOKKOSNN_SRC_PLAN_POLICY_SEGMENTED_HPP

#include <cstdint>

// The numbers behind plans of ragged rows, but for those that kernels are compiled with (impl/tuned_shapes.hpp).

namespace KokkosNN::Impl {

/// Rows of elements of one size.
struct SegmentedPolicy {
  /// Rows of up to this mean length take half as many lanes each, if they are neighbours in memory.
  std::int64_t low_mean = 16;

  /// Mean lengths of rows that warps take flat.
  /// One H200, microseconds by lanes and flat, 2^20 rows: f32 of 13 in the mean 58.4 and 56.1, of 16 71.0 and 62.2, of
  /// 16 each 53.1 and 54.9, but of 10 in the mean 51.5 and 53.6, of 10 each 41.7 and 55.0, and 10^6 of 10 with one of
  /// 10^6 46.4 and 58.3; bf16 of 10 in the mean 43.0 and 42.7, of 16 67.3 and 48.0, of 16 each 46.5 and 42.3, with the
  /// long row 37.3 and 46.4. Shares of copy: f32 rows of 32 in the mean 0.60 and 0.66, 300000 of 100 in the mean 0.54
  /// and 0.60, 131072 of 256 0.72 and 0.71; bf16 0.41 and 0.61, 0.40 and 0.59, 0.49 and 0.67, 100000 of 300 in the mean
  /// 0.46 and 0.50.
  std::int64_t flat_low_mean  = 12;
  std::int64_t flat_high_mean = 128;

  /// Rows of a window, which a warp takes at a time: its lanes have one each, and the place where the last one ends;
  /// and in the mean so many elements of the 1024 for which there is room. Full windows would be cut short where rows
  /// are longer than that, and what is left over costs a warp one more.
  int window_rows     = 31;
  int window_elements = 896;

  /// Windows that a warp is to take, of rows that fill them too, and how many warps there are at least for each place
  /// on the device. Microseconds, f32, 2^20 rows of 32 in the mean: 28 rows a warp 95.7, 56 95.1, 62 98.7, 84 100.6,
  /// 124 115; bf16: 56 67.0, 84 65.8, 124 69.3; 2^19 rows of 64, f32: 28 97.3, 31 99.2, 42 101.8; bf16: 28 66.7,
  /// 31 68.0, 42 65.3; 2^20 rows of 16, f32: 31 63.1, 62 63.7, 93 67.8; bf16: 48.8, 47.7, 50.1.
  int windows_of_warp      = 2;
  int full_windows_of_warp = 2;
  int warps_a_place        = 2;

  /// Teams stay, as many as the device holds, and take share after share. Rows of floats wait for memory, which is
  /// faster where all teams work close to each other, as those that start one after the other do. Microseconds, staying
  /// and not, 2^20 rows of 32 in the mean: bf16 62.8 and 64.3, f32 98.9 and 92.7.
  bool teams_stay = false;

  /// Up to this mean length a team asks for rows that later teams will have, and so large a part of the cache may lie
  /// between: no farther ahead than the teams that run at the same time.
  /// Microseconds without and with that, one H200: 2^22 rows of 10 f32 144.9 and 125.4, gradients of 2^20 of 10 66.1
  /// and 56.4, of 32 in the mean 150 and 132.5, 2^19 of 64 150 and 126, 300000 of 100 117 and 110, but 131072 of 200 99
  /// and 115; those of 100 with three times as much between 137.
  std::int64_t ahead_mean = 100;
  double ahead_caches     = 0.1;

  /// A host's chunk. Rows of up to twice as many elements are done in one go, in a cache of the second level; enough
  /// chunks for the threads from some 10^5 values on. The same for any number of threads, so that results do not depend
  /// on it. Where there are several heads a chunk has less of each, as far as that leaves rows enough to a chunk.
  int host_chunk       = 8192;
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
