// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/emulated_heads.hpp"
#include "support/warpgroup_emulation.hpp"

#include <KokkosNN/impl/call/warpgroup_attention_launch.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

// The kernel of attention on Hopper's warpgroups in emulated teams.

namespace KokkosNNTest {
namespace {

namespace Impl = KokkosNN::Impl;
using KokkosNN::bhalf_t;
using KokkosNN::half_t;

constexpr double tolerance = 0.02;  // of weights that are rounded to 16 bits

template <class X_, int dims_>
struct Config {
  using X                   = X_;
  static constexpr int dims = dims_;
  using Kernel              = Impl::AttentionInWarpgroups<X, dims, false, EmulatedHopper>;
  using KernelOfElements    = Impl::AttentionInWarpgroups<X, dims, true, EmulatedHopper>;
};

/// Counts the results that pass through it.
struct Counting {
  std::atomic<std::int64_t>* results;

  float operator()(float result) const {
    ++*results;
    return result;
  }
};
template <class X>
using CountingData = Impl::AttentionDataWith<X, Impl::AttentionEpilogue<Counting, float, X, Impl::ElementTypes<>>>;

/// Runs a league of two teams, which take blocks in turn.
template <class Kernel, class Data>
void run_on(const Data& data, bool writes_units) {
  Impl::AttentionPlan plan;
  plan.bundle       = 2;
  plan.writes_units = writes_units;
  const Kernel kernel =
      Impl::warpgroup_attention<Kernel>(data, plan, [](const auto& boxed) { return EmulatedMap{boxed}; });
  for (int league = 0; league < 2; ++league) {
    EmulatedTeam team(Kernel::team_size, 32, Kernel::scratch, static_cast<std::uint32_t>(league));
    const EmulatedWarpgroups warpgroups;
    team.run([&](int rank) { kernel(EmulatedMember{league, 2, rank}); });
  }
}

template <class C>
void run(EmulatedTrial<typename C::X>& trial, bool writes_units = false) {
  run_on<typename C::Kernel>(trial.prepared(), writes_units);
}

/// Makes the keys and values of the first head NaN that EmulatedRanges' length rules out.
template <class X>
void poison_other_keys(EmulatedTrial<X>& trial) {
  for (std::int64_t j = 97; j < trial.n.keys; ++j) {
    for (std::int64_t d = 0; d < trial.n.dim; ++d) trial.k.at(0, 0, j, d) = X(NAN);
    for (std::int64_t d = 0; d < trial.n.value_dim; ++d) trial.v.at(0, 0, j, d) = X(NAN);
  }
}

template <class C>
class AttentionInWarpgroups : public testing::Test {};
using Configs = testing::Types<Config<bhalf_t, 64>, Config<half_t, 128>, Config<bhalf_t, 192>, Config<half_t, 256>>;
TYPED_TEST_SUITE(AttentionInWarpgroups, Configs);

TYPED_TEST(AttentionInWarpgroups, AreRightOverManyTilesAndBlocks) {
  EmulatedTrial<typename TypeParam::X> trial({2, 2, 1, 200, 300, TypeParam::dims - 7, TypeParam::dims - 24}, true);
  run<TypeParam>(trial);
  trial.expect_right(tolerance);
}

TYPED_TEST(AttentionInWarpgroups, WriteUnits) {
  EmulatedTrial<typename TypeParam::X> trial({1, 1, 1, 70, 130, TypeParam::dims, TypeParam::dims - 8}, true);
  trial.o = {1, 1, 70, TypeParam::dims - 8, true, 4};
  run<TypeParam>(trial, true);
  trial.expect_right(tolerance);
}

TYPED_TEST(AttentionInWarpgroups, KeepToARowsRangeOfKeysWhateverTheOthersHold) {
  using X = typename TypeParam::X;
  EmulatedTrial<X> trial({2, 2, 2, 90, 300, TypeParam::dims, 24}, true);
  const EmulatedRanges ranges;
  ranges.set(trial.data.ranges);
  trial.logit = [&](auto... score) { return ranges.logit(score...); };
  for (std::int64_t d = 0; d < 24; ++d) trial.v.at(0, 0, 3, d) = X(INFINITY);  // for those alone that see it
  poison_other_keys(trial);
  run<TypeParam>(trial);
  trial.expect_right(tolerance);
}

TYPED_TEST(AttentionInWarpgroups, TakeSinks) {
  EmulatedTrial<typename TypeParam::X> trial({1, 3, 1, 50, 100, 40, TypeParam::dims}, true);
  const std::vector<float> sinks{0.5f, 0.5f, 0.5f};
  trial.data.sinks        = {sinks.data(), true};
  trial.data.sink_strides = {0, 1, 0, 0};
  trial.sink              = 0.5;
  run<TypeParam>(trial);
  trial.expect_right(tolerance);
}

TYPED_TEST(AttentionInWarpgroups, TakeBooleansBiasSlopesAndSoftcap) {
  using X = typename TypeParam::X;
  EmulatedTrial<X> trial({1, 3, 1, 50, 200, TypeParam::dims, TypeParam::dims - 8}, true);
  const EmulatedElements elements(50, 200);
  elements.set(trial.data.elements);
  trial.logit = [&](auto... score) { return elements.logit(score...); };
  elements.fill_others(trial.v, TypeParam::dims - 8, X(NAN));  // rows are computed again, key by key
  run_on<typename TypeParam::KernelOfElements>(trial.prepared(), false);
  trial.expect_right(tolerance);
  elements.fill_others(trial.v, TypeParam::dims - 8, X(0.0f));
  run_on<typename TypeParam::KernelOfElements>(trial.prepared(), false);
  trial.expect_right(tolerance);
}

/// Bias of 16 bits, and booleans, whose rows begin at multiples of 16 bytes, are loaded ahead of whole tiles.
TYPED_TEST(AttentionInWarpgroups, LoadRowsOfAMaskAhead) {
  using X = typename TypeParam::X;
  for (const bool is_bias : {true, false}) {
    const std::int64_t queries = 150, keys = 304;
    EmulatedTrial<X> trial({1, 2, 1, queries, keys, TypeParam::dims, 40}, true);
    const AlignedMask<X> mask(queries, keys, is_bias);
    mask.set(trial.data.elements);
    trial.logit = [&](auto... score) { return mask.logit(score...); };
    run_on<typename TypeParam::KernelOfElements>(trial.prepared(), false);
    trial.expect_right(tolerance);
  }
}

TYPED_TEST(AttentionInWarpgroups, TakeASoftcapOfARowsRangeOfKeys) {
  using X = typename TypeParam::X;
  EmulatedTrial<X> trial({2, 2, 2, 90, 300, TypeParam::dims, 24}, true);
  const EmulatedRanges ranges;
  ranges.set(trial.data.ranges);
  trial.data.elements.softcap         = 2;
  trial.data.elements.inverse_softcap = 0.5;
  trial.logit                         = [&](std::int64_t h, std::int64_t i, std::int64_t j, double s) {
    return ranges.logit(h, i, j, 2 * std::tanh(s / 2));
  };
  poison_other_keys(trial);
  run_on<typename TypeParam::KernelOfElements>(trial.prepared(), false);
  trial.expect_right(tolerance);
}

TYPED_TEST(AttentionInWarpgroups, PassEachResultThroughAnEpilogueOnce) {
  using X      = typename TypeParam::X;
  using Data   = CountingData<X>;
  using Kernel = Impl::AttentionInWarpgroups<X, TypeParam::dims, false, EmulatedHopper, Data>;
  EmulatedTrial<X> trial({1, 2, 1, 150, 130, TypeParam::dims, TypeParam::dims - 13}, true);
  for (std::int64_t d = 0; d < 24; ++d) trial.v.at(0, 0, 129, d) = X(INFINITY);  // rows that are computed again
  std::atomic<std::int64_t> results = 0;
  const auto data                   = trial.prepared();
  run_on<Kernel>(Data{data, {{&results}, data.o, data.o_strides, {}, {}}}, false);
  trial.expect_right(tolerance);
  EXPECT_EQ(results, 2 * 150 * (TypeParam::dims - 13));
}

TYPED_TEST(AttentionInWarpgroups, KeepToTheKeysOfAPackedSequence) {
  EmulatedTrial<typename TypeParam::X> trial({1, 4, 2, 450, 360, TypeParam::dims - 3, 24}, true);
  const EmulatedSequences sequences(450, 360);
  sequences.set(trial.data);
  trial.logit = [&](auto... score) { return sequences.logit(score...); };
  run<TypeParam>(trial);
  trial.expect_right(tolerance);
}

/// Keys, and a head of k, that all share.
TYPED_TEST(AttentionInWarpgroups, TakeStridesOfZero) {
  EmulatedTrial<typename TypeParam::X> trial({2, 4, 2, 40, 150, TypeParam::dims, TypeParam::dims}, true);
  trial.k.strides.batch = 0;
  trial.v.strides.head  = 0;
  run<TypeParam>(trial);
  trial.expect_right(tolerance);
}

/// Tiles of each team's blocks, under a causal mask and three more for each block.
std::vector<std::int64_t> shares(std::int64_t heads, std::int64_t blocks, std::int64_t bundle, std::int64_t teams) {
  std::vector<std::int64_t> share(std::size_t(teams), 0);
  std::vector<int> taken(std::size_t(heads * blocks), 0);
  for (std::int64_t team = 0; team < teams; ++team) {
    for (Impl::BlockTurns turns(heads, blocks, bundle, team, teams); turns.exists(); turns.go_on()) {
      ++taken[std::size_t(turns.head() * blocks + turns.number())];
      share[std::size_t(team)] += blocks - turns.number() + 3;
    }
  }
  for (const int times : taken) EXPECT_EQ(times, 1) << heads << " heads of " << blocks << " blocks";
  return share;
}

TEST(BlockTurns, GiveEachBlockToOneTeam) {
  for (const std::int64_t heads : {1, 2, 7, 64}) {
    for (const std::int64_t blocks : {1, 3, 8, 50}) {
      for (const std::int64_t bundle : {1, 2, 5, 100}) {
        for (const std::int64_t teams : {1, 2, 9, 132}) shares(heads, blocks, bundle, teams);
      }
    }
  }
}

TEST(BlockTurns, GiveAllTeamsAboutTheSame) {
  for (const auto& [heads, blocks, bundle] :
       std::vector<std::array<std::int64_t, 3>>{{256, 8, 33}, {64, 32, 8}, {16, 128, 2}, {64, 22, 16}, {16, 86, 4}}) {
    const auto share         = shares(heads, blocks, bundle, 132);
    const std::int64_t total = std::accumulate(share.begin(), share.end(), std::int64_t(0));
    const auto most          = double(*std::max_element(share.begin(), share.end()));
    EXPECT_LE(most, 1.08 * double(total) / 132) << heads << " heads of " << blocks << " blocks";
  }
}

}  // namespace
}  // namespace KokkosNNTest
