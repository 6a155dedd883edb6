// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_DEVICE_MATRIX_INSTRUCTIONS_HPP
#define KOKKOSNN_IMPL_GPU_DEVICE_MATRIX_INSTRUCTIONS_HPP

#include <KokkosNN/half.hpp>
#include <KokkosNN/impl/gpu/device/memory.hpp>
#include <KokkosNN/impl/gpu/device/warp.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <cstring>
#include <type_traits>

// The instructions below a matrix unit (matrix_unit.hpp): accesses of team scratch, asynchronous copies, exchanges
// within a warp, products of tensor cores and of AMD's matrix cores. A unit takes them as a template argument, so that
// a test can run a kernel on instructions that it emulates. An address is a place in team scratch.

namespace KokkosNN::Impl {

/// 16 bytes, the most that a thread moves at once.
struct alignas(16) MatrixChunk {
  std::uint32_t word[4];
};

/// Copies that are done when they return, and exchanges by shuffles: for machines without asynchronous copies.
struct SynchronousInstructions {
  KOKKOS_FORCEINLINE_FUNCTION static void commit() {}
  template <int n>
  KOKKOS_FORCEINLINE_FUNCTION static void wait() {}

  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION static T exchange(T value, int mask) {
    return shuffle_xor(value, mask);
  }
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION static T value_of(T value, int lane) {
    return shuffle_from(value, lane);
  }
  KOKKOS_FORCEINLINE_FUNCTION static bool any(bool yes) { return lanes_that(yes) != 0; }
};

/// Plain memory accesses: any machine.
struct PlainInstructions : SynchronousInstructions {
  using Address = char*;

  KOKKOS_FORCEINLINE_FUNCTION static Address address(void* p) { return static_cast<char*>(p); }
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION static T load(Address from) {
    return *reinterpret_cast<const T*>(from);
  }
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION static void store(Address to, const T& value) {
    *reinterpret_cast<T*>(to) = value;
  }
  KOKKOS_FORCEINLINE_FUNCTION static void copy_async(Address to, const void* from, int bytes) {
    MatrixChunk chunk{};
    if (bytes == 16) {
      chunk = *static_cast<const MatrixChunk*>(from);
    } else {
      for (int i = 0; i < bytes / 2; ++i) {  // elements have 2 bytes or more
        const std::uint32_t half = static_cast<const std::uint16_t*>(from)[i];
        chunk.word[i / 2] |= half << (i % 2 * 16);
      }
    }
    store(to, chunk);
  }
};

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define KOKKOSNN_IMPL_HAS_MMA
#endif
#if defined(__gfx90a__) || defined(__gfx940__) || defined(__gfx942__) || defined(__gfx950__)
#define KOKKOSNN_IMPL_HAS_MFMA
#endif

/// NVIDIA's instructions from sm_80 on; elsewhere nothing calls them. Fragments are as the PTX ISA has them.
struct NvidiaInstructions {
  using Address = std::uint32_t;

