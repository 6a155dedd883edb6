// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_OPERATORS_ELEMENTWISE_HPP
#define KOKKOSNN_IMPL_OPERATORS_ELEMENTWISE_HPP

#include <KokkosNN/impl/math/gates.hpp>

#include <Kokkos_Core.hpp>

// The elementwise operators: functors of fused_elementwise that have a name. Each is a template on the accumulator and
// on the accuracy that the results can hold, and says
//
//     function    the public function's name
//     operands    the names of its Views in messages: outputs, then inputs
//     outputs     how many of these are outputs
//
// and its call is a template on a number or a host's vector of numbers.

namespace KokkosNN::Impl {

/// Functors whose call takes a host's vectors, too.
struct TakesVectors {
  static constexpr bool takes_vectors = true;
};

template <class F>
inline constexpr bool takes_vectors = requires { requires F::takes_vectors; };

template <class A, ExpAccuracy>
struct Add : TakesVectors {
  static constexpr const char* function   = "add";
  static constexpr const char* operands[] = {"y", "a", "b"};
  static constexpr int outputs            = 1;

  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION T operator()(T a, T b) const {
    return a + b;
  }
};

template <class A, ExpAccuracy>
struct Mul : TakesVectors {
  static constexpr const char* function   = "mul";
  static constexpr const char* operands[] = {"y", "a", "b"};
  static constexpr int outputs            = 1;

  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION T operator()(T a, T b) const {
    return a * b;
  }
};

template <class A, ExpAccuracy>
struct Cast : TakesVectors {
  static constexpr const char* function   = "cast";
  static constexpr const char* operands[] = {"y", "x"};
  static constexpr int outputs            = 1;

  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION T operator()(T x) const {
    return x;
  }
};

/// y = g(x), g the gate of a distribution.
template <class Tail>
struct Activation : TakesVectors {
  static constexpr const char* operands[] = {"y", "x"};
  static constexpr int outputs            = 1;

  Gate<Tail> gate;

  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION T operator()(T x) const {
    return gate(x);
  }
};

/// dx = dy g'(x).
template <class Tail>
struct ActivationBackward : TakesVectors {
  static constexpr const char* operands[] = {"dx", "x", "dy"};
  static constexpr int outputs            = 1;

  Gate<Tail> gate;

  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION T operator()(T x, T dy) const {
    return dy * gate.with_derivative(x).derivative;
  }
};

/// y = g(gate) up.
template <class Tail>
struct GatedUnit : TakesVectors {
  static constexpr const char* operands[] = {"y", "gate", "up"};
  static constexpr int outputs            = 1;

  Gate<Tail> gate;

  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION T operator()(T x, T up) const {
    return gate(x) * up;
  }
};

/// dgate = dy up g'(gate), dup = dy g(gate).
template <class Tail>
struct GatedUnitBackward : TakesVectors {
  static constexpr const char* operands[] = {"dgate", "dup", "gate", "up", "dy"};
  static constexpr int outputs            = 2;

  Gate<Tail> gate;

  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION Kokkos::Array<T, 2> operator()(T x, T up, T dy) const {
    const GateValues<T> at = gate.with_derivative(x);
    return {dy * up * at.derivative, dy * at.value};
  }
};

// Names: structs, as the library's instantiations and labels know them.

template <class A, ExpAccuracy accuracy>
struct Silu : Activation<LogisticTail<A, accuracy>> {
  static constexpr const char* function = "silu";
};
template <class A, ExpAccuracy accuracy>
struct Gelu : Activation<NormalTail<A, accuracy>> {
  static constexpr const char* function = "gelu";
};
template <class A, ExpAccuracy accuracy>
struct GeluTanh : Activation<TanhTail<A, accuracy>> {
  static constexpr const char* function = "gelu";
};
template <class A, ExpAccuracy accuracy>
struct SiluBackward : ActivationBackward<LogisticTail<A, accuracy>> {
  static constexpr const char* function = "silu_backward";
};
template <class A, ExpAccuracy accuracy>
struct GeluBackward : ActivationBackward<NormalTail<A, accuracy>> {
  static constexpr const char* function = "gelu_backward";
};
template <class A, ExpAccuracy accuracy>
struct GeluTanhBackward : ActivationBackward<TanhTail<A, accuracy>> {
  static constexpr const char* function = "gelu_backward";
};
template <class A, ExpAccuracy accuracy>
struct Swiglu : GatedUnit<LogisticTail<A, accuracy>> {
  static constexpr const char* function = "swiglu";
};
template <class A, ExpAccuracy accuracy>
struct Geglu : GatedUnit<NormalTail<A, accuracy>> {
  static constexpr const char* function = "geglu";
};
template <class A, ExpAccuracy accuracy>
struct GegluTanh : GatedUnit<TanhTail<A, accuracy>> {
  static constexpr const char* function = "geglu";
};
template <class A, ExpAccuracy accuracy>
struct SwigluBackward : GatedUnitBackward<LogisticTail<A, accuracy>> {
  static constexpr const char* function = "swiglu_backward";
};
template <class A, ExpAccuracy accuracy>
struct GegluBackward : GatedUnitBackward<NormalTail<A, accuracy>> {
  static constexpr const char* function = "geglu_backward";
};
template <class A, ExpAccuracy accuracy>
struct GegluTanhBackward : GatedUnitBackward<TanhTail<A, accuracy>> {
  static constexpr const char* function = "geglu_backward";
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_OPERATORS_ELEMENTWISE_HPP
