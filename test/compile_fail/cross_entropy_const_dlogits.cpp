// expect: KokkosNN::cross_entropy_backward: dlogits must not be const
// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/KokkosNN.hpp>

void wrong(Kokkos::View<const float**> logits, Kokkos::View<int*> labels, Kokkos::View<float*> lse) {
  KokkosNN::cross_entropy_backward(logits, labels, lse, lse, logits, {.reduction = KokkosNN::Reduction::none});
}
