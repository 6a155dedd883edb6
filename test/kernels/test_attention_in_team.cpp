// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/emulated_heads.hpp"

#include <KokkosNN/impl/gpu/attention_merge.hpp>
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

/// Kernels whose warps share out the keys, for few rows.
template <class C>
class AttentionOfFewRows : public testing::Test {};
template <class X, int dims>
struct FewRows : EmulatedConfig<EmulatedMma<X>, dims> {
  using Data = Impl::AttentionData<X>;
  template <bool has_elements>
  using Kernel = Impl::AttentionInTiles<EmulatedMma<X>, dims, has_elements, Data, true>;
};
using FewRowsConfigs = testing::Types<FewRows<bhalf_t, 64>, FewRows<half_t, 128>, FewRows<bhalf_t, 256>>;
TYPED_TEST_SUITE(AttentionOfFewRows, FewRowsConfigs);

TYPED_TEST(AttentionOfFewRows, AreRightWithAndWithoutAsynchronousCopies) {
  for (const bool aligned : {true, false}) {
    for (const std::int64_t keys : {1, 37, 300}) {
      Trial<typename TypeParam::template Kernel<false>> trial(
          {2, 6, 2, 5, keys, TypeParam::dims - 7, TypeParam::dims - 40}, aligned);
      trial.run();
      trial.expect_right(TypeParam::tolerance);
    }
  }
}

TYPED_TEST(AttentionOfFewRows, KeepToARowsRangeOfKeysWhateverTheOthersHold) {
  using Kernel = typename TypeParam::template Kernel<false>;
  Trial<Kernel> trial({2, 2, 2, 20, 140, TypeParam::dims, 24}, true);
  trial.data.scale = -trial.data.scale;
  const EmulatedRanges ranges;
  ranges.set(trial.data.ranges);
  trial.logit = [&](auto... score) { return ranges.logit(score...); };
  using X     = typename Kernel::X;
  for (std::int64_t d = 0; d < 24; ++d) trial.v.at(0, 0, 3, d) = X(INFINITY);  // for those alone that see it
  for (std::int64_t j = 97; j < 140; ++j) {
    for (std::int64_t d = 0; d < TypeParam::dims; ++d) trial.k.at(0, 0, j, d) = X(NAN);
  }
  trial.run();
  trial.expect_right(TypeParam::tolerance);
}

TYPED_TEST(AttentionOfFewRows, TakeBooleansBiasSlopesSoftcapAndDropout) {
  using Kernel = typename TypeParam::template Kernel<true>;
  Trial<Kernel> trial({1, 3, 1, 5, 200, 40, TypeParam::dims}, true);
  const EmulatedElements elements(5, 200);
  elements.set(trial.data.elements);
  trial.logit = [&](auto... score) { return elements.logit(score...); };
  trial.run();
  trial.expect_right(TypeParam::tolerance);
  drop_weights(trial.data, 3);
  trial.run();
  trial.expect_right(2 * TypeParam::tolerance);  // as the weights are larger
}

/// Parts of three rows joined by a team a row: parts without a weight hold NaNs.
TEST(AttentionMergeInTeam, AddsManyPartsInOrder) {
  using Data                  = Impl::AttentionMergeData<float, float>;
  constexpr std::int64_t rows = 3, most_parts = 300, dim = 130;
  std::vector<float> o_parts(most_parts * rows * dim), lse_parts(most_parts * rows), o(rows * dim), lse(rows);
  for (std::size_t i = 0; i < o_parts.size(); ++i) o_parts[i] = float(i % 101) / 50 - 1;
  for (std::size_t i = 0; i < lse_parts.size(); ++i) lse_parts[i] = float(i * 7 % 23) / 4 - 3;
  for (std::int64_t p = 5; p < most_parts; p += 11) {
    for (std::int64_t r = 0; r < rows; ++r) {
      lse_parts[std::size_t(p * rows + r)] = -INFINITY;
      for (std::int64_t d = 0; d < dim; ++d) o_parts[std::size_t((p * rows + r) * dim + d)] = NAN;
    }
  }
  for (const std::int64_t parts : {std::int64_t(16), std::int64_t(100), most_parts}) {
    Data data{{parts, 1, 1, rows, dim}, o_parts.data(), lse_parts.data(), o.data(), lse.data()};
    data.o_parts_strides = data.o_strides = {0, 0, dim, 1};
    data.lse_parts_strides = data.lse_strides = {0, 0, 1, 0};
    data.o_part_stride                        = rows * dim;
    data.lse_part_stride                      = rows;
    const Impl::AttentionMergeInTeam<float, float, Impl::attention_merge_width, Impl::attention_merge_unroll> kernel{
        data};
    for (int league = 0; league < 2; ++league) {
      EmulatedTeam team(Impl::attention_team_size, 32, Impl::attention_merge_scratch<float>,
                        static_cast<std::uint32_t>(league));
      team.run([&](int rank) { kernel(EmulatedMember{league, 2, rank}); });
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      long double sum = 0;
      std::vector<long double> want(std::size_t(dim), 0);
      for (std::int64_t p = 0; p < parts; ++p) {
        const long double weight = std::exp((long double)(lse_parts[std::size_t(p * rows + r)]));
        sum += weight;
        for (std::int64_t d = 0; d < dim && weight != 0; ++d) {
          want[std::size_t(d)] += weight * o_parts[std::size_t((p * rows + r) * dim + d)];
        }
      }
      EXPECT_NEAR(lse[std::size_t(r)], double(std::log(sum)), 1e-5) << parts;
      for (std::int64_t d = 0; d < dim; ++d) {
        ASSERT_NEAR(o[std::size_t(r * dim + d)], double(want[std::size_t(d)] / sum), 1e-5) << parts << ", " << d;
      }
    }
  }
}

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
