# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
# cmake -DCOMPILER=... -DFLAGS=a|b|... -DCALLS=... -DKERNELS=... -P check_warnings.cmake
# The headers give no warning in a project that takes them by -I: CALLS is looked at, KERNELS is optimised.
string(REPLACE "|" ";" flags "-std=c++20|${FLAGS}")
execute_process(COMMAND ${COMPILER} ${flags} -fsyntax-only -include Kokkos_Core.hpp -x c++ /dev/null
                RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
if(failed)
  message("SKIPPED: ${COMPILER} does not take Kokkos' headers")
  return()
endif()
list(APPEND flags -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror)
execute_process(COMMAND ${COMPILER} ${flags} -fsyntax-only ${CALLS} COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${COMPILER} ${flags} -O2 -S -o /dev/null ${KERNELS} COMMAND_ERROR_IS_FATAL ANY)
