// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_ARGUMENTS_HPP
#define KOKKOSNN_IMPL_CALL_ARGUMENTS_HPP

#include <KokkosNN/impl/call/layout.hpp>
#include <KokkosNN/impl/call/rows_call.hpp>
#include <KokkosNN/impl/call/workspace.hpp>
#include <KokkosNN/impl/inputs/rows.hpp>
#include <KokkosNN/options.hpp>
#include <KokkosNN/plan.hpp>

// A planned call on its way to a launch.

namespace KokkosNN::Impl {

template <class T>
struct InnerRows;

/// A plan, and the tensors of a call as rows. Views are erased, so that a kernel is compiled once for its element
/// types.
template <class ExecutionSpace, class Layout = RowsLayout, class Options = SoftmaxOptions>
struct CallArguments {
  const RowPlan& plan;
  const Layout& layout;
  const Tensors& tensors;
  const Options& options;
  WorkspaceView<ExecutionSpace>* workspace = nullptr;  ///< a plan object's

  template <class T>
  T* data(int tensor) const {
    return static_cast<T*>(const_cast<void*>(tensors[tensor].data));
  }

  template <class T, RowForm form, class Map = MapOf<form>>
  MemoryRows<T, form, Map> rows_of(int tensor) const {
    return {data<T>(tensor), layout.col_stride[tensor], layout.map(tensor)};
  }

  /// Rows that lie side by side along the last axis.
  template <class T>
  InnerRows<T> inner_rows_of(int tensor, Eviction eviction = Eviction::normal) const {
    return {data<T>(tensor), layout.col_stride[tensor], layout.inner_stride(tensor), layout.outer_map(tensor),
            LinePolicy(eviction)};
  }
};

/// Launches the plan's kernel on rows that a Source gives and an Output takes.
template <RowOperator op, int V, class ExecutionSpace, class Layout, class Options, class Params, class Source,
          class Output>
void run_on_rows(const ExecutionSpace& exec, const CallArguments<ExecutionSpace, Layout, Options>& call,
                 const Params& params, const Source& source, const Output& output) {
  RowsCall<ExecutionSpace, op, Params, Source, Output, V>{exec,   call.plan,        params,          source,
                                                          output, call.layout.rows, call.layout.cols}
      .run(call.workspace);
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_ARGUMENTS_HPP
