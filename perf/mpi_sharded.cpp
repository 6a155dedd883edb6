// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
/// kokkosnn_mpi_perf: the operators of KokkosNN::mpi on 1, 2, 4, ... of the ranks it is started with, every rank timed;
/// besides what a model needs: copies and merges of pairs. `perf/run --ranks N` builds and starts it; model.py
/// reports.

#include "machine.hpp"
#include "results.hpp"
#include "timing.hpp"

#include <KokkosNN/KokkosNN.hpp>
#include <KokkosNN/mpi.hpp>

#include <Kokkos_Core.hpp>

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

double mpi_seconds = 0;  // in the calls below

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

template <class F>
int timed(const F& f) {
  const double begin = now();
  const int code     = f();
  mpi_seconds += now() - begin;
  return code;
}

}  // namespace

// MPI's profiling interface: what calls of the library wait for MPI, without a clock in the library.
extern "C" {
int MPI_Allreduce(const void* from, void* to, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return timed([&] { return PMPI_Allreduce(from, to, n, type, op, comm); });
}
int MPI_Sendrecv(const void* mine, int n, MPI_Datatype type, int to, int tag, void* theirs, int their_n,
                 MPI_Datatype their_type, int from, int their_tag, MPI_Comm comm, MPI_Status* status) {
  return timed([&] {
    return PMPI_Sendrecv(mine, n, type, to, tag, theirs, their_n, their_type, from, their_tag, comm, status);
  });
}
int MPI_Send(const void* from, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  return timed([&] { return PMPI_Send(from, n, type, to, tag, comm); });
}
int MPI_Recv(void* to, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status* status) {
  return timed([&] { return PMPI_Recv(to, n, type, from, tag, comm, status); });
}
}

namespace KokkosNN::Perf {
namespace {

using mpi::Communicator;

constexpr const char* usage =
    R"(Usage: mpirun -n RANKS kokkosnn_mpi_perf [--out DIR] [--rows M] [--cols N] [--types f32,bf16] [--samples K]
                                           [--merges allreduce,in_order,nccl] [--block-rows R]

Times the operators of KokkosNN::mpi: N columns over 1, 2, 4, ... RANKS ranks (strong), and N / RANKS columns a rank
(weak). Writes DIR/scaling.json; status 1 if a result was wrong.
  --rows, --cols  4096 x 128256 by default, on a host 64 x 128256
  --types         f32 and bf16 by default, as far as the build has them
  --samples       calls of a point, 30 by default
  --merges        by MPI_Allreduce, by MPI in the order of the ranks, by NCCL; by default all that there are
  --block-rows    CommunicatorOptions::block_rows)";

/// Way of a communicator to merge.
struct Merge {
  const char* name;
  bool deterministic;
  mpi::Transport transport;

  mpi::CommunicatorOptions options(std::int64_t block_rows = 0) const {
    // The checks of the arguments are a second exchange.
    return {.deterministic = deterministic, .check = false, .transport = transport, .block_rows = block_rows};
  }
};

constexpr Merge all_merges[] = {{"allreduce", false, mpi::Transport::mpi},
                                {"in_order", true, mpi::Transport::mpi},
                                {"nccl", false, mpi::Transport::nccl}};

Merge merge_named(const std::string& name) {
  for (const Merge& merge : all_merges) {
    if (name == merge.name) return merge;
  }
  throw std::invalid_argument("no merge " + name);
}

struct Arguments {
  std::string out                = ".";
  std::int64_t rows              = on_gpu ? 4096 : 64;
  std::int64_t cols              = 128256;
  std::vector<std::string> types = {"f32", "bf16"};
  std::vector<Merge> merges      = {};  ///< none: all that there are
  int samples                    = 30;
  std::int64_t block_rows        = 0;
};

std::vector<std::string> words_of(const std::string& list) {
  std::vector<std::string> words;
  std::istringstream text(list);
  for (std::string word; std::getline(text, word, ',');) words.push_back(word);
  return words;
}

Arguments parse(int argc, char* argv[]) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (i + 1 == argc) throw std::invalid_argument(name + " needs a value");
    const std::string value = argv[++i];
    if (name == "--out") {
      arguments.out = value;
    } else if (name == "--rows") {
      arguments.rows = std::stoll(value);
    } else if (name == "--cols") {
      arguments.cols = std::stoll(value);
    } else if (name == "--samples") {
      arguments.samples = std::stoi(value);
    } else if (name == "--block-rows") {
      arguments.block_rows = std::stoll(value);
    } else if (name == "--types") {
      arguments.types = words_of(value);
    } else if (name == "--merges") {
      for (const std::string& merge : words_of(value)) arguments.merges.push_back(merge_named(merge));
    } else {
      throw std::invalid_argument("no option " + name);
    }
  }
  return arguments;
}

