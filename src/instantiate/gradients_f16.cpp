// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/call/gradient_instantiations.hpp>

namespace KokkosNN::Impl {
KOKKOSNN_IMPL_GRADIENT_CALLS(template struct, half_t)
KOKKOSNN_IMPL_LOGSUMEXP_GRADIENT_CALL(template struct, half_t, half_t)
KOKKOSNN_IMPL_LOGSUMEXP_GRADIENT_CALL(template struct, half_t, float)
}  // namespace KokkosNN::Impl
