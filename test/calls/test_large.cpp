// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/check.hpp"
#include "support/large.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace KokkosNNTest {

constexpr std::int64_t two_to_31 = std::int64_t(1) << 31;

/// A few elements far apart in one big allocation. On a host only the pages that are touched take memory.
class FarApart {
 public:
  explicit FarApart(std::int64_t span) : m_data(Kokkos::view_alloc(Kokkos::WithoutInitializing, "far apart"), span) {}

  float* device() const { return m_data.data(); }

  void write(const Placement& place, const std::vector<float>& values) const {
    for_each_index(place, place, [&](std::int64_t offset, std::int64_t, std::int64_t n) {
      Kokkos::deep_copy(Kokkos::subview(m_data, offset), values[n]);
    });
  }

  std::vector<float> read(const Placement& place) const {
    std::vector<float> values(place.count());
    for_each_index(place, place, [&](std::int64_t offset, std::int64_t, std::int64_t n) {
      Kokkos::deep_copy(values[n], Kokkos::subview(m_data, offset));
    });
    return values;
  }

 private:
  Kokkos::View<float*, Memory> m_data;
};

/// Softmax from x in one allocation to y in another, or in place, with the elements far apart in both.
void check_far_apart(const Placement& place, int axis) {
  if (on_gpu && free_gpu_memory() < static_cast<std::size_t>(place.span()) * sizeof(float) + (1u << 30)) {
    GTEST_SKIP() << "not enough GPU memory";
  }
  const FarApart memory(place.span());
  const Placement dense = right(place.extents);
  std::vector<float> values(place.count());
  fill(values.data(), dense, axis, Recipe::uniform);
  memory.write(place, values);
  const auto view = strided_view<2>(memory.device(), place);

  KokkosNN::softmax(Exec(), view, view, {.axis = axis});
  Exec().fence();

  const std::vector<float> result = memory.read(place);
  const Errors errors             = compare<RowOperator::softmax>(values.data(), dense, result.data(), dense, axis);
  EXPECT_LE(errors.max_ulp, promised_ulp<float>) << errors.worst;
}

TEST(Large, RowsMoreThan2To31ElementsApartMatch) {
  const Placement place = {{3, 5}, {two_to_31 / 2 + 9, 1}};

  check_far_apart(place, 1);
}

TEST(Large, ColumnsMoreThan2To31ElementsApartMatch) {
  const Placement place = {{5, 3}, {1, two_to_31 / 2 + 9}};

  check_far_apart(place, 1);
}

TEST(Large, OneStrideOfMoreThan2To31ElementsMatches) {
  const Placement place = {{2, 7}, {two_to_31 + 21, 1}};

  check_far_apart(place, 1);
  check_far_apart(place, 0);
}

/// Zeros, but `last` in the last column; no memory behind it.
struct LoadLastColumn {
  using value_type = float;
  std::int64_t cols;
  float last;

  template <int N>
  KOKKOS_FUNCTION KokkosNN::Pack<float, N> load(std::int64_t, std::int64_t col) const {
    KokkosNN::Pack<float, N> pack;
    for (int i = 0; i < N; ++i) pack[i] = col + i == cols - 1 ? last : 0.0f;
    return pack;
  }
};

struct StoreLseOfRow {
  using value_type = float;
  Kokkos::View<float*, Memory> lse;

  KOKKOS_FUNCTION void store(float value, std::int64_t row) const { lse(row) = value; }
};

TEST(Large, ALogSumExpOfARowOfMoreThan2To31ColumnsCountsEachOnce) {
  const std::int64_t cols = two_to_31 + 5;
  const float last        = 21.5f;  // about as much as all the others together
  const Kokkos::View<float*, Memory> lse("lse", 1);

  KokkosNN::fused_logsumexp(Exec(), 1, cols, LoadLastColumn{cols, last}, StoreLseOfRow{lse});

  const auto value           = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), lse);
  const long double expected = std::log(static_cast<long double>(cols - 1) + std::exp(static_cast<long double>(last)));
  EXPECT_LE(ulp_error<float>(value(0), expected), promised_log_ulp<float>) << value(0);
}

