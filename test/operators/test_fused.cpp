// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/check.hpp"
#include "support/recorder.hpp"
#include "support/strategies.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace KokkosNNTest {

using KokkosNN::Pack;

template <class T>
using Matrix = Kokkos::View<T**, Kokkos::LayoutRight, Memory>;

/// x + residual, as it comes in front of an attention's or a gate's softmax.
template <class T>
struct LoadSum {
  using value_type = T;
  Matrix<const T> x;
  Matrix<const T> residual;

  template <int N>
  KOKKOS_FUNCTION Pack<T, N> load(std::int64_t row, std::int64_t col) const {
    Pack<T, N> pack;
    for (int i = 0; i < N; ++i) pack[i] = x(row, col + i) + residual(row, col + i);
    return pack;
  }
};

/// Plain memory.
template <class T>
struct LoadMatrix {
  using value_type = T;
  Matrix<const T> x;

  template <int N>
  KOKKOS_FUNCTION Pack<T, N> load(std::int64_t row, std::int64_t col) const {
    Pack<T, N> pack;
    for (int i = 0; i < N; ++i) pack[i] = x(row, col + i);
    return pack;
  }
};

template <class T>
struct StoreMatrix {
  using value_type = T;
  Matrix<T> y;

  template <class A, int N>
  KOKKOS_FUNCTION void store_values(const Pack<A, N>& values, std::int64_t row, std::int64_t col) const {
    for (int i = 0; i < N; ++i) y(row, col + i) = static_cast<T>(values[i]);
  }
  template <int N>
  KOKKOS_FUNCTION void store(const Pack<KokkosNN::accumulator_t<T>, N>& values, std::int64_t row,
                             std::int64_t col) const {
    store_values(values, row, col);
  }
};

/// Quantised to bytes, and how often each element was stored.
struct StoreBytes {
  using value_type = float;
  Matrix<std::uint8_t> y;
  Matrix<int> times;

  template <int N>
  KOKKOS_FUNCTION void store(const Pack<float, N>& values, std::int64_t row, std::int64_t col) const {
    for (int i = 0; i < N; ++i) {
      y(row, col + i) = static_cast<std::uint8_t>(values[i] * 255.0f + 0.5f);
      Kokkos::atomic_inc(&times(row, col + i));
    }
  }
};

template <class T>
struct StoreLse {
  using value_type = T;
  Kokkos::View<T*, Memory> lse;

  KOKKOS_FUNCTION void store(T value, std::int64_t row) const { lse(row) = value; }
};

/// An input on the host and on the device.
template <class T>
struct Input {
  Matrix<T> device;
  typename Matrix<T>::host_mirror_type host;

  Input(std::int64_t rows, std::int64_t cols, Recipe recipe)
      : device("input", rows, cols), host(Kokkos::create_mirror(device)) {
    fill(host.data(), right({rows, cols}), -1, recipe);
    Kokkos::deep_copy(device, host);
  }
};

const std::vector<std::int64_t>& fused_widths() {
  static const std::vector<std::int64_t> widths{1, 2, 3, 31, 32, 33, 64, 100, 255, 1000, 1025, 5000, 40000, 300001};
  return widths;
}

std::int64_t fused_rows(std::int64_t cols) { return cols > 5000 ? 2 : 21; }

TEST(Fused, AResidualBeforeTheSoftmaxMatchesTheComposition) {
  for (const std::int64_t cols : fused_widths()) {
    const std::int64_t rows = fused_rows(cols);
    const Input<float> x(rows, cols, Recipe::uniform), residual(rows, cols, Recipe::ascending);
    const Matrix<float> y("y", rows, cols);
    std::vector<float> sum(rows * cols);
    for (std::int64_t i = 0; i < rows * cols; ++i) sum[i] = x.host.data()[i] + residual.host.data()[i];

    KokkosNN::fused_softmax(Exec(), rows, cols, LoadSum<float>{x.device, residual.device}, StoreMatrix<float>{y});

    const auto result     = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), y);
    const Placement place = right({rows, cols});
    const Errors errors   = compare<RowOperator::softmax>(sum.data(), place, result.data(), place, 1);
    EXPECT_LE(errors.max_ulp, promised_ulp<float>) << errors.worst << "; " << cols << " columns";
  }
}

