// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_ERASED_ROWS_HPP
#define KOKKOSNN_IMPL_CALL_ERASED_ROWS_HPP

#include <KokkosNN/impl/call/arguments.hpp>
#include <KokkosNN/impl/call/rows_call.hpp>
#include <KokkosNN/impl/inputs/rows.hpp>

// Rows of a call's erased tensors, with their types again, and their way to a launch.

namespace KokkosNN::Impl {

template <class T>
struct InnerRows;

/// The rows of a tensor.
template <class T, RowForm form, class Map = MapOf<form>, class Arguments>
MemoryRows<T, form, Map> rows_of(const Arguments& call, int tensor) {
  return {call.template data<T>(tensor), call.layout.col_stride[tensor], call.layout.map(tensor)};
}

/// Rows that lie side by side along the last axis.
template <class T, class Arguments>
InnerRows<T> inner_rows_of(const Arguments& call, int tensor, Eviction eviction = Eviction::normal) {
  return {call.template data<T>(tensor), call.layout.col_stride[tensor], call.layout.inner_stride(tensor),
          call.layout.outer_map(tensor), LinePolicy(eviction)};
}

/// Launches the plan's kernel on rows that a Source gives and an Output takes.
template <RowOperator op, int V, class ExecutionSpace, class Arguments, class Params, class Source, class Output>
void run_on_rows(const ExecutionSpace& exec, const Arguments& call, const Params& params, const Source& source,
                 const Output& output) {
  RowsCall<ExecutionSpace, op, Params, Source, Output, V>{exec,   call.plan,        params,          source,
                                                          output, call.layout.rows, call.layout.cols}
      .run(call.workspace);
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_ERASED_ROWS_HPP
