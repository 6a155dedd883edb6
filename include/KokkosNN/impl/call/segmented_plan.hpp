// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_SEGMENTED_PLAN_HPP
#define KOKKOSNN_IMPL_CALL_SEGMENTED_PLAN_HPP

#include <KokkosNN/export.hpp>
#include <KokkosNN/impl/call/layout.hpp>
#include <KokkosNN/plan.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

// Plan of a call on ragged rows: the chunks of its values, the arrangement of its heads, and the constants of the
// policy with their measurements.
// Rows of several heads are so many more rows. A GPU's kernels number them such that neighbouring lanes have neighbours
// in memory (`HeadArrangement`). On a host a team processes its chunk once a head.

namespace KokkosNN::Impl {

/// Row offsets of any integral type, read as 64-bit numbers, so that kernels are compiled once for all of them.
struct RowOffsets {
  const void* data    = nullptr;
  std::int64_t stride = 1;
  int bytes           = 8;
  bool is_signed      = true;

  KOKKOS_INLINE_FUNCTION std::int64_t operator[](std::int64_t i) const { return two(i * stride, 0).first; }

  /// Returns the i-th offset and the next, or twice the i-th one. Dense offsets have stride 1.
  template <bool are_dense>
  KOKKOS_INLINE_FUNCTION Kokkos::pair<std::int64_t, std::int64_t> of_row(std::int64_t i, bool has_next) const {
    const std::int64_t step = are_dense ? 1 : stride;
    return two(i * step, has_next ? step : 0);
  }

 private:
  KOKKOS_INLINE_FUNCTION Kokkos::pair<std::int64_t, std::int64_t> two(std::int64_t k, std::int64_t step) const {
    if (bytes == 8) return two_of<std::int64_t>(k, step);
    if (bytes == 4) return is_signed ? two_of<std::int32_t>(k, step) : two_of<std::uint32_t>(k, step);
    if (bytes == 2) return is_signed ? two_of<std::int16_t>(k, step) : two_of<std::uint16_t>(k, step);
    return is_signed ? two_of<std::int8_t>(k, step) : two_of<std::uint8_t>(k, step);
  }
  template <class T>
  KOKKOS_INLINE_FUNCTION Kokkos::pair<std::int64_t, std::int64_t> two_of(std::int64_t k, std::int64_t step) const {
    const T* const offset = static_cast<const T*>(data) + k;
    return {offset[0], offset[step]};
  }
};

/// Clamps an offset to the values. Offsets are not trusted: whatever they are, no access leaves the values.
KOKKOS_INLINE_FUNCTION std::int64_t offset_inside(std::int64_t offset, std::int64_t elements) {
  return offset < 0 ? 0 : (offset > elements ? elements : offset);
}

/// Chunks of one size of a head's values. A host's team has the rows of all heads that begin in its chunk, up to an
/// overhang into the next chunks; a row that goes beyond that is long, and many teams have a part of it.
struct Chunks {
  std::int64_t elements = 0;  ///< of a head
  std::int64_t rows     = 0;  ///< of a head
  std::int64_t count    = 1;
  int log2_size         = 0;
  int overhang          = 0;

