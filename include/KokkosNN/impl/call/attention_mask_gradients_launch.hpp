// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_ATTENTION_MASK_GRADIENTS_LAUNCH_HPP
#define KOKKOSNN_IMPL_CALL_ATTENTION_MASK_GRADIENTS_LAUNCH_HPP

#include <KokkosNN/impl/call/cpu_levels.hpp>
#include <KokkosNN/impl/call/attention_launch.hpp>
#include <KokkosNN/impl/call/attention_mask_gradients_layout.hpp>
#include <KokkosNN/impl/call/items_launch.hpp>
#include <KokkosNN/impl/call/workspace.hpp>
#include <KokkosNN/impl/gpu/attention_mask_gradients.hpp>

#include <cstddef>
#include <cstdint>

// Gradients of attention by a bias and by sinks on their way to a launch.

namespace KokkosNN::Impl {

template <class ExecutionSpace, class X>
struct Launcher<AttentionMaskGradientCall<ExecutionSpace, X>> {
  using A = accumulator_t<X>;

  static void run(const ExecutionSpace& exec, const AttentionMaskGradientArguments& call) {
    using Parts                 = AttentionSinkSums<X, true>;
    const auto& layout          = call.layout;
    const AttentionShape& shape = layout.gradient.forward.shape;
    const std::int64_t parts    = layout.of_sinks ? shape.heads * Parts::parts : 0;
    const WorkspaceLease<ExecutionSpace, WorkspaceUse::sums> workspace(
        exec, static_cast<std::size_t>(shape.all_rows() + parts) * sizeof(A));
    AttentionGradientData<X> data = Launcher<AttentionGradientCall<ExecutionSpace, X>>::data_of(
        {call.function, call.tensors, layout.gradient, call.options});
    data.delta = reinterpret_cast<A*>(workspace.data());
    if (!layout.of_sinks) data.sinks = {};
    const auto launch = [&](const char* name, const auto& step) {
      launch_items<X>(exec, call.function, call.tensors.forward.o, name, step);
    };
    const TypedOutput<X> result{const_cast<void*>(call.result.data), call.result.type == ElementType::f32};
    launch("[rows]", AttentionRowTerms<X>{data});
    if (layout.of_sinks) {
      A* const sums = data.delta + shape.all_rows();
      launch("[parts]", Parts{data, sums, result, layout.dsink_stride});
      launch("[heads]", AttentionSinkSums<X, false>{data, sums, result, layout.dsink_stride});
    } else {
      launch("[bias]", AttentionBiasSums<X>{data, result, layout.dbias, layout.kept});
    }
  }
};

template <class ExecutionSpace, class X>
void AttentionMaskGradientCall<ExecutionSpace, X>::run(const ExecutionSpace& exec,
                                                       const AttentionMaskGradientArguments& call) {
  run_compiled<AttentionMaskGradientCall>(exec, call);
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_ATTENTION_MASK_GRADIENTS_LAUNCH_HPP
