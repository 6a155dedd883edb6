// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/types.hpp"
#include "support/ulp.hpp"

#include <KokkosNN/half.hpp>
#include <KokkosNN/impl/host/vector_memory.hpp>

#include <Kokkos_Core.hpp>

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

// The 16-bit types of builds in which Kokkos has none, and a host's vectors of the types that the build has.

namespace KokkosNNTest {

using OwnHalf  = KokkosNN::Impl::Stored16<KokkosNN::Impl::Binary16>;
using OwnBHalf = KokkosNN::Impl::Stored16<KokkosNN::Impl::BFloat16>;

static_assert(std::is_trivially_copyable_v<OwnHalf> && std::is_trivially_default_constructible_v<OwnHalf>);
static_assert(sizeof(KokkosNN::half_t) == 2 && sizeof(KokkosNN::bhalf_t) == 2);
static_assert(!std::is_same_v<KokkosNN::half_t, KokkosNN::bhalf_t>);

/// The formats, by their own facts: bits of the significand without the hidden one, largest exponent.
template <class T>
constexpr int fraction_bits = std::is_same_v<T, OwnHalf> || std::is_same_v<T, Half> ? 10 : 7;
template <class T>
constexpr int largest_exponent = fraction_bits<T> == 10 ? 15 : 127;

template <class T>
std::uint16_t bits_of(const T& value) {
  return std::bit_cast<std::uint16_t>(value);
}

/// The value of the bits, by the standard's definition.
template <class T>
long double meaning(std::uint16_t bits) {
  constexpr int fraction = fraction_bits<T>, bias = largest_exponent<T>;
  const long double sign = bits & 0x8000 ? -1 : 1;
  const int exponent     = (bits & 0x7fff) >> fraction;
  const int significand  = bits & ((1 << fraction) - 1);
  if (exponent == 2 * bias + 1)
    return significand ? std::numeric_limits<long double>::quiet_NaN()
                       : sign * std::numeric_limits<long double>::infinity();
  if (exponent == 0) return sign * std::ldexp(static_cast<long double>(significand), 1 - bias - fraction);
  return sign * std::ldexp(static_cast<long double>(significand + (1 << fraction)), exponent - bias - fraction);
}

/// The number of the format nearest to `value`, of two the even one.
template <class T>
long double nearest(long double value) {
  using Named = std::conditional_t<fraction_bits<T> == 10, Half, BHalf>;
  if (!std::isfinite(value)) return value;
  const long double result = correctly_rounded<Named>(value);
  if (std::fabs(result) <= largest<Named>()) return result;
  return std::copysign(std::numeric_limits<long double>::infinity(), value);
}

::testing::AssertionResult is_same(long double got, long double want) {
  if (std::isnan(want) ? std::isnan(got) : got == want && std::signbit(got) == std::signbit(want))
    return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << static_cast<double>(got) << " instead of " << static_cast<double>(want);
}

/// Floats of all exponents, some of them on the boundary between two numbers of 16 bits or next to it; and special
/// ones.
std::vector<float> interesting_floats() {
  std::vector<float> values{0,
                            65504,
                            65519.996f,
                            65520,
                            65536,
                            3.3961775e38f,
                            std::numeric_limits<float>::max(),
                            std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()};
  std::mt19937 engine(1);
  for (std::uint32_t exponent = 0; exponent < 255; ++exponent) {
    for (int i = 0; i < 64; ++i) {
      std::uint32_t significand = engine() & 0x7fffffu;
      if (i >= 16) {
        const std::uint32_t rest = i % 2 == 0 ? 0x1fffu : 0xffffu;  // what f16 and bf16 round off
        const auto beside_tie    = static_cast<std::uint32_t>(i / 2 % 3 - 1);
        significand              = (significand & ~rest) + (rest >> 1) + 1 + beside_tie;
      }
      values.push_back(std::bit_cast<float>(exponent << 23 | significand));
    }
  }
  const std::size_t positive = values.size();
  for (std::size_t i = 0; i < positive; ++i) values.push_back(-values[i]);
  return values;
}

template <class T>
void every_number_is_what_its_bits_mean() {
  for (int bits = 0; bits < 1 << 16; ++bits) {
    const auto pattern = static_cast<std::uint16_t>(bits);
    const T number     = std::bit_cast<T>(pattern);
    ASSERT_TRUE(is_same(static_cast<float>(number), meaning<T>(pattern))) << "bits " << bits;
    ASSERT_TRUE(is_same(static_cast<double>(number), meaning<T>(pattern))) << "bits " << bits;
    if (!std::isnan(static_cast<float>(number))) {
      ASSERT_EQ(bits_of(T(static_cast<float>(number))), pattern);
    }
  }
}

TEST(Half, EveryNumberIsWhatItsBitsMean) {
  every_number_is_what_its_bits_mean<OwnHalf>();
  every_number_is_what_its_bits_mean<OwnBHalf>();
}

template <class T>
void floats_round_to_the_nearest() {
  for (const float value : interesting_floats()) {
    ASSERT_TRUE(is_same(meaning<T>(bits_of(T(value))), nearest<T>(value))) << value;
  }
}

TEST(Half, FloatsRoundToTheNearest) {
  floats_round_to_the_nearest<OwnHalf>();
  floats_round_to_the_nearest<OwnBHalf>();
}

TEST(Half, MachinesWithoutAnInstructionConvertAlike) {
  using KokkosNN::Impl::Binary16;
  for (int bits = 0; bits < 1 << 16; ++bits) {
    const auto pattern = static_cast<std::uint16_t>(bits);
    ASSERT_TRUE(is_same(Binary16::value_by_integers(pattern), meaning<OwnHalf>(pattern))) << "bits " << bits;
  }
  for (const float value : interesting_floats()) {
    ASSERT_TRUE(is_same(meaning<OwnHalf>(Binary16::bits_by_integers(value)), nearest<OwnHalf>(value))) << value;
  }
}

/// By way of a float they would round twice.
template <class T>
void doubles_round_once() {
  std::mt19937_64 engine(1);
  for (const float value : interesting_floats()) {
    for (const double factor : {1.0, 1 + 0x1p-40, 1 - 0x1p-40}) {
      const double exact = value * factor;
      ASSERT_TRUE(is_same(meaning<T>(bits_of(T(exact))), nearest<T>(exact))) << exact;
    }
  }
  for (int i = 0; i < 1000; ++i) {
    const auto number = static_cast<std::int64_t>(engine()) >> (i % 64);
    ASSERT_TRUE(is_same(meaning<T>(bits_of(T(static_cast<double>(number)))), nearest<T>(static_cast<double>(number))));
  }
}

TEST(Half, DoublesRoundOnce) {
  doubles_round_once<OwnHalf>();
  doubles_round_once<OwnBHalf>();
}

TEST(Half, ComparesAsItsValue) {
  const OwnBHalf nan(std::numeric_limits<float>::quiet_NaN());

  EXPECT_TRUE(OwnHalf(-0.0f) == OwnHalf(0.0f));
  EXPECT_TRUE(OwnHalf(-2) < OwnHalf(-1));
  EXPECT_TRUE(OwnBHalf(3) > 2.5);
  EXPECT_FALSE(nan == nan);
  EXPECT_FALSE(nan < OwnBHalf(1) || nan >= OwnBHalf(1));
}

template <class T>
struct HalfVectors : ::testing::Test {};
using HalfTypes = ::testing::Types<Half, BHalf>;
TYPED_TEST_SUITE(HalfVectors, HalfTypes, ElementNames);

/// Each lane equals, bit by bit, what one number by itself becomes.
TYPED_TEST(HalfVectors, LoadWhatTheNumbersAre) {
  constexpr int lanes = KokkosNN::Impl::lanes_loaded<TypeParam>;
  for (int bits = 0; bits < 1 << 16; bits += lanes) {
    TypeParam numbers[lanes];
    for (int l = 0; l < lanes; ++l) numbers[l] = std::bit_cast<TypeParam>(static_cast<std::uint16_t>(bits + l));
    for (const int count : {lanes, 1, lanes - 1}) {
      float loaded[lanes];
      KokkosNN::Impl::store_vector(loaded, KokkosNN::Impl::load_up_to(numbers, count, 5.0f));
      for (int l = 0; l < lanes; ++l) {
        ASSERT_TRUE(is_same(loaded[l], l < count ? static_cast<float>(numbers[l]) : 5.0f)) << bits + l << ", " << count;
      }
    }
  }
}

TYPED_TEST(HalfVectors, StoreWhatNumbersRoundTo) {
  constexpr int lanes = KokkosNN::Impl::lanes_loaded<TypeParam>;
  std::vector<float> values(interesting_floats());
  values.resize(values.size() / lanes * lanes);
  const auto untouched = std::bit_cast<TypeParam>(std::uint16_t{0x1234});
  for (std::size_t i = 0; i < values.size(); i += lanes) {
    for (const int count : {lanes, 1, lanes - 1}) {
      TypeParam stored[lanes];
      for (TypeParam& number : stored) number = untouched;
      KokkosNN::Impl::store_up_to(stored, KokkosNN::Impl::load_vector(values.data() + i), count);
      for (int l = 0; l < lanes; ++l) {
        const long double want = l < count ? nearest<TypeParam>(values[i + l]) : meaning<TypeParam>(bits_of(untouched));
        ASSERT_TRUE(is_same(meaning<TypeParam>(bits_of(stored[l])), want)) << values[i + l] << ", " << count;
      }
    }
  }
}

#if defined(KOKKOSNN_IMPL_HAS_VECTORS)
TEST(TwoVectors, AreStoredInTheOrderInWhichTheyWereLoaded) {
  using namespace KokkosNN::Impl;
  constexpr int both = 2 * lanes_loaded<BHalf>;
  alignas(vector_bytes) BHalf stored[both];
  BHalf numbers[both];
  for (int bits = 0; bits < 1 << 16; bits += both) {
    for (int l = 0; l < both; ++l) numbers[l] = std::bit_cast<BHalf>(static_cast<std::uint16_t>(bits + l));
    const auto same = [&] {
      for (int l = 0; l < both; ++l) {
        if (!is_same(static_cast<float>(stored[l]), static_cast<float>(numbers[l]))) return false;
      }
      return true;
    };
    store_two_vectors<false>(stored, load_two_vectors(numbers));
    ASSERT_TRUE(same()) << bits;
    store_two_vectors<true>(stored, load_two_vectors(numbers));
    fence_nontemporal_stores();
    ASSERT_TRUE(same()) << bits;
  }
}

TEST(TwoVectors, RoundAsOneDoes) {
  using namespace KokkosNN::Impl;
  constexpr int lanes = lanes_loaded<BHalf>;
  std::vector<float> values(interesting_floats());
  values.resize(values.size() / (2 * lanes) * (2 * lanes));
  for (std::size_t i = 0; i < values.size(); i += 2 * lanes) {
    BHalf two[2 * lanes], one[lanes];
    const TwoVectors<BHalf> pair{load_vector(values.data() + i), load_vector(values.data() + i + lanes)};
    store_two_vectors<false>(two, pair);
    const TwoVectors<BHalf> again = load_two_vectors(two);
    for (const bool is_second : {false, true}) {
      store_vector(one, is_second ? pair.second : pair.first);
      float got[lanes];
      store_vector(got, is_second ? again.second : again.first);
      for (int l = 0; l < lanes; ++l) ASSERT_TRUE(is_same(got[l], static_cast<float>(one[l]))) << values[i + l];
    }
  }
}
#endif

}  // namespace KokkosNNTest
