# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
# The calls that the library holds compiled, from the operators of include/KokkosNN/impl/operators.def and the types
# below. Each group is a header <build>/include/KokkosNN/instantiations/<group>.hpp of extern templates, which the calls
# include, and a source <build>/src/instantiate/<file>.cpp a type (or pair of types), which defines them. Where kernels
# are compiled for several levels of a CPU (cmake/CpuLevels.cmake), <build>/src/cpu_levels/<file>.cpp is that of the
# others.

# Files of the types, and the types.
set(KokkosNN_TYPES f64:double f32:float f16:half_t bf16:bhalf_t)
set(mixed_pairs f16_to_f32:half_t:float f32_to_f16:float:half_t bf16_to_f32:bhalf_t:float f32_to_bf16:float:bhalf_t)
set(KokkosNN_FORWARD_PAIRS f64:double:double f32:float:float f16:half_t:half_t bf16:bhalf_t:bhalf_t)
set(known_pairs)
foreach(entry IN LISTS mixed_pairs)
  string(REGEX MATCH "^[a-z0-9_]+" pair ${entry})
  list(APPEND known_pairs ${pair})
  if(pair IN_LIST KokkosNN_TYPE_PAIRS OR KokkosNN_TYPE_PAIRS STREQUAL "all")
    list(APPEND KokkosNN_FORWARD_PAIRS ${entry})
  endif()
endforeach()
foreach(pair IN LISTS KokkosNN_TYPE_PAIRS)
  if(NOT pair IN_LIST known_pairs AND NOT pair STREQUAL "all")
    message(FATAL_ERROR "KokkosNN: KokkosNN_TYPE_PAIRS has ${pair}, which is none of ${known_pairs} and not all")
  endif()
endforeach()
set(KokkosNN_VALUE_PAIRS # an operand of one value a row may be of the accumulator's type
    f64:double:double f32:float:float f16:half_t:half_t f16:half_t:float bf16:bhalf_t:bhalf_t bf16:bhalf_t:float)
set(KokkosNN_ACCUMULATORS f64:double f32:float)

set(KokkosNN_OPERATORS_DEF ${PROJECT_SOURCE_DIR}/include/KokkosNN/impl/operators.def)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${KokkosNN_OPERATORS_DEF})
file(STRINGS ${KokkosNN_OPERATORS_DEF} KokkosNN_OPERATOR_LINES REGEX "^KOKKOSNN_OPERATOR\\(")

# kokkosnn_operators(<variable> <family> <ragged> <output>): the names of a family's operators; an empty argument is
# for any
function(kokkosnn_operators variable family ragged output)
  set(word "[a-z_]+")
  if(NOT ragged)
    set(ragged ${word})
  endif()
  if(NOT output)
    set(output ${word})
  endif()
  set(names)
  foreach(line IN LISTS KokkosNN_OPERATOR_LINES)
    if(line MATCHES "^KOKKOSNN_OPERATOR\\((${word}), *${family}, *${ragged}, *[0-9]+, *${word}, *${output},")
      list(APPEND names ${CMAKE_MATCH_1})
    endif()
  endforeach()
  set(${variable} ${names} PARENT_SCOPE)
endfunction()

# kokkosnn_instantiate(<group> [FILE <prefix>] TYPES <file:type...>... CALLS <class>...
#                      [FAMILY <family>] [RAGGED <ragged>] [OUTPUT <output>] [ONE_LEVEL])
#
# A call is a class template's name with its arguments, in which {exec} stands for the execution space, {X} and {Y} for
# the types, and {op} for each operator of the family in turn. ONE_LEVEL is for what is no call by run_compiled.
function(kokkosnn_instantiate group)
  cmake_parse_arguments(PARSE_ARGV 1 arg "ONE_LEVEL" "FILE;FAMILY;RAGGED;OUTPUT" "TYPES;CALLS")
  set(operators -)
  if(arg_FAMILY)
    kokkosnn_operators(operators ${arg_FAMILY} "${arg_RAGGED}" "${arg_OUTPUT}")
  endif()
  foreach(entry IN LISTS arg_TYPES)
    string(REPLACE ":" ";" entry ${entry})
    list(GET entry 0 type)
    list(GET entry 1 X)
    list(GET entry -1 Y)
    set(file ${arg_FILE}${type})
    foreach(call IN LISTS arg_CALLS)
      foreach(operator IN LISTS operators)
        string(REPLACE "{exec}" Kokkos::DefaultExecutionSpace text "${call}")
        string(REPLACE "{op}" "RowOperator::${operator}" text "${text}")
        string(REPLACE "{X}" "${X}" text "${text}")
        string(REPLACE "{Y}" "${Y}" text "${text}")
        set_property(
          GLOBAL APPEND_STRING PROPERTY kokkosnn_header_${group} "extern template struct {export} ${text}{end}")
        set_property(
          GLOBAL APPEND_STRING PROPERTY kokkosnn_flags_${group}
                                        "template <>\ninline constexpr bool is_compiled<${text}> = true{end}")
        set_property(GLOBAL APPEND_STRING PROPERTY kokkosnn_source_${group}_${file} "template struct ${text}{end}")
        if(NOT arg_ONE_LEVEL)
          set_property(GLOBAL APPEND_STRING PROPERTY kokkosnn_levels_${group}_${file} "${text}{end}")
        endif()
      endforeach()
    endforeach()
    set_property(GLOBAL APPEND PROPERTY kokkosnn_files_${group} ${file})
  endforeach()
