// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/recorder.hpp"
#include "support/types.hpp"

#include <KokkosNN/graph_attention.hpp>

#include <Kokkos_Core.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

// Attention over a graph and its gradients, against long double.

namespace KokkosNNTest {
namespace {

using KokkosNN::AttentionOptions;
using KokkosNN::graph_attention;
using KokkosNN::graph_attention_backward;
using KokkosNN::MaskedRowPolicy;

constexpr std::size_t nodes = 60, sources = 50, heads = 4, kv_heads = 2, dim = 19, value_dim = 34;
constexpr long double infinity = std::numeric_limits<long double>::infinity();

double value_at(std::size_t i, double phase) { return std::sin(0.7 * static_cast<double>(i) + phase); }

/// Node i has i % 7 edges, one in nine of them padding, the last node an edge from every source, twice; no edge comes
/// from source 3.
struct Graph {
  std::vector<std::int64_t> rows{1};  // an edge ahead of all rows
  std::vector<std::int32_t> edges{7};

  Graph() {
    for (std::size_t i = 0; i < nodes; ++i) {
      const std::size_t count = i + 1 == nodes ? 2 * sources : i % 7;
      for (std::size_t e = 0; e < count; ++e) {
        const auto source = static_cast<std::int32_t>((7 * edges.size() + 3 * i) % sources);
        edges.push_back(edges.size() % 9 == 4 ? (i % 2 == 0 ? -1 : std::int32_t(sources)) : source == 3 ? 4 : source);
      }
      rows.push_back(static_cast<std::int64_t>(edges.size()));
    }
    edges.push_back(2);  // behind all rows
  }
};

template <class T, class Layout = Kokkos::LayoutRight>
struct Rows {
  Kokkos::View<T***, Layout, Memory> view;
  typename Kokkos::View<T***, Layout, Memory>::host_mirror_type host;

  Rows(std::size_t count, std::size_t head_count, std::size_t elements, double phase)
      : view("rows", count, head_count, elements), host(Kokkos::create_mirror(view)) {
    std::size_t n = 0;
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t h = 0; h < head_count; ++h)
        for (std::size_t d = 0; d < elements; ++d) host(i, h, d) = static_cast<T>(value_at(n++, phase));
    upload();
  }
  void upload() { Kokkos::deep_copy(view, host); }
  void download() { Kokkos::deep_copy(host, view); }
  long double exact(std::size_t i, std::size_t h, std::size_t d) const {
    return static_cast<long double>(static_cast<double>(host(i, h, d)));
  }
};

template <class V>
auto on_host(const V& view) {
  return Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), view);
}

/// A call and its gradients. On CUDA contiguous rows of whole packs of 16 bytes have kernels of their own.
template <class T, std::size_t dim_ = ::KokkosNNTest::dim, std::size_t value_dim_ = ::KokkosNNTest::value_dim,
          class OtherLayout = Kokkos::LayoutLeft>
struct Trial {
  using X                                = T;
  using A                                = KokkosNN::accumulator_t<T>;
  static constexpr std::size_t dim       = dim_;
  static constexpr std::size_t value_dim = value_dim_;
  using B = std::conditional_t<std::is_same_v<T, Half>, float, T>;  // a bias of float beside 16 bits, too

  Graph graph;
  Rows<T> q{nodes, heads, dim, 0.1}, o{nodes, heads, value_dim, 3}, dq{nodes, heads, dim, 3};
  Rows<T, OtherLayout> k{sources, kv_heads, dim, 0.5}, dout{nodes, heads, value_dim, 2.3};
  Rows<T> v{sources, kv_heads, value_dim, 1.1}, dk{sources, kv_heads, dim, 3}, dv{sources, kv_heads, value_dim, 3};
  Kokkos::View<std::int64_t*, Memory> row_map{"row map", nodes + 1};
  Kokkos::View<std::int32_t*, Memory> entries{"entries", graph.edges.size()};
  Kokkos::View<B**, Memory> bias{"bias", graph.edges.size(), heads}, dbias{"dbias", graph.edges.size(), heads};
  Kokkos::View<A**, Memory> lse{"lse", nodes, heads};
  typename Kokkos::View<B**, Memory>::host_mirror_type bias_host = Kokkos::create_mirror(bias);

