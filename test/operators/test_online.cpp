// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/inputs.hpp"
#include "support/types.hpp"
#include "support/ulp.hpp"

#include "reference/softmax.hpp"

#include <KokkosNN/online.hpp>

#include <Kokkos_Core.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace KokkosNNTest {

template <class T>
class Online : public ::testing::Test {
 protected:
  using State = KokkosNN::MaxSumExp<T>;

  static constexpr T infinity = std::numeric_limits<T>::infinity();
  static constexpr T nan      = std::numeric_limits<T>::quiet_NaN();

  static State of(std::initializer_list<T> values) {
    State state;
    for (T value : values) state.push(value);
    return state;
  }

  /// States of all kinds: nothing, masked, one value, many, far apart.
  static std::vector<State> samples() {
    return {of({}),        of({-infinity}),        of({T(0)}),           of({T(-3.5), T(2.25)}),
            of({T(1e4)}),  of({T(-1e4), T(-1e4)}), of({T(88), T(-88)}),  of({T(0.1), T(0.2), T(0.3)}),
            of({T(1e30)}), of({T(-1e30)}),         of({T(7), -infinity})};
  }
};

using FloatingTypes = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Online, FloatingTypes, ElementNames);

template <class T>
bool equal(const KokkosNN::MaxSumExp<T>& a, const KokkosNN::MaxSumExp<T>& b) {
  return a.max == b.max && a.sum == b.sum;
}

TYPED_TEST(Online, TheDefaultIsMinusInfinityAndZero) {
  const KokkosNN::MaxSumExp<TypeParam> identity;

  EXPECT_EQ(identity.max, -TestFixture::infinity);
  EXPECT_EQ(identity.sum, TypeParam(0));
  EXPECT_EQ(identity.lse(), -TestFixture::infinity);
}

TYPED_TEST(Online, TheDefaultIsTheIdentityOfMergeOnBothSides) {
  const KokkosNN::MaxSumExp<TypeParam> identity;

  for (const auto& state : TestFixture::samples()) {
    EXPECT_TRUE(equal(merge(identity, state), state));
    EXPECT_TRUE(equal(merge(state, identity), state));
  }
}

TYPED_TEST(Online, MergeCommutesBitForBit) {
  for (const auto& a : TestFixture::samples()) {
    for (const auto& b : TestFixture::samples()) {
      const auto ab = merge(a, b), ba = merge(b, a);

      EXPECT_TRUE(equal(ab, ba)) << a.max << " " << a.sum << " with " << b.max << " " << b.sum;
    }
  }
}

TYPED_TEST(Online, MergeAssociatesWithinRounding) {
  const double tolerance = 8 * std::numeric_limits<TypeParam>::epsilon();
  for (const auto& a : TestFixture::samples()) {
    for (const auto& b : TestFixture::samples()) {
      for (const auto& c : TestFixture::samples()) {
        const auto left = merge(merge(a, b), c), right = merge(a, merge(b, c));

        EXPECT_EQ(left.max, right.max);
        // exp(x - max) of a rounded difference: relative error |x - max| eps, and the sums here hold one large term.
        EXPECT_NEAR(left.sum, right.sum, 200 * tolerance * left.sum);
      }
    }
  }
}

TYPED_TEST(Online, MinusInfinityAddsNothingAndNeverMakesANaN) {
  const auto masked = TestFixture::of({-TestFixture::infinity, -TestFixture::infinity});
  const auto before = TestFixture::of({-TestFixture::infinity, TypeParam(2)});
  const auto after  = TestFixture::of({TypeParam(2), -TestFixture::infinity});

  EXPECT_TRUE(equal(masked, KokkosNN::MaxSumExp<TypeParam>{}));
  EXPECT_TRUE(equal(merge(masked, masked), masked));
  EXPECT_EQ(masked.lse(), -TestFixture::infinity);
  EXPECT_TRUE(equal(before, TestFixture::of({TypeParam(2)})));
  EXPECT_TRUE(equal(after, TestFixture::of({TypeParam(2)})));
}

