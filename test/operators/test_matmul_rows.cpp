// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/matmul.hpp"
#include "support/message.hpp"
#include "support/tensor.hpp"
#include "support/types.hpp"

#include <KokkosNN/matmul.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

// Matrix products whose rows of a are gathered, and whose rows of c are sums, against long double.

namespace KokkosNNTest {

using KokkosNN::GatheredRows;
using KokkosNN::matmul;
using KokkosNN::SummedRows;

/// silu of the sum and a bias, times a number of the product's row. A functor, as a test's body may hold no device
/// lambda.
struct BiasSiluWeight {
  template <class A>
  KOKKOS_FUNCTION A operator()(A sum, A bias, A weight) const {
    const A x = sum + bias;
    return weight * x / (A(1) + Kokkos::exp(-x));
  }
};
struct AddTo {
  template <class A>
  KOKKOS_FUNCTION A operator()(A sum, A other) const {
    return sum + other;
  }
};

namespace {

template <class I>
Kokkos::View<I*, Exec> integers(const std::vector<std::int64_t>& numbers) {
  const Kokkos::View<I*, Exec> view("integers", numbers.size());
  const auto host = Kokkos::create_mirror_view(view);
  for (std::size_t i = 0; i < numbers.size(); ++i) host(i) = static_cast<I>(numbers[i]);
  Kokkos::deep_copy(view, host);
  return view;
}

/// A graph: of each edge its source, edges in the order of their targets, the offsets of targets. Some targets have no
/// edge, among them the first and the last; one has many.
struct Graph {
  std::vector<std::int64_t> sources, offsets{0};

  Graph(std::int64_t nodes, std::int64_t targets, int most, std::int64_t hub) {
    std::mt19937 random(7);
    for (std::int64_t t = 0; t < targets; ++t) {
      const bool has_none     = t == 0 || t + 1 == targets;
      const std::int64_t more = t == targets / 2 ? hub : has_none ? 0 : random() % static_cast<unsigned>(most);
      for (std::int64_t e = 0; e < more; ++e) sources.push_back(random() % static_cast<unsigned>(nodes));
      offsets.push_back(static_cast<std::int64_t>(sources.size()));
    }
  }
  std::int64_t edges() const { return static_cast<std::int64_t>(sources.size()); }
};

/// A product's element and the sum of its terms' sizes.
struct Product {
  long double value, size;
};
template <class T>
Product product(const Matrix<T>& a, std::int64_t row, const Matrix<T>& b, std::int64_t col, double alpha) {
  Product p{0, 0};
  for (std::int64_t k = 0; k < b.place.extents[0]; ++k) {
    const long double term = alpha * a.at({row, k}) * b.at({k, col});
    p.value += term;
    p.size += std::fabs(term);
  }
  return p;
}

/// The bound of an element that is a sum of `count` terms of size `size` in T's accumulator, written as a C.
template <class T, class C>
long double bound_of(std::int64_t count, long double size, long double value) {
  const long double u = unit_of<KokkosNN::accumulator_t<T>>() * (is_16_bit<T> ? 2 : 1);
  return static_cast<long double>(count + 8) * u * (size + std::fabs(value)) + unit_of<C>() * std::fabs(value) +
         std::ldexp(1.0L, Format<C>::min_exponent - Format<C>::digits + 1);
}

template <class T>
class MatmulOfRows : public testing::Test {};
TYPED_TEST_SUITE(MatmulOfRows, ElementTypes, ElementNames);

template <class T, class I>
void expect_gathered(std::int64_t a_rows, std::int64_t rows, std::int64_t n, std::int64_t k, const Placement& a_place,
                     const Placement& b_place, const Placement& c_place) {
  SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(n) + " x " + std::to_string(k));
  const Matrix<T> a(a_place, 1), b(b_place, 2);
  Matrix<T> c(c_place, 3);
  const Matrix<T> before(c_place, 3);
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < rows; ++i) numbers.push_back((i * 7 + 3) % a_rows);
  matmul(Exec(), GatheredRows{a.template view<2>(), integers<I>(numbers)}, b.template view<2>(), c.template view<2>(),
         {.alpha = 0.5, .beta = 2});
  Exec().fence();
  c.buffer.download();
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      const Product p            = product(a, numbers[i], b, j, 0.5);
      const long double expected = p.value + 2 * before.at({i, j});
      ASSERT_LE(std::fabs(c.at({i, j}) - expected),
                (bound_of<T, T>(k, p.size + std::fabs(2 * before.at({i, j})), expected)))
          << i << ' ' << j;
    }
  }
  EXPECT_TRUE(c.buffer.guards_intact());
}

