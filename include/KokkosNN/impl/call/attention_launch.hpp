// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_ATTENTION_LAUNCH_HPP
#define KOKKOSNN_IMPL_CALL_ATTENTION_LAUNCH_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/compiled_attention_calls.hpp>
#include <KokkosNN/impl/call/launch.hpp>
#include <KokkosNN/impl/call/mask_data.hpp>
#include <KokkosNN/impl/call/verbose.hpp>
#include <KokkosNN/impl/call/workspace.hpp>
#include <KokkosNN/impl/gpu/attention.hpp>
#include <KokkosNN/impl/gpu/attention_gradients.hpp>
#include <KokkosNN/impl/host/attention.hpp>
#include <KokkosNN/impl/host/attention_gradients.hpp>
#include <KokkosNN/impl/traits.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

// An attention call's way from a plan to a launch.

namespace KokkosNN::Impl {

/// Makes what kernels read and write of a call's tensors, layout and options.
template <class X>
struct AttentionDataOf {
  using A = accumulator_t<X>;

  static ScoreElements<X, A> elements_of(const AttentionArguments& call) {
    const MaskTensors& mask       = call.options.mask;
    const ScoreMaskLayout& layout = call.layout.mask;
    ScoreElements<X, A> elements;
    elements.softcap         = static_cast<A>(mask.softcap);
    elements.inverse_softcap = mask.softcap != 0 ? static_cast<A>(1 / mask.softcap) : A(0);
    elements.bias            = pointer_to<X>(mask.bias);
    elements.bias_strides    = layout.bias;
    elements.keep            = kept_bytes(mask);
    elements.keep_strides    = layout.keep;
    elements.slopes          = pointer_to<X>(mask.slopes);
    elements.slope_strides   = layout.slopes;
    elements.alibi_offset    = mask.alibi_offset;
    return elements;
  }

  static AttentionData<X> data_of(const AttentionArguments& call) {
    const AttentionTensors& tensors = call.tensors;
    const AttentionLayout& layout   = call.layout;
    const bool gives_nan            = call.options.masked_row == MaskedRowPolicy::nan;
    AttentionData<X> data;
    data.shape          = layout.shape;
    data.q              = static_cast<const X*>(tensors.q.data);
    data.k              = static_cast<const X*>(tensors.k.data);
    data.v              = static_cast<const X*>(tensors.v.data);
    data.o              = static_cast<X*>(const_cast<void*>(tensors.o.data));
    data.lse            = static_cast<A*>(const_cast<void*>(tensors.lse.data));
    data.q_strides      = layout.q;
    data.k_strides      = layout.k;
    data.v_strides      = layout.v;
    data.o_strides      = layout.o;
    data.lse_strides    = layout.lse;
    data.scale          = static_cast<A>(layout.scale);
    data.of_masked_rows = gives_nan ? Kokkos::Experimental::quiet_NaN_v<A> : A(0);
    data.ranges         = {limits_of(call.options.mask, layout.mask, layout.shape.keys), layout.mask.lengths};
    data.sinks          = pointer_to<X>(call.options.mask.sinks);
    data.sink_strides   = layout.mask.sinks;
    data.elements       = elements_of(call);
    return data;
  }
};

/// Launches a kernel of a call as its plan says; q and the label are what KOKKOSNN_VERBOSE tells.
template <class ExecutionSpace, class Kernel>
void launch_attention(const ExecutionSpace& exec, const char* function, const Tensor& q, const AttentionPlan& plan,
                      const char* part, const Kernel& kernel) {
  constexpr bool on_host  = backend_of<ExecutionSpace>() == Backend::host;
  const std::string label = to_string(function, plan) + part;
  if (is_verbose()) report_call(function, q, label);
  launch<Kokkos::LaunchBounds<on_host ? max_threads_per_team : attention_team_size, on_host ? 0 : 1>>(
      exec, label, {plan.league_size, plan.team_size, plan.scratch_level, plan.scratch}, kernel);
}

template <class ExecutionSpace, class X>
struct Launcher<AttentionCall<ExecutionSpace, X>> {
  static void run(const ExecutionSpace& exec, const AttentionArguments& call) {
    const AttentionPlan plan    = make_attention_plan(element_type<X>(), call.layout, device_traits(exec));
    const AttentionData<X> data = AttentionDataOf<X>::data_of(call);
    if constexpr (backend_of<ExecutionSpace>() == Backend::host) {
      using Kernel = HostAttention<X>;
      launch_attention(exec, call.function, call.tensors.q, plan, "",
                       Kernel{{}, data, plan.rows_per_team, typename Kernel::Exp(1.0)});
    } else {
      launch_attention(exec, call.function, call.tensors.q, plan, "", AttentionInTeam<X>{data});
    }
  }
};

template <class ExecutionSpace, class X>
struct Launcher<AttentionGradientCall<ExecutionSpace, X>> {
  using A = accumulator_t<X>;

