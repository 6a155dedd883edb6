// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_TEST_REFERENCE_ROPE_HPP
#define KOKKOSNN_TEST_REFERENCE_ROPE_HPP

#include "softmax.hpp"

#include <KokkosNN/options.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>

// The rotary embedding of a pair, in long double.

namespace KokkosNNTest::Reference {

/// Numbers of the elements of pair i in a row.
struct PairOf {
  std::int64_t first;
  std::int64_t second;
};
inline PairOf pair_of(KokkosNN::RopeForm form, std::int64_t rotary_dims, std::int64_t i) {
  if (form == KokkosNN::RopeForm::interleaved) return {2 * i, 2 * i + 1};
  return {i, i + rotary_dims / 2};
}

/// A result, the larger one of its terms, and the larger element of its pair.
struct Rotated {
  Real value;
  Real term;
  Real element;
};

/// cos a - sin b
inline Rotated rotated(Real a, Real b, Real cos, Real sin) {
  const Real first = a * cos, second = b * sin;
  return {first - second, std::max(std::fabs(first), std::fabs(second)), std::max(std::fabs(a), std::fabs(b))};
}

/// Radians of column i at a position, good to the last bits of a long double.
inline Real angle_of(const KokkosNN::RopeOptions& options, std::int64_t rotary_dims, std::int64_t i,
                     std::int64_t position) {
  const Real frequency = std::pow(Real(options.theta), -2 * Real(i) / Real(rotary_dims));
  return Real(position) * Real(options.position_scale) * frequency;
}

}  // namespace KokkosNNTest::Reference

#endif  // KOKKOSNN_TEST_REFERENCE_ROPE_HPP
