// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/types.hpp"

#include <KokkosNN/attention.hpp>

#include <Kokkos_Core.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

// Gradients of attention: those in double against central differences of attention, the other types against double.

namespace KokkosNNTest {
namespace {

using KokkosNN::attention;
using KokkosNN::attention_backward;
using KokkosNN::AttentionOptions;
using KokkosNN::masks;

struct Extents {
  std::size_t batch = 2, heads = 4, kv_heads = 2, queries = 5, keys = 7, dim = 3, value_dim = 4;
};

double value_at(std::size_t i, double phase) { return std::sin(0.7 * static_cast<double>(i) + phase); }

/// A tensor and its copy on the host. `Layout` decides which axis is contiguous.
template <class T, class Layout = Kokkos::LayoutRight>
struct Tensor {
  Kokkos::View<T****, Layout, Memory> view;
  typename Kokkos::View<T****, Layout, Memory>::host_mirror_type host;

  Tensor(std::size_t a, std::size_t b, std::size_t c, std::size_t d, double phase)
      : view("tensor", a, b, c, d), host(Kokkos::create_mirror(view)) {
    std::size_t n = 0;
    for (std::size_t i = 0; i < a; ++i)
      for (std::size_t j = 0; j < b; ++j)
        for (std::size_t k = 0; k < c; ++k)
          for (std::size_t l = 0; l < d; ++l) host(i, j, k, l) = static_cast<T>(value_at(n++, phase));
    upload();
  }
  void upload() { Kokkos::deep_copy(view, host); }
  void download() { Kokkos::deep_copy(host, view); }
};

template <class F>
void for_each(const auto& host, const F& f) {
  for (std::size_t i = 0; i < host.extent(0); ++i)
    for (std::size_t j = 0; j < host.extent(1); ++j)
      for (std::size_t k = 0; k < host.extent(2); ++k)
        for (std::size_t l = 0; l < host.extent(3); ++l) f(i, j, k, l);
}

/// Tensors of a call. Values are sines, which each type rounds by itself.
template <class T, class Layout = Kokkos::LayoutRight>
struct Problem {
  using Operand = Tensor<T, Layout>;
  Operand q, k, v, o, dout, dq, dk, dv;
  Kokkos::View<KokkosNN::accumulator_t<T>***, Memory> lse;

  explicit Problem(const Extents& n = {})
      : q(n.batch, n.heads, n.queries, n.dim, 0.1),
        k(n.batch, n.kv_heads, n.keys, n.dim, 0.5),
        v(n.batch, n.kv_heads, n.keys, n.value_dim, 1.1),
        o(n.batch, n.heads, n.queries, n.value_dim, 0),
        dout(n.batch, n.heads, n.queries, n.value_dim, 2.3),
        dq(n.batch, n.heads, n.queries, n.dim, 3),
        dk(n.batch, n.kv_heads, n.keys, n.dim, 3),
        dv(n.batch, n.kv_heads, n.keys, n.value_dim, 3),
        lse("lse", n.batch, n.heads, n.queries) {}

  template <class M>
  void forward(const M& mask, const AttentionOptions& options) {
    attention(Exec(), q.view, k.view, v.view, o.view, mask, options, lse);
  }
  template <class M>
  void backward(const M& mask, const AttentionOptions& options = {}) {
    forward(mask, options);
    attention_backward(Exec(), q.view, k.view, v.view, o.view, dout.view, lse, mask, dq.view, dk.view, dv.view,
                       options);
    Exec().fence();
    for (Operand* each : {&dq, &dk, &dv}) each->download();
  }
  /// Sum of o dout.
  template <class M>
  double loss(const M& mask, const AttentionOptions& options) {
    forward(mask, options);
    Exec().fence();
    o.download();
    double sum = 0;
    for_each(o.host,
             [&](auto... i) { sum += static_cast<double>(o.host(i...)) * static_cast<double>(dout.host(i...)); });
    return sum;
  }
};

/// Largest difference of a gradient and central differences of the loss by the elements of x.
template <class M>
double difference(Problem<double>& p, Tensor<double>& x, const Tensor<double>& gradient, const M& mask,
                  const AttentionOptions& options) {
  constexpr double step = 1e-5;
  double worst          = 0;
  for_each(x.host, [&](auto... i) {
    const double value = x.host(i...);
    double loss[2];
    for (const int side : {0, 1}) {
      x.host(i...) = side == 0 ? value - step : value + step;
      x.upload();
      loss[side] = p.loss(mask, options);
    }
    x.host(i...) = value;
    x.upload();
    worst = std::max(worst, std::abs(gradient.host(i...) - (loss[1] - loss[0]) / (2 * step)));
  });
  return worst;
}

/// The Views of masks: lengths a batch entry, kept keys, a bias, slopes and sinks.
struct MaskViews {
  Kokkos::View<std::int32_t*, Memory> lengths{"lengths", 2};
  Kokkos::View<bool*, Memory> keep{"keep", 7};
  Kokkos::View<double**, Memory> bias{"bias", 5, 7};
  Kokkos::View<double*, Memory> slopes{"slopes", 4};
  Kokkos::View<double*, Memory> sinks{"sinks", 4};

