// expect: KokkosNN::RowLengths: the View must hold signed integers of 32 or 64 bits
// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/KokkosNN.hpp>

void wrong(Kokkos::View<float***> x, Kokkos::View<unsigned short*> lengths, Kokkos::View<float***> y) {
  KokkosNN::masked_softmax(x, KokkosNN::RowLengths{lengths}, y);
}
