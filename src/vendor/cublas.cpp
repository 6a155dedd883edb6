// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "products.hpp"

#if defined(KOKKOSNN_HAS_CUBLAS)
#include "device_blas.hpp"

#include <KokkosNN/impl/gpu/device/native_launch.hpp>

#include <cublas_v2.h>

#include <stdexcept>
#endif

// cuBLAS.

namespace KokkosNN::Impl {

#if defined(KOKKOSNN_HAS_CUBLAS)

namespace {

void require(const std::string& label, cublasStatus_t status) {
  if (status != CUBLAS_STATUS_SUCCESS) throw std::runtime_error(label + ": " + cublasGetStatusString(status));
}

struct Cublas {
  using Handle = cublasHandle_t;

  static Handle make(const std::string& label, const VendorQueue& queue) {
    Handle handle = nullptr;
    require(label, cublasCreate(&handle));
    require(label, cublasSetStream(handle, static_cast<cudaStream_t>(queue.stream)));
    // Sums of 16-bit products stay in float.
    require(label,
            cublasSetMathMode(handle, static_cast<cublasMath_t>(CUBLAS_DEFAULT_MATH |
                                                                CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)));
    return handle;
  }
  static void destroy(Handle handle) { static_cast<void>(cublasDestroy(handle)); }
};

cudaDataType_t data_type(ElementType type) {
  switch (type) {
    case ElementType::f64:
      return CUDA_R_64F;
    case ElementType::f16:
      return CUDA_R_16F;
    case ElementType::bf16:
      return CUDA_R_16BF;
    case ElementType::f32:
    case ElementType::other:
      break;
  }
  return CUDA_R_32F;
}

template <class S>
void run(const std::string& label, cublasHandle_t handle, const BlasProduct& p, ElementType type,
         const MatmulOptions& options, const MatmulLayout& layout, cublasComputeType_t compute) {
  const S alpha = static_cast<S>(options.alpha), beta = static_cast<S>(options.beta);
  const cudaDataType_t data = data_type(type);
  const auto op = [](const BlasOperand& operand) { return operand.is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
  using T       = MatmulTensors;
  for_batches(layout, type, [&](const DeviceBatches& n) {
    require(label,
            cublasGemmStridedBatchedEx(handle, op(p.b), op(p.a), p.cols, p.rows, p.inner, &alpha, n.data[T::b], data,
                                       p.b.leading_dimension, n.step[T::b], n.data[T::a], data, p.a.leading_dimension,
                                       n.step[T::a], &beta, n.data[T::c], data, p.c.leading_dimension, n.step[T::c],
                                       n.count, compute, CUBLAS_GEMM_DEFAULT));
  });
}

}  // namespace

bool has_cublas() { return true; }

void run_cublas(const std::string& label, const VendorQueue& queue, const BlasProduct& product, ElementType type,
                const MatmulOptions& options, const MatmulLayout& layout) {
  const CurrentDevice device(label, queue.device);
  const cublasHandle_t handle = IdleHandles<Cublas>::get().take(label, queue);  // lost with an error
  if (type == ElementType::f64) {
    run<double>(label, handle, product, type, options, layout, CUBLAS_COMPUTE_64F);
  } else {
    const bool is_tensor_float = type == ElementType::f32 && options.precision == Precision::tensor_float32;
    run<float>(label, handle, product, type, options, layout,
               is_tensor_float ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F);
  }
  IdleHandles<Cublas>::get().give_back(queue, handle);
}

#else

bool has_cublas() { return false; }
void run_cublas(const std::string&, const VendorQueue&, const BlasProduct&, ElementType, const MatmulOptions&,
                const MatmulLayout&) {}

#endif

}  // namespace KokkosNN::Impl
