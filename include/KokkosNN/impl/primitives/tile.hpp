// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_PRIMITIVES_TILE_HPP
#define KOKKOSNN_IMPL_PRIMITIVES_TILE_HPP

#include <KokkosNN/impl/primitives/rows.hpp>
#include <KokkosNN/online.hpp>
#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

// The part of a row that a thread holds at a time, and the sums it makes of it. Loops over a pack are written so that a
// GPU compiler unrolls them into registers and a host compiler vectorises them.

namespace KokkosNN::Impl {

/// The larger of the two; a NaN x is ignored. m is never NaN.
template <class A>
KOKKOS_INLINE_FUNCTION A max_ignoring_nan(A m, A x) {
  KOKKOS_IF_ON_DEVICE((return Kokkos::fmax(m, x);))
  KOKKOS_IF_ON_HOST((return x > m ? x : m;))
}

template <class A, int V>
KOKKOS_INLINE_FUNCTION A largest(const Pack<A, V>& pack) {
  if constexpr (V == 1) {
    return pack[0];
  } else {
    Pack<A, V / 2> half;
    for (int v = 0; v < V / 2; ++v) half[v] = max_ignoring_nan(pack[v], pack[v + V / 2]);
    return largest(half);
  }
}

/// The sum of a pack. A host adds many floats at a time, and in double: their roundings would be seen in the result.
template <class A, int V>
KOKKOS_INLINE_FUNCTION A total(const Pack<A, V>& pack) {
  using Wide = std::conditional_t<(V > 8), double, A>;
  if constexpr (V == 1) {
    return pack[0];
  } else {
    Pack<Wide, V / 2> half;
    for (int v = 0; v < V / 2; ++v) half[v] = Wide(pack[v]) + Wide(pack[v + V / 2]);
    return static_cast<A>(total(half));
  }
}

template <class A, int V>
KOKKOS_INLINE_FUNCTION Pack<A, V> filled(A value) {
  Pack<A, V> pack;
  for (int v = 0; v < V; ++v) pack[v] = value;
  return pack;
}

/// wide = raw, or -raw if the scale is negative. Packs are handed over by reference: a copy of a host's pack goes
/// through narrower moves than the loops around it, which stalls them.
template <class A, class T, int V>
KOKKOS_INLINE_FUNCTION void widen(Pack<A, V>& wide, const Pack<T, V>& raw, A sign) {
  for (int v = 0; v < V; ++v) wide[v] = static_cast<A>(raw[v]);
  if (sign < A(0)) {
    for (int v = 0; v < V; ++v) wide[v] = -wide[v];
  }
}

/// maxima = the larger of maxima and pack, lane by lane.
template <class A, int V>
KOKKOS_INLINE_FUNCTION void raise_maxima(Pack<A, V>& maxima, const Pack<A, V>& pack) {
  for (int v = 0; v < V; ++v) maxima[v] = max_ignoring_nan(maxima[v], pack[v]);
}

/// finish(value) for each element, in the sink's type.
template <class T, class A, int V, class F>
KOKKOS_INLINE_FUNCTION Pack<T, V> narrowed(const Pack<A, V>& pack, const F& finish) {
  Pack<T, V> result;
  for (int v = 0; v < V; ++v) result[v] = static_cast<T>(finish(pack[v]));
  return result;
}

/// Replaces `sums` by sums + exp(pack - reference), lane by lane, and keeps the exponentials if asked.
template <bool keep, class A, int V, class Math>
KOKKOS_INLINE_FUNCTION void add_exponentials(const Math& math, Pack<A, V>& pack, A reference, Pack<A, V>& sums) {
  for (int v = 0; v < V; ++v) {
    const A e = math.exp(pack[v], reference);
    if constexpr (keep) pack[v] = e;
    sums[v] += e;
  }
}

/// Part of a row, in columns counted from the pack boundary at or before the row's start, `phase` elements ahead of it.
struct Span {
  std::int64_t origin;  ///< of the first pack; a multiple of the pack size
  std::int64_t begin;   ///< origin <= begin, unless the span is empty
  std::int64_t end;
  int phase;

