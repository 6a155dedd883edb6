// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GRADIENT_INSTANTIATIONS_HPP
#define KOKKOSNN_IMPL_GRADIENT_INSTANTIATIONS_HPP

#include <KokkosNN/impl/gradient_launch.hpp>

#include <Kokkos_Core.hpp>

// The gradients that the library holds compiled: all tensors of one type, and for logsumexp_backward also lse and dlse
// in float. src/instantiate/gradients_*.cpp define them.

#define KOKKOSNN_IMPL_GRADIENT_CALLS(KEYWORD, T)                                                               \
  KEYWORD template struct GradientCall<Kokkos::DefaultExecutionSpace, RowOperator::softmax_backward, T, T, T>; \
  KEYWORD template struct GradientCall<Kokkos::DefaultExecutionSpace, RowOperator::log_softmax_backward, T, T, T>;

#define KOKKOSNN_IMPL_LOGSUMEXP_GRADIENT_CALL(KEYWORD, T, L) \
  KEYWORD template struct GradientCall<Kokkos::DefaultExecutionSpace, RowOperator::logsumexp_backward, T, L, T>;

namespace KokkosNN::Impl {

KOKKOSNN_IMPL_GRADIENT_CALLS(extern, double)
KOKKOSNN_IMPL_LOGSUMEXP_GRADIENT_CALL(extern, double, double)
KOKKOSNN_IMPL_GRADIENT_CALLS(extern, float)
KOKKOSNN_IMPL_LOGSUMEXP_GRADIENT_CALL(extern, float, float)
KOKKOSNN_IMPL_GRADIENT_CALLS(extern, half_t)
KOKKOSNN_IMPL_LOGSUMEXP_GRADIENT_CALL(extern, half_t, half_t)
KOKKOSNN_IMPL_LOGSUMEXP_GRADIENT_CALL(extern, half_t, float)
KOKKOSNN_IMPL_GRADIENT_CALLS(extern, bhalf_t)
KOKKOSNN_IMPL_LOGSUMEXP_GRADIENT_CALL(extern, bhalf_t, bhalf_t)
KOKKOSNN_IMPL_LOGSUMEXP_GRADIENT_CALL(extern, bhalf_t, float)

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GRADIENT_INSTANTIATIONS_HPP
