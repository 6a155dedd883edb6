// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "sharded.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

// Norms of columns over ranks against those of whole rows on one rank, which have tests of their own.

namespace KokkosNNTest {
namespace {

using KokkosNN::no_view;

template <class T>
struct MpiNorms : ::testing::Test {};
TYPED_TEST_SUITE(MpiNorms, ElementTypes, ElementNames);

/// Ulp of one norm's promise and of another's, and of what is between ranks.
template <class T>
double both_promises() {
  return 2 * (is_16_bit<T> ? 1 : 8) + between_ranks<T>();
}

template <class T>
auto part_of(const Vector<T>& whole, const Spread<T>& x) {
  return Kokkos::subview(whole, std::pair(x.begin(), x.end()));
}

/// One value a column, from `low` on.
template <class T>
Vector<T> columns(std::int64_t cols, double low) {
  const Vector<T> values("columns", cols);
  const auto host = Kokkos::create_mirror_view(values);
  for (std::int64_t i = 0; i < cols; ++i) host(i) = static_cast<T>(low + static_cast<double>(i % 8) / 8);
  Kokkos::deep_copy(values, host);
  return values;
}

/// Largest error in ulp of numbers that are about `size` large or larger.
template <class T>
auto ulp_of(double size) {
  return [size](long double value, long double one, std::int64_t) { return ulp_error<T>(value, one, size); };
}

/// Both norms and their gradients on one split.
template <class T>
void expect_norms(const Communicator<Exec>& comm, const Spread<T>& x, const Spread<T>& dy, double size) {
  using A                 = KokkosNN::accumulator_t<T>;
  const std::int64_t rows = x.rows, cols = x.cols, own = x.end() - x.begin();
  const auto weight = columns<T>(cols, 0.5), bias = columns<T>(cols, -0.5);
  const auto w = part_of(weight, x), b = part_of(bias, x);
  const Matrix<T> y("y", rows, own), all("all", rows, cols);
  const Vector<A> mean("mean", rows), rstd("rstd", rows), all_mean("all_mean", rows), all_rstd("all_rstd", rows);
  const Vector<T> dweight("dweight", cols), dbias("dbias", cols), all_dweight("all", cols), all_dbias("all", cols);
  const double promise = both_promises<T>();
  const auto check     = [&](const char* name) {
    const Errors errors = errors_of(y, all, x.begin(), ulp_of<T>(size));
    EXPECT_LE(errors.max_ulp, promise) << name << ": " << errors.worst;
    const Errors of_rstd = errors_of(rstd, all_rstd, ulp_of<A>(0));
    EXPECT_LE(of_rstd.max_ulp, 16 + between_ranks<A>()) << name << ": rstd: " << of_rstd.worst;
    EXPECT_TRUE(are_bits_equal_on_all_ranks(rstd)) << name;
    Kokkos::deep_copy(y, T(0));
  };
  /// Gradients of this rank's columns are the local ones, bit for bit.
  const auto check_columns = [&](const Vector<T>& one, const Vector<T>& whole, const char* name) {
    const auto mine = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), one);
    const auto want = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), whole);
    for (std::int64_t i = x.begin(); i < x.end(); ++i) ASSERT_EQ(exact(mine(i)), exact(want(i))) << name << i;
  };

  KokkosNN::rms_norm(Exec(), x.whole, weight, all, all_rstd, {.weight_offset = 1});
  KokkosNN::mpi::rms_norm(comm, x.shard, w, y, rstd, {.weight_offset = 1});
  check("rms_norm");
  KokkosNN::rms_norm_backward(Exec(), x.whole, weight, all_rstd, dy.whole, all, all_dweight);
  KokkosNN::mpi::rms_norm_backward(comm, x.shard, w, all_rstd, dy.shard, y, part_of(dweight, x));
  check("rms_norm_backward");
  check_columns(dweight, all_dweight, "dweight ");

  KokkosNN::layer_norm(Exec(), x.whole, weight, bias, all, all_mean, all_rstd);
  KokkosNN::mpi::layer_norm(comm, x.shard, w, b, y, mean, rstd);
  check("layer_norm");
  const Errors of_mean = errors_of(mean, all_mean, ulp_of<A>(size));
  EXPECT_LE(of_mean.max_ulp, 16 + between_ranks<A>()) << "mean: " << of_mean.worst;
  EXPECT_TRUE(are_bits_equal_on_all_ranks(mean));
  KokkosNN::layer_norm_backward(Exec(), x.whole, weight, all_mean, all_rstd, dy.whole, all, all_dweight, all_dbias);
  KokkosNN::mpi::layer_norm_backward(comm, x.shard, w, all_mean, all_rstd, dy.shard, y, part_of(dweight, x),
                                     part_of(dbias, x));
  check("layer_norm_backward");
  check_columns(dweight, all_dweight, "dweight ");
  check_columns(dbias, all_dbias, "dbias ");
}

