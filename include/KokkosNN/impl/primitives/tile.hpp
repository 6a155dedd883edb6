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

/// Packs are handed over by reference: a copy of a host's pack goes through narrower moves than the loops around it,
/// which stalls them.
template <class A, class T, int V>
KOKKOS_INLINE_FUNCTION void widen(Pack<A, V>& wide, const Pack<T, V>& raw) {
  for (int v = 0; v < V; ++v) wide[v] = static_cast<A>(raw[v]);
}

/// Packs times the sign of the scale: one branch for all, as it hardly ever is negative. `opaque` keeps it from
/// becoming a selection an element.
template <class A, int V, int K>
KOKKOS_INLINE_FUNCTION void apply_sign(Pack<A, V> (&pack)[K], A sign) {
  if (sign > A(0)) return;
  KOKKOSNN_IMPL_UNROLL
  for (int k = 0; k < K; ++k) {
    for (int v = 0; v < V; ++v) pack[k][v] = -opaque(pack[k][v]);
  }
}

template <class A, int V>
KOKKOS_INLINE_FUNCTION void subtract(Pack<A, V>& pack, A value) {
  for (int v = 0; v < V; ++v) pack[v] -= value;
}

template <class A, int V>
KOKKOS_INLINE_FUNCTION void make_zeros_of_numbers(Pack<A, V>& pack) {
  for (int v = 0; v < V; ++v) pack[v] = zero_of_number(pack[v]);
}

