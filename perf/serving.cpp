// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
/// Calls that serving makes of rows: results in 8 bits, and RMSNorm with a rotary embedding, beside a copy of as many
/// bytes, and beside the calls in 16 or 32 bits that they replace, in turn.
#include "program.hpp"

#include <KokkosNN/norm.hpp>
#include <KokkosNN/quantized.hpp>
#include <KokkosNN/rms_norm_rope.hpp>
#include <KokkosNN/rope.hpp>
#include <KokkosNN/softmax.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>

namespace KokkosNN::Perf {
namespace {

struct Arguments {
  double seconds   = 0.3;  ///< for a call
  ElementType type = ElementType::bf16;
};

template <class T>
using Rows = Kokkos::View<T**, Kokkos::LayoutRight, Exec>;
template <class T>
using Heads = Kokkos::View<T****, Kokkos::LayoutRight, Exec>;

auto uninitialized(const Exec& exec) {
  return Kokkos::view_alloc(Kokkos::WithoutInitializing, exec, std::string("KokkosNN::Perf::serving"));
}

double median_of(const Exec& exec, const std::function<void()>& call, double seconds) {
  ColdCache cold(exec);
  call();
  return summary(sample(exec, cold, call, {.seconds = seconds})).median;
}

/// Prints a call's time beside that of a copy which reads and writes `bytes` together, and of what it replaces.
void report(const Exec& exec, const Arguments& arguments, const std::string& name, const std::string& shape,
            double bytes, const std::function<void()>& call, const std::function<void()>& replaced,
            std::int64_t wrong) {
  const auto half = static_cast<std::size_t>(bytes / 2);
  const Bytes from(uninitialized(exec), half), to(uninitialized(exec), half);
  fill_with_noise(exec, from);
  const double copied = median_of(exec, [=] { Kokkos::deep_copy(exec, to, from); }, arguments.seconds);
  const double called = median_of(exec, call, arguments.seconds);
  const double before = median_of(exec, replaced, arguments.seconds);
  std::printf("%-28s %-20s %9.1f %9.0f   %5.2f of copy   %5.2f of what it replaces%s\n", name.c_str(), shape.c_str(),
              1e6 * called, 1e-9 * bytes / called, copied / called, called / before,
              wrong > 0 ? "  THE RESULTS DIFFER" : "");
  std::fflush(stdout);
}

/// Results in 8 bits that differ from plain ones by more than their steps.
template <class Plain, class Codes, class Scales>
std::int64_t differences(const Exec& exec, const Plain& plain, const Codes& codes, const Scales& scales) {
  constexpr bool is_int8 = std::is_integral_v<typename Codes::value_type>;
  const auto cols        = static_cast<std::int64_t>(plain.extent(1));
  std::int64_t count     = 0;
  Kokkos::parallel_reduce(
      "KokkosNN::Perf::differences", Kokkos::RangePolicy<Exec>(exec, 0, plain.extent(0)),
      KOKKOS_LAMBDA(const std::int64_t row, std::int64_t& sum) {
        for (std::int64_t c = 0; c < cols; ++c) {
          const auto wanted = static_cast<float>(plain(row, c));
          const float got   = static_cast<float>(codes(row, c)) * scales(row);
          const float step  = is_int8 ? scales(row) : 0.07f * Kokkos::abs(wanted) + scales(row);
          sum += Kokkos::abs(got - wanted) <= step + 0.01f * Kokkos::abs(wanted) ? 0 : 1;
        }
      },
      count);
  return count;
}

template <class T, class Q>
void measure_quantized(const Exec& exec, const Arguments& arguments, std::int64_t rows, std::int64_t cols) {
  const Rows<T> x(uninitialized(exec), rows, cols), plain(uninitialized(exec), rows, cols);
  const Rows<Q> y(uninitialized(exec), rows, cols);
  const Kokkos::View<float*, Exec> scales(uninitialized(exec), rows);
  const Kokkos::View<T*, Exec> weight(uninitialized(exec), cols);
  fill(exec, x, 0);
  fill(exec, weight, static_cast<std::uint64_t>(rows * cols));
  const double bytes       = static_cast<double>(rows * cols) * (sizeof(T) + 1);
  const std::string format = std::is_integral_v<Q> ? ", int8" : ", float8";
  const std::string shape  = std::to_string(rows) + " x " + std::to_string(cols);
  const auto measure = [&](const char* name, const std::function<void()>& call, const std::function<void()>& replaced) {
    call();
    replaced();
    const std::int64_t wrong = differences(exec, plain, y, scales);
    report(exec, arguments, name + format, shape, bytes, call, replaced, wrong);
  };
  measure("quantized_softmax", [=] { quantized_softmax(exec, x, y, scales); }, [=] { softmax(exec, x, plain); });
  measure(
      "quantized_rms_norm", [=] { quantized_rms_norm(exec, x, weight, y, scales); },
      [=] { rms_norm(exec, x, weight, plain); });
  measure(
      "quantized_layer_norm", [=] { quantized_layer_norm(exec, x, weight, no_view, y, scales); },
      [=] { layer_norm(exec, x, weight, no_view, plain); });
}

/// Elements of two Views that differ by more than rounding in 16 bits.
template <class V>
std::int64_t differences(const Exec& exec, const V& a, const V& b) {
  std::int64_t count     = 0;
  const auto* const of_a = a.data();
  const auto* const of_b = b.data();
  Kokkos::parallel_reduce(
      "KokkosNN::Perf::differences", Kokkos::RangePolicy<Exec>(exec, 0, a.size()),
      KOKKOS_LAMBDA(const std::int64_t i, std::int64_t& sum) {
        const float distance = Kokkos::abs(static_cast<float>(of_a[i]) - static_cast<float>(of_b[i]));
        sum += distance <= 0.05f ? 0 : 1;
      },
      count);
  return count;
}

template <class T>
void measure_heads(const Exec& exec, const Arguments& arguments, std::int64_t heads, RopeForm form) {
  constexpr std::int64_t batch = 4, sequence = 4096, dim = 128;
  using Table = Kokkos::View<accumulator_t<T>**, Kokkos::LayoutRight, Exec>;
  const Heads<T> x(uninitialized(exec), batch, sequence, heads, dim),
      y(uninitialized(exec), batch, sequence, heads, dim);
  const Heads<T> plain(uninitialized(exec), batch, sequence, heads, dim);
  const Table cos(uninitialized(exec), sequence, dim / 2), sin(uninitialized(exec), sequence, dim / 2);
  const Kokkos::View<T*, Exec> weight(uninitialized(exec), dim);
  fill(exec, x, 0);
  fill(exec, weight, 1);
  fill(exec, cos, 2);
  fill(exec, sin, 3);
  const RmsNormRopeOptions options{.rope = {.form = form}};
  const std::function<void()> call     = [=] { rms_norm_rope(exec, x, weight, cos, sin, y, options); };
  const std::function<void()> replaced = [=] {
    rms_norm(exec, x, weight, plain);
    rope(exec, plain, cos, sin, plain, options.rope);
  };
  call();
  replaced();
  const std::string name  = form == RopeForm::interleaved ? ", interleaved" : "";
  const std::string shape = "4 x 4096 x " + std::to_string(heads) + " x 128";
  report(exec, arguments, "rms_norm_rope" + name, shape, 2.0 * static_cast<double>(x.size()) * sizeof(T), call,
         replaced, differences(exec, y, plain));
}

template <class T>
void measure_all(const Exec& exec, const Arguments& arguments) {
  std::printf("%s; microseconds, GB/s of what is read and written, shares of time\n",
              KokkosNN::to_string(arguments.type));
  for (const auto& [rows, cols] : {std::pair{65536, 1024}, {16384, 4096}, {8192, 8192}, {4096, 16384}, {1024, 65536}}) {
    measure_quantized<T, std::int8_t>(exec, arguments, rows, cols);
    measure_quantized<T, float8_e4m3>(exec, arguments, rows, cols);
  }
  for (const std::int64_t heads : {32, 8}) {
    measure_heads<T>(exec, arguments, heads, RopeForm::half_rotated);
    measure_heads<T>(exec, arguments, heads, RopeForm::interleaved);
  }
}

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  for_flags(argc, argv, [&](const std::string& flag, const std::string& value) {
    if (flag == "--seconds")
      arguments.seconds = std::stod(value);
    else if (flag == "--type")
      arguments.type = type_named(value);
    else
      return false;
    return true;
  });
  return arguments;
}

void run(const Arguments& arguments) {
  const Exec exec;
  if (arguments.type == ElementType::f32) return measure_all<float>(exec, arguments);
  if (arguments.type == ElementType::bf16) return measure_all<bhalf_t>(exec, arguments);
  throw std::invalid_argument("kokkosnn_serving has f32 and bf16");
}

}  // namespace
}  // namespace KokkosNN::Perf

int main(int argc, char** argv) {
  return KokkosNN::Perf::run_program("kokkosnn_serving", argc, argv, [](int count, char** values) {
    KokkosNN::Perf::run(KokkosNN::Perf::parse(count, values));
  });
}
