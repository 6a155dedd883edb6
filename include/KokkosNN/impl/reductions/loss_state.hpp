// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_REDUCTIONS_LOSS_STATE_HPP
#define KOKKOSNN_IMPL_REDUCTIONS_LOSS_STATE_HPP

#include <KokkosNN/impl/gpu/device/exchange.hpp>
#include <KokkosNN/impl/gpu/device/status_word.hpp>
#include <KokkosNN/impl/inputs/rows.hpp>
#include <KokkosNN/impl/math/exp.hpp>
#include <KokkosNN/impl/operators/softmax.hpp>
#include <KokkosNN/impl/operators/softmax_backward.hpp>
#include <KokkosNN/options.hpp>
#include <KokkosNN/plan.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

// The state of a row whose loss needs a sum over its logits beside (max, sum of exponentials).

namespace KokkosNN::Impl {

/// (max, sum) of a part of a row and the sum of w_c z_c. Its size is a multiple of 8, as that of RowSum.
template <class A, class W>
struct alignas(8) LossState {
  using Linear = std::conditional_t<std::is_same_v<A, W>, A, double>;

  A reference   = -Kokkos::Experimental::infinity_v<A>;
  W sum         = {};
  Linear linear = {};

  KOKKOS_INLINE_FUNCTION RowState<A, W> exponentials() const { return {reference, sum}; }
  KOKKOS_INLINE_FUNCTION static LossState of(const RowState<A, W>& exponentials, Linear linear) {
    return {exponentials.reference, exponentials.sum, linear};
  }
};

template <bool is_summed = false, class Math, class A, class W>
KOKKOS_INLINE_FUNCTION LossState<A, W> merge_warp(const Math& math, const LossState<A, W>& mine, int lanes) {
  return LossState<A, W>::of(merge_warp<is_summed>(math, mine.exponentials(), lanes),
                             reduce_lanes(mine.linear, 1, lanes, SumJoin{}));
}

template <bool repeated = false, class Math, class A, class W>
KOKKOS_INLINE_FUNCTION LossState<A, W> merge_lanes(const Math& math, const LossState<A, W>& mine, int lanes) {
  return LossState<A, W>::of(merge_lanes<repeated>(math, mine.exponentials(), lanes),
                             reduce_lanes(mine.linear, 1, lanes, SumJoin{}));
}

template <class Math, class A, class W>
KOKKOS_INLINE_FUNCTION LossState<A, W> merge_two(const Math& math, const LossState<A, W>& a, const LossState<A, W>& b) {
  return LossState<A, W>::of(merge_two(math, a.exponentials(), b.exponentials()), a.linear + b.linear);
}

template <class FinishRow, class Math, class A, class W>
KOKKOS_INLINE_FUNCTION FinishRow finish_row(const Math& math, const LossState<A, W>& own,
                                            const LossState<A, W>& total) {
  return FinishRow(math, own.reference, total);
}

/// Two letters, each with its own tag.
template <class A>
struct LossMailbox {
  struct Letter {
    typename Mailbox<A>::Letter exponentials;
    SumMailbox::Letter linear;
  };

  Mailbox<A> exponentials;
  SumMailbox linear;

  KOKKOS_INLINE_FUNCTION Letter read(std::int64_t turn) const { return {exponentials.read(turn), linear.read(turn)}; }
  KOKKOS_INLINE_FUNCTION static bool holds(const Letter& letter, std::int64_t turn) {
    return Mailbox<A>::holds(letter.exponentials, turn) && SumMailbox::holds(letter.linear, turn);
  }
};

template <class A, class W>
struct MailboxFor<LossState<A, W>> {
  using type = LossMailbox<A>;
};

template <class A, class W>
KOKKOS_INLINE_FUNCTION void publish(LossMailbox<A>& mailbox, std::int64_t turn, const LossState<A, W>& state) {
  publish(mailbox.linear, turn, RowSum<float, double>{static_cast<double>(state.linear)});
  publish(mailbox.exponentials, turn, state.exponentials());
}

template <class State, class A>
KOKKOS_INLINE_FUNCTION State opened(const LossMailbox<A>& mailbox, const typename LossMailbox<A>::Letter& letter) {
  using Exponentials = decltype(State().exponentials());
  return State::of(opened<Exponentials>(mailbox.exponentials, letter.exponentials),
                   static_cast<typename State::Linear>(SumMailbox::open(letter.linear)));
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_REDUCTIONS_LOSS_STATE_HPP
