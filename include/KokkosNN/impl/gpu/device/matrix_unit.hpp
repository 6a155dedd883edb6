// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_DEVICE_MATRIX_UNIT_HPP
#define KOKKOSNN_IMPL_GPU_DEVICE_MATRIX_UNIT_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/half.hpp>
#include <KokkosNN/impl/backend.hpp>
#include <KokkosNN/impl/gpu/device/matrix_instructions.hpp>
#include <KokkosNN/impl/matmul_shapes.hpp>
#include <KokkosNN/pack.hpp>
#include <KokkosNN/precision.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

// Matrix units: `lanes` threads (a warp, or one thread) multiply tiles of 16 x 16 elements, C += A B. Tensor cores have
// one on CUDA by mma.sync for 16-bit types, double, and TF32; matrix cores one on HIP by MFMA for all types; the others
// multiply by plain instructions. A unit has
//
//   Element, Accumulated, Address   types; an Address is a place in team scratch
//   lanes, K                        threads; columns of A and rows of B that one product takes, a divisor of 16
//   A, B, C                         fragments: the parts of the operands and of the accumulator that a thread has
//   rows, cols                      of a 16 x 16 accumulator, a thread has `C::value[rows][cols]`:
//   row_of(r, lane)                 the row of value[r][..], from 0 to 15
//   col_of(c, lane)                 the column of value[..][c]
//   neighbours                      of a row's columns, the thread has so many that follow each other
//   has_pairs_8_apart               true if row_of(1) is row_of(0) + 8, and col_of(c + 2) is col_of(c) + 8
//   load_a, load_b_columns          from tiles along k: B's tile has its columns as rows
//   load_b, load_a_columns          from tiles across k: A's tile has its columns as rows
//   multiply_add(c, a, b)           C += A B
//   operand<part>(c, lane)          columns of an accumulator as A: part 0 to 16 / K - 1 takes K of them
//   load_b_for<part>                from a tile across k: B that operand<part> multiplies
//   row_max, row_sum, any           over the threads that share a row, over all
//   reads_both_ways                 true if tiles along and across k have their chunks at the same places
//   store                           an accumulator's rows times a factor each, rounded, to a tile along k
//   zero(c)                         sets an accumulator to 0
//
// A tile is in team scratch, its rows of row_bytes bytes one behind the other; its chunks of 16 bytes are where
// along_place<row_bytes>(row, chunk) or across_place<row_bytes>(row, chunk) says, so that threads that read at the same
// time find them in different banks; rows that differ by a multiple of 8 have one pattern. `row` and `col` of a load
// are multiples of 16 and K. Tiles begin at multiples of 128 bytes; row_bytes are a multiple of 32, of float and double
// 64.
//
// copy_async copies `bytes` of 16 bytes, and zeros behind them. They may be read once the copying thread has waited for
// them and all threads have met at a barrier: commit() ends a group of copies, wait<n>() waits for all groups but the
// last n.

namespace KokkosNN::Impl {

/// Bytes of a chunk, the unit of asynchronous copies.
inline constexpr int chunk_bytes = 16;

/// Alignment of a tile in team scratch, in bytes.
inline constexpr int tile_alignment = 128;

/// Chunks of a row that change places with each other: as many as rows of tiles repeat themselves by, up to 8.
KOKKOS_INLINE_FUNCTION constexpr int swapped_chunks(int row_bytes) {
  const int chunks = row_bytes / chunk_bytes;
  const int power  = chunks & -chunks;
  return power < 8 ? power : 8;
}

/// Place for readers of a chunk in each of 8 rows.
template <int row_bytes>
KOKKOS_FORCEINLINE_FUNCTION constexpr int place_for_8_rows(int row, int chunk) {
  constexpr int swapped = swapped_chunks(row_bytes);
  const int turn        = static_cast<int>(static_cast<unsigned>(row) / (8 / swapped)) & (swapped - 1);
  return row * row_bytes + (chunk ^ turn) * chunk_bytes;
}

/// Place for readers of 32 bytes in each of 4 rows.
template <int row_bytes>
KOKKOS_FORCEINLINE_FUNCTION constexpr int place_for_4_rows(int row, int chunk) {
  static_assert(row_bytes % 64 == 0);
  constexpr int swapped = swapped_chunks(row_bytes);
  const int turn        = (swapped == 8 ? row & 3 : row >> 1 & 1) * 2;
  return row * row_bytes + (chunk ^ turn) * chunk_bytes;
}

/// Places of units that read a chunk in each of 8 rows, along k and across it.
struct PlacesFor8Rows {
  template <int row_bytes>
  KOKKOS_FORCEINLINE_FUNCTION static constexpr int along_place(int row, int chunk) {
    return place_for_8_rows<row_bytes>(row, chunk);
  }
  template <int row_bytes>
  KOKKOS_FORCEINLINE_FUNCTION static constexpr int across_place(int row, int chunk) {
    return place_for_8_rows<row_bytes>(row, chunk);
  }
};

/// Members that all units on warps with an accumulator of mma.sync have: two rows of two pairs of columns.
template <class A_, class Instructions>
struct MmaLayout {
  using Accumulated                       = A_;
  using Address                           = typename Instructions::Address;
  static constexpr bool uses_tensor_cores = true;
  static constexpr int lanes              = 32;
  static constexpr int rows               = 2;
  static constexpr int cols               = 4;
  static constexpr int neighbours         = 2;
  static constexpr bool has_pairs_8_apart = true;
  struct C {
    Accumulated value[rows][cols];
  };

