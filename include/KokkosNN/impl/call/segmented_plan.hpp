// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_SEGMENTED_PLAN_HPP
#define KOKKOSNN_IMPL_CALL_SEGMENTED_PLAN_HPP

#include <KokkosNN/export.hpp>
#include <KokkosNN/impl/call/layout.hpp>
#include <KokkosNN/impl/inputs/row_offsets.hpp>
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
  bool nontemporal_stores   = false;             ///< results go past a host's caches
};

KOKKOSNN_EXPORT SegmentedPlan make_segmented_plan(const SegmentedProblem& problem, const DeviceTraits& traits);

/// Label of a kernel whose teams have `team_size` threads: `KokkosNN::segmented_softmax[rows,f32,c4096,ts256]`.
KOKKOSNN_EXPORT std::string to_string(const SegmentedPlan& plan, const char* kernel, int team_size);

/// Views of a call, erased.
struct SegmentedTensors {
  Tensor x;                       ///< values; of a gradient y
  Tensor y;                       ///< output
  Tensor dy;                      ///< gradients only
  Tensor offsets;                 ///< or an index
  bool has_index        = false;  ///< `offsets` has the number of each element's row
  std::int64_t segments = 0;      ///< rows of an index

  std::int64_t rows() const { return has_index ? segments : offsets.extent[0] - 1; }
  const char* name_of_rows() const { return has_index ? "index" : "row_offsets"; }
  /// Number of heads; Views of rank 1 have one.
  std::int64_t heads() const { return x.rank == 2 ? x.extent[1] : 1; }
};

/// Arrangement of a call's heads in memory, as far as a GPU's kernels differ.
enum class HeadArrangement {
  one,  ///< one head, its elements neighbours
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

/// Checks the gradient of a log-sum-exp, whose x and y are x and dx.
KOKKOSNN_EXPORT void validate_segmented_lse(const char* function, const SegmentedTensors& tensors, const Tensor& lse,
                                            const Tensor& dlse, double scale);

/// Throws the std::invalid_argument about a number of an index.
[[noreturn]] KOKKOSNN_EXPORT void raise_bad_segment(const char* function, std::int64_t element,
                                                    const std::string& segment, std::int64_t segments);

/// Throws the std::invalid_argument about a row's offsets.
[[noreturn]] KOKKOSNN_EXPORT void raise_bad_offsets(const char* function, std::int64_t row, const std::string& begin,
                                                    const std::string& end, std::int64_t elements);

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_SEGMENTED_PLAN_HPP
