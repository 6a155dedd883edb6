// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_EXAMPLES_SUPPORT_HPP
#define KOKKOSNN_EXAMPLES_SUPPORT_HPP

#include <Kokkos_Core.hpp>

#include <cmath>
#include <cstdint>
#include <cstdio>

// Input and the check of results that the examples share. Nothing of it is needed to use KokkosNN.

namespace Examples {

/// A number from -2 to 2 that looks random; the same for the same i.
inline double number(std::int64_t i) {
  const auto hash = static_cast<std::uint64_t>(i + 1) * 0x9E3779B97F4A7C15U;
  return 4.0 * static_cast<double>(hash >> 11) / 9007199254740992.0 - 2.0;
}

template <class V>
auto on_host(const V& view) {
  return Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), view);
}

/// A View of rank 2 with numbers in it; `seed` gives each View numbers of its own.
template <class T, class... Properties>
Kokkos::View<T**, Properties...> random_matrix(const char* label, int rows, int cols, int seed = 0) {
  const Kokkos::View<T**, Properties...> view(label, rows, cols);
  const auto host = Kokkos::create_mirror_view(view);
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < cols; ++j) host(i, j) = static_cast<T>(number(1000003 * seed + std::int64_t(i) * cols + j));
  Kokkos::deep_copy(view, host);
  return view;
}

/// Collects differences between results and what they should be.
class Check {
 public:
  explicit Check(double tolerance) : m_tolerance(tolerance) {}

  void expect_near(double value, double expected) {
    const double difference = std::abs(value - expected);
    if (!(difference <= m_worst)) m_worst = difference;  // a NaN stays
  }

  /// The program's exit status: 0 if all values are within the tolerance.
  int status(const char* name) const {
    const bool is_right = m_worst <= m_tolerance;
    std::printf("%s: %s, largest difference %.2g of %.2g\n", name, is_right ? "right" : "WRONG", m_worst, m_tolerance);
    return is_right ? 0 : 1;
  }

 private:
  double m_tolerance;
  double m_worst = 0;
};

}  // namespace Examples

#endif  // KOKKOSNN_EXAMPLES_SUPPORT_HPP