  KOKKOS_INLINE_FUNCTION int size() const { return 1 << log2_size; }
  KOKKOS_INLINE_FUNCTION std::int64_t begin(std::int64_t c) const { return c << log2_size; }
  KOKKOS_INLINE_FUNCTION std::int64_t end(std::int64_t c) const { return inside(begin(c + 1)); }
  KOKKOS_INLINE_FUNCTION std::int64_t of(std::int64_t element) const { return element >> log2_size; }
  KOKKOS_INLINE_FUNCTION std::int64_t inside(std::int64_t offset) const { return offset_inside(offset, elements); }
  KOKKOS_INLINE_FUNCTION bool is_long(std::int64_t row_begin, std::int64_t row_end) const {
    return row_end > begin(of(row_begin) + 1) + overhang;
  }
};

/// Number of packs of 4 elements of each tensor that a GPU's thread holds: of one tensor 16 floats, for which 48
/// registers suffice.
constexpr int segment_packs(int tensors, int accumulator_bytes) {
  return std::max(1, 64 / (16 * tensors * (accumulator_bytes / 4)));
}

/// Number of lanes that share a short row: they hold 64 elements. With more lanes, fewer rows would share a warp's work
/// once a row; with fewer, neighbouring lanes would load elements that lie far apart. Rows of a low mean length take
/// half as many if they are neighbours in memory.
///   10^6 rows of 10 f32, share of copy | two lanes 0.51 | four lanes 0.38 (when that was chosen)
constexpr int segment_row_lanes(int packs) { return 16 / packs; }
constexpr int segment_low_lanes(int packs) { return segment_row_lanes(packs) / 2; }
inline constexpr int segment_low_mean = 16;
/// Rows of up to this number of tiles of a warp are processed by one warp, which reads those that it does not hold
/// twice.
inline constexpr int warp_tiles = 4;

/// True if a warp can process rows as one range of memory, wherever rows begin and end. HIP's lanes process rows one by
/// one, as all GPUs' do if elements are not neighbours, not of one size, or doubles.
constexpr bool takes_rows_flat(Backend backend, int x_bytes, int y_bytes, int accumulator_bytes) {
  return backend == Backend::cuda && x_bytes == y_bytes && accumulator_bytes == 4;
}
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
inline constexpr int flat_low_mean = 12;
constexpr std::int64_t flat_high_mean(int x_bytes) { return x_bytes == 2 ? 512 : 128; }
/// Size of a window, which a warp processes at a time: rows, one a lane, and one lane for the end of the last row; and
/// mean elements of the 1024 for which there is room. Full windows would be cut short where rows are longer than the
/// mean, and the rest would cost a warp one more window.
inline constexpr int flat_window_rows     = 31;
inline constexpr int flat_window_elements = 896;
/// Number of windows a warp, and least number of warps for each resident warp of the device.
///
///   2^20 rows of 32 in the mean, f32, us  | 28 rows a warp 95.7 | 56: 95.1 | 62: 98.7 | 84: 100.6 | 124: 115
///   2^20 rows of 32 in the mean, bf16, us | 56 rows a warp 67.0 | 84: 65.8 | 124: 69.3
///   2^19 rows of 64, f32, us              | 28 rows a warp 97.3 | 31: 99.2 | 42: 101.8
///   2^19 rows of 64, bf16, us             | 28 rows a warp 66.7 | 31: 68.0 | 42: 65.3
///   2^20 rows of 16, f32, us              | 31 rows a warp 63.1 | 62: 63.7 | 93: 67.8
///   2^20 rows of 16, bf16, us             | 31 rows a warp 48.8 | 62: 47.7 | 93: 50.1
constexpr int flat_windows_of_warp(int x_bytes, std::int64_t mean) {
  return x_bytes == 2 && mean * flat_window_rows > flat_window_elements ? 3 : 2;
}
inline constexpr int flat_warps_a_place = 2;
/// True if as many teams as the device holds stay resident and process range after range. Rows of floats wait for
/// memory, which is faster if all teams work close to each other, as teams that start one after the other do.
///   2^20 rows of 32 in the mean, bf16, us | staying 62.8   | otherwise 64.3
///   2^20 rows of 32 in the mean, f32, us  | otherwise 92.7 | staying 98.9
constexpr bool flat_teams_stay(int x_bytes) { return x_bytes == 2; }
/// Threads of a team of FlatRows, and teams that a multiprocessor is to have: with 72 registers a thread and 7 KB of
/// shared memory a warp. A warp waits for its copies.
///   instructions of 2^20 rows of 32 f32, millions | 55 | by lanes 82
inline constexpr int flat_team_size      = 128;
inline constexpr int flat_teams_resident = 7;

/// Threads of a GPU's team, and teams that a multiprocessor is to have, which their registers allow: 48 a thread of the
/// kernel for short rows, 64 of those for long ones, and 128 for doubles, whose exponential has many constants.
///   2^20 rows of 32 f32 in the mean, share of copy | 48 registers 0.59 | 64 registers and four teams 0.57
inline constexpr int segment_team_size = 256;
constexpr int segment_teams_resident(int accumulator_bytes, bool has_short_rows) {
  return accumulator_bytes == 8 ? 2 : has_short_rows ? 5 : 4;
}

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
inline constexpr int segment_ahead_mean      = 100;
inline constexpr double segment_ahead_caches = 0.1;

/// Most parts of a row that takes a GPU many teams: each team that writes one joins the states of all.
inline constexpr int most_parts_of_row = 1024;

/// Problem of a call, as the planner sees it.
struct SegmentedProblem {
  RowOperator op        = RowOperator::softmax;
  ElementType type      = ElementType::f32;  ///< of the values
  int element_bytes     = 4;
  int tensors           = 1;  ///< tensors that are read
  int accumulator_bytes = 4;
  std::int64_t elements = 0;  ///< of a head
  std::int64_t rows     = 0;  ///< of a head
  std::int64_t heads    = 1;
};

/// Plan of a call.
struct SegmentedPlan {
  RowOperator op            = RowOperator::softmax;
  ElementType type          = ElementType::f32;
  Chunks chunks             = {};  ///< chunks of a host; of a GPU the parts of a row that takes many teams
  std::int64_t heads        = 1;
  int team_size             = 1;  ///< of all kernels, except a GPU's FlatRows
  int warp_elements         = 1;  ///< most elements of a row that a GPU's warp processes; longer rows take teams
  int scratch_level         = 0;
  std::size_t scratch_bytes = 0;
  bool has_low_mean         = false;             ///< rows of low mean length, if not processed by FlatRows
  std::int64_t mean         = 1;                 ///< mean length of rows
  std::int64_t rows_ahead   = 0;                 ///< distance of prefetched rows; 0: no prefetching
  bool has_flat_mean        = false;             ///< mean length of rows suits FlatRows
  int rows_of_warp          = 1;                 ///< rows a warp in FlatRows
  std::int64_t flat_teams   = 1;                 ///< teams of FlatRows
  Eviction eviction         = Eviction::normal;  ///< eviction hint of FlatRows' results
  bool has_long_rows        = false;             ///< there may be long rows
};

KOKKOSNN_EXPORT SegmentedPlan make_segmented_plan(const SegmentedProblem& problem, const DeviceTraits& traits);

/// Label of a kernel whose teams have `team_size` threads: `KokkosNN::segmented_softmax[rows,f32,c4096,ts256]`.
KOKKOSNN_EXPORT std::string to_string(const SegmentedPlan& plan, const char* kernel, int team_size);

/// Views of a call, erased.
struct SegmentedTensors {
  Tensor x;   ///< values; of a gradient y
  Tensor y;   ///< output
  Tensor dy;  ///< gradients only
  Tensor offsets;

