// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_SEGMENTED_LAUNCH_HPP
#define KOKKOSNN_IMPL_SEGMENTED_LAUNCH_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/device_traits.hpp>
#include <KokkosNN/impl/kernels/first_index.hpp>
#include <KokkosNN/impl/kernels/segmented_gpu.hpp>
#include <KokkosNN/impl/kernels/segmented_host.hpp>
#include <KokkosNN/impl/kernels/segmented_rows.hpp>
#include <KokkosNN/impl/launch.hpp>
#include <KokkosNN/impl/segmented_plan.hpp>
#include <KokkosNN/impl/workspace.hpp>
#include <KokkosNN/options.hpp>
#include <KokkosNN/plan.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

// From a checked call on ragged rows to its launches.

namespace KokkosNN::Impl {

/// A checked call: Views as pointers and strides.
struct SegmentedArguments {
  SegmentedTensors tensors;
  RowOffsets offsets;
  std::int64_t elements      = 0;
  std::int64_t rows          = 0;
  double scale               = 1;
  MaskedRowPolicy masked_row = MaskedRowPolicy::nan;

  template <class T>
  static Values<T> values(const Tensor& t) {
    return {static_cast<T*>(const_cast<void*>(t.data)), t.rank == 0 || t.extent[0] == 1 ? 1 : t.stride[0]};
  }
};

/// The three kernels of an Operation on a host, the last two only where there may be long rows.
template <class ExecutionSpace, class Operation>
void launch_segmented_on_host(const ExecutionSpace& exec, const SegmentedPlan& plan, const Operation& op,
                              const RowOffsets& offsets) {
  using Workspace          = SegmentedWorkspace<typename Operation::State>;
  using Bounds             = Kokkos::LaunchBounds<>;
  const std::int64_t count = plan.chunks.count;
  Workspace workspace{};
  if (count > 1) {
    const auto memory = WorkspacePool<ExecutionSpace, WorkspaceUse::states>::get(exec, Workspace::bytes(count));
    workspace         = Workspace::in(memory.data(), count);
  }
  launch<Bounds>(exec, to_string(plan, "chunks", plan.team_size),
                 {count, plan.team_size, plan.scratch_level, plan.scratch_bytes},
                 ChunkRows<Operation>{op, offsets, plan.chunks, workspace, plan.scratch_level,
                                      static_cast<int>(plan.scratch_bytes)});
  if (!plan.has_long_rows) return;
  const Teams teams{count, plan.team_size, 0, 0};
  launch<Bounds>(exec, to_string(plan, "join", plan.team_size), teams,
                 JoinLongRows<Operation>{op, plan.chunks, workspace});
  if constexpr (!Operation::one_value_a_row) {
    launch<Bounds>(exec, to_string(plan, "long_rows", plan.team_size), teams,
                   WriteLongRows<Operation>{op, plan.chunks, workspace});
  }
}

/// What a team of so many rows asks for.
inline RowsAhead rows_ahead(const SegmentedPlan& plan, int rows_of_team) {
  if (plan.rows_ahead == 0) return {};
  return {plan.rows_ahead, plan.rows_ahead * plan.mean, static_cast<int>(rows_of_team * plan.mean)};
}

/// The first kernel on a GPU.
template <int at_once, class ExecutionSpace, class Operation>
void launch_short_rows(const ExecutionSpace& exec, const SegmentedPlan& plan, const Operation& op,
                       const RowOffsets& offsets, const LongRowList<typename Operation::State>& list) {
  constexpr int row_lanes = segment_row_lanes(Operation::max_packs);
  constexpr int low_lanes = Operation::has_neighbours ? segment_low_lanes(Operation::max_packs) : row_lanes;
  const auto launch_teams = [&]<int size, int resident>(std::integral_constant<int, size>,
                                                        std::integral_constant<int, resident>, std::int64_t teams,
                                                        const auto& kernel) {
    launch<Kokkos::LaunchBounds<size, resident>>(exec, to_string(plan, "rows", size), {teams, size, 0, 0}, kernel);
  };
  const auto launch_lanes = [&]<int lanes>(std::integral_constant<int, lanes>) {
    using Kernel = ShortRows<Operation, lanes>;
    const std::int64_t teams = (plan.chunks.rows + Kernel::rows_of_team() - 1) / Kernel::rows_of_team();
    launch_teams(std::integral_constant<int, segment_team_size>{}, std::integral_constant<int, at_once>{},
                 std::min<std::int64_t>(teams, INT_MAX),
                 Kernel{op, offsets, plan.chunks.elements, plan.chunks.rows, list,
                        Operation::has_neighbours ? rows_ahead(plan, Kernel::rows_of_team()) : RowsAhead{}});
  };
  if constexpr (Operation::takes_flat) {
    if (plan.has_flat_mean) {
      const ShortRows<Operation, row_lanes> by_row{op, offsets, plan.chunks.elements, plan.chunks.rows, list};
      return launch_teams(std::integral_constant<int, flat_team_size>{},
                          std::integral_constant<int, flat_teams_resident>{}, plan.flat_teams,
                          FlatRows<Operation, row_lanes>{by_row, plan.rows_of_warp, LinePolicy(plan.eviction)});
    }
  }
  if (plan.has_low_mean) {
    launch_lanes(std::integral_constant<int, low_lanes>{});
  } else {
    launch_lanes(std::integral_constant<int, row_lanes>{});
  }
}

/// All three.
template <class ExecutionSpace, class Operation>
void launch_segmented_on_gpu(const ExecutionSpace& exec, const SegmentedPlan& plan, const Operation& op,
                             const RowOffsets& offsets) {
  using State         = typename Operation::State;
  using List          = LongRowList<State>;
  constexpr int least = least_residency(backend_of<ExecutionSpace>());
  // On HIP as many for all kernels: what a fifth team would leave of the registers spills.
  constexpr int at_once_short = least > 1 ? least : segment_teams_resident(sizeof(typename Operation::A), true);
  constexpr int at_once_long  = least > 1 ? least : segment_teams_resident(sizeof(typename Operation::A), false);
  List list{};
  if (plan.has_long_rows) {
    const std::int64_t capacity = List::capacity_for(plan.chunks.elements, plan.warp_elements);
    const auto counter = WorkspacePool<ExecutionSpace, WorkspaceUse::mailboxes>::get(exec, sizeof(std::int64_t));
    const auto memory  = WorkspacePool<ExecutionSpace, WorkspaceUse::states>::get(exec, List::bytes(capacity));
    list               = List::in(reinterpret_cast<std::int64_t*>(counter.data()), memory.data(), capacity);
  }
  launch_short_rows<at_once_short>(exec, plan, op, offsets, list);
  if (!plan.has_long_rows) return;
  using Bounds               = Kokkos::LaunchBounds<segment_team_size, at_once_long>;
  const std::int64_t at_once = std::int64_t(device_traits(exec).multiprocessors) * at_once_long;
  const Teams resident{std::min(at_once, list.capacity), plan.team_size, 0, 0};
  launch<Bounds>(exec, to_string(plan, "long_rows", plan.team_size), resident, LongRows<Operation>{op, list});
  launch<Bounds>(exec, to_string(plan, "long_parts", plan.team_size), resident, LongParts<Operation>{op, list});
}

template <class ExecutionSpace, class Operation>
void launch_segmented(const ExecutionSpace& exec, const SegmentedPlan& plan, const Operation& op,
                      const RowOffsets& offsets) {
  if constexpr (backend_of<ExecutionSpace>() == Backend::host) {
    launch_segmented_on_host(exec, plan, op, offsets);
  } else {
    launch_segmented_on_gpu(exec, plan, op, offsets);
  }
}

template <class ExecutionSpace, class Operation>
void run_segmented(const ExecutionSpace& exec, RowOperator op, ElementType type, const Operation& operation,
                   const SegmentedArguments& arguments) {
  SegmentedProblem problem;
  problem.op                = op;
  problem.type              = type;
  problem.element_bytes     = arguments.tensors.x.element_bytes;
  problem.tensors           = Operation::tensors;
  problem.accumulator_bytes = sizeof(typename Operation::A);
  problem.elements          = arguments.elements;
  problem.rows              = arguments.rows;
  launch_segmented(exec, make_segmented_plan(problem, device_traits(exec)), operation, arguments.offsets);
}

/// f(whether all of these strides are 1, of row offsets too), which matters to a GPU only.
template <class ExecutionSpace, class F>
void with_neighbours(std::initializer_list<std::int64_t> strides, const F& f) {
  if constexpr (backend_of<ExecutionSpace>() != Backend::host) {
    if (std::all_of(strides.begin(), strides.end(), [](std::int64_t stride) { return stride == 1; })) {
      return f(std::true_type{});
    }
  }
  f(std::false_type{});
}

/// softmax, log_softmax or logsumexp of ragged rows of X.
template <class ExecutionSpace, RowOperator op, class X, class Y>
struct SegmentedCall {
  static_assert(!is_gradient(op));
  using Math = RowMath<common_accumulator_t<X, Y>, exp_accuracy_for<Y>>;
  template <bool are_neighbours>
  using Operation = SegmentedForward<op, Math, X, Y, backend_of<ExecutionSpace>(), are_neighbours>;

