// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_MASK_DATA_HPP
#define KOKKOSNN_IMPL_CALL_MASK_DATA_HPP

#include <KokkosNN/impl/call/mask_layout.hpp>
#include <KokkosNN/impl/inputs/masked.hpp>

#include <cstdint>

// A mask's erased Views as masked rows and attention read them.

namespace KokkosNN::Impl {

inline CountsOfRows counts_of(const Tensor& t) {
  return t.exists() ? CountsOfRows{t.data, t.element_bytes == 8} : CountsOfRows{};
}

/// Limits that a mask and its layout, of rows or of scores, have.
template <class Layout>
ColumnLimits limits_of(const MaskTensors& mask, const Layout& layout, std::int64_t cols) {
  return {cols, layout.has_diagonals, layout.low, layout.high, counts_of(mask.lengths), counts_of(mask.offsets)};
}

inline const std::uint8_t* kept_bytes(const MaskTensors& mask) {
  return mask.keep.exists() ? static_cast<const std::uint8_t*>(mask.keep.data) : nullptr;
}

template <class X>
TypedPointer<X> pointer_to(const Tensor& t) {
  return t.exists() ? TypedPointer<X>{t.data, t.type == ElementType::f32} : TypedPointer<X>{};
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_MASK_DATA_HPP
