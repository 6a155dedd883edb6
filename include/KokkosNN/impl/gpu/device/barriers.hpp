// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_DEVICE_BARRIERS_HPP
#define KOKKOSNN_IMPL_GPU_DEVICE_BARRIERS_HPP

#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

// Barriers against the optimisers of nvcc and of LLVM: each returns its argument, or 0, and hides that.

namespace KokkosNN::Impl {

/// The value itself, but unknown to the optimiser. nvcc would otherwise multiply row by stride again for every pack,
/// and compute the addresses of all elements of all packs, which only rows without whole packs need, ahead of the loop
/// over rows, and spill them.
template <class T>
KOKKOS_INLINE_FUNCTION T opaque(T value) {
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<T, float>) {
    asm volatile("" : "+f"(value));
  } else if constexpr (std::is_same_v<T, double>) {
    asm volatile("" : "+d"(value));
  } else if constexpr (sizeof(T) == 8) {
    asm volatile("" : "+l"(value));
  } else {
    asm volatile("" : "+r"(value));
  }
#elif defined(__HIP_DEVICE_COMPILE__)
  // Not a pointer: what it points to would no longer be known to be global memory.
  if constexpr (!std::is_pointer_v<T>) asm volatile("" : "+v"(value));
#endif
  return value;
}

/// The same for LLVM on HIP alone, which keeps what two passes over a tile have in common, addresses above all, in
/// registers from one to the other, and spills: behind this they are computed anew.
template <class T>
KOKKOS_INLINE_FUNCTION T anew(T value) {
#if defined(__HIP_DEVICE_COMPILE__)
  return opaque(value);
#else
  return value;
#endif
}

/// `opaque` for a number that all threads have alike, a kernel's argument: on HIP it stays a scalar. In `opaque`'s
/// vector register LLVM would keep it from ahead of the loop over rows on, once for each place that asks.
KOKKOS_INLINE_FUNCTION std::int64_t opaque_argument(std::int64_t value) {
#if defined(__HIP_DEVICE_COMPILE__) && defined(__OPTIMIZE__)  // otherwise LLVM has all values in vector registers
  // Nothing once this is inlined; before, a function's argument is in vector registers too.
  int low  = __builtin_amdgcn_readfirstlane(static_cast<int>(value));
  int high = __builtin_amdgcn_readfirstlane(static_cast<int>(value >> 32));
  asm volatile("" : "+s"(low), "+s"(high));
  return static_cast<std::int64_t>(high) << 32 | static_cast<std::uint32_t>(low);
#elif defined(__HIP_DEVICE_COMPILE__)
  return value;
#else
  return opaque(value);
#endif
}

/// `anew` for the same.
KOKKOS_INLINE_FUNCTION std::int64_t anew_argument(std::int64_t value) {
#if defined(__HIP_DEVICE_COMPILE__)
  return opaque_argument(value);
#else
  return value;
#endif
}

/// 0, but no compiler knows: ptxas sees through `opaque`. Those of different numbers are not known to be equal.
template <int number>
KOKKOS_INLINE_FUNCTION std::uint32_t unknown_zero() {
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
  static_assert(number >= 0 && number < 3);
  return number == 0 ? threadIdx.z : number == 1 ? blockIdx.y : blockIdx.z;  // teams are numbered by the others
#else
  return 0;
#endif
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_DEVICE_BARRIERS_HPP
