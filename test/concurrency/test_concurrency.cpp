// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/recorder.hpp"
#include "support/strategies.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <Kokkos_Core.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

// Several host threads call at once. Each has data of its own, and must get the bits that its calls give alone: what a
// call keeps between its kernels is the call's, also where threads share an instance without knowing it.

namespace KokkosNNTest {

using KokkosNN::Reduction;
using KokkosNN::RowStrategy;
using KokkosNN::SoftmaxOptions;

/// Kokkos::Threads serves one thread; where Serial is there too, as in the preset dev-tsan, that is what is shared.
#if defined(KOKKOS_ENABLE_THREADS) && defined(KOKKOS_ENABLE_SERIAL)
using Shared = Kokkos::Serial;
#else
using Shared = Kokkos::DefaultExecutionSpace;
#endif
#if defined(KOKKOS_ENABLE_THREADS)
inline constexpr bool serves_one_thread = std::is_same_v<Shared, Kokkos::Threads>;
#else
inline constexpr bool serves_one_thread = false;
#endif

using Numbers = Kokkos::View<float*, Shared::memory_space>;
using Matrix  = Kokkos::View<float**, Kokkos::LayoutRight, Shared::memory_space>;
using Heads   = Kokkos::View<float****, Kokkos::LayoutRight, Shared::memory_space>;
using Scalar  = Kokkos::View<float, Shared::memory_space>;
using Labels  = Kokkos::View<int*, Shared::memory_space>;

/// Memory of n numbers between -2 and 2 that differ from seed to seed.
Numbers numbers(std::size_t n, unsigned seed) {
  const Numbers view(Kokkos::view_alloc(Kokkos::WithoutInitializing, "numbers"), n);
  const auto host    = Kokkos::create_mirror_view(Kokkos::HostSpace(), view);
  std::uint32_t bits = 2654435761u * (seed + 1);
  for (std::size_t i = 0; i < n; ++i) {
    bits    = bits * 1664525u + 1013904223u;
    host(i) = static_cast<float>(bits >> 8) / static_cast<float>(1 << 22) - 2;
  }
  Kokkos::deep_copy(view, host);
  return view;
}

Labels integers(const std::vector<int>& values) {
  const Labels view(Kokkos::view_alloc(Kokkos::WithoutInitializing, "integers"), values.size());
  const auto host = Kokkos::create_mirror_view(Kokkos::HostSpace(), view);
  for (std::size_t i = 0; i < values.size(); ++i) host(i) = values[i];
  Kokkos::deep_copy(view, host);
  return view;
}

/// A call on some data, and where its result goes.
struct Job {
  std::string name;
  Numbers result;
  std::function<void(const Shared&)> call;

  std::vector<float> bits(const Shared& exec) const {
    Kokkos::deep_copy(exec, result, -7.0f);
    exec.fence();
    call(exec);
    exec.fence();
    // Not initialised, as that is a kernel on the default instance, which Kokkos::Threads has for one thread.
    const auto host =
        Kokkos::create_mirror(Kokkos::view_alloc(Kokkos::HostSpace(), Kokkos::WithoutInitializing), result);
    Kokkos::deep_copy(exec, host, result);
    exec.fence();
    return {host.data(), host.data() + host.size()};
  }
};

/// Calls on data that a seed makes; the Views are kept by the calls.
class Jobs {
 public:
  explicit Jobs(unsigned seed) : m_seed(seed) {}

  std::vector<Job> all() {
    rows_of_all_operators("", {});
    rows_of_all_operators(" of shared rows", {.plan = {.strategy = shared_rows}});
    if (on_gpu) add_forward(" by split_row twice", {.plan = {.strategy = shared_rows, .launches = 2}});
    ragged();
    masked();
    cross_entropies();
    return std::move(m_jobs);
  }

 private:
  static constexpr int rows = 7, cols = 900;

  Numbers fresh(std::size_t n) { return numbers(n, m_seed + 100 * m_count++); }
  Matrix matrix(const Numbers& memory, int m = rows, int n = cols) { return Matrix(memory.data(), m, n); }

  void add(const std::string& name, const Numbers& result, std::function<void(const Shared&)> call) {
    m_jobs.push_back({name, result, std::move(call)});
  }

