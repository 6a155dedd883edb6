// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "sharded.hpp"

#include "support/recorder.hpp"

#include <cmath>
#include <limits>

// Columns over ranks against the reference of whole rows, and gradients against one rank's.

namespace KokkosNNTest {
namespace {

template <class T>
struct MpiOperators : ::testing::Test {};
TYPED_TEST_SUITE(MpiOperators, ElementTypes, ElementNames);

/// to = transposed from
template <class T>
void transpose(const Matrix<T>& from, const Matrix<T>& to) {
  Kokkos::parallel_for(
      Kokkos::MDRangePolicy<Exec, Kokkos::Rank<2>>({0, 0}, {from.extent(0), from.extent(1)}),
      KOKKOS_LAMBDA(std::int64_t i, std::int64_t j) { to(j, i) = from(i, j); });
}

template <RowOperator Op, class T>
void run(const Communicator<Exec>& comm, const Spread<T>& x, const Matrix<T>& y, const SoftmaxOptions& options) {
  if constexpr (Op == RowOperator::softmax) KokkosNN::mpi::softmax(comm, x.shard, y, options);
  if constexpr (Op == RowOperator::log_softmax) KokkosNN::mpi::log_softmax(comm, x.shard, y, options);
}

/// A call of softmax or log_softmax against the reference in long double.
template <RowOperator Op, class T>
void expect_reference(const Communicator<Exec>& comm, const Spread<T>& x, const SoftmaxOptions& options = {}) {
  const Matrix<T> y("y", x.rows, x.end() - x.begin());
  run<Op>(comm, x, y, options);
  const auto result = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), y);
  Errors errors;
  std::vector<Reference::Real> expected;
  for (std::int64_t row = 0; row < x.rows; ++row) {
    const Reference::Row<T> logits{x.host.data() + row * x.cols, x.cols};
    if constexpr (Op == RowOperator::softmax) Reference::softmax(logits, options.scale, options.masked_row, expected);
    if constexpr (Op == RowOperator::log_softmax) {
      Reference::log_softmax(logits, options.scale, options.masked_row, expected);
    }
    for (std::int64_t col = x.begin(); col < x.end(); ++col) {
      const long double value = exact(result(row, col - x.begin()));
      const double ulp        = Op == RowOperator::softmax ? probability_error<T>(value, expected[col])
                                                           : ulp_error<T>(value, expected[col], 1);
      errors.add(ulp, row, col, value, expected[col]);
    }
  }
  EXPECT_LE(errors.max_ulp, (promise<Op, T>)+between_ranks<T>()) << to_string(Op) << ", " << errors.worst;
}

/// A call of logsumexp against the reference, the same bits on all ranks.
template <class T>
void expect_logsumexp(const Communicator<Exec>& comm, const Spread<T>& x, const SoftmaxOptions& options = {}) {
  using A = KokkosNN::accumulator_t<T>;
  const Vector<A> lse("lse", x.rows);
  KokkosNN::mpi::logsumexp(comm, x.shard, lse, options);
  const auto result = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), lse);
  Errors errors;
  for (std::int64_t row = 0; row < x.rows; ++row) {
    const Reference::Row<T> logits{x.host.data() + row * x.cols, x.cols};
    const auto expected  = Reference::logsumexp(logits, options.scale);
    const auto magnitude = std::max<Reference::Real>(1, Reference::magnitude_of_max(logits, options.scale));
    errors.add(ulp_error<A>(result(row), expected, magnitude), row, 0, result(row), expected);
  }
  EXPECT_LE(errors.max_ulp, promised_log_ulp<A> + between_ranks<A>()) << errors.worst;
  EXPECT_TRUE(are_bits_equal_on_all_ranks(lse));
}

template <class T>
void expect_forward(const Communicator<Exec>& comm, const Spread<T>& x, const SoftmaxOptions& options = {}) {
  expect_reference<RowOperator::softmax>(comm, x, options);
  expect_reference<RowOperator::log_softmax>(comm, x, options);
  expect_logsumexp(comm, x, options);
}

