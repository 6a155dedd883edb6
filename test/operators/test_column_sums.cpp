// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/message.hpp"
#include "support/norm.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

namespace KokkosNNTest {
namespace {

/// One sum over rows: x filled, y poisoned and guarded.
template <class T, int Rank = 2, class Y = T>
class SumTrial {
 public:
  SumTrial(Placement place, int axis = -1, std::int64_t stride = 1, int misalignment = 0)
      : m_place(std::move(place)),
        m_axis(axis < 0 ? axis + Rank : axis),
        m_cols(m_place.extents[m_axis]),
        m_y_place{{m_cols}, {stride}, 0},
        m_x(m_place.span(), misalignment),
        m_y(m_y_place.span(), misalignment) {
    fill(m_x.host(), m_place, m_axis, Recipe::uniform);
    m_x.upload();
  }

  Buffer<T>& x() { return m_x; }
  Buffer<Y>& y() { return m_y; }

  void call() const {
    KokkosNN::column_sums(Exec(), strided_view<Rank>(static_cast<const T*>(m_x.device()), m_place),
                          strided_view<1>(m_y.device(), m_y_place), {.axis = m_axis});
  }
  void run() {
    m_y.poison_all();
    call();
    Exec().fence();
    m_y.download();
  }

  ::testing::AssertionResult run_correct() {
    run();
    if (!gaps_intact(m_y, m_y_place)) return ::testing::AssertionFailure() << "something outside of y was written";
    std::vector<Reference::TermSum> expected(m_cols);
    const Placement rows = m_place.without(m_axis);
    for_each_index(rows, rows, [&](std::int64_t offset, auto, auto) {
      for (std::int64_t i = 0; i < m_cols; ++i)
        expected[i].add(exact(m_x.host()[offset + i * m_place.strides[m_axis]]));
    });
    for (std::int64_t i = 0; i < m_cols; ++i) {
      const auto result =
          is_column_sum<Y>(expected[i], exact(m_y.host()[i * m_y_place.strides[0]]), false, std::is_same_v<T, double>);
      if (!result) return ::testing::AssertionFailure() << "column " << i << ": " << result.message();
    }
    return ::testing::AssertionSuccess();
  }

