// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_REDUCTIONS_MOMENTS_HPP
#define KOKKOSNN_IMPL_REDUCTIONS_MOMENTS_HPP

#include <KokkosNN/impl/host/vector.hpp>
#include <KokkosNN/impl/gpu/device/pack_arithmetic.hpp>
#include <KokkosNN/impl/reductions/reduced_state.hpp>
#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

// Mean and variance of a row without cancellation: what a thread holds around its own mean, parts joined by the formula
// of Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979.

namespace KokkosNN::Impl {

/// b - a
KOKKOS_INLINE_FUNCTION double difference_of(double b, double a) { return b - a; }
KOKKOS_INLINE_FUNCTION double difference_of(const DoubleDouble<double>& b, const DoubleDouble<double>& a) {
  return (b.high - a.high) + (b.low - a.low);
}

/// The elements' number, mean, and sum of squares of their distances from it.
template <class A>
struct Moments {
  using W = WideOf<A>;

  double count = 0;
  W mean       = {};
  W squares    = {};

  /// The mean as two words: what is left of elements near a large mean is as good as the elements.
  KOKKOS_INLINE_FUNCTION DoubleDouble<A> mean_words() const { return split_sum<A>(mean); }
  KOKKOS_INLINE_FUNCTION A variance() const {
    const A sum = static_cast<A>(rounded(squares));
    return (sum < A(0) ? A(0) : sum) / static_cast<A>(count);  // a NaN stays
  }

  KOKKOS_INLINE_FUNCTION static Moments joined(const Moments& one, const Moments& other) {
    if (one.count == 0) return other;
    if (other.count == 0) return one;
    // Sums do not depend on which comes first; the larger part's mean moves least, and so do its roundings.
    const bool in_order =
        one.count != other.count ? one.count > other.count : !(difference_of(other.mean, one.mean) < 0);
    const Moments& a   = in_order ? one : other;
    const Moments& b   = in_order ? other : one;
    const double count = a.count + b.count;
    const double part  = b.count / count;
    const double delta = difference_of(b.mean, a.mean);
    // Roundings that are named: compilers fuse a product and a sum in one place and not in another.
    const double step    = rounded_product(delta, part);
    const double squares = rounded_product(delta * delta, a.count * part);
    return {count, a.mean + W{step}, (a.squares + b.squares) + W{squares}};
  }

  /// As Sums::add, of the first row input; `count` elements of each row.
  template <class, int V, int L, class Params, class Scalars, class ForPacks>
  KOKKOS_INLINE_FUNCTION static void add(ReducedState<Moments> (&states)[L], const Params&, const Scalars (&)[L],
                                         std::int64_t count, const ForPacks& for_packs) {
    if (count == 0) return;
    // Relative to the first element sums of equal elements are 0, and the mean is exact.
    Pack<A, L> first = filled<A, L>(A(0));
    bool is_first    = true;
    auto lanes       = filled<A, V>(A(0));
    for_packs([&](const auto& x, const auto&, auto valid) {
      if (is_first) {
        for (int l = 0; l < L; ++l) first[l] = x[0][l];
      }
      is_first = false;
      for (int v = 0; v < V; ++v) lanes[v] += v < valid ? x[0][v] - first[v % L] : A(0);
    });
    Pack<A, L> mean;
    const auto sum = folded<L>(lanes);
    for (int l = 0; l < L; ++l) mean[l] = first[l] + sum[l] / static_cast<A>(count);

    auto squares = filled<A, V>(A(0));
    auto rest    = filled<A, V>(A(0));  // of what rounding the mean has lost
    for_packs([&](const auto& x, const auto&, auto valid) {
      for (int v = 0; v < V; ++v) {
        const A distance = v < valid ? x[0][v] - mean[v % L] : A(0);
        squares[v]       = multiply_add(distance, distance, squares[v]);
        rest[v] += distance;
      }
    });
    const auto all_squares = folded<L>(squares);
    const auto all_rest    = folded<L>(rest);
    for (int l = 0; l < L; ++l) {
      const A shift = all_rest[l] / static_cast<A>(count);
      const Moments held{static_cast<double>(count), W{mean[l]} + W{shift},
                         W{multiply_add(-all_rest[l], shift, all_squares[l])}};
      states[l] = {joined(states[l], held)};
    }
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_REDUCTIONS_MOMENTS_HPP
