// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_INPUTS_MASKED_PAIRS_HPP
#define KOKKOSNN_IMPL_INPUTS_MASKED_PAIRS_HPP

#include <KokkosNN/impl/gpu/device/pair_tile.hpp>
#include <KokkosNN/impl/inputs/masked.hpp>
#include <KokkosNN/impl/inputs/rows.hpp>
#include <KokkosNN/impl/operators/softmax_backward.hpp>
#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

// Rows of y and dy under a mask: a masked element counts as 0 in both, whatever its value, or as -inf in logarithms y.

namespace KokkosNN::Impl {

/// Elements that a gradient reads besides y and dy: a boolean mask, x where a softcap bends the logits, and scales of
/// rows.
template <class X, class A>
struct GradientElements {
  const std::uint8_t* keep = nullptr;
  std::int64_t keep_stride = 0;
  RowMap keep_place;
  const X* x            = nullptr;  ///< only with a softcap
  std::int64_t x_stride = 0;
  RowMap x_place;
  A inner_scale = 1;  ///< scale / softcap
  TypedPointer<X> scales;
  RowMap scale_place;

  /// Elements of one row.
  struct Row {
    const GradientElements& all;
    const std::uint8_t* keep;
    const X* x;
    A scale;  ///< the row's own

    KOKKOS_INLINE_FUNCTION bool looks() const { return keep != nullptr; }
    KOKKOS_INLINE_FUNCTION bool keeps(std::int64_t column) const {
      return keep[column * anew_argument(all.keep_stride)] != 0;
    }
    KOKKOS_INLINE_FUNCTION bool bends() const { return x != nullptr || all.scales.exists(); }

    /// Derivative of a column's logit, over the call's scale: the row's scale, times that of tanh at a capped logit.
    KOKKOS_INLINE_FUNCTION A slope(std::int64_t column) const {
      if (x == nullptr) return scale;
      const A inner = static_cast<A>(x[column * anew_argument(all.x_stride)]) * (all.inner_scale * scale);
      const A e     = Kokkos::exp(A(-2) * Kokkos::abs(inner));
      return scale * (A(4) * e / ((A(1) + e) * (A(1) + e)));  // without the cancellation of 1 - tanh^2
    }
  };

  KOKKOS_INLINE_FUNCTION Row row(std::int64_t r) const {
    return {*this, keep != nullptr ? keep + keep_place(r) : nullptr, x != nullptr ? x + x_place(r) : nullptr,
            scales.exists() ? scales.template load<A>(scale_place(r)) : A(1)};
  }
};

/// Elements of a mask that rules out columns by their numbers only.
struct NoGradientElements {
  struct Row {
    KOKKOS_INLINE_FUNCTION static constexpr bool looks() { return false; }
    KOKKOS_INLINE_FUNCTION static constexpr bool keeps(std::int64_t) { return true; }
    KOKKOS_INLINE_FUNCTION static constexpr bool bends() { return false; }
    KOKKOS_INLINE_FUNCTION static constexpr int slope(std::int64_t) { return 1; }
  };
  KOKKOS_INLINE_FUNCTION Row row(std::int64_t) const { return {}; }
};

/// Row of y, numbers or logarithms, and of dy under a mask.
template <class YRow, class DyRow, class ElementsRow, bool has_logarithms>
struct MaskedPairRow {
  static constexpr bool has_edges       = false;
  static constexpr bool gives_packs     = true;
  static constexpr bool completes_state = false;
  static constexpr bool masks_pairs     = true;

  YRow y;
  DyRow dy;
  ColumnRange allowed;
  ElementsRow elements;

  template <int V>
  KOKKOS_INLINE_FUNCTION ColumnRange packs(std::int64_t cols) const {
    return packs_of<V>(allowed, cols);
  }

  KOKKOS_INLINE_FUNCTION void clear_policy() { y.policy = dy.policy = {}; }

  /// Sets masked elements of the packs at column start + `place` to 0, or to -inf.
  template <class Y, class D, int V>
  KOKKOS_INLINE_FUNCTION void mask(HeldPack<Y, V>& of_y, HeldPack<D, V>& of_dy, std::int64_t start, int place) const {
    if_masked<V>(start, place, [&](const bool (&allows)[V]) {
      of_y.template keep_where<has_logarithms>(allows);
      of_dy.template keep_where<false>(allows);
    });
  }
  /// Sets those of dy's pack to 0, for a sum that does not read y.
  template <class D, int V>
  KOKKOS_INLINE_FUNCTION void mask_gradient(HeldPack<D, V>& of_dy, std::int64_t start, int place) const {
    if_masked<V>(start, place, [&](const bool (&allows)[V]) { of_dy.template keep_where<false>(allows); });
  }

  /// Turns a gradient with respect to logits, capped or of a scale of their row, into one with respect to x. What the
  /// mask rules out is not looked at: 0 times the slope of a NaN is no 0.
  template <class A, int V>
  KOKKOS_INLINE_FUNCTION void chain(Pack<A, V>& gradient, std::int64_t start, int place) const {
    if (!elements.bends()) return;
    const std::int64_t column = start + place;
    for (int v = 0; v < V; ++v) {
      if (is_allowed(column + v)) gradient[v] *= static_cast<A>(elements.slope(column + v));
    }
  }

 private:
  KOKKOS_INLINE_FUNCTION bool is_allowed(std::int64_t column) const {
    return column >= allowed.begin && column < allowed.end && (!elements.looks() || elements.keeps(column));
  }
  /// Calls f(which elements of a pack are allowed) unless all are.
  template <int V, class F>
  KOKKOS_INLINE_FUNCTION void if_masked(std::int64_t start, int place, const F& f) const {
    const std::int64_t column = start + opaque(place);
    if (column >= allowed.begin && column + V <= allowed.end && !elements.looks()) return;
    bool allows[V];
    for (int v = 0; v < V; ++v) allows[v] = is_allowed(column + v);
    f(allows);
  }
};

/// Rows of y and of dy side by side, under a mask.
template <class YRows, class DyRows, class Elements, bool has_logarithms>
struct MaskedPairRows {
  static_assert(YRows::form == DyRows::form && YRows::form != RowForm::misaligned);
  static constexpr RowForm form          = YRows::form;
  static constexpr bool has_element_mask = !std::is_same_v<Elements, NoGradientElements>;
  static constexpr bool looks_ahead      = false;

  YRows y;
  DyRows dy;
  AllowedColumns range;
  Elements elements;

  KOKKOS_INLINE_FUNCTION auto row(std::int64_t r) const {
    using Row = MaskedPairRow<decltype(y.row(r)), decltype(dy.row(r)), decltype(elements.row(r)), has_logarithms>;
    return Row{y.row(r), dy.row(r), range(r), elements.row(r)};
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_INPUTS_MASKED_PAIRS_HPP
