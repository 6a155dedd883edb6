// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "cpu_features.hpp"

#include <cpuid.h>

namespace KokkosNN::Impl {
namespace {

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

}  // namespace

bool cpu_has(CpuLevel level) {
  __builtin_cpu_init();
  return level == CpuLevel::x86_64 || (level == CpuLevel::x86_64_v3 && has_v3()) ||
         (level == CpuLevel::x86_64_v4 && has_v4());
}

}  // namespace KokkosNN::Impl
