// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_SEGMENTED_LAUNCH_HPP
#define KOKKOSNN_IMPL_SEGMENTED_LAUNCH_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/device_traits.hpp>
#include <KokkosNN/impl/kernels/first_index.hpp>
#include <KokkosNN/impl/kernels/segmented.hpp>
#include <KokkosNN/impl/kernels/segmented_rows.hpp>
#include <KokkosNN/impl/launch.hpp>
#include <KokkosNN/impl/segmented_plan.hpp>
#include <KokkosNN/impl/workspace.hpp>
#include <KokkosNN/options.hpp>
#include <KokkosNN/plan.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstdint>

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

/// The three kernels of an Operation, the last two only where there may be long rows.
template <class ExecutionSpace, class Operation>
void launch_segmented(const ExecutionSpace& exec, const SegmentedPlan& plan, const Operation& op,
                      const RowOffsets& offsets) {
  using State     = typename Operation::State;
  using Workspace = SegmentedWorkspace<State>;
  constexpr int resident =
      std::max(segment_teams_resident(sizeof(typename Operation::A)), least_residency(backend_of<ExecutionSpace>()));
  using Bounds             = Kokkos::LaunchBounds<segment_team_size, resident>;
  const std::int64_t count = plan.chunks.count;
  const int scratch_bytes  = static_cast<int>(plan.scratch_bytes);
  Workspace workspace{};
  if (count > 1) {
    const auto memory = WorkspacePool<ExecutionSpace, WorkspaceUse::states>::get(exec, Workspace::bytes(count));
    workspace         = Workspace::in(memory.data(), count);
  }
  launch<Bounds>(
      exec, to_string(plan, "chunks"), {count, plan.team_size, plan.scratch_level, plan.scratch_bytes},
      ChunkRows<Operation>{op, offsets, plan.chunks, workspace, plan.scratch_level, scratch_bytes, plan.scratch});
  if (!plan.has_long_rows) return;

  const int lanes              = device_traits(exec).lanes;
  const std::size_t join_bytes = JoinLongRows<Operation>::scratch(plan.team_size, lanes);
  launch<Bounds>(exec, to_string(plan, "join"),
                 {(count + chunks_per_join - 1) / chunks_per_join, plan.team_size, 0, join_bytes},
                 JoinLongRows<Operation>{op, plan.chunks, workspace, 0, static_cast<int>(join_bytes)});
  if constexpr (!Operation::one_value_a_row) {
    launch<Bounds>(exec, to_string(plan, "long_rows"),
                   {(count + plan.chunks_per_writer - 1) / plan.chunks_per_writer, plan.team_size, 0, 0},
                   WriteLongRows<Operation>{op, plan.chunks, workspace, plan.chunks_per_writer});
  }
}

template <class ExecutionSpace, class Operation>
SegmentedPlan plan_segmented(const ExecutionSpace& exec, RowOperator op, ElementType type,
                             const SegmentedArguments& arguments) {
  SegmentedProblem problem;
  problem.op                = op;
  problem.type              = type;
  problem.tensors           = Operation::tensors;
  problem.accumulator_bytes = sizeof(typename Operation::A);
  problem.state_bytes       = sizeof(typename Operation::State);
  problem.elements          = arguments.elements;
  problem.rows              = arguments.rows;
  return make_segmented_plan(problem, device_traits(exec));
}

/// softmax, log_softmax or logsumexp of ragged rows of X.
template <class ExecutionSpace, RowOperator op, class X, class Y>
struct SegmentedCall {
  static_assert(!is_gradient(op));
  using Math      = RowMath<common_accumulator_t<X, Y>, exp_accuracy_for<Y>>;
  using Operation = SegmentedForward<op, Math, X, Y, backend_of<ExecutionSpace>()>;

  /// Not inline, as ViewCall's.
  static void run(const ExecutionSpace& exec, const SegmentedArguments& arguments);
};

template <class ExecutionSpace, RowOperator op, class X, class Y>
void SegmentedCall<ExecutionSpace, op, X, Y>::run(const ExecutionSpace& exec, const SegmentedArguments& arguments) {
  const Operation operation{Math(arguments.scale, arguments.masked_row),
                            SegmentedArguments::values<const X>(arguments.tensors.x),
                            SegmentedArguments::values<Y>(arguments.tensors.y)};
  const SegmentedPlan plan = plan_segmented<ExecutionSpace, Operation>(exec, op, element_type<X>(), arguments);
  launch_segmented(exec, plan, operation, arguments.offsets);
}

/// softmax_backward or log_softmax_backward of ragged rows of T.
template <class ExecutionSpace, RowOperator op, class T>
struct SegmentedGradientCall {
  static_assert(row_tensors(op) == 2);
  using Math      = GradientMath<op, accumulator_t<T>, exp_accuracy_for<T>>;
  using Operation = SegmentedBackward<op, Math, T, backend_of<ExecutionSpace>()>;

  /// Not inline, as ViewCall's.
  static void run(const ExecutionSpace& exec, const SegmentedArguments& arguments);
};

template <class ExecutionSpace, RowOperator op, class T>
void SegmentedGradientCall<ExecutionSpace, op, T>::run(const ExecutionSpace& exec,
                                                       const SegmentedArguments& arguments) {
  const Operation operation{
      Math(arguments.scale, arguments.masked_row), SegmentedArguments::values<const T>(arguments.tensors.x),
      SegmentedArguments::values<const T>(arguments.tensors.dy), SegmentedArguments::values<T>(arguments.tensors.y)};
  const SegmentedPlan plan = plan_segmented<ExecutionSpace, Operation>(exec, op, element_type<T>(), arguments);
  launch_segmented(exec, plan, operation, arguments.offsets);
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
  raise_bad_offsets(function, bad, host(0), host(1), elements);
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_SEGMENTED_LAUNCH_HPP
