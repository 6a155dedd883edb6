// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/instances.hpp"
#include "support/recorder.hpp"
#include "support/strategies.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <gtest/gtest.h>

#ifdef KOKKOS_ENABLE_OPENMP
#include <omp.h>
#endif

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace KokkosNNTest {

/// One softmax, log_softmax and logsumexp on a strategy, ready to be called.
struct ThreeCalls {
  RowStrategy strategy;
  StrategyTrial<RowOperator::softmax, float> softmax;
  StrategyTrial<RowOperator::log_softmax, float> log_softmax;
  StrategyTrial<RowOperator::logsumexp, float> logsumexp;

  explicit ThreeCalls(RowStrategy s, std::int64_t cols = 60)
      : strategy(s),
        softmax(strategy_trial<RowOperator::softmax, float>(s, 20, cols)),
        log_softmax(strategy_trial<RowOperator::log_softmax, float>(s, 20, cols)),
        logsumexp(strategy_trial<RowOperator::logsumexp, float>(s, 20, cols)) {}

  void operator()(const Exec& exec) const {
    const SoftmaxOptions options = softmax.with_axis(forced(strategy));
    KokkosNN::softmax(exec, softmax.x_view(), softmax.y_view(), options);
    KokkosNN::log_softmax(exec, log_softmax.x_view(), log_softmax.y_view(), options);
    KokkosNN::logsumexp(exec, logsumexp.x_view(), logsumexp.y_view(), options);
  }
};

bool is_ours(const std::string& label) { return label.rfind("KokkosNN::", 0) == 0; }

/// Scratch memory that Kokkos grows for a kernel.
bool is_kokkos_own(const std::string& label) { return label.rfind("Kokkos::", 0) == 0; }

class KokkosBehaviour : public ::testing::TestWithParam<RowStrategy> {};

INSTANTIATE_TEST_SUITE_P(Every, KokkosBehaviour, ::testing::ValuesIn(all_strategies),
                         [](const auto& test) { return std::string(KokkosNN::to_string(test.param)); });

TEST_P(KokkosBehaviour, EveryLabelStartsWithKokkosNN) {
  const ThreeCalls calls(GetParam());
  const Exec fresh = other_instance();
  Recorder recorder;

  calls(fresh);

  EXPECT_EQ(recorder.kernels.size(), 3u);
  EXPECT_FALSE(recorder.regions.empty());
  for (const auto& kernel : recorder.kernels) EXPECT_TRUE(is_ours(kernel.label)) << kernel.label;
  for (const auto& region : recorder.regions) EXPECT_TRUE(is_ours(region)) << region;
  for (const auto& allocation : recorder.allocations) {
    EXPECT_TRUE(is_ours(allocation) || is_kokkos_own(allocation)) << allocation;
  }
  fresh.fence();
}

TEST_P(KokkosBehaviour, EveryKernelRunsOnTheInstanceThatWasPassed) {
  const ThreeCalls calls(GetParam());
  if (!tools_tell_instances_apart()) GTEST_SKIP() << "instances of this backend share one id: see OpenMPInstances";
  const Exec first = other_instance(), second = other_instance();
  ASSERT_NE(tools_id(first), tools_id(second));
  for (const Exec& exec : {first, second, Exec()}) {
    Recorder recorder;

    calls(exec);

    ASSERT_EQ(recorder.kernels.size(), 3u);
    for (const auto& kernel : recorder.kernels) EXPECT_EQ(kernel.device, tools_id(exec)) << kernel.label;
    exec.fence();
  }
}

TEST_P(KokkosBehaviour, TheResultsOnAnotherInstanceAreRight) {
  ThreeCalls calls(GetParam());
  const Exec exec = other_instance();

  calls(exec);
  exec.fence();

  calls.softmax.y().download();
  calls.log_softmax.y().download();
  calls.logsumexp.y().download();
  EXPECT_TRUE(calls.softmax.correct());
  EXPECT_TRUE(calls.log_softmax.correct());
  EXPECT_TRUE(calls.logsumexp.correct());
}

/// By a plan object, which has its own on a GPU, and on a host what calls before it have left.
TEST_P(KokkosBehaviour, OnlyRowsThatTeamsShareTakeMemoryOfOurs) {
  const auto trial             = strategy_trial<RowOperator::softmax, float>(GetParam(), 20, 60);
  const SoftmaxOptions options = trial.with_axis(forced(GetParam()));
  const Exec exec;
  Recorder recorder;

  const KokkosNN::SoftmaxPlan plan(exec, trial.x_view(), trial.y_view(), options);
  plan.run();

  const auto ours      = std::ranges::count_if(recorder.allocations, is_ours);
  const bool is_shared = GetParam() == RowStrategy::split_row;
  if (on_gpu || !is_shared) EXPECT_EQ(ours > 0, is_shared);
  exec.fence();
}

TEST_P(KokkosBehaviour, FromTheSecondCallOnNothingFencesAndNothingAllocates) {
  const ThreeCalls calls(GetParam());
  const Exec exec = other_instance();
  {
    const Recorder watching;  // few elements are no launch without a tool
    calls(exec);
  }
  exec.fence();
  Recorder recorder;

  calls(exec);
  calls(exec);

  EXPECT_EQ(recorder.kernels.size(), 6u);
  EXPECT_TRUE(recorder.neither_fenced_nor_allocated());
  exec.fence();
}

TEST_P(KokkosBehaviour, APlanObjectNeitherFencesNorAllocatesFromItsFirstRunOn) {
  const auto trial             = strategy_trial<RowOperator::softmax, float>(GetParam(), 20, 60);
  const SoftmaxOptions options = trial.with_axis(forced(GetParam()));
  const Exec exec;
  // Kokkos itself grows its own scratch in the first kernel of that size.
  KokkosNN::softmax(exec, trial.x_view(), trial.y_view(), options);
  const KokkosNN::SoftmaxPlan plan(exec, trial.x_view(), trial.y_view(), options);
  exec.fence();
  Recorder recorder;

  plan.run();

  EXPECT_EQ(recorder.kernel_labels(), std::vector{to_string(plan.row_plan())});
  EXPECT_TRUE(recorder.neither_fenced_nor_allocated());
  exec.fence();
}

TEST_P(KokkosBehaviour, APlanObjectGivesTheRightResultAsOftenAsItRuns) {
  auto trial                   = strategy_trial<RowOperator::softmax, float>(GetParam(), 20, 60);
  const SoftmaxOptions options = trial.with_axis(forced(GetParam()));
  const KokkosNN::SoftmaxPlan plan(Exec(), trial.x_view(), trial.y_view(), options);
  for (int run = 0; run < 5; ++run) {
    trial.y().poison_all();

    plan.run();
    Exec().fence();

    trial.y().download();
    EXPECT_TRUE(trial.correct(options)) << "run " << run;
  }
}

TEST_P(KokkosBehaviour, APlanObjectRunsOnOtherViewsOfTheSameShape) {
  const auto planned           = strategy_trial<RowOperator::softmax, float>(GetParam(), 20, 60);
  auto other                   = strategy_trial<RowOperator::softmax, float>(GetParam(), 20, 60, Recipe::wide);
  const SoftmaxOptions options = planned.with_axis(forced(GetParam()));
  const KokkosNN::SoftmaxPlan plan(Exec(), planned.x_view(), planned.y_view(), options);

  plan.run(other.x_view(), other.y_view());
  Exec().fence();

  other.y().download();
  EXPECT_TRUE(other.correct(options));
}

TEST_P(KokkosBehaviour, ManyCallsInARowOnOneInstanceAreAllRight) {
  std::vector<StrategyTrial<RowOperator::softmax, float>> trials;
  for (const std::int64_t cols : {1, 60, 7, 64, 33, 2, 50}) {
    trials.push_back(strategy_trial<RowOperator::softmax, float>(GetParam(), 20, cols));
  }
  const Exec exec;

  for (int turn = 0; turn < 3; ++turn) {
    for (const auto& trial : trials) {
      KokkosNN::softmax(exec, trial.x_view(), trial.y_view(), trial.with_axis(forced(GetParam())));
    }
  }
  exec.fence();

  for (auto& trial : trials) {
    trial.y().download();
    EXPECT_TRUE(trial.correct());
  }
}

TEST_P(KokkosBehaviour, TwoInstancesAtOnceDoNotDisturbEachOther) {
  auto a           = strategy_trial<RowOperator::softmax, float>(GetParam(), 20, 60);
  auto b           = strategy_trial<RowOperator::softmax, float>(GetParam(), 20, 60, Recipe::wide);
  const Exec first = other_instance(), second = other_instance();

  for (int turn = 0; turn < 20; ++turn) {
    KokkosNN::softmax(first, a.x_view(), a.y_view(), a.with_axis(forced(GetParam())));
    KokkosNN::softmax(second, b.x_view(), b.y_view(), b.with_axis(forced(GetParam())));
  }
  first.fence();
  second.fence();

  a.y().download();
  b.y().download();
  EXPECT_TRUE(a.correct());
  EXPECT_TRUE(b.correct());
}

TEST(KokkosRegions, EveryPublicFunctionIsARegionOfItsName) {
  Trial<RowOperator::softmax, float> matrix(3, 40);
  Trial<RowOperator::logsumexp, float> lse(3, 40);
  Recorder recorder;

  KokkosNN::softmax(Exec(), matrix.x_view(), matrix.y_view());
  KokkosNN::log_softmax(Exec(), matrix.x_view(), matrix.y_view());
  KokkosNN::logsumexp(Exec(), lse.x_view(), lse.y_view());

  EXPECT_EQ(recorder.regions,
            (std::vector<std::string>{"KokkosNN::softmax", "KokkosNN::log_softmax", "KokkosNN::logsumexp"}));
  Exec().fence();
}

TEST(KokkosPlans, EveryPlanObjectIsWhatMakePlanSaysAndRunsIt) {
  Trial<RowOperator::softmax, float> softmax(30, 400);
  Trial<RowOperator::log_softmax, float> log_softmax(30, 400);
  Trial<RowOperator::logsumexp, float> logsumexp(30, 400);
  const KokkosNN::SoftmaxPlan softmax_plan(Exec(), softmax.x_view(), softmax.y_view());
  const KokkosNN::LogSoftmaxPlan log_softmax_plan(Exec(), log_softmax.x_view(), log_softmax.y_view());
  const KokkosNN::LogSumExpPlan logsumexp_plan(Exec(), logsumexp.x_view(), logsumexp.y_view());

  softmax_plan.run();
  log_softmax_plan.run();
  logsumexp_plan.run();
  Exec().fence();

  EXPECT_EQ(softmax_plan.row_plan(), softmax.plan());
  EXPECT_EQ(log_softmax_plan.row_plan(), log_softmax.plan());
  EXPECT_EQ(logsumexp_plan.row_plan(), logsumexp.plan());
  softmax.y().download();
  log_softmax.y().download();
  logsumexp.y().download();
  EXPECT_TRUE(softmax.correct());
  EXPECT_TRUE(log_softmax.correct());
  EXPECT_TRUE(logsumexp.correct());
}

TEST(KokkosPlans, APlanOfAnEmptyViewRunsNothing) {
  Trial<RowOperator::softmax, float> empty(0, 40);
  const KokkosNN::SoftmaxPlan plan(Exec(), empty.x_view(), empty.y_view());

  const auto kernels = kernels_of([&] { plan.run(); });

  EXPECT_TRUE(kernels.empty());
}

TEST(KokkosPlans, MakingAPlanLaunchesAndAllocatesNothing) {
  Trial<RowOperator::softmax, float> trial(30, 400);
  Recorder recorder;

  trial.plan();

  EXPECT_TRUE(recorder.kernels.empty());
  EXPECT_TRUE(recorder.fences.empty());
  EXPECT_TRUE(recorder.allocations.empty());
}

#ifdef KOKKOS_ENABLE_OPENMP
/// Ones in, and out the number of OpenMP threads that the kernel runs with.
struct LoadOnes {
  using value_type = float;
  template <int N>
  KokkosNN::Pack<float, N> load(std::int64_t, std::int64_t) const {
    KokkosNN::Pack<float, N> pack;
    for (float& value : pack.value) value = 1;
    return pack;
  }
};

struct StoreThreads {
  using value_type = float;
  int* threads;
  template <int N>
  void store(const KokkosNN::Pack<float, N>&, std::int64_t row, std::int64_t) const {
    threads[row] = omp_get_num_threads();
  }
};

TEST(OpenMPInstances, EveryKernelRunsWithTheThreadsOfTheInstanceThatWasPassed) {
  for (const RowStrategy strategy :
       strategies_here({RowStrategy::vector_lanes, RowStrategy::team_scratch, RowStrategy::team_registers,
                        RowStrategy::team_online, RowStrategy::split_row})) {
    for (const int threads : {1, 2, 3}) {
      const Kokkos::OpenMP exec(threads);
      constexpr int rows = 200, cols = 20;  // more elements than the calling thread processes by itself
      std::vector<int> seen(rows, 0);

      KokkosNN::fused_softmax(exec, rows, cols, LoadOnes{}, StoreThreads{seen.data()}, forced(strategy));
      exec.fence();

      EXPECT_EQ(seen, std::vector<int>(rows, threads)) << KokkosNN::to_string(strategy);
    }
  }
}
/// Ends the process with a message when a test does not come to its end: a deadlock would only show as a timeout.
class Watchdog {
 public:
  explicit Watchdog(const char* message)
      : m_thread([this, message] {
          std::unique_lock lock(m_mutex);
          if (m_done.wait_for(lock, std::chrono::seconds(60), [this] { return m_is_over; })) return;
          std::fprintf(stderr, "%s\n", message);
          std::abort();
        }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(m_mutex);
      m_is_over = true;
    }
    m_done.notify_one();
    m_thread.join();
  }

 private:
  std::mutex m_mutex;
  std::condition_variable m_done;
  bool m_is_over = false;
  std::thread m_thread;
};