TYPED_TEST(Online, ANaNStaysWhateverComesBeforeAndAfter) {
  for (const auto& other : TestFixture::samples()) {
    const auto state = TestFixture::of({TestFixture::nan});

    EXPECT_TRUE(std::isnan(merge(state, other).lse()));
    EXPECT_TRUE(std::isnan(merge(other, state).lse()));
  }
  EXPECT_TRUE(std::isnan(TestFixture::of({TypeParam(1), TestFixture::nan, TypeParam(1e5)}).lse()));
  EXPECT_TRUE(std::isnan(TestFixture::of({-TestFixture::infinity, TestFixture::nan, -TestFixture::infinity}).lse()));
}

TYPED_TEST(Online, PlusInfinityIsTheLogSumExpWhateverComesBeforeAndAfterButANaN) {
  const TypeParam inf = TestFixture::infinity, nan = TestFixture::nan;
  const auto state = TestFixture::of({inf});
  for (const auto& other : TestFixture::samples()) {
    EXPECT_EQ(merge(state, other).lse(), inf);
    EXPECT_EQ(merge(other, state).lse(), inf);
    EXPECT_EQ(merge(merge(state, other), merge(other, state)).lse(), inf);
    EXPECT_TRUE(equal(merge(state, other), merge(other, state)));
  }
  EXPECT_EQ(TestFixture::of({-inf, inf, TypeParam(3), inf}).lse(), inf);
  for (const auto& values : {std::vector<TypeParam>{inf, nan}, {nan, inf}, {inf, 1, nan, inf}, {-inf, nan, 1, inf}}) {
    KokkosNN::MaxSumExp<TypeParam> first, second;
    for (const TypeParam value : values) first.push(value);
    second.push(inf);

    EXPECT_TRUE(std::isnan(first.lse()));
    EXPECT_TRUE(std::isnan(merge(first, second).lse()));
    EXPECT_TRUE(std::isnan(merge(second, first).lse()));
  }
}

TYPED_TEST(Online, PushingValuesGivesTheLogSumExpOfTheReference) {
  for (const Recipe recipe : all_recipes) {
    InputRow input(recipe, 1, 1000);
    std::vector<TypeParam> values(1000);
    for (auto& value : values) value = static_cast<TypeParam>(input.next());
    KokkosNN::MaxSumExp<TypeParam> state;

    for (const auto& value : values) state.push(value);

    const Reference::Row<TypeParam> row{values.data(), 1000};
    const auto magnitude = std::max(1.0L, Reference::magnitude_of_max(row, 1));
    // A running sum of a thousand terms, each with the error of a rounded difference: not the kernels' tree.
    EXPECT_LE(ulp_error<TypeParam>(state.lse(), Reference::logsumexp(row, 1), magnitude), 100) << to_string(recipe);
    EXPECT_EQ(state.max, *std::max_element(values.begin(), values.end()));
  }
}

/// Folds a View of values; a functor and no lambda, so that any compiler takes it.
template <class T>
struct PushValue {
  Kokkos::View<const T*, Memory> values;
  KOKKOS_FUNCTION void operator()(int i, KokkosNN::MaxSumExp<T>& state) const { state.push(values(i)); }
};

/// Folds a View's values at team level: each team folds its own block of 100.
template <class T>
struct PushBlock {
  Kokkos::View<const T*, Memory> values;
  Kokkos::View<KokkosNN::MaxSumExp<T>*, Memory> states;
  KOKKOS_FUNCTION void operator()(const Kokkos::TeamPolicy<Exec>::member_type& member) const {
    KokkosNN::MaxSumExp<T> state;
    const int block = member.league_rank();
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(member, 100),
        [&](int i, KokkosNN::MaxSumExp<T>& into) { into.push(values(100 * block + i)); },
        KokkosNN::MaxSumExpReducer<T>(state));
    Kokkos::single(Kokkos::PerTeam(member), [&] { states(block) = state; });
  }
};

