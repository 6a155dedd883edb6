// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/sharded_instantiations.hpp>

namespace KokkosNN::Impl {
KOKKOSNN_IMPL_SHARDED_CALLS(, half_t)
KOKKOSNN_IMPL_SHARDED_LOGSUMEXP(, half_t)
}  // namespace KokkosNN::Impl
