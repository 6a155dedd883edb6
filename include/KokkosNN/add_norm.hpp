// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_ADD_NORM_HPP
#define KOKKOSNN_ADD_NORM_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/operand_call.hpp>
#include <KokkosNN/norm.hpp>
#include <KokkosNN/options.hpp>

#include <Kokkos_Core.hpp>

#include <tuple>

// Normalisation of the sum with a residual, which goes on beside the norm, and its gradients:
//
//     sum = x + residual          y = norm(sum)
//     dx  = dresidual             = (gradient of norm by its input) + dsum
//
// As norm.hpp has it, but for this:
//
// Views      residual, sum and dsum are as x and y: the extents of x, its type, any layout.
// The sum    is computed in the accumulator's type and rounded to the type of x once; y, mean and rstd are those of the
//            sum as it is written, so that the backward, which reads that sum, is the gradient of this call.
// In place   sum may be x or residual, and y the other one of them; sum and y must not overlap. dx may be sum, dy or
//            dsum.
// Gradients  x and residual have one gradient, dx: it is computed once, for both. dsum is the gradient that reaches the
//            sum by other ways than the norm. It is added before dx is rounded.
// Cost       one kernel reads 2 MN elements and writes 2 MN; an addition of its own in front of a norm would read
//            another MN. The backward reads another MN, dsum, and an addition of its own behind it 2 MN and writes MN.

