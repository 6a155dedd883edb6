// SPDX-License-Identifier: Apache-2.0
#include "policy.hpp"

#include <cstdint>

// Measured on one NVIDIA H200, 2026-11-20, cold L2: share of a device copy of the same bytes in the same run.

namespace KokkosNN::Impl {
namespace {

// double: 2 elements a pack
constexpr RegisterPolicy registers_v2[] = {
    {8, 2, 128},
    {4096, 4, 128},  // 65536 x 64: 0.73, with 2 packs 0.63; 8192 x 1024: 0.75, with 8 packs 0.62
    {8192, 8, 128},
};

// float, and mixed with 16 bits: 4 elements a pack
constexpr RegisterPolicy registers_v4[] = {
    {4, 2, 128},     // 1048576 x 16: 0.82, with 1 pack 0.60
    {128, 4, 128},   // 1048576 x 32: 0.89, with 1 pack 0.58; 65536 x 128: 0.92; 16384 x 512: 0.90
    {8192, 8, 128},  // 4096 x 4096: 0.93, with 4 packs 0.88; 4096 x 8192: 0.94, with 4 packs 0.81
};

// 16-bit types: 8 elements a pack
constexpr RegisterPolicy registers_v8[] = {
    {16, 2, 128},    // 65536 x 64: 0.79, with 1 pack 0.64
    {4096, 4, 128},  // 32768 x 256: 0.85, with 2 packs 0.77; 16384 x 4096: 0.86, with 2 packs 0.64
};

template <int n>
void set_registers(Policy& policy, const RegisterPolicy (&table)[n]) {
  policy.registers        = table;
  policy.register_entries = n;
}

}  // namespace

Policy policy_cuda(int pack) {
  Policy policy{};
  if (pack <= 2) {
    set_registers(policy, registers_v2);
  } else if (pack <= 4) {
    set_registers(policy, registers_v4);
  } else {
    set_registers(policy, registers_v8);
  }
  policy.scratch_packs_per_thread = 8;
  policy.max_scratch_row_bytes    = 0;  // never faster than registers
  policy.online_team_size         = 512;
  policy.split_team_size          = 256;
  policy.split_min_cols           = 16384;
  policy.inner_lanes              = 8;
  policy.inner_max_team_size      = 512;
  policy.elements_per_turn        = 1;
  return policy;
}

}  // namespace KokkosNN::Impl
