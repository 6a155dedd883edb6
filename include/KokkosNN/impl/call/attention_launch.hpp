// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_ATTENTION_LAUNCH_HPP
#define KOKKOSNN_IMPL_CALL_ATTENTION_LAUNCH_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/compiled_attention_calls.hpp>
#include <KokkosNN/impl/call/cpu_levels.hpp>
#include <KokkosNN/impl/call/launch.hpp>
#include <KokkosNN/impl/call/mask_data.hpp>
#include <KokkosNN/impl/call/verbose.hpp>
#include <KokkosNN/impl/call/warpgroup_attention.hpp>
#include <KokkosNN/impl/call/workspace.hpp>
#include <KokkosNN/impl/gpu/attention.hpp>
#include <KokkosNN/impl/gpu/attention_gradient_tiles.hpp>
#include <KokkosNN/impl/gpu/attention_gradients.hpp>
#include <KokkosNN/impl/gpu/attention_merge.hpp>
#include <KokkosNN/impl/gpu/attention_tiles.hpp>
#include <KokkosNN/impl/gpu/device/warpgroup.hpp>
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
    const auto& dropout      = call.options.dropout;
    elements.dropout =
        AttentionWeightDropout<A>::of(dropout.probability, dropout.seed, dropout.offset, call.layout.shape.heads);
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
    data.ranges         = {limits_of(call.options.mask, layout.mask, layout.shape.keys),
                           layout.mask.lengths,
                           layout.mask.offsets,
                           call.options.ends_align,
                           call.options.first_key,
                           call.options.diagonal_shift};
    data.sinks          = pointer_to<X>(call.options.mask.sinks);
    data.sink_strides   = layout.mask.sinks;
    data.elements       = elements_of(call);
    data.query_offsets  = {counts_of(call.options.query_offsets), layout.query_offset_stride, layout.shape.queries};
    data.key_offsets    = {counts_of(call.options.key_offsets), layout.key_offset_stride, layout.shape.keys};
    return data;
  }
};

/// Launches a kernel of a call as its plan says; q and the label are what KOKKOSNN_VERBOSE tells.
template <class ExecutionSpace, class Kernel>
void launch_attention(const ExecutionSpace& exec, const char* function, const Tensor& q, const AttentionPlan& plan,
                      const char* part, const Kernel& kernel) {
  constexpr Backend backend = backend_of<ExecutionSpace>();
  constexpr bool on_host    = backend == Backend::host;
  constexpr int resides     = least_residency(backend, attention_team_size);
  const std::string label   = to_string(function, plan) + part;
  if (is_verbose()) report_call(function, q, label);
  launch<Kokkos::LaunchBounds<on_host ? max_threads_per_team : attention_team_size, on_host ? 0 : resides>>(
      exec, label, {plan.league_size, plan.team_size, plan.scratch_level, plan.scratch}, kernel);
}

/// True if there are tiles for heads of X on the execution space: on CUDA, and on AMD's matrix cores.
template <class ExecutionSpace, class X>
inline constexpr bool has_attention_tiles =
    backend_of<ExecutionSpace>() == Backend::cuda ||
    (backend_of<ExecutionSpace>() == Backend::hip && MatrixUnit<ExecutionSpace, X>::uses_tensor_cores);

/// Calls f(std::integral_constant<int, elements that heads are padded to>) if there are tiles for heads of X on the
/// execution space; tells if.
template <class ExecutionSpace, class X, class F>
bool with_padded_dims(const AttentionShape& shape, const F& f) {
  if constexpr (has_attention_tiles<ExecutionSpace, X>) {
    const std::int64_t dims = std::max(shape.dim, shape.value_dim);
    if (dims <= 64) return f(std::integral_constant<int, 64>{}), true;
    if (dims <= 128) return f(std::integral_constant<int, 128>{}), true;
    if constexpr (sizeof(X) < 8) return f(std::integral_constant<int, 256>{}), true;
  }
  return false;
}