  KOKKOS_FORCEINLINE_FUNCTION static int row_of(int r, int lane) { return (lane >> 2) + 8 * r; }
  KOKKOS_FORCEINLINE_FUNCTION static int col_of(int c, int lane) { return (c >> 1) * 8 + 2 * (lane & 3) + (c & 1); }
  KOKKOS_FORCEINLINE_FUNCTION static void zero(C& c) {
    for (auto& row : c.value) {
      for (Accumulated& value : row) value = 0;
    }
  }
  KOKKOS_FORCEINLINE_FUNCTION static Accumulated row_max(Accumulated x) {
    x = Kokkos::fmax(x, Instructions::exchange(x, 1));
    return Kokkos::fmax(x, Instructions::exchange(x, 2));
  }
  KOKKOS_FORCEINLINE_FUNCTION static Accumulated row_sum(Accumulated x) {
    x += Instructions::exchange(x, 1);
    return x + Instructions::exchange(x, 2);
  }
};

/// Elements of 16 bits on a warp's tensor cores. Products are exact, sums are float's with truncation.
template <class T, class Instructions_ = NvidiaInstructions>
struct MmaUnit16 : Instructions_, MmaLayout<float, Instructions_>, PlacesFor8Rows {
  using Instructions                    = Instructions_;
  using Layout                          = MmaLayout<float, Instructions>;
  using Element                         = T;
  using Address                         = typename Layout::Address;
  using C                               = typename Layout::C;
  static constexpr int K                = 16;
  static constexpr bool reads_both_ways = true;
  struct A {
    std::uint32_t word[4];
  };
  struct B {
    std::uint32_t word[4];
  };

  template <int row_bytes>
  KOKKOS_FORCEINLINE_FUNCTION static A load_a(Address tile, int row, int col, int lane) {
    A a;
    Instructions::template load_blocks<false>(a.word, tile + place<row_bytes>(row, lane & 15, col / 8 + (lane >> 4)));
    return a;
  }
  template <int row_bytes>
  KOKKOS_FORCEINLINE_FUNCTION static A load_a_columns(Address tile, int row, int col, int lane) {
    A a;
    Instructions::template load_blocks<true>(
        a.word, tile + place<row_bytes>(row, (lane & 7) + ((lane >> 4) << 3), col / 8 + ((lane >> 3) & 1)));
    return a;
  }
  template <int row_bytes>
  KOKKOS_FORCEINLINE_FUNCTION static B load_b(Address tile, int row, int col, int lane) {
    B b;
    Instructions::template load_blocks<true>(b.word, tile + place<row_bytes>(row, lane & 15, col / 8 + (lane >> 4)));
    return b;
  }
  template <int row_bytes>
  KOKKOS_FORCEINLINE_FUNCTION static B load_b_columns(Address tile, int row, int col, int lane) {
    B b;
    Instructions::template load_blocks<false>(
        b.word, tile + place<row_bytes>(row, (lane & 7) + ((lane >> 4) << 3), col / 8 + ((lane >> 3) & 1)));
    return b;
  }

  KOKKOS_FORCEINLINE_FUNCTION static void multiply_add(C& c, const A& a, const B& b) {
    auto& d = c.value;
    Instructions::template product16<T>(d[0][0], d[0][1], d[1][0], d[1][1], a.word, b.word[0], b.word[1]);
    Instructions::template product16<T>(d[0][2], d[0][3], d[1][2], d[1][3], a.word, b.word[2], b.word[3]);
  }

  /// Rounds to the elements' type.
  template <int part>
  KOKKOS_FORCEINLINE_FUNCTION static A operand(const C& c, int) {
    const auto& d = c.value;
    return {{packed(d[0][0], d[0][1]), packed(d[1][0], d[1][1]), packed(d[0][2], d[0][3]), packed(d[1][2], d[1][3])}};
  }
  template <int row_bytes, int part>
  KOKKOS_FORCEINLINE_FUNCTION static B load_b_for(Address tile, int row, int col, int lane) {
    return load_b<row_bytes>(tile, row, col, lane);
  }

  template <int row_bytes>
  KOKKOS_FORCEINLINE_FUNCTION static void store(Address tile, int row, int col, int lane, const C& c,
                                                const float (&factor)[2]) {
    for (int r = 0; r < 2; ++r) {
      for (int half = 0; half < 2; ++half) {
        const float* pair = c.value[r] + 2 * half;
        Instructions::store(tile + place<row_bytes>(row, (lane >> 2) + 8 * r, col / 8 + half) + (lane & 3) * 4,
                            packed(pair[0] * factor[r], pair[1] * factor[r]));
      }
    }
  }

 private:
  template <int row_bytes>
  KOKKOS_FORCEINLINE_FUNCTION static int place(int row, int row_in_tile, int chunk) {
    return row * row_bytes + place_for_8_rows<row_bytes>(row_in_tile, chunk);
  }
  KOKKOS_FORCEINLINE_FUNCTION static std::uint32_t packed(float first, float second) {
    return Instructions::template packed<T>(first, second);
  }
};

/// Elements of 4 or 8 bytes that mma.sync takes one by one: lane l has row l / 4 or l / 4 + 8 of A at column l % 4 of
/// each four, and column l / 4 or l / 4 + 8 of B at row l % 4.
template <class T, int K_, class Instructions>
struct MmaElements {
  using Address = typename Instructions::Address;

