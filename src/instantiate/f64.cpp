// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/call/view_instantiations.hpp>

namespace KokkosNN::Impl {
KOKKOSNN_IMPL_VIEW_CALLS(template struct, double, double)
}  // namespace KokkosNN::Impl
