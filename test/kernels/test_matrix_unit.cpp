// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/team_emulation.hpp"

#include <KokkosNN/impl/gpu/device/matrix_unit.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

// Every matrix unit multiplies tiles as a plain loop does: those of tensor cores in an emulated team, whose fragments
// are the PTX ISA's and CDNA's.

namespace KokkosNNTest {
namespace {

namespace Impl = KokkosNN::Impl;
using KokkosNN::bhalf_t;
using KokkosNN::half_t;

enum class From { along, across };

constexpr int inner = 48;  ///< columns of A; a tile's rows of 96 bytes and more have chunks that are no power of two

template <class T>
std::vector<T> small_numbers(int n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<T> values(static_cast<std::size_t>(n));
  for (T& x : values) x = static_cast<T>((static_cast<int>(random() % 33) - 16) / 8.0f);  // every format has them
  return values;
}

/// A tile of `rows` x `cols` elements value(row, col), by asynchronous copies of the calling threads.
template <class Unit, int row_bytes, bool along, class Value>
void fill(typename Unit::Address tile, int rows, int rank, std::vector<typename Unit::Element>& from,
          const Value& value) {
  using T                 = typename Unit::Element;
  constexpr int per_chunk = 16 / int(sizeof(T));
  constexpr int chunks    = row_bytes / 16;
  for (int i = rank; i < rows * chunks; i += Unit::lanes) {
    T* const chunk = from.data() + i * per_chunk;
    for (int j = 0; j < per_chunk; ++j) chunk[j] = value(i / chunks, i % chunks * per_chunk + j);
    const int place = along ? Unit::template along_place<row_bytes>(i / chunks, i % chunks)
                            : Unit::template across_place<row_bytes>(i / chunks, i % chunks);
    Unit::copy_async(tile + place, chunk, 16);
  }
  Unit::commit();
}

/// One warp multiplies A of 16 x 48 by B of 48 x 16, then the result, as a left operand, by another B of 16 x 16.
template <class Unit>
struct Products {
  using T          = typename Unit::Element;
  using R          = typename Unit::Accumulated;
  std::vector<T> a = small_numbers<T>(16 * inner, 1), b = small_numbers<T>(inner * 16, 2),
                 second  = small_numbers<T>(16 * 32, 3);
  std::vector<R> c       = std::vector<R>(16 * 16, NAN);
  std::vector<R> c2      = std::vector<R>(16 * 16, NAN);
  std::vector<R> maximum = std::vector<R>(16, NAN), sum = std::vector<R>(16, NAN);
  std::vector<T> stored             = std::vector<T>(16 * 32);
  std::vector<T> copies             = std::vector<T>(4096 + 16);
  static constexpr int bytes        = int(sizeof(T));
  static constexpr int scratch      = 4 * 64 * 64 * bytes;
  static constexpr int along_bytes  = inner * bytes;
  static constexpr int across_bytes = 32 * bytes;  // columns 16 to 31 are those of the matrix

  template <From a_from, From b_from, class Barrier>
  void operator()(void* memory, int lane, const Barrier& barrier) {
    const auto a_tile      = Unit::address(memory);
    const auto b_tile      = a_tile + 64 * 64 * bytes;
    const auto second_tile = b_tile + 64 * 64 * bytes;
    const auto store_tile  = second_tile + 64 * 64 * bytes;
    if constexpr (a_from == From::along) {
      fill<Unit, along_bytes, true>(a_tile, 16, lane, aligned(0), [&](int r, int k) { return a[r * inner + k]; });
    } else {
      fill<Unit, across_bytes, false>(a_tile, inner, lane, aligned(0),
                                      [&](int k, int r) { return r < 16 ? T(NAN) : a[(r - 16) * inner + k]; });
    }
    Unit::template wait<0>();
    barrier();
    if constexpr (b_from == From::along) {
      fill<Unit, along_bytes, true>(b_tile, 16, lane, aligned(1), [&](int n, int k) { return b[k * 16 + n]; });
    } else {
      fill<Unit, across_bytes, false>(b_tile, inner, lane, aligned(1),
                                      [&](int k, int n) { return n < 16 ? T(NAN) : b[k * 16 + n - 16]; });
    }
    Unit::template wait<0>();
    barrier();
    fill<Unit, across_bytes, false>(second_tile, 16, lane, aligned(2),
                                    [&](int k, int n) { return second[k * 32 + n]; });
    typename Unit::C acc;
    Unit::zero(acc);
    for (int k = 0; k < inner; k += Unit::K) {
      typename Unit::A fa;
      typename Unit::B fb;
      if constexpr (a_from == From::along)
        fa = Unit::template load_a<along_bytes>(a_tile, 0, k, lane);
      else
        fa = Unit::template load_a_columns<across_bytes>(a_tile, k, 16, lane);
      if constexpr (b_from == From::along)
        fb = Unit::template load_b_columns<along_bytes>(b_tile, 0, k, lane);
      else
        fb = Unit::template load_b<across_bytes>(b_tile, k, 16, lane);
      Unit::multiply_add(acc, fa, fb);
    }
    for (int r = 0; r < Unit::rows; ++r) {
      R row_max = acc.value[r][0], row_sum = 0;
      for (int j = 0; j < Unit::cols; ++j) {
        c[Unit::row_of(r, lane) * 16 + Unit::col_of(j, lane)] = acc.value[r][j];
        row_max                                               = std::fmax(row_max, acc.value[r][j]);
        row_sum += acc.value[r][j];
      }
      maximum[Unit::row_of(r, lane)] = Unit::row_max(row_max);
      sum[Unit::row_of(r, lane)]     = Unit::row_sum(row_sum);
    }
    R factor[Unit::rows];
    for (int r = 0; r < Unit::rows; ++r) factor[r] = R(1) / R(16 << Unit::row_of(r, lane) % 2);
    Unit::template store<across_bytes>(store_tile, 0, 16, lane, acc, factor);
    // The second product has small integers, which every format holds.
    for (auto& row : acc.value) {
      for (R& x : row) x = std::nearbyint(x / 8);
    }
    typename Unit::C acc2;
    Unit::zero(acc2);
    Unit::template wait<0>();
    barrier();
    multiply_parts<0>(acc2, acc, second_tile, lane);
    for (int r = 0; r < Unit::rows; ++r) {
      for (int j = 0; j < Unit::cols; ++j) {
        c2[Unit::row_of(r, lane) * 16 + Unit::col_of(j, lane)] = acc2.value[r][j];
      }
    }
    barrier();
    for (int i = lane; i < 16 * 16; i += Unit::lanes) {
      const int r = i / 16, col = 16 + i % 16, per_chunk = 16 / bytes;
      stored[r * 32 + col] = Unit::template load<T>(
          store_tile + Unit::template along_place<across_bytes>(r, col / per_chunk) + col % per_chunk * bytes);
    }
  }

