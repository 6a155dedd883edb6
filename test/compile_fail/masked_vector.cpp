// expect: KokkosNN::masked_softmax: x must have rank 2 to 8
// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/KokkosNN.hpp>

void wrong(Kokkos::View<float*> x, Kokkos::View<float*> y) { KokkosNN::masked_softmax(x, KokkosNN::CausalMask{}, y); }
