// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
/// Matrix products, with and without an epilogue and maps of rows: milliseconds, and operations a second. --group 1 and
/// --parts 1 show what a GPU's order of tiles and its split of long sums are worth, --tier what Hopper's warpgroups
/// are, --provider what own kernels are.
#include "program.hpp"

#include <KokkosNN/matmul.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace KokkosNN::Perf {

struct BiasRelu {
  template <class A>
  KOKKOS_FUNCTION A operator()(A sum, A bias) const {
    const A x = sum + bias;
    return x > A(0) ? x : A(0);  // compilers for hosts call a function for fmax
  }
};

/// By the error function, as PyTorch's default is.
struct BiasGelu {
  template <class A>
  KOKKOS_FUNCTION A operator()(A sum, A bias) const {
    const A x = sum + bias;
    return A(0.5) * x * (A(1) + Kokkos::erf(x * A(0.70710678118654752)));
  }
};

/// A layer of a graph network: silu of the product and a bias.
struct BiasSilu {
  template <class A>
  KOKKOS_FUNCTION A operator()(A sum, A bias) const {
    const A x = sum + bias;
    return x / (A(1) + Kokkos::exp(-x));
  }
};

namespace {

struct Arguments {
  double seconds      = 0.5;  ///< for a line
  std::int64_t extent = 1024;
  ElementType type    = ElementType::f32;
  MatmulOptions options;
  MatmulOptions own;  ///< the same by own kernels: no vendor's library has epilogues
};

struct Shape {
  std::int64_t rows;
  std::int64_t cols;
  std::int64_t inner;
  std::int64_t batches = 1;
};
constexpr Shape small_shape   = {16, 64, 64, 100000};
constexpr Shape tall_shapes[] = {{262144, 64, 64}, {262144, 128, 128}};

void print(const char* what, const Shape& shape, const Timing& timing) {
  const double operations = 2.0 * static_cast<double>(shape.batches * shape.rows) * static_cast<double>(shape.cols) *
                            static_cast<double>(shape.inner);
  std::printf("%-12s %8lld %6lld %6lld %10.3f [%9.3f, %9.3f] %10.1f\n", what, static_cast<long long>(shape.rows),
              static_cast<long long>(shape.cols), static_cast<long long>(shape.inner), 1e3 * timing.median,
              1e3 * timing.q1, 1e3 * timing.q3, 1e-9 * operations / timing.median);
  std::fflush(stdout);
}

template <class T, class A, class B>
void measure(const Exec& exec, const Arguments& arguments, const char* what, const Shape& shape, const A& a,
             const B& b) {
  const Kokkos::View<T**, Kokkos::LayoutRight, Exec> c("KokkosNN::Perf::c", shape.rows, shape.cols);
  fill(exec, a, 0);
  fill(exec, b, a.size());
  print(what, shape, time(exec, [&] { matmul(exec, a, b, c, arguments.options); }, arguments.seconds));
}

template <class T, class F>
void measure_epilogue(const Exec& exec, const Arguments& arguments, const char* what, const Shape& shape, const F& f) {
  using Matrix = Kokkos::View<T**, Kokkos::LayoutRight, Exec>;
  const Matrix a("KokkosNN::Perf::a", shape.rows, shape.inner), b("KokkosNN::Perf::b", shape.inner, shape.cols),
      c("KokkosNN::Perf::c", shape.rows, shape.cols);
  const Kokkos::View<T*, Exec> bias("KokkosNN::Perf::bias", shape.cols);
  fill(exec, a, 0);
  fill(exec, b, a.size());
  print(what, shape, time(exec, [&] { matmul(exec, a, b, c, arguments.own, f, bias); }, arguments.seconds));
}

/// Many products of small matrices, one call.
template <class T>
void measure_batches(const Exec& exec, const Arguments& arguments, const Shape& shape) {
  using Matrices = Kokkos::View<T***, Kokkos::LayoutRight, Exec>;
  const Matrices a("KokkosNN::Perf::a", shape.batches, shape.rows, shape.inner),
      b("KokkosNN::Perf::b", shape.batches, shape.inner, shape.cols),
      c("KokkosNN::Perf::c", shape.batches, shape.rows, shape.cols);
  fill(exec, a, 0);
  fill(exec, b, a.size());
  print("batches", shape, time(exec, [&] { matmul(exec, a, b, c, arguments.options); }, arguments.seconds));
  print("batches, own", shape, time(exec, [&] { matmul(exec, a, b, c, arguments.own); }, arguments.seconds));
}

/// Messages along the edges of a graph, 16 a target: gather, product, silu and sum in one kernel, as many products as
/// the shape has rows.
template <class T>
void measure_edges(const Exec& exec, const Arguments& arguments, const Shape& shape) {
  using Matrix                      = Kokkos::View<T**, Kokkos::LayoutRight, Exec>;
  using Integers                    = Kokkos::View<std::int32_t*, Exec>;
  constexpr std::int64_t per_target = 16;
  const std::int64_t nodes          = shape.rows / per_target;
  const Matrix x("KokkosNN::Perf::x", nodes, shape.inner), w("KokkosNN::Perf::w", shape.inner, shape.cols),
      y("KokkosNN::Perf::y", nodes, shape.cols);
  const Kokkos::View<T*, Exec> bias("KokkosNN::Perf::bias", shape.cols);
  const Integers sources("KokkosNN::Perf::sources", shape.rows), offsets("KokkosNN::Perf::offsets", nodes + 1);
  fill(exec, x, 0);
  fill(exec, w, x.size());
  const auto host_sources = Kokkos::create_mirror_view(sources);
  for (std::int64_t e = 0; e < shape.rows; ++e) {
    host_sources(e) =
        static_cast<std::int32_t>(noise(static_cast<std::uint64_t>(e)) % static_cast<std::uint64_t>(nodes));
  }
  const auto host_offsets = Kokkos::create_mirror_view(offsets);
  for (std::int64_t t = 0; t <= nodes; ++t) host_offsets(t) = static_cast<std::int32_t>(t * per_target);
  Kokkos::deep_copy(sources, host_sources);
  Kokkos::deep_copy(offsets, host_offsets);
  print("edges, silu", shape,
        time(
            exec,
            [&] { matmul(exec, GatheredRows{x, sources}, w, SummedRows{y, offsets}, arguments.own, BiasSilu{}, bias); },
            arguments.seconds));
}

/// The gradient by b, whose sums go along the rows of a and dc.
template <class T>
void measure_backward(const Exec& exec, const Arguments& arguments, const Shape& shape) {
  using Matrix = Kokkos::View<T**, Kokkos::LayoutRight, Exec>;
  const Matrix a("KokkosNN::Perf::a", shape.rows, shape.inner), b("KokkosNN::Perf::b", shape.inner, shape.cols),
      dc("KokkosNN::Perf::dc", shape.rows, shape.cols), db("KokkosNN::Perf::db", shape.inner, shape.cols);
  fill(exec, a, 0);
  fill(exec, dc, a.size());
  print("db", shape,
        time(exec, [&] { matmul_backward(exec, dc, a, b, no_view, db, arguments.options); }, arguments.seconds));
}

template <class T>
void measure_all(const Arguments& arguments) {
  using Right = Kokkos::View<T**, Kokkos::LayoutRight, Exec>;
  using Left  = Kokkos::View<T**, Kokkos::LayoutLeft, Exec>;
  const Exec exec;
  const std::int64_t n = arguments.extent;
  const Shape square{n, n, n};
  std::printf("products of %s\n", KokkosNN::to_string(arguments.type));
  std::printf("%-12s %8s %6s %6s %10s %24s %10s\n", "a and b by", "m", "n", "k", "ms", "quartiles", "GFLOP/s");
  measure<T>(exec, arguments, "rows, rows", square, Right("a", n, n), Right("b", n, n));
  measure<T>(exec, arguments, "rows, cols", square, Right("a", n, n), Left("b", n, n));
  measure<T>(exec, arguments, "cols, rows", square, Left("a", n, n), Right("b", n, n));
  measure<T>(exec, arguments, "cols, cols", square, Left("a", n, n), Left("b", n, n));
  measure_epilogue<T>(exec, arguments, "bias, relu", square, BiasRelu{});
  measure_epilogue<T>(exec, arguments, "bias, gelu", square, BiasGelu{});
  measure_backward<T>(exec, arguments, square);
  for (const Shape& shape : tall_shapes) {
    measure<T>(exec, arguments, "rows, rows", shape, Right("a", shape.rows, shape.inner),
               Right("b", shape.inner, shape.cols));
    measure_epilogue<T>(exec, arguments, "bias, relu", shape, BiasRelu{});
    measure_edges<T>(exec, arguments, shape);
    measure_backward<T>(exec, arguments, shape);
  }
  measure_batches<T>(exec, arguments, small_shape);
}

Precision precision_named(const std::string& name) {
  if (name == "exact") return Precision::exact;
  if (name == "tensor_float32x3") return Precision::tensor_float32x3;
  if (name == "tensor_float32") return Precision::tensor_float32;
  throw std::invalid_argument("no such precision: " + name);
}

MatmulProvider provider_named(const std::string& name) {
  if (name == "automatic") return MatmulProvider::automatic;
  if (name == "own") return MatmulProvider::own;
  if (name == "vendor") return MatmulProvider::vendor;
  throw std::invalid_argument("no such provider: " + name);
}

MatmulTier tier_named(const std::string& name) {
  if (name == "automatic") return MatmulTier::automatic;
  if (name == "portable") return MatmulTier::portable;
  if (name == "warpgroups") return MatmulTier::warpgroups;
  throw std::invalid_argument("no such tier: " + name);
}

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  for_flags(argc, argv, [&](const std::string& flag, const std::string& value) {
    if (flag == "--seconds")
      arguments.seconds = std::stod(value);
    else if (flag == "--extent")
      arguments.extent = std::stoll(value);
    else if (flag == "--type")
      arguments.type = type_named(value);
    else if (flag == "--precision")
      arguments.options.precision = precision_named(value);
    else if (flag == "--provider")
      arguments.options.provider = provider_named(value);
    else if (flag == "--group")
      arguments.options.tuning.group = std::stoi(value);
    else if (flag == "--parts")
      arguments.options.tuning.parts = std::stoi(value);
    else if (flag == "--tier")
      arguments.options.tuning.tier = tier_named(value);
    else
      return false;
    return true;
  });
  arguments.own          = arguments.options;
  arguments.own.provider = MatmulProvider::own;
  return arguments;
}

void run(int argc, char** argv) {
  const Arguments arguments = parse(argc, argv);
  with_type(arguments.type, [&]<class T>(std::type_identity<T>) { measure_all<T>(arguments); });
}

}  // namespace
}  // namespace KokkosNN::Perf

int main(int argc, char** argv) {
  return KokkosNN::Perf::run_program("kokkosnn_matmul", argc, argv, KokkosNN::Perf::run);
}