TEST(OpenMPInstances, TwoHostThreadsWithAnInstanceEachCanCallAtOnce) {
  const Watchdog watchdog("two host threads with an OpenMP instance each wait for each other");
  const SoftmaxOptions options{.plan = {.strategy = RowStrategy::team_online, .team_size = 2}};
  std::atomic<int> wrong{0};
  const auto work = [&](Recipe recipe) {
    const Kokkos::OpenMP exec(2);
    using Host = Kokkos::Device<Kokkos::OpenMP, Kokkos::HostSpace>;
    Trial<RowOperator::softmax, float, float, 2, Host> trial(20, 60, recipe);
    for (int call = 0; call < 100; ++call) {
      KokkosNN::softmax(exec, trial.x_view(), trial.y_view(), options);
      exec.fence();
      trial.y().download();
      if (!trial.correct()) ++wrong;
    }
  };

  std::thread first(work, Recipe::uniform), second(work, Recipe::wide);
  first.join();
  second.join();

  EXPECT_EQ(wrong, 0);
}
#endif

/// Keeps one lane of the device busy for about `cycles` additions.
struct Spin {
  Kokkos::View<long*, Memory> out;
  long cycles;
  KOKKOS_FUNCTION void operator()(int i) const {
    long value = i;
    for (long k = 0; k < cycles; ++k) value = value * 6364136223846793005 + k;
    out(i) = value;
  }
};

