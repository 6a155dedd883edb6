// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_SEGMENTED_HPP
#define KOKKOSNN_SEGMENTED_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/segmented_call.hpp>
#include <KokkosNN/options.hpp>
#include <KokkosNN/plan.hpp>
#include <KokkosNN/segment_index.hpp>

#include <Kokkos_Core.hpp>
#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <type_traits>

// The softmax family on ragged rows: row r is the elements row_offsets(r) to row_offsets(r + 1) - 1 of one vector, as
// in a matrix in compressed-row storage: the edges of a graph by target, a batch of sequences of different lengths.
// Values of rank 2 are (elements, heads), as in a graph attention layer: each head has values of its own in the same
// rows, and one call does them all. What holds for all functions here:
//
// Offsets    rows + 1 of any integral type, ascending, the first at least 0, the last at most the number of values;
//            read on the device only. With options.check_offsets they are looked at first, which waits for `exec`;
//            otherwise, where they do not ascend or leave the values, the content of the output is undefined, but no
//            memory outside the Views is touched. An empty row writes nothing. Elements in no row are not written.
// Views      all values of rank 1, or all of rank 2, which have as many heads; any strides (0 in inputs too), any
//            alignment; double, float, half_t and bhalf_t. 64-bit offsets.
// Index      where rows lie in any order, SegmentIndex{index, segments} stands in place of the offsets: element i is of
//            row index(i), 0 to segments - 1, else of none. Nothing is sorted: a row has 32 bytes of a workspace for
//            each head, in which integers are joined by atomics, so that bits depend neither on the order of elements
//            nor on threads. A term below 2^-54 (double: 2^-81) of its row's largest counts as 0, if there are up to
//            2^32 elements. Four kernels (the gradient of a log-sum-exp: one) read values and index three times
//            (log-sum-exp: twice, its gradient once). One thread of a host takes 5 to 17 times as long as for sorted
//            rows; on a GPU rows of very many elements are a bottleneck. Values and output hold one type.
//            check_offsets looks at the index.
// Heads      any number, in as many kernels as one head takes. A GPU has kernels for LayoutLeft, where each head is
//            what rank 1 is, and for four heads in LayoutRight; all others go by strides that they read from memory.
// In place   the output may be an input (the same View twice); any other overlap is an error.
// Ordering   asynchronous on `exec`: the call enqueues one to three kernels, with an index four, fences nothing and,
//            after the first call of its kind and size on `exec`, allocates nothing.
// Balance    short rows are dealt to lanes, longer ones to warps and teams, very long ones in parts to many teams: one
//            row of 10^6 among rows of 10 costs what its elements cost. Equal calls give equal bits, on a host for any
//            number of threads; one head of rank 2 those of rank 1 of the same strides. A row's last bits may depend on
//            how many heads there are and on the layout.
// Arithmetic and values (NaN, infinities, masked elements) as in softmax.hpp and gradients.hpp. Softmax of floats is
//            within 5 ulp on CUDA, not 4: where a warp takes rows of some tens of elements as one range, it adds the
//            exponentials of four neighbours in float.
// Errors     std::invalid_argument, with the function's name and the offending values and nothing written: extents
//            that do not fit, scale zero, not finite or beyond 2^+-100, overlap; with check_offsets, the first bad row.
// Cost       each element is read once and written once, each offset is read once or twice. Rows of more than some
//            hundred elements on a GPU, or a few thousand on a host, may be read twice, the second time from a cache
//            where they fit.
// Source     row by row the one of softmax.hpp; cutting long rows into parts whose (max, sum) are joined is in the
//            spirit of Merrill and Garland, "Merge-based parallel sparse matrix-vector multiplication", SC 2016.

