# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
cmake_minimum_required(VERSION 3.23...3.25)
# A consumer without CMake: COMPILER, with the flags that PKG_CONFIG finds in FOLDER, builds PROGRAM of SOURCE, which
# runs.
set(ENV{PKG_CONFIG_PATH} ${FOLDER})
execute_process(COMMAND ${PKG_CONFIG} --cflags --libs KokkosNN OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE
                COMMAND_ERROR_IS_FATAL ANY)
message("${flags}")
separate_arguments(flags UNIX_COMMAND "${flags}")
execute_process(COMMAND ${COMPILER} -O0 ${SOURCE} ${flags} -o ${PROGRAM} COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${PROGRAM} COMMAND_ERROR_IS_FATAL ANY)
