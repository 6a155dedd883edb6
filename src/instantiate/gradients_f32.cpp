// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/gradient_instantiations.hpp>

namespace KokkosNN::Impl {
KOKKOSNN_IMPL_GRADIENT_CALLS(, float)
KOKKOSNN_IMPL_LOGSUMEXP_GRADIENT_CALL(, float, float)
}  // namespace KokkosNN::Impl
