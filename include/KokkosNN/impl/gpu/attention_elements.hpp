// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_ATTENTION_ELEMENTS_HPP
#define KOKKOSNN_IMPL_GPU_ATTENTION_ELEMENTS_HPP

#include <KokkosNN/impl/gpu/device/barriers.hpp>
#include <KokkosNN/impl/inputs/attention_tensors.hpp>
#include <KokkosNN/impl/math/exp.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

// Logits of a tile of scores under a mask that looks at single ones. Each part of the mask is a pass over a thread's
// scores, so that what a call has is asked once a tile, and loads of many scores are in flight at once.
//
// Lines of a tile are a thread's scores of one row of scores: rows of the tile, or columns where its rows are keys.
// lines(f) calls f(entry, each) for them; each(g) calls g(score, key in the tile), and entry.elements is the row's part
// of the mask. All lines have the same keys of the tile.

namespace KokkosNN::Impl {

/// Logits are in powers of two.
template <class X, class A>
struct TileElements {
  const ScoreElements<X, A>& elements;
  std::int64_t first;  ///< key of the tile's begin
  std::int64_t keys;   ///< that the sequence has: others are not read

  /// Turns products of queries and keys into logits. all(f) calls f(score, more...) for all scores; behind a softcap
  /// capped(its hyperbolic tangent, more...) is called for each.
  template <class Scores, class Lines, class Capped>
  KOKKOS_FORCEINLINE_FUNCTION void to_logits(A factor, const Scores& all, const Lines& lines,
                                             const Capped& capped) const {
    scale(factor, all, capped);
    if (elements.bias.exists()) add_bias(lines);
    if (elements.slopes.exists()) add_slopes(lines);
    if (elements.keep != nullptr) rule_out(lines);
  }

  // --- its steps ---

  template <class Scores, class Capped>
  KOKKOS_FORCEINLINE_FUNCTION void scale(A scale, const Scores& all, const Capped& capped) const {
    if (elements.softcap != A(0)) {
      const A factor = scale * elements.inverse_softcap, cap = elements.softcap * log2_of_e<A>;
      all([&](A& score, auto&... more) {
        const A t = bounded_tanh(score * factor);
        capped(t, more...);
        score = cap * t;
      });
    } else {
      const A factor = scale * log2_of_e<A>;
      all([&](A& score, auto&...) { score *= factor; });
    }
  }
  template <class Lines>
  KOKKOS_FORCEINLINE_FUNCTION void add_bias(const Lines& lines) const {
    elements.bias.visit([&](const auto* bias) {
      if (elements.bias_strides.dim == 1) {
        add_bias<true>(bias, lines);
      } else {
        add_bias<false>(bias, lines);
      }
    });
  }
  template <class Lines>
  KOKKOS_FORCEINLINE_FUNCTION void add_slopes(const Lines& lines) const {
    lines([&](const auto& entry, const auto& each) {
      const A diagonal = static_cast<A>(entry.elements.diagonal - first);
      const A slope    = -entry.elements.slope * log2_of_e<A>;
      each([&](A& score, int key) {
        score = fused_multiply_add(slope, Kokkos::abs(diagonal - static_cast<A>(key)), score);
      });
    });
  }
  template <class Lines>
  KOKKOS_FORCEINLINE_FUNCTION void rule_out(const Lines& lines) const {
    const std::int64_t stride = elements.keep_strides.dim;
    for_existing(lines, [&](const auto& row, const auto& each) {
      const std::uint8_t* const of_row = opaque(elements.keep + row.keep + first * stride);
      each([&](A& score, int key) {
        if (of_row[key * stride] == 0) score = -Kokkos::Experimental::infinity_v<A>;
      });
    });
  }

 private:
  template <bool is_contiguous, class B, class Lines>
  KOKKOS_FORCEINLINE_FUNCTION void add_bias(const B* bias, const Lines& lines) const {
    const std::int64_t stride = is_contiguous ? 1 : elements.bias_strides.dim;
    for_existing(lines, [&](const auto& row, const auto& each) {
      const B* const of_row = opaque(bias + row.bias + first * stride);
      each([&](A& score, int key) {
        score = fused_multiply_add(static_cast<A>(of_row[key * stride]), log2_of_e<A>, score);
      });
    });
  }

  /// Calls f(row, each) for lines whose rows exist, and of these for keys that the sequence has.
  template <class Lines, class F>
  KOKKOS_FORCEINLINE_FUNCTION void for_existing(const Lines& lines, const F& f) const {
    const int left = static_cast<int>(Kokkos::min<std::int64_t>(keys - first, 1 << 20));  // more than a tile has
    lines([&](const auto& entry, const auto& each) {
      if (entry.begin >= entry.end) return;  // its place in the mask is none
      f(entry.elements, [&](const auto& g) {
        each([&](A& score, int key) {
          if (key < left) g(score, key);
        });
      });
      each([](A& score, int) { score = opaque(score); });  // or the loads of all lines would be in flight, and spill
    });
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_ATTENTION_ELEMENTS_HPP
