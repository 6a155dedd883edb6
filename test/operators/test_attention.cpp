// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/attention.hpp"
#include "support/recorder.hpp"
#include "support/types.hpp"

#include <KokkosNN/attention.hpp>

#include <Kokkos_Core.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

// Attention against long double.

namespace KokkosNNTest {
namespace {

using KokkosNN::attention;
using KokkosNN::AttentionAxes;
using KokkosNN::AttentionOptions;
using KokkosNN::MaskedRowPolicy;
using KokkosNN::masks;
using Extents = HeadExtents;
template <class T>
using Trial = AttentionTrial<T>;

constexpr long double infinity = std::numeric_limits<long double>::infinity();

template <class T>
class Attention : public ::testing::Test {};
TYPED_TEST_SUITE(Attention, ElementTypes, ElementNames);

TYPED_TEST(Attention, IsWithinItsBoundForLengthsAndDimsOfManySizes) {
  for (const int keys : {1, 2, 127, 128, 129, 300}) {
    for (const int dim : {1, 3, 64, 130, 256}) {
      Trial<TypeParam> trial({2, 2, 2, 3, keys, dim, keys % 2 == 0 ? dim : 257 - dim});
      trial.run(masks());
      EXPECT_LE(trial.error(unmasked), 1) << keys << " keys, dim " << dim;
    }
  }
}

TYPED_TEST(Attention, SharesHeadsOfKeysAmongHeadsOfQueries) {
  for (const int kv_heads : {1, 2, 3, 6}) {
    Trial<TypeParam> trial({2, 6, kv_heads, 4, 9, 16, 12});
    trial.run(masks());
    EXPECT_LE(trial.error(unmasked), 1) << kv_heads;
  }
}

TYPED_TEST(Attention, TakesAnyStridesAndWritesNothingBetweenItsElements) {
  for (const bool second : {false, true}) {
    Trial<TypeParam> trial({2, 4, 2, 5, 7, 8, 6}, second, true);
    const auto canary = static_cast<double>(trial.o.host(1));
    trial.run(masks());
    EXPECT_LE(trial.error(unmasked), 1) << second;
    EXPECT_EQ(static_cast<double>(trial.o.host(1)), canary);
    EXPECT_EQ(static_cast<double>(trial.o.host(12)), static_cast<double>(static_cast<TypeParam>(value_at(12))));
  }
}

TYPED_TEST(Attention, TakesTheSequenceAsSecondAxis) {
  Trial<TypeParam> trial({2, 4, 2, 5, 7, 8, 6});
  Trial<TypeParam> same({2, 4, 2, 5, 7, 8, 6});
  attention(Exec(), trial.q.sequence_second(), trial.k.sequence_second(), trial.v.sequence_second(),
            trial.o.sequence_second(), masks(), {.axes = AttentionAxes::batch_sequence_head_dim}, trial.lse);
  Exec().fence();
  trial.o.download();
  EXPECT_LE(trial.error(unmasked), 1);
}

TYPED_TEST(Attention, SeesTheKeysThatCausalMasksAndWindowsAllow) {
  for (const int queries : {5, 200}) {
    for (const int offset : {-3, 0, 2}) {
      Trial<TypeParam> trial({1, 2, 1, queries, 150, 8, 8});
      trial.run(masks(KokkosNN::CausalMask{offset}, KokkosNN::SlidingWindow{20, 3, 1}),
                {.masked_row = MaskedRowPolicy::zero});
      const Logit logit = [&](int, int, int i, int j, long double s) {
        const bool sees = j <= i + offset && j >= i + 1 - 20 && j <= i + 1 + 3;
        return sees ? s : -infinity;
      };
      EXPECT_LE(trial.error(logit, 0, -infinity, 0), 1) << queries << " queries, offset " << offset;
    }
  }
}

TYPED_TEST(Attention, NeverLooksAtKeysThatAMaskRulesOut) {
  Trial<TypeParam> trial({2, 4, 2, 5, 140, 8, 8});
  Kokkos::View<std::int32_t*, Memory> lengths("lengths", 2);
  Kokkos::View<bool*, Memory> keep("keep", 140);
  const auto lengths_host = Kokkos::create_mirror(lengths);
  const auto keep_host    = Kokkos::create_mirror(keep);
  lengths_host(0)         = 130;
  lengths_host(1)         = 0;
  for (int j = 0; j < 140; ++j) keep_host(static_cast<std::size_t>(j)) = j % 3 != 1;
  Kokkos::deep_copy(lengths, lengths_host);
  Kokkos::deep_copy(keep, keep_host);
  for (int b = 0; b < 2; ++b)
    for (int h = 0; h < 2; ++h)
      for (int j = 0; j < 140; ++j)
        for (int d = 0; d < 8; ++d)
          if (j % 3 == 1 || j >= lengths_host(static_cast<std::size_t>(b)))
            trial.k(b, h, j, d) = trial.v(b, h, j, d) = static_cast<TypeParam>(NAN);
  trial.k.upload();
  trial.v.upload();
  const Logit logit = [&](int b, int, int, int j, long double s) {
    return j % 3 != 1 && j < lengths_host(static_cast<std::size_t>(b)) ? s : -infinity;
  };
  trial.run(masks(KokkosNN::RowLengths{lengths}, KokkosNN::BooleanMask{keep}), {.masked_row = MaskedRowPolicy::zero});
  EXPECT_LE(trial.error(logit, 0, -infinity, 0), 1);
  trial.run(masks(KokkosNN::RowLengths{lengths}, KokkosNN::BooleanMask{keep}));
  EXPECT_LE(trial.error(logit), 1) << "NaN where no key is allowed";
}

TYPED_TEST(Attention, AddsBiasAndSlopesCapsScoresAndHasSinks) {
  Trial<TypeParam> trial({2, 4, 2, 5, 140, 8, 8});
  Kokkos::View<float**, Memory> bias("bias", 5, 140);
  Kokkos::View<float*, Memory> slopes("slopes", 4), sinks("sinks", 4);
  const auto bias_host   = Kokkos::create_mirror(bias);
  const auto slopes_host = Kokkos::create_mirror(slopes);
  for (std::size_t i = 0; i < 5; ++i)
    for (std::size_t j = 0; j < 140; ++j) bias_host(i, j) = static_cast<float>(value_at(std::int64_t(i * 140 + j)));
  for (std::size_t h = 0; h < 4; ++h) slopes_host(h) = 0.125f * static_cast<float>(h + 1);
  Kokkos::deep_copy(bias, bias_host);
  Kokkos::deep_copy(slopes, slopes_host);
  Kokkos::deep_copy(sinks, 0.75f);
  trial.run(masks(KokkosNN::AdditiveBias{bias}, KokkosNN::Alibi{slopes, 3}),
            {.scale = -0.5, .softcap = 2, .sinks = sinks});
  const Logit logit = [&](int, int h, int i, int j, long double s) {
    return 2 * std::tanh(s / 2) + bias_host(static_cast<std::size_t>(i), static_cast<std::size_t>(j)) -
           slopes_host(static_cast<std::size_t>(h)) * std::abs(j - (i + 3));
  };
  EXPECT_LE(trial.error(logit, -0.5, 0.75L), 1);
  trial.run(masks(KokkosNN::CausalMask{-1000}), {.sinks = sinks});
  const Logit nothing = [](int, int, int, int, long double) { return -infinity; };
  EXPECT_LE(trial.error(nothing, 0, 0.75L), 1) << "all weight is the sink's";
}

TYPED_TEST(Attention, GivesTheSameBitsInAnyBatchAndEachTime) {
  Trial<TypeParam> all({3, 4, 2, 5, 140, 16, 16}), one({1, 4, 2, 5, 140, 16, 16});
  all.run(KokkosNN::CausalMask{100});
  one.run(KokkosNN::CausalMask{100});
  const auto again = Kokkos::create_mirror(all.o.host);
  Kokkos::deep_copy(again, all.o.host);
  all.run(KokkosNN::CausalMask{100});
  for (std::size_t i = 0; i < all.o.host.size(); ++i) {
    EXPECT_EQ(static_cast<double>(all.o.host(i)), static_cast<double>(again(i)));
    if (i + 1 < one.o.host.size()) {
      EXPECT_EQ(static_cast<double>(all.o.host(i)), static_cast<double>(one.o.host(i)));
    }
  }
}

TYPED_TEST(Attention, ComputesPartsOfManyKeysSideBySideForFewQueries) {
  Kokkos::View<std::int32_t*, Memory> lengths("lengths", 3);
  Kokkos::View<float*, Memory> sinks("sinks", 8);
  const auto lengths_host = Kokkos::create_mirror(lengths);
  lengths_host(0)         = 700;
  lengths_host(1)         = 0;
  lengths_host(2)         = 257;
  Kokkos::deep_copy(lengths, lengths_host);
  Kokkos::deep_copy(sinks, 0.75f);
  for (const bool second : {false, true}) {
    Trial<TypeParam> trial({3, 8, 2, 3, 700, 16, 12}, second, second);
    for (int d = 0; d < 12; ++d) {
      trial.v(1, 0, 5, d)   = static_cast<TypeParam>(NAN);  // behind a length
      trial.v(2, 1, 600, d) = static_cast<TypeParam>(NAN);
    }
    trial.v.upload();
    const auto mask   = masks(KokkosNN::RowLengths{lengths}, KokkosNN::CausalMask{-1});
    const Logit logit = [&](int b, int, int i, int j, long double s) {
      return j <= i + 697 - 1 && j < lengths_host(static_cast<std::size_t>(b)) ? s : -infinity;
    };
    const AttentionOptions options{.masked_row = MaskedRowPolicy::zero, .diagonal = KokkosNN::AttentionDiagonal::last};
    const Recorder recorder;
    trial.run(mask, options);
    const auto labels = recorder.kernel_labels();
    EXPECT_TRUE(std::any_of(labels.begin(), labels.end(),
                            [](const std::string& label) { return label.find("[merge]") != std::string::npos; }));
    EXPECT_LE(trial.error(logit, 0, -infinity, 0), 1) << second;
    AttentionOptions with_sinks = options;
    with_sinks.sinks            = sinks;
    trial.run(mask, with_sinks);
    EXPECT_LE(trial.error(logit, 0, 0.75L), 1) << second;
  }
}

TYPED_TEST(Attention, GivesTheSameBitsOfPartsInAnyBatch) {
  Trial<TypeParam> all({3, 4, 2, 2, 1100, 16, 16}), one({1, 4, 2, 2, 1100, 16, 16});
  all.run(KokkosNN::CausalMask{1000});
  one.run(KokkosNN::CausalMask{1000});
  for (std::size_t i = 0; i + 1 < one.o.host.size(); ++i) {
    ASSERT_EQ(static_cast<double>(all.o.host(i)), static_cast<double>(one.o.host(i)));
  }
}

TYPED_TEST(Attention, MakesAQueryNaNByAnInfiniteLogitAndTakesHugeOnes) {
  Trial<TypeParam> trial({1, 1, 1, 2, 3, 1, 1});
  trial.q(0, 0, 0, 0) = static_cast<TypeParam>(60.0);
  trial.k(0, 0, 0, 0) = static_cast<TypeParam>(60.0);
  trial.q.upload();
  trial.k.upload();
  trial.run(masks(), {.scale = 30});
  EXPECT_LE(trial.error(unmasked, 30), 1);
  trial.k(0, 0, 2, 0) = static_cast<TypeParam>(INFINITY);
  trial.k.upload();
  trial.run(masks());
  EXPECT_TRUE(std::isnan(trial.o.exact(0, 0, 0, 0)));
}

TEST(AttentionPrecisions, AreThoseThatTheOptionAsksForWhereThereAreTensorCores) {
  const double of_parts = on_gpu ? 2 : 1, of_upper_bits = on_gpu ? 0x1p13 : 1;
  for (const int dim : {33, 128, 200}) {
    Trial<float> trial({1, 2, 1, 70, 90, dim, 64});
    trial.run(KokkosNN::CausalMask{20}, {.precision = KokkosNN::Precision::tensor_float32x3});
    const Logit causal = [](int, int, int i, int j, long double s) { return j <= i + 20 ? s : -infinity; };
    EXPECT_LE(trial.error(causal), of_parts) << dim;
    trial.run(KokkosNN::CausalMask{20}, {.precision = KokkosNN::Precision::tensor_float32});
    EXPECT_LE(trial.error(causal), of_upper_bits) << dim;
  }
}

TEST(AttentionCalls, NeitherFenceNorAllocateForPartsOnceTheyHaveRun) {
  const Trial<float> t({1, 2, 1, 1, 600, 8, 8});
  const auto call = [&] { attention(Exec(), t.q.view, t.k.view, t.v.view, t.o.view, masks(), {}, t.lse); };
  call();
  const Recorder recorder;
  call();
  EXPECT_EQ(recorder.kernels.size(), 2U);
  EXPECT_TRUE(recorder.neither_fenced_nor_allocated());
}

TEST(AttentionCalls, WriteNothingOfNoQueriesAndTheMaskedResultOfNoKeys) {
  Trial<float> none({2, 2, 1, 0, 4, 8, 8});
  none.run(masks());
  Trial<float> empty({1, 2, 1, 3, 0, 8, 8});
  empty.run(masks(), {.masked_row = MaskedRowPolicy::zero});
  EXPECT_LE(empty.error(unmasked, 0, -infinity, 0), 0);
}

/// The message of a call that throws; canaries stay.
template <class M>
std::string complaint(Trial<float>& t, const M& mask, const AttentionOptions& options = {}) {
  try {
    attention(Exec(), t.q.view, t.k.view, t.v.view, t.o.view, mask, options, t.lse);
  } catch (const std::invalid_argument& error) {
    t.o.download();
    for (std::size_t i = 0; i < t.o.host.size(); ++i) {
      EXPECT_EQ(t.o.host(i), static_cast<float>(value_at(static_cast<std::int64_t>(i))));
    }
    return error.what();
  }
  return "no error";
}

TEST(AttentionCalls, NameTheFunctionAndTheExtentsOfWhatIsWrong) {
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find("KokkosNN::attention: ") == 0 && text.find(part) != std::string::npos;
  };
  Trial<float> good({});
  Trial<float> heads({2, 4, 3, 5, 7, 8, 8});
  EXPECT_TRUE(has(complaint(heads, masks()), "4 heads, which is no multiple of the 3"));
  Trial<float> large({1, 1, 1, 2, 2, 257, 8});
  EXPECT_TRUE(has(complaint(large, masks()), "but is 257"));
  Trial<float> keys({});
  keys.v = Trial<float>({2, 4, 2, 5, 6, 8, 8}).v;
  EXPECT_TRUE(has(complaint(keys, masks()), "(2, 2, 6, 8) must have 7 along sequence"));
  EXPECT_TRUE(has(complaint(good, masks(), {.scale = 1e40}), "1e+40"));
  EXPECT_TRUE(has(complaint(good, masks(), {.softcap = -1}), "softcap"));
  EXPECT_TRUE(has(complaint(good, KokkosNN::SlidingWindow{-1, 0, 0}), "SlidingWindow"));
  Kokkos::View<float*, Memory> bias("bias", 6);
  EXPECT_TRUE(has(complaint(good, KokkosNN::AdditiveBias{bias}), "(6) does not broadcast to (2, 4, 5, 7)"));
  Trial<float> overlapping({2, 2, 2, 7, 7, 8, 8});
  overlapping.o = overlapping.q;
  EXPECT_TRUE(has(complaint(overlapping, masks()), "overlap"));
  Trial<float> lse({});
  lse.lse = Kokkos::View<float***, Memory>("lse", 2, 4, 6);
  EXPECT_TRUE(has(complaint(lse, masks()), "lse must be (2, 4, 5), but is (2, 4, 6)"));
}

}  // namespace
}  // namespace KokkosNNTest
