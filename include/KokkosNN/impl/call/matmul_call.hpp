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
#include <KokkosNN/matmul_options.hpp>

#include <Kokkos_Core.hpp>
#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <type_traits>

// The body of a matrix product: check what the compiler can see, normalise, plan, launch.

namespace KokkosNN::Impl {

/// An operand of a product, and the integers that map its rows; what a View is, without integers.
template <class V>
struct MatmulSide {
  using Matrix   = V;
  using Integers = NoView;
  static const V& matrix(const V& view) { return view; }
  static NoView integers(const V&) { return {}; }
};
template <class V, class I>
struct MatmulSide<GatheredRows<V, I>> {
  using Matrix   = V;
  using Integers = I;
  static const V& matrix(const GatheredRows<V, I>& side) { return side.a; }
  static const I& integers(const GatheredRows<V, I>& side) { return side.rows; }
};
template <class V, class I>
struct MatmulSide<SummedRows<V, I>> {
  using Matrix   = V;
  using Integers = I;
  static const V& matrix(const SummedRows<V, I>& side) { return side.c; }
  static const I& integers(const SummedRows<V, I>& side) { return side.row_offsets; }
};
template <class Side>
using MatrixOf = typename MatmulSide<Side>::Matrix;

template <class ASide, class CSide>
inline constexpr MatmulRows matmul_rows = are_summed_rows<CSide>     ? MatmulRows::summed
                                          : are_gathered_rows<ASide> ? MatmulRows::gathered
                                                                     : MatmulRows::own;

/// Integers that map rows, if there are any.
template <class Exec, class Side>
constexpr void check_row_map() {
  using I = typename MatmulSide<Side>::Integers;
  if constexpr (is_given<I>) {
    static_assert(I::rank() == 1 && holds_integers<I>,
                  "KokkosNN::matmul: rows and row_offsets must have rank 1 and hold integers");
    static_assert(MatrixOf<Side>::rank() == 2, "KokkosNN::matmul: with rows or row_offsets matrices must have rank 2");
    static_assert(can_access<Exec, I>,
                  "KokkosNN::matmul: the execution space must be able to access the memory of rows and row_offsets");
  }
}

template <class Exec, class ASide, class BView, class CSide, class... In>
constexpr void check_matmul() {
  using AView = MatrixOf<ASide>;
  using CView = MatrixOf<CSide>;
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
  check_row_map<Exec, ASide>();
  check_row_map<Exec, CSide>();
}

/// Enqueues a checked product: run(arguments).
template <class Options, class Run>
void run_matmul(const MatmulOperands& operands, MatmulLayout layout, const Options& options, const Run& run) {
  if (!layout.writes()) return;
  if (options.alpha == 0) {  // neither a nor b is read
    layout.inner       = 0;
    layout.maps.index  = {};
    layout.maps.a_rows = layout.rows;
  }
  run(MatmulArguments{operands, layout, options});
}

/// Checks and enqueues a product: run(arguments).
template <class Options, class Run, class ASide, class BView, class CSide, class... In>
void matmul_call(const Options& options, const Run& run, const ASide& a, const BView& b, const CSide& c,
                 const In&... inputs) {
  const Kokkos::Profiling::ScopedRegion region("KokkosNN::matmul");
  MatmulOperands operands{"matmul", 0, {}, {}};
  const auto add = [&](const char* name, const Tensor& tensor) {
    operands.name[operands.count]     = name;
    operands.tensor[operands.count++] = tensor;
  };
  add("c", tensor_of(MatmulSide<CSide>::matrix(c)));
  add("a", tensor_of(MatmulSide<ASide>::matrix(a)));
  add("b", tensor_of(b));
  (add(input_names[operands.count - MatmulTensors::inputs], tensor_of(inputs)), ...);
  operands.rows        = tensor_of(MatmulSide<ASide>::integers(a));
  operands.row_offsets = tensor_of(MatmulSide<CSide>::integers(c));
  run_matmul(operands, normalise(operands), options, run);
}

/// A product without an epilogue.
template <class Exec, class Options, class ASide, class BView, class CSide>
void call_matmul(const Exec& exec, const Options& options, const ASide& a, const BView& b, const CSide& c) {
  check_matmul<Exec, ASide, BView, CSide>();
  using AView = MatrixOf<ASide>;
  using CView = MatrixOf<CSide>;
  using T     = ElementOf<AView>;
  matmul_call(
      options,
      [&](const MatmulArguments& call) {
        if constexpr (hold_one_type<AView, CView>) {
          MatmulCall<Exec, T>::run(exec, call);
        } else {
          require_own(call.operands.function, call.options);
          using A = elementwise_accumulator<AView, CView>;
          MatmulLaunch<Exec, T, MatmulResult, A, ElementOf<CView>, ElementTypes<>, matmul_rows<ASide, CSide>>::run(
              exec, call, MatmulResult{});
        }
      },
      a, b, c);
}

/// A product with a user's functor for an epilogue.
template <class Exec, class Options, class ASide, class BView, class CSide, class F, class... In>
void call_matmul_with_epilogue(const Exec& exec, const Options& options, const ASide& a, const BView& b, const CSide& c,
                               const F& f, const In&... inputs) {
  check_matmul<Exec, ASide, BView, CSide, In...>();
  using AView = MatrixOf<ASide>;
  using CView = MatrixOf<CSide>;
  using A     = elementwise_accumulator<AView, CView, In...>;
  static_assert(std::is_invocable_v<const F&, A, Repeated<sizeof(In), A>...>,
                "KokkosNN::matmul: the epilogue must be callable, as const, with a number and one for each input");
  matmul_call(
      options,
      [&](const MatmulArguments& call) {
        require_own(call.operands.function, call.options);
        MatmulLaunch<Exec, ElementOf<AView>, F, A, ElementOf<CView>, ElementTypes<ElementOf<In>...>,
                     matmul_rows<ASide, CSide>>::run(exec, call, f);
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
