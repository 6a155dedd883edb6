// expect: KokkosNN::masked_softmax_backward: x, y, dy and dx must have the same rank, 2 to 8
// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/KokkosNN.hpp>

void wrong(Kokkos::View<float**> y, Kokkos::View<float***> dy, Kokkos::View<float**> dx) {
  KokkosNN::masked_softmax_backward(y, y, dy, KokkosNN::CausalMask{}, dx);
}
