// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_WARPGROUP_MASK_HPP
#define KOKKOSNN_IMPL_GPU_WARPGROUP_MASK_HPP

#include <KokkosNN/impl/gpu/attention_elements.hpp>
#include <KokkosNN/impl/gpu/device/matrix_instructions.hpp>
#include <KokkosNN/impl/gpu/device/warpgroup_sums.hpp>
#include <KokkosNN/impl/inputs/attention_tensors.hpp>
#include <KokkosNN/impl/math/exp.hpp>
#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

// Masks of single scores on Hopper's warpgroups. Score by score, a warp's load of a bias or of booleans touches eight
// rows for 4 elements of each, and waits behind the products. So a thread loads 16 bytes of a row at a time, while the
// products of the tile's scores run, and the four threads of a row exchange what they have.

namespace KokkosNN::Impl {

/// The part of a mask that is loaded many elements at a time: one, as both would take too many registers.
enum class WidePart : int { nothing, bias, booleans };

/// True if 16 bytes of an element's row can be loaded at once.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION bool begins_chunk(const T* p) {
  return reinterpret_cast<std::uintptr_t>(p) % sizeof(MatrixChunk) == 0;
}

/// Finds out which part can be: of a bias of 16 bits, or of booleans, whose rows all begin 16 bytes.
template <class X, bool has_elements>
class FindWidePart {
 public:
  using Elements = ScoreElements<X, float>;

  KOKKOS_FORCEINLINE_FUNCTION explicit FindWidePart(const Elements& elements) : m_elements(elements) {
    if (!has_elements) return;
    if (elements.bias.exists() && !elements.bias.is_float && elements.bias_strides.dim == 1) {
      m_part = WidePart::bias;
    } else if (elements.keep != nullptr && elements.keep_strides.dim == 1) {
      m_part = WidePart::booleans;
    }
  }
  KOKKOS_FORCEINLINE_FUNCTION void add(const typename Elements::Row& row) {
    const bool begins = m_part == WidePart::bias ? begins_chunk(static_cast<const X*>(m_elements.bias.data) + row.bias)
                                                 : begins_chunk(m_elements.keep + row.keep);
    m_begin           = m_begin && begins;
  }
  /// The part that can be loaded of the rows of all lanes of a warp.
  template <class I>
  KOKKOS_FORCEINLINE_FUNCTION WidePart of_warp() const {
    if constexpr (has_elements) {
      if (!I::any(!m_begin)) return m_part;
    }
    return WidePart::nothing;
  }

 private:
  const Elements& m_elements;
  WidePart m_part = WidePart::nothing;
  bool m_begin    = true;
};

/// TileElements::to_logits, where add_bias() or rule_out() brings in a wide part of the mask.
template <class X, class All, class Lines, class Capped, class AddBias, class RuleOut>
KOKKOS_FORCEINLINE_FUNCTION void to_logits_with(WidePart part, const TileElements<X, float>& tile, float scale,
                                                const All& all, const Lines& lines, const Capped& capped,
                                                const AddBias& add_bias, const RuleOut& rule_out) {
  const ScoreElements<X, float>& elements = tile.elements;
  tile.scale(scale, all, capped);
  if (part == WidePart::bias) {
    add_bias();
  } else if (elements.bias.exists()) {
    tile.add_bias(lines);
  }
  if (elements.slopes.exists()) tile.add_slopes(lines);
  if (part == WidePart::booleans) {
    rule_out();
  } else if (elements.keep != nullptr) {
    tile.rule_out(lines);
  }
}

/// No mask of single scores.
struct NoMask {};