  MaskViews() {
    const auto set = [](const auto& view, const auto& f) {
      const auto host = Kokkos::create_mirror(view);
      for (std::size_t i = 0; i < host.size(); ++i) {
        host.data()[i] = static_cast<typename std::decay_t<decltype(host)>::value_type>(f(i));
      }
      Kokkos::deep_copy(view, host);
    };
    set(lengths, [](std::size_t i) { return i == 0 ? 6 : 0; });
    set(keep, [](std::size_t i) { return i % 3 != 1; });
    set(bias, [](std::size_t i) { return value_at(i, 0.4); });
    set(slopes, [](std::size_t i) { return 0.125 * static_cast<double>(i); });
    set(sinks, [](std::size_t i) { return 0.5 - static_cast<double>(i) / 4; });
  }
};

template <class M>
void expect_derivatives(const M& mask, const AttentionOptions& options = {}) {
  Problem<double> p;
  p.backward(mask, options);
  const Problem<double> gradients = p;
  EXPECT_LE(difference(p, p.q, gradients.dq, mask, options), 1e-8);
  EXPECT_LE(difference(p, p.k, gradients.dk, mask, options), 1e-8);
  EXPECT_LE(difference(p, p.v, gradients.dv, mask, options), 1e-8);
}

TEST(AttentionGradients, AreDerivativesUnderEveryMask) {
  const MaskViews views;
  const AttentionOptions zero{.masked_row = KokkosNN::MaskedRowPolicy::zero};
  expect_derivatives(masks(), {.scale = -0.75});
  expect_derivatives(masks(KokkosNN::CausalMask{-1}, KokkosNN::SlidingWindow{2, 0, 0}), zero);
  expect_derivatives(masks(KokkosNN::RowLengths{views.lengths}, KokkosNN::BooleanMask{views.keep}), zero);
  expect_derivatives(masks(KokkosNN::AdditiveBias{views.bias}, KokkosNN::Alibi{views.slopes, 1}),
                     {.softcap = 1.5, .sinks = views.sinks});
  expect_derivatives(KokkosNN::CausalMask{2}, {.dropout = {.probability = 0.4, .seed = 3}});
}

template <class T>
class AttentionGradientTypes : public ::testing::Test {};
TYPED_TEST_SUITE(AttentionGradientTypes, ElementTypes, ElementNames);

/// Largest difference of two gradients, in units of the type's precision and of the largest element.
template <class T>
double error_of(const auto& got, const auto& want) {
  double worst = 0, size = 1;
  for_each(want.host, [&](auto... i) { size = std::max(size, std::abs(static_cast<double>(want.host(i...)))); });
  for_each(want.host, [&](auto... i) {
    const double error = std::abs(static_cast<double>(got.host(i...)) - static_cast<double>(want.host(i...)));
    worst              = std::isnan(error) ? INFINITY : std::max(worst, error);
  });
  return worst / size * std::ldexp(1.0, Format<T>::digits);
}

template <class T>
void copy(Tensor<double>& to, const auto& from) {
  for_each(from.host, [&](auto... i) { to.host(i...) = static_cast<double>(from.host(i...)); });
  to.upload();
}

/// The problem in double, of the values that T holds.
template <class T>
Problem<double> in_double(const Problem<T, Kokkos::LayoutLeft>& p, const Extents& n) {
  Problem<double> exact(n);
  copy<T>(exact.q, p.q);
  copy<T>(exact.k, p.k);
  copy<T>(exact.v, p.v);
  copy<T>(exact.dout, p.dout);
  return exact;
}

TYPED_TEST(AttentionGradientTypes, AreThoseOfDoubleForManyKeysAndQueriesInAnyLayout) {
  for (const Extents& n : {Extents{1, 2, 1, 140, 5, 16, 8}, Extents{2, 2, 2, 3, 300, 17, 33},
                           Extents{1, 1, 1, 1, 1, 1, 1}, Extents{1, 3, 1, 4, 4, 256, 256}}) {
    Problem<TypeParam, Kokkos::LayoutLeft> p(n);
    Problem<double> exact = in_double<TypeParam>(p, n);
    p.backward(KokkosNN::CausalMask{2});
    exact.backward(KokkosNN::CausalMask{2});
    // Sums are of n.keys or n.queries terms, each with the error of o in its delta.
    EXPECT_LE(error_of<TypeParam>(p.dq, exact.dq), 64) << n.keys << " keys";
    EXPECT_LE(error_of<TypeParam>(p.dk, exact.dk), 64) << n.keys << " keys";
    EXPECT_LE(error_of<TypeParam>(p.dv, exact.dv), 64) << n.keys << " keys";
  }
}

TYPED_TEST(AttentionGradientTypes, DoNotLookAtKeysThatAMaskRulesOut) {
  const MaskViews views;
  const auto mask = masks(KokkosNN::RowLengths{views.lengths}, KokkosNN::BooleanMask{views.keep});
  Problem<TypeParam> p, clean;
  for (auto* x : {&p.k, &p.v}) {
    for_each(x->host, [&](std::size_t b, std::size_t h, std::size_t j, std::size_t d) {
      if (b == 1 || j % 3 == 1 || j >= 6) x->host(b, h, j, d) = static_cast<TypeParam>(NAN);
    });
    x->upload();
  }
  p.backward(mask, {.masked_row = KokkosNN::MaskedRowPolicy::zero});
  clean.backward(mask, {.masked_row = KokkosNN::MaskedRowPolicy::zero});
  const double bound = on_gpu ? 8 : 0;  // a GPU computes rows beside a NaN by another kernel
  EXPECT_LE(error_of<TypeParam>(p.dq, clean.dq), bound);
  EXPECT_LE(error_of<TypeParam>(p.dk, clean.dk), bound);
  EXPECT_LE(error_of<TypeParam>(p.dv, clean.dv), bound);
  EXPECT_EQ(static_cast<double>(p.dk.host(0, 0, 1, 0)), 0);
  EXPECT_EQ(static_cast<double>(p.dq.host(1, 0, 0, 0)), 0);
}

TYPED_TEST(AttentionGradientTypes, HaveTheSameBitsInAnyBatchAndEachTime) {
  Problem<TypeParam> all({3, 4, 2, 150, 140, 8, 8}), one({1, 4, 2, 150, 140, 8, 8});
  all.backward(KokkosNN::CausalMask{});
  const Problem<TypeParam> first = all;
  const auto dk                  = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), first.dk.view);
  all.backward(KokkosNN::CausalMask{});
  one.backward(KokkosNN::CausalMask{});
  for_each(one.dk.host, [&](auto... i) {
    EXPECT_EQ(static_cast<double>(all.dk.host(i...)), static_cast<double>(one.dk.host(i...)));
    EXPECT_EQ(static_cast<double>(all.dk.host(i...)), static_cast<double>(dk(i...)));
  });
  for_each(one.dq.host, [&](auto... i) {
    EXPECT_EQ(static_cast<double>(all.dq.host(i...)), static_cast<double>(one.dq.host(i...)));
  });
}

