// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_TEST_SUPPORT_INSTANCES_HPP
#define KOKKOSNN_TEST_SUPPORT_INSTANCES_HPP

#include "types.hpp"

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

namespace KokkosNNTest {

/// An instance of the default execution space that is not the default one.
inline Exec other_instance() {
#ifdef KOKKOS_ENABLE_OPENMP
  // partition_space gives the default instance unless OpenMP nests parallel regions.
  if constexpr (std::is_same_v<Exec, Kokkos::OpenMP>) return Exec(Exec().concurrency());
#endif
  return Kokkos::Experimental::partition_space(Exec(), 1, 1)[0];
}

inline std::uint32_t tools_id(const Exec& exec) { return Kokkos::Tools::Experimental::device_id(exec); }

/// True if Kokkos Tools can tell the backend's instances apart: not on hosts.
inline bool tools_tell_instances_apart() { return tools_id(other_instance()) != tools_id(Exec()); }

}  // namespace KokkosNNTest

#endif  // KOKKOSNN_TEST_SUPPORT_INSTANCES_HPP