  KOKKOS_FORCEINLINE_FUNCTION static Address address(void* p) { return shared_address(p); }

  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION static T load([[maybe_unused]] Address from) {
    static_assert(sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16);
#if defined(__CUDA_ARCH__)
    if constexpr (sizeof(T) == 2) {
      std::uint16_t bits;
      asm volatile("ld.shared.b16 %0, [%1];" : "=h"(bits) : "r"(from) : "memory");
      return Kokkos::bit_cast<T>(bits);
    } else if constexpr (sizeof(T) == 4) {
      std::uint32_t bits;
      asm volatile("ld.shared.b32 %0, [%1];" : "=r"(bits) : "r"(from) : "memory");
      return Kokkos::bit_cast<T>(bits);
    } else if constexpr (sizeof(T) == 8) {
      unsigned long long bits;
      asm volatile("ld.shared.b64 %0, [%1];" : "=l"(bits) : "r"(from) : "memory");
      return Kokkos::bit_cast<T>(bits);
    } else {
      MatrixChunk bits;
      asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(bits.word[0]), "=r"(bits.word[1]), "=r"(bits.word[2]), "=r"(bits.word[3])
                   : "r"(from)
                   : "memory");
      return Kokkos::bit_cast<T>(bits);
    }
#else
    return T{};
#endif
  }

  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION static void store([[maybe_unused]] Address to, [[maybe_unused]] const T& value) {
    static_assert(sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16);
#if defined(__CUDA_ARCH__)
    if constexpr (sizeof(T) == 2) {
      asm volatile("st.shared.b16 [%0], %1;" ::"r"(to), "h"(Kokkos::bit_cast<std::uint16_t>(value)) : "memory");
    } else if constexpr (sizeof(T) == 4) {
      asm volatile("st.shared.b32 [%0], %1;" ::"r"(to), "r"(Kokkos::bit_cast<std::uint32_t>(value)) : "memory");
    } else if constexpr (sizeof(T) == 8) {
      asm volatile("st.shared.b64 [%0], %1;" ::"r"(to), "l"(Kokkos::bit_cast<unsigned long long>(value)) : "memory");
    } else {
      const auto bits = Kokkos::bit_cast<MatrixChunk>(value);
      asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(bits.word[0]), "r"(bits.word[1]),
                   "r"(bits.word[2]), "r"(bits.word[3])
                   : "memory");
    }
#endif
  }

  KOKKOS_FORCEINLINE_FUNCTION static void copy_async([[maybe_unused]] Address to, [[maybe_unused]] const void* from,
                                                     [[maybe_unused]] int bytes) {
#if defined(KOKKOSNN_IMPL_HAS_MMA)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(__cvta_generic_to_global(from)),
                 "r"(bytes)
                 : "memory");
#endif
  }
  KOKKOS_FORCEINLINE_FUNCTION static void commit() {
#if defined(KOKKOSNN_IMPL_HAS_MMA)
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
  }
  template <int n>
  KOKKOS_FORCEINLINE_FUNCTION static void wait() {
#if defined(KOKKOSNN_IMPL_HAS_MMA)
    asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory");
#endif
  }

  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION static T exchange(T value, int mask) {
    return shuffle_xor(value, mask);
  }
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION static T value_of(T value, int lane) {
    return shuffle_from(value, lane);
  }
  KOKKOS_FORCEINLINE_FUNCTION static bool any(bool yes) { return lanes_that(yes) != 0; }

  /// Four blocks of 8 rows x 16 bytes, as they are or, their elements of 16 bits, transposed. Lane l has the address of
  /// row l % 8 of block l / 8.
  template <bool transposed>
  KOKKOS_FORCEINLINE_FUNCTION static void load_blocks([[maybe_unused]] std::uint32_t (&to)[4],
                                                      [[maybe_unused]] Address row) {
#if defined(KOKKOSNN_IMPL_HAS_MMA)
    if constexpr (transposed) {
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                   : "r"(row)
                   : "memory");
    } else {
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                   : "r"(row)
                   : "memory");
    }
#endif
  }

  /// Two floats rounded to 16 bits, the first in the lower half.
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION static std::uint32_t packed([[maybe_unused]] float first, [[maybe_unused]] float second) {
    std::uint32_t bits = 0;
#if defined(KOKKOSNN_IMPL_HAS_MMA)
    if constexpr (std::is_same_v<T, bhalf_t>) {
      asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(second), "f"(first));
    } else {
      asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(second), "f"(first));
    }
