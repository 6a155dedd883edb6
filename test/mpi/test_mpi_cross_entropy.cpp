// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "sharded.hpp"

#include <cmath>
#include <limits>

// Classes over ranks against one rank's cross entropy.

namespace KokkosNNTest {
namespace {

using KokkosNN::CrossEntropyOptions;
using KokkosNN::Reduction;

template <class T>
struct MpiCrossEntropy : ::testing::Test {};
TYPED_TEST_SUITE(MpiCrossEntropy, ElementTypes, ElementNames);

template <class T>
using Scalar = Kokkos::View<T, Memory>;

/// Logits, labels and weights; every class of a few is some row's label, and so every rank's.
template <class T>
struct Batch {
  using A = KokkosNN::accumulator_t<T>;

  Spread<T> logits;
  Vector<int> labels;
  Vector<A> weights;

  Batch(std::int64_t rows, std::int64_t classes, Split split)
      : logits(rows, classes, split), labels("labels", rows), weights("weights", classes) {
    logits.fill(Recipe::uniform);
    const auto host_labels  = Kokkos::create_mirror(labels);
    const auto host_weights = Kokkos::create_mirror(weights);
    for (std::int64_t row = 0; row < rows; ++row) host_labels(row) = static_cast<int>(row * 37 % classes);
    for (std::int64_t c = 0; c < classes; ++c) host_weights(c) = A(0.5 + 0.25 * static_cast<double>(c % 7));
    Kokkos::deep_copy(labels, host_labels);
    Kokkos::deep_copy(weights, host_weights);
  }

  void set_label(std::int64_t row, int label) { Kokkos::deep_copy(Kokkos::subview(labels, row), label); }
};

/// Loss, log-sum-exps and gradient of a batch, from one rank's function and from all ranks', in both ways.
template <class T>
class Comparison {
  using A = KokkosNN::accumulator_t<T>;

 public:
  Comparison(const Communicator<Exec>& comm, const Batch<T>& batch, const CrossEntropyOptions& options)
      : m_comm(comm), m_batch(batch), m_options(options), m_classes(comm.classes(own())) {}

  template <class Weights>
  void run(const Weights& weights) {
    if (m_options.reduction == Reduction::none) {
      run_with(weights, Vector<A>("one", rows()), Vector<A>("loss", rows()), Vector<A>("dloss", rows()));
    } else {
      run_with(weights, Scalar<A>("one"), Scalar<A>("loss"), Scalar<A>("dloss"));
    }
  }

 private:
  std::int64_t rows() const { return m_batch.logits.rows; }
  std::int64_t own() const { return m_batch.logits.end() - m_batch.logits.begin(); }

  template <class Weights, class Loss>
  void run_with(const Weights& weights, const Loss& one, const Loss& loss, const Loss& dloss) {
    const Vector<A> one_lse("one_lse", rows()), lse("lse", rows());
    const Matrix<T> one_dx("one_dx", rows(), m_batch.logits.cols), dx("dx", rows(), own());
    Kokkos::deep_copy(dloss, A(m_options.gradient_scale));
    KokkosNN::cross_entropy(Exec(), m_batch.logits.whole, m_batch.labels, one, m_options, one_lse, weights);
    auto backward           = m_options;
    backward.gradient_scale = 1;
    KokkosNN::cross_entropy_backward(Exec(), m_batch.logits.whole, m_batch.labels, one_lse, dloss, one_dx, backward,
                                     weights);

    const auto& x = m_batch.logits.shard;
    KokkosNN::mpi::cross_entropy(m_comm, x, m_classes, m_batch.labels, loss, m_options, lse, weights);
    expect_losses(loss, one);
    expect_lses(lse, one_lse);
    KokkosNN::mpi::cross_entropy_backward(m_comm, x, m_classes, m_batch.labels, lse, dloss, dx, backward, weights);
    expect_gradient(dx, one_dx, "backward");

    // In place, and without a View for the log-sum-exps.
    Kokkos::deep_copy(dx, x);
    Kokkos::deep_copy(loss, A(7));
    KokkosNN::mpi::cross_entropy_with_gradient(m_comm, dx, m_classes, m_batch.labels, loss, dx, m_options,
                                               KokkosNN::no_view, weights);
    expect_losses(loss, one);
    expect_gradient(dx, one_dx, "with_gradient");
  }

  /// Terms are up to the largest log-sum-exp, and a z-loss's its square; twice 8 ulp, as both may be off.
  static constexpr double largest_term = 16, allowed = 16;

