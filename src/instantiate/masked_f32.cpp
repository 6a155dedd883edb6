// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/call/masked_instantiations.hpp>

namespace KokkosNN::Impl {
KOKKOSNN_IMPL_MASKED_CALLS(template struct, float)
}  // namespace KokkosNN::Impl
