// expect: KokkosNN elementwise operators: inputs must hold double, float, half_t or bhalf_t
// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/elementwise.hpp>

void wrong(Kokkos::DefaultExecutionSpace exec, Kokkos::View<int**> x, Kokkos::View<float**> y) {
  KokkosNN::cast(exec, x, y);
}
