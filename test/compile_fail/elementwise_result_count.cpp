// expect: KokkosNN::fused_elementwise: f must return a number, or a Kokkos::Array of one for each output
// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/elementwise.hpp>

void wrong(Kokkos::DefaultExecutionSpace exec, Kokkos::View<float*> x, Kokkos::View<float*> y, Kokkos::View<float*> z) {
  KokkosNN::fused_elementwise(exec, std::tuple(y, z), KOKKOS_LAMBDA(float a) { return a; }, x);
}
