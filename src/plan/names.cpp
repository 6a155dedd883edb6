// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/plan.hpp>

namespace KokkosNN {

const char* to_string(RowOperator op) {
  switch (op) {
    case RowOperator::softmax:
      return "softmax";
    case RowOperator::log_softmax:
      return "log_softmax";
    case RowOperator::logsumexp:
      return "logsumexp";
    case RowOperator::softmax_backward:
      return "softmax_backward";
    case RowOperator::log_softmax_backward:
      return "log_softmax_backward";
    case RowOperator::masked_softmax:
      return "masked_softmax";
    case RowOperator::masked_softmax_backward:
      return "masked_softmax_backward";
    case RowOperator::logsumexp_backward:
      return "logsumexp_backward";
    case RowOperator::cross_entropy:
      return "cross_entropy";
    case RowOperator::cross_entropy_backward:
      return "cross_entropy_backward";
    case RowOperator::cross_entropy_with_gradient:
      return "cross_entropy_with_gradient";
  }
  return "unknown operator";
}

}  // namespace KokkosNN
