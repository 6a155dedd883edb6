# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
# Joins source files: compilers read the headers once for each file, device compilers several times, and instantiate
# what files of a family have in common once. The same sources are compiled. Tests are joined where no device compiler
# works, and by builds that are made once and whole (test/hip-gate, the CUDA build of .ci/run), which join benchmarks
# and the library's instantiations, too, as test/fuzzed does.

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

# kokkosnn_join_tests(): tests by families. Files of a group define no name twice; a file of no group is compiled alone.
function(kokkosnn_join_tests)
  kokkosnn_join(
    kokkosnn_tests
    "test_accuracy test_online test_row_forms test_row_in_cluster test_row_scales test_several_axes\
 test_softmax_shapes test_softmax_strategies test_softmax_types test_softmax_views"
    "test_broadcast_gradients test_determinism test_errors test_fused test_fusion_examples test_gradients\
 test_semantics"
    "test_diagonal_offsets test_masked_gradients test_masked_logarithms test_masked_softmax test_masked_vectors"
    "test_gradient_calls test_segment_index test_segmented test_segmented_calls test_segmented_heads\
 test_segmented_lse_backward"
    "test_cross_entropy test_soft_cross_entropy"
    "test_add_norm test_column_sums test_cross_entropy_parts test_norm test_rms_norm_rope"
    "test_large test_quantized test_rope test_small_calls test_team"
    "test_chains test_cuda test_elementwise test_kokkos_behaviour test_reference"
    "test_compiled_calls test_float8 test_half test_row_writer test_split_row test_verbose"
    "test_attention test_attention_onnx test_matmul_backward test_packed_attention test_team_attention"
    "test_attention_backward test_attention_dropout test_matmul_provider"
    "test_attention_mask_gradients test_matmul test_team_matmul"
    "test_attention_plan test_compiled_kernels test_cross_entropy_calls test_matmul_rows test_quantized_plan"
    "test_matmul_plan test_planner test_tuning test_merge_attention"
    "test_attention_in_team test_matmul_in_team"
    "test_exp test_matrix_unit test_rope_in_team test_warpgroup_attention_in_team"
    "test_warpgroup_gradients_in_team test_warpgroup_matmul_in_team")
  if(TARGET kokkosnn_mpi_tests)
    set_target_properties(kokkosnn_mpi_tests PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 4)
  endif()
  if(TARGET kokkosnn_c_call_tests)
    kokkosnn_join(kokkosnn_c_call_tests "test_c_calls test_c_elementwise test_c_quantized")
  endif()
endfunction()

# kokkosnn_join_benchmarks(): files that define no name twice.
function(kokkosnn_join_benchmarks)
  set_target_properties(kokkosnn_perf kokkosnn_perf_results kokkosnn_tune
                        PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
endfunction()
