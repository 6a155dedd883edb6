// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/message.hpp"
#include "support/quantized.hpp"
#include "support/recorder.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <Kokkos_Core.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

// Softmax and norms whose results are stored in 8 bits.

namespace KokkosNNTest {
namespace {

using KokkosNN::quantized_layer_norm;
using KokkosNN::quantized_rms_norm;
using KokkosNN::quantized_softmax;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan      = std::numeric_limits<float>::quiet_NaN();

template <class T>
class Quantized : public ::testing::Test {};
TYPED_TEST_SUITE(Quantized, ElementTypes, ElementNames);

/// f(an int8 or a float8, an operator)
template <class F>
void for_each_format(const F& f) {
  for (const RowOperator op : quantized_operators) {
    f(std::int8_t(), op);
    f(float8_e4m3(), op);
  }
}

std::string name_of(const QuantizedCase& given) { return KokkosNN::to_string(given.op); }

TYPED_TEST(Quantized, RowsOfAnyLength) {
  for_each_format([]<class Q>(Q, RowOperator op) {
    const QuantizedCase given{.op = op};
    for (const std::int64_t cols :
         {1,   2,   3,   5,   7,   8,   9,   15,  16,   17,   31,   32,   33,   63,   64,   65,   100, 127,
          128, 129, 130, 255, 256, 257, 511, 513, 1000, 1023, 1024, 1025, 2047, 2048, 4095, 4096, 4099}) {
      QuantizedTrial<TypeParam, Q> trial(cols < 300 ? 37 : 5, cols, given);
      EXPECT_TRUE(trial.run_correct()) << name_of(given) << ", " << cols << " columns";
    }
  });
}

TYPED_TEST(Quantized, RowsLongerThanATeamKeeps) {
  for_each_format([]<class Q>(Q, RowOperator op) {
    const QuantizedCase given{.op = op};
    for (const std::int64_t cols : {8192, 16384, 16392, 32768, 32769, 40001}) {
      QuantizedTrial<TypeParam, Q> trial(3, cols, given);
      EXPECT_TRUE(trial.run_correct()) << name_of(given) << ", " << cols << " columns";
    }
  });
}

TYPED_TEST(Quantized, AnyStridesAxesAndAlignment) {
  const std::vector<std::int64_t> extents{3, 5, 48};
  const Placement places[] = {right(extents),
                              right(extents, 5),
                              left(extents),
                              left(extents, 3),
                              Placement{extents, {5 * 48 * 2, 48 * 2, 2}, 1},
                              Placement{extents, {48, 3 * 48, -1}, 47}};
  for_each_format([&]<class Q>(Q, RowOperator op) {
    for (const int axis : {0, 1, 2, -1, -3}) {
      for (const Placement& x : places) {
        for (const Placement& y : places) {
          QuantizedTrial<TypeParam, Q, 3> trial(x, y, {.op = op, .axis = axis});
          EXPECT_TRUE(trial.run_correct()) << KokkosNN::to_string(op) << ", axis " << axis << ", strides "
                                           << x.strides[2] << " and " << y.strides[2];
        }
      }
    }
    for (const int misalignment : {1, 2, 3}) {
      QuantizedTrial<TypeParam, Q> trial(4, 200, {.op = op, .misalignment = misalignment});
      EXPECT_TRUE(trial.run_correct()) << KokkosNN::to_string(op) << ", misaligned by " << misalignment;
    }
  });
}

TYPED_TEST(Quantized, ReadsRowsWhoseStrideIsZero) {
  for_each_format([]<class Q>(Q, RowOperator op) {
    const std::vector<std::int64_t> extents{7, 50};
    QuantizedTrial<TypeParam, Q> trial(Placement{extents, {0, 1}, 0}, right(extents), {.op = op});
    EXPECT_TRUE(trial.run_correct()) << KokkosNN::to_string(op);
  });
}

TYPED_TEST(Quantized, TakesTheOptionsOfItsOperator) {
  for_each_format([]<class Q>(Q, RowOperator op) {
    std::vector<QuantizedCase> cases;
    if (op == RowOperator::softmax) {
      for (const double scale : {0.125, -1.0, 3.0}) cases.push_back({.op = op, .scale = scale});
      for (const Recipe recipe : all_recipes) cases.push_back({.op = op, .recipe = recipe});
    } else {
      cases = {{.op = op, .epsilon = 2},
               {.op = op, .weight_offset = 1},
               {.op = op, .has_columns = false},
               {.op = op, .weight_offset = 1, .has_columns = false},
               {.op = op, .has_float_columns = true}};
      for (const Recipe recipe : {Recipe::huge, Recipe::one_dominant, Recipe::ascending}) {
        cases.push_back({.op = op, .recipe = recipe});
      }
    }
    for (const QuantizedCase& given : cases) {
      QuantizedTrial<TypeParam, Q> trial(9, 300, given);
      EXPECT_TRUE(trial.run_correct()) << name_of(given) << ", case " << &given - cases.data();
    }
  });
}

TYPED_TEST(Quantized, Float8WithoutScalesHoldsTheResultsThemselves) {
  for (const RowOperator op : quantized_operators) {
    for (const std::int64_t cols : {1, 7, 64, 1000, 40001}) {
      const QuantizedCase given{.op = op, .has_scales = false};
      QuantizedTrial<TypeParam, float8_e4m3> trial(3, cols, given);
      EXPECT_TRUE(trial.run_correct()) << name_of(given) << ", " << cols << " columns";
    }
  }
}

/// Rows of special elements among common rows, by the numbers of the rows.
TYPED_TEST(Quantized, SpecialValuesStayInTheirRow) {
  for_each_format([]<class Q>(Q, RowOperator op) {
    for (const bool has_scales : {true, false}) {
      if (!has_scales && std::is_same_v<Q, std::int8_t>) continue;
      for (const std::int64_t cols : {3, 40, 1000}) {
        for (const MaskedRowPolicy policy : {MaskedRowPolicy::nan, MaskedRowPolicy::zero}) {
          QuantizedTrial<TypeParam, Q> trial(8, cols, {.op = op, .masked_row = policy, .has_scales = has_scales});
          TypeParam* const x = trial.x().host();
          x[1 * cols + 2]    = TypeParam(nan);
          x[2 * cols]        = TypeParam(infinity);
          x[3 * cols + 1]    = TypeParam(-infinity);
          for (std::int64_t i = 0; i < cols; ++i) x[5 * cols + i] = TypeParam(0);
          for (std::int64_t i = 0; i < cols; ++i) x[6 * cols + i] = TypeParam(-infinity);
          trial.x().upload();
          EXPECT_TRUE(trial.run_correct()) << KokkosNN::to_string(op) << ", " << cols << " columns";
        }
      }
    }
  });
}

TEST(QuantizedRows, OfZerosHaveTheScaleOneAndAllElementsZero) {
  QuantizedTrial<float, std::int8_t> trial(2, 33, {.op = RowOperator::rms_norm});
  for (std::int64_t i = 0; i < 66; ++i) trial.x().host()[i] = i < 33 ? 0.0f : -0.0f;
  trial.x().upload();
  trial.run();
  EXPECT_EQ(trial.scales().host()[0], 1);
  EXPECT_EQ(trial.scales().host()[1], 1);
  for (std::int64_t i = 0; i < 66; ++i) EXPECT_EQ(trial.y().host()[i], 0) << i;
}

TEST(QuantizedRows, WithANotANumberOfOneColumnHaveTheScaleNotANumber) {
  QuantizedTrial<float, std::int8_t> trial(2, 33, {.op = RowOperator::rms_norm});
  trial.weight().host()[2 * 17] = nan;
  trial.weight().upload();
  trial.run();
  for (const int row : {0, 1}) EXPECT_TRUE(std::isnan(trial.scales().host()[row]));
  for (std::int64_t i = 0; i < 66; ++i) EXPECT_EQ(trial.y().host()[i], 0) << i;
}

TEST(QuantizedRows, OfTinyResultsHaveANormalScale) {
  QuantizedTrial<float, std::int8_t> trial(1, 4, {.op = RowOperator::rms_norm, .has_float_columns = true});
  const Kokkos::View<float*, Memory> weight("weight", 4);
  Kokkos::deep_copy(weight, 0x1p-124f);
  for (std::int64_t i = 0; i < 4; ++i) trial.x().host()[i] = 1;
  trial.x().upload();
  quantized_rms_norm(trial.x_view(), weight, trial.y_view(), trial.scales_view(), {.epsilon = 0});
  Kokkos::fence();
  trial.y().download();
  trial.scales().download();
  EXPECT_EQ(trial.scales().host()[0], 0x1p-126f);
  for (std::int64_t i = 0; i < 4; ++i) EXPECT_EQ(trial.y().host()[i], 4) << i;
}

TEST(QuantizedRows, RoundTiesToEven) {
  // Without epsilon the norm of (a, -a, ...) is (1, -1, ...), and weights are the results.
  const float wanted[] = {127, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f, 126.5f};
  const float codes[]  = {127, 0, 2, 2, 0, -2, -2, 126};
  QuantizedTrial<float, std::int8_t> trial(1, 8, {.op = RowOperator::rms_norm});
  const Kokkos::View<float*, Memory> weight("weight", 8);
  const auto host = Kokkos::create_mirror_view(weight);
  for (int i = 0; i < 8; ++i) {
    host(i)             = wanted[i];
    trial.x().host()[i] = 1;
  }
  Kokkos::deep_copy(weight, host);
  trial.x().upload();
  quantized_rms_norm(trial.x_view(), weight, trial.y_view(), trial.scales_view(), {.epsilon = 0});
  Kokkos::fence();
  trial.y().download();
  trial.scales().download();
  EXPECT_EQ(trial.scales().host()[0], 1);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(trial.y().host()[i], codes[i]) << wanted[i];
}

/// A row's bits depend neither on the other rows nor on where it lies, and are the same each time.
TYPED_TEST(Quantized, BitsDependOnTheRowAlone) {
  for_each_format([]<class Q>(Q, RowOperator op) {
    for (const std::int64_t cols : {5, 64, 208, 1001, 33008}) {
      const QuantizedCase given{.op = op};
      const std::int64_t rows = 6;
      QuantizedTrial<TypeParam, Q> all(rows, cols, given), again(rows, cols, given);
      all.run();
      again.run();
      QuantizedTrial<TypeParam, Q> spread(Placement{{rows, cols}, {3 * cols + 1, 3}, 0}, left({rows, cols}),
                                          {.op = op, .misalignment = 1});
      spread.run();
      QuantizedTrial<TypeParam, Q> one(Placement{{1, cols}, {cols, 1}, 0}, right({1, cols}), {.op = op});
      for (std::int64_t i = 0; i < cols; ++i) one.x().host()[i] = all.x().host()[2 * cols + i];
      one.x().upload();
      one.run();
      std::int64_t others = 0;
      for (std::int64_t i = 0; i < rows * cols; ++i) {
        const Q code = all.y().host()[i];
        others +=
            !same_bits(code, again.y().host()[i]) || !same_bits(code, spread.y().host()[i / cols + i % cols * rows]);
        if (i / cols == 2) others += !same_bits(code, one.y().host()[i % cols]);
      }
      for (std::int64_t r = 0; r < rows; ++r) {
        others += !same_bits(all.scales().host()[r], again.scales().host()[r]) ||
                  !same_bits(all.scales().host()[r], spread.scales().host()[r]);
      }
      others += !same_bits(all.scales().host()[2], one.scales().host()[0]);
      EXPECT_EQ(others, 0) << KokkosNN::to_string(op) << ", " << cols << " columns";
    }
  });
}

TYPED_TEST(Quantized, WithoutRowsOrColumnsNothingIsWritten) {
  for_each_format([]<class Q>(Q, RowOperator op) {
    for (const auto& [rows, cols] : {std::pair{0, 5}, {5, 0}, {0, 0}}) {
      QuantizedTrial<TypeParam, Q> trial(rows, cols, {.op = op});
      EXPECT_EQ(kernels_of([&] { trial.call(); }), std::vector<std::string>{}) << KokkosNN::to_string(op);
      trial.scales().download();
      EXPECT_TRUE(trial.scales().untouched()) << KokkosNN::to_string(op);
    }
  });
}

TEST(QuantizedRows, EnqueueOneKernelWhoseLabelHasTheTypes) {
  for_each_format([]<class Q>(Q, RowOperator op) {
    QuantizedTrial<float, Q> trial(10, 600, {.op = op});
    trial.call();
    const Recorder recorder;
    trial.call();
    EXPECT_TRUE(recorder.neither_fenced_nor_allocated()) << KokkosNN::to_string(op);
    ASSERT_EQ(recorder.kernels.size(), 1U);
    const std::string format = std::is_same_v<Q, std::int8_t> ? "int8" : "float8";
    const std::string label  = std::string("KokkosNN::quantized_") + KokkosNN::to_string(op) + "[f32>" + format + ",";
    EXPECT_EQ(recorder.kernels[0].label.substr(0, label.size()), label);
    EXPECT_EQ(recorder.regions, std::vector<std::string>{std::string("KokkosNN::quantized_") + to_string(op)});
  });
}

/// Offsets of more than 31 bits: y's rows are a gigabyte apart.
TEST(QuantizedRows, MayBeFarApart) {
  constexpr std::int64_t rows = 3, cols = 40, apart = (std::int64_t(1) << 30) + 16;
  const Kokkos::View<std::int8_t*, Memory> memory(Kokkos::view_alloc(Kokkos::WithoutInitializing, "memory"),
                                                  (rows - 1) * apart + cols);
  QuantizedTrial<float, std::int8_t> far(rows, cols, {.op = RowOperator::layer_norm, .has_columns = false});
  const auto y = strided_view<2>(memory.data(), Placement{{rows, cols}, {apart, 1}, 0});
  quantized_layer_norm(far.x_view(), no_view, no_view, y, far.scales_view());
  QuantizedTrial<float, std::int8_t> plain(rows, cols, {.op = RowOperator::layer_norm, .has_columns = false});
  plain.run();
  const auto last  = Kokkos::subview(memory, std::pair(2 * apart, 2 * apart + cols));
  const auto host  = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), last);
  std::int64_t bad = 0;
  for (std::int64_t i = 0; i < cols; ++i) bad += host(i) != plain.y().host()[2 * cols + i];
  EXPECT_EQ(bad, 0);
}

