// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/emulated_heads.hpp"
#include "support/warpgroup_emulation.hpp"

#include <KokkosNN/impl/call/warpgroup_attention_launch.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

// The kernels of attention's gradients on Hopper's warpgroups in emulated teams.

namespace KokkosNNTest {
namespace {

namespace Impl = KokkosNN::Impl;
using KokkosNN::bhalf_t;
using KokkosNN::half_t;

constexpr double tolerance = 0.02;  // of probabilities and gradients that are rounded to 16 bits

template <class X_, int dims_>
struct Config {
  using X                   = X_;
  static constexpr int dims = dims_;
};

/// A trial of the kernels, in leagues of two teams, which take blocks in turn. The table of rows, whose kernel runs on
/// any device, is made here.
template <class C>
struct Trial : EmulatedGradientTrial<typename C::X> {
  using X = typename C::X;
  using EmulatedGradientTrial<X>::EmulatedGradientTrial;
  using EmulatedGradientTrial<X>::data;

  bool writes_units = false;

 private:
  void run_kernels() override {
    if (data.changes_scores()) {
      run_kernels_with<true>();
    } else {
      run_kernels_with<false>();
    }
  }
  template <bool has_elements>
  void run_kernels_with() {
    const auto table = rows<has_elements>();
    run_kernel<Impl::AttentionQueryGradientsInWarpgroups<X, C::dims, has_elements, EmulatedHopper>>(table, false);
    run_kernel<Impl::AttentionKeyGradientsInWarpgroups<X, C::dims, has_elements, EmulatedHopper>>(table, true);
  }

  template <bool has_elements>
  std::vector<Impl::GradientRow<X, has_elements>> rows() {
    std::vector<Impl::GradientRow<X, has_elements>> table(static_cast<std::size_t>(data.shape.all_rows()));
    EmulatedTeam team(1, 1, 16);
    for (std::int64_t n = 0; n < data.blocks(false, 1); ++n) {
      const auto block = data.block(n, false, 1);
      if (block.left == 0) continue;
      const auto row  = data.row_of_head(block.sequence, block.kv_head, block.first);
      const auto seen = data.keys_of(row, block.sequence, 0);
      float delta     = 0;
      for (std::int64_t d = 0; d < data.shape.value_dim; ++d) {
        delta += float(data.o[row.in(data.o_strides) + d]) * float(data.dout[row.in(data.dout_strides) + d]);
      }
      const float lse                         = data.lse[row.in(data.lse_strides)];
      const bool sees                         = lse != -INFINITY;
      const auto place                        = static_cast<std::size_t>(row.in(data.delta_strides));
      auto& entry                             = table[place];
      static_cast<Impl::AttentionRow&>(entry) = {sees ? int(seen.begin) : 0, sees ? int(seen.end) : 0,
                                                 lse * Impl::log2_of_e<float>, delta};
      if constexpr (has_elements) entry.elements = data.mask_of(row, block.sequence);
      data.delta[place] = delta;
    }
    return table;
  }

  template <class Kernel>
  void run_kernel(const std::vector<typename Kernel::Row>& table, bool of_keys) {
    Impl::AttentionPlan plan;
    plan.bundle         = 2;
    plan.writes_units   = writes_units;
    const Kernel kernel = Impl::warpgroup_gradients<Kernel>(data, table.data(), plan, of_keys,
                                                            [](const auto& boxed) { return EmulatedMap{boxed}; });
    for (int league = 0; league < 2; ++league) {
      EmulatedTeam team(Kernel::team_size, 32, Kernel::scratch, static_cast<std::uint32_t>(league));
      const EmulatedWarpgroups warpgroups;
      team.run([&](int rank) { kernel(EmulatedMember{league, 2, rank}); });
    }
  }
};

template <class C>
class GradientsInWarpgroups : public testing::Test {};
using Configs = testing::Types<Config<bhalf_t, 64>, Config<half_t, 128>>;
TYPED_TEST_SUITE(GradientsInWarpgroups, Configs);

TYPED_TEST(GradientsInWarpgroups, AreRightOverManyTilesAndBlocks) {
  Trial<TypeParam> trial({2, 2, 1, 170, 300, TypeParam::dims - 7, TypeParam::dims - 24}, true);
  trial.expect_right(tolerance);
}

TYPED_TEST(GradientsInWarpgroups, WriteUnits) {
  Trial<TypeParam> trial({1, 1, 1, 70, 130, TypeParam::dims, TypeParam::dims - 8}, true);
  trial.dq           = {1, 1, 70, TypeParam::dims, true, 6};
  trial.dk           = {1, 1, 130, TypeParam::dims, true, 7};
  trial.dv           = {1, 1, 130, TypeParam::dims - 8, true, 8};
  trial.writes_units = true;
  trial.expect_right(tolerance);
}

TYPED_TEST(GradientsInWarpgroups, AreOfKeysThatAQuerySeesWhateverTheOthersHold) {
  using X = typename TypeParam::X;
  Trial<TypeParam> trial({2, 2, 2, 90, 300, TypeParam::dims, 24}, true);
  const EmulatedRanges ranges;
  ranges.set(trial.data.ranges);
  trial.logit = [&](auto... score) { return ranges.logit(score...); };
  for (std::int64_t j = 97; j < 300; ++j) {
    for (std::int64_t d = 0; d < TypeParam::dims; ++d) trial.k.at(0, 0, j, d) = X(NAN);
    for (std::int64_t d = 0; d < 24; ++d) trial.v.at(0, 0, j, d) = X(INFINITY);
  }
  for (std::int64_t d = 0; d < 24; ++d) trial.dout.at(0, 1, 5, d) = X(NAN);  // a query that sees no key
  trial.expect_right(tolerance);
}

TYPED_TEST(GradientsInWarpgroups, TakeBooleansBiasSlopesAndSoftcap) {
  using X = typename TypeParam::X;
  Trial<TypeParam> trial({1, 3, 1, 90, 200, TypeParam::dims, 32}, true);
  const EmulatedElements elements(90, 200);
  elements.set(trial.data.elements);
  trial.logit = [&](auto... score) { return elements.logit(score...); };
  trial.slope = [](double s) { return 1 - std::tanh(s / 2) * std::tanh(s / 2); };
  trial.expect_right(tolerance);
  elements.fill_others(trial.v, 32, X(NAN));  // keys that no row sees
  trial.expect_right(tolerance);
}

TYPED_TEST(GradientsInWarpgroups, LoadRowsOfAMaskAhead) {
  using X = typename TypeParam::X;
  for (const bool is_bias : {true, false}) {
    const std::int64_t queries = 150, keys = 304;
    Trial<TypeParam> trial({1, 2, 1, queries, keys, TypeParam::dims, 40}, true);
    const AlignedMask<X> mask(queries, keys, is_bias);
    mask.set(trial.data.elements);
    trial.logit = [&](auto... score) { return mask.logit(score...); };
    trial.expect_right(tolerance);
  }
}

TYPED_TEST(GradientsInWarpgroups, KeepToTheTokensOfAPackedSequence) {
  Trial<TypeParam> trial({1, 4, 2, 450, 360, TypeParam::dims - 3, 24}, true);
  const EmulatedSequences sequences(450, 360);
  sequences.set(trial.data);
  trial.logit = [&](auto... score) { return sequences.logit(score...); };
  trial.expect_right(tolerance);
}

}  // namespace
}  // namespace KokkosNNTest
