// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_MPI_COMMUNICATOR_HPP
#define KOKKOSNN_IMPL_MPI_COMMUNICATOR_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/workspace.hpp>
#include <KokkosNN/impl/mpi/launch.hpp>
#include <KokkosNN/impl/mpi/pair_exchange.hpp>
#include <KokkosNN/impl/traits.hpp>

#include <Kokkos_Core.hpp>
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>

// Communicator: the ranks that share rows, its buffers, and the memory that MPI gets pointers to.

namespace KokkosNN::mpi {

/// Memory that MPI gets pointers to.
enum class Transport {
  /// device if the MPI says at run time that it takes such pointers, or there is no other memory; else staged
  automatic,
  device,  ///< memory of the execution space
  staged   ///< pinned memory of the host, which kernels write to and read from
};

/// Options of a communicator; equal on every rank.
struct CommunicatorOptions {
  bool deterministic  = false;  ///< pairs are merged in an order that depends only on the number of ranks
  bool check          = true;   ///< every call first checks that all ranks are about to run an equal call
  Transport transport = Transport::automatic;
  std::int64_t block_rows =
      0;  ///< rows that are exchanged at a time; 0: on a device up to 4 blocks, of 1024 rows or more
};

/// Classes of a rank's columns among all: those from number `first` on.
struct ClassRange {
  std::int64_t first = 0;
  std::int64_t all   = 0;
};

/// Keys of a rank's part of k and v among all: those from number `first` on.
struct KeyRange {
  std::int64_t first = 0;
  std::int64_t all   = 0;
};

/// Ranks that share rows, and the resources of their calls: an execution-space instance, a duplicate of the MPI
/// communicator, and buffers that only grow.
///
/// Constructing and destroying it is collective over the communicator; it must be gone before MPI_Finalize and
/// Kokkos::finalize. MPI must be initialised. One call at a time.
template <Concepts::ExecutionSpace Exec>
class Communicator {
 public:
  /// \param exec     every call is on this instance
  /// \param comm     the ranks
  /// \param options  see CommunicatorOptions
  ///
  /// Throws std::invalid_argument where options differ among ranks, on all of them; std::runtime_error where MPI fails.
  Communicator(const Exec& exec, MPI_Comm comm, const CommunicatorOptions& options = {});

  int rank() const { return m_exchange.rank(); }
  int size() const { return m_exchange.size(); }
  const Exec& exec() const { return m_exec; }
  const CommunicatorOptions& options() const { return m_options; }
  /// Transport in use: device or staged.
  Transport transport() const { return m_transport; }

  /// Classes of this rank, which has `columns` columns, if the ranks hold a vocabulary in their order. Collective: call
  /// it once a split, not for every call.
  ClassRange classes(std::int64_t columns) const {
    const auto [before, all] = m_exchange.sums_before_and_all("mpi::Communicator::classes", columns);
    return {before, all};
  }

  /// Keys of this rank, which has so many, if the ranks hold a sequence in their order. Collective: call it once a
  /// split, not for every call.
  KeyRange keys(std::int64_t count) const {
    const auto [before, all] = m_exchange.sums_before_and_all("mpi::Communicator::keys", count);
    return {before, all};
  }

  // For the functions of mpi.hpp:

  const KokkosNN::Impl::PairExchange& exchange() const { return m_exchange; }

  /// Memory for n pairs, or states of another kind, which kernels and MPI can access, and memory on the device for a
  /// call.
  template <class State = KokkosNN::Impl::ShardPair>
  State* pairs(std::int64_t n) const;
  /// Memory that kernels and MPI can access; it is the pairs', too.
  char* shared_memory(std::size_t bytes) const;
  char* workspace(std::size_t bytes) const;

  /// Replaces n states from `first` on by their merge over all ranks. They must be complete: `exec` was fenced.
  template <class State>
  void merge(const char* function, State* first, std::int64_t n) const;

  /// Number of elements of the outermost axis in a block; each has `inner` rows.
  std::int64_t block_of(std::int64_t outer, std::int64_t inner) const;

 private:
  using Pair        = KokkosNN::Impl::ShardPair;
  using DevicePairs = Kokkos::View<Pair*, typename Exec::memory_space>;
  using StagedPairs = Kokkos::View<Pair*, Kokkos::SharedHostPinnedSpace>;

  /// Merger of states in either memory.
  template <class State>
  struct Merger : KokkosNN::Impl::StateMerger<State> {
    const Communicator& comm;

    explicit Merger(const Communicator& c) : comm(c) {}
    void merge(State* into, const State* from, std::int64_t n) const override;
  };

  static Transport found(Transport asked) {
    constexpr bool is_host = Kokkos::SpaceAccessibility<Kokkos::HostSpace, typename Exec::memory_space>::accessible;
    if (asked != Transport::automatic) return asked;
    return is_host || KokkosNN::Impl::mpi_takes_device_pointers(KokkosNN::Impl::backend_of<Exec>()) ? Transport::device
                                                                                                    : Transport::staged;
  }

