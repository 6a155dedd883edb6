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

// Ragged rows: how a call's values are cut into chunks, and the plan.

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

/// Whether a warp can take rows as one stretch of memory, wherever in it they begin and end. HIP's lanes take rows one
/// by one, as all do where elements are not neighbours or not of one size, and of doubles.
constexpr bool takes_rows_flat(Backend backend, int x_bytes, int y_bytes, int accumulator_bytes) {
  return backend == Backend::cuda && x_bytes == y_bytes && accumulator_bytes == 4;
}
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

KOKKOSNN_EXPORT HeadArrangement arrangement_of(RowOperator op, const SegmentedTensors& tensors);

/// Checks a call on the host: throws std::invalid_argument for extents that do not fit, a scale out of range, overlap.
KOKKOSNN_EXPORT void validate_segmented(const char* function, RowOperator op, const SegmentedTensors& tensors,
                                        double scale);

/// Throws the std::invalid_argument that says what is wrong with a row's offsets.
[[noreturn]] KOKKOSNN_EXPORT void raise_bad_offsets(const char* function, std::int64_t row, const std::string& begin,
                                                    const std::string& end, std::int64_t elements);

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_SEGMENTED_PLAN_HPP
