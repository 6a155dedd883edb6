// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_TENSOR_MAP_HPP
#define KOKKOSNN_IMPL_TENSOR_MAP_HPP

#include <KokkosNN/export.hpp>
#include <KokkosNN/vocabulary.hpp>

#include <cstdint>
#include <string>

// Tensors as Hopper's copies of boxes know them.

namespace KokkosNN::Impl {

/// A tensor and a box of it, in the form of the device, which reads it where a kernel's argument is.
struct TensorMap {
  static constexpr int rank = 5;
  alignas(64) std::uint64_t word[16];
};

/// A tensor of 16-bit elements, and the box that a copy takes of it: `box` elements of the first two axes, 64 of the
/// first one, which is contiguous. Addresses and strides are multiples of 16 bytes.
struct BoxedTensor {
  const void* data                     = nullptr;
  ElementType type                     = ElementType::bf16;
  std::int64_t extent[TensorMap::rank] = {1, 1, 1, 1, 1};
  std::int64_t stride[TensorMap::rank] = {1, 0, 0, 0, 0};  ///< in elements; of an axis of extent 1 it does not count
  int box[2]                           = {64, 1};
};

/// Largest extents and strides, in bytes, of such a tensor: places are ints, with room for a box behind the end.
inline constexpr std::int64_t most_boxed_extent = (std::int64_t(1) << 31) - 1024;
inline constexpr std::int64_t most_boxed_stride = (std::int64_t(1) << 40) - 16;

/// The map of a tensor, zeros around it, its boxes in the order of warpgroup_tile (gpu/device/warpgroup.hpp). Throws
/// std::runtime_error, in whose text the label is, if the driver refuses.
KOKKOSNN_EXPORT TensorMap tensor_map(const std::string& label, const BoxedTensor& tensor);

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_TENSOR_MAP_HPP
