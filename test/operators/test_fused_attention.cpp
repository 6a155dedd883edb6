// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/attention.hpp"
#include "support/message.hpp"
#include "support/recorder.hpp"
#include "support/types.hpp"

#include <KokkosNN/fused_attention.hpp>

#include <Kokkos_Core.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

// Attention with an epilogue: what the functor makes of attention's results, in all kernels.

namespace KokkosNNTest {

/// A gate and a scale a head. A product alone is rounded alike everywhere.
struct ScaledGate {
  template <class N>
  KOKKOS_FUNCTION N operator()(N result, N gate, N scale) const {
    return gate > N(0) ? result * scale : N(3);
  }
};

/// A scale, for results in 8 bits; integers are rounded and bounded.
struct Quantise {
  bool to_integers;
  KOKKOS_FUNCTION double operator()(double result, double scale) const {
    const double value = result * scale;
    return to_integers ? Kokkos::fmin(Kokkos::fmax(Kokkos::round(value), -127.0), 127.0) : value;
  }
};

namespace {

using KokkosNN::AttentionOptions;
using KokkosNN::fused_attention;
using KokkosNN::MaskedRowPolicy;
using KokkosNN::masks;
using KokkosNN::no_view;

template <class T>
using Trial = AttentionTrial<T>;

/// Kernels that run without an epilogue, too: those of Hopper's warpgroups need a file for them.
constexpr KokkosNN::MatmulTier portable = KokkosNN::MatmulTier::portable;

/// A call of attention on T, and the same one with an epilogue whose results are float, or double of T double.
template <class T>
struct FusedTrial {
  using N = KokkosNN::accumulator_t<T>;

  Trial<T> plain, fused;
  HeadsOperand<T> gate;
  Kokkos::View<N***, Memory> scale;  ///< (head, 1, 1)

  explicit FusedTrial(const HeadExtents& n, bool sequence_second = false, bool spaced = false)
      : plain(n, false, spaced),
        fused(n, sequence_second, spaced),
        gate(n.batch, n.heads, n.queries, n.value_dim, sequence_second, spaced),
        scale("scale", static_cast<std::size_t>(n.heads), 1, 1) {
    const auto host = Kokkos::create_mirror(scale);
    for (std::size_t h = 0; h < host.extent(0); ++h) host(h, 0, 0) = static_cast<N>(0.5 + static_cast<double>(h));
    Kokkos::deep_copy(scale, host);
  }

  template <class M>
  void run(const M& mask, AttentionOptions options = {}) {
    options.tier = portable;
    plain.run(mask, options);
    fused_attention(Exec(), fused.q.view, fused.k.view, fused.v.view, fused.o.view, mask, options, fused.lse,
                    ScaledGate{}, gate.view, scale);
    Exec().fence();
    fused.o.download();
  }

  /// True if o is the functor's result, of a result that plain's o is the rounded one of, in the whole tensor.
  bool is_as_the_functor_says() const {
    bool holds           = true;
    const HeadExtents& n = plain.n;
    for (int b = 0; b < n.batch; ++b)
      for (int h = 0; h < n.heads; ++h)
        for (int i = 0; i < n.queries; ++i)
          for (int d = 0; d < n.value_dim; ++d) holds = holds && is_right(b, h, i, d);
    return holds;
  }
  bool have_the_same_lse() const {
    const auto a = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), plain.lse);
    const auto b = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), fused.lse);
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (a.data()[i] != b.data()[i]) return false;
    }
    return true;
  }

 private:
  bool is_right(int b, int h, int i, int d) const {
    const double r   = static_cast<double>(plain.o(b, h, i, d));
    const double got = static_cast<double>(fused.o(b, h, i, d));
    const bool is_on = static_cast<double>(gate(b, h, i, d)) > 0;
    if (!is_on) return got == 3;
    if (std::isnan(r)) return std::isnan(got);
    const double factor = 0.5 + h, want = r * factor;
    // Results in 16 bits are rounded twice, r and the product: each by half an ulp, or half of the smallest number.
    const double half_ulp = std::ldexp(1.0, -Format<T>::digits);
    if (sizeof(T) != 2) return std::abs(got - want) <= std::abs(want) * half_ulp;
    const double smallest = std::ldexp(half_ulp, Format<T>::min_exponent + 1);
    return std::abs(got - want) <= std::abs(want) * half_ulp * 2.02 + smallest * (1 + factor);
  }
};

template <class T>
class FusedAttention : public ::testing::Test {};
// Kernels of half_t are those of bhalf_t, and a GPU's of float, in three precisions, take minutes to compile.
using FusedTypes =
    std::conditional_t<on_gpu, ::testing::Types<double, BHalf>, ::testing::Types<float, double, BHalf, Half>>;
TYPED_TEST_SUITE(FusedAttention, FusedTypes, ElementNames);

