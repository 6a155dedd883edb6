// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/call/attention_plan.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

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

}  // namespace
}  // namespace KokkosNNTest
