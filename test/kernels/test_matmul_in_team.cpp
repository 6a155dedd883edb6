// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/team_emulation.hpp"

#include <KokkosNN/impl/gpu/matmul.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <type_traits>
#include <vector>

// A GPU's kernel of matrix products in an emulated team, by the units and the tiles of CUDA and HIP.

namespace KokkosNNTest {
namespace {

namespace Impl = KokkosNN::Impl;
using KokkosNN::bhalf_t;
using KokkosNN::half_t;

struct AddBias {
  template <class A>
  A operator()(A sum, A bias) const {
    return sum + bias;
  }
};

constexpr std::int64_t batches = 2, rows = 150, cols = 137, inner = 40;

/// Matrices of `rows` x `cols`, row by row or column by column; what is not theirs is NaN. Rows begin at multiples of
/// 16 bytes, or not.
template <class T>
struct Matrices {
  std::vector<T> memory;
  std::int64_t row_stride, col_stride, batch_stride;

  Matrices(std::int64_t row_count, std::int64_t col_count, bool by_rows, bool is_aligned, unsigned seed) {
    constexpr std::int64_t chunk = 16 / std::int64_t(sizeof(T));
    const std::int64_t lines = by_rows ? row_count : col_count, length = by_rows ? col_count : row_count;
    const std::int64_t stride = (length + chunk - 1) / chunk * chunk + (is_aligned ? chunk : 1);
    row_stride                = by_rows ? stride : 1;
    col_stride                = by_rows ? 1 : stride;
    batch_stride              = lines * stride;
    memory.assign(static_cast<std::size_t>(batches * batch_stride), T(NAN));
    std::mt19937 random(seed);
    for (std::int64_t b = 0; b < batches; ++b) {
      for (std::int64_t r = 0; r < row_count; ++r) {
        for (std::int64_t c = 0; c < col_count; ++c) at(b, r, c) = T((static_cast<int>(random() % 17) - 8) / 4.0f);
      }
    }
  }
  T& at(std::int64_t b, std::int64_t r, std::int64_t c) {
    return memory[static_cast<std::size_t>(b * batch_stride + r * row_stride + c * col_stride)];
  }
  Impl::RowMap map() const {
    Impl::RowMap map;
    map.n         = 1;
    map.stride[0] = batch_stride;
    return map;
  }
};

/// Runs a league of three teams, which take tiles in turn, and compares: sums of the small numbers are exact. With
/// `copies` rows of all matrices begin at multiples of 16 bytes, and c's units are moved at once.
template <class Unit, Impl::MatmulForm form, class Tile = Impl::MatmulTileOf<Unit>>
void expect_exact(bool copies, double beta) {
  using T       = typename Unit::Element;
  using A       = typename Unit::Accumulated;
  using Results = Impl::MatmulResults<A, Impl::ElementTypes<T>>;
  using Kernel  = Impl::MatmulInTeam<Unit, form, AddBias, A, Results, Impl::MatmulRows::own, Tile>;
  Matrices<T> a(rows, inner, Impl::is_a_along(form), copies, 1), b(inner, cols, !Impl::is_b_along(form), copies, 2);
  Matrices<T> bias(1, cols, true, true, 3);
  Matrices<A> c(rows, cols, true, copies, 4);
  Matrices<A> before = c;
  Impl::MatmulData<T> data;
  data.batches    = batches;
  data.rows       = rows;
  data.cols       = cols;
  data.inner      = inner;
  data.a          = {a.memory.data(), a.row_stride, a.col_stride, a.map()};
  data.b          = {b.memory.data(), b.row_stride, b.col_stride, b.map()};
  data.row_blocks = (rows + Tile::rows - 1) / Tile::rows;
  data.col_blocks = (cols + Tile::cols - 1) / Tile::cols;
  data.group      = 2;
  Results results;
  results.data[0]       = c.memory.data();
  results.row_stride[0] = c.row_stride;
  results.col_stride[0] = c.col_stride;
  results.batch[0]      = c.map();
  results.data[1]       = bias.memory.data();
  results.col_stride[1] = 1;
  results.batch[1]      = bias.map();
  const Kernel kernel{{{{}, A(0.5), A(beta)}, results, copies}, data, copies, copies};
  constexpr int teams = 3;
  for (int league = 0; league < teams; ++league) {
    EmulatedTeam team(Kernel::team_size, Unit::lanes, Kernel::scratch, static_cast<std::uint32_t>(league));
    team.run([&](int rank) { kernel(EmulatedMember{league, teams, rank}); });
  }
  for (std::int64_t n = 0; n < batches; ++n) {
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < cols; ++j) {
        double expected = beta * double(before.at(n, i, j)) + double(bias.at(n, 0, j));
        for (std::int64_t k = 0; k < inner; ++k) expected += 0.5 * double(a.at(n, i, k)) * double(b.at(n, k, j));
        ASSERT_EQ(double(c.at(n, i, j)), expected) << n << ' ' << i << ' ' << j;
      }
      for (std::int64_t j = cols; j < c.row_stride; ++j) ASSERT_TRUE(std::isnan(c.at(n, i, j))) << "behind a row";
    }
  }
}

