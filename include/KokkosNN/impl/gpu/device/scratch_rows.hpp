// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_DEVICE_SCRATCH_ROWS_HPP
#define KOKKOSNN_IMPL_GPU_DEVICE_SCRATCH_ROWS_HPP

#include <KokkosNN/impl/gpu/device/barriers.hpp>
#include <KokkosNN/impl/gpu/device/matrix_unit.hpp>
#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

// Rows of a tensor on their way to a tile in team scratch, whose layout a matrix unit has.

namespace KokkosNN::Impl {

/// Direction that a unit reads a tile in: along its rows, or across them.
enum class TileUse { along, across };

/// Offset from a tile's first row, as a row of the tile, or its nearer end.
template <int rows>
KOKKOS_FORCEINLINE_FUNCTION int in_tile(std::int64_t offset) {
  return static_cast<int>(Kokkos::max<std::int64_t>(0, Kokkos::min<std::int64_t>(rows, offset)));
}

/// Rows of a tile at one distance, of which those from `begin` to `end` are there.
template <class T>
struct TileRows {
  const T* first;
  std::int64_t stride;
  int begin;
  int end;

  KOKKOS_FORCEINLINE_FUNCTION const T* operator()(int r) const {
    return begin <= r && r < end ? first + r * stride : nullptr;
  }
};

/// Rows from row `first` of a sequence on, which begins at `sequence`, those from `begin` to `end` of it.
template <int rows, class T>
KOKKOS_FORCEINLINE_FUNCTION TileRows<T> tile_rows_of(const T* sequence, std::int64_t stride, std::int64_t first,
                                                     std::int64_t begin, std::int64_t end) {
  return {sequence + first * stride, stride, in_tile<rows>(begin - first), in_tile<rows>(end - first)};
}

/// Elements of a row: how many there are, their distance, whether rows can be copied by chunks of 16 bytes: elements
/// are neighbours then, and rows begin at multiples of 16 bytes.
struct RowElements {
  std::int64_t count;
  std::int64_t stride;
  bool by_chunks;
};

/// True if attention's tiles go by ChunkCopies, and its sums through scratch, which takes fewer instructions. Without
/// tensor cores, and on HIP, kernels would spill.
///   float, exact, 16 heads of 128, 2048 queries, H200, TFLOP/s | 23 | otherwise 27
template <class Unit>
inline constexpr bool has_chunk_copies = Unit::uses_tensor_cores && Unit::lanes == 32;

/// Tile of `rows` rows of `row_bytes` bytes, filled by the `team_size` threads of a team.
template <class Unit, TileUse use, int rows, int row_bytes, int team_size>
struct ScratchRows {
  using T       = typename Unit::Element;
  using Address = typename Unit::Address;

  static constexpr int element_bytes = int(sizeof(T));
  static constexpr int per_chunk     = chunk_bytes / element_bytes;
  static constexpr int chunks        = row_bytes / chunk_bytes;
  static constexpr int row_step      = team_size / chunks;  ///< distance of the rows whose chunks a thread copies
  /// HIP's copies are loads and stores, of which those of whole chunks alone are unrolled: unrolled branches for the
  /// others would make most of a kernel.
  static constexpr bool unrolls_parts = Unit::lanes != 64;
  static_assert(team_size % chunks == 0 && rows % row_step == 0);

