// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/mpi/instantiations.hpp>

namespace KokkosNN::Impl {
KOKKOSNN_IMPL_SHARDED_CALLS(template struct, bhalf_t)
KOKKOSNN_IMPL_SHARDED_LOGSUMEXP(template struct, bhalf_t)
}  // namespace KokkosNN::Impl
