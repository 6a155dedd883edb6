// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
/// kokkosnn_host_peers [--out FILE] [--seconds S] [--data MIB]... [--op NAME]... [--cols N]... [--type T] [--layout L]
///
/// KokkosNN beside oneDNN and a copy on a host, in turn: every round calls each of them once, begun by another one, so
/// that whatever else the machine does disturbs all alike. What is reported are medians, and quartiles of the rounds'
/// ratios. FILE gets the same as CSV.
#include "machine.hpp"
#include "provider.hpp"
#include "shapes.hpp"
#include "timing.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace KokkosNN::Perf {
namespace {

struct Arguments {
  std::string out;
  double seconds = 1;  ///< of one case
  std::vector<std::int64_t> mebibytes{4, 64, 512};
  std::vector<std::int64_t> cols{16, 64, 256, 781, 1024, 4096, 12672, 32768, 131072};
  std::vector<std::string> operators{"softmax", "log_softmax", "softmax_backward", "log_softmax_backward"};
  ElementType type = ElementType::f32;
  Layout layout    = Layout::right;
};

struct Rival {
  std::string name;
  Contender contender;
  std::vector<double> seconds;
};

RowOperator operator_named(const std::string& name) {
  for (const RowOperator op : {RowOperator::softmax, RowOperator::log_softmax, RowOperator::logsumexp,
                               RowOperator::softmax_backward, RowOperator::log_softmax_backward})
    if (name == KokkosNN::to_string(op)) return op;
  throw std::invalid_argument("no operator is named " + name);
}

/// One matrix is so large; a row at least.
Case case_of(RowOperator op, std::int64_t mebibytes, std::int64_t cols, const Arguments& arguments) {
  Case shape;
  shape.sweep        = "host";
  shape.op           = op;
  shape.x_type       = arguments.type;
  shape.y_type       = arguments.type;
  shape.layout       = arguments.layout;
  shape.cols         = cols;
  shape.rows         = std::max<std::int64_t>(1, (mebibytes << 20) / size_of(arguments.type) / cols);
  shape.nominal_rows = shape.rows;
  return shape;
}

std::vector<Rival> rivals(const Problem& problem) {
  std::vector<Rival> result{{"copy", make_copy(problem), {}},
                            {"KokkosNN", make_kokkosnn(problem, RowStrategy::automatic), {}}};
#if defined(KOKKOSNN_HAVE_ONEDNN)
  if (onednn_serves(problem.shape())) result.push_back({"oneDNN", make_onednn(problem), {}});
#endif
  for (const Rival& rival : result) {
    if (!rival.contender.computes) continue;
    problem.poison_y();
    rival.contender.call();
    const std::string difference = problem.check(rival.contender.slack);
    if (!difference.empty()) throw std::runtime_error(rival.name + ": wrong result: " + difference);
  }
  return result;
}

void take_turns(const Exec& exec, std::vector<Rival>& rivals, double seconds) {
  constexpr std::size_t least = 7;
  Stopwatch stopwatch(exec);
  for (const Rival& rival : rivals) rival.contender.call();
  const auto begin = std::chrono::steady_clock::now();
  const auto spent = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  for (std::size_t round = 0; round < least || spent() < seconds; ++round) {
    for (std::size_t i = 0; i < rivals.size(); ++i) {
      Rival& rival = rivals[(round + i) % rivals.size()];
      stopwatch.start();
      rival.contender.call();
      rival.seconds.push_back(stopwatch.stop());
    }
  }
}

/// How many times as fast as the other one, round by round.
Timing ratio(const Rival& rival, const Rival& other) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < rival.seconds.size(); ++i) ratios.push_back(other.seconds[i] / rival.seconds[i]);
  return summary(std::move(ratios));
}

class Report {
 public:
  Report(const Exec& exec, const Arguments& arguments) : m_file(arguments.out) {
    for (const auto& [key, value] : machine_context(exec))
      if (key != "kokkos_configuration") line("# " + key + ": " + value);
    line(
        "operator,type,layout,MiB,rows,cols,copy GB/s,KokkosNN GB/s,oneDNN GB/s,share of copy,q1,q3,of "
        "oneDNN,q1,q3,plan");
  }

