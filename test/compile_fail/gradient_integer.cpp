// expect: KokkosNN::softmax_backward: all Views must hold double, float, half_t or bhalf_t
// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/KokkosNN.hpp>

void wrong(Kokkos::View<float**> y, Kokkos::View<int**> dy) { KokkosNN::softmax_backward(y, dy, y); }
