// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_DEVICE_FLAT_ROWS_HPP
#define KOKKOSNN_IMPL_GPU_DEVICE_FLAT_ROWS_HPP

#include <KokkosNN/impl/gpu/device/exchange.hpp>
#include <KokkosNN/impl/gpu/device/memory.hpp>
#include <KokkosNN/impl/gpu/device/tile.hpp>
#include <KokkosNN/impl/inputs/rows.hpp>
#include <KokkosNN/impl/math/exp.hpp>
#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

// Short rows that lie one after the other, processed as one range of memory: its copies to shared memory, and row sums.
// A GPU's warp takes a window of neighbouring whole rows, and each lane an equal number of neighbouring elements,
// wherever rows begin and end. Elements are counted by their offset in the window, which begins at the 16-byte boundary
// at or before its first row. An offset at which a row begins is a head.

namespace KokkosNN::Impl {

/// Offsets of a window that belong to its rows.
struct FlatWindow {
  int begin;  ///< less than a pack
  int end;

  KOKKOS_INLINE_FUNCTION bool has(int place) const { return begin <= place && place < end; }
  template <int V>
  KOKKOS_INLINE_FUNCTION bool has_pack(int place) const {
    return begin <= place && place + V <= end;
  }
};

/// Window, and this lane's row of it. Lanes beyond the window's rows have an empty row at the window's end.
struct FlatRow {
  std::int64_t first;  ///< element at offset 0; it is no element of the rows if the window begins behind it
  FlatWindow window;
  int rows;  ///< number of the window's rows
  int lane;
  int begin;
  int end;

  KOKKOS_INLINE_FUNCTION bool is_empty() const { return begin == end; }
};

/// 16 bytes of elements of any type.
using FlatWords = Pack<std::uint32_t, 4>;

/// Sum of exponentials relative to one reference, as wide as results need.
template <class Params>
using FlatPart = std::conditional_t<Params::accuracy == ExpAccuracy::full, DoubleDouble<typename Params::accumulator>,
                                    typename Params::accumulator>;

/// Adds a value to a sum, without the additions of zeros that a sum of two double-doubles takes.
template <class A>
KOKKOS_INLINE_FUNCTION A added(A sum, A value) {
  return sum + value;
}
template <class A>
KOKKOS_INLINE_FUNCTION DoubleDouble<A> added(const DoubleDouble<A>& sum, A value) {
  const A s    = sum.high + value;
  const A back = s - sum.high;
  return {s, sum.low + ((sum.high - (s - back)) + (value - back))};
}

template <class W, class A>
KOKKOS_INLINE_FUNCTION W wide_of(A sum) {
  return W(sum);
}
template <class W, class A>
KOKKOS_INLINE_FUNCTION W wide_of(const DoubleDouble<A>& sum) {
  return W(sum.high) + W(sum.low);
}

/// Elements of a window in a warp's shared memory. A lane has Q quads of neighbouring elements, in room for as many
/// accumulators. Lanes are so far apart that packs of 16 bytes, one a lane, never meet in a bank. Input lies at the end
/// of a lane's room and output at its begin, so that either may be of 16 bits while a lane goes through its room from
/// begin to end.
template <class A, int Q>
struct FlatTile {
  static_assert(Q % 2 == 0);
  static constexpr int elements = 4 * Q;  ///< elements of a lane
  static constexpr int stride   = int(sizeof(A)) * elements + 16;

  char* memory;

  /// Byte at which the input, of type T, begins in a lane's room.
  template <class T>
  static constexpr int loaded = int(sizeof(A) - sizeof(T)) * elements;

  KOKKOS_INLINE_FUNCTION static int lane_of(int place) { return int(unsigned(place) / elements); }
  KOKKOS_INLINE_FUNCTION char* own(int lane) const { return memory + lane * stride; }
  /// Element at an offset, of a T that begins at byte `from` of a lane's room.
  template <class T>
  KOKKOS_INLINE_FUNCTION T& at(int place, int from) const {
    const int lane = lane_of(place);
    return *reinterpret_cast<T*>(own(lane) + from + (place - lane * elements) * int(sizeof(T)));
  }
};

/// Largest number of quads a lane: its heads fill one word.
inline constexpr int most_flat_quads = 8;

/// Shared memory of a warp for a window. `runs` are sums behind each quad of a lane, from the last head in the lane on,
/// or over the whole lane if it has none.
template <class A, class Part>
struct alignas(16) FlatShared {
  static constexpr int lanes    = warp_width();
  static constexpr int elements = FlatTile<A, most_flat_quads>::elements * lanes;

