// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_FUSED_HPP
#define KOKKOSNN_FUSED_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/layout.hpp>
#include <KokkosNN/impl/call/rows_call.hpp>
#include <KokkosNN/impl/call/verbose.hpp>
#include <KokkosNN/impl/inputs/rows.hpp>
#include <KokkosNN/impl/operators/softmax.hpp>
#include <KokkosNN/impl/traits.hpp>
#include <KokkosNN/options.hpp>
#include <KokkosNN/plan.hpp>

#include <Kokkos_Core.hpp>
#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <cstdint>

// The softmax family on functors: rows come from a user's Load and go to a user's Store, so that what stands before and
// after a softmax (a bias, a residual, a cast, a dropout) costs no trip through memory. The View functions are the same
// kernels with memory as source and output.
//
//     struct Load {                                       struct Store {
//       using value_type = float;                           using value_type = float;
//       template <int N>                                    template <int N>
//       KOKKOS_FUNCTION Pack<float, N> load(int64_t row,    KOKKOS_FUNCTION void store(const Pack<float, N>& values,
//                                           int64_t col) const;                        int64_t row, int64_t col) const;
//     };                                                  };
//
// `load` is called with a col that is a multiple of N and N <= cols - col, with N the pack of the plan or 1, from one
// thread per pack; once, or twice where the row does not stay on chip (team_online). `store` gets results in the
// accumulator type, common_accumulator_t<Load::value_type, Store::value_type>, each element once. For fused_logsumexp,
// `store(value, row)`.
// In place   Store may overwrite what Load reads at the same (row, col), provided that the plan is not split_row or
//            team_online
// or each element is written only after it was read by the same thread, which holds for elementwise functors.
// Ordering, values, accuracy (of the softmax itself) and errors as in softmax.hpp; options.axis must be -1.
//
// Three examples stand in docs/fusion.md, and in full in test/operators/test_fusion_examples.cpp:
//
// Residual   a Load that adds two matrices: y = softmax(x + residual), without the sum in memory.
// Dropout    a Store that keeps or drops each element by a counter-based random number (Philox), a function of seed,
//            row and column: packs and threads do not matter, and backward makes the same mask from the same seed.
// Quantised  a Store that writes int8: value_type stays float, so that results come in float and are rounded once.

namespace KokkosNN {
namespace Impl {

/// Checks, plans and launches a call on functors.
template <RowOperator op, class Exec, class Load, class Store>
void fused_call(const char* function, const Exec& exec, std::int64_t rows, std::int64_t cols, const Load& load,
                const Store& store, const SoftmaxOptions& options) {
  using X               = typename Load::value_type;
  using Y               = typename Store::value_type;
  using A               = common_accumulator_t<X, Y>;
  constexpr int x_bytes = sizeof(X);
  constexpr int y_bytes = op == RowOperator::logsumexp ? sizeof(X) : sizeof(Y);
  constexpr int V       = pack_size(backend_of<Exec>(), x_bytes, y_bytes, sizeof(A));
  using Params          = SoftmaxParams<A, exp_accuracy_for<Y>>;
  using Source          = FunctorRows<Load>;
  using Output          = FunctorOutput<Store, A>;

  validate_scale(function, options.scale);
  validate_extents(function, rows, cols);
  validate_fused_axis(function, options);
  if (rows == 0 || (cols == 0 && op != RowOperator::logsumexp)) return;

  RowsLayout layout;
  layout.rows          = rows;
  layout.cols          = cols;
  layout.col_stride[0] = 1;
  layout.col_stride[1] = 1;
  RowProblem problem   = problem_of(op, layout, {tensor_of_type<X>(), tensor_of_type<Y>()});
  problem.inner        = 0;  // there is no inner axis to run lanes over
  const RowPlan plan   = make_plan(problem, device_traits(exec), options);
  if (is_verbose()) {
    report_plan(function, tensor_of_type<X>(), rows, cols, plan, reason_of_plan(problem, device_traits(exec), options));
  }
  RowsCall<Exec, op, Params, Source, Output, V>{
      exec, plan, Params(options.scale, options.masked_row), Source{load}, Output{store}, rows, cols}
      .run(nullptr);
}

}  // namespace Impl

/// Softmax of rows that `load` gives, taken by `store`: the fused form of softmax.
///
/// \param exec        execution-space instance; the call is asynchronous on it
/// \param rows, cols  rows 0..rows-1 of cols elements each
/// \param load        source of logits, see the head of this file
/// \param store       output of probabilities
/// \param options     scale, masked rows, determinism
template <Concepts::ExecutionSpace Exec, Concepts::RowLoad Load, class Store>
  requires Concepts::RowStore<Store, common_accumulator_t<typename Load::value_type, typename Store::value_type>>
void fused_softmax(const Exec& exec, std::int64_t rows, std::int64_t cols, const Load& load, const Store& store,
                   const SoftmaxOptions& options = {}) {
  const Kokkos::Profiling::ScopedRegion region("KokkosNN::fused_softmax");
  Impl::fused_call<RowOperator::softmax>("fused_softmax", exec, rows, cols, load, store, options);
}

/// Log-softmax of rows that `load` gives, taken by `store`; parameters as for fused_softmax.
template <Concepts::ExecutionSpace Exec, Concepts::RowLoad Load, class Store>
  requires Concepts::RowStore<Store, common_accumulator_t<typename Load::value_type, typename Store::value_type>>
void fused_log_softmax(const Exec& exec, std::int64_t rows, std::int64_t cols, const Load& load, const Store& store,
                       const SoftmaxOptions& options = {}) {
  const Kokkos::Profiling::ScopedRegion region("KokkosNN::fused_log_softmax");
  Impl::fused_call<RowOperator::log_softmax>("fused_log_softmax", exec, rows, cols, load, store, options);
}

/// Log-sum-exp of rows that `load` gives; `store(value, row)` takes one value a row.
template <Concepts::ExecutionSpace Exec, Concepts::RowLoad Load, class Store>
  requires Concepts::ScalarRowStore<Store, common_accumulator_t<typename Load::value_type, typename Store::value_type>>
void fused_logsumexp(const Exec& exec, std::int64_t rows, std::int64_t cols, const Load& load, const Store& store,
                     const SoftmaxOptions& options = {}) {
  const Kokkos::Profiling::ScopedRegion region("KokkosNN::fused_logsumexp");
  Impl::fused_call<RowOperator::logsumexp>("fused_logsumexp", exec, rows, cols, load, store, options);
}

}  // namespace KokkosNN

#endif  // KOKKOSNN_FUSED_HPP
