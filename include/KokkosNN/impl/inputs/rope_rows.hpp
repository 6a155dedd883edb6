// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_INPUTS_ROPE_ROWS_HPP
#define KOKKOSNN_IMPL_INPUTS_ROPE_ROWS_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/math/turns.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

// Rows of a rotary embedding, the positions that they have, and the angles of a position.

namespace KokkosNN::Impl {

/// An axis of rows, with its strides in x, in y and in a View of positions.
struct RopeAxis {
  std::int64_t extent    = 1;
  std::int64_t x_stride  = 0;
  std::int64_t y_stride  = 0;
  std::int64_t positions = 0;
  std::int64_t step      = 0;  ///< positions from one row to the next without a View of positions
};

/// Position of a group of rows, and where the first one, of head 0, begins.
struct RopePlace {
  std::int64_t x;
  std::int64_t y;
  std::int64_t position;
};

/// Rows of x and y. Their positions lie along two axes, outer and inner; the rows that share a position are its heads.
template <class X>
struct RopeRows {
  const X* x;
  X* y;
  RopeAxis outer;
  RopeAxis inner;
  RopeAxis heads;
  std::int64_t dim;
  std::int64_t pairs;  ///< rotated pairs of a row
  std::int64_t rest;   ///< elements behind them that are copied
  std::int64_t x_dim_stride;
  std::int64_t y_dim_stride;
  const void* positions;  ///< null where a row's position is its index
  int position_bytes;
  std::int64_t position_offset;

  KOKKOS_INLINE_FUNCTION RopePlace place(std::int64_t index) const {
    const std::int64_t o = outer.extent == 1 ? 0 : index / inner.extent;
    const std::int64_t i = index - o * inner.extent;
    return {o * outer.x_stride + i * inner.x_stride, o * outer.y_stride + i * inner.y_stride, position(o, i)};
  }

 private:
  KOKKOS_INLINE_FUNCTION std::int64_t position(std::int64_t o, std::int64_t i) const {
    if (positions == nullptr) return position_offset + o * outer.step + i * inner.step;
    const std::int64_t at       = o * outer.positions + i * inner.positions;
    const std::int64_t position = position_bytes == 4 ? static_cast<const std::int32_t*>(positions)[at]
                                                      : static_cast<const std::int64_t*>(positions)[at];
    // Whatever it is: a sum that leaves 64 bits is no row of a table.
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(position) +
                                     static_cast<std::uint64_t>(position_offset));
  }
};

/// Angles from tables, a row a position. Those of a position that is no row are NaN.
template <class A>
struct TableAngles {
  static constexpr bool are_computed = false;

  const A* cos;
  const A* sin;
  std::int64_t rows;
  std::int64_t cos_row_stride;
  std::int64_t cos_col_stride;
  std::int64_t sin_row_stride;
  std::int64_t sin_col_stride;

  KOKKOS_INLINE_FUNCTION bool has(std::int64_t position) const { return position >= 0 && position < rows; }

  /// Angles of n columns from `column` on.
  template <int n>
  KOKKOS_INLINE_FUNCTION void load(std::int64_t position, std::int64_t column, A (&c)[n], A (&s)[n]) const {
    const bool is_row      = has(position);
    const A* const cosines = cos + (is_row ? position : 0) * cos_row_stride + column * cos_col_stride;
    const A* const sines   = sin + (is_row ? position : 0) * sin_row_stride + column * sin_col_stride;
    KOKKOSNN_IMPL_UNROLL
    for (int j = 0; j < n; ++j) {
      c[j] = is_row ? cosines[j * cos_col_stride] : Kokkos::Experimental::quiet_NaN_v<A>;
      s[j] = is_row ? sines[j * sin_col_stride] : Kokkos::Experimental::quiet_NaN_v<A>;
    }
  }
};

/// Angles of position * frequency.
template <class A>
struct ComputedAngles {
  static constexpr bool are_computed = true;

  RotaryFrequencies frequencies;

  template <int n>
  KOKKOS_INLINE_FUNCTION void load(std::int64_t position, std::int64_t column, A (&c)[n], A (&s)[n]) const {
    DoubleDouble<double> frequency = frequencies.of(column);
    KOKKOSNN_IMPL_UNROLL
    for (int j = 0; j < n; ++j) {
      const auto angle = cos_sin<A>(rounded_angle<A>(reduced_angle(frequency, static_cast<double>(position))));
      c[j]             = angle.cos;
      s[j]             = angle.sin;
      if (j + 1 < n) frequency = frequencies.next(frequency);
    }
  }
};

/// Rotates a pair: (a, b) -> (a c - b s, b c + a s). Each result is rounded twice, the last time of both terms' sum.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION void rotate_pair(T& a, T& b, const T& c, const T& s) {
  const T first = multiply_add(a, c, -(b * s));
  b             = multiply_add(b, c, a * s);
  a             = first;
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_INPUTS_ROPE_ROWS_HPP
