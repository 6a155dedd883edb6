// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_REDUCTIONS_ROW_SUM_HPP
#define KOKKOSNN_IMPL_REDUCTIONS_ROW_SUM_HPP

#include <KokkosNN/impl/gpu/device/exchange.hpp>
#include <KokkosNN/impl/gpu/device/status_word.hpp>
#include <KokkosNN/impl/math/exp.hpp>
#include <KokkosNN/impl/operators/softmax.hpp>
#include <KokkosNN/plan.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

// A sum over a row, and values of a row that nobody joins: the states of the gradients.

namespace KokkosNN::Impl {

/// What is known of a part of a row: a sum over it. At least 8 bytes, so that what lies behind an even number of them
/// in team scratch is aligned.
template <class A, class W>
struct alignas(8) RowSum {
  W sum = {};
};

template <bool = false, class Math, class A, class W>
KOKKOS_INLINE_FUNCTION RowSum<A, W> merge_warp(const Math&, const RowSum<A, W>& mine, int lanes) {
  return {reduce_lanes(mine.sum, 1, lanes, SumJoin{})};
}

template <bool = false, class Math, class A, class W>
KOKKOS_INLINE_FUNCTION RowSum<A, W> merge_lanes(const Math& math, const RowSum<A, W>& mine, int lanes) {
  return merge_warp(math, mine, lanes);
}

template <class Math, class A, class W>
KOKKOS_INLINE_FUNCTION RowSum<A, W> merge_two(const Math&, const RowSum<A, W>& a, const RowSum<A, W>& b) {
  return {a.sum + b.sum};
}

/// What a row brings along and nobody needs to join: its log-sum-exp and that one's gradient.
template <class A>
struct RowScalars {
  A lse;
  A dlse;
};

template <class A>
inline constexpr bool is_joined<RowScalars<A>> = false;

template <bool = false, class Math, class A>
KOKKOS_INLINE_FUNCTION RowScalars<A> merge_warp(const Math&, const RowScalars<A>& mine, int) {
  return mine;
}

template <class Math, class Member, class A>
KOKKOS_INLINE_FUNCTION RowScalars<A> exchange(const Math&, const Member&, const RowGroup&, RowScalars<A>*, int,
                                              const RowScalars<A>& mine) {
  return mine;
}

/// A sum that may have either sign in one 64-bit word, which carries its own tag: the last bit of a double.
struct SumMailbox {
  using Letter = std::uint64_t;

  Letter letters[4];

  KOKKOS_INLINE_FUNCTION void publish(std::int64_t turn, double sum) {
    const auto bits = Kokkos::bit_cast<Letter>(sum);
    write_fresh(&letters[letter_of(turn)], (bits & ~Letter(1)) | Letter(tag_of(turn)));
  }
  KOKKOS_INLINE_FUNCTION Letter read(std::int64_t turn) const { return read_fresh(&letters[letter_of(turn)]); }
  KOKKOS_INLINE_FUNCTION static bool holds(Letter letter, std::int64_t turn) { return (letter & 1) == tag_of(turn); }
  KOKKOS_INLINE_FUNCTION static double open(Letter letter) { return Kokkos::bit_cast<double>(letter & ~Letter(1)); }
};

template <>
struct MailboxFor<RowSum<float, float>> {
  using type = SumMailbox;
};
template <>
struct MailboxFor<RowSum<float, double>> {
  using type = SumMailbox;
};
template <class W>
struct MailboxFor<RowSum<double, W>> {
  using type = Mailbox<double>;
};
template <class A>
struct MailboxFor<RowScalars<A>> {
  using type = Mailbox<A>;
};

template <class W>
KOKKOS_INLINE_FUNCTION void publish(SumMailbox& mailbox, std::int64_t turn, const RowSum<float, W>& state) {
  mailbox.publish(turn, static_cast<double>(state.sum));
}

template <class State>
KOKKOS_INLINE_FUNCTION State opened(const SumMailbox&, SumMailbox::Letter letter) {
  return {static_cast<decltype(State::sum)>(SumMailbox::open(letter))};
}

/// A row's sum as two words of A. A second word next to an infinite sum is the NaN that two-sums leave there, and says
/// nothing.
template <class A, class W>
KOKKOS_INLINE_FUNCTION TwoWords<A> words_of(const RowSum<A, W>& state) {
  if constexpr (std::is_same_v<A, W>) {
    return {state.sum, A(0)};
  } else if constexpr (std::is_same_v<W, double>) {
    const A high = static_cast<A>(state.sum);
    const A low  = static_cast<A>(state.sum - W(high));
    return {high, low == low ? low : A(0)};
  } else {
    return state.sum.low == state.sum.low ? split_sum<A>(state.sum) : TwoWords<A>{state.sum.high, A(0)};
  }
}

template <class W>
KOKKOS_INLINE_FUNCTION void publish(Mailbox<double>& mailbox, std::int64_t turn, const RowSum<double, W>& state) {
  const TwoWords<double> words = words_of(state);
  mailbox.publish(turn, {words.high, words.low});
}

template <class State>
requires std::is_same_v<State, RowSum<double, decltype(State::sum)>> KOKKOS_INLINE_FUNCTION State
opened(const Mailbox<double>&, const Mailbox<double>::Letter& letter) {
  const auto words = Mailbox<double>::open(letter);
  return {static_cast<decltype(State::sum)>(TwoWords<double>{words.reference, words.sum})};
}

/// What all rows of a gradient share.

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_REDUCTIONS_ROW_SUM_HPP