  void rows_of_all_operators(const std::string& how, const SoftmaxOptions& options) {
    add_forward(how, options);
    const Numbers y = fresh(rows * cols), dy = fresh(rows * cols), lse = fresh(rows), dlse = fresh(rows);
    const auto gradient = [&](const char* name, auto function) {
      const Numbers dx = fresh(rows * cols);
      add(name + how, dx,
          [=, this](const Shared& exec) { function(exec, matrix(y), matrix(dy), matrix(dx), options); });
    };
    gradient("softmax_backward", [](const auto&... all) { KokkosNN::softmax_backward(all...); });
    gradient("log_softmax_backward", [](const auto&... all) { KokkosNN::log_softmax_backward(all...); });
    const Numbers dx = fresh(rows * cols);
    add("logsumexp_backward" + how, dx, [=, this](const Shared& exec) {
      KokkosNN::logsumexp_backward(exec, matrix(y), lse, dlse, matrix(dx), options);
    });
  }

  void add_forward(const std::string& how, const SoftmaxOptions& options) {
    const Numbers x = fresh(rows * cols), y = fresh(rows * cols), z = fresh(rows * cols), lse = fresh(rows);
    add("softmax" + how, y, [=, this](const Shared& exec) { KokkosNN::softmax(exec, matrix(x), matrix(y), options); });
    add("log_softmax" + how, z,
        [=, this](const Shared& exec) { KokkosNN::log_softmax(exec, matrix(x), matrix(z), options); });
    add("logsumexp" + how, lse, [=, this](const Shared& exec) { KokkosNN::logsumexp(exec, matrix(x), lse, options); });
  }

  /// Rows of which one is long enough to be cut into parts.
  void ragged() {
    const int n     = 60000;
    const Numbers x = fresh(n), dy = fresh(n);
    const Labels offsets = integers({0, 10, 10 + 40000 + 1000 * int(m_seed), n});
    const KokkosNN::SegmentedOptions options{.check_offsets = true};
    const auto forward = [&](const char* name, const Numbers& y, auto function) {
      add(name, y, [=](const Shared& exec) { function(exec, x, offsets, y, options); });
    };
    forward("segmented_softmax", fresh(n), [](const auto&... all) { KokkosNN::segmented_softmax(all...); });
    forward("segmented_log_softmax", fresh(n), [](const auto&... all) { KokkosNN::segmented_log_softmax(all...); });
    forward("segmented_logsumexp", fresh(3), [](const auto&... all) { KokkosNN::segmented_logsumexp(all...); });
    const auto gradient = [&](const char* name, const Numbers& dx, auto function) {
      add(name, dx, [=](const Shared& exec) { function(exec, x, dy, offsets, dx, options); });
    };
    gradient("segmented_softmax_backward", fresh(n),
             [](const auto&... all) { KokkosNN::segmented_softmax_backward(all...); });
    gradient("segmented_log_softmax_backward", fresh(n),
             [](const auto&... all) { KokkosNN::segmented_log_softmax_backward(all...); });
  }

  void masked() {
    const int batch = 3, heads = 2, queries = 40, keys = 50;
    const auto tensor   = [=](const Numbers& memory) { return Heads(memory.data(), batch, heads, queries, keys); };
    const std::size_t n = batch * heads * queries * keys;
    const Numbers x = fresh(n), y = fresh(n), dy = fresh(n), result = fresh(n), dx = fresh(n);
    const Numbers dbias = fresh(keys), dsinks = fresh(heads);
    const KokkosNN::CausalMask mask{keys - queries};
    add("masked_softmax", result,
        [=](const Shared& exec) { KokkosNN::masked_softmax(exec, tensor(x), mask, tensor(result)); });
    add("masked_softmax of shared rows", result, [=](const Shared& exec) {
      KokkosNN::masked_softmax(exec, tensor(x), mask, tensor(result), {.plan = {.strategy = shared_rows}});
    });
    add("masked_softmax_backward", dx, [=](const Shared& exec) {
      KokkosNN::masked_softmax_backward(exec, tensor(x), tensor(y), tensor(dy), mask, tensor(dx));
    });
    add("masked_softmax_bias_backward", dbias, [=](const Shared& exec) {
      KokkosNN::masked_softmax_bias_backward(exec, tensor(y), tensor(dy), mask, Matrix(dbias.data(), 1, keys));
    });
    add("masked_softmax_sinks_backward", dsinks, [=](const Shared& exec) {
      KokkosNN::masked_softmax_sinks_backward(exec, tensor(y), tensor(dy), mask, dsinks);
    });
  }