  /// Element at (row, col) of a tile; row_in_8 is that of its group of 8 rows.
  template <int row_bytes>
  KOKKOS_FORCEINLINE_FUNCTION static T at(Address tile, int row, int row_in_8, int col) {
    constexpr int per_chunk = chunk_bytes / int(sizeof(T));
    return Instructions::template load<T>(tile + row * row_bytes +
                                          place_for_4_rows<row_bytes>(row_in_8, col / per_chunk) +
                                          col % per_chunk * int(sizeof(T)));
  }
  /// A's elements [k / 4][half of rows], from a tile whose rows are those of A.
  template <int row_bytes>
  KOKKOS_FORCEINLINE_FUNCTION static void load_a(T (&to)[K_ / 2], Address tile, int row, int col, int lane) {
    KOKKOSNN_IMPL_UNROLL
    for (int i = 0; i < K_ / 2; ++i) {
      to[i] = at<row_bytes>(tile, row + 8 * (i & 1), lane >> 2, col + (i >> 1) * 4 + (lane & 3));
    }
  }
  template <int row_bytes>
  KOKKOS_FORCEINLINE_FUNCTION static void load_a_columns(T (&to)[K_ / 2], Address tile, int row, int col, int lane) {
    KOKKOSNN_IMPL_UNROLL
    for (int i = 0; i < K_ / 2; ++i) {
      const int k = (row & 4) + (i >> 1) * 4 + (lane & 3);
      to[i]       = at<row_bytes>(tile, row & ~7, k, col + 8 * (i & 1) + (lane >> 2));
    }
  }
  /// B's elements [half of columns][k / 4], from a tile whose rows are those of B.
  template <int row_bytes>
  KOKKOS_FORCEINLINE_FUNCTION static void load_b(T (&to)[2][K_ / 4], Address tile, int row, int col, int lane) {
    KOKKOSNN_IMPL_UNROLL
    for (int i = 0; i < K_ / 2; ++i) {
      const int k       = (row & 4) + (i >> 1) * 4 + (lane & 3);
      to[i & 1][i >> 1] = at<row_bytes>(tile, row & ~7, k, col + 8 * (i & 1) + (lane >> 2));
    }
  }
  template <int row_bytes>
  KOKKOS_FORCEINLINE_FUNCTION static void load_b_columns(T (&to)[2][K_ / 4], Address tile, int row, int col, int lane) {
    KOKKOSNN_IMPL_UNROLL
    for (int i = 0; i < K_ / 2; ++i) {
      to[i & 1][i >> 1] = at<row_bytes>(tile, row + 8 * (i & 1), lane >> 2, col + (i >> 1) * 4 + (lane & 3));
    }
  }
  /// B of 4 rows that lanes have as pairs of columns of an accumulator: rows 2 (l % 4) + `second` of a group of 8.
  template <int row_bytes>
  KOKKOS_FORCEINLINE_FUNCTION static T at_pair(Address tile, int row, int col, int second, int half, int lane) {
    return at<row_bytes>(tile, row, 2 * (lane & 3) + second, col + 8 * half + (lane >> 2));
  }
  template <int row_bytes, class C>
  KOKKOS_FORCEINLINE_FUNCTION static void store(Address tile, int row, int col, int lane, const C& c,
                                                const T (&factor)[2]) {
    constexpr int per_chunk = chunk_bytes / int(sizeof(T));
    KOKKOSNN_IMPL_UNROLL
    for (int i = 0; i < 8; ++i) {
      const int r  = i >> 2;
      const int to = col + (i >> 1 & 1) * 8 + 2 * (lane & 3) + (i & 1);
      Instructions::store(tile + (row + 8 * r) * row_bytes + place_for_4_rows<row_bytes>(lane >> 2, to / per_chunk) +
                              to % per_chunk * int(sizeof(T)),
                          c.value[r][i & 3] * factor[r]);
    }
  }
};

/// Doubles on a warp's tensor cores, each product and sum rounded to double.
template <class Instructions_ = NvidiaInstructions>
struct MmaUnitDouble : Instructions_, MmaLayout<double, Instructions_> {
  using Instructions                    = Instructions_;
  using Layout                          = MmaLayout<double, Instructions>;
  using Element                         = double;
  using Address                         = typename Layout::Address;
  using C                               = typename Layout::C;
  static constexpr int K                = 4;
  static constexpr bool reads_both_ways = true;
  struct A {
    double value[2];
  };
  struct B {
    double value[2][1];
  };
  using Elements = MmaElements<double, K, Instructions>;

