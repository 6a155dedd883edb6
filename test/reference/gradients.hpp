// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_TEST_REFERENCE_GRADIENTS_HPP
#define KOKKOSNN_TEST_REFERENCE_GRADIENTS_HPP

#include "softmax.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

// The gradients of one row as plain loops in long double, each with the magnitude that its error is measured against:
//
//     softmax:      dx_i = scale y_i (dy_i - sum_j y_j dy_j)        |scale| y_i max_j |dy_j|
//     log_softmax:  dx_i = scale (dy_i - exp(y_i) sum_j dy_j)       |scale| max(|dy_i|, exp(y_i) sum_j |dy_j|)
//     logsumexp:    dx_i = scale dlse exp(scale x_i - lse)          |dx_i|

namespace KokkosNNTest::Reference {

struct Gradient {
  Real dx;
  Real magnitude;
  Real ill = 0;  ///< how much smaller than its terms the difference in dx is: 1 where nothing cancels
};

template <class Y, class D>
std::vector<Gradient> softmax_backward(const Row<Y>& y, const Row<D>& dy, Real scale) {
  Real sum = 0, largest = 0;
  for (std::int64_t i = 0; i < y.cols; ++i) {
    sum += y[i] * dy[i];
    largest = std::max(largest, std::fabs(dy[i]));
  }
  std::vector<Gradient> result(y.cols);
  for (std::int64_t i = 0; i < y.cols; ++i) {
    const Real difference = dy[i] - sum;
    result[i] = {scale * y[i] * difference, std::fabs(scale * y[i]) * largest, std::fabs(difference) / largest};
  }
  return result;
}

template <class Y, class D>
std::vector<Gradient> log_softmax_backward(const Row<Y>& y, const Row<D>& dy, Real scale) {
  Real sum = 0, sizes = 0;
  for (std::int64_t i = 0; i < y.cols; ++i) {
    sum += dy[i];
    sizes += std::fabs(dy[i]);
  }
  std::vector<Gradient> result(y.cols);
  for (std::int64_t i = 0; i < y.cols; ++i) {
    const Real e = exp_real(y[i]);
    result[i]    = {scale * (dy[i] - e * sum), std::fabs(scale) * std::max(std::fabs(dy[i]), e * sizes)};
  }
  return result;
}

template <class X>
std::vector<Gradient> logsumexp_backward(const Row<X>& x, Real lse, Real dlse, Real scale,
                                         KokkosNN::MaskedRowPolicy policy) {
  std::vector<Gradient> result(x.cols);
  for (std::int64_t i = 0; i < x.cols; ++i) {
    const Real masked = policy == KokkosNN::MaskedRowPolicy::zero ? 0 : nan;
    const Real dx = lse == -infinity ? masked : (lse == infinity ? nan : scale * dlse * exp_real(scale * x[i] - lse));
    result[i]     = {dx, std::fabs(dx)};
  }
  return result;
}

}  // namespace KokkosNNTest::Reference

#endif  // KOKKOSNN_TEST_REFERENCE_GRADIENTS_HPP