  /// Few rows, and so many that their losses are summed by several teams.
  void cross_entropies() {
    for (const auto& shape : {std::pair{33, 300}, std::pair{9000, 3}}) {
      const int m = shape.first, n = shape.second;  // names that clang before 16 takes into a lambda
      const std::string size = " of " + std::to_string(m) + " rows";
      const Numbers logits = fresh(m * n), dlogits = fresh(m * n), both = fresh(m * n), lse = fresh(m);
      const Numbers mean = fresh(1), sum = fresh(1), dloss = fresh(1), loss = fresh(1), weights = numbers(n, m_seed);
      Kokkos::deep_copy(weights, 0.5f + static_cast<float>(m_seed));
      std::vector<int> classes(m);
      for (int i = 0; i < m; ++i) classes[i] = i % 5 == 0 ? -100 : (i * 7 + int(m_seed)) % n;
      const Labels labels = integers(classes);
      const auto rows_of  = [=, this](const Numbers& memory) { return matrix(memory, m, n); };
      const KokkosNN::CrossEntropyOptions smooth{.label_smoothing = 0.1, .check_labels = true};
      add("cross_entropy, mean" + size, mean, [=](const Shared& exec) {
        KokkosNN::cross_entropy(exec, rows_of(logits), labels, Scalar(mean.data()), smooth, lse, weights);
      });
      add("cross_entropy, sum" + size, sum, [=](const Shared& exec) {
        KokkosNN::cross_entropy(exec, rows_of(logits), labels, Scalar(sum.data()), {.reduction = Reduction::sum});
      });
      add("cross_entropy_backward" + size, dlogits, [=](const Shared& exec) {
        KokkosNN::cross_entropy_backward(exec, rows_of(logits), labels, lse, Scalar(dloss.data()), rows_of(dlogits),
                                         smooth, weights);
      });
      add("cross_entropy_with_gradient" + size, both, [=](const Shared& exec) {
        KokkosNN::cross_entropy_with_gradient(exec, rows_of(logits), labels, Scalar(loss.data()), rows_of(both));
      });
    }
  }

  unsigned m_seed;
  unsigned m_count = 0;
  std::vector<Job> m_jobs;
};

/// Runs the jobs of threads at once, each thread on its instance and on data of its own, and counts results that are
/// not what the same instance gives alone.
class Contest {
 public:
  explicit Contest(std::vector<Shared> instances) : m_instances(std::move(instances)) {
    for (std::size_t t = 0; t < m_instances.size(); ++t) {
      m_jobs.push_back(Jobs(static_cast<unsigned>(t)).all());
      m_expected.emplace_back();
      for (const Job& job : m_jobs.back()) m_expected.back().push_back(job.bits(m_instances[t]));
    }
  }

  /// All threads are at the same operator, as those meet that share a kind of workspace.
  void run(int repeats) const {
    for (std::size_t job = 0; job < m_jobs[0].size(); ++job) {
      std::atomic<int> wrong{0};
      std::vector<std::thread> threads;
      for (std::size_t t = 0; t < m_instances.size(); ++t) {
        threads.emplace_back([&, t] { wrong += wrong_of(t, job, repeats); });
      }
      for (std::thread& thread : threads) thread.join();
      EXPECT_EQ(wrong, 0) << name(job) << ", " << m_instances.size() << " threads";
    }
  }

  /// In `repeats` calls of a thread.
  int wrong_of(std::size_t thread, std::size_t job, int repeats) const {
    int wrong = 0;
    for (int i = 0; i < repeats; ++i) {
      wrong += m_jobs[thread][job].bits(m_instances[thread]) != m_expected[thread][job];
    }
    return wrong;
  }

  std::size_t jobs() const { return m_jobs[0].size(); }
  const std::string& name(std::size_t job) const { return m_jobs[0][job].name; }

