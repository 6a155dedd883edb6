// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_COMPILED_CALLS_HPP
#define KOKKOSNN_IMPL_CALL_COMPILED_CALLS_HPP

#include <KokkosNN/impl/call/arguments.hpp>
#include <KokkosNN/impl/call/layout.hpp>
#include <KokkosNN/impl/call/workspace.hpp>
#include <KokkosNN/options.hpp>
#include <KokkosNN/plan.hpp>
#include <KokkosNN/vocabulary.hpp>

namespace KokkosNN {
struct MaskedSoftmaxOptions;
}

// Calls on erased Views without their kernels. The library holds them compiled for the types of
// cmake/Instantiations.cmake; <KokkosNN/kernels.hpp> has the kernels for a file that needs others.

namespace KokkosNN::Impl {

/// True for a call that the library holds; the headers <KokkosNN/instantiations/...> list these.
template <class Call>
inline constexpr bool is_compiled = false;

/// The way from a call's plan to the launch of its kernels. It is a complete class where the kernels are included.
template <class Call>
struct Launcher;

/// Kernels of a call are in the library or in this file.
template <class Call>
concept HasKernels = is_compiled<Call> || requires { sizeof(Launcher<Call>); };

template <class Call>
constexpr void require_kernels() {
  static_assert(HasKernels<Call>,
                "KokkosNN: the library has no kernels for these element types on this execution space. Include "
                "<KokkosNN/kernels.hpp> before this call, or add the types to KokkosNN_TYPE_PAIRS");
}

/// The options of an operator's public function.
template <RowOperator op>
struct OptionsOf;
#define KOKKOSNN_OPERATOR(name, family, ragged, inputs, reduction, output, options) \
  template <>                                                                       \
  struct OptionsOf<RowOperator::name> {                                             \
    using type = options;                                                           \
  };
#include <KokkosNN/impl/operators.def>
#undef KOKKOSNN_OPERATOR

/// softmax, log_softmax or logsumexp of rows of X to rows, or values, of Y.
template <class ExecutionSpace, RowOperator op, class X, class Y>
struct ViewCall {
  using Arguments = CallArguments<ExecutionSpace>;

  static void run(const ExecutionSpace& exec, const Arguments& call);
  /// Makes room for the call's workspace in that of a plan object.
  static void reserve(const ExecutionSpace& exec, const RowPlan& plan, WorkspaceView<ExecutionSpace>& workspace);
};

/// A gradient that reads rows of X and rows, or values, of D, and writes rows of Y.
template <class ExecutionSpace, RowOperator op, class X, class D, class Y>
struct GradientCall {
  using Arguments = CallArguments<ExecutionSpace>;

  static void run(const ExecutionSpace& exec, const Arguments& call);
  static void reserve(const ExecutionSpace& exec, const RowPlan& plan, WorkspaceView<ExecutionSpace>& workspace);
};

/// A cross entropy of logits X, whose gradient holds Y.
template <class ExecutionSpace, RowOperator op, class X, class Y>
struct CrossEntropyCall {
  using Arguments = CallArguments<ExecutionSpace, LabelledLayout, CrossEntropyOptions>;

  /// Looks at the labels first if the options ask for that.
  static void run(const ExecutionSpace& exec, const Arguments& call);
  /// Throws std::invalid_argument if a label is neither ignored nor a class.
  static void check_labels(const ExecutionSpace& exec, const LabelledLayout& layout, const CrossEntropyOptions& options,
                           const Tensors& tensors);
};

/// A cross entropy from log-sum-exps and labels' logits, of A.
template <class ExecutionSpace, class A>
struct LossOfLseCall {
  static void run(const ExecutionSpace& exec, const Tensors& tensors, const CrossEntropyOptions& options);
};

/// An operator that is one struct (inputs/operands.hpp), on rows of T.
template <class ExecutionSpace, RowOperator op, class T>
struct OperandCall {
  using Options   = typename OptionsOf<op>::type;
  using Arguments = CallArguments<ExecutionSpace, RowsLayout, Options>;

  static void run(const ExecutionSpace& exec, const Arguments& call);
};

/// A cross entropy of logits T against probabilities.
template <class ExecutionSpace, RowOperator op, class T>
struct SoftLossCall {
  using Arguments = CallArguments<ExecutionSpace, RowsLayout, SoftCrossEntropyOptions>;

  static void run(const ExecutionSpace& exec, const Arguments& call);
};

/// Sums over the rows of T.
template <class ExecutionSpace, class T>
struct ColumnSumsCall {
  static void run(const ExecutionSpace& exec, const RowsLayout& layout, const Tensors& tensors);
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_COMPILED_CALLS_HPP
