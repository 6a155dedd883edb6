// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
/// kokkosnn_perf --out DIR [--full] [--seconds S] [Google Benchmark's flags]
/// kokkosnn_perf --list-shapes [--full]
///
/// Registers a benchmark for every shape and provider, checks each provider's result before its time counts, prints a
/// line a shape while it runs and leaves DIR/results.json for report.py.
#include "machine.hpp"
#include "provider.hpp"
#include "results.hpp"
#include "shapes.hpp"
#include "timing.hpp"

#include <KokkosNN/plan.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace KokkosNN::Perf {
namespace {

constexpr const char* yardstick_name = "copy";
constexpr const char* kokkosnn_name  = "KokkosNN";
constexpr const char* five_pass_name = "five_pass";

struct Arguments {
  std::filesystem::path out;
  bool full        = false;
  bool list_shapes = false;
  Effort effort;
  std::string command_line;
};

struct Provider {
  std::string name;
  std::function<Contender(const Problem&)> make;
  bool forced = false;  ///< a strategy that the planner did not choose; it may be unable to serve
};

std::vector<Provider> providers(const Case& shape, bool full) {
  std::vector<Provider> result{{yardstick_name, make_copy}, {kokkosnn_name, [](const Problem& problem) {
                                                               return make_kokkosnn(problem, RowStrategy::automatic);
                                                             }}};
  if (five_pass_serves(shape)) result.push_back({five_pass_name, make_five_pass});
#if defined(KOKKOSNN_HAVE_CUDNN)
  if (cudnn_serves(shape)) result.push_back({"cudnn", make_cudnn});
#endif
#if defined(KOKKOSNN_HAVE_ONEDNN)
  if (onednn_serves(shape)) result.push_back({"onednn", make_onednn});
#endif
  if (!full || !shape.is_of_rows()) return result;
  for (const RowStrategy strategy : {RowStrategy::vector_lanes, RowStrategy::team_scratch, RowStrategy::team_registers,
                                     RowStrategy::team_online, RowStrategy::split_row, RowStrategy::inner_lanes})
    result.push_back({KokkosNN::to_string(strategy),
                      [strategy](const Problem& problem) { return make_kokkosnn(problem, strategy); }, true});
  return result;
}

/// How one benchmark ended, for the line of progress.
struct Outcome {
  enum class Kind { measured, skipped, failed } kind = Kind::skipped;
  Case shape;
  std::string provider;
  std::string text;
};

/// The run: the data of the shape at hand, and the results so far.
class Suite {
 public:
  Suite(const Exec& exec, Arguments arguments)
      : m_exec(exec), m_arguments(std::move(arguments)), m_cold(exec), m_results{machine_context(exec), {}, {}} {
    m_results.context.emplace_back("command", m_arguments.command_line);
    m_results.context.emplace_back("set", m_arguments.full ? "full" : "quick");
  }

  /// The body of one benchmark.
  void run(benchmark::State& state, const Case& shape, const Provider& provider) {
    m_outcome = {Outcome::Kind::skipped, shape, provider.name, {}};
    try {
      measure(state, shape, provider);
    } catch (const std::invalid_argument& error) {
      if (provider.forced)
        skip(state, "cannot serve");
      else
        fail(state, error.what());
    } catch (const std::exception& error) {
      fail(state, error.what());
    }
  }

  void save() const { write_json(m_results, m_arguments.out / "results.json"); }

  const Results& results() const { return m_results; }
  const Outcome& outcome() const { return m_outcome; }

 private:
  void measure(benchmark::State& state, const Case& shape, const Provider& provider) {
    const Problem& problem    = problem_of(shape);
    const Contender contender = provider.make(problem);
    const Record* planned     = provider.forced ? m_results.find(shape, kokkosnn_name) : nullptr;
    if (planned && planned->plan == contender.plan) return skip(state, "is the planner's choice");
    if (const std::string difference = verified(problem, contender); !difference.empty())
      return fail(state, "wrong result: " + difference);
    std::vector<double> seconds;
    for (auto _ : state) {
      const std::vector<double> more = sample(m_exec, m_cold, contender.call, m_arguments.effort);
      state.SetIterationTime(summary(more).median);
      seconds.insert(seconds.end(), more.begin(), more.end());
    }
    keep(state, {shape, provider.name, contender.plan, summary(std::move(seconds))});
  }

