// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/call/segmented_plan.hpp>

#include "../argument_error.hpp"
#include "policy/segmented.hpp"
#include "rounding.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>

// Ragged rows on the host: what is checked, and the plan.

namespace KokkosNN::Impl {
namespace {

std::int64_t host_chunk_size_of(std::int64_t heads, const SegmentedPolicy& policy) {
  const auto power = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(heads)));
  return std::max<std::int64_t>(policy.least_host_chunk, policy.host_chunk / power);
}

/// Teams that take rows flat and are on a GPU at the same time.
int flat_places(const DeviceTraits& traits) { return traits.multiprocessors * flat_teams_resident; }

/// Neighbouring rows, `mean` elements each in the mean, that a GPU's warp takes flat at a time: whole windows, or less
/// than one.
int rows_of_flat_warp(std::int64_t rows, std::int64_t mean, const SegmentedPolicy& policy, const DeviceTraits& traits) {
  const bool are_full = mean * policy.window_rows > policy.window_elements;
  const int windows   = are_full ? policy.full_windows_of_warp : policy.windows_of_warp;
  const std::int64_t most =
      std::min<std::int64_t>(windows * policy.window_elements / mean, windows * policy.window_rows);
  const int places          = flat_places(traits) * flat_team_size / traits.warp_size;
  const std::int64_t least  = rows / std::numeric_limits<int>::max() + 1;  // there are no more teams than that
  const std::int64_t spread = rows / (std::int64_t(policy.warps_a_place) * places);
  const std::int64_t share  = std::max(least, std::min(most, spread));
  const std::int64_t window = std::max<std::int64_t>(1, most / windows);
  return static_cast<int>(share > window ? share / window * window : share);
}

/// How far ahead of its own a team asks for rows that a later one takes.
std::int64_t rows_ahead(const SegmentedProblem& problem, const SegmentedPlan& plan, const DeviceTraits& traits) {
  const SegmentedPolicy& policy = segmented_policy(problem.element_bytes);
  if (!traits.prefetches || plan.mean > policy.ahead_mean) return 0;
  const int packs             = segment_packs(problem.tensors, problem.accumulator_bytes);
  const int lanes             = plan.has_low_mean ? segment_low_lanes(packs) : segment_row_lanes(packs);
  const std::int64_t teams    = traits.multiprocessors * segment_teams_resident(problem.accumulator_bytes, true);
  const std::int64_t resident = teams * segment_team_size / lanes;
  const double row_bytes      = static_cast<double>(plan.mean) * problem.tensors * problem.element_bytes;
  const double room           = policy.ahead_caches * static_cast<double>(traits.cache) / row_bytes;
  return std::min(resident, static_cast<std::int64_t>(room));
}

/// Whoever reads results next that are more than the cache holds does not find the first of them there: they leave it
/// at once, in order. 2^20 rows of 32 f32 in the mean: 100.5 us, so 99.7.
Eviction eviction_of_results(const SegmentedProblem& problem, const DeviceTraits& traits) {
  if (!traits.evicts_as_told || traits.cache == 0) return Eviction::normal;
  const double bytes = static_cast<double>(problem.elements * problem.heads) * problem.element_bytes;
  return bytes > static_cast<double>(traits.cache) ? Eviction::first : Eviction::normal;
}

/// True if a host's results go past the caches, as these do not hold what the call reads and writes. Neighbouring rows
/// are written in one piece, so that it does not matter how long they are.
bool stores_past_caches(const SegmentedProblem& problem, const DeviceTraits& traits) {
  const double bytes = static_cast<double>(problem.elements * problem.heads) * problem.element_bytes;
  return traits.cache > 0 && (problem.tensors + 1) * bytes >= static_cast<double>(traits.cache);
}

void require_extents(const char* function, const char* name, const Tensor& tensor, const char* of, std::int64_t extent,
                     std::int64_t heads) {
  if (tensor.extent[0] != extent) {
    (ArgumentError(function) << name << " must have " << extent << " elements as " << of << ", but has "
                             << tensor.extent[0])
        .raise();
  }
  if (tensor.rank == 2 && tensor.extent[1] != heads) {
    (ArgumentError(function) << name << " must have " << heads << " heads as the values have, but has "
                             << tensor.extent[1])
        .raise();
  }
}

