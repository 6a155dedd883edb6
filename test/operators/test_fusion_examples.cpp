// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/check.hpp"

#include "reference/gradients.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

// The examples that fused.hpp and docs/fusion.md speak of, as a user would write them: a residual added before a
// softmax, dropout behind it with a mask that backward makes again, and a result quantised to bytes.

namespace KokkosNNTest {

using namespace Kokkos;  // as users have it, beside the next one
using namespace KokkosNN;

using Rows      = Kokkos::View<float**, Kokkos::LayoutRight, Memory>;
using ConstRows = Kokkos::View<const float**, Kokkos::LayoutRight, Memory>;
using ByteRows  = Kokkos::View<std::int8_t**, Kokkos::LayoutRight, Memory>;

// --- example 1: a residual before ---

/// x + residual, a pack at a time.
struct AddResidual {
  using value_type = float;
  ConstRows x;
  ConstRows residual;

  template <int N>
  KOKKOS_FUNCTION Pack<float, N> load(std::int64_t row, std::int64_t col) const {
    Pack<float, N> sum;
    for (int i = 0; i < N; ++i) sum[i] = x(row, col + i) + residual(row, col + i);
    return sum;
  }
};

struct StoreRows {
  using value_type = float;
  Rows y;

  template <int N>
  KOKKOS_FUNCTION void store(const Pack<float, N>& values, std::int64_t row, std::int64_t col) const {
    for (int i = 0; i < N; ++i) y(row, col + i) = values[i];
  }
};

// --- example 2: dropout behind, with random numbers that are a function of the place ---

/// Philox 4x32 with 10 rounds: 128 random bits for each value of a counter, under a key. Salmon, Moraes, Dror and Shaw,
/// "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
struct Philox {
  using Words = Kokkos::Array<std::uint32_t, 4>;

  Kokkos::Array<std::uint32_t, 2> key;

  KOKKOS_FUNCTION Words operator()(Words counter) const {
    std::uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t a = std::uint64_t(0xD2511F53u) * counter[0];
      const std::uint64_t b = std::uint64_t(0xCD9E8D57u) * counter[2];
      counter               = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ k0, static_cast<std::uint32_t>(b),
                               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ k1, static_cast<std::uint32_t>(a)};
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    return counter;
  }
};

/// Which elements a dropout keeps: a function of seed, row and column alone, whoever asks and in packs of whatever
/// size.
struct DropoutMask {
  std::uint64_t seed;
  std::uint32_t threshold;  ///< of 32 random bits: below it an element is dropped

  static DropoutMask of(std::uint64_t seed, double probability) {
    return {seed, static_cast<std::uint32_t>(std::ldexp(probability, 32))};
  }

  /// Four neighbouring columns share a counter.
  KOKKOS_FUNCTION bool keeps(std::int64_t row, std::int64_t col) const {
    const Philox random{{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}};
    const std::uint64_t r = static_cast<std::uint64_t>(row), c = static_cast<std::uint64_t>(col) / 4;
    const auto bits = random({static_cast<std::uint32_t>(c), static_cast<std::uint32_t>(c >> 32),
                              static_cast<std::uint32_t>(r), static_cast<std::uint32_t>(r >> 32)});
    return bits[col % 4] >= threshold;
  }
};

/// Stores the probabilities for backward, and what dropout leaves of them, scaled to keep their mean.
struct StoreDropped {
  using value_type = float;
  Rows probabilities;
  Rows dropped;
  DropoutMask mask;
  float scale;  ///< 1 / (1 - probability)

  template <int N>
  KOKKOS_FUNCTION void store(const Pack<float, N>& values, std::int64_t row, std::int64_t col) const {
    for (int i = 0; i < N; ++i) {
      probabilities(row, col + i) = values[i];
      dropped(row, col + i)       = mask.keeps(row, col + i) ? values[i] * scale : 0.0f;
    }
  }
};

