// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_TEST_REFERENCE_CROSS_ENTROPY_HPP
#define KOKKOSNN_TEST_REFERENCE_CROSS_ENTROPY_HPP

#include "softmax.hpp"

#include <KokkosNN/options.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

// The cross entropy of one row and its gradient as plain loops in long double, each with the magnitude that its error
// is measured against: the largest of its terms.
//
//     loss = (1 - e) w_y (lse - z_y) + e / C sum_c w_c (lse - z_c) + z_loss v lse^2
//     dz_c = p_c ((1 - e) w_y + e / C sum_k w_k + 2 z_loss v lse) - e / C w_c - [c = y] (1 - e) w_y

namespace KokkosNNTest::Reference {

struct Measured {
  Real value;
  Real magnitude;
};

/// Results of one row before its loss is reduced; the gradient is that of the row's loss, or empty.
struct CrossEntropy {
  Real weight;  ///< in a mean
  Measured loss;
  Measured lse;
  std::vector<Measured> gradient;
};

/// A row's logits under a soft cap; -inf stays.
template <class X>
std::vector<Real> capped_logits(const Row<X>& row, Real cap) {
  std::vector<Real> z(row.cols);
  for (std::int64_t c = 0; c < row.cols; ++c) {
    z[c] = cap == 0 || row[c] == -infinity ? row[c] : cap * std::tanh(row[c] / cap);
  }
  return z;
}

/// log sum_c exp(z_c), and what it is measured against.
inline Measured lse_of(const std::vector<Real>& z) {
  Real max = -infinity, sum = 0;
  for (const Real value : z) {
    if (std::isnan(value)) return {nan, 0};
    max = std::max(max, value);
  }
  if (std::isinf(max)) return {max, 0};
  for (const Real value : z) sum += exp_real(value - max);
  return {max + std::log(sum), std::max<Real>(1, std::fabs(max))};
}

/// `weights` has an element for each class, or none. `given_lse`: what loss and gradient are computed from; the row's
/// own if NaN. `has_gradient`: whether someone looks at the gradient, which takes most of the time. `z_loss_weight`:
/// v, w_y if NaN.
template <class X>
CrossEntropy cross_entropy(const Row<X>& row, std::int64_t label, const KokkosNN::CrossEntropyOptions& options,
                           const std::vector<Real>& weights, Real given_lse = nan, bool has_gradient = true,
                           Real z_loss_weight = nan) {
  const std::vector<Real> z = capped_logits(row, options.softcap);
  CrossEntropy result{0, {0, 0}, lse_of(z), std::vector<Measured>(has_gradient ? row.cols : 0, {0, 0})};
  if (label == options.ignore_index) return result;
  if (label < 0 || label >= row.cols) {
    result.loss = {nan, 0};
    std::fill(result.gradient.begin(), result.gradient.end(), Measured{nan, 0});
    return result;
  }
  const auto weight = [&](std::int64_t c) { return weights.empty() ? Real(1) : weights[c]; };
  const Real e = options.label_smoothing, spread = e / row.cols, w = weight(label), cap = options.softcap;
  const Real v  = std::isnan(z_loss_weight) ? w : z_loss_weight;
  result.weight = w;

  // A row without a finite maximum has NaN everywhere.
  const Real told = std::isnan(given_lse) ? result.lse.value : given_lse;
  const Real lse  = std::isinf(told) ? nan : told;
  Real all        = 0;
  Real of_classes = 0;
  Real sizes      = 0;
  for (std::int64_t c = 0; c < row.cols; ++c) {
    all += weight(c);
    if (e != 0) of_classes += weight(c) * (lse - z[c]);
    if (e != 0) sizes += std::fabs(weight(c)) * std::max(std::fabs(lse), std::fabs(z[c]));
  }
  // The lse that is given may be too small; no probability is above 1, though. (NaN stays.)
  const Real by_label   = (1 - e) * w * std::max(lse - z[label], Real(0));
  const Real by_lse     = options.z_loss == 0 ? 0 : options.z_loss * v * lse * lse;
  result.loss.value     = by_label + (e != 0 ? spread * of_classes : 0) + by_lse;
  result.loss.magnitude = std::max(
      {Real(1), std::fabs((1 - e) * w) * std::max(Real(1), std::fabs(z[label])), spread * sizes, std::fabs(by_lse)});

  // Exponentials are as good as the lse that is given.
  const Real by = (1 - e) * w + spread * all + 2 * options.z_loss * v * lse;
  for (std::int64_t c = 0; has_gradient && c < row.cols; ++c) {
    const Real p      = exp_real(z[c] - lse);
    const Real target = spread * weight(c) + (c == label ? (1 - e) * w : 0);
    const Real slope  = cap == 0 ? 1 : (z[c] == -infinity ? 0 : 1 - z[c] / cap * (z[c] / cap));
    const Real dz     = std::isfinite(lse) ? (p * by - target) : nan;
    const Real size   = std::max(
        std::fabs(p) * (std::fabs((1 - e) * w) + std::fabs(spread * all) + std::fabs(2 * options.z_loss * v * lse)),
        std::fabs(target));
    // The slope of a soft cap is, near the cap's ends, a difference of numbers near 1.
    result.gradient[c] = {dz * slope, size};
  }
  return result;
}

}  // namespace KokkosNNTest::Reference

#endif  // KOKKOSNN_TEST_REFERENCE_CROSS_ENTROPY_HPP
