// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_ROPE_HPP
#define KOKKOSNN_ROPE_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/optional_view.hpp>
#include <KokkosNN/impl/call/rope_call.hpp>
#include <KokkosNN/options.hpp>

#include <Kokkos_Core.hpp>

// Rotary position embedding and its gradient. A row at position p has its first rotary_dims elements rotated in pairs
// (a, b), pair i by the angle that p has in column i,
//
//     (a, b) -> (a cos - b sin, b cos + a sin)
//
// and its other elements copied. Pair i is (i, i + rotary_dims / 2) with RopeForm::half_rotated, (2 i, 2 i + 1) with
// RopeForm::interleaved. The gradient is the rotation by the negative angle. Angles come from tables of cosines and
// sines, or are computed: p position_scale theta^(-2 i / rotary_dims).
//
// Common to all functions:
//
// Views      x, y, dy and dx of rank 2 to 4 and one type: double, float, half_t or bhalf_t; any layout, any strides (a
//            stride may be 0 in inputs), any alignment; fastest where rows have stride 1 and their halves begin at
//            16-byte boundaries. The last axis is the row's. options.sequence_axis is the axis of positions: as it is
//            if nothing is said, (batch, sequence, head, dim), (sequence, head, dim) and (sequence, dim); for (batch,
//            head, sequence, dim) or (batch, sequence, dim) it is -2. Heads of any number: queries and keys are two
//            calls, or one on a View of both. cos and sin have rotary_dims / 2 columns and a row a position, in any
//            strides, and are double if x is, else float. Compiled in the library. 64-bit offsets; rows of at most
//            2^30 elements.
// Positions  options.position_offset plus the index along sequence_axis, or plus the element of `positions`, a View of
//            std::int32_t or std::int64_t of shape (sequence) or (batch, sequence), where the batch is x's first axis
//            that is not the sequence's. With tables a position that is no row of them is an error where the host knows
//            it. One of a View gives NaN in the rotated elements of its rows, and nothing is read out of bounds; with
//            options.check_positions it is an error instead. Without tables positions may be negative.
// In place   y may be x, dx may be dy (the same View twice), and elements behind the rotated ones are neither read nor
//            written then; any other overlap of what is written is an error.
// Ordering   asynchronous on `exec`: the call enqueues one kernel, fences nothing and allocates nothing. With
//            options.check_positions, tables and a View of positions it waits for `exec`.
// Arithmetic in double for double, else in float. With tables each result is within 2 ulp (16-bit types: 1 ulp) of the
//            larger one of its two terms, for the cosines and sines that are given. The same call gives the same bits
//            each time; a row's bits depend on its elements, its position and the options alone, but between a
//            vectorised layout and others.
// Angles     computed without tables: position * frequency is reduced in double-double arithmetic, so that an angle is
//            as good as one of the first turn. Each cosine and sine is within 2 ulp of itself, or within 2^-25 (double:
//            2^-54) of it where that is more, as long as |position position_scale| is at most 2^31 and theta at least
//            1; each result within 4 ulp (16-bit types: 1 ulp) of the larger one of its terms, or of 2^-24 (double:
//            2^-53) of the pair's larger element. Beyond 2^31 the angle's error grows as the position, and beyond 2^48
//            results are not defined.
// Values     a NaN or an infinity among x reaches its own pair only, as IEEE arithmetic evaluates the formulas; copied
//            elements keep their bits. Not for -ffast-math.
// Empty      without elements nothing is written.
// Cost       each element is read once and written once; tables are read, or angles computed, once for several heads of
//            a position.
// Errors     std::invalid_argument, with the function's name and the offending values and nothing written: extents
//            that do not fit, rotary_dims odd or out of range, sequence_axis out of range, positions that are no rows
//            of the tables, theta, position_scale or position_offset out of range, a position_scale with tables,
//            overlap.
// Source     Su et al., "RoFormer: enhanced transformer with rotary position embedding", 2021.

