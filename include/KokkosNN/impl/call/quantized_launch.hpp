// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_QUANTIZED_LAUNCH_HPP
#define KOKKOSNN_IMPL_CALL_QUANTIZED_LAUNCH_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/compiled_quantized_calls.hpp>
#include <KokkosNN/impl/call/cpu_levels.hpp>
#include <KokkosNN/impl/call/launch.hpp>
#include <KokkosNN/impl/call/quantized_plan.hpp>
#include <KokkosNN/impl/call/verbose.hpp>
#include <KokkosNN/impl/gpu/quantized_rows.hpp>
#include <KokkosNN/impl/operators/layer_norm.hpp>
#include <KokkosNN/impl/operators/quantized_softmax.hpp>
#include <KokkosNN/impl/operators/rms_norm.hpp>
#include <KokkosNN/impl/traits.hpp>
#include <KokkosNN/impl/tuned_shapes.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <string>

// The way of a call whose results are quantised from its layout to a launch.

namespace KokkosNN::Impl {

/// The struct that computes an operator's results before they are quantised.
template <RowOperator op, class X>
struct QuantizedOperatorFor : OperatorFor<op, accumulator_t<X>> {};
template <class X>
struct QuantizedOperatorFor<RowOperator::softmax, X> {
  using type = QuantizedSoftmax<accumulator_t<X>, sizeof(X) <= 4 ? ExpAccuracy::fast : ExpAccuracy::full>;
};

template <class ExecutionSpace, RowOperator op, class X>
struct Launcher<QuantizedCall<ExecutionSpace, op, X>> {
  static constexpr Backend backend = backend_of<ExecutionSpace>();
  static constexpr bool is_softmax = op == RowOperator::softmax;
  static constexpr int V           = row_pack(backend, sizeof(X));
  static constexpr int K           = quantized_packs(backend);
  using Operator                   = typename QuantizedOperatorFor<op, X>::type;
  using Params                     = OperandParams<Operator, X>;
  using Arguments                  = typename QuantizedCall<ExecutionSpace, op, X>::Arguments;
  using Is                         = QuantizedTensors;

  static void run(const ExecutionSpace& exec, const Arguments& call) {
    const Params params      = params_of(call);
    const QuantizedPlan plan = make_quantized_plan(
        {element_type<X>(), int(sizeof(X)), call.layout.rows, call.layout.cols, is_aligned(call, params)},
        device_traits(exec));
    const std::string label = to_string(call.function, plan, call.is_float8);
    if (is_verbose()) report_call(call.function, call.tensors[Is::x], label);
    if constexpr (backend == Backend::cuda) {
      if (plan.form == RowForm::aligned) return launch_kernel<RowForm::aligned>(exec, label, call, plan, params);
    }
    launch_kernel<RowForm::strided>(exec, label, call, plan, params);
  }

 private:
  template <RowForm form>
  using Kernel = QuantizedRows<Operator, X, V, K, quantized_packs_again(backend, form, is_softmax, sizeof(X)), form>;

  /// True if packs of all rows and of the column operands begin at boundaries of 16 bytes.
  static bool is_aligned(const Arguments& call, const Params& params) {
    bool aligned = call.layout.form == RowForm::aligned;
    for (int i = 0; i < Operator::column_inputs; ++i) aligned = aligned && params.columns[i].is_aligned();
    return aligned;
  }

  template <RowForm form>
  static void launch_kernel(const ExecutionSpace& exec, const std::string& label, const Arguments& call,
                            const QuantizedPlan& plan, const Params& params) {
    launch<Kokkos::LaunchBounds<quantized_threads, quantized_teams(form, is_softmax, sizeof(X))>>(
        exec, label, Teams{plan.league_size, plan.team_size, 0, 0}, kernel_of<form>(call, plan, params));
  }

  template <RowForm form>
  static Kernel<form> kernel_of(const Arguments& call, const QuantizedPlan& plan, const Params& params) {
    const Tensor& scales = call.tensors[Is::scales];
    return {{static_cast<const X*>(call.tensors[Is::x].data), call.layout.col_stride[Is::x], call.layout.map(Is::x)},
            {static_cast<std::uint8_t*>(const_cast<void*>(call.tensors[Is::y].data)), call.layout.col_stride[Is::y],
             call.layout.map(Is::y)},
            {static_cast<float*>(const_cast<void*>(scales.data)), call.layout.map(Is::scales)},
            call.layout.rows,
            call.layout.cols,
            params,
            {call.is_float8, scales.exists()},
            plan.threads_per_row,
            plan.rows_per_team};
  }

  static Params params_of(const Arguments& call) {
    Params params{typename Operator::Params(call.options), {}, call.layout.cols};
    if constexpr (Operator::column_inputs > 0) {
      for (int i = 0; i < Operator::column_inputs; ++i) {
        const Tensor& tensor = call.tensors[Is::columns + i];
        params.columns[i]    = {{tensor.data, tensor.type == ElementType::f32},
                                call.layout.col_stride[Is::columns + i],
                                params.own.missing(i)};
      }
    }
    return params;
  }
};

template <class ExecutionSpace, RowOperator op, class X>
void QuantizedCall<ExecutionSpace, op, X>::run(const ExecutionSpace& exec, const Arguments& call) {
  run_compiled<QuantizedCall>(exec, call);
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_QUANTIZED_LAUNCH_HPP
