// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_SEGMENTED_LAUNCH_HPP
#define KOKKOSNN_IMPL_CALL_SEGMENTED_LAUNCH_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/compiled_segmented_calls.hpp>
#include <KokkosNN/impl/call/cpu_levels.hpp>
#include <KokkosNN/impl/call/launch.hpp>
#include <KokkosNN/impl/call/segmented_plan.hpp>
#include <KokkosNN/impl/call/segmented_values.hpp>
#include <KokkosNN/impl/call/verbose.hpp>
#include <KokkosNN/impl/call/workspace.hpp>
#include <KokkosNN/impl/gpu/first_index.hpp>
#include <KokkosNN/impl/gpu/segmented.hpp>
#include <KokkosNN/impl/gpu/segmented_lse_backward.hpp>
#include <KokkosNN/impl/gpu/segmented_rows.hpp>
#include <KokkosNN/impl/host/segmented.hpp>
#include <KokkosNN/impl/traits.hpp>
#include <KokkosNN/options.hpp>
#include <KokkosNN/plan.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <array>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

// From a checked call on ragged rows to its launches.

namespace KokkosNN::Impl {

/// The three kernels of an Operation on a host, the last two only where there may be long rows.
template <class ExecutionSpace, class Operation>
void launch_segmented_on_host(const ExecutionSpace& exec, const SegmentedPlan& plan, const Operation& op,
                              const RowOffsets& offsets) {
  using Workspace          = SegmentedWorkspace<typename Operation::State>;
  using Bounds             = Kokkos::LaunchBounds<>;
  const std::int64_t count = plan.chunks.count;
  const bool has_parts     = count > 1;
  const std::size_t bytes  = has_parts ? Workspace::bytes(count, plan.heads) : 0;
  const WorkspaceLease<ExecutionSpace, WorkspaceUse::states> memory(exec, bytes);
  Workspace workspace{nullptr, nullptr, nullptr, plan.heads};
  if (has_parts) workspace = Workspace::in(memory.data(), count, plan.heads);
  launch<Bounds>(exec, to_string(plan, "chunks", plan.team_size),
                 {count, plan.team_size, plan.scratch_level, plan.scratch_bytes},
                 ChunkRows<Operation>{op, offsets, plan.chunks, workspace, plan.nontemporal_stores, plan.scratch_level,
                                      static_cast<int>(plan.scratch_bytes)});
  if (!plan.has_long_rows) return;
  const Teams teams{count, plan.team_size, 0, 0};
  launch<Bounds>(exec, to_string(plan, "join", plan.team_size), teams,
                 JoinLongRows<Operation>{op, plan.chunks, workspace});
  if constexpr (!Operation::one_value_a_row) {
    launch<Bounds>(exec, to_string(plan, "long_rows", plan.team_size), teams,
                   WriteLongRows<Operation>{op, plan.chunks, workspace, plan.nontemporal_stores});
  }
}

/// Rows ahead for a team of so many rows.
inline RowsAhead rows_ahead(const SegmentedPlan& plan, int rows_of_team) {
  if (plan.rows_ahead == 0) return {};
  return {plan.rows_ahead, plan.rows_ahead * plan.mean, static_cast<int>(rows_of_team * plan.mean)};
}

/// The first kernel on a GPU.
template <int at_once, class ExecutionSpace, class Operation, class Rows>
void launch_short_rows(const ExecutionSpace& exec, const SegmentedPlan& plan, const Operation& op, const Rows& rows,
                       const LongRowList<typename Operation::State>& list) {
  // A warp has the rows of heads that lie side by side together.
  constexpr int row_lanes = std::min(segment_row_lanes(Operation::max_packs), 32 / Rows::side_by_side);
  constexpr int low_lanes =
      Operation::known_stride != 0 ? std::min(row_lanes, segment_low_lanes(Operation::max_packs)) : row_lanes;
  const auto launch_teams = [&]<int size, int resident>(std::integral_constant<int, size>,
                                                        std::integral_constant<int, resident>, std::int64_t teams,
                                                        const auto& kernel) {
    launch<Kokkos::LaunchBounds<size, resident>>(exec, to_string(plan, "rows", size), {teams, size, 0, 0}, kernel);
  };
  const auto launch_lanes = [&]<int lanes>(std::integral_constant<int, lanes>) {
    using Kernel             = ShortRows<Operation, lanes, Rows>;
    const std::int64_t teams = (rows.count() + Kernel::rows_of_team() - 1) / Kernel::rows_of_team();
    launch_teams(
        std::integral_constant<int, segment_team_size>{}, std::integral_constant<int, at_once>{},
        std::min<std::int64_t>(teams, INT_MAX),
        Kernel{op, rows, list, Operation::known_stride != 0 ? rows_ahead(plan, Kernel::rows_of_team()) : RowsAhead{}});
  };
  if constexpr (Operation::takes_flat) {
    if (plan.has_flat_mean) {
      using Kernel = FlatRows<Operation, row_lanes, Rows>;
      return launch_teams(std::integral_constant<int, flat_team_size>{},
                          std::integral_constant<int, flat_teams_resident>{}, plan.flat_teams,
                          Kernel{{op, rows, list}, plan.rows_of_warp, LinePolicy(plan.eviction)});
    }
  }
  if (plan.has_low_mean) {
    launch_lanes(std::integral_constant<int, low_lanes>{});
  } else {
    launch_lanes(std::integral_constant<int, row_lanes>{});
  }
}

/// All three, of which the last two have their own operation: that of the first, or one for elements anywhere.
template <class ExecutionSpace, class Operation, class Rows, class LongOperation>
void launch_segmented_on_gpu(const ExecutionSpace& exec, const SegmentedPlan& plan, const Operation& op,
                             const Rows& rows, const LongOperation& long_op) {
  using State         = typename Operation::State;
  using List          = LongRowList<State>;
  constexpr int least = least_residency(backend_of<ExecutionSpace>());
  // On HIP as many for all kernels: what a fifth team would leave of the registers spills.
  constexpr int at_once_short = least > 1 ? least : segment_teams_resident(sizeof(typename Operation::A), true);
  constexpr int at_once_long  = least > 1 ? least : segment_teams_resident(sizeof(typename Operation::A), false);
  const bool has_long         = plan.has_long_rows;
  const std::int64_t capacity =
      has_long ? List::capacity_for(plan.chunks.elements * plan.heads, plan.warp_elements) : 0;
  const WorkspaceLease<ExecutionSpace, WorkspaceUse::status_words> counter(exec, has_long ? sizeof(std::int64_t) : 0);
  const WorkspaceLease<ExecutionSpace, WorkspaceUse::states> memory(exec, has_long ? List::bytes(capacity) : 0);
  List list{};
  if (has_long) list = List::in(reinterpret_cast<std::int64_t*>(counter.data()), memory.data(), capacity);
  launch_short_rows<at_once_short>(exec, plan, op, rows, list);
  if (!has_long) return;
  using Bounds               = Kokkos::LaunchBounds<segment_team_size, at_once_long>;
  const std::int64_t at_once = std::int64_t(device_traits(exec).multiprocessors) * at_once_long;
  const Teams resident{std::min(at_once, list.capacity), plan.team_size, 0, 0};
  launch<Bounds>(exec, to_string(plan, "long_rows", plan.team_size), resident, LongRows<LongOperation>{long_op, list});
  launch<Bounds>(exec, to_string(plan, "long_parts", plan.team_size), resident,
                 LongParts<LongOperation>{long_op, list});
}

/// `operation` makes the operation for elements that are so far from each other, as the compiler knows, or 0.
template <class ExecutionSpace, class MakeOperation>
void launch_segmented_on_gpu(const ExecutionSpace& exec, const SegmentedPlan& plan, const MakeOperation& operation,
                             const SegmentedArguments& arguments) {
  const Tensor& x            = arguments.tensors.x;
  const RowOffsets& offsets  = arguments.offsets;
  const std::int64_t n       = arguments.elements;
  const std::int64_t rows    = arguments.rows;
  const std::int64_t heads   = plan.heads;
  const auto neighbours      = operation(std::integral_constant<int, 1>{});
  const auto anywhere        = operation(std::integral_constant<int, 0>{});
  const auto launch_anywhere = [&](bool are_heads_inner) {
    launch_segmented_on_gpu(
        exec, plan, anywhere,
        Heads<0>{offsets, n, rows * heads, Divisor(are_heads_inner ? heads : rows), are_heads_inner}, anywhere);
  };
  switch (arrangement_of(plan.op, arguments.tensors)) {
    case HeadArrangement::one:
      return launch_segmented_on_gpu(exec, plan, neighbours, OneHead{offsets, n, rows}, neighbours);
    case HeadArrangement::apart: {
      const std::int64_t shares = (rows + plan.rows_of_warp - 1) / plan.rows_of_warp;
      const HeadsApart apart{offsets,        (heads - 1) * x.stride[1] + n, Divisor(rows), heads, n, x.stride[1],
                             Divisor(shares)};
      return launch_segmented_on_gpu(exec, plan, neighbours, apart, neighbours);
    }
    case HeadArrangement::side_by_side:
      return launch_segmented_on_gpu(exec, plan, operation(std::integral_constant<int, heads_side_by_side>{}),
                                     Heads<heads_side_by_side>{offsets, n, rows * heads, Divisor(heads), true},
                                     anywhere);
    case HeadArrangement::rows_of_heads:
      return launch_anywhere(true);
    case HeadArrangement::heads_of_rows:
      return launch_anywhere(false);
  }
}

/// Prints the line that KOKKOSNN_VERBOSE asks for, with the label of the first kernel.
inline void report_segmented(const SegmentedPlan& plan, const SegmentedArguments& arguments, const char* kernel) {
  report_call((std::string("segmented_") + to_string(plan.op)).c_str(), arguments.tensors.x,
              std::to_string(arguments.rows) + " rows in " + std::to_string(arguments.elements) + " elements, " +
                  to_string(plan, kernel, plan.team_size) +
                  (plan.has_long_rows ? ", policy: some rows may be long" : ", policy: all rows are short"));
}

template <class ExecutionSpace, class MakeOperation>
void run_segmented(const ExecutionSpace& exec, RowOperator op, ElementType type, const MakeOperation& operation,
                   const SegmentedArguments& arguments) {
  using Operation = decltype(operation(std::integral_constant<int, 0>{}));
  require_launching_thread(exec, to_string(op));
  SegmentedProblem problem;
  problem.op                = op;
  problem.type              = type;
  problem.element_bytes     = arguments.tensors.x.element_bytes;
  problem.tensors           = Operation::tensors;
  problem.accumulator_bytes = sizeof(typename Operation::A);
  problem.elements          = arguments.elements;
  problem.rows              = arguments.rows;
  problem.heads             = arguments.tensors.heads();
  const SegmentedPlan plan  = make_segmented_plan(problem, device_traits(exec));
  constexpr bool is_on_host = backend_of<ExecutionSpace>() == Backend::host;
  if (is_verbose()) report_segmented(plan, arguments, is_on_host ? "chunks" : "rows");
  if constexpr (is_on_host) {
    launch_segmented_on_host(exec, plan, operation(std::integral_constant<int, 0>{}), arguments.offsets);
  } else {
    launch_segmented_on_gpu(exec, plan, operation, arguments);
  }
}

template <class ExecutionSpace, RowOperator op, class X, class Y>
struct Launcher<SegmentedCall<ExecutionSpace, op, X, Y>> {
  using Params                     = SoftmaxParams<common_accumulator_t<X, Y>, exp_accuracy_for<Y>>;
  static constexpr Backend backend = backend_of<ExecutionSpace>();
  template <int known_stride>
  using Operation = std::conditional_t<backend == Backend::host, HostSegmentedForward<op, Params, X, Y>,
                                       SegmentedForward<op, Params, X, Y, backend, known_stride>>;

