// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_INPUTS_PAIRS_HPP
#define KOKKOSNN_IMPL_INPUTS_PAIRS_HPP

#include <KokkosNN/impl/gpu/device/tile.hpp>
#include <KokkosNN/impl/inputs/rows.hpp>
#include <KokkosNN/impl/operators/softmax_backward.hpp>
#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

// Rows of a gradient: two tensors side by side, or one tensor and two values a row.

namespace KokkosNN::Impl {

/// A row of y and of dy.
template <class YRow, class DyRow>
struct PairRow {
  using y_type                          = typename YRow::value_type;
  using dy_type                         = typename DyRow::value_type;
  static constexpr bool has_edges       = YRow::has_edges;
  static constexpr bool gives_packs     = false;
  static constexpr bool completes_state = false;
  static constexpr bool masks_pairs     = false;

  YRow y;
  DyRow dy;

  KOKKOS_INLINE_FUNCTION void clear_policy() { y.policy = dy.policy = {}; }

  /// Number of elements in front of the first whole pack: equal in all tensors, as the launch has checked.
  template <int V>
  KOKKOS_INLINE_FUNCTION int head() const {
    return y.template head<V>();
  }
};

/// Rows of y and of dy side by side.
template <class YRows, class DyRows>
struct PairRows {
  static_assert(YRows::form == DyRows::form);
  static constexpr RowForm form     = YRows::form;
  static constexpr bool looks_ahead = false;

  YRows y;
  DyRows dy;

  KOKKOS_INLINE_FUNCTION auto row(std::int64_t r) const {
    return PairRow<decltype(y.row(r)), decltype(dy.row(r))>{y.row(r), dy.row(r)};
  }
};

/// Rows of x, each with its log-sum-exp and the gradient of that.
template <class XRows, class L, class A>
struct ScalarRows {
  static constexpr RowForm form     = XRows::form;
  static constexpr bool looks_ahead = false;

  template <class XRow>
  struct Row {
    static constexpr bool has_edges       = XRow::has_edges;
    static constexpr bool gives_packs     = false;
    static constexpr bool completes_state = false;
    static constexpr bool masks_pairs     = false;

    XRow x;
    RowScalars<A> scalars;

    KOKKOS_INLINE_FUNCTION void clear_policy() {}

    template <int V>
    KOKKOS_INLINE_FUNCTION int head() const {
      return x.template head<V>();
    }
  };

  XRows x;
  const L* lse;
  const L* dlse;
  MapOf<form> lse_map;
  MapOf<form> dlse_map;

  KOKKOS_INLINE_FUNCTION auto row(std::int64_t r) const {
    return Row<decltype(x.row(r))>{x.row(r), {static_cast<A>(lse[lse_map(r)]), static_cast<A>(dlse[dlse_map(r)])}};
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_INPUTS_PAIRS_HPP
