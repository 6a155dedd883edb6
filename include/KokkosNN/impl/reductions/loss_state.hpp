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
#include <KokkosNN/impl/reductions/reduced_state.hpp>
#include <KokkosNN/options.hpp>
#include <KokkosNN/vocabulary.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

// Partial state of a row whose loss needs a linear sum of logits besides (max, sum of exponentials), or of which the
// class of the greatest logit is wanted.

namespace KokkosNN::Impl {

/// The first of the greatest logits of a part of a row. A NaN is greater than all numbers, as it is for PyTorch.
template <class A>
struct GreatestLogit {
  A value             = -Kokkos::Experimental::infinity_v<A>;
  std::int64_t column = INT64_MAX;  ///< behind all columns: a part without any

  KOKKOS_INLINE_FUNCTION bool goes_before(const GreatestLogit& other) const {
    const bool is_nan = value != value, is_other_nan = other.value != other.value;
    const bool is_equal = is_nan ? is_other_nan : value == other.value;
    return is_equal ? column < other.column : is_nan || value > other.value;
  }
};

struct GreatestJoin {
  template <class A>
  KOKKOS_INLINE_FUNCTION GreatestLogit<A> operator()(const GreatestLogit<A>& a, const GreatestLogit<A>& b) const {
    return b.goes_before(a) ? b : a;
  }
};

template <class A>
KOKKOS_INLINE_FUNCTION GreatestLogit<A> shuffle_xor(const GreatestLogit<A>& greatest, int mask) {
  return {shuffle_xor(greatest.value, mask), shuffle_xor(greatest.column, mask)};
}

/// The greatest logit of a warp's lanes, where a call wants it.
template <class Params, class A>
KOKKOS_INLINE_FUNCTION GreatestLogit<A> greatest_of_lanes(const Params& params, const GreatestLogit<A>& mine,
                                                          int lanes) {
  return params.finds_class() ? reduce_lanes(mine, 1, lanes, GreatestJoin{}) : mine;
}

/// (max, sum) of a part of a row, the sum of w_c z_c, and the greatest logit. Its size is a multiple of 8, as RowSum's
/// is.
template <class A, class W>
struct alignas(8) LossState {
  using Linear = std::conditional_t<std::is_same_v<A, W>, A, double>;

  A reference               = -Kokkos::Experimental::infinity_v<A>;
  W sum                     = {};
  Linear linear             = {};
  GreatestLogit<A> greatest = {};

  KOKKOS_INLINE_FUNCTION RowState<A, W> exponentials() const { return {reference, sum}; }
  KOKKOS_INLINE_FUNCTION static LossState of(const RowState<A, W>& exponentials, Linear linear,
                                             const GreatestLogit<A>& greatest = {}) {
    return {exponentials.reference, exponentials.sum, linear, greatest};
  }
};

template <bool is_summed = false, class Params, class A, class W>
KOKKOS_INLINE_FUNCTION LossState<A, W> merge_warp(const Params& params, const LossState<A, W>& mine, int lanes) {
  return LossState<A, W>::of(merge_warp<is_summed>(params, mine.exponentials(), lanes),
                             reduce_lanes(mine.linear, 1, lanes, SumJoin{}),
                             greatest_of_lanes(params, mine.greatest, lanes));
}

template <bool repeated = false, class Params, class A, class W>
KOKKOS_INLINE_FUNCTION LossState<A, W> merge_lanes(const Params& params, const LossState<A, W>& mine, int lanes) {
  return LossState<A, W>::of(merge_lanes<repeated>(params, mine.exponentials(), lanes),
                             reduce_lanes(mine.linear, 1, lanes, SumJoin{}),
                             greatest_of_lanes(params, mine.greatest, lanes));
}

template <class Params, class A, class W>
KOKKOS_INLINE_FUNCTION LossState<A, W> merge_two(const Params& params, const LossState<A, W>& a,
                                                 const LossState<A, W>& b) {
  return LossState<A, W>::of(merge_two(params, a.exponentials(), b.exponentials()), a.linear + b.linear,
                             GreatestJoin{}(a.greatest, b.greatest));
}

template <class RowEpilogue, class Params, class A, class W>
KOKKOS_INLINE_FUNCTION RowEpilogue make_epilogue(const Params& params, const LossState<A, W>& own,
                                                 const LossState<A, W>& total) {
  return RowEpilogue(params, own.reference, total);
}

/// Status word of a LossState: words with a tag each.
template <class A>
struct LossStatusWord {
  struct Word {
    typename StatusWord<A>::Word exponentials;
    SumStatusWord::Word linear;
    TaggedDoubles<2>::Word greatest;
  };

  StatusWord<A> exponentials;
  SumStatusWord linear;
  TaggedDoubles<2> greatest;

  KOKKOS_INLINE_FUNCTION Word read(std::int64_t epoch) const {
    return {exponentials.read(epoch), linear.read(epoch), greatest.read(epoch)};
  }
  KOKKOS_INLINE_FUNCTION static bool holds(const Word& word, std::int64_t epoch) {
    return StatusWord<A>::holds(word.exponentials, epoch) && SumStatusWord::holds(word.linear, epoch) &&
           TaggedDoubles<2>::holds(word.greatest, epoch);
  }
};

template <class A, class W>
struct StatusWordFor<LossState<A, W>> {
  using type = LossStatusWord<A>;
};

template <class A, class W>
KOKKOS_INLINE_FUNCTION void publish(LossStatusWord<A>& status, std::int64_t epoch, const LossState<A, W>& state) {
  status.greatest.publish(
      epoch, {{static_cast<double>(state.greatest.value), Kokkos::bit_cast<double>(state.greatest.column)}});
  publish(status.linear, epoch, RowSum<float, double>{static_cast<double>(state.linear)});
  publish(status.exponentials, epoch, state.exponentials());
}

template <class State, class A>
KOKKOS_INLINE_FUNCTION State opened(const LossStatusWord<A>& status, const typename LossStatusWord<A>::Word& word) {
  using Exponentials        = decltype(State().exponentials());
  const Doubles<2> greatest = TaggedDoubles<2>::open(word.greatest);
  return State::of(opened<Exponentials>(status.exponentials, word.exponentials),
                   static_cast<typename State::Linear>(SumStatusWord::open(word.linear)),
                   {static_cast<A>(greatest.value[0]), Kokkos::bit_cast<std::int64_t>(greatest.value[1])});
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_REDUCTIONS_LOSS_STATE_HPP