 private:
  std::vector<Shared> m_instances;
  std::vector<std::vector<Job>> m_jobs;
  std::vector<std::vector<std::vector<float>>> m_expected;
};

inline constexpr int repeats = 30;

#define SKIP_WHERE_ONE_THREAD_IS_SERVED() \
  if (serves_one_thread) GTEST_SKIP() << "Kokkos::Threads serves the thread that initialised Kokkos"

TEST(ConcurrentCalls, OfThreadsThatShareTheDefaultInstanceGiveEachItsResult) {
  SKIP_WHERE_ONE_THREAD_IS_SERVED();
  for (const int threads : {2, 4}) Contest(std::vector<Shared>(threads)).run(repeats);
}

TEST(ConcurrentCalls, OfThreadsOnTheInstancesOfAPartitionGiveEachItsResult) {
  SKIP_WHERE_ONE_THREAD_IS_SERVED();
  for (const int threads : {2, 4}) {
    const auto parts = Kokkos::Experimental::partition_space(Shared(), std::vector<int>(threads, 1));
    Contest({parts.begin(), parts.end()}).run(repeats);
  }
}

#ifdef KOKKOS_ENABLE_OPENMP
TEST(ConcurrentCalls, OfAnOpenMPRegionsThreadsOnTheInstancesOfAPartitionGiveEachItsResult) {
  if (omp_get_max_active_levels() < 2) GTEST_SKIP() << "Kokkos::OpenMP ends the process where regions do not nest";
  const int threads = 2;
  const auto parts  = Kokkos::Experimental::partition_space(Shared(), 1, 1);
  const Contest contest({parts.begin(), parts.end()});
  for (std::size_t job = 0; job < contest.jobs(); ++job) {
    std::atomic<int> wrong{0};
#pragma omp parallel num_threads(threads)
    {
      wrong += contest.wrong_of(omp_get_thread_num(), job, 10);
    }
    EXPECT_EQ(wrong, 0) << contest.name(job);
  }
}
#endif

TEST(ConcurrentCalls, OfThreadsThatShareAPlanGiveEachItsResult) {
  SKIP_WHERE_ONE_THREAD_IS_SERVED();
  const int rows = 5, cols = 3000, threads = 4;
  for (const int launches : on_gpu ? std::vector{1, 2} : std::vector{0}) {
    const SoftmaxOptions options{.plan = {.strategy = shared_rows, .launches = launches}};
    std::vector<Matrix> x, y, alone;
    for (int t = 0; t < threads; ++t) {
      for (auto* all : {&x, &y, &alone}) all->push_back(Matrix("matrix", rows, cols));
      Kokkos::deep_copy(Numbers(x[t].data(), x[t].size()), numbers(x[t].size(), t));
      KokkosNN::softmax(Shared(), x[t], alone[t], options);
    }
    Kokkos::fence();
    const KokkosNN::SoftmaxPlan plan(Shared(), x[0], y[0], options);
    std::atomic<int> wrong{0};
    std::vector<std::thread> all;
    for (int t = 0; t < threads; ++t) {
      all.emplace_back([&, t] {
        for (int i = 0; i < repeats; ++i) {
          plan.run(x[t], y[t]);
          Shared().fence();
          const auto is      = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), y[t]);
          const auto must_be = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), alone[t]);
          wrong += !std::equal(is.data(), is.data() + is.size(), must_be.data());
        }
      });
    }
    for (std::thread& thread : all) thread.join();
    EXPECT_EQ(wrong, 0) << launches << " launches";
  }
}

#ifdef KOKKOS_ENABLE_THREADS
/// True if a call from this thread is refused, by a message that says why.
template <class F>
bool is_refused(const F& call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    const std::string said = error.what();
    return said.starts_with("KokkosNN::") && said.find("another one") != std::string::npos;
  } catch (...) {
  }
  return false;
}

