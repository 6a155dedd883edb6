// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_COLUMN_SUMS_CALL_HPP
#define KOKKOSNN_IMPL_CALL_COLUMN_SUMS_CALL_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/instantiations/column_sums.hpp>
#include <KokkosNN/impl/call/checks.hpp>
#include <KokkosNN/impl/call/compiled_calls.hpp>
#include <KokkosNN/impl/call/layout.hpp>
#include <KokkosNN/impl/call/verbose.hpp>
#include <KokkosNN/options.hpp>

#include <Kokkos_Core.hpp>
#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <type_traits>

namespace KokkosNN::Impl {

/// Sums over the rows of T: normalise, launch.
template <class T, class Exec>
void column_sums_erased(const Exec& exec, const Tensors& tensors, const ColumnSumsOptions& options) {
  const RowsLayout layout = normalise_column_sums("column_sums", tensors, options.axis);
  if (layout.cols == 0) return;
  if (is_verbose()) report_call("column_sums", tensors[ColumnSumsTensors::x], "sums over rows, in one order");
  ColumnSumsCall<Exec, T>::run(exec, layout, tensors);
}

/// The body of column_sums: check what the compiler can see, then the arguments, launch.
template <class Exec, class XView, class YView>
void column_sums_call(const Exec& exec, const XView& x, const YView& y, const ColumnSumsOptions& options) {
  using T = typename XView::non_const_value_type;
  using Y = typename YView::non_const_value_type;
  static_assert(XView::rank() >= 1, "KokkosNN::column_sums: x must have rank 1 to 8");
  static_assert(YView::rank() == 1, "KokkosNN::column_sums: y must have rank 1");
  static_assert(hold_elements<XView>, "KokkosNN::column_sums: x must hold double, float, half_t or bhalf_t");
  static_assert(std::is_same_v<Y, T> || std::is_same_v<Y, accumulator_t<T>>,
                "KokkosNN::column_sums: y must hold x's type, or float if that has 16 bits");
  static_assert(is_writable<YView>, "KokkosNN::column_sums: y must not be const");
  static_assert(can_access<Exec, XView, YView>,
                "KokkosNN::column_sums: the execution space must be able to access the memory of x and of y");
  require_kernels<ColumnSumsCall<Exec, T>>();
  const Kokkos::Profiling::ScopedRegion region("KokkosNN::column_sums");
  Tensors tensors;
  tensors[ColumnSumsTensors::x] = tensor_of(x);
  tensors[ColumnSumsTensors::y] = tensor_of(y);
  column_sums_erased<T>(exec, tensors, options);
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_COLUMN_SUMS_CALL_HPP
