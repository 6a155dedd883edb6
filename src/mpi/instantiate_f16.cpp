// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/mpi/instantiations.hpp>

namespace KokkosNN::Impl {
KOKKOSNN_IMPL_SHARDED_CALLS(template struct, half_t)
KOKKOSNN_IMPL_SHARDED_LOGSUMEXP(template struct, half_t)
}  // namespace KokkosNN::Impl