  /// Copies rows, zeros behind their elements, and zeros for rows that are not there: row(r) is a pointer to the first
  /// element of row r or null. Copies by chunks are asynchronous.
  template <class Row>
  KOKKOS_FORCEINLINE_FUNCTION static void fetch(Address to, const Row& row, const RowElements& elements,
                                                const T* any_element, int rank) {
    const int count = in_tile<chunks * per_chunk>(elements.count);
    if (elements.by_chunks) {
      const int first = rank / chunks, chunk = rank % chunks;
      copy(to, row, first, chunk, bytes_of(count - chunk * per_chunk), any_element);
    } else {
      collect(to, row, count, elements.stride, rank);
    }
  }
  /// Copies rows as `fetch` does, where ChunkCopies do not: of units that have these, element by element.
  template <class Row>
  KOKKOS_FORCEINLINE_FUNCTION static void fetch_others(Address to, const Row& row, const RowElements& elements,
                                                       const T* any_element, int rank) {
    if constexpr (has_chunk_copies<Unit>) {
      collect(to, row, in_tile<chunks * per_chunk>(elements.count), elements.stride, rank);
    } else {
      fetch(to, row, elements, any_element, rank);
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
  KOKKOS_FORCEINLINE_FUNCTION static int bytes_of(int elements) {
    return elements <= 0 ? 0 : elements < per_chunk ? elements * element_bytes : chunk_bytes;
  }

  /// Copies a thread's column of chunks.
  template <class Row>
  KOKKOS_FORCEINLINE_FUNCTION static void copy(Address to, const Row& row, int first, int chunk, int bytes,
                                               const T* any_element) {
    const auto copy_row = [&](int r) {
      const T* const p    = row(first + r);
      const bool is_there = p != nullptr && bytes > 0;
      Unit::copy_async(to + place(first + r, chunk), is_there ? p + chunk * per_chunk : any_element,
                       is_there ? bytes : 0);
    };
    if constexpr (unrolls_parts) {
      KOKKOSNN_IMPL_UNROLL
      for (int r = 0; r < rows; r += row_step) copy_row(r);
    } else {
      KOKKOSNN_IMPL_NO_UNROLL
      for (int r = 0; r < rows; r += row_step) copy_row(r);
    }
  }
  KOKKOS_FORCEINLINE_FUNCTION static void copy(Address to, const TileRows<T>& row, int first, int chunk, int bytes,
                                               const T* any_element) {
    const T* p              = row.first + first * row.stride + chunk * per_chunk;
    const std::int64_t step = row_step * row.stride;
    if (bytes == 0) p = any_element;
    if (row.begin == 0 && row.end == rows && (unrolls_parts ? bytes > 0 : bytes == chunk_bytes)) {
      KOKKOSNN_IMPL_UNROLL
      for (int r = 0; r < rows; r += row_step) {
        Unit::copy_async(to + place(first + r, chunk), p, unrolls_parts ? bytes : chunk_bytes);
        p += step;
      }
    } else if constexpr (!unrolls_parts) {
      KOKKOSNN_IMPL_NO_UNROLL
      for (int r = 0; r < rows; r += row_step) {
        const bool is_there = row.begin <= first + r && first + r < row.end && bytes > 0;
        Unit::copy_async(to + place(first + r, chunk), is_there ? p : any_element, is_there ? bytes : 0);
        p += step;
      }
    } else {
      KOKKOSNN_IMPL_UNROLL
      for (int r = 0; r < rows; r += row_step) {
        const bool is_there = row.begin <= first + r && first + r < row.end && bytes > 0;
        Unit::copy_async(to + place(first + r, chunk), is_there ? p : any_element, is_there ? bytes : 0);
        p += step;
      }
    }
  }

  template <class Row>
  static KOKKOS_FORCEINLINE_FUNCTION bool are_neighbours(const Row&) {
    return false;
  }
  static KOKKOS_FORCEINLINE_FUNCTION bool are_neighbours(const TileRows<T>& row) { return row.stride == 1; }

  /// Collects chunks element by element. Neighbouring threads have neighbouring rows, where those are closer than a
  /// row's elements are.
  template <class Row>
  KOKKOS_FORCEINLINE_FUNCTION static void collect(Address to, const Row& row, int count, std::int64_t stride,
                                                  int rank) {
    const bool rows_first = are_neighbours(row);
    KOKKOSNN_IMPL_NO_UNROLL
    for (int i = rank; i < rows * chunks; i += team_size) {
      const int r = rows_first ? i % rows : i / chunks, chunk = rows_first ? i / rows : i % chunks;
      const T* const first = row(r);
      const int left       = first == nullptr ? 0 : count - chunk * per_chunk;
      Pack<T, per_chunk> pack;
      if constexpr (unrolls_parts) {
        KOKKOSNN_IMPL_UNROLL
        for (int e = 0; e < per_chunk; ++e) pack[e] = e < left ? first[(chunk * per_chunk + e) * stride] : T(0.0f);
      } else {
        if (left <= 0) {
          pack = Pack<T, per_chunk>{};
        } else {
          const T* const begin = first + chunk * per_chunk * stride;
          KOKKOSNN_IMPL_UNROLL
          for (int e = 0; e < per_chunk; ++e) {  // without a branch an element
            const T element = begin[e < left ? e * stride : 0];
            pack[e]         = e < left ? element : T(0.0f);
          }
        }
      }
      Unit::Instructions::store(to + place(r, chunk), pack);
    }
  }
};

/// A thread's chunks of tiles that follow each other at one distance, all whole but those of tiles at an end. What all
/// tiles have in common is computed once, and a copy is of 16 bytes or none: nvcc makes many instructions of a copy of
/// an unknown number of bytes, and of one under a condition.
///   4096^3, one H200, 2026-11-28, TFLOP/s | bf16 431, f64 53 | any bytes 390, 51 | under a condition 288, 43
template <class Unit, TileUse use, int rows, int row_bytes, int team_size>
class ChunkCopies {
  using T       = typename Unit::Element;
  using Address = typename Unit::Address;

  static constexpr int per_chunk = chunk_bytes / int(sizeof(T));
  static constexpr int chunks    = row_bytes / chunk_bytes;
  static constexpr int row_step  = team_size / chunks;  ///< distance of the rows whose chunks a thread copies
  static constexpr int count     = rows / row_step;
  static_assert(team_size % chunks == 0 && rows % row_step == 0);

 public:
  /// Begins with the tile of rows `stride` elements apart whose first element is at `first`. So many of its rows are
  /// there, and so many elements of each, in whole chunks; `step` is the distance of two tiles.
  KOKKOS_FORCEINLINE_FUNCTION void start(const T* first, std::int64_t stride, std::int64_t rows_left,
                                         std::int64_t elements_left, std::int64_t step, int rank) {
    const int row = rank / chunks, chunk = rank % chunks;
    m_from     = first + row * stride + chunk * per_chunk;
    m_row_step = row_step * stride;
    m_step     = step;
    // nvcc would compute these two again for each tile, and for want of registers load operands too late.
    m_place = opaque(has_one_distance ? place(row, chunk) : rank);
    m_count = opaque(chunk * per_chunk < elements_left ? count_of(in_tile<rows>(rows_left), rank) : 0);
  }
  /// Copies a single tile, described as by `start`.
  KOKKOS_FORCEINLINE_FUNCTION static void copy_one(Address to, const T* first, std::int64_t stride,
                                                   std::int64_t rows_left, std::int64_t elements_left, int rank) {
    ChunkCopies copies;
    copies.start(first, stride, rows_left, elements_left, 0, rank);
    copies.copy(to);
  }
  /// Copies the next tile, and goes on to the one behind.
  KOKKOS_FORCEINLINE_FUNCTION void copy(Address to) {
    const T* from = m_from;
    KOKKOSNN_IMPL_UNROLL
    for (int i = 0; i < count; ++i) {  // of rows that are not there no byte is read, wherever the pointer is
      Unit::copy_async(to + place_of(i), from, i < m_count ? chunk_bytes : 0);
      from += m_row_step;
    }
    m_from += m_step;
  }
  /// Copies the next tile, of which rows `begin` to `end` are there, and goes on.
  KOKKOS_FORCEINLINE_FUNCTION void copy_rows(Address to, int begin, int end, int rank) {
    const int first = count_of(begin, rank), last = Kokkos::min(m_count, count_of(end, rank));
    KOKKOSNN_IMPL_NO_UNROLL
    for (int i = 0; i < count; ++i) {
      const int bytes = first <= i && i < last ? chunk_bytes : 0;
      Unit::copy_async(to + place_of(i), m_from + i * m_row_step, bytes);
    }
    m_from += m_step;
  }
  /// Copies the last tile, of whose rows so many elements are there.
  KOKKOS_FORCEINLINE_FUNCTION void copy_elements(Address to, int elements, int rank) const {
    const int bytes = in_tile<per_chunk>(elements - rank % chunks * per_chunk) * int(sizeof(T));
    KOKKOSNN_IMPL_NO_UNROLL
    for (int i = 0; i < count; ++i) {
      Unit::copy_async(to + place_of(i), m_from + i * m_row_step, i < m_count ? bytes : 0);
    }
  }

 private:
  KOKKOS_FORCEINLINE_FUNCTION static constexpr int place(int row, int chunk) {
    if constexpr (use == TileUse::along) {
      return Unit::template along_place<row_bytes>(row, chunk);
    } else {
      return Unit::template across_place<row_bytes>(row, chunk);
    }
  }
  /// Place of a thread's chunk number i in a tile: all at one distance, but for short steps of long rows.
  static constexpr bool has_one_distance = place(row_step, 0) == row_step * row_bytes;
  KOKKOS_FORCEINLINE_FUNCTION int place_of(int i) const {
    if constexpr (has_one_distance) {
      return m_place + i * row_step * row_bytes;
    } else {
      return place(m_place / chunks + i * row_step, m_place % chunks);
    }
  }
  /// A thread's rows among the first ones of a tile.
  KOKKOS_FORCEINLINE_FUNCTION static int count_of(int rows_left, int rank) {
    return (rows_left - rank / chunks + row_step - 1) / row_step;
  }

  const T* m_from;
  std::int64_t m_row_step;
  std::int64_t m_step;
  int m_place;  ///< of this thread's first chunk in a tile, or its number in the team
  int m_count;  ///< of this thread's chunks, those that are there
};

/// Copies of the tiles of two tensors that pass by together, one behind the other in a stage.
template <class Unit, TileUse use_of_first, TileUse use_of_second, int rows, int row_bytes, int team_size>
struct TilePairCopies {
  ChunkCopies<Unit, use_of_first, rows, row_bytes, team_size> first;
  ChunkCopies<Unit, use_of_second, rows, row_bytes, team_size> second;

  /// A tensor's row 0, the distance of its rows, and their elements.
  struct Rows {
    const typename Unit::Element* data;
    std::int64_t stride;
    std::int64_t elements;
  };
  /// Begins with row `row` of both tensors.
  KOKKOS_FORCEINLINE_FUNCTION void start(const Rows& of_first, const Rows& of_second, std::int64_t row, int rank) {
    start(first, of_first, row, rank);
    start(second, of_second, row, rank);
  }
  /// Copies the next tiles, of which rows `begin` to `end` are there.
  KOKKOS_FORCEINLINE_FUNCTION void copy(typename Unit::Address to, int begin, int end, int rank) {
    if (begin == 0 && end == rows) {
      first.copy(to);
      second.copy(to + rows * row_bytes);
    } else {
      first.copy_rows(to, begin, end, rank);
      second.copy_rows(to + rows * row_bytes, begin, end, rank);
    }
  }

 private:
  template <class Copies>
  KOKKOS_FORCEINLINE_FUNCTION static void start(Copies& copies, const Rows& of, std::int64_t row, int rank) {
    copies.start(of.data + row * of.stride, of.stride, rows, of.elements, rows * of.stride, rank);
  }
};

/// pass_tiles of more than two stages, all but one of which have copies in flight.
template <class Unit, int stages, class Member, class Tiles, class Fetch, class Use>
KOKKOS_FORCEINLINE_FUNCTION void pass_tiles_ahead(const Member& team, Tiles tiles, const Fetch& fetch, const Use& use) {
  const auto after      = [](int stage) { return stage + 1 == stages ? 0 : stage + 1; };
  Tiles next            = tiles;
  int to                = 0;
  const auto fetch_next = [&] {
    next.go_on();
    to = after(to);
    if (next.exist()) fetch(next, to);
    Unit::commit();  // of nothing, too: a wait counts groups
  };
  KOKKOSNN_IMPL_UNROLL
  for (int n = 0; n < stages - 2; ++n) fetch_next();
  int stage = 0;
  KOKKOSNN_IMPL_NO_UNROLL
  for (; tiles.exist(); tiles.go_on()) {
    Unit::template wait<stages - 2>();
    team.team_barrier();  // this tile is there, and nobody reads the one before any more
    fetch_next();
    use(tiles, stage);
    stage = after(stage);
  }
  Unit::template wait<0>();
}

/// Passes tiles through scratch, whose first one's copies are under way in stage 0. With two stages the next tile is
/// fetched while one is used. fetch(tiles, stage) and use(tiles, stage) are for the tile that `tiles` is at, which has
/// exist() and go_on().
template <class Unit, int stages, class Member, class Tiles, class Fetch, class Use>
KOKKOS_FORCEINLINE_FUNCTION void pass_tiles(const Member& team, Tiles tiles, const Fetch& fetch, const Use& use) {
  if constexpr (stages > 2) return pass_tiles_ahead<Unit, stages>(team, tiles, fetch, use);
  int stage = 0;
  KOKKOSNN_IMPL_NO_UNROLL
  while (tiles.exist()) {
    Unit::template wait<0>();
    team.team_barrier();  // this tile is there, and nobody reads the other stage any more
    Tiles next = tiles;
    next.go_on();
    const auto fetch_next = [&](int to) {
      if (!next.exist()) return;
      fetch(next, to);
      Unit::commit();
    };
    if constexpr (stages == 2) fetch_next(stage ^ 1);
    use(tiles, stage);
    if constexpr (stages == 2) {
      stage ^= 1;
    } else {
      team.team_barrier();
      fetch_next(0);
    }
    tiles = next;
  }
  Unit::template wait<0>();
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_DEVICE_SCRATCH_ROWS_HPP
