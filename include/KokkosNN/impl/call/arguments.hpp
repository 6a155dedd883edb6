// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_ARGUMENTS_HPP
#define KOKKOSNN_IMPL_CALL_ARGUMENTS_HPP

#include <KokkosNN/impl/call/layout.hpp>
#include <KokkosNN/impl/call/workspace.hpp>
#include <KokkosNN/options.hpp>
#include <KokkosNN/plan.hpp>

namespace KokkosNN::Impl {

/// A planned call on its way to a launch: a plan, and the tensors of a call as rows. Views are erased, so that a kernel
/// is compiled once for its element types.
template <class ExecutionSpace, class LayoutT = RowsLayout, class OptionsT = SoftmaxOptions>
struct CallArguments {
  using Layout  = LayoutT;
  using Options = OptionsT;

  const RowPlan& plan;
  const Layout& layout;
  const Tensors& tensors;
  const Options& options;
  WorkspaceView<ExecutionSpace>* workspace = nullptr;  ///< a plan object's

  template <class T>
  T* data(int tensor) const {
    return static_cast<T*>(const_cast<void*>(tensors[tensor].data));
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_ARGUMENTS_HPP
