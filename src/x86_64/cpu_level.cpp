// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/call/cpu_levels.hpp>

#include <Kokkos_Core.hpp>

#include <cpuid.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>

// Picks the level of x86-64 whose kernels a process runs. Compiled where there are several, for the lowest.

namespace KokkosNN::Impl {

using Initialiser = void (*)();

// The linker has these names for begin and end of what cmake/PrivateObjects.cmake makes of a level's initialisers: of
// variables in Kokkos' headers, of which a file that includes them has its own.
extern "C" {
[[gnu::weak, gnu::visibility("hidden")]] extern const Initialiser __start_kokkosnn_init_x86_64_v3[];
[[gnu::weak, gnu::visibility("hidden")]] extern const Initialiser __stop_kokkosnn_init_x86_64_v3[];
[[gnu::weak, gnu::visibility("hidden")]] extern const Initialiser __start_kokkosnn_init_x86_64_v4[];
[[gnu::weak, gnu::visibility("hidden")]] extern const Initialiser __stop_kokkosnn_init_x86_64_v4[];
}

namespace {

/// The levels that kernels are compiled for, the lowest first.
constexpr CpuLevel compiled[] = {CpuLevel::x86_64, KOKKOSNN_CPU_LEVELS};

bool has_v3() {
  unsigned a = 0, b = 0, c = 0, d = 0, extended = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || __get_cpuid(0x80000001, &a, &b, &extended, &d) == 0) return false;
  // The compiler's tests ask the system, too, if it saves the registers.
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("bmi2") && (c & bit_F16C) != 0 && (c & bit_MOVBE) != 0 && (extended & bit_LZCNT) != 0;
}

bool has_v4() {
  return has_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

bool cpu_has(CpuLevel level) {
  switch (level) {
    case CpuLevel::x86_64:
      return true;
    case CpuLevel::x86_64_v3:
      return has_v3();
    case CpuLevel::x86_64_v4:
      return has_v4();
  }
  return false;
}

CpuLevel best_level() {
  CpuLevel best = CpuLevel::x86_64;
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
  __builtin_cpu_init();
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

}  // namespace

const char* to_string(CpuLevel level) {
  switch (level) {
    case CpuLevel::x86_64:
      return "x86-64";
    case CpuLevel::x86_64_v3:
      return "x86-64-v3";
    case CpuLevel::x86_64_v4:
      return "x86-64-v4";
  }
  return "unknown";
}

CpuLevel cpu_level() {
  static const CpuLevel level = [] {
    const CpuLevel chosen = chosen_level();
    if (chosen == CpuLevel::x86_64_v3) {
      run_initialisers(__start_kokkosnn_init_x86_64_v3, __stop_kokkosnn_init_x86_64_v3);
    }
    if (chosen == CpuLevel::x86_64_v4) {
      run_initialisers(__start_kokkosnn_init_x86_64_v4, __stop_kokkosnn_init_x86_64_v4);
    }
    return chosen;
  }();
  return level;
}

}  // namespace KokkosNN::Impl
