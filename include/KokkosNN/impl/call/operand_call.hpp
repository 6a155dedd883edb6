// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_OPERAND_CALL_HPP
#define KOKKOSNN_IMPL_CALL_OPERAND_CALL_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/instantiations/norm.hpp>
#include <KokkosNN/impl/call/call.hpp>
#include <KokkosNN/impl/call/compiled_calls.hpp>
#include <KokkosNN/impl/call/optional_view.hpp>
#include <KokkosNN/options.hpp>
#include <KokkosNN/plan.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <tuple>
#include <type_traits>

// The body of a normalisation: check what the compiler can see, normalise, plan, launch.

namespace KokkosNN::Impl {

/// A View of the call's memory, or NoView where that is allowed.
template <class Exec, class V>
inline constexpr bool can_access_if_given = []() -> bool {
  if constexpr (is_given<V>) return Kokkos::SpaceAccessibility<Exec, typename V::memory_space>::accessible;
  return true;
}();

/// The Views of an operator that is a struct: tuples of the row inputs, of the operands of one element a column, of the
/// values of each row, and of further results: a sum of the row inputs, or gradients of columns. Those of columns and
/// values that the operator does not read may be NoView.
template <RowOperator row_operator, class Rows, class Output, class Columns, class Values, class Results>
struct OperandViews {
  using T                            = typename Output::non_const_value_type;
  using A                            = accumulator_t<T>;
  using Options                      = typename OptionsOf<row_operator>::type;
  static constexpr RowOperator op    = row_operator;
  static constexpr bool reads_values = is_gradient(op);
  template <class Exec>
  using Call = OperandCall<Exec, op, T>;

  /// Checks everything that the compiler can see of a call.
  template <class Exec>
  static constexpr void check() {
    static_assert(Concepts::Element<T>, "KokkosNN norms: rows must hold double, float, half_t or bhalf_t");
    static_assert(!std::is_const_v<typename Output::value_type>, "KokkosNN norms: the output must not be const");
    static_assert(Output::rank() >= 1, "KokkosNN norms: rows must have rank 1 to 8");
    static_assert(can_access_if_given<Exec, Output>,
                  "KokkosNN norms: the execution space must be able to access the output");
    check_rows<Exec>(static_cast<const Rows*>(nullptr));
    check_columns<Exec>(static_cast<const Columns*>(nullptr));
    check_values<Exec>(static_cast<const Values*>(nullptr));
    check_results<Exec>(static_cast<const Results*>(nullptr));
  }

  /// Tensors in the order of `operands_of`: the output is number 1.
  static Tensors tensors(const Rows& rows, const Output& output, const Columns& columns, const Values& values,
                         const Results& results) {
    Tensors all;
    int next       = 0;
    const auto add = [&](const auto& view) {
      all[next] = tensor_of(view);
      next += next == 0 ? 2 : 1;
    };
    for_each(rows, add);
    all[1] = tensor_of(output);
    for_each(columns, add);
    for_each(values, add);
    for_each(results, add);
    return all;
  }

 private:
  template <class Tuple, class F>
  static void for_each(const Tuple& views, const F& f) {
    std::apply([&](const auto&... view) { (f(view), ...); }, views);
  }

  template <class Exec, class... Vs>
  static constexpr void check_rows(const std::tuple<Vs...>*) {
    static_assert((... && std::is_same_v<typename Vs::non_const_value_type, T>),
                  "KokkosNN norms: x, y, dy, dx, residual, sum and dsum must hold the same type");
    static_assert((... && (Vs::rank() == Output::rank())),
                  "KokkosNN norms: x, y, dy, dx, residual, sum and dsum must have the same rank");
    static_assert((... && can_access_if_given<Exec, Vs>),
                  "KokkosNN norms: the execution space must be able to access the memory of x, dy, residual and dsum");
  }

  template <class V>
  static constexpr bool is_column_operand = []() -> bool {
    if constexpr (is_given<V>) {
      using E = typename V::non_const_value_type;
      return V::rank() == 1 && (std::is_same_v<E, T> || std::is_same_v<E, A>);
    }
    return true;
  }();
  template <class Exec, class... Vs>
  static constexpr void check_columns(const std::tuple<Vs...>*) {
    static_assert(
        (... && is_column_operand<Vs>),
        "KokkosNN norms: weight and bias must have rank 1 and hold the rows' type, or float if that has 16 bits");
    static_assert((... && can_access_if_given<Exec, Vs>),
                  "KokkosNN norms: the execution space must be able to access the memory of weight and bias");
  }

  template <class V>
  static constexpr bool is_row_value = []() -> bool {
    if constexpr (is_given<V>) {
      return V::rank() + 1 == Output::rank() && std::is_same_v<typename V::non_const_value_type, A> &&
             (reads_values || !std::is_const_v<typename V::value_type>);
    }
    return !reads_values;
  }();
  template <class Exec, class... Vs>
  static constexpr void check_values(const std::tuple<Vs...>*) {
    static_assert((... && is_row_value<Vs>),
                  "KokkosNN norms: mean and rstd must have one axis less than x and hold double if x does, else float");
    static_assert((... && can_access_if_given<Exec, Vs>),
                  "KokkosNN norms: the execution space must be able to access the memory of mean and rstd");
  }

  template <class V>
  static constexpr bool is_column_result = []() -> bool {
    if constexpr (is_given<V>) return is_column_operand<V> && !std::is_const_v<typename V::value_type>;
    return true;
  }();
  /// A sum, which has rows.
  template <class Exec, class Sum>
    requires(written_tensors(row_operator) == 2)
  static constexpr void check_results(const std::tuple<Sum>* sum) {
    check_rows<Exec>(sum);
    static_assert(!std::is_const_v<typename Sum::value_type>, "KokkosNN norms: sum must not be const");
  }
  template <class Exec, class... Vs>
  static constexpr void check_results(const std::tuple<Vs...>*) {
    static_assert((... && is_column_result<Vs>),
                  "KokkosNN norms: dweight and dbias must have rank 1, not be const, and hold the rows' type, or float "
                  "if that has 16 bits");
    static_assert((... && can_access_if_given<Exec, Vs>),
                  "KokkosNN norms: the execution space must be able to access the memory of dweight and dbias");
  }
};

/// The body of a public function; Views by their kind, each kind a tuple.
template <RowOperator op, class Exec, class Options, class Rows, class Output, class Columns, class Values,
          class Results = std::tuple<>>
void operand_call(const Exec& exec, const Options& options, const Rows& rows, const Output& output,
                  const Columns& columns, const Values& values, const Results& results = {}) {
  call<OperandViews<op, Rows, Output, Columns, Values, Results>>(exec, options, rows, output, columns, values, results);
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_OPERAND_CALL_HPP
