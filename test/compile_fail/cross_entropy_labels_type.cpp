// expect: KokkosNN::cross_entropy_with_gradient: labels must hold integers
// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/KokkosNN.hpp>

void wrong(Kokkos::View<float**> logits, Kokkos::View<float*> labels, Kokkos::View<float> loss) {
  KokkosNN::cross_entropy_with_gradient(logits, labels, loss, logits);
}