namespace KokkosNN {

/// Options of the functions on ragged rows: `{.scale = 0.125}`.
struct SegmentedOptions {
  double scale               = 1.0;  ///< factor of the logits: exp(scale * (x - max)); 2^-100 to 2^100, or negative
  MaskedRowPolicy masked_row = MaskedRowPolicy::nan;  ///< of rows that have elements, but only masked ones
  bool check_offsets         = false;                 ///< look at all offsets, or the index, first, and wait
};

/// Softmax of ragged rows: y_i = exp(scale (x_i - max_j x_j)) / sum_k exp(scale (x_k - max_j x_j)), j and k of i's row.
///
/// \param exec         execution-space instance; the call is asynchronous on it
/// \param values       x, the elements of all rows, one row after the other; or (elements, heads)
/// \param row_offsets  rows + 1 integers: where each row begins in values, and where the last one ends; or a
///                     SegmentIndex
/// \param y            output, of the extents of values; may be values
/// \param options      scale, masked rows, check_offsets; see SegmentedOptions
///
/// See the head of this file for offsets, heads, ordering, values and errors. Reads n + rows, writes n elements.
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::RaggedRows Rows, Concepts::View YView>
void segmented_softmax(const Exec& exec, const XView& values, const Rows& row_offsets, const YView& y,
                       const SegmentedOptions& options = {}) {
  Impl::check_segmented<RowOperator::softmax, Exec, XView, Rows, YView>();
  const Kokkos::Profiling::ScopedRegion region("KokkosNN::segmented_softmax");
  Impl::segmented_call<RowOperator::softmax>(exec, "segmented_softmax", values, row_offsets, y, options);
}

/// Softmax of ragged rows on the default instance of y's execution space.
template <Concepts::View XView, Concepts::RaggedRows Rows, Concepts::View YView>
void segmented_softmax(const XView& values, const Rows& row_offsets, const YView& y,
                       const SegmentedOptions& options = {}) {
  segmented_softmax(typename YView::execution_space{}, values, row_offsets, y, options);
}

/// Log-softmax of ragged rows: y_i = scale (x_i - max_j x_j) - log(sum_k exp(scale (x_k - max_j x_j))).
///
/// Parameters as for segmented_softmax. Results are within 4 ulp of max(1, |y|). Reads n + rows, writes n elements.
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::RaggedRows Rows, Concepts::View YView>
void segmented_log_softmax(const Exec& exec, const XView& values, const Rows& row_offsets, const YView& y,
                           const SegmentedOptions& options = {}) {
  Impl::check_segmented<RowOperator::log_softmax, Exec, XView, Rows, YView>();
  const Kokkos::Profiling::ScopedRegion region("KokkosNN::segmented_log_softmax");
  Impl::segmented_call<RowOperator::log_softmax>(exec, "segmented_log_softmax", values, row_offsets, y, options);
}

/// Log-softmax of ragged rows on the default instance of y's execution space.
template <Concepts::View XView, Concepts::RaggedRows Rows, Concepts::View YView>
void segmented_log_softmax(const XView& values, const Rows& row_offsets, const YView& y,
                           const SegmentedOptions& options = {}) {
  segmented_log_softmax(typename YView::execution_space{}, values, row_offsets, y, options);
}

/// Logarithm (natural) of the sum of exponentials of each ragged row: lse = scale max_j x_j + log(sum_k exp(...)).
///
/// \param exec         execution-space instance; the call is asynchronous on it
/// \param values       x, the elements of all rows; or (elements, heads)
/// \param row_offsets  rows + 1 integers, as for segmented_softmax
/// \param lse          output, an element a row; or (rows, heads)
/// \param options      as for segmented_softmax; a row of only -inf, or an empty one, gives -inf; one with +inf and no
///                     NaN +inf
///
/// Results are within 4 ulp of max(1, |lse|, |scale max|). Reads n + 2 rows, writes rows elements.
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::RaggedRows Rows, Concepts::View LseView>
void segmented_logsumexp(const Exec& exec, const XView& values, const Rows& row_offsets, const LseView& lse,
                         const SegmentedOptions& options = {}) {
  Impl::check_segmented<RowOperator::logsumexp, Exec, XView, Rows, LseView>();
  const Kokkos::Profiling::ScopedRegion region("KokkosNN::segmented_logsumexp");
  Impl::segmented_call<RowOperator::logsumexp>(exec, "segmented_logsumexp", values, row_offsets, lse, options);
}

/// Log-sum-exp of ragged rows on the default instance of lse's execution space.
template <Concepts::View XView, Concepts::RaggedRows Rows, Concepts::View LseView>
void segmented_logsumexp(const XView& values, const Rows& row_offsets, const LseView& lse,
                         const SegmentedOptions& options = {}) {
  segmented_logsumexp(typename LseView::execution_space{}, values, row_offsets, lse, options);
}

/// Gradient of segmented_softmax: dx_i = scale y_i (dy_i - sum_j y_j dy_j), j of i's row, y being its result.
///
/// \param exec         execution-space instance; the call is asynchronous on it
/// \param y            segmented_softmax's result
/// \param dy           gradient with respect to y, of its extents and type
/// \param row_offsets  as in the forward call
/// \param dx           output, of y's extents and type; may be y or dy
/// \param options      as in the forward call
///
/// Accuracy and values as softmax_backward's. Reads 2 n + rows, writes n elements.
template <Concepts::ExecutionSpace Exec, Concepts::View YView, Concepts::View DyView, Concepts::RaggedRows Rows,
          Concepts::View DxView>
void segmented_softmax_backward(const Exec& exec, const YView& y, const DyView& dy, const Rows& row_offsets,
                                const DxView& dx, const SegmentedOptions& options = {}) {
  Impl::check_segmented_gradient<RowOperator::softmax_backward, Exec, YView, DyView, Rows, DxView>();
  const Kokkos::Profiling::ScopedRegion region("KokkosNN::segmented_softmax_backward");
  Impl::segmented_gradient_call<RowOperator::softmax_backward>(exec, "segmented_softmax_backward", y, dy, row_offsets,
                                                               dx, options);
}

/// Gradient of segmented_softmax on the default instance of dx's execution space.
template <Concepts::View YView, Concepts::View DyView, Concepts::RaggedRows Rows, Concepts::View DxView>
void segmented_softmax_backward(const YView& y, const DyView& dy, const Rows& row_offsets, const DxView& dx,
                                const SegmentedOptions& options = {}) {
  segmented_softmax_backward(typename DxView::execution_space{}, y, dy, row_offsets, dx, options);
}

/// Gradient of segmented_log_softmax: dx_i = scale (dy_i - exp(y_i) sum_j dy_j), j of i's row, y being its result.
///
/// Parameters as for segmented_softmax_backward. Accuracy and values as log_softmax_backward's. Reads 2 n + rows,
/// writes n elements.
template <Concepts::ExecutionSpace Exec, Concepts::View YView, Concepts::View DyView, Concepts::RaggedRows Rows,
          Concepts::View DxView>
void segmented_log_softmax_backward(const Exec& exec, const YView& y, const DyView& dy, const Rows& row_offsets,
                                    const DxView& dx, const SegmentedOptions& options = {}) {
  Impl::check_segmented_gradient<RowOperator::log_softmax_backward, Exec, YView, DyView, Rows, DxView>();
  const Kokkos::Profiling::ScopedRegion region("KokkosNN::segmented_log_softmax_backward");
  Impl::segmented_gradient_call<RowOperator::log_softmax_backward>(exec, "segmented_log_softmax_backward", y, dy,
                                                                   row_offsets, dx, options);
}

/// Gradient of segmented_log_softmax on the default instance of dx's execution space.
template <Concepts::View YView, Concepts::View DyView, Concepts::RaggedRows Rows, Concepts::View DxView>
void segmented_log_softmax_backward(const YView& y, const DyView& dy, const Rows& row_offsets, const DxView& dx,
                                    const SegmentedOptions& options = {}) {
  segmented_log_softmax_backward(typename DxView::execution_space{}, y, dy, row_offsets, dx, options);
}

/// Gradient of segmented_logsumexp: dx_i = scale dlse_r exp(scale x_i - lse_r), r being i's row.
///
/// \param exec         execution-space instance; the call is asynchronous on it
/// \param values       x of the forward call; (elements), or (elements, heads)
/// \param lse          segmented_logsumexp's result; (rows), or (rows, heads)
/// \param dlse         gradient with respect to lse, of its extents
/// \param row_offsets  as in the forward call
/// \param dx           output, of the extents of values; may be values. All four hold one type
/// \param options      as in the forward call; masked_row: of rows whose lse is -inf, NaN or 0
///
/// One kernel, in which teams share the elements evenly and look up their rows, without a workspace: it does not matter
/// how long rows are. Accuracy and values as logsumexp_backward's. Reads n + 2 rows, and offsets again and again from a
/// cache; writes n elements, those in rows.
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::View LseView, Concepts::View DlseView,
          Concepts::RaggedRows Rows, Concepts::View DxView>
void segmented_logsumexp_backward(const Exec& exec, const XView& values, const LseView& lse, const DlseView& dlse,
                                  const Rows& row_offsets, const DxView& dx, const SegmentedOptions& options = {}) {
  const Kokkos::Profiling::ScopedRegion region("KokkosNN::segmented_logsumexp_backward");
  Impl::segmented_lse_gradient_call(exec, values, lse, dlse, row_offsets, dx, options);
}

/// Gradient of segmented_logsumexp on the default instance of dx's execution space.
template <Concepts::View XView, Concepts::View LseView, Concepts::View DlseView, Concepts::RaggedRows Rows,
          Concepts::View DxView>
void segmented_logsumexp_backward(const XView& values, const LseView& lse, const DlseView& dlse,
                                  const Rows& row_offsets, const DxView& dx, const SegmentedOptions& options = {}) {
  segmented_logsumexp_backward(typename DxView::execution_space{}, values, lse, dlse, row_offsets, dx, options);
}

}  // namespace KokkosNN

#endif  // KOKKOSNN_SEGMENTED_HPP
