// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_HOST_ROW_PER_LANE_HPP
#define KOKKOSNN_IMPL_HOST_ROW_PER_LANE_HPP

#include <KokkosNN/impl/host/sums.hpp>
#include <KokkosNN/impl/host/vector_memory.hpp>
#include <KokkosNN/impl/operators/softmax.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <type_traits>

// Rows side by side, one in each lane of a host's vectors: nothing is joined across lanes. Values of a row are computed
// lane by lane, by the functions of all kernels, and put side by side.

namespace KokkosNN::Impl {

/// Memory for n objects, which are constructed in place.
template <class T, int n>
class RawArray {
 public:
  KOKKOS_FORCEINLINE_FUNCTION T& operator[](int i) {
    return *reinterpret_cast<T*>(m_bytes + static_cast<std::size_t>(i) * sizeof(T));
  }
  KOKKOS_FORCEINLINE_FUNCTION const T& operator[](int i) const {
    return *reinterpret_cast<const T*>(m_bytes + static_cast<std::size_t>(i) * sizeof(T));
  }
  KOKKOS_FORCEINLINE_FUNCTION void* at(int i) { return m_bytes + static_cast<std::size_t>(i) * sizeof(T); }

 private:
  alignas(T) unsigned char m_bytes[sizeof(T) * n];
};

/// Puts aggregates of numbers of A, one a lane, into one aggregate of vectors.
template <class A, class Wide, class Narrow>
KOKKOS_FORCEINLINE_FUNCTION void put_side_by_side(Wide& wide, const RawArray<Narrow, simd_width<A>>& narrow) {
  static_assert(sizeof(Wide) == sizeof(Narrow) * simd_width<A>);
  constexpr int words = sizeof(Narrow) / sizeof(A);
  BitsOf<A> from[simd_width<A>][words], to[words][simd_width<A>];
  std::memcpy(from, &narrow, sizeof from);
  for (int l = 0; l < simd_width<A>; ++l) {
    for (int w = 0; w < words; ++w) to[w][l] = from[l][w];
  }
  std::memcpy(static_cast<void*>(&wide), to, sizeof to);
}

/// Splits an aggregate of vectors into aggregates of numbers, one a lane.
template <class A, class Wide, class Narrow>
KOKKOS_FORCEINLINE_FUNCTION void take_apart(const Wide& wide, RawArray<Narrow, simd_width<A>>& narrow) {
  static_assert(sizeof(Wide) == sizeof(Narrow) * simd_width<A>);
  constexpr int words = sizeof(Narrow) / sizeof(A);
  BitsOf<A> from[words][simd_width<A>], to[simd_width<A>][words];
  std::memcpy(from, &wide, sizeof from);
  for (int l = 0; l < simd_width<A>; ++l) {
    for (int w = 0; w < words; ++w) to[l][w] = from[w][l];
  }
  std::memcpy(narrow.at(0), to, sizeof to);
}

/// States of rows side by side, one RowState a lane.
template <class Params>
struct LaneState {
  using A = typename Params::accumulator;
  using T = Vector<A>;

  T reference;
  ExpReference<T> at;  ///< of the kept values; its references are finite
  DoubleDouble<T> sum;

  KOKKOS_FORCEINLINE_FUNCTION LaneState(const Params& params, const T& max)
      : reference(params.exp.reference_of(max)), at(params.exp.at(finite_reference(reference))), sum{T{}, T{}} {}