TYPED_TEST(MpiOperators, ForwardIsTheWholeRowsWhateverTheSplitTheMergeAndTheBlocks) {
  for (const CommunicatorOptions& with : all_communicators()) {
    const Communicator<Exec> comm(Exec(), MPI_COMM_WORLD, with);
    for (const Split split : all_splits) {
      Spread<TypeParam> x(7, 1003, split);
      x.fill(Recipe::uniform);
      expect_forward(comm, x);
    }
  }
}

TYPED_TEST(MpiOperators, ForwardHoldsItsPromiseOnEveryRecipeScaleAndWidth) {
  const Communicator<Exec> comm(Exec(), MPI_COMM_WORLD);
  for (const Recipe recipe : all_recipes) {
    if (is_16_bit<TypeParam> && recipe == Recipe::huge) continue;  // beyond half_t's sums of exponents
    Spread<TypeParam> x(5, 300, Split::uneven);
    x.fill(recipe);
    expect_forward(comm, x);
    expect_forward(comm, x, {.scale = -0.125});
  }
  for (const std::int64_t cols : {1, 2, 3, 17, 20000}) {
    Spread<TypeParam> x(2, cols, Split::even);
    x.fill(Recipe::uniform);
    expect_forward(comm, x);
  }
}

TYPED_TEST(MpiOperators, ForwardTakesNanInfinitiesAndMaskedRowsFromWhicheverRankHasThem) {
  const double infinity = std::numeric_limits<double>::infinity();
  const auto t          = [](double value) { return static_cast<TypeParam>(value); };
  for (const bool deterministic : {false, true}) {
    const Communicator<Exec> comm(Exec(), MPI_COMM_WORLD, {.deterministic = deterministic});
    for (const Split split : all_splits) {
      Spread<TypeParam> x(6, 64, split);
      x.fill(Recipe::uniform);
      x.host(0, 3)  = t(std::nan(""));
      x.host(1, 60) = t(infinity);
      for (int col = 0; col < 64; ++col) x.host(2, col) = t(-infinity);
      for (int col = 0; col < 63; ++col) x.host(3, col) = t(-infinity);  // one element is left, on the last rank
      for (int col = 0; col < 32; ++col) x.host(4, col) = t(-infinity);
      x.upload();
      expect_forward(comm, x);
      expect_forward(comm, x, {.masked_row = MaskedRowPolicy::zero});
    }
  }
}

TYPED_TEST(MpiOperators, ALogSumExpWithPlusInfinityIsThatUnlessAnyRankHasANaN) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const bool deterministic : {false, true}) {
    const Communicator<Exec> comm(Exec(), MPI_COMM_WORLD, {.deterministic = deterministic});
    for (const Split split : all_splits) {
      Spread<TypeParam> x(4, 64, split);
      x.fill(Recipe::uniform);
      for (int row = 0; row < 4; ++row) x.host(row, row % 2 == 0 ? 0 : 63) = static_cast<TypeParam>(infinity);
      x.host(1, 1)  = static_cast<TypeParam>(infinity);
      x.host(2, 63) = x.host(3, 2) = static_cast<TypeParam>(std::nan(""));
      x.upload();
      expect_forward(comm, x);
      const Vector<KokkosNN::accumulator_t<TypeParam>> lse("lse", 4);
      KokkosNN::mpi::logsumexp(comm, x.shard, lse);
      const auto result = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), lse);
      for (int row = 0; row < 4; ++row) {
        EXPECT_TRUE(row < 2 ? result(row) == infinity : std::isnan(result(row))) << result(row) << " of row " << row;
      }
    }
  }
}

TYPED_TEST(MpiOperators, ASmallScaleKeepsResultsFiniteWhereDifferencesOfLogitsAreNot) {
  const Communicator<Exec> comm(Exec(), MPI_COMM_WORLD);
  const auto most = static_cast<double>(largest<TypeParam>());
  for (const double scale : {0.125, -0.25, 0x1p-100, 1.0 / 3}) {
    if (scale == 1.0 / 3 && std::is_same_v<TypeParam, double>) continue;  // such doubles are no 53 bits times a scale
    for (const Split split : all_splits) {
      Spread<TypeParam> x(5, 64, split);
      x.fill(Recipe::uniform);
      for (int row = 0; row < 5; ++row) {
        for (int col = row; col < 64; col += 5) {
          x.host(row, col) = static_cast<TypeParam>(col % 2 == 0 ? most : -most);
        }
      }
      x.upload();
      expect_forward(comm, x, {.scale = scale});
    }
  }
}

