// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_REDUCTIONS_REDUCED_STATE_HPP
#define KOKKOSNN_IMPL_REDUCTIONS_REDUCED_STATE_HPP

#include <KokkosNN/impl/gpu/device/exchange.hpp>
#include <KokkosNN/impl/gpu/device/status_word.hpp>
#include <KokkosNN/impl/math/double_double.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

// The state of a row for any reduction that is a few doubles and has
//
//   Reduction::joined(a, b)   of two parts of a row, bitwise commutative
//   Reduction::add<...>       what a thread holds of a row, see sums.hpp
//
// From these come all ways in which threads, warps and teams join their states.

namespace KokkosNN::Impl {

/// Numbers that a thread's sums go to: so many are added that their roundings would be seen in A.
template <class A>
using WideOf = std::conditional_t<std::is_same_v<A, float>, double, DoubleDouble<double>>;

/// A second word next to an infinite sum is the NaN that two-sums leave there, and says nothing.
KOKKOS_INLINE_FUNCTION double rounded(double sum) { return sum; }
KOKKOS_INLINE_FUNCTION double rounded(const DoubleDouble<double>& sum) {
  return sum.low == sum.low ? sum.high + sum.low : sum.high;
}

template <class Reduction>
struct ReducedState : Reduction {};

template <int n>
struct Doubles {
  double value[n];
};
template <class Reduction>
using WordsOfState = Doubles<static_cast<int>(sizeof(Reduction) / sizeof(double))>;

template <class Reduction>
KOKKOS_INLINE_FUNCTION ReducedState<Reduction> shuffle_xor(const ReducedState<Reduction>& state, int mask) {
  auto words = Kokkos::bit_cast<WordsOfState<Reduction>>(state);
  for (double& word : words.value) word = shuffle_xor(word, mask);
  return Kokkos::bit_cast<ReducedState<Reduction>>(words);
}

struct StateJoin {
  template <class Reduction>
  KOKKOS_INLINE_FUNCTION ReducedState<Reduction> operator()(const ReducedState<Reduction>& a,
                                                            const ReducedState<Reduction>& b) const {
    return {Reduction::joined(a, b)};
  }
};

template <bool = false, class Params, class Reduction>
KOKKOS_INLINE_FUNCTION ReducedState<Reduction> merge_warp(const Params&, const ReducedState<Reduction>& mine,
                                                          int lanes) {
  return reduce_lanes(mine, 1, lanes, StateJoin{});
}

template <bool = false, class Params, class Reduction>
KOKKOS_INLINE_FUNCTION ReducedState<Reduction> merge_lanes(const Params&, const ReducedState<Reduction>& mine,
                                                           int lanes) {
  return reduce_lanes(mine, 1, lanes, StateJoin{});
}

template <class Params, class Reduction>
KOKKOS_INLINE_FUNCTION ReducedState<Reduction> merge_two(const Params&, const ReducedState<Reduction>& a,
                                                         const ReducedState<Reduction>& b) {
  return StateJoin{}(a, b);
}

/// n doubles in n + 1 words, each with a tag for its first bit: the last word has what that leaves over, their last
/// bits.
template <int n>
struct TaggedDoubles {
  static_assert(n < 64);
  struct Word {
    std::uint64_t parts[n + 1];
  };

  Word slots[4];

  KOKKOS_INLINE_FUNCTION void publish(std::int64_t epoch, const Doubles<n>& doubles) {
    const auto tag          = std::uint64_t(tag_of(epoch)) << 63;
    std::uint64_t last_bits = 0;
    auto* parts             = slots[slot_of(epoch)].parts;
    for (int i = 0; i < n; ++i) {
      const auto bits = Kokkos::bit_cast<std::uint64_t>(doubles.value[i]);
      write_fresh(&parts[i], tag | bits >> 1);
      last_bits |= (bits & 1) << i;
    }
    write_fresh(&parts[n], tag | last_bits);
  }
  KOKKOS_INLINE_FUNCTION Word read(std::int64_t epoch) const {
    Word word;
    for (int i = 0; i <= n; ++i) word.parts[i] = read_fresh(&slots[slot_of(epoch)].parts[i]);
    return word;
  }
  KOKKOS_INLINE_FUNCTION static bool holds(const Word& word, std::int64_t epoch) {
    bool all = true;
    for (const std::uint64_t part : word.parts) all = all && (part >> 63 != 0) == tag_of(epoch);
    return all;
  }
  KOKKOS_INLINE_FUNCTION static Doubles<n> open(const Word& word) {
    Doubles<n> doubles;
    for (int i = 0; i < n; ++i) {
      doubles.value[i] = Kokkos::bit_cast<double>(word.parts[i] << 1 | (word.parts[n] >> i & 1));
    }
    return doubles;
  }
};

template <class Reduction>
struct StatusWordFor<ReducedState<Reduction>> {
  using type = TaggedDoubles<static_cast<int>(sizeof(Reduction) / sizeof(double))>;
};

template <int n, class Reduction>
KOKKOS_INLINE_FUNCTION void publish(TaggedDoubles<n>& status, std::int64_t epoch,
                                    const ReducedState<Reduction>& state) {
  status.publish(epoch, Kokkos::bit_cast<Doubles<n>>(state));
}

template <class State, int n>
KOKKOS_INLINE_FUNCTION State opened(const TaggedDoubles<n>&, const typename TaggedDoubles<n>::Word& word) {
  return Kokkos::bit_cast<State>(TaggedDoubles<n>::open(word));
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_REDUCTIONS_REDUCED_STATE_HPP
