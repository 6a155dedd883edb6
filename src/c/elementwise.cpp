// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"
#include "runtime.hpp"

#include <KokkosNN/elementwise.hpp>
#include <KokkosNN/kokkosnn.h>

#include <initializer_list>
#include <type_traits>

// The elementwise operators in C, on tensors of one type; cast is between all types.

namespace KokkosNN::C {
namespace {

using namespace KokkosNN::Impl;

template <template <class, ExpAccuracy> class Op>
using NamesOf = Op<float, ExpAccuracy::full>;

/// The tensors of an operator, outputs first.
template <template <class, ExpAccuracy> class Op>
ElementwiseOperands operands_of(std::initializer_list<const kokkosnn_tensor*> tensors) {
  const char* const function = NamesOf<Op>::function;
  ElementwiseOperands operands{function, NamesOf<Op>::outputs, 0, {}, {}};
  for (const kokkosnn_tensor* given : tensors) {
    const int number        = operands.count++;
    operands.name[number]   = NamesOf<Op>::operands[number];
    operands.tensor[number] = tensor_of(function, operands.name[number], given);
    const int rank          = operands.tensor[0].rank;
    require_rank(function, operands.name[number], operands.tensor[number], number < operands.outputs ? rank : 0, rank);
  }
  return operands;
}

/// Plans and enqueues a call: run(arguments).
template <int pack, class Run>
void planned(const Exec& exec, const ElementwiseOperands& operands, const ElementwiseLayout& layout, const Run& run) {
  const ElementwisePlan plan = make_elementwise_plan(operands, layout, pack, device_traits(exec));
  if (is_verbose()) report_call(operands.function, operands.tensor[0], plan.label);
  run(ElementwiseArguments{plan, layout, operands});
}

/// An operator on tensors of one type, whose kernels are in the library.
template <template <class, ExpAccuracy> class Op>
kokkosnn_status run(const kokkosnn_exec* where, std::initializer_list<const kokkosnn_tensor*> tensors) {
  return guarded([&] {
    const ElementwiseOperands operands = operands_of<Op>(tensors);
    const ElementType type             = operands.tensor[0].type;
    for (int t = 1; t < operands.count; ++t) {
      require_type(operands.function, operands.name[t], operands.tensor[t], type, type);
    }
    on_instance(operands.function, where, [&](const Exec& exec) {
      const ElementwiseLayout layout = normalise(operands);
      if (!layout.writes()) return;
      with_type(type, [&]<class T>(std::type_identity<T>) {
        using Call         = ElementwiseCall<Exec, T, Op>;
        constexpr int pack = elementwise_pack<Exec, typename Call::Outputs, typename Call::Inputs, accumulator_t<T>>;
        planned<pack>(exec, operands, layout,
                      [&](const ElementwiseArguments& call) { Call::run(exec, call, typename Call::Operator{}); });
      });
    });
  });
}

/// Conversion from X to Y; its kernels are compiled here.
template <class X, class Y>
void run_cast(const Exec& exec, const ElementwiseOperands& operands, const ElementwiseLayout& layout) {
  constexpr bool is_double = std::is_same_v<X, double> || std::is_same_v<Y, double>;
  using A                  = std::conditional_t<is_double, double, float>;
  using Operator           = Cast<A, accuracy_for<Y>>;
  using Outputs            = ElementTypes<Y>;
  using Inputs             = ElementTypes<X>;
  planned<elementwise_pack<Exec, Outputs, Inputs, A>>(exec, operands, layout, [&](const ElementwiseArguments& call) {
    ElementwiseLaunch<Exec, Operator, A, Outputs, Inputs>::run(exec, call, Operator{});
  });
}

/// True if the options ask for the tanh form.
bool is_tanh(const char* function, const kokkosnn_gelu_options* options) {
  static_assert(static_cast<int>(GeluForm::tanh) == KOKKOSNN_GELU_TANH);
  const auto given = read(function, "GELU options", options, kokkosnn_gelu_options KOKKOSNN_GELU_OPTIONS_INIT);
  return enumerator(function, "form", given.form, GeluForm::tanh) == GeluForm::tanh;
}

/// An operator with a form of GELU.
template <template <class, ExpAccuracy> class Erf, template <class, ExpAccuracy> class Tanh>
kokkosnn_status run_gelu(const kokkosnn_exec* where, std::initializer_list<const kokkosnn_tensor*> tensors,
                         const kokkosnn_gelu_options* options) {
  bool tanh                    = false;
  const kokkosnn_status status = guarded([&] { tanh = is_tanh(NamesOf<Erf>::function, options); });
  if (status != KOKKOSNN_SUCCESS) return status;
  return tanh ? run<Tanh>(where, tensors) : run<Erf>(where, tensors);
}

}  // namespace
}  // namespace KokkosNN::C