TEST(Large, ALogSumExpOfAZeroStrideRowOfMoreThan2To31ColumnsMatches) {
  if (!on_gpu) GTEST_SKIP() << "slow on a host, where the functor form above takes the same kernel";
  const std::int64_t cols = two_to_31 + 5;
  Buffer<float> x(1), lse(1);
  x.host()[0] = 2.5f;
  x.upload();

  KokkosNN::logsumexp(Exec(), strided_view<2>(static_cast<const float*>(x.device()), {{1, cols}, {0, 0}}),
                      strided_view<1>(lse.device(), right({1})));
  Exec().fence();

  lse.download();
  EXPECT_LE(ulp_error<float>(lse.host()[0], 2.5L + std::log(static_cast<long double>(cols))), promised_log_ulp<float>);
}

/// (row number's lowest bits, 0): a row's result tells which row it is.
struct LoadRowNumber {
  using value_type = float;

  template <int N>
  KOKKOS_FUNCTION KokkosNN::Pack<float, N> load(std::int64_t row, std::int64_t col) const {
    KokkosNN::Pack<float, N> pack;
    for (int i = 0; i < N; ++i) pack[i] = col + i == 0 ? static_cast<float>(row % 8) : 0.0f;
    return pack;
  }
};

/// Counts right and wrong rows instead of storing them.
struct CountRows {
  using value_type = float;
  Kokkos::View<std::int64_t[2], Memory> right_and_wrong;

  KOKKOS_FUNCTION void store(float value, std::int64_t row) const {
    const float expected = Kokkos::log(1.0f + Kokkos::exp(static_cast<float>(row % 8)));
    const bool wrong     = !(Kokkos::abs(value - expected) < 1e-5f);
    Kokkos::atomic_inc(&right_and_wrong(wrong));
  }
};

TEST(Large, MoreThan2To31RowsAreAllVisitedOnce) {
  if (!on_gpu) GTEST_SKIP() << "minutes on a host";
  const std::int64_t rows = two_to_31 + 1000;
  const Kokkos::View<std::int64_t[2], Memory> count("count");

  KokkosNN::fused_logsumexp(Exec(), rows, 2, LoadRowNumber{}, CountRows{count});

  const auto result = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), count);
  EXPECT_EQ(result(0), rows);
  EXPECT_EQ(result(1), 0);
}

/// How many elements of y differ from 1 / cols by more than a rounding, and the sum of squares of their row's
/// differences.
struct CountWrong {
  const BHalf* y;
  float expected;
  KOKKOS_FUNCTION void operator()(std::int64_t i, std::int64_t& wrong) const {
    const float difference = static_cast<float>(y[i]) - expected;
    if (!(Kokkos::abs(difference) <= expected / 128)) ++wrong;
  }
};

std::int64_t count_wrong(const Kokkos::View<BHalf*, Memory>& y, float expected) {
  std::int64_t wrong = 0;
  Kokkos::parallel_reduce(
      "count", Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(0, static_cast<std::int64_t>(y.size())),
      CountWrong{y.data(), expected}, wrong);
  return wrong;
}

void check_large_output(std::int64_t rows, std::int64_t cols) {
  if (!has_room_for_large_output()) GTEST_SKIP() << "needs a GPU with more than 32 GiB of free memory";
  Buffer<BHalf> x(1);
  x.host()[0] = static_cast<BHalf>(1.5f);
  x.upload();
  const Kokkos::View<BHalf*, Memory> y("y", rows * cols);

  KokkosNN::softmax(Exec(), strided_view<2>(static_cast<const BHalf*>(x.device()), {{rows, cols}, {0, 0}}),
                    strided_view<2>(y.data(), right({rows, cols})));
  Exec().fence();

  EXPECT_EQ(count_wrong(y, 1.0f / static_cast<float>(cols)), 0);
}

TEST(Large, AnOutputOfMoreThan2To31ElementsInManyRowsIsWrittenToItsEnd) { check_large_output(70001, 31000); }

TEST(Large, AnOutputOfMoreThan2To31RowsIsWrittenToItsEnd) { check_large_output(two_to_31 + 77, 1); }

TEST(Large, AnOutputOfOneRowOfMoreThan2To31ColumnsIsWrittenToItsEnd) { check_large_output(1, two_to_31 + 77); }

}  // namespace KokkosNNTest
