# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
# Pinned releases that a build may fetch, and where they come from. As a script it brings all of them into a folder:
# cmake -DFOLDER=<folder> -P cmake/Archives.cmake (packaging/release).
cmake_minimum_required(VERSION 3.23...3.25)

set(KokkosNN_ADDRESS_kokkos https://github.com/kokkos/kokkos/releases/download/5.0.2/kokkos-5.0.2.tar.gz)
set(KokkosNN_SHA256_kokkos 188817bb452ca805ee8701f1c5adbbb4fb83dc8d1c50624566a18a719ba0fa5e)
set(KokkosNN_IN_DEBIAN_kokkos k/kokkos/kokkos_5.0.2.orig.tar.gz)

set(KokkosNN_ADDRESS_googletest https://github.com/google/googletest/archive/refs/tags/release-1.12.1.tar.gz)
set(KokkosNN_SHA256_googletest 81964fe578e9bd7c94dfdb09c8e4d6e6759e19967e397dbea48d1c10e45d0df2)
set(KokkosNN_IN_DEBIAN_googletest g/googletest/googletest_1.12.1.orig.tar.gz)

set(KokkosNN_ADDRESS_benchmark https://github.com/google/benchmark/archive/refs/tags/v1.7.1.tar.gz)
set(KokkosNN_SHA256_benchmark 6430e4092653380d9dc4ccb45a1e2dc9259d581f4866dc0759713126056bc1d7)
set(KokkosNN_IN_DEBIAN_benchmark b/benchmark/benchmark_1.7.1.orig.tar.gz)

set(KokkosNN_ARCHIVES ${CMAKE_CURRENT_LIST_DIR}/../third_party) # a release has them along

# kokkosnn_places_of_archive(<name> <variable>): the archive beside the sources, or addresses to try in turn. Debian's
# archive holds the same bytes: where the release's address can't be reached, the one that apt is set up with serves.
function(kokkosnn_places_of_archive name variable)
  if(EXISTS ${KokkosNN_ARCHIVES}/${name}.tar.gz)
    set(${variable} ${KokkosNN_ARCHIVES}/${name}.tar.gz PARENT_SCOPE)
    return()
  endif()
  find_program(KokkosNN_APT_GET apt-get)
  mark_as_advanced(KokkosNN_APT_GET)
  set(mirrors "")
  if(KokkosNN_APT_GET)
    execute_process(COMMAND ${KokkosNN_APT_GET} indextargets --format "$(REPO_URI)" OUTPUT_VARIABLE mirrors ERROR_QUIET)
    string(REGEX MATCHALL "https?://[^\n]+" mirrors "${mirrors}")
    list(REMOVE_DUPLICATES mirrors)
    list(TRANSFORM mirrors APPEND pool/main/${KokkosNN_IN_DEBIAN_${name}})
  endif()
  set(${variable} ${KokkosNN_ADDRESS_${name}} ${mirrors} PARENT_SCOPE)
endfunction()

# kokkosnn_bring_archive(<name> <folder>): as <folder>/<name>.tar.gz
function(kokkosnn_bring_archive name folder)
  set(file ${folder}/${name}.tar.gz)
  kokkosnn_places_of_archive(${name} places)
  foreach(place IN LISTS places)
    if(EXISTS ${place})
      file(COPY_FILE ${place} ${file})
    else()
      file(DOWNLOAD ${place} ${file} TIMEOUT 120)
    endif()
    file(SHA256 ${file} sum)
    if(sum STREQUAL KokkosNN_SHA256_${name})
      return()
    endif()
  endforeach()
  file(REMOVE ${file})
  message(FATAL_ERROR "KokkosNN: ${name} could be had from none of ${places}")
endfunction()

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  foreach(name kokkos googletest benchmark)
    kokkosnn_bring_archive(${name} ${FOLDER})
  endforeach()
endif()
