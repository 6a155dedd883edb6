// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_DEVICE_WARP_HPP
#define KOKKOSNN_IMPL_GPU_DEVICE_WARP_HPP

#include <KokkosNN/impl/kernel_shapes.hpp>
#include <KokkosNN/impl/math/double_double.hpp>
#include <KokkosNN/impl/math/exp.hpp>
#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

// Warps: shuffles, votes, shared memory and reductions over lanes, with one interface for CUDA, HIP and hosts, where a
// warp is one thread.

namespace KokkosNN::Impl {

/// Number of lanes that can shuffle with each other where this code runs.
KOKKOS_INLINE_FUNCTION constexpr int warp_width() {
#if defined(__CUDA_ARCH__)
  return 32;
#elif defined(__HIP_DEVICE_COMPILE__)
  return Kokkos::Impl::HIPTraits::WarpSize;  // Kokkos lays teams out by it: 64 on CDNA, 32 on RDNA
#else
  return 1;
#endif
}

/// Returns the value of the lane whose number differs by the bits of `mask`; all lanes of the warp must call.
template <class T>
KOKKOS_INLINE_FUNCTION T shuffle_xor(T value, [[maybe_unused]] int mask) {
#if defined(__CUDA_ARCH__)
  return __shfl_xor_sync(0xffffffffu, value, mask);
#elif defined(__HIP_DEVICE_COMPILE__)
  return __shfl_xor(value, mask);
#else
  return value;
#endif
}

template <class T>
KOKKOS_INLINE_FUNCTION DoubleDouble<T> shuffle_xor(const DoubleDouble<T>& value, int mask) {
  return {shuffle_xor(value.high, mask), shuffle_xor(value.low, mask)};
}

/// Returns the value of a lane; all lanes of the warp must call.
template <class T>
KOKKOS_INLINE_FUNCTION T shuffle_from(T value, [[maybe_unused]] int lane) {
#if defined(__CUDA_ARCH__)
  return __shfl_sync(0xffffffffu, value, lane);
#elif defined(__HIP_DEVICE_COMPILE__)
  return __shfl(value, lane);
#else
  return value;
#endif
}

/// Mask with one bit for each lane of a warp.
#if defined(__HIP_DEVICE_COMPILE__)
using LaneMask = std::uint64_t;
#else
using LaneMask = std::uint32_t;
#endif

/// Mask of the lanes that pass true; all lanes of the warp must call.
KOKKOS_INLINE_FUNCTION LaneMask lanes_that(bool yes) {
#if defined(__CUDA_ARCH__)
  return __ballot_sync(0xffffffffu, yes);
#elif defined(__HIP_DEVICE_COMPILE__)
  return __ballot(yes);
#else
  return yes ? 1 : 0;
#endif
}

KOKKOS_INLINE_FUNCTION int count_bits([[maybe_unused]] LaneMask mask) {
#if defined(__CUDA_ARCH__)
  return __popc(mask);
#elif defined(__HIP_DEVICE_COMPILE__)
  return __popcll(mask);
#else
  return Kokkos::popcount(mask);
#endif
}

/// First lane of a mask that is not empty.
KOKKOS_INLINE_FUNCTION int first_lane([[maybe_unused]] LaneMask mask) {
#if defined(__CUDA_ARCH__)
  return __ffs(mask) - 1;
#elif defined(__HIP_DEVICE_COMPILE__)
  return __ffsll(static_cast<unsigned long long>(mask)) - 1;
#else
  return Kokkos::countr_zero(mask);
#endif
}

KOKKOS_INLINE_FUNCTION LaneMask lanes_before(int lane) { return (LaneMask(1) << lane) - 1; }

/// Number of lanes of the warp that pass true; all must call.
KOKKOS_INLINE_FUNCTION int count_lanes(bool yes) { return count_bits(lanes_that(yes)); }

/// Sum of the values of all lanes before this one; all lanes of the warp must call.
KOKKOS_INLINE_FUNCTION int sum_before([[maybe_unused]] int value, [[maybe_unused]] int lane) {
  int sum = value;
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
  KOKKOSNN_IMPL_UNROLL
  for (int distance = 1; distance < warp_width(); distance *= 2) {
    const int other = shuffle_from(sum, lane - distance);
    if (lane >= distance) sum += other;
  }
#endif
  return sum - value;
}

/// Makes the warp's writes to shared memory visible to all of its lanes.
KOKKOS_INLINE_FUNCTION void sync_lanes() {
#if defined(__CUDA_ARCH__)
  __syncwarp();
#elif defined(__HIP_DEVICE_COMPILE__)
  __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
  __builtin_amdgcn_wave_barrier();
#endif
}

/// Sets bits of a word in shared memory; several lanes may do so at once.
KOKKOS_INLINE_FUNCTION void set_shared_bits(std::uint32_t& word, std::uint32_t bits) {
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
  atomicOr(&word, bits);
#else
  word |= bits;
#endif
}

/// Number of this thread's warp in its team, on a GPU: kernels have vector length 1.
KOKKOS_INLINE_FUNCTION int team_warp() {
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
  return static_cast<int>(threadIdx.y) / warp_width();
#else
  return 0;
#endif
}

/// T of this warp in the shared memory of a GPU's team, which has `threads` threads.
template <class T, int threads>
KOKKOS_INLINE_FUNCTION T* warp_shared() {
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
  static_assert(sizeof(T) % 16 == 0);
  __shared__ alignas(16) char placement[threads / warp_width()][sizeof(T)];
  return reinterpret_cast<T*>(placement[team_warp()]);
#else
  return nullptr;
#endif
}

/// T in the shared memory of a GPU's team.
template <class T>
KOKKOS_INLINE_FUNCTION T* team_shared() {
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
  __shared__ alignas(16) char placement[sizeof(T)];
  return reinterpret_cast<T*>(placement);
#else
  return nullptr;
#endif
}

struct MaxJoin {
  template <class T>
  KOKKOS_INLINE_FUNCTION T operator()(T a, T b) const {
    return Kokkos::fmax(a, b);
  }
};

struct SumJoin {
  template <class T>
  KOKKOS_INLINE_FUNCTION T operator()(T a, T b) const {
    return a + b;
  }
};

/// True if a warp finds the largest integer of its lanes by one instruction.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
inline constexpr bool has_warp_max = true;
#else
inline constexpr bool has_warp_max = false;
#endif

/// Largest value of a whole warp by one instruction; no value may be NaN. Positive floats are ordered as their bits
/// are; negative ones have the bits below the sign inverted.
KOKKOS_INLINE_FUNCTION float warp_max([[maybe_unused]] float value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  const auto turned = [](int bits) { return bits ^ ((bits >> 31) & 0x7fffffff); };
  return __int_as_float(turned(__reduce_max_sync(0xffffffffu, turned(__float_as_int(value)))));
#else
  return value;  // not called
#endif
}

/// Sum of a whole warp's integers, by one instruction where there is one for the largest.
inline constexpr bool has_warp_sum = has_warp_max;
KOKKOS_INLINE_FUNCTION std::uint32_t warp_sum([[maybe_unused]] std::uint32_t value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  return __reduce_add_sync(0xffffffffu, value);
#else
  return value;  // not called
#endif
}

/// Joins the values of neighbouring lanes at distances `from`, 2 `from`, ... below `lanes` (a power of two, at most a
/// warp); every lane gets the result, bit for bit the same if `join` is commutative.
template <class T, class Join>
KOKKOS_INLINE_FUNCTION T reduce_lanes(T value, [[maybe_unused]] int from, [[maybe_unused]] int lanes,
                                      [[maybe_unused]] const Join& join) {
  if constexpr (warp_width() > 1) {
    if (from == 1 && lanes == warp_width()) {  // the common case, without a branch a step
      if constexpr (has_warp_max && std::is_same_v<T, float> && std::is_same_v<Join, MaxJoin>) {
        return warp_max(value);
      } else {
        KOKKOSNN_IMPL_UNROLL
        for (int distance = warp_width() / 2; distance > 0; distance /= 2) {
          value = join(value, shuffle_xor(value, distance));
        }
        return value;
      }
    }
    KOKKOSNN_IMPL_NO_UNROLL
    for (int distance = lanes >> 1; distance >= from; distance >>= 1) value = join(value, shuffle_xor(value, distance));
  }
  return value;
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_DEVICE_WARP_HPP
