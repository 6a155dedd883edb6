// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/attention.hpp"
#include "support/message.hpp"
#include "support/types.hpp"

#include <KokkosNN/attention.hpp>
#include <KokkosNN/attention_mask_gradients.hpp>
#include <KokkosNN/graph_attention.hpp>
#include <KokkosNN/impl/math/philox.hpp>
#include <KokkosNN/merge_attention.hpp>
#include <KokkosNN/packed_attention.hpp>

#include <Kokkos_Core.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

// Dropout of attention's weights: which ones stay is what dropout.hpp says, in all kernels and in the gradients.

namespace KokkosNNTest {
namespace {

using KokkosNN::attention;
using KokkosNN::AttentionDropout;
using KokkosNN::AttentionOptions;
using KokkosNN::MaskedRowPolicy;
using KokkosNN::masks;

constexpr AttentionDropout dropout{.probability = 0.3, .seed = 0x1234567890abcdef, .offset = 7};
constexpr long double infinity = std::numeric_limits<long double>::infinity();

template <class T>
AttentionTrial<T> trial_of(const HeadExtents& n, const AttentionDropout& of = dropout) {
  AttentionTrial<T> trial(n);
  trial.factor_of = dropout_factors(of, n.heads);
  return trial;
}

TEST(Philox, GivesTheVectorsThatItsAuthorsPublish) {
  using KokkosNN::Impl::Philox;
  const auto words = [](const Philox::Words& w) {
    return std::array<std::uint32_t, 4>{w.word[0], w.word[1], w.word[2], w.word[3]};
  };
  EXPECT_EQ(words(Philox{{0, 0}}({{0, 0, 0, 0}})),
            (std::array<std::uint32_t, 4>{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}));
  EXPECT_EQ(words(Philox{{~0u, ~0u}}({{~0u, ~0u, ~0u, ~0u}})),
            (std::array<std::uint32_t, 4>{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}));
}

template <class T>
class AttentionDropouts : public ::testing::Test {};
TYPED_TEST_SUITE(AttentionDropouts, ElementTypes, ElementNames);

TYPED_TEST(AttentionDropouts, DropTheWeightsOfTheRuleForLengthsAndDimsOfManySizes) {
  for (const int keys : {1, 31, 128, 210}) {
    for (const int dim : {3, 64, 130, 256}) {
      auto trial = trial_of<TypeParam>({1, 2, 1, 70, keys, dim, keys % 2 == 0 ? dim : 257 - dim});
      trial.run(masks(), {.dropout = dropout});
      EXPECT_LE(trial.error(unmasked), 1) << keys << " keys, dim " << dim;
    }
  }
}

TYPED_TEST(AttentionDropouts, DropWeightsUnderAMaskAndBesideASink) {
  auto trial = trial_of<TypeParam>({2, 4, 2, 40, 140, 24, 16});
  const Kokkos::View<float*, Memory> sinks("sinks", 4);
  Kokkos::deep_copy(sinks, 0.75f);
  trial.run(KokkosNN::CausalMask{5}, {.softcap = 2, .sinks = sinks, .dropout = dropout});
  const Logit logit = [](int, int, int i, int j, long double s) {
    return j <= i + 5 ? 2 * std::tanh(s / 2) : -infinity;
  };
  EXPECT_LE(trial.error(logit, 0, 0.75L), 1);
}

TYPED_TEST(AttentionDropouts, DropWeightsOfPartsThatAreJoined) {
  auto trial = trial_of<TypeParam>({2, 4, 2, 2, 700, 16, 12});
  trial.run(masks(), {.dropout = dropout});
  EXPECT_LE(trial.error(unmasked), 1);
}

TYPED_TEST(AttentionDropouts, NeverLookAtValuesThatAreDropped) {
  auto trial = trial_of<TypeParam>({1, 1, 1, 1, 100, 8, 8});
  for (int j = 0; j < 100; ++j) {
    if (trial.factor_of(0, 0, 0, j) != 0) continue;
    for (int d = 0; d < 8; ++d) trial.v(0, 0, j, d) = static_cast<TypeParam>(INFINITY);
  }
  trial.v.upload();
  trial.run(masks(), {.dropout = dropout});
  for (int j = 0; j < 100; ++j) {  // the reference multiplies by 0
    if (trial.factor_of(0, 0, 0, j) != 0) continue;
    for (int d = 0; d < 8; ++d) trial.v(0, 0, j, d) = static_cast<TypeParam>(1.0f);
  }
  EXPECT_LE(trial.error(unmasked), 1);
}

TYPED_TEST(AttentionDropouts, HaveGradientsOfTheWeightsThatStay) {
  for (const HeadExtents& n : {HeadExtents{2, 4, 2, 40, 70, 24, 40}, HeadExtents{1, 2, 1, 3, 33, 128, 64},
                               HeadExtents{1, 2, 2, 70, 50, 200, 256}}) {
    auto trial = trial_of<TypeParam>(n);
    const AttentionOptions options{.dropout = dropout};
    trial.run(KokkosNN::CausalMask{20}, options);
    AttentionGradientTrial<TypeParam> gradients(trial);
    KokkosNN::attention_backward(Exec(), trial.q.view, trial.k.view, trial.v.view, trial.o.view, gradients.dout.view,
                                 trial.lse, KokkosNN::CausalMask{20}, gradients.dq.view, gradients.dk.view,
                                 gradients.dv.view, options);
    gradients.download();
    const Logit logit  = [](int, int, int i, int j, long double s) { return j <= i + 20 ? s : -infinity; };
    const double bound = on_gpu && sizeof(TypeParam) == 2 ? std::ldexp(1.0, 25 - Format<TypeParam>::digits) : 1;
    EXPECT_LE(gradients.error(logit, 0, 0), bound) << n.dim;
  }
}

TEST(AttentionDropoutCalls, DropAboutTheProbabilityAndOthersOfAnotherSeedOffsetAndHead) {
  const AttentionDropout of[] = {{0.25, 1, 0}, {0.25, 2, 0}, {0.25, 1, 1}};
  int dropped[3] = {}, differ[3] = {};
  for (int h = 0; h < 4; ++h)
    for (int i = 0; i < 100; ++i)
      for (int j = 0; j < 100; ++j)
        for (int n = 0; n < 3; ++n) {
          dropped[n] += dropout_factors(of[n], 4)(0, h, i, j) == 0;
          differ[n] += dropout_factors(of[n], 4)(0, h, i, j) != dropout_factors(of[0], 4)(0, (h + n) % 4, i, j);
        }
  for (int n = 0; n < 3; ++n) {
    EXPECT_NEAR(dropped[n], 10000, 500);  // six standard deviations
    if (n > 0) {
      EXPECT_NEAR(differ[n], 2 * 0.25 * 0.75 * 40000, 600);
    }
  }
}

/// The bias' gradient is that of all weights' logits: its sum over a row is 0 by the softmax, whatever is dropped.
TEST(AttentionDropoutCalls, HaveGradientsByABias) {
  auto trial = trial_of<double>({2, 2, 1, 6, 40, 8, 8});
  const Kokkos::View<double****, Kokkos::LayoutRight, Memory> bias("bias", 2, 2, 6, 40), dbias("dbias", 2, 2, 6, 40);
  const HeadsOperand<double> dout(2, 2, 6, 8, false, false);
  const AttentionOptions options{.dropout = dropout};
  const auto mask = masks(KokkosNN::AdditiveBias{bias});
  const auto loss = [&] {
    trial.run(mask, options);
    double sum = 0;
    for (std::size_t i = 0; i < trial.o.host.size() - 1; ++i) sum += trial.o.host(i) * dout.host(i);
    return sum;
  };
  loss();
  KokkosNN::attention_bias_backward(Exec(), trial.q.view, trial.k.view, trial.v.view, trial.o.view, dout.view,
                                    trial.lse, mask, dbias, options);
  Exec().fence();
  const auto gradient = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), dbias);
  const auto host     = Kokkos::create_mirror(bias);
  for (std::size_t i = 0; i < gradient.size(); i += 37) {
    double sides[2];
    for (const int side : {0, 1}) {
      host.data()[i] = side == 0 ? -1e-5 : 1e-5;
      Kokkos::deep_copy(bias, host);
      sides[side] = loss();
    }
    host.data()[i] = 0;
    EXPECT_NEAR(gradient.data()[i], (sides[1] - sides[0]) / 2e-5, 1e-8) << i;
  }
}

