// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/instantiations.hpp>

#if !KOKKOS_HALF_T_IS_FLOAT
namespace KokkosNN::Impl {
KOKKOSNN_IMPL_VIEW_CALLS(, half_t, half_t)
}  // namespace KokkosNN::Impl
#endif
