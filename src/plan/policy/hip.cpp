// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "policy.hpp"

#include <KokkosNN/impl/kernel_shapes.hpp>

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

constexpr auto is_logsumexp = is_one_of<RowOperator::logsumexp, RowOperator::masked_logsumexp>;

constexpr RegisterEntry rows[] = {
    {8, 2, 256},     // few lanes a row, and two loads each in flight
    {4096, 4, 256},  // all that 1024 threads hold
};
// Gradients and norms, of which a thread holds fewer packs (`most_packs`).
constexpr bool holds_half(RowOperator op) { return most_packs(Backend::hip, op) < max_packs_per_thread(Backend::hip); }
constexpr RegisterEntry half_rows[] = {
    {2048, 2, 256},
};
constexpr Keyed<RegisterTable> register_tables[] = {{{.op = holds_half}, half_rows}, {{}, rows}};

constexpr Keyed<RegisterPolicy> registers[] = {
    {{}, {.few_rows_team_size = 256, .few_rows_largest_team = 256}},  // a wavefront on each SIMD
};
constexpr Keyed<StagedPolicy> staged[]   = {{{}, {}}};  // it has no such kernel
constexpr Keyed<ScratchPolicy> scratch[] = {
    {{.op = holds_half}, {.packs_per_thread = 2, .team_size = 256}},
    {{}, {.packs_per_thread = 4, .team_size = 256}},
};
constexpr Keyed<OnlinePolicy> online[] = {
    {{}, {.team_size = 512}},  // two teams a CU, of which one loads while the other joins its sums
};
constexpr Keyed<ReductionPolicy> reductions[] = {
    {{},
     {
         .online_packs     = 2049,  // half of what a team's registers hold: below, they read a row as well
         .packs_per_thread = 64,    // as CUDA's
         .team_size        = 256,   // a wavefront on each SIMD
         .largest_team     = 512,
         .fill             = 0.8,  // as CUDA's
         .full_packs       = 256,  // a wavefront's 4 packs a thread
     }},
};
constexpr SplitPolicy split_rows = {
    .team_size    = 256,  // of 4 wavefronts a SIMD that are sure to be resident, 3 are used
    .twice_caches = 1,    // of the L2 of one die; the Infinity Cache is not counted
};
constexpr SplitPolicy split_logsumexp = [] {
  SplitPolicy policy = split_rows;
  policy.teams_loop  = true;  // as CUDA's
  return policy;
}();
constexpr Keyed<SplitPolicy> split[] = {{{.op = is_logsumexp}, split_logsumexp}, {{}, split_rows}};

constexpr Keyed<SplitChoice> split_choice[] = {
    {{.op = holds_half}, {.min_cols = least_split_columns, .few_rows_packs = 2048}},
    {{}, {.min_cols = least_split_columns, .few_rows_packs = 4096}},  // as CUDA's; what one team holds
};
constexpr Keyed<ClusterPolicy> clusters[] = {{{}, {}}};

constexpr InnerPolicy inner_rows = {
    .lanes               = 32,  // of 4 bytes: a line
    .least_lanes         = 16,  // half a line
    .team_size           = 1024,
    .max_team_size       = 1024,  // 16 wavefronts, 4 a SIMD
    .lanes_looping       = 32,
    .least_lanes_looping = 16,
    .looping_team_size   = 256,
};
constexpr InnerPolicy inner_logsumexp = [] {
  InnerPolicy policy = inner_rows;
  policy.least_lanes = policy.lanes;  // as CUDA's
  return policy;
}();
constexpr Keyed<InnerPolicy> inner[] = {{{.op = is_logsumexp}, inner_logsumexp}, {{}, inner_rows}};

constexpr Keyed<EvictionTable> evictions[] = {{{}, {}}};  // loads do not tell
constexpr Keyed<PrefetchPolicy> prefetch[] = {{{}, {}}};  // there is no instruction that only asks for memory
constexpr Keyed<HostPolicy> host[]         = {{{}, {}}};

constexpr BackendPolicy policy{register_tables,
                               registers,
                               staged,
                               scratch,
                               online,
                               reductions,
                               split,
                               split_choice,
                               clusters,
                               inner,
                               evictions,
                               prefetch,
                               host};
static_assert(is_complete(policy));

}  // namespace

const BackendPolicy& hip_policy() { return policy; }

}  // namespace KokkosNN::Impl
