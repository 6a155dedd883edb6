// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <Kokkos_Core.hpp>

#include <gtest/gtest.h>

#include <mpi.h>

#include <cstdio>
#include <cstdlib>

// Every rank runs every test. A rank prints what fails on it; rank 0 prints the rest.
int main(int argc, char* argv[]) {
  setenv("KOKKOSNN_TUNING_FILE", "", 1);  // plans are to be the library's own, whoever has tuned this machine
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  ::testing::InitGoogleTest(&argc, argv);
  int rank = 0, size = 0, result = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  {
    Kokkos::ScopeGuard kokkos(argc, argv);
    if (rank == 0) std::printf("%d ranks, backend %s\n", size, Kokkos::DefaultExecutionSpace::name());
    std::fflush(stdout);
    result = RUN_ALL_TESTS();
  }
  MPI_Finalize();
  return result;
}