  static void run(const ExecutionSpace& exec, const SegmentedArguments& arguments) {
    const Params params(arguments.scale, arguments.masked_row);
    const auto x         = values_of<const X>(arguments.tensors.x);
    const auto y         = values_of<Y>(arguments.tensors.y);
    const auto operation = [&](auto stride) { return Operation<stride.value>{params, x, y}; };
    run_segmented(exec, op, element_type<X>(), operation, arguments);
  }
};

template <class ExecutionSpace, RowOperator op, class X, class Y>
void SegmentedCall<ExecutionSpace, op, X, Y>::run(const ExecutionSpace& exec, const SegmentedArguments& arguments) {
  run_compiled<SegmentedCall>(exec, arguments);
}

template <class ExecutionSpace, RowOperator op, class T>
struct Launcher<SegmentedGradientCall<ExecutionSpace, op, T>> {
  using Params                     = GradientParams<op, accumulator_t<T>, exp_accuracy_for<T>>;
  static constexpr Backend backend = backend_of<ExecutionSpace>();
  template <int known_stride>
  using Operation = std::conditional_t<backend == Backend::host, HostSegmentedBackward<op, Params, T>,
                                       SegmentedBackward<op, Params, T, backend, known_stride>>;

  static void run(const ExecutionSpace& exec, const SegmentedArguments& arguments) {
    const Params params(arguments.scale, arguments.masked_row);
    const auto y         = values_of<const T>(arguments.tensors.x);
    const auto dy        = values_of<const T>(arguments.tensors.dy);
    const auto dx        = values_of<T>(arguments.tensors.y);
    const auto operation = [&](auto stride) { return Operation<stride.value>{params, y, dy, dx}; };
    run_segmented(exec, op, element_type<T>(), operation, arguments);
  }
};

template <class ExecutionSpace, RowOperator op, class T>
void SegmentedGradientCall<ExecutionSpace, op, T>::run(const ExecutionSpace& exec,
                                                       const SegmentedArguments& arguments) {
  run_compiled<SegmentedGradientCall>(exec, arguments);
}

template <class ExecutionSpace, class T>
struct Launcher<SegmentedLseGradientCall<ExecutionSpace, T>> {
  using Params = GradientParams<RowOperator::logsumexp_backward, accumulator_t<T>, exp_accuracy_for<T>>;

