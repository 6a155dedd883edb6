# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
cmake_minimum_required(VERSION 3.23...3.25)
# What a shared LIBRARY of KokkosNN lets others link with is the library's own: nothing of Kokkos, nor of headers that
# it includes. (What libstdc++ declares visible, whatever the flags are, is nobody's.)
execute_process(COMMAND "${NM}" -DC --defined-only "${LIBRARY}" OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE ";" "," output "${output}")
string(REGEX REPLACE "[^\n]* [A-Za-z] ([^\n]*)" "\\1" output "${output}")
string(REGEX REPLACE "\n+" ";" names "${output}")
list(FILTER names EXCLUDE REGEX "^$")
set(own ${names})
list(FILTER own INCLUDE REGEX "^KokkosNN::")
list(LENGTH own count)
message("${count} names of KokkosNN")
if(NOT count GREATER 20)
  message(FATAL_ERROR "${LIBRARY} exports little or nothing")
endif()
list(FILTER names EXCLUDE REGEX "^(KokkosNN::|([a-z_0-9 *&]+ )?(std|__gnu_cxx)::)")
# A CPU level's own of the standard library's, and names that the linker lists although they are hidden.
list(FILTER names EXCLUDE REGEX "^_Z+N*St.*[.]x86_64_v[34]$|^__(start|stop)_kokkosnn_init_")
if(names)
  list(JOIN names "\n  " names)
  message(FATAL_ERROR "${LIBRARY} exports what is not KokkosNN's:\n  ${names}")
endif()
