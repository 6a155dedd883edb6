// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
/// kokkosnn_tune: searches the plans for the device at hand and writes those that beat the planner's own into the
/// tuning file. `perf/tune` builds and runs it.

#include "machine.hpp"
#include "problem.hpp"

#include <KokkosNN/KokkosNN.hpp>
#include <KokkosNN/impl/traits.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

namespace KokkosNN::Perf {
namespace {

constexpr const char* usage =
    R"(Usage: kokkosnn_tune [--out FILE] [--minutes N] [--types f32,f64,f16,bf16] [--max-cols N]

Times every plan that can serve rows of 16, 32, ... columns on this device, and writes those that are faster than the
planner's own by more than what times vary into FILE.
  --out FILE   the tuning file; the default is the one that the library will read
  --minutes N  stop after so long, 10 by default; what was found till then is written
  --types      element types, all by default
  --max-cols N the longest rows, 131072 by default)";

struct Arguments {
  std::string out                = tuning_file();
  double minutes                 = 10;
  std::vector<ElementType> types = {ElementType::f32, ElementType::bf16, ElementType::f16, ElementType::f64};
  std::int64_t max_cols          = 131072;
};

Arguments parse(int argc, char* argv[]) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const auto value       = [&] {
      if (i + 1 == argc) throw std::invalid_argument(name + " needs a value");
      return std::string(argv[++i]);
    };
    if (name == "--out") {
      arguments.out = value();
    } else if (name == "--minutes") {
      arguments.minutes = std::stod(value());
    } else if (name == "--max-cols") {
      arguments.max_cols = std::stoll(value());
    } else if (name == "--types") {
      arguments.types.clear();
      std::istringstream names(value());
      for (std::string type; std::getline(names, type, ',');) arguments.types.push_back(type_named(type));
    } else {
      throw std::invalid_argument("no option " + name);
    }
  }
  if (arguments.out.empty())
    throw std::invalid_argument("--out FILE is needed: neither XDG_CACHE_HOME nor HOME is set");
  return arguments;
}

/// Every request that may be worth a try; the planner refuses those that can't serve. Where a row lies in registers its
/// length gives the team, or the lanes, so that an entry fits all lengths that it is for.
std::vector<PlanRequest> requests() {
  std::vector<PlanRequest> all;
  if constexpr (on_gpu) {
    for (const int packs : {1, 2, 4, 5, 6, 8, 9, 10}) {
      for (const int team : {64, 128, 256}) {
        all.push_back({.strategy = RowStrategy::vector_lanes, .packs_per_thread = packs, .team_size = team});
      }
      all.push_back({.strategy = RowStrategy::team_registers, .packs_per_thread = packs});
    }
    for (const auto strategy : {RowStrategy::team_online, RowStrategy::split_row}) {
      for (const int team : {64, 128, 256, 384, 512}) all.push_back({.strategy = strategy, .team_size = team});
    }
  } else {
    for (const int packs : {1, 2, 4, 8}) {
      all.push_back({.strategy = RowStrategy::vector_lanes, .packs_per_thread = packs});
    }
    all.push_back({.strategy = RowStrategy::team_scratch});
    all.push_back({.strategy = RowStrategy::team_online});
  }
  return all;
}

/// Softmax of one shape by any plan.
class Trial {
 public:
  Trial(const Exec& exec, ColdCache& cold, ElementType type, std::int64_t cols, std::int64_t traffic)
      : m_cold(cold), m_problem(exec, scaled(shape_of(type, cols), traffic)) {}

  std::int64_t rows() const { return m_problem.shape().rows; }

  /// The plan of a request.
  ///
  /// \throws std::invalid_argument where it can't serve
  std::string plan(const PlanRequest& request) const {
    std::string label;
    with_type(m_problem.shape().x_type, [&]<class T>(std::type_identity<T>) {
      label = to_string(make_plan(RowOperator::softmax, m_problem.exec(), m_problem.x<const T>(), m_problem.y<T>(),
                                  {.plan = request}));
    });
    return label;
  }

  double seconds(const PlanRequest& request, const Effort& effort) const {
    double median = 0;
    with_type(m_problem.shape().x_type, [&]<class T>(std::type_identity<T>) {
      const auto exec = m_problem.exec();
      const auto x    = m_problem.x<const T>();
      const auto y    = m_problem.y<T>();
      const auto call = [&] { softmax(exec, x, y, {.plan = request}); };
      median          = summary(sample(exec, m_cold, call, effort)).median;
    });
    return median;
  }

