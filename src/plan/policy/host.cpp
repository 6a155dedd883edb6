// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "policy.hpp"

#include <KokkosNN/impl/traits.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <set>
#include <string>

namespace KokkosNN::Impl {
namespace {

constexpr RegisterEntry rows[] = {
    {1, 1, 1},
    {2, 2, 1},
    {4, 4, 1},  // more go to scratch: 4096 x 256 f32 on two cores, 8 packs held 6.3 GB/s, in scratch 14.5
};
constexpr Keyed<RegisterTable> register_tables[] = {{{}, rows}};
constexpr Keyed<RegisterPolicy> registers[]      = {{{}, {}}};
constexpr Keyed<StagedPolicy> staged[]           = {{{}, {}}};

// Half of a second-level cache of 2 MB. Of gradients and norms nothing is computed on the way to the sum that a second
// read of a cached row would have to compute again.
constexpr Keyed<ScratchPolicy> scratch[] = {
    {{.op = is_gradient}, {.max_row_bytes = 0}},
    {{.op = is_norm}, {.max_row_bytes = 0}},
    {{}, {.max_row_bytes = std::size_t(1) << 20}},
};
constexpr Keyed<OnlinePolicy> online[]        = {{{}, {}}};
constexpr Keyed<ReductionPolicy> reductions[] = {{{}, {}}};
constexpr Keyed<SplitPolicy> split[]          = {{{}, {}}};
constexpr Keyed<SplitChoice> split_choice[]   = {{{}, {.min_cols = 16384}}};
constexpr Keyed<ClusterPolicy> clusters[]     = {{{}, {}}};
constexpr Keyed<InnerPolicy> inner[]          = {{{}, {}}};
constexpr Keyed<EvictionTable> evictions[]    = {{{}, {}}};
constexpr Keyed<PrefetchPolicy> prefetch[]    = {{{}, {}}};

// 64 MiB a tensor on two cores of an EPYC, GB/s, stored and streamed.
constexpr HostPolicy host_rows = {
    .elements_per_turn  = 65536,
    .inner_least_bytes  = 64,
    .inner_memory_bytes = 1024,
    // A third of a second-level cache of 1 MB, as results pass through that, too; else host_inner_share_bytes.
    //   LayoutLeft f32 softmax, two cores, GB/s
    //   1024 x 1024, in caches    | 295 kB kept 36.1           | 590 kB 32.7
    //   256 x 4096, in caches     | 295 kB kept 32.3           | 1180 kB 29.7
    //   4096 x 4096, from memory  | 2.4 MB kept 19.2           | 1.2 MB 17.0
    //   65536 x 256, from memory  | 1024 bytes side by side 25.4 | 2048 bytes 23.1
    .inner_cached_kept_bytes = std::int64_t(320) << 10,
    // softmax: f32 x 40 14.2 and 15, x 50 14.7 and 16.8, x 100 19.2 and 24, x 500 26 and 40, x 781 31 and 42; bf16 x 70
    // 15.1 and 12.5, x 100 about as fast, x 200 16.9 and 19.8
    .nontemporal_row_bytes = 192,
    // the same stored by rows that have lines in common with others than their neighbours: f32 x 300 23.6 and 20.5, x
    // 781 25.4 and 28.1
    .nontemporal_row_bytes_apart = 2048,
};
constexpr HostPolicy host_gradients = [] {
  HostPolicy policy = host_rows;
  // softmax_backward: f32 x 33 31 and 23, x 50 31 and 29, x 100 34 and 41, x 300 34 and 37, x 781 34 and 40; bf16 x 150
  // 38 and 29, x 300 35 and 30, x 500 36 and 40
  policy.nontemporal_row_bytes = 384;
  // bf16 x 781 47 and 34, x 3001 41 and 44; f32 x 781 48.7 and 46, x 3001 41 and 45
  policy.nontemporal_row_bytes_apart = 4096;
  return policy;
}();
constexpr Keyed<HostPolicy> host[] = {{{.op = is_gradient}, host_gradients}, {{}, host_rows}};

constexpr BackendPolicy policy{register_tables,
                               registers,
                               staged,
                               scratch,
                               online,
                               reductions,
                               split,
                               split_choice,
                               clusters,
                               inner,
                               evictions,
                               prefetch,
                               host};
static_assert(is_complete(policy));

}  // namespace

const BackendPolicy& host_policy() { return policy; }

namespace {

struct Caches {
  std::size_t bytes = 0;
  std::size_t cores = 0;  ///< that share them
};

/// Linux tells of each processor the size of its last-level cache ("32768K"), who shares it, and who shares its core.
/// (sysconf is of no use: in a virtual machine of two cores it told the 384 MB of the whole socket.)
Caches last_level_caches() {
  Caches all;
  std::set<std::string> caches, cores;
  for (int cpu = 0;; ++cpu) {
    const std::string processor = "/sys/devices/system/cpu/cpu" + std::to_string(cpu);
    std::ifstream size_file(processor + "/cache/index3/size"),
        sharers_file(processor + "/cache/index3/shared_cpu_list");
    std::ifstream core_file(processor + "/topology/thread_siblings_list");
    std::size_t size = 0;
    char unit        = ' ';
    std::string sharers, core;
    if (!(size_file >> size >> unit) || !(sharers_file >> sharers)) return all;
    if (caches.insert(sharers).second) all.bytes += size << (unit == 'K' ? 10 : unit == 'M' ? 20 : 0);
    if (!(core_file >> core)) core = std::to_string(cpu);
    if (cores.insert(core).second) ++all.cores;
  }
}

}  // namespace

std::size_t host_cache_bytes(int threads) {
  static const Caches caches = last_level_caches();
  const auto using_them      = static_cast<std::size_t>(std::max(threads, 1));
  return using_them < caches.cores ? caches.bytes / caches.cores * using_them : caches.bytes;
}

}  // namespace KokkosNN::Impl
