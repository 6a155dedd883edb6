// SPDX-License-Identifier: Apache-2.0
#include "policy.hpp"

#include <cstdint>
#include <limits>

// What the gradients change of the backends' policies. On GPUs by rule, where no table says more: a thread holds half as
// many packs, of two tensors, so the loads in flight are those of the forward operators. What came of it on one H200,
// 2026-11-22, as shares of a copy of the same bytes: softmax_backward f32 4096 x 1024 0.93, x 4096 0.95, x 8192 0.99, x
// 12672 1.00, x 16384 1.00, bf16 16384 x 8192 1.00; log_softmax_backward f32 4096 x 1024 0.92, x 4096 0.94, x 12672 1.00
// (since y and dy are kept to the last: 0.98, 1.02, 1.03 of the first three and 0.98, 1.00, 1.01). By 8 packs, in 100
// registers: x 1024 0.92, x 4096 0.96. split_row, f32 1024 x 50257 0.79, 512 x 131072 0.81, bf16 2048 x 50257 0.82, x
// 128256 0.84.

namespace KokkosNN::Impl {
namespace {

constexpr RegisterPolicy registers_gpu[] = {
    {4, 1, 128},
    {64, 2, 128},
    {4096, 4, 64},
};

// Of those that sum over a row, on CUDA. Microseconds with 134 MB a tensor, on one H200, 2026-11-25.
constexpr RegisterPolicy registers_v2[] = {
    {2, 1, 128},
    {3, 2, 128},      // f64 x 6: 104.6, with 1 pack 114.8, with 4 110.8
    {4, 1, 128},
    {8, 2, 128},
    {10, 4, 128},     // x 18: 100.7, with 2 packs 113.0
    {12, 2, 128, 4},  // log_softmax_backward x 24: 101.4, with 2 packs 109.2
    {16, 2, 128},
    {24, 4, 128},     // x 36: 99.2, with 2 packs 114.7
    {32, 2, 128},
    {50, 4, 128},     // x 77: 105.0, with 2 packs 123.6; x 101: 98.0 and 107.2
    {64, 2, 128},
    {4096, 4, 64},
};
constexpr RegisterPolicy registers_softmax_v4[] = {
    {4, 1, 128},
    {16, 2, 128},     // x 64: 96.8, with 4 packs 99.3
    {20, 4, 128},     // x 77: 99.7, with 2 packs 115.0; x 68: 98.0 and 104.6
    {32, 2, 128},     // x 84: 97.2, with 4 packs 98.5
    {53, 2, 128, 4},  // x 150: 97.5, with 2 packs 115.1; x 132: 96.6 and 104.5, with 27 MB a tensor 25.9 and 25.4
    {64, 2, 128},
    {4096, 4, 64},
};
constexpr RegisterPolicy registers_log_softmax_v4[] = {
    {4, 1, 128},
    {5, 4, 128},      // x 20: 104.9, with 2 packs 113.0
    {8, 2, 128},
    {10, 4, 128},     // x 36: 99.8, with 2 packs 122.2
    {12, 2, 128, 4},  // x 48: 97.4, with 2 packs 103.8; with 27 MB a tensor 25.5 and 25.3
    {16, 2, 128},
    {24, 4, 128},     // x 68: 100.0, with 2 packs 127.9; x 92: 97.8 and 107.0
    {26, 2, 128, 4},  // x 101: 101.3, with 2 packs 110.1
    {32, 2, 128},
    {44, 4, 128},     // x 132: 101.1, with 2 packs 129.0; x 176: 96.6 and 108.7
    {57, 2, 128, 4},  // x 197: 101.5, with 2 packs 111.4; with 27 MB a tensor 27.2 and 26.9
    {64, 2, 128},
    {4096, 4, 64},
};
constexpr RegisterPolicy registers_v8[] = {
    {4, 1, 128},
    {5, 2, 128, 4},   // bf16 x 40: 104.5, with 2 packs 112.0
    {8, 2, 128},
    {10, 4, 128},     // x 72: 100.8, with 2 packs 120.1
    {12, 2, 128, 4},  // x 96: 99.9, with 2 packs 103.4; with 27 MB a tensor 25.8 and 25.3
    {16, 2, 128},
    {21, 4, 128},     // x 136: 100.5, with 2 packs 125.7; x 168: 98.8 and 110.6
    {26, 2, 128, 4},  // x 192: 96.9, with 2 packs 103.3; x 208: 98.2 and 100.3
    {32, 2, 128},     // x 216: 99.6, with 4 packs 99.2; x 248: 96.7 and 98.9
    {48, 4, 128},     // x 264: 102.1, with 2 packs 124.2; x 384: 97.1 and 102.0
    {50, 2, 128, 4},  // x 400: 97.4, with 2 packs 100.4
    {64, 2, 128},     // x 512: 95.7, with 4 packs 97.3
    {4096, 4, 64},    // softmax_backward 32768 x 1024: 0.97, in teams of four rows 0.95
};

// Of a log-sum-exp, element by element: nothing but the loads of a thread is kept.
constexpr RegisterPolicy registers_logsumexp[] = {
    {1, 1, 128},
    {4, 2, 128},     // f32 x 16: 83.2, with 1 pack 105.7; bf16 x 24: 95.6 and 129.7
    {64, 4, 128},    // f32 x 36: 91.5, with 2 packs 120.5; x 256: 71.5 and 80.9; bf16 x 288: 82.7 and 113.0; f64 x 72,
                     // on one H100: 109.2 and 139.4
    {4096, 4, 64},
};

// Under a mask, whose columns many rows do without: three packs a thread where they leave no lane idle that two or four
// would. Microseconds of a causal and of a boolean mask, 134 MB a tensor, on one H100, 2026-11-25.
constexpr RegisterPolicy registers_masked_v4[] = {
    {2, 2, 128},      // x 8: 140 and 141, with 1 pack 140 and 153
    {3, 4, 128},      // x 12: 142 and 146, with 1 pack 171 and 192
    {4, 2, 128},
    {6, 3, 128},      // x 20: 138 and 141, with 2 packs 146 and 165
    {8, 2, 128},
    {12, 3, 128},     // x 40: 121 and 141, with 2 packs 137 and 166
    {16, 2, 128},
    {24, 3, 128},     // x 72: 112 and 147, with 2 packs 146 and 183
    {32, 2, 128},
    {48, 3, 128},     // x 136: 109 and 156, with 2 packs 149 and 188
    {53, 2, 128, 4},  // x 208: 102 and 151, with 2 packs 111 and 147
    {64, 2, 128},     // x 256: 101 and 139, with 4 packs 99 and 143
    {96, 3, 128},     // x 264: 107 and 159, with 4 packs 122 and 185
    {4096, 4, 64},    // a boolean mask alone would have 2 from x 900 on: x 4096 102 and 229, with 2 packs 114 and 189
};
constexpr RegisterPolicy registers_masked_v8[] = {
    {1, 1, 128},
    {2, 2, 128},      // bf16 x 16: 141 and 151, with 1 pack 159 and 182
    {3, 3, 128},      // x 24: 143 and 151, with 1 pack 201 and 242
    {4, 2, 128},
    {6, 3, 128},      // x 40: 137 and 169, with 2 packs 166 and 229
    {8, 2, 128},
    {12, 3, 128},     // x 72: 131 and 183, with 2 packs 181 and 256
    {16, 2, 128},     // x 128: 117 and 155, with 4 packs 110 and 163
    {24, 3, 128},     // x 136: 130 and 198, with 2 packs 192 and 272
    {32, 2, 128, 4},  // x 208: 111 and 190, with 2 packs 132 and 185; with 27 MB a tensor 30 and 50, 33 and 46
    {48, 3, 128},     // x 264: 130 and 207, with 2 packs 193 and 275
    {64, 2, 128, 4},  // x 512: 102 and 167, with 2 packs 113 and 157
    {96, 3, 128},     // x 520: 128 and 212, with 4 packs 149 and 268
    {4096, 4, 64},
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

/// The table of a gradient on CUDA: by rule where it was not measured.
RegisterTable registers_cuda(RowOperator op, int pack, bool moves_packs) {
  if (!moves_packs) return registers_gpu;
  switch (op) {
    case RowOperator::softmax_backward:
      return by_pack(pack, registers_v2, registers_softmax_v4, registers_v8);
    case RowOperator::log_softmax_backward:
      return by_pack(pack, registers_v2, registers_log_softmax_v4, registers_v8);
    case RowOperator::logsumexp_backward:
      return by_pack(pack, registers_logsumexp, registers_logsumexp, registers_logsumexp);
    case RowOperator::masked_softmax_backward:
      return by_pack(pack, registers_gpu, registers_masked_v4, registers_masked_v8);
    case RowOperator::softmax:
    case RowOperator::log_softmax:
    case RowOperator::logsumexp:
    case RowOperator::masked_softmax:
    case RowOperator::cross_entropy:
    case RowOperator::cross_entropy_backward:
    case RowOperator::cross_entropy_with_gradient:
    case RowOperator::rms_norm:
    case RowOperator::layer_norm:
    case RowOperator::rms_norm_backward:
    case RowOperator::layer_norm_backward:
      break;
  }
  return registers_gpu;
}

}  // namespace

void tune_for_gradient(Policy& policy, Backend backend, int pack, RowOperator op, bool moves_packs) {
  if (backend == Backend::host) {
    policy.registers = registers_host;
    // softmax_backward, 64 MiB a tensor on two cores of an EPYC, GB/s, stored and streamed: f32 x 33 31 and 23, x 50 31
    // and 29, x 100 34 and 41, x 300 34 and 37, x 781 34 and 40; bf16 x 150 38 and 29, x 300 35 and 30, x 500 36 and 40
    policy.least_nontemporal_row_bytes = 384;
    // bf16 x 781 47 and 34, x 3001 41 and 44; f32 x 781 48.7 and 46, x 3001 41 and 45
    policy.least_nontemporal_row_bytes_apart = 4096;
  } else {
    const bool is_hip = backend == Backend::hip;
    policy.registers  = is_hip ? RegisterTable(registers_hip) : registers_cuda(op, pack, moves_packs);
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
