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

// Ragged rows: how a call's values are cut into chunks, and the numbers behind that.

namespace KokkosNN::Impl {

/// Row offsets of any integral type, read as 64-bit numbers, so that kernels are compiled once for all of them.
struct RowOffsets {
  const void* data    = nullptr;
  std::int64_t stride = 1;
  int bytes           = 8;
  bool is_signed      = true;

  KOKKOS_INLINE_FUNCTION std::int64_t operator[](std::int64_t i) const { return two(i * stride, 0).first; }

  /// The i-th one and the next, or twice the i-th one. Dense ones have stride 1.
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

/// An offset into so many values. Offsets are not trusted: whatever they are, no access leaves the values.
KOKKOS_INLINE_FUNCTION std::int64_t offset_inside(std::int64_t offset, std::int64_t elements) {
  return offset < 0 ? 0 : (offset > elements ? elements : offset);
}

/// The values of a head cut into chunks of one size. A host's team has the rows of all heads that begin in its chunk,
/// up to an overhang into the next ones; a row that goes beyond that is long, and many teams have a part of it.
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

/// Packs of 4 elements of each tensor that a GPU's thread holds at a time: of one tensor 16 floats, with which 48
/// registers do.
constexpr int segment_packs(int tensors, int accumulator_bytes) {
  return std::max(1, 64 / (16 * tensors * (accumulator_bytes / 4)));
}

/// Lanes of a warp that share a short row: they hold 64 elements. With more of them, what a row costs besides its
/// elements would be shared by fewer rows; with less, neighbouring lanes would load what lies far apart. Rows of a low
/// mean length take half as many if they are neighbours in memory. 10^6 rows of 10 f32: 0.51 of copy by two lanes, 0.38
/// by four, when that was chosen.
constexpr int segment_row_lanes(int packs) { return 16 / packs; }
constexpr int segment_low_lanes(int packs) { return segment_row_lanes(packs) / 2; }
inline constexpr int segment_low_mean = 16;
/// Rows of up to so many times what a warp holds are a warp's, which reads those that it does not hold twice.
inline constexpr int warp_tiles = 4;

/// Whether a warp can take rows as one stretch of memory, wherever in it they begin and end. HIP's lanes take rows one
/// by one, as all do where elements are not neighbours or not of one size, and of doubles.
constexpr bool takes_rows_flat(Backend backend, int x_bytes, int y_bytes, int accumulator_bytes) {
  return backend == Backend::cuda && x_bytes == y_bytes && accumulator_bytes == 4;
}
/// The mean lengths for which it does. One H200, microseconds by lanes and flat, 2^20 rows: f32 of 13 in the mean 58.4
/// and 56.1, of 16 71.0 and 62.2, of 16 each 53.1 and 54.9, but of 10 in the mean 51.5 and 53.6, of 10 each 41.7 and
/// 55.0, and 10^6 of 10 with one of 10^6 46.4 and 58.3; bf16 of 10 in the mean 43.0 and 42.7, of 16 67.3 and 48.0, of
/// 16 each 46.5 and 42.3, with the long row 37.3 and 46.4. Shares of copy: f32 rows of 32 in the mean 0.60 and 0.66,
/// 300000 of 100 in the mean 0.54 and 0.60, 131072 of 256 0.72 and 0.71; bf16 0.41 and 0.61, 0.40 and 0.59, 0.49 and
/// 0.67, 100000 of 300 in the mean 0.46 and 0.50.
inline constexpr int flat_low_mean = 12;
constexpr std::int64_t flat_high_mean(int x_bytes) { return x_bytes == 2 ? 512 : 128; }
/// Rows of a window, which a warp takes at a time: its lanes have one each, and the place where the last one ends; and
/// in the mean so many elements of the 1024 for which there is room. Full windows would be cut short where rows are
/// longer than that, and what is left over costs a warp one more.
inline constexpr int flat_window_rows     = 31;
inline constexpr int flat_window_elements = 896;
/// Windows that a warp is to take, and how many warps there are at least for each place on the device. In microseconds,
/// f32, 2^20 rows of 32 in the mean: 28 rows a warp 95.7, 56 95.1, 62 98.7, 84 100.6, 124 115; bf16: 56 67.0, 84 65.8,
/// 124 69.3; 2^19 rows of 64, f32: 28 97.3, 31 99.2, 42 101.8; bf16: 28 66.7, 31 68.0, 42 65.3; 2^20 rows of 16, f32:
/// 31 63.1, 62 63.7, 93 67.8; bf16: 48.8, 47.7, 50.1.
constexpr int flat_windows_of_warp(int x_bytes, std::int64_t mean) {
  return x_bytes == 2 && mean * flat_window_rows > flat_window_elements ? 3 : 2;
}
inline constexpr int flat_warps_a_place = 2;
/// Whether teams stay, as many as the device holds, and take share after share. Rows of floats wait for memory, which
/// is faster where all teams work close to each other, as those that start one after the other do. Microseconds,
/// staying and not, 2^20 rows of 32 in the mean: bf16 62.8 and 64.3, f32 98.9 and 92.7.
constexpr bool flat_teams_stay(int x_bytes) { return x_bytes == 2; }
/// Threads of a team that does, and how many teams a multiprocessor is to have: with 72 registers a thread and 7 KB of
/// shared memory a warp. Instructions of 2^20 rows of 32 f32: 55 million, by lanes 82; a warp waits for what it copies.
inline constexpr int flat_team_size      = 128;
inline constexpr int flat_teams_resident = 7;

/// Threads of a GPU's team, and how many teams a multiprocessor is to have, which is what their registers allow: 48 a
/// thread of the kernel for short rows (2^20 rows of 32 f32 in the mean: 0.59 of copy, with 64 registers and four teams
/// 0.57), 64 of those for long ones, and for doubles, whose exponential has many constants, 128.
inline constexpr int segment_team_size = 256;
constexpr int segment_teams_resident(int accumulator_bytes, bool has_short_rows) {
  return accumulator_bytes == 8 ? 2 : has_short_rows ? 5 : 4;
}

/// Up to which mean length of rows a team asks for rows that later teams will have, and how large a part of the cache
/// may lie between: no farther ahead than the teams that run at the same time. Microseconds without and with that, one
/// H200: 2^22 rows of 10 f32 144.9 and 125.4, gradients of 2^20 of 10 66.1 and 56.4, of 32 in the mean 150 and 132.5,
/// 2^19 of 64 150 and 126, 300000 of 100 117 and 110, but 131072 of 200 99 and 115; those of 100 with three times as
/// much between 137.
inline constexpr int segment_ahead_mean      = 100;
inline constexpr double segment_ahead_caches = 0.1;

/// A row that takes a GPU many teams has up to so many parts: each team that writes one joins the states of all.
inline constexpr int most_parts_of_row = 1024;

/// What planning needs to know of a call.
struct SegmentedProblem {
  RowOperator op        = RowOperator::softmax;
  ElementType type      = ElementType::f32;  ///< of the values
  int element_bytes     = 4;
  int tensors           = 1;  ///< that are read
  int accumulator_bytes = 4;
  std::int64_t elements = 0;  ///< of a head
  std::int64_t rows     = 0;  ///< of a head
  std::int64_t heads    = 1;
};

/// How a call will run.
struct SegmentedPlan {
  RowOperator op            = RowOperator::softmax;
  ElementType type          = ElementType::f32;
  Chunks chunks             = {};  ///< a host's; of a GPU those of a row that takes many teams
  std::int64_t heads        = 1;
  int team_size             = 1;  ///< of all kernels, but of a GPU's first one where its warps take rows flat
  int warp_elements         = 1;  ///< of a row that a GPU's warp does; longer ones take teams
  int scratch_level         = 0;
  std::size_t scratch_bytes = 0;
  bool has_low_mean         = false;             ///< length of rows, for those that are not taken flat
  std::int64_t mean         = 1;                 ///< length of rows
  std::int64_t rows_ahead   = 0;                 ///< how far ahead of its own a team asks for rows; 0: it does not
  bool has_flat_mean        = false;             ///< one for which a GPU's warps take rows flat
  int rows_of_warp          = 1;                 ///< where they do
  std::int64_t flat_teams   = 1;                 ///< that take rows so
  Eviction eviction         = Eviction::normal;  ///< of their results, where warps take rows flat
  bool has_long_rows        = false;             ///< there may be some
};

KOKKOSNN_EXPORT SegmentedPlan make_segmented_plan(const SegmentedProblem& problem, const DeviceTraits& traits);

/// The label of a kernel whose teams have so many threads: `KokkosNN::segmented_softmax[rows,f32,c4096,ts256]`.
KOKKOSNN_EXPORT std::string to_string(const SegmentedPlan& plan, const char* kernel, int team_size);

/// The Views of a call, erased.
struct SegmentedTensors {
  Tensor x;   ///< values; of a gradient y
  Tensor y;   ///< output
  Tensor dy;  ///< gradients only
  Tensor offsets;

