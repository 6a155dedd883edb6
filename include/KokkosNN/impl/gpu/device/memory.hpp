// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_DEVICE_MEMORY_HPP
#define KOKKOSNN_IMPL_GPU_DEVICE_MEMORY_HPP

#include <KokkosNN/pack.hpp>
#include <KokkosNN/vocabulary.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

// Accesses of whole packs to global memory, their L2 eviction hints, and prefetching; addresses in shared memory.

namespace KokkosNN::Impl {

/// Offsets of a tile that belong to the row: 0 <= c < end. The last pack may extend beyond; its elements outside are
/// loaded as `pad` and not stored.
struct TileBounds {
  int end;

  template <int V>
  KOKKOS_INLINE_FUNCTION bool has_pack(int c) const {
    return c + V <= end;
  }
  /// True if each pack lies either in the row or outside of it.
  template <int V>
  KOKKOS_INLINE_FUNCTION bool splits_no_pack() const {
    return end % V == 0;
  }
};

/// Address in a team's shared memory, as NVIDIA's instructions take it.
KOKKOS_INLINE_FUNCTION std::uint32_t shared_address([[maybe_unused]] const void* pointer) {
#if defined(__CUDA_ARCH__)
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
#else
  return 0;
#endif
}

/// Number of elements of T between the last pack boundary and `pointer`.
template <class T, int V>
KOKKOS_INLINE_FUNCTION int pack_phase(const T* pointer) {
  return static_cast<int>((reinterpret_cast<std::uintptr_t>(pointer) / sizeof(T)) % V);
}

/// True if packs can be moved whole from `pointer` on: unit stride, and on a GPU alignment to one access.
template <class T, int V>
KOKKOS_INLINE_FUNCTION bool moves_whole_packs(const T* pointer, std::int64_t stride) {
  KOKKOS_IF_ON_DEVICE((
      return stride == 1 && reinterpret_cast<std::uintptr_t>(pointer) % alignof(Pack<std::remove_const_t<T>, V>) == 0;))
  KOKKOS_IF_ON_HOST(((void)pointer; return stride == 1;))
}

/// Stores a whole pack by one access, on a GPU. Its words go through registers by name: nvcc splits the store of an
/// array. 16 bytes that will not be read soon (`nontemporal_stores`) leave the last-level cache ahead of other lines.
template <bool nontemporal_stores = false, class P>
KOKKOS_INLINE_FUNCTION void store_at_once([[maybe_unused]] P* to, [[maybe_unused]] const P& pack) {
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(P) == 16) {
    const auto words = Kokkos::bit_cast<uint4>(pack);
    if constexpr (nontemporal_stores) {
      asm volatile("st.global.cs.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(words.x), "r"(words.y), "r"(words.z),
                   "r"(words.w)
                   : "memory");
    } else {
      asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(words.x), "r"(words.y), "r"(words.z),
                   "r"(words.w)
                   : "memory");
    }
    return;
  }
  if constexpr (sizeof(P) == 8) {
    const auto words = Kokkos::bit_cast<uint2>(pack);
    asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(to), "r"(words.x), "r"(words.y) : "memory");
    return;
  }
#endif
  *to = pack;
}

/// Eviction hint of an access for the last-level cache's lines (CUDA, from Hopper on): the upper half of the result of
/// PTX's createpolicy, whose lower half is 0. As a number it comes from a kernel's arguments at each access; the result
/// of an instruction ahead of the loop over rows would occupy registers.
/// Lines of a tensor that is read once have no further use. The best hint depends on how much a call moves, and differs
/// between a lone call and one in a chain of kernels; the policy has the one that serves both (`RowPlan::eviction`).
struct LinePolicy {
  std::uint32_t word = 0x10f00000;  // hint of accesses without a policy

  LinePolicy() = default;
  constexpr explicit LinePolicy(Eviction eviction) {
    if (eviction == Eviction::first) word = 0x12f00000;
    if (eviction == Eviction::quarter_last) word = 0x15300000;
    if (eviction == Eviction::half_last) word = 0x15700000;
    if (eviction == Eviction::last) word = 0x14f00000;
  }
};

// Accesses take an eviction hint on NVIDIA GPUs, from Hopper on.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define KOKKOSNN_IMPL_LOAD "ld.global.L2::cache_hint"
#define KOKKOSNN_IMPL_STORE "st.global.L2::cache_hint"
#define KOKKOSNN_IMPL_WITH_POLICY(operand) ", " operand ";"
#else
#define KOKKOSNN_IMPL_LOAD "ld.global"
#define KOKKOSNN_IMPL_STORE "st.global"
#define KOKKOSNN_IMPL_WITH_POLICY(operand) ";"
#endif

/// Loads a pack that other threads load, too, through all caches, on a GPU. By words: nvcc splits the load of a pack
/// into those of its elements where another branch loads these one by one.
template <class P>
KOKKOS_INLINE_FUNCTION P load_by_words(const P* from) {
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(P) % 16 == 0) {
    Kokkos::Array<uint4, sizeof(P) / 16> words;
    for (int i = 0; i < int(sizeof(P) / 16); ++i) words[i] = reinterpret_cast<const uint4*>(from)[i];
    return Kokkos::bit_cast<P>(words);
  }
  if constexpr (sizeof(P) == 8) return Kokkos::bit_cast<P>(*reinterpret_cast<const uint2*>(from));
#endif
  return *from;
}

