# SPDX-License-Identifier: Apache-2.0
# What test/hip-gate changes of the build (CMAKE_PROJECT_KokkosNN_INCLUDE), once all targets are there, so that it takes a
# quarter of an hour on two cores. The same sources are compiled for the same architectures.
#
# With KokkosNN_GATE_FULL all of the library's kernels are optimised for gfx90a too; without, those of floats.

function(kokkosnn_gate)
  # Nobody looks at the tests' and benchmarks' own kernels, and nothing runs.
  foreach(target kokkosnn_tests kokkosnn_perf kokkosnn_perf_results kokkosnn_tune kokkosnn_peers)
    target_compile_options(${target} PRIVATE -Xarch_device -O0)
  endforeach()

  # Files that define no name twice share a translation unit: most of their time is that of the headers.
  set_target_properties(kokkosnn_perf kokkosnn_perf_results kokkosnn_tune PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
  set(groups
      "accuracy cross_entropy cross_entropy_calls cuda determinism errors"
      "gradients gradient_calls fused fusion_examples kokkos_behaviour"
      "masked_softmax row_forms large team"
      "masked_gradients online softmax_shapes segmented"
      "semantics softmax_strategies softmax_types softmax_views segmented_calls"
      "planner tuning broadcast_gradients segmented_heads")
  set_target_properties(kokkosnn_tests PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  foreach(group IN LISTS groups)
    string(REPLACE " " "_" id ${group})
    string(REGEX REPLACE "([^ ]+) ?" "${PROJECT_SOURCE_DIR}/test/test_\\1.cpp;" files ${group})
    set_source_files_properties(${files} TARGET_DIRECTORY kokkosnn_tests PROPERTIES UNITY_GROUP ${id})
  endforeach()

  if(NOT KokkosNN_GATE_FULL)
    set(others ${KokkosNN_SOURCES})
    list(FILTER others INCLUDE REGEX "/instantiate/")
    list(FILTER others EXCLUDE REGEX "/((gradients|masked|segmented)_)?f32\\.cpp$")
    set_source_files_properties(${others} PROPERTIES COMPILE_OPTIONS "-Xarch_gfx90a;-O0")
  endif()
endfunction()

cmake_language(DEFER CALL kokkosnn_gate)
