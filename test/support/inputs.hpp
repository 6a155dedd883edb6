// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_TEST_SUPPORT_INPUTS_HPP
#define KOKKOSNN_TEST_SUPPORT_INPUTS_HPP

#include <array>
#include <cstdint>

namespace KokkosNNTest {

/// Values that a row is filled with. They are chosen by row and column only, so that every layout sees the same tensor.
enum class Recipe {
  uniform,       ///< +-4, the friendly one
  wide,          ///< +-88, where float's exp ends
  huge,          ///< +-1e4
  one_dominant,  ///< zeros and small noise, and one large value
  all_equal,     ///< every result is 1 / cols
  ascending      ///< a ramp: the running maximum changes at every element
};

inline constexpr std::array all_recipes{Recipe::uniform,      Recipe::wide,      Recipe::huge,
                                        Recipe::one_dominant, Recipe::all_equal, Recipe::ascending};

inline const char* to_string(Recipe recipe) {
  switch (recipe) {
    case Recipe::uniform:
      return "uniform";
    case Recipe::wide:
      return "+-88";
    case Recipe::huge:
      return "+-1e4";
    case Recipe::one_dominant:
      return "one dominant";
    case Recipe::all_equal:
      return "all equal";
    case Recipe::ascending:
      return "ascending";
  }
  return "";
}

/// The number at place `i` of the sequence that begins with `seed`: 32 bits of SplitMix64, which has no state to set
/// up.
inline std::uint32_t random_bits(std::uint64_t seed, std::uint64_t i = 0) {
  std::uint64_t bits = (seed << 32) + (i + 1) * 0x9e3779b97f4a7c15;
  bits               = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9;
  bits               = (bits ^ bits >> 27) * 0x94d049bb133111eb;
  return static_cast<std::uint32_t>((bits ^ bits >> 31) >> 32);
}

/// Those bits as a number in [-1, 1).
inline double noise_of(std::uint32_t bits) { return static_cast<double>(bits) / 2147483648.0 - 1; }

/// One row of values after the other; the same sequence on every machine.
class InputRow {
 public:
  InputRow(Recipe recipe, std::int64_t row, std::int64_t cols)
      : m_recipe(recipe), m_row(row), m_cols(cols), m_seed(static_cast<std::uint32_t>(7919 * row + cols)) {}

  double next() {
    const std::int64_t col = m_col++;
    switch (m_recipe) {
      case Recipe::uniform:
        return 4 * noise();
      case Recipe::wide:
        return 88 * noise();
      case Recipe::huge:
        return 1e4 * noise();
      case Recipe::one_dominant:
        return col == (m_row * 31 + m_cols / 2) % m_cols ? 60 : noise();
      case Recipe::all_equal:
        return 3.25 - 2 * static_cast<double>(m_row % 4);
      case Recipe::ascending:
        return -80 + 160 * (static_cast<double>(col) + 1) / static_cast<double>(m_cols);
    }
    return 0;
  }

 private:
  double noise() { return noise_of(random_bits(m_seed, static_cast<std::uint64_t>(m_col))); }

  Recipe m_recipe;
  std::int64_t m_row;
  std::int64_t m_cols;
  std::int64_t m_col = 0;
  std::uint32_t m_seed;
};

}  // namespace KokkosNNTest

#endif  // KOKKOSNN_TEST_SUPPORT_INPUTS_HPP
