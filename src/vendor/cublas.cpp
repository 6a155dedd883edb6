// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "products.hpp"

#if defined(KOKKOSNN_HAS_CUBLAS)
#include <KokkosNN/impl/call/workspace.hpp>
#include <KokkosNN/impl/gpu/device/native_launch.hpp>

#include <cublas_v2.h>

#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>
#endif

#include <cstdint>

// cuBLAS. A handle belongs to one call at a time, and to one stream: its workspace is that stream's.

namespace KokkosNN::Impl {

#if defined(KOKKOSNN_HAS_CUBLAS)

namespace {

void require(const std::string& label, cublasStatus_t status) {
  if (status != CUBLAS_STATUS_SUCCESS) throw std::runtime_error(label + ": " + cublasGetStatusString(status));
}

/// Handles that no call has; destroyed when Kokkos finalises.
class Handles {
 public:
  struct Handle {
    int device;
    void* stream;
    cublasHandle_t handle;
  };

  static Handles& get() {
    static Handles& handles = *new Handles;  // for good: Kokkos may be finalised later than statics are destroyed
    return handles;
  }

  Handle take(const std::string& label, const VendorQueue& queue) {
    {
      const std::lock_guard lock(m_mutex);
      for (auto idle = m_idle.begin(); idle != m_idle.end(); ++idle) {
        if (idle->device != queue.device || idle->stream != queue.stream) continue;
        const Handle found = *idle;
        m_idle.erase(idle);
        return found;
      }
    }
    Handle made{queue.device, queue.stream, nullptr};
    require(label, cublasCreate(&made.handle));
    require(label, cublasSetStream(made.handle, static_cast<cudaStream_t>(queue.stream)));
    // Sums of 16-bit products stay in float.
    require(label, cublasSetMathMode(made.handle,
                                     static_cast<cublasMath_t>(CUBLAS_DEFAULT_MATH |
                                                               CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)));
    return made;
  }
  void give_back(const Handle& handle) {
    const std::lock_guard lock(m_mutex);
    m_idle.push_back(handle);
  }

 private:
  Handles() {
    const std::lock_guard lock(finalize_hooks_mutex);
    Kokkos::push_finalize_hook([this] {
      for (const Handle& idle : std::exchange(m_idle, {})) static_cast<void>(cublasDestroy(idle.handle));
    });
  }
  std::mutex m_mutex;
  std::vector<Handle> m_idle;
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
  const std::int64_t bytes  = type == ElementType::f64 ? 8 : type == ElementType::f32 ? 4 : 2;
  // The last axis of the batches is one call, the others are many.
  const int last           = layout.n - 1;
  const std::int64_t count = layout.n > 0 ? layout.extent[last] : 1;
  const auto at            = [&](int number, std::int64_t batch) {
    return const_cast<char*>(static_cast<const char*>(layout.data[number])) + layout.map(number)(batch) * bytes;
  };
  const auto step = [&](int number) { return layout.n > 0 ? layout.stride[number][last] : std::int64_t(0); };
  const auto op   = [](const BlasOperand& operand) { return operand.is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
  using T         = MatmulTensors;
  constexpr std::int64_t most_at_once = 1 << 30;
  for (std::int64_t n = 0; n < layout.batches;) {
    const std::int64_t left    = count - n % count;
    const std::int64_t at_once = left < most_at_once ? left : most_at_once;
    require(label,
            cublasGemmStridedBatchedEx(handle, op(p.b), op(p.a), p.cols, p.rows, p.inner, &alpha, at(T::b, n), data,
                                       p.b.leading_dimension, step(T::b), at(T::a, n), data, p.a.leading_dimension,
                                       step(T::a), &beta, at(T::c, n), data, p.c.leading_dimension, step(T::c),
                                       static_cast<int>(at_once), compute, CUBLAS_GEMM_DEFAULT));
    n += at_once;
  }
}

}  // namespace

bool has_cublas() { return true; }

void run_cublas(const std::string& label, const VendorQueue& queue, const BlasProduct& product, ElementType type,
                const MatmulOptions& options, const MatmulLayout& layout) {
  const CurrentDevice device(label, queue.device);
  const Handles::Handle handle = Handles::get().take(label, queue);  // lost with an error
  if (type == ElementType::f64) {
    run<double>(label, handle.handle, product, type, options, layout, CUBLAS_COMPUTE_64F);
  } else {
    const bool is_tensor_float = type == ElementType::f32 && options.precision == Precision::tensor_float32;
    run<float>(label, handle.handle, product, type, options, layout,
               is_tensor_float ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F);
  }
  Handles::get().give_back(handle);
}

#else

bool has_cublas() { return false; }
void run_cublas(const std::string&, const VendorQueue&, const BlasProduct&, ElementType, const MatmulOptions&,
                const MatmulLayout&) {}

#endif

}  // namespace KokkosNN::Impl
