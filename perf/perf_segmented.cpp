// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "provider.hpp"

#include <KokkosNN/segmented.hpp>

#include <stdexcept>

namespace KokkosNN::Perf {
namespace {

template <class T>
Contender call(const Problem& problem) {
  const Exec exec      = problem.exec();
  const auto x         = problem.x_values<const T>();
  const auto dy        = problem.dy_values<const T>();
  const auto y         = problem.y_values<T>();
  const auto offsets   = problem.offsets();
  const char* plan     = "chunks of the values";
  const RowOperator op = problem.shape().op;
  if (op == RowOperator::softmax) return {.call = [=] { segmented_softmax(exec, x, offsets, y); }, .plan = plan};
  if (op == RowOperator::log_softmax)
    return {.call = [=] { segmented_log_softmax(exec, x, offsets, y); }, .plan = plan};
  if (op == RowOperator::logsumexp) return {.call = [=] { segmented_logsumexp(exec, x, offsets, y); }, .plan = plan};
  if (op == RowOperator::softmax_backward)
    return {.call = [=] { segmented_softmax_backward(exec, x, dy, offsets, y); }, .plan = plan};
  if (op == RowOperator::log_softmax_backward)
    return {.call = [=] { segmented_log_softmax_backward(exec, x, dy, offsets, y); }, .plan = plan};
  throw std::logic_error("KokkosNN::Perf: perf_segmented.cpp has no " + problem.shape().name());
}

}  // namespace

Contender make_segmented(const Problem& problem, RowStrategy strategy) {
  if (strategy != RowStrategy::automatic) throw std::invalid_argument("ragged rows know no strategies");
  if (problem.shape().x_type == ElementType::f32) return call<float>(problem);
  if (problem.shape().x_type == ElementType::bf16) return call<bhalf_t>(problem);
  throw std::logic_error("KokkosNN::Perf: perf_segmented.cpp instantiates no " + problem.shape().name());
}

}  // namespace KokkosNN::Perf
