// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_DEVICE_STAGING_HPP
#define KOKKOSNN_IMPL_GPU_DEVICE_STAGING_HPP

#include <KokkosNN/impl/gpu/device/tile.hpp>
#include <KokkosNN/impl/inputs/rows.hpp>
#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <cstring>
#include <type_traits>

// Short rows of a team in team scratch, one a thread. They are copied as one range of memory, by whole packs, wherever
// each row begins, and a thread reads its row from scratch some elements at a time.

namespace KokkosNN::Impl {

/// Number of elements that a thread takes at a time.
inline constexpr int staged_at_once = 4;

/// Calls f(c, number of elements from column c on) for a row: the number is a constant, except for the last elements.
template <class F>
KOKKOS_INLINE_FUNCTION void for_staged(int cols, const F& f) {
  int c = 0;
  KOKKOSNN_IMPL_NO_UNROLL
  for (; c + staged_at_once <= cols; c += staged_at_once) f(c, std::integral_constant<int, staged_at_once>{});
  if (c < cols) f(c, cols - c);
}

/// First n elements from an address on, and `pad` behind them.
template <class A, class T>
KOKKOS_INLINE_FUNCTION Pack<A, staged_at_once> staged_elements(const T* from, int n, A pad) {
  Pack<A, staged_at_once> pack = filled<A, staged_at_once>(pad);
  KOKKOSNN_IMPL_UNROLL
  for (int i = 0; i < staged_at_once; ++i) {
    if (i < n) pack[i] = static_cast<A>(from[i]);
  }
  return pack;
}
template <class T>
KOKKOS_INLINE_FUNCTION void leave_staged(T* to, const Pack<T, staged_at_once>& pack, int n) {
  KOKKOSNN_IMPL_UNROLL
  for (int i = 0; i < staged_at_once; ++i) {
    if (i < n) to[i] = pack[i];
  }
}

/// Copies of a team's `elements` elements between memory and scratch by packs of V; both begin at a pack. The team has
/// `threads` threads; this one has number `thread`.
template <class T, int V>
struct Staging {
  static constexpr int packs_at_once = 4;
  static constexpr int pack_words    = V * int(sizeof(T)) / 4;
  using Words                        = Pack<std::uint32_t, pack_words>;

  int elements;
  int thread;
  int threads;

  /// Copies elements to scratch; `negates`: their negatives.
  KOKKOS_INLINE_FUNCTION void fetch(const T* from, T* held, LinePolicy lines, bool negates = false) const {
    const int whole = elements / V;
    for (int p = thread; p < whole; p += packs_at_once * threads) {
      Words pack[packs_at_once];
      KOKKOSNN_IMPL_UNROLL
      for (int k = 0; k < packs_at_once; ++k) {
        if (p + k * threads < whole) pack[k] = loaded(from + (p + k * threads) * V, lines);
      }
      if (negates) turn_signs(pack);
      KOKKOSNN_IMPL_UNROLL
      for (int k = 0; k < packs_at_once; ++k) {
        if (p + k * threads < whole) keep(held + (p + k * threads) * V, pack[k]);
      }
    }
    const int rest = whole * V + thread;  // only the last team's rows end within a pack
    if (rest < elements) held[rest] = negates ? static_cast<T>(-from[rest]) : from[rest];
  }

  KOKKOS_INLINE_FUNCTION void put(T* to, const T* held) const {
    const int whole = elements / V;
    for (int p = thread; p < whole; p += threads) store(to + p * V, held + p * V);
    const int rest = whole * V + thread;
    if (rest < elements) to[rest] = held[rest];
  }

 private:
  /// Loads a whole pack from memory, writes it to scratch, and stores it from there to memory. A host moves bytes,
  /// which may be anything.
  KOKKOS_INLINE_FUNCTION static Words loaded(const T* from, [[maybe_unused]] LinePolicy lines) {
    KOKKOS_IF_ON_DEVICE((return load_at_once(reinterpret_cast<const Words*>(from), lines);))
    KOKKOS_IF_ON_HOST((Words words; std::memcpy(&words, from, sizeof words); return words;))
  }
  KOKKOS_INLINE_FUNCTION static void keep(T* held, const Words& words) {
    KOKKOS_IF_ON_DEVICE((*reinterpret_cast<Words*>(held) = words;))
    KOKKOS_IF_ON_HOST((std::memcpy(held, &words, sizeof words);))
  }
  KOKKOS_INLINE_FUNCTION static void store(T* to, const T* held) {
    // A copy: through the reference nvcc would load it byte by byte.
    KOKKOS_IF_ON_DEVICE((const Words words = *reinterpret_cast<const Words*>(held);
                         store_at_once(reinterpret_cast<Words*>(to), words);))
    KOKKOS_IF_ON_HOST((std::memcpy(to, held, sizeof(Words));))
  }

  KOKKOS_INLINE_FUNCTION static void turn_signs(Words (&pack)[packs_at_once]) {
    constexpr int words_each = sizeof(T) == 8 ? 2 : 1;  // the last one has the sign
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < packs_at_once; ++k) {
      for (int w = words_each - 1; w < pack_words; w += words_each) {
        pack[k][w] ^= sizeof(T) == 2 ? signs_of_word : 0x80000000u;
      }
    }
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_DEVICE_STAGING_HPP