template <class T>
Kokkos::View<T*, Memory> values_on_device(std::vector<T>& host) {
  InputRow input(Recipe::wide, 3, static_cast<std::int64_t>(host.size()));
  for (auto& value : host) value = static_cast<T>(input.next());
  Kokkos::View<T*, Memory> values("values", host.size());
  Kokkos::deep_copy(values, Kokkos::View<const T*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>(
                                host.data(), host.size()));
  return values;
}

TYPED_TEST(Online, TheReducerFoldsARangePolicy) {
  std::vector<TypeParam> host(1000);
  const auto values = values_on_device(host);
  KokkosNN::MaxSumExp<TypeParam> state;

  Kokkos::parallel_reduce("range", Kokkos::RangePolicy<Exec>(0, 1000), PushValue<TypeParam>{values},
                          KokkosNN::MaxSumExpReducer<TypeParam>(state));

  const Reference::Row<TypeParam> row{host.data(), 1000};
  EXPECT_LE(ulp_error<TypeParam>(state.lse(), Reference::logsumexp(row, 1), Reference::magnitude_of_max(row, 1)), 100);
}

TYPED_TEST(Online, TheReducerOfValuesWithPlusInfinityHasItAsLogSumExp) {
  std::vector<TypeParam> host(1000);
  const auto values = values_on_device(host);
  for (const int at : {17, 600}) Kokkos::deep_copy(Kokkos::subview(values, at), TestFixture::infinity);
  KokkosNN::MaxSumExp<TypeParam> state;

  Kokkos::parallel_reduce("range", Kokkos::RangePolicy<Exec>(0, 1000), PushValue<TypeParam>{values},
                          KokkosNN::MaxSumExpReducer<TypeParam>(state));

  EXPECT_EQ(state.lse(), TestFixture::infinity);
}

TYPED_TEST(Online, TheReducerOfAnEmptyRangeIsTheIdentity) {
  std::vector<TypeParam> host(1);
  const auto values = values_on_device(host);
  KokkosNN::MaxSumExp<TypeParam> state{TypeParam(5), TypeParam(5)};

  Kokkos::parallel_reduce("empty", Kokkos::RangePolicy<Exec>(0, 0), PushValue<TypeParam>{values},
                          KokkosNN::MaxSumExpReducer<TypeParam>(state));

  EXPECT_TRUE(equal(state, KokkosNN::MaxSumExp<TypeParam>{}));
}

TYPED_TEST(Online, TheReducerFoldsInsideATeam) {
  std::vector<TypeParam> host(1000);
  const auto values = values_on_device(host);
  Kokkos::View<KokkosNN::MaxSumExp<TypeParam>*, Memory> states("states", 10);

  Kokkos::parallel_for("team", Kokkos::TeamPolicy<Exec>(10, Kokkos::AUTO), PushBlock<TypeParam>{values, states});

  const auto result = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), states);
  for (int block = 0; block < 10; ++block) {
    const Reference::Row<TypeParam> row{host.data() + 100 * block, 100};
    const auto magnitude = Reference::magnitude_of_max(row, 1);
    EXPECT_LE(ulp_error<TypeParam>(result(block).lse(), Reference::logsumexp(row, 1), magnitude), 100) << block;
  }
}

TYPED_TEST(Online, TheReducerWritesAViewToo) {
  std::vector<TypeParam> host(1000);
  const auto values = values_on_device(host);
  Kokkos::View<KokkosNN::MaxSumExp<TypeParam>, Memory> state("state");

  Kokkos::parallel_reduce("view", Kokkos::RangePolicy<Exec>(0, 1000), PushValue<TypeParam>{values},
                          KokkosNN::MaxSumExpReducer<TypeParam, Memory>(state));

  const auto result = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), state);
  EXPECT_EQ(result().max, *std::max_element(host.begin(), host.end()));
}

}  // namespace KokkosNNTest
