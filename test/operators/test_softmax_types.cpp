// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/check.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <gtest/gtest.h>

namespace KokkosNNTest {

template <class X, class Y>
void check_mixed() {
  Trial<RowOperator::softmax, X, Y> softmax(4, 300);
  Trial<RowOperator::log_softmax, X, Y> log_softmax(4, 300);
  Trial<RowOperator::logsumexp, X, Y> logsumexp(4, 300);

  EXPECT_TRUE(softmax.run_correct()) << Format<X>::name << " to " << Format<Y>::name;
  EXPECT_TRUE(log_softmax.run_correct()) << Format<X>::name << " to " << Format<Y>::name;
  EXPECT_TRUE(logsumexp.run_correct()) << Format<X>::name << " to " << Format<Y>::name;
}

TEST(SoftmaxTypes, EveryPairThatTheLibraryHoldsMatches) {
  check_mixed<double, double>();
  check_mixed<float, float>();
  check_mixed<Half, Half>();
  check_mixed<Half, float>();
  check_mixed<float, Half>();
  check_mixed<BHalf, BHalf>();
  check_mixed<BHalf, float>();
  check_mixed<float, BHalf>();
}

// Any other pair is compiled where it is used, which takes its time: two stand for all.
TEST(SoftmaxTypes, OtherPairsAreCompiledWhereTheyAreUsed) {
  Trial<RowOperator::softmax, double, float> narrowing(4, 300);
  EXPECT_TRUE(narrowing.run_correct());

  Trial<RowOperator::log_softmax, Half, double> widening(4, 300);
  EXPECT_TRUE(widening.run_correct());
}

TEST(SoftmaxTypes, ViewsInHostMemoryRunOnTheHostsExecutionSpace) {
  using HostExec = Kokkos::DefaultHostExecutionSpace;
  using Host     = Kokkos::Device<HostExec, Kokkos::HostSpace>;
  Trial<RowOperator::softmax, float, float, 2, Host> softmax(7, 200);
  Trial<RowOperator::log_softmax, float, float, 2, Host> log_softmax(7, 200);
  Trial<RowOperator::logsumexp, float, float, 2, Host> logsumexp(7, 200);

  EXPECT_TRUE(softmax.run_correct());
  EXPECT_TRUE(log_softmax.run_correct());
  EXPECT_TRUE(logsumexp.run_correct());
}

TEST(SoftmaxTypes, TheSerialSpaceRunsBesideAnotherDefault) {
#ifdef KOKKOS_ENABLE_SERIAL
  using Host = Kokkos::Device<Kokkos::Serial, Kokkos::HostSpace>;
  Trial<RowOperator::softmax, float, float, 2, Host> trial(7, 200);

  EXPECT_TRUE(trial.run_correct());
#else
  GTEST_SKIP() << "this Kokkos has no Serial backend";
#endif
}

}  // namespace KokkosNNTest
