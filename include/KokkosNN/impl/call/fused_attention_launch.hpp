// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_FUSED_ATTENTION_LAUNCH_HPP
#define KOKKOSNN_IMPL_CALL_FUSED_ATTENTION_LAUNCH_HPP

#include <KokkosNN/impl/call/attention_launch.hpp>
#include <KokkosNN/impl/call/warpgroup_attention_launch.hpp>
#include <KokkosNN/impl/gpu/device/warpgroup.hpp>
#include <KokkosNN/impl/inputs/attention_tensors.hpp>

#include <cstdint>
#include <string>

// Attention whose results pass through a user's functor, compiled in the user's file.

namespace KokkosNN::Impl {

/// Results through an epilogue. Files that are compiled for warpgroups and others have a launch each.
template <class ExecutionSpace, class X, class Epilogue, bool on_warpgroups = is_compiled_for_warpgroups>
struct AttentionResultsWith {
  using Data  = AttentionDataWith<X, Epilogue>;
  using P     = accumulator_t<X>;
  using Merge = AttentionMergeDataWith<P, X, Epilogue>;

  static Merge merge_of(const Data& data, const AttentionMergeData<P, X>& merge) { return {merge, data.epilogue}; }

  static AttentionKernelShape warpgroup_shape([[maybe_unused]] const Data& data) {
    if constexpr (on_warpgroups) return warpgroup_attention_shape<X>(data);
    return {};
  }
  static void run_on_warpgroups([[maybe_unused]] const ExecutionSpace& exec, [[maybe_unused]] const std::string& label,
                                [[maybe_unused]] const AttentionPlan& plan, [[maybe_unused]] const Data& data) {
    if constexpr (on_warpgroups) launch_attention_on_warpgroups<X>(exec, label, plan, data);
  }
};

/// Attention on tensors of X with an epilogue F of numbers N, to o of O.
template <class ExecutionSpace, class X, class F, class N, class O, class Inputs>
struct FusedAttentionLaunch {
  using Epilogue = AttentionEpilogue<F, N, O, Inputs>;
  using Results  = AttentionResultsWith<ExecutionSpace, X, Epilogue>;

  static void run(const ExecutionSpace& exec, const AttentionArguments& call, const AttentionInputs& inputs,
                  const F& f) {
    const AttentionInputStrides strides =
        normalise_attention_inputs(call.function, call.tensors.o, call.tensors.lse, call.options, inputs);
    Epilogue epilogue{f, static_cast<O*>(const_cast<void*>(call.tensors.o.data)), call.layout.o, {}, {}};
    for (int i = 0; i < inputs.count; ++i) {
      epilogue.inputs[i]        = inputs.tensor[i].data;
      epilogue.input_strides[i] = strides.input[i];
    }
    AttentionLaunch<ExecutionSpace, X, Results>::run(exec, call, {AttentionDataOf<X>::data_of(call), epilogue});
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_FUSED_ATTENTION_LAUNCH_HPP