endfunction()

# kokkosnn_write_if_changed(<file> <text>)
function(kokkosnn_write_if_changed file text)
  file(CONFIGURE OUTPUT ${file} CONTENT "${text}" @ONLY)
endfunction()

# kokkosnn_split_levels(<variable for declarations> <variable for definitions> <calls>): what a source declares of its
# calls' further levels, and what defines them, both empty where there is one level
function(kokkosnn_split_levels declarations definitions calls)
  string(REPLACE "{end}" ";" calls "${calls}")
  set(levels ${KokkosNN_MORE_CPU_LEVELS})
  list(TRANSFORM levels REPLACE "[^a-z0-9]" "_")
  list(TRANSFORM levels PREPEND "CpuLevel::")
  list(JOIN levels ", " all)
  set(declared "")
  set(defined "")
  if(levels)
    list(REMOVE_ITEM calls "")
    foreach(call IN LISTS calls)
      string(APPEND declared "template <>\ninline constexpr CpuLevels<${all}> levels_of<${call}>{}{end}")
      foreach(level IN LISTS levels)
        string(APPEND declared "extern template struct LevelCall<${call}, ${level}>{end}")
      endforeach()
      string(APPEND defined "template struct LevelCall<${call}, CpuLevel::KOKKOSNN_CPU_LEVEL>{end}")
    endforeach()
  endif()
  set(${declarations} "${declared}" PARENT_SCOPE)
  set(${definitions} "${defined}" PARENT_SCOPE)
endfunction()

