// expect: KokkosNN elementwise operators: an output must not be const
// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/elementwise.hpp>

void wrong(Kokkos::DefaultExecutionSpace exec, Kokkos::View<float**> x, Kokkos::View<const float**> y) {
  KokkosNN::silu(exec, x, y);
}
