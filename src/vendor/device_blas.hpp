// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_SRC_VENDOR_DEVICE_BLAS_HPP
#define KOKKOSNN_SRC_VENDOR_DEVICE_BLAS_HPP

#include "products.hpp"

#include "../plan/tiles.hpp"

#include <KokkosNN/impl/call/workspace.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

// Common parts of cuBLAS and rocBLAS: their handles, and batches that are one call.

namespace KokkosNN::Impl {

/// Handles that no call has; destroyed when Kokkos finalises. A handle belongs to one call at a time, and to one
/// stream, whose its workspace is. Library has the type `Handle`, `make(label, queue)` and `destroy(handle)`.
template <class Library>
class IdleHandles {
 public:
  using Handle = typename Library::Handle;

  static IdleHandles& get() {
    static IdleHandles& handles = *new IdleHandles;  // for good: Kokkos may be finalised after statics are destroyed
    return handles;
  }

  Handle take(const std::string& label, const VendorQueue& queue) {
    {
      const std::lock_guard lock(m_mutex);
      const auto found = std::find_if(m_idle.begin(), m_idle.end(), [&](const Idle& idle) {
        return idle.device == queue.device && idle.stream == queue.stream;
      });
      if (found != m_idle.end()) {
        const Handle handle = found->handle;
        m_idle.erase(found);
        return handle;
      }
    }
    return Library::make(label, queue);
  }
  void give_back(const VendorQueue& queue, Handle handle) {
    const std::lock_guard lock(m_mutex);
    m_idle.push_back({queue.device, queue.stream, handle});
  }

 private:
  struct Idle {
    int device;
    void* stream;
    Handle handle;
  };
  IdleHandles() {
    const std::lock_guard lock(finalize_hooks_mutex);
    Kokkos::push_finalize_hook([this] {
      for (const Idle& idle : std::exchange(m_idle, {})) Library::destroy(idle.handle);
    });
  }
  std::mutex m_mutex;
  std::vector<Idle> m_idle;
};

/// Batches of one call: matrices at equal steps, in elements.
struct DeviceBatches {
  void* data[3];  ///< a, b, c of the first one
  std::int64_t step[3];
  int count;
};

/// Calls run(batches) for all batches of a layout: the last axis is one call, the others are many.
template <class Run>
void for_batches(const MatmulLayout& layout, ElementType type, const Run& run) {
  const int last                      = layout.n - 1;
  const std::int64_t count            = layout.n > 0 ? layout.extent[last] : 1;
  const std::int64_t bytes            = static_cast<std::int64_t>(bytes_of(type));
  constexpr std::int64_t most_at_once = 1 << 30;
  for (std::int64_t n = 0; n < layout.batches;) {
    DeviceBatches batches;
    batches.count = static_cast<int>(std::min(count - n % count, most_at_once));
    for (const int number : {MatmulTensors::a, MatmulTensors::b, MatmulTensors::c}) {
      batches.data[number] =
          const_cast<char*>(static_cast<const char*>(layout.data[number])) + layout.map(number)(n) * bytes;
      batches.step[number] = layout.n > 0 ? layout.stride[number][last] : 0;
    }
    run(batches);
    n += batches.count;
  }
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_SRC_VENDOR_DEVICE_BLAS_HPP
