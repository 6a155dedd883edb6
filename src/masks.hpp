// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_SRC_MASKS_HPP
#define KOKKOSNN_SRC_MASKS_HPP

#include <KokkosNN/impl/call/mask_layout.hpp>

// Parts of a mask's normalisation that masked softmax and attention share; they are in mask_layout.cpp.

namespace KokkosNN::Impl {

/// A mask's Views with the extents of x, or of its rows.
struct BroadcastMask {
  Tensor keep;
  Tensor bias;
  Tensor lengths;
  Tensor offsets;
  Tensor slopes;
  Tensor scales;
  Tensor sinks;

  /// Throws std::invalid_argument for a View that does not broadcast.
  BroadcastMask(const char* function, const MaskTensors& mask, const Tensor& x);
};

/// Throws std::invalid_argument for a negative window or a softcap that is negative or not finite.
void validate_numbers(const char* function, const MaskTensors& mask);

/// Throws std::invalid_argument if y overlaps a View of the mask.
void validate_memory(const char* function, const MaskTensors& mask, const Tensor& y);

/// Throws std::invalid_argument for scales of rows, which attention does not take.
void refuse_scales(const char* function, const MaskTensors& mask);

/// Sets causal masks and windows as a band of diagonals.
void set_diagonals(const MaskTensors& mask, MaskLayout& layout);

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_SRC_MASKS_HPP