  /// Consecutive benchmarks are of the same shape: only one is in memory.
  const Problem& problem_of(const Case& shape) {
    if (!m_problem || m_problem->shape() != shape) {
      m_problem.reset();
      m_problem.emplace(m_exec, shape);
    }
    return *m_problem;
  }

  static std::string verified(const Problem& problem, const Contender& contender) {
    if (!contender.computes) return {};
    problem.poison_y();
    contender.call();
    return problem.check(contender.slack);
  }

  void keep(benchmark::State& state, Record record) {
    state.SetLabel(record.plan);
    state.counters["GB/s"]    = record.gigabytes_per_second();
    state.counters["samples"] = static_cast<double>(record.timing.samples);
    m_outcome.kind            = Outcome::Kind::measured;
    std::erase_if(m_results.records, [&](const Record& other) {  // --benchmark_repetitions: the last one stays
      return other.provider == record.provider && other.shape == record.shape;
    });
    m_results.records.push_back(std::move(record));
  }

  void skip(benchmark::State& state, const char* why) {
    m_outcome.text = why;
    state.SkipWithError(why);  // Google Benchmark 1.7 knows no other way to leave
  }

  void fail(benchmark::State& state, const std::string& what) {
    m_outcome.kind = Outcome::Kind::failed;
    m_outcome.text = what;
    m_results.failures.push_back({m_outcome.shape, m_outcome.provider, what});
    state.SkipWithError(what.c_str());
  }

  Exec m_exec;
  Arguments m_arguments;
  ColdCache m_cold;
  Results m_results;
  std::optional<Problem> m_problem;
  Outcome m_outcome;
};

/// One line a shape, written as its providers finish: GB/s, and the share of copy in brackets.
class Progress : public benchmark::BenchmarkReporter {
 public:
  explicit Progress(Suite& suite) : m_suite(suite) {}

  bool ReportContext(const Context&) override { return true; }

  void ReportRuns(const std::vector<Run>&) override {
    const Outcome& outcome = m_suite.outcome();
    if (outcome.shape != m_shape)
      begin_line(outcome.shape);
    else if (outcome.provider == m_provider)
      return;  // a repetition
    m_provider = outcome.provider;
    if (outcome.kind == Outcome::Kind::failed)
      std::printf("  %s FAILED (%s)", outcome.provider.c_str(), outcome.text.c_str());
    else if (outcome.kind == Outcome::Kind::measured)
      print_rate(*m_suite.results().find(outcome.shape, outcome.provider));
    std::fflush(stdout);
  }

  void Finalize() override {
    std::printf("\n");
    m_suite.save();
  }

 private:
  void begin_line(const Case& shape) {
    if (!m_shape.sweep.empty()) std::printf("\n");
    if (shape.sweep != m_shape.sweep) m_suite.save();
    m_shape                = shape;
    const std::string rows = shape.rows == shape.nominal_rows
                                 ? std::to_string(shape.rows)
                                 : std::to_string(shape.rows) + " (of " + std::to_string(shape.nominal_rows) + ")";
    std::printf("%-15s %-11s %-8s %-5s %18s x %-7lld", shape.sweep.c_str(), shape.operator_name(), shape.type().c_str(),
                to_string(shape.layout), rows.c_str(), static_cast<long long>(shape.cols));
  }

  void print_rate(const Record& record) const {
    std::printf("  %s %.*f", record.provider.c_str(), on_gpu ? 0 : 1, record.gigabytes_per_second());
    const Record* copy = m_suite.results().find(record.shape, yardstick_name);
    if (copy && copy != &record) std::printf(" (%.2f)", copy->timing.median / record.timing.median);
  }

