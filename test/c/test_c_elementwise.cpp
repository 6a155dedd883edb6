// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "calls.hpp"

#include <KokkosNN/column_sums.hpp>
#include <KokkosNN/elementwise.hpp>

#include <gtest/gtest.h>

// The elementwise operators and sums over rows in C.

namespace KokkosNNTest {
namespace {

constexpr int rows = 5, cols = 7;

template <class T>
class CElementwise : public ::testing::Test {};
TYPED_TEST_SUITE(CElementwise, ElementTypes, ElementNames);

TYPED_TEST(CElementwise, FunctionsEqualTheCppOnes) {
  using T                  = TypeParam;
  const auto x             = filled<T>(1, rows, cols);
  const auto row           = filled<T>(2, cols);
  const auto dy            = filled<T>(3, rows, cols);
  const auto y             = empty<T>(rows, cols);
  const auto z             = empty<T>(rows, cols);
  const kokkosnn_tensor cx = tensor(x), crow = tensor(row), cdy = tensor(dy), cy = tensor(y), cz = tensor(z);
  Exec exec;

  expect_same("add", y, [&] { KokkosNN::add(exec, x, row, y); }, [&] { return kokkosnn_add(&here, &cx, &crow, &cy); });
  expect_same("mul", y, [&] { KokkosNN::mul(exec, x, row, y); }, [&] { return kokkosnn_mul(&here, &cx, &crow, &cy); });
  expect_same("silu", y, [&] { KokkosNN::silu(exec, x, y); }, [&] { return kokkosnn_silu(&here, &cx, &cy); });
  expect_same(
      "silu_backward", y, [&] { KokkosNN::silu_backward(exec, x, dy, y); },
      [&] { return kokkosnn_silu_backward(&here, &cx, &cdy, &cy); });
  expect_same(
      "swiglu", y, [&] { KokkosNN::swiglu(exec, x, row, y); }, [&] { return kokkosnn_swiglu(&here, &cx, &crow, &cy); });
  for (const auto& output : {y, z}) {
    expect_same(
        "swiglu_backward", output, [&] { KokkosNN::swiglu_backward(exec, x, row, dy, y, z); },
        [&] { return kokkosnn_swiglu_backward(&here, &cx, &crow, &cdy, &cy, &cz); });
  }
}

TYPED_TEST(CElementwise, FunctionsOfBothFormsOfGeluEqualTheCppOnes) {
  using T                  = TypeParam;
  const auto x             = filled<T>(1, rows, cols);
  const auto up            = filled<T>(2, rows, cols);
  const auto dy            = filled<T>(3, rows, cols);
  const auto y             = empty<T>(rows, cols);
  const auto z             = empty<T>(rows, cols);
  const kokkosnn_tensor cx = tensor(x), cup = tensor(up), cdy = tensor(dy), cy = tensor(y), cz = tensor(z);
  Exec exec;

  for (const auto form : {KokkosNN::GeluForm::erf, KokkosNN::GeluForm::tanh}) {
    const KokkosNN::GeluOptions options{form};
    kokkosnn_gelu_options tanh         = KOKKOSNN_GELU_OPTIONS_INIT;
    tanh.form                          = KOKKOSNN_GELU_TANH;
    const kokkosnn_gelu_options* given = form == KokkosNN::GeluForm::tanh ? &tanh : nullptr;
    expect_same(
        "gelu", y, [&] { KokkosNN::gelu(exec, x, y, options); }, [&] { return kokkosnn_gelu(&here, &cx, &cy, given); });
    expect_same(
        "gelu_backward", y, [&] { KokkosNN::gelu_backward(exec, x, dy, y, options); },
        [&] { return kokkosnn_gelu_backward(&here, &cx, &cdy, &cy, given); });
    expect_same(
        "geglu", y, [&] { KokkosNN::geglu(exec, x, up, y, options); },
        [&] { return kokkosnn_geglu(&here, &cx, &cup, &cy, given); });
    for (const auto& output : {y, z}) {
      expect_same(
          "geglu_backward", output, [&] { KokkosNN::geglu_backward(exec, x, up, dy, y, z, options); },
          [&] { return kokkosnn_geglu_backward(&here, &cx, &cup, &cdy, &cy, &cz, given); });
    }
  }
}

template <class X, class Y>
void expect_cast() {
  const auto x             = filled<X>(1, rows, cols);
  const auto y             = empty<Y>(rows, cols);
  const kokkosnn_tensor cx = tensor(x), cy = tensor(y);
  Exec exec;
  expect_same("cast", y, [&] { KokkosNN::cast(exec, x, y); }, [&] { return kokkosnn_cast(&here, &cx, &cy); });
}

TYPED_TEST(CElementwise, CastsGoFromEachTypeToEachOther) {
  expect_cast<TypeParam, double>();
  expect_cast<TypeParam, float>();
  expect_cast<TypeParam, Half>();
  expect_cast<TypeParam, BHalf>();
}

TYPED_TEST(CElementwise, SumsOverRowsEqualTheCppOnes) {
  using T                  = TypeParam;
  const auto x             = filled<T>(1, rows, cols, 3);
  const auto y             = empty<T>(cols);
  const auto wide          = empty<KokkosNN::accumulator_t<T>>(3);
  const kokkosnn_tensor cx = tensor(x), cy = tensor(y), cwide = tensor(wide);
  kokkosnn_column_sums_options given = KOKKOSNN_COLUMN_SUMS_OPTIONS_INIT;
  given.axis                         = 1;
  Exec exec;

  expect_same(
      "column_sums", wide, [&] { KokkosNN::column_sums(exec, x, wide); },
      [&] { return kokkosnn_column_sums(&here, &cx, &cwide, nullptr); });
  expect_same(
      "column_sums of an axis", y, [&] { KokkosNN::column_sums(exec, x, y, {.axis = 1}); },
      [&] { return kokkosnn_column_sums(&here, &cx, &cy, &given); });
}

TEST(CElementwiseErrors, NameTheFunctionAndTheArgument) {
  const auto x             = filled<float>(1, rows, cols);
  const auto doubles       = filled<double>(1, rows, cols);
  const auto row           = filled<float>(1, cols);
  const kokkosnn_tensor cx = tensor(x), cdoubles = tensor(doubles), crow = tensor(row);
  expect_error(kokkosnn_add(&here, &cx, nullptr, &cx), "KokkosNN::add: b is missing");
  expect_error(kokkosnn_add(&here, &cx, &cdoubles, &cx), "KokkosNN::add: b must hold f32, but holds f64");
  expect_error(kokkosnn_silu(&here, &cx, &crow), "KokkosNN::silu: x must have rank 0 to 1, but has rank 2");
  expect_error(kokkosnn_swiglu_backward(&here, &cx, &cx, &cx, &cx, &crow),
               "KokkosNN::swiglu_backward: dup must have rank 2, but has rank 1");
  kokkosnn_gelu_options options = KOKKOSNN_GELU_OPTIONS_INIT;
  options.form                  = 2;
  expect_error(kokkosnn_gelu(&here, &cx, &cx, &options), "KokkosNN::gelu: form must be 0 to 1, but is 2");
  expect_error(kokkosnn_column_sums(&here, &cx, &cx, nullptr),
               "KokkosNN::column_sums: y must have rank 1, but has rank 2");
  const auto wide_row             = empty<double>(cols);
  const kokkosnn_tensor cwide_row = tensor(wide_row);
  expect_error(kokkosnn_column_sums(&here, &cx, &cwide_row, nullptr),
               "KokkosNN::column_sums: y must hold f32, but holds f64");
}

}  // namespace
}  // namespace KokkosNNTest
