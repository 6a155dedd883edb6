// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_HOST_SUMS_HPP
#define KOKKOSNN_IMPL_HOST_SUMS_HPP

#include <KokkosNN/impl/gpu/device/pair_tile.hpp>
#include <KokkosNN/impl/gpu/device/tile.hpp>
#include <KokkosNN/impl/host/vector_memory.hpp>

#include <Kokkos_Core.hpp>

#include <type_traits>

// Sums of exp_sum.hpp and pair_tile.hpp in a host's vector registers.

namespace KokkosNN::Impl {

/// Vector of float in double, by halves.
struct InDouble {
  Vector<double> half[2];

  KOKKOS_FORCEINLINE_FUNCTION explicit InDouble(const Vector<float>& v) {
#if defined(KOKKOSNN_IMPL_HAS_VECTORS)
    half[0] = half_in_double<0>(v);
    half[1] = half_in_double<1>(v);
#else
    half[0] = half[1] = static_cast<double>(v);
#endif
  }
};

/// ExponentialSums with a vector of lanes.
template <class Params>
struct HostSums {
  using A                       = typename Params::accumulator;
  using W                       = typename Params::wide_sum;
  using T                       = Vector<A>;
  static constexpr bool is_full = Params::accuracy == ExpAccuracy::full;
  static constexpr A start      = ExponentialSums<Params, 1>::start;

  T sum = splat<T>(start);
  T low = splat<T>(A(0));

  /// Adds a sum of at most exponentials_at_once exponentials.
  KOKKOS_FORCEINLINE_FUNCTION void add(T value) {
    const T s = sum + value;
    if constexpr (is_full) low += value - (s - sum);
    sum = s;
  }

  KOKKOS_FORCEINLINE_FUNCTION W total() const {
    const T high = sum - splat<T>(start);
    if constexpr (!is_full) {
      return fold_lanes(high, JoinSums{});
    } else if constexpr (std::is_same_v<W, double> && simd_width<A> > 1) {
      const InDouble highs(high), lows(low);
      return fold_lanes((highs.half[0] + lows.half[0]) + (highs.half[1] + lows.half[1]), JoinSums{});
    } else {
      Pack<W, simd_width<A>> all;
      lanes(all.value);
      return folded<1>(all)[0];
    }
  }

  /// Double-double of each lane.
  KOKKOS_FORCEINLINE_FUNCTION DoubleDouble<T> words() const { return {sum - splat<T>(start), low}; }

  /// Stores the sum of each lane.
  KOKKOS_FORCEINLINE_FUNCTION void lanes(W (&each)[simd_width<A>]) const { join_words(words(), each); }

  KOKKOS_FORCEINLINE_FUNCTION static void join_words(const DoubleDouble<T>& words, W (&each)[simd_width<A>]) {
    A highs[simd_width<A>], lows[simd_width<A>];
    store_vector(highs, words.high);
    store_vector(lows, words.low);
    for (int l = 0; l < simd_width<A>; ++l) {
      if constexpr (is_full) {
        each[l] = W{highs[l]} + W{lows[l]};
      } else {
        each[l] = highs[l];
      }
    }
  }
};

/// Adds a product to a double-double: the low word takes the rounding errors of the product and of the addition.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION void add_product(const T& a, const T& b, T& high, T& low) {
  if constexpr (has_fma) {
    const T sum  = fused_multiply_add(a, b, high);
    const T term = sum - high;  // part of the product that arrived
    low += fused_multiply_add(a, b, -term) + (high - (sum - term));
    high = sum;
  } else {
    const T product = a * b, sum = high + product, term = sum - high;
    low += product_error(a, b, product) + ((product - term) + (high - (sum - term)));
    high = sum;
  }
}

/// Joins both words of a lane's sum. Next to an infinite sum the low word is NaN, and is dropped.
template <class W, class A>
KOKKOS_FORCEINLINE_FUNCTION W sum_of_words(A high, A low) {
  return W{high} + (low == low ? W{low} : W{});
}

