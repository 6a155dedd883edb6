# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
# kokkosnn_tune writes a file that the library reads: a short search, whatever it finds.
set(file "${FOLDER}/tuning.json")
file(REMOVE_RECURSE "${FOLDER}")
execute_process(COMMAND "${TUNE}" --out "${file}" --types f32 --max-cols 16 COMMAND_ERROR_IS_FATAL ANY)
file(READ "${file}" text)
string(JSON format GET "${text}" format)
string(JSON device GET "${text}" tunings 0 device)
if(NOT format MATCHES "^KokkosNN tuning" OR device STREQUAL "")
  message(FATAL_ERROR "not a tuning file: ${text}")
endif()
