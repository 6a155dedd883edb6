// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_VERBOSE_HPP
#define KOKKOSNN_IMPL_CALL_VERBOSE_HPP

#include <KokkosNN/export.hpp>
#include <KokkosNN/impl/call/layout.hpp>
#include <KokkosNN/options.hpp>
#include <KokkosNN/plan.hpp>

#include <cstdint>
#include <string>

// The line a call that KOKKOSNN_VERBOSE=1 prints on stderr, which docs/verbose.md describes.

namespace KokkosNN::Impl {

/// True if the environment has KOKKOSNN_VERBOSE, other than empty or 0; looked up once a process.
KOKKOSNN_EXPORT bool is_verbose();

/// Why make_plan with these arguments gives the plan that it gives.
KOKKOSNN_EXPORT std::string reason_of_plan(const RowProblem& problem, const DeviceTraits& traits,
                                           const SoftmaxOptions& options);

/// Prints the line of a call by a plan: `KokkosNN::softmax of f32 (8, 512, 1024): 4096 rows of 1024, KokkosNN::softmax
/// [...], policy: ...`. `x` is the tensor whose rows are read.
KOKKOSNN_EXPORT void report_plan(const char* function, const Tensor& x, std::int64_t rows, std::int64_t cols,
                                 const RowPlan& plan, const std::string& reason);

/// Prints the line of a call that runs otherwise.
KOKKOSNN_EXPORT void report_call(const char* function, const Tensor& x, const std::string& how);

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_VERBOSE_HPP
