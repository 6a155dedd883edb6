// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/call/segmented_instantiations.hpp>

namespace KokkosNN::Impl {
KOKKOSNN_IMPL_SEGMENTED_CALLS(template struct, half_t)
}  // namespace KokkosNN::Impl
