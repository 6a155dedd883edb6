// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_ITEMS_HPP
#define KOKKOSNN_IMPL_GPU_ITEMS_HPP

#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

// Small steps of attention's relatives, on a GPU and on a host: each item is one thread's.

namespace KokkosNN::Impl {

/// Sum of a_d b_d, by partial sums that do not wait for each other.
template <class A, class X>
KOKKOS_INLINE_FUNCTION A strided_product(const X* a, std::int64_t a_stride, const X* b, std::int64_t b_stride,
                                         std::int64_t count) {
  constexpr int parts = 8;
  A sum[parts]        = {};
  std::int64_t d      = 0;
  if (a_stride == 1 && b_stride == 1) {
    for (; d + parts <= count; d += parts) {
      KOKKOSNN_IMPL_UNROLL
      for (int p = 0; p < parts; ++p) {
        sum[p] = Kokkos::fma(static_cast<A>(a[d + p]), static_cast<A>(b[d + p]), sum[p]);
      }
    }
  } else {
    for (; d + parts <= count; d += parts) {
      KOKKOSNN_IMPL_UNROLL
      for (int p = 0; p < parts; ++p) {
        sum[p] = Kokkos::fma(static_cast<A>(a[(d + p) * a_stride]), static_cast<A>(b[(d + p) * b_stride]), sum[p]);
      }
    }
  }
  for (; d < count; ++d) sum[0] = Kokkos::fma(static_cast<A>(a[d * a_stride]), static_cast<A>(b[d * b_stride]), sum[0]);
  return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

/// A step, whose items() go to a league's threads in turn.
template <class Step>
struct ItemsKernel {
  Step step;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const auto size         = static_cast<std::int64_t>(team.team_size());
    const std::int64_t all  = step.items();
    const std::int64_t leap = team.league_size() * size;
    for (std::int64_t i = team.league_rank() * size + team.team_rank(); i < all; i += leap) step(i);
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_ITEMS_HPP