namespace KokkosNN {

/// RMSNorm of x + residual, which also writes that sum and leaves the rows' rstd for the backward.
///
/// \param exec      execution-space instance; the call is asynchronous on it
/// \param x         input, any shape of rank 1 to 8
/// \param residual  input, the extents of x
/// \param weight    one weight a column, or no_view for 1
/// \param y         output, the extents of x; may be x or residual
/// \param sum       output, the extents of x: x + residual; may be x or residual, if y is not
/// \param rstd      output: one value a row, x's extents without the axis; no_view if it is not wanted
/// \param options   axis, epsilon, weight_offset, determinism; see RmsNormOptions
///
/// Each y is within 8 ulp of itself (16-bit types: 1 ulp), and so is rstd, as long as squares stay in range. Reads
/// 2 MN + N, writes 2 MN + M elements; rows that no chip holds are read twice.
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::View ResidualView,
          Concepts::OptionalView WeightView, Concepts::View YView, Concepts::View SumView,
          Concepts::OptionalView RstdView>
void add_rms_norm(const Exec& exec, const XView& x, const ResidualView& residual, const WeightView& weight,
                  const YView& y, const SumView& sum, const RstdView& rstd, const RmsNormOptions& options = {}) {
  Impl::operand_call<RowOperator::add_rms_norm>(exec, options, std::tuple(x, residual), y, std::tuple(weight),
                                                std::tuple(rstd), std::tuple(sum));
}

/// RMSNorm of x + residual, which also writes that sum.
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::View ResidualView,
          Concepts::OptionalView WeightView, Concepts::View YView, Concepts::View SumView>
void add_rms_norm(const Exec& exec, const XView& x, const ResidualView& residual, const WeightView& weight,
                  const YView& y, const SumView& sum, const RmsNormOptions& options = {}) {
  add_rms_norm(exec, x, residual, weight, y, sum, no_view, options);
}

/// RMSNorm of x + residual on the default instance of x's execution space.
template <Concepts::View XView, Concepts::View ResidualView, Concepts::OptionalView WeightView, Concepts::View YView,
          Concepts::View SumView, Concepts::OptionalView RstdView>
void add_rms_norm(const XView& x, const ResidualView& residual, const WeightView& weight, const YView& y,
                  const SumView& sum, const RstdView& rstd, const RmsNormOptions& options = {}) {
  add_rms_norm(typename XView::execution_space{}, x, residual, weight, y, sum, rstd, options);
}
template <Concepts::View XView, Concepts::View ResidualView, Concepts::OptionalView WeightView, Concepts::View YView,
          Concepts::View SumView>
void add_rms_norm(const XView& x, const ResidualView& residual, const WeightView& weight, const YView& y,
                  const SumView& sum, const RmsNormOptions& options = {}) {
  add_rms_norm(typename XView::execution_space{}, x, residual, weight, y, sum, no_view, options);
}

/// LayerNorm of x + residual, which also writes that sum and leaves the rows' mean and rstd for the backward.
///
/// \param exec      execution-space instance; the call is asynchronous on it
/// \param x         input, any shape of rank 1 to 8
/// \param residual  input, the extents of x
/// \param weight    one weight a column, or no_view for 1
/// \param bias      one bias a column, or no_view for 0
/// \param y         output, the extents of x; may be x or residual
/// \param sum       output, the extents of x: x + residual; may be x or residual, if y is not
/// \param mean      output: one value a row, x's extents without the axis; no_view if it is not wanted
/// \param rstd      output: the same
/// \param options   axis, epsilon, determinism; see LayerNormOptions
///
/// Each y is as accurate as layer_norm's of the sum. Reads 2 MN + 2 N, writes 2 MN + 2 M elements; rows that no chip
/// holds are read twice.
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::View ResidualView,
          Concepts::OptionalView WeightView, Concepts::OptionalView BiasView, Concepts::View YView,
          Concepts::View SumView, Concepts::OptionalView MeanView, Concepts::OptionalView RstdView>
void add_layer_norm(const Exec& exec, const XView& x, const ResidualView& residual, const WeightView& weight,
                    const BiasView& bias, const YView& y, const SumView& sum, const MeanView& mean,
                    const RstdView& rstd, const LayerNormOptions& options = {}) {
  Impl::operand_call<RowOperator::add_layer_norm>(exec, options, std::tuple(x, residual), y, std::tuple(weight, bias),
                                                  std::tuple(mean, rstd), std::tuple(sum));
}

/// LayerNorm of x + residual, which also writes that sum.
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::View ResidualView,
          Concepts::OptionalView WeightView, Concepts::OptionalView BiasView, Concepts::View YView,
          Concepts::View SumView>
void add_layer_norm(const Exec& exec, const XView& x, const ResidualView& residual, const WeightView& weight,
                    const BiasView& bias, const YView& y, const SumView& sum, const LayerNormOptions& options = {}) {
  add_layer_norm(exec, x, residual, weight, bias, y, sum, no_view, no_view, options);
}

/// LayerNorm of x + residual on the default instance of x's execution space.
template <Concepts::View XView, Concepts::View ResidualView, Concepts::OptionalView WeightView,
          Concepts::OptionalView BiasView, Concepts::View YView, Concepts::View SumView,
          Concepts::OptionalView MeanView, Concepts::OptionalView RstdView>
void add_layer_norm(const XView& x, const ResidualView& residual, const WeightView& weight, const BiasView& bias,
                    const YView& y, const SumView& sum, const MeanView& mean, const RstdView& rstd,
                    const LayerNormOptions& options = {}) {
  add_layer_norm(typename XView::execution_space{}, x, residual, weight, bias, y, sum, mean, rstd, options);
}
template <Concepts::View XView, Concepts::View ResidualView, Concepts::OptionalView WeightView,
          Concepts::OptionalView BiasView, Concepts::View YView, Concepts::View SumView>
void add_layer_norm(const XView& x, const ResidualView& residual, const WeightView& weight, const BiasView& bias,
                    const YView& y, const SumView& sum, const LayerNormOptions& options = {}) {
  add_layer_norm(typename XView::execution_space{}, x, residual, weight, bias, y, sum, no_view, no_view, options);
}

/// Gradients of add_rms_norm by x, which is that by residual, and by the weight: dx is rms_norm_backward's of the sum,
/// plus dsum.
///
/// \param exec     execution-space instance; the call is asynchronous on it
/// \param sum      what add_rms_norm wrote, any shape of rank 1 to 8
/// \param weight   as in the forward call
/// \param rstd     what the forward call left
/// \param dy       gradient with respect to y, the extents of sum
/// \param dsum     gradient with respect to sum by other ways than y, the extents of sum; no_view for 0
/// \param dx       output, the extents of sum; may be sum, dy or dsum
/// \param dweight  output: one element a column, of weight's types; no_view if it is not wanted
/// \param options  as in the forward call; epsilon is in rstd already
///
/// Each dx is within 8 ulp (16-bit types: 1 ulp) of the largest of |dsum_i| and what rms_norm_backward names; dweight
/// is as there. Reads 3 MN + M + N, writes MN elements; with dweight it reads another 2 MN + M.
template <Concepts::ExecutionSpace Exec, Concepts::View SumView, Concepts::OptionalView WeightView,
          Concepts::View RstdView, Concepts::View DyView, Concepts::OptionalView DsumView, Concepts::View DxView,
          Concepts::OptionalView DweightView>
void add_rms_norm_backward(const Exec& exec, const SumView& sum, const WeightView& weight, const RstdView& rstd,
                           const DyView& dy, const DsumView& dsum, const DxView& dx, const DweightView& dweight,
                           const RmsNormOptions& options = {}) {
  if constexpr (Impl::is_given<DsumView>) {
    Impl::operand_call<RowOperator::add_rms_norm_backward>(exec, options, std::tuple(sum, dy, dsum), dx,
                                                           std::tuple(weight), std::tuple(rstd), std::tuple(dweight));
  } else {
    rms_norm_backward(exec, sum, weight, rstd, dy, dx, dweight, options);
  }
}

/// Gradient of add_rms_norm by x, which is that by residual.
template <Concepts::ExecutionSpace Exec, Concepts::View SumView, Concepts::OptionalView WeightView,
          Concepts::View RstdView, Concepts::View DyView, Concepts::OptionalView DsumView, Concepts::View DxView>
void add_rms_norm_backward(const Exec& exec, const SumView& sum, const WeightView& weight, const RstdView& rstd,
                           const DyView& dy, const DsumView& dsum, const DxView& dx,
                           const RmsNormOptions& options = {}) {
  add_rms_norm_backward(exec, sum, weight, rstd, dy, dsum, dx, no_view, options);
}

/// Gradients of add_rms_norm on the default instance of the sum's execution space.
template <Concepts::View SumView, Concepts::OptionalView WeightView, Concepts::View RstdView, Concepts::View DyView,
          Concepts::OptionalView DsumView, Concepts::View DxView, Concepts::OptionalView DweightView>
void add_rms_norm_backward(const SumView& sum, const WeightView& weight, const RstdView& rstd, const DyView& dy,
                           const DsumView& dsum, const DxView& dx, const DweightView& dweight,
                           const RmsNormOptions& options = {}) {
  add_rms_norm_backward(typename SumView::execution_space{}, sum, weight, rstd, dy, dsum, dx, dweight, options);
}
template <Concepts::View SumView, Concepts::OptionalView WeightView, Concepts::View RstdView, Concepts::View DyView,
          Concepts::OptionalView DsumView, Concepts::View DxView>
void add_rms_norm_backward(const SumView& sum, const WeightView& weight, const RstdView& rstd, const DyView& dy,
                           const DsumView& dsum, const DxView& dx, const RmsNormOptions& options = {}) {
  add_rms_norm_backward(typename SumView::execution_space{}, sum, weight, rstd, dy, dsum, dx, no_view, options);
}

/// Gradients of add_layer_norm by x, which is that by residual, by the weight and by the bias: dx is
/// layer_norm_backward's of the sum, plus dsum.
///
/// \param exec     execution-space instance; the call is asynchronous on it
/// \param sum      what add_layer_norm wrote, any shape of rank 1 to 8
/// \param weight   as in the forward call
/// \param mean     what the forward call left
/// \param rstd     what the forward call left
/// \param dy       gradient with respect to y, the extents of sum
/// \param dsum     gradient with respect to sum by other ways than y, the extents of sum; no_view for 0
/// \param dx       output, the extents of sum; may be sum, dy or dsum
/// \param dweight  output: one element a column, of weight's types; no_view if it is not wanted
/// \param dbias    output: the same
/// \param options  as in the forward call; epsilon is in rstd already
///
/// Each dx is within 8 ulp (16-bit types: 1 ulp) of the largest of |dsum_i| and what layer_norm_backward names; dweight
/// and dbias are as there. Reads 3 MN + 2 M + N, writes MN elements; with dweight or dbias it reads another 2 MN + 2 M.
template <Concepts::ExecutionSpace Exec, Concepts::View SumView, Concepts::OptionalView WeightView,
          Concepts::View MeanView, Concepts::View RstdView, Concepts::View DyView, Concepts::OptionalView DsumView,
          Concepts::View DxView, Concepts::OptionalView DweightView, Concepts::OptionalView DbiasView>
void add_layer_norm_backward(const Exec& exec, const SumView& sum, const WeightView& weight, const MeanView& mean,
                             const RstdView& rstd, const DyView& dy, const DsumView& dsum, const DxView& dx,
                             const DweightView& dweight, const DbiasView& dbias, const LayerNormOptions& options = {}) {
  if constexpr (Impl::is_given<DsumView>) {
    Impl::operand_call<RowOperator::add_layer_norm_backward>(exec, options, std::tuple(sum, dy, dsum), dx,
                                                             std::tuple(weight), std::tuple(mean, rstd),
                                                             std::tuple(dweight, dbias));
  } else {
    layer_norm_backward(exec, sum, weight, mean, rstd, dy, dx, dweight, dbias, options);
  }
}

/// Gradient of add_layer_norm by x, which is that by residual.
template <Concepts::ExecutionSpace Exec, Concepts::View SumView, Concepts::OptionalView WeightView,
          Concepts::View MeanView, Concepts::View RstdView, Concepts::View DyView, Concepts::OptionalView DsumView,
          Concepts::View DxView>
void add_layer_norm_backward(const Exec& exec, const SumView& sum, const WeightView& weight, const MeanView& mean,
                             const RstdView& rstd, const DyView& dy, const DsumView& dsum, const DxView& dx,
                             const LayerNormOptions& options = {}) {
  add_layer_norm_backward(exec, sum, weight, mean, rstd, dy, dsum, dx, no_view, no_view, options);
}

/// Gradients of add_layer_norm on the default instance of the sum's execution space.
template <Concepts::View SumView, Concepts::OptionalView WeightView, Concepts::View MeanView, Concepts::View RstdView,
          Concepts::View DyView, Concepts::OptionalView DsumView, Concepts::View DxView,
          Concepts::OptionalView DweightView, Concepts::OptionalView DbiasView>
void add_layer_norm_backward(const SumView& sum, const WeightView& weight, const MeanView& mean, const RstdView& rstd,
                             const DyView& dy, const DsumView& dsum, const DxView& dx, const DweightView& dweight,
                             const DbiasView& dbias, const LayerNormOptions& options = {}) {
  add_layer_norm_backward(typename SumView::execution_space{}, sum, weight, mean, rstd, dy, dsum, dx, dweight, dbias,
                          options);
}
template <Concepts::View SumView, Concepts::OptionalView WeightView, Concepts::View MeanView, Concepts::View RstdView,
          Concepts::View DyView, Concepts::OptionalView DsumView, Concepts::View DxView>
void add_layer_norm_backward(const SumView& sum, const WeightView& weight, const MeanView& mean, const RstdView& rstd,
                             const DyView& dy, const DsumView& dsum, const DxView& dx,
                             const LayerNormOptions& options = {}) {
  add_layer_norm_backward(typename SumView::execution_space{}, sum, weight, mean, rstd, dy, dsum, dx, no_view, no_view,
                          options);
}

}  // namespace KokkosNN

#endif  // KOKKOSNN_ADD_NORM_HPP
