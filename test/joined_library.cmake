# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
# What test/fuzzed changes of a build (CMAKE_PROJECT_KokkosNN_INCLUDE), once all targets are there.
include(${CMAKE_CURRENT_LIST_DIR}/join_files.cmake)

cmake_language(DEFER CALL kokkosnn_join_instantiations "^$")
