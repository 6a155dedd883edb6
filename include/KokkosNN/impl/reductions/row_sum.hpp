// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_REDUCTIONS_ROW_SUM_HPP
#define KOKKOSNN_IMPL_REDUCTIONS_ROW_SUM_HPP

#include <KokkosNN/impl/gpu/device/exchange.hpp>
#include <KokkosNN/impl/gpu/device/status_word.hpp>
#include <KokkosNN/impl/math/exp.hpp>
#include <KokkosNN/impl/operators/softmax.hpp>
#include <KokkosNN/vocabulary.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

// Partial states of the gradients: a sum over a row, and scalars of a row that no thread merges.

namespace KokkosNN::Impl {

/// Partial state of a gradient: a sum. Aligned to 8 bytes because team scratch places 16-byte data behind an even
/// number of states.
template <class A, class W>
struct alignas(8) RowSum {
  W sum = {};
};

template <bool = false, class Params, class A, class W>
KOKKOS_INLINE_FUNCTION RowSum<A, W> merge_warp(const Params&, const RowSum<A, W>& mine, int lanes) {
  return {reduce_lanes(mine.sum, 1, lanes, SumJoin{})};
}

template <bool = false, class Params, class A, class W>
KOKKOS_INLINE_FUNCTION RowSum<A, W> merge_lanes(const Params& params, const RowSum<A, W>& mine, int lanes) {
  return merge_warp(params, mine, lanes);
}

template <class Params, class A, class W>
KOKKOS_INLINE_FUNCTION RowSum<A, W> merge_two(const Params&, const RowSum<A, W>& a, const RowSum<A, W>& b) {
  return {a.sum + b.sum};
}

/// Scalars that a row is given, with nothing to merge: its log-sum-exp and the gradient of that.
template <class A>
struct RowScalars {
  A lse;
  A dlse;
};

template <class A>
inline constexpr bool is_joined<RowScalars<A>> = false;

template <bool = false, class Params, class A>
KOKKOS_INLINE_FUNCTION RowScalars<A> merge_warp(const Params&, const RowScalars<A>& mine, int) {
  return mine;
}

template <class Params, class Member, class A>
KOKKOS_INLINE_FUNCTION RowScalars<A> exchange(const Params&, const Member&, const RowGroup&, RowScalars<A>*, int,
                                              const RowScalars<A>& mine) {
  return mine;
}

/// Status word of a sum of either sign: one 64-bit word, whose tag is the last bit of a double.
struct SumStatusWord {
  using Word = std::uint64_t;

  Word slots[4];

  KOKKOS_INLINE_FUNCTION void publish(std::int64_t epoch, double sum) {
    const auto bits = Kokkos::bit_cast<Word>(sum);
    write_fresh(&slots[slot_of(epoch)], (bits & ~Word(1)) | Word(tag_of(epoch)));
  }
  KOKKOS_INLINE_FUNCTION Word read(std::int64_t epoch) const { return read_fresh(&slots[slot_of(epoch)]); }
  KOKKOS_INLINE_FUNCTION static bool holds(Word word, std::int64_t epoch) { return (word & 1) == tag_of(epoch); }
  KOKKOS_INLINE_FUNCTION static double open(Word word) { return Kokkos::bit_cast<double>(word & ~Word(1)); }
};

template <>
struct StatusWordFor<RowSum<float, float>> {
  using type = SumStatusWord;
};
template <>
struct StatusWordFor<RowSum<float, double>> {
  using type = SumStatusWord;
};
template <class W>
struct StatusWordFor<RowSum<double, W>> {
  using type = StatusWord<double>;
};
template <class A>
struct StatusWordFor<RowScalars<A>> {
  using type = StatusWord<A>;
};

template <class W>
KOKKOS_INLINE_FUNCTION void publish(SumStatusWord& status, std::int64_t epoch, const RowSum<float, W>& state) {
  status.publish(epoch, static_cast<double>(state.sum));
}

template <class State>
KOKKOS_INLINE_FUNCTION State opened(const SumStatusWord&, SumStatusWord::Word word) {
  return {static_cast<decltype(State::sum)>(SumStatusWord::open(word))};
}

/// Splits a row's sum into two words of A. Next to an infinite sum the second word is NaN from two-sums, and is
/// dropped.
template <class A, class W>
KOKKOS_INLINE_FUNCTION DoubleDouble<A> words_of(const RowSum<A, W>& state) {
  if constexpr (std::is_same_v<A, W>) {
    return {state.sum, A(0)};
  } else if constexpr (std::is_same_v<W, double>) {
    const A high = static_cast<A>(state.sum);
    const A low  = static_cast<A>(state.sum - W(high));
    return {high, low == low ? low : A(0)};
  } else {
    return state.sum.low == state.sum.low ? split_sum<A>(state.sum) : DoubleDouble<A>{state.sum.high, A(0)};
  }
}

template <class W>
KOKKOS_INLINE_FUNCTION void publish(StatusWord<double>& status, std::int64_t epoch, const RowSum<double, W>& state) {
  const DoubleDouble<double> words = words_of(state);
  status.publish(epoch, {words.high, words.low});
}

template <class State>
  requires std::is_same_v<State, RowSum<double, decltype(State::sum)>>
KOKKOS_INLINE_FUNCTION State opened(const StatusWord<double>&, const StatusWord<double>::Word& word) {
  const auto words = StatusWord<double>::open(word);
  return {static_cast<decltype(State::sum)>(DoubleDouble<double>{words.reference, words.sum})};
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_REDUCTIONS_ROW_SUM_HPP
