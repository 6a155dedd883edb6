// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_COLUMN_SUMS_HPP
#define KOKKOSNN_COLUMN_SUMS_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/column_sums_call.hpp>
#include <KokkosNN/options.hpp>

#include <Kokkos_Core.hpp>

namespace KokkosNN {

/// Sums over all axes but one, y_j = sum_i x_ij: the gradient of a bias, of that of its layer's output.
///
/// \param exec     execution-space instance; the call is asynchronous on it
/// \param x        input, any shape of rank 1 to 8, any layout, any strides: double, float, half_t or bhalf_t
/// \param y        output: rank 1, one element for each index of the axis, in any stride; x's type, or float where that
///                 has 16 bits. It shares no memory with x
/// \param options  the axis that stays; see ColumnSumsOptions
///
/// Ordering   asynchronous on `exec`: the call enqueues one kernel, or two where there are more than 256 rows; it
///            fences nothing and, after the first call of its kind on `exec`, allocates nothing.
/// Arithmetic in double, of doubles in two words. Each result is within 1 ulp of the larger of itself and 2^-20 sum_i
///            |x_ij|.
/// Order      fixed, without atomics: at most 1024 chunks of rows, whose number depends on that of rows alone. So the
///            same call gives the same bits each time, and a column's sum depends neither on how many columns are
///            beside it, nor on its place among them, on alignment, or on a number of threads: batch invariance in the
///            columns, unasked. Rows are numbered by the strides of x, so another layout may add them in another order.
/// Values     a NaN in a column makes its sum NaN, and so do infinities of both signs; one of one sign makes it that
///            infinity. Sums beyond the range of y's type become infinite.
/// Empty      sums over no rows are 0, and are written.
/// Errors     std::invalid_argument, with the function's name and the offending values and nothing written: axis out of
///            range, an extent of y that is not the axis', overlap.
/// Cost       reads MN, writes N elements, and a double (double: two) for each column and chunk.
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::View YView>
void column_sums(const Exec& exec, const XView& x, const YView& y, const ColumnSumsOptions& options = {}) {
  Impl::column_sums_call(exec, x, y, options);
}

/// Sums over all axes but one, on the default instance of x's execution space.
template <Concepts::View XView, Concepts::View YView>
void column_sums(const XView& x, const YView& y, const ColumnSumsOptions& options = {}) {
  column_sums(typename XView::execution_space{}, x, y, options);
}

}  // namespace KokkosNN

#endif  // KOKKOSNN_COLUMN_SUMS_HPP
