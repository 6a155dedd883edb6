// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/types.hpp"

#include <KokkosNN/attention_mask_gradients.hpp>

#include <Kokkos_Core.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

// Gradients of attention by a bias and by sinks, against long double.

namespace KokkosNNTest {
namespace {

using KokkosNN::attention_bias_backward;
using KokkosNN::attention_sinks_backward;
using KokkosNN::AttentionOptions;
using KokkosNN::masks;

constexpr std::size_t batch = 2, heads = 4, kv_heads = 2, queries = 37, keys = 41, dim = 11, value_dim = 18;

double value_at(std::size_t i, double phase) { return std::sin(0.7 * static_cast<double>(i) + phase); }

template <class T>
struct Heads {
  Kokkos::View<T****, Kokkos::LayoutRight, Memory> view;
  typename Kokkos::View<T****, Kokkos::LayoutRight, Memory>::host_mirror_type host;

  Heads(std::size_t a, std::size_t b, std::size_t c, std::size_t d, double phase)
      : view("heads", a, b, c, d), host(Kokkos::create_mirror(view)) {
    for (std::size_t i = 0; i < host.size(); ++i) host.data()[i] = static_cast<T>(value_at(i, phase));
    Kokkos::deep_copy(view, host);
  }
  long double exact(std::size_t a, std::size_t b, std::size_t c, std::size_t d) const {
    return static_cast<long double>(static_cast<double>(host(a, b, c, d)));
  }
};

/// A causal call with a softcap and sinks, whose bias is broadcast along the axes of extent 1.
template <class T>
struct Trial {
  using A       = KokkosNN::accumulator_t<T>;
  using Extents = std::array<std::size_t, 4>;

  Extents n;
  Heads<T> q{batch, heads, queries, dim, 0.1}, k{batch, kv_heads, keys, dim, 0.5};
  Heads<T> v{batch, kv_heads, keys, value_dim, 1.1}, o{batch, heads, queries, value_dim, 0};
  Heads<T> dout{batch, heads, queries, value_dim, 2.3}, dbias;
  Heads<float> bias;
  Kokkos::View<A***, Memory> lse{"lse", batch, heads, queries};
  Kokkos::View<float*, Memory> sinks{"sinks", heads}, dsinks{"dsinks", heads};
  std::vector<long double> want_bias, want_sinks = std::vector<long double>(heads);

  explicit Trial(const Extents& extents)
      : n(extents),
        dbias(n[0], n[1], n[2], n[3], 3),
        bias(n[0], n[1], n[2], n[3], 0.9),
        want_bias(n[0] * n[1] * n[2] * n[3]) {
    Kokkos::deep_copy(sinks, 0.25f);
  }
  AttentionOptions options() const { return {.scale = 0.6, .softcap = 2, .sinks = sinks}; }

  void run() {
    const auto mask = masks(KokkosNN::CausalMask{3}, KokkosNN::AdditiveBias{bias.view});
    KokkosNN::attention(Exec(), q.view, k.view, v.view, o.view, mask, options(), lse);
    attention_bias_backward(Exec(), q.view, k.view, v.view, o.view, dout.view, lse, mask, dbias.view, options());
    attention_sinks_backward(Exec(), o.view, dout.view, lse, dsinks, options());
    Exec().fence();
    Kokkos::deep_copy(o.host, o.view);
    Kokkos::deep_copy(dbias.host, dbias.view);
  }
  /// Largest error, in units of the largest gradient.
  double error() {
    for (std::size_t b = 0; b < batch; ++b)
      for (std::size_t h = 0; h < heads; ++h)
        for (std::size_t i = 0; i < queries; ++i) add(b, h, i);
    const auto got_sinks = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), dsinks);
    double worst = 0, size = 0;
    for (std::size_t i = 0; i < want_bias.size(); ++i) {
      size  = std::max(size, static_cast<double>(std::abs(want_bias[i])));
      worst = std::max(worst, std::abs(static_cast<double>(dbias.host.data()[i]) - static_cast<double>(want_bias[i])));
    }
    for (std::size_t h = 0; h < heads; ++h) {
      EXPECT_NEAR(got_sinks(h), static_cast<double>(want_sinks[h]), 1e-4 + 40 * unit()) << h;
    }
    return worst / size;
  }
  static double unit() { return std::ldexp(1.0, -Format<T>::digits); }

