// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_TEAM_HPP
#define KOKKOSNN_TEAM_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/online.hpp>
#include <KokkosNN/options.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

// The softmax family of one row inside a user's own TeamPolicy kernel.
//
// Rows are rank-1 Views, or anything with value_type, extent(0) and operator()(i), in any memory that the team can
// reach (team scratch included); y may be x. `team_*` must be called by all threads of the team and uses
// Kokkos::TeamVectorRange inside, with a team barrier before and after its writes; `thread_*` is called by one thread
// of the team and uses its vector lanes, Kokkos::ThreadVectorRange inside. Accumulation is in `accumulator_t`; NaN,
// infinities and masked rows as in softmax.hpp. Cost: the row is read three times and written once, in whatever memory
// it lives.

namespace KokkosNN {

/// Options of the device-callable functions; `scale` as in SoftmaxOptions, not checked.
struct TeamSoftmaxOptions {
  double scale               = 1.0;
  MaskedRowPolicy masked_row = MaskedRowPolicy::nan;
};

namespace Impl {

/// The ranges of a whole team.
template <Concepts::TeamMember Member>
struct WholeTeam {
  const Member& member;
  KOKKOS_FUNCTION auto range(std::int64_t n) const { return Kokkos::TeamVectorRange(member, n); }
  KOKKOS_FUNCTION void barrier() const { member.team_barrier(); }
};

/// The ranges of one thread's vector lanes, which run in step.
template <Concepts::TeamMember Member>
struct OneThread {
  const Member& member;
  KOKKOS_FUNCTION auto range(std::int64_t n) const { return Kokkos::ThreadVectorRange(member, n); }
  KOKKOS_FUNCTION void barrier() const {}
};

/// A scale in two factors: halves of logits, all of one sign with the scale, have a difference that is a number.
template <class A>
struct NestedScale {
  A half;   // 1/2 with the scale's sign
  A twice;  // twice the scale without it