# kokkosnn_write_instantiations(<group> <variable for sources> <folder of the sources> <export macro> <its header>
#                               KERNELS <header> [CALLS <header>])
#
# The header and the sources of a group. Its calls are declared in CALLS, and defined with their kernels in KERNELS;
# without CALLS they are no calls of users, and KERNELS has both. <variable>_LEVELS gets the sources for further levels.
function(kokkosnn_write_instantiations group variable folder export export_header)
  cmake_parse_arguments(PARSE_ARGV 5 arg "" "KERNELS;CALLS" "")
  get_property(declarations GLOBAL PROPERTY kokkosnn_header_${group})
  get_property(flags GLOBAL PROPERTY kokkosnn_flags_${group})
  get_property(files GLOBAL PROPERTY kokkosnn_files_${group})
  list(REMOVE_DUPLICATES files)
  set(declared_in ${arg_KERNELS})
  if(arg_CALLS)
    set(declared_in ${arg_CALLS})
    string(APPEND declarations "\n${flags}")
  endif()
  string(REPLACE "{export}" ${export} declarations "${declarations}")
  string(REPLACE "{end}" ";\n" declarations "${declarations}")
  string(TOUPPER "KOKKOSNN_INSTANTIATIONS_${group}_HPP" guard)
  set(header ${PROJECT_BINARY_DIR}/include/KokkosNN/instantiations/${group}.hpp)
  set(origin "// Made by cmake/Instantiations.cmake, under the licence of the project.\n")
  kokkosnn_write_if_changed(
    ${header}
    "${origin}#ifndef ${guard}\n#define ${guard}\n
#include <KokkosNN/${export_header}>
#include <KokkosNN/impl/${declared_in}>

#include <Kokkos_Core.hpp>\n
namespace KokkosNN::Impl {\n
${declarations}
}  // namespace KokkosNN::Impl\n\n#endif\n")
  set(begin "${origin}#include <KokkosNN/instantiations/${group}.hpp>
#include <KokkosNN/impl/${arg_KERNELS}>\n
namespace KokkosNN::Impl {\n\n")
  set(end "\n}  // namespace KokkosNN::Impl\n")
  set(sources)
  set(level_sources)
  foreach(file IN LISTS files)
    get_property(definitions GLOBAL PROPERTY kokkosnn_source_${group}_${file})
    get_property(calls GLOBAL PROPERTY kokkosnn_levels_${group}_${file})
    kokkosnn_split_levels(declared of_level "${calls}")
    string(REPLACE "{end}" ";\n" definitions "${declared}${definitions}")
    set(source ${PROJECT_BINARY_DIR}/src/${folder}/${file}.cpp)
    kokkosnn_write_if_changed(${source} "${begin}${definitions}${end}")
    list(APPEND sources ${source})
    if(of_level)
      string(REPLACE "{end}" ";\n" of_level "${of_level}")
      set(source ${PROJECT_BINARY_DIR}/src/cpu_levels/${file}.cpp)
      kokkosnn_write_if_changed(${source} "${begin}${of_level}${end}")
      list(APPEND level_sources ${source})
    endif()
  endforeach()
  set(${variable} ${${variable}} ${sources} PARENT_SCOPE)
  set(${variable}_LEVELS ${${variable}_LEVELS} ${level_sources} PARENT_SCOPE)
  set(${variable}_HEADERS ${${variable}_HEADERS} ${header} PARENT_SCOPE)
endfunction()

# --- KokkosNN::KokkosNN ---
kokkosnn_instantiate(
  forward FAMILY forward TYPES ${KokkosNN_FORWARD_PAIRS}
  CALLS "ViewCall<{exec}, {op}, {X}, {Y}>")
kokkosnn_instantiate(
  gradients FAMILY gradient FILE gradients_ TYPES ${KokkosNN_TYPES}
  CALLS "GradientCall<{exec}, {op}, {X}, {X}, {X}>")
kokkosnn_instantiate(
  gradients FAMILY value_gradient FILE gradients_ TYPES ${KokkosNN_VALUE_PAIRS}
  CALLS "GradientCall<{exec}, {op}, {X}, {Y}, {X}>")
kokkosnn_instantiate(
  masked FAMILY masked OUTPUT rows FILE masked_ TYPES ${KokkosNN_TYPES}
  CALLS "MaskedCall<{exec}, {op}, {X}, {X}>")
kokkosnn_instantiate(
  masked FAMILY masked OUTPUT values FILE masked_values_ TYPES ${KokkosNN_TYPES}
  CALLS "MaskedCall<{exec}, {op}, {X}, {X}>")
kokkosnn_instantiate(
  masked_gradients FAMILY masked_gradient FILE masked_gradients_ TYPES ${KokkosNN_TYPES}
  CALLS "MaskedGradientCall<{exec}, {op}, {X}, {X}, {X}>")
kokkosnn_instantiate(
  masked_gradients FILE mask_sums_ TYPES ${KokkosNN_TYPES}
  CALLS "MaskSumsCall<{exec}, {X}, {X}>")
kokkosnn_instantiate(
  loss_sums ONE_LEVEL FILE loss_sums_ TYPES ${KokkosNN_ACCUMULATORS}
  CALLS "LossSums<{exec}, {X}>")
kokkosnn_instantiate(
  cross_entropy FAMILY cross_entropy FILE cross_entropy_ TYPES ${KokkosNN_TYPES}
  CALLS "CrossEntropyCall<{exec}, {op}, {X}, {X}>")
kokkosnn_instantiate(
  cross_entropy FILE cross_entropy_from_lse_ TYPES ${KokkosNN_ACCUMULATORS}
  CALLS "LossOfLseCall<{exec}, {X}>")
kokkosnn_instantiate(
  soft_loss FAMILY soft_loss FILE soft_cross_entropy_ TYPES ${KokkosNN_TYPES}
  CALLS "SoftLossCall<{exec}, {op}, {X}>")
set(norm FILE norm_ TYPES ${KokkosNN_TYPES} CALLS "OperandCall<{exec}, {op}, {X}>")
kokkosnn_instantiate(norm FAMILY norm ${norm})
kokkosnn_instantiate(norm FAMILY norm_gradient ${norm})
set(add_norm FILE add_norm_ TYPES ${KokkosNN_TYPES} CALLS "OperandCall<{exec}, {op}, {X}>")
kokkosnn_instantiate(norm FAMILY add_norm ${add_norm})
kokkosnn_instantiate(norm FAMILY add_norm_gradient ${add_norm})
kokkosnn_instantiate(
  column_sums FILE column_sums_ TYPES ${KokkosNN_TYPES}
  CALLS "ColumnSumsCall<{exec}, {X}>")
foreach(operator Add Mul Silu SiluBackward Gelu GeluBackward GeluTanh GeluTanhBackward Swiglu SwigluBackward Geglu
                 GegluBackward GegluTanh GegluTanhBackward)
  kokkosnn_instantiate(elementwise FILE elementwise_ TYPES ${KokkosNN_TYPES}
                       CALLS "ElementwiseCall<{exec}, {X}, ${operator}>")
endforeach()
kokkosnn_instantiate(
  segmented FAMILY forward RAGGED ragged FILE segmented_ TYPES ${KokkosNN_TYPES}
  CALLS "SegmentedCall<{exec}, {op}, {X}, {X}>")
kokkosnn_instantiate(
  segmented FAMILY gradient RAGGED ragged FILE segmented_ TYPES ${KokkosNN_TYPES}
  CALLS "SegmentedGradientCall<{exec}, {op}, {X}>")
kokkosnn_instantiate(
  segmented FILE segmented_ TYPES ${KokkosNN_TYPES}
  CALLS "SegmentedLseGradientCall<{exec}, {X}>")
kokkosnn_instantiate(
  segment_index FILE segment_index_ TYPES ${KokkosNN_TYPES}
  CALLS "SegmentIndexCall<{exec}, {X}>")
kokkosnn_instantiate(
  segmented ONE_LEVEL FILE segmented_ TYPES f32:float
  CALLS "OffsetsCheck<{exec}>")
kokkosnn_instantiate(
  rope FILE rope_ TYPES ${KokkosNN_TYPES}
  CALLS "RopeCall<{exec}, {X}>")
kokkosnn_instantiate(
  rms_norm_rope FILE rms_norm_rope_ TYPES ${KokkosNN_TYPES}
  CALLS "RmsNormRopeCall<{exec}, {X}>")
kokkosnn_instantiate(
  quantized FILE quantized_ TYPES ${KokkosNN_TYPES}
  CALLS "QuantizedCall<{exec}, RowOperator::softmax, {X}>" "QuantizedCall<{exec}, RowOperator::rms_norm, {X}>"
        "QuantizedCall<{exec}, RowOperator::layer_norm, {X}>")
kokkosnn_instantiate(
  attention FILE attention_ TYPES ${KokkosNN_TYPES}
  CALLS "AttentionCall<{exec}, {X}>" "AttentionGradientCall<{exec}, {X}>" "AttentionMergeCall<{exec}, {X}, {X}>")
kokkosnn_instantiate(
  attention FILE attention_ TYPES f16:half_t bf16:bhalf_t
  CALLS "AttentionMergeCall<{exec}, float, {X}>")
kokkosnn_instantiate(
  attention_mask FILE attention_mask_ TYPES ${KokkosNN_TYPES}
  CALLS "AttentionMaskGradientCall<{exec}, {X}>")
kokkosnn_instantiate(
  graph_attention FILE graph_attention_ TYPES ${KokkosNN_TYPES}
  CALLS "GraphAttentionCall<{exec}, {X}>")
kokkosnn_instantiate(
  matmul FILE matmul_ TYPES ${KokkosNN_TYPES}
  CALLS "MatmulCall<{exec}, {X}>")

set(KokkosNN_INSTANTIATIONS)
set(KokkosNN_INSTANTIATIONS_HEADERS)
set(KokkosNN_INSTANTIATIONS_LEVELS)
set(made_by KokkosNN_INSTANTIATIONS instantiate KOKKOSNN_EXPORT export.hpp)
set(calls CALLS call/compiled_calls.hpp)
set(masked_calls CALLS call/compiled_masked_calls.hpp)
set(segmented_calls CALLS call/compiled_segmented_calls.hpp)
kokkosnn_write_instantiations(forward ${made_by} KERNELS call/view_launch.hpp ${calls})
kokkosnn_write_instantiations(gradients ${made_by} KERNELS call/gradient_launch.hpp ${calls})
kokkosnn_write_instantiations(masked ${made_by} KERNELS call/masked_launch.hpp ${masked_calls})
kokkosnn_write_instantiations(masked_gradients ${made_by} KERNELS call/masked_gradient_launch.hpp ${masked_calls})
kokkosnn_write_instantiations(cross_entropy ${made_by} KERNELS call/cross_entropy_launch.hpp ${calls})
kokkosnn_write_instantiations(soft_loss ${made_by} KERNELS call/soft_loss_launch.hpp ${calls})
kokkosnn_write_instantiations(loss_sums ${made_by} KERNELS gpu/loss_sums.hpp)
kokkosnn_write_instantiations(segmented ${made_by} KERNELS call/segmented_launch.hpp ${segmented_calls})
kokkosnn_write_instantiations(segment_index ${made_by} KERNELS call/segment_index_launch.hpp ${segmented_calls})
kokkosnn_write_instantiations(norm ${made_by} KERNELS call/operand_launch.hpp ${calls})
kokkosnn_write_instantiations(elementwise ${made_by} KERNELS call/elementwise_launch.hpp)
kokkosnn_write_instantiations(column_sums ${made_by} KERNELS call/column_sums_launch.hpp ${calls})
kokkosnn_write_instantiations(rope ${made_by} KERNELS call/rope_launch.hpp CALLS call/compiled_rope_calls.hpp)
kokkosnn_write_instantiations(rms_norm_rope ${made_by} KERNELS call/rms_norm_rope_launch.hpp
                              CALLS call/compiled_rope_calls.hpp)
kokkosnn_write_instantiations(quantized ${made_by} KERNELS call/quantized_launch.hpp
                              CALLS call/compiled_quantized_calls.hpp)
kokkosnn_write_instantiations(attention ${made_by} KERNELS call/attention_launch.hpp
                              CALLS call/compiled_attention_calls.hpp)
kokkosnn_write_instantiations(attention_mask ${made_by} KERNELS call/attention_mask_gradients_launch.hpp
                              CALLS call/attention_mask_gradients_layout.hpp)
kokkosnn_write_instantiations(graph_attention ${made_by} KERNELS call/graph_attention_launch.hpp
                              CALLS call/graph_attention_layout.hpp)
kokkosnn_write_instantiations(matmul ${made_by} KERNELS call/matmul_launch.hpp)

# --- KokkosNN::mpi ---
set(sharded ONE_LEVEL TYPES ${KokkosNN_TYPES})
kokkosnn_instantiate(
  sharded ${sharded}
  CALLS "ShardedReduction<{exec}, {X}, accumulator_t<{X}>, exp_accuracy_for<{X}>>")
# A 16-bit type's log-sum-exps in float want better exponentials than its softmax.
kokkosnn_instantiate(
  sharded ONE_LEVEL TYPES f16:half_t bf16:bhalf_t
  CALLS "ShardedReduction<{exec}, {X}, float, ExpAccuracy::full>")
kokkosnn_instantiate(sharded FAMILY forward OUTPUT rows ${sharded} CALLS "ShardedFinish<{exec}, {op}, {X}, {X}>")
kokkosnn_instantiate(
  sharded FAMILY forward OUTPUT values ${sharded}
  CALLS "ShardedFinish<{exec}, {op}, {X}, accumulator_t<{X}>>")
kokkosnn_instantiate(sharded FAMILY gradient ${sharded} CALLS "ShardedGradient<{exec}, {op}, {X}, {X}, {X}>")
kokkosnn_instantiate(sharded ${sharded} CALLS "ShardedCrossEntropy<{exec}, {X}>")
set(sharded_norm ONE_LEVEL FILE norm_ TYPES ${KokkosNN_TYPES} CALLS "ShardedNorm<{exec}, {op}, {X}>")
kokkosnn_instantiate(sharded_norm FAMILY norm ${sharded_norm})
kokkosnn_instantiate(sharded_norm FAMILY norm_gradient ${sharded_norm})

set(KokkosNN_MPI_INSTANTIATIONS)
set(KokkosNN_MPI_INSTANTIATIONS_HEADERS)
kokkosnn_write_instantiations(sharded KokkosNN_MPI_INSTANTIATIONS mpi/instantiate KOKKOSNN_MPI_EXPORT mpi_export.hpp
                              KERNELS mpi/launch.hpp)
kokkosnn_write_instantiations(sharded_norm KokkosNN_MPI_INSTANTIATIONS mpi/instantiate KOKKOSNN_MPI_EXPORT
                              mpi_export.hpp KERNELS mpi/norm_launch.hpp)
