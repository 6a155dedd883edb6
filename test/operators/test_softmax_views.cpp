// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/check.hpp"
#include "support/recorder.hpp"
#include "support/strategies.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace KokkosNNTest {

/// Extents of a tensor of that rank, no two neighbours alike; few elements.
std::vector<std::int64_t> extents_of_rank(int rank) {
  const std::vector<std::int64_t> all{3, 4, 2, 5, 3, 2, 4, 3};
  return {all.begin(), all.begin() + rank};
}

/// x and y in buffers of their own and seen through the typed Views that `make_view(data, place)` makes.
template <RowOperator Op, int Rank, class MakeX, class MakeY>
void check_views(const Placement& x_place, const Placement& y_place, int axis, const MakeX& make_x, const MakeY& make_y,
                 const std::string& what) {
  Trial<Op, float, float, Rank> trial(x_place, y_place, axis);

  apply<Op>(Exec(), make_x(static_cast<const float*>(trial.x().device()), x_place), make_y(trial.y().device(), y_place),
            {.axis = axis});
  Exec().fence();
  trial.y().download();

  EXPECT_TRUE(trial.correct()) << what << ", axis " << axis << " of rank " << Rank;
}

struct MakeStrided {
  template <int Rank, class T>
  auto view(T* data, const Placement& place) const {
    return strided_view<Rank>(data, place);
  }
};
template <class Layout>
struct MakeDense {
  template <int Rank, class T>
  auto view(T* data, const Placement& place) const {
    return dense_view<Rank, Layout>(data, place);
  }
};

template <int Rank, class MakeX, class MakeY>
void check_every_axis(const MakeX& x, const Placement& x_place, const MakeY& y, const Placement& y_place,
                      const std::string& what) {
  for (int axis = -Rank; axis < Rank; ++axis) {
    check_views<RowOperator::softmax, Rank>(
        x_place, y_place, axis, [&](auto* data, const Placement& place) { return x.template view<Rank>(data, place); },
        [&](auto* data, const Placement& place) { return y.template view<Rank>(data, place); }, what);
  }
}

template <class F>
void for_each_rank(F&& f) {
  [&]<int... R>(std::integer_sequence<int, R...>) {
    (f(std::integral_constant<int, R + 1>{}), ...);
  }(std::make_integer_sequence<int, 8>{});
}

TEST(SoftmaxViews, EveryRankAndAxisOfLayoutRightMatches) {
  for_each_rank([](auto rank) {
    const MakeDense<Kokkos::LayoutRight> dense;
    const Placement place = right(extents_of_rank(rank));

    check_every_axis<rank>(dense, place, dense, place, "LayoutRight");
  });
}

TEST(SoftmaxViews, EveryRankAndAxisOfLayoutLeftMatches) {
  for_each_rank([](auto rank) {
    const MakeDense<Kokkos::LayoutLeft> dense;
    const Placement place = left(extents_of_rank(rank));

    check_every_axis<rank>(dense, place, dense, place, "LayoutLeft");
  });
}

TEST(SoftmaxViews, EveryRankAndAxisOfLayoutStrideMatches) {
  for_each_rank([](auto rank) {
    const MakeStrided strided;
    const Placement x_place = right(extents_of_rank(rank), 3);
    const Placement y_place = left(extents_of_rank(rank), 2);

    check_every_axis<rank>(strided, x_place, strided, y_place, "LayoutStride");
  });
}

TEST(SoftmaxViews, XAndYOfDifferentLayoutsMatch) {
  const MakeDense<Kokkos::LayoutRight> rows;
  const MakeDense<Kokkos::LayoutLeft> columns;
  const std::vector<std::int64_t> extents{13, 17, 19};

  check_every_axis<3>(rows, right(extents), columns, left(extents), "right to left");
  check_every_axis<3>(columns, left(extents), rows, right(extents), "left to right");
}

template <int Rank>
void check_logsumexp_of_rank() {
  for (int axis = -Rank; axis < Rank; ++axis) {
    const Placement x_place = left(extents_of_rank(Rank));
    const Placement y_place = right(x_place.without(axis < 0 ? axis + Rank : axis).extents);
    Trial<RowOperator::logsumexp, float, float, Rank> trial(x_place, y_place, axis);

    EXPECT_TRUE(trial.run_correct()) << "axis " << axis << " of rank " << Rank;
  }
}

TEST(SoftmaxViews, LogSumExpHasTheExtentsWithoutTheAxisAndRankZeroForRankOne) {
  for_each_rank([](auto rank) { check_logsumexp_of_rank<rank>(); });
}