  /// Stores each lane's state.
  KOKKOS_FORCEINLINE_FUNCTION void store(typename Params::State* states) const {
    A references[simd_width<A>];
    typename Params::wide_sum each[simd_width<A>];
    store_vector(references, reference);
    HostSums<Params>::join_words(sum, each);
    for (int l = 0; l < simd_width<A>; ++l) states[l] = {references[l], each[l]};
  }
};

/// Reduces rows of `count` logits at held, held + stride, ..., with the maxima `max`; `keeps` leaves the exponentials
/// in their place.
template <bool keeps, SumFor use, class Params, class A = typename Params::accumulator>
KOKKOS_FORCEINLINE_FUNCTION LaneState<Params> reduce_side_by_side(const Params& params, A* held, std::int64_t count,
                                                                  std::int64_t stride, const Vector<A>& max) {
  using T = Vector<A>;
  LaneState<Params> state(params, max);
  HostSums<Params> sums;
  const auto exponential = [&](std::int64_t c) KOKKOSNN_IMPL_INLINED {
    const T e = params.exp.template term_of_difference<use>(load_vector(held + c * stride) - state.at.base, state.at);
    if constexpr (keeps) store_vector(held + c * stride, e);
    return e;
  };
  std::int64_t c = 0;
  for (; c + 4 <= count; c += 4) {
    const T a = exponential(c), b = exponential(c + 1);
    const T d = exponential(c + 2), e = exponential(c + 3);
    sums.add((a + b) + (d + e));
  }
  for (; c < count; ++c) sums.add(exponential(c));
  state.sum = sums.words();
  return state;
}

/// Makes the epilogue of rows side by side; row(l) is that of lane l.
template <class OpEpilogue, class Params, class F>
KOKKOS_FORCEINLINE_FUNCTION auto lanes_epilogue(const F& row) {
  using A      = typename Params::accumulator;
  using Narrow = typename OpEpilogue::template Row<Params, A>;
  using Wide   = typename OpEpilogue::template Row<Params, Vector<A>>;
  RawArray<Narrow, simd_width<A>> narrow;
  for (int l = 0; l < simd_width<A>; ++l) new (narrow.at(l)) Narrow(row(l));
  RawArray<Wide, 1> wide;
  put_side_by_side<A>(wide[0], narrow);
  return wide[0];
}

/// Makes the epilogue of rows side by side from the lanes' states.
template <class OpEpilogue, class Params>
KOKKOS_FORCEINLINE_FUNCTION auto states_epilogue(const Params& params, const typename Params::State* states) {
  using Narrow = typename OpEpilogue::template Row<Params, typename Params::accumulator>;
  return lanes_epilogue<OpEpilogue, Params>([&](int l) { return make_epilogue<Narrow>(params, states[l], states[l]); });
}

/// Makes the epilogue of rows that are kept relative to their own state.
template <class OpEpilogue, class Params, class A = typename Params::accumulator>
KOKKOS_FORCEINLINE_FUNCTION auto own_lanes_epilogue(const Params& params, const LaneState<Params>& state) {
  using T = Vector<A>;
  if constexpr (std::is_base_of_v<Epilogue<RowOperator::softmax>, OpEpilogue>) {
    return typename OpEpilogue::template Row<Params, T>(params, state.at, split_sum<T>(state.sum));
  } else {
    typename Params::State states[simd_width<A>];
    state.store(states);
    return states_epilogue<OpEpilogue>(params, states);
  }
}

/// States of rows side by side whose columns arrive some at a time. Exponentials are relative to a reference that is
/// raised once a logit is far above it, which is seldom.
template <class Params>
class RunningLanes {
 public:
  using A = typename Params::accumulator;
  using T = Vector<A>;

  static constexpr int columns = 8;  ///< that arrive at a time

  explicit RunningLanes(const Params& params)
      : m_state(params, splat<T>(-Kokkos::Experimental::infinity_v<A>)), m_highest(m_state.reference) {}

  /// Current reference of exponentials.
  KOKKOS_FORCEINLINE_FUNCTION const T& reference() const { return m_state.reference; }

  /// Takes the next columns, and returns their exponentials.
  template <SumFor use>
  KOKKOS_FORCEINLINE_FUNCTION void take(const Params& params, const T (&x)[columns], T (&e)[columns]) {
    const T max =
        largest(largest(largest(x[0], x[1]), largest(x[2], x[3])), largest(largest(x[4], x[5]), largest(x[6], x[7])));
    if (is_any_above(max, m_highest)) raise(params, max);
    const ExpReference<T> at = m_state.at;
    if (m_is_power) {
      for (int i = 0; i < columns; ++i) e[i] = params.exp.template term_of_difference<use>(x[i], at);
    } else {
      for (int i = 0; i < columns; ++i) e[i] = params.exp.template term_of_difference<use>(difference<use>(x[i]), at);
    }
    add(((e[0] + e[1]) + (e[2] + e[3])) + ((e[4] + e[5]) + (e[6] + e[7])));
  }

