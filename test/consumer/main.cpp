// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/KokkosNN.hpp>

#include <Kokkos_Core.hpp>

#include <cmath>
#include <cstdio>

int main(int argc, char* argv[]) {
  Kokkos::ScopeGuard kokkos(argc, argv);

  const int rows = 2, cols = 3;
  Kokkos::View<float**> x("x", rows, cols), y("y", rows, cols);
  auto x_host = Kokkos::create_mirror_view(x);
  for (int row = 0; row < rows; ++row)
    for (int col = 0; col < cols; ++col) x_host(row, col) = static_cast<float>(row * col);
  Kokkos::deep_copy(x, x_host);

  KokkosNN::softmax(x, y);

  const auto y_host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), y);
  bool right        = true;
  for (int row = 0; row < rows; ++row) {
    float sum = 0;
    for (int col = 0; col < cols; ++col) sum += std::exp(x_host(row, col));
    for (int col = 0; col < cols; ++col)
      right = right && std::abs(y_host(row, col) - std::exp(x_host(row, col)) / sum) < 1e-6f;
  }
  std::printf("KokkosNN %s: softmax is %s\n", KokkosNN::version(), right ? "right" : "wrong");
  return right ? 0 : 1;
}
