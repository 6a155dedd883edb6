// expect: KokkosNN::quantized_\*: int8 needs a View of scales
// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/KokkosNN.hpp>

void wrong(Kokkos::View<float**> x, Kokkos::View<std::int8_t**> y) {
  KokkosNN::quantized_softmax(x, y, KokkosNN::no_view);
}
