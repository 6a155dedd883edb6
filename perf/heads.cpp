// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
/// Ragged rows of several heads: one call on (elements, heads), in LayoutRight and in LayoutLeft, against one call of
/// rank 1 on as many elements in rows of the same lengths. All three take turns, so that clocks and neighbours are the
/// same for all; a ratio is of one turn.
#include "program.hpp"

#include <KokkosNN/segmented.hpp>

#include <Kokkos_Core.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace KokkosNN::Perf {
namespace {

struct Arguments {
  std::int64_t heads = 4;
  double seconds     = 0.5;  ///< for a line
  ElementType type   = ElementType::f32;
};

/// The rows of all heads together, and their mean length.
struct Shape {
  Layout layout;
  std::int64_t rows;
  std::int64_t mean;
};
constexpr Shape shapes[] = {{Layout::ragged, 1 << 20, 32}, {Layout::ragged, 1 << 20, 10},
                            {Layout::even, 1 << 20, 10},   {Layout::even, 1 << 20, 32},
                            {Layout::ragged, 300000, 100}, {Layout::skewed, 1000000, 10}};

constexpr RowOperator operators[] = {RowOperator::softmax, RowOperator::log_softmax, RowOperator::logsumexp,
                                     RowOperator::softmax_backward, RowOperator::log_softmax_backward};

using Offsets = Kokkos::View<std::int32_t*, Exec>;

Offsets offsets_of(const Exec& exec, Layout layout, std::int64_t rows, std::int64_t mean) {
  const Offsets offsets(Kokkos::view_alloc(Kokkos::WithoutInitializing, exec, "offsets"), rows + 1);
  Kokkos::parallel_for(
      "KokkosNN::Perf::offsets", Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(exec, 0, rows + 1),
      KOKKOS_LAMBDA(const std::int64_t row) {
        offsets(row) = static_cast<std::int32_t>(row_begin(layout, rows, mean, row));
      });
  return offsets;
}

/// One of the five calls; dy is that of gradients.
template <class X, class Y>
std::function<void()> call_of(RowOperator op, const Exec& exec, const X& x, const X& dy, const Offsets& offsets,
                              const Y& y) {
  if (op == RowOperator::softmax) return [=] { segmented_softmax(exec, x, offsets, y); };
  if (op == RowOperator::log_softmax) return [=] { segmented_log_softmax(exec, x, offsets, y); };
  if (op == RowOperator::logsumexp) return [=] { segmented_logsumexp(exec, x, offsets, y); };
  if (op == RowOperator::softmax_backward) return [=] { segmented_softmax_backward(exec, x, dy, offsets, y); };
  return [=] { segmented_log_softmax_backward(exec, x, dy, offsets, y); };
}

/// (elements, heads) of one layout; element (i, h) has the same value in all layouts.
template <class T, class ViewLayout>
struct Heads {
  using Values = Kokkos::View<T**, ViewLayout, Exec>;

  Values x, dy, y;
  std::function<void()> call;

  Heads(const Exec& exec, RowOperator op, const Offsets& offsets, std::int64_t n, std::int64_t heads)
      : x(uninitialized(exec), n, heads),
        dy(uninitialized(exec), row_tensors(op) == 2 ? n : 0, heads),
        y(uninitialized(exec), is_reduction(op) ? offsets.extent(0) - 1 : n, heads) {
    fill(exec, x, 0);
    fill(exec, dy, n);
    call = call_of(op, exec, x, dy, offsets, y);
  }

