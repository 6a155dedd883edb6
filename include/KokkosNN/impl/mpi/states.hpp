// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_MPI_STATES_HPP
#define KOKKOSNN_IMPL_MPI_STATES_HPP

#include <KokkosNN/impl/inputs/rows.hpp>
#include <KokkosNN/impl/math/exp.hpp>
#include <KokkosNN/impl/mpi/pair_exchange.hpp>
#include <KokkosNN/impl/operators/cross_entropy.hpp>
#include <KokkosNN/impl/operators/softmax.hpp>
#include <KokkosNN/impl/operators/softmax_backward.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

// Pairs that ranks exchange, the conversion of a row's state to a pair and back, and the sources and outputs with which
// the kernels of the local operators use them.
//
// All pairs are MaxSumExp<double>, whatever the elements' type is: in double no rounding spoils a sum that a float
// would show. (max, sum) of a row are in units of scale x. A plain sum is (0, sum), and a value that one rank has, such
// as a label's logit, is (value, 1) there and the identity elsewhere. So one merge, one message and one deterministic
// order serve all operators.

namespace KokkosNN::Impl {

/// Logarithm of an exponential's reference, in two words; in one if the differences of neighbouring logits are so large
/// that the second word, no small number then, is of no use.
template <class Exp, class A>
KOKKOS_INLINE_FUNCTION DoubleDouble<double> logarithm_of(const Exp& exp, const ExpReference<A>& r) {
  const double scale = static_cast<double>(exp.scale()) + static_cast<double>(exp.scale_low);
  const double base = r.base, exponent = r.exponent;  // one of them is 0
  const double high = Kokkos::fma(scale, base, exponent * log_of_2_high);
  if (Kokkos::abs(high) >= 0x1p50) return {high, 0};
  const double low = Kokkos::fma(scale, base, Kokkos::fma(exponent, log_of_2_high, -high));
  return {high, low + exponent * log_of_2_rest};
}

template <class W>
KOKKOS_INLINE_FUNCTION W wide_sum_of(double sum) {
  if constexpr (std::is_arithmetic_v<W>) {
    return static_cast<W>(sum);
  } else {
    return W{sum, 0};
  }
}

template <class Params, class A, class W>
KOKKOS_INLINE_FUNCTION ShardPair pair_of(const Params& params, const RowState<A, W>& state) {
  const double sum = static_cast<double>(state.sum);
  if (!Kokkos::isfinite(state.reference)) return {static_cast<double>(state.reference), sum};
  const auto log = logarithm_of(params.exp, params.exp.at(state.reference));
  return {log.high, Kokkos::fma(sum, log.low, sum)};
}

template <class Params, class A, class W>
KOKKOS_INLINE_FUNCTION ShardPair pair_of(const Params&, const RowSum<A, W>& state) {
  return {0, static_cast<double>(state.sum)};
}

/// Converts the pair of a whole row to its state.
template <class State>
struct FromPair;

template <class A, class W>
struct FromPair<RowState<A, W>> {
  template <class Params>
  KOKKOS_INLINE_FUNCTION static RowState<A, W> state(const Params& params, const ShardPair& pair) {
    if (!Kokkos::isfinite(pair.max)) return {static_cast<A>(pair.max), wide_sum_of<W>(pair.sum)};
    const double scale = static_cast<double>(params.exp.scale()) + static_cast<double>(params.exp.scale_low);
    const A reference  = params.exp.reference_of(static_cast<A>(unscaled(pair.max, scale)));
    const auto log     = logarithm_of(params.exp, params.exp.at(reference));
    return {reference, wide_sum_of<W>(pair.sum * Kokkos::exp((pair.max - log.high) - log.low))};
  }
};

template <class A, class W>
struct FromPair<RowSum<A, W>> {
  template <class Params>
  KOKKOS_INLINE_FUNCTION static RowSum<A, W> state(const Params&, const ShardPair& pair) {
    return {wide_sum_of<W>(pair.sum)};
  }
};

/// Output of the rows' states of a shard: row r's is pairs[r].
struct PairOutput {
  static constexpr bool takes_states = true;

  ShardPair* pairs;

  template <class Params, class State>
  KOKKOS_INLINE_FUNCTION void store_state(const Params& params, const State& state, std::int64_t row) const {
    pairs[row] = pair_of(params, state);
  }
};

/// Output of a cross entropy's states: (max, sum), the label's logit from the thread that has it, and, with label
/// smoothing, the sum of all weighted logits.
struct LabelledPairOutput {
  static constexpr bool takes_states       = false;
  static constexpr bool takes_label_states = true;

  struct Row {
    const LabelledPairOutput& output;
  };

  ShardPair* pairs;
  int pairs_a_row;

  KOKKOS_INLINE_FUNCTION Row row(std::int64_t) const { return {*this}; }

  template <class Params, class State, class A>
  KOKKOS_INLINE_FUNCTION void store_state(const Params& params, const State& state, A label_logit, const Label& label,
                                          std::int64_t row) const {
    ShardPair* const own = pairs + row * pairs_a_row;
    if constexpr (Params::is_extended) {
      own[0] = pair_of(params, state.exponentials());
      if (pairs_a_row > 2) own[2] = {0, static_cast<double>(state.linear)};
    } else {
      own[0] = pair_of(params, state);
    }
    ShardPair of_label;
    if (label.is_here) of_label.push(static_cast<double>(label_logit));
    own[1] = of_label;
  }
};

/// Rows whose whole row's state is known beforehand.
template <class Rows, class State>
struct RowsWithStates : Rows {
  struct Row : decltype(std::declval<const Rows&>().row(0)) {
    static constexpr bool completes_state = true;

    State state;

    template <class Params>
    KOKKOS_INLINE_FUNCTION State completed(const Params&, const State&) const {
      return state;
    }
  };

  const State* states;

  KOKKOS_INLINE_FUNCTION Row row(std::int64_t r) const { return {Rows::row(r), states[r]}; }
};

/// Placement of RowsWithStates: Online reads a row again to write, and its reduction is left out.
template <class Online>
struct FinishingPlacement : Online {
  using Online::Online;

  template <class Row, class Params>
  KOKKOS_INLINE_FUNCTION typename Params::State reduce(const Row&, const RowPart&, const Params&, int) const {
    return {};
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_MPI_STATES_HPP
