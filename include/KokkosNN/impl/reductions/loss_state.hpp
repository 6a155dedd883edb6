// SPDX-FileCopyrightText: 2026 The KokkosNN authors
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
#include <KokkosNN/vocabulary.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

// Partial state of a row whose loss needs a linear sum of logits besides (max, sum of exponentials).

namespace KokkosNN::Impl {

/// (max, sum) of a part of a row, and the sum of w_c z_c. Its size is a multiple of 8, as RowSum's is.
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

template <bool is_summed = false, class Params, class A, class W>
KOKKOS_INLINE_FUNCTION LossState<A, W> merge_warp(const Params& params, const LossState<A, W>& mine, int lanes) {
  return LossState<A, W>::of(merge_warp<is_summed>(params, mine.exponentials(), lanes),
                             reduce_lanes(mine.linear, 1, lanes, SumJoin{}));
}

template <bool repeated = false, class Params, class A, class W>
KOKKOS_INLINE_FUNCTION LossState<A, W> merge_lanes(const Params& params, const LossState<A, W>& mine, int lanes) {
  return LossState<A, W>::of(merge_lanes<repeated>(params, mine.exponentials(), lanes),
                             reduce_lanes(mine.linear, 1, lanes, SumJoin{}));
}

template <class Params, class A, class W>
KOKKOS_INLINE_FUNCTION LossState<A, W> merge_two(const Params& params, const LossState<A, W>& a,
                                                 const LossState<A, W>& b) {
  return LossState<A, W>::of(merge_two(params, a.exponentials(), b.exponentials()), a.linear + b.linear);
}

template <class RowEpilogue, class Params, class A, class W>
KOKKOS_INLINE_FUNCTION RowEpilogue make_epilogue(const Params& params, const LossState<A, W>& own,
                                                 const LossState<A, W>& total) {
  return RowEpilogue(params, own.reference, total);
}

/// Status word of a LossState: two words, each with its own tag.
template <class A>
struct LossStatusWord {
  struct Word {
    typename StatusWord<A>::Word exponentials;
    SumStatusWord::Word linear;
  };

  StatusWord<A> exponentials;
  SumStatusWord linear;

  KOKKOS_INLINE_FUNCTION Word read(std::int64_t epoch) const { return {exponentials.read(epoch), linear.read(epoch)}; }
  KOKKOS_INLINE_FUNCTION static bool holds(const Word& word, std::int64_t epoch) {
    return StatusWord<A>::holds(word.exponentials, epoch) && SumStatusWord::holds(word.linear, epoch);
  }
};

template <class A, class W>
struct StatusWordFor<LossState<A, W>> {
  using type = LossStatusWord<A>;
};

template <class A, class W>
KOKKOS_INLINE_FUNCTION void publish(LossStatusWord<A>& status, std::int64_t epoch, const LossState<A, W>& state) {
  publish(status.linear, epoch, RowSum<float, double>{static_cast<double>(state.linear)});
  publish(status.exponentials, epoch, state.exponentials());
}

template <class State, class A>
KOKKOS_INLINE_FUNCTION State opened(const LossStatusWord<A>& status, const typename LossStatusWord<A>::Word& word) {
  using Exponentials = decltype(State().exponentials());
  return State::of(opened<Exponentials>(status.exponentials, word.exponentials),
                   static_cast<typename State::Linear>(SumStatusWord::open(word.linear)));
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_REDUCTIONS_LOSS_STATE_HPP
