// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_SOFT_LOSS_LAUNCH_HPP
#define KOKKOSNN_IMPL_CALL_SOFT_LOSS_LAUNCH_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/cpu_levels.hpp>
#include <KokkosNN/impl/call/compiled_calls.hpp>
#include <KokkosNN/impl/call/layout.hpp>
#include <KokkosNN/impl/call/operand_launch.hpp>
#include <KokkosNN/impl/call/workspace.hpp>
#include <KokkosNN/impl/gpu/loss_sums.hpp>
#include <KokkosNN/instantiations/loss_sums.hpp>
#include <KokkosNN/options.hpp>

// A cross entropy against probabilities: the rows by the kernels of all operators that are one struct, and behind them
// the sum of a reduced loss.

namespace KokkosNN::Impl {

template <class ExecutionSpace, RowOperator op, class T>
struct Launcher<SoftLossCall<ExecutionSpace, op, T>> {
  using A         = accumulator_t<T>;
  using Arguments = typename SoftLossCall<ExecutionSpace, op, T>::Arguments;

  static void run(const ExecutionSpace& exec, const Arguments& call) {
    using Is              = SoftLossTensors;
    const auto rows       = call.layout.rows;
    const bool is_reduced = call.options.reduction != Reduction::none;
    const char* function  = to_string(op);
    require_launching_thread(exec, function);
    const WorkspaceLease<ExecutionSpace, WorkspaceUse::sums> memory(exec,
                                                                    is_reduced ? LossWorkspace<A>::bytes(rows) : 0);
    LossWorkspace<A> workspace;
    Tensors tensors = call.tensors;
    if (is_reduced) {
      workspace              = LossWorkspace<A>(memory.data());
      tensors[Is::loss].data = workspace.row_losses;
    }
    if (rows > 0) {
      Launcher<OperandCall<ExecutionSpace, op, T>>::run(exec, {call.plan, call.layout, tensors, call.options});
    }
    if (!is_reduced) return;
    LossSums<ExecutionSpace, A>::of_parts(exec, function, rows, call.options.reduction == Reduction::mean, workspace,
                                          call.template data<A>(Is::loss));
  }
};

template <class ExecutionSpace, RowOperator op, class T>
void SoftLossCall<ExecutionSpace, op, T>::run(const ExecutionSpace& exec, const Arguments& call) {
  run_compiled<SoftLossCall>(exec, call);
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_SOFT_LOSS_LAUNCH_HPP
