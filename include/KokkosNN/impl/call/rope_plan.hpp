// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_ROPE_PLAN_HPP
#define KOKKOSNN_IMPL_CALL_ROPE_PLAN_HPP

#include <KokkosNN/export.hpp>
#include <KokkosNN/impl/call/layout.hpp>
#include <KokkosNN/impl/inputs/rope_rows.hpp>
#include <KokkosNN/options.hpp>
#include <KokkosNN/plan.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

// A call of a rotary embedding on the host: its tensors, the axes that they have as kernels see them, its plan.

namespace KokkosNN::Impl {

/// Views of a call, erased. Without tables cos and sin do not exist, nor do positions where a row's is its index.
struct RopeTensors {
  Tensor x;
  Tensor y;
  Tensor cos;
  Tensor sin;
  Tensor positions;
};

/// Rows of a call. Positions lie along two axes, of which the inner one has the smaller strides; the rows that share a
/// position are its heads.
struct RopeLayout {
  RopeAxis outer;
  RopeAxis inner;
  RopeAxis heads;
  std::int64_t dim          = 0;
  std::int64_t pairs        = 0;  ///< rotated pairs of a row
  std::int64_t x_dim_stride = 1;
  std::int64_t y_dim_stride = 1;
  std::int64_t table_rows   = 0;
  bool sequence_is_outer    = false;
  bool is_in_place          = false;
  bool has_packs = false;  ///< all halves of rows of x and y begin at a 16-byte boundary and have whole packs
  bool has_lines = false;  ///< rows of y begin at a host's cache lines, and have whole ones

  std::int64_t positions() const { return outer.extent * inner.extent; }
  std::int64_t elements() const { return positions() * heads.extent * dim; }
};

/// Checks a call and describes it. Throws std::invalid_argument for extents that do not fit, options out of range,
/// positions outside of the tables and overlap. `x` and `y` are the names of the tensors in messages.
KOKKOSNN_EXPORT RopeLayout normalise_rope(const char* function, const char* x, const char* y,
                                          const RopeTensors& tensors, const RopeOptions& options);

/// Checks an RMSNorm with a rotary embedding besides, whose weight has an element a column, or one a head and column.
KOKKOSNN_EXPORT RopeLayout normalise_rms_norm_rope(const char* function, const RopeTensors& tensors,
                                                   const Tensor& weight, const RmsNormRopeOptions& options);

/// Throws the std::invalid_argument about the position of a group of rows, by the group's number.
[[noreturn]] KOKKOSNN_EXPORT void raise_bad_position(const char* function, const RopeLayout& layout, std::int64_t index,
                                                     std::int64_t position);

/// Problem of a call, as the planner sees it.
struct RopeProblem {
  ElementType type  = ElementType::f32;
  int element_bytes = 4;
  RopeForm form     = RopeForm::half_rotated;
  bool has_tables   = false;
};

/// Plan of a call. A team takes some heads of some positions. A GPU's thread takes a pack of pairs, or a pair where
/// there are no packs, of heads that are `heads_side_by_side` apart.
struct RopePlan {
  ElementType type                = ElementType::f32;
  RopeForm form                   = RopeForm::half_rotated;
  bool has_tables                 = false;
  bool moves_packs                = false;  ///< else element by element
  int pack                        = 1;      ///< elements that a GPU's thread loads at once
  int team_size                   = 1;
  std::int64_t positions_per_team = 1;
  std::int64_t heads_per_team     = 1;
  std::int64_t head_parts         = 1;      ///< teams that share the heads of a position
  int heads_side_by_side          = 1;      ///< heads that a GPU's team processes at a time
  bool positions_first            = false;  ///< neighbouring threads (host: iterations) have neighbouring positions
  bool nontemporal_stores         = false;
  std::int64_t league_size        = 1;
};

KOKKOSNN_EXPORT RopePlan make_rope_plan(const RopeProblem& problem, const RopeLayout& layout,
                                        const DeviceTraits& traits);

/// Plan of an RMSNorm with a rotary embedding. A group of threads takes a position's heads that are `head_parts` apart.
/// A row's bits depend on its length and type and on the form alone.
struct RmsNormRopePlan {
  ElementType type         = ElementType::f32;
  RowForm rows             = RowForm::strided;  ///< aligned: all packs are whole and moved by one access
  RopeForm form            = RopeForm::half_rotated;
  bool has_tables          = false;
  int pack                 = 1;  ///< elements that a thread loads at once
  int threads_per_row      = 1;
  int team_size            = 1;
  int groups_per_team      = 1;  ///< on a host groups that a team takes one after the other
  int heads_per_group      = 1;
  std::int64_t head_parts  = 1;
  std::int64_t league_size = 1;
};

/// `has_aligned_weights`: there are none, or each head's are contiguous and begin at a boundary of 16 bytes.
KOKKOSNN_EXPORT RmsNormRopePlan make_rms_norm_rope_plan(const RopeProblem& problem, const RopeLayout& layout,
                                                        bool has_aligned_weights, const DeviceTraits& traits);

/// Label of the kernel: `KokkosNN::rms_norm_rope[bf16,aligned,half_rotated,tables,v8,l8,h4,ts256]`.
KOKKOSNN_EXPORT std::string to_string(const char* function, const RmsNormRopePlan& plan);

/// Label of the kernel: `KokkosNN::rope[f32,half_rotated,tables,packs,v4,p4,h32,ts256]`.
KOKKOSNN_EXPORT std::string to_string(const char* function, const RopePlan& plan);

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_ROPE_PLAN_HPP
