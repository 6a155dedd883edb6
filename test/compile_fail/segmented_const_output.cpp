// expect: KokkosNN::segmented_logsumexp: lse must not be const
// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/KokkosNN.hpp>

void wrong(Kokkos::View<float*> x, Kokkos::View<int*> offsets, Kokkos::View<const float*> lse) {
  KokkosNN::segmented_logsumexp(x, offsets, lse);
}