/// Some of the ranks, the first ones of all.
struct Ranks {
  MPI_Comm comm;
  int rank;
  int size;

  /// Every rank's value, on all of them.
  std::vector<double> gathered(double value) const {
    std::vector<double> all(static_cast<std::size_t>(size));
    MPI_Allgather(&value, 1, MPI_DOUBLE, all.data(), 1, MPI_DOUBLE, comm);
    return all;
  }
};

/// The medians of every rank: of a call, of its waiting for MPI.
struct Times {
  std::vector<double> seconds;
  std::vector<double> in_mpi;

  double slowest() const { return *std::ranges::max_element(seconds); }
};

/// Calls that all ranks begin together.
Times time_together(const Ranks& ranks, const Exec& exec, int samples, const std::function<void()>& call) {
  std::vector<double> seconds, waits;
  for (int i = -2; i < samples; ++i) {  // two to warm up
    exec.fence();
    MPI_Barrier(ranks.comm);
    mpi_seconds        = 0;
    const double begin = now();
    call();
    exec.fence();
    if (i < 0) continue;
    seconds.push_back(now() - begin);
    waits.push_back(mpi_seconds);
  }
  return {ranks.gathered(summary(seconds).median), ranks.gathered(summary(waits).median)};
}

/// results as JSON lines; only rank 0 has any.
class Report {
 public:
  explicit Report(bool is_mine) : m_is_mine(is_mine) {}

  template <class... Fields>
  void add(const char* list, const Fields&... fields) {
    if (!m_is_mine) return;
    std::string line;
    (append(line, fields.first, fields.second), ...);
    auto& lines = list_named(list);
    lines += (lines.empty() ? "\n    {" : ",\n    {") + line + "}";
  }

  void write(const std::filesystem::path& file, const Context& context) const {
    if (!m_is_mine) return;
    std::ofstream out(file);
    out << "{\n  \"context\": " << json(context);
    for (const auto& [name, lines] : m_lists) out << ",\n  " << json(name) << ": [" << lines << "\n  ]";
    out << "\n}\n";
    if (!out.flush()) throw std::runtime_error("cannot write " + file.string());
  }

 private:
  static void append(std::string& line, const char* name, const std::string& text) {
    line += (line.empty() ? "" : ", ") + json(name) + ": " + text;
  }
  static void append(std::string& line, const char* name, const char* text) { append(line, name, json(text)); }
  static void append(std::string& line, const char* name, std::int64_t value) {
    append(line, name, std::to_string(value));
  }
  static void append(std::string& line, const char* name, const std::vector<double>& values) {
    std::ostringstream text;
    text.precision(6);
    for (const double value : values) text << (text.tellp() > 0 ? ", " : "[") << value;
    append(line, name, text.str() + "]");
  }

  std::string& list_named(const char* name) {
    for (auto& [known, lines] : m_lists) {
      if (known == name) return lines;
    }
    return m_lists.emplace_back(name, "").second;
  }

  bool m_is_mine;
  std::vector<std::pair<std::string, std::string>> m_lists;
};

