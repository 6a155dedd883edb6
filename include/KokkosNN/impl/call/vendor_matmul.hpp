// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_VENDOR_MATMUL_HPP
#define KOKKOSNN_IMPL_CALL_VENDOR_MATMUL_HPP

#include <KokkosNN/export.hpp>
#include <KokkosNN/impl/backend.hpp>
#include <KokkosNN/impl/call/matmul_plan.hpp>
#include <KokkosNN/impl/call/vendor_queue.hpp>
#include <KokkosNN/matmul_options.hpp>
#include <KokkosNN/plan.hpp>

#include <string>

// Matrix products by a vendor's library, where this one was built with it: BLAS on hosts, cuBLAS on CUDA,
// rocBLAS on HIP.

namespace KokkosNN::Impl {

/// True if a vendor's library computes a product without an epilogue of tensors of one type, as the options say. Throws
/// std::invalid_argument where a caller insists and it cannot.
KOKKOSNN_EXPORT bool is_vendors(const char* function, Backend backend, ElementType type, const MatmulOptions& options,
                                const MatmulLayout& layout);

/// Throws std::invalid_argument if a caller insists on a vendor's library for what no such library has.
KOKKOSNN_EXPORT void require_own(const char* function, const MatmulOptions& options);

/// The label of such a product: `KokkosNN::matmul[cublas,bf16]`.
KOKKOSNN_EXPORT std::string vendor_label(const char* function, Backend backend, ElementType type, Precision precision);

/// Enqueues such a product; on a host it has run when the call returns.
KOKKOSNN_EXPORT void run_vendors(const std::string& label, const VendorQueue& queue, ElementType type,
                                 const MatmulOptions& options, const MatmulLayout& layout);

/// True if this library was built with a vendor's for a backend.
KOKKOSNN_EXPORT bool has_vendor(Backend backend);

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_VENDOR_MATMUL_HPP