template <class A, int V>
KOKKOS_INLINE_FUNCTION bool has_nan(const Pack<A, V>& pack) {
  bool any = false;
  for (int v = 0; v < V; ++v) any |= pack[v] != pack[v];
  return any;
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

/// Whether an operator makes other logits of what was loaded, as a soft cap does: math.logit(x).
template <class Math>
concept ChangesLogits = requires(const Math& math, typename Math::accumulator x) {
  math.logit(x);
};

template <class Math, class A>
KOKKOS_INLINE_FUNCTION A logit_of(const Math& math, A x) {
  if constexpr (ChangesLogits<Math>) {
    return math.logit(x);
  } else {
    return x;
  }
}

/// The same of a pack; -inf, which is what fills it outside of a row, stays.
template <class Math, class A, int V>
KOKKOS_INLINE_FUNCTION void make_logits(const Math& math, Pack<A, V>& pack) {
  if constexpr (ChangesLogits<Math>) math.make_logits(pack);
}

/// For an operator that needs no more of a row's logits than (max, sum).
struct NoObserver {
  template <class A, int V>
  KOKKOS_INLINE_FUNCTION void operator()(const Pack<A, V>&, std::int64_t, int) const {}
};

/// Exponentials that may be added together before their sum goes to ExponentialSums.
inline constexpr int exponentials_at_once = 8;

/// Lanes of sums of exponentials relative to one reference, each at most 2 then and some roundings. In `full` a sum
/// starts above anything that is added to it, and keeps what each addition rounds off in a second word (Dekker's fast
/// two-sum): added one by one in float alone, 32 numbers lose up to 8 ulp.
template <class Math, int lanes>
struct ExponentialSums {
  using A                       = typename Math::accumulator;
  using W                       = typename Math::wide_sum;
  static constexpr bool is_full = Math::accuracy == ExpAccuracy::full;
  /// So large that few sums leave its power of two.
  static constexpr A start = is_full ? 128 : 0;
  static_assert(!is_full || start > 2 * exponentials_at_once);

  Pack<A, lanes> sum = filled<A, lanes>(start);
  Pack<A, lanes> low = filled<A, lanes>(A(0));

  KOKKOS_INLINE_FUNCTION void add(int l, A value) {
    const A s = sum[l] + value;
    if constexpr (is_full) low[l] += value - (s - sum[l]);
    sum[l] = s;
  }

  KOKKOS_INLINE_FUNCTION void add(const Pack<A, lanes>& values) {
    for (int l = 0; l < lanes; ++l) add(l, values[l]);
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

  /// Whether a warp can count the sum of at most so many terms a lane, each at most 2, in units of 2^-36.
  template <int terms>
  static constexpr bool counts_units =
      is_full && lanes == 1 && has_warp_sum && 2 * terms < start && std::is_same_v<W, double>;

  /// The sum over a group's lanes, every one of which gets it; of at most so many terms a lane, each at most 2.
  template <int terms>
  KOKKOS_INLINE_FUNCTION W sum_of_warp(int group_lanes) const {
    if constexpr (counts_units<terms>) {
      if (group_lanes == native_lanes()) return sum_of_whole_warp();
    }
    return reduce_lanes(all_lanes(), 1, group_lanes, SumJoin{});
  }

  /// The sum over a whole warp in units of 2^-36, as integers, which a warp adds by one instruction each: a float
  /// between `start` and twice that counts units of 2^-16, and what it lacks is brought to units of 2^-36. Anything if
  /// a lane has NaN.
  KOKKOS_INLINE_FUNCTION std::uint64_t units_of_warp() const {
    static_assert(start == 128);
    constexpr float unit_2_36 = 0x1.8p-13f;  // added to a small float, leaves units of 2^-36
    const auto bits_of        = [](float x) { return Kokkos::bit_cast<std::uint32_t>(x); };
    constexpr auto zeros      = [](float x) { return native_lanes() * Kokkos::bit_cast<std::uint32_t>(x); };
    const std::uint32_t high  = warp_sum(bits_of(sum[0])) - zeros(start);
    const auto rest           = static_cast<std::int32_t>(warp_sum(bits_of(low[0] + unit_2_36)) - zeros(unit_2_36));
    return (std::uint64_t(high) << 20) + static_cast<std::int64_t>(rest);
  }
  KOKKOS_INLINE_FUNCTION bool is_number() const { return sum[0] == sum[0]; }

  /// Of so many units, rounded to A.
  KOKKOS_INLINE_FUNCTION static W sum_of_units(std::uint64_t units, bool is_number) {
    return W(static_cast<A>(units) * (is_number ? A(0x1p-36) : Kokkos::Experimental::quiet_NaN_v<A>));
  }

 private:
  KOKKOS_INLINE_FUNCTION W sum_of_whole_warp() const {
    constexpr double unit = 65536;  // a double whose last bit is 2^-36
    const double total    = Kokkos::bit_cast<double>(Kokkos::bit_cast<std::uint64_t>(unit) + units_of_warp()) - unit;
    return lanes_that(!is_number()) == 0 ? total : Kokkos::Experimental::quiet_NaN_v<double>;
  }
};

/// Of one pack to one lane: the packs of a tile are added two by two.
inline constexpr int exponentials_of_pack = exponentials_at_once / 2;

/// Sums for packs of V, to whose lanes a pack adds few exponentials each.
template <int V>
inline constexpr int sum_lanes_of = V <= exponentials_of_pack ? 1 : V / exponentials_of_pack;
template <class Math, int V>
using PackSums = ExponentialSums<Math, sum_lanes_of<V>>;

/// What is left where logits were, once their exponentials are added: x, or x - base, or the exponentials.
enum class Leaves { logits, differences, exponentials };
template <bool keep>
inline constexpr Leaves leaves_if = keep ? Leaves::exponentials : Leaves::logits;

/// exp(scale (x - R)) of a pack of x, where that is left, or else of x - base; added up to the lanes of PackSums.
template <Leaves leaves, SumFor use, class A, int V, class Math>
KOKKOS_INLINE_FUNCTION Pack<A, sum_lanes_of<V>> exponentials(const Math& math, Pack<A, V>& pack,
                                                             const ExpReference<A>& reference) {
  Pack<A, V> e;
  for (int v = 0; v < V; ++v) {
    const A d = leaves == Leaves::logits ? pack[v] - reference.base : pack[v];
    if constexpr (leaves == Leaves::exponentials) {
      e[v] = pack[v] = math.exp.of_difference(d, reference);
    } else {
      e[v] = math.exp.template term_of_difference<use>(d, reference);
    }
  }
  return folded<sum_lanes_of<V>>(e);
}

/// Adds them; of a pack of x, or of x - base, in place of which the exponentials are kept.
template <bool keep, class A, int V, class Math>
KOKKOS_INLINE_FUNCTION void add_exponentials(const Math& math, Pack<A, V>& pack, const ExpReference<A>& reference,
                                             PackSums<Math, V>& sums) {
  sums.add(exponentials<leaves_if<keep>, SumFor::quotient>(math, pack, reference));
}

/// Columns begin to end of a row, which packs go through from `begin` on.
struct Span {
  std::int64_t begin;
  std::int64_t end;

  KOKKOS_INLINE_FUNCTION bool has(std::int64_t column) const { return begin <= column && column < end; }
  /// The column at which the t-th tile starts.
  KOKKOS_INLINE_FUNCTION std::int64_t start(std::int64_t t, int tile_size) const { return begin + t * tile_size; }
  /// The places of the t-th tile that lie in the span.
  KOKKOS_INLINE_FUNCTION Window window(std::int64_t t, int tile_size) const {
    const std::int64_t left = end - start(t, tile_size);
    return {left < tile_size ? static_cast<int>(left) : tile_size};
  }
  /// All of a span that is one tile.
  KOKKOS_INLINE_FUNCTION Window window() const { return {static_cast<int>(end - begin)}; }
  /// Whether there is a t-th tile.
  KOKKOS_INLINE_FUNCTION bool has_tile(std::int64_t t, int tile_size) const { return start(t, tile_size) < end; }
  /// How many there are; counted, as a 64-bit division is a subroutine on GPUs.
  KOKKOS_INLINE_FUNCTION std::int64_t tiles(int tile_size) const {
    std::int64_t n = 0;
    while (has_tile(n, tile_size)) ++n;
    return n;
  }
};

/// Whether a row says itself which of its packs are to be loaded; the others are only written.
template <class Row, int V>
concept GivesItsPacks = requires(const Row& row, std::int64_t cols) {
  row.template packs<V>(cols);
};

/// What of a row the threads of a group have: packs, and this thread's element of the row's rims, if it has one.
struct RowPart {
  Span packs;
  std::int64_t rim;
  bool has_rim;

  /// A whole row of `cols` columns. A group has at least as many threads as rims can have elements, 2V - 2.
  template <int V, class Row>
  KOKKOS_INLINE_FUNCTION static RowPart whole(const Row& row, std::int64_t cols, int rank) {
    if constexpr (GivesItsPacks<Row, V>) {
      return {row.template packs<V>(cols), 0, false};
    } else if constexpr (Row::has_rims) {
      const std::int64_t first = row.template head<V>();
      const std::int64_t head  = first < cols ? first : cols;
      const std::int64_t body  = (cols - head) & -std::int64_t(V);
      const std::int64_t rim   = rank < head ? rank : rank + body;
      return {{head, head + body}, rim, rim < cols};
    } else {
      return {{0, cols}, 0, false};
    }
  }

  /// So many elements of its packs, from `first` on; the group with the first pack has the rims.
  template <int V, class Row>
  KOKKOS_INLINE_FUNCTION static RowPart share(const Row& row, std::int64_t cols, int rank, std::int64_t first,
                                              std::int64_t elements) {
    RowPart part             = whole<V>(row, cols, rank);
    const std::int64_t begin = part.packs.begin + first;
    const std::int64_t end   = part.packs.end;
    part.packs               = {begin < end ? begin : end, begin + elements < end ? begin + elements : end};
    part.has_rim             = part.has_rim && first == 0;
    return part;
  }
};

/// Writes `value` to the columns of a span, which begins at a pack; threads are numbered by `rank` of `threads`.
template <int V, class SinkRow>
KOKKOS_INLINE_FUNCTION void fill_span(const SinkRow& sink, const Span& span, std::int64_t rank, std::int64_t threads,
                                      typename SinkRow::value_type value) {
  const auto pack = filled<typename SinkRow::value_type, V>(value);
  KOKKOSNN_IMPL_NO_UNROLL
  for (std::int64_t c = span.begin + rank * V; c < span.end; c += threads * V) {
    const Window window{span.end - c < V ? static_cast<int>(span.end - c) : V};
    sink.template from<V>(anew(c)).template store_pack<V>(pack, 0, window);
  }
}

/// Writes the columns of which nothing was loaded: what the row's finish makes of a masked element.
template <int V, class Row, class SinkRow, class Math, class FinishRow>
KOKKOS_INLINE_FUNCTION void write_others(const Row& row, const SinkRow& sink, std::int64_t cols, std::int64_t rank,
                                         std::int64_t threads, const Math& math, const FinishRow& finish) {
  if constexpr (GivesItsPacks<Row, V>) {
    const auto value = static_cast<typename SinkRow::value_type>(finish.of_masked(math));
    const Span packs = row.template packs<V>(cols);
    fill_span<V>(sink, {0, packs.begin}, rank, threads, value);
    fill_span<V>(sink, {packs.end, cols}, rank, threads, value);
  }
}

/// A row's state once what is no column of it has joined: a sink.
template <class Math, class Row, class State>
KOKKOS_INLINE_FUNCTION State completed(const Math& math, const Row& row, const State& state) {
  if constexpr (requires { row.completed(math, state); }) {
    return row.completed(math, state);
  } else {
    return state;
  }
}

/// Makes logits of a pack that was loaded and widened, where rows ask for it.
template <int V, class Stretch, class A>
KOKKOS_INLINE_FUNCTION void adjust(const Stretch& stretch, Pack<A, V>& pack, int place) {
  if constexpr (requires { stretch.template adjust<V>(pack, place); }) stretch.template adjust<V>(pack, place);
}

/// Whether packs of 16-bit elements are masked as they were loaded.
template <class Stretch>
inline constexpr bool masks_words = false;
template <class Stretch>
requires(Stretch::masks_words) inline constexpr bool masks_words<Stretch> = true;

/// This thread's element of a row's rims.
template <class A, bool exists>
struct RimElement {
  template <class Row, class Math>
  KOKKOS_INLINE_FUNCTION void load(const Row&, const RowPart&, const Math&) {}
  template <class Observer>
  KOKKOS_INLINE_FUNCTION void show(const RowPart&, Observer&) const {}
  KOKKOS_INLINE_FUNCTION A larger(A max) const { return max; }
  template <bool keep, SumFor use, class Math, class Sums>
  KOKKOS_INLINE_FUNCTION void add_exponential(const Math&, const ExpReference<A>&, Sums&) {}
  template <class SinkRow, class F>
  KOKKOS_INLINE_FUNCTION void store(const SinkRow&, const RowPart&, const F&) const {}
};

template <class A>
struct RimElement<A, true> {
  A value;

  template <class Row, class Math>
  KOKKOS_INLINE_FUNCTION void load(const Row& row, const RowPart& part, const Math& math) {
    value = -Kokkos::Experimental::infinity_v<A>;
    if (part.has_rim) value = logit_of(math, math.sign * static_cast<A>(row.load_one(part.rim)));
  }

  template <class Observer>
  KOKKOS_INLINE_FUNCTION void show(const RowPart& part, Observer& observer) const {
    if (part.has_rim) observer(Pack<A, 1>{{value}}, part.rim, 1);
  }

  KOKKOS_INLINE_FUNCTION A larger(A max) const { return max_ignoring_nan(max, value); }

  /// `keep` leaves the exponential in its place.
  template <bool keep, SumFor use, class Math, class Sums>
  KOKKOS_INLINE_FUNCTION void add_exponential(const Math& math, const ExpReference<A>& reference, Sums& sums) {
    const A d = is_infinite<use, Math>(reference) ? zero_of_number(value) : value - reference.base;
    const A e = math.exp.of_difference(d, reference);
    if constexpr (keep) value = e;
    sums.add(0, e);
  }

  template <class SinkRow, class F>
  KOKKOS_INLINE_FUNCTION void store(const SinkRow& sink, const RowPart& part, const F& finish) const {
    using T = typename SinkRow::value_type;
    if (part.has_rim) sink.store_one(static_cast<T>(finish(value)), part.rim);
  }
};

/// n modulo d, d < 2^16, by divisions of 32 bits: those of 64 are subroutines on a GPU.
KOKKOS_INLINE_FUNCTION std::uint32_t remainder(std::uint64_t n, std::uint32_t d) {
  const auto low  = static_cast<std::uint32_t>(n);
  const auto high = static_cast<std::uint32_t>(n >> 32);
  if ((d & (d - 1)) == 0) return low & (d - 1);
  if (high == 0) return low % d;
  const std::uint32_t two_to_32 = (0xffffffffu % d + 1) % d;
  return (high % d * two_to_32 + low % d) % d;
}

/// The packs of a tile that belong to a thread: at place `first`, then every `step`.
struct PackWalk {
  int first;
  int step;
  int ahead;  // from here to the last of the lanes that run in step with this one

  template <int V>
  KOKKOS_INLINE_FUNCTION static PackWalk of(int rank, int size) {
    const int lanes = size < native_lanes() ? size : native_lanes();
    return {rank * V, size * V, (lanes - 1 - (rank & (lanes - 1))) * V};
  }
  KOKKOS_INLINE_FUNCTION int place(int k) const { return anew(first + k * step); }
  /// Whether this thread has the element at a place, which may be in any tile.
  template <int V>
  KOKKOS_INLINE_FUNCTION bool has(std::int64_t place) const {
    return remainder(static_cast<std::uint64_t>(place) / V, static_cast<std::uint32_t>(step / V)) * V ==
           static_cast<std::uint32_t>(first);
  }
  /// Whether all K packs of this thread, and of those in step with it, lie in the window: a branch that no warp splits.
  template <int K>
  KOKKOS_INLINE_FUNCTION bool fills(const Window& window) const {
    return place(K - 1) + ahead < window.end;
  }
};

/// Which of a thread's packs to compute: all, what a row lacks of them being -inf.
struct AllPacks {
  KOKKOS_INLINE_FUNCTION constexpr bool operator()(int) const { return true; }
};

/// Of a masked row those of which its warp has any: of most rows it lacks many.
struct PacksInUse {
  int step;
  int end;  ///< from the warp's first place on

  KOKKOS_INLINE_FUNCTION PacksInUse(const PackWalk& walk, const Window& window, int warp)
      : step(walk.step), end(window.end - (walk.first + walk.ahead - warp)) {}
  KOKKOS_INLINE_FUNCTION bool operator()(int k) const { return k * step < end; }
};

template <int V, class Row>
KOKKOS_INLINE_FUNCTION auto packs_in_use(const PackWalk& walk, const Window& window, int lanes) {
  if constexpr (GivesItsPacks<Row, V> && native_lanes() > 1) {
    return PacksInUse(walk, window, (lanes - 1) * V);
  } else {
    return AllPacks{};
  }
}

/// observer(pack, its first column, how many of its elements lie in the row) for a tile that starts at column `start`.
template <int V, int K, class Tile, class Observer>
KOKKOS_INLINE_FUNCTION void show_tile(const Tile& tile, std::int64_t start, const PackWalk& walk, const Window& window,
                                      Observer& observer) {
  if constexpr (!std::is_same_v<std::remove_const_t<Observer>, NoObserver>) {
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) {
      const int place = walk.place(k);
      if (place < window.end) observer(tile.pack[k], start + place, window.end - place);
    }
  }
}

/// Loads K packs: inner(k, place) where all lie in the row, whole(k, place) where each lies in the row or outside of
/// it, part(k, place) otherwise. One decision for the tile instead of one a pack, where rows allow: almost always.
template <int V, int K, class Stretch, class Inner, class Whole, class Part>
KOKKOS_INLINE_FUNCTION void load_tile(const Stretch& stretch, const PackWalk& walk, const Window& window,
                                      const Inner& inner, const Whole& whole, const Part& part) {
  const bool is_whole = Stretch::always_whole || stretch.template moves_whole_tiles<V>(window);
  if (is_whole && walk.template fills<K>(window)) {
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) inner(k, walk.place(k));
  } else if (is_whole) {
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) whole(k, walk.place(k));
  } else {
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) part(k, walk.place(k));
  }
}

