// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/math/turns.hpp>

#include <bit>
#include <cmath>
#include <cstdint>

// Frequencies of a rotary embedding, once a call. In double-double arithmetic, as long double is double on some
// machines.

namespace KokkosNN::Impl {
namespace {

using Wide = DoubleDouble<double>;

constexpr Wide ln_2{0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
constexpr Wide inverse_two_pi{0x1.45f306dc9c883p-3, -0x1.6b01ec5417056p-57};

Wide quotient(const Wide& a, double b) {
  const double high = a.high / b;
  const double rest = std::fma(-high, b, a.high) + a.low;
  const double low  = rest / b;
  const double sum  = high + low;
  return {sum, low - (sum - high)};
}

/// exp(x): x = n ln 2 + 2^9 r, exp(r) by its series, squared nine times.
Wide exponential(const Wide& x) {
  constexpr int squarings = 9;
  constexpr int terms     = 11;
  const double n          = std::nearbyint(x.high / ln_2.high);
  const Wide reduced      = x + product(ln_2, Wide{-n, 0});
  const Wide r            = reduced * std::ldexp(1.0, -squarings);
  Wide sum{1, 0};
  for (int k = terms; k >= 1; --k) sum = Wide{1, 0} + quotient(product(r, sum), k);
  for (int i = 0; i < squarings; ++i) sum = product(sum, sum);
  return sum * std::ldexp(1.0, static_cast<int>(n));
}

/// ln(x): the rounded logarithm l and, once more by Newton's method, ln(x exp(-l)).
Wide logarithm(double x) {
  const double l = std::log(x);
  const Wide one = product(exponential({-l, 0}), Wide{x, 0});
  const double d = (one.high - 1) + one.low;
  return Wide{l, 0} + Wide{d, -d * d / 2};
}

}  // namespace

RotaryFrequencies rotary_frequencies(double theta, double position_scale, std::int64_t columns) {
  RotaryFrequencies result{};
  result.first   = product(inverse_two_pi, Wide{position_scale, 0});
  const int bits = std::bit_width(static_cast<std::uint64_t>(columns));
  Wide power     = exponential(quotient(logarithm(theta) * -1.0, static_cast<double>(columns)));
  for (int k = 0; k < bits && k < RotaryFrequencies::most_bits; ++k) {
    result.power[k] = power;
    power           = product(power, power);
  }
  return result;
}

}  // namespace KokkosNN::Impl
