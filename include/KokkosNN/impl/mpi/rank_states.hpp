// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_MPI_RANK_STATES_HPP
#define KOKKOSNN_IMPL_MPI_RANK_STATES_HPP

#include <KokkosNN/impl/mpi/pair_exchange.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace KokkosNN::Impl {

/// States as an exchange leaves them for the kernels that use them: merged already, as by MPI's reduction, or of all
/// ranks, one rank's behind the other's, as by an allgather.
///
/// Gathered states are merged by the kernel that needs them, which saves a launch. The order is that of
/// PairExchange::reduce_in_order, so that it depends on the number of ranks alone, roundings grow with its logarithm,
/// and all ranks, which merge the same states, get the same bits.
template <class State>
struct RankStates {
  State* states;       ///< rank r's from r * count on
  std::int64_t count;  ///< of one rank
  int ranks;           ///< 1: merged already

  /// State i of the whole rows. Ranks' states are merged where they lie, as an array of any number of states is not for
  /// registers: each state must be asked for once.
  KOKKOS_INLINE_FUNCTION State merged(std::int64_t i) const {
    if (ranks == 1) return states[i];
    int doubling = 1;
    while (2 * doubling <= ranks) doubling *= 2;
    // Unless their number is a power of two, the first few ranks are merged with a neighbour ahead of the others.
    const int extra       = ranks - doubling;
    const auto state_of   = [&](int rank) -> State& { return states[i + rank * count]; };
    const auto numbered   = [&](int n) -> State& { return state_of(n < extra ? 2 * n : n + extra); };
    const auto merge_into = [](State& into, const State& from) { into = merge(into, from); };
    for (int n = 0; n < extra; ++n) merge_into(numbered(n), state_of(2 * n + 1));
    for (int bit = 1; bit < doubling; bit *= 2) {
      for (int n = 0; n < doubling; n += 2 * bit) merge_into(numbered(n), numbered(n + bit));
    }
    return states[i];
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_MPI_RANK_STATES_HPP