  template <class Loss>
  void expect_losses(const Loss& loss, const Loss& one) const {
    const std::int64_t n = static_cast<std::int64_t>(loss.size());
    const double terms =
        m_options.reduction == Reduction::sum ? largest_term * static_cast<double>(rows()) : largest_term;
    const auto error    = [&](long double a, long double b, std::int64_t) { return ulp_error<A>(a, b, terms); };
    const Errors errors = errors_of(Vector<A>(loss.data(), n), Vector<A>(one.data(), n), error);
    EXPECT_LE(errors.max_ulp, allowed + between_ranks<T>()) << "loss, " << errors.worst;
    EXPECT_TRUE(are_bits_equal_on_all_ranks(Vector<A>(loss.data(), n)));
  }

  void expect_lses(const Vector<A>& lse, const Vector<A>& one) const {
    const auto error    = [](long double a, long double b, std::int64_t) { return ulp_error<A>(a, b, largest_term); };
    const Errors errors = errors_of(lse, one, error);
    EXPECT_LE(errors.max_ulp, allowed + between_ranks<T>()) << "lse, " << errors.worst;
  }

  void expect_gradient(const Matrix<T>& dx, const Matrix<T>& one, const char* way) const {
    const double divisor = m_options.reduction == Reduction::mean ? static_cast<double>(rows()) : 1;
    // The magnitude: p up to 1 times weights up to 2; errors of the log-sum-exps, above, are errors of p.
    const double magnitude = 4 * std::abs(m_options.gradient_scale) / divisor;
    const auto error       = [&](long double a, long double b, std::int64_t) { return ulp_error<T>(a, b, magnitude); };
    const Errors errors    = errors_of(dx, one, m_batch.logits.begin(), error);
    EXPECT_LE(errors.max_ulp, (is_16_bit<T> ? 2 : allowed) + between_ranks<T>()) << way << ", " << errors.worst;
  }

  const Communicator<Exec>& m_comm;
  const Batch<T>& m_batch;
  CrossEntropyOptions m_options;
  KokkosNN::mpi::ClassRange m_classes;
};

template <class T>
void compare(const Communicator<Exec>& comm, const Batch<T>& batch, const CrossEntropyOptions& options) {
  Comparison<T>(comm, batch, options).run(KokkosNN::no_view);
}

TYPED_TEST(MpiCrossEntropy, IsThatOfOneRankWhateverTheSplitTheMergeAndTheReduction) {
  for (const CommunicatorOptions& with : all_communicators()) {
    const Communicator<Exec> comm(Exec(), MPI_COMM_WORLD, with);
    for (const Split split : all_splits) {
      const Batch<TypeParam> batch(11, 401, split);
      compare(comm, batch, {.reduction = Reduction::none});
      compare(comm, batch, {.reduction = Reduction::mean, .gradient_scale = 0.5});
      compare(comm, batch, {.reduction = Reduction::sum});
    }
  }
}

TYPED_TEST(MpiCrossEntropy, HasAllOptionsOfOneRanks) {
  const Communicator<Exec> comm(Exec(), MPI_COMM_WORLD, {.block_rows = 4});
  for (const Split split : {Split::uneven, Split::some_empty}) {
    Batch<TypeParam> batch(11, 401, split);
    batch.set_label(2, -100);  // ignored
    for (const CrossEntropyOptions& options :
         {CrossEntropyOptions{.label_smoothing = 0.1}, CrossEntropyOptions{.z_loss = 1e-2},
          CrossEntropyOptions{.z_loss = 1e-2, .weighted_z_loss = false}, CrossEntropyOptions{.softcap = 3},
          CrossEntropyOptions{.reduction = Reduction::none, .label_smoothing = 0.2, .z_loss = 1e-2, .softcap = 5}}) {
      compare(comm, batch, options);
      Comparison<TypeParam>(comm, batch, options).run(batch.weights);
    }
  }
}

TYPED_TEST(MpiCrossEntropy, LabelsThatAreNoClassGiveNanOrAnErrorOnAllRanks) {
  const Communicator<Exec> comm(Exec(), MPI_COMM_WORLD);
  Batch<TypeParam> batch(6, 40, Split::uneven);
  batch.set_label(1, 40);
  batch.set_label(4, -1);
  compare(comm, batch, {.reduction = Reduction::none});
  const Scalar<KokkosNN::accumulator_t<TypeParam>> loss("loss");
  const auto classes = comm.classes(batch.logits.end() - batch.logits.begin());
  EXPECT_THROW(
      KokkosNN::mpi::cross_entropy(comm, batch.logits.shard, classes, batch.labels, loss, {.check_labels = true}),
      std::invalid_argument);
}

TEST(MpiCrossEntropyLabels, BeyondTheRangeOfSignedNumbersAreNeitherIgnoredNorClasses) {
  const Communicator<Exec> comm(Exec(), MPI_COMM_WORLD);
  const Batch<float> batch(4, 40, Split::uneven);
  const Kokkos::View<std::uint64_t*, Memory> labels("labels", 4);
  Kokkos::deep_copy(labels, 7);
  Kokkos::deep_copy(Kokkos::subview(labels, 1), ~std::uint64_t(99));  // the bits of -100
  const Vector<float> loss("loss", 4), lse("lse", 4);
  const Matrix<float> dx("dx", 4, batch.logits.end() - batch.logits.begin());
  const auto classes = comm.classes(batch.logits.end() - batch.logits.begin());

  KokkosNN::mpi::cross_entropy_with_gradient(comm, batch.logits.shard, classes, labels, loss, dx,
                                             {.reduction = Reduction::none}, lse);

  const auto losses   = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), loss);
  const auto gradient = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), dx);
  for (int row = 0; row < 4; ++row) {
    EXPECT_EQ(std::isnan(losses(row)), row == 1) << losses(row);
    for (std::size_t c = 0; c < dx.extent(1); ++c) EXPECT_EQ(std::isnan(gradient(row, c)), row == 1) << c;
  }
  EXPECT_THROW(KokkosNN::mpi::cross_entropy(comm, batch.logits.shard, classes, labels, loss,
                                            {.reduction = Reduction::none, .check_labels = true}),
               std::invalid_argument);
}