  Trial() {
    const auto rows_host    = Kokkos::create_mirror_view(row_map);
    const auto entries_host = Kokkos::create_mirror_view(entries);
    std::copy(graph.rows.begin(), graph.rows.end(), rows_host.data());
    std::copy(graph.edges.begin(), graph.edges.end(), entries_host.data());
    Kokkos::deep_copy(row_map, rows_host);
    Kokkos::deep_copy(entries, entries_host);
    for (std::size_t e = 0; e < bias_host.extent(0); ++e)
      for (std::size_t h = 0; h < heads; ++h) bias_host(e, h) = static_cast<B>(value_at(e * heads + h, 0.7));
    Kokkos::deep_copy(bias, bias_host);
    Kokkos::deep_copy(dbias, B(7.0f));
  }
  void run(const AttentionOptions& options) {
    graph_attention(Exec(), q.view, k.view, v.view, row_map, entries, o.view, options, bias, lse);
    graph_attention_backward(Exec(), q.view, k.view, v.view, row_map, entries, o.view, dout.view, lse, dq.view, dk.view,
                             dv.view, options, bias, dbias);
    Exec().fence();
    for (Rows<T>* each : {&o, &dq, &dk, &dv}) each->download();
  }
};

/// Results and gradients in long double, o of the gradients being that of the call.
struct Exact {
  std::vector<long double> o, dq, dk, dv, dbias, lse;

  template <class T>
  Exact(const T& t, long double scale, long double softcap, long double sink)
      : o(nodes * heads * T::value_dim),
        dq(nodes * heads * T::dim),
        dk(sources * kv_heads * T::dim),
        dv(sources * kv_heads * T::value_dim),
        dbias(t.graph.edges.size() * heads, 7),
        lse(nodes * heads) {
    for (std::size_t i = 0; i < nodes; ++i)
      for (std::size_t h = 0; h < heads; ++h) add(t, i, h, scale, softcap, sink);
  }

 private:
  template <class T>
  void add(const T& t, std::size_t i, std::size_t h, long double scale, long double softcap, long double sink) {
    const auto begin = static_cast<std::size_t>(t.graph.rows[i]), end = static_cast<std::size_t>(t.graph.rows[i + 1]);
    const std::size_t g = h / (heads / kv_heads);
    std::vector<long double> z(end - begin, -infinity), slope(end - begin, 1);
    long double sum = std::exp(sink), delta = 0;
    for (std::size_t e = begin; e < end; ++e) {
      dbias[e * heads + h] = 0;
      if (!is_edge(t, e)) continue;
      long double s = 0;
      for (std::size_t d = 0; d < T::dim; ++d) s += scale * t.q.exact(i, h, d) * t.k.exact(source(t, e), g, d);
      slope[e - begin] = 1 - std::tanh(s / softcap) * std::tanh(s / softcap);
      z[e - begin]     = softcap * std::tanh(s / softcap) + static_cast<double>(t.bias_host(e, h));
      sum += std::exp(z[e - begin]);
    }
    lse[i * heads + h] = std::log(sum);
    for (std::size_t d = 0; d < T::value_dim; ++d) delta += t.o.exact(i, h, d) * t.dout.exact(i, h, d);
    for (std::size_t e = begin; e < end; ++e) {
      if (!is_edge(t, e)) continue;
      const long double p = std::exp(z[e - begin]) / sum;
      const std::size_t j = source(t, e);
      long double dp      = 0;
      for (std::size_t d = 0; d < T::value_dim; ++d) {
        dp += t.dout.exact(i, h, d) * t.v.exact(j, g, d);
        o[(i * heads + h) * T::value_dim + d] += p * t.v.exact(j, g, d);
        dv[(j * kv_heads + g) * T::value_dim + d] += p * t.dout.exact(i, h, d);
      }
      const long double gradient = p * (dp - delta);
      dbias[e * heads + h]       = gradient;
      for (std::size_t d = 0; d < T::dim; ++d) {
        const long double by_score = scale * gradient * slope[e - begin];
        dq[(i * heads + h) * T::dim + d] += by_score * t.k.exact(j, g, d);
        dk[(j * kv_heads + g) * T::dim + d] += by_score * t.q.exact(i, h, d);
      }
    }
  }
  template <class T>
  static std::size_t source(const T& t, std::size_t e) {
    return static_cast<std::size_t>(t.graph.edges[e]);
  }
  template <class T>
  static bool is_edge(const T& t, std::size_t e) {
    return t.graph.edges[e] >= 0 && source(t, e) < sources;
  }
};