 private:
  void add(std::size_t b, std::size_t h, std::size_t i) {
    const std::size_t g = h / (heads / kv_heads), last = std::min(i + 3, keys - 1);
    std::vector<long double> z(last + 1);
    long double sum = std::exp(0.25L), delta = 0;
    for (std::size_t j = 0; j <= last; ++j) {
      long double s = 0;
      for (std::size_t d = 0; d < dim; ++d) s += q.exact(b, h, i, d) * k.exact(b, g, j, d);
      z[j] = 2 * std::tanh(0.6L * s / 2) + bias.exact(b % n[0], h % n[1], i % n[2], j % n[3]);
      sum += std::exp(z[j]);
    }
    for (std::size_t d = 0; d < value_dim; ++d) delta += o.exact(b, h, i, d) * dout.exact(b, h, i, d);
    want_sinks[h] -= std::exp(0.25L) / sum * delta;
    for (std::size_t j = 0; j <= last; ++j) {
      long double dp = 0;
      for (std::size_t d = 0; d < value_dim; ++d) dp += dout.exact(b, h, i, d) * v.exact(b, g, j, d);
      want_bias[((b % n[0] * n[1] + h % n[1]) * n[2] + i % n[2]) * n[3] + j % n[3]] +=
          std::exp(z[j]) / sum * (dp - delta);
    }
  }
};

template <class T>
class AttentionMaskGradients : public ::testing::Test {};
TYPED_TEST_SUITE(AttentionMaskGradients, ElementTypes, ElementNames);

TYPED_TEST(AttentionMaskGradients, AreSumsOverTheAxesThatABiasIsBroadcastAlong) {
  using Extents = typename Trial<TypeParam>::Extents;
  for (const Extents& extents : {Extents{batch, heads, queries, keys}, Extents{1, heads, queries, keys},
                                 Extents{batch, 1, 1, keys}, Extents{1, 1, queries, 1}, Extents{1, 1, 1, 1}}) {
    Trial<TypeParam> trial(extents);
    trial.run();
    EXPECT_LE(trial.error(), 200 * Trial<TypeParam>::unit() * (is_16_bit<TypeParam> ? 0.02 : 1)) << extents[3];
  }
}

TYPED_TEST(AttentionMaskGradients, AreZeroWhereNothingIsSeen) {
  Trial<TypeParam> trial({1, 1, queries, keys});
  const Kokkos::View<std::int32_t*, Memory> lengths("lengths", batch);
  Kokkos::deep_copy(lengths, 9);
  const auto mask = masks(KokkosNN::RowLengths{lengths}, KokkosNN::AdditiveBias{trial.bias.view});
  for (std::size_t j = 9; j < keys; ++j) {
    for (std::size_t d = 0; d < value_dim; ++d) trial.v.host(1, 1, j, d) = static_cast<TypeParam>(NAN);
  }
  Kokkos::deep_copy(trial.v.view, trial.v.host);
  const AttentionOptions zero{.masked_row = KokkosNN::MaskedRowPolicy::zero};
  const auto run = [&] {
    KokkosNN::attention(Exec(), trial.q.view, trial.k.view, trial.v.view, trial.o.view, mask, zero, trial.lse);
    attention_bias_backward(Exec(), trial.q.view, trial.k.view, trial.v.view, trial.o.view, trial.dout.view, trial.lse,
                            mask, trial.dbias.view, zero);
    Exec().fence();
    Kokkos::deep_copy(trial.dbias.host, trial.dbias.view);
  };
  run();
  EXPECT_TRUE(std::isfinite(static_cast<double>(trial.dbias.host(0, 0, 5, 8))));
  EXPECT_NE(static_cast<double>(trial.dbias.host(0, 0, 5, 8)), 0);
  for (std::size_t j = 9; j < keys; ++j) ASSERT_EQ(static_cast<double>(trial.dbias.host(0, 0, 5, j)), 0) << j;
  Kokkos::deep_copy(lengths, 0);
  run();
  for (std::size_t i = 0; i < trial.dbias.host.size(); ++i) {
    ASSERT_EQ(static_cast<double>(trial.dbias.host.data()[i]), 0) << i;
  }
}

TEST(AttentionMaskGradientCalls, NameTheFunctionAndWhatIsWrong) {
  const auto message = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "no error";
  };
  Trial<float> t({1, 1, queries, keys});
  const auto by_bias = [&](const auto& mask, const auto& dbias) {
    return message([&] {
      attention_bias_backward(Exec(), t.q.view, t.k.view, t.v.view, t.o.view, t.dout.view, t.lse, mask, dbias);
    });
  };
  EXPECT_EQ(by_bias(KokkosNN::CausalMask{}, t.dbias.view),
            "KokkosNN::attention_bias_backward: the mask has no AdditiveBias");
  const Kokkos::View<float****, Memory> smaller("smaller", 1, 1, queries, 1);
  EXPECT_EQ(by_bias(KokkosNN::AdditiveBias{t.bias.view}, smaller),
            "KokkosNN::attention_bias_backward: dbias must be (1, 1, 37, 41), but is (1, 1, 37, 1)");
  EXPECT_EQ(message([&] { attention_sinks_backward(Exec(), t.o.view, t.dout.view, t.lse, t.dsinks); }),
            "KokkosNN::attention_sinks_backward: options have no sinks");
}

}  // namespace
}  // namespace KokkosNNTest