  KOKKOS_FUNCTION explicit NestedScale(double scale)
      : half(A(scale < 0 ? -0.5 : 0.5)), twice(A(2 * (scale < 0 ? -scale : scale))) {}
};

template <class A>
struct NestedRowState {
  A half_max;  // of the largest logit, 0 where there is none
  A sum;       // of exp(scale (logit - max))
  bool empty;  // only -inf in the row
};

/// Largest logit, then the sum of exponentials: two reads, no exponential more than needed. `finds_infinity`: the sum
/// of a row with +inf is a number, unless there is a NaN, too.
template <bool finds_infinity = false, class Group, class Row, class A>
KOKKOS_FUNCTION NestedRowState<A> reduce_row(const Group& group, const Row& x, const NestedScale<A>& scale) {
  const auto cols  = static_cast<std::int64_t>(x.extent(0));
  const A infinity = Kokkos::Experimental::infinity_v<A>;
  A max            = -infinity;
  Kokkos::parallel_reduce(
      group.range(cols),
      [&](std::int64_t i, A& m) {
        const A v = scale.half * A(x(i));
        m         = v > m ? v : m;
      },
      Kokkos::Max<A>(max));
  if (!(max > -infinity)) max = 0;

  A sum = 0;
  if (finds_infinity && max == infinity) {
    Kokkos::parallel_reduce(
        group.range(cols),
        [&](std::int64_t i, A& s) {
          const A v = A(x(i));
          s += v == v ? A(1) : v;
        },
        Kokkos::Sum<A>(sum));
  } else {
    Kokkos::parallel_reduce(
        group.range(cols), [&](std::int64_t i, A& s) { s += Kokkos::exp(scale.twice * (scale.half * A(x(i)) - max)); },
        Kokkos::Sum<A>(sum));
  }
  return {max, sum, sum == A(0)};
}

/// y_i = finish(scale (x_i - max))
template <class Group, class XRow, class YRow, class A, class Epilogue>
KOKKOS_FUNCTION void write_row(const Group& group, const XRow& x, const YRow& y, const NestedScale<A>& scale,
                               A half_max, const Epilogue& epilogue) {
  using Y = typename YRow::value_type;
  group.barrier();
  const auto cols = static_cast<std::int64_t>(x.extent(0));
  Kokkos::parallel_for(group.range(cols),
                       [&](std::int64_t i) { y(i) = Y(epilogue(scale.twice * (scale.half * A(x(i)) - half_max))); });
  group.barrier();
}

template <class XRow, class YRow>
using row_accumulator_t =
    common_accumulator_t<typename XRow::non_const_value_type, typename YRow::non_const_value_type>;

/// Result of an empty row: NaN, or 0 by the policy.
template <class A>
KOKKOS_FUNCTION A empty_value(MaskedRowPolicy policy) {
  return policy == MaskedRowPolicy::zero ? A(0) : Kokkos::Experimental::quiet_NaN_v<A>;
}

template <class Group, class XRow, class YRow>
KOKKOS_FUNCTION void softmax_row(const Group& group, const XRow& x, const YRow& y, const TeamSoftmaxOptions& options) {
  using A = row_accumulator_t<XRow, YRow>;
  const NestedScale<A> scale(options.scale);
  const auto state = reduce_row(group, x, scale);
  const A inverse  = state.empty ? empty_value<A>(options.masked_row) : A(1) / state.sum;
  write_row(group, x, y, scale, state.half_max, [=](A v) { return Kokkos::exp(v) * inverse; });
}

template <class Group, class XRow, class YRow>
KOKKOS_FUNCTION void log_softmax_row(const Group& group, const XRow& x, const YRow& y,
                                     const TeamSoftmaxOptions& options) {
  using A = row_accumulator_t<XRow, YRow>;
  const NestedScale<A> scale(options.scale);
  const auto state = reduce_row(group, x, scale);
  const A log_sum  = state.empty ? empty_value<A>(options.masked_row) : Kokkos::log(state.sum);
  write_row(group, x, y, scale, state.half_max, [=](A v) { return v - log_sum; });
}

template <class Group, class XRow>
KOKKOS_FUNCTION accumulator_t<typename XRow::non_const_value_type> logsumexp_row(const Group& group, const XRow& x,
                                                                                 const TeamSoftmaxOptions& options) {
  using A = accumulator_t<typename XRow::non_const_value_type>;
  const NestedScale<A> scale(options.scale);
  const auto state = reduce_row<true>(group, x, scale);
  if (state.empty) return -Kokkos::Experimental::infinity_v<A>;
  return scale.twice * state.half_max + Kokkos::log(state.sum);
}

}  // namespace Impl

/// y = softmax(scale x) over one row, by a whole team; all its threads call.
template <Concepts::TeamMember Member, class XRow, class YRow>
KOKKOS_FUNCTION void team_softmax(const Member& member, const XRow& x, const YRow& y,
                                  const TeamSoftmaxOptions& options = {}) {
  Impl::softmax_row(Impl::WholeTeam<Member>{member}, x, y, options);
}

/// y = log_softmax(scale x) over one row, by a whole team; all its threads call.
template <Concepts::TeamMember Member, class XRow, class YRow>
KOKKOS_FUNCTION void team_log_softmax(const Member& member, const XRow& x, const YRow& y,
                                      const TeamSoftmaxOptions& options = {}) {
  Impl::log_softmax_row(Impl::WholeTeam<Member>{member}, x, y, options);
}

/// log(sum exp(scale x)) of one row, by a whole team; all its threads call and get the value.
template <Concepts::TeamMember Member, class XRow>
KOKKOS_FUNCTION auto team_logsumexp(const Member& member, const XRow& x, const TeamSoftmaxOptions& options = {}) {
  return Impl::logsumexp_row(Impl::WholeTeam<Member>{member}, x, options);
}

/// y = softmax(scale x) over one row, by the vector lanes of one thread.
template <Concepts::TeamMember Member, class XRow, class YRow>
KOKKOS_FUNCTION void thread_softmax(const Member& member, const XRow& x, const YRow& y,
                                    const TeamSoftmaxOptions& options = {}) {
  Impl::softmax_row(Impl::OneThread<Member>{member}, x, y, options);
}

/// y = log_softmax(scale x) over one row, by the vector lanes of one thread.
template <Concepts::TeamMember Member, class XRow, class YRow>
KOKKOS_FUNCTION void thread_log_softmax(const Member& member, const XRow& x, const YRow& y,
                                        const TeamSoftmaxOptions& options = {}) {
  Impl::log_softmax_row(Impl::OneThread<Member>{member}, x, y, options);
}

/// log(sum exp(scale x)) of one row, by the vector lanes of one thread.
template <Concepts::TeamMember Member, class XRow>
KOKKOS_FUNCTION auto thread_logsumexp(const Member& member, const XRow& x, const TeamSoftmaxOptions& options = {}) {
  return Impl::logsumexp_row(Impl::OneThread<Member>{member}, x, options);
}

}  // namespace KokkosNN

#endif  // KOKKOSNN_TEAM_HPP
