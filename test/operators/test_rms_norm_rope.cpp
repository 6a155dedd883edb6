// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/message.hpp"
#include "support/recorder.hpp"
#include "support/rms_norm_rope.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <Kokkos_Core.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

// RMSNorm and the rotary position embedding in one pass.

namespace KokkosNNTest {
namespace {

using KokkosNN::rms_norm_rope;

template <class T>
class RmsNormRope : public ::testing::Test {};
TYPED_TEST_SUITE(RmsNormRope, ElementTypes, ElementNames);

/// f(a case of each form, with tables and without)
template <class F>
void for_each_kind(const F& f) {
  for (const RopeForm form : both_rope_forms) {
    for (const bool has_tables : {true, false}) {
      RmsNormRopeCase given;
      given.options.rope.form = form;
      given.has_tables        = has_tables;
      f(given);
    }
  }
}

std::string name_of(const RmsNormRopeCase& given) {
  const bool is_halved = given.options.rope.form == RopeForm::half_rotated;
  return std::string(is_halved ? "half_rotated" : "interleaved") + (given.has_tables ? ", tables" : ", angles");
}

TYPED_TEST(RmsNormRope, OfHeadsOfAnyEvenLength) {
  for_each_kind([](const RmsNormRopeCase& given) {
    for (const std::int64_t dim : {2, 4, 6, 10, 30, 32, 34, 64, 80, 96, 128, 256, 258, 512, 2100}) {
      for (const std::int64_t heads : {1, 3, 8}) {
        RmsNormRopeTrial<TypeParam> trial({2, 5, heads, dim}, given);
        EXPECT_TRUE(trial.run_correct()) << name_of(given) << ", " << heads << " heads of " << dim;
      }
    }
  });
}

TYPED_TEST(RmsNormRope, OfRowsLongerThanATeamKeeps) {
  for_each_kind([](RmsNormRopeCase given) {
    for (const auto& [dim, rotary] : {std::pair{5000, 5000}, {9001, 4098}, {8192, 0}}) {
      given.options.rope.rotary_dims = rotary;
      RmsNormRopeTrial<TypeParam> trial({1, 2, 3, dim}, given);
      EXPECT_TRUE(trial.run_correct()) << name_of(given) << ", " << rotary << " of " << dim;
    }
  });
}

TYPED_TEST(RmsNormRope, NormalisesElementsThatItDoesNotRotateInPlaceToo) {
  for_each_kind([](RmsNormRopeCase given) {
    for (const bool is_in_place : {false, true}) {
      given.is_in_place = is_in_place;
      for (const auto& [dim, rotary] : {std::pair{64, 32}, {65, 2}, {80, 20}, {128, 96}, {130, 128}, {7, 6}, {3, 2}}) {
        given.options.rope.rotary_dims = rotary;
        RmsNormRopeTrial<TypeParam> trial({2, 5, 3, dim}, given);
        EXPECT_TRUE(trial.run_correct()) << name_of(given) << ", " << rotary << " of " << dim;
      }
    }
  });
}

TYPED_TEST(RmsNormRope, TakesAnyStridesLayoutsAndSequenceAxes) {
  const std::vector<std::int64_t> extents{2, 5, 3, 48};
  const Placement places[] = {right(extents), right(extents, 5), left(extents), left(extents, 3),
                              Placement{extents, {5 * 3 * 48 * 2, 3 * 48 * 2, 48 * 2, 2}, 1}};
  for_each_kind([&](RmsNormRopeCase given) {
    for (const int axis : {-2, -3, -4}) {
      given.options.rope.sequence_axis = axis;
      for (const WeightOf weight : {WeightOf::none, WeightOf::columns, WeightOf::heads, WeightOf::columns_in_float}) {
        given.weight = weight;
        for (const Placement& x : places) {
          const Placement& y = places[(&x - places + 1) % 5];
          RmsNormRopeTrial<TypeParam> trial(x, y, given);
          EXPECT_TRUE(trial.run_correct()) << name_of(given) << ", axis " << axis << ", stride " << x.strides[3];
        }
      }
      given.weight       = WeightOf::columns;
      given.misalignment = 1;
      RmsNormRopeTrial<TypeParam> misaligned(extents, given);
      EXPECT_TRUE(misaligned.run_correct()) << name_of(given) << ", misaligned";
      given.misalignment = 0;
    }
  });
}

TYPED_TEST(RmsNormRope, TakesItsOptions) {
  for_each_kind([](RmsNormRopeCase given) {
    given.options.epsilon              = 3;
    given.options.weight_offset        = 1;
    given.options.rope.position_offset = 1000;
    if (!given.has_tables) given.options.rope.theta = 500;
    for (const WeightOf weight : {WeightOf::none, WeightOf::columns}) {
      given.weight = weight;
      RmsNormRopeTrial<TypeParam> trial({2, 5, 3, 64}, given);
      EXPECT_TRUE(trial.run_correct()) << name_of(given);
    }
  });
}

/// A row's bits depend neither on the other rows nor on where it lies, and are the same each time.
TYPED_TEST(RmsNormRope, BitsDependOnTheRowAlone) {
  for_each_kind([](RmsNormRopeCase given) {
    for (const std::int64_t dim : {6, 64, 100, 128}) {
      const std::vector<std::int64_t> extents{2, 3, 4, dim};
      RmsNormRopeTrial<TypeParam> dense(extents, given), again(extents, given);
      RmsNormRopeTrial<TypeParam> spread(left(extents, 1),
                                         Placement{extents, {13 * dim * 2, 4 * dim * 2, dim * 2, 2}, 0}, given);
      for (auto* trial : {&dense, &again, &spread}) EXPECT_TRUE(trial->run_correct());
      std::int64_t others = 0;
      for (std::int64_t i = 0; i < 24 * dim; ++i) {
        const std::int64_t batch = i / (12 * dim), within = i % (12 * dim);
        others += !same_bits(dense.y().host()[i], again.y().host()[i]) ||
                  !same_bits(dense.y().host()[i], spread.y().host()[batch * 26 * dim + 2 * within]);
      }
      EXPECT_EQ(others, 0) << name_of(given) << ", " << dim;
    }
  });
}

TEST(RmsNormRopeRows, HaveThePositionsOfAView) {
  const std::vector<std::int64_t> extents{2, 4, 3, 32};
  RmsNormRopeTrial<float> ascending(extents, {}), given(extents, {});
  ASSERT_TRUE(ascending.run_correct());
  const Kokkos::View<std::int32_t**, Kokkos::LayoutRight, Memory> positions("positions", 2, 4);
  const auto host = Kokkos::create_mirror_view(positions);
  for (int b = 0; b < 2; ++b) {
    for (int s = 0; s < 4; ++s) host(b, s) = b == 0 ? s : (s == 3 ? 4 : s);  // the last one is no row of the tables
  }
  Kokkos::deep_copy(positions, host);
  rms_norm_rope(given.x_view(), given.weight_view(), given.cos_view(), given.sin_view(), given.y_view(),
                {.epsilon = 1e-3}, positions);
  Kokkos::fence();
  given.y().download();
  for (std::int64_t i = 0; i < given.y().count(); ++i) {
    const bool is_outside = i >= 7 * 3 * 32;
    if (is_outside) EXPECT_TRUE(std::isnan(given.y().host()[i])) << i;
    if (!is_outside) EXPECT_EQ(given.y().host()[i], ascending.y().host()[i]) << i;
  }
  EXPECT_EQ(message_of([&] {
              rms_norm_rope(given.x_view(), given.weight_view(), given.cos_view(), given.sin_view(), given.y_view(),
                            {.rope = {.check_positions = true}}, positions);
            }),
            "KokkosNN::rms_norm_rope: position 4 of sequence index 3, batch 1, is none of the 4 rows of the tables");
}

TEST(RmsNormRopeRows, WithANaNAreNaNAndLeaveTheOthersAlone) {
  RmsNormRopeTrial<float> trial({1, 3, 2, 16}, {.options = {.rope = {.rotary_dims = 8}}});
  trial.x().host()[32 + 5] = std::numeric_limits<float>::quiet_NaN();
  trial.x().upload();
  EXPECT_TRUE(trial.run_correct());
  for (int i = 0; i < 96; ++i) EXPECT_EQ(std::isnan(trial.y().host()[i]), i / 16 == 2) << i;
}

TEST(RmsNormRopeRows, WithAnInfinityAreZerosButForItsPair) {
  RmsNormRopeTrial<float> trial({1, 1, 1, 16}, {.options = {.rope = {.rotary_dims = 8}}});
  trial.x().host()[1] = std::numeric_limits<float>::infinity();
  trial.x().upload();
  trial.call();
  Kokkos::fence();
  trial.y().download();
  for (int i = 0; i < 16; ++i) {
    if (i == 1 || i == 5) EXPECT_TRUE(std::isnan(trial.y().host()[i])) << i;
    if (i != 1 && i != 5) EXPECT_EQ(trial.y().host()[i], 0) << i;
  }
}

TEST(RmsNormRopeRows, EnqueueOneKernel) {
  for_each_kind([](const RmsNormRopeCase& given) {
    RmsNormRopeTrial<float> trial({2, 3, 4, 64}, given);
    trial.call();
    const Recorder recorder;
    trial.call();
    EXPECT_TRUE(recorder.neither_fenced_nor_allocated());
    ASSERT_EQ(recorder.kernels.size(), 1U);
    const bool is_halved    = given.options.rope.form == RopeForm::half_rotated;
    const bool is_aligned   = KokkosNN::Impl::backend_of<Exec>() == KokkosNN::Backend::cuda;
    const std::string label = std::string("KokkosNN::rms_norm_rope[f32,") + (is_aligned ? "aligned," : "") +
                              (is_halved ? "half_rotated," : "interleaved,") +
                              (given.has_tables ? "tables," : "angles,");
    EXPECT_EQ(recorder.kernels[0].label.substr(0, label.size()), label);
  });
}

TEST(RmsNormRopeRows, WithoutElementsLaunchNothing) {
  RmsNormRopeTrial<float> no_rows({2, 0, 4, 64}, {.has_tables = false}), no_heads({2, 3, 0, 64}, {});
  EXPECT_EQ(kernels_of([&] {
              no_rows.call();
              no_heads.call();
            }),
            std::vector<std::string>{});
}

TEST(RmsNormRopeErrors, NameTheFunctionAndTheValues) {
  const Kokkos::View<float****, Kokkos::LayoutRight, Memory> x("x", 2, 3, 4, 8), y("y", 2, 3, 4, 8);
  const Kokkos::View<float*, Memory> short_weight("weight", 7), weight("weight", 8);
  const Kokkos::View<float**, Kokkos::LayoutRight, Memory> of_heads("weight", 5, 8), cos("cos", 2, 4);
  const auto same = [](const std::string& message, const std::string& expected) {
    EXPECT_EQ(message, "KokkosNN::rms_norm_rope: " + expected);
  };
  same(message_of([&] { rms_norm_rope(x, short_weight, y); }), "weight must be (8), as x is (2, 3, 4, 8), but is (7)");
  same(message_of([&] { rms_norm_rope(x, of_heads, y); }),
       "weight must be (4, 8), as x is (2, 3, 4, 8), but is (5, 8)");
  same(message_of([&] { rms_norm_rope(x, weight, y, {.epsilon = -1}); }),
       "epsilon must be finite and not negative, but is -1");
  same(message_of([&] { rms_norm_rope(x, weight, y, {.weight_offset = INFINITY}); }),
       "weight_offset must be finite, but is inf");
  same(message_of([&] { rms_norm_rope(x, weight, y, {.rope = {.rotary_dims = 3}}); }),
       "rotary_dims must be even and within 0 to 8, the last extent of x, but is 3");
  same(message_of([&] { rms_norm_rope(x, weight, cos, cos, y); }),
       "positions 0 to 2 (position_offset 0, sequence 3) are not all among the 2 rows of the tables");
  const Kokkos::View<float*, Memory> in_y(y.data(), 8);
  const std::string overlap = message_of([&] { rms_norm_rope(x, in_y, y); });
  EXPECT_EQ(overlap.substr(0, 40), "KokkosNN::rms_norm_rope: weight at 0x" + overlap.substr(37, 3)) << overlap;
  EXPECT_NE(overlap.find("overlap"), std::string::npos) << overlap;
}

}  // namespace
}  // namespace KokkosNNTest
