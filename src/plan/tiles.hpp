// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_SRC_PLAN_TILES_HPP
#define KOKKOSNN_SRC_PLAN_TILES_HPP

#include <KokkosNN/precision.hpp>
#include <KokkosNN/vocabulary.hpp>

#include <cstdint>

// Parts that plans of kernels of tiles share: matrix products and attention.

namespace KokkosNN::Impl {

/// A league's size is 32 bits; teams take tiles, or rows, in turn.
inline constexpr std::int64_t most_teams = std::int64_t(1) << 30;

inline int bytes_of(ElementType type) { return type == ElementType::f64 ? 8 : type == ElementType::f32 ? 4 : 2; }

/// Bytes of a number that sums over elements of a type are taken in.
inline int accumulator_bytes_of(ElementType type) { return type == ElementType::f64 ? 8 : 4; }

/// True if chunks of 16 bytes begin at a pointer, or at multiples of a stride in elements.
inline bool is_at_chunks(const void* data) { return reinterpret_cast<std::uintptr_t>(data) % 16 == 0; }
inline bool is_at_chunks(std::int64_t stride, ElementType type) { return stride * bytes_of(type) % 16 == 0; }

/// Part of a label behind the elements' type.
inline const char* suffix_of(Precision precision) {
  switch (precision) {
    case Precision::exact:
      return "";
    case Precision::tensor_float32x3:
      return ",tf32x3";
    case Precision::tensor_float32:
      return ",tf32";
  }
  return ",unknown precision";
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_SRC_PLAN_TILES_HPP
