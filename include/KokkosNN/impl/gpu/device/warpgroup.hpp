// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_DEVICE_WARPGROUP_HPP
#define KOKKOSNN_IMPL_GPU_DEVICE_WARPGROUP_HPP

#include <KokkosNN/half.hpp>
#include <KokkosNN/impl/backend.hpp>
#include <KokkosNN/impl/gpu/device/matrix_instructions.hpp>
#include <KokkosNN/impl/tensor_map.hpp>
#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

// Hopper's instructions for warpgroups, four warps that multiply tiles in shared memory: copies of boxes of a tensor,
// barriers that count the bytes that have come, and products that run while their threads go on. They exist on sm_90a
// alone, which promises nothing to later devices, so the library compiles them in files of their own, and a kernel
// takes them as a template argument, as a unit takes those of matrix_instructions.hpp.

namespace KokkosNN::Impl {

/// True in a file that is compiled for sm_90a, which its flags say by this macro besides: nvcc does not tell the host's
/// pass. Not inline: files differ.
#if defined(KOKKOSNN_FOR_SM_90A) && defined(KOKKOS_ENABLE_CUDA)
static constexpr bool is_compiled_for_warpgroups = true;
#else
static constexpr bool is_compiled_for_warpgroups = false;
#endif

/// True if an instance's device has these instructions.
template <class Exec>
bool has_warpgroups([[maybe_unused]] const Exec& exec) {
  if constexpr (backend_of<Exec>() == Backend::cuda) {
    return exec.cuda_device_prop().major == 9 && exec.cuda_device_prop().minor == 0;
  } else {
    return false;
  }
}

/// Tiles in shared memory, as copies write and products read them: rows of 128 bytes, the 16-byte chunks of each row in
/// an order of its own, so that the same chunk of eight rows lies in different banks. Tiles begin at multiples of 1024
/// bytes. A row is 64 elements along the sums' axis ("along"), or 64 across it; a tile of more has blocks of such rows,
/// one after the other.
inline constexpr int warpgroup_row_bytes  = 128;
inline constexpr int warpgroup_alignment  = 1024;
inline constexpr int warpgroup_threads    = 128;
inline constexpr int warpgroup_rows       = 64;  ///< of a product's sums
inline constexpr int warpgroup_inner      = 16;  ///< products that one instruction sums
inline constexpr int warpgroup_tile_inner = 64;  ///< of a tile: a row of it, or so many rows

/// How products find a tile: its address, and the bytes from a block of 64 elements across the sums' axis to the next,
/// of tiles whose rows go across it.
KOKKOS_INLINE_FUNCTION constexpr std::uint64_t warpgroup_tile(std::uint32_t address, int block_bytes) {
  constexpr std::uint64_t eight_rows = 8 * warpgroup_row_bytes, order_of_128_bytes = 1;
  return std::uint64_t((address & 0x3ffffu) >> 4) | std::uint64_t(static_cast<unsigned>(block_bytes) >> 4) << 16 |
         (eight_rows >> 4) << 32 | order_of_128_bytes << 62;
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define KOKKOSNN_IMPL_HAS_WARPGROUPS
#endif

// Operands of an instruction of inline assembly have numbers: the sums' come first, then those of a and b.
// clang-format off
#define KOKKOSNN_IMPL_SUMS4(i) "+f"(sums[i]), "+f"(sums[i + 1]), "+f"(sums[i + 2]), "+f"(sums[i + 3])
#define KOKKOSNN_IMPL_SUMS16(i) \
  KOKKOSNN_IMPL_SUMS4(i), KOKKOSNN_IMPL_SUMS4(i + 4), KOKKOSNN_IMPL_SUMS4(i + 8), KOKKOSNN_IMPL_SUMS4(i + 12)
#define KOKKOSNN_IMPL_SUMS32(i) KOKKOSNN_IMPL_SUMS16(i), KOKKOSNN_IMPL_SUMS16(i + 16)
#define KOKKOSNN_IMPL_SUMS64(i) KOKKOSNN_IMPL_SUMS32(i), KOKKOSNN_IMPL_SUMS32(i + 32)
#define KOKKOSNN_IMPL_SUMS96(i) KOKKOSNN_IMPL_SUMS64(i), KOKKOSNN_IMPL_SUMS32(i + 64)
#define KOKKOSNN_IMPL_SUMS128(i) KOKKOSNN_IMPL_SUMS64(i), KOKKOSNN_IMPL_SUMS64(i + 64)
#define KOKKOSNN_IMPL_NAMES32                                                                                         \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                                            \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define KOKKOSNN_IMPL_NAMES64                                                                                         \
  KOKKOSNN_IMPL_NAMES32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "          \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define KOKKOSNN_IMPL_NAMES96                                                                                         \
  KOKKOSNN_IMPL_NAMES64 ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "          \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define KOKKOSNN_IMPL_NAMES128                                                                                        \
  KOKKOSNN_IMPL_NAMES96 ", "                                                                                          \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "                      \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define KOKKOSNN_IMPL_PRODUCT(cols, type, names, adds, operands)                                                      \
  "{\n .reg .pred p;\n setp.ne.b32 p, " adds ", 0;\n"                                                                \
  " wgmma.mma_async.sync.aligned.m64n" cols "k16.f32." type "." type " {" names "}, " operands ";\n}\n"
// Both operands in shared memory, or a in registers.
#define KOKKOSNN_IMPL_PRODUCT_OF_TILES(count, cols, type, a, b, adds, a_order, b_order)                               \
  asm volatile(KOKKOSNN_IMPL_PRODUCT(cols, type, KOKKOSNN_IMPL_NAMES##count, adds,                                    \
                                     a ", " b ", p, 1, 1, " a_order ", " b_order)                                     \
               : KOKKOSNN_IMPL_SUMS##count(0)                                                                         \
               : "l"(of_a), "l"(of_b), "r"(int(adds_up)), "n"(int(a_across)), "n"(int(b_across)))
#define KOKKOSNN_IMPL_PRODUCT_OF_REGISTERS(count, cols, type, a0, a1, a2, a3, b, adds, b_order)                       \
  asm volatile(KOKKOSNN_IMPL_PRODUCT(cols, type, KOKKOSNN_IMPL_NAMES##count, adds,                                    \
                                     "{" a0 ", " a1 ", " a2 ", " a3 "}, " b ", p, 1, 1, " b_order)                    \
               : KOKKOSNN_IMPL_SUMS##count(0)                                                                         \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(of_b), "r"(int(adds_up)), "n"(int(b_across)))
// clang-format on

struct HopperInstructions : NvidiaInstructions {
  using Map = TensorMap;
  /// False in code for other devices, which nvcc makes beside that for sm_90a: such a kernel is empty.
#if defined(__CUDA_ARCH__) && !defined(KOKKOSNN_IMPL_HAS_WARPGROUPS)
  static constexpr bool exist = false;
#else
  static constexpr bool exist = true;
#endif

  /// A number that all lanes of a warp have, known to be one.
  KOKKOS_FORCEINLINE_FUNCTION static int uniform(int value) {
#if defined(KOKKOSNN_IMPL_HAS_WARPGROUPS)
    return __shfl_sync(0xffffffffu, value, 0);
#else
    return value;
#endif
  }

  // --- barriers: 8 bytes of shared memory. A phase ends when all have arrived and all expected bytes have come ---

  KOKKOS_FORCEINLINE_FUNCTION static void make_barrier([[maybe_unused]] Address barrier,
                                                       [[maybe_unused]] int arrivals) {
#if defined(KOKKOSNN_IMPL_HAS_WARPGROUPS)
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
#endif
  }
  /// Ahead of the team's barrier behind which others use these.
  KOKKOS_FORCEINLINE_FUNCTION static void publish_barriers() {
#if defined(KOKKOSNN_IMPL_HAS_WARPGROUPS)
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
  }
  KOKKOS_FORCEINLINE_FUNCTION static void arrive([[maybe_unused]] Address barrier) {
#if defined(KOKKOSNN_IMPL_HAS_WARPGROUPS)
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
#endif
  }
  /// Arrives, and tells how many bytes will come.
  KOKKOS_FORCEINLINE_FUNCTION static void expect([[maybe_unused]] Address barrier, [[maybe_unused]] int bytes) {
#if defined(KOKKOSNN_IMPL_HAS_WARPGROUPS)
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
#endif
  }
  /// Waits for the end of the phase of that parity, the first phase having 0. (A trap behind so many tries would make
  /// ptxas run the products one by one.)
  KOKKOS_FORCEINLINE_FUNCTION static void await([[maybe_unused]] Address barrier, [[maybe_unused]] int parity) {
#if defined(KOKKOSNN_IMPL_HAS_WARPGROUPS)
    std::uint32_t has_ended = 0;
    while (has_ended == 0) {
      asm volatile(
          "{\n .reg .pred p;\n"
          " mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
          " selp.u32 %0, 1, 0, p;\n}\n"
          : "=r"(has_ended)
          : "r"(barrier), "r"(parity)
          : "memory");
    }
#endif
  }

  // --- copies ---

  KOKKOS_FORCEINLINE_FUNCTION static void prefetch([[maybe_unused]] const Map& map) {
#if defined(KOKKOSNN_IMPL_HAS_WARPGROUPS)
    asm volatile("prefetch.tensormap [%0];" ::"l"(reinterpret_cast<unsigned long long>(&map)) : "memory");
#endif
  }
  /// Copies the map's box at a place of the tensor, zeros where it leaves the tensor, and tells the barrier.
  KOKKOS_FORCEINLINE_FUNCTION static void fetch([[maybe_unused]] Address to, [[maybe_unused]] const Map& map,
                                                [[maybe_unused]] const int (&at)[TensorMap::rank],
                                                [[maybe_unused]] Address barrier) {
#if defined(KOKKOSNN_IMPL_HAS_WARPGROUPS)
    asm volatile(
        "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6, %7}], "
        "[%2];" ::"r"(to),
        "l"(reinterpret_cast<unsigned long long>(&map)), "r"(barrier), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]),
        "r"(at[4])
        : "memory");
#endif
  }

  // --- products: a group of them is opened, closed, and waited for by all threads of a warpgroup ---

  KOKKOS_FORCEINLINE_FUNCTION static void open_products() {
#if defined(KOKKOSNN_IMPL_HAS_WARPGROUPS)
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
  }
  KOKKOS_FORCEINLINE_FUNCTION static void close_products() {
#if defined(KOKKOSNN_IMPL_HAS_WARPGROUPS)
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
  }
  /// Waits until so many groups at most still run.
  template <int groups>
  KOKKOS_FORCEINLINE_FUNCTION static void await_products() {
#if defined(KOKKOSNN_IMPL_HAS_WARPGROUPS)
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(groups) : "memory");
#endif
  }
  /// Keeps the compiler's reads and writes of sums on their side of this place.
  template <int count>
  KOKKOS_FORCEINLINE_FUNCTION static void keep([[maybe_unused]] float (&sums)[count]) {
#if defined(KOKKOSNN_IMPL_HAS_WARPGROUPS)
    KOKKOSNN_IMPL_UNROLL
    for (int i = 0; i < count; ++i) asm volatile("" : "+f"(sums[i])::"memory");
#endif
  }
  /// 64 x 16 by 16 x (2 count) elements of 16 bits, added to the sums or in place of them. Thread t of a warpgroup has,
  /// as number 4 j + 2 r + c, the sum of row t / 32 * 16 + t % 32 / 4 + 8 r and column 8 j + t % 4 * 2 + c.
  template <class T, bool a_across, bool b_across, int count>
  KOKKOS_FORCEINLINE_FUNCTION static void product([[maybe_unused]] float (&sums)[count],
                                                  [[maybe_unused]] std::uint64_t of_a,
                                                  [[maybe_unused]] std::uint64_t of_b, [[maybe_unused]] bool adds_up) {
    static_assert(count == 32 || count == 64 || count == 128);
#if defined(KOKKOSNN_IMPL_HAS_WARPGROUPS)
    constexpr bool is_bf16 = std::is_same_v<T, bhalf_t>;
    if constexpr (count == 128 && is_bf16) {
      KOKKOSNN_IMPL_PRODUCT_OF_TILES(128, "256", "bf16", "%128", "%129", "%130", "%131", "%132");
    } else if constexpr (count == 128) {
      KOKKOSNN_IMPL_PRODUCT_OF_TILES(128, "256", "f16", "%128", "%129", "%130", "%131", "%132");
    } else if constexpr (count == 64 && is_bf16) {
      KOKKOSNN_IMPL_PRODUCT_OF_TILES(64, "128", "bf16", "%64", "%65", "%66", "%67", "%68");
    } else if constexpr (count == 64) {
      KOKKOSNN_IMPL_PRODUCT_OF_TILES(64, "128", "f16", "%64", "%65", "%66", "%67", "%68");
    } else if constexpr (is_bf16) {
      KOKKOSNN_IMPL_PRODUCT_OF_TILES(32, "64", "bf16", "%32", "%33", "%34", "%35", "%36");
    } else {
      KOKKOSNN_IMPL_PRODUCT_OF_TILES(32, "64", "f16", "%32", "%33", "%34", "%35", "%36");
    }
#endif
  }
  /// As above, a in registers: a word is two neighbours along the sums' axis, and word 2 i + r of thread t has those of
  /// row t / 32 * 16 + t % 32 / 4 + 8 r from element 8 i + t % 4 * 2 on. So the sums 4 j to 4 j + 3 and 4 j + 4 to
  /// 4 j + 7, rounded pair by pair, are the four words for the 16 columns from 8 j on.
  template <class T, bool b_across, int count>
  KOKKOS_FORCEINLINE_FUNCTION static void product([[maybe_unused]] float (&sums)[count],
                                                  [[maybe_unused]] const std::uint32_t* a,
                                                  [[maybe_unused]] std::uint64_t of_b, [[maybe_unused]] bool adds_up) {
    static_assert(count == 32 || count == 64 || count == 96 || count == 128);
#if defined(KOKKOSNN_IMPL_HAS_WARPGROUPS)
    constexpr bool is_bf16 = std::is_same_v<T, bhalf_t>;
    if constexpr (count == 128 && is_bf16) {
      KOKKOSNN_IMPL_PRODUCT_OF_REGISTERS(128, "256", "bf16", "%128", "%129", "%130", "%131", "%132", "%133", "%134");
    } else if constexpr (count == 128) {
      KOKKOSNN_IMPL_PRODUCT_OF_REGISTERS(128, "256", "f16", "%128", "%129", "%130", "%131", "%132", "%133", "%134");
    } else if constexpr (count == 96 && is_bf16) {
      KOKKOSNN_IMPL_PRODUCT_OF_REGISTERS(96, "192", "bf16", "%96", "%97", "%98", "%99", "%100", "%101", "%102");
    } else if constexpr (count == 96) {
      KOKKOSNN_IMPL_PRODUCT_OF_REGISTERS(96, "192", "f16", "%96", "%97", "%98", "%99", "%100", "%101", "%102");
    } else if constexpr (count == 64 && is_bf16) {
      KOKKOSNN_IMPL_PRODUCT_OF_REGISTERS(64, "128", "bf16", "%64", "%65", "%66", "%67", "%68", "%69", "%70");
    } else if constexpr (count == 64) {
      KOKKOSNN_IMPL_PRODUCT_OF_REGISTERS(64, "128", "f16", "%64", "%65", "%66", "%67", "%68", "%69", "%70");
    } else if constexpr (is_bf16) {
      KOKKOSNN_IMPL_PRODUCT_OF_REGISTERS(32, "64", "bf16", "%32", "%33", "%34", "%35", "%36", "%37", "%38");
    } else {
      KOKKOSNN_IMPL_PRODUCT_OF_REGISTERS(32, "64", "f16", "%32", "%33", "%34", "%35", "%36", "%37", "%38");
    }
#endif
  }

