// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_ATTENTION_LAUNCH_HPP
#define KOKKOSNN_IMPL_CALL_ATTENTION_LAUNCH_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/compiled_attention_calls.hpp>
#include <KokkosNN/impl/call/large_scratch_launch.hpp>
#include <KokkosNN/impl/call/launch.hpp>
#include <KokkosNN/impl/call/mask_data.hpp>
#include <KokkosNN/impl/call/verbose.hpp>
#include <KokkosNN/impl/call/workspace.hpp>
#include <KokkosNN/impl/gpu/attention.hpp>
#include <KokkosNN/impl/gpu/attention_gradient_tiles.hpp>
#include <KokkosNN/impl/gpu/attention_gradients.hpp>
#include <KokkosNN/impl/gpu/attention_tiles.hpp>
#include <KokkosNN/impl/host/attention.hpp>
#include <KokkosNN/impl/host/attention_gradients.hpp>
#include <KokkosNN/impl/traits.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
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
    data.ranges         = {limits_of(call.options.mask, layout.mask, layout.shape.keys), layout.mask.lengths,
                           layout.mask.offsets};
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
    const AttentionShape& shape = call.layout.shape;
    const std::int64_t dims     = std::max(shape.dim, shape.value_dim);
    if constexpr (backend_of<ExecutionSpace>() == Backend::host) {
      run_on_host(exec, call);
    } else if constexpr (backend_of<ExecutionSpace>() != Backend::cuda) {
      run_rows(exec, call, plan_of(exec, call, {}));
    } else if (dims <= 64) {
      run_tiles<64>(exec, call);
    } else if (dims <= 128) {
      run_tiles<128>(exec, call);
    } else if constexpr (sizeof(X) < 8) {
      run_tiles<256>(exec, call);
    } else {
      run_rows(exec, call, plan_of(exec, call, {}));
    }
  }

 private:
  static AttentionPlan plan_of(const ExecutionSpace& exec, const AttentionArguments& call,
                               const AttentionKernelShape& shape) {
    return make_attention_plan(element_type<X>(), call.options.precision, call.tensors, call.layout, shape,
                               device_traits(exec));
  }

  static void run_on_host(const ExecutionSpace& exec, const AttentionArguments& call) {
    using Kernel             = HostAttention<X>;
    const AttentionPlan plan = plan_of(exec, call, {});
    launch_attention(exec, call.function, call.tensors.q, plan, "",
                     Kernel{{}, AttentionDataOf<X>::data_of(call), plan.rows_per_team, typename Kernel::Exp(1.0)});
  }

  static void run_rows(const ExecutionSpace& exec, const AttentionArguments& call, const AttentionPlan& plan) {
    launch_attention(exec, call.function, call.tensors.q, plan, "",
                     AttentionInTeam<X>{AttentionDataOf<X>::data_of(call)});
  }

  template <int dims>
  static void run_tiles(const ExecutionSpace& exec, const AttentionArguments& call) {
    if constexpr (std::is_same_v<MatrixUnit<ExecutionSpace, X, Precision::exact>,
                                 MatrixUnit<ExecutionSpace, X, Precision::tensor_float32>>) {
      run_tiles_of<MatrixUnit<ExecutionSpace, X>, dims>(exec, call);
    } else {
      switch (call.options.precision) {
        case Precision::exact:
          return run_tiles_of<MatrixUnit<ExecutionSpace, X>, dims>(exec, call);
        case Precision::tensor_float32x3:
          return run_tiles_of<MatrixUnit<ExecutionSpace, X, Precision::tensor_float32x3>, dims>(exec, call);
        case Precision::tensor_float32:
          return run_tiles_of<MatrixUnit<ExecutionSpace, X, Precision::tensor_float32>, dims>(exec, call);
      }
    }
  }
  template <class Unit, int dims>
  static void run_tiles_of(const ExecutionSpace& exec, const AttentionArguments& call) {
    if (AttentionDataOf<X>::elements_of(call).exist()) {
      launch_tiles_of<AttentionInTiles<Unit, dims, true>>(exec, call);
    } else {
      launch_tiles_of<AttentionInTiles<Unit, dims, false>>(exec, call);
    }
  }

  template <class Kernel>
  static void launch_tiles_of(const ExecutionSpace& exec, const AttentionArguments& call) {
    const AttentionPlan plan = plan_of(exec, call, {Kernel::rows, Kernel::keys, Kernel::team_size, Kernel::scratch});
    if (!plan.in_tiles) return run_rows(exec, call, plan);
    const std::string label = to_string(call.function, plan);
    if (is_verbose()) report_call(call.function, call.tensors.q, label);
    launch_tiles(exec, label, {plan.league_size, plan.team_size, plan.scratch_level, plan.scratch},
                 Kernel{AttentionDataOf<X>::data_of(call), plan.blocks, plan.copies_q, plan.copies_k, plan.copies_v});
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
    const std::int64_t dims       = std::max(shape.dim, shape.value_dim);
    if constexpr (backend_of<ExecutionSpace>() == Backend::host) {
      run_on_host<false>(exec, call, data);
      run_on_host<true>(exec, call, data);
    } else if constexpr (backend_of<ExecutionSpace>() != Backend::cuda) {
      run_rows(exec, call, data);
    } else if (dims <= 64) {
      run_tiles<64>(exec, call, data);
    } else if (dims <= 128) {
      run_tiles<128>(exec, call, data);
    } else if constexpr (sizeof(X) < 8) {
      run_tiles<256>(exec, call, data);
    } else {
      run_rows(exec, call, data);
    }
  }

 private:
  static AttentionPlan plan_of(const ExecutionSpace& exec, const AttentionGradientArguments& call, bool of_keys,
                               const AttentionKernelShape& shape) {
    return make_attention_gradient_plan(element_type<X>(), call.tensors, call.layout, of_keys, shape,
                                        device_traits(exec));
  }

  /// Launches the kernel that adds up dq, or the one that adds up dk and dv.
  template <bool of_keys>
  static void run_on_host(const ExecutionSpace& exec, const AttentionGradientArguments& call,
                          const AttentionGradientData<X>& data) {
    using Kernel             = HostAttentionGradients<X, of_keys>;
    const AttentionPlan plan = plan_of(exec, call, of_keys, {});
    if (plan.league_size == 0) return;
    launch_attention(exec, call.function, call.tensors.forward.q, plan, of_keys ? "[keys]" : "[queries]",
                     Kernel{{}, data, plan.rows_per_team, typename Kernel::Exp(1.0)});
  }

  static void run_rows(const ExecutionSpace& exec, const AttentionGradientArguments& call,
                       const AttentionGradientData<X>& data) {
    const Tensor& q             = call.tensors.forward.q;
    const AttentionPlan of_rows = plan_of(exec, call, false, {}), of_keys = plan_of(exec, call, true, {});
    if (of_rows.league_size > 0) {
      launch_attention(exec, call.function, q, of_rows, "[queries]", AttentionQueryGradients<X>{{data}});
    }
    if (of_keys.league_size > 0) {
      launch_attention(exec, call.function, q, of_keys, "[keys]", AttentionKeyGradients<X>{{data}});
    }
  }

  template <int dims>
  static void run_tiles(const ExecutionSpace& exec, const AttentionGradientArguments& call,
                        const AttentionGradientData<X>& data) {
    if (data.elements.exist()) {
      run_tiles<dims, true>(exec, call, data);
    } else {
      run_tiles<dims, false>(exec, call, data);
    }
  }
  template <int dims, bool has_elements>
  static void run_tiles(const ExecutionSpace& exec, const AttentionGradientArguments& call,
                        const AttentionGradientData<X>& data) {
    using Unit           = MatrixUnit<ExecutionSpace, X>;
    using Queries        = AttentionQueryGradientsInTiles<Unit, dims, has_elements>;
    constexpr bool joins = AttentionGradientTilesOf<Unit, dims>::joins_keys_and_values;
    using Keys           = AttentionKeyGradientsInTiles<Unit, dims, has_elements, true, joins>;
    if (!plan_of(exec, call, true, shape_of<Keys>()).in_tiles ||
        !plan_of(exec, call, false, shape_of<Queries>()).in_tiles)
      return run_rows(exec, call, data);
    launch_tiles_of<Queries>(exec, call, false, "[queries]", data);
    if constexpr (joins) {
      launch_tiles_of<Keys>(exec, call, true, "[keys]", data);
    } else {
      using Values = AttentionKeyGradientsInTiles<Unit, dims, has_elements, false, true>;
      launch_tiles_of<Values>(exec, call, true, "[values]", data);
      launch_tiles_of<Keys>(exec, call, true, "[keys]", data);
    }
  }
  template <class Kernel>
  static AttentionKernelShape shape_of() {
    return {Kernel::rows, Kernel::tile_rows, Kernel::team_size, Kernel::scratch};
  }
  template <class Kernel>
  static void launch_tiles_of(const ExecutionSpace& exec, const AttentionGradientArguments& call, bool of_keys,
                              const char* part, const AttentionGradientData<X>& data) {
    const AttentionPlan plan = plan_of(exec, call, of_keys, shape_of<Kernel>());
    if (plan.league_size == 0) return;
    const std::string label = to_string(call.function, plan) + part;
    if (is_verbose()) report_call(call.function, call.tensors.forward.q, label);
    Kernel kernel;
    kernel.data        = data;
    kernel.blocks      = plan.blocks;
    kernel.copies_q    = plan.copies_q;
    kernel.copies_k    = plan.copies_k;
    kernel.copies_v    = plan.copies_v;
    kernel.copies_dout = plan.copies_dout;
    launch_tiles(exec, label, {plan.league_size, plan.team_size, plan.scratch_level, plan.scratch}, kernel);
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