  alignas(16) char tile[lanes * FlatTile<A, most_flat_quads>::stride];
  Part runs[most_flat_quads][lanes];
  DoubleDouble<A> words[lanes + 2];  ///< epilogue of each row; the first one is that of elements before all rows
  std::uint32_t heads[lanes];
};

/// Starts to copy the first `bytes` of 16 bytes to shared memory, with zeros behind them. GPUs before Ampere have
/// copied them when this returns.
template <class T>
KOKKOS_INLINE_FUNCTION void copy_ahead(void* to, const T* from, int bytes) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(bytes)
               : "memory");
#else
  Pack<T, 16 / sizeof(T)> pack;
  for (int v = 0; v < 16 / int(sizeof(T)); ++v) pack[v] = v * int(sizeof(T)) < bytes ? from[v] : T(0);
  *static_cast<FlatWords*>(to) = Kokkos::bit_cast<FlatWords>(pack);
#endif
}

/// Address of the window's pack number k lanes + lane, counted in the order of memory, whose type begins at byte `from`
/// of a lane's room. The distance from one k to the next is a constant if whole lanes have the packs of a k.
template <class T, class A, int Q>
KOKKOS_INLINE_FUNCTION char* pack_of_window(const FlatTile<A, Q>& tile, int from, int lane, int k) {
  constexpr int V     = 16 / sizeof(T);
  constexpr int packs = tile.elements / V;
  if constexpr (warp_width() % packs == 0) {
    return reinterpret_cast<char*>(&tile.template at<T>(V * lane, from)) + k * (warp_width() / packs * tile.stride);
  } else {
    return reinterpret_cast<char*>(&tile.template at<T>(V * (k * warp_width() + lane), from));
  }
}

/// Starts to copy a window's elements, which begin at `from`, aligned to 16 bytes, with zeros behind them. Elements in
/// front of them in the same pack come along if they exist: offset 0 is no element if `first` is negative.
template <class T, class A, int Q>
KOKKOS_INLINE_FUNCTION void fetch_flat(const FlatTile<A, Q>& tile, const T* from, const FlatRow& row) {
  constexpr int V    = 16 / sizeof(T);
  const T* const own = from + V * row.lane;
  const int left     = (row.window.end - V * row.lane) * int(sizeof(T));
  KOKKOSNN_IMPL_UNROLL
  for (int k = 0; k < tile.elements / V; ++k) {
    const int bytes = left - 16 * warp_width() * k;
    if (k > 0 || row.first >= 0 || row.lane > 0) {
      copy_ahead(pack_of_window<T>(tile, tile.template loaded<T>, row.lane, k), own + k * warp_width() * V,
                 bytes < 0 ? 0 : (bytes > 16 ? 16 : bytes));
    }
  }
  if (row.first < 0 && row.lane < V) {
    tile.template at<T>(row.lane, tile.template loaded<T>) = row.window.has(row.lane) ? from[row.lane] : T(0);
  }
}

/// Waits for a window's copies, and writes zeros in front of its elements.
template <class T, class A, int Q>
KOKKOS_INLINE_FUNCTION void await_fetched(const FlatTile<A, Q>& tile, const FlatRow& row) {
  await_copies();
  sync_lanes();
  if (row.lane < row.window.begin) tile.template at<T>(row.lane, tile.template loaded<T>) = T(0);
  sync_lanes();
}

