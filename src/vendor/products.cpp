// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "products.hpp"

#include "../argument_error.hpp"
#include "../plan/tiles.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

// Which products go to a vendor's library.

namespace KokkosNN::Impl {
namespace {

using T = MatmulTensors;

constexpr std::int64_t most = std::numeric_limits<int>::max();

/// A matrix by rows or by columns; where an axis has one element, its stride does not matter.
std::optional<BlasOperand> blas_operand(std::int64_t rows, std::int64_t cols, std::int64_t row_stride,
                                        std::int64_t col_stride) {
  const auto lines = [](std::int64_t count, std::int64_t length, std::int64_t stride, std::int64_t along) {
    return (along == 1 || length == 1) && (count == 1 || (stride >= length && stride <= most));
  };
  const auto leading = [](std::int64_t count, std::int64_t length, std::int64_t stride) {
    return static_cast<int>(count == 1 ? std::max<std::int64_t>(1, length) : stride);
  };
  if (lines(rows, cols, row_stride, col_stride)) return BlasOperand{false, leading(rows, cols, row_stride)};
  if (lines(cols, rows, col_stride, row_stride)) return BlasOperand{true, leading(cols, rows, col_stride)};
  return {};
}

/// Why no vendor's library has a product; null where one has it.
const char* reason_against(Backend backend, ElementType type, const MatmulOptions& options,
                           const MatmulLayout& layout) {
  if (!has_vendor(backend)) return "this library was built without one for the execution space";
  if (layout.kind != MatmulRows::own) return "no such library has maps of rows";
  if (options.determinism == Determinism::batch_invariant) return "none promises bits that are batch invariant";
  if (backend == Backend::host && bytes_of(type) == 2) return "BLAS has no 16-bit types";
  const bool is_exact = type != ElementType::f32 || options.precision != Precision::tensor_float32x3;
  if (backend == Backend::cuda && !is_exact) return "none has the precision tensor_float32x3";
  if (!blas_product(layout)) return "BLAS does not express these strides or extents";
  return nullptr;
}

/// True where a vendor's library is taken unless own kernels are asked for. Hosts' own kernels are faster:
///
///     GFLOP/s of float, one core with AVX-512, 2026-11-27 | 128^3 | 512^3 | 262144 x 64 x 64
///     own                                                | 185   | 195   | 120
///     OpenBLAS 0.3.21                                    | 112   | 117   | 66
constexpr bool is_taken(Backend backend) { return backend != Backend::host; }

}  // namespace

std::optional<BlasProduct> blas_product(const MatmulLayout& layout) {
  if (std::max({layout.rows, layout.cols, layout.inner}) > most || layout.inner == 0) return {};
  if (layout.sums.n > 0) return {};
  const auto a = blas_operand(layout.rows, layout.inner, layout.row_stride[T::a], layout.col_stride[T::a]);
  const auto b = blas_operand(layout.inner, layout.cols, layout.row_stride[T::b], layout.col_stride[T::b]);
  const auto c = blas_operand(layout.rows, layout.cols, layout.row_stride[T::c], layout.col_stride[T::c]);
  if (!a || !b || !c || c->is_transposed) return {};
  return BlasProduct{
      static_cast<int>(layout.rows), static_cast<int>(layout.cols), static_cast<int>(layout.inner), *a, *b, *c};
}

bool has_vendor(Backend backend) {
  switch (backend) {
    case Backend::cuda:
      return has_cublas();
    case Backend::hip:
      return has_rocblas();
    case Backend::host:
      break;
  }
  return has_host_blas();
}

bool is_vendors(const char* function, Backend backend, ElementType type, const MatmulOptions& options,
                const MatmulLayout& layout) {
  if (options.provider == MatmulProvider::own) return false;
  const char* const reason = reason_against(backend, type, options, layout);
  if (options.provider == MatmulProvider::automatic) {
    const bool is_tuned  = options.tuning.group > 0 || options.tuning.parts > 0;  // of own kernels
    const bool is_slower = backend == Backend::cuda && is_faster_than_cublas(type, layout, options);
    return is_taken(backend) && !is_tuned && !is_slower && reason == nullptr;
  }
  if (reason != nullptr && layout.inner > 0) {
    (ArgumentError(function) << "a vendor's library was asked for, but " << reason).raise();
  }
  return layout.inner > 0;  // what is no product is written by a kernel
}

void require_own(const char* function, const MatmulOptions& options) {
  if (options.provider != MatmulProvider::vendor) return;
  (ArgumentError(function) << "a vendor's library was asked for, but none has epilogues, maps of rows or c of another "
                              "type")
      .raise();
}

std::string vendor_label(const char* function, Backend backend, ElementType type, Precision precision) {
  const char* const library = backend == Backend::cuda ? "[cublas," : backend == Backend::hip ? "[rocblas," : "[blas,";
  return std::string("KokkosNN::") + function + library + KokkosNN::to_string(type) +
         (type == ElementType::f32 && backend == Backend::cuda ? suffix_of(precision) : "") + ']';
}

void run_vendors(const std::string& label, const VendorQueue& queue, ElementType type, const MatmulOptions& options,
                 const MatmulLayout& layout) {
  const BlasProduct product = *blas_product(layout);
  if (queue.backend == Backend::host) return run_host_blas(product, type, options, layout);
  if (queue.backend == Backend::hip) return run_rocblas(label, queue, product, type, options, layout);
  run_cublas(label, queue, product, type, options, layout);
}

}  // namespace KokkosNN::Impl