TEST(ConcurrentCalls, OnKokkosThreadsFromAnotherThreadAreRefusedAndDisturbNobody) {
  using Host       = Kokkos::View<float**, Kokkos::LayoutRight, Kokkos::HostSpace>;
  using Values     = Kokkos::View<float*, Kokkos::HostSpace>;
  using HostLabels = Kokkos::View<int*, Kokkos::HostSpace>;
  const Host x("x", 20, 500), y("y", 20, 500), untouched("untouched", 20, 500);
  const HostLabels labels("labels", 20), offsets("offsets", 3);
  const Kokkos::View<float, Kokkos::HostSpace> loss("loss");
  const Values values("values", 40000), ragged("ragged", 40000);
  const Kokkos::Threads exec;
  const KokkosNN::SoftmaxPlan plan(exec, x, untouched);
  const KokkosNN::SoftmaxPlan split(exec, x, untouched, SoftmaxOptions{.plan = {.strategy = shared_rows}});
  std::atomic<bool> is_over{false};
  std::atomic<int> accepted{0}, calls{0};

  std::thread other([&] {
    while (!is_over || calls == 0) {
      accepted += !is_refused([&] { KokkosNN::softmax(exec, x, untouched); });
      accepted += !is_refused([&] { KokkosNN::softmax_backward(exec, x, x, untouched); });
      accepted += !is_refused([&] { KokkosNN::cross_entropy(exec, x, labels, loss); });
      accepted += !is_refused([&] { KokkosNN::cross_entropy(exec, x, labels, loss, {.check_labels = true}); });
      accepted += !is_refused([&] { KokkosNN::segmented_softmax(exec, values, offsets, ragged); });
      accepted +=
          !is_refused([&] { KokkosNN::segmented_softmax(exec, values, offsets, ragged, {.check_offsets = true}); });
      accepted += !is_refused([&] { KokkosNN::masked_softmax(exec, x, KokkosNN::CausalMask{}, untouched); });
      accepted += !is_refused([&] {
        KokkosNN::masked_softmax_bias_backward(exec, x, x, KokkosNN::CausalMask{}, Host(ragged.data(), 1, 500));
      });
      accepted += !is_refused([&] { plan.run(); });
      accepted += !is_refused([&] { split.run(); });
      ++calls;
    }
  });
  int wrong = 0;
  for (int i = 0; i < 200; ++i) {
    Kokkos::deep_copy(y, -1.0f);
    KokkosNN::softmax(exec, x, y);
    wrong += !std::all_of(y.data(), y.data() + y.size(), [](float p) { return std::abs(500 * p - 1) < 1e-6f; });
  }
  is_over = true;
  other.join();

  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(accepted, 0) << "of " << 10 * calls;
  for (std::size_t k = 0; k < untouched.size(); ++k) ASSERT_EQ(untouched.data()[k], 0.0f);
}
#endif

using KokkosNN::Impl::WorkspaceUse;

template <WorkspaceUse use>
using Lease = KokkosNN::Impl::WorkspaceLease<Shared, use>;

TEST(Workspaces, AreACallsOwnWhileItEnqueuesAndTheNextOnesThenWithoutAnAllocation) {
  constexpr WorkspaceUse use = WorkspaceUse::states;
  const Shared exec;
  char *large = nullptr, *small = nullptr;
  {
    const Lease<use> first(exec, 3 << 20), second(exec, 1 << 20);
    large = first.data();
    small = second.data();
  }
  EXPECT_NE(large, small);

  const Recorder recorder;
  const Lease<use> takes_the_small(exec, 1 << 20), takes_the_large(exec, 2 << 20);
  EXPECT_EQ(takes_the_small.data(), small);
  EXPECT_EQ(takes_the_large.data(), large);
  EXPECT_TRUE(recorder.allocations.empty());
  EXPECT_EQ(Lease<use>(exec, 0).data(), nullptr);
}

TEST(Workspaces, OfACallThatFailsAreNotGivenToTheNext) {
  constexpr WorkspaceUse use = WorkspaceUse::status_words;
  const Shared exec;
  const std::size_t bytes = 5 << 20;
  try {
    const Lease<use> lease(exec, bytes);
    const Kokkos::View<char*, Shared::memory_space, Kokkos::MemoryTraits<Kokkos::Unmanaged>> memory(lease.data(),
                                                                                                    bytes);
    Kokkos::deep_copy(exec, memory, char(1));
    exec.fence();
    throw std::runtime_error("between two kernels");
  } catch (const std::runtime_error&) {
  }

  const Lease<use> lease(exec, bytes);
  const Kokkos::View<char*, Shared::memory_space, Kokkos::MemoryTraits<Kokkos::Unmanaged>> memory(lease.data(), bytes);
  const auto host = Kokkos::create_mirror(Kokkos::HostSpace(), memory);
  Kokkos::deep_copy(host, memory);
  EXPECT_EQ(std::count(host.data(), host.data() + bytes, 0), static_cast<std::ptrdiff_t>(bytes));
}

}  // namespace KokkosNNTest
