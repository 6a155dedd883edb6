// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_ATTENTION_LAUNCH_HPP
#define KOKKOSNN_IMPL_CALL_ATTENTION_LAUNCH_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/compiled_attention_calls.hpp>
#include <KokkosNN/impl/call/launch.hpp>
#include <KokkosNN/impl/call/verbose.hpp>
#include <KokkosNN/impl/gpu/attention.hpp>
#include <KokkosNN/impl/host/attention.hpp>
#include <KokkosNN/impl/traits.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

// An attention call's way from a plan to a launch.

namespace KokkosNN::Impl {

template <class ExecutionSpace, class X>
struct Launcher<AttentionCall<ExecutionSpace, X>> {
  using A = accumulator_t<X>;

  static void run(const ExecutionSpace& exec, const AttentionArguments& call) {
    const AttentionPlan plan = make_attention_plan(element_type<X>(), call.layout, device_traits(exec));
    const std::string label  = to_string(call.function, plan);
    if (is_verbose()) report_call(call.function, call.tensors.q, label);
    const Teams teams{plan.league_size, plan.team_size, plan.scratch_level, plan.scratch};
    if constexpr (backend_of<ExecutionSpace>() == Backend::host) {
      using Kernel = HostAttention<X>;
      launch<Kokkos::LaunchBounds<max_threads_per_team>>(
          exec, label, teams, Kernel{data_of(call), plan.rows_per_team, typename Kernel::Exp(1.0)});
    } else {
      launch<Kokkos::LaunchBounds<attention_team_size, 1>>(exec, label, teams, AttentionInTeam<X>{data_of(call)});
    }
  }

 private:
  static TypedPointer<X> pointer_to(const Tensor& t) {
    return t.exists() ? TypedPointer<X>{t.data, t.type == ElementType::f32} : TypedPointer<X>{};
  }

  static ScoreRanges ranges_of(const AttentionArguments& call) {
    const MaskTensors& mask       = call.options.mask;
    const ScoreMaskLayout& layout = call.layout.mask;
    ScoreRanges ranges;
    ranges.keys               = call.layout.shape.keys;
    ranges.has_diagonals      = layout.has_diagonals;
    ranges.low                = layout.low;
    ranges.high               = layout.high;
    ranges.lengths            = mask.lengths.exists() ? mask.lengths.data : nullptr;
    ranges.has_64_bit_lengths = mask.lengths.element_bytes == 8;
    ranges.length_strides     = layout.lengths;
    return ranges;
  }

  static ScoreElements<X, A> elements_of(const AttentionArguments& call) {
    const MaskTensors& mask       = call.options.mask;
    const ScoreMaskLayout& layout = call.layout.mask;
    ScoreElements<X, A> elements;
    elements.softcap         = static_cast<A>(mask.softcap);
    elements.inverse_softcap = mask.softcap != 0 ? static_cast<A>(1 / mask.softcap) : A(0);
    elements.bias            = pointer_to(mask.bias);
    elements.bias_strides    = layout.bias;
    elements.keep            = mask.keep.exists() ? static_cast<const std::uint8_t*>(mask.keep.data) : nullptr;
    elements.keep_strides    = layout.keep;
    elements.slopes          = pointer_to(mask.slopes);
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
    data.ranges         = ranges_of(call);
    data.sinks          = pointer_to(call.options.mask.sinks);
    data.sink_strides   = layout.mask.sinks;
    data.elements       = elements_of(call);
    return data;
  }
};

template <class ExecutionSpace, class X>
void AttentionCall<ExecutionSpace, X>::run(const ExecutionSpace& exec, const AttentionArguments& call) {
  Launcher<AttentionCall>::run(exec, call);
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_ATTENTION_LAUNCH_HPP
