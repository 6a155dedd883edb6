// expect: KokkosNN::cross_entropy: loss must have rank 0 or one axis less than logits
// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/KokkosNN.hpp>

void wrong(Kokkos::View<float***> logits, Kokkos::View<int**> labels, Kokkos::View<float*> loss) {
  KokkosNN::cross_entropy(logits, labels, loss);
}
