// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/message.hpp"
#include "support/types.hpp"

#include <KokkosNN/matmul.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <string>

// Gradients of matrix products: exact sums of small numbers, also over batches that an operand is broadcast along.

namespace KokkosNNTest {
namespace {

using KokkosNN::matmul_backward;
using KokkosNN::MatmulOptions;
using KokkosNN::no_view;

template <class T>
using Batch = Kokkos::View<T***, Kokkos::LayoutRight, Exec>;
template <class T>
using Matrix = Kokkos::View<T**, Kokkos::LayoutRight, Exec>;

constexpr int batches = 3, m = 19, n = 14, k = 21;

/// Small multiples of 1/4, whose sums of products are exact in all types' accumulators.
template <class V>
V filled(int seed, std::size_t e0, std::size_t e1, std::size_t e2 = KOKKOS_IMPL_CTOR_DEFAULT_ARG) {
  using T = typename V::value_type;
  V view("matrices", e0, e1, e2);
  auto host    = Kokkos::create_mirror_view(view);
  T* const all = host.data();
  for (std::size_t i = 0; i < host.size(); ++i) {
    all[i] = static_cast<T>(static_cast<float>(static_cast<int>((i * 7 + static_cast<std::size_t>(seed)) % 5) - 2) / 4);
  }
  Kokkos::deep_copy(view, host);
  return view;
}

template <class V>
auto on_host(const V& view) {
  return Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), view);
}
template <class T>
double number(const T& x) {
  return static_cast<double>(x);
}

template <class T>
class MatmulBackward : public testing::Test {};
TYPED_TEST_SUITE(MatmulBackward, ElementTypes, ElementNames);

TYPED_TEST(MatmulBackward, SumsTheGradientOfSharedWeightsOverBatchesAndAddsIt) {
  using T       = TypeParam;
  const auto dc = filled<Batch<T>>(1, batches, m, n), a = filled<Batch<T>>(2, batches, m, k);
  const auto b = filled<Matrix<T>>(3, k, n);
  const Batch<T> da("da", batches, m, k);
  const auto db      = filled<Matrix<T>>(4, k, n);
  const auto before  = on_host(filled<Matrix<T>>(4, k, n));
  constexpr auto own = KokkosNN::MatmulProvider::own;
  matmul_backward(Exec(), dc, a, b, da, no_view, {.provider = own});
  matmul_backward(Exec(), dc, a, b, no_view, db, {.alpha = 0.5, .beta = 2, .provider = own});
  Exec().fence();
  const auto of_dc = on_host(dc), of_a = on_host(a), of_da = on_host(da);
  const auto of_b = on_host(b), of_db = on_host(db);
  for (int q = 0; q < k; ++q) {
    for (int j = 0; j < n; ++j) {
      double sum = 2 * number(before(q, j));
      for (int s = 0; s < batches; ++s) {
        for (int i = 0; i < m; ++i) sum += 0.5 * number(of_a(s, i, q)) * number(of_dc(s, i, j));
      }
      ASSERT_EQ(number(of_db(q, j)), number(static_cast<T>(static_cast<float>(sum)))) << q << ' ' << j;
    }
    for (int s = 0; s < batches; ++s) {
      for (int i = 0; i < m; ++i) {
        double sum = 0;
        for (int j = 0; j < n; ++j) sum += number(of_dc(s, i, j)) * number(of_b(q, j));
        ASSERT_EQ(number(of_da(s, i, q)), number(static_cast<T>(static_cast<float>(sum)))) << s << ' ' << i;
      }
    }
  }
}

