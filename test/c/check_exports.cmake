# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
cmake_minimum_required(VERSION 3.23...3.25)
# LIBRARY, libkokkosnn_c, shows the functions of HEADER, and neither KokkosNN nor the Kokkos inside.
execute_process(COMMAND "${NM}" -D --defined-only "${LIBRARY}" OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
string(REGEX REPLACE "[^\n]* [A-Za-z] ([^\n]*)" "\\1" output "${output}")
string(REGEX REPLACE "\n+" ";" exported "${output}")
list(FILTER exported EXCLUDE REGEX "^$")

file(READ "${HEADER}" header)
string(REGEX MATCHALL "KOKKOSNN_C_API [a-z_ *]*kokkosnn_[a-z_]+\\(" declared "${header}")
list(TRANSFORM declared REPLACE ".*(kokkosnn_[a-z_]+)\\(" "\\1")
list(LENGTH declared count)
if(count LESS 25)
  message(FATAL_ERROR "only ${count} functions were found in ${HEADER}")
endif()

list(SORT declared)
list(SORT exported)
if(NOT declared STREQUAL exported)
  message(FATAL_ERROR "${HEADER} declares\n  ${declared}\nbut ${LIBRARY} exports\n  ${exported}")
endif()
message("${count} functions are exported, and nothing else")