TYPED_TEST(MpiNorms, AreTheWholeRowsWhateverTheSplitTheMergeAndTheBlocks) {
  for (const CommunicatorOptions& with : all_communicators()) {
    const Communicator<Exec> comm(Exec(), MPI_COMM_WORLD, with);
    for (const Split split : all_splits) {
      for (const std::int64_t cols : {2, 17, 1003}) {
        Spread<TypeParam> x(7, cols, split), dy(7, cols, split);
        x.fill(Recipe::uniform);
        dy.fill(Recipe::wide);
        expect_norms(comm, x, dy, 16);
      }
    }
  }
}

TEST(MpiLayerNorm, LosesNothingToALargeMeanAndMakesEqualElementsTheBias) {
  const Communicator<Exec> comm(Exec(), MPI_COMM_WORLD, {.deterministic = true});
  for (const Split split : all_splits) {
    Spread<float> x(2, 999, split);
    x.fill(Recipe::uniform);
    for (int col = 0; col < 999; ++col) {
      x.host(0, col) = 1e6f + static_cast<float>(col % 4);
      x.host(1, col) = 1e6f + 0.0625f;
    }
    x.upload();
    const Matrix<float> y("y", 2, x.end() - x.begin()), all("all", 2, 999);
    const auto bias = columns<float>(999, 1);
    KokkosNN::layer_norm(Exec(), x.whole, no_view, bias, all);
    KokkosNN::mpi::layer_norm(comm, x.shard, no_view, part_of(bias, x), y);
    const Errors errors = errors_of(y, all, x.begin(), ulp_of<float>(1));
    EXPECT_LE(errors.max_ulp, 16) << errors.worst;
    const auto mine = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), y);
    const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), bias);
    for (std::int64_t col = x.begin(); col < x.end(); ++col) EXPECT_EQ(mine(1, col - x.begin()), host(col));
  }
}

TYPED_TEST(MpiNorms, TakeNanAndInfinityFromWhicheverRankHasThem) {
  using T = TypeParam;
  const Communicator<Exec> comm(Exec(), MPI_COMM_WORLD);
  for (const Split split : all_splits) {
    Spread<T> x(4, 64, split);
    x.fill(Recipe::uniform);
    x.host(0, 3) = x.host(1, 60) = static_cast<T>(std::nan(""));
    x.host(2, 3)                 = static_cast<T>(std::numeric_limits<double>::infinity());
    x.upload();
    const Matrix<T> rms("rms", 4, x.end() - x.begin()), layer("layer", 4, x.end() - x.begin());
    KokkosNN::mpi::rms_norm(comm, x.shard, no_view, rms);
    KokkosNN::mpi::layer_norm(comm, x.shard, no_view, no_view, layer);
    const auto r = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), rms);
    const auto l = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), layer);
    for (std::int64_t col = x.begin(); col < x.end(); ++col) {
      const std::int64_t i = col - x.begin();
      for (int row = 0; row < 2; ++row) EXPECT_TRUE(std::isnan(exact(r(row, i))) && std::isnan(exact(l(row, i))));
      EXPECT_TRUE(std::isnan(exact(l(2, i))));
      EXPECT_TRUE(col == 3 ? std::isnan(exact(r(2, i))) : exact(r(2, i)) == 0);
      EXPECT_TRUE(std::isfinite(exact(r(3, i))) && std::isfinite(exact(l(3, i))));
    }
  }
}

TYPED_TEST(MpiNorms, RunInPlace) {
  using T = TypeParam;
  for (const CommunicatorOptions& with : all_communicators()) {
    const Communicator<Exec> comm(Exec(), MPI_COMM_WORLD, with);
    Spread<T> x(12, 64, Split::even);
    x.fill(Recipe::uniform);
    const Matrix<T> y("y", 12, x.end() - x.begin());
    KokkosNN::mpi::layer_norm(comm, x.shard, no_view, no_view, y);
    KokkosNN::mpi::layer_norm(comm, x.shard, no_view, no_view, x.shard);
    const Errors errors = errors_of(x.shard, y, 0, ulp_of<T>(1));
    EXPECT_EQ(errors.max_ulp, 0) << errors.worst;
  }
}

TEST(MpiNormErrors, OptionsThatDifferAndBadOnesAreEveryRanksError) {
  const Communicator<Exec> comm(Exec(), MPI_COMM_WORLD);
  const bool is_last = world_rank() == world_size() - 1;
  const Matrix<float> x("x", 4, 8);
  const auto text = [&](double epsilon) -> std::string {
    try {
      KokkosNN::mpi::rms_norm(comm, x, no_view, x, no_view, {.epsilon = epsilon});
    } catch (const std::invalid_argument& e) {
      return e.what();
    }
    return "nothing was thrown";
  };
  const std::string refused = text(is_last ? -1.0 : 1.0);
  EXPECT_NE(refused.find("KokkosNN::mpi::rms_norm: "), std::string::npos) << refused;
  EXPECT_NE(refused.find("epsilon"), std::string::npos) << refused;
  if (world_size() == 1) return;
  const std::string differs = text(is_last ? 0.5 : 1.0);
  EXPECT_NE(differs.find("must agree on epsilon"), std::string::npos) << differs;
}

}  // namespace
}  // namespace KokkosNNTest
