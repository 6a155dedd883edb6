// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_DEVICE_EXCHANGE_HPP
#define KOKKOSNN_IMPL_GPU_DEVICE_EXCHANGE_HPP

#include <KokkosNN/impl/gpu/device/warp.hpp>
#include <KokkosNN/impl/operators/softmax.hpp>
#include <KokkosNN/impl/backend.hpp>
#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

// Reductions among the hardware threads that work on one row, within a warp and within a team.
// Kernels launch with vector length 1: a Kokkos thread is a hardware thread that owns its registers, and neighbouring
// team ranks are the lanes of a warp (CUDA) or of a wavefront (HIP); on a host each thread is a "warp" of one lane.
// These reductions are much of a warp's work besides its elements, which limits rows of 1024 to 4096 columns, split
// rows and small calls: a warp of softmax waits for memory only an eighth of its time there. Hence the pairs of warps
// lie at an address that the compiler knows (`exchange_slots`), a warp's maximum takes one instruction (`warp_max`),
// and its sum of exponentials, as integers, two (`sum_of_warp`).

namespace KokkosNN::Impl {
/// Brings a sum relative to `from` to the reference `to`. A part with only -inf or NaN has no reference and is
/// unchanged.
template <class Params, class W, class A>
KOKKOS_INLINE_FUNCTION W rescaled(const Params& params, W sum, A from, A to) {
  return from == -Kokkos::Experimental::infinity_v<A> ? sum : sum * params.exp.rescaling(from, to);
}

/// Merges the lanes' states; every lane gets the result and computes one exponential. `repeated`: all lanes of the warp
/// call, and every `lanes` of them have equal states.
template <bool repeated = false, class Params, class A, class W>
KOKKOS_INLINE_FUNCTION RowState<A, W> merge_lanes(const Params& params, const RowState<A, W>& mine, int lanes) {
  constexpr bool at_once = repeated && has_warp_max && std::is_same_v<A, float>;
  const A reference      = reduce_lanes(mine.reference, 1, at_once ? warp_width() : lanes, MaxJoin{});
  return {reference, reduce_lanes(rescaled(params, mine.sum, mine.reference, reference), 1, lanes, SumJoin{})};
}

/// True if the threads of a row merge their states.
template <class State>
inline constexpr bool is_joined = true;

/// Merges the lanes' states if all have one reference; `is_summed`: they have the sum already.
template <bool is_summed = false, class Params, class A, class W>
KOKKOS_INLINE_FUNCTION RowState<A, W> merge_warp(const Params&, const RowState<A, W>& mine, int lanes) {
  return {mine.reference, is_summed ? mine.sum : reduce_lanes(mine.sum, 1, lanes, SumJoin{})};
}

/// Merges two states; bitwise commutative.
template <class Params, class State = typename Params::State>
KOKKOS_INLINE_FUNCTION State merge_two(const Params& params, const State& a, const State& b) {
  const auto reference = a.reference > b.reference ? a.reference : b.reference;
  return {reference, rescaled(params, a.sum, a.reference, reference) + rescaled(params, b.sum, b.reference, reference)};
}

/// Logarithm of a power of two; Kokkos::countr_zero is a search on a GPU.
KOKKOS_INLINE_FUNCTION int log2_of(int power) {
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
  return __ffs(power) - 1;
#else
  return Kokkos::countr_zero(static_cast<unsigned>(power));
#endif
}

/// Smallest power of two that is at least n > 0.
KOKKOS_INLINE_FUNCTION int power_at_least(int n) {
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
  return n == 1 ? 1 : 1 << (32 - __clz(n - 1));
#else
  return static_cast<int>(Kokkos::bit_ceil(static_cast<unsigned>(n)));
#endif
}

/// Threads of a team that share a row: `size` threads; this one has number `rank` in group number `index`.
struct RowGroup {
  int rank;
  int size;
  int index;

  /// Group of one thread.
  KOKKOS_INLINE_FUNCTION static constexpr RowGroup alone() { return {0, 1, 0}; }