/// Stores a pack of up to 8 bytes by one access, on a GPU, for the same reason.
template <class P>
KOKKOS_INLINE_FUNCTION void store_by_words(P* to, const P& pack) {
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(P) == 8) {
    *reinterpret_cast<uint2*>(to) = Kokkos::bit_cast<uint2>(pack);
    return;
  }
  if constexpr (sizeof(P) == 4) {
    *reinterpret_cast<std::uint32_t*>(to) = Kokkos::bit_cast<std::uint32_t>(pack);
    return;
  }
#endif
  *to = pack;
}

/// Loads a whole pack by one access to global memory: nvcc does not know of all pointers that they are to global
/// memory, and the generic instruction takes longer. With `fills_line` the last-level cache fetches the whole line:
/// neighbouring teams load the rest of it at about that time.
template <bool fills_line = false, class P>
KOKKOS_INLINE_FUNCTION P load_at_once(const P* from, [[maybe_unused]] LinePolicy lines) {
#if defined(__CUDA_ARCH__)
  const std::uint64_t policy = std::uint64_t(lines.word) << 32;
  if constexpr (sizeof(P) == 16) {
    uint4 words;
    asm volatile(KOKKOSNN_IMPL_LOAD ".v4.b32 {%0, %1, %2, %3}, [%4]" KOKKOSNN_IMPL_WITH_POLICY("%5")
                 : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
                 : "l"(from), "l"(policy)
                 : "memory");
    return Kokkos::bit_cast<P>(words);
  }
  if constexpr (sizeof(P) == 8) {
    uint2 words;
    if constexpr (fills_line) {
      asm volatile(KOKKOSNN_IMPL_LOAD ".L2::128B.v2.b32 {%0, %1}, [%2]" KOKKOSNN_IMPL_WITH_POLICY("%3")
                   : "=r"(words.x), "=r"(words.y)
                   : "l"(from), "l"(policy)
                   : "memory");
    } else {
      asm volatile(KOKKOSNN_IMPL_LOAD ".v2.b32 {%0, %1}, [%2]" KOKKOSNN_IMPL_WITH_POLICY("%3")
                   : "=r"(words.x), "=r"(words.y)
                   : "l"(from), "l"(policy)
                   : "memory");
    }
    return Kokkos::bit_cast<P>(words);
  }
  if constexpr (sizeof(P) == 4 && fills_line) {
    std::uint32_t word;
    asm volatile(KOKKOSNN_IMPL_LOAD ".L2::128B.b32 %0, [%1]" KOKKOSNN_IMPL_WITH_POLICY("%2")
                 : "=r"(word)
                 : "l"(from), "l"(policy)
                 : "memory");
    return Kokkos::bit_cast<P>(word);
  }
#endif
  return *from;
}

/// Stores 16 bytes by one access.
template <class P>
KOKKOS_INLINE_FUNCTION void store_at_once(P* to, const P& pack, [[maybe_unused]] LinePolicy lines) {
  static_assert(sizeof(P) == 16);
#if defined(__CUDA_ARCH__)
  const auto words           = Kokkos::bit_cast<uint4>(pack);
  const std::uint64_t policy = std::uint64_t(lines.word) << 32;
  asm volatile(KOKKOSNN_IMPL_STORE ".v4.b32 [%0], {%1, %2, %3, %4}" KOKKOSNN_IMPL_WITH_POLICY("%5")
               :
               : "l"(to), "r"(words.x), "r"(words.y), "r"(words.z), "r"(words.w), "l"(policy)
               : "memory");
#else
  *to = pack;
#endif
}
#undef KOKKOSNN_IMPL_LOAD
#undef KOKKOSNN_IMPL_STORE
#undef KOKKOSNN_IMPL_WITH_POLICY

/// True if one instruction prefetches many bytes into the last-level cache: on NVIDIA GPUs from Hopper on.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
inline constexpr bool has_bulk_prefetch = true;
#else
inline constexpr bool has_bulk_prefetch = false;
#endif

/// Prefetches about `bytes` bytes from about `begin` on by one instruction, without waiting. It touches no 16 bytes
/// that [begin, begin + bytes) does not overlap.
KOKKOS_INLINE_FUNCTION void prefetch_bytes([[maybe_unused]] const void* begin, [[maybe_unused]] int bytes) {
#if defined(__CUDA_ARCH__)
  if constexpr (has_bulk_prefetch) {
    const auto first = reinterpret_cast<std::uintptr_t>(begin) & ~std::uintptr_t(15);
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(first), "r"(bytes & ~15));
  }
#endif
}

/// Waits for the asynchronous copies to shared memory that this thread has started.
KOKKOS_INLINE_FUNCTION void await_copies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

/// Converts a pack of a 16-bit type to words of two elements, the first one in the lower half.
template <class T, int V>
KOKKOS_INLINE_FUNCTION Pack<std::uint32_t, V / 2> words_of(const Pack<T, V>& pack) {
  static_assert(sizeof(T) == 2 && V % 2 == 0);
  Pack<std::uint32_t, V / 2> words;
  for (int w = 0; w < V / 2; ++w) {
    const std::uint32_t high = Kokkos::bit_cast<std::uint16_t>(pack[2 * w + 1]);
    words[w]                 = Kokkos::bit_cast<std::uint16_t>(pack[2 * w]) | high << 16;
  }
  return words;
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_DEVICE_MEMORY_HPP