TEST(SoftmaxViews, LogSumExpWritesAManagedViewOfRankZero) {
  Trial<RowOperator::logsumexp, float, float, 1> trial(right({100}), right({}), 0);
  Kokkos::View<float, Memory> lse("lse");

  KokkosNN::logsumexp(Exec(), trial.x_view(), lse);
  Exec().fence();

  const auto value                = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), lse);
  const Reference::Row<float> row = {trial.x().host(), 100};
  const Reference::Real reference = Reference::logsumexp(row, 1);
  EXPECT_LE(ulp_error<float>(value(), reference, 1), promised_log_ulp<float>);
}

TEST(SoftmaxViews, TheOverloadsWithoutAnInstanceUseTheDefaultInstance) {
  Trial<RowOperator::softmax, float> softmax(5, 70);
  Trial<RowOperator::log_softmax, float> log_softmax(5, 70);
  Trial<RowOperator::logsumexp, float> logsumexp(5, 70);
  Recorder recorder;

  KokkosNN::softmax(softmax.x_view(), softmax.y_view());
  KokkosNN::log_softmax(log_softmax.x_view(), log_softmax.y_view());
  KokkosNN::logsumexp(logsumexp.x_view(), logsumexp.y_view(), {.axis = 1});
  Kokkos::fence();

  ASSERT_EQ(recorder.kernels.size(), 3u);
  for (const auto& kernel : recorder.kernels) {
    EXPECT_EQ(kernel.device, Kokkos::Tools::Experimental::device_id(Exec())) << kernel.label;
  }
  softmax.y().download();
  log_softmax.y().download();
  logsumexp.y().download();
  EXPECT_TRUE(softmax.correct());
  EXPECT_TRUE(log_softmax.correct());
  EXPECT_TRUE(logsumexp.correct());
}

TEST(SoftmaxViews, ManagedViewsOfTheDefaultLayoutMatch) {
  Kokkos::View<float***> x("x", 4, 30, 50), y("y", 4, 30, 50);
  const auto x_host = Kokkos::create_mirror(x);
  const auto y_host = Kokkos::create_mirror(y);
  for (std::size_t i = 0; i < x.size(); ++i) x_host.data()[i] = static_cast<float>(i % 23) / 4;
  Kokkos::deep_copy(x, x_host);

  KokkosNN::softmax(x, y, {.axis = 1});
  Kokkos::deep_copy(y_host, y);

  const Placement place = {{4, 30, 50},
                           {static_cast<std::int64_t>(x.stride(0)), static_cast<std::int64_t>(x.stride(1)),
                            static_cast<std::int64_t>(x.stride(2))}};
  const Errors errors   = compare<RowOperator::softmax>(x_host.data(), place, y_host.data(), place, 1);
  EXPECT_LE(errors.max_ulp, promised_ulp<float>) << errors.worst;
}

TEST(SoftmaxViews, ExtentsKnownAtCompileTimeMatch) {
  Kokkos::View<float[6][40]> x("x"), y("y");
  const auto x_host = Kokkos::create_mirror(x);
  const auto y_host = Kokkos::create_mirror(y);
  for (std::size_t i = 0; i < x.size(); ++i) x_host.data()[i] = static_cast<float>(i % 29) / 8;
  Kokkos::deep_copy(x, x_host);

  KokkosNN::softmax(x, y);
  Kokkos::deep_copy(y_host, y);

  const Placement place = {{6, 40}, {static_cast<std::int64_t>(x.stride(0)), static_cast<std::int64_t>(x.stride(1))}};
  const Errors errors   = compare<RowOperator::softmax>(x_host.data(), place, y_host.data(), place, 1);
  EXPECT_LE(errors.max_ulp, promised_ulp<float>) << errors.worst;
}

TEST(SoftmaxViews, PaddedRowsMatchAndThePaddingStaysUntouched) {
  for (const std::int64_t padding : {1, 2, 3, 4, 7, 28}) {
    for (const std::int64_t cols : {1, 31, 64, 500, 2000}) {
      Trial<RowOperator::softmax, float> trial(right({11, cols}, padding), right({11, cols}, padding), -1);

      EXPECT_TRUE(trial.run_correct()) << cols << " columns padded by " << padding;
    }
  }
}

