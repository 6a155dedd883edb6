// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_PRIMITIVES_TILE_HPP
#define KOKKOSNN_IMPL_PRIMITIVES_TILE_HPP

#include <KokkosNN/impl/primitives/lanes.hpp>
#include <KokkosNN/impl/primitives/rows.hpp>
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

/// The pack's halves added until `lanes` are left.
template <int lanes, class A, int V>
KOKKOS_INLINE_FUNCTION Pack<A, lanes> folded(const Pack<A, V>& pack) {
  if constexpr (V == lanes) {
    return pack;
  } else {
    Pack<A, V / 2> half;
    for (int v = 0; v < V / 2; ++v) half[v] = pack[v] + pack[v + V / 2];
    return folded<lanes>(half);
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

template <class A, int V>
KOKKOS_INLINE_FUNCTION void subtract(Pack<A, V>& pack, A value) {
  for (int v = 0; v < V; ++v) pack[v] -= value;
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

/// Exponentials that may be added together before their sum goes to ExponentialSums.
inline constexpr int exponentials_at_once = 4;

/// Lanes of sums of exponentials relative to one reference, each at most 2 then and some roundings. In `full` a sum
/// starts above anything that is added to it, and keeps what each addition rounds off in a second word (Dekker's fast
/// two-sum): added one by one in float alone, 32 numbers lose up to 8 ulp.
template <class Math, int lanes>
struct ExponentialSums {
  using A                       = typename Math::accumulator;
  using W                       = typename Math::wide_sum;
  static constexpr bool is_full = Math::accuracy == ExpAccuracy::full;
  static constexpr A start      = is_full ? 2 * exponentials_at_once + 1 : 0;

  Pack<A, lanes> sum = filled<A, lanes>(start);
  Pack<A, lanes> low = filled<A, lanes>(A(0));

  KOKKOS_INLINE_FUNCTION void add(int l, A value) {
    const A s = sum[l] + value;
    if constexpr (is_full) low[l] += value - (s - sum[l]);
    sum[l] = s;
  }

  KOKKOS_INLINE_FUNCTION W lane(int l) const {
    if constexpr (!is_full) return sum[l];
    return W{sum[l] - start} + W{low[l]};
  }

  KOKKOS_INLINE_FUNCTION W all_lanes() const {
    Pack<W, lanes> all;
    for (int l = 0; l < lanes; ++l) all[l] = lane(l);
    return folded<1>(all)[0];
  }
};

/// Sums for packs of V that are added up lane by lane as far as ExponentialSums allows.
template <int V>
inline constexpr int sum_lanes_of = V <= exponentials_at_once ? 1 : V / exponentials_at_once;
template <class Math, int V>
using PackSums = ExponentialSums<Math, sum_lanes_of<V>>;

/// Adds exp(scale (x - R)) of a pack, or of a pack of x - base, in place of which the exponentials are kept.
template <bool keep, class A, int V, class Math>
KOKKOS_INLINE_FUNCTION void add_exponentials(const Math& math, Pack<A, V>& pack, const ExpReference<A>& reference,
                                             PackSums<Math, V>& sums) {
  Pack<A, V> e;
  for (int v = 0; v < V; ++v) {
    e[v] = keep ? math.exp.of_difference(pack[v], reference) : math.exp(pack[v], reference);
    if constexpr (keep) pack[v] = e[v];
  }
  const auto parts = folded<sum_lanes_of<V>>(e);
  for (int l = 0; l < sum_lanes_of<V>; ++l) sums.add(l, parts[l]);
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
  /// How many there are; counted, as a 64-bit division is a subroutine on GPUs.
  KOKKOS_INLINE_FUNCTION std::int64_t tiles(int tile_size) const {
    std::int64_t n = 0;
    while (has_tile(n, tile_size)) ++n;
    return n;
  }
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
    const bool is_whole = Stretch::always_whole || stretch.template moves_whole_tiles<V>(window);
    if (is_whole && walk.place(K - 1) < window.end) {
      KOKKOSNN_IMPL_UNROLL
      for (int k = 0; k < K; ++k) pack[k] = stretch.template load_inner_pack<V>(walk.place(k));
    } else if (is_whole) {
      KOKKOSNN_IMPL_UNROLL
      for (int k = 0; k < K; ++k) pack[k] = stretch.template load_whole_pack<V>(walk.place(k), window, pad);
    } else {
      KOKKOSNN_IMPL_UNROLL
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
    KOKKOSNN_IMPL_UNROLL
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
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) raise_maxima(m, pack[k]);
    return largest(m);
  }

  /// sum of exp(pack - reference); `keep` leaves the exponentials in the tile.
  template <bool keep, class Math>
  KOKKOS_INLINE_FUNCTION auto sum_of_exponentials(const Math& math, const ExpReference<A>& reference) {
    PackSums<Math, V> sums;
    if (keep && reference.base != A(0)) {  // hardly ever, so not in the loop below
      KOKKOSNN_IMPL_UNROLL
      for (int k = 0; k < K; ++k) subtract(pack[k], reference.base);
    }
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) add_exponentials<keep>(math, pack[k], reference, sums);
    return sums.all_lanes();
  }

  /// Stores what a row's finish makes of the kept values.
  template <class Stretch, class Math, class FinishRow>
  KOKKOS_INLINE_FUNCTION void store_kept(const Stretch& stretch, const PackWalk& walk, const Window& window,
                                         const Math& math, const FinishRow& finish) {
    store(stretch, walk, window, [&](A kept) { return finish(math, kept); });
  }

  template <class Stretch, class F>
  KOKKOS_INLINE_FUNCTION void store(const Stretch& stretch, const PackWalk& walk, const Window& window,
                                    const F& finish) const {
    using T = typename Stretch::value_type;
    if (Stretch::always_whole || stretch.template moves_whole_tiles<V>(window)) {
      KOKKOSNN_IMPL_UNROLL
      for (int k = 0; k < K; ++k) {
        if (walk.place(k) < window.end) stretch.store_whole_pack(narrowed<T>(pack[k], finish), walk.place(k));
      }
    } else {
      KOKKOSNN_IMPL_UNROLL
      for (int k = 0; k < K; ++k) stretch.template store_pack<V>(narrowed<T>(pack[k], finish), walk.place(k), window);
    }
  }
};

/// A thread's state over many tiles; the sum wider than float, as there may be very many.
template <class Math>
struct RunningSum {
  using A   = typename Math::accumulator;
  using W   = typename Math::wide_sum;
  using Sum = std::conditional_t<std::is_same_v<A, float>, double, W>;

  A reference = -Kokkos::Experimental::infinity_v<A>;
  Sum sum     = {};

  /// Makes the reference fit for values up to `max`, and returns it.
  KOKKOS_INLINE_FUNCTION ExpReference<A> raise(const Math& math, A max) {
    const A next = math.exp.reference_of(max);
    if (next > reference) {
      sum       = rescaled(math, sum, reference, next);
      reference = next;
    }
    return math.exp.at(finite_reference(reference));
  }

  KOKKOS_INLINE_FUNCTION void add(const W& value) { sum = sum + Sum(value); }

  KOKKOS_INLINE_FUNCTION typename Math::State state() const { return {reference, static_cast<W>(sum)}; }
};

/// (max, sum) of a span, loaded tile by tile.
template <int V, int K, class A, class Row, class Math>
KOKKOS_INLINE_FUNCTION typename Math::State reduce_tiles(const Row& row, const Span& span, const PackWalk& walk,
                                                         const Math& math) {
  const int tile_size = K * walk.step;
  RunningSum<Math> running;
  for (std::int64_t t = 0; span.has_tile(t, tile_size); ++t) {
    Tile<A, V, K> tile;
    tile.load(row.template from<V>(span.start(t, tile_size)), walk, span.window(t, tile_size), math);
    const auto reference = running.raise(math, tile.max());
    running.add(tile.template sum_of_exponentials<false>(math, reference));
  }
  return running.state();
}

/// finish(x) of a span, loaded again: last tile first, as what was read last may still be in a cache.
template <int V, int K, class A, class Row, class SinkRow, class Math, class F>
KOKKOS_INLINE_FUNCTION void rewrite_tiles(const Row& row, const SinkRow& sink, const Span& span, const PackWalk& walk,
                                          const Math& math, const F& finish) {
  const int tile_size = K * walk.step;
  for (std::int64_t t = span.tiles(tile_size) - 1; t >= 0; --t) {
    const std::int64_t start = span.start(t, tile_size);
    const Window window      = span.window(t, tile_size);
    Tile<A, V, K> tile;
    tile.load(row.template from<V>(start), walk, window, math);
    tile.store(sink.template from<V>(start), walk, window, finish);
  }
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_PRIMITIVES_TILE_HPP
