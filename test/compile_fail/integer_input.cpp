// expect: KokkosNN::softmax: x must hold double, float, half_t or bhalf_t
// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/KokkosNN.hpp>

void wrong(Kokkos::View<int**> x, Kokkos::View<float**> y) { KokkosNN::softmax(x, y); }
