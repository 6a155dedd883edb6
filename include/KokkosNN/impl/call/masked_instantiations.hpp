// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_MASKED_INSTANTIATIONS_HPP
#define KOKKOSNN_IMPL_CALL_MASKED_INSTANTIATIONS_HPP

#include <KokkosNN/export.hpp>
#include <KokkosNN/impl/call/masked_gradient_launch.hpp>
#include <KokkosNN/impl/call/masked_launch.hpp>

#include <Kokkos_Core.hpp>

// The masked calls that the library holds compiled: all tensors of one type, every mask. src/instantiate/masked_*.cpp
// define them.

#define KOKKOSNN_IMPL_MASKED_CALLS(STRUCT, T)                    \
  STRUCT MaskedCall<Kokkos::DefaultExecutionSpace, T, T, false>; \
  STRUCT MaskedCall<Kokkos::DefaultExecutionSpace, T, T, true>;

#define KOKKOSNN_IMPL_MASKED_GRADIENT_CALLS(STRUCT, T)                      \
  STRUCT MaskedGradientCall<Kokkos::DefaultExecutionSpace, T, T, T, false>; \
  STRUCT MaskedGradientCall<Kokkos::DefaultExecutionSpace, T, T, T, true>;  \
  STRUCT MaskSumsCall<Kokkos::DefaultExecutionSpace, T, T>;

namespace KokkosNN::Impl {

KOKKOSNN_IMPL_MASKED_CALLS(extern template struct KOKKOSNN_EXPORT, double)
KOKKOSNN_IMPL_MASKED_GRADIENT_CALLS(extern template struct KOKKOSNN_EXPORT, double)
KOKKOSNN_IMPL_MASKED_CALLS(extern template struct KOKKOSNN_EXPORT, float)
KOKKOSNN_IMPL_MASKED_GRADIENT_CALLS(extern template struct KOKKOSNN_EXPORT, float)
KOKKOSNN_IMPL_MASKED_CALLS(extern template struct KOKKOSNN_EXPORT, half_t)
KOKKOSNN_IMPL_MASKED_GRADIENT_CALLS(extern template struct KOKKOSNN_EXPORT, half_t)
KOKKOSNN_IMPL_MASKED_CALLS(extern template struct KOKKOSNN_EXPORT, bhalf_t)
KOKKOSNN_IMPL_MASKED_GRADIENT_CALLS(extern template struct KOKKOSNN_EXPORT, bhalf_t)

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_MASKED_INSTANTIATIONS_HPP
