// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_DEVICE_PAIR_TILE_HPP
#define KOKKOSNN_IMPL_GPU_DEVICE_PAIR_TILE_HPP

#include <KokkosNN/impl/gpu/device/running_tiles.hpp>
#include <KokkosNN/impl/gpu/device/tile.hpp>
#include <KokkosNN/impl/inputs/pairs.hpp>
#include <KokkosNN/impl/inputs/rows.hpp>
#include <KokkosNN/impl/operators/softmax_backward.hpp>
#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

// Tiles of a gradient: packs of y and dy as they were loaded, and sums of their terms. Elements are converted when they
// are used: nothing computed from them is worth keeping.

namespace KokkosNN::Impl {

/// Pack as it was loaded. A GPU's compilers would give each 16-bit element a register of its own, and keep it converted
/// from its first use to its last; so packs are loaded and kept in words, and `show_again` hides from compilers that it
/// shows equal numbers: it applies xor with a zero that is known at run time only.
///   16384 elements of 16 bits | no byte spilled | without xor 124 bytes spilled
template <class T, int V>
class HeldPack {
  static constexpr bool in_words = warp_width() > 1 && sizeof(T) == 2 && V > 1;
  using Held                     = std::conditional_t<in_words, Pack<std::uint32_t, (V + 1) / 2>, Pack<T, V>>;

 public:
  /// Loads a pack, which on a GPU must be aligned. A host's compiler would copy a pack as a whole in narrower moves
  /// than those that read it next, which stalls them.
  KOKKOS_INLINE_FUNCTION void load(const T* from, [[maybe_unused]] LinePolicy policy) {
    KOKKOS_IF_ON_DEVICE((m_held = load_at_once(reinterpret_cast<const Held*>(from), policy);))
    KOKKOS_IF_ON_HOST((for (int v = 0; v < V; ++v) m_held[v] = from[v];))
  }
  /// Loads a pack of a row that is in team scratch.
  template <class Columns>
  KOKKOS_INLINE_FUNCTION void load(const Columns& columns_from, int place) {
    m_held = columns_from.template load_as<Held>(place);
  }
  KOKKOS_INLINE_FUNCTION void clear() { m_held = Held{}; }
  /// Sets elements that a mask does not allow to 0, or, being logarithms, to -inf.
  template <bool are_logarithms>
  KOKKOS_INLINE_FUNCTION void keep_where(const bool (&allows)[V]) {
    if constexpr (in_words) {
      std::uint32_t low = 0;
      if constexpr (are_logarithms) low = Kokkos::bit_cast<std::uint16_t>(minus_infinity());
      const std::uint32_t high = low << 16;
      for (int w = 0; w < V / 2; ++w) {
        if (!allows[2 * w]) m_held[w] = (m_held[w] & 0xffff0000u) | low;
        if (!allows[2 * w + 1]) m_held[w] = (m_held[w] & 0x0000ffffu) | high;
      }
    } else {
      for (int v = 0; v < V; ++v) {
        if (!allows[v]) m_held[v] = are_logarithms ? minus_infinity() : T(0);
      }
    }
  }
  KOKKOS_INLINE_FUNCTION void hold(const Pack<T, V>& pack) { m_held = Kokkos::bit_cast<Held>(pack); }
  /// Adds another pack in A; the sum is rounded to the elements' type.
  template <class A>
  KOKKOS_INLINE_FUNCTION void add(const HeldPack& other) {
    Pack<T, V> sum;
    show([&](const Pack<T, V>& a) {
      other.show([&](const Pack<T, V>& b) {
        for (int v = 0; v < V; ++v) sum[v] = static_cast<T>(static_cast<A>(a[v]) + static_cast<A>(b[v]));
      });
    });
    hold(sum);
  }

  /// Calls f(the pack) once more, with values that compilers do not know to be those of `show`.
  template <class F>
  KOKKOS_INLINE_FUNCTION void show_again([[maybe_unused]] std::uint32_t zero, const F& f) const {
    if constexpr (in_words) {
      Held words;
      for (int i = 0; i < Held::size; ++i) words[i] = m_held[i] ^ zero;
      f(Kokkos::bit_cast<Pack<T, V>>(words));
    } else {
      f(m_held);
    }
  }

  /// Calls f(the pack).
  template <class F>
  KOKKOS_INLINE_FUNCTION void show(const F& f) const {
    if constexpr (in_words) {
      f(Kokkos::bit_cast<Pack<T, V>>(m_held));
    } else {
      f(m_held);
    }
  }

 private:
  KOKKOS_INLINE_FUNCTION static T minus_infinity() {
    return static_cast<T>(-Kokkos::Experimental::infinity_v<accumulator_t<T>>);
  }

