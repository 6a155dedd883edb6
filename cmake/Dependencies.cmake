# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
# Kokkos, and MPI, GoogleTest, Google Benchmark and Kokkos Kernels where they are used. A target of the enclosing
# project wins, then an installed package, then a pinned release, of Kokkos where KokkosNN_FETCH_KOKKOS is on;
# -DCMAKE_DISABLE_FIND_PACKAGE_<name>=ON skips the installed one.
include(FetchContent)
include(${CMAKE_CURRENT_LIST_DIR}/Archives.cmake)

# The oldest release that the library was built and run with: 4.6.01 with OpenMP (devices' backends with 5.0.2 alone).
set(KokkosNN_KOKKOS_MINIMUM 4.6 CACHE STRING "Oldest Kokkos that is taken")
option(KokkosNN_FETCH_KOKKOS "Build Kokkos 5.0.2 along where no installed Kokkos will do" OFF)
mark_as_advanced(KokkosNN_KOKKOS_MINIMUM)

# kokkosnn_fetch(<name>): makes a pinned release of Archives.cmake a part of the build
function(kokkosnn_fetch name)
  string(TOUPPER ${name} upper_name)
  kokkosnn_places_of_archive(${name} places)
  message(STATUS "KokkosNN: fetching ${name} (offline: -DFETCHCONTENT_SOURCE_DIR_${upper_name}=<its sources>)")
  set(CMAKE_POLICY_DEFAULT_CMP0077 NEW) # options of the dependency are plain variables here
  set(CMAKE_WARN_DEPRECATED OFF)
  set(system "")
  if(CMAKE_VERSION VERSION_GREATER_EQUAL 3.25)
    set(system SYSTEM)
  endif()
  FetchContent_Declare(${name} URL ${places} URL_HASH SHA256=${KokkosNN_SHA256_${name}} TIMEOUT 120 ${system})
  FetchContent_MakeAvailable(${name})
endfunction()

function(kokkosnn_fetch_kokkos)
  # What Kokkos would also find, but would report far from its cause.
  if(Kokkos_ENABLE_CUDA AND NOT CMAKE_CXX_COMPILER_ID STREQUAL Clang)
    find_program(KokkosNN_NVCC nvcc HINTS ENV CUDA_ROOT PATH_SUFFIXES bin)
    mark_as_advanced(KokkosNN_NVCC)
    if(NOT KokkosNN_NVCC)
      message(FATAL_ERROR "KokkosNN: CUDA was asked for (Kokkos_ENABLE_CUDA=ON), but nvcc is neither on PATH nor in "
                          "$CUDA_ROOT/bin.")
    endif()
  endif()
  if(Kokkos_ENABLE_CUDA)
    set(nvidia ${KokkosNN_ASKED_ARCH})
    list(FILTER nvidia INCLUDE REGEX "^(MAXWELL|PASCAL|VOLTA|TURING|AMPERE|ADA|HOPPER|BLACKWELL)")
    execute_process(COMMAND nvidia-smi -L RESULT_VARIABLE no_gpu OUTPUT_QUIET ERROR_QUIET)
    if(no_gpu AND NOT nvidia)
      message(FATAL_ERROR "KokkosNN: CUDA was asked for, but this machine shows no NVIDIA GPU to take the architecture "
                          "from. Give it, for example -DKokkos_ARCH_HOPPER90=ON: after `cmake --preset cuda`, after "
                          "`./test/run --preset cuda`, or in a preset of your own in CMakeUserPresets.json.")
    endif()
  endif()

  # A build of KokkosNN by itself that asks for no backend gets threads where the compiler has OpenMP.
  if(PROJECT_IS_TOP_LEVEL AND NOT KokkosNN_ASKED)
    find_package(OpenMP QUIET COMPONENTS CXX)
    if(OpenMP_CXX_FOUND)
      set(Kokkos_ENABLE_OPENMP ON CACHE BOOL "Whether to build OpenMP backend")
    endif()
  endif()

  # As KokkosNN itself: archives that can go into someone's shared library.
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
  kokkosnn_fetch(kokkos)
endfunction()

# kokkosnn_judge_kokkos(<variable>): why what find_package found will not do, or nothing
function(kokkosnn_judge_kokkos variable)
  set(reason "")
  if(Kokkos_FOUND)
    set(missing ${KokkosNN_ASKED})
    list(REMOVE_ITEM missing ${Kokkos_DEVICES})
    if(missing)
      set(reason "the backends asked for are ${KokkosNN_ASKED}, but the Kokkos ${Kokkos_VERSION} in ${Kokkos_DIR} has \
${Kokkos_DEVICES}: no ${missing}")
    endif()
  elseif(Kokkos_CONSIDERED_VERSIONS)
    list(JOIN Kokkos_CONSIDERED_VERSIONS ", " versions)
    set(reason "Kokkos ${versions} is installed, but ${KokkosNN_KOKKOS_MINIMUM} or newer is needed")
  else()
    set(reason "no Kokkos is installed where CMake looks")
  endif()
  set(${variable} "${reason}" PARENT_SCOPE)
