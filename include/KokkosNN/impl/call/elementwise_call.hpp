// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_ELEMENTWISE_CALL_HPP
#define KOKKOSNN_IMPL_CALL_ELEMENTWISE_CALL_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/instantiations/elementwise.hpp>
#include <KokkosNN/impl/call/checks.hpp>
#include <KokkosNN/impl/call/elementwise_launch.hpp>
#include <KokkosNN/impl/call/elementwise_plan.hpp>
#include <KokkosNN/impl/call/layout.hpp>
#include <KokkosNN/impl/call/verbose.hpp>
#include <KokkosNN/impl/traits.hpp>

#include <Kokkos_Core.hpp>
#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

// The body of an elementwise call: check what the compiler can see, normalise, plan, launch.

namespace KokkosNN::Impl {

template <class V>
using ElementOf = typename V::non_const_value_type;

template <class... V>
inline constexpr bool any_holds_double = (... || std::is_same_v<ElementOf<V>, double>);

/// The accumulator of a call: double if any View holds double.
template <class... V>
using elementwise_accumulator = std::conditional_t<any_holds_double<V...>, double, float>;

template <class V>
inline constexpr bool holds_results = hold_elements<V> || std::is_arithmetic_v<ElementOf<V>>;

template <class V, class... Outputs>
inline constexpr bool broadcasts_to = (... && (V::rank() <= Outputs::rank()));

/// Views of a call, as a tuple of outputs and a pack of inputs.
template <class Exec, class... Out, class... In>
constexpr void check_elementwise(const std::tuple<Out...>*, const std::tuple<In...>*) {
  static_assert(sizeof...(Out) >= 1 && sizeof...(In) >= 1,
                "KokkosNN elementwise operators: there must be an output and an input");
  static_assert(sizeof...(Out) + sizeof...(In) <= max_elementwise_tensors,
                "KokkosNN elementwise operators: there may be up to ten Views");
  static_assert(hold_elements<In...>,
                "KokkosNN elementwise operators: inputs must hold double, float, half_t or bhalf_t");
  static_assert(
      (... && holds_results<Out>),
      "KokkosNN elementwise operators: outputs must hold double, float, half_t, bhalf_t or an arithmetic type");
  static_assert((... && is_writable<Out>), "KokkosNN elementwise operators: an output must not be const");
  static_assert((... && broadcasts_to<Out, Out...>),
                "KokkosNN elementwise operators: all outputs must have the same rank");
  static_assert((... && broadcasts_to<In, Out...>),
                "KokkosNN elementwise operators: an input must not have more axes than the outputs");
  static_assert(can_access<Exec, Out..., In...>,
                "KokkosNN elementwise operators: the execution space must be able to access the memory of all Views");
}

/// Checks, plans and enqueues a call: launch(arguments). `name(t)` is the name of tensor t, outputs first.
template <int pack, class Exec, class Name, class Launch, class... Out, class... In>
void elementwise_call(const char* function, const Exec& exec, const Name& name, const Launch& run,
                      const std::tuple<Out...>& outputs, const In&... inputs) {
  check_elementwise<Exec>(static_cast<const std::tuple<Out...>*>(nullptr),
                          static_cast<const std::tuple<In...>*>(nullptr));
  const Kokkos::Profiling::ScopedRegion region(std::string("KokkosNN::") + function);
  ElementwiseOperands operands{function, sizeof...(Out), 0, {}, {}};
  const auto add = [&](const auto& view) {
    operands.name[operands.count]     = name(operands.count);
    operands.tensor[operands.count++] = tensor_of(view);
  };
  std::apply([&](const auto&... output) { (add(output), ...); }, outputs);
  (add(inputs), ...);
  const ElementwiseLayout layout = normalise(operands);
  if (!layout.writes()) return;
  const ElementwisePlan plan = make_elementwise_plan(operands, layout, pack, device_traits(exec));
  if (is_verbose()) report_call(function, operands.tensor[0], plan.label);
  run(ElementwiseArguments{plan, layout, operands});
}

/// The number of a functor's results.
template <class F, class A, class... In>
constexpr std::size_t results_of() {
  static_assert(std::is_invocable_v<const F&, Repeated<sizeof(In), A>...>,
                "KokkosNN::fused_elementwise: f must be callable, as const, with one number an input, float or double");
  using R = std::remove_cvref_t<std::invoke_result_t<const F&, Repeated<sizeof(In), A>...>>;
  return std::max<std::size_t>(1, array_size<R>);
}

inline constexpr const char* output_names[] = {"output 0", "output 1", "output 2", "output 3", "output 4",
                                               "output 5", "output 6", "output 7", "output 8"};
inline constexpr const char* input_names[]  = {"input 0", "input 1", "input 2", "input 3", "input 4",
                                               "input 5", "input 6", "input 7", "input 8"};

/// A call on a user's functor.
template <class Exec, class F, class... Out, class... In>
void call_functor(const Exec& exec, const std::tuple<Out...>& outputs, const F& f, const In&... inputs) {
  using A       = elementwise_accumulator<Out..., In...>;
  using Outputs = ElementTypes<ElementOf<Out>...>;
  using Inputs  = ElementTypes<ElementOf<In>...>;
  static_assert(results_of<F, A, In...>() == sizeof...(Out),
                "KokkosNN::fused_elementwise: f must return a number, or a Kokkos::Array of one for each output");
  constexpr int out_count = sizeof...(Out);
  elementwise_call<elementwise_pack<Exec, Outputs, Inputs, A>>(
      "fused_elementwise", exec, [](int t) { return t < out_count ? output_names[t] : input_names[t - out_count]; },
      [&](const ElementwiseArguments& call) { ElementwiseLaunch<Exec, F, A, Outputs, Inputs>::run(exec, call, f); },
      outputs, inputs...);
}

/// Accuracy that suffices where all results have 16 bits.
template <class... T>
inline constexpr ExpAccuracy accuracy_for =
    (... && (exp_accuracy_for<T> == ExpAccuracy::fast)) ? ExpAccuracy::fast : ExpAccuracy::full;

/// A call of an operator with a name; where all Views hold one type its kernels are in the library.
template <template <class, ExpAccuracy> class Op, class Exec, class... Out, class... In>
void call_operator(const Exec& exec, const std::tuple<Out...>& outputs, const In&... inputs) {
  using A        = elementwise_accumulator<Out..., In...>;
  using Outputs  = ElementTypes<ElementOf<Out>...>;
  using Inputs   = ElementTypes<ElementOf<In>...>;
  using Operator = Op<A, accuracy_for<ElementOf<Out>...>>;
  using T        = ElementOf<std::tuple_element_t<0, std::tuple<Out...>>>;
  const Operator op;
  elementwise_call<elementwise_pack<Exec, Outputs, Inputs, A>>(
      Operator::function, exec, [](int t) { return Operator::operands[t]; },
      [&](const ElementwiseArguments& call) {
        if constexpr (hold_one_type<Out..., In...>) {
          ElementwiseCall<Exec, T, Op>::run(exec, call, op);
        } else {
          ElementwiseLaunch<Exec, Operator, A, Outputs, Inputs>::run(exec, call, op);
        }
      },
      outputs, inputs...);
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_ELEMENTWISE_CALL_HPP
