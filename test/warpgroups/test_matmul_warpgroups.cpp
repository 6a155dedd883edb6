// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/matmul.hpp"
#include "support/recorder.hpp"
#include "support/tensor.hpp"
#include "support/types.hpp"
#include "support/warpgroups.hpp"

#include <KokkosNN/matmul.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

// Matrix products on Hopper's warpgroups against long double; compiled for sm_90a, epilogues' kernels included.

namespace KokkosNNTest {

using KokkosNN::matmul;

struct GeluOfBiasPlusResidual {
  template <class A>
  KOKKOS_FUNCTION A operator()(A sum, A bias, A of_row, A residual) const {
    const A x = sum + bias + of_row;
    return x * A(0.5) * (A(1) + Kokkos::erf(x * A(0.7071067811865476))) + residual;
  }
};

namespace {

MatmulOptions on_warpgroups(MatmulOptions options = {}) {
  options.provider    = KokkosNN::MatmulProvider::own;
  options.tuning.tier = KokkosNN::MatmulTier::warpgroups;
  return options;
}

bool was_on_warpgroups(const std::vector<std::string>& labels) {
  return labels.size() == 1 && labels[0].find("[warpgroups,") != std::string::npos;
}

class MatmulOnWarpgroups : public OnWarpgroups {};

/// A product of matrices at the placements; the kernel for warpgroups, or another where the operands are not its.
template <int a_rank, int b_rank, int rank, class T, class C = T>
void expect_product(const Placement& a_place, const Placement& b_place, const Placement& c_place,
                    MatmulOptions options = {}, bool is_its = true, int misalignment = 0) {
  options = on_warpgroups(options);
  const Matrix<T> a(a_place, 1, misalignment), b(b_place, 2, misalignment);
  Matrix<C> c(c_place, 3);
  const Matrix<C> before(c_place, 3);
  const auto labels = kernels_of(
      [&] { matmul(Exec(), a.template view<a_rank>(), b.template view<b_rank>(), c.template view<rank>(), options); });
  Exec().fence();
  EXPECT_EQ(was_on_warpgroups(labels), is_its) << labels[0];
  c.buffer.download();
  const Worst worst = compare(a, b, c, before, options, [](long double sum, const auto&) { return sum; });
  EXPECT_LE(worst.share, 1) << worst.where;
  EXPECT_TRUE(c.gaps_are_intact());
}

TEST_F(MatmulOnWarpgroups, TakesAllTransposesAndTails) {
  constexpr std::int64_t m = 304, n = 520, k = 136;
  for (const bool a_left : {false, true}) {
    for (const bool b_left : {false, true}) {
      for (const bool c_left : {false, true}) {
        SCOPED_TRACE(std::to_string(a_left) + std::to_string(b_left) + std::to_string(c_left));
        const auto place = [](bool is_left, std::int64_t rows, std::int64_t cols, std::int64_t padding) {
          return is_left ? left({rows, cols}, padding) : right({rows, cols}, padding);
        };
        expect_product<2, 2, 2, BHalf>(place(a_left, m, k, 0), place(b_left, k, n, 8), place(c_left, m, n, 0));
        expect_product<2, 2, 2, Half>(place(a_left, 40, k, 8), place(b_left, k, n, 0), place(c_left, 40, n, 3),
                                      {.alpha = 0.5, .beta = 2});
      }
    }
  }
}

TEST_F(MatmulOnWarpgroups, TakesExtentsFarFromATiles) {
  expect_product<2, 2, 2, BHalf>(right({1, 8}), right({8, 8}), right({1, 8}));
  expect_product<2, 2, 2, BHalf>(right({130, 3}, 5), right({3, 257}, 7), right({130, 257}));
  expect_product<2, 2, 2, BHalf>(right({64, 2000}), left({2000, 264}), right({64, 264}));
  expect_product<2, 2, 2, Half>(left({136, 1024}), right({1024, 512}), right({136, 512}), {.beta = -1});
}

TEST_F(MatmulOnWarpgroups, LeavesOtherOperandsToThePortableKernels) {
  expect_product<2, 2, 2, BHalf>(right({40, 33}), right({33, 64}), right({40, 64}), {}, false);
  expect_product<2, 2, 2, BHalf>(right({40, 32}), right({32, 64}), right({40, 64}), {}, false, 1);
  expect_product<2, 2, 2, BHalf>(right({40, 0}), right({0, 64}), right({40, 64}), {}, false);
  expect_product<2, 2, 2, BHalf>(right({40, 32}), right({32, 64}), right({40, 64}),
                                 {.determinism = KokkosNN::Determinism::batch_invariant}, false);
}

TEST_F(MatmulOnWarpgroups, BroadcastsBatches) {
  constexpr std::int64_t m = 72, n = 264, k = 80;
  expect_product<3, 3, 3, BHalf>(right({4, m, k}), right({4, k, n}), right({4, m, n}));
  expect_product<3, 3, 3, BHalf>(left({4, m, k}), right({4, k, n}), right({4, m, n}), {}, false);  // strides of 1
  expect_product<2, 4, 4, BHalf>(right({m, k}), right({2, 3, k, n}), right({2, 3, m, n}));
  expect_product<4, 3, 4, BHalf>(right({2, 1, m, k}), right({3, k, n}), right({2, 3, m, n}), {.beta = 1});
  // Heads between rows and columns, as attention has them.
  const Placement heads{{2, 3, m, k}, {m * 3 * k, k, 3 * k, 1}, 0}, columns{{2, 3, k, m}, {m * 3 * k, k, 1, 3 * k}, 0};
  expect_product<4, 4, 4, BHalf>(heads, columns, right({2, 3, m, m}));
}

TEST_F(MatmulOnWarpgroups, CMayHoldFloat) {
  expect_product<2, 2, 2, BHalf, float>(right({136, 96}), right({96, 512}), right({136, 512}), {.beta = 0.5});
  expect_product<2, 2, 2, BHalf, float>(right({136, 96}), left({96, 72}), right({136, 72}, 1));
}

TEST_F(MatmulOnWarpgroups, AppliesAnEpilogueToBiasesAndAResidualThatMayBeC) {
  constexpr std::int64_t m = 200, n = 512, k = 96;
  for (const std::int64_t padding : {0, 8, 1}) {  // by units, and one by one
    const Matrix<BHalf> a(right({2, m, k}, 8), 1), b(right({k, n}), 2), bias(right({n}), 4), of_rows(right({m, 1}), 5);
    Matrix<BHalf> c(right({2, m, n}, padding), 3);
    const Matrix<BHalf> before(right({2, m, n}, padding), 3);
    const auto view             = c.view<3>();
    const MatmulOptions options = on_warpgroups({.alpha = 0.5});
    const auto labels           = kernels_of([&] {
      matmul(Exec(), a.view<3>(), b.view<2>(), view, options, GeluOfBiasPlusResidual{}, bias.view<1>(),
             of_rows.view<2>(), view);
    });
    Exec().fence();
    EXPECT_TRUE(was_on_warpgroups(labels)) << labels[0];
    c.buffer.download();
    const auto epilogue = [&](long double sum, const auto& index) {
      const long double x = sum + bias.at(index) + of_rows.at(index);
      return x * 0.5L * (1 + std::erf(x * std::sqrt(0.5L))) + before.at(index);
    };
    const Worst worst = compare(a, b, c, before, options, epilogue, 8);
    EXPECT_LE(worst.share, 1) << worst.where;
    EXPECT_TRUE(c.gaps_are_intact());
  }
}

TEST_F(MatmulOnWarpgroups, DoesNotReadCWithBeta0) {
  Matrix<BHalf> a(right({136, 64}), 1), b(right({64, 512}), 2), c(right({136, 512}), 3);
  const Matrix<BHalf> before(right({136, 512}), 3);
  for (std::int64_t i = 0; i < c.buffer.count(); ++i) {
    c.buffer.host()[i] = static_cast<BHalf>(std::numeric_limits<float>::quiet_NaN());
  }
  c.buffer.upload();
  matmul(Exec(), a.view<2>(), b.view<2>(), c.view<2>(), on_warpgroups());
  Exec().fence();
  c.buffer.download();
  EXPECT_LE(compare(a, b, c, before, {}, [](long double sum, const auto&) { return sum; }).share, 1);
}

TEST_F(MatmulOnWarpgroups, GivesTheSameBitsInManyRoundsAndFromRunToRun) {
  // More tiles than a device has multiprocessors, and as many steps as go round the stages several times. The upper
  // left part alone has other tiles and teams.
  constexpr std::int64_t m = 2560, n = 3072, k = 1000, part_m = 136, part_n = 264;
  const Matrix<BHalf> a(right({m, k}), 1), b(right({k, n}), 2);
  Matrix<BHalf> first(right({m, n}), 3), second(right({m, n}), 3), part(right({part_m, part_n}), 3);
  const auto of_b = strided_view<2>(b.buffer.device(), Placement{{k, part_n}, {n, 1}, 0});
  const auto of_a = strided_view<2>(a.buffer.device(), Placement{{part_m, k}, {k, 1}, 0});
  matmul(Exec(), of_a, of_b, part.view<2>(), on_warpgroups());
  matmul(Exec(), a.view<2>(), b.view<2>(), first.view<2>(), on_warpgroups());
  for (int run = 0; run < 20; ++run) {
    matmul(Exec(), a.view<2>(), b.view<2>(), second.view<2>(), on_warpgroups({.tuning = {.group = run % 4 * 5 + 1}}));
    Exec().fence();
    first.buffer.download();
    second.buffer.download();
    ASSERT_EQ(0, std::memcmp(first.buffer.host(), second.buffer.host(), sizeof(BHalf) * m * n)) << run;
  }
  part.buffer.download();
  for (std::int64_t i = 0; i < part_m; ++i) {
    EXPECT_EQ(0, std::memcmp(first.buffer.host() + i * n, part.buffer.host() + i * part_n, sizeof(BHalf) * part_n))
        << i;
  }
}

TEST_F(MatmulOnWarpgroups, AreThePolicysChoiceForLargeProducts) {
  const Matrix<BHalf> a(right({2048, 512}), 1), b(right({512, 2048}), 2);
  Matrix<BHalf> c(right({2048, 2048}), 3);
  const MatmulOptions own{.provider = KokkosNN::MatmulProvider::own};
  EXPECT_TRUE(was_on_warpgroups(kernels_of([&] { matmul(Exec(), a.view<2>(), b.view<2>(), c.view<2>(), own); })));
  const MatmulOptions portable{.provider = KokkosNN::MatmulProvider::own,
                               .tuning   = {.tier = KokkosNN::MatmulTier::portable}};
  EXPECT_FALSE(was_on_warpgroups(kernels_of([&] { matmul(Exec(), a.view<2>(), b.view<2>(), c.view<2>(), portable); })));
  Exec().fence();
}

}  // namespace
}  // namespace KokkosNNTest
