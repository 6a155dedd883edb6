// SPDX-License-Identifier: Apache-2.0
#include "policy.hpp"

#include <cstddef>
#include <cstdint>

namespace KokkosNN::Impl {
namespace {

constexpr RegisterPolicy registers[] = {
    {1, 1, 1},
    {2, 2, 1},
    {4, 4, 1},  // more go to scratch: 4096 x 256 f32 on two cores, 8 packs held 6.3 GB/s, in scratch 14.5
};

}  // namespace

Policy policy_host(int) {
  Policy policy{};
  policy.registers                 = registers;
  policy.register_entries          = 3;
  policy.max_scratch_row_bytes     = std::size_t(1) << 20;  // half of a second-level cache of 2 MB
  policy.split_team_size           = 1;
  policy.split_min_cols            = 16384;
  policy.inner_lanes               = 1;
  policy.inner_least_lanes         = 1;
  policy.inner_max_team_size       = 1;
  policy.inner_least_lanes_looping = 1;
  policy.inner_looping_team_size   = 1;
  policy.elements_per_turn         = 4096;
  return policy;
}

}  // namespace KokkosNN::Impl
