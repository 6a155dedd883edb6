// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_SRC_PLAN_POLICY_CUDA_LABELS_HPP
#define KOKKOSNN_SRC_PLAN_POLICY_CUDA_LABELS_HPP

#include "policy.hpp"

// Packs a thread of the cross entropies on CUDA; measured as cuda.cpp says.

namespace KokkosNN::Impl::CudaTables {

// doubles with a label and the gradient of its loss
inline constexpr RegisterEntry labelled_v2[] = {
    {2, 2, 128},
    {3, 4, 128},  // 2796202 x 6: 122.7 us, with 2 packs 205.3
    {4, 2, 128},
    {5, 8, 128},     // 1677721 x 10: 123.4 us, with 4 packs 148.8
    {8, 4, 128},     // 1048576 x 16: by 8 packs slower by 75 %
    {8192, 8, 128},  // 838860 x 20: 111.5 us, with 4 packs 152.2
};

// Rows with a label, of which no kernel has one pack, or 5 or 10. What the label takes is computed by each thread of a
// row: the fewer these are the better. Microseconds of calls that read 134 MB.
inline constexpr RegisterEntry loss_v4[] = {
    {4, 2, 128},
    {15, 8, 128},     // x 24: 56.0, with 4 packs 70.5, with 2 105.5
    {16, 4, 128, 8},  // x 64: 49.2, with 4 packs 56.2; of 27 MB by 8 slower by 4 %
    {320, 8, 128},    // x 132: 69.8, with 4 packs 100.9; x 500: 46.4 and 56.0
    {384, 4, 128},
    {448, 8, 128},
    {512, 4, 128},
    {8192, 8, 128},
};

inline constexpr RegisterEntry loss_v8[] = {
    {4, 2, 128},
    {13, 8, 128},     // x 48: 80.5, with 4 packs 96.5, with 2 139.9
    {16, 4, 128, 8},  // x 112: 73.6, with 4 packs 85.1; of 27 MB 24.7 and 22.7
    {256, 8, 128},    // x 256: 62.5, with 4 packs 74.5; x 2000: 63.1 and 77.3
    {640, 4, 128},    // x 2500: 96.2, with 8 packs 106.4
    {8192, 8, 128},
};

// Rows with a label and the gradient of its loss
inline constexpr RegisterEntry labelled_v4[] = {
    {4, 2, 128},
    {8, 4, 128},       // x 24: 94.4, with 2 packs 146.4, with 8 137.9; x 32: 84.5, 110.5, 179.7
    {10, 8, 128},      // x 40: 89.9, with 4 packs 110.7
    {12, 4, 128, 8},   // x 48: 88.3, with 4 packs 94.3; of 27 MB 24.5 and 24.3
    {16, 4, 128},      // x 64: 79.3, with 2 packs 111.8, with 8 91.6
    {23, 8, 128},      // x 68: 93.3, with 4 packs 130.1; x 92: 82.0 and 99.0
    {30, 4, 128, 8},   // x 104: 78.7, with 4 packs 89.8; x 120: 77.4 and 80.3, of 27 MB 22.6 and 22.2
    {32, 4, 128},      // x 124: 79.7, with 8 packs 81.7
    {62, 8, 128},      // x 132: 95.9, with 4 packs 135.5; x 241: 74.7 and 83.5
    {64, 4, 128, 8},   // x 256: 73.8, with 4 packs 76.5
    {320, 8, 128},     // x 260: 97.6, with 4 packs 132.5; x 500: 73.2 and 76.3
    {384, 4, 128, 8},  // x 1536: 73.4, with 4 packs 76.2
    {448, 8, 128},
    {512, 4, 128, 8},  // x 2048: 71.9, with 4 packs 74.1
    {8192, 8, 128},
};

inline constexpr RegisterEntry labelled_v8[] = {
    {4, 2, 128},
    {8, 4, 128},      // x 48: 94.7, with 2 packs 144.0, with 8 153.0
    {10, 8, 128},     // x 80: 96.0, with 4 packs 109.6
    {16, 4, 128},     // x 128: 80.6, with 2 packs 109.8, with 8 97.7
    {26, 8, 128},     // x 136: 93.2, with 4 packs 128.1; x 208: 77.7 and 89.8
    {30, 4, 128, 8},  // x 240: 77.5, with 4 packs 82.2; of 27 MB 23.2 and 22.9
    {32, 4, 128},     // x 248: 83.7, with 8 packs 88.3; x 256: 79.0 and 75.1
    {8192, 8, 128},   // x 264: 94.7, with 4 packs 132.9; x 1100: 97.4 and 140.3; x 4096: 70.5 and 75.2
};

// The gradient of a given loss, element by element, on one H100
inline constexpr RegisterEntry label_gradient_v2[] = {
    {4, 2, 128},
    {32, 4, 128},    // f64 x 24: 116.7, with 8 packs 130.6; x 64: 107.0 and 120.0
    {40, 8, 128},    // x 72: 122.8, with 4 packs 135.5
    {64, 4, 128},    // x 96: 112.7, with 8 packs 118.0; x 128: 106.5 and 119.5
    {80, 8, 128},    // x 136: 121.6, with 4 packs 139.8
    {8192, 4, 128},  // x 256: 105.2, with 8 packs 118.5; x 320: 111.4 and 120.6
};

inline constexpr RegisterEntry label_gradient[] = {
    {4, 2, 128},
    {6, 4, 128},     // f32 x 24: 111.5, with 2 packs 140.4; bf16 x 48: 111.2 and 137.8
    {8, 2, 128},     // f32 x 32: 115.8, with 4 packs 122.2
    {8192, 4, 128},  // f32 x 640: 107.9, with 8 packs, which one warp has then, 135.0; x 1024: 122.7 and 136.9
};

// All cross entropies where elements are moved one by one, for which few threads are too few
inline constexpr RegisterEntry label_elements_v4[] = {
    {8, 2, 128},
    {128, 4, 128},
    {320, 8, 128},
    {384, 4, 128},
    {448, 8, 128},
    {512, 4, 128},
    {8192, 8, 128},
};

inline constexpr RegisterEntry label_elements_v8[] = {
    {8, 2, 128},
    {640, 4, 128},
    {8192, 8, 128},
};

}  // namespace KokkosNN::Impl::CudaTables

#endif  // KOKKOSNN_SRC_PLAN_POLICY_CUDA_LABELS_HPP
