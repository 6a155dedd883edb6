// expect: KokkosNN::masked_logsumexp: lse must have one axis less than x
// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/KokkosNN.hpp>

void wrong(Kokkos::View<float**> x, Kokkos::View<float**> lse) {
  KokkosNN::masked_logsumexp(x, KokkosNN::CausalMask{}, lse);
}
