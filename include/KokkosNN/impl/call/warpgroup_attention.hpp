// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_WARPGROUP_ATTENTION_HPP
#define KOKKOSNN_IMPL_CALL_WARPGROUP_ATTENTION_HPP

#include <KokkosNN/impl/call/attention_plan.hpp>
#include <KokkosNN/impl/inputs/attention_tensors.hpp>

#include <string>

// Attention on Hopper's warpgroups, compiled in a file of the library that is for sm_90a.

namespace KokkosNN::Impl {

template <class Exec, class X>
struct AttentionOnWarpgroups {
  /// Shape of the kernel for a call; no rows: there is none, or the library was built without.
  static AttentionKernelShape shape(const AttentionData<X>& data);
  static void run(const Exec& exec, const std::string& label, const AttentionPlan& plan, const AttentionData<X>& data);
};

/// Its gradients, of what a call has laid out.
template <class Exec, class X>
struct AttentionGradientsOnWarpgroups {
  /// Shape of the kernel of the queries, or of the keys.
  static AttentionKernelShape shape(const AttentionGradientData<X>& data, bool of_keys);
  /// Launches the kernels; labels begin with `function`.
  static void run(const Exec& exec, const char* function, const AttentionPlan& of_queries, const AttentionPlan& of_keys,
                  const AttentionGradientData<X>& data);
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_WARPGROUP_ATTENTION_HPP