/// Stores a window's elements, and no others, from `to` on, which may be aligned otherwise than the input. Packs that
/// are not whole in the window are stored by single elements.
template <class T, class A, int Q>
KOKKOS_INLINE_FUNCTION void store_flat(const FlatTile<A, Q>& tile, T* to, const FlatWindow& window, int lane,
                                       LinePolicy lines) {
  constexpr int V = 16 / sizeof(T);
  if (moves_whole_packs<T, V>(to, 1)) {
    T* const own = to + V * lane;
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < tile.elements / V; ++k) {
      const FlatWords words = *reinterpret_cast<const FlatWords*>(pack_of_window<T>(tile, 0, lane, k));
      if (window.has_pack<V>(V * (k * warp_width() + lane))) {
        store_at_once(reinterpret_cast<FlatWords*>(own + k * warp_width() * V), words, lines);
      }
    }
    const int edge     = lane < V ? lane : (window.end & -V) + lane - V;
    const bool is_edge = lane < V ? window.begin > 0 : lane < 2 * V;
    if (is_edge && window.has(edge)) to[edge] = tile.template at<T>(edge, 0);
  } else {
    KOKKOSNN_IMPL_NO_UNROLL
    for (int place = lane; place < window.end; place += warp_width()) {
      if (window.has(place)) to[place] = tile.template at<T>(place, 0);
    }
  }
}

/// Calls f(pack, its number) for a lane's packs of input, in the accumulator type. The loop is not unrolled: a kernel
/// that does not fit into a GPU's nearest instruction cache waits for instructions.
template <class T, class A, int Q, class F>
KOKKOS_INLINE_FUNCTION void for_loaded(const FlatTile<A, Q>& tile, int lane, const F& f) {
  constexpr int V         = 16 / sizeof(T);
  const char* const first = tile.own(lane) + tile.template loaded<T>;
  KOKKOSNN_IMPL_NO_UNROLL
  for (int p = 0; p < tile.elements / V; ++p) {
    Pack<A, V> pack;
    if constexpr (sizeof(T) == 2) {
      PackedTile<T, V, 1> packed;
      packed.word[0] = *reinterpret_cast<const FlatWords*>(first + 16 * p);
      packed.template unpack<0>(pack, 0);
    } else {
      pack = *reinterpret_cast<const Pack<A, V>*>(first + 16 * p);
    }
    f(pack, p);
  }
}

/// True if a lane's element is a head: `heads` has a bit an element.
KOKKOS_INLINE_FUNCTION bool has_head(std::uint32_t heads, int element) { return (heads >> element & 1) != 0; }

/// Marks the head of this lane's row. The lane behind the last row's marks that row's end.
template <class A, int Q, class Shared>
KOKKOS_INLINE_FUNCTION void mark_head(Shared& shared, const FlatTile<A, Q>& tile, const FlatRow& row) {
  const int lane = tile.lane_of(row.begin);
  if ((!row.is_empty() || row.lane == row.rows) && lane < warp_width()) {
    set_shared_bits(shared.heads[lane], 1u << (row.begin - lane * tile.elements));
  }
}

/// Run behind a quad of exponentials.
template <class Part, class A>
KOKKOS_INLINE_FUNCTION Part run_behind(const Part& run, std::uint32_t heads, const A* quad) {
  A sum = quad[0];
  for (int v = 1; v < 4; ++v) sum = quad[v] + (has_head(heads, v) ? A(0) : sum);
  return (heads & 15) != 0 ? Part{sum} : added(run, sum);
}

/// Sum of this lane's row, which is not empty, from the data of all lanes: `exponential(quad, v)` for the elements of
/// its last quad, and the runs before.
template <class Part, class A, int Q, class Shared, class F>
KOKKOS_INLINE_FUNCTION Part sum_of_row(const Shared& shared, const FlatTile<A, Q>& tile, const FlatRow& row,
                                       const F& exponential) {
  const int end   = row.end - 1;
  const int quad  = end & -4;
  const int first = tile.lane_of(row.begin);
  const int last  = tile.lane_of(end);
  A tail          = A(0);
  for (int v = 0; v < 4; ++v) {
    const A e = exponential(quad, v);
    tail += quad + v >= row.begin && quad + v <= end ? e : A(0);
  }
  Part sum{tail};
  const int before = (quad - last * tile.elements) / 4;
  if (before > 0 && row.begin < quad) sum = sum + shared.runs[before - 1][last];
  const Part* const runs = shared.runs[Q - 1];
  Part next              = runs[first];
  KOKKOSNN_IMPL_NO_UNROLL
  for (int l = first; l < last; ++l) {
    const Part run = next;
    next           = runs[l + 1];  // loaded while the previous run is added; each lane has one
    sum            = sum + run;
  }
  return sum;
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_DEVICE_FLAT_ROWS_HPP