 private:
  Placement m_place;
  int m_axis;
  std::int64_t m_cols;
  Placement m_y_place;
  Buffer<T> m_x;
  Buffer<Y> m_y;
};

template <class T>
class ColumnSums : public ::testing::Test {};
TYPED_TEST_SUITE(ColumnSums, ElementTypes, ElementNames);

TYPED_TEST(ColumnSums, MatchInAnyLayoutAlongAnyAxis) {
  const std::vector<std::int64_t> extents{17, 9, 34};
  for (int axis = 0; axis < 3; ++axis) {
    for (const Placement& place : {right(extents), left(extents), right(extents, 3), left(extents, 2)}) {
      EXPECT_TRUE((SumTrial<TypeParam, 3>(place, axis).run_correct())) << axis;
    }
  }
  EXPECT_TRUE((SumTrial<TypeParam, 1>(right({77}), 0).run_correct()));
}

TYPED_TEST(ColumnSums, MatchAtEveryWidthAndHeight) {
  for (const std::int64_t cols : {1, 2, 7, 8, 9, 31, 63, 64, 65, 511, 513, 1100}) {
    for (const std::int64_t rows : {1, 31, 33, 128, 257}) {
      EXPECT_TRUE((SumTrial<TypeParam>(right({rows, cols})).run_correct())) << rows << " by " << cols;
      EXPECT_TRUE((SumTrial<TypeParam>(left({rows, cols})).run_correct())) << rows << " by " << cols;
    }
  }
  for (const std::int64_t rows : {1023 * 256, 1024 * 256, 1024 * 256 + 1, 400000}) {
    EXPECT_TRUE((SumTrial<TypeParam>(right({rows, 3})).run_correct())) << rows;
  }
}

TYPED_TEST(ColumnSums, MatchWhereverRowsBeginAndInEitherType) {
  using A = KokkosNN::accumulator_t<TypeParam>;
  for (const std::int64_t cols : {33, 64}) {
    EXPECT_TRUE((SumTrial<TypeParam, 2, A>(right({300, cols}), 1, 3, 1).run_correct()));
    EXPECT_TRUE((SumTrial<TypeParam>({{300, cols}, {2 * cols + 5, 2}, 0}, 1, 2, 3).run_correct()));
    EXPECT_TRUE((SumTrial<TypeParam>({{300, cols}, {cols, -1}, cols - 1}).run_correct()));
    EXPECT_TRUE((SumTrial<TypeParam>({{300, cols}, {0, 1}, 0}).run_correct()));
  }
}

TYPED_TEST(ColumnSums, GiveAColumnTheSameBitsWhateverIsBesideIt) {
  constexpr std::int64_t rows = 1000, cols = 700;
  SumTrial<TypeParam> all(right({rows, cols}));
  all.run();
  for (const std::int64_t first : {0, 5, 512}) {
    for (const std::int64_t some : {1, 3, 100}) {
      SumTrial<TypeParam> part({{rows, some}, {cols, 1}, 0});
      for (std::int64_t i = 0; i < part.x().count(); ++i) part.x().host()[i] = all.x().host()[first + i];
      part.x().upload();
      part.run();
      EXPECT_EQ(std::memcmp(part.y().host(), all.y().host() + first, std::size_t(some) * sizeof(TypeParam)), 0)
          << some << " from " << first;
    }
  }
}

TEST(ColumnSumCalls, CancelWithoutLoss) {
  // Each row and its negative: nothing is left, whatever is between them.
  SumTrial<float> trial(right({4000, 33}));
  for (std::int64_t i = 0; i < 2000 * 33; ++i) trial.x().host()[2000 * 33 + i] = -trial.x().host()[i];
  trial.x().upload();
  EXPECT_TRUE(trial.run_correct());
}

TEST(ColumnSumCalls, WriteZerosWithoutRowsAndNothingWithoutColumns) {
  SumTrial<float> rows(right({0, 5})), cols(right({5, 0}));
  EXPECT_TRUE(rows.run_correct());
  EXPECT_EQ(rows.y().host()[4], 0);
  EXPECT_TRUE(kernels_of([&] { cols.call(); }).empty());
}

TEST(ColumnSumCalls, KeepANaNOrAnInfinityToItsColumn) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  SumTrial<float> trial(right({500, 40}));
  trial.x().host()[300 * 40 + 7]  = std::numeric_limits<float>::quiet_NaN();
  trial.x().host()[300 * 40 + 11] = infinity;
  trial.x().host()[300 * 40 + 12] = infinity;
  trial.x().host()[499 * 40 + 12] = -infinity;
  trial.x().upload();
  EXPECT_TRUE(trial.run_correct());
  EXPECT_EQ(trial.y().host()[11], infinity);
}

TEST(ColumnSumCalls, AllocateNothingAndEnqueueAKernelOrTwo) {
  for (const std::int64_t rows : {256, 257}) {
    SumTrial<double> trial(right({rows, 40}));
    trial.call();
    Exec().fence();
    Recorder recorder;
    trial.call();
    EXPECT_EQ(recorder.kernels.size(), rows == 256 ? 1U : 2U);
    EXPECT_TRUE(recorder.neither_fenced_nor_allocated());
  }
  const Kokkos::View<float**, Memory> x("x", 3, 4);
  const Kokkos::View<float*, Memory> y("y", 3);
  Kokkos::deep_copy(x, 2);
  KokkosNN::column_sums(x, y, {.axis = 0});
  Kokkos::fence();
  EXPECT_EQ(Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), y)(2), 8);
}

TEST(ColumnSumErrors, NameWhatDoesNotAgree) {
  const Kokkos::View<float**, Memory> x("x", 3, 4);
  const Kokkos::View<float*, Memory> y("y", 3);
  const Kokkos::View<float*, Memory> row(x.data(), 4);
  EXPECT_EQ(message_of([&] { KokkosNN::column_sums(x, y); }),
            "KokkosNN::column_sums: y must have one element for each of the 4 columns, but has 3");
  EXPECT_EQ(message_of([&] { KokkosNN::column_sums(x, y, {.axis = 2}); }),
            "KokkosNN::column_sums: axis 2 is out of range for rank 2");
  EXPECT_NE(message_of([&] { KokkosNN::column_sums(x, row); }).find("overlap"), std::string::npos);
}

}  // namespace
}  // namespace KokkosNNTest