  /// Makes the epilogue for logits, or for exponentials relative to the last reference.
  template <class OpEpilogue>
  auto epilogue(const Params& params) const {
    if constexpr (std::is_same_v<OpEpilogue, Epilogue<RowOperator::softmax>>) {
      return own_lanes_epilogue<OpEpilogue>(params, m_state);
    } else {
      typename Params::State states[simd_width<A>];
      store(params, states);
      return states_epilogue<OpEpilogue>(params, states);
    }
  }
  /// Rescales exponentials from an earlier reference to the last one.
  KOKKOS_FORCEINLINE_FUNCTION void bring_up(const Params& params, const T& earlier, A* exponentials, int count) const {
    if (!is_any_above(m_state.reference, earlier)) return;
    const auto by = rescalings(params, earlier, m_state.reference);
    for (int i = 0; i < count; ++i) {
      A* const at = exponentials + i * simd_width<A>;
      store_vector(at, by.of(load_vector(at)));
    }
  }

  /// Stores each lane's state. If a logarithm is taken of a sum far above its reference, the state moves to the sum:
  /// both would cancel.
  void store(const Params& params, typename Params::State* states) const {
    m_state.store(states);
    for (int l = 0; l < simd_width<A>; ++l) {
      const A sum = static_cast<A>(states[l].sum);
      if (sum >= A(2) && Kokkos::isfinite(sum) && params.exp.has_power(states[l].reference)) {
        states[l] = params.exp.at_its_sum(states[l].reference, states[l].sum);
      }
    }
  }

 private:
  /// Power of two that an exponential may reach before the reference is raised: Gaussian rows never get there.
  static constexpr A headroom = 8;

  LaneState<Params> m_state;
  T m_highest;             // logit that is not far above the reference
  bool m_is_power = true;  // all references are powers, so nothing is subtracted

  template <SumFor use>
  KOKKOS_FORCEINLINE_FUNCTION T difference(const T& x) const {
    const T d = x - m_state.at.base;
    if constexpr (!finds_infinity<use, Params>) return d;
    return m_state.at.base == splat<T>(Kokkos::Experimental::infinity_v<A>) ? zero_of_number(x) : d;
  }

  KOKKOS_FORCEINLINE_FUNCTION static T largest(const T& a, const T& b) { return max_ignoring_nan(a, b); }

  KOKKOS_FORCEINLINE_FUNCTION void add(const T& terms) {
    if constexpr (Params::accuracy == ExpAccuracy::full) {
      m_state.sum = m_state.sum + DoubleDouble<T>{terms, T{}};
    } else {
      m_state.sum.high += terms;
    }
  }

  __attribute__((noinline)) void raise(const Params& params, const T& max) {
    constexpr A infinity = Kokkos::Experimental::infinity_v<A>;
    const T reference    = max > m_highest ? params.exp.reference_of(max) : m_state.reference;
    m_state.sum          = rescalings(params, m_state.reference, reference).of(m_state.sum);
    m_state.reference    = reference;
    m_state.at           = params.exp.at(finite_reference(reference));
    const T far          = (m_state.at.exponent + splat<T>(headroom)) * splat<T>(params.exp.inverse);
    m_is_power           = !is_any_above(m_state.at.base, T{}) && !is_any_above(T{}, m_state.at.base);
    m_highest            = m_state.at.base == T{} ? far : m_state.at.base;
    m_highest            = reference == splat<T>(-infinity) ? reference : m_highest;
  }

  static auto rescalings(const Params& params, const T& from, const T& to) {
    return params.exp.rescalings(finite_reference(from), finite_reference(to));
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_HOST_ROW_PER_LANE_HPP
