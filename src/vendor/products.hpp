// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_SRC_VENDOR_PRODUCTS_HPP
#define KOKKOSNN_SRC_VENDOR_PRODUCTS_HPP

#include <KokkosNN/impl/call/vendor_matmul.hpp>

#include <cstdint>
#include <optional>
#include <string>

// Products as the BLAS interface has them.

namespace KokkosNN::Impl {

/// An operand of a product by rows, or by columns: transposed.
struct BlasOperand {
  bool is_transposed    = false;
  int leading_dimension = 1;
};

/// A product by rows, c by rows without gaps between columns: by columns, as BLAS has it, c^T = b^T a^T.
struct BlasProduct {
  int rows  = 0;
  int cols  = 0;
  int inner = 0;
  BlasOperand a, b, c;
};

/// The product of a layout, unless its strides or extents are none that BLAS can express.
std::optional<BlasProduct> blas_product(const MatmulLayout& layout);

/// Products of batches by a host's BLAS; types are float and double.
bool has_host_blas();
void run_host_blas(const BlasProduct& product, ElementType type, const MatmulOptions& options,
                   const MatmulLayout& layout);

/// Products of batches by cuBLAS, and by rocBLAS, which has no TF32: products of float are exact.
bool has_cublas();
bool has_rocblas();
void run_cublas(const std::string& label, const VendorQueue& queue, const BlasProduct& product, ElementType type,
                const MatmulOptions& options, const MatmulLayout& layout);
void run_rocblas(const std::string& label, const VendorQueue& queue, const BlasProduct& product, ElementType type,
                 const MatmulOptions& options, const MatmulLayout& layout);

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_SRC_VENDOR_PRODUCTS_HPP
