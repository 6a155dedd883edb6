// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_ELEMENTWISE_LAUNCH_HPP
#define KOKKOSNN_IMPL_CALL_ELEMENTWISE_LAUNCH_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/half.hpp>
#include <KokkosNN/impl/call/cpu_levels.hpp>
#include <KokkosNN/impl/call/elementwise_plan.hpp>
#include <KokkosNN/impl/call/launch.hpp>
#include <KokkosNN/impl/elementwise_forms.hpp>
#include <KokkosNN/impl/gpu/elementwise.hpp>
#include <KokkosNN/impl/host/elementwise.hpp>
#include <KokkosNN/impl/inputs/elementwise.hpp>
#include <KokkosNN/impl/kernel_shapes.hpp>
#include <KokkosNN/impl/operators/elementwise.hpp>
#include <KokkosNN/impl/traits.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

// The way from the plan of an elementwise call to its launch.

namespace KokkosNN::Impl {

/// A planned call, its Views erased.
struct ElementwiseArguments {
  const ElementwisePlan& plan;
  const ElementwiseLayout& layout;
  const ElementwiseOperands& operands;
};

/// Elements that a thread moves at once.
template <class Exec, class Outputs, class Inputs, class A>
inline constexpr int elementwise_pack =
    pack_size(backend_of<Exec>(), Inputs::most_bytes(), Outputs::most_bytes(), sizeof(A));

template <class Exec, class F, class A, class Outputs, class Inputs>
struct ElementwiseLaunch {
  static constexpr int V = elementwise_pack<Exec, Outputs, Inputs, A>;
  using Tensors          = ElementwiseTensors<Outputs, Inputs>;

  static void run(const Exec& exec, const ElementwiseArguments& call, const F& f) {
    if constexpr (backend_of<Exec>() == Backend::host) {
      launch_kernel(exec, call,
                    HostElementwise<F, A, Outputs, Inputs>{f, tensors_of(call), call.layout.rows, call.layout.cols,
                                                           call.plan.piece, call.plan.nontemporal_stores});
    } else {
      switch (call.plan.form) {
        case ElementwiseForm::packs:
          return run_form<ElementwiseForm::packs>(exec, call, f);
        case ElementwiseForm::one_or_packs:
          return run_form<ElementwiseForm::one_or_packs>(exec, call, f);
        case ElementwiseForm::elements:
          return run_form<ElementwiseForm::elements>(exec, call, f);
      }
    }
  }

 private:
  template <ElementwiseForm form>
  static void run_form(const Exec& exec, const ElementwiseArguments& call, const F& f) {
    constexpr int inputs = Inputs::count;
    constexpr int K      = form == ElementwiseForm::elements ? elementwise_elements(inputs) : elementwise_packs(inputs);
    launch_kernel(
        exec, call,
        ElementwiseKernel<F, A, form, V, K, Outputs, Inputs>{f, tensors_of(call), call.layout.rows, call.layout.cols,
                                                             call.plan.threads_per_row, call.plan.tiles_per_row});
  }

  template <class Kernel>
  static void launch_kernel(const Exec& exec, const ElementwiseArguments& call, const Kernel& kernel) {
    constexpr int residency = least_residency(backend_of<Exec>(), elementwise_team_size);
    launch<Kokkos::LaunchBounds<elementwise_team_size, residency>>(
        exec, call.plan.label, {call.plan.league_size, call.plan.team_size, 0, 0}, kernel);
  }

  static Tensors tensors_of(const ElementwiseArguments& call) {
    Tensors tensors;
    for (int t = 0; t < Tensors::outputs + Tensors::inputs; ++t) {
      tensors.data[t]   = const_cast<void*>(call.operands.tensor[t].data);
      tensors.stride[t] = call.layout.col_stride[t];
      tensors.map[t]    = call.layout.map(t);
    }
    return tensors;
  }
};

template <class T, class Each>
struct RepeatedTypes;
template <class T, std::size_t... i>
struct RepeatedTypes<T, std::index_sequence<i...>> {
  using type = ElementTypes<Repeated<i, T>...>;
};

/// The call of an operator with a name on tensors of one type, compiled in the library.
template <class Exec, class T, template <class, ExpAccuracy> class Op>
struct ElementwiseCall {
  using Operator               = Op<accumulator_t<T>, exp_accuracy_for<T>>;
  static constexpr int outputs = Operator::outputs;
  static constexpr int inputs  = static_cast<int>(std::size(Operator::operands)) - outputs;
  using Outputs                = typename RepeatedTypes<T, std::make_index_sequence<outputs>>::type;
  using Inputs                 = typename RepeatedTypes<T, std::make_index_sequence<inputs>>::type;

  /// Not inline: users compile no kernels.
  static void run(const Exec& exec, const ElementwiseArguments& call, const Operator& op);
};

template <class Exec, class T, template <class, ExpAccuracy> class Op>
struct Launcher<ElementwiseCall<Exec, T, Op>> {
  using Call     = ElementwiseCall<Exec, T, Op>;
  using Operator = typename Call::Operator;

  static void run(const Exec& exec, const ElementwiseArguments& call, const Operator& op) {
    ElementwiseLaunch<Exec, Operator, accumulator_t<T>, typename Call::Outputs, typename Call::Inputs>::run(exec, call,
                                                                                                            op);
  }
};

template <class Exec, class T, template <class, ExpAccuracy> class Op>
void ElementwiseCall<Exec, T, Op>::run(const Exec& exec, const ElementwiseArguments& call, const Operator& op) {
  run_compiled<ElementwiseCall>(exec, call, op);
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_ELEMENTWISE_LAUNCH_HPP
