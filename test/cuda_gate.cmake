# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
# What .ci/run changes of the CUDA build (CMAKE_PROJECT_KokkosNN_INCLUDE), once all targets are there: the same sources
# in fewer files. Nothing of it runs.
include(${CMAKE_CURRENT_LIST_DIR}/join_files.cmake)

function(kokkosnn_gate)
  kokkosnn_join_tests()
  kokkosnn_join_benchmarks()
  kokkosnn_join_instantiations("^$")
endfunction()

cmake_language(DEFER CALL kokkosnn_gate)