/// Stores K packs, `result(k)` being the k-th.
template <int V, int K, class Stretch, class Result>
KOKKOS_INLINE_FUNCTION void store_tile(const Stretch& stretch, const PackWalk& walk, const Window& window,
                                       const Result& result) {
  if (Stretch::always_whole || stretch.template moves_whole_tiles<V>(window)) {
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) {
      if (walk.place(k) < window.end) stretch.store_whole_pack(result(k), walk.place(k));
    }
  } else {
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) stretch.template store_pack<V>(result(k), walk.place(k), window);
  }
}

/// K packs as they lie in memory; loading is apart from computing so that all loads are in flight together.
template <class T, int V, int K>
struct RawTile {
  Pack<T, V> pack[K];

  template <class Stretch>
  KOKKOS_INLINE_FUNCTION void load(const Stretch& stretch, const PackWalk& walk, const Window& window, T pad) {
    load_tile<V, K>(
        stretch, walk, window,  //
        [&](int k, int place) { pack[k] = stretch.template load_inner_pack<V>(place); },
        [&](int k, int place) { pack[k] = stretch.template load_whole_pack<V>(place, window, pad); },
        [&](int k, int place) { pack[k] = stretch.template load_pack<V>(place, window, pad); });
  }
};

/// Whether T is what is left of a float without its lower 16 bits.
template <class T>
inline constexpr bool is_upper_half_of_float = std::is_same_v<T, bhalf_t>;