  /// Of rank 1 there is one.
  std::int64_t heads() const { return x.rank == 2 ? x.extent[1] : 1; }
};

/// How the heads of a call lie in memory, as far as a GPU's kernels tell.
enum class HeadArrangement {
  one,            ///< one head, its elements neighbours
  apart,          ///< elements are neighbours, and heads are equally far from each other in all tensors
  side_by_side,   ///< `heads_side_by_side` heads are neighbours, and the next element's follow
  rows_of_heads,  ///< any strides; heads are nearer to each other than elements are
  heads_of_rows   ///< any strides
};

/// Heads side by side that there are kernels for. Microseconds on one H200, f32, of one call on 2^20 rows of all heads
/// together of rank 1, of LayoutRight and of LayoutLeft: softmax of rows of 32 in the mean 92, 105, 95, of 10 in the
/// mean 51, 50, 56, of 32 each 90, 83, 93, 300000 of 100 in the mean 85, 96, 89, 10^6 of 10 with a long one 46, 53, 50;
/// softmax_backward 126, 119, 134; 59, 60, 65; 115, 113, 121; 111, 167, 111; 60, 70, 65 (2026-11-26). Rank 1 takes rows
/// of 32 and 100 flat (FlatRows), which heads side by side have no kernel for; of gradients of 100 elements a warp
/// holds two heads at a time, and so reads each line twice; a long row of several heads is read once a head.
inline constexpr int heads_side_by_side = 4;

KOKKOSNN_EXPORT HeadArrangement arrangement_of(RowOperator op, const SegmentedTensors& tensors);

/// Checks a call on the host: throws std::invalid_argument for extents that do not fit, a scale out of range, overlap.
KOKKOSNN_EXPORT void validate_segmented(const char* function, RowOperator op, const SegmentedTensors& tensors,
                                        double scale);

/// Throws the std::invalid_argument that says what is wrong with a row's offsets.
[[noreturn]] KOKKOSNN_EXPORT void raise_bad_offsets(const char* function, std::int64_t row, const std::string& begin,
                                                    const std::string& end, std::int64_t elements);

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_SEGMENTED_PLAN_HPP
