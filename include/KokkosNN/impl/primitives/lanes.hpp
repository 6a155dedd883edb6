// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_PRIMITIVES_LANES_HPP
#define KOKKOSNN_IMPL_PRIMITIVES_LANES_HPP

#include <KokkosNN/online.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

// Hardware threads that work on one row, and the reductions among them. The kernels launch with vector length 1, so
// that a Kokkos thread is a hardware thread and neighbouring team ranks are the lanes of a warp (CUDA), a wavefront
// (HIP), or, on a host, each its own "warp" of one lane.

namespace KokkosNN::Impl {

/// Lanes that can shuffle with each other where this code runs.
KOKKOS_INLINE_FUNCTION constexpr int native_lanes() {
#if defined(__CUDA_ARCH__)
  return 32;
#elif defined(__HIP_DEVICE_COMPILE__)
  return __AMDGCN_WAVEFRONT_SIZE__;
#else
  return 1;
#endif
}

/// The value of the lane whose number differs by the bits of `mask`; all lanes of the warp must call.
template <class T>
KOKKOS_INLINE_FUNCTION T shuffle_xor(T value, [[maybe_unused]] int mask) {
#if defined(__CUDA_ARCH__)
  return __shfl_xor_sync(0xffffffffu, value, mask);
#elif defined(__HIP_DEVICE_COMPILE__)
  return __shfl_xor(value, mask);
#else
  return value;
#endif
}

/// Joins the values of neighbouring lanes at distances `from`, 2 `from`, ... below `lanes` (a power of two, at most a
/// warp); every lane gets the result, bit for bit the same if `join` is commutative.
template <class T, class Join>
KOKKOS_INLINE_FUNCTION T reduce_lanes(T value, [[maybe_unused]] int from, [[maybe_unused]] int lanes,
                                      [[maybe_unused]] const Join& join) {
  if constexpr (native_lanes() > 1) {
    if (from == 1 && lanes == native_lanes()) {  // the common case without a branch a step
#pragma unroll
      for (int distance = native_lanes() / 2; distance > 0; distance /= 2) {
        value = join(value, shuffle_xor(value, distance));
      }
      return value;
    }
#pragma unroll
    for (int distance = native_lanes() / 2; distance > 0; distance /= 2) {
      if (distance >= from && distance < lanes) value = join(value, shuffle_xor(value, distance));
    }
  }
  return value;
}

struct MaxJoin {
  template <class T>
  KOKKOS_INLINE_FUNCTION T operator()(T a, T b) const {
    return Kokkos::fmax(a, b);
  }
};

struct SumJoin {
  template <class T>
  KOKKOS_INLINE_FUNCTION T operator()(T a, T b) const {
    return a + b;
  }
};

/// The sum over the lanes of a group, in double, as the roundings of float sums would be seen in the result.
template <class A>
KOKKOS_INLINE_FUNCTION A sum_lanes(A value, int lanes) {
  if (native_lanes() == 1) return value;
  return static_cast<A>(reduce_lanes(static_cast<double>(value), 1, lanes, SumJoin{}));
}

/// The lanes' states joined: all exponentials in step, one a lane. Every lane gets the result.
template <class A, class ExpOfDifference>
KOKKOS_INLINE_FUNCTION MaxSumExp<A> merge_lanes(const MaxSumExp<A>& mine, int lanes, const ExpOfDifference& exp_of) {
  const A max     = reduce_lanes(mine.max, 1, lanes, MaxJoin{});
  const bool none = mine.max == -Kokkos::Experimental::infinity_v<A>;
  return {max, sum_lanes(none ? mine.sum : mine.sum * exp_of(mine.max, max), lanes)};
}

/// The threads of a team that share a row: `size` of them, this one being number `rank` of group number `index`.
struct RowGroup {
  int rank;
  int size;
  int index;

  template <class Member>
  KOKKOS_INLINE_FUNCTION static RowGroup of(const Member& team, int size) {
    const int thread = team.team_rank();
    if (size == team.team_size()) return {thread, size, 0};
    if (size == 1) return {0, 1, thread};
    // Smaller groups are powers of two; an integer division costs a GPU as much as the reductions do.
    return {thread & (size - 1), size, thread >> Kokkos::countr_zero(static_cast<unsigned>(size))};
  }

  /// Lanes of the group that can shuffle with this one.
  KOKKOS_INLINE_FUNCTION int lanes() const { return size < native_lanes() ? size : native_lanes(); }
  /// Warps that the group spans; more than one only if the group is the team.
  KOKKOS_INLINE_FUNCTION int warps() const { return (size + native_lanes() - 1) / native_lanes(); }
};

/// A team's scratch of so many bytes. A GPU has it at level 0 only; told so at compile time, Kokkos' bookkeeping
/// vanishes.
template <class Member>
KOKKOS_INLINE_FUNCTION void* team_scratch(const Member& team, [[maybe_unused]] int level, int bytes) {
  constexpr int alignment = 16;
  if (bytes == 0) return nullptr;
  KOKKOS_IF_ON_DEVICE((return team.team_scratch(0).get_shmem_aligned(bytes, alignment);))
  KOKKOS_IF_ON_HOST((return team.team_scratch(level).get_shmem_aligned(bytes, alignment);))
}

/// Pairs of team scratch that `exchange` needs for a group of `warps` warps: two rounds, so that one barrier a row is
/// enough (a warp can't write round i + 2 before all have read round i).
KOKKOS_INLINE_FUNCTION constexpr int exchange_pairs(int warps) { return warps > 1 ? 2 * warps : 0; }

/// Joins the warps' (max, sum) through team scratch with one barrier; every thread of the team gets the result. `round`
/// alternates between calls.
template <class A, class Member, class ExpOfDifference>
KOKKOS_INLINE_FUNCTION MaxSumExp<A> exchange(const Member& team, const RowGroup& group, MaxSumExp<A>* pairs, int round,
                                             const MaxSumExp<A>& mine, const ExpOfDifference& exp_of) {
  const int warps = group.warps();
  if (warps == 1) return mine;
  MaxSumExp<A>* slots = pairs + (round & 1) * warps;
  if (group.rank % native_lanes() == 0) slots[group.rank / native_lanes()] = mine;
  team.team_barrier();

  MaxSumExp<A> all;
  if constexpr (native_lanes() > 1) {
    const int lane = group.rank % native_lanes();
    if (lane < warps) all = slots[lane];
    all = merge_lanes(all, native_lanes(), exp_of);
  } else {
    for (int w = 0; w < warps; ++w) all = merge_with(all, slots[w], exp_of);
  }
  return all;
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_PRIMITIVES_LANES_HPP
