// expect: KokkosNN::logsumexp: lse must not be const
// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/KokkosNN.hpp>

void wrong(Kokkos::View<float**> x, Kokkos::View<const float*> lse) { KokkosNN::logsumexp(x, lse); }
