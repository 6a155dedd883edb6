// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_CPU_LEVELS_HPP
#define KOKKOSNN_IMPL_CALL_CPU_LEVELS_HPP

#include <KokkosNN/impl/call/compiled_calls.hpp>

// The way of a compiled call to the kernels of the CPU at hand. A library for any x86-64, or for any AArch64, holds its
// calls for several levels of it: cmake/CpuLevels.cmake compiles them, and src/cpu_level/cpu_level.cpp picks one.

namespace KokkosNN::Impl {

/// Levels of x86-64 by their names in its ABI: with SSE2, with AVX2 and fused operations, with AVX-512. Levels of
/// AArch64: with NEON, which all have, and with SVE of 256 and of 512 bits.
enum class CpuLevel { x86_64, x86_64_v3, x86_64_v4, armv8_a, sve_256, sve_512 };

/// The name that compilers and KOKKOSNN_ISA have for a level: "x86-64-v3".
const char* to_string(CpuLevel level);

/// The level whose kernels run in this process: the best that this CPU has, or the one that KOKKOSNN_ISA asks for. Only
/// a library of several levels has this function.
CpuLevel cpu_level();

template <CpuLevel...>
struct CpuLevels {};

/// Levels that a call is compiled for besides that of the build's flags; of the library's calls alone it may be some.
template <class Call>
inline constexpr CpuLevels<> levels_of{};

/// A call's kernels for one level.
template <class Call, CpuLevel level, class Run = decltype(Call::run)>
struct LevelCall;
template <class Call, CpuLevel level, class... Args>
struct LevelCall<Call, level, void(Args...)> {
  /// Not inline: cmake/CpuLevels.cmake finds it by its name, and makes all else in an object file of a level private.
  static void run(Args... args);
};
template <class Call, CpuLevel level, class... Args>
void LevelCall<Call, level, void(Args...)>::run(Args... args) {
  Launcher<Call>::run(args...);
}

template <class Call, CpuLevel... levels, class... Args>
void run_on_level(CpuLevels<levels...>, const Args&... args) {
  if constexpr (sizeof...(levels) > 0) {
    const CpuLevel level = cpu_level();
    if (((level == levels && (LevelCall<Call, levels>::run(args...), true)) || ...)) return;
  }
  Launcher<Call>::run(args...);
}

/// Runs a compiled call with the kernels of this process' level.
template <class Call, class... Args>
void run_compiled(const Args&... args) {
  run_on_level<Call>(levels_of<Call>, args...);
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_CPU_LEVELS_HPP