TEST(SoftmaxViews, SubviewsMatchAndTheRestStaysUntouched) {
  Buffer<float> x(40 * 100), y(40 * 100);
  const Placement whole = right({40, 100});
  fill(x.host(), whole, -1, Recipe::uniform);
  x.upload();
  const auto x_matrix = dense_view<2, Kokkos::LayoutRight>(static_cast<const float*>(x.device()), whole);
  const auto y_matrix = dense_view<2, Kokkos::LayoutRight>(y.device(), whole);
  const auto rows = std::pair(3, 20), cols = std::pair(5, 78);

  KokkosNN::softmax(Exec(), Kokkos::subview(x_matrix, rows, cols), Kokkos::subview(y_matrix, rows, cols));
  Exec().fence();
  y.download();

  const Placement part = {{17, 73}, {100, 1}, 3 * 100 + 5};
  EXPECT_TRUE(gaps_intact(y, part));
  EXPECT_EQ(unwritten(y, part), 0);
  const Errors errors = compare<RowOperator::softmax>(x.host(), part, y.host(), part, 1);
  EXPECT_LE(errors.max_ulp, promised_ulp<float>) << errors.worst;
}

TEST(SoftmaxViews, OneColumnOfAMatrixAsARankOneSubviewMatches) {
  Buffer<float> x(40 * 100), y(40 * 100);
  const Placement whole = right({40, 100});
  fill(x.host(), whole, -1, Recipe::uniform);
  x.upload();
  const auto x_matrix = dense_view<2, Kokkos::LayoutRight>(x.device(), whole);
  const auto y_matrix = dense_view<2, Kokkos::LayoutRight>(y.device(), whole);

  KokkosNN::log_softmax(Exec(), Kokkos::subview(x_matrix, Kokkos::ALL, 7), Kokkos::subview(y_matrix, Kokkos::ALL, 9));
  Exec().fence();
  y.download();

  const Placement x_part = {{40}, {100}, 7}, y_part = {{40}, {100}, 9};
  EXPECT_TRUE(gaps_intact(y, y_part));
  const Errors errors = compare<RowOperator::log_softmax>(x.host(), x_part, y.host(), y_part, 0);
  EXPECT_LE(errors.max_ulp, promised_log_ulp<float>) << errors.worst;
}

TEST(SoftmaxViews, EveryOtherRowAndColumnMatches) {
  const Placement every_other = {{20, 60}, {2 * 120, 2}, 1};
  Trial<RowOperator::softmax, float> rows(every_other, every_other, -1);
  Trial<RowOperator::softmax, float> cols(every_other, every_other, 0);

  EXPECT_TRUE(rows.run_correct());
  EXPECT_TRUE(cols.run_correct());
}

TEST(SoftmaxViews, ReversedInputMatches) {
  const Placement dense       = right({9, 130});
  const Placement cols_mirror = {{9, 130}, {130, -1}, 129};
  const Placement rows_mirror = {{9, 130}, {-130, 1}, 8 * 130};
  const Placement both        = {{9, 130}, {-130, -1}, 9 * 130 - 1};
  for (const Placement& x : {cols_mirror, rows_mirror, both}) {
    for (const int axis : {0, 1}) {
      Trial<RowOperator::softmax, float> trial(x, dense, axis);

      EXPECT_TRUE(trial.run_correct()) << "strides " << x.strides[0] << " and " << x.strides[1] << ", axis " << axis;
    }
  }
}

TEST(SoftmaxViews, ReversedOutputMatches) {
  const Placement reversed = {{9, 130}, {-130, -1}, 9 * 130 - 1};
  Trial<RowOperator::softmax, float> trial(right({9, 130}), reversed, -1);

  EXPECT_TRUE(trial.run_correct());
}

TEST(SoftmaxViews, ZeroStrideInputMatches) {
  const Placement same_row     = {{12, 90}, {0, 1}};
  const Placement same_column  = {{12, 90}, {1, 0}};
  const Placement same_element = {{12, 90}, {0, 0}};
  for (const Placement& x : {same_row, same_column, same_element}) {
    for (const int axis : {0, 1}) {
      Trial<RowOperator::softmax, float> softmax(x, right({12, 90}), axis);
      Trial<RowOperator::logsumexp, float> logsumexp(x, right({axis == 0 ? 90 : 12}), axis);

      EXPECT_TRUE(softmax.run_correct()) << "strides " << x.strides[0] << " and " << x.strides[1] << ", axis " << axis;
      EXPECT_TRUE(logsumexp.run_correct())
          << "strides " << x.strides[0] << " and " << x.strides[1] << ", axis " << axis;
    }
  }
}

TEST(SoftmaxViews, UnalignedBasesMatch) {
  for (const int x_off : {0, 1, 2, 3}) {
    for (const int y_off : {0, 1, 2, 3}) {
      for (const std::int64_t cols : {1, 2, 3, 4, 5, 63, 64, 1000, 1023, 4096, 40000}) {
        const Placement place = right({2, cols});
        Trial<RowOperator::softmax, float> trial(place, place, -1, Recipe::uniform, x_off, y_off);

        EXPECT_TRUE(trial.run_correct()) << cols << " columns, x off by " << x_off << ", y off by " << y_off;
      }
    }
  }
}