  /// Not inline, as ViewCall's.
  static void run(const ExecutionSpace& exec, const SegmentedArguments& arguments);
};

template <class ExecutionSpace, RowOperator op, class X, class Y>
void SegmentedCall<ExecutionSpace, op, X, Y>::run(const ExecutionSpace& exec, const SegmentedArguments& arguments) {
  const Math math(arguments.scale, arguments.masked_row);
  const auto x = SegmentedArguments::values<const X>(arguments.tensors.x);
  const auto y = SegmentedArguments::values<Y>(arguments.tensors.y);
  with_neighbours<ExecutionSpace>(
      {x.stride, op == RowOperator::logsumexp ? 1 : y.stride, arguments.offsets.stride}, [&](auto are_neighbours) {
        run_segmented(exec, op, element_type<X>(), Operation<are_neighbours.value>{math, x, y}, arguments);
      });
}

/// softmax_backward or log_softmax_backward of ragged rows of T.
template <class ExecutionSpace, RowOperator op, class T>
struct SegmentedGradientCall {
  static_assert(row_tensors(op) == 2);
  using Math = GradientMath<op, accumulator_t<T>, exp_accuracy_for<T>>;
  template <bool are_neighbours>
  using Operation = SegmentedBackward<op, Math, T, backend_of<ExecutionSpace>(), are_neighbours>;