void require_rows(const char* function, const char* input_name, const SegmentedTensors& tensors) {
  if (!tensors.has_index) {
    if (tensors.offsets.extent[0] >= 1) return;
    (ArgumentError(function) << "row_offsets must have an element more than there are rows, but has none").raise();
  }
  if (tensors.segments < 0) {
    (ArgumentError(function) << "segments must not be negative, but is " << tensors.segments).raise();
  }
  require_extents(function, "index", tensors.offsets, input_name, tensors.x.extent[0], 1);
}

}  // namespace

void validate_segmented(const char* function, RowOperator op, const SegmentedTensors& tensors, double scale) {
  const bool is_lse      = is_reduction(op);
  const char* input_name = is_gradient(op) ? "y" : "values";
  const char* output     = is_gradient(op) ? "dx" : (is_lse ? "lse" : "y");
  validate_scale(function, scale);
  require_rows(function, input_name, tensors);
  if (is_lse) {
    require_extents(function, output, tensors.y, "there are rows", tensors.rows(), tensors.heads());
  } else {
    require_extents(function, output, tensors.y, input_name, tensors.x.extent[0], tensors.heads());
  }
  if (is_gradient(op)) {
    require_extents(function, "dy", tensors.dy, input_name, tensors.x.extent[0], tensors.heads());
  }
  if (element_count(tensors.y) == 0) return;
  validate_output(function, tensors.y);
  if (tensors.x.extent[0] > 0) require_apart(function, input_name, tensors.x, output, tensors.y, !is_lse);
  if (is_gradient(op)) require_apart(function, "dy", tensors.dy, output, tensors.y, true);
  require_apart(function, tensors.name_of_rows(), tensors.offsets, output, tensors.y, false);
}

void validate_segmented_lse(const char* function, const SegmentedTensors& tensors, const Tensor& lse,
                            const Tensor& dlse, double scale) {
  validate_scale(function, scale);
  require_rows(function, "values", tensors);
  const std::int64_t rows = tensors.rows();
  require_extents(function, "lse", lse, "there are rows", rows, tensors.heads());
  require_extents(function, "dlse", dlse, "there are rows", rows, tensors.heads());
  require_extents(function, "dx", tensors.y, "values", tensors.x.extent[0], tensors.heads());
  if (element_count(tensors.y) == 0) return;
  validate_output(function, tensors.y);
  require_apart(function, "values", tensors.x, "dx", tensors.y, true);
  require_apart(function, "lse", lse, "dx", tensors.y, false);
  require_apart(function, "dlse", dlse, "dx", tensors.y, false);
  require_apart(function, tensors.name_of_rows(), tensors.offsets, "dx", tensors.y, false);
}

HeadArrangement arrangement_of(RowOperator op, const SegmentedTensors& tensors) {
  const bool is_lse            = is_reduction(op);
  const Tensor& x              = tensors.x;
  const Tensor& y              = tensors.y;
  const std::int64_t heads     = tensors.heads();
  const std::int64_t elements  = x.extent[0];
  const bool has_dense_offsets = tensors.offsets.extent[0] <= 1 || tensors.offsets.stride[0] == 1;
  const auto all               = [&](const auto& holds) {
    return has_dense_offsets && holds(x) && (is_lse || holds(y)) && (!is_gradient(op) || holds(tensors.dy));
  };
  const bool are_neighbours = all([&](const Tensor& t) { return elements <= 1 || t.stride[0] == 1; });
  if (heads == 1) return are_neighbours ? HeadArrangement::one : HeadArrangement::heads_of_rows;
  // A log-sum-exp has one number for (row, head).
  const bool is_lse_apart = !is_lse || y.stride[1] == y.extent[0] * (y.extent[0] == 1 ? 1 : y.stride[0]);
  const bool are_apart =
      x.stride[1] >= elements && is_lse_apart && all([&](const Tensor& t) { return t.stride[1] == x.stride[1]; });
  if (are_neighbours && are_apart) return HeadArrangement::apart;
  const bool are_beside = heads == heads_side_by_side && all([&](const Tensor& t) {
                            return t.stride[1] == 1 && (elements <= 1 || t.stride[0] == heads);
                          });
  if (are_beside) return HeadArrangement::side_by_side;
  const bool are_heads_nearer = elements > 1 && std::abs(x.stride[1]) < std::abs(x.stride[0]);
  return are_heads_nearer ? HeadArrangement::rows_of_heads : HeadArrangement::heads_of_rows;
}

