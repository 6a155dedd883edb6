// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_SEGMENTED_PLAN_HPP
#define KOKKOSNN_IMPL_CALL_SEGMENTED_PLAN_HPP

#include <KokkosNN/export.hpp>
#include <KokkosNN/impl/call/layout.hpp>
#include <KokkosNN/impl/tuned_shapes.hpp>
#include <KokkosNN/plan.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

// Plan of a call on ragged rows: the chunks of its values, the arrangement of its heads.
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

/// True if a warp can process rows as one range of memory, wherever rows begin and end. HIP's lanes process rows one by
/// one, as all GPUs' do if elements are not neighbours, not of one size, or doubles.
constexpr bool takes_rows_flat(Backend backend, int x_bytes, int y_bytes, int accumulator_bytes) {
  return backend == Backend::cuda && x_bytes == y_bytes && accumulator_bytes == 4;
}

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

KOKKOSNN_EXPORT HeadArrangement arrangement_of(RowOperator op, const SegmentedTensors& tensors);

/// Checks a call on the host: throws std::invalid_argument for extents that do not fit, a scale out of range, overlap.
KOKKOSNN_EXPORT void validate_segmented(const char* function, RowOperator op, const SegmentedTensors& tensors,
                                        double scale);

/// Throws the std::invalid_argument about a row's offsets.
[[noreturn]] KOKKOSNN_EXPORT void raise_bad_offsets(const char* function, std::int64_t row, const std::string& begin,
                                                    const std::string& end, std::int64_t elements);

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_SEGMENTED_PLAN_HPP
