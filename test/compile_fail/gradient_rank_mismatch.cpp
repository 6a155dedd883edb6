// expect: KokkosNN::softmax_backward: y, dy and dx must have the same rank
// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/KokkosNN.hpp>

void wrong(Kokkos::View<float**> y, Kokkos::View<float*> dy, Kokkos::View<float**> dx) {
  KokkosNN::softmax_backward(y, dy, dx);
}
