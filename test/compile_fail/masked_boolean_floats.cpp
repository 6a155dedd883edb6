// expect: KokkosNN::BooleanMask: the View must hold bool or integers of one byte
// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/KokkosNN.hpp>

void wrong(Kokkos::View<float**> x, Kokkos::View<float**> mask, Kokkos::View<float**> y) {
  KokkosNN::masked_softmax(x, KokkosNN::BooleanMask{mask}, y);
}
