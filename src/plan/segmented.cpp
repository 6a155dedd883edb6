// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/segmented_plan.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string>

// Ragged rows on the host: what is checked, and the plan.

namespace KokkosNN::Impl {
namespace {

/// A host's chunk. Rows of up to twice as many elements are done in one go, in a cache of the second level; enough
/// chunks for the threads from some 10^5 values on. The same for any number of threads, so that results do not depend
/// on it.
constexpr int host_chunk_size = 8192;

/// Teams that take rows flat and are on a GPU at the same time.
int flat_places(const DeviceTraits& traits) { return traits.multiprocessors * flat_teams_resident; }

/// Neighbouring rows, `mean` elements each in the mean, that a GPU's warp takes flat at a time: whole windows, or less
/// than one.
int rows_of_flat_warp(std::int64_t rows, std::int64_t mean, int x_bytes, const DeviceTraits& traits) {
  const int windows         = flat_windows_of_warp(x_bytes, mean);
  const std::int64_t most   = std::min<std::int64_t>(windows * flat_window_elements / mean, windows * flat_window_rows);
  const int places          = flat_places(traits) * flat_team_size / traits.lanes;
  const std::int64_t least  = rows / std::numeric_limits<int>::max() + 1;  // there are no more teams than that
  const std::int64_t spread = rows / (std::int64_t(flat_warps_a_place) * places);
  const std::int64_t share  = std::max(least, std::min(most, spread));
  const std::int64_t window = std::max<std::int64_t>(1, most / windows);
  return static_cast<int>(share > window ? share / window * window : share);
}

/// How far ahead of its own a team asks for rows that a later one takes.
std::int64_t rows_ahead(const SegmentedProblem& problem, const SegmentedPlan& plan, const DeviceTraits& traits) {
  if (!traits.prefetches || plan.mean > segment_ahead_mean) return 0;
  const int packs             = segment_packs(problem.tensors, problem.accumulator_bytes);
  const int lanes             = plan.has_low_mean ? segment_low_lanes(packs) : segment_row_lanes(packs);
  const std::int64_t teams    = traits.multiprocessors * segment_teams_resident(problem.accumulator_bytes, true);
  const std::int64_t resident = teams * segment_team_size / lanes;
  const double row_bytes      = static_cast<double>(plan.mean) * problem.tensors * problem.element_bytes;
  const double room           = segment_ahead_caches * static_cast<double>(traits.cache) / row_bytes;
  return std::min(resident, static_cast<std::int64_t>(room));
}

/// Whoever reads results next that are more than the cache holds does not find the first of them there: they leave it
/// at once, in order. 2^20 rows of 32 f32 in the mean: 100.5 us, so 99.7.
Eviction eviction_of_results(const SegmentedProblem& problem, const DeviceTraits& traits) {
  if (!traits.evicts_as_told || traits.cache == 0) return Eviction::normal;
  const double bytes = static_cast<double>(problem.elements) * problem.element_bytes;
  return bytes > static_cast<double>(traits.cache) ? Eviction::first : Eviction::normal;
}

template <class... Parts>
[[noreturn]] void fail(const char* function, const Parts&... parts) {
  std::ostringstream text;
  text << "KokkosNN::" << function << ": ";
  (text << ... << parts);
  throw std::invalid_argument(text.str());
}

bool is_same(const Tensor& a, const Tensor& b) {
  return a.data == b.data && a.element_bytes == b.element_bytes && a.extent[0] == b.extent[0] &&
         (a.extent[0] <= 1 || a.stride[0] == b.stride[0]);
}

void require_extent(const char* function, const char* name, const Tensor& tensor, const char* of, std::int64_t extent) {
  if (tensor.extent[0] != extent) {
    fail(function, name, " must have ", extent, " elements as ", of, ", but has ", tensor.extent[0]);
  }
}

void require_apart(const char* function, const char* name, const Tensor& input, const char* output_name,
                   const Tensor& output, bool may_be_same) {
  if ((may_be_same && is_same(input, output)) || !overlaps(input, output)) return;
  fail(function, name, " at ", input.data, ", ", input.extent[0], " elements, and ", output_name, " at ", output.data,
       ", ", output.extent[0], " elements, overlap", may_be_same ? "; only in place (the same View twice) may" : "");
}

}  // namespace

void validate_segmented(const char* function, RowOperator op, const SegmentedTensors& tensors, double scale) {
  const bool is_lse      = op == RowOperator::logsumexp;
  const char* input_name = is_gradient(op) ? "y" : "values";
  const char* output     = is_gradient(op) ? "dx" : (is_lse ? "lse" : "y");
  validate_scale(function, scale);
  if (tensors.offsets.extent[0] < 1) {
    fail(function, "row_offsets must have an element more than there are rows, but has none");
  }
  if (is_lse) {
    require_extent(function, output, tensors.y, "there are rows", tensors.offsets.extent[0] - 1);
  } else {
    require_extent(function, output, tensors.y, input_name, tensors.x.extent[0]);
  }
  if (is_gradient(op)) require_extent(function, "dy", tensors.dy, input_name, tensors.x.extent[0]);
  if (tensors.y.extent[0] == 0) return;
  if (tensors.y.extent[0] > 1 && tensors.y.stride[0] == 0) {
    fail(function, "elements of ", output, " share memory: ", tensors.y.extent[0], " elements of stride 0");
  }
  if (tensors.x.extent[0] > 0) require_apart(function, input_name, tensors.x, output, tensors.y, !is_lse);
  if (is_gradient(op)) require_apart(function, "dy", tensors.dy, output, tensors.y, true);
  require_apart(function, "row_offsets", tensors.offsets, output, tensors.y, false);
}

void raise_bad_offsets(const char* function, std::int64_t row, const std::string& begin, const std::string& end,
                       std::int64_t elements) {
  fail(function, "row_offsets must ascend from 0 or more to ", elements, ", the number of values, at most; row ", row,
       " has the offsets ", begin, " and ", end);
}

SegmentedPlan make_segmented_plan(const SegmentedProblem& problem, const DeviceTraits& traits) {
  SegmentedPlan plan;
  plan.op              = problem.op;
  plan.type            = problem.type;
  plan.chunks.elements = problem.elements;
  plan.chunks.rows     = problem.rows;
  Chunks& chunks       = plan.chunks;
  const auto cut       = [&](std::int64_t size) {
    chunks.log2_size = std::countr_zero(static_cast<std::uint64_t>(size));
    chunks.count     = std::max<std::int64_t>(1, (problem.elements + size - 1) / size);
  };
  if (traits.backend == Backend::host) {
    cut(host_chunk_size);
    chunks.overhang    = host_chunk_size;
    plan.scratch_bytes = std::size_t(2) * host_chunk_size * problem.accumulator_bytes;
    plan.scratch_level = plan.scratch_bytes <= traits.scratch[0] / 2 ? 0 : 1;
    plan.has_long_rows = problem.elements > chunks.size() + chunks.overhang;
    return plan;
  }
  const int thread_elements = 4 * segment_packs(problem.tensors, problem.accumulator_bytes);
  plan.warp_elements        = warp_tiles * thread_elements * traits.lanes;
  plan.team_size            = segment_team_size;
  cut(std::int64_t(plan.team_size) * thread_elements);
  plan.mean                  = std::max<std::int64_t>(1, problem.elements / std::max<std::int64_t>(1, problem.rows));
  plan.has_low_mean          = plan.mean <= segment_low_mean;
  plan.rows_ahead            = rows_ahead(problem, plan, traits);
  plan.has_flat_mean         = plan.mean >= flat_low_mean && plan.mean <= flat_high_mean(problem.element_bytes);
  plan.rows_of_warp          = rows_of_flat_warp(problem.rows, plan.mean, problem.element_bytes, traits);
  const std::int64_t of_team = std::int64_t(plan.rows_of_warp) * (flat_team_size / traits.lanes);
  plan.flat_teams            = (problem.rows + of_team - 1) / of_team;
  if (flat_teams_stay(problem.element_bytes)) {
    plan.flat_teams = std::min<std::int64_t>(plan.flat_teams, flat_places(traits));
  }
  plan.eviction           = eviction_of_results(problem, traits);
  plan.has_long_rows      = problem.elements > plan.warp_elements;
  return plan;
}

std::string to_string(const SegmentedPlan& plan, const char* kernel, int team_size) {
  return std::string("KokkosNN::segmented_") + to_string(plan.op) + '[' + kernel + ',' + to_string(plan.type) + ",c" +
         std::to_string(plan.chunks.size()) + ",ts" + std::to_string(team_size) + ']';
}

}  // namespace KokkosNN::Impl
