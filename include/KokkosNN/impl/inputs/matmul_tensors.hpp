// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_INPUTS_MATMUL_TENSORS_HPP
#define KOKKOSNN_IMPL_INPUTS_MATMUL_TENSORS_HPP

#include <KokkosNN/impl/inputs/elementwise.hpp>
#include <KokkosNN/impl/inputs/row_map.hpp>
#include <KokkosNN/impl/operators/elementwise.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>

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

/// c = f(alpha sum + beta c, inputs...). Of a beta of 0, c is not read.
template <class F, class A>
struct MatmulEpilogue {
  F f;
  A alpha;
  A beta;
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_INPUTS_MATMUL_TENSORS_HPP
