// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_RMS_NORM_ROPE_HPP
#define KOKKOSNN_RMS_NORM_ROPE_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/optional_view.hpp>
#include <KokkosNN/impl/call/rms_norm_rope_call.hpp>
#include <KokkosNN/options.hpp>

#include <Kokkos_Core.hpp>

// RMSNorm of each head's queries or keys and their rotary position embedding, in one pass. For a row x of `dim`
// elements,
//
//     n_i = x_i rstd (weight_i + weight_offset)       rstd = 1 / sqrt(sum_j x_j^2 / dim + epsilon)
//     y   = n with its first rotary_dims elements rotated in pairs, as rope.hpp has it
//
// n is not rounded to x's type between the two.
//
// Views      x and y as rope's: rank 2 to 4 and one type, double, float, half_t or bhalf_t, any layout, strides and
//            alignment, (batch, sequence, head, dim) if nothing is said. weight has an element a column, (dim), or one
//            a head and column, (head, dim), so that queries and keys that lie in one View are one call; in any
//            strides, of x's type, or float where that has 16 bits; no_view is 1 (whatever weight_offset is). Heads
//            are x's last axis besides dim that is neither the sequence's nor the batch of positions. cos, sin and
//            positions as rope's. Compiled in the library. 64-bit offsets; rows of at most 2^30 elements.
// In place   y may be x (the same View twice); any other overlap of what is written is an error.
// Ordering   asynchronous on `exec`: the call enqueues one kernel, fences nothing and allocates nothing. With
//            options.rope.check_positions, tables and a View of positions it waits for `exec`.
// Arithmetic in double for double, else in float; the sum of squares in double, of doubles in two words. Each result
//            is within 12 ulp (16-bit types: 1 ulp) of the larger one of its two terms, without tables also within
//            that of 2^-24 (double: 2^-53) of the pair's larger element; one that is not rotated within 8 ulp (16-bit
//            types: 1 ulp) of itself. A row's bits depend on its elements, its weights, its position and the options
//            alone, not on layout, alignment or the number of rows.
// Values     a NaN in a row makes the whole row NaN; an infinity makes rstd 0, itself and its partner NaN and the
//            others 0. A position that is no row of the tables gives NaN in the rotated elements. Not for -ffast-math.
// Empty      without elements nothing is written.
// Cost       each element is read once and written once as long as a GPU's team keeps the row, up to 8192 bytes; what
//            a longer one has beyond is read again. Tables are read, or angles computed, once for several heads of a
//            position.
// Errors     std::invalid_argument, with the function's name and the offending values and nothing written: as rope's,
//            a weight of other extents, epsilon negative or not finite, weight_offset not finite.

namespace KokkosNN {

/// Normalises rows, and rotates them by angles from tables.
///
/// \param exec       execution-space instance; the call is asynchronous on it
/// \param x          input, of rank 2 to 4
/// \param weight     (dim) or (head, dim), or no_view for 1
/// \param cos        cosines, (positions, rotary_dims / 2)
/// \param sin        sines, the extents of cos
/// \param y          output, the extents of x; may be x
/// \param options    epsilon, weight_offset, rope: form, rotary_dims, sequence_axis, position_offset, check_positions
/// \param positions  (sequence) or (batch, sequence); no_view where a row's position is its index
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::OptionalView WeightView,
          Concepts::View CosView, Concepts::View SinView, Concepts::View YView,
          Concepts::OptionalView PositionsView = NoView>
void rms_norm_rope(const Exec& exec, const XView& x, const WeightView& weight, const CosView& cos, const SinView& sin,
                   const YView& y, const RmsNormRopeOptions& options = {}, const PositionsView& positions = {}) {
  Impl::rms_norm_rope_call(exec, x, weight, cos, sin, y, options, positions);
}

/// Normalises rows, and rotates them by angles that are computed from theta.
///
/// \param exec       execution-space instance; the call is asynchronous on it
/// \param x          input, of rank 2 to 4
/// \param weight     (dim) or (head, dim), or no_view for 1
/// \param y          output, the extents of x; may be x
/// \param options    epsilon, weight_offset, rope: form, rotary_dims, sequence_axis, position_offset, theta,
///                   position_scale
/// \param positions  (sequence) or (batch, sequence); no_view where a row's position is its index
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::OptionalView WeightView, Concepts::View YView,
          Concepts::OptionalView PositionsView = NoView>
void rms_norm_rope(const Exec& exec, const XView& x, const WeightView& weight, const YView& y,
                   const RmsNormRopeOptions& options = {}, const PositionsView& positions = {}) {
  Impl::rms_norm_rope_call(exec, x, weight, no_view, no_view, y, options, positions);
}

/// Normalises and rotates rows on the default instance of x's execution space.
template <Concepts::View XView, Concepts::OptionalView WeightView, Concepts::View CosView, Concepts::View SinView,
          Concepts::View YView, Concepts::OptionalView PositionsView = NoView>
void rms_norm_rope(const XView& x, const WeightView& weight, const CosView& cos, const SinView& sin, const YView& y,
                   const RmsNormRopeOptions& options = {}, const PositionsView& positions = {}) {
  rms_norm_rope(typename XView::execution_space{}, x, weight, cos, sin, y, options, positions);
}
template <Concepts::View XView, Concepts::OptionalView WeightView, Concepts::View YView,
          Concepts::OptionalView PositionsView = NoView>
void rms_norm_rope(const XView& x, const WeightView& weight, const YView& y, const RmsNormRopeOptions& options = {},
                   const PositionsView& positions = {}) {
  rms_norm_rope(typename XView::execution_space{}, x, weight, y, options, positions);
}

}  // namespace KokkosNN

#endif  // KOKKOSNN_RMS_NORM_ROPE_HPP
