// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/emulated_heads.hpp"

#include <KokkosNN/impl/gpu/attention_tiles.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

// A GPU's kernel of attention on a matrix unit in an emulated team, by the units and the tiles of CUDA and HIP.

namespace KokkosNNTest {
namespace {

namespace Impl = KokkosNN::Impl;
using KokkosNN::bhalf_t;
using KokkosNN::half_t;

/// A trial of a kernel.
template <class Kernel>
struct Trial : EmulatedTrial<typename Kernel::X> {
  using EmulatedTrial<typename Kernel::X>::EmulatedTrial;

  void run() { run_emulated(Kernel{this->prepared(), this->copies, this->copies, this->copies}); }
};

template <class Unit, int dims>
struct Config : EmulatedConfig<Unit, dims> {
  using Kernel      = Impl::AttentionInTiles<Unit, dims, false>;
  using Elementwise = Impl::AttentionInTiles<Unit, dims, true>;
};

template <class C>
class AttentionInTeams : public testing::Test {};
using Configs =
    testing::Types<Config<EmulatedMma<bhalf_t>, 64>, Config<EmulatedMma<half_t>, 128>,
                   Config<EmulatedMma<bhalf_t>, 256>, Config<EmulatedMmaDouble, 64>, Config<EmulatedMmaDouble, 128>,
                   Config<EmulatedTensorFloat<3>, 64>, Config<EmulatedTensorFloat<1>, 128>,
                   Config<EmulatedFma<float>, 64>, Config<EmulatedFma<float>, 256>, Config<EmulatedFma<double>, 128>,
                   Config<EmulatedFma<half_t>, 64>, Config<EmulatedMfma<bhalf_t>, 64>,
                   Config<EmulatedMfma<half_t>, 128>, Config<EmulatedMfma<bhalf_t>, 256>,
                   Config<EmulatedMfma<float>, 64>, Config<EmulatedMfma<float>, 128>, Config<EmulatedMfma<float>, 256>,
                   Config<EmulatedMfma<double>, 64>, Config<EmulatedMfma<double>, 128>>;
TYPED_TEST_SUITE(AttentionInTeams, Configs);

TYPED_TEST(AttentionInTeams, AreRightWithAndWithoutAsynchronousCopies) {
  for (const bool aligned : {true, false}) {
    Trial<typename TypeParam::Kernel> trial({1, 2, 1, 75, 70, TypeParam::dims - 7, TypeParam::dims - 40}, aligned);
    trial.run();
    trial.expect_right(TypeParam::tolerance);
  }
}

TYPED_TEST(AttentionInTeams, KeepToARowsRangeOfKeysWhateverTheOthersHold) {
  Trial<typename TypeParam::Kernel> trial({2, 2, 2, 90, 140, TypeParam::dims, 24}, true);
  trial.data.scale = -trial.data.scale;
  const EmulatedRanges ranges;
  ranges.set(trial.data.ranges);
  trial.logit = [&](auto... score) { return ranges.logit(score...); };
  using X     = typename TypeParam::Kernel::X;
  for (std::int64_t d = 0; d < 24; ++d) trial.v.at(0, 0, 3, d) = X(INFINITY);  // for those alone that see it
  for (std::int64_t j = 97; j < 140; ++j) {
    for (std::int64_t d = 0; d < TypeParam::dims; ++d) trial.k.at(0, 0, j, d) = X(NAN);
    for (std::int64_t d = 0; d < 24; ++d) trial.v.at(0, 0, j, d) = X(NAN);
  }
  trial.run();
  trial.expect_right(TypeParam::tolerance);
}

TYPED_TEST(AttentionInTeams, TakeBooleansBiasSlopesSoftcapAndSinks) {
  using Kernel = typename TypeParam::Elementwise;
  using X      = typename Kernel::X;
  Trial<Kernel> trial({1, 3, 1, 50, 100, 40, TypeParam::dims}, false);
  const EmulatedElements elements(50, 100);
  const std::vector<float> sinks{0.5f, 0.5f, 0.5f};
  elements.set(trial.data.elements);
  trial.data.sinks        = {sinks.data(), true};
  trial.data.sink_strides = {0, 1, 0, 0};
  trial.sink              = 0.5;
  trial.logit             = [&](auto... score) { return elements.logit(score...); };
  elements.fill_others(trial.v, TypeParam::dims, X(NAN));
  trial.run();
  elements.fill_others(trial.v, TypeParam::dims, X(0.0f));
  trial.expect_right(TypeParam::tolerance);
}

TYPED_TEST(AttentionInTeams, DropWeights) {
  Trial<typename TypeParam::Elementwise> trial({2, 4, 2, 43, 70, 40, TypeParam::dims}, true);
  drop_weights(trial.data, 4);
  trial.run();
  trial.expect_right(2 * TypeParam::tolerance);  // as the weights are larger
}

TYPED_TEST(AttentionInTeams, KeepToTheKeysOfAPackedSequence) {
  Trial<typename TypeParam::Kernel> trial({1, 4, 2, 150, 160, TypeParam::dims - 3, 24}, false);
  const EmulatedSequences sequences(150, 160);
  sequences.set(trial.data);
  trial.logit = [&](auto... score) { return sequences.logit(score...); };
  trial.run();
  trial.expect_right(TypeParam::tolerance);
}

/// Parts are joined here as merge_attention does it.
TYPED_TEST(AttentionInTeams, ComputePartsOfTheKeys) {
  using Kernel                 = typename TypeParam::Kernel;
  using A                      = typename Kernel::A;
  constexpr std::int64_t parts = 3, rows = 4 * 5, dim = 24;
  Trial<Kernel> trial({1, 4, 2, 5, 150, TypeParam::dims, dim}, true);
  std::vector<A> results(std::size_t(parts * rows * dim), A(NAN)), lse(std::size_t(parts * rows), A(NAN));
  trial.data.shape.parts     = parts;
  trial.data.shape.part_keys = 64;
  trial.data.part_results    = results.data();
  trial.data.part_rows       = rows;
  trial.data.lse             = lse.data();
  trial.run();
  for (std::int64_t r = 0; r < rows; ++r) {
    double sum = 0;
    for (std::int64_t p = 0; p < parts; ++p) sum += std::exp(double(lse[std::size_t(p * rows + r)]));
    trial.lse[std::size_t(r)] = A(std::log(sum));
    for (std::int64_t d = 0; d < dim; ++d) {
      double result = 0;
      for (std::int64_t p = 0; p < parts; ++p) {
        const auto row = std::size_t(p * rows + r);
        result += std::exp(double(lse[row])) / sum * double(results[row * dim + std::size_t(d)]);
      }
      trial.o.at(0, r / 5, r % 5, d) = typename Kernel::X(result);
    }
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t d = dim; d < trial.o.strides.sequence; ++d) {
      ASSERT_TRUE(std::isnan(double(trial.o.at(0, r / 5, r % 5, d))));
    }
  }
  trial.expect_right(TypeParam::tolerance);
}

TYPED_TEST(AttentionInTeams, GiveARowTheSameBitsWhateverRowsAreBesideIt) {
  using Kernel = typename TypeParam::Kernel;
  Trial<Kernel> many({1, 2, 1, 70, 90, TypeParam::dims, 16}, true), few({1, 2, 1, 3, 90, TypeParam::dims, 16}, true);
  for (auto* trial : {&many, &few}) {
    trial->data.ranges.has_diagonals = true;
    trial->data.ranges.low           = -1000;
    trial->data.ranges.high          = 20;
    for (std::int64_t h = 0; h < 2; ++h)
      for (std::int64_t i = 0; i < 3; ++i)
        for (std::int64_t d = 0; d < TypeParam::dims; ++d) trial->q.at(0, h, i, d) = typename Kernel::X(float(d % 5));
    trial->run();
  }
  for (std::int64_t h = 0; h < 2; ++h)
    for (std::int64_t i = 0; i < 3; ++i)
      for (std::int64_t d = 0; d < 16; ++d) {
        ASSERT_EQ(double(many.o.at(0, h, i, d)), double(few.o.at(0, h, i, d))) << h << ' ' << i << ' ' << d;
      }
}

/// Teams of one kernel fit into CDNA's LDS side by side, with a mask of elements, too.
template <class T, int dims>
constexpr bool fits_lds() {
  using Kernel = typename Config<EmulatedMfma<T>, dims>::Elementwise;
  return Kernel::resident * Kernel::scratch <= std::size_t(64) << 10;
}
static_assert(fits_lds<bhalf_t, 64>() && fits_lds<bhalf_t, 128>() && fits_lds<bhalf_t, 256>());
static_assert(fits_lds<float, 64>() && fits_lds<float, 128>() && fits_lds<float, 256>());
static_assert(fits_lds<double, 64>() && fits_lds<double, 128>());

}  // namespace
}  // namespace KokkosNNTest