  Held m_held;
};

/// K packs as they were loaded.
template <class T, int V, int K>
struct HeldTile {
  HeldPack<T, V> pack[K];

  template <class Columns>
  KOKKOS_INLINE_FUNCTION void load(const Columns& columns_from, const PackPositions& positions,
                                   const TileBounds& window) {
    KOKKOS_IF_ON_DEVICE((load_on_device(columns_from, positions, window);))
    KOKKOS_IF_ON_HOST((load_on_host(columns_from, positions, window);))
  }

 private:
  /// Loads on a GPU: one decision for the tile instead of one a pack, where rows allow it, which is almost always.
  template <class Columns>
  KOKKOS_INLINE_FUNCTION void load_on_device(const Columns& columns_from, const PackPositions& positions,
                                             const TileBounds& window) {
    if (Columns::always_whole || columns_from.template moves_whole_tiles<V>(window)) {
      KOKKOSNN_IMPL_UNROLL
      for (int k = 0; k < K; ++k) {
        pack[k].clear();
        if (positions.place(k) < window.end) pack[k].load(columns_from, positions.place(k));
      }
    } else {
      KOKKOSNN_IMPL_UNROLL
      for (int k = 0; k < K; ++k) pack[k].hold(columns_from.template load_pack<V>(positions.place(k), window, T(0)));
    }
  }

  template <class Columns>
  KOKKOS_INLINE_FUNCTION void load_on_host(const Columns& columns_from, const PackPositions& positions,
                                           const TileBounds& window) {
    for (int k = 0; k < K; ++k) {
      const int c = positions.place(k);
      if (columns_from.whole_packs && window.template has_pack<V>(c)) {
        pack[k].load(columns_from.base + c, columns_from.policy);
      } else {
        pack[k].hold(columns_from.template load_pack<V>(c, window, T(0)));
      }
    }
  }
};

/// Lanes of sums of terms of either sign. In `full` no rounding is lost: a sum starts so far above its terms that one
/// subtraction finds the rounding error of an addition (Dekker's fast two-sum): three instructions more. Products are
/// rounded only in that sum. A host adds floats in double instead, where their products are exact.
template <class Params, int lanes>
struct TermSums {
  using A                         = typename Params::accumulator;
  using W                         = typename Params::wide_sum;
  static constexpr bool is_full   = Params::accuracy == ExpAccuracy::full;
  static constexpr bool in_double = is_full && std::is_same_v<A, float> && warp_width() == 1;
  static constexpr bool two_words = is_full && !in_double;
  using Term                      = std::conditional_t<in_double, double, A>;
  static constexpr int most_terms = 32;  // of a lane

  Pack<Term, lanes> start = filled<Term, lanes>(Term(0));
  Pack<Term, lanes> sum   = filled<Term, lanes>(Term(0));
  Pack<Term, lanes> low   = filled<Term, lanes>(Term(0));  // stays 0 without two words

  /// Makes sums of one term a lane.
  TermSums() = default;
  /// Makes sums of terms up to `largest`. Near an overflow roundings are lost.
  KOKKOS_INLINE_FUNCTION explicit TermSums(const Pack<Term, lanes>& largest) {
    constexpr Term limit = Kokkos::Experimental::finite_max_v<Term> / (4 * most_terms);
    for (int l = 0; l < lanes; ++l) {
      start[l] = largest[l] < limit ? 2 * most_terms * largest[l] : Term(0);
      sum[l]   = start[l];
    }
  }

  KOKKOS_INLINE_FUNCTION void add(int l, Term term) {
    const Term s = sum[l] + term;
    if constexpr (two_words) low[l] += term - (s - sum[l]);
    sum[l] = s;
  }

  KOKKOS_INLINE_FUNCTION void add_product(int l, Term a, Term b) {
    if constexpr (two_words && !has_fma) {
      const Term product = a * b;
      low[l] += product_error(a, b, product);
      return add(l, product);
    }
    const Term s = multiply_add(a, b, sum[l]);
    if constexpr (two_words) low[l] += fused_multiply_add(a, b, -(s - sum[l]));
    sum[l] = s;
  }

  /// Sum of a lane. Next to an infinite sum the low word is NaN, and is dropped.
  KOKKOS_INLINE_FUNCTION W lane(int l) const { return W{sum[l] - start[l]} + (low[l] == low[l] ? W{low[l]} : W{}); }