template <class T>
std::pair<const char*, T> field(const char* name, T value) {
  return {name, std::move(value)};
}

template <class T>
using Matrix = Kokkos::View<T**, Kokkos::LayoutRight, Exec>;

/// Logits within +-4, by row and column of the whole matrix.
template <class T>
void fill(const Matrix<T>& x, std::int64_t first) {
  Kokkos::parallel_for(
      "fill", Kokkos::MDRangePolicy<Exec, Kokkos::Rank<2>>({0, 0}, {x.extent(0), x.extent(1)}),
      KOKKOS_LAMBDA(std::int64_t row, std::int64_t col) {
        const std::uint64_t hash =
            (static_cast<std::uint64_t>(row) * 2654435761u + static_cast<std::uint64_t>(col + first)) *
            0x9e3779b97f4a7c15u;
        x(row, col) = static_cast<T>(static_cast<float>(hash >> 40) * 0x1p-21f - 4.0f);
      });
}

/// Meaning of a result's elements when they are checked.
enum class Meaning {
  value,
  logarithm,
  logit,  ///< exp(logit - the row's log-sum-exp)
  norm    ///< square of a normalised element, of the whole row's mean
};

/// Labels all over the classes.
inline void fill_labels(const Kokkos::View<std::int64_t*, Exec>& labels, std::int64_t classes) {
  Kokkos::parallel_for(
      "labels", Kokkos::RangePolicy<Exec>(0, labels.extent(0)),
      KOKKOS_LAMBDA(std::int64_t row) { labels(row) = row * 7919 % classes; });
}

/// The largest distance of a row's sum over all ranks from what it must be; `cols`: of the whole row.
template <class T>
double worst_row_sum(const Ranks& ranks, const Matrix<T>& y, const Kokkos::View<accumulator_t<T>*, Exec>& lse,
                     Meaning meaning, std::int64_t cols, double expected) {
  const Kokkos::View<double*, Exec> sums("sums", y.extent(0));
  Kokkos::parallel_for(
      "sums", Kokkos::TeamPolicy<Exec>(static_cast<int>(y.extent(0)), Kokkos::AUTO),
      KOKKOS_LAMBDA(const typename Kokkos::TeamPolicy<Exec>::member_type& team) {
        // Indices of 64 bits: the View computes offsets in their type.
        const std::int64_t row = team.league_rank(), own_cols = static_cast<std::int64_t>(y.extent(1));
        const double offset = meaning == Meaning::logit ? static_cast<double>(lse(row)) : 0.0;
        double sum          = 0;
        Kokkos::parallel_reduce(
            Kokkos::TeamThreadRange(team, own_cols),
            [&](std::int64_t col, double& part) {
              const double value = static_cast<double>(y(row, col));
              if (meaning == Meaning::value)
                part += value;
              else if (meaning == Meaning::norm)
                part += value * value / static_cast<double>(cols);
              else
                part += Kokkos::exp(value - offset);
            },
            sum);
        Kokkos::single(Kokkos::PerTeam(team), [&] { sums(row) = sum; });
      });
  auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), sums);
  MPI_Allreduce(MPI_IN_PLACE, host.data(), static_cast<int>(host.extent(0)), MPI_DOUBLE, MPI_SUM, ranks.comm);
  double worst = 0;
  for (std::size_t row = 0; row < host.extent(0); ++row) {
    const double error = std::abs(host(row) - expected);
    worst              = error <= worst ? worst : error;  // a NaN stays
  }
  return worst;
}

