// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_LARGE_SCRATCH_LAUNCH_HPP
#define KOKKOSNN_IMPL_CALL_LARGE_SCRATCH_LAUNCH_HPP

#include <KokkosNN/impl/call/launch.hpp>
#include <KokkosNN/impl/traits.hpp>

#include <Kokkos_Core.hpp>
#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

// Launches of kernels of tiles, whose teams have more scratch than the 48 KiB that Kokkos gives them on CUDA: there
// they are launched on the instance's stream, a team being a thread block. Elsewhere Kokkos launches them. Kokkos'
// tools see a region of the kernel's label.

namespace KokkosNN::Impl {

#if defined(KOKKOS_ENABLE_CUDA)

/// Handle of a team, with the members of Kokkos' that kernels of tiles call.
struct CudaTeam {
  struct Scratch {
    KOKKOS_FUNCTION void* get_shmem_aligned([[maybe_unused]] std::size_t bytes,
                                            [[maybe_unused]] std::size_t alignment) const {
#if defined(__CUDA_ARCH__)
      extern __shared__ char memory[];
      const auto begin = reinterpret_cast<std::uintptr_t>(memory);
      return memory + (alignment - begin % alignment) % alignment;
#else
      return nullptr;
#endif
    }
  };
#if defined(__CUDA_ARCH__)
  KOKKOS_FUNCTION int league_rank() const { return static_cast<int>(blockIdx.x); }
  KOKKOS_FUNCTION int league_size() const { return static_cast<int>(gridDim.x); }
  KOKKOS_FUNCTION int team_rank() const { return static_cast<int>(threadIdx.y); }
  KOKKOS_FUNCTION int team_size() const { return static_cast<int>(blockDim.y); }
  KOKKOS_FUNCTION void team_barrier() const { __syncthreads(); }
#else
  KOKKOS_FUNCTION int league_rank() const { return 0; }
  KOKKOS_FUNCTION int league_size() const { return 1; }
  KOKKOS_FUNCTION int team_rank() const { return 0; }
  KOKKOS_FUNCTION int team_size() const { return 1; }
  KOKKOS_FUNCTION void team_barrier() const {}
#endif
  KOKKOS_FUNCTION Scratch team_scratch(int) const { return {}; }
};

template <class Kernel>
__global__ __launch_bounds__(Kernel::team_size,
                             Kernel::resident) void run_with_large_scratch(const __grid_constant__ Kernel kernel) {
  kernel(CudaTeam{});
}

inline void require_success(const std::string& label, cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(label + ": " + cudaGetErrorString(error));
}

/// Makes an instance's device the current one, as Kokkos does for its launches.
class CurrentDevice {
 public:
  CurrentDevice(const std::string& label, int device) {
    require_success(label, cudaGetDevice(&m_before));
    if (m_before == device) m_before = -1;
    if (m_before >= 0) require_success(label, cudaSetDevice(device));
  }
  ~CurrentDevice() {
    if (m_before >= 0) static_cast<void>(cudaSetDevice(m_before));
  }
  CurrentDevice(const CurrentDevice&)            = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int m_before = -1;
};

#endif

/// Launches a kernel of `Kernel::team_size` threads a team, whose scratch may be DeviceTraits::large_scratch.
template <class ExecutionSpace, class Kernel>
void launch_tiles(const ExecutionSpace& exec, const std::string& label, const Teams& teams, const Kernel& kernel) {
#if defined(KOKKOS_ENABLE_CUDA)
  if constexpr (backend_of<ExecutionSpace>() == Backend::cuda) {
    require_launching_thread(exec, label);
    const Kokkos::Profiling::ScopedRegion region(label);
    const CurrentDevice device(label, exec.cuda_device());
    const auto run   = &run_with_large_scratch<Kernel>;
    const auto bytes = static_cast<int>(teams.scratch_bytes);
    require_success(label, cudaFuncSetAttribute(run, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    run<<<static_cast<unsigned>(teams.league_size), dim3(1, Kernel::team_size), teams.scratch_bytes,
          exec.cuda_stream()>>>(kernel);
    return require_success(label, cudaGetLastError());
  }
#endif
  if constexpr (backend_of<ExecutionSpace>() != Backend::cuda) {
    launch<Kokkos::LaunchBounds<Kernel::team_size, Kernel::resident>>(exec, label, teams, kernel);
  }
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_LARGE_SCRATCH_LAUNCH_HPP
