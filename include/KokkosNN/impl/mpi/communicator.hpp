// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_MPI_COMMUNICATOR_HPP
#define KOKKOSNN_IMPL_MPI_COMMUNICATOR_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/vendor_queue.hpp>
#include <KokkosNN/impl/call/workspace.hpp>
#include <KokkosNN/impl/mpi/pair_exchange.hpp>
#include <KokkosNN/impl/mpi/rank_states.hpp>
#include <KokkosNN/impl/mpi/state_exchange.hpp>
#include <KokkosNN/impl/mpi/state_gather.hpp>

#include <Kokkos_Core.hpp>
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

// Communicator: the ranks that share rows, their exchange, and its buffers.

namespace KokkosNN::mpi {

/// Options of a communicator; equal on every rank.
struct CommunicatorOptions {
  bool deterministic =
      false;  ///< pairs are merged in an order that depends only on the number of ranks; by nccl always
  bool check          = true;  ///< every call first checks that all ranks are about to run an equal call
  Transport transport = Transport::automatic;
  std::int64_t block_rows =
      0;  ///< rows that are exchanged at a time; 0: by MPI from a device up to 4 blocks, of 1024 rows or more, else all
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
  /// Throws std::invalid_argument where options differ among ranks, on all of them, or where a rank asks for nccl and
  /// not all can; std::runtime_error where MPI or NCCL fails.
  Communicator(const Exec& exec, MPI_Comm comm, const CommunicatorOptions& options = {})
      : Communicator(exec, comm, options, nullptr) {}

  int rank() const { return m_ranks.rank(); }
  int size() const { return m_ranks.size(); }
  const Exec& exec() const { return m_exec; }
  const CommunicatorOptions& options() const { return m_options; }
  /// Transport in use: device, staged or nccl, the same on all ranks where it is nccl.
  Transport transport() const { return m_states->transport(); }

  /// Classes of this rank, which has `columns` columns, if the ranks hold a vocabulary in their order. Collective: call
  /// it once a split, not for every call.
  ClassRange classes(std::int64_t columns) const {
    const auto [before, all] = m_ranks.sums_before_and_all("mpi::Communicator::classes", columns);
    return {before, all};
  }

  /// Keys of this rank, which has so many, if the ranks hold a sequence in their order. Collective: call it once a
  /// split, not for every call.
  KeyRange keys(std::int64_t count) const {
    const auto [before, all] = m_ranks.sums_before_and_all("mpi::Communicator::keys", count);
    return {before, all};
  }

  // For the functions of mpi.hpp:

  /// As the constructor above, with another gather in place of NCCL's, as tests have one.
  Communicator(const Exec& exec, MPI_Comm comm, const CommunicatorOptions& options,
               std::unique_ptr<KokkosNN::Impl::StateGather> gather);

  const KokkosNN::Impl::PairExchange& ranks() const { return m_ranks; }
  const KokkosNN::Impl::StateExchange<Exec>& states() const { return *m_states; }

  /// Memory for n pairs, or states of another kind, of this rank's columns, which kernels write.
  template <class State = KokkosNN::Impl::ShardPair>
  State* pairs(std::int64_t n) const {
    return reinterpret_cast<State*>(m_states->memory(static_cast<std::size_t>(n) * sizeof(State)));
  }
  /// Memory that kernels and MPI can access; it may be the pairs', too.
  char* shared_memory(std::size_t bytes) const { return m_mpi_memory.of(bytes); }
  /// Transport of what goes by MPI in any case.
  Transport mpi_transport() const { return m_mpi_memory.transport(); }
  /// Memory on the device for a call.
  char* workspace(std::size_t bytes) const;

  /// Number of elements of the outermost axis in a block; each has `inner` rows.
  std::int64_t block_of(std::int64_t outer, std::int64_t inner) const;

 private:
  using Exchange = std::unique_ptr<const KokkosNN::Impl::StateExchange<Exec>>;

  void agree() const;
  Exchange made_exchange(MPI_Comm comm, std::unique_ptr<KokkosNN::Impl::StateGather> gather) const;

  Exec m_exec;
  CommunicatorOptions m_options;
  KokkosNN::Impl::PairExchange m_ranks;
  mutable KokkosNN::Impl::MpiMemory<Exec> m_mpi_memory;
  mutable KokkosNN::Impl::WorkspaceView<Exec> m_workspace;
  Exchange m_states;
};

template <Concepts::ExecutionSpace Exec>
Communicator<Exec>::Communicator(const Exec& exec, MPI_Comm comm, const CommunicatorOptions& options,
                                 std::unique_ptr<KokkosNN::Impl::StateGather> gather)
    : m_exec(exec), m_options(options), m_ranks(comm), m_mpi_memory(exec, options.transport) {
  agree();
  m_states = made_exchange(comm, std::move(gather));
}

template <Concepts::ExecutionSpace Exec>
void Communicator<Exec>::agree() const {
  using KokkosNN::Impl::SharedFact;
  const SharedFact facts[] = {{"the communicator's deterministic", m_options.deterministic},
                              {"the communicator's check", m_options.check},
                              {"the communicator's block_rows", m_options.block_rows}};
  std::exception_ptr refusal;
  if (m_options.block_rows < 0) {
    refusal = std::make_exception_ptr(
        std::invalid_argument("KokkosNN::mpi::Communicator: block_rows must not be negative, but is " +
                              std::to_string(m_options.block_rows)));
  }
  m_ranks.agree("mpi::Communicator", facts, refusal);
}

template <Concepts::ExecutionSpace Exec>
auto Communicator<Exec>::made_exchange(MPI_Comm comm, std::unique_ptr<KokkosNN::Impl::StateGather> gather) const
    -> Exchange {
  using KokkosNN::Impl::GatherExchange;
  using KokkosNN::Impl::MpiExchange;
  using KokkosNN::Impl::NcclUse;
  if (gather == nullptr) {
    const Transport asked = m_options.transport;
    const NcclUse use     = asked == Transport::nccl        ? NcclUse::demanded
                            : asked == Transport::automatic ? NcclUse::possible
                                                            : NcclUse::never;
    gather = KokkosNN::Impl::nccl_gather("mpi::Communicator", m_ranks, comm, KokkosNN::Impl::vendor_queue(m_exec), use);
  }
  if (gather != nullptr) return std::make_unique<GatherExchange<Exec>>(m_exec, size(), std::move(gather));
  return std::make_unique<MpiExchange<Exec>>(m_exec, m_ranks, m_mpi_memory, m_options.deterministic);
}

template <Concepts::ExecutionSpace Exec>
char* Communicator<Exec>::workspace(std::size_t bytes) const {
  KokkosNN::Impl::grow(m_exec, m_workspace, bytes);
  return m_workspace.data();
}

template <Concepts::ExecutionSpace Exec>
std::int64_t Communicator<Exec>::block_of(std::int64_t outer, std::int64_t inner) const {
  const std::int64_t rows = m_options.block_rows > 0 ? m_options.block_rows : m_states->rows_a_block(outer * inner);
  return std::clamp<std::int64_t>(rows / std::max<std::int64_t>(1, inner), 1, std::max<std::int64_t>(1, outer));
}

}  // namespace KokkosNN::mpi

#endif  // KOKKOSNN_IMPL_MPI_COMMUNICATOR_HPP