/// Launches a kernel of tiles as its plan says.
template <class ExecutionSpace, class Kernel>
void launch_attention_tiles(const ExecutionSpace& exec, const char* function, const Tensor& q,
                            const AttentionPlan& plan, const char* part, Kernel kernel) {
  const std::string label = to_string(function, plan) + part;
  if (is_verbose()) report_call(function, q, label);
  kernel.copies_q = plan.copies_q;
  kernel.copies_k = plan.copies_k;
  kernel.copies_v = plan.copies_v;
  launch_tiles(exec, label, {plan.league_size, plan.team_size, plan.scratch_level, plan.scratch}, kernel);
}

/// Launches the kernel that joins parts of P to results of X.
template <class X, class P, class ExecutionSpace, class Data>
void launch_attention_merge(const ExecutionSpace& exec, const char* function, const Tensor& parts, const Data& data) {
  constexpr int width =
      backend_of<ExecutionSpace>() == Backend::host ? host_attention_merge_width : attention_merge_width;
  const AttentionPlan plan = make_attention_merge_plan(element_type<X>(), data.shape, device_traits(exec));
  if constexpr (backend_of<ExecutionSpace>() != Backend::host) {
    // On HIP the addresses of more parts than two would be spilled.
    constexpr int unroll = backend_of<ExecutionSpace>() == Backend::hip ? 2 : attention_merge_unroll;
    if (plan.merges_in_team) {
      return launch_attention(exec, function, parts, plan, "[merge,team]",
                              AttentionMergeInTeam<P, X, width, unroll, Data>{data});
    }
  }
  launch_attention(exec, function, parts, plan, "[merge]", AttentionMerge<P, X, width, Data>{data});
}

template <class ExecutionSpace, class P, class X>
struct Launcher<AttentionMergeCall<ExecutionSpace, P, X>> {
  static void run(const ExecutionSpace& exec, const AttentionMergeArguments& call) {
    using A                              = accumulator_t<X>;
    const AttentionMergeTensors& tensors = call.tensors;
    const AttentionMergeLayout& layout   = call.layout;
    const bool gives_nan                 = call.options.masked_row == MaskedRowPolicy::nan;
    launch_attention_merge<X, P>(
        exec, call.function, tensors.o_parts,
        AttentionMergeData<P, X>{
            layout.shape, static_cast<const P*>(tensors.o_parts.data), static_cast<const A*>(tensors.lse_parts.data),
            static_cast<X*>(const_cast<void*>(tensors.o.data)), static_cast<A*>(const_cast<void*>(tensors.lse.data)),
            layout.o_parts, layout.lse_parts, layout.o, layout.lse, layout.o_part_stride, layout.lse_part_stride,
            gives_nan ? Kokkos::Experimental::quiet_NaN_v<A> : A(0), pointer_to<X>(call.options.mask.sinks),
            layout.sink_stride});
  }
};

/// Results as they are, rounded to o. Another such struct has an epilogue: fused_attention_launch.hpp.
template <class ExecutionSpace, class X>
struct AttentionResults {
  using Data  = AttentionData<X>;
  using Merge = AttentionMergeData<accumulator_t<X>, X>;

  static Merge merge_of(const Data&, const Merge& merge) { return merge; }

  /// Shape of the kernel on Hopper's warpgroups, and its launch.
  static AttentionKernelShape warpgroup_shape(const Data& data) {
    return AttentionOnWarpgroups<ExecutionSpace, X>::shape(data);
  }
  static void run_on_warpgroups(const ExecutionSpace& exec, const std::string& label, const AttentionPlan& plan,
                                const Data& data) {
    AttentionOnWarpgroups<ExecutionSpace, X>::run(exec, label, plan, data);
  }
};

/// A call whose results are written as Results say.
template <class ExecutionSpace, class X, class Results = AttentionResults<ExecutionSpace, X>>
struct AttentionLaunch {
  using Data = typename Results::Data;

  static void run(const ExecutionSpace& exec, const AttentionArguments& call, const Data& data) {
    if (data.shape.parts == 1) return run_whole(exec, call, data);
    run_parts(exec, call, data);
  }