/// The gradient of an operand of extents (first or 1, second or 1, ..) of a product of batches (first, second), whose
/// summed batches strides do not merge with the summed axis.
template <class T>
void expect_sums(int first, int second, bool is_of_a) {
  using Four          = Kokkos::View<T****, Kokkos::LayoutRight, Exec>;
  using Left          = Kokkos::View<T****, Kokkos::LayoutLeft, Exec>;
  constexpr int outer = 2, rows = 30, long_inner = 40;
  const auto fill = [](const auto& view, int seed) {
    const auto host = Kokkos::create_mirror(view);  // not the View itself, which is written
    int i           = seed;
    for (std::size_t x = 0; x < view.extent(0); ++x) {
      for (std::size_t y = 0; y < view.extent(1); ++y) {
        for (std::size_t r = 0; r < view.extent(2); ++r) {
          for (std::size_t c = 0; c < view.extent(3); ++c) {
            host(x, y, r, c) = static_cast<T>(static_cast<float>((i += 7) % 5 - 2) / 4);
          }
        }
      }
    }
    Kokkos::deep_copy(view, host);
    return host;
  };
  const Left dc("dc", outer, batches, rows, n);
  const Four a("a", is_of_a ? first : outer, is_of_a ? second : batches, rows, long_inner);
  const Left b("b", is_of_a ? outer : first, is_of_a ? batches : second, long_inner, n);
  const auto of_dc = fill(dc, 1);
  const auto of_a  = fill(a, 2);
  const auto of_b  = fill(b, 3);
  const Four da("da", a.layout());
  const Left db("db", b.layout());
  const auto before_a = fill(da, 5);
  const auto before_b = fill(db, 6);
  const MatmulOptions options{.alpha = 0.5, .beta = 2, .provider = KokkosNN::MatmulProvider::own};
  if (is_of_a) {
    matmul_backward(Exec(), dc, a, b, da, no_view, options);
  } else {
    matmul_backward(Exec(), dc, a, b, no_view, db, options);
  }
  Exec().fence();
  const auto got_a = on_host(da);
  const auto got_b = on_host(db);
  for (int x = 0; x < first; ++x) {
    for (int y = 0; y < second; ++y) {
      for (int r = 0; r < (is_of_a ? rows : long_inner); ++r) {
        for (int c = 0; c < (is_of_a ? long_inner : n); ++c) {
          double sum = 2 * number(is_of_a ? before_a(x, y, r, c) : before_b(x, y, r, c));
          for (int p = first == 1 ? 0 : x; p < (first == 1 ? outer : x + 1); ++p) {
            for (int q = second == 1 ? 0 : y; q < (second == 1 ? batches : y + 1); ++q) {
              for (int s = 0; s < (is_of_a ? n : rows); ++s) {
                sum += 0.5 * (is_of_a ? number(of_dc(p, q, r, s)) * number(of_b(p, q, c, s))
                                      : number(of_a(p, q, s, r)) * number(of_dc(p, q, s, c)));
              }
            }
          }
          const T got = is_of_a ? got_a(x, y, r, c) : got_b(x, y, r, c);
          ASSERT_EQ(number(got), number(static_cast<T>(static_cast<float>(sum)))) << x << y << ' ' << r << ' ' << c;
        }
      }
    }
  }
}

TYPED_TEST(MatmulBackward, SumsOverBatchesThatStridesDoNotMerge) {
  for (const bool is_of_a : {false, true}) {
    expect_sums<TypeParam>(1, batches, is_of_a);
    expect_sums<TypeParam>(2, 1, is_of_a);
    expect_sums<TypeParam>(1, 1, is_of_a);
  }
}

/// On a GPU the batches' products have more than the memory of a round.
TEST(MatmulBackwardRounds, SumMoreBatchesThanTheWorkspaceHasAtATime) {
  constexpr int many = 20000, size = 64, inner = 2;
  const auto dc = filled<Batch<float>>(1, many, size, inner), b = filled<Batch<float>>(3, many, size, inner);
  const auto a = filled<Matrix<float>>(2, size, size), da = filled<Matrix<float>>(4, size, size);
  const auto before = on_host(filled<Matrix<float>>(4, size, size));
  matmul_backward(Exec(), dc, a, b, da, no_view, {.beta = 2, .provider = KokkosNN::MatmulProvider::own});
  Exec().fence();
  const auto of_dc = on_host(dc), of_b = on_host(b);
  const auto got = on_host(da);
  for (const int r : {0, 1, 40, size - 1}) {
    for (int c = 0; c < size; ++c) {
      double sum = 2 * number(before(r, c));
      for (int s = 0; s < many; ++s) {
        for (int j = 0; j < inner; ++j) sum += number(of_dc(s, r, j)) * number(of_b(s, c, j));
      }
      ASSERT_EQ(number(got(r, c)), sum) << r << ' ' << c;
    }
  }
}

TEST(MatmulBackwardErrors, NameWhatDoesNotFitAndWriteNothing) {
  const auto dc = filled<Batch<float>>(1, batches, m, n), a = filled<Batch<float>>(2, batches, m, k);
  const auto b = filled<Matrix<float>>(3, k, n);
  const Batch<float> da("da", batches, m, k);
  const Matrix<float> db("db", k, n), wrong("wrong", n, k);
  EXPECT_EQ(message_of([&] { matmul_backward(Exec(), dc, a, b, da, wrong); }),
            "KokkosNN::matmul_backward: db of extents (14, 21) must have those of b, (21, 14)");
  const auto of_da = on_host(da);
  for (std::size_t i = 0; i < of_da.size(); ++i) ASSERT_EQ(of_da.data()[i], 0) << i;
  const auto square    = filled<Matrix<float>>(5, m, m);
  const std::string it = message_of([&] { matmul_backward(Exec(), square, square, square, square, no_view); });
  EXPECT_NE(it.find("overlap"), std::string::npos) << it;
  // da is written before a is read for db, and both may not be one.
  const auto b2 = filled<Matrix<float>>(6, m, m), dc2 = filled<Matrix<float>>(7, m, m),
             one = filled<Matrix<float>>(8, m, m);
  for (const auto& other : {square, one}) {
    const std::string both = message_of([&] { matmul_backward(Exec(), dc2, square, b2, other, one); });
    EXPECT_NE(both.find("overlap"), std::string::npos) << both;
  }
}

}  // namespace
}  // namespace KokkosNNTest
