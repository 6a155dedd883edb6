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
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

// Matrix products against long double: types, extents, layouts, batches, epilogues, special values and errors.

namespace KokkosNNTest {

using KokkosNN::matmul;

/// Functors, as a test's body may hold no device lambda.
struct BiasReluResidual {
  template <class A>
  KOKKOS_FUNCTION A operator()(A sum, A bias, A of_row, A residual) const {
    return Kokkos::fmax(sum + bias + of_row, A(0)) + residual;
  }
};
struct AddTo {
  template <class A>
  KOKKOS_FUNCTION A operator()(A sum, A other) const {
    return sum + other;
  }
};

namespace {

/// A product of matrices at the placements; c's rank is `rank`.
template <int a_rank, int b_rank, int rank, class T, class C = T>
void expect_product(const Placement& a_place, const Placement& b_place, const Placement& c_place,
                    MatmulOptions options = {}, int misalignment = 0, long double factor = 1) {
  options.provider = KokkosNN::MatmulProvider::own;  // test_matmul_provider.cpp has the others
  const Matrix<T> a(a_place, 1, misalignment), b(b_place, 2, misalignment);
  Matrix<C> c(c_place, 3, misalignment);
  const Matrix<C> before(c_place, 3, misalignment);
  matmul(Exec(), a.template view<a_rank>(), b.template view<b_rank>(), c.template view<rank>(), options);
  Exec().fence();
  c.buffer.download();
  const Worst worst = compare(a, b, c, before, options, [](long double sum, const auto&) { return sum; }, factor);
  EXPECT_LE(worst.share, 1) << worst.where;
  EXPECT_TRUE(c.gaps_are_intact());
}

template <class T>
void expect_product(std::int64_t m, std::int64_t n, std::int64_t k, const MatmulOptions& options = {}) {
  SCOPED_TRACE(std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k));
  expect_product<2, 2, 2, T>(right({m, k}), right({k, n}), right({m, n}), options);
}

template <class T>
class Matmul : public testing::Test {};
TYPED_TEST_SUITE(Matmul, ElementTypes, ElementNames);

TYPED_TEST(Matmul, IsWithinABoundThatGrowsWithKForAllExtents) {
  for (const std::int64_t m : {1, 7, 16, 37}) {
    for (const std::int64_t n : {1, 5, 33, 64}) {
      for (const std::int64_t k : {0, 1, 7, 40}) expect_product<TypeParam>(m, n, k, {.alpha = 0.75, .beta = -0.5});
    }
  }
  expect_product<TypeParam>(200, 150, 600);
  expect_product<TypeParam>(3, 700, 1025);
  expect_product<TypeParam>(450, 3, 65);
}

TYPED_TEST(Matmul, TakesAllLayoutsAndTransposesWithoutACopy) {
  constexpr std::int64_t m = 70, n = 45, k = 52;
  for (const std::int64_t padding : {0, 3, 4}) {
    for (const bool a_left : {false, true}) {
      for (const bool b_left : {false, true}) {
        for (const bool c_left : {false, true}) {
          const auto place = [&](bool is_left, std::int64_t rows, std::int64_t cols) {
            return is_left ? left({rows, cols}, padding) : right({rows, cols}, padding);
          };
          expect_product<2, 2, 2, TypeParam>(place(a_left, m, k), place(b_left, k, n), place(c_left, m, n), {.beta = 2},
                                             padding == 3 ? 1 : 0);
        }
      }
    }
  }
  // No axis is contiguous, and some are reversed.
  const Placement a{{m, k}, {3 * k, 2}, 5}, b{{k, n}, {-2, 2 * k + 1}, 2 * k}, c{{m, n}, {2, 2 * m + 3}, 1};
  expect_product<2, 2, 2, TypeParam>(a, b, c);
}

TYPED_TEST(Matmul, BroadcastsBatchesOfAnyRank) {
  constexpr std::int64_t m = 9, n = 18, k = 11;
  expect_product<3, 3, 3, TypeParam>(right({4, m, k}), right({4, k, n}), right({4, m, n}));
  expect_product<3, 2, 3, TypeParam>(right({4, m, k}), right({k, n}), right({4, m, n}));  // one tall matrix
  expect_product<3, 2, 3, TypeParam>(right({4, m, k}, 1), right({k, n}), left({4, m, n}, 1));
  expect_product<2, 4, 4, TypeParam>(right({m, k}), right({2, 3, k, n}), right({2, 3, m, n}));
  expect_product<4, 3, 4, TypeParam>(right({2, 1, m, k}), right({3, k, n}), left({2, 3, m, n}));
  expect_product<4, 2, 4, TypeParam>(right({2, 3, 1, k}), right({k, n}), right({2, 3, 1, n}), {.beta = 1});
  // Heads between rows and columns, as attention has them.
  const Placement heads{{2, 3, m, k}, {m * 3 * k, k, 3 * k, 1}, 0}, columns{{2, 3, k, m}, {m * 3 * k, k, 1, 3 * k}, 0};
  expect_product<4, 4, 4, TypeParam>(heads, columns, right({2, 3, m, m}));
}

/// A GPU has a kernel of its own for so many (`has_few_rows`).
TYPED_TEST(Matmul, MultipliesManyMatricesOfFewRows) {
  using T = TypeParam;
  expect_product<3, 3, 3, T>(right({1030, 1, 7}), right({1030, 7, 5}), right({1030, 1, 5}));
  expect_product<3, 3, 3, T>(right({260, 16, 24}), right({260, 24, 256}), right({260, 16, 256}), {.beta = 2});
  expect_product<3, 3, 3, T>(right({300, 15, 65}, 3), right({300, 65, 200}, 3), right({300, 15, 200}, 3), {}, 1);
  expect_product<3, 2, 3, T>(right({520, 17, 33}), left({33, 20}), right({520, 17, 20}), {.alpha = -0.5});
  expect_product<4, 4, 4, T>(left({2, 520, 3, 20}), right({2, 520, 20, 9}), left({2, 520, 3, 9}));
}

/// The bits of a matrix do not depend on how many there are, though its kernel does.
TYPED_TEST(Matmul, GivesAMatrixOfManyTheBitsOfOneAlone) {
  using T                = TypeParam;
  constexpr int matrices = 1024, m = 16, n = 40, k = 70;
  const Matrix<T> a(right({matrices, m, k}), 1), b(right({matrices, k, n}), 2);
  Matrix<T> all(right({matrices, m, n}), 3), one(right({m, n}), 3);
  const MatmulOptions own{.provider = KokkosNN::MatmulProvider::own};
  matmul(Exec(), a.template view<3>(), b.template view<3>(), all.template view<3>(), own);
  Exec().fence();
  all.buffer.download();
  for (const std::int64_t number : {0, 517, 1023}) {
    const auto of_a = strided_view<2>(a.buffer.device(), Placement{{m, k}, {k, 1}, number * m * k});
    const auto of_b = strided_view<2>(b.buffer.device(), Placement{{k, n}, {n, 1}, number * k * n});
    matmul(Exec(), of_a, of_b, one.template view<2>(), own);
    Exec().fence();
    one.buffer.download();
    EXPECT_EQ(0, std::memcmp(all.buffer.host() + number * m * n, one.buffer.host(), sizeof(T) * m * n)) << number;
  }
}

TYPED_TEST(Matmul, NeitherReadsCWithBeta0NorTheOperandsWithAlpha0) {
  using T     = TypeParam;
  const T nan = static_cast<T>(std::numeric_limits<float>::quiet_NaN());
  Matrix<T> a(right({20, 30}), 1), b(right({30, 40}), 2), c(right({20, 40}), 3);
  const Matrix<T> before(right({20, 40}), 3);
  const auto fill = [&](Matrix<T>& x) {
    std::fill_n(x.buffer.host(), x.buffer.count(), nan);
    x.buffer.upload();
  };
  const auto identity = [](long double sum, const auto&) { return sum; };

  fill(c);
  matmul(Exec(), a.template view<2>(), b.template view<2>(), c.template view<2>(),
         {.provider = KokkosNN::MatmulProvider::own});
  Exec().fence();
  c.buffer.download();
  EXPECT_LE(compare(a, b, c, before, {}, identity).share, 1);

  fill(a);
  fill(b);
  Matrix<T> scaled(right({20, 40}), 3);
  const MatmulOptions options{.alpha = 0, .beta = 3};
  matmul(Exec(), a.template view<2>(), b.template view<2>(), scaled.template view<2>(), options);
  Exec().fence();
  scaled.buffer.download();
  EXPECT_LE(compare(a, b, scaled, before, options, identity).share, 1);
}

TYPED_TEST(Matmul, AppliesAnEpilogueToBiasesAndAResidualThatMayBeC) {
  using T                  = TypeParam;
  constexpr std::int64_t m = 50, n = 70, k = 20;
  for (const bool is_left : {false, true}) {
    const auto place = [&](std::vector<std::int64_t> extents) {
      return is_left ? left(extents, 2) : right(extents, 2);
    };
    const Matrix<T> a(place({2, m, k}), 1), b(place({k, n}), 2), bias(place({n}), 4), of_rows(place({m, 1}), 5);
    Matrix<T> c(place({2, m, n}), 3);
    const Matrix<T> before(place({2, m, n}), 3);
    const auto view = c.template view<3>();
    const MatmulOptions options{.alpha = 0.5};
    matmul(Exec(), a.template view<3>(), b.template view<2>(), view, options, BiasReluResidual{},
           bias.template view<1>(), of_rows.template view<2>(), view);
    Exec().fence();
    c.buffer.download();
    const auto epilogue = [&](long double sum, const auto& index) {
      return std::fmax(sum + bias.at(index) + of_rows.at(index), 0.0L) + before.at(index);
    };
    // Bias and residual cancel with the product, and the bound does not know their sizes: four of it.
    const Worst worst = compare(a, b, c, before, options, epilogue, 4);
    EXPECT_LE(worst.share, 1) << worst.where;
    EXPECT_TRUE(c.gaps_are_intact());
  }
}

TEST(MatmulTypes, CMayHoldAnotherTypeThanAAndB) {
  expect_product<2, 2, 2, Half, float>(right({33, 40}), right({40, 50}), right({33, 50}), {.beta = 0.5});
  expect_product<2, 2, 2, float, BHalf>(right({33, 40}), left({40, 50}), right({33, 50}));
  expect_product<2, 2, 2, float, double>(right({33, 40}), right({40, 50}), left({33, 50}), {.alpha = 3});
}

TEST(MatmulTypes, TensorFloatPrecisionsAreAsGoodAsTheySay) {
  using KokkosNN::Precision;
  for (const bool is_left : {false, true}) {
    const auto place = [&](std::int64_t rows, std::int64_t cols) {
      return is_left ? left({rows, cols}) : right({rows, cols});
    };
    expect_product<2, 2, 2, float>(place(100, 300), right({300, 90}), right({100, 90}),
                                   {.precision = Precision::tensor_float32x3}, 0, 2);
    expect_product<2, 2, 2, float>(place(100, 300), right({300, 90}), right({100, 90}),
                                   {.precision = Precision::tensor_float32}, 0, 1 << 5);
  }
}

TYPED_TEST(Matmul, GivesTheSameBitsFromRunToRunAndForAnyExtentOfOtherAxes) {
  using T = TypeParam;
  const Matrix<T> a(right({130, 700}), 1), b(right({700, 210}), 2);
  Matrix<T> first(right({130, 210}), 3), second(right({130, 210}), 3), part(right({40, 70}), 3);
  // The upper left part of c alone
  const auto of_a = strided_view<2>(a.buffer.device(), Placement{{40, 700}, {700, 1}, 0});
  const auto of_b = strided_view<2>(b.buffer.device(), Placement{{700, 70}, {210, 1}, 0});
  // A GPU splits k by the number of tiles, unless told not to.
  const MatmulOptions invariant{.determinism = KokkosNN::Determinism::batch_invariant};
  matmul(Exec(), a.template view<2>(), b.template view<2>(), first.template view<2>(), invariant);
  matmul(Exec(), a.template view<2>(), b.template view<2>(), second.template view<2>(), invariant);
  matmul(Exec(), of_a, of_b, part.template view<2>(), invariant);
  Exec().fence();
  first.buffer.download();
  second.buffer.download();
  part.buffer.download();
  EXPECT_EQ(0, std::memcmp(first.buffer.host(), second.buffer.host(), sizeof(T) * 130 * 210));
  for (int i = 0; i < 40; ++i) {
    EXPECT_EQ(0, std::memcmp(first.buffer.host() + i * 210, part.buffer.host() + i * 70, sizeof(T) * 70)) << i;
  }
}

TYPED_TEST(Matmul, SumsALongKInPartsThatAreAddedInOrder) {
  using T = TypeParam;
  for (const int parts : {0, 1, 7}) {  // a GPU's
    SCOPED_TRACE(parts);
    const MatmulOptions options{.alpha = 0.5, .beta = 2, .tuning = {.parts = parts}};
    expect_product<2, 2, 2, T>(right({5, 7001}), right({7001, 40}), right({5, 40}), options);
    expect_product<2, 2, 2, T>(left({40, 4100}), left({4100, 9}, 2), left({40, 9}), options);
    expect_product<3, 3, 3, T>(right({2, 6, 2100}), left({2, 2100, 5}), right({2, 6, 5}), options);
  }
  // Few tiles, whose parts threads share, and many.
  const std::int64_t n = 3100, k = 5000;
  const Matrix<T> a(right({24, k}), 1), b(right({k, n}), 2);
  Matrix<T> many(right({24, n}), 3), few(right({3, 20}), 3), again(right({3, 20}), 3);
  const auto of_a = strided_view<2>(a.buffer.device(), Placement{{3, k}, {k, 1}, 0});
  const auto of_b = strided_view<2>(b.buffer.device(), Placement{{k, 20}, {n, 1}, 0});
  const MatmulOptions invariant{.determinism = KokkosNN::Determinism::batch_invariant};
  matmul(Exec(), a.template view<2>(), b.template view<2>(), many.template view<2>(), invariant);
  matmul(Exec(), of_a, of_b, few.template view<2>(), invariant);
  Exec().fence();
  many.buffer.download();
  few.buffer.download();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(0, std::memcmp(many.buffer.host() + i * n, few.buffer.host() + i * 20, sizeof(T) * 20)) << i;
  }
  const MatmulOptions own{.provider = KokkosNN::MatmulProvider::own};
  matmul(Exec(), of_a, of_b, few.template view<2>(), own);
  matmul(Exec(), of_a, of_b, again.template view<2>(), own);
  Exec().fence();
  few.buffer.download();
  again.buffer.download();
  EXPECT_EQ(0, std::memcmp(few.buffer.host(), again.buffer.host(), sizeof(T) * 3 * 20));
}

