# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
# Compiles all wrong uses as one file and looks for each one's message in what the compiler says:
#   cmake -DBUILD=<build folder> -DCONFIG=<configuration> -DSOURCES=<a.cpp|b.cpp...> -P check_compile_fail.cmake
# Each source names its message in its first line, `// expect: <regular expression>`. Sources that expect one message
# must give it with other types each, as a compiler reports a failed assertion once for each instantiation.
execute_process(
  COMMAND ${CMAKE_COMMAND} --build ${BUILD} --config "${CONFIG}" --target kokkosnn_wrong_uses
  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(status EQUAL 0)
  message(FATAL_ERROR "the wrong uses compile")
endif()

# A list's separator and brackets inside of a message would split it.
string(REGEX REPLACE "[][;]" " " output "${output}")
string(REGEX MATCHALL "(error|note)[^\n]*" messages "${output}")

string(REPLACE "|" ";" SOURCES "${SOURCES}")
set(failed "")
set(seen "")
foreach(source IN LISTS SOURCES)
  file(STRINGS ${source} expected LIMIT_COUNT 1 REGEX "^// expect: ")
  string(REPLACE "// expect: " "" expected "${expected}")
  list(APPEND seen "${expected}")
  set(wanted ${seen})
  list(FILTER wanted INCLUDE REGEX "^${expected}$")
  list(LENGTH wanted wanted)
  set(found ${messages})
  list(FILTER found INCLUDE REGEX "${expected}")
  list(LENGTH found found)
  get_filename_component(name ${source} NAME)
  if(found LESS wanted)
    string(APPEND failed "\n  ${name}: ${expected}")
  else()
    message(STATUS "${name} is refused: ${expected}")
  endif()
endforeach()
if(failed)
  message(FATAL_ERROR "no message of the compiler says so:${failed}\nThe compiler said:\n${output}")
endif()
