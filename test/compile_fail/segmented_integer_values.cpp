// expect: KokkosNN::segmented_softmax: values and y must hold double, float, half_t or bhalf_t
// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/KokkosNN.hpp>

void wrong(Kokkos::View<int*> x, Kokkos::View<int*> offsets, Kokkos::View<float*> y) {
  KokkosNN::segmented_softmax(x, offsets, y);
}
