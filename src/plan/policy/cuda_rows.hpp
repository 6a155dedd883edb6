// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_SRC_PLAN_POLICY_CUDA_ROWS_HPP
#define KOKKOSNN_SRC_PLAN_POLICY_CUDA_ROWS_HPP

#include "policy.hpp"

// Packs a thread of softmax, log_softmax and logsumexp on CUDA: share of a device copy of the same bytes in the same
// run, or microseconds, as cuda.cpp says.

namespace KokkosNN::Impl::CudaTables {

// double: 2 elements a pack
inline constexpr RegisterEntry rows_v2[] = {
    {2, 2, 128},
    {3, 4, 128},  // 2796202 x 6: 70.1 us, with 2 packs 84.3
    {4, 2, 128},
    {8, 4, 128},      // 1048576 x 16: 0.90, with 2 packs 0.80
    {11, 8, 128},     // 932067 x 18: 81.6 us, with 4 packs 91.5
    {12, 4, 128, 8},  // log-softmax of 699050 x 24: 76.6 us, with 4 packs 79.1; of 27 MB by 8 slower by 6 %
    {14, 8, 128},     // 599186 x 28: 70.5 us, with 4 packs 73.6
    {16, 4, 128},     // 1048576 x 32: 0.95, with 8 packs 0.82
    {28, 8, 128},
    {32, 4, 128, 8},  // 275036 x 61: 75.8 us, with 4 packs 91.3; of 27 MB 24.5 and 23.2
    {58, 8, 128},
    {64, 4, 128, 8},  // 130055 x 129: 64.6 us, with 4 packs 69.0; of 27 MB 19.5 and 18.5
    {124, 8, 128},
    {128, 4, 128, 8},  // 65793 x 255: 76.9 us, with 4 packs 84.1; of 27 MB 23.6 and 21.1
    {8192, 8, 128},    // 4096 x 1024: 0.90, with 4 packs 0.79; 4096 x 8192: 0.90; 4096 x 16384: 0.76, by split_row 0.51
};

// doubles with nothing to write but a value a row
inline constexpr RegisterEntry reduction_v2[] = {
    {2, 2, 128},
    {3, 4, 128},  // log-sum-exp of 2796202 x 6: 63.1 us, with 2 packs 92.5; cross entropy 92.1 and 152.3
    {4, 2, 128},
    {7, 8, 128},      // 1677721 x 10: 67.7 us, with 4 packs 78.9
    {8, 4, 128, 8},   // 1048576 x 16: 48.7 us, with 4 packs 52.4; of 27 MB by 8 slower by 8 %
    {15, 8, 128},     // 838860 x 20: 70.8 us, with 4 packs 83.7
    {16, 4, 128, 8},  // 524288 x 32: 48.4 us, with 4 packs 54.6; of 27 MB by 8 slower by 5 %
    {8192, 8, 128},
};

// float, and mixed with 16 bits: 4 elements a pack. Where no kernel has 5 or 10 (is_exact_packs) 8 are tried.
// Two packs a thread move memory in longer pieces than four, but a second one that half of the lanes lack costs more.
inline constexpr RegisterEntry rows_v4[] = {
    {2, 1, 128},       // 1048576 x 8: 20.7 us, with 2 packs, which one thread has then, 24.9
    {4, 2, 128},       // 1048576 x 16: 0.99, with 1 pack 0.88, with 4 0.66
    {6, 4, 128},       // 1048576 x 24: 54.9 us, with 2 packs 57.2
    {8, 2, 128},       // 1048576 x 32: 0.99, with 4 packs 0.90
    {13, 4, 128},      // 1048576 x 48: 101.0 us, with 2 packs 106.9; x 36: 88.7 and 105.4
    {16, 2, 128},      // 1048576 x 64: 129.8 us, with 4 packs 131.4; x 56: 116.0 and 118.3
    {18, 8, 128},      // 986895 x 68: 139.7 us, with 4 packs 156.3
    {20, 4, 128, 8},   // 838860 x 80: 128.9 us, with 4 packs 136.8; log-softmax of 27 MB by 8 slower by 4 %
    {32, 4, 128},      // 1048576 x 100: 215 us, with 2 packs 221, with 8 227
    {42, 8, 128},      // 508400 x 132: 139.8 us, with 4 packs 160.2; 416825 x 161: 131.2 and 146.2
    {57, 4, 128, 8},   // 340654 x 197: 131.3 us, with 4 packs 137.0; of 45 MB 28.6 and 28.1
    {64, 4, 128},      // 32768 x 256: 20.8 us, with 2 packs 20.8, with 8 21.4
    {79, 8, 128},      // 232210 x 289: 138.9 us, with 4 packs 152.3; 223696 x 300: 130.0 and 138.7
    {112, 4, 128, 8},  // 174308 x 385: 129.9 us, with 4 packs 133.3; of 45 MB 27.7 and 27.5
    {128, 4, 128},     // 131328 x 511: 128.8 us, with 8 packs 130.5
    {256, 8, 128},     // 4096 x 1024: 0.96, with 4 packs 0.91
    {320, 10, 128},    // 4096 x 1280: 0.98 and all in one wave, with 5 packs of two warps 0.96; x 1152: 0.95 and 0.92
    {384, 4, 128},     // 4096 x 1408: 0.95, with 6 packs 0.91; x 1536: 0.96 and 0.92
    {448, 5, 128},     // 4096 x 1664: 0.95, with 8 packs 0.93; x 1792: 0.97 and 0.94
    {512, 4, 128},     // 4096 x 1920: 0.96, with 8 packs 0.93; 4096 x 2048: 0.96 and 0.93
    {640, 5, 128},     // 4096 x 2304: 0.95, with 6 packs 0.94; x 2432: 0.96, with 8 packs 0.93; x 2560: 0.96 and 0.94
    {8192, 8, 128},    // 4096 x 3072: 0.97, with 4 packs 0.96; 4096 x 32768: 0.99
};

// 16-bit types: 8 elements a pack; up to 4 packs a thread are kept in float, more as they were loaded
inline constexpr RegisterEntry rows_v8[] = {
    {2, 1, 128},       // 1048576 x 16: 20.5 us, with 2 packs 24.7
    {4, 2, 128},       // 1048576 x 32: 0.99, with 1 pack 0.93, with 4 0.65
    {6, 4, 128},       // 1048576 x 40: 50.4 us, with 2 packs 51.3
    {8, 2, 128},       // 1048576 x 64: 0.99, with 4 packs 0.88; x 56: 64.5 us and 76.9
    {12, 4, 128},      // 1048576 x 72: 85.2 us, with 2 packs 93.5; x 96: 100.5 and 101.4
    {16, 2, 128},      // 1048576 x 128: 129.7 us, with 4 packs 131.7
    {24, 4, 128},      // 524288 x 160: 85.2 us, with 2 packs 97.0
    {32, 2, 128},      // 524288 x 248: 128.9 us, with 4 packs 132.1; x 200: 107.2 and 108.9
    {128, 4, 128},     // 262657 x 511: 129.4 us, with 2 packs 134.8; 232613 x 577: 137.6, with 8 137.0
    {160, 8, 128},     // 61008 x 1100: 70.9 us, with 4 packs 83.2
    {192, 4, 128, 8},  // 43662 x 1537: 68.2 us, with 4 packs 70.0; of 27 MB 18.9 both
    {640, 4, 128},     // 16384 x 4096: 0.99, with 8 packs 0.95; 4096 x 5000: 25.3 us and 26.4
    {8192, 8, 128},    // 16384 x 8192: 0.98, with 4 packs 0.87; 4096 x 32768: 0.97, by split_row 0.80
};

// 16-bit types of log-softmax, which computes less of each element to write
inline constexpr RegisterEntry log_rows_v8[] = {
    {2, 1, 128},
    {4, 2, 128},
    {6, 4, 128},  // 1048576 x 40: 53.8 us, with 2 packs 62.3
    {8, 2, 128},
    {12, 4, 128},
    {16, 2, 128},     // 1048576 x 120: 133 us, with 4 packs 139
    {20, 8, 128},     // 493447 x 136: 75.3 us, with 4 packs 84.8
    {32, 4, 128},     // 645277 x 208: 133.0 us, with 2 packs 154.3; 541200 x 248: 130.1 and 140.1
    {40, 8, 128},     // 254200 x 264: 74.8 us, with 4 packs 88.7
    {64, 4, 128},     // 335544 x 400: 132.2 us, with 2 packs 145.0; 262657 x 511: 130.4 and 138.7
    {79, 8, 128},     // 223696 x 600: 133.1 us, with 4 packs 143.7
    {88, 4, 128, 8},  // 191739 x 700: 130.5 us, with 4 packs 136.6; of 45 MB 28.3 and 27.8
    {128, 4, 128},
    {200, 8, 128},  // 61008 x 1100: 72.6 us, with 4 packs 99.7; 43662 x 1537: 68.4 and 73.5
    {640, 4, 128},  // 32768 x 2048: 67.5 us, with 8 packs 68.0; x 3200: 69.9 and 67.9
    {8192, 8, 128},
};

// log-sum-exps of floats, in microseconds: with nothing to write, fewer threads a row are enough
inline constexpr RegisterEntry reduction_v4[] = {
    {2, 2, 128},      // 1048576 x 8: 15.3, with 1 pack 20.9
    {4, 4, 128},      // 1048576 x 16: 24, with 2 packs 26
    {6, 4, 128, 8},   // 1677721 x 20: 46.3, with 4 packs 53.5; of 27 MB 15.3 and 15.1
    {8, 4, 128},      // 1048576 x 32: 42, with 2 packs 48, with 8 55
    {10, 8, 128},     // 1048576 x 40: 60.5, with 4 packs 68.6
    {12, 4, 128, 8},  // 699050 x 48: 43.4, with 4 packs 48.0; of 27 MB 15.2 and 13.9
    {16, 4, 128},     // 1048576 x 64: 77, with 8 packs 89
    {28, 8, 128},
    {32, 4, 128, 8},   // 1048576 x 128: 134, with 4 packs 151; of 27 MB 14.0 and 13.0
    {63, 8, 128},      // 262144 x 197: 68, with 4 packs 89
    {64, 4, 128, 8},   // 32768 x 256: 15.8, with 8 packs 16.6
    {110, 8, 128},     // 116101 x 289: 54.1, with 4 packs 66.0; 23219 x 289: 15.4 and 17.1
    {128, 4, 128, 8},  // 67108 x 500: 38.2, with 4 packs 42.1; 16384 x 512: 16.4 and 15.6
    {384, 8, 128},     // 4096 x 1536, by 6 packs then: 13.4, with 4 packs 14.1
    {512, 4, 128, 8},  // 16384 x 2048: 39.4, with 4 packs 42.7; 4096 x 2048: 16.8 and 15.8
    {8192, 8, 128},    // 16384 x 4096: 73, with 4 packs 84
};

// log-sum-exps of 16-bit types
inline constexpr RegisterEntry reduction_v8[] = {
    {2, 2, 128},       // 1048576 x 16: 15.2, with 1 pack 21.1
    {4, 4, 128},       // 1048576 x 32: 23.9, with 2 packs 26.2
    {6, 8, 128},       // 1048576 x 40: 34.4, with 4 packs 37.9
    {8, 4, 128},       // 1048576 x 64: 43, with 2 packs 49, with 8 55
    {10, 8, 128},      // 1048576 x 80: 62, with 4 packs 73
    {14, 4, 128, 8},   // 1048576 x 96: 72, with 4 packs 74; 599186 x 112: 43.2 and 45.6, of 27 MB 15.4 and 14.1
    {16, 4, 128},      // 524288 x 128: 43.7, with 8 packs 53.4
    {24, 8, 128},      // 524288 x 192: 66, with 4 packs 75
    {32, 4, 128, 8},   // 524288 x 256: 75.8, with 4 packs 77.9; of 27 MB 13.9 and 13.3
    {63, 8, 128},      // 254200 x 264: 55.2, with 4 packs 73.7
    {64, 4, 128, 8},   // 131072 x 512: 39.6, with 4 packs 42.6; of 27 MB 13.5 both
    {120, 8, 128},     // 83886 x 800: 40.7, with 4 packs 47.9
    {128, 4, 128, 8},  // 67108 x 1000: 38.9, with 4 packs 41.7; of 27 MB 13.2 and 12.9
    {256, 8, 128},     // 61008 x 1100: 54.1, with 4 packs 83.7; 33554 x 2000: 39.2 and 46.9
    {512, 4, 128},
    {8192, 8, 128},
};

}  // namespace KokkosNN::Impl::CudaTables

#endif  // KOKKOSNN_SRC_PLAN_POLICY_CUDA_ROWS_HPP