/// Rows of a by an index, of which some are none, and with offsets sums of these. Offsets: an empty row, one longer
/// than a tile, short ones; three rows a team.
template <class Unit, Impl::MatmulForm form, Impl::MatmulRows kind>
void expect_exact_rows(bool copies, double beta) {
  using T                          = typename Unit::Element;
  using A                          = typename Unit::Accumulated;
  using Results                    = Impl::MatmulResults<T, Impl::ElementTypes<T>>;
  using Kernel                     = Impl::MatmulInTeam<Unit, form, AddBias, A, Results, kind>;
  using Tile                       = typename Kernel::Tile;
  constexpr bool sums              = kind == Impl::MatmulRows::summed;
  constexpr std::int64_t products  = 190;
  const std::int64_t offsets[]     = {0, 0, 3, 140, 141, 160, products, products};
  constexpr std::int64_t sums_of_c = 7, c_rows = sums ? sums_of_c : products;
  Matrices<T> a(rows, inner, true, copies, 1), b(inner, cols, !Impl::is_b_along(form), copies, 2);
  Matrices<T> bias(1, cols, true, true, 3), c(c_rows, cols, true, copies, 4);
  Matrices<T> before = c;
  std::int32_t index[products];
  for (std::int32_t i = 0; i < products; ++i) index[i] = i == 150 ? -1 : i * 11 % rows;
  index[151] = rows;
  Impl::MatmulData<T> data;
  data.batches    = 1;
  data.rows       = products;
  data.cols       = cols;
  data.inner      = inner;
  data.a          = {a.memory.data(), a.row_stride, a.col_stride, {}};
  data.b          = {b.memory.data(), b.row_stride, b.col_stride, {}};
  data.row_blocks = (products + Tile::rows - 1) / Tile::rows;
  data.col_blocks = (cols + Tile::cols - 1) / Tile::cols;
  data.group      = 2;
  Results results;
  results.data[0]       = c.memory.data();
  results.row_stride[0] = c.row_stride;
  results.col_stride[0] = c.col_stride;
  results.data[1]       = bias.memory.data();
  results.col_stride[1] = 1;
  Impl::MatmulRowMaps maps;
  maps.index         = {index, 1, 4, true};
  maps.a_rows        = rows;
  maps.offsets       = {offsets, 1, 8, true};
  maps.sums          = sums_of_c;
  maps.sums_per_team = 3;
  const Kernel kernel{{{{}, A(0.5), A(beta)}, results, copies}, data, copies, copies, maps};
  constexpr int teams = 3;
  for (int league = 0; league < teams; ++league) {
    EmulatedTeam team(Kernel::team_size, Unit::lanes, Kernel::scratch, static_cast<std::uint32_t>(league));
    team.run([&](int rank) { kernel(EmulatedMember{league, teams, rank}); });
  }
  for (std::int64_t i = 0; i < c_rows; ++i) {
    for (std::int64_t j = 0; j < cols; ++j) {
      double expected = beta * double(before.at(0, i, j));
      for (std::int64_t p = sums ? offsets[i] : i; p < (sums ? offsets[i + 1] : i + 1); ++p) {
        expected += double(bias.at(0, 0, j));
        if (index[p] < 0 || index[p] >= rows) expected = NAN;
        for (std::int64_t k = 0; k < inner && !std::isnan(expected); ++k) {
          expected += 0.5 * double(a.at(0, index[p], k)) * double(b.at(0, k, j));
        }
      }
      const T value = c.at(0, i, j);
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(double(value))) << i << ' ' << j;
      } else {
        ASSERT_EQ(double(value), double(static_cast<T>(A(expected)))) << i << ' ' << j;
      }
    }
    for (std::int64_t j = cols; j < c.row_stride; ++j) ASSERT_TRUE(std::isnan(double(c.at(0, i, j)))) << "behind a row";
  }
}

