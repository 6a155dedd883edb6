// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
/// Attention and its gradients: milliseconds, and operations a second. Those of the scores that a causal mask rules out
/// do not count. `--calls` chooses others: masks of single scores; decoding, a query a request, beside a copy of as
/// many bytes as keys and values have; attention over a graph, whose neighbours lie within 128 nodes of a node.
#include "program.hpp"

#include <KokkosNN/attention.hpp>
#include <KokkosNN/graph_attention.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace KokkosNN::Perf {
namespace {

struct Arguments {
  double seconds       = 0.5;  ///< for a line
  std::int64_t queries = 2048;
  ElementType type     = ElementType::f32;
  MatmulTier tier      = MatmulTier::automatic;
  std::string calls    = "heads";  ///< or masks, decoding, graph
};

/// Heads of q and of k and v, and elements of a head.
struct Shape {
  std::int64_t heads;
  std::int64_t kv_heads;
  std::int64_t dim;
};
constexpr bool on_host                = Kokkos::SpaceAccessibility<Kokkos::HostSpace, Exec::memory_space>::accessible;
constexpr std::int64_t tokens_on_gpus = 16384;  ///< of all batch entries
std::int64_t batch_of(std::int64_t queries) {
  return on_host ? 1 : std::max<std::int64_t>(1, tokens_on_gpus / queries);
}
constexpr Shape on_hosts[]   = {{4, 4, 64}, {4, 4, 128}, {8, 2, 64}};
constexpr Shape on_gpus[]    = {{16, 16, 64}, {16, 16, 128}, {32, 8, 128}};
constexpr const auto& shapes = on_host ? on_hosts : on_gpus;

template <class T>
struct Tensors {
  using Heads = Kokkos::View<T****, Kokkos::LayoutRight, Exec>;
  using Lse   = Kokkos::View<accumulator_t<T>***, Kokkos::LayoutRight, Exec>;

  Heads q, k, v, o, dout, dq, dk, dv;
  Lse lse;

