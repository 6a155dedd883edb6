// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_VIEW_INSTANTIATIONS_HPP
#define KOKKOSNN_IMPL_CALL_VIEW_INSTANTIATIONS_HPP

#include <KokkosNN/export.hpp>
#include <KokkosNN/impl/call/view_call.hpp>

#include <Kokkos_Core.hpp>

// The calls that the library holds compiled, for the default execution space; src/instantiate/ defines them, one file a
// line. Other pairs of types and other spaces are compiled where they are used.

#define KOKKOSNN_IMPL_VIEW_CALLS(STRUCT, X, Y)                                    \
  STRUCT ViewCall<Kokkos::DefaultExecutionSpace, RowOperator::softmax, X, Y>;     \
  STRUCT ViewCall<Kokkos::DefaultExecutionSpace, RowOperator::log_softmax, X, Y>; \
  STRUCT ViewCall<Kokkos::DefaultExecutionSpace, RowOperator::logsumexp, X, Y>;

namespace KokkosNN::Impl {

KOKKOSNN_IMPL_VIEW_CALLS(extern template struct KOKKOSNN_EXPORT, double, double)
KOKKOSNN_IMPL_VIEW_CALLS(extern template struct KOKKOSNN_EXPORT, float, float)
KOKKOSNN_IMPL_VIEW_CALLS(extern template struct KOKKOSNN_EXPORT, half_t, half_t)
KOKKOSNN_IMPL_VIEW_CALLS(extern template struct KOKKOSNN_EXPORT, half_t, float)
KOKKOSNN_IMPL_VIEW_CALLS(extern template struct KOKKOSNN_EXPORT, float, half_t)
KOKKOSNN_IMPL_VIEW_CALLS(extern template struct KOKKOSNN_EXPORT, bhalf_t, bhalf_t)
KOKKOSNN_IMPL_VIEW_CALLS(extern template struct KOKKOSNN_EXPORT, bhalf_t, float)
KOKKOSNN_IMPL_VIEW_CALLS(extern template struct KOKKOSNN_EXPORT, float, bhalf_t)

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_VIEW_INSTANTIATIONS_HPP