/// That part of two rows of a tile, of a thread among the four that have them: `place`.
template <class I, class X, int keys>
class MaskAhead {
 public:
  /// Loads it; row[0] and row[8] are the rows, and `first` is the tile's first key. The tile's keys must be there.
  template <class Row>
  KOKKOS_FORCEINLINE_FUNCTION void load(WidePart part, const ScoreElements<X, float>& elements, const Row* row,
                                        std::int64_t first, int place) {
    m_part = part;
    if (part == WidePart::bias) {
      load_rows<keys / 32, 32>(static_cast<const X*>(elements.bias.data) + first + 8 * place, row,
                               [](const Row& of) { return of.elements.bias; });
    } else if (part == WidePart::booleans) {
      load_rows<keys / 64, 16>(elements.keep + first + keys / 4 * place, row,
                               [](const Row& of) { return of.elements.keep; });
    }
  }

  /// TileElements::to_logits with what was loaded.
  template <class All, class Lines, class Capped>
  KOKKOS_FORCEINLINE_FUNCTION void to_logits(const TileElements<X, float>& tile, float scale, float (&scores)[keys / 2],
                                             int lane, const All& all, const Lines& lines, const Capped& capped) {
    to_logits_with(
        m_part, tile, scale, all, lines, capped, [&] { add_bias(scores, lane % 4); }, [&] { rule_out(scores, lane); });
  }

 private:
  static_assert(keys == 64 || keys == 128);
  static constexpr int words = keys / 8;  ///< of a row

  template <int chunks, int step, class T, class Row, class PlaceOf>
  KOKKOS_FORCEINLINE_FUNCTION void load_rows(const T* from, const Row* row, const PlaceOf& place_of) {
    KOKKOSNN_IMPL_UNROLL
    for (int r = 0; r < 2; ++r) {
      const Row& of     = row[8 * r];
      const bool exists = of.begin < of.end;  // or its place in the mask is none
      KOKKOSNN_IMPL_UNROLL
      for (int n = 0; n < chunks; ++n) {
        MatrixChunk chunk{};
        if (exists) chunk = *reinterpret_cast<const MatrixChunk*>(from + place_of(of) + step * n);
        KOKKOSNN_IMPL_UNROLL
        for (int i = 0; i < 4; ++i) m_word[r][4 * n + i] = chunk.word[i];
      }
    }
  }

  KOKKOS_FORCEINLINE_FUNCTION void add_bias(float (&scores)[keys / 2], int place) {
    KOKKOSNN_IMPL_UNROLL
    for (int r = 0; r < 2; ++r) {
      KOKKOSNN_IMPL_UNROLL
      for (int n = 0; n < words; n += 4) {
        exchange_among_four<I, 1>(m_word[r] + n, place);
        KOKKOSNN_IMPL_UNROLL
        for (int i = 0; i < 4; ++i) {
          KOKKOSNN_IMPL_UNROLL
          for (int c = 0; c < 2; ++c) {
            float& score = scores[4 * (n + i) + 2 * r + c];
            score        = fused_multiply_add(half_of<X>(m_word[r][n + i], c), log2_of_e<float>, score);
          }
        }
      }
    }
  }

  KOKKOS_FORCEINLINE_FUNCTION void rule_out(float (&scores)[keys / 2], int lane) {
    KOKKOSNN_IMPL_UNROLL
    for (int r = 0; r < 2; ++r) {
      std::uint32_t own = 0;  // a bit a key
      KOKKOSNN_IMPL_UNROLL
      for (int i = 0; i < keys / 16; ++i) own |= bits_of_bytes(m_word[r][i]) << (4 * i);
      KOKKOSNN_IMPL_UNROLL
      for (int part = 0; part < 4; ++part) {  // the keys of one of the four threads
        const std::uint32_t bits = I::value_of(own, lane / 4 * 4 + part) >> (lane % 4 * 2);
        KOKKOSNN_IMPL_UNROLL
        for (int j = 0; j < keys / 32; ++j) {
          KOKKOSNN_IMPL_UNROLL
          for (int c = 0; c < 2; ++c) {
            float& score = scores[4 * (part * (keys / 32) + j) + 2 * r + c];
            if ((bits >> (8 * j + c) & 1u) == 0) score = -Kokkos::Experimental::infinity_v<float>;
          }
        }
      }
    }
  }
  /// Bit i is 1 where byte i is not 0. The product moves the four bytes' bits beside each other, above all others.
  KOKKOS_FORCEINLINE_FUNCTION static std::uint32_t bits_of_bytes(std::uint32_t bytes) {
    const std::uint32_t set = ((((bytes & 0x7f7f7f7fu) + 0x7f7f7f7fu) | bytes) >> 7) & 0x01010101u;
    return set * 0x01020408u >> 24;
  }

