// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_INPUTS_ROW_MAP_HPP
#define KOKKOSNN_IMPL_INPUTS_ROW_MAP_HPP

#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

// Maps from a row's number to its offset in elements, and the range of classes that a call has.

namespace KokkosNN::Impl {

inline constexpr int max_row_dims = 7;

/// Map of up to seven axes: row number -> offset in elements; the last axis runs fastest. Rows are fewer than 2^53.
struct RowMap {
  int n                             = 0;
  std::int64_t extent[max_row_dims] = {};
  std::int64_t stride[max_row_dims] = {};
  double inverse[max_row_dims]      = {};  // inverse of extent

  KOKKOS_FORCEINLINE_FUNCTION std::int64_t operator()(std::int64_t row) const {
    return n <= 1 ? row * stride[0] : along_axes(row);
  }
  /// Distance of neighbouring rows, or 0 if it is not constant.
  std::int64_t only_stride() const { return n <= 1 ? stride[0] : 0; }

 private:
  KOKKOS_INLINE_FUNCTION std::int64_t along_axes(std::int64_t row) const {
    std::int64_t offset = 0;
    KOKKOSNN_IMPL_NO_UNROLL
    for (int k = n - 1; k > 0; --k) {
      // No integer division: one of 64 bits is a subroutine on GPUs, around which a kernel would spill its registers.
      std::int64_t quotient = static_cast<std::int64_t>(static_cast<double>(row) * inverse[k]);
      std::int64_t index    = row - quotient * extent[k];
      const int correction  = index < 0 ? -1 : (index >= extent[k] ? 1 : 0);
      quotient += correction;
      index -= correction * extent[k];
      offset += index * stride[k];
      row = quotient;
    }
    return offset + row * stride[0];
  }
};

/// Map of rows at one distance: a shorter argument for a kernel.
struct RowStride {
  std::int64_t stride = 0;

  RowStride() = default;
  RowStride(const RowMap& map) : stride(map.stride[0]) {}

  KOKKOS_INLINE_FUNCTION std::int64_t operator()(std::int64_t row) const { return row * stride; }
  std::int64_t only_stride() const { return stride; }
};

/// Range of classes that the columns of a call are: first to first + columns - 1. It is all classes unless ranks share
/// the rows. Kernels of a cross entropy take it as an argument, so a rank's gradient is the local kernel.
struct ClassShard {
  std::int64_t first   = 0;
  std::int64_t columns = 0;
  std::int64_t classes = 0;
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_INPUTS_ROW_MAP_HPP