 private:
  /// Computes parts of the keys side by side, and joins them. A sink joins the sum once.
  static void run_parts(const ExecutionSpace& exec, const AttentionArguments& call, const Data& whole) {
    using A                     = accumulator_t<X>;
    const AttentionShape& shape = whole.shape;
    const std::int64_t rows = shape.all_rows(), dim = shape.value_dim;
    const AttentionStrides of_lse{shape.heads * shape.queries, shape.queries, 1, 0};
    const AttentionStrides of_o{of_lse.batch * dim, of_lse.head * dim, dim, 1};
    const WorkspaceLease<ExecutionSpace, WorkspaceUse::sums> workspace(
        exec, static_cast<std::size_t>(shape.parts * rows * (dim + 1)) * sizeof(A));
    Data parts         = whole;
    parts.part_results = reinterpret_cast<A*>(workspace.data());
    parts.part_rows    = rows;
    parts.lse          = parts.part_results + shape.parts * rows * dim;
    parts.lse_strides  = of_lse;
    parts.sinks        = {};
    run_whole(exec, call, parts);
    launch_attention_merge<X, A>(exec, call.function, call.tensors.q,
                                 Results::merge_of(whole, {{shape.parts, shape.batch, shape.heads, shape.queries, dim},
                                                           parts.part_results,
                                                           parts.lse,
                                                           whole.o,
                                                           whole.lse,
                                                           of_o,
                                                           of_lse,
                                                           whole.o_strides,
                                                           whole.lse_strides,
                                                           rows * dim,
                                                           rows,
                                                           whole.of_masked_rows,
                                                           whole.sinks,
                                                           whole.sink_strides.head}));
  }

  static void run_whole(const ExecutionSpace& exec, const AttentionArguments& call, const Data& data) {
    if (run_on_warpgroups(exec, call, data)) return;
    if constexpr (backend_of<ExecutionSpace>() == Backend::host) {
      using Kernel             = HostAttention<X, Data>;
      const AttentionPlan plan = plan_of(exec, call, {});
      launch_attention(exec, call.function, call.tensors.q, plan, "",
                       Kernel{{}, data, plan.rows_per_team, typename Kernel::Exp(1.0)});
    } else if (!with_padded_dims<ExecutionSpace, X>(call.layout.shape,
                                                    [&](auto dims) { run_tiles<dims()>(exec, call, data); })) {
      run_rows(exec, call, plan_of(exec, call, {}), data);
    }
  }

  /// Launches the kernel on Hopper's warpgroups where that serves; tells if.
  static bool run_on_warpgroups([[maybe_unused]] const ExecutionSpace& exec,
                                [[maybe_unused]] const AttentionArguments& call, [[maybe_unused]] const Data& data) {
    if constexpr (backend_of<ExecutionSpace>() == Backend::cuda && sizeof(X) == 2) {
      if (!has_warpgroups(exec)) return false;
      const AttentionPlan plan =
          make_warpgroup_attention_plan(element_type<X>(), call.tensors, call.layout, call.options,
                                        Results::warpgroup_shape(data), device_traits(exec));
      if (!plan.is_on_warpgroups) return false;
      const std::string label = to_string(call.function, plan);
      if (is_verbose()) report_call(call.function, call.tensors.q, label);
      Results::run_on_warpgroups(exec, label, plan, data);
      return true;
    }
    return false;
  }

  static AttentionPlan plan_of(const ExecutionSpace& exec, const AttentionArguments& call,
                               const AttentionKernelShape& shape) {
    return make_attention_plan(element_type<X>(), call.options.precision, call.tensors, call.layout, shape,
                               device_traits(exec));
  }

  static void run_rows(const ExecutionSpace& exec, const AttentionArguments& call, const AttentionPlan& plan,
                       const Data& data) {
    launch_attention(exec, call.function, call.tensors.q, plan, "", AttentionInTeam<X, Data>{data});
  }

  template <int dims>
  static void run_tiles(const ExecutionSpace& exec, const AttentionArguments& call, const Data& data) {
    with_matrix_unit<ExecutionSpace, X>(call.options.precision, [&]<class Unit>(std::type_identity<Unit>) {
      if (data.elements.exist()) {
        run_unit<Unit, dims, true>(exec, call, data);
      } else {
        run_unit<Unit, dims, false>(exec, call, data);
      }
    });
  }
  template <class Unit, int dims, bool has_elements>
  static void run_unit(const ExecutionSpace& exec, const AttentionArguments& call, const Data& data) {
    if constexpr (sizeof(X) == 2 && matrix_unit_kind<Unit> == MatmulUnit::tensor_cores && !Data::has_epilogue) {
      using OfFewRows = AttentionInTiles<Unit, dims, has_elements, Data, true>;
      if (!data.shape.is_packed && data.shape.rows(false) <= OfFewRows::rows) {
        return run_kernel<OfFewRows>(exec, call, data);
      }
    }
    run_kernel<AttentionInTiles<Unit, dims, has_elements, Data>>(exec, call, data);
  }