TYPED_TEST(MatmulOfRows, GathersRowsOfAnyLayoutByIntegersOfAnyType) {
  using T                  = TypeParam;
  constexpr std::int64_t m = 50, e = 333, n = 37, k = 72;
  expect_gathered<T, std::int32_t>(m, e, n, k, right({m, k}), right({k, n}), right({e, n}));
  expect_gathered<T, std::int64_t>(m, e, n, k, right({m, k}, 5), left({k, n}), right({e, n}, 1));
  expect_gathered<T, std::int64_t>(m, e, n, k, left({m, k}), right({k, n}), left({e, n}));
  expect_gathered<T, std::uint16_t>(m, e, n, k, Placement{{m, k}, {-2 * k, 2}, 2 * k * (m - 1)}, left({k, n}),
                                    left({e, n}));
  expect_gathered<T, std::int32_t>(1, 5, 1, 1, right({1, 1}), right({1, 1}), right({5, 1}));
  expect_gathered<T, std::int32_t>(3, 40, 400, 300, right({3, 300}), right({300, 400}), right({40, 400}));
}

/// Sums of silu(a b + bias) weight over the edges of each target, a's rows gathered or one an edge.
template <class T>
void expect_summed(const Graph& graph, std::int64_t nodes, std::int64_t n, std::int64_t k, bool is_gathered,
                   bool is_left, double beta) {
  SCOPED_TRACE(std::to_string(graph.edges()) + " edges, " + std::to_string(n) + " x " + std::to_string(k));
  const std::int64_t targets = static_cast<std::int64_t>(graph.offsets.size()) - 1;
  const Matrix<T> a(right({is_gathered ? nodes : graph.edges(), k}), 1), b(is_left ? left({k, n}) : right({k, n}), 2);
  const Matrix<T> bias(right({1, n}), 4), weight(right({graph.edges(), 1}), 5);
  Matrix<T> c(is_left ? left({targets, n}) : right({targets, n}, 3), 3);
  const Matrix<T> before(c.place, 3);
  const MatmulOptions options{.alpha = 0.25, .beta = beta};
  const auto offsets = integers<std::int32_t>(graph.offsets);
  if (is_gathered) {
    matmul(Exec(), GatheredRows{a.template view<2>(), integers<std::int64_t>(graph.sources)}, b.template view<2>(),
           SummedRows{c.template view<2>(), offsets}, options, BiasSiluWeight{}, bias.template view<2>(),
           weight.template view<2>());
  } else {
    matmul(Exec(), a.template view<2>(), b.template view<2>(), SummedRows{c.template view<2>(), offsets}, options,
           BiasSiluWeight{}, bias.template view<2>(), weight.template view<2>());
  }
  Exec().fence();
  c.buffer.download();
  for (std::int64_t t = 0; t < targets; ++t) {
    for (std::int64_t j = 0; j < n; ++j) {
      long double sum = beta * before.at({t, j}), size = std::fabs(sum);
      for (std::int64_t e = graph.offsets[t]; e < graph.offsets[t + 1]; ++e) {
        const Product p     = product(a, is_gathered ? graph.sources[e] : e, b, j, 0.25);
        const long double x = p.value + bias.at({0, j});
        sum += weight.at({e, 0}) * x / (1 + std::exp(-x));
        // silu's slope is at most 1.1; its exponential is good to some ulp.
        size += std::fabs(weight.at({e, 0})) * 2 * (p.size + std::fabs(bias.at({0, j})));
      }
      const std::int64_t terms = k + graph.offsets[t + 1] - graph.offsets[t];
      ASSERT_LE(std::fabs(c.at({t, j}) - sum), (bound_of<T, T>(terms, size, sum))) << t << ' ' << j;
    }
  }
  EXPECT_TRUE(c.buffer.guards_intact());
}