  Suite& m_suite;
  Case m_shape;
  std::string m_provider;
};

void register_all(Suite& suite, const std::vector<Case>& shapes, bool full) {
  for (const Case& shape : shapes)
    for (const Provider& provider : providers(shape, full))
      benchmark::RegisterBenchmark(
          (shape.name() + '/' + provider.name).c_str(),
          [&suite, shape, provider](benchmark::State& state) { suite.run(state, shape, provider); })
          ->Iterations(1)  // a sample of calls each, see Effort
          ->UseManualTime()
          ->Unit(benchmark::kMicrosecond);
}

void print_header(const Results& results, const std::vector<Case>& shapes, const Arguments& arguments,
                  std::int64_t traffic) {
  const auto fact = [&](const std::string& key) {
    for (const auto& [name, value] : results.context)
      if (name == key) return value.c_str();
    return "";
  };
  std::printf("%s, %s, concurrency %s, KokkosNN %s (%s)\n", fact("device"), fact("backend"), fact("concurrency"),
              fact("KokkosNN"), fact("git"));
  std::printf(
      "%zu shapes (%s set), scaled to move at most %lld MiB each: \"(of 4096)\" are the rows of the full shape\n",
      shapes.size(), fact("set"), static_cast<long long>(traffic >> 20));
  std::printf("GB/s of the bytes that must move, median of >= %zu calls; in brackets the share of copy\n\n",
              arguments.effort.min_samples);
  std::fflush(stdout);
}

constexpr const char* usage =
    "usage: kokkosnn_perf --out DIR [--full] [--seconds S] [--benchmark_filter=REGEX ...]\n"
    "  --out DIR     where results.json goes; made if missing\n"
    "  --full        every shape and every strategy that can serve, instead of the quick set\n"
    "  --seconds S   wall time of sampling one provider on one shape\n"
    "  --list-shapes the shapes as JSON, as they would run on this machine; measures nothing\n";

/// Takes our own flags out of argv and leaves the rest to Google Benchmark.
Arguments parse(int& argc, char** argv) {
  Arguments arguments;
  std::vector<char*> rest{argv[0]};
  std::optional<double> seconds;
  for (int i = 0; i < argc; ++i) arguments.command_line.append(i ? " " : "").append(argv[i]);
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    const auto value       = [&] {
      if (++i >= argc) throw std::invalid_argument(flag + " needs a value");
      return std::string(argv[i]);
    };
    if (flag == "--out")
      arguments.out = value();
    else if (flag == "--full")
      arguments.full = true;
    else if (flag == "--list-shapes")
      arguments.list_shapes = true;
    else if (flag == "--seconds")
      seconds = std::stod(value());
    else
      rest.push_back(argv[i]);
  }
  arguments.effort.seconds = seconds.value_or(arguments.full ? 0.4 : arguments.effort.seconds);
  argc                     = static_cast<int>(rest.size());
  std::ranges::copy(rest, argv);
  return arguments;
}

bool is_listing(int argc, char** argv) {
  return std::ranges::any_of(std::span(argv, static_cast<std::size_t>(argc)),
                             [](const char* flag) { return std::string(flag).starts_with("--benchmark_list_tests"); });
}

int measure(int argc, char** argv, const Arguments& arguments) {
  const Exec exec;
  const bool listing = is_listing(argc, argv);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  if (!listing) std::filesystem::create_directories(arguments.out);
  const std::int64_t traffic     = traffic_limit(exec, arguments.full);
  const std::vector<Case> shapes = cases(arguments.full, traffic);
  Suite suite(exec, arguments);
  register_all(suite, shapes, arguments.full);
  if (listing) {
    benchmark::RunSpecifiedBenchmarks();
    return 0;
  }
  print_header(suite.results(), shapes, arguments, traffic);
  Progress progress(suite);
  if (benchmark::RunSpecifiedBenchmarks(&progress) == 0) throw std::invalid_argument("no shape matches the filter");
  benchmark::Shutdown();
  for (const Failure& failure : suite.results().failures)
    std::fprintf(stderr, "FAILED %s/%s: %s\n", failure.shape.name().c_str(), failure.provider.c_str(),
                 failure.what.c_str());
  return suite.results().failures.empty() ? 0 : 1;
}

}  // namespace
}  // namespace KokkosNN::Perf

int main(int argc, char** argv) {
  using namespace KokkosNN::Perf;
  try {
    const Kokkos::ScopeGuard kokkos(argc, argv);
    const Arguments arguments = parse(argc, argv);
    if (arguments.list_shapes) {
      const std::int64_t traffic = traffic_limit(Exec{}, arguments.full);
      std::printf("%s\n", json(cases(arguments.full, traffic)).c_str());
      return 0;
    }
    if (arguments.out.empty() && !is_listing(argc, argv)) {
      std::fputs(usage, stderr);
      return 2;
    }
    return measure(argc, argv, arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kokkosnn_perf: %s\n", error.what());
    return 2;
  }
}
