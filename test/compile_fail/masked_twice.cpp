// expect: KokkosNN::masks: at most one mask of each kind can be joined
// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/KokkosNN.hpp>

void wrong(Kokkos::View<float**> x, Kokkos::View<float**> y) {
  KokkosNN::masked_softmax(x, KokkosNN::masks(KokkosNN::CausalMask{1}, KokkosNN::CausalMask{2}), y);
}