  /// Number of heads; Views of rank 1 have one.
  std::int64_t heads() const { return x.rank == 2 ? x.extent[1] : 1; }
};

/// Arrangement of a call's heads in memory, as far as a GPU's kernels differ.
enum class HeadArrangement {
  one,            ///< one head, its elements neighbours
  /// as LayoutLeft: elements are neighbours, heads equally far apart in all tensors; offsets are looked up by
  /// `HeadsApart`
  apart,
  /// as LayoutRight: `heads_side_by_side` neighbouring heads, a stride that the compiler knows (`Heads<4>`)
  side_by_side,
  rows_of_heads,  ///< any strides; heads are nearer to each other than elements are, so rows are numbered row by row
  heads_of_rows   ///< any strides; rows are numbered head by head
};

/// Number of heads side by side that has kernels of its own: a warp that processes a row does so for all heads at once,
/// as long as its lanes hold that.
///
///   H200, f32, us, 2^20 rows of all heads together | rank 1 | LayoutRight | LayoutLeft
///   softmax, 32 in the mean                        | 92     | 105         | 95
///   softmax, 10 in the mean                        | 51     | 50          | 56
///   softmax, 32 each                               | 90     | 83          | 93
///   softmax, 300000 of 100 in the mean             | 85     | 96          | 89
///   softmax, 10^6 of 10 and a long one             | 46     | 53          | 50
///   softmax_backward, 32 in the mean               | 126    | 119         | 134
///   softmax_backward, 10 in the mean               | 59     | 60          | 65
///   softmax_backward, 32 each                      | 115    | 113         | 121
///   softmax_backward, 300000 of 100 in the mean    | 111    | 167         | 111
///   softmax_backward, 10^6 of 10 and a long one    | 60     | 70          | 65
///
/// (2026-11-26.) Rank 1 processes rows of 32 and 100 by FlatRows, which heads side by side have no kernel for. Of
/// gradients of 100 elements a warp holds two heads at a time, and so reads each line twice; a long row of several
/// heads is read once a head.
inline constexpr int heads_side_by_side = 4;

KOKKOSNN_EXPORT HeadArrangement arrangement_of(RowOperator op, const SegmentedTensors& tensors);

/// Checks a call on the host: throws std::invalid_argument for extents that do not fit, a scale out of range, overlap.
KOKKOSNN_EXPORT void validate_segmented(const char* function, RowOperator op, const SegmentedTensors& tensors,
                                        double scale);

/// Throws the std::invalid_argument about a row's offsets.
[[noreturn]] KOKKOSNN_EXPORT void raise_bad_offsets(const char* function, std::int64_t row, const std::string& begin,
                                                    const std::string& end, std::int64_t elements);

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_SEGMENTED_PLAN_HPP