/// The sign bits of a word of two 16-bit elements.
inline constexpr std::uint32_t signs_of_word = 0x80008000u;

/// Whether one instruction has the larger ones of two words' 16-bit elements; a NaN is never the larger one.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
inline constexpr bool has_max_of_words = true;
#else
inline constexpr bool has_max_of_words = false;
#endif

template <class T>
KOKKOS_INLINE_FUNCTION std::uint32_t max_of_words([[maybe_unused]] std::uint32_t a, [[maybe_unused]] std::uint32_t b) {
  std::uint32_t larger = a;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if constexpr (is_upper_half_of_float<T>) {
    asm("max.bf16x2 %0, %1, %2;" : "=r"(larger) : "r"(a), "r"(b));
  } else {
    asm("max.f16x2 %0, %1, %2;" : "=r"(larger) : "r"(a), "r"(b));
  }
#endif
  return larger;  // elsewhere not called
}

/// K packs of a 16-bit type, two elements a word, times the sign of the scale.
template <class T, int V, int K>
struct PackedTile {
  Pack<std::uint32_t, V / 2> word[K];

  template <class Stretch, class Math>
  KOKKOS_INLINE_FUNCTION void load(const Stretch& stretch, const PackWalk& walk, const Window& window,
                                   const Math& math) {
    const T pad = math.template pad<T>();
    load_tile<V, K>(
        stretch, walk, window,  //
        [&](int k, int place) { word[k] = stretch.template load_inner_words<V>(place); },
        [&](int k, int place) {
          word[k] = words_of(filled<T, V>(pad));
          if (place < window.end) word[k] = stretch.template load_inner_words<V>(place);
        },
        [&](int k, int place) { word[k] = words_of(stretch.template load_pack<V>(place, window, pad)); });
    if constexpr (masks_words<Stretch>) {
      KOKKOSNN_IMPL_UNROLL
      for (int k = 0; k < K; ++k) stretch.template mask_words<V>(word[k], walk.place(k), pad);
    }
    if (math.sign < 0) {
      KOKKOSNN_IMPL_UNROLL
      for (int k = 0; k < K; ++k) {
        for (int w = 0; w < V / 2; ++w) word[k][w] ^= signs_of_word;
      }
    }
  }

