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

/// A result, the larger one of its terms, the larger element of its pair, and how far the result may be from itself:
/// an angle is known to the last bits of a long double, which near a cosine of 0 are more than a double's.
struct Rotated {
  Real value;
  Real term;
  Real element;
  Real uncertainty;
};

/// cos a - sin b; `angle`: the size of the one in radians, 0 of exact tables.
inline Rotated rotated(Real a, Real b, Real cos, Real sin, Real angle = 0) {
  const Real first = a * cos, second = b * sin, element = std::max(std::fabs(a), std::fabs(b));
  return {first - second, std::max(std::fabs(first), std::fabs(second)), element,
          std::isfinite(element) ? std::fabs(angle) * 0x1p-62L * element : Real(0)};
}

/// Radians of column i at a position, good to the last bits of a long double.
inline Real angle_of(const KokkosNN::RopeOptions& options, std::int64_t rotary_dims, std::int64_t i,
                     std::int64_t position) {
  const Real frequency = std::pow(Real(options.theta), -2 * Real(i) / Real(rotary_dims));
  return Real(position) * Real(options.position_scale) * frequency;
}

}  // namespace KokkosNNTest::Reference

#endif  // KOKKOSNN_TEST_REFERENCE_ROPE_HPP
