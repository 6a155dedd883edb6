// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/call/quantized_plan.hpp>
#include <KokkosNN/impl/call/rope_plan.hpp>

#include <gtest/gtest.h>

#include <cstdint>

// Plans of results in 8 bits, and of RMSNorm with RoPE: which rows are moved by whole packs.

namespace KokkosNNTest {
namespace {

using namespace KokkosNN;
using Impl::make_quantized_plan;
using Impl::make_rms_norm_rope_plan;

DeviceTraits traits(Backend backend) {
  DeviceTraits result;
  result.backend         = backend;
  result.multiprocessors = 132;
  return result;
}

RowForm quantized_form(Backend backend, std::int64_t cols, bool is_aligned) {
  return make_quantized_plan({ElementType::bf16, 2, 1000, cols, is_aligned}, traits(backend)).form;
}

TEST(QuantizedPlans, MoveWholePacksOfAlignedRowsOnCuda) {
  EXPECT_EQ(quantized_form(Backend::cuda, 1024, true), RowForm::aligned);
  EXPECT_EQ(quantized_form(Backend::cuda, 1024, false), RowForm::strided);
  EXPECT_EQ(quantized_form(Backend::cuda, 1020, true), RowForm::strided);
  EXPECT_EQ(quantized_form(Backend::hip, 1024, true), RowForm::strided);
  EXPECT_EQ(quantized_form(Backend::host, 1024, true), RowForm::strided);
}

TEST(QuantizedPlans, ShareARowAlikeWhateverItsAlignmentIs) {
  for (const std::int64_t cols : {8, 64, 1024, 4096, 40000}) {
    const auto aligned   = make_quantized_plan({ElementType::bf16, 2, 1000, cols, true}, traits(Backend::cuda));
    const auto unaligned = make_quantized_plan({ElementType::bf16, 2, 1000, cols, false}, traits(Backend::cuda));
    EXPECT_EQ(aligned.threads_per_row, unaligned.threads_per_row) << cols;
    EXPECT_EQ(aligned.pack, unaligned.pack) << cols;
    EXPECT_NE(aligned.form, unaligned.form) << cols;
  }
}

RowForm rotated_form(Backend backend, std::int64_t dim, bool has_packs, bool has_aligned_weights) {
  Impl::RopeLayout layout;
  layout.outer.extent = layout.inner.extent = layout.heads.extent = 8;
  layout.dim                                                      = dim;
  layout.pairs                                                    = 32;
  layout.has_packs                                                = has_packs;
  return make_rms_norm_rope_plan({ElementType::bf16, 2, RopeForm::half_rotated, true}, layout, has_aligned_weights,
                                 traits(backend))
      .rows;
}

TEST(RmsNormRopePlans, MoveWholePacksOfAlignedRowsOnCuda) {
  EXPECT_EQ(rotated_form(Backend::cuda, 64, true, true), RowForm::aligned);
  EXPECT_EQ(rotated_form(Backend::cuda, 80, true, true), RowForm::aligned);  // a whole unit behind the pairs
  EXPECT_EQ(rotated_form(Backend::cuda, 72, true, true), RowForm::strided);
  EXPECT_EQ(rotated_form(Backend::cuda, 64, false, true), RowForm::strided);
  EXPECT_EQ(rotated_form(Backend::cuda, 64, true, false), RowForm::strided);
  EXPECT_EQ(rotated_form(Backend::hip, 64, true, true), RowForm::strided);
  EXPECT_EQ(rotated_form(Backend::host, 64, true, true), RowForm::strided);
}

}  // namespace
}  // namespace KokkosNNTest