template <class T>
class GraphAttention : public ::testing::Test {};
TYPED_TEST_SUITE(GraphAttention, ElementTypes, ElementNames);

template <class Host>
void expect_near(const Host& got, const std::vector<long double>& want, double tolerance, const char* what) {
  std::size_t n = 0;
  for (std::size_t i = 0; i < got.extent(0); ++i)
    for (std::size_t h = 0; h < got.extent(1); ++h)
      for (std::size_t d = 0; d < got.extent(2); ++d, ++n) {
        ASSERT_NEAR(static_cast<double>(got(i, h, d)), static_cast<double>(want[n]), tolerance)
            << what << ' ' << i << ' ' << h << ' ' << d;
      }
}

template <class Trial>
void expect_right() {
  using T = typename Trial::X;
  for (const bool has_sinks : {false, true}) {
    const Kokkos::View<float*, Memory> sinks("sinks", heads);
    Kokkos::deep_copy(sinks, 0.5f);
    AttentionOptions options{.scale = -0.75, .softcap = 2, .masked_row = MaskedRowPolicy::zero};
    if (has_sinks) options.sinks = sinks;
    Trial trial;
    trial.run(options);
    const Exact exact(trial, -0.75L, 2, has_sinks ? 0.5L : -infinity);
    const double unit      = std::ldexp(1.0, -Format<T>::digits);
    const double tolerance = 64 * unit * (is_16_bit<T> ? 0.05 : 1) * (1 + double(Trial::dim / 32));
    expect_near(trial.o.host, exact.o, tolerance, "o");
    expect_near(trial.dq.host, exact.dq, 10 * tolerance, "dq");
    expect_near(trial.dk.host, exact.dk, 20 * tolerance, "dk");
    expect_near(trial.dv.host, exact.dv, 20 * tolerance, "dv");
    const auto lse   = on_host(trial.lse);
    const auto dbias = on_host(trial.dbias);
    for (std::size_t i = 0; i < nodes; ++i)
      for (std::size_t h = 0; h < heads; ++h) {
        const auto want = static_cast<double>(exact.lse[i * heads + h]);
        if (lse(i, h) != want) {
          ASSERT_NEAR(lse(i, h), want, (std::is_same_v<T, double> ? 1e-13 : 1e-5)) << i << ' ' << h;
        }
      }
    for (std::size_t e = 0; e < dbias.extent(0); ++e)
      for (std::size_t h = 0; h < heads; ++h) {
        ASSERT_NEAR(static_cast<double>(dbias(e, h)), static_cast<double>(exact.dbias[e * heads + h]), 10 * tolerance)
            << e << ' ' << h;
      }
  }
}

TYPED_TEST(GraphAttention, AndItsGradientsAreThoseOfTheEdges) { expect_right<Trial<TypeParam>>(); }