endfunction()

if(NOT TARGET Kokkos::kokkos)
  set(KokkosNN_ASKED "")
  foreach(backend SERIAL OPENMP THREADS CUDA HIP SYCL)
    if(Kokkos_ENABLE_${backend})
      list(APPEND KokkosNN_ASKED ${backend})
    endif()
  endforeach()

  set(KokkosNN_ASKED_ARCH "")
  get_cmake_property(variables CACHE_VARIABLES)
  list(FILTER variables INCLUDE REGEX "^Kokkos_ARCH_")
  foreach(variable IN LISTS variables)
    if(${variable})
      string(REPLACE Kokkos_ARCH_ "" arch ${variable})
      list(APPEND KokkosNN_ASKED_ARCH ${arch})
    endif()
  endforeach()

  set(unfit "")
  if(KokkosNN_FETCH_KOKKOS AND KokkosNN_ASKED)
    # What it finds is seen in that folder alone: a package whose targets are there can't be put back.
    add_subdirectory(cmake/installed_kokkos)
  endif()
  if(NOT unfit)
    find_package(Kokkos ${KokkosNN_KOKKOS_MINIMUM} QUIET)
    kokkosnn_judge_kokkos(unfit)
  endif()
  if(unfit AND NOT KokkosNN_FETCH_KOKKOS)
    message(FATAL_ERROR "KokkosNN: ${unfit}. Set Kokkos_ROOT to the prefix of one that will do, or "
                        "-DKokkosNN_FETCH_KOKKOS=ON to have Kokkos 5.0.2 built along with KokkosNN.")
  elseif(unfit)
    message(STATUS "KokkosNN: ${unfit}; Kokkos 5.0.2 is built along")
    kokkosnn_fetch_kokkos()
  else()
    message(STATUS "KokkosNN: Kokkos ${Kokkos_VERSION} in ${Kokkos_DIR} (devices ${Kokkos_DEVICES}; "
                   "architectures ${Kokkos_ARCH})")
    set(missing ${KokkosNN_ASKED_ARCH})
    list(REMOVE_ITEM missing ${Kokkos_ARCH})
    if(missing)
      message(WARNING "KokkosNN: ${missing} was asked for, but this Kokkos was built for: ${Kokkos_ARCH}. "
                      "That is what counts.")
    endif()
  endif()
endif()

set(KokkosNN_HAS_MPI OFF)
if(KokkosNN_ENABLE_MPI)
  set(MPI_CXX_SKIP_MPICXX ON) # the C++ bindings that MPI has dropped
  if(KokkosNN_ENABLE_MPI STREQUAL AUTO)
    find_package(MPI QUIET COMPONENTS CXX)
  else()
    find_package(MPI REQUIRED COMPONENTS CXX)
  endif()
  if(MPI_CXX_FOUND)
    set(KokkosNN_HAS_MPI ON)
  else()
    message(STATUS "KokkosNN: no MPI was found, KokkosNN::mpi is left out")
  endif()
endif()

if(KokkosNN_ENABLE_TESTS AND NOT TARGET GTest::gtest)
  find_package(GTest QUIET)
  if(NOT GTest_FOUND)
    set(INSTALL_GTEST OFF)
    set(BUILD_GMOCK OFF)
    kokkosnn_fetch(googletest)
  endif()
endif()

if(KokkosNN_ENABLE_PERF AND NOT TARGET benchmark::benchmark)
  find_package(benchmark QUIET)
  if(NOT benchmark_FOUND)
    set(BENCHMARK_ENABLE_TESTING OFF)
    set(BENCHMARK_ENABLE_INSTALL OFF)
    set(BENCHMARK_ENABLE_WERROR OFF)
    kokkosnn_fetch(benchmark)
  endif()
endif()

# An installed Kokkos Kernels brings its own Kokkos, so it can't be mixed with a fetched one.
if(KokkosNN_ENABLE_PERF AND KokkosNN_ENABLE_KOKKOSKERNELS AND NOT TARGET Kokkos::kokkoskernels)
  if(NOT KokkosNN_ENABLE_KOKKOSKERNELS STREQUAL AUTO)
    find_package(KokkosKernels REQUIRED)
  elseif(Kokkos_FOUND)
    find_package(KokkosKernels QUIET)
  endif()
endif()