  Tensors(const Exec& exec, const Shape& shape, std::int64_t queries) {
    const std::int64_t batch = batch_of(queries);
    for (Heads* each : {&q, &o, &dout, &dq}) *each = Heads("KokkosNN::Perf::q", batch, shape.heads, queries, shape.dim);
    for (Heads* each : {&k, &v, &dk, &dv})
      *each = Heads("KokkosNN::Perf::k", batch, shape.kv_heads, queries, shape.dim);
    lse                = Lse("KokkosNN::Perf::lse", batch, shape.heads, queries);
    std::uint64_t from = 0;
    for (const Heads* each : {&q, &k, &v, &dout}) {
      fill(exec, *each, from);
      from += each->size();
    }
  }
};

void print(const char* function, const char* mask, const Shape& shape, const Timing& timing, double operations) {
  std::printf("%-18s %-6s %3lld %3lld %4lld %10.3f [%9.3f, %9.3f] %10.1f\n", function, mask,
              static_cast<long long>(shape.heads), static_cast<long long>(shape.kv_heads),
              static_cast<long long>(shape.dim), 1e3 * timing.median, 1e3 * timing.q1, 1e3 * timing.q3,
              1e-9 * operations / timing.median);
  std::fflush(stdout);
}

template <class T, class M>
void measure(const Exec& exec, const Arguments& arguments, const Shape& shape, const char* name, const M& mask,
             double scores, double softcap = 0) {
  const Tensors<T> t(exec, shape, arguments.queries);
  const double products = 2.0 * static_cast<double>(batch_of(arguments.queries) * shape.heads * shape.dim) *
                          scores;  // of one product of matrices
  const AttentionOptions options{.softcap = softcap, .tier = arguments.tier};
  const auto forward = [&] { attention(exec, t.q, t.k, t.v, t.o, mask, options, t.lse); };
  print("attention", name, shape, time(exec, forward, arguments.seconds), 2 * products);
  const auto backward = [&] {
    attention_backward(exec, t.q, t.k, t.v, t.o, t.dout, t.lse, mask, t.dq, t.dk, t.dv, options);
  };
  print("attention_backward", name, shape, time(exec, backward, arguments.seconds), 5 * products);
}

/// Requests of one query, each head of k read by a group of heads of q.
struct Requests {
  std::int64_t requests;
  std::int64_t keys;
};
constexpr Requests requests_on_hosts[] = {{4, 4096}, {1, 16384}};
constexpr Requests requests_on_gpus[]  = {{32, 4096}, {1, 131072}};
constexpr const auto& all_requests     = on_host ? requests_on_hosts : requests_on_gpus;

template <class T>
void measure_decoding(const Exec& exec, const Arguments& arguments, const Requests& requests) {
  using Heads                = typename Tensors<T>::Heads;
  constexpr std::int64_t dim = 128, kv_heads = 8, group = 8;
  const auto [number, keys] = requests;
  const Heads k("KokkosNN::Perf::k", number, kv_heads, keys, dim), v("KokkosNN::Perf::v", number, kv_heads, keys, dim);
  const Heads to("KokkosNN::Perf::copy", number, kv_heads, keys, dim);
  const Heads q("KokkosNN::Perf::q", number, kv_heads * group, 1, dim);
  const Heads o("KokkosNN::Perf::o", number, kv_heads * group, 1, dim);
  fill(exec, k, 0);
  fill(exec, v, k.size());
  fill(exec, q, 2 * k.size());
  const Timing copy = time(exec, [&] { Kokkos::deep_copy(exec, to, k); }, arguments.seconds);
  const Timing call = time(exec, [&] { attention(exec, q, k, v, o, masks()); }, arguments.seconds);
  std::printf(
      "decoding %lld x %lld keys, %lld heads of k read by %lld each, dim %lld: %.1f us [%.1f, %.1f], %.2f of a "
      "copy\n",
      static_cast<long long>(number), static_cast<long long>(keys), static_cast<long long>(kv_heads),
      static_cast<long long>(group), static_cast<long long>(dim), 1e6 * call.median, 1e6 * call.q1, 1e6 * call.q3,
      copy.median / call.median);
  std::fflush(stdout);
}

/// Bias and booleans are of all heads, or of all.
template <class T>
void measure_masks(const Exec& exec, const Arguments& arguments, const Shape& shape) {
  const std::int64_t n = arguments.queries;
  const Kokkos::View<T***, Kokkos::LayoutRight, Exec> bias("KokkosNN::Perf::bias", shape.heads, n, n);
  const Kokkos::View<bool**, Kokkos::LayoutRight, Exec> keep("KokkosNN::Perf::keep", n, n);
  const Kokkos::View<float*, Exec> slopes("KokkosNN::Perf::slopes", shape.heads);
  fill(exec, bias, 0);
  Kokkos::deep_copy(exec, slopes, 0.0625f);
  Kokkos::parallel_for(
      "KokkosNN::Perf::keep", Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(exec, 0, n * n),
      KOKKOS_LAMBDA(const std::int64_t i) { keep.data()[i] = noise(static_cast<std::uint64_t>(i)) % 4 != 0; });
  const auto scores = static_cast<double>(n) * static_cast<double>(n);
  measure<T>(exec, arguments, shape, "cap", masks(), scores, 30);
  measure<T>(exec, arguments, shape, "alibi", Alibi{slopes}, scores);
  measure<T>(exec, arguments, shape, "bias", AdditiveBias{bias}, scores);
  measure<T>(exec, arguments, shape, "bool", BooleanMask{keep}, scores);
}

/// Nodes of 64 neighbours each, 4 heads of 64 elements.
template <class T>
void measure_graph(const Exec& exec, const Arguments& arguments) {
  using Rows                = Kokkos::View<T***, Kokkos::LayoutRight, Exec>;
  const std::int64_t nodes  = on_host ? 2048 : 16384;
  constexpr std::int64_t of = 64, heads = 4, dim = 64, reach = 128;
  Rows q, k, v, o, dout, dq, dk, dv;
  for (Rows* each : {&q, &k, &v, &o, &dout, &dq, &dk, &dv}) *each = Rows("KokkosNN::Perf::rows", nodes, heads, dim);
  for (const Rows* each : {&q, &k, &v, &dout}) fill(exec, *each, 0);
  const Kokkos::View<accumulator_t<T>**, Kokkos::LayoutRight, Exec> lse("KokkosNN::Perf::lse", nodes, heads);
  const Kokkos::View<int*, Exec> row_map("KokkosNN::Perf::row_map", nodes + 1);
  const Kokkos::View<int*, Exec> entries("KokkosNN::Perf::entries", nodes * of);
  using Range = Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>;
  Kokkos::parallel_for(
      "KokkosNN::Perf::row_map", Range(exec, 0, nodes + 1),
      KOKKOS_LAMBDA(const std::int64_t i) { row_map(i) = static_cast<int>(i * of); });
  Kokkos::parallel_for(
      "KokkosNN::Perf::entries", Range(exec, 0, nodes * of), KOKKOS_LAMBDA(const std::int64_t i) {
        const auto step = static_cast<std::int64_t>(noise(static_cast<std::uint64_t>(i)) % (2 * reach));
        entries(i)      = static_cast<int>((i / of + step + nodes - reach) % nodes);
      });
  const auto report = [&](const char* name, const std::function<void()>& call) {
    const Timing timing = time(exec, call, arguments.seconds);
    std::printf("%s %lld nodes of %lld neighbours, %lld heads of %lld: %.1f us [%.1f, %.1f]\n", name,
                static_cast<long long>(nodes), static_cast<long long>(of), static_cast<long long>(heads),
                static_cast<long long>(dim), 1e6 * timing.median, 1e6 * timing.q1, 1e6 * timing.q3);
    std::fflush(stdout);
  };
  report("graph_attention", [&] { graph_attention(exec, q, k, v, row_map, entries, o, {}, no_view, lse); });
  report("graph_attention_backward",
         [&] { graph_attention_backward(exec, q, k, v, row_map, entries, o, dout, lse, dq, dk, dv); });
}

template <class T>
void measure_all(const Arguments& arguments) {
  const Exec exec;
  if (arguments.calls == "decoding") {
    for (const Requests& requests : all_requests) measure_decoding<T>(exec, arguments, requests);
    return;
  }
  if (arguments.calls == "graph") return measure_graph<T>(exec, arguments);
  const auto n = static_cast<double>(arguments.queries);
  std::printf("batch %lld, %lld queries and keys of %s\n", static_cast<long long>(batch_of(arguments.queries)),
              static_cast<long long>(arguments.queries), KokkosNN::to_string(arguments.type));
  std::printf("%-18s %-6s %3s %3s %4s %10s %24s %10s\n", "operator", "mask", "q", "kv", "dim", "ms", "quartiles",
              "GFLOP/s");
  for (const Shape& shape : shapes) {
    if (arguments.calls == "masks") {
      measure_masks<T>(exec, arguments, shape);
      continue;
    }
    measure<T>(exec, arguments, shape, "none", masks(), n * n);
    measure<T>(exec, arguments, shape, "causal", CausalMask{}, n * (n + 1) / 2);
  }
}

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  for_flags(argc, argv, [&](const std::string& flag, const std::string& value) {
    if (flag == "--seconds")
      arguments.seconds = std::stod(value);
    else if (flag == "--queries")
      arguments.queries = std::stoll(value);
    else if (flag == "--type")
      arguments.type = type_named(value);
    else if (flag == "--calls")
      arguments.calls = value;
    else if (flag == "--tier")
      arguments.tier = value == "portable" ? MatmulTier::portable : MatmulTier::warpgroups;
    else
      return false;
    return true;
  });
  if (arguments.calls != "heads" && arguments.calls != "masks" && arguments.calls != "decoding" &&
      arguments.calls != "graph") {
    throw std::invalid_argument("--calls is one of heads, masks, decoding and graph");
  }
  return arguments;
}

void run(int argc, char** argv) {
  const Arguments arguments = parse(argc, argv);
  with_type(arguments.type, [&]<class T>(std::type_identity<T>) { measure_all<T>(arguments); });
}

}  // namespace
}  // namespace KokkosNN::Perf

int main(int argc, char** argv) {
  return KokkosNN::Perf::run_program("kokkosnn_attention", argc, argv, KokkosNN::Perf::run);
}
