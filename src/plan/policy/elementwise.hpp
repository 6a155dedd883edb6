// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_SRC_PLAN_POLICY_ELEMENTWISE_HPP
#define KOKKOSNN_SRC_PLAN_POLICY_ELEMENTWISE_HPP

#include <cstdint>

// The numbers behind elementwise calls that kernels are not compiled with (those are in impl/elementwise_forms.hpp).

namespace KokkosNN::Impl {

struct ElementwisePolicy {
  /// Columns that a host's threads share rows by, and least elements of a thread: some microseconds of work, not
  /// measured.
  std::int64_t host_piece          = 4096;
  std::int64_t least_host_elements = 4096;
  /// Least bytes of a host's row whose results go past the caches, as the lines at its ends do not: that of rows that
  /// have lines in common with others (`HostPolicy::nontemporal_row_bytes_apart`).
  ///   64 MiB a tensor, one EPYC core, by processor time, share of a copy of the same bytes
  ///   f32  | add 1.27 | a user's a b + a 0.98 | swiglu 1.12 | swiglu_backward 1.25 | silu 0.89 | gelu 0.58
  ///   bf16 | add 1.14 | a user's a b + a 0.95 | swiglu 0.57 | swiglu_backward 0.66 | silu 0.44 | gelu 0.36
  std::int64_t nontemporal_row_bytes = 2048;
};

inline constexpr ElementwisePolicy elementwise_policy{};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_SRC_PLAN_POLICY_ELEMENTWISE_HPP