  static auto uninitialized(const Exec& exec) {
    return Kokkos::view_alloc(Kokkos::WithoutInitializing, exec, std::string("KokkosNN::Perf::heads"));
  }
  /// In [-4, 0).
  static void fill(const Exec& exec, const Values& values, std::int64_t from) {
    const auto n = static_cast<std::int64_t>(values.extent(0)), heads = static_cast<std::int64_t>(values.extent(1));
    Kokkos::parallel_for(
        "KokkosNN::Perf::fill", Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(exec, 0, n),
        KOKKOS_LAMBDA(const std::int64_t i) {
          for (std::int64_t h = 0; h < heads; ++h) {
            const auto place = static_cast<std::uint64_t>((from + i) * heads + h);
            values(i, h)     = static_cast<T>(static_cast<float>(noise(place) >> 40) * 0x1p-22f - 4.0f);
          }
        });
  }
};

/// How many results of the two layouts differ by more than rounding: by `tolerance` of a result, or of `least` where
/// that is more.
template <class Right, class Left>
std::int64_t differences(const Exec& exec, const Right& right, const Left& left, double tolerance, double least) {
  std::int64_t count = 0;
  const auto heads   = static_cast<std::int64_t>(right.extent(1));
  Kokkos::parallel_reduce(
      "KokkosNN::Perf::differences",
      Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(exec, 0, right.extent(0)),
      KOKKOS_LAMBDA(const std::int64_t i, std::int64_t& sum) {
        for (std::int64_t h = 0; h < heads; ++h) {
          const auto a = static_cast<double>(right(i, h)), b = static_cast<double>(left(i, h));
          sum += a == b || Kokkos::abs(a - b) <= tolerance * Kokkos::max(Kokkos::abs(a), least) ? 0 : 1;
        }
      },
      count);
  return count;
}

/// Seconds of each call, turn by turn.
std::vector<std::vector<double>> take_turns(const Exec& exec, const std::vector<std::function<void()>>& calls,
                                            double limit) {
  ColdCache cold(exec);
  Stopwatch stopwatch(exec);
  std::vector<std::vector<double>> seconds(calls.size());
  for (const auto& call : calls) call();
  exec.fence("KokkosNN::Perf: warm");
  const auto begin = std::chrono::steady_clock::now();
  const auto spent = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  while (seconds[0].size() < 5 || spent() < limit) {
    for (std::size_t i = 0; i < calls.size(); ++i) {
      cold.write();
      stopwatch.start();
      calls[i]();
      seconds[i].push_back(stopwatch.stop());
    }
  }
  return seconds;
}

Timing ratios(const std::vector<double>& of, const std::vector<double>& to) {
  std::vector<double> all;
  for (std::size_t i = 0; i < of.size(); ++i) all.push_back(of[i] / to[i]);
  return summary(all);
}

template <class T>
void measure(const Exec& exec, const Arguments& arguments, RowOperator op, const Shape& shape) {
  const std::int64_t rows     = shape.rows / arguments.heads;
  const std::int64_t all_rows = rows * arguments.heads;
  const std::int64_t n        = rows * shape.mean + (shape.layout == Layout::skewed ? rows : 0);
  const Offsets all_offsets   = offsets_of(exec, shape.layout, all_rows, shape.mean);
  const Offsets offsets       = offsets_of(exec, shape.layout, rows, shape.mean);
  const Heads<T, Kokkos::LayoutLeft> one(exec, op, all_offsets, n * arguments.heads, 1);
  const Heads<T, Kokkos::LayoutRight> right(exec, op, offsets, n, arguments.heads);
  const Heads<T, Kokkos::LayoutLeft> left(exec, op, offsets, n, arguments.heads);
  const auto rank_1 = [](const auto& values) {
    return Kokkos::View<T*, Exec, Kokkos::MemoryUnmanaged>(values.data(), values.size());
  };
  const auto alone = call_of(op, exec, rank_1(one.x), rank_1(one.dy), all_offsets, rank_1(one.y));

  const auto seconds = take_turns(exec, {alone, right.call, left.call}, arguments.seconds);

  // A difference of logits has the error of a logit, however near 0 it is.
  const bool is_log        = op == RowOperator::log_softmax || op == RowOperator::logsumexp;
  const std::int64_t wrong = differences(exec, right.y, left.y, sizeof(T) == 2 ? 4e-2 : 1e-4, is_log ? 1.0 : 1e-6);
  const Timing by_right = ratios(seconds[1], seconds[0]), by_left = ratios(seconds[2], seconds[0]);
  std::printf("%-21s %-7s %8lld x %-4lld %9.1f %9.1f %9.1f   %5.3f [%5.3f, %5.3f]   %5.3f [%5.3f, %5.3f]%s\n",
              KokkosNN::to_string(op), to_string(shape.layout), static_cast<long long>(all_rows),
              static_cast<long long>(shape.mean), 1e6 * summary(seconds[0]).median, 1e6 * summary(seconds[1]).median,
              1e6 * summary(seconds[2]).median, by_right.median, by_right.q1, by_right.q3, by_left.median, by_left.q1,
              by_left.q3, wrong > 0 ? "  THE LAYOUTS' RESULTS DIFFER" : "");
  std::fflush(stdout);
}

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  for_flags(argc, argv, [&](const std::string& flag, const std::string& value) {
    if (flag == "--heads")
      arguments.heads = std::stoll(value);
    else if (flag == "--seconds")
      arguments.seconds = std::stod(value);
    else if (flag == "--type")
      arguments.type = type_named(value);
    else
      return false;
    return true;
  });
  return arguments;
}

void measure_all(const Arguments& arguments) {
  const Exec exec;
  std::printf("%lld heads of %s, microseconds; ratios to rank 1 with quartiles\n",
              static_cast<long long>(arguments.heads), KokkosNN::to_string(arguments.type));
  std::printf("%-21s %-7s %15s %9s %9s %9s   %s\n", "operator", "rows", "", "rank 1", "right", "left", "ratios");
  for (const RowOperator op : operators) {
    for (const Shape& shape : shapes) {
      if (arguments.type == ElementType::f32)
        measure<float>(exec, arguments, op, shape);
      else if (arguments.type == ElementType::bf16)
        measure<bhalf_t>(exec, arguments, op, shape);
      else
        throw std::invalid_argument("kokkosnn_heads has f32 and bf16");
    }
  }
}

}  // namespace
}  // namespace KokkosNN::Perf

int main(int argc, char** argv) {
  return KokkosNN::Perf::run_program("kokkosnn_heads", argc, argv, [](int count, char** values) {
    KokkosNN::Perf::measure_all(KokkosNN::Perf::parse(count, values));
  });
}
