// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_WORKSPACE_HPP
#define KOKKOSNN_IMPL_WORKSPACE_HPP

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace KokkosNN::Impl {

/// Global memory for one call at a time on one instance, zero between calls; it only grows.
template <class ExecutionSpace>
using WorkspaceView = Kokkos::View<char*, typename ExecutionSpace::memory_space>;

template <class ExecutionSpace>
void grow(const ExecutionSpace& exec, WorkspaceView<ExecutionSpace>& workspace, std::size_t bytes) {
  if (workspace.extent(0) < bytes) {
    workspace = WorkspaceView<ExecutionSpace>(
        Kokkos::view_alloc(exec, Kokkos::WithoutInitializing, "KokkosNN::workspace"), bytes);
    Kokkos::deep_copy(exec, workspace, char(0));
  }
}

/// What tells instances apart: host instances share one id, but not their internals.
template <class ExecutionSpace>
std::uintptr_t instance_key(const ExecutionSpace& exec) {
  if constexpr (requires { exec.impl_internal_space_instance(); }) {
    return reinterpret_cast<std::uintptr_t>(exec.impl_internal_space_instance());
  } else {
    return Kokkos::Tools::Experimental::device_id(exec);
  }
}

/// What a workspace is for: counters and mailboxes are zero between calls, parts' states and sums are whatever the last
/// call left.
enum class WorkspaceUse { mailboxes, states, sums };

/// Workspaces of the plain calls, one for each execution-space instance; freed when Kokkos finalises.
template <class ExecutionSpace, WorkspaceUse use>
class WorkspacePool {
 public:
  static WorkspaceView<ExecutionSpace> get(const ExecutionSpace& exec, std::size_t bytes) {
    // For good: Kokkos may be finalised later than statics are destroyed.
    static WorkspacePool& pool = *new WorkspacePool;
    const std::lock_guard<std::mutex> lock(pool.m_mutex);
    if (pool.m_workspaces.empty()) {
      Kokkos::push_finalize_hook([] { pool.m_workspaces.clear(); });
    }
    auto& workspace = pool.m_workspaces[instance_key(exec)];
    grow(exec, workspace, bytes);
    return workspace;
  }

 private:
  std::mutex m_mutex;
  std::map<std::uintptr_t, WorkspaceView<ExecutionSpace>> m_workspaces;
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_WORKSPACE_HPP
