// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_MPI_STATE_EXCHANGE_HPP
#define KOKKOSNN_IMPL_MPI_STATE_EXCHANGE_HPP

#include <KokkosNN/impl/backend.hpp>
#include <KokkosNN/impl/mpi/launch.hpp>
#include <KokkosNN/impl/mpi/pair_exchange.hpp>
#include <KokkosNN/impl/mpi/rank_states.hpp>
#include <KokkosNN/impl/mpi/state_gather.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

// Exchange of rows' states among ranks: StateExchange is what the operators know, MpiExchange and GatherExchange do it.

namespace KokkosNN::mpi {

/// Way of rows' states from rank to rank.
enum class Transport {
  /// nccl if the library was built with it and all ranks ask for it or for this, each with a GPU of its own; else mpi
  automatic,
  mpi,     ///< device if the MPI says at run time that it takes such pointers, or there is no other memory; else staged
  device,  ///< MPI, from and to memory of the execution space
  staged,  ///< MPI, from and to pinned memory of the host, which kernels write to and read from
  nccl     ///< NCCL, on HIP RCCL, on the instance's stream: the host waits for no kernel
};

inline const char* to_string(Transport transport) {
  switch (transport) {
    case Transport::automatic:
      return "automatic";
    case Transport::mpi:
      return "mpi";
    case Transport::device:
      return "device";
    case Transport::staged:
      return "staged";
    case Transport::nccl:
      return "nccl";
  }
  return "unknown";
}

}  // namespace KokkosNN::mpi

namespace KokkosNN::Impl {

/// Memory that only grows, whose contents are lost then.
template <class Space, class Exec>
class GrowingMemory {
 public:
  char* of(const Exec& exec, std::size_t bytes) {
    const std::size_t wanted = (bytes + sizeof(ShardPair) - 1) / sizeof(ShardPair);
    if (m_pairs.extent(0) < wanted) {
      exec.fence("KokkosNN::mpi: pairs that are too few");
      m_pairs = Pairs(Kokkos::view_alloc(Kokkos::WithoutInitializing, "KokkosNN::mpi::pairs"), wanted);
    }
    return reinterpret_cast<char*>(m_pairs.data());
  }

 private:
  using Pairs = Kokkos::View<ShardPair*, Space>;

  Pairs m_pairs;
};

/// Memory that kernels and MPI can access, either the device's or pinned.
template <class Exec>
class MpiMemory {
 public:
  MpiMemory(const Exec& exec, mpi::Transport asked) : m_exec(exec), m_is_device(is_device(asked)) {}

  mpi::Transport transport() const { return m_is_device ? mpi::Transport::device : mpi::Transport::staged; }
  char* of(std::size_t bytes) { return m_is_device ? m_device.of(m_exec, bytes) : m_staged.of(m_exec, bytes); }

 private:
  static bool is_device(mpi::Transport asked) {
    constexpr bool is_host = Kokkos::SpaceAccessibility<Kokkos::HostSpace, typename Exec::memory_space>::accessible;
    if (asked == mpi::Transport::device || asked == mpi::Transport::staged) return asked == mpi::Transport::device;
    return is_host || mpi_takes_device_pointers(backend_of<Exec>());
  }

  Exec m_exec;
  bool m_is_device;
  GrowingMemory<typename Exec::memory_space, Exec> m_device;
  GrowingMemory<Kokkos::SharedHostPinnedSpace, Exec> m_staged;
};

/// Exchange of the states that kernels leave of a rank's columns. A call asks for memory once; then kernels leave a
/// block's states there, await() is called, and exchanged() for the block.
template <class Exec>
class StateExchange {
 public:
  StateExchange()                                = default;
  virtual ~StateExchange()                       = default;
  StateExchange(const StateExchange&)            = delete;
  StateExchange& operator=(const StateExchange&) = delete;

  virtual mpi::Transport transport() const      = 0;
  virtual char* memory(std::size_t bytes) const = 0;
  /// Waits for the kernels that were enqueued, where the host is to move what they leave.
  virtual void await(const char* function) const = 0;
  /// States of the whole rows, of n states of this rank's columns; valid until the next call.
  virtual RankStates<ShardPair> exchanged(const char* function, ShardPair* states, std::int64_t n) const       = 0;
  virtual RankStates<ShardMoments> exchanged(const char* function, ShardMoments* states, std::int64_t n) const = 0;
  /// Rows of a block, where nobody asks for a number. It is a function of what all ranks have in common.
  virtual std::int64_t rows_a_block(std::int64_t all_rows) const = 0;
};

/// Exchange by MPI: the host waits for the kernels, and gives MPI what they have left.
template <class Exec>
class MpiExchange final : public StateExchange<Exec> {
 public:
  MpiExchange(const Exec& exec, const PairExchange& ranks, MpiMemory<Exec>& memory, bool is_deterministic)
      : m_exec(exec), m_ranks(ranks), m_memory(memory), m_is_deterministic(is_deterministic) {}

