// expect: KokkosNN::logsumexp_backward: lse and dlse must hold the same type
// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/KokkosNN.hpp>

void wrong(Kokkos::View<float**> x, Kokkos::View<float*> lse, Kokkos::View<double*> dlse) {
  KokkosNN::logsumexp_backward(x, lse, dlse, x);
}
