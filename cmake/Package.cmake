# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
# The CMake package: the installed one, and the one of the build tree (KokkosNN_DIR=<the build folder>).
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)
set(KokkosNN_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/KokkosNN)

# kokkosnn_kokkos_is(<variable> <file> <regular expression with one group>): what the package files of a Kokkos that is
# built along say, where nothing else tells
function(kokkosnn_kokkos_is variable file expression)
  if(NOT ${variable} AND EXISTS "${Kokkos_BINARY_DIR}/${file}")
    file(READ "${Kokkos_BINARY_DIR}/${file}" text)
    if(text MATCHES "${expression}")
      set(${variable} ${CMAKE_MATCH_1} PARENT_SCOPE)
    endif()
  endif()
endfunction()

set(KokkosNN_KOKKOS_DEVICES ${Kokkos_DEVICES})
set(KokkosNN_KOKKOS_VERSION ${Kokkos_VERSION})
kokkosnn_kokkos_is(KokkosNN_KOKKOS_DEVICES KokkosConfigCommon.cmake "set\\(Kokkos_DEVICES ([A-Z;]+)\\)")
kokkosnn_kokkos_is(KokkosNN_KOKKOS_VERSION KokkosConfigVersion.cmake "set\\(PACKAGE_VERSION \"([0-9.]+)\"\\)")
message(STATUS "KokkosNN: the package is for Kokkos ${KokkosNN_KOKKOS_VERSION} with ${KokkosNN_KOKKOS_DEVICES}")

# Two files that differ in where they look for Kokkos first.
set(KokkosNN_KOKKOS_HINT "\${PACKAGE_PREFIX_DIR}")
configure_package_config_file(cmake/KokkosNNConfig.cmake.in installed/KokkosNNConfig.cmake
                              INSTALL_DESTINATION ${KokkosNN_CMAKE_DIR})
set(KokkosNN_KOKKOS_HINT ${Kokkos_BINARY_DIR})
if(Kokkos_FOUND)
  set(KokkosNN_KOKKOS_HINT ${Kokkos_DIR})
endif()
configure_package_config_file(cmake/KokkosNNConfig.cmake.in KokkosNNConfig.cmake
                              INSTALL_DESTINATION ${PROJECT_BINARY_DIR})

# While the major version is 0, a minor version may change the interface.
set(compatibility SameMajorVersion)
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(compatibility SameMinorVersion)
endif()
write_basic_package_version_file(KokkosNNConfigVersion.cmake COMPATIBILITY ${compatibility})
install(FILES ${PROJECT_BINARY_DIR}/installed/KokkosNNConfig.cmake ${PROJECT_BINARY_DIR}/KokkosNNConfigVersion.cmake
        DESTINATION ${KokkosNN_CMAKE_DIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/licenses/KokkosNN)
# They build by themselves, so that an installed library can be tried.
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/KokkosNN)

# kokkosnn_package(<target> <export>): who asks for no MPI reads no file with its name, so each library has one
function(kokkosnn_package target export)
  install(TARGETS ${target} EXPORT ${export} FILE_SET HEADERS)
  install(EXPORT ${export} NAMESPACE KokkosNN:: DESTINATION ${KokkosNN_CMAKE_DIR})
  export(EXPORT ${export} NAMESPACE KokkosNN:: FILE ${PROJECT_BINARY_DIR}/${export}.cmake)
endfunction()

kokkosnn_package(KokkosNN KokkosNNTargets)
if(KokkosNN_HAS_MPI)
  kokkosnn_package(KokkosNN_mpi KokkosNNMpiTargets)
endif()
if(KokkosNN_HAS_C)
  kokkosnn_package(KokkosNN_c KokkosNNCTargets)
endif()
