// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_DEVICE_STAGED_PART_HPP
#define KOKKOSNN_IMPL_GPU_DEVICE_STAGED_PART_HPP

#include <KokkosNN/impl/gpu/device/memory.hpp>
#include <KokkosNN/impl/gpu/device/tile.hpp>
#include <KokkosNN/impl/inputs/pairs.hpp>
#include <KokkosNN/impl/inputs/rows.hpp>
#include <KokkosNN/impl/kernel_shapes.hpp>
#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

// A team's part of a row in shared memory: all of it is asked for at once, by asynchronous copies, which take no
// registers while they are on their way. A thread reads the packs that it has copied, so no barrier is needed.

namespace KokkosNN::Impl {

/// Columns of a part in shared memory, from some column on: what a placement in registers reads of MemoryColumns.
template <class T>
struct StagedColumns {
  using value_type                    = T;
  static constexpr bool always_whole  = true;
  static constexpr bool adjusts_packs = false;
  static constexpr bool adjusts_tiles = false;
  static constexpr bool masks_words   = false;

  std::uint32_t address;  ///< in shared memory

  template <int V>
  KOKKOS_INLINE_FUNCTION bool moves_whole_tiles(const TileBounds&) const {
    return true;
  }
  template <class P>
  KOKKOS_INLINE_FUNCTION P load_as([[maybe_unused]] int c) const {
    static_assert(sizeof(P) == 16);
    P pack{};
#if defined(__CUDA_ARCH__)
    uint4 words;
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
                 : "r"(address + c * static_cast<int>(sizeof(T))));
    pack = Kokkos::bit_cast<P>(words);
#endif
    return pack;
  }
  template <int V>
  KOKKOS_INLINE_FUNCTION Pack<T, V> load_inner_pack(int c) const {
    return load_as<Pack<T, V>>(c);
  }
  template <int V>
  KOKKOS_INLINE_FUNCTION auto load_inner_words(int c) const {
    return load_as<Pack<std::uint32_t, V / 2>>(c);
  }
  template <int V>
  KOKKOS_INLINE_FUNCTION Pack<T, V> load_whole_pack(int c, const TileBounds& window, T pad) const {
    return c < window.end ? load_inner_pack<V>(c) : filled<T, V>(pad);
  }
  template <int V>
  KOKKOS_INLINE_FUNCTION Pack<T, V> load_pack(int c, const TileBounds& window, T pad) const {
    return load_whole_pack<V>(c, window, pad);
  }
};

/// A row of one tensor of which the part from column `first` on is in shared memory. Single elements are read from
/// memory.
template <class Row>
struct StagedRow : Row {
  std::uint32_t address;
  std::int64_t first;

  template <int V>
  KOKKOS_INLINE_FUNCTION StagedColumns<typename Row::value_type> from(std::int64_t start) const {
    using T = typename Row::value_type;
    return {address + static_cast<std::uint32_t>(start - first) * static_cast<std::uint32_t>(sizeof(T))};
  }
};

/// Tensors of a row that are staged: rows in memory whose packs are 16 bytes.
template <class Row, int V>
inline constexpr int staged_tensors = 0;
template <class Row, int V>
  requires(std::is_base_of_v<MemoryRow<const typename Row::value_type, RowForm::aligned>, Row> ||
           std::is_base_of_v<MemoryRow<const typename Row::value_type, RowForm::misaligned>, Row>)
inline constexpr int staged_tensors<Row, V> = is_staged(sizeof(typename Row::value_type), V) ? 1 : 0;
template <class YRow, class DyRow, int V>
inline constexpr int staged_tensors<PairRow<YRow, DyRow>, V> =
    staged_tensors<YRow, V> == 1 && staged_tensors<DyRow, V> == 1 ? 2 : 0;

/// Asks for the packs that this thread has of its team's part of a row of one tensor, or of two, of which each has
/// `bytes` bytes of shared memory.
template <int V, int K, class Row>
KOKKOS_INLINE_FUNCTION StagedRow<Row> stage(const Row& row, const RowPart& part,
                                            [[maybe_unused]] const PackPositions& positions,
                                            [[maybe_unused]] std::uint32_t address, int) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  const auto* const from     = row.base + part.packs.begin;
  const TileBounds window    = part.packs.window();
  const std::uint64_t policy = std::uint64_t(row.policy.word) << 32;
  KOKKOSNN_IMPL_UNROLL
  for (int k = 0; k < K; ++k) {
    const int place = positions.place(k);
    if (place >= window.end) break;
    asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;" ::"r"(
                     address + place * static_cast<int>(sizeof(typename Row::value_type))),
                 "l"(from + place), "l"(policy)
                 : "memory");
  }
#endif
  return {row, address, part.packs.begin};
}

template <int V, int K, class YRow, class DyRow>
KOKKOS_INLINE_FUNCTION auto stage(const PairRow<YRow, DyRow>& row, const RowPart& part, const PackPositions& positions,
                                  std::uint32_t address, int bytes) {
  const auto y  = stage<V, K>(row.y, part, positions, address, bytes);
  const auto dy = stage<V, K>(row.dy, part, positions, address + bytes, bytes);
  return PairRow<StagedRow<YRow>, StagedRow<DyRow>>{y, dy};
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_DEVICE_STAGED_PART_HPP
