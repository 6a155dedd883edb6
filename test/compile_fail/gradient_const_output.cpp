// expect: KokkosNN::log_softmax_backward: dx must not be const
// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/KokkosNN.hpp>

void wrong(Kokkos::View<float**> y, Kokkos::View<const float**> dx) { KokkosNN::log_softmax_backward(y, y, dx); }
