// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_MASKED_CALL_HPP
#define KOKKOSNN_IMPL_CALL_MASKED_CALL_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/call.hpp>
#include <KokkosNN/impl/call/compiled_masked_calls.hpp>
#include <KokkosNN/impl/call/mask_checks.hpp>
#include <KokkosNN/impl/call/mask_layout.hpp>
#include <KokkosNN/instantiations/masked.hpp>
#include <KokkosNN/instantiations/masked_gradients.hpp>
#include <KokkosNN/mask.hpp>
#include <KokkosNN/options.hpp>
#include <KokkosNN/plan.hpp>

#include <Kokkos_Core.hpp>

#include <tuple>
#include <type_traits>

// A masked call: erases the mask, and picks the kernels for masks that look at single elements or do not.

namespace KokkosNN::Impl {

/// f(part) for each single mask.
template <Concepts::Mask M, class F>
void for_parts(const M& mask, const F& f) {
  if constexpr (is_single_mask<M>) {
    f(mask);
  } else {
    std::apply([&](const auto&... parts) { (f(parts), ...); }, mask.parts);
  }
}

inline void erase(MaskTensors& all, const CausalMask& mask) {
  all.is_causal     = true;
  all.causal_offset = mask.offset;
}
inline void erase(MaskTensors& all, const SlidingWindow& mask) {
  all.has_window    = true;
  all.left          = mask.left;
  all.right         = mask.right;
  all.window_offset = mask.offset;
}
template <class V>
void erase(MaskTensors& all, const BooleanMask<V>& mask) {
  all.keep = tensor_of(mask.view);
}
template <class V>
void erase(MaskTensors& all, const AdditiveBias<V>& mask) {
  all.bias = tensor_of(mask.view);
}
template <class V>
void erase(MaskTensors& all, const RowLengths<V>& mask) {
  all.lengths = tensor_of(mask.view);
}
template <class V>
void erase(MaskTensors& all, const DiagonalOffsets<V>& mask) {
  all.offsets = tensor_of(mask.view);
}
template <class V>
void erase(MaskTensors& all, const Alibi<V>& mask) {
  all.slopes       = tensor_of(mask.slopes);
  all.alibi_offset = mask.offset;
}

template <class V>
void erase(MaskTensors& all, const RowScales<V>& mask) {
  all.scales = tensor_of(mask.view);
}

inline void erase(MaskTensors& all, const Sinks& sinks) {
  if (!sinks.exist()) return;
  all.sinks.data          = sinks.data();
  all.sinks.type          = sinks.type();
  all.sinks.element_bytes = sinks.element_bytes();
  all.sinks.rank          = 1;
  all.sinks.extent[0]     = sinks.extent();
  all.sinks.stride[0]     = sinks.stride();
}

template <Concepts::Mask M>
MaskedOptions erased(const M& mask, const MaskedSoftmaxOptions& options) {
  MaskedOptions all{{.scale       = options.scale,
                     .masked_row  = options.masked_row,
                     .determinism = options.determinism,
                     .plan        = options.plan},
                    {}};
  for_parts(mask, [&](const auto& part) { erase(all.mask, part); });
  erase(all.mask, options.sinks);
  all.mask.softcap = options.softcap;
  return all;
}

/// Options of a forward call, which reads the sinks beside x of type X.
template <class Exec, class X, Concepts::Mask M>
MaskedOptions erased_with_sinks(RowOperator op, const M& mask, const MaskedSoftmaxOptions& options) {
  if (options.sinks.exist()) {
    require_sinks(to_string(op), options.sinks.template accessible_from<Exec>(), options.sinks.type(),
                  element_type<X>());
  }
  return erased(mask, options);
}

/// Options of the gradient, which reads the forward call's x.
template <Concepts::Mask M, Concepts::View XView>
MaskedOptions erased_with_logits(const M& mask, const MaskedSoftmaxOptions& options, const XView& x) {
  MaskedOptions all = erased(mask, options);
  all.mask.x        = tensor_of(x);
  return all;
}

/// The body of a forward call.
template <RowOperator op, class Exec, class XView, Concepts::Mask M, class YView>
void masked_call(const Exec& exec, const XView& x, const M& mask, const YView& y, const MaskedSoftmaxOptions& options) {
  check_masked<Exec, XView, M, YView, is_reduction(op)>();
  using X    = typename XView::non_const_value_type;
  using Call = MaskedCall<Exec, op, X, typename YView::non_const_value_type>;
  call_erased<op, Call>(exec, {tensor_of(x), tensor_of(y)}, erased_with_sinks<Exec, X>(op, mask, options));
}

/// The plan of a forward call.
template <class Exec, class XView, Concepts::Mask M, class YView>
RowPlan masked_plan(RowOperator op, const Exec& exec, const XView& x, const M& mask, const YView& y,
                    const MaskedSoftmaxOptions& options) {
  MaskChecks<Exec, XView>::check(static_cast<const M*>(nullptr));
  using X = typename XView::non_const_value_type;
  return plan_of(op, exec, {tensor_of(x), tensor_of(y)}, erased_with_sinks<Exec, X>(op, mask, options));
}

/// A forward call that is planned once.
template <RowOperator op, class Exec, class XView, class YView>
class PlannedMasked
    : public PlannedCall<
          op, Exec, MaskedCall<Exec, op, typename XView::non_const_value_type, typename YView::non_const_value_type>,
          MaskedOptions> {
  using Base = typename PlannedMasked::PlannedCall;
  using X    = typename XView::non_const_value_type;

 public:
  template <Concepts::Mask M>
  PlannedMasked(const Exec& exec, const XView& x, const M& mask, const YView& y,
                const MaskedSoftmaxOptions& options = {})
      : Base(exec, {tensor_of(x), tensor_of(y)}, erased_with_sinks<Exec, X>(op, mask, options)), m_x(x), m_y(y) {
    check_masked<Exec, XView, M, YView, is_reduction(op)>();
  }

 private:
  XView m_x;
  YView m_y;
};

/// The body of a gradient with respect to x.
template <RowOperator op, class Exec, class XView, class YView, class DyView, Concepts::Mask M, class DxView>
void masked_gradient_call(const Exec& exec, const XView& x, const YView& y, const DyView& dy, const M& mask,
                          const DxView& dx, const MaskedSoftmaxOptions& options) {
  check_masked_gradient<Exec, XView, YView, DyView, M, DxView>();
  using Call = MaskedGradientCall<Exec, op, typename YView::non_const_value_type, typename DyView::non_const_value_type,
                                  typename DxView::non_const_value_type>;
  call_erased<op, Call>(exec, {tensor_of(y), tensor_of(dx), tensor_of(dy)}, erased_with_logits(mask, options, x));
}

/// The plan of a gradient with respect to x.
template <class Exec, class XView, class YView, class DyView, Concepts::Mask M, class DxView>
RowPlan masked_gradient_plan(RowOperator op, const Exec& exec, const XView& x, const YView& y, const DyView& dy,
                             const M& mask, const DxView& dx, const MaskedSoftmaxOptions& options) {
  check_masked_gradient<Exec, XView, YView, DyView, M, DxView>();
  return plan_of(op, exec, {tensor_of(y), tensor_of(dx), tensor_of(dy)}, erased_with_logits(mask, options, x));
}

/// The gradient with respect to a bias, or, `to_heads`, to sinks, on erased Views of Y and D; the result has Y or
/// float.
template <class Exec, class Y, class D>
void run_mask_sums_erased(const char* function, const Exec& exec, const Tensor& y, const Tensor& dy,
                          const MaskTensors& mask, const Tensor& result, bool to_heads) {
  require_kernels<MaskSumsCall<Exec, Y, D>>();
  MaskSums whole;
  const MaskSums sums = normalise_mask_sums(function, y, dy, mask, result, to_heads, whole);
  if (is_verbose()) report_call(function, y, "sums over axes, in one order");
  MaskSumsCall<Exec, Y, D>::run(
      exec, {sums, whole, mask, static_cast<const Y*>(y.data), static_cast<const D*>(dy.data),
             const_cast<void*>(result.data), result.type == ElementType::f32, to_heads ? -1.0 : 1.0});
}

/// The body of a gradient with respect to a bias or to sinks.
template <class Exec, class YView, class DyView, Concepts::Mask M, class ResultView>
void mask_sums_call(const char* function, const Exec& exec, const YView& y, const DyView& dy, const M& mask,
                    const ResultView& result, bool to_heads) {
  run_mask_sums_erased<Exec, typename YView::non_const_value_type, typename DyView::non_const_value_type>(
      function, exec, tensor_of(y), tensor_of(dy), erased(mask, {}).mask, tensor_of(result), to_heads);
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_MASKED_CALL_HPP