TEST(SoftmaxViews, UnalignedBasesOfAnInnerAxisMatch) {
  for (const int off : {1, 2, 3}) {
    const Placement place = right({2, 50, 33});
    Trial<RowOperator::softmax, float, float, 3> trial(place, place, 1, Recipe::uniform, off, 3 - off);

    EXPECT_TRUE(trial.run_correct()) << "off by " << off;
  }
}

template <RowOperator Op>
void check_in_place(const Placement& place, int axis, const SoftmaxOptions& options = {}) {
  Trial<Op, float, float, 2> trial(place, place, axis);
  const std::vector<float> original(trial.x().host(), trial.x().host() + trial.x().count());
  const auto view = strided_view<2>(trial.x().device(), place);

  apply<Op>(Exec(), view, view, trial.with_axis(options));
  Exec().fence();
  trial.x().download();

  EXPECT_TRUE(gaps_intact(trial.x(), place));
  const Errors errors = compare<Op>(original.data(), place, trial.x().host(), place, axis, options);
  EXPECT_LE(errors.max_ulp, (promise<Op, float>)) << errors.worst;
}

TEST(SoftmaxViews, InPlaceMatches) {
  for (const std::int64_t cols : {1, 33, 1000, 20000, 70000}) {
    check_in_place<RowOperator::softmax>(right({3, cols}), 1);
    check_in_place<RowOperator::log_softmax>(right({3, cols}), 1);
  }
  for (const std::int64_t cols : {101, 781, 5003}) {  // of which a host holds back the ends of rows
    const std::int64_t rows = rows_beyond_the_cache(cols);
    if (rows == 0) continue;
    check_in_place<RowOperator::softmax>(right({rows, cols}), 1);
    check_in_place<RowOperator::log_softmax>(right({rows, cols}), 1);
  }
  check_in_place<RowOperator::softmax>(right({300, 50}), 0);
  check_in_place<RowOperator::softmax>(left({300, 50}, 2), 1);
}

TEST(SoftmaxViews, InPlaceMatchesOnEveryStrategy) {
  for (const RowStrategy strategy :
       strategies_here({RowStrategy::vector_lanes, RowStrategy::team_scratch, RowStrategy::team_registers,
                        RowStrategy::team_online, RowStrategy::split_row})) {
    check_in_place<RowOperator::softmax>(right({30, 16}), 1, {.plan = {.strategy = strategy}});
    check_in_place<RowOperator::log_softmax>(right({30, 16}), 1, {.plan = {.strategy = strategy}});
  }
  check_in_place<RowOperator::softmax>(right({30, 16}), 0, {.plan = {.strategy = RowStrategy::inner_lanes}});
}

TEST(SoftmaxViews, MutableInputMatchesConstInput) {
  Trial<RowOperator::softmax, float> trial(5, 100);
  const auto x = strided_view<2>(trial.x().device(), trial.x_place());

  KokkosNN::softmax(Exec(), x, trial.y_view());
  Exec().fence();
  trial.y().download();

  EXPECT_TRUE(trial.correct());
}

TEST(SoftmaxViews, EmptyExtentsReturnAtOnceAndLaunchNothing) {
  for (const std::vector<std::int64_t>& extents :
       {std::vector<std::int64_t>{0, 10}, std::vector<std::int64_t>{10, 0}, std::vector<std::int64_t>{0, 0}}) {
    for (const int axis : {0, 1}) {
      Trial<RowOperator::softmax, float> trial(right(extents), right(extents), axis);

      const auto kernels = kernels_of([&] { trial.call(); });

      EXPECT_TRUE(kernels.empty()) << extents[0] << " x " << extents[1] << ", axis " << axis;
    }
  }
}

TEST(SoftmaxViews, LogSumExpOfNoRowsLaunchesNothing) {
  Trial<RowOperator::logsumexp, float> trial(right({0, 10}), right({0}), 1);

  const auto kernels = kernels_of([&] { trial.call(); });

  EXPECT_TRUE(kernels.empty());
}

TEST(SoftmaxViews, LogSumExpOfRowsWithoutColumnsIsMinusInfinity) {
  Trial<RowOperator::logsumexp, float> trial(right({3, 0}), right({3}), 1);

  trial.run();

  for (int row = 0; row < 3; ++row) EXPECT_EQ(trial.y().host()[row], -std::numeric_limits<float>::infinity()) << row;
}

}  // namespace KokkosNNTest