TEST(Fused, PlainLoadAndStoreMatchTheViewFormBitForBit) {
  for (const std::int64_t cols : fused_widths()) {
    const std::int64_t rows = fused_rows(cols);
    const Input<float> x(rows, cols, Recipe::wide);
    const Matrix<float> fused("fused", rows, cols), plain("plain", rows, cols);
    const SoftmaxOptions options{.determinism = Determinism::batch_invariant};

    KokkosNN::fused_softmax(Exec(), rows, cols, LoadMatrix<float>{x.device}, StoreMatrix<float>{fused}, options);
    KokkosNN::softmax(Exec(), x.device, plain, options);

    const auto a = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), fused);
    const auto b = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), plain);
    EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0) << cols << " columns";
  }
}

TEST(Fused, LogSoftmaxWithAScaleMatches) {
  for (const std::int64_t cols : {1, 33, 5000}) {
    const SoftmaxOptions options{.scale = -0.25};
    const Input<float> x(5, cols, Recipe::uniform);
    const Matrix<float> y("y", 5, cols);

    KokkosNN::fused_log_softmax(Exec(), 5, cols, LoadMatrix<float>{x.device}, StoreMatrix<float>{y}, options);

    const auto result     = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), y);
    const Placement place = right({5, cols});
    const Errors errors   = compare<RowOperator::log_softmax>(x.host.data(), place, result.data(), place, 1, options);
    EXPECT_LE(errors.max_ulp, promised_log_ulp<float>) << errors.worst << "; " << cols << " columns";
  }
}

TEST(Fused, EveryElementIsStoredOnceAndQuantised) {
  for (const std::int64_t cols : fused_widths()) {
    const std::int64_t rows = fused_rows(cols);
    const Input<float> x(rows, cols, Recipe::wide);
    const Matrix<std::uint8_t> y("y", rows, cols);
    const Matrix<int> times("times", rows, cols);

    KokkosNN::fused_softmax(Exec(), rows, cols, LoadMatrix<float>{x.device}, StoreBytes{y, times});

    const auto bytes = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), y);
    const auto count = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), times);
    std::vector<Reference::Real> expected;
    for (std::int64_t row = 0; row < rows; ++row) {
      Reference::softmax(Reference::Row<float>{x.host.data() + row * cols, cols}, 1, MaskedRowPolicy::nan, expected);
      for (std::int64_t col = 0; col < cols; ++col) {
        ASSERT_EQ(count(row, col), 1) << row << ", " << col << " of " << cols;
        ASSERT_NEAR(bytes(row, col), static_cast<double>(expected[col] * 255), 0.501) << row << ", " << col;
      }
    }
  }
}

TEST(Fused, ALogSumExpOfASumMatches) {
  for (const std::int64_t cols : fused_widths()) {
    const std::int64_t rows = fused_rows(cols);
    const Input<float> x(rows, cols, Recipe::uniform), residual(rows, cols, Recipe::wide);
    const Kokkos::View<float*, Memory> lse("lse", rows);
    std::vector<float> sum(rows * cols);
    for (std::int64_t i = 0; i < rows * cols; ++i) sum[i] = x.host.data()[i] + residual.host.data()[i];

    KokkosNN::fused_logsumexp(Exec(), rows, cols, LoadSum<float>{x.device, residual.device}, StoreLse<float>{lse});

    const auto result = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), lse);
    const Errors errors =
        compare<RowOperator::logsumexp>(sum.data(), right({rows, cols}), result.data(), right({rows}), 1);
    EXPECT_LE(errors.max_ulp, promised_log_ulp<float>) << errors.worst << "; " << cols << " columns";
  }
}

TEST(Fused, ALogSumExpOfARowWithPlusInfinityIsThatUnlessThereIsANaN) {
  for (const std::int64_t cols : fused_widths()) {
    if (cols < 2) continue;
    Input<float> x(3, cols, Recipe::uniform);
    x.host.data()[cols / 2] = x.host.data()[2 * cols - 1] = std::numeric_limits<float>::infinity();
    x.host.data()[cols]                                   = std::numeric_limits<float>::quiet_NaN();
    Kokkos::deep_copy(x.device, x.host);
    const Kokkos::View<float*, Memory> lse("lse", 3);

    KokkosNN::fused_logsumexp(Exec(), 3, cols, LoadMatrix<float>{x.device}, StoreLse<float>{lse});

    const auto result = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), lse);
    EXPECT_EQ(result(0), std::numeric_limits<float>::infinity()) << cols << " columns";
    EXPECT_TRUE(std::isnan(result(1))) << cols << " columns";
    EXPECT_TRUE(std::isfinite(result(2))) << cols << " columns";
  }
}