#endif
    return bits;
  }

  /// 16 x 16 by 16 x 8 elements of 16 bits.
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION static void product16([[maybe_unused]] float& d0, [[maybe_unused]] float& d1,
                                                    [[maybe_unused]] float& d2, [[maybe_unused]] float& d3,
                                                    [[maybe_unused]] const std::uint32_t (&a)[4],
                                                    [[maybe_unused]] std::uint32_t b0,
                                                    [[maybe_unused]] std::uint32_t b1) {
#if defined(KOKKOSNN_IMPL_HAS_MMA)
    if constexpr (std::is_same_v<T, bhalf_t>) {
      asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
          "{%0, %1, %2, %3};"
          : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    } else {
      asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
          "{%0, %1, %2, %3};"
          : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    }
#endif
  }

  /// 16 x 8 by 8 x 8 floats, whose lower 13 bits are dropped.
  KOKKOS_FORCEINLINE_FUNCTION static void product_tf32([[maybe_unused]] float& d0, [[maybe_unused]] float& d1,
                                                       [[maybe_unused]] float& d2, [[maybe_unused]] float& d3,
                                                       [[maybe_unused]] const std::uint32_t (&a)[4],
                                                       [[maybe_unused]] std::uint32_t b0,
                                                       [[maybe_unused]] std::uint32_t b1) {
#if defined(KOKKOSNN_IMPL_HAS_MMA)
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
  }

  /// 16 x K by K x 8 doubles, K 4 or 8. Cards before sm_90 have products of 8 rows and K = 4 alone.
  template <int K>
  KOKKOS_FORCEINLINE_FUNCTION static void product64([[maybe_unused]] double& d0, [[maybe_unused]] double& d1,
                                                    [[maybe_unused]] double& d2, [[maybe_unused]] double& d3,
                                                    [[maybe_unused]] const double (&a)[K / 2],
                                                    [[maybe_unused]] const double (&b)[K / 4]) {
    static_assert(K == 4 || K == 8);
#if defined(KOKKOSNN_IMPL_HAS_MMA) && __CUDA_ARCH__ >= 900
    if constexpr (K == 4) {
      asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
          : "+d"(d0), "+d"(d1), "+d"(d2), "+d"(d3)
          : "d"(a[0]), "d"(a[1]), "d"(b[0]));
    } else {
      asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
          "{%0, %1, %2, %3};"
          : "+d"(d0), "+d"(d1), "+d"(d2), "+d"(d3)
          : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
    }
#elif defined(KOKKOSNN_IMPL_HAS_MMA)
    for (int k = 0; k < K / 4; ++k) {
      asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
          : "+d"(d0), "+d"(d1)
          : "d"(a[2 * k]), "d"(b[k]));
      asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
          : "+d"(d2), "+d"(d3)
          : "d"(a[2 * k + 1]), "d"(b[k]));
    }
#endif
  }
};

/// AMD's instructions from CDNA2 on; elsewhere nothing calls them. A product is D += A B, by 64 lanes: lane l has row
/// l % 16 of A and column l % 16 of B, at k from n (l / 16) on, as many as the product takes of a lane. Of D it has
/// column l % 16: floats of rows 4 (l / 16) + i, doubles of rows l / 16 + 4 i, i from 0 to 3.
///
/// Addresses are those of LDS, and copies read global memory: through pointers of any space LLVM would access both by
/// instructions that wait for both. Copies go through registers, so a thread has its own at once. Bits are cast by the
/// compiler: HIP's memcpy, which Kokkos casts by, takes bytes one by one, and LLVM does not see through all of them.
struct AmdInstructions : SynchronousInstructions {
  using Address = std::uint32_t;

  KOKKOS_FORCEINLINE_FUNCTION static Address address([[maybe_unused]] void* p) {
#if defined(KOKKOSNN_IMPL_HAS_MFMA)
    return static_cast<Address>(reinterpret_cast<std::uintptr_t>((__attribute__((address_space(3))) char*)p));
#else
    return 0;
#endif
  }
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION static T load([[maybe_unused]] Address from) {
#if defined(KOKKOSNN_IMPL_HAS_MFMA)
    return __builtin_bit_cast(T, *reinterpret_cast<__attribute__((address_space(3))) const Bits<T>*>(from));
#else
    return T{};
#endif
  }
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION static void store([[maybe_unused]] Address to, [[maybe_unused]] const T& value) {
#if defined(KOKKOSNN_IMPL_HAS_MFMA)
    *reinterpret_cast<__attribute__((address_space(3))) Bits<T>*>(to) = __builtin_bit_cast(Bits<T>, value);
#endif
  }
  KOKKOS_FORCEINLINE_FUNCTION static void copy_async([[maybe_unused]] Address to, [[maybe_unused]] const void* from,
                                                     [[maybe_unused]] int bytes) {
#if defined(KOKKOSNN_IMPL_HAS_MFMA)
    if (bytes == 16) return store(to, load_global<MatrixChunk>(from));
    std::uint64_t low = 0, high = 0;  // no array: its elements would be in memory
    KOKKOSNN_IMPL_NO_UNROLL
    for (int i = bytes / 2 - 1; i >= 0; --i) {  // elements have 2 bytes or more
      high = high << 16 | low >> 48;
      low  = low << 16 | load_global<std::uint16_t>(static_cast<const std::uint16_t*>(from) + i);
    }
    store(to, low);
    store(to + 8, high);
#endif
  }

