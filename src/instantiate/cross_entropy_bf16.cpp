// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/call/cross_entropy_instantiations.hpp>

namespace KokkosNN::Impl {
KOKKOSNN_IMPL_CROSS_ENTROPY_CALLS(template struct, bhalf_t)
}  // namespace KokkosNN::Impl
