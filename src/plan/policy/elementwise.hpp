// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_SRC_PLAN_POLICY_ELEMENTWISE_HPP
#define KOKKOSNN_SRC_PLAN_POLICY_ELEMENTWISE_HPP

#include <cstdint>

// The numbers behind elementwise calls that kernels are not compiled with (those are in impl/elementwise_forms.hpp).

namespace KokkosNN::Impl {

struct ElementwisePolicy {
  /// Columns that a host's threads share rows by, and least elements of a thread.
  std::int64_t host_piece          = 4096;
  std::int64_t least_host_elements = 4096;
  /// Least bytes of a host's row whose results go past the caches: lines at its ends do not.
  std::int64_t nontemporal_row_bytes = 2048;
};

inline constexpr ElementwisePolicy elementwise_policy{};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_SRC_PLAN_POLICY_ELEMENTWISE_HPP