  mpi::Transport transport() const override { return m_memory.transport(); }

  char* memory(std::size_t bytes) const override {
    // States that ranks send each other in the deterministic mode lie behind.
    m_half         = (bytes + sizeof(ShardPair) - 1) / sizeof(ShardPair) * sizeof(ShardPair);
    return m_begin = m_memory.of(m_is_deterministic ? 2 * m_half : m_half);
  }
  void await(const char* function) const override {
    m_exec.fence(std::string("KokkosNN::") + function + ": pairs for MPI");
  }
  RankStates<ShardPair> exchanged(const char* function, ShardPair* states, std::int64_t n) const override {
    return merged(function, states, n);
  }
  RankStates<ShardMoments> exchanged(const char* function, ShardMoments* states, std::int64_t n) const override {
    return merged(function, states, n);
  }
  std::int64_t rows_a_block(std::int64_t all_rows) const override {
    // A host has no work beside its kernels. On a device a block should take at least as long as MPI and a fence. The
    // number of rows decides: it is all that ranks surely have in common.
    constexpr std::int64_t blocks = 4, least_rows = 1024;
    return backend_of<Exec>() == Backend::host ? all_rows : std::max(least_rows, all_rows / blocks);
  }

 private:
  /// Merger of states in either memory.
  template <class State>
  struct Merger : StateMerger<State> {
    const MpiExchange& exchange;

    explicit Merger(const MpiExchange& e) : exchange(e) {}
    void merge(State* into, const State* from, std::int64_t n) const override {
      const MergeStates<State> merge_one{into, from};
      if (exchange.transport() == mpi::Transport::staged) {
        for (std::int64_t i = 0; i < n; ++i) merge_one(i);
      } else {
        for_each_row(exchange.m_exec, "KokkosNN::mpi[merge]", n, merge_one);
        exchange.m_exec.fence("KokkosNN::mpi: pairs that are sent on");
      }
    }
  };

  template <class State>
  RankStates<State> merged(const char* function, State* states, std::int64_t n) const {
    if (m_is_deterministic) {
      m_ranks.reduce_in_order(function, states, reinterpret_cast<State*>(m_begin + m_half), n, Merger<State>(*this));
    } else {
      m_ranks.reduce(function, states, n);
    }
    return {states, n, 1};
  }

  Exec m_exec;
  const PairExchange& m_ranks;
  MpiMemory<Exec>& m_memory;
  bool m_is_deterministic;
  mutable char* m_begin      = nullptr;
  mutable std::size_t m_half = 0;
};

/// Exchange by a gather on the instance: nothing waits for the host, so rows go in one block.
///
/// A gather of (max, sum) is one collective. NCCL reduces by no operation of a user, so its reductions would be two,
/// with a kernel between them: the maxima, then the sums, scaled to these. At 16 bytes a row and rank latency is what
/// counts. Its order of sums would also be that of the algorithm that NCCL picks.
template <class Exec>
class GatherExchange final : public StateExchange<Exec> {
 public:
  GatherExchange(const Exec& exec, int ranks, std::unique_ptr<StateGather> gather)
      : m_exec(exec), m_ranks(ranks), m_gather(std::move(gather)) {}
  ~GatherExchange() override { m_exec.fence("KokkosNN::mpi: gathers that are still under way"); }

  mpi::Transport transport() const override { return mpi::Transport::nccl; }
  char* memory(std::size_t bytes) const override { return m_own.of(m_exec, bytes); }
  void await(const char*) const override {}
  RankStates<ShardPair> exchanged(const char* function, ShardPair* states, std::int64_t n) const override {
    return gathered(function, states, n);
  }
  RankStates<ShardMoments> exchanged(const char* function, ShardMoments* states, std::int64_t n) const override {
    return gathered(function, states, n);
  }
  std::int64_t rows_a_block(std::int64_t all_rows) const override {
    constexpr std::int64_t most_bytes = std::int64_t(1) << 26, bytes_a_row = 3 * sizeof(ShardPair);
    return std::min(all_rows, std::max<std::int64_t>(1, most_bytes / (bytes_a_row * m_ranks)));
  }

 private:
  template <class State>
  RankStates<State> gathered(const char* function, State* states, std::int64_t n) const {
    if (m_ranks == 1) return {states, n, 1};
    const std::size_t bytes = static_cast<std::size_t>(n) * sizeof(State);
    char* const all         = m_all.of(m_exec, bytes * static_cast<std::size_t>(m_ranks));
    m_gather->gather(function, states, all, bytes);
    return {reinterpret_cast<State*>(all), n, m_ranks};
  }

  Exec m_exec;
  int m_ranks;
  std::unique_ptr<StateGather> m_gather;
  using Memory = GrowingMemory<typename Exec::memory_space, Exec>;
  mutable Memory m_own;
  mutable Memory m_all;
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_MPI_STATE_EXCHANGE_HPP