TYPED_TEST(GraphAttention, AndItsGradientsAreThoseOfTheEdgesWhereRowsAreWholePacks) {
  using Right = Kokkos::LayoutRight;
  expect_right<Trial<TypeParam, 32, 64, Right>>();
  expect_right<Trial<TypeParam, 8, 40, Right>>();
  expect_right<Trial<TypeParam, 256, 136, Right>>();
  expect_right<Trial<TypeParam, 64, 8, Right>>();
}

TYPED_TEST(GraphAttention, GivesTheSameBitsEachTime) {
  Trial<TypeParam, 32, 64, Kokkos::LayoutRight> one, other;
  one.run({});
  other.run({});
  const auto same = [](const auto& a, const auto& b) {
    for (std::size_t i = 0; i < a.host.size(); ++i) {
      const auto x = static_cast<double>(a.host.data()[i]), y = static_cast<double>(b.host.data()[i]);
      ASSERT_TRUE(x == y || (std::isnan(x) && std::isnan(y))) << i;
    }
  };
  same(one.o, other.o);
  same(one.dq, other.dq);
  same(one.dk, other.dk);
  same(one.dv, other.dv);
}

TYPED_TEST(GraphAttention, LooksAtNoValueWithoutAWeight) {
  Trial<TypeParam> trial, clean;
  for (std::size_t h = 0; h < kv_heads; ++h) {
    for (std::size_t d = 0; d < value_dim; ++d) trial.v.host(3, h, d) = static_cast<TypeParam>(NAN);  // of no edge
    for (std::size_t d = 0; d < value_dim; ++d) trial.v.host(5, h, d) = static_cast<TypeParam>(INFINITY);
  }
  for (Trial<TypeParam>* t : {&trial, &clean}) {
    for (std::size_t e = 0; e < t->graph.edges.size(); ++e)
      for (std::size_t h = 0; h < heads; ++h) {
        if (t->graph.edges[e] == 5) t->bias_host(e, h) = static_cast<typename Trial<TypeParam>::B>(-INFINITY);
      }
    Kokkos::deep_copy(t->bias, t->bias_host);
    t->v.upload();
    t->run({.masked_row = MaskedRowPolicy::zero});
  }
  for (std::size_t i = 0; i < trial.o.host.size(); ++i) {
    ASSERT_EQ(static_cast<double>(trial.o.host.data()[i]), static_cast<double>(clean.o.host.data()[i])) << i;
  }
  for (std::size_t i = 0; i < trial.dk.host.size(); ++i) {
    ASSERT_EQ(static_cast<double>(trial.dk.host.data()[i]), static_cast<double>(clean.dk.host.data()[i])) << i;
  }
  trial.run({});
  EXPECT_TRUE(std::isnan(static_cast<double>(trial.o.host(0, 0, 0)))) << "node 0 has no edge";
  EXPECT_EQ(static_cast<double>(trial.dq.host(0, 0, 0)), 0);
  EXPECT_EQ(static_cast<double>(trial.dv.host(3, 1, 2)), 0) << "source 3 has no edge";
}

// Nor is there memory for scores then: what points into it is looked at by the undefined-behaviour sanitizer.
TEST(GraphAttentionCalls, OfNoEdgesHaveMaskedRowsAndGradientsOfZero) {
  Trial<float> trial;
  Kokkos::deep_copy(trial.row_map, 0);
  const auto no_entries = Kokkos::subview(trial.entries, std::pair(0, 0));
  const auto& t         = trial;
  graph_attention(Exec(), t.q.view, t.k.view, t.v.view, t.row_map, no_entries, t.o.view,
                  {.masked_row = MaskedRowPolicy::zero}, KokkosNN::no_view, t.lse);
  graph_attention_backward(Exec(), t.q.view, t.k.view, t.v.view, t.row_map, no_entries, t.o.view, t.dout.view, t.lse,
                           t.dq.view, t.dk.view, t.dv.view);
  const auto lse = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), t.lse);
  for (Rows<float>* each : {&trial.o, &trial.dq, &trial.dk, &trial.dv}) {
    each->download();
    EXPECT_EQ(each->host(1, 2, 3), 0.0f);
  }
  EXPECT_EQ(lse(1, 2), -std::numeric_limits<float>::infinity());
}

