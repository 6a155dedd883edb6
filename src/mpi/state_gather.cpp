// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/mpi/state_gather.hpp>

#include "../argument_error.hpp"
#include "nccl.hpp"

#include <Kokkos_Core.hpp>
#include <mpi.h>

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

// Decision of the ranks for NCCL or MPI: every rank tells all what it has, and all decide by the same numbers.

namespace KokkosNN::Impl {
namespace {

/// Reason why a rank cannot use NCCL.
enum class Obstacle : std::int64_t { none, not_built, not_wanted, unknown_device };

/// Facts of one rank that the others need to decide.
struct Offer {
  std::int64_t obstacle;
  std::int64_t is_demanded;
  std::int64_t host;
  DeviceNumbers device;
  std::int64_t idle;
};

Obstacle obstacle_of(const VendorQueue& queue, NcclUse use) {
  if (use == NcclUse::never) return Obstacle::not_wanted;
  return has_nccl(queue.backend) ? Obstacle::none : Obstacle::not_built;
}

std::int64_t number_of_host() {
  char name[MPI_MAX_PROCESSOR_NAME] = {};
  int length                        = 0;
  MPI_Get_processor_name(name, &length);
  const std::string_view text(name, static_cast<std::size_t>(length));
  return static_cast<std::int64_t>(std::hash<std::string_view>{}(text));
}

Offer offer_of(const char* function, MPI_Comm parent, const VendorQueue& queue, NcclUse use) {
  const Obstacle obstacle = obstacle_of(queue, use);
  Offer offer{static_cast<std::int64_t>(obstacle), use == NcclUse::demanded, number_of_host(), {}, no_communicator};
  if (obstacle != Obstacle::none) return offer;
  try {
    offer.device = numbers_of_device(function, queue);
    offer.idle   = idle_communicator(parent, queue);
  } catch (const std::exception&) {  // the others must hear of it
    offer.obstacle = static_cast<std::int64_t>(Obstacle::unknown_device);
  }
  return offer;
}

std::vector<Offer> all_offers(const char* function, const PairExchange& ranks, const Offer& mine) {
  using Words    = std::array<std::int64_t, sizeof(Offer) / sizeof(std::int64_t)>;
  const auto all = ranks.gathered(function, std::bit_cast<Words>(mine));
  std::vector<Offer> offers(static_cast<std::size_t>(ranks.size()));
  std::memcpy(offers.data(), all.data(), offers.size() * sizeof(Offer));
  return offers;
}

bool are_on_one_gpu(const Offer& a, const Offer& b) { return a.host == b.host && a.device == b.device; }

/// The reason why not all ranks can use NCCL; empty: they can.
std::string obstacle_among(const std::vector<Offer>& offers) {
  std::ostringstream text;
  for (std::size_t r = 0; r < offers.size(); ++r) {
    switch (static_cast<Obstacle>(offers[r].obstacle)) {
      case Obstacle::none:
        break;
      case Obstacle::not_built:
        text << "rank " << r << "'s library was built without NCCL for the rank's execution space";
        return text.str();
      case Obstacle::not_wanted:
        text << "rank " << r << " asks for another transport";
        return text.str();
      case Obstacle::unknown_device:
        text << "rank " << r << " cannot read the properties of its device";
        return text.str();
    }
  }
  for (std::size_t r = 0; r < offers.size(); ++r) {
    for (std::size_t other = 0; other < r; ++other) {
      if (!are_on_one_gpu(offers[r], offers[other])) continue;
      text << "ranks " << other << " and " << r << " are on one GPU";
      return text.str();
    }
  }
  return {};
}

/// The first rank that demands NCCL, or -1.
int demanding_rank(const std::vector<Offer>& offers) {
  for (std::size_t r = 0; r < offers.size(); ++r) {
    if (offers[r].is_demanded != 0) return static_cast<int>(r);
  }
  return -1;
}

/// The idle communicator that all ranks name, if they name one.
std::int64_t common_communicator(const std::vector<Offer>& offers) {
  for (const Offer& offer : offers) {
    if (offer.idle != offers[0].idle) return no_communicator;
  }
  return offers[0].idle;
}

}  // namespace

std::unique_ptr<StateGather> nccl_gather(const char* function, const PairExchange& ranks, MPI_Comm parent,
                                         const VendorQueue& queue, NcclUse use) {
  const auto offers     = all_offers(function, ranks, offer_of(function, parent, queue, use));
  const int demanding   = demanding_rank(offers);
  const auto head       = "rank " + std::to_string(demanding) + " asks for the transport nccl, but ";
  const auto obstacle   = obstacle_among(offers);
  const bool is_refused = !obstacle.empty();
  if (is_refused && demanding >= 0) (ArgumentError(function) << head << obstacle).raise();
  if (is_refused) return nullptr;
  std::string failure;
  auto gather = connected(function, ranks, parent, queue, common_communicator(offers), failure);
  if (gather != nullptr) return gather;
  if (demanding >= 0) throw std::runtime_error(std::string("KokkosNN::") + function + ": " + head + failure);
  if (ranks.rank() == 0 && Kokkos::show_warnings()) {
    std::cerr << "KokkosNN::" << function << ": " << failure << "; rows' states go by MPI\n";
  }
  return nullptr;
}

}  // namespace KokkosNN::Impl