TYPED_TEST(FusedAttention, AppliesTheFunctorToResultsOfAllDims) {
  for (const int dim : {1, 64, 130, 256}) {
    FusedTrial<TypeParam> trial({2, 4, 2, 70, 75, dim, 257 - dim});
    trial.run(KokkosNN::CausalMask{3});
    EXPECT_TRUE(trial.is_as_the_functor_says()) << dim;
    EXPECT_TRUE(trial.have_the_same_lse()) << dim;
  }
}

TYPED_TEST(FusedAttention, AppliesTheFunctorBehindMasksThatChangeScores) {
  FusedTrial<TypeParam> trial({2, 4, 2, 5, 140, 24, 16});
  const Kokkos::View<float**, Memory> bias("bias", 5, 140);
  Kokkos::deep_copy(bias, 0.25f);
  trial.run(masks(KokkosNN::AdditiveBias{bias}, KokkosNN::CausalMask{2}), {.softcap = 2});
  EXPECT_TRUE(trial.is_as_the_functor_says());
}

TYPED_TEST(FusedAttention, AppliesTheFunctorToRowsOfNothing) {
  for (const auto policy : {MaskedRowPolicy::nan, MaskedRowPolicy::zero}) {
    FusedTrial<TypeParam> trial({1, 2, 1, 5, 6, 8, 8});
    trial.run(KokkosNN::CausalMask{-2}, {.masked_row = policy});
    EXPECT_TRUE(trial.is_as_the_functor_says());
  }
}

TYPED_TEST(FusedAttention, AppliesTheFunctorToRowsThatAreComputedAgain) {
  FusedTrial<TypeParam> trial({1, 2, 1, 5, 6, 8, 8});
  for (Trial<TypeParam>* t : {&trial.plain, &trial.fused}) {
    t->v(0, 0, 5, 2) = static_cast<TypeParam>(INFINITY);
    t->v.upload();
  }
  trial.run(KokkosNN::CausalMask{0});
  EXPECT_TRUE(trial.is_as_the_functor_says());
}

TYPED_TEST(FusedAttention, AppliesTheFunctorWherePartsAreJoined) {
  FusedTrial<TypeParam> trial({2, 4, 2, 2, 700, 16, 12});
  const Recorder recorder;
  trial.run(KokkosNN::CausalMask{600});
  EXPECT_TRUE(trial.is_as_the_functor_says());
  EXPECT_TRUE(trial.have_the_same_lse());
  EXPECT_NE(recorder.kernel_labels().back().find("fused_attention"), std::string::npos);
  EXPECT_NE(recorder.kernel_labels().back().find("[merge]"), std::string::npos);
}

TYPED_TEST(FusedAttention, TakesAnyStridesAndWritesNothingBetweenItsElements) {
  FusedTrial<TypeParam> trial({2, 4, 2, 5, 7, 8, 6}, false, true);
  trial.run(masks());
  EXPECT_TRUE(trial.is_as_the_functor_says());
  EXPECT_TRUE(trial.fused.o.gaps_are_intact());
}

TEST(FusedAttentionCalls, TakeTheSequenceAsSecondAxisAlsoOfInputs) {
  Trial<double> plain({2, 4, 2, 5, 7, 8, 6});
  plain.run(masks());
  Trial<double> fused({2, 4, 2, 5, 7, 8, 6});
  const HeadsOperand<double> gate(2, 4, 5, 6, false, false);
  const Kokkos::View<double**, Memory> scale("scale", 4, 1);  // (sequence, head, dim): of a head
  const auto host = Kokkos::create_mirror(scale);
  for (std::size_t h = 0; h < 4; ++h) host(h, 0) = 0.5 + static_cast<double>(h);
  Kokkos::deep_copy(scale, host);
  fused_attention(Exec(), fused.q.sequence_second(), fused.k.sequence_second(), fused.v.sequence_second(),
                  fused.o.sequence_second(), masks(), {.axes = KokkosNN::AttentionAxes::batch_sequence_head_dim},
                  no_view, ScaledGate{}, gate.sequence_second(), scale);
  Exec().fence();
  fused.o.download();
  for (int b = 0; b < 2; ++b)
    for (int h = 0; h < 4; ++h)
      for (int i = 0; i < 5; ++i)
        for (int d = 0; d < 6; ++d) {
          const double want = gate(b, h, i, d) > 0 ? plain.o(b, h, i, d) * (0.5 + static_cast<double>(h)) : 3;
          ASSERT_EQ(fused.o(b, h, i, d), want);
        }
}

TEST(FusedAttentionCalls, TakeOItselfAsAnInput) {
  FusedTrial<double> trial({1, 2, 1, 5, 7, 8, 6});
  trial.plain.run(masks(), {.tier = portable});
  Trial<double>& t  = trial.fused;
  const auto before = Kokkos::create_mirror(t.o.host);
  Kokkos::deep_copy(before, t.o.host);
  fused_attention(Exec(), t.q.view, t.k.view, t.v.view, t.o.view, masks(), {}, no_view, ScaledGate{}, t.o.view,
                  trial.scale);
  Exec().fence();
  t.o.download();
  for (int h = 0; h < 2; ++h)
    for (int i = 0; i < 5; ++i)
      for (int d = 0; d < 6; ++d) {
        const double gate = before(static_cast<std::size_t>(h * t.o.stride[1] + i * t.o.stride[2] + d));
        ASSERT_EQ(t.o(0, h, i, d), gate > 0 ? trial.plain.o(0, h, i, d) * (0.5 + static_cast<double>(h)) : 3);
      }
}

