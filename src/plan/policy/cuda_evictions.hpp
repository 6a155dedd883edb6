// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_SRC_PLAN_POLICY_CUDA_EVICTIONS_HPP
#define KOKKOSNN_SRC_PLAN_POLICY_CUDA_EVICTIONS_HPP

#include "policy.hpp"

#include <limits>

// Lines that a call's reads leave in the last-level cache on CUDA.

namespace KokkosNN::Impl::CudaTables {

// Who reads a tensor once has no use for its lines. Given up before all else they leave the cache to results and to
// what other kernels have there; kept to the last they have results written to memory early, in order. Microseconds on
// one H200, 2026-11-23. A copy of x to y alone, in turn and kept to the last: 32 MiB 20.8, 19.5; 64 MiB 37.2, 35.3. In
// a chain, where x was written before and y is read behind, giving up is worth more: all three kernels for 32 MiB take
// 32.7 in turn, 29.3 with x given up first, a quarter last 30.4, half 32.1, all 34.6; for 48 MiB 56.3, 52.0, 54.8,
// 56.1, 57.0; for 128 MiB 140.3 all last instead of 141.5. So each size has what serves one and does no harm to the
// other. Behind the entries: a call alone, in turn and as the entry says, what the call before has kept being
// released. Large calls are better kept to the last in a chain as well: softmax of 16384 x 4096 f32, then 32 MiB
// written and copied, 158.3 in all, softmax in turn with rows asked for ahead 170.2, without 162.1; 4096 x 4096 65.2,
// 66.1 and 64.9. (The copy alone takes 18.2 instead of 16.3 behind it.)
inline constexpr EvictionEntry evictions_forward[] = {
    {0.6, Eviction::half_last},     // f32 4096 x 1024: 12.98, 12.50; 4096 x 1025: 12.64, 11.96
    {1.6, Eviction::quarter_last},  // 4096 x 2048: 21.5, 21.2; 32768 x 256: 20.9, 21.0
    // Where nobody asks for rows ahead (PrefetchPolicy): 4096 x 4096: 37.5, 35.9 (asked for 36.8, 36.6); x 8192: 70.5,
    // 67.6 (68.8, 69.4); bf16 x 12672: 56.1, 53.9 (55.2, 57.0); 1048576 x 128: 262, 252 (256, 257).
    {std::numeric_limits<double>::infinity(), Eviction::last},
};
inline constexpr EvictionEntry evictions_inner[] = {
    {0.6, Eviction::half_last},  // LayoutLeft f32 65536 x 64: 14.2, 13.9
    {1.6, Eviction::quarter_last},
    {50, Eviction::last},  // 4096 x 8192: 113.0, 110.8; 65536 x 1024: 166.2, 162.8; 65536 x 4096: 875, 864
};
inline constexpr EvictionEntry evictions_reduction[] = {
    {0.4, Eviction::half_last},  // logsumexp f32 4096 x 1024: 10.8, 10.3, first 10.5
    {4, Eviction::first},        // 4096 x 4096: 26.1, 22.9; 262144 x 197: 66.2, 64.1; 4096 x 16384: 74.9, 76.1
};
inline constexpr EvictionEntry evictions_split[] = {
    {0.6, Eviction::half_last},  // bf16 8 x 1048576: 19.5, 19.0
};

// Operators with two tensors that are read.
inline constexpr EvictionEntry evictions_gradient[] = {
    {1, Eviction::half_last},  // softmax_backward f32 4096 x 1024: 18.3, 17.7
    {1.6, Eviction::quarter_last},
    // 4096 x 4096: 53.3, 50.3; 4096 x 12672: 150.6, 147.5; 131072 x 1024: 374, 370; bf16 16384 x 8192: 191.8, 188.1
    {std::numeric_limits<double>::infinity(), Eviction::last},
};
// Rows side by side as above, up to what gradients were measured with.
inline constexpr EvictionEntry evictions_inner_gradient[] = {
    {0.6, Eviction::half_last},
    {1.6, Eviction::quarter_last},
    {5, Eviction::last},
};

}  // namespace KokkosNN::Impl::CudaTables

#endif  // KOKKOSNN_SRC_PLAN_POLICY_CUDA_EVICTIONS_HPP
