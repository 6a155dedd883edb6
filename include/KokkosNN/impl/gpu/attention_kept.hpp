// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_ATTENTION_KEPT_HPP
#define KOKKOSNN_IMPL_GPU_ATTENTION_KEPT_HPP

#include <KokkosNN/impl/inputs/attention_dropout.hpp>
#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

// Weights of a tile of scores that dropout keeps. Random bits come by calls of a generator that give four keys' words;
// where a thread's rows or columns are 8 apart, as an accumulator of mma.sync has them, no word is thrown away.

namespace KokkosNN::Impl {

/// A bit for each of a thread's scores of `row_tiles` x 16 rows and `cols` columns.
template <class Unit, int row_tiles, int cols>
class KeptScores {
 public:
  using A = typename Unit::Accumulated;

  /// Finds the bits of rows row(t, r), whose columns are keys from `first` on.
  template <class RowAt>
  KOKKOS_FORCEINLINE_FUNCTION void find_in_rows(const AttentionWeightDropout<A>& dropout, std::int64_t first, int lane,
                                                const RowAt& row) {
    if constexpr (Unit::has_pairs_8_apart) {
      constexpr int joined = cols % AttentionWeightDropout<A>::keys == 0 ? 2 : 1;
      KOKKOSNN_IMPL_NO_UNROLL  // a call of the generator is some 100 instructions
      for (int i = 0; i < row_tiles * 2; ++i) {
        const int t = i / 2, r = i % 2;
        KOKKOSNN_IMPL_NO_UNROLL
        for (int n = 0; n < cols / 16 / joined * 2; ++n) {
          const int j = n / 2 * joined, c = n % 2;
          find_pairs<joined>(dropout, row(t, r), first + j * 16 + Unit::col_of(c, lane),
                             [&](int s, int p) { return number(t, j + s, r, c + 2 * p); });
        }
      }
    } else {
      for_all([&](int t, int j, int r, int c) {
        find_one(dropout, row(t, r), first + j * 16 + Unit::col_of(c, lane), number(t, j, r, c));
      });
    }
  }
  /// Finds the bits of columns row(j, c), whose rows are keys from `first` on.
  template <class RowAt>
  KOKKOS_FORCEINLINE_FUNCTION void find_in_columns(const AttentionWeightDropout<A>& dropout, std::int64_t first,
                                                   int lane, const RowAt& row) {
    if constexpr (Unit::has_pairs_8_apart) {
      constexpr int joined = row_tiles % 2 == 0 ? 2 : 1;
      KOKKOSNN_IMPL_NO_UNROLL
      for (int i = 0; i < cols / 16 * Unit::cols; ++i) {
        const int j = i / Unit::cols, c = i % Unit::cols;
        KOKKOSNN_IMPL_NO_UNROLL
        for (int t = 0; t < row_tiles; t += joined) {
          find_pairs<joined>(dropout, row(j, c), first + t * 16 + Unit::row_of(0, lane),
                             [&](int s, int p) { return number(t + s, j, p, c); });
        }
      }
    } else {
      for_all([&](int t, int j, int r, int c) {
        find_one(dropout, row(j, c), first + t * 16 + Unit::row_of(r, lane), number(t, j, r, c));
      });
    }
  }

  /// Makes scores that are not kept 0, and multiplies the others.
  template <class Scores>
  KOKKOS_FORCEINLINE_FUNCTION void apply(A factor, Scores& scores) const {
    KOKKOSNN_IMPL_UNROLL
    for (int t = 0; t < row_tiles; ++t) {
      KOKKOSNN_IMPL_UNROLL
      for (int j = 0; j < cols / 16; ++j) {
        KOKKOSNN_IMPL_UNROLL
        for (int r = 0; r < Unit::rows; ++r) {
          KOKKOSNN_IMPL_UNROLL
          for (int c = 0; c < Unit::cols; ++c) {
            A& score = scores[t][j].value[r][c];
            score    = (m_bits >> number(t, j, r, c) & 1u) != 0 ? score * factor : A(0);
          }
        }
      }
    }
  }

 private:
  static constexpr int count = row_tiles * (cols / 16) * Unit::rows * Unit::cols;
  static_assert(count <= 64);
  using Bits = std::conditional_t<count <= 32, std::uint32_t, std::uint64_t>;

  KOKKOS_FORCEINLINE_FUNCTION static constexpr int number(int t, int j, int r, int c) {
    return ((t * (cols / 16) + j) * Unit::rows + r) * Unit::cols + c;
  }
  template <class F>
  KOKKOS_FORCEINLINE_FUNCTION static void for_all(const F& f) {
    KOKKOSNN_IMPL_NO_UNROLL
    for (int i = 0; i < count; ++i) {
      const int tile = i / (Unit::rows * Unit::cols), part = i % (Unit::rows * Unit::cols);
      f(tile / (cols / 16), tile % (cols / 16), part / Unit::cols, part % Unit::cols);
    }
  }
  KOKKOS_FORCEINLINE_FUNCTION void set(int bit, bool is_kept) { m_bits |= Bits(is_kept ? 1 : 0) << bit; }

  KOKKOS_FORCEINLINE_FUNCTION void find_one(const AttentionWeightDropout<A>& dropout, const DropoutRow& row,
                                            std::int64_t key, int bit) {
    set(bit, dropout.factor(row, key) != A(0));
  }
  /// Finds the bits bit(s, p) of the keys key + 16 s + 8 p by one call of the generator.
  template <int joined, class Bit>
  KOKKOS_FORCEINLINE_FUNCTION void find_pairs(const AttentionWeightDropout<A>& dropout, const DropoutRow& row,
                                              std::int64_t key, const Bit& bit) {
    const auto four     = dropout.words(row, key);
    const bool is_upper = joined == 1 && dropout.number(key) >= 2;
    KOKKOSNN_IMPL_UNROLL
    for (int s = 0; s < joined; ++s) {
      KOKKOSNN_IMPL_UNROLL
      for (int p = 0; p < 2; ++p) {
        const std::uint32_t lower = four.word[2 * s + p];
        set(bit(s, p), dropout.keeps(is_upper ? four.word[2 + p] : lower));
      }
    }
  }

  Bits m_bits = 0;
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_ATTENTION_KEPT_HPP
