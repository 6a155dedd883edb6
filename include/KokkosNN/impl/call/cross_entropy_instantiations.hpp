// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_CROSS_ENTROPY_INSTANTIATIONS_HPP
#define KOKKOSNN_IMPL_CALL_CROSS_ENTROPY_INSTANTIATIONS_HPP

#include <KokkosNN/export.hpp>
#include <KokkosNN/impl/call/cross_entropy_launch.hpp>

#include <Kokkos_Core.hpp>

// The cross entropies that the library holds compiled: logits and their gradient of one type.
// src/instantiate/cross_entropy_*.cpp define them, and in f32 and f64 the sums.

#define KOKKOSNN_IMPL_CROSS_ENTROPY_CALLS(STRUCT, T)                                                 \
  STRUCT CrossEntropyCall<Kokkos::DefaultExecutionSpace, RowOperator::cross_entropy, T, T>;          \
  STRUCT CrossEntropyCall<Kokkos::DefaultExecutionSpace, RowOperator::cross_entropy_backward, T, T>; \
  STRUCT CrossEntropyCall<Kokkos::DefaultExecutionSpace, RowOperator::cross_entropy_with_gradient, T, T>;

#define KOKKOSNN_IMPL_LOSS_SUMS(STRUCT, A) STRUCT LossSums<Kokkos::DefaultExecutionSpace, A>;

namespace KokkosNN::Impl {

KOKKOSNN_IMPL_LOSS_SUMS(extern template struct KOKKOSNN_EXPORT, double)
KOKKOSNN_IMPL_LOSS_SUMS(extern template struct KOKKOSNN_EXPORT, float)
KOKKOSNN_IMPL_CROSS_ENTROPY_CALLS(extern template struct KOKKOSNN_EXPORT, double)
KOKKOSNN_IMPL_CROSS_ENTROPY_CALLS(extern template struct KOKKOSNN_EXPORT, float)
KOKKOSNN_IMPL_CROSS_ENTROPY_CALLS(extern template struct KOKKOSNN_EXPORT, half_t)
KOKKOSNN_IMPL_CROSS_ENTROPY_CALLS(extern template struct KOKKOSNN_EXPORT, bhalf_t)

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_CROSS_ENTROPY_INSTANTIATIONS_HPP