TEST(QuantizedErrors, NameTheFunctionAndTheValues) {
  using Codes = Kokkos::View<std::int8_t**, Kokkos::LayoutRight, Memory>;
  const Kokkos::View<float**, Kokkos::LayoutRight, Memory> x("x", 3, 8);
  const Codes y("y", 3, 8), short_y("y", 3, 7);
  const Kokkos::View<float*, Memory> scales("scales", 3), few_scales("scales", 2), weight("weight", 7);
  const auto same = [](const std::string& message, const std::string& expected) { EXPECT_EQ(message, expected); };
  same(message_of([&] { quantized_softmax(x, short_y, scales); }),
       "KokkosNN::quantized_softmax: x and y must have the same extents, but x is (3, 8) and y is (3, 7)");
  same(message_of([&] { quantized_softmax(x, y, few_scales); }),
       "KokkosNN::quantized_softmax: scales must have the extents of x without the axis, (3), but x is (3, 8) and "
       "scales is (2)");
  same(message_of([&] { quantized_softmax(x, y, scales, {.scale = 0}); }),
       "KokkosNN::quantized_softmax: |scale| must be within 2^-100 to 2^100, but scale is 0");
  same(message_of([&] { quantized_rms_norm(x, weight, y, scales); }),
       "KokkosNN::quantized_rms_norm: weight must have one element for each of the 8 columns, but has 7");
  same(message_of([&] { quantized_rms_norm(x, no_view, y, scales, {.axis = 2}); }),
       "KokkosNN::quantized_rms_norm: axis 2 is out of range for rank 2");
  same(message_of([&] { quantized_rms_norm(x, no_view, y, scales, {.epsilon = -1}); }),
       "KokkosNN::quantized_rms_norm: epsilon must be finite and not negative, but is -1");
  same(message_of([&] { quantized_rms_norm(x, no_view, y, scales, {.weight_offset = infinity}); }),
       "KokkosNN::quantized_rms_norm: weight_offset must be finite, but is inf");
  same(message_of([&] {
         quantized_layer_norm(x, no_view, no_view, y, scales,
                              {.plan = {.strategy = KokkosNN::RowStrategy::team_online}});
       }),
       "KokkosNN::quantized_layer_norm: there is one kernel, so options.plan must be empty");
  const Codes in_x(reinterpret_cast<std::int8_t*>(x.data()) + 4, 3, 8);
  const std::string overlap = message_of([&] { quantized_layer_norm(x, no_view, no_view, in_x, scales); });
  EXPECT_NE(overlap.find("KokkosNN::quantized_layer_norm: x at "), std::string::npos) << overlap;
  EXPECT_NE(overlap.find("overlap"), std::string::npos) << overlap;
  EXPECT_EQ(overlap.find("in place"), std::string::npos) << overlap;
}

TEST(QuantizedSoftmax, ReducesSeveralAxes) {
  const Kokkos::View<float***, Kokkos::LayoutRight, Memory> x("x", 4, 5, 6);
  const Kokkos::View<std::int8_t***, Kokkos::LayoutRight, Memory> y("y", 4, 5, 6);
  const Kokkos::View<float*, Memory> scales("scales", 4);
  quantized_softmax(x, y, scales, {.axis = 1, .axes = 2});
  const auto host_scales = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), scales);
  const auto host_y      = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), y);
  for (int r = 0; r < 4; ++r) EXPECT_FLOAT_EQ(host_scales(r), 1.0f / 30 / 127);
  EXPECT_EQ(host_y(3, 4, 5), 127);
}

}  // namespace
}  // namespace KokkosNNTest
