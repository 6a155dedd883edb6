// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_MATMUL_UNITS_HPP
#define KOKKOSNN_IMPL_CALL_MATMUL_UNITS_HPP

#include <KokkosNN/impl/call/matmul_plan.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>

// Units (gpu/matmul_units.hpp) that a product's kernels can move at once.

namespace KokkosNN::Impl {

/// True if a tensor's columns can be moved by chunks of 16 bytes.
inline bool is_in_chunks(const MatmulLayout& layout, int number, std::size_t element_bytes) {
  const auto has_chunks = [&](std::int64_t stride) { return stride * std::int64_t(element_bytes) % 16 == 0; };
  bool is = layout.col_stride[number] == 1 && reinterpret_cast<std::uintptr_t>(layout.data[number]) % 16 == 0 &&
            has_chunks(layout.row_stride[number]);
  for (int k = 0; k < layout.n; ++k) is = is && has_chunks(layout.stride[number][k]);
  return is;
}

/// A kernel's `has_units`: c and inputs can be moved by chunks, but for inputs that are one number a row.
template <class Results>
bool has_units_of(const MatmulLayout& layout) {
  const auto is_input = [&](int number, std::size_t element_bytes) {
    return layout.col_stride[number] == 0 || is_in_chunks(layout, number, element_bytes);
  };
  return [&]<std::size_t... i>(std::index_sequence<i...>) {
    return is_in_chunks(layout, MatmulTensors::c, sizeof(typename Results::C)) &&
           (... && is_input(MatmulTensors::inputs + static_cast<int>(i), sizeof(typename Results::template Input<i>)));
  }(std::make_index_sequence<Results::Inputs::count>{});
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_MATMUL_UNITS_HPP
