// expect: KokkosNN::AdditiveBias: the View must hold x's type or float
// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/KokkosNN.hpp>

void wrong(Kokkos::View<float**> x, Kokkos::View<double**> bias, Kokkos::View<float**> y) {
  KokkosNN::masked_softmax(x, KokkosNN::AdditiveBias{bias}, y);
}
