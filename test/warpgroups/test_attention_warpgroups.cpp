// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/attention.hpp"
#include "support/recorder.hpp"
#include "support/types.hpp"
#include "support/warpgroups.hpp"

#include <KokkosNN/attention.hpp>
#include <KokkosNN/impl/gpu/device/warpgroup.hpp>

#include <Kokkos_Core.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

// Attention on Hopper's warpgroups against long double, and against the portable kernels.

namespace KokkosNNTest {
namespace {

using KokkosNN::AttentionOptions;
using KokkosNN::MaskedRowPolicy;
using KokkosNN::masks;
using KokkosNN::MatmulTier;

constexpr long double infinity = std::numeric_limits<long double>::infinity();

bool are_on_warpgroups(const std::vector<std::string>& labels) {
  bool are = !labels.empty();
  for (const std::string& label : labels) are = are && label.find("[warpgroups,") != std::string::npos;
  return are;
}

template <class Host>
bool are_equal(const Host& a, const Host& b, std::size_t count) {
  return std::memcmp(a.data(), b.data(), count * sizeof(typename Host::value_type)) == 0;
}

template <class T>
class AttentionOnWarpgroups : public OnWarpgroups {};
TYPED_TEST_SUITE(AttentionOnWarpgroups, WarpgroupTypes, ElementNames);

/// The error of a call, which must have run there.
template <class T, class M>
double error_on_warpgroups(AttentionTrial<T>& trial, const M& mask, const Logit& logit, AttentionOptions options = {},
                           long double if_masked = NAN) {
  options.tier = MatmulTier::warpgroups;
  EXPECT_TRUE(are_on_warpgroups(kernels_of([&] { trial.run(mask, options); })));
  return trial.error(logit, options.scale, -infinity, if_masked);
}

TYPED_TEST(AttentionOnWarpgroups, AreRightForManyLengthsAndDims) {
  for (const int queries : {1, 64, 130, 400}) {
    for (const int keys : {1, 127, 128, 300}) {
      for (const int dim : {8, 64, 72, 128, 192, 256}) {
        AttentionTrial<TypeParam> trial({1, 2, 2, queries, keys, dim, keys % 2 == 0 || dim > 128 ? dim : 136 - dim});
        EXPECT_LE(error_on_warpgroups(trial, masks(), unmasked), 1)
            << queries << " queries, " << keys << " keys, dim " << dim;
      }
    }
  }
}

TYPED_TEST(AttentionOnWarpgroups, ShareHeadsAndTakeOtherOrdersOfTheAxes) {
  for (const bool second : {false, true}) {
    AttentionTrial<TypeParam> trial({2, 6, 2, 200, 260, 64, 128}, second);
    EXPECT_LE(error_on_warpgroups(trial, masks(), unmasked, {.scale = 0.25}), 1) << second;
  }
}

TYPED_TEST(AttentionOnWarpgroups, SeeTheKeysThatCausalMasksAndWindowsAllow) {
  for (const int queries : {90, 300}) {
    for (const int offset : {-130, 0, 5}) {
      AttentionTrial<TypeParam> trial({1, 2, 1, queries, 420, 64, 64});
      const Logit logit = [&](int, int, int i, int j, long double s) {
        return j <= i + offset && j >= i - 150 ? s : -infinity;
      };
      EXPECT_LE(error_on_warpgroups(trial, masks(KokkosNN::CausalMask{offset}, KokkosNN::SlidingWindow{150, 1000}),
                                    logit, {.masked_row = MaskedRowPolicy::zero}, 0),
                1)
          << queries << " queries, offset " << offset;
    }
  }
}

TYPED_TEST(AttentionOnWarpgroups, NeverCountKeysThatALengthRulesOut) {
  AttentionTrial<TypeParam> trial({2, 4, 2, 150, 300, 64, 64});
  const Kokkos::View<std::int32_t*, Memory> lengths("lengths", 2);
  const auto host = Kokkos::create_mirror(lengths);
  host(0)         = 201;
  host(1)         = 0;
  Kokkos::deep_copy(lengths, host);
  for (int b = 0; b < 2; ++b)
    for (int h = 0; h < 2; ++h)
      for (int j = host(static_cast<std::size_t>(b)); j < 300; ++j)
        for (int d = 0; d < 64; ++d) trial.k(b, h, j, d) = trial.v(b, h, j, d) = static_cast<TypeParam>(NAN);
  // Seen by queries from 40 on alone: those below are computed again.
  for (int d = 0; d < 64; ++d) trial.v(0, 1, 40, d) = static_cast<TypeParam>(INFINITY);
  trial.k.upload();
  trial.v.upload();
  const Logit logit = [&](int b, int, int i, int j, long double s) {
    return j <= i && j < host(static_cast<std::size_t>(b)) ? s : -infinity;
  };
  EXPECT_LE(error_on_warpgroups(trial, masks(KokkosNN::CausalMask{}, KokkosNN::RowLengths{lengths}), logit,
                                {.masked_row = MaskedRowPolicy::zero}, 0),
            1);
}

TYPED_TEST(AttentionOnWarpgroups, GiveTheSameBitsInAnyBatchAndFromRunToRun) {
  // More blocks than a device has multiprocessors.
  const HeadExtents all{12, 8, 2, 500, 700, 128, 128};
  HeadExtents one = all;
  one.batch       = 1;
  AttentionTrial<TypeParam> many(all), again(all), alone(one);
  const auto mask = masks(KokkosNN::CausalMask{200});
  many.run(mask);
  alone.run(mask);
  const std::size_t part = alone.o.host.size() - 1;
  EXPECT_TRUE(are_equal(many.o.host, alone.o.host, part));
  for (int run = 0; run < 10; ++run) {
    again.run(mask);
    ASSERT_TRUE(are_equal(many.o.host, again.o.host, many.o.host.size())) << run;
  }
}

TYPED_TEST(AttentionOnWarpgroups, AreNearThePortableKernelsOverManyKeys) {
  const HeadExtents extents{2, 8, 8, 1100, 2100, 128, 128};
  for (const bool is_causal : {false, true}) {
    AttentionTrial<TypeParam> here(extents), portable(extents);
    const auto mask = masks(KokkosNN::CausalMask{is_causal ? 1000 : 1 << 20});
    EXPECT_TRUE(are_on_warpgroups(kernels_of([&] { here.run(mask); })));
    EXPECT_FALSE(are_on_warpgroups(kernels_of([&] { portable.run(mask, {.tier = MatmulTier::portable}); })));
    for (std::size_t i = 0; i < here.o.host.size(); ++i) {
      ASSERT_NEAR(double(here.o.host(i)), double(portable.o.host(i)), 0.02) << i;
    }
  }
}

/// Masks of single scores, and the logit of all of them but the booleans: Views of one head for all, of slopes of each.
template <class T>
struct ElementMasks {
  using Bias = Kokkos::View<T**, Kokkos::LayoutRight, Memory>;