/// TermSums with a vector of lanes.
template <class Params>
struct HostTerms {
  using A                         = typename Params::accumulator;
  using W                         = typename Params::wide_sum;
  using Words                     = TermSums<Params, 1>;
  static constexpr bool in_double = Words::in_double && simd_width<A> > 1;
  using T                         = std::conditional_t<in_double, Vector<double>, Vector<A>>;

  T sum = T{};
  T low = T{};  // low word of a double-double; in double the other half of the lanes

  KOKKOS_FORCEINLINE_FUNCTION void add(const Vector<A>& y, const Vector<A>& dy) {
    if constexpr (in_double) {
      const InDouble b(dy);
      if constexpr (Params::sums_products) {
        const InDouble a(y);
        sum = multiply_add(a.half[0], b.half[0], sum);  // products are exact
        low = multiply_add(a.half[1], b.half[1], low);
      } else {
        sum += b.half[0];
        low += b.half[1];
      }
    } else if constexpr (Params::sums_products && Words::two_words) {
      add_product(y, dy, sum, low);
    } else {
      add_term(Params::sums_products ? y * dy : dy);
    }
  }

  /// Adds vectors in memory.
  template <class Y, class D>
  KOKKOS_FORCEINLINE_FUNCTION void add_from(const Y* y, const D* dy) {
#if defined(KOKKOSNN_IMPL_HAS_VECTORS)
    if constexpr (in_double && std::is_same_v<Y, float> && std::is_same_v<D, float>) {
      constexpr int half = simd_width<A> / 2;
      if constexpr (Params::sums_products) {
        sum = multiply_add(load_in_double(y), load_in_double(dy), sum);
        low = multiply_add(load_in_double(y + half), load_in_double(dy + half), low);
      } else {
        sum += load_in_double(dy);
        low += load_in_double(dy + half);
      }
      return;
    }
#endif
    add(load_vector(y), load_vector(dy));
  }

  /// Adds another one's sums, lane by lane.
  KOKKOS_FORCEINLINE_FUNCTION void join(const HostTerms& other) {
    if constexpr (Words::two_words) {
      const DoubleDouble<T> both = DoubleDouble<T>{sum, low} + DoubleDouble<T>{other.sum, other.low};
      sum                        = both.high;
      low                        = both.low;
    } else {
      sum += other.sum;
      low += other.low;
    }
  }

  KOKKOS_FORCEINLINE_FUNCTION static W total(HostTerms a, const HostTerms& b) {
    a.join(b);
    return a.total();
  }
  KOKKOS_FORCEINLINE_FUNCTION W total() const {
    if constexpr (in_double) {
      return fold_lanes(sum + low, JoinSums{});
    } else if constexpr (Words::two_words) {
      Pack<W, simd_width<A>> all;
      lanes(all.value);
      return folded<1>(all)[0];
    } else {
      return fold_lanes(sum, JoinSums{});
    }
  }

  /// Stores the sum of each lane.
  KOKKOS_FORCEINLINE_FUNCTION void lanes(W (&each)[simd_width<A>]) const {
    using Term          = ScalarOf<T>;
    constexpr int count = sizeof(T) / sizeof(Term);
    Term highs[count], lows[count];
    store_vector(highs, sum);
    store_vector(lows, low);
    for (int l = 0; l < simd_width<A>; ++l) {
      if constexpr (in_double) {
        each[l] = l < count ? highs[l % count] : lows[l % count];
      } else if constexpr (Words::two_words) {
        each[l] = sum_of_words<W>(highs[l], lows[l]);
      } else {
        each[l] = highs[l];
      }
    }
  }

 private:
  KOKKOS_FORCEINLINE_FUNCTION void add_term(const T& term) {
    const T s = sum + term;
    if constexpr (Words::two_words) {
      const T back = s - sum;
      low += (sum - (s - back)) + (term - back);
    }
    sum = s;
  }
};

/// Sums of products of floats in double-floats: as accurate as in double, in fewer operations than converting the
/// factors takes.
template <class Params>
struct HostProducts {
  using A = float;
  using T = Vector<float>;

  T high = T{};
  T low  = T{};

  KOKKOS_FORCEINLINE_FUNCTION void add(const T& y, const T& dy) { add_product(y, dy, high, low); }
  template <class Y, class D>
  KOKKOS_FORCEINLINE_FUNCTION void add_from(const Y* y, const D* dy) {
    add(load_vector(y), load_vector(dy));
  }