namespace KokkosNN {

/// Rotates rows by angles from tables.
///
/// \param exec       execution-space instance; the call is asynchronous on it
/// \param x          input, of rank 2 to 4
/// \param cos        cosines, (positions, rotary_dims / 2)
/// \param sin        sines, the extents of cos
/// \param y          output, the extents of x; may be x
/// \param options    form, rotary_dims, sequence_axis, position_offset, check_positions; see RopeOptions
/// \param positions  (sequence) or (batch, sequence); no_view where a row's position is its index
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::View CosView, Concepts::View SinView,
          Concepts::View YView, Concepts::OptionalView PositionsView = NoView>
void rope(const Exec& exec, const XView& x, const CosView& cos, const SinView& sin, const YView& y,
          const RopeOptions& options = {}, const PositionsView& positions = {}) {
  Impl::rope_call<1>(exec, x, cos, sin, y, options, positions);
}

/// Rotates rows by angles that are computed from theta.
///
/// \param exec       execution-space instance; the call is asynchronous on it
/// \param x          input, of rank 2 to 4
/// \param y          output, the extents of x; may be x
/// \param options    form, rotary_dims, sequence_axis, position_offset, theta, position_scale; see RopeOptions
/// \param positions  (sequence) or (batch, sequence); no_view where a row's position is its index
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::View YView,
          Concepts::OptionalView PositionsView = NoView>
void rope(const Exec& exec, const XView& x, const YView& y, const RopeOptions& options = {},
          const PositionsView& positions = {}) {
  Impl::rope_call<1>(exec, x, no_view, no_view, y, options, positions);
}

/// Rotates rows on the default instance of x's execution space.
template <Concepts::View XView, Concepts::View CosView, Concepts::View SinView, Concepts::View YView,
          Concepts::OptionalView PositionsView = NoView>
void rope(const XView& x, const CosView& cos, const SinView& sin, const YView& y, const RopeOptions& options = {},
          const PositionsView& positions = {}) {
  rope(typename XView::execution_space{}, x, cos, sin, y, options, positions);
}
template <Concepts::View XView, Concepts::View YView, Concepts::OptionalView PositionsView = NoView>
void rope(const XView& x, const YView& y, const RopeOptions& options = {}, const PositionsView& positions = {}) {
  rope(typename XView::execution_space{}, x, y, options, positions);
}

/// Gradient of rope by x: dy rotated back, (da, db) -> (da cos + db sin, db cos - da sin).
///
/// \param exec       execution-space instance; the call is asynchronous on it
/// \param dy         gradient with respect to y
/// \param cos        as in the forward call
/// \param sin        as in the forward call
/// \param dx         output, the extents of dy; may be dy
/// \param options    as in the forward call
/// \param positions  as in the forward call
template <Concepts::ExecutionSpace Exec, Concepts::View DyView, Concepts::View CosView, Concepts::View SinView,
          Concepts::View DxView, Concepts::OptionalView PositionsView = NoView>
void rope_backward(const Exec& exec, const DyView& dy, const CosView& cos, const SinView& sin, const DxView& dx,
                   const RopeOptions& options = {}, const PositionsView& positions = {}) {
  Impl::rope_call<-1>(exec, dy, cos, sin, dx, options, positions);
}

/// Gradient of rope without tables.
///
/// \param exec       execution-space instance; the call is asynchronous on it
/// \param dy         gradient with respect to y
/// \param dx         output, the extents of dy; may be dy
/// \param options    as in the forward call
/// \param positions  as in the forward call
template <Concepts::ExecutionSpace Exec, Concepts::View DyView, Concepts::View DxView,
          Concepts::OptionalView PositionsView = NoView>
void rope_backward(const Exec& exec, const DyView& dy, const DxView& dx, const RopeOptions& options = {},
                   const PositionsView& positions = {}) {
  Impl::rope_call<-1>(exec, dy, no_view, no_view, dx, options, positions);
}

/// Gradient of rope on the default instance of dy's execution space.
template <Concepts::View DyView, Concepts::View CosView, Concepts::View SinView, Concepts::View DxView,
          Concepts::OptionalView PositionsView = NoView>
void rope_backward(const DyView& dy, const CosView& cos, const SinView& sin, const DxView& dx,
                   const RopeOptions& options = {}, const PositionsView& positions = {}) {
  rope_backward(typename DyView::execution_space{}, dy, cos, sin, dx, options, positions);
}
template <Concepts::View DyView, Concepts::View DxView, Concepts::OptionalView PositionsView = NoView>
void rope_backward(const DyView& dy, const DxView& dx, const RopeOptions& options = {},
                   const PositionsView& positions = {}) {
  rope_backward(typename DyView::execution_space{}, dy, dx, options, positions);
}

}  // namespace KokkosNN

#endif  // KOKKOSNN_ROPE_HPP