  // --- threads: some of a team's, in whole warps, and their registers ---

  /// Waits at a barrier of the team, 1 to 15, until so many threads have come, those that just arrive included.
  KOKKOS_FORCEINLINE_FUNCTION static void meet([[maybe_unused]] int number, [[maybe_unused]] int threads) {
#if defined(KOKKOSNN_IMPL_HAS_WARPGROUPS)
    asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
#endif
  }
  KOKKOS_FORCEINLINE_FUNCTION static void pass([[maybe_unused]] int number, [[maybe_unused]] int threads) {
#if defined(KOKKOSNN_IMPL_HAS_WARPGROUPS)
    asm volatile("bar.arrive %0, %1;" ::"r"(number), "r"(threads) : "memory");
#endif
  }
  /// Lanes' writes to scratch are seen by their warp.
  KOKKOS_FORCEINLINE_FUNCTION static void meet_in_warp() {
#if defined(KOKKOSNN_IMPL_HAS_WARPGROUPS)
    __syncwarp();
#endif
  }
  /// Transposes 8 x 8 elements of 16 bits that a warp has: lane l gives, and is given, two neighbours of row l / 4 from
  /// column l % 4 * 2 on.
  KOKKOS_FORCEINLINE_FUNCTION static std::uint32_t transposed(std::uint32_t word) {
#if defined(KOKKOSNN_IMPL_HAS_WARPGROUPS)
    std::uint32_t result;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(result) : "r"(word));
    return result;
#else
    return word;
#endif
  }
  /// Writes of this thread to scratch are seen by products.
  KOKKOS_FORCEINLINE_FUNCTION static void publish_tile() {
#if defined(KOKKOSNN_IMPL_HAS_WARPGROUPS)
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
  }
  /// Gives registers of a warpgroup's threads up, or takes some that others gave up: all of it must call.
  template <int registers>
  KOKKOS_FORCEINLINE_FUNCTION static void keep_registers() {
#if defined(KOKKOSNN_IMPL_HAS_WARPGROUPS)
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
#endif
  }
  template <int registers>
  KOKKOS_FORCEINLINE_FUNCTION static void take_registers() {
#if defined(KOKKOSNN_IMPL_HAS_WARPGROUPS)
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
#endif
  }
};

}  // namespace KokkosNN::Impl

#undef KOKKOSNN_IMPL_PRODUCT_OF_REGISTERS
#undef KOKKOSNN_IMPL_PRODUCT_OF_TILES
#undef KOKKOSNN_IMPL_PRODUCT
#undef KOKKOSNN_IMPL_NAMES128
#undef KOKKOSNN_IMPL_NAMES96
#undef KOKKOSNN_IMPL_NAMES64
#undef KOKKOSNN_IMPL_NAMES32
#undef KOKKOSNN_IMPL_SUMS128
#undef KOKKOSNN_IMPL_SUMS96
#undef KOKKOSNN_IMPL_SUMS64
#undef KOKKOSNN_IMPL_SUMS32
#undef KOKKOSNN_IMPL_SUMS16
#undef KOKKOSNN_IMPL_SUMS4
#undef KOKKOSNN_IMPL_HAS_WARPGROUPS

#endif  // KOKKOSNN_IMPL_GPU_DEVICE_WARPGROUP_HPP
