// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/call/attention_plan.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>

// Plans of attention: which kernel runs, on how many teams, and what it copies by chunks.

namespace KokkosNNTest {
namespace {

using namespace KokkosNN;
using Impl::AttentionKernelShape;
using Impl::AttentionLayout;
using Impl::AttentionPlan;
using Impl::AttentionTensors;
using Impl::Tensor;

constexpr AttentionKernelShape kernel{128, 64, 128, 100 * 1024};

DeviceTraits gpu(std::size_t large_scratch) {
  DeviceTraits traits;
  traits.backend         = Backend::cuda;
  traits.warp_size       = 32;
  traits.multiprocessors = 132;
  traits.scratch[0]      = 40 * 1024;
  traits.large_scratch   = large_scratch;
  return traits;
}

alignas(16) char memory[32];

Tensor tensor(std::int64_t dim, int misalignment = 0) {
  Tensor t;
  t.data      = memory + misalignment;
  t.rank      = 4;
  t.extent[3] = dim;
  return t;
}

AttentionTensors tensors() { return {tensor(128), tensor(128), tensor(128), tensor(128), {}}; }

AttentionLayout layout() {
  AttentionLayout l;
  l.shape = {2, 8, 2, 100, 1000, 128, 128};
  l.q = l.k = l.v = l.o = {128 * 1000 * 8, 128 * 1000, 128, 1};
  return l;
}

AttentionPlan plan_of(const AttentionTensors& t, const AttentionLayout& l, std::size_t scratch) {
  return make_attention_plan(ElementType::bf16, Precision::exact, t, l, kernel, gpu(scratch));
}

TEST(AttentionPlans, TakeTilesWhereScratchCanBeHadAndRowsElsewhere) {
  const AttentionPlan tiles = plan_of(tensors(), layout(), 227 * 1024);
  EXPECT_TRUE(tiles.in_tiles);
  EXPECT_EQ(tiles.league_size, 16);  // 400 queries read each of 4 heads of k
  EXPECT_EQ(tiles.scratch, kernel.scratch);
  EXPECT_EQ(to_string("attention", tiles), "KokkosNN::attention[bf16,k64,r128,c111,ts128]");
  const AttentionPlan rows = plan_of(tensors(), layout(), 99 * 1024);
  EXPECT_FALSE(rows.in_tiles);
  EXPECT_EQ(rows.league_size, 1600);
  EXPECT_LT(rows.scratch, gpu(0).scratch[0]);
  EXPECT_FALSE(
      make_attention_plan(ElementType::f64, Precision::exact, tensors(), layout(), {}, gpu(227 * 1024)).in_tiles);
}

TEST(AttentionPlans, OnHipTakeTilesOfMatrixCoresAndRowsWhereThereAreNone) {
  using Tile = Impl::AttentionTileFor<2, Impl::MatmulUnit::matrix_cores, 128>;
  const AttentionKernelShape shape{Tile::warps * Tile::row_tiles * 16, Tile::keys, Tile::warps * 64, 24 * 1024};
  DeviceTraits traits;
  traits.backend         = Backend::hip;
  traits.warp_size       = 64;
  traits.multiprocessors = 304;
  traits.scratch[0]      = 64 * 1024;
  const auto plan_by     = [&](const AttentionKernelShape& by) {
    return make_attention_plan(ElementType::bf16, Precision::exact, tensors(), layout(), by, traits);
  };
  EXPECT_EQ(to_string("attention", plan_by(shape)), "KokkosNN::attention[bf16,k32,r128,c111,ts256]");
  EXPECT_EQ(plan_by(shape).league_size, 16);
  EXPECT_FALSE(plan_by({}).in_tiles);
  const AttentionPlan gradients =
      make_attention_gradient_plan(ElementType::bf16, {tensors(), tensor(128), {}, {}, {}},
                                   {layout(), layout().q, layout().q, layout().k, layout().v}, true, shape, traits);
  EXPECT_TRUE(gradients.in_tiles);
}

TEST(AttentionPlans, CoverPackedTokensAndABlockASequence) {
  AttentionLayout l         = layout();
  l.shape.is_packed         = true;
  l.shape.batch             = 30;
  const AttentionPlan tiles = plan_of(tensors(), l, 227 * 1024);
  EXPECT_EQ(tiles.league_size, 2 * (400 / 128 + 30));
}

TEST(AttentionPlans, CutKeysByALengthThatTheBatchDoesNotMatterFor) {
  for (const std::int64_t batch : {1, 1000}) {
    Impl::AttentionShape shape{batch, 32, 8, 1, 4000, 128, 128};
    cut_keys(shape);
    EXPECT_EQ(shape.parts, 16);
    EXPECT_EQ(shape.part_keys, 256);
    AttentionLayout l = layout();
    l.shape           = shape;
    EXPECT_EQ(plan_of(tensors(), l, 227 * 1024).league_size, batch * 8 * 16);
  }
  Impl::AttentionShape many_queries{1, 32, 8, 17, 4000, 128, 128}, few_keys{1, 32, 8, 1, 511, 128, 128};
  Impl::AttentionShape packed{1, 32, 8, 1, 4000, 128, 128, true};
  for (Impl::AttentionShape* shape : {&many_queries, &few_keys, &packed}) {
    cut_keys(*shape);
    EXPECT_EQ(shape->parts, 1);
  }
}

TEST(AttentionPlans, CopyByChunksWhereRowsBeginAtMultiplesOf16Bytes) {
  AttentionTensors t       = tensors();
  AttentionLayout l        = layout();
  t.q                      = tensor(128, 8);  // a base between them
  l.k.sequence             = 130;
  l.v.dim                  = 2;
  const AttentionPlan none = plan_of(t, l, 227 * 1024);
  EXPECT_FALSE(none.copies_q || none.copies_k || none.copies_v);
  EXPECT_EQ(to_string("attention", none), "KokkosNN::attention[bf16,k64,r128,c000,ts128]");
  l       = layout();
  l.v.dim = 7;
  t       = tensors();
  t.v     = tensor(1);  // a single element has no distance to another
  EXPECT_TRUE(plan_of(t, l, 227 * 1024).copies_v);
}

/// Plan on warpgroups of a call that suits them but for what `change` does to it.
AttentionPlan plan_on_warpgroups(
    const std::function<void(AttentionTensors&, AttentionLayout&, Impl::AttentionCallOptions&)>& change) {
  constexpr AttentionKernelShape on_warpgroups{128, 128, 384, 200 * 1024};
  AttentionTensors t = tensors();
  AttentionLayout l  = layout();
  Impl::AttentionCallOptions options;
  l.scale = 0.125;
  change(t, l, options);
  return make_warpgroup_attention_plan(ElementType::bf16, t, l, options, on_warpgroups, gpu(227 * 1024));
}

TEST(AttentionPlans, JoinManyPartsOfARowInATeam) {
  const auto plan_of_parts = [](std::int64_t parts, const KokkosNN::DeviceTraits& traits) {
    return Impl::make_attention_merge_plan(ElementType::bf16, {parts, 2, 8, 1, 128}, traits);
  };
  const AttentionPlan few = plan_of_parts(63, gpu(227 * 1024)), many = plan_of_parts(64, gpu(227 * 1024));
  EXPECT_FALSE(few.merges_in_team);
  EXPECT_EQ(few.scratch, 0u);
  EXPECT_TRUE(many.merges_in_team);
  EXPECT_EQ(many.league_size, 16);
  EXPECT_EQ(many.scratch, std::size_t(Impl::attention_merge_scratch<float>));
}

TEST(AttentionPlans, GiveWarpgroupsABlockOfAHeadAtATime) {
  const AttentionPlan plan = plan_on_warpgroups([](auto&, auto&, auto&) {});
  EXPECT_TRUE(plan.is_on_warpgroups && plan.writes_units);
  EXPECT_EQ(plan.league_size, 16);  // 100 queries of 8 heads of 2 entries
  EXPECT_EQ(plan.bundle, 4 * 32);   // heads whose 500 KiB of keys and values fit in 16 MiB
  EXPECT_EQ(plan_on_warpgroups([](auto&, auto& l, auto&) {
              l.shape.batch = 100;
              l.shape.keys  = 100000;
            }).bundle,
            66 * 4);  // 264 blocks for 132 teams
  EXPECT_EQ(to_string("attention", plan), "KokkosNN::attention[warpgroups,bf16,k128,r128,ts384]");
  EXPECT_EQ(plan_on_warpgroups([](auto&, auto& l, auto&) { l.shape.batch = 1000; }).league_size, 132);
  EXPECT_EQ(plan_on_warpgroups([](auto&, auto& l, auto&) {
              l.shape.is_packed = true;
              l.shape.batch     = 1;
            }).league_size,
            8);
}

TEST(AttentionPlans, LeaveToOtherKernelsWhatWarpgroupsHaveNone) {
  const auto serves = [](const auto& change) { return plan_on_warpgroups(change).is_on_warpgroups; };
  EXPECT_FALSE(serves([](auto&, auto&, auto& options) { options.tier = MatmulTier::portable; }));
  EXPECT_FALSE(serves([](auto&, auto&, auto& options) { options.dropout.probability = 0.1; }));
  EXPECT_FALSE(serves([](auto&, auto& l, auto&) { l.shape.parts = 2; }));
  EXPECT_FALSE(serves([](auto&, auto& l, auto&) { l.q.sequence = 132; }));  // no multiple of 16 bytes
  EXPECT_FALSE(serves([](auto&, auto& l, auto&) { l.k.sequence = 64; }));   // keys that overlap
  EXPECT_FALSE(serves([](auto&, auto& l, auto&) { l.v.dim = 2; }));
  EXPECT_FALSE(serves([](auto& t, auto&, auto&) { t.k = tensor(128, 8); }));
  EXPECT_FALSE(serves([](auto&, auto& l, auto&) { l.shape.keys = std::int64_t(1) << 31; }));
  EXPECT_FALSE(serves([](auto&, auto& l, auto&) { l.shape.queries = 63; }));
  EXPECT_FALSE(serves([](auto&, auto& l, auto&) { l.shape.keys = 0; }));
  EXPECT_TRUE(serves([](auto&, auto& l, auto& options) {
    l.shape.queries = 63;
    options.tier    = MatmulTier::warpgroups;
  }));
  EXPECT_TRUE(serves([](auto&, auto& l, auto&) { l.k.head = l.v.batch = 0; }));
  EXPECT_TRUE(serves([](auto&, auto& l, auto& options) {
    options.mask.softcap = 3;
    l.scale              = -0.125;
  }));
  const auto units = [](const auto& change) { return plan_on_warpgroups(change).writes_units; };
  EXPECT_FALSE(units([](auto&, auto& l, auto&) { l.o.sequence = 132; }));
  EXPECT_FALSE(units([](auto&, auto& l, auto&) { l.shape.value_dim = 100; }));
}

TEST(AttentionPlans, GiveGradientsToWarpgroupsWhereOAndDoutSuitThem) {
  constexpr AttentionKernelShape on_warpgroups{128, 64, 384, 200 * 1024};
  const auto plan_of_gradients = [&](bool of_keys, const auto& change) {
    Impl::AttentionGradientTensors t{tensors(), tensor(128), tensor(128), tensor(128), tensor(128)};
    Impl::AttentionGradientLayout l;
    l.forward       = layout();
    l.forward.scale = 0.125;
    l.dout = l.dq = l.dk = l.dv = l.forward.q;
    change(t, l);
    return make_warpgroup_gradient_plan(ElementType::bf16, t, l, {}, of_keys, on_warpgroups, gpu(227 * 1024));
  };
  const auto as_it_is = [](auto&, auto&) {};
  EXPECT_EQ(plan_of_gradients(false, as_it_is).league_size, 16);
  EXPECT_EQ(plan_of_gradients(true, as_it_is).league_size, 2 * 2 * 8);  // 1000 keys of 2 heads of 2 entries
  const auto serves = [&](const auto& change) { return plan_of_gradients(true, change).is_on_warpgroups; };
  EXPECT_FALSE(serves([](auto& t, auto&) { t.dout = tensor(128, 8); }));
  EXPECT_FALSE(serves([](auto&, auto& l) { l.forward.o.sequence = 132; }));
  EXPECT_FALSE(serves([](auto&, auto& l) { l.forward.shape.value_dim = 100; }));
  EXPECT_TRUE(serves([](auto&, auto& l) { l.dv.sequence = 132; }));
  EXPECT_FALSE(plan_of_gradients(true, [](auto&, auto& l) { l.dv.sequence = 132; }).writes_units);
  EXPECT_TRUE(plan_of_gradients(false, [](auto&, auto& l) { l.dv.sequence = 132; }).writes_units);
}

}  // namespace
}  // namespace KokkosNNTest
