// expect: KokkosNN::logsumexp_backward: dx must have the rank of x, lse and dlse one axis less
// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/KokkosNN.hpp>

void wrong(Kokkos::View<float**> x, Kokkos::View<float**> lse) { KokkosNN::logsumexp_backward(x, lse, lse, x); }
