# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
# The header behind KokkosNN::configuration(): each build writes it, for src/configuration.cpp alone.
set(KokkosNN_KOKKOS_ARCHITECTURES ${Kokkos_ARCH})
kokkosnn_kokkos_is(KokkosNN_KOKKOS_ARCHITECTURES KokkosConfigCommon.cmake "set\\(Kokkos_ARCH ([A-Z0-9_;]+)\\)")

set(header ${PROJECT_BINARY_DIR}/src/build.hpp)
set(has_mpi false)
if(KokkosNN_HAS_MPI)
  set(has_mpi true)
endif()
set(has_nccl false)
if(KokkosNN_HAS_NCCL)
  set(has_nccl true)
endif()
list(JOIN KokkosNN_KOKKOS_DEVICES "|" devices)
list(JOIN KokkosNN_KOKKOS_ARCHITECTURES "|" architectures)
set(cpu_levels "")
if(KokkosNN_MORE_CPU_LEVELS)
  list(JOIN KokkosNN_MORE_CPU_LEVELS "|" cpu_levels)
  string(PREPEND cpu_levels "${lowest_level}|")
endif()
add_custom_target(
  KokkosNN_build
  COMMAND ${CMAKE_COMMAND} -DOUTPUT=${header} -DSOURCE=${PROJECT_SOURCE_DIR} -DCONFIG=$<CONFIG>
          "-DCOMPILER=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}" -DHAS_MPI=${has_mpi}
          -DHAS_NCCL=${has_nccl} -DKOKKOS_VERSION=${KokkosNN_KOKKOS_VERSION} "-DKOKKOS_DEVICES=${devices}"
          "-DKOKKOS_ARCHITECTURES=${architectures}" "-DCPU_LEVELS=${cpu_levels}"
          -P ${PROJECT_SOURCE_DIR}/cmake/WriteBuild.cmake
  BYPRODUCTS ${header} COMMENT "" VERBATIM)
add_dependencies(KokkosNN KokkosNN_build)
set_source_files_properties(src/configuration.cpp PROPERTIES INCLUDE_DIRECTORIES ${PROJECT_BINARY_DIR}/src)
