// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/mpi.hpp>

#include <Kokkos_Core.hpp>

#include <mpi.h>

#include <cmath>
#include <cstdio>

// Each rank has three columns of ones: every result is 1 / (3 ranks).
int main(int argc, char* argv[]) {
  MPI_Init(&argc, &argv);
  bool is_right = false;
  {
    Kokkos::ScopeGuard kokkos(argc, argv);
    const Kokkos::View<float**> x("x", 2, 3), y("y", 2, 3);
    Kokkos::deep_copy(x, 1.0f);

    const KokkosNN::mpi::Communicator comm(Kokkos::DefaultExecutionSpace(), MPI_COMM_WORLD);
    KokkosNN::mpi::softmax(comm, x, y);

    const auto y_host    = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), y);
    const float expected = 1.0f / static_cast<float>(3 * comm.size());
    is_right             = std::abs(y_host(1, 2) - expected) < 1e-6f;
    if (comm.rank() == 0) std::printf("softmax over %d ranks is %s\n", comm.size(), is_right ? "right" : "wrong");
  }
  MPI_Finalize();
  return is_right ? 0 : 1;
}
