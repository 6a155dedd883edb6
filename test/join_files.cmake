# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
# Joins source files for builds that are made once and whole (test/hip-gate, test/fuzzed, the CUDA build of .ci/run):
# compilers read the headers once for each file, device compilers several times. The same sources are compiled.

# kokkosnn_join(<target> <group>...): each group is file names, without folder and ending, with spaces between them
function(kokkosnn_join target)
  get_target_property(sources ${target} SOURCES)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  foreach(group IN LISTS ARGN)
    string(MAKE_C_IDENTIFIER "${group}" id)
    string(REPLACE " " "|" names "${group}")
    set(files ${sources})
    list(FILTER files INCLUDE REGEX "/(${names})\\.cpp$")
    set_source_files_properties(${files} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${id})
  endforeach()
endfunction()

# kokkosnn_join_instantiations(<regex>): the library's instantiations but those whose paths match, as few files of about
# equal size: files of one type are far from each other in the list.
function(kokkosnn_join_instantiations but)
  set(groups 16)
  set_target_properties(KokkosNN PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  set(number 0)
  foreach(file IN LISTS KokkosNN_INSTANTIATIONS)
    if(NOT file MATCHES "${but}")
      set_source_files_properties(${file} PROPERTIES UNITY_GROUP instantiations_${number})
      math(EXPR number "(${number} + 1) % ${groups}")
    endif()
  endforeach()
endfunction()

# Files that define no name twice.
function(kokkosnn_join_files)
  set_target_properties(kokkosnn_perf kokkosnn_perf_results kokkosnn_tune
                        PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
  kokkosnn_join(
    kokkosnn_tests
    "test_accuracy test_cross_entropy test_cross_entropy_calls test_cuda test_determinism test_errors test_reference"
    "test_gradients test_gradient_calls test_fused test_fusion_examples test_kokkos_behaviour"
    "test_masked_softmax test_row_forms test_large test_team"
    "test_masked_gradients test_online test_softmax_shapes test_segmented"
    "test_semantics test_softmax_strategies test_softmax_types test_softmax_views test_segmented_calls"
    "test_planner test_tuning test_broadcast_gradients test_segmented_heads test_norm test_verbose")
endfunction()