TYPED_TEST(MpiOperators, ViewsMayDifferInLayoutRankAndAxisAndBeInPlace) {
  using T = TypeParam;
  const Communicator<Exec> comm(Exec(), MPI_COMM_WORLD, {.block_rows = 4});
  Spread<T> x(12, 90, Split::uneven);
  x.fill(Recipe::uniform);
  const std::int64_t own = x.end() - x.begin();
  const Matrix<T> expected("expected", 12, 90), y("y", 12, own);
  KokkosNN::softmax(Exec(), x.whole, expected);
  const auto error = [](long double value, long double one, std::int64_t) { return probability_error<T>(value, one); };
  const auto check = [&](const char* what) {
    const Errors errors = errors_of(y, expected, x.begin(), error);
    EXPECT_LE(errors.max_ulp, 2 * promised_ulp<T> + between_ranks<T>()) << what << ": " << errors.worst;
    Kokkos::deep_copy(y, T(0));
  };

  // Every other rank has its columns along the slow axis of a matrix that is transposed.
  if (world_rank() % 2 == 0) {
    const Kokkos::View<T**, Kokkos::LayoutLeft, Memory> left("left", 12, own);
    Kokkos::deep_copy(left, x.shard);
    KokkosNN::mpi::softmax(comm, left, y);
  } else {
    const Matrix<T> turned("turned", own, 12), result("result", own, 12);
    transpose(x.shard, turned);
    KokkosNN::mpi::softmax(comm, turned, result, {.axis = 0});
    transpose(result, y);
  }
  check("layouts and axes that differ among ranks");

  // Rows that lie along two axes, on all ranks.
  const Kokkos::View<T***, Kokkos::LayoutRight, Memory> cube(x.shard.data(), 3, 4, own), out(y.data(), 3, 4, own);
  KokkosNN::mpi::softmax(comm, cube, out);
  check("three axes");

  Kokkos::deep_copy(y, x.shard);
  KokkosNN::mpi::softmax(comm, y, y);
  check("in place");
}

TEST(MpiTypes, OfInputAndOutputMayDiffer) {
  const Communicator<Exec> comm(Exec(), MPI_COMM_WORLD);
  Spread<float> x(3, 200, Split::uneven);
  x.fill(Recipe::uniform);
  const Matrix<double> y("y", 3, x.end() - x.begin()), expected("expected", 3, 200);
  KokkosNN::mpi::softmax(comm, x.shard, y);
  KokkosNN::softmax(Exec(), x.whole, expected);
  const auto error    = [](long double a, long double b, std::int64_t) { return probability_error<double>(a, b); };
  const Errors errors = errors_of(y, expected, x.begin(), error);
  EXPECT_LE(errors.max_ulp, 2 * promised_ulp<double> + between_ranks<double>()) << errors.worst;
}

