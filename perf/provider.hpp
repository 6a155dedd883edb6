// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
/// Who is measured: a provider turns a problem into something that can be called again and again.
#ifndef KOKKOSNN_PERF_PROVIDER_HPP
#define KOKKOSNN_PERF_PROVIDER_HPP

#include "problem.hpp"

#include <KokkosNN/options.hpp>

#include <functional>
#include <string>

namespace KokkosNN::Perf {

/// One provider, ready to run on one problem; it keeps alive what the call needs.
struct Contender {
  std::function<void()> call;  ///< enqueues the work on the problem's instance; leaves the result in its y
  std::string plan;            ///< how it runs, for the report
  bool computes = true;        ///< y is to be checked; false for the yardstick
  double slack  = 1;           ///< factor of the check's tolerance
};

/// The yardstick: a copy that reads half of the bytes that the operator must move and writes the other half.
Contender make_copy(const Problem& problem);

/// Softmax without a fused kernel: max, subtract, exp, sum, divide; 8 M N + 4 M elements moved.
Contender make_five_pass(const Problem& problem);
bool five_pass_serves(const Case& shape);

/// cuDNN's softmax and log-softmax; only there where CMake found cuDNN (KOKKOSNN_HAVE_CUDNN).
Contender make_cudnn(const Problem& problem);
bool cudnn_serves(const Case& shape);

/// oneDNN's softmax and log-softmax and their gradients; only there where CMake found oneDNN (KOKKOSNN_HAVE_ONEDNN).
Contender make_onednn(const Problem& problem);
bool onednn_serves(const Case& shape);

/// KokkosNN with the planner's own plan (`automatic`) or a forced strategy.
///
/// \throws std::invalid_argument where the strategy can't serve
Contender make_kokkosnn(const Problem& problem, RowStrategy strategy);

/// KokkosNN on ragged rows, where there are no strategies to force; make_kokkosnn calls it.
Contender make_segmented(const Problem& problem, RowStrategy strategy);

/// An elementwise operator, which knows no strategies either; make_kokkosnn calls it.
Contender make_elementwise(const Problem& problem, RowStrategy strategy);

/// KokkosNN's norms; the backward sums the gradients of weight and bias, too. make_kokkosnn calls it.
Contender make_norm(const Problem& problem, RowStrategy strategy);

/// KokkosNN's rotary embedding, which has no strategies either; make_kokkosnn calls it.
Contender make_rope(const Problem& problem);

}  // namespace KokkosNN::Perf

#endif  // KOKKOSNN_PERF_PROVIDER_HPP
