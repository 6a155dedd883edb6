// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "calls.hpp"

#include <KokkosNN/KokkosNN.hpp>
#include <KokkosNN/kokkosnn.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

// The operators whose results are in 8 bits, and RMSNorm with a rotary embedding, in C.

namespace KokkosNNTest {
namespace {

template <class T>
class CQuantized : public ::testing::Test {};
TYPED_TEST_SUITE(CQuantized, ElementTypes, ElementNames);

template <class T>
class CFusedForServing : public ::testing::Test {};
TYPED_TEST_SUITE(CFusedForServing, ElementTypes, ElementNames);

template <class T, class Q>
void expect_same_codes() {
  const auto x             = filled<T>(1, 3, 5, 7);
  const auto weight        = filled<T>(2, 5);
  const auto bias          = filled<KokkosNN::accumulator_t<T>>(3, 5);
  const auto y             = empty<Q>(3, 5, 7);
  const auto scales        = empty<float>(3, 7);
  const kokkosnn_tensor cx = tensor(x), cweight = tensor(weight), cbias = tensor(bias), cy = tensor(y),
                        cscales             = tensor(scales);
  kokkosnn_softmax_options of_softmax       = KOKKOSNN_SOFTMAX_OPTIONS_INIT;
  kokkosnn_rms_norm_options of_rms_norm     = KOKKOSNN_RMS_NORM_OPTIONS_INIT;
  kokkosnn_layer_norm_options of_layer_norm = KOKKOSNN_LAYER_NORM_OPTIONS_INIT;
  of_softmax.axis = of_rms_norm.axis = of_layer_norm.axis = 1;
  of_softmax.scale                                        = 0.5;
  of_rms_norm.weight_offset                               = 1;
  of_layer_norm.epsilon                                   = 0.25;
  const Exec exec;
  const auto expect = [&](const char* name, const auto& cpp, const auto& c) {
    expect_same(name, y, cpp, c);
    expect_same(name, scales, cpp, c);
  };
  expect(
      "quantized_softmax", [&] { KokkosNN::quantized_softmax(exec, x, y, scales, {.axis = 1, .scale = 0.5}); },
      [&] { return kokkosnn_quantized_softmax(&here, &cx, &cy, &cscales, &of_softmax); });
  expect(
      "quantized_rms_norm",
      [&] { KokkosNN::quantized_rms_norm(exec, x, weight, y, scales, {.axis = 1, .weight_offset = 1}); },
      [&] { return kokkosnn_quantized_rms_norm(&here, &cx, &cweight, &cy, &cscales, &of_rms_norm); });
  expect(
      "quantized_layer_norm",
      [&] { KokkosNN::quantized_layer_norm(exec, x, weight, bias, y, scales, {.axis = 1, .epsilon = 0.25}); },
      [&] { return kokkosnn_quantized_layer_norm(&here, &cx, &cweight, &cbias, &cy, &cscales, &of_layer_norm); });
}

TYPED_TEST(CQuantized, FunctionsEqualTheCppOnes) {
  expect_same_codes<TypeParam, std::int8_t>();
  expect_same_codes<TypeParam, KokkosNN::float8_e4m3>();
}

TEST(CQuantizedFunctions, TakeFloat8WithoutScales) {
  const auto x             = filled<float>(1, 4, 9);
  const auto y             = empty<KokkosNN::float8_e4m3>(4, 9);
  const kokkosnn_tensor cx = tensor(x), cy = tensor(y);
  expect_same(
      "quantized_rms_norm", y, [&] { KokkosNN::quantized_rms_norm(x, KokkosNN::no_view, y, KokkosNN::no_view); },
      [&] { return kokkosnn_quantized_rms_norm(&here, &cx, nullptr, &cy, nullptr, nullptr); });
}

TEST(CQuantizedFunctions, RefuseOtherTypesAndMissingScales) {
  const auto x             = filled<float>(1, 4, 9);
  const auto y             = empty<std::int8_t>(4, 9);
  const auto floats        = empty<float>(4, 9);
  const auto scales        = empty<double>(4);
  const kokkosnn_tensor cx = tensor(x), cy = tensor(y), cfloats = tensor(floats), cscales = tensor(scales);
  const auto message = [](kokkosnn_status status) {
    EXPECT_EQ(status, KOKKOSNN_INVALID_ARGUMENT);
    return std::string(kokkosnn_last_error());
  };
  EXPECT_EQ(message(kokkosnn_quantized_softmax(&here, &cx, &cfloats, nullptr, nullptr)),
            "KokkosNN::quantized_softmax: y must hold i8 or f8e4m3, but holds f32");
  EXPECT_EQ(message(kokkosnn_quantized_softmax(&here, &cx, &cy, nullptr, nullptr)),
            "KokkosNN::quantized_softmax: scales is missing");
  EXPECT_EQ(message(kokkosnn_quantized_rms_norm(&here, &cx, nullptr, &cy, &cscales, nullptr)),
            "KokkosNN::quantized_rms_norm: scales must hold f32, but holds f64");
  EXPECT_EQ(message(kokkosnn_quantized_layer_norm(&here, &cx, &cfloats, nullptr, &cy, &cscales, nullptr)),
            "KokkosNN::quantized_layer_norm: scales must hold f32, but holds f64");
}

TYPED_TEST(CFusedForServing, RmsNormRopeEqualsTheCppOne) {
  using T                  = TypeParam;
  using A                  = KokkosNN::accumulator_t<T>;
  const auto x             = filled<T>(1, 2, 3, 4, 8);
  const auto weight        = filled<T>(2, 4, 8);
  const auto cos           = filled<A>(3, 5, 2);
  const auto sin           = filled<A>(4, 5, 2);
  const auto y             = empty<T>(2, 3, 4, 8);
  const auto places        = listed<std::int32_t>({4, 0, 2});
  const kokkosnn_tensor cx = tensor(x), cweight = tensor(weight), ccos = tensor(cos), csin = tensor(sin),
                        cy = tensor(y), cplaces = tensor(places);
  kokkosnn_rms_norm_rope_options given = KOKKOSNN_RMS_NORM_ROPE_OPTIONS_INIT;
  given.epsilon                        = 0.25;
  given.weight_offset                  = 1;
  given.form                           = KOKKOSNN_ROPE_INTERLEAVED;
  given.rotary_dims                    = 4;
  const KokkosNN::RmsNormRopeOptions options{
      .epsilon = 0.25, .weight_offset = 1, .rope = {.form = KokkosNN::RopeForm::interleaved, .rotary_dims = 4}};
  const Exec exec;
  expect_same(
      "rms_norm_rope", y, [&] { KokkosNN::rms_norm_rope(exec, x, weight, cos, sin, y, options, places); },
      [&] { return kokkosnn_rms_norm_rope(&here, &cx, &cweight, &ccos, &csin, &cy, &cplaces, &given); });
  expect_same(
      "rms_norm_rope without tables", y, [&] { KokkosNN::rms_norm_rope(exec, x, KokkosNN::no_view, y); },
      [&] { return kokkosnn_rms_norm_rope(&here, &cx, nullptr, nullptr, nullptr, &cy, nullptr, nullptr); });
  EXPECT_EQ(kokkosnn_rms_norm_rope(&here, &cx, nullptr, &ccos, nullptr, &cy, nullptr, nullptr),
            KOKKOSNN_INVALID_ARGUMENT);
  EXPECT_EQ(std::string(kokkosnn_last_error()), "KokkosNN::rms_norm_rope: sin is missing beside the other table");
}

}  // namespace
}  // namespace KokkosNNTest