/// One type's operators on some of the ranks.
template <class T>
class Point {
 public:
  Point(const Ranks& ranks, const char* type, const char* scaling, std::int64_t cols, const Arguments& arguments)
      : m_ranks(ranks),
        m_type(type),
        m_scaling(scaling),
        m_classes{cols * ranks.rank / ranks.size, cols},
        m_arguments(arguments),
        m_x("x", arguments.rows, cols * (ranks.rank + 1) / ranks.size - m_classes.first),
        m_y("y", m_x.layout()),
        m_lse("lse", arguments.rows),
        m_labels("labels", arguments.rows),
        m_loss("loss"),
        m_weight("weight", m_x.extent(1)),
        m_bias("bias", m_x.extent(1)) {
    fill(m_x, m_classes.first);
    fill_labels(m_labels, cols);
    Kokkos::deep_copy(m_weight, static_cast<T>(1.0f));
  }

  /// Returns whether all results were right.
  bool measure(Report& report) {
    using Comm    = Communicator<Exec>;
    bool is_right = true;
    for (const Merge& merge : m_arguments.merges) {
      const mpi::CommunicatorOptions options = merge.options(m_arguments.block_rows);
      const Comm all(m_exec, m_ranks.comm, options), self(m_exec, MPI_COMM_SELF, options);
      const auto rows = static_cast<std::int64_t>(m_x.extent(0)), of_block = all.block_of(rows, 1);
      const std::int64_t blocks = (rows + of_block - 1) / of_block;
      const auto run            = [&](const char* name, int moves, Meaning meaning, double sum, const auto& call) {
        const Times times   = time_together(m_ranks, m_exec, m_arguments.samples, [&] { call(all); });
        const auto& result  = meaning == Meaning::logit ? m_x : m_y;
        const double error  = worst_row_sum(m_ranks, result, m_lse, meaning, m_classes.all, sum);
        const bool holds    = error < (sizeof(T) == 2 ? 2e-2 : 1e-4);
        const Times kernels = time_together(m_ranks, m_exec, m_arguments.samples, [&] { call(self); });
        is_right            = is_right && holds;
        show(report, name, merge.name, moves, blocks, times, kernels, holds ? -1 : error);
      };
      run("softmax", 2, Meaning::value, 1, [&](const Comm& comm) { mpi::softmax(comm, m_x, m_y); });
      run("log_softmax", 2, Meaning::logarithm, 1, [&](const Comm& comm) { mpi::log_softmax(comm, m_x, m_y); });
      run("logsumexp", 1, Meaning::logit, 1, [&](const Comm& comm) { mpi::logsumexp(comm, m_x, m_lse); });
      run("cross_entropy", 1, Meaning::logit, 1,
          [&](const Comm& comm) { mpi::cross_entropy(comm, m_x, m_classes, m_labels, m_loss, {}, m_lse); });
      run("cross_entropy_with_gradient", 2, Meaning::value, 0, [&](const Comm& comm) {
        mpi::cross_entropy_with_gradient(comm, m_x, m_classes, m_labels, m_loss, m_y, {.reduction = Reduction::sum});
      });
      run("rms_norm", 2, Meaning::norm, 1, [&](const Comm& comm) { mpi::rms_norm(comm, m_x, m_weight, m_y); });
      run("layer_norm", 2, Meaning::norm, 1,
          [&](const Comm& comm) { mpi::layer_norm(comm, m_x, m_weight, m_bias, m_y); });
    }
    return is_right;
  }

