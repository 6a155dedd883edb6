// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_MASKED_LAUNCH_HPP
#define KOKKOSNN_IMPL_CALL_MASKED_LAUNCH_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/compiled_masked_calls.hpp>
#include <KokkosNN/impl/call/cpu_levels.hpp>
#include <KokkosNN/impl/call/erased_rows.hpp>
#include <KokkosNN/impl/call/mask_data.hpp>
#include <KokkosNN/impl/call/mask_layout.hpp>
#include <KokkosNN/impl/call/rows_call.hpp>
#include <KokkosNN/impl/host/masked.hpp>
#include <KokkosNN/impl/inputs/masked.hpp>
#include <KokkosNN/impl/traits.hpp>
#include <KokkosNN/options.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

// The way of a masked softmax, its logarithm or a masked log-sum-exp from a plan to a launch: its rows, in the kernels
// of rows without a mask. Whatever a mask is made of, it is data here; kernels are compiled for two kinds of masks,
// with and without what looks at single elements.

namespace KokkosNN::Impl {

/// Bytes of an element of x as the kernels hold it: logits that were changed stay in the accumulator type.
template <class X, class Y, bool has_element_mask>
constexpr int masked_x_bytes() {
  return has_element_mask ? sizeof(common_accumulator_t<X, Y>) : sizeof(X);
}

/// The half of a mask that rules out columns by their numbers.
inline AllowedColumns range_of(const MaskTensors& mask, const MaskLayout& layout, std::int64_t cols) {
  return {limits_of(mask, layout, cols), layout.query, layout.lengths, layout.offsets};
}

/// Parameters of a log-sum-exp, which is infinite where a sink is.
template <class A, ExpAccuracy accuracy>
struct LogSumExpParams : SoftmaxParams<A, accuracy> {
  static constexpr bool has_lse = true;

  using SoftmaxParams<A, accuracy>::SoftmaxParams;
};

/// The launches of an operator on rows of x with one of the two kinds of masks.
template <class ExecutionSpace, RowOperator op, class X, class Y, bool has_element_mask>
struct MaskedRowsLauncher {
  static constexpr bool is_lse     = is_reduction(op);
  static constexpr Backend backend = backend_of<ExecutionSpace>();
  using A                          = common_accumulator_t<X, Y>;
  static constexpr int y_bytes     = is_lse ? sizeof(X) : sizeof(Y);
  static constexpr int V           = pack_size(backend, masked_x_bytes<X, Y, has_element_mask>(), y_bytes, sizeof(A));
  static constexpr auto accuracy   = exp_accuracy_for<Y>;
  using Params   = std::conditional_t<is_lse, LogSumExpParams<A, accuracy>, SoftmaxParams<A, accuracy>>;
  using Elements = std::conditional_t<has_element_mask, ElementMask<X, A>, NoElementMask>;

  using Arguments = MaskedArguments<ExecutionSpace>;

  static void run(const ExecutionSpace& exec, const Arguments& call) {
    with_form<backend, false>(call.plan.form, [&](auto form) { run_rows<form()>(exec, call); });
  }

 private:
  using Tensor = SoftmaxTensors;

  template <RowForm form>
  static void run_rows(const ExecutionSpace& exec, const Arguments& call) {
    using Source = MaskedRows<const X, form, A, Elements>;
    const Source source{rows_of<const X, form>(call, Tensor::x),
                        range_of(call.options.mask, call.layout.mask, call.layout.cols), sinks_of(call),
                        elements_of(call)};
    const Params params(folds_scale(call) ? 1.0 : call.options.scale, call.options.masked_row);
    if constexpr (is_lse) {
      run_on_rows<op, V>(exec, call, params, source, values_of(call));
    } else {
      run_on_rows<op, V>(exec, call, params, source, rows_of<Y, form>(call, Tensor::y));
    }
  }

  /// The log-sum-exps.
  static MemoryScalars<Y, RowMap> values_of(const Arguments& call) {
    return {call.template data<Y>(Tensor::y), call.layout.map(Tensor::y)};
  }

  static bool folds_scale(const Arguments& call) { return has_element_mask && call.options.mask.changes_logits(); }

  static RowSinks<X> sinks_of(const Arguments& call) {
    return {pointer_to<X>(call.options.mask.sinks), call.layout.mask.sinks};
  }

  static Elements elements_of(const Arguments& call) {
    Elements elements;
    if constexpr (has_element_mask) {
      const MaskTensors& mask  = call.options.mask;
      const MaskLayout& layout = call.layout.mask;
      const double scale       = call.options.scale;
      elements.folds_scale     = folds_scale(call);
      elements.scale           = static_cast<A>(scale);
      elements.softcap         = static_cast<A>(mask.softcap);
      elements.inner_scale     = mask.softcap != 0 ? static_cast<A>(scale / mask.softcap) : A(1);
      elements.bias            = pointer_to<X>(mask.bias);
      elements.bias_stride     = layout.bias_col_stride;
      elements.bias_place      = layout.bias;
      elements.keep            = kept_bytes(mask);
      elements.keep_stride     = layout.keep_col_stride;
      elements.keep_place      = layout.keep;
      elements.slopes          = pointer_to<X>(mask.slopes);
      elements.slope_place     = layout.slopes;
      elements.alibi_offset    = mask.alibi_offset;
      elements.scales          = pointer_to<X>(mask.scales);
      elements.scale_place     = layout.scales;
    }
    return elements;
  }
};

template <class ExecutionSpace, RowOperator op, class X, class Y>
struct Launcher<MaskedCall<ExecutionSpace, op, X, Y>> {
  template <bool has_element_mask>
  using Rows      = MaskedRowsLauncher<ExecutionSpace, op, X, Y, has_element_mask>;
  using Arguments = MaskedArguments<ExecutionSpace>;
  using Params    = typename Rows<false>::Params;  // the same with single elements

  static void run(const ExecutionSpace& exec, const Arguments& call) {
    call.layout.has_element_mask ? Rows<true>::run(exec, call) : Rows<false>::run(exec, call);
  }
};

template <class ExecutionSpace, RowOperator op, class X, class Y>
void MaskedCall<ExecutionSpace, op, X, Y>::run(const ExecutionSpace& exec, const Arguments& call) {
  run_compiled<MaskedCall>(exec, call);
}
template <class ExecutionSpace, RowOperator op, class X, class Y>
void MaskedCall<ExecutionSpace, op, X, Y>::reserve(const ExecutionSpace& exec, const RowPlan& plan,
                                                   WorkspaceView<ExecutionSpace>& workspace) {
  reserve_split_workspace<typename Launcher<MaskedCall>::Params>(exec, plan, workspace);
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_MASKED_LAUNCH_HPP