  Bias bias;
  Kokkos::View<bool**, Kokkos::LayoutRight, Memory> keep;
  Kokkos::View<float*, Memory> slopes;

  ElementMasks(int heads, int queries, int keys)
      : bias("bias", static_cast<std::size_t>(queries), static_cast<std::size_t>(keys)),
        keep("keep", static_cast<std::size_t>(queries), static_cast<std::size_t>(keys)),
        slopes("slopes", static_cast<std::size_t>(heads)) {
    const auto bias_host   = Kokkos::create_mirror(bias);
    const auto keep_host   = Kokkos::create_mirror(keep);
    const auto slopes_host = Kokkos::create_mirror(slopes);
    for (int i = 0; i < queries; ++i) {
      for (int j = 0; j < keys; ++j) {
        bias_host(std::size_t(i), std::size_t(j)) = static_cast<T>(bias_at(i, j));
        keep_host(std::size_t(i), std::size_t(j)) = keeps(i, j);
      }
    }
    for (int h = 0; h < heads; ++h) slopes_host(std::size_t(h)) = slope_of(h);
    Kokkos::deep_copy(bias, bias_host);
    Kokkos::deep_copy(keep, keep_host);
    Kokkos::deep_copy(slopes, slopes_host);
  }

  static float bias_at(int i, int j) { return static_cast<float>((i * 37 + j * 11) % 64 - 32) / 16; }
  static bool keeps(int i, int j) { return (i * 5 + j * 7) % 4 != 0; }
  static float slope_of(int h) { return 0.0625f * static_cast<float>(h + 1); }

