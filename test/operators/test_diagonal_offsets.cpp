// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/masked_strategies.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

// Diagonals whose offset a View has, a number for each index of the batch, against calls of one batch entry each whose
// masks have that offset as a number.

namespace KokkosNNTest {

using KokkosNN::DiagonalOffsets;

namespace {

const std::vector<std::int64_t> offsets_of_batch{-2, 0, 5, 40};

template <class Offset>
MaskData<Offset, 1> offset_data() {
  return {right({4}), [](const Index& i) { return static_cast<Offset>(offsets_of_batch[i[0]]); }};
}

template <class T>
class DiagonalOffset : public ::testing::Test {};
TYPED_TEST_SUITE(DiagonalOffset, ElementTypes, ElementNames);

TYPED_TEST(DiagonalOffset, OfACausalMaskAndAWindowAreThoseOfTheBatchEntry) {
  const auto narrow = offset_data<std::int32_t>();
  const auto wide   = offset_data<std::int64_t>();
  const auto offset = [](const At& at) { return offsets_of_batch[at.batch]; };
  const Meaning causal{[&](const At& at) { return at.key <= at.query + 1 + offset(at); }};
  const Meaning window{[&](const At& at) {
    const std::int64_t middle = at.query + 2 + offset(at);
    return at.key >= middle - 3 && at.key <= middle + 4;
  }};
  for (const RowStrategy strategy : row_strategies) {
    for (const std::int64_t cols : {5, 40, 100}) {
      MaskedTrial<TypeParam> trial({4, 3, 7, cols});
      const MaskedSoftmaxOptions options = on(strategy, {.masked_row = MaskedRowPolicy::zero});
      EXPECT_TRUE(takes_the_path(trial, masks(CausalMask{1}, DiagonalOffsets{narrow.view()}), causal, options));
      EXPECT_TRUE(takes_the_path(trial, masks(SlidingWindow{3, 4, 2}, DiagonalOffsets{wide.view()}), window, options));
    }
  }
}

TYPED_TEST(DiagonalOffset, MovesTheDiagonalOfAlibiToo) {
  const auto offsets = offset_data<std::int32_t>();
  const MaskData<float, 1> slopes(right({3}), [](const Index& i) { return 0.125f * static_cast<float>(i[0] + 1); });
  MaskedTrial<TypeParam> trial({4, 3, 7, 50});
  const Meaning meaning{[](const At&) { return true; },
                        [&](const At& at) {
                          const std::int64_t middle = at.query + 3 + offsets_of_batch[at.batch];
                          return -exact(slopes({at.head})) * std::fabs(Real(at.key - middle));
                        }};

  EXPECT_TRUE(trial.run_correct(masks(Alibi{slopes.view(), 3}, DiagonalOffsets{offsets.view()}), meaning));
}

TEST(DiagonalOffsetShapes, AreThoseOfLengths) {
  const MaskData<std::int64_t, 3> of_rows(right({4, 1, 7}), [](const Index& i) { return 3 * i[0] + i[2]; });
  const MaskData<std::int64_t, 1> of_all(right({1}), [](const Index&) { return 4; });
  MaskedTrial<float> trial({4, 3, 7, 40});

  EXPECT_TRUE(trial.run_correct(masks(CausalMask{}, DiagonalOffsets{of_rows.view()}),
                                {[](const At& at) { return at.key <= 2 * at.query + 3 * at.batch; }}));
  EXPECT_TRUE(trial.run_correct(masks(CausalMask{}, DiagonalOffsets{of_all.view()}),
                                {[](const At& at) { return at.key <= at.query + 4; }}));
}

TEST(DiagonalOffsetShapes, FarBeyondTheColumnsAllowAllOrNothing) {
  constexpr std::int64_t far = std::numeric_limits<std::int64_t>::max();
  const MaskData<std::int64_t, 1> offsets(right({2}), [](const Index& i) { return i[0] == 0 ? far : -far; });
  MaskedTrial<float> trial({2, 3, 7, 40});
  const Meaning first{[](const At& at) { return at.batch == 0; }};

  EXPECT_TRUE(trial.run_correct(masks(CausalMask{}, DiagonalOffsets{offsets.view()}), first,
                                {.masked_row = MaskedRowPolicy::zero}));
  EXPECT_TRUE(trial.run_correct(masks(SlidingWindow{.right = 3}, DiagonalOffsets{offsets.view()}), first,
                                {.masked_row = MaskedRowPolicy::zero}));
}

TEST(DiagonalOffsetErrors, NameTheFunctionAndTheOffendingValues) {
  const MaskData<std::int32_t, 1> three(right({3}), [](const Index&) { return 1; });
  const MaskData<std::int32_t, 3> six(right({4, 3, 6}), [](const Index&) { return 1; });
  MaskedTrial<float> trial({4, 3, 7, 40});
  const auto complaint = [&](const auto& mask) {
    try {
      trial.call(mask, {});
    } catch (const std::invalid_argument& e) {
      return std::string(e.what());
    }
    return std::string("(nothing was thrown)");
  };
  EXPECT_EQ(complaint(masks(CausalMask{}, DiagonalOffsets{three.view()})),
            "KokkosNN::masked_softmax: DiagonalOffsets of rank 1 must hold one offset for each index of the first axis "
            "of x, (4, 3, 7, 40), but hold 3");
  EXPECT_EQ(complaint(masks(CausalMask{}, DiagonalOffsets{six.view()}))
                .find("KokkosNN::masked_softmax: DiagonalOffsets of extents (4, 3, 6) does not broadcast to (4, 3, 7)"),
            0u);
}

// --- gradients and attention, by calls of one batch entry each ---

using Tensor4 = Kokkos::View<float****, Kokkos::LayoutRight, Memory>;

Tensor4 noisy(std::int64_t seed, const Index& extents) {
  const auto at = [&](int d) { return static_cast<std::size_t>(extents[d]); };
  Tensor4 view("noisy", at(0), at(1), at(2), at(3));
  const auto host = Kokkos::create_mirror(view);
  for (std::size_t i = 0; i < host.size(); ++i) {
    host.data()[i] = static_cast<float>(noise_at({seed, static_cast<std::int64_t>(i)}, 2));
  }
  Kokkos::deep_copy(view, host);
  return view;
}

/// One batch entry.
Tensor4 entry_of(const Tensor4& all, std::size_t b) {
  return Tensor4(all.data() + b * all.stride(0), 1, all.extent(1), all.extent(2), all.extent(3));
}

void expect_equal(const Tensor4& a, const Tensor4& b, const char* name) {
  Exec().fence();
  const auto host_a = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), a);
  const auto host_b = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), b);
  for (std::size_t i = 0; i < host_a.size(); ++i) {
    ASSERT_NEAR(host_a.data()[i], host_b.data()[i], 1e-6 * (1 + std::fabs(host_a.data()[i]))) << name << ' ' << i;
  }
}

