// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_MASKED_INSTANTIATIONS_HPP
#define KOKKOSNN_IMPL_MASKED_INSTANTIATIONS_HPP

#include <KokkosNN/impl/masked_gradient_launch.hpp>
#include <KokkosNN/impl/masked_launch.hpp>

#include <Kokkos_Core.hpp>

// The masked calls that the library holds compiled: all tensors of one type, every mask. src/instantiate/masked_*.cpp
// define them.

#define KOKKOSNN_IMPL_MASKED_CALLS(KEYWORD, T)                                    \
  KEYWORD template struct MaskedCall<Kokkos::DefaultExecutionSpace, T, T, false>; \
  KEYWORD template struct MaskedCall<Kokkos::DefaultExecutionSpace, T, T, true>;

#define KOKKOSNN_IMPL_MASKED_GRADIENT_CALLS(KEYWORD, T)                                      \
  KEYWORD template struct MaskedGradientCall<Kokkos::DefaultExecutionSpace, T, T, T, false>; \
  KEYWORD template struct MaskedGradientCall<Kokkos::DefaultExecutionSpace, T, T, T, true>;  \
  KEYWORD template struct MaskSumsCall<Kokkos::DefaultExecutionSpace, T, T>;

namespace KokkosNN::Impl {

KOKKOSNN_IMPL_MASKED_CALLS(extern, double)
KOKKOSNN_IMPL_MASKED_GRADIENT_CALLS(extern, double)
KOKKOSNN_IMPL_MASKED_CALLS(extern, float)
KOKKOSNN_IMPL_MASKED_GRADIENT_CALLS(extern, float)
KOKKOSNN_IMPL_MASKED_CALLS(extern, half_t)
KOKKOSNN_IMPL_MASKED_GRADIENT_CALLS(extern, half_t)
KOKKOSNN_IMPL_MASKED_CALLS(extern, bhalf_t)
KOKKOSNN_IMPL_MASKED_GRADIENT_CALLS(extern, bhalf_t)

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_MASKED_INSTANTIATIONS_HPP
