// expect: KokkosNN::segmented_log_softmax: row_offsets must hold integers
// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/KokkosNN.hpp>

void wrong(Kokkos::View<float*> x, Kokkos::View<float*> offsets, Kokkos::View<float*> y) {
  KokkosNN::segmented_log_softmax(x, offsets, y);
}
