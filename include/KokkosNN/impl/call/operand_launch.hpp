// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_OPERAND_LAUNCH_HPP
#define KOKKOSNN_IMPL_CALL_OPERAND_LAUNCH_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/column_sums_launch.hpp>
#include <KokkosNN/impl/call/compiled_calls.hpp>
#include <KokkosNN/impl/call/cpu_levels.hpp>
#include <KokkosNN/impl/call/erased_rows.hpp>
#include <KokkosNN/impl/call/layout.hpp>
#include <KokkosNN/impl/call/rows_call.hpp>
#include <KokkosNN/impl/call/workspace.hpp>
#include <KokkosNN/impl/gpu/operand_inner.hpp>
#include <KokkosNN/impl/gpu/placement/operands.hpp>
#include <KokkosNN/impl/host/operand_inner.hpp>
#include <KokkosNN/impl/host/operands.hpp>
#include <KokkosNN/impl/operators/add_norm.hpp>
#include <KokkosNN/impl/operators/layer_norm.hpp>
#include <KokkosNN/impl/operators/layer_norm_backward.hpp>
#include <KokkosNN/impl/operators/rms_norm.hpp>
#include <KokkosNN/impl/operators/rms_norm_backward.hpp>
#include <KokkosNN/impl/operators/soft_cross_entropy.hpp>
#include <KokkosNN/impl/traits.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

// The way from a plan to a launch of the operators that are one struct (inputs/operands.hpp), in the kernels of all.

namespace KokkosNN::Impl {

template <RowOperator op, class Operator, class T, RowForm form, class A, int V, Backend backend>
struct Placements<op, OperandRows<Operator, T, form>, A, V, backend> {
  static_assert(held_rows<Operator> == held_tensors(op), "the planner counts with them");
  static constexpr int looping_packs = packs_when_looping(backend, V, op, form);
  static constexpr int scratch_packs =
      loads_two(op) ? most_packs(backend, op) / 2 : packs_from_scratch(backend, V, op, form);
  template <int K>
  using Registers = std::type_identity<OperandRegisterPlacement<Operator, T, V, K>>;
  using Scratch   = OperandScratchPlacement<Operator, T, V, scratch_packs>;
  using Online    = OperandOnlinePlacement<Operator, T, V, looping_packs>;
  template <class, bool>
  using OnHost = HostOperands<Operator, T, V>;
};

/// Numbers of an operator's operands (`operands_of`): 0 is the first row input, 1 the output; the other row inputs,
/// column operands, values a row and further results follow.
template <class Operator>
struct OperandNumbers {
  static constexpr int output = 1;
  static constexpr int input(int i) { return i == 0 ? 0 : i + 1; }
  static constexpr int column(int i) { return Operator::row_inputs + 1 + i; }
  static constexpr int value(int i) { return column(Operator::column_inputs) + i; }
  static constexpr int result(int i) { return value(Operator::row_scalars + Operator::row_outputs) + i; }

  /// Parameters of rows, among them the operands that have a value a column.
  template <class Params, class Options>
  static Params params(const Options& options, const RowsLayout& layout, const Tensors& tensors) {
    Params params{typename Operator::Params(options), {}, layout.cols};
    if constexpr (requires { params.own.fit(layout.rows, layout.cols); }) params.own.fit(layout.rows, layout.cols);
    for (int i = 0; i < Operator::column_inputs; ++i) {
      const Tensor& tensor = tensors[column(i)];
      params.columns[i]    = {
          {tensor.data, tensor.type == ElementType::f32}, layout.col_stride[column(i)], params.own.missing(i)};
    }
    return params;
  }

  /// Sets the values that rows have, which kernels read or write.
  template <class Values>
  static void set_values(Values& values, const RowsLayout& layout, const Tensors& tensors) {
    using A = typename Operator::accumulator;
    for (int i = 0; i < static_cast<int>(values.size()); ++i) {
      const int number = value(i);
      values[i]        = {static_cast<A*>(const_cast<void*>(tensors[number].data)), layout.map(number)};
    }
  }

