// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/sharded_instantiations.hpp>

namespace KokkosNN::Impl {
KOKKOSNN_IMPL_SHARDED_CALLS(, bhalf_t)
KOKKOSNN_IMPL_SHARDED_LOGSUMEXP(, bhalf_t)
}  // namespace KokkosNN::Impl