  static void run(const ExecutionSpace& exec, const SegmentedArguments& arguments, const SegmentedLse& values) {
    using Kernel                  = SegmentedLseBackward<Params, T>;
    constexpr bool is_on_host     = backend_of<ExecutionSpace>() == Backend::host;
    constexpr int team_size       = is_on_host ? 1 : segment_team_size;
    constexpr std::int64_t share  = is_on_host ? lse_gradient_share_on_host : lse_gradient_share;
    const SegmentedTensors& given = arguments.tensors;
    const std::int64_t shares     = (arguments.elements + share - 1) / share;
    if (is_verbose()) report_call("segmented_logsumexp_backward", given.x, "elements shared evenly");
    const Kernel kernel{Params(arguments.scale, arguments.masked_row),
                        arguments.offsets,
                        arguments.rows,
                        arguments.elements,
                        share,
                        Divisor(shares),
                        values_of<const T>(given.x),
                        values_of<const T>(values.lse),
                        values_of<const T>(values.dlse),
                        values_of<T>(given.y)};
    launch<Kokkos::LaunchBounds<team_size, 1>>(exec, "KokkosNN::segmented_logsumexp_backward[elements]",
                                               {shares * given.heads(), team_size, 0, 0}, kernel);
  }
};

template <class ExecutionSpace, class T>
void SegmentedLseGradientCall<ExecutionSpace, T>::run(const ExecutionSpace& exec, const SegmentedArguments& arguments,
                                                      const SegmentedLse& values) {
  run_compiled<SegmentedLseGradientCall>(exec, arguments, values);
}

/// n of a View's integers, from number `first` on, as a message has them; waits.
template <int n, class ExecutionSpace>
std::array<std::string, n> decimals_of(const ExecutionSpace& exec, const char* label, const RowOffsets& integers,
                                       std::int64_t first) {
  const Kokkos::View<std::int64_t[n], ExecutionSpace> found(label);
  Kokkos::parallel_for(
      label, Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>(exec, 0, n),
      KOKKOS_LAMBDA(const std::int64_t i) { found(i) = integers[first + i]; });
  exec.fence(label);
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), found);
  std::array<std::string, n> texts;
  for (int i = 0; i < n; ++i) texts[std::size_t(i)] = decimal(host(i), integers.is_signed);
  return texts;
}

