// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_INPUTS_SEGMENTS_HPP
#define KOKKOSNN_IMPL_INPUTS_SEGMENTS_HPP

#include <KokkosNN/impl/inputs/row_offsets.hpp>
#include <KokkosNN/impl/gpu/device/exchange.hpp>
#include <KokkosNN/impl/gpu/device/tile.hpp>
#include <KokkosNN/impl/inputs/rows.hpp>
#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

// Ragged rows: finding rows in offsets, parts of long rows, and a thread's elements of a row.

namespace KokkosNN::Impl {

/// Number of the first `rows` offsets that are below `target`. It reads no other offsets, whatever they hold.
KOKKOS_INLINE_FUNCTION std::int64_t rows_before(const RowOffsets& offsets, std::int64_t rows, std::int64_t target) {
  std::int64_t low   = 0;
  std::int64_t count = rows;  // the answer is at least low, at most low + count
  while (count > 0) {
    const std::int64_t half = count / 2;
    const bool is_before    = offsets[low + half] < target;
    low += is_before ? half + 1 : 0;
    count = is_before ? count - half - 1 : half;
  }
  return low;
}

/// Part in a chunk of a long row that began in an earlier chunk: [begin of the chunk, end); empty if end is the chunk's
/// begin.
struct HeadPart {
  std::int64_t end;
  std::int64_t chunk;  ///< chunk in which the row began

  /// Head part of chunk c, before which `first` rows begin.
  KOKKOS_INLINE_FUNCTION static HeadPart of(const Chunks& chunks, const RowOffsets& offsets, std::int64_t c,
                                            std::int64_t first) {
    const std::int64_t begin = chunks.begin(c);
    if (first == 0) return {begin, c};
    const std::int64_t row_begin = chunks.inside(offsets[first - 1]);
    const std::int64_t row_end   = chunks.inside(offsets[first]);
    if (row_begin >= begin || row_end <= begin || !chunks.is_long(row_begin, row_end)) return {begin, c};
    const std::int64_t end = chunks.end(c);
    return {row_end < end ? row_end : end, chunks.of(row_begin)};
  }
};

/// First part of a long row that begins in a chunk: [begin, end of the chunk); empty if begin is the chunk's end.
struct TailPart {
  std::int64_t begin;
  std::int64_t row_end;
  std::int64_t row;

  /// Tail part of chunk c, after which no row before number `last` begins.
  KOKKOS_INLINE_FUNCTION static TailPart of(const Chunks& chunks, const RowOffsets& offsets, std::int64_t c,
                                            std::int64_t last) {
    const std::int64_t end = chunks.end(c);
    if (last == 0) return {end, end, 0};
    const std::int64_t row_begin = chunks.inside(offsets[last - 1]);
    const std::int64_t row_end   = chunks.inside(offsets[last]);
    const bool is_tail = chunks.begin(c) <= row_begin && row_begin < end && chunks.is_long(row_begin, row_end);
    if (!is_tail) return {end, end, 0};
    return {row_begin, row_end, last - 1};
  }
};

/// Record that the first kernel leaves of a chunk for the others.
struct ChunkNote {
  HeadPart head;
  TailPart tail;
};

/// Pack width of a thread's elements of a row: 4, or 2 if their number is no multiple of 4.
template <int elements>
inline constexpr int share_pack = elements % 4 == 0 ? 4 : 2;
/// Next number of elements a thread: 4, 6, 8, 12, 16.
KOKKOS_INLINE_FUNCTION constexpr int next_share(int elements) {
  return elements % 3 == 0 ? elements / 3 * 4 : elements / 2 * 3;
}

/// Divisor of non-negative numbers up to 2^53, without the subroutine that a 64-bit division is on a GPU.
struct Divisor {
  std::int64_t value = 1;
  double inverse     = 1;

  Divisor() = default;
  explicit Divisor(std::int64_t divisor) : value(divisor), inverse(1.0 / static_cast<double>(divisor)) {}

