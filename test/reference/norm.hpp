// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_TEST_REFERENCE_NORM_HPP
#define KOKKOSNN_TEST_REFERENCE_NORM_HPP

#include "softmax.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

// Normalisations of one row, and their gradients, as plain loops in long double, each element with the magnitude that
// its error is measured against, as norm.hpp documents it.

namespace KokkosNNTest::Reference {

struct Normalised {
  Real value;
  Real magnitude;
};

/// Values that all elements of a row share. The mean, 0 in RMSNorm, is near + rest: elements near a large one have no
/// digits left for its last ones.
struct RowMoments {
  Real near = 0;
  Real rest = 0;
  Real rstd = 0;

  Real mean() const { return near + rest; }
  Real distance(Real x) const { return (x - near) - rest; }
};

template <class X>
RowMoments rms_moments(const Row<X>& x, Real epsilon) {
  Real squares = 0;
  for (std::int64_t i = 0; i < x.cols; ++i) squares += x[i] * x[i];
  return {0, 0, 1 / std::sqrt(squares / Real(x.cols) + epsilon)};
}

template <class X>
RowMoments layer_moments(const Row<X>& x, Real epsilon) {
  RowMoments row;
  row.near     = x.cols > 0 ? x[0] : 0;
  Real squares = 0;
  for (std::int64_t i = 0; i < x.cols; ++i) row.rest += (x[i] - row.near) / Real(x.cols);
  for (std::int64_t i = 0; i < x.cols; ++i) squares += row.distance(x[i]) * row.distance(x[i]);
  row.rstd = 1 / std::sqrt(squares / Real(x.cols) + epsilon);
  return row;
}

/// Reference of either norm: RMSNorm has mean 0 and no bias, and its error is measured against the result alone.
template <class X>
std::vector<Normalised> norm(const Row<X>& x, const RowMoments& row, const std::vector<Real>& weight,
                             const std::vector<Real>& bias, bool is_layer_norm) {
  Real distance = 0;
  for (std::int64_t i = 0; i < x.cols; ++i) distance += std::fabs(row.distance(x[i])) / Real(x.cols);
  std::vector<Normalised> result(x.cols);
  for (std::int64_t i = 0; i < x.cols; ++i) {
    const Real product = row.distance(x[i]) * row.rstd * weight[i];
    const Real largest = std::max(std::fabs(row.rstd * weight[i]) * distance, std::fabs(bias[i]));
    result[i]          = {product + bias[i], is_layer_norm ? std::max(std::fabs(product), largest) : 0};
  }
  return result;
}

/// dx of either, plus dsum where there is one; `has_mean` where g is centred, as in LayerNorm.
template <class X, class D>
std::vector<Normalised> norm_backward(const Row<X>& x, const Row<D>& dy, const Row<D>* dsum, const RowMoments& row,
                                      const std::vector<Real>& weight, bool has_mean) {
  Real sum = 0, size = 0, products = 0, product_size = 0;
  const auto g = [&](std::int64_t i) { return dy[i] * weight[i]; };
  const auto h = [&](std::int64_t i) { return row.distance(x[i]) * row.rstd; };
  for (std::int64_t i = 0; i < x.cols; ++i) {
    sum += g(i) / Real(x.cols);
    size += std::fabs(g(i)) / Real(x.cols);
    products += g(i) * h(i) / Real(x.cols);
    product_size += std::fabs(g(i) * h(i)) / Real(x.cols);
  }
  std::vector<Normalised> result(x.cols);
  for (std::int64_t i = 0; i < x.cols; ++i) {
    const Real largest = std::max({std::fabs(g(i)), has_mean ? size : 0, std::fabs(h(i)) * product_size});
    const Real added   = dsum != nullptr ? (*dsum)[i] : 0;
    result[i]          = {row.rstd * (g(i) - (has_mean ? sum : 0) - h(i) * products) + added,
                          std::max(std::fabs(row.rstd) * largest, std::fabs(added))};
  }
  return result;
}

/// A sum of terms and of their sizes, compensated, so that it has more digits than a double's double-double results
/// are asked for (Neumaier).
class TermSum {
 public:
  void add(Real term) {
    const Real sum = m_sum + term;
    m_rest += std::fabs(m_sum) >= std::fabs(term) ? (m_sum - sum) + term : (term - sum) + m_sum;
    m_sum = sum;
    m_size += std::fabs(term);
  }
  /// Next to an infinite sum the rest is NaN.
  Real sum() const { return std::isfinite(m_sum) ? m_sum + m_rest : m_sum; }
  Real size() const { return m_size; }

 private:
  Real m_sum  = 0;
  Real m_rest = 0;
  Real m_size = 0;
};

}  // namespace KokkosNNTest::Reference

#endif  // KOKKOSNN_TEST_REFERENCE_NORM_HPP
