// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "provider.hpp"

#include <KokkosNN/elementwise.hpp>

#include <Kokkos_Core.hpp>

#include <stdexcept>

namespace KokkosNN::Perf {
namespace {

/// A user's functor.
struct MultiplyAndAdd {
  KOKKOS_FUNCTION float operator()(float a, float b) const { return a * b + a; }
};

template <class T>
Contender elementwise_call(const Problem& problem) {
  const Exec exec  = problem.exec();
  const auto x     = problem.input<T>(0);
  const auto y     = problem.output<T>(0);
  const char* plan = "elementwise";
  switch (problem.shape().elementwise) {
    case Elementwise::add:
      return {.call = [=, b = problem.input<T>(1)] { add(exec, x, b, y); }, .plan = plan};
    case Elementwise::cast:
      return {.call = [=, y = problem.output<bhalf_t>(0)] { cast(exec, x, y); }, .plan = plan};
    case Elementwise::silu:
      return {.call = [=] { silu(exec, x, y); }, .plan = plan};
    case Elementwise::gelu:
      return {.call = [=] { gelu(exec, x, y); }, .plan = plan};
    case Elementwise::swiglu:
      return {.call = [=, up = problem.input<T>(1)] { swiglu(exec, x, up, y); }, .plan = plan};
    case Elementwise::swiglu_backward:
      return {.call = [=, up = problem.input<T>(1), dy = problem.input<T>(2),
                       dup = problem.output<T>(1)] { swiglu_backward(exec, x, up, dy, y, dup); },
              .plan = plan};
    case Elementwise::fused:
      return {.call = [=, b = problem.input<T>(1)] { fused_elementwise(exec, y, MultiplyAndAdd{}, x, b); },
              .plan = plan};
    case Elementwise::none:
      break;
  }
  throw std::logic_error("KokkosNN::Perf: perf_elementwise.cpp has no " + problem.shape().name());
}

}  // namespace

Contender make_elementwise(const Problem& problem, RowStrategy strategy) {
  if (strategy != RowStrategy::automatic) throw std::invalid_argument("elementwise operators know no strategies");
  if (problem.shape().x_type == ElementType::f32) return elementwise_call<float>(problem);
  if (problem.shape().x_type == ElementType::bf16) return elementwise_call<bhalf_t>(problem);
  throw std::logic_error("KokkosNN::Perf: perf_elementwise.cpp instantiates no " + problem.shape().name());
}

}  // namespace KokkosNN::Perf
