// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_PYTHON_JAX_HPP
#define KOKKOSNN_PYTHON_JAX_HPP

#include <string_view>
#include <utility>
#include <vector>

/// XLA's platform that the handlers are for: "cpu", "CUDA" or "ROCM".
std::string_view jax_platform();

/// Handlers of XLA's foreign function interface by the operators' names; each is an XLA_FFI_Handler*.
std::vector<std::pair<std::string_view, void*>> jax_handlers();

#endif