void raise_bad_offsets(const char* function, std::int64_t row, const std::string& begin, const std::string& end,
                       std::int64_t elements) {
  (ArgumentError(function) << "row_offsets must ascend from 0 or more to " << elements
                           << ", the number of values, at most; row " << row << " has the offsets " << begin << " and "
                           << end)
      .raise();
}

void raise_bad_segment(const char* function, std::int64_t element, const std::string& segment, std::int64_t segments) {
  (ArgumentError(function) << "index must be from 0 to " << segments - 1 << ", segments being " << segments
                           << ", but element " << element << " has " << segment)
      .raise();
}

SegmentedPlan make_segmented_plan(const SegmentedProblem& problem, const DeviceTraits& traits) {
  const SegmentedPolicy& policy = segmented_policy(problem.element_bytes);
  SegmentedPlan plan;
  plan.op              = problem.op;
  plan.type            = problem.type;
  plan.chunks.elements = problem.elements;
  plan.chunks.rows     = problem.rows;
  plan.heads           = problem.heads;
  Chunks& chunks       = plan.chunks;
  const auto cut       = [&](std::int64_t size) {
    chunks.log2_size = std::countr_zero(static_cast<std::uint64_t>(size));
    chunks.count     = std::max<std::int64_t>(1, ceil_div(problem.elements, size));
  };
  if (traits.backend == Backend::host) {
    cut(host_chunk_size_of(problem.heads, policy));
    chunks.overhang         = policy.host_chunk;
    plan.scratch_bytes      = std::size_t(2 * policy.host_chunk * problem.accumulator_bytes);
    plan.scratch_level      = plan.scratch_bytes <= traits.scratch[0] / 2 ? 0 : 1;
    plan.has_long_rows      = problem.elements > chunks.size() + chunks.overhang;
    plan.nontemporal_stores = stores_past_caches(problem, traits);
    return plan;
  }
  const int thread_elements = 4 * segment_packs(problem.tensors, problem.accumulator_bytes);
  plan.warp_elements        = warp_tiles * thread_elements * traits.warp_size;
  plan.team_size            = segment_team_size;
  cut(std::int64_t(plan.team_size) * thread_elements);
  plan.mean                 = std::max<std::int64_t>(1, problem.elements / std::max<std::int64_t>(1, problem.rows));
  plan.has_low_mean         = plan.mean <= policy.low_mean;
  plan.rows_ahead           = rows_ahead(problem, plan, traits);
  plan.has_flat_mean        = plan.mean >= policy.flat_low_mean && plan.mean <= policy.flat_high_mean;
  const std::int64_t rows   = problem.rows * problem.heads;
  plan.rows_of_warp         = rows_of_flat_warp(rows, plan.mean, policy, traits);
  const std::int64_t shares = ceil_div(problem.rows, plan.rows_of_warp) * problem.heads;
  const int warps           = flat_team_size / traits.warp_size;
  plan.flat_teams           = ceil_div(shares, warps);
  if (policy.teams_stay) {
    plan.flat_teams = std::min<std::int64_t>(plan.flat_teams, flat_places(traits));
  }
  plan.eviction      = eviction_of_results(problem, traits);
  plan.has_long_rows = problem.elements > plan.warp_elements;
  return plan;
}

std::string to_string(const SegmentedPlan& plan, const char* kernel, int team_size) {
  return std::string("KokkosNN::segmented_") + to_string(plan.op) + '[' + kernel + ',' + to_string(plan.type) + ",c" +
         std::to_string(plan.chunks.size()) + ",ts" + std::to_string(team_size) + ']';
}

}  // namespace KokkosNN::Impl
