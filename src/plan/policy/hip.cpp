// SPDX-License-Identifier: Apache-2.0
#include "policy.hpp"

// No AMD GPU was at hand: these are rules from what CDNA 2 and 3 are, and what hipcc says of the kernels
// (perf/results/hip-resources.md); perf/tune finds a device's own plans. A CU has 4 SIMDs, each for up to 8 wavefronts
// of 64 lanes, 512 registers a lane and SIMD (512 KB in all), and 64 KB of LDS; a line of L2 is 128 bytes.
//
// - A team has at least 256 threads where it can choose, a wavefront on each SIMD.
// - A thread holds up to 4 packs (max_packs_per_thread), two or more of them as long as that leaves a row to one
//   wavefront: what needs no LDS and no barrier.
// - Level-0 scratch is LDS. A row of 16384 floats takes all of it, and so the CU, where registers hold the same row in
//   an eighth of theirs.

namespace KokkosNN::Impl {
namespace {

constexpr RegisterPolicy registers[] = {
    {8, 2, 256},     // few lanes a row, and two loads each in flight
    {4096, 4, 256},  // all that 1024 threads hold
};

}  // namespace

Policy policy_hip(int) {
  Policy policy{};
  policy.registers                 = registers;
  policy.few_rows_team_size        = 256;  // a wavefront on each SIMD
  policy.few_rows_threads          = 0;    // it has no such kernel
  policy.staged_row_bytes          = 0;    // nor such a one
  policy.scratch_packs_per_thread  = 4;
  policy.scratch_team_size         = 256;
  policy.max_scratch_row_bytes     = 0;      // see above
  policy.prefetch_caches           = 0;      // there is no instruction that only asks for memory
  policy.prefetch_last_caches      = 0;
  policy.prefetch_packs            = 0;
  policy.prefetch_few_packs        = 0;
  policy.prefetch_online_caches    = 0;
  policy.online_team_size          = 512;    // two teams a CU, of which one loads while the other joins its sums
  policy.online_long_cols          = INT64_MAX;
  policy.reduce_min_packs          = 2049;   // half of what a team's registers hold: below, they read a row as well
  policy.reduce_packs_per_thread   = 64;     // as CUDA's
  policy.reduce_team_size          = 256;    // a wavefront on each SIMD
  policy.reduce_fill               = 0.8;    // as CUDA's
  policy.reduce_full_packs         = 256;    // a wavefront's 4 packs a thread
  policy.split_team_size           = 256;    // of 4 wavefronts a SIMD that are sure to be resident, 3 are used
  policy.split_twice_caches        = 1;      // of the L2 of one die; the Infinity Cache is not counted
  policy.loss_edges_max_packs       = INT64_MAX;
  policy.split_min_cols            = 16384;  // as CUDA's
  policy.split_few_rows_packs      = 4096;   // what one team holds
  policy.inner_lanes               = 32;     // of 4 bytes: a line
  policy.inner_least_lanes         = 16;     // half a line
  policy.inner_team_size           = 1024;
  policy.inner_max_team_size       = 1024;   // 16 wavefronts, 4 a SIMD
  policy.inner_lanes_looping       = 32;
  policy.inner_least_lanes_looping = 16;
  policy.inner_looping_team_size   = 256;
  policy.elements_per_turn         = 1;
  return policy;
}

}  // namespace KokkosNN::Impl