  KOKKOS_INLINE_FUNCTION static Span whole_row(std::int64_t cols, int phase) { return {0, phase, cols + phase, phase}; }

  /// The column of the row at which the t-th tile starts.
  KOKKOS_INLINE_FUNCTION std::int64_t start(std::int64_t t, int tile_size) const {
    return origin + t * tile_size - phase;
  }
  /// The places of the t-th tile that lie in the span.
  KOKKOS_INLINE_FUNCTION Window window(std::int64_t t, int tile_size) const {
    const std::int64_t first = origin + t * tile_size;
    const std::int64_t left  = end - first;
    return {begin > first ? static_cast<int>(begin - first) : 0, left < tile_size ? static_cast<int>(left) : tile_size};
  }
  /// Whether there is a t-th tile.
  KOKKOS_INLINE_FUNCTION bool has_tile(std::int64_t t, int tile_size) const { return origin + t * tile_size < end; }
};

/// The packs of a tile that belong to a thread: at place `first`, then every `step`.
struct PackWalk {
  int first;
  int step;

  template <int V>
  KOKKOS_INLINE_FUNCTION static PackWalk of(int rank, int size) {
    return {rank * V, size * V};
  }
  KOKKOS_INLINE_FUNCTION int place(int k) const { return first + k * step; }
};

/// K packs as they lie in memory; loading is apart from computing so that all loads are in flight together.
template <class T, int V, int K>
struct RawTile {
  Pack<T, V> pack[K];

  template <class Stretch>
  KOKKOS_INLINE_FUNCTION void load(const Stretch& stretch, const PackWalk& walk, const Window& window, T pad) {
    // One decision for the tile instead of one a pack, where rows allow: almost always.
    if (Stretch::always_whole || stretch.template moves_whole_tiles<V>(window)) {
#pragma unroll
      for (int k = 0; k < K; ++k) pack[k] = stretch.template load_whole_pack<V>(walk.place(k), window, pad);
    } else {
#pragma unroll
      for (int k = 0; k < K; ++k) pack[k] = stretch.template load_pack<V>(walk.place(k), window, pad);
    }
  }
};

/// K packs in the accumulator type.
template <class A, int V, int K>
struct Tile {
  Pack<A, V> pack[K];

  template <class T>
  KOKKOS_INLINE_FUNCTION void widen(const RawTile<T, V, K>& raw, A sign) {
#pragma unroll
    for (int k = 0; k < K; ++k) Impl::widen(pack[k], raw.pack[k], sign);
  }

  template <class Stretch, class Math>
  KOKKOS_INLINE_FUNCTION void load(const Stretch& stretch, const PackWalk& walk, const Window& window,
                                   const Math& math) {
    using T = typename Stretch::value_type;
    RawTile<T, V, K> raw;
    raw.load(stretch, walk, window, math.template pad<T>());
    widen(raw, math.sign);
  }

  KOKKOS_INLINE_FUNCTION A max() const {
    Pack<A, V> m = filled<A, V>(-Kokkos::Experimental::infinity_v<A>);
#pragma unroll
    for (int k = 0; k < K; ++k) raise_maxima(m, pack[k]);
    return largest(m);
  }

  /// sum of exp(pack - reference); `keep` leaves the exponentials in the tile.
  template <bool keep, class Math>
  KOKKOS_INLINE_FUNCTION A sum_of_exponentials(const Math& math, A reference) {
    Pack<A, V> sums = filled<A, V>(A(0));
#pragma unroll
    for (int k = 0; k < K; ++k) add_exponentials<keep>(math, pack[k], reference, sums);
    return total(sums);
  }

