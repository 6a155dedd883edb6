// expect: KokkosNN::segmented_logsumexp: values and lse must both have rank 1, or 2 where there are heads
// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/KokkosNN.hpp>

void wrong(Kokkos::View<float**> x, Kokkos::View<int*> offsets, Kokkos::View<float*> lse) {
  KokkosNN::segmented_logsumexp(x, offsets, lse);
}