/// Parts of the inner axis, the last of which is short, and the kernel that adds them.
template <class Unit, Impl::MatmulForm form>
void expect_exact_parts(bool copies, double beta) {
  using T                     = typename Unit::Element;
  using S                     = typename Unit::Accumulated;
  using Kernel                = Impl::MatmulInTeam<Unit, form, Impl::MatmulResult, S, Impl::MatmulParts<S>>;
  using Tile                  = typename Kernel::Tile;
  using Results               = Impl::MatmulResults<T, Impl::ElementTypes<T>>;
  constexpr std::int64_t part = 32, parts = 12, k_count = 11 * part + 5;
  Matrices<T> a(rows, k_count, Impl::is_a_along(form), copies, 1), b(k_count, cols, !Impl::is_b_along(form), copies, 2);
  Matrices<T> bias(1, cols, true, true, 3), c(rows, cols, true, false, 4);
  Matrices<T> before = c;
  static_assert(part % Tile::inner == 0);
  const auto of_parts = [](std::int64_t batch_stride, std::int64_t part_stride) {
    Impl::RowMap map;
    map.n          = 2;
    map.extent[0]  = batches;
    map.extent[1]  = parts;
    map.inverse[1] = 1.0 / parts;
    map.stride[0]  = batch_stride;
    map.stride[1]  = part_stride;
    return map;
  };
  Impl::MatmulData<T> data;
  data.batches    = batches * parts;
  data.rows       = rows;
  data.cols       = cols;
  data.inner      = k_count;
  data.a          = {a.memory.data(), a.row_stride, a.col_stride, of_parts(a.batch_stride, part * a.col_stride)};
  data.b          = {b.memory.data(), b.row_stride, b.col_stride, of_parts(b.batch_stride, part * b.row_stride)};
  data.row_blocks = (rows + Tile::rows - 1) / Tile::rows;
  data.col_blocks = (cols + Tile::cols - 1) / Tile::cols;
  data.group      = 1;
  std::vector<S> sums(static_cast<std::size_t>(batches * parts * rows * cols), S(NAN));
  Impl::MatmulParts<S> to;
  to.data[0]       = sums.data();
  to.row_stride[0] = cols;
  to.col_stride[0] = 1;
  to.batch[0]      = of_parts(parts * rows * cols, rows * cols);
  to.parts         = parts;
  to.inner         = part;
  const Kernel kernel{{{{}, S(1), S(0)}, to, false}, data, copies, copies};
  Results results;
  results.data[0]       = c.memory.data();
  results.row_stride[0] = c.row_stride;
  results.col_stride[0] = c.col_stride;
  results.batch[0]      = c.map();
  results.data[1]       = bias.memory.data();
  results.col_stride[1] = 1;
  results.batch[1]      = bias.map();
  const Impl::MatmulPartsSum<S, AddBias, S, Results> sum{sums.data(),           parts,  batches, rows, cols,
                                                         {{}, S(0.5), S(beta)}, results};
  constexpr int teams = 2;
  for (int league = 0; league < teams; ++league) {
    EmulatedTeam team(Kernel::team_size, Unit::lanes, Kernel::scratch, static_cast<std::uint32_t>(league));
    team.run([&](int rank) { kernel(EmulatedMember{league, teams, rank}); });
  }
  for (int league = 0; league < teams; ++league) {
    EmulatedTeam team(Unit::lanes, Unit::lanes, 16, static_cast<std::uint32_t>(league));
    team.run([&](int rank) { sum(EmulatedMember{league, teams, rank}); });
  }
  for (std::int64_t n = 0; n < batches; ++n) {
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < cols; ++j) {
        double expected = beta * double(before.at(n, i, j)) + double(bias.at(n, 0, j));
        for (std::int64_t k = 0; k < k_count; ++k) expected += 0.5 * double(a.at(n, i, k)) * double(b.at(n, k, j));
        ASSERT_EQ(double(c.at(n, i, j)), double(static_cast<T>(S(expected)))) << n << ' ' << i << ' ' << j;
      }
    }
  }
}

