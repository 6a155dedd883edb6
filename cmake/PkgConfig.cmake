# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
# KokkosNN.pc, for builds without CMake; on hosts only, as a device's compiler needs more than flags. Kokkos has no file
# of that kind, so this one names it, too.
if(Kokkos_ENABLE_CUDA OR Kokkos_ENABLE_HIP OR Kokkos_ENABLE_SYCL OR KokkosNN_KOKKOS_DEVICES MATCHES "CUDA|HIP|SYCL")
  return()
endif()

# Where pkg-config finds the file tells the prefix, wherever the tree was moved to.
file(RELATIVE_PATH pc_up ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" pc_up "${pc_up}")
set(pc_prefix "\${pcfiledir}/${pc_up}")
set(pc_kokkos_include "\${includedir}/kokkos")
set(pc_kokkos_lib "\${libdir}")
if(Kokkos_FOUND)
  get_target_property(pc_kokkos_include Kokkos::kokkoscore INTERFACE_INCLUDE_DIRECTORIES)
  list(GET pc_kokkos_include 0 pc_kokkos_include)
  file(REAL_PATH ../.. pc_kokkos_lib BASE_DIRECTORY ${Kokkos_DIR})
endif()

# Kokkos' flags for C++, of which the architecture must be the library's.
set(pc_flags "")
if(TARGET Kokkos::kokkoscore)
  get_target_property(options Kokkos::kokkoscore INTERFACE_COMPILE_OPTIONS)
  string(REGEX MATCHALL "-m[a-z0-9]+=[^;>]+" pc_flags "${options}")
endif()
if("OPENMP" IN_LIST KokkosNN_KOKKOS_DEVICES)
  list(APPEND pc_flags ${OpenMP_CXX_FLAGS})
endif()
list(REMOVE_DUPLICATES pc_flags)
list(JOIN pc_flags " " pc_flags)
configure_file(${CMAKE_CURRENT_LIST_DIR}/KokkosNN.pc.in ${PROJECT_BINARY_DIR}/KokkosNN.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/KokkosNN.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
