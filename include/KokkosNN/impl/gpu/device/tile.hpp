// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_DEVICE_TILE_HPP
#define KOKKOSNN_IMPL_GPU_DEVICE_TILE_HPP

#include <KokkosNN/impl/gpu/device/exchange.hpp>
#include <KokkosNN/impl/gpu/device/pack_arithmetic.hpp>
#include <KokkosNN/impl/gpu/device/row_part.hpp>
#include <KokkosNN/impl/inputs/rows.hpp>
#include <KokkosNN/impl/reductions/exp_sum.hpp>
#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

// Tiles: the elements of a row that a thread holds at a time, and the sums over them. Loops over a pack are written so
// that a GPU compiler unrolls them into registers and a host compiler vectorises them.

namespace KokkosNN::Impl {
/// n modulo d, d < 2^16, by divisions of 32 bits: those of 64 are subroutines on a GPU.
KOKKOS_INLINE_FUNCTION std::uint32_t remainder(std::uint64_t n, std::uint32_t d) {
  const auto low  = static_cast<std::uint32_t>(n);
  const auto high = static_cast<std::uint32_t>(n >> 32);
  if ((d & (d - 1)) == 0) return low & (d - 1);
  if (high == 0) return low % d;
  const std::uint32_t two_to_32 = (0xffffffffu % d + 1) % d;
  return (high % d * two_to_32 + low % d) % d;
}

/// Offsets of a thread's packs in a tile: `first`, then every `step`.
struct PackPositions {
  int first;
  int step;
  int ahead;  // offset from here to the last lane of the warp or group

  template <int V>
  KOKKOS_INLINE_FUNCTION static PackPositions of(int rank, int size) {
    const int lanes = size < warp_width() ? size : warp_width();
    return {rank * V, size * V, (lanes - 1 - (rank & (lanes - 1))) * V};
  }
  KOKKOS_INLINE_FUNCTION int place(int k) const { return anew(first + k * step); }
  /// True if this thread has the element at an offset, which may be in any tile.
  template <int V>
  KOKKOS_INLINE_FUNCTION bool has(std::int64_t place) const {
    return remainder(static_cast<std::uint64_t>(place) / V, static_cast<std::uint32_t>(step / V)) * V ==
           static_cast<std::uint32_t>(first);
  }
  /// True if all K packs of this thread, and of the other lanes of its warp, lie in the window: a branch that no warp
  /// splits.
  template <int K>
  KOKKOS_INLINE_FUNCTION bool fills(const TileBounds& window) const {
    return place(K - 1) + ahead < window.end;
  }
};

/// Selects all of a thread's packs: those beyond the row are -inf.
struct AllPacks {
  KOKKOS_INLINE_FUNCTION constexpr bool operator()(int) const { return true; }
};

/// Selects the packs of a masked row that its warp has any element of: of most rows many are missing.
struct PacksInUse {
  int step;
  int end;  ///< offset of the row's end from the warp's first pack

  KOKKOS_INLINE_FUNCTION PacksInUse(const PackPositions& positions, const TileBounds& window, int warp)
      : step(positions.step), end(window.end - (positions.first + positions.ahead - warp)) {}
  KOKKOS_INLINE_FUNCTION bool operator()(int k) const { return k * step < end; }
};

template <int V, class Row>
KOKKOS_INLINE_FUNCTION auto packs_in_use(const PackPositions& positions, const TileBounds& window, int lanes) {
  if constexpr (Row::gives_packs && warp_width() > 1) {
    return PacksInUse(positions, window, (lanes - 1) * V);
  } else {
    return AllPacks{};
  }
}

/// Calls observer(pack, its first column, number of its elements in the row) for a tile that starts at column `start`.
template <int V, int K, class Tile, class Observer>
KOKKOS_INLINE_FUNCTION void show_tile(const Tile& tile, std::int64_t start, const PackPositions& positions,
                                      const TileBounds& window, Observer& observer) {
  if constexpr (!std::is_same_v<std::remove_const_t<Observer>, NoObserver>) {
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) {
      const int place = positions.place(k);
      if (place < window.end) observer(tile.pack[k], start + place, window.end - place);
    }
  }
}

/// Loads K packs: by inner(k, place) if all lie in the row, by whole(k, place) if each lies in the row or outside of
/// it, by part(k, place) otherwise. It decides once for the tile instead of once a pack, where rows allow it: almost
/// always.
template <int V, int K, class Columns, class Inner, class Whole, class Part>
KOKKOS_INLINE_FUNCTION void load_tile(const Columns& columns_from, const PackPositions& positions,
                                      const TileBounds& window, const Inner& inner, const Whole& whole,
                                      const Part& part) {
  const bool is_whole = Columns::always_whole || columns_from.template moves_whole_tiles<V>(window);
  if (is_whole && positions.template fills<K>(window)) {
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) inner(k, positions.place(k));
  } else if (is_whole) {
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) whole(k, positions.place(k));
  } else {
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) part(k, positions.place(k));
  }
}

