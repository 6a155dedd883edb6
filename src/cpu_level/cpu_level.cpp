// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "cpu_features.hpp"

#include <Kokkos_Core.hpp>

#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>

// Picks the level whose kernels a process runs. Compiled where there are several, for the lowest, beside the file of
// the CPU's architecture (cpu_features.hpp).

namespace KokkosNN::Impl {

using Initialiser = void (*)();

// The linker has these names for begin and end of what cmake/PrivateObjects.cmake makes of a level's initialisers: of
// variables in Kokkos' headers, of which a file that includes them has its own.
extern "C" {
#define KOKKOSNN_INITIALISERS(level)                                                                 \
  [[gnu::weak, gnu::visibility("hidden")]] extern const Initialiser __start_kokkosnn_init_##level[]; \
  [[gnu::weak, gnu::visibility("hidden")]] extern const Initialiser __stop_kokkosnn_init_##level[]
KOKKOSNN_INITIALISERS(x86_64_v3);
KOKKOSNN_INITIALISERS(x86_64_v4);
KOKKOSNN_INITIALISERS(sve_256);
KOKKOSNN_INITIALISERS(sve_512);
#undef KOKKOSNN_INITIALISERS
}

namespace {

/// The levels that kernels are compiled for, the lowest first.
constexpr CpuLevel compiled[] = {KOKKOSNN_CPU_LEVELS};

CpuLevel best_level() {
  CpuLevel best = compiled[0];
  for (const CpuLevel level : compiled) {
    if (cpu_has(level)) best = level;
  }
  return best;
}

/// Says why the level that KOKKOSNN_ISA names is not taken, and which one is.
void warn(std::string_view asked, const std::string& why, CpuLevel taken) {
  if (!Kokkos::show_warnings()) return;
  std::cerr << "KokkosNN: KOKKOSNN_ISA=" << asked << " is not followed: " << why << "; kernels for " << to_string(taken)
            << " run\n";
}

CpuLevel chosen_level() {
  const CpuLevel best = best_level();
  const char* value   = std::getenv("KOKKOSNN_ISA");
  if (value == nullptr || *value == '\0') return best;
  const std::string_view asked = value;
  std::string known;
  for (const CpuLevel level : compiled) {
    if (asked == to_string(level)) {
      if (cpu_has(level)) return level;
      warn(asked, "this CPU does not have all of its instructions", best);
      return best;
    }
    known += (known.empty() ? "" : ", ") + std::string(to_string(level));
  }
  warn(asked, "this library has kernels for " + known, best);
  return best;
}

void run_initialisers(const Initialiser* begin, const Initialiser* end) {
  for (; begin != end; ++begin) (*begin)();
}

/// Runs what the loader would have run for a level's objects. Those of the lowest level it has run.
void initialise(CpuLevel level) {
  switch (level) {
    case CpuLevel::x86_64:
    case CpuLevel::armv8_a:
      return;
    case CpuLevel::x86_64_v3:
      return run_initialisers(__start_kokkosnn_init_x86_64_v3, __stop_kokkosnn_init_x86_64_v3);
    case CpuLevel::x86_64_v4:
      return run_initialisers(__start_kokkosnn_init_x86_64_v4, __stop_kokkosnn_init_x86_64_v4);
    case CpuLevel::sve_256:
      return run_initialisers(__start_kokkosnn_init_sve_256, __stop_kokkosnn_init_sve_256);
    case CpuLevel::sve_512:
      return run_initialisers(__start_kokkosnn_init_sve_512, __stop_kokkosnn_init_sve_512);
  }
}

}  // namespace

const char* to_string(CpuLevel level) {
  switch (level) {
    case CpuLevel::x86_64:
      return "x86-64";
    case CpuLevel::x86_64_v3:
      return "x86-64-v3";
    case CpuLevel::x86_64_v4:
      return "x86-64-v4";
    case CpuLevel::armv8_a:
      return "armv8-a";
    case CpuLevel::sve_256:
      return "sve-256";
    case CpuLevel::sve_512:
      return "sve-512";
  }
  return "unknown";
}

CpuLevel cpu_level() {
  static const CpuLevel level = [] {
    const CpuLevel chosen = chosen_level();
    initialise(chosen);
    return chosen;
  }();
  return level;
}

}  // namespace KokkosNN::Impl
