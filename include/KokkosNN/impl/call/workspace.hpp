// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_WORKSPACE_HPP
#define KOKKOSNN_IMPL_CALL_WORKSPACE_HPP

#include <KokkosNN/impl/backend.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

// Memory that a call keeps something in between its kernels. It belongs to the call, as two threads may be on one
// instance without knowing it: Kokkos::partition_space gives a host's default instance several times where parallel
// regions do not nest.

namespace KokkosNN::Impl {

/// Global memory that only grows, and is zero where it has grown.
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

/// Calls whose kernels surely run one after the other share a key: those on one instance of a GPU. A host's kernels
/// have run when a call returns, whatever the instance, so all calls share one there.
template <class ExecutionSpace>
std::uintptr_t workspace_key([[maybe_unused]] const ExecutionSpace& exec) {
  if constexpr (backend_of<ExecutionSpace>() == Backend::host) {
    return 0;
  } else {
    return reinterpret_cast<std::uintptr_t>(exec.impl_internal_space_instance());
  }
}

/// Use of a workspace: counters and status words are zero between calls, parts' states and sums are whatever the last
/// call left.
enum class WorkspaceUse { status_words, states, sums };

/// Held while a hook is added: Kokkos has one list of them, pools are many.
inline std::mutex finalize_hooks_mutex;

/// Workspaces that no call is enqueueing for; freed when Kokkos finalises.
template <class ExecutionSpace, WorkspaceUse use>
class WorkspacePool {
 public:
  using Workspace = WorkspaceView<ExecutionSpace>;

  static WorkspacePool& get() {
    // For good: Kokkos may be finalised later than statics are destroyed.
    static WorkspacePool& pool = *new WorkspacePool;
    return pool;
  }

  /// The smallest one of so many bytes, else the largest, else an empty one.
  Workspace take(std::uintptr_t key, std::size_t bytes) {
    const std::lock_guard lock(m_mutex);
    auto best = m_idle.end();
    for (auto idle = m_idle.begin(); idle != m_idle.end(); ++idle) {
      if (idle->key == key && (best == m_idle.end() || suits_better(idle->memory, best->memory, bytes))) best = idle;
    }
    if (best == m_idle.end()) return {};
    Workspace memory = std::move(best->memory);
    m_idle.erase(best);
    return memory;
  }

  void give_back(std::uintptr_t key, Workspace&& memory) {
    const std::lock_guard lock(m_mutex);
    m_idle.push_back({key, std::move(memory)});
  }

  /// Held by a call whose plan has a workspace of its own.
  std::mutex& owners() { return m_owners; }

 private:
  struct Idle {
    std::uintptr_t key;
    Workspace memory;
  };

  WorkspacePool() {
    const std::lock_guard lock(finalize_hooks_mutex);
    Kokkos::push_finalize_hook([this] { m_idle.clear(); });
  }

  static bool suits_better(const Workspace& a, const Workspace& b, std::size_t bytes) {
    const bool a_suffices = a.extent(0) >= bytes;
    if (a_suffices != (b.extent(0) >= bytes)) return a_suffices;
    return a_suffices ? a.extent(0) < b.extent(0) : a.extent(0) > b.extent(0);
  }

  std::mutex m_mutex;
  std::mutex m_owners;
  std::vector<Idle> m_idle;
};

/// A workspace that is one call's while it enqueues kernels, whatever other threads do on the same instance. It is the
/// kernels' afterwards, too: who gets it next enqueues behind them.
template <class ExecutionSpace, WorkspaceUse use>
class WorkspaceLease {
 public:
  using Workspace = WorkspaceView<ExecutionSpace>;

  /// At least so many bytes; none where that is 0. A plan on a GPU has a workspace of its `own`, which stays where it
  /// is for graphs; one of its runs at a time gets it.
  WorkspaceLease(const ExecutionSpace& exec, std::size_t bytes, Workspace* own = nullptr)
      : m_key(workspace_key(exec)), m_exceptions(std::uncaught_exceptions()) {
    constexpr bool has_owners = backend_of<ExecutionSpace>() != Backend::host;
    if (bytes == 0) return;
    if (has_owners && own != nullptr) {
      m_owner = std::unique_lock(Pool::get().owners());
      grow(exec, *own, bytes);
      m_memory = *own;
    } else {
      m_memory = Pool::get().take(m_key, bytes);
      grow(exec, m_memory, bytes);
    }
  }

  /// A call that fails between its kernels may leave status words that are not empty, so its workspace is freed.
  ~WorkspaceLease() {
    const bool is_pooled = m_memory.data() != nullptr && !m_owner.owns_lock();
    if (is_pooled && std::uncaught_exceptions() == m_exceptions) Pool::get().give_back(m_key, std::move(m_memory));
  }
  WorkspaceLease(const WorkspaceLease&)            = delete;
  WorkspaceLease& operator=(const WorkspaceLease&) = delete;

  char* data() const { return m_memory.data(); }

 private:
  using Pool = WorkspacePool<ExecutionSpace, use>;

  std::uintptr_t m_key;
  int m_exceptions;
  std::unique_lock<std::mutex> m_owner;
  Workspace m_memory;
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_WORKSPACE_HPP
