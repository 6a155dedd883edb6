// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_SOFTMAX_CALL_HPP
#define KOKKOSNN_IMPL_CALL_SOFTMAX_CALL_HPP

#include <KokkosNN/impl/call/call.hpp>
#include <KokkosNN/impl/call/checks.hpp>
#include <KokkosNN/impl/call/layout.hpp>
#include <KokkosNN/impl/call/compiled_calls.hpp>
#include <KokkosNN/instantiations/forward.hpp>
#include <KokkosNN/options.hpp>
#include <KokkosNN/plan.hpp>

namespace KokkosNN::Impl {

/// The Views of softmax, log_softmax or logsumexp.
template <RowOperator row_operator, class XView, class YView>
struct SoftmaxViews {
  static constexpr RowOperator op = row_operator;
  using Options                   = SoftmaxOptions;
  using X                         = typename XView::non_const_value_type;
  using Y                         = typename YView::non_const_value_type;
  template <class Exec>
  using Call = ViewCall<Exec, op, X, Y>;

  template <class Exec>
  static constexpr void check() {
    check_softmax<op, Exec, XView, YView>();
  }
  static Tensors tensors(const XView& x, const YView& y) { return {tensor_of(x), tensor_of(y)}; }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_SOFTMAX_CALL_HPP
