// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
/// cuDNN's softmax as a peer: cudnnSoftmaxForward, one row an image, rows x cols x 1 x 1 in NCHW.
#include "provider.hpp"

#include <cudnn.h>

#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace KokkosNN::Perf {
namespace {

void check(cudnnStatus_t status, const char* what) {
  if (status != CUDNN_STATUS_SUCCESS) throw std::runtime_error(std::string(what) + ": " + cudnnGetErrorString(status));
}

cudnnDataType_t data_type(ElementType type) {
  switch (type) {
    case ElementType::f64:
      return CUDNN_DATA_DOUBLE;
    case ElementType::f32:
      return CUDNN_DATA_FLOAT;
    case ElementType::f16:
      return CUDNN_DATA_HALF;
    case ElementType::bf16:
      return CUDNN_DATA_BFLOAT16;
    case ElementType::other:
      break;
  }
  throw std::logic_error(std::string("KokkosNN::Perf: cuDNN has no ") + KokkosNN::to_string(type));
}

/// Handle and descriptor of one case; x and y have the same.
class Softmax {
 public:
  Softmax(const Exec& exec, const Case& shape)
      : m_algorithm(shape.op == RowOperator::log_softmax ? CUDNN_SOFTMAX_LOG : CUDNN_SOFTMAX_ACCURATE),
        m_double(shape.x_type == ElementType::f64) {
    check(cudnnCreate(&m_handle), "cudnnCreate");
    check(cudnnSetStream(m_handle, exec.cuda_stream()), "cudnnSetStream");
    check(cudnnCreateTensorDescriptor(&m_tensor), "cudnnCreateTensorDescriptor");
    check(cudnnSetTensor4dDescriptor(m_tensor, CUDNN_TENSOR_NCHW, data_type(shape.x_type), static_cast<int>(shape.rows),
                                     static_cast<int>(shape.cols), 1, 1),
          "cudnnSetTensor4dDescriptor");
  }
  ~Softmax() {
    cudnnDestroyTensorDescriptor(m_tensor);
    cudnnDestroy(m_handle);
  }
  Softmax(const Softmax&)            = delete;
  Softmax& operator=(const Softmax&) = delete;

  void run(const void* x, void* y) const {
    if (m_double) return run_scaled<double>(x, y);
    run_scaled<float>(x, y);
  }

 private:
  /// alpha and beta are double for double tensors and float for all others.
  template <class Scale>
  void run_scaled(const void* x, void* y) const {
    const Scale one = 1, zero = 0;
    check(
        cudnnSoftmaxForward(m_handle, m_algorithm, CUDNN_SOFTMAX_MODE_INSTANCE, &one, m_tensor, x, &zero, m_tensor, y),
        "cudnnSoftmaxForward");
  }

  cudnnSoftmaxAlgorithm_t m_algorithm;
  bool m_double;
  cudnnHandle_t m_handle           = nullptr;
  cudnnTensorDescriptor_t m_tensor = nullptr;
};

}  // namespace

bool cudnn_serves(const Case& shape) {
  constexpr std::int64_t most = std::numeric_limits<int>::max();  // it counts in int
  const bool is_softmax       = shape.op == RowOperator::softmax || shape.op == RowOperator::log_softmax;
  return shape.is_of_rows() && is_softmax && shape.layout == Layout::right && shape.x_type == shape.y_type &&
         shape.rows <= most && shape.cols <= most && shape.rows * shape.cols <= most;
}

Contender make_cudnn(const Problem& problem) {
  const auto softmax = std::make_shared<const Softmax>(problem.exec(), problem.shape());
  Contender result;
  with_type(problem.shape().x_type, [&]<class T>(std::type_identity<T>) {
    const void* x = problem.x<T>().data();
    void* y       = problem.y<T>().data();
    result.call   = [=] { softmax->run(x, y); };
  });
  result.plan  = problem.shape().op == RowOperator::log_softmax ? "log, instance" : "accurate, instance";
  result.slack = 2 + static_cast<double>(problem.shape().cols) / 65536;  // how it sums is not known
  return result;
}

}  // namespace KokkosNN::Perf