  template <int row_bytes>
  KOKKOS_FORCEINLINE_FUNCTION static constexpr int along_place(int row, int chunk) {
    return place_for_4_rows<row_bytes>(row, chunk);
  }
  template <int row_bytes>
  KOKKOS_FORCEINLINE_FUNCTION static constexpr int across_place(int row, int chunk) {
    return place_for_4_rows<row_bytes>(row, chunk);
  }
  template <int row_bytes>
  KOKKOS_FORCEINLINE_FUNCTION static A load_a(Address tile, int row, int col, int lane) {
    A a;
    Elements::template load_a<row_bytes>(a.value, tile, row, col, lane);
    return a;
  }
  template <int row_bytes>
  KOKKOS_FORCEINLINE_FUNCTION static A load_a_columns(Address tile, int row, int col, int lane) {
    A a;
    Elements::template load_a_columns<row_bytes>(a.value, tile, row, col, lane);
    return a;
  }
  template <int row_bytes>
  KOKKOS_FORCEINLINE_FUNCTION static B load_b(Address tile, int row, int col, int lane) {
    B b;
    Elements::template load_b<row_bytes>(b.value, tile, row, col, lane);
    return b;
  }
  template <int row_bytes>
  KOKKOS_FORCEINLINE_FUNCTION static B load_b_columns(Address tile, int row, int col, int lane) {
    B b;
    Elements::template load_b_columns<row_bytes>(b.value, tile, row, col, lane);
    return b;
  }
  KOKKOS_FORCEINLINE_FUNCTION static void multiply_add(C& c, const A& a, const B& b) {
    KOKKOSNN_IMPL_UNROLL
    for (int half = 0; half < 2; ++half) {
      auto& d     = c.value;
      const int i = 2 * half;
      Instructions::template product64<K>(d[0][i], d[0][i + 1], d[1][i], d[1][i + 1], a.value, b.value[half]);
    }
  }
  /// Part p takes the columns that threads have as value[..][p].
  template <int part>
  KOKKOS_FORCEINLINE_FUNCTION static A operand(const C& c, int) {
    return {{c.value[0][part], c.value[1][part]}};
  }
  template <int row_bytes, int part>
  KOKKOS_FORCEINLINE_FUNCTION static B load_b_for(Address tile, int row, int col, int lane) {
    B b;
    for (int half = 0; half < 2; ++half) {
      b.value[half][0] = Elements::template at_pair<row_bytes>(tile, row + (part >> 1) * 8, col, part & 1, half, lane);
    }
    return b;
  }
  template <int row_bytes>
  KOKKOS_FORCEINLINE_FUNCTION static void store(Address tile, int row, int col, int lane, const C& c,
                                                const double (&factor)[2]) {
    Elements::template store<row_bytes>(tile, row, col, lane, c, factor);
  }
};

/// A float rounded to 11 significant bits, as tensor cores take them: they drop the bits below, of which those of the
/// result have no meaning. A NaN stays one.
KOKKOS_FORCEINLINE_FUNCTION std::uint32_t tensor_float_bits(float x) {
  return x != x ? 0x7fffe000u : Kokkos::bit_cast<std::uint32_t>(x) + 0x1000u;
}

/// A float in two parts of 11 significant bits. The upper one is rounded. The lower one is multiplied by 1 + 2^-11, so
/// that the bits that tensor cores drop of it are a rounding's, nearly; it is NaN where x is infinite or NaN, whatever
/// the upper one is then.
KOKKOS_FORCEINLINE_FUNCTION void split_tensor_float(float x, std::uint32_t& upper, std::uint32_t& lower) {
  upper = (Kokkos::bit_cast<std::uint32_t>(x) + 0x1000u) & 0xffffe000u;
  lower = Kokkos::bit_cast<std::uint32_t>((x - Kokkos::bit_cast<float>(upper)) * (1.0f + 0x1p-11f));
}

/// Floats on a warp's tensor cores, in `parts` products: 1, of 11 significant bits, or 3, of a float's upper and lower
/// parts, all but the product of the lower ones. Tensor cores truncate as they sum, which three products would show:
/// each step has an accumulator of its own, which is added to C as floats are. An infinite element gives infinity by
/// one product, by three NaN.
template <int parts, class Instructions_ = NvidiaInstructions>
struct MmaUnitTensorFloat : Instructions_, MmaLayout<float, Instructions_> {
  static_assert(parts == 1 || parts == 3);
  using Instructions                    = Instructions_;
  using Layout                          = MmaLayout<float, Instructions>;
  using Element                         = float;
  using Address                         = typename Layout::Address;
  using C                               = typename Layout::C;
  static constexpr int K                = 8;
  static constexpr bool reads_both_ways = false;
  struct A {
    std::uint32_t upper[4];
    std::uint32_t lower[parts == 3 ? 4 : 1];
  };
  struct B {
    std::uint32_t upper[2][2];
    std::uint32_t lower[parts == 3 ? 2 : 1][2];
  };
  using Elements = MmaElements<float, K, Instructions>;

  template <int row_bytes>
  KOKKOS_FORCEINLINE_FUNCTION static constexpr int along_place(int row, int chunk) {
    return place_for_8_rows<row_bytes>(row, chunk);
  }
  template <int row_bytes>
  KOKKOS_FORCEINLINE_FUNCTION static constexpr int across_place(int row, int chunk) {
    return place_for_4_rows<row_bytes>(row, chunk);
  }
  template <int row_bytes>
  KOKKOS_FORCEINLINE_FUNCTION static A load_a(Address tile, int row, int col, int lane) {
    std::uint32_t word[4];  // 4 floats are 8 elements of 16 bits
    Instructions::template load_blocks<false>(
        word, tile + row * row_bytes + place_for_8_rows<row_bytes>(lane & 15, col / 4 + (lane >> 4)));
    float value[4];
    for (int i = 0; i < 4; ++i) value[i] = Kokkos::bit_cast<float>(word[i]);
    return split_a(value);
  }
  template <int row_bytes>
  KOKKOS_FORCEINLINE_FUNCTION static A load_a_columns(Address tile, int row, int col, int lane) {
    float value[4];
    Elements::template load_a_columns<row_bytes>(value, tile, row, col, lane);
    return split_a(value);
  }
  template <int row_bytes>
  KOKKOS_FORCEINLINE_FUNCTION static B load_b(Address tile, int row, int col, int lane) {
    float value[2][2];
    Elements::template load_b<row_bytes>(value, tile, row, col, lane);
    return split_b(value);
  }
  template <int row_bytes>
  KOKKOS_FORCEINLINE_FUNCTION static B load_b_columns(Address tile, int row, int col, int lane) {
    std::uint32_t word[4];
    Instructions::template load_blocks<false>(
        word, tile + row * row_bytes +
                  place_for_8_rows<row_bytes>((lane & 7) + ((lane >> 4) << 3), col / 4 + ((lane >> 3) & 1)));
    float value[2][2];
    for (int i = 0; i < 4; ++i) value[i >> 1][i & 1] = Kokkos::bit_cast<float>(word[i]);
    return split_b(value);
  }
  KOKKOS_FORCEINLINE_FUNCTION static void multiply_add(C& c, const A& a, const B& b) {
    KOKKOSNN_IMPL_UNROLL
    for (int half = 0; half < 2; ++half) {
      auto& d     = c.value;
      const int i = 2 * half;
      if constexpr (parts == 1) {
        product(d[0][i], d[0][i + 1], d[1][i], d[1][i + 1], a.upper, b.upper[half]);
      } else {
        float sum[4] = {};
        product(sum[0], sum[1], sum[2], sum[3], a.lower, b.upper[half]);
        product(sum[0], sum[1], sum[2], sum[3], a.upper, b.lower[half]);
        product(sum[0], sum[1], sum[2], sum[3], a.upper, b.upper[half]);
        d[0][i] += sum[0];
        d[0][i + 1] += sum[1];
        d[1][i] += sum[2];
        d[1][i + 1] += sum[3];
      }
    }
  }
  /// Part p takes columns 8 p to 8 p + 7, those that threads have as value[..][2 p] first.
  template <int part>
  KOKKOS_FORCEINLINE_FUNCTION static A operand(const C& c, int) {
    const float value[4] = {c.value[0][2 * part], c.value[1][2 * part], c.value[0][2 * part + 1],
                            c.value[1][2 * part + 1]};
    return split_a(value);
  }
  template <int row_bytes, int part>
  KOKKOS_FORCEINLINE_FUNCTION static B load_b_for(Address tile, int row, int col, int lane) {
    float value[2][2];
    for (int i = 0; i < 4; ++i) {
      value[i >> 1][i & 1] = Elements::template at_pair<row_bytes>(tile, row + part * 8, col, i & 1, i >> 1, lane);
    }
    return split_b(value);
  }
  template <int row_bytes>
  KOKKOS_FORCEINLINE_FUNCTION static void store(Address tile, int row, int col, int lane, const C& c,
                                                const float (&factor)[2]) {
    KOKKOSNN_IMPL_UNROLL
    for (int i = 0; i < 8; ++i) {
      const int r  = i >> 2;
      const int to = col + Layout::col_of(i & 3, lane);
      Instructions::store(
          tile + (row + 8 * r) * row_bytes + place_for_8_rows<row_bytes>(lane >> 2, to / 4) + to % 4 * 4,
          c.value[r][i & 3] * factor[r]);
    }
  }

