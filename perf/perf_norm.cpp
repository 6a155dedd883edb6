// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "provider.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <Kokkos_Core.hpp>

#include <tuple>

namespace KokkosNN::Perf {
namespace {

/// Operands of a norm besides the rows. Each has one element a column, or a row.
template <class T>
struct NormOperands {
  using A = accumulator_t<T>;
  Kokkos::View<T*, Exec> weight, bias, dweight, dbias;
  Kokkos::View<A*, Exec> mean, rstd;

  explicit NormOperands(const Problem& problem)
      : weight(of_columns(problem)),
        bias(of_columns(problem)),
        dweight(of_columns(problem)),
        dbias(of_columns(problem)),
        mean(Kokkos::view_alloc(problem.exec(), "KokkosNN::Perf::mean"), problem.shape().rows),
        rstd(Kokkos::view_alloc(problem.exec(), "KokkosNN::Perf::rstd"), problem.shape().rows) {
    fill(problem.exec());
  }

  /// Public as it holds a device lambda.
  void fill(const Exec& exec) const {
    const auto to_weight = weight, to_bias = bias;
    Kokkos::parallel_for(
        "KokkosNN::Perf::fill", Kokkos::RangePolicy<Exec>(exec, 0, weight.extent(0)),
        KOKKOS_LAMBDA(const std::int64_t column) {
          to_weight(column) = static_cast<T>(norm_weight(column));
          to_bias(column)   = static_cast<T>(norm_bias(column));
        });
  }

 private:
  static Kokkos::View<T*, Exec> of_columns(const Problem& problem) {
    return Kokkos::View<T*, Exec>(Kokkos::view_alloc(problem.exec(), "KokkosNN::Perf::columns"), problem.shape().cols);
  }
};

/// The label of the plan of rows; sums of weights' gradients have kernels of their own besides.
template <RowOperator op, class Options, class Rows, class Output, class Columns, class Values>
std::string plan_of(const Exec& exec, const Options& options, const Rows& rows, const Output& output,
                    const Columns& columns, const Values& values) {
  using Views = Impl::OperandViews<op, Rows, Output, Columns, Values, std::tuple<>>;
  return to_string(Impl::plan_of(op, exec, Views::tensors(rows, output, columns, values, {}), options));
}

template <class T>
Contender rms_norm_call(const Problem& problem, RowStrategy strategy) {
  const Exec exec = problem.exec();
  const auto x    = problem.x<const T>();
  const auto y    = problem.y<T>();
  const NormOperands<T> with(problem);
  const RmsNormOptions options{.plan = {.strategy = strategy}};
  return {.call = [=] { rms_norm(exec, x, with.weight, y, with.rstd, options); },
          .plan = plan_of<RowOperator::rms_norm>(exec, options, std::tuple(x), y, std::tuple(with.weight),
                                                 std::tuple(with.rstd))};
}

template <class T>
Contender layer_norm_call(const Problem& problem, RowStrategy strategy) {
  const Exec exec = problem.exec();
  const auto x    = problem.x<const T>();
  const auto y    = problem.y<T>();
  const NormOperands<T> with(problem);
  const LayerNormOptions options{.plan = {.strategy = strategy}};
  return {.call = [=] { layer_norm(exec, x, with.weight, with.bias, y, with.mean, with.rstd, options); },
          .plan = plan_of<RowOperator::layer_norm>(exec, options, std::tuple(x), y, std::tuple(with.weight, with.bias),
                                                   std::tuple(with.mean, with.rstd))};
}

template <class T>
Contender rms_norm_backward_call(const Problem& problem, RowStrategy strategy) {
  const Exec exec = problem.exec();
  const auto x    = problem.x<const T>();
  const auto dy   = problem.dy<const T>();
  const auto dx   = problem.y<T>();
  const NormOperands<T> with(problem);
  rms_norm(exec, x, with.weight, dx, with.rstd);
  const RmsNormOptions options{.plan = {.strategy = strategy}};
  return {.call = [=] { rms_norm_backward(exec, x, with.weight, with.rstd, dy, dx, with.dweight, options); },
          .plan = plan_of<RowOperator::rms_norm_backward>(exec, options, std::tuple(x, dy), dx, std::tuple(with.weight),
                                                          std::tuple(with.rstd))};
}

template <class T>
Contender layer_norm_backward_call(const Problem& problem, RowStrategy strategy) {
  const Exec exec = problem.exec();
  const auto x    = problem.x<const T>();
  const auto dy   = problem.dy<const T>();
  const auto dx   = problem.y<T>();
  const NormOperands<T> with(problem);
  layer_norm(exec, x, with.weight, with.bias, dx, with.mean, with.rstd);
  const LayerNormOptions options{.plan = {.strategy = strategy}};
  return {
      .call =
          [=] {
            layer_norm_backward(exec, x, with.weight, with.mean, with.rstd, dy, dx, with.dweight, with.dbias, options);
          },
      .plan = plan_of<RowOperator::layer_norm_backward>(exec, options, std::tuple(x, dy), dx, std::tuple(with.weight),
                                                        std::tuple(with.mean, with.rstd))};
}

template <class T>
Contender norm_call(const Problem& problem, RowStrategy strategy) {
  const RowOperator op = problem.shape().op;
  if (op == RowOperator::rms_norm) return rms_norm_call<T>(problem, strategy);
  if (op == RowOperator::layer_norm) return layer_norm_call<T>(problem, strategy);
  if (op == RowOperator::rms_norm_backward) return rms_norm_backward_call<T>(problem, strategy);
  if (op == RowOperator::layer_norm_backward) return layer_norm_backward_call<T>(problem, strategy);
  throw std::logic_error("KokkosNN::Perf: perf_norm.cpp instantiates no " + problem.shape().name());
}

}  // namespace

Contender make_norm(const Problem& problem, RowStrategy strategy) {
  const Case& shape = problem.shape();
  if (shape.layout == Layout::right && shape.x_type == shape.y_type) {
    if (shape.x_type == ElementType::f32) return norm_call<float>(problem, strategy);
    if (shape.x_type == ElementType::bf16) return norm_call<bhalf_t>(problem, strategy);
  }
  throw std::logic_error("KokkosNN::Perf: perf_norm.cpp instantiates no " + shape.name());
}

}  // namespace KokkosNN::Perf
