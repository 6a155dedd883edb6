// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_DEVICE_BARRIERS_HPP
#define KOKKOSNN_IMPL_GPU_DEVICE_BARRIERS_HPP

#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

// Barriers against the optimisers of nvcc and LLVM: each returns its argument, or 0, and hides that fact.
//
//   function        | argument                     | acts on
//   opaque          | a thread's value             | nvcc, and LLVM on HIP
//   anew            | a thread's value             | LLVM on HIP
//   opaque_argument | a value equal in all threads | nvcc, and LLVM on HIP
//   anew_argument   | a value equal in all threads | LLVM on HIP
//   unknown_zero    | none                         | both, and ptxas, which sees through the others
//
// On HIP the registers of most kernels depend on them: LLVM computes addresses that are equal for all rows ahead of the
// loop over rows, for each element of a pack, and spills them. LLVM's pass that moves constants out of loops is off for
// that reason (`KokkosNN_KERNEL_FLAGS`): the constants of a double's exp and tanh would fill the registers before
// anything is loaded.

namespace KokkosNN::Impl {

/// Returns its argument, unknown to the optimiser. nvcc would otherwise multiply row by stride again for every pack,
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
  // Pointers are exempt: LLVM would no longer know that they point to global memory.
  if constexpr (!std::is_pointer_v<T>) asm volatile("" : "+v"(value));
#endif
  return value;
}

/// Returns its argument, unknown to LLVM on HIP alone. LLVM keeps values that two passes over a tile have in common,
/// addresses above all, in registers from one pass to the other, and spills: behind `anew` they are computed again.
template <class T>
KOKKOS_INLINE_FUNCTION T anew(T value) {
#if defined(__HIP_DEVICE_COMPILE__)
  return opaque(value);
#else
  return value;
#endif
}

/// Acts as `opaque` on a kernel's argument, which is equal in all threads: on HIP it stays a scalar. In a vector
/// register LLVM would keep it from ahead of the loop over rows on, once for each use.
KOKKOS_INLINE_FUNCTION std::int64_t opaque_argument(std::int64_t value) {
#if defined(__HIP_DEVICE_COMPILE__) && defined(__OPTIMIZE__)  // otherwise LLVM has all values in vector registers
  // readfirstlane costs nothing once this is inlined; before that, a function's argument is in vector registers, too.
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

/// Acts as `anew` on a kernel's argument, which is equal in all threads.
KOKKOS_INLINE_FUNCTION std::int64_t anew_argument(std::int64_t value) {
#if defined(__HIP_DEVICE_COMPILE__)
  return opaque_argument(value);
#else
  return value;
#endif
}

/// Returns 0, which no compiler knows: ptxas sees through `opaque`. Zeros of different numbers are not known to be
/// equal.
template <int number>
KOKKOS_INLINE_FUNCTION std::uint32_t unknown_zero() {
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
  static_assert(number >= 0 && number < 3);
  // Kokkos numbers teams by the other indices
  return number == 0 ? threadIdx.z : number == 1 ? blockIdx.y : blockIdx.z;
#else
  return 0;
#endif
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_DEVICE_BARRIERS_HPP
