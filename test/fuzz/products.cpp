// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "kinds.hpp"

#include "../support/matmul.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

// Random calls of matrix products.

namespace KokkosNNTest {
namespace {

MatmulOptions matmul_options(Draw& draw) {
  MatmulOptions options;
  options.alpha        = draw.of({1.0, 1.0, 0.5, -2.0, 0.0});
  options.beta         = draw.of({0.0, 0.0, 1.0, -0.5});
  options.determinism  = draw.determinism();
  options.tuning.parts = static_cast<int>(draw.of({0, 0, 1, 3}));
  options.provider     = draw.yes() ? KokkosNN::MatmulProvider::automatic : KokkosNN::MatmulProvider::own;
  options.tuning.group = static_cast<int>(draw.of({0, 0, 1, 3}));
  return options;
}

/// A batch of products, whose operands may broadcast. Few of them have sums of more than a part.
template <class T>
void product(Draw& draw) {
  std::int64_t room        = 3000;
  const std::int64_t batch = draw.below(4), m = draw.extent(room), n = draw.extent(room);
  const std::int64_t k = m * n <= 40 && draw.below(8) == 0 ? 2000 + draw.below(4000) : draw.extent(room);
  const auto batches   = [&] { return draw.yes() ? batch : 1; };
  const Matrix<T> a(draw.placement({batches(), m, k}), 1, static_cast<int>(draw.of({0, 0, 1})));
  const Matrix<T> b(draw.placement({batches(), k, n}), 2, static_cast<int>(draw.of({0, 0, 1})));
  Matrix<T> c(draw.placement({batch, m, n}), 3);
  const Matrix<T> before(c.place, 3);
  const MatmulOptions options = matmul_options(draw);
  expect_right("matmul" + text_of(a.place) + text_of(b.place) + text_of(c.place), false, [&] {
    KokkosNN::matmul(Exec(), a.template view<3>(), b.template view<3>(), c.template view<3>(), options);
    Exec().fence();
    c.buffer.download();
    const Worst worst = compare(a, b, c, before, options, [](long double sum, const auto&) { return sum; });
    return worst.share <= 1 && c.gaps_are_intact() ? ::testing::AssertionSuccess()
                                                   : ::testing::AssertionFailure() << worst.where;
  });
}

/// Rows of a by an index of which some are none, and sums of these, by offsets of which some are out of order: c's
/// content is undefined then, but what is around it is not.
template <class T>
void product_of_rows(Draw& draw) {
  std::int64_t room           = 2000;
  const std::int64_t products = draw.extent(room), n = draw.extent(room), k = draw.extent(room);
  const std::int64_t sums = draw.below(12), rows = 1 + draw.below(20);
  const bool has_bad_offsets = draw.below(4) == 0;
  const Kokkos::View<std::int32_t*, Exec> index("index", products);
  const Kokkos::View<std::int64_t*, Exec> offsets("offsets", sums + 1);
  const auto host_index   = Kokkos::create_mirror_view(index);
  const auto host_offsets = Kokkos::create_mirror_view(offsets);
  for (std::int64_t i = 0; i < products; ++i) host_index(i) = static_cast<std::int32_t>(draw.below(rows + 1) - 1);
  for (std::int64_t r = 0; r <= sums; ++r) host_offsets(r) = draw.below(products + 1);
  if (!has_bad_offsets) std::sort(host_offsets.data(), host_offsets.data() + sums + 1);
  Kokkos::deep_copy(index, host_index);
  Kokkos::deep_copy(offsets, host_offsets);
  const Matrix<T> a(draw.placement({rows, k}), 1), b(draw.placement({k, n}), 2);
  Matrix<T> c(draw.placement({sums, n}), 3);
  const Matrix<T> before(c.place, 3);
  const MatmulOptions options = matmul_options(draw);
  const auto is_right         = [&](std::int64_t r, std::int64_t j) {
    long double sum = options.beta == 0 ? 0 : options.beta * before.at({r, j}), size = std::fabs(sum);
    bool is_nan              = false;
    const std::int64_t count = host_offsets(r + 1) - host_offsets(r);
    for (std::int64_t i = host_offsets(r); options.alpha != 0 && i < host_offsets(r + 1); ++i) {
      is_nan = is_nan || host_index(i) < 0;
      for (std::int64_t q = 0; !is_nan && q < k; ++q) {
        const long double term = options.alpha * a.at({host_index(i), q}) * b.at({q, j});
        sum += term;
        size += std::fabs(term);
      }
    }
    const long double value = c.at({r, j});
    if (is_nan) return std::isnan(value);
    const long double u = unit_of<KokkosNN::accumulator_t<T>>() * (is_16_bit<T> ? 2 : 1);
    return std::fabs(value - sum) <= static_cast<long double>(k + count + 8) * u * (size + std::fabs(sum)) +
                                         unit_of<T>() * std::fabs(sum) +
                                         std::ldexp(1.0L, Format<T>::min_exponent - Format<T>::digits + 1);
  };
  expect_right("matmul of rows" + text_of(a.place) + text_of(b.place) + text_of(c.place), false, [&] {
    KokkosNN::matmul(Exec(), KokkosNN::GatheredRows{a.template view<2>(), index}, b.template view<2>(),
                     KokkosNN::SummedRows{c.template view<2>(), offsets}, options);
    Exec().fence();
    c.buffer.download();
    if (!c.gaps_are_intact()) return ::testing::AssertionFailure() << "written outside of c";
    for (std::int64_t r = 0; !has_bad_offsets && r < sums; ++r) {
      for (std::int64_t j = 0; j < n; ++j) {
        if (!is_right(r, j)) return ::testing::AssertionFailure() << "row " << r << ", column " << j;
      }
    }
    return ::testing::AssertionSuccess();
  });
}

}  // namespace

template <class T>
std::vector<Kind> product_kinds() {
  return {Kind{{}, product<T>}, Kind{{}, product_of_rows<T>}};
}

template std::vector<Kind> product_kinds<float>();
template std::vector<Kind> product_kinds<double>();
template std::vector<Kind> product_kinds<Half>();
template std::vector<Kind> product_kinds<BHalf>();

}  // namespace KokkosNNTest
