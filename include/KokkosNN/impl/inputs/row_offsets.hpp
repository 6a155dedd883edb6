// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_INPUTS_ROW_OFFSETS_HPP
#define KOKKOSNN_IMPL_INPUTS_ROW_OFFSETS_HPP

#include <Kokkos_Core.hpp>

#include <cstdint>

// Offsets of ragged rows, and chunks of their values.

namespace KokkosNN::Impl {

/// Row offsets of any integral type, read as 64-bit numbers, so that kernels are compiled once for all of them.
struct RowOffsets {
  const void* data    = nullptr;
  std::int64_t stride = 1;
  int bytes           = 8;
  bool is_signed      = true;

  KOKKOS_INLINE_FUNCTION std::int64_t operator[](std::int64_t i) const { return two(i * stride, 0).first; }

  /// Returns the i-th offset and the next, or twice the i-th one. Dense offsets have stride 1.
  template <bool are_dense>
  KOKKOS_INLINE_FUNCTION Kokkos::pair<std::int64_t, std::int64_t> of_row(std::int64_t i, bool has_next) const {
    const std::int64_t step = are_dense ? 1 : stride;
    return two(i * step, has_next ? step : 0);
  }

 private:
  KOKKOS_INLINE_FUNCTION Kokkos::pair<std::int64_t, std::int64_t> two(std::int64_t k, std::int64_t step) const {
    if (bytes == 8) return two_of<std::int64_t>(k, step);
    if (bytes == 4) return is_signed ? two_of<std::int32_t>(k, step) : two_of<std::uint32_t>(k, step);
    if (bytes == 2) return is_signed ? two_of<std::int16_t>(k, step) : two_of<std::uint16_t>(k, step);
    return is_signed ? two_of<std::int8_t>(k, step) : two_of<std::uint8_t>(k, step);
  }
  template <class T>
  KOKKOS_INLINE_FUNCTION Kokkos::pair<std::int64_t, std::int64_t> two_of(std::int64_t k, std::int64_t step) const {
    const T* const offset = static_cast<const T*>(data) + k;
    return {offset[0], offset[step]};
  }
};

/// Clamps an offset to the values. Offsets are not trusted: whatever they are, no access leaves the values.
KOKKOS_INLINE_FUNCTION std::int64_t offset_inside(std::int64_t offset, std::int64_t elements) {
  return offset < 0 ? 0 : (offset > elements ? elements : offset);
}

/// Chunks of one size of a head's values. A host's team has the rows of all heads that begin in its chunk, up to an
/// overhang into the next chunks; a row that goes beyond that is long, and many teams have a part of it.
struct Chunks {
  std::int64_t elements = 0;  ///< of a head
  std::int64_t rows     = 0;  ///< of a head
  std::int64_t count    = 1;
  int log2_size         = 0;
  int overhang          = 0;

  KOKKOS_INLINE_FUNCTION int size() const { return 1 << log2_size; }
  KOKKOS_INLINE_FUNCTION std::int64_t begin(std::int64_t c) const { return c << log2_size; }
  KOKKOS_INLINE_FUNCTION std::int64_t end(std::int64_t c) const { return inside(begin(c + 1)); }
  KOKKOS_INLINE_FUNCTION std::int64_t of(std::int64_t element) const { return element >> log2_size; }
  KOKKOS_INLINE_FUNCTION std::int64_t inside(std::int64_t offset) const { return offset_inside(offset, elements); }
  KOKKOS_INLINE_FUNCTION bool is_long(std::int64_t row_begin, std::int64_t row_end) const {
    return row_end > begin(of(row_begin) + 1) + overhang;
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_INPUTS_ROW_OFFSETS_HPP
