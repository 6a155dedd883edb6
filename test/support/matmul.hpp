// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_TEST_SUPPORT_MATMUL_HPP
#define KOKKOSNN_TEST_SUPPORT_MATMUL_HPP

#include "tensor.hpp"
#include "types.hpp"

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/matmul_options.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

// Matrices of random numbers, and their products in long double.

namespace KokkosNNTest {

using KokkosNN::MatmulOptions;

/// A tensor of random numbers; everything around its elements is poison.
template <class T>
struct Matrix {
  Placement place;
  Buffer<T> buffer;

  explicit Matrix(const Placement& p, unsigned seed, int misalignment = 0) : place(p), buffer(p.span(), misalignment) {
    std::mt19937 random(seed);
    std::normal_distribution<float> numbers;
    for_each_index(place, place, [&](std::int64_t at, std::int64_t, std::int64_t) {
      buffer.host()[at] = static_cast<T>(numbers(random));
    });
    buffer.upload();
  }
  template <int rank>
  auto view() const {
    return strided_view<rank>(buffer.device(), place);
  }
  /// An element by c's indices: axes line up from the last one on, and those of extent 1 repeat.
  long double at(const std::vector<std::int64_t>& index) const {
    std::int64_t offset = place.origin;
    const int missing   = static_cast<int>(index.size()) - place.rank();
    for (int d = 0; d < place.rank(); ++d) offset += place.extents[d] == 1 ? 0 : index[d + missing] * place.strides[d];
    return static_cast<long double>(static_cast<double>(buffer.host()[offset]));
  }
  /// True if nothing but the elements was written.
  bool gaps_are_intact() const {
    std::vector<bool> is_element(static_cast<std::size_t>(buffer.count()), false);
    for_each_index(place, place, [&](std::int64_t at, std::int64_t, std::int64_t) { is_element[at] = true; });
    for (std::int64_t i = 0; i < buffer.count(); ++i) {
      if (!is_element[i] && !same_bits(buffer.host()[i], poison<T>())) return false;
    }
    return buffer.guards_intact();
  }
};

/// Half an ulp of 1.
template <class T>
constexpr long double unit_of() {
  return std::ldexp(1.0L, -Format<T>::digits);
}

/// The worst error of c as a share of its bound.
struct Worst {
  long double share = 0;
  std::string where;
};

/// Elements of c = f(alpha a b + beta before), compared with long double.
template <class T, class C, class Epilogue>
Worst compare(const Matrix<T>& a, const Matrix<T>& b, const Matrix<C>& c, const Matrix<C>& before,
              const MatmulOptions& options, const Epilogue& epilogue, long double factor = 1) {
  using S                  = KokkosNN::accumulator_t<T>;
  const int rank           = c.place.rank();
  const std::int64_t inner = a.place.extents.back();
  const long double u      = unit_of<S>() * (is_16_bit<T> ? 2 : 1) * factor;
  Worst worst;
  std::vector<std::int64_t> index(static_cast<std::size_t>(rank), 0);
  for_each_index(c.place, c.place, [&](std::int64_t at, std::int64_t, std::int64_t number) {
    for (int d = rank, rest = static_cast<int>(number); d-- > 0; rest /= static_cast<int>(c.place.extents[d])) {
      index[d] = rest % c.place.extents[d];
    }
    auto of_a = index, of_b = index;
    long double sum = 0, size = 0;
    for (std::int64_t k = 0; options.alpha != 0 && k < inner; ++k) {
      of_a[rank - 1]         = k;
      of_b[rank - 2]         = k;
      const long double term = options.alpha * a.at(of_a) * b.at(of_b);
      sum += term;
      size += std::fabs(term);
    }
    if (options.beta != 0) {
      sum += options.beta * before.at(index);
      size += std::fabs(options.beta * before.at(index));
    }
    const long double expected = epilogue(sum, index);
    const long double value    = static_cast<long double>(static_cast<double>(c.buffer.host()[at]));
    const long double bound    = (static_cast<long double>(inner) + 8) * u * (size + std::fabs(expected)) +
                                 unit_of<C>() * std::fabs(expected) +
                                 std::ldexp(1.0L, Format<C>::min_exponent - Format<C>::digits + 1);
    const long double share    = std::fabs(value - expected) / bound;
    if (share <= worst.share) return;  // not of NaN
    worst.share = std::isnan(share) ? std::numeric_limits<long double>::infinity() : share;
    worst.where = "element " + std::to_string(number) + ": " + std::to_string(static_cast<double>(value)) +
                  " instead of " + std::to_string(static_cast<double>(expected));
  });
  return worst;
}

}  // namespace KokkosNNTest

#endif  // KOKKOSNN_TEST_SUPPORT_MATMUL_HPP