TEST(DiagonalOffsetGradients, OfMaskedSoftmaxAndOfABiasAreThoseOfTheBatchEntries) {
  const auto offsets = offset_data<std::int64_t>();
  const Index shape{4, 3, 7, 40};
  const Tensor4 x = noisy(1, shape), y = noisy(2, shape), dy = noisy(3, shape), dx = noisy(4, shape);
  const Tensor4 log_dx = noisy(5, shape), dbias = noisy(6, {4, 1, 1, 40});
  const auto mask = masks(CausalMask{1}, DiagonalOffsets{offsets.view()});
  KokkosNN::masked_softmax_backward(Exec(), x, y, dy, mask, dx);
  KokkosNN::masked_log_softmax_backward(Exec(), x, y, dy, mask, log_dx);
  KokkosNN::masked_softmax_bias_backward(Exec(), y, dy, mask, dbias);

  const Tensor4 alone = noisy(7, shape), log_alone = noisy(8, shape), bias_alone = noisy(9, {4, 1, 1, 40});
  for (std::size_t b = 0; b < 4; ++b) {
    const CausalMask causal{1 + offsets_of_batch[b]};
    const auto of = [b](const Tensor4& t) { return entry_of(t, b); };
    KokkosNN::masked_softmax_backward(Exec(), of(x), of(y), of(dy), causal, of(alone));
    KokkosNN::masked_log_softmax_backward(Exec(), of(x), of(y), of(dy), causal, of(log_alone));
    KokkosNN::masked_softmax_bias_backward(Exec(), of(y), of(dy), causal, of(bias_alone));
  }
  expect_equal(dx, alone, "dx");
  expect_equal(log_dx, log_alone, "dx of log_softmax");
  expect_equal(dbias, bias_alone, "dbias");
}

TEST(DiagonalOffsetAttention, AndItsGradientsAreThoseOfTheBatchEntries) {
  const auto offsets = offset_data<std::int32_t>();
  const MaskData<float, 1> slopes(right({3}), [](const Index& i) { return 0.125f * static_cast<float>(i[0] + 1); });
  const Index of_queries{4, 3, 7, 8}, of_keys{4, 3, 40, 8};
  const Tensor4 q = noisy(1, of_queries), k = noisy(2, of_keys), v = noisy(3, of_keys), dout = noisy(4, of_queries);
  const Tensor4 o = noisy(5, of_queries), dq = noisy(6, of_queries), dk = noisy(7, of_keys), dv = noisy(8, of_keys);
  const Tensor4 o_alone = noisy(9, of_queries), dq_alone = noisy(10, of_queries);
  const Tensor4 dk_alone = noisy(11, of_keys), dv_alone = noisy(12, of_keys);
  const KokkosNN::AttentionOptions options{.masked_row = MaskedRowPolicy::zero};
  using Lse = Kokkos::View<float***, Kokkos::LayoutRight, Memory>;
  const Lse lse("lse", 4, 3, 7);
  const auto mask = masks(SlidingWindow{20, 2, 1}, Alibi{slopes.view()}, DiagonalOffsets{offsets.view()});
  KokkosNN::attention(Exec(), q, k, v, o, mask, options, lse);
  KokkosNN::attention_backward(Exec(), q, k, v, o, dout, lse, mask, dq, dk, dv, options);

  for (std::size_t b = 0; b < 4; ++b) {
    const std::int64_t offset = offsets_of_batch[b];
    const auto of             = [b](const Tensor4& t) { return entry_of(t, b); };
    const auto plain          = masks(SlidingWindow{20, 2, 1 + offset}, Alibi{slopes.view(), offset});
    const Lse lse_alone("lse", 1, 3, 7);
    KokkosNN::attention(Exec(), of(q), of(k), of(v), of(o_alone), plain, options, lse_alone);
    KokkosNN::attention_backward(Exec(), of(q), of(k), of(v), of(o_alone), of(dout), lse_alone, plain, of(dq_alone),
                                 of(dk_alone), of(dv_alone), options);
    Exec().fence();
  }
  expect_equal(o, o_alone, "o");
  expect_equal(dq, dq_alone, "dq");
  expect_equal(dk, dk_alone, "dk");
  expect_equal(dv, dv_alone, "dv");
}

}  // namespace
}  // namespace KokkosNNTest
