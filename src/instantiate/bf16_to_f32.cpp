// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/instantiations.hpp>

#if !KOKKOS_BHALF_T_IS_FLOAT
namespace KokkosNN::Impl {
KOKKOSNN_IMPL_VIEW_CALLS(, bhalf_t, float)
}  // namespace KokkosNN::Impl
#endif
