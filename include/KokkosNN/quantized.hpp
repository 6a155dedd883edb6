// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_QUANTIZED_HPP
#define KOKKOSNN_QUANTIZED_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/float8.hpp>
#include <KokkosNN/impl/call/optional_view.hpp>
#include <KokkosNN/impl/call/quantized_call.hpp>
#include <KokkosNN/options.hpp>

#include <Kokkos_Core.hpp>

// Softmax and normalisations whose results are stored in 8 bits, as matrix products of integers and of float8 take
// them. With r the results of softmax, rms_norm or layer_norm of a row, by the formulas of softmax.hpp and norm.hpp,
// and q = 127 for std::int8_t, 448 for float8_e4m3,
//
//     scale = max_i |r_i| / q
//     y_i   = r_i / scale, rounded to the nearest, ties to even          so that r_i is about y_i scale
//
// The largest result is found in the pass that computes them: x is not written, and not read again.
//
// Common to all functions:
//
// Views      x and y of rank 1 to 8, any layout, any strides (a stride may be 0 in inputs), any alignment; fastest
//            where rows have stride 1 and begin at 16-byte boundaries. x holds double, float, half_t or bhalf_t, y
//            std::int8_t or float8_e4m3. scales has x's axes without those that are reduced and holds float; for
//            float8_e4m3 it may be no_view: results are then stored as they are, and those beyond 448 as 448. weight
//            and bias have one element a column, in any stride, of x's type, or float where that has 16 bits; no_view
//            in place of a weight is 1 (whatever weight_offset is) and in place of a bias 0. Compiled in the library.
//            64-bit offsets.
// In place   nothing: any overlap of what is written is an error.
// Ordering   asynchronous on `exec`: the call enqueues one kernel, fences nothing and allocates nothing.
// Arithmetic in double for double, else in float; sums of many elements in double, those of double in two words.
//            scale is within 2^-20 of itself, and y_i is what a number within 2^-20 of r_i / scale is rounded to; of
//            softmax in float both within 2^-13, of layer_norm within 8 ulp, in the accumulator's type, of what
//            norm.hpp measures its error against. The
//            largest result of a row is q or -q where its scale is above 2^-126. A row's bits depend on its elements,
//            its length, the columns' operands and the options alone, not on layout, alignment or the number of rows:
//            with either Determinism.
// Values     a scale is never below 2^-126, so smaller results may be 0. A row of zeros has the scale 1, by which may
//            be divided. If a result is infinite or NaN, or the largest one beyond a float's range, the scale is NaN
//            and the row 0 in int8, NaN in float8; softmax.hpp and norm.hpp say which rows have such results. Without
//            scales each NaN is NaN, and infinity is 448. Not for -ffast-math.
// Empty      without rows or columns nothing is written, scales neither.
// Cost       MN + N elements are read (with a bias MN + 2 N), MN bytes and M floats written. A GPU's team keeps a row
//            of up to 32768 bytes; what a longer one has beyond is read two times more (softmax:
//            once more to write, twice in its first pass), from the cache where that holds it. On a host a row is one
//            thread's. Strides other than 1 along the reduced axis are served, not tuned.
// Errors     std::invalid_argument, with the function's name and the offending values and nothing written: extents
//            that differ, axis out of range, options out of range, overlap, a plan in the options.

namespace KokkosNN {

/// Softmax of every row in 8 bits.
///
/// \param exec     execution-space instance; the call is asynchronous on it
/// \param x        input, any shape of rank 1 to 8
/// \param y        output, the extents of x
/// \param scales   output: one scale a row, x's extents without the reduced axes; no_view for float8 as it is
/// \param options  axis, axes, scale, masked_row; see SoftmaxOptions
///
/// As the largest result is that of the largest logit, one pass over x less than for norms is enough.
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::View YView, Concepts::OptionalView ScalesView>
void quantized_softmax(const Exec& exec, const XView& x, const YView& y, const ScalesView& scales,
                       const SoftmaxOptions& options = {}) {
  Impl::quantized_call<RowOperator::softmax>(exec, options, x, y, scales);
}

/// Softmax in 8 bits on the default instance of x's execution space.
template <Concepts::View XView, Concepts::View YView, Concepts::OptionalView ScalesView>
void quantized_softmax(const XView& x, const YView& y, const ScalesView& scales, const SoftmaxOptions& options = {}) {
  quantized_softmax(typename XView::execution_space{}, x, y, scales, options);
}

/// RMSNorm of every row in 8 bits.
///
/// \param exec     execution-space instance; the call is asynchronous on it
/// \param x        input, any shape of rank 1 to 8
/// \param weight   one weight a column, or no_view for 1
/// \param y        output, the extents of x
/// \param scales   output: one scale a row, x's extents without the axis; no_view for float8 as it is
/// \param options  axis, epsilon, weight_offset; see RmsNormOptions
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::OptionalView WeightView, Concepts::View YView,
          Concepts::OptionalView ScalesView>
void quantized_rms_norm(const Exec& exec, const XView& x, const WeightView& weight, const YView& y,
                        const ScalesView& scales, const RmsNormOptions& options = {}) {
  Impl::quantized_call<RowOperator::rms_norm>(exec, options, x, y, scales, weight);
}

/// RMSNorm in 8 bits on the default instance of x's execution space.
template <Concepts::View XView, Concepts::OptionalView WeightView, Concepts::View YView,
          Concepts::OptionalView ScalesView>
void quantized_rms_norm(const XView& x, const WeightView& weight, const YView& y, const ScalesView& scales,
                        const RmsNormOptions& options = {}) {
  quantized_rms_norm(typename XView::execution_space{}, x, weight, y, scales, options);
}

/// LayerNorm of every row in 8 bits.
///
/// \param exec     execution-space instance; the call is asynchronous on it
/// \param x        input, any shape of rank 1 to 8
/// \param weight   one weight a column, or no_view for 1
/// \param bias     one bias a column, or no_view for 0
/// \param y        output, the extents of x
/// \param scales   output: one scale a row, x's extents without the axis; no_view for float8 as it is
/// \param options  axis, epsilon; see LayerNormOptions
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::OptionalView WeightView,
          Concepts::OptionalView BiasView, Concepts::View YView, Concepts::OptionalView ScalesView>
void quantized_layer_norm(const Exec& exec, const XView& x, const WeightView& weight, const BiasView& bias,
                          const YView& y, const ScalesView& scales, const LayerNormOptions& options = {}) {
  Impl::quantized_call<RowOperator::layer_norm>(exec, options, x, y, scales, weight, bias);
}

/// LayerNorm in 8 bits on the default instance of x's execution space.
template <Concepts::View XView, Concepts::OptionalView WeightView, Concepts::OptionalView BiasView,
          Concepts::View YView, Concepts::OptionalView ScalesView>
void quantized_layer_norm(const XView& x, const WeightView& weight, const BiasView& bias, const YView& y,
                          const ScalesView& scales, const LayerNormOptions& options = {}) {
  quantized_layer_norm(typename XView::execution_space{}, x, weight, bias, y, scales, options);
}

}  // namespace KokkosNN

#endif  // KOKKOSNN_QUANTIZED_HPP
