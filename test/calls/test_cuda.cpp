// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/gradient.hpp"
#include "support/strategies.hpp"

#include <KokkosNN/KokkosNN.hpp>
#include <KokkosNN/impl/inputs/rows.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#ifdef KOKKOS_ENABLE_CUDA

namespace KokkosNNTest {

/// A stream for the length of a test.
class Stream {
 public:
  Stream() { EXPECT_EQ(cudaStreamCreate(&m_stream), cudaSuccess); }
  ~Stream() { cudaStreamDestroy(m_stream); }
  Stream(const Stream&)            = delete;
  Stream& operator=(const Stream&) = delete;

  operator cudaStream_t() const { return m_stream; }

 private:
  cudaStream_t m_stream = nullptr;
};

/// A graph of what `enqueue` puts on the stream, recorded to be launched many times.
class Graph {
 public:
  template <class F>
  Graph(cudaStream_t stream, F&& enqueue) {
    EXPECT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    enqueue();
    EXPECT_EQ(cudaStreamEndCapture(stream, &m_graph), cudaSuccess);
    EXPECT_EQ(cudaGraphInstantiate(&m_executable, m_graph, 0), cudaSuccess);
  }
  ~Graph() {
    cudaGraphExecDestroy(m_executable);
    cudaGraphDestroy(m_graph);
  }
  Graph(const Graph&)            = delete;
  Graph& operator=(const Graph&) = delete;

  void launch(cudaStream_t stream) const { EXPECT_EQ(cudaGraphLaunch(m_executable, stream), cudaSuccess); }

 private:
  cudaGraph_t m_graph          = nullptr;
  cudaGraphExec_t m_executable = nullptr;
};

class CudaGraph : public ::testing::TestWithParam<RowStrategy> {};

INSTANTIATE_TEST_SUITE_P(Every, CudaGraph,
                         ::testing::Values(RowStrategy::automatic, RowStrategy::vector_lanes, RowStrategy::team_scratch,
                                           RowStrategy::team_registers, RowStrategy::team_online,
                                           RowStrategy::split_row, RowStrategy::inner_lanes),
                         [](const auto& test) { return std::string(KokkosNN::to_string(test.param)); });

TEST_P(CudaGraph, ACapturedPlanGivesTheRightResultForNewInputAtEveryLaunch) {
  const Stream stream;
  {
    const Kokkos::Cuda exec(stream);
    auto trial                   = strategy_trial<RowOperator::softmax, float>(GetParam(), 20, 60);
    const SoftmaxOptions options = trial.with_axis(forced(GetParam()));
    const KokkosNN::SoftmaxPlan plan(exec, trial.x_view(), trial.y_view(), options);
    plan.run();
    exec.fence();
    const Graph graph(stream, [&] { plan.run(); });

    for (const Recipe recipe : all_recipes) {
      fill(trial.x().host(), trial.x_place(), strategy_axis, recipe);
      trial.x().upload();
      trial.y().poison_all();
      graph.launch(stream);
      exec.fence();
      trial.y().download();

      EXPECT_TRUE(trial.correct(options)) << to_string(recipe);
    }
  }
}

TEST(CudaGraphs, GradientsCanBeCaptured) {
  const Stream stream;
  for_each_gradient([&](auto op) {
    constexpr RowOperator Op = decltype(op)::value;
    for (const RowStrategy strategy : strategies_of(Op)) {
      const Kokkos::Cuda exec(stream);
      const SoftmaxOptions options{.plan = {.strategy = strategy}};
      GradientTrial<Op, float> trial(20, 60);
      const auto plan = trial.plan_object(options, exec);
      plan.run();
      exec.fence();
      const Graph graph(stream, [&] { plan.run(); });
      for (int launch = 0; launch < 3; ++launch) {
        trial.dx().poison_all();
        graph.launch(stream);
        exec.fence();
        trial.dx().download();

        EXPECT_TRUE(trial.correct(options)) << KokkosNN::to_string(Op) << ", launch " << launch;
      }
    }
  });
}

TEST(CudaGraphs, ALongRowThatIsSplitByDefaultCanBeCaptured) {
  const Stream stream;
  for (const int launches : {1, 2}) {
    const Kokkos::Cuda exec(stream);
    Trial<RowOperator::softmax, float> trial(launches == 1 ? 2 : 1, launches == 1 ? 500000 : 4000000);
    const KokkosNN::SoftmaxPlan plan(exec, trial.x_view(), trial.y_view());
    ASSERT_EQ(plan.row_plan().strategy, RowStrategy::split_row);
    ASSERT_EQ(plan.row_plan().launches(), launches);
    plan.run();
    exec.fence();
    const Graph graph(stream, [&] { plan.run(); });

    for (int launch = 0; launch < 3; ++launch) {
      trial.y().poison_all();
      graph.launch(stream);
      exec.fence();
      trial.y().download();

      EXPECT_TRUE(trial.correct()) << "launch " << launch;
    }
  }
}

// --- the words that loads take for the last-level cache: numbers in the library, which PTX makes by an instruction ---

using KokkosNN::Eviction;
using KokkosNN::Impl::LinePolicy;

constexpr std::array evictions{Eviction::first, Eviction::quarter_last, Eviction::half_last, Eviction::last};

using Policies = Kokkos::View<std::uint64_t[evictions.size()], Kokkos::SharedSpace>;

/// Writes the words that createpolicy makes of `evictions` on the device, in that order; nothing where loads take no
/// such word.
struct CreatePolicies {
  Policies policies;

  KOKKOS_FUNCTION void operator()(int) const {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policies(0)));
    asm("createpolicy.fractional.L2::evict_last.L2::evict_first.b64 %0, 0.25;" : "=l"(policies(1)));
    asm("createpolicy.fractional.L2::evict_last.L2::evict_first.b64 %0, 0.5;" : "=l"(policies(2)));
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policies(3)));
#endif
  }
};

TEST(LinePolicy, WordsAreWhatTheDeviceMakes) {
  const Policies policies("KokkosNNTest::policies");
  Kokkos::parallel_for("KokkosNNTest::CreatePolicies", 1, CreatePolicies{policies});
  Kokkos::fence("KokkosNNTest::CreatePolicies");
  if (policies(0) == 0) GTEST_SKIP() << "loads of this device, older than Hopper, take no such word";

  for (std::size_t i = 0; i < evictions.size(); ++i) {
    EXPECT_EQ(std::uint64_t(LinePolicy(evictions[i]).word) << 32, policies(i)) << i;
  }
}

}  // namespace KokkosNNTest

#else

TEST(Cuda, NeedsACudaBackend) { GTEST_SKIP() << "this Kokkos has no CUDA backend"; }

#endif