  KOKKOS_INLINE_FUNCTION std::int64_t quotient(std::int64_t number) const {
    const auto near         = static_cast<std::int64_t>(static_cast<double>(number) * inverse);
    const std::int64_t rest = number - near * value;
    return near + (rest < 0 ? -1 : (rest >= value ? 1 : 0));
  }
};

/// View of values, erased: the values of one head, and the distance to the next head's.
template <class T>
struct Values {
  using value_type = std::remove_const_t<T>;
  using Row        = MemoryRow<T, RowForm::strided>;

  T* data;
  std::int64_t stride;
  std::int64_t head_stride = 0;

  KOKKOS_INLINE_FUNCTION Values of_head(std::int64_t head) const {
    return {data + head * head_stride, stride, head_stride};
  }

  /// Row from element `begin` on.
  KOKKOS_INLINE_FUNCTION Row row(std::int64_t begin) const { return {data + begin * stride, stride}; }
  KOKKOS_INLINE_FUNCTION T& operator[](std::int64_t i) const { return data[i * stride]; }
  /// Prefetches `count` neighbouring elements from `begin` on, on GPUs that can.
  KOKKOS_INLINE_FUNCTION void prefetch(std::int64_t begin, int count) const {
    prefetch_bytes(data + begin, count * static_cast<int>(sizeof(T)));
  }
  /// Number of elements from `begin` to the first at which a GPU's pack may begin.
  template <int V>
  KOKKOS_INLINE_FUNCTION int head(std::int64_t begin) const {
    return stride == 1 ? (V - pack_phase<T, V>(data + begin)) % V : 0;
  }
};

/// Elements of a row, or of a part of one, of which each of `threads` threads has every `threads`-th. `threads` is
/// known to the compiler, as is the stride unless `known_stride` is 0, so that an element's offset is part of an
/// instruction.
template <int threads, int known_stride>
struct SharedElements {
  std::int64_t begin;
  int count;
  int rank;

  /// Loads this thread's elements, K packs of V, all in flight together; `pad` where there is no element.
  template <class T, class A, int V, int K>
  KOKKOS_INLINE_FUNCTION void load(const Values<const T>& values, Pack<A, V> (&pack)[K], A pad) const {
    const std::int64_t stride = known_stride != 0 ? known_stride : anew_argument(values.stride);
    const T* const from       = values.data + place(stride, begin + rank);
    for_own<V, K>([&](int k, int v, int ahead, bool is_there) {
      pack[k][v] = pad;
      if (is_there) pack[k][v] = static_cast<A>(from[place(stride, ahead)]);
    });
  }

  /// Stores value(k, v) of each of this thread's elements.
  template <int V, int K, class T, class F>
  KOKKOS_INLINE_FUNCTION void store(const Values<T>& values, const F& value) const {
    const std::int64_t stride = known_stride != 0 ? known_stride : anew_argument(values.stride);
    T* const to               = values.data + place(stride, begin + rank);
    for_own<V, K>([&](int k, int v, int ahead, bool is_there) {
      if (is_there) to[place(stride, ahead)] = static_cast<T>(value(k, v));
    });
  }

 private:
  KOKKOS_INLINE_FUNCTION static std::int64_t place(std::int64_t stride, std::int64_t i) {
    return known_stride != 0 ? i * known_stride : i * stride;
  }

  /// Calls f(pack, element of it, distance from the thread's first element, whether it exists).
  template <int V, int K, class F>
  KOKKOS_INLINE_FUNCTION void for_own(const F& f) const {
    const int left = opaque(count - rank);  // opaque, or nvcc compares for all elements at once, for want of registers
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) {
      KOKKOSNN_IMPL_UNROLL
      for (int v = 0; v < V; ++v) {
        const int ahead = (V * k + v) * threads;
        f(k, v, ahead, ahead < left);
      }
    }
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_INPUTS_SEGMENTS_HPP
