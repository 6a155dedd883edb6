// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_TEST_REFERENCE_MASKED_SOFTMAX_HPP
#define KOKKOSNN_TEST_REFERENCE_MASKED_SOFTMAX_HPP

#include "softmax.hpp"

#include <KokkosNN/options.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

// One row of a masked softmax as plain loops in long double: the oracle of the tests. z holds the logits, scaled,
// capped and biased; `sink` is one more logit without a column, -inf if there is none.

namespace KokkosNNTest::Reference {

/// scale x, or softcap tanh(scale x / softcap).
inline Real capped(Real x, Real scale, Real softcap) {
  return softcap == 0 ? scale * x : softcap * std::tanh(scale * x / softcap);
}

/// The derivative of `capped` by x.
inline Real capped_slope(Real x, Real scale, Real softcap) {
  const Real t = softcap == 0 ? 0 : std::tanh(scale * x / softcap);
  return scale * (1 - t * t);
}

inline std::vector<Real> masked_softmax(const std::vector<Real>& z, const std::vector<bool>& allowed, Real sink,
                                        KokkosNN::MaskedRowPolicy policy) {
  Real max      = sink;
  bool poisoned = std::isnan(sink) || sink == infinity;
  for (std::size_t k = 0; k < z.size(); ++k) {
    if (!allowed[k]) continue;
    poisoned = poisoned || std::isnan(z[k]) || z[k] == infinity;
    max      = std::max(max, z[k]);
  }
  std::vector<Real> y(z.size(), 0);
  if (poisoned || max == -infinity) {
    const bool is_zero = !poisoned && policy == KokkosNN::MaskedRowPolicy::zero;
    std::fill(y.begin(), y.end(), is_zero ? Real(0) : nan);
    return y;
  }
  Real sum = exp_real(sink - max);
  for (std::size_t k = 0; k < z.size(); ++k) {
    if (allowed[k]) sum += y[k] = exp_real(z[k] - max);
  }
  for (Real& value : y) value /= sum;
  return y;
}

}  // namespace KokkosNNTest::Reference

#endif  // KOKKOSNN_TEST_REFERENCE_MASKED_SOFTMAX_HPP
