// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/softmax.hpp>
#include <KokkosNN/version.hpp>

#include <Kokkos_Core.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

// Softmax with the kernels of the level that KOKKOSNN_ISA asks for, in a library of three.

namespace {

/// Sums of double with their terms' own maximum: good to far less than a float's unit.
bool is_right(const Kokkos::View<float**, Kokkos::HostSpace>& x, const Kokkos::View<float**, Kokkos::HostSpace>& y) {
  for (std::size_t row = 0; row < x.extent(0); ++row) {
    double maximum = -INFINITY, sum = 0;
    for (std::size_t col = 0; col < x.extent(1); ++col) maximum = std::fmax(maximum, x(row, col));
    for (std::size_t col = 0; col < x.extent(1); ++col) sum += std::exp(x(row, col) - maximum);
    for (std::size_t col = 0; col < x.extent(1); ++col) {
      const double expected = std::exp(x(row, col) - maximum) / sum;
      if (!(std::abs(y(row, col) - expected) <= 4 * 1.2e-7 * expected)) return false;
    }
  }
  return true;
}

bool softmax_is_right(int rows, int cols) {
  const Kokkos::View<float**> x("x", rows, cols), y("y", rows, cols);
  const auto x_host = Kokkos::create_mirror_view(x);
  for (int row = 0; row < rows; ++row)
    for (int col = 0; col < cols; ++col)
      x_host(row, col) = static_cast<float>((row * 7919 + col * 104729) % 2003) / 100.0f - 10.0f;
  Kokkos::deep_copy(x, x_host);
  KokkosNN::softmax(x, y);
  return is_right(x_host, Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), y));
}

/// The level that ran is the one that the environment asks for, if it is one of the library's.
bool is_followed(const std::string& level, const std::string& levels) {
  const char* asked = std::getenv("KOKKOSNN_ISA");
  return asked == nullptr || ("," + levels + ",").find("," + std::string(asked) + ",") == std::string::npos ||
         level == asked;
}

}  // namespace

int main(int argc, char* argv[]) {
  const KokkosNN::Configuration built = KokkosNN::configuration();
  std::printf("%s\n", to_string(built).c_str());
  bool right = built.cpu_levels == LEVELS && !built.cpu_level.empty();

  Kokkos::ScopeGuard kokkos(argc, argv);
  const int extents[][2] = {{5, 3}, {1000, 17}, {37, 1000}, {3, 100003}, {1, 1000000}};
  for (const auto& e : extents) right = softmax_is_right(e[0], e[1]) && right;
  std::printf("softmax is %s\n", right ? "right" : "wrong");
  if (!is_followed(built.cpu_level, built.cpu_levels)) std::printf("SKIPPED: the CPU does not have the level\n");
  return right ? 0 : 1;
}