/// Stores K packs; `result(k)` is the k-th.
template <int V, int K, class Columns, class Result>
KOKKOS_INLINE_FUNCTION void store_tile(const Columns& columns_from, const PackPositions& positions,
                                       const TileBounds& window, const Result& result) {
  if (Columns::always_whole || columns_from.template moves_whole_tiles<V>(window)) {
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) {
      if (positions.place(k) < window.end) columns_from.store_whole_pack(result(k), positions.place(k));
    }
  } else {
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) columns_from.template store_pack<V>(result(k), positions.place(k), window);
  }
}

/// K packs as they lie in memory. Loading is apart from computing so that all loads are in flight together.
template <class T, int V, int K>
struct RawTile {
  Pack<T, V> pack[K];

  template <class Columns>
  KOKKOS_INLINE_FUNCTION void load(const Columns& columns_from, const PackPositions& positions,
                                   const TileBounds& window, T pad) {
    load_tile<V, K>(
        columns_from, positions, window,  //
        [&](int k, int place) { pack[k] = columns_from.template load_inner_pack<V>(place); },
        [&](int k, int place) { pack[k] = columns_from.template load_whole_pack<V>(place, window, pad); },
        [&](int k, int place) { pack[k] = columns_from.template load_pack<V>(place, window, pad); });
  }
};

/// True if T is a float without its lower 16 bits.
template <class T>
inline constexpr bool is_upper_half_of_float = std::is_same_v<T, bhalf_t>;

/// Sign bits of a word of two 16-bit elements.
inline constexpr std::uint32_t signs_of_word = 0x80008000u;