TYPED_TEST(MpiOperators, GradientsAreThoseOfOneRank) {
  using T = TypeParam;
  using A = KokkosNN::accumulator_t<T>;
  using KokkosNN::mpi::log_softmax_backward;
  using KokkosNN::mpi::softmax_backward;
  for (const CommunicatorOptions& with : all_communicators()) {
    const Communicator<Exec> comm(Exec(), MPI_COMM_WORLD, with);
    for (const Split split : all_splits) {
      Spread<T> y(7, 401, split), dy(7, 401, split);
      dy.fill(Recipe::uniform);
      const std::int64_t own = y.end() - y.begin();
      const Matrix<T> expected("expected", 7, 401), dx("dx", 7, own);
      // |dy| <= 4; of a 16-bit type it is the step of the largest term that counts.
      const auto check = [&](const char* name, double largest) {
        const auto ulp = [&](long double value, long double one, std::int64_t) {
          return ulp_error<T>(value, one, 2 * largest);
        };
        const Errors errors = errors_of(dx, expected, y.begin(), ulp);
        EXPECT_LE(errors.max_ulp, 2 * promised_ulp<T>) << name << ": " << errors.worst;
      };

      y.fill(Recipe::uniform);
      KokkosNN::softmax(Exec(), y.whole, y.whole);
      Kokkos::deep_copy(y.host, y.whole);
      y.upload();
      KokkosNN::softmax_backward(Exec(), y.whole, dy.whole, expected, {.scale = 0.5});
      softmax_backward(comm, y.shard, dy.shard, dx, {.scale = 0.5});
      check("softmax_backward", 4 * 0.5 * 0.1);

      y.fill(Recipe::uniform);
      KokkosNN::log_softmax(Exec(), y.whole, y.whole);
      Kokkos::deep_copy(y.host, y.whole);
      y.upload();
      KokkosNN::log_softmax_backward(Exec(), y.whole, dy.whole, expected);
      Kokkos::deep_copy(dx, dy.shard);
      log_softmax_backward(comm, y.shard, dx, dx);
      check("log_softmax_backward in place", 4);

      // Without a word between the ranks: from the whole rows' log-sum-exps.
      Spread<T> x(7, 401, split);
      x.fill(Recipe::uniform);
      const Vector<A> lse("lse", 7), dlse("dlse", 7);
      Kokkos::deep_copy(dlse, A(0.75));
      KokkosNN::mpi::logsumexp(comm, x.shard, lse);
      KokkosNN::mpi::logsumexp_backward(comm, x.shard, lse, dlse, dx);
      KokkosNN::logsumexp(Exec(), x.whole, lse);
      KokkosNN::logsumexp_backward(Exec(), x.whole, lse, dlse, expected);
      check("logsumexp_backward", 0.1);
    }
  }
}

TYPED_TEST(MpiOperators, NoRowsAreNoWork) {
  using T = TypeParam;
  const Communicator<Exec> comm(Exec(), MPI_COMM_WORLD);
  const Matrix<T> none("none", 0, 8);
  const Vector<T> lse("lse", 0);
  Recorder recorder;
  KokkosNN::mpi::softmax(comm, none, none);
  KokkosNN::mpi::logsumexp(comm, none, lse);
  KokkosNN::mpi::softmax_backward(comm, none, none, none);
  EXPECT_TRUE(recorder.kernels.empty());
}

TYPED_TEST(MpiOperators, ASteadyStateAllocatesNothing) {
  using T = TypeParam;
  for (const CommunicatorOptions& with : all_communicators()) {
    const Communicator<Exec> comm(Exec(), MPI_COMM_WORLD, with);
    Spread<T> x(12, 64, Split::even);
    x.fill(Recipe::uniform);
    const Matrix<T> y("y", 12, x.end() - x.begin());
    const auto calls = [&] {
      KokkosNN::mpi::softmax(comm, x.shard, y);
      KokkosNN::mpi::log_softmax_backward(comm, y, x.shard, y);
    };
    calls();
    Recorder recorder;
    calls();
    EXPECT_EQ(recorder.allocations, std::vector<std::string>{});
    EXPECT_EQ(recorder.deallocations, std::vector<std::string>{});
  }
}

TYPED_TEST(MpiOperators, EveryElementIsReadByTwoKernelsThatAreTeamOnline) {
  using T = TypeParam;
  const Communicator<Exec> comm(Exec(), MPI_COMM_WORLD);
  Spread<T> x(4, 256, Split::even);
  x.fill(Recipe::uniform);
  const Matrix<T> y("y", 4, x.end() - x.begin());
  std::vector<std::string> kernels = kernels_of([&] { KokkosNN::mpi::softmax(comm, x.shard, y); });
  ASSERT_EQ(kernels.size(), 3u);
  EXPECT_NE(kernels[0].find("KokkosNN::logsumexp[team_online"), std::string::npos) << kernels[0];
  EXPECT_EQ(kernels[1], "KokkosNN::mpi::softmax[states]");
  EXPECT_NE(kernels[2].find("KokkosNN::softmax[team_online"), std::string::npos) << kernels[2];
}

}  // namespace
}  // namespace KokkosNNTest
