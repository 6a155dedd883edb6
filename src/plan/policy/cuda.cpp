// SPDX-License-Identifier: Apache-2.0
#include "policy.hpp"

#include <cstdint>
#include <limits>

// Measured on one NVIDIA H200, 2026-11-21 to 25, cold L2: share of a device copy of the same bytes in the same run, or
// microseconds.
//
// What falls short of the copy, and what ncu says of it:
// - short rows that begin between packs: floats of 7 columns 0.73, of 33 0.93, bf16 0.56 and 0.78, of 99 0.68. A thread
//   takes its row's elements from team scratch, in some 15 instructions each, floats 27. 16-bit rows of 121 to 255
//   columns, of 197 0.87: a row must have as many threads as its edges can have elements, so each has few packs.
// - 4096 rows of 1408 to 2560 columns: 0.94 to 0.97. Few waves of teams, in which a warp waits for memory an eighth of
//   its time: what the kernel takes is what lies between a row's load and its store, one instruction after the other.
// - doubles beyond 8192 columns: 0.72 to 0.85. One team of up to 1024 threads fills a multiprocessor, so nothing runs
//   while it waits, and 64 registers a thread are some too few.
// - split_row, 0.92 of aligned rows, where a team has another row to reduce while it waits, 0.87 of odd ones: a turn
//   lasts as long as its status words take, 5 of 7.5 us; warps wait for them a fifth of their time, for their loads another.
//   With more teams resident, in 64 or 72 registers, the few words that are spilled cost 0.02 to 0.1.
// - one row of 16777216: 0.58. 111 MB are read for 67: the cache does not keep them until the second read, nor if it is
//   told so of the last 24 or 32 MB alone, or to give up what was read again, or results. One kernel by all of the
//   device, of which registers and scratch hold 35 to 46 MB until teams have told each other, copies so in 46 to 49 us
//   (two kernels do all in 61), and with exponentials takes 51: 0.70.
// - LayoutLeft with 1024 columns: 0.79 (16-bit types 0.72). A team moves a slab, 64 bytes of each column, and memory is
//   slow at that: a kernel that only copies so has 0.82, by slabs of 128 bytes, which need a team of 1024 threads, 0.86
//   (32 bytes: 0.70; 8192 columns by slabs of 32 bytes, which is all that a multiprocessor can hold: 0.66). Asking for
//   later slabs ahead, or keeping them in shared memory, makes it worse: 0.77 to 0.20, the less teams are in step.
//   Teams that share columns, 128 bytes wide, and tell each other each row's (max, sum) as split_row's do, are better
//   with floats of 2048 and 4096 columns (0.70 to 0.72, 0.67) and with nothing else (1024: 0.71, 8192: 0.62; bf16 0.42
//   to 0.58): joining the states of so many rows is a third of their 1200 to 1400 instructions a turn.
// - One long row and LayoutLeft, by teams that take tickets: each reduces a tile of 32 KB and writes one 11 MB before it,
//   whose rows are complete, from the last-level cache; nobody waits for who has not begun. A bare kernel, f32: 4096 x
//   8192 93 us (here 110), bf16 57 (63), 65536 x 1024 182 (163), one row of 16777216 56 (61), 8 x 1048576 26.7 (27.7).
//   It reads each byte from memory once, but then the cache itself is busy, 82 % of its peak, with 1.4 times as many
//   sectors as threads ask for. By kernels in turn, each of which reduces some rows and writes those before, 115.

