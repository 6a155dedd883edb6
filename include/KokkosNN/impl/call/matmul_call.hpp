// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_MATMUL_CALL_HPP
#define KOKKOSNN_IMPL_CALL_MATMUL_CALL_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/checks.hpp>
#include <KokkosNN/impl/call/elementwise_call.hpp>
#include <KokkosNN/impl/call/layout.hpp>
#include <KokkosNN/impl/call/matmul_launch.hpp>
#include <KokkosNN/impl/call/matmul_plan.hpp>
#include <KokkosNN/impl/call/optional_view.hpp>
#include <KokkosNN/instantiations/matmul.hpp>
#include <KokkosNN/precision.hpp>

#include <Kokkos_Core.hpp>
#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <cstddef>
#include <string>
#include <type_traits>

// The body of a matrix product: check what the compiler can see, normalise, plan, launch.

namespace KokkosNN::Impl {

template <class Exec, class AView, class BView, class CView, class... In>
constexpr void check_matmul() {
  static_assert(AView::rank() >= 2 && BView::rank() >= 2 && CView::rank() >= 2,
                "KokkosNN::matmul: a, b and c must have rank 2 to 8");
  static_assert(AView::rank() <= CView::rank() && BView::rank() <= CView::rank(),
                "KokkosNN::matmul: a and b must not have more axes than c");
  static_assert((... && (In::rank() <= CView::rank())), "KokkosNN::matmul: an input must not have more axes than c");
  static_assert(3 + sizeof...(In) <= max_matmul_tensors, "KokkosNN::matmul: an epilogue may have up to seven inputs");
  static_assert(hold_elements<AView, BView, CView, In...>,
                "KokkosNN::matmul: all Views must hold double, float, half_t or bhalf_t");
  static_assert(hold_one_type<AView, BView>, "KokkosNN::matmul: a and b must hold the same type");
  static_assert(is_writable<CView>, "KokkosNN::matmul: c must not be const");
  static_assert(can_access<Exec, AView, BView, CView, In...>,
                "KokkosNN::matmul: the execution space must be able to access the memory of all Views");
}

/// Checks and enqueues a product: run(arguments).
template <class Options, class Run, class AView, class BView, class CView, class... In>
void matmul_call(const Options& options, const Run& run, const AView& a, const BView& b, const CView& c,
                 const In&... inputs) {
  const Kokkos::Profiling::ScopedRegion region("KokkosNN::matmul");
  MatmulOperands operands{"matmul", 0, {}, {}};
  const auto add = [&](const char* name, const Tensor& tensor) {
    operands.name[operands.count]     = name;
    operands.tensor[operands.count++] = tensor;
  };
  add("c", tensor_of(c));
  add("a", tensor_of(a));
  add("b", tensor_of(b));
  (add(input_names[operands.count - MatmulTensors::inputs], tensor_of(inputs)), ...);
  MatmulLayout layout = normalise(operands);
  if (!layout.writes()) return;
  if (options.alpha == 0) layout.inner = 0;
  run(MatmulArguments{operands, layout, options.alpha, options.beta, options.precision});
}

/// A product without an epilogue.
template <class Exec, class Options, class AView, class BView, class CView>
void call_matmul(const Exec& exec, const Options& options, const AView& a, const BView& b, const CView& c) {
  check_matmul<Exec, AView, BView, CView>();
  using T = ElementOf<AView>;
  matmul_call(
      options,
      [&](const MatmulArguments& call) {
        if constexpr (hold_one_type<AView, CView>) {
          MatmulCall<Exec, T>::run(exec, call);
        } else {
          using A = elementwise_accumulator<AView, CView>;
          MatmulLaunch<Exec, T, MatmulResult, A, ElementOf<CView>, ElementTypes<>>::run(exec, call, MatmulResult{});
        }
      },
      a, b, c);
}

/// A product with a user's functor for an epilogue.
template <class Exec, class Options, class AView, class BView, class CView, class F, class... In>
void call_matmul_with_epilogue(const Exec& exec, const Options& options, const AView& a, const BView& b, const CView& c,
                               const F& f, const In&... inputs) {
  check_matmul<Exec, AView, BView, CView, In...>();
  using A = elementwise_accumulator<AView, CView, In...>;
  static_assert(std::is_invocable_v<const F&, A, Repeated<sizeof(In), A>...>,
                "KokkosNN::matmul: the epilogue must be callable, as const, with a number and one for each input");
  matmul_call(
      options,
      [&](const MatmulArguments& call) {
        MatmulLaunch<Exec, ElementOf<AView>, F, A, ElementOf<CView>, ElementTypes<ElementOf<In>...>>::run(exec, call,
                                                                                                          f);
      },
      a, b, c, inputs...);
}

/// Enqueues the gradient with respect to an operand, if it is wanted.
template <class Exec, class Options, class Out>
void call_matmul_gradient(const Exec& exec, const Options& options, const MatmulOperands& product, int number,
                          const Out& out) {
  if constexpr (is_given<Out>) {
    using T                       = ElementOf<Out>;
    const MatmulOperands operands = gradient_product(product, tensor_of(out), number);
    MatmulLayout layout           = normalise(operands);
    if (!layout.writes()) return;
    if (options.alpha == 0) layout.inner = 0;
    MatmulCall<Exec, T>::run(exec, MatmulArguments{operands, layout, options.alpha, options.beta, options.precision});
  }
}

/// Throws what the call of a gradient would, ahead of all launches: so a refused db leaves da unwritten.
template <class Out>
void check_matmul_gradient(const MatmulOperands& product, int number, const Out& out) {
  if constexpr (is_given<Out>) normalise(gradient_product(product, tensor_of(out), number));
}

template <class Exec, class Options, class DcView, class AView, class BView, class DaView, class DbView>
void call_matmul_backward(const Exec& exec, const Options& options, const DcView& dc, const AView& a, const BView& b,
                          const DaView& da, const DbView& db) {
  static_assert(AView::rank() >= 2 && BView::rank() >= 2 && DcView::rank() >= 2 && AView::rank() <= DcView::rank() &&
                    BView::rank() <= DcView::rank(),
                "KokkosNN::matmul_backward: dc, a and b must have rank 2 to 8, a and b at most that of dc");
  static_assert(hold_elements<DcView> && hold_one_type<DcView, AView, BView>,
                "KokkosNN::matmul_backward: all Views must hold one type: double, float, half_t or bhalf_t");
  static_assert(can_access<Exec, DcView, AView, BView>,
                "KokkosNN::matmul_backward: the execution space must be able to access the memory of all Views");
  const auto check = []<class Out>(const Out&) {
    if constexpr (is_given<Out>) {
      static_assert(hold_one_type<DcView, Out> && is_writable<Out> && can_access<Exec, Out>,
                    "KokkosNN::matmul_backward: da and db must hold dc's type, be writable and accessible");
    }
  };
  check(da);
  check(db);
  const Kokkos::Profiling::ScopedRegion region("KokkosNN::matmul_backward");
  const MatmulOperands product{"matmul_backward", 3, {tensor_of(dc), tensor_of(a), tensor_of(b)}, {"dc", "a", "b"}};
  check_matmul_gradient(product, MatmulTensors::a, da);
  check_matmul_gradient(product, MatmulTensors::b, db);
  if constexpr (is_given<DaView> && is_given<DbView>) {
    require_apart_gradients(product, tensor_of(da), tensor_of(db));
  }
  call_matmul_gradient(exec, options, product, MatmulTensors::a, da);
  call_matmul_gradient(exec, options, product, MatmulTensors::b, db);
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_MATMUL_CALL_HPP