TEST(AttentionGradients, AreZeroWithoutQueriesOrKeys) {
  Problem<float> no_queries({2, 2, 1, 0, 4, 8, 8}), no_keys({2, 2, 1, 3, 0, 8, 8});
  no_queries.backward(masks());
  for_each(no_queries.dk.host, [&](auto... i) { EXPECT_EQ(no_queries.dk.host(i...), 0); });
  for_each(no_queries.dv.host, [&](auto... i) { EXPECT_EQ(no_queries.dv.host(i...), 0); });
  no_keys.backward(masks());
  for_each(no_keys.dq.host, [&](auto... i) { EXPECT_EQ(no_keys.dq.host(i...), 0); });
}

/// The message of a call that throws; dq, dk and dv stay.
std::string complaint(Problem<float>& p, const AttentionOptions& options = {}) {
  const Problem<float> untouched;
  try {
    p.backward(masks(), options);
  } catch (const std::invalid_argument& error) {
    p.dq.download();
    for_each(p.dq.host, [&](auto... i) { EXPECT_EQ(p.dq.host(i...), untouched.dq.host(i...)); });
    return error.what();
  }
  return "no error";
}

TEST(AttentionGradients, NameTheFunctionAndTheExtentsOfWhatIsWrong) {
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find("KokkosNN::attention_backward: ") == 0 && text.find(part) != std::string::npos;
  };
  Problem<float> short_dk, wide_dout, overlapping, good;
  short_dk.dk = Tensor<float>(2, 2, 6, 3, 3);
  EXPECT_TRUE(has(complaint(short_dk), "dk of (batch, head, sequence, dim) (2, 2, 6, 3) must have 7 along sequence"));
  wide_dout.dout = Tensor<float>(2, 4, 5, 5, 3);
  EXPECT_TRUE(has(complaint(wide_dout), "dout of (batch, head, sequence, dim) (2, 4, 5, 5) must have 4 along dim"));
  overlapping.dv = overlapping.v;
  EXPECT_TRUE(has(complaint(overlapping), "overlap"));
}

}  // namespace
}  // namespace KokkosNNTest