/// Dropout's gradient, in place: no mask was stored.
struct DropoutBackward {
  Rows gradient;
  DropoutMask mask;
  float scale;

  KOKKOS_FUNCTION void operator()(std::int64_t row, std::int64_t col) const {
    gradient(row, col) = mask.keeps(row, col) ? gradient(row, col) * scale : 0.0f;
  }
};

// --- example 3: quantised output ---

/// Probabilities as int8: 0 to 127 for 0 to 1, rounded to nearest.
struct StoreInt8 {
  using value_type = float;
  ByteRows y;

  template <int N>
  KOKKOS_FUNCTION void store(const Pack<float, N>& values, std::int64_t row, std::int64_t col) const {
    for (int i = 0; i < N; ++i) y(row, col + i) = static_cast<std::int8_t>(values[i] * 127.0f + 0.5f);
  }
};

// --- the tests ---

struct LoadRows {
  using value_type = float;
  ConstRows x;

  template <int N>
  KOKKOS_FUNCTION Pack<float, N> load(std::int64_t row, std::int64_t col) const {
    Pack<float, N> pack;
    for (int i = 0; i < N; ++i) pack[i] = x(row, col + i);
    return pack;
  }
};

Rows filled_rows(std::int64_t rows, std::int64_t cols, Recipe recipe) {
  const Rows x("x", rows, cols);
  const auto host = Kokkos::create_mirror_view(x);
  fill(host.data(), right({rows, cols}), 1, recipe);
  Kokkos::deep_copy(x, host);
  return x;
}

/// A copy, also where the device's memory is the host's.
template <class View>
auto on_host(const View& view) {
  const auto host = Kokkos::create_mirror(view);
  Kokkos::deep_copy(host, view);
  return host;
}

constexpr std::array<std::int64_t, 9> example_widths{1, 3, 32, 100, 197, 1024, 4099, 40000, 300001};
constexpr std::int64_t example_rows(std::int64_t cols) { return cols > 4099 ? 2 : 17; }

TEST(FusionExamples, AResidualBeforeMatchesTheSoftmaxOfTheSum) {
  for (const std::int64_t cols : example_widths) {
    const std::int64_t rows = example_rows(cols);
    const Rows x = filled_rows(rows, cols, Recipe::uniform), residual = filled_rows(rows, cols, Recipe::ascending);
    const Rows y("y", rows, cols);

    KokkosNN::fused_softmax(Exec(), rows, cols, AddResidual{x, residual}, StoreRows{y});

    const auto sum = on_host(x), added = on_host(residual), result = on_host(y);
    for (std::size_t i = 0; i < sum.size(); ++i) sum.data()[i] += added.data()[i];
    const Placement place = right({rows, cols});
    const Errors errors   = compare<RowOperator::softmax>(sum.data(), place, result.data(), place, 1);
    EXPECT_LE(errors.max_ulp, promised_ulp<float>) << errors.worst << "; " << cols << " columns";
  }
}

/// Vectors that the authors of Philox publish with it.
TEST(FusionExamples, PhiloxGivesItsKnownAnswers) {
  const auto words = [](const Philox::Words& w) { return std::vector<std::uint32_t>{w[0], w[1], w[2], w[3]}; };

  EXPECT_EQ(words(Philox{{0, 0}}({0, 0, 0, 0})),
            (std::vector<std::uint32_t>{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}));
  EXPECT_EQ(words(Philox{{~0u, ~0u}}({~0u, ~0u, ~0u, ~0u})),
            (std::vector<std::uint32_t>{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}));
}