 private:
  KOKKOS_FORCEINLINE_FUNCTION static void split(float x, std::uint32_t& upper, [[maybe_unused]] std::uint32_t& lower) {
    if constexpr (parts == 1) {
      upper = tensor_float_bits(x);
    } else {
      split_tensor_float(x, upper, lower);
    }
  }
  KOKKOS_FORCEINLINE_FUNCTION static A split_a(const float (&value)[4]) {
    A a;
    for (int i = 0; i < 4; ++i) split(value[i], a.upper[i], a.lower[parts == 3 ? i : 0]);
    return a;
  }
  KOKKOS_FORCEINLINE_FUNCTION static B split_b(const float (&value)[2][2]) {
    B b;
    for (int i = 0; i < 4; ++i) {
      split(value[i >> 1][i & 1], b.upper[i >> 1][i & 1], b.lower[parts == 3 ? i >> 1 : 0][i & 1]);
    }
    return b;
  }
  KOKKOS_FORCEINLINE_FUNCTION static void product(float& d0, float& d1, float& d2, float& d3,
                                                  const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
    Instructions::product_tf32(d0, d1, d2, d3, a, b[0], b[1]);
  }
};

/// Elements of any type on a wavefront of AMD's matrix cores, by MFMA of 16 rows and columns. The instruction computes
/// the transposed product, B^T A^T: its result's columns, one a lane, are rows of C, and a lane has four columns of its
/// row, as the next product wants them of A. So no lane needs another's elements between two products, and four lanes
/// share a row.
///
///     lane l            | 16 bits, float           | double
///     A (row, k), i < n | (l % 16, n (l / 16) + i), n = K / 4
///     B (k, col)        | (n (l / 16) + i, l % 16)
///     C (row, col)      | (l % 16, 4 (l / 16) + i) | (l % 16, l / 16 + 4 i), i < 4
///
/// A and B may have k in any order as long as it is one for both. Floats and doubles, of which an instruction takes one
/// k a lane, are therefore loaded by 16 bytes along k, for four or two instructions; those behind an accumulator take
/// its columns as k. Along k lanes read one chunk of 16 rows each, which 8 rows have at 8 different places; across k 16
/// lanes read 16 neighbouring elements, and the next 16 lanes a row whose chunks are turned otherwise. Bank conflicts
/// were not measured.
template <class T, class Instructions_ = AmdInstructions>
struct MfmaUnit : Instructions_, PlacesFor8Rows {
  using Instructions                      = Instructions_;
  using Element                           = T;
  using Accumulated                       = accumulator_t<T>;
  using Address                           = typename Instructions::Address;
  static constexpr bool uses_tensor_cores = true;
  static constexpr bool reads_both_ways   = true;
  static constexpr int lanes              = 64;
  static constexpr int K                  = sizeof(T) == 8 ? 8 : 16;
  static constexpr int own                = K / 4;  ///< of K, a lane's
  static constexpr int rows               = 1;
  static constexpr int cols               = 4;
  static constexpr int neighbours         = sizeof(T) == 8 ? 1 : 4;
  static constexpr bool has_pairs_8_apart = false;
  static constexpr unsigned per_chunk     = chunk_bytes / sizeof(T);
  struct Fragment {
    T value[own];
  };
  using A = Fragment;
  using B = Fragment;
  struct C {
    Accumulated value[rows][cols];
  };

