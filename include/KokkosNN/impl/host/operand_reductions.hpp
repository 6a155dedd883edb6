// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_HOST_OPERAND_REDUCTIONS_HPP
#define KOKKOSNN_IMPL_HOST_OPERAND_REDUCTIONS_HPP

#include <KokkosNN/impl/host/sums.hpp>
#include <KokkosNN/impl/host/vector_memory.hpp>
#include <KokkosNN/impl/math/exp.hpp>
#include <KokkosNN/impl/operators/soft_cross_entropy.hpp>
#include <KokkosNN/impl/reductions/moments.hpp>
#include <KokkosNN/impl/reductions/reduced_state.hpp>
#include <KokkosNN/impl/reductions/sums.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <type_traits>

// The reductions of operators (inputs/operands.hpp) over a piece of a row, in a host's vector registers. `Vectors` has
// apply(i, n, f), which calls f(x..., columns...) with the n elements from number i on.

namespace KokkosNN::Impl {

/// Joins the lanes of a vector of numbers in two words.
template <class A, class T>
KOKKOS_FORCEINLINE_FUNCTION DoubleDouble<A> fold_words(const DoubleDouble<T>& words) {
  if constexpr (std::is_same_v<A, T>) {
    return words;
  } else if constexpr (sizeof(T) == 2 * sizeof(A)) {
    return DoubleDouble<A>{words.high[0], words.low[0]} + DoubleDouble<A>{words.high[1], words.low[1]};
  } else {
    using Half = decltype(half_of<0, A>(words.high));
    return fold_words<A>(DoubleDouble<Half>{half_of<0, A>(words.high), half_of<0, A>(words.low)} +
                         DoubleDouble<Half>{half_of<1, A>(words.high), half_of<1, A>(words.low)});
  }
}

/// Sum of vectors in two words a lane.
template <class A>
struct WideVectorSum {
  using T = Vector<A>;

  T high = T{};
  T low  = T{};

  KOKKOS_FORCEINLINE_FUNCTION void add(const T& value) {
    const T sum = high + value, back = sum - high;
    low += (high - (sum - back)) + (value - back);
    high = sum;
  }

  /// Next to an infinite sum the low words are NaN, and are dropped.
  KOKKOS_FORCEINLINE_FUNCTION WideOf<A> total() const {
    const T rest = low == low ? low : T{};
    if constexpr (std::is_same_v<A, double>) {
      return fold_words<A>(DoubleDouble<T>{high, rest});
    } else {
      const InDouble highs(high), rests(rest);
      return fold_lanes((highs.half[0] + rests.half[0]) + (highs.half[1] + rests.half[1]), JoinSums{});
    }
  }
};

/// n sums over `count` elements: add(sum[n], i, m) adds the terms of the m elements from number i on. A sum of few
/// terms is of the accumulator type, and all sums of such sums of two words.
template <class A, int n, class Add>
KOKKOS_FORCEINLINE_FUNCTION void sum_in_vectors(WideOf<A> (&total)[n], int count, const Add& add) {
  using T             = Vector<A>;
  constexpr int lanes = simd_width<A>, chains = 4, terms = 8;
  WideVectorSum<A> wide[n];
  int i = 0;
  while (i + chains * lanes <= count) {
    T sum[chains][n] = {};
    const int end    = i + std::min(terms, (count - i) / (chains * lanes)) * chains * lanes;
    for (; i < end; i += chains * lanes) {
      KOKKOSNN_IMPL_UNROLL
      for (int c = 0; c < chains; ++c) add(sum[c], i + c * lanes, lanes);
    }
    for (int s = 0; s < n; ++s) wide[s].add((sum[0][s] + sum[1][s]) + (sum[2][s] + sum[3][s]));
  }
  if (i < count) {
    T sum[n] = {};
    for (; i < count; i += lanes) add(sum, i, std::min(lanes, count - i));
    for (int s = 0; s < n; ++s) wide[s].add(sum[s]);
  }
  for (int s = 0; s < n; ++s) total[s] = wide[s].total();
}

/// The n elements that lie in a row, and `behind` in the other lanes.
template <class A>
KOKKOS_FORCEINLINE_FUNCTION Vector<A> in_row(const Vector<A>& v, int n, const Vector<A>& behind = Vector<A>{}) {
  return n == simd_width<A> ? v : first_lanes(v, n, behind);
}

/// of<Operator>(vectors, count, params, scalars) is the reduction of a piece of `count` elements, as the reduction's
/// `add` makes it of packs.
template <class Reduction>
struct HostReduction;

template <class A, int n>
struct HostReduction<Sums<A, n>> {
  template <class Operator, class Vectors, class Params, class Scalars>
  KOKKOS_FORCEINLINE_FUNCTION static Sums<A, n> of(const Vectors& vectors, int count, const Params& params,
                                                   const Scalars& scalars) {
    const Params of_call = params;  // copies: reads through a reference are repeated after every store
    const Scalars of_row = scalars;
    Sums<A, n> sums;
    sum_in_vectors<A>(sums.sum, count, [&](Vector<A>(&sum)[n], int i, int m) KOKKOSNN_IMPL_INLINED {
      vectors.apply(
          i, m, [&](const auto&... values) KOKKOSNN_IMPL_INLINED { Operator::add(sum, of_call, of_row, values...); });
    });
    return sums;
  }
};

template <class A>
struct HostReduction<Moments<A>> {
  using T = Vector<A>;
  using W = WideOf<A>;

