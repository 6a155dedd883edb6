// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_REDUCTIONS_SUMS_HPP
#define KOKKOSNN_IMPL_REDUCTIONS_SUMS_HPP

#include <KokkosNN/impl/gpu/device/pack_arithmetic.hpp>
#include <KokkosNN/impl/reductions/reduced_state.hpp>
#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

// Sums of terms that an operator makes of each element.

namespace KokkosNN::Impl {

/// n sums over a row: Operator::add(sum, params, scalars, x..., column operands...) adds an element's terms to sum[n].
/// Outside of a row all x are 0, and so must be the terms.
template <class A, int n>
struct Sums {
  WideOf<A> sum[n] = {};

  KOKKOS_INLINE_FUNCTION A operator[](int i) const { return static_cast<A>(rounded(sum[i])); }

  KOKKOS_INLINE_FUNCTION static Sums joined(const Sums& a, const Sums& b) {
    Sums both;
    for (int i = 0; i < n; ++i) both.sum[i] = a.sum[i] + b.sum[i];
    return both;
  }

  /// Adds what a thread holds to the states of L rows, one alone or as many as a pack has lanes. `for_packs(f)` calls
  /// f(packs of the row inputs, of the column operands, number of elements that lie in the row) for each place. Of a
  /// few dozen elements a lane, A holds the sum.
  template <class Operator, int V, int L, class Params, class Scalars, class ForPacks>
  KOKKOS_INLINE_FUNCTION static void add(ReducedState<Sums> (&states)[L], const Params& params,
                                         const Scalars (&scalars)[L], std::int64_t, const ForPacks& for_packs) {
    Pack<A, V> lanes[n];
    for (int i = 0; i < n; ++i) lanes[i] = filled<A, V>(A(0));
    for_packs([&](const auto& x, const auto& columns, auto) {
      for (int v = 0; v < V; ++v) {
        A own[n];
        for (int i = 0; i < n; ++i) own[i] = lanes[i][v];
        columns.apply(v, x, [&](auto... values) { Operator::add(own, params, scalars[v % L], values...); });
        for (int i = 0; i < n; ++i) lanes[i][v] = own[i];
      }
    });
    for (int i = 0; i < n; ++i) {
      const Pack<A, L> total = folded<L>(lanes[i]);
      for (int l = 0; l < L; ++l) states[l].sum[i] = states[l].sum[i] + WideOf<A>{total[l]};
    }
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_REDUCTIONS_SUMS_HPP