  KOKKOS_FORCEINLINE_FUNCTION static int row_of(int, int lane) { return lane & 15; }
  KOKKOS_FORCEINLINE_FUNCTION static int col_of(int c, int lane) {
    return sizeof(T) == 8 ? (lane >> 4) + 4 * c : 4 * (lane >> 4) + c;
  }
  KOKKOS_FORCEINLINE_FUNCTION static void zero(C& c) {
    for (Accumulated& value : c.value[0]) value = 0;
  }

  template <int row_bytes>
  KOKKOS_FORCEINLINE_FUNCTION static A load_a(Address tile, int row, int col, int lane) {
    return load_along<row_bytes>(tile, row, col, lane);
  }
  template <int row_bytes>
  KOKKOS_FORCEINLINE_FUNCTION static A load_a_columns(Address tile, int row, int col, int lane) {
    return load_across<row_bytes>(tile, row, col, lane);
  }
  template <int row_bytes>
  KOKKOS_FORCEINLINE_FUNCTION static B load_b(Address tile, int row, int col, int lane) {
    return load_across<row_bytes>(tile, row, col, lane);
  }
  template <int row_bytes>
  KOKKOS_FORCEINLINE_FUNCTION static B load_b_columns(Address tile, int row, int col, int lane) {
    return load_along<row_bytes>(tile, row, col, lane);
  }

  KOKKOS_FORCEINLINE_FUNCTION static void multiply_add(C& c, const A& a, const B& b) {
    if constexpr (sizeof(T) == 2) {
      Instructions::template product16<T>(c.value[0], b.value, a.value);
    } else {
      KOKKOSNN_IMPL_UNROLL
      for (int i = 0; i < own; ++i) {
        if constexpr (sizeof(T) == 4) {
          Instructions::product32(c.value[0], b.value[i], a.value[i]);
        } else {
          Instructions::product64(c.value[0], b.value[i], a.value[i]);
        }
      }
    }
  }

  /// Part p takes the columns that lanes have as value[0][p K / 4] and behind; rounds to the elements' type.
  template <int part>
  KOKKOS_FORCEINLINE_FUNCTION static A operand(const C& c, int) {
    A a;
    KOKKOSNN_IMPL_UNROLL
    for (int i = 0; i < own; ++i) a.value[i] = static_cast<T>(c.value[0][part * own + i]);
    return a;
  }
  template <int row_bytes, int part>
  KOKKOS_FORCEINLINE_FUNCTION static B load_b_for(Address tile, int row, int col, int lane) {
    B b;
    KOKKOSNN_IMPL_UNROLL
    for (int i = 0; i < own; ++i) b.value[i] = at<row_bytes>(tile, row, col_of(part * own + i, lane), col, lane);
    return b;
  }
  KOKKOS_FORCEINLINE_FUNCTION static Accumulated row_max(Accumulated x) {
    x = Kokkos::fmax(x, Instructions::exchange(x, 16));
    return Kokkos::fmax(x, Instructions::exchange(x, 32));
  }
  KOKKOS_FORCEINLINE_FUNCTION static Accumulated row_sum(Accumulated x) {
    x += Instructions::exchange(x, 16);
    return x + Instructions::exchange(x, 32);
  }

  template <int row_bytes>
  KOKKOS_FORCEINLINE_FUNCTION static void store(Address tile, int row, int col, int lane, const C& c,
                                                const Accumulated (&factor)[rows]) {
    constexpr int width = sizeof(T) == 8 ? 1 : cols;  // neighbouring columns
    KOKKOSNN_IMPL_UNROLL
    for (int i = 0; i < cols; i += width) {
      Pack<T, width> pack;
      KOKKOSNN_IMPL_UNROLL
      for (int j = 0; j < width; ++j) pack[j] = static_cast<T>(c.value[0][i + j] * factor[0]);
      Instructions::store(tile + offset<row_bytes>(row, lane & 15, col, col_of(i, lane)), pack);
    }
  }

 private:
  /// Place of element (row + row_behind, col + col_behind): `row` is a multiple of 8, and chunks up to `col`, which is
  /// known to the compiler, have no bit in common with those behind. So few lane's parts of a place differ, and
  /// registers hold few of them.
  template <int row_bytes>
  KOKKOS_FORCEINLINE_FUNCTION static int offset(int row, int row_behind, int col, int col_behind) {
    constexpr unsigned turned = swapped_chunks(row_bytes) - 1;
    const unsigned chunk = static_cast<unsigned>(col) / per_chunk, behind = static_cast<unsigned>(col_behind);
    const int of_lane =
        place_for_8_rows<row_bytes>(row_behind, static_cast<int>((chunk & turned) ^ behind / per_chunk));
    return row * row_bytes + static_cast<int>((chunk & ~turned) * chunk_bytes) + of_lane +
           static_cast<int>(behind % per_chunk * sizeof(T));
  }
  /// Element of a lane's column.
  template <int row_bytes>
  KOKKOS_FORCEINLINE_FUNCTION static T at(Address tile, int row, int row_behind, int col, int lane) {
    return Instructions::template load<T>(tile + offset<row_bytes>(row, row_behind, col, lane & 15));
  }
  template <int row_bytes>
  KOKKOS_FORCEINLINE_FUNCTION static Fragment load_along(Address tile, int row, int col, int lane) {
    return Instructions::template load<Fragment>(tile + offset<row_bytes>(row, lane & 15, col, own * (lane >> 4)));
  }
  template <int row_bytes>
  KOKKOS_FORCEINLINE_FUNCTION static Fragment load_across(Address tile, int row, int col, int lane) {
    Fragment fragment;
    KOKKOSNN_IMPL_UNROLL
    for (int i = 0; i < own; ++i) fragment.value[i] = at<row_bytes>(tile, row, own * (lane >> 4) + i, col, lane);
    return fragment;
  }
};

/// Any elements, by multiplications and additions of `threads` threads: 1, or 32 or 64, of which four share a row.
template <class T, int threads, class Instructions_ = PlainInstructions>
struct FmaUnit : Instructions_, PlacesFor8Rows {
  using Instructions                      = Instructions_;
  using Element                           = T;
  using Accumulated                       = accumulator_t<T>;
  using Address                           = typename Instructions::Address;
  static constexpr bool uses_tensor_cores = false;
  static constexpr bool reads_both_ways   = true;
  static constexpr int lanes              = threads;
  static constexpr int across             = threads == 1 ? 1 : 4;  ///< threads that share a row
  static constexpr int per_chunk          = chunk_bytes / int(sizeof(T));
  static constexpr int K                  = chunk_bytes / int(sizeof(Accumulated));
  static constexpr int rows               = 16 * across / threads;
  static constexpr int cols               = 16 / across;
  static constexpr int neighbours         = chunk_bytes / int(sizeof(Accumulated));
  static constexpr bool has_pairs_8_apart = false;
  static_assert(threads == 1 || threads == 32 || threads == 64);
  struct A {
    Accumulated value[rows][K];
  };
  struct B {
    Accumulated value[K][cols];
  };
  struct C {
    Accumulated value[rows][cols];
  };