  template <class Member>
  KOKKOS_INLINE_FUNCTION static RowGroup of(const Member& team, int size) {
    const int thread = team.team_rank();
    if (size == team.team_size()) return {thread, size, 0};
    if (size == 1) return {0, 1, thread};
    // Smaller groups are powers of two; an integer division costs a GPU as much as the reductions do.
    return {thread & (size - 1), size, thread >> log2_of(size)};
  }

  /// Number of the group's lanes that can shuffle with this one.
  KOKKOS_INLINE_FUNCTION int lanes() const { return size < warp_width() ? size : warp_width(); }
  /// Number of warps that the group spans; more than one only if the group is the team.
  KOKKOS_INLINE_FUNCTION int warps() const {
    return static_cast<int>((unsigned(size) + warp_width() - 1) / warp_width());
  }
};

/// Returns a team's scratch of `bytes` bytes. A GPU has it at level 0 only; known at compile time, that removes Kokkos'
/// bookkeeping.
template <class Member>
KOKKOS_INLINE_FUNCTION void* team_scratch(const Member& team, [[maybe_unused]] int level, int bytes) {
  constexpr int alignment = 16;
  if (bytes == 0) return nullptr;
  KOKKOS_IF_ON_DEVICE((return team.team_scratch(0).get_shmem_aligned(bytes, alignment);))
  KOKKOS_IF_ON_HOST((return team.team_scratch(level).get_shmem_aligned(bytes, alignment);))
}

static_assert(sizeof(SoftmaxParams<double, ExpAccuracy::full>::State) <= most_state_bytes,
              "the planner asks for scratch for states of most_state_bytes");

/// Number of pairs in team scratch that `exchange` needs on a host for a group of `threads` threads: two rounds, so
/// that one barrier a row is enough (no thread writes round i + 2 before all have read round i).
KOKKOS_INLINE_FUNCTION constexpr int exchange_pairs([[maybe_unused]] int threads) {
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
  return 0;  // a GPU's kernel has them at an address that the compiler knows: Kokkos' bookkeeping takes time
#else
  return exchanged_states(threads);
#endif
}

/// Returns the slots of a round, one a warp.
template <class State>
KOKKOS_INLINE_FUNCTION State* exchange_slots([[maybe_unused]] State* pairs, [[maybe_unused]] int warps, int round) {
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
  constexpr int most_warps = max_threads_per_team / warp_width();
  __shared__ alignas(16) char placement[2 * most_warps * sizeof(State)];
  return reinterpret_cast<State*>(placement) + (round & 1) * most_warps;
#else
  return pairs + (round & 1) * warps;
#endif
}

/// Merges the warps' states with one barrier. Every thread of the team gets the result; with `for_first_warp` only the
/// first warp does, and the others do not wait for the merge. `round` alternates between calls.
template <bool for_first_warp = false, class Params, class Member, class State = typename Params::State>
KOKKOS_INLINE_FUNCTION State exchange(const Params& params, const Member& team, const RowGroup& group, State* pairs,
                                      int round, const State& mine) {
  const int warps = group.warps();
  if (warps == 1) return mine;
  State* const slots = exchange_slots(pairs, warps, round);
  if (group.rank % warp_width() == 0) slots[group.rank / warp_width()] = mine;
  team.team_barrier();
  if (for_first_warp && group.rank >= warp_width()) return mine;

  State all;
  if constexpr (warp_width() > 1) {
    // Every `lanes` lanes have all slots among them, and need only as many shuffles as `lanes` slots do.
    const int lanes = power_at_least(warps);
    const int slot  = group.rank & (lanes - 1);
    if (slot < warps) all = slots[slot];
    all = merge_lanes<true>(params, all, lanes);
  } else {
    for (int w = 0; w < warps; ++w) all = merge_two(params, all, slots[w]);
  }
  return all;
}

/// Broadcasts the first thread's state to the team with one barrier; `round` alternates with `exchange`.
template <class Member, class State>
KOKKOS_INLINE_FUNCTION State told_by_first(const Member& team, const RowGroup& group, State* pairs, int round,
                                           const State& mine) {
  const int warps = group.warps();
  if (warps == 1) return mine;
  State* const slots = exchange_slots(pairs, warps, round);
  if (group.rank == 0) *slots = mine;
  team.team_barrier();
  return *slots;
}

/// Sum in integer units, in two words: the sum of either word over a warp's lanes does not overflow.
struct alignas(8) CountedUnits {
  static constexpr int low_bits = 24;