  /// Enqueues the gradients of the weights.
  template <class T, class ExecutionSpace>
  static void sum_weight_gradients(const ExecutionSpace& exec, RowOperator op, const RowsLayout& layout,
                                   const Tensors& tensors) {
    using Terms = typename Operator::WeightTerms;
    int values[Operator::row_scalars], results[Terms::sums];
    for (int i = 0; i < Operator::row_scalars; ++i) values[i] = value(i);
    for (int i = 0; i < Terms::sums; ++i) results[i] = result(i);
    ColumnSumsOf<Terms, T, ExecutionSpace>{exec, to_string(op), layout, tensors}.run({input(0), input(1)}, values,
                                                                                     results);
  }
};

template <class ExecutionSpace, RowOperator op, class T>
struct Launcher<OperandCall<ExecutionSpace, op, T>> {
  static constexpr Backend backend = backend_of<ExecutionSpace>();
  using A                          = accumulator_t<T>;
  using Operator                   = typename OperatorFor<op, A>::type;
  using Params                     = OperandParams<Operator, T>;
  using Arguments                  = typename OperandCall<ExecutionSpace, op, T>::Arguments;
  static constexpr int V           = pack_size(backend, sizeof(T), sizeof(T), sizeof(A));

  static void run(const ExecutionSpace& exec, const Arguments& call) {
    if constexpr (Operator::has_weight_gradients) {
      // Ahead of the rows: dx may be written where x or dy is read.
      if (call.layout.sums_rows) Numbers::template sum_weight_gradients<T>(exec, op, call.layout, call.tensors);
      if (call.layout.rows == 0) return;
    }
    const Params params = Numbers::template params<Params>(call.options, call.layout, call.tensors);
    if (call.plan.strategy == RowStrategy::inner_lanes) return run_inner(exec, call, params);
    with_form<backend, false>(call.plan.form, [&](auto form) { run_rows<form()>(exec, call, params); });
  }

 private:
  using Numbers = OperandNumbers<Operator>;

  template <RowForm form>
  static void run_rows(const ExecutionSpace& exec, const Arguments& call, const Params& params) {
    OperandRows<Operator, T, form> source;
    for (int i = 0; i < Operator::row_inputs; ++i) {
      source.input[i] = rows_of<const T, form>(call, Numbers::input(i)).evicted(call.plan.eviction);
    }
    OperandOutput<Operator, T, form> to;
    // Rows that are not written are those that are read.
    to.rows = rows_of<T, form>(call, writes_rows<Operator> ? Numbers::output : Numbers::input(0));
    if constexpr (Operator::sums_inputs) to.sum = rows_of<T, form>(call, Numbers::result(0));
    Numbers::set_values(source.scalars, call.layout, call.tensors);
    Numbers::set_values(to.values, call.layout, call.tensors);
    run_on_rows<op, V>(exec, call, params, source, to);
  }

  static void run_inner(const ExecutionSpace& exec, const Arguments& call, const Params& params) {
    const RowPlan& plan = call.plan;
    require_kernel(plan, {backend, op, V, sizeof(T), sizeof(T), sizeof(A)});
    InnerOperands<Operator, T> operands;
    for (int i = 0; i < Operator::row_inputs; ++i) {
      operands.input[i] = inner_rows_of<const T>(call, Numbers::input(i), plan.eviction);
    }
    operands.output = inner_rows_of<T>(call, writes_rows<Operator> ? Numbers::output : Numbers::input(0));
    if constexpr (Operator::sums_inputs) operands.sum = inner_rows_of<T>(call, Numbers::result(0));
    Numbers::set_values(operands.scalars, call.layout, call.tensors);
    Numbers::set_values(operands.values, call.layout, call.tensors);
    const std::int64_t inner = call.layout.inner(), outer = call.layout.rows / inner;
    if constexpr (has_host_loops(backend)) {
      launch<max_threads_per_team>(exec, plan, HostOperandInner<Params, T>{operands, params, outer, inner, plan.pack});
    } else {
      constexpr int inner_V = gradient_inner_pack_size(backend, V);
      constexpr int K       = gradient_inner_packs(backend, inner_V);
      launch<max_threads_when_wide>(
          exec, plan,
          OperandInner<inner_V, K, Params, T>{operands, params, outer, inner, plan.threads_per_row, plan.scratch_level,
                                              static_cast<int>(plan.scratch_bytes)});
    }
  }
};

template <class ExecutionSpace, RowOperator op, class T>
void OperandCall<ExecutionSpace, op, T>::run(const ExecutionSpace& exec, const Arguments& call) {
  run_compiled<OperandCall>(exec, call);
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_OPERAND_LAUNCH_HPP
