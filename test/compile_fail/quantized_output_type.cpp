// expect: KokkosNN::quantized_\*: y must hold std::int8_t or float8_e4m3
// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/KokkosNN.hpp>

void wrong(Kokkos::View<float**> x, Kokkos::View<float**> y, Kokkos::View<float*> scales) {
  KokkosNN::quantized_rms_norm(x, KokkosNN::no_view, y, scales);
}
