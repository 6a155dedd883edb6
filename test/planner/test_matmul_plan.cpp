// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/call/matmul_plan.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

// Plans of matrix products: where the summed axis is split, the order of tiles, and who adds the rows of sums.

namespace KokkosNNTest {
namespace {

using namespace KokkosNN;
using Impl::make_matmul_plan;
using Impl::MatmulLayout;
using Impl::MatmulPlan;

constexpr Impl::MatmulKernelShape kernel{128, 128, 32, 2, 128, 64 * 1024};

DeviceTraits traits(Backend backend, int multiprocessors) {
  DeviceTraits result;
  result.backend         = backend;
  result.multiprocessors = multiprocessors;
  return result;
}

MatmulLayout layout(std::int64_t rows, std::int64_t cols, std::int64_t inner) {
  MatmulLayout l;
  l.rows          = rows;
  l.cols          = cols;
  l.inner         = inner;
  l.row_stride[0] = l.row_stride[2] = cols;
  l.row_stride[1]                   = inner;
  l.col_stride[0] = l.col_stride[1] = l.col_stride[2] = 1;
  return l;
}

MatmulPlan on_gpu(const MatmulLayout& l, const MatmulOptions& options = {}) {
  return make_matmul_plan("matmul", ElementType::bf16, options, l, kernel, traits(Backend::cuda, 132));
}

TEST(MatmulPlans, SplitLongSumsOfFewTilesOnAGpuUnlessBitsMayNotDependOnExtents) {
  const MatmulPlan db = on_gpu(layout(64, 64, 262144));
  EXPECT_EQ(db.part_inner % kernel.inner, 0);
  EXPECT_EQ(db.part_inner, 1024);  // 264 teams at once
  EXPECT_EQ(db.parts, 256);
  EXPECT_EQ(db.league_size, 256);
  EXPECT_EQ(db.workspace, std::size_t(256) * 64 * 64 * sizeof(float));
  EXPECT_NE(db.label.find(",p256"), std::string::npos) << db.label;
  EXPECT_EQ(on_gpu(layout(4096, 4096, 4096)).parts, 1);
  EXPECT_EQ(on_gpu(layout(64, 64, 1000)).parts, 1);  // too short
  EXPECT_EQ(on_gpu(layout(16, 4096, 4096)).parts, 8);
  EXPECT_EQ(on_gpu(layout(64, 64, 262144), {.determinism = Determinism::batch_invariant}).parts, 1);
  EXPECT_EQ(on_gpu(layout(4096, 4096, 4096), {.tuning = {.parts = 3}}).parts, 3);
  EXPECT_EQ(on_gpu(layout(64, 64, 262144), {.tuning = {.parts = 1}}).parts, 1);
}

TEST(MatmulPlans, HaveAKernelForManyProductsOfFewRows) {
  const auto has = [](ElementType type, std::int64_t batches, std::int64_t rows, std::int64_t inner,
                      const MatmulOptions& options = {}) {
    MatmulLayout l = layout(rows, 64, inner);
    l.batches      = batches;
    return Impl::has_few_rows(type, l, options);
  };
  EXPECT_TRUE(has(ElementType::f32, 1024, 16, 64));
  EXPECT_TRUE(has(ElementType::bf16, 512, 32, 64));  // two tiles of rows
  EXPECT_FALSE(has(ElementType::f64, 512, 32, 64));
  EXPECT_FALSE(has(ElementType::f32, 1024, 33, 64));
  EXPECT_FALSE(has(ElementType::f32, 1023, 16, 64)) << "the device is not full";
  EXPECT_FALSE(has(ElementType::f32, 1024, 16, 513));
  EXPECT_FALSE(has(ElementType::f32, 1024, 16, 64, {.tuning = {.parts = 2}})) << "it splits no sums";
  MatmulLayout l = layout(16, 64, 64);
  l.batches      = 1024;
  EXPECT_TRUE(Impl::is_faster_than_cublas(ElementType::f32, l, {}));
  EXPECT_TRUE(Impl::is_faster_than_cublas(ElementType::f64, l, {}));
  EXPECT_FALSE(Impl::is_faster_than_cublas(ElementType::bf16, l, {}));
  l.rows = 4;
  EXPECT_FALSE(Impl::is_faster_than_cublas(ElementType::f32, l, {}));
  l.rows          = 16;
  l.row_stride[1] = 1;  // a is column by column
  l.col_stride[1] = 16;
  EXPECT_FALSE(Impl::has_few_rows(ElementType::f32, l, {}));
}

TEST(MatmulPlans, OnHipHaveTilesOfMatrixCoresOfWhichTwoTeamsFitIntoLds) {
  using Tile                    = Impl::MatmulTileFor<2, Impl::MatmulUnit::matrix_cores>;
  constexpr std::size_t scratch = Tile::stages * (Tile::rows + Tile::cols) * Tile::inner * 2 + 128;
  static_assert(Tile::resident * scratch <= std::size_t(64) << 10 && Tile::resident == 2);
  static_assert(Impl::MatmulTileFor<8, Impl::MatmulUnit::matrix_cores>::inner == 8, "as many bytes a step");
  const Impl::MatmulKernelShape shape{Tile::rows, Tile::cols, Tile::inner, Tile::resident, Tile::warps * 64, scratch};
  const auto on_hip = [&](const MatmulLayout& l) {
    return make_matmul_plan("matmul", ElementType::bf16, {}, l, shape, traits(Backend::hip, 304));
  };
  const MatmulPlan large = on_hip(layout(4096, 4096, 4096));
  EXPECT_EQ(large.label, "KokkosNN::matmul[nn,bf16,128x64,c11,ts256]");
  EXPECT_EQ(large.parts, 1);
  const MatmulPlan long_sums = on_hip(layout(64, 64, 262144));
  EXPECT_GT(long_sums.parts, 304);
  EXPECT_EQ(long_sums.part_inner % Tile::inner, 0);
}

TEST(MatmulPlans, GroupRowsOfTilesAsThePolicyOrTheCallerSays) {
  EXPECT_GT(on_gpu(layout(4096, 4096, 64)).group, 1);
  EXPECT_EQ(on_gpu(layout(4096, 4096, 64), {.tuning = {.group = 1}}).group, 1);
}

TEST(MatmulPlans, TakeWarpgroupsWhereTheirTilesFillTheDeviceAndOperandsHaveBoxes) {
  auto shape           = kernel;
  shape.has_warpgroups = true;
  const auto plan      = [&](const MatmulLayout& l, const MatmulOptions& options = {}, int number = 132) {
    return make_matmul_plan("matmul", ElementType::bf16, options, l, shape, traits(Backend::cuda, number));
  };
  const MatmulTuning wanted{.tier = MatmulTier::warpgroups};
  const MatmulPlan large = plan(layout(4096, 4096, 512));
  EXPECT_EQ(large.label, "KokkosNN::matmul[warpgroups,nn,bf16,128x256,ts288]");
  EXPECT_EQ(large.league_size, 132) << "of 512 tiles";
  EXPECT_FALSE(on_gpu(layout(4096, 4096, 512)).is_on_warpgroups) << "no such kernel";
  EXPECT_FALSE(plan(layout(64, 64, 262144)).is_on_warpgroups) << "one tile, but many parts";
  EXPECT_FALSE(plan(layout(1024, 1024, 16384)).is_on_warpgroups) << "32 tiles, but four parts of 64 smaller ones";
  EXPECT_TRUE(plan(layout(1024, 1024, 1024)).is_on_warpgroups) << "too short for parts";
  EXPECT_TRUE(plan(layout(64, 64, 262144), {.tuning = wanted}).is_on_warpgroups);
  EXPECT_FALSE(plan(layout(4096, 4096, 512), {.tuning = {.tier = MatmulTier::portable}}).is_on_warpgroups);
  EXPECT_FALSE(plan(layout(4096, 4096, 0), {.tuning = wanted}).is_on_warpgroups);
  EXPECT_FALSE(plan(layout(4096, 4096, 100), {.tuning = wanted}).is_on_warpgroups) << "rows of 200 bytes";
  EXPECT_FALSE(
      plan(layout(4096, 4096, 512), {.determinism = Determinism::batch_invariant, .tuning = wanted}).is_on_warpgroups);
  MatmulLayout turned  = layout(4096, 4096, 512);
  turned.row_stride[1] = 1;
  turned.col_stride[1] = 4096;
  turned.row_stride[2] = 1;
  turned.col_stride[2] = 512;
  EXPECT_NE(plan(turned).label.find("warpgroups,tt"), std::string::npos) << plan(turned).label;
  turned.data[1] = reinterpret_cast<const void*>(8);
  EXPECT_FALSE(plan(turned, {.tuning = wanted}).is_on_warpgroups) << "not at a multiple of 16 bytes";
  MatmulLayout repeated  = layout(4096, 4096, 512);
  repeated.row_stride[1] = 0;
  EXPECT_FALSE(plan(repeated, {.tuning = wanted}).is_on_warpgroups) << "rows that share memory";
  MatmulLayout batches = layout(128, 256, 64);
  batches.n            = 4;
  batches.batches      = 16;
  for (int k = 0; k < 4; ++k) batches.extent[k] = 2;
  EXPECT_FALSE(plan(batches, {.tuning = wanted}).is_on_warpgroups) << "more axes than a map has";
  batches.n       = 3;
  batches.batches = 8;
  EXPECT_EQ(plan(batches, {.tuning = wanted}).league_size, 8);
}

TEST(MatmulPlans, PartsOfAGpuAreABatchEach) {
  MatmulLayout l   = layout(64, 32, 5000);
  l.n              = 1;
  l.batches        = 3;
  l.extent[0]      = 3;
  l.stride[1][0]   = 64 * 5000;
  const auto plan  = on_gpu(l, {.tuning = {.parts = 4}});
  const auto parts = layout_of_parts(l, plan, 0, 2);
  const auto of_a = parts.map(1), of_b = parts.map(2), of_c = parts.map(0);
  const auto inner   = plan.part_inner;
  const int batch[3] = {0, 3, 4 + 2};
  EXPECT_EQ(parts.batches, 12);
  EXPECT_EQ(inner, 1280);
  for (const int n : batch) {
    EXPECT_EQ(of_a(n), n / 4 * 64 * 5000 + n % 4 * inner);
    EXPECT_EQ(of_b(n), n % 4 * inner * 32);
    EXPECT_EQ(of_c(n), std::int64_t(n) * 64 * 32);
  }
}

TEST(MatmulPlans, BatchesThatAreSummedArePartsToo) {
  MatmulLayout l        = layout(64, 32, 5000);
  l.sums.n              = 1;
  l.sums.extent[0]      = 7;
  l.sums.stride_of_a[0] = 1000000;
  l.sums.stride_of_b[0] = 2000000;
  const auto plan       = on_gpu(l, {.tuning = {.parts = 4}});
  const auto parts      = layout_of_parts(l, plan, 0, 2);
  EXPECT_EQ(plan.parts, 28);
  EXPECT_EQ(plan.inner_parts, 4);
  EXPECT_EQ(parts.batches, 28);
  EXPECT_EQ(parts.map(1)(4 * 3 + 2), 3 * 1000000 + 2 * plan.part_inner);
  EXPECT_EQ(parts.map(2)(4 * 3 + 2), 3 * 2000000 + 2 * plan.part_inner * 32);
  EXPECT_EQ(parts.map(0)(4 * 3 + 2), 14 * 64 * 32);
  EXPECT_EQ(on_gpu(l, {.determinism = Determinism::batch_invariant}).parts, 7);
}

TEST(MatmulPlans, ManyBatchesAreSummedInRoundsWhoseWorkspaceHasRoom) {
  constexpr std::int64_t size = 64 * 32, most = std::int64_t(256) << 20;
  static const char memory[16] = {};
  MatmulLayout l               = layout(64, 32, 8);
  l.n                          = 1;
  l.batches                    = 2;
  l.extent[0]                  = 2;
  l.data[1] = l.data[2] = memory;
  l.sums.n              = 2;
  l.sums.extent[1]      = 3;
  l.sums.stride_of_a[0] = 1000;
  l.sums.stride_of_b[0] = 2000;
  for (const std::int64_t outer : {5000, 6000, 20001, 99999, 1000000}) {
    l.sums.extent[0] = outer;
    const auto plan  = on_gpu(l);
    EXPECT_LE(plan.workspace, std::size_t(most)) << outer;
    EXPECT_EQ(plan.workspace, sizeof(float) * 2 * size * static_cast<std::size_t>(plan.parts + (plan.rounds > 1)));
    EXPECT_EQ(plan.rounds > 1, outer > 5461) << outer;
    std::int64_t summed = 0;
    for (std::int64_t round = 0; round < plan.rounds; ++round) {
      const auto parts = layout_of_parts(l, plan, round, 2);
      EXPECT_EQ(static_cast<const char*>(parts.data[1]) - memory, 2 * 1000 * (summed / 3)) << outer << ' ' << round;
      EXPECT_EQ(static_cast<const char*>(parts.data[2]) - memory, 2 * 2000 * (summed / 3)) << outer << ' ' << round;
      const std::int64_t count = parts.batches / 2;
      EXPECT_GT(count, 0) << outer;
      EXPECT_LE(count, plan.parts) << outer;
      EXPECT_EQ(parts.map(0)(count), (plan.parts + (plan.rounds > 1)) * size) << "the next batch behind the total";
      summed += count;
    }
    EXPECT_EQ(summed, 3 * outer);
  }
}

TEST(MatmulPlans, OfAHostShareAFewTilesLongSumsAndOtherwiseSmallerTiles) {
  const auto on_host = [](const MatmulLayout& l, int threads) {
    return make_matmul_plan("matmul", ElementType::f32, {}, l, {}, traits(Backend::host, threads));
  };
  EXPECT_EQ(on_host(layout(64, 64, 262144), 1).parts, 1);
  const MatmulPlan shared = on_host(layout(64, 64, 262144), 8);
  EXPECT_EQ(shared.parts, 64);
  EXPECT_EQ(shared.league_size, 8);
  EXPECT_EQ(on_host(layout(64, 64, 2048), 8).parts, 1);
  EXPECT_LT(on_host(layout(64, 64, 2048), 8).rows, 64);
}

TEST(MatmulPlans, OfAHostHaveNoMoreMemoryForPartsThanThePolicyAllows) {
  const std::size_t most = std::size_t(64) << 20;
  int split              = 0;
  for (const std::int64_t rows : {20, 192, 200, 400, 1000, 1500}) {
    for (const std::int64_t cols : {64, 390, 800, 1600}) {
      for (const std::int64_t inner : {4096, 40000, 400000}) {
        for (const int threads : {2, 8, 64}) {
          const MatmulPlan plan = make_matmul_plan("matmul", ElementType::f64, {}, layout(rows, cols, inner), {},
                                                   traits(Backend::host, threads));
          split += plan.parts > 1 ? 1 : 0;
          ASSERT_LE(plan.workspace, most) << rows << " x " << cols << " x " << inner << ", " << threads << " threads";
        }
      }
    }
  }
  EXPECT_GT(split, 20) << "most of these are not split at all";
}

TEST(MatmulPlans, GiveATeamSoManyRowsOfSumsThatItsTilesAreFull) {
  MatmulLayout l  = layout(1 << 20, 64, 64);
  l.kind          = Impl::MatmulRows::summed;
  l.maps.sums     = 1 << 16;
  const auto many = on_gpu(l);
  EXPECT_GE(many.sums_per_team * 16, 4 * kernel.rows);
  EXPECT_EQ(many.league_size, ((1 << 16) + many.sums_per_team - 1) / many.sums_per_team);
  l.rows      = 5000;
  l.maps.sums = 1000;
  EXPECT_GE(on_gpu(l).league_size, 39) << "a tile each";
  l.rows = 0;
  EXPECT_GE(on_gpu(l).league_size, 1) << "sums of nothing are written, too";
}

}  // namespace
}  // namespace KokkosNNTest