TYPED_TEST(MpiCrossEntropy, ALogSumExpWithPlusInfinityIsThatUnlessAnyRankHasANaN) {
  const float infinity = std::numeric_limits<float>::infinity();
  const Communicator<Exec> comm(Exec(), MPI_COMM_WORLD);
  for (const Split split : all_splits) {
    Batch<TypeParam> batch(4, 40, split);
    for (int row = 0; row < 3; ++row) batch.logits.host(row, row == 1 ? 39 : 0) = static_cast<TypeParam>(infinity);
    batch.logits.host(2, 39) = static_cast<TypeParam>(std::nan(""));
    batch.logits.upload();
    compare(comm, batch, {.reduction = Reduction::none});
    compare(comm, batch, {.reduction = Reduction::none, .label_smoothing = 0.1});
    using A = KokkosNN::accumulator_t<TypeParam>;
    const Vector<A> loss("loss", 4), lse("lse", 4);
    KokkosNN::mpi::cross_entropy(comm, batch.logits.shard, comm.classes(batch.logits.end() - batch.logits.begin()),
                                 batch.labels, loss, {.reduction = Reduction::none}, lse);
    const auto result = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), lse);
    const auto losses = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), loss);
    for (int row = 0; row < 3; ++row) {
      EXPECT_TRUE(row < 2 ? result(row) == infinity : std::isnan(result(row))) << result(row) << " of row " << row;
      EXPECT_TRUE(std::isnan(losses(row))) << losses(row);
    }
  }
}

TYPED_TEST(MpiCrossEntropy, NanAndInfinitiesMatterWhicheverRankHasThem) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Communicator<Exec> comm(Exec(), MPI_COMM_WORLD);
  for (const Split split : all_splits) {
    Batch<TypeParam> batch(5, 40, split);
    const auto put = [&](std::int64_t row, std::int64_t col, double value) {
      batch.logits.host(row, col) = static_cast<TypeParam>(value);
    };
    put(0, 39, std::nan(""));
    put(1, 0, infinity);
    put(2, 2 * 37 % 40, -infinity);  // the label's: its loss is infinite
    for (int col = 0; col < 40; ++col) put(3, col, -infinity);
    for (int col = 0; col < 20; ++col) put(4, col, -infinity);
    batch.logits.upload();
    compare(comm, batch, {.reduction = Reduction::none});
  }
}

TEST(MpiCrossEntropyClasses, AreNumberedInTheOrderOfTheRanks) {
  const Communicator<Exec> comm(Exec(), MPI_COMM_WORLD);
  const auto classes = comm.classes(10 + world_rank());
  const int rank = world_rank(), size = world_size();
  EXPECT_EQ(classes.first, 10 * rank + rank * (rank - 1) / 2);
  EXPECT_EQ(classes.all, 10 * size + size * (size - 1) / 2);
}

}  // namespace
}  // namespace KokkosNNTest
