// SPDX-License-Identifier: Apache-2.0
#include "policy.hpp"

// No AMD GPU was at hand. By rule, from what CDNA has: wavefronts of 64 lanes, 64 KB of LDS and 512 KB of registers a
// CU, twice the registers a thread of CUDA's at the same occupancy; so the CUDA tables hold a row just as well.

namespace KokkosNN::Impl {

Policy policy_hip(int pack) {
  Policy policy          = policy_cuda(pack);
  policy.split_team_size = 768;  // one team a CU is all that surely runs at once
  return policy;
}

}  // namespace KokkosNN::Impl
