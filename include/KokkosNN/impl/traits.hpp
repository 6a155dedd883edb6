// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_TRAITS_HPP
#define KOKKOSNN_IMPL_TRAITS_HPP

#include <KokkosNN/export.hpp>
#include <KokkosNN/impl/backend.hpp>
#include <KokkosNN/impl/kernel_shapes.hpp>
#include <KokkosNN/plan.hpp>
#include <KokkosNN/tuning.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <type_traits>

namespace KokkosNN {
namespace Impl {

/// The share that so many threads have of this machine's last-level caches, in bytes; 0 where the system does not say.
KOKKOSNN_EXPORT std::size_t host_cache_bytes(int threads);

}  // namespace Impl

/// The name of the device behind an execution-space instance, which a tuning file knows it by.
template <class ExecutionSpace>
std::string_view device_name([[maybe_unused]] const ExecutionSpace& exec) {
#if defined(KOKKOS_ENABLE_CUDA)
  if constexpr (std::is_same_v<ExecutionSpace, Kokkos::Cuda>) return exec.cuda_device_prop().name;
#endif
#if defined(KOKKOS_ENABLE_HIP)
  if constexpr (std::is_same_v<ExecutionSpace, Kokkos::HIP>) return exec.hip_device_prop().name;
#endif
  return Impl::host_name();
}

/// Properties of the machine that the planner needs, behind an execution-space instance; no launch, no fence.
template <class ExecutionSpace>
DeviceTraits device_traits(const ExecutionSpace& exec) {
  DeviceTraits traits;
  traits.backend                     = Impl::backend_of<ExecutionSpace>();
  traits.tuning                      = Impl::loaded_tuning(device_name(exec));
  [[maybe_unused]] const auto on_gpu = [&](const auto& properties, int warp, int resident) {
    traits.warp_size        = warp;
    traits.multiprocessors  = properties.multiProcessorCount;
    traits.max_team_size    = std::min(int(properties.maxThreadsPerBlock), Impl::max_threads_per_team);
    traits.resident_threads = resident;
    traits.cache            = properties.l2CacheSize;
    // Kokkos keeps a double a thread and two more in front of the team's scratch.
    traits.scratch[0] = properties.sharedMemPerBlock - (traits.max_team_size + 2) * sizeof(double);
  };
#if defined(KOKKOS_ENABLE_CUDA)
  if constexpr (std::is_same_v<ExecutionSpace, Kokkos::Cuda>) {
    const auto& properties = exec.cuda_device_prop();
    // Kernels that loop are compiled for teams of 768, so the registers suffice for as many threads in smaller ones.
    on_gpu(properties, properties.warpSize, Impl::max_threads_when_looping);
    traits.large_scratch = properties.sharedMemPerBlockOptin;
    if (Impl::has_launch_attributes && Impl::uses_launch_attributes() && properties.major >= 9) {
      traits.largest_cluster = Impl::most_teams_of_cluster;
    }
    traits.prefetches     = properties.major >= 9;
    traits.evicts_as_told = properties.major >= 9;  // those before could; nobody measured what they gain
  }
#endif
#if defined(KOKKOS_ENABLE_HIP)
  if constexpr (std::is_same_v<ExecutionSpace, Kokkos::HIP>) {
    const auto& properties = exec.hip_device_prop();
    on_gpu(properties, properties.warpSize, Impl::resident_threads_hip);
  }
#endif
  if constexpr (Impl::backend_of<ExecutionSpace>() == Backend::host) {
    Kokkos::TeamPolicy<ExecutionSpace> probe(exec, 1, 1);
    traits.warp_size       = 1;
    traits.multiprocessors = Impl::threads_of(exec);
    traits.max_team_size =
        std::min(traits.multiprocessors, probe.team_size_max([](const auto&) {}, Kokkos::ParallelForTag{}));
    traits.resident_threads = 1;
    traits.cache            = Impl::host_cache_bytes(traits.multiprocessors);
    traits.scratch[0]       = static_cast<std::size_t>(Kokkos::TeamPolicy<ExecutionSpace>::scratch_size_max(0));
    traits.scratch[1]       = static_cast<std::size_t>(Kokkos::TeamPolicy<ExecutionSpace>::scratch_size_max(1));
  }
  return traits;
}

}  // namespace KokkosNN

#endif  // KOKKOSNN_IMPL_TRAITS_HPP
