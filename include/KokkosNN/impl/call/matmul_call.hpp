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
#include <optional>
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

/// Enqueues a checked product: run(arguments).
template <class Options, class Run>
void run_matmul(const MatmulOperands& operands, MatmulLayout layout, const Options& options, const Run& run) {
  if (!layout.writes()) return;
  if (options.alpha == 0) layout.inner = 0;  // neither a nor b is read
  run(MatmulArguments{operands, layout, options.alpha, options.beta, options.precision});
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
  run_matmul(operands, normalise(operands), options, run);
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

/// The gradients of a product of T, whose c is dc, with respect to a and b; a null pointer: not wanted. Both are
/// checked ahead of all launches, so that a refused db leaves da unwritten.
template <class T, class Exec, class Options>
void matmul_backward_erased(const Exec& exec, const Options& options, const MatmulOperands& product, const Tensor* da,
                            const Tensor* db) {
  struct Gradient {
    MatmulOperands operands;
    MatmulLayout layout;
  };
  const auto gradient = [&](const Tensor* out, int number) {
    std::optional<Gradient> result;
    if (out != nullptr) {
      const MatmulOperands operands = gradient_product(product, *out, number);
      result                        = {operands, normalise(operands)};
    }
    return result;
  };
  const auto of_a = gradient(da, MatmulTensors::a), of_b = gradient(db, MatmulTensors::b);
  if (of_a && of_b) require_apart_gradients(product, *da, *db);
  for (const auto* each : {&of_a, &of_b}) {
    if (!*each) continue;
    run_matmul((*each)->operands, (*each)->layout, options,
               [&](const MatmulArguments& call) { MatmulCall<Exec, T>::run(exec, call); });
  }
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
  const Tensor to_a = tensor_of(da), to_b = tensor_of(db);
  matmul_backward_erased<ElementOf<DcView>>(exec, options, product, is_given<DaView> ? &to_a : nullptr,
                                            is_given<DbView> ? &to_b : nullptr);
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_MATMUL_CALL_HPP
