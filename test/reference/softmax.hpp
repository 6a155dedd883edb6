// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_TEST_REFERENCE_SOFTMAX_HPP
#define KOKKOSNN_TEST_REFERENCE_SOFTMAX_HPP

#include "exp.hpp"

#include <KokkosNN/options.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

// The forward family of one row as plain loops in long double: the oracle of the tests. With z_i = scale * x_i:
//
//     softmax_i     = exp(z_i - max z) / sum_j exp(z_j - max z)
//     log_softmax_i = z_i - max z - log(sum_j exp(z_j - max z))
//     logsumexp     = max z + log(sum_j exp(z_j - max z))
//
// A NaN among the z makes everything NaN, and so does a +inf, but for the logsumexp, which is +inf then; a row of only
// -inf (or of nothing) is masked and follows the policy.

namespace KokkosNNTest::Reference {

inline constexpr Real infinity = std::numeric_limits<Real>::infinity();
inline constexpr Real nan      = std::numeric_limits<Real>::quiet_NaN();

/// `cols` elements, `stride` apart.
template <class T>
struct Row {
  const T* data;
  std::int64_t cols;
  std::int64_t stride = 1;

  Real operator[](std::int64_t i) const { return static_cast<Real>(static_cast<double>(data[i * stride])); }
};

/// The largest logit of a row, and whether there is one to speak of.
struct RowMax {
  Real x        = nan;    ///< the x with the largest z
  bool has_nan  = false;  ///< among the z
  bool poisoned = false;  ///< a NaN or a +inf among the z
  bool masked   = true;   ///< only -inf among the z
};

template <class T>
RowMax find_max(const Row<T>& row, Real scale) {
  RowMax max;
  for (std::int64_t i = 0; i < row.cols; ++i) {
    const Real z = scale * row[i];
    if (std::isnan(z)) max.has_nan = true;
    if (std::isnan(z) || z == infinity) max.poisoned = true;
    if (z == -infinity) continue;
    if (max.masked || z > scale * max.x) max.x = row[i];
    max.masked = false;
  }
  return max;
}

/// z_i - max z: the difference before the scale, so that nothing cancels; -inf stays -inf.
inline Real shifted(Real x, const RowMax& max, Real scale) {
  return scale * x == -infinity ? -infinity : scale * (x - max.x);
}

template <class T>
Real sum_of_exp(const Row<T>& row, const RowMax& max, Real scale) {
  Real sum = 0;
  for (std::int64_t i = 0; i < row.cols; ++i) sum += exp_real(shifted(row[i], max, scale));
  return sum;
}

template <class T>
void softmax(const Row<T>& row, Real scale, KokkosNN::MaskedRowPolicy policy, std::vector<Real>& y) {
  const RowMax max = find_max(row, scale);
  if (max.poisoned || max.masked) {
    y.assign(row.cols, !max.poisoned && policy == KokkosNN::MaskedRowPolicy::zero ? 0 : nan);
    return;
  }
  y.resize(row.cols);
  Real sum = 0;
  for (std::int64_t i = 0; i < row.cols; ++i) sum += y[i] = exp_real(shifted(row[i], max, scale));
  for (Real& value : y) value /= sum;
}

template <class T>
void log_softmax(const Row<T>& row, Real scale, KokkosNN::MaskedRowPolicy policy, std::vector<Real>& y) {
  const RowMax max = find_max(row, scale);
  if (max.poisoned || max.masked) {
    y.assign(row.cols, !max.poisoned && policy == KokkosNN::MaskedRowPolicy::zero ? -infinity : nan);
    return;
  }
  const Real log_sum = std::log(sum_of_exp(row, max, scale));
  y.resize(row.cols);
  for (std::int64_t i = 0; i < row.cols; ++i) y[i] = shifted(row[i], max, scale) - log_sum;
}

/// -inf for a masked row, whatever the policy: the logarithm of an empty sum.
template <class T>
Real logsumexp(const Row<T>& row, Real scale) {
  const RowMax max = find_max(row, scale);
  if (max.poisoned) return max.has_nan ? nan : infinity;
  if (max.masked) return -infinity;
  return scale * max.x + std::log(sum_of_exp(row, max, scale));
}

/// |z| of the largest logit: what the error of a logsumexp is measured against.
template <class T>
Real magnitude_of_max(const Row<T>& row, Real scale) {
  return std::fabs(scale * find_max(row, scale).x);
}

}  // namespace KokkosNNTest::Reference

#endif  // KOKKOSNN_TEST_REFERENCE_SOFTMAX_HPP
