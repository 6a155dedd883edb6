// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/backend.hpp>
#include <KokkosNN/impl/compiled_kernels.hpp>
#include <KokkosNN/impl/traits.hpp>

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

namespace KokkosNN::Impl {
namespace {

/// A function's name, or a kernel's label, at the head of a message.
std::string head_of(std::string_view call) {
  return (call.starts_with("KokkosNN::") ? "" : "KokkosNN::") + std::string(call) + ": ";
}

}  // namespace

void refuse_launching_thread(std::string_view call) {
  throw std::invalid_argument(head_of(call) +
                              "Kokkos::Threads runs kernels for the host thread alone that initialised "
                              "Kokkos, and this is another one");
}

void refuse_plan_without_kernel(const RowPlan& plan) {
  throw std::logic_error(head_of(to_string(plan)) + "no kernel is compiled for this plan");
}

bool uses_launch_attributes() {
  static const bool is_on = [] {
    const char* value = std::getenv("KOKKOSNN_NATIVE_LAUNCH");
    return value == nullptr || std::string_view(value) != "0";
  }();
  return is_on;
}

}  // namespace KokkosNN::Impl
