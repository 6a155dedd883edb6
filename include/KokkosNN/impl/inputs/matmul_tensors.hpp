// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_INPUTS_MATMUL_TENSORS_HPP
#define KOKKOSNN_IMPL_INPUTS_MATMUL_TENSORS_HPP

#include <KokkosNN/impl/inputs/elementwise.hpp>
#include <KokkosNN/impl/inputs/row_map.hpp>
#include <KokkosNN/impl/inputs/row_offsets.hpp>
#include <KokkosNN/impl/matmul_shapes.hpp>
#include <KokkosNN/impl/operators/elementwise.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

// The matrices of a product in memory, and what becomes of its sums.

namespace KokkosNN::Impl {

/// Matrices of a batch, at any strides.
template <class T>
struct BatchedMatrix {
  const T* data           = nullptr;
  std::int64_t row_stride = 0;
  std::int64_t col_stride = 0;
  RowMap batch;
};

/// Operands and tiles of a product.
template <class T>
struct MatmulData {
  std::int64_t batches = 0;
  std::int64_t rows    = 0;
  std::int64_t cols    = 0;
  std::int64_t inner   = 0;
  BatchedMatrix<T> a;
  BatchedMatrix<T> b;
  std::int64_t row_blocks = 0;
  std::int64_t col_blocks = 0;
  int group               = 1;

  KOKKOS_FUNCTION std::int64_t tiles() const { return batches * row_blocks * col_blocks; }

  struct Block {
    std::int64_t batch;
    std::int64_t row;
    std::int64_t col;
  };
  /// Place of a tile, in tiles. Of each `group` rows of tiles, those of a column follow each other.
  KOKKOS_FUNCTION Block block(std::int64_t tile) const {
    const std::int64_t batch = tile / (row_blocks * col_blocks), number = tile % (row_blocks * col_blocks);
    const std::int64_t first  = number / (group * col_blocks) * group;
    const std::int64_t count  = row_blocks - first < group ? row_blocks - first : group;
    const std::int64_t inside = number % (group * col_blocks);
    return {batch, first + inside % count, inside / count};
  }
};

/// Rows of a, by an index, and rows of the product that c's rows are sums of, by offsets. Neither is trusted: no access
/// leaves the matrices, whatever they hold.
struct MatmulRowMaps {
  RowOffsets index;                ///< of a's rows; no data: row i is row i
  std::int64_t a_rows = 0;         ///< that a has
  RowOffsets offsets;              ///< of c's rows: where their products begin, and where the last one's end
  std::int64_t sums          = 0;  ///< rows of c, where these are sums
  std::int64_t sums_per_team = 1;  ///< neighbours, whose products a team takes one after the other

  /// Row of a for a row of the product, or -1 where the index names none.
  KOKKOS_FUNCTION std::int64_t row_of_a(std::int64_t row) const {
    const std::int64_t number = index.data == nullptr ? row : index[row];
    return 0 <= number && number < a_rows ? number : -1;
  }
  KOKKOS_FUNCTION std::int64_t groups() const { return (sums + sums_per_team - 1) / sums_per_team; }
};
/// Maps of a product that has none.
struct NoMatmulRowMaps {};

template <MatmulRows rows>
using MatmulRowMapsFor = std::conditional_t<rows == MatmulRows::own, NoMatmulRowMaps, MatmulRowMaps>;

/// Sums of c in the making: c's rows of a group, each from its first product to its last. Rows that end get their
/// result at once.
class MatmulRowSums {
 public:
  KOKKOS_FUNCTION MatmulRowSums(const MatmulRowMaps& maps, std::int64_t group, std::int64_t products)
      : m_maps(maps),
        m_products(products),
        m_row(group * maps.sums_per_team),
        m_last(Kokkos::min(maps.sums, m_row + maps.sums_per_team)) {
    m_begin      = offset(m_row);
    m_end        = offset(m_last);
    m_end_of_row = offset(m_row + 1);
  }
  /// Products of the group.
  KOKKOS_FUNCTION std::int64_t begin() const { return m_begin; }
  KOKKOS_FUNCTION std::int64_t end() const { return m_end; }
  /// Calls finish(row) for rows that have no product from this one on; the group's last row has all that are left.
  template <class Finish>
  KOKKOS_FORCEINLINE_FUNCTION void go_to(std::int64_t product, const Finish& finish) {
    while (product >= m_end_of_row && m_row + 1 < m_last) {
      finish(m_row);
      ++m_row;
      m_end_of_row = offset(m_row + 1);
    }
  }
  /// Product behind the last one of the row that `go_to` went to.
  KOKKOS_FUNCTION std::int64_t end_of_row() const { return m_row + 1 < m_last ? m_end_of_row : m_end; }
  /// Calls finish(row) for all rows that are left.
  template <class Finish>
  KOKKOS_FORCEINLINE_FUNCTION void end_all(const Finish& finish) {
    for (; m_row < m_last; ++m_row) finish(m_row);
  }

 private:
  KOKKOS_FUNCTION std::int64_t offset(std::int64_t row) const { return offset_inside(m_maps.offsets[row], m_products); }

  const MatmulRowMaps& m_maps;
  std::int64_t m_products;
  std::int64_t m_row;
  std::int64_t m_last;
  std::int64_t m_begin;
  std::int64_t m_end;
  std::int64_t m_end_of_row;
};

/// Leaves a product as it is.
struct MatmulResult : TakesVectors {
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION T operator()(T x) const {
    return x;
  }
};

/// Tensors of c's extents: c, and an epilogue's inputs, any of which may repeat its elements.
template <class C_, class Inputs_>
struct MatmulResults {
  using C                        = C_;
  using Inputs                   = Inputs_;
  static constexpr int count     = 1 + Inputs::count;
  void* data[count]              = {};
  std::int64_t row_stride[count] = {};
  std::int64_t col_stride[count] = {};
  RowMap batch[count];

  template <std::size_t i>
  using Input = typename ElementTypeAt<i, Inputs>::type;

  KOKKOS_FORCEINLINE_FUNCTION std::int64_t offset(int t, std::int64_t row, std::int64_t col) const {
    return row * row_stride[t] + col * col_stride[t];
  }
};

/// Sums of parts of the inner axis, S each, as matrices one after the other. The parts of a product are its batches:
/// the last axis of those.
template <class S>
struct MatmulParts : MatmulResults<S, ElementTypes<>> {
  std::int64_t parts = 1;
  std::int64_t inner = 0;  ///< of a part; the last one's may be shorter
};
template <class Results>
inline constexpr bool has_parts = false;
template <class S>
inline constexpr bool has_parts<MatmulParts<S>> = true;

/// c = f(alpha sum + beta c, inputs...). Of a beta of 0, c is not read.
template <class F, class A>
struct MatmulEpilogue {
  F f;
  A alpha;
  A beta;
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_INPUTS_MATMUL_TENSORS_HPP