 private:
  /// `moves`: how often each element must be read or written; `error`: of a wrong result, which has no time.
  void show(Report& report, const char* name, const char* mode, int moves, std::int64_t blocks, const Times& times,
            const Times& kernels, double error) const {
    const auto rows = static_cast<std::int64_t>(m_x.extent(0));
    if (error >= 0 || std::isnan(error)) {
      if (m_ranks.rank == 0) std::printf("%s %s %s: WRONG by %g\n", name, m_type, m_scaling, error);
      report.add("failures", field("operator", name), field("type", m_type), field("scaling", m_scaling),
                 field("ranks", std::int64_t(m_ranks.size)), field("mode", mode));
      return;
    }
    const std::int64_t bytes = moves * rows * m_classes.all * std::int64_t(sizeof(T));
    report.add("points", field("operator", name), field("type", m_type), field("scaling", m_scaling),
               field("mode", mode), field("rows", rows), field("cols", m_classes.all),
               field("ranks", std::int64_t(m_ranks.size)), field("blocks", blocks), field("bytes", bytes),
               field("seconds", times.seconds), field("mpi_seconds", times.in_mpi),
               field("kernel_seconds", kernels.seconds));
    if (m_ranks.rank != 0) return;
    std::printf("%-28s %-5s %-7s %-9s %6d %10lld %9.1f %9.1f %9.1f %9.1f\n", name, m_type, m_scaling, mode,
                m_ranks.size, static_cast<long long>(m_classes.all), 1e6 * times.slowest(), 1e6 * kernels.slowest(),
                1e6 * *std::ranges::max_element(times.in_mpi), 1e-9 * static_cast<double>(bytes) / times.slowest());
    std::fflush(stdout);
  }

  Exec m_exec;
  Ranks m_ranks;
  const char* m_type;
  const char* m_scaling;
  mpi::ClassRange m_classes;
  const Arguments& m_arguments;
  Matrix<T> m_x;
  Matrix<T> m_y;
  Kokkos::View<accumulator_t<T>*, Exec> m_lse;
  Kokkos::View<std::int64_t*, Exec> m_labels;
  Kokkos::View<accumulator_t<T>, Exec> m_loss;
  Kokkos::View<T*, Exec> m_weight;
  Kokkos::View<T*, Exec> m_bias;
};

/// Measures what the model is made from: a copy on every rank at a time, and merges of pairs alone.
void measure_machine(const Ranks& ranks, const Arguments& arguments, Report& report) {
  const int samples = arguments.samples;
  const Exec exec;
  const std::int64_t bytes = on_gpu ? std::int64_t(1) << 30 : std::int64_t(1) << 26;
  const Kokkos::View<char*, Exec> from("from", bytes), to("to", bytes);
  const Times copy = time_together(ranks, exec, samples, [&] { Kokkos::deep_copy(exec, to, from); });
  report.add("copies", field("ranks", std::int64_t(ranks.size)), field("bytes", 2 * bytes),
             field("seconds", copy.seconds));
  for (const Merge& way : arguments.merges) {
    const Communicator<Exec> comm(exec, ranks.comm, way.options());
    for (const std::int64_t pairs : {1, 16, 256, 1024, 4096, 16384, 65536}) {
      auto* memory = comm.pairs(pairs);
      Impl::clear_states(exec, pairs, memory);
      const Times merge =
          time_together(ranks, exec, samples, [&] { comm.states().exchanged("kokkosnn_mpi_perf", memory, pairs); });
      report.add("merges", field("ranks", std::int64_t(ranks.size)), field("mode", way.name), field("pairs", pairs),
                 field("seconds", merge.seconds));
    }
  }
}

/// All points of one type; whether all results were right.
template <class T>
bool measure_type(const Ranks& ranks, int all_ranks, const char* type, const Arguments& arguments, Report& report) {
  const std::int64_t of_rank = arguments.cols / all_ranks;
  bool is_right              = Point<T>(ranks, type, "strong", arguments.cols, arguments).measure(report);
  if (ranks.size < all_ranks) {  // on all ranks the two are the same
    is_right = Point<T>(ranks, type, "weak", of_rank * ranks.size, arguments).measure(report) && is_right;
  }
  return is_right;
}

bool measure(const Ranks& ranks, int all_ranks, const Arguments& arguments, Report& report) {
  measure_machine(ranks, arguments, report);
  bool is_right = true;
  for (const std::string& type : arguments.types) {
    if (type == "f32") {
      is_right = measure_type<float>(ranks, all_ranks, "f32", arguments, report) && is_right;
    } else if (type == "f64") {
      is_right = measure_type<double>(ranks, all_ranks, "f64", arguments, report) && is_right;
    } else if (type == "bf16") {
      is_right = measure_type<bhalf_t>(ranks, all_ranks, "bf16", arguments, report) && is_right;
    } else {
      throw std::invalid_argument("no element type " + type);
    }
  }
  return is_right;
}

