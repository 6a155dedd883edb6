// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_ATTENTION_ROW_TABLE_HPP
#define KOKKOSNN_IMPL_GPU_ATTENTION_ROW_TABLE_HPP

#include <KokkosNN/impl/gpu/device/matrix_instructions.hpp>
#include <KokkosNN/impl/gpu/device/warp.hpp>
#include <KokkosNN/impl/gpu/warpgroup_heads.hpp>
#include <KokkosNN/impl/inputs/attention_tensors.hpp>
#include <KokkosNN/impl/math/exp.hpp>
#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

// A table of the rows of scores, which the kernels of attention's gradients on Hopper's warpgroups read: what a row
// sees, its log-sum-exp, and delta, the sum of o dout.

namespace KokkosNN::Impl {

/// An entry; a row that sees nothing has no keys.
struct alignas(16) AttentionRow {
  int begin;  ///< keys that the row sees
  int end;
  float lse;  ///< in powers of two
  float delta;
};

/// An entry with the row's part of a mask's elements.
template <class X, bool has_elements>
struct GradientRow : AttentionRow {
  typename ScoreElements<X, float>::Row elements;
};
template <class X>
struct GradientRow<X, false> : AttentionRow {};

/// Makes the table, in the order of delta (`delta_strides`), and delta itself. A team takes a block of rows of a head,
/// 16 threads a row at a time: rows of o and dout are units of eight elements.
template <class X, bool has_elements>
struct AttentionRowTable {
  using Row                            = GradientRow<X, has_elements>;
  static constexpr int rows            = 64;
  static constexpr int team_size       = 128;
  static constexpr int resident        = 8;
  static constexpr int threads         = 16;  ///< of a row
  static constexpr int unit            = 8;
  static constexpr std::size_t scratch = rows * sizeof(float) + 16;

  AttentionGradientData<X> data;
  Row* table;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    constexpr std::size_t bytes = rows * sizeof(float);
    float* const deltas         = static_cast<float*>(team.team_scratch(0).get_shmem_aligned(bytes, 16));
    const int rank              = static_cast<int>(team.team_rank());
    const std::int64_t heads = heads_of_rows(data.shape), count = data.shape.head_blocks(rows);
    for (std::int64_t n = team.league_rank(); n < count; n += team.league_size()) {
      const RowBlock block = head_block<rows>(data, n % heads, n / heads);
      if (block.left <= 0) continue;
      for (int r = rank / threads; r < rows; r += team_size / threads) {
        const bool is_row  = r < block.left;
        const ScoreRow row = block.template row<rows>(is_row ? r : 0);
        float sum          = 0;
        for (std::int64_t d = rank % threads * unit; d < data.shape.value_dim; d += threads * unit) {
          sum += product_of_units(data.o + row.in(data.o_strides) + d, data.dout + row.in(data.dout_strides) + d);
        }
        KOKKOSNN_IMPL_UNROLL
        for (int mask = 1; mask < threads; mask *= 2) sum += shuffle_xor(sum, mask);
        if (rank % threads == 0) deltas[r] = sum;
      }
      team.team_barrier();
      if (rank < rows && rank < block.left) write(block.template row<rows>(rank), deltas[rank]);
      team.team_barrier();
    }
  }

 private:
  struct alignas(16) Unit {
    X value[unit];
  };
  KOKKOS_FUNCTION static float product_of_units(const X* a, const X* b) {
    const Unit of_a = *reinterpret_cast<const Unit*>(a), of_b = *reinterpret_cast<const Unit*>(b);
    float sum = 0;
    KOKKOSNN_IMPL_UNROLL
    for (int i = 0; i < unit; ++i) sum += static_cast<float>(of_a.value[i]) * static_cast<float>(of_b.value[i]);
    return sum;
  }
  KOKKOS_FUNCTION void write(const ScoreRow& row, float delta) const {
    const Sequence sequence = data.sequence(row.batch);
    const ColumnRange seen  = data.keys_of(row, sequence, 0);
    const float lse         = data.lse[row.in(data.lse_strides)];
    const bool sees         = lse != -Kokkos::Experimental::infinity_v<float>;
    const std::int64_t at   = row.in(data.delta_strides);
    data.delta[at]          = delta;
    Row& entry              = table[at];
    entry.begin             = sees ? static_cast<int>(seen.begin) : 0;
    entry.end               = sees ? static_cast<int>(seen.end) : 0;
    entry.lse               = lse * log2_of_e<float>;
    entry.delta             = delta;
    if constexpr (has_elements) entry.elements = data.mask_of(row, sequence);
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_ATTENTION_ROW_TABLE_HPP