  KOKKOS_FORCEINLINE_FUNCTION static int row_of(int r, int lane) { return lane / across + threads / across * r; }
  KOKKOS_FORCEINLINE_FUNCTION static int col_of(int c, int lane) { return lane % across * cols + c; }
  KOKKOS_FORCEINLINE_FUNCTION static void zero(C& c) {
    for (auto& row : c.value) {
      for (Accumulated& value : row) value = 0;
    }
  }

  template <int row_bytes>
  KOKKOS_FORCEINLINE_FUNCTION static A load_a(Address tile, int row, int col, int lane) {
    A a;
    KOKKOSNN_IMPL_UNROLL
    for (int r = 0; r < rows; ++r) load_row<row_bytes>(a.value[r], tile, row + row_of(r, lane), col);
    return a;
  }
  template <int row_bytes>
  KOKKOS_FORCEINLINE_FUNCTION static A load_a_columns(Address tile, int row, int col, int lane) {
    A a;
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) {
      KOKKOSNN_IMPL_UNROLL
      for (int r = 0; r < rows; ++r) a.value[r][k] = at<row_bytes>(tile, row + k, col + row_of(r, lane));
    }
    return a;
  }
  template <int row_bytes>
  KOKKOS_FORCEINLINE_FUNCTION static B load_b(Address tile, int row, int col, int lane) {
    B b;
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) load_row<row_bytes>(b.value[k], tile, row + k, col + col_of(0, lane));
    return b;
  }
  template <int row_bytes>
  KOKKOS_FORCEINLINE_FUNCTION static B load_b_columns(Address tile, int row, int col, int lane) {
    B b;
    KOKKOSNN_IMPL_UNROLL
    for (int c = 0; c < cols; ++c) {
      Accumulated column[K];
      load_row<row_bytes>(column, tile, row + col_of(c, lane), col);
      for (int k = 0; k < K; ++k) b.value[k][c] = column[k];
    }
    return b;
  }

  KOKKOS_FORCEINLINE_FUNCTION static void multiply_add(C& c, const A& a, const B& b) {
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) {
      KOKKOSNN_IMPL_UNROLL
      for (int r = 0; r < rows; ++r) {
        KOKKOSNN_IMPL_UNROLL
        for (int j = 0; j < cols; ++j) c.value[r][j] += a.value[r][k] * b.value[k][j];
      }
    }
  }

  /// Part p takes columns p K to p K + K - 1, in the accumulator's precision.
  template <int part>
  KOKKOS_FORCEINLINE_FUNCTION static A operand(const C& c, int lane) {
    A a;
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) {
      const int column = part * K + k;
      const int from   = lane - lane % across + column / cols;
      KOKKOSNN_IMPL_UNROLL
      for (int r = 0; r < rows; ++r) {
        const Accumulated value = c.value[r][column % cols];
        if constexpr (across == 1) {
          a.value[r][k] = value;
        } else {
          a.value[r][k] = Instructions::value_of(value, from);
        }
      }
    }
    return a;
  }
  template <int row_bytes, int part>
  KOKKOS_FORCEINLINE_FUNCTION static B load_b_for(Address tile, int row, int col, int lane) {
    return load_b<row_bytes>(tile, row + part * K, col, lane);
  }
  KOKKOS_FORCEINLINE_FUNCTION static Accumulated row_max(Accumulated x) {
    if constexpr (across == 4) {
      x = Kokkos::fmax(x, Instructions::exchange(x, 1));
      x = Kokkos::fmax(x, Instructions::exchange(x, 2));
    }
    return x;
  }
  KOKKOS_FORCEINLINE_FUNCTION static Accumulated row_sum(Accumulated x) {
    if constexpr (across == 4) {
      x += Instructions::exchange(x, 1);
      x += Instructions::exchange(x, 2);
    }
    return x;
  }

  template <int row_bytes>
  KOKKOS_FORCEINLINE_FUNCTION static void store(Address tile, int row, int col, int lane, const C& c,
                                                const Accumulated (&factor)[rows]) {
    KOKKOSNN_IMPL_UNROLL
    for (int r = 0; r < rows; ++r) {
      KOKKOSNN_IMPL_UNROLL
      for (int j = 0; j < cols; ++j) {
        Instructions::store(tile + offset<row_bytes>(row + row_of(r, lane), col + col_of(j, lane)),
                            static_cast<T>(c.value[r][j] * factor[r]));
      }
    }
  }

 private:
  template <int row_bytes>
  KOKKOS_FORCEINLINE_FUNCTION static int offset(int row, int col) {
    return place_for_8_rows<row_bytes>(row, col / per_chunk) + col % per_chunk * int(sizeof(T));
  }
  template <int row_bytes>
  KOKKOS_FORCEINLINE_FUNCTION static Accumulated at(Address tile, int row, int col) {
    return static_cast<Accumulated>(Instructions::template load<T>(tile + offset<row_bytes>(row, col)));
  }
  /// n neighbours, from a multiple of n or of a chunk on.
  template <int row_bytes, int n>
  KOKKOS_FORCEINLINE_FUNCTION static void load_row(Accumulated (&to)[n], Address tile, int row, int col) {
    constexpr int width = n < per_chunk ? n : per_chunk;
    KOKKOSNN_IMPL_UNROLL
    for (int i = 0; i < n; i += width) {
      const auto pack = Instructions::template load<Pack<T, width>>(tile + offset<row_bytes>(row, col + i));
      KOKKOSNN_IMPL_UNROLL
      for (int j = 0; j < width; ++j) to[i + j] = static_cast<Accumulated>(pack[j]);
    }
  }
};

