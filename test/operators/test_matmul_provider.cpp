// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/message.hpp"
#include "support/types.hpp"

#include <KokkosNN/impl/call/vendor_matmul.hpp>
#include <KokkosNN/matmul.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

// Matrix products by a vendor's library: which ones are, and that they are what own kernels compute. Sums of small
// numbers are exact, whoever adds them.

namespace KokkosNNTest {

struct AddBias {
  template <class A>
  KOKKOS_FUNCTION A operator()(A sum, A bias) const {
    return sum + bias;
  }
};

namespace {

using namespace KokkosNN;

const bool has_vendor = Impl::has_vendor(Impl::backend_of<Exec>());

template <class V>
V filled(int seed, std::size_t e0, std::size_t e1, std::size_t e2 = KOKKOS_IMPL_CTOR_DEFAULT_ARG) {
  using T = typename V::value_type;
  V view("matrices", e0, e1, e2);
  auto host    = Kokkos::create_mirror_view(view);
  T* const all = host.data();
  for (std::size_t i = 0; i < host.size(); ++i) {
    all[i] = static_cast<T>(static_cast<float>(static_cast<int>((i * 7 + static_cast<std::size_t>(seed)) % 5) - 2) / 4);
  }
  Kokkos::deep_copy(view, host);
  return view;
}

template <class T>
using Right = Kokkos::View<T**, Kokkos::LayoutRight, Exec>;
template <class T>
using Left = Kokkos::View<T**, Kokkos::LayoutLeft, Exec>;
template <class T>
using Batch = Kokkos::View<T***, Kokkos::LayoutRight, Exec>;

/// c by the vendor's library and by own kernels, from a c of NaN where beta is 0.
template <class A, class B, class C>
void expect_same(const A& a, const B& b, const C& c, double beta) {
  using T = typename C::value_type;
  const C own("own", c.layout());
  const C automatic("automatic", c.layout());
  for (const C& each : {C(c), own, automatic}) {
    Kokkos::deep_copy(each, static_cast<T>(beta == 0 ? std::numeric_limits<float>::quiet_NaN() : 0.5f));
  }
  matmul(Exec(), a, b, c, {.alpha = 0.5, .beta = beta, .provider = MatmulProvider::vendor});
  matmul(Exec(), a, b, own, {.alpha = 0.5, .beta = beta, .provider = MatmulProvider::own});
  matmul(Exec(), a, b, automatic, {.alpha = 0.5, .beta = beta});
  Exec().fence();
  const auto chosen = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), automatic);
  const auto got    = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), c);
  const auto want   = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), own);
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(static_cast<double>(got.data()[i]), static_cast<double>(want.data()[i])) << i;
    ASSERT_EQ(static_cast<double>(chosen.data()[i]), static_cast<double>(want.data()[i])) << i;
  }
}

template <class T>
class MatmulProviders : public testing::Test {};
TYPED_TEST_SUITE(MatmulProviders, ElementTypes, ElementNames);

TYPED_TEST(MatmulProviders, OfAVendorComputeWhatOwnKernelsDo) {
  using T = TypeParam;
  if (!has_vendor) GTEST_SKIP() << "the library was built without BLAS (KokkosNN_ENABLE_BLAS)";
  if (!on_gpu && is_16_bit<T>) GTEST_SKIP() << "a host's BLAS has no 16-bit types";
  constexpr std::size_t m = 37, n = 21, k = 29;
  const auto a      = filled<Right<T>>(1, m, k);
  const auto a_left = filled<Left<T>>(1, m, k);
  const auto b      = filled<Right<T>>(2, k, n);
  const auto b_left = filled<Left<T>>(2, k, n);
  const Right<T> c("c", m, n);
  const Left<T> c_left("c", m, n);
  for (const double beta : {0.0, 2.0}) {
    expect_same(a, b, c, beta);
    expect_same(a, b_left, c, beta);
    expect_same(a_left, b, c, beta);
    expect_same(a_left, b_left, c_left, beta);
    expect_same(a, b, c_left, beta);
  }
  expect_same(filled<Batch<T>>(3, 4, m, k), filled<Batch<T>>(4, 4, k, n), Batch<T>("c", 4, m, n), 2);
  expect_same(filled<Batch<T>>(3, 4, m, k), b_left, Batch<T>("c", 4, m, n), 0);
  expect_same(a, filled<Batch<T>>(4, 3, k, n), Batch<T>("c", 3, m, n), -1);
  expect_same(filled<Right<T>>(1, 1, k), filled<Right<T>>(2, k, 1), Right<T>("c", 1, 1), 0);
}

