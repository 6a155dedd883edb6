// SPDX-License-Identifier: Apache-2.0
#include "policy.hpp"

#include <cstdint>

// Measured on one NVIDIA H200, 2026-11-20, cold L2: share of a device copy of the same bytes in the same run.

namespace KokkosNN::Impl {
namespace {

// double: 2 elements a pack
constexpr RegisterPolicy registers_v2[] = {
    {8, 2, 128},
    {8192, 8, 128},  // 65536 x 64: 0.85, with 4 packs 0.78; 8192 x 1024: 0.93, with 4 packs 0.74; 8192 x 8192: 0.87
};

// float, and mixed with 16 bits: 4 elements a pack
constexpr RegisterPolicy registers_v4[] = {
    {4, 2, 128},     // 1048576 x 16: 0.86, with 1 pack 0.60
    {128, 4, 128},   // 1048576 x 32: 0.94, with 1 pack 0.58; 65536 x 128: 0.94; 16384 x 512: 0.92
    {8192, 8, 128},  // 4096 x 4096: 0.95, with 4 packs 0.88; 4096 x 32768: 0.90, by split_row 0.87
};

// 16-bit types: 8 elements a pack
constexpr RegisterPolicy registers_v8[] = {
    {16, 2, 128},    // 65536 x 64: 0.86, with 1 pack 0.64
    {3072, 4, 128},  // 32768 x 256: 0.92; 16384 x 4096: 0.96; 16384 x 32768 would be 0.74, and is 0.77 by split_row
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
  policy.scratch_packs_per_thread = 4;
  policy.scratch_team_size        = 256;  // 4096 x 8192 f32: 0.77, with 512 0.67
  policy.max_scratch_row_bytes    = 0;    // never faster than registers
  policy.online_team_size         = 384;  // two teams a multiprocessor
  policy.split_team_size          = 256;  // 2048 x 65536 f32: 0.85, with 128 0.85, with 384 0.80, with 768 0.76
  policy.split_min_cols           = 16384;
  policy.inner_lanes              = 8;
  policy.inner_max_team_size      = 512;
  policy.elements_per_turn        = 1;
  return policy;
}

}  // namespace KokkosNN::Impl
