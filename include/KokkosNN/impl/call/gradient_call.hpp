// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_GRADIENT_CALL_HPP
#define KOKKOSNN_IMPL_CALL_GRADIENT_CALL_HPP

#include <KokkosNN/impl/call/call.hpp>
#include <KokkosNN/impl/call/checks.hpp>
#include <KokkosNN/instantiations/gradients.hpp>
#include <KokkosNN/impl/call/compiled_calls.hpp>
#include <KokkosNN/impl/call/layout.hpp>
#include <KokkosNN/options.hpp>
#include <KokkosNN/plan.hpp>

namespace KokkosNN::Impl {

/// The Views of a gradient; where an operator has no lse, dy stands in for it.
template <RowOperator row_operator, class XView, class LseView, class DyView, class DxView>
struct GradientViews {
  static constexpr RowOperator op = row_operator;
  using Options                   = SoftmaxOptions;
  using X                         = typename XView::non_const_value_type;
  using D                         = typename DyView::non_const_value_type;
  using Dx                        = typename DxView::non_const_value_type;
  template <class Exec>
  using Call = GradientCall<Exec, op, X, D, Dx>;

  template <class Exec>
  static constexpr void check() {
    check_gradient<op, Exec, XView, LseView, DyView, DxView>();
  }
  static Tensors tensors(const XView& y, const DyView& dy, const DxView& dx) {
    return {tensor_of(y), tensor_of(dx), tensor_of(dy)};
  }
  static Tensors tensors(const XView& x, const LseView& lse, const DyView& dlse, const DxView& dx) {
    return {tensor_of(x), tensor_of(dx), tensor_of(dlse), tensor_of(lse)};
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_GRADIENT_CALL_HPP