  template <int part>
  static void multiply_parts(typename Unit::C& to, const typename Unit::C& from, typename Unit::Address tile,
                             int lane) {
    if constexpr (part < 16 / Unit::K) {
      Unit::multiply_add(to, Unit::template operand<part>(from, lane),
                         Unit::template load_b_for<across_bytes, part>(tile, 0, 16, lane));
      multiply_parts<part + 1>(to, from, tile, lane);
    }
  }

  /// Memory of its own for the copies of each tile, from a boundary of 16 bytes on.
  std::vector<T>& aligned(int number) {
    auto& memory = sources[number];
    if (memory.empty()) memory.resize(64 * 64);
    return memory;
  }
  std::vector<T> sources[3];

  void check() const {
    for (int r = 0; r < 16; ++r) {
      double maximum_of_row = -INFINITY, sum_of_row = 0;
      double c2_expected[16] = {};
      for (int j = 0; j < 16; ++j) {
        double expected = 0;
        for (int k = 0; k < inner; ++k) expected += double(a[r * inner + k]) * double(b[k * 16 + j]);
        ASSERT_EQ(double(c[r * 16 + j]), expected) << r << ' ' << j;
        maximum_of_row = std::fmax(maximum_of_row, expected);
        sum_of_row += expected;
        const double rounded = std::nearbyint(expected / 8);
        for (int n = 0; n < 16; ++n) c2_expected[n] += rounded * double(second[j * 32 + 16 + n]);
        const double factor = 1.0 / (16 << r % 2);
        ASSERT_EQ(double(stored[r * 32 + 16 + j]), double(T(R(expected * factor)))) << r << ' ' << j;
      }
      ASSERT_EQ(double(maximum[r]), maximum_of_row);
      ASSERT_EQ(double(sum[r]), sum_of_row);
      for (int n = 0; n < 16; ++n) ASSERT_EQ(double(c2[r * 16 + n]), c2_expected[n]) << r << ' ' << n;
    }
  }
};

template <class Unit, From a_from, From b_from>
void run_one() {
  Products<Unit> products;
  if constexpr (std::is_same_v<typename Unit::Instructions, Impl::PlainInstructions>) {
    std::vector<Impl::MatrixChunk> memory(products.scratch / 16);
    products.template operator()<a_from, b_from>(memory.data(), 0, [] {});
  } else {
    EmulatedTeam team(Unit::lanes, Unit::lanes, products.scratch);
    team.run([&](int rank) {
      products.template operator()<a_from, b_from>(team.scratch_begin(), rank, [&] { team.barrier(); });
    });
  }
  products.check();
}

template <class Unit>
class MatrixUnits : public testing::Test {};

using Units =
    testing::Types<Impl::MmaUnit16<bhalf_t, EmulatedInstructions>, Impl::MmaUnit16<half_t, EmulatedInstructions>,
                   Impl::MmaUnitDouble<EmulatedInstructions>, Impl::MmaUnitTensorFloat<1, EmulatedInstructions>,
                   Impl::MmaUnitTensorFloat<3, EmulatedInstructions>, Impl::FmaUnit<float, 32, EmulatedInstructions>,
                   Impl::FmaUnit<double, 64, EmulatedInstructions>, Impl::FmaUnit<bhalf_t, 64, EmulatedInstructions>,
                   Impl::FmaUnit<half_t, 32, EmulatedInstructions>, Impl::FmaUnit<float, 1>, Impl::FmaUnit<double, 1>,
                   Impl::FmaUnit<bhalf_t, 1>, Impl::MfmaUnit<bhalf_t, EmulatedAmdInstructions>,
                   Impl::MfmaUnit<half_t, EmulatedAmdInstructions>, Impl::MfmaUnit<float, EmulatedAmdInstructions>,
                   Impl::MfmaUnit<double, EmulatedAmdInstructions>>;
TYPED_TEST_SUITE(MatrixUnits, Units);

TYPED_TEST(MatrixUnits, MultiplyTilesOfEitherOrientationAsALoopDoes) {
  run_one<TypeParam, From::along, From::across>();
  run_one<TypeParam, From::along, From::along>();
  run_one<TypeParam, From::across, From::across>();
  run_one<TypeParam, From::across, From::along>();
}

/// The value that tensor cores take.
double as_taken(std::uint32_t bits) { return double(Kokkos::bit_cast<float>(bits & 0xffffe000u)); }

TEST(MatrixUnit, TwoTensorFloatsAreAFloatAndKeepSpecialValues) {
  for (const float x : {1.2345678f, -3.1415927f, 1e-20f, 7.77e25f}) {
    std::uint32_t bits[2];
    Impl::split_tensor_float(x, bits[0], bits[1]);
    const double error = std::abs((as_taken(bits[0]) + as_taken(bits[1]) - double(x)) / double(x));
    EXPECT_LE(error, 0x1p-21) << x;
    EXPECT_LE(std::abs(as_taken(Impl::tensor_float_bits(x)) - double(x)), 0x1p-11 * std::abs(double(x))) << x;
  }
  std::uint32_t infinite[2];
  Impl::split_tensor_float(INFINITY, infinite[0], infinite[1]);
  EXPECT_TRUE(std::isnan(as_taken(infinite[1])));
  for (const std::uint32_t nan : {0x7fffffffu, 0xffffffffu, 0x7f800001u}) {
    std::uint32_t bits[2];
    Impl::split_tensor_float(Kokkos::bit_cast<float>(nan), bits[0], bits[1]);
    EXPECT_TRUE(std::isnan(as_taken(bits[1]))) << nan;
    EXPECT_TRUE(std::isnan(as_taken(Impl::tensor_float_bits(Kokkos::bit_cast<float>(nan))))) << nan;
  }
  EXPECT_EQ(as_taken(Impl::tensor_float_bits(INFINITY)), INFINITY);
}

TEST(MatrixUnit, ACopyThatNobodyWaitedForIsNaN) {
  EmulatedTeam team(64, 32, 4096);
  std::vector<Impl::MatrixChunk> source(64, Impl::MatrixChunk{{1, 2, 3, 4}});
  std::vector<float> early(64), late(64), partly(64);
  team.run([&](int rank) {
    const auto to = EmulatedInstructions::address(team.scratch_begin()) + static_cast<std::uint32_t>(rank * 16);
    EmulatedInstructions::copy_async(to, &source[rank], rank % 2 == 0 ? 16 : 8);
    EmulatedInstructions::commit();
    early[rank] = EmulatedInstructions::load<float>(to);
    EmulatedInstructions::wait<0>();
    late[rank]   = EmulatedInstructions::load<float>(to + 4);
    partly[rank] = EmulatedInstructions::load<float>(to + 12);
  });
  for (int i = 0; i < 64; ++i) {
    EXPECT_TRUE(std::isnan(early[i]));
    EXPECT_EQ(Kokkos::bit_cast<std::uint32_t>(late[i]), 2u);
    EXPECT_EQ(Kokkos::bit_cast<std::uint32_t>(partly[i]), i % 2 == 0 ? 4u : 0u);
  }
}

TEST(MatrixUnit, AnEmulatedTeamTellsOfLanesApartAndOfAccessesOutside) {
  EmulatedTeam apart(32, 32, 256);
  EXPECT_THROW(apart.run([](int rank) {
    if (rank < 16)
      EmulatedInstructions::any(true);
    else
      EmulatedInstructions::exchange(1, 1);
  }),
               std::logic_error);
  EmulatedTeam outside(32, 32, 256);
  EXPECT_THROW(outside.run([](int rank) { EmulatedInstructions::store(std::uint32_t(rank * 16), 1.0); }),
               std::logic_error);
  EmulatedTeam waiting(32, 32, 256);
  EXPECT_THROW(waiting.run([&](int rank) {
    if (rank > 0) waiting.barrier();
  }),
               std::logic_error);
}

}  // namespace
}  // namespace KokkosNNTest
