// expect: the gradients of ragged rows: dy must have the rank of y
// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/KokkosNN.hpp>

void wrong(Kokkos::View<float**> y, Kokkos::View<float*> dy, Kokkos::View<int*> offsets, Kokkos::View<float**> dx) {
  KokkosNN::segmented_softmax_backward(y, dy, offsets, dx);
}
