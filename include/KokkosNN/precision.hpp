// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_PRECISION_HPP
#define KOKKOSNN_PRECISION_HPP

namespace KokkosNN {

/// Products of float elements. Other types have one precision: products of 16-bit elements are exact in float, products
/// of doubles are rounded to double.
enum class Precision {
  exact,             ///< products and sums in float
  tensor_float32x3,  ///< on GPUs with TF32 units: three products of parts of 11 bits; errors of about twice float's
  tensor_float32     ///< on GPUs with TF32 units: elements rounded to 11 significant bits, products exact
};

/// Kernels of matrix products, and of attention, on a GPU.
enum class MatmulTier {
  automatic,   ///< the policy's choice
  portable,    ///< those that all GPUs have
  warpgroups,  ///< those for Hopper's warpgroups, where the call has one; the others otherwise
};

}  // namespace KokkosNN

#endif  // KOKKOSNN_PRECISION_HPP
