// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_DEVICE_SCRATCH_ROWS_HPP
#define KOKKOSNN_IMPL_GPU_DEVICE_SCRATCH_ROWS_HPP

#include <KokkosNN/impl/gpu/device/matrix_unit.hpp>
#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

// Rows of a tensor on their way to a tile in team scratch, whose layout a matrix unit has.

namespace KokkosNN::Impl {

/// Direction that a unit reads a tile in: along its rows, or across them.
enum class TileUse { along, across };

/// Tile of `rows` rows of `row_bytes` bytes, filled by the `team_size` threads of a team.
template <class Unit, TileUse use, int rows, int row_bytes, int team_size>
struct ScratchRows {
  using T       = typename Unit::Element;
  using Address = typename Unit::Address;

  static constexpr int element_bytes = int(sizeof(T));
  static constexpr int per_chunk     = chunk_bytes / element_bytes;
  static constexpr int chunks        = row_bytes / chunk_bytes;
  static_assert(rows * chunks % team_size == 0);

  /// Copies rows, zeros behind their `count` elements, and zeros for rows that are not there: row(r) is a pointer to
  /// the first element of row r or null. With `by_chunks` the copies are asynchronous; elements are neighbours then,
  /// and rows begin at multiples of 16 bytes.
  template <class Row>
  KOKKOS_FORCEINLINE_FUNCTION static void fetch(Address to, const Row& row, std::int64_t count, std::int64_t stride,
                                                bool by_chunks, const T* any_element, int rank) {
    if (by_chunks) {
      copy(to, row, static_cast<int>(count), any_element, rank);
    } else {
      collect(to, row, static_cast<int>(count), stride, rank);
    }
  }

 private:
  KOKKOS_FORCEINLINE_FUNCTION static int place(int row, int chunk) {
    if constexpr (use == TileUse::along) {
      return Unit::template along_place<row_bytes>(row, chunk);
    } else {
      return Unit::template across_place<row_bytes>(row, chunk);
    }
  }

  template <class Row>
  KOKKOS_FORCEINLINE_FUNCTION static void copy(Address to, const Row& row, int count, const T* any_element, int rank) {
    KOKKOSNN_IMPL_UNROLL
    for (int i = 0; i < rows * chunks / team_size; ++i) {
      const int place_in_tile = i * team_size + rank, r = place_in_tile / chunks, chunk = place_in_tile % chunks;
      const T* const first = row(r);
      const int left       = first == nullptr ? 0 : count - chunk * per_chunk;
      const int bytes      = left <= 0 ? 0 : left < per_chunk ? left * element_bytes : chunk_bytes;
      Unit::copy_async(to + place(r, chunk), bytes > 0 ? first + chunk * per_chunk : any_element, bytes);
    }
  }

  template <class Row>
  KOKKOS_FORCEINLINE_FUNCTION static void collect(Address to, const Row& row, int count, std::int64_t stride,
                                                  int rank) {
    KOKKOSNN_IMPL_NO_UNROLL
    for (int i = rank; i < rows * chunks; i += team_size) {
      const int r = i / chunks, chunk = i % chunks;
      const T* const first = row(r);
      const int left       = first == nullptr ? 0 : count - chunk * per_chunk;
      Pack<T, per_chunk> pack;
      KOKKOSNN_IMPL_UNROLL
      for (int e = 0; e < per_chunk; ++e) pack[e] = e < left ? first[(chunk * per_chunk + e) * stride] : T(0.0f);
      Unit::Instructions::store(to + place(r, chunk), pack);
    }
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_DEVICE_SCRATCH_ROWS_HPP
