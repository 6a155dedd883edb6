// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_DEVICE_WARPGROUP_SUMS_HPP
#define KOKKOSNN_IMPL_GPU_DEVICE_WARPGROUP_SUMS_HPP

#include <KokkosNN/impl/gpu/device/barriers.hpp>
#include <KokkosNN/impl/gpu/device/matrix_instructions.hpp>
#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

// The sums of a warpgroup's products, of which a thread has pairs of neighbouring columns of two rows, each shared with
// three others: number 4 j + 2 r + c is of row r and column 8 j + 2 place + c, `place` being the thread among the four.

namespace KokkosNN::Impl {

inline constexpr int warpgroup_unit = 8;  ///< elements that a thread moves at once

/// Item i of thread j becomes item j of thread i, among the four threads of a row. An item is `together` values: a
/// pair, so that each thread then has eight neighbours, or a word of two 16-bit elements.
template <class I, int together, class A>
KOKKOS_FORCEINLINE_FUNCTION void exchange_among_four(A* values, int place) {
  KOKKOSNN_IMPL_UNROLL
  for (int mask = 1; mask < 4; mask *= 2) {
    const bool is_upper = (place & mask) != 0;
    KOKKOSNN_IMPL_UNROLL
    for (int i = 0; i < 4 * together; ++i) {
      if ((i / together & mask) != 0) continue;
      A &low = values[i], &high = values[i + together * mask];
      const A other           = I::exchange(is_upper ? low : high, mask);
      (is_upper ? low : high) = other;
    }
  }
}

/// Element c of the two of a word.
template <class X>
KOKKOS_FORCEINLINE_FUNCTION float half_of(std::uint32_t word, int c) {
  return static_cast<float>(Kokkos::bit_cast<X>(static_cast<std::uint16_t>(word >> (16 * c))));
}

/// Sum over the four threads of a row.
template <class I, class A>
KOKKOS_FORCEINLINE_FUNCTION A sum_of_four(A x) {
  x += I::exchange(x, 1);
  return x + I::exchange(x, 2);
}

/// Calls f(sum, column ahead of 2 place) for a thread's sums of a row.
template <class A, int count, class F>
KOKKOS_FORCEINLINE_FUNCTION void for_sums_of_row(A (&sums)[count], int r, const F& f) {
  KOKKOSNN_IMPL_UNROLL
  for (int j = 0; j < count / 4; ++j) {
    KOKKOSNN_IMPL_UNROLL
    for (int c = 0; c < 2; ++c) f(sums[4 * j + 2 * r + c], 8 * j + c);
  }
}

/// Calls f(row, each) for lines of 64 columns of a thread's sums, `row` being that of the first ones and the next one 8
/// further; each(g) calls g(sum, column), the thread's first column being `first`.
template <class Row, class A, int count, class F>
KOKKOS_FORCEINLINE_FUNCTION void for_lines_of_sums(A (&sums)[count], const Row* row, int first, const F& f) {
  constexpr int line = 64, cols = 2 * count;
  static_assert(cols % line == 0);
  KOKKOSNN_IMPL_UNROLL
  for (int n = 0; n < 2 * cols / line; ++n) {
    const int r = n % 2, begin = n / 2 * line;
    const int of_line = opaque(first);  // or all lines' columns would stay in registers, and spill
    f(row[8 * r], [&](const auto& g) {
      for_sums_of_row(sums, r, [&](A& sum, int col) {
        if (begin <= col && col < begin + line) g(sum, col + of_line);
      });
    });
  }
}

/// True, in the four threads of a row, if one of its sums, times a factor, is NaN.
template <class I, int count>
KOKKOS_FORCEINLINE_FUNCTION bool has_nan_in_row(const float (&sums)[count], int r, float factor) {
  bool is_nan = false;
  KOKKOSNN_IMPL_UNROLL
  for (int i = 0; i < count / 2; ++i) {
    const float value = sums[i / 2 * 4 + 2 * r + i % 2] * factor;
    is_nan            = is_nan || value != value;
  }
  return sum_of_four<I>(is_nan ? 1.0f : 0.0f) != 0.0f;
}

/// Rounds a thread's sums to words of two, as products take them in registers.
template <class I, class X, int count>
KOKKOS_FORCEINLINE_FUNCTION void round_sums(const float (&sums)[count], std::uint32_t (&words)[count / 2]) {
  KOKKOSNN_IMPL_UNROLL
  for (int i = 0; i < count / 2; ++i) words[i] = I::template packed<X>(sums[2 * i], sums[2 * i + 1]);
}

/// A row that sums are written to.
template <class X>
struct RowOfSums {
  X* data;  ///< null: it is not written
  std::int64_t stride;
  int count;
  bool in_units;  ///< units of eight begin at multiples of 16 bytes, and count is a multiple of eight
};

/// Writes result(sum) for the sums of a row; all threads of a warp must call.
template <class I, class X, int count, class F>
KOKKOS_FORCEINLINE_FUNCTION void write_row_of_sums(const float (&sums)[count], int r, int place, const RowOfSums<X>& to,
                                                   const F& result) {
  if (to.in_units) {
    KOKKOSNN_IMPL_UNROLL
    for (int group = 0; group < count / 16; ++group) {
      float values[warpgroup_unit];
      KOKKOSNN_IMPL_UNROLL
      for (int i = 0; i < warpgroup_unit; ++i) values[i] = result(sums[group * 16 + i / 2 * 4 + 2 * r + i % 2]);
      exchange_among_four<I, 2>(values, place);
      MatrixChunk chunk;
      KOKKOSNN_IMPL_UNROLL
      for (int i = 0; i < 4; ++i) chunk.word[i] = I::template packed<X>(values[2 * i], values[2 * i + 1]);
      const int col = (4 * group + place) * warpgroup_unit;
      if (to.data != nullptr && col < to.count) *reinterpret_cast<MatrixChunk*>(to.data + col) = chunk;
    }
  } else {
    float values[count / 2];  // in memory, so that the code, which seldom runs, is short
    KOKKOSNN_IMPL_UNROLL
    for (int i = 0; i < count / 2; ++i) values[i] = result(sums[i / 2 * 4 + 2 * r + i % 2]);
    KOKKOSNN_IMPL_NO_UNROLL
    for (int i = 0; i < count / 2; ++i) {
      const int col = i / 2 * 8 + 2 * place + i % 2;
      if (to.data != nullptr && col < to.count) to.data[col * to.stride] = static_cast<X>(values[i]);
    }
  }
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_DEVICE_WARPGROUP_SUMS_HPP