template <class ExecutionSpace>
void OffsetsCheck<ExecutionSpace>::run(const ExecutionSpace& exec, const char* function, const RowOffsets& offsets,
                                       std::int64_t rows, std::int64_t elements) {
  constexpr const char* label = "KokkosNN::check_row_offsets";
  const std::int64_t bad      = first_index(
      exec, label, rows, KOKKOS_LAMBDA(const std::int64_t row) {
        const std::int64_t begin = offsets[row];
        const std::int64_t end   = offsets[row + 1];
        return begin < 0 || begin > end || end > elements;
      });
  if (bad >= rows) return;
  const auto [begin, end] = decimals_of<2>(exec, label, offsets, bad);
  raise_bad_offsets(function, bad, begin, end, elements);
}

template <class ExecutionSpace>
void OffsetsCheck<ExecutionSpace>::run_index(const ExecutionSpace& exec, const char* function, const RowOffsets& index,
                                             std::int64_t rows, std::int64_t elements) {
  constexpr const char* label = "KokkosNN::check_segment_index";
  const std::int64_t bad      = first_index(
      exec, label, elements, KOKKOS_LAMBDA(const std::int64_t i) {
        const std::int64_t row = index[i];
        return row < 0 || row >= rows;
      });
  if (bad >= elements) return;
  raise_bad_segment(function, bad, decimals_of<1>(exec, label, index, bad)[0], rows);
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_SEGMENTED_LAUNCH_HPP