  static void run(const ExecutionSpace& exec, const AttentionGradientArguments& call) {
    const AttentionShape& shape = call.layout.forward.shape;
    const WorkspaceLease<ExecutionSpace, WorkspaceUse::sums> workspace(
        exec, static_cast<std::size_t>(shape.batch * shape.heads * shape.queries) * sizeof(A));
    AttentionGradientData<X> data = data_of(call);
    data.delta                    = reinterpret_cast<A*>(workspace.data());
    const DeviceTraits traits     = device_traits(exec);
    run_part<false>(exec, call, "[queries]", data, traits);
    run_part<true>(exec, call, "[keys]", data, traits);
  }

 private:
  /// Launches the kernel that adds up dq, or the one that adds up dk and dv.
  template <bool of_keys>
  static void run_part(const ExecutionSpace& exec, const AttentionGradientArguments& call, const char* part,
                       const AttentionGradientData<X>& data, const DeviceTraits& traits) {
    const AttentionPlan plan =
        make_attention_gradient_plan(element_type<X>(), call.layout.forward.shape, of_keys, traits);
    if (plan.league_size == 0) return;
    const Tensor& q = call.tensors.forward.q;
    if constexpr (backend_of<ExecutionSpace>() == Backend::host) {
      using Kernel = HostAttentionGradients<X, of_keys>;
      launch_attention(exec, call.function, q, plan, part,
                       Kernel{{}, data, plan.rows_per_team, typename Kernel::Exp(1.0)});
    } else {
      using Kernel = std::conditional_t<of_keys, AttentionKeyGradients<X>, AttentionQueryGradients<X>>;
      launch_attention(exec, call.function, q, plan, part, Kernel{{data}});
    }
  }

  static AttentionGradientData<X> data_of(const AttentionGradientArguments& call) {
    const AttentionGradientTensors& tensors = call.tensors;
    const AttentionGradientLayout& layout   = call.layout;
    const auto output = [](const Tensor& t) { return static_cast<X*>(const_cast<void*>(t.data)); };
    return {AttentionDataOf<X>::data_of({call.function, tensors.forward, layout.forward, call.options}),
            static_cast<const X*>(tensors.dout.data),
            nullptr,
            output(tensors.dq),
            output(tensors.dk),
            output(tensors.dv),
            layout.dout,
            layout.dq,
            layout.dk,
            layout.dv};
  }
};

template <class ExecutionSpace, class X>
void AttentionCall<ExecutionSpace, X>::run(const ExecutionSpace& exec, const AttentionArguments& call) {
  Launcher<AttentionCall>::run(exec, call);
}

template <class ExecutionSpace, class X>
void AttentionGradientCall<ExecutionSpace, X>::run(const ExecutionSpace& exec, const AttentionGradientArguments& call) {
  Launcher<AttentionGradientCall>::run(exec, call);
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_ATTENTION_LAUNCH_HPP
