// expect: KokkosNN::log_softmax: x and y must have the same rank
// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/KokkosNN.hpp>

void wrong(Kokkos::View<float**> x, Kokkos::View<float***> y) { KokkosNN::log_softmax(x, y); }
