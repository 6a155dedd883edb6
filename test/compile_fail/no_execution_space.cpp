// expect: ExecutionSpace
// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/KokkosNN.hpp>

// Something else than an execution space in front.
void wrong(Kokkos::View<float**> x, Kokkos::View<float**> y) { KokkosNN::softmax(0, x, y); }
