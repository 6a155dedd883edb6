// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_INPUTS_ROW_MAP_HPP
#define KOKKOSNN_IMPL_INPUTS_ROW_MAP_HPP

#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

// Where a row begins: from its number to an offset in elements.

namespace KokkosNN::Impl {

inline constexpr int max_row_dims = 7;

/// Row number -> offset in elements: up to seven axes, the last one runs fastest. Rows are fewer than 2^53.
struct RowMap {
  int n                             = 0;
  std::int64_t extent[max_row_dims] = {};
  std::int64_t stride[max_row_dims] = {};
  double inverse[max_row_dims]      = {};  // of extent

  KOKKOS_FORCEINLINE_FUNCTION std::int64_t operator()(std::int64_t row) const {
    return n <= 1 ? row * stride[0] : along_axes(row);
  }
  /// The distance of neighbouring rows, or 0 if there is not one.
  std::int64_t only_stride() const { return n <= 1 ? stride[0] : 0; }

 private:
  KOKKOS_INLINE_FUNCTION std::int64_t along_axes(std::int64_t row) const {
    std::int64_t offset = 0;
    KOKKOSNN_IMPL_NO_UNROLL
    for (int k = n - 1; k > 0; --k) {
      // A 64-bit division is a subroutine on GPUs, around which a kernel would spill what it holds in registers.
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

/// The same for rows at one distance: less for a kernel to be given.
struct RowStride {
  std::int64_t stride = 0;

  RowStride() = default;
  RowStride(const RowMap& map) : stride(map.stride[0]) {}

  KOKKOS_INLINE_FUNCTION std::int64_t operator()(std::int64_t row) const { return row * stride; }
  std::int64_t only_stride() const { return stride; }
};

/// Which columns of rows of logits are at hand: those of the classes first to first + columns - 1. All of them, but for
/// rows that several ranks share.
struct ClassShard {
  std::int64_t first   = 0;
  std::int64_t columns = 0;
  std::int64_t classes = 0;
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_INPUTS_ROW_MAP_HPP