/// o of 8 bits is the functor's result of what attention gives in double, whose kernels are the fewest.
template <class Out>
void expect_8_bits(bool to_integers) {
  Trial<double> t({2, 4, 2, 70, 90, 32, 24});
  t.run(KokkosNN::CausalMask{20});
  const Kokkos::View<Out****, Kokkos::LayoutRight, Memory> o("o", 2, 4, 70, 24);
  const Kokkos::View<double***, Memory> scale("scale", 4, 1, 1);
  Kokkos::deep_copy(scale, 100.0);
  fused_attention(Exec(), t.q.view, t.k.view, t.v.view, o, KokkosNN::CausalMask{20}, {}, no_view, Quantise{to_integers},
                  scale);
  Exec().fence();
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), o);
  for (int b = 0; b < 2; ++b)
    for (int h = 0; h < 4; ++h)
      for (int i = 0; i < 70; ++i)
        for (int d = 0; d < 24; ++d) {
          const Out want(Quantise{to_integers}(t.o(b, h, i, d), 100.0));
          const auto at = [](int n) { return static_cast<std::size_t>(n); };
          ASSERT_EQ(static_cast<double>(host(at(b), at(h), at(i), at(d))), static_cast<double>(want));
        }
}

TEST(FusedAttentionCalls, QuantiseResultsToFloat8) { expect_8_bits<KokkosNN::float8_e4m3>(false); }
TEST(FusedAttentionCalls, QuantiseResultsToIntegers) { expect_8_bits<std::int8_t>(true); }

TEST(FusedAttentionCalls, TakePackedSequencesAndInputsOfTokens) {
  const Trial<double> t({1, 4, 2, 9, 9, 8, 6}, true);
  const Kokkos::View<std::int32_t*, Memory> offsets("offsets", 3);
  const auto offsets_host = Kokkos::create_mirror(offsets);
  offsets_host(0)         = 0;
  offsets_host(1)         = 4;
  offsets_host(2)         = 9;
  Kokkos::deep_copy(offsets, offsets_host);
  const Kokkos::View<double***, Kokkos::LayoutRight, Memory> plain("plain", 9, 4, 6), fused("fused", 9, 4, 6);
  const HeadsOperand<double> gate(1, 4, 9, 6, true, false);
  const Kokkos::View<double**, Memory> scale("scale", 4, 1);
  Kokkos::deep_copy(scale, 2.0);
  KokkosNN::packed_attention(Exec(), t.q.rows(), t.k.rows(), t.v.rows(), offsets, offsets, plain,
                             KokkosNN::CausalMask{});
  KokkosNN::fused_packed_attention(Exec(), t.q.rows(), t.k.rows(), t.v.rows(), offsets, offsets, fused,
                                   KokkosNN::CausalMask{}, {}, no_view, ScaledGate{}, gate.rows(), scale);
  Exec().fence();
  const auto r   = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), plain);
  const auto got = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), fused);
  for (std::size_t i = 0; i < 9; ++i)
    for (std::size_t h = 0; h < 4; ++h)
      for (std::size_t d = 0; d < 6; ++d) {
        const bool is_on = gate(0, static_cast<int>(h), static_cast<int>(i), static_cast<int>(d)) > 0;
        ASSERT_EQ(got(i, h, d), is_on ? r(i, h, d) * 2 : 3);
      }
}

TEST(FusedAttentionCalls, NameTheInputThatIsWrongAndWriteNothing) {
  FusedTrial<double> trial({1, 2, 1, 5, 7, 8, 6});
  Trial<double>& t   = trial.fused;
  const auto message = [&](const auto& gate, const auto& scale) {
    return message_of([&] {
      fused_attention(Exec(), t.q.view, t.k.view, t.v.view, t.o.view, masks(), {}, t.lse, ScaledGate{}, gate, scale);
    });
  };
  const Kokkos::View<double**, Memory> wrong("wrong", 4, 6);
  EXPECT_EQ(message(wrong, trial.scale),
            "KokkosNN::fused_attention: input 0 of extents (4, 6) does not broadcast to o, (1, 2, 5, 6)");
  const auto part = Kokkos::subview(t.o.view, Kokkos::ALL, 0, Kokkos::ALL, Kokkos::ALL);
  EXPECT_NE(message(part, trial.scale).find("KokkosNN::fused_attention: input 0 at "), std::string::npos);
  EXPECT_NE(message(trial.gate.view, t.lse).find("input 1 of extents (1, 2, 5)"), std::string::npos);
  t.o.download();
  for (std::size_t i = 0; i < t.o.host.size(); ++i) {
    ASSERT_EQ(t.o.host(i), static_cast<double>(value_at(static_cast<std::int64_t>(i))));
  }
}

}  // namespace
}  // namespace KokkosNNTest
