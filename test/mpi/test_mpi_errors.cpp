// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "sharded.hpp"

#include <KokkosNN/online.hpp>

#include <functional>
#include <stdexcept>
#include <string>

// Errors of ranks that disagree or whose MPI fails, and equal bits. The executable's own MPI_Allreduce counts, and
// fails if asked to; MPI's profiling interface is made for that.

namespace {

int allreduces            = 0;
bool is_allreduce_failing = false;

}  // namespace

extern "C" int MPI_Allreduce(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  ++allreduces;
  if (is_allreduce_failing) return MPI_ERR_INTERN;
  return PMPI_Allreduce(from, to, count, type, op, comm);
}

namespace KokkosNNTest {
namespace {

/// The text of the std::invalid_argument or std::runtime_error that a call must throw.
template <class Exception>
std::string text_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Exception& e) {
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown on rank " << world_rank();
  return {};
}

::testing::AssertionResult has(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "\"" << part << "\" is not in \"" << text << "\"";
}

int last_rank() { return world_size() - 1; }

/// A call that is right.
void expect_sound(const Communicator<Exec>& comm) {
  Spread<float> x(4, 32, Split::even);
  x.fill(Recipe::uniform);
  const Vector<float> lse("lse", 4), one("one", 4);
  KokkosNN::mpi::logsumexp(comm, x.shard, lse);
  KokkosNN::logsumexp(Exec(), x.whole, one);
  const auto error = [](long double a, long double b, std::int64_t) { return ulp_error<float>(a, b, 1); };
  EXPECT_LE(errors_of(lse, one, error).max_ulp, 8);
}

TEST(MpiErrors, OneRanksBadArgumentIsEveryRanksError) {
  const Communicator<Exec> comm(Exec(), MPI_COMM_WORLD);
  const Matrix<float> x("x", 4, 8), y("y", 4, 8);
  Kokkos::deep_copy(y, 3.0f);
  const std::string text = text_of<std::invalid_argument>(
      [&] { KokkosNN::mpi::softmax(comm, x, y, {.scale = world_rank() == last_rank() ? 0.0 : 1.0}); });
  EXPECT_TRUE(has(text, "KokkosNN::mpi::softmax: |scale| must be within"));
  if (world_rank() != last_rank()) {
    EXPECT_TRUE(has(text, "rank " + std::to_string(last_rank()) + " cannot do this call"));
  }
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), y);
  EXPECT_EQ(host(0, 0), 3.0f) << "something was written";
  expect_sound(comm);
}

TEST(MpiErrors, RowsAndOptionsThatDifferAreFoundOnEveryRank) {
  if (world_size() == 1) GTEST_SKIP() << "one rank agrees with itself";
  const Communicator<Exec> comm(Exec(), MPI_COMM_WORLD);
  const bool is_last = world_rank() == last_rank();
  const Matrix<float> x("x", 5, 8), y("y", 5, 8);
  const auto rows = std::pair(0, is_last ? 4 : 5);
  const auto part = Kokkos::subview(x, rows, Kokkos::ALL), out = Kokkos::subview(y, rows, Kokkos::ALL);
  EXPECT_TRUE(has(text_of<std::invalid_argument>([&] { KokkosNN::mpi::softmax(comm, part, out); }),
                  "KokkosNN::mpi::softmax: all ranks must agree on the number of rows, which is " +
                      std::to_string(is_last ? 4 : 5) + " on rank " + std::to_string(world_rank()) +
                      " and from 4 to 5 on all"));
  EXPECT_TRUE(
      has(text_of<std::invalid_argument>([&] { KokkosNN::mpi::softmax(comm, x, y, {.scale = is_last ? 0.5 : 1.0}); }),
          "must agree on scale"));
  EXPECT_TRUE(has(text_of<std::invalid_argument>([&] {
                    if (is_last) {
                      KokkosNN::mpi::softmax(comm, x, y);
                    } else {
                      KokkosNN::mpi::log_softmax(comm, x, y);
                    }
                  }),
                  "must agree on the operator"));

  const Vector<int> labels("labels", 5);
  const Kokkos::View<float, Memory> loss("loss");
  const auto classes = comm.classes(8);
  EXPECT_TRUE(has(text_of<std::invalid_argument>([&] {
                    KokkosNN::mpi::cross_entropy(comm, x, classes, labels, loss, {.z_loss = is_last ? 0.5 : 1.0});
                  }),
                  "must agree on z_loss"));
  EXPECT_TRUE(has(
      text_of<std::invalid_argument>([&] { Communicator<Exec>(Exec(), MPI_COMM_WORLD, {.deterministic = is_last}); }),
      "must agree on the communicator's deterministic"));
  expect_sound(comm);
}