namespace KokkosNN::Impl {
namespace {

// double: 2 elements a pack
constexpr RegisterPolicy registers_v2[] = {
    {2, 2, 128},
    {3, 4, 128},       // 2796202 x 6: 70.1 us, with 2 packs 84.3
    {4, 2, 128},
    {8, 4, 128},       // 1048576 x 16: 0.90, with 2 packs 0.80
    {11, 8, 128},      // 932067 x 18: 81.6 us, with 4 packs 91.5
    {12, 4, 128, 8},   // log-softmax of 699050 x 24: 76.6 us, with 4 packs 79.1; of 27 MB by 8 slower by 6 %
    {14, 8, 128},      // 599186 x 28: 70.5 us, with 4 packs 73.6
    {16, 4, 128},      // 1048576 x 32: 0.95, with 8 packs 0.82
    {28, 8, 128},
    {32, 4, 128, 8},   // 275036 x 61: 75.8 us, with 4 packs 91.3; of 27 MB 24.5 and 23.2
    {58, 8, 128},
    {64, 4, 128, 8},   // 130055 x 129: 64.6 us, with 4 packs 69.0; of 27 MB 19.5 and 18.5
    {124, 8, 128},
    {128, 4, 128, 8},  // 65793 x 255: 76.9 us, with 4 packs 84.1; of 27 MB 23.6 and 21.1
    {8192, 8, 128},    // 4096 x 1024: 0.90, with 4 packs 0.79; 4096 x 8192: 0.90; 4096 x 16384: 0.76, by split_row 0.51
};

// the same with nothing to write but a value a row
constexpr RegisterPolicy registers_reduction_v2[] = {
    {2, 2, 128},
    {3, 4, 128},       // log-sum-exp of 2796202 x 6: 63.1 us, with 2 packs 92.5; cross entropy 92.1 and 152.3
    {4, 2, 128},
    {7, 8, 128},       // 1677721 x 10: 67.7 us, with 4 packs 78.9
    {8, 4, 128, 8},    // 1048576 x 16: 48.7 us, with 4 packs 52.4; of 27 MB by 8 slower by 8 %
    {15, 8, 128},      // 838860 x 20: 70.8 us, with 4 packs 83.7
    {16, 4, 128, 8},   // 524288 x 32: 48.4 us, with 4 packs 54.6; of 27 MB by 8 slower by 5 %
    {8192, 8, 128},
};

// and with a label and the gradient of its loss
constexpr RegisterPolicy registers_labelled_v2[] = {
    {2, 2, 128},
    {3, 4, 128},     // 2796202 x 6: 122.7 us, with 2 packs 205.3
    {4, 2, 128},
    {5, 8, 128},     // 1677721 x 10: 123.4 us, with 4 packs 148.8
    {8, 4, 128},     // 1048576 x 16: by 8 packs slower by 75 %
    {8192, 8, 128},  // 838860 x 20: 111.5 us, with 4 packs 152.2
};

// float, and mixed with 16 bits: 4 elements a pack. Where no kernel has 5 or 10 (is_exact_packs) 8 are tried.
// Two packs a thread move memory in longer pieces than four, but a second one that half of the lanes lack costs more.
constexpr RegisterPolicy registers_v4[] = {
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
constexpr RegisterPolicy registers_v8[] = {
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

// the same of log-softmax, which computes less of each element to write
constexpr RegisterPolicy registers_log_v8[] = {
    {2, 1, 128},
    {4, 2, 128},
    {6, 4, 128},      // 1048576 x 40: 53.8 us, with 2 packs 62.3
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
    {200, 8, 128},    // 61008 x 1100: 72.6 us, with 4 packs 99.7; 43662 x 1537: 68.4 and 73.5
    {640, 4, 128},    // 32768 x 2048: 67.5 us, with 8 packs 68.0; x 3200: 69.9 and 67.9
    {8192, 8, 128},
};

// Rows with a label, of which no kernel has one pack, or 5 or 10. What the label takes is computed by each thread of a
// row: the fewer these are the better. Microseconds of calls that read 134 MB.
constexpr RegisterPolicy registers_loss_v4[] = {
    {4, 2, 128},
    {15, 8, 128},     // x 24: 56.0, with 4 packs 70.5, with 2 105.5
    {16, 4, 128, 8},  // x 64: 49.2, with 4 packs 56.2; of 27 MB by 8 slower by 4 %
    {320, 8, 128},    // x 132: 69.8, with 4 packs 100.9; x 500: 46.4 and 56.0
    {384, 4, 128},
    {448, 8, 128},
    {512, 4, 128},
    {8192, 8, 128},
};
constexpr RegisterPolicy registers_loss_v8[] = {
    {4, 2, 128},
    {13, 8, 128},     // x 48: 80.5, with 4 packs 96.5, with 2 139.9
    {16, 4, 128, 8},  // x 112: 73.6, with 4 packs 85.1; of 27 MB 24.7 and 22.7
    {256, 8, 128},    // x 256: 62.5, with 4 packs 74.5; x 2000: 63.1 and 77.3
    {640, 4, 128},    // x 2500: 96.2, with 8 packs 106.4
    {8192, 8, 128},
};
// and with the gradient of the loss
constexpr RegisterPolicy registers_labelled_v4[] = {
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
constexpr RegisterPolicy registers_labelled_v8[] = {
    {4, 2, 128},
    {8, 4, 128},      // x 48: 94.7, with 2 packs 144.0, with 8 153.0
    {10, 8, 128},     // x 80: 96.0, with 4 packs 109.6
    {16, 4, 128},     // x 128: 80.6, with 2 packs 109.8, with 8 97.7
    {26, 8, 128},     // x 136: 93.2, with 4 packs 128.1; x 208: 77.7 and 89.8
    {30, 4, 128, 8},  // x 240: 77.5, with 4 packs 82.2; of 27 MB 23.2 and 22.9
    {32, 4, 128},     // x 248: 83.7, with 8 packs 88.3; x 256: 79.0 and 75.1
    {8192, 8, 128},   // x 264: 94.7, with 4 packs 132.9; x 1100: 97.4 and 140.3; x 4096: 70.5 and 75.2
};
// and the gradient of a given loss, element by element, on one H100
constexpr RegisterPolicy registers_label_gradient_v2[] = {
    {4, 2, 128},
    {32, 4, 128},    // f64 x 24: 116.7, with 8 packs 130.6; x 64: 107.0 and 120.0
    {40, 8, 128},    // x 72: 122.8, with 4 packs 135.5
    {64, 4, 128},    // x 96: 112.7, with 8 packs 118.0; x 128: 106.5 and 119.5
    {80, 8, 128},    // x 136: 121.6, with 4 packs 139.8
    {8192, 4, 128},  // x 256: 105.2, with 8 packs 118.5; x 320: 111.4 and 120.6
};
constexpr RegisterPolicy registers_label_gradient[] = {
    {4, 2, 128},
    {6, 4, 128},     // f32 x 24: 111.5, with 2 packs 140.4; bf16 x 48: 111.2 and 137.8
    {8, 2, 128},     // f32 x 32: 115.8, with 4 packs 122.2
    {8192, 4, 128},  // f32 x 640: 107.9, with 8 packs, which one warp has then, 135.0; x 1024: 122.7 and 136.9
};
// All of them where elements are moved one by one, for which few threads are too few
constexpr RegisterPolicy registers_label_elements_v4[] = {
    {8, 2, 128}, {128, 4, 128}, {320, 8, 128}, {384, 4, 128}, {448, 8, 128}, {512, 4, 128}, {8192, 8, 128},
};
constexpr RegisterPolicy registers_label_elements_v8[] = {
    {8, 2, 128},
    {640, 4, 128},
    {8192, 8, 128},
};

// Rows under a mask: fewer threads a row, of which fewer have nothing to do. Microseconds of a causal mask, 134 MB.
constexpr RegisterPolicy registers_masked_v4[] = {
    {4, 2, 128},
    {8, 4, 128},     // x 24: 90.0, with 2 packs 123.3; x 32: 76.5, with 2 96.3, with 8 163
    {12, 8, 128},    // x 40: 84.3, with 4 packs 97.4
    {16, 4, 128},
    {8192, 8, 128},  // x 72: 84.4, with 4 packs 106.8; x 128: 63.0 and 69.2; x 256: 61.1 and 69.5; 262144 x 512: 1.12 of
                     // copy, with 4 0.97; 131072 x 2048: 1.09 and 0.91; boolean 131072 x 2048: 0.58 and 0.52
};
constexpr RegisterPolicy registers_masked_v8[] = {
    {2, 2, 128},
    {8, 4, 128},     // x 24: 100.6, with 2 packs 129.8; x 48: 88.9 and 126.7
    {12, 8, 128},    // x 80: 89.5, with 4 packs 104.1
    {16, 4, 128},
    {8192, 8, 128},  // x 144: 96.7, with 4 packs 115.8; x 256: 64.1 and 70.8; x 512: 63.5 and 71.2; 131072 x 1024: 1.07
                     // of copy, with 4 1.00
};
// and of 16 bits where elements are moved one by one
constexpr RegisterPolicy registers_masked_elements_v8[] = {
    {64, 2, 128},    // x 65: 330, with 4 packs 367; x 197: 242 and 320; x 500: 148 and 176
    {128, 4, 128},   // x 577: 252, with 8 packs 416
    {8192, 8, 128},
};

// log-sum-exps of floats, in microseconds: with nothing to write, fewer threads a row are enough
constexpr RegisterPolicy registers_reduction_v4[] = {
    {2, 2, 128},       // 1048576 x 8: 15.3, with 1 pack 20.9
    {4, 4, 128},       // 1048576 x 16: 24, with 2 packs 26
    {6, 4, 128, 8},    // 1677721 x 20: 46.3, with 4 packs 53.5; of 27 MB 15.3 and 15.1
    {8, 4, 128},       // 1048576 x 32: 42, with 2 packs 48, with 8 55
    {10, 8, 128},      // 1048576 x 40: 60.5, with 4 packs 68.6
    {12, 4, 128, 8},   // 699050 x 48: 43.4, with 4 packs 48.0; of 27 MB 15.2 and 13.9
    {16, 4, 128},      // 1048576 x 64: 77, with 8 packs 89
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

// the same of 16 bits
constexpr RegisterPolicy registers_reduction_v8[] = {
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

// Who reads a tensor once has no use for its lines. Given up before all else they leave the cache to results and to
// what other kernels have there; kept to the last they have results written to memory early, in order. Microseconds on
// one H200, 2026-11-23. A copy of x to y alone, in turn and kept to the last: 32 MiB 20.8, 19.5; 64 MiB 37.2, 35.3. In
// a chain, where x was written before and y is read behind, giving up is worth more: all three kernels for 32 MiB take
// 32.7 in turn, 29.3 with x given up first, a quarter last 30.4, half 32.1, all 34.6; for 48 MiB 56.3, 52.0, 54.8, 56.1,
// 57.0; for 128 MiB 140.3 all last instead of 141.5. So each size has what serves one and does no harm to the other.
// Behind the entries: a call alone, in turn and as the entry says, what the call before has kept being released.
// Large calls are better kept to the last in a chain as well: softmax of 16384 x 4096 f32, then 32 MiB written and copied,
// 158.3 in all, softmax in turn with rows asked for ahead 170.2, without 162.1; 4096 x 4096 65.2, 66.1 and 64.9. (The copy
// alone takes 18.2 instead of 16.3 behind it.)
constexpr EvictionPolicy evictions_forward[] = {
    {0.6, Eviction::half_last},     // f32 4096 x 1024: 12.98, 12.50; 4096 x 1025: 12.64, 11.96
    {1.6, Eviction::quarter_last},  // 4096 x 2048: 21.5, 21.2; 32768 x 256: 20.9, 21.0
    // Where nobody asks for rows ahead (prefetch_packs): 4096 x 4096: 37.5, 35.9 (asked for 36.8, 36.6); x 8192: 70.5,
    // 67.6 (68.8, 69.4); bf16 x 12672: 56.1, 53.9 (55.2, 57.0); 1048576 x 128: 262, 252 (256, 257).
    {std::numeric_limits<double>::infinity(), Eviction::last},
};
constexpr EvictionPolicy evictions_inner[] = {
    {0.6, Eviction::half_last},  // LayoutLeft f32 65536 x 64: 14.2, 13.9
    {1.6, Eviction::quarter_last},
    {50, Eviction::last},  // 4096 x 8192: 113.0, 110.8; 65536 x 1024: 166.2, 162.8; 65536 x 4096: 875, 864
};
constexpr EvictionPolicy evictions_reduction[] = {
    {0.4, Eviction::half_last},  // logsumexp f32 4096 x 1024: 10.8, 10.3, first 10.5
    {4, Eviction::first},        // 4096 x 4096: 26.1, 22.9; 262144 x 197: 66.2, 64.1; 4096 x 16384: 74.9, 76.1
};
constexpr EvictionPolicy evictions_split[] = {
    {0.6, Eviction::half_last},  // bf16 8 x 1048576: 19.5, 19.0
};

}  // namespace

Policy policy_cuda(int pack) {
  Policy policy{};
  policy.registers       = by_pack(pack, registers_v2, registers_v4, registers_v8);
  policy.large_caches    = 2;  // f32 302921 x 197, 2.6 caches: 0.98 of the time with 4 packs, 1.7 caches 1.02
  policy.evictions       = evictions_forward;
  policy.inner_evictions = evictions_inner;
  if (pack == 8) policy.split_evictions = evictions_split;  // floats leave no register for it (SplitRow)
  policy.few_rows_team_size        = 256;   // 1 x 4096 f32 in a graph: 2.9 us, of 128 threads 3.2, of 512 3.1
  // 264 x 1024 f32 in a graph: 2.36 us, by other kernels 2.93; 528 x 4096 4.8 and 5.65, 1584 x 1024 4.0 and 4.8. Twice
  // as many: 1056 x 4096 14.1 us instead of 12.7, half as many: 13.0.
  policy.few_rows_threads          = 1024;
  // f32 1048576 x 63: 138 us, by lanes 140, x 49: 113 and 130, x 33: 80 and 103, x 7: 26 and 100; bf16 x 100: 152 and
  // 182, x 33: 50 and 182, x 7: 21 and 169; f64 x 25: 109 and 119, x 7: 37 and 43.
  policy.staged_row_bytes          = 240;
  policy.staged_team_size          = 128;   // bf16 1048576 x 33: 50.5 us, with 64 threads 52.1, with 256 53.1
  // The longer a row, the longer takes the one wave that few of them are. f32 33792 x 7: 5.7 us, by lanes 7.3; 67584 x
  // 33: 11.4 and 11.1; 135168 x 55: 26.9 and 21.9; bf16 8192 x 7: 2.3 and 2.9; 16896 x 33: 7.3 and 7.2; 33792 x 55: 9.3
  // and 10.
  policy.staged_rows_per_byte      = pack == 8 ? 2 : 8;
  policy.scratch_packs_per_thread  = pack <= 4 ? 4 : 8;  // 16384 x 8192 bf16: 0.94, with 4 0.83
  policy.scratch_team_size         = 256;                // 4096 x 8192 f32: 0.82, with 128 0.74
  policy.max_scratch_row_bytes     = 0;                  // never faster than registers
  policy.prefetch_caches           = 0.2;   // 4096 x 8192 f32: 0.97, without 0.95, with 0.25 0.93
  policy.prefetch_last_caches      = 3;     // 4096 x 32000 f32: 253 us, kept to the last 254; 1048576 x 33: 75 and 77
  // Small calls, with and without: f32 16384 x 512 by 4 packs 20.7 us and 21.3, by 8 packs 8576 x 1024 22.4 and 21.9,
  // by 2 packs 137216 x 64 22.3 and 22.0; bf16 4096 x 4096 by 4 packs 20.6 and 21.3, 1048576 x 16 by 1, twice as far
  // ahead, 20.6 and 21.5. Large ones, kept to the last: f32 by 8 packs 16384 x 781 30.7 and 29.4, by 4 1048576 x 128 257
  // and 252, but with a quarter of them empty x 96 191 and 206, 262144 x 197 107 and 113, by 2 1048576 x 64 128.3 and
  // 129.7, log_softmax 130 and 138; by teams of 1024 4096 x 32000 254 and 256, through team scratch 1048576 x 33 77 and
  // 84. Doubles in turn, by 8 packs: 4096 x 1024 21.5 and 22.6, x 8192 136 and 140.
  policy.prefetch_packs            = 4;
  policy.prefetch_few_packs        = 2;
  policy.prefetch_online_caches    = 0.7;   // before tiles were held, 4096 x 8192 f32: 0.82, without 0.77
  policy.online_team_size          = 384;    // two teams a multiprocessor; 4096 x 32768 f32: 0.77, with 768 0.72
  policy.online_long_cols          = 49152;  // 2048 x 65536 f32 by 768 threads: 0.72, by 384 0.69
  policy.reduce_min_packs          = 2049;  // logsumexp of 16384 x 12672 f32: 0.98, in registers 0.79
  policy.reduce_packs_per_thread   = 64;    // that by 32 threads, with 64 0.96, with 128 0.90
  policy.reduce_team_size          = 128;   // 8192 x 32768: 1.02, with 32 0.98
  policy.reduce_fill               = 0.8;   // 4096 x 12672: 64 threads, 2.6 waves, 0.80; 32 threads, 1.3 waves, 0.71
  policy.reduce_full_packs         = 256;   // 16384 x 4096 bf16: 0.82, with 4 packs 0.74
  policy.split_team_size           = 256;   // 8 x 1048576 f32: 0.85, with 128 0.73; 64 x 1048576: 0.84 and 0.86
  // Or half of it, if rows fill that better: cross entropy f32 4096 x 50257: 0.84, with 128 0.81.
  policy.split_small_team_size     = 128;   // 2048 x 128256 bf16: 0.91, with 256 0.87
  policy.split_small_teams         = 48;    // 1024 x 262144 f32 takes 64: 0.91, by 32 teams of 256 0.94
  policy.split_small_teams_alone   = 16;    // 1024 x 262144 f32 one row at a time: with 256 0.82, with 128 0.77
  // bf16 64 x 1048576, 128 of them: 0.81, by 64 of 256 threads 0.76; 96 x 700000, 86: 0.85 and 0.81; 32 x 2097152, 256:
  // 0.69 and 0.78; 16 x 1048576: 0.71 and 0.72. f32 64 x 1048576, 256 of them: 0.79, by 128 of 256 threads 0.87.
  policy.split_many_small_teams    = pack == 8 ? 128 : 0;
  policy.split_many_rows           = 32;
  policy.split_twice_caches        = 3;     // 1 x 16777216 f32: 0.57, by one kernel 0.49
  // Cross entropy with its gradient, bf16 4096 x 50257: 0.69, by a team of 800 threads to a multiprocessor 0.65.
  policy.loss_edges_max_packs       = pack <= 4 ? INT64_MAX : 4096;
  policy.split_min_cols            = 16384;
  policy.split_few_rows_packs      = 4096;  // 8 x 16384 f32 in registers: 0.54, by split_row 0.40
  policy.inner_lanes               = 32;    // LayoutLeft 65536 x 64 f32: 0.89, with 16 0.82
  policy.inner_least_lanes         = 16;    // 65536 x 1024 f32: 0.78, with 32 0.59, with 8 0.67
  policy.inner_few_columns         = 64;    // x 32 bf16: 0.73 and 0.69; x 128: 0.70 and 0.76
  policy.inner_team_size           = 256;   // x 512: 0.83, by 32 lanes of 512 threads 0.79; x 384: 0.85 and 0.79
  policy.inner_max_team_size       = 512;
  policy.inner_lanes_looping       = 16;  // 65536 x 2048 f32: 0.62, with 32 0.60; 32768 x 1536: 0.63 and 0.61
  policy.inner_least_lanes_looping = 8;
  policy.inner_looping_team_size   = 512;  // 65536 x 2048 f32: 416 us, of 256 threads 424; 131072 x 1100: 441 and 449
  policy.elements_per_turn         = 1;
  return policy;
}

void tune_cuda_for_log_softmax(Policy& policy, int pack) {
  policy.registers = by_pack(pack, registers_v2, registers_v4, registers_log_v8);
}

void tune_cuda_for_label(Policy& policy, int pack, RowOperator op, bool moves_packs) {
  if (!moves_packs) {
    policy.registers = by_pack(pack, registers_v2, registers_label_elements_v4, registers_label_elements_v8);
  } else if (is_elementwise(op)) {
    policy.registers =
        by_pack(pack, registers_label_gradient_v2, registers_label_gradient, registers_label_gradient);
  } else if (is_reduction(op)) {
    policy.registers = by_pack(pack, registers_reduction_v2, registers_loss_v4, registers_loss_v8);
  } else {
    policy.registers = by_pack(pack, registers_labelled_v2, registers_labelled_v4, registers_labelled_v8);
  }
}

void tune_cuda_for_mask(Policy& policy, int pack, bool moves_packs) {
  policy.registers = by_pack(pack, registers_v2, registers_masked_v4,
                             moves_packs ? RegisterTable(registers_masked_v8) : registers_masked_elements_v8);
}

void tune_cuda_for_logsumexp(Policy& policy, int pack, bool moves_packs) {
  policy.evictions               = evictions_reduction;
  policy.inner_evictions         = policy.evictions;
  policy.inner_lanes_looping     = 32;  // LayoutLeft 65536 x 2048 f32: 141 us, with 16 lanes of 512 threads 163
  policy.inner_looping_team_size = 256;
  policy.registers               = by_pack(pack, registers_reduction_v2, registers_reduction_v4,
                                           moves_packs ? RegisterTable(registers_reduction_v8) : registers_v8);
  if (pack == 4) policy.reduce_full_packs = INT64_MAX;  // as the table says
}

}  // namespace KokkosNN::Impl
