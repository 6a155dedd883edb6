// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/recorder.hpp"
#include "support/types.hpp"

#include <KokkosNN/attention.hpp>

#include <Kokkos_Core.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

// Attention against long double.

namespace KokkosNNTest {
namespace {

using KokkosNN::attention;
using KokkosNN::AttentionAxes;
using KokkosNN::AttentionOptions;
using KokkosNN::MaskedRowPolicy;
using KokkosNN::masks;

template <class T>
using Tensor4 = Kokkos::View<T****, Kokkos::LayoutStride, Memory>;

constexpr long double infinity = std::numeric_limits<long double>::infinity();

/// Changes a scaled score of (batch, head, query, key); -inf where the key is ruled out.
using Logit          = std::function<long double(int, int, int, int, long double)>;
const Logit unmasked = [](int, int, int, int, long double s) { return s; };

struct Extents {
  int batch = 2, heads = 4, kv_heads = 2, queries = 5, keys = 7, dim = 8, value_dim = 8;
};

double value_at(std::int64_t i) { return std::sin(0.7 * static_cast<double>(i) + 0.3) * 1.5; }

/// A strided tensor in memory of its own, one element of canary between its elements along dim where `spaced`.
template <class T>
struct Operand {
  Tensor4<T> view;
  Kokkos::View<T*, Memory> memory;
  typename Kokkos::View<T*, Memory>::host_mirror_type host;
  std::int64_t stride[4];

  Operand(int a, int b, int c, int d, bool sequence_second, bool spaced) {
    const std::int64_t step = spaced ? 2 : 1;
    const std::int64_t row  = d * step + (spaced ? 3 : 0);
    stride[3]               = step;
    stride[2]               = sequence_second ? b * row : row;
    stride[1]               = sequence_second ? row : c * row;
    stride[0]               = std::int64_t(b) * c * row;
    memory                  = Kokkos::View<T*, Memory>("memory", static_cast<std::size_t>(a * stride[0] + 1));
    host                    = Kokkos::create_mirror(memory);
    for (std::size_t i = 0; i < host.size(); ++i) host(i) = static_cast<T>(value_at(static_cast<std::int64_t>(i)));
    const auto at = [](std::int64_t n) { return static_cast<std::size_t>(n); };
    view          = Tensor4<T>(memory.data(), Kokkos::LayoutStride(at(a), at(stride[0]), at(b), at(stride[1]), at(c),
                                                                   at(stride[2]), at(d), at(stride[3])));
    upload();
  }
  T& operator()(int a, int b, int c, int d) const {
    return host(static_cast<std::size_t>(a * stride[0] + b * stride[1] + c * stride[2] + d * stride[3]));
  }
  long double exact(int a, int b, int c, int d) const {
    return static_cast<long double>(static_cast<double>((*this)(a, b, c, d)));
  }
  void upload() { Kokkos::deep_copy(memory, host); }
  void download() { Kokkos::deep_copy(host, memory); }
};

template <class T>
struct Trial {
  using A = KokkosNN::accumulator_t<T>;

  Extents n;
  Operand<T> q, k, v, o;
  Kokkos::View<A***, Memory> lse;

  explicit Trial(const Extents& extents, bool sequence_second = false, bool spaced = false)
      : n(extents),
        q(n.batch, n.heads, n.queries, n.dim, sequence_second, spaced),
        k(n.batch, n.kv_heads, n.keys, n.dim, sequence_second, spaced),
        v(n.batch, n.kv_heads, n.keys, n.value_dim, sequence_second, spaced),
        o(n.batch, n.heads, n.queries, n.value_dim, sequence_second, spaced),
        lse("lse", static_cast<std::size_t>(n.batch), static_cast<std::size_t>(n.heads),
            static_cast<std::size_t>(n.queries)) {}

  template <class M>
  void run(const M& mask, const AttentionOptions& options = {}) {
    attention(Exec(), q.view, k.view, v.view, o.view, mask, options, lse);
    Exec().fence();
    o.download();
  }