/// Every rank's host and device, on rank 0.
std::string places(const Ranks& world) {
  constexpr int length              = MPI_MAX_PROCESSOR_NAME + 80;
  char own[length]                  = {};
  char host[MPI_MAX_PROCESSOR_NAME] = {};
  int host_length                   = 0;
  MPI_Get_processor_name(host, &host_length);
  std::snprintf(own, length, "%s: %s, number %d", host, std::string(device_name(Exec())).c_str(), Kokkos::device_id());
  std::vector<char> all(static_cast<std::size_t>(length) * world.size);
  MPI_Gather(own, length, MPI_CHAR, all.data(), length, MPI_CHAR, 0, world.comm);
  std::string text;
  for (int r = 0; r < world.size; ++r)
    text += (r > 0 ? "; " : "") + std::string(&all[static_cast<std::size_t>(r) * length]);
  return text;
}

/// Returns whether all results were right.
bool run(Arguments arguments) {
  Ranks world{MPI_COMM_WORLD, 0, 1};
  MPI_Comm_rank(world.comm, &world.rank);
  MPI_Comm_size(world.comm, &world.size);
  Report report(world.rank == 0);
  const bool is_default = arguments.merges.empty();
  Context context       = machine_context(Exec());
  context.emplace_back("ranks", std::to_string(world.size));
  context.emplace_back("places", places(world));
  char library[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length                                   = 0;
  MPI_Get_library_version(library, &length);
  context.emplace_back("mpi", library);
  {
    const mpi::Transport best = Communicator<Exec>(Exec(), world.comm).transport();
    const Communicator<Exec> by_mpi(Exec(), world.comm, {.transport = mpi::Transport::mpi});
    context.emplace_back("transport", to_string(best));
    context.emplace_back("transport by MPI", to_string(by_mpi.transport()));
    for (const Merge& merge : all_merges) {
      if (is_default && (merge.transport == mpi::Transport::mpi || merge.transport == best)) {
        arguments.merges.push_back(merge);
      }
    }
  }
  if (world.rank == 0) {
    for (const char* name : {"device", "ranks", "transport", "transport by MPI"}) {
      for (const auto& [known, value] : context) {
        if (known == name) std::printf("%s: %s\n", name, value.c_str());
      }
    }
    std::printf("%-28s %-5s %-7s %-9s %6s %10s %9s %9s %9s %9s\n", "operator", "type", "scaling", "merge", "ranks",
                "cols", "us", "alone us", "in MPI", "GB/s");
  }

  bool is_right = true;
  for (int size = 1; size <= world.size; size = size < world.size ? std::min(2 * size, world.size) : size + 1) {
    MPI_Comm part = MPI_COMM_NULL;
    MPI_Comm_split(world.comm, world.rank < size ? 0 : MPI_UNDEFINED, world.rank, &part);
    if (part != MPI_COMM_NULL) {
      is_right = measure({part, world.rank, size}, world.size, arguments, report) && is_right;
      MPI_Comm_free(&part);
    }
    MPI_Barrier(world.comm);
    std::filesystem::create_directories(arguments.out);
    report.write(std::filesystem::path(arguments.out) / "scaling.json", context);
  }
  return is_right;
}

}  // namespace
}  // namespace KokkosNN::Perf

int main(int argc, char* argv[]) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  int status = 0;
  try {
    KokkosNN::Perf::Arguments arguments = KokkosNN::Perf::parse(argc, argv);
    const Kokkos::ScopeGuard kokkos;
    status = KokkosNN::Perf::run(std::move(arguments)) ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "kokkosnn_mpi_perf: %s\n%s\n", e.what(), KokkosNN::Perf::usage);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  MPI_Finalize();
  return status;
}
