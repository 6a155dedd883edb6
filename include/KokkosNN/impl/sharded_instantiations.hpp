// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_SHARDED_INSTANTIATIONS_HPP
#define KOKKOSNN_IMPL_SHARDED_INSTANTIATIONS_HPP

#include <KokkosNN/impl/sharded_launch.hpp>

#include <Kokkos_Core.hpp>

// The calls on shards that KokkosNN::mpi holds compiled: tensors of one type, log-sum-exps of the accumulator type.
// src/mpi/instantiate_*.cpp define them.

#define KOKKOSNN_IMPL_SHARDED_CALLS(KEYWORD, T)                                                                       \
  KEYWORD template struct ShardedReduction<Kokkos::DefaultExecutionSpace, T, accumulator_t<T>, exp_accuracy_for<T>>;  \
  KEYWORD template struct ShardedFinish<Kokkos::DefaultExecutionSpace, RowOperator::softmax, T, T>;                   \
  KEYWORD template struct ShardedFinish<Kokkos::DefaultExecutionSpace, RowOperator::log_softmax, T, T>;               \
  KEYWORD template struct ShardedFinish<Kokkos::DefaultExecutionSpace, RowOperator::logsumexp, T, accumulator_t<T>>;  \
  KEYWORD template struct ShardedGradient<Kokkos::DefaultExecutionSpace, RowOperator::softmax_backward, T, T, T>;     \
  KEYWORD template struct ShardedGradient<Kokkos::DefaultExecutionSpace, RowOperator::log_softmax_backward, T, T, T>; \
  KEYWORD template struct ShardedCrossEntropy<Kokkos::DefaultExecutionSpace, T>;

/// A 16-bit type's log-sum-exps in float want better exponentials than its softmax.
#define KOKKOSNN_IMPL_SHARDED_LOGSUMEXP(KEYWORD, T) \
  KEYWORD template struct ShardedReduction<Kokkos::DefaultExecutionSpace, T, float, ExpAccuracy::full>;

namespace KokkosNN::Impl {

KOKKOSNN_IMPL_SHARDED_CALLS(extern, double)
KOKKOSNN_IMPL_SHARDED_CALLS(extern, float)
KOKKOSNN_IMPL_SHARDED_CALLS(extern, half_t)
KOKKOSNN_IMPL_SHARDED_LOGSUMEXP(extern, half_t)
KOKKOSNN_IMPL_SHARDED_CALLS(extern, bhalf_t)
KOKKOSNN_IMPL_SHARDED_LOGSUMEXP(extern, bhalf_t)

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_SHARDED_INSTANTIATIONS_HPP
