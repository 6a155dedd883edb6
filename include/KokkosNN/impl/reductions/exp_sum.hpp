// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_REDUCTIONS_EXP_SUM_HPP
#define KOKKOSNN_IMPL_REDUCTIONS_EXP_SUM_HPP

#include <KokkosNN/impl/gpu/device/exchange.hpp>
#include <KokkosNN/impl/gpu/device/pack_arithmetic.hpp>
#include <KokkosNN/impl/inputs/rows.hpp>
#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

// Sums of exponentials relative to one reference, over packs of logits: the accumulator, its lanes and its warp sum.

namespace KokkosNN::Impl {

template <class Params, class A>
KOKKOS_INLINE_FUNCTION A logit_of(const Params& params, A x) {
  if constexpr (Params::changes_logits) {
    return params.logit(x);
  } else {
    return x;
  }
}

/// Applies `logit` to a pack. Padding of -inf stays -inf.
template <class Params, class A, int V>
KOKKOS_INLINE_FUNCTION void make_logits(const Params& params, Pack<A, V>& pack) {
  if constexpr (Params::changes_logits) params.make_logits(pack);
}

/// Observer of an operator that needs no more of a row's logits than (max, sum).
struct NoObserver {
  template <class A, int V>
  KOKKOS_INLINE_FUNCTION void operator()(const Pack<A, V>&, std::int64_t, int) const {}
};

/// Number of exponentials that may be added together before their sum goes to ExponentialSums.
inline constexpr int exponentials_at_once = 8;

/// Lanes of sums of exponentials relative to one reference; each exponential is at most 2 and some roundings.
/// In `full` a sum starts above anything that is added to it, and keeps the rounding error of each addition in a second
/// word (Dekker's fast two-sum): added one by one in float alone, 32 numbers lose up to 8 ulp.
template <class Params, int lanes>
struct ExponentialSums {
  using A                       = typename Params::accumulator;
  using W                       = typename Params::wide_sum;
  static constexpr bool is_full = Params::accuracy == ExpAccuracy::full;
  /// Start of each sum: so large that few sums leave its power of two.
  static constexpr A start = is_full ? 128 : 0;
  static_assert(!is_full || start > 2 * exponentials_at_once);

  Pack<A, lanes> sum = filled<A, lanes>(start);
  Pack<A, lanes> low = filled<A, lanes>(A(0));

  KOKKOS_INLINE_FUNCTION void add(int l, A value) {
    const A s = sum[l] + value;
    if constexpr (is_full) low[l] += value - (s - sum[l]);
    sum[l] = s;
  }

  KOKKOS_INLINE_FUNCTION void add(const Pack<A, lanes>& values) {
    for (int l = 0; l < lanes; ++l) add(l, values[l]);
  }

  KOKKOS_INLINE_FUNCTION W lane(int l) const {
    if constexpr (!is_full) return sum[l];
    return W{sum[l] - start} + W{low[l]};
  }

  KOKKOS_INLINE_FUNCTION W all_lanes() const {
    Pack<W, lanes> all;
    for (int l = 0; l < lanes; ++l) all[l] = lane(l);
    return folded<1>(all)[0];
  }

  /// True if a warp can count the sum of up to `terms` terms a lane, each at most 2, in units of 2^-36.
  template <int terms>
  static constexpr bool counts_units =
      is_full && lanes == 1 && has_warp_sum && 2 * terms < start && std::is_same_v<W, double>;

  /// Sum over a group's lanes, for every lane; a lane has at most `terms` terms, each at most 2.
  template <int terms>
  KOKKOS_INLINE_FUNCTION W sum_of_warp(int group_lanes) const {
    if constexpr (counts_units<terms>) {
      if (group_lanes == warp_width()) return sum_of_whole_warp();
    }
    return reduce_lanes(all_lanes(), 1, group_lanes, SumJoin{});
  }

