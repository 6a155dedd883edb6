// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_OPERAND_CALL_HPP
#define KOKKOSNN_IMPL_CALL_OPERAND_CALL_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/instantiations/norm.hpp>
#include <KokkosNN/impl/call/optional_view.hpp>
#include <KokkosNN/impl/call/operand_launch.hpp>
#include <KokkosNN/options.hpp>
#include <KokkosNN/plan.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <vector>

// The body of a normalisation: check what the compiler can see, normalise, plan, launch.

namespace KokkosNN::Impl {

/// The constants of an operator's rows, from the options of its call.
template <class A>
RmsNormParams<A> params_of(const char* function, const RmsNormOptions& options) {
  validate_number(function, "epsilon", options.epsilon, false);
  validate_number(function, "weight_offset", options.weight_offset, true);
  return RmsNormParams<A>(options.epsilon, options.weight_offset);
}
template <class A>
LayerNormParams<A> params_of(const char* function, const LayerNormOptions& options) {
  validate_number(function, "epsilon", options.epsilon, false);
  return LayerNormParams<A>(options.epsilon);
}

/// A View of the call's memory, or NoView where that is allowed.
template <class Exec, class V>
inline constexpr bool can_access_if_given = []() -> bool {
  if constexpr (is_given<V>) return Kokkos::SpaceAccessibility<Exec, typename V::memory_space>::accessible;
  return true;
}();

/// The Views of a normalisation: tuples of the row inputs, of the operands of one element a column, and of the values of
/// each row; those of the last two may be NoView, but for values that the operator reads.
template <RowOperator op, class Rows, class Output, class Columns, class Values>
struct OperandViews {
  using T        = typename Output::non_const_value_type;
  using A        = accumulator_t<T>;
  using Operator = typename OperatorFor<op, A>::type;
  static constexpr bool reads_values = Operator::row_scalars > 0;

  Rows rows;
  Output output;
  Columns columns;
  Values values;

  /// What the compiler can see of a call.
  template <class Exec>
  static constexpr void check() {
    static_assert(Concepts::Element<T>, "KokkosNN norms: rows must hold double, float, half_t or bhalf_t");
    static_assert(!std::is_const_v<typename Output::value_type>, "KokkosNN norms: the output must not be const");
    static_assert(Output::rank() >= 1, "KokkosNN norms: rows must have rank 1 to 8");
    static_assert(can_access_if_given<Exec, Output>, "KokkosNN norms: the execution space must be able to access the output");
    check_rows<Exec>(static_cast<const Rows*>(nullptr));
    check_columns<Exec>(static_cast<const Columns*>(nullptr));
    check_values<Exec>(static_cast<const Values*>(nullptr));
  }

  /// In the order of OperandCall's numbers.
  std::vector<OperandTensor> tensors() const {
    constexpr const char* row_names[]    = {"x", "dy"};
    constexpr const char* column_names[] = {"weight", "bias"};
    constexpr const char* value_names[]  = {"mean", "rstd"};
    constexpr int first_value            = 2 - static_cast<int>(std::tuple_size_v<Values>);
    std::vector<OperandTensor> all;
    const auto add = [&](const char* name, const Tensor& tensor, OperandExtents extents, bool is_output) {
      all.push_back({name, tensor, extents, is_output});
    };
    for_each(rows, [&](const auto& view, int i) { add(row_names[i], tensor_of(view), OperandExtents::rows, false); });
    all.insert(all.begin() + 1, {is_gradient(op) ? "dx" : "y", tensor_of(output), OperandExtents::rows, true});
    for_each(columns, [&](const auto& view, int i) {
      add(column_names[i], tensor_of(view), OperandExtents::columns, false);
    });
    for_each(values, [&](const auto& view, int i) {
      add(value_names[first_value + i], tensor_of(view), OperandExtents::row_values, !reads_values);
    });
    return all;
  }

  OperandPointers<Operator, T> pointers(const OperandLayout& layout, const typename Operator::Params& own) const {
    using Call = OperandCall<Kokkos::DefaultExecutionSpace, op, T>;
    OperandPointers<Operator, T> data;
    data.output = output.data();
    for_each(rows, [&](const auto& view, int i) { data.input[i] = view.data(); });
    for_each(columns, [&](const auto& view, int i) {
      using View = std::decay_t<decltype(view)>;
      constexpr bool is_float = std::is_same_v<typename ValueIfGiven<View, T>::type, float>;
      data.columns[i] = {{tensor_of(view).data, is_float}, layout.col_stride[Call::column(i)], own.missing(i)};
    });
    for_each(values, [&](const auto& view, int i) {
      if constexpr (reads_values) {
        data.scalars[i] = view.data();
      } else {
        data.values[i] = static_cast<A*>(const_cast<void*>(tensor_of(view).data));
      }
    });
    return data;
  }

 private:
  template <class Tuple, class F>
  static void for_each(const Tuple& views, const F& f) {
    int i = 0;
    std::apply([&](const auto&... view) { (f(view, i++), ...); }, views);
  }

  template <class Exec, class... Vs>
  static constexpr void check_rows(const std::tuple<Vs...>*) {
    static_assert((... && std::is_same_v<typename Vs::non_const_value_type, T>),
                  "KokkosNN norms: x, y, dy and dx must hold the same type");
    static_assert((... && (Vs::rank() == Output::rank())), "KokkosNN norms: x, y, dy and dx must have the same rank");
    static_assert((... && can_access_if_given<Exec, Vs>),
                  "KokkosNN norms: the execution space must be able to access the memory of x and dy");
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
    static_assert((... && is_column_operand<Vs>),
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
};

template <RowOperator op, class Rows, class Output, class Columns, class Values>
auto operand_views(const Rows& rows, const Output& output, const Columns& columns, const Values& values) {
  return OperandViews<op, Rows, Output, Columns, Values>{rows, output, columns, values};
}

template <RowOperator op, class T, class Exec, class Options>
RowPlan plan_operands(const Exec& exec, const OperandLayout& layout, const Options& options) {
  RowProblem problem;
  problem.op     = op;
  problem.x_type = problem.y_type = problem.dy_type = element_type<T>();
  problem.x_bytes = problem.y_bytes = sizeof(T);
  problem.accumulator_bytes         = sizeof(accumulator_t<T>);
  problem.rows                      = layout.rows;
  problem.cols                      = layout.cols;
  problem.x_col_stride              = layout.col_stride[0];
  problem.y_col_stride              = layout.col_stride[1];
  problem.inner                     = layout.inner();
  problem.inner_contiguous          = layout.inner_contiguous();
  problem.form                      = layout.form;
  SoftmaxOptions planning;
  planning.determinism = options.determinism;
  planning.plan        = options.plan;
  return make_plan(problem, device_traits(exec), planning);
}

template <RowOperator op, class Exec, class Options, class... Parts>
void operand_call(const Exec& exec, const Options& options, const OperandViews<op, Parts...>& views) {
  using Views = OperandViews<op, Parts...>;
  Views::template check<Exec>();
  const char* const function = to_string(op);
  const auto own             = params_of<typename Views::A>(function, options);
  const auto layout          = normalise_operands(function, options.axis, views.tensors());
  if (layout.rows == 0 || layout.cols == 0) return;
  const RowPlan plan = plan_operands<op, typename Views::T>(exec, layout, options);
  OperandCall<Exec, op, typename Views::T>::run(exec, plan, layout, own, views.pointers(layout, own), nullptr);
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_OPERAND_CALL_HPP
