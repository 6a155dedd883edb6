// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_SRC_VENDOR_CURRENT_HIP_DEVICE_HPP
#define KOKKOSNN_SRC_VENDOR_CURRENT_HIP_DEVICE_HPP

#include <hip/hip_runtime.h>

#include <stdexcept>
#include <string>

// HIP's counterpart of CurrentDevice in impl/gpu/device/native_launch.hpp.

namespace KokkosNN::Impl {

inline void require_success(const std::string& label, hipError_t error) {
  if (error != hipSuccess) throw std::runtime_error(label + ": " + hipGetErrorString(error));
}

/// Makes an instance's device the current one: vendors' handles are made for that, and their calls run on it.
class CurrentHipDevice {
 public:
  CurrentHipDevice(const std::string& label, int device) {
    require_success(label, hipGetDevice(&m_before));
    if (m_before == device) m_before = -1;
    if (m_before >= 0) require_success(label, hipSetDevice(device));
  }
  ~CurrentHipDevice() {
    if (m_before >= 0) static_cast<void>(hipSetDevice(m_before));
  }
  CurrentHipDevice(const CurrentHipDevice&)            = delete;
  CurrentHipDevice& operator=(const CurrentHipDevice&) = delete;

 private:
  int m_before = -1;
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_SRC_VENDOR_CURRENT_HIP_DEVICE_HPP