/// True if one instruction finds the larger ones of two words' 16-bit elements; a NaN is never the larger one.
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

  template <class Columns, class Params>
  KOKKOS_INLINE_FUNCTION void load(const Columns& columns_from, const PackPositions& positions,
                                   const TileBounds& window, const Params& params) {
    const T pad = params.template pad<T>();
    load_tile<V, K>(
        columns_from, positions, window,  //
        [&](int k, int place) { word[k] = columns_from.template load_inner_words<V>(place); },
        [&](int k, int place) {
          word[k] = words_of(filled<T, V>(pad));
          if (place < window.end) word[k] = columns_from.template load_inner_words<V>(place);
        },
        [&](int k, int place) { word[k] = words_of(columns_from.template load_pack<V>(place, window, pad)); });
    if constexpr (Columns::masks_words) {
      KOKKOSNN_IMPL_UNROLL
      for (int k = 0; k < K; ++k) columns_from.template mask_words<V>(word[k], positions.place(k), pad);
    }
    if (params.sign < 0) {
      KOKKOSNN_IMPL_UNROLL
      for (int k = 0; k < K; ++k) {
        for (int w = 0; w < V / 2; ++w) word[k][w] ^= signs_of_word;
      }
    }
  }

  /// Largest element; by two elements at a time where there is an instruction for that.
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
      return Kokkos::fmax(larger, -Kokkos::Experimental::infinity_v<A>);  // if all are NaN
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

  /// Calls f(pack in the accumulator type A), one pack after the other.
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
  template <int pass, class A, class Columns, class F>
  KOKKOS_INLINE_FUNCTION void store(const Columns& columns_from, const PackPositions& positions,
                                    const TileBounds& window, const F& value) const {
    store_tile<V, K>(columns_from, positions, window, [&](int k) {
      Pack<A, V> pack;
      unpack<pass>(pack, k);
      return narrowed<typename Columns::value_type>(pack, value);
    });
  }

  /// Converts the k-th pack to the accumulator type. Compilers must not see that each pass over the tile has the same
  /// result, or they would keep it.
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
    // One instruction puts two bytes of the word over two zero bytes.
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

  template <class Columns, class Params>
  KOKKOS_INLINE_FUNCTION void load(const Columns& columns_from, const PackPositions& positions,
                                   const TileBounds& window, const Params& params) {
    using T                  = typename Columns::value_type;
    constexpr bool in_words  = warp_width() > 1 && sizeof(T) == 2 && V > 1;  // a GPU's registers are words
    constexpr bool is_masked = in_words && Columns::masks_words;
    if constexpr (in_words) {
      PackedTile<T, V, K> packed;
      packed.load(columns_from, positions, window, params);
      KOKKOSNN_IMPL_UNROLL
      for (int k = 0; k < K; ++k) packed.template unpack<0>(pack[k], k);
    } else {
      RawTile<T, V, K> raw;
      raw.load(columns_from, positions, window, params.template pad<T>());
      widen(raw, params.sign);
    }
    if constexpr (requires { columns_from.within(window); }) {
      adjust_packs(columns_from.within(window), positions);
    } else if constexpr (!is_masked) {
      adjust_packs(columns_from, positions);
    }
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) make_logits(params, pack[k]);
  }

  /// Turns loaded elements into logits, if the row has `adjust`: all packs at once if the row can.
  template <class Columns>
  KOKKOS_INLINE_FUNCTION void adjust_packs(const Columns& columns_from, const PackPositions& positions) {
    if constexpr (Columns::adjusts_tiles) {
      if (columns_from.adjust_tile(pack, positions)) return;
    }
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) adjust<V>(columns_from, pack[k], positions.place(k));
  }

  template <class Used = AllPacks>
  KOKKOS_INLINE_FUNCTION A max(const Used& used = {}) const {
    constexpr A none = -Kokkos::Experimental::infinity_v<A>;
    if constexpr (has_max_of_words && std::is_same_v<Used, AllPacks>) {
      // fmax of such GPUs ignores NaN on either side: only the last maximum may be NaN. Short rows show the difference.
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

  KOKKOS_INLINE_FUNCTION void make_zeros_of_positives() {
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) Impl::make_zeros_of_positives(pack[k]);
  }

  KOKKOS_INLINE_FUNCTION bool has_nan() const {
    bool any = false;
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) any |= Impl::has_nan(pack[k]);
    return any;
  }

  /// Adds exp(pack - reference).
  template <Leaves leaves, SumFor use, class Params, class Used = AllPacks>
  KOKKOS_INLINE_FUNCTION void add_exponentials(const Params& params, const ExpReference<A>& reference,
                                               PackSums<Params, V>& sums, const Used& used = {}) {
    // Rare, so not in the loop below. Packs of 16-bit types are bounded, as in PackedPlacement; others would spill.
    constexpr bool subtracts = leaves != Leaves::logits;
    constexpr bool looks     = subtracts || finds_infinity<use, Params>;
    constexpr bool bounds =
        leaves == Leaves::exponentials && finds_infinity<use, Params> && V * sizeof(A) > 16 && bounds_infinite_rows;
    if (looks && reference.base != A(0)) {
      const bool infinite = is_infinite<use, Params>(reference);
      if (infinite && !bounds) return sums.add(0, one_or_nan<A>(has_nan()));
      if constexpr (subtracts) subtract(infinite ? A(0) : reference.base);
      if constexpr (bounds) make_zeros_of_positives();
    }
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; k += 2) {
      if (!used(k)) continue;
      auto parts = exponentials<leaves, use>(params, pack[k], reference);
      if (k + 1 < K && used(k + 1)) {
        const auto others = exponentials<leaves, use>(params, pack[k + 1 < K ? k + 1 : k], reference);
        for (int l = 0; l < sum_lanes_of<V>; ++l) parts[l] += others[l];
      }
      sums.add(parts);
    }
  }

  /// Stores the epilogue of the kept values.
  template <class Columns, class Params, class RowEpilogue>
  KOKKOS_INLINE_FUNCTION void store_kept(const Columns& columns_from, const PackPositions& positions,
                                         const TileBounds& window, const Params& params, const RowEpilogue& epilogue) {
    store(columns_from, positions, window, [&](A kept) { return epilogue(params, kept); });
  }

  template <class Columns, class F>
  KOKKOS_INLINE_FUNCTION void store(const Columns& columns_from, const PackPositions& positions,
                                    const TileBounds& window, const F& epilogue) const {
    using T = typename Columns::value_type;
    store_tile<V, K>(columns_from, positions, window, [&](int k) { return narrowed<T>(pack[k], epilogue); });
  }

  /// Stores value(x, its column) of a tile that starts at column `start`.
  template <class Columns, class F>
  KOKKOS_INLINE_FUNCTION void store_columns(const Columns& columns_from, std::int64_t start,
                                            const PackPositions& positions, const TileBounds& window,
                                            const F& value) const {
    using T = typename Columns::value_type;
    store_tile<V, K>(columns_from, positions, window, [&](int k) {
      Pack<T, V> result;
      for (int v = 0; v < V; ++v) result[v] = static_cast<T>(value(pack[k][v], start + positions.place(k) + v));
      return result;
    });
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_DEVICE_TILE_HPP
