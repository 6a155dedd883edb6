// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support.hpp"

#include <KokkosNN/mpi.hpp>

#include <mpi.h>

// Cross entropy with its gradient where each MPI rank has a part of the vocabulary's columns; run by any number of
// ranks. Nobody gathers the logits: ranks exchange 32 bytes a row.
//
//   full = all_gather(logits, dim=-1)                       # (rows, all classes)
//   loss = F.cross_entropy(full, labels)
//   loss.backward()                                         # this rank's columns of full.grad

namespace {

constexpr int rows = 20;
using Exec         = Kokkos::DefaultExecutionSpace;

/// Rank r has 100 + 10 r classes: any split will do.
int columns_of(int rank) { return 100 + 10 * rank; }

double logit(int row, std::int64_t column) { return Examples::number(row * 100000 + column); }

int run() {
  const KokkosNN::mpi::Communicator comm(Exec(), MPI_COMM_WORLD);
  const int columns  = columns_of(comm.rank());
  const auto classes = comm.classes(columns);  // first: the first of this rank's, all: of all ranks

  const Kokkos::View<float**> logits("logits", rows, columns), dlogits("dlogits", rows, columns);
  const Kokkos::View<std::int64_t*> labels("labels", rows);
  const Kokkos::View<float> loss("loss");
  const auto x     = Kokkos::create_mirror_view(logits);
  const auto label = Kokkos::create_mirror_view(labels);
  for (int i = 0; i < rows; ++i) {
    label(i) = (i * 53) % classes.all;  // the same on every rank
    for (int j = 0; j < columns; ++j) x(i, j) = static_cast<float>(logit(i, classes.first + j));
  }
  Kokkos::deep_copy(logits, x);
  Kokkos::deep_copy(labels, label);

  KokkosNN::mpi::cross_entropy_with_gradient(comm, logits, classes, labels, loss, dlogits);
  Exec().fence();

  Examples::Check check(1e-5);
  const auto gradient = Examples::on_host(dlogits);
  double expected     = 0;
  for (int i = 0; i < rows; ++i) {
    double sum = 0;
    for (std::int64_t j = 0; j < classes.all; ++j) sum += std::exp(logit(i, j));
    expected += (std::log(sum) - logit(i, label(i))) / rows;
    for (int j = 0; j < columns; ++j) {
      const bool is_label = classes.first + j == label(i);
      check.expect_near(gradient(i, j), (std::exp(logit(i, classes.first + j)) / sum - (is_label ? 1 : 0)) / rows);
    }
  }
  check.expect_near(Examples::on_host(loss)(), expected);
  return check.status("vocabulary_over_ranks");
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int status = 1;
  {
    const Kokkos::ScopeGuard kokkos(argc, argv);
    status = run();
  }
  MPI_Finalize();
  return status;
}
