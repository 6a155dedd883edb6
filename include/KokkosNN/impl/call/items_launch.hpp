// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_ITEMS_LAUNCH_HPP
#define KOKKOSNN_IMPL_CALL_ITEMS_LAUNCH_HPP

#include <KokkosNN/impl/call/launch.hpp>
#include <KokkosNN/impl/call/verbose.hpp>
#include <KokkosNN/impl/gpu/items.hpp>
#include <KokkosNN/impl/kernel_shapes.hpp>
#include <KokkosNN/impl/traits.hpp>

#include <algorithm>
#include <cstdint>
#include <string>

// Launches of steps whose items are threads'.

namespace KokkosNN::Impl {

/// Label of a step of a call on elements of X: `KokkosNN::graph_attention[f32][logits]`.
template <class X>
std::string items_label(const char* function, const char* step) {
  return std::string("KokkosNN::") + function + '[' + to_string(element_type<X>()) + ']' + step;
}

/// Wavefronts of a SIMD on HIP that a step's kernel is compiled for.
template <class Step>
inline constexpr int hip_wavefronts_of = [] {
  if constexpr (requires { Step::hip_wavefronts; }) {
    return Step::hip_wavefronts;
  } else {
    return least_residency(Backend::hip);
  }
}();

/// Launches a step, unless it has no items; `read` is the tensor that KOKKOSNN_VERBOSE tells.
template <class X, class ExecutionSpace, class Step>
void launch_items(const ExecutionSpace& exec, const char* function, const Tensor& read, const char* name,
                  const Step& step) {
  constexpr Backend backend         = backend_of<ExecutionSpace>();
  constexpr bool on_host            = backend == Backend::host;
  constexpr int threads             = on_host ? 1 : 128;
  constexpr int resides             = backend == Backend::hip ? hip_wavefronts_of<Step> : 1;
  constexpr std::int64_t most_teams = std::int64_t(1) << 30;
  const std::int64_t teams          = (step.items() + threads - 1) / threads;
  const std::int64_t most           = on_host ? device_traits(exec).multiprocessors : most_teams;
  if (teams == 0) return;
  const std::string label = items_label<X>(function, name);
  if (is_verbose()) report_call(function, read, label);
  launch<Kokkos::LaunchBounds<on_host ? max_threads_per_team : threads, on_host ? 0 : resides>>(
      exec, label, {std::min(most, teams), threads, 0, 0}, ItemsKernel<Step>{step});
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_ITEMS_LAUNCH_HPP
