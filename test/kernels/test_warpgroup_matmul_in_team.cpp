// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/warpgroup_emulation.hpp"

#include <KokkosNN/impl/call/matmul_plan.hpp>
#include <KokkosNN/impl/call/warpgroup_matmul_launch.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

// The kernel of matrix products on Hopper's warpgroups in emulated teams.

namespace KokkosNNTest {
namespace {

namespace Impl = KokkosNN::Impl;
using KokkosNN::bhalf_t;
using KokkosNN::half_t;

struct AddAll {
  template <class A, class... In>
  A operator()(A sum, In... in) const {
    return (sum + ... + in);
  }
};

constexpr std::int64_t batches = 2, rows = 200, cols = 300, inner = 152;

/// Matrices of `row_count` x `col_count`, row by row or column by column; what is not theirs is NaN.
template <class E>
struct Matrices {
  std::vector<E> memory;
  E* data;
  std::int64_t row_stride, col_stride, batch_stride;

  Matrices(std::int64_t row_count, std::int64_t col_count, bool by_rows, std::int64_t unit, unsigned seed) {
    const std::int64_t lines = by_rows ? row_count : col_count, length = by_rows ? col_count : row_count;
    const std::int64_t stride = (length + unit - 1) / unit * unit + unit;
    row_stride                = by_rows ? stride : 1;
    col_stride                = by_rows ? 1 : stride;
    batch_stride              = lines * stride;
    memory.assign(static_cast<std::size_t>(batches * batch_stride) + 16, E(NAN));
    data = memory.data();
    while (reinterpret_cast<std::uintptr_t>(data) % 16 != 0) ++data;
    std::mt19937 random(seed);
    for (std::int64_t b = 0; b < batches; ++b) {
      for (std::int64_t r = 0; r < row_count; ++r) {
        for (std::int64_t c = 0; c < col_count; ++c) at(b, r, c) = E(float(static_cast<int>(random() % 9) - 4) / 4);
      }
    }
  }
  E& at(std::int64_t b, std::int64_t r, std::int64_t c) {
    return data[b * batch_stride + r * row_stride + c * col_stride];
  }
};

/// Runs a league of three teams, which take tiles in turn, and compares: sums of the small numbers are exact. One b
/// serves both batches; a bias by column, one by row, and c itself are added. Units of c's rows are 16 bytes, or not.
template <class T, class C, bool a_across, bool b_along>
void expect_exact(float beta, std::int64_t unit_of_c) {
  using Results = Impl::MatmulResults<C, Impl::ElementTypes<T, T, C>>;
  using Kernel  = Impl::MatmulInWarpgroups<T, a_across, b_along, AddAll, float, Results, EmulatedHopper>;
  Matrices<T> a(rows, inner, !a_across, 8, 1), b(inner, cols, !b_along, 8, 2), by_col(1, cols, true, 8, 3),
      by_row(rows, 1, true, 1, 4);
  Matrices<C> c(rows, cols, true, unit_of_c, 5);
  Matrices<C> before = c;
  before.data        = before.memory.data() + (c.data - c.memory.data());

  Impl::MatmulLayout layout;
  layout.batches = layout.extent[0] = batches;
  layout.rows                       = rows;
  layout.cols                       = cols;
  layout.inner                      = inner;
  layout.n                          = 1;
  const auto set = [&](int number, const auto& x, std::int64_t row, std::int64_t col, std::int64_t batch) {
    layout.data[number]       = x.data;
    layout.row_stride[number] = row;
    layout.col_stride[number] = col;
    layout.stride[number][0]  = batch;
  };
  set(0, c, c.row_stride, 1, c.batch_stride);
  set(1, a, a.row_stride, a.col_stride, a.batch_stride);
  set(2, b, b.row_stride, b.col_stride, 0);
  set(3, by_col, 0, 1, by_col.batch_stride);
  set(4, by_row, by_row.row_stride, 0, by_row.batch_stride);
  set(5, c, c.row_stride, 1, c.batch_stride);

  KokkosNN::DeviceTraits traits;
  traits.backend         = KokkosNN::Backend::cuda;
  traits.multiprocessors = 3;
  Impl::MatmulKernelShape shape{128, 128, 32, 2, 128, 64 * 1024, true};
  const auto plan = Impl::make_matmul_plan(
      "matmul", Impl::element_type<T>(), {.tuning = {.tier = KokkosNN::MatmulTier::warpgroups}}, layout, shape, traits);
  ASSERT_TRUE(plan.is_on_warpgroups);
  ASSERT_EQ(plan.a_across, a_across);
  ASSERT_EQ(plan.b_along, b_along);
  ASSERT_EQ(plan.league_size, 3);

  Results results;
  for (int t = 0; t < Results::count; ++t) {
    const int number      = t == 0 ? 0 : 2 + t;
    results.data[t]       = const_cast<void*>(layout.data[number]);
    results.row_stride[t] = layout.row_stride[number];
    results.col_stride[t] = layout.col_stride[number];
    results.batch[t]      = layout.map(number);
  }
  Impl::MatmulData<T> data;
  data.batches    = batches;
  data.rows       = rows;
  data.cols       = cols;
  data.inner      = inner;
  data.row_blocks = plan.row_blocks;
  data.col_blocks = plan.col_blocks;
  data.group      = 2;
  Kernel kernel{};
  const bool has_units = Impl::has_units_of<Results>(layout);
  EXPECT_EQ(has_units, unit_of_c % 8 == 0);
  Impl::set_warpgroup_kernel(kernel, layout, data, Impl::MatmulEpilogue<AddAll, float>{{}, 0.5f, beta}, results,
                             [](const Impl::BoxedTensor& tensor) { return EmulatedMap{tensor}; });
  for (int league = 0; league < 3; ++league) {
    EmulatedTeam team(Kernel::team_size, 32, Kernel::Tile::scratch, static_cast<std::uint32_t>(league));
    EmulatedWarpgroups warpgroups;
    team.run([&](int rank) { kernel(EmulatedMember{league, 3, rank}); });
  }
  for (std::int64_t n = 0; n < batches; ++n) {
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < cols; ++j) {
        double expected =
            (beta + 1) * double(before.at(n, i, j)) + double(by_col.at(n, 0, j)) + double(by_row.at(n, i, 0));
        for (std::int64_t k = 0; k < inner; ++k) expected += 0.5 * double(a.at(n, i, k)) * double(b.at(0, k, j));
        ASSERT_EQ(double(c.at(n, i, j)), double(static_cast<C>(float(expected)))) << n << ' ' << i << ' ' << j;
      }
      for (std::int64_t j = cols; j < c.row_stride; ++j)
        ASSERT_TRUE(std::isnan(double(c.at(n, i, j)))) << "behind a row";
    }
  }
}

TEST(WarpgroupMatmul, IsExactInEveryFormByUnitsAndElementByElement) {
  expect_exact<bhalf_t, bhalf_t, false, false>(0, 8);
  expect_exact<half_t, half_t, false, true>(2, 8);
  expect_exact<bhalf_t, float, true, false>(-1, 8);
  expect_exact<bhalf_t, bhalf_t, true, true>(-1, 1);
}

TEST(WarpgroupMatmul, DescribesTilesAsThePtxIsaDoes) {
  // Address and distances in units of 16 bytes, the order of 128 bytes in the highest two bits.
  static_assert(Impl::warpgroup_tile(0x12400, 8192) ==
                (0x1240ull | 512ull << 16 | 64ull << 32 | std::uint64_t(1) << 62));
  EXPECT_EQ(Impl::warpgroup_tile(0x3fc00, 0) & 0x3fff, 0x3fc0u) << "an address has 18 bits";
}

}  // namespace
}  // namespace KokkosNNTest
