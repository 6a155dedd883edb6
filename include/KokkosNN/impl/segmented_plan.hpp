// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_SEGMENTED_PLAN_HPP
#define KOKKOSNN_IMPL_SEGMENTED_PLAN_HPP

#include <KokkosNN/impl/layout.hpp>
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

  KOKKOS_INLINE_FUNCTION std::int64_t operator[](std::int64_t i) const {
    const std::int64_t k = i * stride;
    if (bytes == 8) return static_cast<const std::int64_t*>(data)[k];
    if (bytes == 4) return is_signed ? at<std::int32_t>(k) : at<std::uint32_t>(k);
    if (bytes == 2) return is_signed ? at<std::int16_t>(k) : at<std::uint16_t>(k);
    return is_signed ? at<std::int8_t>(k) : at<std::uint8_t>(k);
  }

 private:
  template <class T>
  KOKKOS_INLINE_FUNCTION std::int64_t at(std::int64_t k) const {
    return static_cast<const T*>(data)[k];
  }
};

/// The values cut into chunks of one size. A team has the rows that begin in its chunk, up to an overhang into the next
/// one; a row that goes beyond that is long, and many teams have a part of it.
struct Chunks {
  std::int64_t elements = 0;  ///< of all values
  std::int64_t rows     = 0;
  std::int64_t count    = 1;
  int log2_size         = 0;
  int overhang          = 0;

  KOKKOS_INLINE_FUNCTION int size() const { return 1 << log2_size; }
  KOKKOS_INLINE_FUNCTION std::int64_t begin(std::int64_t c) const { return c << log2_size; }
  KOKKOS_INLINE_FUNCTION std::int64_t end(std::int64_t c) const { return inside(begin(c + 1)); }
  KOKKOS_INLINE_FUNCTION std::int64_t of(std::int64_t element) const { return element >> log2_size; }
  /// Offsets are not trusted: whatever they are, no access leaves the values.
  KOKKOS_INLINE_FUNCTION std::int64_t inside(std::int64_t offset) const {
    return offset < 0 ? 0 : (offset > elements ? elements : offset);
  }
  KOKKOS_INLINE_FUNCTION bool is_long(std::int64_t row_begin, std::int64_t row_end) const {
    return row_end > begin(of(row_begin) + 1) + overhang;
  }
};

/// Bytes of values, in the accumulator type, that a thread of a GPU's team holds at once of each tensor. Of one tensor
/// 16 floats: 64 registers, so four teams of 256 threads a multiprocessor, whose loads and arithmetic overlap.
constexpr int segment_bytes_per_thread(int tensors) { return 64 / tensors; }

/// A GPU's team takes the offsets of so many rows a thread at a time; at mean lengths below 8 it takes several turns.
inline constexpr int segment_rows_per_thread = 2;

/// A team finds long rows in so many chunks, and joins their parts.
inline constexpr int chunks_per_join = 256;
/// Rows of more chunks than this are joined by a whole team instead of a thread.
inline constexpr int chunks_joined_by_thread = 32;

/// Teams are compiled for this size at most, so many a multiprocessor: of 65536 registers 64 a thread; a double's
/// exponential, with its constants, needs more than 80.
inline constexpr int segment_team_size = 256;
constexpr int segment_teams_resident(int accumulator_bytes) { return accumulator_bytes == 8 ? 2 : 4; }

/// What planning needs to know of a call.
struct SegmentedProblem {
  RowOperator op        = RowOperator::softmax;
  ElementType type      = ElementType::f32;  ///< of the values
  int tensors           = 1;                 ///< that a team keeps in scratch
  int accumulator_bytes = 4;
  int state_bytes       = 8;  ///< of what is known of a part of a row
  std::int64_t elements = 0;
  std::int64_t rows     = 0;
};

inline constexpr int max_length_classes = 32;
inline constexpr int chunk_facts_bytes  = 32;

/// Where a GPU's team keeps what it has in scratch, in bytes from its begin. Part of the kernel's arguments, as
/// registers are short.
struct SegmentedScratch {
  int plane  = 0;  ///< elements of one tensor, padding included
  int pairs  = 0;  ///< exchanged states
  int starts = 0;  ///< of a turn's rows
  int order  = 0;  ///< of a turn's rows, by length
  int facts  = 0;  ///< about the chunk
  int counts = 0;  ///< of rows of about one length, and of those before
  int bytes  = 0;  ///< of all
};

SegmentedScratch segmented_scratch(int team_size, int lanes, int span, int tensors, int accumulator_bytes,
                                   int state_bytes);

/// How a call will run.
struct SegmentedPlan {
  RowOperator op            = RowOperator::softmax;
  ElementType type          = ElementType::f32;
  Chunks chunks             = {};
  int team_size             = 1;
  int scratch_level         = 0;
  std::size_t scratch_bytes = 0;
  SegmentedScratch scratch  = {};     ///< of a GPU's team
  int chunks_per_writer     = 1;      ///< chunks that a team of the last kernel looks at
  bool has_long_rows        = false;  ///< there may be some
};

SegmentedPlan make_segmented_plan(const SegmentedProblem& problem, const DeviceTraits& traits);

/// A kernel's label: `KokkosNN::segmented_softmax[chunks,f32,c4096,ts256]`.
std::string to_string(const SegmentedPlan& plan, const char* kernel);

/// Elements between the padding of a GPU's team scratch: as many as there are banks.
KOKKOS_INLINE_FUNCTION constexpr int padded_every(int accumulator_bytes) { return 128 / accumulator_bytes; }

/// The Views of a call, erased.
struct SegmentedTensors {
  Tensor x;   ///< values; of a gradient y
  Tensor y;   ///< output
  Tensor dy;  ///< gradients only
  Tensor offsets;
};

/// Checks a call on the host: throws std::invalid_argument for extents that do not fit, a scale out of range, overlap.
void validate_segmented(const char* function, RowOperator op, const SegmentedTensors& tensors, double scale);

/// Throws the std::invalid_argument that says what is wrong with a row's offsets.
[[noreturn]] void raise_bad_offsets(const char* function, std::int64_t row, std::int64_t begin, std::int64_t end,
                                    std::int64_t elements);

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_SEGMENTED_PLAN_HPP
