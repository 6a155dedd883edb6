// expect: KokkosNN::log_softmax: y must hold double, float, half_t or bhalf_t
// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/KokkosNN.hpp>

void wrong(Kokkos::View<float**> x, Kokkos::View<int**> y) { KokkosNN::log_softmax(x, y); }
