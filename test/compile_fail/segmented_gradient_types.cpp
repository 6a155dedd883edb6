// expect: the gradients of ragged rows: y, dy and dx must hold one type
// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/KokkosNN.hpp>

void wrong(Kokkos::View<float*> y, Kokkos::View<double*> dy, Kokkos::View<int*> offsets, Kokkos::View<float*> dx) {
  KokkosNN::segmented_softmax_backward(y, dy, offsets, dx);
}