TEST(MpiErrors, ClassesThatTheLogitsCannotBeAndForcedPlansAreRefused) {
  const Communicator<Exec> comm(Exec(), MPI_COMM_WORLD);
  const Matrix<float> x("x", 5, 8);
  const Vector<int> labels("labels", 5);
  const Kokkos::View<float, Memory> loss("loss");
  EXPECT_TRUE(has(text_of<std::invalid_argument>(
                      [&] { KokkosNN::mpi::cross_entropy(comm, x, {.first = 30, .all = 32}, labels, loss); }),
                  "KokkosNN::mpi::cross_entropy: logits have the columns of 8 classes from number 30 on, but there are "
                  "only 32"));
  EXPECT_TRUE(has(text_of<std::invalid_argument>(
                      [&] { KokkosNN::mpi::softmax(comm, x, x, {.plan = {.strategy = RowStrategy::team_registers}}); }),
                  "options.plan must be left alone"));
  EXPECT_TRUE(
      has(text_of<std::invalid_argument>([] { Communicator<Exec>(Exec(), MPI_COMM_WORLD, {.block_rows = -1}); }),
          "block_rows must not be negative, but is -1"));
  EXPECT_TRUE(has(text_of<std::invalid_argument>([] { Communicator<Exec>(Exec(), MPI_COMM_NULL); }), "MPI_COMM_NULL"));
}

TEST(MpiErrors, AFailureOfMpiIsAnExceptionWithItsTextNowAndFromThenOn) {
  char mpi_text[MPI_MAX_ERROR_STRING] = {};
  int length                          = 0;
  MPI_Error_string(MPI_ERR_INTERN, mpi_text, &length);

  const Communicator<Exec> comm(Exec(), MPI_COMM_WORLD, {.check = false, .transport = Transport::staged});
  const Matrix<float> x("x", 5, 8);
  is_allreduce_failing = true;
  const auto call      = [&] { KokkosNN::mpi::softmax(comm, x, x); };
  const auto text      = text_of<std::runtime_error>(call);
  is_allreduce_failing = false;
  EXPECT_TRUE(has(text, "KokkosNN::mpi::softmax: MPI_Allreduce failed on rank " + std::to_string(world_rank()) + ": " +
                            std::string(mpi_text, length)));
  EXPECT_TRUE(has(text_of<std::runtime_error>(call), "an earlier call on this communicator has failed"));
  expect_sound(Communicator<Exec>(Exec(), MPI_COMM_WORLD));
}

TEST(MpiErrors, ACallIsOneReductionABlockAndOneMoreToCheck) {
  const Matrix<float> x("x", 12, 8);
  const Vector<float> lse("lse", 12);
  const auto reductions = [&](const CommunicatorOptions& options) {
    const Communicator<Exec> comm(Exec(), MPI_COMM_WORLD, options);
    allreduces = 0;
    KokkosNN::mpi::logsumexp(comm, x, lse);
    return allreduces;
  };
  EXPECT_EQ(reductions({.check = false, .transport = Transport::staged, .block_rows = 12}), 1);
  EXPECT_EQ(reductions({.check = false, .transport = Transport::staged, .block_rows = 5}), 3);
  EXPECT_EQ(reductions({.check = true, .transport = Transport::staged, .block_rows = 12}), 2);
  EXPECT_EQ(reductions({.deterministic = true, .check = false, .transport = Transport::staged}), 0)
      << "its order would be MPI's";
}

TEST(MpiDeterminism, PairsAreMergedInTheOrderThatTheNumberOfRanksSets) {
  constexpr int n = 50;
  const Communicator<Exec> comm(Exec(), MPI_COMM_WORLD, {.deterministic = true, .transport = Transport::staged});
  auto* pairs         = comm.pairs(n);
  const auto of_ranks = [](int i) { return [i](int rank) { return pair_of_rank(rank, i); }; };
  for (int turn = 0; turn < 3; ++turn) {
    for (int i = 0; i < n; ++i) pairs[i] = pair_of_rank(world_rank(), i);
    const auto merged = comm.states().exchanged("the test", pairs, n);
    for (int i = 0; i < n; ++i) {
      const auto expected = merged_in_order(world_size(), of_ranks(i)), pair = merged.merged(i);
      EXPECT_EQ(pair.max, expected.max);
      EXPECT_EQ(pair.sum, expected.sum) << "pair " << i;
    }
  }
}

TEST(MpiDeterminism, BitsDoNotDependOnTheBlocksAndOnAHostNotOnTheTransport) {
  Spread<double> x(23, 301, Split::uneven);
  x.fill(Recipe::wide);
  std::vector<double> first;
  for (const Transport transport : {Transport::staged, Transport::automatic}) {
    if (on_gpu) first.clear();  // exponentials of a device that merges are not those of a host
    for (const std::int64_t block_rows : {0, 1, 5, 23}) {
      const Communicator<Exec> comm(Exec(), MPI_COMM_WORLD,
                                    {.deterministic = true, .transport = transport, .block_rows = block_rows});
      const Vector<double> lse("lse", 23);
      KokkosNN::mpi::logsumexp(comm, x.shard, lse);
      const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), lse);
      const std::vector<double> values(host.data(), host.data() + 23);
      if (first.empty()) first = values;
      EXPECT_EQ(values, first);
      EXPECT_TRUE(are_bits_equal_on_all_ranks(lse));
    }
  }
}

}  // namespace
}  // namespace KokkosNNTest