TEST(FusionExamples, DropoutBehindKeepsWhatItsMaskKeeps) {
  constexpr double probability = 0.25;
  const DropoutMask mask       = DropoutMask::of(20261121, probability);
  for (const std::int64_t cols : example_widths) {
    const std::int64_t rows = example_rows(cols);
    const Rows x            = filled_rows(rows, cols, Recipe::uniform);
    const Rows probabilities("probabilities", rows, cols), dropped("dropped", rows, cols);

    KokkosNN::fused_softmax(Exec(), rows, cols, LoadRows{x}, StoreDropped{probabilities, dropped, mask, 4.0f / 3.0f});

    const auto input = on_host(x), p = on_host(probabilities), d = on_host(dropped);
    const Placement place = right({rows, cols});
    const Errors errors   = compare<RowOperator::softmax>(input.data(), place, p.data(), place, 1);
    EXPECT_LE(errors.max_ulp, promised_ulp<float>) << errors.worst << "; " << cols << " columns";
    std::int64_t kept = 0;
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t col = 0; col < cols; ++col) {
        const bool is_kept = mask.keeps(row, col);
        kept += is_kept;
        ASSERT_EQ(d(row, col), is_kept ? p(row, col) * (4.0f / 3.0f) : 0.0f) << row << ", " << col;
      }
    }
    const double count = static_cast<double>(rows * cols);
    EXPECT_NEAR(static_cast<double>(kept), count * (1 - probability), 5 * std::sqrt(count)) << cols;
  }
}

TEST(FusionExamples, DropoutsBackwardMakesTheSameMaskAgain) {
  constexpr std::int64_t rows = 19, cols = 333;
  constexpr float scale  = 2.0f;
  const DropoutMask mask = DropoutMask::of(7, 0.5);
  const Rows x = filled_rows(rows, cols, Recipe::uniform), dy = filled_rows(rows, cols, Recipe::one_dominant);
  const Rows y("y", rows, cols), dropped("dropped", rows, cols), dx("dx", rows, cols);
  const auto upstream = on_host(dy);

  KokkosNN::fused_softmax(Exec(), rows, cols, LoadRows{x}, StoreDropped{y, dropped, mask, scale});
  Kokkos::parallel_for("dropout_backward", Kokkos::MDRangePolicy<Exec, Kokkos::Rank<2>>(Exec(), {0, 0}, {rows, cols}),
                       DropoutBackward{dy, mask, scale});
  KokkosNN::softmax_backward(Exec(), y, dy, dx);

  // The derivative of sum(dropped * upstream), the mask being read off the forward call's result.
  const auto p = on_host(y), d = on_host(dropped), result = on_host(dx);
  for (std::int64_t row = 0; row < rows; ++row) {
    std::vector<float> through(cols);
    for (std::int64_t col = 0; col < cols; ++col) through[col] = d(row, col) != 0 ? upstream(row, col) * scale : 0;
    const auto expected = Reference::softmax_backward(Reference::Row<float>{&p(row, 0), cols},
                                                      Reference::Row<float>{through.data(), cols}, 1);
    for (std::int64_t col = 0; col < cols; ++col) {
      ASSERT_LE(ulp_error<float>(result(row, col), expected[col].dx, expected[col].magnitude), 4) << row << ", " << col;
    }
  }
}

TEST(FusionExamples, AQuantisedResultIsTheNearestByte) {
  for (const std::int64_t cols : example_widths) {
    const std::int64_t rows = example_rows(cols);
    const Rows x            = filled_rows(rows, cols, Recipe::one_dominant);
    const ByteRows y("y", rows, cols);

    KokkosNN::fused_softmax(Exec(), rows, cols, LoadRows{x}, StoreInt8{y}, {.scale = 0.125});

    const auto input = on_host(x);
    const auto bytes = on_host(y);
    std::vector<Reference::Real> expected;
    for (std::int64_t row = 0; row < rows; ++row) {
      Reference::softmax(Reference::Row<float>{&input(row, 0), cols}, 0.125L, MaskedRowPolicy::nan, expected);
      for (std::int64_t col = 0; col < cols; ++col) {
        ASSERT_NEAR(bytes(row, col), static_cast<double>(expected[col] * 127), 0.501) << row << ", " << col;
      }
    }
  }
}

}  // namespace KokkosNNTest