  WidePart m_part = WidePart::nothing;
  std::uint32_t m_word[2][words];
};

/// That part of two keys, 8 apart, of a tile whose columns are queries. A thread loads two keys of a query at a time,
/// which a transposition within the warp turns into two queries of a key. The loads are not ahead of the products,
/// whose sums leave no registers for them.
template <class I, class X, int queries>
class MaskOfKeys {
 public:
  /// row[0] is the tile's first query, and `first` the warp's first key. The block's keys must be there.
  template <class Row>
  KOKKOS_FORCEINLINE_FUNCTION static void add_bias(const ScoreElements<X, float>& elements, const Row* row,
                                                   std::int64_t first, int lane, float (&scores)[queries / 2]) {
    const X* const bias = static_cast<const X*>(elements.bias.data) + first + lane % 4 * 2;
    std::uint32_t pairs[2][queries / 8];
    load(row + lane / 4, pairs, [&](const Row& of, int further) {
      return *reinterpret_cast<const std::uint32_t*>(bias + of.elements.bias + further);
    });
    for_scores(scores, pairs, [](float& score, std::uint32_t pair, int c) {
      score = fused_multiply_add(half_of<X>(pair, c), log2_of_e<float>, score);
    });
  }
  template <class Row>
  KOKKOS_FORCEINLINE_FUNCTION static void rule_out(const ScoreElements<X, float>& elements, const Row* row,
                                                   std::int64_t first, int lane, float (&scores)[queries / 2]) {
    const std::uint8_t* const keep = elements.keep + first + lane % 4 * 2;
    std::uint32_t pairs[2][queries / 8];
    load(row + lane / 4, pairs, [&](const Row& of, int further) {
      const std::uint32_t pair = *reinterpret_cast<const std::uint16_t*>(keep + of.elements.keep + further);
      return (pair & 0xffu) | (pair & 0xff00u) << 8;
    });
    for_scores(scores, pairs, [](float& score, std::uint32_t pair, int c) {
      if ((pair >> (16 * c) & 0xffffu) == 0) score = -Kokkos::Experimental::infinity_v<float>;
    });
  }

 private:
  template <class Row, class Load>
  KOKKOS_FORCEINLINE_FUNCTION static void load(const Row* row, std::uint32_t (&pairs)[2][queries / 8],
                                               const Load& load_pair) {
    KOKKOSNN_IMPL_UNROLL
    for (int j = 0; j < queries / 8; ++j) {
      const Row& of     = row[8 * j];
      const bool exists = of.begin < of.end;  // or its place in the mask is none
      KOKKOSNN_IMPL_UNROLL
      for (int r = 0; r < 2; ++r) pairs[r][j] = exists ? load_pair(of, 8 * r) : 0;
    }
  }
  template <class F>
  KOKKOS_FORCEINLINE_FUNCTION static void for_scores(float (&scores)[queries / 2],
                                                     const std::uint32_t (&pairs)[2][queries / 8], const F& f) {
    KOKKOSNN_IMPL_UNROLL
    for (int j = 0; j < queries / 8; ++j) {
      KOKKOSNN_IMPL_UNROLL
      for (int r = 0; r < 2; ++r) {
        const std::uint32_t pair = I::transposed(pairs[r][j]);
        KOKKOSNN_IMPL_UNROLL
        for (int c = 0; c < 2; ++c) f(scores[4 * j + 2 * r + c], pair, c);
      }
    }
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_WARPGROUP_MASK_HPP
