// expect: KokkosNN::softmax: the execution space must be able to access the memory of x and of y
// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/KokkosNN.hpp>

// Every backend but a GPU's can access all the memory there is: there, one that nobody can access.
#if defined(KOKKOS_ENABLE_CUDA) || defined(KOKKOS_ENABLE_HIP)
using Memory = Kokkos::DefaultExecutionSpace::memory_space;
#else
struct Memory : Kokkos::HostSpace {
  using memory_space = Memory;
};

template <>
struct Kokkos::SpaceAccessibility<Kokkos::DefaultHostExecutionSpace, Memory> {
  enum { accessible = false, assignable = false, deepcopy = false };
};
#endif

void wrong(Kokkos::View<float**, Memory> x, Kokkos::View<float**, Memory> y) {
  KokkosNN::softmax(Kokkos::DefaultHostExecutionSpace(), x, y);
}
