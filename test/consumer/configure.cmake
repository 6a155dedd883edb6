# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
cmake_minimum_required(VERSION 3.23...3.25)
# Configures SOURCE in FOLDER with ARGUMENTS (separated by |), which must succeed, or where REFUSED is on must fail; the
# output must match EXPECTED, whatever way CMake breaks its lines.
string(REPLACE "|" ";" arguments "${ARGUMENTS}")
file(REMOVE_RECURSE "${FOLDER}")
execute_process(COMMAND "${CMAKE_COMMAND}" -S "${SOURCE}" -B "${FOLDER}" ${arguments}
                RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
message("${output}")
string(REGEX REPLACE "[ \n]+" " " output "${output}")
if(REFUSED AND status EQUAL 0)
  message(FATAL_ERROR "this should be refused")
elseif(NOT REFUSED AND NOT status EQUAL 0)
  message(FATAL_ERROR "this should be configured")
elseif(NOT output MATCHES "${EXPECTED}")
  message(FATAL_ERROR "the output does not match: ${EXPECTED}")
endif()
