// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/mpi/instantiations.hpp>

namespace KokkosNN::Impl {
KOKKOSNN_IMPL_SHARDED_CALLS(template struct, float)
}  // namespace KokkosNN::Impl