  /// The largest element, by two at a time where there is an instruction for that.
  template <class A>
  KOKKOS_INLINE_FUNCTION A max() const {
    if constexpr (has_max_of_words) {
      auto maxima = word[0];
      KOKKOSNN_IMPL_UNROLL
      for (int k = 1; k < K; ++k) {
        for (int w = 0; w < V / 2; ++w) maxima[w] = max_of_words<T>(maxima[w], word[k][w]);
      }
      for (int w = 1; w < V / 2; ++w) maxima[0] = max_of_words<T>(maxima[0], maxima[w]);
      const A larger = Kokkos::fmax(element<0, 0, A>(maxima[0]), element<0, 1, A>(maxima[0]));
      return Kokkos::fmax(larger, -Kokkos::Experimental::infinity_v<A>);  // where all are NaN
    } else {
      Pack<A, V> maxima = filled<A, V>(-Kokkos::Experimental::infinity_v<A>);
      for_packs<0, A>([&](const Pack<A, V>& pack) { raise_maxima(maxima, pack); });
      return largest(maxima);
    }
  }

  template <class A>
  KOKKOS_INLINE_FUNCTION bool has_nan() const {
    bool any = false;
    for_packs<0, A>([&](const Pack<A, V>& pack) { any |= Impl::has_nan(pack); });
    return any;
  }