TYPED_TEST(Matmul, RunsAnEpilogueOnceBehindTheLastPart) {
  using T                  = TypeParam;
  constexpr std::int64_t m = 20, n = 30, k = 6000;
  const Matrix<T> a(right({m, k}), 1), b(right({k, n}), 2), bias(right({n}), 4), of_rows(right({m, 1}), 5);
  Matrix<T> c(right({m, n}), 3);
  const Matrix<T> before(right({m, n}), 3);
  const auto view = c.template view<2>();
  const MatmulOptions options{.alpha = 0.01, .tuning = {.parts = 3}};
  matmul(Exec(), a.template view<2>(), b.template view<2>(), view, options, BiasReluResidual{}, bias.template view<1>(),
         of_rows.template view<2>(), view);
  Exec().fence();
  c.buffer.download();
  const auto epilogue = [&](long double sum, const auto& index) {
    return std::fmax(sum + bias.at(index) + of_rows.at(index), 0.0L) + before.at(index);
  };
  const Worst worst = compare(a, b, c, before, options, epilogue, 4);
  EXPECT_LE(worst.share, 1) << worst.where;
}

// --- errors ---

TEST(MatmulErrors, NameTheFunctionAndTheExtentsAndWriteNothing) {
  const auto message = [](const Placement& a_place, const Placement& b_place, const Placement& c_place) {
    const Matrix<float> a(a_place, 1), b(b_place, 2);
    Matrix<float> c(c_place, 3);
    c.buffer.poison_all();
    const std::string text =
        message_of([&] { matmul(Exec(), a.view<3>(), b.view<3>(), c.view<3>(), MatmulOptions{}); });
    Exec().fence();
    c.buffer.download();
    EXPECT_TRUE(c.buffer.untouched());
    return text;
  };
  EXPECT_EQ(message(right({2, 3, 4}), right({2, 5, 6}), right({2, 3, 6})),
            "KokkosNN::matmul: matrices a, (2, 3, 4), b, (2, 5, 6), and c, (2, 3, 6), must be (m, k), (k, n) and "
            "(m, n) in their last two axes");
  EXPECT_EQ(message(right({2, 3, 4}), right({3, 4, 6}), right({2, 3, 6})),
            "KokkosNN::matmul: b of extents (3, 4, 6) does not broadcast to c, (2, 3, 6)");
  EXPECT_NE(message(right({2, 3, 4}), right({2, 4, 6}), Placement{{2, 3, 6}, {0, 6, 1}, 0}).find("share memory"),
            std::string::npos);
}

TEST(MatmulErrors, CThatOverlapsAnOperandIsRefusedButMayBeAnInput) {
  Matrix<float> a(right({8, 8}), 1), b(right({8, 8}), 2);
  for (const auto& c : {a.view<2>(), b.view<2>()}) {
    const std::string text = message_of([&] { matmul(Exec(), a.view<2>(), b.view<2>(), c); });
    EXPECT_NE(text.find("KokkosNN::matmul: "), std::string::npos) << text;
    EXPECT_NE(text.find("overlap"), std::string::npos) << text;
  }
  const Matrix<float> bias(right({3}), 3);
  EXPECT_EQ(message_of([&] {
              matmul(Exec(), a.view<2>(), a.view<2>(), b.view<2>(), MatmulOptions{}, AddTo{}, bias.view<1>());
            }),
            "KokkosNN::matmul: input 0 of extents (3) does not broadcast to c, (8, 8)");
}

TEST(MatmulErrors, AProductWithoutElementsDoesNothing) {
  expect_product<float>(0, 5, 6);
  expect_product<float>(5, 0, 6);
  expect_product<3, 3, 3, float>(right({0, 4, 5}), right({0, 5, 6}), right({0, 4, 6}));
}

}  // namespace
}  // namespace KokkosNNTest
