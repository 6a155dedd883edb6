// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
/// Facts that a result needs to be read later: machine, build, moment; and how much this machine can take.
#ifndef KOKKOSNN_PERF_MACHINE_HPP
#define KOKKOSNN_PERF_MACHINE_HPP

#include "timing.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace KokkosNN::Perf {

/// Facts in the order in which they are reported.
using Context = std::vector<std::pair<std::string, std::string>>;

Context machine_context(const Exec& exec);

/// The most bytes that one call of one shape moves here: far beyond the caches, within the memory, soon over.
std::int64_t traffic_limit(const Exec& exec, bool full);

}  // namespace KokkosNN::Perf

#endif  // KOKKOSNN_PERF_MACHINE_HPP
