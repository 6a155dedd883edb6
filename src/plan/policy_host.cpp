// SPDX-License-Identifier: Apache-2.0
#include "policy.hpp"

#include <KokkosNN/impl/device_traits.hpp>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <set>
#include <string>

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
  policy.max_scratch_row_bytes     = std::size_t(1) << 20;  // half of a second-level cache of 2 MB
  policy.split_team_size           = 1;
  policy.split_min_cols            = 16384;
  policy.inner_lanes               = 1;
  policy.inner_least_lanes         = 1;
  policy.inner_team_size           = 1;
  policy.inner_max_team_size       = 1;
  policy.inner_lanes_looping       = 1;
  policy.inner_least_lanes_looping = 1;
  policy.inner_looping_team_size   = 1;
  // softmax, 64 MiB a tensor on two cores, GB/s: bf16 x 300 17.7, streamed 8.9, x 781 18.8 and 13.6, x 3001 21 and 22;
  // f32 x 300 23.6 and 20.5, x 781 25.4 and 28.1
  policy.least_streamed_row_bytes  = 2048;
  policy.elements_per_turn         = 65536;
  return policy;
}

namespace {

/// Linux tells of each processor the size of its last-level cache ("32768K") and who shares it. (sysconf is of no use:
/// in a virtual machine of two cores it told the 384 MB of the whole socket.)
std::size_t sum_of_caches() {
  std::set<std::string> counted;
  std::size_t sum = 0;
  for (int cpu = 0;; ++cpu) {
    const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cache/index3/";
    std::ifstream size_file(folder + "size"), sharers_file(folder + "shared_cpu_list");
    std::size_t size = 0;
    char unit        = ' ';
    std::string sharers;
    if (!(size_file >> size >> unit) || !(sharers_file >> sharers)) return sum;
    if (counted.insert(sharers).second) sum += size << (unit == 'K' ? 10 : unit == 'M' ? 20 : 0);
  }
}

}  // namespace

std::size_t host_cache_bytes() {
  static const std::size_t bytes = sum_of_caches();
  return bytes;
}

}  // namespace KokkosNN::Impl
