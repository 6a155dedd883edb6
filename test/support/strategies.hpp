// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_TEST_SUPPORT_STRATEGIES_HPP
#define KOKKOSNN_TEST_SUPPORT_STRATEGIES_HPP

#include "check.hpp"

#include <KokkosNN/impl/compiled_kernels.hpp>
#include <KokkosNN/impl/traits.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace KokkosNNTest {

/// Those of `candidates` that there are here: teams share rows on a GPU alone.
inline std::vector<RowStrategy> strategies_here(std::vector<RowStrategy> candidates) {
  if (!on_gpu) std::erase(candidates, RowStrategy::split_row);
  return candidates;
}

inline const std::vector<RowStrategy> all_strategies =
    strategies_here({RowStrategy::vector_lanes, RowStrategy::team_scratch, RowStrategy::team_registers,
                     RowStrategy::team_online, RowStrategy::split_row, RowStrategy::inner_lanes});

/// The strategy of rows that several teams share, or a host's threads.
inline constexpr RowStrategy shared_rows = on_gpu ? RowStrategy::split_row : RowStrategy::team_online;

#define SKIP_WHERE_TEAMS_SHARE_NO_ROWS() \
  if (!on_gpu) GTEST_SKIP() << "a host's threads share a row as one team"

/// Those of `candidates` that an operator has kernels of for floats: on a GPU few have any of team_scratch, and those
/// that teams hold or share none of team_online.
inline std::vector<RowStrategy> strategies_with_kernels(RowOperator op, std::vector<RowStrategy> candidates) {
  constexpr KokkosNN::RowForm strided = KokkosNN::RowForm::strided;
  constexpr auto backend              = KokkosNN::Impl::backend_of<Exec>();
  const KokkosNN::Impl::KernelTypes floats{backend, op, KokkosNN::Impl::pack_size(backend, 4, 4, 4), 4, 4, 4};
  if (!KokkosNN::Impl::has_scratch_kernel(backend, op, strided)) std::erase(candidates, RowStrategy::team_scratch);
  if (!KokkosNN::Impl::has_online_kernel(floats, strided)) std::erase(candidates, RowStrategy::team_online);
  return strategies_here(candidates);
}

inline SoftmaxOptions forced(RowStrategy strategy, SoftmaxOptions options = {}) {
  options.plan.strategy = strategy;
  return options;
}

/// A trial of `rows` rows that the strategy can be forced on, if only `cols` is small enough: rank 3 and the middle
/// axis, with an inner axis of 1 for those that need contiguous rows and of `inner` for inner_lanes.
template <RowOperator Op, class X, class Y = X>
using StrategyTrial = Trial<Op, X, Y, 3>;

inline constexpr int strategy_axis = 1;

inline Placement strategy_place(RowStrategy strategy, std::int64_t rows, std::int64_t cols, std::int64_t inner = 5) {
  if (strategy == RowStrategy::inner_lanes) return right({(rows + inner - 1) / inner, cols, inner});
  return right({rows, cols, 1});
}

template <RowOperator Op, class X, class Y = X>
StrategyTrial<Op, X, Y> strategy_trial(RowStrategy strategy, std::int64_t rows, std::int64_t cols,
                                       Recipe recipe = Recipe::uniform) {
  const Placement x = strategy_place(strategy, rows, cols);
  const Placement y = Op == RowOperator::logsumexp ? right(x.without(strategy_axis).extents) : x;
  return {x, y, strategy_axis, recipe};
}

/// Rows so many that short ones of one piece of memory go through team scratch on an NVIDIA GPU; few on a host.
template <class T>
std::int64_t many_short_rows(std::int64_t cols) {
  const int multiprocessors = KokkosNN::device_traits(Exec()).multiprocessors;
  return (sizeof(T) == 2 ? 2 : 8) * cols * std::int64_t(sizeof(T)) * multiprocessors + 61;
}

/// True if short rows, of up to `most_bytes`, go through team scratch here.
template <class T>
bool go_through_scratch(std::int64_t cols, std::int64_t most_bytes = 240) {
  const std::int64_t bytes = cols * std::int64_t(sizeof(T));
  return KokkosNN::device_traits(Exec()).backend == KokkosNN::Backend::cuda && bytes % 16 != 0 && bytes <= most_bytes;
}

/// True if the strategy can be forced on `rows` x `cols`.
template <RowOperator Op, class X, class Y = X>
bool can_serve(RowStrategy strategy, std::int64_t rows, std::int64_t cols) {
  const Placement x = strategy_place(strategy, rows, cols);
  const Placement y = Op == RowOperator::logsumexp ? right(x.without(strategy_axis).extents) : x;
  // The planner looks at no element: any aligned addresses will do.
  X* const x_data        = reinterpret_cast<X*>(std::uintptr_t(1) << 20);
  Y* const y_data        = reinterpret_cast<Y*>(std::uintptr_t(1) << 40);
  SoftmaxOptions options = forced(strategy);
  options.axis           = strategy_axis;
  try {
    KokkosNN::make_plan(Op, Exec(), strided_view<3>(static_cast<const X*>(x_data), x),
                        strided_view<StrategyTrial<Op, X, Y>::y_rank>(y_data, y), options);
    return true;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

/// Those of `candidates` that the strategy can serve.
template <RowOperator Op, class X, class Y = X>
std::vector<std::int64_t> servable_widths(RowStrategy strategy, std::int64_t rows,
                                          const std::vector<std::int64_t>& candidates) {
  std::vector<std::int64_t> widths;
  for (const std::int64_t cols : candidates) {
    if (can_serve<Op, X, Y>(strategy, rows, cols)) widths.push_back(cols);
  }
  return widths;
}

}  // namespace KokkosNNTest

#endif  // KOKKOSNN_TEST_SUPPORT_STRATEGIES_HPP
