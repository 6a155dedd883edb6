// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_SRC_MPI_NCCL_HPP
#define KOKKOSNN_SRC_MPI_NCCL_HPP

#include <KokkosNN/impl/mpi/state_gather.hpp>

#include <mpi.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>

// The calls of NCCL, on HIP of RCCL, which has the same functions. Without either nothing here but has_nccl is called.

namespace KokkosNN::Impl {

/// A device's numbers on its host, equal for two instances only if they are on one GPU.
using DeviceNumbers = std::array<std::int64_t, 2>;
DeviceNumbers numbers_of_device(const char* function, const VendorQueue& queue);

/// Number of a communicator of `parent` and of the instance's device that no gather has, or no_communicator. Equal
/// numbers on all ranks are one communicator.
inline constexpr std::int64_t no_communicator = -1;
std::int64_t idle_communicator(MPI_Comm parent, const VendorQueue& queue);

/// Gather by the idle communicator of a number, or by a new one. Collective. Where NCCL fails on any rank it is null on
/// all, and `failure` says on which, and why.
std::unique_ptr<StateGather> connected(const char* function, const PairExchange& ranks, MPI_Comm parent,
                                       const VendorQueue& queue, std::int64_t idle, std::string& failure);

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_SRC_MPI_NCCL_HPP