  /// Largest error of o and lse, in units of the promise; NaN for a NaN where there should be none. `sink`: -inf
  /// without one.
  double error(const Logit& logit, double scale = 0, long double sink = -infinity, long double if_masked = NAN) const {
    const auto lse_host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), lse);
    const double factor = scale == 0 ? 1 / std::sqrt(n.dim) : scale;
    double worst        = 0;
    for (int b = 0; b < n.batch; ++b)
      for (int h = 0; h < n.heads; ++h)
        for (int i = 0; i < n.queries; ++i) {
          worst = std::max(worst, row_error(b, h, i, logit, factor, sink, if_masked, lse_host(b, h, i)));
          if (std::isnan(worst)) return worst;
        }
    return worst;
  }

 private:
  double row_error(int b, int h, int i, const Logit& logit, double scale, long double sink, long double if_masked,
                   A lse_value) const {
    const int kv_head = h / (n.heads / n.kv_heads);
    std::vector<long double> z(static_cast<std::size_t>(n.keys));
    long double max = sink, terms = 1;
    for (int j = 0; j < n.keys; ++j) {
      if (logit(b, h, i, j, 0) == -infinity) {
        z[j] = -infinity;
        continue;
      }
      long double score = 0, size = 0;
      for (int d = 0; d < n.dim; ++d) {
        const long double term = q.exact(b, h, i, d) * k.exact(b, kv_head, j, d);
        score += term;
        size += std::abs(term);
      }
      z[j]  = logit(b, h, i, j, scale * score);
      max   = std::max(max, z[j]);
      terms = std::max({terms, std::abs(scale) * size, std::abs(z[j])});
    }
    long double sum = max == -infinity ? 0 : std::exp(sink - max);
    for (const long double each : z) sum += max == -infinity ? 0 : std::exp(each - max);
    const long double unit  = std::is_same_v<A, double> ? 0x1p-52L : 0x1p-23L;
    const long double bound = (16 + n.dim + 4 * terms) * unit;
    const long double want  = sum == 0 ? -infinity : max + std::log(sum);
    const auto lse_got      = static_cast<long double>(lse_value);
    double worst            = lse_got == want ? 0 : static_cast<double>(std::abs(lse_got - want) / bound);
    for (int d = 0; d < n.value_dim; ++d) {
      long double result = 0, size = 0;
      for (int j = 0; j < n.keys; ++j) {
        if (z[j] == -infinity) continue;
        result += std::exp(z[j] - max) / sum * v.exact(b, kv_head, j, d);
        size = std::max(size, std::abs(v.exact(b, kv_head, j, d)));
      }
      if (sum == 0) result = if_masked;
      const long double got = o.exact(b, h, i, d);
      if (std::isnan(result)) {
        if (!std::isnan(got)) return INFINITY;
        continue;
      }
      long double rounding = is_16_bit<T> ? std::ldexp(std::abs(result), -Format<T>::digits) + 0x1p-24L : 0;
      if (is_16_bit<T> && on_gpu) rounding += std::ldexp(size, -Format<T>::digits);  // of the weights
      const auto error = static_cast<double>(std::abs(got - result) / (bound * size + rounding));
      if (got == result) continue;
      if (std::isnan(error)) return error;
      worst = std::max(worst, error);
    }
    return worst;
  }
};

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
  const auto swapped = [](const Tensor4<TypeParam>& x) {
    return Tensor4<TypeParam>(x.data(), Kokkos::LayoutStride(x.extent(0), x.stride(0), x.extent(2), x.stride(2),
                                                             x.extent(1), x.stride(1), x.extent(3), x.stride(3)));
  };
  attention(Exec(), swapped(trial.q.view), swapped(trial.k.view), swapped(trial.v.view), swapped(trial.o.view), masks(),
            {.axes = AttentionAxes::batch_sequence_head_dim}, trial.lse);
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
