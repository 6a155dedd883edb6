// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/emulated_heads.hpp"

#include <KokkosNN/impl/gpu/attention_gradient_tiles.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>

// A GPU's kernels of attention's gradients on a matrix unit in an emulated team, by the units and the tiles of CUDA
// and HIP.

namespace KokkosNNTest {
namespace {

namespace Impl = KokkosNN::Impl;
using KokkosNN::bhalf_t;
using KokkosNN::half_t;

/// A trial of the kernels.
template <class Unit, int dims, bool has_elements>
struct Trial : EmulatedGradientTrial<typename Unit::Element> {
  using Base    = EmulatedGradientTrial<typename Unit::Element>;
  using Queries = Impl::AttentionQueryGradientsInTiles<Unit, dims, has_elements>;
  template <bool of_keys, bool of_values>
  using Keys = Impl::AttentionKeyGradientsInTiles<Unit, dims, has_elements, of_keys, of_values>;
  using Base::Base;

 private:
  void run_kernels() override {
    run_kernel<Queries>();
    if constexpr (Impl::AttentionGradientTilesOf<Unit, dims>::joins_keys_and_values) {
      run_kernel<Keys<true, true>>();
    } else {
      run_kernel<Keys<false, true>>();
      run_kernel<Keys<true, false>>();
    }
  }
  template <class Kernel>
  void run_kernel() {
    Kernel kernel;
    kernel.data        = this->data;
    kernel.copies_q    = this->copies;
    kernel.copies_k    = this->copies;
    kernel.copies_v    = this->copies;
    kernel.copies_dout = this->copies;
    run_emulated(kernel);
  }
};

template <class C>
class AttentionGradientsInTeams : public testing::Test {};
using Configs = testing::Types<EmulatedConfig<EmulatedMma<bhalf_t>, 64>, EmulatedConfig<EmulatedMma<half_t>, 128>,
                               EmulatedConfig<EmulatedMma<bhalf_t>, 256>, EmulatedConfig<EmulatedMmaDouble, 64>,
                               EmulatedConfig<EmulatedMmaDouble, 128>, EmulatedConfig<EmulatedFma<float>, 64>,
                               EmulatedConfig<EmulatedFma<float>, 128>, EmulatedConfig<EmulatedFma<float>, 256>,
                               EmulatedConfig<EmulatedFma<double>, 128>, EmulatedConfig<EmulatedMfma<bhalf_t>, 64>,
                               EmulatedConfig<EmulatedMfma<half_t>, 128>, EmulatedConfig<EmulatedMfma<bhalf_t>, 256>,
                               EmulatedConfig<EmulatedMfma<float>, 64>, EmulatedConfig<EmulatedMfma<float>, 128>,
                               EmulatedConfig<EmulatedMfma<float>, 256>, EmulatedConfig<EmulatedMfma<double>, 64>,
                               EmulatedConfig<EmulatedMfma<double>, 128>>;
TYPED_TEST_SUITE(AttentionGradientsInTeams, Configs);

TYPED_TEST(AttentionGradientsInTeams, AreRightWithAndWithoutAsynchronousCopies) {
  for (const bool aligned : {true, false}) {
    Trial<typename TypeParam::Unit, TypeParam::dims, false> trial(
        {1, 2, 1, 75, 70, TypeParam::dims - 7, TypeParam::dims - 40}, aligned);
    trial.expect_right(TypeParam::tolerance);
  }
}

TYPED_TEST(AttentionGradientsInTeams, AreOfKeysThatAQuerySeesWhateverTheOthersHold) {
  Trial<typename TypeParam::Unit, TypeParam::dims, false> trial({2, 2, 2, 90, 140, TypeParam::dims, 24}, true);
  trial.data.scale = -trial.data.scale;
  const EmulatedRanges ranges;
  ranges.set(trial.data.ranges);
  trial.logit = [&](auto... score) { return ranges.logit(score...); };
  using X     = typename TypeParam::X;
  for (std::int64_t j = 97; j < 140; ++j) {
    for (std::int64_t d = 0; d < TypeParam::dims; ++d) trial.k.at(0, 0, j, d) = X(NAN);
    for (std::int64_t d = 0; d < 24; ++d) trial.v.at(0, 0, j, d) = X(INFINITY);
  }
  for (std::int64_t d = 0; d < 24; ++d) trial.dout.at(0, 1, 5, d) = X(NAN);  // a query that sees no key
  trial.expect_right(TypeParam::tolerance);
}

TYPED_TEST(AttentionGradientsInTeams, KeepToTheTokensOfAPackedSequence) {
  Trial<typename TypeParam::Unit, TypeParam::dims, false> trial({1, 4, 2, 90, 160, TypeParam::dims - 3, 24}, false);
  const EmulatedSequences sequences(90, 160);
  sequences.set(trial.data);
  trial.logit = [&](auto... score) { return sequences.logit(score...); };
  trial.expect_right(TypeParam::tolerance);
}

TYPED_TEST(AttentionGradientsInTeams, TakeBooleansBiasSlopesAndSoftcap) {
  Trial<typename TypeParam::Unit, TypeParam::dims, true> trial({1, 3, 1, 50, 100, 40, TypeParam::dims}, false);
  const EmulatedElements elements(50, 100);
  elements.set(trial.data.elements);
  trial.logit = [&](auto... score) { return elements.logit(score...); };
  trial.slope = [](double s) { return 1 - std::tanh(s / 2) * std::tanh(s / 2); };
  elements.fill_others(trial.v, TypeParam::dims, typename TypeParam::X(NAN));
  trial.expect_right(TypeParam::tolerance);
}

TYPED_TEST(AttentionGradientsInTeams, DropWeights) {
  Trial<typename TypeParam::Unit, TypeParam::dims, true> trial({2, 4, 2, 43, 70, 40, TypeParam::dims}, true);
  drop_weights(trial.data, 4);
  trial.expect_right(2 * TypeParam::tolerance);  // as the weights are larger
}

/// Teams of one kernel fit into CDNA's LDS side by side, with a mask of elements, too.
template <class T, int dims>
constexpr bool fits_lds() {
  using Of                    = Trial<EmulatedMfma<T>, dims, true>;
  using Queries               = typename Of::Queries;
  using Keys                  = typename Of::template Keys<true, true>;
  constexpr std::size_t bytes = std::size_t(64) << 10;
  return Queries::resident * Queries::scratch <= bytes && Keys::resident * Keys::scratch <= bytes;
}
static_assert(fits_lds<bhalf_t, 64>() && fits_lds<bhalf_t, 128>() && fits_lds<bhalf_t, 256>());
static_assert(fits_lds<float, 64>() && fits_lds<float, 128>() && fits_lds<float, 256>());
static_assert(fits_lds<double, 64>() && fits_lds<double, 128>());

}  // namespace
}  // namespace KokkosNNTest