  Exec m_exec;
  CommunicatorOptions m_options;
  Transport m_transport;
  KokkosNN::Impl::PairExchange m_exchange;
  mutable DevicePairs m_device_pairs;
  mutable StagedPairs m_staged_pairs;
  mutable KokkosNN::Impl::WorkspaceView<Exec> m_workspace;
};

template <Concepts::ExecutionSpace Exec>
Communicator<Exec>::Communicator(const Exec& exec, MPI_Comm comm, const CommunicatorOptions& options)
    : m_exec(exec), m_options(options), m_transport(found(options.transport)), m_exchange(comm) {
  using KokkosNN::Impl::SharedFact;
  const SharedFact facts[] = {{"the communicator's deterministic", options.deterministic},
                              {"the communicator's check", options.check},
                              {"the communicator's block_rows", options.block_rows}};
  std::exception_ptr refusal;
  if (options.block_rows < 0) {
    refusal = std::make_exception_ptr(std::invalid_argument(
        "KokkosNN::mpi::Communicator: block_rows must not be negative, but is " + std::to_string(options.block_rows)));
  }
  m_exchange.agree("mpi::Communicator", facts, refusal);
}

template <Concepts::ExecutionSpace Exec>
template <class State>
State* Communicator<Exec>::pairs(std::int64_t n) const {
  // States that ranks send each other in the deterministic mode lie behind.
  const std::size_t bytes = static_cast<std::size_t>(n) * sizeof(State);
  const std::size_t half  = (bytes + sizeof(Pair) - 1) / sizeof(Pair) * sizeof(Pair);
  return reinterpret_cast<State*>(shared_memory(m_options.deterministic ? 2 * half : half));
}

template <Concepts::ExecutionSpace Exec>
char* Communicator<Exec>::shared_memory(std::size_t bytes) const {
  const std::size_t wanted = (bytes + sizeof(Pair) - 1) / sizeof(Pair);
  const auto grow          = [&](auto& view) {
    using Pairs = std::decay_t<decltype(view)>;
    if (view.extent(0) < wanted) {
      m_exec.fence("KokkosNN::mpi: pairs that are too few");
      view = Pairs(Kokkos::view_alloc(Kokkos::WithoutInitializing, "KokkosNN::mpi::pairs"), wanted);
    }
    return reinterpret_cast<char*>(view.data());
  };
  return m_transport == Transport::device ? grow(m_device_pairs) : grow(m_staged_pairs);
}

template <Concepts::ExecutionSpace Exec>
char* Communicator<Exec>::workspace(std::size_t bytes) const {
  KokkosNN::Impl::grow(m_exec, m_workspace, bytes);
  return m_workspace.data();
}

template <Concepts::ExecutionSpace Exec>
template <class State>
void Communicator<Exec>::merge(const char* function, State* first, std::int64_t n) const {
  if (!m_options.deterministic) return m_exchange.reduce(function, first, n);
  const bool is_device   = m_transport == Transport::device;
  Pair* const begin      = is_device ? m_device_pairs.data() : m_staged_pairs.data();
  const std::size_t half = (is_device ? m_device_pairs.extent(0) : m_staged_pairs.extent(0)) / 2;
  m_exchange.reduce_in_order(function, first, reinterpret_cast<State*>(begin + half), n, Merger<State>(*this));
}

template <Concepts::ExecutionSpace Exec>
template <class State>
void Communicator<Exec>::Merger<State>::merge(State* into, const State* from, std::int64_t n) const {
  const KokkosNN::Impl::MergeStates<State> merge_one{into, from};
  if (comm.m_transport == Transport::staged) {
    for (std::int64_t i = 0; i < n; ++i) merge_one(i);
  } else {
    KokkosNN::Impl::for_each_row(comm.m_exec, "KokkosNN::mpi[merge]", n, merge_one);
    comm.m_exec.fence("KokkosNN::mpi: pairs that are sent on");
  }
}

template <Concepts::ExecutionSpace Exec>
std::int64_t Communicator<Exec>::block_of(std::int64_t outer, std::int64_t inner) const {
  // A host has no work beside its kernels. On a device a block should take at least as long as MPI and a fence. The
  // number of rows decides: it is all that ranks surely have in common.
  constexpr bool is_host        = KokkosNN::Impl::backend_of<Exec>() == Backend::host;
  constexpr std::int64_t blocks = 4, least_rows = 1024;
  std::int64_t rows = m_options.block_rows;
  if (rows == 0) rows = is_host ? outer * inner : std::max(least_rows, outer * inner / blocks);
  return std::clamp<std::int64_t>(rows / std::max<std::int64_t>(1, inner), 1, std::max<std::int64_t>(1, outer));
}

}  // namespace KokkosNN::mpi

#endif  // KOKKOSNN_IMPL_MPI_COMMUNICATOR_HPP