  /// Stores what a row's finish makes of the kept values.
  template <class Stretch, class Math, class FinishRow>
  KOKKOS_INLINE_FUNCTION void store_kept(const Stretch& stretch, const PackWalk& walk, const Window& window,
                                         const Math& math, const FinishRow& finish) {
    if (finish.prescale != A(1)) {  // rare; so not in the loop below
#pragma unroll
      for (int k = 0; k < K; ++k) {
        for (int v = 0; v < V; ++v) pack[k][v] *= finish.prescale;
      }
    }
    store(stretch, walk, window, [&](A kept) { return finish.prescaled(math, kept); });
  }

  template <class Stretch, class F>
  KOKKOS_INLINE_FUNCTION void store(const Stretch& stretch, const PackWalk& walk, const Window& window,
                                    const F& finish) const {
    using T = typename Stretch::value_type;
    if (Stretch::always_whole || stretch.template moves_whole_tiles<V>(window)) {
#pragma unroll
      for (int k = 0; k < K; ++k) {
        if (walk.place(k) < window.end) stretch.store_whole_pack(narrowed<T>(pack[k], finish), walk.place(k));
      }
    } else {
#pragma unroll
      for (int k = 0; k < K; ++k) stretch.template store_pack<V>(narrowed<T>(pack[k], finish), walk.place(k), window);
    }
  }
};

/// A thread's (max, sum) over many tiles. The sum is kept in two words (Knuth's TwoSum), and references move by
/// granules only, so that neither many tiles nor ascending rows cost accuracy.
template <class A>
struct RunningSum {
  A reference = -Kokkos::Experimental::infinity_v<A>;
  A sum       = 0;
  A low       = 0;

  /// Makes the reference fit for values up to `max`; returns it, or 0 while there is nothing but -inf.
  template <class Math>
  KOKKOS_INLINE_FUNCTION A raise(const Math& math, A max) {
    const A next = math.exp.reference_of(max);
    if (next > reference) {
      const A factor = reference == -Kokkos::Experimental::infinity_v<A> ? A(1) : math.exp.precise(reference, next);
      sum *= factor;
      low *= factor;
      reference = next;
    }
    return reference == -Kokkos::Experimental::infinity_v<A> ? A(0) : reference;
  }

  KOKKOS_INLINE_FUNCTION void add(A value) {
    const A s    = sum + value;
    const A back = s - sum;
    low += (sum - (s - back)) + (value - back);
    sum = s;
  }

  KOKKOS_INLINE_FUNCTION MaxSumExp<A> state() const { return {reference, sum + low}; }
};

/// (max, sum) of a span, loaded tile by tile.
template <int V, int K, class A, class Row, class Math>
KOKKOS_INLINE_FUNCTION MaxSumExp<A> reduce_tiles(const Row& row, const Span& span, const PackWalk& walk,
                                                 const Math& math) {
  const int tile_size = K * walk.step;
  RunningSum<A> running;
  for (std::int64_t t = 0; span.has_tile(t, tile_size); ++t) {
    Tile<A, V, K> tile;
    tile.load(row.template from<V>(span.start(t, tile_size)), walk, span.window(t, tile_size), math);
    const A reference = running.raise(math, tile.max());
    running.add(tile.template sum_of_exponentials<false>(math, reference));
  }
  return running.state();
}

/// finish(x) of a span, loaded again.
template <int V, int K, class A, class Row, class SinkRow, class Math, class F>
KOKKOS_INLINE_FUNCTION void rewrite_tiles(const Row& row, const SinkRow& sink, const Span& span, const PackWalk& walk,
                                          const Math& math, const F& finish) {
  const int tile_size = K * walk.step;
  for (std::int64_t t = 0; span.has_tile(t, tile_size); ++t) {
    const std::int64_t start = span.start(t, tile_size);
    const Window window      = span.window(t, tile_size);
    Tile<A, V, K> tile;
    tile.load(row.template from<V>(start), walk, window, math);
    tile.store(sink.template from<V>(start), walk, window, finish);
  }
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_PRIMITIVES_TILE_HPP
