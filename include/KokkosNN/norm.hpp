// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_NORM_HPP
#define KOKKOSNN_NORM_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/operand_call.hpp>
#include <KokkosNN/options.hpp>
#include <KokkosNN/plan.hpp>

#include <Kokkos_Core.hpp>

#include <tuple>

// Normalisation of rows along one axis of a View, and its gradients by the rows, by weights and by biases. With n the
// length of the axis, w the weight and b the bias of a column,
//
//     rms_norm     y_i = x_i rstd (w_i + weight_offset)       rstd = 1 / sqrt(sum_j x_j^2 / n + epsilon)
//     layer_norm   y_i = (x_i - mean) rstd w_i + b_i          mean = sum_j x_j / n
//                                                             rstd = 1 / sqrt(sum_j (x_j - mean)^2 / n + epsilon)
//
// Common to all functions:
//
// Views      x, y, dy and dx of rank 1 to 8, any layout, any strides (a stride may be 0 in inputs), any alignment, of
//            one type: double, float, half_t or bhalf_t. weight and bias have one element a column, in any stride, of
//            the rows' type, or float where that has 16 bits; no_view in place of a weight is 1 (whatever weight_offset
//            is) and in place of a bias 0. mean and rstd have the other axes and are double if x is, else float.
//            Compiled in the library. 64-bit offsets.
//            dweight and dbias are as weight and bias, or no_view where they are not wanted.
// In place   y may be x, dx may be x or dy (the same View twice); any other overlap of what is written is an error.
// Ordering   asynchronous on `exec`: the call enqueues one kernel, with gradients of weights two more (one up to 256
//            rows), fences nothing and, after the first call of its kind on `exec`, allocates nothing.
// Arithmetic in double for double, else in float; sums of many elements in double, those of double in two words. The
//            same call gives the same bits each time.
// Weights    dweight and dbias are sums over all rows, in the order of column_sums: no atomics, at most 1024 chunks of
//            rows, whose number depends on that of rows alone. With either Determinism the bits of a column's sum do
//            not depend on the other columns, on alignment, strategy or number of threads; batch_invariant adds
//            nothing, as the rows of a batch are what is summed.
// Variance   without cancellation: each thread sums distances from its own mean, and the parts are joined by the
//            formula of Chan, Golub and LeVeque. A row of equal elements has exactly that mean and a variance of 0, so
//            layer_norm makes it the bias. A mean that is large beside the distances does no harm: it is kept in two
//            words, and x - mean is as good as x.
// Values     a NaN in a row makes the whole row NaN, and so does an infinity among x, but in rms_norm, where it makes
//            rstd 0, other elements 0 and itself NaN; one among dy makes its row infinite or NaN. Squares of more than
//            the accumulator's range count as infinity, and squares below it as 0. With epsilon = 0 a row of equal
//            elements (rms_norm: of zeros) is NaN. Not for -ffast-math.
// Empty      without rows or columns nothing is written, mean and rstd neither; but dweight and dbias become 0 where
//            there are columns and no rows.
// Errors     std::invalid_argument, with the function's name and the offending values and nothing written: extents
//            that differ, axis out of range, epsilon negative or not finite, weight_offset not finite, overlap, a
//            forced plan that cannot serve.
// Source     RMSNorm: Zhang and Sennrich, "Root mean square layer normalization", 2019; LayerNorm: Ba, Kiros and
//            Hinton, "Layer normalization", 2016.

