// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_SRC_AXES_HPP
#define KOKKOSNN_SRC_AXES_HPP

#include "fixed_vector.hpp"

#include <KokkosNN/impl/call/layout.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>

// The axes that several tensors have in common: their order, and axes that are one in all tensors.

namespace KokkosNN::Impl {

/// An axis of several tensors.
template <int tensors>
struct Axis {
  std::int64_t extent;
  std::int64_t stride[tensors] = {};  ///< 0 for tensors that there are not
  int number                   = 0;   ///< of the tensors' axis

  std::int64_t reach() const {
    std::int64_t farthest = 0;
    for (const std::int64_t s : stride) farthest = std::max<std::int64_t>(farthest, std::llabs(s));
    return farthest;
  }
  /// True if the two are one axis in all tensors, `inner` running faster.
  bool continues_in(const Axis& inner) const {
    return std::equal(std::begin(stride), std::end(stride), std::begin(inner.stride),
                      [&](std::int64_t outer, std::int64_t s) { return outer == s * inner.extent; });
  }
};

template <int tensors>
using Axes = FixedVector<Axis<tensors>, max_rank>;

/// Sorts axes, slowest first: rows are numbered in this order.
template <int tensors>
Axes<tensors> sorted(Axes<tensors> axes) {
  sort_few(axes.begin(), axes.end(), [](const auto& a, const auto& b) { return a.reach() > b.reach(); });
  return axes;
}

/// Neighbours merged where all tensors allow.
template <int tensors>
Axes<tensors> merged(const Axes<tensors>& axes) {
  Axes<tensors> merged;
  for (Axis<tensors> axis : axes) {
    if (!merged.empty() && merged.back().continues_in(axis)) {
      axis.extent *= merged.back().extent;
      merged.back() = axis;
    } else {
      merged.push_back(axis);
    }
  }
  return merged;
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_SRC_AXES_HPP