  template <class Kernel>
  static void run_kernel(const ExecutionSpace& exec, const AttentionArguments& call, const Data& data) {
    const AttentionPlan plan = plan_of(exec, call, {Kernel::rows, Kernel::keys, Kernel::team_size, Kernel::scratch});
    if (!plan.in_tiles) return run_rows(exec, call, plan, data);
    launch_attention_tiles(exec, call.function, call.tensors.q, plan, "", Kernel{data, false, false, false});
  }
};

template <class ExecutionSpace, class X>
struct Launcher<AttentionCall<ExecutionSpace, X>> {
  static void run(const ExecutionSpace& exec, const AttentionArguments& call) {
    AttentionLaunch<ExecutionSpace, X>::run(exec, call, AttentionDataOf<X>::data_of(call));
  }
};

template <class ExecutionSpace, class X>
struct Launcher<AttentionGradientCall<ExecutionSpace, X>> {
  using A = accumulator_t<X>;

  static void run(const ExecutionSpace& exec, const AttentionGradientArguments& call) {
    if (run_on_warpgroups(exec, call)) return;
    const AttentionShape& shape = call.layout.forward.shape;
    const WorkspaceLease<ExecutionSpace, WorkspaceUse::sums> workspace(
        exec, static_cast<std::size_t>(shape.all_rows()) * sizeof(A));
    AttentionGradientData<X> data = data_of(call);
    data.delta                    = reinterpret_cast<A*>(workspace.data());
    const Planned planned{exec, call, data, device_traits(exec)};
    if constexpr (backend_of<ExecutionSpace>() == Backend::host) {
      run_on_host<false>(planned);
      run_on_host<true>(planned);
    } else if (!with_padded_dims<ExecutionSpace, X>(shape, [&](auto dims) { run_tiles<dims()>(planned); })) {
      run_rows(planned);
    }
  }

  static AttentionGradientData<X> data_of(const AttentionGradientArguments& call) {
    const AttentionGradientTensors& tensors = call.tensors;
    const AttentionGradientLayout& layout   = call.layout;
    const AttentionShape& shape             = layout.forward.shape;
    const auto output = [](const Tensor& t) { return static_cast<X*>(const_cast<void*>(t.data)); };
    return {AttentionDataOf<X>::data_of({call.function, tensors.forward, layout.forward, call.options}),
            static_cast<const X*>(tensors.dout.data),
            nullptr,
            {shape.is_packed ? 1 : shape.heads * shape.queries, shape.queries, 1, 0},
            output(tensors.dq),
            output(tensors.dk),
            output(tensors.dv),
            layout.dout,
            layout.dq,
            layout.dk,
            layout.dv};
  }

 private:
  /// Launches the kernels on Hopper's warpgroups where these serve; tells if.
  static bool run_on_warpgroups([[maybe_unused]] const ExecutionSpace& exec,
                                [[maybe_unused]] const AttentionGradientArguments& call) {
    if constexpr (backend_of<ExecutionSpace>() == Backend::cuda && sizeof(X) == 2) {
      using Warpgroups = AttentionGradientsOnWarpgroups<ExecutionSpace, X>;
      if (!has_warpgroups(exec)) return false;
      const AttentionGradientData<X> data = data_of(call);
      const auto plan_of                  = [&](bool of_keys) {
        return make_warpgroup_gradient_plan(element_type<X>(), call.tensors, call.layout, call.options, of_keys,
                                            Warpgroups::shape(data, of_keys), device_traits(exec));
      };
      const AttentionPlan of_queries = plan_of(false), of_keys = plan_of(true);
      if (!of_queries.is_on_warpgroups || !of_keys.is_on_warpgroups) return false;
      if (is_verbose()) report_call(call.function, call.tensors.forward.q, to_string(call.function, of_queries));
      Warpgroups::run(exec, call.function, of_queries, of_keys, data);
      return true;
    }
    return false;
  }

