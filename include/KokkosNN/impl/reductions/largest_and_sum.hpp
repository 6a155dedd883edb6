// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_REDUCTIONS_LARGEST_AND_SUM_HPP
#define KOKKOSNN_IMPL_REDUCTIONS_LARGEST_AND_SUM_HPP

#include <KokkosNN/impl/gpu/device/pack_arithmetic.hpp>
#include <KokkosNN/impl/math/exp.hpp>
#include <KokkosNN/impl/reductions/reduced_state.hpp>
#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

// The largest element of a row and the sum of exponentials relative to it, for results whose largest one has to be
// known: RowState of the softmax family has a power of two near the largest element instead.

namespace KokkosNN::Impl {

/// Params::own has the exponential `exp`, and `sign`, which elements are multiplied by.
template <class A>
struct LargestAndSum {
  using W = WideOf<A>;

  A largest = -Kokkos::Experimental::infinity_v<A>;
  W sum     = {};

  /// exp(scale (x - largest)), of elements up to the largest one.
  template <class Exp>
  KOKKOS_FORCEINLINE_FUNCTION static A exponential(const Exp& exp, A x, A largest) {
    return exp.of_difference(x - largest, exp.at(A(0)));
  }

  /// A sum relative to `from` as one relative to `to`, which is not below. Without a number in it, it stays 0 or NaN.
  template <class Exp>
  KOKKOS_INLINE_FUNCTION static W rescaled(const Exp& exp, const W& sum, A from, A to) {
    return from == -Kokkos::Experimental::infinity_v<A> ? sum : sum * exponential(exp, from, to);
  }

  /// As Sums::add, of the first row input of one row.
  template <class, int V, int L, class Params, class Scalars, class ForPacks>
  KOKKOS_INLINE_FUNCTION static void add(ReducedState<LargestAndSum> (&states)[L], const Params& params,
                                         const Scalars (&)[L], std::int64_t, const ForPacks& for_packs) {
    static_assert(L == 1);
    Pack<A, V> largest_of = filled<A, V>(states[0].largest);
    for_packs([&](const auto& x, const auto&, auto valid) {
      for (int v = 0; v < V; ++v) {
        const A logit = v < valid ? params.sign * x[0][v] : -Kokkos::Experimental::infinity_v<A>;
        largest_of[v] = max_ignoring_nan(largest_of[v], logit);
      }
    });
    A largest = largest_of[0];
    for (int v = 1; v < V; ++v) largest = max_ignoring_nan(largest, largest_of[v]);
    const A base = finite_reference(largest);
    W sum        = rescaled(params.exp, states[0].sum, states[0].largest, largest);
    for_packs([&](const auto& x, const auto&, auto valid) {
      Pack<A, V> exponentials;
      for (int v = 0; v < V; ++v) {
        const A logit   = v < valid ? params.sign * x[0][v] : -Kokkos::Experimental::infinity_v<A>;
        exponentials[v] = exponential(params.exp, logit, base);
      }
      sum = sum + W{folded<1>(exponentials)[0]};
    });
    states[0] = {{largest, sum}};
  }
};

template <bool = false, class Params, class A>
KOKKOS_INLINE_FUNCTION ReducedState<LargestAndSum<A>> merge_lanes(const Params& params,
                                                                  const ReducedState<LargestAndSum<A>>& mine,
                                                                  int lanes) {
  const A largest = reduce_lanes(mine.largest, 1, lanes, MaxJoin{});
  const auto sum  = LargestAndSum<A>::rescaled(params.own.exp, mine.sum, mine.largest, largest);
  return {{largest, reduce_lanes(sum, 1, lanes, SumJoin{})}};
}

template <bool = false, class Params, class A>
KOKKOS_INLINE_FUNCTION ReducedState<LargestAndSum<A>> merge_warp(const Params& params,
                                                                 const ReducedState<LargestAndSum<A>>& mine,
                                                                 int lanes) {
  return merge_lanes(params, mine, lanes);
}

template <class Params, class A>
KOKKOS_INLINE_FUNCTION ReducedState<LargestAndSum<A>> merge_two(const Params& params,
                                                                const ReducedState<LargestAndSum<A>>& a,
                                                                const ReducedState<LargestAndSum<A>>& b) {
  const A largest = a.largest > b.largest ? a.largest : b.largest;
  const auto of   = [&](const LargestAndSum<A>& part) {
    return LargestAndSum<A>::rescaled(params.own.exp, part.sum, part.largest, largest);
  };
  return {{largest, of(a) + of(b)}};
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_REDUCTIONS_LARGEST_AND_SUM_HPP
