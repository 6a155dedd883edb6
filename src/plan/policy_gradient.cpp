// SPDX-License-Identifier: Apache-2.0
#include "policy.hpp"

#include <cstdint>
#include <limits>
#include <span>

// What the gradients change of the backends' policies. On GPUs by rule: a thread holds half as many packs, of two
// tensors, so the loads in flight are those of the forward operators. What came of it on one H200, 2026-11-22, as
// shares of a copy of the same bytes: softmax_backward f32 4096 x 1024 0.93, x 4096 0.95, x 8192 0.99, x 12672 1.00, x
// 16384 1.00, bf16 16384 x 8192 1.00; log_softmax_backward f32 4096 x 1024 0.92, x 4096 0.94, x 12672 1.00 (since y and
// dy are kept to the last: 0.98, 1.02, 1.03 of the first three and 0.98, 1.00, 1.01). By 8 packs, in 100
// registers: x 1024 0.92, x 4096 0.96. split_row, f32 1024 x 50257 0.79, 512 x 131072 0.81, bf16 2048 x 50257 0.82, x
// 128256 0.84.

namespace KokkosNN::Impl {
namespace {

constexpr RegisterPolicy registers_gpu[] = {
    {4, 1, 128},
    {64, 2, 128},
    {4096, 4, 64},  // softmax_backward bf16 32768 x 1024: 0.97, in teams of four rows 0.95
};

/// Two tensors in the registers that hold one of a forward operator.
constexpr RegisterPolicy registers_hip[] = {
    {4, 1, 256},
    {2048, 2, 256},
};

constexpr RegisterPolicy registers_host[] = {
    {1, 1, 1},
    {2, 2, 1},
    {4, 4, 1},
};

// As policy_cuda.cpp has it, with two tensors that are read.
constexpr EvictionPolicy evictions_gradient[] = {
    {1, Eviction::half_last},  // softmax_backward f32 4096 x 1024: 18.3, 17.7
    {1.6, Eviction::quarter_last},
    // 4096 x 4096: 53.3, 50.3; 4096 x 12672: 150.6, 147.5; 131072 x 1024: 374, 370; bf16 16384 x 8192: 191.8, 188.1
    {std::numeric_limits<double>::infinity(), Eviction::last},
};
// Rows side by side as policy_cuda.cpp has them, up to what gradients were measured with.
constexpr EvictionPolicy evictions_inner_gradient[] = {
    {0.6, Eviction::half_last},
    {1.6, Eviction::quarter_last},
    {5, Eviction::last},
};

}  // namespace

void tune_for_gradient(Policy& policy, Backend backend, int pack) {
  if (backend == Backend::host) {
    policy.registers = registers_host;
  } else {
    const bool is_hip = backend == Backend::hip;
    policy.registers  = is_hip ? std::span<const RegisterPolicy>(registers_hip) : registers_gpu;
    if (!is_hip) {
      policy.evictions        = evictions_gradient;
      policy.inner_evictions  = evictions_inner_gradient;
      // softmax_backward f32 1048576 x 17: 63.5 us, by lanes 93, x 33: 117 and 108; bf16 x 81: 179 and 206, x 99: 250
      // and 211; 16896 x 33 7.9 and 7.9
      policy.staged_row_bytes = pack == 8 ? 160 : 100;
      policy.staged_team_size = 64;
    }
    policy.scratch_packs_per_thread = 2;
    policy.online_long_cols         = INT64_MAX;
    policy.split_few_rows_packs /= 2;
    // f32 512 x 131072: by 32 teams of 256 threads 0.94, by 64 of 128 0.90
    policy.split_small_teams = policy.split_small_teams_alone;
  }
  // Nothing is computed on the way to the sum that a second read of a cached row would have to compute again.
  policy.max_scratch_row_bytes = 0;
}

}  // namespace KokkosNN::Impl