TYPED_TEST(MatmulOfRows, SumOverTheEdgesOfAGraphInOneKernel) {
  using T = TypeParam;
  const Graph graph(40, 60, 12, 300);
  expect_summed<T>(graph, 40, 24, 40, true, false, 0);
  expect_summed<T>(graph, 40, 33, 17, true, true, 2);
  expect_summed<T>(graph, 40, 70, 8, false, false, -1);
  const Graph small(3, 4, 2, 1), wide(5, 3, 2, 30);
  expect_summed<T>(small, 3, 5, 4, true, false, 0);
  expect_summed<T>(wide, 5, 420, 300, true, false, 1);
}

TYPED_TEST(MatmulOfRows, SumsWithoutAnEpilogueHaveTheSameBitsWhereverTheRowsStand) {
  using T = TypeParam;
  const Graph graph(40, 200, 15, 150);
  const std::int64_t n = 33, k = 40, targets = 200, first = 70, some = 60;
  const Matrix<T> a(right({40, k}), 1), b(right({k, n}), 2);
  Matrix<T> all(right({targets, n}), 3), again(right({targets, n}), 3), part(right({some, n}), 3);
  const auto offsets = integers<std::int64_t>(graph.offsets);
  const GatheredRows edges{a.template view<2>(), integers<std::int32_t>(graph.sources)};
  matmul(Exec(), edges, b.template view<2>(), SummedRows{all.template view<2>(), offsets});
  matmul(Exec(), edges, b.template view<2>(), SummedRows{again.template view<2>(), offsets});
  const Kokkos::View<std::int64_t*, Exec> of_part = Kokkos::subview(offsets, std::pair(first, first + some + 1));
  matmul(Exec(), edges, b.template view<2>(), SummedRows{part.template view<2>(), of_part});
  Exec().fence();
  for (auto* each : {&all, &again, &part}) each->buffer.download();
  EXPECT_EQ(0, std::memcmp(all.buffer.host(), again.buffer.host(), sizeof(T) * targets * n));
  EXPECT_EQ(0, std::memcmp(all.buffer.host() + first * n, part.buffer.host(), sizeof(T) * some * n));
  for (std::int64_t t = 0; t < targets; ++t) {
    for (std::int64_t j = 0; j < n; ++j) {
      Product sum{0, 0};
      for (std::int64_t e = graph.offsets[t]; e < graph.offsets[t + 1]; ++e) {
        const Product p = product(a, graph.sources[e], b, j, 1);
        sum             = {sum.value + p.value, sum.size + p.size};
      }
      const std::int64_t terms = k + graph.offsets[t + 1] - graph.offsets[t];
      ASSERT_LE(std::fabs(all.at({t, j}) - sum.value), (bound_of<T, T>(terms, sum.size, sum.value))) << t << ' ' << j;
    }
  }
}

TYPED_TEST(MatmulOfRows, AnIndexOfNoRowGivesNanInItsRowAndReadsNothing) {
  using T              = TypeParam;
  const std::int64_t m = 4, n = 20, k = 9;
  const Matrix<T> a(right({m, k}), 1), b(right({k, n}), 2);
  const std::vector<std::int64_t> numbers{0, -1, 3, 4, 1, std::int64_t(1) << 40, 2};
  Matrix<T> c(right({7, n}), 3), sums(right({3, n}), 3), scaled(right({7, n}), 3);
  const GatheredRows rows{a.template view<2>(), integers<std::int64_t>(numbers)};
  matmul(Exec(), rows, b.template view<2>(), c.template view<2>());
  matmul(Exec(), rows, b.template view<2>(), SummedRows{sums.template view<2>(), integers<std::int32_t>({0, 1, 5, 5})});
  matmul(Exec(), rows, b.template view<2>(), scaled.template view<2>(), {.alpha = 0, .beta = 0});
  Exec().fence();
  for (auto* each : {&c, &sums, &scaled}) each->buffer.download();
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = 0; i < 7; ++i) {
      const bool is_row = 0 <= numbers[i] && numbers[i] < m;
      EXPECT_EQ(std::isnan(c.at({i, j})), !is_row) << i;
      EXPECT_EQ(scaled.at({i, j}), 0) << "with alpha = 0 the index is not read";
    }
    EXPECT_FALSE(std::isnan(sums.at({0, j})));
    EXPECT_TRUE(std::isnan(sums.at({1, j})));
    EXPECT_EQ(sums.at({2, j}), 0);
  }
}