TEST(MatmulProviderChoice, IsAVendorsOnAGpuAndOwnOnAHostAndOwnWhereAVendorPromisesLess) {
  using Impl::is_vendors;
  Impl::MatmulLayout layout;
  layout.rows = layout.cols = layout.inner = 64;
  for (int t = 0; t < 3; ++t) {
    layout.row_stride[t] = 64;
    layout.col_stride[t] = 1;
  }
  constexpr Backend backend = Impl::backend_of<Exec>();
  const auto chooses        = [&](const MatmulOptions& options) {
    return is_vendors("matmul", backend, ElementType::f32, options, layout);
  };
  EXPECT_EQ(chooses({}), has_vendor && on_gpu);
  EXPECT_FALSE(chooses({.provider = MatmulProvider::own}));
  EXPECT_FALSE(chooses({.determinism = Determinism::batch_invariant}));
  EXPECT_FALSE(chooses({.tuning = {.parts = 2}}));
  EXPECT_FALSE(on_gpu && chooses({.precision = Precision::tensor_float32x3}));
  layout.col_stride[1] = 2;
  EXPECT_FALSE(chooses({}));
}

TEST(MatmulProviderErrors, SayWhyAVendorHasNoSuchProductAndAutomaticTakesOwnKernels) {
  const auto a = filled<Right<float>>(1, 8, 8), b = filled<Right<float>>(2, 8, 8);
  const Right<float> c("c", 8, 8);
  const Kokkos::View<float*, Exec> bias("bias", 8);
  const MatmulOptions vendor{.provider = MatmulProvider::vendor};
  const std::string with_epilogue = message_of([&] { matmul(Exec(), a, b, c, vendor, AddBias{}, bias); });
  EXPECT_NE(with_epilogue.find("none has epilogues"), std::string::npos) << with_epilogue;
  matmul(Exec(), a, b, c, {}, AddBias{}, bias);

  const Right<double> wide("c", 8, 8);
  const std::string other = message_of([&] { matmul(Exec(), a, b, wide, vendor); });
  EXPECT_NE(other.find("c of another type"), std::string::npos) << other;

  const MatmulOptions invariant{.determinism = Determinism::batch_invariant, .provider = MatmulProvider::vendor};
  const std::string bits = message_of([&] { matmul(Exec(), a, b, c, invariant); });
  const auto twice       = filled<Right<float>>(1, 16, 16);
  const Kokkos::View<float**, Kokkos::LayoutStride, Exec> every_other(twice.data(), Kokkos::LayoutStride(8, 32, 8, 2));
  const std::string strides = message_of([&] { matmul(Exec(), a, every_other, c, vendor); });
  if (has_vendor) {
    EXPECT_NE(bits.find("batch invariant"), std::string::npos) << bits;
    EXPECT_NE(strides.find("strides"), std::string::npos) << strides;
  } else {
    for (const std::string& each : {bits, strides, message_of([&] { matmul(Exec(), a, b, c, vendor); })}) {
      EXPECT_EQ(each,
                "KokkosNN::matmul: a vendor's library was asked for, but this library was built without one for "
                "the execution space");
    }
  }
  Exec().fence();
}

}  // namespace
}  // namespace KokkosNNTest