 private:
  static Case shape_of(ElementType type, std::int64_t cols) {
    constexpr std::int64_t elements = std::int64_t{1} << 27;
    const std::int64_t rows         = RowRule{.elements = elements}.rows(cols);
    return {.sweep = "tune", .x_type = type, .y_type = type, .nominal_rows = rows, .rows = rows, .cols = cols};
  }

  ColdCache& m_cold;
  Problem m_problem;
};

/// The request that beats the planner's own plan for rows of `cols` columns; an empty one where that plan is best.
PlanRequest best_request(const Trial& trial) {
  constexpr Effort glance{.seconds = 0, .min_samples = 1}, look{.seconds = 0.02}, stare{.seconds = 0.1};
  constexpr double hopeless = 1.5;
  constexpr double gain     = 0.97;  // less is within what times vary
  std::vector<std::string> seen{trial.plan({})};
  PlanRequest best;
  double best_time = trial.seconds({}, look);
  for (const PlanRequest& request : requests()) {
    std::string label;
    try {
      label = trial.plan(request);
    } catch (const std::invalid_argument&) {
      continue;
    }
    if (std::ranges::find(seen, label) != seen.end()) continue;
    seen.push_back(label);
    if (trial.seconds(request, glance) > hopeless * best_time) continue;
    const double time = trial.seconds(request, look);
    if (time < best_time) {
      best_time = time;
      best      = request;
    }
  }
  if (best == PlanRequest{}) return best;
  // Both again and longer, one after the other: what won by chance does not win twice.
  const double own = trial.seconds({}, stare), tuned = trial.seconds(best, stare);
  std::printf("   %-44s %8.1f us\n   %-44s %8.1f us%s\n", trial.plan({}).c_str(), 1e6 * own, trial.plan(best).c_str(),
              1e6 * tuned, tuned < gain * own ? "  taken" : "");
  return tuned < gain * own ? best : PlanRequest{};
}

/// The table of this device as far as the time goes. What an earlier run has found is not built upon.
TuningTable tune(const Exec& exec, const Arguments& arguments) {
  constexpr std::int64_t first_cols = 16;
  const auto end             = std::chrono::steady_clock::now() + std::chrono::duration<double>(60 * arguments.minutes);
  const std::int64_t traffic = traffic_limit(exec, false);
  ColdCache cold(exec);
  TuningTable table;
  for (const ElementType type : arguments.types) {
    for (std::int64_t cols = first_cols; cols <= arguments.max_cols; cols *= 2) {
      if (std::chrono::steady_clock::now() > end) {
        std::printf("== The time is up\n");
        return table;
      }
      const Trial trial(exec, cold, type, cols, traffic);
      std::printf("== %s, rows of %lld columns\n", to_string(type), static_cast<long long>(cols));
      std::fflush(stdout);
      const PlanRequest request = best_request(trial);
      if (request == PlanRequest{}) continue;
      table.entries.push_back({.x_type   = type,
                               .y_type   = type,
                               .min_rows = trial.rows() / 4,
                               .min_cols = cols == first_cols ? 1 : cols / 2 + 1,
                               .max_cols = cols,
                               .plan     = request});
    }
  }
  return table;
}

int run(int argc, char* argv[]) {
  const Arguments arguments = parse(argc, argv);
  // The plans to beat are the shipped ones, not those of a tuning file.
  setenv("KOKKOSNN_TUNING_FILE", "", 1);
  Kokkos::ScopeGuard kokkos;
  const Exec exec;
  const std::string device(device_name(exec));
  std::printf("== Tuning for %s, at most %g minutes\n", device.c_str(), arguments.minutes);
  const TuningTable table = tune(exec, arguments);
  write_tuning(arguments.out, device, table);
  std::printf("== %zu plans are faster than the planner's own; they are in %s\n", table.entries.size(),
              arguments.out.c_str());
  return 0;
}

}  // namespace
}  // namespace KokkosNN::Perf

int main(int argc, char* argv[]) {
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--help") {
      std::puts(KokkosNN::Perf::usage);
      return 0;
    }
  }
  try {
    return KokkosNN::Perf::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kokkosnn_tune: %s\n%s\n", error.what(), KokkosNN::Perf::usage);
    return 2;
  }
}
