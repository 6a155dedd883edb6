// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/team_emulation.hpp"
#include "support/types.hpp"

#include <KokkosNN/team_matmul.hpp>

#include <Kokkos_Core.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

// Matrix products inside a kernel, against long double; those of tensor and matrix cores in an emulated team.

namespace KokkosNNTest {
namespace {

namespace Impl = KokkosNN::Impl;

struct Extents {
  std::int64_t m, n, k;
};
constexpr Extents all_extents[] = {{1, 1, 1}, {4, 16, 8}, {5, 7, 3},   {16, 32, 16}, {33, 70, 19},
                                   {8, 8, 8}, {3, 5, 0},  {64, 9, 65}, {0, 4, 2},    {6, 0, 2}};
constexpr std::int64_t products = 3;

/// Matrices of a kernel, one a team, in memory with gaps: by rows, by columns, or with no stride of 1.
template <class T, class Layout>
struct TeamMatrices {
  static constexpr std::int64_t step = std::is_same_v<Layout, Kokkos::LayoutStride> ? 2 : 1;
  using View                         = Kokkos::View<T**, Layout, Memory, Kokkos::MemoryUnmanaged>;

  std::int64_t rows, cols;
  Kokkos::View<T*, Memory> memory;
  typename Kokkos::View<T*, Memory>::host_mirror_type host;

  TeamMatrices(std::int64_t row_count, std::int64_t col_count, double phase)
      : rows(row_count),
        cols(col_count),
        memory("matrices", static_cast<std::size_t>(products * size() + 1)),
        host(Kokkos::create_mirror_view(memory)) {
    for (std::size_t i = 0; i < host.size(); ++i) {
      host(i) = static_cast<T>(std::sin(0.37 * static_cast<double>(i) + phase));
    }
    Kokkos::deep_copy(memory, host);
  }

  KOKKOS_FUNCTION std::int64_t size() const { return step * rows * (step * cols + 3); }
  KOKKOS_FUNCTION std::int64_t offset(std::int64_t row, std::int64_t col) const {
    if constexpr (std::is_same_v<Layout, Kokkos::LayoutLeft>) return row + col * rows;
    if constexpr (std::is_same_v<Layout, Kokkos::LayoutRight>) return row * cols + col;
    return 2 * (row * (2 * cols + 3) + col);
  }
  T& at(std::int64_t p, std::int64_t row, std::int64_t col) { return host(p * size() + offset(row, col)); }

  /// Matrix p as kernels see it.
  KOKKOS_FUNCTION View view(std::int64_t p) const {
    T* const first = memory.data() + p * size();
    if constexpr (std::is_same_v<Layout, Kokkos::LayoutStride>) {
      return View(first, Layout(rows, 2 * (2 * cols + 3), cols, 2));
    } else {
      return View(first, rows, cols);
    }
  }
};

template <class A, class B, class C>
struct MultiplyInTeams {
  using Policy = Kokkos::TeamPolicy<Exec>;

  A a;
  B b;
  C c;
  double alpha, beta;

  KOKKOS_FUNCTION void operator()(const typename Policy::member_type& member) const {
    using Accumulator = Impl::product_accumulator_t<typename A::View, typename B::View, typename C::View>;
    const auto p      = static_cast<std::int64_t>(member.league_rank());
    KokkosNN::team_matmul(member, static_cast<Accumulator>(alpha), a.view(p), b.view(p), static_cast<Accumulator>(beta),
                          c.view(p));
  }
};

/// Threads of a team and their vector lanes: whole warps on a GPU, and others.
std::vector<std::array<int, 2>> team_shapes() {
  if constexpr (on_gpu) return {{64, 1}, {16, 4}, {5, 1}};
  const int most = Exec().concurrency();
  if (most == 1) return {{1, 1}};
  return {{1, 1}, {2, 1}};
}

template <class T>
long double exact(const T& value) {
  return static_cast<double>(value);
}

template <class T>
double unit() {
  return std::ldexp(1.0, -Format<T>::digits);
}

template <class TA, class LA, class TB, class LB, class TC, class LC>
void expect_products(double alpha, double beta) {
  using A           = TeamMatrices<TA, LA>;
  using B           = TeamMatrices<TB, LB>;
  using C           = TeamMatrices<TC, LC>;
  using Accumulator = Impl::product_accumulator_t<typename A::View, typename B::View, typename C::View>;
  for (const auto& [m, n, k] : all_extents) {
    for (const auto& [threads, lanes] : team_shapes()) {
      A a(m, k, 0.1);
      B b(k, n, 1.2);
      C c(m, n, 2.3);
      if (beta == 0) Kokkos::deep_copy(c.memory, static_cast<TC>(std::numeric_limits<float>::quiet_NaN()));
      const auto before = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), c.memory);
      typename decltype(c.host)::non_const_type old("old", c.host.extent(0));
      Kokkos::deep_copy(old, before);
      Kokkos::parallel_for(Kokkos::TeamPolicy<Exec>(products, threads, lanes),
                           MultiplyInTeams<A, B, C>{a, b, c, alpha, beta});
      Exec().fence();
      Kokkos::deep_copy(c.host, c.memory);
      std::vector<bool> is_written(c.host.extent(0), false);
      for (std::int64_t p = 0; p < products; ++p)
        for (std::int64_t i = 0; i < m; ++i)
          for (std::int64_t j = 0; j < n; ++j) {
            const std::int64_t place = p * c.size() + c.offset(i, j);
            is_written[place]        = true;
            long double sum = beta == 0 ? 0 : beta * exact(old(place)), terms = std::abs(sum);
            for (std::int64_t l = 0; l < k; ++l) {
              const long double term = alpha * exact(a.at(p, i, l)) * exact(b.at(p, l, j));
              sum += term;
              terms += std::abs(term);
            }
            const double bound = (2.0 * static_cast<double>(k) + 8) * unit<Accumulator>() * static_cast<double>(terms) +
                                 unit<TC>() * static_cast<double>(std::abs(sum));
            ASSERT_NEAR(static_cast<double>(c.host(place)), static_cast<double>(sum), bound)
                << m << " x " << n << " x " << k << ", row " << i << ", column " << j << ", team of " << threads;
          }
      for (std::size_t i = 0; i < is_written.size(); ++i) {
        const auto value = static_cast<double>(c.host(i)), was = static_cast<double>(old(i));
        ASSERT_TRUE(is_written[i] || value == was || (value != value && was != was)) << "something else was written";
      }
    }
  }
}