  /// f(pack in the accumulator type A), one after the other.
  template <int pass, class A, class F>
  KOKKOS_INLINE_FUNCTION void for_packs(const F& f) const {
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) {
      Pack<A, V> pack;
      unpack<pass>(pack, k);
      f(pack);
    }
  }

  /// Stores value(x) of each element in the accumulator type A.
  template <int pass, class A, class Stretch, class F>
  KOKKOS_INLINE_FUNCTION void store(const Stretch& stretch, const PackWalk& walk, const Window& window,
                                    const F& value) const {
    store_tile<V, K>(stretch, walk, window, [&](int k) {
      Pack<A, V> pack;
      unpack<pass>(pack, k);
      return narrowed<typename Stretch::value_type>(pack, value);
    });
  }

  /// The k-th pack in the accumulator type. Compilers must not see that it is the same in each pass over the tile, or
  /// they would keep it.
  template <int pass, class A>
  KOKKOS_INLINE_FUNCTION void unpack(Pack<A, V>& wide, int k) const {
    for (int v = 0; v < V; v += 2) {
      wide[v]     = element<pass, 0, A>(word[k][v / 2]);
      wide[v + 1] = element<pass, 1, A>(word[k][v / 2]);
    }
  }

 private:
  template <int pass, int number, class A>
  KOKKOS_INLINE_FUNCTION static A element(std::uint32_t w) {
#if defined(__CUDA_ARCH__)
    // Two of its bytes over two zero bytes, by one instruction.
    constexpr unsigned bytes = number == 0 ? 0x1044u : 0x3244u;
    if constexpr (is_upper_half_of_float<T>) {
      return Kokkos::bit_cast<float>(__byte_perm(w, 0u, bytes + unknown_zero<pass>()));
    }
#endif
    const std::uint32_t bits = (w ^ unknown_zero<pass>()) >> (16 * number);
    return static_cast<A>(Kokkos::bit_cast<T>(static_cast<std::uint16_t>(bits)));
  }
};

