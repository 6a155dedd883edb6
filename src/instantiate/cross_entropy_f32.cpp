// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/call/cross_entropy_instantiations.hpp>

namespace KokkosNN::Impl {
KOKKOSNN_IMPL_LOSS_SUMS(template struct, float)
KOKKOSNN_IMPL_CROSS_ENTROPY_CALLS(template struct, float)
}  // namespace KokkosNN::Impl
