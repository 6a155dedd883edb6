// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/cross_entropy.hpp>
#include <KokkosNN/gradients.hpp>
#include <KokkosNN/masked_softmax.hpp>
#include <KokkosNN/norm.hpp>
#include <KokkosNN/segmented.hpp>
#include <KokkosNN/softmax.hpp>

#include <Kokkos_Core.hpp>
#include <gtest/gtest.h>

// The headers of the families, without KokkosNN.hpp: calls are the library's, and no kernel comes with them.

namespace KokkosNNTest {

using namespace KokkosNN;
using Exec   = Kokkos::DefaultExecutionSpace;
using Matrix = Kokkos::View<float**, Exec>;

template <class X, class Y>
constexpr bool has_softmax = Impl::HasKernels<Impl::ViewCall<Exec, RowOperator::softmax, X, Y>>;

TEST(CompiledCalls, TheFamiliesHeadersHaveTheLibrarysTypesAndNoOthers) {
  EXPECT_TRUE((has_softmax<float, float>));
  EXPECT_TRUE((has_softmax<double, double>));
  EXPECT_TRUE((has_softmax<half_t, half_t>));
  EXPECT_TRUE((has_softmax<bhalf_t, bhalf_t>));
  EXPECT_FALSE((has_softmax<half_t, bhalf_t>));
  EXPECT_FALSE((Impl::HasKernels<Impl::GradientCall<Exec, RowOperator::softmax_backward, float, half_t, float>>));
  EXPECT_TRUE((Impl::HasKernels<Impl::MaskedCall<Exec, RowOperator::masked_softmax, float, float>>));
  EXPECT_TRUE((Impl::HasKernels<Impl::CrossEntropyCall<Exec, RowOperator::cross_entropy, float, float>>));
  EXPECT_TRUE((Impl::HasKernels<Impl::OperandCall<Exec, RowOperator::rms_norm, float>>));
  EXPECT_TRUE((Impl::HasKernels<Impl::SegmentedCall<Exec, RowOperator::softmax, float, float>>));
}

TEST(CompiledCalls, ACallAndAPlanObjectNeedNoMoreThanOneHeader) {
  const Matrix x("x", 3, 5), y("y", 3, 5), z("z", 3, 5);
  const auto sum_of = [](const Matrix& view) {
    float sum       = 0;
    const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), view);
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 5; ++j) sum += host(i, j);
    }
    return sum;
  };
  softmax(Exec(), x, y);
  SoftmaxPlan plan(Exec(), x, z);
  plan.run();
  Exec().fence();
  EXPECT_FLOAT_EQ(sum_of(y), 3);
  EXPECT_FLOAT_EQ(sum_of(z), 3);
  softmax_backward(Exec(), y, z, x);
  Exec().fence();
  EXPECT_NEAR(sum_of(x), 0, 1e-6);
}

}  // namespace KokkosNNTest
