# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
# What test/hip-gate changes of the build (CMAKE_PROJECT_KokkosNN_INCLUDE), once all targets are there, so that it takes
# a quarter of an hour on two cores. The same sources are compiled for the same architectures.
#
# With KokkosNN_GATE_FULL all of the library's kernels are optimised for gfx90a too; without, those of floats.

include(${CMAKE_CURRENT_LIST_DIR}/join_files.cmake)

function(kokkosnn_gate)
  # Nobody looks at the tests' and benchmarks' own kernels, and nothing runs.
  foreach(target kokkosnn_tests kokkosnn_perf kokkosnn_perf_results kokkosnn_tune kokkosnn_peers)
    target_compile_options(${target} PRIVATE -Xarch_device -O0)
  endforeach()

  kokkosnn_join_tests()
  kokkosnn_join_benchmarks()

  # The files whose kernels are looked at on gfx90a, too, keep their flags, which joined files have in common.
  if(NOT KokkosNN_GATE_FULL)
    set(looked_at "/((elementwise|gradients|masked|norm|rope|segmented)_)?f32\\.cpp$")
    set(optimised ${KokkosNN_INSTANTIATIONS})
    list(FILTER optimised INCLUDE REGEX "${looked_at}")
    target_compile_options(KokkosNN PRIVATE "SHELL:-Xarch_gfx90a -O0")
    set_source_files_properties(${optimised} PROPERTIES COMPILE_OPTIONS "-Xarch_gfx90a;-O3")
    kokkosnn_join_instantiations("${looked_at}")
  endif()
endfunction()

cmake_language(DEFER CALL kokkosnn_gate)
