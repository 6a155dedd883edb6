// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/check.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <Kokkos_Core.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

namespace KokkosNNTest {
namespace {

using KokkosNN::SegmentedOptions;

/// Row offsets with empty rows, short ones, one that spans several teams, and elements in no row at both ends.
std::vector<int> many_lengths() { return {3, 3, 4, 4, 4, 11, 60, 61, 9000, 9000, 9033, 21000, 21000}; }
constexpr std::int64_t elements = 21007;

/// A gradient of values (elements, heads) at any strides, against long double.
template <class T>
::testing::AssertionResult gradient_matches(const Placement& place, const Placement& values_place, double scale,
                                            bool in_place = false) {
  using A                       = KokkosNN::accumulator_t<T>;
  const std::vector<int> starts = many_lengths();
  const std::int64_t heads      = place.extents[1];
  const auto rows               = static_cast<std::int64_t>(starts.size()) - 1;
  Buffer<T> x(place.span()), dx(place.span()), lse(values_place.span()), dlse(values_place.span());
  fill(x.host(), place, 0, Recipe::uniform);
  fill(dlse.host(), values_place, 0, Recipe::uniform);
  const auto at     = [&](std::int64_t i, std::int64_t head) { return i * place.strides[0] + head * place.strides[1]; };
  const auto of_row = [&](std::int64_t row, std::int64_t head) {
    return row * values_place.strides[0] + head * values_place.strides[1];
  };
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t head = 0; head < heads; ++head) {
      const Reference::Row<T> of{x.host() + at(starts[row], head), starts[row + 1] - starts[row], place.strides[0]};
      const Reference::Real value   = of.cols == 0 ? 0 : Reference::logsumexp(of, Reference::Real(scale));
      lse.host()[of_row(row, head)] = static_cast<T>(static_cast<A>(value));
    }
  }
  const std::vector<T> before(x.host(), x.host() + x.count());
  x.upload();
  lse.upload();
  dlse.upload();
  dx.poison_all();
  const Kokkos::View<int*, Memory> offsets("offsets", starts.size());
  const auto host = Kokkos::create_mirror(offsets);
  for (std::size_t i = 0; i < starts.size(); ++i) host(i) = starts[i];
  Kokkos::deep_copy(offsets, host);
  Buffer<T>& to = in_place ? x : dx;

  KokkosNN::segmented_logsumexp_backward(Exec(), strided_view<2>(static_cast<const T*>(x.device()), place),
                                         strided_view<2>(static_cast<const T*>(lse.device()), values_place),
                                         strided_view<2>(static_cast<const T*>(dlse.device()), values_place), offsets,
                                         strided_view<2>(to.device(), place), {.scale = scale});
  Exec().fence();
  to.download();

  Errors errors;
  for (std::int64_t head = 0; head < heads; ++head) {
    for (std::int64_t i = 0; i < elements; ++i) {
      const T result = to.host()[at(i, head)];
      const T input  = before[at(i, head)];
      if (i < starts.front() || i >= starts.back()) {
        const T untouched = in_place ? input : poison<T>();
        if (!same_bits(result, untouched)) return ::testing::AssertionFailure() << i << " is in no row, but written";
        continue;
      }
      std::int64_t row = 0;
      while (starts[row + 1] <= i) ++row;
      const Reference::Real z    = Reference::Real(scale) * exact(input) - exact(lse.host()[of_row(row, head)]);
      const Reference::Real want = scale * exact(dlse.host()[of_row(row, head)]) * Reference::exp_real(z);
      if (std::fabs(want) < 64 * smallest_normal<T>()) continue;
      errors.add(ulp_error<T>(exact(result), want), row, i, exact(result), want);
    }
  }
  const double promise = is_16_bit<T> ? 1 : 8;
  return errors.max_ulp <= promise ? ::testing::AssertionSuccess() : ::testing::AssertionFailure() << errors.worst;
}

template <class T>
class SegmentedLseBackward : public ::testing::Test {};
TYPED_TEST_SUITE(SegmentedLseBackward, ElementTypes, ElementNames);

TYPED_TEST(SegmentedLseBackward, OfRowsOfAllLengthsMatches) {
  const auto rows     = static_cast<std::int64_t>(many_lengths().size()) - 1;
  const Placement one = right({elements, 1}), of_one = right({rows, 1});
  const Placement side_by_side = right({elements, 3}), apart{{elements, 3}, {1, elements}};
  EXPECT_TRUE(gradient_matches<TypeParam>(one, of_one, 1));
  EXPECT_TRUE(gradient_matches<TypeParam>(one, of_one, -0.5, true));
  EXPECT_TRUE(gradient_matches<TypeParam>(side_by_side, right({rows, 3}), 0.25));
  EXPECT_TRUE(gradient_matches<TypeParam>(apart, Placement{{rows, 3}, {1, rows}}, 1));
  EXPECT_TRUE(gradient_matches<TypeParam>(Placement{{elements, 2}, {2, 2 * elements}}, right({rows, 2}), 1));
}

TEST(SegmentedLseBackwardValues, OfMaskedRowsAreAsTheOptionSays) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  const Kokkos::View<float*, Memory> x("x", 4), lse("lse", 2), dlse("dlse", 2), dx("dx", 4);
  const Kokkos::View<int*, Memory> offsets("offsets", 3);
  const auto starts = Kokkos::create_mirror(offsets);
  for (int i = 0; i < 3; ++i) starts(i) = 2 * i;
  Kokkos::deep_copy(offsets, starts);
  Kokkos::deep_copy(x, -inf);
  Kokkos::deep_copy(lse, -inf);
  Kokkos::deep_copy(dlse, 1.f);
  const auto results = [&](KokkosNN::MaskedRowPolicy masked_row) {
    KokkosNN::segmented_logsumexp_backward(x, lse, dlse, offsets, dx, {.masked_row = masked_row});
    return Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), dx);
  };
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(std::isnan(results(KokkosNN::MaskedRowPolicy::nan)(i))) << i;
  for (int i = 0; i < 4; ++i) EXPECT_EQ(results(KokkosNN::MaskedRowPolicy::zero)(i), 0) << i;
}

TEST(SegmentedLseBackwardErrors, NameWhatIsWrong) {
  const Kokkos::View<float*, Memory> x("x", 9), lse("lse", 3), few("few", 2);
  const Kokkos::View<int*, Memory> offsets("offsets", 4);
  const auto complaint = [&](const auto& of_rows, const auto& dx, const SegmentedOptions& options) -> std::string {
    try {
      KokkosNN::segmented_logsumexp_backward(x, of_rows, of_rows, offsets, dx, options);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "none";
  };
  const std::string function = "KokkosNN::segmented_logsumexp_backward: ";
  EXPECT_EQ(complaint(few, x, {}), function + "lse must have 3 elements as there are rows, but has 2");
  EXPECT_EQ(complaint(lse, lse, {}), function + "dx must have 9 elements as values, but has 3");
  Kokkos::deep_copy(offsets, 12);
  EXPECT_EQ(complaint(lse, x, {.check_offsets = true}).rfind(function, 0), 0u);
}

}  // namespace
}  // namespace KokkosNNTest