  KOKKOS_INLINE_FUNCTION W all_lanes() const {
    Pack<W, lanes> all;
    for (int l = 0; l < lanes; ++l) all[l] = lane(l);
    return folded<1>(all)[0];
  }
};

/// Adds a pack of products a b, or of terms b alone. Without a second word several terms are added at a time, in loops
/// that a host's compiler vectorises.
template <int lanes, class Params, class A, class B, int V>
KOKKOS_INLINE_FUNCTION void add_pack(TermSums<Params, lanes>& sums, const Pack<A, V>& a, const Pack<B, V>& b) {
  using Wide = typename Params::accumulator;
  using Term = typename TermSums<Params, lanes>::Term;
  if constexpr (TermSums<Params, lanes>::two_words) {
    for (int v = 0; v < V; ++v) {
      if constexpr (Params::sums_products) {
        sums.add_product(v % lanes, static_cast<Wide>(a[v]), static_cast<Wide>(b[v]));
      } else {
        sums.add(v % lanes, static_cast<Wide>(b[v]));
      }
    }
  } else {
    Pack<Term, V> terms;
    for (int v = 0; v < V; ++v) terms[v] = static_cast<Term>(static_cast<Wide>(b[v]));
    if constexpr (Params::sums_products) {
      for (int v = 0; v < V; ++v) terms[v] *= static_cast<Term>(static_cast<Wide>(a[v]));
    }
    const auto parts = folded<lanes>(terms);
    for (int l = 0; l < lanes; ++l) sums.add(l, parts[l]);
  }
}

/// Raises each lane's largest magnitude of a term.
template <class Params, int lanes, class Term, class A, class B, int V>
KOKKOS_INLINE_FUNCTION void raise_largest(Pack<Term, lanes>& largest, const Pack<A, V>& a, const Pack<B, V>& b) {
  for (int v = 0; v < V; ++v) {
    Term term = static_cast<Term>(b[v]);
    if constexpr (Params::sums_products) term *= static_cast<Term>(a[v]);
    largest[v % lanes] = max_ignoring_nan(largest[v % lanes], Kokkos::abs(term));
  }
}

/// Sums of K pairs of packs; for_packs(f) calls f(y, dy) for each.
template <class Params, int lanes, class ForPacks>
KOKKOS_INLINE_FUNCTION TermSums<Params, lanes> sums_of_packs(const ForPacks& for_packs) {
  using Sums = TermSums<Params, lanes>;
  using Term = typename Sums::Term;
  Sums sums;
  if constexpr (Sums::two_words) {
    auto largest = filled<Term, lanes>(Term(0));
    for_packs([&](const auto& y, const auto& dy) { raise_largest<Params>(largest, y, dy); });
    sums = Sums(largest);
  }
  for_packs([&](const auto& y, const auto& dy) { add_pack(sums, y, dy); });
  return sums;
}

/// Sums of K pairs of held packs; y is read only if the terms need it.
template <class Params, int lanes, class Y, class D, int V, int K>
KOKKOS_INLINE_FUNCTION TermSums<Params, lanes> sums_of_held(const HeldPack<Y, V> (&y)[K],
                                                            const HeldPack<D, V> (&dy)[K]) {
  static_assert(!TermSums<Params, lanes>::two_words || K * V / lanes <= TermSums<Params, lanes>::most_terms);
  return sums_of_packs<Params, lanes>([&](const auto& f) {
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) {
      dy[k].show([&](const Pack<D, V>& gradient) {
        if constexpr (Params::sums_products) {
          y[k].show([&](const Pack<Y, V>& value) { f(value, gradient); });
        } else {
          f(gradient, gradient);
        }
      });
    }
  });
}

/// K packs of y and of dy.
template <class Y, class D, int V, int K>
struct PairTile {
  HeldTile<Y, V, K> y;
  HeldTile<D, V, K> dy;

  template <class Row>
  KOKKOS_INLINE_FUNCTION void load(const Row& row, std::int64_t start, const PackPositions& positions,
                                   const TileBounds& window) {
    y.load(row.y.template from<V>(start), positions, window);
    dy.load(row.dy.template from<V>(start), positions, window);
    if constexpr (Row::masks_pairs) {
      KOKKOSNN_IMPL_UNROLL
      for (int k = 0; k < K; ++k) row.mask(y.pack[k], dy.pack[k], start, positions.place(k));
    }
  }

  /// Loads what a sum of dy alone reads.
  template <class Row>
  KOKKOS_INLINE_FUNCTION void load_gradient(const Row& row, std::int64_t start, const PackPositions& positions,
                                            const TileBounds& window) {
    dy.load(row.dy.template from<V>(start), positions, window);
    if constexpr (Row::masks_pairs) {
      KOKKOSNN_IMPL_UNROLL
      for (int k = 0; k < K; ++k) row.mask_gradient(dy.pack[k], start, positions.place(k));
    }
  }

