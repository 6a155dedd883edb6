# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
# Writes OUTPUT from build.hpp.in; a script that runs at every build, as a commit from configure time would be stale
# after the next one. The file is left alone where nothing changes. Lists come with | between their parts.
cmake_minimum_required(VERSION 3.23...3.25)

# Only of a checkout of KokkosNN by itself: in a copy within another project git would tell that one's commit. The
# archive of a release has a file with its own (packaging/release).
set(COMMIT "")
find_program(GIT git)
if(EXISTS ${SOURCE}/COMMIT)
  file(STRINGS ${SOURCE}/COMMIT COMMIT LIMIT_COUNT 1)
endif()
if(GIT AND EXISTS ${SOURCE}/.git)
  execute_process(COMMAND ${GIT} -C ${SOURCE} rev-parse --short=12 HEAD OUTPUT_VARIABLE COMMIT ERROR_QUIET
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
foreach(list KOKKOS_DEVICES KOKKOS_ARCHITECTURES CPU_LEVELS)
  string(REPLACE "|" "," ${list} "${${list}}")
endforeach()
set(CPU_LEVEL "\"\"")
if(CPU_LEVELS)
  set(CPU_LEVEL "KokkosNN::Impl::to_string(KokkosNN::Impl::cpu_level())")
endif()
configure_file(${CMAKE_CURRENT_LIST_DIR}/build.hpp.in ${OUTPUT} @ONLY)
