// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_MPI_STATE_GATHER_HPP
#define KOKKOSNN_IMPL_MPI_STATE_GATHER_HPP

#include <KokkosNN/impl/call/vendor_queue.hpp>
#include <KokkosNN/impl/mpi/pair_exchange.hpp>
#include <KokkosNN/mpi_export.hpp>

#include <mpi.h>

#include <cstddef>
#include <memory>

// Gathers of the ranks' states on a device, by NCCL on CUDA and RCCL on HIP, where KokkosNN::mpi was built with it.

namespace KokkosNN::Impl {

/// Gather of all ranks' states in the order of an instance's kernels, for which the host does not wait.
class KOKKOSNN_MPI_EXPORT StateGather {
 public:
  StateGather()                              = default;
  virtual ~StateGather()                     = default;
  StateGather(const StateGather&)            = delete;
  StateGather& operator=(const StateGather&) = delete;

  /// Enqueues the copy of every rank's `bytes` bytes from `mine` to `all`, rank r's at r * bytes, on every rank.
  virtual void gather(const char* function, const void* mine, void* all, std::size_t bytes) const = 0;
};

/// Role of NCCL as one rank wants it.
enum class NcclUse { never, possible, demanded };

/// True if this library was built with NCCL (RCCL) for instances of the backend.
KOKKOSNN_MPI_EXPORT bool has_nccl(Backend backend);

/// Gather by NCCL on an instance, or null on all ranks where one of them has no NCCL, does not want it, or is on a GPU
/// that another rank has, which NCCL refuses; and where NCCL fails to connect the ranks, of which rank 0 warns. If a
/// rank demands it these are exceptions on all ranks: std::invalid_argument, and std::runtime_error where NCCL failed.
/// Collective over `parent`, of which `ranks` is a duplicate.
///
/// NCCL's communicators are attributes of `parent`, and destroyed with it, as making one takes some 100 ms. A gather
/// has one by itself as long as it lives: NCCL lets no two threads use one at a time.
KOKKOSNN_MPI_EXPORT std::unique_ptr<StateGather> nccl_gather(const char* function, const PairExchange& ranks,
                                                             MPI_Comm parent, const VendorQueue& queue, NcclUse use);

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_MPI_STATE_GATHER_HPP