template <class Unit>
class MatmulInTeams : public testing::Test {};
using Units =
    testing::Types<Impl::MmaUnit16<bhalf_t, EmulatedInstructions>, Impl::MmaUnit16<half_t, EmulatedInstructions>,
                   Impl::MmaUnitDouble<EmulatedInstructions>, Impl::MmaUnitTensorFloat<1, EmulatedInstructions>,
                   Impl::MmaUnitTensorFloat<3, EmulatedInstructions>, Impl::FmaUnit<float, 32, EmulatedInstructions>,
                   Impl::FmaUnit<float, 64, EmulatedInstructions>, Impl::FmaUnit<double, 64, EmulatedInstructions>,
                   Impl::FmaUnit<bhalf_t, 64, EmulatedInstructions>, Impl::MfmaUnit<bhalf_t, EmulatedAmdInstructions>,
                   Impl::MfmaUnit<half_t, EmulatedAmdInstructions>, Impl::MfmaUnit<float, EmulatedAmdInstructions>,
                   Impl::MfmaUnit<double, EmulatedAmdInstructions>>;
TYPED_TEST_SUITE(MatmulInTeams, Units);

TYPED_TEST(MatmulInTeams, AreExactInEveryFormWithAndWithoutAsynchronousCopies) {
  using Unit = TypeParam;
  expect_exact<Unit, Impl::MatmulForm::a_along_b_across>(true, 0);
  expect_exact<Unit, Impl::MatmulForm::a_along_b_across>(false, 2);
  expect_exact<Unit, Impl::MatmulForm::a_along_b_along>(true, -1);
  expect_exact<Unit, Impl::MatmulForm::a_along_b_along>(false, 0);
  expect_exact<Unit, Impl::MatmulForm::a_across_b_across>(true, 0);
  expect_exact<Unit, Impl::MatmulForm::a_across_b_across>(false, 0);
}

TYPED_TEST(MatmulInTeams, AreExactByTilesOfFewRows) {
  using Unit = TypeParam;
  if constexpr (Impl::has_few_rows_tile<Unit>) {
    using Tile = Impl::MatmulFewRowsTileOf<Unit>;
    expect_exact<Unit, Impl::MatmulForm::a_along_b_across, Tile>(true, 0);
    expect_exact<Unit, Impl::MatmulForm::a_along_b_across, Tile>(false, 2);
    expect_exact<Unit, Impl::MatmulForm::a_along_b_along, Tile>(true, -1);
    expect_exact<Unit, Impl::MatmulForm::a_along_b_along, Tile>(false, 0);
  } else {
    EXPECT_TRUE(Unit::lanes == 64) << "all units of CUDA have such tiles, but those of devices before sm_80";
  }
}

/// A unit of each kind: what maps and parts add to the kernel knows no types.
template <class Unit>
class MatmulOfRowsAndParts : public testing::Test {};
using SomeUnits =
    testing::Types<Impl::MmaUnit16<bhalf_t, EmulatedInstructions>, Impl::MmaUnitDouble<EmulatedInstructions>,
                   Impl::MmaUnitTensorFloat<3, EmulatedInstructions>, Impl::FmaUnit<float, 32, EmulatedInstructions>,
                   Impl::FmaUnit<bhalf_t, 64, EmulatedInstructions>, Impl::MfmaUnit<half_t, EmulatedAmdInstructions>,
                   Impl::MfmaUnit<double, EmulatedAmdInstructions>>;
TYPED_TEST_SUITE(MatmulOfRowsAndParts, SomeUnits);

TYPED_TEST(MatmulOfRowsAndParts, AreExactForPartsOfTheInnerAxis) {
  using Unit = TypeParam;
  expect_exact_parts<Unit, Impl::MatmulForm::a_along_b_across>(true, 2);
  expect_exact_parts<Unit, Impl::MatmulForm::a_across_b_across>(true, 0);
  expect_exact_parts<Unit, Impl::MatmulForm::a_along_b_along>(false, -1);
}

TYPED_TEST(MatmulOfRowsAndParts, AreExactForRowsByAnIndexAndForSumsOfRows) {
  using Unit = TypeParam;
  expect_exact_rows<Unit, Impl::MatmulForm::a_along_b_across, Impl::MatmulRows::gathered>(true, 0);
  expect_exact_rows<Unit, Impl::MatmulForm::a_along_b_along, Impl::MatmulRows::gathered>(false, 2);
  expect_exact_rows<Unit, Impl::MatmulForm::a_along_b_across, Impl::MatmulRows::summed>(true, -1);
  expect_exact_rows<Unit, Impl::MatmulForm::a_along_b_along, Impl::MatmulRows::summed>(false, 0);
}

}  // namespace
}  // namespace KokkosNNTest