TEST(KokkosAsynchrony, TheCallReturnsWhileEarlierWorkOnTheInstanceStillRuns) {
  if (!on_gpu) GTEST_SKIP() << "host backends run kernels within the call";
  Trial<RowOperator::softmax, float> trial(30, 400);
  trial.run();
  trial.y().poison_all();
  const Exec exec;
  const Kokkos::View<long*, Memory> out("out", 1);
  using Clock      = std::chrono::steady_clock;
  const auto start = Clock::now();
  Kokkos::parallel_for("spin", Kokkos::RangePolicy<Exec>(exec, 0, 1), Spin{out, 200000000});

  KokkosNN::softmax(exec, trial.x_view(), trial.y_view());
  const auto called = Clock::now();
  exec.fence();
  const auto done = Clock::now();

  EXPECT_LT((called - start) * 4, done - start);
  trial.y().download();
  EXPECT_TRUE(trial.correct());
}

TEST(KokkosAsynchrony, ACallSeesWhatWasEnqueuedBeforeItAndIsSeenByWhatComesAfter) {
  Trial<RowOperator::softmax, float> trial(50, 700);
  const Exec exec = other_instance();
  const auto x    = strided_view<2>(trial.x().device(), trial.x_place());
  const Kokkos::View<float**, Kokkos::LayoutRight, Memory> late_x("late_x", 50, 700), copied("copied", 50, 700);
  const auto dense_x = dense_view<2, Kokkos::LayoutRight>(trial.x().device(), trial.x_place());
  const auto dense_y = dense_view<2, Kokkos::LayoutRight>(trial.y().device(), trial.y_place());
  Kokkos::deep_copy(late_x, dense_x);
  Kokkos::deep_copy(x, 0.0f);

  Kokkos::deep_copy(exec, dense_x, late_x);
  KokkosNN::softmax(exec, dense_x, dense_y);
  Kokkos::deep_copy(exec, copied, dense_y);
  exec.fence();

  Kokkos::deep_copy(dense_y, copied);
  trial.y().download();
  EXPECT_TRUE(trial.correct());
}

}  // namespace KokkosNNTest