/// K packs in the accumulator type.
template <class A, int V, int K>
struct Tile {
  Pack<A, V> pack[K];

  template <class T>
  KOKKOS_INLINE_FUNCTION void widen(const RawTile<T, V, K>& raw, A sign) {
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) Impl::widen(pack[k], raw.pack[k]);
    apply_sign(pack, sign);
  }

  template <class Stretch, class Math>
  KOKKOS_INLINE_FUNCTION void load(const Stretch& stretch, const PackWalk& walk, const Window& window,
                                   const Math& math) {
    using T                  = typename Stretch::value_type;
    constexpr bool in_words  = native_lanes() > 1 && sizeof(T) == 2 && V > 1;  // a GPU's registers are words
    constexpr bool is_masked = in_words && masks_words<Stretch>;
    if constexpr (in_words) {
      PackedTile<T, V, K> packed;
      packed.load(stretch, walk, window, math);
      KOKKOSNN_IMPL_UNROLL
      for (int k = 0; k < K; ++k) packed.template unpack<0>(pack[k], k);
    } else {
      RawTile<T, V, K> raw;
      raw.load(stretch, walk, window, math.template pad<T>());
      widen(raw, math.sign);
    }
    if constexpr (!is_masked) adjust_packs(stretch, walk);
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) make_logits(math, pack[k]);
  }

  /// Makes logits of what was loaded, where rows ask for it: of all packs at once where they can.
  template <class Stretch>
  KOKKOS_INLINE_FUNCTION void adjust_packs(const Stretch& stretch, const PackWalk& walk) {
    if constexpr (requires { stretch.adjust_tile(pack, walk); }) {
      if (stretch.adjust_tile(pack, walk)) return;
    }
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) adjust<V>(stretch, pack[k], walk.place(k));
  }

  template <class Used = AllPacks>
  KOKKOS_INLINE_FUNCTION A max(const Used& used = {}) const {
    constexpr A none = -Kokkos::Experimental::infinity_v<A>;
    if constexpr (has_max_of_words && std::is_same_v<Used, AllPacks>) {
      // The fmax of such GPUs ignores NaN on either side: only the last one need be told from it. Short rows show that.
      Pack<A, V> m = pack[0];
      KOKKOSNN_IMPL_UNROLL
      for (int k = 1; k < K; ++k) raise_maxima(m, pack[k]);
      return Kokkos::fmax(largest(m), none);
    } else {
      Pack<A, V> m = filled<A, V>(none);
      KOKKOSNN_IMPL_UNROLL
      for (int k = 0; k < K; ++k) {
        if (used(k)) raise_maxima(m, pack[k]);
      }
      return largest(m);
    }
  }

  KOKKOS_INLINE_FUNCTION void subtract(A value) {
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) Impl::subtract(pack[k], value);
  }

  KOKKOS_INLINE_FUNCTION bool has_nan() const {
    bool any = false;
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) any |= Impl::has_nan(pack[k]);
    return any;
  }

  /// Adds exp(pack - reference).
  template <Leaves leaves, SumFor use, class Math, class Used = AllPacks>
  KOKKOS_INLINE_FUNCTION void add_exponentials(const Math& math, const ExpReference<A>& reference,
                                               PackSums<Math, V>& sums, const Used& used = {}) {
    // Hardly ever, so not in the loop below.
    constexpr bool subtracts = leaves != Leaves::logits;
    constexpr bool looks     = subtracts || finds_infinity<use, Math>;
    if (looks && reference.base != A(0)) {
      if (is_infinite<use, Math>(reference)) return sums.add(0, one_or_nan<A>(has_nan()));
      if constexpr (subtracts) subtract(reference.base);
    }
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; k += 2) {
      if (!used(k)) continue;
      auto parts = exponentials<leaves, use>(math, pack[k], reference);
      if (k + 1 < K && used(k + 1)) {
        const auto others = exponentials<leaves, use>(math, pack[k + 1 < K ? k + 1 : k], reference);
        for (int l = 0; l < sum_lanes_of<V>; ++l) parts[l] += others[l];
      }
      sums.add(parts);
    }
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
    store_tile<V, K>(stretch, walk, window, [&](int k) { return narrowed<T>(pack[k], finish); });
  }

  /// Stores value(x, its column) of a tile that starts at column `start`.
  template <class Stretch, class F>
  KOKKOS_INLINE_FUNCTION void store_columns(const Stretch& stretch, std::int64_t start, const PackWalk& walk,
                                            const Window& window, const F& value) const {
    using T = typename Stretch::value_type;
    store_tile<V, K>(stretch, walk, window, [&](int k) {
      Pack<T, V> result;
      for (int v = 0; v < V; ++v) result[v] = static_cast<T>(value(pack[k][v], start + walk.place(k) + v));
      return result;
    });
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

/// The tile of a row that was reduced last; where `holds`, it need not be read again to be written.
template <class A, int V, int K, bool holds>
struct LastTile {
  Tile<A, V, K> tile;
  bool is_held = false;

  /// Adds the tile's exponentials; it stays as it is but where logits are too large for references to be powers of two.
  template <SumFor use, class Math>
  KOKKOS_INLINE_FUNCTION void add_exponentials(const Math& math, const ExpReference<A>& reference,
                                               PackSums<Math, V>& sums) {
    is_held = holds && reference.base == A(0);
    tile.template add_exponentials<Leaves::differences, use>(math, reference, sums);
  }
};

/// (max, sum) of a span, loaded tile by tile.
template <SumFor use, class A, int V, int K, bool holds, class Row, class Math, class Observer>
KOKKOS_INLINE_FUNCTION typename Math::State reduce_tiles(const Row& row, const RowPart& part, const PackWalk& walk,
                                                         const Math& math, Observer& observer,
                                                         LastTile<A, V, K, holds>& last) {
  const Span& span    = part.packs;
  const int tile_size = K * walk.step;
  RunningSum<Math> running;
  for (std::int64_t t = 0; span.has_tile(t, tile_size); ++t) {
    const Window window = span.window(t, tile_size);
    auto& tile          = last.tile;
    tile.load(row.template from<V>(span.start(t, tile_size)), walk, window, math);
    show_tile<V, K>(tile, span.start(t, tile_size), walk, window, observer);
    const auto reference = running.raise(math, tile.max());
    PackSums<Math, V> sums;
    last.template add_exponentials<use>(math, reference, sums);
    running.add(sums.all_lanes());
  }
  RimElement<A, Row::has_rims> rim;
  rim.load(row, part, math);
  rim.show(part, observer);
  if (part.has_rim) {
    const auto reference = running.raise(math, rim.larger(running.reference));
    PackSums<Math, V> sums;
    rim.template add_exponential<false, use>(math, reference, sums);
    running.add(sums.all_lanes());
  }
  return running.state();
}

/// f(start, window) for each tile of a span that is read a second time: on a GPU last tile first, as what was read last
/// may still be in a cache; a host's prefetching wants to go forward (4096 x 4096 f32 on two cores: backward half as
/// fast).
template <bool backward = (native_lanes() > 1), class F>
KOKKOS_INLINE_FUNCTION void for_tiles_again(const Span& span, int tile_size, const F& f) {
  const std::int64_t tiles = span.tiles(tile_size);
  for (std::int64_t i = 0; i < tiles; ++i) {
    const std::int64_t t = backward ? tiles - 1 - i : i;
    f(span.start(t, tile_size), span.window(t, tile_size));
  }
}

/// f(start, window, tile of logits) for each tile of a part that was reduced before; `last` is what is left of that.
template <class A, int V, int K, bool holds, class Row, class Math, class F>
KOKKOS_INLINE_FUNCTION void for_logits_again(const Row& row, const RowPart& part, const PackWalk& walk,
                                             const Math& math, const LastTile<A, V, K, holds>& last, const F& f) {
  LastTile<A, V, K, holds> current = last;
  constexpr bool backward          = holds || native_lanes() > 1;
  for_tiles_again<backward>(part.packs, K * walk.step, [&](std::int64_t start, const Window& window) {
    if (!current.is_held) current.tile.load(row.template from<V>(start), walk, window, math);
    current.is_held = false;
    f(start, window, current.tile);
  });
}

/// Stores value(x - base, its column) of a part that was reduced before.
template <class A, int V, int K, bool holds, class Row, class SinkRow, class Math, class F>
KOKKOS_INLINE_FUNCTION void rewrite_columns(const Row& row, const SinkRow& sink, const RowPart& part,
                                            const PackWalk& walk, const Math& math,
                                            const LastTile<A, V, K, holds>& last, A base, const F& value) {
  RimElement<A, Row::has_rims> rim;
  rim.load(row, part, math);
  rim.store(sink, part, [&](A x) { return value(x - base, part.rim); });
  for_logits_again(row, part, walk, math, last, [&](std::int64_t start, const Window& window, Tile<A, V, K>& tile) {
    if (base != A(0)) tile.subtract(base);
    // What else is in the cache is rows that will be read again.
    tile.store_columns(streamed(sink.template from<V>(start)), start, walk, window, value);
  });
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_PRIMITIVES_TILE_HPP