  std::uint32_t low  = 0;
  std::uint32_t high = 0;

  CountedUnits() = default;
  KOKKOS_INLINE_FUNCTION explicit CountedUnits(std::uint64_t units)
      : low(static_cast<std::uint32_t>(units) & ((1u << low_bits) - 1)),
        high(static_cast<std::uint32_t>(units >> low_bits)) {}

  KOKKOS_INLINE_FUNCTION std::uint64_t sum_of_lanes() const {
    return (std::uint64_t(warp_sum(high)) << low_bits) + warp_sum(low);
  }
};

/// Team barrier that returns the conjunction of all threads' arguments.
KOKKOS_INLINE_FUNCTION bool barrier_and_all(bool yes) {
#if defined(__CUDA_ARCH__)
  return __syncthreads_and(yes);
#else
  return yes;  // not called
#endif
}

/// Reductions among the lanes of one warp that share a row: the maximum, then the sum of exponentials relative to it.
struct JoinOfLanes {
  int lanes;

  template <class A>
  KOKKOS_INLINE_FUNCTION A max(A mine) const {
    return reduce_lanes(mine, 1, lanes, MaxJoin{});
  }
  /// Sum of at most `terms` terms a lane.
  template <int terms, class Sums>
  KOKKOS_INLINE_FUNCTION typename Sums::W sum(const Sums& sums) const {
    return sums.template sum_of_warp<terms>(lanes);
  }
};

/// Reductions among all threads of a GPU's team, with a barrier each. All threads are then relative to the row's
/// maximum instead of their warp's: bringing warps to a common reference takes a lone team longer than a barrier. (In
/// rows that come in many waves one barrier is better, by 1 %.) It serves one row a team, as the next row would
/// overwrite the slots.
template <class Member>
struct JoinOfTeam {
  const Member& team;
  int rank;
  int warps;

  static constexpr int lanes = warp_width();

  template <class A>
  KOKKOS_INLINE_FUNCTION A max(A mine) const {
    A* const slots = tell(reduce_lanes(mine, 1, lanes, MaxJoin{}), max_round);
    team.team_barrier();
    return reduce_lanes(heard(slots, -Kokkos::Experimental::infinity_v<A>), 1, lanes, MaxJoin{});
  }

  template <int terms, class Sums>
  KOKKOS_INLINE_FUNCTION typename Sums::W sum(const Sums& sums) const {
    using W = typename Sums::W;
    if constexpr (Sums::template counts_units<terms>) {
      auto* const slots      = tell(CountedUnits(sums.units_of_warp()), sum_round);
      const bool are_numbers = barrier_and_all(sums.is_number());
      return sums.sum_of_units(heard(slots, CountedUnits{}).sum_of_lanes(), are_numbers);
    } else {
      W* const slots = tell(sums.template sum_of_warp<terms>(lanes), sum_round);
      team.team_barrier();
      return reduce_lanes(heard(slots, W{}), 1, lanes, SumJoin{});
    }
  }

 private:
  /// Rounds of the slots: other warps may still read the maxima when the sums are written.
  static constexpr int max_round = 0;
  static constexpr int sum_round = 1;

  KOKKOS_INLINE_FUNCTION int lane() const { return rank & (lanes - 1); }

  /// Writes a warp's value to its slot, which the team can read behind a barrier.
  template <class T>
  KOKKOS_INLINE_FUNCTION T* tell(const T& value, int round) const {
    T* const slots = exchange_slots<T>(nullptr, warps, round);
    if (lane() == 0) slots[rank / lanes] = value;
    return slots;
  }
  /// Reads a warp's value for each lane, `nothing` for lanes beyond the warps.
  template <class T>
  KOKKOS_INLINE_FUNCTION T heard(const T* slots, const T& nothing) const {
    return lane() < warps ? slots[lane()] : nothing;
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_DEVICE_EXCHANGE_HPP