TEST(Fused, ALogSoftmaxWithASmallScaleIsFiniteWhereDifferencesOfLogitsAreNot) {
  for (const std::int64_t cols : fused_widths()) {
    Input<float> x(2, cols, Recipe::uniform);
    for (std::int64_t i = 0; i < 2 * cols; ++i) x.host.data()[i] = i % 3 == 0 ? 3e38f : -3e38f;
    Kokkos::deep_copy(x.device, x.host);
    const Matrix<float> y("y", 2, cols);

    KokkosNN::fused_log_softmax(Exec(), 2, cols, LoadMatrix<float>{x.device}, StoreMatrix<float>{y}, {.scale = 0.125});

    const auto result = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), y);
    const auto place  = right({2, cols});
    const Errors errors =
        compare<RowOperator::log_softmax>(x.host.data(), place, result.data(), place, 1, {.scale = 0.125});
    EXPECT_LE(errors.max_ulp, promised_log_ulp<float>) << errors.worst << "; " << cols << " columns";
  }
}

TEST(Fused, EveryStrategyButInnerLanesServesFunctorsOnItsPath) {
  for (const RowStrategy strategy :
       strategies_here({RowStrategy::vector_lanes, RowStrategy::team_scratch, RowStrategy::team_registers,
                        RowStrategy::team_online, RowStrategy::split_row})) {
    const Input<float> x(40, 25, Recipe::wide);
    const Matrix<float> y("y", 40, 25);

    const auto kernels = kernels_of([&] {
      KokkosNN::fused_softmax(Exec(), 40, 25, LoadMatrix<float>{x.device}, StoreMatrix<float>{y},
                              {.plan = {.strategy = strategy}});
    });

    ASSERT_EQ(kernels.size(), 1u);
    EXPECT_EQ(kernels[0].find(std::string("KokkosNN::softmax[") + KokkosNN::to_string(strategy)), 0u) << kernels[0];
    const auto result     = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), y);
    const Placement place = right({40, 25});
    const Errors errors   = compare<RowOperator::softmax>(x.host.data(), place, result.data(), place, 1);
    EXPECT_LE(errors.max_ulp, promised_ulp<float>) << errors.worst << "; " << kernels[0];
  }
}

TEST(Fused, InPlaceMatches) {
  for (const std::int64_t cols : {1, 33, 1000, 40000}) {
    const Input<float> x(3, cols, Recipe::uniform);

    KokkosNN::fused_softmax(Exec(), 3, cols, LoadMatrix<float>{x.device}, StoreMatrix<float>{x.device});

    const auto result     = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), x.device);
    const Placement place = right({3, cols});
    const Input<float> original(3, cols, Recipe::uniform);
    const Errors errors = compare<RowOperator::softmax>(original.host.data(), place, result.data(), place, 1);
    EXPECT_LE(errors.max_ulp, promised_ulp<float>) << errors.worst << "; " << cols << " columns";
  }
}

TEST(Fused, MaskedRowsFollowThePolicy) {
  const Input<float> x(2, 50, Recipe::uniform);
  Kokkos::deep_copy(x.device, -std::numeric_limits<float>::infinity());
  const Matrix<float> zeros("zeros", 2, 50), nans("nans", 2, 50);
  Kokkos::deep_copy(zeros, 1.0f);

  KokkosNN::fused_softmax(Exec(), 2, 50, LoadMatrix<float>{x.device}, StoreMatrix<float>{zeros},
                          {.masked_row = MaskedRowPolicy::zero});
  KokkosNN::fused_softmax(Exec(), 2, 50, LoadMatrix<float>{x.device}, StoreMatrix<float>{nans});

  const auto a = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), zeros);
  const auto b = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), nans);
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a.data()[i], 0.0f) << i;
    EXPECT_TRUE(std::isnan(b.data()[i])) << i;
  }
}

TEST(Fused, NoRowsOrNoColumnsLaunchNothing) {
  const Input<float> x(2, 50, Recipe::uniform);

  const auto kernels = kernels_of([&] {
    KokkosNN::fused_softmax(Exec(), 0, 50, LoadMatrix<float>{x.device}, StoreMatrix<float>{x.device});
    KokkosNN::fused_log_softmax(Exec(), 2, 0, LoadMatrix<float>{x.device}, StoreMatrix<float>{x.device});
  });

  EXPECT_TRUE(kernels.empty());
}

}  // namespace KokkosNNTest