namespace KokkosNN {

/// RMSNorm of every row, which also leaves the rows' rstd for the backward.
///
/// \param exec     execution-space instance; the call is asynchronous on it
/// \param x        input, any shape of rank 1 to 8
/// \param weight   one weight a column, or no_view for 1
/// \param y        output, the extents of x; may be x
/// \param rstd     output: one value a row, x's extents without the axis; no_view if it is not wanted
/// \param options  axis, epsilon, weight_offset, determinism; see RmsNormOptions
///
/// Each result is within 8 ulp of itself (16-bit types: 1 ulp), and so is rstd, as long as squares stay in range. Reads
/// MN + N, writes MN + M elements; rows that no chip holds are read twice.
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::OptionalView WeightView, Concepts::View YView,
          Concepts::OptionalView RstdView>
void rms_norm(const Exec& exec, const XView& x, const WeightView& weight, const YView& y, const RstdView& rstd,
              const RmsNormOptions& options = {}) {
  Impl::operand_call<RowOperator::rms_norm>(exec, options, std::tuple(x), y, std::tuple(weight), std::tuple(rstd));
}

/// RMSNorm of every row.
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::OptionalView WeightView, Concepts::View YView>
void rms_norm(const Exec& exec, const XView& x, const WeightView& weight, const YView& y,
              const RmsNormOptions& options = {}) {
  rms_norm(exec, x, weight, y, no_view, options);
}

/// RMSNorm on the default instance of x's execution space.
template <Concepts::View XView, Concepts::OptionalView WeightView, Concepts::View YView,
          Concepts::OptionalView RstdView>
void rms_norm(const XView& x, const WeightView& weight, const YView& y, const RstdView& rstd,
              const RmsNormOptions& options = {}) {
  rms_norm(typename XView::execution_space{}, x, weight, y, rstd, options);
}
template <Concepts::View XView, Concepts::OptionalView WeightView, Concepts::View YView>
void rms_norm(const XView& x, const WeightView& weight, const YView& y, const RmsNormOptions& options = {}) {
  rms_norm(typename XView::execution_space{}, x, weight, y, no_view, options);
}

/// LayerNorm of every row, which also leaves the rows' mean and rstd for the backward.
///
/// \param exec     execution-space instance; the call is asynchronous on it
/// \param x        input, any shape of rank 1 to 8
/// \param weight   one weight a column, or no_view for 1
/// \param bias     one bias a column, or no_view for 0
/// \param y        output, the extents of x; may be x
/// \param mean     output: one value a row, x's extents without the axis; no_view if it is not wanted
/// \param rstd     output: the same
/// \param options  axis, epsilon, determinism; see LayerNormOptions
///
/// Each result is within 8 ulp (16-bit types: 1 ulp) of the largest of |(x_i - mean) rstd w_i|, |rstd w_i| times the
/// mean of the |x_j - mean|, and |b_i|. Reads MN + 2 N, writes MN + 2 M elements; rows that no chip holds are read
/// twice.
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::OptionalView WeightView,
          Concepts::OptionalView BiasView, Concepts::View YView, Concepts::OptionalView MeanView,
          Concepts::OptionalView RstdView>
void layer_norm(const Exec& exec, const XView& x, const WeightView& weight, const BiasView& bias, const YView& y,
                const MeanView& mean, const RstdView& rstd, const LayerNormOptions& options = {}) {
  Impl::operand_call<RowOperator::layer_norm>(exec, options, std::tuple(x), y, std::tuple(weight, bias),
                                              std::tuple(mean, rstd));
}

/// LayerNorm of every row.
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::OptionalView WeightView,
          Concepts::OptionalView BiasView, Concepts::View YView>
void layer_norm(const Exec& exec, const XView& x, const WeightView& weight, const BiasView& bias, const YView& y,
                const LayerNormOptions& options = {}) {
  layer_norm(exec, x, weight, bias, y, no_view, no_view, options);
}

/// LayerNorm on the default instance of x's execution space.
template <Concepts::View XView, Concepts::OptionalView WeightView, Concepts::OptionalView BiasView,
          Concepts::View YView, Concepts::OptionalView MeanView, Concepts::OptionalView RstdView>
void layer_norm(const XView& x, const WeightView& weight, const BiasView& bias, const YView& y, const MeanView& mean,
                const RstdView& rstd, const LayerNormOptions& options = {}) {
  layer_norm(typename XView::execution_space{}, x, weight, bias, y, mean, rstd, options);
}
template <Concepts::View XView, Concepts::OptionalView WeightView, Concepts::OptionalView BiasView,
          Concepts::View YView>
void layer_norm(const XView& x, const WeightView& weight, const BiasView& bias, const YView& y,
                const LayerNormOptions& options = {}) {
  layer_norm(typename XView::execution_space{}, x, weight, bias, y, no_view, no_view, options);
}

/// Gradients of RMSNorm by x and by the weight. With g_i = dy_i (w_i + weight_offset):
///
///     dx_i      = rstd (g_i - x_i rstd^2 sum_j g_j x_j / n)
///     dweight_i = sum over rows of dy_i x_i rstd
///
/// \param exec     execution-space instance; the call is asynchronous on it
/// \param x        rms_norm's input, any shape of rank 1 to 8
/// \param weight   as in the forward call
/// \param rstd     what the forward call left
/// \param dy       gradient with respect to y, the extents of x
/// \param dx       output, the extents of x; may be x or dy
/// \param dweight  output: one element a column, of weight's types; no_view if it is not wanted
/// \param options  as in the forward call; epsilon is in rstd already
///
/// For the rstd that is given each dx is within 8 ulp (16-bit types: 1 ulp) of the largest of |rstd g_i| and |x_i|
/// rstd^3 times the mean of the |g_j x_j|; each dweight within 1 ulp of the larger of itself and 2^-20 times the sum
/// of its terms' sizes |dy_i x_i rstd|, of doubles within 4 ulp of that sum. Reads 2 MN + M + N, writes MN elements;
/// with dweight it reads another 2 MN + M.
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::OptionalView WeightView,
          Concepts::View RstdView, Concepts::View DyView, Concepts::View DxView, Concepts::OptionalView DweightView>
void rms_norm_backward(const Exec& exec, const XView& x, const WeightView& weight, const RstdView& rstd,
                       const DyView& dy, const DxView& dx, const DweightView& dweight,
                       const RmsNormOptions& options = {}) {
  Impl::operand_call<RowOperator::rms_norm_backward>(exec, options, std::tuple(x, dy), dx, std::tuple(weight),
                                                     std::tuple(rstd), std::tuple(dweight));
}

/// Gradient of RMSNorm by x.
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::OptionalView WeightView,
          Concepts::View RstdView, Concepts::View DyView, Concepts::View DxView>
void rms_norm_backward(const Exec& exec, const XView& x, const WeightView& weight, const RstdView& rstd,
                       const DyView& dy, const DxView& dx, const RmsNormOptions& options = {}) {
  rms_norm_backward(exec, x, weight, rstd, dy, dx, no_view, options);
}

/// Gradients of RMSNorm on the default instance of x's execution space.
template <Concepts::View XView, Concepts::OptionalView WeightView, Concepts::View RstdView, Concepts::View DyView,
          Concepts::View DxView, Concepts::OptionalView DweightView>
void rms_norm_backward(const XView& x, const WeightView& weight, const RstdView& rstd, const DyView& dy,
                       const DxView& dx, const DweightView& dweight, const RmsNormOptions& options = {}) {
  rms_norm_backward(typename XView::execution_space{}, x, weight, rstd, dy, dx, dweight, options);
}
template <Concepts::View XView, Concepts::OptionalView WeightView, Concepts::View RstdView, Concepts::View DyView,
          Concepts::View DxView>
void rms_norm_backward(const XView& x, const WeightView& weight, const RstdView& rstd, const DyView& dy,
                       const DxView& dx, const RmsNormOptions& options = {}) {
  rms_norm_backward(typename XView::execution_space{}, x, weight, rstd, dy, dx, no_view, options);
}

/// Gradients of LayerNorm by x, by the weight and by the bias. With g_i = dy_i w_i and h_i = (x_i - mean) rstd:
///
///     dx_i      = rstd (g_i - sum_j g_j / n - h_i sum_j g_j h_j / n)
///     dweight_i = sum over rows of dy_i h_i
///     dbias_i   = sum over rows of dy_i
///
/// \param exec     execution-space instance; the call is asynchronous on it
/// \param x        layer_norm's input, any shape of rank 1 to 8
/// \param weight   as in the forward call
/// \param mean     what the forward call left
/// \param rstd     what the forward call left
/// \param dy       gradient with respect to y, the extents of x
/// \param dx       output, the extents of x; may be x or dy
/// \param dweight  output: one element a column, of weight's types; no_view if it is not wanted
/// \param dbias    output: the same
/// \param options  as in the forward call; epsilon is in rstd already
///
/// For the mean and the rstd that are given each dx is within 8 ulp (16-bit types: 1 ulp) of rstd times the largest of
/// |g_i|, the mean of the |g_j|, and |h_i| times the mean of the |g_j h_j|; each dweight and dbias within 1 ulp of the
/// larger of itself and 2^-20 times the sum of its terms' sizes, |dy_i h_i| and |dy_i|, dweight of doubles within 4 ulp
/// of that sum. Reads 2 MN + 2 M + N, writes MN elements; with dweight or dbias it reads another 2 MN + 2 M.
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::OptionalView WeightView,
          Concepts::View MeanView, Concepts::View RstdView, Concepts::View DyView, Concepts::View DxView,
          Concepts::OptionalView DweightView, Concepts::OptionalView DbiasView>
void layer_norm_backward(const Exec& exec, const XView& x, const WeightView& weight, const MeanView& mean,
                         const RstdView& rstd, const DyView& dy, const DxView& dx, const DweightView& dweight,
                         const DbiasView& dbias, const LayerNormOptions& options = {}) {
  Impl::operand_call<RowOperator::layer_norm_backward>(exec, options, std::tuple(x, dy), dx, std::tuple(weight),
                                                       std::tuple(mean, rstd), std::tuple(dweight, dbias));
}

/// Gradient of LayerNorm by x.
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::OptionalView WeightView,
          Concepts::View MeanView, Concepts::View RstdView, Concepts::View DyView, Concepts::View DxView>
void layer_norm_backward(const Exec& exec, const XView& x, const WeightView& weight, const MeanView& mean,
                         const RstdView& rstd, const DyView& dy, const DxView& dx,
                         const LayerNormOptions& options = {}) {
  layer_norm_backward(exec, x, weight, mean, rstd, dy, dx, no_view, no_view, options);
}

/// Gradients of LayerNorm on the default instance of x's execution space.
template <Concepts::View XView, Concepts::OptionalView WeightView, Concepts::View MeanView, Concepts::View RstdView,
          Concepts::View DyView, Concepts::View DxView, Concepts::OptionalView DweightView,
          Concepts::OptionalView DbiasView>
void layer_norm_backward(const XView& x, const WeightView& weight, const MeanView& mean, const RstdView& rstd,
                         const DyView& dy, const DxView& dx, const DweightView& dweight, const DbiasView& dbias,
                         const LayerNormOptions& options = {}) {
  layer_norm_backward(typename XView::execution_space{}, x, weight, mean, rstd, dy, dx, dweight, dbias, options);
}
template <Concepts::View XView, Concepts::OptionalView WeightView, Concepts::View MeanView, Concepts::View RstdView,
          Concepts::View DyView, Concepts::View DxView>
void layer_norm_backward(const XView& x, const WeightView& weight, const MeanView& mean, const RstdView& rstd,
                         const DyView& dy, const DxView& dx, const LayerNormOptions& options = {}) {
  layer_norm_backward(typename XView::execution_space{}, x, weight, mean, rstd, dy, dx, no_view, no_view, options);
}

}  // namespace KokkosNN

#endif  // KOKKOSNN_NORM_HPP
