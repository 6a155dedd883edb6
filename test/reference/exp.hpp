// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_TEST_REFERENCE_EXP_HPP
#define KOKKOSNN_TEST_REFERENCE_EXP_HPP

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

// The exponential of the oracle, where the tests spend most of their time. The C library's takes several times as long
// for long doubles of 64 digits; others have only that one.

namespace KokkosNNTest::Reference {

using Real = long double;

inline constexpr bool has_own_exp = std::numeric_limits<Real>::digits == 64;

/// Powers of two: 2^(j/64), and 2^(1024 a) for a from -16 on.
struct ExpTables {
  std::array<Real, 64> roots;
  std::array<Real, 32> powers;

  ExpTables() {
    for (int j = 0; j < 64; ++j) roots[static_cast<std::size_t>(j)] = std::exp2(Real(j) / 64);
    for (int a = -16; a < 16; ++a) powers[static_cast<std::size_t>(a + 16)] = std::ldexp(Real(1), 1024 * a);
  }
};

inline const ExpTables exp_tables;

/// exp(x) of an x whose exponential is a normal number: 2^(k/64) exp(r) of the integer k that leaves the least r.
///
/// k times the first part of ln(2) / 64 is exact, which has 43 digits. Of exp(r) = 1 + r + ... all but the first two
/// terms are below 2^-16, so that doubles are good enough for them, and for the second part: the error is 1.2 ulp at
/// most.
inline Real exp_of_moderate(Real x) {
  constexpr double per_ln2 = 0x1.71547652b82fep6, ln2_high = 0x1.62e42fefa38p-7, ln2_low = 0x1.ef35793c7673p-51;
  constexpr double to_integer = 0x1.8p52;  // a double of this size has no digits behind the point
  const double shifted        = static_cast<double>(x) * per_ln2 + to_integer;
  const auto k      = static_cast<std::int32_t>(static_cast<std::uint32_t>(std::bit_cast<std::uint64_t>(shifted)));
  const Real k_     = shifted - to_integer;
  const Real r      = x - k_ * ln2_high - k_ * ln2_low;
  const double s    = static_cast<double>(r);
  const double q    = 1.0 / 2 + s * (1.0 / 6 + s * (1.0 / 24 + s * (1.0 / 120 + s * (1.0 / 720 + s * (1.0 / 5040)))));
  const Real root   = exp_tables.roots[static_cast<std::size_t>(k & 63)];
  const Real scaled = root + root * (r + s * s * q);
  const auto power  = std::bit_cast<double>(static_cast<std::uint64_t>((k >> 6 & 1023) + 1023) << 52);
  return scaled * power * exp_tables.powers[static_cast<std::size_t>((k >> 16) + 16)];
}

/// exp(x) within 2 ulp, with the special values of std::exp.
inline Real exp_real(Real x) {
  if constexpr (has_own_exp) {
    if (std::fabs(x) < 11355) return exp_of_moderate(x);
    if (x < -11400) return 0;  // less than half of the smallest subnormal number
  }
  return std::exp(x);
}

}  // namespace KokkosNNTest::Reference

#endif  // KOKKOSNN_TEST_REFERENCE_EXP_HPP
