# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
cmake_minimum_required(VERSION 3.23...3.25)
# The texts of SOURCE that name the release name VERSION: the changelog's first, README's tag and its find_package.
string(REGEX MATCH "^[0-9]+[.][0-9]+" series ${VERSION})
set(expected_in_CHANGELOG.md "\n## ([0-9][^ \n]*)" ${VERSION})
set(expected_in_README.md "GIT_TAG v([0-9.]+)" ${VERSION})
set(expected_in_docs/install.md "find_package\\(KokkosNN ([0-9.]+)\\)` takes no" ${series})
foreach(file CHANGELOG.md README.md docs/install.md)
  list(GET expected_in_${file} 0 expression)
  list(GET expected_in_${file} 1 version)
  file(READ ${SOURCE}/${file} text)
  if(NOT text MATCHES "${expression}" OR NOT CMAKE_MATCH_1 STREQUAL version)
    message(FATAL_ERROR "${file} names release ${CMAKE_MATCH_1}, but the library's version is ${VERSION}")
  endif()
endforeach()