  auto all() const { return masks(KokkosNN::AdditiveBias{bias}, KokkosNN::Alibi{slopes, 3}); }
  static long double logit(int h, int i, int j, long double s, long double softcap) {
    const long double capped = softcap == 0 ? s : softcap * std::tanh(s / softcap);
    return capped + bias_at(i, j) - slope_of(h) * std::abs(j - (i + 3));
  }
};

/// Rows of masks that begin at multiples of 16 bytes, and others; a bias of the elements' type, and of float.
TYPED_TEST(AttentionOnWarpgroups, ChangeSingleScores) {
  const Logit kept = [](int, int, int i, int j, long double s) {
    return ElementMasks<float>::keeps(i, j) ? s : -infinity;
  };
  const Logit logit = [](int, int h, int i, int j, long double s) { return ElementMasks<float>::logit(h, i, j, s, 2); };
  const AttentionOptions options{.scale = -0.5, .softcap = 2};
  for (const int dim : {64, 128, 192, 256}) {
    for (const int keys : {300, 304, 1040}) {
      const int queries = 200;
      const ElementMasks<TypeParam> of_type(4, queries, keys);
      const ElementMasks<float> of_float(4, queries, keys);
      AttentionTrial<TypeParam> trial({2, 4, 2, queries, keys, dim, dim});
      EXPECT_LE(error_on_warpgroups(trial, of_type.all(), logit, options), 1) << dim << ", " << keys << " keys";
      EXPECT_LE(error_on_warpgroups(trial, of_float.all(), logit, options), 1) << dim << ", " << keys << " keys";
      EXPECT_LE(error_on_warpgroups(trial, KokkosNN::BooleanMask{of_type.keep}, kept), 1)
          << dim << ", " << keys << " keys";
    }
  }
}

/// Gradients of a call on warpgroups beside those in double of the same values, under masks that are the same, as a
/// share of the largest of a tensor.
template <class T, class M, class E>
double gradient_error(const HeadExtents& extents, const M& mask, const E& exact_mask, bool second,
                      AttentionOptions options = {}) {
  AttentionTrial<T> call(extents, second);
  AttentionTrial<double> exact(extents, second);
  AttentionGradientTrial<T> got(call, second);
  AttentionGradientTrial<double> want(exact, second);
  const auto take = [](auto& to, const auto& from) {
    for (std::size_t i = 0; i < to.host.size(); ++i) to.host(i) = static_cast<double>(from.host(i));
    to.upload();
  };
  take(exact.q, call.q);
  take(exact.k, call.k);
  take(exact.v, call.v);
  take(want.dout, got.dout);
  const auto run = [&](auto& trial, auto& gradients, const auto& its_mask) {
    return kernels_of([&] {
      KokkosNN::attention_backward(Exec(), trial.q.view, trial.k.view, trial.v.view, trial.o.view, gradients.dout.view,
                                   trial.lse, its_mask, gradients.dq.view, gradients.dk.view, gradients.dv.view,
                                   options);
    });
  };
  exact.run(exact_mask, options);
  options.tier = MatmulTier::warpgroups;
  call.run(mask, options);
  take(exact.o, call.o);  // as rounded: its products with dout are differences' terms
  EXPECT_TRUE(are_on_warpgroups(run(call, got, mask)));
  options.tier = MatmulTier::automatic;
  run(exact, want, exact_mask);
  got.download();
  want.download();
  EXPECT_TRUE(got.gaps_are_intact());
  double worst       = 0;
  const auto compare = [&](const auto& a, const auto& b) {
    double largest = 0.01, error = 0;  // gradients of a lone key are 0
    for (std::size_t i = 0; i < b.host.size() - 1; ++i) largest = std::fmax(largest, std::abs(b.host(i)));
    for (std::size_t i = 0; i < b.host.size() - 1; ++i) {
      const double difference = std::abs(static_cast<double>(a.host(i)) - b.host(i));
      error                   = difference <= error ? error : difference;  // a NaN, too
    }
    worst = error <= worst * largest ? worst : error / largest;
  };
  compare(got.dq, want.dq);
  compare(got.dk, want.dk);
  compare(got.dv, want.dv);
  return worst;
}
template <class T, class M>
double gradient_error(const HeadExtents& extents, const M& mask, bool second = false) {
  return gradient_error<T>(extents, mask, mask, second);
}
/// Largest such error: bfloat16 has three bits less.
template <class T>
constexpr double most_gradient_error = std::is_same_v<T, BHalf> ? 0.16 : 0.02;

TYPED_TEST(AttentionOnWarpgroups, HaveGradientsForManyLengthsAndDims) {
  constexpr double most = most_gradient_error<TypeParam>;
  for (const int queries : {1, 64, 130, 400}) {
    for (const int keys : {1, 127, 128, 300}) {
      for (const int dim : {8, 64, 72, 128}) {
        const int value_dim = keys % 2 == 0 ? dim : 136 - dim;
        EXPECT_LE((gradient_error<TypeParam>({1, 2, 2, queries, keys, dim, value_dim}, masks())), most)
            << queries << " queries, " << keys << " keys, dim " << dim;
      }
    }
  }
  for (const bool second : {false, true}) {
    EXPECT_LE((gradient_error<TypeParam>({2, 6, 2, 300, 420, 128, 64},
                                         masks(KokkosNN::CausalMask{100}, KokkosNN::SlidingWindow{150}), second)),
              most)
        << second;
    EXPECT_LE((gradient_error<TypeParam>({2, 6, 2, 420, 300, 64, 64}, masks(KokkosNN::CausalMask{-130}), second)), most)
        << second;
  }
}

TYPED_TEST(AttentionOnWarpgroups, HaveGradientsUnderMasksOfSingleScores) {
  constexpr double most = most_gradient_error<TypeParam>;
  for (const int dim : {64, 128}) {
    for (const int keys : {300, 304}) {
      const int queries = 200;
      const HeadExtents extents{2, 4, 2, queries, keys, dim, dim};
      const ElementMasks<TypeParam> masks_of_type(4, queries, keys);
      const ElementMasks<float> masks_of_float(4, queries, keys);
      const AttentionOptions capped{.scale = -0.25, .softcap = 2};
      EXPECT_LE((gradient_error<TypeParam>(extents, masks_of_type.all(), masks_of_float.all(), false, capped)), most);
      EXPECT_LE((gradient_error<TypeParam>(extents, masks_of_float.all(), masks_of_float.all(), true)), most);
      EXPECT_LE((gradient_error<TypeParam>(extents, KokkosNN::BooleanMask{masks_of_type.keep})), most);
    }
  }
}

TYPED_TEST(AttentionOnWarpgroups, HaveGradientsOfKeysThatAQuerySeesWhateverTheOthersHold) {
  const HeadExtents extents{1, 2, 2, 150, 300, 64, 64};
  AttentionTrial<TypeParam> call(extents);
  AttentionGradientTrial<TypeParam> here(call), portable(call);
  for (int d = 0; d < 64; ++d) {
    call.v(0, 1, 40, d)    = static_cast<TypeParam>(INFINITY);  // queries ahead of 40 do not see it
    here.dout(0, 0, 77, d) = static_cast<TypeParam>(NAN);       // nor does this one keys behind it
    for (int j = 200; j < 300; ++j) call.k(0, 0, j, d) = call.v(0, 0, j, d) = static_cast<TypeParam>(NAN);
  }
  call.k.upload();
  call.v.upload();
  here.dout.upload();
  const auto mask = masks(KokkosNN::CausalMask{});
  call.run(mask);
  const auto run = [&](AttentionGradientTrial<TypeParam>& gradients, MatmulTier tier) {
    KokkosNN::attention_backward(Exec(), call.q.view, call.k.view, call.v.view, call.o.view, here.dout.view, call.lse,
                                 mask, gradients.dq.view, gradients.dk.view, gradients.dv.view, {.tier = tier});
    gradients.download();
  };
  run(here, MatmulTier::warpgroups);
  run(portable, MatmulTier::portable);
  const auto compare = [&](const auto& a, const auto& b, const char* name) {
    for (std::size_t i = 0; i < a.host.size(); ++i) {
      const auto got = static_cast<double>(a.host(i)), want = static_cast<double>(b.host(i));
      ASSERT_EQ(std::isnan(got), std::isnan(want)) << name << ' ' << i;
      if (!std::isnan(want) && got != want) ASSERT_NEAR(got, want, 0.2) << name << ' ' << i;
    }
  };
  compare(here.dq, portable.dq, "dq");
  compare(here.dk, portable.dk, "dk");
  compare(here.dv, portable.dv, "dv");
}

TYPED_TEST(AttentionOnWarpgroups, GiveTheSameBitsOfGradientsInAnyBatchAndFromRunToRun) {
  const HeadExtents all{12, 8, 2, 500, 700, 128, 128};
  HeadExtents one = all;
  one.batch       = 1;
  AttentionTrial<TypeParam> many(all), alone(one);
  AttentionGradientTrial<TypeParam> first(many), again(many), of_one(alone);
  const auto mask = masks(KokkosNN::CausalMask{200});
  const auto run  = [&](AttentionTrial<TypeParam>& call, AttentionGradientTrial<TypeParam>& gradients) {
    KokkosNN::attention_backward(Exec(), call.q.view, call.k.view, call.v.view, call.o.view, gradients.dout.view,
                                 call.lse, mask, gradients.dq.view, gradients.dk.view, gradients.dv.view);
    gradients.download();
  };
  many.run(mask);
  alone.run(mask);
  run(many, first);
  run(alone, of_one);
  EXPECT_TRUE(are_equal(first.dq.host, of_one.dq.host, of_one.dq.host.size() - 1));
  EXPECT_TRUE(are_equal(first.dk.host, of_one.dk.host, of_one.dk.host.size() - 1));
  EXPECT_TRUE(are_equal(first.dv.host, of_one.dv.host, of_one.dv.host.size() - 1));
  for (int n = 0; n < 5; ++n) {
    run(many, again);
    ASSERT_TRUE(are_equal(first.dq.host, again.dq.host, first.dq.host.size())) << n;
    ASSERT_TRUE(are_equal(first.dk.host, again.dk.host, first.dk.host.size())) << n;
    ASSERT_TRUE(are_equal(first.dv.host, again.dv.host, first.dv.host.size())) << n;
  }
}

TYPED_TEST(AttentionOnWarpgroups, LeaveOtherCallsToThePortableKernels) {
  const auto is_its = [](const HeadExtents& extents, bool spaced, const auto& mask, AttentionOptions options = {}) {
    AttentionTrial<TypeParam> trial(extents, false, spaced);
    return are_on_warpgroups(kernels_of([&] { trial.run(mask, options); }));
  };
  const HeadExtents its{1, 2, 2, 128, 128, 64, 64};
  EXPECT_TRUE(is_its(its, false, masks()));
  EXPECT_FALSE(is_its(its, true, masks())) << "elements with gaps between them";
  EXPECT_FALSE(is_its({1, 2, 2, 128, 128, 60, 64}, false, masks())) << "rows that are no chunks of 16 bytes";
  EXPECT_FALSE(is_its({1, 2, 2, 40, 128, 64, 64}, false, masks())) << "few queries";
  EXPECT_FALSE(is_its(its, false, masks(), {.dropout = {.probability = 0.5}}));
}

using LargeRows = Kokkos::View<BHalf****, Kokkos::LayoutRight, Memory>;

KOKKOS_FUNCTION float value_of_row(std::int64_t j) { return static_cast<float>(j * 7 % 32) / 8; }

void fill_rows(const LargeRows& rows) {
  const auto dim = static_cast<std::int64_t>(rows.extent(3));
  Kokkos::parallel_for(
      Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(Exec(), 0, static_cast<std::int64_t>(rows.size())),
      KOKKOS_LAMBDA(const std::int64_t i) { rows.data()[i] = static_cast<BHalf>(value_of_row(i / dim)); });
}

/// Offsets beyond 32 bits: a row's result is the mean of two keys' values.
TEST(LargeAttentionOnWarpgroups, ReachesBeyond2To31Elements) {
  if (!KokkosNN::Impl::has_warpgroups(Exec())) GTEST_SKIP() << "this device has none";
  constexpr std::size_t dim = 64, count = (std::size_t(1) << 31) / dim + 200;
  LargeRows q, k, v, o;
  try {
    for (LargeRows* each : {&q, &k, &v, &o}) *each = LargeRows("rows", 1, 1, count, dim);
  } catch (const std::exception& error) {
    GTEST_SKIP() << error.what();
  }
  fill_rows(v);
  KokkosNN::attention(Exec(), q, k, v, o, masks(KokkosNN::SlidingWindow{1, 0}), {.tier = MatmulTier::warpgroups});
  Exec().fence();
  for (const std::size_t i : {std::size_t(0), std::size_t(1), count / 2, count - 130, count - 1}) {
    const auto row    = Kokkos::subview(o, 0, 0, i, Kokkos::ALL);
    const auto host   = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), row);
    const auto j      = static_cast<std::int64_t>(i);
    const double want = j == 0 ? value_of_row(0) : (value_of_row(j) + value_of_row(j - 1)) / 2;
    for (std::size_t d = 0; d < dim; ++d) ASSERT_NEAR(double(host(d)), want, 0.02) << i;
  }
}

}  // namespace
}  // namespace KokkosNNTest