using KokkosNN::C::run;
using KokkosNN::C::run_gelu;
using namespace KokkosNN::Impl;

using Where  = const kokkosnn_exec*;
using Given  = const kokkosnn_tensor*;
using Gelued = const kokkosnn_gelu_options*;

extern "C" {

kokkosnn_status kokkosnn_add(Where exec, Given a, Given b, Given y) { return run<Add>(exec, {y, a, b}); }

kokkosnn_status kokkosnn_mul(Where exec, Given a, Given b, Given y) { return run<Mul>(exec, {y, a, b}); }

kokkosnn_status kokkosnn_cast(Where where, Given x, Given y) {
  return KokkosNN::C::guarded([&] {
    const ElementwiseOperands operands = KokkosNN::C::operands_of<Cast>({y, x});
    KokkosNN::C::on_instance(operands.function, where, [&](const KokkosNN::C::Exec& exec) {
      const ElementwiseLayout layout = normalise(operands);
      if (!layout.writes()) return;
      KokkosNN::C::with_type(operands.tensor[0].type, [&]<class Y>(std::type_identity<Y>) {
        KokkosNN::C::with_type(operands.tensor[1].type, [&]<class X>(std::type_identity<X>) {
          KokkosNN::C::run_cast<X, Y>(exec, operands, layout);
        });
      });
    });
  });
}

kokkosnn_status kokkosnn_silu(Where exec, Given x, Given y) { return run<Silu>(exec, {y, x}); }

kokkosnn_status kokkosnn_silu_backward(Where exec, Given x, Given dy, Given dx) {
  return run<SiluBackward>(exec, {dx, x, dy});
}

kokkosnn_status kokkosnn_gelu(Where exec, Given x, Given y, Gelued options) {
  return run_gelu<Gelu, GeluTanh>(exec, {y, x}, options);
}

kokkosnn_status kokkosnn_gelu_backward(Where exec, Given x, Given dy, Given dx, Gelued options) {
  return run_gelu<GeluBackward, GeluTanhBackward>(exec, {dx, x, dy}, options);
}

kokkosnn_status kokkosnn_swiglu(Where exec, Given gate, Given up, Given y) { return run<Swiglu>(exec, {y, gate, up}); }

kokkosnn_status kokkosnn_swiglu_backward(Where exec, Given gate, Given up, Given dy, Given dgate, Given dup) {
  return run<SwigluBackward>(exec, {dgate, dup, gate, up, dy});
}

kokkosnn_status kokkosnn_geglu(Where exec, Given gate, Given up, Given y, Gelued options) {
  return run_gelu<Geglu, GegluTanh>(exec, {y, gate, up}, options);
}

kokkosnn_status kokkosnn_geglu_backward(Where exec, Given gate, Given up, Given dy, Given dgate, Given dup,
                                        Gelued options) {
  return run_gelu<GegluBackward, GegluTanhBackward>(exec, {dgate, dup, gate, up, dy}, options);
}
}