TEST(GraphAttentionCalls, NeitherFenceNorAllocateOnceTheyHaveRun) {
  const Trial<float> t;
  const auto call = [&] {
    graph_attention(Exec(), t.q.view, t.k.view, t.v.view, t.row_map, t.entries, t.o.view, {}, t.bias, t.lse);
    graph_attention_backward(Exec(), t.q.view, t.k.view, t.v.view, t.row_map, t.entries, t.o.view, t.dout.view, t.lse,
                             t.dq.view, t.dk.view, t.dv.view, {}, t.bias, t.dbias);
  };
  call();
  const Recorder recorder;
  call();
  EXPECT_TRUE(recorder.neither_fenced_nor_allocated());
}

TEST(GraphAttentionCalls, StayInTheirViewsWhereARowMapDoesNot) {
  Trial<float> trial;
  const auto rows = Kokkos::create_mirror(trial.row_map);
  for (std::size_t i = 0; i <= nodes; ++i) rows(i) = static_cast<std::int64_t>(i * 977) % 5000 - 300;
  Kokkos::deep_copy(trial.row_map, rows);
  trial.run({});  // for sanitizers; what is written is of no matter
}

TEST(GraphAttentionCalls, NameTheFunctionAndWhatIsWrong) {
  const auto complaint = [](const Trial<float>& t, const AttentionOptions& options = {}) -> std::string {
    try {
      graph_attention(Exec(), t.q.view, t.k.view, t.v.view, t.row_map, t.entries, t.o.view, options, t.bias, t.lse);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "no error";
  };
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find("KokkosNN::graph_attention: ") == 0 && text.find(part) != std::string::npos;
  };
  Trial<float> t;
  t.row_map = Kokkos::View<std::int64_t*, Memory>("row map", nodes);
  EXPECT_TRUE(has(complaint(t), "row_map must be (61), but is (60)"));
  t   = Trial<float>();
  t.v = Rows<float>(sources + 1, kv_heads, value_dim, 0);
  EXPECT_TRUE(has(complaint(t), "v must be (50, 2, 34), but is (51, 2, 34)"));
  t      = Trial<float>();
  t.bias = Kokkos::View<float**, Memory>("bias", 5, heads);
  EXPECT_TRUE(has(complaint(t), "bias must be ("));
  t   = Trial<float>();
  t.q = Rows<float>(nodes, 5, dim, 0);
  EXPECT_TRUE(has(complaint(t), "5 heads, which is no multiple of the 2"));
  t = Trial<float>();
  EXPECT_TRUE(has(complaint(t, {.softcap = -1}), "softcap"));
  t.o.view = Kokkos::View<float***, Kokkos::LayoutRight, Memory>(t.v.view.data(), nodes, heads, value_dim);
  EXPECT_TRUE(has(complaint(t), "overlap"));
}

TEST(GraphAttentionCalls, RefuseGradientsThatOverlapSinks) {
  const Trial<float> t;
  const Kokkos::View<float*, Memory> sinks(t.dq.view.data(), heads);
  const AttentionOptions options{.sinks = sinks};
  std::string text = "no error";
  try {
    graph_attention_backward(Exec(), t.q.view, t.k.view, t.v.view, t.row_map, t.entries, t.o.view, t.dout.view, t.lse,
                             t.dq.view, t.dk.view, t.dv.view, options, t.bias, t.dbias);
  } catch (const std::invalid_argument& error) {
    text = error.what();
  }
  EXPECT_NE(text.find("options.sinks"), std::string::npos) << text;
  EXPECT_NE(text.find("dq"), std::string::npos) << text;
}

}  // namespace
}  // namespace KokkosNNTest
