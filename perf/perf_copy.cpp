// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "provider.hpp"

#include <algorithm>
#include <cstring>

namespace KokkosNN::Perf {
namespace {

/// On a GPU the runtime's device-to-device copy. On a host one memcpy a thread: measured against Kokkos::deep_copy, a
/// RangePolicy and a TeamPolicy loop from 2 to 128 MiB a buffer it was the fastest or level with it.
void copy(const Exec& exec, const Bytes& to, const Bytes& from) {
  if constexpr (on_gpu) {
    Kokkos::deep_copy(exec, to, from);
  } else {
    const std::size_t bytes   = from.extent(0);
    const std::size_t threads = static_cast<std::size_t>(exec.concurrency());
    const std::size_t page    = 4096;
    const std::size_t share   = ((bytes + threads - 1) / threads + page - 1) / page * page;
    Kokkos::parallel_for("KokkosNN::Perf::copy", Kokkos::RangePolicy<Exec>(exec, 0, threads), [=](const std::size_t t) {
      const std::size_t begin = std::min(bytes, t * share);
      std::memcpy(to.data() + begin, from.data() + begin, std::min(bytes, begin + share) - begin);
    });
  }
}

}  // namespace

Contender make_copy(const Problem& problem) {
  const Exec exec   = problem.exec();
  const auto buffer = [&](const char* label) {
    const Bytes bytes = allocate(exec, label, problem.shape().bytes() / 2);
    fill_with_noise(exec, bytes);
    return bytes;
  };
  const Bytes from = buffer("KokkosNN::Perf::copy_from");
  const Bytes to   = buffer("KokkosNN::Perf::copy_to");
  return {.call     = [=] { copy(exec, to, from); },
          .plan     = on_gpu ? "device-to-device copy" : "memcpy a thread",
          .computes = false};
}

}  // namespace KokkosNN::Perf
