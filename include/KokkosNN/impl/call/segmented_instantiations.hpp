// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_SEGMENTED_INSTANTIATIONS_HPP
#define KOKKOSNN_IMPL_CALL_SEGMENTED_INSTANTIATIONS_HPP

#include <KokkosNN/export.hpp>
#include <KokkosNN/impl/call/segmented_launch.hpp>

#include <Kokkos_Core.hpp>

// The calls on ragged rows that the library holds compiled: all tensors of one type; src/instantiate/segmented_*.cpp
// define them.

#define KOKKOSNN_IMPL_SEGMENTED_CALLS(STRUCT, T)                                                 \
  STRUCT SegmentedCall<Kokkos::DefaultExecutionSpace, RowOperator::softmax, T, T>;               \
  STRUCT SegmentedCall<Kokkos::DefaultExecutionSpace, RowOperator::log_softmax, T, T>;           \
  STRUCT SegmentedCall<Kokkos::DefaultExecutionSpace, RowOperator::logsumexp, T, T>;             \
  STRUCT SegmentedGradientCall<Kokkos::DefaultExecutionSpace, RowOperator::softmax_backward, T>; \
  STRUCT SegmentedGradientCall<Kokkos::DefaultExecutionSpace, RowOperator::log_softmax_backward, T>;

namespace KokkosNN::Impl {

KOKKOSNN_IMPL_SEGMENTED_CALLS(extern template struct KOKKOSNN_EXPORT, double)
KOKKOSNN_IMPL_SEGMENTED_CALLS(extern template struct KOKKOSNN_EXPORT, float)
KOKKOSNN_IMPL_SEGMENTED_CALLS(extern template struct KOKKOSNN_EXPORT, half_t)
KOKKOSNN_IMPL_SEGMENTED_CALLS(extern template struct KOKKOSNN_EXPORT, bhalf_t)

extern template struct KOKKOSNN_EXPORT OffsetsCheck<Kokkos::DefaultExecutionSpace>;

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_SEGMENTED_INSTANTIATIONS_HPP
