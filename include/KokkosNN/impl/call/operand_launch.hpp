// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_OPERAND_LAUNCH_HPP
#define KOKKOSNN_IMPL_CALL_OPERAND_LAUNCH_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/operand_layout.hpp>
#include <KokkosNN/impl/call/rows_call.hpp>
#include <KokkosNN/impl/call/workspace.hpp>
#include <KokkosNN/impl/gpu/operand_inner.hpp>
#include <KokkosNN/impl/gpu/placement/operands.hpp>
#include <KokkosNN/impl/operators/layer_norm.hpp>
#include <KokkosNN/impl/operators/layer_norm_backward.hpp>
#include <KokkosNN/impl/operators/rms_norm.hpp>
#include <KokkosNN/impl/operators/rms_norm_backward.hpp>
#include <KokkosNN/impl/traits.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

// The way from a plan to a launch of the operators that are one struct (inputs/operands.hpp), in the kernels of all.

namespace KokkosNN::Impl {

template <RowOperator op, class Operator, class T, RowForm form, class A, int V, Backend backend>
struct Placements<op, OperandRows<Operator, T, form>, A, V, backend> {
  static constexpr int looping_packs = packs_when_looping(backend, V, op, form);
  static constexpr int scratch_packs = is_gradient(op) ? most_packs(backend, op) / 2 : packs_from_scratch(backend, V, op, form);
  template <int K>
  using Registers = std::type_identity<OperandRegisterPlacement<Operator, T, V, K>>;
  using Scratch   = OperandScratchPlacement<Operator, T, V, scratch_packs>;
  using Online    = OperandOnlinePlacement<Operator, T, V, looping_packs>;
};

/// What kernels work on, as pointers, in the order in which the operator has its operands.
template <class Operator, class T>
struct OperandPointers {
  using A = typename Operator::accumulator;

  Kokkos::Array<const T*, Operator::row_inputs> input;
  T* output;
  typename OperandParams<Operator, T>::Columns columns;
  Kokkos::Array<const A*, Operator::row_scalars> scalars;
  Kokkos::Array<A*, Operator::row_outputs> values;
};

/// One call, erased to pointers and strides so that a kernel is compiled once for an element type.
template <class ExecutionSpace, RowOperator op, class T>
struct OperandCall {
  static constexpr Backend backend = backend_of<ExecutionSpace>();
  using A                          = accumulator_t<T>;
  using Operator                   = typename OperatorFor<op, A>::type;
  using Params                     = OperandParams<Operator, T>;
  using Pointers                   = OperandPointers<Operator, T>;
  static constexpr int V           = pack_size(backend, sizeof(T), sizeof(T), sizeof(A));

  /// Not inline, as ViewCall's.
  static void run(const ExecutionSpace& exec, const RowPlan& plan, const OperandLayout& layout,
                  const typename Operator::Params& own, const Pointers& data,
                  WorkspaceView<ExecutionSpace>* own_workspace);

  /// Numbers of tensors in a layout: 0 is the first row input, 1 the output; the other row inputs, column operands and
  /// values a row follow.
  static constexpr int output = 1;
  static constexpr int input(int i) { return i == 0 ? 0 : i + 1; }
  static constexpr int column(int i) { return Operator::row_inputs + 1 + i; }
  static constexpr int value(int i) { return column(Operator::column_inputs) + i; }

 private:
  /// f(values, pointer, tensor's number) for all that the operator reads, or writes, of a row beside its elements.
  template <class To, class Pointer>
  static void set_values(To& to, const Pointer& data, const OperandLayout& layout) {
    for (int i = 0; i < static_cast<int>(to.size()); ++i) to[i] = {data[i], layout.map(value(i))};
  }

  template <RowForm form>
  static void run_rows(const ExecutionSpace& exec, const RowPlan& plan, const OperandLayout& layout, const Params& params,
                       const Pointers& data, WorkspaceView<ExecutionSpace>* own_workspace) {
    using Source = OperandRows<Operator, T, form>;
    using Output = OperandOutput<Operator, T, form>;
    Source source;
    for (int i = 0; i < Operator::row_inputs; ++i) {
      source.input[i] = MemoryRows<const T, form>(data.input[i], layout.col_stride[input(i)], layout.map(input(i)))
                            .evicted(plan.eviction);
    }
    Output to{{data.output, layout.col_stride[output], layout.map(output)}, {}};
    set_values(source.scalars, data.scalars, layout);
    set_values(to.values, data.values, layout);
    RowsCall<ExecutionSpace, op, Params, Source, Output, V>{exec, plan, params, source, to, layout.rows, layout.cols}.run(
        own_workspace);
  }

  /// Rows side by side of the tensor with such a number.
  template <class U>
  static InnerRows<U> inner_rows_of(U* data, const OperandLayout& layout, int tensor, Eviction eviction) {
    const int last = layout.n > 0 ? layout.n - 1 : 0;
    InnerRows<U> rows{data, layout.col_stride[tensor], layout.stride[tensor][last], layout.outer_map(tensor)};
    if (eviction != Eviction::normal) rows.policy = LinePolicy(eviction);
    return rows;
  }

  static void run_inner(const ExecutionSpace& exec, const RowPlan& plan, const OperandLayout& layout, const Params& params,
                        const Pointers& data) {
    require_kernel(plan, {backend, op, V, sizeof(T), sizeof(T), sizeof(A), false});
    InnerOperands<Operator, T> operands;
    for (int i = 0; i < Operator::row_inputs; ++i) {
      operands.input[i] = inner_rows_of(data.input[i], layout, input(i), plan.eviction);
    }
    operands.output = inner_rows_of(data.output, layout, output, Eviction::normal);
    set_values(operands.scalars, data.scalars, layout);
    set_values(operands.values, data.values, layout);
    const std::int64_t inner = layout.inner();
    const auto run_with      = [&]<int inner_V, int K>() {
      launch<max_threads_when_wide>(
          exec, plan,
          OperandInner<inner_V, K, Params, T>{operands, params, layout.rows / inner, inner, plan.threads_per_row,
                                              plan.scratch_level, static_cast<int>(plan.scratch_bytes)});
    };
    // A host's threads have blocks by themselves, whatever the plan's width is.
    constexpr int inner_V = backend == Backend::host ? V : gradient_inner_pack_size(backend, V);
    run_with.template operator()<inner_V, gradient_inner_packs(backend, inner_V)>();
  }
};

template <class ExecutionSpace, RowOperator op, class T>
void OperandCall<ExecutionSpace, op, T>::run(const ExecutionSpace& exec, const RowPlan& plan, const OperandLayout& layout,
                                             const typename Operator::Params& own, const Pointers& data,
                                             WorkspaceView<ExecutionSpace>* own_workspace) {
  const Params params{own, data.columns, layout.cols};
  if (plan.strategy == RowStrategy::inner_lanes) return run_inner(exec, plan, layout, params, data);
  with_form<backend, false>(plan.form, [&](auto form) {
    run_rows<form()>(exec, plan, layout, params, data, own_workspace);
  });
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_OPERAND_LAUNCH_HPP
