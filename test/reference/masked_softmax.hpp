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

// One row of a masked softmax, its logarithm or a masked log-sum-exp as plain loops in long double: the oracle of the
// tests. z holds the logits, scaled,
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

/// The largest logit of a row and its sink, and the sum of exponentials relative to it.
struct MaskedSum {
  Real max      = -infinity;
  Real sum      = 0;
  bool has_nan  = false;
  bool poisoned = false;  ///< a NaN or a +inf

  bool is_masked() const { return !poisoned && max == -infinity; }
};

inline MaskedSum masked_sum(const std::vector<Real>& z, const std::vector<bool>& allowed, Real sink) {
  MaskedSum row;
  const auto each = [&](const auto& f) {
    f(sink);
    for (std::size_t k = 0; k < z.size(); ++k) {
      if (allowed[k]) f(z[k]);
    }
  };
  each([&](Real logit) {
    row.has_nan  = row.has_nan || std::isnan(logit);
    row.poisoned = row.poisoned || std::isnan(logit) || logit == infinity;
    row.max      = std::max(row.max, logit);
  });
  if (row.poisoned || row.is_masked()) return row;
  each([&](Real logit) { row.sum += exp_real(logit - row.max); });
  return row;
}

/// f(logit less the largest, sum) where a column is allowed, and `masked` where it is not.
template <class F>
std::vector<Real> masked_row(const std::vector<Real>& z, const std::vector<bool>& allowed, Real sink,
                             KokkosNN::MaskedRowPolicy policy, Real masked, const F& f) {
  const MaskedSum row = masked_sum(z, allowed, sink);
  std::vector<Real> y(z.size(), masked);
  if (row.poisoned || (row.is_masked() && policy == KokkosNN::MaskedRowPolicy::nan)) {
    std::fill(y.begin(), y.end(), nan);
  } else if (!row.is_masked()) {
    for (std::size_t k = 0; k < z.size(); ++k) {
      if (allowed[k]) y[k] = f(z[k] - row.max, row.sum);
    }
  }
  return y;
}

inline std::vector<Real> masked_softmax(const std::vector<Real>& z, const std::vector<bool>& allowed, Real sink,
                                        KokkosNN::MaskedRowPolicy policy) {
  return masked_row(z, allowed, sink, policy, 0, [](Real d, Real sum) { return exp_real(d) / sum; });
}

inline std::vector<Real> masked_log_softmax(const std::vector<Real>& z, const std::vector<bool>& allowed, Real sink,
                                            KokkosNN::MaskedRowPolicy policy) {
  return masked_row(z, allowed, sink, policy, -infinity, [](Real d, Real sum) { return d - std::log(sum); });
}

inline Real masked_logsumexp(const std::vector<Real>& z, const std::vector<bool>& allowed, Real sink) {
  const MaskedSum row = masked_sum(z, allowed, sink);
  if (row.has_nan) return nan;
  return row.poisoned || row.is_masked() ? row.max : row.max + std::log(row.sum);
}

}  // namespace KokkosNNTest::Reference

#endif  // KOKKOSNN_TEST_REFERENCE_MASKED_SOFTMAX_HPP