  /// 16 x 16 by 16 x 16 elements of 16 bits.
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION static void product16([[maybe_unused]] float (&d)[4], [[maybe_unused]] const T (&a)[4],
                                                    [[maybe_unused]] const T (&b)[4]) {
#if defined(KOKKOSNN_IMPL_HAS_MFMA)
    if constexpr (std::is_same_v<T, bhalf_t>) {
      put(d, __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(vector_of<Shorts>(a), vector_of<Shorts>(b), vector_of<Floats>(d),
                                                       0, 0, 0));
    } else {
      put(d, __builtin_amdgcn_mfma_f32_16x16x16f16(vector_of<Halves>(a), vector_of<Halves>(b), vector_of<Floats>(d), 0,
                                                   0, 0));
    }
#endif
  }
  /// 16 x 4 by 4 x 16 floats.
  KOKKOS_FORCEINLINE_FUNCTION static void product32([[maybe_unused]] float (&d)[4], [[maybe_unused]] float a,
                                                    [[maybe_unused]] float b) {
#if defined(KOKKOSNN_IMPL_HAS_MFMA)
    put(d, __builtin_amdgcn_mfma_f32_16x16x4f32(a, b, vector_of<Floats>(d), 0, 0, 0));
#endif
  }
  /// 16 x 4 by 4 x 16 doubles.
  KOKKOS_FORCEINLINE_FUNCTION static void product64([[maybe_unused]] double (&d)[4], [[maybe_unused]] double a,
                                                    [[maybe_unused]] double b) {
#if defined(KOKKOSNN_IMPL_HAS_MFMA)
    put(d, __builtin_amdgcn_mfma_f64_16x16x4f64(a, b, vector_of<Doubles>(d), 0, 0, 0));
#endif
  }

#if defined(KOKKOSNN_IMPL_HAS_MFMA)
 private:
  using Shorts  = __attribute__((ext_vector_type(4))) short;
  using Halves  = __attribute__((ext_vector_type(4))) _Float16;
  using Floats  = __attribute__((ext_vector_type(4))) float;
  using Doubles = __attribute__((ext_vector_type(4))) double;
  using Words2  = __attribute__((ext_vector_type(2))) std::uint32_t;
  using Words4  = __attribute__((ext_vector_type(4))) std::uint32_t;
  /// A type of built-in ones that is as large as T and can be in any memory.
  template <class T>
  using Bits = std::conditional_t<
      sizeof(T) == 2, std::uint16_t,
      std::conditional_t<sizeof(T) == 4, std::uint32_t, std::conditional_t<sizeof(T) == 8, Words2, Words4>>>;

  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION static T load_global(const void* from) {
    return __builtin_bit_cast(T, *(__attribute__((address_space(1))) const Bits<T>*)from);
  }
  template <class V, class T>
  KOKKOS_FORCEINLINE_FUNCTION static V vector_of(const T (&values)[4]) {
    using Number = std::remove_cvref_t<decltype(V{}[0])>;
    return V{__builtin_bit_cast(Number, values[0]), __builtin_bit_cast(Number, values[1]),
             __builtin_bit_cast(Number, values[2]), __builtin_bit_cast(Number, values[3])};
  }
  template <class T, class V>
  KOKKOS_FORCEINLINE_FUNCTION static void put(T (&to)[4], const V& vector) {
    for (int i = 0; i < 4; ++i) to[i] = vector[i];
  }
#endif
};

}  // namespace KokkosNN::Impl

#undef KOKKOSNN_IMPL_HAS_MMA
#undef KOKKOSNN_IMPL_HAS_MFMA

#endif  // KOKKOSNN_IMPL_GPU_DEVICE_MATRIX_INSTRUCTIONS_HPP
