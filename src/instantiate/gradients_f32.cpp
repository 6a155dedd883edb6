// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/call/gradient_instantiations.hpp>

namespace KokkosNN::Impl {
KOKKOSNN_IMPL_GRADIENT_CALLS(template struct, float)
KOKKOSNN_IMPL_LOGSUMEXP_GRADIENT_CALL(template struct, float, float)
}  // namespace KokkosNN::Impl