  /// A call on its way to its kernels.
  struct Planned {
    const ExecutionSpace& exec;
    const AttentionGradientArguments& call;
    const AttentionGradientData<X>& data;
    DeviceTraits traits;

    AttentionPlan plan(bool of_keys, const AttentionKernelShape& shape = {}) const {
      return make_attention_gradient_plan(element_type<X>(), call.tensors, call.layout, of_keys, shape, traits);
    }
    /// Launches a kernel that has something to write.
    template <class Kernel>
    void launch(const AttentionPlan& plan, const char* part, const Kernel& kernel) const {
      if (plan.league_size == 0) return;
      launch_attention(exec, call.function, call.tensors.forward.q, plan, part, kernel);
    }
    template <class Kernel>
    void launch_tiles(const AttentionPlan& plan, const char* part) const {
      if (plan.league_size == 0) return;
      Kernel kernel;
      kernel.data        = data;
      kernel.copies_dout = plan.copies_dout;
      launch_attention_tiles(exec, call.function, call.tensors.forward.q, plan, part, kernel);
    }
  };

  /// Launches the kernel that adds up dq, or the one that adds up dk and dv.
  template <bool of_keys>
  static void run_on_host(const Planned& planned) {
    using Kernel             = HostAttentionGradients<X, of_keys>;
    const AttentionPlan plan = planned.plan(of_keys);
    planned.launch(plan, of_keys ? "[keys]" : "[queries]",
                   Kernel{{}, planned.data, plan.rows_per_team, typename Kernel::Exp(1.0)});
  }

  static void run_rows(const Planned& planned) {
    planned.launch(planned.plan(false), "[queries]", AttentionQueryGradients<X>{{planned.data}});
    planned.launch(planned.plan(true), "[keys]", AttentionKeyGradients<X>{{planned.data}});
  }

  template <int dims>
  static void run_tiles(const Planned& planned) {
    if (planned.data.elements.exist()) {
      run_tiles<dims, true>(planned);
    } else {
      run_tiles<dims, false>(planned);
    }
  }
  template <int dims, bool has_elements>
  static void run_tiles(const Planned& planned) {
    using Unit                     = MatrixUnit<ExecutionSpace, X>;
    constexpr bool joins           = AttentionGradientTilesOf<Unit, dims>::joins_keys_and_values;
    using Queries                  = AttentionQueryGradientsInTiles<Unit, dims, has_elements>;
    using Keys                     = AttentionKeyGradientsInTiles<Unit, dims, has_elements, true, joins>;
    const AttentionPlan of_queries = planned.plan(false, shape_of<Queries>());
    const AttentionPlan of_keys    = planned.plan(true, shape_of<Keys>());
    if (!of_queries.in_tiles || !of_keys.in_tiles) return run_rows(planned);
    planned.template launch_tiles<Queries>(of_queries, "[queries]");
    if constexpr (!joins) {
      using Values = AttentionKeyGradientsInTiles<Unit, dims, has_elements, false, true>;
      static_assert(Values::scratch == Keys::scratch);
      planned.template launch_tiles<Values>(of_keys, "[values]");
    }
    planned.template launch_tiles<Keys>(of_keys, "[keys]");
  }
  template <class Kernel>
  static AttentionKernelShape shape_of() {
    return {Kernel::rows, Kernel::tile_rows, Kernel::team_size, Kernel::scratch};
  }
};

template <class ExecutionSpace, class X>
void AttentionCall<ExecutionSpace, X>::run(const ExecutionSpace& exec, const AttentionArguments& call) {
  run_compiled<AttentionCall>(exec, call);
}

template <class ExecutionSpace, class P, class X>
void AttentionMergeCall<ExecutionSpace, P, X>::run(const ExecutionSpace& exec, const AttentionMergeArguments& call) {
  run_compiled<AttentionMergeCall>(exec, call);
}

template <class ExecutionSpace, class X>
void AttentionGradientCall<ExecutionSpace, X>::run(const ExecutionSpace& exec, const AttentionGradientArguments& call) {
  run_compiled<AttentionGradientCall>(exec, call);
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_ATTENTION_LAUNCH_HPP