TEST(MatmulOfRowsOffsets, ThatDoNotAscendOrLeaveTheProductsTouchNothingElse) {
  const std::int64_t n = 40, k = 16, products = 500;
  const Matrix<float> a(right({products, k}), 1), b(right({k, n}), 2);
  for (const auto& offsets : std::vector<std::vector<std::int64_t>>{
           {0, 400, 100, 300, 500}, {-7, 9, 600, 1000000000000, 20}, {500, 0, 0, 0, 0}, {700, 600, -600, -700, -800}}) {
    Matrix<float> c(right({4, n}, 2), 3);
    matmul(Exec(), a.template view<2>(), b.template view<2>(),
           SummedRows{c.template view<2>(), integers<std::int64_t>(offsets)});
    Exec().fence();
    c.buffer.download();
    EXPECT_TRUE(c.buffer.guards_intact());
    for (std::int64_t i = 0; i + 1 < 4; ++i) {
      for (std::int64_t j = n; j < n + 2; ++j)
        EXPECT_TRUE(same_bits(c.buffer.host()[i * (n + 2) + j], poison<float>()));
    }
  }
}

TEST(MatmulOfRowsErrors, NameTheExtentsAndWriteNothing) {
  const Matrix<float> a(right({5, 4}), 1), b(right({4, 6}), 2), bias(right({3, 1}), 4);
  Matrix<float> c(right({7, 6}), 3);
  c.buffer.poison_all();
  const auto seven = integers<int>({0, 1, 2, 3, 4, 0, 1}), eight = integers<int>({0, 1, 2, 3, 4, 5, 5, 5});
  EXPECT_EQ(message_of([&] {
              matmul(Exec(), GatheredRows{a.template view<2>(), eight}, b.template view<2>(), c.template view<2>());
            }),
            "KokkosNN::matmul: a, (5, 4), b, (4, 6), c, (7, 6), rows, (8): c must have a row for each of rows");
  EXPECT_EQ(message_of([&] {
              matmul(Exec(), a.template view<2>(), b.template view<2>(), SummedRows{c.template view<2>(), seven});
            }),
            "KokkosNN::matmul: a, (5, 4), b, (4, 6), c, (7, 6), row_offsets, (7): row_offsets must be one more than c "
            "has rows");
  EXPECT_EQ(
      message_of([&] {
        matmul(Exec(), GatheredRows{b.template view<2>(), seven}, b.template view<2>(), c.template view<2>());
      }),
      "KokkosNN::matmul: a, (4, 6), b, (4, 6), c, (7, 6), rows, (7): extents of the summed axis or of the columns "
      "differ");
  EXPECT_EQ(message_of([&] {
              matmul(Exec(), a.template view<2>(), b.template view<2>(), SummedRows{c.template view<2>(), eight},
                     MatmulOptions{}, AddTo{}, bias.template view<2>());
            }),
            "KokkosNN::matmul: input 0 of extents (3, 1) does not broadcast to the products, (5, 6)");
  Exec().fence();
  c.buffer.download();
  EXPECT_TRUE(c.buffer.untouched());
  const Matrix<float> own(right({7, 4}), 5);
  const std::string text = message_of([&] {
    matmul(Exec(), own.template view<2>(), b.template view<2>(), SummedRows{c.template view<2>(), eight},
           MatmulOptions{}, AddTo{}, c.template view<2>());
  });
  EXPECT_NE(text.find("overlap"), std::string::npos) << text << ": sums may not be an input of their own";
}

}  // namespace
}  // namespace KokkosNNTest
