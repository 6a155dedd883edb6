// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_MPI_INSTANTIATIONS_HPP
#define KOKKOSNN_IMPL_MPI_INSTANTIATIONS_HPP

#include <KokkosNN/impl/mpi/launch.hpp>
#include <KokkosNN/mpi_export.hpp>

#include <Kokkos_Core.hpp>

// Calls on shards that are compiled into KokkosNN::mpi: tensors of one type, log-sum-exps of the accumulator type.
// src/mpi/instantiate_*.cpp define them.

#define KOKKOSNN_IMPL_SHARDED_CALLS(STRUCT, T)                                                       \
  STRUCT ShardedReduction<Kokkos::DefaultExecutionSpace, T, accumulator_t<T>, exp_accuracy_for<T>>;  \
  STRUCT ShardedFinish<Kokkos::DefaultExecutionSpace, RowOperator::softmax, T, T>;                   \
  STRUCT ShardedFinish<Kokkos::DefaultExecutionSpace, RowOperator::log_softmax, T, T>;               \
  STRUCT ShardedFinish<Kokkos::DefaultExecutionSpace, RowOperator::logsumexp, T, accumulator_t<T>>;  \
  STRUCT ShardedGradient<Kokkos::DefaultExecutionSpace, RowOperator::softmax_backward, T, T, T>;     \
  STRUCT ShardedGradient<Kokkos::DefaultExecutionSpace, RowOperator::log_softmax_backward, T, T, T>; \
  STRUCT ShardedCrossEntropy<Kokkos::DefaultExecutionSpace, T>;

/// Log-sum-exps in float of a 16-bit type need better exponentials than its softmax.
#define KOKKOSNN_IMPL_SHARDED_LOGSUMEXP(STRUCT, T) \
  STRUCT ShardedReduction<Kokkos::DefaultExecutionSpace, T, float, ExpAccuracy::full>;

namespace KokkosNN::Impl {

KOKKOSNN_IMPL_SHARDED_CALLS(extern template struct KOKKOSNN_MPI_EXPORT, double)
KOKKOSNN_IMPL_SHARDED_CALLS(extern template struct KOKKOSNN_MPI_EXPORT, float)
KOKKOSNN_IMPL_SHARDED_CALLS(extern template struct KOKKOSNN_MPI_EXPORT, half_t)
KOKKOSNN_IMPL_SHARDED_LOGSUMEXP(extern template struct KOKKOSNN_MPI_EXPORT, half_t)
KOKKOSNN_IMPL_SHARDED_CALLS(extern template struct KOKKOSNN_MPI_EXPORT, bhalf_t)
KOKKOSNN_IMPL_SHARDED_LOGSUMEXP(extern template struct KOKKOSNN_MPI_EXPORT, bhalf_t)

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_MPI_INSTANTIATIONS_HPP
