// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
/// Time of one call: native events on CUDA and HIP, a clock between fences elsewhere; the median of enough samples.
#ifndef KOKKOSNN_PERF_TIMING_HPP
#define KOKKOSNN_PERF_TIMING_HPP

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <vector>

namespace KokkosNN::Perf {

using Exec = Kokkos::DefaultExecutionSpace;

#if defined(KOKKOS_ENABLE_CUDA) || defined(KOKKOS_ENABLE_HIP)
inline constexpr bool on_gpu = true;
#else
inline constexpr bool on_gpu = false;
#endif

/// How long and how often a call is sampled.
struct Effort {
  double seconds          = 0.15;  ///< wall time of sampling, cache writes included
  std::size_t min_samples = 5;     ///< also when they take longer
  std::size_t max_samples = 400;   ///< also when they take less
};

/// Seconds of one call, over the samples that were taken.
struct Timing {
  double median = 0, q1 = 0, q3 = 0, min = 0, max = 0;
  std::size_t samples = 0;
};

inline double quantile(const std::vector<double>& sorted, double q) {
  const double position   = q * static_cast<double>(sorted.size() - 1);
  const std::size_t below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (position - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

inline Timing summary(std::vector<double> samples) {
  if (samples.empty()) return {};
  std::ranges::sort(samples);
  return {.median  = quantile(samples, 0.5),
          .q1      = quantile(samples, 0.25),
          .q3      = quantile(samples, 0.75),
          .min     = samples.front(),
          .max     = samples.back(),
          .samples = samples.size()};
}

namespace Native {

#if defined(KOKKOS_ENABLE_CUDA)
using Event = cudaEvent_t;
inline void check(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}
inline void create(Event& event) { check(cudaEventCreate(&event)); }
inline void destroy(Event event) { static_cast<void>(cudaEventDestroy(event)); }
inline void record(Event event, const Exec& exec) { check(cudaEventRecord(event, exec.cuda_stream())); }
inline void wait(Event event) { check(cudaEventSynchronize(event)); }
inline void elapsed(float& milliseconds, Event from, Event to) { check(cudaEventElapsedTime(&milliseconds, from, to)); }
#elif defined(KOKKOS_ENABLE_HIP)
using Event = hipEvent_t;
inline void check(hipError_t status) {
  if (status != hipSuccess) throw std::runtime_error(hipGetErrorString(status));
}
inline void create(Event& event) { check(hipEventCreate(&event)); }
inline void destroy(Event event) { static_cast<void>(hipEventDestroy(event)); }
inline void record(Event event, const Exec& exec) { check(hipEventRecord(event, exec.hip_stream())); }
inline void wait(Event event) { check(hipEventSynchronize(event)); }
inline void elapsed(float& milliseconds, Event from, Event to) { check(hipEventElapsedTime(&milliseconds, from, to)); }
#endif

/// Lines that a kernel has told the cache to keep to the last become like others.
inline void release_kept_lines() {
#if defined(KOKKOS_ENABLE_CUDA)
  check(cudaCtxResetPersistingL2Cache());
#endif
}

}  // namespace Native

#if defined(KOKKOS_ENABLE_CUDA) || defined(KOKKOS_ENABLE_HIP)
/// Two events on the instance's stream around the call: the launch is hidden behind the cache write that runs before.
class Stopwatch {
 public:
  explicit Stopwatch(const Exec& exec) : m_exec(exec) {
    Native::create(m_start);
    Native::create(m_stop);
  }
  ~Stopwatch() {
    Native::destroy(m_start);
    Native::destroy(m_stop);
  }
  Stopwatch(const Stopwatch&)            = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  void start() { Native::record(m_start, m_exec); }
  double stop() {
    Native::record(m_stop, m_exec);
    Native::wait(m_stop);
    float milliseconds = 0;
    Native::elapsed(milliseconds, m_start, m_stop);
    return 1e-3 * milliseconds;
  }

 private:
  Exec m_exec;
  Native::Event m_start{};
  Native::Event m_stop{};
};
#else
/// The steady clock, with the instance fenced before each look at it.
class Stopwatch {
 public:
  explicit Stopwatch(const Exec& exec) : m_exec(exec) {}

  void start() {
    m_exec.fence("KokkosNN::Perf: before the clock starts");
    m_start = std::chrono::steady_clock::now();
  }
  double stop() {
    m_exec.fence("KokkosNN::Perf: before the clock stops");
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - m_start).count();
  }

 private:
  Exec m_exec;
  std::chrono::steady_clock::time_point m_start;
};
#endif

/// Writes a buffer larger than a GPU's L2, so that no call finds its input there, not even what the call before has
/// told the cache to keep. Nothing on a host: its caches are as the call before left them, for every provider alike.
class ColdCache {
 public:
  explicit ColdCache(const Exec& exec)
      : m_exec(exec),
        m_buffer(Kokkos::view_alloc(Kokkos::WithoutInitializing, exec, "KokkosNN::Perf::cold_cache"),
                 on_gpu ? bytes / sizeof(std::uint64_t) : 0) {}

  void write() {
    if constexpr (on_gpu) {
      Native::release_kept_lines();
      const auto buffer        = m_buffer;
      const std::uint64_t turn = ++m_turn;
      Kokkos::parallel_for(
          "KokkosNN::Perf::cold_cache", Kokkos::RangePolicy<Exec>(m_exec, 0, buffer.extent(0)),
          KOKKOS_LAMBDA(const std::size_t i) { buffer(i) = turn; });
    }
  }

  static constexpr std::size_t bytes = std::size_t{256} << 20;

 private:
  Exec m_exec;
  Kokkos::View<std::uint64_t*, Exec> m_buffer;
  std::uint64_t m_turn = 0;
};

/// Samples of `call`, which enqueues work on `exec`; `prepare` runs ahead of each.
inline std::vector<double> sample(const Exec& exec, const std::function<void()>& prepare,
                                  const std::function<void()>& call, const Effort& effort) {
  Stopwatch stopwatch(exec);
  call();  // once to warm up: page tables, clocks, the runtime's lazy loading
  exec.fence("KokkosNN::Perf: warm");
  std::vector<double> seconds;
  const auto begin = std::chrono::steady_clock::now();
  const auto spent = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  while (seconds.size() < effort.min_samples || (seconds.size() < effort.max_samples && spent() < effort.seconds)) {
    prepare();
    stopwatch.start();
    call();
    seconds.push_back(stopwatch.stop());
  }
  return seconds;
}

/// Samples of a call that finds nothing in the cache.
inline std::vector<double> sample(const Exec& exec, ColdCache& cold, const std::function<void()>& call,
                                  const Effort& effort) {
  return sample(exec, [&] { cold.write(); }, call, effort);
}

}  // namespace KokkosNN::Perf

#endif  // KOKKOSNN_PERF_TIMING_HPP