  template <class Operator, class Vectors, class Params, class Scalars>
  KOKKOS_FORCEINLINE_FUNCTION static Moments<A> of(const Vectors& vectors, int count, const Params&, const Scalars&) {
    if (count == 0) return {};
    const auto x = [&](int i, int n) KOKKOSNN_IMPL_INLINED { return vectors.row(0, i, n); };
    // Relative to the first element sums of equal elements are 0, and the mean is exact.
    A first[simd_width<A>];
    store_vector(first, x(0, std::min(count, simd_width<A>)));
    const T about = splat<T>(first[0]);
    W sum[1];
    sum_in_vectors<A>(sum, count,
                      [&](T(&all)[1], int i, int n) KOKKOSNN_IMPL_INLINED { all[0] += in_row<A>(x(i, n) - about, n); });
    const A mean = first[0] + static_cast<A>(rounded(sum[0])) / static_cast<A>(count);

    W sums[2];  // of squares, and of what rounding the mean has lost
    sum_in_vectors<A>(sums, count, [&](T(&all)[2], int i, int n) KOKKOSNN_IMPL_INLINED {
      const T distance = in_row<A>(x(i, n) - splat<T>(mean), n);
      all[0]           = multiply_add(distance, distance, all[0]);
      all[1] += distance;
    });
    const A squares = static_cast<A>(rounded(sums[0])), rest = static_cast<A>(rounded(sums[1]));
    const A shift = rest / static_cast<A>(count);
    return {static_cast<double>(count), W{mean} + W{shift}, W{multiply_add(-rest, shift, squares)}};
  }
};

template <class A>
struct HostReduction<SoftLossSums<A>> {
  using T = Vector<A>;

  template <class Operator, class Vectors, class Params, class Scalars>
  KOKKOS_FORCEINLINE_FUNCTION static SoftLossSums<A> of(const Vectors& vectors, int count, const Params& params,
                                                        const Scalars&) {
    constexpr A infinity = Kokkos::Experimental::infinity_v<A>;
    constexpr int lanes  = simd_width<A>;
    if (count == 0) return {};
    const Params of_call = params;  // a copy: reads through a reference are repeated after every store
    T highest            = splat<T>(-infinity);
    for (int i = 0; i < count; i += lanes) {
      const int n = std::min(lanes, count - i);
      highest     = max_ignoring_nan(highest, in_row<A>(vectors.row(0, i, n), n, splat<T>(-infinity)));
    }
    const A most                    = fold_lanes(highest, JoinMaxima{});
    const ExpReference<A> reference = of_call.exp.at(finite_reference(of_call.exp.reference_of(most)));
    const ExpReference<T> at        = splat_reference<T>(reference);

    WideOf<A> sums[3];
    sum_in_vectors<A>(sums, count, [&](T(&sum)[3], int i, int n) KOKKOSNN_IMPL_INLINED {
      vectors.apply(i, n, [&](const T& logit, const T& given, const T& weight) KOKKOSNN_IMPL_INLINED {
        const T target = in_row<A>(of_call.target(given, weight), n);
        sum[0] += in_row<A>(of_call.exp(logit, at), n);
        sum[1] += target;
        sum[2] += target == T{} ? T{} : target * logit;
      });
    });
    return {most == -infinity ? -Kokkos::Experimental::infinity_v<double> : static_cast<double>(reference.base),
            static_cast<double>(reference.exponent), rounded(sums[0]), rounded(sums[1]), rounded(sums[2])};
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_HOST_OPERAND_REDUCTIONS_HPP
