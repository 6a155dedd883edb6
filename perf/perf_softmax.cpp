// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "provider.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <type_traits>

namespace KokkosNN::Perf {
namespace {

/// A user's call, options and all: what is measured is what a user gets.
template <class X, class Y>
Contender softmax_call(const Exec& exec, const X& x, const Y& y, const SoftmaxOptions& options) {
  return {.call = [=] { KokkosNN::softmax(exec, x, y, options); },
          .plan = to_string(make_plan(RowOperator::softmax, exec, x, y, options))};
}

template <class X, class Y, class ViewLayout = Kokkos::LayoutRight>
Contender softmax_call(const Problem& problem, const SoftmaxOptions& options) {
  return softmax_call(problem.exec(), problem.x<const X, ViewLayout>(), problem.y<Y, ViewLayout>(), options);
}

Contender softmax_call(const Problem& problem, const SoftmaxOptions& options) {
  const Case& shape = problem.shape();
  const auto is     = [&](ElementType x, ElementType y) { return shape.x_type == x && shape.y_type == y; };
  if (shape.layout == Layout::left && is(ElementType::f32, ElementType::f32))
    return softmax_call<float, float, Kokkos::LayoutLeft>(problem, options);
  if (shape.layout == Layout::left && is(ElementType::bf16, ElementType::bf16))
    return softmax_call<bhalf_t, bhalf_t, Kokkos::LayoutLeft>(problem, options);
  if (shape.layout == Layout::right) {
    if (is(ElementType::f32, ElementType::f32)) return softmax_call<float, float>(problem, options);
    if (is(ElementType::f64, ElementType::f64)) return softmax_call<double, double>(problem, options);
    if (is(ElementType::f16, ElementType::f16)) return softmax_call<half_t, half_t>(problem, options);
    if (is(ElementType::bf16, ElementType::bf16)) return softmax_call<bhalf_t, bhalf_t>(problem, options);
    if (is(ElementType::f32, ElementType::bf16)) return softmax_call<float, bhalf_t>(problem, options);
    if (is(ElementType::bf16, ElementType::f32)) return softmax_call<bhalf_t, float>(problem, options);
  }
  // logic_error: an invalid_argument would read as "this strategy can't serve"
  throw std::logic_error("KokkosNN::Perf: perf_softmax.cpp instantiates no softmax of " + shape.name());
}

template <class T, class ViewLayout = Kokkos::LayoutRight>
Contender log_softmax_call(const Problem& problem, const SoftmaxOptions& options) {
  const Exec exec = problem.exec();
  const auto x    = problem.x<const T, ViewLayout>();
  const auto y    = problem.y<T, ViewLayout>();
  return {.call = [=] { KokkosNN::log_softmax(exec, x, y, options); },
          .plan = to_string(make_plan(RowOperator::log_softmax, exec, x, y, options))};
}

Contender log_softmax_call(const Problem& problem, const SoftmaxOptions& options) {
  const Case& shape = problem.shape();
  if (shape.layout == Layout::left && shape.x_type == ElementType::f32)
    return log_softmax_call<float, Kokkos::LayoutLeft>(problem, options);
  if (shape.layout == Layout::right) {
    if (shape.x_type == ElementType::f32) return log_softmax_call<float>(problem, options);
    if (shape.x_type == ElementType::f16) return log_softmax_call<half_t>(problem, options);
    if (shape.x_type == ElementType::bf16) return log_softmax_call<bhalf_t>(problem, options);
  }
  throw std::logic_error("KokkosNN::Perf: perf_softmax.cpp instantiates no log-softmax of " + shape.name());
}

Contender logsumexp_call(const Problem& problem, const SoftmaxOptions& options) {
  const Exec exec = problem.exec();
  const auto x    = problem.x<const float>();
  const auto lse  = problem.y_vector<float>();
  return {.call = [=] { KokkosNN::logsumexp(exec, x, lse, options); },
          .plan = to_string(make_plan(RowOperator::logsumexp, exec, x, lse, options))};
}

template <class T, class ViewLayout = Kokkos::LayoutRight>
Contender gradient_call(const Problem& problem, RowOperator op, const SoftmaxOptions& options) {
  const Exec exec = problem.exec();
  const auto y    = problem.x<const T, ViewLayout>();
  const auto dy   = problem.dy<const T, ViewLayout>();
  const auto dx   = problem.y<T, ViewLayout>();
  const auto plan = to_string(make_plan(op, exec, y, dy, dx, options));
  if (op == RowOperator::softmax_backward) {
    return {.call = [=] { KokkosNN::softmax_backward(exec, y, dy, dx, options); }, .plan = plan};
  }
  return {.call = [=] { KokkosNN::log_softmax_backward(exec, y, dy, dx, options); }, .plan = plan};
}

Contender gradient_call(const Problem& problem, const SoftmaxOptions& options) {
  const Case& shape = problem.shape();
  if (shape.layout == Layout::left && shape.x_type == ElementType::f32)
    return gradient_call<float, Kokkos::LayoutLeft>(problem, shape.op, options);
  if (shape.layout == Layout::right) {
    if (shape.x_type == ElementType::f32) return gradient_call<float>(problem, shape.op, options);
    if (shape.x_type == ElementType::f16) return gradient_call<half_t>(problem, shape.op, options);
    if (shape.x_type == ElementType::bf16) return gradient_call<bhalf_t>(problem, shape.op, options);
  }
  throw std::logic_error("KokkosNN::Perf: perf_softmax.cpp instantiates no gradient of " + shape.name());
}

template <class T, class M>
Contender masked_call(const Problem& problem, const M& mask, RowStrategy strategy) {
  const Exec exec = problem.exec();
  const auto x    = problem.by_head(problem.x<const T>());
  const auto y    = problem.by_head(problem.y<T>());
  const MaskedSoftmaxOptions options{.scale = mask_scale, .plan = {.strategy = strategy}};
  return {.call = [=] { KokkosNN::masked_softmax(exec, x, mask, y, options); },
          .plan = to_string(make_plan(exec, x, mask, y, options))};
}

template <class T>
Contender masked_call(const Problem& problem, RowStrategy strategy) {
  switch (problem.shape().mask) {
    case MaskKind::lengths:
      return masked_call<T>(problem, RowLengths{problem.lengths()}, strategy);
    case MaskKind::bias:
      return masked_call<T>(problem, AdditiveBias{problem.bias()}, strategy);
    case MaskKind::none:
    case MaskKind::causal:
      break;
  }
  return masked_call<T>(problem, CausalMask{}, strategy);
}

Contender masked_call(const Problem& problem, RowStrategy strategy) {
  if (problem.shape().x_type == ElementType::f32) return masked_call<float>(problem, strategy);
  if (problem.shape().x_type == ElementType::bf16) return masked_call<bhalf_t>(problem, strategy);
  throw std::logic_error("KokkosNN::Perf: perf_softmax.cpp instantiates no masked softmax of " +
                         problem.shape().name());
}

/// Each row's loss; or the mean, and its gradient over the logits.
template <class T>
Contender cross_entropy_call(const Problem& problem, RowStrategy strategy) {
  const Exec exec   = problem.exec();
  const auto labels = problem.labels();
  if (problem.shape().op == RowOperator::cross_entropy) {
    const CrossEntropyOptions options{.reduction = Reduction::none, .plan = {.strategy = strategy}};
    const auto x    = problem.x<const T>();
    const auto loss = problem.y_vector<float>();
    return {.call = [=] { KokkosNN::cross_entropy(exec, x, labels, loss, options); },
            .plan = to_string(make_cross_entropy_plan(problem.shape().op, exec, x, labels, loss, no_view, options))};
  }
  const CrossEntropyOptions options{.plan = {.strategy = strategy}};
  const auto x    = problem.y<T>();
  const auto loss = problem.loss();
  return {.call = [=] { KokkosNN::cross_entropy_with_gradient(exec, x, labels, loss, x, options); },
          .plan = to_string(make_cross_entropy_plan(problem.shape().op, exec, x, labels, loss, x, options))};
}

Contender cross_entropy_call(const Problem& problem, RowStrategy strategy) {
  const Case& shape = problem.shape();
  if (shape.x_type == ElementType::f32) return cross_entropy_call<float>(problem, strategy);
  if (shape.x_type == ElementType::bf16) return cross_entropy_call<bhalf_t>(problem, strategy);
  throw std::logic_error("KokkosNN::Perf: perf_softmax.cpp instantiates no cross entropy of " + shape.name());
}

}  // namespace

Contender make_kokkosnn(const Problem& problem, RowStrategy strategy) {
  if (problem.shape().rope != RopeKind::none) return make_rope(problem);
  if (!problem.shape().is_of_rows()) return make_elementwise(problem, strategy);
  if (is_ragged(problem.shape().layout)) return make_segmented(problem, strategy);
  if (is_norm(problem.shape().op)) return make_norm(problem, strategy);
  const Case& shape   = problem.shape();
  const bool is_right = shape.layout == Layout::right;  // alone of most operators
  const SoftmaxOptions options{.plan = {.strategy = strategy}};
  const OperatorTraits& traits = traits_of(shape.op);
  if (shape.op == RowOperator::softmax) return softmax_call(problem, options);
  if (shape.op == RowOperator::log_softmax) return log_softmax_call(problem, options);
  if (traits.family == OperatorFamily::gradient) return gradient_call(problem, options);
  if (shape.op == RowOperator::logsumexp && is_right) return logsumexp_call(problem, options);
  if (traits.family == OperatorFamily::masked && is_right) return masked_call(problem, strategy);
  if (is_cross_entropy(shape.op) && !is_elementwise(shape.op) && is_right) return cross_entropy_call(problem, strategy);
  throw std::logic_error("KokkosNN::Perf: perf_softmax.cpp instantiates no " + shape.name());
}

}  // namespace KokkosNN::Perf
