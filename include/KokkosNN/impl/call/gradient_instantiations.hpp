// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_GRADIENT_INSTANTIATIONS_HPP
#define KOKKOSNN_IMPL_CALL_GRADIENT_INSTANTIATIONS_HPP

#include <KokkosNN/export.hpp>
#include <KokkosNN/impl/call/gradient_launch.hpp>

#include <Kokkos_Core.hpp>

// The gradients that the library holds compiled: all tensors of one type, and for logsumexp_backward also lse and dlse
// in float. src/instantiate/gradients_*.cpp define them.

#define KOKKOSNN_IMPL_GRADIENT_CALLS(STRUCT, T)                                               \
  STRUCT GradientCall<Kokkos::DefaultExecutionSpace, RowOperator::softmax_backward, T, T, T>; \
  STRUCT GradientCall<Kokkos::DefaultExecutionSpace, RowOperator::log_softmax_backward, T, T, T>;

#define KOKKOSNN_IMPL_LOGSUMEXP_GRADIENT_CALL(STRUCT, T, L) \
  STRUCT GradientCall<Kokkos::DefaultExecutionSpace, RowOperator::logsumexp_backward, T, L, T>;

namespace KokkosNN::Impl {

KOKKOSNN_IMPL_GRADIENT_CALLS(extern template struct KOKKOSNN_EXPORT, double)
KOKKOSNN_IMPL_LOGSUMEXP_GRADIENT_CALL(extern template struct KOKKOSNN_EXPORT, double, double)
KOKKOSNN_IMPL_GRADIENT_CALLS(extern template struct KOKKOSNN_EXPORT, float)
KOKKOSNN_IMPL_LOGSUMEXP_GRADIENT_CALL(extern template struct KOKKOSNN_EXPORT, float, float)
KOKKOSNN_IMPL_GRADIENT_CALLS(extern template struct KOKKOSNN_EXPORT, half_t)
KOKKOSNN_IMPL_LOGSUMEXP_GRADIENT_CALL(extern template struct KOKKOSNN_EXPORT, half_t, half_t)
KOKKOSNN_IMPL_LOGSUMEXP_GRADIENT_CALL(extern template struct KOKKOSNN_EXPORT, half_t, float)
KOKKOSNN_IMPL_GRADIENT_CALLS(extern template struct KOKKOSNN_EXPORT, bhalf_t)
KOKKOSNN_IMPL_LOGSUMEXP_GRADIENT_CALL(extern template struct KOKKOSNN_EXPORT, bhalf_t, bhalf_t)
KOKKOSNN_IMPL_LOGSUMEXP_GRADIENT_CALL(extern template struct KOKKOSNN_EXPORT, bhalf_t, float)

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_GRADIENT_INSTANTIATIONS_HPP