  template <class Params>
  KOKKOS_INLINE_FUNCTION typename Params::wide_sum sum() const {
    return sums_of_held<Params, sum_lanes_of<V>>(y.pack, dy.pack).all_lanes();
  }

  /// Stores results; `row` is the row that was loaded, from column `start` on.
  template <class Row, class OutputRow, class Params, class RowEpilogue>
  KOKKOS_INLINE_FUNCTION void store(const Row& row, const OutputRow& output, std::int64_t start,
                                    const PackPositions& positions, const TileBounds& window, const Params& params,
                                    const RowEpilogue& epilogue) const {
    using A = typename Params::accumulator;
    using T = typename OutputRow::value_type;
    store_tile<V, K>(output.template from<V>(start), positions, window, [&](int k) {
      Pack<A, V> wide;
      y.pack[k].show_again(params.zero, [&](const Pack<Y, V>& value) {
        dy.pack[k].show_again(params.zero, [&](const Pack<D, V>& gradient) {
          for (int v = 0; v < V; ++v) wide[v] = epilogue(params, static_cast<A>(value[v]), static_cast<A>(gradient[v]));
        });
      });
      if constexpr (Row::masks_pairs) row.chain(wide, start, positions.place(k));
      return narrowed<T>(wide, [](A value) { return value; });
    });
  }
};

/// Element of y's and of dy's edges that this thread has.
template <class Y, class D, bool exists>
struct EdgePair {
  template <class Row>
  KOKKOS_INLINE_FUNCTION void load(const Row&, const RowPart&) {}
  /// Adds the term of this element to `sum`.
  template <class Params, class W>
  KOKKOS_INLINE_FUNCTION W added_to(W sum) const {
    return sum;
  }
  template <class OutputRow, class Params, class RowEpilogue>
  KOKKOS_INLINE_FUNCTION void store(const OutputRow&, const RowPart&, const Params&, const RowEpilogue&) const {}
};

template <class Y, class D>
struct EdgePair<Y, D, true> {
  Y y;
  D dy;

  template <class Row>
  KOKKOS_INLINE_FUNCTION void load(const Row& row, const RowPart& part) {
    y  = part.has_edge ? row.y.load_one(part.edge) : Y(0);
    dy = part.has_edge ? row.dy.load_one(part.edge) : D(0);
  }

  template <class Params, class W>
  KOKKOS_INLINE_FUNCTION W added_to(W sum) const {
    using A = typename Params::accumulator;
    TermSums<Params, 1> term;
    if constexpr (Params::sums_products) {
      term.add_product(0, static_cast<A>(y), static_cast<A>(dy));
    } else {
      term.add(0, static_cast<A>(dy));
    }
    return sum + W(term.all_lanes());
  }

  template <class OutputRow, class Params, class RowEpilogue>
  KOKKOS_INLINE_FUNCTION void store(const OutputRow& output, const RowPart& part, const Params& params,
                                    const RowEpilogue& epilogue) const {
    using A = typename Params::accumulator;
    using T = typename OutputRow::value_type;
    if (part.has_edge)
      output.store_one(static_cast<T>(epilogue(params, static_cast<A>(y), static_cast<A>(dy))), part.edge);
  }
};

/// Sum of a row over many tiles: wider than float, as tiles may be very many.
template <class Params>
using RunningTerms = typename RunningSum<Params>::Sum;

/// Sum of a part, loaded tile by tile; y is loaded only if the terms need it.
template <class Y, class D, int V, int K, class Row, class Params>
KOKKOS_INLINE_FUNCTION typename Params::State sum_tiles(const Row& row, const RowPart& part,
                                                        const PackPositions& positions, const Params&) {
  const ColumnRange& span = part.packs;
  const int tile_size     = K * positions.step;
  EdgePair<Y, D, Row::has_edges> edge;
  edge.load(row, part);
  RunningTerms<Params> sum = edge.template added_to<Params>(RunningTerms<Params>{});
  for (std::int64_t t = 0; span.has_tile(t, tile_size); ++t) {
    PairTile<Y, D, V, K> tile;
    const std::int64_t start = span.start(t, tile_size);
    const TileBounds window  = span.window(t, tile_size);
    if constexpr (Params::sums_products) {
      tile.load(row, start, positions, window);
    } else {
      tile.load_gradient(row, start, positions, window);
    }
    sum = sum + RunningTerms<Params>(tile.template sum<Params>());
  }
  return {static_cast<typename Params::wide_sum>(sum)};
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_DEVICE_PAIR_TILE_HPP
