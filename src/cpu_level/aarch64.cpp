// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "cpu_features.hpp"

#include <sys/auxv.h>
#include <sys/prctl.h>

#include <asm/hwcap.h>

namespace KokkosNN::Impl {
namespace {

/// Bytes of this thread's vectors, 0 without SVE. Kernels of a level are compiled for one width: on wider vectors they
/// are wrong, too, as what they take for a whole vector is a part of it.
int sve_bytes() {
  if ((getauxval(AT_HWCAP) & HWCAP_SVE) == 0) return 0;
  const int length = prctl(PR_SVE_GET_VL);
  return length < 0 ? 0 : length & PR_SVE_VL_LEN_MASK;
}

}  // namespace

bool cpu_has(CpuLevel level) {
  return level == CpuLevel::armv8_a || (level == CpuLevel::sve_256 && sve_bytes() == 32) ||
         (level == CpuLevel::sve_512 && sve_bytes() == 64);
}

}  // namespace KokkosNN::Impl
