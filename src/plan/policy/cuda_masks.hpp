// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_SRC_PLAN_POLICY_CUDA_MASKS_HPP
#define KOKKOSNN_SRC_PLAN_POLICY_CUDA_MASKS_HPP

#include "policy.hpp"

// Packs a thread of rows under a mask on CUDA, and of their gradients; measured as cuda.cpp says.

namespace KokkosNN::Impl::CudaTables {

// Rows under a mask: fewer threads a row, of which fewer have nothing to do. Microseconds of a causal mask, 134 MB.
inline constexpr RegisterEntry masked_v4[] = {
    {4, 2, 128},
    {8, 4, 128},   // x 24: 90.0, with 2 packs 123.3; x 32: 76.5, with 2 96.3, with 8 163
    {12, 8, 128},  // x 40: 84.3, with 4 packs 97.4
    {16, 4, 128},
    {8192, 8, 128},  // x 72: 84.4, with 4 packs 106.8; x 128: 63.0 and 69.2; x 256: 61.1 and 69.5; 262144 x 512: 1.12
                     // of copy, with 4 0.97; 131072 x 2048: 1.09 and 0.91; boolean 131072 x 2048: 0.58 and 0.52
};

inline constexpr RegisterEntry masked_v8[] = {
    {2, 2, 128},
    {8, 4, 128},   // x 24: 100.6, with 2 packs 129.8; x 48: 88.9 and 126.7
    {12, 8, 128},  // x 80: 89.5, with 4 packs 104.1
    {16, 4, 128},
    {8192, 8, 128},  // x 144: 96.7, with 4 packs 115.8; x 256: 64.1 and 70.8; x 512: 63.5 and 71.2; 131072 x 1024: 1.07
                     // of copy, with 4 1.00
};

// Those of 16 bits where elements are moved one by one
inline constexpr RegisterEntry masked_elements_v8[] = {
    {64, 2, 128},   // x 65: 330, with 4 packs 367; x 197: 242 and 320; x 500: 148 and 176
    {128, 4, 128},  // x 577: 252, with 8 packs 416
    {8192, 8, 128},
};

// Under a mask, whose columns many rows do without: three packs a thread where they leave no lane idle that two or four
// would. Microseconds of a causal and of a boolean mask, 134 MB a tensor, on one H100, 2026-11-25.
// Not measured: fewer packs where few lanes hold a row.
inline constexpr RegisterEntry masked_logarithm[] = {
    {8, 2, 128},
    {8192, 8, 128},
};

inline constexpr RegisterEntry masked_gradient_v4[] = {
    {2, 2, 128},  // x 8: 140 and 141, with 1 pack 140 and 153
    {3, 4, 128},  // x 12: 142 and 146, with 1 pack 171 and 192
    {4, 2, 128},
    {6, 3, 128},  // x 20: 138 and 141, with 2 packs 146 and 165
    {8, 2, 128},
    {12, 3, 128},  // x 40: 121 and 141, with 2 packs 137 and 166
    {16, 2, 128},
    {24, 3, 128},  // x 72: 112 and 147, with 2 packs 146 and 183
    {32, 2, 128},
    {48, 3, 128},     // x 136: 109 and 156, with 2 packs 149 and 188
    {53, 2, 128, 4},  // x 208: 102 and 151, with 2 packs 111 and 147
    {64, 2, 128},     // x 256: 101 and 139, with 4 packs 99 and 143
    {96, 3, 128},     // x 264: 107 and 159, with 4 packs 122 and 185
    {4096, 4, 64},    // a boolean mask alone would have 2 from x 900 on: x 4096 102 and 229, with 2 packs 114 and 189
};

inline constexpr RegisterEntry masked_gradient_v8[] = {
    {1, 1, 128},
    {2, 2, 128},  // bf16 x 16: 141 and 151, with 1 pack 159 and 182
    {3, 3, 128},  // x 24: 143 and 151, with 1 pack 201 and 242
    {4, 2, 128},
    {6, 3, 128},  // x 40: 137 and 169, with 2 packs 166 and 229
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

// Not measured: of the kernels that there are, fewer packs where a warp holds a row.
inline constexpr RegisterEntry masked_logarithm_gradient[] = {
    {64, 2, 128},
    {4096, 4, 64},
};

}  // namespace KokkosNN::Impl::CudaTables

#endif  // KOKKOSNN_SRC_PLAN_POLICY_CUDA_MASKS_HPP
