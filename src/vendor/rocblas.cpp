// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "products.hpp"

#if defined(KOKKOSNN_HAS_ROCBLAS)
#include "current_hip_device.hpp"
#include "device_blas.hpp"

#include <hip/hip_runtime.h>
#include <rocblas/rocblas.h>

#include <stdexcept>
#endif

// rocBLAS.

namespace KokkosNN::Impl {

#if defined(KOKKOSNN_HAS_ROCBLAS)

namespace {

void require(const std::string& label, rocblas_status status) {
  if (status != rocblas_status_success) throw std::runtime_error(label + ": " + rocblas_status_to_string(status));
}

struct Rocblas {
  using Handle = rocblas_handle;

  static Handle make(const std::string& label, const VendorQueue& queue) {
    Handle handle = nullptr;
    require(label, rocblas_create_handle(&handle));
    require(label, rocblas_set_stream(handle, static_cast<hipStream_t>(queue.stream)));
    // Sums by atomics would not be the same bits from run to run. Headers call the function deprecated, as releases to
    // come have no atomics unless they are asked for; those of today have them.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    require(label, rocblas_set_atomics_mode(handle, rocblas_atomics_not_allowed));
#pragma GCC diagnostic pop
    return handle;
  }
  static void destroy(Handle handle) { static_cast<void>(rocblas_destroy_handle(handle)); }
};

rocblas_datatype data_type(ElementType type) {
  switch (type) {
    case ElementType::f64:
      return rocblas_datatype_f64_r;
    case ElementType::f16:
      return rocblas_datatype_f16_r;
    case ElementType::bf16:
      return rocblas_datatype_bf16_r;
    case ElementType::f32:
    case ElementType::other:
      break;
  }
  return rocblas_datatype_f32_r;
}

template <class S>
void run(const std::string& label, rocblas_handle handle, const BlasProduct& p, ElementType type,
         const MatmulOptions& options, const MatmulLayout& layout, rocblas_datatype compute) {
  const S alpha = static_cast<S>(options.alpha), beta = static_cast<S>(options.beta);
  const rocblas_datatype data = data_type(type);
  const auto op               = [](const BlasOperand& operand) {
    return operand.is_transposed ? rocblas_operation_transpose : rocblas_operation_none;
  };
  using T = MatmulTensors;
  for_batches(layout, type, [&](const DeviceBatches& n) {
    require(label, rocblas_gemm_strided_batched_ex(handle, op(p.b), op(p.a), p.cols, p.rows, p.inner, &alpha,
                                                   n.data[T::b], data, p.b.leading_dimension, n.step[T::b],
                                                   n.data[T::a], data, p.a.leading_dimension, n.step[T::a], &beta,
                                                   n.data[T::c], data, p.c.leading_dimension, n.step[T::c],
                                                   n.data[T::c], data, p.c.leading_dimension, n.step[T::c], n.count,
                                                   compute, rocblas_gemm_algo_standard, 0, rocblas_gemm_flags_none));
  });
}

}  // namespace

bool has_rocblas() { return true; }

void run_rocblas(const std::string& label, const VendorQueue& queue, const BlasProduct& product, ElementType type,
                 const MatmulOptions& options, const MatmulLayout& layout) {
  const CurrentHipDevice device(label, queue.device);
  const rocblas_handle handle = IdleHandles<Rocblas>::get().take(label, queue);  // lost with an error
  if (type == ElementType::f64) {
    run<double>(label, handle, product, type, options, layout, rocblas_datatype_f64_r);
  } else {
    run<float>(label, handle, product, type, options, layout, rocblas_datatype_f32_r);
  }
  IdleHandles<Rocblas>::get().give_back(queue, handle);
}

#else

bool has_rocblas() { return false; }
void run_rocblas(const std::string&, const VendorQueue&, const BlasProduct&, ElementType, const MatmulOptions&,
                 const MatmulLayout&) {}

#endif

}  // namespace KokkosNN::Impl