  /// Sum over a whole warp in units of 2^-36. A warp adds integers by one instruction: the bits of a float between
  /// `start` and twice `start` count units of 2^-16, and the low word is converted to units of 2^-36. The result is
  /// unspecified if a lane has NaN.
  KOKKOS_INLINE_FUNCTION std::uint64_t units_of_warp() const {
    static_assert(start == 128);
    constexpr float unit_2_36 = 0x1.8p-13f;  // added to a small float, it leaves units of 2^-36
    const auto bits_of        = [](float x) { return Kokkos::bit_cast<std::uint32_t>(x); };
    constexpr auto zeros      = [](float x) { return warp_width() * Kokkos::bit_cast<std::uint32_t>(x); };
    const std::uint32_t high  = warp_sum(bits_of(sum[0])) - zeros(start);
    const auto rest           = static_cast<std::int32_t>(warp_sum(bits_of(low[0] + unit_2_36)) - zeros(unit_2_36));
    return (std::uint64_t(high) << 20) + static_cast<std::int64_t>(rest);
  }
  KOKKOS_INLINE_FUNCTION bool is_number() const { return sum[0] == sum[0]; }

  /// Converts units of 2^-36 to a sum, rounded to A.
  KOKKOS_INLINE_FUNCTION static W sum_of_units(std::uint64_t units, bool is_number) {
    return W(static_cast<A>(units) * (is_number ? A(0x1p-36) : Kokkos::Experimental::quiet_NaN_v<A>));
  }

 private:
  KOKKOS_INLINE_FUNCTION W sum_of_whole_warp() const {
    constexpr double unit = 65536;  // a double whose last bit is 2^-36
    const double total    = Kokkos::bit_cast<double>(Kokkos::bit_cast<std::uint64_t>(unit) + units_of_warp()) - unit;
    return lanes_that(!is_number()) == 0 ? total : Kokkos::Experimental::quiet_NaN_v<double>;
  }
};

/// Number of exponentials that one pack adds to one lane: the packs of a tile are added two by two.
inline constexpr int exponentials_of_pack = exponentials_at_once / 2;

/// Number of sums for packs of V elements, each of which takes few exponentials of a pack.
template <int V>
inline constexpr int sum_lanes_of = V <= exponentials_of_pack ? 1 : V / exponentials_of_pack;
template <class Params, int V>
using PackSums = ExponentialSums<Params, sum_lanes_of<V>>;

/// Contents of a tile after its exponentials are added: x, or x - base, or the exponentials.
enum class Leaves { logits, differences, exponentials };
template <bool keep>
inline constexpr Leaves leaves_if = keep ? Leaves::exponentials : Leaves::logits;

/// Computes exp(scale (x - R)) of a pack, which has x for `Leaves::logits` and x - base otherwise, and folds it to the
/// lanes of PackSums.
template <Leaves leaves, SumFor use, class A, int V, class Params>
KOKKOS_INLINE_FUNCTION Pack<A, sum_lanes_of<V>> exponentials(const Params& params, Pack<A, V>& pack,
                                                             const ExpReference<A>& reference) {
  Pack<A, V> e;
  for (int v = 0; v < V; ++v) {
    const A d = leaves == Leaves::logits ? pack[v] - reference.base : pack[v];
    if constexpr (leaves == Leaves::exponentials) {
      e[v] = pack[v] = params.exp.of_difference(d, reference);
    } else {
      e[v] = params.exp.template term_of_difference<use>(d, reference);
    }
  }
  return folded<sum_lanes_of<V>>(e);
}

/// Adds the exponentials of a pack to `sums`: of x, or with `keep` of x - base, which the exponentials then replace.
template <bool keep, class A, int V, class Params>
KOKKOS_INLINE_FUNCTION void add_exponentials(const Params& params, Pack<A, V>& pack, const ExpReference<A>& reference,
                                             PackSums<Params, V>& sums) {
  sums.add(exponentials<leaves_if<keep>, SumFor::quotient>(params, pack, reference));
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_REDUCTIONS_EXP_SUM_HPP
