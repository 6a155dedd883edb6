// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_PLAN_HPP
#define KOKKOSNN_PLAN_HPP

#include <KokkosNN/export.hpp>
#include <KokkosNN/options.hpp>
#include <KokkosNN/vocabulary.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace KokkosNN {

/// The kernel that a plan runs; a strategy has one for most of its rows and others for some.
enum class RowKernel {
  row_in_team,     ///< rows in the threads of a team, or in groups of them, turn by turn
  row_in_lanes,    ///< vector_lanes: all rows in one turn, in lanes of warps
  few_rows,        ///< team_registers: so few rows that all teams run at once
  staged_rows,     ///< vector_lanes: a row a thread, through team scratch by whole packs
  split_row,       ///< teams hold their parts of a row
  split_online,    ///< teams read their parts of a row twice
  split_twice,     ///< teams do not wait for each other, but a second kernel reads the row again
  row_in_cluster,  ///< the teams of a cluster hold their parts of a row
  inner_lanes,     ///< teams hold their columns; of gradients all
  inner_online,    ///< teams read their columns twice
  host_rows,       ///< rows in pieces, each by loops of vectors
  host_inner       ///< blocks of rows side by side, by loops of vectors
};

/// A reduction over rows, freed of rank, layout and axis: `rows` rows of `cols` elements. What the planner sees;
/// strides are in elements. In a gradient x stands for what the forward call left (y; of logsumexp x itself) and y for
/// dx.
struct RowProblem {
  RowOperator op            = RowOperator::softmax;
  ElementType x_type        = ElementType::f32;
  ElementType y_type        = ElementType::f32;
  ElementType dy_type       = ElementType::f32;  ///< gradients: of dy; of lse and dlse
  int x_bytes               = 4;                 ///< size of an element of x, or of dy where that is larger
  int y_bytes               = 4;                 ///< size of an element of y
  int accumulator_bytes     = 4;                 ///< 4: float, 8: double
  std::int64_t rows         = 0;
  std::int64_t cols         = 0;
  std::int64_t x_col_stride = 1;      ///< stride of the reduced axis in x
  std::int64_t y_col_stride = 1;      ///< stride of the reduced axis in y
  std::int64_t inner        = 1;      ///< extent of the axis that inner_lanes can run its lanes over; rows % inner == 0
  bool inner_contiguous     = false;  ///< that axis has unit stride in x and in y
  RowForm form      = RowForm::strided;  ///< as addresses have it; whether columns fill their packs, the planner sees
  bool one_stride   = true;              ///< rows lie along one axis, at one distance
  bool one_piece    = false;  ///< rows of x, of y and of dy lie one behind another from a 16-byte boundary on
  bool element_mask = false;  ///< masks: single elements are looked at, not only a range of columns
  bool is_extended  = false;  ///< cross entropies: labels are smoothed, or logits capped
  bool is_shard     = false;  ///< a rank's columns, for which KokkosNN::mpi has kernels of team_online
};

struct TuningTable;

/// Properties of the machine that plans depend on.
struct DeviceTraits {
  Backend backend           = Backend::host;
  int warp_size             = 1;  ///< hardware threads that can shuffle: 32, 64, or 1 on a host
  int multiprocessors       = 1;  ///< SMs, CUs; on a host the threads
  int max_team_size         = 1;
  int resident_threads      = 1;       ///< threads of split_row that a multiprocessor surely holds at once
  int largest_cluster       = 0;       ///< teams of a cluster at most; 0: there are none
  std::size_t scratch[2]    = {0, 0};  ///< bytes of team scratch at level 0 and 1
  std::size_t large_scratch = 0;  ///< bytes of team scratch that a launch of our own gives; 0: there is no such launch
  std::size_t cache         = 0;  ///< bytes of the last-level cache, of its threads' share on a host; 0: not known
  bool prefetches           = false;  ///< a thread can ask for a row to be brought into that cache
  bool evicts_as_told       = false;  ///< and say when that cache gives up what the thread reads
  const TuningTable* tuning =
      nullptr;  ///< plans that were measured on it, see tuning.hpp; goes before the shipped table
};

/// How one call will run: a plain value, printable, comparable, reusable.
struct RowPlan {
  RowOperator op           = RowOperator::softmax;
  RowStrategy strategy     = RowStrategy::automatic;
  RowKernel kernel         = RowKernel::row_in_team;  ///< which of the strategy's kernels runs
  int max_threads          = 1024;  ///< threads a team that the kernel is compiled for: fewer leave each more registers
  ElementType x_type       = ElementType::f32;
  ElementType y_type       = ElementType::f32;
  ElementType dy_type      = ElementType::f32;  ///< gradients only
  int pack                 = 1;                 ///< elements that a thread loads at once
  int packs_per_thread     = 1;                 ///< packs that a thread holds at a time
  int threads_per_row      = 1;  ///< threads that share a row (inner_lanes: side by side on the inner axis)
  int team_size            = 1;
  int rows_per_team        = 1;  ///< rows (inner_lanes: 1) that a team takes at a time
  std::int64_t rows_ahead  = 0;  ///< a team asks for the rows so far behind its own to be brought into the cache
  Eviction eviction        = Eviction::normal;  ///< of what is read of rows that are contiguous or lie side by side
  int teams_per_row        = 1;                 ///< split_row, row_in_cluster: teams that share a row
  std::int64_t league_size = 1;
  int scratch_level        = 0;
  std::size_t scratch_bytes = 0;                 ///< team scratch
  RowForm form              = RowForm::strided;  ///< of rows that the kernel is compiled for
  bool nontemporal_stores   = false;  ///< on a host: results go past the caches, which do not hold what the call moves
  bool batch_invariant      = false;  ///< as Determinism asks for

  /// Kernels that run one after the other.
  int launches() const { return kernel == RowKernel::split_twice ? 2 : 1; }

  bool operator==(const RowPlan&) const = default;
};

/// Chooses the plan for a problem on a machine: a pure host function, no launch, no allocation on a device.
///
/// \param problem  rows, cols, strides and types
/// \param traits   the machine, from `device_traits(exec)` or made up
/// \param options  determinism, and parts of the plan that the caller fixes
/// \return the plan; `to_string` of it is the kernel's label
/// \throws std::invalid_argument when a forced strategy or size cannot serve; the message says why
KOKKOSNN_EXPORT RowPlan make_plan(const RowProblem& problem, const DeviceTraits& traits,
                                  const SoftmaxOptions& options = {});

/// The kernel's label, the benchmark's name and what a test of a path asserts:
/// `KokkosNN::softmax[team_registers,f32,v4,k4,l64,ts64,row_in_team/576]`. In front of the kernel's name, and of the
/// threads that it is compiled for on a GPU, are the sizes that every plan has; behind it `s16` for 16 teams a row, and
/// `misaligned`.
KOKKOSNN_EXPORT std::string to_string(const RowPlan& plan);

KOKKOSNN_EXPORT const char* to_string(RowStrategy strategy);
KOKKOSNN_EXPORT const char* to_string(RowKernel kernel);

}  // namespace KokkosNN

#endif  // KOKKOSNN_PLAN_HPP