  void add(const Case& shape, std::int64_t mebibytes, const std::vector<Rival>& all) {
    const double gigabytes = 1e-9 * static_cast<double>(shape.bytes());
    const auto rate        = [&](const Rival& rival) { return gigabytes / summary(rival.seconds).median; };
    const Timing share     = ratio(all[1], all[0]);
    char text[512];
    std::snprintf(text, sizeof text, "%s,%s,%s,%lld,%lld,%lld,%.1f,%.1f,", KokkosNN::to_string(shape.op),
                  KokkosNN::to_string(shape.x_type), to_string(shape.layout), static_cast<long long>(mebibytes),
                  static_cast<long long>(shape.rows), static_cast<long long>(shape.cols), rate(all[0]), rate(all[1]));
    std::string row = text;
    const bool peer = all.size() > 2;
    const Timing of = peer ? ratio(all[1], all[2]) : Timing{};
    if (peer) m_ratios.push_back(of.median);
    std::snprintf(text, sizeof text, "%s,%.2f,%.2f,%.2f,%s,%s,%s,%s", peer ? number("%.1f", rate(all[2])).c_str() : "",
                  share.median, share.q1, share.q3, peer ? number("%.2f", of.median).c_str() : "",
                  peer ? number("%.2f", of.q1).c_str() : "", peer ? number("%.2f", of.q3).c_str() : "",
                  all[1].contender.plan.substr(all[1].contender.plan.find('[')).c_str());
    row += text;
    std::replace(row.begin() + static_cast<std::ptrdiff_t>(row.find('[')), row.end(), ',', ' ');
    line(row);
  }

  void epilogue() {
    if (m_ratios.empty()) return;
    double logarithms = 0;
    for (const double r : m_ratios) logarithms += std::log(r);
    line("# of oneDNN: geometric mean " + number("%.2f", std::exp(logarithms / static_cast<double>(m_ratios.size()))) +
         ", least " + number("%.2f", *std::ranges::min_element(m_ratios)));
  }

 private:
  static std::string number(const char* format, double value) {
    char text[32];
    std::snprintf(text, sizeof text, format, value);
    return text;
  }
  void line(const std::string& text) {
    std::printf("%s\n", text.c_str());
    std::fflush(stdout);
    if (m_file.is_open()) m_file << text << std::endl;
  }

  std::ofstream m_file;
  std::vector<double> m_ratios;
};

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  bool data = false, cols = false, operators = false;
  const auto add = [](auto& list, bool& is_own, auto value) {
    if (!is_own) list.clear();
    is_own = true;
    list.push_back(value);
  };
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (++i >= argc) throw std::invalid_argument(flag + " needs a value");
    const std::string value = argv[i];
    if (flag == "--out")
      arguments.out = value;
    else if (flag == "--seconds")
      arguments.seconds = std::stod(value);
    else if (flag == "--data")
      add(arguments.mebibytes, data, std::stoll(value));
    else if (flag == "--cols")
      add(arguments.cols, cols, std::stoll(value));
    else if (flag == "--op")
      add(arguments.operators, operators, value);
    else if (flag == "--type")
      arguments.type = type_named(value);
    else if (flag == "--layout" && (value == "right" || value == "left"))
      arguments.layout = value == "right" ? Layout::right : Layout::left;
    else
      throw std::invalid_argument("no such flag or value: " + flag + " " + value);
  }
  return arguments;
}

void measure(const Arguments& arguments) {
  const Exec exec;
  Report report(exec, arguments);
  for (const std::string& name : arguments.operators) {
    for (const std::int64_t mebibytes : arguments.mebibytes) {
      for (const std::int64_t cols : arguments.cols) {
        const Case shape = case_of(operator_named(name), mebibytes, cols, arguments);
        const Problem problem(exec, shape);
        std::vector<Rival> all = rivals(problem);
        take_turns(exec, all, arguments.seconds);
        report.add(shape, mebibytes, all);
      }
    }
  }
  report.epilogue();
}

}  // namespace
}  // namespace KokkosNN::Perf

int main(int argc, char** argv) {
  try {
    const Kokkos::ScopeGuard kokkos(argc, argv);
    KokkosNN::Perf::measure(KokkosNN::Perf::parse(argc, argv));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kokkosnn_host_peers: %s\n", error.what());
    return 1;
  }
}