  /// Not inline, as ViewCall's.
  static void run(const ExecutionSpace& exec, const SegmentedArguments& arguments);
};

template <class ExecutionSpace, RowOperator op, class T>
void SegmentedGradientCall<ExecutionSpace, op, T>::run(const ExecutionSpace& exec,
                                                       const SegmentedArguments& arguments) {
  const Math math(arguments.scale, arguments.masked_row);
  const auto y  = SegmentedArguments::values<const T>(arguments.tensors.x);
  const auto dy = SegmentedArguments::values<const T>(arguments.tensors.dy);
  const auto dx = SegmentedArguments::values<T>(arguments.tensors.y);
  with_neighbours<ExecutionSpace>({y.stride, dy.stride, dx.stride, arguments.offsets.stride}, [&](auto are_neighbours) {
    run_segmented(exec, op, element_type<T>(), Operation<are_neighbours.value>{math, y, dy, dx}, arguments);
  });
}

/// Looks at all offsets, and waits: throws std::invalid_argument for the first row that begins after its end or leaves
/// the values.
template <class ExecutionSpace>
struct OffsetsCheck {
  static void run(const ExecutionSpace& exec, const char* function, const RowOffsets& offsets, std::int64_t rows,
                  std::int64_t elements);
};

template <class ExecutionSpace>
void OffsetsCheck<ExecutionSpace>::run(const ExecutionSpace& exec, const char* function, const RowOffsets& offsets,
                                       std::int64_t rows, std::int64_t elements) {
  using Range            = Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>;
  const std::int64_t bad = first_index(
      exec, "KokkosNN::check_row_offsets", rows, KOKKOS_LAMBDA(const std::int64_t row) {
        const std::int64_t begin = offsets[row];
        const std::int64_t end   = offsets[row + 1];
        return begin < 0 || begin > end || end > elements;
      });
  if (bad >= rows) return;
  const Kokkos::View<std::int64_t[2], ExecutionSpace> found("KokkosNN::row_offsets");
  Kokkos::parallel_for(
      "KokkosNN::check_row_offsets", Range(exec, 0, 2),
      KOKKOS_LAMBDA(const std::int64_t i) { found(i) = offsets[bad + i]; });
  exec.fence("KokkosNN::check_row_offsets");
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), found);
  raise_bad_offsets(function, bad, decimal(host(0), offsets.is_signed), decimal(host(1), offsets.is_signed), elements);
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_SEGMENTED_LAUNCH_HPP