/// Means of multiplication of a unit on warps, by which tiles are chosen.
template <class Unit>
inline constexpr MatmulUnit matrix_unit_kind =
    Unit::lanes == 64 ? (Unit::uses_tensor_cores ? MatmulUnit::matrix_cores : MatmulUnit::wide_warps)
                      : (Unit::uses_tensor_cores ? MatmulUnit::tensor_cores : MatmulUnit::narrow_warps);

/// Products of a unit's instructions for one of elements.
template <class Unit>
inline constexpr int products_of_unit = 1;
template <int parts, class Instructions>
inline constexpr int products_of_unit<MmaUnitTensorFloat<parts, Instructions>> = parts;

/// True if the GPU has tensor cores with mma.sync; its products of doubles are no faster than its multiplications on
/// consumers' cards.
#if defined(KOKKOS_ARCH_AMPERE) || defined(KOKKOS_ARCH_ADA89) || defined(KOKKOS_ARCH_HOPPER) || \
    defined(KOKKOS_ARCH_BLACKWELL)
inline constexpr bool has_tensor_cores = true;
#else
inline constexpr bool has_tensor_cores = false;
#endif
#if defined(KOKKOS_ARCH_AMPERE80) || defined(KOKKOS_ARCH_HOPPER90) || defined(KOKKOS_ARCH_BLACKWELL100)
inline constexpr bool has_double_tensor_cores = true;
#else
inline constexpr bool has_double_tensor_cores = false;
#endif

/// True if the GPU has AMD's matrix cores with products of all types.
#if defined(KOKKOS_ARCH_AMD_GFX90A) || defined(KOKKOS_ARCH_AMD_GFX940) || defined(KOKKOS_ARCH_AMD_GFX942) || \
    defined(KOKKOS_ARCH_AMD_GFX942_APU) || defined(KOKKOS_ARCH_AMD_GFX950)
inline constexpr bool has_matrix_cores = true;
#else
inline constexpr bool has_matrix_cores = false;
#endif

/// Lanes of a warp, by execution space: kernels' types depend on it, so host code knows it, too.
template <class Exec>
constexpr int lanes_of_warp() {
#if defined(KOKKOS_ENABLE_HIP)
  if constexpr (backend_of<Exec>() == Backend::hip) return Kokkos::Impl::HIPTraits::WarpSize;
#endif
  return backend_of<Exec>() == Backend::host ? 1 : 32;
}

template <class Exec, class T, Precision precision>
constexpr auto select_matrix_unit() {
  if constexpr (backend_of<Exec>() == Backend::hip && has_matrix_cores) {
    return std::type_identity<MfmaUnit<T>>{};
  } else if constexpr (backend_of<Exec>() != Backend::cuda || !has_tensor_cores) {
    return std::type_identity<FmaUnit<T, lanes_of_warp<Exec>()>>{};
  } else if constexpr (sizeof(T) == 2) {
    return std::type_identity<MmaUnit16<T>>{};
  } else if constexpr (std::is_same_v<T, double> && has_double_tensor_cores) {
    return std::type_identity<MmaUnitDouble<>>{};
  } else if constexpr (std::is_same_v<T, float> && precision != Precision::exact) {
    return std::type_identity<MmaUnitTensorFloat<precision == Precision::tensor_float32 ? 1 : 3>>{};
  } else {
    return std::type_identity<FmaUnit<T, 32, NvidiaInstructions>>{};
  }
}

/// The unit of an execution space for elements of type T.
template <class Exec, class T, Precision precision = Precision::exact>
using MatrixUnit = typename decltype(select_matrix_unit<Exec, T, precision>())::type;

/// Calls f(std::type_identity<unit>) with the unit of a precision that is known when the program runs.
template <class Exec, class T, class F>
void with_matrix_unit(Precision precision, const F& f) {
  using Exact = MatrixUnit<Exec, T>;
  if constexpr (!std::is_same_v<Exact, MatrixUnit<Exec, T, Precision::tensor_float32>>) {
    if (precision == Precision::tensor_float32) {
      return f(std::type_identity<MatrixUnit<Exec, T, Precision::tensor_float32>>{});
    }
    if (precision == Precision::tensor_float32x3) {
      return f(std::type_identity<MatrixUnit<Exec, T, Precision::tensor_float32x3>>{});
    }
  }
  f(std::type_identity<Exact>{});
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_DEVICE_MATRIX_UNIT_HPP