  /// Total of both. Next to an infinite sum the low word is NaN, and is dropped.
  KOKKOS_FORCEINLINE_FUNCTION static double total(const HostProducts& a, const HostProducts& b) {
    const T low = a.low + b.low;
    const InDouble first(a.high), second(b.high), lows(low == low ? low : T{});
    return fold_lanes((first.half[0] + second.half[0] + lows.half[0]) + (first.half[1] + second.half[1] + lows.half[1]),
                      JoinSums{});
  }
};

/// HostTerms of rows side by side; products of floats are added as HostProducts does.
template <class Params>
struct LaneTerms : HostTerms<Params> {};

template <class Params>
  requires(HostTerms<Params>::in_double && Params::sums_products)
struct LaneTerms<Params> : HostProducts<Params> {
  /// Stores the sum of each lane.
  KOKKOS_FORCEINLINE_FUNCTION void lanes(double (&each)[simd_width<float>]) const {
    float highs[simd_width<float>], lows[simd_width<float>];
    store_vector(highs, this->high);
    store_vector(lows, this->low);
    for (int l = 0; l < simd_width<float>; ++l) each[l] = sum_of_words<double>(highs[l], lows[l]);
  }
};

/// Terms of as many rows as their vectors have lanes. They are added by halves as in HostTerms::total, but those of two
/// rows at a time, so that a vector ends with the rows' sums: bit by bit those that each row has by itself.
template <class Params>
struct HostRowSums {
  using Terms                     = HostTerms<Params>;
  using T                         = typename Terms::T;
  using Term                      = ScalarOf<T>;
  using Result                    = DoubleDouble<typename Params::accumulator>;
  static constexpr int rows       = simd_width<Term>;
  static constexpr bool two_words = Terms::Words::two_words;

  T high[rows];
  T low[rows];  // only of double-doubles

  KOKKOS_FORCEINLINE_FUNCTION void set(int l, const Terms& terms) {
    if constexpr (two_words) {
      // As in HostTerms::lanes.
      const DoubleDouble<T> words =
          DoubleDouble<T>{terms.sum, T{}} + DoubleDouble<T>{terms.low == terms.low ? terms.low : T{}, T{}};
      high[l] = words.high;
      low[l]  = words.low;
    } else {
      high[l] = Terms::in_double ? terms.sum + terms.low : terms.sum;
    }
  }

  /// Joins the sums row by row.
  KOKKOS_FORCEINLINE_FUNCTION void join(Result (&words)[rows]) {
    typename Terms::W sums[rows];
    join_words(sums);
    for (int l = 0; l < rows; ++l) words[l] = words_of(typename Params::State{sums[l]});
  }
  /// Joins them to sums in words.
  KOKKOS_FORCEINLINE_FUNCTION void join_words(typename Terms::W* sums) {
    fold<rows>();
    if constexpr (two_words) {
      Term highs[rows], lows[rows];
      store_vector(highs, high[0]);
      store_vector(lows, low[0]);
      for (int l = 0; l < rows; ++l) sums[l] = {highs[l], lows[l]};
    } else {
      store_vector(sums, high[0]);
    }
  }

 private:
  template <int left>
  KOKKOS_FORCEINLINE_FUNCTION void fold() {
    if constexpr (left > 1) {
      constexpr int half = left / 2;
      for (int l = 0; l < half; ++l) {
        const T upper = interleaved_half<1, Term>(high[l], high[l + half]);
        high[l]       = interleaved_half<0, Term>(high[l], high[l + half]);
        if constexpr (two_words) {
          const T upper_low            = interleaved_half<1, Term>(low[l], low[l + half]);
          low[l]                       = interleaved_half<0, Term>(low[l], low[l + half]);
          const DoubleDouble<T> joined = DoubleDouble<T>{high[l], low[l]} + DoubleDouble<T>{upper, upper_low};
          high[l]                      = joined.high;
          low[l]                       = joined.low;
        } else {
          high[l] += upper;
        }
      }
      fold<half>();
    }
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_HOST_SUMS_HPP
