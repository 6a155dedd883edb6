// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_SRC_PLAN_POLICY_CUDA_GRADIENTS_HPP
#define KOKKOSNN_SRC_PLAN_POLICY_CUDA_GRADIENTS_HPP

#include "policy.hpp"

// Packs a thread of the gradients on CUDA: by rule, where no table says more: a thread holds half as many packs, of
// two tensors, so the loads in flight are those of the forward operators. What came of it on one H200, 2026-11-22, as
// shares of a copy of the same bytes: softmax_backward f32 4096 x 1024 0.93, x 4096 0.95, x 8192 0.99, x 12672 1.00, x
// 16384 1.00, bf16 16384 x 8192 1.00; log_softmax_backward f32 4096 x 1024 0.92, x 4096 0.94, x 12672 1.00 (since y
// and dy are kept to the last: 0.98, 1.02, 1.03 of the first three and 0.98, 1.00, 1.01). By 8 packs, in 100
// registers: x 1024 0.92, x 4096 0.96. split_row, f32 1024 x 50257 0.79, 512 x 131072 0.81, bf16 2048 x 50257 0.82, x
// 128256 0.84.

namespace KokkosNN::Impl::CudaTables {

inline constexpr RegisterEntry gradient_by_rule[] = {
    {4, 1, 128},
    {64, 2, 128},
    {4096, 4, 64},
};

// Gradients that sum over a row, on CUDA. Microseconds with 134 MB a tensor, on one H200, 2026-11-25.
inline constexpr RegisterEntry gradient_v2[] = {
    {2, 1, 128},
    {3, 2, 128},  // f64 x 6: 104.6, with 1 pack 114.8, with 4 110.8
    {4, 1, 128},
    {8, 2, 128},
    {10, 4, 128},     // x 18: 100.7, with 2 packs 113.0
    {12, 2, 128, 4},  // log_softmax_backward x 24: 101.4, with 2 packs 109.2
    {16, 2, 128},
    {24, 4, 128},  // x 36: 99.2, with 2 packs 114.7
    {32, 2, 128},
    {50, 4, 128},  // x 77: 105.0, with 2 packs 123.6; x 101: 98.0 and 107.2
    {64, 2, 128},
    {4096, 4, 64},
};

inline constexpr RegisterEntry softmax_gradient_v4[] = {
    {4, 1, 128},
    {16, 2, 128},     // x 64: 96.8, with 4 packs 99.3
    {20, 4, 128},     // x 77: 99.7, with 2 packs 115.0; x 68: 98.0 and 104.6
    {32, 2, 128},     // x 84: 97.2, with 4 packs 98.5
    {53, 2, 128, 4},  // x 150: 97.5, with 2 packs 115.1; x 132: 96.6 and 104.5, with 27 MB a tensor 25.9 and 25.4
    {64, 2, 128},
    {4096, 4, 64},
};

inline constexpr RegisterEntry log_softmax_gradient_v4[] = {
    {4, 1, 128},
    {5, 4, 128},  // x 20: 104.9, with 2 packs 113.0
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

inline constexpr RegisterEntry gradient_v8[] = {
    {4, 1, 128},
    {5, 2, 128, 4},  // bf16 x 40: 104.5, with 2 packs 112.0
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

// Gradient of a log-sum-exp, element by element: nothing but the loads of a thread is kept.
inline constexpr RegisterEntry logsumexp_gradient[] = {
    {1, 1, 128},
    {4, 2, 128},   // f32 x 16: 83.2, with 1 pack 105.7; bf16 x 24: 95.6 and 129.7
    {64, 4, 128},  // f32 x 36: 91.5, with 2 packs 120.5; x 256: 71.5 and 80.9; bf16 x 288: 82.7 and 113.0; f64 x 72,
                   // on one H100: 109.2 and 139.4
    {4096, 4, 64},
};

}  // namespace KokkosNN::Impl::CudaTables

#endif  // KOKKOSNN_SRC_PLAN_POLICY_CUDA_GRADIENTS_HPP
