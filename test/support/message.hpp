// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_TEST_SUPPORT_MESSAGE_HPP
#define KOKKOSNN_TEST_SUPPORT_MESSAGE_HPP

#include <stdexcept>
#include <string>

namespace KokkosNNTest {

/// Message of the std::invalid_argument that f throws.
template <class F>
std::string message_of(const F& f) {
  try {
    f();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "(nothing was thrown)";
}

}  // namespace KokkosNNTest

#endif  // KOKKOSNN_TEST_SUPPORT_MESSAGE_HPP
