# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
# cmake -DOBJDUMP=... -DAWK=... -DOBJECTS=a|b|... -P check_vectors.cmake
# The host's kernels in these objects compute in vectors: of the multiplications in their functions, as compiled, at
# least two in three are of packed numbers. What is done once a row is the rest.
set(count [=[
/^[0-9a-f]+ </ { is_kernel = $0 ~ /HostRows|LaneRows|NarrowRows|HostInner|HostGradientInner/ }
is_kernel && /(mul|fn?m(add|sub)[0-9]*)p[sd]|fml[as] +v[0-9]+\.|fmul +v[0-9]+\./ { ++packed }
is_kernel && /(mul|fn?m(add|sub)[0-9]*)s[sd]|fn?m(add|sub|ul) +[sd][0-9]+/ { ++single }
END { print packed + 0 ";" single + 0 }
]=])
string(REPLACE "|" ";" objects "${OBJECTS}")
foreach(object IN LISTS objects)
  execute_process(
    COMMAND ${OBJDUMP} -d --no-show-raw-insn ${object}
    COMMAND ${AWK} "${count}"
    OUTPUT_VARIABLE counts
    OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  list(GET counts 0 packed)
  list(GET counts 1 single)
  get_filename_component(name ${object} NAME)
  math(EXPR bound "2 * ${single}")
  if(packed EQUAL 0 OR packed LESS bound)
    message(FATAL_ERROR "${name}: ${packed} multiplications of vectors, ${single} of single numbers")
  endif()
  message(STATUS "${name}: ${packed} multiplications of vectors, ${single} of single numbers")
endforeach()
