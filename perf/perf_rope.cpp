// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "provider.hpp"

#include <KokkosNN/rope.hpp>

#include <Kokkos_Core.hpp>

#include <cmath>
#include <cstdint>
#include <stdexcept>

namespace KokkosNN::Perf {
namespace {

using Table = Kokkos::View<float**, Kokkos::LayoutRight, Exec>;

void fill_tables(const Exec& exec, const Table& cos, const Table& sin) {
  const double theta         = RopeOptions().theta;
  const std::int64_t columns = static_cast<std::int64_t>(cos.extent(1));
  const std::int64_t count   = static_cast<std::int64_t>(cos.extent(0)) * columns;
  Kokkos::parallel_for(
      "KokkosNN::Perf::tables", Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(exec, 0, count),
      KOKKOS_LAMBDA(const std::int64_t i) {
        const std::int64_t position = i / columns, column = i % columns;
        const double angle    = static_cast<double>(position) *
                                Kokkos::pow(theta, -static_cast<double>(column) / static_cast<double>(columns));
        cos(position, column) = static_cast<float>(Kokkos::cos(angle));
        sin(position, column) = static_cast<float>(Kokkos::sin(angle));
      });
}

template <class T>
Contender rope_call(const Problem& problem) {
  using Heads       = Kokkos::View<T***, Kokkos::LayoutRight, Exec, Kokkos::MemoryUnmanaged>;
  const Exec exec   = problem.exec();
  const Case& shape = problem.shape();
  const Heads x(problem.x<T>().data(), shape.rows, rope_heads, shape.cols / rope_heads);
  const Heads y(problem.y<T>().data(), shape.rows, rope_heads, shape.cols / rope_heads);
  if (shape.rope == RopeKind::angles) return {.call = [=] { rope(exec, x, y); }, .plan = "angles"};
  const Table cos("KokkosNN::Perf::cos", shape.rows, x.extent(2) / 2),
      sin("KokkosNN::Perf::sin", shape.rows, x.extent(2) / 2);
  fill_tables(exec, cos, sin);
  const bool is_halved = shape.rope == RopeKind::half_rotated;
  const RopeOptions options{.form = is_halved ? RopeForm::half_rotated : RopeForm::interleaved};
  return {.call = [=] { rope(exec, x, cos, sin, y, options); }, .plan = "tables"};
}

}  // namespace

Contender make_rope(const Problem& problem) {
  if (problem.shape().x_type == ElementType::f32) return rope_call<float>(problem);
  if (problem.shape().x_type == ElementType::bf16) return rope_call<bhalf_t>(problem);
  throw std::logic_error("KokkosNN::Perf: perf_rope.cpp instantiates no " + problem.shape().name());
}

}  // namespace KokkosNN::Perf
