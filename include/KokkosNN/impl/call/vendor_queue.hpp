// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_VENDOR_QUEUE_HPP
#define KOKKOSNN_IMPL_CALL_VENDOR_QUEUE_HPP

#include <KokkosNN/impl/backend.hpp>
#include <KokkosNN/plan.hpp>

#include <Kokkos_Core.hpp>

namespace KokkosNN::Impl {

/// An instance as a vendor's library knows it: a device and its stream.
struct VendorQueue {
  Backend backend = Backend::host;
  int device      = 0;
  void* stream    = nullptr;
};

template <class Exec>
VendorQueue vendor_queue([[maybe_unused]] const Exec& exec) {
  if constexpr (backend_of<Exec>() == Backend::cuda) {
    return {Backend::cuda, exec.cuda_device(), exec.cuda_stream()};
  } else if constexpr (backend_of<Exec>() == Backend::hip) {
    return {Backend::hip, exec.hip_device(), exec.hip_stream()};
  } else {
    return {backend_of<Exec>(), 0, nullptr};
  }
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_VENDOR_QUEUE_HPP
