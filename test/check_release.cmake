# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
# The archive of a release (packaging/release): a commit gives it byte for byte, it configures library, tests and
# benchmarks without a network, and what is built of it knows the commit.
#
# SOURCE, FOLDER   of KokkosNN, and to work in
# GENERATOR, COMPILER
cmake_minimum_required(VERSION 3.23...3.25)

# run(<command>...): stops with what the command said if it fails
function(run)
  execute_process(COMMAND ${ARGV} OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGV}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

find_program(GIT git)
if(NOT GIT OR NOT EXISTS ${SOURCE}/.git)
  message("SKIPPED: only a checkout by git has a commit to make an archive of")
  return()
endif()
file(REMOVE_RECURSE ${FOLDER})
foreach(time first second)
  execute_process(COMMAND ${SOURCE}/packaging/release ${FOLDER}/${time} OUTPUT_VARIABLE ${time} ERROR_VARIABLE errors
                  RESULT_VARIABLE result)
  if(errors MATCHES "could be had from none of")
    message("SKIPPED: without a network there is no Kokkos to put into the archive")
    return()
  elseif(NOT result EQUAL 0)
    message(FATAL_ERROR "packaging/release: ${errors}")
  endif()
endforeach()
if(NOT first STREQUAL second)
  message(FATAL_ERROR "two archives of one commit differ: ${first}${second}")
endif()

file(GLOB archive ${FOLDER}/first/KokkosNN-*.tar.gz)
run(${CMAKE_COMMAND} -E chdir ${FOLDER} ${CMAKE_COMMAND} -E tar xf ${archive})
file(GLOB sources ${FOLDER}/KokkosNN-*)
set(without_network ${CMAKE_COMMAND} -E env http_proxy=http://127.0.0.1:9 https_proxy=http://127.0.0.1:9)
run(${without_network} ${CMAKE_COMMAND} -S ${sources} -B ${FOLDER}/build -G ${GENERATOR}
    -DCMAKE_CXX_COMPILER=${COMPILER} -DKokkosNN_APT_GET=false -DCMAKE_DISABLE_FIND_PACKAGE_Kokkos=ON
    -DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON -DCMAKE_DISABLE_FIND_PACKAGE_benchmark=ON -DKokkosNN_FETCH_KOKKOS=ON
    -DKokkos_ENABLE_SERIAL=ON -DKokkosNN_ENABLE_TESTS=ON -DKokkosNN_ENABLE_PERF=ON)
foreach(name kokkos googletest benchmark)
  if(NOT output MATCHES "fetching ${name}")
    message(FATAL_ERROR "the build of the archive did not take its ${name}:\n${output}")
  endif()
endforeach()
run(${CMAKE_COMMAND} --build ${FOLDER}/build --target KokkosNN_build)
run(${GIT} -C ${SOURCE} rev-parse --short=12 HEAD)
string(STRIP "${output}" commit)
file(STRINGS ${FOLDER}/build/src/build.hpp told REGEX "${commit}")
if(NOT told)
  message(FATAL_ERROR "a build of the archive does not know its commit, ${commit}")
endif()
