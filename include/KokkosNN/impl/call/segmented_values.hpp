// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_SEGMENTED_VALUES_HPP
#define KOKKOSNN_IMPL_CALL_SEGMENTED_VALUES_HPP

#include <KokkosNN/impl/call/layout.hpp>
#include <KokkosNN/impl/inputs/segments.hpp>

// Erased Views of ragged rows as kernels read and write them.

namespace KokkosNN::Impl {

/// The values of a tensor, its heads in the second axis.
template <class T>
Values<T> values_of(const Tensor& t) {
  return {static_cast<T*>(const_cast<void*>(t.data)), t.rank == 0 || t.extent[0] == 1 ? 1 : t.stride[0],
          t.rank < 2 || t.extent[1] == 1 ? 0 : t.stride[1]};
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_SEGMENTED_VALUES_HPP
