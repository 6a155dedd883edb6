// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/KokkosNN.hpp>

// Kernels that the library does not hold, compiled here with optimisation: what a compiler thinks of them then.

using KokkosNN::Pack;

void converted(const Kokkos::View<const double**>& x, const Kokkos::View<float**>& y) { KokkosNN::softmax(x, y); }

struct Logits {
  using value_type = KokkosNN::half_t;
  Kokkos::View<const value_type**> x;

  template <int N>
  KOKKOS_FUNCTION Pack<value_type, N> load(std::int64_t row, std::int64_t col) const {
    Pack<value_type, N> pack;
    for (int i = 0; i < N; ++i) pack[i] = x(row, col + i);
    return pack;
  }
};

struct Probabilities {
  using value_type = KokkosNN::bhalf_t;
  Kokkos::View<value_type**> y;

  template <int N>
  KOKKOS_FUNCTION void store(const Pack<float, N>& values, std::int64_t row, std::int64_t col) const {
    for (int i = 0; i < N; ++i) y(row, col + i) = static_cast<value_type>(values[i]);
  }
};

void fused(const Logits& logits, const Probabilities& probabilities) {
  KokkosNN::fused_softmax(Kokkos::DefaultExecutionSpace(), 3, 40, logits, probabilities);
}

void gradient(const Kokkos::View<const KokkosNN::bhalf_t**>& y, const Kokkos::View<const KokkosNN::half_t**>& dy,
              const Kokkos::View<float**>& dx) {
  KokkosNN::softmax_backward(y, dy, dx);
}

void gated(const Kokkos::View<const KokkosNN::bhalf_t**>& gate, const Kokkos::View<const float**>& up,
           const Kokkos::View<float**>& y) {
  KokkosNN::geglu(Kokkos::DefaultExecutionSpace(), gate, up, y);
  KokkosNN::fused_elementwise(
      Kokkos::DefaultExecutionSpace(), y, KOKKOS_LAMBDA(float a, float b) { return a < b ? a : b; }, gate, up);
}