using Right  = Kokkos::LayoutRight;
using Left   = Kokkos::LayoutLeft;
using Spread = Kokkos::LayoutStride;

template <class T>
class TeamMatmul : public ::testing::Test {};
TYPED_TEST_SUITE(TeamMatmul, ElementTypes, ElementNames);

TYPED_TEST(TeamMatmul, MultipliesMatricesOfAnyLayout) {
  using T = TypeParam;
  expect_products<T, Right, T, Right, T, Right>(0.5, 0);
  expect_products<T, Left, T, Left, T, Left>(1, -2);
  expect_products<T, Left, T, Spread, T, Right>(1, 0);
  expect_products<T, Spread, T, Right, T, Spread>(-1, 1);
}

TEST(TeamMatmulTypes, MayBeMixed) {
  expect_products<Half, Right, Half, Right, float, Right>(1, 0.5);
  expect_products<float, Left, double, Left, float, Left>(1, 1);
  expect_products<BHalf, Right, float, Left, double, Right>(1, 0);
}

/// A matrix of small numbers for an emulated team.
template <class T>
struct Numbers {
  using value_type = T;

  std::int64_t rows, cols;
  std::vector<T> values;

  Numbers(std::int64_t row_count, std::int64_t col_count, int seed) : rows(row_count), cols(col_count) {
    for (std::int64_t i = 0; i < rows * cols; ++i) values.push_back(static_cast<T>(float((i * 7 + seed) % 13 - 6)));
  }
  T& operator()(std::int64_t row, std::int64_t col) const {
    if (row >= rows || col >= cols) ADD_FAILURE() << "an element outside of the matrix";
    return const_cast<T&>(values[static_cast<std::size_t>(row * cols + col)]);
  }
};

/// Sums of small integers are exact in any order.
template <class Unit>
void expect_exact_in_warps() {
  using T = typename Unit::Element;
  using A = typename Unit::Accumulated;
  for (const auto& extents : all_extents) {
    const std::int64_t m = extents.m, n = extents.n, k = extents.k;  // names that clang before 16 takes into a lambda
    const Numbers<T> a(m, k, 1), b(k, n, 2);
    const Numbers<A> c(m, n, 3), before = c;
    constexpr int warps = 2;
    EmulatedTeam team(warps * Unit::lanes, Unit::lanes, 0);
    team.run([&](int rank) {
      Impl::ViewProduct<Unit, A, Numbers<T>, Numbers<T>, Numbers<A>>{a, b, c, m, n, k, A(2), A(-1)}.run(
          rank / Unit::lanes, warps, rank % Unit::lanes);
    });
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        double expected = -double(before(i, j));
        for (std::int64_t l = 0; l < k; ++l) expected += 2 * double(a(i, l)) * double(b(l, j));
        ASSERT_EQ(double(c(i, j)), expected) << m << " x " << n << " x " << k << ", row " << i << ", column " << j;
      }
  }
}

TEST(TeamMatmulInWarps, CollectsTheFragmentsOfMatrixCores) {
  expect_exact_in_warps<Impl::MfmaUnit<KokkosNN::half_t, EmulatedAmdInstructions>>();
  expect_exact_in_warps<Impl::MfmaUnit<KokkosNN::bhalf_t, EmulatedAmdInstructions>>();
  expect_exact_in_warps<Impl::MfmaUnit<float, EmulatedAmdInstructions>>();
  expect_exact_in_warps<Impl::MfmaUnit<double, EmulatedAmdInstructions>>();
}

TEST(TeamMatmulInWarps, CollectsTheFragmentsOfTensorCores) {
  expect_exact_in_warps<Impl::MmaUnit16<KokkosNN::half_t, EmulatedInstructions>>();
  expect_exact_in_warps<Impl::MmaUnit16<KokkosNN::bhalf_t, EmulatedInstructions>>();
  expect_exact_in_warps<Impl::MmaUnitDouble<EmulatedInstructions>>();
}

}  // namespace
}  // namespace KokkosNNTest
