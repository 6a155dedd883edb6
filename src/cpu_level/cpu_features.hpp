// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_CPU_LEVEL_CPU_FEATURES_HPP
#define KOKKOSNN_CPU_LEVEL_CPU_FEATURES_HPP

#include <KokkosNN/impl/call/cpu_levels.hpp>

// Instructions of the CPU at hand: x86_64.cpp and aarch64.cpp ask it, each for its own levels.

namespace KokkosNN::Impl {

/// True if the CPU has all instructions of a level, and the system saves their registers.
bool cpu_has(CpuLevel level);

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_CPU_LEVEL_CPU_FEATURES_HPP
