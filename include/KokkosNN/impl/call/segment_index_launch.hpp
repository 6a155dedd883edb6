// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_SEGMENT_INDEX_LAUNCH_HPP
#define KOKKOSNN_IMPL_CALL_SEGMENT_INDEX_LAUNCH_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/compiled_segmented_calls.hpp>
#include <KokkosNN/impl/call/cpu_levels.hpp>
#include <KokkosNN/impl/call/items_launch.hpp>
#include <KokkosNN/impl/call/segmented_values.hpp>
#include <KokkosNN/impl/call/workspace.hpp>
#include <KokkosNN/impl/gpu/segment_index.hpp>
#include <KokkosNN/impl/traits.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

// From a checked call on rows by an index to its launches.

namespace KokkosNN::Impl {

template <class ExecutionSpace, class T>
struct Launcher<SegmentIndexCall<ExecutionSpace, T>> {
  using A                       = accumulator_t<T>;
  static constexpr bool on_host = backend_of<ExecutionSpace>() == Backend::host;
  static constexpr int lanes    = on_host ? 1 : 32;
  static constexpr int steps    = on_host ? 256 : 8;  ///< not measured
  using ForwardParams           = SoftmaxParams<A, exp_accuracy_for<T>>;
  template <RowOperator op>
  using BackwardParams = GradientParams<op, A, exp_accuracy_for<T>>;

  static void run(const ExecutionSpace& exec, RowOperator op, const SegmentedArguments& arguments,
                  const SegmentedLse& values) {
    const std::string function = std::string("segmented_") + to_string(op);
    require_launching_thread(exec, function.c_str());
    const bool has_cells     = op != RowOperator::logsumexp_backward;
    const std::int64_t cells = has_cells ? arguments.rows * arguments.tensors.heads() : 0;
    const WorkspaceLease<ExecutionSpace, WorkspaceUse::sums> workspace(
        exec, static_cast<std::size_t>(cells) * sizeof(SegmentCell));
    IndexedRows<T> rows = rows_of(arguments, values);
    rows.cells          = reinterpret_cast<SegmentCell*>(workspace.data());
    rows.is_alone       = on_host && exec.concurrency() == 1;
    const Steps step{exec, function.c_str(), arguments.tensors.x};
    if (has_cells) step.items("[clear]", ClearCells{rows.cells, cells});
    switch (op) {
      case RowOperator::softmax_backward:
        return run_backward<RowOperator::softmax_backward>(step, arguments, rows);
      case RowOperator::log_softmax_backward:
        return run_backward<RowOperator::log_softmax_backward>(step, arguments, rows);
      case RowOperator::logsumexp_backward: {
        using Params = BackwardParams<RowOperator::logsumexp_backward>;
        return step.elements("[write]", WriteLseGradient<Params, T>{params_of<Params>(arguments), rows});
      }
      default:
        return run_forward(step, op, arguments, rows);
    }
  }

 private:
  /// Launches of a call's passes.
  struct Steps {
    const ExecutionSpace& exec;
    const char* function;
    const Tensor& read;

    template <class Step>
    void items(const char* name, const Step& step) const {
      launch_items<T>(exec, function, read, name, step);
    }
    template <class Pass>
    void elements(const char* name, const Pass& pass) const {
      items(name, PassOverElements<Pass, lanes, steps>{pass});
    }
  };

  template <class Params>
  static Params params_of(const SegmentedArguments& arguments) {
    return Params(arguments.scale, arguments.masked_row);
  }

  static void run_forward(const Steps& step, RowOperator op, const SegmentedArguments& arguments,
                          const IndexedRows<T>& rows) {
    using Params = ForwardParams;
    const IndexedLogits<Params, T> logits{params_of<Params>(arguments), rows};
    step.elements("[largest]", LargestLogits<Params, T>{logits});
    step.elements("[sums]", SumsOfExponentials<Params, T>{logits});
    if (op == RowOperator::softmax) {
      step.elements("[write]", WriteIndexed<RowOperator::softmax, Params, T>{logits});
    } else if (op == RowOperator::log_softmax) {
      step.elements("[write]", WriteIndexed<RowOperator::log_softmax, Params, T>{logits});
    } else {
      step.items("[write]", WriteLogSumExps<Params, T>{logits.params, rows});
    }
  }

  template <RowOperator op>
  static void run_backward(const Steps& step, const SegmentedArguments& arguments, const IndexedRows<T>& rows) {
    using Params = BackwardParams<op>;
    const IndexedTerms<T> terms{rows, Params::sums_products};
    step.elements("[largest]", LargestTerms<T>{terms});
    step.elements("[sums]", SumsOfTerms<T>{terms});
    step.elements("[write]", WriteIndexedGradient<op, Params, T>{params_of<Params>(arguments), rows});
  }

  static IndexedRows<T> rows_of(const SegmentedArguments& arguments, const SegmentedLse& values) {
    const SegmentedTensors& given = arguments.tensors;
    IndexedRows<T> rows;
    rows.index    = arguments.offsets;
    rows.rows     = arguments.rows;
    rows.elements = arguments.elements;
    rows.heads    = given.heads();
    rows.x        = values_of<const T>(given.x);
    rows.dy       = values_of<const T>(given.dy);
    rows.lse      = values_of<const T>(values.lse);
    rows.dlse     = values_of<const T>(values.dlse);
    rows.out      = values_of<T>(given.y);
    // Products of doubles are added in two words each.
    rows.unit            = FixedSumOf<A>::unit_for(2 * rows.elements);
    rows.heads_are_inner = rows.heads > 1 && std::abs(rows.x.head_stride) < std::abs(rows.x.stride);
    rows.inner           = Divisor(rows.heads_are_inner ? rows.heads : rows.elements);
    return rows;
  }
};

template <class ExecutionSpace, class T>
void SegmentIndexCall<ExecutionSpace, T>::run(const ExecutionSpace& exec, RowOperator op,
                                              const SegmentedArguments& arguments, const SegmentedLse& values) {
  run_compiled<SegmentIndexCall>(exec, op, arguments, values);
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_SEGMENT_INDEX_LAUNCH_HPP
