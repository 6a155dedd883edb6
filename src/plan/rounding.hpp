// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_SRC_PLAN_ROUNDING_HPP
#define KOKKOSNN_SRC_PLAN_ROUNDING_HPP

#include <algorithm>
#include <cstdint>

namespace KokkosNN::Impl {

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// The smallest multiple of b that is at least a, and at least b.
constexpr std::int64_t round_up(std::int64_t a, std::int64_t b) {
  return std::max<std::int64_t>(1, ceil_div(a, b)) * b;
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_SRC_PLAN_ROUNDING_HPP
