// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_TEST_REFERENCE_ELEMENTWISE_HPP
#define KOKKOSNN_TEST_REFERENCE_ELEMENTWISE_HPP

#include <algorithm>
#include <array>
#include <cmath>

// The elementwise operators in long double, as their formulas stand in the documentation.

namespace KokkosNNTest::Reference {

using Real = long double;

/// The elementwise operators, each form of GELU for itself.
enum class Element {
  add,
  mul,
  silu,
  gelu,
  gelu_tanh,
  swiglu,
  geglu,
  geglu_tanh,
  silu_backward,
  gelu_backward,
  gelu_tanh_backward,
  swiglu_backward,
  geglu_backward,
  geglu_tanh_backward
};

inline constexpr std::array all_elements{Element::add,
                                         Element::mul,
                                         Element::silu,
                                         Element::gelu,
                                         Element::gelu_tanh,
                                         Element::swiglu,
                                         Element::geglu,
                                         Element::geglu_tanh,
                                         Element::silu_backward,
                                         Element::gelu_backward,
                                         Element::gelu_tanh_backward,
                                         Element::swiglu_backward,
                                         Element::geglu_backward,
                                         Element::geglu_tanh_backward};

inline int inputs_of(Element op) {
  switch (op) {
    case Element::silu:
    case Element::gelu:
    case Element::gelu_tanh:
      return 1;
    case Element::swiglu_backward:
    case Element::geglu_backward:
    case Element::geglu_tanh_backward:
      return 3;
    default:
      return 2;
  }
}
inline int outputs_of(Element op) { return inputs_of(op) == 3 ? 2 : 1; }

/// Distribution function and density.
struct Distribution {
  Real below;
  Real density;
};

inline Distribution logistic(Real x, Real slope = 1) {
  const Real tail = std::exp(-std::fabs(x)) / (1 + std::exp(-std::fabs(x)));
  return {x < 0 ? tail : 1 - tail, tail * (1 - tail) * slope};
}
inline Distribution normal(Real x) {
  constexpr Real root_of_two = 1.41421356237309504880168872420969808L, peak = 0.398942280401432677939946059934381869L;
  return {std::erfc(-x / root_of_two) / 2, peak * std::exp(-x * x / 2)};
}
inline Distribution by_tanh(Real x) {
  constexpr Real factor = 1.59576912160573071175978423973752747L;  // 2 sqrt(2 / pi)
  return logistic(factor * (x + 0.044715L * x * x * x), factor * (1 + 3 * 0.044715L * x * x));
}

/// A result, and the size of its largest term.
struct Result {
  Real value;
  Real size;
};

/// The results of an operator at an element, outputs in their order.
inline std::array<Result, 2> element(Element op, const std::array<Real, 3>& in) {
  const Real x     = in[0];
  const auto alone = [](Real value) { return std::array<Result, 2>{{{value, std::fabs(value)}, {}}}; };
  const auto at    = [&](const Distribution& f) {
    const Real step = std::isinf(x) ? 0 : x * f.density;
    const Real y    = x == -HUGE_VALL ? 0 : x * f.below;
    const Result derivative{f.below + step, std::max(f.below, std::fabs(step))};
    const auto times = [&](Real factor) {
      return Result{factor * derivative.value, std::fabs(factor) * derivative.size};
    };
    switch (inputs_of(op)) {
      case 1:
        return alone(y);
      case 3:
        return std::array<Result, 2>{{times(in[2] * in[1]), {in[2] * y, std::fabs(in[2] * y)}}};
      default:
        break;
    }
    const bool is_gradient =
        op == Element::silu_backward || op == Element::gelu_backward || op == Element::gelu_tanh_backward;
    return is_gradient ? std::array<Result, 2>{{times(in[1]), {}}} : alone(y * in[1]);
  };
  switch (op) {
    case Element::add:
      return alone(x + in[1]);
    case Element::mul:
      return alone(x * in[1]);
    case Element::silu:
    case Element::swiglu:
    case Element::silu_backward:
    case Element::swiglu_backward:
      return at(logistic(x));
    case Element::gelu:
    case Element::geglu:
    case Element::gelu_backward:
    case Element::geglu_backward:
      return at(normal(x));
    case Element::gelu_tanh:
    case Element::geglu_tanh:
    case Element::gelu_tanh_backward:
    case Element::geglu_tanh_backward:
      return at(by_tanh(x));
  }
  return {};
}

}  // namespace KokkosNNTest::Reference

#endif  // KOKKOSNN_TEST_REFERENCE_ELEMENTWISE_HPP
