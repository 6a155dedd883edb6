// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/call/cpu_levels.hpp>
#include <KokkosNN/version.hpp>

#include "build.hpp"

#include <sstream>
#include <string>

namespace KokkosNN {

Configuration configuration() {
  return {version(),
          KOKKOSNN_BUILD_COMMIT,
          KOKKOSNN_BUILD_COMPILER,
          KOKKOSNN_BUILD_TYPE,
          KOKKOSNN_BUILD_KOKKOS_VERSION,
          KOKKOSNN_BUILD_KOKKOS_DEVICES,
          KOKKOSNN_BUILD_KOKKOS_ARCHITECTURES,
          KOKKOSNN_BUILD_HAS_MPI,
          KOKKOSNN_BUILD_HAS_NCCL,
          KOKKOSNN_BUILD_CPU_LEVELS,
          KOKKOSNN_BUILD_CPU_LEVEL};
}

std::string to_string(const Configuration& built) {
  const auto known = [](const std::string& text) { return text.empty() ? std::string("unknown") : text; };
  std::ostringstream line;
  line << "KokkosNN " << built.version << " (commit " << known(built.commit) << ", " << known(built.compiler) << ", "
       << known(built.build_type) << "), Kokkos " << known(built.kokkos_version) << " (" << known(built.kokkos_devices)
       << "; " << (built.kokkos_architectures.empty() ? "no architecture" : built.kokkos_architectures) << "), "
       << (built.has_mpi ? "MPI" : "no MPI") << (built.has_nccl ? " with NCCL" : "");
  if (!built.cpu_level.empty()) line << ", kernels for " << built.cpu_level << " of " << built.cpu_levels;
  return line.str();
}

}  // namespace KokkosNN