TEST(AttentionDropoutCalls, DropTheSameOfPackedSequencesAsOfABatch) {
  auto batch = trial_of<float>({2, 2, 1, 5, 5, 8, 8});
  batch.run(masks(), {.dropout = dropout});
  const Kokkos::View<std::int32_t*, Memory> offsets("offsets", 3);
  const auto host = Kokkos::create_mirror(offsets);
  for (int s = 0; s < 3; ++s) host(static_cast<std::size_t>(s)) = 5 * s;
  Kokkos::deep_copy(offsets, host);
  const HeadsOperand<float> q(1, 2, 10, 8, true, false), k(1, 1, 10, 8, true, false), v(1, 1, 10, 8, true, false);
  HeadsOperand<float> o(1, 2, 10, 8, true, false);
  for (int b = 0; b < 2; ++b)
    for (int i = 0; i < 5; ++i)
      for (int d = 0; d < 8; ++d) {
        for (int h = 0; h < 2; ++h) q(0, h, 5 * b + i, d) = batch.q(b, h, i, d);
        k(0, 0, 5 * b + i, d) = batch.k(b, 0, i, d);
        v(0, 0, 5 * b + i, d) = batch.v(b, 0, i, d);
      }
  for (HeadsOperand<float> each : {q, k, v}) each.upload();
  KokkosNN::packed_attention(Exec(), q.rows(), k.rows(), v.rows(), offsets, offsets, o.rows(), masks(),
                             {.dropout = dropout});
  Exec().fence();
  o.download();
  for (int b = 0; b < 2; ++b)
    for (int h = 0; h < 2; ++h)
      for (int i = 0; i < 5; ++i)
        for (int d = 0; d < 8; ++d) ASSERT_EQ(o(0, h, 5 * b + i, d), batch.o(b, h, i, d));
}

TEST(AttentionDropoutCalls, AreRefusedWithABadProbabilityAndWhereThereIsNone) {
  const AttentionTrial<float> t({1, 1, 1, 2, 3, 4, 4});
  for (const double probability : {-0.1, 1.0, double(NAN)}) {
    const std::string message = message_of([&] {
      attention(Exec(), t.q.view, t.k.view, t.v.view, t.o.view, masks(), {.dropout = {.probability = probability}});
    });
    EXPECT_EQ(message.find("KokkosNN::attention: the dropout's probability must be at least 0 and below 1, but is "),
              0U)
        << message;
  }
  const Kokkos::View<float*****, Memory> parts("parts", 1, 1, 1, 2, 4);
  const Kokkos::View<float****, Memory> of_parts("lse", 1, 1, 1, 2);
  EXPECT_EQ(message_of([&] {
              KokkosNN::merge_attention(Exec(), parts, of_parts, t.o.view, {.dropout = {.probability = 0.5}});
            }),
            "KokkosNN::merge_attention: there is no dropout here, but options.dropout has the probability 0.5");
}

}  // namespace
}  // namespace KokkosNNTest
