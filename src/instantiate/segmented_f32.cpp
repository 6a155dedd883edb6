// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/call/segmented_instantiations.hpp>

namespace KokkosNN::Impl {
KOKKOSNN_IMPL_SEGMENTED_CALLS(template struct, float)
template struct OffsetsCheck<Kokkos::DefaultExecutionSpace>;
}  // namespace KokkosNN::Impl
